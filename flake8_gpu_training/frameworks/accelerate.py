"""Practices that Accelerate's configuration file, launch flags and environment set."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Optional

from flake8_gpu_training.facts import Document, Origin, Setting, Unknown, known
from flake8_gpu_training.frameworks.accelerate_plugins import practices_of_plugins
from flake8_gpu_training.frameworks.reading import dtype, is_off, number, practice, renamed, truth
from flake8_gpu_training.runs.model import Run

_SECTIONS = (
    "deepspeed_config",
    "fsdp_config",
    "megatron_lm_config",
    "dynamo_config",
    "fp8_config",
    "parallelism_config",
)
_LAUNCH = "accelerate 1.15 commands/launch.py"
_PLUGIN = "accelerate 1.15 utils/dataclasses.py"
_SHARDING: Mapping[str, str] = {
    "1": "full_shard",
    "2": "shard_grad_op",
    "3": "no_shard",
    "4": "hybrid_shard",
    "5": "hybrid_shard",
    "full_shard": "full_shard",
    "shard_grad_op": "shard_grad_op",
    "no_shard": "no_shard",
    "hybrid_shard": "hybrid_shard",
    "hybrid_shard_zero2": "hybrid_shard",
}
_ENVIRONMENT: Mapping[str, str] = {
    "ACCELERATE_MIXED_PRECISION": "mixed_precision",
    "ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "gradient_accumulation_steps",
    "ACCELERATE_DYNAMO_BACKEND": "dynamo_backend",
}


# As ``accelerate launch`` asks (1.15 commands/launch.py): a flag of these silences the file.
_KINDS = (
    ("", "multi_gpu"),
    ("deepspeed", "use_deepspeed"),
    ("fsdp", "use_fsdp"),
    ("megatron", "use_megatron_lm"),
)


def practices_from_accelerate(document: Document) -> dict[str, Setting]:
    """Practices that an Accelerate configuration file sets."""
    return practices_of(flattened(document))


def practices_of_run(run: Run) -> dict[str, Setting]:
    """Practices that the run's Accelerate file, launch flags and environment set.

    Flags win over the file and the file over the environment, as ``accelerate launch`` has it.
    """
    settings: dict[str, Setting] = {}
    for variable, name in _ENVIRONMENT.items():
        if variable in run.environment:
            settings[name] = dataclasses.replace(run.environment[variable], name=name)
    if run.accelerate is not None:
        settings.update(flattened(run.accelerate))
    if run.launcher.name in ("accelerate", "trl"):  # TRL's commands start it themselves
        for name, setting in run.launcher.options.items():
            settings[_plain(name)] = dataclasses.replace(setting, name=_plain(name))
    return {**practices_of(settings), **practices_of_plugins(run)}


def flattened(document: Document) -> dict[str, Setting]:
    """The file's settings under the names that the flags have."""
    found: dict[str, Setting] = {}
    for name, setting in document.settings().items():
        node = document.get(name)
        text = node.text if node is not None else ""
        found[_plain(name)] = dataclasses.replace(setting, name=_plain(name), text=text)
    return found


def _plain(name: str) -> str:
    section, dot, rest = name.partition(".")
    return rest if dot and section in _SECTIONS else name


