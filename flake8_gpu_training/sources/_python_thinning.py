"""Thins a Python source with the cheap ``ast`` so that LibCST parses only what matters.

Whole lines are kept or dropped, and a map leads back to the original line numbers; columns
stay as they are.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Union

from flake8_gpu_training.sources._python_interest import (
    CALL_WORD,
    CALLS,
    DICT_KEYS,
    FIELD_LIBRARIES,
    HOT_METHODS,
    LOADER_TRACE,
    OTHER_TRACES,
    STEP_TRACE,
    is_constructor,
)

MAX_EXPRESSION_DEPTH = 90
MAX_STATEMENT_DEPTH = 60
MAX_DATA_LINES = 300
"""A literal longer than this that names nothing of interest is data, not configuration."""

_WORD = re.compile(r"[A-Za-z_]\w*")
_INDENT = re.compile(r"[ \t\f]*")
_LARGE_STATEMENT = 400
_NAME_ROUNDS = 3

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_Loop = (ast.For, ast.AsyncFor, ast.While)
_ALWAYS_KEPT = (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)
FunctionNode = Union[ast.FunctionDef, ast.AsyncFunctionDef]


@dataclass(frozen=True)
class Thinned:
    """The lines kept, the original number of each, and lines dropped for being too deep."""

    text: str
    line_numbers: tuple[int, ...]
    too_deep: tuple[int, ...] = ()


def whole(text: str) -> Thinned:
    """The text unthinned."""
    text = text if text.endswith("\n") else text + "\n"
    return Thinned(text, tuple(range(1, text.count("\n") + 1)))


def thin(text: str, tree: ast.Module) -> Thinned:
    """Keep of ``text`` (newlines are ``\\n``) what can hold facts; ``tree`` is its syntax tree."""
    return _Thinner(text, tree).run()


class _Thinner:
    def __init__(self, text: str, tree: ast.Module) -> None:
        self.text = text
        self.tree = tree
        self.lines = text.split("\n")
        self.parents: dict[ast.stmt, ast.stmt] = {}
        self.kept: set[ast.stmt] = set()
        self.too_deep: list[int] = []
        self.functions: dict[str, list[FunctionNode]] = {}
        self.hot_names: set[str] = set()
        self.starts = [0, *accumulate(len(line) + 1 for line in self.lines)]
        self.hits = self._hits(_interest_offsets(text, tree))
        self.steps = self._hits(match.start() for match in STEP_TRACE.finditer(text))

    def run(self) -> Thinned:
        self._survey(self.tree.body, None, 0)
        for statement in self.tree.body:
            self._mark_top(statement)
        for name in self.hot_names:
            for function in self.functions.get(name, ()):
                self._mark_all(function)
        for functions in self.functions.values():
            for function in functions:
                if function in self.kept:
                    self._mark_bindings(function)
        return self._emit()

    def _hits(self, offsets: Iterator[int]) -> list[int]:
        """Prefix sums: number of hits before each line (1-based)."""
        counts = [0] * (len(self.lines) + 2)
        for offset in offsets:
            counts[bisect_right(self.starts, offset) + 1] += 1
        return list(accumulate(counts))

    def _any(self, sums: list[int], first: int, last: int) -> bool:
        return sums[last + 1] > sums[first]

    # -- survey: parents and functions by name

    def _survey(self, block: Sequence[ast.stmt], parent: ast.stmt | None, depth: int) -> None:
        for statement in block:
            if parent is not None:
                self.parents[statement] = parent
            if isinstance(statement, _Function):
                self.functions.setdefault(statement.name, []).append(statement)
            if depth >= MAX_STATEMENT_DEPTH:
                continue
            for child in _blocks(statement):
                self._survey(child, statement, depth + 1)

    # -- marking

    def _mark(self, statement: ast.stmt) -> None:
        node: ast.stmt | None = statement
        while node is not None and node not in self.kept:
            self.kept.add(node)
            node = self.parents.get(node)

    def _mark_all(self, statement: ast.stmt) -> None:
        """Keep a statement and everything in it, docstrings aside."""
        if _is_docstring(statement):
            return
        self._mark(statement)
        for block in _blocks(statement):
            for child in block:
                self._mark_all(child)

    def _mark_top(self, statement: ast.stmt) -> None:
        """At module and class level everything but docstrings and dull functions is kept."""
        if _is_docstring(statement):
            return
        if isinstance(statement, _Function):
            self._mark_function(statement)
            return
        first, last = _span(statement)
        if last - first > MAX_DATA_LINES and _is_simple(statement):
            if self._any(self.hits, first, last):
                self._mark(statement)
            return
        self._mark(statement)
        if self._is_hot_loop(statement):
            self._mark_hot(statement)
        for block in _blocks(statement):
            for child in block:
                self._mark_top(child)

    def _mark_function(self, function: FunctionNode) -> None:
        if function.name in HOT_METHODS and isinstance(self.parents.get(function), ast.ClassDef):
            self._mark_hot(function)
            return
        for decorator in function.decorator_list:
            if self._any(self.hits, decorator.lineno, decorator.end_lineno or decorator.lineno):
                self._mark(function)
        self._mark_block(function.body)

    def _mark_block(self, block: Sequence[ast.stmt]) -> None:
        for statement in block:
            if isinstance(statement, _Function):
                self._mark_function(statement)
            elif self._is_hot_loop(statement):
                self._mark_hot(statement)
            else:
                if self._is_interesting(statement):
                    self._mark(statement)
                for child in _blocks(statement):
                    self._mark_block(child)

    def _is_interesting(self, statement: ast.stmt) -> bool:
        if isinstance(statement, _ALWAYS_KEPT):
            return True
        if _is_docstring(statement):
            return False
        first, last = _span(statement)
        blocks = list(_blocks(statement))
        if blocks:
            last = max(first, _start(blocks[0][0]) - 1)
        return self._any(self.hits, first, last) or _sets_attribute(statement)

    def _is_hot_loop(self, statement: ast.stmt) -> bool:
        if not isinstance(statement, _Loop):
            return False
        first, last = _span(statement)
        if self._any(self.steps, first, last):
            return True
        header = self.lines[first - 1 : max(first, _start(statement.body[0]) - 1)]
        return any(LOADER_TRACE.search(line) for line in header)

    def _mark_hot(self, statement: ast.stmt) -> None:
        self._mark_all(statement)
        first, last = _span(statement)
        text = "\n".join(self.lines[first - 1 : last])
        self.hot_names.update(CALL_WORD.findall(text))

    def _mark_bindings(self, function: FunctionNode) -> None:
        """Keep what binds the names that the kept statements of a function mention."""
        binders: list[tuple[ast.stmt, list[str]]] = []
        words: set[str] = set()
        stack: list[ast.stmt] = list(function.body)
        while stack:
            statement = stack.pop()
            if statement in self.kept:
                words.update(_WORD.findall(self._own_text(statement)))
            names = list(_bound_names(statement))
            if names and statement not in self.kept:
                binders.append((statement, names))
            if not isinstance(statement, (*_Function, ast.ClassDef)):
                for block in _blocks(statement):
                    stack.extend(block)
        for _ in range(_NAME_ROUNDS):
            found = [item for item in binders if not words.isdisjoint(item[1])]
            binders = [item for item in binders if words.isdisjoint(item[1])]
            if not found:
                break
            for statement, _names in found:
                self._mark(statement)
                words.update(_WORD.findall(self._own_text(statement)))

    def _own_text(self, statement: ast.stmt) -> str:
        """Text of a simple statement, or of a compound statement's header."""
        first, last = _span(statement)
        for block in _blocks(statement):
            last = max(first, _start(block[0]) - 1)
            break
        return "\n".join(self.lines[first - 1 : last])

    # -- emission

    def _emit(self) -> Thinned:
        self.keep = bytearray(len(self.lines) + 2)
        self.stubs: dict[int, str] = {}
        self._emit_block(self.tree.body, 0, in_class=False)
        numbers: list[int] = []
        out: list[str] = []
        for number, line in enumerate(self.lines, 1):
            if self.keep[number]:
                out.append(line)
                numbers.append(number)
            elif number in self.stubs:
                out.append(self.stubs[number])
                numbers.append(number)
        return Thinned("".join(line + "\n" for line in out), tuple(numbers), tuple(self.too_deep))

    def _emit_block(self, block: Sequence[ast.stmt], depth: int, in_class: bool) -> bool:
        """Keep the lines of a block's marked statements; tell whether there are any."""
        emitted = False
        for group in _groups(block):
            if len(group) > 1:
                if any(statement in self.kept for statement in group):
                    self._keep_lines(_start(group[0]), _span(group[-1])[1])
                    emitted = True
                continue
            statement = group[0]
            if statement in self.kept and self._emit_statement(statement, depth):
                emitted = True
            elif in_class and isinstance(statement, _Function):
                line = self.lines[statement.lineno - 1]
                self.stubs[statement.lineno] = f"{_indent(line)}def {statement.name}(): pass"
                emitted = True
        return emitted

    def _emit_statement(self, statement: ast.stmt, depth: int) -> bool:
        first, last = _start(statement), _span(statement)[1]
        blocks = list(_blocks(statement))
        if depth >= MAX_STATEMENT_DEPTH or self._is_too_deep(statement, blocks):
            self.too_deep.append(statement.lineno)
            return False
        if not blocks:
            self._keep_lines(first, last)
            return True
        cursor = first
        for block in blocks:
            start = _start(block[0])
            if (start <= cursor and start <= statement.lineno) or self._shares_line(block[0]):
                # The block stands on its header's line: the lot is kept.
                self._keep_lines(first, last)
                return True
            self._keep_lines(cursor, start - 1)
            line = self.lines[start - 1]
            emitted = self._emit_block(block, depth + 1, isinstance(statement, ast.ClassDef))
            if not emitted and not line.lstrip().startswith("elif"):
                self.stubs[start] = f"{_indent(line)}pass"
            cursor = _span(block[-1])[1] + 1
        return True

    def _shares_line(self, statement: ast.stmt) -> bool:
        """Whether something other than indentation stands before a statement on its line."""
        line = self.lines[_start(statement) - 1]
        before = line.encode("utf-8", "surrogatepass")[: _column(statement)]
        return bool(before.strip(b" \t\f@"))

    def _keep_lines(self, first: int, last: int) -> None:
        for number in range(first, last + 1):
            self.keep[number] = 1

    def _is_too_deep(self, statement: ast.stmt, blocks: list[list[ast.stmt]]) -> bool:
        if last_offset(self.starts, statement) < _LARGE_STATEMENT:
            return False
        inner = {id(child) for block in blocks for child in block}
        return expression_depth(statement, inner) > MAX_EXPRESSION_DEPTH


