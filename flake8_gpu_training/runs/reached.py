"""Which functions and classes of a program its run comes to: nothing calls the others by name."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Optional, Union, cast

from flake8_gpu_training.facts import Location, PythonFile

MAX_LINES = 60_000
"""Lines of a program's files, beyond which all of them count."""
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_Def = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef]
_DEFINES = frozenset({*_Function, ast.ClassDef})
_MENTIONS = frozenset(
    {ast.Name, ast.Attribute, ast.Constant, ast.Import, ast.ImportFrom, ast.Call, ast.Subscript}
)
_REBINDS = frozenset({ast.AugAssign, ast.Tuple})
_EMPTY = frozenset({ast.Load, ast.Store, ast.Del})
_LIMIT = 120
# Decorators that hand a function to nobody who would call it.
_PLAIN_DECORATORS = frozenset(
    """
    staticmethod classmethod property setter cached_property abstractmethod overload wraps
    lru_cache cache contextmanager no_grad inference_mode enable_grad dataclass compile script
    jit override final total_ordering
    """.split()  # noqa: SIM905
)
# Calls that reach things by names which are not written where they are called.
_BY_TEXT = frozenset(
    """
    import_module instantiate get_class get_method locate import_string LightningCLI run_path
    run_module auto_cli get_object import_object
    """.split()  # noqa: SIM905
)
_BUILTINS_BY_TEXT = frozenset({"globals", "eval", "exec", "__import__", "CLI"})
_PLAIN_BASES = frozenset({"object", "ABC", "Generic", "Protocol", "Enum", "str", "int"})


@dataclass
class _Definition:
    """A function or class: where it stands, and the names that its code mentions."""

    name: str
    first: int
    last: int
    parent: Optional[_Definition] = None
    bases: Optional[tuple[str, ...]] = None
    """Last names of the bases of a class; None of a function."""
    is_registered: bool = False
    mentions: _Mentions = field(default_factory=lambda: _Mentions())
    is_reached: bool = False


@dataclass
class _Mentions:
    """Names in a piece of code. ``bare``: those that stand alone, which mean what the file itself
    defines under them; ``leads``: those definitions."""

    names: set[str] = field(default_factory=set)
    bare: set[str] = field(default_factory=set)
    leads: list[_Definition] = field(default_factory=list)


@dataclass
class Outline:
    """The definitions of a file, and the names that its module level mentions."""

    definitions: list[_Definition] = field(default_factory=list)
    mentions: _Mentions = field(default_factory=_Mentions)
    as_script: _Mentions = field(default_factory=_Mentions)
    """Names mentioned only where the file is run as a script."""
    imported: set[str] = field(default_factory=set)
    """Names under which something else is imported."""
    rebound: set[str] = field(default_factory=set)
    """Attributes (``args.x``) that become what only running the code tells."""
    lent: frozenset[int] = frozenset()
    """Lines of models that are loaded to copy their weights only."""
    is_by_text: bool = False
    """Something is called by a name that is made up at run time."""


def outline_of(tree: ast.Module) -> Outline:
    """What is defined and mentioned in a file."""
    outline = Outline()
    outline.lent = frozenset(_lent(tree))
    reader = _Reader(outline)
    for statement in tree.body:
        is_guard = isinstance(statement, ast.If) and "__name__" in set(_names(statement.test))
        reader.read(statement, None, outline.as_script if is_guard else outline.mentions)
    _settle(outline)
    return outline


def _settle(outline: Outline) -> None:
    """Tell the names that stand alone and are the file's own from those of other files."""
    own: dict[str, list[_Definition]] = {}
    for definition in outline.definitions:
        own.setdefault(definition.name, []).append(definition)
    for name, found in list(own.items()):
        if name in outline.imported or any(one.parent is not None for one in found):
            del own[name]
    of_definitions = (one.mentions for one in outline.definitions)
    for mentions in (outline.mentions, outline.as_script, *of_definitions):
        for name in mentions.bare:
            if name in own:
                mentions.leads.extend(own[name])
            else:
                mentions.names.add(name)


