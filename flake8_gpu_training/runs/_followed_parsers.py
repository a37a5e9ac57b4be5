"""Command-line parsers that a program builds: argparse, HfArgumentParser, TrlParser."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Optional

from flake8_gpu_training.facts import Location, Origin, Setting, Unknown, Word, known
from flake8_gpu_training.runs._followed import (
    NO_RETURN,
    Class,
    External,
    Frame,
    Function,
    Given,
    Placed,
    Table,
    bare,
    items_of,
    lose,
    of_plain,
    plain,
)
from flake8_gpu_training.runs._followed_unseen import is_unseen
from flake8_gpu_training.runs.command_line import (
    SUPPRESSED,
    Commands,
    Convert,
    Declared,
    Outcome,
    ParserModel,
    RefusedError,
    parse_with,
)
from flake8_gpu_training.runs.model import RefusalKind, RefusedWord
from flake8_gpu_training.runs.option_types import (
    Annotation,
    annotation,
    boolean_options,
    library_type,
)
from flake8_gpu_training.runs.settings import parse_arguments

if TYPE_CHECKING:
    from flake8_gpu_training.runs.following import Follower

MAX_OPTIONS = 1_000
MAX_PARENTS = 8
DATACLASS_PARSERS = frozenset({"HfArgumentParser", "TrlParser", "H4ArgumentParser"})
_PARSERS = DATACLASS_PARSERS | {"ArgumentParser"}
_ACTIONS = frozenset(
    """
    store store_true store_false store_const append append_const extend count help version
    BooleanOptionalAction DictAction
    """.split()  # noqa: SIM905
)
_GROUPS = frozenset({"add_argument_group", "add_mutually_exclusive_group"})


@dataclass(eq=False)
class Parser:
    """A parser while the program builds it. ``kind``: the project's class it is made of."""

    name: str
    given: Given
    kind: Optional[Class] = None
    options: list[Declared] = field(default_factory=list)
    defaults: dict[str, Any] = field(default_factory=dict)
    commands: Optional[SubParsers] = None
    is_whole: bool = True
    is_engines: bool = False
    """An inference engine has added its options, which are not in sight."""
    raw: dict[str, Any] = field(default_factory=dict)
    """Defaults as the program holds them, by option."""


@dataclass(eq=False)
class SubParsers:
    """What ``add_subparsers`` gives."""

    dest: str
    parsers: dict[str, Parser] = field(default_factory=dict)


class WordText(str):
    """A text of the command line that keeps its word."""

    word: Word


def texts_of(words: Sequence[Word]) -> list[str]:
    """The words of a command line as texts that keep their word."""
    found: list[str] = []
    for word in words:
        text = WordText(word.text)
        text.word = word
        found.append(text)
    return found


# --- building ---------------------------------------------------------------------------


def is_parser(name: str) -> bool:
    """Whether a class of a library is a parser that is followed."""
    return name.rpartition(".")[2] in _PARSERS


def add_unseen(follower: Follower, callee: Any, given: Given) -> None:
    """Code that is not in sight may add options to the parsers that it is given, or use them."""
    for value in (*given.positional, *given.keywords.values()):
        if isinstance(bare(value), Parser):
            bare(value).is_whole = False
            if is_unseen(callee):
                follower.handed.update(option.dest for option in bare(value).options)


def derives_from_parser(kind: Class) -> str:
    """The parser of a library that a class of the project derives from, or nothing."""
    for item in kind.lineage():
        for base in item.bases:
            if isinstance(base, External) and is_parser(base.name):
                return base.name
    return ""


def reads_recipe(parser: Parser) -> bool:
    """Whether ``parse`` is that of the alignment handbook (alignment/configs.py), or a copy."""
    if parser.kind is not None:
        return isinstance(parser.kind.find("parse_yaml_and_args"), Function)
    return parser.name.endswith(".H4ArgumentParser")


def parser_method(
    follower: Follower, parser: Parser, name: str, given: Given, node: ast.Call
) -> Any:
    """What a method of a parser gives."""
    if name == "add_argument":
        _add_argument(follower, parser, given, node)
    elif name in _GROUPS:
        return parser
    elif name == "add_subparsers":
        dest = bare(given.get(-1, "dest"))
        parser.commands = SubParsers(dest if isinstance(dest, str) else "")
        return parser.commands
    elif name == "set_defaults":
        _set_defaults(follower, parser, given)
    elif name in ("parse_args", "parse_intermixed_args"):
        return _parse(follower, parser, given, is_strict=True)[0]
    elif name == "parse_known_args":
        return _parse(follower, parser, given)
    elif name == "get_default":
        return parser.raw.get(str(bare(given.get(0))), Unknown("a default"))
    else:
        from flake8_gpu_training.runs._followed_dataclasses import dataclass_method

        return dataclass_method(follower, parser, name, given)
    return None


