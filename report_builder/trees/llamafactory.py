"""The decision tree of LlamaFactory."""

from __future__ import annotations

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

LLAMAFACTORY = (
    branch(
        "显存不足（OOM）？",
        "Out of memory?",
        branch(
            "是 → 当前用全参训练（finetuning_type: full）？",
            "yes → full tuning now (finetuning_type: full)?",
            branch(
                "是 → 可以改用 LoRA：finetuning_type: lora、lora_target: all",
                "yes → LoRA if it may be: finetuning_type: lora, lora_target: all",
                branch(
                    "仍然 OOM？ → QLoRA（quantization_bit: 4；多卡分片用 FSDP + QLoRA）",
                    "still? → QLoRA (quantization_bit: 4; sharded: FSDP with QLoRA)",
                    advises=("qlora", "fsdp-qlora"),
                    holds=tuned_fully,
                ),
                holds=tuned_fully,
            ),
            branch(
                "必须全参 → 单卡 pure_bf16: true，或 use_galore / use_apollo / use_badam",
                "full it must be → one GPU: pure_bf16: true, or use_galore / use_apollo / "
                "use_badam",
                advises=("pure-bf16", "galore", "apollo", "badam"),
                holds=tuned_fully,
            ),
            branch(
                "必须全参且多卡 → deepspeed: examples/deepspeed/ds_z3_config.json，"
                "仍不足用 ds_z3_offload_config.json",
                "full on several GPUs → deepspeed: examples/deepspeed/ds_z3_config.json, then "
                "ds_z3_offload_config.json",
                advises=("zero3", "zero3-offload", "fsdp"),
                holds=tuned_fully,
            ),
            branch(
                "否（已用 LoRA）",
                "no (LoRA already)",
                branch(
                    "删除 disable_gradient_checkpointing: true（默认开启检查点）",
                    "drop disable_gradient_checkpointing: true (checkpointing is the default)",
                    advises=("gradient-checkpointing",),
                ),
                branch(
                    "per_device_train_batch_size 减半，gradient_accumulation_steps 加倍",
                    "halve per_device_train_batch_size, double gradient_accumulation_steps",
                ),
                branch(
                    "仍然 OOM？ → quantization_bit: 4 / 减小 cutoff_len",
                    "still? → quantization_bit: 4 / smaller cutoff_len",
                    advises=("qlora", "fsdp-qlora"),
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
            "混合精度未开启？ → bf16: true（Volta/Turing 用 fp16: true）",
            "no mixed precision? → bf16: true (Volta and Turing: fp16: true)",
            advises=("bf16", "fp16"),
        ),
        branch(
            "flash_attn 已是 fa2？",
            "flash_attn is fa2?",
            branch(
                "否 → 设置 flash_attn: fa2",
                "no → flash_attn: fa2",
                advises=("flash-attention-2",),
            ),
            branch("是 → 继续", "yes → go on", holds=uses_flash_attention),
        ),
        branch(
            "单卡 LoRA？ → use_unsloth: true（与 Liger Kernel 二选一）",
            "LoRA on one GPU? → use_unsloth: true (or Liger Kernel, not both)",
            advises=("unsloth",),
        ),
        branch(
            "全参、多卡，或不用 Unsloth？ → enable_liger_kernel: true",
            "full, many GPUs, or no Unsloth? → enable_liger_kernel: true",
            advises=("liger-kernel",),
        ),
        branch(
            "数据已打包？",
            "data packed?",
            branch(
                "否 → neat_packing: true（样本之间不互相注意）",
                "no → neat_packing: true (samples do not attend to each other)",
                advises=("packing", "neat-packing"),
            ),
            branch("是 → 继续", "yes → go on", holds=is_packed),
        ),
        branch(
            "多卡训练？",
            "several GPUs?",
            branch(
                "LoRA → deepspeed: examples/deepspeed/ds_z2_config.json"
                "（基座单卡放不下用 ds_z3_config.json）",
                "LoRA → deepspeed: examples/deepspeed/ds_z2_config.json (ds_z3_config.json where "
                "one GPU cannot hold the base)",
                advises=("zero2", "zero3", "fsdp"),
                holds=not_tuned_fully,
            ),
            branch(
                "全参 → deepspeed: examples/deepspeed/ds_z3_config.json"
                "（ZeRO-2 放得下时用 ds_z2_config.json）",
                "full → deepspeed: examples/deepspeed/ds_z3_config.json (ds_z2_config.json where "
                "ZeRO-2 fits)",
                advises=("zero2", "zero3", "fsdp"),
                holds=tuned_fully,
            ),
        ),
        branch(
            "数据供不上？ → dataloader_num_workers: 4、preprocessing_num_workers: 16、"
            "tokenized_path",
            "data too slow? → dataloader_num_workers: 4, preprocessing_num_workers: 16, "
            "tokenized_path",
            advises=("dataloader-workers", "preprocessing-workers", "tokenized-cache"),
        ),
    ),
    branch(
        "超长序列（>32K）？",
        "Very long sequences (>32K)?",
        branch("rope_scaling: yarn", "rope_scaling: yarn", holds=_LONG),
        branch(
            "enable_liger_kernel: true，不生成完整 logits",
            "enable_liger_kernel: true: the logits are never held whole",
            holds=_LONG,
        ),
        branch(
            "deepspeed: examples/deepspeed/ds_z3_offload_config.json",
            "deepspeed: examples/deepspeed/ds_z3_offload_config.json",
            holds=_LONG,
        ),
    ),
)
