"""The audit of Flow-Factory runs."""

from __future__ import annotations

from flake8_gpu_training.language import Text
from report_builder.audits.base import Audit, Category, items

FLOW_FACTORY = Audit(
    "flow-factory",
    Text("Flow-Factory 训练优化审计", "Flow-Factory training optimization audit"),
    "v0_flow-factory-optimization-report.md",
    (
        Category(
            "A",
            Text("混合精度", "Mixed precision"),
            5,
            items(
                ("mixed-precision-bf16", "BF16 混合精度", "BF16 mixed precision"),
                ("mixed-precision-fp16", "FP16 混合精度", "FP16 mixed precision"),
                ("master-weight-dtype", "可训练权重精度", "Dtype of trained weights"),
                ("latent-storage-dtype", "轨迹 latent 精度", "Dtype of stored latents"),
                ("inference-dtype", "采样精度", "Dtype of sampling"),
            ),
        ),
        Category(
            "B",
            Text("显存管理", "Memory management"),
            5,
            items(
                ("gradient-checkpointing", "梯度检查点", "Gradient checkpointing"),
                ("offload-samples", "样本移到 CPU", "Samples offloaded to CPU"),
                ("ema-device-cpu", "EMA 权重放在 CPU", "EMA weights on CPU"),
                ("ref-param-device-cpu", "参考模型放在 CPU", "Reference model on CPU"),
                ("gradient-accumulation", "梯度累积", "Gradient accumulation"),
            ),
        ),
        Category(
            "C",
            Text("LoRA", "LoRA"),
            5,
            items(
                ("lora", "LoRA", "LoRA"),
                ("lora-rank", "LoRA 秩", "LoRA rank"),
                ("lora-alpha", "LoRA alpha", "LoRA alpha"),
                ("target-modules", "训练的层", "Target modules"),
                ("target-components", "训练的组件", "Target components"),
            ),
        ),
        Category(
            "D",
            Text("分布式", "Distributed training"),
            6,
            items(
                ("fsdp2", "FSDP2", "FSDP2"),
                ("fsdp-full-shard", "FSDP 全分片", "FSDP full shard"),
                ("zero2", "DeepSpeed ZeRO-2", "DeepSpeed ZeRO-2"),
                ("zero3", "DeepSpeed ZeRO-3", "DeepSpeed ZeRO-3"),
                ("zero1", "DeepSpeed ZeRO-1", "DeepSpeed ZeRO-1"),
                ("zero2-offload", "ZeRO CPU Offload", "ZeRO CPU offload"),
                ("multi-node", "多机训练", "Multi-node"),
                ("num-processes", "进程数", "Number of processes"),
            ),
        ),
        Category(
            "E",
            Text("注意力后端", "Attention backend"),
            4,
            items(
                ("flash", "Flash Attention 2", "Flash Attention 2"),
                ("flash-3", "Flash Attention 3", "Flash Attention 3"),
                ("varlen", "变长 Flash Attention", "Variable-length flash attention"),
                ("sage", "SageAttention", "SageAttention"),
                ("xformers", "xFormers", "xFormers"),
                ("default-sdpa", "默认 SDPA", "Default SDPA"),
            ),
        ),
        Category(
            "F",
            Text("优化器与策略", "Optimizer and strategy"),
            5,
            items(
                ("learning-rate", "学习率", "Learning rate"),
                ("adam-parameters", "Adam 参数", "Adam parameters"),
                ("gradient-clipping", "梯度裁剪", "Gradient clipping"),
                ("sample-group-size", "组内样本数", "Group size"),
                ("lr-scheduler-gap", "学习率调度缺口", "Missing LR schedule"),
                ("epochs", "训练轮数上限", "Epoch limit"),
            ),
        ),
        Category(
            "G",
            Text("数据管道", "Data pipeline"),
            5,
            items(
                ("dataloader-workers", "DataLoader Workers", "DataLoader workers"),
                ("preprocessing-batch-size", "预处理批大小", "Preprocessing batch size"),
                ("sampler-strategy", "采样器策略", "Sampler strategy"),
                ("data-cache", "复用预处理缓存", "Preprocessing cache"),
                ("preprocess-parallelism", "预处理并行", "Parallel preprocessing"),
                ("multi-source", "多数据源", "Multiple data sources"),
            ),
        ),
        Category(
            "H",
            Text("奖励系统", "Rewards"),
            4,
            items(
                ("async-reward", "异步奖励", "Asynchronous rewards"),
                ("reward-batch-size", "奖励批大小", "Reward batch size"),
                ("reward-device", "奖励模型设备", "Reward model device"),
                ("reward-dtype", "奖励模型精度", "Reward model dtype"),
                ("reward-routing", "评估奖励", "Evaluation rewards"),
                ("advantage-type", "优势聚合方式", "Advantage aggregation"),
            ),
        ),
        Category(
            "I",
            Text("EMA 与调度器", "EMA and scheduler"),
            4,
            items(
                ("ema-decay", "EMA 衰减", "EMA decay"),
                ("ema-update-interval", "EMA 更新间隔", "EMA update interval"),
                ("ema-device", "EMA 设备", "EMA device"),
                ("ema-schedule", "EMA 衰减方式", "EMA decay schedule"),
                ("dynamics-type", "采样动力学", "Sampling dynamics"),
                ("flow-shift", "flow_shift", "flow_shift"),
                ("sde-steps", "SDE 步", "SDE steps"),
            ),
        ),
        Category(
            "J",
            Text("深度优化机会（多数需改动代码）", "Deeper optimizations (most need code changes)"),
            6,
            items(
                ("torch-compile", "torch.compile", "torch.compile"),
                ("fused-adam", "融合 Adam", "Fused Adam"),
                ("adam-8bit", "8 bit Adam", "8-bit Adam"),
                ("liger-kernel", "Liger Kernel", "Liger Kernel"),
                ("qlora", "QLoRA（4 bit）", "QLoRA (4-bit)"),
                ("lr-scheduler", "学习率调度", "LR schedule"),
                ("no-sync", "累积时不同步（no_sync）", "no_sync while accumulating"),
                ("dataloader-tuning", "加载器调优", "DataLoader tuning"),
                ("nccl-environment", "NCCL 环境变量", "NCCL environment"),
                ("zero-plus-plus", "ZeRO++", "ZeRO++"),
            ),
        ),
    ),
)
