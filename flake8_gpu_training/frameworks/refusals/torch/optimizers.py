"""What optimizers and schedules refuse (torch/optim)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Callable, NamedTuple, Optional

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.torch.given import given, known_value
from flake8_gpu_training.language import Text

_OPTIM = "torch/optim"
_SCHEDULE = "torch/optim/lr_scheduler.py"


class _Limit(NamedTuple):
    """The numbers that some classes take for a parameter: from ``least`` to ``most``."""

    groups: tuple[str, ...]
    name: str
    least: float = 0
    most: float = math.inf
    above: bool = False
    below: bool = False


_ADAMS = ("Adam", "AdamW", "Adamax", "NAdam", "RAdam")
_OPTIMIZERS = (
    *_ADAMS,
    *("Adadelta", "Adafactor", "Adagrad", "ASGD", "LBFGS", "Muon", "RMSprop", "Rprop", "SGD"),
)
_DECAYED = tuple(name for name in _OPTIMIZERS if name not in ("LBFGS", "Rprop"))
_LIMITS = (
    _Limit(_OPTIMIZERS, "lr"),
    _Limit(_DECAYED, "weight_decay"),
    _Limit((*_ADAMS, "Adadelta", "Adagrad", "RMSprop"), "eps"),
    _Limit(("SGD", "RMSprop", "Muon"), "momentum"),
    _Limit(("RMSprop",), "alpha"),
    _Limit(("Adadelta",), "rho", 0, 1),
    _Limit(("Adagrad",), "lr_decay"),
    _Limit(("Adagrad",), "initial_accumulator_value"),
    _Limit(("NAdam",), "momentum_decay"),
    _Limit(("Adafactor",), "d", 1),
    _Limit(("Adafactor",), "beta2_decay", -math.inf, 0),
    _Limit(("ConstantLR",), "factor", 0, 1),
    _Limit(("LinearLR",), "start_factor", 0, 1, True),
    _Limit(("LinearLR",), "end_factor", 0, 1),
    _Limit(("ReduceLROnPlateau",), "factor", -math.inf, 1, False, True),
    _Limit(("OneCycleLR",), "pct_start", 0, 1),
    _Limit(("OneCycleLR",), "total_steps", 0, math.inf, True),
    _Limit(("OneCycleLR",), "epochs", 0, math.inf, True),
    _Limit(("OneCycleLR",), "steps_per_epoch", 0, math.inf, True),
    _Limit(("CosineAnnealingWarmRestarts",), "T_0", 0, math.inf, True),
    _Limit(("CosineAnnealingWarmRestarts",), "T_mult", 1),
)


def _number(value: Any) -> Optional[float]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value


def _outside(options: Options) -> Mapping[str, Any]:
    """The first argument that its class does not take, and what it takes."""
    group = options.accepted.parts[0].group
    for limit in _LIMITS:
        value = _number(known_value(options, limit.name)) if group in limit.groups else None
        if value is None:
            continue
        low = value < limit.least or (limit.above and value == limit.least)
        high = value > limit.most or (limit.below and value == limit.most)
        if low or high:
            return _told(limit, value)
    return {}


def _told(limit: _Limit, value: float) -> Mapping[str, Any]:
    floor, ceiling = f"{limit.least:g}", f"{limit.most:g}"
    ends = []
    if limit.least > -math.inf:
        ends.append(
            (f"大于 {floor}", f"more than {floor}")
            if limit.above
            else (f"不小于 {floor}", f"at least {floor}")
        )
    if limit.most < math.inf:
        ends.append(
            (f"小于 {ceiling}", f"less than {ceiling}")
            if limit.below
            else (f"不大于 {ceiling}", f"at most {ceiling}")
        )
    zh, en = zip(*ends)
    return {
        "name": limit.name,
        "number": value,
        "range_zh": " 且".join(zh),
        "range": " and ".join(en),
    }


def _bad_betas(options: Options) -> bool:
    value = known_value(options, "betas")
    if not isinstance(value, (list, tuple)):
        return False
    return any((found := _number(beta)) is not None and not 0 <= found < 1 for beta in value)


def _bad_etas(options: Options) -> bool:
    value = known_value(options, "etas")
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return False
    low, high = _number(value[0]), _number(value[1])
    return low is not None and high is not None and not 0 < low < 1 < high


def _true(*names: str) -> Callable[[Options], bool]:
    return lambda options: all(known_value(options, name) is True for name in names)


def _nesterov_alone(options: Options) -> bool:
    if known_value(options, "nesterov") is not True:
        return False
    momentum, dampening = given(options, "momentum"), given(options, "dampening")
    return not momentum or momentum < 0 or bool(dampening)


def _no_steps(options: Options) -> bool:
    if options.is_open or any(_may_be(options, "total_steps")):
        return False
    return not (any(_may_be(options, "epochs")) and any(_may_be(options, "steps_per_epoch")))


def _may_be(options: Options, name: str) -> Iterator[bool]:
    """Whether an argument is given something else than None."""
    setting = options.given.get(name)
    if setting is not None:
        yield not known(setting.value) or setting.value is not None


def _no_word(name: str, *words: str) -> Callable[[Options], bool]:
    def holds(options: Options) -> bool:
        value = known_value(options, name)
        return isinstance(value, str) and value not in words

    return holds


def _cycles_amiss(options: Options) -> bool:
    is_wrong = _no_word("mode", "triangular", "triangular2", "exp_range")(options)
    return is_wrong and not options.is_open and "scale_fn" not in options.given


def of_optimizers() -> Iterator[Refusal]:
    """The rules of the optimizers and of the schedules."""
    yield Refusal(
        "optimizer-number-out-of-range",
        f"{_OPTIM}/*.py, __init__; {_SCHEDULE}, __init__",
        tuple(dict.fromkeys(limit.name for limit in _LIMITS)),
        lambda options: bool(_outside(options)),
        Text("{name} 设为{range_zh}", "give {name} {range}"),
        Text("不接受 {number}", "{number} is not taken"),
        figures=_outside,
        groups=tuple(dict.fromkeys(group for limit in _LIMITS for group in limit.groups)),
    )
    yield Refusal(
        "betas-out-of-range",
        f"{_OPTIM}/adam.py, Adam.__init__ and those like it",
        ("betas",),
        _bad_betas,
        Text("betas 取 0 到 1 之间（不含 1）的数", "give betas numbers from 0 to below 1"),
        Text("其中有数超出范围", "one of them is out of this range"),
        groups=_ADAMS,
    )
    yield Refusal(
        "etas-out-of-range",
        f"{_OPTIM}/rprop.py, Rprop.__init__",
        ("etas",),
        _bad_etas,
        Text(
            "etas 的第一个数在 0 与 1 之间，第二个大于 1", "give etas one below 1 and one above 1"
        ),
        Text("步长须能缩小也能增大", "steps must shrink by the first and grow by the second"),
        groups=("Rprop",),
    )
    for other in ("foreach", "differentiable"):
        yield Refusal(
            f"fused-with-{other}",
            f"{_OPTIM}/adam.py, sgd.py, adagrad.py, __init__",
            ("fused", other),
            _true("fused", other),
            Text(f"fused 与 {other} 只保留一个", f"keep one of fused and {other}"),
            Text("二者互斥", "they exclude each other"),
            groups=("Adam", "AdamW"),
        )
        yield Refusal(
            f"fused-with-{other}-elsewhere",
            f"{_OPTIM}/sgd.py, adagrad.py, __init__",
            ("fused", other),
            _true("fused", other),
            Text(f"fused 与 {other} 只保留一个", f"keep one of fused and {other}"),
            Text("二者互斥", "they exclude each other"),
            groups=("SGD", "Adagrad"),
            since="2.5.1",
        )
    yield Refusal(
        "nesterov-without-momentum",
        f"{_OPTIM}/sgd.py, SGD.__init__",
        ("nesterov", "momentum"),
        _nesterov_alone,
        Text(
            "nesterov 需要 momentum 大于 0 且 dampening 为 0",
            "give momentum above 0, and no dampening",
        ),
        Text("否则没有可用的动量", "nesterov looks ahead along the momentum"),
        groups=("SGD",),
    )
    yield Refusal(
        "cycle-without-steps",
        f"{_SCHEDULE}, OneCycleLR.__init__",
        ("total_steps", "epochs", "steps_per_epoch"),
        _no_steps,
        Text(
            "给出 total_steps，或同时给出 epochs 和 steps_per_epoch",
            "give total_steps, or epochs and steps_per_epoch",
        ),
        Text("不知道周期多长", "the length of the cycle is not known"),
        groups=("OneCycleLR",),
    )
    yield Refusal(
        "no-annealing",
        f"{_SCHEDULE}, OneCycleLR.__init__",
        ("anneal_strategy",),
        _no_word("anneal_strategy", "cos", "linear"),
        Text("anneal_strategy 改为 cos 或 linear", "give anneal_strategy cos or linear"),
        Text("没有 {anneal_strategy}", "there is no {anneal_strategy}"),
        groups=("OneCycleLR",),
    )
    yield Refusal(
        "no-cycle-mode",
        f"{_SCHEDULE}, CyclicLR.__init__",
        ("mode",),
        _cycles_amiss,
        Text(
            "mode 改为 triangular、triangular2 或 exp_range",
            "give mode triangular, triangular2 or exp_range",
        ),
        Text("没有 {mode}", "there is no {mode}"),
        groups=("CyclicLR",),
    )
    yield Refusal(
        "no-plateau-mode",
        f"{_SCHEDULE}, ReduceLROnPlateau._init_is_better",
        ("mode",),
        _no_word("mode", "min", "max"),
        Text("mode 改为 min 或 max", "give mode min or max"),
        Text("没有 {mode}", "there is no {mode}"),
        groups=("ReduceLROnPlateau",),
    )
    yield Refusal(
        "restarts-no-number",
        f"{_SCHEDULE}, CosineAnnealingWarmRestarts.__init__",
        ("T_0", "T_mult"),
        lambda options: any(
            isinstance(known_value(options, name), (float, str)) for name in ("T_0", "T_mult")
        ),
        Text("T_0 与 T_mult 写成整数", "give T_0 and T_mult whole numbers"),
        Text("其他类型不被接受", "no other type is taken"),
        groups=("CosineAnnealingWarmRestarts",),
    )
