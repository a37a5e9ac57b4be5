"""The decision tree of the Transformers Trainer and of TRL."""

from __future__ import annotations

from flake8_gpu_training.frameworks.at_hand import version_at_hand
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

_LONG = longer_than(32_768)


def _samples_by_itself(run: Run) -> bool:
    """Whether the model that is trained samples its completions, and no engine."""
    samples = run.value("algorithm") in ("grpo", "rloo", "online_dpo")
    return samples and run.value("rollout_engine") == "none"


_SHARES_GPUS = (0, 18)
"""The first release of TRL with vllm_mode (grpo_config.py of 0.17.0 and 0.18.0)."""


def _may_share_gpus(run: Run) -> bool:
    return _samples_by_itself(run) and version_at_hand(run, "trl") >= _SHARES_GPUS


def _needs_other_gpus(run: Run) -> bool:
    return _samples_by_itself(run) and version_at_hand(run, "trl") < _SHARES_GPUS


TRANSFORMERS = (
    branch(
        "显存不足（OOM）？",
        "Out of memory?",
        branch(
            "是 → 梯度检查点已开启？否 → gradient_checkpointing=True",
            "yes → checkpointing on? if not: gradient_checkpointing=True",
            advises=("gradient-checkpointing",),
        ),
        branch(
            "是 → 当前用全参训练？",
            "yes → full tuning now?",
            branch(
                "是 → 可以改用 LoRA（peft_config / get_peft_model）",
                "yes → LoRA if it may be (peft_config / get_peft_model)",
                branch(
                    "仍然 OOM？ → QLoRA（BitsAndBytesConfig：load_in_4bit、nf4、双重量化）",
                    "still? → QLoRA (BitsAndBytesConfig: load_in_4bit, nf4, double quantization)",
                    advises=("qlora-4bit",),
                    holds=tuned_fully,
                ),
                holds=tuned_fully,
            ),
            branch(
                '必须全参 → 单卡 optim="adamw_8bit" 或 "paged_adamw_8bit"、"adafactor"',
                'full it must be → one GPU: optim="adamw_8bit", or "paged_adamw_8bit", "adafactor"',
                advises=("adamw-8bit", "paged-adamw", "adafactor", "galore", "apollo", "lomo"),
                holds=tuned_fully,
            ),
            branch(
                "必须全参且多卡 → FSDP full_shard 或 ZeRO-3，仍不足再加 CPU 卸载",
                "full on several GPUs → FSDP full_shard or ZeRO-3, then CPU offload",
                advises=("fsdp-full-shard", "zero3", "fsdp-cpu-offload", "zero-offload"),
                holds=tuned_fully,
            ),
            branch(
                "否（只训练一部分权重）",
                "no (a part of the weights is trained)",
                branch(
                    "per_device_train_batch_size 减半，gradient_accumulation_steps 加倍",
                    "halve per_device_train_batch_size, double gradient_accumulation_steps",
                    advises=("gradient-accumulation",),
                ),
                branch(
                    "仍然 OOM？ → 4 bit 基座 / 缩短序列",
                    "still? → base in 4 bit / shorter samples",
                    advises=("qlora-4bit",),
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
            "混合精度未开启？ → bf16=True（Volta/Turing 用 fp16=True）",
            "no mixed precision? → bf16=True (Volta and Turing: fp16=True)",
            advises=("bf16", "fp16"),
        ),
        branch(
            "注意力已是 flash 内核？",
            "attention in a flash kernel?",
            branch(
                '否 → from_pretrained(..., attn_implementation="flash_attention_2")',
                'no → from_pretrained(..., attn_implementation="flash_attention_2")',
                advises=("flash-attention-2", "flash-attention-3"),
            ),
            branch("是 → 继续", "yes → go on", holds=uses_flash_attention),
        ),
        branch(
            "Liger 支持的模型？ → use_liger_kernel=True",
            "a model that Liger knows? → use_liger_kernel=True",
            advises=("liger-kernel",),
        ),
        branch(
            "形状固定？ → torch_compile=True",
            "shapes that stay the same? → torch_compile=True",
            advises=("torch-compile",),
        ),
        branch(
            "样本长短不一？",
            "samples of unequal length?",
            branch(
                "按长度分组（5.x：train_sampling_strategy，4.x：group_by_length）；"
                "TRL 可用 packing",
                "group by length (5.x: train_sampling_strategy, 4.x: group_by_length); TRL can "
                "pack",
                advises=("group-by-length",),
            ),
            branch("已打包或无填充 → 继续", "packed or without padding → go on", holds=is_packed),
        ),
        branch(
            "多卡训练？",
            "several GPUs?",
            branch(
                "LoRA → ZeRO-2，或只用 DDP（基座单卡放不下用 ZeRO-3 或 FSDP full_shard）",
                "LoRA → ZeRO-2, or DDP alone (ZeRO-3 or FSDP full_shard where one GPU cannot hold "
                "the base)",
                advises=("zero2", "zero3", "fsdp-full-shard", "fsdp-shard-grad-op"),
                holds=not_tuned_fully,
            ),
            branch(
                "全参 → FSDP full_shard 或 ZeRO-3（放得下时 ZeRO-2）",
                "full → FSDP full_shard or ZeRO-3 (ZeRO-2 where it fits)",
                advises=("fsdp-full-shard", "fsdp-shard-grad-op", "zero2", "zero3"),
                holds=tuned_fully,
            ),
        ),
        branch(
            "GRPO / RLOO 训练慢？",
            "GRPO or RLOO slow?",
            branch(
                'TRL 0.18 起 → use_vllm=True、vllm_mode="colocate"',
                'TRL 0.18 or newer → use_vllm=True, vllm_mode="colocate"',
                holds=_may_share_gpus,
            ),
            branch(
                "更早的 TRL → 升级；否则 use_vllm=True，vLLM 须另占 GPU",
                "older → upgrade TRL, or use_vllm=True with other GPUs for vLLM",
                holds=_needs_other_gpus,
            ),
        ),
        branch(
            "数据供不上？ → dataloader_num_workers=4、dataloader_persistent_workers=True",
            "data too slow? → dataloader_num_workers=4, dataloader_persistent_workers=True",
            advises=("dataloader-workers", "persistent-workers", "prefetch-factor", "pin-memory"),
        ),
    ),
    branch(
        "超长序列（>32K）？",
        "Very long sequences (>32K)?",
        branch(
            "ParallelismConfig(cp_size=N) 或 DeepSpeed Ulysses（sp_size）",
            "ParallelismConfig(cp_size=N) or DeepSpeed Ulysses (sp_size)",
            advises=("parallelism-config",),
        ),
        branch(
            "use_liger_kernel=True，不生成完整 logits",
            "use_liger_kernel=True: the logits are never held whole",
            holds=_LONG,
        ),
    ),
)
