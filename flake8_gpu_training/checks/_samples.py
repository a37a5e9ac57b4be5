"""How a program makes its samples: held in memory, opened one by one, tokenised late."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Optional

from flake8_gpu_training.checks import _storage as storage
from flake8_gpu_training.checks._loaders import is_in_memory
from flake8_gpu_training.checks._programs import calls, first_call, imports
from flake8_gpu_training.facts import Argument, Call, PythonFile
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

IN_MEMORY = Text("样本整体位于内存中", "the samples are held in memory as one array")

_SMALL_SETS = (".MNIST", ".FashionMNIST", ".KMNIST", ".CIFAR10", ".CIFAR100", ".SVHN", ".USPS")
_ENCODES = ("__call__", "encode", "encode_plus", "batch_encode_plus", "tokenize")
_COLLATES = re.compile(r"(?i)collat\w*(?:\.__call__)?$")


def held_in_memory(run: Run) -> bool:
    """Whether the samples are tensors in memory, made up, or one small array on the disk."""
    if storage.synthetic(run) is not None or is_in_memory(run):
        return True
    return first_call(run, *_SMALL_SETS) is not None


def opened_per_sample(run: Run) -> Optional[Call]:
    """The call with which a dataset opens an image file for each sample."""
    return next((c for c in calls(run, "PIL.Image.open") if c.scope.endswith("__getitem__")), None)


def decodes_images(run: Run) -> bool:
    """Whether the program may decode or augment images: it has a library for that, and its
    model is not known to take text alone."""
    if run.model.kind in ("LLM", "encoder", "encoder-decoder", "embedding"):
        return False
    return imports(run, "torchvision", "PIL", "diffusers", "timm", "cv2", "decord") is not None


def streaming_call(run: Run) -> Optional[Call]:
    """The call that makes a streamed dataset."""
    for call in calls(run, "datasets.load_dataset"):
        argument = call.keywords.get("streaming")
        if argument is not None and argument.value is True:
            return call
    return first_call(run, ".WebDataset", ".StreamingDataset")


def tokenizer_calls(file: PythonFile) -> Iterator[Call]:
    """Calls of a tokenizer on text."""
    for call in file.calls:
        owned = call.name.rpartition(".")[0].endswith("tokenizer")
        if call.method == "tokenizer" or (owned and call.method in _ENCODES):
            yield call


def tokenized_late(run: Run) -> Optional[Call]:
    """The call that tokenises a sample when it is fetched or collated.

    Beside images it costs next to nothing, and is none of our business.
    """
    if decodes_images(run):
        return None
    for file in run.python:
        lazily = set(_lazy_functions(file))
        for call in tokenizer_calls(file):
            function = call.scope.rpartition(".")[2]
            if function == "__getitem__" or _COLLATES.search(call.scope) or function in lazily:
                return call
    return None


def _lazy_functions(file: PythonFile) -> Iterator[str]:
    """Functions given to ``set_transform`` and ``with_transform``, which call them per batch."""
    for call in file.calls:
        if call.method in ("set_transform", "with_transform"):
            for argument in (*call.positional, *call.keywords.values()):
                yield argument.text.rpartition(".")[2]


def tokenized_by_map(run: Run) -> Optional[Call]:
    """``dataset.map(tokenize, …)`` with a function that tokenises."""
    for file in run.python:
        for call in file.calls:
            given = call.positional[:1] or tuple(
                call.keywords[name] for name in ("function",) if name in call.keywords
            )
            if call.method == "map" and given and _tokenizes(file, given[0]):
                return call
    return None


def _tokenizes(file: PythonFile, function: Argument) -> bool:
    """Whether a function, given by name or as a lambda, calls a tokenizer."""
    name = function.text.rpartition(".")[2]
    if "tokenizer(" in function.text or re.match(r"_?(?:tokenize|preprocess|encode)", name):
        return True
    return any(call.scope.rpartition(".")[2] == name for call in tokenizer_calls(file))


# Frameworks that load the data themselves, with Hugging Face datasets.
_LOADS_DATASETS = ("swift", "llamafactory", "flow_factory")


def keeps_samples_in_arrow(run: Run) -> bool:
    """Whether Hugging Face datasets is known to hold the samples.

    Transformers' Trainer takes any dataset: the program has to make one of that library, or
    have no code of its own in sight (a recipe that TRL's scripts load).
    """
    if run.framework != "hf_trainer":
        return run.framework in _LOADS_DATASETS
    if not run.python:
        return run.command is not None and run.command.name.rpartition("/")[2] == "trl"
    if imports(run, "datasets") is not None:
        return True
    return first_call(run, "datasets.load_dataset", "datasets.load_from_disk") is not None
