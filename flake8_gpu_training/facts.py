"""Facts: what was read in a project's files, each with its exact place.

Source readers (``sources/``) turn text into the containers at the end of this module;
everything later asks these containers and never the text. A value that static analysis
cannot know is an :class:`Unknown`; it is carried along and never guessed.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Optional

EMPTY: Mapping[str, Any] = MappingProxyType({})


def _nothing() -> Mapping[str, Any]:
    return EMPTY


@dataclass(frozen=True, order=True)
class Location:
    """A place in a file: path relative to the project (posix), line and column from 1."""

    path: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Unknown:
    """A value that only a run of the program could tell.

    ``candidates`` are the values of the branches seen, when there are any. Asking for the
    truth of an unknown value is a programming error, hence ``__bool__`` raises.
    """

    reason: str
    candidates: tuple[Any, ...] = ()

    def __bool__(self) -> bool:
        raise TypeError(f"the truth of an unknown value was asked: {self.reason}")


NO_ARGUMENTS = "the arguments of the script are not known"
"""The reason of what only the words after a script's name could tell."""

CONTAINERS = frozenset({"docker", "podman", "nerdctl", "nvidia-docker", "drun"})
"""Programs that start a command in an image."""


def known(value: object) -> bool:
    """Whether ``value`` is known (not :class:`Unknown`)."""
    return not isinstance(value, Unknown)


class Origin(enum.Enum):
    """Who set a value, strongest first."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    CONSTRUCTOR = "constructor"
    DEFAULT = "default"
    DERIVED = "derived"


@dataclass(frozen=True)
class Setting:
    """One named value, who set it and where.

    ``location`` is None for a framework default; ``note`` then names the default's source.
    """

    name: str
    value: Any
    location: Optional[Location] = None
    origin: Origin = Origin.FILE
    note: str = ""
    text: str = ""
    """The value as written in the file, when it stands there literally."""
    value_location: Optional[Location] = None
    """Where ``text`` starts; with it a change can replace the value."""

    @property
    def known(self) -> bool:
        """Whether the value is known."""
        return known(self.value)

    @property
    def explicit(self) -> bool:
        """Whether the user wrote it (as opposed to a default)."""
        return self.location is not None

    @property
    def written(self) -> str:
        """``name=value``; the name alone where the value is not known."""
        if self.text:
            return f"{self.name}={self.text}"
        return f"{self.name}={self.value}" if self.known else self.name


class ProblemKind(enum.Enum):
    """Why a reader could not read a file, or a part of it."""

    SYNTAX = "syntax"
    CUT_SHORT = "cut-short"
    """A shell command that ends before its last flags (blanks after a backslash)."""
    ENCODING = "encoding"
    TOO_LARGE = "too-large"
    TOO_DEEP = "too-deep"
    UNREADABLE = "unreadable"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True)
class Problem:
    """What a reader could not read."""

    kind: ProblemKind
    message: str
    location: Location


# --- Python -------------------------------------------------------------------------


@dataclass(frozen=True)
class Argument:
    """A call's argument: evaluated value (or Unknown), its source text and place.

    ``location`` is the keyword's when there is one; ``text`` starts at ``value_location``.
    """

    value: Any
    location: Location
    text: str = ""
    value_location: Optional[Location] = None

    @property
    def written(self) -> str:
        """The text, else the value; dots where neither is known."""
        return self.text or (str(self.value) if known(self.value) else "...")


@dataclass(frozen=True)
class Loop:
    """A ``for``/``while`` loop.

    ``over_batches``: iterates a DataLoader (``iterable`` names it). ``trains``: its body
    calls ``.backward()`` or steps an optimizer. ``guarded``: it stands in a branch of the
    loop or function around it. ``target``: the variables of a ``for`` loop.
    """

    location: Location
    iterable: str = ""
    over_batches: bool = False
    trains: bool = False
    parent: Optional[Loop] = None
    guarded: bool = False
    target: str = ""


@dataclass(frozen=True)
class Condition:
    """What a branch asks before it is taken.

    ``text`` is the test as written; it must come out as ``holds`` says (false in an ``else``).
    Without a text nobody can tell: the handler of an exception, the case of a ``match``.
    """

    text: str
    holds: bool = True
    location: Optional[Location] = None


@dataclass(frozen=True)
class Assignment(Setting):
    """An assignment to a dotted name, its scope, and the branches and loop it stands in."""

    scope: str = ""
    conditions: tuple[Condition, ...] = ()
    loop: Optional[Loop] = None


@dataclass(frozen=True)
class Call:
    """A call of interest.

    ``name`` is the dotted name resolved through imports and aliases
    (``torch.utils.data.DataLoader``); for a method of a local object it is as written
    (``loss.item``), with ``receiver`` the resolved class when the object was built in
    sight (``torch.cuda.amp.GradScaler``). ``is_open``: ``*args`` or ``**kwargs`` of
    unknown content follow, so a missing keyword proves nothing. Values from a known
    ``**CONFIG`` are in ``keywords`` with the place of the dict entry.
    """

    name: str
    location: Location
    positional: tuple[Argument, ...] = ()
    keywords: Mapping[str, Argument] = field(default_factory=_nothing)
    is_open: bool = False
    scope: str = ""
    loop: Optional[Loop] = None
    assigned_to: str = ""
    receiver: str = ""
    is_decorator: bool = False
    insert_at: Optional[Location] = None
    """Where a further keyword is written: right after the last argument, behind the comma that
    may trail it, or behind the opening parenthesis when there are no arguments. None when
    nothing can be written (a decorator without parentheses, a lone generator)."""
    ends_with_comma: bool = False
    """A comma trails the last argument, hence none is written before a further keyword."""
    end: Optional[Location] = None
    """Right behind the closing parenthesis."""
    guarded: bool = False
    """Within its loop, or its function outside of loops, it stands in a branch (``if step % n
    == 0``) or behind one that leaves (``if step % n: return``): not made for each step.
    Branches that tell ranks apart (``if rank == 0:``) do not count."""
    conditional: bool = False
    """It stands in a branch of its function, loop or module (``if args.debug:``), again not
    counting those that tell ranks apart."""
    conditions: tuple[Condition, ...] = ()
    """What the branches around it ask, the outermost first."""
    block_end: Optional[Location] = None
    """Where the block ends of the ``with`` that it opens."""
    of_script: bool = False
    """It stands under ``if __name__ == "__main__":``, for its file run as a script alone."""

    @cached_property
    def method(self) -> str:
        """Last component of the name."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class Import:
    """``module`` and, for ``from`` imports, the ``name`` taken from it."""

    module: str
    name: str
    alias: str
    location: Location

    @property
    def dotted(self) -> str:
        """The full dotted name that is imported."""
        return f"{self.module}.{self.name}" if self.name else self.module


