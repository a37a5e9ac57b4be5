"""Follows how a program makes its configuration: files it reads, merges them, passes them on.

Statements are gone through as the program would, on values that may be unknown. Where a
condition is not known both branches are taken and their outcomes joined. Nothing is run.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from flake8_gpu_training.facts import Document, Location, Setting, Unknown, Word, known
from flake8_gpu_training.runs import _followed_library as library
from flake8_gpu_training.runs._followed import (
    DELETED,
    HOME,
    NO_RETURN,
    Class,
    External,
    File,
    Frame,
    Function,
    Given,
    Imported,
    Module,
    PathText,
    Placed,
    Super,
    Table,
    bare,
    doubt_all,
    joined,
    lose,
    plain,
    put_on_class,
    settings_of,
    table_of,
    unread_in,
)
from flake8_gpu_training.runs._followed_absl import flag_value
from flake8_gpu_training.runs._followed_commands import command_of, marked
from flake8_gpu_training.runs._followed_environment import fill_from_environment
from flake8_gpu_training.runs._followed_methods import method, table_method
from flake8_gpu_training.runs._followed_objects import (
    BY_PARSER,
    Key,
    TrainerArguments,
    arguments_of_library,
    change_unseen,
    is_arguments,
    note_trainer,
    set_by_method,
)
from flake8_gpu_training.runs._followed_operators import text_of
from flake8_gpu_training.runs._followed_parsers import (
    Parser,
    SubParsers,
    add_unseen,
    command_method,
    derives_from_parser,
    parser_method,
    reads_recipe,
)
from flake8_gpu_training.runs._followed_statements import NEXT, Statements
from flake8_gpu_training.runs.command_line import MUST_BE_GIVEN
from flake8_gpu_training.runs.command_line import Outcome as Parsed
from flake8_gpu_training.runs.interpolation import is_reference, resolved
from flake8_gpu_training.runs.model import RefusedWord

MAX_STEPS = 40_000
"""Expressions and statements gone through, after which nothing is concluded."""
MAX_CALLS = 24
"""Calls within calls."""
MAX_BYTES = 400_000


@dataclass(frozen=True)
class World:
    """What the program finds when it is started.

    ``options``: what its command line is parsed to; ``is_open``: words of the command are
    unknown. ``words``: texts of the arguments, at ``places``; ``pairs``: ``name=value`` ones.
    ``configuration``: what Hydra composes. ``document``: the project's document by name, as
    seen from a file; ``source``: the bytes of a Python file, ``tree`` its syntax tree;
    ``module``: path of a module, by its name, level (-1: the name is a path) and the file that
    imports it.
    """

    options: Mapping[str, Setting]
    environment: Mapping[str, Setting]
    document: Callable[[str, str], Optional[Document]]
    source: Callable[[str], Optional[bytes]]
    tree: Callable[[str], Optional[ast.Module]]
    module: Callable[[str, int, str], Optional[str]]
    words: tuple[str, ...] = ()
    arguments: tuple[Word, ...] = ()
    """The arguments themselves."""
    text: Callable[[str], Optional[tuple[str, str]]] = lambda _: None
    """Path and content of the project's text file of that name."""
    pairs: Mapping[str, Setting] = field(default_factory=dict)
    is_open: bool = False
    configuration: Optional[Table] = None
    function: str = ""
    """The function that an installed command calls, when it is one."""
    world_size: Optional[int] = None
    """Number of ranks, when the launcher tells it."""
    local_size: Optional[int] = None
    """Ranks on one node."""

    @property
    def is_partial(self) -> bool:
        """Whether some text of the command line is not known, be it only a flag's value."""
        return self.is_open or len(self.words) < len(self.arguments)


