"""Composes the configuration that Hydra gives a script, from its files and overrides."""

from __future__ import annotations

import ast
import dataclasses
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from flake8_gpu_training.facts import EMPTY, Call, Document, Node, Setting, Unknown, known
from flake8_gpu_training.frameworks.verl import BASES, CONFIGURATIONS, GROUPS, NAMING
from flake8_gpu_training.runs.interpolation import is_reference, resolved, yaml_1_2
from flake8_gpu_training.runs.python_entry import Program
from flake8_gpu_training.runs.settings import Arguments, document_settings, renamed, typed

MAX_FILES = 60
MAX_DEPTH = 6
MAX_PASSES = 3
"""Times that the defaults lists are gone through, until no ``override`` changes a choice."""
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


def composed(
    program: Program,
    given: Arguments,
    read: Read,
    head: Head,
    environment: Mapping[str, Setting] = EMPTY,
) -> Optional[Composition]:
    """The configuration of the script's ``@hydra.main``; None when there is none to read."""
    main = next((call for call in program.script.calls if call.name == "hydra.main"), None)
    if main is None:
        return None
    folder = _folder_of(program.script.path, main, given)
    name = _named(main, given, "config_name", ("config_name", "cn"))
    if folder is None or name is None:
        return None
    root = posixpath.normpath(posixpath.join(posixpath.dirname(program.script.path), folder))
    sweeps = "multirun" in given.settings or "m" in given.settings
    overrides = {
        key: _swept(setting) if sweeps else _read(setting)
        for key, setting in given.settings.items()
    }
    deleted = _deleted(given)
    overridden: dict[str, Any] = {}
    for _ in range(MAX_PASSES):
        composer = _Composer(root, overrides, deleted, overridden, read, head)
        composer.add(name, "", 0)
        composer.add_appended()
        if composer.found == overridden:
            break
        overridden = composer.found
    made = composer.made
    if not made.documents:
        return None
    for key, setting in overrides.items():
        if key not in composer.chosen:
            made.settings[key] = setting
    for name in deleted:
        for key in [k for k in made.settings if k == name or k.startswith(f"{name}.")]:
            del made.settings[key]
    made.settings = _resolved(made.settings, environment)
    return made


def packaged(
    given: Arguments, read: Read, head: Head, find: Callable[[Any], Optional[Document]]
) -> Optional[Composition]:
    """What the configuration that a command names adds to verl's own, which it builds on.

    None where it names none, or one that cannot be read as a whole. ``find``: the document that
    a path on the command line means.
    """
    named = _given(given, "config_name", "cn")
    if named is None or not isinstance(named.value, str):
        return None
    stem = named.value.removesuffix(".yaml")
    folder = _given(given, *NAMING[:4])
    document = next((d for at in _places(folder, stem) if (d := find(at)) is not None), None)
    bases = {stem} if document is None else set()
    made = Composition()
    if document is not None:
        overrides = {key: _read(setting) for key, setting in given.settings.items()}
        root = posixpath.dirname(document.path)
        composer = _Beside(root, overrides, _deleted(given), {}, read, head)
        composer.add(posixpath.basename(document.path), "", 0)
        made, bases = composer.made, composer.bases
    elif stem not in BASES or (folder is not None and not _is_packages(folder.value)):
        return None
    if not made.is_whole:
        return None
    settings = {n: s for n, s in made.settings.items() if not n.startswith("hydra.")}
    if "ppo_megatron_trainer" in bases:
        strategy = "actor_rollout_ref.actor.strategy"
        note = f"{strategy}=megatron (ppo_megatron_trainer)"
        settings.setdefault(
            strategy, Setting(strategy, "megatron", named.location, named.origin, note)
        )
    return Composition(_resolved(settings, EMPTY), made.documents)


def _given(given: Arguments, *names: str) -> Optional[Setting]:
    return next((given.settings[name] for name in names if name in given.settings), None)


