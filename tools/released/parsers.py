"""Parameters that code declares by calls and signatures: ``add_argument`` and ``__init__``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Optional

from released.archives import Module
from released.classes import NOTHING, ClassReader, Field, Found
from released.options import action_of

_SWITCHES: Mapping[str, Any] = {
    "store_true": False,
    "store_false": True,
    "BooleanOptionalAction": NOTHING,
    "StoreBoolean": NOTHING,
    "DeprecatedStoreTrueAction": False,
}

_STORING = {"", "store", "append", "extend"}

Spread = Callable[[ast.expr], Optional[Field]]
"""What the keywords that ``**expression`` adds say of an option; None when that is not known."""


def arguments(
    reader: ClassReader, module: Module, spread: Spread = lambda _: None
) -> dict[str, Field]:
    """Options that ``add_argument`` calls declare, by their first flag."""
    found: dict[str, Field] = {}
    for call in _declarations(module.tree):
        for field in _argument(reader, module, call, spread):
            found.setdefault(field.name, field)
    return found


def _declarations(scope: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from [node] if node.func.attr == "add_argument" else []


def _argument(
    reader: ClassReader, module: Module, call: ast.Call, spread: Spread
) -> Iterator[Field]:
    flags = [reader.value(module, one) for one in call.args]
    names = [flag for flag in flags if isinstance(flag, str) and flag.startswith("--")]
    if not names:
        return
    keywords = {k.arg: k.value for k in call.keywords if k.arg}
    field = replace(_named(flags), default=reader.value(module, keywords.get("default")))
    action = action_of(keywords.get("action"))
    deprecated = reader.value(module, keywords.get("deprecated")) is True
    field = replace(field, deprecated=deprecated or action.startswith("Deprecated"))
    for added in (k.value for k in call.keywords if k.arg is None):
        option = spread(added)
        if option is not None:
            yield replace(
                option,
                name=field.name,
                aliases=field.aliases,
                deprecated=field.deprecated,
                default=field.default if "default" in keywords else option.default,
            )
            return
    if action in _SWITCHES:
        field = replace(field, negatable=action == "BooleanOptionalAction")
        default = _SWITCHES[action] if field.default is NOTHING else field.default
        yield replace(field, types=("bool",), default=default)
        return
    unknown = action not in _STORING and "type" not in keywords
    unknown = unknown or any(k.arg is None for k in call.keywords)
    if unknown:  # ``**kwargs`` and actions of its own: the rest is out of sight
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


def _named(flags: Sequence[Any]) -> Field:
    """A field named by the first long flag; the others are its aliases, short ones with dash."""
    spelled = [
        one[2:].replace("-", "_") if one.startswith("--") else one
        for one in flags
        if isinstance(one, str) and one.startswith("-")
    ]
    name = next(one for one in spelled if not one.startswith("-"))
    return Field(name, aliases=tuple(dict.fromkeys(one for one in spelled if one != name)))


def _type(node: Optional[ast.expr]) -> str:
    if node is None:
        return "str"
    name = ast.unparse(node)
    name = {"nullable_str": "str"}.get(name, name)
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


def names(reader: ClassReader, found: Optional[Found]) -> dict[str, Field]:
    """The names alone that a constructor takes, its bases' too where it hands them on.

    Nothing where it takes any name. A decorator that takes a former name for a new one counts.
    """
    if found is None:
        return {}
    made = [
        node
        for node in found.node.body
        if isinstance(node, ast.FunctionDef) and node.name == "__init__"
    ]
    own: dict[str, Field] = {}
    for method in made:
        arguments_of = (*method.args.posonlyargs, *method.args.args, *method.args.kwonlyargs)
        own = {one.arg: Field(one.arg) for one in arguments_of if one.arg != "self"}
        for former in _former_names(method):
            own[former] = Field(former, deprecated=True)
        if method.args.kwarg is None:
            return own
    for base in found.node.bases:
        name = ast.unparse(base).rpartition(".")[2]
        inherited = names(reader, reader.find(found.module, name))
        if inherited:
            return {**inherited, **own}
    return {}


def _former_names(method: ast.FunctionDef) -> Iterator[str]:
    """Names that ``deprecate_kwarg`` takes for those of the signature."""
    for node in method.decorator_list:
        given = node.args if isinstance(node, ast.Call) else []
        name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if name.endswith("deprecate_kwarg") and given and isinstance(given[0], ast.Constant):
            yield str(given[0].value)


def popped(reader: ClassReader, module: Module, name: str) -> dict[str, Field]:
    """What a class takes by ``kwargs.pop("name", default)`` in its ``__init__``."""
    found = reader.find(module, name)
    methods = found.node.body if found is not None else []
    made = (n for n in methods if isinstance(n, ast.FunctionDef) and n.name == "__init__")
    fields: dict[str, Field] = {}
    for call in (n for method in made for n in ast.walk(method) if isinstance(n, ast.Call)):
        if ast.unparse(call.func) != "kwargs.pop" or not isinstance(call.args[0], ast.Constant):
            continue
        key = str(call.args[0].value)
        default = reader.value(module, call.args[1]) if len(call.args) > 1 else NOTHING
        fields.setdefault(key, Field(key, default=default))
    return fields


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
