"""Recommendations: what the primary run's verdicts ask to change, ranked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Optional

from flake8_gpu_training.checks.base import (
    Change,
    Edit,
    Evidence,
    Example,
    Finding,
    Impact,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Location
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.verdicts import Verdict
from report_builder.wording import is_measured

_DEFAULT_CURRENT = {
    Status.RECOMMENDED: Text("未启用", "not on"),
    Status.PARTIAL: Text("部分启用", "partly on"),
}
_CLASS_RANGES = {Priority.HIGH: (30, 100), Priority.MEDIUM: (10, 30), Priority.LOW: (0, 10)}
_TO_MEND = Text("存在问题", "faulty")
_SHOWN_BY_EVIDENCE = Text("", "")
# How advice names a package that the training framework does not bring along.
_PACKAGES = (
    (r"flash_?attn|flash_attention_[234]|flash-attn|\bfa2\b", "flash-attn"),
    (r"liger", "liger-kernel"),
    (r"unsloth", "unsloth"),
    (r"deepspeed|\bzero[123]\b", "deepspeed"),
    (r"xformers", "xformers"),
    (r"vllm", "vllm"),
    (r"galore", "galore-torch"),
    (r"bitsandbytes|\bbnb\b|_8bit", "bitsandbytes"),
)
# Five words in a row without a sign of code between them are a sentence.
_PROSE = re.compile(r"[A-Za-z]+(?:[,;]? [a-z]+){4,}")


@dataclass(frozen=True)
class Recommendation:
    """One thing to change; ``rank`` from 1. ``findings`` are all places of the same code."""

    rank: int
    priority: Priority
    code: str
    title: Text
    current: Text
    action: Text
    impact: Impact
    difficulty: str
    example: Optional[Example]
    status: Status
    change: Optional[Change] = None
    edits: tuple[Edit, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    findings: tuple[Finding, ...] = ()
    needs_installation: bool = False

    @property
    def places(self) -> tuple[Location, ...]:
        """Where the change goes: at the findings, else at what shows that it is due."""
        if self.findings:
            return tuple(finding.location for finding in self.findings)
        return tuple(shown.location for shown in self.evidence if shown.location is not None)

    @property
    def is_mistake(self) -> bool:
        """Whether it mends something that fails, or has no effect as written."""
        return self.code.startswith("GPU0")

    @property
    def safety(self) -> str:
        """``P0`` large gain, easy and at no cost, ``P1`` clear gain, ``P2`` needs a test.

        A mistake is ``P0`` or ``P1`` only where it stops the run.
        """
        if self.priority is Priority.LOW or self.difficulty == "high":
            return "P2"
        if self.is_mistake and self.priority is not Priority.HIGH:
            return "P2"  # it stops no run for sure: whether it costs anything needs a test
        costs = min(self.impact.throughput or (0,)) < 0 or self.needs_installation
        free = self.priority is Priority.HIGH and self.difficulty == "low" and not costs
        return "P0" if free else "P1"


def recommend(
    verdicts: Iterable[Verdict], goal: str = "balanced", fits: Optional[bool] = None
) -> tuple[Recommendation, ...]:
    """What to change, ordered by priority, then mistakes first, then gain for ``goal``.

    ``fits``: whether the run's memory is known to suffice; then what only saves memory is
    worth little, unless memory is the goal.
    """
    found = [_recommendation(v) for v in verdicts if _asks_for_change(v.judgement)]
    if fits is True and goal != "memory":
        found = [_lowered(entry) for entry in found]
    found.sort(key=lambda r: (r.priority.rank, not r.is_mistake, -_gain(r.impact, goal), r.code))
    own = [entry for entry in found if not _is_made_by_another(entry, found)]
    return tuple(replace(entry, rank=rank) for rank, entry in enumerate(own, 1))


def _lowered(entry: Recommendation) -> Recommendation:
    """``entry``, of low priority when it pays throughput for memory."""
    throughput, memory = entry.impact.throughput, entry.impact.memory
    pays = throughput is not None and min(throughput) < 0 >= max(throughput)
    saves = memory is not None and max(memory) < 0
    spends = entry.status is Status.RECOMMENDED and pays and saves
    return replace(entry, priority=Priority.LOW) if spends else entry


def _needs_installation(run: Run, action: str, change: Optional[Change]) -> bool:
    """Whether what is advised takes a package that neither pins nor settings show."""
    text = f"{action}\n{change.text if change is not None else ''}".lower()
    present = {name.lower().replace("_", "-") for name in run.versions}
    if run.value("zero_stage", 0):
        present.add("deepspeed")
    if run.value("rollout_engine") == "vllm":
        present.add("vllm")
    return any(re.search(sign, text) and name not in present for sign, name in _PACKAGES)


def is_prose(text: str) -> bool:
    """Whether a change is a sentence, where code or configuration is due."""
    lines = [line for line in text.splitlines() if line.strip()]
    spoken = [line for line in lines if _PROSE.fullmatch(line.strip().rstrip("."))]
    return not lines or len(spoken) == len(lines)


def _is_made_by_another(entry: Recommendation, found: Iterable[Recommendation]) -> bool:
    """Whether another entry's change holds all of ``entry``'s, which has no place of its own."""
    if entry.findings or entry.change is None:
        return False
    lines = _lines(entry.change)
    return any(
        other is not entry and other.findings and other.change and lines <= _lines(other.change)
        for other in found
    )


def _lines(change: Change) -> frozenset[str]:
    return frozenset(line.strip(" \\,") for line in change.text.splitlines() if line.strip())


def _asks_for_change(judgement: Judgement) -> bool:
    """Whether it says what to write where; a remark that follows from another does not."""
    if judgement.findings:
        return True
    return judgement.to_gain and bool(judgement.change)


def _recommendation(verdict: Verdict) -> Recommendation:
    check, judgement = verdict.check, verdict.judgement
    change = judgement.change
    if change is None:
        change = next((f.change for f in judgement.findings if f.change is not None), None)
    if change is not None and is_prose(change.text):
        change = None
    default = _DEFAULT_CURRENT.get(judgement.status, _TO_MEND)
    if judgement.status is Status.RECOMMENDED and any(e.location for e in judgement.evidence):
        default = _SHOWN_BY_EVIDENCE
    # A text that is the same in both languages is a quotation: the evidence shows it.
    said = judgement.current.en and judgement.current.zh != judgement.current.en
    return Recommendation(
        0,
        verdict.priority,
        check.code,
        check.title,
        judgement.current if said else default,
        judgement.action if judgement.action.en else check.title,
        _impact(verdict),
        check.difficulty,
        _example(verdict),
        judgement.status,
        change,
        _edits(judgement),
        _unsaid(judgement),
        judgement.findings,
        _needs_installation(verdict.run, judgement.action.en, change),
    )


def _impact(verdict: Verdict) -> Impact:
    """The judgement's own impact, else the check's.

    Figures that only stand for a priority follow the priority of the verdict.
    """
    if verdict.judgement.impact is not None:
        return verdict.judgement.impact
    impact = verdict.check.impact
    if is_measured(impact) or verdict.priority is verdict.check.priority:
        return impact
    return replace(impact, throughput=_CLASS_RANGES[verdict.priority])


def _unsaid(judgement: Judgement) -> tuple[Evidence, ...]:
    """Evidence that does not repeat a finding."""
    said = {finding.message for finding in judgement.findings}
    return tuple(entry for entry in judgement.evidence if entry.text not in said)


def _example(verdict: Verdict) -> Optional[Example]:
    """The check's example for the run's framework, else its first."""
    examples = () if verdict.check.has_rules else verdict.check.examples
    own = (e for e in examples if e.framework == verdict.run.framework)
    return next(own, examples[0] if examples else None)


def _edits(judgement: Judgement) -> tuple[Edit, ...]:
    """Edits of the change and of every finding, each once."""
    changes = [judgement.change, *(finding.change for finding in judgement.findings)]
    edits: dict[Edit, None] = {}
    for change in changes:
        if change is not None:
            edits.update(dict.fromkeys(change.edits))
    return tuple(edits)


def gains_otherwise(entry: Recommendation) -> bool:
    """Whether the gain that an entry names lies outside the range of its priority."""
    faster = entry.impact.throughput or (0, 0)
    leaner = tuple(-percent for percent in entry.impact.memory or (0, 0))
    if not any(faster) and not any(leaner):
        return False
    gain = max(faster, leaner, key=max)
    low, high = _RANGES[entry.priority]
    return max(gain) < low or min(gain) > high


_RANGES = {Priority.HIGH: (30, 1000), Priority.MEDIUM: (10, 30), Priority.LOW: (-100, 10)}
"""Percent: what the headings of the priorities say."""


def _gain(impact: Impact, goal: str) -> int:
    """Largest expected gain in percent that counts for ``goal``."""
    throughput = max(impact.throughput or (0, 0))
    memory = -min(impact.memory or (0, 0))
    if goal == "memory":
        return memory
    if goal in ("throughput", "latency"):
        return throughput
    return max(throughput, memory)
