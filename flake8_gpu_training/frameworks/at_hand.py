"""Which release of a distribution a project gets: the pinned one, else the newest it allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion

from flake8_gpu_training.frameworks.reading import NEWEST, parsed
from flake8_gpu_training.frameworks.tables import Table, table_of
from flake8_gpu_training.runs.model import Run


@dataclass(frozen=True)
class AtHand:
    """``version``: the pinned one, or a release of the table. ``allowed``: indices of the
    releases that an installation may choose, the newest last; one when it is pinned."""

    table: Table
    version: str
    allowed: tuple[int, ...]
    pinned: bool = False


def at_hand(run: Run, distribution: str, wanted: str = "") -> Optional[AtHand]:
    """The release that ``run`` gets; None where no table tells what it takes.

    ``wanted``: a further requirement, of the distribution that builds on this one.
    """
    table = table_of(distribution)
    if table is None or distribution in run.unreleased:
        return None
    pinned = run.versions.get(distribution, "")
    if pinned:
        if parsed(pinned) == NEWEST or not table.covers(pinned):
            return None
        return AtHand(table, pinned, (table.release(pinned),), True)
    stated = run.limits.get(distribution, ("",))
    limits = [found for one in stated if (found := _specifiers(wanted, one)) is not None]
    allowed = tuple(
        index
        for index, release in enumerate(table.versions)
        if any(_holds(one, release) for one in limits) and _takes_pins(run, table, index)
    )
    return AtHand(table, table.versions[allowed[-1]], allowed) if allowed else None


def required(table: Table, base: str, version: str) -> str:
    """What a release asks of a distribution that it builds on (PEP 440), "" for any."""
    wanted = table.requires.get(base)
    return wanted[table.release(version)] if wanted else ""


def _takes_pins(run: Run, table: Table, index: int) -> bool:
    """Whether a release can be installed beside what the project pins."""
    for base, wanted in table.requires.items():
        pinned = run.versions.get(base, "")
        if pinned and wanted[index] and base not in run.unreleased:
            limits = _specifiers(wanted[index])
            if limits is not None and not _holds(limits, pinned):
                return False
    return True


def _specifiers(*texts: str) -> Optional[SpecifierSet]:
    try:
        return SpecifierSet(",".join(text for text in texts if text))
    except InvalidSpecifier:
        return None


def _holds(limits: SpecifierSet, version: str) -> bool:
    try:
        return limits.contains(version, prereleases=True)
    except InvalidVersion:
        return True
