"""What DeepSpeed refuses in its configuration (runtime/config.py, its models, the engine)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Callable, NamedTuple, Optional

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.reading import parsed
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.refusals.deepspeed_launcher import LAUNCHER
from flake8_gpu_training.language import Text

_CONFIG = "deepspeed/runtime/config.py, DeepSpeedConfig"
_PRECISION = "deepspeed/runtime/precision_config.py, DeepSpeedFP16Config"
_ZERO = "deepspeed/runtime/zero/config.py, DeepSpeedZeroConfig"
_ZENFLOW = "deepspeed/runtime/zenflow/zenflow_config.py, ZenFlowConfig"
_ENGINE = "deepspeed/runtime/engine.py, DeepSpeedEngine"
_GROUPS = ("config",)
_NEWEST = "0.19.8"
_LAST_WITH_ALL = "0.18.9"
"""The last release before many features were taken out."""

_STAGE = "zero_optimization.stage"
_TRAIN, _MICRO = "train_batch_size", "train_micro_batch_size_per_gpu"
_STEPS = "gradient_accumulation_steps"


# --- values of a list -----------------------------------------------------------------


class _Choice(NamedTuple):
    """A key whose value must be one of a list; ``folds``: in capitals or not."""

    name: str
    key: str
    allowed: tuple[Any, ...]
    source: str
    since: str = ""
    until: str = ""
    folds: bool = True


_TYPES = ("fp32", "fp16", "bf16")
_NAMES_OF_TYPES = (
    *("torch.float16", "fp16", "float16", "half", "torch.float32", "fp32", "float32", "float"),
    *("torch.int8", "int8", "torch.bfloat16", "bf16", "bfloat16"),
)
_CHOICES = (
    _Choice("communication-type", "communication_data_type", _TYPES, _CONFIG, "0.14.5"),
    _Choice(
        "older-communication-type",
        "communication_data_type",
        ("fp32", "fp16", "bfp16"),
        _CONFIG,
        until="0.12.6",
    ),
    _Choice(
        "sequence-communication-type",
        "seq_parallel_communication_data_type",
        _TYPES,
        _CONFIG,
        "0.16.9",
    ),
    _Choice("reduce-operation", "gradient_allreduce_op", ("mean", "sum"), _CONFIG, _NEWEST),
    _Choice("tag-validation", "checkpoint.tag_validation", ("WARN", "IGNORE", "FAIL"), _CONFIG),
    _Choice(
        "autocast-type", "torch_autocast.dtype", _NAMES_OF_TYPES, _CONFIG, "0.17.6", folds=False
    ),
    _Choice(
        "accumulation-type",
        "data_types.grad_accum_dtype",
        _NAMES_OF_TYPES,
        _ENGINE,
        folds=False,
    ),
    _Choice(
        "sparsity-mode",
        "sparse_attention.mode",
        ("dense", "fixed", "variable", "bigbird", "bslongformer"),
        _CONFIG,
        until=_LAST_WITH_ALL,
        folds=False,
    ),
    _Choice(
        "zenflow-strategy",
        "zero_optimization.zenflow.select_strategy",
        ("auto", "step", "epoch"),
        _ZENFLOW,
        "0.17.6",
        folds=False,
    ),
)


def _of_list(choice: _Choice) -> Refusal:
    key, listed = choice.key, ", ".join(choice.allowed)
    folded = {str(one).lower() for one in choice.allowed}

    def holds(options: Options) -> bool:
        value = _given(options, key)
        if not isinstance(value, str):
            return value is not None
        return (value.lower() not in folded) if choice.folds else value not in choice.allowed

    return Refusal(
        choice.name,
        choice.source,
        (key,),
        holds,
        Text(f"{key} 只能取 {listed}", f"give {key} one of {listed}"),
        Text(f"DeepSpeed 不认识 {key} 的这个值", f"DeepSpeed knows no such {key}"),
        groups=_GROUPS,
        since=choice.since,
        until=choice.until,
    )


def _given(options: Options, key: str) -> Any:
    """What the document says of a key; None where it says nothing."""
    setting = options.given.get(key)
    if setting is None:
        return None
    if not known(setting.value):
        raise UndecidedError(key)
    return setting.value


# --- numbers within limits -------------------------------------------------------------


class _Limit(NamedTuple):
    """A number's smallest value (``above``: it must be more), largest value and first release."""

    key: str
    least: float
    most: float = math.inf
    above: bool = False
    below: bool = False
    since: str = ""


