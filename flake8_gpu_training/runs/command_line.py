"""Parses a command line as the program's own ``argparse`` parser would."""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Optional

from flake8_gpu_training.facts import EMPTY, Location, Origin, Setting, Unknown, Word, known
from flake8_gpu_training.runs.alternatives import agreed, alternatives
from flake8_gpu_training.runs.model import RefusalKind, RefusedWord
from flake8_gpu_training.runs.settings import (
    Arguments,
    flag_setting,
    holds_arguments,
    is_one_word,
    is_value,
    typed,
    whichever,
)

MAX_WORDS = 2_000
MAX_POSITIONALS = 12
"""More positional arguments than this would make argparse's matching slow."""
_SWITCHES: Mapping[str, tuple[Any, Any]] = {
    # What an option without a value gives, and its default.
    "store_true": (True, False),
    "store_false": (False, True),
}
_UNREAD = Unknown("unread arguments of the command")
MUST_BE_GIVEN = Unknown("it must be given")
SUPPRESSED = argparse.SUPPRESS
"""The default of an option that is no attribute of the namespace unless it is given."""
_WITHOUT_VALUE = frozenset({"store_true", "store_false", "store_const", "append_const", "count"})
_EXITS = frozenset({"help", "version"})

Convert = Callable[[str], Any]
"""A type function: a text to its value, Unknown when that is not known.

Raises :class:`RefusedError` for a text that it refuses."""


class RefusedError(Exception):
    """The program's parser refuses the command line."""


@dataclass(frozen=True)
class Declared:
    """An option as the program declares it; ``default`` is ``...`` when it gives none."""

    flags: tuple[str, ...]
    dest: str
    location: Optional[Location] = None
    action: str = ""
    nargs: Any = None
    const: Any = None
    default: Any = ...
    convert: Optional[Convert] = None
    choices: Optional[tuple[Any, ...]] = None
    is_positional: bool = False
    required: bool = False

    @property
    def initial(self) -> Any:
        """The value before any argument is seen (a text default is not converted yet)."""
        if self.default is not ...:
            return self.default
        return _SWITCHES.get(self.action, (None, None))[1]


@dataclass(frozen=True)
class Commands:
    """Sub-commands of a parser: each has a parser of its own."""

    dest: str
    parsers: Mapping[str, ParserModel]


@dataclass(frozen=True)
class ParserModel:
    """A parser: its options, sub-commands and the defaults given apart from the options.

    ``is_whole``: it has no options that were not read, so that an abbreviation is unique.
    """

    options: tuple[Declared, ...] = ()
    commands: Optional[Commands] = None
    defaults: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    is_whole: bool = True
    prefixes: str = "-"
    abbreviates: bool = True
    hyphenated: bool = True
    """It has the help flag ``-h``."""


@dataclass(frozen=True)
class Outcome:
    """What a command line is parsed to.

    ``values``: each option by its name. ``given``: those that the command names, the last
    use of each. ``rest``: words that the parser does not know. ``refused``: why the program
    would stop, or empty.
    """

    values: Mapping[str, Setting] = field(default_factory=lambda: EMPTY)
    given: Mapping[str, Setting] = field(default_factory=lambda: EMPTY)
    overridden: tuple[Setting, ...] = ()
    positional: tuple[Word, ...] = ()
    """Words that stand behind no flag."""
    rest: tuple[Word, ...] = ()
    rests: tuple[tuple[Word, ...], ...] = ()
    """The same for each command line that it may be, where they differ."""
    is_open: bool = False
    refused: str = ""
    faults: tuple[RefusedWord, ...] = ()
    """What the user would have to mend of it; words that the parser does not know are in
    ``rest``, since a program may take them otherwise."""


def parse(model: ParserModel, words: Sequence[Word]) -> Outcome:
    """Parse ``words`` as the parser of a program would."""
    outcomes = [_Parse(model).run(line) for line in alternatives(words) or (words,)]
    fit = [outcome for outcome in outcomes if not outcome.refused] or outcomes[:1]
    return fit[0] if len(fit) == 1 else _agreed(fit)


