"""Which versions the container images of one command, or of its job description, pin."""

from __future__ import annotations

import posixpath
from typing import Optional

from flake8_gpu_training.facts import CONTAINERS, Command, ConfigFile


def image_versions(command: Optional[Command]) -> dict[str, str]:
    """What the image holds that ``docker run`` starts a command in; it is that command's alone."""
    from flake8_gpu_training.sources.requirements import requirements_from_image

    found: dict[str, str] = {}
    for wrapper in command.wrappers if command is not None else ():
        words = [word.text for word in wrapper]
        if posixpath.basename(words[0]) not in CONTAINERS or "run" not in words[1:-1]:
            continue
        for item in requirements_from_image(words[-1], wrapper[-1].location):
            if item.version:
                found[item.name] = item.version
    return found


def job_versions(job: Optional[ConfigFile], command: Optional[Command]) -> dict[str, str]:
    """What the one image of a command's container in its job description holds."""
    from flake8_gpu_training.sources.requirements import requirements_from_image

    if job is None or command is None or command.location.path != job.path:
        return {}
    images = [one for one in job.resources if one.name == "image" and isinstance(one.value, str)]
    if len({one.value for one in images}) != 1:
        return {}
    found = requirements_from_image(images[0].value, images[0].location or command.location)
    return {item.name: item.version for item in found if item.version}


def latest_in(job: Optional[ConfigFile], command: Optional[Command]) -> frozenset[str]:
    """Servers of which all images in the command's own job description are the latest.

    What descriptions beside it pin is theirs.
    """
    from flake8_gpu_training.sources.requirements import requirements_from_image

    if job is None or command is None or command.location.path != job.path:
        return frozenset()
    pinned: dict[str, bool] = {}
    for setting in job.resources:
        if setting.name != "image" or not isinstance(setting.value, str):
            continue
        for item in requirements_from_image(setting.value, setting.location or command.location):
            told = bool(item.version or item.specifier or item.by_address)
            pinned[item.name] = pinned.get(item.name, False) or told
    return frozenset(name for name in ("vllm", "sglang") if pinned.get(name) is False)
