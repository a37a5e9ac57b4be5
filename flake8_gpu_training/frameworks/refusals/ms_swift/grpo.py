"""What ``swift rlhf --rlhf_type grpo`` refuses (swift/arguments/rlhf_args.py and its trainer)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Callable

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.refusals.ms_swift._asked import (
    MEGATRON_RLHF,
    RLHF,
    Asked,
    drop,
    has_plugins,
    items,
    none_of,
    of_grpo,
    off,
    setting,
    value,
)
from flake8_gpu_training.language import Text

_ARGUMENTS = "swift/arguments/rlhf_args.py, RLHFArguments"
_TRAINER = "swift/rlhf_trainers/grpo_trainer.py, GRPOTrainer"


def _is_on(name: str) -> Asked:
    return lambda options: options[name]


def _is_set(name: str) -> Asked:
    return lambda options: value(options, name) is not None


def _has_teacher(options: Options) -> bool:
    models = (value(options, "teacher_model"), value(options, "teacher_model_server"))
    return any(one is not None for one in models)


def _has_no_rewards(options: Options) -> bool:
    return none_of(options, "reward_funcs")


def _scales_each(options: Options) -> bool:
    if "real" in items(options, "loss_type"):
        return False  # that loss turns the scaling off
    return bool(options["scale_rewards"] == "gdpo")


def _cached_evaluation(options: Options) -> bool:
    return bool(items(options, "cached_val_dataset"))


# --- what several features do not go with ----------------------------------------------


def _conflicts(
    feature: str,
    words: Text,
    holds: Asked,
    source: str,
    others: tuple[tuple[str, Asked, str], ...],
    groups: tuple[str, ...] = RLHF,
) -> Iterator[Refusal]:
    """A rule for each of ``others``: its parameter, when it stands in the way, since when."""
    for name, stands_in_the_way, since in others:
        yield Refusal(
            f"{feature}-with-{name.replace('_', '-')}",
            source,
            (name,),
            _both(holds, stands_in_the_way),
            drop(name),
            Text(f"{words.zh}不支持 {name}", f"{words.en} does not take {name}"),
            since=since,
            groups=groups,
        )


def _both(one: Asked, other: Asked) -> Callable[[Options], bool]:
    return of_grpo(lambda options: one(options) and other(options))


_LOSSES_OF_SEQUENCES = ("real", "fipo")


def _sequence_loss(options: Options) -> bool:
    return any(one in _LOSSES_OF_SEQUENCES for one in items(options, "loss_type"))


_MASK = "off_policy_sequence_mask_delta"
_LIGER: tuple[tuple[str, Asked, str], ...] = (
    ("delta", _is_set("delta"), "3.5.3"),
    ("sequence_parallel_size", lambda o: o["sequence_parallel_size"] > 1, "3.5.3"),
    ("padding_free", _is_on("padding_free"), "3.6.4"),
    ("packing", lambda o: o["packing"] and not o["padding_free"], "3.8.3"),
    ("top_entropy_quantile", lambda o: o["top_entropy_quantile"] < 1, "3.7.3"),
    ("log_entropy", _is_on("log_entropy"), "3.7.3"),
    (_MASK, _is_set(_MASK), "4.0.4"),
    (
        "importance_sampling_level",
        lambda o: o["importance_sampling_level"] not in ("token", "sequence"),
        "4.0.4",
    ),
    ("advantage_estimator", lambda o: o["advantage_estimator"] != "grpo", "3.10.3"),
)
_TAUGHT: tuple[tuple[str, Asked, str], ...] = (
    ("loss_type", _sequence_loss, "4.4.2"),
    (_MASK, _is_set(_MASK), "4.4.2"),
)


def _reweights(options: Options) -> bool:
    return bool(options["advantage_reweight"] == "rlsd")


_REWEIGHTED: tuple[tuple[str, Asked, str], ...] = (
    ("use_liger_kernel", _is_on("use_liger_kernel"), "4.5.3"),
    ("loss_type", lambda o: not _has_teacher(o) and _sequence_loss(o), "4.5.3"),
    (_MASK, lambda o: not _has_teacher(o) and o[_MASK] is not None, "4.5.3"),
    ("teacher_model_server", _is_set("teacher_model_server"), "4.5.3"),
)


def _distils(options: Options) -> bool:
    return bool(options["sdar_loss_coef"] > 0)


_DISTILLED: tuple[tuple[str, Asked, str], ...] = (
    ("use_liger_kernel", lambda o: not _reweights(o) and o["use_liger_kernel"], "4.5.3"),
    ("advantage_reweight", _reweights, "4.5.3"),
    (
        "teacher_model_server",
        lambda o: not _reweights(o) and o["teacher_model_server"] is not None,
        "4.5.3",
    ),
)


# --- rewards ----------------------------------------------------------------------------

_FUNCTIONS = frozenset(
    (
        "toolbench",
        "math",
        "accuracy",
        "format",
        "react_format",
        "cosine",
        "repetition",
        "soft_overlong",
    )
)
"""Of all releases; external plugins register more."""
_PLUGINS = frozenset({"default", "genrm"})
_LOSSES = frozenset(("grpo", "bnpo", "dr_grpo", "sapo", "cispo", "dapo", "real", "fipo"))


def _plays(options: Options) -> bool:
    """Whether an environment gives the rewards; a vLLM server may say so itself."""
    asked = value(options, "use_gym_env")
    if asked is not None:
        return bool(asked)
    if value(options, "vllm_mode") == "server":
        raise UndecidedError("use_gym_env")
    return value(options, "gym_env") is not None


def _unrewarded(options: Options) -> bool:
    if not none_of(options, "reward_funcs", "reward_model"):
        return False
    return not _plays(options) and not _has_teacher(options)


def _rewards(options: Options) -> int:
    if _plays(options):
        raise UndecidedError("use_gym_env")  # it gives one more, in some releases
    return len(items(options, "reward_funcs")) + len(items(options, "reward_model"))


def _other_weights(options: Options) -> bool:
    weights = items(options, "reward_weights")
    return bool(weights) and len(weights) != _rewards(options)


def _other_plugins(options: Options) -> bool:
    plugins, models = items(options, "reward_model_plugin"), items(options, "reward_model")
    return bool(plugins) and bool(models) and len(plugins) != len(models)


def _unknown(name: str, known_names: frozenset[str]) -> Callable[[Options], list[Any]]:
    def found(options: Options) -> list[Any]:
        return [one for one in items(options, name) if one not in known_names]

    return found


_unknown_functions = _unknown("reward_funcs", _FUNCTIONS)
_unknown_plugins = _unknown("reward_model_plugin", _PLUGINS)
_unknown_losses = _unknown("loss_type", _LOSSES)


def _counts_of_weights(options: Options) -> Mapping[str, Any]:
    return {"weights": len(items(options, "reward_weights")), "rewards": _rewards(options)}


def _counts_of_plugins(options: Options) -> Mapping[str, Any]:
    models = len(items(options, "reward_model"))
    return {"plugins": len(items(options, "reward_model_plugin")), "models": models}


# --- the rules --------------------------------------------------------------------------

_TEACHER = Text("有教师的 GRPO ", "GRPO with a teacher")


REFUSALS: tuple[Refusal, ...] = (
    *_conflicts(
        "liger",
        Text("Liger 损失", "the Liger loss"),
        _is_on("use_liger_kernel"),
        f"{_ARGUMENTS}._check_grpo",
        _LIGER,
    ),
    *_conflicts(
        "teacher",
        _TEACHER,
        _has_teacher,
        f"{_ARGUMENTS}._check_opd_rl",
        _TAUGHT,
        (*RLHF, *MEGATRON_RLHF),
    ),
    *_conflicts(
        "teacher",
        _TEACHER,
        _has_teacher,
        f"{_ARGUMENTS}._check_teacher",
        (("use_liger_kernel", _is_on("use_liger_kernel"), "4.4.2"),),
    ),
    *_conflicts(
        "rlsd",
        Text("advantage_reweight=rlsd ", "advantage_reweight=rlsd"),
        _reweights,
        f"{_ARGUMENTS}._check_rlsd",
        _REWEIGHTED,
    ),
    *_conflicts(
        "sdar",
        Text("sdar_loss_coef ", "sdar_loss_coef"),
        _distils,
        f"{_ARGUMENTS}._check_sdar",
        _DISTILLED,
    ),
    Refusal(
        "teacher-without-rewards",
        f"{_ARGUMENTS}._check_opd_rl",
        ("dynamic_sample", "scale_rewards"),
        of_grpo(
            lambda options: (
                _has_teacher(options)
                and _has_no_rewards(options)
                and (options["dynamic_sample"] or _scales_each(options))
            )
        ),
        Text(
            "设置 reward_funcs，或去掉 dynamic_sample 与 scale_rewards=gdpo",
            "give reward_funcs, or drop dynamic_sample and scale_rewards=gdpo",
        ),
        Text("只有教师时没有奖励的方差", "a teacher alone gives no rewards to compare"),
        since="4.4.2",
        groups=(*RLHF, *MEGATRON_RLHF),
    ),
    Refusal(
        "rlsd-without-rewards",
        f"{_ARGUMENTS}._check_rlsd",
        ("advantage_reweight", "reward_funcs"),
        of_grpo(lambda options: _reweights(options) and _has_no_rewards(options)),
        Text("设置 reward_funcs", "give reward_funcs"),
        Text("advantage_reweight=rlsd 需要奖励", "advantage_reweight=rlsd needs rewards"),
        since="4.5.3",
        groups=RLHF,
    ),
    Refusal(
        "rlsd-lambda",
        f"{_ARGUMENTS}._check_rlsd",
        ("rlsd_lambda",),
        of_grpo(lambda options: _reweights(options) and not 0 <= options["rlsd_lambda"] <= 1),
        Text("rlsd_lambda 设为 0 到 1", "give rlsd_lambda from 0 to 1"),
        Text("{rlsd_lambda} 不在其中", "{rlsd_lambda} is none of them"),
        since="4.5.3",
        groups=RLHF,
    ),
    Refusal(
        "rlsd-clip-range",
        f"{_ARGUMENTS}._check_rlsd",
        ("rlsd_reweight_clip_range",),
        of_grpo(lambda options: _reweights(options) and options["rlsd_reweight_clip_range"] < 0),
        Text("rlsd_reweight_clip_range 设为 0 或更大", "give rlsd_reweight_clip_range 0 or more"),
        Text("{rlsd_reweight_clip_range} 是负数", "{rlsd_reweight_clip_range} is negative"),
        since="4.5.3",
        groups=RLHF,
    ),
    Refusal(
        "sdar-gate",
        f"{_ARGUMENTS}._check_sdar",
        ("sdar_gate_beta",),
        of_grpo(lambda options: _distils(options) and options["sdar_gate_beta"] <= 0),
        Text("sdar_gate_beta 设为大于 0", "give sdar_gate_beta more than 0"),
        Text("{sdar_gate_beta} 太小", "{sdar_gate_beta} is too small"),
        since="4.5.3",
        groups=RLHF,
    ),
    Refusal(
        "grpo-from-cache",
        f"{_ARGUMENTS}._init_grpo",
        ("cached_dataset", "cached_val_dataset"),
        of_grpo(lambda options: items(options, "cached_dataset") or _cached_evaluation(options)),
        Text("改用 dataset", "give dataset instead"),
        Text("GRPO 不支持 cached_dataset", "GRPO takes no cached dataset"),
        since="3.7.3",
        groups=RLHF,
    ),
    Refusal(
        "grpo-truncation",
        f"{_ARGUMENTS}._init_grpo",
        ("truncation_strategy",),
        of_grpo(lambda options: options["truncation_strategy"] in ("right", "split")),
        Text("truncation_strategy 设为 left 或 delete", "write truncation_strategy=left or delete"),
        Text("GRPO 不支持 {truncation_strategy}", "GRPO has no {truncation_strategy}"),
        write=setting(truncation_strategy="left"),
        since="3.7.3",
        groups=(*RLHF, *MEGATRON_RLHF),
    ),
    Refusal(
        "overlong-without-cache",
        f"{_ARGUMENTS}._init_grpo",
        ("reward_funcs", "soft_cache_length"),
        of_grpo(
            lambda options: (
                "soft_overlong" in items(options, "reward_funcs")
                and none_of(options, "soft_cache_length")
            )
        ),
        Text("设置 soft_cache_length", "give soft_cache_length"),
        Text("soft_overlong 奖励需要它", "the reward soft_overlong needs it"),
        since="3.3.1",
        groups=(*RLHF, *MEGATRON_RLHF),
    ),
    Refusal(
        "grpo-asynchronous-turns",
        f"{_ARGUMENTS}._check_grpo",
        ("async_generate", "multi_turn_scheduler"),
        of_grpo(
            lambda options: (
                options["async_generate"] and options["multi_turn_scheduler"] is not None
            )
        ),
        drop("async_generate"),
        Text("多轮训练不支持异步生成", "several turns are not generated asynchronously"),
        write=off("async_generate"),
        since="3.6.4",
        groups=RLHF,
    ),
    Refusal(
        "grpo-reasoning-parser",
        "swift/rlhf_trainers/arguments.py, GRPOConfig.__post_init__",
        ("vllm_reasoning_parser",),
        of_grpo(_is_set("vllm_reasoning_parser")),
        drop("vllm_reasoning_parser"),
        Text("GRPO 训练不支持", "GRPO does not take it"),
        since="3.8.3",
        groups=RLHF,
    ),
    Refusal(
        "one-generation",
        f"{_ARGUMENTS}._check_teacher",
        ("num_generations",),
        of_grpo(lambda options: options["num_generations"] == 1 and not _has_teacher(options)),
        Text("num_generations 设为大于 1", "give num_generations more than 1"),
        Text("GRPO 比较同一问题的多个回答", "GRPO compares the completions of a prompt"),
        write=setting(num_generations=8),
        since="4.4.2",
        groups=RLHF,
    ),
    Refusal(
        "no-reward",
        f"{_TRAINER}.__init__",
        ("reward_funcs",),
        of_grpo(_unrewarded),
        Text("设置 reward_funcs 或 reward_model", "give reward_funcs or a reward_model"),
        Text("GRPO 没有奖励", "GRPO has no reward"),
        since="3.1.1",
        groups=(*RLHF, *MEGATRON_RLHF),
    ),
    Refusal(
        "number-of-reward-weights",
        f"{_TRAINER}._prepare_rewards",
        ("reward_weights", "reward_funcs"),
        of_grpo(_other_weights),
        Text("每个奖励给一个 reward_weights", "give a reward weight for each reward"),
        Text("{rewards} 个奖励，{weights} 个权重", "rewards: {rewards}, weights: {weights}"),
        figures=_counts_of_weights,
        since="4.3.2",
        groups=(*RLHF, *MEGATRON_RLHF),
    ),
    Refusal(
        "number-of-reward-plugins",
        f"{_TRAINER}._prepare_rewards",
        ("reward_model_plugin", "reward_model"),
        of_grpo(_other_plugins),
        Text("每个 reward_model 给一个 reward_model_plugin", "give a plugin for each reward_model"),
        Text("{models} 个模型，{plugins} 个插件", "models: {models}, plugins: {plugins}"),
        figures=_counts_of_plugins,
        since="3.10.3",
        groups=RLHF,
    ),
    Refusal(
        "unknown-reward",
        f"{_TRAINER}._prepare_rewards",
        ("reward_funcs",),
        of_grpo(lambda options: _unknown_functions(options) and not has_plugins(options)),
        Text(
            "用 external_plugins 给出定义 {name} 的文件",
            "name the file that defines {name} as external_plugins",
        ),
        Text("没有内置的奖励 {name}", "{name} is no built-in reward"),
        figures=lambda options: {"name": _unknown_functions(options)[0]},
        since="3.10.3",
        groups=RLHF,
    ),
    Refusal(
        "unknown-reward-plugin",
        f"{_TRAINER}._prepare_rewards",
        ("reward_model_plugin",),
        of_grpo(
            lambda options: (
                items(options, "reward_model")
                and _unknown_plugins(options)
                and not has_plugins(options)
            )
        ),
        Text(
            "用 external_plugins 给出定义 {name} 的文件",
            "name the file that defines {name} as external_plugins",
        ),
        Text("没有内置的插件 {name}", "{name} is no built-in plugin"),
        figures=lambda options: {"name": _unknown_plugins(options)[0]},
        since="3.10.3",
        groups=RLHF,
    ),
    Refusal(
        "unknown-grpo-loss",
        f"{_TRAINER}._compute_loss_and_metrics",
        ("loss_type",),
        of_grpo(_unknown_losses),
        Text("loss_type 设为 grpo、bnpo、dr_grpo 等", "write loss_type=grpo, bnpo, dr_grpo, …"),
        Text("GRPO 没有损失 {name}", "GRPO has no loss {name}"),
        figures=lambda options: {"name": _unknown_losses(options)[0]},
        since="3.8.3",
        groups=(*RLHF, *MEGATRON_RLHF),
    ),
)
