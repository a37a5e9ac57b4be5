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
from flake8_gpu_training.frameworks.reading import find, is_off, is_true, parsed
from flake8_gpu_training.frameworks.tables import table_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

ARGUMENTS = "transformers 4.57.6 and 5.24.0, training_args.py"
TRAINER = "transformers 4.57.6 and 5.24.0, trainer.py"

_NOT_TRAINER = Text("非 Transformers Trainer 任务", "not a run of the Transformers Trainer")
TOO_OLD = Text("该版本的 Transformers 没有此参数", "this release of Transformers does not have it")
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
    source = _where_read(run, names[0], default) or ARGUMENTS
    return parameter(run, *names, default=default, source=source)


_READ_BEFORE = "4.25.1"
"""A release before those of the table whose defaults were read, too."""
_NOT_YET = frozenset(
    """
    torch_empty_cache_steps neftune_noise_alpha save_only_model liger_kernel_config
    torch_compile_backend torch_compile_mode enable_jit_checkpoint parallelism_config
    """.split()  # noqa: SIM905
)
"""Parameters that release does not have."""


def _where_read(run: Run, name: str, default: Any) -> str:
    """The releases around the pinned one that have the default; empty where none is pinned."""
    table, pinned = table_of("transformers"), run.versions.get("transformers", "")
    if table is None or not pinned or parsed(pinned) >= _COVERED:
        return ""
    release = table.release(pinned)
    spans = table.spans("TrainingArguments", name)
    alike = [
        (first, last) for first, last, facts in spans if facts.get("default", _NONE) == default
    ]
    first = last = release
    for start, end in alike:
        last = max(last, end) if start <= last + 1 else last
    for start, end in reversed(alike):
        first = min(first, start) if end >= first - 1 else first
    is_older = parsed(pinned) < parsed(table.versions[0])
    if not any(start <= release <= end for start, end in alike) or (
        is_older and (name in _NOT_YET or parsed(pinned) < parsed(_READ_BEFORE))
    ):
        return ""
    oldest = _READ_BEFORE if is_older else table.versions[first]
    return f"transformers {oldest} to {table.versions[last]}, training_args.py"


_NONE = object()
_COVERED = (4, 57, 6)
"""From this release on :data:`ARGUMENTS` names one on either side."""


def missing(run: Run, name: str) -> Optional[Judgement]:
    """The answer where no release that the run may get has the parameter; None where one has."""
    pinned = parsed(run.versions.get("transformers", ""))
    if pinned < (4, 30) and name in _NOT_YET and find(run, name) is None:
        return cannot_apply(TOO_OLD)
    told = at_hand(run, "transformers")
    if told is None or find(run, name) is not None:
        return None
    if any(told.table.knows("TrainingArguments", name, release) for release in told.allowed):
        return None
    return cannot_apply(TOO_OLD)


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
