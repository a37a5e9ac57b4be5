"""The fields that classes of arguments declare, of a file that is read as text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Optional

from flake8_gpu_training.facts import Location, Origin, Setting, Unknown


@dataclass(frozen=True)
class ArgumentClass:
    """A class: the last parts of its bases' names as they are imported, its annotated fields, and
    what its methods put where nothing is given (``self.name = 2``); ``name=2`` is where they put
    a certain value, by the condition where several branches do."""

    name: str
    bases: tuple[str, ...] = ()
    fields: dict[str, Setting] = field(default_factory=dict)
    filled: dict[str, Setting] = field(default_factory=dict)


_FOREIGN = ("transformers", "trl", "peft", "torch")


def argument_classes(text: str, path: str) -> tuple[ArgumentClass, ...]:
    """The classes at the top of a file; none where it cannot be parsed.

    Bases of other distributions are left out.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    foreign = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in _FOREIGN
        for alias in node.names
    }
    return tuple(_class(n, path, foreign) for n in tree.body if isinstance(n, ast.ClassDef))


def _class(node: ast.ClassDef, path: str, foreign: set[str]) -> ArgumentClass:
    names = (ast.unparse(base).split("[")[0].rpartition(".")[2] for base in node.bases)
    fields, filled = {}, {}
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            name, kind = part.target.id, ast.unparse(part.annotation)
            if "ClassVar" not in kind:
                value = _default(part.value)
                at = Location(path, part.lineno, part.col_offset + 1)
                fields[name] = Setting(name, value, at, Origin.DEFAULT, text=kind)
    for name, inner in _assigned(node):
        value = _literal(inner.value)
        if not isinstance(value, Unknown):
            at = Location(path, inner.lineno, inner.col_offset + 1)
            filled[name] = Setting(name, value, at, Origin.DEFAULT)
    filled.update(_where_none(node, path))
    return ArgumentClass(
        node.name, tuple(name for name in names if name not in foreign), fields, filled
    )


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.Assign]]:
    """What is assigned to attributes of ``self``."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Assign) and (name := _own_attribute(inner.targets[0])):
            yield name, inner


def _own_attribute(node: ast.expr) -> str:
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return node.attr if is_own and node.value.id == "self" else ""  # type: ignore[attr-defined]


def _where_none(node: ast.ClassDef, path: str) -> Iterator[tuple[str, Setting]]:
    """``name=value``: where an attribute that is None gets a value; ``name=`` of no literal."""
    for branch in (inner for inner in ast.walk(node) if isinstance(inner, ast.If)):
        for test in ast.walk(branch.test):
            if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Is):
                continue
            name = _own_attribute(test.left)
            body = (part for one in branch.body for part in _assigned(one))
            found: dict[str, list[ast.Assign]] = {}
            for target, inner in body:
                if target == name:
                    value = _literal(inner.value)
                    shown = "" if isinstance(value, Unknown) else str(value)
                    found.setdefault(shown, []).append(inner)
            for shown, places in found.items():
                line = places[0].lineno if len(places) == 1 else branch.lineno
                at = Location(path, line, 1)
                yield f"{name}={shown}", Setting(name, shown, at, Origin.DEFAULT)


def _default(value: Optional[ast.expr]) -> Any:
    """Default of a dataclass's field."""
    if value is None:
        return Unknown("no default")
    if isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] == "field":
        given = {keyword.arg: keyword.value for keyword in value.keywords}
        made = given.get("default_factory")
        if isinstance(made, ast.Lambda):
            return _literal(made.body)
        if made is not None:
            return {"list": [], "dict": {}}.get(ast.unparse(made), Unknown("made when it runs"))
        return _literal(given["default"]) if "default" in given else Unknown("no default")
    return _literal(value)


def _literal(value: ast.expr) -> Any:
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return Unknown("no literal")
