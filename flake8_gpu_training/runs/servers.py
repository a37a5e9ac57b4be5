"""Which ``swift rollout`` command serves the completions of a training run."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Iterable, Sequence
from typing import Optional

from flake8_gpu_training.runs.model import Run, RunKind


def with_servers(runs: Iterable[Run]) -> tuple[Run, ...]:
    """``runs``; those of ms-swift with the rollout server that their script starts, or the only
    one of their folder, of the same model."""
    found = tuple(runs)
    servers = [run for run in found if _is_server(run)]
    return tuple(_served(run, servers) for run in found) if servers else found


def _served(run: Run, servers: Sequence[Run]) -> Run:
    if run.framework != "swift" or run.kind is not RunKind.TRAIN or run.command is None:
        return run
    path = run.location.path
    beside = [one for one in servers if one.location.path == path]
    if not beside:
        folder = posixpath.dirname(path)
        near = [one for one in servers if posixpath.dirname(one.location.path) == folder]
        beside = [one for one in near if one.model.known_as == run.model.known_as]
    server: Optional[Run] = beside[0] if len(beside) == 1 else None
    return run if server is None else dataclasses.replace(run, server=server)


def _is_server(run: Run) -> bool:
    words = run.command.words if run.command is not None else ()
    return run.framework == "swift" and any(word.text == "rollout" for word in words[:4])
