"""What SFT, the model's configuration and the scripts of TRL refuse."""

from __future__ import annotations

from flake8_gpu_training.facts import Location
from flake8_gpu_training.frameworks.refusals import fields
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.refusals.transformers.trainer import passed, trainer_of
from flake8_gpu_training.language import Text

_TRAINER = "trl/trainer/sft_trainer.py, SFTTrainer.__init__"
_SFT = ("SFTConfig",)


# --- padding and packing ----------------------------------------------------------------


def _cuts_nothing(options: Options) -> bool:
    return (
        options["padding_free"] is True
        and options["packing"] is False
        and options["max_length"] is not None
    )


def _packs_without_length(options: Options) -> bool:
    return options["packing"] is True and options["max_length"] is None


def _is_flattened(options: Options) -> bool:
    """Whether the samples of a batch stand in one row."""
    if options["padding_free"] is True:
        return True
    return options["packing"] is True and options["packing_strategy"] in ("bfd", "bfd_split")


def _collates_otherwise(options: Options) -> bool:
    return passed(trainer_of(options), "data_collator") is not None and _is_flattened(options)


# --- checkpointing and kernels ------------------------------------------------------------


def _is_selective(options: Options) -> bool:
    return bool(options.entry("gradient_checkpointing_kwargs", "selective", False))


def _selects_nothing(options: Options) -> bool:
    return _is_selective(options) and options["gradient_checkpointing"] is False


def _selects_reentrant(options: Options) -> bool:
    if not _is_selective(options) or options["gradient_checkpointing"] is False:
        return False
    return options.entry("gradient_checkpointing_kwargs", "use_reentrant", False) is True


def _fuses_twice(options: Options) -> bool:
    fused = options.entry("liger_kernel_config", "fused_linear_cross_entropy", False)
    return options["use_liger_kernel"] is True and fused is True


# --- the loss ---------------------------------------------------------------------------


def _is_of_trl(options: Options, *names: str) -> bool:
    return trainer_of(options).method in names


def _formats_completions(options: Options) -> bool:
    formats = passed(trainer_of(options), "formatting_func") is not None
    if options.entry("dataset_kwargs", "skip_prepare_dataset", False):
        return False
    return formats and options["completion_only_loss"] is True


def _two_losses(options: Options) -> bool:
    other = passed(trainer_of(options), "compute_loss_func")
    return other is not None and options["loss_type"] == "dft"


_NEEDY = ("SFTTrainer", "DPOTrainer", "KTOTrainer", "RewardTrainer", "RLOOTrainer")


def _trains_on_nothing(options: Options) -> bool:
    return _is_of_trl(options, *_NEEDY) and passed(trainer_of(options), "train_dataset") is None


def _of_trainer(options: Options) -> Location:
    return trainer_of(options).location


# --- scripts ----------------------------------------------------------------------------


def _is_script(options: Options) -> bool:
    """Whether TRL's own script runs (``trl sft``)."""
    command = options.run.command
    return command is not None and command.name.rpartition("/")[2] == "trl"


def _names_no_data(options: Options) -> bool:
    if not _is_script(options) or options.is_open:
        return False
    named = any(n == "dataset_name" or n.partition(".")[0] == "datasets" for n in options.given)
    return not named and options["dataset_name"] is None


_FUNCTIONS = (
    "accuracy_reward",
    "reasoning_accuracy_reward",
    "think_format_reward",
    "get_soft_overlong_punishment",
)


def _unknown_functions(options: Options) -> list[str]:
    given = options["reward_funcs"]
    if not _is_script(options) or given is None:
        return []
    names = given if isinstance(given, list) else [given]
    if not all(isinstance(name, str) for name in names):
        raise UndecidedError("reward_funcs")
    return [name for name in names if name not in _FUNCTIONS and "." not in name]


