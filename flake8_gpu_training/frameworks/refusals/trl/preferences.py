"""What DPO and KTO refuse."""

from __future__ import annotations

from typing import Any

from flake8_gpu_training.facts import Location
from flake8_gpu_training.frameworks.refusals import fields
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.transformers.trainer import passed, trainer_of
from flake8_gpu_training.language import Text

_CONFIG = "trl/trainer/dpo_config.py, DPOConfig.__post_init__"
_TRAINER = "trl/trainer/dpo_trainer.py, DPOTrainer.__init__"
_KTO = "trl/trainer/kto_trainer.py, KTOTrainer.__init__"
_DPO = ("DPOConfig",)

_LOSSES = (
    "sigmoid",
    "hinge",
    "ipo",
    "exo_pair",
    "nca_pair",
    "robust",
    "bco_pair",
    "sppo_hard",
    "aot",
    "aot_unpaired",
    "aot_pair",
    "apo_zero",
    "apo_down",
    "discopop",
    "sft",
    "sigmoid_norm",
)
_DIVERGING = frozenset(
    "sigmoid sigmoid_norm hinge ipo exo_pair robust discopop sft".split()  # noqa: SIM905
)


def _losses(options: Options) -> list[str]:
    given = options["loss_type"]
    return [str(one) for one in (given if isinstance(given, list) else [given])]


def _weighs_others(options: Options) -> bool:
    weights = options["loss_weights"]
    return isinstance(weights, list) and len(weights) != len(_losses(options))


def _unknown_losses(options: Options) -> list[str]:
    return [one for one in _losses(options) if one not in _LOSSES]


def _no_divergence(options: Options) -> bool:
    return options["f_divergence_type"] != "reverse_kl" and not set(_losses(options)) <= _DIVERGING


def _weighs_sorted(options: Options) -> bool:
    return options["use_weighting"] is True and bool(
        {"aot", "aot_unpaired"} & set(_losses(options))
    )


def _smooths_nothing(options: Options) -> bool:
    return "exo_pair" in _losses(options) and options["label_smoothing"] == 0


def _follows_what_is_fixed(options: Options) -> bool:
    return options["sync_ref_model"] is True and options["precompute_ref_log_probs"] is True


def _refers_to_itself(options: Options) -> bool:
    trainer = trainer_of(options)
    reference, model = passed(trainer, "ref_model"), passed(trainer, "model")
    if trainer.method not in ("DPOTrainer", "KTOTrainer") or reference is None or model is None:
        return False
    return reference.text.isidentifier() and reference.text == model.text


def _of_trainer(options: Options) -> Location:
    return trainer_of(options).location


def _compares(options: Options) -> bool:
    """Whether the loss estimates a divergence between the samples of a batch."""
    return bool(options["loss_type"] == "kto")


def _compares_one(options: Options) -> bool:
    return _compares(options) and options["per_device_train_batch_size"] <= 1


def _compares_in_disorder(options: Options) -> bool:
    return _compares(options) and options["train_sampling_strategy"] != "sequential"


def _batch(since: str, until: str, name: str) -> Refusal:
    return Refusal(
        name,
        _KTO,
        ("per_device_train_batch_size",),
        _compares_one,
        Text(
            "per_device_train_batch_size 至少设为 2",
            "give per_device_train_batch_size 2 or more",
        ),
        Text("KTO 在一批样本之间估计 KL", "KTO estimates its KL between the samples of a batch"),
        write=lambda options: {"per_device_train_batch_size": 2},
        groups=("KTOConfig",),
        since=since,
        until=until,
    )


