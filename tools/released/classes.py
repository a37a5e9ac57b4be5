"""Argument classes as data: dataclass and pydantic fields with type, default and choices."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Optional, Union

from released.archives import Module, Release


class _Nothing:
    """Marks a default that is computed when the program runs, or that does not exist."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING = _Nothing()

_SIMPLE = {"int", "float", "str", "bool", "dict", "list"}
_LISTS = {"List", "Sequence", "Tuple", "tuple", "set", "Set", "Iterable"}
_DICTS = {"Dict", "Mapping"}
# Bases that take no parameters of their own.
_PLAIN_BASES = {"abc", "typing", "pydantic", "enum"}
_FORBIDS = re.compile(r"extra\s*=\s*(?:Extra\.)?['\"]?forbid")
_WRAPPERS = {"Annotated", "A", "SkipValidation"}
_FIELDS = {"field", "Field", "A", "configclass_field"}


@dataclass(frozen=True)
class Field:
    """One parameter as a release declares it; ``types`` is empty when they are not plain.

    ``negatable``: a flag that has an opposite, ``--no-x``.
    """

    name: str
    types: tuple[str, ...] = ()
    optional: bool = False
    default: Any = NOTHING
    choices: tuple[Any, ...] = ()
    aliases: tuple[str, ...] = ()
    negatable: bool = False
    deprecated: bool = False


@dataclass(frozen=True)
class Found:
    """A class with the module that defines it."""

    module: Module
    node: ast.ClassDef


