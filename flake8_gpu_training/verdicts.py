"""Verdicts: every check's answer for a run, and the diagnostics that follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Optional

from flake8_gpu_training.checks._llamafactory_v1 import of_route
from flake8_gpu_training.checks._swift import of_release
from flake8_gpu_training.checks.base import Change, Check, Judgement, Priority, Status
from flake8_gpu_training.facts import Location
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.runs.readings import readings_of

_CUT = Text(
    "命令被截断，该项取决于被截掉的参数",
    "the command is cut short, and the flags that it loses decide it",
)


@dataclass(frozen=True)
class Verdict:
    """A check's answer for a run."""

    run: Run
    check: Check
    judgement: Judgement

    @property
    def priority(self) -> Priority:
        """The judgement's own priority, else the check's."""
        return self.judgement.priority or self.check.priority


@dataclass(frozen=True)
class Diagnostic:
    """One line of a linter's output."""

    code: str
    location: Location
    message: str
    priority: Priority
    run: str = ""
    change: Optional[Change] = None
    told: Text = Text("", "")
    """What to do, for the reports."""


def judge(run: Run, checks: Iterable[Check]) -> tuple[Verdict, ...]:
    """The verdict of every check on ``run``."""
    readings = readings_of(run)
    verdicts = tuple(Verdict(run, check, _read(check, run, readings)) for check in checks)
    refused = frozenset(_refused(run, verdicts))
    return tuple(_without(verdict, refused) for verdict in verdicts) if refused else verdicts


def _refused(run: Run, verdicts: Iterable[Verdict]) -> Iterator[Location]:
    """Where values stand at which the run stops: nothing else is worth saying of them."""
    command, constructor = run.command, run.place.call
    whole = {run.location, run.place.location}
    whole |= {command.location} if command is not None else set()
    whole |= {constructor.location} if constructor is not None else set()
    for verdict in verdicts:
        if verdict.check.code.startswith("GPU0"):
            for finding in verdict.judgement.findings:
                is_grave = (finding.priority or verdict.priority) is Priority.HIGH
                if is_grave and finding.location not in whole:
                    yield finding.location


def _without(verdict: Verdict, refused: frozenset[Location]) -> Verdict:
    """``verdict`` without findings where a value is refused; what to write stays for reports."""
    judgement = verdict.judgement
    if verdict.check.code.startswith("GPU0") or not judgement.findings:
        return verdict
    kept = tuple(one for one in judgement.findings if one.location not in refused)
    return replace(verdict, judgement=replace(judgement, findings=kept))


def _read(check: Check, run: Run, readings: tuple[Run, ...]) -> Judgement:
    is_of_mistakes = check.code.startswith("GPU0")
    return _answer(check, run) if is_of_mistakes or not readings else _alike(check, readings)


def _alike(check: Check, readings: Iterable[Run]) -> Judgement:
    """The answer on which the readings of a command that is cut short agree."""
    stands, *others = (_answer(check, reading) for reading in readings)
    agree = all(_said(stands) == _said(whole) for whole in others)
    return stands if agree else Judgement(Status.UNKNOWN, current=_CUT)


def _said(judgement: Judgement) -> tuple[Status, str, float, str]:
    return judgement.status, judgement.variant, judgement.share, judgement.better


def _answer(check: Check, run: Run) -> Judgement:
    try:
        return of_release(check, run, of_route(check.code, run, check.judge))
    except Exception as error:  # a check's own fault must not cost the other checks
        name = type(error).__name__
        reason = Text(f"检查自身出错（{name}）", f"the check itself failed ({name})")
        return Judgement(Status.UNKNOWN, current=reason)


def diagnostics(
    verdicts: Iterable[Verdict], minimum: Priority = Priority.MEDIUM
) -> tuple[Diagnostic, ...]:
    """Findings of at least ``minimum`` priority, each place and code once, in file order."""
    found: dict[tuple[Location, str], Diagnostic] = {}
    for verdict in verdicts:
        for finding in verdict.judgement.findings:
            priority = finding.priority or verdict.priority
            key = (finding.location, verdict.check.code)
            if key not in found and priority.rank <= minimum.rank:
                found[key] = Diagnostic(
                    verdict.check.code,
                    finding.location,
                    finding.message,
                    priority,
                    verdict.run.id,
                    finding.change,
                    finding.told if finding.told.zh else verdict.judgement.action,
                )
    return tuple(sorted(found.values(), key=lambda d: (d.location, d.code)))
