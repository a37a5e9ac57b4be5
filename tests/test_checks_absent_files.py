"""GPU027: configuration files that are named and not there."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, runs_of

from flake8_gpu_training.checks.base import Finding

SCRIPT = """\
from transformers import HfArgumentParser, Trainer, TrainingArguments

args = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()[0]
Trainer(model=model, args=args, train_dataset=data).train()
"""
ZERO = '{"zero_optimization": {"stage": 2}}\n'


def told(root: Path, script: str, name: str = "run.sh") -> list[Finding]:
    """What is said of a script beside these files."""
    files = {
        "train.py": SCRIPT,
        "configs/ds_zero2.json": ZERO,
        "configs/acc_fsdp.yaml": "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n",
        name: script,
    }
    return findings(runs_of(root, files), "GPU027")


RUN = "torchrun --nproc_per_node 4 train.py --output_dir out --deepspeed {}\n"


def test_a_name_like_one_that_exists_is_corrected(tmp_path: Path) -> None:
    (one,) = told(tmp_path, RUN.format("configs/ds_zero_2.json"))
    assert one.message.startswith("write configs/ds_zero2.json: configs has no such file")
    assert one.change is not None
    (edit,) = one.change.edits
    assert (edit.old, edit.new) == ("configs/ds_zero_2.json", "configs/ds_zero2.json")


def test_a_file_of_the_launcher_is_asked_for(tmp_path: Path) -> None:
    (one,) = told(tmp_path, "accelerate launch --config_file configs/other.yaml train.py\n")
    assert one.message.startswith("add configs/other.yaml, or name another file")


def test_a_script_in_a_folder_finds_the_projects_files(tmp_path: Path) -> None:
    script = RUN.format("configs/ds_zero2.json").replace("train.py", "../train.py")
    assert told(tmp_path / "a", script, "scripts/run.sh") == []
    missing = RUN.format("configs/ds_zero9.json").replace("train.py", "../train.py")
    assert len(told(tmp_path / "b", missing, "scripts/run.sh")) == 1


@pytest.mark.parametrize(
    "script",
    [
        RUN.format("configs/ds_zero2.json"),
        RUN.format("elsewhere/ds_zero_2.json"),
        RUN.format("/data/configs/ds_zero_2.json"),
        RUN.format("$DIR/ds_zero_2.json"),
        RUN.format("ds_zero_2.json"),
        RUN.format("zero2"),
        "cp template.json configs/ds_zero_2.json\n" + RUN.format("configs/ds_zero_2.json"),
        "python make.py > configs/ds_zero_2.json\n" + RUN.format("configs/ds_zero_2.json"),
        "accelerate launch --config_file configs/acc_fsdp.yaml train.py\n",
    ],
)
def test_files_that_are_there_or_may_be(script: str, tmp_path: Path) -> None:
    assert told(tmp_path, script) == []
