"""The general training acceleration audit."""

from __future__ import annotations

from flake8_gpu_training.language import Text
from report_builder.audits.base import Audit, Category, items

GENERAL = Audit(
    "general",
    Text("通用训练加速审计", "General training acceleration audit"),
    "v0_training-acceleration-audit-report.md",
    (
        Category(
            "A",
            Text("并行策略", "Parallelism"),
            7,
            items(
                ("ddp", "DDP 数据并行", "DDP data parallelism"),
                ("fsdp", "FSDP 分片数据并行", "FSDP sharded data parallelism"),
                ("deepspeed-zero", "DeepSpeed ZeRO", "DeepSpeed ZeRO"),
                ("tensor-parallel", "张量并行（TP）", "Tensor parallelism (TP)"),
                ("pipeline-parallel", "流水线并行（PP）", "Pipeline parallelism (PP)"),
                ("sequence-parallel", "序列并行（SP）", "Sequence parallelism (SP)"),
                ("expert-parallel", "专家并行（EP）", "Expert parallelism (EP)"),
            ),
        ),
        Category(
            "B",
            Text("训练框架", "Training framework"),
            6,
            items(
                ("deepspeed", "DeepSpeed", "DeepSpeed"),
                ("megatron", "Megatron", "Megatron"),
                ("accelerate", "Accelerate", "Accelerate"),
                ("colossalai", "ColossalAI", "ColossalAI"),
                ("pytorch-fsdp", "PyTorch FSDP", "PyTorch FSDP"),
                ("vescale", "veScale", "veScale"),
            ),
        ),
        Category(
            "C",
            Text("显存优化", "Memory"),
            5,
            items(
                ("mixed-precision", "混合精度", "Mixed precision"),
                ("fp8-training", "FP8 训练", "FP8 training"),
                ("activation-checkpointing", "激活重计算", "Activation checkpointing"),
                ("cpu-nvme-offload", "CPU 或 NVMe 卸载", "CPU/NVMe offload"),
                ("gradient-accumulation", "梯度累积", "Gradient accumulation"),
            ),
        ),
        Category(
            "D",
            Text("计算优化", "Compute"),
            6,
            items(
                ("flash-attention", "Flash Attention", "Flash attention"),
                ("torch-compile", "torch.compile", "torch.compile"),
                ("triton-kernels", "Triton 自定义算子", "Triton kernels"),
                ("cuda-graph", "CUDA Graph", "CUDA graphs"),
                ("liger-kernel", "Liger Kernel", "Liger Kernel"),
                ("operator-fusion", "算子融合", "Operator fusion"),
            ),
            faults=items(
                (
                    "loop-compute",
                    "训练循环中的同步与低效计算",
                    "Syncs and waste in the training loop",
                ),
            ),
        ),
        Category(
            "E",
            Text("通信优化", "Communication"),
            4,
            items(
                ("gdrdma", "GDRDMA", "GPUDirect RDMA"),
                ("comm-overlap", "通信计算重叠", "Overlap of communication and compute"),
                ("gradient-compression", "梯度压缩", "Gradient compression"),
                ("nccl-tuning", "NCCL 调优", "NCCL tuning"),
            ),
            faults=items(
                (
                    "loop-communication",
                    "训练循环中的多余通信",
                    "Needless communication in the loop",
                ),
            ),
        ),
        Category(
            "F",
            Text("数据与 I/O 优化", "Data and I/O"),
            10,
            items(
                ("worker-processes", "多进程加载", "Worker processes"),
                ("prefetch", "预取", "Prefetch"),
                ("pin-memory", "Pin Memory", "Pinned memory"),
                ("small-file-merging", "小文件合并", "Small files merged"),
                ("minibatching", "小批量加载", "Mini-batches"),
                ("offline-preprocessing", "离线预处理", "Offline preprocessing"),
                ("packing", "Packing 序列打包", "Sequence packing"),
                ("memory-mapping", "内存映射", "Memory mapping"),
                ("streaming-dataset", "流式数据集", "Streaming data set"),
                ("pretokenized-binary", "预分词二进制数据", "Pretokenized binary data"),
            ),
            faults=items(
                ("loop-data", "训练循环中的阻塞拷贝", "Copies that block the training loop"),
            ),
        ),
        Category(
            "G",
            Text("训练策略", "Training strategy"),
            6,
            items(
                ("lr-schedule", "LR 调度", "Learning-rate schedule"),
                ("large-batch-optimizer", "大 batch 优化器", "Large-batch optimizer"),
                ("curriculum", "课程学习", "Curriculum"),
                ("lora-qlora", "LoRA/QLoRA", "LoRA/QLoRA"),
                ("layer-freezing", "层冻结", "Layer freezing"),
                ("alignment-loss", "对齐训练 Loss 优化", "Fused alignment loss"),
            ),
        ),
        Category(
            "H",
            Text("多模态专项", "Multimodal"),
            3,
            items(
                ("vision-encoder-frozen", "视觉编码器冻结", "Vision encoder frozen"),
                ("dynamic-resolution", "动态分辨率", "Dynamic resolution"),
                ("vision-token-pruning", "视觉 Token 裁剪", "Vision token pruning"),
            ),
            optional=True,
        ),
        Category(
            "I",
            Text("基础设施", "Infrastructure"),
            5,
            items(
                ("storage-colocation", "存储同城", "Storage near the compute"),
                ("storage-medium", "高性能存储", "Fast storage"),
                ("checkpoint-frequency", "Checkpoint 频率", "Checkpoint frequency"),
                ("logging-frequency", "日志频率", "Logging frequency"),
                ("progress-reporting-frequency", "进度上报频率", "Progress reporting frequency"),
            ),
        ),
    ),
)
