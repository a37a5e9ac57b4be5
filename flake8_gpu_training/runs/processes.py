"""How many processes a launch starts, on which GPUs: flags, files, environment, scheduler."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

from flake8_gpu_training.facts import (
    Argument,
    Call,
    Command,
    ConfigFile,
    Location,
    Origin,
    PythonFile,
    ScriptFile,
    Setting,
    Unknown,
)
from flake8_gpu_training.runs.model import Hardware, Launcher
from flake8_gpu_training.runs.settings import integer

_SLURM_NODES = re.compile(r"\bSLURM_(?:JOB_NUM_NODES|NNODES|JOB_NODES)\b")
_SLURM_GPUS = re.compile(r"\bSLURM_(?:GPUS_ON_NODE|GPUS_PER_NODE)\b")
_SLURM_TASKS = re.compile(r"\bSLURM_NTASKS_PER_NODE\b")
_GRES = re.compile(r"gpu(?::(?P<name>[A-Za-z][\w.-]*))?(?::(?P<count>\d+))?")
_ALL_GPUS = frozenset({"auto", "gpu"})


def visible_gpus(environment: Mapping[str, Setting]) -> Optional[Setting]:
    """Number of GPUs that CUDA_VISIBLE_DEVICES leaves, or None when it is not set."""
    setting = environment.get("CUDA_VISIBLE_DEVICES")
    if setting is None:
        return None
    if not setting.known:
        return Setting("gpus", setting.value, setting.location, setting.origin)
    devices = [part for part in str(setting.value).split(",") if part.strip()]
    count: Any = len(devices)
    if any(re.search(r"[^\w./-]", part.strip()) for part in devices):
        count = Unknown(str(setting.value))
    return Setting("gpus", count, setting.location, setting.origin, _said(setting))


def _said(setting: Setting) -> str:
    return f"{setting.name}={setting.value}"


class Scheduler:
    """What a batch scheduler was asked for: SLURM directives and ``srun`` flags."""

    def __init__(self, script: Optional[ScriptFile], command: Optional[Command]) -> None:
        self.directives: dict[str, Setting] = {}
        for directive in script.directives if script is not None else ():
            self.directives[directive.name.replace("_", "-")] = directive
        self.wrapper = _srun(command)
        self.directives.update(self.wrapper)

    @property
    def starts_tasks(self) -> bool:
        """Whether ``srun`` starts the command once per task."""
        return "srun" in self.wrapper

    @property
    def nodes(self) -> Optional[Setting]:
        """Nodes asked for."""
        return self._count("nodes", "N")

    @property
    def tasks_per_node(self) -> Optional[Setting]:
        """Tasks per node asked for."""
        found = self._count("ntasks-per-node")
        if found is not None:
            return found
        total, nodes = integer(self._count("ntasks", "n")), integer(self.nodes)
        if total is None:
            return None
        source = self.directives.get("ntasks") or self.directives["n"]
        return Setting("tasks", max(1, total // (nodes or 1)), source.location, Origin.DERIVED)

    @property
    def gpus_per_node(self) -> Optional[Setting]:
        """GPUs per node asked for."""
        for name in ("gpus-per-node", "gres"):
            setting = self.directives.get(name)
            match = _GRES.search(str(setting.value)) if setting and setting.known else None
            if setting is None or not setting.known:
                continue
            text = str(setting.value)
            last = text.rpartition(":")[2]
            if name == "gpus-per-node" and last.isdigit():
                return Setting("gpus", int(last), setting.location, Origin.DERIVED, _said(setting))
            if match is not None:
                count = int(match["count"] or 1)
                return Setting("gpus", count, setting.location, Origin.DERIVED, _said(setting))
        total = self.directives.get("gpus") or self.directives.get("G")
        if total is not None and total.known:
            last = str(total.value).rpartition(":")[2]
            if last.isdigit():
                count = max(1, int(last) // (integer(self.nodes) or 1))
                return Setting("gpus", count, total.location, Origin.DERIVED, _said(total))
        return None

    def gpu_texts(self) -> Iterable[Setting]:
        """Directives that may name the GPU."""
        for name in ("gres", "gpus-per-node", "gpus", "constraint", "C"):
            setting = self.directives.get(name)
            if setting is not None and setting.known:
                yield setting

    def _count(self, *names: str) -> Optional[Setting]:
        for name in names:
            setting = self.directives.get(name)
            if setting is not None:
                count = integer(setting)
                value: Any = Unknown(str(setting.value)) if count is None else count
                return Setting(names[0], value, setting.location, Origin.DERIVED, _said(setting))
        return None

    def resolve(self, setting: Setting) -> Setting:
        """``setting`` with ``$SLURM_NNODES`` and its kin replaced by what was asked for."""
        if setting.known or not isinstance(setting.value, Unknown):
            return setting
        reason = setting.value.reason
        for pattern, asked in (
            (_SLURM_NODES, self.nodes),
            (_SLURM_GPUS, self.gpus_per_node),
            (_SLURM_TASKS, self.tasks_per_node),
        ):
            if asked is not None and pattern.search(reason) and _is_bare(reason):
                return asked
        return setting


def _is_bare(reason: str) -> bool:
    """Whether the text is one variable (with a default perhaps) and no computation."""
    text = reason.strip("\"'")
    return bool(re.fullmatch(r"\$\w+|\$\{\w+(?::?[-=][^}]*)?\}", text))


def _srun(command: Optional[Command]) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    for wrapper in command.wrappers if command is not None else ():
        if not wrapper or wrapper[0].text.rpartition("/")[2] != "srun":
            continue
        found["srun"] = Setting("srun", True, wrapper[0].location, Origin.FLAG)
        words = list(wrapper[1:])
        for index, word in enumerate(words):
            if not word.text.startswith("-"):
                continue
            name, equals, value = word.text.lstrip("-").partition("=")
            if not equals and index + 1 < len(words):
                following = words[index + 1]
                value = following.text
                if following.text.startswith("-"):
                    continue
            if value:
                found[name] = Setting(name, value, word.location, Origin.FLAG)
    return found


def launcher_of(
    name: str,
    options: Mapping[str, Setting],
    settings: Mapping[str, Setting],
    environment: Mapping[str, Setting],
    scheduler: Scheduler,
    hostfile: Optional[tuple[int, int]] = None,
) -> Launcher:
    """Processes per node and nodes that a launch starts.

    ``hostfile``: nodes and slots per node of a DeepSpeed hostfile that was read.
    """
    count = _COUNTERS.get(name, _count_plain)
    counter = _Counter(options, settings, environment, scheduler, hostfile)
    processes, nodes = count(counter)
    return Launcher(name, _named("processes", processes), _named("nodes", nodes), options)


def _named(name: str, setting: Setting) -> Setting:
    return Setting(name, setting.value, setting.location, setting.origin, setting.note)


class _Counter:
    def __init__(
        self,
        options: Mapping[str, Setting],
        settings: Mapping[str, Setting],
        environment: Mapping[str, Setting],
        scheduler: Scheduler,
        hostfile: Optional[tuple[int, int]],
    ) -> None:
        self.options = options
        self.settings = settings
        self.environment = environment
        self.scheduler = scheduler
        self.hostfile = hostfile

    def count(self, names: Sequence[str], default: Any, note: str) -> Setting:
        """First of the options ``names`` as a number; ``default`` when none is given."""
        for name in names:
            setting = self.options.get(name)
            if setting is not None:
                return self._as_count(setting)
        return _default(default, note)

    def variable(self, name: str, default: Any, note: str) -> Setting:
        """An environment variable as a number."""
        setting = self.environment.get(name)
        return self._as_count(setting) if setting is not None else _default(default, note)

    def _as_count(self, setting: Setting) -> Setting:
        setting = self.scheduler.resolve(setting)
        if not setting.known:
            return setting
        if str(setting.value).lower() in _ALL_GPUS:
            return self.all_gpus(f"{setting.name}={setting.value}")
        count = integer(setting)
        low, colon, high = str(setting.value).partition(":")
        if count is None and colon and low == high and low.isdigit():
            count = int(low)
        value: Any = Unknown(str(setting.value)) if count is None else count
        return Setting(setting.name, value, setting.location, setting.origin, _said(setting))

    def all_gpus(self, note: str) -> Setting:
        """Every GPU of the node: what is visible, else what the scheduler was asked for."""
        visible = visible_gpus(self.environment)
        if visible is not None:
            return visible
        return self.scheduler.gpus_per_node or _default(Unknown("every GPU of the node"), note)


def _default(value: Any, note: str) -> Setting:
    return Setting("default", value, None, Origin.DEFAULT, note)


def _count_torchrun(counter: _Counter) -> tuple[Setting, Setting]:
    processes = counter.count(("nproc_per_node",), 1, "torchrun: --nproc-per-node 1 unless set")
    nodes = counter.count(("nnodes",), 1, "torchrun: --nnodes 1 unless set")
    return processes, nodes


def _count_accelerate(counter: _Counter) -> tuple[Setting, Setting]:
    nodes = counter.count(("num_machines",), 1, "accelerate: one machine unless set")
    total = counter.options.get("num_processes")
    if total is None:
        return counter.all_gpus("accelerate: one process per GPU unless set"), nodes
    processes = counter.count(("num_processes",), 1, "")
    return _per_node(processes, nodes), nodes


def _per_node(total: Setting, nodes: Setting) -> Setting:
    """``num_processes`` of accelerate counts the processes of all machines."""
    if not total.known or not nodes.known or not nodes.value:
        return Setting("processes", Unknown(total.note or total.name), total.location)
    if total.value % nodes.value:
        return Setting("processes", Unknown("not the same on all machines"), total.location)
    return Setting(
        "processes", total.value // nodes.value, total.location, total.origin, total.note
    )


def _count_deepspeed(counter: _Counter) -> tuple[Setting, Setting]:
    include = counter.options.get("include") or counter.options.get("i")
    if include is not None and isinstance(include.value, str):
        hosts = include.value.split("@")
        slots = [host.partition(":")[2].split(",") for host in hosts]
        if all(":" in host for host in hosts) and len({len(s) for s in slots}) == 1:
            place, note = include.location, _said(include)
            return (
                Setting("processes", len(slots[0]), place, Origin.FLAG, note),
                Setting("nodes", len(hosts), place, Origin.FLAG, note),
            )
    names = ("num_gpus", "num_accelerators")
    given = next((counter.options[n] for n in names if n in counter.options), None)
    hostfile = counter.options.get("hostfile") or counter.options.get("H")
    if counter.hostfile is not None and hostfile is not None:
        nodes_in, slots_in = counter.hostfile
        nodes = counter.count(("num_nodes",), nodes_in, "DeepSpeed hostfile")
        if given is not None:
            return counter.count(names, slots_in, ""), nodes
        place = hostfile.location
        return Setting("processes", slots_in, place, Origin.FILE, "slots of the hostfile"), nodes
    if hostfile is not None:
        missing = _default(Unknown("the hostfile"), "")
        nodes = counter.count(("num_nodes",), missing.value, "")
        return counter.count(names, missing.value, ""), nodes
    nodes = counter.count(("num_nodes",), 1, "deepspeed: this node alone without a hostfile")
    if given is not None:
        return counter.count(names, 1, ""), nodes
    return counter.all_gpus("deepspeed: one process per GPU unless set"), nodes


def _count_swift(counter: _Counter) -> tuple[Setting, Setting]:
    ray = counter.settings.get("use_ray")
    if ray is not None and ray.value is not False:
        groups = _default(Unknown("Ray starts the processes of its device groups"), "")
        return groups, groups
    note = "ms-swift: one process unless NPROC_PER_NODE is set"
    return counter.variable("NPROC_PER_NODE", 1, note), counter.variable(
        "NNODES", 1, "ms-swift: one node unless NNODES is set"
    )


def _count_llamafactory(counter: _Counter) -> tuple[Setting, Setting]:
    nodes = counter.variable("NNODES", 1, "LLaMA-Factory: one node unless NNODES is set")
    if "NPROC_PER_NODE" in counter.environment:
        return counter.variable("NPROC_PER_NODE", 1, ""), nodes
    return counter.all_gpus("LLaMA-Factory: one process per GPU unless set"), nodes


def _count_flow_factory(counter: _Counter) -> tuple[Setting, Setting]:
    """Its own parameters decide: ``ff-train`` passes them to accelerate as flags."""
    return _count_accelerate(
        _Counter(counter.settings, counter.settings, counter.environment, counter.scheduler, None)
    )


_SERVED = (
    ("tensor_parallel_size", "tp_size", "tp"),
    ("pipeline_parallel_size", "pp_size", "pp"),
    ("data_parallel_size", "dp_size", "dp"),
)


def _count_server(counter: _Counter) -> tuple[Setting, Setting]:
    """An engine's worker processes: the product of its parallel sizes."""
    total = 1
    place: Optional[Location] = None
    notes = []
    for names in _SERVED:
        setting = next((counter.settings[n] for n in names if n in counter.settings), None)
        if setting is None:
            continue
        count = integer(setting)
        if count is None:
            unknown = _default(Unknown(f"{setting.name}"), "")
            return unknown, unknown
        total *= count
        place = place or setting.location
        notes.append(_said(setting))
    nodes_name = next((n for n in ("nnodes", "node_count") if n in counter.settings), None)
    nodes = integer(counter.settings[nodes_name]) if nodes_name else 1
    note = ", ".join(notes) or "one GPU unless a parallel size is set"
    origin = Origin.DERIVED if notes else Origin.DEFAULT
    value: Any = total // nodes if nodes and total % nodes == 0 else Unknown("nodes")
    return Setting("processes", value, place, origin, note), _default(
        nodes or Unknown("nodes"), "one node unless set"
    )