_ZERO_KEY = "zero_optimization."
_LIMITS = (
    _Limit(_TRAIN, 0, above=True),
    _Limit(_MICRO, 0, above=True),
    _Limit(_STEPS, 0, above=True),
    _Limit(f"{_ZERO_KEY}reduce_bucket_size", 0),
    _Limit(f"{_ZERO_KEY}reduce_bucket_size", 0, above=True, since=_NEWEST),
    _Limit(f"{_ZERO_KEY}allgather_bucket_size", 0),
    _Limit(f"{_ZERO_KEY}sub_group_size", 0),
    *(
        _Limit(f"{_ZERO_KEY}{prefix}{name}", 0)
        for prefix in ("", "stage3_")
        for name in (
            *("prefetch_bucket_size", "param_persistence_threshold"),
            *("model_persistence_threshold", "max_live_parameters", "max_reuse_distance"),
        )
    ),
    _Limit(f"{_ZERO_KEY}zero_hpz_partition_size", 0, since="0.10.3"),
    _Limit(f"{_ZERO_KEY}offload_param.buffer_count", 0),
    _Limit(f"{_ZERO_KEY}offload_param.buffer_size", 0),
    _Limit(f"{_ZERO_KEY}offload_param.max_in_cpu", 0),
    _Limit(f"{_ZERO_KEY}offload_optimizer.buffer_count", 0),
    _Limit(f"{_ZERO_KEY}offload_optimizer.ratio", 0, 1, since="0.12.6"),
    _Limit(f"{_ZERO_KEY}offload_optimizer.cpuadam_cores_perc", 0, 1, since=_LAST_WITH_ALL),
    _Limit(f"{_ZERO_KEY}zenflow.topk_ratio", 0, 1, True, True, "0.17.6"),
    _Limit(f"{_ZERO_KEY}zenflow.auto_ratio", 0, 1, since="0.17.6"),
    _Limit(f"{_ZERO_KEY}zenflow.pt_reserved_cores_perc", 0, 1, since="0.17.6"),
    _Limit(f"{_ZERO_KEY}zenflow.update_interval", 1, since=_NEWEST),
    _Limit("fp16.loss_scale", 0, since=_LAST_WITH_ALL),
    _Limit("hybrid_engine.max_out_tokens", 0, above=True),
    _Limit("scheduler.params.warmup_num_steps", 0, above=True, since=_NEWEST),
    _Limit("scheduler.params.lr_range_test_step_size", 0, above=True, since=_NEWEST),
)


def _out_of_limits(options: Options) -> Optional[tuple[_Limit, Any]]:
    version = parsed(options.accepted.parts[0].at_hand.version)
    for limit in _LIMITS:
        setting = options.given.get(limit.key)
        value = setting.value if setting is not None else None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if limit.since and version < parsed(limit.since):
            continue
        is_low = value < limit.least or (limit.above and value == limit.least)
        is_high = value > limit.most or (limit.below and value == limit.most)
        if is_low or is_high:
            return limit, value
    return None


def _of_limit(options: Options) -> Mapping[str, Any]:
    found = _out_of_limits(options)
    if found is None:
        return {}
    limit, value = found
    floor = "more than" if limit.above else "at least"
    floor_zh = "大于" if limit.above else "不小于"
    ends = "" if limit.most == math.inf else f" {'below' if limit.below else 'to'} {limit.most:g}"
    ends_zh = (
        "" if limit.most == math.inf else f" 且{'小于' if limit.below else '不大于'} {limit.most:g}"
    )
    return {
        "key": limit.key,
        "number": value,
        "range": f"{floor} {limit.least:g}{ends}",
        "range_zh": f"{floor_zh} {limit.least:g}{ends_zh}",
    }


# --- the batch -------------------------------------------------------------------------

