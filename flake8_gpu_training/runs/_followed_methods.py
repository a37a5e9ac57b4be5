"""What methods give: of dicts and configuration nodes, parsers, texts, lists and paths."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable

from flake8_gpu_training.facts import Origin, Unknown
from flake8_gpu_training.runs._followed import (
    Class,
    Either,
    File,
    Function,
    Given,
    PathText,
    Placed,
    Table,
    bare,
    doubt_all,
    items_of,
    joined_path,
    lose,
    merged,
    plain,
    put_dotted,
)
from flake8_gpu_training.runs._followed_configs import PAIR, with_base
from flake8_gpu_training.runs._followed_objects import change_unseen
from flake8_gpu_training.runs._followed_parsers import reads_files_itself
from flake8_gpu_training.runs.settings import typed

if TYPE_CHECKING:
    from flake8_gpu_training.runs.following import Follower

_TABLE_METHODS = frozenset(
    """
    __setattr__ __setitem__
    get items keys values update pop setdefault copy clone freeze defrost merge_from_file
    merge_from_list merge_from_dict merge_from_other_cfg update_from_flattened_dict dict to_dict
    model_dump lock unlock load_from_file
    """.split()  # noqa: SIM905
)


def table_method(follower: Follower, owner: Table, name: str, given: Given, text: str) -> Any:
    """What a method of a dict, namespace, OmegaConf or yacs node gives."""
    if name not in _TABLE_METHODS:
        value = owner.entries.get(name)
        if isinstance(value, (Function, Class)):
            return follower.apply(value, given, ast.Name(text, ast.Load()))
        return Unknown(text)
    method = _METHODS.get(name)
    return method(follower, owner, given, text) if method is not None else None


def _get(follower: Follower, owner: Table, given: Given, text: str) -> Any:
    key = bare(given.get(0))
    default = given.get(1, "default")
    if isinstance(key, (str, int)) and key in owner.entries:
        return follower.leaf(owner, key)
    if isinstance(key, Unknown):
        return Unknown(text)
    return (
        Unknown(text, () if isinstance(default, Table) else (plain(default),))
        if owner.is_open
        else default
    )


def _set(follower: Follower, owner: Table, given: Given, text: str) -> Any:
    follower.put(owner, bare(given.get(0)), given.get(1))
    return None


def _items(follower: Follower, owner: Table, given: Given, text: str) -> Any:
    if owner.is_open:
        return Unknown(text)
    return [[key, follower.leaf(owner, key)] for key in owner.entries]


def _keys(follower: Follower, owner: Table, given: Given, text: str) -> Any:
    return Unknown(text) if owner.is_open else list(owner.entries)


def _values(follower: Follower, owner: Table, given: Given, text: str) -> Any:
    return Unknown(text) if owner.is_open else [follower.leaf(owner, k) for k in owner.entries]


def _update(follower: Follower, owner: Table, given: Given, text: str) -> Any:
    source = given.get(0, default=Table())
    if given.is_open or not isinstance(source, Table) or source.is_open:
        change_unseen(owner)
    if isinstance(source, Table):
        for key in source.entries:
            owner.put(key, follower.leaf(source, key), follower.doubt > 0)
        follower.replaced(owner, source, owner)
    for key, value in given.keywords.items():
        owner.put(key, value, follower.doubt > 0)
    return None


def _pop(follower: Follower, owner: Table, given: Given, text: str) -> Any:
    found = _get(follower, owner, given, text)
    follower.drop(owner, bare(given.get(0)))
    return found


def _setdefault(follower: Follower, owner: Table, given: Given, text: str) -> Any:
    key = bare(given.get(0))
    if isinstance(key, (str, int)) and key not in owner.entries:
        owner.put(key, given.get(1), follower.doubt > 0 or owner.is_open)
    return _get(follower, owner, given, text)


def _clone(follower: Follower, owner: Table, given: Given, text: str) -> Any:
    made = owner.copy()
    if any(table is owner for table in follower.configurations):
        follower.replaced(made, owner)
    return made


def _merge_into(follower: Follower, owner: Table, source: Any) -> None:
    """Merge a table into ``owner``, in place, as yacs does."""
    if not isinstance(source, Table):
        doubt_all(owner)
        return
    made = merged(owner, source)
    owner.is_open = made.is_open
    for key, value in made.entries.items():
        if isinstance(value, Table):
            value.parent = owner
        owner.put(key, value, follower.doubt > 0)
    follower.replaced(owner, source, owner)


def _merge_from_file(follower: Follower, owner: Table, given: Given, text: str) -> Any:
    _merge_into(follower, owner, with_base(follower, given.get(0, "cfg_filename"), 0))
    return None


def _merge_from_list(follower: Follower, owner: Table, given: Given, text: str) -> Any:
    """``KEY VALUE KEY VALUE``, or ``KEY=VALUE`` words."""
    items = items_of(given.get(0, "cfg_list"))
    if items is None:
        doubt_all(owner)
        return None
    words = [bare(item) for item in items]
    if words and all(isinstance(word, str) and "=" in word for word in words):
        pairs = [word.split("=", 1) for word in words]
        keys, values, sources = [k for k, _ in pairs], [v for _, v in pairs], items
    else:
        keys, values, sources = words[::2], words[1::2], items[1::2]
    for key, value, source in zip(keys, values, sources):
        if not isinstance(key, str):
            doubt_all(owner)
            continue
        value = typed(value) if isinstance(value, str) else value
        if isinstance(source, Placed):
            value = Placed(value, source.setting)
        put_dotted(owner, key, value, follower.doubt > 0)
    return None


def _merge_from_dict(follower: Follower, owner: Table, given: Given, text: str) -> Any:
    """mmengine's: keys are dotted."""
    source = given.get(0, "options")
    if source is None:
        return None
    if isinstance(source, list):
        return _merge_from_list(follower, owner, given, text)
    if not isinstance(source, Table) or source.is_open:
        doubt_all(owner)
    for key in source.entries if isinstance(source, Table) else ():
        put_dotted(owner, str(key), follower.leaf(source, key), follower.doubt > 0)
    return None


