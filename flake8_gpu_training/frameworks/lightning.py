"""Lightning's Trainer and Fabric: what their ``strategy`` and ``precision`` stand for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Optional

from flake8_gpu_training.facts import Argument, Call, Origin, Setting, Unknown, known
from flake8_gpu_training.frameworks.called import given
from flake8_gpu_training.frameworks.reading import version_of
from flake8_gpu_training.runs.model import Run

_ROOTS = ("lightning", "pytorch_lightning", "lightning_fabric")
_SOURCE = "lightning 2.6.6"
_PRECISION: Mapping[str, str] = {
    "bf16": "bf16",
    "bf16-mixed": "bf16",
    "16": "fp16",
    "16-mixed": "fp16",
    "bf16-true": "pure-bf16",
    "16-true": "fp16",
    "32": "fp32",
    "32-true": "fp32",
    "64": "fp32",
    "64-true": "fp32",
    "transformer-engine": "fp8",
    "transformer-engine-float16": "fp8",
}
_PRECISION_PLUGINS = ("MixedPrecision", "HalfPrecision", "FSDPPrecision", "DeepSpeedPrecision")
_STAGE = re.compile(r"deepspeed(?:_stage_([123]))?(_offload)?(_nvme)?")
_UNUSED = "find_unused_parameters"
_SHARDING = ("ddp", "zero_stage", "fsdp")
_WITHOUT_PRECISION = ("cpu", "tpu", "mps", "hpu")


def trainer_of(calls: Iterable[Call]) -> Optional[Call]:
    """The call of Lightning's ``Trainer`` or ``Fabric``."""
    for call in calls:
        if call.method in ("Trainer", "Fabric") and call.name.partition(".")[0] in _ROOTS:
            return call
    return None


# --- precision ----------------------------------------------------------------------------


def precision_of(trainer: Call, calls: Iterable[Call]) -> Optional[Setting]:
    """The precision that the trainer's arguments, or a plugin of theirs, set."""
    argument = trainer.keywords.get("precision")
    if argument is not None:
        return _named_precision(trainer, argument)
    plugins = trainer.keywords.get("plugins")
    if plugins is not None:
        return _of_plugins(plugins, calls)
    if trainer.is_open:
        return _unread("precision", "arguments of the Trainer are not all known")
    device = trainer.keywords.get("accelerator")
    if device is not None and device.value in _WITHOUT_PRECISION:
        return None
    note = "Lightning: precision 32-true unless set"
    return Setting("precision", "fp32", None, Origin.DEFAULT, note)


def _named_precision(call: Call, argument: Argument) -> Optional[Setting]:
    if not known(argument.value):
        return given("precision", argument.value, call, argument)
    value = _PRECISION.get(str(argument.value))
    return given("precision", value, call, argument) if value else None


def _of_plugins(plugins: Argument, calls: Iterable[Call]) -> Optional[Setting]:
    for call in calls:
        if call.name.partition(".")[0] not in _ROOTS:
            continue
        if call.method == "TransformerEnginePrecision":
            return given("precision", "fp8", call)
        if call.method in _PRECISION_PLUGINS:
            argument = call.keywords.get("precision") or next(iter(call.positional), None)
            if argument is not None:
                return _named_precision(call, argument)
    return _unread("precision", f"plugins={plugins.text} may set the precision")


_OWN_PRECISION: Mapping[str, tuple[str, ...]] = {
    "DDPStrategy": ("precision_plugin",),
    "SingleDeviceStrategy": ("precision_plugin",),
    "FSDPStrategy": ("precision_plugin", "mixed_precision"),
    "DeepSpeedStrategy": ("precision_plugin", "config"),
    "ModelParallelStrategy": (),
}
"""Keywords of the strategies by which they, and not the trainer, set a precision."""


def strategy_with_precision(trainer: Call, calls: Iterable[Call]) -> Optional[str]:
    """Why the trainer's strategy may set a precision of its own, or None when it does not."""
    argument = trainer.keywords.get("strategy")
    if argument is None or argument.value is None or isinstance(argument.value, str):
        return None
    options = argument.value.candidates if isinstance(argument.value, Unknown) else ()
    if options and all(isinstance(option, str) for option in options):
        return None
    made = _object(argument, calls)
    if made is None or made.method not in _OWN_PRECISION:
        return f"the strategy {argument.text} may set the precision"
    said = [name for name in _OWN_PRECISION[made.method] if name in made.keywords]
    if made.is_open or said:
        return f"{made.method}({said[0] if said else '...'}) may set the precision"
    return None


