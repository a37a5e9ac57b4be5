"""Which release of a distribution a project gets: the pinned one, else the newest it allows."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Optional

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion

from flake8_gpu_training.frameworks.installable import (
    Beside,
    can_be_installed,
    of_plugins,
    stated_beside,
)
from flake8_gpu_training.frameworks.reading import NEWEST, parsed, version_of
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
    pinned, perhaps = run.versions.get(distribution, ""), run.perhaps.get(distribution, ())
    beside = stated_beside(run, distribution) if perhaps or not pinned else ()
    others = _chosen(distribution, wanted, perhaps, beside)
    if len(others) < len(perhaps):
        return None  # an environment of a release that no table has
    if pinned:
        if parsed(pinned) == NEWEST or not table.covers(pinned):
            return None
        chosen = (table.release(pinned), *others)
        return AtHand(table, pinned, tuple(sorted(set(chosen))), not others, chosen)
    stated = run.limits.get(distribution, ("",))
    if distribution in _OFTEN_ALONE:
        others = (*others, *_chosen(distribution, wanted, stated, beside))
        beside = of_plugins(beside)
    allowed = _allowed(distribution, wanted, (*stated, *perhaps), beside)
    if not allowed:
        return None
    chosen = (*_chosen(distribution, wanted, stated, beside), *others)
    return AtHand(table, table.versions[max(chosen)], allowed, False, (*chosen, *others))


def built(run: Run, distribution: str) -> Optional[AtHand]:
    """The release that a build of the distribution's own repository is next to: the one that is
    named, else the newest within the bounds that the project states."""
    table, named = table_of(distribution), parsed(run.versions.get(distribution, ""))
    if table is None or named < parsed(table.versions[0]):
        return None
    if named != NEWEST and table.covers(run.versions[distribution]):
        release = table.release(run.versions[distribution])
        return AtHand(table, run.versions[distribution], (release,), True, (release,))
    bounds = tuple(one for one in run.limits.get(distribution, ()) if "<" in one) or ("",)
    chosen = _chosen(distribution, "", bounds, ())
    if not chosen:
        return None
    allowed = _allowed(distribution, "", bounds, ())
    return AtHand(table, table.versions[max(chosen)], allowed, False, chosen)


def version_at_hand(run: Run, distribution: str) -> tuple[int, ...]:
    """The pinned version, else the newest of the table that the project's limits, and what it
    pins beside, allow."""
    version = version_of(run, distribution)
    if version != NEWEST:
        return version
    told = at_hand(run, distribution)
    if told is None or not told.allowed or told.allowed[-1] == len(told.table.versions) - 1:
        return version
    return parsed(told.table.versions[told.allowed[-1]])


def lacks(run: Run, distribution: str, group: str, name: str) -> bool:
    """Whether no release that the project may install has a parameter.

    Source that the project holds has what the release of its version had; a fork that adds to
    it is set in its own words, and so seen.
    """
    table, held = table_of(distribution), run.held.get(distribution)
    if table is None or not table.spans(group, name):
        return False  # what a base distribution declares is another's
    own = run.declared.get(f"{distribution} {group}")
    if own:
        return name not in own
    state = at_hand(run, distribution)
    if state is not None:
        return not any(table.knows(group, name, release) for release in state.allowed)
    return held is not None and not table.knows(group, name, table.release(held))


def required(table: Table, base: str, version: str) -> str:
    """What a release asks of a distribution that it builds on (PEP 440), "" for any."""
    wanted = table.requires.get(base)
    return wanted[table.release(version)] if wanted else ""


_OFTEN_ALONE = frozenset({"vllm", "sglang"})
"""Servers, which often have an environment of their own beside the training's."""


def _chosen(
    distribution: str, wanted: str, stated: tuple[str, ...], beside: Beside
) -> tuple[int, ...]:
    """The newest release of each environment."""
    found = (_allowed(distribution, wanted, (one,), beside) for one in stated)
    return tuple(one[-1] for one in found if one)


@functools.lru_cache(maxsize=256)
def _allowed(
    distribution: str, wanted: str, stated: tuple[str, ...], beside: Beside
) -> tuple[int, ...]:
    """Releases within ``wanted`` and one of ``stated`` that can be installed ``beside`` others."""
    table = table_of(distribution)
    if table is None:
        return ()
    limits = [found for one in stated if (found := _specifiers(wanted, one)) is not None]
    return tuple(
        index
        for index, release in enumerate(table.versions)
        if any(_holds(one, release) for one in limits)
        and can_be_installed(distribution, release, beside)
    )


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
