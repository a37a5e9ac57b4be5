"""What ``swift`` and ``megatron`` derive alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Optional

from flake8_gpu_training.facts import Setting, known
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
from flake8_gpu_training.frameworks.swift_commands import is_megatron, subcommand
from flake8_gpu_training.frameworks.swift_releases import source_of
from flake8_gpu_training.models import last_part
from flake8_gpu_training.runs.model import Run

DTYPE: Mapping[str, str] = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


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


def towers(tuning: Optional[Setting]) -> dict[str, Setting]:
    """What ``lora_llm`` does beside LoRA in the language model (tuner_plugin/lora_llm.py)."""
    if tuning is None or tuning.value != "lora_llm":
        return {}
    note = f"{tuning.written}: vision tower and aligner are trained whole"
    return {"freeze_vision": practice("freeze_vision", False, tuning, note)}


def pretokenized(run: Run) -> dict[str, Setting]:
    """Whether ``swift export --to_cached_dataset`` made the tokens beforehand."""
    cached = find(run, "cached_dataset")
    if cached is not None:
        return {"pretokenized": practice("pretokenized", not is_off(cached.value), cached)}
    path = "swift/arguments/base_args/data_args.py"
    return by_default(run, "pretokenized", False, source_of(run, "cached_dataset", "none", path))


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
    if not command and _is_of_trainer(run):
        command = "sft"
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


def _is_of_trainer(run: Run) -> bool:
    """Whether a program gives ms-swift's Seq2SeqTrainer its arguments, and trains with no other."""
    call = run.place.call
    if call is None or call.method != "Seq2SeqTrainingArguments":
        return False
    trainers = {c.method for file in run.python for c in file.calls if c.method.endswith("Trainer")}
    return trainers == {"Seq2SeqTrainer"}


def _rollout(run: Run, default: bool) -> dict[str, Setting]:
    engine = find(run, "use_vllm")
    if engine is None:
        note = source_of(run, "use_vllm", default)
        return by_default(run, "rollout_engine", "vllm" if default else "none", note)
    value: Any = engine.value
    if known(value):
        value = "vllm" if truth(value) else "none"
    return {"rollout_engine": practice("rollout_engine", value, engine)}
