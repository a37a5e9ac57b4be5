"""Keys that code reads from a configuration dictionary, by the section that they stand in."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any, Optional

from released.archives import Module
from released.classes import NOTHING, ClassReader, Field

Path = tuple[str, ...]
"""Keys from the whole dictionary down to a section or a value."""


class KeyReader:
    """Reads which keys a module takes; ``roots``: what its variables hold of the dictionary."""

    def __init__(self, reader: ClassReader, module: Module, roots: Mapping[str, Path]) -> None:
        self._reader = reader
        self._module = module
        self._roots = roots
        # A parameter's default, and the first of the keys that a loop tries, stand for the name.
        self._alternatives: dict[str, ast.expr] = {}

    def keys(self, skipped: str = "") -> dict[Path, Field]:
        """Every key that the module reads; functions that begin with ``skipped`` are left out."""
        found: dict[Path, Field] = {}
        for function in self._module.functions_of_all_classes:
            if skipped and function.name.startswith(skipped):
                continue
            for path, default in self._read(function):
                known = found.get(path)
                if known is None or known.default is NOTHING:
                    found[path] = Field(path[-1], default=default)
        return found

    def _read(self, function: ast.FunctionDef) -> Iterator[tuple[Path, Any]]:
        local = dict(self._roots)
        arguments = function.args.args[::-1]
        self._alternatives = {
            argument.arg: default
            for argument, default in zip(arguments, function.args.defaults[::-1])
        }
        loops = {
            node.target.id: node.iter.elts[0]
            for node in ast.walk(function)
            if isinstance(node, ast.For)
            and isinstance(node.target, ast.Name)
            and isinstance(node.iter, ast.List)
        }
        self._alternatives.update(loops)
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                held = self._path(node.value, local)
                if held:
                    local[node.targets[0].id] = held
        for node in ast.walk(function):
            if not isinstance(node, ast.expr):
                continue
            default: Any = NOTHING
            path = self._path(node, local)
            if path is None and isinstance(node, ast.Compare):
                path = self._asked(node, local)
            if path:
                if isinstance(node, ast.Call):
                    default = self._reader.value(self._module, node.args[-1])
                yield path, NOTHING if default == {} else default

    def _path(self, node: ast.expr, local: Mapping[str, Path]) -> Optional[Path]:
        """Where an expression lies in the dictionary; None when it is no part of it."""
        if isinstance(node, ast.Name):
            return local.get(node.id)
        if isinstance(node, ast.Attribute):
            return local.get(node.attr)
        if isinstance(node, ast.Subscript):
            return self._below(self._path(node.value, local), node.slice)
        if isinstance(node, ast.Call):
            return self._called(node, local)
        return None

    def _called(self, node: ast.Call, local: Mapping[str, Path]) -> Optional[Path]:
        """``get_scalar_param(section, KEY, default)`` and ``section.get(KEY, default)``."""
        function = node.func
        if isinstance(function, ast.Name):
            if not function.id.startswith("get_") or len(node.args) != 3:
                return None
            return self._below(self._path(node.args[0], local), node.args[1])
        if isinstance(function, ast.Attribute) and function.attr == "get" and node.args[1:]:
            return self._below(self._path(function.value, local), node.args[0])
        return None

    def _asked(self, node: ast.Compare, local: Mapping[str, Path]) -> Optional[Path]:
        """``KEY in section`` and ``KEY in section.keys()``."""
        if not isinstance(node.ops[0], (ast.In, ast.NotIn)):
            return None
        section = node.comparators[0]
        if isinstance(section, ast.Call) and isinstance(section.func, ast.Attribute):
            section = section.func.value
        return self._below(self._path(section, local), node.left)

    def _below(self, section: Optional[Path], key: ast.expr) -> Optional[Path]:
        if isinstance(key, ast.Name):
            key = self._alternatives.get(key.id, key)
        name = self._reader.value(self._module, key) if section is not None else NOTHING
        return (*section, name) if section is not None and isinstance(name, str) else None