def _count_ray(counter: _Counter) -> tuple[Setting, Setting]:
    """verl starts its workers itself, as many as the trainer's settings say."""
    merged = _Counter(
        counter.settings, counter.settings, counter.environment, counter.scheduler, None
    )
    note = "verl: its own configuration file says how many"
    return (
        merged.count(("trainer.n_gpus_per_node",), Unknown(note), note),
        merged.count(("trainer.nnodes",), Unknown(note), note),
    )


def _count_plain(counter: _Counter) -> tuple[Setting, Setting]:
    if counter.scheduler.starts_tasks:
        tasks = counter.scheduler.tasks_per_node or _default(1, "srun: one task unless set")
        nodes = counter.scheduler.nodes or _default(1, "srun: one node unless set")
        return tasks, nodes
    visible = visible_gpus(counter.environment)
    note = "python: one process"
    if visible is not None and visible.known and visible.value > 1:
        note = f"python: one process with {visible.value} GPUs in sight"
    return _default(1, note), _default(1, note)


_COUNTERS = {
    "torchrun": _count_torchrun,
    "accelerate": _count_accelerate,
    "trl": _count_accelerate,
    "deepspeed": _count_deepspeed,
    "swift": _count_swift,
    "megatron": _count_swift,
    "llamafactory": _count_llamafactory,
    "flow_factory": _count_flow_factory,
    "ray": _count_ray,
    "vllm": _count_server,
    "sglang": _count_server,
}


