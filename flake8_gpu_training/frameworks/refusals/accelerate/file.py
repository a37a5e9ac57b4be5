"""What Accelerate refuses of its configuration file, and what the script then refuses of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Callable, Optional

from flake8_gpu_training.frameworks.refusals.accelerate.given import MODES, given, is_flag
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.language import Text

_LAUNCH = "accelerate/commands/launch.py, _validate_launch_command"
_FILE = "accelerate/commands/config/config_args.py, BaseConfig.process_config"
_UTILS = "accelerate/utils/launch.py"
_DEEPSPEED = "accelerate/utils/dataclasses.py, DeepSpeedPlugin"
_FSDP = "accelerate/utils/dataclasses.py, FullyShardedDataParallelPlugin"
_SIZES = "accelerate/parallelism_config.py, ParallelismConfig"


_IGNORED = (
    *("gradient_accumulation_steps", "gradient_clipping", "zero_stage"),
    *("offload_optimizer_device", "offload_param_device", "offload_param_nvme_path"),
    *("offload_optimizer_nvme_path", "zero3_save_16bit_model"),
)
_DS = "deepspeed_config."
_PRECISIONS = ("no", "fp16", "bf16", "fp8")
_BACKENDS = frozenset(
    """
    no eager aot_eager inductor aot_ts_nvfuser nvprims_nvfuser cudagraphs ofi fx2trt onnxrt
    tensorrt ipex tvm hpu_backend neuron aot_torchxla_trace_once torchxla_trace_once
    aot_ts nnc
    """.split()  # noqa: SIM905
)


def _kind(options: Options) -> str:
    """What the file distributes with, unless the command says otherwise."""
    if any(is_flag(options, name) for name in (*MODES, "use_megatron_lm")):
        return ""
    return str(given(options, "distributed_type")).upper()


def _has_own_file(options: Options) -> bool:
    path = given(options, f"{_DS}deepspeed_config_file")
    return _kind(options) == "DEEPSPEED" and isinstance(path, str) and path.lower() != "none"


def _beside_file(options: Options) -> list[str]:
    """Keys that a DeepSpeed file excludes; they count even when they say the same."""
    if not _has_own_file(options):
        return []
    found = [f"{_DS}{name}" for name in _IGNORED if f"{_DS}{name}" in options.given]
    if given(options, "mixed_precision") is not None and not is_flag(options, "mixed_precision"):
        found.append("mixed_precision")
    return found


def _no_stages(options: Options) -> bool:
    document = options.run.deepspeed
    if not _has_own_file(options) or document is None or not document.path.endswith(".json"):
        return False
    return document.get("zero_optimization") is None


def _other_precision(options: Options) -> bool:
    """Whether the command's precision is not the one that the DeepSpeed file turns on."""
    document, flag = options.run.deepspeed, options.run.launcher.options.get("mixed_precision")
    if not _has_own_file(options) or document is None or not is_flag(options, "mixed_precision"):
        return False
    other = {"fp16": "bf16", "bf16": "fp16", "fp8": "fp16"}.get(str(flag and flag.value))
    node = document.get(f"{other}.enabled") if other else None
    return node is not None and node.value is True


def _no_kind(options: Options) -> bool:
    return "distributed_type" not in options.given


def _no_count(options: Options) -> bool:
    if _kind(options) in ("NO", "FALSE", "NONE", "") or is_flag(options, "num_processes"):
        return False
    count = given(options, "num_processes")
    return not options.run.launcher.is_open and count in (None, -1)


def _no_precision(options: Options) -> bool:
    value = options.given.get("mixed_precision")
    if value is None or value.value is None or is_flag(options, "mixed_precision"):
        return False
    return str(given(options, "mixed_precision")).lower() not in _PRECISIONS


def _no_backend(options: Options) -> bool:
    values = [given(options, name) for name in ("dynamo_backend", "dynamo_config.dynamo_backend")]
    if is_flag(options, "dynamo_backend"):
        return False
    return any(isinstance(value, str) and value.lower() not in _BACKENDS for value in values)


def _fsdp_value(options: Options, name: str) -> Any:
    """A value of ``fsdp_config``, with or without its prefix, unless a flag replaces it."""
    if _kind(options) != "FSDP" or is_flag(options, f"fsdp_{name}"):
        return None
    value = given(options, f"fsdp_config.fsdp_{name}")
    return given(options, f"fsdp_config.{name}") if value is None else value


def _fsdp_version(options: Options) -> int:
    value = options.run.launcher.options.get("fsdp_version")
    if is_flag(options, "fsdp_version") and value is not None:
        return 2 if value.value in (2, "2") else 1
    return 2 if _fsdp_value(options, "version") in (2, "2") else 1