def _merge_from_other(follower: Follower, owner: Table, given: Given, text: str) -> Any:
    _merge_into(follower, owner, given.get(0))
    return None


def _same(follower: Follower, owner: Table, given: Given, text: str) -> Any:
    return owner


_METHODS: Mapping[str, Callable[[Any, Table, Any, str], Any]] = {
    "__setattr__": _set,
    "__setitem__": _set,
    "get": _get,
    "items": _items,
    "keys": _keys,
    "values": _values,
    "update": _update,
    "pop": _pop,
    "setdefault": _setdefault,
    "copy": _clone,
    "clone": _clone,
    "merge_from_file": _merge_from_file,
    "load_from_file": _merge_from_file,
    "merge_from_list": _merge_from_list,
    "merge_from_dict": _merge_from_dict,
    "update_from_flattened_dict": _merge_from_dict,
    "merge_from_other_cfg": _merge_from_other,
    "dict": _same,
    "to_dict": _same,
    "model_dump": _same,
}


def method(follower: Follower, owner: Any, name: str, given: Given, text: str) -> Any:
    """What a method of anything but a table gives."""
    if isinstance(owner, str) and name in _PATH_METHODS:  # no text has these
        return _PATH_METHODS[name](PathText(owner), given, text)
    if isinstance(owner, str):
        return _of_text(owner, name, given, text)
    if isinstance(owner, File) and name in ("read", "read_text", "read_bytes"):
        return owner
    if isinstance(owner, list):
        return _of_list(follower, owner, name, given, text)
    if name == "set_defaults":  # of a parser that was not seen made, and so below
        if given.is_open:
            follower.option_defaults.clear()
        follower.option_defaults.update(given.keywords)
        return None
    if name == "parse_args":
        return _options(follower)
    if name == "parse_known_args":
        return [_options(follower), _rest(follower)]
    if name == "load" and given.positional:  # ``YAML(typ="safe").load(file)``
        stream = bare(given.get(0))
        if isinstance(stream, (File, PathText)) and "YAML" in text:
            return follower.load(stream, follower.here)
    return Unknown(text)


