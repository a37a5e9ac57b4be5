"""What ``megatron sft``, ``pt`` and ``rlhf`` refuse (swift/megatron/arguments)."""

from __future__ import annotations

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.ms_swift._asked import (
    MEGATRON,
    MEGATRON_RLHF,
    batch,
    drop,
    items,
    none_of,
    off,
    setting,
    tuner,
)
from flake8_gpu_training.language import Text

_FILE = "swift/megatron/arguments/megatron_args.py"
_ARGUMENTS = f"{_FILE}, MegatronArguments"
_RLHF = f"{_FILE}, RLHFMegatronArgumentsMixin"


# --- training -------------------------------------------------------------------------


def _selects_by_method(options: Options) -> bool:
    selective = options["recompute_granularity"] == "selective"
    return selective and options["recompute_method"] is not None


def _recomputes_somehow(options: Options) -> bool:
    missing = options["recompute_method"] is None or options["recompute_num_layers"] is None
    return options["recompute_granularity"] == "full" and missing


def _groups_unpadded(options: Options) -> bool:
    return bool(options["group_by_length"]) and bool(options["padding_free"] or options["packing"])


def _keeps_and_saves_beside(options: Options) -> bool:
    return options["save_total_limit"] is not None and bool(options["async_save"])


def _streams_epochs(options: Options) -> bool:
    return bool(options["streaming"]) and options["save_strategy"] == "epoch"


def _streams_endlessly(options: Options) -> bool:
    if not options["streaming"] or options["num_train_epochs"] is None:
        return False
    return none_of(options, "train_iters")


def _evaluates_endlessly(options: Options) -> bool:
    judged = bool(options["streaming"]) and bool(items(options, "val_dataset"))
    return judged and options["eval_iters"] < 0


_DECAYS = ("start_weight_decay", "end_weight_decay")


def _decays_and_stays(options: Options) -> bool:
    constant = options["weight_decay_incr_style"] == "constant"
    return constant and any(options[name] is not None for name in _DECAYS)


def _decays_from_nowhere(options: Options) -> bool:
    if options["weight_decay_incr_style"] == "constant":
        return False
    return any(none_of(options, name) for name in _DECAYS)


# --- tuning, optimizer, kernels -------------------------------------------------------


def _adapts_language_model(options: Options) -> bool:
    return bool(tuner(options) == "lora_llm")


def _bridges(options: Options) -> bool:
    return bool(options["bridge_backend"] == "megatron-bridge")


def _bridges_adapters(options: Options) -> bool:
    return _bridges(options) and tuner(options) != "full"


def _bridges_task(options: Options) -> bool:
    return _bridges(options) and options["task_type"] not in (None, "causal_lm")


_MUON_RATES = ("muon_lr", "muon_min_lr")


def _muon_rates_of_others(options: Options) -> bool:
    other = "muon" not in options["optimizer"]
    return other and any(options[name] is not None for name in _MUON_RATES)


_OVERLAPS = ("overlap_grad_reduce", "overlap_param_gather")


def _muon_overlaps(options: Options) -> bool:
    return options["optimizer"] == "muon" and any(options[name] for name in _OVERLAPS)


def _shards_other(options: Options) -> bool:
    return bool(options["use_megatron_fsdp"]) and options["optimizer"] not in ("sgd", "adam")


def _one_connection(options: Options) -> bool:
    setting_ = options.run.environment.get("CUDA_DEVICE_MAX_CONNECTIONS")
    if not options["use_megatron_fsdp"] or setting_ is None or not known(setting_.value):
        return False
    return str(setting_.value) == "1"


_BACKENDS = ("flash", "fused", "unfused", "local", "auto", "flash_2", "flash_3", "flash_4")


def _several_adapters(options: Options) -> bool:
    return len(items(options, "adapters")) > 1


# --- GRPO -----------------------------------------------------------------------------


def _is_grpo(options: Options) -> bool:
    return bool(options["rlhf_type"] == "grpo")


def _real_groups(options: Options) -> bool:
    if not _is_grpo(options) or options["loss_type"] != "real":
        return False
    return batch(options, "micro_batch_size") % batch(options, "num_generations") != 0


