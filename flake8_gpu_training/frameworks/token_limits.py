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
    """``max_length`` where every tokenizer call of the training code cuts to the same length, or
    to the one that its tokenizer is loaded with."""
    own = _of_tokenizer(run)
    if own is not None:
        note = f"{_OWN}={own.text}"
        return {_NAME: Setting(_NAME, own.value, own.location, Origin.CONSTRUCTOR, note=note)}
    found = [_limit(call) for call in _training_calls(run)]
    limits = [argument for argument in found if argument is not None]
    if not limits or len(limits) < len(found) or len({limit.value for limit in limits}) > 1:
        return {}
    first = limits[0]
    note = f"max_length={first.text}"
    return {_NAME: Setting(_NAME, first.value, first.location, Origin.CONSTRUCTOR, note=note)}


_OWN = "model_max_length"


def _of_tokenizer(run: Run) -> Optional[Argument]:
    """``from_pretrained(…, model_max_length=2048)`` where samples are cut to
    ``tokenizer.model_max_length``."""
    calls = [call for file in run.python for call in file.calls]
    cuts = any(
        call.keywords[_NAME].text.endswith(f".{_OWN}")
        for call in calls
        if _NAME in call.keywords and _cuts(call)
    )
    loads = [call.keywords.get(_OWN) for call in calls if call.method == "from_pretrained"]
    told = [argument for argument in loads if argument is not None]
    if not cuts or len({repr(argument.value) for argument in told}) != 1:
        return None
    return told[0] if _is_size(told[0]) else None


def _cuts(call: Call) -> bool:
    cut = call.keywords.get("truncation")
    return cut is not None and cut.value is True


def _is_size(limit: Argument) -> bool:
    is_int = isinstance(limit.value, int) and not isinstance(limit.value, bool)
    return is_int and limit.value > 0


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
    limit = call.keywords.get(_NAME)
    return limit if limit is not None and _cuts(call) and _is_size(limit) else None
