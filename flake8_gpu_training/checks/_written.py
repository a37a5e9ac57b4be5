"""Parameters as a user wrote them, and how a name or a value is replaced where it stands."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Optional

from flake8_gpu_training.checks.base import Change, Edit, Priority
from flake8_gpu_training.facts import (
    Argument,
    Call,
    Command,
    Location,
    Origin,
    Setting,
    Unknown,
    known,
)
from flake8_gpu_training.frameworks import accelerate_sections, deepspeed_sections
from flake8_gpu_training.frameworks.accepted import (
    Accepted,
    accepted_by,
    configured,
    constructed,
    inverse,
    is_trainer,
    launched,
    parsed_by,
)
from flake8_gpu_training.frameworks.own_parsers import ignores_keys
from flake8_gpu_training.frameworks.refusals.base import Options
from flake8_gpu_training.frameworks.tables import Parameter
from flake8_gpu_training.frameworks.torch_calls import positions as positions_of_torch
from flake8_gpu_training.runs.model import Run, once_per_run
from flake8_gpu_training.runs.settings import document_settings

_EDITED = (".yaml", ".yml", ".json")
PLACEHOLDER = re.compile(r"(?i)[<>{}\[\]$]|%.|your|xx|\.\.\.|^$")
"""What stands for a value that the user is to fill in."""


@dataclass(frozen=True)
class Written:
    """A parameter where it stands; ``raw`` is its name as written there (``--attn-impl``), ""
    when it is not written there."""

    setting: Setting
    location: Location
    raw: str

    @property
    def name(self) -> str:
        """The parameter's name."""
        return self.setting.name

    @property
    def is_flag(self) -> bool:
        """Whether it is a flag of a command."""
        return self.raw.startswith("--")

    @property
    def is_key(self) -> bool:
        """Whether it is a key of a file."""
        return self.setting.origin is Origin.FILE

    @property
    def language(self) -> str:
        """The language it is written in."""
        if self.is_flag:
            return "bash"
        ending = self.location.path.rpartition(".")[2]
        return _LANGUAGES.get(ending, "yaml") if self.is_key else "python"

    def typed(self, name: str) -> str:
        """A parameter's name as it would be typed here: its own as it stands, another one as a
        flag with the same dashes or underscores."""
        if name == self.name or not self.is_flag:
            return (self.raw or name) if name == self.name else name
        is_dashed = "-" in self.raw[2:] and "_" not in self.raw
        return f"--{name.replace('_', '-') if is_dashed else name}"

    def spelled(self, name: str, value: str) -> str:
        """A name with a value as it is written here."""
        if self.is_key and self.language != "yaml":
            return f'"{name}": {value}'
        return f"{name}{_JOINS[self.language]}{value}"

    @property
    def text(self) -> Optional[str]:
        """The value as a parser of flags gets it; None when it is not known or none is given."""
        value = self.setting.value
        if not known(value):
            return None
        if self.is_key:
            return None if isinstance(value, (list, dict)) else str(value)
        if value is None:
            return None
        return self.setting.text.strip("'\"") if self.setting.text else None

    def revalued(self, new: str) -> Optional[Change]:
        """The change of the value."""
        place, old = self.setting.value_location, self.setting.text
        shown = self.spelled(self.raw or self.name, new)
        if place is None or not old:
            return Change(self.language, shown)
        return Change(self.language, shown, (Edit(place, old, new),))


_JOINS = {"bash": " ", "yaml": ": ", "json": ": ", "python": "="}
_LANGUAGES = {"json": "json", "py": "python", "ipynb": "python"}


