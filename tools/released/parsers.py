"""Parameters that code declares by calls and signatures: ``add_argument`` and ``__init__``."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Optional

from released.archives import Module
from released.classes import NOTHING, ClassReader, Field

_SWITCHES = {"store_true": False, "store_false": True, "BooleanOptionalAction": NOTHING}


def arguments(
    reader: ClassReader, module: Module, within: Optional[ast.AST] = None
) -> dict[str, Field]:
    """Options that ``add_argument`` calls declare, by their destination."""
    found: dict[str, Field] = {}
    for call in _declarations(within or module.tree):
        for field in _argument(reader, module, call):
            found.setdefault(field.name, field)
    return found


def _declarations(scope: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from [node] if node.func.attr == "add_argument" else []


def _argument(reader: ClassReader, module: Module, call: ast.Call) -> Iterator[Field]:
    flags = [reader.value(module, one) for one in call.args]
    names = [flag for flag in flags if isinstance(flag, str) and flag.startswith("--")]
    if not names:
        return
    keywords = {k.arg: k.value for k in call.keywords if k.arg}
    destination = reader.value(module, keywords.get("dest"))
    spelled = [name.lstrip("-").replace("-", "_") for name in names]
    name = spelled[0]
    aliases = tuple(dict.fromkeys(one for one in spelled[1:] if one != name))
    field = Field(name, default=reader.value(module, keywords.get("default")), aliases=aliases)
    if isinstance(destination, str) and destination != name:
        field = replace(field, aliases=aliases)
    action = _action(keywords.get("action"))
    if action in _SWITCHES:
        default = _SWITCHES[action] if field.default is NOTHING else field.default
        yield replace(field, types=("bool",), default=default)
        return
    if any(k.arg is None for k in call.keywords):  # **kwargs: the rest is out of sight
        yield replace(field, types=("?",))
        return
    if "default" not in keywords:
        field = replace(field, default=None)
    choices = reader.value(module, keywords.get("choices"))
    if isinstance(choices, list):
        field = replace(field, choices=tuple(choices))
    if "nargs" in keywords and reader.value(module, keywords["nargs"]) not in ("?", NOTHING):
        yield replace(field, types=("list",))
        return
    yield replace(field, types=(_type(keywords.get("type")),))


def _action(node: Optional[ast.expr]) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    return ast.unparse(node).rpartition(".")[2] if node is not None else ""


def _type(node: Optional[ast.expr]) -> str:
    if node is None:
        return "str"
    name = ast.unparse(node)
    return name if name in ("int", "float", "str") else "?"


def signature(reader: ClassReader, module: Module, name: str) -> dict[str, Field]:
    """The keyword parameters of a function, or of ``Class.method``."""
    owner, _, method = name.rpartition(".")
    scope: Any = module.tree
    if owner:
        found = reader.find(module, owner)
        if found is None:
            return {}
        module, scope = found.module, found.node
    for node in ast.walk(scope):
        if isinstance(node, ast.FunctionDef) and node.name == method and not _overloads(node):
            return dict(_parameters(reader, module, node.args))
    return {}


def _overloads(node: ast.FunctionDef) -> bool:
    return any("overload" in ast.unparse(one) for one in node.decorator_list)


def _parameters(
    reader: ClassReader, module: Module, args: ast.arguments
) -> Iterator[tuple[str, Field]]:
    positional = [*args.posonlyargs, *args.args]
    missing: list[Optional[ast.expr]] = [None] * (len(positional) - len(args.defaults))
    pairs = [
        *zip(positional, [*missing, *args.defaults]),
        *zip(args.kwonlyargs, args.kw_defaults),
    ]
    for argument, default in pairs:
        if argument.arg in ("self", "cls"):
            continue
        field = reader.typed(module, argument.arg, argument.annotation)
        yield argument.arg, replace(field, default=reader.value(module, default))


def joined(*parts: Mapping[str, Field]) -> dict[str, Field]:
    """Parameters of several declarations; the first one that names a parameter counts."""
    found: dict[str, Field] = {}
    for part in parts:
        for name, field in part.items():
            found.setdefault(name, field)
    return found