def command_method(commands: SubParsers, name: str, given: Given) -> Any:
    """What a method of ``add_subparsers()`` gives."""
    title = bare(given.get(0, "name"))
    if name != "add_parser" or not isinstance(title, str):
        return Unknown(f"{name} of sub-commands")
    made = Parser("argparse.ArgumentParser", given)
    for alias in [title, *(items_of(given.get(-1, "aliases")) or ())]:
        if isinstance(bare(alias), str):
            commands.parsers[bare(alias)] = made
    return made


def _add_argument(follower: Follower, parser: Parser, given: Given, node: ast.Call) -> None:
    flags = [bare(flag) for flag in given.positional]
    nargs = bare(given.get(-1, "nargs"))
    nargs = "..." if nargs == External("argparse.REMAINDER") else nargs
    is_known = bool(flags) and all(isinstance(flag, str) and flag for flag in flags)
    if not is_known or given.is_open or not isinstance(nargs, (str, int, type(None))):
        parser.is_whole = False
        return
    if len(parser.options) >= MAX_OPTIONS:
        parser.is_whole = False
        return
    is_positional = not flags[0].startswith(("-", "+"))
    dest = bare(given.get(-1, "dest"))
    if not isinstance(dest, str):
        dest = flags[0] if is_positional else _dest(flags)
    action = _action(given)
    if follower.doubt or action == "unknown":
        parser.is_whole = False
    choices = items_of(given.get(-1, "choices"))
    parser.options.append(
        Declared(
            tuple(flags),
            dest,
            follower.place(follower.here, node.lineno, node.col_offset),
            action,
            nargs,
            plain(given.get(-1, "const")),
            _default(parser, dest, given),
            _convert(follower, given.keywords.get("type")),
            tuple(plain(choice) for choice in choices) if choices is not None else None,
            is_positional,
            bare(given.get(-1, "required")) is True,
        )
    )


def _default(parser: Parser, dest: str, given: Given) -> Any:
    if "default" not in given.keywords:
        if dest in parser.defaults:
            return parser.defaults[dest]
        return SUPPRESSED if _keyword(parser, "argument_default") is not None else ...
    value = given.keywords["default"]
    if bare(value) == External("argparse.SUPPRESS"):
        return SUPPRESSED
    parser.raw[dest] = value
    parser.defaults.pop(dest, None)  # the option's own default comes later, and wins
    return plain(value)


def _action(given: Given) -> str:
    value = given.keywords.get("action")
    if value is None:
        return ""
    value = bare(value)
    text = value.name if isinstance(value, External) else value
    last = text.rpartition(".")[2] if isinstance(text, str) else ""
    return last if last in _ACTIONS else "unknown"


def _dest(flags: Sequence[str]) -> str:
    long = [flag for flag in flags if flag[:2] in ("--", "++")]
    return (long or list(flags))[0].lstrip("-+").replace("-", "_")


def _set_defaults(follower: Follower, parser: Parser, given: Given) -> None:
    if given.is_open:
        parser.options = [_uncertain(option) for option in parser.options]
    follower.take(given.spread)
    for name, value in given.keywords.items():
        parser.raw[name] = value
        parser.defaults[name] = plain(value)
        if follower.doubt:
            before = next((o.initial for o in parser.options if o.dest == name), None)
            candidates = tuple(v for v in (before, plain(value)) if known(v))
            parser.defaults[name] = Unknown("set in a branch", candidates)
            parser.raw.pop(name)


def _uncertain(option: Declared) -> Declared:
    """An option whose default something out of sight may have changed."""
    default = option.initial
    candidates = (default,) if known(default) else default.candidates
    return dataclasses.replace(option, default=Unknown("its default is set later", candidates))


def _keyword(parser: Parser, name: str) -> Any:
    return bare(parser.given.keywords.get(name))


def _convert(follower: Follower, kind: Any) -> Optional[Convert]:
    """The type function of an option."""
    if kind is None:
        return None
    kind = bare(kind)
    if isinstance(kind, External):
        return library_type(kind.name)
    if not isinstance(kind, Function):
        return lambda text: Unknown(text)

    def convert(text: str) -> Any:
        value = follower.invoke(kind, Given((text,)))
        if value is NO_RETURN:
            raise RefusedError(f"invalid value {text!r}")
        return plain(value)

    return convert


