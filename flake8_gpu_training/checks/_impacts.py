"""Expected gains for practices that nobody has measured in general."""

from __future__ import annotations

from types import MappingProxyType

from flake8_gpu_training.checks.base import Impact, Priority
from flake8_gpu_training.language import Text

# What each priority stands for, in percent of throughput.
_RANGES = MappingProxyType({Priority.HIGH: (30, 100), Priority.MEDIUM: (10, 30)})
_LOW = (0, 10)
_NO_NOTE = Text("", "")


def by_class(priority: Priority, basis: str, note: Text = _NO_NOTE) -> Impact:
    """The range that the priority stands for; ``basis`` says why there is a gain at all."""
    said = f"range of the priority class, not a measurement; {basis}"
    return Impact(throughput=_RANGES.get(priority, _LOW), note=note, source=said)
