"""Reads nothing but the imports of a Python source, with the cheap ``ast`` alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flake8_gpu_training.facts import Import, Location
from flake8_gpu_training.sources._python_statements import blocks


def imports_of(tree: ast.Module, lines: list[str], path: str) -> tuple[Import, ...]:
    """The imports of a module in the order of the source; ``lines`` are those of its text."""
    found: list[Import] = []
    for node in _imports(tree):
        for alias in node.names:
            is_star = alias.name == "*"
            place: ast.AST = node if is_star else alias
            line, column = place.lineno, place.col_offset  # type: ignore[attr-defined]
            before = lines[line - 1].encode("utf-8", "surrogatepass")[:column]
            location = Location(path, line, len(before.decode("utf-8", "replace")) + 1)
            if isinstance(node, ast.Import):
                bound = alias.asname or alias.name.partition(".")[0]
                found.append(Import(alias.name, "", bound, location))
            else:
                module = "." * node.level + (node.module or "")
                found.append(Import(module, alias.name, alias.asname or alias.name, location))
    return tuple(found)


def _imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    waiting = list(reversed(tree.body))
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield statement
        inner = [child for block in blocks(statement) for child in block]
        waiting.extend(reversed(inner))
