"""Which calls of a program are made at every training step, in the loop or one call deeper."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Optional

from flake8_gpu_training.checks._functions import Function, Functions
from flake8_gpu_training.checks._loaders import uses_gpu
from flake8_gpu_training.checks._scale import is_test_file
from flake8_gpu_training.facts import Argument, Call, Loop, PythonFile
from flake8_gpu_training.runs.model import Run

STEP_METHODS = ("training_step", "compute_loss")
"""Names of the implicit loops: methods that a trainer calls at every step."""

_MEASURES = re.compile(r"(?i)(?:^|[/_])(?:bench|profil|perf|timing)")

# A name or a call, as opposed to the condition of a ``while``.
_NAMED = re.compile(r"(?!True$)[A-Za-z_][\w.]*(?:\(.*)?$", re.DOTALL)
_ON_HOST = re.compile(r"\.(?:item|cpu|tolist|numpy)\(\)|^(?:float|int|str)\(")
_TO_HOST = frozenset({"item", "cpu", "tolist", "numpy", "float", "int"})
_BACKWARD = ("backward", "manual_backward")


@dataclass(frozen=True)
class Step:
    """A call made at every step of ``loop``; ``via`` is the loop's call of the function that
    makes it, which ``caller`` holds."""

    call: Call
    file: PythonFile
    loop: Loop
    via: Optional[Call] = None
    caller: Optional[PythonFile] = None

    def told(self, message: str) -> str:
        """``message``, which names the loop unless the call stands in it."""
        if self.via is None:
            return message
        place = self.loop.location
        where = f"in line {place.line}" if place.path == self.call.location.path else f"at {place}"
        loop = f"{self.loop.iterable}()" if self.loop.iterable in STEP_METHODS else "the loop"
        return f"{message} ({self.via.method}() is called from {loop} {where})"

    @property
    def takes_host_values(self) -> bool:
        """Whether the function is given values that are on the host already."""
        if self.via is None or self.caller is None:
            return False
        given = (*self.via.positional, *self.via.keywords.values())
        return any(_is_on_host(self.caller, self.via, argument) for argument in given)


def steps(run: Run, *methods: str) -> Iterator[Step]:
    """Calls made at every step whose last name is one of ``methods``, in file order."""
    files = list(hot_programs(run))
    functions = Functions(run.python)
    further = _loops_that_train(files, functions)
    found = list(_in_loops(files, methods, further))
    found += _in_functions(run, files, functions, methods, further)
    return iter(sorted(found, key=lambda step: step.call.location))


def hot_programs(run: Run) -> Iterator[PythonFile]:
    """The run's programs whose speed on a GPU matters: no tests, no benchmarks."""
    for file in run.python:
        if _matters(file) and uses_gpu(file):
            yield file


def _matters(file: PythonFile) -> bool:
    return not is_test_file(file.path) and not _MEASURES.search(file.path)


def step_loop(call: Call, further: Collection[Loop] = ()) -> Optional[Loop]:
    """The training loop over batches that ``call`` stands in, unguarded, or None.

    A loop over batches that does not train (an evaluation) ends the search: what stands in
    it is not made at every training step. ``further`` loops train by what they call.
    """
    if call.guarded:
        return None
    loop = call.loop
    while loop is not None:
        if loop.trains:
            return loop if loop.over_batches or _names_batches(loop.iterable) else None
        if loop in further:
            return loop
        if loop.over_batches or loop.guarded:
            return None
        loop = loop.parent
    return None


_ACCUMULATES = re.compile(
    r"(?i)t?range\([\w.\[\]'\", ]*(?:accum|micro_?batch|micro_?step)[\w'\"\]]*\)$"
)


def _names_batches(iterable: str) -> bool:
    """Whether a loop that trains goes over batches, not over epochs, by what it iterates: also
    over the micro-batches of an update."""
    if _ACCUMULATES.match(iterable):
        return True
    return (
        _NAMED.match(iterable) is not None
        and "range(" not in iterable
        and "epoch" not in iterable.lower()
    )


def _in_loops(
    files: list[PythonFile], methods: Collection[str], further: Collection[Loop]
) -> Iterator[Step]:
    for file in files:
        for call in _calls(file, methods):
            loop = _loop_of(file, call, further)
            if loop is not None:
                yield Step(call, file, loop)


def _calls(file: PythonFile, methods: Collection[str]) -> Iterator[Call]:
    names = (*methods, *(f".{method}" for method in methods))
    return file.calls_to(*names) if methods else iter(file.calls)


def _loop_of(file: PythonFile, call: Call, further: Collection[Loop]) -> Optional[Loop]:
    """As ``step_loop``; a ``compute_loss`` counts only in a class that extends a Trainer."""
    loop = step_loop(call, further)
    if loop is not None and loop.iterable == "compute_loss" and not _is_trainer(file, call.scope):
        return None
    return loop


def _is_trainer(file: PythonFile, scope: str) -> bool:
    """Whether the method's class extends a Trainer: others may compute losses elsewhere too."""
    owner = scope.rpartition(".")[0]
    return any(
        found.name == owner and any(base.endswith("Trainer") for base in found.bases)
        for found in file.classes
    )


# --- functions that a loop calls ---


def _in_functions(
    run: Run,
    files: list[PythonFile],
    functions: Functions,
    methods: Collection[str],
    further: Collection[Loop],
) -> Iterator[Step]:
    wanted: dict[Function, list[tuple[PythonFile, Call]]] = {}
    for file in filter(_matters, run.python):
        for call in _calls(file, methods):
            if _is_made_by_each_call(call):
                wanted.setdefault((file.path, call.scope), []).append((file, call))
    if not wanted:
        return
    for file in files:
        for via in file.calls:
            loop = _loop_of(file, via, further) if via.loop is not None else None
            if loop is None:
                continue
            for function in functions.called_by(file, via):
                for callee, call in wanted.pop(function, ()):
                    yield Step(call, callee, loop, via, file)


def _is_made_by_each_call(call: Call) -> bool:
    """Whether the function around a call makes it whenever it is called."""
    if not call.scope or call.guarded:
        return False
    loop = call.loop
    while loop is not None:
        if loop.trains or loop.over_batches or loop.guarded:
            return False
        loop = loop.parent
    return True


def _loops_that_train(files: list[PythonFile], functions: Functions) -> frozenset[Loop]:
    """Loops over batches whose backward pass is made by a function that they call."""
    training = {
        (file.path, call.scope)
        for file in files
        for call in _calls(file, _BACKWARD)
        if _is_made_by_each_call(call)
    }
    if not training:
        return frozenset()
    return frozenset(
        call.loop
        for file in files
        for call in file.calls
        if call.loop is not None
        and call.loop.over_batches
        and not call.loop.trains
        and any(function in training for function in functions.called_by(file, call))
    )


def _is_on_host(file: PythonFile, via: Call, argument: Argument) -> bool:
    if _ON_HOST.search(argument.text):
        return True
    return any(
        call.assigned_to == argument.text and call.scope == via.scope and call.method in _TO_HOST
        for call in file.calls
        if argument.text
    )
