"""What the program of a run takes: its parameters in the version at hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Optional

from flake8_gpu_training.frameworks import swift
from flake8_gpu_training.frameworks.tables import Parameter, Table, table_of
from flake8_gpu_training.runs.model import Run, RunKind

_TITLES = {
    "ms-swift": "ms-swift",
    "llamafactory": "LLaMA-Factory",
    "transformers": "Transformers",
    "trl": "TRL",
}
_SWIFT = ("sft", "pt", "rlhf", "infer", "deploy", "eval", "export", "sampling")


@dataclass(frozen=True)
class Part:
    """One group of parameters of one distribution, in the version that the project pins."""

    table: Table
    group: str
    version: str

    @property
    def release(self) -> str:
        """The release of the table that stands for the version."""
        return self.table.versions[self.table.release(self.version)]


@dataclass(frozen=True)
class Accepted:
    """The parameters of a program, of all its parts; ``completes``: argparse takes a unique
    beginning of a flag for the flag."""

    title: str
    parts: tuple[Part, ...]
    completes: bool = False

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """All parameters by name, aliases among them."""
        found: dict[str, Parameter] = {}
        for part in self.parts:
            for name, parameter in part.table.parameters(part.group, part.version).items():
                found.setdefault(name, parameter)
                for alias in parameter.aliases:
                    found.setdefault(alias, parameter)
        return found

    def takes(self, name: str, *, flag: bool = False) -> bool:
        """Whether the program knows ``name``; ``flag``: as a flag, which argparse completes."""
        if name in self.parameters:
            return True
        if not flag:
            return False
        opposite = name[len("no_") :] if name.startswith("no_") else ""
        parameter = self.parameters.get(opposite)
        if parameter is not None and parameter.types == ("bool",) and parameter.default is True:
            return True  # HfArgumentParser adds --no_x to what is on by default
        return self.completes and sum(known.startswith(name) for known in self.parameters) == 1

    def once(self, name: str) -> Optional[tuple[str, str, str]]:
        """Title, first and last release that know a name which this version does not know."""
        for part in self.parts:
            span = part.table.span(part.group, name)
            if span is not None:
                return (_TITLES[part.table.distribution], *span)
        return None


def accepted_by(run: Run) -> Optional[Accepted]:
    """What the program of ``run`` takes; None where that is not known."""
    if run.framework == "swift":
        return _swift(run)
    if run.framework == "llamafactory" and run.kind is RunKind.TRAIN:
        return _accepted(run, "llamafactory", "train")
    return None


def _swift(run: Run) -> Optional[Accepted]:
    command = swift.subcommand(run)
    if command not in _SWIFT:
        return None
    group = f"megatron {command}" if swift.is_megatron(run) else command
    return _accepted(run, "ms-swift", group, completes=True)


def _accepted(
    run: Run, distribution: str, group: str, completes: bool = False
) -> Optional[Accepted]:
    parts = tuple(_parts(run, distribution, group, run.versions.get(distribution, "")))
    if not parts or not parts[0].table.parameters(group, parts[0].version):
        return None
    return Accepted(f"{_TITLES[distribution]} {parts[0].release}", parts, completes)


def _parts(run: Run, distribution: str, group: str, version: str) -> Iterator[Part]:
    table = table_of(distribution)
    if table is None:
        return
    yield Part(table, group, version)
    for base, name in table.extends(group):
        pinned = run.versions.get(base) or table.base_version(base, version)
        yield from _parts(run, base, name, pinned)
