"""What an audit is: categories with their maxima, and the names and order of their items."""

from __future__ import annotations

from dataclasses import dataclass

from flake8_gpu_training.language import Text


@dataclass(frozen=True)
class Category:
    """A category of an audit, worth ``maximum`` points.

    ``optional``: it counts only for runs of its kind (multimodal, RLHF, generation) and is
    left out of the total otherwise. ``items``: names of its items by id, in report order;
    ``faults``: those of what only costs, shown when it is found.
    """

    id: str
    title: Text
    maximum: int
    items: tuple[tuple[str, Text], ...] = ()
    optional: bool = False
    faults: tuple[tuple[str, Text], ...] = ()


@dataclass(frozen=True)
class Audit:
    """An audit: ``id`` as in the JSON report, ``file`` the document it is written to."""

    id: str
    title: Text
    file: str
    categories: tuple[Category, ...]

    @property
    def maximum(self) -> int:
        """Points of all categories together."""
        return sum(category.maximum for category in self.categories)

    @property
    def heading(self) -> Text:
        """Its name in the main report: ``ms-swift 专项审计``."""
        return Text(self.title.zh.replace("训练优化审计", "专项审计"), self.title.en)


def items(*rows: tuple[str, str, str]) -> tuple[tuple[str, Text], ...]:
    """Items of a category: id, Chinese name, English name."""
    return tuple((identifier, Text(zh, en)) for identifier, zh, en in rows)
