"""What ``accelerate launch`` refuses (commands/launch.py, utils/launch.py)."""

from __future__ import annotations

from collections.abc import Iterator

from flake8_gpu_training.frameworks.refusals.accelerate.given import MODES, given, is_flag
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.language import Text

_LAUNCH = "accelerate/commands/launch.py, _validate_launch_command"
_UTILS = "accelerate/utils/launch.py"


def _modes(options: Options) -> list[str]:
    return [n for n in MODES if is_flag(options, n) and options.given[n].value is True]


def _few_processes(options: Options) -> bool:
    count = given(options, "num_processes")
    if "multi_gpu" not in _modes(options) or not is_flag(options, "num_processes"):
        return False
    return isinstance(count, int) and count < 2


def _no_dimensions(options: Options) -> bool:
    if not is_flag(options, "use_parallelism_config") or options.is_open:
        return False
    version = given(options, "fsdp_version") if is_flag(options, "fsdp_version") else 1
    return "use_fsdp" not in _modes(options) or version in (1, "1")


def _module_without_python(options: Options) -> bool:
    is_module = is_flag(options, "module") or is_flag(options, "m")
    return is_module and is_flag(options, "no_python")


def _one_gpu_of_several(options: Options) -> bool:
    listed = given(options, "gpu_ids")
    if options.run.accelerate is None or listed is None or str(listed).lower() == "all":
        return False
    machines = given(options, "num_machines")
    kind = options.run.accelerate.get("distributed_type")
    several = "multi_gpu" in _modes(options) or (kind is not None and kind.value == "MULTI_GPU")
    return several and machines in (None, 0, 1) and "," not in str(listed)


def _rank_beyond(options: Options) -> bool:
    rank, machines = given(options, "machine_rank"), given(options, "num_machines")
    is_number = isinstance(rank, int) and isinstance(machines, int) and machines > 0
    if given(options, "rdzv_backend") not in (None, "static") or not is_number:
        return False
    return not 0 <= rank < machines


def _no_address(options: Options) -> bool:
    """Whether several machines have no place to meet at; DeepSpeed's launcher finds one."""
    machines = given(options, "num_machines")
    document = options.run.accelerate
    if document is None or options.is_open or not isinstance(machines, int) or machines < 2:
        return False
    kind = document.get("distributed_type")
    if kind is None or kind.value not in ("MULTI_GPU", "FSDP", "MULTI_CPU"):
        return False
    return given(options, "main_process_ip") is None


def _bad_port(options: Options) -> bool:
    port = given(options, "main_process_port")
    return isinstance(port, int) and not 0 <= port < 65536


def of_launch() -> Iterator[Refusal]:
    """The rules of the command."""
    group = ("launch",)
    yield Refusal(
        "launch-modes",
        _LAUNCH,
        MODES[1:],
        lambda options: len(_modes(options)) > 1,
        Text("只保留一个：{listed}", "keep one of {listed}"),
        Text("它们互斥", "they exclude each other"),
        figures=lambda options: {"listed": ", ".join(f"--{name}" for name in _modes(options))},
        groups=group,
    )
    yield Refusal(
        "multi-gpu-of-one",
        _LAUNCH,
        ("num_processes", "multi_gpu"),
        _few_processes,
        Text(
            "--num_processes 至少为 2，或删除 --multi_gpu",
            "give --num_processes 2 or more, or drop --multi_gpu",
        ),
        Text("一个进程不需要 --multi_gpu", "one process is not several"),
        groups=group,
    )
    yield Refusal(
        "dimensions-without-fsdp2",
        _LAUNCH,
        ("use_parallelism_config",),
        _no_dimensions,
        Text("加上 --use_fsdp --fsdp_version 2", "add --use_fsdp --fsdp_version 2"),
        Text("--use_parallelism_config 需要它们", "--use_parallelism_config needs them"),
        groups=group,
        since="1.10.1",
    )
    yield Refusal(
        "launch-module-without-python",
        f"{_UTILS}, prepare_simple_launcher_cmd_env and those like it",
        ("no_python", "module", "m"),
        _module_without_python,
        Text("--module 与 --no_python 只保留一个", "keep one of --module and --no_python"),
        Text("二者不能同时使用", "they do not go together"),
        groups=group,
    )
    yield Refusal(
        "one-gpu-of-several",
        _LAUNCH,
        ("gpu_ids",),
        _one_gpu_of_several,
        Text("gpu_ids 至少写两张卡，或写 all", "name two GPUs or more in gpu_ids, or all"),
        Text("MULTI_GPU 至少需要两张卡", "MULTI_GPU takes two at least"),
        groups=group,
    )
    yield from _of_machines(group)


def _of_machines(group: tuple[str, ...]) -> Iterator[Refusal]:
    yield Refusal(
        "machine-rank-beyond",
        f"{_UTILS}, prepare_multi_gpu_env",
        ("machine_rank", "num_machines"),
        _rank_beyond,
        Text(
            "machine_rank 取 0 到 num_machines 减 1",
            "give machine_rank from 0 to num_machines less one",
        ),
        Text("各机器无法集合", "the machines never meet"),
        groups=group,
    )
    yield Refusal(
        "machines-without-address",
        f"{_UTILS}, prepare_multi_gpu_env, prepare_simple_launcher_cmd_env",
        ("num_machines",),
        _no_address,
        Text(
            "给出 main_process_ip 和 main_process_port",
            "give main_process_ip and main_process_port",
        ),
        Text("多台机器需要知道主机地址", "several machines must know where to meet"),
        groups=group,
    )
    yield Refusal(
        "main-port-out-of-range",
        f"{_UTILS}, prepare_multi_gpu_env",
        ("main_process_port",),
        _bad_port,
        Text("main_process_port 取 0 到 65535", "give main_process_port a port from 0 to 65535"),
        Text("该端口不存在", "there is no such port"),
        groups=group,
    )
