"""What TrainingArguments and the Trainer refuse of FSDP and DeepSpeed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.refusals.transformers.arguments import GROUPS
from flake8_gpu_training.language import Text

_SOURCE = "transformers/training_args.py, TrainingArguments._process_fsdp_args"
_ARGUMENTS = "transformers/training_args.py, TrainingArguments.__post_init__"
_TRAINER = "transformers/trainer.py, Trainer.create_accelerator_and_postprocess"

_STRATEGIES = ("full_shard", "shard_grad_op", "no_shard", "hybrid_shard", "hybrid_shard_zero2")
_OPTIONS = (*_STRATEGIES, "offload", "auto_wrap")
_OFF = ("", "false", "none")


def _words(options: Options) -> list[str]:
    """The options that ``fsdp`` is given as words; none where it is a switch."""
    value = options["fsdp"]
    if isinstance(value, bool) or value is None:
        return ["full_shard"] if value else []
    words = [str(item) for item in value] if isinstance(value, list) else str(value).split()
    if any("." in word for word in words):
        raise UndecidedError("fsdp")  # members of an Enum
    return [word for word in words if word.lower() not in (*_OFF, "true")]


def _is_sharded(options: Options) -> bool:
    """Whether ``fsdp`` is on, and not on TPUs."""
    value = options["fsdp"]
    is_on = bool(value) and str(value).lower() not in _OFF
    return is_on and not options.entry("fsdp_config", "xla", False)


def _entry(options: Options, key: str, default: Any = None) -> Any:
    """An entry of ``fsdp_config``, which may stand there with the prefix ``fsdp_``."""
    for name in (f"fsdp_{key}", key):
        if name in options.mapping("fsdp_config"):
            return options.entry("fsdp_config", name)
    return default


def _is_true(options: Options, key: str, default: str = "false") -> bool:
    return str(_entry(options, key, default)).lower() == "true"


# --- the words of fsdp ------------------------------------------------------------------


def _unknown_words(options: Options) -> list[str]:
    return [word for word in _words(options) if word not in _OPTIONS]


def _upper_words(options: Options) -> list[str]:
    """Newer releases take strategies in capitals too."""
    return [w for w in _words(options) if w not in _OPTIONS and w.lower() not in _STRATEGIES]


def _only_of_first(options: Options) -> list[str]:
    if int(_entry(options, "version", 2)) != 2:
        return []
    return [w for w in _words(options) if w.lower() in _STRATEGIES[2:]]


def _offloads_alone(options: Options) -> bool:
    return _words(options) == ["offload"]


def _shards_twice(options: Options) -> bool:
    return {"full_shard", "shard_grad_op"} <= set(_words(options))


def _unknown(
    name: str, words: Callable[[Options], list[str]], since: str = "", until: str = ""
) -> Refusal:
    return Refusal(
        name,
        _SOURCE,
        ("fsdp",),
        lambda options: bool(words(options)),
        Text(
            "fsdp 只写 full_shard、shard_grad_op、hybrid_shard、offload、auto_wrap",
            "write fsdp with full_shard, shard_grad_op, hybrid_shard, offload and auto_wrap",
        ),
        Text("fsdp 不认识 {words}", "fsdp does not know {words}"),
        figures=lambda options: {"words": ", ".join(words(options))},
        groups=GROUPS,
        since=since,
        until=until,
    )


# --- fsdp_config ------------------------------------------------------------------------


def _wraps_twice(options: Options) -> bool:
    if not _is_sharded(options):
        return False
    least = _entry(options, "min_num_params", 0)
    return least > 0 and _entry(options, "transformer_layer_cls_to_wrap") is not None


def _loads_in_one_place(options: Options) -> bool:
    return (
        _is_sharded(options)
        and _is_true(options, "cpu_ram_efficient_loading")
        and str(_entry(options, "sync_module_states", "true")).lower() == "false"
    )


_POLICIES = ("TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP")
_TRUTHS = frozenset("y yes t true on 1 n no f false off 0".split())  # noqa: SIM905
_SWITCHES = ("cpu_ram_efficient_loading", "activation_checkpointing")
_OF_FIRST = ("forward_prefetch", "use_orig_params", "sync_module_states", "limit_all_gathers")


def _unknown_policy(options: Options) -> bool:
    return _is_sharded(options) and (
        _entry(options, "auto_wrap_policy", _POLICIES[0]) not in _POLICIES
    )


def _untrue(options: Options) -> Iterator[str]:
    """Switches of ``fsdp_config`` that are neither true nor false."""
    if not _is_sharded(options):
        return
    first = int(_entry(options, "version", 2)) == 1
    for name in (*_SWITCHES, *(_OF_FIRST if first else ("reshard_after_forward",))):
        value = str(_entry(options, name, "true"))
        if value.lower() not in _TRUTHS:
            yield f"{name}={value}"


# --- the Trainer ------------------------------------------------------------------------


def _checkpoints_twice(options: Options) -> bool:
    return (
        _is_sharded(options)
        and _is_true(options, "activation_checkpointing")
        and _checkpoints(options)
    )


def _checkpoints(options: Options) -> bool:
    newer = "activation_checkpointing"
    if options.takes(newer) and options[newer] is not None:
        return options[newer] is True
    return options["gradient_checkpointing"] is True


def _uses_deepspeed(options: Options) -> bool:
    given = options["deepspeed"]
    return bool(given) and str(given).lower() not in _OFF


def _keeps_no_states_of_best(options: Options) -> bool:
    if options["save_only_model"] is not True or options["load_best_model_at_end"] is not True:
        return False
    return _uses_deepspeed(options) or _is_sharded(options)


def _engine(options: Options) -> str:
    return "DeepSpeed" if _uses_deepspeed(options) else "FSDP"


def _saves_shards_only(options: Options) -> bool:
    return (
        options["save_only_model"] is True
        and _is_sharded(options)
        and "SHARDED_STATE_DICT" in str(_entry(options, "state_dict_type", ""))
    )


def _finds_batch_in_stage_3(options: Options) -> bool:
    if options["auto_find_batch_size"] is not True or not _uses_deepspeed(options):
        return False
    document = options.run.deepspeed
    stage = document.get("zero_optimization.stage") if document is not None else None
    return stage is not None and stage.value == 3


def _shards_in_one_process(options: Options) -> bool:
    run = options.run
    alone = run.launcher.name == "python" and run.command is not None and not run.single_file
    return alone and options.world_size == 1 and _is_sharded(options)


REFUSALS: tuple[Refusal, ...] = (
    _unknown("unknown-fsdp-option", _unknown_words, until="5.9.0"),
    _unknown("unknown-fsdp-word", _upper_words, since="5.10.4"),
    Refusal(
        "strategy-of-fsdp1",
        _SOURCE,
        ("fsdp",),
        lambda options: bool(_only_of_first(options)),
        Text(
            'fsdp 改为 full_shard 或 shard_grad_op，或在 fsdp_config 中设 "version": 1',
            'write full_shard or shard_grad_op, or set "version": 1 in fsdp_config',
        ),
        Text("FSDP2 没有 {words}", "FSDP2 has no {words}"),
        figures=lambda options: {"words": ", ".join(_only_of_first(options))},
        groups=GROUPS,
        since="5.10.4",
    ),
    Refusal(
        "offload-alone",
        _ARGUMENTS,
        ("fsdp",),
        _offloads_alone,
        Text('写成 fsdp="full_shard offload"', 'write fsdp as "full_shard offload"'),
        Text("offload 需要与一种切分方式同用", "offload needs a way to shard beside it"),
        write=lambda options: {"fsdp": "full_shard offload"},
        groups=GROUPS,
        until="5.9.0",
    ),
    Refusal(
        "sharded-two-ways",
        _ARGUMENTS,
        ("fsdp",),
        _shards_twice,
        Text("只保留 full_shard 或 shard_grad_op", "drop full_shard or shard_grad_op"),
        Text("两种切分方式不能同用", "one model is sharded in one way"),
        groups=GROUPS,
        until="5.9.0",
    ),
    Refusal(
        "wrapped-two-ways",
        _ARGUMENTS,
        ("fsdp_config",),
        _wraps_twice,
        Text(
            "fsdp_config 中只保留 min_num_params 或 transformer_layer_cls_to_wrap",
            "drop min_num_params or transformer_layer_cls_to_wrap from fsdp_config",
        ),
        Text("两者都决定如何划分层", "both decide which layers are wrapped"),
        groups=GROUPS,
        since="4.32.1",
        until="5.9.0",
    ),
    Refusal(
        "loaded-in-one-place",
        _ARGUMENTS,
        ("fsdp_config",),
        _loads_in_one_place,
        Text(
            "fsdp_config 中设 sync_module_states=true",
            "set sync_module_states to true in fsdp_config",
        ),
        Text(
            "cpu_ram_efficient_loading=true 只在一个进程加载权重",
            "cpu_ram_efficient_loading=true loads the weights in one process",
        ),
        groups=GROUPS,
        since="4.41.2",
        until="5.9.0",
    ),
    Refusal(
        "unknown-wrap-policy",
        _SOURCE,
        ("fsdp_config",),
        _unknown_policy,
        Text(
            "auto_wrap_policy 取 TRANSFORMER_BASED_WRAP、SIZE_BASED_WRAP 或 NO_WRAP",
            "give auto_wrap_policy TRANSFORMER_BASED_WRAP, SIZE_BASED_WRAP or NO_WRAP",
        ),
        Text("不认识 {policy}", "{policy} is none of them"),
        figures=lambda options: {"policy": _entry(options, "auto_wrap_policy")},
        groups=GROUPS,
        since="5.10.4",
    ),
    Refusal(
        "fsdp-switch-neither-true-nor-false",
        _SOURCE,
        ("fsdp_config",),
        lambda options: bool(list(_untrue(options))),
        Text("fsdp_config 中写 true 或 false", "write true or false in fsdp_config"),
        Text("{switches} 都不是", "{switches} is neither"),
        figures=lambda options: {"switches": ", ".join(_untrue(options))},
        groups=GROUPS,
        since="5.10.4",
    ),
    Refusal(
        "checkpointed-twice",
        _TRAINER,
        ("gradient_checkpointing", "activation_checkpointing", "fsdp_config"),
        _checkpoints_twice,
        Text(
            "去掉 gradient_checkpointing，保留 fsdp_config 的 activation_checkpointing",
            "drop gradient_checkpointing, keep fsdp_config's activation_checkpointing",
        ),
        Text("两者不能同时开启", "the two cannot both be on"),
        write=lambda options: {"gradient_checkpointing": False},
        groups=GROUPS,
        since="4.33.3",
    ),
    Refusal(
        "best-model-without-states",
        _TRAINER,
        ("save_only_model", "load_best_model_at_end"),
        _keeps_no_states_of_best,
        Text(
            "去掉 save_only_model 或 load_best_model_at_end",
            "drop save_only_model or load_best_model_at_end",
        ),
        Text(
            "{engine} 要用优化器状态才能载入最优模型",
            "{engine} loads the best model from whole checkpoints",
        ),
        figures=lambda options: {"engine": _engine(options)},
        write=lambda options: {"save_only_model": False},
        groups=GROUPS,
        since="4.38.2",
    ),
    Refusal(
        "only-model-in-shards",
        _TRAINER,
        ("save_only_model", "fsdp_config"),
        _saves_shards_only,
        Text(
            "去掉 save_only_model，或 state_dict_type 设为 FULL_STATE_DICT",
            "drop save_only_model, or set state_dict_type to FULL_STATE_DICT",
        ),
        Text(
            "save_only_model 不支持 SHARDED_STATE_DICT",
            "save_only_model does not go with SHARDED_STATE_DICT",
        ),
        write=lambda options: {"save_only_model": False},
        groups=GROUPS,
        since="4.50.3",
    ),
    Refusal(
        "batch-found-in-stage-3",
        _TRAINER,
        ("auto_find_batch_size", "deepspeed"),
        _finds_batch_in_stage_3,
        Text(
            "去掉 auto_find_batch_size，或改用 ZeRO-2",
            "drop auto_find_batch_size, or use ZeRO stage 2",
        ),
        Text(
            "auto_find_batch_size 不支持 ZeRO-3",
            "auto_find_batch_size does not go with ZeRO stage 3",
        ),
        write=lambda options: {"auto_find_batch_size": False},
        groups=GROUPS,
        since="4.45.2",
    ),
    Refusal(
        "fsdp-in-one-process",
        "transformers/trainer.py, Trainer.__init__",
        ("fsdp",),
        _shards_in_one_process,
        Text(
            "用 torchrun 或 accelerate launch 启动，或去掉 fsdp",
            "start it with torchrun or accelerate launch, or drop fsdp",
        ),
        Text("python 只启动一个进程", "python starts one process that belongs to no group"),
        groups=GROUPS,
    ),
)
