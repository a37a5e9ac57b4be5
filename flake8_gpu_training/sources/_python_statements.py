"""What one statement of a Python source holds, by its ``ast``: blocks, lines, names it binds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Optional, Union

if TYPE_CHECKING:
    from typing_extensions import TypeGuard

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_EVALUATED_CALLS = frozenset({"dict", "int", "float", "str", "bool", "list", "tuple"})
_EVALUATED = (
    ast.Constant,
    ast.Name,
    ast.Attribute,
    ast.Dict,
    ast.List,
    ast.Tuple,
    ast.UnaryOp,
    ast.BoolOp,
    ast.IfExp,
    ast.JoinedStr,
)
_INDENT = re.compile(r"[ \t\f]*")
FunctionNode = Union[ast.FunctionDef, ast.AsyncFunctionDef]


def blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
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


def groups_of_lines(block: Sequence[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Statements of a block, those that share a line together."""
    group: list[ast.stmt] = []
    for statement in block:
        if group and first_line(statement) > lines_of(group[-1])[1]:
            yield group
            group = []
        group.append(statement)
    if group:
        yield group


def lines_of(statement: ast.stmt) -> tuple[int, int]:
    return statement.lineno, statement.end_lineno or statement.lineno


def first_line(statement: ast.stmt) -> int:
    """First line, decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def column_of(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return decorators[0].col_offset if decorators else statement.col_offset


def indent_of(line: str) -> str:
    match = _INDENT.match(line)
    return match.group() if match else ""


def is_simple(statement: ast.stmt) -> bool:
    return next(blocks(statement), None) is None


def is_dull(statement: ast.stmt) -> bool:
    """Docstrings, and errors raised: no facts are in them."""
    if isinstance(statement, ast.Raise):
        return True
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def leaves_block(statement: ast.stmt) -> TypeGuard[ast.If]:
    """``if …: continue`` or ``return``: what follows is not always done."""
    return isinstance(statement, ast.If) and isinstance(
        statement.body[-1], (ast.Continue, ast.Return)
    )


def skips_steps(statement: ast.stmt) -> TypeGuard[ast.If]:
    """``if step % n: continue``: what follows is not done at every step."""
    return leaves_block(statement) and any(
        isinstance(node, ast.Mod) for node in ast.walk(statement.test)
    )


def root_name(node: ast.AST) -> str:
    """``a`` of ``a.b.c``; empty for anything else."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def leaves_early(statement: ast.stmt) -> TypeGuard[ast.If]:
    """``if args.off: return``: what follows is done only when the test fails."""
    return (
        isinstance(statement, ast.If)
        and not statement.orelse
        and isinstance(statement.body[-1], ast.Return)
    )


def sets_attribute(statement: ast.stmt) -> bool:
    """``config.use_cache = False``: a constant set on an attribute of something."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Constant):
        return False
    target = statement.targets[0]
    if not isinstance(target, ast.Attribute):
        return False
    return not (isinstance(target.value, ast.Name) and target.value.id == "self")


def own_statements(function: FunctionNode) -> Iterator[ast.stmt]:
    """All statements of a function, nested functions and classes aside."""
    stack: list[ast.stmt] = list(function.body)
    while stack:
        statement = stack.pop()
        yield statement
        if not isinstance(statement, (*_Function, ast.ClassDef)):
            for block in blocks(statement):
                stack.extend(block)


def _asks_remainder(test: ast.Compare) -> bool:
    return any(isinstance(node, ast.Mod) for node in ast.walk(test))


def is_opaque(statement: ast.stmt) -> bool:
    """Whether the value that a statement gives its names is beyond evaluation."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return True
    values: list[Optional[ast.expr]] = [statement.value]
    while values:
        value = values.pop()
        if isinstance(value, ast.BinOp):
            values += (value.left, value.right)
        elif isinstance(value, ast.Compare) and _asks_remainder(value):
            continue  # a condition, wherever it is asked
        elif isinstance(value, ast.Call):
            if not (isinstance(value.func, ast.Name) and value.func.id in _EVALUATED_CALLS):
                return True
        elif not isinstance(value, _EVALUATED):
            return True
    return False


def _bound_names(statement: ast.stmt) -> Iterator[str]:
    """Names (and roots of attributes) that a statement itself binds or changes."""
    targets: list[ast.AST] = []
    if isinstance(statement, ast.Assign):
        targets.extend(statement.targets)
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor)):
        targets.append(statement.target)
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        targets.extend(item.optional_vars for item in statement.items if item.optional_vars)
    elif isinstance(statement, ast.Expr):
        call = statement.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            # ``kwargs.update(...)`` changes what ``kwargs`` holds.
            targets.append(call.func.value)
    while targets:
        target = targets.pop()
        if isinstance(target, ast.Name):
            yield target.id
        elif isinstance(target, (ast.Tuple, ast.List)):
            targets.extend(target.elts)
        elif isinstance(target, (ast.Starred, ast.Subscript)):
            targets.append(target.value)
        elif (
            isinstance(target, ast.Attribute)
            and isinstance(target.value, ast.Name)
            and target.value.id == "self"
        ):
            yield f"self.{target.attr}"


class Binders:
    """Statements that bind names, by the function (for ``self.x``: the class) they belong to."""

    def __init__(self, tree: ast.Module) -> None:
        self.top = {name for statement in tree.body for name in _bound_names(statement)}
        self._tables: dict[ast.AST, dict[str, list[tuple[ast.AST, ast.stmt]]]] = {}

    def of(self, owner: ast.AST) -> dict[str, list[tuple[ast.AST, ast.stmt]]]:
        """Binders of each name of a function, or of each ``self.name`` of a class."""
        if owner not in self._tables:
            table: dict[str, list[tuple[ast.AST, ast.stmt]]] = {}
            if isinstance(owner, ast.ClassDef):
                functions = [node for node in owner.body if isinstance(node, _Function)]
            else:
                functions = [owner] if isinstance(owner, _Function) else []
            for function in functions:
                for statement in own_statements(function):
                    for name in _bound_names(statement):
                        table.setdefault(name, []).append((function, statement))
            self._tables[owner] = table
        return self._tables[owner]


_LITERAL_STARTS = re.compile(r"\s*[rbfuRBFU]{0,2}[\"']")


def expression_depth(statement: ast.AST, leave_out: set[int], lines: Sequence[str]) -> int:
    """Nesting depth that a statement's own expressions have in LibCST, without recursion.

    Where ``ast`` is flat LibCST nests: ``a and b and c``, adjacent string literals.
    """
    deepest = 0
    stack: list[tuple[ast.AST, int]] = [(statement, 1)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, ast.BoolOp):
            depth += len(node.values)
        elif isinstance(node, (ast.Constant, ast.JoinedStr)):
            span = lines[node.lineno : node.end_lineno]
            depth += sum(1 for line in span if _LITERAL_STARTS.match(line))
        deepest = max(deepest, depth)
        stack.extend(
            (child, depth + 1) for child in ast.iter_child_nodes(node) if id(child) not in leave_out
        )
    return deepest
