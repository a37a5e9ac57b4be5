"""Every check answers whatever a run holds, and together they serve the audits in full."""

from __future__ import annotations

import random
from typing import Any

import pytest
from checks_support import LLM_7B, hand_made, items_of

from flake8_gpu_training.checks.base import Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.facts import Unknown
from flake8_gpu_training.runs.model import PRACTICES, Hardware, Model, RunKind
from report_builder.audits import audit_of

VALUES: tuple[Any, ...] = (
    Unknown("computed"),
    Unknown("branches", (1, "bf16", None)),
    None,
    True,
    False,
    0,
    -1,
    3,
    2.5,
    10**30,
    10**400,
    float("inf"),
    float("nan"),
    "\ud800",
    "",
    "none",
    "auto",
    "flash_attention_2",
    "bf16",
    "lora",
    "full",
    [],
    ["a", 1],
    {"stage": 2},
)
SETTINGS = (
    "fsdp",
    "deepspeed",
    "bf16",
    "fp16",
    "packing",
    "lazy_tokenize",
    "load_best_model_at_end",
    "eval_strategy",
    "eval_steps",
    "save_steps",
    "callbacks",
    "max_steps",
    "dataloader_prefetch_factor",
    "use_galore",
)
MODELS = (
    LLM_7B,
    Model(),
    Model("x" * 5000, "MLLM", 0),
    Model("a/b-moe", "LLM", 10**12, is_moe=True),
)
FRAMEWORKS = ("swift", "hf_trainer", "llamafactory", "generic", "videox_fun", "flow_factory")


@pytest.mark.parametrize("seed", range(150))
def test_no_check_raises(seed: int) -> None:
    draw = random.Random(seed)
    chosen = draw.sample(sorted(PRACTICES), draw.randint(0, len(PRACTICES)))
    run = hand_made(
        draw.choice(FRAMEWORKS),
        practices={name: draw.choice(VALUES) for name in chosen},
        settings={name: draw.choice(VALUES) for name in draw.sample(SETTINGS, 7)},
        environment={"NCCL_IB_DISABLE": draw.choice(VALUES)},
        processes=draw.choice((None, 1, 2, 8)),
        nodes=draw.choice((1, 2)),
        model=draw.choice(MODELS),
        hardware=Hardware(
            draw.choice((None, "A100-80G", "V100-32G", "H100", "nonsense")),
            draw.choice((None, 1, 8)),
            draw.choice((None, 1, 2)),
        ),
        kind=draw.choice(tuple(RunKind)),
        single_file=draw.choice((True, False)),
        is_open=draw.choice((True, False)),
    )
    for check in all_checks():
        answer = check.judge(run)
        assert 0.0 <= answer.share <= 1.0, check.code
        assert all(finding.message for finding in answer.findings), check.code
        if answer.status in (Status.RECOMMENDED, Status.PARTIAL):
            assert answer.current.zh, check.code
            assert answer.current.en, check.code
            assert answer.action.zh, check.code
            assert answer.action.en, check.code
            assert check.code.startswith("GPU0") or answer.change is not None, check.code
            assert check.impact.source or check.impact.note.en, check.code


@pytest.mark.parametrize("audit", ["general", "swift", "transformers", "sglang"])
def test_every_item_of_the_audit_is_served(audit: str) -> None:
    listed = audit_of(audit)
    assert listed is not None
    for category in listed.categories:
        wanted = {identifier for identifier, _ in category.items}
        assert {item.id for item in items_of(audit, category.id)} == wanted, category.id


@pytest.mark.parametrize("audit", ["general", "swift", "transformers", "sglang"])
def test_the_best_run_earns_each_category_exactly(audit: str) -> None:
    listed = audit_of(audit)
    assert listed is not None
    for category in listed.categories:
        best: dict[str, float] = {}
        for item in items_of(audit, category.id):
            key = f"group {item.group}" if item.group else item.id
            best[key] = max(best.get(key, 0.0), item.points)
        assert sum(best.values()) == category.maximum, category.id
