"""What checks ask of a run's Python code: its GPU use and its DataLoader constructors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Optional

from flake8_gpu_training.checks._scale import is_test_file
from flake8_gpu_training.checks.base import Change, Judgement, Status
from flake8_gpu_training.checks.changes import write_in_call
from flake8_gpu_training.facts import (
    Argument,
    Call,
    Location,
    PythonFile,
    Unknown,
)
from flake8_gpu_training.runs.model import Run

_LOADERS = (
    "torch.utils.data.DataLoader",
    "torch.utils.data.dataloader.DataLoader",
    "torchdata.stateful_dataloader.StatefulDataLoader",
)
_POSITIONS = (
    "dataset",
    "batch_size",
    "shuffle",
    "sampler",
    "batch_sampler",
    "num_workers",
    "collate_fn",
    "pin_memory",
)
_EVALUATES = re.compile(r"(?i)(?:^|[._])(?:x_)?(?:val|valid|validation|eval|test|dev|pred|infer)")
_GPU_CALLS = (
    "torch.cuda.",
    "torch.nn.parallel.",
    "accelerate.",
    "deepspeed.",
    "lightning.",
    "pytorch_lightning.",
)
# Gravest first: what a check says about several places at once.
_GRAVITY = (Status.RECOMMENDED, Status.PARTIAL, Status.ENABLED, Status.DISABLED, Status.UNKNOWN)
_WRAPPERS = frozenset({"random_split", "Subset", "ConcatDataset"})
_IN_MEMORY = frozenset({"TensorDataset", "range", "list", "zip"})


@dataclass(frozen=True)
class Loader:
    """A ``DataLoader(...)`` that feeds training."""

    call: Call
    file: PythonFile
    on_gpu: bool
    """Whether the code around it is known to train on a GPU."""

    def argument(self, name: str) -> Optional[Argument]:
        """The argument ``name``, by keyword or position."""
        return _argument(self.call, name)

    def value(self, name: str, default: Any) -> Any:
        """Value of the argument ``name``, or Unknown."""
        argument = self.argument(name)
        if argument is not None:
            return argument.value
        return Unknown("**kwargs follow") if self.call.is_open else default

    def location(self, name: str) -> Location:
        """Where the argument stands, else the constructor that lacks it."""
        argument = self.argument(name)
        return self.call.location if argument is None else argument.location

    def change(self, run: Run, parameters: Mapping[str, Any]) -> Change:
        """The change that passes ``parameters`` to this constructor."""
        return write_call(run, self.call, parameters)


def write_call(run: Run, call: Call, parameters: Mapping[str, Any]) -> Change:
    """The change that passes ``parameters`` as keywords to ``call``."""
    found = {name: _argument(call, name) for name in parameters}
    given = {name: argument for name, argument in found.items() if argument is not None}
    return write_in_call(run, call, given, parameters)


def training_loaders(run: Run) -> tuple[Loader, ...]:
    """The DataLoaders that feed training on a GPU, as far as the code shows it."""
    files = [file for file in run.python if not is_test_file(file.path)]
    on_gpu = any(uses_gpu(file) for file in files) or _is_launched_on_gpus(run)
    if not on_gpu and any(_trains(file) for file in files):
        return ()  # trains in sight, and on the CPU
    found: list[Loader] = []
    for file in files:
        found.extend(
            Loader(call, file, on_gpu)
            for call in file.calls_to(*_LOADERS)
            if _feeds_training(file, call) and not _is_in_memory(file, call)
        )
    return tuple(found)


def uses_gpu(file: PythonFile) -> bool:
    """Whether code of ``file`` names a CUDA device or a library that picks one."""
    for call in file.calls:
        if call.method == "cuda" or call.name.startswith(_GPU_CALLS):
            return True
        if any(_names_cuda(argument) for argument in _arguments(call)):
            return True
    return any("cuda" in text for s in file.bindings.values() for text in _texts(s.value))


def _arguments(call: Call) -> Iterator[Argument]:
    yield from call.positional
    yield from call.keywords.values()


def _names_cuda(argument: Argument) -> bool:
    return "cuda" in argument.text or any("cuda" in text for text in _texts(argument.value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Unknown):
        yield value.reason
        yield from (c for c in value.candidates if isinstance(c, str))


def _is_launched_on_gpus(run: Run) -> bool:
    return run.launcher.name in ("torchrun", "deepspeed", "accelerate")


def _trains(file: PythonFile) -> bool:
    return any(loop.trains for loop in file.loops) or any(
        call.method == "backward" for call in file.calls
    )


def _argument(call: Call, name: str) -> Optional[Argument]:
    if name in call.keywords:
        return call.keywords[name]
    if name in _POSITIONS and _POSITIONS.index(name) < len(call.positional):
        return call.positional[_POSITIONS.index(name)]
    return None


def _feeds_training(file: PythonFile, call: Call) -> bool:
    dataset = _argument(call, "dataset")
    names = (call.assigned_to, call.scope, dataset.text if dataset else "")
    if any(_EVALUATES.search(name) for name in names):
        return False
    name = call.assigned_to
    if name and any(loop.trains and loop.iterable == name for loop in file.loops):
        return True
    shuffle, sampler = _argument(call, "shuffle"), _argument(call, "sampler")
    if shuffle is not None and shuffle.value is True:
        return True
    return sampler is not None or any("train" in name.lower() for name in names)


def _is_in_memory(file: PythonFile, call: Call) -> bool:
    """Tensors in memory, or a dataset that hands out rows once: workers do not help there."""
    dataset = _argument(call, "dataset")
    if dataset is None:
        return False
    makers = _makers(file, dataset.text)
    if _IN_MEMORY & makers or _touches_gpu(file):
        return True
    iterable = {c.name for c in file.classes if any("IterableDataset" in b for b in c.bases)}
    # Which class made the dataset is not always in sight; in doubt it is the iterable one.
    return bool(iterable & makers) or bool(iterable and not makers) or _is_streamed(file)


def _is_streamed(file: PythonFile) -> bool:
    calls = file.calls_to("datasets.load_dataset")
    return any("streaming" in c.keywords and c.keywords["streaming"].value is True for c in calls)


def _makers(file: PythonFile, text: str, depth: int = 3) -> set[str]:
    """Last names of the calls that ``text`` was made by, through random_split and the like."""
    head = re.match(r"[\w.]+(?=\()", text)
    if head is not None:
        return {head.group().rpartition(".")[2]}
    found = set()
    for call in file.calls:
        if call.assigned_to and text in call.assigned_to.replace(" ", "").split(","):
            found.add(call.method)
            if call.method in _WRAPPERS and call.positional and depth:
                found |= _makers(file, call.positional[0].text, depth - 1)
    return found


def _touches_gpu(file: PythonFile) -> bool:
    """Whether a dataset or collate function moves data to the GPU: workers would fail."""
    for call in file.calls:
        if "__getitem__" in call.scope or "collate" in call.scope:
            moves = call.method == "to" and any("cuda" in a.text for a in _arguments(call))
            if moves or call.method == "cuda":
                return True
    return False


def merged(judgements: Iterable[Judgement], otherwise: Judgement) -> Judgement:
    """One judgement about several places: the gravest, with the evidence and findings of all."""
    found = [j for j in judgements if j.status in _GRAVITY]
    if not found:
        return otherwise
    worst = min(found, key=lambda j: _GRAVITY.index(j.status))
    return replace(
        worst,
        evidence=tuple(e for j in found if j.status is worst.status for e in j.evidence),
        findings=tuple(f for j in found for f in j.findings),
    )
