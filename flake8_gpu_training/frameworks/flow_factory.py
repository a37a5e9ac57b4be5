"""Flow-Factory: its nested YAML (``train.…``, ``model.…``), started through Accelerate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flake8_gpu_training.facts import Setting, Unknown, known
from flake8_gpu_training.frameworks.accelerate import practices_of, practices_of_run
from flake8_gpu_training.frameworks.base import Framework, Spelling
from flake8_gpu_training.frameworks.deepspeed import practices_from_deepspeed
from flake8_gpu_training.frameworks.launched import data_parallel, merged
from flake8_gpu_training.frameworks.reading import (
    by_default,
    dtype,
    find,
    is_off,
    number,
    practice,
    unknown,
)
from flake8_gpu_training.runs.model import Run

_HPARAMS = "Flow-Factory src/flow_factory/hparams"
_TRAIN = f"{_HPARAMS}/training_args.py"

_ATTENTION = {
    "flash_attention_2": "flash",
    "flash_attention_3": "_flash_3_hub",
    "sdpa": "native",
    "sage": "sage",
    "xformers": "xformers",
}
_BACKENDS: Mapping[str, str] = {
    "flash": "flash_attention_2",
    "flash_hub": "flash_attention_2",
    "flash_varlen": "flash_attention_2",
    "flash_varlen_hub": "flash_attention_2",
    "_flash_3": "flash_attention_3",
    "_flash_3_hub": "flash_attention_3",
    "_flash_varlen_3": "flash_attention_3",
    "_flash_3_varlen_hub": "flash_attention_3",
    "native": "sdpa",
    "flex": "flex_attention",
}

_SPELLINGS: dict[str, Spelling] = {
    "precision": Spelling(
        "mixed_precision", default="bf16", source=f"{_HPARAMS}/args.py: mixed_precision bf16"
    ),
    "attention": Spelling("model.attn_backend", _ATTENTION),
    "gradient_checkpointing": Spelling(
        "train.enable_gradient_checkpointing", default=False, source=f"{_TRAIN}: False"
    ),
    "micro_batch_size": Spelling(
        "train.per_device_batch_size", default=1, source=f"{_TRAIN}: per_device_batch_size 1"
    ),
    "gradient_accumulation_steps": Spelling("train.gradient_accumulation_steps"),
    "tuning": Spelling(
        "model.finetune_type", default="full", source=f"{_HPARAMS}/model_args.py: full"
    ),
    "lora_rank": Spelling("model.lora_rank", default=8, source=f"{_HPARAMS}/model_args.py: 8"),
    "dataloader_workers": Spelling(
        "data.dataloader_num_workers", default=16, source=f"{_HPARAMS}/data_args.py: 16"
    ),
    "max_grad_norm": Spelling("train.max_grad_norm", default=1.0, source=f"{_TRAIN}: 1.0"),
    "algorithm": Spelling(
        "train.trainer_type", default="grpo", source=f"{_TRAIN}: trainer_type grpo"
    ),
    "report_to": Spelling(
        "log.logging_backend", default="none", source=f"{_HPARAMS}/log_args.py: None"
    ),
    "model": Spelling("model.model_name_or_path"),
    "dataset": Spelling("data.dataset_dir"),
    "output_dir": Spelling("log.save_dir"),
}


def _derive(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    launched = {**_bundled(run), **practices_of_run(run)}
    found: dict[str, Setting] = {}
    found.update(_precision(run))
    found.update(_attention(run))
    found.update(_accumulation(spelled))
    found.update(_of_launch(launched, spelled))
    found.update(_sharding(run, launched))
    found.update(by_default(run, "optimizer", "adamw", f"{_HPARAMS}: torch.optim.AdamW"))
    found.update(data_parallel(run, merged(found, spelled)))
    return found


def _precision(run: Run) -> dict[str, Setting]:
    setting = find(run, "mixed_precision")
    if setting is None or setting.value is None:
        return {}
    if not known(setting.value):
        return {"precision": practice("precision", setting.value, setting)}
    value = "fp32" if is_off(setting.value) else dtype(setting.value)
    return {"precision": practice("precision", value, setting)} if value else {}


def _attention(run: Run) -> dict[str, Setting]:
    setting = find(run, "model.attn_backend", "attn_backend")
    if setting is None or setting.value is None:
        note = "Flow-Factory: attn_backend unset leaves Diffusers' native (SDPA) attention"
        return by_default(run, "attention", "sdpa", note)
    value = setting.value
    if isinstance(value, str):
        value = _BACKENDS.get(value.lower(), "sage" if "sage" in value.lower() else value.lower())
    return {"attention": practice("attention", value, setting)}


def _accumulation(spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    """``auto`` is worked out from the sampling settings when the run starts."""
    setting = spelled.get("gradient_accumulation_steps")
    if setting is None or not known(setting.value) or number(setting.value) is not None:
        return {}
    reason = "gradient_accumulation_steps: auto is worked out when the run starts"
    return {
        "gradient_accumulation_steps": unknown(
            "gradient_accumulation_steps", reason, at=setting.location
        )
    }


def _of_launch(
    launched: Mapping[str, Setting], spelled: Mapping[str, Setting]
) -> dict[str, Setting]:
    """What Accelerate's file turns on beside the YAML's own switches."""
    found = {name: launched[name] for name in ("torch_compile",) if name in launched}
    ours, theirs = spelled.get("gradient_checkpointing"), launched.get("gradient_checkpointing")
    if theirs is not None and (ours is None or (known(ours.value) and not ours.value)):
        found["gradient_checkpointing"] = theirs
    return found


# What the files of its own folder config say, where a project has only the YAML.
_BUNDLED_FILE = re.compile(r"(?:.*/)?config/(?:deepspeed|accelerate_configs)/(?P<name>\w+)\.yaml")
_DEEPSPEED: Mapping[str, Any] = {"distributed_type": "DEEPSPEED"}
_FSDP: Mapping[str, Any] = {"distributed_type": "FSDP", "fsdp_activation_checkpointing": True}
_BUNDLED: Mapping[str, Mapping[str, Any]] = {
    "deepspeed_zero1": {**_DEEPSPEED, "zero_stage": 1},
    "deepspeed_zero2": {**_DEEPSPEED, "zero_stage": 2},
    "deepspeed_zero2_offparam": {**_DEEPSPEED, "zero_stage": 2, "offload_param_device": "cpu"},
    "deepspeed_zero3": {**_DEEPSPEED, "zero_stage": 3},
    "fsdp2": {**_FSDP, "fsdp_version": 2, "fsdp_reshard_after_forward": True},
    "fsdp_full_shard": {**_FSDP, "fsdp_sharding_strategy": "FULL_SHARD"},
    "fsdp_grad_op_shard": {**_FSDP, "fsdp_sharding_strategy": "SHARD_GRAD_OP"},
    "multi_gpu": {"distributed_type": "MULTI_GPU"},
}


def _bundled(run: Run) -> dict[str, Setting]:
    """The practices of an Accelerate file that comes with Flow-Factory and was not found."""
    config = find(run, "config_file")
    if run.accelerate is not None or config is None or not isinstance(config.value, str):
        return {}
    named = _BUNDLED_FILE.fullmatch(config.value)
    values = _BUNDLED.get(named["name"]) if named is not None else None
    if values is None:
        return {}
    settings = {name: replace(config, name=name, value=value) for name, value in values.items()}
    found = {"zero_hpz_partition_size": 1}
    found.update({name: one.value for name, one in practices_of(settings).items()})
    return {name: practice(name, value, config) for name, value in found.items()}


def _sharding(run: Run, launched: Mapping[str, Setting]) -> dict[str, Setting]:
    names = (
        "zero_stage",
        "offload_optimizer",
        "offload_param",
        "overlap_comm",
        "zero_hpz_partition_size",
        "fsdp",
        "fsdp_version",
        "fsdp_offload",
    )
    found = {name: value for name, value in launched.items() if name in names}
    if run.deepspeed is not None:
        read = practices_from_deepspeed(run.deepspeed)
        found.update({name: value for name, value in read.items() if name in names})
    config = find(run, "config_file")
    if config is not None and config.value and run.accelerate is None and not found:
        hidden = Unknown("the file of config_file was not found")
        return {name: practice(name, hidden, config) for name in ("zero_stage", "fsdp")}
    if "zero_stage" not in found:
        found.update(by_default(run, "zero_stage", 0, "accelerate: DeepSpeed is off"))
    if "fsdp" not in found:
        found.update(by_default(run, "fsdp", "none", "accelerate: FSDP is off"))
    return found


FRAMEWORK = Framework(
    id="flow_factory",
    title="Flow-Factory",
    audit="flow-factory",
    distribution="flow-factory",
    spellings=_SPELLINGS,
    derive=_derive,
)
