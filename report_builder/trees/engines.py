"""What the decision trees of the inference engines ask of a run."""

from __future__ import annotations

from typing import Optional

from flake8_gpu_training.frameworks.engine_of import engine_of
from flake8_gpu_training.frameworks.engines import Mode
from flake8_gpu_training.runs.model import Run


def _mode(run: Run) -> Optional[Mode]:
    engine = engine_of(run)
    return engine.mode if engine is not None else None


def samples(run: Run) -> bool:
    """Whether the engine generates the completions of a training run."""
    mode = _mode(run)
    return mode is not None and mode.samples


def serves(run: Run) -> bool:
    """Whether the engine answers requests."""
    return _mode(run) in (Mode.SERVE, Mode.ROUTER)


def is_offline(run: Run) -> bool:
    """Whether the engine works on batches that are at hand."""
    return _mode(run) in (Mode.OFFLINE, Mode.INTEGRATED)
