"""ms-swift's commands and releases, and what ``swift`` and ``megatron`` derive alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Optional

from flake8_gpu_training.facts import Setting, known
from flake8_gpu_training.frameworks.at_hand import at_hand
from flake8_gpu_training.frameworks.base import ABSENT, Spelling
from flake8_gpu_training.frameworks.reading import (
    by_default,
    dtype,
    find,
    is_off,
    is_true,
    practice,
    truth,
    unknown,
)
from flake8_gpu_training.frameworks.tables import Parameter, Table, table_of
from flake8_gpu_training.models import last_part
from flake8_gpu_training.runs.model import PlaceKind, Run, once_per_run

DTYPE: Mapping[str, str] = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
_DISTRIBUTION = "ms-swift"

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
    return _of_class(run)


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


# --- releases -----------------------------------------------------------------------------


@once_per_run
def group(run: Run) -> str:
    """The table's name for the run's command: ``sft``, ``megatron rlhf`` …"""
    command = subcommand(run) or ("rlhf" if "rlhf_type" in run.settings else "sft")
    if command not in ("sft", "pt", "rlhf"):
        return command
    return f"megatron {command}" if is_megatron(run) else command


@once_per_run
def release(run: Run) -> str:
    """The release whose defaults hold: the pinned one, else the newest that the project takes;
    where the project holds ms-swift's source, the one that this is of."""
    state = at_hand(run, _DISTRIBUTION)
    if state is not None:
        return state.version
    return run.held.get(_DISTRIBUTION) or run.versions.get(_DISTRIBUTION, "")


def declared(run: Run, name: str) -> Optional[Parameter]:
    """The parameter as the run's command declares it in its release, or None."""
    table = _table()
    return table.parameters(group(run), release(run)).get(name)


def lacks(run: Run, *names: str) -> bool:
    """Whether no release that the project may install has one of the parameters.

    What ms-swift leaves to Transformers is not in its table: only of what it declares itself
    in some release, or what ``megatron`` takes, this can be said.
    """
    state, table, command = at_hand(run, _DISTRIBUTION), _table(), group(run)
    held = run.held.get(_DISTRIBUTION, "")
    if state is None and not held and not is_megatron(run):
        return False
    allowed = state.allowed if state is not None else (table.release(held),)
    if any(table.knows(command, name, index) for name in names for index in allowed):
        return False
    return not table.extends(command) or any(table.spans(command, name) for name in names)


def dated(spellings: Mapping[str, Spelling], command: str, version: str) -> Mapping[str, Spelling]:
    """``spellings`` with the names and defaults that a release declares for a command."""
    table = _table()
    declares = table.parameters(command, version)
    named = version or table.versions[-1]
    return {
        name: one
        if table.extends(command) and not table.spans(command, one.parameter)
        else _of_release(one, declares, named)  # else it is Transformers' own parameter
        for name, one in spellings.items()
    }


def _of_release(spelling: Spelling, declares: Mapping[str, Parameter], version: str) -> Spelling:
    names = (spelling.parameter, *spelling.aliases)
    name = next((one for one in names if one in declares), None)
    if name is None:
        return spelling
    others = tuple(one for one in names if one != name)
    found = replace(spelling, parameter=name, aliases=others)
    default = declares[name].default
    if spelling.default is ABSENT or default is None or not declares[name].has_default:
        return found
    ours = spelling.read(default)
    if ours == spelling.default and name == spelling.parameter:
        return found
    return replace(found, default=ours, source=f"ms-swift {version}: {name} {default}")


def _table() -> Table:
    table = table_of(_DISTRIBUTION)
    assert table is not None
    return table


# --- practices ----------------------------------------------------------------------------


# Families whose checkpoints' config.json all say bfloat16, which ms-swift takes where torch_dtype
# is not written (model_args.py, _init_torch_dtype).
_BF16_WEIGHTS = re.compile(r"qwen-?(?:2\.5|3)(?![0-9.])")
_QUANTIZED = re.compile(r"awq|gptq|int[48]|fp8|nvfp4|bnb|[48]bit|gguf|mlx")


