"""Reads JSON, also with the comments and trailing commas users leave in it, with places.

No kept library gives both: ``json`` has no places and refuses comments, json5 and
commentjson give values only, and YAML parsers refuse tabs and ``//``. The grammar is small.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, NoReturn, Optional, Union

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

MAX_BYTES = 2_000_000
MAX_DEPTH = 100
MAX_ITEMS = 1000
MAX_ARRAY_BYTES = 100_000
"""A top-level array with more than either is data, not configuration."""
MAX_TOKENS = 100_000
MAX_NUMBER = 400
"""Digits after which a number stays text: converting it costs quadratic time."""

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n]+)
  | (?P<comment>//[^\n]*|\#[^\n]*|/\*(?s:.*?)\*/)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<mark>[{}\[\],:])
  | (?P<word>[-+.\w]+)
    """,
    re.VERBOSE,
)
_PLACEHOLDER = re.compile(r"\$\{?\w+|\{\{|<\w+>|@\w+@|[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
"""What a script puts a value in the place of: ``${stage}``, ``GB_SIZE``."""
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WORDS: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}


def read_json(text: Union[str, bytes], path: str) -> ConfigFile:
    """The document of a JSON file, with what could not be read; never raises.

    Comments and trailing commas are read, and noted in the document's ``tolerated``:
    ``json.load``, which DeepSpeed uses, refuses them. Of a broken file the part before the
    error is not given: half a mapping would prove a missing key that is there.
    """
    if len(text) > MAX_BYTES or path.endswith((".jsonl", ".ndjson")):
        message = "data, not configuration" if len(text) <= MAX_BYTES else "too large to be one"
        return _failed(path, ProblemKind.TOO_LARGE, f"{message} (JSON)", Location(path))
    content, problems = decode(text, path)
    if any(problem.kind is ProblemKind.UNREADABLE for problem in problems):
        return ConfigFile(path, problems=problems)
    if len(content) > MAX_ARRAY_BYTES and content.lstrip().startswith("["):
        message = "data, not configuration (JSON)"
        return _failed(path, ProblemKind.TOO_LARGE, message, Location(path))
    reader = _Reader(content, path)
    try:
        root = reader.read()
    except _RefusedError as refused:
        told = conflict(content, path) or refused.problem
        return ConfigFile(path, problems=(*problems, told))
    document = Document(
        path,
        root,
        language="json",
        duplicates=tuple(reader.duplicates),
        tolerated=tuple(reader.tolerated),
    )
    return ConfigFile(path, (document,), problems=problems)


def _failed(path: str, kind: ProblemKind, message: str, location: Location) -> ConfigFile:
    return ConfigFile(path, problems=(Problem(kind, message, location),))


