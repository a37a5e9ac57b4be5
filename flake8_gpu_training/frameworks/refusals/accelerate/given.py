"""What Accelerate's launcher and constructors are given."""

from __future__ import annotations

from typing import Any

from flake8_gpu_training.facts import Origin, known
from flake8_gpu_training.frameworks.refusals.base import Options, UndecidedError

MODES = ("cpu", "multi_gpu", "tpu", "use_deepspeed", "use_fsdp")
"""Flags of which the launcher takes one."""


def given(options: Options, name: str) -> Any:
    """The value that is given; None when nothing is."""
    setting = options.given.get(name)
    if setting is None:
        return None
    if not known(setting.value):
        raise UndecidedError(name)
    return setting.value


def is_flag(options: Options, name: str) -> bool:
    """Whether the command itself gives a value."""
    setting = options.run.launcher.options.get(name)
    return setting is not None and setting.origin is Origin.FLAG
