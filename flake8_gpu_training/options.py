"""What users ask of the linter, the same for flake8's options and for gpu-lint's."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Optional

from packaging.version import InvalidVersion, Version

from flake8_gpu_training.checks.base import Priority
from flake8_gpu_training.frameworks.registry import MODULES
from flake8_gpu_training.frameworks.tables import distributions
from flake8_gpu_training.hardware import GPUS, gpu_named
from flake8_gpu_training.runs.model import Hardware, Run

AUTO = "auto"


class OptionError(ValueError):
    """An option has a value that means nothing; the message says what it takes."""


@dataclass(frozen=True)
class Options:
    """``frameworks``: ids, empty for all that are found. ``gpus``: per node."""

    minimum: Priority = Priority.MEDIUM
    gpu: Optional[str] = None
    gpus: Optional[int] = None
    frameworks: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


def options_from(
    minimum: str, gpu: Optional[str], gpus: Optional[int], frameworks: str, versions: str
) -> Options:
    """Options from the texts a user wrote.

    Raises:
        OptionError: for a priority, GPU, framework or version that is none.
    """
    return Options(
        _priority(minimum),
        _gpu(gpu),
        _count(gpus),
        _frameworks(frameworks),
        _versions(versions),
    )


def on_hardware(run: Run, options: Options) -> Run:
    """``run`` on the GPUs that the options name, if they do."""
    if options.gpu is None and options.gpus is None:
        return run
    hardware: Hardware = run.hardware
    if options.gpu is not None:
        hardware = dataclasses.replace(
            hardware,
            gpu=options.gpu,
            memory_gib=GPUS[options.gpu].memory_gib,
            architecture=GPUS[options.gpu].architecture,
            source="--gpu-target-gpu",
            location=None,
            weak=False,
        )
    if options.gpus is not None:
        hardware = dataclasses.replace(hardware, gpus_per_node=options.gpus)
    return dataclasses.replace(run, hardware=hardware)


def _priority(text: str) -> Priority:
    try:
        return Priority(text.strip().lower())
    except ValueError:
        raise OptionError(f"unknown priority {text!r}: use high, medium or low") from None


def _gpu(text: Optional[str]) -> Optional[str]:
    if not text:
        return None
    found = gpu_named(text)
    if found is None:
        raise OptionError(f"unknown GPU {text!r}: use one of {', '.join(GPUS)}")
    return found.name


def _count(number: Optional[int]) -> Optional[int]:
    if number is not None and number < 1:
        raise OptionError(f"a number of GPUs is 1 or more, not {number}")
    return number


def _frameworks(text: str) -> tuple[str, ...]:
    names = _split(text)
    if names == [AUTO]:
        return ()
    for name in names:
        if name not in MODULES:
            raise OptionError(f"unknown framework {name!r}: use auto or {', '.join(MODULES)}")
    return tuple(names)


def _versions(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in _split(text):
        name, equals, version = item.partition("=")
        if not (name and equals and version):
            raise OptionError(f"{item!r} is no version: write transformers=4.46")
        found[_distribution(name)] = _release(version.strip())
    return found


# Frameworks whose id is not the name of their distribution.
_DISTRIBUTIONS = {"swift": "ms-swift", "hf-trainer": "transformers"}


def _distribution(name: str) -> str:
    """Name of a distribution; a near miss of one with a table would silently change nothing."""
    normal = name.strip().lower().replace("_", "-")
    normal = _DISTRIBUTIONS.get(normal, normal)
    known = distributions()
    near = difflib.get_close_matches(normal, known, 1, _NEAR)
    if normal not in known and near:
        raise OptionError(f"unknown distribution {name.strip()!r}: did you mean {near[0]}?")
    return normal


_NEAR = 0.85  # transformer, lama-factory; not torch and torchvision


def _release(text: str) -> str:
    try:
        Version(text)
    except InvalidVersion:
        raise OptionError(f"{text!r} is no version: write one like 4.46") from None
    return text


def _split(text: str) -> Sequence[str]:
    return [part for part in text.replace(",", " ").split() if part]
