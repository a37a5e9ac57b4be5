"""LlamaFactory's second route (``USE_V1=1``): its own arguments (0.9.6.dev0, llamafactory/v1)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Optional

from flake8_gpu_training.facts import Document, Origin, Setting, Unknown, known
from flake8_gpu_training.frameworks.base import Spelling
from flake8_gpu_training.frameworks.deepspeed import practices_from_deepspeed
from flake8_gpu_training.frameworks.reading import by_default, find, is_true, practice, unknown
from flake8_gpu_training.runs.model import Run

_SOURCE = "llamafactory 0.9.6.dev0 v1"
_TRAINING = f"{_SOURCE}/config/training_args.py"
_ENGINE = f"{_SOURCE}/core/model_engine.py"
_TRAINER = f"{_SOURCE}/core/base_trainer.py"
_ON = ("true", "y", "1")

SPELLINGS: Mapping[str, Spelling] = {
    "attention": Spelling(
        "flash_attn", default="sdpa", source=f"{_SOURCE}/config/model_args.py: flash_attn sdpa"
    ),
    "gradient_checkpointing": Spelling(
        "enable_activation_checkpointing",
        default=True,
        source=f"{_TRAINING}: enable_activation_checkpointing True",
    ),
    "micro_batch_size": Spelling(
        "micro_batch_size", default=1, source=f"{_TRAINING}: micro_batch_size 1"
    ),
    "max_length": Spelling("cutoff_len", default=2048, source=f"{_TRAINING}: cutoff_len 2048"),
    "dataloader_workers": Spelling(
        "batching_workers", default=16, source=f"{_TRAINING}: batching_workers 16"
    ),
    "save_steps": Spelling("save_steps"),
    "logging_steps": Spelling("logging_steps", default=1, source=f"{_TRAINING}: logging_steps 1"),
    "max_grad_norm": Spelling(
        "max_grad_norm", default=1.0, source=f"{_TRAINING}: max_grad_norm 1.0"
    ),
    "model": Spelling("model"),
    "dataset": Spelling("train_dataset"),
    "output_dir": Spelling("output_dir"),
}
_ALGORITHMS = {"train": "sft", "sft": "sft", "dpo": "dpo", "rm": "rm"}
_WHOLE_BATCHES = ("normal", "padding_free")


def is_v1(run: Run) -> bool:
    """Whether the command line of LlamaFactory hands over to ``llamafactory.v1`` (cli.py)."""
    if run.framework != "llamafactory":
        return False
    switch = run.environment.get("USE_V1")
    if switch is None and run.command is None:
        # A recipe that no command names: the first route has no such arguments.
        return "train_dataset" in run.settings and "model" in run.settings
    return switch is not None and _is_set(switch)


def _is_set(switch: Setting) -> bool:
    return known(switch.value) and str(switch.value).lower() in _ON


def part_of(run: Run, config: str, name: str, default: Any = None) -> Optional[Setting]:
    """``name`` of a configuration such as ``peft_config``; None where there is none of it."""
    whole = find(run, config)
    written = find(run, f"{config}.{name}")
    if written is not None:
        return written
    if whole is None:
        inside = any(key.startswith(f"{config}.") for key in run.settings)
        return practice(name, default, None, f"{config}: {name} {default}") if inside else None
    values = whole.value
    if isinstance(values, str):
        values = _parsed(values)
    if isinstance(values, dict):
        return practice(name, values.get(name, default), whole)
    return None if values is None else practice(name, Unknown("not a literal"), whole)


def kernels_of(run: Run) -> tuple[str, ...]:
    """The kernels that ``kernel_config`` lists: by its name, or by the ``include_kernels`` that
    stand for ``auto`` up to 0.9.5 and are parts of a kernel after it."""
    named = [part_of(run, "kernel_config", key) for key in ("name", "include_kernels")]
    texts = [one.value for one in named if one is not None and isinstance(one.value, str)]
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def derive(run: Run) -> dict[str, Setting]:
    """The practices that take more than a renaming."""
    found = _sharding(run)
    found.update(_tuning(run))
    found.update(_precision(run, found))
    found.update(_batches(run))
    found.update(_optimizer(run))
    reason = f"{_TRAINER}: use_reentrant False"
    found.update(by_default(run, "reentrant_checkpointing", False, reason))
    found.update(by_default(run, "pin_memory", True, f"{_SOURCE}/core/utils/batching.py"))
    streamed = f"{_SOURCE}/core/data_engine.py: streaming False"
    found.update(by_default(run, "streaming", False, streamed))
    kernels = part_of(run, "kernel_config", "name")
    if kernels is not None:
        named: Any = "liger_kernel" in kernels_of(run)
        value = named if known(kernels.value) else kernels.value
        found["liger_kernel"] = practice("liger_kernel", value, kernels)
    else:
        found.update(by_default(run, "liger_kernel", False, f"{_ENGINE}: no kernel_config"))
    stage = _stage(run)
    if stage is not None:
        found.update(by_default(run, "algorithm", stage, f"{_SOURCE}/launcher.py"))
    return found


_OF_PAIRS = re.compile(r"(?i)(?:^|[/_.-])(?:dpo|orpo|simpo|rm|reward|pref|pair)(?:[/_.-]|$)")


def _stage(run: Run) -> Optional[str]:
    """The stage is the word after the command; it is ``sft`` where a recipe is all that is
    given (v1/launcher.py, main), which may be of pairs by its name."""
    if run.command is not None:
        words = [word.text for word in run.command.words]
        return next((_ALGORITHMS[word] for word in words if word in _ALGORITHMS), None)
    data = find(run, "train_dataset")
    named = f"{run.location.path} {data.value if data is not None else ''}"
    return None if _OF_PAIRS.search(named) or find(run, "pref_loss") is not None else "sft"


def _sharding(run: Run) -> dict[str, Setting]:
    """DDP where ``dist_config`` names no back end (core/base_trainer.py, _shard_model)."""
    name = part_of(run, "dist_config", "name")
    if name is None:
        note = f"{_TRAINER}: no dist_config"
        found = by_default(run, "zero_stage", 0, note)
        found.update(by_default(run, "fsdp", "none", note))
        return found
    if name.value in ("fsdp2", "fsdpturbo"):
        offload = part_of(run, "dist_config", "offload_params", False)
        whole = part_of(run, "dist_config", "reshard_after_forward", True)
        kind = "shard_grad_op" if whole is not None and whole.value is False else "full_shard"
        return {
            "fsdp": practice("fsdp", kind, name),
            "fsdp_version": practice("fsdp_version", 2, name),
            "fsdp_offload": practice("fsdp_offload", is_true(offload), offload or name),
            "zero_stage": practice("zero_stage", 0, name),
        }
    if name.value == "deepspeed" and run.deepspeed is not None:
        return {**practices_from_deepspeed(run.deepspeed), "fsdp": practice("fsdp", "none", name)}
    reason = "what dist_config names is not read"
    return {one: unknown(one, reason, at=name.location) for one in ("zero_stage", "fsdp")}


def _tuning(run: Run) -> dict[str, Setting]:
    """Everything is tuned where there is no ``peft_config``."""
    name = part_of(run, "peft_config", "name")
    if name is None:
        found = by_default(run, "tuning", "full", f"{_ENGINE}: full tuning without peft_config")
    else:
        found = {"tuning": practice("tuning", name.value, name)}
        rank = part_of(run, "peft_config", "r", 8)
        if name.value == "lora" and rank is not None:
            found["lora_rank"] = practice("lora_rank", rank.value, rank)
    method = part_of(run, "quant_config", "name")
    if method is None:
        note = f"{_ENGINE}: no quant_config"
        found.update(by_default(run, "quantization_bits", None, note))
        found.update(by_default(run, "quantization_method", "none", note))
        return found
    default = 4 if method.value == "bnb" else None
    bits = part_of(run, "quant_config", "quantization_bit", default) or method
    found["quantization_bits"] = practice("quantization_bits", bits.value, bits)
    name_of = "bnb" if bits.value else "none"
    found["quantization_method"] = practice("quantization_method", name_of, method)
    return found


def _precision(run: Run, found: Mapping[str, Setting]) -> dict[str, Setting]:
    """Only the sharding engines cast: else weights keep FP32 (full) or the checkpoint's type."""
    fsdp, tuning = found.get("fsdp"), found.get("tuning")
    if fsdp is not None and fsdp.value in ("full_shard", "shard_grad_op"):
        switch = find(run, "bf16")
        if switch is None:
            return by_default(run, "precision", "bf16", f"{_TRAINING}: bf16 True")
        return {"precision": practice("precision", "bf16" if is_true(switch) else "fp32", switch)}
    alone = fsdp is not None and fsdp.value == "none" and find(run, "dist_config.name") is None
    if alone and tuning is not None and tuning.value == "full":
        return by_default(run, "precision", "fp32", f"{_ENGINE}: full tuning in float32")
    name = find(run, "dist_config.name")
    if name is not None and name.value == "deepspeed" and run.deepspeed is not None:
        return _of_deepspeed(run.deepspeed, name)
    return {"precision": unknown("precision", "the checkpoint, or DeepSpeed's file, decides")}


