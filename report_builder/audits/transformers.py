"""The audit of runs of the Transformers Trainer."""

from __future__ import annotations

from flake8_gpu_training.language import Text
from report_builder.audits.base import Audit, Category, items

TRANSFORMERS = Audit(
    "transformers",
    Text(
        "HF Transformers Trainer 训练优化审计",
        "HF Transformers Trainer training optimization audit",
    ),
    "v0_transformers-optimization-report.md",
    (
        Category(
            "A",
            Text("混合精度", "Mixed precision"),
            5,
            items(
                ("bf16", "BF16 混合精度", "BF16 mixed precision"),
                ("fp16", "FP16 混合精度", "FP16 mixed precision"),
                ("tf32", "TF32 矩阵乘", "TF32 matrix products"),
                ("bf16-full-eval", "BF16 评估", "Evaluation in BF16"),
                ("fp16-full-eval", "FP16 评估", "Evaluation in FP16"),
            ),
        ),
        Category(
            "B",
            Text("梯度检查点与显存", "Gradient checkpointing and memory"),
            5,
            items(
                ("gradient-checkpointing", "梯度检查点", "Gradient checkpointing"),
                ("non-reentrant", "非重入式检查点", "Non-reentrant checkpointing"),
                ("empty-cache-steps", "定期清空显存缓存", "Emptying the cache every few steps"),
                ("auto-batch-size", "自动批大小", "Automatic batch size"),
                ("eval-accumulation", "评估结果分批移出显存", "Predictions moved off the GPU"),
            ),
        ),
        Category(
            "C",
            Text("PEFT 与量化", "PEFT and quantization"),
            8,
            items(
                ("lora", "LoRA", "LoRA"),
                ("qlora-4bit", "QLoRA（4 bit）", "QLoRA (4-bit)"),
                ("qlora-8bit", "QLoRA（8 bit）", "QLoRA (8-bit)"),
                ("gptq", "GPTQ", "GPTQ"),
                ("awq", "AWQ", "AWQ"),
                ("torchao", "torchao", "torchao"),
                ("fp8-quantization", "FP8 量化", "FP8 quantization"),
                ("dora", "DoRA", "DoRA"),
            ),
        ),
        Category(
            "D",
            Text("优化器", "Optimizer"),
            7,
            items(
                ("fused-adamw", "融合 AdamW", "Fused AdamW"),
                ("adamw-8bit", "8 bit AdamW", "8-bit AdamW"),
                ("adamw-4bit", "4 bit AdamW", "4-bit AdamW"),
                ("paged-adamw", "分页 AdamW", "Paged AdamW"),
                ("adafactor", "Adafactor", "Adafactor"),
                ("galore", "GaLore", "GaLore"),
                ("apollo", "APOLLO", "APOLLO"),
                ("lomo", "LOMO", "LOMO"),
                ("schedule-free", "Schedule-Free", "Schedule-free"),
            ),
        ),
        Category(
            "E",
            Text("分布式", "Distributed training"),
            10,
            items(
                ("ddp-settings", "DDP 参数", "DDP settings"),
                ("fsdp-full-shard", "FSDP 全分片", "FSDP full shard"),
                ("fsdp-shard-grad-op", "FSDP 梯度与优化器分片", "FSDP shard grad op"),
                ("fsdp-hybrid-shard", "FSDP 混合分片", "FSDP hybrid shard"),
                ("zero2", "DeepSpeed ZeRO-2（含 ZeRO-1）", "DeepSpeed ZeRO-2 (or ZeRO-1)"),
                ("zero3", "DeepSpeed ZeRO-3", "DeepSpeed ZeRO-3"),
                ("fsdp-cpu-offload", "FSDP CPU 卸载", "FSDP CPU offload"),
                ("zero-offload", "ZeRO CPU/NVMe 卸载", "ZeRO offload"),
                ("fsdp2", "FSDP2", "FSDP2"),
                (
                    "fsdp-activation-checkpointing",
                    "FSDP 激活检查点",
                    "FSDP activation checkpointing",
                ),
                ("fsdp-prefetch", "FSDP 预取", "FSDP prefetch"),
                ("fsdp-efficient-loading", "FSDP 高效加载", "FSDP efficient loading"),
                ("parallelism-config", "ParallelismConfig", "ParallelismConfig"),
            ),
        ),
        Category(
            "F",
            Text("注意力", "Attention"),
            5,
            items(
                ("flash-attention-2", "Flash Attention 2", "Flash Attention 2"),
                ("flash-attention-3", "Flash Attention 3", "Flash Attention 3"),
                ("sdpa", "SDPA", "SDPA"),
                ("flex-attention", "FlexAttention", "FlexAttention"),
                ("runtime-switch", "运行时切换注意力实现", "Attention switched at run time"),
            ),
        ),
        Category(
            "G",
            Text("计算加速", "Compute acceleration"),
            5,
            items(
                ("torch-compile", "torch.compile", "torch.compile"),
                ("compile-backend", "编译后端", "Compiler back end"),
                ("compile-mode", "编译模式", "Compiler mode"),
                ("liger-kernel", "Liger Kernel", "Liger Kernel"),
                ("liger-config", "Liger 算子选择", "Choice of Liger kernels"),
            ),
        ),
        Category(
            "H",
            Text("数据处理", "Data processing"),
            7,
            items(
                ("dataloader-workers", "DataLoader Workers", "DataLoader workers"),
                ("pin-memory", "锁页内存", "Pinned memory"),
                ("persistent-workers", "Persistent Workers", "Persistent workers"),
                ("prefetch-factor", "Prefetch Factor", "Prefetch factor"),
                ("group-by-length", "按长度分组", "Grouping by length"),
                ("length-column", "长度列", "Length column"),
                ("remove-unused-columns", "移除未用列", "Unused columns removed"),
            ),
        ),
        Category(
            "I",
            Text("训练策略", "Training strategy"),
            5,
            items(
                ("neftune", "NEFTune", "NEFTune"),
                ("gradient-accumulation", "梯度累积", "Gradient accumulation"),
                ("gradient-clipping", "梯度裁剪", "Gradient clipping"),
                ("label-smoothing", "标签平滑", "Label smoothing"),
                ("save-only-model", "只保存模型", "Only the model saved"),
                ("jit-checkpoint", "抢占前即时保存", "Checkpoint on preemption"),
            ),
        ),
        Category(
            "J",
            Text("推理优化", "Generation"),
            5,
            items(
                ("static-kv-cache", "静态 KV 缓存", "Static KV cache"),
                ("quantized-kv-cache", "量化 KV 缓存", "Quantized KV cache"),
                ("offloaded-kv-cache", "卸载 KV 缓存", "Offloaded KV cache"),
                ("speculative-decoding", "推测解码", "Speculative decoding"),
                ("prompt-lookup", "Prompt Lookup", "Prompt lookup"),
                ("compiled-forward", "编译前向", "Compiled forward pass"),
                ("prefill-chunking", "分块预填充", "Chunked prefill"),
            ),
            optional=True,
        ),
    ),
)
