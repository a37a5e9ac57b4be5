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
    while loop is not None and not loop.over_batches:
        loop = loop.parent
    return loop if loop is not None and loop.trains else None


def _is_trainer(file: PythonFile, scope: str) -> bool:
    """Whether the method's class extends a Trainer: others may compute losses elsewhere too."""
    owner = scope.rpartition(".")[0]
    return any(
        found.name == owner and any(base.endswith("Trainer") for base in found.bases)
        for found in file.classes
    )
