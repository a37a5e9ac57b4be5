"""What all job descriptions share: nodes, words, shell text, environments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Callable, Optional

from flake8_gpu_training.facts import (
    Command,
    Entry,
    Location,
    Node,
    Origin,
    Setting,
    Unknown,
    Word,
)
from flake8_gpu_training.sources.relocate import relocate

Environment = Mapping[str, Setting]
Read = Callable[[str, str], Optional[tuple[str, str]]]
"""Text and path of a file that a job names: its name, and the file that names it."""


def read_nothing(name: str, near: str) -> None:
    """No other file is in sight."""


_SHELL = re.compile(r"(?:/usr)?(?:/bin/)?(?:env\s+)?(?:ba|z|da)?sh")
_SHELL_SCRIPT_FLAG = re.compile(r"-[a-z]*c")
_KUBERNETES_VARIABLE = re.compile(r"\$\(([A-Za-z_][\w.-]*)\)")
_MAX_TEXT = 200_000


def child(node: Optional[Node], *names: str) -> Optional[Node]:
    """The node below ``node`` at a path of names, or None."""
    for name in names:
        entry = node.mapping.get(name) if node is not None else None
        node = entry.node if entry is not None else None
    return node


def script_commands(
    node: Node, environment: Environment, given: Mapping[str, str] = MappingProxyType({})
) -> list[Command]:
    """Commands of a shell script held in a scalar, at their places in the file.

    ``given``: further variables, which the platform sets and nobody writes.
    """
    from flake8_gpu_training.sources.shell import read_shell

    if not node.text.strip() or len(node.text) > _MAX_TEXT:
        return []
    values = {name: item.value for name, item in environment.items() if _is_text(item.value)}
    values = {**given, **values}
    script = read_shell(_in_shell(node.text, environment), node.location.path, variables=values)
    commands = [
        _with(environment, command) for command in relocate(script, _placing(node)).commands
    ]
    if node.content is None:
        # Folded text has no place of its own where a further flag could be written.
        return [replace(command, end=None) for command in commands]
    return commands


def _in_shell(text: str, environment: Environment) -> str:
    """Shell text in which what Kubernetes puts in, ``$(NAME)``, is a variable (as long)."""
    return _KUBERNETES_VARIABLE.sub(
        lambda match: f"${{{match[1]}}}" if match[1] in environment else match[0], text
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _with(environment: Environment, command: Command) -> Command:
    """``command`` in an environment; what it sets itself has precedence."""
    own = {
        name: setting
        for name, setting in command.environment.items()
        if name not in environment or setting.value != environment[name].value
    }
    return replace(command, environment={**environment, **own})


def _placing(node: Node) -> Any:
    content = node.content

    def place(location: Location) -> Location:
        if content is None:
            return node.location
        column = location.column + content.column - 1
        return Location(content.path, content.line + location.line - 1, column)

    return place


def argv_commands(nodes: list[Node], environment: Environment) -> list[Command]:
    """The command that an argument vector starts; ``bash -c`` gives those of its script."""
    from flake8_gpu_training.sources.shell import commands_from_argv

    for index in range(1, len(nodes)):
        started = all(_SHELL_SCRIPT_FLAG.fullmatch(n.text) is None for n in nodes[1:index])
        flag = _SHELL_SCRIPT_FLAG.fullmatch(nodes[index].text)
        if _SHELL.fullmatch(nodes[0].text) and flag and started and index + 1 < len(nodes):
            return script_commands(nodes[index + 1], environment)
    words = tuple(word_of(node, environment) for node in nodes)
    if not words:
        return []
    return [_with(environment, command) for command in commands_from_argv(words)]


def word_of(node: Node, environment: Environment) -> Word:
    """A word of an argument vector; Kubernetes puts ``$(NAME)`` in from the environment."""
    raw = node.text
    place = node.content or node.location
    if node.kind != "scalar" or (isinstance(node.value, Unknown) and "{{" in raw):
        return Word(Unknown("a template placeholder"), place, raw)
    if isinstance(node.value, Unknown) and "${" in raw:
        return Word(node.value, place, raw)
    parts: list[str] = []
    end = 0
    for match in _KUBERNETES_VARIABLE.finditer(raw):
        setting = environment.get(match.group(1))
        if setting is None or not isinstance(setting.value, str):
            return Word(Unknown(f"the variable {match.group(1)}"), place, raw)
        parts += [raw[end : match.start()], setting.value]
        end = match.end()
    return Word("".join([*parts, raw[end:]]), place, raw)


def environment_of(node: Optional[Node]) -> dict[str, Setting]:
    """Variables of a mapping, of a list of ``NAME=value``, or of Kubernetes' ``env``."""
    if node is None:
        return {}
    found = {name: _variable(name, entry) for name, entry in node.mapping.items()}
    for item in node.items:
        name = child(item, "name")
        value = child(item, "value")
        if name is not None:
            known = value is not None and value.kind == "scalar"
            content: Any = value.text if known and value is not None else Unknown("set elsewhere")
            found[name.text] = Setting(name.text, content, name.location, Origin.ENVIRONMENT)
        elif item.kind == "scalar":
            key, equals, text = item.text.partition("=")
            content = text if equals else Unknown("set outside")
            found[key] = Setting(key, content, item.location, Origin.ENVIRONMENT)
    return found


def _variable(name: str, entry: Entry) -> Setting:
    node = entry.node
    value: Any = node.text
    if node.kind != "scalar" or node.value is None or isinstance(node.value, Unknown):
        value = Unknown("set outside")
    return Setting(name, value, entry.location, Origin.ENVIRONMENT)


def listed(node: Optional[Node]) -> list[Node]:
    """Items of a sequence, or the one node."""
    if node is None:
        return []
    return list(node.items) if node.kind == "sequence" else [node]


def count_of(node: Node) -> Any:
    """A number that may be written as text (``"8"``)."""
    return int(node.text) if re.fullmatch(r"\d{1,6}", node.text) else node.value


class Unit:
    """A container, service or task: something that runs commands with resources.

    ``is_replica``: others in the same description may do the same work together with it.
    """

    is_replica = False

    def __init__(self, node: Node, name: str) -> None:
        self.node = node
        self.name = name

    def commands(self) -> Iterator[Command]:
        """Its commands."""
        raise NotImplementedError

    def resources(self) -> Iterator[Setting]:
        """What it asks for."""
        raise NotImplementedError

    def _setting(self, name: str, node: Optional[Node], value: Any = None) -> Iterator[Setting]:
        if node is not None and node.kind == "scalar":
            found = node.value if value is None else value
            yield Setting(name, found, node.location, Origin.FILE, self.name)