def _is_packages(folder: Any) -> bool:
    return isinstance(folder, str) and posixpath.normpath(folder) in ("config", CONFIGURATIONS)


def _places(folder: Optional[Setting], stem: str) -> Iterator[Any]:
    """Where a configuration may be: as Hydra has it, relative to the package's program."""
    if folder is None or _is_packages(folder.value):
        if stem not in BASES:
            yield f"{CONFIGURATIONS}/{stem}.yaml"
    elif isinstance(folder.value, str):
        yield f"{folder.value}/{stem}.yaml"
        yield posixpath.normpath(f"{posixpath.dirname(CONFIGURATIONS)}/{folder.value}/{stem}.yaml")
    elif isinstance(folder.value, Unknown):
        reason = folder.value.reason.strip("\"'")
        yield Unknown(f"{reason}/{stem}.yaml")


def _folder_of(script: str, main: Call, given: Arguments) -> Optional[str]:
    """The configuration's folder, as seen from the script: by a flag, a name or an expression."""
    flags = ("config_path", "cp", "config_dir", "cd")
    named = _named(main, given, "config_path", flags)
    argument = main.keywords.get("config_path") or next(iter(main.positional), None)
    if named is not None or argument is None or any(flag in given.settings for flag in flags):
        return named
    try:
        tree = ast.parse(argument.text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError):
        return None
    path = _path_of(tree.body, script)
    return None if path is None else posixpath.relpath(path, posixpath.dirname(script) or ".")


def _path_of(node: ast.expr, script: str) -> Optional[str]:
    """A path that is put together from ``__file__``; relative to the project's root."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return script if node.id == "__file__" else None
    if isinstance(node, ast.Attribute):
        inner = _path_of(node.value, script) if node.attr == "parent" else None
        return None if inner is None else posixpath.dirname(inner)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return _joined_path([_path_of(node.left, script), _path_of(node.right, script)])
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    arguments = [_path_of(argument, script) for argument in node.args]
    function = ast.unparse(node.func).rpartition(".")[2]
    if isinstance(node.func, ast.Attribute) and function in ("joinpath", "resolve", "absolute"):
        return _joined_path([_path_of(node.func.value, script), *arguments])
    if function in ("str", "Path", "join", "abspath", "realpath", "fspath", "as_posix"):
        return _joined_path(arguments)
    if function == "dirname" and len(arguments) == 1 and arguments[0] is not None:
        return posixpath.dirname(arguments[0])
    if function == "files" and len(arguments) == 1:
        return _package_folder(arguments[0], script)
    return None


def _joined_path(parts: Sequence[Optional[str]]) -> Optional[str]:
    known_parts = [part for part in parts if part is not None]
    if len(known_parts) < len(parts) or not parts:
        return None
    return posixpath.normpath(posixpath.join(*known_parts))


def _package_folder(name: Optional[str], script: str) -> Optional[str]:
    """``importlib.resources.files``: the folder of the script's own package."""
    folders = posixpath.dirname(script).split("/")
    if not name or name not in folders:
        return None
    return "/".join(folders[: folders.index(name) + 1])


def _named(main: Call, given: Arguments, keyword: str, flags: tuple[str, ...]) -> Optional[str]:
    for flag in flags:
        setting = given.settings.get(flag)
        if setting is not None:
            return setting.value if isinstance(setting.value, str) else None
    argument = main.keywords.get(keyword)
    if argument is None and keyword == "config_path" and main.positional:
        argument = main.positional[0]
    return argument.value if argument is not None and isinstance(argument.value, str) else None


def _deleted(given: Arguments) -> frozenset[str]:
    """What ``~name`` and ``~name=value`` take away."""
    words = [word.text for word in given.positional]
    return frozenset(word[1:].partition("=")[0] for word in words if word.startswith("~"))


def _read(setting: Setting) -> Setting:
    """An override's value as Hydra's grammar has it."""
    value = setting.value
    if isinstance(value, str):
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
        value = value[1:-1] if quoted else None if value == "null" else value
    return setting if value is setting.value else dataclasses.replace(setting, value=value)


