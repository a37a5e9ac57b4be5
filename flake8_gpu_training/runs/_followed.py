"""Values that following a program yields: tables with places, functions, things of libraries."""

from __future__ import annotations

import ast
import dataclasses
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Union

from flake8_gpu_training.facts import (
    Document,
    Entry,
    Location,
    Node,
    Origin,
    Setting,
    Unknown,
    known,
)
from flake8_gpu_training.runs.interpolation import yaml_1_2
from flake8_gpu_training.sources._python_interest import is_field_name

MAX_CANDIDATES = 8
HOME = "//project"
"""Where the project lies for the program: what ``__file__`` begins with."""
MAX_DEPTH = 40
"""Depth to which a table that may hold itself is taken apart."""


NO_RETURN = Unknown("it does not return")
"""What a function gives that ends with an exception, whatever branch is taken."""


@dataclass(frozen=True)
class Placed:
    """A scalar or list that was read at a place."""

    value: Any
    setting: Setting


class Either(Unknown):
    """One of its candidates, and nothing else: what the branches of a program give."""


@dataclass(frozen=True)
class External:
    """A thing of a library or a builtin, by its dotted name."""

    name: str


@dataclass(frozen=True)
class Imported:
    """A name that an import binds: its module is followed when the name is first used."""

    dotted: str
    name: str = ""
    level: int = 0


@dataclass(frozen=True)
class Super:
    """What ``super()`` gives in a method of ``home``: attributes of the classes after it."""

    owner: Any
    home: Class


@dataclass(frozen=True)
class File:
    """An open file of the project."""

    path: str


DELETED = Unknown("deleted in a branch")
"""A key of a table that a branch took out, which may have been gone through or not."""


class PathText(str):
    """A path that the program joined; ``Path`` objects are such texts, too."""

    __slots__ = ()


@dataclass(eq=False)
class Module:
    """A Python file that is followed; ``names`` are its globals."""

    path: str
    is_configuration: bool = False
    names: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Function:
    """A function of the project, bound to ``owner`` when it is a method."""

    node: Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda]
    module: Module
    defaults: dict[str, Any]
    decorators: tuple[str, ...] = ()
    owner: Any = None
    closure: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Class:
    """A class of the project; ``fields`` are annotated ones with their default's expression."""

    name: str
    module: Module
    bases: tuple[Any, ...]
    attributes: dict[str, Any]
    fields: dict[str, Optional[ast.expr]]
    is_record: bool = False
    """A dataclass, NamedTuple or pydantic model: built from its fields."""
    annotated: dict[str, ast.AnnAssign] = field(default_factory=dict)
    """The statements of its annotated fields."""

    def lineage(self) -> Iterator[Class]:
        """The class and the project's classes it derives from, nearest first."""
        seen: list[Class] = []
        waiting: list[Any] = [self]
        while waiting and len(seen) < 32:
            item = waiting.pop(0)
            if isinstance(item, Class) and item not in seen:
                seen.append(item)
                waiting += item.bases
                yield item

    def find(self, name: str) -> Any:
        """Attribute ``name`` of the class, or None."""
        for item in self.lineage():
            if name in item.attributes:
                return item.attributes[name]
        return None


@dataclass(frozen=True)
class Given:
    """Arguments of a call; ``is_open``: there may be more of them."""

    positional: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)
    is_open: bool = False
    spread: tuple[Table, ...] = ()
    """Tables that ``**`` took keywords from."""

    def get(self, position: int, *names: str, default: Any = None) -> Any:
        """An argument by its place or name."""
        if 0 <= position < len(self.positional):
            return self.positional[position]
        for name in names:
            if name in self.keywords:
                return self.keywords[name]
        return default


@dataclass
class Frame:
    """Where statements are gone through: ``names`` are the locals.

    ``shared`` names are globals that a function sets; ``doubts`` counts the branches that may
    have left the function before.
    """

    module: Module
    names: dict[str, Any]
    function: Optional[Function] = None
    returned: list[Any] = field(default_factory=list)
    shared: set[str] = field(default_factory=set)
    doubts: int = 0


