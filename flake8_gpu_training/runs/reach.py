"""Follows a run through a project: command to script, script to modules, name to document."""

from __future__ import annotations

import ast
import dataclasses
import posixpath
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Optional, Union

from flake8_gpu_training.facts import (
    Command,
    ConfigFile,
    Document,
    Heredoc,
    Location,
    PythonFile,
    ScriptFile,
    Word,
)
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.configs import first_document
from flake8_gpu_training.runs.console import console_scripts
from flake8_gpu_training.runs.hostfiles import Slots, read_hostfile
from flake8_gpu_training.runs.python_entry import Entry, Program, entries_of, local_modules
from flake8_gpu_training.runs.reached import (
    MAX_LINES,
    Outline,
    outline_of,
    without_unreached,
)
from flake8_gpu_training.sources.signatures import MAX_BYTES, Signatures, read_signatures

MAX_MODULES = 80
"""Modules that are followed from one script."""
MAX_HEREDOC = 200_000
_CONFIG_SUFFIXES = (".yaml", ".yml", ".json", ".json5", ".jsonc", ".toml")
_KNOWN_TAIL = re.compile(r"(?:\$\{?\w+[^}/]*\}?|\$\([^()]*\)|`[^`]*`)/([\w./-]+)$")

Writer = Union[ScriptFile, PythonFile, None]


