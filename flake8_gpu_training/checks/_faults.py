"""Mistakes in a run, and the judge that reports them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Callable, Optional

from flake8_gpu_training.checks._judging import told
from flake8_gpu_training.checks.base import (
    Change,
    Evidence,
    Finding,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Location
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run, RunKind


@dataclass(frozen=True)
class Fault:
    """One mistake: where, the instruction that mends it, and both for the reports.

    ``priority`` is the check's own unless given.
    """

    location: Location
    message: str
    current: Text
    action: Text
    change: Optional[Change] = None
    priority: Optional[Priority] = None

    @property
    def rank(self) -> int:
        """Gravest first."""
        return Priority.HIGH.rank if self.priority is None else self.priority.rank


Finder = Callable[[Run], Iterator[Fault]]


def judge_of(find: Finder, training: bool = False) -> Callable[[Run], Judgement]:
    """The judge that reports what ``find`` finds; ``training``: in training runs only."""

    def judge(run: Run) -> Judgement:
        if training and run.kind is not RunKind.TRAIN:
            return Judgement(Status.NOT_APPLICABLE)
        faults = list(find(run))
        if not faults:
            return Judgement(Status.NOT_APPLICABLE)
        first = min(faults, key=lambda fault: fault.rank)
        return Judgement(
            Status.RECOMMENDED,
            evidence=tuple(Evidence(f.current.en, f.location, f.current) for f in faults),
            findings=tuple(
                Finding(f.location, f.message, f.change, f.priority, told(f.current, f.action))
                for f in faults
            ),
            current=first.current,
            action=first.action,
            change=next((f.change for f in faults if f.change is not None), None),
            priority=first.priority,
        )

    return judge
