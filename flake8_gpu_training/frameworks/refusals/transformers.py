"""What Transformers' TrainingArguments refuse (transformers/training_args.py, __post_init__)."""

from __future__ import annotations

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.language import Text

_SOURCE = "transformers/training_args.py, TrainingArguments.__post_init__"


def _logs_at_no_step(options: Options) -> bool:
    return bool(options["logging_strategy"] == "steps" and options["logging_steps"] == 0)


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "logging-at-no-step",
        _SOURCE,
        ("logging_steps", "logging_strategy"),
        _logs_at_no_step,
        Text(
            "logging_steps 设为大于 0，或 logging_strategy 设为 no",
            "give logging_steps more than 0, or write logging_strategy=no",
        ),
        Text(
            "logging_strategy=steps 要求 logging_steps 不为 0",
            "logging_strategy=steps needs logging_steps other than 0",
        ),
        write=lambda options: {"logging_steps": 10},
    ),
)
