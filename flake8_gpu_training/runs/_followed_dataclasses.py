"""What parsers of dataclasses give: objects made of the command line, or of a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from flake8_gpu_training.facts import Origin, Setting, Unknown, known
from flake8_gpu_training.runs._followed import (
    Class,
    External,
    Given,
    Table,
    bare,
    plain,
    setting_of,
)
from flake8_gpu_training.runs._followed_objects import (
    TrainerArguments,
    arguments_of_library,
    is_arguments,
)
from flake8_gpu_training.runs._followed_parsers import (
    Parser,
    classes_of,
    field_names,
    held,
    parsed,
    reads_recipe,
    texts_of,
    words_of,
)
from flake8_gpu_training.runs.command_line import combined
from flake8_gpu_training.runs.settings import flag_setting, parse_arguments

if TYPE_CHECKING:
    from flake8_gpu_training.runs.following import Follower

_CONFIG_FLAG = "--config"
_READERS = frozenset(
    """
    parse_args_into_dataclasses parse_args_and_config parse_yaml_file parse_json_file parse_dict
    """.split()  # noqa: SIM905
)


def dataclass_method(follower: Follower, parser: Parser, name: str, given: Given) -> Any:
    """What a method of an HfArgumentParser or TrlParser gives."""
    if name in _READERS and follower.is_main:
        follower.made.readers.add(name)
    if name == "parse_args_into_dataclasses":
        return _of_command_line(follower, parser, given, given.get(0, "args"))
    if name == "parse_args_and_config":
        return _with_config(follower, parser, given)
    if name in ("parse_yaml_file", "parse_json_file"):
        loaded = follower.load(given.get(0, "yaml_file", "json_file"), follower.here)
        return _objects(follower, parser, _told(follower, loaded))
    if name == "parse" and reads_recipe(parser):
        return _of_recipe(follower, parser, given)
    if name == "parse_dict":
        return _objects(follower, parser, _told(follower, given.get(0, "args")))
    return Unknown(f"{name} of a parser")


def _told(follower: Follower, values: Any) -> Any:
    """``values`` of a file or a dict, noted as what the dataclasses are made of."""
    if isinstance(values, Table) and values.omega:
        values = follower.finished(values)
    if not follower.is_main:
        return values
    made = follower.made
    if not isinstance(values, Table) or values.is_open or follower.doubt:
        made.is_told_whole = False
    for name, value in values.entries.items() if isinstance(values, Table) else ():
        if not isinstance(name, str):
            continue
        setting = setting_of(name, value) or Setting(name, plain(value), None, Origin.DERIVED)
        earlier = made.told.get(name)
        candidates = [s.value for s in (earlier, setting) if s is not None and known(s.value)]
        is_same = earlier is None or repr(earlier.value) == repr(setting.value)
        if follower.doubt or not is_same:
            value = Unknown("it is read in several ways", tuple(candidates))
            setting = dataclasses.replace(setting, value=value)
        made.told[name] = setting
    return values


def _with_config(follower: Follower, parser: Parser, given: Given) -> Any:
    """The file that ``--config`` names gives defaults, and sets its ``env``."""
    argument = given.get(0, "args")
    words = words_of(follower, parser, argument)
    flags = [word.text for word in words or ()]
    if words is None or _CONFIG_FLAG not in flags:
        return _of_command_line(follower, parser, given, argument)
    at = flags.index(_CONFIG_FLAG)
    named = words[at + 1].value if at + 1 < len(words) else Unknown("a file")
    loaded = follower.load(named, follower.here)
    if isinstance(loaded, Table):
        environment = loaded.entries.get("env")
        for name, value in environment.entries.items() if isinstance(environment, Table) else ():
            follower.own_environment[str(name)] = _as_text(bare(value))
        for name, value in loaded.entries.items():
            parser.defaults[name] = plain(value)
            parser.raw[name] = value
    else:
        parser.is_whole = False
    left = texts_of([*words[:at], *words[at + 2 :]])
    more = {"config": flag_setting("config", named, words[at], words[at + 1 : at + 2])}
    return _of_command_line(follower, parser, given, left, not isinstance(loaded, Table), more)


def _of_recipe(follower: Follower, parser: Parser, given: Given) -> Any:
    """``parse`` of the alignment handbook's parser: a YAML file first, ``--k=v`` over it."""
    words = words_of(follower, parser, None)
    made: Any
    if not words or not words[0].text.endswith(".yaml"):
        made = _of_command_line(follower, parser, given, None)
    else:
        follower.made.readers.add("parse_yaml_file")
        loaded = _told(follower, follower.load(words[0].value, follower.here))
        for name, value in loaded.entries.items() if isinstance(loaded, Table) else ():
            parser.defaults[name] = plain(value)
            parser.raw[name] = value
        for word in words[1:]:  # a flag is over the file
            follower.made.told.pop(word.text.partition("=")[0].lstrip("-"), None)
        is_open = not isinstance(loaded, Table)
        parser.is_whole = parser.is_whole and not is_open
        made = _of_command_line(follower, parser, given, texts_of(words[1:]), is_open)
    return made[0] if isinstance(made, list) and len(made) == 1 else made


