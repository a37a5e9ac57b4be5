"""A run's GPUs: from schedulers, job descriptions, machine types and, weakly, comments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from checks_support import runs_of

from flake8_gpu_training.runs.model import Hardware

SWIFT = "swift sft --model m\n"


def hardware(root: Path, files: Mapping[str, str]) -> Hardware:
    (run,) = runs_of(root, files)
    return run.hardware


@pytest.mark.parametrize(
    ("constraint", "gpu", "architecture"),
    [
        ("a100|h100", None, None),
        ("a100|a30", None, "Ampere"),
        ("a100-80g", "A100-80G", "Ampere"),
        ("hopper", None, "Hopper"),
        ("bigmem", None, None),
    ],
)
def test_a_constraint_names_what_all_its_alternatives_are(
    tmp_path: Path, constraint: str, gpu: str, architecture: str
) -> None:
    text = f"#!/bin/bash\n#SBATCH --gres=gpu:4\n#SBATCH -C {constraint}\n{SWIFT}"
    found = hardware(tmp_path, {"job.slurm": text})
    assert (found.gpu, found.architecture, found.gpus_per_node) == (gpu, architecture, 4)


def test_a_machine_type_tells_kind_and_number(tmp_path: Path) -> None:
    text = "resources:\n  instance_type: p4de.24xlarge\nrun: |\n  accelerate launch train.py\n"
    script = "from transformers import Trainer, TrainingArguments\n"
    script += "Trainer(model=None, args=TrainingArguments('out')).train()\n"
    found = hardware(tmp_path, {"task.yaml": text, "train.py": script})
    assert (found.gpu, found.memory_gib, found.gpus_per_node) == ("A100-80G-SXM", 80, 8)
    assert not found.weak


def test_a_label_of_the_node_names_the_gpu(tmp_path: Path) -> None:
    text = (
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train}\nspec:\n  template:\n"
        "    spec:\n      nodeSelector:\n        nvidia.com/gpu.product: NVIDIA-L40S\n"
        "      containers:\n        - name: main\n          image: ours\n"
        "          command: [swift, sft, --model, m]\n"
        "          resources: {limits: {nvidia.com/gpu: 2}}\n"
    )
    found = hardware(tmp_path, {"job.yaml": text})
    assert (found.gpu, found.gpus_per_node, found.weak) == ("L40S", 2, False)


def test_a_comment_is_weak_and_counts_only_what_the_launch_leaves_open(tmp_path: Path) -> None:
    told = hardware(tmp_path, {"a.sh": f"# 8 * A100-80G\nNPROC_PER_NODE=4 {SWIFT}"})
    assert (told.gpu, told.gpus_per_node, told.weak) == ("A100-80G", 4, True)
    left = hardware(tmp_path, {"a.sh": f"# 8 * A100-80G\nNPROC_PER_NODE=$GPUS {SWIFT}"})
    assert (left.gpu, left.gpus_per_node, left.weak) == ("A100-80G", 8, True)


def test_words_of_a_comment_are_no_gpu(tmp_path: Path) -> None:
    text = f"# as in section A30, see runs/l40/log and Wan2.2-T2V-A14B\n{SWIFT}"
    assert hardware(tmp_path, {"a.sh": text}).gpu is None
