"""The sequence length that a program's own tokenizer calls cut samples to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Optional

from flake8_gpu_training.facts import Argument, Call, Origin, Setting
from flake8_gpu_training.runs.model import Run

_ENCODES = ("encode", "encode_plus", "batch_encode_plus", "__call__")
_EVALUATES = re.compile(r"(?i)eval|valid|test|infer|predict|generat|prompt")
_NAME = "max_length"


def token_limit(run: Run) -> dict[str, Setting]:
    """``max_length`` where every tokenizer call of the training code cuts to the same length."""
    found = [_limit(call) for call in _training_calls(run)]
    limits = [argument for argument in found if argument is not None]
    if not limits or len(limits) < len(found) or len({limit.value for limit in limits}) > 1:
        return {}
    first = limits[0]
    note = f"max_length={first.text}"
    return {_NAME: Setting(_NAME, first.value, first.location, Origin.CONSTRUCTOR, note=note)}


def _training_calls(run: Run) -> Iterator[Call]:
    for file in run.python:
        generating = {call.scope for call in file.calls if call.method == "generate"}
        for call in file.calls:
            if call.scope in generating and _is_prompt(call):
                continue
            receiver = call.name.rpartition(".")[0]
            is_call = call.method == "tokenizer" or (
                receiver.endswith("tokenizer") and call.method in _ENCODES
            )
            if is_call and not _EVALUATES.search(call.scope):
                yield call


def _is_prompt(call: Call) -> bool:
    """Whether one text becomes a tensor, as ``generate`` takes it: a batch has to be padded."""
    told = call.keywords
    return "return_tensors" in told and "padding" not in told and "max_length" not in told


def _limit(call: Call) -> Optional[Argument]:
    """The length that no sample of this call exceeds, where it is a known number."""
    cut = call.keywords.get("truncation")
    limit = call.keywords.get(_NAME)
    if cut is None or cut.value is not True or limit is None:
        return None
    is_size = isinstance(limit.value, int) and not isinstance(limit.value, bool)
    return limit if is_size and limit.value > 0 else None
