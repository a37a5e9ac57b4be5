"""How OmegaConf, yacs and mmengine read and merge configuration files."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any

from flake8_gpu_training.facts import Unknown
from flake8_gpu_training.runs._followed import (
    Class,
    File,
    Function,
    Given,
    Module,
    Placed,
    Table,
    bare,
    doubted,
    items_of,
    merged,
    put_dotted,
)
from flake8_gpu_training.runs.settings import typed

if TYPE_CHECKING:
    from flake8_gpu_training.runs.following import Follower

PAIR = re.compile(r"\+{0,2}([\w.@/-]+)=(.*)", re.DOTALL)
"""A word ``a.b=1`` of a command."""


def omegaconf(follower: Follower, name: str, given: Given, text: str) -> Any:
    """What a function of ``OmegaConf`` gives."""
    if name == "load":
        return follower.load(given.get(0, "file_"), follower.here, omega=True)
    if name in ("create", "structured"):
        return _created(follower, given.get(0, "obj"), text)
    if name in ("merge", "unsafe_merge"):
        return _merged(follower, given, text)
    if name == "from_cli":
        return _of_pairs(follower, list(follower.world.words), follower.world.is_partial)
    if name == "from_dotlist":
        pairs = items_of(given.get(0, "dotlist"))
        words = [bare(item) for item in pairs or ()]
        is_open = pairs is None or not all(isinstance(word, str) for word in words)
        return _of_pairs(follower, [w for w in words if isinstance(w, str)], is_open)
    if name in ("to_container", "to_object", "masked_copy"):
        value = given.get(0)
        return follower.finished(value) if isinstance(value, Table) else Unknown(text)
    if name == "update" and isinstance(given.get(0), Table):
        key = bare(given.get(1))
        if isinstance(key, str):
            put_dotted(given.get(0), key, given.get(2), follower.doubt > 0)
        return None
    if name == "select" and isinstance(given.get(0), Table):
        return _select(follower, given.get(0), bare(given.get(1)), text)
    return Unknown(text)


def _select(follower: Follower, table: Any, path: Any, text: str) -> Any:
    for part in str(path).split("."):
        if not isinstance(table, Table) or part not in table.entries:
            return Unknown(text)
        table = follower.leaf(table, part)
    return table


def _created(follower: Follower, source: Any, text: str) -> Any:
    if isinstance(source, Class):
        source = follower.instantiate(source, Given())
    if not isinstance(source, Table):
        return Unknown(text)
    made = source.copy()
    _as_omega(made)
    return follower.replaced(made, source)


def _as_omega(table: Table) -> None:
    table.omega, table.kind = True, None
    for value in table.entries.values():
        if isinstance(value, Table):
            _as_omega(value)


def _merged(follower: Follower, given: Given, text: str) -> Any:
    parts = [_created(follower, item, text) for item in given.positional]
    tables = [part for part in parts if isinstance(part, Table)]
    if not tables:
        return Unknown(text)
    made = Table()
    made.omega = True
    for part in parts:
        if isinstance(part, Table):
            made = merged(made, part)
        elif not (isinstance(part, Unknown) and part.candidates == (None,)):
            made = doubted(made)
    if given.is_open:
        made = doubted(made)
    return follower.replaced(made, *tables)


def _of_pairs(follower: Follower, words: list[str], is_open: bool) -> Table:
    """``a.b=1`` words as a table."""
    made = Table(is_open=is_open)
    made.omega = True
    for word in words:
        match = PAIR.fullmatch(word)
        if match is not None:
            name = match.group(1)
            given = follower.world.pairs.get(name)
            value: Any = typed(match.group(2))
            put_dotted(made, name, Placed(value, given) if given is not None else value)
    return made


def with_base(follower: Follower, name: Any, depth: int) -> Any:
    """A configuration file of fvcore's kind, on top of the one that ``_BASE_`` names."""
    found = follower.load(name, follower.here)
    if not isinstance(found, Table) or depth > 8:
        return found
    base = bare(found.entries.pop("_BASE_", None))
    path = name.path if isinstance(name, File) else bare(name)
    if not isinstance(base, str) or not isinstance(path, str):
        return found
    lower = with_base(follower, posixpath.join(posixpath.dirname(path), base), depth + 1)
    return (
        follower.replaced(merged(lower, found), lower, found) if isinstance(lower, Table) else lower
    )


def python_config(follower: Follower, name: Any, text: str, depth: int = 0) -> Any:
    """A configuration of mmengine's kind: a Python file, on top of those in ``_base_``."""
    if not isinstance(name, str) or depth > 8:
        return Unknown(text)
    if not name.endswith(".py"):
        return follower.load(name, follower.here)
    path = follower.world.module(name, -1, follower.here)
    module = follower.module(path, is_configuration=True) if path is not None else None
    if path is None or module is None:
        return Unknown(text)
    follower.made.modules.append(path)
    made = Table()
    lowers: list[Table] = []
    bases = bare(module.names.get("_base_"))
    for base in bases if isinstance(bases, list) else [bases] if bases else []:
        inner = bare(base)
        target = posixpath.join(posixpath.dirname(path), inner) if isinstance(inner, str) else None
        lower = python_config(follower, target, text, depth + 1)
        if not isinstance(lower, Table):
            return Unknown(text)
        lowers.append(lower)
        made = merged(made, lower)
    own = Table()
    for key, value in module.names.items():
        if not key.startswith("_") and not isinstance(value, (Module, Function, Class)):
            own.put(key, value)
    return follower.replaced(_replacing(made, own), *lowers)


def _replacing(lower: Table, upper: Table) -> Table:
    """``merged``, where ``_delete_=True`` in a dict throws away what it would be merged with."""
    made = merged(lower, upper)
    for key, value in upper.entries.items():
        if isinstance(value, Table) and bare(value.entries.get("_delete_")) is True:
            kept = value.copy()
            kept.entries.pop("_delete_", None)
            made.entries[key] = kept
    return made
