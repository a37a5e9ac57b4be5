"""GPU9xx: inference."""

from __future__ import annotations

from flake8_gpu_training.checks.base import Check

CHECKS: tuple[Check, ...] = ()
