"""What the checks of the Transformers Trainer's own options share."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Optional

from flake8_gpu_training.checks._judging import Judge, cannot_apply, cannot_tell, of_training
from flake8_gpu_training.checks._settings import parameter
from flake8_gpu_training.checks.base import Item, Judgement
from flake8_gpu_training.facts import Call, Setting, known
from flake8_gpu_training.frameworks.at_hand import at_hand
from flake8_gpu_training.frameworks.reading import find, is_off, is_true
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

ARGUMENTS = "transformers 4.57.6 and 5.24.0, training_args.py"
TRAINER = "transformers 4.57.6 and 5.24.0, trainer.py"

_NOT_TRAINER = Text("非 Transformers Trainer 任务", "not a run of the Transformers Trainer")
_TOO_OLD = Text("该版本的 Transformers 没有此参数", "this release of Transformers does not have it")
_EVALUATION = ("eval_strategy", "evaluation_strategy")


def of_trainer(judge: Judge) -> Judge:
    """``judge`` for training runs of the Trainer, whose parameters are its own."""

    @functools.wraps(judge)
    @of_training(alone=True)
    def judged(run: Run) -> Judgement:
        return judge(run) if run.framework == "hf_trainer" else cannot_apply(_NOT_TRAINER)

    return judged


def item(
    category: str, identifier: str, points: float, group: str = "", variant: str = ""
) -> tuple[Item, ...]:
    """An item of the Trainer's audit."""
    return (Item("transformers", category, identifier, points, group, variant),)


def option(run: Run, *names: str, default: Any = None) -> Setting:
    """A parameter of TrainingArguments, with where its default was read."""
    return parameter(run, *names, default=default, source=ARGUMENTS)


def missing(run: Run, name: str) -> Optional[Judgement]:
    """The answer where no release that the run may get has the parameter; None where one has."""
    told = at_hand(run, "transformers")
    if told is None or find(run, name) is not None:
        return None
    if any(told.table.knows("TrainingArguments", name, release) for release in told.allowed):
        return None
    return cannot_apply(_TOO_OLD)


def evaluates(run: Run) -> Optional[bool]:
    """Whether the run evaluates its model as well; None when that cannot be told."""
    strategy = find(run, *_EVALUATION)
    if strategy is not None:
        return None if not known(strategy.value) else not is_off(strategy.value)
    if is_true(find(run, "do_eval")):
        return True
    if any("evaluate" in program.methods for program in run.python):
        return True
    return None if run.is_open else False


def unless_evaluating(run: Run) -> Optional[Judgement]:
    """The answer for runs that do not evaluate; None for those that do."""
    answer = evaluates(run)
    if answer is None:
        return cannot_tell(Text("是否评估未知", "whether it evaluates is not known"))
    return None if answer else cannot_apply(Text("该任务不做评估", "the run does not evaluate"))


def trainers(run: Run) -> Iterator[Call]:
    """Calls that build a Trainer of Transformers, of TRL, or of the project's own."""
    for program in run.python:
        for call in program.calls:
            if call.method.endswith("Trainer") and (call.keywords or call.positional):
                yield call
