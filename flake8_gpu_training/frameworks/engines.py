"""Inference engines in runs: which one a run uses, in which mode, and its parameters.

A run may be the engine's own (``vllm serve``, ``LLM(...)``), or a training framework's that
starts the engine: then the framework is the engine's :class:`Host`, with names and defaults of
its own for the engine's parameters. Checks ask for a parameter by the engine's name for it.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Callable, Optional

from flake8_gpu_training.facts import Call, Origin, Setting, Unknown, known
from flake8_gpu_training.frameworks.at_hand import AtHand, at_hand, built
from flake8_gpu_training.frameworks.called import given
from flake8_gpu_training.frameworks.reading import NEWEST, number, parsed
from flake8_gpu_training.frameworks.tables import Parameter, table_of
from flake8_gpu_training.runs.model import Run, RunKind


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


class Mode(enum.Enum):
    """How an engine is used; the values stand in the reports."""

    SERVE = "serve"
    OFFLINE = "offline"
    RLHF_SERVER = "rlhf-server"
    RLHF_COLOCATE = "rlhf-colocate"
    INTEGRATED = "integrated"
    ROUTER = "router"

    @property
    def samples(self) -> bool:
        """Whether the engine generates the completions of a training run."""
        return self in (Mode.RLHF_SERVER, Mode.RLHF_COLOCATE)


@dataclass(frozen=True)
class Host:
    """A framework that starts an engine within its own run.

    ``names``: the host's name for a parameter of the engine; others are ``prefix`` and the
    engine's name, where the host has it. ``containers``: parameters of the host that hold
    parameters of the engine. ``defaults``: what the host gives the engine unless told
    otherwise, Unknown where it computes it, with ``source`` where that was read. ``sums``: what
    it adds up where nobody writes the parameter, each part with its own default. ``changed``:
    defaults by the first release that has them, the newest first, and ``release`` the host's at
    hand, which ``source`` names as ``{release}``.
    """

    id: str
    title: str
    names: Mapping[str, str] = field(default_factory=_nothing)
    prefix: str = ""
    containers: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=_nothing)
    sums: Mapping[str, Mapping[str, float]] = field(default_factory=_nothing)
    changed: Mapping[str, tuple[tuple[str, Any], ...]] = field(default_factory=_nothing)
    release: Callable[[Run], str] = lambda run: ""
    source: str = ""
    takes: Callable[[Run, str], bool] = lambda run, name: True
    """Whether the host's release at hand has a parameter of its own of this name."""
    is_open: Callable[[Run], bool] = lambda run: run.is_open
    """Whether more parameters may be set than could be read."""
    bare: frozenset[str] = frozenset()
    """Parameters that older releases of the host take by the engine's own name."""
    since: str = ""
    """The first release of the engine that the host works with; "" for any."""
    section: str = ""
    """Of the host's file, where the engine's parameters may stand."""
    engine_asked_for: Callable[[Run], str] = lambda run: ""
    """The releases of the engine that the host's own release installs; "" for any."""

    def own_default(self, run: Run, name: str) -> Any:
        """What the host gives the engine unless told otherwise; None for nothing."""
        for since, value in self.changed.get(name, ()):
            if parsed(self.release(run)) >= parsed(since):
                return value
        return self.defaults.get(name)

    def has_default(self, name: str) -> bool:
        """Whether the host gives the engine a parameter of itself."""
        return name in self.defaults or name in self.changed

    def written(self, name: str) -> str:
        """The host's name for a parameter of the engine."""
        return self.names.get(name) or f"{self.prefix}{name}"


@dataclass(frozen=True)
class Kind:
    """An engine: its table, and what the table does not tell.

    ``groups``: of the table, in the order in which a mode looks. ``shorthands``: other ways to
    write a parameter. ``computed(engine, name)``: defaults that the engine works out when it
    starts, as its releases do; None for those that stand in the table. ``builds_are_newest``:
    whether a build that no release tells has what the newest release has.
    """

    name: str
    title: str
    builds_are_newest: bool = False
    shorthands: Mapping[str, tuple[str, ...]] = field(default_factory=_nothing)
    computed: Callable[[Engine, str], Optional[Setting]] = lambda engine, name: None


