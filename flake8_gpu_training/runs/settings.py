"""Reads command arguments as typed settings, and ranks settings by who set them."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from flake8_gpu_training.facts import (
    EMPTY,
    Document,
    Location,
    Origin,
    Setting,
    Unknown,
    Word,
    known,
)
from flake8_gpu_training.runs.alternatives import agreed, alternatives, may_be_several

_INTEGER = re.compile(r"[+-]?\d+")
_FLOAT = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?")
_NEGATIVE = re.compile(r"-\.?\d")
# An unquoted variable that holds more arguments rather than one value.
_MORE_ARGUMENTS = re.compile(
    r"[@*]|(?i:EXTRA|(?:ARG|ARGUMENT|OPT|OPTION|FLAG|PARAM|PARAMETER)S?(?![A-Z]))"
)
_KEY_VALUE = re.compile(r"\+{0,2}[A-Za-z_][\w./@-]*=")


@dataclass(frozen=True)
class Arguments:
    """What the arguments of one command say.

    ``positional``: words that no flag took. ``is_open``: some word is unknown, so further
    flags may follow at run time. ``overridden``: a flag's earlier uses; the last one wins.
    """

    settings: Mapping[str, Setting] = field(default_factory=lambda: EMPTY)
    positional: tuple[Word, ...] = ()
    overridden: tuple[Setting, ...] = ()
    is_open: bool = False


def parse_arguments(
    words: Sequence[Word],
    *,
    switches: frozenset[str] = frozenset(),
    single: bool = False,
    key_value: bool = False,
) -> Arguments:
    """Settings that ``words`` (after the script or subcommand) give.

    ``switches`` (underscored names) never take a value; with ``single`` a flag takes one
    value at most, so that what follows is positional. ``key_value`` also reads
    ``name=value`` words, as Hydra and LlamaFactory have them.
    """
    read = [
        _ArgumentReader(line, switches, single, key_value).read()
        for line in alternatives(words) or (words,)
    ]
    return whichever(read)


def whichever(read: Sequence[Arguments]) -> Arguments:
    """What holds whichever of several command lines it is."""
    if len(read) == 1:
        return read[0]
    positional = {tuple(word.text for word in arguments.positional) for arguments in read}
    return Arguments(
        agreed([arguments.settings for arguments in read]),
        read[0].positional if len(positional) == 1 else (),
        is_open=len(positional) > 1 or any(arguments.is_open for arguments in read),
    )


class _ArgumentReader:
    def __init__(
        self, words: Sequence[Word], switches: frozenset[str], single: bool, key_value: bool
    ) -> None:
        self.words = words
        self.switches = switches
        self.single = single
        self.key_value = key_value
        self.found: dict[str, Setting] = {}
        self.positional: list[Word] = []
        self.overridden: list[Setting] = []
        self.is_open = False

    def read(self) -> Arguments:
        at = 0
        while at < len(self.words):
            at = self._one(at)
        return Arguments(self.found, tuple(self.positional), tuple(self.overridden), self.is_open)

    def _one(self, at: int) -> int:
        word = self.words[at]
        text = word.text
        if is_flag(text):
            return self._flag(at)
        if self.key_value and _KEY_VALUE.match(text):
            name, _, _ = text.partition("=")
            self._put(name.lstrip("+"), [_after_equals(word)], word)
        elif not known(word.value) and not is_one_word(word) and not _is_one_value(word):
            self.is_open = True
        else:
            self.positional.append(word)
        return at + 1

    def _flag(self, at: int) -> int:
        word = self.words[at]
        name, equals, _ = word.text.partition("=")
        if "$" in name or "`" in name:
            self.is_open = True
            return at + 1
        name = option_name(name)
        if equals:
            self._put(name, [_after_equals(word)], word)
            return at + 1
        end = at + 1
        limit = 0 if name in self.switches else 1 if self.single else len(self.words)
        while end < len(self.words) and end - at - 1 < limit:
            following = self.words[end]
            if is_flag(following.text) or self._is_rest(following, end - at - 1):
                break
            end += 1
        self._put(name, list(self.words[at + 1 : end]), word)
        return end

    def _is_rest(self, word: Word, taken: int) -> bool:
        """Whether an unknown or ``key=value`` word is no further value of a flag."""
        if self.key_value and _KEY_VALUE.match(word.text):
            return True
        if known(word.value) or is_one_word(word):
            return False
        return taken > 0 or (holds_arguments(word) and not is_value(word))

    def _put(self, name: str, values: list[Word], flag: Word) -> None:
        setting = _setting(name, values, flag)
        earlier = self.found.get(name)
        if earlier is not None:
            self.overridden.append(earlier)
        self.found[name] = setting


_TO_REPLACE = re.compile(
    r"<(?:[\w.-]+ )*(?:options?|args?|arguments?|flags?|param(?:eter)?s?)>|\[[\w .-]+\]",
    re.IGNORECASE,
)
"""What stands for more of the command line in an example."""


def is_value(word: Word) -> bool:
    """Whether each text that an unknown word may be begins with a value."""
    texts = word.value.candidates
    return bool(texts) and all(str(text)[:1].strip("- ") for text in texts)


def _is_one_value(word: Word) -> bool:
    """Whether an unknown word is one value, whichever of its texts it is."""
    return is_value(word) and not may_be_several(word)


def is_flag(text: str) -> bool:
    """Whether a word is ``--flag`` or ``-f`` (and not a negative number)."""
    return len(text) > 1 and text[0] == "-" and not _NEGATIVE.match(text) and text != "--"


def option_name(flag: str) -> str:
    """``--per-device-batch`` as ``per_device_batch``."""
    return flag.lstrip("-").replace("-", "_")


def holds_arguments(word: Word) -> bool:
    """Whether an unknown word reads as a list of arguments (``$EXTRA_ARGS``, ``"$@"``)."""
    return not known(word.value) and _MORE_ARGUMENTS.search(word.raw) is not None


_ARITHMETIC = re.compile(r"\$\(\([^()]*(?:\([^()]*\)[^()]*)*\)\)")
"""``$(( $i / 2 * 2 ))``: a number, whose signs are no patterns of file names."""


def is_one_word(word: Word) -> bool:
    """Whether an unknown word is one value (``"$MODEL"``, ``$DIR/x``), not ``$ARGS``."""
    raw = _ARITHMETIC.sub("0", word.raw)
    if "@" in raw or "*" in raw or _TO_REPLACE.fullmatch(raw):
        return False
    if raw.startswith(('"', "'")):
        return True
    return not re.fullmatch(r"\$\{?\w+(?:\[[^\]]*\])?\}?|\$\(.*\)|`.*`", raw, re.DOTALL)


def _after_equals(word: Word) -> Word:
    """The value part of ``--name=value``, with its place when it stands there literally."""
    value: Any = word.value
    if isinstance(value, str):
        value = value.partition("=")[2]
    elif isinstance(value, Unknown) and value.candidates:
        values = tuple(str(candidate).partition("=")[2] for candidate in value.candidates)
        value = dataclasses.replace(value, candidates=values)
    raw = word.raw.partition("=")[2]
    lead = word.raw.find("=") + 1 if "=" in word.raw else 0
    place = dataclasses.replace(word.location, column=word.location.column + lead)
    return Word(value, place, raw)


def _setting(name: str, values: list[Word], flag: Word) -> Setting:
    if not values:
        return Setting(name, True, flag.location, Origin.FLAG)
    if len(values) > 1:
        return Setting(name, [_value_of(word) for word in values], flag.location, Origin.FLAG)
    word = values[0]
    literal = isinstance(word.value, str) and _is_literal(word.raw, word.value)
    return Setting(
        name,
        _value_of(word),
        flag.location,
        Origin.FLAG,
        text=(word.raw or word.value) if literal else "",
        value_location=word.location if literal else None,
    )


def flag_setting(name: str, value: Any, flag: Optional[Word], values: Sequence[Word]) -> Setting:
    """What a flag gives, its value being known by its own rules; ``values`` are its words."""
    place = flag.location if flag is not None else None
    if len(values) != 1 or flag is None:
        return Setting(name, value, place, Origin.FLAG)
    word = _after_equals(flag) if values[0] is flag and is_flag(flag.text) else values[0]
    made = _setting(name, [word], flag)
    return dataclasses.replace(made, value=value)


def _is_literal(raw: str, value: str) -> bool:
    """Whether the word's text holds its value as such: nothing was expanded in it."""
    return raw in ("", value) or (raw[:1] in "'\"" and raw[1:-1] == value)


