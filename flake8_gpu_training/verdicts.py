"""Verdicts: every check's answer for a run, and the diagnostics that follow from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Optional

from flake8_gpu_training.checks._llamafactory_v1 import of_route
from flake8_gpu_training.checks.base import Change, Check, Judgement, Priority, Status
from flake8_gpu_training.facts import Location
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run


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
    return tuple(Verdict(run, check, _answer(check, run)) for check in checks)


def _answer(check: Check, run: Run) -> Judgement:
    try:
        return of_route(check.code, run, check.judge)
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
