"""The reachable code of a PyTorch program, and what may be concluded from its calls and words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Optional

from flake8_gpu_training.facts import Argument, Call, Condition, Origin, Setting, known
from flake8_gpu_training.frameworks.launched import is_launch_unread
from flake8_gpu_training.frameworks.lightning import trainer_of
from flake8_gpu_training.runs.model import Run, RunKind

SHARDING_WORDS = (
    "deepspeed",
    "fsdp",
    "fully_shard",
    "fullysharded",
    "megatron",
    "colossalai",
    "parallelize",
    "parallelism",
    "tensor_parallel",
    "pipeline_parallel",
    "sequence_parallel",
    "context_parallel",
    "ulysses",
)
_BACKWARD = ("backward", "manual_backward")
# Libraries with a training loop of their own, which a configuration drives.
_ENGINES = frozenset(
    """
    mmengine mmcv mmdet mmseg mmcls mmpretrain mmyolo mmaction mmpose mmdet3d mmocr mmagic
    detectron2 fastai ignite composer catalyst ultralytics nemo fairseq fairseq2 espnet
    espnet2 speechbrain sentence_transformers setfit simpletransformers flair torchtune litgpt
    axolotl unsloth_zoo torchpack ppdet paddle tensorflow keras skorch stable_baselines3
    sb3_contrib ray rl_games skrl tianshou openrlhf allennlp monai detrex
    """.split()  # noqa: SIM905
)
EVALUATION = re.compile(r"(?i)(?:^|[._])(?:val|valid|validation|test|eval|dev|infer|predict)")
MISSING = "the DeepSpeed configuration was not found"


def calls_of(run: Run) -> list[Call]:
    """The calls of the run's code, but those that a module makes as a script of its own."""
    files = run.python
    calls = list(files[0].calls) if files else []
    return calls + [call for file in files[1:] for call in file.calls if not call.of_script]


class Program:
    """The reachable code of a run, and what may be concluded from it."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.calls: list[Call] = calls_of(run)
        mentions = [file.mentions for file in run.python]
        self.words: frozenset[str] = frozenset().union(*(m for m in mentions if m is not None))
        self.is_searched = (
            bool(mentions)
            and all(m is not None for m in mentions)
            and not run.is_open
            and run.handed_over is None
            and run.kind is RunKind.TRAIN
            and not any(file.problems for file in run.python)
            and self._has_loop()
        )

    def _has_loop(self) -> bool:
        """Whether the training loop is in sight, or its owner is one whose defaults are known.

        Where a library has the loop, the silence of the code proves nothing.
        """
        if any(call.method in _BACKWARD for call in self.calls):
            return True
        imported = {i.module.partition(".")[0] for f in self.run.python for i in f.imports}
        return imported.isdisjoint(_ENGINES)

    def silent(self, *words: str) -> bool:
        """Whether the code, all of it searched, has none of ``words``."""
        return self.is_searched and self.words.isdisjoint(words)

    def named(self, *methods: str) -> Iterator[Call]:
        """Calls by the last part of their name."""
        return (call for call in self.calls if call.method in methods)

    def first(self, *methods: str) -> Optional[Call]:
        """The first such call, or None."""
        return next(self.named(*methods), None)

    def lightning(self) -> Optional[Call]:
        """The call of Lightning's ``Trainer`` or ``Fabric``."""
        return trainer_of(self.calls)

    def accelerator(self) -> Optional[Call]:
        """The call of Accelerate's ``Accelerator``."""
        found = self.first("Accelerator")
        return found if found is not None and "accelerate" in found.name else None

    def is_on_cuda(self) -> bool:
        """Whether the code names CUDA, and no accelerator of another kind."""
        return "cuda" in self.words and self.words.isdisjoint(("torch_xla", "torch_npu"))

    def is_launch_open(self) -> bool:
        """Whether a launch that was not seen, or its configuration, may say more."""
        if is_launch_unread(self.run):
            return True
        unseen = self.run.command is None and self.run.accelerate is None
        return unseen and self.accelerator() is not None


def given_by(name: str, value: Any, call: Call, argument: Optional[Argument] = None) -> Setting:
    """A setting that a call makes, by its argument where one is given."""
    if argument is None:
        return Setting(name, value, call.location, Origin.CONSTRUCTOR, f"{call.name}(...)")
    if not known(argument.value):
        value = argument.value
    return Setting(
        name,
        value,
        argument.location,
        Origin.CONSTRUCTOR,
        f"{call.method}: {argument.written}",
        argument.text,
        argument.value_location if argument.text else None,
    )


def absent(name: str, value: Any, note: str) -> dict[str, Setting]:
    """The setting of a practice that the code was searched for in vain."""
    return {name: Setting(name, value, None, Origin.DERIVED, note)}


def argument_of(call: Call, *names: str, position: int = -1) -> Optional[Argument]:
    """An argument of a call, by the first of ``names`` or by its place."""
    for name in names:
        if name in call.keywords:
            return call.keywords[name]
    if 0 <= position < len(call.positional):
        return call.positional[position]
    return None


def missing_deepspeed(program: Program) -> Optional[Call]:
    """``deepspeed.initialize`` with a configuration that was not read: it would decide."""
    if program.run.deepspeed is not None:
        return None
    made = (c for c in program.named("initialize") if c.name.startswith("deepspeed"))
    return next(made, None)


def is_evaluation(call: Call) -> bool:
    """Whether a call is made for evaluation, by what it is assigned to and where it stands."""
    names = (call.assigned_to, call.scope.rpartition(".")[2])
    return any(name and EVALUATION.search(name) is not None for name in names)


_ON_SEVERAL = re.compile(
    r"(?i)distributed|world_?size|is_initialized|n_?gpus?\b|num_gpus|device_count|\brank"
    r"|\b(?:use_|is_|with_)?(?:ddp|dist_train|is_dist|multi_gpus?)\b"
)


def undecided(program: Program, made: list[Call]) -> Optional[Condition]:
    """What is asked before any of these calls, when nobody can tell the answer.

    Several ranks answer the questions whether there are several.
    """
    several = (program.run.launcher.world_size or 0) > 1
    left = [
        [c for c in call.conditions if not (several and c.holds and _ON_SEVERAL.search(c.text))]
        for call in made
    ]
    return left[0][-1] if all(left) else None
