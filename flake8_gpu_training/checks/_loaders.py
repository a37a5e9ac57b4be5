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
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_LOADERS = (
    "torch.utils.data.DataLoader",
    "torch.utils.data.dataloader.DataLoader",
    "torchdata.stateful_dataloader.StatefulDataLoader",
    "streaming.StreamingDataLoader",
    "webdataset.WebLoader",
)
_TIMM = "timm.data.create_loader"
# timm 1.0.31, data/loader.py: other defaults than PyTorch's, and other positions.
_TIMM_DEFAULTS: Mapping[str, Any] = {"num_workers": 1, "persistent_workers": True}
_TIMM_POSITIONS = ("dataset", "input_size", "batch_size", "is_training")
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
# Loaders of datasets that share their shards among the workers.
_SHARDED = ("streaming.StreamingDataLoader", "webdataset.WebLoader")
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
        if self.call.is_open:
            return Unknown("**kwargs follow")
        return _TIMM_DEFAULTS.get(name, default) if _is_timm(self.call) else default

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
    files = _programs(run)
    on_gpu = any(uses_gpu(file) for file in files) or _is_launched_on_gpus(run)
    if _trains_on_cpu(run):
        return ()
    return tuple(
        Loader(call, file, on_gpu) for file, call in _feeding(run) if not _is_in_memory(file, call)
    )


def without_loaders(run: Run) -> Optional[Text]:
    """Why nothing is to be said of loading although the program was read; None when there is
    no reason in sight."""
    if _trains_on_cpu(run):
        return Text("在 CPU 上训练", "it trains on the CPU")
    if is_in_memory(run):
        return Text("样本已作为张量在内存中", "the samples are tensors in memory already")
    mapped = any(True for file in _programs(run) for _ in file.calls_to("numpy.memmap"))
    if mapped and not any("DataLoader" in file.methods for file in run.python):
        return Text(
            "batch 直接从内存映射中切取", "batches are cut from a memory map, without a loader"
        )
    return None


def is_in_memory(run: Run) -> bool:
    """Whether every loader that feeds training hands out tensors that are in memory."""
    feeding = list(_feeding(run))
    return bool(feeding) and all(_hands_out_memory(file, call) for file, call in feeding)


def _programs(run: Run) -> list[PythonFile]:
    return [file for file in run.python if not is_test_file(file.path)]


def _feeding(run: Run) -> Iterator[tuple[PythonFile, Call]]:
    """The constructors of loaders that feed training, with their files."""
    for file in _programs(run):
        for call in file.calls_to(*_LOADERS, _TIMM):
            if _feeds_training(run, file, call) and _is_loaded_by(run, call):
                yield file, call


def _is_loaded_by(run: Run, call: Call) -> bool:
    """Whether the run itself reads a loader: a Trainer makes its own, unless a method of its
    subclass does."""
    if run.framework != "hf_trainer" or call.loop is not None:
        return True
    return "get_train_dataloader" in call.scope or not any(
        method.endswith("Trainer") for file in run.python for method in file.methods
    )


def _trains_on_cpu(run: Run) -> bool:
    """Whether the program trains in sight, and names no GPU and no launcher of GPUs."""
    files = _programs(run)
    if any(uses_gpu(file) for file in files) or _is_launched_on_gpus(run):
        return False
    return any(_trains(file) for file in files)


def _is_timm(call: Call) -> bool:
    return call.name == _TIMM


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
    positions = _TIMM_POSITIONS if _is_timm(call) else _POSITIONS
    if name in positions and positions.index(name) < len(call.positional):
        return call.positional[positions.index(name)]
    return None


