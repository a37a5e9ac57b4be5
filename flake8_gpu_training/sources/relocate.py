"""Moves facts that were read from a part of a file to their places in the whole file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Callable, TypeVar

from flake8_gpu_training.facts import Location

Place = Callable[[Location], Location]
_T = TypeVar("_T")


def relocate(facts: _T, place: Place) -> _T:
    """A copy of ``facts`` (a container, or anything in one) with ``place`` applied to every
    location."""
    return _Relocation(place).apply(facts)  # type: ignore[no-any-return]


class _Relocation:
    """Facts share parts (a loop and the calls in it), which are copied once."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.done: dict[int, Any] = {}

    def apply(self, value: Any) -> Any:
        if isinstance(value, Location):
            return self.place(value)
        if value is None or isinstance(value, (str, bool, int, float)):
            return value
        if id(value) not in self.done:
            self.done[id(value)] = self._copy(value)
        return self.done[id(value)]

    def _copy(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: self.apply(inner) for key, inner in value.items()}
        if isinstance(value, tuple):
            return tuple(self.apply(inner) for inner in value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._dataclass(value)
        return value

    def _dataclass(self, value: Any) -> Any:
        changes = {}
        for field in dataclasses.fields(value):
            old = getattr(value, field.name)
            new = self.apply(old)
            if new is not old:
                changes[field.name] = new
        return dataclasses.replace(value, **changes) if changes else value
