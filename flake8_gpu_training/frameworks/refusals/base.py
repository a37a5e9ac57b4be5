"""A rule of a framework's own validation, and the options that it is asked about."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Optional

from flake8_gpu_training.facts import Location, Origin, Setting, known
from flake8_gpu_training.frameworks.accepted import Accepted
from flake8_gpu_training.frameworks.reading import parsed
from flake8_gpu_training.frameworks.tables import Parameter
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_TRUTHS: Mapping[str, bool] = {
    **dict.fromkeys(("yes", "true", "t", "y", "1"), True),
    **dict.fromkeys(("no", "false", "f", "n", "0"), False),
}
_LATER = frozenset({Origin.DERIVED})
"""Origins of values that are no arguments: validation does not see them."""
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")


class UndecidedError(Exception):
    """A rule asks for a value that is not known."""


@dataclass(frozen=True)
class Options:
    """What a program or constructor is given, over its defaults in the release at hand.

    ``own``: names whose defaults a class of the project may replace. ``is_open``: more may be
    given by a road that was not read, so what is not given is not known. ``filled``: what a
    program makes of values before it hands them on.
    """

    given: Mapping[str, Setting]
    accepted: Accepted
    run: Run
    own: frozenset[str] = frozenset()
    is_open: bool = False
    filled: Mapping[str, Callable[[Options], Any]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        """The value as the program has it after parsing; raises UndecidedError when not known."""
        if name in self.filled:
            return self.filled[name](replace(self, filled={}))
        setting = self.given.get(name)
        parameter = self.accepted.parameters.get(name)
        if setting is not None:
            if not known(setting.value) or setting.origin in _LATER:
                raise UndecidedError(name)
            if _is_reference(setting):
                return _member(setting, parameter)
            if setting.origin is Origin.CONSTRUCTOR:
                return setting.value
            return _as_parsed(setting.value, parameter)
        if self.is_open or name in self.own or parameter is None or not parameter.has_default:
            raise UndecidedError(name)
        return parameter.default

    def mapping(self, name: str) -> Mapping[str, Any]:
        """The entries of a parameter that takes a dict, or its JSON; {} when it is None."""
        inner = {
            key[len(name) + 1 :]: setting.value
            for key, setting in self.given.items()
            if key.startswith(f"{name}.")
        }
        value = inner or self[name]
        if isinstance(value, str) and value.lstrip().startswith("{"):
            value = json.loads(value)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise UndecidedError(name)  # the path of a file, an object
        return value

    def entry(self, name: str, key: str, default: Any = None) -> Any:
        """An entry of a parameter that takes a dict."""
        value = self.mapping(name).get(key, default)
        if not known(value):
            raise UndecidedError(f"{name}.{key}")
        return value

    def reference(self, name: str) -> str:
        """The dotted name of what a parameter is given in code; "" for any other value."""
        setting = self.given.get(name)
        is_named = setting is not None and known(setting.value) and _is_reference(setting)
        return str(setting.value) if setting is not None and is_named else ""

    @property
    def world_size(self) -> int:
        """Processes that the launcher starts; raises UndecidedError when that is not known."""
        world = self.run.launcher.world_size
        if world is None or self.run.single_file:
            raise UndecidedError("world_size")
        return world

    def is_given(self, name: str) -> bool:
        """Whether somebody sets ``name``; raises UndecidedError when that cannot be told."""
        if name in self.given:
            return True
        if self.is_open:
            raise UndecidedError(name)
        return False

    def takes(self, name: str) -> bool:
        """Whether the release at hand has the parameter."""
        return self.accepted.takes(name)


def _is_reference(setting: Setting) -> bool:
    """Whether a text of code stands for what it names (``torch.bfloat16``), not for itself."""
    if setting.origin is not Origin.CONSTRUCTOR or not isinstance(setting.value, str):
        return False
    is_literal = any(quote in setting.text for quote in "'\"")
    return not is_literal and _DOTTED.fullmatch(setting.value) is not None


def _member(setting: Setting, parameter: Any) -> Any:
    """The choice that a member of an Enum stands for."""
    name = str(setting.value).rpartition(".")[2].lower()
    choices = parameter.choices if isinstance(parameter, Parameter) else ()
    for choice in choices:
        if str(choice).lower() == name:
            return choice
    raise UndecidedError(setting.name)


def _as_parsed(value: Any, parameter: Any) -> Any:
    """A text as the parser turns it into the parameter's one type."""
    if not isinstance(parameter, Parameter):
        return value
    if parameter.types == ("bool",) and value in (0, 1):
        return bool(value)
    if not isinstance(value, str):
        return value
    if parameter.optional and value.lower() in ("none", "null"):
        return None
    if parameter.types == ("bool",):
        return _TRUTHS.get(value.lower(), value)
    for name, convert in (("int", int), ("float", float)):
        if parameter.types == (name,):
            try:
                return convert(value)
            except ValueError:
                raise UndecidedError(parameter.name) from None  # GPU008 tells it
    return value


def _nothing(options: Options) -> Mapping[str, Any]:
    return {}


def _nowhere(options: Options) -> Optional[Location]:
    return None


@dataclass(frozen=True)
class Refusal:
    """One case in which the validation of a program or constructor stops.

    ``settings``: whom it concerns, first the one that a user would change; the diagnostic
    stands at the first of them that is written, or ``at`` the place of what is no setting.
    ``holds`` is asked about the options as the parser leaves them; a value that it needs and
    that is not known raises UndecidedError, which leaves the rule silent. ``mend`` (an
    instruction) and ``why`` may name values in braces: options, or what ``figures`` computes.
    ``write``: the parameters that mend it, where there is one best way. ``raiser``: who
    raises, when it is not the constructor that takes the settings. ``stops``: when it stops, where
    that is only later than the arguments are read. ``groups``: groups of the
    table (``sft``, ``TrainingArguments``) that have the rule, all when empty. ``since``,
    ``until``: first and last release that has it, "" for those at the ends of the table.
    """

    name: str
    source: str
    settings: tuple[str, ...]
    holds: Callable[[Options], bool]
    mend: Text
    why: Text
    write: Callable[[Options], Mapping[str, Any]] = _nothing
    figures: Callable[[Options], Mapping[str, Any]] = _nothing
    at: Callable[[Options], Optional[Location]] = _nowhere
    raiser: str = ""
    stops: str = ""
    groups: tuple[str, ...] = ()
    since: str = ""
    until: str = ""

    def concerns(self, group: str, version: str) -> bool:
        """Whether a group has the rule in a release."""
        if self.groups and group not in self.groups:
            return False
        at_hand = parsed(version)
        return (not self.since or parsed(self.since) <= at_hand) and (
            not self.until or at_hand <= parsed(self.until)
        )

    def refuses(self, options: Options) -> bool:
        """Whether the program surely stops."""
        try:
            return self.holds(options)
        except (UndecidedError, TypeError, ValueError, AttributeError):
            return False  # not known, or of a type that other rules tell