def last_offset(starts: list[int], statement: ast.stmt) -> int:
    """Characters between the first and the last line of a statement."""
    first, last = _span(statement)
    return starts[last] - starts[first - 1]


def expression_depth(statement: ast.AST, leave_out: set[int]) -> int:
    """Nesting depth of a statement's own expressions, found without recursion."""
    depth = 0
    level: list[ast.AST] = [statement]
    while level:
        depth += 1
        level = [
            child
            for node in level
            for child in ast.iter_child_nodes(node)
            if id(child) not in leave_out
        ]
    return depth


def _interest_offsets(text: str, tree: ast.Module) -> Iterator[int]:
    names, modules = _imported(tree)
    verdicts: dict[str, bool] = {}
    for match in CALL_WORD.finditer(text):
        word = match.group(1)
        verdict = verdicts.get(word)
        if verdict is None:
            verdict = word in CALLS or word in names or is_constructor(word)
            verdicts[word] = verdict
        if verdict:
            yield match.start()
    for pattern in (DICT_KEYS, OTHER_TRACES):
        for match in pattern.finditer(text):
            yield match.start()
    if modules:
        calls = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(modules)))})\.[\w.]+[ \t]*\(")
        for match in calls.finditer(text):
            yield match.start()


def _imported(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Names whose calls are of interest: taken from, or modules of, the field's libraries.

    torch itself is left out: nearly every line of a model calls it, and what matters of it
    is in the table of calls.
    """
    names: set[str] = set()
    modules: set[str] = set()
    for node in _imports(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _of_interest(alias.name):
                    modules.add(alias.asname or alias.name.partition(".")[0])
        elif not node.level and node.module and _of_interest(node.module):
            for alias in node.names:
                name = alias.asname or alias.name
                if not name.startswith(("is_", "_", "logg", "get_logger")):
                    names.add(name)
    return names, modules


def _imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, (ast.If, ast.Try)):
            for block in _blocks(node):
                for child in block:
                    if isinstance(child, (ast.Import, ast.ImportFrom)):
                        yield child


def _of_interest(module: str) -> bool:
    root, _, rest = module.partition(".")
    if root == "torch":
        return rest.startswith(("utils.data", "utils.checkpoint", "distributed", "optim", "cuda"))
    return root in FIELD_LIBRARIES


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The non-empty blocks of a compound statement, in the order of the source."""
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body:
        yield body
    for handler in getattr(statement, "handlers", ()):
        yield handler.body
    for case in getattr(statement, "cases", ()):
        yield case.body
    for name in ("orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list) and block:
            yield block


def _groups(block: Sequence[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Statements of a block, those that share a line together."""
    group: list[ast.stmt] = []
    for statement in block:
        if group and _start(statement) > _span(group[-1])[1]:
            yield group
            group = []
        group.append(statement)
    if group:
        yield group


def _span(statement: ast.stmt) -> tuple[int, int]:
    return statement.lineno, statement.end_lineno or statement.lineno


def _start(statement: ast.stmt) -> int:
    """First line, decorators included."""
    decorators = getattr(statement, "decorator_list", ())
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _column(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", ())
    return decorators[0].col_offset if decorators else statement.col_offset


def _indent(line: str) -> str:
    match = _INDENT.match(line)
    return match.group() if match else ""


def _is_simple(statement: ast.stmt) -> bool:
    return next(_blocks(statement), None) is None


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _sets_attribute(statement: ast.stmt) -> bool:
    """``config.use_cache = False``: a constant set on an attribute of something."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Constant):
        return False
    target = statement.targets[0]
    if not isinstance(target, ast.Attribute):
        return False
    return not (isinstance(target.value, ast.Name) and target.value.id == "self")


def _bound_names(statement: ast.stmt) -> Iterator[str]:
    """Names (and roots of attributes) that a statement itself binds or changes."""
    targets: list[ast.AST] = []
    if isinstance(statement, ast.Assign):
        targets.extend(statement.targets)
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor)):
        targets.append(statement.target)
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        targets.extend(item.optional_vars for item in statement.items if item.optional_vars)
    while targets:
        target = targets.pop()
        if isinstance(target, ast.Name):
            yield target.id
        elif isinstance(target, (ast.Tuple, ast.List)):
            targets.extend(target.elts)
        elif isinstance(target, (ast.Starred, ast.Subscript)):
            targets.append(target.value)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            if target.value.id == "self":
                yield target.attr
