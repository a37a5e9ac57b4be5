"""The processes that a script starts by itself, and the GPUs of a run."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Optional

from flake8_gpu_training.facts import (
    Argument,
    Call,
    ConfigFile,
    Origin,
    PythonFile,
    ScriptFile,
    Setting,
    Unknown,
)
from flake8_gpu_training.runs.counting import visible_gpus
from flake8_gpu_training.runs.model import Hardware, Launcher
from flake8_gpu_training.runs.scheduling import Scheduler, said
from flake8_gpu_training.runs.settings import integer

if TYPE_CHECKING:
    from flake8_gpu_training.hardware import NamedGpu

_SPAWNERS = frozenset(
    """
    torch.multiprocessing.spawn accelerate.notebook_launcher accelerate.debug_launcher
    accelerate.launchers.notebook_launcher accelerate.launchers.debug_launcher
    """.split()  # noqa: SIM905
)
_LIGHTNING = ("lightning.", "pytorch_lightning.", "lightning_fabric.")
# What a program takes from Lightning that has its Trainer, or the package as a whole.
_OF_LIGHTNING = ("", "Trainer", "Fabric", "LightningModule", "LightningDataModule")
_STARTERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch")
_CORES = re.compile(r"(\d+)(m?)")
_SCHEDULERS = (
    "ray.train.",
    "ray.air.",
    "torch.distributed.run.",
    "torch.distributed.launch.",
    "torch.distributed.launcher.",
    "horovod.run",
    "horovod.spark.",
    "horovod.ray.",
)
_ELASTIC = frozenset(
    """
    torch.distributed.launcher.elastic_launch torch.distributed.launcher.api.elastic_launch
    torch.multiprocessing.start_processes torch.distributed.elastic.multiprocessing.start_processes
    detectron2.engine.launch ignite.distributed.Parallel
    torch_xla.distributed.xla_multiprocessing.spawn torch_xla.launch
    """.split()  # noqa: SIM905
)
_CALLERS = ("subprocess.", "os.exec", "os.spawn", "os.system", "os.popen")


def with_spawned(launcher: Launcher, files: Sequence[PythonFile]) -> Launcher:
    """``launcher``, or what a script that ``python`` starts alone starts by itself."""
    if launcher.name != "python" or launcher.processes.explicit:
        return launcher
    imported = {item.module.partition(".")[0] for file in files for item in file.imports}
    for call in (call for file in files for call in file.calls):
        if _starts_itself_anew(call) or _is_submitted(call, imported):
            return dataclasses.replace(launcher, processes=_unknown_processes(call))
        if call.name in _SPAWNERS:
            argument = call.keywords.get("nprocs") or call.keywords.get("num_processes")
            if argument is None and len(call.positional) > _COUNT:  # (function, args, nprocs)
                argument = call.positional[_COUNT]
            return _spawning(launcher, call, argument, None)
        if _is_rank(call, files):
            return dataclasses.replace(launcher, processes=_unknown_processes(call))
        if call.method in ("Trainer", "Fabric") and call.name.startswith(_LIGHTNING):
            return _spawning(
                launcher, call, call.keywords.get("devices"), call.keywords.get("num_nodes")
            )
    return _made_out_of_sight(launcher, files)


def uncounted(launcher: Launcher) -> Launcher:
    """``launcher`` of a program whose training was not reached: it may start processes itself."""
    if launcher.name != "python" or launcher.processes.explicit:
        return launcher
    value = Unknown("the training that python starts was not reached")
    return dataclasses.replace(
        launcher, processes=dataclasses.replace(launcher.processes, value=value)
    )


_COUNT = 2


def _unknown_processes(call: Call) -> Setting:
    value = Unknown(f"{call.name} starts the processes")
    return Setting("processes", value, call.location, Origin.CONSTRUCTOR, call.name)


def _is_rank(call: Call, files: Sequence[PythonFile]) -> bool:
    """Whether a ``Process`` starts the ranks of a program that makes a group.

    It may come of a context: ``mp.get_context("spawn").Process(target=work)``.
    """
    is_named = "multiprocessing." in f".{call.name}" or "target" in call.keywords
    if call.name.rpartition(".")[2] != "Process" or not is_named:
        return False
    return any(c.method == "init_process_group" for file in files for c in file.calls)


def _is_submitted(call: Call, imported: Set[str]) -> bool:
    """Whether a scheduler of Python's own starts the ranks: submitit, Ray, TorchElastic."""
    if "submitit" in imported and call.method in ("submit", "map_array", "update_parameters"):
        return True
    return call.name.startswith(_SCHEDULERS) or call.name in _ELASTIC