def _options(follower: Follower) -> Table:
    """What the command line is parsed to; defaults from a file over those of the options."""
    made = Table(is_open=follower.world.is_partial)
    for name, setting in follower.world.options.items():
        value: Any = Placed(setting.value, setting)
        if isinstance(setting.value, Unknown):
            value = setting.value
        if setting.origin is Origin.DEFAULT and name in follower.option_defaults:
            value = follower.option_defaults[name]
        made.put(name, value)
    for name, value in follower.option_defaults.items():
        if name not in made.entries:
            made.put(name, value)
    made.lost = follower.made.lost
    if reads_files_itself(follower):
        options = follower.world.options.items()
        lose(made, [name for name, setting in options if setting.origin is Origin.DEFAULT])
    return made


def _rest(follower: Follower) -> Any:
    if follower.world.is_partial:
        return Unknown("unread arguments of the command")
    return [word for word in follower.world.words if PAIR.fullmatch(word)]


def _of_text(owner: str, name: str, given: Given, text: str) -> Any:
    arguments = [bare(item) for item in given.positional]
    if name == "join":
        items = items_of(given.get(0))
        words = [bare(item) for item in items or ()]
        fits = items is not None and all(isinstance(word, str) for word in words)
        return owner.join(words) if fits else Unknown(text)
    if not all(isinstance(item, (str, int)) for item in arguments):
        return Unknown(text)
    if name not in (
        "split",
        "rsplit",
        "strip",
        "lower",
        "upper",
        "replace",
        "startswith",
        "endswith",
        "rstrip",
        "lstrip",
        "removeprefix",
        "removesuffix",
        "format",
    ):
        return Unknown(text)
    if given.keywords or len(owner) > 10_000 or (name == "format" and re.search(r"\{[^}]", owner)):
        return Unknown(text)
    try:
        return getattr(owner, name)(*arguments)
    except (TypeError, ValueError, IndexError, AttributeError):
        return Unknown(text)


def _of_list(follower: Follower, owner: list[Any], name: str, given: Given, text: str) -> Any:
    value = given.get(0)
    if name == "append":
        owner.append(_perhaps(value, text) if follower.doubt else value)
        return None
    if name == "extend":
        items = items_of(value)
        owner.extend([Unknown(text)] if items is None or follower.doubt else items)
        return None
    return Unknown(text)


def _perhaps(value: Any, text: str) -> Any:
    """An item that may not be in its list; if it is, it is ``value``."""
    shown = plain(value)
    items = shown if isinstance(shown, list) else [shown]
    is_told = all(type(item) in (bool, int, float, str) for item in items)
    return Either(text, (shown,)) if is_told else Unknown(text)


def path_attribute(owner: PathText, name: str, text: str) -> Any:
    """``parent``, ``name`` … of a path."""
    if name == "parent":
        return PathText(posixpath.dirname(owner) or ".")
    if name == "parents":
        found: list[Any] = []
        path = str(owner)
        while posixpath.dirname(path) not in ("", path) and len(found) < 32:
            path = posixpath.dirname(path)
            found.append(PathText(path))
        return found
    stem, suffix = posixpath.splitext(posixpath.basename(owner))
    parts = {"name": stem + suffix, "stem": stem, "suffix": suffix}
    return parts.get(name, Unknown(text))


_PATH_METHODS: Mapping[str, Callable[[PathText, Any, str], Any]] = {
    "resolve": lambda owner, given, text: owner,
    "absolute": lambda owner, given, text: owner,
    "expanduser": lambda owner, given, text: owner,
    "as_posix": lambda owner, given, text: owner,
    "open": lambda owner, given, text: File(owner),
    "read_text": lambda owner, given, text: File(owner),
    "read_bytes": lambda owner, given, text: File(owner),
    "joinpath": lambda owner, given, text: joined_path(
        [owner, *(bare(item) for item in given.positional)], text
    ),
    "with_name": lambda owner, given, text: joined_path(
        [posixpath.dirname(owner), bare(given.get(0))], text
    ),
}
