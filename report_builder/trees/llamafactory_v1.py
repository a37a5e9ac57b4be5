"""The decision tree of LlamaFactory's second route (``USE_V1=1``), in arguments of its own."""

from __future__ import annotations

from report_builder.trees.base import (
    branch,
    is_packed,
    longer_than,
    tuned_fully,
    tuned_in_part,
    uses_flash_attention,
)

LLAMAFACTORY_V1 = (
    branch(
        "显存不足（OOM）？",
        "Out of memory?",
        branch(
            "当前用全参训练（没有 peft_config）？ → 可以改用 LoRA：peft_config.name: lora",
            "full tuning now (no peft_config)? → LoRA if it may be: peft_config.name: lora",
            holds=tuned_fully,
        ),
        branch(
            "已用 LoRA → quant_config.name: bnb、quantization_bit: 4",
            "LoRA already → quant_config.name: bnb, quantization_bit: 4",
            advises=("qlora",),
            holds=tuned_in_part,
        ),
        branch(
            "恢复 enable_activation_checkpointing: true（默认开启）",
            "leave enable_activation_checkpointing at true, its default",
            advises=("gradient-checkpointing",),
        ),
        branch(
            "多卡 → dist_config.name: fsdp2，仍不足加 offload_params: true",
            "several GPUs → dist_config.name: fsdp2, then offload_params: true in it",
            advises=("fsdp", "zero3"),
        ),
    ),
    branch(
        "训练速度慢？",
        "Training slow?",
        branch(
            "flash_attn 已是 flash_attention_2？",
            "flash_attn is flash_attention_2?",
            branch(
                "否 → 设置 flash_attn: flash_attention_2",
                "no → flash_attn: flash_attention_2",
                advises=("flash-attention-2",),
            ),
            branch("是 → 继续", "yes → go on", holds=uses_flash_attention),
        ),
        branch(
            "微批多于一条样本？",
            "more than one sample a micro-batch?",
            branch(
                "batching_strategy: padding_free（需 flash_attention_2）",
                "batching_strategy: padding_free (needs flash_attention_2)",
                advises=("neat-packing",),
            ),
            branch("已无填充 → 继续", "no padding already → go on", holds=is_packed),
        ),
        branch(
            "MoE 或线性注意力模型 → kernel_config.name 可列出 cuda_fused_moe、"
            "flash-linear-attention",
            "experts or linear attention → kernel_config.name may list cuda_fused_moe, "
            "flash-linear-attention",
        ),
    ),
    branch(
        "超长序列（>32K）？ → cp_size（Ulysses，需 fsdp2 与 flash_attention_2）",
        "Very long sequences (>32K)? → cp_size (Ulysses, needs fsdp2 and flash_attention_2)",
        holds=longer_than(32_768),
    ),
)
