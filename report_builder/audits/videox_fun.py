"""The audit of VideoX-Fun runs."""

from __future__ import annotations

from flake8_gpu_training.language import Text
from report_builder.audits.base import Audit, Category, items

VIDEOX_FUN = Audit(
    "videox-fun",
    Text("VideoX-Fun 训练优化审计", "VideoX-Fun training optimization audit"),
    "v0_videox-fun-optimization-report.md",
    (
        Category(
            "A",
            Text("混合精度与量化", "Mixed precision and quantization"),
            6,
            items(
                ("mixed-precision-bf16", "BF16 混合精度", "BF16 mixed precision"),
                ("mixed-precision-fp16", "FP16 混合精度", "FP16 mixed precision"),
                ("tf32", "TF32 矩阵乘", "TF32 matmuls"),
                ("fp8-inference", "FP8 权重推理", "FP8 weights (inference)"),
                ("adam-8bit", "8 bit Adam", "8-bit Adam"),
                ("came", "CAME 优化器", "CAME optimizer"),
            ),
        ),
        Category(
            "B",
            Text("激活重计算", "Activation recomputation"),
            3,
            items(
                ("gradient-checkpointing", "梯度检查点", "Gradient checkpointing"),
                ("fractional-checkpointing", "部分层重计算", "Partial checkpointing"),
                ("gradient-accumulation", "梯度累积", "Gradient accumulation"),
            ),
        ),
        Category(
            "C",
            Text("模型卸载与低显存", "Model offload and low memory"),
            3,
            items(
                ("low-vram", "低显存模式", "Low-memory mode"),
                ("vae-mini-batch", "VAE 小批编码", "VAE mini-batches"),
                ("multi-stream-vae", "VAE 多流编码", "Multi-stream VAE"),
            ),
        ),
        Category(
            "D",
            Text("分布式", "Distributed training"),
            5,
            items(
                ("zero2", "DeepSpeed ZeRO-2（含 ZeRO-1）", "DeepSpeed ZeRO-2 (or ZeRO-1)"),
                ("zero3", "DeepSpeed ZeRO-3", "DeepSpeed ZeRO-3"),
                (
                    "fsdp-full-shard",
                    "FSDP（包装类与模型相符）",
                    "FSDP (wraps the model's own layers)",
                ),
                ("zero3-cpu-offload", "ZeRO-3 + CPU Offload", "ZeRO-3 + CPU offload"),
                ("fsdp-backward-prefetch", "FSDP 反向预取", "FSDP backward prefetch"),
            ),
        ),
        Category(
            "E",
            Text("LoRA 配置", "LoRA"),
            5,
            items(
                ("peft-lora", "PEFT LoRA", "PEFT LoRA"),
                ("kohya-lora", "Kohya LoRA", "Kohya LoRA"),
                ("lora-targets", "LoRA 目标层", "LoRA target modules"),
                ("rank-dropout", "秩 Dropout", "Rank dropout"),
                ("module-dropout", "模块 Dropout", "Module dropout"),
            ),
        ),
        Category(
            "F",
            Text("注意力", "Attention"),
            6,
            items(
                ("flash-attention-2", "Flash Attention 2", "Flash Attention 2"),
                ("flash-attention-3", "Flash Attention 3", "Flash Attention 3"),
                ("sdpa", "SDPA", "SDPA"),
                ("varlen-attention", "变长注意力", "Variable-length attention"),
                ("sage-attention", "SageAttention（推理）", "SageAttention (inference)"),
                ("sparse-linear-attention", "稀疏线性注意力", "Sparse-linear attention"),
            ),
        ),
        Category(
            "G",
            Text("数据管道", "Data pipeline"),
            11,
            items(
                ("dataloader-workers", "DataLoader Workers", "DataLoader workers"),
                ("persistent-workers", "Persistent Workers", "Persistent workers"),
                ("bucketing", "分辨率分桶", "Resolution buckets"),
                ("random-hw-adapt", "随机分辨率", "Random resolution"),
                ("video-token-length", "按 token 长度训练", "Training by token length"),
                ("auto-tile-batch", "自动扩批", "Automatic batch tiling"),
                ("same-token-length", "跨进程统一长度", "Same token length on all ranks"),
                ("frame-stride", "抽帧间隔", "Frame stride"),
                ("random-frame-crop", "随机截帧", "Random frame crop"),
                ("preencoded-dataset", "预编码 latent 数据集", "Pre-encoded latents"),
                ("text-dropout", "文本丢弃", "Text dropout"),
            ),
        ),
        Category(
            "H",
            Text("训练策略", "Training strategy"),
            10,
            items(
                ("lr-scheduler", "学习率调度", "Learning-rate schedule"),
                ("warmup", "学习率预热", "Warm-up"),
                ("gradient-clipping", "梯度裁剪", "Gradient clipping"),
                ("abnormal-norm-clip", "异常梯度裁剪", "Abnormal-norm clipping"),
                ("ema", "EMA 滑动平均", "EMA weights"),
                ("uniform-sampling", "时间步均匀采样", "Uniform timestep sampling"),
                ("motion-sub-loss", "运动差分损失", "Motion sub-loss"),
                ("timestep-weighting", "时间步加权", "Timestep weighting"),
                ("dual-learning-rate", "双学习率", "Dual learning rate"),
                ("reward-lora", "奖励 LoRA", "Reward LoRA"),
            ),
        ),
        Category(
            "I",
            Text("深度优化机会（需改动代码）", "Deeper optimizations (need code changes)"),
            12,
            items(
                ("torch-compile", "torch.compile", "torch.compile"),
                ("liger-kernel", "Liger Kernel", "Liger Kernel"),
                ("cuda-graph", "CUDA Graph", "CUDA graphs"),
                ("qlora-4bit", "QLoRA（4 bit）", "QLoRA (4-bit)"),
                ("vae-spatial-tiling", "VAE 空间分块", "VAE tiling"),
                ("preencoded-text", "预编码提示词", "Pre-encoded prompts"),
                ("fp8-training", "FP8 训练", "FP8 training"),
                ("zero-plus-plus", "ZeRO++", "ZeRO++"),
                ("nvme-offload", "NVMe 卸载", "NVMe offload"),
                ("fused-optimizer", "融合优化器", "Fused optimizer"),
                ("prefetch-factor", "Prefetch Factor", "Prefetch factor"),
                ("sequence-parallel-training", "序列并行训练", "Sequence parallelism"),
                ("teacache-training", "TeaCache（验证采样）", "TeaCache (validation samples)"),
            ),
        ),
    ),
)
