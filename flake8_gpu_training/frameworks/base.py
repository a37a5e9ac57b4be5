"""What a framework module declares: how to recognise it and how it spells each practice."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Callable, Optional

from flake8_gpu_training.facts import Location, Origin, Setting, Unknown, known
from flake8_gpu_training.runs.model import PRACTICES, Model, Run, RunKind


class _Absent:
    """Marks a spelling whose framework default is not known or is decided at run time."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True)
class Spelling:
    """How a framework writes one practice.

    ``values`` maps our value to the framework's where they differ
    (``{"flash_attention_2": "flash_attn"}``). ``default`` is our value when the user writes
    nothing, ``source`` where that default was read. ``aliases``: other accepted names of
    the parameter, older versions' among them. ``instead``: our values that other parameters
    carry (``{"fp16": {"fp16": True}}``).
    """

    parameter: str
    values: Mapping[Any, Any] = field(default_factory=_nothing)
    default: Any = ABSENT
    source: str = ""
    aliases: tuple[str, ...] = ()
    instead: Mapping[Any, Mapping[str, Any]] = field(default_factory=_nothing)

    def parameters(self, value: Any) -> Mapping[str, Any]:
        """The parameters to write so that the practice is ``value``."""
        return self.instead.get(value) or {self.parameter: self.written(value)}

    def written(self, value: Any) -> Any:
        """Our ``value`` as the framework has it."""
        return self.values.get(value, value)

    def read(self, written: Any) -> Any:
        """The framework's value as ours."""
        if isinstance(written, Unknown) and written.candidates:
            return Unknown(written.reason, tuple(self.read(each) for each in written.candidates))
        if not known(written) or isinstance(written, (list, dict)):
            return written
        for ours, theirs in self.values.items():
            if theirs == written and type(theirs) is type(written):
                return ours
        return written


@dataclass(frozen=True)
class Evidence:
    """Why a framework was recognised. ``strong`` evidence decides alone, weak never."""

    framework: str
    rule: str
    location: Location
    text: str
    strong: bool = True


@dataclass(frozen=True)
class Framework:
    """A training framework or inference engine.

    ``id`` is the name in JSON (``frameworks.training``), ``audit`` the id of its own audit
    (empty for plain PyTorch), ``distribution`` its name on the package index.
    ``derive(run, spelled)`` gives practices that take more than a renaming (DeepSpeed stage,
    tuning with quantization, launcher-made DDP …); it gets what ``spellings`` gave, and wins.
    """

    id: str
    title: str
    audit: str = ""
    distribution: str = ""
    flag: str = "--{name} {value}"
    """How a flag is written; ``{name}`` has underscores, ``{dashed}`` dashes."""
    bare_switches: bool = False
    """Whether a true flag takes no value (argparse ``store_true``)."""
    spellings: Mapping[str, Spelling] = field(default_factory=_nothing)
    dialect: Optional[Callable[[Run], Mapping[str, Spelling]]] = None
    """The spellings of a run's version or mode, where they differ from ``spellings``."""
    flag_of: Optional[Callable[[Run], str]] = None
    """How a run's program writes a flag, where that differs from ``flag``."""
    derive: Optional[Callable[[Run, Mapping[str, Setting]], Mapping[str, Setting]]] = None
    loaded: Optional[Callable[[Model], Model]] = None
    """What a run loads of its model, where that is a part of it."""

    def spellings_of(self, run: Run) -> Mapping[str, Spelling]:
        """The spellings that hold for ``run``."""
        return self.spellings if self.dialect is None else self.dialect(run)

    def written_for(self, run: Run) -> Framework:
        """The framework with the flags that ``run``'s program takes."""
        if self.flag_of is None:
            return self
        return dataclasses.replace(self, flag=self.flag_of(run) or self.flag)

    def profile(self, run: Run) -> dict[str, Setting]:
        """Practices of ``run``: written ones, framework defaults, derived ones."""
        found: dict[str, Setting] = {}
        for practice, spelling in self.spellings_of(run).items():
            setting = self._read(run, practice, spelling)
            if setting is not None:
                found[practice] = setting
        if self.derive is not None:
            found.update(self.derive(run, dict(found)))
        unheard = set(found) - set(PRACTICES)
        if unheard:
            raise KeyError(f"{self.id} derives unheard-of practices: {sorted(unheard)}")
        return found

    def _read(self, run: Run, practice: str, spelling: Spelling) -> Optional[Setting]:
        for name in (spelling.parameter, *spelling.aliases):
            written = run.settings.get(name)
            if written is not None:
                value = spelling.read(written.value)
                if value is None:  # a written null is the default
                    value = spelling.default
                if value is ABSENT:
                    return None
                return Setting(
                    practice,
                    value,
                    written.location,
                    written.origin,
                    written.note or written.written,
                    written.text,
                    written.value_location,
                )
        if spelling.default is ABSENT or run.is_open or run.kind is RunKind.OTHER:
            return None
        return Setting(practice, spelling.default, None, Origin.DEFAULT, spelling.source)
