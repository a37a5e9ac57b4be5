"""What wrappers, meshes, process groups, GradScaler and torch.compile refuse."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Callable

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.torch.given import given, has, known_value
from flake8_gpu_training.language import Text


def _group_and_mesh(options: Options) -> bool:
    return has(options, "process_group", "new_group", "new_subgroups", "get_group") and has(
        options, "device_mesh", "init_device_mesh", "DeviceMesh"
    )


def _several_devices(options: Options) -> bool:
    value = known_value(options, "device_ids")
    return isinstance(value, (list, tuple)) and len(value) > 1


def _output_without_devices(options: Options) -> bool:
    named = known_value(options, "output_device")
    if not isinstance(named, int) or isinstance(named, bool) or named == 0:
        return False
    value = given(options, "device_ids")
    return value is None or (isinstance(value, (list, tuple)) and not value)


_HYBRID = ("HYBRID_SHARD", "_HYBRID_SHARD_ZERO2")


def _hybrid_by_hand(options: Options) -> bool:
    strategy = options.given.get("sharding_strategy")
    if strategy is None or not strategy.text.endswith(_HYBRID):
        return False
    names = ("process_group", "auto_wrap_policy", "device_mesh")
    return not options.is_open and all(
        name not in options.given or _known_none(options, name) for name in names
    )


def _known_none(options: Options, name: str) -> bool:
    return name in options.given and options.given[name].value is None


def _kept_apart(options: Options) -> bool:
    value = options.given.get("reshard_after_forward")
    if value is None or not known(value.value) or value.value is None:
        return False
    return not isinstance(value.value, (bool, int))


def _mesh(options: Options) -> tuple[list[Any], list[Any]]:
    shape, names = known_value(options, "mesh_shape"), known_value(options, "mesh_dim_names")
    return (
        list(shape) if isinstance(shape, (list, tuple)) else [],
        list(names) if isinstance(names, (list, tuple)) else [],
    )


def _names_twice(options: Options) -> bool:
    names = [name for name in _mesh(options)[1] if known(name)]
    return len(names) != len(set(names))


def _names_amiss(options: Options) -> bool:
    shape, names = _mesh(options)
    return bool(shape) and bool(names) and len(shape) != len(names)


def _mesh_too_big(options: Options) -> Mapping[str, Any]:
    launcher, shape = options.run.launcher, _mesh(options)[0]
    world = launcher.world_size
    if not shape or world is None or not launcher.processes.explicit:
        return {}
    if not all(isinstance(size, int) and size > 0 for size in shape):
        return {}
    product = math.prod(shape)
    return {"product": product, "ranks": world} if product > world else {}


def _indexed(options: Options) -> bool:
    value = known_value(options, "device_type")
    return isinstance(value, str) and re.fullmatch(r"\w+:\d+", value) is not None


def _no_duration(options: Options) -> bool:
    value = known_value(options, "timeout")
    return isinstance(value, (int, float, str)) and not isinstance(value, bool)


def _store_and_method(options: Options) -> bool:
    return isinstance(known_value(options, "init_method"), str) and has(options, "store", "Store")


def _address(options: Options) -> str:
    value = known_value(options, "init_method")
    return value if isinstance(value, str) and value.startswith("tcp://") else ""


def _no_port(options: Options) -> bool:
    address = _address(options)
    return bool(address) and re.search(r":\d+(?:[/?]|$)", address[len("tcp://") :]) is None


def _no_place(options: Options) -> bool:
    address = _address(options)
    if not address or options.is_open:
        return False
    return any(name not in options.given and f"{name}=" not in address for name in _PLACES)


_PLACES = ("rank", "world_size")


def of_wrappers() -> Iterator[Refusal]:
    """The rules of DistributedDataParallel and FSDP."""
    for group, since in (
        ("DistributedDataParallel", "2.2.2"),
        ("FullyShardedDataParallel", "2.2.2"),
    ):
        yield Refusal(
            f"group-and-mesh-{'ddp' if group.startswith('D') else 'fsdp'}",
            "torch/nn/parallel/distributed.py; torch/distributed/fsdp/_init_utils.py",
            ("process_group", "device_mesh"),
            _group_and_mesh,
            Text(
                "process_group 与 device_mesh 只保留一个",
                "keep one of process_group and device_mesh",
            ),
            Text("二者不能同时给出", "they do not go together"),
            groups=(group,),
            since=since,
        )
    yield Refusal(
        "several-device-ids",
        "torch/nn/parallel/distributed.py, DistributedDataParallel.__init__",
        ("device_ids",),
        _several_devices,
        Text("device_ids 改为 [local_rank]", "give device_ids=[local_rank]"),
        Text("每个进程只驱动一张卡", "each process drives one GPU"),
        groups=("DistributedDataParallel",),
    )
    yield Refusal(
        "output-device-alone",
        "torch/nn/parallel/distributed.py, DistributedDataParallel.__init__",
        ("output_device",),
        _output_without_devices,
        Text(
            "同时给出 device_ids，或删除 output_device",
            "give device_ids too, or drop output_device",
        ),
        Text("没有 device_ids 时不接受 output_device", "without device_ids it is not taken"),
        groups=("DistributedDataParallel",),
    )
    yield Refusal(
        "hybrid-sharding-by-hand",
        "torch/distributed/fsdp/_init_utils.py, _init_process_group_state",
        ("sharding_strategy",),
        _hybrid_by_hand,
        Text(
            "给出 auto_wrap_policy、process_group 或 device_mesh",
            "give auto_wrap_policy, process_group or device_mesh",
        ),
        Text("混合分片需要知道进程组", "hybrid sharding must know its groups"),
        groups=("FullyShardedDataParallel",),
    )
    yield Refusal(
        "reshard-no-number",
        "torch/distributed/fsdp/_fully_shard/_fsdp_init.py, _get_post_forward_mesh_info",
        ("reshard_after_forward",),
        _kept_apart,
        Text(
            "reshard_after_forward 写成布尔值或整数", "give reshard_after_forward a bool or an int"
        ),
        Text("其他类型不被接受", "no other type is taken"),
        groups=("fully_shard",),
    )


def of_groups() -> Iterator[Refusal]:
    """The rules of device meshes and process groups."""
    mesh, source = ("init_device_mesh",), "torch/distributed/device_mesh.py, init_device_mesh"
    yield Refusal(
        "mesh-names-twice",
        source,
        ("mesh_dim_names",),
        _names_twice,
        Text("mesh_dim_names 各不相同", "give each dimension a name of its own"),
        Text("mesh_dim_names 有重复", "a name stands twice"),
        groups=mesh,
        since="2.2.2",
    )
    yield Refusal(
        "mesh-names-amiss",
        source,
        ("mesh_dim_names", "mesh_shape"),
        _names_amiss,
        Text(
            "mesh_shape 与 mesh_dim_names 一样长", "give mesh_shape and mesh_dim_names one length"
        ),
        Text("长度不同", "they differ in length"),
        groups=mesh,
        since="2.2.2",
    )
    yield Refusal(
        "mesh-with-device-number",
        source,
        ("device_type",),
        _indexed,
        Text("device_type 改为 cuda", "write device_type without a number, cuda"),
        Text("不接受编号", "the ranks choose the devices"),
        groups=mesh,
        since="2.5.1",
    )
    yield Refusal(
        "mesh-beyond-ranks",
        "torch/distributed/device_mesh.py, DeviceMesh",
        ("mesh_shape",),
        lambda options: bool(_mesh_too_big(options)),
        Text("mesh_shape 的乘积不超过 {ranks}", "let the product of mesh_shape be {ranks} at most"),
        Text("它需要 {product} 个进程", "it takes {product} ranks"),
        figures=_mesh_too_big,
        groups=mesh,
        since="2.2.2",
    )
    group = ("init_process_group",)
    yield Refusal(
        "timeout-no-duration",
        "torch/distributed/distributed_c10d.py, _check_valid_timeout",
        ("timeout",),
        _no_duration,
        Text("timeout 写成 timedelta(seconds=…)", "give timeout a timedelta(seconds=...)"),
        Text("不接受数字", "a number is not taken"),
        groups=group,
    )
    yield Refusal(
        "store-and-method",
        "torch/distributed/distributed_c10d.py, init_process_group",
        ("init_method", "store"),
        _store_and_method,
        Text("init_method 与 store 只保留一个", "keep one of init_method and store"),
        Text("二者互斥", "they exclude each other"),
        groups=group,
    )
    yield Refusal(
        "method-without-port",
        "torch/distributed/rendezvous.py, _tcp_rendezvous_handler",
        ("init_method",),
        _no_port,
        Text("init_method 写成 tcp://主机:端口", "write init_method as tcp://host:port"),
        Text("没有端口", "it has no port"),
        groups=group,
    )
    yield Refusal(
        "method-without-rank",
        "torch/distributed/rendezvous.py, _tcp_rendezvous_handler",
        ("init_method",),
        _no_place,
        Text("同时给出 rank 和 world_size", "give rank and world_size as well"),
        Text("tcp:// 不从环境变量读取它们", "tcp:// does not read them from the environment"),
        groups=group,
    )


def _scale(name: str, is_wrong: Callable[[float], bool]) -> Callable[[Options], bool]:
    def holds(options: Options) -> bool:
        value = known_value(options, name)
        is_on = "enabled" not in options.given or given(options, "enabled") is True
        return is_on and isinstance(value, (int, float)) and is_wrong(value)

    return holds


_MODES = frozenset(
    "default reduce-overhead max-autotune max-autotune-no-cudagraphs lite".split()  # noqa: SIM905
)


def _no_mode(options: Options) -> bool:
    mode = known_value(options, "mode")
    if not isinstance(mode, str) or mode in _MODES:
        return False
    return "backend" not in options.given or known_value(options, "backend") == "inductor"


def _mode_and_options(options: Options) -> bool:
    mode, others = known_value(options, "mode"), known_value(options, "options")
    return isinstance(mode, str) and isinstance(others, dict)


def of_precision() -> Iterator[Refusal]:
    """The rules of GradScaler and torch.compile."""
    source = "torch/amp/grad_scaler.py, GradScaler.__init__"
    yield Refusal(
        "growth-factor",
        source,
        ("growth_factor",),
        _scale("growth_factor", lambda value: value <= 1),
        Text("growth_factor 设为大于 1", "give growth_factor more than 1"),
        Text("损失缩放不会增长", "the scale would not grow"),
        groups=("GradScaler",),
    )
    yield Refusal(
        "backoff-factor",
        source,
        ("backoff_factor",),
        _scale("backoff_factor", lambda value: value >= 1),
        Text("backoff_factor 设为小于 1", "give backoff_factor less than 1"),
        Text("损失缩放不会回退", "the scale would not shrink"),
        groups=("GradScaler",),
    )
    yield Refusal(
        "compile-mode-and-options",
        "torch/__init__.py, compile",
        ("mode", "options"),
        _mode_and_options,
        Text("mode 与 options 只保留一个", "keep one of mode and options"),
        Text("二者互斥", "they exclude each other"),
        groups=("compile",),
    )
    yield Refusal(
        "compile-mode",
        "torch/__init__.py, _TorchCompileInductorWrapper.apply_mode; _inductor, list_mode_options",
        ("mode",),
        _no_mode,
        Text(
            "mode 改为 default、reduce-overhead、max-autotune 或 max-autotune-no-cudagraphs",
            "give mode default, reduce-overhead, max-autotune or max-autotune-no-cudagraphs",
        ),
        Text("没有 {mode}", "there is no mode {mode}"),
        groups=("compile",),
    )
