"""Puts together who starts a run's processes: flags, launcher files, scheduler, environment."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from flake8_gpu_training.facts import (
    Command,
    ConfigFile,
    Document,
    Location,
    Origin,
    PythonFile,
    ScriptFile,
    Setting,
    Unknown,
)
from flake8_gpu_training.runs.counting import launcher_of
from flake8_gpu_training.runs.hostfiles import Slots
from flake8_gpu_training.runs.launchers import Launch
from flake8_gpu_training.runs.model import Launcher
from flake8_gpu_training.runs.processes import uncounted, with_spawned
from flake8_gpu_training.runs.reach import Reach
from flake8_gpu_training.runs.scheduling import MpiJob, Scheduler, mpi_job
from flake8_gpu_training.runs.settings import document_settings, integer, renamed

_COUNTED_BY_SETTINGS = ("flow_factory", "vllm", "sglang")


MAX_WORKERS = 4096
MAX_HEAD = 200_000
"""Bytes of a job's description that is read for its comments."""


def started_by(
    reach: Reach,
    launch: Launch,
    script: Optional[ScriptFile],
    settings: Mapping[str, Setting],
    environment: Mapping[str, Setting],
    accelerate: Optional[Document],
    files: Sequence[PythonFile],
    job: Optional[ConfigFile] = None,
) -> tuple[Launcher, Scheduler]:
    """The launcher of a command, and the scheduler it runs under."""
    command = launch.command
    scheduler = Scheduler(_submitted(reach, script, command), command)
    options = _options(launch, settings, accelerate)
    made = launcher_of(
        launch.launcher,
        options,
        settings,
        environment,
        scheduler,
        _pool(reach, options, command),
        _mpi(command, job),
    )
    made = with_spawned(dataclasses.replace(made, is_open=launch.is_open), files)
    return (uncounted(made) if launch.is_unfollowed else made), scheduler


def described_by(
    program: str, settings: Mapping[str, Setting], has_file: bool, files: Sequence[PythonFile]
) -> Launcher:
    """The launcher of a run that no command starts; a notebook's cells run in one process."""
    if program in _COUNTED_BY_SETTINGS:
        return launcher_of(program, {}, settings, {}, Scheduler(None, None))
    made = Launcher(program if has_file else "python")
    if not has_file and files and files[0].path.endswith(".ipynb"):
        note = "a notebook is one process"
        one = Setting("processes", 1, None, Origin.DEFAULT, note)
        made = Launcher("python", one, Setting("nodes", 1, None, Origin.DEFAULT, note))
    return with_spawned(made, files)


_HEAD = re.compile(r"(?:#.*\n|[ \t]*\n)*")
"""Comments before anything else in a file."""


def _of_description(reach: Reach, command: Optional[Command], job: ConfigFile) -> ScriptFile:
    """The comments at the head of a job's description, which tell what it was written for."""
    content = reach.project.content(job.path, MAX_HEAD) or b""
    is_own = command is not None and command.location.path == job.path
    head = _HEAD.match(content.decode("utf-8", "replace").replace("\r\n", "\n"))
    lines = head[0].split("\n") if is_own and head is not None else []
    comments = [
        Setting("#", line.lstrip("#").strip(), Location(job.path, number, 1))
        for number, line in enumerate(lines, start=1)
        if line.startswith("#")
    ]
    return ScriptFile(job.path, comments=tuple(comments))


def noted_in(
    reach: Reach,
    script: Optional[ScriptFile],
    command: Optional[Command],
    job: Optional[ConfigFile] = None,
) -> Optional[ScriptFile]:
    """``script`` with the comments of the one it calls, where ``command`` stands."""
    if script is None and job is not None:
        return _of_description(reach, command, job)
    own = reach.project.read(command.location.path) if command is not None else None
    if script is None or not isinstance(own, ScriptFile) or own.path == script.path:
        return script
    return dataclasses.replace(script, comments=(*own.comments, *script.comments))


def _submitted(
    reach: Reach, script: Optional[ScriptFile], command: Command
) -> Optional[ScriptFile]:
    """The script whose directives hold: the one that ``sbatch`` submits, when another does."""
    if any(wrapper and wrapper[0].text == "sbatch" for wrapper in command.wrappers):
        own = reach.project.read(command.location.path)
        if isinstance(own, ScriptFile) and own.directives:
            return own
    return script


