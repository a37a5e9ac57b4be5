"""Functions whose parameters the command line fills: click, typer and fire."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from flake8_gpu_training.facts import Setting, Unknown
from flake8_gpu_training.runs._followed import (
    External,
    Frame,
    Function,
    Given,
    Placed,
    bare,
    of_plain,
    plain,
)
from flake8_gpu_training.runs.command_line import (
    MUST_BE_GIVEN,
    Commands,
    Convert,
    Declared,
    ParserModel,
    RefusedError,
    combined,
    parse_with,
)
from flake8_gpu_training.runs.option_types import Annotation, annotation, library_type, literal
from flake8_gpu_training.runs.settings import parse_arguments

if TYPE_CHECKING:
    from flake8_gpu_training.runs.following import Follower

_ON = frozenset({"1", "true", "t", "yes", "y", "on"})
_OFF = frozenset({"0", "false", "f", "no", "n", "off"})
_CLICK_TYPES: Mapping[str, str] = {
    "INT": "int",
    "IntRange": "int",
    "FLOAT": "float",
    "FloatRange": "float",
    "STRING": "str",
    "BOOL": "bool",
}


@dataclass(frozen=True, eq=False)
class App:
    """``typer.Typer()``."""


@dataclass(frozen=True)
class _Decorator:
    """A decorator: what it is called on, its name and arguments."""

    owner: Any
    name: str
    given: Given
    node: ast.AST


def command_of(follower: Follower, callee: Any, given: Given) -> Optional[Callable[[], Any]]:
    """How a command, group or app is run with the words of the command line; None for others."""
    if given.positional or given.keywords or given.is_open:
        return None
    if isinstance(callee, App):
        return lambda: _run(follower, _commands_of(follower, callee), True)
    if not isinstance(callee, Function) or not callee.decorators:
        return None
    kinds = [item.name for item in _decorators(follower, callee)]
    if "click.group" in kinds:
        return lambda: _run(follower, _commands_of(follower, callee), False)
    if "click.command" in kinds:
        return lambda: _run(follower, {"": callee}, False)
    return None


def run_function(follower: Follower, function: Any, library: str) -> Any:
    """``typer.run(main)`` and ``fire.Fire(main)``."""
    if not isinstance(function, Function):
        return Unknown(f"what {library} runs")
    if library == "fire":
        return _filled(follower, function, _fire(follower, function), True)
    return _run(follower, {"": function}, True)


def _commands_of(follower: Follower, owner: Any) -> dict[str, Function]:
    found: dict[str, Function] = {}
    for module in list(follower.modules.values()):
        for name, value in list(module.names.items()):
            if not isinstance(value, Function) or not value.decorators:
                continue
            for item in _decorators(follower, value):
                if item.name == "command" and item.owner is owner:
                    title = bare(item.given.get(0, "name"))
                    found[title if isinstance(title, str) else name.replace("_", "-")] = value
    if len(found) == 1 and isinstance(owner, App):  # typer's only command needs no name
        return {"": next(iter(found.values()))}
    return found


def _decorators(follower: Follower, function: Function) -> Iterator[_Decorator]:
    frame = Frame(function.module, {**function.module.names, **function.closure})
    for node in getattr(function.node, "decorator_list", ()):
        given = follower.given_to(node, frame) if isinstance(node, ast.Call) else Given()
        called = node.func if isinstance(node, ast.Call) else node
        if isinstance(called, ast.Attribute):
            owner = follower.value(called.value, frame)
            name = f"{owner.name}.{called.attr}" if isinstance(owner, External) else called.attr
            yield _Decorator(owner, name, given, node)
        else:
            value = follower.value(called, frame)
            yield _Decorator(None, value.name if isinstance(value, External) else "", given, node)


def _run(follower: Follower, commands: Mapping[str, Function], is_typer: bool) -> Any:
    """Call the command that the words name with what they give."""
    models = {
        name: _typer(follower, function) if is_typer else _click(follower, function)
        for name, function in commands.items()
    }
    if "" in commands:
        return _filled(follower, commands[""], models[""])
    chosen = next((w.text for w in follower.world.arguments if w.text in models), None)
    if chosen is None:
        return Unknown("the command that is chosen")
    top = ParserModel((), Commands("", models), abbreviates=False, hyphenated=False)
    return _filled(follower, commands[chosen], top)


def _filled(
    follower: Follower, function: Function, model: ParserModel, takes_more: bool = False
) -> Any:
    """``takes_more``: flags that no parameter has are keywords, where the function takes any."""
    outcome = parse_with(model, follower.world.arguments, follower.world.is_open)
    follower.made.parsed.append(outcome)
    names = [argument.arg for argument in _parameters(function)]
    keywords = {n: _held(s) for n, s in outcome.values.items() if n in names}
    if not takes_more or function.node.args.kwarg is None:
        return follower.invoke(function, Given((), keywords))
    loose = combined([outcome], parse_arguments).given
    more = {n: _held(s) for n, s in loose.items() if n not in outcome.values}
    return follower.invoke(function, Given((), {**more, **keywords}, outcome.is_open))


def _held(setting: Setting) -> Any:
    value = setting.value
    if isinstance(value, Unknown):
        return value
    return of_plain(value) if isinstance(value, dict) else Placed(value, setting)


def _parameters(function: Function) -> list[ast.arg]:
    given = function.node.args
    return [*given.posonlyargs, *given.args, *given.kwonlyargs]


# --- click ------------------------------------------------------------------------------


def _click(follower: Follower, function: Function) -> ParserModel:
    options: list[Declared] = []
    for item in _decorators(follower, function):
        if item.name in ("click.option", "click.argument"):
            options += _click_options(follower, function, item)
    return ParserModel(tuple(options), abbreviates=False, hyphenated=False)


def _click_options(follower: Follower, function: Function, item: _Decorator) -> Iterator[Declared]:
    given = item.given
    flags = [bare(flag) for flag in given.positional]
    if not flags or not all(isinstance(flag, str) for flag in flags):
        return
    settings = {name: plain(value) for name, value in given.keywords.items()}
    on = [flag.partition("/")[0].strip() for flag in flags if flag.startswith("-")]
    off = [flag.partition("/")[2].strip() for flag in flags if "/" in flag]
    named = [flag for flag in flags if not flag.startswith("-")]
    long = [flag for flag in on if flag.startswith("--")] or on
    dest = (named[0] if named else long[0].lstrip("-")).replace("-", "_").lower()
    place = follower.place(function.module.path, *_position(item.node))
    default = settings.get("default", ...)
    if off or settings.get("is_flag") is True or "flag_value" in settings:
        start = False if default is ... else default
        value = settings.get("flag_value", True)
        yield Declared(tuple(on), dest, place, "store_const", None, value, start)
        if off:
            yield Declared(tuple(off), dest, place, "store_const", None, False, start)
        return
    if settings.get("count") is True:
        yield Declared(tuple(on), dest, place, "count", default=0 if default is ... else default)
        return
    is_argument = item.name == "click.argument"
    nargs = settings.get("nargs")
    nargs = "*" if nargs == -1 else nargs
    optional = default is not ... or settings.get("required") is False
    if is_argument and nargs is None and optional:
        nargs = "?"
    action = "append" if settings.get("multiple") is True else ""
    if action and default is ...:
        default = []
    names = (dest,) if is_argument else tuple(on)
    convert = _click_type(given.keywords.get("type"), default)
    yield Declared(names, dest, place, action, nargs, None, default, convert, None, is_argument)


def _click_type(kind: Any, default: Any) -> Optional[Convert]:
    kind = bare(kind)
    if kind is None:
        name = type(default).__name__ if default is not ... else "str"
    elif isinstance(kind, External):
        last = kind.name.rpartition(".")[2]
        name = _CLICK_TYPES.get(last, last)
    else:  # click.Choice([...]), click.Path(): texts
        reason = kind.reason if isinstance(kind, Unknown) else ""
        last = reason.partition("(")[0].rpartition(".")[2]
        name = _CLICK_TYPES.get(last, "str" if last in ("Choice", "Path", "File") else "?")
    if name == "bool":
        return _truth
    return library_type(name) if name in ("int", "float") else _text if name != "?" else _unread


def _text(text: str) -> Any:
    return text


def _unread(text: str) -> Any:
    return Unknown(text)


def _truth(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in _ON or lowered in _OFF:
        return lowered in _ON
    raise RefusedError(f"{text!r} is not a boolean")


# --- typer ------------------------------------------------------------------------------


def _typer(follower: Follower, function: Function) -> ParserModel:
    options: list[Declared] = []
    for parameter in _parameters(function):
        options += _typer_options(follower, function, parameter)
    return ParserModel(tuple(options), abbreviates=False, hyphenated=False)


def _typer_options(
    follower: Follower, function: Function, parameter: ast.arg
) -> Iterator[Declared]:
    name = parameter.arg
    kind = annotation(parameter.annotation) if parameter.annotation else Annotation("str")
    marker: Optional[ast.expr] = None
    default = function.defaults.get(name, ...)
    if kind.name == "Annotated" and kind.arguments:
        marker = next((n for n in kind.arguments[1:] if isinstance(n, ast.Call)), None)
        kind = annotation(kind.arguments[0])
    elif isinstance(default, _Marked):
        marker, default = default.node, default.default
    frame = Frame(function.module, {**function.module.names, **function.closure})
    given = follower.given_to(marker, frame) if isinstance(marker, ast.Call) else Given()
    role = _role(marker)
    written = given.positional if kind is not None and role else ()
    flags = [bare(f) for f in written if isinstance(bare(f), str) and bare(f).startswith("-")]
    place = follower.place(function.module.path, parameter.lineno, parameter.col_offset)
    start = default if default is ... else plain(default)
    long = f"--{name.replace('_', '-')}"
    convert = _typer_type(kind)
    if role == "Argument" or (not role and default is ...):
        nargs = None if default is ... else "?"
        yield Declared((name,), name, place, "", nargs, None, start, convert, None, True)
    elif kind.name == "bool":
        on = [flag.partition("/")[0] for flag in flags] or [long]
        off = [flag.partition("/")[2] for flag in flags if "/" in flag]
        off = off if flags else [f"--no-{long[2:]}"]
        start = False if start is ... else start
        yield Declared(tuple(on), name, place, "store_const", None, True, start)
        if off:
            yield Declared(tuple(off), name, place, "store_const", None, False, start)
    else:
        action = "append" if kind.name in ("list", "List") else ""
        yield Declared(tuple(flags) or (long,), name, place, action, None, None, start, convert)


@dataclass(frozen=True)
class _Marked:
    """``typer.Option(1e-4, "--lr")`` as the default of a parameter."""

    node: ast.expr
    default: Any


def marked(name: str, given: Given, node: Any) -> Any:
    """What ``typer.Option(…)`` gives."""
    default = given.get(0, "default", default=...)
    default = ... if isinstance(default, Unknown) and default.reason == "..." else default
    return _Marked(node, default) if isinstance(node, ast.expr) else Unknown(name)


def _role(marker: Optional[ast.expr]) -> str:
    function = marker.func if isinstance(marker, ast.Call) else None
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name if name in ("Option", "Argument") else ""


def _typer_type(kind: Annotation) -> Convert:
    if kind.name in ("list", "List") and kind.arguments:
        return _typer_type(annotation(kind.arguments[0]))
    if kind.name in ("int", "float"):
        return library_type(kind.name) or _text
    if kind.name == "bool":
        return _truth
    return _text if kind.name in ("str", "Path") else _unread


# --- fire -------------------------------------------------------------------------------


def _fire(follower: Follower, function: Function) -> ParserModel:
    options: list[Declared] = []
    for parameter in _parameters(function):
        name = parameter.arg
        place = follower.place(function.module.path, parameter.lineno, parameter.col_offset)
        default = plain(function.defaults.get(name, MUST_BE_GIVEN))
        flags = tuple(dict.fromkeys((f"--{name}", f"--{name.replace('_', '-')}")))
        options.append(Declared(flags, name, place, "", "?", True, default, _fire_value))
        options.append(Declared((f"--no{name}",), name, place, "store_false", default=default))
    return ParserModel(tuple(options), abbreviates=False, hyphenated=False, is_whole=False)


def _fire_value(text: str) -> Any:
    """A value as Python reads it, else the text; fire also takes bare words in brackets."""
    try:
        return literal(text)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return Unknown(text) if set(text) & set("[](){},") else text


def _position(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