class Table:
    """A mapping, namespace or object: keys and attributes are the same here.

    ``is_open``: keys may exist, or have other values, that were not seen. ``omega``: texts
    with ``${…}`` in it are references. ``lost``, of a namespace that a command line was parsed
    to: names of options that the program may have set anew, out of sight.
    """

    __slots__ = ("entries", "is_open", "kind", "lost", "omega", "parent")

    def __init__(self, entries: Optional[dict[Any, Any]] = None, *, is_open: bool = False) -> None:
        self.entries: dict[Any, Any] = {}
        self.is_open = is_open
        self.kind: Optional[Class] = None
        self.lost: Optional[set[str]] = None
        self.omega = False
        self.parent: Optional[Table] = None
        for key, value in (entries or {}).items():
            self.put(key, value)

    def put(self, key: Any, value: Any, doubt: bool = False) -> None:
        """Set ``key``; in ``doubt`` it may as well have stayed what it was."""
        if doubt:
            old = self.entries.get(key, Unknown("set in a branch"))
            value = joined(old, value)
        if isinstance(value, Table) and value.parent is None and value is not self:
            value.parent = self
        self.entries[key] = value

    def root(self) -> tuple[Table, tuple[str, ...]]:
        """The outermost table, and the path from it to this one."""
        path: list[str] = []
        table = self
        for _ in range(MAX_DEPTH):
            if table.parent is None:
                break
            name = next((k for k, v in table.parent.entries.items() if v is table), None)
            if not isinstance(name, str):
                break
            path.insert(0, name)
            table = table.parent
        return table, tuple(path)

    def copy(self, depth: int = 0) -> Table:
        """A deep copy."""
        made = Table(is_open=self.is_open)
        made.kind, made.omega = self.kind, self.omega
        for key, value in self.entries.items():
            inner = isinstance(value, Table) and depth < MAX_DEPTH
            made.put(key, value.copy(depth + 1) if inner else value)
        return made


def items_of(value: Any) -> Optional[list[Any]]:
    """What iterating over a value gives; None when that is not known."""
    if isinstance(value, Table):
        return None if value.is_open or value.kind is not None else list(value.entries)
    value = bare(value)
    return value if isinstance(value, list) else None


def bare(value: Any) -> Any:
    """``value`` without its place."""
    return value.value if isinstance(value, Placed) else value


def plain(value: Any, depth: int = 0) -> Any:
    """``value`` as facts have it: scalars, lists, dicts, Unknown."""
    value = bare(value)
    if type(value) in _SIMPLE:
        return value
    if depth > MAX_DEPTH:
        return Unknown("nested too deeply")
    if isinstance(value, Table):
        if value.is_open or value.kind is not None:
            return Unknown("a table that is not all known")
        return {key: plain(item, depth + 1) for key, item in value.entries.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, str):
        return str(value[len(HOME) + 1 :] if value.startswith(f"{HOME}/") else value)
    if isinstance(value, External) and is_field_name(value.name):
        return value.name
    if isinstance(value, (bool, int, float, Unknown)):
        return value
    return Unknown("a value of the program's own")


_SIMPLE = frozenset({type(None), bool, int, float, Unknown, Either})
"""Types of values that are plain as they are."""


def joined(one: Any, other: Any) -> Any:
    """What a value is that is either of the two."""
    if one is other:
        return one
    if isinstance(one, Table) and isinstance(other, Table):
        return _joined_tables(one, other)
    first, second = plain(one), plain(other)
    if known(first) and known(second) and type(first) is type(second) and first == second:
        return one if isinstance(one, Placed) else other
    candidates = _candidates(first, second)
    complete = candidates and all(known(one) or isinstance(one, Either) for one in (first, second))
    kind = Either if complete else Unknown
    return kind("it depends on a branch", candidates)