def _shown(options: Options) -> dict[str, Any]:
    return {"losses": ", ".join(_losses(options)), "unknown": ", ".join(_unknown_losses(options))}


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "loss-weights-of-others",
        _CONFIG,
        ("loss_weights", "loss_type"),
        _weighs_others,
        Text(
            "loss_weights 与 loss_type 一样多", "give as many loss_weights as loss_type has losses"
        ),
        Text(
            "loss_type 是 {losses}，权重是 {loss_weights}",
            "loss_type is {losses}, and the weights are {loss_weights}",
        ),
        figures=_shown,
        groups=_DPO,
        since="0.20.0",
    ),
    Refusal(
        "unknown-loss",
        "trl/trainer/dpo_trainer.py, DPOTrainer._compute_loss",
        ("loss_type",),
        lambda options: bool(_unknown_losses(options)),
        Text("换用 sigmoid、ipo、apo_zero 等", "choose sigmoid, ipo, apo_zero or the like"),
        Text("DPO 没有损失 {unknown}", "DPO has no loss {unknown}"),
        figures=_shown,
        groups=_DPO,
        since="0.20.0",
    ),
    fields.among(
        "DPOConfig",
        "f_divergence_type",
        ("reverse_kl", "forward_kl", "js_divergence", "alpha_divergence"),
        "trl/trainer/dpo_trainer.py, DPOTrainer._compute_loss",
        since="0.29.1",
    ),
    fields.among(
        "DPOConfig",
        "truncation_mode",
        ("keep_start", "keep_end"),
        "trl/trainer/dpo_trainer.py, DataCollatorForPreference.torch_call",
        when=lambda options: options["max_length"] is not None,
        since="0.29.1",
    ),
    Refusal(
        "loss-without-divergence",
        _TRAINER,
        ("f_divergence_type", "loss_type"),
        _no_divergence,
        Text("去掉 f_divergence_type", "drop f_divergence_type"),
        Text(
            "损失 {losses} 只有 reverse_kl",
            "the loss {losses} has none but reverse_kl",
        ),
        figures=_shown,
        write=lambda options: {"f_divergence_type": "reverse_kl"},
        groups=_DPO,
        since="1.10.0",
    ),
    Refusal(
        "weighted-after-sorting",
        _TRAINER,
        ("use_weighting", "loss_type"),
        _weighs_sorted,
        Text("去掉 use_weighting", "drop use_weighting"),
        Text("损失 {losses} 会打乱样本顺序", "the loss {losses} sorts the samples"),
        figures=_shown,
        write=lambda options: {"use_weighting": False},
        groups=_DPO,
        since="0.29.1",
    ),
    Refusal(
        "exo-without-smoothing",
        _TRAINER,
        ("label_smoothing", "loss_type"),
        _smooths_nothing,
        Text("设置 label_smoothing=1e-3", "set label_smoothing to 1e-3"),
        Text("损失 exo_pair 需要大于 0 的值", "the loss exo_pair needs more than 0"),
        write=lambda options: {"label_smoothing": 1e-3},
        groups=_DPO,
        since="0.29.1",
    ),
    Refusal(
        "synchronised-and-precomputed",
        _TRAINER,
        ("sync_ref_model", "precompute_ref_log_probs"),
        _follows_what_is_fixed,
        Text(
            "只保留 sync_ref_model 或 precompute_ref_log_probs",
            "drop sync_ref_model or precompute_ref_log_probs",
        ),
        Text("预先计算的前提是参考模型不变", "what is computed before needs a fixed reference"),
        write=lambda options: {"sync_ref_model": False},
        groups=_DPO,
        since="0.29.1",
    ),
    Refusal(
        "synchronised-and-precomputed-kto",
        _KTO,
        ("sync_ref_model", "precompute_ref_log_probs"),
        _follows_what_is_fixed,
        Text(
            "只保留 sync_ref_model 或 precompute_ref_log_probs",
            "drop sync_ref_model or precompute_ref_log_probs",
        ),
        Text("预先计算的前提是参考模型不变", "what is computed before needs a fixed reference"),
        write=lambda options: {"sync_ref_model": False},
        groups=("KTOConfig",),
        since="1.8.0",
    ),
    Refusal(
        "reference-is-the-model",
        _TRAINER,
        (),
        _refers_to_itself,
        Text("去掉 ref_model", "drop ref_model"),
        Text(
            "它与 model 是同一个对象；省略时会自动复制",
            "it is the object that is trained; without it, a copy is made",
        ),
        at=_of_trainer,
        raiser="the Trainer",
        groups=("DPOConfig", "KTOConfig"),
        since="0.11.4",
    ),
    _batch("1.8.0", "", "kto-of-one"),
    _batch("0.12.2", "0.25.1", "kto-of-one-before"),
    Refusal(
        "kto-in-disorder",
        _KTO,
        ("train_sampling_strategy",),
        _compares_in_disorder,
        Text("去掉 train_sampling_strategy", "drop train_sampling_strategy"),
        Text(
            "KTO 的 KL 按固定顺序的邻样本计算",
            "KTO pairs each sample with its neighbour in a fixed order",
        ),
        write=lambda options: {"train_sampling_strategy": "sequential"},
        groups=("KTOConfig",),
        since="1.8.0",
    ),
)
