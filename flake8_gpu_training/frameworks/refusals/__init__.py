"""What each framework's own validation refuses at start, as declared rules with their sources.

One module a distribution, named as its table (``-`` as ``_``); each declares ``REFUSALS``.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from importlib import import_module

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal

_MODULES = frozenset(
    {
        "accelerate",
        "deepspeed",
        "flow_factory",
        "llamafactory",
        "ms_swift",
        "peft",
        "sglang",
        "torch",
        "transformers",
        "trl",
        "videox_fun",
        "vllm",
    }
)
"""Distributions that have a module of rules."""


@functools.cache
def refusals_of(distribution: str) -> tuple[Refusal, ...]:
    """The rules of a distribution (``transformers``, ``ms-swift`` …); none when it has none."""
    name = distribution.replace("-", "_")
    if name not in _MODULES:
        return ()
    module = import_module(f"flake8_gpu_training.frameworks.refusals.{name}")
    found: tuple[Refusal, ...] = module.REFUSALS
    return found


def all_refusals() -> dict[str, tuple[Refusal, ...]]:
    """The rules of every distribution that has some."""
    return {name: refusals_of(name) for name in sorted(_MODULES)}


def handed_on(options: Options, distribution: str) -> Options:
    """``options`` as the classes of ``distribution`` get them of the program that is run."""
    program = options.accepted.parts[0].distribution
    if program != "ms-swift" or distribution == program:
        return options
    from flake8_gpu_training.frameworks.refusals.ms_swift.filled import FILLED

    return replace(options, filled=FILLED)
