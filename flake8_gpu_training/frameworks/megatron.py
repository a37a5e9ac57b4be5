"""Megatron-LM and its forks: the flags of ``pretrain_gpt.py`` and its kin."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Optional

from flake8_gpu_training.facts import Origin, Setting
from flake8_gpu_training.frameworks.base import Spelling
from flake8_gpu_training.frameworks.reading import (
    by_default,
    find,
    is_off,
    is_true,
    number,
    parsed,
    practice,
)
from flake8_gpu_training.runs.model import Model, Run, RunKind

_ARGUMENTS = "Megatron-LM 0.20 megatron/training/arguments.py"
_CONFIG = "Megatron-LM 0.20 megatron/training/config/training_config.py"
_SAMPLERS = "Megatron-LM 0.20 megatron/training/datasets/data_samplers.py"

FLAG = "--{dashed} {value}"

_BACKENDS = {
    "flash": "flash_attention_2",
    "fused": "sdpa",
    "unfused": "eager",
    "local": "eager",
}

# Flags that together only Megatron's own parser takes.
_MARKS = ("micro_batch_size", "num_layers", "hidden_size", "num_attention_heads")
_CHECKPOINT_MARKS = ("micro_batch_size", "tensor_model_parallel_size", "use_checkpoint_args")
"""The same where the shape is read from a checkpoint."""
_OTHER_MARKS = ("train_iters", "train_samples", "tensor_model_parallel_size", "global_batch_size")

SPELLINGS: Mapping[str, Spelling] = {
    "precision": Spelling("bf16", {"bf16": True}, instead={"fp16": {"fp16": True}}),
    "attention": Spelling(
        "use_flash_attn", instead={"flash_attention_2": {"use_flash_attn": True}}
    ),
    "gradient_checkpointing": Spelling(
        "recompute_granularity", instead={True: {"recompute_granularity": "selective"}}
    ),
    "micro_batch_size": Spelling("micro_batch_size"),
    "max_length": Spelling("seq_length"),
    "tensor_parallel": Spelling("tensor_model_parallel_size", default=1, source=_ARGUMENTS),
    "pipeline_parallel": Spelling("pipeline_model_parallel_size", default=1, source=_ARGUMENTS),
    "sequence_parallel": Spelling("context_parallel_size", default=1, source=_ARGUMENTS),
    "expert_parallel": Spelling("expert_model_parallel_size", default=1, source=_ARGUMENTS),
    "overlap_comm": Spelling("overlap_grad_reduce"),
    "optimizer": Spelling("optimizer", default="adam", source=f"{_ARGUMENTS}: optimizer adam"),
    "dataloader_workers": Spelling("num_workers", default=2, source=f"{_ARGUMENTS}: num_workers 2"),
    "save_steps": Spelling("save_interval", aliases=("persistent_save_interval",)),
    "logging_steps": Spelling("log_interval", default=100, source=f"{_CONFIG}: log_interval 100"),
    "lr_scheduler": Spelling(
        "lr_decay_style", default="linear", source=f"{_CONFIG}: lr_decay_style linear"
    ),
    "warmup": Spelling("lr_warmup_fraction"),
    "max_grad_norm": Spelling("clip_grad", default=1.0, source=f"{_ARGUMENTS}: clip_grad 1.0"),
    "dataset": Spelling("data_path", aliases=("train_data_path",)),
    "output_dir": Spelling("save"),
}


def is_megatron_lm(run: Run) -> bool:
    """Whether the run's flags are those of Megatron-LM."""
    if run.framework != "generic" or run.kind is not RunKind.TRAIN:
        return False
    return is_known_by(run.settings.keys()) and not _is_look_alike(run)


def _is_look_alike(run: Run) -> bool:
    """Whether the program was read, names its own options so, and has nothing of Megatron."""
    names = {option.name for file in run.python for option in file.options}
    modules = [item.module for file in run.python for item in file.imports]
    paths = [file.path for file in run.python]
    return _MARKS[0] in names and not any("megatron" in text.lower() for text in modules + paths)


# Flags that came with core 0.5 (November 2023) or later, as --overlap-grad-reduce did.
_RECENT = (
    "attention_backend",
    "ckpt_format",
    "cross_entropy_loss_fusion",
    "dist_ckpt_format",
    "fp8_format",
    "overlap_grad_reduce",
    "overlap_param_gather",
    "transformer_impl",
    "use_dist_ckpt",
    "use_mcore_models",
    "use_megatron_fsdp",
    "use_torch_fsdp2",
)


def is_recent(run: Run) -> bool:
    """Whether the flags are of a Megatron-LM from core 0.5 on: older ones, and many forks, know
    neither overlap_grad_reduce nor fp8_format."""
    pinned = run.versions.get("megatron-core", "")
    is_new = bool(pinned) and parsed(pinned) >= (0, 5)
    return is_new or any(name in run.settings for name in _RECENT)


