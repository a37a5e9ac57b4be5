"""Which versions the container image of one command pins."""

from __future__ import annotations

import posixpath
from typing import Optional

from flake8_gpu_training.facts import Command

_CONTAINERS = frozenset({"docker", "podman", "nerdctl", "nvidia-docker"})


def image_versions(command: Optional[Command]) -> dict[str, str]:
    """What the image holds that ``docker run`` starts a command in; it is that command's alone."""
    from flake8_gpu_training.sources.requirements import requirements_from_image

    found: dict[str, str] = {}
    for wrapper in command.wrappers if command is not None else ():
        words = [word.text for word in wrapper]
        if posixpath.basename(words[0]) not in _CONTAINERS or "run" not in words[1:-1]:
            continue
        for item in requirements_from_image(words[-1], wrapper[-1].location):
            if item.version:
                found[item.name] = item.version
    return found
