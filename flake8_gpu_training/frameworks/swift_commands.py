"""Which of ms-swift's commands a run is of."""

from __future__ import annotations

import re
from collections.abc import Mapping

from flake8_gpu_training.runs.model import PlaceKind, Run, once_per_run

_COMMANDS = frozenset(
    ("sft", "pt", "rlhf", "infer", "deploy", "rollout", "sample", "export", "eval", "app")
)
_CLI = re.compile(r"(?:.*/)?swift[./]cli[./](?:_megatron[./])?(\w+?)(?:\.py)?")
# Parameters that only ``megatron sft/pt/rlhf`` have.
_MEGATRON_MARKS = (
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
    "expert_model_parallel_size",
    "micro_batch_size",
    "recompute_granularity",
)


def is_megatron(run: Run) -> bool:
    """Whether the run goes through ``megatron sft/pt/rlhf``."""
    if run.command is None:
        call = run.place.call
        if call is not None:
            return call.method.lower().startswith("megatron")
        in_file = run.place.kind in (PlaceKind.YAML, PlaceKind.JSON)
        return in_file and any(name in run.settings for name in _MEGATRON_MARKS)
    words = [word.text for word in run.command.words[:4]]
    if any("_megatron/" in word or "cli._megatron" in word for word in words):
        return True
    return bool(words) and words[0].rpartition("/")[2] == "megatron"


def subcommand(run: Run) -> str:
    """``sft``, ``pt``, ``rlhf`` … of the command, or an empty text."""
    words = [word.text for word in run.command.words] if run.command else []
    for word in words:
        script = _CLI.fullmatch(word)
        if script is not None:  # behind torchrun, accelerate or deepspeed and their flags
            return script.group(1)
    for word in words[:4]:
        stem = word.rpartition("/")[2].rpartition(".")[0] or word
        if stem in _COMMANDS:
            return stem
    return _of_class(run) or _of_file(run)


def _of_file(run: Run) -> str:
    """The command that a file of arguments is named by: ``sft.json``."""
    if run.command is not None or run.place.kind not in (PlaceKind.YAML, PlaceKind.JSON):
        return ""
    stem = run.place.location.path.rpartition("/")[2].rpartition(".")[0]
    return stem if stem in ("sft", "pt", "rlhf") else ""


# What a program gives to sft_main, pt_main and rlhf_main (swift/arguments of 4.6.0); ms-swift 3
# has TrainArguments for the first two.
_OF_CLASS: Mapping[str, str] = {
    "SftArguments": "sft",
    "PretrainArguments": "pt",
    "RLHFArguments": "rlhf",
}
_OF_MAIN: Mapping[str, str] = {"sft_main": "sft", "pt_main": "pt", "rlhf_main": "rlhf"}


def _of_class(run: Run) -> str:
    """The command that a program runs by the class of its arguments, or an empty text."""
    call = run.place.call
    if call is None:
        return ""
    name = call.method.removeprefix("Megatron")
    if name != "TrainArguments":
        return _OF_CLASS.get(name, "")
    called = {call.method.removeprefix("megatron_") for file in run.python for call in file.calls}
    found = {command for main, command in _OF_MAIN.items() if main in called}
    return found.pop() if len(found) == 1 else ""


@once_per_run
def group(run: Run) -> str:
    """The table's name for the run's command: ``sft``, ``megatron rlhf`` …"""
    command = subcommand(run) or ("rlhf" if "rlhf_type" in run.settings else "sft")
    if command not in ("sft", "pt", "rlhf"):
        return command
    return f"megatron {command}" if is_megatron(run) else command
