"""The decision tree of Flow-Factory."""

from __future__ import annotations

from report_builder.trees.base import branch, tuned_fully, tuned_in_part

FLOW_FACTORY = (
    branch(
        "显存不足（OOM）？",
        "Out of memory?",
        branch(
            "视频模型 → train.offload_samples_to_cpu: true（必须）",
            "a video model → train.offload_samples_to_cpu: true (a must)",
            advises=("offload-samples",),
        ),
        branch(
            "样本较长（≥ 4096 token）→ train.enable_gradient_checkpointing: true",
            "long samples (4096 tokens or more) → train.enable_gradient_checkpointing: true",
            advises=("gradient-checkpointing",),
        ),
        branch(
            "全参训练？",
            "full tuning?",
            branch(
                "多卡 → config_file 用 FSDP2 或 ZeRO-2/3",
                "several GPUs → a config_file with FSDP2, or ZeRO-2 or 3",
                advises=("fsdp2", "fsdp-full-shard", "zero2", "zero3"),
                holds=tuned_fully,
            ),
            branch(
                "EMA 与参考模型 → train.ema_device: cpu、train.ref_param_device: cpu",
                "average and reference → train.ema_device: cpu, train.ref_param_device: cpu",
                advises=("ema-device-cpu", "ref-param-device-cpu"),
                holds=tuned_fully,
            ),
            branch(
                "仍然不足 → model.finetune_type: lora（lora_rank 64）",
                "still → model.finetune_type: lora (lora_rank 64)",
                advises=("lora",),
                holds=tuned_fully,
            ),
            holds=tuned_fully,
        ),
        branch(
            "LoRA？ → 减小 per_device_batch_size、train.resolution 或 num_frames",
            "LoRA? → smaller per_device_batch_size, train.resolution or num_frames",
            holds=tuned_in_part,
        ),
        branch(
            "轨迹 latent → train.latent_storage_dtype: fp16",
            "stored latents → train.latent_storage_dtype: fp16",
            advises=("latent-storage-dtype",),
        ),
    ),
    branch(
        "训练速度慢？",
        "Training slow?",
        branch(
            "混合精度未开启？ → mixed_precision: bf16",
            "no mixed precision? → mixed_precision: bf16",
            advises=("mixed-precision-bf16", "mixed-precision-fp16"),
        ),
        branch(
            "注意力 → model.attn_backend: flash（Hopper 用 _flash_3_hub，带掩码的模型用 varlen）",
            "attention → model.attn_backend: flash (Hopper: _flash_3_hub; models with masks: "
            "varlen)",
            advises=("flash", "flash-3", "default-sdpa"),
        ),
        branch(
            "远程奖励模型？ → async_reward: true、num_workers: 8",
            "a remote reward model? → async_reward: true, num_workers: 8",
            advises=("async-reward",),
        ),
        branch(
            "奖励模型慢？ → dtype: bfloat16、batch_size: 16、device: cuda",
            "a slow reward model? → dtype: bfloat16, batch_size: 16, device: cuda",
            advises=("reward-dtype",),
        ),
        branch(
            "启动慢？ → data.force_reprocess: false（复用预处理缓存）",
            "a slow start? → data.force_reprocess: false (the cache is used)",
            advises=("data-cache",),
        ),
        branch(
            "单机不够？ → num_machines，各节点启动 ff-train；设置 NCCL_SOCKET_IFNAME",
            "one node too few? → num_machines, ff-train on each node; NCCL_SOCKET_IFNAME",
            advises=("nccl-environment",),
        ),
    ),
    branch(
        "奖励不上升？",
        "The reward does not rise?",
        branch(
            "train.group_size ≥ 4（组内样本太少没有优势信号）",
            "train.group_size of 4 or more (small groups have no advantage to learn)",
            advises=("sample-group-size",),
        ),
        branch(
            "model.lora_rank 32~128",
            "model.lora_rank of 32 to 128",
            advises=("lora-rank",),
            holds=tuned_in_part,
        ),
        branch(
            "Wan → scheduler.flow_shift：480P 3.0，720P 5.0",
            "Wan → scheduler.flow_shift: 480P 3.0, 720P 5.0",
            advises=("flow-shift",),
        ),
        branch(
            "Wan2.2 → target_components: [transformer, transformer_2]",
            "Wan2.2 → target_components: [transformer, transformer_2]",
            advises=("target-components",),
        ),
    ),
)
