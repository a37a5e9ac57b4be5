"""Decision trees: drawn as in the seed, marked where the run stands, in step with the audit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from flake8_gpu_training.facts import Location, Setting
from flake8_gpu_training.runs.model import Place, PlaceKind, Run, RunKind
from report_builder.audits import audit_of
from report_builder.cli import main
from report_builder.scenario_releases import flags_in_release
from report_builder.trees.base import Branch, draw
from report_builder.trees.registry import TREES

AT = Location("train.sh", 3)


def run_of(framework: str = "swift", **practices: Any) -> Run:
    return Run(
        "train.sh:3",
        RunKind.TRAIN,
        framework,
        AT,
        Place(PlaceKind.FLAGS, AT),
        profile={name: Setting(name, value, AT) for name, value in practices.items()},
    )


def engines(name: str) -> Iterator[Run]:
    """Runs of an engine: a server, an offline batch and one that lends its memory."""
    lends = {"sglang": "enable_memory_saver", "vllm": "enable_sleep_mode"}.get(name, "none")
    saver = {lends: Setting(lends, True, AT)}
    for kind, settings in ((RunKind.SERVE, {}), (RunKind.INFER, {}), (RunKind.INFER, saver)):
        yield replace(run_of(name), kind=kind, settings=settings)


def branches(roots: tuple[Branch, ...]) -> Iterator[Branch]:
    for each in roots:
        yield each
        yield from branches(each.below)


def marked(audit: str, run: Run, *advised: str) -> list[str]:
    lines = draw(TREES[audit], run, "en", frozenset(advised)).split("\n")
    return [line.strip("│├└─ ◀") for line in lines if line.endswith("◀")]


@pytest.mark.parametrize("audit", sorted(TREES))
def test_trees_advise_items_of_their_audit_in_both_languages(audit: str) -> None:
    known = {item for c in audit_of(audit).categories for item, _ in c.items}
    for each in branches(TREES[audit]):
        assert each.advises <= known, each.text.en
        assert each.text.zh
        assert each.text.en
    assert draw(TREES[audit], None, "zh").count("◀") == 0


@pytest.mark.parametrize("audit", sorted(TREES))
def test_every_mark_can_be_given_and_none_comes_unasked(audit: str) -> None:
    every = frozenset().union(*(each.advises for each in branches(TREES[audit])))
    long = {"max_length": 200_000, "packing": True, "attention": "flash_attention_2"}
    long |= {"algorithm": "grpo", "rollout_engine": "none"}
    driven = {"megatron": True, "tensor_parallel": 2, "max_length": 4096}
    seen = marked(audit, run_of(tuning="full", **long), *every)
    seen += marked(audit, run_of(tuning="lora", **long), *every)
    seen += marked(audit, run_of(**driven), *every)
    seen += marked(audit, replace(run_of(**long), versions={"trl": "0.17.0"}), *every)
    for run in engines(audit):
        seen += marked(audit, run, *every)
    able = [e.text.en for e in branches(TREES[audit]) if e.advises or e.holds is not None]
    assert set(seen) == set(able)
    assert marked(audit, run_of(max_length=512)) == []


@pytest.mark.parametrize(
    ("practices", "advised", "line"),
    [
        ({"tuning": "full"}, "", "yes → LoRA (--tuner_type lora)"),
        (
            {"tuning": "lora", "attention": "sdpa"},
            "flash-attention-2",
            "no → --attn_impl flash_attn (Megatron: --attention_backend flash)",
        ),
        ({"tuning": "lora", "packing": True}, "", "yes → go on"),
        ({"tuning": "full"}, "zero3", "full → --deepspeed zero3 (zero2 where that fits)"),
        ({"tuning": "full"}, "zero2", "full → --deepspeed zero3 (zero2 where that fits)"),
        (
            {"tuning": "lora"},
            "zero2",
            "LoRA → --deepspeed zero2 (zero3 where the weights exceed a GPU)",
        ),
        (
            {"max_length": 200_000},
            "sequence-parallel",
            "--sequence_parallel_size N (Megatron: --context_parallel_size N)",
        ),
        ({"max_length": 200_000}, "", "with --rope_scaling yarn"),
        (
            {"megatron": True, "tensor_parallel": 4},
            "sequence-parallel",
            "megatron with tensor parallelism → --sequence_parallel true",
        ),
    ],
)
def test_the_branch_of_the_run_is_marked(
    practices: Mapping[str, Any], advised: str, line: str
) -> None:
    assert line in marked("swift", run_of(**practices), advised)


@pytest.mark.parametrize(
    ("tuning", "stage"),
    [("lora", "zero2"), ("lora", "zero3"), ("full", "zero2"), ("full", "zero3")],
)
@pytest.mark.parametrize("audit", ["llamafactory", "transformers"])
def test_every_stage_that_is_advised_is_marked(audit: str, tuning: str, stage: str) -> None:
    start = {"lora": "LoRA → ", "full": "full → "}[tuning]
    assert [x for x in marked(audit, run_of(tuning=tuning), stage) if x.startswith(start)]


@pytest.mark.parametrize(
    ("practices", "is_marked"),
    [
        ({"algorithm": "grpo", "rollout_engine": "none"}, True),
        ({"algorithm": "grpo", "rollout_engine": "vllm"}, False),
        ({"algorithm": "sft"}, False),
    ],
)
def test_an_engine_is_named_where_the_trainer_samples_itself(
    practices: Mapping[str, Any], is_marked: bool
) -> None:
    found = marked("transformers", run_of(**practices))
    assert any("use_vllm=True" in line for line in found) is is_marked


@pytest.mark.parametrize(("release", "shares"), [("0.17.0", False), ("0.18.0", True)])
def test_vllm_shares_the_gpus_from_the_release_that_can(release: str, shares: bool) -> None:
    run = run_of(algorithm="grpo", rollout_engine="none")
    found = marked("transformers", replace(run, versions={"trl": release}))
    (said,) = (line for line in found if "use_vllm=True" in line)
    assert ("vllm_mode" in said) is shares


@pytest.mark.parametrize(
    ("practices", "advised", "line"),
    [
        ({"tuning": "lora", "attention": "sdpa"}, "", "no → --attn_impl flash_attn"),
        ({"tuning": "full"}, "zero2", "LoRA → --deepspeed zero2"),
        ({"tuning": "lora"}, "zero3", "full → --deepspeed zero3"),
        ({"max_length": 200_000}, "", "--sequence_parallel_size N"),
        ({"tuning": "full"}, "gradient-checkpointing", "see that gradient_checkpointing"),
        (
            {"max_length": 200_000, "packing": True, "offload_param": "cpu"},
            "",
            "--deepspeed zero3_offload, packing",
        ),
    ],
)
def test_nothing_is_marked_that_the_audit_does_not_advise_to_this_run(
    practices: Mapping[str, Any], advised: str, line: str
) -> None:
    assert not any(one.startswith(line) for one in marked("swift", run_of(**practices), advised))


FILES = MappingProxyType(
    {
        "llamafactory": (
            "sft.yaml",
            "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\ndo_train: true\n"
            "finetuning_type: lora\ndataset: alpaca_en_demo\ntemplate: qwen\noutput_dir: out\n",
            "llamafactory-cli train sft.yaml",
            "no → flash_attn: fa2 ◀",
        ),
        "transformers": (
            "train.py",
            "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
            'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")\n'
            'args = TrainingArguments("out")\n'
            "Trainer(model, args, train_dataset=data).train()\n",
            "python train.py",
            "no mixed precision? → bf16=True (Volta and Turing: fp16=True) ◀",
        ),
    }
)


@pytest.mark.parametrize("audit", sorted(FILES))
def test_reports_print_the_tree_with_the_advice_of_their_audit(tmp_path: Path, audit: str) -> None:
    name, text, command, line = FILES[audit]
    project = tmp_path / "project"
    project.mkdir()
    (project / name).write_text(text)
    output = tmp_path / "out"
    launch = ["--launch-command", command, "--gpu", "A100-80G", "--lang", "en", "--quiet"]
    main([str(project), *launch, "--output-dir", str(output)])
    document = output / f"v0_{audit}-optimization-report.md"
    assert line in document.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("version", "flag"), [("3.7.3", "--train_type lora"), ("4.6.0", "--tuner_type lora")]
)
def test_flags_of_the_tree_are_those_of_the_release(version: str, flag: str) -> None:
    run = replace(run_of(), versions={"ms-swift": version})
    assert flags_in_release(run, "LoRA (--tuner_type lora)") == f"LoRA ({flag})"


@pytest.mark.parametrize("audit", ["llamafactory", "transformers"])
def test_a_run_of_adapters_is_not_led_into_the_branch_of_full_tuning(audit: str) -> None:
    advised = frozenset({"qlora", "qlora-4bit"})
    tree = draw(TREES[audit], run_of(tuning="lora"), "en", advised)
    told = [line.endswith("◀") for line in tree.splitlines() if "still? →" in line]
    assert told == [False, True]
