"""Which calls of a program are made at every training step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from flake8_gpu_training.facts import Call, ClassDef, Loop, PythonFile

_STEP_METHODS = {"training_step": ("LightningModule", "Trainer"), "compute_loss": ("Trainer",)}


def step_calls(file: PythonFile, *methods: str) -> Iterator[Call]:
    """Calls made at every step whose last name is one of ``methods``."""
    for call in file.calls:
        if call.method in methods and runs_each_step(file, call):
            yield call


def runs_each_step(file: PythonFile, call: Call) -> bool:
    """Whether ``call`` stands, unguarded, in a training loop or in a trainer's step method."""
    if call.guarded:
        return False
    return step_loop(call) is not None or _in_step_method(file, call)


def step_loop(call: Call) -> Optional[Loop]:
    """The training loop over batches that ``call`` stands in, or None.

    A loop over batches that does not train (an evaluation) ends the search: what stands in
    it is not made at every training step.
    """
    loop = call.loop
    while loop is not None and not loop.over_batches:
        loop = loop.parent
    return loop if loop is not None and loop.trains else None


def _in_step_method(file: PythonFile, call: Call) -> bool:
    owner, _, method = call.scope.rpartition(".")
    bases = _STEP_METHODS.get(method)
    if not bases:
        return False
    defined = _class(file, owner)
    return defined is not None and any(base.endswith(bases) for base in defined.bases)


def _class(file: PythonFile, name: str) -> Optional[ClassDef]:
    return next((found for found in file.classes if found.name == name), None)