def _fsdp_choice(
    name: str, *words: str, version: Optional[int] = None
) -> Callable[[Options], bool]:
    def holds(options: Options) -> bool:
        value = _fsdp_value(options, name)
        if value is None or (version is not None and _fsdp_version(options) != version):
            return False
        text = str(value)
        return text.upper() not in words and not text.isdigit()

    return holds


def _is_wrapped_by_size(options: Options) -> bool:
    if is_flag(options, "fsdp_auto_wrap_policy") or "fsdp" in options.run.settings:
        raise UndecidedError("fsdp_auto_wrap_policy")  # TrainingArguments set it anew
    return bool(_fsdp_value(options, "auto_wrap_policy") == "SIZE_BASED_WRAP")


def _no_whole_number(options: Options) -> bool:
    """Whether int() does not take the text that the launcher puts into FSDP_MIN_NUM_PARAMS."""
    value = _fsdp_value(options, "min_num_params")
    if value is None or isinstance(value, bool) or not _is_wrapped_by_size(options):
        return False
    try:
        int(str(value))
    except ValueError:
        return isinstance(value, (float, str))
    return False


def _no_number(options: Options) -> bool:
    """Whether the launcher's own 1e8 stands, a float."""
    names = ("fsdp_config.fsdp_min_num_params", "fsdp_config.min_num_params")
    if any(name in options.given for name in names) or is_flag(options, "fsdp_min_num_params"):
        return False
    return not options.run.launcher.is_open and _is_wrapped_by_size(options)


def _reshards_amiss(options: Options) -> bool:
    value = _fsdp_value(options, "reshard_after_forward")
    truths = ("y", "yes", "t", "true", "on", "1", "n", "no", "f", "false", "off", "0")
    return value is not None and _fsdp_version(options) == 2 and str(value).lower() not in truths


def _local_state(options: Options) -> bool:
    kind = _fsdp_value(options, "state_dict_type")
    return _fsdp_version(options) == 2 and str(kind).upper() == "LOCAL_STATE_DICT"


def _loads_alone(options: Options) -> bool:
    loads = _fsdp_value(options, "cpu_ram_efficient_loading")
    shares = _fsdp_value(options, "sync_module_states")
    return str(loads).lower() == "true" and str(shares).lower() == "false"


def _offloads_nothing(options: Options) -> bool:
    offloads = _fsdp_value(options, "activation_checkpointing_offload")
    if str(offloads).lower() != "true":
        return False
    on = _fsdp_value(options, "activation_checkpointing")
    return str(on).lower() != "true" or _fsdp_version(options) != 2


_DIMENSIONS = ("dp_replicate_size", "dp_shard_size", "tp_size", "cp_size", "sp_size")


def _sizes(options: Options) -> Mapping[str, int]:
    """The sizes that the file gives, 1 for those it does not; empty when it gives none."""
    section = given(options, "parallelism_config")
    if not isinstance(section, dict) or any(
        is_flag(options, f"parallelism_config_{n}") for n in _DIMENSIONS
    ):
        return {}
    found = {}
    for name in _DIMENSIONS:
        value = section.get(f"parallelism_config_{name}", 1)
        if not isinstance(value, int):
            raise UndecidedError(name)
        found[name] = value
    return found


def _no_size(options: Options) -> bool:
    return any(size < 1 for size in _sizes(options).values())


def _both_sequences(options: Options) -> bool:
    sizes = _sizes(options)
    return bool(sizes) and sizes["cp_size"] > 1 and sizes["sp_size"] > 1


def _only_replicas(options: Options) -> bool:
    sizes = _sizes(options)
    if not sizes or (sizes["tp_size"] < 2 and sizes["cp_size"] < 2):
        return False
    return sizes["dp_replicate_size"] > 1 and sizes["dp_shard_size"] == 1


def _other_total(options: Options) -> Mapping[str, Any]:
    sizes, world = _sizes(options), options.run.launcher.world_size
    if not sizes or world is None or sizes["sp_size"] > 1 or min(sizes.values()) < 1:
        return {}
    total = math.prod(sizes.values())
    return {"total": total, "ranks": world} if total not in (1, world) else {}


