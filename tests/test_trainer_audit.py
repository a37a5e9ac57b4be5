"""Every item of the Trainer's own audit, in Python, by flags and in YAML; and whole scores."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from audit_cases import ADVISED, NA, OFF, ON, PARTLY, Case
from audit_cases_trainer import CASES
from checks_support import runs_of

from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.verdicts import Verdict, judge
from report_builder.audits import audit_of
from report_builder.scoring import ScoredItem, score

AUDIT = audit_of("transformers")
assert AUDIT is not None
ITEMS = tuple(item for category in AUDIT.categories for item, _ in category.items)
_OPTIONAL = "a run may do without it: whether it helps shows in the run"
_ONE_OF = "one of a group, of which another is advised"
NEVER_ADVISED = {
    **dict.fromkeys(
        """
        tf32 bf16-full-eval fp16-full-eval non-reentrant empty-cache-steps auto-batch-size dora
        fsdp2 fsdp-efficient-loading parallelism-config compile-backend compile-mode liger-config
        group-by-length length-column remove-unused-columns neftune gradient-clipping
        label-smoothing save-only-model jit-checkpoint static-kv-cache quantized-kv-cache
        offloaded-kv-cache speculative-decoding prompt-lookup compiled-forward prefill-chunking
        """.split(),  # noqa: SIM905
        _OPTIONAL,
    ),
    **dict.fromkeys(
        """
        qlora-8bit gptq awq torchao fp8-quantization adamw-8bit adamw-4bit paged-adamw adafactor
        galore apollo lomo schedule-free fsdp-full-shard fsdp-shard-grad-op fsdp-hybrid-shard
        flash-attention-3 flex-attention runtime-switch
        """.split(),  # noqa: SIM905
        _ONE_OF,
    ),
    "sdpa": "advised against, in part: it is what a model has unless FlashAttention is asked for",
}
"""Items that are never recommended, and why; they are shown disabled (or partial) instead."""


def judged(root: Path, case: Case) -> tuple[ScoredItem, tuple[Verdict, ...]]:
    """The item as the report scores it, and the verdicts of the case's first run."""
    runs = [run for run in runs_of(root, case.files) if run.framework == "hf_trainer"]
    assert runs, "no run was found"
    verdicts = judge(runs[0], all_checks())
    assert AUDIT is not None
    scored = score(AUDIT, verdicts)
    assert scored is not None
    items = {item.id: item for category in scored.categories for item in category.items}
    return items[case.item], verdicts


def shown(case: Case, item: ScoredItem) -> str:
    """What the item rests on: its evidence, and the lines where that stands."""
    text = ""
    for evidence in item.evidence:
        text += evidence.text
        if evidence.location is not None:
            lines = case.files[evidence.location.path].splitlines()
            text += lines[evidence.location.line - 1]
    return text


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{number}-{case.id}" for number, case in enumerate(CASES)]
)
def test_status_of_the_item(case: Case, tmp_path: Path) -> None:
    item, verdicts = judged(tmp_path, case)
    assert item.status is case.status, item.current.en
    assert item.evidence or case.status is not ON
    assert item.current.en or case.status is OFF  # an alternative of what is on
    if case.shows:
        assert case.shows in shown(case, item)
    if case.writes:
        serving = [v for v in verdicts if any(i.id == case.item for i in v.check.items)]
        changes = [v.judgement.change.text for v in serving if v.judgement.change is not None]
        assert any(case.writes in text for text in changes)


@pytest.mark.parametrize("name", ITEMS)
def test_every_item_is_on_advised_and_inapplicable_in_two_front_ends(name: str) -> None:
    fronts: dict[str, set[str]] = {}
    for case in CASES:
        if case.item == name:
            fronts.setdefault(case.status.value, set()).add(case.front)
    wanted = {ON: 1 if name in ("torchao", "fp8-quantization") else 2, NA: 2}
    if name not in NEVER_ADVISED:
        wanted[ADVISED] = 2
    elif name != "sdpa":
        wanted[OFF] = 2
    else:
        wanted[PARTLY] = 2
    for status, count in wanted.items():
        assert len(fronts.get(status.value, ())) >= count, f"{name} {status.value}: {fronts}"
    assert name not in NEVER_ADVISED or ADVISED.value not in fronts


def test_every_item_has_cases_and_no_case_is_of_another() -> None:
    assert {case.item for case in CASES} == set(ITEMS)
    assert set(NEVER_ADVISED) <= set(ITEMS)


def test_no_case_stands_twice() -> None:
    twice = [name for name, count in Counter(case.id for case in CASES).items() if count > 2]
    assert twice == []
