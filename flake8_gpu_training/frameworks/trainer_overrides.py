"""What a project's own Trainer decides itself: its methods overrule the arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from flake8_gpu_training.facts import Call, ClassDef, Origin, PythonFile, Setting, Unknown, known
from flake8_gpu_training.runs.model import Run

_LOADER: Mapping[str, str] = MappingProxyType(
    {
        "micro_batch_size": "batch_size",
        "dataloader_workers": "num_workers",
        "pin_memory": "pin_memory",
        "persistent_workers": "persistent_workers",
        "prefetch_factor": "prefetch_factor",
    }
)
"""Practices, and the parameters of a DataLoader that decide them."""
# The Trainer's own means: an override that uses one keeps to the arguments.
_OPTIMIZER_OF_ARGUMENTS = "get_optimizer_cls_and_kwargs"
_OWN = ("self.args.", "args.", "self._train_batch_size", "_train_batch_size")


def overridden(run: Run) -> dict[str, Setting]:
    """Practices that methods of a Trainer of the project decide: unknown, whatever is written.

    Their values are candidates: the arguments, where a change would be written, have no say.
    """
    found: dict[str, Setting] = {}
    for file, trainer in _trainers(run):
        if "get_train_dataloader" in trainer.methods:
            found.update(_of_loader(file, trainer))
        if "create_optimizer" in trainer.methods:
            found.update(_of_optimizer(file, trainer))
    return found


def _trainers(run: Run) -> Iterator[tuple[PythonFile, ClassDef]]:
    """Classes that derive from a Trainer and that the run may build."""
    for file in run.python:
        for item in file.classes:
            if any(base.rpartition(".")[2].endswith("Trainer") for base in item.bases):
                yield file, item


def _calls(file: PythonFile, trainer: ClassDef, method: str) -> list[Call]:
    scope = f"{trainer.name}.{method}"
    return [c for c in file.calls if c.scope == scope or c.scope.startswith(f"{scope}.")]


def _keeps(calls: list[Call], method: str) -> bool:
    """Whether an override lets the Trainer's own method do it, or has nothing in sight."""
    kept = (method, _OPTIMIZER_OF_ARGUMENTS)
    return not calls or any(call.method in kept for call in calls)


def _of_loader(file: PythonFile, trainer: ClassDef) -> Iterator[tuple[str, Setting]]:
    calls = _calls(file, trainer, "get_train_dataloader")
    if _keeps(calls, "get_train_dataloader"):
        return
    loaders = [call for call in calls if call.method.endswith("DataLoader")]
    for practice, parameter in _LOADER.items():
        given = [c.keywords[parameter] for c in loaders if parameter in c.keywords]
        if given and all(item.text.startswith(_OWN) for item in given):
            continue
        if loaders and not given and all(call.is_open for call in loaders):
            continue  # the Trainer's own way: a dict made of the arguments
        candidates = tuple(item.value for item in given if known(item.value))
        yield practice, _decided(practice, calls[0], "get_train_dataloader", candidates)


def _of_optimizer(file: PythonFile, trainer: ClassDef) -> Iterator[tuple[str, Setting]]:
    calls = _calls(file, trainer, "create_optimizer")
    made = [call for call in calls if ".optim" in call.name or "optimizer" in call.method.lower()]
    if made and not _keeps(calls, "create_optimizer"):
        names = tuple(call.method.lower() for call in made if ".optim" in call.name)
        yield "optimizer", _decided("optimizer", made[0], "create_optimizer", names)


def _decided(practice: str, call: Call, method: str, candidates: tuple[Any, ...]) -> Setting:
    value = Unknown(f"{method} of the project's trainer decides it", candidates)
    return Setting(practice, value, call.location, Origin.CONSTRUCTOR, call.name)
