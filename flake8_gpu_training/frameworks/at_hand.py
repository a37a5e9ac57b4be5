"""Which release of a distribution a project gets: the pinned one, else the newest it allows."""

from __future__ import annotations

import functools
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
    releases that an installation may choose, the newest last; one when it is pinned.
    ``chosen``: those that it does choose, one for each environment that is asked for."""

    table: Table
    version: str
    allowed: tuple[int, ...]
    pinned: bool = False
    chosen: tuple[int, ...] = ()


def at_hand(run: Run, distribution: str, wanted: str = "") -> Optional[AtHand]:
    """The release that ``run`` gets; None where no table tells what it takes.

    ``wanted``: a further requirement, of the distribution that builds on this one.
    """
    table = table_of(distribution)
    if table is None or distribution in run.unreleased:
        return None
    beside = _beside(run, table)
    others = _chosen(distribution, wanted, run.perhaps.get(distribution, ()), beside)
    pinned = run.versions.get(distribution, "")
    if pinned:
        if parsed(pinned) == NEWEST or not table.covers(pinned):
            return None
        chosen = (table.release(pinned), *others)
        return AtHand(table, pinned, tuple(sorted(set(chosen))), not others, chosen)
    stated = run.limits.get(distribution, ("",))
    allowed = _allowed(distribution, wanted, (*stated, *run.perhaps.get(distribution, ())), beside)
    if not allowed:
        return None
    chosen = (*_chosen(distribution, wanted, stated, beside), *others)
    return AtHand(table, table.versions[max(chosen)], allowed, False, chosen)


def required(table: Table, base: str, version: str) -> str:
    """What a release asks of a distribution that it builds on (PEP 440), "" for any."""
    wanted = table.requires.get(base)
    return wanted[table.release(version)] if wanted else ""


def _beside(run: Run, table: Table) -> tuple[tuple[str, str], ...]:
    """The versions that are pinned of what the distribution builds on."""
    return tuple(
        (base, run.versions[base])
        for base in table.requires
        if run.versions.get(base) and base not in run.unreleased and base not in run.perhaps
    )


def _chosen(
    distribution: str, wanted: str, stated: tuple[str, ...], pins: tuple[tuple[str, str], ...]
) -> tuple[int, ...]:
    """The newest release of each environment."""
    found = (_allowed(distribution, wanted, (one,), pins) for one in stated)
    return tuple(one[-1] for one in found if one)


@functools.lru_cache(maxsize=256)
def _allowed(
    distribution: str, wanted: str, stated: tuple[str, ...], pins: tuple[tuple[str, str], ...]
) -> tuple[int, ...]:
    """Releases within ``wanted`` and one of ``stated`` that can be installed beside ``pins``."""
    table = table_of(distribution)
    if table is None:
        return ()
    limits = [found for one in stated if (found := _specifiers(wanted, one)) is not None]
    return tuple(
        index
        for index, release in enumerate(table.versions)
        if any(_holds(one, release) for one in limits)
        and all(_takes(table.requires[base][index], pinned) for base, pinned in pins)
    )


def _takes(wanted: str, pinned: str) -> bool:
    limits = _specifiers(wanted)
    return not wanted or limits is None or _holds(limits, pinned)


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
