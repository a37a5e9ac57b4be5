"""Distributions whose source a project holds itself: what they take, no release can tell."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Callable

from flake8_gpu_training.facts import Command
from flake8_gpu_training.runs.held_parameters import (
    Declared,
    declared_by_llamafactory,
    declared_in,
)
from flake8_gpu_training.sources.constructors import defaults_of

# A file that only the source of the distribution has.
_SOURCES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "transformers": ("transformers/training_args.py",),
        "trl": ("trl/trainer/utils.py",),
        "peft": ("peft/peft_model.py",),
        "accelerate": ("accelerate/accelerator.py",),
        "ms-swift": ("swift/cli/main.py",),
        "llamafactory": ("llamafactory/hparams/parser.py", "llmtuner/hparams/parser.py"),
        "vllm": ("vllm/engine/arg_utils.py",),
        "sglang": ("sglang/srt/server_args.py",),
        "deepspeed": ("deepspeed/runtime/config.py",),
        "flow-factory": ("flow_factory/hparams/args.py",),
        "videox-fun": ("videox_fun/models/__init__.py",),
    }
)


def held_by(paths: Iterable[str]) -> frozenset[str]:
    """Distributions whose source is among a project's files."""
    names = {mark: name for name, marks in _SOURCES.items() for mark in marks}
    found: set[str] = set()
    for path in paths:
        parts = path.rsplit("/", 4)
        for start in range(len(parts)):
            name = names.get("/".join(parts[start:]))
            if name is not None:
                found.add(name)
    return frozenset(found)


def held_in(folder: Path) -> frozenset[str]:
    """The same of a folder whose files are not listed."""
    return frozenset(
        name
        for name, marks in _SOURCES.items()
        for mark in marks
        if (folder / mark).is_file() or (folder / "src" / mark).is_file()
    )


# Repositories by another name than the distribution's.
_REPOSITORIES: Mapping[str, str] = MappingProxyType(
    {"llama-factory": "llamafactory", "swift": "ms-swift", "flow-factory": "flow-factory"}
)
_OF_ONES_OWN = re.compile(r"[-_](?:forks?|custom|patched|modified|mod|dev|private|internal|own)$")


def repository_of(address: str) -> str:
    """The distribution whose source, or a fork of it, a repository or folder has; "" if none."""
    name = posixpath.basename(address.rstrip("/").removesuffix(".git")).lower()
    name = _OF_ONES_OWN.sub("", name).replace("_", "-")
    name = _REPOSITORIES.get(name, name)
    return name if name in _SOURCES else ""


def named_in_submodules(text: str) -> frozenset[str]:
    """Distributions whose source is a submodule, by the text of ``.gitmodules``."""
    stated = re.findall(r"(?m)^\s*(?:path|url)\s*=\s*(\S+)", text)
    return frozenset(repository_of(one) for one in stated) - {""}


# --- which release the source is of ---

_SAYS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "llamafactory": re.compile(
            r"(?:^|/)(?:llamafactory|llmtuner)/(?:extras/env|cli|__init__)\.py$"
        ),
        "ms-swift": re.compile(r"(?:^|/)swift/version\.py$"),
        "verl": re.compile(r"(?:^|/)verl/version/version$"),
    }
)
_VERSION = re.compile(r"(?m)(?:^(?:__version__|VERSION)\s*=\s*[\"']|\A)(\d[\w.]*)[\"']?\s*$")


@dataclass(frozen=True)
class Held:
    """Source of a distribution in a project.

    ``folder`` is what ``pip install`` is given; ``installed``: a script of the project does so.
    ``declares``: the parameters of its commands (ms-swift), of its data sets (VideoX-Fun).
    """

    folder: str
    name: str
    version: str
    installed: bool = False
    declares: Declared = field(default_factory=dict, compare=False)


