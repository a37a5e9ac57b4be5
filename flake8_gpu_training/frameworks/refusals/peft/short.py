"""Rules about one field of a configuration of PEFT, in short."""

from __future__ import annotations

from typing import Any, Callable

from flake8_gpu_training.frameworks.refusals import fields
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.language import Text

PATH = "peft/tuners"


def source(group: str) -> str:
    """Where a configuration checks itself."""
    return f"{PATH}, {group}.__post_init__"


def among(group: str, parameter: str, *choices: Any, since: str = "") -> Refusal:
    """The field must be one of the choices."""
    return fields.among(group, parameter, choices, source(group), since=since)


def always(options: Options) -> bool:
    """For fields that are always asked about."""
    return True


def satisfying(
    group: str,
    parameter: str,
    holds: Callable[[Any], bool],
    wanted: Text,
    since: str = "",
    when: Callable[[Options], bool] = always,
) -> Refusal:
    """The field must satisfy ``holds``, where ``when`` tells that it is asked at all."""
    return fields.satisfying(group, parameter, holds, wanted, source(group), when=when, since=since)


ABOVE_0 = Text("大于 0 的数", "more than 0")
FROM_0 = Text("不小于 0 的数", "0 or more")
_RATIO = Text("0 到 1 的数", "a number from 0 to 1")


def above(
    group: str, parameter: str, since: str = "", when: Callable[[Options], bool] = always
) -> Refusal:
    """The field must be above 0."""
    return satisfying(group, parameter, lambda value: value > 0, ABOVE_0, since, when)


def from_0(group: str, parameter: str, since: str = "") -> Refusal:
    """The field must be 0 or more."""
    return satisfying(group, parameter, lambda value: value >= 0, FROM_0, since)


def ratio(group: str, parameter: str, since: str = "") -> Refusal:
    """The field must lie between 0 and 1."""
    return satisfying(group, parameter, lambda value: 0 <= value <= 1, _RATIO, since)
