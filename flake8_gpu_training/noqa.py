"""``# noqa`` comments, in every language that has comments; flake8 minds Python's itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import lru_cache

# flake8's documented forms, bare or with a list of codes (its documentation, "Selecting and
# Ignoring Violations"); its own expressions are no public names.
_INLINE = re.compile(r"# noqa(?::\s?(?P<codes>[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*))?", re.I)
_FILE = re.compile(r"\s*# flake8[:=]\s*noqa\s*$", re.I)


def is_silenced(lines: Sequence[str], span: tuple[int, int], code: str) -> bool:
    """Whether one of the lines of ``span`` (first and last, from 1) silences ``code``."""
    return any(_matches(line, code) for line in lines[span[0] - 1 : span[1]])


def is_file_silenced(lines: Sequence[str]) -> bool:
    """Whether the file opts out as a whole (``# flake8: noqa``)."""
    return any(_FILE.match(line) for line in lines)


def statement_span(lines: Sequence[str], line: int, is_python: bool) -> tuple[int, int]:
    """First and last line of the statement at ``line``, all from 1.

    In shell and Make a comment would cut a continued command short, so there a comment
    behind the last line speaks for the whole command.
    """
    if is_python:
        return _python_span("".join(lines), line)
    last = line
    while last < len(lines) and lines[last - 1].rstrip("\r\n").endswith("\\"):
        last += 1
    return line, last


def _python_span(text: str, line: int) -> tuple[int, int]:
    spans = (span for span in _statements(text) if span[0] <= line <= span[1])
    return min(spans, key=lambda span: span[1] - span[0], default=(line, line))


@lru_cache(maxsize=8)
def _statements(text: str) -> tuple[tuple[int, int], ...]:
    """First and last line of each statement: a file with many findings is parsed once."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(dict.fromkeys(span for span in map(_own_lines, ast.walk(tree)) if span[0]))


def _own_lines(node: ast.AST) -> tuple[int, int]:
    """Lines of a statement without those of its body; an empty span for other nodes."""
    if not isinstance(node, ast.stmt):
        return 0, -1
    body = getattr(node, "body", None)
    last = body[0].lineno - 1 if body else (node.end_lineno or node.lineno)
    return node.lineno, max(last, node.lineno)


def _matches(text: str, code: str) -> bool:
    found = _INLINE.search(text)
    if found is None:
        return False
    codes = found.group("codes")
    if codes is None:
        return True
    return any(code.startswith(name) for name in codes.replace(",", " ").upper().split())