@dataclass
class Outcome:
    """What came of it: arguments of calls by their end, and the files that were read."""

    calls: dict[tuple[str, int, int], Given] = field(default_factory=dict)
    documents: list[Document] = field(default_factory=list)
    settings: dict[str, Setting] = field(default_factory=dict)
    modules: list[str] = field(default_factory=list)
    """Python files that are read as configuration, or imported by a computed name."""
    parsed: list[Parsed] = field(default_factory=list)
    """What each parser made of the command line."""
    refused: list[RefusedWord] = field(default_factory=list)
    """Words of the command line at which a parser stops."""
    targets: list[tuple[str, Given, Table]] = field(default_factory=list)
    """Things of libraries that ``hydra.utils.instantiate`` makes, and from what."""
    told: dict[str, Setting] = field(default_factory=dict)
    """What parsers of dataclasses are given in a file or a dict, by name."""
    is_told_whole: bool = True
    """Whether that is all, and certain."""
    readers: set[str] = field(default_factory=set)
    """Methods of parsers of dataclasses that the program calls by itself."""
    lost: set[str] = field(default_factory=set)
    """Options of the command line that the program may have set anew, out of sight."""
    objects: dict[Key, TrainerArguments] = field(default_factory=dict)
    """The arguments that trainers were built with, by the call that made them."""


class _ExhaustedError(Exception):
    """More steps than are worth taking."""


def followed(main: str, world: World) -> Optional[Outcome]:
    """What the program that starts at the file ``main`` does; None when it is too much."""
    follower = Follower(world)
    try:
        follower.start(main)
        follower.go_through_the_rest()
        if not follower.made.parsed:
            follower.made.lost |= follower.handed
        for table in follower.configurations:
            for name, setting in follower.settings_of(table).items():
                follower.made.settings.setdefault(name, setting)
    except (_ExhaustedError, RecursionError, MemoryError):
        # What was parsed by then stays parsed.
        made = follower.made
        return Outcome(parsed=made.parsed, lost=made.lost) if made.parsed else None
    except Exception:  # a fault of ours must cost this configuration only, not the report
        return None
    return follower.made


