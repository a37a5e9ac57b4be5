"""What the ``deepspeed`` launcher refuses (launcher/runner.py, launcher/launch.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from flake8_gpu_training.facts import Setting
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.language import Text

_RUNNER = "deepspeed/launcher/runner.py, main"
_GROUPS = ("launcher",)
_KINDS = frozenset("pdsh openmpi mpich impi slurm mvapich".split())  # noqa: SIM905
_SHORT = {"include": "i", "exclude": "e", "hostfile": "H"}


def _flag(options: Options, *names: str) -> Optional[Setting]:
    """The flag that is given under one of its names, with a value that says something."""
    for name in names:
        setting = options.given.get(name) or options.given.get(_SHORT.get(name, ""))
        if setting is None or setting.value in ("", True):
            continue
        if not setting.known:
            raise UndecidedError(name)
        return setting
    return None


def _given(options: Options, *names: str) -> bool:
    return _flag(options, *names) is not None


def _number(options: Options, *names: str) -> Optional[int]:
    setting = _flag(options, *names)
    value = setting.value if setting is not None else None
    return value if isinstance(value, int) else None


def _filters_twice(options: Options) -> bool:
    return _given(options, "include") and _given(options, "exclude")


def _numbers_beside_filter(options: Options) -> bool:
    numbers = (
        _number(options, "num_nodes"),
        _number(options, "num_gpus", "num_accelerators"),
    )
    wanted = any(number is not None and number >= 0 for number in numbers)
    return wanted and (_given(options, "include") or _given(options, "exclude"))


def _unknown_kind(options: Options) -> bool:
    kind = _flag(options, "launcher")
    return kind is not None and str(kind.value).lower() not in _KINDS


def _is_on(options: Options, name: str) -> bool:
    setting = options.given.get(name)
    return setting is not None and setting.value is True


def _rank_of_no_host(options: Options) -> bool:
    if not _is_on(options, "no_ssh"):
        return False
    rank = options["node_rank"]
    hosts = options.run.launcher.nodes.value
    if not isinstance(rank, int):
        return False
    return rank < 0 or (isinstance(hosts, int) and rank >= hosts)


def _kind(options: Options) -> Mapping[str, Any]:
    return {"kind": options.given["launcher"].value}


LAUNCHER: tuple[Refusal, ...] = (
    Refusal(
        "include-with-exclude",
        "deepspeed/launcher/runner.py, parse_resource_filter",
        ("exclude", "e", "include", "i"),
        _filters_twice,
        Text("--include 与 --exclude 只保留一个", "keep one of --include and --exclude"),
        Text("二者互斥", "they exclude each other"),
        groups=_GROUPS,
    ),
    Refusal(
        "numbers-with-filter",
        _RUNNER,
        ("num_gpus", "num_accelerators", "num_nodes"),
        _numbers_beside_filter,
        Text(
            "删除 --num_gpus/--num_nodes，或删除 --include/--exclude",
            "drop --num_gpus and --num_nodes, or --include and --exclude",
        ),
        Text("数量与主机过滤不能同时给出", "numbers do not go with a filter of hosts"),
        groups=_GROUPS,
    ),
    Refusal(
        "rank-of-no-host",
        _RUNNER,
        ("node_rank", "no_ssh"),
        _rank_of_no_host,
        Text(
            "--no_ssh 时给出小于节点数的 --node_rank",
            "give --node_rank from 0 to the number of nodes less one, as --no_ssh needs",
        ),
        Text("该 --node_rank 不对应任何节点", "no node has this --node_rank"),
        groups=_GROUPS,
        since="0.14.5",
    ),
    Refusal(
        "unknown-launcher",
        _RUNNER,
        ("launcher",),
        _unknown_kind,
        Text(
            "--launcher 只能取 pdsh、openmpi、mpich、impi、slurm、mvapich",
            "give --launcher one of pdsh, openmpi, mpich, impi, slurm, mvapich",
        ),
        Text("没有 {kind}", "there is no {kind}"),
        figures=_kind,
        groups=_GROUPS,
    ),
    Refusal(
        "no-python-with-module",
        "deepspeed/launcher/launch.py, main",
        ("no_python", "module"),
        lambda options: _is_on(options, "no_python") and _is_on(options, "module"),
        Text("--no_python 与 --module 只保留一个", "keep one of --no_python and --module"),
        Text("二者不能同时使用", "they do not go together"),
        groups=_GROUPS,
    ),
)