def _value_of(word: Word) -> Any:
    if not isinstance(word.value, str):
        found = word.value.candidates if isinstance(word.value, Unknown) else ()
        candidates = tuple(typed(c) if isinstance(c, str) else c for c in found)
        return Unknown(word.raw or "unknown word", candidates)
    return typed(word.value)


def typed(text: str) -> Any:
    """A command-line value as the number, truth value or JSON it spells, else the text."""
    if _INTEGER.fullmatch(text) and len(text) < 20:
        return int(text)
    if _FLOAT.fullmatch(text) and len(text) < 40:
        return float(text)
    if text in ("true", "True", "TRUE"):
        return True
    if text in ("false", "False", "FALSE"):
        return False
    if text[:1] in "{[" and text[-1:] in "}]":
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def document_settings(document: Document) -> dict[str, Setting]:
    """Settings of a configuration document: top-level keys as parameters.

    A mapping is one setting with a dict as value, and its leaves are settings with dotted
    names too.
    """
    found: dict[str, Setting] = {}
    for key, entry in document.root.mapping.items():
        node = entry.node
        value = node.plain()
        text = node.text if node.kind == "scalar" else ""
        place = node.content or (node.location if text else None)
        found[key] = Setting(
            key,
            value,
            entry.location,
            Origin.FILE,
            text=text,
            value_location=place if text else None,
        )
        if node.kind == "mapping":
            found.update(_leaves(f"{key}.", node.mapping))
    return found


