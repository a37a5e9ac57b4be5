"""Parses a command's words as the program's own ``argparse`` parser would."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional

from flake8_gpu_training.facts import Location, Origin, Setting, Unknown
from flake8_gpu_training.runs._followed import External, Given, Placed, Table, bare
from flake8_gpu_training.runs._followed_configs import PAIR
from flake8_gpu_training.runs.settings import is_flag, typed

if TYPE_CHECKING:
    from flake8_gpu_training.runs.following import Follower

_BARE = ("store_true", "store_false", "store_const", "count", "append_const", "help", "version")
_REST = ("...", "A...")


@dataclass(frozen=True)
class Declared:
    """An ``add_argument``: its flags (none when it goes by its place), and what it takes."""

    dest: str
    flags: tuple[str, ...]
    nargs: Any = None
    action: str = ""
    is_text: bool = False


@dataclass
class Parsing:
    """Words by the argument that takes them; ``rest``: what nothing takes."""

    taken: dict[str, list[str]] = field(default_factory=dict)
    rest: list[str] = field(default_factory=list)


def declared(given: Given) -> Optional[Declared]:
    """The argument that a call of ``add_argument`` declares."""
    names = [bare(item) for item in given.positional]
    if not names or not all(isinstance(name, str) for name in names) or given.is_open:
        return None
    flags = tuple(name for name in names if name.startswith("-"))
    longest = next((name for name in names if name.startswith("--")), names[0])
    dest = bare(given.keywords.get("dest"))
    if not isinstance(dest, str):
        dest = longest.lstrip("-").replace("-", "_") if flags else names[0]
    action, nargs = given.keywords.get("action"), bare(given.keywords.get("nargs"))
    if nargs == External("argparse.REMAINDER"):
        nargs = "..."
    kind = given.keywords.get("type")
    name = action.name.rpartition(".")[2] if isinstance(action, External) else bare(action)
    return Declared(dest, flags, nargs, str(name or ""), kind == External("str"))


def parsed(words: Sequence[str], options: Sequence[Declared]) -> Optional[Parsing]:
    """``words`` as ``argparse`` gives them to ``options``; None when that is not known."""
    if any(isinstance(option.nargs, Unknown) for option in options):
        return None
    by_flag = {flag: option for option in options for flag in option.flags}
    places = [option for option in options if not option.flags]
    made = Parsing()
    loose: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        taker = next((o for o in places[len(loose) :] if o.nargs in _REST), None)
        if not is_flag(word):
            if taker is not None and len(loose) >= places.index(taker):
                made.taken[taker.dest] = list(words[at - 1 :])
                break
            loose.append(word)
            continue
        name, equals, value = word.partition("=")
        option = by_flag.get(name) or _abbreviated(name, by_flag)
        if option is None:
            made.rest.append(word)
        elif equals:
            made.taken[option.dest] = [value]
        else:
            count = _count(option, words[at:])
            made.taken[option.dest] = list(words[at : at + count])
            at += count
    _place(loose, [o for o in places if o.dest not in made.taken], made)
    return made


def _abbreviated(name: str, by_flag: Mapping[str, Declared]) -> Optional[Declared]:
    if not name.startswith("--"):
        return None
    meant = {option.dest: option for flag, option in by_flag.items() if flag.startswith(name)}
    return next(iter(meant.values())) if len(meant) == 1 else None


def _count(option: Declared, following: Sequence[str]) -> int:
    """How many of the following words an option takes."""
    if option.action in _BARE or "Boolean" in option.action or option.nargs == 0:
        return 0
    if option.nargs in _REST:
        return len(following)
    free = next((n for n, word in enumerate(following) if is_flag(word)), len(following))
    if option.nargs in ("*", "+"):
        return free
    most = option.nargs if isinstance(option.nargs, int) else 1
    return min(free, most)


def _place(loose: list[str], places: Sequence[Declared], made: Parsing) -> None:
    """Give words without a flag to the arguments that go by their place."""
    for index, option in enumerate(places):
        later = sum(1 for item in places[index + 1 :] if item.nargs not in ("?", "*"))
        count = option.nargs if isinstance(option.nargs, int) else 1
        if option.nargs in ("*", "+", *_REST):
            count = max(0, len(loose) - later)
        made.taken.update({option.dest: loose[:count]} if loose[:count] else {})
        del loose[:count]
    made.rest += loose


def options(follower: Follower) -> Table:
    """What the command line is parsed to; ``set_defaults`` over the options' own defaults."""
    world = follower.world
    made = Table(is_open=world.is_open)
    by_name = {option.dest: option for option in follower.declared}
    parsing = None if world.is_open else parsed(world.words, follower.declared)
    for name, setting in world.options.items():
        value: Any = Placed(setting.value, setting)
        if isinstance(setting.value, Unknown):
            value = setting.value
        if setting.origin is Origin.DEFAULT and name in follower.option_defaults:
            value = follower.option_defaults[name]
        made.put(name, value)
    for name, value in follower.option_defaults.items():
        if name not in made.entries:
            made.put(name, value)
    for option in follower.declared if parsing is not None else ():
        if not option.flags and option.nargs in ("*", *_REST):
            made.put(option.dest, [])
    for name, words in parsing.taken.items() if parsing is not None else ():
        option = by_name[name]
        if option.action not in _BARE and "Boolean" not in option.action:
            made.put(name, _value(option, words, world.places))
    return made


def _value(option: Declared, words: list[str], places: Mapping[str, Location]) -> Any:
    if option.action == "DictAction":
        return _pairs(words, places)
    values = [_placed(w, w if option.is_text else typed(w), places) for w in words]
    several = option.nargs in ("*", "+", *_REST) or isinstance(option.nargs, int)
    return values if several else values[0] if values else None


def _pairs(words: Sequence[str], places: Mapping[str, Location]) -> Table:
    """``KEY=VALUE`` words, as mmengine's ``DictAction`` has them."""
    made = Table()
    for word in words:
        key, _, text = word.partition("=")
        value: Any = [typed(v) for v in text.split(",")] if _is_list(text) else typed(text)
        made.put(key, _placed(word, value, places))
    return made


def _placed(word: str, value: Any, places: Mapping[str, Location]) -> Placed:
    return Placed(value, Setting("", value, places.get(word), Origin.FLAG))


def _is_list(value: str) -> bool:
    return "," in value and not re.search(r"[()\[\]]", value)


def remaining(follower: Follower) -> Any:
    """The words that ``parse_known_args`` leaves over."""
    world = follower.world
    if world.is_open:
        return Unknown("unread arguments of the command")
    made = parsed(world.words, follower.declared)
    if made is None:
        return Unknown("unread arguments of the command")
    return made.rest if follower.declared else [w for w in world.words if PAIR.fullmatch(w)]


def note_defaults(follower: Follower, given: Given) -> None:
    """``parser.set_defaults(**cfg)``."""
    if given.is_open:
        follower.option_defaults.clear()
    follower.option_defaults.update(given.keywords)