@dataclass(frozen=True)
class Option:
    """A command-line option the script declares (argparse, click, typer)."""

    name: str
    flags: tuple[str, ...]
    location: Location
    default: Any = None
    type: str = ""
    action: str = ""
    choices: tuple[Any, ...] = ()
    required: bool = False


@dataclass(frozen=True)
class ClassDef:
    """A class: resolved base names and annotated fields (dataclass fields with defaults)."""

    name: str
    location: Location
    bases: tuple[str, ...] = ()
    decorators: tuple[str, ...] = ()
    fields: Mapping[str, Setting] = field(default_factory=_nothing)
    methods: tuple[str, ...] = ()


@dataclass(frozen=True)
class PythonFile:
    """Facts of one Python file, or of a notebook (places are those of the ``.ipynb`` file).

    ``bindings``: names with their last known value, module-level as ``NAME`` and local as
    ``function.name``; dicts are dicts whose leaves' places are in ``dict_entries``.
    ``attributes``: assignments to dotted names (``torch.backends.cudnn.benchmark = True``).
    ``untaken``: calls in branches that the run at hand does not take.
    ``environment``: ``os.environ[...] = ...`` and ``os.environ.setdefault``.
    """

    path: str
    imports: tuple[Import, ...] = ()
    calls: tuple[Call, ...] = ()
    options: tuple[Option, ...] = ()
    classes: tuple[ClassDef, ...] = ()
    loops: tuple[Loop, ...] = ()
    bindings: Mapping[str, Setting] = field(default_factory=_nothing)
    attributes: tuple[Assignment, ...] = ()
    environment: tuple[Setting, ...] = ()
    untaken: tuple[Call, ...] = ()
    dicts: tuple[Document, ...] = ()
    """Dict literals with at least two keys, as documents; a nested dict is not repeated."""
    shell: tuple[Command, ...] = ()
    """Commands of ``!cmd`` lines and ``%%bash`` cells (notebooks)."""
    heredocs: tuple[Heredoc, ...] = ()
    """Files that ``%%writefile`` cells write (notebooks)."""
    gpu: Optional[Setting] = None
    """The GPU that Colab or Kaggle gave the session, as a notebook's metadata keeps it."""
    has_main: bool = False
    mentions: Optional[frozenset[str]] = None
    """Words about GPU training that the text has anywhere, comments included: a missing one
    proves that the code does without; None when the text was not searched."""
    unread: frozenset[str] = frozenset()
    """Options that the file declares and that no code reads."""
    problems: tuple[Problem, ...] = ()

    def calls_to(self, *names: str) -> Iterator[Call]:
        """Calls whose resolved name is one of ``names``, or ends with one (``.Trainer``)."""
        found: dict[int, Call] = {}
        for name in names:
            for index in self._by_method.get(name.rpartition(".")[2], ()):
                call = self.calls[index]
                if call.name == name or (name.startswith(".") and call.name.endswith(name)):
                    found[index] = call
        return iter([found[index] for index in sorted(found)])

    @property
    def methods(self) -> Collection[str]:
        """Last components of the names of all calls."""
        return self._by_method.keys()

    @cached_property
    def _by_method(self) -> Mapping[str, list[int]]:
        found: dict[str, list[int]] = {}
        for index, call in enumerate(self.calls):
            found.setdefault(call.method, []).append(index)
        return found


