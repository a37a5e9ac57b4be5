"""Configuration files that a command names and that are not in the project's folder for them."""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import Optional

from flake8_gpu_training.facts import Command, Origin, ScriptFile, Setting
from flake8_gpu_training.runs.model import Absent
from flake8_gpu_training.runs.reach import Reach

_SUFFIXES = (".json", ".yaml", ".yml")
_OPEN = re.compile(r"[$<>{}*?~`\s]|^/|\.\.|(?i:your|path[_/-]?to)")
"""What is no plain path within the project, or stands for one that the user is to fill in."""
_ALIKE = 0.8


def absent(
    reach: Reach, command: Optional[Command], named: Iterable[Setting]
) -> tuple[Absent, ...]:
    """The files that flags of ``command`` name in a folder of the project that lacks them.

    Where the folder is not in the project, or the script speaks of the file again (it may write
    or fetch it), nothing is said.
    """
    if command is None or not isinstance(reach.project.read(command.location.path), ScriptFile):
        return ()
    found = []
    for setting in named:
        name = setting.value
        if setting.origin is not Origin.FLAG or not setting.text or not isinstance(name, str):
            continue
        if not name.endswith(_SUFFIXES) or _OPEN.search(name) is not None:
            continue
        siblings = tuple(_siblings(reach, command, name))
        if not siblings or reach.file(name, command) is not None or _is_told(reach, command, name):
            continue
        near = difflib.get_close_matches(posixpath.basename(name), siblings, 1, _ALIKE)
        folder = posixpath.dirname(name)
        found.append(Absent(setting, posixpath.join(folder, near[0]) if near else ""))
    return tuple(found)


def _siblings(reach: Reach, command: Command, name: str) -> Iterator[str]:
    """Configuration files in the folder where a file should be."""
    folder = posixpath.dirname(name)
    if not folder:
        return  # the working directory may be another one
    place = posixpath.dirname(command.location.path)
    while True:
        whole = posixpath.normpath(posixpath.join(place, command.directory, folder))
        for path in reach.project.files:
            if posixpath.dirname(path) == whole and path.endswith(_SUFFIXES):
                yield posixpath.basename(path)
        if not place:
            return
        place = posixpath.dirname(place)


def _is_told(reach: Reach, command: Command, name: str) -> bool:
    """Whether the script names the file more than this once."""
    text = reach.project.content(command.location.path, 1_000_000)
    return text is None or text.count(posixpath.basename(name).encode()) != 1
