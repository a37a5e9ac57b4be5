"""Scopes of a Python file: what each name is bound to, and the dotted name it stands for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Optional

import libcst as cst

MAX_ALIASES = 8
"""How many assignments a name is followed through."""

_SAME_OBJECT = frozenset({"to", "cuda", "cpu", "train", "eval", "half", "bfloat16", "float"})
_FACTORIES = frozenset({"from_pretrained", "from_config", "from_engine_args", "from_dict"})


Test = tuple[Optional[cst.BaseExpression], bool]
"""The test of a branch (None: nobody can tell), and how it must come out."""


@dataclass(frozen=True)
class Binding:
    """One binding of a name: the value's node (None when only a run can tell) and its place.

    ``keyed`` is the index into the value when a tuple of names is bound at once. ``tests``: the
    branches that it stands in, with whether each test holds there; ``perhaps``: a loop, a handler
    or the like decides whether it is reached.
    """

    value: Optional[cst.BaseExpression]
    node: cst.CSTNode
    scope: Scope
    keyed: Optional[int] = None
    tests: tuple[Test, ...] = ()
    perhaps: bool = False
    in_loop: bool = False


@dataclass(eq=False)
class Scope:
    """A module, class or function; ``name`` is dotted and empty for the module."""

    name: str = ""
    kind: str = "module"
    parent: Optional[Scope] = None
    imports: dict[str, str] = field(default_factory=dict)
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    definitions: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    """Names of containers that are changed in place after they were bound."""
    added: dict[str, list[Binding]] = field(default_factory=dict)
    """Of names bound here, the entries that this scope sets one by one (``kwargs["a"] = 1``)."""
    elsewhere: set[str] = field(default_factory=set)
    """Names declared ``global`` or ``nonlocal``."""

    def bind(
        self,
        name: str,
        value: Optional[cst.BaseExpression],
        node: cst.CSTNode,
        keyed: Optional[int] = None,
        tests: tuple[Test, ...] = (),
        *,
        perhaps: bool = False,
        in_loop: bool = False,
    ) -> None:
        """Note one more binding of ``name`` (dotted for attributes)."""
        scope = self
        if name in self.elsewhere:
            scope = self.owner(name) or self.top()
        elif name.startswith("self.") and self.enclosing_class() is not None:
            scope = self.enclosing_class() or self
        made = Binding(value, node, self, keyed, tests, perhaps, in_loop)
        scope.bindings.setdefault(name, []).append(made)

    def changes(self, name: str) -> bool:
        """Whether a container has not, or not always, the value that it is bound to."""
        return name in self.changed or name in self.added

    def top(self) -> Scope:
        """The module's scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def enclosing_class(self) -> Optional[Scope]:
        """The class whose method this is, if any."""
        scope: Optional[Scope] = self
        while scope is not None and scope.kind != "class":
            scope = scope.parent
        return scope

    def visible(self) -> Iterator[Scope]:
        """The scopes a name is looked up in, innermost first."""
        yield self
        scope = self.parent
        while scope is not None:
            if scope.kind != "class":
                yield scope
            scope = scope.parent

    def owner(self, name: str) -> Optional[Scope]:
        """The enclosing scope that binds ``name``."""
        for scope in self.visible():
            if scope is not self and (name in scope.bindings or name in scope.imports):
                return scope
        return None

    def lookup(self, name: str) -> tuple[Optional[Scope], list[Binding]]:
        """The scope that ``name`` belongs to as seen from here, and its bindings there."""
        if name.startswith("self."):
            owner = self.enclosing_class()
            return owner, owner.bindings.get(name, []) if owner is not None else []
        for scope in self.visible():
            if name in scope.bindings:
                return scope, scope.bindings[name]
            if name in scope.imports or name in scope.definitions:
                return scope, []
        return None, []

    def imported(self, name: str) -> str:
        """The dotted name that ``name`` was imported as, or nothing.

        Bound to the result of a call as well (``DataLoader = partial(DataLoader, ...)``), it
        is something else.
        """
        for scope in self.visible():
            made = (binding.value for binding in scope.bindings.get(name, ()))
            if name in scope.imports and not any(isinstance(value, cst.Call) for value in made):
                return scope.imports[name]
            if name in scope.bindings or name in scope.definitions:
                return ""
        return ""


def dotted_name(node: cst.CSTNode) -> str:
    """``a.b.c`` as written, or nothing when the node is not a chain of names."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return ""
    parts.append(node.value)
    return ".".join(reversed(parts))


def resolve(name: str, scope: Scope, depth: int = 0) -> str:
    """The dotted name with imports and simple assignments (``Cfg = SFTConfig``) followed."""
    root, _, rest = name.partition(".")
    imported = scope.imported(root)
    if imported:
        return f"{imported}.{rest}" if rest else imported
    if depth >= MAX_ALIASES:
        return name
    _, bindings = scope.lookup(root)
    if len(bindings) != 1 or bindings[0].value is None or bindings[0].keyed is not None:
        return name
    written = dotted_name(bindings[0].value)
    target = resolve(written, bindings[0].scope, depth + 1) if written else ""
    is_class = target.rpartition(".")[2][:1].isupper()
    if not target or not (is_class or target != written):
        return name
    return f"{target}.{rest}" if rest else target


def receiver_class(name: str, scope: Scope, depth: int = 0) -> str:
    """Class of the object that ``name`` holds when it was built in sight, else nothing."""
    if depth >= MAX_ALIASES:
        return ""
    _, bindings = scope.lookup(name)
    found = {built for binding in bindings for built in [_built(binding, name, depth + 1)] if built}
    return found.pop() if len(found) == 1 else ""


def _built(binding: Binding, name: str, depth: int) -> str:
    value = binding.value
    if value is None:
        return ""
    return class_of(value, binding.scope, depth, name, binding.keyed)


def class_of(
    value: cst.BaseExpression,
    scope: Scope,
    depth: int = 0,
    name: str = "",
    keyed: Optional[int] = None,
) -> str:
    """Class of the object that an expression makes; ``name`` is what it is bound to."""
    if depth >= MAX_ALIASES:
        return ""
    if isinstance(value, cst.Await):
        value = value.expression
    if not isinstance(value, cst.Call):
        written = dotted_name(value)
        if not written or written == name or keyed is not None:
            return ""
        return receiver_class(written, scope, depth + 1)
    written = dotted_name(value.func)
    method = written.rpartition(".")[2]
    if method == "prepare":
        # accelerator.prepare(a, b) gives its arguments back, in order.
        index = keyed or 0
        if index < len(value.args):
            argument = dotted_name(value.args[index].value)
            if argument and argument != name:
                return receiver_class(argument, scope, depth + 1)
        return ""
    if keyed is not None:
        return ""
    if (isinstance(value.func, cst.Attribute) and method in _SAME_OBJECT) or not written:
        inner = value.func.value if isinstance(value.func, cst.Attribute) else None
        return class_of(inner, scope, depth + 1, name) if inner is not None else ""
    resolved = resolve(written, scope)
    head, _, last = resolved.rpartition(".")
    return head if last in _FACTORIES else resolved
