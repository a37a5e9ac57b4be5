"""Which calls of a program are made at every training step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Optional

from flake8_gpu_training.checks._loaders import uses_gpu
from flake8_gpu_training.checks._scale import is_test_file
from flake8_gpu_training.facts import Call, Loop, PythonFile
from flake8_gpu_training.runs.model import Run

_MEASURES = re.compile(r"(?i)(?:^|[/_])(?:bench|profil|perf|timing)")

# A name or a call, as opposed to the condition of a ``while``.
_NAMED = re.compile(r"(?!True$)[A-Za-z_][\w.]*(?:\(.*)?$", re.DOTALL)


def hot_programs(run: Run) -> Iterator[PythonFile]:
    """The run's programs whose speed on a GPU matters: no tests, no benchmarks."""
    for file in run.python:
        if not is_test_file(file.path) and not _MEASURES.search(file.path) and uses_gpu(file):
            yield file


def step_calls(file: PythonFile, *methods: str) -> Iterator[Call]:
    """Calls made at every step whose last name is one of ``methods`` (all when none)."""
    for call in file.calls:
        if (not methods or call.method in methods) and runs_each_step(file, call):
            yield call


def runs_each_step(file: PythonFile, call: Call) -> bool:
    """Whether ``call`` stands, unguarded, in a training loop or in a trainer's step method."""
    if call.guarded:
        return False
    loop = step_loop(call)
    return loop is not None and (loop.iterable != "compute_loss" or _is_trainer(file, call.scope))


def step_loop(call: Call) -> Optional[Loop]:
    """The training loop over batches that ``call`` stands in, or None.

    A loop over batches that does not train (an evaluation) ends the search: what stands in
    it is not made at every training step.
    """
    loop = call.loop
    while loop is not None:
        if loop.trains:
            return loop if loop.over_batches or _names_batches(loop.iterable) else None
        if loop.over_batches:
            return None
        loop = loop.parent
    return None


def _names_batches(iterable: str) -> bool:
    """Whether a loop that trains goes over batches, not over epochs, by what it iterates."""
    return (
        _NAMED.match(iterable) is not None
        and "range(" not in iterable
        and "epoch" not in iterable.lower()
    )


def _is_trainer(file: PythonFile, scope: str) -> bool:
    """Whether the method's class extends a Trainer: others may compute losses elsewhere too."""
    owner = scope.rpartition(".")[0]
    return any(
        found.name == owner and any(base.endswith("Trainer") for base in found.bases)
        for found in file.classes
    )
