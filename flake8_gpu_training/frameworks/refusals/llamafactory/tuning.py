"""Methods of fine-tuning that do not go together (hparams/finetuning_args.py)."""

from __future__ import annotations

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.llamafactory.asked import (
    HPARAMS,
    LEAST,
    choices,
    given,
    no_choice,
    on,
)
from flake8_gpu_training.language import Text

_SOURCE = f"{HPARAMS}/finetuning_args.py, FinetuningArguments.__post_init__"
_LEAN = ("use_galore", "use_apollo", "use_badam")
_BITS = (None, 8, 4)


def _has_reference(options: Options) -> bool:
    """Whether DPO compares with a reference model."""
    return options["stage"] == "dpo" and options["pref_loss"] not in ("orpo", "simpo")


def _pissa_in_preference(options: Options) -> bool:
    return on(options, "pissa_init") and (
        options["stage"] in ("ppo", "kto") or _has_reference(options)
    )


def _lean(options: Options) -> list[str]:
    return [name for name in _LEAN if on(options, name)]


def _lora_only(name: str, since: str = "0.8.3") -> Refusal:
    """A setting that asks for LoRA."""
    is_switch = name != "loraplus_lr_ratio"

    def holds(options: Options) -> bool:
        asked = on(options, name) if is_switch else given(options, name)
        return asked and options["finetuning_type"] != "lora"

    return Refusal(
        f"{name.replace('_', '-')}-without-lora",
        _SOURCE,
        (name, "finetuning_type"),
        holds,
        Text(
            f"删除 {name}，或 finetuning_type 设为 lora",
            f"drop {name} or write finetuning_type=lora",
        ),
        Text(
            f"{name} 只用于 LoRA，而 finetuning_type={{finetuning_type}}",
            f"{name} is for LoRA alone and finetuning_type is {{finetuning_type}}",
        ),
        write=lambda options: {name: False} if is_switch else {},
        since=since,
    )


def _quantized(name: str) -> Refusal:
    """A further model of which only some widths are known."""
    return Refusal(
        name.replace("_", "-"),
        _SOURCE,
        (name,),
        lambda options: options[name] not in _BITS,
        Text(f"{name} 设为 4 或 8，或删除", f"write {name}=4 or 8, or drop it"),
        Text(
            f"不支持 {{{name}}} 位量化",
            f"{{{name}}}-bit quantization is none of the two that are known",
        ),
    )


