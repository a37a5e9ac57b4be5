"""Values of a shell script: text that remembers where each piece of it was written."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Optional

from ..facts import Location, Origin, Setting, Unknown, Word

MAX_CANDIDATES = 16


class Source:
    """Text of a file, and the places of its characters."""

    def __init__(self, text: str, path: str, first_line: int = 1, column: int = 1) -> None:
        self.text = text
        self.path = path
        self._first_line = first_line
        self._column = column
        self._starts: Optional[list[int]] = None

    def location(self, offset: int) -> Location:
        """Where the character at ``offset`` stands."""
        if self._starts is None:
            self._starts = [0]
            self._starts.extend(i + 1 for i, char in enumerate(self.text) if char == "\n")
        row = bisect_right(self._starts, offset) - 1
        column = offset - self._starts[row] + (self._column if row == 0 else 1)
        return Location(self.path, self._first_line + row, column)

    def end(self, offset: int) -> Location:
        """Where text that ends before ``offset`` ends."""
        return self.location(offset)

    def piece(self, text: str, offset: int) -> Chunk:
        """``text`` as written at ``offset``."""
        return Chunk(text, self, offset)


class Composed(Source):
    """Text put together from pieces of other sources (``eval``, ``bash -c``, recipes)."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        super().__init__("".join(chunk.text for chunk in chunks), "")
        self._chunks = [chunk for chunk in chunks if chunk.text]
        self._offsets = list(accumulate((len(c.text) for c in self._chunks), initial=0))

    def location(self, offset: int) -> Location:
        if not self._chunks:
            return Location("")
        index = min(bisect_right(self._offsets, offset) - 1, len(self._chunks) - 1)
        chunk = self._chunks[index]
        shift = min(offset - self._offsets[index], len(chunk.text)) if chunk.verbatim else 0
        return chunk.source.location(chunk.offset + shift)

    def end(self, offset: int) -> Location:
        if not self._chunks:
            return Location("")
        index = max(0, min(bisect_right(self._offsets, offset - 1) - 1, len(self._chunks) - 1))
        chunk = self._chunks[index]
        width = offset - self._offsets[index] if chunk.verbatim else chunk.width
        return chunk.source.end(chunk.offset + width)


@dataclass(frozen=True)
class Chunk:
    """A piece of a value. ``verbatim``: its characters stand side by side at ``offset``.

    ``width``: how many characters of the source one that is not verbatim stands for.
    """

    text: str
    source: Source
    offset: int
    unknown: Optional[Unknown] = None
    verbatim: bool = True
    width: int = 0

    def part(self, start: int, end: int) -> Chunk:
        """Characters ``start:end`` of the chunk."""
        shift = start if self.verbatim else 0
        offset = self.offset + shift
        text = self.text[start:end]
        return Chunk(text, self.source, offset, self.unknown, self.verbatim, self.width)

    @property
    def location(self) -> Location:
        return self.source.location(self.offset)


Value = tuple[Chunk, ...]


def text_of(value: Sequence[Chunk]) -> str:
    """The value's text; what is unknown appears as it was written."""
    return "".join(chunk.text for chunk in value)


def is_known(value: Sequence[Chunk]) -> bool:
    """Whether no piece of the value is unknown."""
    return all(chunk.unknown is None for chunk in value)


def plain(value: Sequence[Chunk]) -> Any:
    """The value as a str, or as Unknown with the candidates that could be listed."""
    unknown = [chunk.unknown for chunk in value if chunk.unknown is not None]
    if not unknown:
        return text_of(value)
    candidates = [""]
    for chunk in value:
        if chunk.unknown is None:
            candidates = [made + chunk.text for made in candidates]
            continue
        choices = [choice for choice in chunk.unknown.candidates if isinstance(choice, str)]
        if not choices or len(choices) * len(candidates) > MAX_CANDIDATES:
            return Unknown(unknown[0].reason)
        candidates = [made + choice for made in candidates for choice in choices]
    return Unknown(unknown[0].reason, tuple(dict.fromkeys(candidates)))


def anchored(value: Value, source: Source, start: int, end: int) -> Value:
    """``value`` with what an expansion put between ``start`` and ``end`` placed there.

    A value without any text of its own there stays as it is.
    """
    own = [chunk.source is source and start <= chunk.offset <= end for chunk in value]
    if not any(own) or all(own):
        return value
    made: list[Chunk] = []
    at = start
    for i, chunk in enumerate(value):
        if own[i]:
            made.append(chunk)
            at = chunk.offset + (len(chunk.text) if chunk.verbatim else chunk.width)
            continue
        after = next((c.offset for c, here in zip(value[i:], own[i:]) if here), end)
        made.append(Chunk(chunk.text, source, at, chunk.unknown, False, max(0, after - at)))
    return tuple(made)


@dataclass(frozen=True)
class Field:
    """A word after expansion: its value, its place, and its text as written."""

    value: Value
    source: Source
    offset: int
    raw: str = ""
    quoted: bool = False

    @property
    def text(self) -> str:
        return text_of(self.value)

    def word(self) -> Word:
        """The fact."""
        value = plain(self.value)
        place = self.source.location(self.offset)
        if isinstance(value, str):
            return Word(value, place, self.raw)
        raw = self.text
        return Word(value, place, raw, not self.quoted or raw.endswith("[@]}"))


@dataclass(frozen=True)
class Variable:
    """A shell variable: text, or the elements of an array."""

    value: Value
    location: Optional[Location]
    exported: bool = False
    elements: Optional[tuple[Value, ...]] = None

    def setting(self, name: str, origin: Origin = Origin.FILE) -> Setting:
        """The fact that it is set, with its text where that stands in the file as it is."""
        literal = self.value[0] if len(self.value) == 1 else None
        if literal is None or literal.unknown is not None or not literal.verbatim:
            return Setting(name, self.plain(), self.location, origin)
        text = literal.text
        return Setting(name, text, self.location, origin, "", text, literal.location)

    def plain(self) -> Any:
        """Its value as a fact: a str, Unknown, or a tuple of those for an array."""
        if self.elements is not None:
            return tuple(plain(element) for element in self.elements)
        return plain(self.value)