def _swept(setting: Setting) -> Setting:
    """An override of ``--multirun``: several values, separated by commas, are tried in turn."""
    value = setting.value
    if isinstance(value, str) and re.match(r"(?:range|choice|interval|glob|shuffle|tag)\(", value):
        return dataclasses.replace(setting, value=Unknown(value))
    if isinstance(value, str) and "," in value and value[0] not in "[{'\"":
        several = tuple(typed(part.strip()) for part in value.split(","))
        return dataclasses.replace(setting, value=Unknown(value, several))
    return _read(setting)


def _resolved(
    settings: Mapping[str, Setting], environment: Mapping[str, Setting]
) -> dict[str, Setting]:
    """``settings`` with references to each other and to the environment resolved."""
    depth = 0

    def environ(name: str) -> Any:
        setting = environment.get(name)
        if setting is None or not setting.known:
            return None if setting is None else setting.value
        return str(setting.value)

    def lookup(path: tuple[str, ...]) -> Any:
        nonlocal depth
        setting = settings.get(".".join(path))
        if setting is None or depth > MAX_DEPTH:
            return Unknown(".".join(path))
        if not is_reference(setting.value):
            return setting.value
        depth += 1
        found = resolved(setting.value, path, lookup, environ)
        depth -= 1
        return found

    found: dict[str, Setting] = {}
    for name, setting in settings.items():
        if is_reference(setting.value):
            value = resolved(setting.value, name.split("."), lookup, environ)
            setting = dataclasses.replace(setting, value=value, text="", value_location=None)
        found[name] = setting
    return found


class _Composer:
    def __init__(
        self,
        root: str,
        overrides: Mapping[str, Setting],
        deleted: frozenset[str],
        overridden: Mapping[str, Any],
        read: Read,
        head: Head,
    ) -> None:
        self.root = root
        self.overrides = overrides
        self.deleted = deleted
        self.overridden = overridden
        """Choices that ``override`` entries make, by group."""
        self.read = read
        self.head = head
        self.made = Composition()
        self.chosen: set[str] = set()
        """Overrides that choose a file (``trainer=big``), and so are no settings."""
        self.found: dict[str, Any] = {}
        """Choices of the ``override`` entries met in this pass."""

    def add(self, name: str, package: str, depth: int, optional: bool = False) -> None:
        """Add the configuration ``name`` (from the root, without its ending) at ``package``."""
        stem = name[: -len(".yaml")] if name.endswith(".yaml") else name
        path = posixpath.normpath(posixpath.join(self.root, f"{stem}.yaml"))
        document = self.read(path)
        if document is None or depth > MAX_DEPTH or len(self.made.documents) >= MAX_FILES:
            self.made.is_whole = self.made.is_whole and optional
            return
        self.made.documents.append(document)
        package = self._package(path, package)
        group = posixpath.dirname(stem)
        entries = list(_defaults(document.root))
        for entry in entries:
            if entry.name == "_self_":
                self._own(document, package)
            elif entry.is_override:
                self.found.setdefault(_keys(entry, _folder(entry, group))[0], entry.value)
            else:
                self._default(entry, group, package, depth)
        if not any(entry.name == "_self_" for entry in entries):
            self._own(document, package)

    def add_appended(self) -> None:
        """Files that ``+group=name`` adds to the end of the defaults list."""
        for name, setting in self.overrides.items():
            if name in self.chosen or not isinstance(setting.value, str):
                continue
            group, _, place = name.partition("@")
            path = posixpath.join(self.root, group, f"{setting.value}.yaml")
            if self.read(posixpath.normpath(path)) is not None:
                self.chosen.add(name)
                self.add(posixpath.join(group, setting.value), place or group.replace("/", "."), 1)

    def _default(self, entry: _Default, group: str, package: str, depth: int) -> None:
        """An entry of a defaults list: a file, or a group and which of its files."""
        if not entry.name:
            absolute = str(entry.value).startswith("/")
            base = "" if absolute else group
            target = _target(entry, package, package)
            self.add(posixpath.join(base, str(entry.value).lstrip("/")), target, depth + 1)
            return
        folder = _folder(entry, group)
        inner = entry.name.lstrip("/").replace("/", ".")
        value = self._choice(entry, folder)
        if value is None or self.deleted.intersection(_keys(entry, folder)):
            return
        lead = "" if entry.name.startswith("/") or not package else f"{package}."
        target = _target(entry, f"{lead}{inner}", package)
        for name in value if isinstance(value, list) else [value]:
            if not isinstance(name, str) or "${" in name or name == "???":
                self.made.is_whole = False
            else:
                self.add(posixpath.join(folder, name), target, depth + 1, entry.is_optional)

    def _choice(self, entry: _Default, folder: str) -> Any:
        """The file of a group: the command line wins over ``override`` entries."""
        for name in _keys(entry, folder):
            if name in self.overrides:
                self.chosen.add(name)
                return self.overrides[name].value
        return self.overridden.get(_keys(entry, folder)[0], entry.value)

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
            if "${" in made.text:  # the other files may change what it refers to
                made = dataclasses.replace(made, value=made.text)
            elif made.value == "???":  # the command line has to set it
                continue
            else:
                made = dataclasses.replace(made, value=yaml_1_2(made.value))
            self.made.settings[made.name] = made