def _candidates(*values: Any) -> tuple[Any, ...]:
    found: list[Any] = []
    for value in values:
        for item in value.candidates if isinstance(value, Unknown) else (value,):
            if not any(item == old and type(item) is type(old) for old in found):
                found.append(item)
    return tuple(found) if len(found) <= MAX_CANDIDATES else ()


def _joined_tables(one: Table, other: Table) -> Table:
    made = Table(is_open=one.is_open or other.is_open)
    made.omega = one.omega or other.omega
    made.kind = one.kind if one.kind is other.kind else None
    made.lost = other.lost if one.lost is None else one.lost
    for key in [*one.entries, *(key for key in other.entries if key not in one.entries)]:
        if key in one.entries and key in other.entries:
            made.put(key, joined(one.entries[key], other.entries[key]))
        else:
            value = one.entries.get(key, other.entries.get(key))
            made.put(key, joined(Unknown("set in a branch"), value))
    return made


def merged(lower: Table, upper: Table, depth: int = 0) -> Table:
    """``lower`` with what ``upper`` sets, tables within merged likewise."""
    made = lower.copy()
    made.omega = lower.omega or upper.omega
    if upper.is_open:
        made = doubted(made)
    for key, value in upper.entries.items():
        old = made.entries.get(key)
        if isinstance(value, Table) and isinstance(old, Table) and depth < MAX_DEPTH:
            made.put(key, merged(old, value, depth + 1))
        else:
            made.put(key, value.copy() if isinstance(value, Table) else value)
    return made


def doubted(table: Table) -> Table:
    """``table`` when something out of sight may have changed any of its values."""
    made = Table(is_open=True)
    made.kind, made.omega = table.kind, table.omega
    for key, value in table.entries.items():
        if isinstance(value, Table):
            made.put(key, doubted(value))
        else:
            made.put(
                key, Unknown("something out of sight may change it", _candidates(plain(value)))
            )
    return made


def of_plain(value: Any) -> Any:
    """Plain dicts as tables."""
    if isinstance(value, dict):
        return Table({key: of_plain(item) for key, item in value.items()})
    return [of_plain(item) for item in value] if isinstance(value, list) else value


def table_of(document: Document, omega: bool = False) -> Any:
    """A document's content; as OmegaConf reads it when ``omega``."""
    return of_node(document.root, omega, None)


def of_node(node: Node, omega: bool, entry: Any, depth: int = 0) -> Any:
    """A node's content, its scalars and lists with their places."""
    if depth > MAX_DEPTH:
        return Unknown("nested too deeply")
    if node.kind == "mapping":
        made = Table()
        made.omega = omega
        for key, inner in node.mapping.items():
            made.put(key, of_node(inner.node, omega, inner, depth + 1))
        return made
    if node.kind == "sequence" and any(item.kind != "scalar" for item in node.items):
        return [of_node(item, omega, None, depth + 1) for item in node.items]
    value = node.plain()
    if omega and node.kind == "scalar":
        value = node.text if "${" in node.text else yaml_1_2(value)
    if entry is None:
        return value
    return Placed(value, _setting(entry.key, value, entry.location, node))


def _setting(name: str, value: Any, location: Location, node: Node) -> Setting:
    text = node.text if node.kind == "scalar" else ""
    return Setting(
        name,
        value,
        location,
        Origin.FILE,
        text=text,
        value_location=(node.content or node.location) if text else None,
    )


def node_of(value: Any, place: Location, depth: int = 0) -> Node:
    """A value as a node of a document; what has no place of its own stands at ``place``."""
    where = (value.setting.location if isinstance(value, Placed) else None) or place
    value = bare(value)
    if isinstance(value, Table) and depth < MAX_DEPTH:
        inner = {key: node_of(item, where, depth + 1) for key, item in value.entries.items()}
        mapping = {str(key): Entry(str(key), node.location, node) for key, node in inner.items()}
        return Node(None, where, mapping=mapping, kind="mapping")
    if isinstance(value, list) and depth < MAX_DEPTH:
        items = tuple(node_of(item, where, depth + 1) for item in value)
        return Node(None, where, items=items, kind="sequence")
    return Node(plain(value), where)


