"""What the configurations, trainers and scripts of TRL refuse."""

from __future__ import annotations

from flake8_gpu_training.frameworks.refusals.base import Refusal
from flake8_gpu_training.frameworks.refusals.trl import (
    distilled,
    models,
    preferences,
    sampled,
    tuned,
)

REFUSALS: tuple[Refusal, ...] = (
    *sampled.REFUSALS,
    *tuned.REFUSALS,
    *preferences.REFUSALS,
    *models.REFUSALS,
    *distilled.REFUSALS,
)
