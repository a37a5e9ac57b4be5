"""Values that a notebook's Python gives to the shell lines behind it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from typing import Optional

MAX_NODES = 20_000


def values_before(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """Variables and environment that ``text`` leaves, where they are plain constants.

    A name that is bound in another way is left out: its value is not known.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}, {}
    names: dict[str, Optional[str]] = {}
    environment: dict[str, Optional[str]] = {}
    for statement in module.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], _constant(statement.value)
            if isinstance(target, ast.Name):
                names[target.id] = value
                continue
            key = _environment_key(target)
            if key is not None:
                environment[key] = value
                continue
        for name in _bound(statement):
            names[name] = None
        for node in ast.walk(statement):
            key = _environment_key(node)
            if key is not None:
                environment[key] = None
    return _known(names), _known(environment)


def _known(found: dict[str, Optional[str]]) -> dict[str, str]:
    return {name: value for name, value in found.items() if value is not None}


def _constant(node: ast.expr) -> Optional[str]:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, (str, int, float)):
        return None
    return str(node.value)


def _environment_key(node: ast.AST) -> Optional[str]:
    """``X`` of ``os.environ["X"]``, when it is set."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Store):
        return None
    key, owner = node.slice, node.value
    is_environment = isinstance(owner, ast.Attribute) and owner.attr == "environ"
    if not is_environment or not isinstance(key, ast.Constant):
        return None
    return key.value if isinstance(key.value, str) else None


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Names that a statement binds, in whatever way."""
    for count, node in enumerate(ast.walk(statement)):
        if count > MAX_NODES:
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
