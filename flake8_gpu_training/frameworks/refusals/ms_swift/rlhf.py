"""What ``swift rlhf`` refuses, whatever the algorithm, and of DPO, KTO and GKD."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.ms_swift._asked import (
    RLHF,
    batch,
    drop,
    items,
    setting,
    tuner,
    world,
)
from flake8_gpu_training.language import Text

_ARGUMENTS = "swift/arguments/rlhf_args.py, RLHFArguments"
_PIPELINE = "swift/pipelines/train/rlhf.py, SwiftRLHF"
_DPO = "swift/rlhf_trainers/dpo_trainer.py, DPOTrainer"


# --- losses ---------------------------------------------------------------------------

_DPO_LOSSES = frozenset(
    """
    sigmoid robust exo_pair hinge ipo bco_pair sppo_hard nca_pair aot_unpaired aot apo_zero apo_down
    discopop sft
    """.split()  # noqa: SIM905
)


def _mixed_losses(options: Options) -> bool:
    return len(items(options, "loss_type")) > 1 and options["rlhf_type"] != "dpo"


def _weights_of_one_loss(options: Options) -> bool:
    weighted = bool(items(options, "loss_weights")) and bool(items(options, "loss_type"))
    return weighted and options["rlhf_type"] != "dpo"


def _other_number_of_weights(options: Options) -> bool:
    weights, losses = items(options, "loss_weights"), items(options, "loss_type")
    if not weights or not losses or options["rlhf_type"] != "dpo":
        return False
    return len(weights) != len(losses)


def _numbers_of_losses(options: Options) -> Mapping[str, Any]:
    return {
        "weights": len(items(options, "loss_weights")),
        "losses": len(items(options, "loss_type")),
    }


def _unknown_losses(options: Options) -> list[Any]:
    if options["rlhf_type"] != "dpo":
        return []
    return [one for one in items(options, "loss_type") if one not in _DPO_LOSSES]


def _has_pair_loss(options: Options) -> bool:
    return options["rlhf_type"] == "dpo" and "kto_pair" in items(options, "loss_type")


# --- models beside the trained one ----------------------------------------------------


def _useless_reference(options: Options) -> bool:
    kind = options["rlhf_type"]
    if options["ref_model"] is None or (kind == "grpo" and options["beta"] == 0):
        return False
    return not (kind in ("dpo", "kto", "ppo", "grpo") and tuner(options) == "full")


def _several_references(options: Options) -> bool:
    return len(items(options, "ref_adapters")) > 1


def _reference_adapter_of_other(options: Options) -> bool:
    others = options["rlhf_type"] not in ("dpo", "kto", "grpo")
    return len(items(options, "ref_adapters")) == 1 and others


def _reward_lists(options: Options) -> dict[str, int]:
    """Lengths of what describes the reward models, of those that are given."""
    names = ("reward_model_type", "reward_template", "reward_model_revision")
    return {name: count for name in names if (count := len(items(options, name)))}


def _uneven_rewards(options: Options) -> bool:
    models = len(items(options, "reward_model"))
    return bool(models) and any(count != models for count in _reward_lists(options).values())


def _uneven_names(options: Options) -> Mapping[str, Any]:
    models = len(items(options, "reward_model"))
    name, count = next((n, c) for n, c in _reward_lists(options).items() if c != models)
    return {"name": name, "count": count, "models": models}


def _several_rewards(options: Options) -> bool:
    return options["rlhf_type"] != "grpo" and len(items(options, "reward_model")) > 1


# --- memory and batches ---------------------------------------------------------------


def _unpadded(options: Options) -> bool:
    packs = options["packing"] or options["padding_free"]
    return bool(packs) and options["rlhf_type"] not in ("grpo", "dpo", "kto", "gkd")


def _undivided_sequences(options: Options) -> bool:
    return options["sequence_parallel_size"] > 1 and options["rlhf_type"] not in ("grpo", "dpo")


def _batch_of_one(options: Options) -> bool:
    if options["rlhf_type"] != "kto" or items(options, "loss_type") == ["apo_zero_unpaired"]:
        return False
    if options["gradient_accumulation_steps"] is None:
        return False  # the default makes a batch of 16
    accumulated = batch(options, "gradient_accumulation_steps")
    return world(options) * batch(options, "per_device_train_batch_size") * accumulated <= 1


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "several-losses",
        f"{_ARGUMENTS}._process_loss_type",
        ("loss_type", "rlhf_type"),
        _mixed_losses,
        Text("loss_type 只保留一个", "keep one loss_type"),
        Text("只有 DPO 可以混合多个损失", "only DPO mixes several losses"),
        since="3.7.3",
        groups=RLHF,
    ),
    Refusal(
        "weights-of-one-loss",
        f"{_ARGUMENTS}._process_loss_type",
        ("loss_weights", "rlhf_type"),
        _weights_of_one_loss,
        drop("loss_weights"),
        Text("loss_weights 只用于 DPO", "loss_weights are for DPO only"),
        since="3.7.3",
        groups=RLHF,
    ),
    Refusal(
        "number-of-loss-weights",
        f"{_ARGUMENTS}._process_loss_type",
        ("loss_weights", "loss_type"),
        _other_number_of_weights,
        Text("每个 loss_type 给一个 loss_weights", "give a weight for each loss_type"),
        Text("{losses} 个损失，{weights} 个权重", "losses: {losses}, weights: {weights}"),
        figures=_numbers_of_losses,
        since="3.7.3",
        groups=RLHF,
    ),
    Refusal(
        "removed-pair-loss",
        f"{_DPO}.__init__",
        ("loss_type",),
        _has_pair_loss,
        Text("改用 rlhf_type=kto", "write rlhf_type=kto"),
        Text("DPO 已无 kto_pair 损失", "DPO has the loss kto_pair no more"),
        since="3.7.3",
        groups=RLHF,
    ),
    Refusal(
        "unknown-dpo-loss",
        f"{_DPO}.dpo_loss",
        ("loss_type",),
        lambda options: any(one != "kto_pair" for one in _unknown_losses(options)),
        Text("loss_type 设为 sigmoid 等 DPO 损失", "write loss_type=sigmoid or another of DPO's"),
        Text("DPO 没有损失 {loss}", "DPO has no loss {loss}"),
        figures=lambda options: {"loss": _unknown_losses(options)[0]},
        since="4.0.4",
        groups=RLHF,
    ),
    Refusal(
        "useless-reference",
        f"{_ARGUMENTS}.__post_init__",
        ("ref_model",),
        _useless_reference,
        drop("ref_model"),
        Text(
            "只有 dpo、kto、ppo、grpo 的全参训练接受 ref_model",
            "only full tuning by dpo, kto, ppo or grpo takes one",
        ),
        since="3.2.2",
        groups=RLHF,
    ),
    Refusal(
        "several-reference-adapters",
        f"{_PIPELINE}.prepare_model",
        ("ref_adapters",),
        _several_references,
        Text("ref_adapters 只保留一个", "keep one of the ref_adapters"),
        Text("只接受一个参考适配器", "one adapter makes the reference"),
        since="3.8.3",
        groups=RLHF,
    ),
    Refusal(
        "reference-adapter-of-other",
        f"{_PIPELINE}.prepare_model",
        ("ref_adapters", "rlhf_type"),
        _reference_adapter_of_other,
        drop("ref_adapters"),
        Text(
            "只用于 dpo、kto、grpo，不用于 {rlhf_type}",
            "they are for dpo, kto and grpo, not for {rlhf_type}",
        ),
        since="3.8.3",
        groups=RLHF,
    ),
    Refusal(
        "lists-of-reward-models",
        f"{_PIPELINE}._prepare_model_tokenizer",
        ("reward_model_type", "reward_template", "reward_model_revision", "reward_model"),
        _uneven_rewards,
        Text("每个 reward_model 给一个 {name}", "give a {name} for each reward_model"),
        Text("{models} 个模型，{count} 个 {name}", "models: {models}, given: {count}"),
        figures=_uneven_names,
        since="3.5.3",
        groups=RLHF,
    ),
    Refusal(
        "several-reward-models",
        f"{_PIPELINE}._prepare_model_tokenizer",
        ("reward_model", "rlhf_type"),
        _several_rewards,
        Text("reward_model 只保留一个", "keep one reward_model"),
        Text("只有 GRPO 接受多个奖励模型", "only GRPO takes several"),
        since="3.5.3",
        groups=RLHF,
    ),
    Refusal(
        "padding-free-algorithms",
        f"{_ARGUMENTS}._check_padding_free",
        ("packing", "padding_free", "rlhf_type"),
        _unpadded,
        drop("packing, padding_free"),
        Text("{rlhf_type} 不支持", "{rlhf_type} does not support them"),
        since="3.8.3",
        groups=RLHF,
    ),
    Refusal(
        "sequence-parallel-algorithms",
        f"{_ARGUMENTS}._check_sequence_parallel",
        ("sequence_parallel_size", "rlhf_type"),
        _undivided_sequences,
        Text("sequence_parallel_size 设为 1", "write sequence_parallel_size=1"),
        Text("{rlhf_type} 不支持序列并行", "{rlhf_type} has no sequence parallelism"),
        write=setting(sequence_parallel_size=1),
        since="3.8.3",
        groups=RLHF,
    ),
    Refusal(
        "kto-batch-of-one",
        "swift/pipelines/train/kto.py, prepare_kto_dataset",
        ("per_device_train_batch_size", "gradient_accumulation_steps"),
        _batch_of_one,
        Text(
            "per_device_train_batch_size 或 gradient_accumulation_steps 设为大于 1",
            "give per_device_train_batch_size or gradient_accumulation_steps more than 1",
        ),
        Text("KTO 的全局批大小必须大于 1", "KTO needs a global batch of more than one sample"),
        write=setting(gradient_accumulation_steps=16),
        groups=RLHF,
    ),
)
