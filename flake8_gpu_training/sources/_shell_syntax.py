"""The small shell syntax that both parsers produce and the interpreter walks.

Words are spans of the source text; :mod:`._shell_words` reads what stands inside them, so
that quoting and expansion are written once whatever parser found the statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Optional, Union

MAX_DEPTH = 120
"""Statements nested deeper than this are not read (Python's own stack is the limit)."""

MAX_WORDS = 10_000
"""Most words of one command that are read."""

DECLARATIONS = frozenset({"export", "declare", "typeset", "local", "readonly"})

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[([^\]\n]*)\])?(\+?=)")


class TooDeep(Exception):  # noqa: N818 - control flow between a parser and its caller
    """A script nests statements too deeply to be read whole."""


@dataclass(frozen=True)
class Span:
    """Characters ``start:end`` of the source text."""

    start: int
    end: int


@dataclass(frozen=True)
class Assignment:
    """``name=value``, ``name+=value``, ``name[index]=value`` or ``name=(elements)``."""

    name: str
    start: int
    value: Span
    append: bool = False
    index: str = ""
    elements: Optional[tuple[Span, ...]] = None


@dataclass(frozen=True)
class Redirect:
    """A redirection; ``body`` is the text of a here-document (``literal`` when quoted).

    The operator is preceded by the descriptor unless that is the usual one: ``2>``.
    """

    operator: str
    target: Optional[Span] = None
    body: Optional[Span] = None
    literal: bool = False


@dataclass(frozen=True)
class Simple:
    """A simple command; ``declared`` are the assignments of ``export`` and its kin.

    ``lost``: the words of the lines below that are meant for it, though it ends before them.
    """

    start: int
    words: tuple[Span, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    declared: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    lost: tuple[Span, ...] = ()


@dataclass(frozen=True)
class Block:
    """Statements one after another."""

    items: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class AndOr:
    """``left && right`` or ``left || right``."""

    left: Statement
    operator: str
    right: Statement


@dataclass(frozen=True)
class Not:
    """``! body``."""

    body: Statement


@dataclass(frozen=True)
class Pipeline:
    """``a | b``: every stage runs in a process of its own."""

    stages: tuple[Statement, ...]


@dataclass(frozen=True)
class Group:
    """``{ … }`` or, when ``isolated``, a subshell or a background job."""

    body: Statement
    redirects: tuple[Redirect, ...] = ()
    isolated: bool = False


@dataclass(frozen=True)
class If:
    """Conditions with their bodies, in order, and the ``else`` part."""

    branches: tuple[tuple[Statement, Statement], ...]
    otherwise: Optional[Statement] = None


@dataclass(frozen=True)
class For:
    """``for variable in items``; ``items`` is None for ``"$@"``, empty for counting loops."""

    variable: str
    start: int
    items: Optional[tuple[Span, ...]]
    body: Statement


@dataclass(frozen=True)
class While:
    """``while``, or ``until`` when ``negated``."""

    condition: Statement
    body: Statement
    negated: bool = False


@dataclass(frozen=True)
class Case:
    """The bodies of a ``case``; ``exhaustive`` when one pattern is ``*``.

    ``subject`` is the word it looks at, ``patterns`` those of each body.
    """

    bodies: tuple[Statement, ...]
    exhaustive: bool = False
    subject: Optional[Span] = None
    patterns: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Function:
    """A function definition."""

    name: str
    body: Statement


@dataclass(frozen=True)
class Arithmetic:
    """``(( expression ))`` or ``let``."""

    span: Span


Statement = Union[
    Simple, Block, AndOr, Not, Pipeline, Group, If, For, While, Case, Function, Arithmetic
]


@dataclass(frozen=True)
class Trouble:
    """Text that a parser could not make sense of."""

    offset: int
    message: str


@dataclass(frozen=True)
class Program:
    """A parsed script."""

    body: Block
    parser: str
    troubles: tuple[Trouble, ...] = ()


def assignment(
    text: str, start: int, end: int, elements: Optional[tuple[Span, ...]] = None
) -> Optional[Assignment]:
    """The assignment that stands at ``start:end``, or None when there is none."""
    match = _ASSIGNMENT.match(text, start, end)
    if match is None:
        return None
    name, index, operator = match.groups()
    value = Span(match.end(), end)
    return Assignment(name, start, value, operator == "+=", index or "", elements)


def simple(
    text: str,
    start: int,
    words: Sequence[Span],
    assignments: Sequence[Assignment] = (),
    redirects: Sequence[Redirect] = (),
    declared: Sequence[Assignment] = (),
) -> Simple:
    """A simple command; assignments among the words of ``export`` become ``declared``."""
    kept = list(words)
    found = list(declared)
    if words and text[words[0].start : words[0].end] in DECLARATIONS:
        kept = []
        for word in words:
            made = assignment(text, word.start, word.end)
            if made is None:
                kept.append(word)
            else:
                found.append(made)
    return Simple(start, tuple(kept), tuple(assignments), tuple(found), tuple(redirects))


def children(statement: Statement) -> Iterator[Statement]:
    """The statements directly inside ``statement``."""
    if isinstance(statement, Block):
        yield from statement.items
    elif isinstance(statement, AndOr):
        yield statement.left
        yield statement.right
    elif isinstance(statement, Pipeline):
        yield from statement.stages
    elif isinstance(statement, If):
        for condition, body in statement.branches:
            yield condition
            yield body
        if statement.otherwise is not None:
            yield statement.otherwise
    elif isinstance(statement, While):
        yield statement.condition
        yield statement.body
    elif isinstance(statement, Case):
        yield from statement.bodies
    elif isinstance(statement, (Group, For, Function, Not)):
        yield statement.body


def walk(statement: Statement) -> Iterator[Statement]:
    """``statement`` and every statement in it."""
    stack = [statement]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(children(current))