def _agreed(outcomes: Sequence[Outcome]) -> Outcome:
    """What holds whichever of several command lines it is."""
    first = outcomes[0]
    taken = {tuple(word.text for word in outcome.positional) for outcome in outcomes}
    rests = {tuple(word.text for word in outcome.rest): outcome.rest for outcome in outcomes}
    return Outcome(
        agreed([outcome.values for outcome in outcomes]),
        agreed([outcome.given for outcome in outcomes]),
        positional=first.positional if len(taken) == 1 else (),
        rest=first.rest if len(rests) == 1 else (_OPEN,),
        rests=tuple(rests.values()) if len(rests) > 1 else (),
        is_open=len(taken) > 1 or any(outcome.is_open for outcome in outcomes),
    )


_OPEN = Word(Unknown("words that depend on a branch of the script"), Location(""), "$@", True)


class _Text(str):
    """An argument that keeps the word it stands in, also in its parts."""

    word: Word
    is_part: bool

    @classmethod
    def of(cls, text: str, word: Word, is_part: bool = False) -> _Text:
        made = cls(text)
        made.word = word
        made.is_part = is_part
        return made

    def __getitem__(self, key: Any) -> _Text:
        return _Text.of(str.__getitem__(self, key), self.word, True)

    def split(self, *given: Any, **named: Any) -> list[str]:
        return [_Text.of(part, self.word, True) for part in str.split(self, *given, **named)]

    def partition(self, separator: str) -> tuple[str, str, str]:
        left, middle, right = str.partition(self, separator)
        return _Text.of(left, self.word, True), middle, _Text.of(right, self.word, True)


@dataclass(frozen=True)
class _Use:
    """One use of an option on the command line; without an option: a parser is entered."""

    option: Optional[Declared]
    values: Any = None
    flag: str = ""
    entered: Optional[ParserModel] = None


_NO_VALUE = object()
_VALUELESS = re.compile(r"argument (?P<flags>-\S+): expected (?:one|at least one|\d+) argument")
_NEGATIVE = re.compile(r"-(?:\.?\d|inf)")
"""What newer releases of Python take for a number, not for a flag."""
_WANTED = re.compile(r"invalid (\w+) value")


class _Quiet(argparse.ArgumentParser):
    """argparse without its exits; every use of an option is noted, none is carried out."""

    uses: list[_Use]
    model: ParserModel

    def error(self, message: str) -> NoReturn:
        raise RefusedError(message)

    def exit(self, status: int = 0, message: Optional[str] = None) -> NoReturn:
        raise RefusedError(message or "it exits")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.uses.append(_Use(None, entered=self.model))
        return super().parse_known_args(args, namespace)


class _Note(argparse.Action):
    """Notes that an option is used."""

    def __init__(self, *, declared: Declared, uses: list[_Use], **given: Any) -> None:
        super().__init__(**given)
        self.declared = declared
        self.uses = uses

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        self.uses.append(_Use(self.declared, values, option_string or ""))