class _RefusedError(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass
class _Open:
    """An object or array being read."""

    kind: str
    location: Location
    mapping: dict[str, Entry] = field(default_factory=dict)
    items: list[Node] = field(default_factory=list)
    key: Optional[tuple[str, Location]] = None
    expects: str = "first"
    """``first`` (a member or the end), ``member``, ``colon``, ``value`` or ``comma``."""


class _Reader:
    """One pass over the tokens, on a stack of its own (no recursion)."""

    def __init__(self, text: str, path: str) -> None:
        self.text = text
        self.path = path
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.stack: list[_Open] = []
        self.root: Optional[Node] = None
        self.duplicates: list[Entry] = []
        self.tolerated: list[Problem] = []
        self.comma: Optional[int] = None

    def read(self) -> Node:
        position = tokens = 0
        end = len(self.text)
        while position < end:
            tokens += 1
            if tokens > MAX_TOKENS:
                self._refuse("data, not configuration (JSON)", position, ProblemKind.TOO_LARGE)
            match = _TOKEN.match(self.text, position)
            if match is None:
                self._refuse_value("unexpected character", position)
            kind = match.lastgroup
            if kind == "comment":
                self._tolerate("comments", position)
            elif kind == "mark":
                self._mark(match.group(), position)
            elif kind == "string":
                self._string(match.group(), position)
            elif kind == "word":
                self._store(self._word(match.group(), position))
            position = match.end()
        if self.stack or self.root is None:
            self._refuse("ends too early" if self.text.strip() else "empty", end)
        return self.root

    def _place(self, position: int) -> Location:
        line = bisect_right(self.starts, position)
        return Location(self.path, line, position - self.starts[line - 1] + 1)

    def _refuse(
        self, message: str, position: int, kind: ProblemKind = ProblemKind.SYNTAX
    ) -> NoReturn:
        raise _RefusedError(Problem(kind, message, self._place(position)))

    def _refuse_value(self, message: str, position: int) -> NoReturn:
        """Refuse what is no value; a placeholder is none yet."""
        if _PLACEHOLDER.match(self.text, position):
            self._refuse("a placeholder to fill in", position, ProblemKind.UNSUPPORTED)
        self._refuse(message, position)

    def _tolerate(self, what: str, position: int) -> None:
        """Note the first of each kind: one is enough to make ``json.load`` fail."""
        message = f"json.load refuses {what}"
        if not any(problem.message == message for problem in self.tolerated):
            place = self._place(position)
            self.tolerated.append(Problem(ProblemKind.UNSUPPORTED, message, place))

    # --- structure ---

    def _mark(self, mark: str, position: int) -> None:
        if mark in "{[":
            self._begin("mapping" if mark == "{" else "sequence", position)
        elif mark in "}]":
            self._finish("mapping" if mark == "}" else "sequence", position)
        elif not self.stack:
            self._refuse(f"unexpected {mark}", position)
        elif mark == ",":
            self._separate(position)
        else:
            self._colon(position)

    def _begin(self, kind: str, position: int) -> None:
        self._expect_value(position)
        if len(self.stack) >= MAX_DEPTH:
            self._refuse(f"nested more than {MAX_DEPTH} deep", position, ProblemKind.TOO_DEEP)
        self.stack.append(_Open(kind, self._place(position)))

    def _finish(self, kind: str, position: int) -> None:
        if not self.stack or self.stack[-1].kind != kind:
            self._refuse("unexpected closing bracket", position)
        top = self.stack[-1]
        if top.expects == "member" and self.comma is not None:
            self._tolerate("a trailing comma", self.comma)
        elif top.expects not in ("first", "comma"):
            self._refuse("a value is missing", position)
        self.stack.pop()
        node = Node(None, top.location, mapping=top.mapping, items=tuple(top.items), kind=top.kind)
        self._store(node)

    def _separate(self, position: int) -> None:
        top = self.stack[-1]
        if top.expects != "comma":
            self._refuse("unexpected comma", position)
        top.expects = "member"
        self.comma = position

    def _colon(self, position: int) -> None:
        top = self.stack[-1]
        if top.expects != "colon":
            self._refuse("unexpected colon", position)
        top.expects = "value"

    # --- values ---

    def _refuse_more(self, position: int) -> NoReturn:
        """A second value; objects of a line each are data, whatever the file is called."""
        before = self.text[:position]
        if "\n" in before and "\n" not in before.strip():
            message = "data, not configuration (JSON lines)"
            self._refuse(message, position, ProblemKind.UNSUPPORTED)
        self._refuse("text after the end", position)

    def _expect_value(self, position: int) -> None:
        """Refuse unless a value may begin here."""
        if not self.stack:
            if self.root is not None:
                self._refuse_more(position)
            return
        top = self.stack[-1]
        allowed = ("value",) if top.kind == "mapping" else ("first", "member")
        if top.expects not in allowed:
            self._refuse("a comma or a name is missing", position)

    def _store(self, node: Node) -> None:
        """Put a finished node into its parent."""
        if not self.stack:
            self.root = node
            return
        top = self.stack[-1]
        top.expects = "comma"
        if top.key is None:
            top.items.append(node)
            if len(self.stack) == 1 and len(top.items) > MAX_ITEMS:
                problem = Problem(
                    ProblemKind.TOO_LARGE, "data, not configuration (JSON)", top.location
                )
                raise _RefusedError(problem)
            return
        name, place = top.key
        top.key = None
        if name in top.mapping:
            self.duplicates.append(top.mapping.pop(name))
        top.mapping[name] = Entry(name, place, node)

    def _string(self, raw: str, position: int) -> None:
        top = self.stack[-1] if self.stack else None
        try:
            # strict=False: a raw tab in a string is common, and harmless to us.
            value = json.loads(raw, strict=False) if "\\" in raw else raw[1:-1]
        except ValueError:
            self._refuse("a broken escape", position)
        if "\t" in raw:
            self._tolerate("a tab in a string", position)
        place = self._place(position)
        if top is not None and top.kind == "mapping" and top.expects in ("first", "member"):
            top.key = (value, place)
            top.expects = "colon"
            return
        self._expect_value(position)
        content = Location(self.path, place.line, place.column + 1) if "\\" not in raw else None
        self._store(Node(value, place, text=value, content=content))

    def _word(self, word: str, position: int) -> Node:
        self._expect_value(position)
        place = self._place(position)
        if word in _WORDS:
            return Node(_WORDS[word], place, text=word, content=place)
        if not _NUMBER.fullmatch(word):
            self._refuse_value(f"unexpected {word[:40]}", position)
        return Node(_number(word), place, text=word, content=place)


def _number(word: str) -> Any:
    if len(word) > MAX_NUMBER:
        return word
    return float(word) if any(mark in word for mark in ".eE") else int(word)
