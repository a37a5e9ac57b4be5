"""What stands inside a shell word: literals, quotes, parameters, substitutions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Union


@dataclass(frozen=True)
class Literal:
    """Text that stands for itself; ``offset`` is the place of its first character."""

    text: str
    offset: int
    quoted: bool = False


@dataclass(frozen=True)
class Parameter:
    """``$name`` or ``${name…}``; ``argument`` is what follows the operator."""

    raw: str
    offset: int
    quoted: bool
    name: str
    operator: str = ""
    argument: str = ""
    argument_offset: int = 0
    index: str = ""
    length: bool = False
    indirect: bool = False


@dataclass(frozen=True)
class Substitution:
    """``$(command)`` or its backquoted form."""

    raw: str
    offset: int
    quoted: bool
    command: str
    command_offset: int


@dataclass(frozen=True)
class Calculation:
    """``$(( expression ))``."""

    raw: str
    offset: int
    quoted: bool
    expression: str


Part = Union[Literal, Parameter, Substitution, Calculation]

_PLAIN = re.compile(r"[^'\"\\$`]+")
_IN_QUOTES = re.compile(r"[^\"\\$`]+")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_BRACED = re.compile(
    r"(?P<sigil>[!#]?)(?P<name>[A-Za-z_]\w*|[0-9]+|[@*#?$!-])(?:\[(?P<index>[^\]]*)\])?"
    r"(?P<operator>:[-=+?]|[-=+?]|##?|%%?|//?|\^\^?|,,?|:|@)?",
)
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "e": "\x1b"}


def closing(text: str, start: int, end: int, closer: str) -> int:
    """Index of the ``closer`` that ends what begins at ``start``; ``end`` when there is none."""
    stack = [closer]
    i = start
    while i < end:
        char = text[i]
        top = stack[-1]
        if char == "\\":
            i += 2
            continue
        if char == top:
            stack.pop()
            if not stack:
                return i
        elif char == "$" and text[i + 1 : i + 2] in ("(", "{"):
            i += 1
            stack.append(")" if text[i] == "(" else "}")
        elif char == '"':
            stack.append('"')
        elif char == "'" and '"' not in stack:
            found = text.find("'", i + 1, end)
            i = end if found < 0 else found
        elif char == "(" and top == ")":
            stack.append(")")
        i += 1
    return end


def parse_word(text: str, start: int, end: int, quoted: bool = False) -> list[Part]:
    """Parts of the word at ``start:end``; ``quoted`` reads it as if within double quotes."""
    parts: list[Part] = []
    i = start
    inside = quoted
    plain = _IN_QUOTES if inside else _PLAIN
    while i < end:
        match = plain.match(text, i, end)
        if match is not None:
            parts.append(Literal(match.group(), i, inside))
            i = match.end()
            continue
        char = text[i]
        if char == '"' and not quoted:
            inside = not inside
            plain = _IN_QUOTES if inside else _PLAIN
            if inside:
                parts.append(Literal("", i + 1, True))
            i += 1
        elif char == '"':
            parts.append(Literal(char, i, True))
            i += 1
        elif char == "'" and not inside:
            found = text.find("'", i + 1, end)
            found = end if found < 0 else found
            parts.append(Literal(text[i + 1 : found], i + 1, True))
            i = found + 1
        elif char == "\\":
            i = _escape(text, i, end, inside, parts)
        elif char == "`":
            found = i + 1
            while found < end and text[found] != "`":
                found += 2 if text[found] == "\\" else 1
            found = min(found, end)
            inner = text[i + 1 : found].replace("\\`", "`")
            parts.append(Substitution(text[i : found + 1], i, inside, inner, i + 1))
            i = found + 1
        else:
            i = _dollar(text, i, end, inside, parts)
    return parts


def _escape(text: str, i: int, end: int, inside: bool, parts: list[Part]) -> int:
    after = text[i + 1 : i + 2] if i + 1 < end else ""
    if after == "\n":
        return i + 2
    if inside and after not in ("$", "`", '"', "\\"):
        parts.append(Literal("\\", i, True))
        return i + 1
    if after:
        parts.append(Literal(after, i + 1, True))
    return i + 2


def _dollar(text: str, i: int, end: int, inside: bool, parts: list[Part]) -> int:
    after = text[i + 1 : i + 2] if i + 1 < end else ""
    if text.startswith("$((", i, end):
        close = closing(text, i + 2, end, ")")
        if text[close - 1 : close] == ")":
            raw = text[i : close + 1]
            parts.append(Calculation(raw, i, inside, text[i + 3 : close - 1]))
            return close + 1
    if after == "(":
        close = closing(text, i + 2, end, ")")
        parts.append(Substitution(text[i : close + 1], i, inside, text[i + 2 : close], i + 2))
        return close + 1
    if after == "{":
        close = closing(text, i + 2, end, "}")
        parts.append(_braced(text, i, close, inside))
        return close + 1
    if after == "'" and not inside:
        return _ansi(text, i, end, parts)
    if after == '"' and not inside:
        return i + 1
    match = _NAME.match(text, i + 1, end)
    if match is None:
        parts.append(Literal("$", i, inside))
        return i + 1
    parts.append(Parameter(text[i : match.end()], i, inside, match.group()))
    return match.end()


def _ansi(text: str, i: int, end: int, parts: list[Part]) -> int:
    made: list[str] = []
    at = i + 2
    while at < end and text[at] != "'":
        if text[at] == "\\" and at + 1 < end:
            made.append(_ANSI.get(text[at + 1], "\\" + text[at + 1]))
            at += 2
        else:
            made.append(text[at])
            at += 1
    parts.append(Literal("".join(made), i + 2, True))
    return at + 1


def _braced(text: str, i: int, close: int, inside: bool) -> Parameter:
    raw = text[i : close + 1]
    match = _BRACED.match(text, i + 2, close)
    if match is None:
        return Parameter(raw, i, inside, "", "?")
    operator = match["operator"] or ""
    sigil, name = match["sigil"], match["name"]
    argument = text[match.end() : close]
    if not operator and argument:
        return Parameter(raw, i, inside, "", "?")
    return Parameter(
        raw,
        i,
        inside,
        name,
        operator,
        argument,
        match.end(),
        match["index"] or "",
        length=sigil == "#",
        indirect=sigil == "!",
    )
