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
                ("master-weight-dtype", "可训练权重精度", "Type of the trained weights"),
                ("latent-storage-dtype", "轨迹 latent 精度", "Type of stored latents"),
                ("inference-dtype", "采样精度", "Type of sampling"),
            ),
        ),
        Category(
            "B",
            Text("显存管理", "Memory management"),
            5,
            items(
                ("gradient-checkpointing", "梯度检查点", "Gradient checkpointing"),
                ("offload-samples", "样本移到 CPU", "Samples moved to the CPU"),
                ("ema-device-cpu", "EMA 权重放在 CPU", "Averaged weights on the CPU"),
                ("ref-param-device-cpu", "参考模型放在 CPU", "Reference on the CPU"),
                ("gradient-accumulation", "梯度累积", "Gradient accumulation"),
            ),
        ),
        Category(
            "C",
            Text("LoRA", "LoRA"),
            5,
            items(
                ("lora", "LoRA", "LoRA"),
                ("lora-rank", "LoRA 秩", "Rank"),
                ("lora-alpha", "LoRA alpha", "Alpha"),
                ("target-modules", "训练的层", "Layers that are trained"),
                ("target-components", "训练的组件", "Components that are trained"),
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
                ("zero2-offload", "ZeRO CPU Offload", "ZeRO offload to the CPU"),
                ("multi-node", "多机训练", "Several nodes"),
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
                ("varlen", "变长 Flash Attention", "Flash attention over lengths"),
                ("sage", "SageAttention", "SageAttention"),
                ("xformers", "xFormers", "xFormers"),
                ("default-sdpa", "默认 SDPA", "SDPA, the default"),
            ),
        ),
        Category(
            "F",
            Text("优化器与策略", "Optimizer and strategy"),
            5,
            items(
                ("learning-rate", "学习率", "Learning rate"),
                ("adam-parameters", "Adam 参数", "Parameters of Adam"),
                ("gradient-clipping", "梯度裁剪", "Gradient clipping"),
                ("sample-group-size", "组内样本数", "Samples of a group"),
                ("lr-scheduler-gap", "学习率调度缺口", "Missing schedule"),
                ("epochs", "训练轮数上限", "Limit of epochs"),
            ),
        ),
        Category(
            "G",
            Text("数据管道", "Data pipeline"),
            5,
            items(
                ("dataloader-workers", "DataLoader Workers", "DataLoader workers"),
                ("preprocessing-batch-size", "预处理批大小", "Batch of the preprocessing"),
                ("sampler-strategy", "采样器策略", "Strategy of the sampler"),
                ("data-cache", "复用预处理缓存", "Preprocessed data kept"),
                ("preprocess-parallelism", "预处理并行", "Parallel preprocessing"),
                ("multi-source", "多数据源", "Several data sets"),
            ),
        ),
        Category(
            "H",
            Text("奖励系统", "Rewards"),
            4,
            items(
                ("async-reward", "异步奖励", "Rewards beside the sampling"),
                ("reward-batch-size", "奖励批大小", "Batch of the reward model"),
                ("reward-device", "奖励模型设备", "Device of the reward model"),
                ("reward-dtype", "奖励模型精度", "Type of the reward model"),
                ("reward-routing", "评估奖励", "Rewards of the evaluation"),
                ("advantage-type", "优势聚合方式", "How advantages are joined"),
            ),
        ),
        Category(
            "I",
            Text("EMA 与调度器", "EMA and scheduler"),
            4,
            items(
                ("ema-decay", "EMA 衰减", "Decay of the average"),
                ("ema-update-interval", "EMA 更新间隔", "Interval of the average"),
                ("ema-device", "EMA 设备", "Device of the average"),
                ("ema-schedule", "EMA 衰减方式", "Schedule of the average"),
                ("dynamics-type", "采样动力学", "Dynamics of sampling"),
                ("flow-shift", "flow_shift", "flow_shift"),
                ("sde-steps", "SDE 步", "Noisy steps"),
            ),
        ),
        Category(
            "J",
            Text("深度优化机会（需改动代码）", "Deeper optimizations (by changing the code)"),
            6,
            items(
                ("torch-compile", "torch.compile", "torch.compile"),
                ("fused-adam", "融合 Adam", "Fused Adam"),
                ("adam-8bit", "8 bit Adam", "8-bit Adam"),
                ("liger-kernel", "Liger Kernel", "Liger Kernel"),
                ("qlora", "QLoRA（4 bit）", "QLoRA (4-bit)"),
                ("lr-scheduler", "学习率调度", "Schedule of the rate"),
                ("no-sync", "累积时不同步（no_sync）", "No sync while accumulating"),
                ("dataloader-tuning", "加载器调优", "Tuning of the loader"),
                ("nccl-environment", "NCCL 环境变量", "NCCL environment"),
                ("zero-plus-plus", "ZeRO++", "ZeRO++"),
            ),
        ),
    ),
)
