"""Loaders of PyTorch programs: batch sizes, workers and streams."""

from __future__ import annotations

import dataclasses
import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any, Optional

from flake8_gpu_training.facts import (
    Argument,
    Call,
    Loop,
    Origin,
    PythonFile,
    Setting,
    Unknown,
    known,
)
from flake8_gpu_training.frameworks.accumulation import parts_of_a_step
from flake8_gpu_training.frameworks.pytorch_program import (
    EVALUATION,
    Program,
    argument_of,
    calls_of,
    given_by,
    is_evaluation,
)
from flake8_gpu_training.frameworks.reading import find, number, practice, truth
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.sources.python import CUT


def training_loaders(run: Run) -> list[Call]:
    """``DataLoader`` calls whose batches the model is trained on, as far as names tell."""
    calls = calls_of(run)
    loaders = [
        call
        for call in calls
        if call.method in ("DataLoader", "StatefulDataLoader")
        and not is_evaluation(call)
        and not _measures(run, call)
    ]
    trained = {
        loop.iterable for file in run.python for loop in file.loops if loop.trains and loop.iterable
    }
    chosen = [call for call in loaders if call.assigned_to and call.assigned_to in trained]
    if len(chosen) < len(loaders) and _trains_otherwise(run, chosen):
        return loaders
    return chosen or loaders


_MEASURES = r"val|valid|validat\w*|test|testing|eval\w*"
_DATA_TO_MEASURE = re.compile(
    rf"(?i)(?:^|[._\[\"'])(?:{_MEASURES})(?:set|ds|data|dataset|split)?(?=[._\]\"']|$)"
)
_FILE_TO_MEASURE = re.compile(rf"(?i)(?:^|[_-])(?:{_MEASURES}|infer\w*|predict\w*)[_.-]")
_NAME = re.compile(r"[\w.\[\]\"']+")


def _measures(run: Run, loader: Call) -> bool:
    """Whether a loader is one of evaluation by its data, or by a file beside the script."""
    dataset = argument_of(loader, "dataset", position=0)
    text = dataset.text if dataset is not None and _NAME.fullmatch(dataset.text) else ""
    if _DATA_TO_MEASURE.search(text) and "train" not in f"{loader.assigned_to} {text}".lower():
        return True
    path = loader.location.path
    name = posixpath.basename(path).lower()
    beside = path != run.python[0].path and "train" not in name
    return beside and _FILE_TO_MEASURE.search(name) is not None


def _is_of_another_loop(run: Run, loader: Call) -> bool:
    """Whether the loop over a loader does not go backward, and one over something else does."""
    path, name = loader.location.path, loader.assigned_to
    over = [
        loop
        for file in run.python
        for loop in file.loops
        if file.path == path and loop.iterable == name
    ]
    if not name or not over or any(loop.trains for loop in over):
        return False
    # A loop that counts may be the inner one of a step.
    return _trains_otherwise(run, [loader], ("range(",))


def _trains_otherwise(run: Run, loaders: list[Call], aside: tuple[str, ...] = ()) -> bool:
    """Whether a loop goes backward on what it does not take from ``loaders``.

    Loops that begin as in ``aside``, and those without an end, count only where it is empty.
    """
    names = {call.assigned_to for call in loaders}
    return any(
        call.loop is not None
        and names.isdisjoint(over := set(_iterables(call.loop)))
        and (not aside or any(each and not each.startswith(aside) for each in over))
        for file in run.python
        for call in file.calls
        if call.method in ("backward", "manual_backward")
    )


def _iterables(loop: Optional[Loop]) -> Iterator[str]:
    while loop is not None:
        yield loop.iterable
        loop = loop.parent


def batching(program: Program) -> dict[str, Setting]:
    """The batch size of a script that makes its batches itself, without a ``DataLoader``.

    A bare ``batch_size`` may be that of all ranks together, unless gradient accumulation is
    set beside it.
    """
    names = ["micro_batch_size", "device_batch_size", "batch_size_per_gpu", "batch_size_per_device"]
    if find(program.run, "gradient_accumulation_steps") is not None:
        names.append("batch_size")
    setting = find(program.run, *names)
    if setting is None or number(setting.value) is None or list(program.named("DataLoader")):
        return {}
    return {"micro_batch_size": practice("micro_batch_size", setting.value, setting)}


