"""Settings of a training that do not go together (get_train_args of hparams/parser.py)."""

from __future__ import annotations

from flake8_gpu_training.frameworks.reading import parsed
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.refusals.llamafactory.asked import (
    LEAST,
    PARSER,
    TRAIN,
    TRAIN_ARGS,
    any_on,
    choices,
    evaluates,
    given,
    has_no_evaluation_data,
    no_choice,
    on,
    reports_to,
)
from flake8_gpu_training.language import Text

_TRACKERS = ("wandb", "tensorboard", "trackio", "none")
_FORMER_TRACKERS = ("wandb", "tensorboard")
_LAYERS = "llamafactory/model/model_utils/misc.py, find_expanded_modules"
_GALORE = "llamafactory/train/trainer_utils.py, _create_galore_optimizer"


def _sft_only(name: str, since: str = "") -> Refusal:
    return Refusal(
        f"{name.replace('_', '-')}-of-other-stage",
        TRAIN_ARGS,
        (name, "stage"),
        lambda options: options["stage"] != "sft" and on(options, name),
        Text(f"删除 {name}，或 stage 设为 sft", f"drop {name} or write stage=sft"),
        Text(
            f"{name} 只用于 sft，而 stage={{stage}}",
            f"{name} is for sft alone and stage is {{stage}}",
        ),
        write=lambda options: {name: False},
        groups=TRAIN,
        since=since,
    )


def _without_lora_reward(name: str, since: str = "") -> Refusal:
    def holds(options: Options) -> bool:
        return (
            options["stage"] == "ppo"
            and options["reward_model_type"] == "lora"
            and on(options, name)
        )

    return Refusal(
        f"{name.replace('_', '-')}-with-lora-reward",
        TRAIN_ARGS,
        (name, "reward_model_type"),
        holds,
        Text(
            f"删除 {name}，或 reward_model_type 设为 full",
            f"drop {name} or write reward_model_type=full",
        ),
        Text(
            f"{name} 不支持适配器形式的奖励模型",
            f"{name} does not load a reward model that is an adapter",
        ),
        groups=TRAIN,
        since=since,
    )


def _unknown_tracker(options: Options) -> bool:
    if options["stage"] != "ppo":
        return False
    trackers = reports_to(options)
    return any(one not in _TRACKERS for one in trackers)


def _unknown_first_tracker(options: Options) -> bool:
    if options["stage"] != "ppo":
        return False
    trackers = reports_to(options)
    return bool(trackers) and trackers[0] not in _FORMER_TRACKERS


def _prompted(options: Options) -> bool:
    return any_on(options, "train_on_prompt", "mask_history")


def _needs_evaluation_data(options: Options) -> bool:
    asked = on(options, "do_predict") or evaluates(options)
    return asked and has_no_evaluation_data(options)


def _needs_prediction_data(options: Options) -> bool:
    asked = on(options, "predict_with_generate") and not on(options, "do_predict")
    return asked and not evaluates(options) and has_no_evaluation_data(options)


def _lacks_project(options: Options) -> bool:
    return "trackio" in reports_to(options) and not options["project"]


def _packs_beside_transformers(options: Options) -> bool:
    """Whether Transformers, where it is pinned, is one that neat_packing is refused with."""
    for part in options.accepted.parts:
        if part.distribution == "transformers" and part.at_hand.pinned:
            return on(options, "neat_packing") and parsed(part.at_hand.version) >= (4, 53)
    raise UndecidedError("transformers")


def _uneven_layers(options: Options) -> bool:
    layers = options.run.model.layers
    if not on(options, "use_llama_pro") or layers is None:
        return False
    count = options["freeze_trainable_layers"]
    return options["finetuning_type"] in ("freeze", "lora") and layers % count != 0


