"""What ``swift rlhf`` refuses of generation with vLLM, by GRPO and GKD."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.ms_swift._asked import (
    RLHF,
    ROLLOUTS,
    batch,
    items,
    none_of,
    off,
    setting,
    world,
)
from flake8_gpu_training.language import Text

_ARGUMENTS = "swift/arguments/rlhf_args.py, RLHFArguments"


def _generates(options: Options) -> bool:
    return options["rlhf_type"] in ROLLOUTS


def _mode_without_engine(options: Options) -> bool:
    return _generates(options) and options["vllm_mode"] is not None and not options["use_vllm"]


def _engine_without_mode(options: Options) -> bool:
    return _generates(options) and options["vllm_mode"] is None and bool(options["use_vllm"])


def _mode(options: Options) -> Mapping[str, Any]:
    """The mode that is meant: a server where its address is given."""
    served = options.is_given("vllm_server_host") or options.is_given("vllm_server_base_url")
    return {"vllm_mode": "server" if served else "colocate"}


def _server_of_nowhere(options: Options) -> bool:
    if not _generates(options) or not options["use_vllm"] or options["vllm_mode"] != "server":
        return False
    return none_of(options, "vllm_server_host", "vllm_server_base_url")


def _ports_of_hosts(options: Options) -> bool:
    if not _generates(options) or items(options, "vllm_server_base_url"):
        return False
    hosts, ports = items(options, "vllm_server_host"), items(options, "vllm_server_port")
    return bool(hosts) and len(hosts) != len(ports)


def _numbers_of_hosts(options: Options) -> Mapping[str, Any]:
    return {
        "hosts": len(items(options, "vllm_server_host")),
        "ports": len(items(options, "vllm_server_port")),
    }


def _group_ports_of_hosts(options: Options) -> bool:
    urls, hosts = items(options, "vllm_server_base_url"), items(options, "vllm_server_host")
    ports = items(options, "vllm_server_group_port")
    servers = len(urls or hosts)
    return _generates(options) and bool(ports) and bool(servers) and len(ports) != servers


def _asynchronous_without_server(options: Options) -> bool:
    if options["rlhf_type"] != "grpo" or not options["async_generate"]:
        return False
    return bool(options["vllm_mode"] != "server")


def _undivided_world(options: Options) -> bool:
    if not _generates(options) or options["vllm_mode"] != "colocate" or not options["use_vllm"]:
        return False
    return world(options) % batch(options, "vllm_tensor_parallel_size") != 0


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "vllm-mode-without-vllm",
        f"{_ARGUMENTS}._init_rollout",
        ("vllm_mode", "use_vllm"),
        _mode_without_engine,
        Text("设置 use_vllm=true，或去掉 vllm_mode", "write use_vllm=true, or drop vllm_mode"),
        Text("use_vllm 为 false", "use_vllm is false"),
        write=setting(use_vllm=True),
        since="3.11.3",
        groups=RLHF,
    ),
    Refusal(
        "vllm-without-mode",
        f"{_ARGUMENTS}._init_rollout",
        ("use_vllm", "vllm_mode"),
        _engine_without_mode,
        Text("vllm_mode 设为 {vllm_mode}", "write vllm_mode={vllm_mode}"),
        Text("use_vllm 需要 vllm_mode", "use_vllm needs a vllm_mode"),
        write=_mode,
        figures=_mode,
        since="3.11.3",
        groups=RLHF,
    ),
    Refusal(
        "server-of-nowhere",
        f"{_ARGUMENTS}._init_rollout",
        ("vllm_mode", "vllm_server_host"),
        _server_of_nowhere,
        Text(
            "设置 vllm_server_host 或 vllm_server_base_url",
            "give vllm_server_host or vllm_server_base_url",
        ),
        Text("vllm_mode=server 需要服务地址", "vllm_mode=server needs its address"),
        since="3.10.3",
        groups=RLHF,
    ),
    Refusal(
        "ports-of-servers",
        "swift/rlhf_trainers/vllm_client.py, VLLMInferClient.__init__",
        ("vllm_server_port", "vllm_server_host"),
        _ports_of_hosts,
        Text(
            "每个 vllm_server_host 给一个 vllm_server_port",
            "give a vllm_server_port for each vllm_server_host",
        ),
        Text("{hosts} 个地址，{ports} 个端口", "hosts: {hosts}, ports: {ports}"),
        figures=_numbers_of_hosts,
        since="4.0.4",
        groups=RLHF,
    ),
    Refusal(
        "group-ports-of-servers",
        "swift/rlhf_trainers/vllm_client.py, VLLMClient.__init__",
        ("vllm_server_group_port",),
        _group_ports_of_hosts,
        Text(
            "每个服务给一个 vllm_server_group_port",
            "give a vllm_server_group_port for each server",
        ),
        Text("两者数量不同", "their numbers differ"),
        since="4.0.4",
        groups=RLHF,
    ),
    Refusal(
        "asynchronous-without-server",
        f"{_ARGUMENTS}._init_rollout",
        ("async_generate", "vllm_mode"),
        _asynchronous_without_server,
        Text(
            "使用 vllm_mode=server，或去掉 async_generate",
            "write vllm_mode=server, or drop async_generate",
        ),
        Text("异步生成需要 vLLM 服务", "only a server generates beside the training"),
        write=off("async_generate"),
        since="3.10.3",
        groups=RLHF,
    ),
    Refusal(
        "engine-of-the-ranks",
        "swift/rlhf_trainers/rollout_mixin.py, RolloutTrainerMixin._prepare_vllm",
        ("vllm_tensor_parallel_size",),
        _undivided_world,
        Text(
            "vllm_tensor_parallel_size 设为 {ranks} 的约数",
            "give a vllm_tensor_parallel_size that divides {ranks}",
        ),
        Text(
            "{vllm_tensor_parallel_size} 不能整除 {ranks} 个进程",
            "{vllm_tensor_parallel_size} does not divide the {ranks} processes",
        ),
        figures=lambda options: {"ranks": world(options)},
        since="3.10.3",
        groups=RLHF,
    ),
)
