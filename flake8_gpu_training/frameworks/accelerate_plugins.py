"""Practices of the plugins that a program hands to Accelerate: FSDP, DeepSpeed, dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

from flake8_gpu_training.facts import Argument, Call, Origin, Setting, Unknown, known
from flake8_gpu_training.frameworks.called import given
from flake8_gpu_training.runs.model import Run

_SOURCE = "accelerate 1.15 utils/dataclasses.py"
_PREFETCHING = ("backward_pre", "backward_post")


def practices_of_plugins(run: Run) -> dict[str, Setting]:
    """What the objects set that a program hands to its ``Accelerator``."""
    found: dict[str, Setting] = {}
    deepspeed = _only(run, "DeepSpeedPlugin")
    if deepspeed is not None:
        found.update(_deepspeed(deepspeed))
    plugin = _only(run, "FullyShardedDataParallelPlugin")
    if plugin is not None:
        found.update(_fsdp(plugin))
    dimensions = _only(run, "ParallelismConfig")
    if dimensions is not None:
        found.update(_dimensions(dimensions))
    return found


def _only(run: Run, name: str) -> Optional[Call]:
    """The one call that makes the object, if there is just one."""
    made = [call for call in _calls(run, name) if "accelerate" in call.name]
    return made[0] if len(made) == 1 else None


def _calls(run: Run, name: str) -> Iterator[Call]:
    return (call for file in run.python for call in file.calls if call.method == name)


def _deepspeed(call: Call) -> dict[str, Setting]:
    """What ``DeepSpeedPlugin`` is given; the rest is the launcher's, or its own default."""
    found: dict[str, Setting] = {}
    for keyword, name, position in (
        ("gradient_accumulation_steps", "gradient_accumulation_steps", 1),
        ("gradient_clipping", "max_grad_norm", 2),
        ("zero_stage", "zero_stage", 3),
        ("offload_optimizer_device", "offload_optimizer", -1),
        ("offload_param_device", "offload_param", -1),
    ):
        argument = call.keywords.get(keyword)
        if argument is None and 0 <= position < len(call.positional):
            argument = call.positional[position]
        if argument is not None and argument.value not in (None, "auto"):
            found[name] = given(name, argument.value, call, argument)
    return found


def _fsdp(call: Call) -> dict[str, Setting]:
    if call.is_open or call.conditional:
        reason = Unknown("the FSDP plugin may not be made, or not all its arguments are known")
        return {"fsdp": Setting("fsdp", reason, call.location)}
    version = call.keywords.get("fsdp_version")
    level = 1 if version is None else version.value
    found = {"fsdp_version": given("fsdp_version", level, call, version)}
    found["fsdp"] = _sharding(call, level)
    offload = call.keywords.get("cpu_offload")
    found["fsdp_offload"] = given("fsdp_offload", _offloads(offload), call, offload)
    recompute = call.keywords.get("activation_checkpointing")
    if recompute is not None and recompute.value is not False:
        found["gradient_checkpointing"] = given(
            "gradient_checkpointing", recompute.value, call, recompute
        )
    found["overlap_comm"] = _overlap(call, level)
    return found


def _sharding(call: Call, level: Any) -> Setting:
    strategy = call.keywords.get("sharding_strategy") or call.keywords.get("reshard_after_forward")
    value: Any = "full_shard"
    if strategy is not None:
        value = strategy.value
        if value is False:
            value = "shard_grad_op"
        elif isinstance(value, str):
            value = value.rpartition(".")[2].lower().replace("_zero2", "").lstrip("_")
        elif known(value):
            value = "full_shard" if value is True else Unknown("the strategy is not a literal")
    return given("fsdp", value, call, strategy)


def _offloads(argument: Optional[Argument]) -> Any:
    if argument is None or argument.value is None:
        return False
    if isinstance(argument.value, bool):
        return argument.value
    return "offload_params=True" in argument.text.replace(" ", "") or Unknown("not a literal")


def _overlap(call: Call, level: Any) -> Setting:
    """FSDP1 gathers ahead in the backward pass when told to; FSDP2 always does."""
    prefetch = call.keywords.get("backward_prefetch")
    if level == 2:
        note = "FSDP2 gathers the next layer's weights ahead"
        return Setting("overlap_comm", True, call.location, Origin.DERIVED, note)
    if prefetch is None:
        note = f"{_SOURCE}: backward_prefetch NO_PREFETCH unless set"
        return Setting("overlap_comm", False, None, Origin.DEFAULT, note)
    text = str(prefetch.value).rpartition(".")[2].lower()
    return given("overlap_comm", text in _PREFETCHING, call, prefetch)


def _dimensions(call: Call) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    for keyword, name in (
        ("tp_size", "tensor_parallel"),
        ("cp_size", "sequence_parallel"),
        ("sp_size", "sequence_parallel"),
    ):
        argument = call.keywords.get(keyword)
        if argument is None or (known(argument.value) and not isinstance(argument.value, int)):
            continue
        if name not in found or argument.value != 1:
            found[name] = given(name, argument.value, call, argument)
    return found
