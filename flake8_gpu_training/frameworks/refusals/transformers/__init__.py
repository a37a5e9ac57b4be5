"""What Transformers refuses: its arguments, its Trainer and its other configurations."""

from __future__ import annotations

from flake8_gpu_training.frameworks.refusals.base import Refusal
from flake8_gpu_training.frameworks.refusals.transformers import (
    arguments,
    generation,
    loading,
    quantization,
    sharded,
    tracking,
    trainer,
    training,
    values,
)

REFUSALS: tuple[Refusal, ...] = (
    *arguments.REFUSALS,
    *sharded.REFUSALS,
    *training.REFUSALS,
    *values.REFUSALS,
    *trainer.REFUSALS,
    *quantization.REFUSALS,
    *generation.REFUSALS,
    *loading.REFUSALS,
    *tracking.REFUSALS,
)