_SPAWNERS = frozenset({"torch.multiprocessing.spawn", "accelerate.notebook_launcher"})
_LIGHTNING = ("lightning.", "pytorch_lightning.", "lightning_fabric.")


def with_spawned(launcher: Launcher, files: Iterable[PythonFile]) -> Launcher:
    """``launcher``, or what a script that ``python`` starts alone starts by itself."""
    if launcher.name != "python" or launcher.processes.explicit:
        return launcher
    for call in (call for file in files for call in file.calls):
        if call.name in _SPAWNERS:
            argument = call.keywords.get("nprocs") or call.keywords.get("num_processes")
            return _spawning(launcher, call, argument, None)
        if call.method in ("Trainer", "Fabric") and call.name.startswith(_LIGHTNING):
            return _spawning(
                launcher, call, call.keywords.get("devices"), call.keywords.get("num_nodes")
            )
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


def read_hostfile(text: str) -> Optional[tuple[int, int]]:
    """Nodes and slots of a DeepSpeed hostfile, or None when slots differ or none is given."""
    slots: list[int] = []
    for line in text.splitlines()[:4096]:
        words = line.partition("#")[0].split()
        if not words:
            continue
        match = re.fullmatch(r"slots=(\d{1,4})", words[1]) if len(words) > 1 else None
        if match is None:
            return None
        slots.append(int(match.group(1)))
    return (len(slots), slots[0]) if slots and len(set(slots)) == 1 else None


