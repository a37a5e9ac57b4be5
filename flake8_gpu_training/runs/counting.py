"""How many processes each launcher starts, as its own source counts them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from flake8_gpu_training.facts import Location, Origin, Setting, Unknown
from flake8_gpu_training.runs import hostfiles
from flake8_gpu_training.runs.hostfiles import Slots
from flake8_gpu_training.runs.model import Launcher
from flake8_gpu_training.runs.scheduling import MpiJob, Scheduler, said
from flake8_gpu_training.runs.settings import integer

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
    return Setting("gpus", count, setting.location, setting.origin, said(setting))


def launcher_of(
    name: str,
    options: Mapping[str, Setting],
    settings: Mapping[str, Setting],
    environment: Mapping[str, Setting],
    scheduler: Scheduler,
    pool: Optional[Slots] = None,
    mpi: Optional[MpiJob] = None,
) -> Launcher:
    """Processes per node and nodes that a launch starts.

    ``pool``: slots by host of a hostfile that was read; ``mpi``: the ``mpirun`` around it.
    """
    count = _COUNTERS.get(name, _count_plain)
    counter = _Counter(options, settings, environment, scheduler, pool, mpi)
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
        pool: Optional[Slots] = None,
        mpi: Optional[MpiJob] = None,
    ) -> None:
        self.options = options
        self.settings = settings
        self.environment = environment
        self.scheduler = scheduler
        self.pool = pool
        self.mpi = mpi

    def option(self, *names: str) -> Optional[Setting]:
        """First of the launcher's flags ``names`` that is given."""
        return next((self.options[name] for name in names if name in self.options), None)

    def optional(self, *names: str) -> Optional[Setting]:
        """The same as a number."""
        setting = self.option(*names)
        return None if setting is None else self.as_count(setting)

    def count(self, names: Sequence[str], default: Any, note: str) -> Setting:
        """First of the options ``names`` as a number; ``default`` when none is given."""
        for name in names:
            setting = self.options.get(name)
            if setting is not None:
                return self.as_count(setting)
        return _default(default, note)

    def variable(self, name: str, default: Any, note: str) -> Setting:
        """An environment variable as a number."""
        setting = self.environment.get(name)
        return self.as_count(setting) if setting is not None else _default(default, note)

    def as_count(self, setting: Setting) -> Setting:
        """A setting as a number of processes or nodes."""
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
        return Setting(setting.name, value, setting.location, setting.origin, said(setting))

    def all_gpus(self, note: str) -> Setting:
        """Every GPU of the node: what is visible, else what the scheduler was asked for."""
        visible = visible_gpus(self.environment)
        if visible is not None:
            return visible
        return self.scheduler.gpus_per_node or _default(Unknown("every GPU of the node"), note)


def _default(value: Any, note: str) -> Setting:
    return Setting("default", value, None, Origin.DEFAULT, note)


def _count_torchrun(counter: _Counter) -> tuple[Setting, Setting]:
    """``torch/distributed/run.py``: flags, then ``PET_…`` variables, then one of each."""
    found = []
    for name in ("nproc_per_node", "nnodes"):
        default = counter.variable(f"PET_{name.upper()}", 1, f"torchrun: one {name} unless set")
        found.append(counter.optional(name) or default)
    return found[0], found[1]


_ACCELERATE_SWITCHES = ("multi_gpu", "use_deepspeed", "use_fsdp", "use_megatron_lm", "tpu")


def _count_accelerate(counter: _Counter) -> tuple[Setting, Setting]:
    nodes = counter.count(("num_machines",), 1, "accelerate: one machine unless set")
    if _is_simple(counter):
        # ``simple_launcher`` of commands/launch.py starts the script once, whatever the number.
        kind = counter.options["distributed_type"]
        note = "distributed_type=NO"  # which YAML reads as false
        return Setting("processes", 1, kind.location, kind.origin, note), nodes
    total = counter.options.get("num_processes")
    if total is None:
        return counter.all_gpus("accelerate: one process per GPU unless set"), nodes
    processes = counter.count(("num_processes",), 1, "")
    return _per_node(processes, nodes), nodes


