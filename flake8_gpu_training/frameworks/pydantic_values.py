"""Which values a pydantic model refuses for a field of a plain type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Callable

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.tables import Parameter

_TRUTHS = frozenset("0 off f false n no 1 on t true y yes".split())  # noqa: SIM905
_WHOLE = re.compile(r"\s*[+-]?\d+(?:\.0*)?\s*")


def is_refused(parameter: Parameter, value: Any, *, strict: bool = True) -> bool:
    """Whether a model refuses ``value``; ``strict``: pydantic 2, which cuts no fractions off."""
    if not known(value) or len(parameter.types) != 1:
        return False
    if value is None:
        return parameter.has_default and parameter.default is not None and not parameter.optional
    refuses = _REFUSES.get(parameter.types[0])
    return refuses is not None and refuses(value, strict)


def _no_bool(value: Any, strict: bool) -> bool:
    if isinstance(value, str):
        return value.lower() not in _TRUTHS
    return not isinstance(value, (bool, int, float)) or value not in (0, 1)


def _no_int(value: Any, strict: bool) -> bool:
    if isinstance(value, str):
        return _WHOLE.fullmatch(value) is None
    if isinstance(value, float):
        return strict and not value.is_integer()
    return not isinstance(value, int)


def _no_float(value: Any, strict: bool) -> bool:
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return True
        return False
    return not isinstance(value, (int, float))


_REFUSES: Mapping[str, Callable[[Any, bool], bool]] = {
    "bool": _no_bool,
    "int": _no_int,
    "float": _no_float,
    "dict": lambda value, strict: not isinstance(value, dict),
    "list": lambda value, strict: isinstance(value, (str, int, float, dict)),
}
