"""Seeded mutations of valid configurations.

What a parameter is called and what it takes is asked of the real parsers, not of our tables.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional

from real_parsers import habits
from real_parsers.bases import BASES, configuration
from real_parsers.configurations import Configuration, Item, Raw


@dataclass(frozen=True)
class Catalogue:
    """``own``: each command's parameters as its parser declares them; ``others``: names that
    only other frameworks have; ``former``: names that only older releases have."""

    own: Mapping[str, Sequence[Mapping[str, Any]]]
    others: Sequence[str]
    former: Sequence[str]

    def names(self, command: str) -> frozenset[str]:
        """The names that a command has."""
        return frozenset(one["name"] for one in self.own[command])

    def switches(self, command: str) -> frozenset[str]:
        """The flags that may stand without a value."""
        return frozenset(one["name"] for one in self.own[command] if one["bare"])


Change = Callable[[Configuration, Catalogue, random.Random], Optional[Configuration]]


def configurations(
    framework: str, catalogue: Catalogue, number: int, seed: int
) -> Sequence[Configuration]:
    """``number`` different configurations, a share of them without a mistake."""
    found: list[Configuration] = []
    seen: set[tuple[str, str, str]] = set()
    changes, weights = zip(*_CHANGES)
    for index in itertools.count():
        if len(found) == number:
            break
        source = random.Random(f"{framework} {seed} {index}")
        use = source.choice(BASES[framework])
        base = configuration(use, catalogue.switches(use.command), source)
        change: Change = source.choices(changes, weights)[0]
        one = change(base, catalogue, source)
        if one is None or (key := (one.command, one.form, one.shown())) in seen:
            continue
        seen.add(key)
        found.append(one)
    return found


# --- helpers --------------------------------------------------------------------------


def _with(one: Configuration, kind: str, settings: Mapping[str, Any]) -> Configuration:
    """With settings in the place of those of the same name, or in front."""
    kept = tuple(item for item in one.items if item.name not in settings)
    items = tuple(Item(name, value) for name, value in settings.items())
    return replace(one, items=(*items, *kept), kind=kind, touched=tuple(settings))


def _parameter(
    one: Configuration, catalogue: Catalogue, source: random.Random, *types: str
) -> Optional[Mapping[str, Any]]:
    """A parameter of one of the types: as often one that is set as any that there is."""
    fitting = [p for p in catalogue.own[one.command] if p["type"] in types and not p["many"]]
    set_here = [p for p in fitting if p["name"] in one.names]
    pool = set_here if set_here and source.random() < 0.5 else fitting
    return source.choice(pool) if pool else None


def _plausible(parameter: Mapping[str, Any], source: random.Random) -> Any:
    """A value that a parameter may well take."""
    if parameter["choices"]:
        return source.choice(parameter["choices"])
    default = parameter["default"]
    if parameter["type"] == "bool":
        return source.choice((True, False))
    if isinstance(default, float) or parameter["type"] == "float":
        return source.choice((default, 0.1, 0.5, 1.0)) if default is not None else 0.5
    if parameter["type"] == "int":
        return source.choice((default, 1, 2, 8)) if default is not None else 8
    return default


# --- mutations ------------------------------------------------------------------------


def _nothing(
    one: Configuration, catalogue: Catalogue, source: random.Random
) -> Optional[Configuration]:
    return one


def _more_parameters(
    one: Configuration, catalogue: Catalogue, source: random.Random
) -> Optional[Configuration]:
    """Further parameters of the command, with values of their types."""
    chosen = source.sample(list(catalogue.own[one.command]), source.randint(1, 4))
    more = {p["name"]: value for p in chosen if (value := _plausible(p, source)) is not None}
    more = {name: value for name, value in more.items() if not name.startswith("no_")}
    return _with(one, "more parameters", more) if more else None


def _misspelt(
    one: Configuration, catalogue: Catalogue, source: random.Random
) -> Optional[Configuration]:
    """A letter too many, too few or in the wrong place, or another separator."""
    index = source.randrange(len(one.items))
    item = one.items[index]
    if source.random() < 0.5:
        parameter = source.choice(list(catalogue.own[one.command]))
        value = _plausible(parameter, source)
        if value is None:
            return None
        item, index = Item(parameter["name"], value), -1
    name = source.choice(_SLIPS)(item.name, source)
    if not name or name == item.name or (one.form == "keywords" and not name.isidentifier()):
        return None
    wrong = replace(item, name=name)
    rest = tuple(i for n, i in enumerate(one.items) if n != index and i.name != item.name)
    return replace(one, items=(*rest, wrong), kind="misspelt", touched=(name,))


def _swapped(name: str, source: random.Random) -> str:
    at = source.randrange(len(name) - 1)
    return name[:at] + name[at + 1] + name[at] + name[at + 2 :]


def _dropped(name: str, source: random.Random) -> str:
    at = source.randrange(len(name))
    return name[:at] + name[at + 1 :]


def _doubled(name: str, source: random.Random) -> str:
    at = source.randrange(len(name))
    return name[: at + 1] + name[at:]


def _plural(name: str, source: random.Random) -> str:
    return name.removesuffix("s") if name.endswith("s") else f"{name}s"


def _unjoined(name: str, source: random.Random) -> str:
    return name.replace("_", "", 1) if "_" in name else ""


def _dashed(name: str, source: random.Random) -> str:
    return name.replace("_", "-")


def _shouted(name: str, source: random.Random) -> str:
    return name.title() if source.random() < 0.3 else ""


def _begun(name: str, source: random.Random) -> str:
    """Without its last word: a flag's beginning may be enough."""
    return name.rpartition("_")[0]


