"""Follows a run through a project: command to script, script to modules, name to document."""

from __future__ import annotations

import ast
import dataclasses
import posixpath
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Optional, Union

from flake8_gpu_training.facts import (
    Command,
    ConfigFile,
    Document,
    Heredoc,
    Location,
    Problem,
    ProblemKind,
    PythonFile,
    ScriptFile,
    Unknown,
    Word,
)
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.alternatives import agreed_document
from flake8_gpu_training.runs.configs import first_document, is_deepspeed
from flake8_gpu_training.runs.console import console_scripts
from flake8_gpu_training.runs.hostfiles import Slots, read_hostfile
from flake8_gpu_training.runs.python_entry import Entry, Program, entries_of, local_modules
from flake8_gpu_training.runs.reached import (
    MAX_LINES,
    Outline,
    outline_of,
    without_lent,
    without_unreached,
)
from flake8_gpu_training.sources.signatures import MAX_BYTES, Signatures, signatures_of

MAX_MODULES = 80
"""Modules that are followed from one script."""
MAX_HEREDOC = 200_000
_MAX_HOMES = 8
_CONFIG_SUFFIXES = (".yaml", ".yml", ".json", ".json5", ".jsonc", ".toml")
_OF_THE_SYSTEM = ("/opt/", "/usr/", "/lib", "/tmp/", "/var/")
# Names that many files have, of which one elsewhere is likely another.
_COMMON_NAME = re.compile(
    r"(?:\w*config|args|settings?|model|tokenizer\w*|default|base|params|data|train|main|run)\.\w+"
)
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
            return below[0] if len(below) == 1 else self._only(name)
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
        return None if name.startswith(_OF_THE_SYSTEM) else self._only(name)

    def _only(self, name: str) -> Optional[str]:
        """The one file of the project whose path ends most like ``name``.

        A name alone must be no common one, or that of a Python file, and no other file's.
        """
        parts = [p for p in posixpath.normpath(name).split("/") if p not in ("", ".", "..")]
        if not parts:
            return None
        same = [
            path
            for path in self._paths
            if posixpath.basename(path) == parts[-1] and not self.project.is_auxiliary(path)
        ]
        shared = {path: _shared_end(path.split("/"), parts) for path in same}
        best = [path for path in same if shared[path] == max(shared.values())]
        if len(best) != 1:
            return None
        alone = len(same) == 1 and (name.endswith(".py") or not _COMMON_NAME.fullmatch(parts[-1]))
        return best[0] if alone or shared[best[0]] > 1 else None

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
            self._programs[path] = self._counted(program) if program is not None else None
        return self._programs[path]

    def _whole(self, path: str) -> Optional[Program]:
        """The program with the functions that nothing calls, too."""
        if path not in self._wholes:
            self._wholes[path] = self._follow(path)
        return self._wholes[path]

    def _counted(self, program: Program) -> Program:
        """``program`` with what its run comes to."""
        files = without_lent(program.files, self._known_outlines(program))
        return self._reached(dataclasses.replace(program, files=tuple(files)))

    def _known_outlines(self, program: Program) -> dict[str, Outline]:
        """The outlines of its files, the first so many lines of them."""
        found: dict[str, Outline] = {}
        lines = 0
        for file in program.files:
            lines += (self.source(file.path) or b"").count(b"\n")
            outline = self._outline(file.path) if lines <= MAX_LINES else None
            if outline is not None:
                found[file.path] = outline
        return found

    def _outline(self, path: str) -> Optional[Outline]:
        if path not in self._outlines:
            tree = self.tree(path)
            self._outlines[path] = outline_of(tree) if tree is not None else None
        return self._outlines[path]

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
            outline = self._outline(file.path)
            lines += (self.source(file.path) or b"").count(b"\n")
            if outline is None or outline.is_by_text or lines > MAX_LINES:
                return None
            found[file.path] = outline
        return found

    def rebound(self, program: Program) -> frozenset[str]:
        """Attributes that the program sets to what only running it tells (``args.x //= n``)."""
        outlines = self._known_outlines(program).values()
        return frozenset(name for found in outlines for name in found.rebound)

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
        # What ``pip install -e folder`` puts on the path.
        for root in self._installed if "/" in candidate else ():
            path = posixpath.join(root, candidate)
            if path in known:
                return path
        return None

    @cached_property
    def _installed(self) -> tuple[str, ...]:
        """Folders below the project's that can be installed, and their ``src``."""
        homes = {
            posixpath.dirname(path)
            for path in self._paths
            if posixpath.basename(path) in ("setup.py", "setup.cfg", "pyproject.toml")
        }
        found = sorted(
            home for home in homes if home and not self.project.is_auxiliary(f"{home}/a.py")
        )
        return tuple(root for home in found[:_MAX_HOMES] for root in (home, f"{home}/src"))

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

    def named(
        self, value: Any, command: Optional[Command], writer: Writer = None, near: str = ""
    ) -> Optional[Document]:
        """The same, be the folder that of another machine or in a variable that is not known.

        The path then must end as that of one file of the project only.
        """
        name = value
        if isinstance(value, Unknown) and not value.candidates:
            match = _KNOWN_TAIL.search(value.reason.strip("\"'"))
            name = match.group(1) if match is not None else None
        if not isinstance(name, str) or "\n" in name:
            return None
        found = self.document(name, command, writer, near)
        if found is not None or not name.endswith(_CONFIG_SUFFIXES):
            return found
        path = self._only(name)
        return self.configuration(path) if path is not None else None

    def whichever(
        self, value: Any, command: Optional[Command], writer: Writer = None, near: str = ""
    ) -> Optional[Document]:
        """The same; of a name that branches of a script set, what all the files say."""
        if not isinstance(value, Unknown) or not value.candidates:
            return self.named(value, command, writer, near)
        names = [name for name in value.candidates if isinstance(name, str)]
        read = [self.named(name, command, writer, near) for name in names]
        found = [one for one in read if one is not None and not is_deepspeed(one)]
        return agreed_document(found) if len(found) == len(value.candidates) else None

    def refused(
        self, value: Any, command: Optional[Command], near: str = "", is_mapping: bool = False
    ) -> tuple[Problem, ...]:
        """Why the configuration file that ``value`` names, when it is there, stops its reader.

        ``is_mapping``: it holds settings, and no list of samples or the like.
        """
        if not isinstance(value, str) or not value.endswith(_CONFIG_SUFFIXES):
            return ()
        path = self.file(value, command, near)
        facts = self.project.read(path) if path is not None else None
        if not isinstance(facts, ConfigFile) or first_document(facts) is not None:
            return ()
        lists = [document.root for document in facts.documents if document.root.items]
        if is_mapping and lists and not facts.problems:
            message = "a list, where a mapping of settings is due"
            return (Problem(ProblemKind.SYNTAX, message, lists[0].location),)
        return tuple(p for p in facts.problems if p.kind is ProblemKind.SYNTAX)

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
        tree = self.tree(path) if data is not None and len(data) <= MAX_BYTES else None
        return signatures_of(tree) if tree is not None else Signatures()

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


def _shared_end(one: Sequence[str], other: Sequence[str]) -> int:
    """How many last parts two paths have in common."""
    count = 0
    for mine, theirs in zip(reversed(one), reversed(other)):
        if mine != theirs:
            break
        count += 1
    return count


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
