"""Helpers that framework modules share: finding settings, and turning them into practices."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, Optional

from flake8_gpu_training.facts import Location, Origin, Setting, Unknown, known
from flake8_gpu_training.runs.model import Run, RunKind

NEWEST = (10**6,)
# Nothing is counted so far; infinity, NaN and what no float can hold are no figures either.
_NO_FIGURE = 1e18
_OFF = ("", "none", "null", "no", "false")
_DTYPES: Mapping[str, str] = {
    "bfloat16": "bf16",
    "bf16": "bf16",
    "float16": "fp16",
    "fp16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "fp32": "fp32",
    "float": "fp32",
    "fp8": "fp8",
}


def find(run: Run, *names: str) -> Optional[Setting]:
    """The first of the run's settings among ``names`` that was written, or None."""
    for name in names:
        setting = run.settings.get(name)
        if setting is not None:
            return setting
    return None


def practice(name: str, value: Any, of: Optional[Setting] = None, note: str = "") -> Setting:
    """A practice with the place of the setting it follows from, or of nobody's."""
    if of is None:
        return Setting(name, value, None, Origin.DEFAULT, note)
    if not known(of.value):
        value = of.value
    text = note or of.note or of.written
    return Setting(name, value, of.location, of.origin, text, of.text, of.value_location)


def renamed(setting: Setting, name: str, value: Any) -> Setting:
    """``setting`` as the practice ``name``, its evidence kept."""
    note = setting.note or setting.written
    return dataclasses.replace(setting, name=name, value=value, note=note)


def unknown(name: str, reason: str, *candidates: Any, at: Optional[Location] = None) -> Setting:
    """A practice that only the run could tell."""
    return Setting(name, Unknown(reason, candidates), at, Origin.DERIVED)


def by_default(run: Run, name: str, value: Any, note: str) -> dict[str, Setting]:
    """``{name: value}`` as nobody's setting; nothing when unseen settings may say otherwise."""
    if run.is_open or run.kind is RunKind.OTHER:
        return {}
    return {name: practice(name, value, None, note)}


def is_off(value: Any) -> bool:
    """Whether a known value says "none": None, False, or a word for it."""
    if value is None or value is False:
        return True
    if isinstance(value, (list, dict)):
        return len(value) == 0 or value == ["none"]
    return isinstance(value, str) and value.strip().lower() in _OFF


def truth(value: Any) -> Optional[bool]:
    """A known value as a truth value, or None when it is none."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false", "yes", "no"):
        return value.lower() in ("true", "yes")
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    return None


def is_true(setting: Optional[Setting]) -> bool:
    """Whether a setting is known to be true."""
    return setting is not None and known(setting.value) and truth(setting.value) is True


def number(value: Any) -> Optional[float]:
    """A known value as a finite number, or None."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value if abs(value) < _NO_FIGURE else None
    return None


def dtype(value: Any) -> Optional[str]:
    """``torch.bfloat16``, ``"bfloat16"`` or ``bf16`` as ``bf16``; None when it is no type."""
    if not isinstance(value, str):
        return None
    return _DTYPES.get(value.rpartition(".")[2].strip("\"' ").lower())


def version_of(run: Run, distribution: str) -> tuple[int, ...]:
    """The pinned version of ``distribution``, else one newer than all."""
    return parsed(run.versions.get(distribution, ""))


def parsed(version: str) -> tuple[int, ...]:
    """``4.46.3`` as ``(4, 46, 3)``; newer than all when it is no version."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match.group().split(".")) if match else NEWEST


def warmup(ratio: Optional[Setting], steps: Optional[Setting]) -> Optional[Setting]:
    """Warm-up from a ratio and a number of steps, of which either may be missing."""
    written = [setting for setting in (steps, ratio) if setting is not None]
    for setting in written:
        if not known(setting.value):
            return practice("warmup", setting.value, setting)
        if number(setting.value):
            return practice("warmup", setting.value, setting)
    return practice("warmup", 0, written[0]) if written else None