class ClassReader:
    """Reads the classes of one release.

    ``literals_only``: choices are the literals of a type in which no ``str`` stands beside them;
    else, as HfArgumentParser has it, also the members of enums, and ``Literal[…] | str`` takes
    none but the literals.
    """

    def __init__(self, release: Release, literals_only: bool = False) -> None:
        self.release = release
        self.literals_only = literals_only

    def find(self, module: Module, name: str, depth: int = 0) -> Optional[Found]:
        """The class that ``name`` stands for in ``module``, through imports."""
        node = module.classes.get(name)
        if node is not None:
            return Found(module, node)
        if depth > 8:
            return None
        sources = [module.imports[name]] if name in module.imports else []
        for origin, there in sources or [(star, name) for star in module.stars]:
            target = self.release.dotted(origin)
            found = None if target is None else self.find(target, there, depth + 1)
            if found is not None:
                return found
        return None

    def fields(self, found: Found) -> tuple[dict[str, Field], list[tuple[str, str]]]:
        """Fields by name, inherited ones first, and bases of other distributions."""
        collected: dict[str, Field] = {}
        foreign: list[tuple[str, str]] = []
        for base in reversed(found.node.bases):
            name = ast.unparse(base).split("[")[0]
            parent = self.find(found.module, name.rpartition(".")[2])
            if parent is not None and parent.node is not found.node:
                inherited, others = self.fields(parent)
                collected.update(inherited)
                foreign += [one for one in others if one not in foreign]
            else:
                origin = found.module.imports.get(name, ("", name))
                package = origin[0].split(".")[0]
                own = ("", self.release.distribution.replace("-", "_"))
                if package not in (*own, *_PLAIN_BASES) and not origin[1].endswith("Mixin"):
                    foreign.append((package, origin[1]))
        for field in self._own(found):
            collected.pop(field.name, None)
            collected[field.name] = field
        return collected, foreign

    def refuses_others(self, found: Found) -> bool:
        """Whether a pydantic model, or a base of it, forbids names that it does not declare."""
        texts = (ast.unparse(node) for node in found.node.body if _configures(node))
        if any(_FORBIDS.search(text) for text in texts):
            return True
        bases = (self.find(found.module, _last(base)) for base in found.node.bases)
        return any(self.refuses_others(one) for one in bases if one is not None)

    def models(self, found: Found) -> Iterator[tuple[str, Found]]:
        """Fields that hold a model of their own, with its class."""
        for base in found.node.bases:
            parent = self.find(found.module, _last(base))
            if parent is not None and parent.node is not found.node:
                yield from self.models(parent)
        for node in found.node.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                for part in ast.walk(node.annotation):
                    held = self.find(found.module, _last(part)) if _last(part) else None
                    if held is not None and not self.enum_values(found.module, _last(part)):
                        yield node.target.id, held

    def _own(self, found: Found) -> Iterator[Field]:
        for node in found.node.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                field = self._field(found.module, node.target.id, node.annotation, node.value)
                if field is not None:
                    yield field

    def _field(
        self, module: Module, name: str, annotation: ast.expr, value: Optional[ast.expr]
    ) -> Optional[Field]:
        if "ClassVar" in ast.unparse(annotation) or "InitVar" in ast.unparse(annotation):
            return None
        field = self.typed(module, name, annotation)
        if value is None:
            return field
        if isinstance(value, ast.Call) and _last(value.func) in _FIELDS:
            return self._declared(module, field, value)
        return replace(field, default=self.value(module, value))

    def _declared(self, module: Module, field: Field, call: ast.Call) -> Optional[Field]:
        """``field(default=…, metadata={…})`` and pydantic's ``Field(…)``."""
        keywords = {k.arg: k.value for k in call.keywords if k.arg}
        if _is(keywords.get("init"), False):
            return None
        default: Any = NOTHING
        if "default" in keywords:
            default = self.value(module, keywords["default"])
        elif "default_factory" in keywords:
            default = self._made(module, keywords["default_factory"])
        elif call.args:
            default = self.value(module, call.args[0])
        alias = self.value(module, keywords["alias"]) if "alias" in keywords else NOTHING
        aliases = (alias,) if isinstance(alias, str) else ()
        metadata = keywords.get("metadata")
        if isinstance(metadata, ast.Dict):
            for key, value in zip(metadata.keys, metadata.values):
                if _is(key, "aliases"):
                    given = self.value(module, value)
                    aliases += tuple(given) if isinstance(given, list) else ()
                if _is(key, "choices") and not field.choices:
                    given = self.value(module, value)
                    field = replace(field, choices=tuple(given) if isinstance(given, list) else ())
        if default is Ellipsis:
            default = NOTHING
        return replace(field, default=default, aliases=aliases)

    def _made(self, module: Module, factory: ast.expr) -> Any:
        if isinstance(factory, ast.Lambda):
            return self.value(module, factory.body)
        return {"list": [], "dict": {}}.get(_last(factory), NOTHING)

    # --- types ---

    def typed(self, module: Module, name: str, annotation: Optional[ast.expr]) -> Field:
        """A field with the plain types, choices and optionality of an annotation."""
        if annotation is None:
            return Field(name)
        types, choices, optional = self._types(module, annotation)
        return Field(name, tuple(sorted(types)), optional, choices=tuple(choices))

    def _types(self, module: Module, node: ast.expr) -> tuple[set[str], list[Any], bool]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self._types(module, ast.parse(node.value, mode="eval").body)
        if isinstance(node, ast.Constant):
            return (set(), [], True) if node.value is None else ({"?"}, [], False)
        if isinstance(node, ast.BinOp):
            return self._union(module, [node.left, node.right])
        if isinstance(node, ast.Subscript):
            return self._subscript(module, node)
        name = _last(node)
        if name in _SIMPLE:
            return {name}, [], False
        if name in _LISTS:
            return {"list"}, [], False
        if name in _DICTS:
            return {"dict"}, [], False
        members = self.enum_values(module, name) if name not in module.constants else []
        if members and self.literals_only:
            return {"?"}, [], False
        if members:
            return {type(member).__name__ for member in members}, members, False
        meant = self.constant(module, name)
        if meant is not None and isinstance(meant[1], (ast.Subscript, ast.BinOp, ast.Name)):
            return self._types(*meant)
        return {"?"}, [], False

    def _subscript(self, module: Module, node: ast.Subscript) -> tuple[set[str], list[Any], bool]:
        name = _last(node.value)
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name == "Optional":
            types, choices, _ = self._types(module, inner[0])
            return types, choices, True
        if name == "Union":
            return self._union(module, list(inner))
        if name == "Literal":
            values = self._literals(module, inner)
            names = {type(v).__name__ for v in values if v is not None and v is not NOTHING}
            choices = [] if any(v is NOTHING for v in values) else values
            return names or {"?"}, choices, None in values
        if name in _WRAPPERS:
            return self._types(module, inner[0])
        if name in _LISTS or name == "list":
            return {"list"}, [], False
        if name in _DICTS or name == "dict":
            return {"dict"}, [], False
        return {"?"}, [], False

    def _literals(self, module: Module, parts: list[ast.expr], depth: int = 0) -> list[Any]:
        """The values of ``Literal[…]``, those of a literal type within it among them."""
        values: list[Any] = []
        for part in parts:
            value = self.value(module, part)
            meant = self.constant(module, part.id) if isinstance(part, ast.Name) else None
            if value is NOTHING and meant is not None and depth < 8:
                there, within = meant
                if isinstance(within, ast.Subscript) and _last(within.value) == "Literal":
                    inner = within.slice
                    listed = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                    values += self._literals(there, list(listed), depth + 1)
                    continue
            values.append(value)
        return values

    def _union(self, module: Module, parts: list[ast.expr]) -> tuple[set[str], list[Any], bool]:
        types: set[str] = set()
        choices: list[Any] = []
        optional = False
        closed = True
        for part in parts:
            found, some, maybe = self._types(module, part)
            types |= found
            choices += some
            optional = optional or maybe
            enumerated = bool(some) or (maybe and not found)
            # ``SchedulerType | str``: a text that must be one of the members.
            beside_enum = found == {"str"} and not some
            if self.literals_only:
                beside_enum = found == {"?"}  # an object, which no text is
            closed = closed and (enumerated or beside_enum)
        if "str" in types and not all(isinstance(choice, str) for choice in choices):
            closed = False  # ``str | Literal[False]``: any text
        return types, choices if closed else [], optional

    def enum_values(self, module: Module, name: str) -> list[Any]:
        """The values of an Enum class, or nothing when it is none."""
        found = self.find(module, name)
        if found is None or not any("Enum" in ast.unparse(b) for b in found.node.bases):
            return []
        values = []
        for node in found.node.body:
            if isinstance(node, ast.Assign):
                value = self.value(found.module, node.value)
                if value is NOTHING:
                    return []
                values += [] if value in values else [value]
        return values

    # --- values ---

    def value(self, module: Module, node: Optional[ast.expr], depth: int = 0) -> Any:
        """A literal, a module's constant or an Enum member as plain data; NOTHING otherwise."""
        if node is None or depth > 6:
            return NOTHING
        try:
            return _plain(ast.literal_eval(node))
        except (ValueError, TypeError, SyntaxError):
            pass
        if isinstance(node, ast.Name):
            return self._named(module, node.id, depth)
        if isinstance(node, ast.Attribute):
            return self._member(module, node)
        if isinstance(node, ast.Call):
            return self._call(module, node, depth)
        if isinstance(node, ast.BinOp):
            return _reckoned(
                node.op,
                self.value(module, node.left, depth + 1),
                self.value(module, node.right, depth + 1),
            )
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return self._sequence(module, node, depth)
        return NOTHING

    def _call(self, module: Module, node: ast.Call, depth: int) -> Any:
        """``pp_int(5e8)``, an int that prints prettily, and ``get_field(Class, "name")``."""
        name = _last(node.func)
        if name == "pp_int" and node.args:
            whole = self.value(module, node.args[0], depth + 1)
            return int(whole) if isinstance(whole, (int, float)) else NOTHING
        if name == "get_field" and len(node.args) == 2:
            found = self.find(module, _last(node.args[0]))
            attribute = self.value(module, node.args[1])
            return NOTHING if found is None else self.default(found, attribute)
        return NOTHING

    def _sequence(
        self, module: Module, node: Union[ast.List, ast.Tuple, ast.Set], depth: int
    ) -> Any:
        items: list[Any] = []
        for one in node.elts:
            if isinstance(one, ast.Starred):
                part = self.value(module, one.value, depth + 1)
                if not isinstance(part, list):
                    return NOTHING
                items += part
            else:
                items.append(self.value(module, one, depth + 1))
        return NOTHING if any(item is NOTHING for item in items) else items

    def constant(
        self, module: Module, name: str, depth: int = 0
    ) -> Optional[tuple[Module, ast.expr]]:
        """The expression that a name stands for, through imports, and the module it is in."""
        if name in module.constants:
            return module, module.constants[name]
        sources = [module.imports[name]] if name in module.imports else []
        for origin, there in sources or [(star, name) for star in module.stars]:
            target = self.release.dotted(origin) if depth < 8 else None
            found = None if target is None else self.constant(target, there, depth + 1)
            if found is not None:
                return found
        return None

    def _named(self, module: Module, name: str, depth: int) -> Any:
        meant = self.constant(module, name)
        return NOTHING if meant is None else self.value(*meant, depth + 1)

    def _member(self, module: Module, node: ast.Attribute) -> Any:
        """``IntervalStrategy.STEPS`` (also with ``.value``) as its value."""
        if node.attr == "value" and isinstance(node.value, ast.Attribute):
            return self._member(module, node.value)
        found = self.find(module, _last(node.value))
        if found is None:
            return NOTHING
        return self.default(found, node.attr)

    def default(self, found: Found, name: str) -> Any:
        """What a class assigns to a name, as a plain value or by ``field(default=…)``."""
        for one in found.node.body:
            if isinstance(one, ast.Assign) and any(_last(t) == name for t in one.targets):
                return self.value(found.module, one.value)
            if isinstance(one, ast.AnnAssign) and _last(one.target) == name:
                if isinstance(one.value, ast.Call) and _last(one.value.func) in _FIELDS:
                    field = self._declared(found.module, Field(name), one.value)
                    return NOTHING if field is None else field.default
                return self.value(found.module, one.value)
        for base in found.node.bases:
            parent = self.find(found.module, _last(base))
            if parent is not None and parent.node is not found.node:
                inherited = self.default(parent, name)
                if inherited is not NOTHING:
                    return inherited
        return NOTHING


def _configures(node: ast.stmt) -> bool:
    """Whether a statement of a class sets up pydantic: ``class Config`` or ``model_config``."""
    if isinstance(node, ast.ClassDef):
        return node.name == "Config"
    return isinstance(node, ast.Assign) and _last(node.targets[0]) == "model_config"


def _last(node: ast.AST) -> str:
    """The last part of a dotted name; "" for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is(node: Optional[ast.expr], value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value == value


def _plain(value: Any) -> Any:
    """Tuples and sets as lists, what JSON has as it is; NOTHING otherwise."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if value is Ellipsis or value is None or isinstance(value, (str, int, float, bool)):
        return value
    return NOTHING


def _reckoned(operation: ast.operator, left: Any, right: Any) -> Any:
    if left is NOTHING or right is NOTHING:
        return NOTHING
    try:
        if isinstance(operation, ast.Add):
            return left + right
        if isinstance(operation, ast.Mult):
            return left * right
        if isinstance(operation, ast.Pow) and abs(right) < 64:
            return left**right
        if isinstance(operation, ast.Div):
            return left / right
        if isinstance(operation, ast.Sub):
            return left - right
    except TypeError:
        pass
    return NOTHING