def trains(names: Collection[str]) -> bool:
    """Whether Megatron's flags of these names are those of training, not of sampling."""
    return any(name in names for name in _TRAINING)


_TRAINING = ("lr", "train_iters", "train_samples", "train_tokens", "epochs")


def is_known_by(names: Collection[str]) -> bool:
    """Whether parameters of these names are, together, Megatron-LM's alone."""
    if all(name in names for name in _CHECKPOINT_MARKS):
        return True
    return all(name in names for name in _MARKS) and any(name in names for name in _OTHER_MARKS)


def model_of_flags(settings: Mapping[str, Setting]) -> Optional[Model]:
    """The decoder whose shape the flags give; the embeddings count when their size is known."""
    shape = {name: _count(settings, name) for name in _SHAPE}
    layers, hidden, heads = shape["num_layers"], shape["hidden_size"], shape["num_attention_heads"]
    if not is_known_by(settings.keys()) or not layers or not hidden or not heads:
        return None
    is_gated = is_true(settings.get("swiglu"))
    width = shape["ffn_hidden_size"] or (
        int(4 * hidden * 2 / 3 / 64) * 64 if is_gated else 4 * hidden
    )
    groups = shape["num_query_groups"] if "group_query_attention" in settings else heads
    experts = shape["num_experts"] or 0
    used = shape["moe_router_topk"] or 2
    block = (3 if is_gated else 2) * hidden
    expert = block * (shape["moe_ffn_hidden_size"] or width)
    attention = 2 * hidden * hidden * (1 + (groups or 1) / heads)
    tied = "untie_embeddings_and_output_weights" not in settings
    embeddings = (shape["vocab_size"] or 0) * hidden * (1 if tied else 2)
    whole = layers * (attention + (experts * expert if experts else block * width)) + embeddings
    active = layers * (attention + (used * expert if experts else block * width)) + embeddings
    return Model(
        kind="LLM",
        parameters=int(whole),
        active_parameters=int(active),
        layers=layers,
        hidden_size=hidden,
        heads=heads,
        kv_heads=groups,
        intermediate_size=width,
        is_moe=bool(experts),
        source="num_layers, hidden_size and num_attention_heads of the command",
        location=settings["num_layers"].location,
    )


_SHAPE = (
    "num_layers",
    "hidden_size",
    "num_attention_heads",
    "ffn_hidden_size",
    "num_query_groups",
    "num_experts",
    "moe_router_topk",
    "moe_ffn_hidden_size",
    "vocab_size",
)


def _count(settings: Mapping[str, Setting], name: str) -> Optional[int]:
    setting = settings.get(name)
    figure = number(setting.value) if setting is not None else None
    return int(figure) if figure is not None and 0 < figure < _NO_COUNT else None


_NO_COUNT = 10**7


def practices(run: Run) -> dict[str, Setting]:
    """What takes more than a renaming."""
    found = {"megatron": _named(run)}
    found.update(_precision(run))
    found.update(_attention(run))
    found.update(_sharding(run))
    if is_recent(run) and find(run, "overlap_grad_reduce") is None:
        note = f"{_ARGUMENTS}: overlap_grad_reduce False"
        found.update(by_default(run, "overlap_comm", False, note))
    found.update(_loading(run))
    found.update(_data(run))
    found.update(_accumulation(run))
    found.update(_training(run))
    return found


def _named(run: Run) -> Setting:
    """The command is the evidence that Megatron drives the run."""
    at = run.command.location if run.command is not None else None
    script = (run.entry or "").rpartition("/")[2]
    return Setting("megatron", True, at, Origin.DERIVED, f"{script}: flags of Megatron-LM")


def _precision(run: Run) -> dict[str, Setting]:
    for flag, value in (("fp8_format", "fp8"), ("bf16", "bf16"), ("fp16", "fp16")):
        setting = find(run, flag)
        if setting is not None and setting.known and not is_off(setting.value):
            return {"precision": practice("precision", value, setting)}
    return by_default(run, "precision", "fp32", f"{_ARGUMENTS}: bf16 False, fp16 False")


def _attention(run: Run) -> dict[str, Setting]:
    """Transformer Engine picks a kernel; Megatron's own layers compute the whole score matrix."""
    flash = find(run, "use_flash_attn")
    if is_true(flash):
        return {"attention": practice("attention", "flash_attention_2", flash)}
    backend = find(run, "attention_backend")
    if backend is not None:
        return {"attention": practice("attention", _BACKENDS.get(backend.value, "auto"), backend)}
    layers = find(run, "transformer_impl")
    if layers is not None and layers.value == "local":
        return {"attention": practice("attention", "eager", layers)}
    return {}


