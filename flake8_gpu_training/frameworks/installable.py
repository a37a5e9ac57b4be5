"""Which releases can be installed beside what a project pins, by what they ask of each other.

``requires.json`` is written by ``tools/make_requirement_table.py`` from released metadata.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from flake8_gpu_training.frameworks.reading import parsed
from flake8_gpu_training.frameworks.tables import nearest
from flake8_gpu_training.runs.model import Run

Beside = tuple[tuple[str, tuple[str, ...]], ...]
"""What a project asks for of other distributions: of each, one specifier an environment."""

_EXACT = re.compile(r"==(\d+\.\d+)(?:\.\w+)*(?=,|$)")
"""A pinned version, for which the release of the same minor version stands."""
_FOLDER = Path(__file__).parent
_MADE_FOR: Mapping[str, str] = {"vllm-ascend": "vllm"}
"""Plugins of which each release is for the release of the same number (vLLM Ascend,
"Versioning Policy")."""


def stated_beside(run: Run, distribution: str) -> Beside:
    """What ``run`` surely has of what bears on the releases of ``distribution``."""
    names = {*_requires(distribution), *_requirers(distribution)} - {distribution}
    found: list[tuple[str, tuple[str, ...]]] = []
    for name in sorted(names - run.unreleased):
        if name in run.perhaps:
            continue
        version = run.versions.get(name, "")
        stated = (_pin(version),) if version else run.limits.get(name, ("",))
        if stated != ("",):
            found.append((name, stated))
    return tuple(found)


def of_plugins(beside: Beside) -> Beside:
    """Those of ``beside`` that are made for one release of what they plug into."""
    return tuple(one for one in beside if one[0] in _MADE_FOR)


def can_be_installed(distribution: str, version: str, beside: Beside) -> bool:
    """Whether no pin of ``beside`` excludes a release, nor the release one of them."""
    own = asked(distribution, version)
    for name, stated in beside:
        if name in own and not any(_overlap(own[name], one) for one in stated):
            return False
        pinned = stated[0][2:].removesuffix(".*") if len(stated) == 1 else ""
        if stated[0].startswith("==") and pinned:
            cap = _EXACT.sub(r"==\1.*", asked(name, pinned).get(distribution, ""))
            if cap and not _overlap(cap, f"=={version}"):
                return False
    return True


@functools.lru_cache(maxsize=512)
def asked(distribution: str, version: str) -> Mapping[str, str]:
    """What a release asks of others; nothing for one older or newer than the known ones."""
    if distribution in _MADE_FOR:
        made_for = re.match(r"\d+\.\d+", version)
        return {_MADE_FOR[distribution]: _pin(made_for.group())} if made_for else {}
    data = _data().get(distribution)
    versions = data["versions"] if data is not None else ()
    if not versions or not parsed(versions[0])[:2] <= parsed(version)[:2]:
        return {}
    if parsed(version)[:2] > parsed(versions[-1])[:2]:
        return {}
    index = nearest(tuple(versions), version)
    return {
        name: specifier
        for name, spans in _requires(distribution).items()
        for first, last, specifier in spans
        if first <= index <= last
    }


@functools.cache
def _data() -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads((_FOLDER / "requires.json").read_text(encoding="utf-8"))
    return data


def _requires(distribution: str) -> Mapping[str, Any]:
    requires: Mapping[str, Any] = _data().get(distribution, {}).get("requires", {})
    return requires


@functools.cache
def _requirers(distribution: str) -> frozenset[str]:
    plugins = {name for name, base in _MADE_FOR.items() if base == distribution}
    return frozenset(plugins | {name for name in _data() if distribution in _requires(name)})


def _pin(version: str) -> str:
    """Of a version that names no patch any patch is meant."""
    return f"=={version}" if version.count(".") > 1 else f"=={version}.*"


@functools.lru_cache(maxsize=4096)
def _overlap(one: str, other: str) -> bool:
    """Whether a version satisfies both specifiers: one that they name, or right behind it."""
    try:
        both = SpecifierSet(one) & SpecifierSet(other)
        return any(both.contains(version, prereleases=True) for version in _named(both))
    except (InvalidSpecifier, InvalidVersion):
        return True


def _named(specifiers: SpecifierSet) -> Iterator[str]:
    yield "0"
    for specifier in specifiers:
        version = Version(specifier.version.removesuffix(".*"))
        yield str(version)
        yield f"{version.public}.1" if not version.pre and not version.post else str(version)
        yield "10000"
