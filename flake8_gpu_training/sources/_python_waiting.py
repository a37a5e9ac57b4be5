"""Whether every step that goes backward also updates, on all paths through a loop's body."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence, Set
from typing import Callable, Union

WAITS = "an update that not every step makes"
MAX_PATHS = 64
"""Paths through a body, beyond which nothing is concluded."""
# A step that such a test leaves out was not worth making: nothing is saved up for the next.
_NO_WAITING = re.compile(
    r"(?i)nan\b|isnan|finite|isinf|norm|none|isinstance|amp\b|fp16|scaler|overflow|skip|found_inf"
)
_Loop = (ast.For, ast.While, ast.AsyncFor)
_Function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LEAVES = (ast.Return, ast.Raise, ast.Break)

Path = tuple[bool, frozenset[tuple[str, bool]]]
"""Whether gradients wait for an update, and how the tests on the way came out."""
Asks = Callable[[ast.Call], bool]


def waits(
    body: Sequence[ast.stmt],
    goes_back: Asks,
    updates: Asks,
    drops: Asks,
    parameters: Set[str] = frozenset(),
) -> bool:
    """Whether some paths through ``body`` update after a backward pass, and others do not.

    What ``parameters`` of the function alone decide, its callers answer for.
    """
    calls = [call for statement in body for call in _calls(statement)]
    if not any(goes_back(call) for call in calls) or not any(updates(call) for call in calls):
        return False
    reader = _Paths(goes_back, updates, drops, parameters)
    try:
        ends = reader.block(body, {(False, frozenset())})
    except _TooManyError:
        return False
    return any(is_waiting for is_waiting, _ in (*ends, *reader.ended))


class _TooManyError(Exception):
    """More paths than are worth telling apart."""


class _Paths:
    def __init__(self, goes_back: Asks, updates: Asks, drops: Asks, parameters: Set[str]) -> None:
        self.parameters = parameters
        self.goes_back = goes_back
        self.updates = updates
        self.drops = drops
        self.ended: set[Path] = set()
        """Paths that went on with the loop's next step."""

    def block(self, body: Sequence[ast.stmt], paths: set[Path]) -> set[Path]:
        for statement in body:
            paths = self.statement(statement, paths)
            if len(paths) > MAX_PATHS:
                raise _TooManyError
        return paths

    def statement(self, node: ast.stmt, paths: set[Path]) -> set[Path]:
        if isinstance(node, ast.Continue):
            self.ended |= paths
            return set()
        if isinstance(node, _LEAVES):
            return set()
        if isinstance(node, ast.If):
            return self._branches(node, paths)
        if isinstance(node, _Loop):
            return self._loop(node, paths)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            return self.block(node.body, paths)
        if isinstance(node, ast.Try):
            return self.block([*node.body, *node.orelse, *node.finalbody], paths)
        if isinstance(node, _Function):
            return paths
        return self._calls(node, paths)

    def _branches(self, node: ast.If, paths: set[Path]) -> set[Path]:
        test = ast.unparse(node.test)
        is_stable = not any(isinstance(inner, ast.Call) for inner in ast.walk(node.test))
        is_told = isinstance(node.test, ast.Name) and node.test.id in self.parameters
        must = not node.orelse and (is_told or _NO_WAITING.search(test) is not None)
        found: set[Path] = set()
        for outcome, body in ((True, node.body), (False, node.orelse)):
            if not outcome and must and self._mends(node.body):
                continue
            taken = {
                (is_waiting, asked | {(test, outcome)} if is_stable else asked)
                for is_waiting, asked in paths
                if (test, not outcome) not in asked
            }
            found |= self.block(body, taken)
        return found

    def _mends(self, body: Sequence[ast.stmt]) -> bool:
        return any(self.updates(call) for statement in body for call in _calls(statement))

    def _loop(self, node: Union[ast.For, ast.While, ast.AsyncFor], paths: set[Path]) -> set[Path]:
        """A loop within the step has its own updates, or is a part of the step."""
        calls = list(_calls(node))
        if any(self.updates(call) for call in calls):
            return {(False, asked) for _, asked in paths}
        return paths

    def _calls(self, node: ast.stmt, paths: set[Path]) -> set[Path]:
        for call in _calls(node):
            if self.goes_back(call):
                paths = {(True, asked) for _, asked in paths}
            elif self.updates(call) or self.drops(call):
                done = {(False, asked) for _, asked in paths}
                paths = done | paths if _is_asked(node) else done
        return paths


def _is_asked(node: ast.stmt) -> bool:
    """``last and optimizer.step()``, and ``optimizer.step() if last else None``."""
    return isinstance(node, ast.Expr) and isinstance(node.value, (ast.BoolOp, ast.IfExp))


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """Calls in a piece of code in their order, those of functions defined in it apart."""
    if isinstance(node, _Function):
        return
    for child in ast.iter_child_nodes(node):
        yield from _calls(child)
    if isinstance(node, ast.Call):
        yield node
