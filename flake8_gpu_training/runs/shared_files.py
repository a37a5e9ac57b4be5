"""Keeps what one subcommand alone takes out of a file that others read, too."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Optional

from flake8_gpu_training.runs.model import Place, PlaceKind, Run


def with_own_places(runs: Iterable[Run]) -> tuple[Run, ...]:
    """``runs``; those of ms-swift that share a file with another subcommand are written at their
    commands, since ``swift sft`` stops at a key that only ``swift rlhf`` has."""
    found = tuple(runs)
    readers: dict[str, set[str]] = {}
    for run in found:
        asked = _subcommand(run)
        if asked is not None and run.place.document is not None:
            readers.setdefault(run.place.document.path, set()).add(asked)
    shared = {path for path, asked in readers.items() if len(asked) > 1}
    return tuple(_at_command(run) if _path(run) in shared else run for run in found)


def _subcommand(run: Run) -> Optional[str]:
    words = run.command.words if run.command is not None else ()
    return words[1].text if run.framework == "swift" and len(words) > 1 else None


def _path(run: Run) -> Optional[str]:
    is_asked = _subcommand(run) is not None and run.place.document is not None
    return run.place.document.path if is_asked and run.place.document is not None else None


def _at_command(run: Run) -> Run:
    assert run.command is not None
    place = Place(PlaceKind.FLAGS, run.command.location, run.command, document=run.place.document)
    return dataclasses.replace(run, place=place)