# --- Shell --------------------------------------------------------------------------


@dataclass(frozen=True)
class Word:
    """A word of a command after expansion: a str, or Unknown when part of it is not known.

    An Unknown word keeps what is known as ``raw`` text (``--lr=$LR``).
    """

    value: Any
    location: Location
    raw: str = ""
    splits: bool = False
    """It is not known and unquoted: each candidate may be several words, or none."""

    @property
    def text(self) -> str:
        """The value when known, else the text as written."""
        return self.value if isinstance(self.value, str) else self.raw


@dataclass(frozen=True)
class Command:
    """A simple command, unwrapped: ``srun``, ``conda run``, ``bash -c`` … are ``wrappers``.

    ``environment`` holds what is exported or prefixed at this point. ``conditional``: it
    stands in a branch, so it may or may not run. ``end`` is the end of its last word: a
    further flag is written there. ``directory`` is the effect of plain ``cd``s, relative to
    the script's start.
    """

    words: tuple[Word, ...]
    location: Location
    environment: Mapping[str, Setting] = field(default_factory=_nothing)
    wrappers: tuple[tuple[Word, ...], ...] = ()
    conditional: bool = False
    function: str = ""
    directory: str = ""
    end: Optional[Location] = None
    uncalled: bool = False
    """It stands in a function that its script never calls."""
    lost: tuple[Word, ...] = ()
    """Words below it that are meant for it, though the shell ends it before them."""

    @property
    def name(self) -> str:
        """The program's name, as known."""
        return self.words[0].text if self.words else ""

    @property
    def text(self) -> str:
        """The command on one line."""
        return " ".join(word.text for word in self.words)


@dataclass(frozen=True)
class Heredoc:
    """A file that a script writes: ``cat > ds.json <<EOF``. Location is its first line."""

    target: str
    text: str
    location: Location


@dataclass(frozen=True)
class ScriptFile:
    """Facts of one shell script, Makefile, Dockerfile, or job file with a command.

    ``directives``: ``#SBATCH --gres=gpu:8`` as ``gres`` = ``gpu:8`` (long names), and
    Dockerfile ``FROM`` as ``image``. ``parser`` says who read it: bashlex or tree-sitter.
    """

    path: str
    commands: tuple[Command, ...] = ()
    assignments: Mapping[str, Setting] = field(default_factory=_nothing)
    unexported: tuple[Setting, ...] = ()
    """Variables for programs that are assigned, and that nothing exports or uses."""
    directives: tuple[Setting, ...] = ()
    heredocs: tuple[Heredoc, ...] = ()
    sourced: tuple[Word, ...] = ()
    comments: tuple[Setting, ...] = ()
    """Comment lines (name ``#``): weak evidence only, for hardware notes."""
    parser: str = "bashlex"
    problems: tuple[Problem, ...] = ()


