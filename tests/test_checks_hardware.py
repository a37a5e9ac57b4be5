"""What is advised suits the GPU, also where only its generation is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from checks_support import hand_made, judged, status
from test_checks_parallelism import FULL

from flake8_gpu_training.checks import _scale
from flake8_gpu_training.checks.base import Status
from flake8_gpu_training.runs.model import Hardware, Model

VOLTA = Hardware(architecture="Volta")
ASCEND = Hardware("Ascend910B", architecture="Ascend", memory_gib=64)
LLM = Model("Qwen/Qwen2.5-7B-Instruct", "LLM", 7_615_616_512, is_hf_family=True)


@pytest.mark.parametrize(
    ("hardware", "bf16", "fp8", "flash", "cuda"),
    [
        (Hardware(), None, None, True, True),
        (Hardware("T4"), False, False, False, True),
        (Hardware(architecture="Pascal"), False, False, False, True),
        (VOLTA, False, False, False, True),
        (Hardware(architecture="Ampere"), True, False, True, True),
        (Hardware(architecture="Ada"), True, True, True, True),
        (Hardware("H100-SXM"), True, True, True, True),
        (Hardware(architecture="Blackwell"), True, True, True, True),
        (ASCEND, True, False, False, False),
        (Hardware(architecture="Ascend"), True, False, False, False),
        (Hardware("MI300X"), True, False, False, False),
        (Hardware(architecture="CDNA 4"), None, None, True, False),
    ],
)
def test_features_of_a_gpu_and_of_a_generation(
    hardware: Hardware, bf16: object, fp8: object, flash: bool, cuda: bool
) -> None:
    run = replace(hand_made(), hardware=hardware)
    found = (_scale.has_bf16(run), _scale.has_fp8(run), _scale.has_flash_kernel(run))
    assert found == (bf16, fp8, flash)
    assert _scale.is_cuda(run) is cuda


@pytest.mark.parametrize("code", ["GPU301", "GPU302", "GPU305", "GPU306"])
def test_kernels_of_cuda_are_not_advised_for_an_npu(code: str) -> None:
    practices = {"attention": "eager", "torch_compile": False, "optimizer": "adamw_torch"}
    run = hand_made(practices={**practices, "liger_kernel": False}, model=LLM, hardware=ASCEND)
    assert status(run, code) is Status.NOT_APPLICABLE


def test_what_torch_itself_does_is_advised_for_amd() -> None:
    run = hand_made(practices={"optimizer": "adamw_torch"}, hardware=Hardware("MI300X"))
    assert status(run, "GPU306") is Status.RECOMMENDED


def test_flash_attention_is_not_advised_on_an_older_generation() -> None:
    run = hand_made(practices={"attention": "sdpa"}, model=LLM, hardware=VOLTA)
    assert judged(run, "GPU301").variant == "sdpa"
    assert status(run, "GPU301") is Status.ENABLED


def test_the_older_generations_train_in_fp16() -> None:
    run = hand_made(practices={**FULL, "precision": "fp32"}, model=LLM, hardware=VOLTA)
    assert judged(run, "GPU201").variant == "fp16"
