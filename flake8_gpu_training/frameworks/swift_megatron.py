"""``megatron sft``, ``pt`` and ``rlhf``: ms-swift's parameters for Megatron-core (3.2 to 4.x)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flake8_gpu_training.facts import Setting, known
from flake8_gpu_training.frameworks.base import Spelling
from flake8_gpu_training.frameworks.reading import (
    by_default,
    find,
    is_off,
    is_true,
    number,
    practice,
    renamed,
    truth,
    warmup,
)
from flake8_gpu_training.frameworks.swift_releases import declared, lacks, release, source_of
from flake8_gpu_training.frameworks.swift_shared import (
    DTYPE,
    algorithm,
    padding,
    precision,
    pretokenized,
    towers,
)
from flake8_gpu_training.runs.model import Run

_PATH = "swift/megatron/arguments/megatron_args.py"
_MEGATRON = f"ms-swift 4.6.0 {_PATH}"
_BASE = "ms-swift 4.6.0 swift/arguments/base_args/base_args.py"
_DATA = "ms-swift 4.6.0 swift/arguments/base_args/data_args.py"

SPELLINGS: Mapping[str, Spelling] = {
    "precision": Spelling("torch_dtype", DTYPE),
    "attention": Spelling(
        "attention_backend",
        {"flash_attention_2": "flash"},
        "flash_attention_2",
        f"{_MEGATRON}: attention_backend flash",
    ),
    "gradient_checkpointing": Spelling(
        "recompute_granularity",
        {False: "none"},
        True,
        f"{_MEGATRON}: recompute_granularity selective",
        instead={
            True: {
                "recompute_granularity": "full",
                "recompute_method": "uniform",
                "recompute_num_layers": 1,
            }
        },
    ),
    "vit_gradient_checkpointing": Spelling("vit_gradient_checkpointing"),
    "micro_batch_size": Spelling(
        "micro_batch_size", default=1, source=f"{_MEGATRON}: micro_batch_size 1"
    ),
    "max_length": Spelling("max_length"),
    "tuning": Spelling(
        "tuner_type",
        default="full",
        source=f"{_MEGATRON}: tuner_type full",
        aliases=("train_type",),
    ),
    "lora_rank": Spelling("lora_rank", default=8, source=f"{_MEGATRON}: lora_rank 8"),
    "packing": Spelling("packing", default=False, source=f"{_BASE}: packing False"),
    "padding_free": Spelling("padding_free", default=True, source=f"{_MEGATRON}: True"),
    "group_by_length": Spelling("group_by_length", default=False, source=f"{_MEGATRON}: False"),
    "optimizer": Spelling("optimizer", default="adam", source=f"{_MEGATRON}: optimizer adam"),
    "overlap_comm": Spelling(
        "overlap_grad_reduce", default=False, source=f"{_MEGATRON}: overlap_grad_reduce False"
    ),
    "tensor_parallel": Spelling("tensor_model_parallel_size", default=1, source=_MEGATRON),
    "pipeline_parallel": Spelling("pipeline_model_parallel_size", default=1, source=_MEGATRON),
    "sequence_parallel": Spelling("context_parallel_size", default=1, source=_MEGATRON),
    "expert_parallel": Spelling("expert_model_parallel_size", default=1, source=_MEGATRON),
    "dataloader_workers": Spelling(
        "dataloader_num_workers",
        default=4,
        source=f"{_MEGATRON}: dataloader_num_workers 4",
        aliases=("num_workers",),
    ),
    "pin_memory": Spelling("dataloader_pin_memory", default=True, source=f"{_MEGATRON}: True"),
    "persistent_workers": Spelling(
        "dataloader_persistent_workers", default=True, source=f"{_MEGATRON}: True"
    ),
    "prefetch_factor": Spelling("dataloader_prefetch_factor", default=2, source=f"{_MEGATRON}: 2"),
    "preprocessing_workers": Spelling(
        "dataset_num_proc", default=1, source=f"{_DATA}: dataset_num_proc 1"
    ),
    "streaming": Spelling("streaming", default=False, source=f"{_DATA}: streaming False"),
    "save_steps": Spelling(
        "save_steps", default=500, source=f"{_MEGATRON}: save_steps 500", aliases=("save_interval",)
    ),
    "logging_steps": Spelling(
        "logging_steps",
        default=5,
        source=f"{_MEGATRON}: logging_steps 5",
        aliases=("log_interval",),
    ),
    "report_to": Spelling(
        "report_to", default=["tensorboard"], source=f"{_MEGATRON}: report_to tensorboard"
    ),
    "lr_scheduler": Spelling(
        "lr_decay_style", default="cosine", source=f"{_MEGATRON}: lr_decay_style cosine"
    ),
    "warmup": Spelling("lr_warmup_fraction"),
    "max_grad_norm": Spelling("clip_grad", default=1.0, source=f"{_MEGATRON}: clip_grad 1.0"),
    "freeze_vision": Spelling("freeze_vit", default=True, source=f"{_MEGATRON}: True"),
    "model": Spelling("model", aliases=("mcore_model", "load")),
    "dataset": Spelling("dataset", aliases=("cached_dataset",)),
    "output_dir": Spelling("output_dir", aliases=("save",)),
}


def derive(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    """What takes more than a renaming."""
    found: dict[str, Setting] = {"megatron": _is_on(run, "megatron")}
    found["zero_stage"] = practice("zero_stage", 0, None, "Megatron runs without DeepSpeed")
    found["fsdp"] = _fsdp(run)
    found.update(_compute(run))
    found.update(_attention(run, spelled))
    found.update(_recompute(spelled))
    found.update(_vision_checkpointing(run, spelled))
    found.update(_adapters(run, spelled))
    found.update(_batch(run, spelled))
    found.update(padding(spelled))
    found.update(towers(spelled.get("tuning")))
    found.update(pretokenized(run))
    offload = find(run, "optimizer_cpu_offload")
    if offload is not None:
        value: Any = "cpu" if is_true(offload) else "none"
        found["offload_optimizer"] = practice("offload_optimizer", value, offload)
    else:
        note = source_of(run, "optimizer_cpu_offload", False, _PATH)
        found.update(by_default(run, "offload_optimizer", "none", note))
    warm = warmup(find(run, "lr_warmup_fraction"), find(run, "lr_warmup_iters"))
    if warm is not None:
        found["warmup"] = warm
    else:
        found.update(by_default(run, "warmup", 0, source_of(run, "lr_warmup_iters", 0, _PATH)))
    found.update(algorithm(run))
    return found


def _is_on(run: Run, name: str) -> Setting:
    location = run.command.location if run.command is not None else None
    text = run.command.text[:80] if run.command is not None else name
    return Setting(name, True, location, note=text)


def _fsdp(run: Run) -> Setting:
    setting = find(run, "use_megatron_fsdp")
    if setting is None or (known(setting.value) and not truth(setting.value)):
        return practice("fsdp", "none", setting, source_of(run, "use_megatron_fsdp", False, _PATH))
    return practice("fsdp", "full_shard", setting)


def _compute(run: Run) -> dict[str, Setting]:
    fp8 = find(run, "fp8_format")
    if fp8 is not None and not (known(fp8.value) and is_off(fp8.value)):
        return {"precision": practice("precision", "fp8", fp8)}
    return precision(run)


_BACKENDS: Mapping[str, str] = {
    "flash": "flash_attention_2",
    "flash_2": "flash_attention_2",
    "flash_3": "flash_attention_3",
    "flash_4": "flash_attention_4",
    "fused": "sdpa",
    "unfused": "eager",
    "local": "eager",
    "auto": "auto",
}


def _attention(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    """``use_flash_attn`` is the older name (3.2 to 3.12); before 3.3 it was the only one."""
    setting, old = spelled.get("attention"), find(run, "use_flash_attn")
    if is_true(old) and find(run, "attention_backend") is None and not lacks(run, "use_flash_attn"):
        return {"attention": practice("attention", "flash_attention_2", old)}
    if setting is None and lacks(run, "attention_backend"):
        note = source_of(run, "use_flash_attn", False)
        return by_default(run, "attention", "auto", note)
    if setting is None or not isinstance(setting.value, str):
        return {}
    value = _BACKENDS.get(setting.value.lower(), setting.value)
    return {"attention": renamed(setting, "attention", value)}


def _recompute(spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    setting = spelled.get("gradient_checkpointing")
    if setting is None or not isinstance(setting.value, str):
        return {}
    is_on = not is_off(setting.value)
    return {"gradient_checkpointing": renamed(setting, "gradient_checkpointing", is_on)}


def _vision_checkpointing(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    """By default on up to 3.12; from 4.0 on where the tower is trained."""
    if "vit_gradient_checkpointing" in spelled:
        return {}
    name = "vit_gradient_checkpointing"
    default = declared(run, name)
    if default is not None and default.default is not None:
        note = source_of(run, name, default.default)
        return by_default(run, name, default.default, note)
    frozen = spelled.get("freeze_vision")
    if frozen is None or not known(frozen.value):
        return {}
    note = source_of(run, name, "None becomes not freeze_vit", _PATH)
    return by_default(run, name, truth(frozen.value) is False, note)


_ADAPTERS = (
    "adapters",
    "ref_adapters",
    "mcore_adapter",
    "mcore_ref_adapter",
    "adapter_load",
    "ref_adapter_load",
)


def _adapters(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    """Adapters to go on with make a full run one of LoRA, which Megatron has since ms-swift 3.7."""
    tuning, given = spelled.get("tuning"), find(run, *_ADAPTERS)
    if lacks(run, "lora_rank"):
        return by_default(run, "tuning", "full", f"ms-swift {release(run)}: Megatron trains all")
    if tuning is None or given is None or not given.known or is_off(given.value):
        return {}
    return {"tuning": practice("tuning", "lora", given)} if tuning.value == "full" else {}


def _batch(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    """Accumulation: global batch over micro-batch and data-parallel size."""
    whole = find(run, "global_batch_size")
    size = number(whole.value) if whole is not None else 16
    micro = number(spelled["micro_batch_size"].value) if "micro_batch_size" in spelled else None
    ranks = find(run, "train.gpus")  # Ray gives the training as many
    world = run.launcher.world_size if ranks is None else number(ranks.value)
    shared = 1.0
    for name in ("tensor_parallel", "pipeline_parallel", "sequence_parallel"):
        own = find(run, f"train.{SPELLINGS[name].parameter}")
        part = number((own or spelled[name]).value) if own or name in spelled else None
        if part is None:
            return {}
        shared *= part
    if not size or not micro or not world or not shared:
        return {}
    steps = max(1, int(size / micro / max(1.0, world / shared)))
    note = f"global_batch_size {size:g} / micro_batch_size {micro:g} / data parallel size"
    if whole is not None:
        return {
            "gradient_accumulation_steps": practice(
                "gradient_accumulation_steps", steps, whole, note
            )
        }
    return by_default(run, "gradient_accumulation_steps", steps, note)