class Reach:
    """Resolves names within a project; every script and document is followed once."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._programs: dict[str, Optional[Program]] = {}
        self._wholes: dict[str, Optional[Program]] = {}
        self._outlines: dict[str, Optional[Outline]] = {}
        self._entries: dict[str, tuple[Entry, ...]] = {}
        self._hostfiles: dict[str, Optional[Slots]] = {}
        self._paths = frozenset(project.files)
        self._signatures: dict[str, Signatures] = {}
        self._sources: dict[str, Optional[bytes]] = {}
        self._trees: dict[str, Optional[ast.Module]] = {}
        self._module_paths: dict[tuple[str, int, str], Optional[str]] = {}

    # --- scripts ---

    def script(self, word: Word, is_module: bool, command: Command) -> Optional[str]:
        """Path of the Python file that ``word`` of ``command`` names."""
        text = word.text.strip("\"'")
        if is_module:
            dotted = text.replace(".", "/")
            names = [f"{dotted}.py", f"{dotted}/__main__.py"]
            names += [f"src/{name}" for name in names]
        elif isinstance(word.value, str):
            names = [text]
        else:
            match = _KNOWN_TAIL.search(text)
            if match is None:
                return None
            names = [match.group(1)]
        for name in names:
            found = self.file(name, command) or self._elsewhere(name, command)
            if found is not None and isinstance(self.project.read(found), PythonFile):
                return found
        installed = self.console.get(posixpath.basename(text))
        return self.module(installed[0], 0, "") if installed is not None else None

    @cached_property
    def console(self) -> Mapping[str, tuple[str, str]]:
        """Module and function of the commands that the project installs."""
        return console_scripts(self.project)

    def _elsewhere(self, name: str, command: Command) -> Optional[str]:
        """A script that is not where the command looks for it.

        A command that stands in no file may be given in any folder; one in a file is started
        in a folder below it, when only one has such a script; an absolute path may lead to
        where the project lies on another machine.
        """
        if posixpath.isabs(name):
            return self._relocated(name)
        ending = f"/{posixpath.normpath(name)}"
        if command.location.path in self._paths:
            folder = posixpath.dirname(command.location.path)
            below = [p for p in self._paths if p.endswith(ending) and p.startswith(folder)]
            return below[0] if len(below) == 1 else None
        within = [path for path in self._paths if path.endswith(ending)]
        return min(within, key=lambda path: (path.count("/"), path), default=None)

    def _relocated(self, name: str) -> Optional[str]:
        """``/home/me/project/train.py``: what follows the project's name, or two parts of it."""
        parts = posixpath.normpath(name).split("/")
        own = self.project.root.name
        for at in range(2, len(parts)):
            path = "/".join(parts[at:])
            if path in self._paths and (parts[at - 1] in own or at < len(parts) - 1):
                return path
        return None

    def file(self, name: str, command: Optional[Command], near: str = "") -> Optional[str]:
        """The project file ``name`` as ``command`` sees it, else as seen from ``near``."""
        if command is not None:
            found = self.project.find(name, command.location.path, command.directory)
            if found is None and command.directory:
                found = self.project.find(name, command.location.path)
            if found is not None:
                return found
        return self.project.find(name, near)

    def program(self, path: str) -> Optional[Program]:
        """The script at ``path`` with the project's modules it reaches."""
        if path not in self._programs:
            program = self._whole(path)
            self._programs[path] = self._reached(program) if program is not None else None
        return self._programs[path]

    def _whole(self, path: str) -> Optional[Program]:
        """The program with the functions that nothing calls, too."""
        if path not in self._wholes:
            self._wholes[path] = self._follow(path)
        return self._wholes[path]

    def _reached(self, program: Program) -> Program:
        """``program`` without what no name leads to, when something is left of its jobs."""
        outlines = self._outlines_of(program)
        if outlines is None:
            return program
        roots = [function for _, function in self.console.values()]
        left = without_unreached(program.files, outlines, roots)
        if all(new is old for new, old in zip(left, program.files)):
            return program
        made = dataclasses.replace(program, files=left)
        return made if entries_of(made) else program

    def _outlines_of(self, program: Program) -> Optional[dict[str, Outline]]:
        """The outline of each file; None when one cannot be told."""
        found: dict[str, Outline] = {}
        lines = 0
        for file in program.files:
            if file.path not in self._outlines:
                tree = self.tree(file.path)
                made = outline_of(tree) if tree is not None else None
                self._outlines[file.path] = made
            outline = self._outlines[file.path]
            lines += (self.source(file.path) or b"").count(b"\n")
            if outline is None or outline.is_by_text or lines > MAX_LINES:
                return None
            found[file.path] = outline
        return found

    def entries(self, path: str) -> tuple[Entry, ...]:
        """The jobs that the script at ``path`` does."""
        if path not in self._entries:
            program = self.program(path)
            self._entries[path] = entries_of(program) if program is not None else ()
        return self._entries[path]

    def _follow(self, path: str) -> Optional[Program]:
        script = self.project.read(path)
        if not isinstance(script, PythonFile):
            return None
        found = {path: script}
        waiting = [script]
        while waiting and len(found) < MAX_MODULES:
            for module in self._modules(waiting.pop(0)):
                if module.path not in found and len(found) < MAX_MODULES:
                    found[module.path] = module
                    waiting.append(module)
        return Program(tuple(found.values()))

    def extended(self, program: Program, paths: Iterable[str]) -> Program:
        """``program`` with more modules, and what they lead to."""
        found = {file.path: file for file in program.files}
        for path in paths:
            more = self._whole(path) if path not in found else None
            for file in more.files if more is not None else ():
                if len(found) < MAX_MODULES:
                    found.setdefault(file.path, file)
        return dataclasses.replace(program, files=tuple(found.values()))

    def module(self, dotted: str, level: int, near: str) -> Optional[str]:
        """Path of the module that the file ``near`` imports; ``level`` counts leading dots."""
        key = (dotted, level, posixpath.dirname(near))
        if key not in self._module_paths:
            self._module_paths[key] = self._imported(*key)
        return self._module_paths[key]

    def _imported(self, dotted: str, level: int, folder: str) -> Optional[str]:
        path = dotted.replace(".", "/")
        if level:
            for _ in range(level - 1):
                folder = posixpath.dirname(folder)
            path = posixpath.join(folder, path) if path else folder
            candidates = [f"{path}.py", f"{path}/__init__.py"]
            return next((c for c in candidates if c in self._paths), None)
        for candidate in (f"{path}.py", f"{path}/__init__.py"):
            found = self._module_path(candidate, folder)
            if found is not None:
                return found
        return None

    def _modules(self, file: PythonFile) -> Iterable[PythonFile]:
        folder = posixpath.dirname(file.path)
        for candidates in local_modules(file):
            for candidate in candidates:
                path = self._module_path(candidate, folder)
                facts = self.project.read(path) if path is not None else None
                if isinstance(facts, PythonFile):
                    yield facts
                    break

    def _module_path(self, candidate: str, folder: str) -> Optional[str]:
        """A module beside the script, at the project's root, or under ``src``."""
        known = self._paths
        for root in (folder, "", "src"):
            path = posixpath.normpath(posixpath.join(root, candidate))
            if path in known:
                return path
        # A package's modules import from the folder the package lies in.
        parent = posixpath.dirname(folder)
        while parent.strip("/"):
            path = posixpath.join(parent, candidate)
            if path in known:
                return path
            parent = posixpath.dirname(parent)
        return None

    # --- documents ---

    def document(
        self, name: str, command: Optional[Command], writer: Writer = None, near: str = ""
    ) -> Optional[Document]:
        """The configuration document that ``name`` stands for.

        ``writer``: the script that may write the file itself, in a here-document.
        """
        if not name.endswith(_CONFIG_SUFFIXES):
            return None
        written = self._written(name, writer.heredocs) if writer is not None else None
        if written is not None:
            return written
        path = self.file(name, command, near)
        facts = self.project.read(path) if path is not None else None
        return first_document(facts) if isinstance(facts, ConfigFile) else None

    def configuration(self, path: str) -> Optional[Document]:
        """The document of the project's file at ``path``."""
        facts = self.project.read(path) if path in self._paths else None
        return first_document(facts) if isinstance(facts, ConfigFile) else None

    def signatures(self, path: str) -> Signatures:
        """Functions and calls of the project's Python file at ``path``."""
        if path not in self._signatures:
            self._signatures[path] = self._read_signatures(path)
        return self._signatures[path]

    def _read_signatures(self, path: str) -> Signatures:
        data = self.source(path)
        return read_signatures(data) if data is not None else Signatures()

    def source(self, path: str) -> Optional[bytes]:
        """The bytes of the project's Python file at ``path``."""
        if path not in self._sources:
            self._sources[path] = self._read_source(path)
        return self._sources[path]

    def tree(self, path: str) -> Optional[ast.Module]:
        """The syntax tree of the project's Python file at ``path``, parsed once."""
        if path not in self._trees:
            self._trees[path] = _parsed(self.source(path))
        return self._trees[path]

    def _read_source(self, path: str) -> Optional[bytes]:
        if path not in self._paths or not path.endswith(".py"):
            return None
        try:
            with (self.project.root / path).open("rb") as file:
                return file.read(MAX_BYTES + 1)
        except (OSError, ValueError):
            return None

    def text(self, name: str, command: Optional[Command], near: str) -> Optional[tuple[str, str]]:
        """Path and content of a file of arguments, named as the program would."""
        path = self.file(name, command, near)
        if path is None:
            return None
        try:
            with (self.project.root / path).open("rb") as file:
                return path, file.read(MAX_HEREDOC).decode("utf-8", "replace")
        except (OSError, ValueError):
            return None

    def head(self, path: str) -> str:
        """The first lines of the project's file at ``path``."""
        try:
            with (self.project.root / path).open("rb") as file:
                return file.read(400).decode("utf-8", "replace")
        except (OSError, ValueError):
            return ""

    def _written(self, name: str, heredocs: Sequence[Heredoc]) -> Optional[Document]:
        wanted = posixpath.normpath(name)
        for heredoc in reversed(heredocs):
            if posixpath.normpath(heredoc.target) == wanted and len(heredoc.text) < MAX_HEREDOC:
                return heredoc_document(heredoc)
        return None

    def hostfile(self, name: str, command: Command) -> Optional[Slots]:
        """Slots by host of the DeepSpeed hostfile ``name``."""
        path = self.file(name, command)
        if path is None:
            return None
        if path not in self._hostfiles:
            self._hostfiles[path] = self._read_hostfile(path)
        return self._hostfiles[path]

    def _read_hostfile(self, path: str) -> Optional[Slots]:
        try:
            with (self.project.root / path).open("rb") as file:
                return read_hostfile(file.read(100_000).decode("utf-8", "replace"))
        except (OSError, ValueError):
            return None


def heredoc_document(heredoc: Heredoc) -> Optional[Document]:
    """The document that a here-document holds, with its places in the script."""
    text = "\n" * (heredoc.location.line - 1) + heredoc.text
    if heredoc.target.endswith((".yaml", ".yml")):
        from flake8_gpu_training.sources.yaml_source import read_yaml

        return first_document(read_yaml(text, heredoc.location.path))
    from flake8_gpu_training.sources.json_source import read_json

    return first_document(read_json(text, heredoc.location.path))


def start_of(document: Document) -> Location:
    """Where a document begins: its first key."""
    entries = document.root.mapping.values()
    return min((entry.location for entry in entries), default=document.root.location)


def _parsed(source: Optional[bytes]) -> Optional[ast.Module]:
    if source is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in the source are no matter of ours
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