class Follower(Statements):
    """Goes through a program; :mod:`._followed_library` knows what libraries do."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.made = Outcome()
        self.configurations: list[Table] = []
        """Tables that were loaded or merged, and that no later merge took up."""
        self.branches: list[Optional[Table]] = []
        """Tables that were loaded in branches which may not be taken; None: not readable."""
        """Options of the parsers that were made so far."""
        self.option_defaults: dict[str, Any] = {}
        self.handed: set[str] = set()
        """Options of parsers that code which is not in sight was given."""
        self.own_environment: dict[str, Any] = {}
        self.doubt = 0
        self.is_main = True
        """Whether what is gone through is what the program does by itself."""
        self.steps = 0
        self.depth = 0
        self.here = ""
        self.flags: dict[str, tuple[bool, Any]] = {}
        """Flags of absl: whether each names a configuration file, and its default."""
        self.flag_values: dict[str, Any] = {}
        self.roots: list[str] = []
        """Folders of the project that the program adds to ``sys.path``."""
        self.modules: dict[str, Module] = {}
        self.lines: dict[str, list[bytes]] = {}
        self.called: set[ast.AST] = set()
        self.instances: dict[Class, Table] = {}
        self.of_engines: list[tuple[Table, Parser]] = []
        """Namespaces with options of an inference engine, and the parsers that made them."""

    def step(self) -> None:
        """Count a step."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise _ExhaustedError

    # --- files and functions ---

    def start(self, main: str) -> None:
        """Go through the script at ``main`` and what it calls."""
        if self.world.configuration is not None:
            self.configurations.append(self.world.configuration)
        module = self.module(main, is_main=not self.world.function)
        function = module.names.get(self.world.function) if module is not None else None
        if isinstance(function, Function):
            self.invoke(function, Given())

    def go_through_the_rest(self) -> None:
        """Go through the functions that nothing has called, as far as there is time for them.

        What the program does by itself is known by then, and stays.
        """
        main = self.steps, self.doubt, self.depth
        self.is_main = False
        try:
            for path in list(self.modules):
                self._uncalled(self.modules[path])
        except _ExhaustedError:
            self.steps, self.doubt, self.depth = main

    def module(
        self, path: str, is_main: bool = False, is_configuration: bool = False
    ) -> Optional[Module]:
        """The module at ``path``, gone through."""
        if path in self.modules:
            return self.modules[path]
        data = self.world.source(path)
        tree = self.world.tree(path) if data is not None and len(data) <= MAX_BYTES else None
        if data is None or tree is None:
            return None
        made = Module(path, is_configuration)
        made.names["__file__"] = PathText(f"{HOME}/{path}")
        made.names["__name__"] = "__main__" if is_main else path
        self.modules[path] = made
        self.lines[path] = data.splitlines()
        doubt, self.doubt = self.doubt, 0
        self.block(tree.body, Frame(made, made.names))
        self.doubt = doubt
        return made

    def _uncalled(self, module: Module) -> None:
        for value in list(module.names.values()):
            if isinstance(value, Function) and value.module is module:
                self._unknown_call(value)
            elif isinstance(value, Class) and value.module is module:
                for item in list(value.attributes.values()):
                    if isinstance(item, Function):
                        owner = self.instances.get(value) or Table(is_open=True)
                        self._unknown_call(dataclasses.replace(item, owner=owner))

    def _unknown_call(self, function: Function) -> None:
        if function.node not in self.called:
            self.doubt += 1
            self.invoke(function, Given(is_open=True))
            self.doubt -= 1

    def invoke(self, function: Function, given: Given) -> Any:
        """What a call of a function of the project gives back."""
        node = function.node
        if self.depth >= MAX_CALLS:
            return Unknown("calls within calls")
        names = {**function.closure, **self._bound(function, given)}
        self.called.add(node)
        frame = Frame(function.module, names, function)
        self.depth += 1
        if isinstance(node, ast.Lambda):
            value = self.value(node.body, frame)
        else:
            if self.block(node.body, frame) == NEXT:
                frame.returned.append(None)
            value = _returned(node, frame)
        self.doubt -= frame.doubts
        self.depth -= 1
        return value

    def _bound(self, function: Function, given: Given) -> dict[str, Any]:
        """The parameters of a function as a call gives them."""
        arguments = function.node.args
        plain_names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        positional = list(given.positional)
        if function.owner is not None and "staticmethod" not in function.decorators:
            positional.insert(0, function.owner)
        names: dict[str, Any] = dict(zip(plain_names, positional))
        keywords = dict(given.keywords)
        for name in (*plain_names, *(a.arg for a in arguments.kwonlyargs)):
            if name in keywords:
                names[name] = keywords.pop(name)
            elif name not in names:
                default = function.defaults.get(name, Unknown(name))
                names[name] = Unknown(name) if given.is_open else default
        configuration = self.world.configuration
        if configuration is not None and plain_names and "hydra.main" in function.decorators:
            names[plain_names[0]] = configuration
        if arguments.vararg:
            rest = positional[len(plain_names) :]
            names[arguments.vararg.arg] = Unknown("arguments") if given.is_open else rest
        if arguments.kwarg:
            names[arguments.kwarg.arg] = Table(keywords, is_open=given.is_open)
        return names

    def instantiate(self, kind: Class, given: Given) -> Any:
        """An object of a class of the project."""
        is_of_trainer = is_arguments(kind)
        start = kind.find("__init__")
        made = TrainerArguments(self.doubt) if is_of_trainer and start is None else Table()
        made.kind = kind
        self.instances[kind] = made
        if isinstance(start, Function):
            self.invoke(dataclasses.replace(start, owner=made), given)
        elif is_of_trainer or any(item.is_record for item in kind.lineage()):
            self._fill(made, kind, given)
        return made

    def _fill(self, made: Table, kind: Class, given: Given) -> None:
        """Set the fields of a record: defaults, then what it is made with."""
        fields: dict[str, Optional[tuple[Class, ast.expr]]] = {}
        for owner in reversed(list(kind.lineage())):
            for name, default in owner.fields.items():
                fields[name] = (owner, default) if default is not None else None
        for name, found in fields.items():
            if found is not None:
                made.put(name, self._field(*found))
        fill_from_environment(self, made, kind)
        if given.is_open:
            doubt_all(made)
        for name, value in [*zip(fields, given.positional), *given.keywords.items()]:
            made.put(name, value)
        if isinstance(made, TrainerArguments):
            made.is_made = True
        after = kind.find("__post_init__")
        if isinstance(after, Function):
            self.invoke(dataclasses.replace(after, owner=made), Given())

    def default_of(self, owner: Class, default: Optional[ast.expr]) -> Any:
        """The default of a field that a class of the project declares."""
        return MUST_BE_GIVEN if default is None else self._field(owner, default)

    def _field(self, owner: Class, default: ast.expr) -> Any:
        """A field's default: ``field(default=…)`` and ``Field(…)`` looked into."""
        frame = Frame(owner.module, {**owner.module.names, **owner.attributes})
        if not isinstance(default, ast.Call) or not text_of(default.func).endswith("ield"):
            return self.value(default, frame)
        for item in default.keywords:
            if item.arg == "default":
                return self.value(item.value, frame)
            if item.arg == "default_factory":
                return self.apply(self.value(item.value, frame), Given(), default)
        return self.value(default.args[0], frame) if default.args else MUST_BE_GIVEN

    # --- modules ---

    def module_of(self, dotted: str, level: int, near: str) -> Optional[Module]:
        """The project's module of that name, as the file ``near`` imports it."""
        path = self.world.module(dotted, level, near)
        for root in self.roots if path is None and not level else ():
            path = path or self.world.module(dotted, 0, f"{root}/__init__.py")
            if path is not None and path not in self.made.modules:
                self.made.modules.append(path)
        return self.module(path) if path is not None else None

    def seen(self, names: dict[str, Any], name: str, module: Module) -> Any:
        """A name's value; an import is followed when it is first used."""
        value = names[name]
        if isinstance(value, Imported):
            names[name] = Unknown(name)  # an import that leads back to itself
            value = names[name] = self._imported(value, module.path)
        return value

    def _imported(self, item: Imported, near: str) -> Any:
        if not item.name:
            return self.module_of(item.dotted, 0, near) or External(item.dotted)
        lead = f"{item.dotted}." if item.dotted else ""
        module = self.module_of(item.dotted, item.level, near)
        if module is not None and item.name in module.names:
            return self.seen(module.names, item.name, module)
        inner = self.module_of(f"{lead}{item.name}", item.level, near)
        if inner is not None:
            return inner
        if module is not None or item.level:
            return Unknown(item.name)
        return External(f"{item.dotted}.{item.name}")

    # --- tables ---

    def put(self, owner: Any, key: Any, value: Any) -> None:
        """Set a key or attribute of what may be a table."""
        if isinstance(owner, Module) and isinstance(key, str):
            owner.names[key] = value
        elif owner == External("os.environ") and isinstance(key, str):
            self.own_environment[key] = bare(value)
        elif isinstance(owner, Class):
            put_on_class(owner, key, value, self.doubt > 0)
        if not isinstance(owner, Table):
            return
        if key == "__dict__":
            self._put_all(owner, value)
            return
        if isinstance(key, (str, int)):
            if owner.lost is not None and plain(owner.entries.get(key)) != plain(value):
                lose(owner, [key])
            certain = owner.doubt if isinstance(owner, TrainerArguments) else 0
            owner.put(key, value, self.doubt > certain)
            return
        owner.is_open = True
        if isinstance(owner, TrainerArguments):
            owner.is_lost = owner.is_changed = True
        lose(owner, owner.entries)
        for name in list(owner.entries):  # any key may be meant
            owner.entries[name] = joined(owner.entries[name], Unknown("set by a computed name"))

    def _put_all(self, owner: Table, value: Any) -> None:
        """Set the attributes of ``owner`` to what a table holds."""
        if value is owner:
            return
        if not isinstance(value, Table) or value.is_open:
            change_unseen(owner)
        for name in value.entries if isinstance(value, Table) else ():
            owner.put(name, self.leaf(value, name), self.doubt > 0)

    def drop(self, table: Table, key: Any) -> None:
        """Take ``key`` out of a table."""
        if isinstance(key, Unknown):
            table.is_open = True
        elif self.doubt and key in table.entries:
            table.put(key, DELETED)
        else:
            table.entries.pop(key, None)

    def leaf(self, table: Table, key: Any) -> Any:
        """A value of a table, its references resolved when OmegaConf would."""
        value = table.entries[key]
        if not table.omega or not is_reference(bare(value)):
            return value
        self.step()
        root, path = table.root()
        found = resolved(bare(value), (*path, str(key)), self._lookup(root), self.environ)
        if not isinstance(value, Placed):
            return found
        setting = dataclasses.replace(value.setting, value=found, text="", value_location=None)
        return Placed(found, setting)

    def _lookup(self, root: Table) -> Callable[[tuple[str, ...]], Any]:
        def lookup(path: tuple[str, ...]) -> Any:
            value: Any = root
            for part in path:
                if not isinstance(value, Table) or part not in value.entries:
                    return Unknown(".".join(path))
                value = self.leaf(value, part)
            return plain(value)

        return lookup

    def environ(self, name: str) -> Any:
        """An environment variable as the program finds it; None when nobody sets it."""
        if name in library.LAUNCHERS_OWN:
            sizes = {"WORLD_SIZE": self.world.world_size, "LOCAL_WORLD_SIZE": self.world.local_size}
            size = sizes.get(name)
            return Unknown(name) if size is None else str(size)
        if name in self.own_environment:
            return self.own_environment[name]
        setting = self.world.environment.get(name)
        if setting is None:
            return Unknown(name) if name.startswith(library.SCHEDULERS_OWN) else None
        return setting.value if isinstance(setting.value, Unknown) else str(setting.value)

    def flag(self, name: str, text: str) -> Any:
        """The value of a flag of absl."""
        return flag_value(self, name, text)

    # --- calls ---

    def record(self, node: ast.Call, given: Given, path: str) -> None:
        """Note what a call is given; several times it is done are joined."""
        key: Optional[tuple[str, int, int]] = getattr(node, _END, None)
        if key is None:
            end = self.place(path, node.end_lineno or 0, node.end_col_offset or 0)
            key = (path, end.line, end.column)
            setattr(node, _END, key)
        note_trainer(self, node, given)
        earlier = self.made.calls.get(key)
        self.made.calls[key] = given if earlier is None else _joined_given(earlier, given)

    def place(self, path: str, line: int, offset: int) -> Location:
        """A place in a file from ``ast``'s line and offset in bytes."""
        lines = self.lines[path]
        text = lines[line - 1][:offset] if 0 < line <= len(lines) else b""
        return Location(path, line, len(text.decode("utf-8", "replace")) + 1)

    def method(self, owner: Any, name: str, given: Given, node: ast.Call) -> Any:
        """What calling a method gives."""
        if isinstance(owner, Super):
            for item in list(owner.home.lineage())[1:]:
                found = item.attributes.get(name)
                if isinstance(found, Function):
                    return self.invoke(dataclasses.replace(found, owner=owner.owner), given)
            return None
        if isinstance(owner, Parser):
            return self._parser_method(owner, name, given, node)
        if isinstance(owner, SubParsers):
            return command_method(owner, name, given)
        text = text_of(node)
        if isinstance(owner, Table) and (owner.kind is None or owner.kind.find(name) is None):
            if set_by_method(self, owner, name, given):
                return owner
            return table_method(self, owner, name, given, text)
        found = self.attribute(owner, name, text_of(node.func))
        if isinstance(found, (Function, Class, External)):
            return self.apply(found, given, node)
        return method(self, bare(owner), name, given, text)

    def _parser_method(self, owner: Parser, name: str, given: Given, node: ast.Call) -> Any:
        found = owner.kind.find(name) if owner.kind is not None else None
        is_followed = name != "parse" or not reads_recipe(owner)
        if isinstance(found, Function) and is_followed:  # the project's own class of parsers
            return self.invoke(dataclasses.replace(found, owner=owner), given)
        return parser_method(self, owner, name, given, node)

    def apply(self, callee: Any, given: Given, node: ast.AST) -> Any:
        """What calling a value gives."""
        command = command_of(self, callee, given)
        if command is not None:
            return command()
        if isinstance(callee, Function):
            return self.invoke(callee, given)
        if isinstance(callee, Class):
            parser = derives_from_parser(callee)
            if parser:
                return Parser(parser, given, callee)
            made = self.instantiate(callee, given)
            if isinstance(made, TrainerArguments):
                made.key = getattr(node, _END, BY_PARSER)
            return made
        if callee in (External("typer.Option"), External("typer.Argument")):
            return marked(callee.name, given, node)
        if is_arguments(callee):
            return arguments_of_library(self, given.keywords, getattr(node, _END, BY_PARSER))
        add_unseen(self, callee, given)
        if isinstance(callee, External):
            return library.call(self, callee.name, given, text_of(node))
        return Unknown(text_of(node))

    # --- what the library needs ---

    def load(self, name: Any, near: str, omega: bool = False) -> Any:
        """The content of the configuration file ``name``."""
        text = name.path if isinstance(name, File) else bare(name)
        if not isinstance(text, str):
            return Unknown("a file of unknown name")
        document = self.world.document(text, near)
        if document is None:
            self._note_branch(None)
            return Unknown(f"the file {text}")
        if document not in self.made.documents:
            self.made.documents.append(document)
        made = table_of(document, omega)
        if isinstance(made, Table):
            self.configurations.append(made)
        self._note_branch(made if isinstance(made, Table) else None)
        return made

    def _note_branch(self, table: Optional[Table]) -> None:
        if self.doubt and self.is_main:
            self.branches.append(table)

    def settings_of(self, table: Table) -> dict[str, Setting]:
        """Leaves of a table; those that another branch has otherwise are not known."""
        found = settings_of(table, self.leaf)
        if not any(table is one for one in self.branches):
            return found
        others = [settings_of(one, self.leaf) for one in self.branches if one is not None]
        is_unread = any(one is None for one in self.branches)
        unread = [f"{n}." for one in self.branches if one is not None for n in unread_in(one)]
        for name, setting in found.items():
            values = [one[name].value for one in others if name in one]
            hides = is_unread or any(f"{name}.".startswith(start) for start in unread)
            if hides or any(repr(value) != repr(values[0]) for value in values):
                different = {repr(value): value for value in values if known(value)}
                value = Unknown("it depends on a branch", tuple(different.values()))
                found[name] = dataclasses.replace(setting, value=value)
        return found

    def take(self, tables: Sequence[Table]) -> None:
        """What takes up ``tables`` is told of by itself."""
        self.configurations = [
            table for table in self.configurations if not any(table is one for one in tables)
        ]

    def replaced(self, new: Table, *old: Any) -> Table:
        """``new`` stands for the configuration that ``old`` tables were."""
        self.take(old)
        self.configurations.append(new)
        return new

    def finished(self, table: Table) -> Table:
        """A plain dict of a table, references resolved."""
        made = Table(is_open=table.is_open)
        for key, value in table.entries.items():
            inner = isinstance(value, Table)
            made.put(key, self.finished(value) if inner else self.leaf(table, key))
        if any(table is one for one in self.configurations):
            self.replaced(made, table)
        return made

    def target(self, dotted: str, given: Given, table: Table) -> Any:
        """What a class or function named in a configuration gives, called with ``given``."""
        found = self.located(dotted)
        if not isinstance(found, External):
            return self.apply(found, given, ast.Name(dotted.rpartition(".")[2], ast.Load()))
        self.made.targets.append((dotted, given, table))
        return Unknown(dotted)

    def located(self, dotted: str) -> Any:
        """The project's class or function of a dotted name."""
        owner, _, name = dotted.rpartition(".")
        module = self.module_of(owner, 0, "") if owner else None
        if module is None or name not in module.names:
            return External(dotted)
        self.made.modules.append(module.path)
        return self.seen(module.names, name, module)


_END = "_followed_end"
_YIELDS = "_followed_yields"


def _yields(node: ast.AST) -> bool:
    """Whether a function is a generator; told once for each function."""
    told: Optional[bool] = getattr(node, _YIELDS, None)
    if told is None:
        told = any(isinstance(child, (ast.Yield, ast.YieldFrom)) for child in ast.walk(node))
        setattr(node, _YIELDS, told)
    return told


def _returned(node: ast.AST, frame: Frame) -> Any:
    if isinstance(node, ast.AsyncFunctionDef) or _yields(node):
        return Unknown("a generator")
    if not frame.returned:
        return NO_RETURN
    value = frame.returned[0]
    for other in frame.returned[1:]:
        value = joined(value, other)
    return value


def _joined_given(one: Given, other: Given) -> Given:
    if len(one.positional) != len(other.positional):
        return Given(is_open=True)
    missing = Unknown("given in some calls only")
    keywords = {
        name: joined(one.keywords.get(name, missing), other.keywords.get(name, missing))
        for name in {**one.keywords, **other.keywords}
    }
    positional = tuple(joined(a, b) for a, b in zip(one.positional, other.positional))
    return Given(positional, keywords, one.is_open or other.is_open)