# --- dataclasses ------------------------------------------------------------------------


def classes_of(parser: Parser) -> list[Any]:
    """The dataclasses that an HfArgumentParser fills."""
    if parser.name.rpartition(".")[2] not in DATACLASS_PARSERS:
        return []
    given = parser.given.get(0, "dataclass_types")
    items = items_of(given)
    return [bare(item) for item in items] if items is not None else [bare(given)]


def has_foreign_base(kind: Class) -> bool:
    """Whether a class has fields that are not in sight: it derives from one of a library."""
    plain_bases = ("object", "ABC", "Generic", "Protocol")
    return any(
        not isinstance(base, Class)
        and not (isinstance(base, External) and base.name.rpartition(".")[2] in plain_bases)
        for item in kind.lineage()
        for base in item.bases
    )


def field_options(follower: Follower, kind: Class) -> Iterator[Declared]:
    """The options that HfArgumentParser makes of a dataclass's fields."""
    owners: dict[str, Class] = {}
    for item in reversed(list(kind.lineage())):
        for name in item.annotated:
            owners[name] = item
    for name, owner in owners.items():
        yield from _field(follower, name, owner.annotated[name], owner)


def field_names(kind: Class) -> frozenset[str]:
    """The names of a dataclass's fields."""
    return frozenset(name for item in kind.lineage() for name in item.annotated)


def _field(
    follower: Follower, name: str, statement: ast.AnnAssign, owner: Class
) -> Iterator[Declared]:
    kind = annotation(statement.annotation)
    frame = Frame(owner.module, {**owner.module.names, **owner.attributes})
    keywords = _field_keywords(follower, statement, frame)
    if kind.name == "ClassVar" or bare(keywords.get("init")) is False:
        return
    default = follower.default_of(owner, statement.value)
    flags = [f"--{name}", *([f"--{name.replace('_', '-')}"] if "_" in name else [])]
    flags += _aliases(keywords)
    declared = Declared(
        tuple(flags),
        name,
        follower.place(owner.module.path, statement.lineno, statement.col_offset),
        default=plain(default),
    )
    if kind.name == "bool":
        yield from boolean_options(declared, kind)
    elif kind.name == "Literal":
        choices = tuple(plain(follower.value(node, frame)) for node in kind.arguments)
        by_text = {str(choice): choice for choice in choices}
        yield dataclasses.replace(
            declared, convert=lambda text: by_text.get(text, text), choices=choices
        )
    elif kind.name in ("list", "List"):
        inner = annotation(kind.arguments[0]) if kind.arguments else Annotation("?")
        convert = _field_type(follower, inner, frame)
        yield dataclasses.replace(declared, nargs="+", convert=convert)
    else:
        yield dataclasses.replace(declared, convert=_field_type(follower, kind, frame))


def _field_keywords(follower: Follower, statement: ast.AnnAssign, frame: Frame) -> dict[str, Any]:
    call = statement.value
    if not isinstance(call, ast.Call):
        return {}
    wanted = ("init", "metadata")
    return {k.arg: follower.value(k.value, frame) for k in call.keywords if k.arg in wanted}


def _aliases(keywords: Mapping[str, Any]) -> list[str]:
    metadata = keywords.get("metadata")
    found = bare(metadata.entries.get("aliases")) if isinstance(metadata, Table) else None
    items = [found] if isinstance(found, str) else items_of(found) or []
    return [bare(item) for item in items if isinstance(bare(item), str)]


def _field_type(follower: Follower, kind: Annotation, frame: Frame) -> Optional[Convert]:
    if kind.name in ("int", "float", "str"):
        return library_type(kind.name)
    made = bare(follower.value(kind.node, frame)) if kind.node is not None else None
    if isinstance(made, Class) and _is_enum(made):
        return None
    return lambda text: Unknown(text)


def _is_enum(kind: Class) -> bool:
    return any(
        isinstance(base, External) and base.name.endswith("Enum")
        for item in kind.lineage()
        for base in item.bases
    )


# --- parsing ----------------------------------------------------------------------------


