"""Parameters that were renamed or dropped, and what the frameworks' own sources say instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Optional


@dataclass(frozen=True)
class Former:
    """What became of a parameter.

    ``name`` takes its value as it is. ``values``: parameters that say the same as a value of
    the old one. ``beside``: a switch, and what says the same where that is on, ``unless`` another
    is given. ``advice``: what to do where no parameter takes its place. ``until``: the last
    minor version that knew it, where the tables do not reach back so far.
    """

    name: str = ""
    values: Mapping[Any, Mapping[str, Any]] = field(default_factory=lambda: MappingProxyType({}))
    advice: str = ""
    until: str = ""
    beside: Optional[tuple[str, Mapping[str, Any]]] = None
    unless: tuple[str, ...] = ()


def _named(**names: str) -> dict[str, Former]:
    return {old: Former(new) for old, new in names.items()}


def _dropped(advice: str, *names: str) -> dict[str, Former]:
    return {name: Former(advice=advice) for name in names}


# transformers 4.57.6, training_args.py (its deprecation messages), and 5.24.0.
_TRANSFORMERS = {
    **_named(
        evaluation_strategy="eval_strategy",
        no_cuda="use_cpu",
        per_gpu_train_batch_size="per_device_train_batch_size",
        per_gpu_eval_batch_size="per_device_eval_batch_size",
        push_to_hub_model_id="hub_model_id",
        push_to_hub_token="hub_token",
        xpu_backend="ddp_backend",
        torchdynamo="torch_compile_backend",
        warmup_ratio="warmup_steps",
    ),
    "group_by_length": Former(values={True: {"train_sampling_strategy": "group_by_length"}}),
    "adafactor": Former(values={True: {"optim": "adafactor"}}),
    "include_inputs_for_metrics": Former(values={True: {"include_for_metrics": ["inputs"]}}),
    **_dropped("move it into accelerator_config", "dispatch_batches", "split_batches"),
    **_dropped("the trainer does not ask for it", "overwrite_output_dir"),
    **_dropped("weights are always written as safetensors", "save_safetensors"),
    **_dropped("set the environment variable TENSORBOARD_LOGGING_DIR", "logging_dir"),
    **_dropped("mixed precision is always PyTorch's", "fp16_backend", "half_precision_backend"),
    **_dropped("mixed precision is always PyTorch's", "fp16_opt_level"),
    **_dropped("move it into fsdp_config", "fsdp_min_num_params"),
    **_dropped("move it into fsdp_config", "fsdp_transformer_layer_cls_to_wrap"),
    **_dropped("the device is chosen by itself", "use_mps_device"),
}

# trl 0.17.0, 0.19.1 and 0.27.2, trainer/*_config.py (their deprecation messages).
_TRL = {
    **_named(
        max_seq_length="max_length",
        use_liger="use_liger_kernel",
        use_liger_loss="use_liger_kernel",
        vllm_guided_decoding_regex="vllm_structured_outputs_regex",
        wandb_log_unique_prompts="log_unique_prompts",
        torch_dtype="dtype",
    ),
    **_dropped("use max_length", "num_of_sequences"),
    **_dropped("filter long prompts out of the dataset", "max_prompt_length"),
}

# ms-swift 3.0.3 to 4.6.0, arguments/*.py; 2.x: swift/llm/utils/argument.py of 2.6.1.
_SWIFT = {
    **_named(
        train_type="tuner_type",
        use_liger="use_liger_kernel",
        tensor_parallel_size="vllm_tensor_parallel_size",
        pipeline_parallel_size="vllm_pipeline_parallel_size",
        data_parallel_size="vllm_data_parallel_size",
        gpu_memory_utilization="vllm_gpu_memory_utilization",
        max_num_seqs="vllm_max_num_seqs",
        enforce_eager="vllm_enforce_eager",
        limit_mm_per_prompt="vllm_limit_mm_per_prompt",
        disable_custom_all_reduce="vllm_disable_custom_all_reduce",
        enable_prefix_caching="vllm_enable_prefix_caching",
        use_async_engine="vllm_use_async_engine",
        tp="lmdeploy_tp",
        session_len="lmdeploy_session_len",
        cache_max_entry_count="lmdeploy_cache_max_entry_count",
        quant_policy="lmdeploy_quant_policy",
        vision_batch_size="lmdeploy_vision_batch_size",
        eval_datasets="eval_dataset",
        eval_datasets_args="eval_dataset_args",
        metric="eval_metric",
        tools_prompt="agent_template",
        lora_modules="adapters",
        mcore_adapters="mcore_adapter",
        adapter_load="mcore_adapter",
        load="mcore_model",
        save="output_dir",
        save_interval="save_steps",
        log_interval="logging_steps",
        eval_interval="eval_steps",
        max_epochs="num_train_epochs",
        num_workers="dataloader_num_workers",
    ),
    "sft_type": Former("tuner_type", until="2.6"),
    "model_id_or_path": Former("model", until="2.6"),
    "template_type": Former("template", until="2.6"),
    "lora_target_modules": Former("target_modules", until="2.6"),
    "lora_dropout_p": Former("lora_dropout", until="2.6"),
    "batch_size": Former("per_device_train_batch_size", until="2.6"),
    "eval_batch_size": Former("per_device_eval_batch_size", until="2.6"),
    "quantization_bit": Former("quant_bits", until="2.6"),
    "use_flash_attn": Former(values={True: {"attn_impl": "flash_attn"}}, until="2.6"),
    "ckpt_dir": Former(advice="write adapters, or model for a full checkpoint"),
    # Until 3.5, as many of them as processes meant vLLM on the training GPUs.
    "num_infer_workers": Former(
        advice="vLLM runs on the training GPUs by vllm_mode colocate",
        beside=("use_vllm", MappingProxyType({"vllm_mode": "colocate"})),
        unless=("vllm_mode", "vllm_server_host", "vllm_server_base_url"),
    ),
    **_dropped("the model runs on the training GPUs (vllm_mode)", "vllm_device"),
    "config": Former(advice="write the file right behind the subcommand", until="4.0"),
}

# llamafactory 0.7.1 to 0.9.5, hparams/*.py.
_LLAMAFACTORY = {
    **_named(
        dpo_beta="pref_beta",
        dpo_ftx="pref_ftx",
        dpo_loss="pref_loss",
        orpo_beta="pref_beta",
        image_dir="media_dir",
        new_special_tokens="add_special_tokens",
        vllm_dtype="infer_dtype",
        use_cache="use_kv_cache",
    ),
    **_dropped("set image_max_pixels, in pixels altogether", "image_resolution"),
    **_dropped("set video_max_pixels, in pixels altogether", "video_resolution"),
}

# accelerate 0.13 to 0.26, accelerator.py.
_ACCELERATE = {
    "logging_dir": Former("project_dir", until="0.19"),
    "fp16": Former(values={True: {"mixed_precision": "fp16"}}, until="0.15"),
    **_dropped("pass it in dataloader_config", "dispatch_batches", "even_batches"),
    **_dropped("pass it in dataloader_config", "use_seedable_sampler", "split_batches"),
}

# vllm 0.10.2, entrypoints (its deprecation message), and 0.14.1, engine/arg_utils.py.
_VLLM = _dropped("requests are logged only with --enable-log-requests", "disable_log_requests")

# trl 0.12.2 to 0.24.0, trainer/*_trainer.py, and transformers 4.46.3, trainer.py (the names that
# deprecate_kwarg and the constructors themselves take for others).
_OF_TRAINERS = _named(
    tokenizer="processing_class",
    config="args",
    policy="model",
    ref_policy="ref_model",
    reward_model="reward_funcs",
    reward_processing_class="reward_processing_classes",
)

# SGLang 0.5.3 and 0.5.15, srt/server_args.py: what its deprecated flags say.
_SGLANG = {
    **_named(
        cuda_graph_max_bs="cuda_graph_max_bs_decode",
        cuda_graph_bs="cuda_graph_bs_decode",
        piecewise_cuda_graph_tokens="cuda_graph_bs_prefill",
        nsa_prefill_backend="dsa_prefill_backend",
        nsa_decode_backend="dsa_decode_backend",
        piecewise_cuda_graph_max_tokens="cuda_graph_max_bs_prefill",
        piecewise_cuda_graph_compiler="cuda_graph_tc_compiler",
        mamba_scheduler_strategy="mamba_radix_cache_strategy",
        speculative_dflash_draft_window_size="speculative_draft_window_size",
        stream_output="incremental_streaming_output",
    ),
    **dict.fromkeys(
        (
            "enable_prefill_context_parallel",
            "enable_dsa_prefill_context_parallel",
            "enable_nsa_prefill_context_parallel",
        ),
        Former(values={True: {"enable_prefill_cp": True}}),
    ),
    **dict.fromkeys(
        ("prefill_cp_mode", "dsa_prefill_cp_mode", "nsa_prefill_cp_mode"),
        Former(
            values={
                "in-seq-split": {"cp_strategy": "zigzag"},
                "round-robin-split": {"cp_strategy": "interleave"},
            }
        ),
    ),
    "enforce_piecewise_cuda_graph": Former(
        values={True: {"cuda_graph_backend_prefill": "tc_piecewise"}}
    ),
    "enable_breakable_cuda_graph": Former(
        values={True: {"cuda_graph_backend_prefill": "breakable"}}
    ),
    **_dropped("prefill has CUDA graphs by default since 0.5.10", "enable_piecewise_cuda_graph"),
    "disable_piecewise_cuda_graph": Former(values={True: {"disable_prefill_cuda_graph": True}}),
    "enable_deepep_moe": Former(values={True: {"moe_a2a_backend": "deepep"}}),
    **_dropped("set ep_size to tp_size", "enable_ep_moe"),
}

_FORMER: Mapping[str, Mapping[str, Former]] = MappingProxyType(
    {
        "transformers": _TRANSFORMERS,
        "trl": _TRL,
        "ms-swift": _SWIFT,
        "llamafactory": _LLAMAFACTORY,
        "accelerate": _ACCELERATE,
        "vllm": _VLLM,
        "sglang": _SGLANG,
    }
)


def former(distribution: str, name: str, *, of_trainer: bool = False) -> Optional[Former]:
    """What became of a parameter of ``distribution``; None where that is not known.

    ``of_trainer``: of the constructor of a trainer, not of its arguments.
    """
    if of_trainer:
        return _OF_TRAINERS.get(name)
    return _FORMER.get(distribution, {}).get(name)


def renamed_to(distribution: str, name: str) -> tuple[str, ...]:
    """Later names of a parameter, the newest first."""
    table = _FORMER.get(distribution, {})
    newest = table[name].name if name in table else ""
    if not newest:
        return ()
    between = (one for one, told in table.items() if told.name == newest and one != name)
    return (newest, *between)