def _that_takes(found: AtHand, groups: Sequence[str], run: Run) -> AtHand:
    """``found``, or the newest release that has all the flags of ``run`` where its own lacks one:
    nobody could start it with that."""
    table = found.table
    flags = [n for n, s in run.settings.items() if s.origin is Origin.FLAG and "." not in n]
    known = [n for n in flags if any(table.spans(group, n) for group in groups)]

    def takes_all(release: int) -> bool:
        return all(any(table.knows(group, name, release) for group in groups) for name in known)

    if takes_all(table.release(found.version)):
        return found
    fits = tuple(filter(takes_all, found.allowed or ()))
    fits = fits or tuple(filter(takes_all, range(len(table.versions))))
    if not fits:
        return found
    return AtHand(table, table.versions[fits[-1]], fits, False, fits[-1:])


@dataclass(frozen=True)
class Engine:
    """The engine of a run. ``mode`` is None where it cannot be told.

    ``by``: the setting or call that asks for it. ``call``: the constructor within a program of
    another framework. ``is_remote``: another job serves it, so that its parameters stand there.
    """

    kind: Kind
    run: Run
    mode: Optional[Mode]
    groups: tuple[str, ...] = ("serve",)
    host: Optional[Host] = None
    by: Optional[Setting] = None
    call: Optional[Call] = None
    is_remote: bool = False

    @property
    def name(self) -> str:
        """``vllm`` or ``sglang``."""
        return self.kind.name

    @property
    def is_server(self) -> bool:
        """Whether it is the engine's own server, which answers over HTTP."""
        return self.run.kind is RunKind.SERVE and self.host is None and self.call is None

    # --- the release at hand ---

    @property
    def release(self) -> Optional[AtHand]:
        """The release that the run gets: of a build that no release tells, the one next to
        it; None where a release is pinned that no table has."""
        wanted = self.host.engine_asked_for(self.run) if self.host is not None else ""
        found = at_hand(self.run, self.name, wanted)
        if found is not None and self.host is None and not self.run.versions.get(self.name):
            found = _that_takes(found, self.groups, self.run)
        own = self.host is not None and self.host.since
        if found is not None or own or not self.kind.builds_are_newest:
            return found
        return built(self.run, self.name)

    @property
    def version(self) -> tuple[int, ...]:
        """Its number, newer than all where it is not known."""
        found = self.release
        # a host with a first release takes the engine from repositories and images of its own
        own = self.host is not None and self.host.since
        pinned = "" if own else self.run.versions.get(self.name, "")
        return parsed(found.version if found is not None else pinned) or NEWEST

    @property
    def called(self) -> str:
        """The engine and its release, as evidence names them."""
        found = self.release
        return f"{self.kind.title} {found.version}" if found is not None else self.kind.title

    def parameter(self, name: str) -> Optional[Parameter]:
        """A parameter as the release at hand declares it; None when it has none of the name.

        Of a release that is not known, what all releases declare alike is known.
        """
        found = self.release
        if found is None:
            return _everywhere(self.name, self.groups, name, self._since)
        for group in self.groups:
            parameter = found.table.parameters(group, found.version).get(name)
            if parameter is not None:
                return parameter
        return None

    def is_off_anyway(self, name: str) -> bool:
        """Whether a parameter is off by default in every release that has it, where the release
        at hand is not known."""
        return self.release is None and _is_off_everywhere(
            self.name, self.groups, name, self._since
        )

    @property
    def _since(self) -> str:
        return self.host.since if self.host is not None else ""

    def takes(self, name: str) -> bool:
        """Whether advice may name a parameter: the release has it, and the host hands it on."""
        if self.is_remote or self.parameter(name) is None:
            return False
        if self.host is None or self.host.containers:
            return True
        return self.host.takes(self.run, self.host.written(name))

    @property
    def is_open(self) -> bool:
        """Whether more parameters may be set than could be read."""
        if self.call is not None:
            return self.call.is_open
        return self.run.is_open if self.host is None else self.host.is_open(self.run)

    # --- its parameters ---

    def written(self, *names: str) -> Optional[Setting]:
        """The first of the parameters that somebody wrote."""
        for name in names:
            for key in self._keys(name):
                found = self._at(key)
                if found is not None:
                    return replace(found, name=found.name)
            inner = self._contained(name)
            if inner is not None:
                return inner
        return None

    def option(self, name: str) -> Setting:
        """A parameter: as written, else its default, else Unknown."""
        found = self.written(name)
        if found is not None:
            return found
        if self.is_remote:
            return Setting(name, Unknown("the job that serves the engine has it"))
        if self.is_open:
            return Setting(name, Unknown("not all settings of the run could be read"))
        return self.default(name)

    def default(self, name: str) -> Setting:
        """What the engine gets when nobody writes a parameter."""
        if self.host is not None and name in self.host.sums:
            return self._sum(name, self.host.sums[name])
        if self.host is not None and self.host.has_default(name):
            own = self.host.written(name)
            shown = own if self.host.takes(self.run, own) else name
            value = self.host.own_default(self.run, name)
            source = self.host.source.replace("{release}", self.host.release(self.run))
            return Setting(name, value, None, Origin.DEFAULT, f"{shown}={value} ({source})")
        computed = self.kind.computed(self, name)
        if computed is not None:
            return computed
        parameter = self.parameter(name)
        if parameter is None and self.is_off_anyway(name):
            note = f"{name}=None ({self.called})"
            return Setting(name, None, None, Origin.DEFAULT, note)
        if parameter is None or not parameter.has_default:
            return Setting(name, Unknown(f"{self.called} has no default of it"))
        note = f"{name}={parameter.default} ({self.called})"
        return Setting(name, parameter.default, None, Origin.DEFAULT, note)

    def _sum(self, name: str, parts: Mapping[str, float]) -> Setting:
        """What the host adds up of settings of its own."""
        found = [(part, self.run.settings.get(part)) for part in parts]
        values = [(part, parts[part] if s is None else number(s.value)) for part, s in found]
        if any(value is None for _, value in values):
            return Setting(name, Unknown("a part of it is not known"))
        note = " + ".join(f"{part} {value:g}" for part, value in values)
        total = int(sum(value or 0 for _, value in values))
        return Setting(name, total, None, Origin.DEFAULT, f"{name}={total} ({note})")

    @property
    def builds_serve(self) -> bool:
        """Whether a host's command starts `vllm serve` and hands it the flags that it does not
        know, as `trl vllm-serve` does from 1.16 on."""
        if self.host is None or self.host.id != "trl-serve":
            return False
        found = at_hand(self.run, "trl")
        return found is None or parsed(found.version) >= (1, 16)

    def hands_on(self, *names: str) -> bool:
        """Whether a host has a way to give the engine one of the parameters."""
        if self.host is None or self.call is not None or self.host.containers:
            return True
        if self.builds_serve:
            return True
        return any(self.host.takes(self.run, self.host.written(name)) for name in names)

    def entry(self, name: str, *keys: str) -> Optional[Setting]:
        """An entry that somebody wrote of a parameter that takes a dict, its JSON or an object."""
        for stem in self._keys(name):
            for key in keys:
                dotted = self._at(f"{stem}.{key}")
                if dotted is not None:
                    return dotted
        whole = self.written(name)
        made = self.object(whole, name)
        if made is not None:
            at = next((key for key in keys if key in made.keywords), "")
            return given(at, made.keywords[at].value, made, made.keywords[at]) if at else None
        value = self.mapping(whole)
        for key in keys:
            if whole is not None and value is not None and key in value:
                note = f"{whole.name}: {key}={value[key]}"
                return replace(whole, name=key, value=value[key], note=note, text="")
        return None

    def object(self, setting: Optional[Setting], name: str) -> Optional[Call]:
        """The one call that makes the object that a parameter is given (``CompilationConfig``)."""
        if setting is None or known(setting.value) or setting.location is None:
            return None
        kind = "".join(part.capitalize() for part in name.split("_"))
        kind = kind.replace("Kv", "KV")
        calls = [c for program in self.run.python for c in program.calls if c.method == kind]
        here = [call for call in calls if call.location.path == setting.location.path]
        return here[0] if len(here) == 1 and not here[0].is_open else None

    def mapping(self, setting: Optional[Setting]) -> Optional[Mapping[str, Any]]:
        """A known dict, or the JSON of one; None for anything else."""
        value = setting.value if setting is not None else None
        if isinstance(value, str) and value.lstrip().startswith("{"):
            try:
                value = json.loads(value)
            except ValueError:
                return None
        return value if isinstance(value, dict) else None

    def parameters(self, **values: Any) -> dict[str, Any]:
        """Parameters of the engine as the run's framework writes them."""
        if self.host is None:
            return values
        inside = [n for n in values if not self.host.takes(self.run, self.host.written(n))]
        written = {self.host.written(n): v for n, v in values.items() if n not in inside}
        if inside and self.host.containers:
            written[self.host.containers[0]] = {name: values[name] for name in inside}
        return written

    def _keys(self, name: str) -> Iterator[str]:
        """Names under which the run's settings may have a parameter."""
        if self.host is not None and self.call is None:
            if self.host.section:
                yield f"{self.host.section}{self.host.written(name)}"
            yield self.host.written(name)
            yield from (name,) if name in self.host.bare else ()
            if self.host.prefix.endswith("_"):
                others = (f"{self.host.prefix}{other}" for other in self._other_names(name))
                yield from (other for other in others if self.host.takes(self.run, other))
            return
        yield name
        yield from self._other_names(name)

    def _other_names(self, name: str) -> Iterator[str]:
        """What else the engine's command takes for a parameter."""
        parameter = self.parameter(name)
        for alias in parameter.aliases if parameter is not None else ():
            yield alias.lstrip("-").replace("-", "_")
        yield from self.kind.shorthands.get(name, ())

    def _at(self, key: str) -> Optional[Setting]:
        if self.call is not None:
            argument = self.call.keywords.get(key)
            return None if argument is None else given(key, argument.value, self.call, argument)
        return self.run.settings.get(key)

    def _contained(self, name: str) -> Optional[Setting]:
        """A parameter within a container of the host."""
        for container in self.host.containers if self.host is not None else ():
            dotted = self.run.settings.get(f"{container}.{name}")
            if dotted is not None:
                return dotted
            whole = self.run.settings.get(container)
            value = self.mapping(whole)
            if whole is not None and value is not None and name in value:
                note = f"{container}: {name}={value[name]}"
                return replace(whole, name=name, value=value[name], note=note, text="")
            if whole is not None and not known(whole.value):
                return replace(whole, name=name)
        return None