_DEALERS = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel")


def shared_out(program: Program, found: Mapping[str, Setting]) -> dict[str, Setting]:
    """A loader's batch is not a GPU's: ``nn.DataParallel`` deals it out, a step cuts it up."""
    name = "micro_batch_size"
    batch = found.get(name)
    if batch is None or not batch.known:
        return {}
    if parts_of_a_step(program.run) is not None:
        reason = f"a step takes {batch.value} samples in parts"
    elif any(CUT in (file.mentions or ()) for file in program.run.python):
        reason = f"a step cuts {batch.value} samples into parts"
    elif any(call.name.startswith("grad_cache.") for call in program.named("GradCache")):
        reason = f"GradCache takes {batch.value} samples in chunks"
    elif (other := _product(program, batch)) is not None:
        reason = f"{other} samples may be for several GPUs or steps"
    elif any(_goes_through_batch(file) for file in program.run.python):
        reason = f"the loop goes through the {batch.value} samples in parts"
    elif _deals_out(program):
        reason = f"nn.DataParallel deals {batch.value} samples out to its GPUs"
    elif _splits_batches(program):
        reason = f"Accelerate splits {batch.value} samples among the processes"
    else:
        return {}
    return {name: dataclasses.replace(batch, value=Unknown(reason))}


_FACTORS = re.compile(r"[A-Za-z_][\w.()]*\s*\*\s*[A-Za-z_]")


def _product(program: Program, batch: Setting) -> Optional[str]:
    """The text of a batch that is a size times something that is not a plain number."""
    for call in training_loaders(program.run):
        size = argument_of(call, "batch_size", position=1)
        if size is not None and size.location == batch.location and _FACTORS.search(size.text):
            return size.text
    return None


def _goes_through_batch(file: PythonFile) -> bool:
    """Whether a loop trains on the parts of what the loop over the batches gives."""
    for loop in file.loops:
        around = loop.parent
        if not loop.trains or around is None or not around.over_batches:
            continue
        names = re.findall(r"[A-Za-z_]\w*", around.target)
        if set(names[-1:]) & set(re.findall(r"[A-Za-z_]\w*", loop.iterable)):
            return True
    return False


def _deals_out(program: Program) -> bool:
    """Whether ``nn.DataParallel`` copies the model of the only process to several GPUs."""
    classes = {
        item.name
        for file in program.run.python
        for item in file.classes
        for base in item.bases
        if base in _DEALERS or base in ("nn.DataParallel", "DataParallel")
    }
    wrapped = any(
        (call.name in _DEALERS or call.method in classes)
        and not EVALUATION.search(call.assigned_to)
        for call in program.calls
    )
    many = program.run.launcher.world_size
    return wrapped and many in (None, 1) and program.run.hardware.gpus_per_node != 1


def _splits_batches(program: Program) -> bool:
    """Whether ``split_batches`` makes the loader's batch that of all processes together."""
    if program.run.launcher.world_size == 1:
        return False
    for call in program.named("Accelerator", "DataLoaderConfiguration"):
        splits = argument_of(call, "split_batches")
        if splits is not None and (not known(splits.value) or truth(splits.value)):
            return True
    return False


def loading(run: Run) -> dict[str, Setting]:
    """What the training ``DataLoader`` calls in the run's code say; nothing without any."""
    loaders = training_loaders(run)
    if not loaders:
        return {}
    found: dict[str, Setting] = {}
    for name, keyword, position, default in (
        ("dataloader_workers", "num_workers", 5, 0),
        ("pin_memory", "pin_memory", 7, False),
        ("persistent_workers", "persistent_workers", -1, False),
    ):
        settings = [_loader_setting(name, keyword, position, default, c) for c in loaders]
        setting = _same(name, settings)
        if setting is not None:
            found[name] = setting
    found.update(_prefetch(loaders, found.get("dataloader_workers")))
    sizes = [_size_of(run, call) for call in loaders]
    if len(loaders) == 1 and sizes[0] is not None and _is_size(sizes[0].value):
        size = sizes[0]
        if size.text.strip() == "1" and _may_be_batches(run, loaders[0]):
            reason = "its items may be batches of their own"
            size = dataclasses.replace(size, value=Unknown(reason, (1,)))
        if _is_of_another_loop(run, loaders[0]):
            reason = f"the loop over {loaders[0].assigned_to} does not go backward"
            size = dataclasses.replace(size, value=Unknown(reason, (size.value,)))
        found["micro_batch_size"] = given_by("micro_batch_size", size.value, loaders[0], size)
    return found


