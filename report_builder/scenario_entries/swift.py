"""Scenarios of ms-swift."""

from __future__ import annotations

from flake8_gpu_training.language import Text
from report_builder.scenario_entries.base import QWEN_7B, QWEN_72B, Entry

SWIFT = (
    Entry(
        Text("7B 模型 LoRA 微调，单卡 80 GB", "LoRA of a 7B model on one 80 GB card"),
        (("swift/lora_7b.yaml", "sft_lora.yaml"),),
        "swift sft sft_lora.yaml",
        7,
        QWEN_7B,
        "lora",
    ),
    Entry(
        Text("7B 模型 QLoRA 微调，单卡 24 GB", "QLoRA of a 7B model on one 24 GB card"),
        (("swift/qlora_7b.yaml", "sft_qlora.yaml"),),
        "swift sft sft_qlora.yaml",
        7,
        QWEN_7B,
        "lora",
        quantized=True,
        length=2048,
    ),
    Entry(
        Text(
            "70B 模型 LoRA 微调 + DeepSpeed ZeRO-3，8×80 GB",
            "LoRA of a 70B model with DeepSpeed ZeRO-3 on 8×80 GB",
        ),
        (("swift/lora_70b.yaml", "sft_lora_ds.yaml"),),
        "NPROC_PER_NODE=8 swift sft sft_lora_ds.yaml",
        72,
        QWEN_72B,
        "lora",
        8,
    ),
    Entry(
        Text(
            "7B 模型全参微调 + DeepSpeed ZeRO-3 + Liger Kernel，8×80 GB",
            "Full tuning of a 7B model with DeepSpeed ZeRO-3 and Liger Kernel on 8×80 GB",
        ),
        (("swift/full_7b.yaml", "sft_full.yaml"),),
        "NPROC_PER_NODE=8 swift sft sft_full.yaml",
        7,
        QWEN_7B,
        "full",
        8,
    ),
    Entry(
        Text(
            "7B 模型 GRPO + vLLM 推理加速，4×80 GB",
            "GRPO of a 7B model with vLLM rollout on 4×80 GB",
        ),
        (("swift/grpo_7b.yaml", "grpo.yaml"),),
        "NPROC_PER_NODE=4 swift rlhf grpo.yaml",
        7,
        QWEN_7B,
        "lora",
        4,
        "grpo",
        length=2048,
    ),
    Entry(
        Text(
            "超长序列训练（512K）+ 序列并行，8×80 GB",
            "Very long sequences (512K) with sequence parallelism on 8×80 GB",
        ),
        (("swift/long_sequence.yaml", "long_seq.yaml"),),
        "NPROC_PER_NODE=8 swift sft long_seq.yaml",
        7,
        QWEN_7B,
        "lora",
        8,
        length=524288,
    ),
)
# For runs of ``megatron sft/pt/rlhf``, in place of the two that spread a model by ZeRO-3.
SWIFT_MEGATRON = (
    Entry(
        Text(
            "30B MoE 模型 LoRA + Megatron 专家并行，8×80 GB",
            "LoRA of a 30B mixture of experts by Megatron on 8×80 GB",
        ),
        (("swift/megatron_moe.yaml", "megatron_moe.yaml"),),
        "NPROC_PER_NODE=8 megatron sft megatron_moe.yaml",
        30.5,
        "Qwen/Qwen3-30B-A3B-Instruct-2507",
        "lora",
        8,
        length=8192,
        family="b-a",
    ),
    Entry(
        Text(
            "14B 模型全参微调 + Megatron 张量并行，8×80 GB",
            "Full tuning of a 14B model by Megatron with tensor parallelism on 8×80 GB",
        ),
        (("swift/megatron_dense.yaml", "megatron_full.yaml"),),
        "NPROC_PER_NODE=8 megatron sft megatron_full.yaml",
        14.8,
        "Qwen/Qwen2.5-14B-Instruct",
        "full",
        8,
        length=8192,
    ),
)