def precision(run: Run) -> dict[str, Setting]:
    """``bf16``/``fp16`` when written, else what ``torch_dtype`` makes of them."""
    for name, value in (("bf16", "bf16"), ("fp16", "fp16")):
        setting = find(run, name)
        if setting is not None and (not known(setting.value) or truth(setting.value)):
            return {"precision": practice("precision", value, setting)}
    setting = find(run, "torch_dtype", "dtype")
    if setting is None or (known(setting.value) and dtype(setting.value) is None):
        name = last_part(run.model.known_as)
        if setting is None and _BF16_WEIGHTS.match(name) and not _QUANTIZED.search(name):
            folder = run.model.known_as.rstrip("/").rpartition("/")[2]
            note = f"torch_dtype=bfloat16 ({folder}/config.json)"
            return by_default(run, "precision", "bf16", note)
        reason = "ms-swift takes bf16 or fp16 from the model's configuration"
        return {"precision": unknown("precision", reason, "bf16", "fp16")}
    if not known(setting.value):
        return {"precision": practice("precision", setting.value, setting)}
    written = dtype(setting.value)
    if written == "fp32":
        # float32 weights are trained with fp16 autocast (model_args.py, _init_mixed_precision).
        off = find(run, "fp16")
        value = "fp32" if off is not None and truth(off.value) is False else "fp16"
        return {"precision": practice("precision", value, setting)}
    return {"precision": practice("precision", written, setting)}


def padding(spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    """Packing turns padding_free on."""
    packing = spelled.get("packing")
    if packing is not None and packing.explicit and is_true(packing):
        note = "packing turns padding_free on"
        return {"padding_free": practice("padding_free", True, packing, note)}
    return {}


def pretokenized(run: Run) -> dict[str, Setting]:
    """Whether ``swift export --to_cached_dataset`` made the tokens beforehand."""
    cached = find(run, "cached_dataset")
    if cached is not None:
        return {"pretokenized": practice("pretokenized", not is_off(cached.value), cached)}
    note = "ms-swift 4.6.0 swift/arguments/base_args/data_args.py: no cached_dataset"
    return by_default(run, "pretokenized", False, note)


# The classes of arguments that programs hand to ms-swift's functions and pipelines.
_TRAINS: Mapping[str, str] = {
    "SftArguments": "sft",
    "TrainArguments": "sft",
    "PretrainArguments": "pt",
    "RLHFArguments": "rlhf",
}


def algorithm(run: Run) -> dict[str, Setting]:
    """What the run optimizes, and what generates its completions."""
    call = run.place.call
    command = subcommand(run) or (_TRAINS.get(call.method, "") if call is not None else "")
    found: dict[str, Setting] = {}
    written = find(run, "rlhf_type")
    if command in ("sft", "pt"):
        return {"algorithm": practice("algorithm", command, None, f"swift {command}")}
    if command != "rlhf" and written is None:
        return {}
    if written is not None:
        value = written.value.lower() if isinstance(written.value, str) else written.value
        found["algorithm"] = practice("algorithm", value, written)
    else:
        found.update(by_default(run, "algorithm", "dpo", "ms-swift: rlhf_type dpo"))
        value = "dpo"
    if value in ("grpo", "gkd"):
        found.update(_rollout(run, default=is_megatron(run)))
    return found


def _rollout(run: Run, default: bool) -> dict[str, Setting]:
    engine = find(run, "use_vllm")
    if engine is None:
        note = f"ms-swift 4.6.0: use_vllm {default}"
        return by_default(run, "rollout_engine", "vllm" if default else "none", note)
    value: Any = engine.value
    if known(value):
        value = "vllm" if truth(value) else "none"
    return {"rollout_engine": practice("rollout_engine", value, engine)}