def _has_no_teacher(options: Options) -> bool:
    return (
        _is_script(options)
        and not options.is_given("teacher_model_name_or_path")
        and options["teacher_model_name_or_path"] is None
    )


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "padding-free-without-packing",
        _TRAINER,
        ("padding_free", "max_length"),
        _cuts_nothing,
        Text(
            "设置 packing=True 或 max_length=None",
            "set packing to true, or max_length to None",
        ),
        Text(
            "padding_free 时不会截断到 max_length={max_length}",
            "padding_free alone does not cut to max_length={max_length}",
        ),
        write=lambda options: {"packing": True},
        groups=_SFT,
        since="1.0.0",
    ),
    Refusal(
        "packing-without-length",
        _TRAINER,
        ("max_length", "packing"),
        _packs_without_length,
        Text("设置 max_length", "give max_length a number"),
        Text("packing 需要知道装到多长", "packing has to know how long a row is"),
        groups=_SFT,
        since="0.16.1",
    ),
    Refusal(
        "collator-of-flattened-batches",
        _TRAINER,
        ("padding_free", "packing"),
        _collates_otherwise,
        Text(
            "去掉 Trainer 的 data_collator",
            "drop the Trainer's data_collator",
        ),
        Text(
            "padding_free 与 packing 使用自己的 collator",
            "padding_free and packing have a collator of their own",
        ),
        raiser="SFTTrainer",
        groups=_SFT,
        since="0.20.0",
    ),
    Refusal(
        "selective-without-checkpointing",
        _TRAINER,
        ("gradient_checkpointing", "gradient_checkpointing_kwargs"),
        _selects_nothing,
        Text("设置 gradient_checkpointing=True", "set gradient_checkpointing to true"),
        Text(
            "selective 决定保存哪些激活，而 gradient_checkpointing 已关闭",
            "selective chooses what it keeps, and gradient_checkpointing is off",
        ),
        write=lambda options: {"gradient_checkpointing": True},
        groups=_SFT,
        since="1.15.0",
    ),
    Refusal(
        "selective-and-reentrant",
        _TRAINER,
        ("gradient_checkpointing_kwargs",),
        _selects_reentrant,
        Text("use_reentrant 设为 False", "set use_reentrant to False"),
        Text("selective 不支持可重入方式", "selective does not work in the reentrant way"),
        groups=_SFT,
        since="1.15.0",
    ),
    Refusal(
        "fused-loss-of-liger",
        "trl/trainer/*_trainer.py, __init__",
        ("liger_kernel_config", "use_liger_kernel"),
        _fuses_twice,
        Text(
            "去掉 liger_kernel_config 的 fused_linear_cross_entropy",
            "drop fused_linear_cross_entropy from liger_kernel_config",
        ),
        Text("Trainer 自己融合 lm_head 与损失", "the Trainer fuses the head and the loss itself"),
        groups=("SFTConfig", "DPOConfig", "KTOConfig", "GRPOConfig", "RLOOConfig"),
        since="1.15.0",
    ),
    fields.among(
        "SFTConfig", "loss_type", (None, "nll", "dft", "chunked_nll"), _TRAINER, since="0.23.1"
    ),
    fields.among(
        "SFTConfig",
        "truncation_mode",
        ("keep_start", "keep_end"),
        "trl/trainer/sft_trainer.py, SFTTrainer._prepare_dataset",
        when=lambda options: options["packing"] is False and options["max_length"] is not None,
        since="1.0.0",
    ),
    Refusal(
        "formatter-of-completions",
        _TRAINER,
        ("completion_only_loss",),
        _formats_completions,
        Text(
            "去掉 formatting_func，或 completion_only_loss 设为 False",
            "drop formatting_func, or set completion_only_loss to False",
        ),
        Text(
            "formatting_func 之后不再区分提示与回答",
            "after formatting_func prompt and completion are one text",
        ),
        raiser="SFTTrainer",
        groups=_SFT,
        since="0.18.2",
    ),
    Refusal(
        "loss-given-twice",
        _TRAINER,
        ("loss_type",),
        _two_losses,
        Text("去掉 compute_loss_func 或 loss_type=dft", "drop compute_loss_func or loss_type=dft"),
        Text("损失只能有一个", "there is one loss"),
        raiser="SFTTrainer",
        groups=_SFT,
        since="0.23.1",
    ),
    Refusal(
        "trainer-without-dataset",
        "trl/trainer/*_trainer.py, __init__",
        (),
        _trains_on_nothing,
        Text("给 Trainer 传入 train_dataset", "pass train_dataset to the Trainer"),
        Text("没有它就不能创建 Trainer", "it is not made without"),
        at=_of_trainer,
        raiser="the Trainer",
        groups=("SFTConfig", "DPOConfig", "RewardConfig", "RLOOConfig"),
        since="1.0.0",
    ),
    fields.exclusive(
        "ModelConfig",
        "model-of-two-widths",
        "load_in_8bit",
        "load_in_4bit",
        Text("一个模型只能有一种位宽", "a model is loaded in one width"),
        "trl/trainer/model_config.py, ModelConfig.__post_init__",
    ),
    Refusal(
        "script-without-data",
        "trl/scripts/*.py, main",
        ("dataset_name",),
        _names_no_data,
        Text(
            "设置 --dataset_name，或在文件中给出 datasets",
            "set --dataset_name, or datasets in the file",
        ),
        Text("没有数据", "no data is named"),
        groups=("ScriptArguments", "GRPOScriptArguments", "RLOOScriptArguments"),
        since="0.22.2",
    ),
    Refusal(
        "unknown-reward-function",
        "trl/scripts/grpo.py, main",
        ("reward_funcs",),
        lambda options: bool(_unknown_functions(options)),
        Text(
            "reward_funcs 写导入路径 模块.函数，或 accuracy_reward、think_format_reward",
            "give reward_funcs the path module.function, or accuracy_reward, think_format_reward",
        ),
        Text("不认识 {functions}", "{functions} is not known"),
        figures=lambda options: {"functions": ", ".join(_unknown_functions(options))},
        groups=("GRPOScriptArguments", "RLOOScriptArguments"),
        since="0.18.2",
    ),
    Refusal(
        "script-without-teacher",
        "trl/scripts/distillation.py, main",
        ("teacher_model_name_or_path",),
        _has_no_teacher,
        Text("设置 --teacher_model_name_or_path", "set --teacher_model_name_or_path"),
        Text("蒸馏需要教师模型", "distillation needs a teacher"),
        groups=("DistillationConfig",),
        since="1.10.0",
    ),
)
