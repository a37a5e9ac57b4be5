"""Practices that follow from how a run's processes are started and shard the model."""

from __future__ import annotations

from collections.abc import Mapping

from flake8_gpu_training.facts import Origin, Setting, known
from flake8_gpu_training.frameworks.reading import is_off
from flake8_gpu_training.runs.model import Run

_SHARDED = ("fsdp", "device_map", "tensor_parallel", "pipeline_parallel")


def data_parallel(run: Run, found: Mapping[str, Setting]) -> dict[str, Setting]:
    """Whether plain DDP replicates the model, when the launcher and all sharding are known."""
    processes = run.launcher.world_size
    if processes is None:
        return {}
    source = run.launcher.processes if run.launcher.processes.location else run.launcher.nodes
    if processes == 1:
        return {"ddp": _ddp(False, source, "one process")}
    stage = found.get("zero_stage")
    if stage is None or not known(stage.value):
        return {}
    if stage.location is not None or stage.value:
        return {"ddp": _ddp(False, source, "DeepSpeed wraps the model")}
    for name in _SHARDED:
        setting = found.get(name)
        if setting is None:
            continue
        if not known(setting.value):
            return {}
        if not is_off(setting.value) and setting.value != 1:
            return {"ddp": _ddp(False, source, f"{name} splits the model")}
    if "megatron" in found and known(found["megatron"].value) and found["megatron"].value:
        return {"ddp": _ddp(False, source, "Megatron wraps the model")}
    return {"ddp": _ddp(True, source, f"{processes} processes, nothing shards the model")}


def is_launch_unread(run: Run) -> bool:
    """Whether ``accelerate launch`` takes what distributes the model from a file out of sight.

    A launch without any flag counts on what ``accelerate config`` wrote for the user's account.
    """
    if run.accelerate is not None:
        return False
    if "config_file" in run.launcher.options:
        return True
    return run.launcher.name == "accelerate" and is_bare_launch(run.launcher.options)


def is_bare_launch(options: Mapping[str, Setting]) -> bool:
    """Whether a launch says nothing itself; what an unread file may say is no flag.

    How the program is named (``-m``) and the port say nothing of how it is distributed.
    """
    return not any(
        setting.location is not None and name not in _SAYS_NOTHING
        for name, setting in options.items()
    )


_SAYS_NOTHING = frozenset({"m", "module", "no_python", "q", "quiet", "main_process_port"})


def _ddp(value: bool, source: Setting, note: str) -> Setting:
    return Setting("ddp", value, source.location, Origin.DERIVED, note)


def merged(*layers: Mapping[str, Setting]) -> dict[str, Setting]:
    """Practices of all ``layers``, the strongest first."""
    found: dict[str, Setting] = {}
    for layer in layers:
        for name, setting in layer.items():
            found.setdefault(name, setting)
    return found
