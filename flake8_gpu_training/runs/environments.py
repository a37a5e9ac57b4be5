"""What is installed where a script of a project runs: what the files nearest to it ask for."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from flake8_gpu_training.facts import Command, Requirement, RequirementsFile, Setting
from flake8_gpu_training.project import PYTHON_KINDS, SCRIPT_KINDS, FileKind, Project
from flake8_gpu_training.runs.held_sources import (
    held_by,
    named_in_submodules,
    releases_held,
)
from flake8_gpu_training.runs.mentions import (
    cloned,
    installed_in,
    mentioned_in,
    own_requirements,
    stated_at_head,
)
from flake8_gpu_training.runs.pins import (
    IMAGE,
    INSTALLED,
    LOCK,
    REQUIRED,
    Pins,
    Source,
    of_trunk,
    pins,
    unreleased,
    with_options_last,
)

LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "pipfile.lock")
MAX_BYTES = 1_000_000
# Folders of what is installed, for the scripts of the folder that they lie in.
_SHARED = frozenset(
    [
        *("requirements", "requirement", "reqs", "req", "constraints", "dependencies", "deps"),
        *("env", "envs", "environment", "environments", "conda", "install", "installation"),
        *("docker", "dockerfiles", "container", "containers", "setup"),
    ]
)
# Commands that install stand with other scripts.
_SCRIPTS = _SHARED | {"scripts", "script", "shell", "bash", "bin", "tools"}

# Programs that start a run, where a script that installs starts it too.
_STARTERS = frozenset({"swift", "megatron", "llamafactory-cli", "torchrun", "deepspeed"})

_OWN_NAME = re.compile(r'(?m)^\[project\]\s*\nname\s*=\s*"([\w.-]+)"')


def _own_name(text: str) -> str:
    """The distribution that a checkout is of: the releases in its images are older than it."""
    found = _OWN_NAME.search(text)
    return found[1] if found is not None else ""


_NAMES_VERSIONS = re.compile(r"(?i)^readme[\w.-]*\.(?:md|rst|txt)$|\.(?:py|ipynb)$")
_NUMBERED = re.compile(r"(.*[^/])[_-]\d+\.(?:sh|bash|py|ya?ml|[Dd]ockerfile)")
# Numbered scripts by such names install for all that lies beside them.
_INSTALLS = re.compile(
    r"(?i)(?:(?:setup|install(?:ation)?|env(?:ironment)?|req(?:uirement)?s?|dep(?:endencie)?s)[_-]?)+"
)
_AMD = re.compile(r"(?i)rocm|/dev/kfd|aiter|\bamd\b|\bmi\d{3}x?\b|\bhip_visible|\brocr_visible")
MAX_MENTIONS = 40
"""Files of a folder that are searched for the versions of a service's machines."""