def releases_held(
    paths: Iterable[str], read: Callable[[str], str], commands: Iterable[Command]
) -> tuple[Held, ...]:
    """The sources that say their own version, and copies of VideoX-Fun."""
    found: dict[tuple[str, str], str] = {}
    listed = frozenset(paths)
    for path in sorted(listed):
        for name, pattern in _SAYS.items():
            mark = pattern.search(path)
            if mark is None or not _is_whole(name, path[: mark.start()], listed):
                continue
            version = _VERSION.search(read(path))
            if version is not None:
                found[_root_of(path[: mark.start()]), name] = version[1]
    into = {folder for command in commands for folder in _installs(command)}
    held = [
        Held(f, name, v, f in into, _declares(name, f, listed, read))
        for (f, name), v in sorted(found.items())
    ]
    return (*held, *_of_videox(listed, read))


_VIDEOX = "videox_fun/models/__init__.py"
_ITS_DATA = "videox_fun/data/"


def _of_videox(listed: frozenset[str], read: Callable[[str], str]) -> Iterable[Held]:
    """Copies of VideoX-Fun, which say no version: what its data sets take."""
    for path in sorted(listed):
        if path == _VIDEOX or path.endswith(f"/{_VIDEOX}"):
            folder = path.removesuffix(_VIDEOX).rstrip("/")
            start = f"{folder}/{_ITS_DATA}".lstrip("/")
            found = {
                name: {setting.name: setting}
                for file in sorted(listed)
                if file.startswith(start) and file.endswith(".py")
                for name, setting in defaults_of(read(file), file, "text_drop_ratio")
            }
            yield Held(folder, "videox-fun", "", declares=found)


_Declares = Callable[[str, frozenset[str], Callable[[str], str]], Declared]
_DECLARED: Mapping[str, _Declares] = MappingProxyType(
    {"ms-swift": declared_in, "llamafactory": declared_by_llamafactory}
)


def _declares(
    name: str, folder: str, listed: frozenset[str], read: Callable[[str], str]
) -> Declared:
    """The parameters that a source declares, of distributions whose declarations are read."""
    declared = _DECLARED.get(name)
    return declared(folder, listed, read) if declared is not None else {}


def _is_whole(name: str, folder: str, listed: frozenset[str]) -> bool:
    """Whether the package is the distribution's: other projects have a ``swift`` of their own."""
    marks = _SOURCES[name] if name == "ms-swift" else ()
    return not marks or any(f"{folder}/{mark}".lstrip("/") in listed for mark in marks)


def held_for(sources: Iterable[Held], paths: Iterable[str]) -> tuple[Held, ...]:
    """The sources that a run with files of ``paths`` is of, one a distribution: the source that
    they lie in, else the one that the project installs."""
    found: list[Held] = []
    sources, paths = tuple(sources), tuple(paths)
    for name in sorted({one.name for one in sources}):
        ours = [one for one in sources if one.name == name]
        around = [o for o in ours if any(f"{path}/".startswith(_prefix(o)) for path in paths)]
        deepest = max((len(one.folder) for one in around), default=0)
        chosen = [one for one in around if len(one.folder) == deepest]
        chosen = chosen or [one for one in ours if one.installed]
        if len({one.version for one in chosen}) == 1:
            found.append(chosen[0])
    return tuple(found)


def _prefix(held: Held) -> str:
    return f"{held.folder}/" if held.folder else ""


def _root_of(package: str) -> str:
    """The folder of a distribution whose package lies in this one (``src``)."""
    return package.removesuffix("src").rstrip("/")


def _installs(command: Command) -> Iterable[str]:
    """Folders that ``pip install`` is given, as seen from the script and from the project."""
    words = [word.text for word in command.words]
    if "install" not in words[:4]:
        return
    for word in words:
        folder = word.partition("[")[0]
        if folder.startswith(".") or "/" in folder:
            inside = posixpath.join(command.directory, folder)
            yield _normal(inside)
            yield _normal(posixpath.join(posixpath.dirname(command.location.path), inside))


def _normal(path: str) -> str:
    found = posixpath.normpath(path)
    return "" if found == "." else found