def of_file() -> Iterator[Refusal]:
    """The rules of the file."""
    group = ("config",)
    yield Refusal(
        "keys-beside-deepspeed-file",
        f"{_DEEPSPEED}._deepspeed_config_checks",
        (*(f"{_DS}{name}" for name in _IGNORED), "mixed_precision"),
        lambda options: bool(_beside_file(options)),
        Text(
            "删除 {listed}，在 DeepSpeed 配置文件中设置",
            "drop {listed} and set it in the DeepSpeed file",
        ),
        Text(
            "使用 deepspeed_config_file 时不接受它们",
            "beside deepspeed_config_file it is not taken",
        ),
        figures=lambda options: {"listed": ", ".join(_beside_file(options))},
        groups=group,
    )
    yield Refusal(
        "deepspeed-file-without-zero",
        f"{_DEEPSPEED}.__post_init__",
        (f"{_DS}deepspeed_config_file",),
        _no_stages,
        Text("在该文件中加上 zero_optimization", "add zero_optimization to the DeepSpeed file"),
        Text("文件中没有 zero_optimization", "the file has none"),
        groups=group,
    )
    yield Refusal(
        "precision-against-deepspeed-file",
        f"{_DEEPSPEED}.set_mixed_precision",
        ("mixed_precision", f"{_DS}deepspeed_config_file"),
        _other_precision,
        Text(
            "--mixed_precision 与 DeepSpeed 文件保持一致",
            "give --mixed_precision what the DeepSpeed file turns on",
        ),
        Text("二者启用了不同的精度", "the two turn on different precisions"),
        groups=group,
    )
    yield Refusal(
        "file-without-kind",
        _FILE,
        ("compute_environment",),
        _no_kind,
        Text("加上 distributed_type", "add distributed_type"),
        Text("文件中没有 distributed_type", "the file has no distributed_type"),
        groups=group,
        since="0.34.2",
    )
    yield Refusal(
        "file-without-count",
        _LAUNCH,
        ("num_processes", "distributed_type"),
        _no_count,
        Text(
            "加上 num_processes，或在命令中给出 --num_processes",
            "add num_processes, or give --num_processes",
        ),
        Text("没有写明进程数", "nothing says how many processes there are"),
        groups=group,
        since="0.34.2",
    )
    yield Refusal(
        "file-precision",
        f"{_UTILS}, prepare_multi_gpu_env and those like it",
        ("mixed_precision",),
        _no_precision,
        Text(
            "mixed_precision 改为 'no'（加引号）、fp16、bf16 或 fp8",
            "give mixed_precision 'no' (with quotes), fp16, bf16 or fp8",
        ),
        Text(
            "其他值不被接受（YAML 把 no 读作 false）",
            "no other value is taken (YAML reads a bare no as false)",
        ),
        groups=group,
    )
    yield Refusal(
        "file-dynamo-backend",
        f"{_UTILS}, prepare_multi_gpu_env and those like it",
        ("dynamo_config.dynamo_backend", "dynamo_backend"),
        _no_backend,
        Text("dynamo_backend 改为 INDUCTOR 或 'NO'", "give dynamo_backend INDUCTOR or 'NO'"),
        Text("没有这个后端", "there is no such backend"),
        groups=group,
    )
    yield from _of_fsdp(group)
    yield from _of_sizes(group)