class _Reader:
    def __init__(self, outline: Outline) -> None:
        self.outline = outline

    def read(self, node: ast.AST, owner: Optional[_Definition], mentions: _Mentions) -> None:
        waiting: list[ast.AST] = [node]
        while waiting:
            item = waiting.pop()
            kind = type(item)
            if kind in _DEFINES:
                self._define(cast("_Def", item), owner, mentions)
                continue
            if kind in _MENTIONS:
                self._mention(item, mentions)
            if kind in _REBINDS:
                self.outline.rebound.update(_rebound(item))
            if not _is_export_list(item):
                for name in item._fields:
                    child = getattr(item, name, None)
                    if isinstance(child, list):
                        waiting += (part for part in child if isinstance(part, ast.AST))
                    elif isinstance(child, ast.AST) and type(child) not in _EMPTY:
                        waiting.append(child)

    def _define(self, node: _Def, owner: Optional[_Definition], mentions: _Mentions) -> None:
        decorators = [_last(item) for item in node.decorator_list]
        first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
        made = _Definition(node.name, first, node.end_lineno or node.lineno, owner)
        made.is_registered = any(name not in _PLAIN_DECORATORS for name in decorators)
        self.outline.definitions.append(made)
        for item in node.decorator_list:
            self.read(item, owner, mentions)
        if isinstance(node, ast.ClassDef):
            made.bases = tuple(_last(base) for base in node.bases)
            made.mentions.names.update(made.bases)
        else:
            self.read(node.args, owner, mentions)
        for statement in node.body:
            self.read(statement, made, made.mentions)

    def _mention(self, node: ast.AST, mentions: _Mentions) -> None:
        if isinstance(node, ast.Name):
            mentions.bare.add(node.id)
        elif isinstance(node, ast.Attribute):
            mentions.names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if len(node.value) <= _LIMIT:
                mentions.names.update(node.value.replace(":", ".").split("."))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            renamed = (item.name.rpartition(".")[2] for item in node.names if item.asname)
            mentions.names.update(renamed)
            self.outline.imported.update(item.asname or item.name for item in node.names)
        elif isinstance(node, ast.Call):
            builtin = isinstance(node.func, ast.Name) and node.func.id in _BUILTINS_BY_TEXT
            self.outline.is_by_text |= builtin or _last(node.func) in _BY_TEXT
        elif isinstance(node, ast.Subscript) and _last(node.value) == "modules":
            self.outline.is_by_text = True


def _rebound(node: ast.AST) -> Iterator[str]:
    """Attributes that ``args.x //= n`` or ``args.x, y = f()`` sets."""
    targets = node.elts if isinstance(node, ast.Tuple) else [getattr(node, "target", node)]
    for target in targets:
        if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
            continue
        if isinstance(target.ctx, ast.Store):
            yield f"{target.value.id}.{target.attr}"


# What a model is asked for whose weights go into another, and what changes neither.
_GIVES = frozenset(
    "state_dict named_parameters named_buffers config get_input_embeddings".split()  # noqa: SIM905
)
_STAYS = frozenset("eval to cpu cuda float half bfloat16 requires_grad_".split())  # noqa: SIM905


def _lent(tree: ast.Module) -> Iterator[int]:
    """Lines of ``from_pretrained`` calls whose models only give their weights to another."""
    nodes = list(ast.walk(tree))
    if not any(isinstance(node, ast.Attribute) and node.attr in _GIVES for node in nodes):
        return
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in _GIVES:
            if isinstance(node.value, ast.Call) and _is_load(node.value):
                yield node.value.lineno
        elif isinstance(node, _Function):
            yield from _lent_in(node)