_PARALLEL = ("tensor_parallel", "pipeline_parallel", "sequence_parallel", "autotp_size")
_FILLED = ("hf_trainer", "swift", "llamafactory")


def _ranks(options: Options) -> int:
    """Ranks with data of their own; raises UndecidedError where that is not known."""
    run = options.run
    world = run.launcher.world_size
    if world is None or options.is_open:
        raise UndecidedError("ranks")
    for name in _PARALLEL:
        value = run.value(name)
        if value is not None and value not in (0, 1):
            raise UndecidedError(name)
    return world


def _incomplete_batch(options: Options) -> Mapping[str, Any]:
    """The three sizes that DeepSpeed computes where one or two are given; empty when it takes
    them. All three together are GPU014's."""
    total, micro, steps = (_given(options, name) for name in (_TRAIN, _MICRO, _STEPS))
    if total is None or (micro is not None and steps is not None):
        return {}
    if steps is None and options.run.framework in _FILLED:
        return {}  # Accelerate fills in one step
    ranks = _ranks(options)
    if micro is not None:
        steps = total // micro // ranks
    else:
        steps = 1 if steps is None else steps
        micro = total // ranks // steps
    if total <= 0 or total == micro * steps * ranks:
        return {}
    return {"total": total, "micro": micro, "steps": steps, "ranks": ranks, "less": _below(options)}


