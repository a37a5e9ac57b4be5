"""What ``torchrun`` refuses (torch/distributed/run.py, torch/distributed/elastic)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Optional

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.language import Text

_RUN = "torch/distributed/run.py"
_ELASTIC = "torch/distributed/elastic/rendezvous"
_GROUPS = ("torchrun",)
_DEVICES = frozenset("cpu gpu auto xpu npu hpu mlu musa maia sdaa privateuseone".split())  # noqa: SIM905
_NO_RENDEZVOUS = frozenset("nccl gloo mpi tcp env file".split())  # noqa: SIM905
"""Backends of communication, and schemes of ``init_method``, which are taken for it."""
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_STREAMS = re.compile(r"[0-3]|(?:\d+:[0-3],)*\d+:[0-3]")
_STREAM_FLAGS = ("redirects", "r", "tee", "t")


def _given(options: Options, name: str) -> Any:
    """The value of a flag; None when it is not given."""
    setting = options.given.get(name)
    if setting is None:
        return None
    if not known(setting.value):
        raise UndecidedError(name)
    return setting.value


def _nodes(options: Options) -> Optional[tuple[int, int]]:
    """Fewest and most nodes; None where the flag is no such range."""
    value = _given(options, "nnodes")
    if value is None:
        raise UndecidedError("nnodes")
    parts = str(value).split(":")
    if len(parts) > 2 or not all(re.fullmatch(r"\s*[+-]?\d+\s*", part) for part in parts):
        return None
    return int(parts[0]), int(parts[-1])


def _no_nodes(options: Options) -> bool:
    found = _nodes(options)
    return found is None or not 0 < found[0] <= found[1]


def _no_processes(options: Options) -> bool:
    value = _given(options, "nproc_per_node")
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int):
        return value < 1
    if isinstance(value, float):
        return True
    return value not in _DEVICES and re.fullmatch(r"[a-zA-Z]+", value) is not None


def _negative_restarts(options: Options) -> bool:
    value = _given(options, "max_restarts")
    return isinstance(value, int) and value < 0


def _is_static(options: Options) -> bool:
    """Whether the nodes meet as the flags say, not by a service."""
    if options.is_open or _given(options, "standalone"):
        return False
    backend = _given(options, "rdzv_backend")
    return backend in (None, "static")


def _bad_port(options: Options) -> bool:
    endpoint = _given(options, "rdzv_endpoint")
    if _given(options, "standalone"):
        return False
    if isinstance(endpoint, str) and endpoint:
        return _no_port(endpoint)
    port = _given(options, "master_port")
    return _is_static(options) and isinstance(port, int) and not 0 <= port < 65536


def _no_port(endpoint: str) -> bool:
    if endpoint.endswith("]") or endpoint.count(":") > 1:
        return False  # an address of IPv6
    _, colon, port = endpoint.rpartition(":")
    return bool(colon) and (re.fullmatch(r"\d{1,5}", port) is None or int(port) > 65535)


def _no_static_port(options: Options) -> bool:
    endpoint = _given(options, "rdzv_endpoint")
    return (
        _is_static(options) and isinstance(endpoint, str) and bool(endpoint) and ":" not in endpoint
    )


def _no_backend(options: Options) -> bool:
    return _given(options, "rdzv_backend") in _NO_RENDEZVOUS


def _bad_conf(options: Options) -> bool:
    value = _given(options, "rdzv_conf")
    if not isinstance(value, str) or not value.strip():
        return False
    return any(re.fullmatch(r"\s*[^=\s][^=]*=\s*\S.*", part) is None for part in value.split(","))


def _bad_streams(options: Options) -> bool:
    values = (_given(options, name) for name in _STREAM_FLAGS)
    return any(
        value is not None and value is not True and _STREAMS.fullmatch(str(value)) is None
        for value in values
    )


def _bad_filter(options: Options) -> bool:
    value = _given(options, "local_ranks_filter")
    if not isinstance(value, str) or not value:
        return False
    return any(re.fullmatch(r"\s*[+-]?\d+\s*", part) is None for part in value.split(","))


def _on(options: Options, *names: str) -> bool:
    return any(_given(options, name) is not None for name in names)


def _rank_beyond(options: Options) -> bool:
    rank = _given(options, "node_rank")
    if not isinstance(rank, int) or not _is_static(options):
        return False
    nodes = _nodes(options)
    return nodes is not None and nodes[1] > 0 and not 0 <= rank < nodes[1]


def _meets_itself(options: Options) -> bool:
    """Whether a node other than the first looks for the first on itself."""
    address = options.given.get("master_addr")
    endpoint = options.given.get("rdzv_endpoint")
    meeting = address if endpoint is None else endpoint
    if meeting is None or not meeting.text or not isinstance(meeting.value, str):
        return False  # what a variable says may be set otherwise on each node
    if endpoint is not None and _given(options, "standalone"):
        return False
    if endpoint is None and not _is_static(options):
        return False
    nodes = _nodes(options)
    if nodes is None or nodes[0] < 2 or meeting.value.rpartition(":")[0] not in (*_LOCAL, ""):
        return False
    host = meeting.value.rpartition(":")[0] or meeting.value
    rank = options.given.get("node_rank")
    return host in _LOCAL and rank is not None and (not known(rank.value) or rank.value != 0)


def _of_nodes(options: Options) -> Mapping[str, Any]:
    return {"nodes": _given(options, "nnodes"), "rank": _given(options, "node_rank")}


def _rule(
    name: str,
    source: str,
    settings: tuple[str, ...],
    holds: Any,
    mend: Text,
    why: Text,
    **others: Any,
) -> Refusal:
    return Refusal(name, source, settings, holds, mend, why, groups=_GROUPS, **others)


TORCHRUN: tuple[Refusal, ...] = (
    _rule(
        "nodes-no-range",
        f"{_RUN}, parse_min_max_nnodes, config_from_args",
        ("nnodes",),
        _no_nodes,
        Text("--nnodes 写成节点数，或 最小:最大", "give --nnodes a number, or a range MIN:MAX"),
        Text("{nnodes} 不是有效的节点数", "{nnodes} is no number of nodes"),
    ),
    _rule(
        "processes-no-number",
        f"{_RUN}, determine_local_world_size; elastic/agent/server/api.py, WorkerSpec",
        ("nproc_per_node",),
        _no_processes,
        Text(
            "--nproc_per_node 写成正整数，或 gpu、cpu、auto",
            "give --nproc_per_node a number above 0, or gpu, cpu or auto",
        ),
        Text("不接受 {nproc_per_node}", "{nproc_per_node} is not taken"),
    ),
    _rule(
        "negative-restarts",
        f"{_RUN}, config_from_args",
        ("max_restarts",),
        _negative_restarts,
        Text("--max_restarts 设为 0 或更大", "give --max_restarts 0 or more"),
        Text("不能为负", "it cannot be negative"),
    ),
    _rule(
        "port-out-of-range",
        f"{_ELASTIC}/utils.py, parse_rendezvous_endpoint",
        ("rdzv_endpoint", "master_port"),
        _bad_port,
        Text("端口设为 0 到 65535 之间的整数", "give a port from 0 to 65535"),
        Text("该端口不存在", "there is no such port"),
    ),
    _rule(
        "endpoint-without-port",
        f"{_ELASTIC}/static_tcp_rendezvous.py, create_rdzv_handler",
        ("rdzv_endpoint",),
        _no_static_port,
        Text(
            "--rdzv_endpoint 加上端口，或使用 --rdzv_backend c10d",
            "add a port to --rdzv_endpoint, or use --rdzv_backend c10d",
        ),
        Text("默认的 static 方式需要端口", "static, the default backend, needs one"),
    ),
    _rule(
        "no-rendezvous-backend",
        f"{_ELASTIC}/api.py, RendezvousHandlerRegistry.create_handler",
        ("rdzv_backend",),
        _no_backend,
        Text(
            "--rdzv_backend 改为 c10d（nccl 等通信后端在脚本的 init_process_group 中设置）",
            "set --rdzv_backend c10d; nccl and its kin belong to the script's init_process_group",
        ),
        Text("{rdzv_backend} 不是会合后端", "{rdzv_backend} is no backend of the rendezvous"),
    ),
    _rule(
        "rendezvous-options",
        f"{_ELASTIC}/utils.py, _parse_rendezvous_config",
        ("rdzv_conf",),
        _bad_conf,
        Text("--rdzv_conf 写成 键=值,键=值", "write --rdzv_conf as key=value,key=value"),
        Text("格式不符", "it is not of this form"),
    ),
    _rule(
        "streams-of-ranks",
        "torch/distributed/elastic/multiprocessing/api.py, Std.from_str",
        _STREAM_FLAGS,
        _bad_streams,
        Text(
            "写成 0 到 3 的数字，或 0:3,1:0 这样的形式",
            "write a number from 0 to 3, or ranks with one each, like 0:3,1:0",
        ),
        Text("--redirects 与 --tee 只接受这些形式", "--redirects and --tee take no other form"),
    ),
    _rule(
        "ranks-no-numbers",
        f"{_RUN}, config_from_args",
        ("local_ranks_filter",),
        _bad_filter,
        Text("--local_ranks_filter 写成 0,1,2", "write --local_ranks_filter as 0,1,2"),
        Text("只接受逗号分隔的整数", "it takes whole numbers between commas"),
        since="2.3.1",
    ),
    _rule(
        "torchrun-no-python-with-module",
        f"{_RUN}, config_from_args",
        ("no_python", "module", "m"),
        lambda options: _on(options, "no_python") and _on(options, "module", "m"),
        Text("--no_python 与 --module 只保留一个", "keep one of --no_python and --module"),
        Text("二者不能同时使用", "they do not go together"),
    ),
    _rule(
        "node-rank-beyond-nodes",
        f"{_ELASTIC}/static_tcp_rendezvous.py, StaticTCPRendezvous",
        ("node_rank", "nnodes"),
        _rank_beyond,
        Text("--node_rank 取 0 到 --nnodes 减 1", "give --node_rank from 0 to --nnodes less one"),
        Text(
            "{nodes} 个节点中没有编号 {rank}，各节点无法集合",
            "of {nodes} nodes none has the rank {rank}, and they never meet",
        ),
        figures=_of_nodes,
    ),
    _rule(
        "first-node-on-itself",
        f"{_ELASTIC}/static_tcp_rendezvous.py, StaticTCPRendezvous",
        ("master_addr", "rdzv_endpoint"),
        _meets_itself,
        Text(
            "把第一个节点的地址写成其他节点可访问的地址",
            "give the first node's address as the others reach it",
        ),
        Text(
            "其他节点会在自己身上寻找第一个节点",
            "every other node would look for the first one on itself",
        ),
    ),
)