def _is_load(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _last(node.func) == "from_pretrained"


def _lent_in(function: ast.AST) -> Iterator[int]:
    """The same of the variables of a function."""
    inner = list(ast.walk(function))
    loads: dict[str, list[int]] = {}
    for node in inner:
        if isinstance(node, ast.Assign) and _is_load(node.value) and len(node.targets) == 1:
            loads.setdefault(_last(node.targets[0]), []).append(node.value.lineno)
    if not loads:
        return
    gives: set[str] = set()
    harmless: set[ast.AST] = set()
    for node in inner:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in _GIVES:
                gives.add(node.value.id)
                harmless.add(node.value)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = node.value.func
            if isinstance(called, ast.Attribute) and called.attr in _STAYS:
                harmless.add(called.value)
    used = {
        node.id
        for node in inner
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in harmless
    }
    for name, lines in loads.items():
        if name in gives and name not in used:
            yield from lines


def without_lent(files: Sequence[PythonFile], outlines: Mapping[str, Outline]) -> list[PythonFile]:
    """``files`` with the loads of models apart that only give their weights to another."""
    return [
        _without_lent(file, outlines[file.path].lent) if file.path in outlines else file
        for file in files
    ]


def _without_lent(file: PythonFile, lines: frozenset[int]) -> PythonFile:
    apart = [
        call
        for call in file.calls
        if call.method == "from_pretrained" and call.location.line in lines
    ]
    if not apart:
        return file
    kept = tuple(call for call in file.calls if call not in apart)
    return dataclasses.replace(file, calls=kept, untaken=(*file.untaken, *apart))


def _is_export_list(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and "__all__" in [_last(item) for item in node.targets]


def _names(node: ast.AST) -> Iterator[str]:
    return (child.id for child in ast.walk(node) if isinstance(child, ast.Name))


def _last(node: ast.AST) -> str:
    """The last name of ``a.b(…)`` and ``a.b[…]``."""
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def without_unreached(
    files: Sequence[PythonFile], outlines: Mapping[str, Outline], roots: Iterable[str] = ()
) -> tuple[PythonFile, ...]:
    """``files``, the script first, without facts of code that no name leads to.

    ``roots``: functions that something outside calls. In doubt a function is reached.
    """
    if any(outline.is_by_text for outline in outlines.values()):
        return tuple(files)
    mentioned = [outlines[files[0].path].as_script]
    mentioned += (outline.mentions for outline in outlines.values())
    names = set(roots).union(*(one.names for one in mentioned))
    led = {id(one) for each in mentioned for one in each.leads}
    _spread(outlines, names, led)
    return tuple(_stripped(file, outlines[file.path]) for file in files)


def _spread(outlines: Mapping[str, Outline], names: set[str], led: set[int]) -> None:
    """Mark what ``names`` and the definitions in ``led`` lead to, and what those do in turn."""
    waiting = [d for outline in outlines.values() for d in outline.definitions]
    for definition in waiting:
        definition.is_reached = False
    classes = {d.name: d for d in waiting if d.bases is not None}
    grows = True
    while grows:
        left: list[_Definition] = []
        for definition in waiting:
            if id(definition) in led or _is_reached(definition, names, classes):
                definition.is_reached = True
                names |= definition.mentions.names
                led.update(id(one) for one in definition.mentions.leads)
            else:
                left.append(definition)
        grows = len(left) < len(waiting)
        waiting = left


def _is_reached(
    definition: _Definition, names: set[str], classes: Mapping[str, _Definition]
) -> bool:
    owner = definition.parent
    if owner is not None and not owner.is_reached:
        return False
    if definition.is_registered or definition.name in names:
        return True
    if definition.name.startswith("__") and definition.name.endswith("__"):
        return True
    # The library that a class derives from may call any method of it.
    return owner is not None and owner.bases is not None and _is_foreign(owner, classes)


def _is_foreign(
    definition: _Definition, classes: Mapping[str, _Definition], depth: int = 0
) -> bool:
    for base in definition.bases or ():
        found = classes.get(base)
        if found is None or found is definition or depth > _LIMIT:
            if base not in _PLAIN_BASES:
                return True
        elif _is_foreign(found, classes, depth + 1):
            return True
    return False


def _stripped(file: PythonFile, outline: Outline) -> PythonFile:
    dead = [(d.first, d.last) for d in outline.definitions if not d.is_reached]
    if not dead:
        return file

    def lives(place: Optional[Location]) -> bool:
        return place is None or not any(first <= place.line <= last for first, last in dead)

    return dataclasses.replace(
        file,
        calls=tuple(call for call in file.calls if lives(call.location)),
        loops=tuple(loop for loop in file.loops if lives(loop.location)),
        attributes=tuple(item for item in file.attributes if lives(item.location)),
        environment=tuple(item for item in file.environment if lives(item.location)),
    )
