"""Every check, in the order of codes."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module

from flake8_gpu_training.checks.base import Check

MODULES = (
    "mistakes",  # GPU0xx
    "parallelism",  # GPU1xx
    "memory",  # GPU2xx
    "compute",  # GPU3xx
    "communication",  # GPU4xx
    "debugging",  # GPU308 to GPU310, GPU407, GPU408
    "data",  # GPU5xx
    "strategy",  # GPU6xx
    "multimodal",  # GPU7xx
    "hot_loops",  # GPU35x, GPU55x
    "infrastructure",  # GPU8xx
    "inference",  # GPU9xx
)


@lru_cache(maxsize=1)
def all_checks() -> tuple[Check, ...]:
    """All checks; each module declares its own in ``CHECKS``."""
    found: list[Check] = []
    for name in MODULES:
        found.extend(import_module(f"flake8_gpu_training.checks.{name}").CHECKS)
    return tuple(sorted(found, key=lambda check: check.code))
