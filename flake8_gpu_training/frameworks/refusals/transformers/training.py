"""What stops when training starts: the loader, optimizer and schedule that a Trainer makes of its
arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Callable

from flake8_gpu_training.facts import Call
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.refusals.transformers.arguments import GROUPS
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run, RunKind

_LOADS = "training stops as it starts, where the Trainer makes its DataLoader"
_OPTIMIZES = "training stops as it starts, where the Trainer makes its optimizer"
_SCHEDULES = "training stops as it starts, where the Trainer makes its scheduler"

# --- whether a Trainer trains at all --------------------------------------------------------


def trains(options: Options) -> None:
    """Raises UndecidedError where nothing in sight starts the training of a Trainer."""
    run = options.run
    if run.kind is not RunKind.TRAIN:
        raise UndecidedError("training")
    if run.python and not any(_starts(run, call) for file in run.python for call in file.calls):
        raise UndecidedError("training")


_STARTS = ("train", "hyperparameter_search")


def _starts(run: Run, call: Call) -> bool:
    if call.method not in _STARTS:
        return False
    owner = call.name.rpartition(".")[0].rpartition(".")[2].rstrip("()").lower()
    return owner.endswith("trainer") or call.receiver in _trainers(run)


def _trainers(run: Run) -> frozenset[str]:
    """Classes in sight that are Trainers: the libraries' and the project's own."""
    classes = [item for file in run.python for item in file.classes]
    made = [call.receiver for file in run.python for call in file.calls]
    names = {one for one in made if one.endswith("Trainer")}
    own = {c.name for c in classes if any(base.endswith("Trainer") for base in c.bases)}
    return frozenset(names | own)


# --- what the DataLoader refuses --------------------------------------------------------


def _loads_nothing(options: Options) -> bool:
    trains(options)
    size = options["per_device_train_batch_size"]
    return isinstance(size, int) and size <= 0


def _works_backwards(options: Options) -> bool:
    trains(options)
    return bool(options["dataloader_num_workers"] < 0)


def _fetches_backwards(options: Options) -> bool:
    trains(options)
    ahead = options["dataloader_prefetch_factor"]
    return ahead is not None and ahead < 0 and options["dataloader_num_workers"] > 0


_LOADER = "torch/utils/data, DataLoader.__init__ and BatchSampler.__init__"

# --- optimizers and schedules of their own arguments --------------------------------------


def _builds(options: Options, what: str) -> None:
    """Raises UndecidedError where no Trainer trains, or where it may be given its ``optimizer`` or
    ``scheduler``."""
    trains(options)
    run = options.run
    if run.deepspeed is not None and run.deepspeed.get(what) is not None:
        raise UndecidedError(what)
    if run.deepspeed is None and options.given.get("deepspeed") is not None:
        raise UndecidedError(what)  # its configuration, which was not read, may bring one
    calls = (call for file in run.python for call in file.calls)
    methods = {name for file in run.python for item in file.classes for name in item.methods}
    later = [item.name for file in run.python for item in file.attributes]
    if any("optimizers" in call.keywords for call in calls) or any(what in n for n in methods):
        raise UndecidedError(what)
    if any(name.endswith(what) for name in later):
        raise UndecidedError(what)


_LOW_RANK = ("galore", "apollo")
_LAYERWISE = "layerwise"


def _is_low_rank(options: Options) -> bool:
    _builds(options, "optimizer")
    return str(options["optim"]).startswith(_LOW_RANK)


def _low_rank_without_targets(options: Options) -> bool:
    return _is_low_rank(options) and options["optim_target_modules"] is None


def _targets_of_no_kind(options: Options) -> bool:
    targets = options["optim_target_modules"]
    return _is_low_rank(options) and targets is not None and not isinstance(targets, (list, str))


def _is_layerwise(options: Options) -> bool:
    return _is_low_rank(options) and str(options["optim"]).endswith(_LAYERWISE)


def _layerwise_accumulates(options: Options) -> bool:
    return _is_layerwise(options) and options["gradient_accumulation_steps"] != 1


def _layerwise_in_processes(options: Options) -> bool:
    return _is_layerwise(options) and options.world_size > 1


_MIN_LR = ("cosine_with_min_lr", "cosine_warmup_with_min_lr")


def _schedule(options: Options) -> str:
    _builds(options, "scheduler")
    return str(options["lr_scheduler_type"])


def _floors(options: Options) -> tuple[bool, bool]:
    kwargs = options.mapping("lr_scheduler_kwargs")
    if not all(isinstance(key, str) for key in kwargs):
        raise UndecidedError("lr_scheduler_kwargs")
    floor, rate = (options.entry("lr_scheduler_kwargs", n) for n in ("min_lr", "min_lr_rate"))
    return floor is not None, rate is not None


def _without_floor(options: Options) -> bool:
    return _schedule(options) in _MIN_LR and not any(_floors(options))


def _two_floors(options: Options) -> bool:
    return _schedule(options) in _MIN_LR and all(_floors(options))


_WSD = "warmup_stable_decay"


def _misses(*names: str) -> Callable[[Options], bool]:
    """Whether the schedule of three phases is not told the steps of one."""

    def holds(options: Options) -> bool:
        return _schedule(options) == _WSD and bool(_missing(options, names))

    return holds


def _missing(options: Options, names: tuple[str, ...]) -> tuple[str, ...]:
    given = options.mapping("lr_scheduler_kwargs")
    if not all(isinstance(key, str) for key in given):
        raise UndecidedError("lr_scheduler_kwargs")
    return tuple(name for name in names if name not in given)


_TAKES: Mapping[str, frozenset[str]] = {
    "linear": frozenset({"last_epoch"}),
    "cosine": frozenset({"num_cycles", "last_epoch"}),
    "cosine_with_restarts": frozenset({"num_cycles", "last_epoch"}),
    "polynomial": frozenset({"lr_end", "power", "last_epoch"}),
    "cosine_with_min_lr": frozenset({"num_cycles", "last_epoch", "min_lr", "min_lr_rate"}),
    "cosine_warmup_with_min_lr": frozenset(
        {"num_cycles", "last_epoch", "min_lr", "min_lr_rate", "warmup_lr_rate"}
    ),
}
"""Arguments of the schedules that take the same in every release that has them (4.38.2 to 5.24.0);
those of ``constant`` and ``constant_with_warmup`` are not handed on."""


def _strangers(options: Options) -> tuple[str, ...]:
    """Arguments that the schedule does not take."""
    taken = _TAKES.get(str(options["lr_scheduler_type"]))
    given = options.mapping("lr_scheduler_kwargs") if taken is not None else {}
    return tuple(key for key in given if isinstance(key, str) and key not in (taken or ()))


def _is_no_mapping(options: Options) -> bool:
    given = options["lr_scheduler_kwargs"]
    takes = _schedule(options) not in ("constant", "constant_with_warmup")
    return takes and isinstance(given, str) and bool(given) and not given.startswith("{")


def _gives_strangers(options: Options) -> bool:
    return _schedule(options) in _TAKES and bool(_strangers(options))


def _unknown_shape(options: Options) -> bool:
    return _schedule(options) == _WSD and bool(list(_shapes(options)))


def _shapes(options: Options) -> Iterator[str]:
    for name in ("warmup_type", "decay_type"):
        shape = options.entry("lr_scheduler_kwargs", name, "linear")
        if shape not in ("linear", "cosine", "1-sqrt"):
            yield f"{name}={shape}"


def _greedy_faults(options: Options) -> Iterator[str]:
    """Arguments of the schedule ``greedy`` that it does not take."""
    factor = options.entry("lr_scheduler_kwargs", "factor", 0.95)
    if factor >= 1:
        yield f"factor={factor}"
    for name, choices in (("mode", ("min", "max")), ("threshold_mode", ("rel", "abs"))):
        value = options.entry("lr_scheduler_kwargs", name, choices[0])
        if value not in choices:
            yield f"{name}={value}"


def _is_greedy_at_fault(options: Options) -> bool:
    return _schedule(options) == "greedy" and bool(list(_greedy_faults(options)))


def _ends_above(options: Options) -> bool:
    """The end is above the beginning, which is the learning rate of every group by default."""
    if _schedule(options) != "polynomial":
        return False
    end = options.entry("lr_scheduler_kwargs", "lr_end", 1e-7)
    return bool(0 < options["learning_rate"] <= end)


def _without_steps(names: tuple[str, ...], since: str, until: str = "") -> Refusal:
    return Refusal(
        "phases-without-steps" if len(names) == 1 else "phases-without-all-steps",
        "transformers/optimization.py, get_wsd_schedule",
        ("lr_scheduler_type", "lr_scheduler_kwargs"),
        _misses(*names),
        Text("在 lr_scheduler_kwargs 中给出 {missing}", "give {missing} in lr_scheduler_kwargs"),
        Text("{lr_scheduler_type} 必须知道它", "{lr_scheduler_type} has no default for it"),
        figures=lambda options: {"missing": " and ".join(_missing(options, names))},
        stops=_SCHEDULES,
        groups=GROUPS,
        since=since,
        until=until,
    )


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "low-rank-optimizer-without-targets",
        "transformers/trainer_optimizer.py, _setup_low_rank_optimizer",
        ("optim", "optim_target_modules"),
        _low_rank_without_targets,
        Text("设置 optim_target_modules=all-linear", "set optim_target_modules=all-linear"),
        Text("{optim} 需要知道作用于哪些模块", "{optim} has to know which modules it is for"),
        write=lambda options: {"optim_target_modules": "all-linear"},
        stops=_OPTIMIZES,
        groups=GROUPS,
        since="4.39.3",
    ),
    Refusal(
        "optimizer-targets-of-no-kind",
        "transformers/trainer_optimizer.py, _setup_low_rank_optimizer",
        ("optim_target_modules", "optim"),
        _targets_of_no_kind,
        Text(
            "optim_target_modules 写成列表、正则表达式或 all-linear",
            "give optim_target_modules a list, a regular expression or all-linear",
        ),
        Text("不能取 {optim_target_modules}", "it cannot be {optim_target_modules}"),
        stops=_OPTIMIZES,
        groups=GROUPS,
        since="4.39.3",
    ),
    Refusal(
        "layerwise-accumulation",
        "transformers/trainer_optimizer.py, _setup_low_rank_optimizer",
        ("gradient_accumulation_steps", "optim"),
        _layerwise_accumulates,
        Text("gradient_accumulation_steps 设为 1", "set gradient_accumulation_steps to 1"),
        Text(
            "{optim} 逐层更新，无法累积梯度",
            "{optim} updates layer by layer and cannot accumulate gradients",
        ),
        write=lambda options: {"gradient_accumulation_steps": 1},
        stops=_OPTIMIZES,
        groups=GROUPS,
        since="4.39.3",
    ),
    Refusal(
        "layerwise-in-processes",
        "transformers/trainer_optimizer.py, _setup_low_rank_optimizer",
        ("optim",),
        _layerwise_in_processes,
        Text(
            "去掉优化器名中的 _layerwise，或只用一个进程",
            "drop _layerwise from the optimizer's name, or start one process",
        ),
        Text("{optim} 不支持多进程", "{optim} does not work in several processes"),
        write=lambda options: {"optim": str(options["optim"]).replace("_layerwise", "")},
        stops=_OPTIMIZES,
        groups=GROUPS,
        since="4.39.3",
    ),
    Refusal(
        "schedule-arguments-no-mapping",
        "transformers/optimization.py, get_scheduler",
        ("lr_scheduler_kwargs",),
        _is_no_mapping,
        Text(
            'lr_scheduler_kwargs 写成映射，如 {{"num_cycles": 1}}',
            'give lr_scheduler_kwargs a mapping, such as {{"num_cycles": 1}}',
        ),
        Text("{lr_scheduler_kwargs} 不是映射", "{lr_scheduler_kwargs} is not allowed"),
        stops=_SCHEDULES,
        groups=GROUPS,
        since="4.38.2",
    ),
    Refusal(
        "cosine-without-floor",
        "transformers/optimization.py, get_cosine_with_min_lr_schedule_with_warmup",
        ("lr_scheduler_type", "lr_scheduler_kwargs"),
        _without_floor,
        Text(
            "在 lr_scheduler_kwargs 中给出 min_lr 或 min_lr_rate",
            "give min_lr or min_lr_rate in lr_scheduler_kwargs",
        ),
        Text("{lr_scheduler_type} 需要其一", "{lr_scheduler_type} needs one of them"),
        write=lambda options: {"lr_scheduler_kwargs": {"min_lr_rate": 0.1}},
        stops=_SCHEDULES,
        groups=GROUPS,
        since="4.40.2",
    ),
    Refusal(
        "cosine-with-two-floors",
        "transformers/optimization.py, get_cosine_with_min_lr_schedule_with_warmup",
        ("lr_scheduler_kwargs", "lr_scheduler_type"),
        _two_floors,
        Text(
            "lr_scheduler_kwargs 中只保留 min_lr 或 min_lr_rate",
            "drop min_lr or min_lr_rate from lr_scheduler_kwargs",
        ),
        Text("{lr_scheduler_type} 只接受其一", "{lr_scheduler_type} takes one of them"),
        stops=_SCHEDULES,
        groups=GROUPS,
        since="4.40.2",
    ),
    _without_steps(("num_decay_steps",), since="4.49.0"),
    _without_steps(("num_stable_steps", "num_decay_steps"), since="4.41.2", until="4.48.3"),
    Refusal(
        "stranger-to-schedule",
        "transformers/optimization.py, get_scheduler",
        ("lr_scheduler_kwargs", "lr_scheduler_type"),
        _gives_strangers,
        Text("从 lr_scheduler_kwargs 中去掉 {names}", "drop {names} from lr_scheduler_kwargs"),
        Text(
            "{lr_scheduler_type} 调度没有该参数",
            "the schedule {lr_scheduler_type} has no such argument",
        ),
        figures=lambda options: {"names": ", ".join(_strangers(options))},
        stops=_SCHEDULES,
        groups=GROUPS,
        since="4.38.2",
    ),
    Refusal(
        "unknown-shape-of-schedule",
        "transformers/optimization.py, get_wsd_schedule",
        ("lr_scheduler_kwargs", "lr_scheduler_type"),
        _unknown_shape,
        Text("改用 linear、cosine 或 1-sqrt", "choose linear, cosine or 1-sqrt"),
        Text("{lr_scheduler_type} 不认识 {shape}", "{lr_scheduler_type} does not know {shape}"),
        figures=lambda options: {"shape": ", ".join(_shapes(options))},
        stops=_SCHEDULES,
        groups=GROUPS,
        since="4.49.0",
    ),
    Refusal(
        "greedy-arguments",
        "transformers/optimization.py, GreedyLR.__init__",
        ("lr_scheduler_kwargs", "lr_scheduler_type"),
        _is_greedy_at_fault,
        Text(
            "factor 小于 1，mode 取 min 或 max，threshold_mode 取 rel 或 abs",
            "give factor less than 1, mode min or max, threshold_mode rel or abs",
        ),
        Text("greedy 不接受 {faults}", "greedy does not take {faults}"),
        figures=lambda options: {"faults": ", ".join(_greedy_faults(options))},
        stops=_SCHEDULES,
        groups=GROUPS,
        since="5.4.0",
    ),
    Refusal(
        "batch-of-nothing",
        _LOADER,
        ("per_device_train_batch_size",),
        _loads_nothing,
        Text(
            "per_device_train_batch_size 设为 1 或更大",
            "give per_device_train_batch_size 1 or more",
        ),
        Text(
            "DataLoader 不接受 {per_device_train_batch_size}",
            "the DataLoader does not take {per_device_train_batch_size}",
        ),
        write=lambda options: {"per_device_train_batch_size": 1},
        stops=_LOADS,
        groups=GROUPS,
    ),
    Refusal(
        "workers-below-0",
        _LOADER,
        ("dataloader_num_workers",),
        _works_backwards,
        Text("dataloader_num_workers 设为 0 或更大", "give dataloader_num_workers 0 or more"),
        Text(
            "DataLoader 不接受 {dataloader_num_workers}",
            "the DataLoader does not take {dataloader_num_workers}",
        ),
        write=lambda options: {"dataloader_num_workers": 4},
        stops=_LOADS,
        groups=GROUPS,
    ),
    Refusal(
        "prefetch-below-0",
        _LOADER,
        ("dataloader_prefetch_factor",),
        _fetches_backwards,
        Text(
            "dataloader_prefetch_factor 设为 1 或更大，或删除",
            "give dataloader_prefetch_factor 1 or more, or drop it",
        ),
        Text(
            "DataLoader 不接受 {dataloader_prefetch_factor}",
            "the DataLoader does not take {dataloader_prefetch_factor}",
        ),
        stops=_LOADS,
        groups=GROUPS,
    ),
    Refusal(
        "polynomial-end-above-start",
        "transformers/optimization.py, get_polynomial_decay_schedule_with_warmup",
        ("lr_scheduler_kwargs", "learning_rate", "lr_scheduler_type"),
        _ends_above,
        Text(
            "lr_scheduler_kwargs 的 lr_end 设为小于 learning_rate",
            "give lr_end in lr_scheduler_kwargs less than learning_rate",
        ),
        Text(
            "polynomial 要求学习率下降，而 learning_rate={learning_rate}",
            "polynomial needs a falling rate, and learning_rate is {learning_rate}",
        ),
        stops=_SCHEDULES,
        groups=GROUPS,
        since="4.40.2",
    ),
)
