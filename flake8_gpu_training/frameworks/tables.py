"""The parameters of a framework in one of its versions, from the generated tables.

The tables in ``parameters/`` are written by ``tools/make_parameter_tables.py`` from released
sources. A parameter is kept as spans of releases that declare it alike.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from packaging.specifiers import SpecifierSet

from flake8_gpu_training.frameworks.reading import parsed

_FOLDER = Path(__file__).parent / "parameters"


@dataclass(frozen=True)
class Parameter:
    """One parameter as a version declares it.

    ``types`` are names of plain types (``int``, ``str`` …), empty when they are not plain.
    ``has_default`` is False where the default is computed or there is none. ``since`` and
    ``until`` are the first and last release that know it; ``until`` is "" when the newest does.
    Aliases with a dash are short flags. ``negatable``: a flag with an opposite, ``--no-x``.
    """

    name: str
    types: tuple[str, ...] = ()
    optional: bool = False
    default: Any = None
    has_default: bool = False
    choices: tuple[Any, ...] = ()
    aliases: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    negatable: bool = False
    deprecated: bool = False


@dataclass(frozen=True)
class Table:
    """All releases of one distribution; ``versions`` oldest first."""

    distribution: str
    versions: tuple[str, ...]
    groups: Mapping[str, Mapping[str, Any]]
    requires: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Versions of a base distribution that each release asks for (PEP 440), "" for any."""
    shared: Sequence[Sequence[Any]] = ()
    """What several parameters have in common; a group names it by its number."""

    def release(self, version: str = "") -> int:
        """Index of the release that stands for ``version``; the newest when none is named.

        Of one minor version the tables hold few patches: the next one stands for those before
        it. A minor version that no table has is that of the nearest older release.
        """
        return nearest(self.versions, version)

    def covers(self, version: str) -> bool:
        """Whether a version lies within the releases that the table has."""
        wanted = parsed(version)[:2]
        return parsed(self.versions[0])[:2] <= wanted <= parsed(self.versions[-1])[:2]

    def base_version(self, distribution: str, version: str = "") -> str:
        """The newest release of a base distribution that ``version`` takes; "" for any."""
        wanted = self.requires.get(distribution)
        base = table_of(distribution)
        if not wanted or base is None or not wanted[self.release(version)]:
            return ""
        allowed = SpecifierSet(wanted[self.release(version)])
        return next((one for one in reversed(base.versions) if one in allowed), "")

    def spans(self, group: str, name: str) -> Sequence[Any]:
        """What a group says of a parameter: first and last release, and the facts in them."""
        found = self.groups.get(group, {}).get("parameters", {}).get(name, ())
        return self.shared[found] if isinstance(found, int) else found

    def parameters(self, group: str, version: str = "") -> Mapping[str, Parameter]:
        """Parameters of a group in a version, by name; its bases' are not among them."""
        return _parameters(self.distribution, group, self.release(version))

    def extends(self, group: str) -> tuple[tuple[str, str], ...]:
        """Groups of other distributions whose parameters the group takes too."""
        found = self.groups.get(group, {})
        return tuple((base[0], base[1]) for base in found.get("extends", ()))

    def refuses_others(self, group: str, version: str = "") -> bool:
        """Whether a section of a configuration stops at a name that it does not declare."""
        release = self.release(version)
        closed = self.groups.get(group, {}).get("closed", ())
        return any(first <= release <= last for first, last in closed)

    def span(self, group: str, name: str) -> Optional[tuple[str, str]]:
        """First and last release that know a parameter; None when none does."""
        spans = self.spans(group, name)
        if not spans:
            return None
        return self.versions[spans[0][0]], self.versions[spans[-1][1]]

    def knows(self, group: str, name: str, release: int) -> bool:
        """Whether a release has a parameter."""
        return any(first <= release <= last for first, last, _ in self.spans(group, name))


@functools.lru_cache(maxsize=512)
def nearest(versions: tuple[str, ...], version: str) -> int:
    """Index of the release that stands for ``version`` (:meth:`Table.release`)."""
    wanted = parsed(version)
    releases = [parsed(one) for one in versions]
    same = [i for i, one in enumerate(releases) if one[:2] == wanted[:2]]
    if same:
        return next((i for i in same if releases[i] >= wanted), same[-1])
    return max((i for i, one in enumerate(releases) if one <= wanted), default=0)


def distributions() -> tuple[str, ...]:
    """Names of the distributions that have a table."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.json")))


@functools.cache
def table_of(distribution: str) -> Optional[Table]:
    """The table of a distribution (``transformers``, ``ms-swift`` …), or None."""
    path = _FOLDER / f"{distribution}.json"
    if not path.is_file():
        return None
    data = json.loads(path.read_text(encoding="utf-8"))
    requires = {name: tuple(wanted) for name, wanted in data.get("requires", {}).items()}
    versions = tuple(data["versions"])
    return Table(data["distribution"], versions, data["groups"], requires, data.get("shared", ()))


@functools.lru_cache(maxsize=64)
def _parameters(distribution: str, group: str, release: int) -> Mapping[str, Parameter]:
    table = table_of(distribution)
    assert table is not None
    found: dict[str, Parameter] = {}
    for name in table.groups.get(group, {}).get("parameters", {}):
        spans = table.spans(group, name)
        facts = next((facts for first, last, facts in spans if first <= release <= last), None)
        if facts is not None:
            found[name] = _parameter(table, name, spans, facts)
    return found


def _parameter(table: Table, name: str, spans: Any, facts: Mapping[str, Any]) -> Parameter:
    last = spans[-1][1]
    return Parameter(
        name,
        tuple(facts["type"].split("|")) if "type" in facts else (),
        facts.get("optional", False),
        facts.get("default"),
        "default" in facts,
        tuple(facts.get("choices", ())),
        tuple(facts.get("aliases", ())),
        table.versions[spans[0][0]],
        "" if last == len(table.versions) - 1 else table.versions[last],
        facts.get("negatable", False),
        facts.get("deprecated", False),
    )
