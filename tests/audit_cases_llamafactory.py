"""What LlamaFactory's audit says of each item, as settings that every front end can write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from audit_cases import A100, A100_40G, ADVISED, H100, NA, OFF, ON, PARTLY, UNKNOWN, V100

from flake8_gpu_training.checks.base import Status

QWEN = "Qwen/Qwen2.5-7B-Instruct"
QWEN_72B = "Qwen/Qwen2.5-72B-Instruct"
LLAMA = "meta-llama/Meta-Llama-3-8B-Instruct"
ONE = "CUDA_VISIBLE_DEVICES=0 "
EIGHT = "FORCE_TORCHRUN=1 NPROC_PER_NODE=8 "
MEGATRON = f"USE_MCA=1 {EIGHT}"
FULL = {"finetuning_type": "full"}
FROZEN = {"finetuning_type": "freeze"}
ZERO2 = "examples/deepspeed/ds_z2_config.json"
ZERO3 = "examples/deepspeed/ds_z3_config.json"
OFFLOADED = "examples/deepspeed/ds_z3_offload_config.json"
AUTOTP = "examples/deepspeed/ds_z2_autotp_config.json"
FSDP = "distributed_type: FSDP\nnum_machines: 1\nnum_processes: 8\nfsdp_config:\n"
SHARDED = f"{FSDP}  fsdp_sharding_strategy: FULL_SHARD\n"
FSDP_OFFLOAD = f"{SHARDED}  fsdp_offload_params: true\n"
FSDP2 = f"{FSDP}  fsdp_version: 2\n"
LAUNCH = "accelerate launch --config_file fsdp.yaml src/train.py"
NPU = "ASCEND_RT_VISIBLE_DEVICES=0 "


@dataclass(frozen=True)
class Case:
    """Settings, and what the audit says of one item of the run that they describe.

    ``before`` stands before the command, ``command`` in its place; ``serves`` for ``api``.
    """

    item: str
    status: Status
    settings: Mapping[str, Any] = field(default_factory=dict)
    before: str = ONE
    directives: tuple[str, ...] = ()
    command: str = "llamafactory-cli train"
    files: Mapping[str, str] = field(default_factory=dict)
    number: int = 0

    @property
    def id(self) -> str:
        """Item, status and what sets it."""
        marks = "-".join(f"{k}={v}".rpartition("/")[2] for k, v in self.settings.items())
        return f"{self.item}-{self.status.value}-{marks}{self.before.strip()}{self.directives}"


def _tuned(item: str, switch: str, value: Any = True, **more: Any) -> tuple[Case, Case, Case]:
    """A switch for LoRA: on, off, and not for full tuning."""
    return (
        Case(item, ON, {switch: value, **more}),
        Case(item, OFF, more),
        Case(item, NA, {**FULL, **more}),
    )


def _sharded(item: str, file: str) -> tuple[Case, ...]:
    return (
        Case(item, ON, {**FULL, "deepspeed": file, "flash_attn": "fa2"}, EIGHT),
        Case(item, NA, FULL),
    )


def _by_accelerate(item: str, status: Status, file: str, **settings: Any) -> Case:
    return Case(item, status, settings, "", (), LAUNCH, {"fsdp.yaml": file})


CASES: tuple[Case, ...] = (
    # A PEFT
    Case("lora", ON),
    Case("lora", ON, {"finetuning_type": "lora", "lora_rank": 64}),
    Case("lora", ADVISED, {**FULL, "model_name_or_path": QWEN_72B}, EIGHT, (A100_40G,)),
    Case("lora", OFF, FULL),
    Case("lora", NA, {**FULL, "do_train": False, "do_predict": True}),
    Case("oft", ON, {"finetuning_type": "oft"}),
    Case("oft", OFF),
    Case("oft", NA, {**FULL, "do_train": False, "do_predict": True}),
    Case("qlora", OFF, {**FULL, "quantization_bit": 4}),  # refused: not in effect
    Case("qlora", ON, {"quantization_bit": 4}),
    Case("qlora", ON, {"quantization_bit": 8, "quantization_method": "hqq"}),
    Case("qlora", ON, {"model_name_or_path": "TechxGenus/Meta-Llama-3-8B-Instruct-AWQ"}),
    Case("qlora", ADVISED, {"model_name_or_path": QWEN_72B}, ONE, ("gres=gpu:a100-80g:1",)),
    Case("qlora", OFF),
    Case("qlora", NA, FULL),
    *_tuned("dora", "use_dora"),
    *_tuned("rslora", "use_rslora"),
    *_tuned("loraplus", "loraplus_lr_ratio", 16.0),
    *_tuned("pissa", "pissa_init"),
    *_tuned("loftq", "adapter_name_or_path", "models/llama3-loftq-4bit/loftq_init"),
    # B mixed precision
    Case("bf16", ON, {"bf16": True}),
    Case("bf16", ADVISED, FULL),
    Case("bf16", OFF, {"fp16": True}),
    Case("bf16", NA, {"bf16": True, "do_train": False, "do_predict": True}),
    Case("fp16", ON, {"fp16": True}, ONE, (V100,)),
    Case("fp16", PARTLY, {"fp16": True}, ONE, (A100,)),
    Case("fp16", ADVISED, FULL, ONE, (V100,)),
    Case("fp16", NA, {"fp16": True, "do_train": False, "do_predict": True}),
    Case("pure-bf16", ON, {**FULL, "pure_bf16": True}),
    Case("pure-bf16", OFF, {"bf16": True}),
    Case("pure-bf16", NA, {"do_train": False, "do_predict": True}),
    Case("fp8", ON, {**FULL, "bf16": True, "fp8": True, "fp8_backend": "torchao"}, ONE, (H100,)),
    Case("fp8", OFF, {"bf16": True}, ONE, (H100,)),
    Case("fp8", NA, {"bf16": True}, ONE, (A100,)),
    Case("fp8", NA, {"bf16": True, "quantization_bit": 4}, ONE, (H100,)),
    *_tuned("upcast-layernorm", "upcast_layernorm", quantization_bit=4)[:2],
    Case("upcast-layernorm", NA, {**FULL, "bf16": True}),
    Case("upcast-layernorm", OFF, {**FULL, "pure_bf16": True}),
    *(
        Case(
            "upcast-layernorm",
            status,
            {**tuning, "bf16": True},
            "",
            command=LAUNCH,
            files={"fsdp.yaml": launch},
        )
        for tuning in ({}, {"quantization_bit": 4})
        for status, launch in ((NA, SHARDED), (OFF, FSDP2))
    ),
    Case("upcast-lmhead", ON, {"upcast_lmhead_output": True}),
    Case("upcast-lmhead", OFF),
    Case("upcast-lmhead", NA, {"enable_liger_kernel": True}),
    # C activations
    Case("gradient-checkpointing", ON),
    Case(
        "gradient-checkpointing",
        ADVISED,
        {"disable_gradient_checkpointing": True, "cutoff_len": 16384},
    ),
    Case("gradient-checkpointing", OFF, {"disable_gradient_checkpointing": True}),
    Case("gradient-checkpointing", NA, {"do_train": False, "do_predict": True}),
    Case("unsloth-gc", ON, {"use_unsloth_gc": True}),
    Case("unsloth-gc", OFF),
    Case("unsloth-gc", NA, {"disable_gradient_checkpointing": True}),
    Case("unsloth-gc", NA, {}, NPU),
    Case("reentrant-mode", ON),
    Case("reentrant-mode", ON, {"use_reentrant_gc": False}),
    _by_accelerate("reentrant-mode", ON, FSDP2, **FULL),
    Case(
        "reentrant-mode",
        ADVISED,
        FULL,
        "",
        (),
        LAUNCH,
        {"fsdp.yaml": FSDP2, "requirements.txt": "llamafactory==0.9.3\n"},
    ),
    Case("reentrant-mode", NA, {"use_unsloth_gc": True}),
    Case("gradient-checkpointing", ON, {**FULL, "recompute_granularity": "full"}, MEGATRON),
    Case("gradient-checkpointing", UNKNOWN, FULL, MEGATRON),
    Case("reentrant-mode", NA, FULL, MEGATRON),
    Case("unsloth-gc", NA, FULL, MEGATRON),
    Case("upcast-lmhead", NA, FULL, MEGATRON),
    Case("neat-packing", OFF, FULL, MEGATRON),
    Case("gradient-accumulation", ON, {"gradient_accumulation_steps": 8}),
    Case("gradient-accumulation", ADVISED, {"per_device_train_batch_size": 1}),
    Case("gradient-accumulation", OFF, {"per_device_train_batch_size": 16}),
    Case("gradient-accumulation", NA, {"do_train": False, "do_predict": True}),
    # D distributed
    *_sharded("zero2", ZERO2),
    *_sharded("zero3", ZERO3),
    *_sharded("zero3-offload", OFFLOADED),
    Case("zero3", ADVISED, {**FULL, "model_name_or_path": "Qwen/Qwen2.5-32B"}, EIGHT, (A100,)),
    Case("zero2", ADVISED, {**FULL, "model_name_or_path": "Qwen/Qwen2.5-14B"}, EIGHT, (A100,)),
    _by_accelerate("fsdp", ON, SHARDED, **FULL),
    Case("fsdp", NA, FULL),
    _by_accelerate("fsdp-offload", ON, FSDP_OFFLOAD, **FULL),
    Case("fsdp-offload", NA, FULL),
    _by_accelerate("fsdp-offload", OFF, SHARDED, **FULL),
    _by_accelerate("fsdp-qlora", ON, SHARDED, quantization_bit=4),
    _by_accelerate("fsdp-qlora", OFF, SHARDED),
    Case("fsdp-qlora", NA, {"quantization_bit": 4}),
    _by_accelerate("fsdp-qlora", NA, SHARDED, **FULL),
    Case("autotp", ON, {**FULL, "deepspeed": AUTOTP}, EIGHT),
    Case("autotp", OFF, {**FULL, "deepspeed": ZERO2}, EIGHT),
    Case("autotp", NA, {**FULL, "deepspeed": ZERO3}, EIGHT),
    Case("autotp", NA, {}, EIGHT),
    Case("autotp", NA, FULL, "", command=LAUNCH, files={"fsdp.yaml": SHARDED}),
    Case("megatron-core", ON, {**FULL, "tensor_model_parallel_size": 2}, MEGATRON),
    Case("megatron-core", OFF, FULL, EIGHT),
    Case("megatron-core", NA, FULL),
    Case("ray", ON, {"ray_num_workers": 4}, "USE_RAY=1 "),
    Case("ray", OFF, {}, EIGHT),
    Case("ray", NA),
    # E optimizers
    Case("galore", ON, {**FULL, "use_galore": True, "pure_bf16": True}),
    Case("badam", ON, {**FULL, "use_badam": True, "pure_bf16": True}),
    Case("apollo", ON, {**FULL, "use_apollo": True, "pure_bf16": True}),
    Case("adam-mini", ON, {**FULL, "use_adam_mini": True, "bf16": True}),
    Case("muon", ON, {**FULL, "use_muon": True, "bf16": True}),
    *(
        Case(item, status, settings)
        for item in ("galore", "badam", "apollo", "adam-mini")
        for status, settings in ((OFF, FULL), (OFF, FROZEN), (NA, {}))
    ),
    *(Case("muon", OFF, settings) for settings in (FULL, FROZEN, {})),  # it takes any matrix
    *(
        Case(item, NA, FULL, MEGATRON)
        for item in ("galore", "badam", "apollo", "adam-mini", "muon")
    ),
    *(
        Case(item, NA, FULL, MEGATRON)
        for item in ("lora", "oft", "neftune", "dft-loss", "eaft-loss", "mixture-of-depths")
    ),
    Case("mask-history", OFF, FULL, MEGATRON),
    Case("megatron-core", NA, {}, EIGHT),  # LoRA
    Case("megatron-core", NA, {**FULL, "stage": "kto"}, EIGHT),
    Case("pissa", NA, {"adapter_name_or_path": "saves/a"}),
    Case("loftq", NA, {"adapter_name_or_path": "saves/a"}),
    Case("pissa", OFF, {"adapter_name_or_path": "saves/a", "create_new_adapter": True}),
    Case("pissa", NA, {"stage": "kto"}),
    Case("pissa", NA, {"stage": "dpo"}),
    Case("loftq", OFF, {"stage": "dpo"}),
    Case("pissa", OFF, {"stage": "dpo", "pref_loss": "orpo"}),
    Case("pissa", NA, {"quantization_bit": 4}),
    Case("loftq", OFF, {"quantization_bit": 4}),
    *(
        Case(item, status, {"model_name_or_path": "a/Llama-3-8B-Instruct-GPTQ"})
        for item, status in (
            ("pissa", NA),
            ("loftq", NA),
            ("dora", NA),
            ("rslora", OFF),
            ("fp8", NA),
            ("megatron-core", NA),
        )
    ),
    Case("dora", OFF, {"quantization_bit": 4}),
    Case("badam", OFF, FULL),
    Case("badam", NA, FULL, "FORCE_TORCHRUN=1 "),
    Case("pure-bf16", OFF, {"bf16": False}),
    Case("bf16", OFF, {"bf16": False}),
    Case("preprocessing-workers", ON, {"tokenized_path": "a", "preprocessing_num_workers": 16}),
    Case("preprocessing-batch-size", ON, {"tokenized_path": "a", "preprocessing_num_workers": 16}),
    Case("unsloth", OFF, {}, EIGHT),
    Case("unsloth", NA, {"deepspeed": "examples/deepspeed/ds_z3_config.json"}, EIGHT),
    Case("pissa", NA, {"deepspeed": "examples/deepspeed/ds_z3_config.json"}, EIGHT),
    Case("fsdp-qlora", OFF, {"deepspeed": ZERO3}, EIGHT),
    _by_accelerate("badam", NA, SHARDED, **FULL),
    Case("bf16", ON, {"fp8": True, "bf16": True}, ONE, (H100,)),
    *(Case(item, NA, {**FULL, "deepspeed": ZERO2}, EIGHT) for item in ("galore", "apollo")),
    Case("badam", NA, {**FULL, "deepspeed": ZERO2}, EIGHT),
    Case("badam", OFF, {**FULL, "deepspeed": ZERO3}, EIGHT),
    Case("muon", OFF, {**FULL, "deepspeed": ZERO2}, EIGHT),
    Case("muon", NA, {**FULL, "deepspeed": ZERO3}, EIGHT),
    Case("muon", OFF, {"deepspeed": ZERO3}, EIGHT),
    Case("fused-adam", ON, {"optim": "adamw_torch_fused"}),
    Case("fused-adam", ADVISED, {"optim": "adamw_torch"}),
    Case("fused-adam", ADVISED, {"optim": "adamw_torch", "enable_liger_kernel": True}),
    Case("fused-adam", ON, {"optim": "adamw_apex_fused"}),
    *(Case("fused-adam", OFF, {"optim": name}) for name in ("paged_adamw_8bit", "adamw_8bit")),
    Case("fused-adam", UNKNOWN, {"use_fisher": True}),  # a fork's own
    Case("fused-adam", OFF, {**FULL, "use_galore": True, "pure_bf16": True}),
    Case("fused-adam", NA, {**FULL, "deepspeed": OFFLOADED}, EIGHT),
    # F attention
    Case("flash-attention-2", ON, {"flash_attn": "fa2"}),
    Case("flash-attention-2", ON, {"flash_attn": "fa3"}, ONE, (H100,)),
    Case("flash-attention-2", ADVISED),
    Case("flash-attention-2", ADVISED, {"flash_attn": "disabled"}),
    Case("flash-attention-2", NA, {}, NPU),
    Case("sdpa", ON, {"flash_attn": "sdpa"}, ONE, (V100,)),
    Case("sdpa", PARTLY, {"flash_attn": "sdpa"}, ONE, (A100,)),
    Case("sdpa", OFF, {"flash_attn": "fa2"}),
    Case("sdpa", NA, {}, NPU),
    *(
        Case(item, NA, {**FULL, "flash_attn": "fa2"}, MEGATRON)
        for item in ("flash-attention-2", "sdpa", "auto")
    ),
    Case("auto", ON, {"flash_attn": "auto"}, ONE, (V100,)),
    Case("auto", ON, {}, ONE, (V100,)),
    Case("auto", PARTLY, {"flash_attn": "auto"}, ONE, (A100,)),
    Case("auto", PARTLY, {}, ONE, (A100,)),
    Case("auto", OFF, {"flash_attn": "fa2"}),
    Case("auto", NA, {}, NPU),
    # by an unknown size as by a known one
    Case("auto", PARTLY, {"flash_attn": "auto"}),
    Case("auto", PARTLY, {"flash_attn": "auto", "model_name_or_path": "/data/llama-ours"}),
    Case("auto", ON, {"flash_attn": "auto", "model_name_or_path": "HuggingFaceTB/SmolLM2-135M"}),
    Case("shift-attention", ON, {"shift_attn": True, "model_name_or_path": LLAMA}),
    Case("shift-attention", NA, {"cutoff_len": 16384, "model_name_or_path": LLAMA}),
    Case(
        "shift-attention",
        OFF,
        {"cutoff_len": 16384, "model_name_or_path": LLAMA},
        files={"requirements.txt": "llamafactory==0.9.3\n"},
    ),
    Case("shift-attention", NA),
    Case("shift-attention", NA, {"cutoff_len": 16384}),
    Case("shift-attention", NA, {**FULL, "cutoff_len": 16384, "model_name_or_path": LLAMA}),
    # G engines
    Case("unsloth", ON, {"use_unsloth": True}),
    Case("unsloth", OFF),
    Case("unsloth", NA, FULL),
    Case("unsloth", NA, {"enable_liger_kernel": True}),
    Case("liger-kernel", ON, {"enable_liger_kernel": True}),
    Case("liger-kernel", ADVISED),
    Case("liger-kernel", OFF, {"use_dft_loss": True}),
    Case("liger-kernel", NA, {"use_unsloth": True}),
    Case("liger-kernel", ADVISED, {"model_name_or_path": "/data/Qwen/Qwen1___5-0___5B"}),
    Case("liger-kernel", ADVISED, {"model_name_or_path": "me/my-tuned-7B", "template": "qwen"}),
    Case("liger-kernel", ADVISED, {"model_name_or_path": "me/my-tuned-8B", "template": "llama3"}),
    Case(
        "liger-kernel",
        UNKNOWN,
        {"model_name_or_path": "me/my-7B", "template": "qwen", "trust_remote_code": True},
    ),
    Case("liger-kernel", UNKNOWN, {"model_name_or_path": "me/my-7B", "template": "default"}),
    Case("liger-kernel", UNKNOWN, {"model_name_or_path": "01-ai/Yi-6B", "template": "yi"}),
    Case("liger-kernel", NA, {"model_name_or_path": "THUDM/chatglm3-6b", "template": "chatglm3"}),
    Case("liger-kernel", NA, {"model_name_or_path": "Qwen/Qwen3-VL-4B-Instruct"}),
    Case("liger-kernel", ADVISED, {"model_name_or_path": "Qwen/Qwen2.5-VL-3B-Instruct"}),
    Case(
        "liger-kernel",
        NA,
        {"model_name_or_path": "Qwen/Qwen3-8B"},
        files={"requirements.txt": "llamafactory==0.9.2\n"},
    ),
    Case(
        "liger-kernel",
        ADVISED,
        {"model_name_or_path": "Qwen/Qwen3-8B"},
        files={"requirements.txt": "llamafactory==0.9.3\n"},
    ),
    Case("unsloth", NA, {}, NPU),
    Case("zero3", ADVISED, {**FULL, "model_name_or_path": QWEN_72B, "bf16": True}, ""),
    Case("zero3", UNKNOWN, {**FULL, "bf16": True}, ""),
    Case("unsloth", NA, {"use_kt": True, "model_name_or_path": "Qwen/Qwen3-30B-A3B"}),
    Case("fp8", NA, {"bf16": True}, NPU),
    Case(
        "ktransformers",
        ON,
        {"use_kt": True, "model_name_or_path": "Qwen/Qwen3-30B-A3B"},
        "USE_KT=1 ",
    ),
    Case("ktransformers", OFF, {"model_name_or_path": "Qwen/Qwen3-30B-A3B"}),
    Case("ktransformers", NA),
    Case("v1-kernels", ON, {"use_v1_kernels": True}, NPU),
    Case("v1-kernels", OFF, {}, NPU),
    Case("v1-kernels", NA),
    Case("v1-kernels", NA, {"use_v1_kernels": True}, ONE, (A100,)),
    # H data
    Case("packing", ON, {"packing": True}),
    Case("packing", ON, {"stage": "pt"}),
    Case("packing", NA, {"stage": "dpo"}),
    Case("packing", NA, {"stage": "kto"}),
    Case("packing", OFF, {"neat_packing": True}),
    Case("neat-packing", NA, {"stage": "dpo"}),
    Case("neat-packing", NA, {"stage": "pt"}),
    Case("packing", ADVISED, {"stage": "pt", "packing": False}),
    Case("packing", NA, {"stage": "rm"}),
    Case("neat-packing", ON, {"neat_packing": True}),
    Case("neat-packing", ADVISED),
    Case("neat-packing", NA, {"stage": "rm"}),
    Case("streaming", ON, {"streaming": True, "max_steps": 1000}),
    Case("streaming", OFF),
    Case("streaming", ADVISED, {"stage": "pt", "dataset": "fineweb"}),
    Case("streaming", NA, {"do_train": False, "do_predict": True}),
    Case("preprocessing-workers", ON, {"preprocessing_num_workers": 16}),
    Case("preprocessing-workers", ADVISED),
    Case("preprocessing-workers", NA, {"streaming": True, "max_steps": 1000}),
    Case("preprocessing-batch-size", ON),
    Case("preprocessing-batch-size", ON, {"preprocessing_batch_size": 2000}),
    Case("preprocessing-batch-size", OFF, {"preprocessing_batch_size": 1}),
    Case("preprocessing-batch-size", NA, {"tokenized_path": "saves/tokens"}),
    Case("tokenized-cache", ON, {"tokenized_path": "saves/tokens"}),
    Case("tokenized-cache", OFF),
    Case("tokenized-cache", NA, {"streaming": True, "max_steps": 1000}),
    Case("dataloader-workers", ON, {"dataloader_num_workers": 4}),
    Case("dataloader-workers", ADVISED),
    Case("dataloader-workers", PARTLY, {"dataloader_num_workers": 1}),
    Case("dataloader-workers", NA, {"do_train": False, "do_predict": True}),
    # I strategy
    Case("neftune", ON, {"neftune_noise_alpha": 5}),
    Case("neftune", OFF),
    Case("neftune", OFF, {"stage": "dpo"}),
    Case("neftune", OFF, {"stage": "pt"}),
    Case("neftune", NA, {"stage": "ppo", "reward_model": "a/b"}),
    Case("rope-scaling", ON, {"rope_scaling": "yarn", "cutoff_len": 65536}),
    Case("rope-scaling", OFF, {"cutoff_len": 65536}),
    Case("rope-scaling", NA),
    Case("mixture-of-depths", ON, {**FULL, "mixture_of_depths": "convert"}),
    Case("mixture-of-depths", OFF, {**FULL, "model_name_or_path": LLAMA}),
    Case("mixture-of-depths", NA, FULL),
    Case("mixture-of-depths", NA),
    Case("llama-pro", ON, {**FROZEN, "use_llama_pro": True}),
    Case("llama-pro", OFF, FROZEN),
    Case("llama-pro", NA, FULL),
    Case("freeze-tuning", ON, FROZEN),
    Case("freeze-tuning", OFF, FULL),
    Case("freeze-tuning", NA),
    *(
        case
        for name in ("dft", "asft", "eaft")
        for case in (
            Case(f"{name}-loss", ON, {f"use_{name}_loss": True}),
            Case(f"{name}-loss", OFF),
            Case(f"{name}-loss", NA, {"stage": "dpo"}),
        )
    ),
    Case("mask-history", ON, {"mask_history": True}),
    Case("mask-history", OFF),
    Case("mask-history", NA, {"stage": "pt"}),
    Case("train-on-prompt-off", ON),
    Case("train-on-prompt-off", OFF, {"train_on_prompt": True}),
    Case("train-on-prompt-off", NA, {"stage": "pt"}),
    Case("auto-batch-size", ON, {"auto_find_batch_size": True}),
    Case("auto-batch-size", OFF),
    Case("auto-batch-size", NA, {**FULL, "deepspeed": ZERO3}, EIGHT),
    # J inference
    *(
        case
        for name in ("vllm", "sglang")
        for case in (
            Case(f"{name}-backend", ON, {"infer_backend": name}, command="llamafactory-cli api"),
            Case(f"{name}-backend", OFF, {}, command="llamafactory-cli chat"),
            Case(f"{name}-backend", NA),
        )
    ),
    Case("vllm-backend", ADVISED, {}, command="llamafactory-cli api"),
    Case("vllm-backend", NA, {"do_train": False, "do_predict": True}),
    Case("kv-cache", ON, {"do_train": False, "do_predict": True}),
    Case("kv-cache", ON, {}, command="llamafactory-cli chat"),
    Case("kv-cache", ADVISED, {"use_kv_cache": False}, command="llamafactory-cli chat"),
    Case("kv-cache", NA, {"infer_backend": "vllm"}, command="llamafactory-cli api"),
    Case("kv-cache", NA),
)

NEVER_ADVISED = {
    "oft": "one of a group: LoRA is the adapter that is advised",
    "dora": "slower for a quality that only an experiment shows",
    "rslora": "for large ranks, by choice",
    "loraplus": "a learning rate is the user's",
    "pissa": "takes a decomposition of the weights first",
    "loftq": "takes a script of its own first",
    "pure-bf16": "one of a group: mixed precision is steadier where it fits",
    "fp8": "whether the loss converges has to be tested",
    "upcast-layernorm": "costs memory; the framework itself only hints at it",
    "upcast-lmhead": "costs memory, for losses that are not steady",
    "unsloth-gc": "slower where the activations fit as they are",
    "fsdp": "one of a group: ZeRO is advised, whose files LlamaFactory brings along",
    "fsdp-offload": "one of a group, for where memory is short",
    "zero3-offload": "GPU204 advises offloading, in the DeepSpeed file",
    "fsdp-qlora": "sharding and quantizing are advised each for itself",
    "autotp": "ZeRO makes the same models fit",
    "megatron-core": "another back end, whose support of the model has to be tested",
    "ray": "a matter of the cluster",
    "galore": "LoRA saves more, and needs no other optimizer",
    "badam": "as GaLore",
    "apollo": "as GaLore",
    "adam-mini": "as GaLore",
    "muon": "changes what is learnt",
    "sdpa": "one of a group: FlashAttention-2 is advised where the GPU has it",
    "auto": "one of a group, as SDPA",
    "shift-attention": "changes what is learnt",
    "unsloth": "one of a group: Liger is advised, which goes with packing and several GPUs",
    "ktransformers": "needs another machine: much host memory and AMX",
    "v1-kernels": "experimental, as the framework itself warns",
    "preprocessing-batch-size": "shortens the start by little",
    "tokenized-cache": "pays where a data set is trained on again",
    "neftune": "changes what is learnt",
    "rope-scaling": "the model's own context is not known",
    "mixture-of-depths": "changes the model",
    "llama-pro": "changes the model",
    "freeze-tuning": "LoRA is advised where full tuning does not fit",
    "dft-loss": "changes what is learnt",
    "asft-loss": "changes what is learnt",
    "eaft-loss": "changes what is learnt",
    "mask-history": "the data decide",
    "train-on-prompt-off": "off by choice",
    "auto-batch-size": "a size that is known to fit serves long runs better",
    "sglang-backend": "one of a group: vLLM is advised",
}
"""Items that are never recommended, and why; they are shown disabled instead."""
