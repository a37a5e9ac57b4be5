"""What requirements say of each distribution, the nearest ones first."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Optional

from flake8_gpu_training.facts import Requirement
from flake8_gpu_training.runs.held_sources import Held

LOCK, REQUIRED, INSTALLED, IMAGE = range(4)
"""Kinds of sources: of two beside each other, the first one that pins is believed."""

# What is installed, where files beside it (requirements/npu.txt) pin for other machines.
_MAIN = "requirements.txt"
# ``~=4.46.0`` and ``==4.46.*`` say the minor version: as good as a pin to choose parameters.
_COMPATIBLE = re.compile(r"(?:~=\s*(\d+(?:\.\d+)+)|==\s*(\d+(?:\.\d+)+)\.\*)")


def _nothing() -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType({})


@dataclass(frozen=True)
class Source:
    """The requirements of one file, and the folders whose scripts they are for."""

    path: str
    kind: int
    requirements: tuple[Requirement, ...]
    homes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Pins:
    """What a script is installed with.

    ``versions``: the pinned ones. ``limits``: what is taken of the others (PEP 440); each entry
    is one environment. ``perhaps``: further environments that the script may run in: those of
    other folders, and what a README names. ``unreleased``: taken from a repository. ``trunk``:
    of those, what comes from its own repository as it is, and is newer than all releases. ``held``:
    sources in the project that say which release they are of.
    """

    versions: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    limits: Mapping[str, tuple[str, ...]] = field(default_factory=_nothing)
    perhaps: Mapping[str, tuple[str, ...]] = field(default_factory=_nothing)
    unreleased: frozenset[str] = frozenset()
    trunk: frozenset[str] = frozenset()
    held: tuple[Held, ...] = ()


@dataclass(frozen=True)
class _Said:
    """What the sources of one place say of one distribution."""

    version: str = ""
    limits: tuple[str, ...] = ()


def pins(
    levels: Sequence[Iterable[Source]],
    elsewhere: Iterable[Source] = (),
    mentioned: Iterable[Source] = (),
    told: Iterable[Source] = (),
) -> Pins:
    """What holds where ``levels`` do, the nearest one first; those ``elsewhere`` only may where
    they say nothing, and what is ``mentioned`` may unless they pin.

    ``told``: of what is mentioned, that which the reader is told to install. It holds where
    nothing else is said of the distribution.
    """
    near = [_said_by(level) for level in levels]
    far = _said_by(elsewhere)
    versions: dict[str, str] = {}
    limits: dict[str, tuple[str, ...]] = {}
    perhaps: dict[str, tuple[str, ...]] = {}
    for name in sorted({name for level in (*near, far) for name in level}):
        said = _nearest([level[name] for level in near if name in level])
        other = far.get(name)
        if said is None and other is not None and (other.version or other.limits):
            said = _Said(other.version)
            perhaps[name] = ("",) if other.version else other.limits
        if said is not None and said.version:
            versions[name] = said.version
        limits[name] = (said.limits if said is not None else ()) or ("",)
    last = _said_by(told)
    for name, one in _said_by(mentioned).items():
        said = last.get(name)
        if name not in limits and said is not None and said.limits == one.limits and said.version:
            versions[name] = said.version
            limits[name] = said.limits
        elif name not in versions or name in perhaps:
            perhaps[name] = (*perhaps.get(name, ()), *one.limits)
            limits.setdefault(name, ("",))
    return Pins(MappingProxyType(versions), MappingProxyType(limits), MappingProxyType(perhaps))


def with_options_last(levels: Sequence[list[Source]]) -> list[list[Source]]:
    """``levels``, and one of the files for options (``requirements/npu.txt``, or
    ``Dockerfile.rocm`` beside a ``Dockerfile``): of what the others speak, those do not speak
    for every run."""
    images = {one.path.lower() for level in levels for one in level}
    last = {
        id(one)
        for level in levels
        for one in level
        if _is_option(one) or _VARIANT.sub(r"\1", one.path.lower()) in images - {one.path.lower()}
    }
    main = [[one for one in level if id(one) not in last] for level in levels]
    said = {
        item.name
        for level in main
        for one in level
        for item in one.requirements
        if item.specifier or item.version
    }
    options = [
        replace(one, requirements=tuple(r for r in one.requirements if r.name not in said))
        for level in levels
        for one in level
        if id(one) in last
    ]
    return [*main, options]


def _is_option(source: Source) -> bool:
    match = _OPTION.search(source.path.lower())
    return source.kind == REQUIRED and match is not None and not _BASE.fullmatch(match[1])


_VARIANT = re.compile(r"((?:^|/)dockerfile)[._-][^/]+$")
_OPTION = re.compile(
    r"(?:^|/)(?:(?:requirements?|reqs?|deps|dependencies)/(?:requirements?[-_.])?"
    r"|requirements?[-_.])([\w.-]+)\.(?:txt|in)$"
)
_BASE = re.compile(
    r"(?:requirements?|base|common|core|main|default|train(?:ing)?|runtime|prod(?:uction)?|all|full"
    r"|gpu|cuda|cu\d+|nvidia|lock(?:ed)?|frozen|install(?:ation)?|pip|linux|py\d+)(?:[-_.]\w+)*"
)


def _nearest(said: Sequence[_Said]) -> Optional[_Said]:
    """The nearest one that says something. A range that is near may be pinned farther off."""
    first = next((one for one in said if one.version or one.limits), None)
    if first is None or first.version:
        return first
    pinned = next((one for one in said if one.version), None)
    if pinned is not None and any(_takes(limit, pinned.version) for limit in first.limits):
        return _Said(pinned.version, first.limits)
    return first


def _takes(limit: str, version: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(limit).contains(version, prereleases=True)
    except InvalidSpecifier:
        return False


def _said_by(sources: Iterable[Source]) -> dict[str, _Said]:
    """What sources beside each other say. Pinned is what one kind of them agrees upon."""
    pinned: dict[str, dict[int, set[str]]] = {}
    main: dict[str, set[str]] = {}
    asked: dict[str, dict[str, set[str]]] = {}
    for source in sources:
        for item in source.requirements:
            if item.by_address:
                continue
            version = _version(item)
            if version is not None:
                pinned.setdefault(item.name, {}).setdefault(source.kind, set()).add(version)
                if posixpath.basename(source.path) == _MAIN:
                    main.setdefault(item.name, set()).add(version)
            files = asked.setdefault(item.name, {})
            files.setdefault(_environment(source, item), set()).add(_specifier(item))
    for name, versions in main.items():
        if len(versions) == 1 and len(pinned[name].get(REQUIRED, ())) > 1:
            pinned[name][REQUIRED] = versions
    return {name: _said(pinned.get(name, {}), files) for name, files in asked.items()}


def _environment(source: Source, item: Requirement) -> str:
    """A lock file with several versions of a distribution has one for each environment."""
    return f"{source.path} {item.version}" if source.kind == LOCK else source.path


def _said(pinned: Mapping[int, set[str]], files: Mapping[str, set[str]]) -> _Said:
    limits = {",".join(sorted(these - {""})) for these in files.values()}
    agreed = next((next(iter(pinned[k])) for k in sorted(pinned) if len(pinned[k]) == 1), "")
    if pinned and agreed not in pinned[min(pinned)]:
        agreed = ""  # what disagrees with itself is not settled by what agrees with none of it
    if LOCK in pinned and len(pinned[LOCK]) > 1:
        return _Said("", tuple(sorted({_minor(version) for version in pinned[LOCK]})))
    return _Said(agreed, tuple(sorted(limits - {""})))


def _version(requirement: Requirement) -> Optional[str]:
    if requirement.version:
        return requirement.version
    match = _COMPATIBLE.search(requirement.specifier)
    return (match.group(1) or match.group(2)) if match is not None else None


def _specifier(item: Requirement) -> str:
    """What is asked for; of a pin its minor version, of which one release stands for all."""
    return _minor(item.version) if item.version else item.specifier


def _minor(version: str) -> str:
    minor = re.match(r"\d+\.\d+", version)
    return f"=={minor.group()}.*" if minor is not None else f"=={version}"


def unreleased(levels: Iterable[Iterable[Source]]) -> frozenset[str]:
    """Distributions that are installed from a repository, by what is nearest that asks for one."""
    found: set[str] = set()
    told: set[str] = set()
    for level in map(list, levels):
        items = [item for source in level for item in source.requirements]
        found.update(item.name for item in items if item.by_address and item.name not in told)
        told.update(
            item.name
            for source in level
            for item in source.requirements
            if item.specifier or (source.kind == IMAGE and not item.by_address)
        )
    return frozenset(found)


_REPOSITORIES = {"transformers": "huggingface/transformers"}


def of_trunk(levels: Iterable[Iterable[Source]]) -> frozenset[str]:
    """Distributions that all which ask for their source take from their own repository's trunk."""
    items = [i for level in levels for one in level for i in one.requirements if i.by_address]
    others = {i.name for i in items if i.trunk_of.lower() != _REPOSITORIES.get(i.name)}
    return frozenset({item.name for item in items} - others)