class _Beside(_Composer):
    """Leaves out what the package that the command starts has itself, and names it."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.bases: set[str] = set()

    def add(self, name: str, package: str, depth: int, optional: bool = False) -> None:
        stem = name.removesuffix(".yaml")
        own = self.read(posixpath.normpath(posixpath.join(self.root, f"{stem}.yaml"))) is None
        own = own or (depth > 0 and self.root.endswith(CONFIGURATIONS))
        if own and (stem in BASES or stem.partition("/")[0] in GROUPS):
            self.bases.add(stem)
        else:
            super().add(name, package, depth, optional)


@dataclass(frozen=True)
class _Default:
    """An entry of a defaults list: group ("" for a plain file), choice, package."""

    name: str
    value: Any
    package: str = ""
    is_override: bool = False
    is_optional: bool = False


def _keys(entry: _Default, folder: str) -> tuple[str, ...]:
    """Names by which overrides mean an entry: its group, and its package when that is another."""
    if entry.package not in ("", "_group_", folder.replace("/", ".")):
        return (f"{folder}@{entry.package}",)
    return folder, folder.replace("/", ".")


def _folder(entry: _Default, group: str) -> str:
    """The folder of a group that is named within a file of ``group``."""
    absolute = entry.name.startswith("/")
    return entry.name.lstrip("/") if absolute else posixpath.join(group, entry.name)


def _target(entry: _Default, usual: str, parent: str) -> str:
    """The package of an entry: ``usual`` unless the entry says otherwise."""
    if entry.package == "_global_":
        return ""
    if entry.package == "_here_":
        return parent
    if not entry.package or entry.package == "_group_":
        return usual
    return f"{parent}.{entry.package}" if parent else entry.package


def _defaults(root: Node) -> Iterator[_Default]:
    """The defaults list of a file."""
    listed = root.mapping.get("defaults")
    for item in listed.node.items if listed is not None else ():
        if item.kind == "scalar" and isinstance(item.value, str):
            name, _, place = item.value.partition("@")
            yield _Default("_self_", None) if name == "_self_" else _Default("", name, place)
            continue
        for key, inner in item.mapping.items():
            words = key.split()
            if not words:
                continue
            name, _, place = words[-1].partition("@")
            value = inner.node.plain()
            if name and known(value):
                yield _Default(
                    name, value, place, "override" in words[:-1], "optional" in words[:-1]
                )