def _sharding(run: Run) -> dict[str, Setting]:
    """All weights are trained; FSDP and the optimizer's offload are switches."""
    found = by_default(run, "tuning", "full", "Megatron-LM trains all weights")
    for flag in ("use_torch_fsdp2", "use_megatron_fsdp", "use_custom_fsdp"):
        setting = find(run, flag)
        if is_true(setting):
            found["fsdp"] = practice("fsdp", "full_shard", setting)
    if "fsdp" not in found:
        found.update(by_default(run, "fsdp", "none", f"{_ARGUMENTS}: use_torch_fsdp2 False"))
    offload = find(run, "optimizer_cpu_offload")
    if offload is None:
        note = f"{_ARGUMENTS}: optimizer_cpu_offload False"
        found.update(by_default(run, "offload_optimizer", "none", note))
    else:
        value = "cpu" if is_true(offload) else "none"
        found["offload_optimizer"] = practice("offload_optimizer", value, offload)
    if run.deepspeed is None and find(run, "deepspeed") is None:
        found.update(by_default(run, "zero_stage", 0, "Megatron-LM runs without DeepSpeed"))
    return found


def _loading(run: Run) -> dict[str, Setting]:
    """Loaders pin their batches and keep their workers."""
    found = by_default(run, "pin_memory", True, f"{_SAMPLERS}: pin_memory=True")
    workers = find(run, "num_workers")
    if workers is None or number(workers.value):
        note = f"{_SAMPLERS}: persistent_workers with workers"
        found.update(by_default(run, "persistent_workers", True, note))
    return found


def _data(run: Run) -> dict[str, Setting]:
    """Token files (``.bin``, ``.idx``), cut into sequences that hold several documents."""
    data = find(run, "data_path", "train_data_path", "data_args_path", "per_split_data_args_path")
    if data is None or not data.known or is_off(data.value) or is_mocked(run) is not None:
        return {}
    if is_true(find(run, "sft")):
        return {}
    found = {"pretokenized": practice("pretokenized", True, data)}
    if (run.entry or "").rpartition("/")[2] in ("pretrain_gpt.py", "pretrain_mamba.py"):
        note = "Megatron-LM 0.20 GPTDataset: documents are joined to sequences of seq_length"
        found["packing"] = practice("packing", True, data, note)
        found["algorithm"] = practice("algorithm", "pt", data)
    return found


def is_mocked(run: Run) -> Optional[Setting]:
    """The switch that makes up the data, when it is on."""
    setting = find(run, "mock_data")
    return setting if is_megatron_lm(run) and is_true(setting) else None


def _accumulation(run: Run) -> dict[str, Setting]:
    whole, micro = find(run, "global_batch_size"), find(run, "micro_batch_size")
    world = run.launcher.world_size
    if whole is None or micro is None or world is None:
        return {}
    divisor = 1
    for name in (
        "tensor_model_parallel_size",
        "pipeline_model_parallel_size",
        "context_parallel_size",
    ):
        setting = find(run, name)
        size = number(setting.value) if setting is not None else 1
        if not size:
            return {}
        divisor *= int(size)
    samples, each = number(whole.value), number(micro.value)
    ranks = world // divisor
    if not samples or not each or not ranks:
        return {}
    steps = int(samples / (each * ranks))
    note = f"global_batch_size={samples:g}, {each:g} samples on {ranks} data-parallel ranks"
    name = "gradient_accumulation_steps"
    return {name: practice(name, max(steps, 1), whole, note)}


def _training(run: Run) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    warm = find(run, "lr_warmup_fraction", "lr_warmup_iters", "lr_warmup_samples")
    if warm is not None:
        found["warmup"] = practice("warmup", warm.value, warm)
    else:
        found.update(by_default(run, "warmup", 0, f"{_CONFIG}: lr_warmup_iters 0"))
    if find(run, "save_interval", "persistent_save_interval") is None:
        found.update(by_default(run, "save_steps", None, f"{_CONFIG}: save_interval None"))
    project, board = find(run, "wandb_project"), find(run, "tensorboard_dir")
    tracker = project or board
    if tracker is None:
        found.update(by_default(run, "report_to", "none", f"{_CONFIG}: wandb_project None"))
    else:
        value = "wandb" if project is not None else "tensorboard"
        found["report_to"] = practice("report_to", value, tracker)
    recompute = find(
        run,
        "recompute_granularity",
        "recompute_activations",
        "checkpoint_activations",
        "activations_checkpoint_method",
    )
    if recompute is not None:
        value = recompute.value
        is_on = not is_off(value) if recompute.known else value
        found["gradient_checkpointing"] = practice("gradient_checkpointing", is_on, recompute)
    else:
        note = f"{_ARGUMENTS}: recompute_granularity None"
        found.update(by_default(run, "gradient_checkpointing", False, note))
    return found
