"""What Flow-Factory refuses at start: hparams, the registries, and its trainers' first steps."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Callable

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.language import Text

_HPARAMS = "flow_factory/hparams"
_TRAINING = f"{_HPARAMS}/training_args.py"
_TRAINERS = ("grpo", "grpo-guard", "nft", "awm", "dgpo", "dpo", "crd")
_MODELS = (
    "sd3-5",
    "flux1",
    "flux1-kontext",
    "flux2",
    "flux2-klein",
    "qwen-image",
    "qwen-image-edit-plus",
    "z-image",
    "wan2_i2v",
    "wan2_t2v",
    "wan2_v2v",
    "ltx2_t2av",
    "ltx2_i2av",
)
_REWARDS = (
    "pickscore",
    "pickscore_rank",
    "clip",
    "clap",
    "imagebind",
    "ocr",
    "vllm_evaluate",
    "rational_rewards_t2i",
    "rational_rewards_edit",
)
_LOGGERS = ("wandb", "swanlab", "tensorboard", "none")
_DYNAMICS = ("Flow-SDE", "Dance-SDE", "CPS", "ODE")
_SAMPLERS = ("auto", "distributed_k_repeat", "group_contiguous", "group_distributed")
_DTYPES = ("fp16", "bf16", "fp32", "float16", "bfloat16", "float32")
_PRECISIONS = ("no", "fp16", "bf16", "fp8")
_STRATEGIES = ("uniform", "logit_normal", "discrete", "discrete_with_init", "discrete_wo_init")
_WEIGHTINGS = ("Uniform", "t", "t**2", "huber", "ghuber")
_AGGREGATIONS = ("sum", "gdpo")
_DECAYS = ("none", "slow", "medium", "offline", "fast")
_KL: Mapping[str, tuple[str, ...]] = {
    "grpo": ("v-based", "x-based"),
    "grpo-guard": ("v-based", "x-based"),
    "dgpo": ("v-based", "x-based"),
    "nft": ("v-based",),
    "awm": ("v-based",),
    "crd": ("v-based",),
}
_SAMPLING = ("nft", "awm", "dgpo", "crd")
_ALIKE = 0.7


def _trainer(options: Options) -> str:
    return str(options["train.trainer_type"]).lower()


def _is_own_source(options: Options) -> bool:
    """Whether the project has a state of the source that may know more words."""
    return "flow-factory" in options.run.unreleased


def _unregistered(value: Any, names: Sequence[str]) -> bool:
    """Whether a word is a registered name misspelt.

    One with a dot is a class of the user's, and one that is like none may be of a newer state
    of the sources.
    """
    if not isinstance(value, str) or "." in value or value.lower() in names:
        return False
    return bool(difflib.get_close_matches(value.lower(), names, 1, _ALIKE))


def _near(value: Any, names: Sequence[str]) -> str:
    found = difflib.get_close_matches(str(value).lower(), names, 1, _ALIKE)
    return found[0] if found else names[0]


def _registry(
    name: str, parameter: str, names: Sequence[str], source: str, kinds: tuple[str, str]
) -> Refusal:
    return Refusal(
        name,
        f"flow_factory/{source}",
        (parameter,),
        lambda options: not _is_own_source(options) and _unregistered(options[parameter], names),
        Text(f"{parameter} 改为 {{near}}", f"write {parameter}={{near}}"),
        Text(
            f"没有名为 {{value}} 的{kinds[0]}",
            f"no {kinds[1]} is registered as {{value}}",
        ),
        figures=lambda options: {
            "near": _near(options[parameter], names),
            "value": options[parameter],
        },
        write=lambda options: {parameter: _near(options[parameter], names)},
    )


def _word(
    name: str,
    parameter: str,
    words: Sequence[str],
    source: str,
    asked: Callable[[Options], bool] = lambda options: True,
) -> Refusal:
    """A parameter that is compared with its words."""

    def holds(options: Options) -> bool:
        value = options[parameter]
        is_other = isinstance(value, str) and value not in words
        return is_other and asked(options) and not _is_own_source(options)

    return Refusal(
        name,
        f"flow_factory/{source}",
        (parameter,),
        holds,
        Text(f"{parameter} 改为 {{known}} 之一", f"give {parameter} one of {{known}}"),
        Text("不能取 {value}", "it cannot be {value}"),
        figures=lambda options: {"known": ", ".join(words), "value": options[parameter]},
    )


def _wrong_kl(options: Options) -> bool:
    words = None if _is_own_source(options) else _KL.get(_trainer(options))
    return words is not None and options["train.kl_type"] not in words


def _reward_names(options: Options) -> list[str]:
    """Rewards whose model is a registered name misspelt."""
    found: list[str] = []
    if _is_own_source(options):
        return found
    for section in ("rewards", "eval_rewards"):
        setting = options.given.get(section)
        if setting is None or not known(setting.value):
            continue
        entries = setting.value if isinstance(setting.value, list) else [setting.value]
        for entry in entries:
            model = entry.get("reward_model") if isinstance(entry, dict) else None
            if _unregistered(model, _REWARDS):
                found.append(str(model))
    single = options.given.get("rewards.reward_model")
    if single is not None and known(single.value) and _unregistered(single.value, _REWARDS):
        found.append(str(single.value))
    return found


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UndecidedError("a number")
    return value


def _no_noisy_step(options: Options) -> bool:
    """Whether no step of the rollout is left to draw noise in, once nulls are filled in."""
    if options["scheduler.dynamics_type"] == "ODE":
        return False
    count = options["scheduler.num_sde_steps"]
    if count is not None:
        return _number(count) <= 0
    steps = options["scheduler.sde_steps"]
    if steps is None:
        return _number(options["train.num_inference_steps"]) <= 1
    return isinstance(steps, list) and not steps


def _samples_at_once(options: Options) -> int:
    world = options.run.launcher.world_size
    if world is None:
        raise UndecidedError("processes")
    return int(world * _number(options["train.per_device_batch_size"]))


def _spreads_groups(options: Options) -> bool:
    """Whether each rank samples a part of every group."""
    if _trainer(options) == "dgpo":
        return True
    is_asked = options["data.sampler_type"] == "group_distributed"
    return is_asked and not _has_async_rewards(options)


def _large_group(options: Options) -> bool:
    size = options["train.group_size"]
    return _spreads_groups(options) and _number(size) > _samples_at_once(options)


def _no_rewards(options: Options) -> bool:
    """Whether a section of rewards is given that holds none."""
    given = (options.given.get(name) for name in ("rewards", "eval_rewards"))
    return any(
        one is not None and known(one.value) and not isinstance(one.value, (list, dict))
        for one in given
    )


def _has_async_rewards(options: Options) -> bool:
    for section in ("rewards", "eval_rewards"):
        setting = options.given.get(section)
        if setting is None:
            continue
        if not isinstance(setting.value, list):
            raise UndecidedError(section)
        if any(isinstance(one, dict) and one.get("async_reward") for one in setting.value):
            return True
    return False


def _no_range(options: Options) -> bool:
    value = options["train.timestep_range"]
    if isinstance(value, list):
        low, high = (_number(one) for one in value[:2])
    else:
        low, high = 0.0, _number(value)
    return not 0 <= low < high <= 1


def _reversed(name: str) -> Refusal:
    parameter = f"train.{name}"

    def holds(options: Options) -> bool:
        value = options[parameter]
        return isinstance(value, list) and _number(value[0]) >= _number(value[1])

    return Refusal(
        f"{name.replace('_', '-')}-reversed",
        f"{_TRAINING}, _standardize_clip_range",
        (parameter,),
        holds,
        Text(f"{parameter} 先写下限，再写上限", f"give {parameter} its lower bound first"),
        Text(
            "{value} 的下限不小于上限",
            "of {value} the first is not below the second",
        ),
        figures=lambda options: {"value": options[parameter]},
    )


def _no_decay(options: Options, name: str) -> bool:
    value = options[f"train.{name}"]
    if isinstance(value, int):
        return not 0 <= value <= 6
    if not isinstance(value, str) or value in _DECAYS or re.fullmatch(r"[0-6]", value):
        return False
    return "-" not in value or len(value.split("-")) != 4


def _decay(name: str) -> Refusal:
    return Refusal(
        name.replace("_", "-"),
        "flow_factory/trainers/crd.py, compute_decay",
        (f"train.{name}",),
        lambda options: _trainer(options) == "crd" and _no_decay(options, name),
        Text(
            f"train.{name} 写成 起始步-起始值-斜率-终值，如 0-0.25-0.005-0.999",
            f"write train.{name} as step-value-slope-value, such as 0-0.25-0.005-0.999",
        ),
        Text(
            "{value} 不是预设名，也不是四个数",
            "{value} is no preset and no four numbers",
        ),
        figures=lambda options: {"value": options[f"train.{name}"]},
    )


def _edits_several(options: Options) -> bool:
    if str(options["model.model_type"]).lower() != "qwen-image-edit-plus":
        return False
    return any(_number(options[f"{name}.per_device_batch_size"]) > 1 for name in ("train", "eval"))


_RULES: tuple[Refusal, ...] = (
    _registry(
        "trainer-type",
        "train.trainer_type",
        _TRAINERS,
        "hparams/training_args.py, get_training_args_class",
        ("训练器", "trainer"),
    ),
    _registry(
        "model-type",
        "model.model_type",
        _MODELS,
        "models/registry.py, get_model_adapter_class",
        ("模型", "model"),
    ),
    _registry(
        "logging-backend",
        "log.logging_backend",
        _LOGGERS,
        "logger/registry.py, get_logger_class",
        ("记录器", "logger"),
    ),
    Refusal(
        "reward-model",
        "flow_factory/rewards/registry.py, get_reward_model_class",
        ("rewards", "rewards.reward_model", "eval_rewards"),
        lambda options: bool(_reward_names(options)),
        Text("reward_model 改为 {near}", "write reward_model={near}"),
        Text("没有名为 {written} 的奖励模型", "no reward model is registered as {written}"),
        figures=lambda options: {
            "written": _reward_names(options)[0],
            "near": _near(_reward_names(options)[0], _REWARDS),
        },
    ),
    _word(
        "dynamics-type",
        "scheduler.dynamics_type",
        _DYNAMICS,
        "hparams/scheduler_args.py, SchedulerArguments.__post_init__",
    ),
    _word(
        "sampler-type",
        "data.sampler_type",
        _SAMPLERS,
        "hparams/args.py, Arguments._align_batch_geometry",
        lambda options: _trainer(options) != "dgpo",
    ),
    _word(
        "weight-type",
        "model.master_weight_dtype",
        _DTYPES,
        "hparams/model_args.py, ModelArguments.__post_init__",
    ),
    _word(
        "sampling-strategy",
        "train.time_sampling_strategy",
        _STRATEGIES,
        "trainers/awm.py, AWMTrainer._sample_timesteps",
        lambda options: _trainer(options) in _SAMPLING,
    ),
    _word(
        "weighting-of-awm",
        "train.awm_weighting",
        _WEIGHTINGS,
        "trainers/awm.py, AWMTrainer.compute_weighted_log_prob",
        lambda options: _trainer(options) == "awm",
    ),
    _word(
        "aggregation",
        "train.advantage_aggregation",
        _AGGREGATIONS,
        "advantage/advantage_processor.py, AdvantageProcessor.compute_advantages",
    ),
    Refusal(
        "precision-of-launch",
        "flow_factory/trainers/loader.py, load_trainer",
        ("mixed_precision",),
        lambda options: (
            options["mixed_precision"] is False
            or (
                isinstance(options["mixed_precision"], str)
                and options["mixed_precision"] not in _PRECISIONS
            )
        ),
        Text(
            'mixed_precision 改为 "no"（带引号）、fp16 或 bf16',
            'write mixed_precision: bf16, fp16 or "no", the last in quotes',
        ),
        Text(
            "Accelerate 没有 {mixed_precision} 这种精度",
            "Accelerate does not know {mixed_precision}",
        ),
    ),
    Refusal(
        "kl-type",
        f"{_TRAINING}, __post_init__ of the trainer's arguments",
        ("train.kl_type", "train.trainer_type"),
        _wrong_kl,
        Text("train.kl_type 改为 {known}", "write train.kl_type={known}"),
        Text(
            "trainer_type={trainer} 不支持 {value}",
            "trainer_type={trainer} does not know {value}",
        ),
        figures=lambda options: {
            "known": " or ".join(_KL[_trainer(options)]),
            "trainer": _trainer(options),
            "value": options["train.kl_type"],
        },
        write=lambda options: {"train.kl_type": "v-based"},
    ),
    Refusal(
        "no-noisy-step",
        f"{_HPARAMS}/args.py, Arguments._resolve_scheduler_sde_defaults",
        ("scheduler.num_sde_steps", "scheduler.sde_steps", "train.num_inference_steps"),
        _no_noisy_step,
        Text(
            "scheduler.num_sde_steps 设为大于 0，或 dynamics_type 设为 ODE",
            "give scheduler.num_sde_steps more than 0, or write dynamics_type=ODE",
        ),
        Text("没有一步可以加噪声", "no step is left to draw noise in"),
    ),
    Refusal(
        "no-accumulation",
        f"{_TRAINING}, TrainingArguments.__post_init__",
        ("train.gradient_accumulation_steps",),
        lambda options: (
            options["train.gradient_accumulation_steps"] != "auto"
            and int(options["train.gradient_accumulation_steps"]) < 1
        ),
        Text(
            "train.gradient_accumulation_steps 设为 auto 或不小于 1",
            "write train.gradient_accumulation_steps=auto, or 1 or more",
        ),
        Text(
            "{value} 小于 1",
            "{value} is less than 1",
        ),
        figures=lambda options: {"value": options["train.gradient_accumulation_steps"]},
        write=lambda options: {"train.gradient_accumulation_steps": "auto"},
    ),
    Refusal(
        "group-above-batch",
        f"{_HPARAMS}/args.py, Arguments._align_for_group_distributed",
        ("train.group_size", "train.per_device_batch_size"),
        _large_group,
        Text(
            "train.group_size 设为不大于 {most}，或增大 per_device_batch_size",
            "give train.group_size at most {most}, or more per_device_batch_size",
        ),
        Text(
            "每组样本分到所有进程，一次只采 {most} 个",
            "a group is spread over the ranks, which sample {most} at once",
        ),
        figures=lambda options: {"most": _samples_at_once(options)},
    ),
    Refusal(
        "empty-group",
        f"{_HPARAMS}/args.py, Arguments._align_for_group_distributed",
        ("train.group_size",),
        lambda options: _spreads_groups(options) and _number(options["train.group_size"]) <= 0,
        Text("train.group_size 设为大于 0", "give train.group_size more than 0"),
        Text("每组至少一个样本", "a group has a sample or more"),
    ),
    Refusal(
        "form-of-rewards",
        f"{_HPARAMS}/reward_args.py, MultiRewardArguments.from_dict",
        ("rewards", "eval_rewards"),
        _no_rewards,
        Text("rewards 写成列表，或删除", "write rewards as a list, or drop the key"),
        Text(
            "奖励是列表或键值，而不是单个值",
            "rewards are a list or a mapping, this is a single value",
        ),
    ),
    Refusal(
        "timestep-range",
        f"{_TRAINING}, _standardize_timestep_range",
        ("train.timestep_range",),
        _no_range,
        Text(
            "train.timestep_range 写成 0 到 1 之间的上限，或 [下限, 上限]",
            "give train.timestep_range an upper bound within 0 and 1, or [lower, upper]",
        ),
        Text("{value} 不是这样的范围", "{value} is not allowed"),
        figures=lambda options: {"value": options["train.timestep_range"]},
    ),
    _reversed("clip_range"),
    _reversed("adv_clip_range"),
    _decay("old_model_decay"),
    _decay("sampling_model_decay"),
    Refusal(
        "several-edits-at-once",
        "flow_factory/models/qwen_image/qwen_image_edit_plus.py, inference",
        ("train.per_device_batch_size", "eval.per_device_batch_size"),
        _edits_several,
        Text(
            "train 与 eval 的 per_device_batch_size 设为 1",
            "write per_device_batch_size=1 for train and eval",
        ),
        Text(
            "qwen-image-edit-plus 一次只处理一个样本",
            "qwen-image-edit-plus takes one sample at a time",
        ),
    ),
)
REFUSALS = tuple(replace(rule, groups=("config",)) for rule in _RULES)
"""The file is one, whatever sections it has."""