# Files that TRL brings along and knows by name; alike in trl 0.18.2 to 1.16.0. The one of a single
# GPU names 8 processes, which its distributed_type NO does not start.
_TRL_FILES = "trl 0.18.2 to 1.16.0, accelerate_configs"
_PROCESSES: Mapping[str, Any] = {"mixed_precision": "bf16", "num_machines": 1, "num_processes": 8}
_ZERO: Mapping[str, Any] = {**_PROCESSES, "distributed_type": "DEEPSPEED"}
_FSDP: Mapping[str, Any] = {
    **_PROCESSES,
    "distributed_type": "FSDP",
    "fsdp_offload_params": False,
    "fsdp_activation_checkpointing": False,
    "fsdp_cpu_ram_efficient_loading": True,
}
_OF_TRL: Mapping[str, Mapping[str, Any]] = {
    "zero1": {**_ZERO, "zero_stage": 1, "gradient_accumulation_steps": 1},
    "zero2": {**_ZERO, "zero_stage": 2},
    "zero3": {**_ZERO, "zero_stage": 3},
    "fsdp1": {
        **_FSDP,
        "fsdp_version": 1,
        "fsdp_reshard_after_forward": "FULL_SHARD",
        "fsdp_backward_prefetch": "BACKWARD_PRE",
    },
    "fsdp2": {**_FSDP, "fsdp_version": 2, "fsdp_reshard_after_forward": True},
    "multi_gpu": {**_PROCESSES, "distributed_type": "MULTI_GPU"},
    "single_gpu": {**_PROCESSES, "distributed_type": "NO", "num_processes": 1},
}


def _options(
    launch: Launch, settings: Mapping[str, Setting], accelerate: Optional[Document]
) -> dict[str, Setting]:
    """The launcher's flags over the keys of its configuration file."""
    options = dict(launch.options)
    if launch.program == "trl":
        options.update({n: s for n, s in settings.items() if n.startswith("num_")})
        named = settings.get("accelerate_config")
        own = _OF_TRL.get(str(named.value)) if named is not None and accelerate is None else None
        if named is not None and own is not None:
            for name, value in own.items():
                note = f"accelerate_config {named.value}: {name} {value} ({_TRL_FILES})"
                one = dataclasses.replace(renamed(named, name), value=value, note=note)
                options.setdefault(name, one)
        elif named is not None:
            options["config_file"] = renamed(named, "config_file")
    if accelerate is not None:
        for setting in document_settings(accelerate).values():
            name = setting.name.rpartition(".")[2]
            if not isinstance(setting.value, dict):
                options.setdefault(name, renamed(setting, name))
    elif launch.launcher == "accelerate" and not options:
        unread = Unknown("the default configuration of the user's account may say it")
        options.setdefault("mixed_precision", Setting("mixed_precision", unread))
    elif "config_file" in options:
        unread = Unknown("the launcher's configuration file was not found")
        for name in ("num_processes", "num_machines", "mixed_precision"):
            options.setdefault(name, Setting(name, unread))
    return options


def _mpi(command: Command, job: Optional[ConfigFile]) -> Optional[MpiJob]:
    """The ``mpirun`` around a command; within an MPIJob its hosts are the workers."""
    found = mpi_job(command)
    asked = {s.name: s for s in job.resources if s.known} if job is not None else {}
    workers = integer(asked.get("nodes"))
    if found is None or found.hosts or found.hostfile is not None or workers is None:
        return found
    slots = integer(asked.get("nproc_per_node")) or 1
    hosts = {f"worker-{index}": slots for index in range(min(workers, MAX_WORKERS))}
    return dataclasses.replace(found, hosts=hosts)


def _pool(reach: Reach, options: Mapping[str, Setting], command: Command) -> Optional[Slots]:
    hostfile = options.get("hostfile") or options.get("H")
    if hostfile is None or not isinstance(hostfile.value, str):
        return None
    return reach.hostfile(hostfile.value, command)