def _leaves(prefix: str, mapping: Mapping[str, Any]) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    stack = [(prefix, mapping)]
    while stack:
        lead, entries = stack.pop()
        for key, entry in entries.items():
            node = entry.node
            if node.kind == "mapping":
                stack.append((f"{lead}{key}.", node.mapping))
                continue
            name = f"{lead}{key}"
            text = node.text if node.kind == "scalar" else ""
            place = (node.content or node.location) if text else None
            found[name] = Setting(
                name,
                node.plain(),
                entry.location,
                Origin.FILE,
                text=text,
                value_location=place,
            )
    return found


@dataclass(frozen=True)
class Ranked:
    """Settings by name, strongest origin winning, and those they override."""

    settings: Mapping[str, Setting]
    overridden: tuple[Setting, ...] = ()


def rank(layers: Iterable[Mapping[str, Setting]], overridden: Sequence[Setting] = ()) -> Ranked:
    """Merge ``layers``, strongest first. A default that is overridden is no conflict."""
    found: dict[str, Setting] = {}
    weaker = list(overridden)
    for layer in layers:
        for name, setting in layer.items():
            if name in found:
                if setting.origin is not Origin.DEFAULT:
                    weaker.append(setting)
            else:
                found[name] = setting
    return Ranked(found, tuple(weaker))


def renamed(setting: Setting, name: str) -> Setting:
    """The same setting under another name."""
    return setting if setting.name == name else dataclasses.replace(setting, name=name)


def integer(setting: Optional[Setting]) -> Optional[int]:
    """A setting's value as a positive int, or None."""
    value = setting.value if setting is not None else None
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    text = str(value).strip()
    return int(text) if text.isdigit() and len(text) < 7 else None


def at(location: Optional[Location], name: str, value: Any, note: str = "") -> Setting:
    """A derived setting: what a launcher or the environment amounts to."""
    return Setting(name, value, location, Origin.DERIVED, note)