def _of_deepspeed(document: Document, named: Setting) -> dict[str, Setting]:
    """BF16 where it is asked for, or where neither switch is more than ``auto``
    (v1/plugins/model_plugins/deepspeed_utils.py, infer_deepspeed_mixed_precision)."""
    found = {}
    for kind in ("bf16", "fp16"):
        node = document.get(f"{kind}.enabled")
        found[kind] = str(node.value).lower() if node is not None else "auto"
        if node is not None and kind == "bf16":
            named = Setting("bf16.enabled", node.value, node.location, Origin.FILE)
    if found["bf16"] == "true" or (found["bf16"], found["fp16"]) == ("auto", "auto"):
        return {"precision": practice("precision", "bf16", named)}
    return {"precision": unknown("precision", "DeepSpeed's file turns mixed precision off")}


def _batches(run: Run) -> dict[str, Setting]:
    strategy, whole = find(run, "batching_strategy"), find(run, "global_batch_size")
    found: dict[str, Setting] = {}
    if strategy is None:
        note = f"{_TRAINING}: batching_strategy normal"
        found.update(by_default(run, "padding_free", False, note))
        found.update(by_default(run, "packing", False, note))
    else:
        name = str(strategy.value)
        found["padding_free"] = practice("padding_free", name.endswith("padding_free"), strategy)
        packed: Any = False if name in _WHOLE_BATCHES else Unknown("batches are filled by length")
        found["packing"] = practice("packing", packed, strategy)
    if whole is None or whole.value is None:
        note = f"{_SOURCE}/core/utils/batching.py: one micro-batch without global_batch_size"
        found.update(by_default(run, "gradient_accumulation_steps", 1, note))
    else:
        found["gradient_accumulation_steps"] = _divided(run, whole)
    size = find(run, "cp_size")
    parallel = practice("sequence_parallel", 1, None, f"{_TRAINING}: cp_size 1")
    if size is not None:
        parallel = practice("sequence_parallel", size.value, size)
    return {**found, "sequence_parallel": parallel}


def _divided(run: Run, whole: Setting) -> Setting:
    """The micro-batches of a step: ``global_batch_size`` divided by those of all ranks."""
    name = "gradient_accumulation_steps"
    each, ranks = find(run, "micro_batch_size"), run.launcher.world_size
    micro = 1 if each is None else each.value
    if find(run, "cp_size") is None and isinstance(ranks, int) and isinstance(micro, int):
        total = whole.value
        if isinstance(total, int) and micro > 0 and ranks > 0 and total >= micro * ranks:
            return practice(name, total // (micro * ranks), whole)
    return unknown(name, "global_batch_size is divided by the ranks", at=whole.location)


def _optimizer(run: Run) -> dict[str, Setting]:
    name = part_of(run, "optim_config", "name")
    if name is not None:
        return {"optimizer": practice("optimizer", name.value, name)}
    return by_default(run, "optimizer", "adamw_torch", f"{_TRAINER}: torch.optim.AdamW")
