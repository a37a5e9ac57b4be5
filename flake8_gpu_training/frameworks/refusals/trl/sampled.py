"""What GRPO and its kin, which sample several completions of a prompt, refuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.reading import parsed
from flake8_gpu_training.frameworks.refusals import fields
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.refusals.transformers.trainer import passed, trainer_of
from flake8_gpu_training.language import Text

_CONFIG = "trl/trainer/grpo_config.py, GRPOConfig.__post_init__"
_TRAINER = "trl/trainer/grpo_trainer.py, GRPOTrainer.__init__"
_OF_GRPO = (
    "GRPOConfig",
    "DPPOConfig",
    "GFPOConfig",
    "GMPOConfig",
    "GRPOWithReplayBufferConfig",
    "MiniLLMConfig",
    "PAPOConfig",
)
_SAMPLING = (*_OF_GRPO, "RLOOConfig")
_FAMILY = (*_SAMPLING, "SDFTConfig", "SDPOConfig")


# --- batches ----------------------------------------------------------------------------


def _step(options: Options) -> int:
    """Completions of one step over all processes."""
    return int(options["per_device_train_batch_size"]) * options.world_size


def _are_both_given(options: Options) -> bool:
    names = ("generation_batch_size", "steps_per_generation")
    return all(options[name] is not None for name in names)


def _generated(options: Options) -> int:
    """Completions that are generated at a time."""
    if _are_both_given(options):
        raise UndecidedError("generation_batch_size")
    if options["generation_batch_size"] is not None:
        return int(options["generation_batch_size"])
    steps = options["steps_per_generation"] or options["gradient_accumulation_steps"]
    return _step(options) * int(steps)


def _is_part_of_a_step(options: Options) -> bool:
    if options["generation_batch_size"] is None or _are_both_given(options):
        return False
    return _generated(options) % _step(options) != 0


def _splits_groups(options: Options) -> bool:
    return not _is_part_of_a_step(options) and _generated(options) % _group(options) != 0


def _older_batch(options: Options) -> int:
    """Completions of a step up to TRL 0.16, of an update in 0.17."""
    release = parsed(options.accepted.parts[0].at_hand.version)
    steps = options["gradient_accumulation_steps"] if release >= parsed("0.17") else 1
    return _step(options) * int(steps)


def _splits_older_groups(options: Options) -> bool:
    return _group(options) < 2 or _older_batch(options) % _group(options) != 0


def _group(options: Options) -> int:
    return int(options["num_generations"])


def _judged_group(options: Options) -> int:
    if options.takes("num_generations_eval") and options["num_generations_eval"]:
        return int(options["num_generations_eval"])
    return _group(options)


def _judged(options: Options) -> int:
    return int(options["per_device_eval_batch_size"]) * options.world_size


def _splits_judged_groups(options: Options) -> bool:
    if options["eval_strategy"] == "no":
        return False
    return _judged(options) % _judged_group(options) != 0


def _whole_groups(options: Options) -> Mapping[str, Any]:
    """A number of generations that divides the batch."""
    batch, wanted = _generated(options), _group(options)
    fitting = [count for count in range(2, batch + 1) if batch % count == 0]
    return {"num_generations": min(fitting, key=lambda n: abs(n - wanted))} if fitting else {}


_BATCHES = (
    Refusal(
        "generation-batch-given-twice",
        _CONFIG,
        ("steps_per_generation", "generation_batch_size"),
        _are_both_given,
        Text(
            "只保留 generation_batch_size 或 steps_per_generation",
            "drop generation_batch_size or steps_per_generation",
        ),
        Text("两者相互决定", "each of the two decides the other"),
        groups=_FAMILY,
        since="0.18.2",
    ),
    Refusal(
        "generation-batch-of-part-steps",
        _CONFIG,
        ("generation_batch_size", "per_device_train_batch_size"),
        _is_part_of_a_step,
        Text(
            "generation_batch_size 设为 {step} 的倍数",
            "make generation_batch_size a multiple of {step}",
        ),
        Text(
            "每步 {step} 条（每卡批大小×进程数），而它是 {generated}",
            "a step takes {step} (batch size a GPU x processes), and it is {generated}",
        ),
        figures=lambda options: {"step": _step(options), "generated": _generated(options)},
        groups=_FAMILY,
        since="0.20.0",
    ),
    Refusal(
        "generation-batch-of-part-groups",
        _CONFIG,
        ("num_generations", "generation_batch_size", "per_device_train_batch_size"),
        _splits_groups,
        Text(
            "让一次生成的条数（{generated}）是 num_generations（{num_generations}）的倍数：增大"
            " per_device_train_batch_size，或减小 num_generations",
            "make the completions of one generation ({generated}) a multiple of num_generations "
            "({num_generations}), by a larger per_device_train_batch_size or fewer generations",
        ),
        Text(
            "一次生成 {generated} 条，不是完整的组",
            "{generated} completions are generated at a time, which have to be whole groups",
        ),
        figures=lambda options: {"generated": _generated(options)},
        write=_whole_groups,
        groups=_FAMILY,
        since="0.18.2",
    ),
    Refusal(
        "evaluation-of-part-groups",
        _CONFIG,
        ("per_device_eval_batch_size", "num_generations_eval", "num_generations"),
        _splits_judged_groups,
        Text(
            "per_device_eval_batch_size×进程数应是 {group} 的倍数",
            "make per_device_eval_batch_size x processes a multiple of {group}",
        ),
        Text(
            "评估批为 {judged} 条，每组 {group} 条",
            "an evaluation batch has {judged} completions, a group {group}",
        ),
        figures=lambda options: {"judged": _judged(options), "group": _judged_group(options)},
        groups=_FAMILY,
        since="0.22.2",
    ),
    Refusal(
        "older-batch-of-part-groups",
        _TRAINER,
        ("num_generations", "per_device_train_batch_size"),
        _splits_older_groups,
        Text(
            "让每步条数（{batch}）是 num_generations（{num_generations}，至少为 2）的倍数：增大"
            " per_device_train_batch_size，或减小 num_generations",
            "make the completions of a step ({batch}) a multiple of num_generations "
            "({num_generations}, at least 2), by a larger per_device_train_batch_size or fewer "
            "generations",
        ),
        Text(
            "每步 {batch} 条，不是完整的组",
            "a step has {batch} completions, which have to be whole groups",
        ),
        figures=lambda options: {"batch": _older_batch(options)},
        raiser="GRPOTrainer",
        groups=("GRPOConfig",),
        since="0.15.2",
        until="0.17.0",
    ),
    Refusal(
        "one-generation",
        _CONFIG,
        ("num_generations",),
        lambda options: _group(options) < 2,
        Text("num_generations 至少设为 2", "give num_generations 2 or more"),
        Text("优势在一组之内比较", "advantages compare the completions of a group"),
        write=lambda options: {"num_generations": 8},
        groups=_SAMPLING,
        since="0.18.2",
    ),
    Refusal(
        "batch-found-with-groups",
        _CONFIG,
        ("auto_find_batch_size",),
        lambda options: options["auto_find_batch_size"] is True,
        Text(
            "去掉 auto_find_batch_size，改小 per_device_train_batch_size",
            "drop auto_find_batch_size and give a smaller per_device_train_batch_size",
        ),
        Text("自动减半会拆散各组", "halving the batch would split the groups"),
        write=lambda options: {"auto_find_batch_size": False},
        groups=("GRPOConfig", "GMPOConfig", "RLOOConfig"),
        since="1.9.2",
    ),
)

# --- loss and rewards -------------------------------------------------------------------


def _hub_without_log(options: Options) -> bool:
    return options["log_completions_hub_repo"] is not None and not options["log_completions"]


def _clip(options: Options) -> tuple[Any, Any]:
    cap = options["vllm_importance_sampling_cap"]
    largest = options["vllm_importance_sampling_clip_max"] if cap is None else cap
    return options["vllm_importance_sampling_clip_min"], largest


def _clips_nothing_between(options: Options) -> bool:
    least, largest = _clip(options)
    return least is not None and largest is not None and least >= largest


def _truncates_nowhere(options: Options) -> bool:
    mode = options["vllm_importance_sampling_mode"]
    corrects = options["vllm_importance_sampling_correction"] is True
    return corrects and str(mode).endswith("_truncate") and _clip(options) == (None, None)


def _uses_liger(options: Options) -> bool:
    name = "use_liger_loss" if options.takes("use_liger_loss") else "use_liger_kernel"
    return options[name] is True


def _two_sided_in_liger(options: Options) -> bool:
    return options["delta"] is not None and _uses_liger(options)


def _vespo_by_sequence(options: Options) -> bool:
    return (
        options["loss_type"] == "vespo"
        and options["use_vllm"] is True
        and options["vllm_importance_sampling_correction"] is True
        and options["vllm_importance_sampling_mode"] not in ("token_truncate", "token_mask")
    )


def _follows_no_reference(options: Options) -> bool:
    return options["sync_ref_model"] is True and options["beta"] == 0.0


def _rewards(options: Options) -> int:
    """How many reward functions the Trainer is given."""
    given = passed(trainer_of(options), "reward_funcs")
    if given is None or not known(given.value) or not isinstance(given.value, (list, tuple)):
        raise UndecidedError("reward_funcs")
    return len(given.value)


def _weighs_others(options: Options) -> bool:
    weights = options["reward_weights"]
    return isinstance(weights, list) and len(weights) != _rewards(options)


_SCALES = ("group", "batch", "none", "true", "false")


def _no_scale(options: Options) -> bool:
    return str(options["scale_rewards"]).lower() not in _SCALES


_LOSSES = (
    Refusal(
        "completions-pushed-unlogged",
        _CONFIG,
        ("log_completions_hub_repo", "log_completions"),
        _hub_without_log,
        Text("设置 log_completions=True", "set log_completions to true"),
        Text(
            "log_completions_hub_repo 上传的正是它",
            "log_completions_hub_repo has nothing to upload without it",
        ),
        write=lambda options: {"log_completions": True},
        groups=("GRPOConfig", "GMPOConfig"),
        since="0.28.0",
    ),
    Refusal(
        "clip-range-empty",
        _CONFIG,
        ("vllm_importance_sampling_clip_min", "vllm_importance_sampling_clip_max"),
        _clips_nothing_between,
        Text(
            "vllm_importance_sampling_clip_min 设为小于 clip_max（{largest}）",
            "give vllm_importance_sampling_clip_min less than clip_max ({largest})",
        ),
        Text("{least} 不小于它", "{least} is not"),
        figures=lambda options: dict(zip(("least", "largest"), _clip(options))),
        groups=("GRPOConfig", "GMPOConfig"),
        since="1.6.0",
    ),
    Refusal(
        "truncation-without-clip",
        _CONFIG,
        ("vllm_importance_sampling_mode", "vllm_importance_sampling_clip_max"),
        _truncates_nowhere,
        Text(
            "设置 vllm_importance_sampling_clip_max",
            "set vllm_importance_sampling_clip_max",
        ),
        Text(
            "vllm_importance_sampling_mode={vllm_importance_sampling_mode} 需要上限或下限",
            "vllm_importance_sampling_mode={vllm_importance_sampling_mode} needs a bound",
        ),
        write=lambda options: {"vllm_importance_sampling_clip_max": 3.0},
        groups=("GRPOConfig", "GMPOConfig"),
        since="1.6.0",
    ),
    Refusal(
        "two-sided-loss-in-liger",
        _CONFIG,
        ("delta", "use_liger_kernel", "use_liger_loss"),
        _two_sided_in_liger,
        Text("去掉 delta 或 Liger", "drop delta or the Liger kernels"),
        Text("Liger 的损失没有双侧裁剪", "Liger's loss does not clip on two sides"),
        groups=_OF_GRPO,
        since="0.18.2",
        until="1.3.0",
    ),
    Refusal(
        "vespo-by-sequence",
        _TRAINER,
        ("vllm_importance_sampling_mode", "loss_type"),
        _vespo_by_sequence,
        Text(
            "vllm_importance_sampling_mode 设为 token_truncate 或 token_mask",
            "set vllm_importance_sampling_mode to token_truncate or token_mask",
        ),
        Text(
            "loss_type=vespo 按记号加权，不支持 {vllm_importance_sampling_mode}",
            "loss_type=vespo weighs tokens and does not take {vllm_importance_sampling_mode}",
        ),
        write=lambda options: {"vllm_importance_sampling_mode": "token_truncate"},
        groups=("GRPOConfig",),
        since="1.0.0",
    ),
    Refusal(
        "reference-of-no-weight",
        _TRAINER,
        ("sync_ref_model", "beta"),
        _follows_no_reference,
        Text(
            "beta 设为大于 0，或去掉 sync_ref_model",
            "give beta more than 0, or drop sync_ref_model",
        ),
        Text("beta=0 时没有参考模型", "with beta=0 there is no reference model"),
        write=lambda options: {"sync_ref_model": False},
        groups=("GRPOConfig", "RLOOConfig"),
        since="0.28.0",
    ),
    Refusal(
        "reward-weights-of-others",
        _TRAINER,
        ("reward_weights",),
        _weighs_others,
        Text("给出 {rewards} 个 reward_weights", "give {rewards} reward_weights"),
        Text(
            "Trainer 有 {rewards} 个奖励函数，权重是 {reward_weights}",
            "the Trainer has {rewards} reward functions, and the weights are {reward_weights}",
        ),
        figures=lambda options: {"rewards": _rewards(options)},
        raiser="GRPOTrainer",
        groups=("GRPOConfig", "RLOOConfig"),
        since="0.22.2",
    ),
    fields.among(
        "GRPOConfig",
        "loss_type",
        ("grpo", "dr_grpo", "bnpo", "dapo", "cispo", "sapo", "luspo", "vespo"),
        "trl/trainer/grpo_trainer.py, GRPOTrainer._compute_loss",
        since="0.17.0",
    ),
    fields.among(
        "GRPOConfig",
        "importance_sampling_level",
        ("token", "sequence"),
        "trl/trainer/grpo_trainer.py, GRPOTrainer._compute_loss",
        since="0.20.0",
    ),
    fields.among(
        "GRPOConfig",
        "multi_objective_aggregation",
        ("sum_then_normalize", "normalize_then_sum"),
        "trl/trainer/grpo_trainer.py, GRPOTrainer._generate_and_score_completions",
        since="0.27.2",
    ),
    Refusal(
        "unknown-scale-of-rewards",
        "trl/trainer/grpo_trainer.py, GRPOTrainer._generate_and_score_completions",
        ("scale_rewards",),
        _no_scale,
        Text("scale_rewards 取 group、batch 或 none", "give scale_rewards group, batch or none"),
        Text("不能取 {scale_rewards}", "it cannot be {scale_rewards}"),
        groups=("GRPOConfig",),
        since="0.22.2",
    ),
)

REFUSALS: tuple[Refusal, ...] = (*_BATCHES, *_LOSSES)
