"""The documents say of a run's GPUs and model what is known, and no more."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import hand_made, runs_of

from flake8_gpu_training.models import model_of
from flake8_gpu_training.runs.model import Hardware
from report_builder.run_words import RunWords


@pytest.mark.parametrize(
    ("hardware", "en", "zh"),
    [
        (Hardware("A100-80G", 8, memory_gib=80), "A100-80G × 8, 80 GiB", "A100-80G × 8，80 GiB"),
        (Hardware(None, 4, architecture="Ampere"), "Ampere GPU × 4", "Ampere 架构 GPU × 4"),
        (Hardware(None, 4), "unknown GPU × 4", "GPU 型号未知 × 4"),
    ],
)
def test_gpus_are_named_by_their_generation_where_the_kind_is_open(
    hardware: Hardware, en: str, zh: str
) -> None:
    run = hand_made(hardware=hardware)
    assert RunWords("en").hardware_of(run).startswith(en)
    assert RunWords("zh").hardware_of(run).startswith(zh)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("Qwen/Qwen3-30B-A3B", "30.5B, 3.4B active"),
        ("Qwen/Qwen2.5-7B", "7.6B"),
        ("Wan-AI/Wan2.2-T2V-A14B", "27.0B, 14.0B active"),
    ],
)
def test_a_mixtures_active_parameters_are_told(name: str, size: str) -> None:
    assert RunWords("en").model_size(hand_made(model=model_of(name))) == size


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("vllm serve Qwen/Qwen3-8B", "`vllm serve`"),
        (
            "python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-8B",
            "`python -m vllm.entrypoints.openai.api_server`",
        ),
    ],
)
def test_the_mode_names_the_program(command: str, shown: str, tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, {"serve.sh": f"{command}\n"})
    assert RunWords("en").mode_of(run) == shown
