"""What the tests of all audits ask: items by id, what an item rests on, points that add up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.verdicts import Verdict
from report_builder.audits import audit_of
from report_builder.audits.base import Audit
from report_builder.scoring import ScoredAudit, ScoredItem


def audit_named(identifier: str) -> Audit:
    """An audit that there is."""
    audit = audit_of(identifier)
    assert audit is not None
    return audit


def items_of(scored: ScoredAudit) -> dict[str, ScoredItem]:
    """The items of a scored audit by their ids."""
    return {item.id: item for category in scored.categories for item in category.items}


def scores_of(scored: ScoredAudit) -> dict[str, Any]:
    """The points of each category by its letter; None where it does not apply."""
    return {category.category.id: category.score for category in scored.categories}


def shown(files: Mapping[str, str], item: ScoredItem) -> str:
    """What an item rests on: its evidence, and the lines of ``files`` where that stands."""
    text = ""
    for evidence in item.evidence:
        text += evidence.text
        if evidence.location is not None:
            text += files[evidence.location.path].splitlines()[evidence.location.line - 1]
    return text


def changes_of(item: str, verdicts: Iterable[Verdict]) -> list[str]:
    """The changes that the checks of an item advise, as they are written."""
    serving = [v for v in verdicts if any(i.id == item for i in v.check.items)]
    return [v.judgement.change.text for v in serving if v.judgement.change is not None]


def adds_up(audit: Audit) -> bool:
    """Whether the best of each category is its maximum, and each of its items is served."""
    items = [i for c in all_checks() for i in c.items if i.audit == audit.id]
    for category in audit.categories:
        ours = [item for item in items if item.category == category.id]
        groups: dict[str, float] = {}
        for item in ours:
            key = item.group or item.id
            groups[key] = max(groups.get(key, 0), item.points)
        assert sum(groups.values()) == category.maximum, category.id
        assert {item.id for item in ours} == {name for name, _ in category.items}, category.id
    return True
