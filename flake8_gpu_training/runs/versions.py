"""Which versions a project pins, from requirements, container images and install commands."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import Optional

from flake8_gpu_training.facts import Command, Requirement, Setting
from flake8_gpu_training.project import Project

_CONTAINERS = frozenset({"docker", "podman", "nvidia-docker"})
_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "pipfile.lock")
# ``~=4.46.0`` and ``==4.46.*`` say the minor version: as good as a pin to choose parameters.
_COMPATIBLE = re.compile(r"(?:~=\s*(\d+(?:\.\d+)+)|==\s*(\d+(?:\.\d+)+)\.\*)")


def pinned_versions(project: Project, commands: Iterable[Command] = ()) -> dict[str, str]:
    """Exact versions by package name; a package pinned to several versions is left out.

    Lock files win over requirements, those over what commands install and images hold. What a
    notebook installs is for that notebook alone.
    """
    locked: list[Requirement] = []
    required: list[Requirement] = []
    for file in project.requirements():
        if project.is_auxiliary(file.path):
            continue
        is_lock = file.path.rpartition("/")[2].lower() in _LOCKS
        (locked if is_lock else required).extend(file.requirements)
    versions = _agreed(locked)
    shared = (command for command in commands if not _is_of_notebook(command))
    for source in (required, _installed(shared), _images(project)):
        for name, version in _agreed(source).items():
            versions.setdefault(name, version)
    return dict(sorted(versions.items()))


def notebook_versions(commands: Iterable[Command]) -> dict[str, dict[str, str]]:
    """What each notebook installs for itself, by its path."""
    found: dict[str, list[Command]] = {}
    for command in commands:
        if _is_of_notebook(command):
            found.setdefault(command.location.path, []).append(command)
    return {path: _agreed(_installed(own)) for path, own in found.items()}


def image_versions(command: Optional[Command]) -> dict[str, str]:
    """What the image holds that ``docker run`` starts a command in; it is that command's alone."""
    from flake8_gpu_training.sources.requirements import requirements_from_image

    found: dict[str, str] = {}
    for wrapper in command.wrappers if command is not None else ():
        words = [word.text for word in wrapper]
        if posixpath.basename(words[0]) not in _CONTAINERS or "run" not in words[1:3]:
            continue
        found.update(_agreed(requirements_from_image(words[-1], wrapper[-1].location)))
    return found


def _is_of_notebook(command: Command) -> bool:
    return command.location.path.endswith(".ipynb")


def _agreed(requirements: Iterable[Requirement]) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for item in requirements:
        version = _version(item)
        if version is not None:
            found.setdefault(item.name, set()).add(version)
    return {name: next(iter(these)) for name, these in found.items() if len(these) == 1}


def _version(requirement: Requirement) -> Optional[str]:
    if requirement.version:
        return requirement.version
    match = _COMPATIBLE.search(requirement.specifier)
    return (match.group(1) or match.group(2)) if match is not None else None


def _installed(commands: Iterable[Command]) -> list[Requirement]:
    from flake8_gpu_training.sources.requirements import requirements_from_command

    return [item for command in commands for item in requirements_from_command(command)]


def _images(project: Project) -> list[Requirement]:
    found: list[Requirement] = []
    for script in project.scripts():
        for directive in script.directives:
            found += _image(project, directive)
    for config in project.configs():
        for resource in config.resources:
            found += _image(project, resource)
    return found


def _image(project: Project, setting: Setting) -> tuple[Requirement, ...]:
    from flake8_gpu_training.sources.requirements import requirements_from_image

    place = setting.location
    if setting.name != "image" or not isinstance(setting.value, str) or place is None:
        return ()
    if project.is_auxiliary(place.path):
        return ()
    return requirements_from_image(setting.value, place)