# --- Configuration ------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """A value of a configuration document: scalar (or Unknown), mapping or sequence."""

    value: Any
    location: Location
    mapping: Mapping[str, Entry] = field(default_factory=_nothing)
    items: tuple[Node, ...] = ()
    kind: str = "scalar"
    """``scalar``, ``mapping`` or ``sequence``."""
    text: str = ""
    """A scalar's text, before it became a value."""
    content: Optional[Location] = None
    """Where a scalar's text begins (after a quote, or below ``|``), when its lines and
    columns are those of the file; None when they are not (folded or escaped text)."""

    def plain(self) -> Any:
        """The node as plain dict, list and scalars (Unknown stays)."""
        if self.kind == "mapping":
            return {key: entry.node.plain() for key, entry in self.mapping.items()}
        if self.kind == "sequence":
            return [item.plain() for item in self.items]
        return self.value


@dataclass(frozen=True)
class Entry:
    """A key of a mapping: the place of the key, and the node it names."""

    key: str
    location: Location
    node: Node


@dataclass(frozen=True)
class Document:
    """One document of a YAML, JSON or TOML file, or a Python dict literal.

    ``name``: variable or file it was written to, if any.
    """

    path: str
    root: Node
    language: str = "yaml"
    name: str = ""
    duplicates: tuple[Entry, ...] = ()
    """Entries that a later entry with the same key overrides (the last one wins)."""
    tolerated: tuple[Problem, ...] = ()
    """What was read nevertheless, though the usual parser refuses it (comments in JSON)."""
    more: Optional[Location] = None
    """Where the file's second document starts, at which readers of one document stop."""

    def get(self, dotted: str) -> Optional[Node]:
        """Node at ``a.b.c``, or None."""
        node = self.root
        for part in dotted.split("."):
            entry = node.mapping.get(part)
            if entry is None:
                return None
            node = entry.node
        return node

    def settings(self) -> dict[str, Setting]:
        """Leaves (scalars and sequences) by dotted name, with the place of their key."""
        found: dict[str, Setting] = {}
        stack: list[tuple[str, Node]] = [("", self.root)]
        while stack:
            prefix, node = stack.pop()
            for key, entry in node.mapping.items():
                name = f"{prefix}{key}"
                if entry.node.kind == "mapping":
                    stack.append((f"{name}.", entry.node))
                else:
                    found[name] = Setting(name, entry.node.plain(), entry.location, Origin.FILE)
        return found


@dataclass(frozen=True)
class ConfigFile:
    """Facts of one YAML, JSON or TOML file."""

    path: str
    documents: tuple[Document, ...] = ()
    commands: tuple[Command, ...] = ()
    """Commands that a job file (Kubernetes, compose, SkyPilot) holds."""
    resources: tuple[Setting, ...] = ()
    """What the job file asks for: ``gpus``, ``nodes``, ``shm``, ``image`` …, per container."""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Requirement:
    """A dependency: normalised name, PEP 440 specifier, exact version when pinned."""

    name: str
    specifier: str
    location: Location
    version: str = ""
    by_address: bool = False
    """Taken from a repository or an archive that names no version."""
    trunk_of: str = ""
    """The repository (``owner/name``) that it is taken from, of the trunk as it is that day."""


@dataclass(frozen=True)
class RequirementsFile:
    """Facts of a requirements, constraints, setup, environment or lock file."""

    path: str
    requirements: tuple[Requirement, ...] = ()
    problems: tuple[Problem, ...] = ()
    includes: tuple[str, ...] = ()
    """Files that it names with ``-r`` or ``-c``."""


@dataclass(frozen=True)
class GitConfig:
    """Facts of ``.git/config``, read as a file: remote URLs."""

    path: str
    remotes: tuple[Setting, ...] = ()
    problems: tuple[Problem, ...] = ()
