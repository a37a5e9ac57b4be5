"""Mistakes in a run, and the judge that reports them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Callable, Optional

from flake8_gpu_training.checks._judging import told
from flake8_gpu_training.checks.base import (
    Change,
    Evidence,
    Finding,
    Impact,
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

    ``priority`` and ``impact`` are the check's own unless given.
    """

    location: Location
    message: str
    current: Text
    action: Text
    change: Optional[Change] = None
    priority: Optional[Priority] = None
    impact: Optional[Impact] = None

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
            action=_joined(dict.fromkeys(f.action for f in (first, *faults))),
            change=next((f.change for f in faults if f.change is not None), None),
            priority=first.priority,
            impact=first.impact,
        )

    return judge


FAILS_IF_NEWEST = Impact(
    note=Text(
        "未固定版本：装到可选的最新版本时启动失败，请先确认实际安装的版本",
        "no release is pinned: with the newest that installs here the run fails at start, so "
        "check which one is installed",
    )
)
_TOLD = 4


def _joined(actions: Iterable[Text]) -> Text:
    """What mends the faults, in a sentence; an alternative that all have is said once."""
    told = list(actions)
    more = len(told) - _TOLD
    zh = _listed([text.zh for text in told[:_TOLD]], "，或", "；")
    en = _listed([text.en for text in told[:_TOLD]], ", or ", "; ")
    return Text(f"{zh}；等 {more} 项", f"{en}; and {more} more") if more > 0 else Text(zh, en)


def _listed(actions: Sequence[str], alternative: str, separator: str) -> str:
    split = [action.rpartition(alternative) for action in actions]
    heads, tails = [head for head, _, _ in split], {tail for _, _, tail in split}
    if len(actions) < 2 or len(tails) > 1 or not all(heads):
        return separator.join(actions)
    return separator.join([*heads, f"{alternative.lstrip('，, ')}{tails.pop()}"])
