"""Verdicts of all checks on one run: of a value at which the run stops only that is said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from checks_support import HERE, check_of, hand_made

from flake8_gpu_training.checks.base import Change, Check, Finding, Judgement, Priority, Status
from flake8_gpu_training.facts import Location
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.verdicts import diagnostics, judge

VALUE = Location("train.sh", 4, 9)


def finding(code: str, place: Location, priority: Priority = Priority.HIGH) -> Check:
    change = Change("shell", "--a 1")
    found = Judgement(Status.RECOMMENDED, findings=(Finding(place, "set it"),), change=change)
    answer: Callable[[Run], Judgement] = lambda run: found  # noqa: E731
    return replace(check_of(code), judge=answer, priority=priority)


@pytest.mark.parametrize(
    ("refused", "priority", "codes"),
    [
        (VALUE, Priority.HIGH, ["GPU024"]),
        (Location("train.sh", 5, 9), Priority.HIGH, ["GPU205", "GPU024"]),
        (VALUE, Priority.MEDIUM, ["GPU024", "GPU205"]),  # the run may go on
    ],
)
def test_a_refused_value_is_told_once(
    refused: Location, priority: Priority, codes: list[str]
) -> None:
    checks = [finding("GPU024", refused, priority), finding("GPU205", VALUE)]
    verdicts = judge(hand_made(), checks)
    assert [found.code for found in diagnostics(verdicts)] == codes
    assert verdicts[1].judgement.change is not None
    assert verdicts[1].judgement.status is Status.RECOMMENDED


def test_what_is_missing_is_told_beside_what_is_refused() -> None:
    checks = [finding("GPU024", HERE), finding("GPU205", HERE)]
    found = diagnostics(judge(hand_made(), checks))
    assert [one.code for one in found] == ["GPU024", "GPU205"]