# --- strategy -----------------------------------------------------------------------------


def strategy_of(run: Run, trainer: Call, calls: Iterable[Call]) -> dict[str, Setting]:
    """How the trainer's ``strategy`` replicates or shards the model."""
    argument = trainer.keywords.get("strategy")
    if argument is None:
        return {} if trainer.is_open else _automatic(run)
    if isinstance(argument.value, str):
        return _named(run, trainer, argument)
    made = _object(argument, calls)
    asked = [c for c in made.conditions if c not in trainer.conditions] if made is not None else []
    if asked:
        reason = f"it depends on {asked[-1].text or 'a branch'}"
        return {name: _unread(name, reason, argument) for name in _SHARDING}
    found = _of_object(run, made) if made is not None else None
    if found is not None:
        return found
    return {name: _unread(name, "the strategy is not a literal", argument) for name in _SHARDING}


def _automatic(run: Run) -> dict[str, Setting]:
    """No ``strategy``: DDP on several devices, else a single device; nothing is sharded."""
    found = _unsharded(f"{_SOURCE}: strategy auto is ddp, or a single device")
    world = run.launcher.world_size
    if world is not None:
        note = f"{_SOURCE}: strategy auto on {world} devices"
        found["ddp"] = Setting("ddp", world > 1, run.launcher.processes.location, note=note)
    return found


def _unsharded(note: str) -> dict[str, Setting]:
    return {
        "zero_stage": Setting("zero_stage", 0, None, Origin.DEFAULT, note),
        "fsdp": Setting("fsdp", "none", None, Origin.DEFAULT, note),
    }


def _named(run: Run, trainer: Call, argument: Argument) -> dict[str, Setting]:
    text = argument.value.lower()
    stage = _STAGE.fullmatch(text)
    if stage is not None:
        device = ("nvme" if stage.group(3) else "cpu") if stage.group(2) else "none"
        level = int(stage.group(1) or 2)
        values: dict[str, Any] = {"zero_stage": level, "offload_optimizer": device}
        values["offload_param"] = device if level == 3 else "none"
        values.update(overlap_comm=True, fsdp="none", ddp=False)
        return _all_given(values, trainer, argument)
    if text.startswith("fsdp"):
        values = {"fsdp": "full_shard", "fsdp_offload": "offload" in text}
        return _all_given({**values, "zero_stage": 0, "ddp": False}, trainer, argument)
    if text == "auto":
        return _automatic(run)
    if text == "single_device" or (text.startswith("ddp") and "sharded" not in text):
        found = _all_given({"ddp": _is_replicated(run, text)}, trainer, argument)
        if text.startswith("ddp"):
            found[_UNUSED] = _searching(run, text, trainer, argument)
        return {**found, **_unsharded(f"strategy={argument.text}")}
    return {name: _unread(name, f"strategy {text} is not known", argument) for name in _SHARDING}


def _is_replicated(run: Run, text: str) -> bool:
    return text.startswith("ddp") and run.launcher.world_size != 1


def _searching(run: Run, text: str, trainer: Call, argument: Argument) -> Setting:
    """Whether DDP looks for unused parameters: by the strategy's name, else by default."""
    if _UNUSED in text:
        return given(_UNUSED, text.endswith("_true"), trainer, argument)
    return _searches_by_default(run)


def _searches_by_default(run: Run) -> Setting:
    pinned = "lightning" if "lightning" in run.versions else "pytorch-lightning"
    is_old = version_of(run, pinned) < (2,)
    note = f"Lightning {'1.x' if is_old else '2.x'}: {_UNUSED} {is_old}"
    return Setting(_UNUSED, is_old, None, Origin.DEFAULT, note)


def _object(argument: Argument, calls: Iterable[Call]) -> Optional[Call]:
    """The call that made the strategy: in place, or kept under the name that is passed."""
    start = argument.value_location or argument.location
    for call in calls:
        if not call.method.endswith("Strategy") or call.name.partition(".")[0] not in _ROOTS:
            continue
        is_named = bool(call.assigned_to) and call.assigned_to == argument.text
        if is_named or call.location == start:
            return call
    return None


def config_of_strategy(trainer: Call, calls: Iterable[Call]) -> Optional[Argument]:
    """The configuration of the DeepSpeed strategy that the trainer is surely given."""
    argument = trainer.keywords.get("strategy")
    if trainer_of((trainer,)) is None or argument is None:
        return None
    made = _object(argument, calls)
    if made is None or made.method != "DeepSpeedStrategy":
        return None
    asked = [c for c in made.conditions if c not in trainer.conditions]
    return None if asked else made.keywords.get("config")