class _Parse:
    def __init__(self, model: ParserModel) -> None:
        self.model = model
        self.uses: list[_Use] = []
        self.texts: list[_Text] = []
        self.values: dict[str, Setting] = {}
        self.given: dict[str, Setting] = {}
        self.overridden: list[Setting] = []
        self.chosen: dict[str, _Text] = {}
        self.taken: list[Word] = []
        self.is_open = False
        self.refused = ""
        self.faults: list[RefusedWord] = []

    def run(self, words: Sequence[Word]) -> Outcome:
        self.texts = texts = self._texts(words)
        rest: list[str] = []
        try:
            parser = self._built(self.model, _Quiet)
            namespace, rest = parser.parse_known_args(texts)
            self.chosen = {k: v for k, v in vars(namespace).items() if isinstance(v, _Text)}
        except RefusedError as refusal:
            self.refused = str(refusal)
            self._note_valueless(str(refusal))
        except (argparse.ArgumentError, ValueError, TypeError, AttributeError, IndexError) as error:
            self.refused = f"the parser cannot be built: {error}"
        if not self.uses:
            self._enter(self.model)
        for use in self.uses:
            if use.entered is not None:
                self._enter(use.entered)
            elif use.option is not None:
                self._use(use.option, use)
        self._convert_defaults()
        for name, text in self.chosen.items():  # the sub-command
            setting = flag_setting(name, str(text), text.word, [text.word])
            self.values[name] = self.given[name] = setting
        left = tuple(text.word for text in rest if isinstance(text, _Text))
        return Outcome(
            self.values,
            self.given,
            tuple(self.overridden),
            tuple(self.taken),
            left,
            is_open=self.is_open,
            refused=self.refused,
            faults=(*self.faults, *self._missing()),
        )

    # --- faults ---

    def _note_valueless(self, message: str) -> None:
        """argparse tells in words which flag lacks its value."""
        found = _VALUELESS.match(message)
        if found is None:
            return
        flags = found["flags"].split("/")
        at = next((i for i, t in enumerate(self.texts) if str(t).partition("=")[0] in flags), None)
        word = self.texts[at].word if at is not None else None
        behind = str(self.texts[at + 1]) if at is not None and at + 1 < len(self.texts) else ""
        if word is not None and _NEGATIVE.match(behind) is None:
            text = word.text.partition("=")[0]
            self.faults.append(RefusedWord(RefusalKind.VALUELESS, text, word.location))

    def _missing(self) -> Iterator[RefusedWord]:
        """Options that must be given, and are not."""
        models = [use.entered for use in self.uses if use.entered is not None] or [self.model]
        for model in models:
            for option in model.options:
                taken = option.dest in self.given or option.dest in model.defaults
                if option.required and not option.is_positional and not taken:
                    yield RefusedWord(RefusalKind.MISSING, option.flags[0])

    # --- words ---

    def _texts(self, words: Sequence[Word]) -> list[_Text]:
        found: list[_Text] = []
        for word in words[:MAX_WORDS]:
            text = word.text
            if known(word.value) or (
                text.startswith("-") and "=" in text and "$" not in text.partition("=")[0]
            ):
                found.append(_Text.of(text, word))
            elif is_one_word(word) or self._takes_value(found, word):
                found.append(_Text.of(text if not text.startswith("-") else "\0", word))
            else:
                self.is_open = True
        return found

    def _takes_value(self, before: Sequence[_Text], word: Word) -> bool:
        """Whether an unknown word is the value of the flag before it."""
        if not before or (holds_arguments(word) and not is_value(word)):
            return False
        last = str(before[-1])
        if not last.startswith("-") or "=" in last:
            return False
        options = [option for option in self.model.options if last in option.flags]
        return not options or options[0].action not in _WITHOUT_VALUE

    # --- the parser ---

    def _built(self, model: ParserModel, kind: type[_Quiet]) -> _Quiet:
        prefixes = model.prefixes or "-"
        made = kind(
            add_help=False,
            prefix_chars=prefixes,
            allow_abbrev=model.abbreviates and model.is_whole,
            conflict_handler="resolve",
        )
        self._fill(made, model)
        return made

    def _fill(self, made: _Quiet, model: ParserModel) -> None:
        made.uses = self.uses
        made.model = model
        if model.hyphenated:
            lead = "-" if "-" in made.prefix_chars else made.prefix_chars[0]
            self._add(made, Declared((f"{lead}h", f"{lead * 2}help"), "help", action="help"))
        if sum(option.is_positional for option in model.options) > MAX_POSITIONALS:
            raise RefusedError("more positional arguments than are read")
        for option in model.options:
            self._add(made, option)
        if model.commands is not None:
            commands = model.commands
            dest = commands.dest or argparse.SUPPRESS
            inner = made.add_subparsers(parser_class=_Quiet, dest=dest)
            for name, one in commands.parsers.items():
                sub = inner.add_parser(
                    name,
                    add_help=False,
                    prefix_chars=one.prefixes or "-",
                    allow_abbrev=one.abbreviates and one.is_whole,
                    conflict_handler="resolve",
                )
                self._fill(sub, one)

    def _add(self, made: _Quiet, option: Declared) -> None:
        given: dict[str, Any] = {"default": argparse.SUPPRESS}
        flags = option.flags
        if option.action in _WITHOUT_VALUE | _EXITS or option.action == "BooleanOptionalAction":
            given["nargs"] = 0
            if option.action == "BooleanOptionalAction":
                flags = (*flags, *(f"--no-{f[2:]}" for f in flags if f.startswith("--")))
        else:
            if option.nargs is not None:
                given["nargs"] = option.nargs
            if option.nargs == "?":
                given["const"] = _NO_VALUE
        if not option.is_positional:
            given["dest"] = option.dest
        made.add_argument(*flags, action=_Note, declared=option, uses=self.uses, **given)

    # --- values ---

    def _enter(self, model: ParserModel) -> None:
        """The defaults of a parser that is entered."""
        origin = Origin.DEFAULT
        seen: set[str] = set()
        for option in model.options:
            if option.dest in seen or option.action in _EXITS or _is_suppressed(option):
                continue
            seen.add(option.dest)
            value = model.defaults.get(option.dest, option.initial)
            self.values[option.dest] = Setting(option.dest, value, option.location, origin)
        for name, value in model.defaults.items():
            if name not in seen:
                self.values[name] = Setting(name, value, None, origin)

    def _use(self, option: Declared, use: _Use) -> None:
        if option.action in _EXITS:
            self.refused = self.refused or f"{use.flag} prints and exits"
            return
        texts = use.values if isinstance(use.values, list) else [use.values]
        texts = [text for text in texts if isinstance(text, str)]
        words = [text.word for text in texts if isinstance(text, _Text)]
        flag = self._flag_word(option, use, words)
        self.taken += words if option.is_positional else []
        value = self._value(option, use, texts)
        before = self.values.get(option.dest)
        value = self._combined(option, before.value if before is not None else None, value)
        setting = flag_setting(option.dest, value, flag, words)
        earlier = self.given.get(option.dest)
        if earlier is not None and option.action in ("", "store"):
            self.overridden.append(earlier)
        self.values[option.dest] = self.given[option.dest] = setting

    def _flag_word(self, option: Declared, use: _Use, words: Sequence[Word]) -> Optional[Word]:
        """The word of the flag; the value's for a positional argument."""
        if isinstance(use.flag, _Text):
            return use.flag.word
        if option.is_positional:
            return words[0] if words else None
        flag = str(use.flag)
        for text in self.texts:
            name = str(text).partition("=")[0]
            short = len(flag) == 2 and name[:1] == flag[:1] != name[1:2] and flag[1] in name
            if short or (len(name) > 2 and flag.startswith(name)):
                return text.word
        return words[0] if words else None

    def _value(self, option: Declared, use: _Use, texts: Sequence[str]) -> Any:
        if option.action in _SWITCHES:
            return _SWITCHES[option.action][0]
        if option.action == "BooleanOptionalAction":
            return not str(use.flag).startswith("--no-")
        if option.action in ("store_const", "append_const") or use.values is _NO_VALUE:
            return option.const
        if option.action == "count":
            return 1
        if option.action == "DictAction":
            return _pairs(texts)
        if option.action == "unknown":
            return Unknown(f"what {use.flag} does")
        values = [self._converted(option, text) for text in texts]
        return values if isinstance(use.values, list) else values[0] if values else None

    def _converted(self, option: Declared, text: str) -> Any:
        word = text.word if isinstance(text, _Text) else None
        if word is not None and not known(word.value):
            candidates = word.value.candidates if isinstance(word.value, Unknown) else ()
            made = [self._typed(option, one) for one in candidates if isinstance(one, str)]
            return Unknown(str(text).strip("\0") or word.raw, tuple(v for v in made if known(v)))
        return self._typed(option, str(text))

    def _typed(self, option: Declared, text: str) -> Any:
        value: Any = text
        if option.convert is not None:
            try:
                value = option.convert(text)
            except RefusedError as refusal:
                self.refused = self.refused or str(refusal)
                self._note_value(RefusalKind.TYPE, option, text, str(refusal))
                return text
        if option.choices is not None and known(value) and value not in option.choices:
            self.refused = self.refused or f"invalid choice {text!r}"
            self._note_value(RefusalKind.CHOICE, option, text)
        return value

    def _note_value(self, kind: RefusalKind, option: Declared, text: str, reason: str = "") -> None:
        """A value that the option does not take, where it stands on the command line."""
        word = next(
            (one.word for one in self.texts if one == text or one.endswith(f"={text}")), None
        )
        if word is None or not all(map(known, option.choices or ())):
            return
        choices = tuple(map(str, option.choices or ())) if kind is RefusalKind.CHOICE else ()
        wanted = found[1] if (found := _WANTED.match(reason)) else ""
        self.faults.append(RefusedWord(kind, text, word.location, option.flags[0], choices, wanted))

    def _combined(self, option: Declared, before: Any, value: Any) -> Any:
        """The value together with what the option had, for actions that gather."""
        if option.action not in ("append", "append_const", "extend", "count"):
            return value
        if isinstance(before, Unknown):
            return Unknown(option.dest)
        if option.action == "count":
            return (before or 0) + 1
        gathered = list(before) if isinstance(before, (list, tuple)) else []
        return [*gathered, *value] if option.action == "extend" else [*gathered, value]

    def _convert_defaults(self) -> None:
        """A text default is converted as an argument would be."""
        options = {option.dest: option for option in reversed(self.model.options)}
        for use in self.uses:
            if use.entered is not None:
                options.update({o.dest: o for o in reversed(use.entered.options)})
        for name, setting in self.values.items():
            option = options.get(name)
            if option is None or setting.origin is not Origin.DEFAULT or name in self.given:
                continue
            if isinstance(setting.value, str) and option.convert is not None:
                value = self._typed(dataclasses.replace(option, choices=None), setting.value)
                self.values[name] = dataclasses.replace(setting, value=value)


