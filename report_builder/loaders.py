"""The class of Transformers that loads a run's model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Optional

from flake8_gpu_training.runs.model import Run

OF_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "encoder": "AutoModelForSequenceClassification",
        "encoder-decoder": "AutoModelForSeq2SeqLM",
        "vision": "AutoModelForImageClassification",
        "audio": "AutoModelForSpeechSeq2Seq",
        "embedding": "AutoModel",
    }
)
"""The usual class for models that generate no text."""
_OF_TASK = re.compile(r"\w+For[A-Z]\w+")


def loader_of(run: Optional[Run]) -> str:
    """The class that the run's own code loads a model with, else the usual one for its kind."""
    calls = (call for file in run.python for call in file.calls) if run is not None else ()
    for call in calls:
        owner = call.name.rpartition(".")[0].rpartition(".")[2]
        if call.name.startswith("transformers.") and _OF_TASK.fullmatch(owner):
            return owner
    return OF_KINDS.get(run.model.kind if run is not None else "", "AutoModelForCausalLM")