def _starts_itself_anew(call: Call) -> bool:
    """Whether a program that ``python`` started hands over to a launcher: ``Popen(torchrun)``."""
    if not call.name.startswith(_CALLERS):
        return False
    texts = (f"{a.text} {a.value}" for a in (*call.positional, *call.keywords.values()))
    return any(starter in text for text in texts for starter in _STARTERS)


def _made_out_of_sight(launcher: Launcher, files: Sequence[PythonFile]) -> Launcher:
    """Spark, and Lightning's Trainer also where a configuration makes it."""
    for item in (item for file in files for item in file.imports):
        if item.name == "TorchDistributor":
            value = Unknown("Spark starts the processes")
            made = Setting("processes", value, item.location, Origin.CONSTRUCTOR, item.dotted)
            return dataclasses.replace(launcher, processes=made)
        if item.name in _OF_LIGHTNING and f"{item.module}.".startswith(_LIGHTNING):
            value = Unknown(f"devices of {item.name or 'the Trainer'}")
            made = Setting("processes", value, item.location, Origin.CONSTRUCTOR, item.dotted)
            return dataclasses.replace(launcher, processes=made)
    return launcher


def _spawning(
    launcher: Launcher, call: Call, devices: Optional[Argument], nodes: Optional[Argument]
) -> Launcher:
    value = devices.value if devices is not None else None
    note = f"{call.method}: {devices.text or value} processes" if devices is not None else call.name
    if isinstance(value, (list, tuple)):
        value = len(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        value = Unknown(f"processes of {call.name}")
    elif call.conditions and call.name in _SPAWNERS:
        value = Unknown(f"{call.name} in a branch", (value, 1))
    count: Any = 1 if nodes is None else nodes.value
    return dataclasses.replace(
        launcher,
        processes=Setting("processes", value, call.location, Origin.CONSTRUCTOR, note),
        nodes=Setting(
            "nodes",
            count if isinstance(count, int) else Unknown("nodes"),
            nodes.location if nodes is not None else None,
            Origin.CONSTRUCTOR if nodes is not None else Origin.DEFAULT,
            "one node unless set",
        ),
    )


def hardware_of(
    launcher: Launcher,
    environment: Mapping[str, Setting],
    scheduler: Scheduler,
    script: Optional[ScriptFile] = None,
    job: Optional[ConfigFile] = None,
    program: Optional[PythonFile] = None,
) -> Hardware:
    """The GPUs of a run: named by the job, else counted, else noted in a comment or in the
    metadata of a notebook."""
    counted = _gpus_per_node(launcher, environment, scheduler, job)
    nodes = _nodes(launcher, scheduler, job)
    by_job = _named_by_job(scheduler, job)
    found = by_job or _named_in_comments(script) or _of_session(program)
    text, kind = found if found is not None else (counted, None)
    # A comment's number stands in for one that the launch leaves open, and for no other.
    trusted = by_job is not None or not launcher.processes.known
    per_node = integer(counted)
    return Hardware(
        gpu=kind.gpu.name if kind is not None and kind.gpu is not None else None,
        gpus_per_node=kind.count if per_node is None and kind is not None and trusted else per_node,
        nodes=integer(nodes),
        memory_gib=kind.gpu.memory_gib if kind is not None and kind.gpu is not None else None,
        source=(text.note or said(text)) if text is not None else "",
        location=text.location if text is not None else None,
        weak=by_job is None and found is not None,
        architecture=kind.architecture if kind is not None else None,
        cpus=_cpus(scheduler, job),
        shared_memory=_shared_memory(job),
    )


def _shared_memory(job: Optional[ConfigFile]) -> Optional[Setting]:
    host = _resource(job, "host_ipc")
    found = host if host is not None and host.value else _resource(job, "shm")
    if found is not None or job is None:
        return found
    services = [d.root.mapping["services"] for d in job.documents if "services" in d.root.mapping]
    return Setting("shm", "64m", services[0].location, Origin.DEFAULT) if services else None


def _cpus(scheduler: Scheduler, job: Optional[ConfigFile]) -> Optional[Setting]:
    """Cores that a job asks for: SLURM's per task, or a container's limit."""
    asked = scheduler.directives.get("cpus-per-task")
    if asked is None:
        asked = _resource(job, "cpus")
        # its note is the container's name
        asked = dataclasses.replace(asked, note="") if asked is not None else None
    if asked is None or not asked.known:
        return None
    found = _CORES.fullmatch(str(asked.value).strip())
    if found is None:
        return None
    count = int(found[1]) // 1000 if found[2] else int(found[1])
    return dataclasses.replace(asked, name="cpus", value=count) if count > 0 else None


def _gpus_per_node(
    launcher: Launcher,
    environment: Mapping[str, Setting],
    scheduler: Scheduler,
    job: Optional[ConfigFile],
) -> Optional[Setting]:
    counted = launcher.processes
    if scheduler.starts_tasks and launcher.name == "python" and scheduler.gpus_per_node is not None:
        # A task may have several GPUs.
        return scheduler.gpus_per_node
    several = counted.known and (launcher.name != "python" or counted.location is not None)
    if several and counted.explicit and counted.value > 1:
        return counted
    for found in (visible_gpus(environment), scheduler.gpus_per_node, _resource(job, "gpus")):
        if found is not None and integer(found) is not None:
            return found
    return counted if counted.known and counted.explicit else None


def _nodes(
    launcher: Launcher, scheduler: Scheduler, job: Optional[ConfigFile]
) -> Optional[Setting]:
    if launcher.nodes.known and launcher.nodes.explicit:
        return launcher.nodes
    return scheduler.nodes or _resource(job, "nodes") or launcher.nodes


def _resource(job: Optional[ConfigFile], name: str) -> Optional[Setting]:
    for setting in job.resources if job is not None else ():
        if setting.name == name and setting.known:
            return setting
    return None


# Settings of a job description that may name the GPU.
_NAMING = ("gpu", "gpus", "machine")


def _named_by_job(
    scheduler: Scheduler, job: Optional[ConfigFile]
) -> Optional[tuple[Setting, NamedGpu]]:
    """The text that names the GPU: the first that tells its kind, else its generation."""
    texts = list(scheduler.gpu_texts())
    texts += [s for s in (job.resources if job is not None else ()) if s.name in _NAMING]
    found = [(text, kind) for text in texts if (kind := _gpu_of(text)) is not None]
    exact = next((pair for pair in found if pair[1].gpu is not None), None)
    return exact or next(iter(found), None)


def _named_in_comments(script: Optional[ScriptFile]) -> Optional[tuple[Setting, NamedGpu]]:
    """The one GPU that a script's comments name; nothing when they name several."""
    found: dict[str, tuple[Setting, NamedGpu]] = {}
    for comment in script.comments if script is not None else ():
        kind = _gpu_of(comment, in_prose=True)
        if kind is not None:
            name = kind.gpu.name if kind.gpu is not None else kind.architecture or ""
            found.setdefault(name, (comment, kind))
    for name in list(found):
        if name and any(other.startswith(f"{name}-") for other in found):
            del found[name]  # the same GPU, told more closely elsewhere
    return next(iter(found.values())) if len(found) == 1 else None


def _of_session(program: Optional[PythonFile]) -> Optional[tuple[Setting, NamedGpu]]:
    """The GPU on which a notebook was last run."""
    setting = program.gpu if program is not None else None
    kind = _gpu_of(setting) if setting is not None else None
    return (setting, kind) if setting is not None and kind is not None else None


def _gpu_of(setting: Setting, *, in_prose: bool = False) -> Optional[NamedGpu]:
    from flake8_gpu_training.hardware import named, noted

    if not setting.known:
        return None
    return (noted if in_prose else named)(str(setting.value))
