"""The parameters of ms-swift's and LLaMA-Factory's commands as the source that a project holds
declares them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from flake8_gpu_training.facts import Setting
from flake8_gpu_training.sources.argument_classes import ArgumentClass, argument_classes

# From 2.x (swift/llm/utils/argument.py) over 3.x (swift/llm/argument) to 4.x (swift/arguments).
_FILES = re.compile(
    r"swift/(?:llm/utils/argument|llm/argument/[\w/]+|arguments/[\w/]+|megatron/arguments?/\w+"
    r"|(?:trainers|rlhf_trainers)/(?:\w+_)?(?:arguments|args_mixin))\.py"
)
_CLASSES: Mapping[str, tuple[str, ...]] = {
    "sft": ("SftArguments", "TrainArguments"),
    "pt": ("PretrainArguments", "PtArguments", "TrainArguments", "SftArguments"),
    "rlhf": ("RLHFArguments",),
    "megatron sft": ("MegatronSftArguments", "MegatronTrainArguments"),
    "megatron pt": (
        "MegatronPretrainArguments",
        "MegatronTrainArguments",
        "MegatronSftArguments",
    ),
    "megatron rlhf": ("MegatronRLHFArguments",),
}
"""By command, the class of its arguments: the first one that the source has."""

Declared = Mapping[str, Mapping[str, Setting]]
"""By command and name, the default; what a method puts in its place is ``name=``."""


def declared_in(folder: str, paths: Iterable[str], read: Callable[[str], str]) -> Declared:
    """What the source in ``folder`` of a project declares; nothing of what cannot be found."""
    start = f"{folder}/" if folder else ""
    files = [path for path in sorted(paths) if path.startswith(start)]
    classes = {
        one.name: one
        for path in files
        if _FILES.fullmatch(path[len(start) :])
        for one in argument_classes(read(path), path)
    }
    found: dict[str, Mapping[str, Setting]] = {}
    for command, names in _CLASSES.items():
        name = next((one for one in names if one in classes), "")
        if name:
            found[command] = dict(_fields(classes[name], classes, frozenset()))
    return found


_OF_LLAMAFACTORY = re.compile(r"(?:src/)?(?:llamafactory|llmtuner)/hparams/\w+\.py")
_OF_EACH_FILE = frozenset({"model_name_or_path", "finetuning_type", "cutoff_len"})
LLAMAFACTORY = "llamafactory train"
"""The command of LLaMA-Factory among the declared ones."""


def declared_by_llamafactory(
    folder: str, paths: Iterable[str], read: Callable[[str], str]
) -> Declared:
    """What LLaMA-Factory's source in ``folder`` declares; nothing where a file of it is lost."""
    start = f"{folder}/" if folder else ""
    found = {
        name: setting
        for path in sorted(paths)
        if path.startswith(start) and _OF_LLAMAFACTORY.fullmatch(path[len(start) :])
        for one in argument_classes(read(path), path)
        for name, setting in one.fields.items()
    }
    return {LLAMAFACTORY: found} if found.keys() >= _OF_EACH_FILE else {}


def _fields(
    one: ArgumentClass, classes: Mapping[str, ArgumentClass], above: frozenset[str]
) -> Iterator[tuple[str, Setting]]:
    """Fields and what is put in their place, inherited ones first."""
    above = above | {one.name}
    for base in reversed(one.bases):
        if base in classes and base not in above:
            yield from _fields(classes[base], classes, above)
    yield from one.fields.items()
    yield from ((f"{name}=", setting) for name, setting in one.filled.items())
