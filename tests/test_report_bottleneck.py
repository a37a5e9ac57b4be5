"""The likely bottleneck is inferred from signs that are in the files, and from no others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from flake8_gpu_training.checks.base import Finding, Judgement, Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.facts import Import, Location, PythonFile, Setting
from flake8_gpu_training.models import model_of
from flake8_gpu_training.runs.model import Hardware, Model, Place, PlaceKind, Run, RunKind
from flake8_gpu_training.verdicts import Verdict, judge
from report_builder.bottleneck import NAMES, bottleneck

AT = Location("train.sh", 3)


def run_of(kind: str = "LLM", **practices: Any) -> Run:
    values = {"dataloader_workers": 0, "micro_batch_size": 2, "max_length": 2048, **practices}
    return Run(
        "train.sh:3",
        RunKind.TRAIN,
        "swift",
        AT,
        Place(PlaceKind.FLAGS, AT),
        model=replace(model_of("Qwen/Qwen2.5-7B-Instruct"), kind=kind),
        profile={name: Setting(name, value, AT) for name, value in values.items()},
    )


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        (run_of(), "unconfirmed"),
        (
            replace(run_of(), settings={"lazy_tokenize": Setting("lazy_tokenize", True, AT)}),
            "io-bound",
        ),
        (run_of("MLLM"), "io-bound"),
        (run_of("video"), "io-bound"),
        (run_of("MLLM", zero_stage=3, offload_param="cpu"), "offload-bound"),
        (run_of(zero_stage=2, offload_optimizer="cpu"), "offload-bound"),
        (run_of(offload_optimizer="none", offload_param="none"), "unconfirmed"),
        (run_of(fsdp="full_shard", fsdp_offload=True), "offload-bound"),
    ],
)
def test_no_workers_point_at_the_data_only_where_samples_take_work(run: Run, kind: str) -> None:
    found = bottleneck(run, judge(run, all_checks()), None)
    assert found.kind == kind
    assert found.kind in NAMES


def test_what_is_offloaded_is_named_with_its_place() -> None:
    run = run_of(zero_stage=3, offload_optimizer="cpu", offload_param="nvme")
    evidence = bottleneck(run, (), None).evidence
    assert "optimizer states and parameters" in evidence.en
    assert "train.sh:3" in evidence.en
    assert "优化器状态、参数" in evidence.zh


def test_less_severe_signs_are_told_beside_the_first() -> None:
    run = run_of("MLLM", zero_stage=3, offload_param="cpu", micro_batch_size=1, max_length=128)
    found = bottleneck(run, judge(run, all_checks()), None)
    assert (found.kind, [sign.kind for sign in found.also]) == (
        "offload-bound",
        ["io-bound", "launch-bound"],
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Qwen/Qwen2.5-0.5B-Instruct", "launch-bound"),
        ("meta-llama/Llama-3.1-8B", "unconfirmed"),
        ("someone/finetuned", "unconfirmed"),
    ],
)
def test_few_tokens_leave_launches_in_charge_of_a_small_model_alone(name: str, kind: str) -> None:
    run = run_of(micro_batch_size=1, max_length=1024)
    assert bottleneck(replace(run, model=model_of(name)), (), None).kind == kind


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (Model("big", "video", 14_000_000_000), "unconfirmed"),
        (Model("small", "video", 200_000_000), "latency-bound"),
        (Model("unknown", "video"), "latency-bound"),
        (Model("text", "LLM", 14_000_000_000), "latency-bound"),
    ],
)
def test_long_steps_over_videos_do_not_wait_for_the_cpu(model: Model, kind: str) -> None:
    run = replace(run_of(dataloader_workers=4), model=model)
    check = next(check for check in all_checks() if check.code == "GPU350")
    waits = Judgement(Status.RECOMMENDED, findings=(Finding(AT, "loss.item() waits"),))
    assert bottleneck(run, [Verdict(run, check, waits)], None).kind == kind


def test_a_script_that_decodes_images_has_samples_that_take_work() -> None:
    picture = Import("torchvision", "transforms", "transforms", AT)
    run = replace(run_of("unknown"), python=(PythonFile("train.py", imports=(picture,)),))
    assert bottleneck(run, judge(run, all_checks()), None).kind == "io-bound"


def on_gpus(gpu: str, count: int, *, weak: bool = False, **practices: Any) -> Run:
    hardware = Hardware(gpu, gpus_per_node=count, weak=weak)
    return replace(run_of(**practices), hardware=hardware)


SHORT = {"micro_batch_size": 1, "max_length": 1536}
ZERO3 = {"zero_stage": 3, "tuning": "full", **SHORT}


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (on_gpus("RTX4090", 8, **ZERO3), "ZeRO-3 moves about 40 GB per GPU and micro-batch"),
        (on_gpus("L40S", 8, tuning="lora", fsdp="full_shard", **SHORT), "FSDP moves about 27 GB"),
        (on_gpus("RTX4090", 4, tensor_parallel=4), "tensor parallelism over 4 GPUs"),
        (on_gpus("A6000", 4, **ZERO3), "bridges join only pairs of A6000"),
    ],
)
def test_gpus_without_nvlink_are_held_back_by_what_they_exchange(run: Run, words: str) -> None:
    found = bottleneck(run, (), None)
    assert found.kind == "communication-bound"
    assert words in found.evidence.en
    assert "GB/s" in found.evidence.zh


@pytest.mark.parametrize(
    "run",
    [
        on_gpus("H100-SXM", 8, **ZERO3),
        on_gpus("A100-80G", 8, **ZERO3),  # the form is not told
        on_gpus("A6000", 2, **ZERO3),  # a bridge may join the two
        on_gpus("RTX4090", 1, **ZERO3),
        on_gpus("RTX4090", 8, zero_stage=2, tuning="full"),
        on_gpus("RTX4090", 8, weak=True, **ZERO3),
        # Many tokens a micro-batch: the exchange hides behind the computing.
        on_gpus("RTX4090", 8, **{**ZERO3, "micro_batch_size": 16}),
    ],
)
def test_links_are_not_blamed_where_they_carry_enough_or_are_not_known(run: Run) -> None:
    assert bottleneck(run, (), None).kind != "communication-bound"


def test_serving_names_the_bandwidth_and_what_it_allows() -> None:
    run = replace(on_gpus("A100-80G-SXM", 1), kind=RunKind.SERVE)
    evidence = bottleneck(run, (), None).evidence
    assert "2,039 GB/s on A100-80G-SXM: at most about 134 tokens a second" in evidence.en
    unknown = replace(run, hardware=Hardware())
    assert bottleneck(unknown, (), None).evidence.en.endswith("which memory bandwidth limits")