_SLIPS: Sequence[Callable[[str, random.Random], str]] = (
    _swapped,
    _dropped,
    _dropped,
    _doubled,
    _plural,
    _unjoined,
    _dashed,
    _shouted,
    _begun,
)


def _foreign(
    one: Configuration, catalogue: Catalogue, source: random.Random
) -> Optional[Configuration]:
    own = catalogue.names(one.command)
    if source.random() < 0.6:
        names = {n: v for n, v in habits.FOREIGN[one.framework].items() if n not in own}
        name = source.choice(list(names))
        return _with(one, "another framework's name", {name: names[name]})
    name = source.choice([n for n in catalogue.others if n not in own])
    return _with(one, "another framework's name", {name: source.choice((1, True, "auto"))})


def _former(
    one: Configuration, catalogue: Catalogue, source: random.Random
) -> Optional[Configuration]:
    former = habits.FORMER[one.framework]
    if source.random() < 0.6 or not catalogue.former:
        name = source.choice(list(former))
        return _with(one, "an older release's name", {name: former[name]})
    name = source.choice(list(catalogue.former))
    return _with(one, "an older release's name", {name: source.choice((1, True, "auto"))})


def _wrong_type(
    one: Configuration, catalogue: Catalogue, source: random.Random
) -> Optional[Configuration]:
    parameter = _parameter(one, catalogue, source, "int", "float", "bool", "str")
    if parameter is None or (parameter["type"] == "str" and source.random() < 0.7):
        return None
    value = source.choice(habits.WRONG_VALUES[parameter["type"]])
    return _with(one, "wrong type", {parameter["name"]: value})


def _wrong_choice(
    one: Configuration, catalogue: Catalogue, source: random.Random
) -> Optional[Configuration]:
    if source.random() < 0.5:
        words = habits.CHOICES[one.framework]
        name = source.choice([n for n in words if n in catalogue.names(one.command)])
        return _with(one, "no choice", {name: source.choice(words[name])})
    closed = [p for p in catalogue.own[one.command] if p["choices"]]
    if not closed:
        return None
    parameter = source.choice(closed)
    word = str(source.choice(parameter["choices"]))
    value = source.choice(_SLIPS)(word, source) if len(word) > 2 else f"{word}x"
    return _with(one, "no choice", {parameter["name"]: value}) if value else None


def _together(
    one: Configuration, catalogue: Catalogue, source: random.Random
) -> Optional[Configuration]:
    settings = source.choice(list(habits.PAIRS[one.framework]))
    known = catalogue.names(one.command)
    if not all(name in known or source.random() < 0.1 for name in settings):
        return None
    return _with(one, "settings together", settings)


def _random_pair(
    one: Configuration, catalogue: Catalogue, source: random.Random
) -> Optional[Configuration]:
    """Two or three switches and choices of the command, whatever they are."""
    fitting = [p for p in catalogue.own[one.command] if p["type"] == "bool" or p["choices"]]
    chosen = source.sample(fitting, source.randint(2, 3))
    settings = {
        p["name"]: source.choice(p["choices"]) if p["choices"] else not p["default"]
        for p in chosen
        if not p["name"].startswith("no_")
    }
    return _with(one, "any switches", settings) if settings else None


def _missing(
    one: Configuration, catalogue: Catalogue, source: random.Random
) -> Optional[Configuration]:
    """Without one of the settings that the base begins with."""
    index = source.randrange(min(7, len(one.items)))
    items = tuple(item for n, item in enumerate(one.items) if n != index)
    return replace(one, items=items, kind="left out", touched=(one.items[index].name,))


def _out_of_range(
    one: Configuration, catalogue: Catalogue, source: random.Random
) -> Optional[Configuration]:
    parameter = _parameter(one, catalogue, source, "int", "float")
    if parameter is None:
        return None
    value = source.choice(habits.OUT_OF_RANGE[parameter["type"]])
    return _with(one, "out of range", {parameter["name"]: value})


def _twice(
    one: Configuration, catalogue: Catalogue, source: random.Random
) -> Optional[Configuration]:
    if one.form == "keywords":
        return None
    item = source.choice(one.items)
    parameter = next((p for p in catalogue.own[one.command] if p["name"] == item.name), None)
    value = _plausible(parameter, source) if parameter is not None else None
    again = Item(item.name, item.value if value is None else value)
    return replace(one, items=(*one.items, again), kind="given twice", touched=(item.name,))


def _shape(
    one: Configuration, catalogue: Catalogue, source: random.Random
) -> Optional[Configuration]:
    """A list or mapping for a value, a value that is missing, or a stray word."""
    parameter = _parameter(one, catalogue, source, "int", "float", "bool", "str")
    if parameter is None:
        return None
    name, plain = parameter["name"], _plausible(parameter, source)
    if one.form == "flags" and source.random() < 0.5:
        rest = tuple(item for item in one.items if item.name != name)
        bare = Item(name, None, is_bare=True)
        return replace(one, items=(bare, *rest), kind="shape", touched=(name,))
    value = source.choice(([plain, plain], {"value": plain}, None, "", Raw("[]")))
    return _with(one, "shape", {name: value})


_CHANGES: Sequence[tuple[Change, int]] = (
    (_nothing, 15),
    (_more_parameters, 13),
    (_misspelt, 10),
    (_foreign, 9),
    (_former, 7),
    (_wrong_type, 10),
    (_wrong_choice, 9),
    (_together, 16),
    (_random_pair, 5),
    (_missing, 4),
    (_out_of_range, 6),
    (_twice, 3),
    (_shape, 4),
)
