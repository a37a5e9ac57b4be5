"""Reads which functions a Python source defines and how it calls them, for values passed on."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Optional, Union

from flake8_gpu_training.facts import Unknown

MAX_BYTES = 1_000_000
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_LEAVES = frozenset({ast.Load, ast.Store, ast.Del, ast.Name, ast.Constant})
"""Nodes with nothing in them that is read."""
_BRANCHES = {"body": True, "orelse": False}


@dataclass(frozen=True)
class Passed:
    """A call by the last part of its name, with the arguments it passes.

    A value is a literal, or Unknown with the text as its reason; ``is_open``: ``*args`` or
    ``**kwargs`` may pass more. ``tests``: what the branches around it ask, and how it must
    come out.
    """

    name: str
    scope: str
    positional: tuple[Any, ...] = ()
    keywords: dict[str, Any] = field(default_factory=dict)
    is_open: bool = False
    tests: tuple[tuple[ast.expr, bool], ...] = ()


@dataclass(frozen=True)
class Signatures:
    """``parameters`` by function (``make``, ``Data.__init__``) with their defaults, in order.

    A parameter without a default has the value ``...``. ``attributes``: by class, attributes
    that ``__init__`` sets to one of its parameters and nothing else sets.
    """

    parameters: dict[str, dict[str, Any]] = field(default_factory=dict)
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    calls: tuple[Passed, ...] = ()

    @cached_property
    def calls_by_name(self) -> dict[str, list[Passed]]:
        """The calls by the last part of their names."""
        found: dict[str, list[Passed]] = {}
        for call in self.calls:
            found.setdefault(call.name, []).append(call)
        return found


def read_signatures(data: bytes) -> Signatures:
    """Functions and calls of a source; nothing of one that does not parse."""
    if len(data) > MAX_BYTES:
        return Signatures()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in the source are no matter of ours
            tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Signatures()
    return signatures_of(tree)


def signatures_of(tree: ast.Module) -> Signatures:
    """Functions and calls of a syntax tree."""
    reader = _Reader()
    try:
        reader.visit(tree, "")
    except (RecursionError, MemoryError):
        return Signatures()
    return Signatures(reader.parameters, reader.attributes, tuple(reader.calls))


class _Reader:
    def __init__(self) -> None:
        self.parameters: dict[str, dict[str, Any]] = {}
        self.attributes: dict[str, dict[str, str]] = {}
        self.calls: list[Passed] = []
        self.tests: list[tuple[ast.expr, bool]] = []
        """Those of the branches that are gone through, within the function."""

    def visit(self, node: ast.AST, scope: str) -> None:
        if isinstance(node, _Function):
            around, self.tests = self.tests, []
            self._fields_of(node, scope)
            self.tests = around
        else:
            self._fields_of(node, scope)

    def _fields_of(self, node: ast.AST, scope: str) -> None:
        branches = _BRANCHES if isinstance(node, (ast.If, ast.IfExp)) else {}
        for name in node._fields:
            found = getattr(node, name, None)
            if name in branches and isinstance(node, (ast.If, ast.IfExp)):
                self.tests.append((node.test, branches[name]))
            for child in found if isinstance(found, list) else (found,):
                if not isinstance(child, ast.AST) or type(child) in _LEAVES:
                    continue
                inner = scope
                if isinstance(child, (*_Function, ast.ClassDef)):
                    inner = f"{scope}.{child.name}" if scope else child.name
                if isinstance(child, _Function):
                    self.parameters[inner] = dict(_parameters(child))
                elif isinstance(child, ast.ClassDef):
                    self.attributes[inner] = _attributes(child)
                elif isinstance(child, ast.Call):
                    self._call(child, scope)
                self.visit(child, inner)
            if name in branches:
                self.tests.pop()

    def _call(self, call: ast.Call, scope: str) -> None:
        name = _last_name(call.func)
        if not name:
            return
        keywords = {item.arg: _value(item.value) for item in call.keywords if item.arg}
        starred = [isinstance(item, ast.Starred) for item in call.args]
        is_open = any(starred) or any(item.arg is None for item in call.keywords)
        count = starred.index(True) if any(starred) else len(starred)
        positional = tuple(_value(item) for item in call.args[:count])
        tests = tuple(self.tests)
        self.calls.append(Passed(name, scope, positional, keywords, is_open, tests))


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    text = _path(node)
    return Unknown(text or "an expression")


def _path(node: ast.expr) -> str:
    """``a.b.c`` as text; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def _parameters(
    function: Union[ast.FunctionDef, ast.AsyncFunctionDef],
) -> Iterator[tuple[str, Any]]:
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    missing: list[Optional[ast.expr]] = [None] * (len(plain) - len(given.defaults))
    pairs = [
        *zip(plain, [*missing, *given.defaults]),
        *zip(given.kwonlyargs, given.kw_defaults),
    ]
    for argument, default in pairs:
        yield argument.arg, ... if default is None else _value(default)


def _attributes(owner: ast.ClassDef) -> dict[str, str]:
    found: dict[str, str] = {}
    refuted: set[str] = set()
    for method in owner.body:
        if not isinstance(method, _Function):
            continue
        names = {argument.arg for argument in method.args.args} | {
            argument.arg for argument in method.args.kwonlyargs
        }
        for target, value in _assignments(method):
            path = _path(target)
            if not path.startswith("self.") or path.count(".") != 1:
                continue
            name = path[len("self.") :]
            is_parameter = isinstance(value, ast.Name) and value.id in names
            if method.name != "__init__" or not is_parameter or name in found:
                refuted.add(name)
            elif isinstance(value, ast.Name):
                found[name] = value.id
    return {name: parameter for name, parameter in found.items() if name not in refuted}


def _assignments(method: ast.AST) -> Iterator[tuple[ast.expr, Optional[ast.expr]]]:
    """Targets of assignments and what is assigned; ``a, b = c, d`` taken apart."""
    for node in ast.walk(method):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            plain = isinstance(node, ast.AnnAssign)
            yield node.target, node.value if plain else None


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, Optional[ast.expr]]]:
    if not isinstance(target, ast.Tuple):
        yield target, value
    elif isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
        yield from zip(target.elts, value.elts)
    else:
        for item in target.elts:
            yield item, None
