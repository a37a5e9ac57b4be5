"""Scripts that are told by their first argument what to train, with the example they state."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from flake8_gpu_training.facts import NO_ARGUMENTS, Command, ScriptFile, Unknown
from flake8_gpu_training.project import Project

_SUFFIXES = (".yaml", ".yml", ".json")
_CALL = re.compile(r"\$?[ \t]*(?:(?:ba)?sh[ \t]+)?(?P<script>[\w./\-]+\.sh)(?P<rest>[ \t]+\S.*)")
_LINE = "example"  # where the line is said to stand, which is no file
_PLAIN = re.compile(r"[\w./\-=: \t]+")


def as_documented(
    project: Project, script: ScriptFile, commands: Iterable[Command]
) -> tuple[Command, ...]:
    """``commands`` of ``script``; with the arguments of the only example of its comments, where
    they need some that nobody gives and the example's configuration is in the project."""
    found = tuple(commands)
    if not any(map(_needs_arguments, found)):
        return found
    calls = {call for call in _examples(script) if _names_file(project, script, call)}
    if len(calls) != 1:
        return found
    line = project.command_line(f"bash {script.path} {calls.pop()}", _LINE)
    told = tuple(command for command in line.commands if command.location.path == script.path)
    return found if not told or any(map(_needs_arguments, told)) else told


def _needs_arguments(command: Command) -> bool:
    values = [word.value for word in command.words]
    return any(isinstance(v, Unknown) and v.reason == NO_ARGUMENTS for v in values)


def _examples(script: ScriptFile) -> Iterable[str]:
    """What the comments give the script to train with, placeholders left out."""
    for comment in script.comments:
        call = _CALL.fullmatch(str(comment.value))
        if call is None or posixpath.basename(call["script"]) != posixpath.basename(script.path):
            continue
        if _PLAIN.fullmatch(call["rest"]):
            yield call["rest"].strip()


def _names_file(project: Project, script: ScriptFile, arguments: str) -> bool:
    words = arguments.split()
    named = [word for word in words if word.endswith(_SUFFIXES)]
    return len(named) == 1 and project.find(named[0], script.path) is not None