def _optimizer(name: str, known: tuple[str, ...]) -> Refusal:
    def holds(options: Options) -> bool:
        asked = on(options, "do_train") and on(options, f"use_{name}")
        return asked and options.is_given("optim") and options["optim"] not in known

    return Refusal(
        f"optimizer-of-{name}",
        _GALORE.replace("galore", name),
        ("optim", f"use_{name}"),
        holds,
        Text("optim 设为 adamw_torch", "write optim=adamw_torch"),
        Text(f"use_{name} 没有对应 {{optim}} 的优化器", f"use_{name} has no {{optim}}"),
        write=lambda options: {"optim": "adamw_torch"},
        groups=TRAIN,
    )


def _accumulated(name: str) -> Refusal:
    def holds(options: Options) -> bool:
        asked = on(options, "do_train") and on(options, f"use_{name}")
        layerwise = asked and on(options, f"{name}_layerwise")
        return layerwise and options["gradient_accumulation_steps"] != 1

    return Refusal(
        f"{name}-layerwise-accumulation",
        _GALORE.replace("galore", name),
        ("gradient_accumulation_steps", f"{name}_layerwise"),
        holds,
        Text("gradient_accumulation_steps 设为 1", "write gradient_accumulation_steps=1"),
        Text(
            f"{name}_layerwise 每次反向后即更新，不能累积",
            f"{name}_layerwise steps in each backward pass and cannot accumulate",
        ),
        write=lambda options: {"gradient_accumulation_steps": 1},
        groups=TRAIN,
    )


def _kt_cannot(name: str) -> Refusal:
    return Refusal(
        f"kt-and-{name.replace('_', '-')}",
        "llamafactory/train/sft/workflow.py, run_sft",
        (name, "use_kt"),
        lambda options: options["stage"] == "sft" and on(options, "use_kt") and on(options, name),
        Text(f"删除 {name}", f"drop {name}"),
        Text(f"KTransformers 不支持 {name}", f"use_kt does not go with {name}"),
        write=lambda options: {name: False},
        groups=TRAIN,
        since="0.9.4",
    )


def _ppo_evaluates(options: Options) -> bool:
    if options["stage"] != "ppo":
        return False
    return given(options, "eval_dataset") or bool(options["val_size"] > LEAST)


