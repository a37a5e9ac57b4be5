"""Rules of frameworks/refusals/transformers.py: what is refused, and what is not."""

from __future__ import annotations

import pytest
from checks_support import findings, runs_alone

TRAINER = """\
from transformers import TrainingArguments, Trainer

args = TrainingArguments(output_dir="out", {})
Trainer(model=model, args=args).train()
"""


def messages(arguments: str, **versions: str) -> list[str]:
    return [
        f.message for f in findings(runs_alone(TRAINER.format(arguments), **versions), "GPU024")
    ]


@pytest.mark.parametrize(
    ("refused", "taken", "instruction"),
    [
        (
            "logging_steps=0",
            "logging_steps=0, logging_strategy='no'",
            "give logging_steps more than 0",
        ),
    ],
)
def test_a_rule(refused: str, taken: str, instruction: str) -> None:
    (message,) = messages(refused, transformers="4.57.6")
    assert message.startswith(instruction)
    assert messages(taken, transformers="4.57.6") == []


@pytest.mark.parametrize("unsure", ["logging_steps=n", "logging_steps=0, **more"])
def test_what_is_not_known_is_not_told(unsure: str) -> None:
    assert messages(unsure, transformers="4.57.6") == []
