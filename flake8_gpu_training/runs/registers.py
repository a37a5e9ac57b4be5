"""Data sets that a LLaMA-Factory run names and that its register, dataset_info.json, lacks."""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Optional

from flake8_gpu_training.facts import ConfigFile, Setting
from flake8_gpu_training.project import PYTHON_KINDS, SCRIPT_KINDS, Project
from flake8_gpu_training.runs.model import Absent, Run

REGISTER = "dataset_info.json"
_PLAIN = re.compile(r"[\w.\-]+")
_ALIKE = 0.85
_DATASETS = ("dataset", "eval_dataset")
_PROGRAMS = PYTHON_KINDS | SCRIPT_KINDS


def unregistered(project: Project, run: Run) -> tuple[Absent, ...]:
    """The names that no register of the project has and that no program of it speaks of.

    Told where the run says by ``dataset_dir`` which register it reads, or where a name of the
    register is so like it that a slip of the keyboard is.
    """
    if run.framework != "llamafactory":
        return ()
    path, named = _register(project, run)
    own = _names(project, path) if path is not None else None
    if path is None or own is None:
        return ()
    known = set(own)
    for one in project.files:
        if posixpath.basename(one) == REGISTER:
            names = _names(project, one)
            if names is None:
                return ()
            known |= names
    like = sorted(own)
    found = []
    for setting, name in _datasets(run):
        near = difflib.get_close_matches(name, like, 1, _ALIKE)
        if name not in known and (near or named) and not _is_mentioned(project, setting, name):
            found.append(Absent(setting, near[0] if near else "", path))
    return tuple(found)


def _register(project: Project, run: Run) -> tuple[Optional[str], bool]:
    """The register that the run reads, and whether the run names its folder."""
    folder = run.setting("dataset_dir")
    if folder is not None and not isinstance(folder.value, str):
        return None, False
    place = folder.value if folder is not None else "data"
    command = run.command
    near = command.location if command is not None else run.location
    directory = command.directory if command is not None else ""
    path = project.find(posixpath.join(place, REGISTER), near.path, directory)
    return path, folder is not None


def _names(project: Project, path: str) -> Optional[frozenset[str]]:
    """Names that a register has; None when it could not be read whole."""
    facts = project.read(path)
    if not isinstance(facts, ConfigFile) or facts.problems or not facts.documents:
        return None
    root = facts.documents[0].root
    return frozenset(root.mapping) if root.kind == "mapping" and root.mapping else None


def _datasets(run: Run) -> Iterator[tuple[Setting, str]]:
    """Each plain name, and its setting with that name alone for a value."""
    for key in _DATASETS:
        setting = run.setting(key)
        if setting is None or setting.location is None or not isinstance(setting.value, str):
            continue
        for part in setting.value.split(","):
            name = part.strip()
            if _PLAIN.fullmatch(name):
                yield replace(setting, value=name), name


def _is_mentioned(project: Project, setting: Setting, name: str) -> bool:
    """Whether a program speaks of the name beside the run: it may add it to the register."""
    word, own = name.encode(), setting.location.path if setting.location is not None else ""
    return any(
        (project.content(one, 1_000_000) or b"").count(word) > (one == own)
        for one in project.files
        if project.kind(one) in _PROGRAMS
    )
