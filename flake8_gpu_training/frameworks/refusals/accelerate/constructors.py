"""What Accelerator and its FSDP plugin refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.refusals.accelerate.given import given
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.language import Text

_FSDP = "accelerate/utils/dataclasses.py, FullyShardedDataParallelPlugin"
_ACCELERATOR = "accelerate/accelerator.py, Accelerator.__init__"


def _certain(options: Options, name: str) -> bool:
    """Whether an argument is surely given and not None."""
    setting = options.given.get(name)
    if setting is None:
        return False
    if known(setting.value):
        return setting.value is not None
    if setting.text.rstrip().endswith(")") and " if " not in setting.text:
        return True
    raise UndecidedError(name)


def _together(*names: str) -> Callable[[Options], bool]:
    return lambda options: all(_certain(options, name) for name in names)


def _accumulates_twice(options: Options) -> bool:
    steps = given(options, "gradient_accumulation_steps")
    return steps not in (None, 1) and _certain(options, "gradient_accumulation_plugin")


def _version(options: Options) -> Any:
    return given(options, "fsdp_version")


def _prefetches(options: Options) -> bool:
    return _version(options) == 2 and given(options, "forward_prefetch") is not None


def _reshards_otherwise(options: Options) -> bool:
    value = given(options, "reshard_after_forward")
    if value is None:
        return False
    if _version(options) == 1:
        return isinstance(value, bool)
    truths = ("y", "yes", "t", "true", "on", "1", "n", "no", "f", "false", "off", "0")
    return _version(options) == 2 and isinstance(value, str) and value.lower() not in truths


def _keeps_local(options: Options) -> bool:
    value = given(options, "state_dict_type")
    return _version(options) == 2 and str(value).upper() == "LOCAL_STATE_DICT"


def _no_policy(options: Options) -> bool:
    value = given(options, "auto_wrap_policy")
    words = ("TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP")
    return isinstance(value, str) and value.upper() not in words


def _no_whole_number(options: Options) -> bool:
    value = given(options, "min_num_params")
    policy = str(given(options, "auto_wrap_policy")).upper()
    return policy == "SIZE_BASED_WRAP" and isinstance(value, (float, str))


def _offload_alone(options: Options) -> bool:
    if given(options, "activation_checkpointing_offload") is not True:
        return False
    return given(options, "activation_checkpointing") is False or _version(options) == 1


def of_constructors() -> Iterator[Refusal]:
    """The rules of the constructors."""
    for name, names, since in (
        ("dynamo-twice", ("dynamo_plugin", "dynamo_backend"), "1.6.0"),
        ("deepspeed-plugins-twice", ("deepspeed_plugins", "deepspeed_plugin"), "1.1.1"),
    ):
        listed = " 与 ".join(names), " and ".join(names)
        yield Refusal(
            name,
            _ACCELERATOR,
            names,
            _together(*names),
            Text(f"{listed[0]} 只保留一个", f"keep one of {listed[1]}"),
            Text("二者互斥", "they exclude each other"),
            groups=("Accelerator",),
            since=since,
        )
    yield Refusal(
        "accumulation-twice",
        _ACCELERATOR,
        ("gradient_accumulation_steps", "gradient_accumulation_plugin"),
        _accumulates_twice,
        Text(
            "把步数写进 GradientAccumulationPlugin，删除 gradient_accumulation_steps",
            "give the steps to GradientAccumulationPlugin and drop gradient_accumulation_steps",
        ),
        Text("二者互斥", "they exclude each other"),
        groups=("Accelerator",),
    )
    plugin = ("FullyShardedDataParallelPlugin",)
    for name, key, holds, mend, why, since in (
        (
            "plugin-prefetch",
            "forward_prefetch",
            _prefetches,
            Text("删除 forward_prefetch", "drop forward_prefetch"),
            Text("FSDP2 没有它", "FSDP2 does not have it"),
            "1.6.0",
        ),
        (
            "plugin-reshard",
            "reshard_after_forward",
            _reshards_otherwise,
            Text("FSDP2 写布尔值，FSDP1 写分片策略", "give FSDP2 True or False, FSDP1 a strategy"),
            Text("该版本的 FSDP 不接受此类型", "this version of FSDP takes another type"),
            "1.6.0",
        ),
        (
            "plugin-local-state",
            "state_dict_type",
            _keeps_local,
            Text(
                "state_dict_type 改为 SHARDED_STATE_DICT", "give state_dict_type SHARDED_STATE_DICT"
            ),
            Text("FSDP2 不支持 LOCAL_STATE_DICT", "FSDP2 does not know LOCAL_STATE_DICT"),
            "1.10.1",
        ),
        (
            "plugin-wrap-policy",
            "auto_wrap_policy",
            _no_policy,
            Text(
                "auto_wrap_policy 改为 transformer_based_wrap、size_based_wrap 或 no_wrap",
                "give auto_wrap_policy transformer_based_wrap, size_based_wrap or no_wrap",
            ),
            Text("没有这种策略", "there is no such policy"),
            "0.34.2",
        ),
        (
            "plugin-least-parameters",
            "min_num_params",
            _no_whole_number,
            Text(
                "min_num_params 写成整数（如 100_000_000）",
                "give min_num_params a whole number, like 100_000_000",
            ),
            Text("1e8 是浮点数，不被接受", "1e8 is a float, which is not taken"),
            "0.34.2",
        ),
        (
            "plugin-offload",
            "activation_checkpointing_offload",
            _offload_alone,
            Text(
                "同时设 activation_checkpointing=True 与 fsdp_version=2",
                "set activation_checkpointing=True and fsdp_version=2 too",
            ),
            Text("卸载需要二者", "the offload needs both"),
            "1.15.0",
        ),
    ):
        yield Refusal(
            name,
            f"{_FSDP}.__post_init__",
            (key, "fsdp_version"),
            holds,
            mend,
            why,
            groups=plugin,
            since=since,
        )