def _reward_type(kind: str, since: str = "") -> Refusal:
    def holds(options: Options) -> bool:
        return bool(
            options["stage"] == "ppo"
            and options["reward_model_type"] == kind
            and options["finetuning_type"] != kind
        )

    return Refusal(
        f"reward-model-of-{kind}",
        _SOURCE,
        ("reward_model_type", "finetuning_type"),
        holds,
        Text(
            f"reward_model_type 设为 full 或 api，或 finetuning_type 设为 {kind}",
            f"write reward_model_type=full or api, or finetuning_type={kind}",
        ),
        Text(
            f"{kind} 形式的奖励模型是适配器，finetuning_type={{finetuning_type}} 无处加载",
            f"a reward model of type {kind} is an adapter, which finetuning_type="
            "{finetuning_type} does not load",
        ),
        since=since,
    )


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "finetuning-type",
        _SOURCE,
        ("finetuning_type",),
        lambda options: no_choice(options, "finetuning_type"),
        Text("finetuning_type 改为 {known} 之一", "give finetuning_type one of {known}"),
        Text("没有 {finetuning_type} 这种微调方法", "there is no method {finetuning_type}"),
        figures=lambda options: {"known": choices(options, "finetuning_type")},
    ),
    _quantized("ref_model_quantization_bit"),
    _quantized("reward_model_quantization_bit"),
    Refusal(
        "ppo-without-reward-model",
        _SOURCE,
        ("reward_model", "stage"),
        lambda options: options["stage"] == "ppo" and options["reward_model"] is None,
        Text("设置 reward_model", "name the reward_model"),
        Text("stage=ppo 需要奖励模型", "stage=ppo needs a reward model"),
    ),
    _reward_type("lora"),
    _reward_type("oft", "0.9.4"),
    Refusal(
        "label-smoothing-of-other-loss",
        _SOURCE,
        ("dpo_label_smoothing", "pref_loss"),
        lambda options: (
            options["stage"] == "dpo"
            and options["pref_loss"] != "sigmoid"
            and options["dpo_label_smoothing"] > LEAST
        ),
        Text(
            "删除 dpo_label_smoothing，或 pref_loss 设为 sigmoid",
            "drop dpo_label_smoothing or write pref_loss=sigmoid",
        ),
        Text(
            "dpo_label_smoothing 只用于 sigmoid 损失，而 pref_loss={pref_loss}",
            "only the sigmoid loss smooths labels and pref_loss is {pref_loss}",
        ),
        write=lambda options: {"dpo_label_smoothing": 0.0},
        since="0.8.0",
    ),
    Refusal(
        "llama-pro-of-full-tuning",
        _SOURCE,
        ("use_llama_pro", "finetuning_type"),
        lambda options: on(options, "use_llama_pro") and options["finetuning_type"] == "full",
        Text(
            "use_llama_pro 与 finetuning_type=freeze 或 lora 一起使用",
            "write finetuning_type=freeze or lora, or drop use_llama_pro",
        ),
        Text(
            "use_llama_pro 只训练扩展出的层",
            "use_llama_pro trains the added layers alone, finetuning_type=full all",
        ),
        write=lambda options: {"finetuning_type": "freeze"},
    ),
    Refusal(
        "lora-with-lean-optimizer",
        _SOURCE,
        (*_LEAN, "finetuning_type"),
        lambda options: options["finetuning_type"] == "lora" and bool(_lean(options)),
        Text(
            "finetuning_type 设为 full，或删除 {lean}", "write finetuning_type=full or drop {lean}"
        ),
        Text("{lean} 不能与 LoRA 一起使用", "{lean} does not go with LoRA"),
        figures=lambda options: {"lean": ", ".join(_lean(options))},
        since="0.8.0",
    ),
    Refusal(
        "galore-of-lora",
        _SOURCE,
        ("use_galore", "finetuning_type"),
        lambda options: on(options, "use_galore") and options["finetuning_type"] == "lora",
        Text(
            "finetuning_type 设为 full，或删除 use_galore",
            "write finetuning_type=full or drop use_galore",
        ),
        Text("use_galore 不能与 LoRA 一起使用", "use_galore does not go with LoRA"),
        until="0.7.1",
    ),
    Refusal(
        "two-lean-optimizers",
        _SOURCE,
        _LEAN,
        lambda options: len(_lean(options)) > 1,
        Text("{lean} 只保留一个", "keep one of {lean}"),
        Text("它们各自替换优化器", "each puts its own optimizer in the place of the trainer's"),
        figures=lambda options: {"lean": ", ".join(_lean(options))},
    ),
    Refusal(
        "pissa-of-preference-training",
        _SOURCE,
        ("pissa_init", "stage"),
        _pissa_in_preference,
        Text("删除 pissa_init", "drop pissa_init"),
        Text(
            "stage={stage} 需要训练前的模型作参考，PiSSA 会改变它",
            "stage={stage} compares with the model as it was, which PiSSA changes",
        ),
        write=lambda options: {"pissa_init": False},
        since="0.8.3",
    ),
    _lora_only("loraplus_lr_ratio", ""),
    _lora_only("use_rslora"),
    _lora_only("use_dora"),
    _lora_only("pissa_init"),
    Refusal(
        "projector-alone-of-other-tuning",
        _SOURCE,
        ("train_mm_proj_only", "finetuning_type"),
        lambda options: on(options, "train_mm_proj_only") and options["finetuning_type"] != "full",
        Text(
            "finetuning_type 设为 full，或删除 train_mm_proj_only",
            "write finetuning_type=full or drop train_mm_proj_only",
        ),
        Text(
            "train_mm_proj_only 只用于全参数训练，而 finetuning_type={finetuning_type}",
            "train_mm_proj_only is for full tuning and finetuning_type is {finetuning_type}",
        ),
        write=lambda options: {"finetuning_type": "full"},
        since="0.8.0",
        until="0.9.1",
    ),
)