@dataclass(frozen=True)
class Use:
    """A program or constructor, and what is given to it.

    ``through_flags``: what stands in its file reaches it as flags; ``as_defaults``: as defaults
    of argparse. ``parser``: who takes it, where that is no framework. ``options``: the same as
    the program's own validation sees it, None where that is not known whole. ``call``: the
    constructor, where it is one. ``by_model``: a pydantic model converts what is given.
    ``priority`` is the check's own unless given.
    """

    accepted: Accepted
    written: tuple[Written, ...]
    refuses: str = "refuses to start"
    through_flags: bool = False
    as_defaults: bool = False
    parser: str = ""
    options: Optional[Options] = None
    call: Optional[Call] = None
    by_model: bool = False
    priority: Optional[Priority] = None

    @property
    def title(self) -> str:
        """Who takes what is given."""
        return self.parser or self.accepted.title

    def parameter(self, written: Written) -> Optional[Parameter]:
        """The parameter that is set."""
        return self.accepted.parameter(written.name, flag=self.is_flag(written))

    def is_flag(self, written: Written) -> bool:
        """Whether it reaches the program as a flag of a command."""
        return written.is_flag or self.through_flags

    def named(self, name: str) -> str:
        """A parameter as the user writes it, or would: its flag on a command line.

        ``a|b``: the first of several names that the release at hand has.
        """
        names, parameters = name.split("|"), self.accepted.parameters
        taken = [parameters[one].name for one in names if one in parameters]
        wanted = taken[0] if taken else names[0]
        for written in self.written:
            parameter = self.parameter(written)
            if written.raw and parameter is not None and parameter.name == wanted:
                return written.raw
        if self.call is not None or not self._is_command_line:
            return wanted
        return f"--{wanted.replace('_', '-')}"

    @property
    def _is_command_line(self) -> bool:
        """Whether what is missing would be added as a flag."""
        return self.through_flags and not any(one.is_key for one in self.written)

    @property
    def is_trainer(self) -> bool:
        """Whether TrainingArguments take what is given."""
        return any(part.distribution == "transformers" for part in self.accepted.parts)


@once_per_run
def uses(run: Run) -> tuple[Use, ...]:
    """What ``run`` gives to the programs and constructors whose parameters are known."""
    return tuple(_uses(run))


def _uses(run: Run) -> Iterator[Use]:
    accepted = accepted_by(run)
    if accepted is not None:
        settings = (*run.settings.values(), *run.overridden)
        as_flags = run.framework in _FILES_AS_FLAGS
        given = _by_parameter(run.settings, accepted, as_flags)
        written = _given(run, settings)
        written = _as_flags(written) if as_flags else written
        if accepted.parts[0].distribution == "trl" and ignores_keys(run):
            written = (one for one in written if not one.is_key)
        if run.framework in _SERVERS:
            written = (one for one in written if one.is_flag or one.is_key)  # no -tp
        yield Use(
            accepted,
            () if accepted.keeps_others else tuple(written),
            through_flags=as_flags,
            as_defaults=accepted.parts[0].distribution == "trl",
            options=Options(given, accepted, run, is_open=run.is_open),
        )
    own = parsed_by(run) if accepted is None else None
    if own is not None:
        taken, parser = own
        origins = {Origin.FLAG: parser.flags, Origin.FILE: parser.files}
        them = tuple(s for s in (*run.settings.values(), *run.overridden) if origins.get(s.origin))
        where = tuple(_in_place(run, _given(run, them)))
        settings_of_it = _by_parameter(_parsed(run), taken)
        options = Options(settings_of_it, taken, run, parser.names, run.is_open)
        yield Use(taken, where, parser="the script's parser", options=options)
    launch = launched(run)
    if launch is not None:
        flags = (s for s in run.launcher.options.values() if s.origin is Origin.FLAG)
        options = Options(run.launcher.options, launch, run, is_open=run.launcher.is_open)
        long = tuple(flag for flag in _given(run, flags) if flag.is_flag)
        name = _LAUNCHERS.get(run.launcher.name, run.launcher.name)
        yield Use(launch, long, f"{name} refuses it", options=options)
    keys = configured(run)
    if keys is not None and run.accelerate is not None:
        entries = document_settings(run.accelerate)
        yield Use(
            keys,
            tuple(_given(run, entries.values())),
            "accelerate refuses the file",
            options=Options(entries, keys, run),
        )
    yield from _of_sections(run)
    yield from _of_deepspeed(run)
    for call, known_to_it in constructed(run):
        keywords = tuple(_of_call(call))
        arguments = {one.name: one.setting for one in (*_of_positions(call), *keywords)}
        options = Options(arguments, known_to_it, run, is_open=_is_open(call, known_to_it))
        refuses = f"{call.method} raises TypeError"
        decided = None if is_trainer(call.method) else options  # a trainer takes objects
        yield Use(known_to_it, keywords, refuses, options=decided, call=call)


