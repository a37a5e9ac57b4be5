"""Which codes are reported: ``--select`` and ``--ignore``, decided as flake8 decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Selection:
    """Prefixes of codes; when both match, the longer prefix wins, on a tie ``ignore``."""

    select: tuple[str, ...] = ("GPU",)
    ignore: tuple[str, ...] = ()

    def takes(self, code: str) -> bool:
        """Whether ``code`` is to be reported."""
        chosen, refused = _longest(code, self.select), _longest(code, self.ignore)
        return chosen > 0 and chosen > refused


def _longest(code: str, prefixes: Sequence[str]) -> int:
    return max((len(prefix) for prefix in prefixes if code.startswith(prefix)), default=0)


def codes(text: str) -> tuple[str, ...]:
    """Codes of a comma- or space-separated list, upper case."""
    return tuple(part.upper() for part in text.replace(",", " ").split())