def hardware_of(
    launcher: Launcher,
    environment: Mapping[str, Setting],
    scheduler: Scheduler,
    script: Optional[ScriptFile] = None,
    job: Optional[ConfigFile] = None,
) -> Hardware:
    """The GPUs of a run: named by the job, else counted, else noted in a comment."""
    per_node = _gpus_per_node(launcher, environment, scheduler, job)
    nodes = _nodes(launcher, scheduler, job)
    named = _named_by_job(scheduler, job)
    weak = named is None
    found = named or _named_in_comments(script)
    source = found or per_node
    return Hardware(
        gpu=_gpu_name(found),
        gpus_per_node=integer(per_node),
        nodes=integer(nodes),
        memory_gib=_gpu_memory(found),
        source=(source.note or _said(source)) if source is not None else "",
        location=source.location if source is not None else None,
        weak=weak and found is not None,
        architecture=_architecture(found),
    )


def _gpus_per_node(
    launcher: Launcher,
    environment: Mapping[str, Setting],
    scheduler: Scheduler,
    job: Optional[ConfigFile],
) -> Optional[Setting]:
    counted = launcher.processes
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


def _named_by_job(scheduler: Scheduler, job: Optional[ConfigFile]) -> Optional[Setting]:
    texts = list(scheduler.gpu_texts())
    texts += [
        s for s in (job.resources if job is not None else ()) if s.known and s.name != "image"
    ]
    named = [text for text in texts if _architecture(text) is not None]
    return next((text for text in named if _gpu_name(text) is not None), None) or next(
        iter(named), None
    )


def _named_in_comments(script: Optional[ScriptFile]) -> Optional[Setting]:
    """The one GPU that a script's comments name; nothing when they name several."""
    found: dict[str, Setting] = {}
    for comment in script.comments if script is not None else ():
        name = _gpu_name(comment) or _architecture(comment)
        if name is not None:
            found.setdefault(name, comment)
    return next(iter(found.values())) if len(found) == 1 else None


def _gpu_name(setting: Optional[Setting]) -> Optional[str]:
    from flake8_gpu_training.hardware import gpu_named

    gpu = gpu_named(str(setting.value)) if setting is not None and setting.known else None
    return gpu.name if gpu is not None else None


def _gpu_memory(setting: Optional[Setting]) -> Optional[float]:
    from flake8_gpu_training.hardware import gpu_named

    gpu = gpu_named(str(setting.value)) if setting is not None and setting.known else None
    return gpu.memory_gib if gpu is not None else None


def _architecture(setting: Optional[Setting]) -> Optional[str]:
    from flake8_gpu_training.hardware import architecture_named

    return architecture_named(str(setting.value)) if setting is not None and setting.known else None
