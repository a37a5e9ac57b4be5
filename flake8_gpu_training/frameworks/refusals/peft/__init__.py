"""What the configurations of PEFT refuse (peft/tuners/*/config.py, __post_init__)."""

from __future__ import annotations

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.refusals.peft import applied, low_rank, others, prompts
from flake8_gpu_training.language import Text

_TASKS = (
    "SEQ_CLS",
    "SEQ_2_SEQ_LM",
    "CAUSAL_LM",
    "TOKEN_CLS",
    "QUESTION_ANS",
    "FEATURE_EXTRACTION",
)


def _unknown_task(options: Options) -> bool:
    task = options["task_type"]
    if task is not None and not isinstance(task, str):
        raise UndecidedError("task_type")
    return task is not None and task not in _TASKS


_TASK = Refusal(
    "unknown-task-type",
    "peft/config.py, PeftConfigMixin.__post_init__",
    ("task_type",),
    _unknown_task,
    Text(f"task_type 取 {'、'.join(_TASKS)} 之一", f"give task_type one of {', '.join(_TASKS)}"),
    Text("不能取 {task_type}", "it cannot be {task_type}"),
    since="0.14.0",
)

REFUSALS: tuple[Refusal, ...] = (
    _TASK,
    *low_rank.REFUSALS,
    *applied.REFUSALS,
    *prompts.REFUSALS,
    *others.REFUSALS,
)
