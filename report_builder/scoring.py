"""Scores: verdicts in, points out; nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Optional

from flake8_gpu_training.checks.base import Change, Evidence, Item, Judgement, Priority, Status
from flake8_gpu_training.facts import Location
from flake8_gpu_training.language import Text
from flake8_gpu_training.verdicts import Verdict
from report_builder.audits import Audit, Category
from report_builder.wording import place_text

# Of two checks that serve one item, the graver answer stands.
_GRAVITY = (
    Status.RECOMMENDED,
    Status.PARTIAL,
    Status.ENABLED,
    Status.DISABLED,
    Status.UNKNOWN,
    Status.NOT_APPLICABLE,
)
# What an item may be that its run cannot take.
_OPEN = (Status.DISABLED, Status.UNKNOWN)
_NOT_JUDGED = Text("此版本尚未检查该项", "not judged by this version")


@dataclass(frozen=True)
class ScoredItem:
    """One item with its status; ``points`` earned of ``max_points``, ``lost`` to be gained."""

    id: str
    title: Text
    code: str
    status: Status
    points: float
    max_points: float
    lost: float = 0.0
    group: str = ""
    evidence: tuple[Evidence, ...] = ()
    current: Text = Text("", "")
    action: Text = Text("", "")
    places: tuple[Location, ...] = ()
    """Where to write it, when it is to be gained."""
    change: Optional[Change] = None
    """What a fork of the framework would have, where it has no parameter for it."""


@dataclass(frozen=True)
class ScoredCategory:
    """A category's points; ``score`` is None where the category does not apply."""

    category: Category
    score: Optional[float]
    attainment: Optional[float]
    items: tuple[ScoredItem, ...]

    @property
    def maximum(self) -> Optional[int]:
        """The category's maximum, or None where it does not apply."""
        return None if self.score is None else self.category.maximum


@dataclass(frozen=True)
class ScoredAudit:
    """An audit's points over the categories that apply; ``lost`` are still to be gained."""

    audit: Audit
    score: float
    maximum: int
    attainment: Optional[float]
    earned: float
    lost: float
    categories: tuple[ScoredCategory, ...]

    @property
    def applies(self) -> bool:
        """Whether any item may be on in the run."""
        items = (item for category in self.categories for item in category.items)
        return any(item.status is not Status.NOT_APPLICABLE for item in items)

    @property
    def unknown(self) -> int:
        """Number of items that could not be told; they count for nothing."""
        items = (item for category in self.categories for item in category.items)
        return sum(item.status is Status.UNKNOWN for item in items)


def score(audit: Audit, verdicts: Iterable[Verdict]) -> ScoredAudit:
    """The audit's scores by the verdicts of one run."""
    judged = tuple(verdicts)
    refused = _refused(judged)
    served: dict[str, list[ScoredItem]] = {}
    for verdict in judged:
        for item in verdict.check.items:
            if item.audit == audit.id and (not item.fault or verdict.judgement.findings):
                scored = _unless_refused(_score_item(verdict, item), refused)
                served.setdefault(item.category, []).append(scored)
    categories = tuple(_score_category(c, served.get(c.id, [])) for c in audit.categories)
    applying = [c for c in categories if c.score is not None]
    points = [_points(c.items) for c in categories]
    earned, lost = sum(p[0] for p in points), sum(p[1] for p in points)
    return ScoredAudit(
        audit,
        _rounded(earned),
        sum(c.category.maximum for c in applying),
        _attainment(earned, lost),
        earned,
        lost,
        categories,
    )


def _refused(verdicts: Iterable[Verdict]) -> dict[Location, str]:
    """Where settings stand with which the run fails at start, or which have no effect.

    What stands at the command or constructor as a whole is about no setting alone.
    """
    return {
        finding.location: verdict.check.code
        for verdict in verdicts
        if verdict.check.code.startswith("GPU0")
        for finding in verdict.judgement.findings
        if (finding.priority or verdict.priority) is Priority.HIGH
        and finding.location not in (verdict.run.location, verdict.run.place.location)
    }


def _unless_refused(item: ScoredItem, refused: Mapping[Location, str]) -> ScoredItem:
    """``item``, which earns nothing where the setting that turns it on is refused."""
    if item.status not in (Status.ENABLED, Status.PARTIAL):
        return item
    for shown in item.evidence:
        place = shown.location
        code = refused.get(place) if place is not None else None
        if place is not None and code is not None:
            why = Text(
                f"`{shown.text}`（{place_text(place, 'zh')}）不会生效，见 {code}",
                f"`{shown.text}` ({place_text(place, 'en')}) takes no effect, see {code}",
            )
            return replace(
                item,
                status=Status.DISABLED,
                points=0.0,
                lost=0.0,
                evidence=(),
                current=why,
                action=Text("", ""),
                places=(),
            )
    return item


