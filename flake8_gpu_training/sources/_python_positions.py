"""Positions of LibCST nodes as offsets into the source, from one light code generation.

LibCST's PositionProvider makes three objects a node; here a node costs two integers. What is
generated goes to an object of ours in place of LibCST's own; should a release of LibCST ask
more of it, its provider is used.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Optional

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from flake8_gpu_training.facts import Location

Span = tuple[int, int]


class _OffsetState:
    """Counts the characters generated instead of keeping them.

    It is its own context manager: LibCST enters one around each node it generates.
    """

    def __init__(self, module: cst.Module) -> None:
        self.default_indent = module.default_indent
        self.default_newline = module.default_newline
        # Module adds a newline when it finds that no token was generated.
        self.tokens = [""]
        self.indent_tokens: list[str] = []
        self.offset = 0
        self.indentation = 0
        self.open: list[tuple[cst.CSTNode, int, Any, Any]] = []
        self.spans: dict[int, Span] = {}

    def increase_indent(self, value: str) -> None:
        self.indent_tokens.append(value)
        self.indentation += len(value)

    def decrease_indent(self) -> None:
        self.indentation -= len(self.indent_tokens.pop())

    def add_indent_tokens(self) -> None:
        self.offset += self.indentation

    def add_token(self, value: str) -> None:
        self.offset += len(value)

    def before_codegen(self, node: cst.CSTNode) -> None:
        """Nothing: LibCST calls it before each node."""

    def after_codegen(self, node: cst.CSTNode) -> None:
        """Nothing: LibCST calls it after each node."""

    def pop_trailing_newline(self) -> None:
        """Take back the newline of a file that ends without one."""
        self.offset -= len(self.default_newline)

    def record_syntactic_position(
        self, node: cst.CSTNode, *, start_node: Any = None, end_node: Any = None
    ) -> _OffsetState:
        self.open.append((node, self.offset, start_node, end_node))
        return self

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_error: object) -> None:
        node, start, start_node, end_node = self.open.pop()
        spans = self.spans
        end = self.offset
        if start_node is not None and id(start_node) in spans:
            start = spans[id(start_node)][0]
        if end_node is not None and id(end_node) in spans:
            end = spans[id(end_node)][1]
        spans[id(node)] = (start, end)


def counted_spans(module: cst.Module, length: int) -> Optional[dict[int, Span]]:
    """Offsets of each node, by its identity; None when they do not add up to ``length``."""
    state = _OffsetState(module)
    try:
        module._codegen(state)  # type: ignore[arg-type]
    except (AttributeError, TypeError):
        return None
    return state.spans if state.offset == length else None


def provided_spans(module: cst.Module, starts: Sequence[int]) -> dict[int, Span]:
    """The same from LibCST's own provider, six times slower."""
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    return {
        id(node): (
            starts[place.start.line - 1] + place.start.column,
            starts[place.end.line - 1] + place.end.column,
        )
        for node, place in wrapper.resolve(PositionProvider).items()
    }


class Positions:
    """Where the nodes of a module stand.

    ``text`` is what the module was parsed from, ``line_numbers`` the number that each of
    its lines has in the file.
    """

    def __init__(
        self, module: cst.Module, text: str, path: str, line_numbers: Sequence[int]
    ) -> None:
        self._text = text
        self._path = path
        self._line_numbers = line_numbers
        self._starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
        spans = counted_spans(module, len(text))
        self._spans = provided_spans(module, self._starts) if spans is None else spans

    def span(self, node: cst.CSTNode) -> Span:
        """Offsets of a node's first character and of what follows its last."""
        return self._spans[id(node)]

    def text(self, node: cst.CSTNode) -> str:
        """Source of a node, its own parentheses left out."""
        start, end = self._spans[id(node)]
        return self._text[start:end]

    def count(self, name: str) -> int:
        """How often a name stands in the text."""
        return len(re.findall(rf"\b{name}\b", self._text))

    def at(self, node: cst.CSTNode) -> Location:
        """Place of a node's first character."""
        return self.location(self._spans[id(node)][0])

    def end(self, node: cst.CSTNode) -> Location:
        """Place right after a node's last character."""
        return self.location(self._spans[id(node)][1])

    def location(self, offset: int) -> Location:
        """Line and column of an offset."""
        index = bisect_right(self._starts, offset) - 1
        number = self._line_numbers[min(index, len(self._line_numbers) - 1)]
        return Location(self._path, number, offset - self._starts[index] + 1)

    def after_trailing_comma(self, offset: int) -> int:
        """Offset behind the comma that follows ``offset``, or ``offset`` when none does."""
        found = self.skip_blank(offset)
        return found + 1 if self._text[found : found + 1] == "," else offset

    def after_open_paren(self, offset: int) -> int:
        """Offset behind the parenthesis that opens a call's arguments after its function."""
        found = self.skip_blank(offset)
        while self._text[found : found + 1] == ")":
            found = self.skip_blank(found + 1)
        return found + 1

    def skip_blank(self, offset: int) -> int:
        """Offset of the next character that is neither blank nor part of a comment."""
        text = self._text
        while offset < len(text):
            if text[offset] == "#":
                newline = text.find("\n", offset)
                offset = len(text) if newline < 0 else newline
            elif text[offset].isspace() or text[offset] == "\\":
                offset += 1
            else:
                break
        return offset
