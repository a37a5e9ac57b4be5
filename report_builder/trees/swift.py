"""The decision tree of ms-swift."""

from __future__ import annotations

from flake8_gpu_training.runs.model import Run
from report_builder.trees.base import (
    branch,
    is_packed,
    longer_than,
    not_tuned_fully,
    tuned_fully,
    tuned_in_part,
    uses_flash_attention,
)

_LONG = longer_than(131_072)


def _by_megatron(run: Run) -> bool:
    return run.value("megatron") is True


def _long_unscaled(run: Run) -> bool:
    return _LONG(run) and run.setting("rope_scaling") is None


def _long_unpacked(run: Run) -> bool:
    moved = run.value("offload_param") not in (None, "none") and is_packed(run)
    return _LONG(run) and not moved and run.value("megatron") is not True


SWIFT = (
    branch(
        "显存不足（OOM）？",
        "Out of memory?",
        branch(
            "是 → 当前用全参训练？",
            "yes → full tuning now?",
            branch(
                "是 → 切换为 LoRA（--tuner_type lora）",
                "yes → LoRA (--tuner_type lora)",
                branch(
                    "仍然 OOM？ → QLoRA（--quant_method bnb --quant_bits 4）",
                    "still? → QLoRA (--quant_method bnb --quant_bits 4)",
                ),
                holds=tuned_fully,
            ),
            branch(
                "否（已用 LoRA）",
                "no (LoRA already)",
                branch(
                    "确认 gradient_checkpointing 已开启（ms-swift 默认开启）",
                    "see that gradient_checkpointing is on (ms-swift's default)",
                    advises=("gradient-checkpointing",),
                    holds=tuned_in_part,
                ),
                branch(
                    "减小 batch size + 自动 gradient_accumulation_steps",
                    "smaller batch, gradient_accumulation_steps adjusts itself",
                ),
                branch(
                    "启用 --use_logits_to_keep true（RLHF 场景）",
                    "--use_logits_to_keep true (RLHF)",
                    advises=("logits-to-keep",),
                    holds=tuned_in_part,
                ),
                branch(
                    "仍然 OOM？ → 降低 quant_bits / 减小 max_length / FSDP2+QLoRA",
                    "still? → fewer quant_bits / shorter max_length / FSDP2 with QLoRA",
                ),
                holds=tuned_in_part,
            ),
        ),
        branch("否 → 继续性能优化", "no → go on with speed"),
    ),
    branch(
        "训练速度慢？",
        "Training slow?",
        branch(
            "attn_impl 已启用 flash_attn？",
            "attn_impl is flash_attn?",
            branch(
                "否 → 设置 --attn_impl flash_attn（Megatron：--attention_backend flash）",
                "no → --attn_impl flash_attn (Megatron: --attention_backend flash)",
                advises=("flash-attention-2", "flash-attention-3"),
            ),
            branch("是 → 继续", "yes → go on", holds=uses_flash_attention),
        ),
        branch(
            "LoRA 单卡训练？ → --tuner_backend unsloth（与 Liger Kernel 二选一）",
            "LoRA on one GPU? → --tuner_backend unsloth (or Liger Kernel, not both)",
            advises=("unsloth", "unsloth-backend"),
        ),
        branch(
            "全参或多卡？ → --use_liger_kernel true",
            "full or many GPUs? → --use_liger_kernel true",
            advises=("liger-kernel",),
        ),
        branch(
            "数据已打包？",
            "data packed?",
            branch(
                "否 → --packing true 或 --padding_free true",
                "no → --packing true or --padding_free true",
                advises=("packing", "padding-free"),
            ),
            branch("是 → 继续", "yes → go on", holds=is_packed),
        ),
        branch(
            "多卡训练？",
            "several GPUs?",
            branch(
                "LoRA → --deepspeed zero2（权重放不下单卡时 zero3）",
                "LoRA → --deepspeed zero2 (zero3 where the weights exceed a GPU)",
                advises=("zero2", "zero3"),
                holds=not_tuned_fully,
            ),
            branch(
                "全参 → --deepspeed zero3（放得下时 zero2）",
                "full → --deepspeed zero3 (zero2 where that fits)",
                advises=("zero2", "zero3"),
                holds=tuned_fully,
            ),
            branch(
                "megatron 张量并行 → --sequence_parallel true",
                "megatron with tensor parallelism → --sequence_parallel true",
                advises=("sequence-parallel",),
                holds=_by_megatron,
            ),
        ),
        branch(
            "GRPO 训练慢？ → --use_vllm true --vllm_mode colocate",
            "GRPO slow? → --use_vllm true --vllm_mode colocate",
            advises=("vllm-rollout",),
        ),
        branch(
            "检查 dataloader_num_workers（建议 4~8）",
            "look at dataloader_num_workers (4 to 8)",
            advises=("dataloader-workers",),
        ),
    ),
    branch(
        "超长序列（>128K）？",
        "Very long sequences (>128K)?",
        branch(
            "启用 --sequence_parallel_size N（Megatron：--context_parallel_size N）",
            "--sequence_parallel_size N (Megatron: --context_parallel_size N)",
            advises=("sequence-parallel",),
            holds=_LONG,
        ),
        branch("配合 --rope_scaling yarn", "with --rope_scaling yarn", holds=_long_unscaled),
        branch(
            "--deepspeed zero3_offload + --packing true",
            "--deepspeed zero3_offload, packing",
            holds=_long_unpacked,
        ),
    ),
)