_LAUNCHERS = {"accelerate": "accelerate launch"}
_SERVERS = frozenset({"vllm", "sglang"})
_FILES_AS_FLAGS = _SERVERS | {"swift"}
"""Frameworks whose programs turn the keys of their file into flags."""


def _of_sections(run: Run) -> Iterator[Use]:
    """Keys within the sections of Accelerate's file that it ignores."""
    found = accelerate_sections.misspelt(run)
    if found is not None:
        accepted, keys = found
        written = tuple(Written(one, one.location, one.name) for one in keys if one.location)
        yield Use(accepted, written, "ignores it", priority=Priority.MEDIUM)


def _of_deepspeed(run: Run) -> Iterator[Use]:
    """The run's DeepSpeed configuration: its sections, and the whole."""
    refuses = "deepspeed.initialize refuses the configuration"
    for section in deepspeed_sections.sections(run):
        keys = tuple(
            Written(one, one.location, one.name) for one in section.settings if one.location
        )
        if section.is_closed:
            priority = None if section.always else Priority.MEDIUM
            yield Use(section.accepted, keys, refuses, by_model=True, priority=priority)
        else:
            yield Use(section.accepted, keys, "ignores it", priority=Priority.MEDIUM)
    whole = deepspeed_sections.whole(run)
    if whole is not None:
        accepted, given = whole
        is_open = not deepspeed_sections.is_complete(run)
        yield Use(accepted, (), refuses, options=Options(given, accepted, run, is_open=is_open))


def _by_parameter(
    given: Mapping[str, Setting], accepted: Accepted, as_flags: bool = False
) -> Mapping[str, Setting]:
    """``given`` with the parameters that other spellings of a flag set: its short form, ``--no_x``;
    the same mapping where there is none. ``as_flags``: keys of the file are spelled so, too."""
    found: dict[str, Setting] = {}
    for name, setting in given.items():
        if setting.origin not in (Origin.FLAG, Origin.FILE):
            continue
        is_flag = as_flags or setting.origin is Origin.FLAG
        parameter = accepted.parameter(name.replace("-", "_") if is_flag else name, flag=is_flag)
        if parameter is None or parameter.name in given:
            continue
        if parameter.name == name.rpartition(".")[2]:
            continue  # its own name, in a section or not
        is_opposite = name in (f"no_{parameter.name}", inverse(parameter.name))
        value = False if is_opposite and setting.value is True else setting.value
        found[parameter.name] = replace(setting, name=parameter.name, value=value)
    return {**given, **found} if found else given


def _parsed(run: Run) -> Mapping[str, Setting]:
    """What the parser of the run's own script is given.

    What the script sets itself may come later: whether the parser sees it is not known.
    """
    found: dict[str, Setting] = {}
    for setting in (*run.settings.values(), *run.overridden):
        if setting.origin in (Origin.FLAG, Origin.FILE, Origin.DEFAULT):
            found.setdefault(setting.name, setting)
    for name, setting in run.settings.items():
        unseen = Unknown(f"the script sets {name}")
        found.setdefault(name, replace(setting, value=unseen))
    return found


def positions(call: Call) -> tuple[str, ...]:
    """Names of the first positional arguments of a call that are known."""
    return ("model",) if call.name.startswith("vllm.") else positions_of_torch(call)


def _is_open(call: Call, accepted: Accepted) -> bool:
    """Whether a call may be given more than what is known by name."""
    named = len(positions(call))
    if "output_dir" in accepted.parameters:
        named = 1  # the first that a trainer's take
    return call.is_open or len(call.positional) > named


def _given(run: Run, settings: Iterable[Setting]) -> Iterator[Written]:
    """Settings that stand in a file or command, in the words that stand there."""
    words = {word.location: word for word in run.command.words} if run.command else {}
    for setting in settings:
        place = setting.location
        if place is None or "." in setting.name:
            continue
        if setting.origin is Origin.FILE:
            yield Written(setting, place, setting.name)
        elif setting.origin is Origin.FLAG:
            word = words.get(place)
            raw = word.text.partition("=")[0] if word is not None else ""
            if raw.lstrip("-").replace("-", "_") == setting.name and not raw.startswith("---"):
                yield Written(setting, place, raw)


def _as_flags(given: Iterable[Written]) -> Iterator[Written]:
    """Keys of a file that become flags: a dash is as good as an underscore."""
    for one in given:
        name = one.name.replace("-", "_")
        yield one if name == one.name else replace(one, setting=replace(one.setting, name=name))


