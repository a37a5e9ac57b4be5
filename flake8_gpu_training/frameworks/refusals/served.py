"""What the rules of vLLM and SGLang ask of the options of an engine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Optional

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.refusals.base import Options, UndecidedError
from flake8_gpu_training.language import Text
from flake8_gpu_training.models import model_of

_HEADS: tuple[tuple[str, int], ...] = (
    (r"qwen1\.5-32b(-chat)?", 40),
    (r"qwen2-vl-2b(-instruct)?", 12),
    (r"qwen2-vl-7b(-instruct)?", 28),
    (r"qwen2\.5-vl-7b(-instruct)?", 28),
)
"""Attention heads of models whose whole shape is in no table (config.json on the hub)."""
_CHANGED = re.compile(r"(?i)eagle|draft|speculator|prun|minitron|tiny|random|distill.*layer|slim")
"""Names of models that are made of another one with a shape of their own."""


def heads(options: Options, name: str = "model") -> int:
    """Attention heads of the model that is served."""
    named = options[name]
    if not isinstance(named, str) or _CHANGED.search(named):
        raise UndecidedError(name)
    model = options.run.model
    found: Optional[int] = model.heads if model.name == named else None
    if found is None:
        found = model_of(named).heads or _published(named)
    if found is None or found < 1:
        raise UndecidedError(name)
    return found


def _published(named: str) -> Optional[int]:
    last = named.rstrip("/").rpartition("/")[2].lower()
    return next((number for pattern, number in _HEADS if re.fullmatch(pattern, last)), None)


def fitting(total: int, size: int) -> int:
    """A divisor of ``total`` below ``size``: the greatest power of 2, else the greatest."""
    divisors = [number for number in range(1, max(size, 2)) if total % number == 0]
    powers = [number for number in divisors if number & (number - 1) == 0]
    return powers[-1] if powers[-1] > 1 else divisors[-1]


def canonical(options: Options, *names: str) -> str:
    """The name that the release at hand has for a parameter of several names."""
    parameters = options.accepted.parameters
    found = next((parameters[name].name for name in names if name in parameters), "")
    if not found:
        raise UndecidedError(names[0])
    return found


def whole(options: Options, *names: str) -> int:
    """A whole number, under the first of ``names`` that the release at hand has."""
    value = options[canonical(options, *names)]
    if isinstance(value, bool) or not isinstance(value, int):
        raise UndecidedError(names[0])
    return value


def positive(options: Options, *names: str) -> int:
    """A size; what is below 1 is left to others."""
    value = whole(options, *names)
    if value < 1:
        raise UndecidedError(names[0])
    return value


def is_on(options: Options, name: str) -> bool:
    """Whether a switch is on; off where the release does not have it."""
    return options.takes(name) and options[name] is True


def given(options: Options, name: str) -> Any:
    """A value that somebody writes; raises UndecidedError when nobody does."""
    if not options.takes(name) or not options.is_given(name):
        raise UndecidedError(name)
    return options[name]


def visible_gpus(options: Options) -> int:
    """GPUs that CUDA_VISIBLE_DEVICES leaves visible."""
    setting = options.run.environment.get("CUDA_VISIBLE_DEVICES")
    if setting is None or not known(setting.value):
        raise UndecidedError("CUDA_VISIBLE_DEVICES")
    listed = [one.strip() for one in str(setting.value).split(",") if one.strip()]
    if not listed or not all(one.isdigit() for one in listed):
        raise UndecidedError("CUDA_VISIBLE_DEVICES")
    return len(listed)


def drop(name: str) -> Text:
    """The instruction to leave a parameter out."""
    return Text(f"去掉 {{--{name}}}", f"drop {{--{name}}}")


def figures_of(**numbers: Any) -> Any:
    """The figures that a rule's words name: functions of the options."""

    def figures(options: Options) -> Mapping[str, Any]:
        return {name: number(options) for name, number in numbers.items()}

    return figures
