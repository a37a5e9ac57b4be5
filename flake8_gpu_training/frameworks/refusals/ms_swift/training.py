"""What ms-swift refuses of data, schedules, processes and reports in training."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from typing import Any, Callable

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.ms_swift._asked import (
    SFT,
    TRAIN,
    drop,
    evaluates,
    items,
    none_of,
    off,
    setting,
    tuner,
    tuner_name,
    value,
    visible_gpus,
    world,
)
from flake8_gpu_training.frameworks.refusals.node_ranks import rank_beyond
from flake8_gpu_training.language import Text

_SFT = "swift/arguments/sft_args.py"
_TRAINER = "swift/trainers/arguments.py, TrainArgumentsMixin._handle_hf_removed_args"
_DATA = "swift/pipelines/train/sft.py, SwiftSft"


def _no_dataset(options: Options) -> bool:
    if value(options, "load_args", False) or value(options, "load_data_args", False):
        return False
    return none_of(options, "dataset", "cached_dataset")


def _streams_cache(options: Options) -> bool:
    cached = items(options, "cached_dataset") or items(options, "cached_val_dataset")
    return bool(cached) and bool(options["streaming"])


def _splits_dialogues(options: Options) -> bool:
    """``split`` outside pre-training: the chat template is used unless it is turned off."""
    if options["truncation_strategy"] != "split":
        return False
    if value(options, "rlhf_type") in ("grpo", "gkd"):
        return False  # other rules tell it, or nothing is encoded beforehand
    return options["use_chat_template"] is not False


def _splits_lazily(options: Options) -> bool:
    return (
        options["truncation_strategy"] == "split"
        and options["use_chat_template"] is False
        and options["lazy_tokenize"] is True
    )


def _both_warmups(options: Options) -> bool:
    return bool(options["warmup_ratio"]) and bool(options["warmup_steps"])


_CHANNELS = ("lark", "dingtalk", "email", "discord", "wxwork", "slack")


def _reports_to_swanlab(options: Options) -> bool:
    return "swanlab" in items(options, "report_to")


def _unknown_channel(options: Options) -> bool:
    channel = options["swanlab_notification_method"]
    return _reports_to_swanlab(options) and channel is not None and channel not in _CHANNELS


_MAIL = ("sender_email", "receiver_email", "smtp_server", "smtp_port")


def _incomplete_mail(options: Options) -> bool:
    if options["swanlab_notification_method"] != "email" or not _reports_to_swanlab(options):
        return False
    return not all(options[f"swanlab_{name}"] for name in _MAIL)


_SHORTCUTS = ("zero0", "zero1", "zero2", "zero3", "zero2_offload", "zero3_offload")
_LIKE_SHORTCUT = re.compile(r"(?:default[-_]|ds[-_])?z(?:ero)?[-_]?[0-9]?(?:[-_]?offload)?")
_LIKE_NAME = re.compile(r"[A-Za-z][\w -]*")


def _named(name: str, options: Options) -> str:
    """A configuration that is named, not given as a file or JSON."""
    found = value(options, name)
    return found if isinstance(found, str) else ""


def _unknown_shortcut(name: str) -> Callable[[Options], bool]:
    def holds(options: Options) -> bool:
        named = _named(name, options)
        return named not in _SHORTCUTS and _LIKE_SHORTCUT.fullmatch(named) is not None

    return holds


def _unknown_fsdp(options: Options) -> bool:
    named = _named("fsdp", options)
    return named not in ("fsdp2", "none") and _LIKE_NAME.fullmatch(named) is not None


_PAIRS = re.compile(r"[A-Za-z_]\w*=[\w.-]+")
_OF_JSON = (
    "model_kwargs",
    "columns",
    "gradient_checkpointing_kwargs",
    "lr_scheduler_kwargs",
    "vllm_limit_mm_per_prompt",
    "vllm_engine_kwargs",
)


def _pairs(name: str) -> Callable[[Options], bool]:
    return lambda options: _PAIRS.fullmatch(_named(name, options)) is not None


def _as_json(name: str) -> Callable[[Options], Mapping[str, Any]]:
    def written(options: Options) -> Mapping[str, Any]:
        key, _, text = _named(name, options).partition("=")
        shown = text if _is_json(text) else f'"{text}"'
        return {"json": f'{{"{key}": {shown}}}'}

    return written


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


# --- precision and evaluation -----------------------------------------------------------

_HALVES = ("float16", "float32")


def _other_precision(options: Options) -> bool:
    """The type of the weights turns on the precision that is not written."""
    kind, fp16, bf16 = options["torch_dtype"], options["fp16"], options["bf16"]
    if kind == "bfloat16":
        return bool(fp16) and bf16 is None
    return kind in _HALVES and bool(bf16) and fp16 is None


def _precisions(options: Options) -> Mapping[str, Any]:
    written = "fp16" if options["torch_dtype"] == "bfloat16" else "bf16"
    return {"written": written, "implied": "bf16" if written == "fp16" else "fp16"}


def _without_other(options: Options) -> Mapping[str, Any]:
    return {_precisions(options)["implied"]: False}


def _keeps_best_unjudged(options: Options) -> bool:
    """Without validation data nothing is evaluated, whatever eval_strategy says."""
    if not options["load_best_model_at_end"] or evaluates(options):
        return False
    saved = options["save_strategy"]
    both = options.is_given("eval_strategy") and options.is_given("save_strategy")
    if both and options["eval_strategy"] != saved:
        return False  # told with the strategies
    return saved not in ("no", "best")


def _schedules_unjudged(options: Options) -> bool:
    if options["eval_strategy"] == "no":
        return False  # told with the strategy
    judged = options["lr_scheduler_type"] in ("reduce_lr_on_plateau", "greedy")
    return judged and not evaluates(options)


def _choices(options: Options, name: str) -> tuple[Any, ...]:
    """What TrainingArguments turn into a member of an Enum."""
    for part in options.accepted.parts:
        if part.distribution == "transformers" and name in part.parameters:
            return part.parameters[name].choices
    return ()


def _unknown_member(name: str) -> Callable[[Options], bool]:
    def holds(options: Options) -> bool:
        found, choices = options[name], _choices(options, name)
        own = options.accepted.parameters[name].choices
        if not isinstance(found, str) or own or not choices or found in choices:
            return False
        return name != "eval_strategy" or evaluates(options)

    return holds


def _members(name: str) -> Callable[[Options], Mapping[str, Any]]:
    def figures(options: Options) -> Mapping[str, Any]:
        choices = [str(one) for one in _choices(options, name) if one is not None]
        near = difflib.get_close_matches(options[name], choices, 1, 0.7)
        return {"choices": near[0] if near else ", ".join(choices)}

    return figures


def _no_zero_section(options: Options) -> bool:
    asked = options["zero_hpz_partition_size"]
    given = options.run.settings.get("deepspeed")
    document = options.run.deepspeed
    if asked is None or given is None or document is None or not isinstance(given.value, str):
        return False
    return given.value not in _SHORTCUTS and document.get("zero_optimization") is None


def _uneven_gpus(options: Options) -> bool:
    processes = options.run.launcher.processes
    if "SWIFT_SINGLE_DEVICE_MODE" in options.run.environment or processes.location is None:
        return False
    if "ASCEND_RT_VISIBLE_DEVICES" in options.run.environment or not world(options):
        return False
    return bool(visible_gpus(options) % processes.value != 0)


def _gpus(options: Options) -> Mapping[str, Any]:
    return {"seen": visible_gpus(options), "processes": options.run.launcher.processes.value}


REFUSALS: tuple[Refusal, ...] = (
    rank_beyond(
        "swift-node-rank", "swift/cli/main.py, get_torchrun_args", lambda options: True, "3.5.2"
    ),
    Refusal(
        "no-dataset",
        f"{_SFT}, SftArguments.__post_init__",
        ("dataset",),
        _no_dataset,
        Text("设置 dataset", "give dataset"),
        Text("没有 dataset 或 cached_dataset", "neither dataset nor cached_dataset is given"),
        groups=TRAIN,
    ),
    Refusal(
        "streaming-from-cache",
        f"{_DATA}._prepare_dataset",
        ("streaming", "cached_dataset", "cached_val_dataset"),
        _streams_cache,
        drop("streaming"),
        Text("cached_dataset 不支持 streaming", "a cached dataset cannot be streamed"),
        write=off("streaming"),
        since="3.7.3",
        groups=TRAIN,
    ),
    Refusal(
        "lisa-of-adapters",
        "swift/callbacks/lisa.py, LISACallback.__init__",
        ("lisa_activated_layers", "tuner_type"),
        lambda options: options["lisa_activated_layers"] > 0 and tuner(options) != "full",
        Text("{tuner_name} 设为 full", "write {tuner_name}=full"),
        Text("LISA 只支持全参训练", "LISA is for full tuning"),
        figures=tuner_name,
        groups=SFT,
    ),
    Refusal(
        "stream-without-end",
        "transformers/trainer.py, Trainer.__init__",
        ("streaming", "max_steps"),
        lambda options: bool(options["streaming"]) and options["max_steps"] <= 0,
        Text("设置 max_steps", "give max_steps"),
        Text("streaming 数据没有长度", "a stream has no length"),
        groups=SFT,
    ),
    Refusal(
        "split-with-chat-template",
        f"{_DATA}._encode_dataset",
        ("truncation_strategy", "use_chat_template"),
        _splits_dialogues,
        Text(
            "truncation_strategy 设为 delete、left 或 right",
            "write truncation_strategy=delete, left or right",
        ),
        Text(
            "split 只用于预训练（不使用 chat template）",
            "split is for pre-training, without a chat template",
        ),
        write=setting(truncation_strategy="delete"),
        since="3.11.3",
        groups=TRAIN,
    ),
    Refusal(
        "split-with-lazy-tokenize",
        f"{_DATA}._encode_dataset",
        ("lazy_tokenize", "truncation_strategy"),
        _splits_lazily,
        drop("lazy_tokenize"),
        Text(
            "truncation_strategy=split 要求预先分词",
            "truncation_strategy=split tokenizes beforehand",
        ),
        write=off("lazy_tokenize"),
        since="3.11.3",
        groups=TRAIN,
    ),
    Refusal(
        "both-warmups",
        _TRAINER,
        ("warmup_ratio", "warmup_steps"),
        _both_warmups,
        Text(
            "warmup_ratio 与 warmup_steps 只保留一个", "keep one of warmup_ratio and warmup_steps"
        ),
        Text("两者不能同时设置", "they cannot be set together"),
        since="4.5.3",
        groups=SFT,
    ),
    Refusal(
        "whole-warmup-ratio",
        _TRAINER,
        ("warmup_ratio",),
        lambda options: options["warmup_ratio"] >= 1 and not options["warmup_steps"],
        Text(
            "warmup_ratio 设为小于 1，步数写 warmup_steps",
            "give warmup_ratio less than 1, a number of steps as warmup_steps",
        ),
        Text("warmup_ratio={warmup_ratio} 不是比例", "{warmup_ratio} is no ratio"),
        since="4.5.3",
        groups=SFT,
    ),
    Refusal(
        "unknown-swanlab-channel",
        f"{_SFT}, SwanlabArguments._init_swanlab",
        ("swanlab_notification_method",),
        _unknown_channel,
        Text(
            f"swanlab_notification_method 设为 {'、'.join(_CHANNELS)} 之一",
            f"write swanlab_notification_method={', '.join(_CHANNELS[:-1])} or {_CHANNELS[-1]}",
        ),
        Text(
            "没有名为 {swanlab_notification_method} 的通知方式",
            "there is no channel {swanlab_notification_method}",
        ),
        since="3.12.6",
        groups=SFT,
    ),
    Refusal(
        "swanlab-mail",
        f"{_SFT}, SwanlabArguments._init_swanlab",
        ("swanlab_notification_method",),
        _incomplete_mail,
        Text(
            "补全 " + "、".join(f"swanlab_{name}" for name in _MAIL),
            "give " + ", ".join(f"swanlab_{name}" for name in _MAIL),
        ),
        Text("邮件通知需要全部四项", "notification by email needs all four"),
        since="3.12.6",
        groups=SFT,
    ),
    Refusal(
        "unknown-shortcut",
        f"{_SFT}, SftArguments._init_deepspeed",
        ("deepspeed",),
        _unknown_shortcut("deepspeed"),
        Text(
            f"deepspeed 设为 {'、'.join(_SHORTCUTS)} 之一，或 JSON 文件",
            f"write deepspeed={', '.join(_SHORTCUTS[:-1])} or {_SHORTCUTS[-1]}, or a JSON file",
        ),
        Text("没有名为 {deepspeed} 的配置", "there is no configuration {deepspeed}"),
        groups=SFT,
    ),
    Refusal(
        "unknown-teacher-shortcut",
        "swift/arguments/rlhf_args.py, RLHFArguments._init_teacher_deepspeed",
        ("teacher_deepspeed",),
        _unknown_shortcut("teacher_deepspeed"),
        Text(
            f"teacher_deepspeed 设为 {'、'.join(_SHORTCUTS)} 之一，或 JSON 文件",
            f"write teacher_deepspeed={', '.join(_SHORTCUTS[:-1])} or {_SHORTCUTS[-1]}, "
            "or a JSON file",
        ),
        Text(
            "没有名为 {teacher_deepspeed} 的配置", "there is no configuration {teacher_deepspeed}"
        ),
        groups=("rlhf",),
    ),
    Refusal(
        "unknown-fsdp",
        f"{_SFT}, SftArguments._init_fsdp",
        ("fsdp",),
        _unknown_fsdp,
        Text("fsdp 设为 fsdp2，或 JSON 文件", "write fsdp=fsdp2, or a JSON file"),
        Text("没有名为 {fsdp} 的配置", "there is no configuration {fsdp}"),
        write=setting(fsdp="fsdp2"),
        since="3.12.6",
        groups=SFT,
    ),
    Refusal(
        "precision-of-the-weights",
        "swift/arguments/base_args/model_args.py, ModelArguments._init_mixed_precision",
        ("bf16", "fp16", "torch_dtype"),
        _other_precision,
        Text("去掉 {written}，或设 {implied}=false", "drop {written}, or write {implied}=false"),
        Text(
            "torch_dtype={torch_dtype} 会启用 {implied}，与 {written} 冲突",
            "torch_dtype={torch_dtype} turns {implied} on, and fp16 and bf16 exclude each other",
        ),
        write=_without_other,
        figures=_precisions,
        groups=SFT,
    ),
    *(
        Refusal(
            f"unknown-{name.replace('_', '-')}",
            "transformers/training_args.py, TrainingArguments.__post_init__",
            (name,),
            _unknown_member(name),
            Text(f"{name} 设为 {{choices}}", f"write {name}={{choices}}"),
            Text(f"{name} 不能取 {{{name}}}", f"there is no {name} {{{name}}}"),
            figures=_members(name),
            groups=SFT,
        )
        for name in ("lr_scheduler_type", "eval_strategy")
    ),
    *(
        Refusal(
            f"json-of-{name.replace('_', '-')}",
            "swift/utils/utils.py, json_parse_to_dict",
            (name,),
            _pairs(name),
            Text(f"{name} 写成 JSON：{{json}}", f"write {name} as JSON: {{json}}"),
            Text(f"{{{name}}} 不是 JSON", f"{{{name}}} is not allowed"),
            figures=_as_json(name),
            since="3.7.3",
            groups=SFT,
        )
        for name in _OF_JSON
    ),
    Refusal(
        "best-model-unjudged",
        "transformers/training_args.py, TrainingArguments.__post_init__",
        ("load_best_model_at_end",),
        _keeps_best_unjudged,
        Text(
            "设置 val_dataset 或 split_dataset_ratio，或去掉 load_best_model_at_end",
            "give val_dataset or split_dataset_ratio, or drop load_best_model_at_end",
        ),
        Text("没有验证数据就不评估", "without validation data nothing is evaluated"),
        since="3.8.3",
        groups=SFT,
    ),
    Refusal(
        "schedule-unjudged",
        "transformers/training_args.py, TrainingArguments.__post_init__",
        ("lr_scheduler_type",),
        _schedules_unjudged,
        Text(
            "设置 val_dataset 或 split_dataset_ratio，或换用其他学习率调度",
            "give val_dataset or split_dataset_ratio, or take another schedule",
        ),
        Text(
            "lr_scheduler_type={lr_scheduler_type} 按评估结果调整学习率，没有验证数据就不评估",
            "lr_scheduler_type={lr_scheduler_type} follows the evaluation, and without validation "
            "data there is none",
        ),
        since="3.8.3",
        groups=SFT,
    ),
    Refusal(
        "partition-without-zero",
        f"{_SFT}, SftArguments._init_deepspeed",
        ("zero_hpz_partition_size", "deepspeed"),
        _no_zero_section,
        Text(
            "DeepSpeed 配置中加上 zero_optimization",
            "add zero_optimization to the DeepSpeed configuration",
        ),
        Text("zero_hpz_partition_size 写入该节", "zero_hpz_partition_size is written into it"),
        since="3.2.2",
        groups=SFT,
    ),
    Refusal(
        "gpus-for-processes",
        "swift/utils/env.py, is_mp",
        ("CUDA_VISIBLE_DEVICES",),
        _uneven_gpus,
        Text(
            "让 CUDA_VISIBLE_DEVICES 的卡数是 NPROC_PER_NODE 的整数倍",
            "make the GPUs of CUDA_VISIBLE_DEVICES a multiple of NPROC_PER_NODE",
        ),
        Text(
            "{seen} 张卡不能平分给 {processes} 个进程",
            "{seen} GPUs do not divide among {processes} processes",
        ),
        figures=_gpus,
        since="3.6.4",  # before, a GPU might be left to the engine of GRPO
        groups=SFT,
    ),
)
"""Rules of ``swift sft``, ``pt`` and ``rlhf``; some hold for ``megatron`` too."""