def _score_item(verdict: Verdict, item: Item) -> ScoredItem:
    judgement = verdict.judgement
    status = _status(item, judgement)
    excluded = judgement.excludes(item.variant) if status in _OPEN else None
    idle = judgement.idles(item.variant) if status is Status.UNKNOWN else None
    if excluded is not None:
        status = Status.NOT_APPLICABLE
    elif idle is not None:
        status = Status.DISABLED
    if item.fault:
        status = Status.RECOMMENDED
    share = {Status.ENABLED: 1.0, Status.PARTIAL: judgement.share}.get(status, 0.0)
    to_gain = status in (Status.PARTIAL, Status.RECOMMENDED) and not judgement.needs_code
    advised = to_gain and (not judgement.better or item.matches(judgement.better))
    told = status is judgement.status or status is Status.RECOMMENDED
    return ScoredItem(
        item.id,
        Text(item.id, item.id),
        verdict.check.code,
        status,
        item.points * share,
        item.points,
        item.points * (1 - share) if to_gain and not judgement.is_likely else 0.0,
        f"{item.category}/{item.group}" if item.group else "",
        judgement.evidence if status is judgement.status else (),
        excluded
        or idle
        or _own_words(item, judgement, status)
        or (judgement.current if told else _instead(item, judgement, status)),
        judgement.action if advised else Text("", ""),
        _places(judgement) if advised else (),
        judgement.change if _is_code(judgement, status) else None,
    )


def _is_code(judgement: Judgement, status: Status) -> bool:
    """Whether the change is one of the framework's code."""
    return status is judgement.status and (judgement.needs_code or status is Status.DISABLED)


def _own_words(item: Item, judgement: Judgement, status: Status) -> Optional[Text]:
    """What the judgement says of the item's variant where it is off."""
    return dict(judgement.told).get(item.variant) if status is Status.DISABLED else None


def _instead(item: Item, judgement: Judgement, status: Status) -> Text:
    """What the run has in place of an item without alternatives of its own (:func:`_beside`)."""
    shown = next(iter(judgement.evidence), None)
    if item.group or shown is None or status is not Status.DISABLED:
        return Text("", "")
    said = shown.said or Text(shown.text, shown.text)
    return Text(f"现为：{said.zh}", f"instead: {said.en}")


def _places(judgement: Judgement) -> tuple[Location, ...]:
    return tuple(dict.fromkeys(finding.location for finding in judgement.findings))


def _status(item: Item, judgement: Judgement) -> Status:
    """The status of ``item`` when its check judges a variant so."""
    everywhere = (Status.NOT_APPLICABLE, Status.UNKNOWN, Status.DISABLED)
    if item.matches(judgement.variant) or judgement.status in everywhere:
        return judgement.status
    if judgement.better and item.matches(judgement.better):
        return Status.RECOMMENDED
    return Status.DISABLED


def _score_category(category: Category, served: Sequence[ScoredItem]) -> ScoredCategory:
    items = _ordered(category, _merged(served))
    applying = any(item.status is not Status.NOT_APPLICABLE for item in items)
    if category.optional and not applying:
        return ScoredCategory(category, None, None, items)
    earned, lost = _points(items)
    return ScoredCategory(category, _rounded(earned), _attainment(earned, lost), items)


def _merged(items: Iterable[ScoredItem]) -> dict[str, ScoredItem]:
    found: dict[str, ScoredItem] = {}
    for item in items:
        other = found.get(item.id)
        if other is None or _grade(item) < _grade(other):
            found[item.id] = item
    return found


def _grade(item: ScoredItem) -> tuple[int, bool, bool]:
    """Of two answers, the graver one stands; of equals, one that says why, of the item itself
    rather than of the job."""
    says_nothing = not item.current.en and not item.evidence
    return _GRAVITY.index(item.status), says_nothing, item.current.en == _OF_THE_JOB


_OF_THE_JOB = "this job does not train"


def _ordered(category: Category, found: dict[str, ScoredItem]) -> tuple[ScoredItem, ...]:
    """Items in the audit's order; those without a check are not judged, those unlisted last."""
    listed = dict(category.items)
    faults = dict(category.faults)
    named = [
        replace(found[identifier], title=title)
        if identifier in found
        else ScoredItem(identifier, title, "", Status.UNKNOWN, 0.0, 0.0, current=_NOT_JUDGED)
        for identifier, title in listed.items()
    ]
    others = [item for key, item in found.items() if key not in listed]
    named += [replace(one, title=faults.get(one.id, one.title)) for one in others]
    return tuple(_beside(item, named) for item in named)


def _beside(item: ScoredItem, items: Sequence[ScoredItem]) -> ScoredItem:
    """``item``, with the alternative that is on, or advised, where that is why it is off."""
    if item.status is not Status.DISABLED or not item.group or item.evidence or item.current.en:
        return item
    group = [other for other in items if other.group == item.group]
    for status, zh, en in (
        (Status.ENABLED, "同类已启用：{}", "its alternative is on: {}"),
        (Status.PARTIAL, "同类已启用：{}", "its alternative is on: {}"),
        (Status.RECOMMENDED, "同类建议：{}", "its alternative is advised: {}"),
    ):
        for other in group:
            if other.status is status:
                title = other.title
                return replace(item, current=Text(zh.format(title.zh), en.format(title.en)))
    return item


def _points(items: Sequence[ScoredItem]) -> tuple[float, float]:
    """Points earned and points to be gained; alternatives count once, for the best."""
    earned = sum(item.points for item in items if not item.group)
    lost = sum(item.lost for item in items if not item.group)
    grouped = sorted((item for item in items if item.group), key=lambda item: item.group)
    for _, members in groupby(grouped, key=lambda item: item.group):
        alternatives = list(members)
        best = max(item.points for item in alternatives)
        reachable = max((item.points + item.lost for item in alternatives if item.lost), default=0)
        earned += best
        lost += max(0.0, reachable - best)
    return earned, lost


def _attainment(earned: float, lost: float) -> Optional[float]:
    """Earned share of what this run could earn; None when there is nothing to earn."""
    return _rounded(earned / (earned + lost)) if earned + lost > 0 else None


def _rounded(number: float) -> float:
    return round(number + 0.0, 2)