def _feeds_training(run: Run, file: PythonFile, call: Call) -> bool:
    dataset = _argument(call, "dataset")
    names = (call.assigned_to, call.scope, dataset.text if dataset else "")
    if any(_EVALUATES.search(name) for name in names):
        return False
    name = call.assigned_to
    if name and any(loop.trains and loop.iterable == name for loop in file.loops):
        return True
    if _is_iterated_where_made(file, call) or _is_given_to_fit(file, call):
        return True
    if _is_made_for_training(run, call):
        return True
    if _is_timm(call):
        training = _argument(call, "is_training")
        return training is not None and training.value is True
    if name and _is_only_looked_at(file, call):
        return False
    shuffle, sampler = _argument(call, "shuffle"), _argument(call, "sampler")
    if shuffle is not None and shuffle.value is True:
        return True
    return sampler is not None or any("train" in name.lower() for name in names)


def _is_iterated_where_made(file: PythonFile, call: Call) -> bool:
    """Whether a training loop iterates the constructor itself: ``for x in DataLoader(...):``."""
    return not call.assigned_to and any(
        loop.trains
        and _called(loop.iterable) == call.method
        and 0 <= call.location.line - loop.location.line <= loop.iterable.count("\n")
        for loop in file.loops
    )


def _called(text: str) -> str:
    """Last name of the call that ``text`` begins with, or nothing."""
    head = _CALLED.match(text)
    return head.group(1) if head is not None else ""


_CALLED = re.compile(r"(?:[\w.]+\.)?(\w+)\(")
_FIT_KEYWORDS = ("train_dataloaders", "train_dataloader", "datamodule")


def _is_given_to_fit(file: PythonFile, call: Call) -> bool:
    """Whether a trainer's ``fit`` (Lightning's) gets the loader as its training data."""
    for fit in file.calls:
        if fit.method != "fit":
            continue
        given = [*fit.positional[:2], *(fit.keywords.get(name) for name in _FIT_KEYWORDS)]
        for argument in given:
            if argument is None:
                continue
            if call.assigned_to and argument.text == call.assigned_to:
                return True
            if argument.location == call.location:
                return True
    return False


def _is_made_for_training(run: Run, call: Call) -> bool:
    """Whether a function makes the loader whose result a training loop iterates."""
    function = call.scope.rpartition(".")[2]
    if not function:
        return False
    for file in _programs(run):
        if any(loop.trains and _called(loop.iterable) == function for loop in file.loops):
            return True
        made = {other.assigned_to for other in file.calls if other.method == function} - {""}
        if any(loop.trains and loop.iterable in made for loop in file.loops):
            return True
        if any(other.method == function and _is_given_to_fit(file, other) for other in file.calls):
            return True
    return False


def _is_only_looked_at(file: PythonFile, call: Call) -> bool:
    """Whether loops read the loader, none of them trains, and nothing else is given it."""
    name = call.assigned_to
    if not any(loop.iterable == name for loop in file.loops):
        return False
    given = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)")
    return not any(
        given.search(argument.text)
        for other in file.calls
        if other is not call and other.name not in ("enumerate", "tqdm", "len")
        for argument in _arguments(other)
    )


def _hands_out_memory(file: PythonFile, call: Call) -> bool:
    dataset = _argument(call, "dataset")
    if dataset is None:
        return False
    return bool(_IN_MEMORY & _makers(file, dataset.text)) or _TENSOR.match(dataset.text) is not None


_TENSOR = re.compile(r"torch\.(?:zeros|ones|randn?|randint|arange|tensor)\(")


def _is_in_memory(file: PythonFile, call: Call) -> bool:
    """Tensors in memory, or a dataset that hands out rows once: workers do not help there."""
    dataset = _argument(call, "dataset")
    if dataset is None or call.name in _SHARDED:
        return False
    makers = _makers(file, dataset.text)
    if _hands_out_memory(file, call) or _touches_gpu(file):
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
    every = list(judgements)
    found = [j for j in every if j.status in _GRAVITY]
    if not found:
        return every[0] if every else otherwise
    worst = min(found, key=lambda j: _GRAVITY.index(j.status))
    return replace(
        worst,
        evidence=tuple(e for j in found if j.status is worst.status for e in j.evidence),
        findings=tuple(f for j in found for f in j.findings),
    )