def _pairs(texts: Sequence[str]) -> dict[str, Any]:
    """``KEY=VALUE`` words, as mmengine's ``DictAction`` has them."""
    found: dict[str, Any] = {}
    for text in texts:
        key, _, value = str(text).partition("=")
        is_list = "," in value and not any(bracket in value for bracket in "()[]")
        found[key] = [typed(part) for part in value.split(",")] if is_list else typed(value)
    return found


def _is_suppressed(option: Declared) -> bool:
    return isinstance(option.default, str) and option.default == SUPPRESSED


def parse_with(model: ParserModel, words: Sequence[Word], is_open: bool = False) -> Outcome:
    """The same; when further words may follow, an option that is not given may be anything."""
    outcome = parse(model, words)
    if not (outcome.is_open or is_open):
        return outcome
    values = {
        name: outcome.given.get(name) or dataclasses.replace(setting, value=_UNREAD)
        for name, setting in outcome.values.items()
    }
    return dataclasses.replace(outcome, values=values, is_open=True)


def combined(outcomes: Sequence[Outcome], loose: Callable[[Sequence[Word]], Arguments]) -> Outcome:
    """Parsers that parse in turn as one; ``loose`` reads what the last one does not know."""
    values: dict[str, Setting] = {}
    given: dict[str, Setting] = {}
    overridden: list[Setting] = []
    for outcome in outcomes:
        values.update(outcome.values)
        given.update(outcome.given)
        overridden += outcome.overridden
    last = outcomes[-1]
    rest = whichever([loose(words) for words in last.rests or (last.rest,)])
    taken = [word for outcome in outcomes for word in outcome.positional]
    positional = tuple(dict.fromkeys((*taken, *rest.positional)))
    return Outcome(
        {**rest.settings, **values},
        {**rest.settings, **given},
        (*overridden, *rest.overridden),
        positional,
        last.rest,
        last.rests,
        rest.is_open or any(outcome.is_open for outcome in outcomes),
        next((outcome.refused for outcome in outcomes if outcome.refused), ""),
        tuple(fault for outcome in outcomes for fault in outcome.faults),
    )
