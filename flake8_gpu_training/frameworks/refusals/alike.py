"""Rules of one shape: a parameter that needs another, that excludes one, or has a range."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.language import Text


@dataclass(frozen=True)
class Asked:
    """What a rule asks of one parameter, which goes by the first of ``names`` that there is.

    ``written``: only of a value that somebody writes, since others may replace the default.
    """

    names: tuple[str, ...]
    test: Callable[[Any], bool]
    written: bool = False

    @property
    def spelled(self) -> str:
        """The parameter as a message names it."""
        return f"{{--{'|'.join(self.names)}}}"

    def holds(self, options: Options) -> bool:
        """Whether the release has the parameter with such a value; UndecidedError when open."""
        parameters = options.accepted.parameters
        name = next((parameters[one].name for one in self.names if one in parameters), "")
        if not name or (self.written and not options.is_given(name)):
            return False
        return self.test(options[name])


def on(*names: str) -> Asked:
    """A switch that is on."""
    return Asked(names, lambda value: value is True)


def off(*names: str) -> Asked:
    """A switch that is off, or a parameter that has no value."""
    return Asked(names, lambda value: not value)


def some(*names: str) -> Asked:
    """A parameter that has a value."""
    return Asked(names, lambda value: value is not None)


def one_of(name: str, *values: Any) -> Asked:
    """A written value that is one of these."""
    return Asked((name,), lambda value: value in values, written=True)


def none_of(name: str, *values: Any) -> Asked:
    """A written value that is none of these."""
    return Asked((name,), lambda value: value not in values, written=True)


def above(most: float, *names: str) -> Asked:
    """A number above the greatest."""
    return Asked(names, lambda value: value is not None and value > most)


def below(least: float, *names: str) -> Asked:
    """A number below the least."""
    return Asked(names, lambda value: value is not None and value < least)


def within(name: str, test: Callable[[Any], bool]) -> Asked:
    """A value out of a range that ``test`` tells."""
    return Asked((name,), lambda value: value is not None and not test(value))


def _listed(asked: tuple[Asked, ...]) -> Text:
    """Parameters as a sentence lists them."""
    names = list(dict.fromkeys(one.spelled for one in asked))
    head = ", ".join(names[:-1])
    return Text("、".join(names), f"{head} and {names[-1]}" if head else "".join(names))


def _need(asked: tuple[Asked, ...]) -> str:
    """The verb to a list of parameters."""
    return "need" if len({one.spelled for one in asked}) > 1 else "needs"


@dataclass(frozen=True)
class Alike:
    """Makes the rules of one source; ``asked``: what each of them asks besides."""

    source: str
    raiser: str
    since: str = ""
    asked: tuple[Asked, ...] = ()
    groups: tuple[str, ...] = ()

    def of(self, source: str, since: str = "") -> Alike:
        """The same for another source."""
        return replace(self, source=source, since=since)

    def case(self, name: str, asked: tuple[Asked, ...], mend: Text, why: Text) -> Refusal:
        """A rule of any shape."""
        whole = (*asked, *self.asked)
        return Refusal(
            name,
            self.source,
            tuple(one for part in whole for one in part.names),
            lambda options: all(part.holds(options) for part in whole),
            mend,
            why,
            raiser=self.raiser,
            since=self.since,
            groups=self.groups,
        )

    def apart(self, name: str, dropped: Asked, *others: Asked) -> Refusal:
        """``dropped`` does not go with the others."""
        kept = (*others, *self.asked)
        with_it = _listed(kept)
        return self.case(
            name,
            (dropped, *others),
            Text(f"去掉 {dropped.spelled}", f"drop {dropped.spelled}"),
            Text(f"不能与 {with_it.zh} 同用", f"it does not go with {with_it.en}"),
        )

    def needs(self, name: str, missing: Asked, *asked: Asked) -> Refusal:
        """The others need ``missing``."""
        by = (*asked, *self.asked)
        return self.case(
            name,
            (*asked, missing),
            Text(f"加上 {missing.spelled}", f"add {missing.spelled}"),
            Text(f"{_listed(by).zh} 需要它", f"{_listed(by).en} {_need(by)} it"),
        )

    def sets(self, name: str, value: str, wrong: Asked, *asked: Asked) -> Refusal:
        """``wrong`` is to be set to ``value``, or what it says in words."""
        by = tuple(one for one in (*asked, *self.asked) if one.names != wrong.names)
        value_of = f"{{{wrong.names[0]}}}" if len(wrong.names) == 1 else ""
        why = (
            Text(f"{_listed(by).zh} 要求如此", f"{_listed(by).en} {_need(by)} that")
            if by
            else Text(f"{value_of} 超出范围".lstrip(), f"{value_of or 'it'} is out of range")
        )
        return self.case(
            name,
            (wrong, *asked),
            Text(f"{wrong.spelled} 设为 {value}", f"set {wrong.spelled} to {value}"),
            why,
        )