def _in_place(run: Run, given: Iterable[Written]) -> Iterator[Written]:
    """Without what stands in another file than the run's own configuration."""
    document = run.place.document
    for written in given:
        if not written.is_key or (document is not None and written.location.path == document.path):
            yield written


def _of_call(call: Call) -> Iterator[Written]:
    for name, argument in call.keywords.items():
        yield _argument(call, name, argument)


def _argument(call: Call, name: str, argument: Argument) -> Written:
    place = argument.location
    # What a dict brings may stand in another file: the call is where it is refused.
    here = place.path == call.location.path
    editable = here and argument.value_location is not None and 0 < len(argument.text) < 200
    setting = Setting(
        name,
        argument.value,
        place if here else call.location,
        Origin.CONSTRUCTOR,
        text=argument.text if editable else "",
        value_location=argument.value_location if editable else None,
    )
    return Written(setting, place if here else call.location, name if here else "")


def _of_positions(call: Call) -> Iterator[Written]:
    """The positional arguments whose names are known."""
    for name, argument in zip(positions(call), call.positional):
        yield _argument(call, name, argument)


_CLOSE = 0.5
"""How much a name must agree with an unknown one to be worth a look (difflib's ratio)."""


def alike(name: str, names: Iterable[str], most: int) -> list[str]:
    """The names most like one that is not known, those that share a word with it first."""
    words = _words(name)
    near = difflib.get_close_matches(name, list(names), 4 * most, _CLOSE)
    return sorted(near, key=lambda one: not words & _words(one))[:most]


_FILLERS = frozenset("no use enable disable is the of to per size num".split())  # noqa: SIM905


def _words(name: str) -> frozenset[str]:
    return frozenset(name.strip("-").replace("-", "_").split("_")) - _FILLERS


def value_text(value: Any) -> str:
    """A value as a message names it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def renaming(written: Written, ours: Mapping[str, Any]) -> Optional[Change]:
    """The change that sets ``ours`` in the place of ``written``."""
    if len(ours) != 1:
        return None
    (name, value), old = next(iter(ours.items())), written.setting
    typed = written.typed(name)
    edits = [_renamed(written, typed)] if written.raw else []
    language = written.language
    same = value is old.value or (known(value) and known(old.value) and value == old.value)
    shown = old.text if same and not _is_quoted(written) else _spelled(language, value)
    text = written.spelled(typed, shown).rstrip()
    if not same:
        if old.value_location is None or not old.text:
            return Change(language, text)
        edits.append(Edit(old.value_location, old.text, shown))
    if not edits or (written.is_key and not written.location.path.endswith(_EDITED)):
        return Change(language, text)
    return Change(language, text, tuple(edits))


def dropping(written: Written, command: Optional[Command]) -> Optional[Change]:
    """The change that takes a flag with its value out of ``command``; the last one stays."""
    words = command.words if command is not None else ()
    places = [word.location for word in words]
    if not written.is_flag or written.location not in places:
        return None
    first = places.index(written.location)
    ends = (i for i in range(first + 1, len(words)) if words[i].text.startswith("--"))
    follower = next(ends, None)
    value, text = written.setting.value_location, written.setting.text
    stated = f"{written.raw} {text}" if value is not None and text else written.raw
    shown = Change("diff", f"- {stated}")
    if follower is None or follower - first > 2 or words[first].text != written.raw:
        return shown
    after, here = places[follower], written.location
    if after.line == here.line:
        gap = " "
    elif after.line == here.line + 1:
        gap = " \\\n" + " " * (after.column - 1)
    else:
        return shown
    return Change("diff", shown.text, (Edit(here, stated + gap, ""),))


def _is_quoted(written: Written) -> bool:
    """Whether the value stands in quotes that its text does not have."""
    return written.is_key and written.language == "json"


def _renamed(written: Written, name: str) -> Edit:
    if written.is_key and written.language == "json":
        return Edit(written.location, f'"{written.raw}"', f'"{name}"')
    return Edit(written.location, written.raw, name)


def _spelled(language: str, value: Any) -> str:
    if language == "json" and known(value):
        return json.dumps(value)
    if language == "python":
        return f'"{value}"' if isinstance(value, str) else repr(value)
    return value_text(value)
