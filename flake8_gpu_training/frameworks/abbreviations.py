"""Flags that are cut short: argparse takes a unique beginning of a flag for the flag."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Optional

from flake8_gpu_training.facts import Origin, Setting, Unknown
from flake8_gpu_training.frameworks.accepted import Accepted, accepted_by, parsed_by
from flake8_gpu_training.frameworks.tables import table_of
from flake8_gpu_training.runs.model import Run

_PARSERS = ("HfArgumentParser", "TrlParser", "H4ArgumentParser")


def completed(run: Run) -> Run:
    """``run`` with such flags under their full names, too.

    Where the parser is not known whole, a beginning of one of the trainer's own flags may be
    that flag: its value is not known then.
    """
    flags = {n: s for n, s in run.settings.items() if s.origin is Origin.FLAG}
    if not flags or run.place.call is not None or run.framework not in _FRAMEWORKS:
        return run
    accepted = _accepted(run)
    if accepted is not None:
        found = _completed(flags, accepted)
    else:
        found = _perhaps(flags) if _has_parser(run) else {}
    kept = {name: _later(run.settings.get(name), setting) for name, setting in found.items()}
    return dataclasses.replace(run, settings={**run.settings, **kept}) if kept else run


_FRAMEWORKS = ("hf_trainer", "llamafactory", "swift", "vllm", "sglang")


def _accepted(run: Run) -> Optional[Accepted]:
    accepted = accepted_by(run)
    own = parsed_by(run) if accepted is None else None
    if own is not None:
        accepted = own[0]
    return accepted if accepted is not None and accepted.completes else None


def _has_parser(run: Run) -> bool:
    return any(call.method in _PARSERS for file in run.python for call in file.calls)


def _completed(flags: Mapping[str, Setting], accepted: Accepted) -> dict[str, Setting]:
    names = {*accepted.parameters, *accepted.extra}
    found: dict[str, Setting] = {}
    for name, setting in flags.items():
        full = "" if name in names else _only(name, names)
        parameter = accepted.parameters.get(full)
        if full:
            full = parameter.name if parameter is not None else full
            found[full] = dataclasses.replace(setting, name=full)
    return found


def _perhaps(flags: Mapping[str, Setting]) -> dict[str, Setting]:
    table = table_of("transformers")
    names = set(table.parameters("TrainingArguments")) if table is not None else set()
    found: dict[str, Setting] = {}
    for name, setting in flags.items():
        full = "" if name in names else _only(name, names)
        if full:
            told = (setting.value,) if setting.known else ()
            value = Unknown(f"--{name} may stand for --{full}", told)
            found[full] = dataclasses.replace(setting, name=full, value=value)
    return found


def _only(name: str, names: Iterable[str]) -> str:
    """The one name that begins so; empty when several do, or none."""
    begun = [known for known in names if known.startswith(name) and not known.startswith("-")]
    return begun[0] if len(begun) == 1 else ""


def _later(old: Optional[Setting], new: Setting) -> Setting:
    """Of a flag given twice, whole and cut short, the last one counts."""
    if old is None or old.origin is not Origin.FLAG or old.location is None:
        return new
    return new if new.location is not None and new.location > old.location else old
