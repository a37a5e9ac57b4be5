"""ColossalAI's Booster: what its plugins shard, and in which precision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flake8_gpu_training.facts import Call, Origin, Setting, Unknown, known
from flake8_gpu_training.frameworks.called import given
from flake8_gpu_training.runs.model import Run

_SOURCE = "colossalai 0.5.0 booster/plugin"
_ROOT = "colossalai"
_HYBRID = ("HybridParallelPlugin", "MoeHybridParallelPlugin")
_PLUGINS = ("LowLevelZeroPlugin", "GeminiPlugin", *_HYBRID, "TorchDDPPlugin", "TorchFSDPPlugin")
_PRECISIONS: Mapping[str, str] = {
    "fp16": "fp16",
    "fp16_apex": "fp16",
    "fp16_naive": "fp16",
    "bf16": "bf16",
    "fp8": "fp8",
    "fp32": "fp32",
}
# Order of the parameters that are given by place, as a rule.
_SIZES = ("tp_size", "pp_size", "ep_size")


def practices_of_booster(run: Run, calls: Iterable[Call]) -> dict[str, Setting]:
    """Practices that the plugin of the run's Booster sets; nothing without one."""
    calls = list(calls)
    made = [c for c in calls if c.method in _PLUGINS and c.name.partition(".")[0] == _ROOT]
    boosters = [c for c in calls if c.name == "colossalai.booster.Booster"]
    if not made and not boosters:
        return {}
    if len(made) > 1 or any(plugin.is_open for plugin in made):
        return _undecided(made[0])
    found = _of_plugin(run, made[0]) if made else {}
    mixed = boosters[0].keywords.get("mixed_precision") if boosters else None
    if mixed is not None and "precision" not in found:
        found["precision"] = given("precision", _precision(mixed.value), boosters[0], mixed)
    return found


def _undecided(call: Call) -> dict[str, Setting]:
    reason = "one of several plugins, or arguments that are not all known"
    names = ("ddp", "fsdp", "zero_stage", "precision", "tensor_parallel", "pipeline_parallel")
    return {name: Setting(name, Unknown(reason), call.location) for name in names}


def _of_plugin(run: Run, call: Call) -> dict[str, Setting]:
    if call.method == "TorchDDPPlugin":
        found = _flat(call, zero_stage=0, fsdp="none", ddp=run.launcher.world_size != 1)
        _add(found, call, "find_unused_parameters", "find_unused_parameters", False)
        return found
    if call.method == "TorchFSDPPlugin":
        return _flat(call, fsdp="full_shard", zero_stage=0, ddp=False)
    found = _flat(call, fsdp="none", ddp=False)
    found["precision"] = _precision_of(call)
    if call.method == "GeminiPlugin":
        found.update(_gemini(call))
    else:
        default = 1 if call.method == "LowLevelZeroPlugin" else 0
        _add(found, call, "zero_stage", "stage" if default else "zero_stage", default)
        _add(found, call, "overlap_comm", "overlap_communication", True)
        found["offload_optimizer"] = _offload(call, "cpu_offload")
    if call.method in _HYBRID:
        found.update(_degrees(call))
    found.update(_kernels(call))
    return found


def _precision_of(call: Call) -> Setting:
    fp8 = call.keywords.get("use_fp8")
    if fp8 is not None and fp8.value is True:
        return given("precision", "fp8", call, fp8)
    argument = call.keywords.get("precision")
    if argument is None:
        note = f"{_SOURCE}: precision fp16 unless set"
        return Setting("precision", "fp16", None, Origin.DEFAULT, note)
    return given("precision", _precision(argument.value), call, argument)


def _precision(value: Any) -> Any:
    if not known(value):
        return value
    return _PRECISIONS.get(str(value), Unknown(f"precision {value} is not known"))


def _gemini(call: Call) -> dict[str, Setting]:
    """Chunks of parameters, gradients and states are split over the ranks, as in ZeRO-3."""
    found = _flat(call, zero_stage=3)
    _add(found, call, "tensor_parallel", "tp_size", 1)
    _add(found, call, "overlap_comm", "enable_async_reduce", True)
    policy = call.keywords.get("placement_policy")
    for name, keyword in (
        ("offload_optimizer", "offload_optim_frac"),
        ("offload_param", "offload_param_frac"),
    ):
        share = call.keywords.get(keyword)
        if policy is not None and policy.value != "static":
            reason = f"placement_policy={policy.text} moves tensors by need"
            found[name] = Setting(name, Unknown(reason), policy.location)
        elif share is not None and isinstance(share.value, (int, float)):
            found[name] = given(name, "cpu" if share.value > 0 else "none", call, share)
        else:
            found[name] = Setting(name, "none", None, Origin.DEFAULT, f"{_SOURCE}: {keyword} 0")
    return found


def _offload(call: Call, keyword: str) -> Setting:
    name = "offload_optimizer"
    argument = call.keywords.get(keyword)
    if argument is None:
        return Setting(name, "none", None, Origin.DEFAULT, f"{_SOURCE}: {keyword} False")
    value = argument.value if not known(argument.value) else "cpu" if argument.value else "none"
    return given(name, value, call, argument)


def _degrees(call: Call) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    for position, (name, keyword) in enumerate(
        zip(("tensor_parallel", "pipeline_parallel", "expert_parallel"), _SIZES)
    ):
        argument = call.keywords.get(keyword)
        if argument is None and position < len(call.positional):
            argument = call.positional[position]
        if argument is not None and (keyword != "ep_size" or call.method == _HYBRID[1]):
            found[name] = given(name, argument.value, call, argument)
    switch, size = call.keywords.get("enable_sequence_parallelism"), call.keywords.get("sp_size")
    if switch is None or switch.value is False:
        note = f"{_SOURCE}: enable_sequence_parallelism False"
        found["sequence_parallel"] = Setting("sequence_parallel", 1, None, Origin.DEFAULT, note)
    elif switch.value is True and size is not None and isinstance(size.value, int):
        found["sequence_parallel"] = given("sequence_parallel", size.value, call, size)
    elif switch.value is True and "tensor_parallel" in found:  # over the ranks of a layer
        degree = found["tensor_parallel"].value
        found["sequence_parallel"] = given("sequence_parallel", degree, call, switch)
    return found


def _kernels(call: Call) -> dict[str, Setting]:
    for keyword in ("enable_flash_attention", "enable_all_optimization"):
        argument = call.keywords.get(keyword)
        if argument is not None and argument.value is True:
            return {"attention": given("attention", "flash_attention_2", call, argument)}
    return {}


def _flat(call: Call, **values: Any) -> dict[str, Setting]:
    return {name: given(name, value, call) for name, value in values.items()}


def _add(found: dict[str, Setting], call: Call, name: str, keyword: str, default: Any) -> None:
    argument = call.keywords.get(keyword)
    if argument is not None:
        found[name] = given(name, argument.value, call, argument)
    else:
        note = f"{_SOURCE}: {call.method}({keyword}={default})"
        found[name] = Setting(name, default, call.location, Origin.DEFAULT, note)
