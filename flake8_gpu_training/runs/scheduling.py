"""What a batch scheduler was asked for: SLURM directives, ``sbatch`` and ``srun`` flags, MPI."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from flake8_gpu_training.facts import (
    CONTAINERS,
    Command,
    Location,
    Origin,
    ScriptFile,
    Setting,
    Unknown,
    Word,
)
from flake8_gpu_training.runs.settings import integer
from flake8_gpu_training.sources.slurm import LONG_NAMES

_SLURM_NODES = re.compile(r"\bSLURM_(?:JOB_NUM_NODES|NNODES|JOB_NODES)\b")
_SLURM_GPUS = re.compile(r"\bSLURM_(?:GPUS_ON_NODE|GPUS_PER_NODE)\b")
_SLURM_TASKS = re.compile(r"\bSLURM_NTASKS_PER_NODE\b")
_GRES = re.compile(r"gpu(?::(?P<name>[A-Za-z][\w.-]*))?(?::(?P<count>\d+))?")
_TASKS = frozenset({"ntasks", "ntasks-per-node"})


class Scheduler:
    """What a batch scheduler was asked for.

    A step (``srun``) has precedence over what the job was submitted with (``sbatch``), and
    that over the directives of its script.
    """

    def __init__(self, script: Optional[ScriptFile], command: Optional[Command]) -> None:
        self.directives: dict[str, Setting] = {}
        for directive in script.directives if script is not None else ():
            self.directives[directive.name.replace("_", "-")] = directive
        self.directives.update(_slurm_flags(command, "sbatch"))
        self.step = _slurm_flags(command, "srun")
        self._container = _container_gpus(command)
        if _TASKS.intersection(self.step):
            # The step says how many tasks it has; the job's numbers no longer count.
            for name in _TASKS:
                self.directives.pop(name, None)
        self.directives.update(self.step)

    @property
    def starts_tasks(self) -> bool:
        """Whether ``srun`` starts the command once per task."""
        return "srun" in self.step

    @property
    def nodes(self) -> Optional[Setting]:
        """Nodes asked for."""
        return self._count("nodes")

    @property
    def tasks_per_node(self) -> Optional[Setting]:
        """Tasks per node asked for."""
        found = self._count("ntasks-per-node")
        if found is not None:
            return found
        total = self._count("ntasks")
        if total is None or not total.known:
            return total
        nodes = integer(self.nodes)
        if nodes is None and total.value == 1:
            nodes = 1
        count: Any = Unknown("SLURM spreads the tasks over nodes")
        if nodes and total.value % nodes == 0:
            count = total.value // nodes
        return Setting("tasks", count, total.location, Origin.DERIVED, total.note)

    @property
    def gpus_per_node(self) -> Optional[Setting]:
        """GPUs per node asked for; within a container, those it is given."""
        if self._container is not None:
            return self._container
        for name in ("gpus-per-node", "gres"):
            setting = self.directives.get(name)
            match = _GRES.search(str(setting.value)) if setting and setting.known else None
            if setting is None or not setting.known:
                continue
            text = str(setting.value)
            last = text.rpartition(":")[2]
            if name == "gpus-per-node" and last.isdigit():
                return Setting("gpus", int(last), setting.location, Origin.DERIVED, said(setting))
            if match is not None:
                count = int(match["count"] or 1)
                return Setting("gpus", count, setting.location, Origin.DERIVED, said(setting))
        each = self._last_number("gpus-per-task")
        tasks = integer(self.tasks_per_node)
        if each is not None and tasks is not None:
            return _replaced(each, each.value * tasks)
        total = self._last_number("gpus")
        if total is not None:
            return _replaced(total, max(1, total.value // (integer(self.nodes) or 1)))
        return None

    def gpu_texts(self) -> Iterable[Setting]:
        """Directives that may name the GPU."""
        for name in ("gres", "gpus-per-node", "gpus", "gpus-per-task", "constraint"):
            setting = self.directives.get(name)
            if setting is not None and setting.known:
                yield setting

    def _last_number(self, name: str) -> Optional[Setting]:
        """``h100:2`` or ``2`` as 2."""
        setting = self.directives.get(name)
        last = str(setting.value).rpartition(":")[2] if setting is not None else ""
        if setting is None or not setting.known or not re.fullmatch(r"\d{1,6}", last):
            return None
        return Setting("gpus", int(last), setting.location, Origin.DERIVED, said(setting))

    def _count(self, name: str) -> Optional[Setting]:
        setting = self.directives.get(name)
        if setting is None:
            return None
        count = integer(setting)
        value: Any = Unknown(str(setting.value)) if count is None else count
        return Setting(name, value, setting.location, Origin.DERIVED, said(setting))

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


def said(setting: Setting) -> str:
    """A setting as the note of what is derived from it."""
    return f"{setting.name}={setting.value}"


def _replaced(setting: Setting, value: Any) -> Setting:
    return Setting(setting.name, value, setting.location, setting.origin, setting.note)


def _is_bare(reason: str) -> bool:
    """Whether the text is one variable (with a default perhaps) and no computation."""
    text = reason.strip("\"'")
    return bool(re.fullmatch(r"\$\w+|\$\{\w+(?::?[-=][^}]*)?\}", text))


def _slurm_flags(command: Optional[Command], program: str) -> dict[str, Setting]:
    """Flags of the ``srun`` or ``sbatch`` around a command, by their long names."""
    found: dict[str, Setting] = {}
    for wrapper in _wrappers(command, program):
        found[program] = Setting(program, True, wrapper[0].location, Origin.FLAG)
        for flag in _flags(wrapper[1:]):
            name = LONG_NAMES.get(flag.name, flag.name)
            found[name] = Setting(name, flag.value, flag.location, Origin.FLAG)
    return found


def _wrappers(command: Optional[Command], *programs: str) -> Iterable[Sequence[Word]]:
    for wrapper in command.wrappers if command is not None else ():
        if wrapper and wrapper[0].text.rpartition("/")[2] in programs:
            yield wrapper


def _flags(words: Sequence[Word]) -> Iterable[Setting]:
    """``--name value``, ``--name=value``, ``-N 4`` and ``-N4``, in the order written."""
    for index, word in enumerate(words):
        if not word.text.startswith("-") or word.text == "--":
            continue
        name, equals, text = word.text.lstrip("-").partition("=")
        value: Any = text
        short = not word.text.startswith("--") and re.match(r"-([A-Za-z])=?(\d.*)", word.text)
        if short:
            name, value = short.group(1), short.group(2)
        elif not equals:
            following = words[index + 1] if index + 1 < len(words) else None
            if following is None or following.text.startswith("-"):
                continue
            value = following.value
        elif isinstance(word.value, Unknown):
            value = word.value
        yield Setting(name, value, word.location, Origin.FLAG)


def _container_gpus(command: Optional[Command]) -> Optional[Setting]:
    """GPUs of ``docker run --gpus``: a number, or devices by number; None for all."""
    for wrapper in _wrappers(command, *CONTAINERS):
        for flag in _flags(wrapper[1:]):
            text = str(flag.value).strip("\"'")
            devices = re.fullmatch(r"device=(\d+(?:,\d+)*)", text)
            number = re.fullmatch(r"(?:count=)?(\d{1,3})", text)
            if flag.name != "gpus" or not flag.known or not (devices or number):
                continue
            count = int(number.group(1)) if number else text.count(",") + 1
            return Setting("gpus", count, flag.location, Origin.DERIVED, said(flag))
    return None


# --- MPI ------------------------------------------------------------------------------------

_MPI_PROGRAMS = ("mpirun", "mpiexec", "orterun", "mpiexec.hydra")
# Open MPI 4/5 (mpirun(1)) and Hydra (MPICH, Intel MPI); ``-N`` is Open MPI's npernode.
_MPI_TOTAL = ("np", "n", "c")
_MPI_PER_NODE = ("npernode", "N", "ppn", "perhost")
_MPI_HOSTS = ("H", "host", "hosts")
_MPI_HOSTFILES = ("hostfile", "machinefile", "f", "default-hostfile")
_PER_NODE_MAP = re.compile(r"ppr:(\d{1,4}):node\b.*")


@dataclass(frozen=True)
class MpiJob:
    """What ``mpirun`` was told: ranks in all, ranks per node, slots by host, a hostfile."""

    location: Location
    total: Optional[Setting] = None
    per_node: Optional[Setting] = None
    hosts: Optional[Mapping[str, int]] = None
    hostfile: Optional[Setting] = None


def mpi_job(command: Optional[Command]) -> Optional[MpiJob]:
    """The ``mpirun`` that starts ``command``, or None."""
    for wrapper in _wrappers(command, *_MPI_PROGRAMS):
        flags = {setting.name: setting for setting in _flags(wrapper[1:])}
        mapped = flags.get("map-by")
        match = _PER_NODE_MAP.fullmatch(str(mapped.value)) if mapped is not None else None
        per_node = _first(flags, _MPI_PER_NODE)
        if mapped is not None and match is not None:
            per_node = _replaced(mapped, int(match.group(1)))
        hosts = _first(flags, _MPI_HOSTS)
        return MpiJob(
            wrapper[0].location,
            _first(flags, _MPI_TOTAL),
            per_node,
            _slots(hosts.value) if hosts is not None and hosts.known else None,
            _first(flags, _MPI_HOSTFILES),
        )
    return None


def _first(flags: Mapping[str, Setting], names: Sequence[str]) -> Optional[Setting]:
    return next((flags[name] for name in names if name in flags), None)


def _slots(text: str) -> Optional[dict[str, int]]:
    """``a:8,b:8`` as slots by host; a host that is named twice has two slots."""
    found: dict[str, int] = {}
    for part in str(text).split(","):
        host, colon, count = part.strip().partition(":")
        if not host or (colon and not re.fullmatch(r"\d{1,4}", count)):
            return None
        found[host] = found.get(host, 0) + (int(count) if colon else 1)
    return found
