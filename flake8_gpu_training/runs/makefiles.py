"""Follows ``make goal NAME=value``: the commands that a Makefile runs when it is called so."""

from __future__ import annotations

import dataclasses
import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any, Optional

from flake8_gpu_training.facts import Command, ScriptFile, Setting, known
from flake8_gpu_training.project import FileKind, Project
from flake8_gpu_training.sources.makefile import MakeCall, read_makefile

MAX_BYTES = 2_000_000
MAX_DEPTH = 3
"""How deep Makefiles that call make are followed."""

_NAMES = ("GNUmakefile", "makefile", "Makefile")
_VALUE_FLAGS = frozenset({"-C", "-f", "-I", "-l", "-o", "-W", "-j"})
_IDLE_FLAGS = frozenset({"-n", "--just-print", "--dry-run", "-q", "-t", "--version", "-h"})
_ASSIGNED = re.compile(r"([A-Za-z_][\w.-]*):{0,3}=", re.ASCII)


def made_by(project: Project, command: Command, depth: int = 0) -> Iterator[Command]:
    """The commands that ``command`` runs when it calls make on a Makefile of the project."""
    call = _read(command) if depth < MAX_DEPTH else None
    facts = _facts(project, command, *call) if call is not None else None
    for inner in facts.commands if facts is not None else ():
        made = _within(inner, command)
        yield made
        yield from made_by(project, made, depth + 1)


def _read(command: Command) -> Optional[tuple[str, str, MakeCall]]:
    """Folder, file and call of a command that calls make; None for another."""
    words = command.words
    if not words or posixpath.basename(words[0].text) not in ("make", "gmake"):
        return None
    folder, file = "", ""
    goals: list[str] = []
    variables: dict[str, Any] = {}
    at = 1
    while at < len(words):
        word = words[at]
        at += 1
        match = _ASSIGNED.match(word.text)
        if word.text in _IDLE_FLAGS:
            return None
        if match is not None:
            is_known = isinstance(word.value, str)
            variables[match.group(1)] = word.text[match.end() :] if is_known else word.value
        elif word.text.startswith("-"):
            name, value = _flag(word.text)
            following = words[at].text if at < len(words) else ""
            takes = name in _VALUE_FLAGS and (name != "-j" or following.isdigit())
            if takes and not value:
                value = following
                at += 1
            folder = posixpath.join(folder, value) if name in ("-C", "--directory") else folder
            file = value if name in ("-f", "--file", "--makefile") else file
        elif known(word.value):
            goals.append(word.text)
        else:
            return None
    return folder, file, MakeCall(tuple(goals), variables, _values(command.environment))


def _flag(text: str) -> tuple[str, str]:
    if text.startswith("--"):
        name, _, value = text.partition("=")
        return name, value
    return text[:2], text[2:]


def _values(environment: Mapping[str, Setting]) -> dict[str, Any]:
    return {name: setting.value for name, setting in environment.items()}


def _facts(
    project: Project, command: Command, folder: str, file: str, call: MakeCall
) -> Optional[ScriptFile]:
    for name in (file,) if file else _NAMES:
        path = project.find(posixpath.join(folder, name), command.location.path, command.directory)
        if path is None or project.kind(path) is not FileKind.MAKEFILE:
            continue
        try:
            with (project.root / path).open("rb") as opened:
                return read_makefile(opened.read(MAX_BYTES), path, call)
        except (OSError, ValueError, RecursionError):
            return None
    return None


def _within(inner: Command, call: Command) -> Command:
    """A recipe's command, in the environment that make is called in."""
    return dataclasses.replace(
        inner,
        environment={**call.environment, **inner.environment},
        wrappers=(*call.wrappers, call.words, *inner.wrappers),
        conditional=inner.conditional or call.conditional,
    )