def _is_simple(counter: _Counter) -> bool:
    """Whether the configuration file says that nothing is distributed, and no flag differs."""
    kind = counter.options.get("distributed_type")
    if kind is None or (kind.value is not False and str(kind.value).upper() != "NO"):
        return False
    return not any(_is_on(counter.options.get(name)) for name in _ACCELERATE_SWITCHES) and (
        "mpirun_hostfile" not in counter.options
    )


def _is_on(setting: Optional[Setting]) -> bool:
    return setting is not None and (not setting.known or bool(setting.value))


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
    """As ``deepspeed/launcher/runner.py`` (0.19): hostfile, then filter, then numbers."""
    hostfile = counter.option("hostfile", "H")
    chosen = _DeepSpeedFilter(counter)
    if hostfile is not None and counter.pool is None:
        return chosen.of_unseen("the hostfile")
    if hostfile is not None and counter.pool is not None:
        place = Setting("hostfile", 0, hostfile.location, Origin.FILE, "slots of the hostfile")
        return chosen.of_pool(counter.pool, place)
    return chosen.of_this_node()


class _DeepSpeedFilter:
    """The flags that choose among the hosts and slots there are."""

    def __init__(self, counter: _Counter) -> None:
        self.counter = counter
        self.include = _filter_text(counter.option("include", "i"))
        self.exclude = _filter_text(counter.option("exclude", "e"))
        self.gpus = _given(counter.optional("num_gpus", "num_accelerators"))
        self.nodes = _given(counter.optional("num_nodes"))

    def of_pool(self, pool: Slots, source: Setting) -> tuple[Setting, Setting]:
        """Processes and nodes out of the hosts of a hostfile."""
        left: Optional[Slots] = pool
        for setting, narrowed in (
            (self.include, hostfiles.included),
            (self.exclude, hostfiles.excluded),
        ):
            if setting is not None and left is not None:
                left = narrowed(left, str(setting.value)) if setting.known else None
                source = setting
        if left is None:
            return _both(Unknown("hosts that the hostfile does not have"))
        nodes = dataclasses.replace(source, value=len(left))
        if self.nodes is not None:
            known_nodes = self.nodes.known and self.nodes.value < len(left)
            nodes = self.nodes if known_nodes or not self.nodes.known else nodes
        if self.gpus is not None:
            return self.gpus, nodes
        hosts = list(left.values())[: nodes.value if nodes.known else None]
        sizes = {len(slots) for slots in hosts}
        value: Any = sizes.pop() if len(sizes) == 1 else Unknown("hosts with different slots")
        return dataclasses.replace(source, value=value), nodes

    def of_this_node(self) -> tuple[Setting, Setting]:
        """Without a hostfile: this node, all GPUs or the visible ones or those chosen."""
        if self.include is not None:
            return self.of_unseen("every GPU of the node", nodes=1)
        nodes = self.nodes or _default(1, "deepspeed: this node alone without a hostfile")
        if self.gpus is not None:
            return self.gpus, nodes
        if self.exclude is not None:
            return self._without_excluded(), nodes
        return self.counter.all_gpus("deepspeed: one process per GPU unless set"), nodes

    def of_unseen(self, reason: str, nodes: Optional[int] = None) -> tuple[Setting, Setting]:
        """What the flags alone say when the hosts are out of sight."""
        if self.include is not None and self.include.known:
            wanted = hostfiles.read_filter(str(self.include.value)) or {}
            sizes = {len(slots) for slots in wanted.values()}
            size: Any = sizes.pop() if len(sizes) == 1 else 0
            hosts = dataclasses.replace(self.include, value=len(wanted) or Unknown(reason))
            return dataclasses.replace(self.include, value=size or Unknown(reason)), hosts
        missing = _default(Unknown(reason), "")
        return self.gpus or missing, self.nodes or _default(nodes or Unknown(reason), "")

    def _without_excluded(self) -> Setting:
        """All the node's GPUs but some; the launcher ignores which are visible."""
        there = self.counter.scheduler.gpus_per_node
        setting = self.exclude
        if there is None or setting is None or not there.known or not setting.known:
            return _default(Unknown("every GPU of the node but those excluded"), "")
        left = hostfiles.excluded({"localhost": tuple(range(there.value))}, str(setting.value))
        value: Any = len(left["localhost"]) if left else Unknown(str(setting.value))
        return dataclasses.replace(setting, value=value)


