"""Shell syntax through bashlex; raises whatever bashlex raises when it refuses a script."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional

import bashlex

from ._shell_syntax import (
    MAX_DEPTH,
    AndOr,
    Assignment,
    Block,
    For,
    Function,
    Group,
    If,
    Not,
    Pipeline,
    Program,
    Redirect,
    Span,
    Statement,
    TooDeep,
    While,
    assignment,
    simple,
)


def parse(text: str) -> Program:
    """The script's syntax. Raises when bashlex does not understand it."""
    reader = _Reader(text)
    trees = bashlex.parse(text)
    return Program(Block(tuple(reader.statement(tree, 0) for tree in trees)), "bashlex")


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text

    def statement(self, node: Any, depth: int) -> Statement:
        if depth > MAX_DEPTH:
            raise TooDeep
        method = getattr(self, f"_{node.kind}", None)
        if method is None:
            raise NotImplementedError(node.kind)
        made: Statement = method(node, depth + 1)
        return made

    def _command(self, node: Any, depth: int) -> Statement:
        words: list[Span] = []
        assignments: list[Assignment] = []
        redirects: list[Redirect] = []
        for part in node.parts:
            if part.kind == "redirect":
                redirects.append(self._redirection(part))
                continue
            made = None
            if part.kind == "assignment" and not words:
                made = assignment(self._text, *part.pos)
            if made is None:
                if not self._is_broken_continuation(*part.pos):
                    words.append(self._word(part))
            else:
                assignments.append(made)
        return simple(self._text, node.pos[0], words, assignments, redirects)

    def _is_broken_continuation(self, start: int, end: int) -> bool:
        """A backslash with only spaces behind it: an escaped space ends the line."""
        stop = self._text.find("\n", start)
        line = self._text[start : len(self._text) if stop < 0 else stop]
        return line.startswith("\\ ") and not line[1:].strip()

    def _word(self, node: Any) -> Span:
        """A word, without the line continuation that may touch its end."""
        start, end = node.pos
        while end - start > 2 and self._text.startswith("\\\n", end - 2):
            end -= 2
        written = self._text[start:end]
        if written != node.word and written.isalnum():
            raise ValueError("bashlex misplaced a word")
        return Span(start, end)

    def _redirection(self, node: Any) -> Redirect:
        target = Span(*node.output.pos) if hasattr(node.output, "pos") else None
        usual = node.input is None or node.input == (0 if node.type[0] == "<" else 1)
        kind = node.type if usual else f"{node.input}{node.type}"
        if node.heredoc is None:
            return Redirect(kind, target)
        start, end = node.heredoc.pos
        # The body's last line is the delimiter.
        cut = self._text.rfind("\n", start, end)
        return Redirect(kind, target, Span(start, max(start, cut + 1)))

    def _list(self, node: Any, depth: int) -> Statement:
        items: list[Statement] = []
        operator = ""
        for part in node.parts:
            if part.kind == "operator":
                if part.op == "&" and items:
                    items[-1] = Group(items[-1], isolated=True)
                operator = part.op
                continue
            made = self.statement(part, depth)
            if operator in ("&&", "||") and items:
                items[-1] = AndOr(items[-1], operator, made)
            else:
                items.append(made)
        return items[0] if len(items) == 1 else Block(tuple(items))

    def _pipeline(self, node: Any, depth: int) -> Statement:
        stages = tuple(
            self.statement(part, depth)
            for part in node.parts
            if part.kind not in ("pipe", "reservedword")
        )
        made = stages[0] if len(stages) == 1 else Pipeline(stages)
        signs = [part.word for part in node.parts if part.kind == "reservedword"]
        return Not(made) if signs.count("!") % 2 else made

    def _compound(self, node: Any, depth: int) -> Statement:
        opening = node.list[0]
        isolated = opening.kind == "reservedword" and opening.word == "("
        body = Block(
            tuple(self.statement(part, depth) for part in node.list if part.kind != "reservedword")
        )
        redirects = tuple(self._redirection(part) for part in node.redirects)
        if not isolated and not redirects and len(body.items) == 1:
            return body.items[0]
        return Group(body, redirects, isolated)

    def _if(self, node: Any, depth: int) -> Statement:
        branches: list[tuple[Statement, Statement]] = []
        condition: Optional[Statement] = None
        otherwise: Optional[Statement] = None
        expected = ""
        for part in node.parts:
            if part.kind == "reservedword":
                if not isinstance(part.word, str):
                    # bashlex keeps the second ``elif`` in here, with wrong positions.
                    raise NotImplementedError("elif")
                expected = part.word
            elif expected in ("if", "elif"):
                condition = self.statement(part, depth)
            elif expected == "then" and condition is not None:
                branches.append((condition, self.statement(part, depth)))
            else:
                otherwise = self.statement(part, depth)
        return If(tuple(branches), otherwise)

    def _while(self, node: Any, depth: int) -> Statement:
        condition, body = (
            self.statement(part, depth) for part in node.parts if part.kind != "reservedword"
        )
        return While(condition, body)

    def _until(self, node: Any, depth: int) -> Statement:
        loop = self._while(node, depth)
        return replace(loop, negated=True) if isinstance(loop, While) else loop

    def _for(self, node: Any, depth: int) -> Statement:
        name = node.parts[1]
        items: Optional[list[Span]] = None
        body: list[Statement] = []
        for part in node.parts[2:]:
            if part.kind == "reservedword":
                items = [] if part.word == "in" else items
            elif part.kind == "word":
                items = [*(items or []), Span(*part.pos)]
            else:
                body.append(self.statement(part, depth))
        span = None if items is None else tuple(items)
        return For(name.word, name.pos[0], span, Block(tuple(body)))

    def _function(self, node: Any, depth: int) -> Statement:
        return Function(node.name.word, self.statement(node.body, depth))
