"""Services of docker compose: what each starts, and on what."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from flake8_gpu_training.facts import Command, Location, Node, Origin, Setting, Unknown
from flake8_gpu_training.sources._job_base import (
    Read,
    Unit,
    argv_commands,
    child,
    count_of,
    environment_of,
    listed,
)
from flake8_gpu_training.sources._job_images import entrypoint_of, is_program
from flake8_gpu_training.sources.environment_files import read_environment_file

Values = Mapping[str, Setting]

_SECRET = re.compile(r"(?i)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$")
_VARIABLE = re.compile(
    r"\$(?:(?P<escaped>\$)|(?P<plain>[A-Za-z_]\w*)"
    r"|\{(?P<braced>[A-Za-z_]\w*)(?:(?P<sign>:?[-?+])(?P<other>[^{}]*))?\})"
)


def values_beside(path: str, read: Read) -> dict[str, Setting]:
    """What compose puts into a file: the variables of the ``.env`` beside it.

    Keys and tokens are left out: nothing that is read of a command may show them.
    """
    found = _of_file(".env", path, read)
    return {name: setting for name, setting in found.items() if not _SECRET.search(name)}


def _of_file(name: str, near: str, read: Read) -> dict[str, Setting]:
    found = read(name, near)
    return {s.name: s for s in read_environment_file(*found)} if found is not None else {}


def interpolated(text: str, values: Values) -> str:
    """``text`` with compose's variables put in; one that nobody sets stays as ``${NAME}``."""

    def put(match: re.Match[str]) -> str:
        if match["escaped"]:
            return "$"
        name = match["plain"] or match["braced"]
        setting = values.get(name)
        sign, other = match["sign"] or "", match["other"] or ""
        is_set = setting is not None and (setting.value != "" or not sign.startswith(":"))
        if sign.endswith("+"):
            return other if is_set else ""
        if setting is not None and is_set:
            return str(setting.value)
        return other if sign.endswith("-") else f"${{{name}}}"

    return _VARIABLE.sub(put, text)


class ComposeService(Unit):
    """A service of docker compose."""

    def __init__(self, node: Node, name: str, values: Values, read: Read) -> None:
        super().__init__(node, name)
        self.values = values
        self.read = read

    def commands(self) -> Iterator[Command]:
        entrypoint, words = self._words("entrypoint"), self._words("command")
        if entrypoint or (words and is_program(words[0].text)):
            words = [*entrypoint, *words]
        else:
            words = [*self._of_image(), *words]
        if not words or words[0].text.startswith("-"):
            return
        yield from argv_commands(words, self._environment())

    def _of_image(self) -> list[Node]:
        """What the image starts, when it is known."""
        image = child(self.node, "image")
        words = entrypoint_of(interpolated(image.text, self.values)) if image is not None else ()
        return [Node(word, self.node.mapping["image"].location, text=word) for word in words]

    def _environment(self) -> dict[str, Setting]:
        """Its environment files, under what it sets itself."""
        found: dict[str, Setting] = {}
        for item in listed(child(self.node, "env_file")):
            named = item if item.kind == "scalar" else child(item, "path")
            if named is not None:
                name = interpolated(named.text, self.values)
                found.update(_of_file(name, named.location.path, self.read))
        own = environment_of(child(self.node, "environment"))
        return {**found, **{name: self._resolved(setting) for name, setting in own.items()}}

    def _resolved(self, setting: Setting) -> Setting:
        value: Any = setting.value
        if isinstance(value, str):
            value = interpolated(value, self.values)
            value = Unknown(value) if _VARIABLE.search(value) else value
        elif isinstance(value, Unknown) and setting.name in self.values:
            # ``- NAME`` hands on a variable.
            value = self.values[setting.name].value
        return replace(setting, value=value)

    def _words(self, key: str) -> list[Node]:
        """Compose splits a string into words; it does not give it to a shell."""
        node = child(self.node, key)
        if node is None:
            return []
        if node.kind == "sequence":
            return [self._put_in(item) for item in node.items]
        try:
            words = shlex.split(interpolated(node.text, self.values))
        except ValueError:
            return []
        return [Node(_value_of(word), self._place(node, word), text=word) for word in words]

    def _put_in(self, node: Node) -> Node:
        text = interpolated(node.text, self.values)
        if node.kind != "scalar" or text == node.text:
            return node
        # What is put in moves the rest: its places are those of the whole scalar.
        return Node(_value_of(text), node.location, text=text)

    def _place(self, node: Node, word: str) -> Location:
        """Where ``word`` stands in a one-line string, else where the string begins."""
        at = node.text.find(word)
        if node.content is None or at < 0 or "\n" in node.text:
            return node.location
        return replace(node.content, column=node.content.column + at)

    def resources(self) -> Iterator[Setting]:
        image = child(self.node, "image")
        if image is not None:
            yield from self._setting("image", image, interpolated(image.text, self.values))
        yield from self._setting("shm", child(self.node, "shm_size"))
        ipc = child(self.node, "ipc")
        if ipc is not None and ipc.value == "host":
            yield from self._setting("host_ipc", ipc, True)
        yield from self._setting("gpus", child(self.node, "gpus"))
        devices = child(self.node, "deploy", "resources", "reservations", "devices")
        for device in devices.items if devices is not None else ():
            count, identifiers = child(device, "count"), child(device, "device_ids")
            if count is not None:
                yield from self._setting("gpus", count, count_of(count))
            elif identifiers is not None and identifiers.items:
                number = len(identifiers.items)
                place = identifiers.items[0].location
                yield Setting("gpus", number, place, Origin.FILE, self.name)


def _value_of(text: str) -> Any:
    """A word's value; a variable that nobody sets is not known."""
    match = _VARIABLE.search(text)
    return Unknown(f"${match['braced']} is not set") if match and match["braced"] else text