class Environments:
    """The requirements of a project, by the folders whose scripts they are for."""

    def __init__(self, project: Project, commands: Sequence[Command] = ()) -> None:
        self.project = project
        self._folders = _folders_of_scripts(project)
        self._found: dict[tuple[tuple[str, ...], frozenset[str]], Pins] = {}
        self._in_folders = _readmes_of(project)
        self._sources = [*self._files(), *self._commands(commands), *self._images()]
        self._unreleased = (
            held_by(project.files)
            | named_in_submodules(self._text(".gitmodules"))
            | cloned(list(commands))
        )
        self._own = _own_name(self._text("python/pyproject.toml"))
        self._held = releases_held(project.files, self._text, commands)
        self._mentions: dict[str, tuple[Source, ...]] = {}

    def of(self, *paths: str) -> Pins:
        """What holds for a script, by its path and that of the command which starts it.

        The requirements of its own folder win over those of the folders above it; those of
        others only may hold. What a file installs itself is nearest of all.
        """
        own = [s for s in self._sources if s.kind in (INSTALLED, IMAGE) and s.path in paths]
        own += self._stated_in(paths)
        folders = tuple(_upwards(paths))
        pages = frozenset(found[1] for path in paths if (found := _NUMBERED.fullmatch(path)))
        series = self._series_of(pages, paths, own)
        if own or series:
            return self._of(folders, own, series, pages)
        key = (folders, pages)
        if key not in self._found:
            self._found[key] = self._of(folders, own, series, pages)
        return self._found[key]

    def _series_of(
        self, pages: frozenset[str], paths: tuple[str, ...], own: Sequence[Source]
    ) -> list[Source]:
        """What scripts of the same name install that only differ in their numbers, as the steps
        of one page do. Where they install for AMD's GPUs and for others, one of them counts."""
        found = [
            one
            for one in self._sources
            if one.kind in (INSTALLED, IMAGE) and _page_of(one.path) in pages and one not in own
        ]
        amd = any(self._names_amd(path) for path in paths)
        same = [one for one in found if self._names_amd(one.path) is amd]
        told = {item.name for one in same for item in one.requirements}
        return [
            one
            if one in same
            else replace(one, requirements=tuple(r for r in one.requirements if r.name not in told))
            for one in found
        ]

    def _names_amd(self, path: str) -> bool:
        return _AMD.search(self._text(path)) is not None

    def _of(
        self,
        folders: tuple[str, ...],
        own: list[Source],
        series: list[Source],
        pages: frozenset[str],
    ) -> Pins:
        levels = [own, series]
        nearest = {(one.kind, one.path) for one in (*own, *series)}
        others = [
            one
            for one in self._sources
            if (one.kind, one.path) not in nearest
            and not one.path.endswith(".ipynb")
            and not _is_another_page(one, pages)
        ]
        for folder in folders:
            levels.append([one for one in others if folder in one.homes])
            others = [one for one in others if folder not in one.homes]
        levels = with_options_last(levels)
        mentioned = [
            one
            for folder in folders
            for one in self._mentioned(folder)
            if not _is_another_page(one, pages)
        ]
        told = [one for folder in folders for one in self._told_in(folder)]
        asked = unreleased([*levels, others])
        installed = self._unreleased | asked
        trunk = (of_trunk([*levels, others]) & asked) - self._unreleased
        found = pins(levels, others, mentioned, told)
        versions = {
            name: version
            for name, version in found.versions.items()
            if name != self._own or name not in installed
        }
        return replace(
            found,
            versions=MappingProxyType(versions),
            unreleased=installed,
            trunk=trunk,
            held=self._held,
        )

    def _stated_in(self, paths: tuple[str, ...]) -> Iterator[Source]:
        for path in paths:
            stated: tuple[Requirement, ...] = ()
            if path.endswith(".py"):
                stated = own_requirements(self._text(path), path)
            elif path.endswith((".sh", ".bash")):
                stated = stated_at_head(self._text(path), path)
            if stated:
                yield Source(path, INSTALLED, stated)

    def _mentioned(self, folder: str) -> tuple[Source, ...]:
        """Versions that a folder's README and launchers of services name."""
        if folder not in self._mentions:
            self._mentions[folder] = tuple(
                source
                for path in self._in_folders.get(folder, ())[:MAX_MENTIONS]
                for source in mentioned_in(self._text(path), path)
            )
        return self._mentions[folder]

    def _told_in(self, folder: str) -> Iterator[Source]:
        """What a folder's README tells its reader to install."""
        for path in self._in_folders.get(folder, ())[:MAX_MENTIONS]:
            if not path.endswith((".py", ".ipynb")):
                yield from installed_in(self._text(path), path)

    def _text(self, path: str) -> str:
        content = self.project.content(path, MAX_BYTES)
        return content.decode("utf-8", "replace") if content is not None else ""

    # --- what the project has ---

    def _files(self) -> Iterator[Source]:
        files = [one for one in self.project.requirements() if not self._is_auxiliary(one.path)]
        homes = {file.path: self._homes(file.path, _SHARED) for file in files}
        todo = list(files)
        for file in todo:
            for name in file.includes:
                path = self.project.find(name, relative_to=file.path)
                if path is None:
                    continue
                if path not in homes:
                    todo += self._included(path)
                homes[path] = homes.get(path, frozenset()) | homes[file.path]
        for file in todo:
            is_lock = posixpath.basename(file.path).lower() in LOCKS
            kind = LOCK if is_lock else REQUIRED
            yield Source(file.path, kind, file.requirements, homes[file.path])

    def _included(self, path: str) -> list[RequirementsFile]:
        """A file of requirements by another name."""
        from flake8_gpu_training.sources.requirements import read_requirements

        content = self.project.content(path, MAX_BYTES)
        return [read_requirements(content, path)] if content is not None else []

    def _commands(self, commands: Iterable[Command]) -> Iterator[Source]:
        from flake8_gpu_training.sources.requirements import requirements_from_command

        found: dict[str, list[Requirement]] = {}
        starting: set[str] = set()
        for command in commands:
            if command.name in _STARTERS and command.location.path.endswith(".sh"):
                starting.add(command.location.path)
            for item in requirements_from_command(command):
                found.setdefault(command.location.path, []).append(item)
        for path, items in found.items():
            # What a script installs for the run that it starts is not for those beside it.
            homes = frozenset() if path in starting else self._homes(path, _SCRIPTS)
            yield Source(path, INSTALLED, tuple(items), homes)

    def _images(self) -> Iterator[Source]:
        found: dict[str, list[Requirement]] = {}
        for setting in self._settings():
            for item in _of_image(setting):
                found.setdefault(item.location.path, []).append(item)
        for path, held in found.items():
            if not self._is_auxiliary(path):
                yield Source(path, IMAGE, tuple(held), self._homes(path, _SCRIPTS))

    def _settings(self) -> Iterator[Setting]:
        for script in self.project.scripts():
            yield from script.directives
        for config in self.project.configs():
            yield from config.resources

    def _is_auxiliary(self, path: str) -> bool:
        return self.project.is_auxiliary(path)

    def _homes(self, path: str, shared: frozenset[str]) -> frozenset[str]:
        """The folder of a file, and those above it while it is no folder of programs."""
        folder = posixpath.dirname(path)
        found = {folder}
        while folder and (
            posixpath.basename(folder).lower() in shared or folder not in self._folders
        ):
            folder = posixpath.dirname(folder)
            found.add(folder)
        return frozenset(found)