def _of_object(run: Run, call: Call) -> Optional[dict[str, Setting]]:
    if call.method == "DDPStrategy":
        return _ddp_object(run, call)
    if call.method in ("FSDPStrategy", "DDPFullyShardedNativeStrategy"):
        return _fsdp_object(call)
    if call.method == "DeepSpeedStrategy":
        return _deepspeed_object(run, call)
    if call.method == "ModelParallelStrategy":
        return _model_parallel(call)
    if call.method == "SingleDeviceStrategy":
        return {"ddp": given("ddp", False, call), **_unsharded(call.name)}
    return None


def _ddp_object(run: Run, call: Call) -> dict[str, Setting]:
    found = {"ddp": given("ddp", run.launcher.world_size != 1, call), **_unsharded(call.name)}
    unused = call.keywords.get(_UNUSED)
    if unused is not None:
        found[_UNUSED] = given(_UNUSED, unused.value, call, unused)
    elif not call.is_open:
        found[_UNUSED] = _searches_by_default(run)
    return found


def _fsdp_object(call: Call) -> dict[str, Setting]:
    found = _all_given({"zero_stage": 0, "ddp": False}, call)
    strategy = call.keywords.get("sharding_strategy")
    value: Any = "full_shard"
    if strategy is None and call.is_open:
        value = Unknown("arguments of the strategy are not all known")
    if strategy is not None:
        value = strategy.value
        if isinstance(value, str):
            value = value.rpartition(".")[2].lower().replace("_zero2", "").lstrip("_")
    found["fsdp"] = given("fsdp", value, call, strategy)
    offload = call.keywords.get("cpu_offload")
    if offload is not None or not call.is_open:
        found["fsdp_offload"] = given("fsdp_offload", _offloads(offload), call, offload)
    for name in ("activation_checkpointing_policy", "activation_checkpointing"):
        policy = call.keywords.get(name)
        if policy is not None and policy.value is not None:
            setting = Setting("gradient_checkpointing", True, policy.location, Origin.CONSTRUCTOR)
            found[setting.name] = setting
    return found


def _offloads(argument: Optional[Argument]) -> Any:
    if argument is None or argument.value is None:
        return False
    if "offload_params=True" in argument.text.replace(" ", ""):
        return True
    return argument.value if isinstance(argument.value, bool) else Unknown("not a literal")


def _deepspeed_object(run: Run, call: Call) -> dict[str, Setting]:
    if run.deepspeed is not None:
        return {}  # it is read from its file
    if "config" in call.keywords or call.is_open:
        reason = "the DeepSpeed configuration was not found"
        return {name: _unread(name, reason, at=call) for name in _SHARDING}
    found = _all_given({"ddp": False, "fsdp": "none"}, call)
    stage, overlap = call.keywords.get("stage"), call.keywords.get("overlap_comm")
    found["zero_stage"] = given("zero_stage", 2 if stage is None else stage.value, call, stage)
    found["overlap_comm"] = given(
        "overlap_comm", True if overlap is None else overlap.value, call, overlap
    )
    for name, switch, device in (
        ("offload_optimizer", "offload_optimizer", "offload_optimizer_device"),
        ("offload_param", "offload_parameters", "offload_params_device"),
    ):
        argument, target = call.keywords.get(switch), call.keywords.get(device)
        value: Any = "none"
        if argument is not None and argument.value is True:
            value = "cpu" if target is None else target.value
        elif argument is not None and not known(argument.value):
            value = argument.value
        found[name] = given(name, value, call, argument)
    return found


def _model_parallel(call: Call) -> dict[str, Setting]:
    """Both sizes are by default what the nodes and their GPUs make of them ("auto")."""
    found = _all_given({"zero_stage": 0, "ddp": False}, call)
    size = call.keywords.get("tensor_parallel_size")
    if size is not None and isinstance(size.value, int):
        found["tensor_parallel"] = given("tensor_parallel", size.value, call, size)
    return found


def _all_given(
    values: Mapping[str, Any], call: Call, argument: Optional[Argument] = None
) -> dict[str, Setting]:
    return {name: given(name, value, call, argument) for name, value in values.items()}


def _unread(
    name: str, reason: str, argument: Optional[Argument] = None, at: Optional[Call] = None
) -> Setting:
    place = argument.location if argument is not None else at.location if at is not None else None
    return Setting(name, Unknown(reason), place, Origin.CONSTRUCTOR)