def settings_of(
    table: Table, leaf: Callable[[Table, Any], Any], prefix: str = "", depth: int = 0
) -> dict[str, Setting]:
    """Leaves of a table by dotted name; ``leaf`` reads one."""
    found: dict[str, Setting] = {}
    for key, value in table.entries.items():
        if not isinstance(key, str):
            continue
        name = f"{prefix}{key}"
        if isinstance(value, Table):
            if depth < MAX_DEPTH:
                found.update(settings_of(value, leaf, f"{name}.", depth + 1))
        else:
            setting = setting_of(name, leaf(table, key))
            if setting is not None:
                found[name] = setting
    return found


def unread_in(table: Table, prefix: str = "", depth: int = 0) -> Iterator[str]:
    """Dotted names of a table whose values could not be read."""
    for key, value in table.entries.items():
        if isinstance(value, Table):
            if depth < MAX_DEPTH:
                yield from unread_in(value, f"{prefix}{key}.", depth + 1)
        elif isinstance(plain(value), Unknown):
            yield f"{prefix}{key}"


def setting_of(name: str, value: Any) -> Optional[Setting]:
    """A value as a setting; None when nothing is known about it."""
    shown = plain(value)
    if isinstance(shown, Unknown) and not shown.candidates:
        return None
    if isinstance(value, Placed):
        return dataclasses.replace(value.setting, name=name, value=shown)
    return Setting(name, shown, None, Origin.DERIVED)


def put_dotted(table: Table, dotted: str, value: Any, doubt: bool = False) -> None:
    """Set ``a.b.c``, with the tables on the way."""
    parts = dotted.split(".")
    for part in parts[:-1]:
        inner = table.entries.get(part)
        if not isinstance(inner, Table):
            inner = Table(is_open=table.is_open)
            inner.omega = table.omega
            table.put(part, inner)
        table = inner
    table.put(parts[-1], value, doubt)


def joined_path(parts: list[Any], text: str) -> Any:
    """A path from its parts, Unknown when one of them is."""
    if not all(isinstance(part, str) for part in parts):
        return Unknown(text)
    return PathText(posixpath.normpath(posixpath.join(*parts)) if parts else ".")


def put_on_class(owner: Class, key: Any, value: Any, doubt: bool) -> None:
    """Set an attribute of a class; a computed name may mean any of them."""
    if isinstance(key, str):
        old = owner.find(key)
        old = Unknown("set in a branch") if old is None else old
        owner.attributes[key] = joined(old, value) if doubt else value
        return
    for name in {name for item in owner.lineage() for name in item.attributes}:
        owner.attributes[name] = joined(owner.find(name), Unknown("set by a computed name"))


def doubt_all(owner: Table) -> None:
    """Any key of ``owner`` may have another value from now on."""
    unsure = doubted(owner)
    owner.is_open = True
    for key, value in unsure.entries.items():
        owner.entries[key] = value
    lose(owner, owner.entries)


def lose(owner: Table, names: Iterable[Any]) -> None:
    """Of options of a command line, those of ``names`` may have any value from now on."""
    if owner.lost is not None:
        owner.lost.update(name for name in names if isinstance(name, str))


def take_place(new: Table, old: Any) -> None:
    """``new`` is what a name stands for that stood for the ``old`` options."""
    if not isinstance(old, Table) or old.lost is None or old is new:
        return
    for name, value in old.entries.items():
        if name not in new.entries:
            if new.is_open:
                lose(old, [name])
        elif not known(plain(new.entries[name])) or plain(new.entries[name]) != plain(value):
            lose(old, [name])
    new.lost = old.lost
