"""What LLaMA-Factory refuses at start: its arguments' classes, parser and first steps."""

from __future__ import annotations

from flake8_gpu_training.frameworks.refusals.base import Refusal
from flake8_gpu_training.frameworks.refusals.llamafactory import (
    choices,
    data,
    model,
    quantization,
    serving,
    starting,
    training,
    tuning,
)

REFUSALS: tuple[Refusal, ...] = (
    *model.REFUSALS,
    *choices.REFUSALS,
    *data.REFUSALS,
    *tuning.REFUSALS,
    *training.REFUSALS,
    *starting.REFUSALS,
    *quantization.REFUSALS,
    *serving.REFUSALS,
)