def practices_of(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Practices from settings under their flag names."""
    found: dict[str, Setting] = {}
    _precision(found, settings)
    kind = _kind(settings)
    if kind == "deepspeed":
        _deepspeed(found, settings)
    elif kind == "fsdp":
        _fsdp(found, settings)
    elif kind == "megatron":
        _megatron(found, settings)
    _dimensions(found, settings)
    backend = settings.get("dynamo_backend")
    if backend is not None:
        found["torch_compile"] = practice("torch_compile", not is_off(backend.value), backend)
    return found


def _kind(settings: Mapping[str, Setting]) -> str:
    """What distributes the model: by a flag, which has precedence, or by the file."""
    for kind, flag in _KINDS:
        setting = settings.get(flag)
        if setting is not None and known(setting.value) and truth(setting.value):
            return kind
    written = settings.get("distributed_type")
    if written is not None and isinstance(written.value, str):
        for kind in ("deepspeed", "fsdp", "megatron"):
            if kind in written.value.lower():
                return kind
    return ""


def _precision(found: dict[str, Setting], settings: Mapping[str, Setting]) -> None:
    setting = settings.get("mixed_precision")
    if setting is None:
        return
    if not known(setting.value):
        found["precision"] = practice("precision", setting.value, setting)
    elif is_off(setting.value):
        found["precision"] = practice("precision", "fp32", setting)
    else:
        value = dtype(setting.value)
        if value is not None:
            found["precision"] = practice("precision", value, setting)


def _deepspeed(found: dict[str, Setting], settings: Mapping[str, Setting]) -> None:
    _number(found, settings, "gradient_accumulation_steps", "gradient_accumulation_steps")
    _number(found, settings, "gradient_clipping", "max_grad_norm")
    if "deepspeed_config_file" in settings and not is_off(settings["deepspeed_config_file"].value):
        return
    stage = settings.get("zero_stage")
    if stage is None:
        found["zero_stage"] = Setting(
            "zero_stage", 2, None, Origin.DEFAULT, f"{_LAUNCH}: zero_stage 2 unless set"
        )
    elif not known(stage.value):
        found["zero_stage"] = practice("zero_stage", stage.value, stage)
    elif str(stage.value) in ("0", "1", "2", "3"):
        found["zero_stage"] = practice("zero_stage", int(stage.value), stage)
    level = found["zero_stage"].value if "zero_stage" in found else None
    if isinstance(level, int):  # the plugin says nothing of it: DeepSpeed's own default
        note = "overlap_comm is on at stage 3 and off below unless deepspeed_config_file sets it"
        found["overlap_comm"] = Setting("overlap_comm", level == 3, None, Origin.DEFAULT, note)
    for name, parameter in (
        ("offload_optimizer", "offload_optimizer_device"),
        ("offload_param", "offload_param_device"),
    ):
        found[name] = _device(name, settings.get(parameter), parameter)


def _device(name: str, setting: Optional[Setting], parameter: str) -> Setting:
    if setting is None:
        note = f"{_LAUNCH}: {parameter} none unless set"
        return Setting(name, "none", None, Origin.DEFAULT, note)
    if known(setting.value) and is_off(setting.value):
        return practice(name, "none", setting)
    value = str(setting.value).lower() if known(setting.value) else setting.value
    return practice(name, value, setting)


def _fsdp(found: dict[str, Setting], settings: Mapping[str, Setting]) -> None:
    version = settings.get("fsdp_version")
    is_second = version is not None and known(version.value) and str(version.value) == "2"
    if version is None:
        note = f"{_LAUNCH}: fsdp_version 1 unless set"
        found["fsdp_version"] = Setting("fsdp_version", 1, None, Origin.DEFAULT, note)
    else:
        found["fsdp_version"] = practice("fsdp_version", 2 if is_second else 1, version)
    found["fsdp"] = _sharding(settings, is_second)
    offload = settings.get("fsdp_offload_params")
    if offload is None:
        note = f"{_LAUNCH}: fsdp_offload_params false unless set"
        found["fsdp_offload"] = Setting("fsdp_offload", False, None, Origin.DEFAULT, note)
    else:
        found["fsdp_offload"] = practice("fsdp_offload", _as_truth(offload.value), offload)
    found["overlap_comm"] = _prefetching(settings, is_second)
    checkpointing = settings.get("fsdp_activation_checkpointing")
    if checkpointing is not None and _as_truth(checkpointing.value) is not False:
        found["gradient_checkpointing"] = practice(
            "gradient_checkpointing", _as_truth(checkpointing.value), checkpointing
        )


def _prefetching(settings: Mapping[str, Setting], is_second: bool) -> Setting:
    """FSDP1 gathers ahead in the backward pass when told to; FSDP2 always does."""
    if is_second:
        note = "FSDP2 gathers the next layer's weights ahead"
        return Setting("overlap_comm", True, None, Origin.DERIVED, note)
    prefetch = settings.get("fsdp_backward_prefetch") or settings.get(
        "fsdp_backward_prefetch_policy"
    )
    if prefetch is None or (known(prefetch.value) and prefetch.value is None):
        note = f"{_PLUGIN}: fsdp_backward_prefetch NO_PREFETCH unless set"
        return Setting("overlap_comm", False, None, Origin.DEFAULT, note)
    is_on = str(prefetch.value).upper() in ("BACKWARD_PRE", "BACKWARD_POST", "1", "2")
    return practice("overlap_comm", is_on, prefetch)


def _dimensions(found: dict[str, Setting], settings: Mapping[str, Setting]) -> None:
    for parameter, name in (
        ("parallelism_config_tp_size", "tensor_parallel"),
        ("parallelism_config_cp_size", "sequence_parallel"),
        ("parallelism_config_sp_size", "sequence_parallel"),
    ):
        setting = settings.get(parameter)
        if name not in found or (setting is not None and setting.value != 1):
            _number(found, settings, parameter, name)


def _sharding(settings: Mapping[str, Setting], is_second: bool) -> Setting:
    reshard = settings.get("fsdp_reshard_after_forward")
    strategy = settings.get("fsdp_sharding_strategy")
    if is_second:
        if reshard is None:
            note = f"{_LAUNCH}: fsdp_reshard_after_forward true unless set"
            return Setting("fsdp", "full_shard", None, Origin.DEFAULT, note)
        if not known(reshard.value):
            either = Unknown(reshard.value.reason, ("full_shard", "shard_grad_op"))
            return dataclasses.replace(reshard, name="fsdp", value=either)
        is_full = _as_truth(reshard.value) is not False
        return practice("fsdp", "full_shard" if is_full else "shard_grad_op", reshard)
    # Accelerate 1.8 and later also take the strategy's name in reshard_after_forward.
    for setting in (strategy, reshard):
        if setting is not None and known(setting.value):
            value = _SHARDING.get(str(setting.value).lower())
            if value is not None:
                return practice("fsdp", value, setting)
        elif setting is not None:
            return practice("fsdp", setting.value, setting)
    note = f"{_LAUNCH}: fsdp_sharding_strategy FULL_SHARD unless set"
    return Setting("fsdp", "full_shard", None, Origin.DEFAULT, note)


def _megatron(found: dict[str, Setting], settings: Mapping[str, Setting]) -> None:
    source = settings.get("distributed_type") or settings.get("use_megatron_lm")
    if source is not None:
        found["megatron"] = renamed(source, "megatron", True)
    _number(found, settings, "megatron_lm_tp_degree", "tensor_parallel")
    _number(found, settings, "megatron_lm_pp_degree", "pipeline_parallel")


def _number(
    found: dict[str, Setting], settings: Mapping[str, Setting], parameter: str, name: str
) -> None:
    setting = settings.get(parameter)
    if setting is None or (known(setting.value) and number(setting.value) is None):
        return
    found[name] = practice(name, setting.value, setting)


def _as_truth(value: Any) -> Any:
    return truth(value) if known(value) else value
