"""Finds the words that a command loses where its lines are not continued as they are meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ._shell_syntax import Program, Simple, Span, walk

LOST_FLAG = re.compile(r"--\w")
_LOST_ARRAY = re.compile(r'"?\$\{\w*(?:ARGS|ARGUMENTS|FLAGS|OPTS|OPTIONS|PARAMS)\[[@*]\]\}')
_NEXT_LINE = re.compile(r"[ \t]*\n[ \t]+")
BROKEN_CONTINUATION = re.compile(r"\\[ \t]+$", re.MULTILINE)
_FLAG_FIRST = re.compile(rf"^[ \t]*(?:--\w|{_LOST_ARRAY.pattern})", re.MULTILINE)
_GAP = re.compile(r"[ \t\\]*(?:#[^\n]*)?\n(?:[ \t\r\n\\]|#[^\n]*\n)*")
"""What may stand between a command and the flags meant for it: line ends, blanks, comments."""
_BLANK = re.compile(r"\\[ \t]")
"""An escaped blank: what a backslash becomes that blanks follow."""


def with_lost(program: Program, text: str) -> Program:
    """``program``, each simple command with the words below it that are meant to be its own."""
    if not _FLAG_FIRST.search(text) and not BROKEN_CONTINUATION.search(text):
        return program
    lost = _lost(program, text)
    return replace(program, body=_replaced(program.body, lost)) if lost else program


def _lost(program: Program, text: str) -> dict[int, tuple[Span, ...]]:
    found: dict[int, tuple[Span, ...]] = {}
    head = last = None
    for statement in _commands(program):
        words = statement.words
        if head is not None and last is not None and _goes_on(last, statement, text):
            found[head.start] = (*found.get(head.start, ()), *_meant(words, text))
        else:
            head = statement
        last = statement
    return found


def _commands(program: Program) -> Iterator[Simple]:
    simple = (s for s in walk(program.body) if isinstance(s, Simple) and s.words)
    return iter(sorted(simple, key=lambda statement: statement.words[0].start))


def _goes_on(last: Simple, statement: Simple, text: str) -> bool:
    """Whether ``statement`` is what the lines of ``last`` are meant to go on with."""
    end, start = last.words[-1].end, statement.words[0].start
    if last.redirects or statement.assignments or end >= start:
        return False
    if goes_on_with_array(last, statement, text):
        return True
    is_broken = _is_blank(last.words[-1], text)
    if not is_broken and not LOST_FLAG.match(text, start):
        return False
    return _GAP.fullmatch(text, end, start) is not None


def goes_on_with_array(last: Simple, statement: Simple, text: str) -> bool:
    """Whether the indented line below a command with flags begins with an array of arguments,
    which is no program."""
    if not last.words or not statement.words or statement.assignments:
        return False
    end, start = last.words[-1].end, statement.words[0].start
    if end >= start or _LOST_ARRAY.match(text, start) is None:
        return False
    has_flags = any(LOST_FLAG.match(text, word.start) for word in last.words)
    return has_flags and _NEXT_LINE.fullmatch(text, end, start) is not None


def _is_blank(word: Span, text: str) -> bool:
    return _BLANK.fullmatch(text, word.start, word.end) is not None


def _meant(words: tuple[Span, ...], text: str) -> tuple[Span, ...]:
    return tuple(word for word in words if not _is_blank(word, text))


def _replaced(value: Any, lost: dict[int, tuple[Span, ...]]) -> Any:
    if isinstance(value, Simple):
        return replace(value, lost=lost.get(value.start, ()))
    if isinstance(value, tuple):
        return tuple(_replaced(one, lost) for one in value)
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value)]
        return replace(value, **{name: _replaced(getattr(value, name), lost) for name in names})
    return value