_OF_BATCHES = re.compile(r"(?i)batch|bucket|chunk|episod|n_?way|pack|group|tokens|task|bag")


def _may_be_batches(run: Run, loader: Call) -> bool:
    """Whether a loader that takes one item each time may take ready-made batches."""
    dataset = argument_of(loader, "dataset", position=0)
    if "collate_fn" in loader.keywords or dataset is None:
        return True
    texts = [dataset.text]
    for call in (call for file in run.python for call in file.calls):
        if call.assigned_to and call.assigned_to == dataset.text:
            texts += [call.name, *call.keywords, *(a.text for a in call.positional)]
            texts += [argument.text for argument in call.keywords.values()]
    return any(_OF_BATCHES.search(text) for text in texts)


def _size_of(run: Run, loader: Call) -> Optional[Argument]:
    """The batch size a loader is given, or PyTorch's ``BatchSampler`` that it is given.

    Any other batch sampler makes batches of its own.
    """
    sampler = argument_of(loader, "batch_sampler", position=4)
    if sampler is None:
        return argument_of(loader, "batch_size", position=1)
    made = [
        call
        for file in run.python
        for call in file.calls
        if call.method == "BatchSampler"
        and call.name.startswith("torch.")
        and (call.assigned_to, call.scope) == (sampler.text, loader.scope)
    ]
    return argument_of(made[0], "batch_size", position=1) if len(made) == 1 else None


def _is_size(value: Any) -> bool:
    """Whether a value is a number, or one of several by a branch."""
    return bool(value.candidates) if isinstance(value, Unknown) else number(value) is not None


def _prefetch(loaders: list[Call], workers: Optional[Setting]) -> dict[str, Setting]:
    count = number(workers.value) if workers is not None else None
    default = None if count is None else (2 if count > 0 else None)
    settings = [
        _loader_setting("prefetch_factor", "prefetch_factor", -1, default, call) for call in loaders
    ]
    setting = _same("prefetch_factor", settings)
    if setting is None or (count is None and not setting.explicit):
        return {}
    return {"prefetch_factor": setting}


def _loader_setting(name: str, keyword: str, position: int, default: Any, call: Call) -> Setting:
    argument = argument_of(call, keyword, position=position)
    if argument is not None:
        return given_by(name, argument.value, call, argument)
    if call.is_open:
        reason = "arguments of the DataLoader are not all known"
        return Setting(name, Unknown(reason), call.location, Origin.CONSTRUCTOR)
    note = f"{call.method} at {call.location}: {keyword} {default} unless set"
    return Setting(name, default, None, Origin.DEFAULT, note)


def _same(name: str, settings: list[Setting]) -> Optional[Setting]:
    """The setting on which all agree; the first unknown one; else unknown."""
    for setting in settings:
        if not known(setting.value):
            return setting
    if len({repr(setting.value) for setting in settings}) == 1:
        return settings[0]
    candidates = tuple(setting.value for setting in settings)
    return Setting(name, Unknown("loaders differ", candidates), settings[0].location)


def reading(program: Program) -> dict[str, Setting]:
    """Whether data sets of the Hub are streamed."""
    loads = [c for c in program.named("load_dataset") if c.name.startswith("datasets.")]
    if not loads:
        return {}
    settings = []
    for call in loads:
        argument = argument_of(call, "streaming")
        if argument is not None:
            settings.append(given_by("streaming", argument.value, call, argument))
        elif call.is_open:
            return {}
        else:
            note = "datasets: load_dataset(streaming=False)"
            settings.append(Setting("streaming", False, None, Origin.DEFAULT, note))
    setting = _same("streaming", settings)
    return {"streaming": setting} if setting is not None else {}
