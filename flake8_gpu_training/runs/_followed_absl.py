"""absl's flags, and ml_collections' configuration files that flags name and change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Optional

from flake8_gpu_training.facts import Origin, Setting, Unknown
from flake8_gpu_training.runs._followed import Function, Given, Placed, Table, bare, put_dotted
from flake8_gpu_training.runs.settings import typed

if TYPE_CHECKING:
    from flake8_gpu_training.runs.following import Follower

_DEFINES = re.compile(r"(?:absl\.flags|tensorflow\.flags)\.DEFINE_\w+")
_FILES = re.compile(r"ml_collections\.(?:config_flags\.)*DEFINE_config_(?:file|dict)")
_FLAG = re.compile(r"--?([\w.]+)(?:=(.*))?", re.DOTALL)


def defines(name: str) -> bool:
    """Whether the function ``name`` declares a flag."""
    return _DEFINES.fullmatch(name) is not None or _FILES.fullmatch(name) is not None


def define(follower: Follower, name: str, given: Given) -> None:
    """Note the flag that a call declares."""
    flag = bare(given.get(0, "name"))
    if not isinstance(flag, str):
        return
    is_file = name.endswith("DEFINE_config_file")
    follower.flags[flag] = (is_file, given.get(1, "default", "config"))


def flag_value(follower: Follower, name: str, text: str) -> Any:
    """``FLAGS.name`` as the command line has it."""
    found = follower.flags.get(name)
    if found is None or follower.world.is_open:
        return Unknown(text)
    is_file, default = found
    if name not in follower.flag_values:
        words = _given(follower, name)
        value = words.get(name, default)
        if is_file:
            value = _configuration(follower, bare(value), text)
        if isinstance(value, Table):
            _change(follower, value, name, words)
        follower.flag_values[name] = value
    return follower.flag_values[name]


def _given(follower: Follower, name: str) -> dict[str, Any]:
    """``--name`` and ``--name.a.b`` of the command."""
    words = follower.world.arguments
    found: dict[str, Any] = {}
    for at, word in enumerate(words):
        match = _FLAG.fullmatch(word.text)
        if match is None or match.group(1).partition(".")[0] != name:
            continue
        value = match.group(2)
        if value is None and at + 1 < len(words) and not words[at + 1].text.startswith("-"):
            value = words[at + 1].text
        read = True if value is None else typed(value)
        setting = Setting(match.group(1), read, word.location, Origin.FLAG)
        found[match.group(1)] = Placed(read, setting)
    return found


def _configuration(follower: Follower, path: Any, text: str) -> Any:
    """What ``get_config`` of a Python file gives; ``file.py:argument`` hands it one."""
    if not isinstance(path, str):
        return Unknown(text)
    name, colon, argument = path.partition(":")
    found = follower.world.module(name, -1, follower.here)
    module = follower.module(found, is_configuration=True) if found is not None else None
    function = module.names.get("get_config") if module is not None else None
    if found is None or not isinstance(function, Function):
        return Unknown(text)
    follower.made.modules.append(found)
    made = follower.invoke(function, Given((argument,) if colon else ()))
    if isinstance(made, Table):
        follower.replaced(made, made)
    return made


def _change(follower: Follower, table: Table, name: str, words: dict[str, Any]) -> None:
    for dotted, value in words.items():
        _, dot, inner = dotted.partition(".")
        if dot:
            put_dotted(table, inner, value)


def main_of(follower: Follower, given: Given) -> Optional[Any]:
    """``app.run(main)`` calls ``main`` with the words that are no flags."""
    function = given.get(0, "main")
    if isinstance(function, Function):
        follower.invoke(function, Given((Unknown("argv"),)))
    return None
