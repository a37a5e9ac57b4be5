"""One practice that frameworks ask for in ways of their own."""

from __future__ import annotations

from flake8_gpu_training.checks._judging import Judge
from flake8_gpu_training.checks.base import Judgement
from flake8_gpu_training.runs.model import Run


def by_framework(judge: Judge, **own: Judge) -> Judge:
    """``judge``, and for the frameworks that are named a judge of their own."""

    def judged(run: Run) -> Judgement:
        return own.get(run.framework, judge)(run)

    return judged