@lru_cache(maxsize=512)
def _declared(
    engine: str, groups: tuple[str, ...], name: str, since: str
) -> tuple[Optional[Parameter], ...]:
    """A parameter in each release of the table from one on; None where a release has none."""
    table = table_of(engine)
    if table is None:
        return ()
    return tuple(
        next((p for g in groups if (p := table.parameters(g, version).get(name)) is not None), None)
        for version in table.versions
        if not since or parsed(version) >= parsed(since)
    )


def _everywhere(engine: str, groups: tuple[str, ...], name: str, since: str) -> Optional[Parameter]:
    """A parameter that every release has with the same default."""
    found = _declared(engine, groups, name, since)
    newest = found[-1] if found else None
    if newest is None or any(one is None or one.default != newest.default for one in found):
        return None
    return newest


def _is_off_everywhere(engine: str, groups: tuple[str, ...], name: str, since: str) -> bool:
    found = [one for one in _declared(engine, groups, name, since) if one is not None]
    return bool(found) and all(one.has_default and one.default in (None, False) for one in found)


_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}


def amount(setting: Setting) -> Optional[float]:
    """A known number, also one with a unit: ``8k`` is 8000, ``8K`` 8192 (utils/argparse)."""
    value = setting.value
    if isinstance(value, str):
        unit = _UNITS.get(value[-1:], 1)
        digits = value[:-1] if unit > 1 else value
        try:
            return float(digits) * unit
        except ValueError:
            return None
    return number(value) if known(value) else None
