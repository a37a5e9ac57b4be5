"""What TrainingArguments refuse: steps, strategies, precision, warm-up (training_args.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.hardware import architecture_named
from flake8_gpu_training.language import Text

GROUPS = ("TrainingArguments", "Seq2SeqTrainingArguments")
_SOURCE = "transformers/training_args.py, TrainingArguments.__post_init__"


def evaluation(options: Options) -> str:
    """The strategy of evaluation, by the name that the release has for it."""
    former = "evaluation_strategy"
    if former in options.given and options.takes(former):
        return str(options[former] or "no")
    if options.takes("eval_strategy"):
        return str(options["eval_strategy"])
    return str(options[former])


# --- steps ----------------------------------------------------------------------------


def _logs_at_no_step(options: Options) -> bool:
    return bool(options["logging_strategy"] == "steps" and options["logging_steps"] == 0)


def _evaluates_at_no_step(options: Options) -> bool:
    if evaluation(options) != "steps" or options["eval_steps"]:
        return False
    logged: bool = options["logging_steps"] > 0
    return not logged and not _logs_at_no_step(options)


def _fraction(kind: str) -> Refusal:
    """Steps above 1 that are not whole."""
    steps, strategy = f"{kind}_steps", f"{kind}_strategy"

    def holds(options: Options) -> bool:
        asked = evaluation(options) if kind == "eval" else options[strategy]
        value = options[steps]
        return asked == "steps" and 1 < value < float("inf") and value != int(value)

    return Refusal(
        f"fraction-of-{kind}-steps",
        _SOURCE,
        (steps,),
        holds,
        Text(f"{steps} 改为整数，或小于 1 的比例", f"give {steps} a whole number, or less than 1"),
        Text(
            f"{steps}={{{steps}}} 大于 1 却不是整数",
            f"{steps}={{{steps}}} is more than 1 and not whole",
        ),
        write=lambda options: {steps: round(options[steps])},
        groups=GROUPS,
    )


# --- the best model: what GPU015 does not tell ------------------------------------------


def _saved_and_judged(options: Options) -> tuple[float, float]:
    judged = options["eval_steps"] or options["logging_steps"]
    return options["save_steps"], judged


def _both_written(options: Options) -> bool:
    """Whether GPU015 compares the steps."""
    return all(
        name in options.given and isinstance(options[name], int) and options[name] > 0
        for name in ("save_steps", "eval_steps")
    )


def _keeps_the_best_by_steps(options: Options) -> bool:
    return bool(
        options["load_best_model_at_end"] is True
        and evaluation(options) == "steps"
        and options["save_strategy"] == "steps"
        and not _both_written(options)
    )


def _mixes_ratio_and_steps(options: Options) -> bool:
    if not _keeps_the_best_by_steps(options):
        return False
    saved, judged = _saved_and_judged(options)
    return judged > 0 and saved % judged != 0 and (saved < 1) != (judged < 1)


def _saves_between_evaluations(options: Options) -> bool:
    if not _keeps_the_best_by_steps(options):
        return False
    saved, judged = _saved_and_judged(options)
    if judged <= 0 or saved % judged == 0 or (saved < 1) != (judged < 1):
        return False
    return saved >= 1 or (saved * 1_000_000) % (judged * 1_000_000) != 0


def _figures_of_best(options: Options) -> Mapping[str, Any]:
    saved, judged = _saved_and_judged(options)
    return {"saved": saved, "judged": judged}


def _multiple(options: Options) -> Mapping[str, Any]:
    saved, judged = _saved_and_judged(options)
    return {"save_steps": max(round(saved / judged), 1) * judged} if judged >= 1 else {}


def _best_without_metric(options: Options) -> bool:
    return (
        options["save_strategy"] == "best"
        and options["load_best_model_at_end"] is False
        and options["lr_scheduler_type"] not in ("reduce_lr_on_plateau", "greedy")
        and options["metric_for_best_model"] is None
    )


# --- schedules and the rest -------------------------------------------------------------


def _schedule_without_evaluation(schedule: str) -> Callable[[Options], bool]:
    def holds(options: Options) -> bool:
        return options["lr_scheduler_type"] == schedule and evaluation(options) == "no"

    return holds


def _judged_by_steps(options: Options) -> Mapping[str, Any]:
    name = "eval_strategy" if options.takes("eval_strategy") else "evaluation_strategy"
    return {name: "steps"}


def _of_schedule(schedule: str, since: str = "") -> Refusal:
    return Refusal(
        f"{schedule.replace('_', '-')}-without-evaluation",
        _SOURCE,
        ("lr_scheduler_type",),
        _schedule_without_evaluation(schedule),
        Text(
            "设置 eval_strategy=steps 或 epoch，或换用其他学习率调度",
            "set eval_strategy to steps or epoch, or take another schedule",
        ),
        Text(
            f"lr_scheduler_type={schedule} 按评估结果调整学习率，而 eval_strategy 为 no",
            f"lr_scheduler_type={schedule} follows the evaluation, and eval_strategy is no",
        ),
        write=_judged_by_steps,
        groups=GROUPS,
        since=since,
    )


def _cannot_empty_cache(options: Options) -> bool:
    steps = options["torch_empty_cache_steps"]
    return steps is not None and not (isinstance(steps, int) and steps > 0)


def _no_whole_warmup(options: Options) -> bool:
    steps = options["warmup_steps"]
    return not isinstance(steps, int) or steps < 0


def _warms_up_beyond(options: Options) -> bool:
    ratio = options["warmup_ratio"]
    return bool(ratio is not None and not 0 <= ratio <= 1)


def _apex_in_bf16(options: Options) -> bool:
    return options["bf16"] is True and options["half_precision_backend"] == "apex"


def _class_of_accelerator(options: Options) -> bool:
    named = options.reference("accelerator_config")
    return named.rpartition(".")[2] == "AcceleratorConfig"


def _accumulates_twice(options: Options) -> bool:
    kwargs = options.entry("accelerator_config", "gradient_accumulation_kwargs") or {}
    if not isinstance(kwargs, dict):
        raise UndecidedError("gradient_accumulation_kwargs")
    return "num_steps" in kwargs and options["gradient_accumulation_steps"] > 1


_BEFORE_AMPERE = ("Pascal", "Volta", "Turing")


def _too_old_for_tf32(options: Options) -> bool:
    hardware = options.run.hardware
    named = hardware.architecture or architecture_named(hardware.gpu or "")
    return options["tf32"] is True and not hardware.weak and named in _BEFORE_AMPERE


_STATES = ("PartialState", "AcceleratorState", "Accelerator")


def _has_no_state(options: Options) -> bool:
    if options.entry("accelerator_config", "use_configured_state", False) is not True:
        return False
    calls = (call for file in options.run.python for call in file.calls)
    return not any(call.method in _STATES for call in calls)


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "logging-at-no-step",
        _SOURCE,
        ("logging_steps", "logging_strategy"),
        _logs_at_no_step,
        Text(
            "logging_steps 设为大于 0，或 logging_strategy 设为 no",
            "give logging_steps more than 0, or write logging_strategy=no",
        ),
        Text(
            "logging_strategy=steps 要求 logging_steps 不为 0",
            "logging_strategy=steps needs logging_steps other than 0",
        ),
        write=lambda options: {"logging_steps": 10},
        groups=GROUPS,
    ),
    Refusal(
        "evaluation-at-no-step",
        _SOURCE,
        ("eval_steps", "eval_strategy", "evaluation_strategy", "logging_steps"),
        _evaluates_at_no_step,
        Text("设置大于 0 的 eval_steps", "give eval_steps more than 0"),
        Text(
            "eval_strategy=steps 未给出 eval_steps，而 logging_steps={logging_steps} 不能代替",
            "eval_strategy=steps has no eval_steps, and logging_steps={logging_steps} cannot "
            "stand in",
        ),
        write=lambda options: {"eval_steps": 500},
        groups=GROUPS,
    ),
    _fraction("logging"),
    _fraction("eval"),
    _fraction("save"),
    Refusal(
        "ratio-of-best-model",
        _SOURCE,
        ("save_steps", "eval_steps", "load_best_model_at_end"),
        _mixes_ratio_and_steps,
        Text(
            "save_steps 与 eval_steps 都写为步数，或都写为小于 1 的比例",
            "write save_steps and eval_steps both as steps, or both as ratios below 1",
        ),
        Text(
            "load_best_model_at_end 无法比较 save_steps={saved} 与 eval_steps={judged}",
            "load_best_model_at_end cannot compare save_steps={saved} with eval_steps={judged}",
        ),
        figures=_figures_of_best,
        groups=GROUPS,
    ),
    Refusal(
        "steps-of-best-model",
        _SOURCE,
        ("save_steps", "eval_steps", "load_best_model_at_end"),
        _saves_between_evaluations,
        Text(
            "save_steps 设为 eval_steps（{judged}）的倍数",
            "make save_steps a multiple of eval_steps ({judged})",
        ),
        Text(
            "load_best_model_at_end 要求每次保存时都有评估，而 save_steps={saved}",
            "load_best_model_at_end needs an evaluation at each save, and save_steps is {saved}",
        ),
        figures=_figures_of_best,
        write=_multiple,
        groups=GROUPS,
    ),
    Refusal(
        "best-strategy-without-metric",
        "transformers/trainer.py, Trainer._validate_args",
        ("save_strategy", "metric_for_best_model"),
        _best_without_metric,
        Text("设置 metric_for_best_model", "set metric_for_best_model"),
        Text(
            "save_strategy=best 需要知道按哪个指标选优",
            "save_strategy=best has to know by which metric a model is the best",
        ),
        write=lambda options: {"metric_for_best_model": "loss"},
        raiser="Trainer",
        groups=GROUPS,
        since="4.47.1",
    ),
    Refusal(
        "both-full-evaluations",
        _SOURCE,
        ("fp16_full_eval", "bf16_full_eval"),
        lambda options: options["fp16_full_eval"] is True and options["bf16_full_eval"] is True,
        Text("只保留 bf16_full_eval 或 fp16_full_eval", "drop fp16_full_eval or bf16_full_eval"),
        Text("两种精度不能同时用于评估", "one evaluation cannot have both precisions"),
        write=lambda options: {"fp16_full_eval": False},
        groups=GROUPS,
    ),
    Refusal(
        "apex-in-bf16",
        _SOURCE,
        ("half_precision_backend", "bf16"),
        _apex_in_bf16,
        Text("去掉 half_precision_backend=apex", "drop half_precision_backend=apex"),
        Text("apex 不支持 bf16", "apex has no bf16"),
        write=lambda options: {"half_precision_backend": "auto"},
        groups=GROUPS,
        until="4.57.6",
    ),
    _of_schedule("reduce_lr_on_plateau"),
    _of_schedule("greedy", since="5.4.0"),
    Refusal(
        "cache-emptied-at-no-step",
        _SOURCE,
        ("torch_empty_cache_steps",),
        _cannot_empty_cache,
        Text(
            "torch_empty_cache_steps 设为正整数，或删除",
            "give torch_empty_cache_steps a whole number above 0, or drop it",
        ),
        Text("{torch_empty_cache_steps} 不是正整数", "{torch_empty_cache_steps} is not allowed"),
        groups=GROUPS,
        since="4.43.4",
    ),
    Refusal(
        "no-whole-warmup",
        _SOURCE,
        ("warmup_steps",),
        _no_whole_warmup,
        Text(
            "warmup_steps 设为非负整数，比例写入 warmup_ratio",
            "give warmup_steps a whole number from 0 on; a ratio goes to warmup_ratio",
        ),
        Text("warmup_steps={warmup_steps} 不是", "warmup_steps={warmup_steps} is not allowed"),
        groups=GROUPS,
        since="4.42.4",
        until="4.57.6",
    ),
    Refusal(
        "negative-warmup",
        _SOURCE,
        ("warmup_steps",),
        lambda options: options["warmup_steps"] < 0,
        Text("warmup_steps 设为 0 或更大", "give warmup_steps 0 or more"),
        Text("warmup_steps={warmup_steps} 小于 0", "warmup_steps={warmup_steps} is below 0"),
        write=lambda options: {"warmup_steps": 0},
        groups=GROUPS,
        since="5.0.0",
    ),
    Refusal(
        "warmup-ratio-out-of-range",
        _SOURCE,
        ("warmup_ratio",),
        _warms_up_beyond,
        Text(
            "warmup_ratio 取 0 到 1；步数写入 warmup_steps",
            "give warmup_ratio 0 to 1; a number of steps goes to warmup_steps",
        ),
        Text("warmup_ratio={warmup_ratio} 超出范围", "warmup_ratio={warmup_ratio} is outside"),
        groups=GROUPS,
        until="4.57.6",
    ),
    Refusal(
        "accelerator-config-class",
        _SOURCE,
        ("accelerator_config",),
        _class_of_accelerator,
        Text("写成 AcceleratorConfig(...)", "call it: AcceleratorConfig(...)"),
        Text(
            "accelerator_config 得到的是类而不是对象",
            "accelerator_config is given the class, not an object of it",
        ),
        groups=GROUPS,
        since="4.40.2",
    ),
    Refusal(
        "accumulation-given-twice",
        "transformers/trainer.py, Trainer.create_accelerator_and_postprocess",
        ("accelerator_config", "gradient_accumulation_steps"),
        _accumulates_twice,
        Text(
            "num_steps 与 gradient_accumulation_steps 只保留一个",
            "drop num_steps or gradient_accumulation_steps",
        ),
        Text(
            "accelerator_config 的 num_steps 与 gradient_accumulation_steps="
            "{gradient_accumulation_steps} 不能并存",
            "accelerator_config's num_steps does not go with gradient_accumulation_steps="
            "{gradient_accumulation_steps}",
        ),
        raiser="Trainer",
        groups=GROUPS,
        since="4.41.2",
    ),
    Refusal(
        "tf32-before-ampere",
        _SOURCE,
        ("tf32",),
        _too_old_for_tf32,
        Text("去掉 tf32", "drop tf32"),
        Text("该 GPU 没有 TF32（Ampere 起才有）", "the GPU is older than Ampere and has no TF32"),
        write=lambda options: {"tf32": False},
        groups=GROUPS,
    ),
    Refusal(
        "configured-state-without-one",
        "transformers/training_args.py, TrainingArguments._setup_devices",
        ("accelerator_config",),
        _has_no_state,
        Text(
            "先创建 PartialState() 或 Accelerator()，或去掉 use_configured_state",
            "make PartialState() or an Accelerator before, or drop use_configured_state",
        ),
        Text("此前没有任何状态", "there is no state to use"),
        groups=GROUPS,
        since="4.42.4",
    ),
)
