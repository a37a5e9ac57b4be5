"""Samplers of hand-written loops over several ranks."""

from __future__ import annotations

import pytest
from checks_support import findings, runs_alone

from flake8_gpu_training.checks.distributed_data import CHECKS

LOOP = CHECKS[0].examples[0].bad


def told(text: str) -> list[int]:
    return [finding.location.line for finding in findings(runs_alone(text), "GPU540")]


def test_a_sampler_that_is_told_no_epoch_is_reported_where_it_is_made() -> None:
    assert told(LOOP) == [8]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("for batch in loader", "train_sampler.set_epoch(epoch)\n    for batch in loader"),
        ("(dataset)\n", "(dataset, shuffle=False)\n"),
        ("(dataset)\n", "(dataset, **options)\n"),
        ("(dataset)\n", "(val_dataset)\n"),
        ("train_sampler", "eval_sampler"),
        ("for epoch in range(10)", "for epoch in range(1)"),
        ("for epoch in range(10)", "while True"),
        ("import torch\n", "import torch\nimport pytorch_lightning\n"),
        ("        loss.backward()\n        optimizer.step()\n", ""),
    ],
)
def test_what_shuffles_anew_or_need_not_is_left_alone(old: str, new: str) -> None:
    assert old in LOOP
    assert told(LOOP.replace(old, new)) == []


def test_a_trainer_sets_the_epoch_itself() -> None:
    trainer = "from transformers import Trainer, TrainingArguments\nargs = TrainingArguments('x')\n"
    assert told(trainer + LOOP) == []
