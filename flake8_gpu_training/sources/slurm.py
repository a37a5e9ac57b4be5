"""What SLURM's flags are called, and the variables a job gets because of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from ..facts import Setting

LONG_NAMES: Mapping[str, str] = {
    "A": "account",
    "a": "array",
    "C": "constraint",
    "c": "cpus-per-task",
    "D": "chdir",
    "d": "dependency",
    "e": "error",
    "F": "nodefile",
    "G": "gpus",
    "J": "job-name",
    "L": "licenses",
    "M": "clusters",
    "m": "distribution",
    "N": "nodes",
    "n": "ntasks",
    "o": "output",
    "p": "partition",
    "q": "qos",
    "t": "time",
    "w": "nodelist",
    "x": "exclude",
}
"""Flags of ``sbatch`` and ``srun`` that have a long name."""

_SWITCHES = frozenset(
    """exclusive requeue no-requeue parsable wait test-only hold overcommit oversubscribe
    contiguous ignore-pbs kill-on-invalid-dep spread-job use-min-nodes verbose quiet
    get-user-env no-kill reboot H I O Q s v W k help usage version""".split()  # noqa: SIM905
)
_COUNT = re.compile(r"\d{1,6}")
_GPU_COUNT = re.compile(r"gpu(?::[A-Za-z][\w.-]*)?(?::(\d{1,4}))?(?:[,(].*)?")
_RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5})(?::(\d{1,4}))?)?")
MAX_ARRAY = 16
"""Tasks of an array that are told one by one."""


@dataclass(frozen=True)
class Submission:
    """``sbatch [flags] script arguments``: where the script stands, and the flags by long name."""

    script: int
    flags: Mapping[str, str]


def submission(words: Sequence[str]) -> Optional[Submission]:
    """How ``sbatch``'s words submit a script; None when they do not (``--wrap``)."""
    flags: dict[str, str] = {}
    at = 1
    while at < len(words) and words[at].startswith("-"):
        name, equals, value = words[at].lstrip("-").partition("=")
        if not words[at].startswith("--") and not equals and len(name) > 1:
            name, value, equals = name[0], name[1:], "="
        if not equals and name not in _SWITCHES:
            at += 1
            value = words[at] if at < len(words) else ""
        flags[LONG_NAMES.get(name, name)] = value
        at += 1
    if at >= len(words) or "wrap" in flags:
        return None
    return Submission(at, flags)


def asked(directives: Iterable[Setting], flags: Mapping[str, str]) -> dict[str, str]:
    """What a script's directives ask for, under the flags it is submitted with."""
    found = {d.name: str(d.value) for d in directives}
    found.update(flags)
    return {name: text for name, text in found.items() if "$" not in text and "`" not in text}


def variables(wanted: Mapping[str, str]) -> dict[str, str]:
    """The variables that SLURM sets in the job's script (sbatch(1), output environment)."""
    nodes, each = wanted.get("nodes", ""), wanted.get("ntasks-per-node", "")
    tasks = wanted.get("ntasks", "")
    if not nodes and tasks in ("", "1") and not each:
        nodes = "1"
    nodes = nodes if _COUNT.fullmatch(nodes) else ""
    if nodes and not tasks and _COUNT.fullmatch(each):
        tasks = str(int(nodes) * int(each))
    told = (
        ("SLURM_NNODES", nodes),
        ("SLURM_JOB_NUM_NODES", nodes),
        ("SLURM_NTASKS", tasks),
        ("SLURM_NPROCS", tasks),
        ("SLURM_NTASKS_PER_NODE", each),
        ("SLURM_CPUS_PER_TASK", wanted.get("cpus-per-task", "")),
        ("SLURM_GPUS_ON_NODE", _gpus_on_node(wanted)),
        ("SLURM_GPUS_PER_NODE", wanted.get("gpus-per-node", "")),
        ("SLURM_GPUS_PER_TASK", wanted.get("gpus-per-task", "")),
        ("SLURM_GPUS", wanted.get("gpus", "")),
        ("SLURM_JOB_NAME", wanted.get("job-name", "")),
    )
    return {name: value for name, value in told if value}


def array_tasks(wanted: Mapping[str, str]) -> Optional[tuple[str, ...]]:
    """Indices of an array job (none when they are too many), or None when it is no array."""
    text = wanted.get("array")
    if text is None:
        return None
    found: list[str] = []
    for part in text.partition("%")[0].split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            return ()
        first, last, step = (int(group) if group else 0 for group in match.groups())
        found += [str(i) for i in range(first, max(first, last) + 1, step or 1)][: MAX_ARRAY + 1]
    return tuple(found) if len(found) <= MAX_ARRAY else ()


def _gpus_on_node(wanted: Mapping[str, str]) -> str:
    last = wanted.get("gpus-per-node", "").rpartition(":")[2]
    if _COUNT.fullmatch(last):
        return last
    match = _GPU_COUNT.fullmatch(wanted.get("gres", ""))
    return "" if match is None else match.group(1) or "1"