def _filter_text(setting: Optional[Setting]) -> Optional[Setting]:
    """``--include`` and ``--exclude`` filter unless they are empty."""
    if setting is None or (setting.known and setting.value in ("", True)):
        return None
    return dataclasses.replace(setting, origin=Origin.FLAG, note=said(setting))


def _given(setting: Optional[Setting]) -> Optional[Setting]:
    """A number counts when it is above zero: -1 is the launcher's default."""
    return setting if setting is not None and (not setting.known or setting.value) else None


def _both(value: Any) -> tuple[Setting, Setting]:
    setting = _default(value, "")
    return setting, setting


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
    """As ``llamafactory/launcher.py`` (0.9.4): torchrun when forced, or on several GPUs."""
    nodes = counter.variable("NNODES", 1, "LLaMA-Factory: one node unless NNODES is set")
    if _enabled(counter, "USE_RAY"):
        return _both(Unknown("Ray starts the workers"))
    least, most = (counter.environment.get(name) for name in ("MIN_NNODES", "MAX_NNODES"))
    is_elastic = least is not None and most is not None and "RDZV_ID" in counter.environment
    if is_elastic and least is not None and most is not None and least.value != most.value:
        nodes = _default(Unknown(f"{said(least)}, {said(most)}"), "")
    visible = visible_gpus(counter.environment)
    forced = any(_enabled(counter, name) for name in _FORCING)
    if visible is not None and visible.value == 1 and not forced:
        return visible, _default(1, "LLaMA-Factory: one process on one GPU")
    if "NPROC_PER_NODE" in counter.environment:
        return counter.variable("NPROC_PER_NODE", 1, ""), nodes
    return counter.all_gpus("LLaMA-Factory: one process per GPU unless set"), nodes


_FORCING = ("FORCE_TORCHRUN", "USE_MCA", "USE_MEGATRON_BRIDGE")


def _enabled(counter: _Counter, name: str) -> bool:
    """Whether LLaMA-Factory takes a variable as on; one that is not known may be."""
    setting = counter.environment.get(name)
    if setting is None:
        return False
    return not setting.known or str(setting.value).lower() in ("true", "y", "1")


def _count_flow_factory(counter: _Counter) -> tuple[Setting, Setting]:
    """Its own parameters decide: ``ff-train`` passes them to accelerate as flags.

    Where the recipe names no machines, the platform's variables do, over accelerate's file: a file
    for several machines is of a run whose platform is not in sight (cli.py, train_cli).
    """
    given = dict(counter.settings)
    machines = counter.options.get("num_machines")
    if machines is not None and (integer(machines) or 0) > 1:
        unseen = Unknown("the platform's NUM_MACHINES says it", (integer(machines),))
        given.setdefault("num_machines", dataclasses.replace(machines, value=unseen))
    return _count_accelerate(_Counter(given, given, counter.environment, counter.scheduler))


_SERVED = (
    ("tensor_parallel_size", "tp_size", "tp"),
    ("pipeline_parallel_size", "pp_size", "pp"),
    ("data_parallel_size", "dp_size", "dp"),
)


def _count_server(counter: _Counter) -> tuple[Setting, Setting]:
    """An engine's worker processes: the product of its parallel sizes. SGLang spreads attention,
    with DP attention, over the GPUs that tensor parallelism has."""
    total = 1
    place: Optional[Location] = None
    notes = []
    within = counter.settings.get("enable_dp_attention")
    is_within = within is not None and within.value is True
    for names in _SERVED[:-1] if is_within else _SERVED:
        setting = next((counter.settings[n] for n in names if n in counter.settings), None)
        if setting is None:
            continue
        count = integer(setting)
        if count is None:
            unknown = _default(Unknown(f"{setting.name}"), "")
            return unknown, unknown
        total *= count
        place = place or setting.location
        notes.append(said(setting))
    nodes_name = next((n for n in ("nnodes", "node_count") if n in counter.settings), None)
    nodes = integer(counter.settings[nodes_name]) if nodes_name else _nodes_for(counter, total)
    note = ", ".join(notes) or "one GPU unless a parallel size is set"
    origin = Origin.DERIVED if notes else Origin.DEFAULT
    value: Any = total // nodes if nodes and total % nodes == 0 else Unknown("nodes")
    return Setting("processes", value, place, origin, note), _default(
        nodes or Unknown("nodes"), "one node unless set"
    )


