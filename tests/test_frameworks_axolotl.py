"""axolotl's runs: the file that its trainer is given tells the practices."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest

from flake8_gpu_training.facts import Unknown, known
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import Run

CONFIG = """\
base_model: org/model-7b
sequence_len: 2048
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 4
output_dir: ./out
bf16: true
flash_attention: true
deepspeed:
fsdp:
"""
LAUNCH = "torchrun --nproc_per_node 8 -m axolotl.cli.train tune.yaml"
Make = Callable[..., Run]


@pytest.fixture
def run_of(tmp_path: Path) -> Make:
    """The run of a configuration, and of the files beside it."""

    def make(config: str, launch: str = LAUNCH, **files: str) -> Run:
        for name, text in {"tune_yaml": config, **files}.items():
            (tmp_path / name.replace("_", ".", 1)).write_text(text, encoding="utf-8")
        return find_runs(Project.open(tmp_path), launch)[0]

    return make


def _value(run: Run, name: str) -> Any:
    value = run.practice(name).value
    return value if known(value) else "unknown"


def test_the_configuration_tells_the_practices(run_of: Make) -> None:
    run = run_of(CONFIG)
    expected = {
        "precision": "bf16",
        "attention": "flash_attention_2",
        "micro_batch_size": 2,
        "gradient_accumulation_steps": 4,
        "max_length": 2048,
        "packing": True,
        "zero_stage": 0,
        "fsdp": "none",
        "tuning": "full",
        "quantization_bits": None,
    }
    assert {name: _value(run, name) for name in expected} == expected
    assert run.launcher.world_size == 8


@pytest.mark.parametrize(
    ("old", "new", "name", "value"),
    [
        ("bf16: true", "bf16: auto", "precision", "unknown"),
        ("bf16: true", "fp16: true", "precision", "fp16"),
        ("bf16: true", "load_in_4bit: true", "precision", "unknown"),
        ("flash_attention: true", "sdp_attention: true", "attention", "sdpa"),
        ("flash_attention: true", "attn_implementation: eager", "attention", "eager"),
        ("flash_attention: true", "flash_attention: false", "attention", "unknown"),
        (
            "flash_attention: true",
            "flash_attention: true\neager_attention: true",
            "attention",
            "unknown",
        ),
        ("deepspeed:", "deepspeed: zero2.json", "zero_stage", 2),
        ("deepspeed:", "deepspeed: gone.json", "zero_stage", "unknown"),
        ("fsdp:", "fsdp: [full_shard, auto_wrap]", "fsdp", "full_shard"),
        ("fsdp:", "adapter: lora", "tuning", "lora"),
        ("fsdp:", "adapter: qlora\nload_in_4bit: true", "quantization_bits", 4),
        ("fsdp:", "unfrozen_parameters: [lm_head]", "tuning", "unknown"),
    ],
)
def test_each_key_tells_its_practice(
    run_of: Make, old: str, new: str, name: str, value: Any
) -> None:
    stage = '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}'
    assert _value(run_of(CONFIG.replace(old, new, 1), zero2_json=stage), name) == value


def test_what_is_taken_from_the_gpu_has_its_candidates(run_of: Make) -> None:
    value = run_of(CONFIG.replace("bf16: true", "bf16: auto")).practice("precision").value
    assert isinstance(value, Unknown)
    assert value.candidates == ("bf16", "fp16")


def test_a_bare_accelerate_launch_may_shard(run_of: Make) -> None:
    run = run_of(CONFIG, "accelerate launch -m axolotl.cli.train tune.yaml")
    assert (_value(run, "zero_stage"), _value(run, "fsdp")) == ("unknown", "unknown")
    assert _value(run, "tuning") == "full"


def test_a_configuration_that_is_missing_tells_nothing(run_of: Make) -> None:
    run = run_of(CONFIG, LAUNCH.replace("tune", "absent"))
    names = ("precision", "attention", "zero_stage", "tuning", "micro_batch_size")
    assert {_value(run, name) for name in names} == {"unknown"}
