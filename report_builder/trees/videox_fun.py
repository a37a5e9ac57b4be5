"""The decision tree of VideoX-Fun."""

from __future__ import annotations

from report_builder.trees.base import branch, tuned_fully, tuned_in_part

VIDEOX_FUN = (
    branch(
        "显存不足（OOM）？",
        "Out of memory?",
        branch(
            "--gradient_checkpointing 已启用？",
            "--gradient_checkpointing on?",
            branch(
                "否 → 先启用（脚本默认关闭）",
                "no → turn it on first (the scripts leave it off)",
                advises=("gradient-checkpointing",),
            ),
        ),
        branch(
            "单卡 24 GB 及以下？ → --low_vram、--vae_mini_batch=1",
            "a GPU of 24 GB or less? → --low_vram, --vae_mini_batch=1",
            advises=("low-vram", "vae-mini-batch"),
        ),
        branch(
            "全参训练（train.py）？",
            "full tuning (train.py)?",
            branch(
                "多卡 → --use_deepspeed（config/zero_stage2_config.json）",
                "several GPUs → --use_deepspeed (config/zero_stage2_config.json)",
                advises=("zero2",),
                holds=tuned_fully,
            ),
            branch(
                "ZeRO-2 仍不足 → --use_fsdp，包装类与模型相符（Wan：WanAttentionBlock）",
                "not enough → --use_fsdp, wrapping the model's own layers (Wan: WanAttentionBlock)",
                advises=("fsdp-full-shard",),
                holds=tuned_fully,
            ),
            branch(
                "单卡 → --use_8bit_adam，或改用 LoRA（train_lora.py）",
                "one GPU → --use_8bit_adam, or LoRA (train_lora.py)",
                advises=("adam-8bit", "peft-lora"),
                holds=tuned_fully,
            ),
            holds=tuned_fully,
        ),
        branch(
            "LoRA（train_lora.py）？",
            "LoRA (train_lora.py)?",
            branch(
                "多卡且基座放不下 → --use_fsdp",
                "several GPUs, too small for the base model → --use_fsdp",
                advises=("fsdp-full-shard", "zero2"),
                holds=tuned_in_part,
            ),
            branch(
                "单卡且基座放不下 → 改动代码：基座 4 位（NF4）",
                "one GPU, too small for the base model → change the code: the base in 4 bits (NF4)",
                advises=("qlora-4bit",),
                holds=tuned_in_part,
            ),
            holds=tuned_in_part,
        ),
        branch(
            "仍然 OOM → 减小 --video_sample_n_frames、--video_sample_size",
            "still → smaller --video_sample_n_frames and --video_sample_size",
        ),
    ),
    branch(
        "训练速度慢？",
        "Training slow?",
        branch(
            "混合精度未开启？ → --mixed_precision=bf16（Volta/Turing 用 fp16）",
            "no mixed precision? → --mixed_precision=bf16 (Volta and Turing: fp16)",
            advises=("mixed-precision-bf16", "mixed-precision-fp16"),
        ),
        branch(
            "注意力 → 安装 flash-attn（Hopper 用 FlashAttention-3），"
            "VIDEOX_ATTENTION_TYPE 保持 FLASH_ATTENTION",
            "attention → install flash-attn (FlashAttention-3 on Hopper), leave "
            "VIDEOX_ATTENTION_TYPE at FLASH_ATTENTION",
            advises=("flash-attention-2", "flash-attention-3", "sdpa"),
        ),
        branch(
            "数据供不上？ → --dataloader_num_workers=8",
            "data too slow? → --dataloader_num_workers=8",
            advises=("dataloader-workers",),
        ),
        branch(
            "样本大小不一？ → --enable_bucket --random_hw_adapt --training_with_video_token_length",
            "samples of all sizes? → --enable_bucket --random_hw_adapt "
            "--training_with_video_token_length",
            advises=("bucketing",),
        ),
        branch(
            "VAE 与文本编码占比高？ → 改动代码：预编码 latent 与提示词",
            "VAE and text encoder take much of a step? → change the code: encode both ahead",
            advises=("preencoded-dataset", "preencoded-text"),
        ),
    ),
    branch(
        "训练不稳定？",
        "Training unstable?",
        branch(
            "学习率 → --lr_scheduler=constant_with_warmup --lr_warmup_steps=100",
            "rate → --lr_scheduler=constant_with_warmup --lr_warmup_steps=100",
            advises=("warmup", "lr-scheduler"),
        ),
        branch(
            "梯度裁剪 → --max_grad_norm=0.05；DeepSpeed 下写入配置的 gradient_clipping",
            "clipping → --max_grad_norm=0.05; under DeepSpeed gradient_clipping of its file",
            advises=("gradient-clipping",),
        ),
    ),
    branch(
        "生成质量不足？ → LoRA 之后用 train_reward_lora.py 对齐偏好",
        "samples not good enough? → train_reward_lora.py after LoRA",
        advises=("reward-lora",),
    ),
)