def _of_fsdp(group: tuple[str, ...]) -> Iterator[Refusal]:
    for name, key, words, version, since in (
        (
            "file-wrap-policy",
            "auto_wrap_policy",
            ("TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP"),
            None,
            "0.34.2",
        ),
        (
            "file-sharding-strategy",
            "sharding_strategy",
            ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2"),
            1,
            "0.34.2",
        ),
        (
            "file-prefetch",
            "backward_prefetch",
            ("BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH"),
            None,
            "0.34.2",
        ),
        (
            "file-state-dict",
            "state_dict_type",
            ("FULL_STATE_DICT", "LOCAL_STATE_DICT", "SHARDED_STATE_DICT"),
            None,
            "0.34.2",
        ),
    ):
        listed = ", ".join(words)
        yield Refusal(
            name,
            f"{_FSDP}.__post_init__",
            (f"fsdp_config.fsdp_{key}", f"fsdp_config.{key}"),
            _fsdp_choice(key, *words, version=version),
            Text(f"fsdp_{key} 改为 {listed} 之一", f"give fsdp_{key} one of {listed}"),
            Text("其他值不被接受", "no other value is taken"),
            groups=group,
            since=since,
        )
    yield Refusal(
        "file-least-parameters",
        f"{_FSDP}.__post_init__",
        ("fsdp_config.fsdp_min_num_params", "fsdp_config.min_num_params"),
        _no_whole_number,
        Text(
            "fsdp_min_num_params 写成整数（如 100000000）",
            "give fsdp_min_num_params a whole number, like 100000000",
        ),
        Text(
            "启动器把它作为文本传递，再由 int() 读取，带小数点或 e 的数不被接受",
            "the launcher hands it on as text, and int() takes no point and no exponent",
        ),
        groups=group,
    )
    yield Refusal(
        "file-without-least-parameters",
        f"{_FSDP}.__post_init__",
        ("fsdp_config.fsdp_auto_wrap_policy", "fsdp_config.auto_wrap_policy"),
        _no_number,
        Text(
            "在 fsdp_config 中加上 fsdp_min_num_params: 100000000",
            "add fsdp_min_num_params: 100000000 to fsdp_config",
        ),
        Text(
            "启动器的默认值 1e8 是浮点数，int() 不接受",
            "the launcher's own 1e8 is a float, which int() does not take from text",
        ),
        groups=group,
        until="1.12.99",
    )
    yield Refusal(
        "file-reshard-no-truth",
        f"{_FSDP}.__post_init__",
        ("fsdp_config.fsdp_reshard_after_forward",),
        _reshards_amiss,
        Text(
            "fsdp_reshard_after_forward 写成 true 或 false",
            "give fsdp_reshard_after_forward true or false",
        ),
        Text("FSDP2 不接受其他值", "FSDP2 takes no other value"),
        groups=group,
        since="1.6.0",
    )
    yield Refusal(
        "file-local-state",
        f"{_FSDP}.set_state_dict_type",
        ("fsdp_config.fsdp_state_dict_type",),
        _local_state,
        Text(
            "fsdp_state_dict_type 改为 SHARDED_STATE_DICT",
            "give fsdp_state_dict_type SHARDED_STATE_DICT",
        ),
        Text("FSDP2 不支持 LOCAL_STATE_DICT", "FSDP2 does not know LOCAL_STATE_DICT"),
        groups=group,
        since="1.10.1",
    )
    yield Refusal(
        "file-loads-alone",
        f"{_UTILS}, prepare_multi_gpu_env",
        ("fsdp_config.fsdp_sync_module_states",),
        _loads_alone,
        Text("fsdp_sync_module_states 设为 true", "set fsdp_sync_module_states to true"),
        Text("fsdp_cpu_ram_efficient_loading 需要它", "fsdp_cpu_ram_efficient_loading needs it"),
        groups=group,
    )
    yield Refusal(
        "file-offloads-nothing",
        f"{_FSDP}.__post_init__",
        ("fsdp_config.fsdp_activation_checkpointing_offload",),
        _offloads_nothing,
        Text(
            "同时设 fsdp_activation_checkpointing: true 与 fsdp_version: 2",
            "set fsdp_activation_checkpointing: true and fsdp_version: 2 as well",
        ),
        Text("fsdp_activation_checkpointing_offload 需要它们", "the offload needs both"),
        groups=group,
        since="1.15.0",
    )


def _other_backend(name: str, only: str) -> Callable[[Options], bool]:
    def holds(options: Options) -> bool:
        value = given(options, f"parallelism_config.parallelism_config_{name}")
        return (
            value is not None
            and not is_flag(options, f"parallelism_config_{name}")
            and (value != only)
        )

    return holds


def _of_sizes(group: tuple[str, ...]) -> Iterator[Refusal]:
    names = tuple(f"parallelism_config.parallelism_config_{name}" for name in _DIMENSIONS)
    for name, holds, mend, why in (
        (
            "size-below-one",
            _no_size,
            Text("各并行度至少为 1", "give each parallel size 1 or more"),
            Text("有一个小于 1", "one is below 1"),
        ),
        (
            "context-and-sequence",
            _both_sequences,
            Text("cp_size 与 sp_size 只保留一个大于 1", "let one of cp_size and sp_size be 1"),
            Text("二者互斥", "they exclude each other"),
        ),
        (
            "tensors-beside-replicas",
            _only_replicas,
            Text(
                "dp_shard_size 设为大于 1，或 dp_replicate_size 设为 1",
                "give dp_shard_size more than 1, or dp_replicate_size 1",
            ),
            Text("张量与上下文并行不能只配合副本", "tensor and context parallelism need shards"),
        ),
    ):
        yield Refusal(
            name, f"{_SIZES}.__post_init__", names, holds, mend, why, groups=group, since="1.10.1"
        )
    for name, only in (("cp_backend", "torch"), ("sp_backend", "deepspeed")):
        yield Refusal(
            f"file-{name.replace('_', '-')}",
            f"{_SIZES}.__post_init__",
            (f"parallelism_config.parallelism_config_{name}",),
            _other_backend(name, only),
            Text(
                f"parallelism_config_{name} 改为 {only}", f"set parallelism_config_{name} to {only}"
            ),
            Text("只有这一个后端", "it is the only one there is"),
            groups=group,
            since="1.15.0",
        )
    yield Refusal(
        "sizes-against-processes",
        f"{_SIZES}._validate_accelerator",
        names,
        lambda options: bool(_other_total(options)),
        Text("使各并行度之积等于 {ranks}", "let the product of the parallel sizes be {ranks}"),
        Text("现在为 {total}", "it is {total}"),
        figures=_other_total,
        groups=group,
        since="1.10.1",
    )