def _as_text(value: Any) -> Any:
    return value if isinstance(value, Unknown) else str(value)


def _of_command_line(
    follower: Follower,
    parser: Parser,
    given: Given,
    argument: Any,
    is_open: bool = False,
    more: Mapping[str, Setting] = MappingProxyType({}),
) -> Any:
    outcome = parsed(follower, parser, argument, is_open, more)
    values = held(parser, outcome)
    loose = combined([outcome], parse_arguments).given
    values.update({name: setting.value for name, setting in loose.items() if name not in values})
    made = _objects(follower, parser, Table(values, is_open=outcome.is_open))
    if bare(given.get(1, "return_remaining_strings")) is True and isinstance(made, list):
        made.append(texts_of(outcome.rest))
    return made


def _objects(follower: Follower, parser: Parser, values: Any) -> Any:
    """An object of each dataclass, in order."""
    kinds = classes_of(parser)
    if not isinstance(values, Table):
        values = Table(is_open=True)
    return [_object(follower, kind, values, kinds) for kind in kinds]


def _object(follower: Follower, kind: Any, values: Table, kinds: Sequence[Any]) -> Table:
    if not isinstance(kind, Class):
        taken = {n for k in kinds if isinstance(k, Class) for n in field_names(k)}
        rest = {n: v for n, v in values.entries.items() if n not in taken}
        if is_arguments(kind):
            of_library = arguments_of_library(follower, rest)
            of_library.is_lost = values.is_open
            return of_library
        of_model = Table(rest, is_open=True)
        _fill_of_library(of_model, kind, values)
        return of_model
    names = field_names(kind)
    own: Mapping[str, Any] = {n: v for n, v in values.entries.items() if n in names}
    made: Table = follower.instantiate(kind, Given((), own, values.is_open))
    if isinstance(made, TrainerArguments):
        made.is_lost = values.is_open
    for name, value in values.entries.items():
        if name not in made.entries:
            Table.put(made, name, value)  # given on the command line, no change of the program's
    for base in (base for item in kind.lineage() for base in item.bases):
        _fill_of_library(made, base, values)
    return made


# trl 0.10.1 to 1.16.0 trainer/model_config.py: defaults that all these releases share.
_OF_MODEL_CONFIG: Mapping[str, Any] = MappingProxyType(
    {
        "model_revision": "main",
        "attn_implementation": None,
        "use_peft": False,
        "load_in_8bit": False,
        "load_in_4bit": False,
    }
)


def _fill_of_library(made: Table, kind: Any, values: Table) -> None:
    """What TRL's ModelConfig has where the command line, seen whole, gives nothing."""
    name = kind.name if isinstance(kind, External) else ""
    if values.is_open or not name.startswith("trl.") or not name.endswith(".ModelConfig"):
        return
    for field, default in _OF_MODEL_CONFIG.items():
        if field not in made.entries:
            Table.put(made, field, default)
