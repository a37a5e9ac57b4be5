"""Command-line options that a release makes from the fields of its classes."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, Optional

from released.archives import Module
from released.classes import NOTHING, ClassReader, Field, Found

# The first of the types that a field may have decides how its option is read.
_PRECEDENCE = ("bool", "list", "int", "float")


def as_option(field: Field, special: Collection[str] = ()) -> Field:
    """A field as vLLM's ``get_kwargs`` makes an option of it; ``special``: names it reads so."""
    types = set(field.types)
    if field.name in special or types == {"bool", "str"}:
        return replace(field, types=("?",), choices=())
    if "bool" in types:
        return replace(field, types=("bool",), optional=False, choices=(), negatable=True)
    if field.choices:
        return replace(field, types=(type(field.choices[0]).__name__,))
    first = next((name for name in _PRECEDENCE if name in types), "")
    plain = first or ("str" if types == {"str"} else "?")
    return replace(field, types=("?",) if "?" in types else (plain,))


class KeywordTables:
    """What ``**kwargs["dtype"]`` stands for, after ``kwargs = get_kwargs(ModelConfig)``.

    ``special``: names of fields whose options are read in a way of their own.
    """

    def __init__(self, reader: ClassReader, module: Module, special: Collection[str]) -> None:
        self._reader = reader
        self._special = special
        self._tables: dict[str, Found] = {}
        self._names: dict[str, ast.expr] = {}
        self._changed: set[str] = set()
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Assign):
                self._assigned(module, node.targets[0], node.value)
            elif isinstance(node, ast.AugAssign):
                self._assigned(module, node.target, node.value)

    def _assigned(self, module: Module, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            whole = value.value if isinstance(value, ast.Subscript) else value
            table = self._table(module, whole)
            if table is not None:
                self._tables[target.id if whole is value else ast.unparse(whole)] = table
            if whole is not value:
                self._names[target.id] = value
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Subscript):
            key, field = target.slice, target.value.slice
            told = isinstance(key, ast.Constant) and key.value in ("help", "metavar")
            if not told and isinstance(field, ast.Constant):
                self._changed.add(str(field.value))

    def _table(self, module: Module, value: ast.expr) -> Optional[Found]:
        if not isinstance(value, ast.Call) or ast.unparse(value.func) != "get_kwargs":
            return None
        argument = value.args[0]
        return self._reader.find(module, argument.id) if isinstance(argument, ast.Name) else None

    def option(self, node: ast.expr) -> Optional[Field]:
        """The field that ``**node`` spreads, as an option; ``**{**node, "default": …}`` too."""
        if isinstance(node, ast.Dict) and node.keys[:1] == [None]:
            inner = self.option(node.values[0])
            told = {
                k.value: v for k, v in zip(node.keys, node.values) if isinstance(k, ast.Constant)
            }
            if inner is None or told.keys() - {"default", "help"}:
                return None
            if "default" not in told:
                return inner
            default = told["default"]
            value = default.value if isinstance(default, ast.Constant) else NOTHING
            return replace(inner, default=value)
        if isinstance(node, ast.Name) and node.id in self._names:
            node = self._names[node.id]
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
            return None
        found = self._tables.get(ast.unparse(node.value))
        if found is None:
            return None
        field = self._reader.fields(found)[0].get(str(node.slice.value))
        return None if field is None else self._option(field)

    def options(self, found: Found) -> dict[str, Field]:
        """An option for every field of a class."""
        fields = self._reader.fields(found)[0]
        return {name: self._option(field) for name, field in fields.items()}

    def _option(self, field: Field) -> Field:
        return as_option(field, {*self._special, *self._changed})


def annotated(reader: ClassReader, found: Found) -> Iterator[Field]:
    """Options of fields annotated ``A[type, "help"]`` or ``A[type, Arg(…)]``, as SGLang's are."""
    fields = reader.fields(found)[0]
    for node in found.node.body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        declared = _declaration(node.annotation)
        if declared is None:
            continue
        keywords = {}
        if isinstance(declared, ast.Call):
            keywords = {k.arg: k.value for k in declared.keywords if k.arg}
        option = _annotated(reader, found.module, fields[node.target.id], keywords)
        if option is not None:
            yield option


def _declaration(annotation: ast.expr) -> Optional[ast.expr]:
    """The help or the ``Arg(…)`` of an annotation; None where it declares no option."""
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.slice, ast.Tuple):
        return None
    for part in annotation.slice.elts[1:]:
        if isinstance(part, (ast.Constant, ast.JoinedStr, ast.BinOp)):
            return part
        if isinstance(part, ast.Call) and ast.unparse(part.func) == "Arg":
            return part
    return None


def _annotated(
    reader: ClassReader, module: Module, field: Field, keywords: dict[str, ast.expr]
) -> Optional[Field]:
    if reader.value(module, keywords.get("no_cli")) is True:
        return None
    flag = reader.value(module, keywords.get("cli_name"))
    name = flag.lstrip("-").replace("-", "_") if isinstance(flag, str) else field.name
    others = reader.value(module, keywords.get("aliases"))
    aliases = tuple(_spelled(one) for one in others) if isinstance(others, list) else ()
    choices: Any = reader.value(module, keywords.get("choices"))
    types = field.types
    negatable = "action" in keywords and action_of(keywords["action"]) == "BooleanOptionalAction"
    if not negatable and keywords.keys() & {"action", "type_parser"}:
        types = ("?",)
    if "choices" in keywords:
        field = replace(field, choices=tuple(choices) if isinstance(choices, list) else ())
    return replace(field, name=name, types=types, aliases=aliases, negatable=negatable)


def action_of(node: Optional[ast.expr]) -> str:
    """The action of an option: a word, or the name of a class."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    return ast.unparse(node).rpartition(".")[2] if node is not None else ""


def _spelled(flag: str) -> str:
    """A flag's name as a key: without its dashes; a short flag keeps the one it has."""
    return flag[2:].replace("-", "_") if flag.startswith("--") else flag


def named_in(module: Module, *functions: str) -> set[str]:
    """Texts that functions of a module name."""
    return {
        node.value
        for name in functions
        if name in module.functions
        for node in ast.walk(module.functions[name])
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
