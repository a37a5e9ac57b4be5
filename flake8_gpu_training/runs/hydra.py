"""Composes the configuration that Hydra gives a script, from its files and overrides."""

from __future__ import annotations

import dataclasses
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from flake8_gpu_training.facts import Call, Document, Node, Setting, Unknown, known
from flake8_gpu_training.runs.python_entry import Program
from flake8_gpu_training.runs.settings import Arguments, document_settings, renamed

MAX_FILES = 60
MAX_DEPTH = 6
_PACKAGE = re.compile(r"^\s*#\s*@package:?\s+(\S+)", re.MULTILINE)

Read = Callable[[str], Optional[Document]]
"""The document at a path of the project, or None."""
Head = Callable[[str], str]
"""The first lines of a file of the project: a document does not keep its comments."""


@dataclass
class Composition:
    """What Hydra composes: ``settings`` by dotted name, from ``documents``.

    ``is_whole``: every file of the defaults lists was found.
    """

    settings: dict[str, Setting] = field(default_factory=dict)
    documents: list[Document] = field(default_factory=list)
    is_whole: bool = True


def composed(program: Program, given: Arguments, read: Read, head: Head) -> Optional[Composition]:
    """The configuration of the script's ``@hydra.main``; None when there is none to read."""
    main = next((call for call in program.script.calls if call.name == "hydra.main"), None)
    if main is None:
        return None
    folder = _named(main, given, "config_path", ("config_path", "cp", "config_dir", "cd"))
    name = _named(main, given, "config_name", ("config_name", "cn"))
    if folder is None or name is None:
        return None
    root = posixpath.normpath(posixpath.join(posixpath.dirname(program.script.path), folder))
    composer = _Composer(root, given.settings, read, head)
    composer.add(name, "", 0)
    if not composer.made.documents:
        return None
    for key, setting in given.settings.items():
        if key not in composer.chosen:
            composer.made.settings[key] = setting
    return composer.made


def _named(main: Call, given: Arguments, keyword: str, flags: tuple[str, ...]) -> Optional[str]:
    for flag in flags:
        setting = given.settings.get(flag)
        if setting is not None:
            return setting.value if isinstance(setting.value, str) else None
    argument = main.keywords.get(keyword)
    if argument is None and keyword == "config_path" and main.positional:
        argument = main.positional[0]
    return argument.value if argument is not None and isinstance(argument.value, str) else None


class _Composer:
    def __init__(self, root: str, overrides: Mapping[str, Setting], read: Read, head: Head) -> None:
        self.root = root
        self.overrides = overrides
        self.read = read
        self.head = head
        self.made = Composition()
        self.chosen: set[str] = set()
        """Overrides that choose a file (``trainer=big``), and so are no settings."""

    def add(self, name: str, package: str, depth: int) -> None:
        """Add the configuration ``name`` (from the root, without its ending) at ``package``."""
        stem = name[: -len(".yaml")] if name.endswith(".yaml") else name
        path = posixpath.normpath(posixpath.join(self.root, f"{stem}.yaml"))
        document = self.read(path)
        if document is None or depth > MAX_DEPTH or len(self.made.documents) >= MAX_FILES:
            self.made.is_whole = False
            return
        self.made.documents.append(document)
        package = self._package(path, package)
        group = posixpath.dirname(stem)
        for kind, value, place in _defaults(document.root):
            if kind == "_self_":
                self._own(document, package)
            elif value is not None:
                self._default(kind, value, place, group, package, depth)
        if not any(kind == "_self_" for kind, _, _ in _defaults(document.root)):
            self._own(document, package)

    def _default(
        self, kind: str, value: Any, place: str, group: str, package: str, depth: int
    ) -> None:
        """An entry of a defaults list: a file, or a group and which of its files."""
        if not kind:
            self.add(posixpath.join(group, str(value)), package, depth + 1)
            return
        absolute = kind.startswith("/")
        folder = kind.lstrip("/") if absolute else posixpath.join(group, kind)
        override = self.overrides.get(folder) or self.overrides.get(folder.replace("/", "."))
        if override is not None:
            self.chosen.add(override.name)
            value = override.value
        names = value if isinstance(value, list) else [value]
        inner = (kind.lstrip("/") if absolute else kind).replace("/", ".")
        if place == "_global_":
            target = ""
        elif place:
            target = f"{package}.{place}" if package and not absolute else place
        else:
            target = f"{package}.{inner}" if package and not absolute else inner
        for name in names:
            if not isinstance(name, str) or "${" in name:
                self.made.is_whole = False
            else:
                self.add(posixpath.join(folder, name), target, depth + 1)

    def _package(self, path: str, package: str) -> str:
        match = _PACKAGE.search(self.head(path))
        if match is None or match.group(1) == "_group_":
            return package
        return "" if match.group(1) == "_global_" else match.group(1)

    def _own(self, document: Document, package: str) -> None:
        lead = f"{package}." if package else ""
        for name, setting in document_settings(document).items():
            if name.partition(".")[0] == "defaults" or isinstance(setting.value, dict):
                continue
            made = renamed(setting, lead + name)
            if isinstance(made.value, str) and "${" in made.value:
                made = dataclasses.replace(made, value=Unknown(made.value))
            self.made.settings[made.name] = made


def _defaults(root: Node) -> Iterator[tuple[str, Any, str]]:
    """Entries of the defaults list: group ("" for a plain file), choice, package."""
    entry = root.mapping.get("defaults")
    for item in entry.node.items if entry is not None else ():
        if item.kind == "scalar" and isinstance(item.value, str):
            if item.value == "_self_":
                yield "_self_", None, ""
            else:
                name, _, place = item.value.partition("@")
                yield "", name, place
            continue
        for key, inner in item.mapping.items():
            words = key.split()
            if words[:1] == ["override"] and len(words) > 1:
                continue
            name, _, place = words[-1].partition("@") if words else ("", "", "")
            value = inner.node.plain()
            if name and known(value):
                yield name, value, place
