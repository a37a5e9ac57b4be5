"""Scenario templates in the words of the release that a run is pinned to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from flake8_gpu_training.frameworks.reading import NEWEST, version_of
from flake8_gpu_training.frameworks.tables import table_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

# What TRL named otherwise before a release (trainer/sft_config.py and sft_trainer.py).
_FORMER: Mapping[tuple[int, int], tuple[str, str]] = MappingProxyType(
    {
        (0, 16): ("    max_length=", "    max_seq_length="),
        (0, 12): ("processing_class=", "tokenizer="),
    }
)
_ARGUMENT = re.compile(r"    (?P<name>\w+)=(?:[^\n{]|\{[^{}]*\})*,.*\n")


def in_release(run: Run, text: Text) -> Text:
    """A template as the releases that ``run`` pins take it."""
    if run.framework == "llamafactory" and version_of(run, "llamafactory") < (0, 9, 3):
        # The words of QuantizationMethod in hparams and extras/constants.py.
        return Text(*(words.replace("_method: bnb", "_method: bitsandbytes") for words in text))
    if run.framework == "hf_trainer" and "SFTConfig(" in text.en:
        return Text(*(_for_trainer(run, words) for words in text))
    return text


def _for_trainer(run: Run, program: str) -> str:
    for before, (name, former) in _FORMER.items():
        if version_of(run, "trl") < before:
            program = program.replace(name, former)
    if version_of(run, "transformers") == NEWEST:
        return program
    start = program.index("SFTConfig(\n")
    end = program.index("\n)\n", start)
    kept = _ARGUMENT.sub(lambda found: _if_released(run, found), program[start : end + 1])
    return program[:start] + kept + program[end + 1 :]


def _if_released(run: Run, argument: re.Match[str]) -> str:
    """The argument, or nothing where TrainingArguments got it in a later release."""
    table = table_of("transformers")
    group, name = "TrainingArguments", argument["name"]
    if table is None or not table.spans(group, name):
        return argument[0]
    release = table.release(run.versions["transformers"])
    return argument[0] if table.knows(group, name, release) else ""
