"""Versions that are named beside requirements: in scripts themselves, in READMEs, in launchers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from flake8_gpu_training.facts import Command, Location, Requirement
from flake8_gpu_training.runs.held_sources import repository_of
from flake8_gpu_training.runs.pins import INSTALLED, Source

_PINNED = re.compile(r"(?<![\w.-])([A-Za-z][\w.-]*)(?:\[[\w,-]*\])?==(\d[\w.]*\w)")
_INSTALLS = re.compile(r"(?m)\bpip3?[ \t]+install[ \t].*$")
_ESTIMATOR = re.compile(r"\b(transformers|pytorch)_version\s*=\s*[\"'](\d[\d.]*\d)[\"']")
_HEADER = re.compile(r"(?ms)^# /// script[ \t]*\n(.*?)^# ///[ \t]*$")
_MODAL = re.compile(r"\.(?:uv_)?pip_install\(([^()]*)")
_TEXT = re.compile(r"[\"']([^\"'\n]+)[\"']")
_PYTORCH = {"pytorch": "torch"}


def own_requirements(text: str, path: str) -> tuple[Requirement, ...]:
    """What a script states for itself: its header (PEP 723), and the image that it runs in."""
    from flake8_gpu_training.sources.requirements import requirement

    stated = [match[1] for match in (*_HEADER.finditer(text), *_MODAL.finditer(text))]
    found = (requirement(word, Location(path, 1)) for one in stated for word in _TEXT.findall(one))
    return tuple(one for one in found if one is not None)


_HEAD = re.compile(r"(?:#.*\n|[ \t]*\n)*")
_NEEDS = re.compile(
    r"(?i)^#.*\b(?:dependenc(?:y|ies)|requires|requirements?)\b|^#[ \t]*[-*][ \t]*[\w-]+=="
)
_ITEM = re.compile(r"#[ \t]*[-*][ \t]")
_NPUS = re.compile(r"(?i)\b(?:ascend|npus?)\b")
_STATED = re.compile(r"(?<![\w.-])([A-Za-z][\w.-]*)==v?(\d[\w.]*\w)")


def stated_at_head(text: str, path: str) -> tuple[Requirement, ...]:
    """What the comments at the head of a shell script say that it needs, where they agree."""
    from flake8_gpu_training.sources.requirements import requirement

    head = _HEAD.match(text)
    found: dict[str, dict[str, int]] = {}
    is_of_npus = False
    for number, line in enumerate(head[0].split("\n") if head is not None else (), start=1):
        if not _ITEM.match(line) and (":" in line or _NEEDS.search(line)):
            is_of_npus = bool(_NPUS.search(line))
        if is_of_npus:
            continue
        for name, version in _STATED.findall(line) if _NEEDS.search(line) else ():
            found.setdefault(name, {}).setdefault(version, number)
    made = (
        requirement(f"{name}=={version}", Location(path, number))
        for name, versions in found.items()
        if len(versions) == 1
        for version, number in versions.items()
    )
    return tuple(one for one in made if one is not None)


def mentioned_in(text: str, path: str) -> Iterator[Source]:
    """Versions that a README names, or a launcher of a service asks for; each may be the one."""
    from flake8_gpu_training.sources.requirements import requirement

    pattern = _ESTIMATOR if path.endswith((".py", ".ipynb")) else _PINNED
    named = pattern.findall(text)
    for index, (name, version) in enumerate(sorted(set(named))):
        found = requirement(f"{_PYTORCH.get(name, name)}=={version}", Location(path, 1))
        if found is not None:
            yield Source(f"{path}:{index}", INSTALLED, (found,))


def installed_in(text: str, path: str) -> Iterator[Source]:
    """What the commands of a README install."""
    lines = _INSTALLS.findall(text.replace("\\\n", " "))
    yield from mentioned_in("\n".join(lines), path)


def cloned(commands: list[Command]) -> frozenset[str]:
    """Distributions of which a script clones the source and installs a folder."""
    installing = {one.location.path for one in commands if _installs_a_folder(one)}
    return frozenset(
        repository_of(word.text)
        for command in commands
        if command.location.path in installing
        and [word.text for word in command.words[:2]] == ["git", "clone"]
        for word in command.words[2:]
    ) - {""}


def _installs_a_folder(command: Command) -> bool:
    words = [word.text for word in command.words]
    return "install" in words[:4] and any(
        word in ("-e", "--editable", ".") or word.startswith(("./", "../", ".[")) for word in words
    )