_UNSUPPORTED = (
    ("async_generate", lambda options: options["async_generate"]),
    ("sync_ref_model", lambda options: options["sync_ref_model"]),
    ("num_iterations", lambda options: options["num_iterations"] > 1),
)


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "megatron-selective-method",
        f"{_ARGUMENTS}.__post_init__",
        ("recompute_method", "recompute_granularity"),
        _selects_by_method,
        Text(
            "recompute_granularity 设为 full，或去掉 recompute_method",
            "write recompute_granularity=full, or drop recompute_method",
        ),
        Text("selective 重计算没有 method", "selective recomputation has no method"),
        write=setting(recompute_granularity="full"),
        since="4.0.4",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-full-method",
        "megatron/core/transformer/transformer_config.py, TransformerConfig.__post_init__",
        ("recompute_granularity", "recompute_method", "recompute_num_layers"),
        _recomputes_somehow,
        Text(
            "设置 recompute_method=uniform 与 recompute_num_layers=1",
            "give recompute_method=uniform and recompute_num_layers=1",
        ),
        Text("recompute_granularity=full 需要两者", "recompute_granularity=full needs them both"),
        write=setting(recompute_method="uniform", recompute_num_layers=1),
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-groups-unpadded",
        f"{_ARGUMENTS}.__post_init__",
        ("group_by_length", "padding_free", "packing"),
        _groups_unpadded,
        Text("去掉 group_by_length", "drop group_by_length"),
        Text("padding_free 没有填充可省", "without padding (padding_free) it saves nothing"),
        write=off("group_by_length"),
        since="4.0.4",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-limit-beside",
        f"{_ARGUMENTS}.__post_init__",
        ("async_save", "save_total_limit"),
        _keeps_and_saves_beside,
        Text("去掉 async_save 或 save_total_limit", "drop async_save or save_total_limit"),
        Text("两者不能同时设置", "old checkpoints are not removed beside an asynchronous save"),
        write=off("async_save"),
        since="4.0.4",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-limit",
        f"{_ARGUMENTS}.__post_init__",
        ("save_total_limit",),
        lambda options: options["save_total_limit"] < 2,
        Text("save_total_limit 设为 2 或更大", "give save_total_limit 2 or more"),
        Text("{save_total_limit} 太小", "{save_total_limit} is too few"),
        write=setting(save_total_limit=2),
        since="4.0.4",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-streamed-epochs",
        f"{_ARGUMENTS}.init_iters",
        ("save_strategy", "streaming"),
        _streams_epochs,
        Text("save_strategy 设为 steps", "write save_strategy=steps"),
        Text("streaming 数据没有 epoch 长度", "a stream has no known end of an epoch"),
        write=setting(save_strategy="steps"),
        since="4.0.4",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-streamed-iterations",
        f"{_ARGUMENTS}.init_iters",
        ("streaming", "train_iters"),
        _streams_endlessly,
        Text("设置 train_iters", "give train_iters"),
        Text("streaming 数据没有长度", "a stream has no length"),
        since="4.0.4",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-streamed-evaluation",
        f"{_ARGUMENTS}.init_iters",
        ("eval_iters", "val_dataset", "streaming"),
        _evaluates_endlessly,
        Text("设置 eval_iters", "give eval_iters"),
        Text("streaming 验证集没有长度", "streamed validation data have no length"),
        since="4.0.4",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-constant-decay",
        f"{_ARGUMENTS}._init_weigh_decay",
        (*_DECAYS, "weight_decay_incr_style"),
        _decays_and_stays,
        Text(
            "weight_decay_incr_style 设为 linear 或 cosine，或去掉首末值",
            "write weight_decay_incr_style=linear or cosine, or drop its start and end",
        ),
        Text("constant 只用 weight_decay", "constant takes weight_decay alone"),
        since="4.0.4",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-growing-decay",
        f"{_ARGUMENTS}._init_weigh_decay",
        ("weight_decay_incr_style", *_DECAYS),
        _decays_from_nowhere,
        Text(
            "设置 start_weight_decay 与 end_weight_decay",
            "give start_weight_decay and end_weight_decay",
        ),
        Text(
            "weight_decay_incr_style={weight_decay_incr_style} 需要两者",
            "weight_decay_incr_style={weight_decay_incr_style} needs both",
        ),
        since="4.0.4",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-bare-language-model",
        f"{_ARGUMENTS}._check_mcore_bridge",
        ("tuner_type", "language_model_only"),
        lambda options: _adapts_language_model(options) and options["language_model_only"],
        Text("tuner_type 设为 lora", "write tuner_type=lora"),
        Text(
            "language_model_only 下没有视觉部分", "language_model_only leaves nothing else to train"
        ),
        write=setting(tuner_type="lora"),
        since="4.3.2",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-unmerged",
        f"{_ARGUMENTS}.__post_init__",
        ("merge_lora", "save_safetensors", "tuner_type"),
        lambda options: (
            _adapts_language_model(options)
            and not (
                options["save_safetensors"]
                if options["merge_lora"] is None
                else options["merge_lora"]
            )
        ),
        Text("设置 merge_lora=true", "write merge_lora=true"),
        Text("tuner_type=lora_llm 需要合并", "tuner_type=lora_llm needs it"),
        write=setting(merge_lora=True),
        since="4.1.3",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-saved-optimizer",
        f"{_ARGUMENTS}.__post_init__",
        ("no_save_optim", "tuner_type"),
        lambda options: _adapts_language_model(options) and not options["no_save_optim"],
        Text("设置 no_save_optim=true", "write no_save_optim=true"),
        Text("tuner_type=lora_llm 不保存优化器", "tuner_type=lora_llm needs it"),
        write=setting(no_save_optim=True),
        since="4.1.3",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-bridge-of-adapters",
        f"{_ARGUMENTS}._check_bridge_backend",
        ("bridge_backend", "tuner_type"),
        _bridges_adapters,
        Text("bridge_backend 设为 mcore-bridge", "write bridge_backend=mcore-bridge"),
        Text("megatron-bridge 只支持全参训练", "megatron-bridge trains all parameters only"),
        write=setting(bridge_backend="mcore-bridge"),
        since="4.5.3",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-bridge-of-tasks",
        f"{_ARGUMENTS}.__post_init__",
        ("bridge_backend", "task_type"),
        _bridges_task,
        Text("bridge_backend 设为 mcore-bridge", "write bridge_backend=mcore-bridge"),
        Text(
            "megatron-bridge 不支持 task_type={task_type}",
            "megatron-bridge has no task_type={task_type}",
        ),
        write=setting(bridge_backend="mcore-bridge"),
        since="4.5.3",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-rates-of-muon",
        f"{_ARGUMENTS}._check_muon",
        (*_MUON_RATES, "optimizer"),
        _muon_rates_of_others,
        Text(
            "optimizer 设为 muon 或 dist_muon，或去掉 muon_lr、muon_min_lr",
            "write optimizer=muon or dist_muon, or drop muon_lr and muon_min_lr",
        ),
        Text("optimizer 是 {optimizer}", "the optimizer is {optimizer}"),
        since="4.5.3",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-overlap-of-muon",
        f"{_ARGUMENTS}._check_muon",
        ("optimizer", *_OVERLAPS),
        _muon_overlaps,
        Text("optimizer 设为 dist_muon", "write optimizer=dist_muon"),
        Text(
            "muon 不支持 overlap_grad_reduce、overlap_param_gather",
            "muon takes neither overlap_grad_reduce nor overlap_param_gather",
        ),
        write=setting(optimizer="dist_muon"),
        since="4.1.3",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-fsdp-optimizer",
        f"{_ARGUMENTS}._check_megatron_fsdp",
        ("optimizer", "use_megatron_fsdp"),
        lambda options: _shards_other(options),
        Text("optimizer 设为 adam 或 sgd", "write optimizer=adam or sgd"),
        Text("Megatron-FSDP 不支持 {optimizer}", "Megatron-FSDP does not take {optimizer}"),
        write=setting(optimizer="adam"),
        since="4.5.3",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-fsdp-connections",
        f"{_ARGUMENTS}._check_megatron_fsdp",
        ("use_megatron_fsdp",),
        _one_connection,
        Text("CUDA_DEVICE_MAX_CONNECTIONS 设为 32", "set CUDA_DEVICE_MAX_CONNECTIONS=32"),
        Text("Megatron-FSDP 要求其大于 1", "Megatron-FSDP needs more than 1"),
        since="4.5.3",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-attention",
        f"{_ARGUMENTS}._init_attention_backend",
        ("attention_backend",),
        lambda options: options["attention_backend"] not in _BACKENDS,
        Text(
            f"attention_backend 设为 {'、'.join(_BACKENDS)} 之一",
            f"write attention_backend={', '.join(_BACKENDS[:-1])} or {_BACKENDS[-1]}",
        ),
        Text("没有后端 {attention_backend}", "there is no backend {attention_backend}"),
        write=setting(attention_backend="flash"),
        since="4.3.2",
        groups=MEGATRON,
    ),
    Refusal(
        "megatron-several-adapters",
        f"{_ARGUMENTS}._load_adapter_config",
        ("adapters",),
        _several_adapters,
        Text("adapters 只保留一个", "keep one of the adapters"),
        Text("只接受一个适配器", "one adapter is taken"),
        since="3.10.3",
        groups=MEGATRON,
    ),
    *(
        Refusal(
            f"megatron-grpo-{name.replace('_', '-')}",
            f"{_RLHF}._init_grpo",
            (name,),
            lambda options, holds=holds: _is_grpo(options) and bool(holds(options)),  # type: ignore[misc]
            drop(name),
            Text("Megatron GRPO 不支持", "GRPO by Megatron does not take it"),
            write=off(name) if name != "num_iterations" else setting(num_iterations=1),
            since="3.11.3",
            groups=MEGATRON_RLHF,
        )
        for name, holds in _UNSUPPORTED
    ),
    Refusal(
        "megatron-grpo-real-groups",
        f"{_RLHF}._init_grpo",
        ("micro_batch_size", "num_generations"),
        _real_groups,
        Text(
            "micro_batch_size 设为 {num_generations} 的倍数",
            "make micro_batch_size a multiple of {num_generations}",
        ),
        Text(
            "loss_type=real 每批需要完整的组（num_generations）",
            "loss_type=real takes whole groups (num_generations)",
        ),
        since="4.2.3",
        groups=MEGATRON_RLHF,
    ),
    Refusal(
        "megatron-grpo-without-vllm",
        f"{_RLHF}._init_grpo",
        ("use_vllm",),
        lambda options: _is_grpo(options) and not options["use_vllm"],
        Text("设置 use_vllm=true", "write use_vllm=true"),
        Text("Megatron GRPO 只用 vLLM 生成", "GRPO by Megatron generates with vLLM"),
        write=setting(use_vllm=True),
        since="3.11.3",
        groups=MEGATRON_RLHF,
    ),
)
