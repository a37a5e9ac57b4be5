"""Reads TOML: values from tomli, places of the keys from a scan of the text."""

from __future__ import annotations

import re
from bisect import bisect_right
from datetime import date, datetime, time
from typing import Any, Optional, Union

from flake8_gpu_training.facts import (
    ConfigFile,
    Document,
    Entry,
    Location,
    Node,
    Problem,
    ProblemKind,
)
from flake8_gpu_training.sources.text import conflict, decode

MAX_BYTES = 1_000_000
MAX_DEPTH = 100

_Key = tuple[Union[str, int], ...]
_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_NAME = re.compile(r'[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'')
_SCALAR = re.compile(
    r'"""(?s:(?:[^\\]|\\.)*?)"""+|\'\'\'(?s:.*?)\'\'\'+|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\''
    r"|[^,\]}\n#]+"
)


def read_toml(text: Union[str, bytes], path: str) -> ConfigFile:
    """The document of a TOML file, with what could not be read; never raises.

    Dates and times are given as text.
    """
    if len(text) > MAX_BYTES:
        problem = Problem(ProblemKind.TOO_LARGE, f"larger than {MAX_BYTES:,} bytes", Location(path))
        return ConfigFile(path, problems=(problem,))
    content, problems = decode(text, path)
    if any(problem.kind is ProblemKind.UNREADABLE for problem in problems):
        return ConfigFile(path, problems=problems)
    import tomli

    try:
        data = tomli.loads(content)
        places = _Places(content, path)
        places.read()
        root = _node(data, (), places, Location(path))
    except tomli.TOMLDecodeError as error:
        told = conflict(content, path) or _syntax(str(error), path)
        return ConfigFile(path, problems=(*problems, told))
    except (RecursionError, ValueError, OverflowError) as error:
        kind = ProblemKind.TOO_DEEP if isinstance(error, RecursionError) else ProblemKind.SYNTAX
        problem = Problem(kind, "not readable as TOML", Location(path))
        return ConfigFile(path, problems=(*problems, problem))
    return ConfigFile(path, (Document(path, root, language="toml"),), problems=problems)


def _syntax(message: str, path: str) -> Problem:
    place = re.search(r"\(at line (\d+), column (\d+)\)", message)
    location = Location(path, int(place.group(1)), int(place.group(2))) if place else Location(path)
    return Problem(ProblemKind.SYNTAX, message.partition(" (at ")[0], location)


def _node(value: Any, key: _Key, places: _Places, nearest: Location) -> Node:
    """``value`` as a node; what the scan did not place stands at its parent's place."""
    if len(key) > MAX_DEPTH:
        raise RecursionError
    location = places.values.get(key, nearest)
    if isinstance(value, dict):
        mapping: dict[str, Entry] = {}
        for name, inner in value.items():
            place = places.keys.get((*key, name), location)
            mapping[name] = Entry(name, place, _node(inner, (*key, name), places, place))
        return Node(None, location, mapping=mapping, kind="mapping")
    if isinstance(value, list):
        items = tuple(
            _node(inner, (*key, index), places, location) for index, inner in enumerate(value)
        )
        return Node(None, location, items=items, kind="sequence")
    if isinstance(value, (datetime, date, time)):
        value = value.isoformat()
    text = value if isinstance(value, str) else places.text(key)
    return Node(value, location, text=text, content=places.content(key, text))


class _Places:
    """Places of the keys and values of a text that tomli has accepted."""

    def __init__(self, text: str, path: str) -> None:
        self.source = text
        self.path = path
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.keys: dict[_Key, Location] = {}
        self.values: dict[_Key, Location] = {}
        self.spans: dict[_Key, tuple[int, int]] = {}
        self.counts: dict[_Key, int] = {}
        self.position = 0

    def read(self) -> None:
        """Fill ``keys`` and ``values``."""
        table: _Key = ()
        self._skip(_SPACE)
        while self.position < len(self.source):
            start = self.position
            if self.source.startswith("[", self.position):
                table = self._header()
            else:
                self._pair(table)
            self._skip(_SPACE)
            if self.position == start:  # not a form the scan knows: the rest has no places
                return

    def text(self, key: _Key) -> str:
        """A scalar as written."""
        start, end = self.spans.get(key, (0, 0))
        return self.source[start:end]

    def content(self, key: _Key, text: str) -> Optional[Location]:
        """Where a scalar's text begins, if it is written as it reads."""
        start, end = self.spans.get(key, (0, 0))
        written = self.source[start:end]
        if not written or "\n" in written:
            return None
        if written == text:
            return self._place(start)
        return self._place(start + 1) if written[1:-1] == text else None

    def _place(self, position: int) -> Location:
        line = bisect_right(self.starts, position)
        return Location(self.path, line, position - self.starts[line - 1] + 1)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.source, self.position)
        if match:
            self.position = match.end()

    def _take(self, mark: str) -> bool:
        if self.source.startswith(mark, self.position):
            self.position += len(mark)
            return True
        return False

    def _header(self) -> _Key:
        start = self._place(self.position)
        repeated = self._take("[[")
        if not repeated:
            self._take("[")
        names = self._names((), note=False)
        key = self._through_arrays(names[:-1])
        for length in range(1, len(key) + 1):
            self.keys.setdefault(key[:length], start)
        key = (*key, *names[-1:])
        self.keys.setdefault(key, start)
        if repeated:
            index = self.counts.get(key, 0)
            self.counts[key] = index + 1
            key = (*key, index)
        elif key in self.counts:
            key = (*key, self.counts[key] - 1)
        self.values[key] = start
        self._skip(_BLANK)
        self.position += 2 if repeated else 1
        return key

    def _through_arrays(self, names: _Key) -> _Key:
        """``names`` with the index of the last table of every array on the way."""
        key: _Key = ()
        for name in names:
            key = (*key, name)
            if key in self.counts:
                key = (*key, self.counts[key] - 1)
        return key

    def _names(self, table: _Key, note: bool = True) -> _Key:
        """A dotted key; each of its parts is placed under ``table``."""
        key = table
        while True:
            self._skip(_BLANK)
            match = _NAME.match(self.source, self.position)
            if match is None:
                return key
            key = (*key, _unquoted(match.group()))
            if note:
                self.keys.setdefault(key, self._place(match.start()))
            self.position = match.end()
            self._skip(_BLANK)
            if not self._take("."):
                return key

    def _pair(self, table: _Key) -> None:
        key = self._names(table)
        self._skip(_BLANK)
        if self._take("="):
            self._value(key)

    def _value(self, key: _Key) -> None:
        self._skip(_SPACE)
        start = self.position
        self.values[key] = self._place(start)
        if self._take("["):
            self._array(key)
        elif self._take("{"):
            self._inline_table(key)
        else:
            match = _SCALAR.match(self.source, start)
            if match is not None:
                self.position = match.end()
                length = len(match.group().rstrip())
                self.spans[key] = (start, start + length)

    def _array(self, key: _Key) -> None:
        index = 0
        while True:
            self._skip(_SPACE)
            start = self.position
            if self._take("]") or start >= len(self.source):
                return
            if self._take(","):
                continue
            self._value((*key, index))
            index += 1
            if self.position == start:
                return

    def _inline_table(self, key: _Key) -> None:
        while True:
            self._skip(_SPACE)
            start = self.position
            if self._take("}") or start >= len(self.source):
                return
            if self._take(","):
                continue
            self._pair(key)
            if self.position == start:
                return


def _unquoted(name: str) -> str:
    if name.startswith("'"):
        return name[1:-1]
    if not name.startswith('"'):
        return name
    if "\\" not in name:
        return name[1:-1]
    import tomli

    return str(tomli.loads(f"key = {name}")["key"])