def _page_of(path: str) -> str:
    """What numbered scripts have in common that are the steps of one page; "" of others."""
    found = _NUMBERED.fullmatch(path)
    return found[1] if found is not None else ""


def _is_another_page(source: Source, pages: frozenset[str]) -> bool:
    """Whether a step of one page speaks where another page's is asked about: it does not hold."""
    page = _page_of(source.path)
    return (
        bool(pages and page)
        and page not in pages
        and _INSTALLS.fullmatch(posixpath.basename(page)) is None
    )


def _folders_of_scripts(project: Project) -> frozenset[str]:
    """Folders with programs or shell scripts, at any depth."""
    kinds = (PYTHON_KINDS | SCRIPT_KINDS) - {FileKind.DOCKERFILE}
    found: set[str] = set()
    for path in project.files:
        if project.kind(path) in kinds and posixpath.basename(path) != "setup.py":
            folder = posixpath.dirname(path)
            while folder and folder not in found:
                found.add(folder)
                folder = posixpath.dirname(folder)
    return frozenset(found)


def _readmes_of(project: Project) -> Mapping[str, list[str]]:
    """By folder, what may name versions that are no requirements."""
    found: dict[str, list[str]] = {}
    for path in project.files:
        folder, name = posixpath.split(path)
        if _NAMES_VERSIONS.search(name):
            found.setdefault(folder, []).append(path)
    return found


def _upwards(paths: Iterable[str]) -> Iterator[str]:
    """The folders of ``paths`` and those above them, the nearest first; the root is last."""
    seen: set[str] = set()
    for path in paths:
        folder = posixpath.dirname(path)
        while folder and folder not in seen:
            seen.add(folder)
            yield folder
            folder = posixpath.dirname(folder)
    yield ""


def _of_image(setting: Setting) -> tuple[Requirement, ...]:
    from flake8_gpu_training.sources.requirements import requirements_from_image

    place = setting.location
    if setting.name != "image" or not isinstance(setting.value, str) or place is None:
        return ()
    return requirements_from_image(setting.value, place)