def _ppo_resumes(options: Options) -> bool:
    is_ppo = options["stage"] == "ppo" and on(options, "do_train")
    return (
        is_ppo and options["finetuning_type"] == "lora" and bool(options["resume_from_checkpoint"])
    )


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "stage",
        "llamafactory/train/tuner.py, _training_function",
        ("stage",),
        lambda options: no_choice(options, "stage"),
        Text("stage 改为 {known} 之一", "give stage one of {known}"),
        Text("没有 {stage} 这个阶段", "there is no stage {stage}"),
        figures=lambda options: {"known": choices(options, "stage")},
        groups=TRAIN,
    ),
    _sft_only("predict_with_generate"),
    _sft_only("neat_packing", "0.8.3"),
    Refusal(
        "prompts-of-other-stage",
        TRAIN_ARGS,
        ("train_on_prompt", "mask_history", "stage"),
        lambda options: options["stage"] != "sft" and _prompted(options),
        Text("删除 {asked}，或 stage 设为 sft", "drop {asked} or write stage=sft"),
        Text(
            "{asked} 只用于 sft，而 stage={stage}", "{asked} is for sft alone and stage is {stage}"
        ),
        figures=lambda options: {
            "asked": " and ".join(n for n in ("train_on_prompt", "mask_history") if on(options, n))
        },
        groups=TRAIN,
        since="0.9.0",
    ),
    Refusal(
        "prediction-without-generation",
        TRAIN_ARGS,
        ("do_predict", "predict_with_generate"),
        lambda options: (
            options["stage"] == "sft"
            and on(options, "do_predict")
            and not on(options, "predict_with_generate")
        ),
        Text("设置 predict_with_generate: true", "write predict_with_generate=true"),
        Text("do_predict 保存生成的文本", "do_predict keeps what is generated"),
        write=lambda options: {"predict_with_generate": True},
        groups=TRAIN,
    ),
    Refusal(
        "best-model-of-reward-stage",
        TRAIN_ARGS,
        ("load_best_model_at_end", "stage"),
        lambda options: options["stage"] in ("rm", "ppo") and on(options, "load_best_model_at_end"),
        Text("删除 load_best_model_at_end", "drop load_best_model_at_end"),
        Text("stage={stage} 不支持", "stage={stage} does not load the best model"),
        write=lambda options: {"load_best_model_at_end": False},
        groups=TRAIN,
    ),
    Refusal(
        "ppo-without-training",
        TRAIN_ARGS,
        ("do_train", "stage"),
        lambda options: options["stage"] == "ppo" and not on(options, "do_train"),
        Text(
            "设置 do_train: true，评估用 stage: sft",
            "write do_train=true, or stage=sft to evaluate",
        ),
        Text("stage=ppo 只能训练", "stage=ppo does nothing but train"),
        groups=TRAIN,
    ),
    Refusal(
        "ppo-with-shifted-attention",
        TRAIN_ARGS,
        ("shift_attn", "stage"),
        lambda options: options["stage"] == "ppo" and on(options, "shift_attn"),
        Text("删除 shift_attn", "drop shift_attn"),
        Text("stage=ppo 不支持 S²-Attn", "stage=ppo does not go with S2-Attn"),
        write=lambda options: {"shift_attn": False},
        groups=TRAIN,
    ),
    _without_lora_reward("use_kt", "0.9.4"),
    _without_lora_reward("use_unsloth"),
    Refusal(
        "trackers-of-ppo",
        TRAIN_ARGS,
        ("report_to", "stage"),
        _unknown_tracker,
        Text(
            "report_to 改为 wandb、tensorboard 或 trackio",
            "report to wandb, tensorboard or trackio",
        ),
        Text("stage=ppo 不支持其他记录器", "stage=ppo knows no other tracker"),
        groups=TRAIN,
        since="0.9.5",
    ),
    Refusal(
        "tracker-of-ppo",
        TRAIN_ARGS,
        ("report_to", "stage"),
        _unknown_first_tracker,
        Text("report_to 改为 wandb 或 tensorboard", "report to wandb or tensorboard"),
        Text("stage=ppo 不支持其他记录器", "stage=ppo knows no other tracker"),
        groups=TRAIN,
        until="0.9.4",
    ),
    Refusal(
        "stream-without-steps",
        TRAIN_ARGS,
        ("max_steps", "streaming"),
        lambda options: on(options, "streaming") and options["max_steps"] == -1,
        Text("设置 max_steps", "give max_steps"),
        Text("streaming 没有长度，不知何时结束", "a stream has no length that tells the last step"),
        groups=TRAIN,
    ),
    Refusal(
        "training-without-dataset",
        TRAIN_ARGS,
        ("dataset", "do_train"),
        lambda options: on(options, "do_train") and options["dataset"] is None,
        Text("设置 dataset", "name a dataset"),
        Text("do_train 需要数据集", "do_train needs one"),
        groups=TRAIN,
        since="0.8.3",
    ),
    Refusal(
        "evaluation-without-data",
        TRAIN_ARGS,
        ("eval_strategy", "evaluation_strategy", "do_eval", "do_predict", "val_size"),
        _needs_evaluation_data,
        Text(
            "设置 eval_dataset 或 val_size，或不评估",
            "name an eval_dataset, give val_size, or do not evaluate",
        ),
        Text("没有用于评估的数据", "there is no data to evaluate on"),
        groups=TRAIN,
        since="0.8.3",
    ),
    Refusal(
        "generation-without-data",
        TRAIN_ARGS,
        ("predict_with_generate",),
        _needs_prediction_data,
        Text(
            "设置 eval_dataset 或 val_size，或删除 predict_with_generate",
            "name an eval_dataset, give val_size, or drop predict_with_generate",
        ),
        Text("没有用于生成的数据", "there is no data to generate for"),
        groups=TRAIN,
        since="0.9.4",
    ),
    Refusal(
        "generation-without-set",
        TRAIN_ARGS,
        ("predict_with_generate", "eval_dataset"),
        lambda options: on(options, "predict_with_generate") and options["eval_dataset"] is None,
        Text("设置 eval_dataset", "name an eval_dataset"),
        Text(
            "predict_with_generate 需要单独的验证集", "predict_with_generate needs a set of its own"
        ),
        groups=TRAIN,
        since="0.8.3",
        until="0.9.3",
    ),
    Refusal(
        "generation-and-accuracy",
        TRAIN_ARGS,
        ("compute_accuracy", "predict_with_generate"),
        lambda options: (
            any_on(options, "predict_with_generate") and on(options, "compute_accuracy")
        ),
        Text(
            "删除 compute_accuracy 或 predict_with_generate",
            "drop compute_accuracy or predict_with_generate",
        ),
        Text("两种指标不能同时计算", "one scores tokens, the other generated text"),
        write=lambda options: {"compute_accuracy": False},
        groups=TRAIN,
        since="0.8.3",
    ),
    Refusal(
        "generation-in-training",
        TRAIN_ARGS,
        ("predict_with_generate", "do_train"),
        lambda options: on(options, "do_train") and on(options, "predict_with_generate"),
        Text("删除 predict_with_generate", "drop predict_with_generate"),
        Text("该版本训练时不能生成", "this release does not generate while it trains"),
        write=lambda options: {"predict_with_generate": False},
        groups=TRAIN,
        until="0.8.2",
    ),
    Refusal(
        "pure-and-mixed",
        TRAIN_ARGS,
        ("pure_bf16", "bf16", "fp16"),
        lambda options: on(options, "pure_bf16") and any_on(options, "bf16", "fp16"),
        Text("删除 bf16 和 fp16", "drop bf16 and fp16"),
        Text("pure_bf16 不用混合精度", "pure_bf16 is instead of mixed precision"),
        groups=TRAIN,
        until="0.8.2",
    ),
    Refusal(
        "dora-of-unsloth",
        TRAIN_ARGS,
        ("use_unsloth", "use_dora"),
        lambda options: on(options, "use_dora") and on(options, "use_unsloth"),
        Text("删除 use_unsloth 或 use_dora", "drop use_unsloth or use_dora"),
        Text("该版本的 Unsloth 不支持 DoRA", "in this release Unsloth does not know DoRA"),
        groups=TRAIN,
        until="0.8.1",
    ),
    Refusal(
        "packed-images",
        TRAIN_ARGS,
        ("packing", "visual_inputs"),
        lambda options: on(options, "visual_inputs") and on(options, "packing"),
        Text("删除 packing", "drop packing"),
        Text("该版本不能打包多模态样本", "this release does not pack samples with images"),
        write=lambda options: {"packing": False},
        groups=TRAIN,
        until="0.8.3",
    ),
    Refusal(
        "neat-packing-of-transformers",
        TRAIN_ARGS,
        ("neat_packing",),
        _packs_beside_transformers,
        Text(
            "安装 transformers<4.53，或删除 neat_packing",
            "install transformers<4.53 or drop neat_packing",
        ),
        Text(
            "该版本的 neat_packing 不支持 Transformers 4.53 及以上",
            "this release does not take it with Transformers 4.53 or newer",
        ),
        write=lambda options: {"neat_packing": False},
        groups=TRAIN,
        since="0.9.4",
        until="0.9.4",
    ),
    Refusal(
        "no-template-to-train",
        TRAIN_ARGS,
        ("template", "stage"),
        lambda options: options["stage"] != "pt" and options["template"] is None,
        Text("设置 template", "name a template"),
        Text("stage={stage} 需要对话模板", "stage={stage} needs one"),
        groups=TRAIN,
        until="0.9.1",
    ),
    Refusal(
        "trackio-without-project",
        "llamafactory/hparams/parser.py, _verify_trackio_args",
        ("project", "report_to"),
        _lacks_project,
        Text("设置 project", "give project a name"),
        Text("Trackio 需要项目名", "Trackio needs one"),
        groups=TRAIN,
        since="0.9.5",
    ),
    Refusal(
        "seed",
        f"{PARSER}, get_train_args",
        ("seed",),
        lambda options: not 0 <= options["seed"] < 2**32,
        Text("seed 设为 0 到 4294967295", "give seed 0 to 4294967295"),
        Text("NumPy 不接受 {seed}", "NumPy does not take {seed}"),
        write=lambda options: {"seed": 42},
        groups=TRAIN,
    ),
    _kt_cannot("predict_with_generate"),
    _kt_cannot("compute_accuracy"),
    Refusal(
        "evaluation-of-ppo",
        "llamafactory/train/ppo/trainer.py, CustomPPOTrainer.__init__",
        ("eval_dataset", "val_size", "stage"),
        _ppo_evaluates,
        Text("删除 eval_dataset 和 val_size", "drop eval_dataset and val_size"),
        Text("stage=ppo 不评估", "stage=ppo takes no data to evaluate on"),
        groups=TRAIN,
        since="0.8.3",
    ),
    Refusal(
        "resumption-of-ppo",
        "llamafactory/train/ppo/trainer.py, CustomPPOTrainer.ppo_train",
        ("resume_from_checkpoint", "stage"),
        _ppo_resumes,
        Text("删除 resume_from_checkpoint", "drop resume_from_checkpoint"),
        Text("stage=ppo 不能续训", "stage=ppo cannot resume"),
        groups=TRAIN,
    ),
    Refusal(
        "layers-of-llama-pro",
        _LAYERS,
        ("freeze_trainable_layers", "use_llama_pro"),
        _uneven_layers,
        Text(
            "freeze_trainable_layers 改为能整除 {layers} 的数",
            "give freeze_trainable_layers a divisor of {layers}",
        ),
        Text(
            "模型有 {layers} 层，{freeze_trainable_layers} 不能整除",
            "the model has {layers} layers, which {freeze_trainable_layers} does not divide",
        ),
        figures=lambda options: {"layers": options.run.model.layers},
        groups=TRAIN,
    ),
    _optimizer(
        "galore",
        ("adamw_torch", "adamw_bnb_8bit", "adamw_8bit", "paged_adamw_8bit", "adafactor"),
    ),
    _optimizer("apollo", ("adamw_torch",)),
    _accumulated("galore"),
    _accumulated("apollo"),
    Refusal(
        "no-badam-share",
        "llamafactory/train/trainer_utils.py, _create_badam_optimizer",
        ("badam_update_ratio", "badam_mode"),
        lambda options: (
            on(options, "do_train")
            and on(options, "use_badam")
            and options["badam_mode"] == "ratio"
            and options["badam_update_ratio"] <= LEAST
        ),
        Text("badam_update_ratio 设为大于 0", "give badam_update_ratio more than 0"),
        Text(
            "badam_mode=ratio 要更新一部分参数",
            "badam_mode=ratio updates a share of the parameters",
        ),
        groups=TRAIN,
    ),
    Refusal(
        "address-of-reward-model",
        "llamafactory/train/trainer_utils.py, create_reward_model",
        ("reward_model", "reward_model_type"),
        lambda options: (
            options["stage"] == "ppo"
            and options["reward_model_type"] == "api"
            and not options["reward_model"].startswith("http")
        ),
        Text("reward_model 写完整网址 http://…", "write the whole address, http://…"),
        Text("reward_model_type=api 从网址取奖励", "reward_model_type=api asks a server"),
        groups=TRAIN,
    ),
)