def model_of(follower: Follower, parser: Parser, depth: int = 0) -> ParserModel:
    """A parser as it parses."""
    options: list[Declared] = []
    is_whole = parser.is_whole
    defaults: dict[str, Any] = {}
    for parent in items_of(parser.given.keywords.get("parents")) or ():
        parent = bare(parent)
        if isinstance(parent, Parser) and depth < MAX_PARENTS:
            inner = model_of(follower, parent, depth + 1)
            options += inner.options
            defaults.update(inner.defaults)
            for name, value in parent.raw.items():
                parser.raw.setdefault(name, value)
        else:
            is_whole = False
    for kind in classes_of(parser):
        is_whole = is_whole and isinstance(kind, Class) and not has_foreign_base(kind)
        if isinstance(kind, Class):
            options += field_options(follower, kind)
    options += parser.options
    defaults.update(parser.defaults)
    prefixes = _keyword(parser, "prefix_chars")
    commands = parser.commands
    made = None
    if commands is not None and depth < MAX_PARENTS:
        inner_models = {
            name: model_of(follower, one, depth + 1) for name, one in commands.parsers.items()
        }
        made = Commands(commands.dest, inner_models)
    return ParserModel(
        tuple(options),
        made,
        defaults,
        is_whole,
        prefixes if isinstance(prefixes, str) and prefixes else "-",
        _keyword(parser, "allow_abbrev") is not False,
        _keyword(parser, "add_help") is not False,
    )


def _parse(
    follower: Follower, parser: Parser, given: Given, *, is_strict: bool = False
) -> list[Any]:
    """The namespace, and the texts that the parser does not know (``is_strict``: none may be)."""
    argument = given.get(0, "args")
    outcome = parsed(follower, parser, argument, is_strict=is_strict)
    made = given.get(1, "namespace")
    table = made if isinstance(made, Table) else Table()
    if argument is None or _is_command_line(argument):
        table.lost = follower.made.lost
        _lose_defaults(follower, table, outcome, made)
    table.is_open = table.is_open or outcome.is_open
    for name, value in held(parser, outcome).items():
        if name not in table.entries or name in outcome.given:
            table.put(name, value)
    if parser.is_engines:
        _take_flags(follower, parser, outcome, table)
    rest = Unknown("unread arguments") if outcome.is_open else texts_of(outcome.rest)
    return [table, rest]


def _take_flags(follower: Follower, parser: Parser, outcome: Outcome, table: Table) -> None:
    """Set the options of an engine that the command line gives, or the program by default."""
    given = parse_arguments(outcome.rest)
    flags = {name: Placed(setting.value, setting) for name, setting in given.settings.items()}
    given_or_default = {**parser.defaults, **flags}
    for name, value in given_or_default.items():
        if name not in outcome.values:
            table.put(name, value)
    # An engine needs a model at least: without any flag the command is not the one that runs.
    table.is_open = table.is_open or given.is_open or not given_or_default
    follower.of_engines.append((table, parser))


def _lose_defaults(follower: Follower, table: Table, outcome: Outcome, made: Any) -> None:
    """A namespace that is handed in keeps what it has, and so do files that a parser reads."""
    defaults = [name for name in outcome.values if name not in outcome.given]
    is_open = made is not None and (table.is_open or table is not made)
    if is_open or reads_files_itself(follower):
        lose(table, defaults)
    else:
        lose(table, [name for name in defaults if name in table.entries])


def reads_files_itself(follower: Follower) -> bool:
    """Whether parsers take defaults from files on their own, as ConfigArgParse does."""
    return any(b"configargparse" in line for lines in follower.lines.values() for line in lines)


def parsed(
    follower: Follower,
    parser: Parser,
    argument: Any,
    is_open: bool = False,
    more: Mapping[str, Setting] = MappingProxyType({}),
    *,
    is_strict: bool = False,
) -> Outcome:
    """What a parser makes of the arguments it is given, by default those of the command.

    ``more``: what was taken from the command line before. ``is_strict``: the parser stops at
    words that it does not know.
    """
    words = words_of(follower, parser, argument)
    is_open = is_open or words is None or follower.world.is_open
    if words is None:  # it is the command line, as a rule, with something done to it
        words = list(follower.world.arguments)
        argument = None
    model = model_of(follower, parser)
    outcome = parse_with(model, words, is_open)
    values = {name: _from_file(parser, setting) for name, setting in outcome.values.items()}
    outcome = dataclasses.replace(outcome, values=values, given={**more, **outcome.given})
    if argument is None or _is_command_line(argument):
        follower.made.parsed.append(outcome)
        if argument is None and _is_plain(follower, parser):
            follower.made.refused += _refused(follower, model, outcome, is_strict)
    return outcome


_OWNERS = ("argparse.", "transformers.", "trl.")