def _nodes_for(counter: _Counter, total: int) -> int:
    """Nodes that ``total`` workers fill: more than one when a node of the job has fewer GPUs."""
    each = integer(counter.scheduler.gpus_per_node)
    nodes = integer(counter.scheduler.nodes) or 1
    return total // each if each and each < total <= each * nodes and total % each == 0 else 1


def _count_ray(counter: _Counter) -> tuple[Setting, Setting]:
    """verl starts its workers itself, as many as the trainer's settings say."""
    merged = _Counter(counter.settings, counter.settings, counter.environment, counter.scheduler)
    note = "verl: its own configuration file says how many"
    return (
        merged.count(("trainer.n_gpus_per_node",), Unknown(note), note),
        merged.count(("trainer.nnodes",), Unknown(note), note),
    )


def _count_plain(counter: _Counter) -> tuple[Setting, Setting]:
    if counter.mpi is not None:
        return _count_mpi(counter, counter.mpi)
    if counter.scheduler.starts_tasks:
        tasks = counter.scheduler.tasks_per_node or _default(1, "srun: one task unless set")
        alone = not tasks.known and not counter.scheduler.nodes
        value: Any = Unknown("SLURM spreads the tasks over nodes") if alone else 1
        return tasks, counter.scheduler.nodes or _default(value, "srun: one node unless set")
    visible = visible_gpus(counter.environment)
    note = "python: one process"
    if visible is not None and visible.known and visible.value > 1:
        note = f"python: one process with {visible.value} GPUs in sight"
    nodes = _default(1, note)
    if "WORLD_SIZE" in counter.environment:
        # The pods of a PyTorchJob without torchrun: one process in each.
        nodes = counter.variable("PET_NNODES", 1, note)
    return _default(1, note), nodes


def _count_mpi(counter: _Counter, job: MpiJob) -> tuple[Setting, Setting]:
    """Ranks per node and nodes of ``mpirun``: by its flags, its hosts, or the allocation."""
    total = counter.as_count(job.total) if job.total is not None else None
    per_node = counter.as_count(job.per_node) if job.per_node is not None else None
    sizes = set(job.hosts.values()) if job.hosts else set()
    nodes = counter.scheduler.nodes
    if job.hosts:
        nodes = Setting("nodes", len(job.hosts), job.location, Origin.FLAG, "mpirun's hosts")
        if per_node is None and len(sizes) == 1:
            per_node = Setting(
                "processes", sizes.pop(), job.location, Origin.FLAG, "mpirun's hosts"
            )
    elif job.hostfile is not None and nodes is None:
        nodes = _default(Unknown("the hostfile"), "")
    if total is None:
        return per_node or _default(Unknown("every slot of the hosts"), ""), nodes or _default(
            1, "mpirun: this node unless hosts are given"
        )
    return _spread(total, per_node, nodes)


def _spread(
    total: Setting, per_node: Optional[Setting], nodes: Optional[Setting]
) -> tuple[Setting, Setting]:
    """``total`` ranks over nodes."""
    uneven = _default(Unknown("ranks that differ between nodes"), "")
    if not total.known:
        return per_node or uneven, nodes or uneven
    if per_node is not None and per_node.known and per_node.value:
        if total.value <= per_node.value:
            return total, dataclasses.replace(total, value=1)
        even = total.value % per_node.value == 0
        count: Any = total.value // per_node.value if even else Unknown("not the same on all nodes")
        return per_node, dataclasses.replace(total, value=count)
    if nodes is None:
        return total, _default(1, "mpirun: this node unless hosts are given")
    if not nodes.known or not nodes.value or total.value % nodes.value:
        return uneven, nodes
    return dataclasses.replace(total, value=total.value // nodes.value), nodes


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