def _below(options: Options) -> int:
    """A batch near the given one that is a multiple of what is fixed."""
    total, micro, steps = (_given(options, name) for name in (_TRAIN, _MICRO, _STEPS))
    unit = _ranks(options) * (micro or 1) * (steps or 1)
    return int(max(total // unit, 1) * unit)


def _no_batch(options: Options) -> bool:
    """Neither size is given, and nobody fills them in: the trainers only replace "auto"."""
    if options.is_open or options.run.framework not in _FILLED:
        return False
    return all(_given(options, name) is None for name in (_TRAIN, _MICRO))


# --- stages ----------------------------------------------------------------------------


def _stage(options: Options) -> Any:
    section = options.given.get("zero_optimization")
    if section is not None and not isinstance(section.value, dict):
        raise UndecidedError(_STAGE)
    return options[_STAGE]


def _is_on(options: Options, key: str) -> bool:
    return _given(options, key) is True


def _partial_offload(options: Options) -> bool:
    ratio = _given(options, "zero_optimization.offload_optimizer.ratio")
    return ratio is not None and 0 <= ratio < 1 and _stage(options) != 3


def _norm_off(options: Options) -> bool:
    off = _given(options, "zero_optimization.compute_grad_norm") is False
    return off and _stage(options) not in (1, 2)


def _outside(key: str, *stages: int) -> Callable[[Options], bool]:
    return lambda options: _is_on(options, key) and _stage(options) not in stages


def _sums(options: Options) -> bool:
    return str(_given(options, "gradient_allreduce_op")).lower() == "sum"


def _is_dynamic(options: Options) -> bool:
    scale = _given(options, "fp16.loss_scale")
    return _is_on(options, "fp16.enabled") and (scale is None or scale == 0)


_SCALES = ("fp16.loss_scale_window", "fp16.min_loss_scale")


def _no_scale(options: Options) -> bool:
    values = [_given(options, key) for key in _SCALES]
    return _is_dynamic(options) and any(
        isinstance(value, (int, float)) and value <= 0 for value in values
    )


def _is_truth(*keys: str) -> Callable[[Options], bool]:
    """Whether a number is given as true or false."""
    return lambda options: any(isinstance(_given(options, key), bool) for key in keys)


_REPLACED = (
    ("cpu_offload", "offload_optimizer"),
    ("cpu_offload_param", "offload_param"),
    ("stage3_gather_fp16_weights_on_model_save", "gather_16bit_weights_on_model_save"),
    ("stage3_gather_fp16_weights_on_model_save", "stage3_gather_16bit_weights_on_model_save"),
)


def _both_names(options: Options) -> Mapping[str, Any]:
    for old, new in _REPLACED:
        keys = (f"{_ZERO_KEY}{old}", f"{_ZERO_KEY}{new}")
        if all(key in options.given for key in keys):
            return {"old": old, "new": new}
    return {}


# --- optimizer, schedule, elasticity -----------------------------------------------------

_OPTIMIZERS = frozenset("adagrad adam adamw lamb muadam muadamw musgd lion muon".split())  # noqa: SIM905
_OLDER_OPTIMIZERS = _OPTIMIZERS | {"onebitadam", "zerooneadam", "onebitlamb"}
_OF_TORCH = frozenset(
    """
    Adadelta Adafactor Adagrad Adam AdamW Adamax ASGD LBFGS Muon NAdam Optimizer RAdam RMSprop
    Rprop SGD SparseAdam
    """.split()  # noqa: SIM905
)
_SCHEDULES = frozenset(
    """
    LRRangeTest OneCycle WarmupLR WarmupDecayLR WarmupCosineLR
    ChainedScheduler ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR
    ExponentialLR LambdaLR LinearLR LRScheduler MultiplicativeLR MultiStepLR OneCycleLR
    PolynomialLR ReduceLROnPlateau SequentialLR StepLR
    """.split()  # noqa: SIM905
)


def _has_own(options: Options, keyword: str) -> bool:
    """Whether the program gives the engine an optimizer or a schedule of its own."""
    calls = (c for file in options.run.python for c in file.calls_to("deepspeed.initialize"))
    return any(call.is_open or keyword in call.keywords or call.positional for call in calls)


def _no_optimizer(names: frozenset[str]) -> Callable[[Options], bool]:
    def holds(options: Options) -> bool:
        kind = _given(options, "optimizer.type")
        if not isinstance(kind, str) or _has_own(options, "optimizer"):
            return False
        return kind.lower() not in names and kind not in _OF_TORCH

    return holds


def _no_schedule(options: Options) -> bool:
    kind = _given(options, "scheduler.type")
    if not isinstance(kind, str) or _has_own(options, "lr_scheduler"):
        return False
    return kind not in _SCHEDULES and not kind.startswith("_")


def _clips_in_optimizer(options: Options) -> bool:
    if _given(options, "optimizer.type") is None or _has_own(options, "optimizer"):
        return False
    return "optimizer.params.max_grad_norm" in options.given


def _static_lamb(options: Options) -> bool:
    kind, scale = _given(options, "optimizer.type"), _given(options, "fp16.loss_scale")
    return str(kind).lower() == "lamb" and _is_on(options, "fp16.enabled") and bool(scale)


def _sized_elastic(options: Options) -> bool:
    if not _is_on(options, "elasticity.enabled"):
        return False
    if _given(options, "elasticity.ignore_non_elastic_batch_info"):
        return False
    return any(name in options.given for name in (_TRAIN, _MICRO, _STEPS))


def _no_stage_for_pipe(options: Options) -> bool:
    value = _given(options, "checkpoint.parallel_write.pipeline_stage")
    return value is not None and value not in (True, False)


def _no_names(key: str, word: str = "") -> Callable[[Options], bool]:
    """Whether something else than a list of names is given."""

    def holds(options: Options) -> bool:
        value = _given(options, key)
        if value is None or (word and value == word):
            return False
        return not isinstance(value, list) or any(
            known(one) and not isinstance(one, str) for one in value
        )

    return holds


def _no_interval(options: Options) -> bool:
    values = (_given(options, f"{_ZERO_KEY}zenflow.{name}_interval") for name in _INTERVALS)
    return any(isinstance(value, str) and not value.isdigit() for value in values)


_INTERVALS = ("select", "update")


def _rules() -> Iterator[Refusal]:
    yield from (_of_list(choice) for choice in _CHOICES)
    yield Refusal(
        "number-out-of-limits",
        f"{_CONFIG}._batch_assertion; Field(ge=, gt=, le=) of the models",
        tuple(limit.key for limit in _LIMITS),
        lambda options: _out_of_limits(options) is not None,
        Text("{key} 设为{range_zh}", "give {key} {range}"),
        Text("{number} 超出范围", "{number} is out of its limits"),
        figures=_of_limit,
        groups=_GROUPS,
    )
    yield Refusal(
        "batch-not-divisible",
        f"{_CONFIG}._set_batch_related_parameters, _batch_assertion",
        (_TRAIN,),
        lambda options: bool(_incomplete_batch(options)),
        Text("train_batch_size 改为 {less}", "set train_batch_size to {less}"),
        Text(
            "{total} 不等于每卡 {micro} × 累积 {steps} × {ranks} 个进程",
            "{total} is not {micro} a GPU x {steps} accumulated x {ranks} ranks",
        ),
        figures=_incomplete_batch,
        groups=_GROUPS,
    )
    yield Refusal(
        "no-batch-size",
        f"{_CONFIG}._set_batch_related_parameters",
        (_TRAIN, _MICRO),
        _no_batch,
        Text(
            '写上 "train_micro_batch_size_per_gpu": "auto"',
            'write "train_micro_batch_size_per_gpu": "auto"',
        ),
        Text(
            "配置中没有 train_batch_size 和 train_micro_batch_size_per_gpu",
            "the configuration has neither train_batch_size nor train_micro_batch_size_per_gpu",
        ),
        groups=_GROUPS,
    )
    yield Refusal(
        "removed-eigenvalue",
        f"{_CONFIG}, get_eigenvalue_config",
        ("eigenvalue.enabled", "eigenvalue"),
        lambda options: _is_on(options, "eigenvalue.enabled"),
        Text("删除 eigenvalue", "drop eigenvalue"),
        Text("基于特征值的 MoQ 已停用", "MoQ by eigenvalues is disabled"),
        groups=_GROUPS,
        until=_LAST_WITH_ALL,
    )
    yield Refusal(
        "elastic-with-batch",
        f"{_CONFIG}.__init__",
        (_TRAIN, _MICRO, _STEPS),
        _sized_elastic,
        Text(
            "删除批大小，或设 elasticity.ignore_non_elastic_batch_info 为 true",
            "drop the batch sizes, or set elasticity.ignore_non_elastic_batch_info to true",
        ),
        Text("elasticity 自行确定批大小", "elasticity chooses the batch sizes itself"),
        groups=_GROUPS,
        until=_LAST_WITH_ALL,
    )
    yield from _rules_of_sections()
    yield from _rules_of_stages()
    yield from _rules_of_engine()


def _rules_of_sections() -> Iterator[Refusal]:
    yield Refusal(
        "pipeline-stage-no-truth",
        f"{_CONFIG}, get_checkpoint_parallel_write_pipeline",
        ("checkpoint.parallel_write.pipeline_stage",),
        _no_stage_for_pipe,
        Text(
            "checkpoint.parallel_write.pipeline_stage 设为 true 或 false",
            "give checkpoint.parallel_write.pipeline_stage true or false",
        ),
        Text("只接受 true 或 false", "it is either true or false"),
        groups=_GROUPS,
    )
    for name, key, word, since in (
        ("safe-modules-no-names", "torch_autocast.lower_precision_safe_modules", "", "0.17.6"),
        ("fp32-modules-no-names", "data_types.keep_in_fp32_modules", "auto", _NEWEST),
    ):
        yield Refusal(
            name,
            _CONFIG,
            (key,),
            _no_names(key, word),
            Text(f"{key} 写成名称列表", f"give {key} a list of names"),
            Text("其中有非字符串", "what is given is no list of names"),
            groups=_GROUPS,
            since=since,
        )
    yield Refusal(
        "loss-scale-a-truth",
        _PRECISION,
        ("fp16.loss_scale",),
        _is_truth("fp16.loss_scale"),
        Text(
            "fp16.loss_scale 写成数字（0 为动态）", "give fp16.loss_scale a number, 0 for dynamic"
        ),
        Text("不接受 true 或 false", "true and false are no numbers"),
        groups=_GROUPS,
        since=_LAST_WITH_ALL,
    )
    yield Refusal(
        "scale-limits-a-truth",
        _PRECISION,
        _SCALES,
        _is_truth(*_SCALES),
        Text(
            "fp16.loss_scale_window 与 min_loss_scale 写成整数",
            "give fp16.loss_scale_window and min_loss_scale whole numbers",
        ),
        Text("不接受 true 或 false", "true and false are no numbers"),
        groups=_GROUPS,
        since=_NEWEST,
    )
    yield Refusal(
        "dynamic-scale-without-room",
        f"{_PRECISION}._validate_dynamic_loss_scale_params",
        _SCALES,
        _no_scale,
        Text(
            "fp16.loss_scale_window 与 min_loss_scale 设为大于 0",
            "give fp16.loss_scale_window and min_loss_scale more than 0",
        ),
        Text("动态损失缩放要求两者大于 0", "dynamic loss scaling needs both above 0"),
        groups=_GROUPS,
        since=_NEWEST,
    )
    yield Refusal(
        "zenflow-interval",
        _ZENFLOW,
        tuple(f"{_ZERO_KEY}zenflow.{name}_interval" for name in _INTERVALS),
        _no_interval,
        Text(
            "zenflow 的 select_interval、update_interval 写成整数或 auto",
            "give zenflow's select_interval and update_interval a whole number or auto",
        ),
        Text("其他字符串不被接受", "no other word is taken"),
        groups=_GROUPS,
        since="0.17.6",
    )
    yield Refusal(
        "replaced-key-beside-new",
        "deepspeed/runtime/config_utils.py, DeepSpeedConfigModel._process_deprecated_field",
        tuple(f"{_ZERO_KEY}{old}" for old, _ in _REPLACED),
        lambda options: bool(_both_names(options)),
        Text("删除 zero_optimization.{old}", "drop zero_optimization.{old}"),
        Text("{old} 已由 {new} 取代，二者不能并存", "{new} has taken the place of {old}"),
        figures=_both_names,
        groups=_GROUPS,
    )


def _rules_of_stages() -> Iterator[Refusal]:
    yield Refusal(
        "partial-offload-below-stage-3",
        f"{_ZERO}.offload_ratio_check",
        ("zero_optimization.offload_optimizer.ratio", _STAGE),
        _partial_offload,
        Text(
            "zero_optimization.stage 设为 3，或 ratio 设为 1",
            "set zero_optimization.stage to 3, or ratio to 1",
        ),
        Text("只有 ZeRO-3 支持部分卸载", "only stage 3 offloads a part of the optimizer"),
        groups=_GROUPS,
        since="0.12.6",
    )
    yield Refusal(
        "norm-off-at-stage",
        f"{_ZERO}.compute_grad_norm_valid",
        ("zero_optimization.compute_grad_norm", _STAGE),
        _norm_off,
        Text("删除 compute_grad_norm", "drop compute_grad_norm"),
        Text("只有 ZeRO-1、2 可关闭梯度范数", "only stages 1 and 2 go without the norm"),
        groups=_GROUPS,
        since=_NEWEST,
    )
    for name, key, stages, since, until in (
        ("fp16-masters-stage", "fp16.fp16_master_weights_and_grads", (2,), "", "0.17.6"),
        (
            "fp16-masters-need-zero",
            "fp16.fp16_master_weights_and_grads",
            (1, 2, 3),
            _LAST_WITH_ALL,
            "",
        ),
        (
            "bf16-masters-need-zero",
            "bf16.bf16_master_weights_and_grads",
            (1, 2, 3),
            _LAST_WITH_ALL,
            "",
        ),
        ("bf16-states-need-zero", "bf16.bf16_optimizer_states", (1, 2, 3), _LAST_WITH_ALL, ""),
    ):
        listed = ", ".join(map(str, stages))
        yield Refusal(
            name,
            f"{_CONFIG}._do_error_check",
            (key, _STAGE),
            _outside(key, *stages),
            Text(f"删除 {key}，或使用 ZeRO-{listed}", f"drop {key}, or use ZeRO stage {listed}"),
            Text(f"它需要 ZeRO-{listed}", f"it needs ZeRO stage {listed}"),
            groups=_GROUPS,
            since=since,
            until=until,
        )
    yield Refusal(
        "bf16-states-need-masters",
        f"{_CONFIG}._do_error_check",
        ("bf16.bf16_optimizer_states",),
        lambda options: (
            _is_on(options, "bf16.bf16_optimizer_states")
            and not options["bf16.bf16_master_weights_and_grads"]
        ),
        Text(
            "同时设 bf16_master_weights_and_grads 为 true",
            "set bf16_master_weights_and_grads to true as well",
        ),
        Text(
            "bf16_optimizer_states 需要 bf16_master_weights_and_grads",
            "bf16_optimizer_states needs bf16_master_weights_and_grads",
        ),
        groups=_GROUPS,
        since=_LAST_WITH_ALL,
    )
    for name, beside, zh, en, holds in (
        ("sum-at-stage-3", _STAGE, "ZeRO-3", "stage 3", lambda o: _stage(o) == 3),
        (
            "sum-with-zenflow",
            "zero_optimization.zenflow",
            "ZenFlow",
            "ZenFlow",
            lambda o: isinstance(_given(o, "zero_optimization.zenflow"), dict),
        ),
        (
            "sum-with-deepcompile",
            "compile.deepcompile",
            "DeepCompile",
            "DeepCompile",
            lambda o: _is_on(o, "compile.deepcompile"),
        ),
    ):
        yield Refusal(
            name,
            f"{_CONFIG}._do_error_check",
            ("gradient_allreduce_op", beside),
            _both(_sums, holds),
            Text("gradient_allreduce_op 改为 mean", "set gradient_allreduce_op to mean"),
            Text(f"{zh} 不支持 sum", f"{en} does not go with sum"),
            groups=_GROUPS,
            since=_NEWEST,
        )


def _both(
    one: Callable[[Options], bool], other: Callable[[Options], bool]
) -> Callable[[Options], bool]:
    return lambda options: one(options) and other(options)


def _rules_of_engine() -> Iterator[Refusal]:
    for name, names, since, until in (
        ("unknown-optimizer", _OPTIMIZERS, _NEWEST, ""),
        ("unknown-older-optimizer", _OLDER_OPTIMIZERS, "", _LAST_WITH_ALL),
    ):
        yield Refusal(
            name,
            f"{_ENGINE}._do_sanity_check",
            ("optimizer.type",),
            _no_optimizer(names),
            Text(
                "optimizer.type 改为 AdamW 等 DeepSpeed 或 torch.optim 的优化器",
                "give optimizer.type an optimizer of DeepSpeed or torch.optim, like AdamW",
            ),
            Text(
                "DeepSpeed 与 torch.optim 都没有 {kind}",
                "neither DeepSpeed nor torch.optim has {kind}",
            ),
            figures=lambda options: {"kind": options.given["optimizer.type"].value},
            groups=_GROUPS,
            since=since,
            until=until,
        )
    yield Refusal(
        "unknown-schedule",
        f"{_ENGINE}._scheduler_from_config",
        ("scheduler.type",),
        _no_schedule,
        Text(
            "scheduler.type 改为 WarmupLR、WarmupDecayLR、WarmupCosineLR、OneCycle 或 LRRangeTest",
            "give scheduler.type WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle or LRRangeTest",
        ),
        Text("DeepSpeed 与 torch 都没有 {kind}", "neither DeepSpeed nor PyTorch has a {kind}"),
        figures=lambda options: {"kind": options.given["scheduler.type"].value},
        groups=_GROUPS,
    )
    yield Refusal(
        "clipping-in-optimizer",
        f"{_ENGINE}._configure_basic_optimizer",
        ("optimizer.params.max_grad_norm",),
        _clips_in_optimizer,
        Text(
            "删除 optimizer.params.max_grad_norm，改用 gradient_clipping",
            "drop optimizer.params.max_grad_norm and set gradient_clipping",
        ),
        Text(
            "优化器参数中不接受 max_grad_norm", "the optimizer's params do not take max_grad_norm"
        ),
        groups=_GROUPS,
    )
    yield Refusal(
        "lamb-static-scale",
        f"{_ENGINE}._do_sanity_check",
        ("fp16.loss_scale", "optimizer.type"),
        _static_lamb,
        Text("fp16.loss_scale 设为 0", "set fp16.loss_scale to 0"),
        Text("LAMB 只支持动态损失缩放", "LAMB goes with dynamic loss scaling only"),
        groups=_GROUPS,
    )


REFUSALS: tuple[Refusal, ...] = (*_rules(), *LAUNCHER)