def _is_plain(follower: Follower, parser: Parser) -> bool:
    """Whether a parser surely gets the command line as it is, and takes it as argparse does."""
    if follower.doubt or parser.kind is not None or not parser.name.startswith(_OWNERS):
        return False
    edits = (b"argv" in line for lines in follower.lines.values() for line in lines)
    return not any(edits)


def _refused(
    follower: Follower, model: ParserModel, outcome: Outcome, is_strict: bool
) -> Iterator[RefusedWord]:
    """What stops the program, where the whole command line and the whole parser are known."""
    if outcome.is_open or outcome.rests or not model.is_whole:
        return
    here = follower.here
    is_cut = any(fault.kind is RefusalKind.VALUELESS for fault in outcome.faults)
    for fault in outcome.faults:
        if fault.kind is RefusalKind.MISSING and outcome.refused:
            continue  # the parser stops before it asks for it
        if not is_cut or fault.kind is RefusalKind.VALUELESS:
            yield dataclasses.replace(fault, parser=here)
    if not is_strict or is_cut:
        return
    flags = tuple(
        flag for option in model.options if not option.is_positional for flag in option.flags
    )
    for word in outcome.rest:
        if known(word.value):
            yield RefusedWord(
                RefusalKind.UNKNOWN, word.text, word.location, known=flags, parser=here
            )


def _from_file(parser: Parser, setting: Setting) -> Setting:
    """A default that a configuration file gives, with its place there."""
    raw = parser.raw.get(setting.name)
    if setting.origin is not Origin.DEFAULT or not isinstance(raw, Placed):
        return setting
    return dataclasses.replace(raw.setting, name=setting.name, value=setting.value)


def _is_command_line(argument: Any) -> bool:
    if isinstance(argument, Unknown):
        return "sys.argv" in argument.reason
    items = items_of(argument) or ()
    return any(isinstance(item, WordText) for item in items)


def words_of(follower: Follower, parser: Parser, argument: Any) -> Optional[list[Word]]:
    """The words that are parsed; None when they are not known."""
    argument = bare(argument)
    if argument is None or (isinstance(argument, Unknown) and "sys.argv" in argument.reason):
        found = list(follower.world.arguments)
    else:
        items = items_of(argument)
        if items is None:
            return None
        found = []
        for item in items:
            text = bare(item)
            if isinstance(text, WordText):
                found.append(text.word)
            else:
                value = text if isinstance(text, (str, Unknown)) else str(text)
                found.append(Word(value, Location(follower.here), ""))
    prefixes = _keyword(parser, "fromfile_prefix_chars")
    if isinstance(prefixes, str):
        found = [
            inner for word in found for inner in _expanded(follower, parser, word, prefixes, 0)
        ]
    return found


def _expanded(
    follower: Follower, parser: Parser, word: Word, prefixes: str, depth: int
) -> Iterator[Word]:
    """The words of the file that ``@file`` names, a line each."""
    if not word.text or word.text[0] not in prefixes or depth > MAX_PARENTS:
        yield word
        return
    found = follower.world.text(word.text[1:])
    if found is None:
        yield Word(Unknown(word.text), word.location, word.text)
        return
    path, text = found
    method = parser.kind.find("convert_arg_line_to_args") if parser.kind is not None else None
    for number, line in enumerate(text.splitlines(), 1):
        parts: Any = [line]
        if isinstance(method, Function):
            parts = items_of(follower.invoke(method, Given((Unknown("self"), line))))
        for part in parts if parts is not None else [Unknown(line)]:
            value = bare(part)
            inner = Word(value, Location(path, number), value if isinstance(value, str) else "")
            yield from _expanded(follower, parser, inner, prefixes, depth + 1)


def held(parser: Parser, outcome: Outcome) -> dict[str, Any]:
    """The values of a namespace as the program holds them."""
    return {name: _value(parser, setting) for name, setting in outcome.values.items()}


def _value(parser: Parser, setting: Setting) -> Any:
    raw = bare(parser.raw.get(setting.name))
    value = setting.value
    is_scalar = raw is None or isinstance(raw, (bool, int, float, str, list, Unknown))
    if setting.origin is Origin.DEFAULT and not is_scalar:
        return raw
    if isinstance(value, Unknown):
        return value
    if isinstance(value, dict):
        made = of_plain(value)
        for key, item in made.entries.items():
            if setting.origin is Origin.FLAG and not isinstance(item, Table):
                made.entries[key] = Placed(item, dataclasses.replace(setting, value=item, text=""))
        return made
    return Placed(value, setting)
