"""What most items of an audit lack alike: said once, instead of in a row each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Optional

from flake8_gpu_training.checks.base import Status
from flake8_gpu_training.language import Text
from report_builder.scoring import ScoredAudit, ScoredCategory

_SILENT = (Status.UNKNOWN, Status.NOT_APPLICABLE)


@dataclass(frozen=True)
class Unread:
    """The reason for which most items of an audit are not judged, and their number."""

    status: Status
    reason: Text
    count: int

    def rest(self, category: ScoredCategory) -> ScoredCategory:
        """``category`` without them."""
        items = tuple(
            item
            for item in category.items
            if item.status is not self.status or item.current != self.reason
        )
        return replace(category, items=items)

    def names(self, category: ScoredCategory, lang: str) -> str:
        """Their titles in ``category``."""
        kept = self.rest(category).items
        comma = "、" if lang == "zh" else ", "
        return comma.join(item.title.say(lang) for item in category.items if item not in kept)


def unread_of(audit: ScoredAudit) -> Optional[Unread]:
    """The reason that more than half of the items share, or None."""
    items = [item for category in audit.categories for item in category.items]
    said = Counter((i.status, i.current) for i in items if i.status in _SILENT and i.current.en)
    for (status, reason), count in said.most_common(1):
        return Unread(status, reason, count) if 2 * count > len(items) else None
    return None
