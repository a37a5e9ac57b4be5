"""Sets Python's garbage collector for a program that makes many objects and then ends."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS = 50_000
"""New objects after which the collector looks at them; Python's own figure is 700."""


@contextmanager
def rarely_collecting() -> Iterator[None]:
    """Garbage is looked for rarely: trees and facts are many objects, few of them in cycles."""
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
