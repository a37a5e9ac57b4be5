"""What ms-swift's commands and releases lack, for the checks that ask its audit's items."""

from __future__ import annotations

from typing import Optional

from flake8_gpu_training.frameworks.swift_shared import is_megatron, lacks
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

OLDER = Text("该版本没有此参数", "this release does not have the parameter")
MEGATRON = Text("Megatron 后端没有此参数", "the Megatron back end has no such parameter")


def missing(run: Run, *names: str) -> Optional[Text]:
    """Why an ms-swift run has none of the parameters, or None where it has one."""
    if run.framework != "swift" or not lacks(run, *names):
        return None
    return MEGATRON if is_megatron(run) else OLDER


def of_megatron(run: Run) -> bool:
    """Whether ``megatron sft``, ``pt`` or ``rlhf`` drives the run."""
    return run.framework == "swift" and run.value("megatron") is True
