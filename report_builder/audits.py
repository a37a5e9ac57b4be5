"""The audits: categories with their maxima, and the names and order of their items.

Which check serves which item, and for how many points, is declared beside the checks; this
module gives only what a reader of the reports sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from flake8_gpu_training.language import Text


@dataclass(frozen=True)
class Category:
    """A category of an audit, worth ``maximum`` points.

    ``optional``: it counts only for runs of its kind (multimodal, RLHF, generation) and is
    left out of the total otherwise. ``items``: names of its items by id, in report order;
    ``faults``: those of what only costs, shown when it is found.
    """

    id: str
    title: Text
    maximum: int
    items: tuple[tuple[str, Text], ...] = ()
    optional: bool = False
    faults: tuple[tuple[str, Text], ...] = ()


@dataclass(frozen=True)
class Audit:
    """An audit: ``id`` as in the JSON report, ``file`` the document it is written to."""

    id: str
    title: Text
    file: str
    categories: tuple[Category, ...]

    @property
    def maximum(self) -> int:
        """Points of all categories together."""
        return sum(category.maximum for category in self.categories)

    @property
    def heading(self) -> Text:
        """Its name in the main report: ``ms-swift 专项审计``."""
        return Text(self.title.zh.replace("训练优化审计", "专项审计"), self.title.en)


def _items(*rows: tuple[str, str, str]) -> tuple[tuple[str, Text], ...]:
    return tuple((identifier, Text(zh, en)) for identifier, zh, en in rows)


_GENERAL = Audit(
    "general",
    Text("通用训练加速审计", "General training acceleration audit"),
    "v0_training-acceleration-audit-report.md",
    (
        Category(
            "A",
            Text("并行策略", "Parallelism"),
            7,
            _items(
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
            _items(
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
            _items(
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
            _items(
                ("flash-attention", "Flash Attention", "Flash attention"),
                ("torch-compile", "torch.compile", "torch.compile"),
                ("triton-kernels", "Triton 自定义算子", "Triton kernels"),
                ("cuda-graph", "CUDA Graph", "CUDA graphs"),
                ("liger-kernel", "Liger Kernel", "Liger Kernel"),
                ("operator-fusion", "算子融合", "Operator fusion"),
            ),
            faults=_items(
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
            _items(
                ("gdrdma", "GDRDMA", "GPUDirect RDMA"),
                ("comm-overlap", "通信计算重叠", "Overlap of communication and compute"),
                ("gradient-compression", "梯度压缩", "Gradient compression"),
                ("nccl-tuning", "NCCL 调优", "NCCL tuning"),
            ),
            faults=_items(
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
            _items(
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
            faults=_items(
                ("loop-data", "训练循环中的阻塞拷贝", "Copies that block the training loop"),
            ),
        ),
        Category(
            "G",
            Text("训练策略", "Training strategy"),
            6,
            _items(
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
            _items(
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
            _items(
                ("storage-colocation", "存储同城", "Storage near the compute"),
                ("storage-medium", "高性能存储", "Fast storage"),
                ("checkpoint-frequency", "Checkpoint 频率", "Checkpoint frequency"),
                ("logging-frequency", "日志频率", "Logging frequency"),
                ("progress-reporting-frequency", "进度上报频率", "Progress reporting frequency"),
            ),
        ),
    ),
)

_SWIFT = Audit(
    "swift",
    Text("ms-swift 训练优化审计", "ms-swift training optimization audit"),
    "v0_swift-optimization-report.md",
    (
        Category(
            "A",
            Text("PEFT", "PEFT"),
            12,
            _items(
                ("lora", "LoRA", "LoRA"),
                ("qlora-bnb", "QLoRA（BnB 4bit）", "QLoRA (BnB 4-bit)"),
                ("qlora-hqq", "QLoRA（HQQ）", "QLoRA (HQQ)"),
                ("qlora-eetq", "QLoRA（EETQ）", "QLoRA (EETQ)"),
                ("fp8-quantization", "FP8 量化", "FP8 quantization"),
                ("dora", "DoRA", "DoRA"),
                ("lora-plus", "LoRA+", "LoRA+"),
                ("rslora", "RS-LoRA", "RS-LoRA"),
                ("pissa", "PiSSA", "PiSSA"),
                ("lora-ga", "LoRA-GA", "LoRA-GA"),
                ("adalora", "AdaLoRA", "AdaLoRA"),
                ("lisa", "LISA", "LISA"),
                ("unsloth", "UnSloth", "UnSloth"),
            ),
        ),
        Category(
            "B",
            Text("混合精度", "Mixed precision"),
            4,
            _items(
                ("bf16", "BF16 混合精度", "BF16 mixed precision"),
                ("fp16", "FP16 混合精度", "FP16 mixed precision"),
                ("fp8-training", "FP8 训练", "FP8 training"),
            ),
        ),
        Category(
            "C",
            Text("激活重计算", "Activation recomputation"),
            5,
            _items(
                ("gradient-checkpointing", "梯度检查点", "Gradient checkpointing"),
                ("vit-gradient-checkpointing", "ViT 梯度检查点", "ViT gradient checkpointing"),
                ("gradient-accumulation", "梯度累积", "Gradient accumulation"),
                ("logits-to-keep", "use_logits_to_keep", "use_logits_to_keep"),
                ("activation-cpu-offload", "激活 CPU 卸载", "Activation CPU offload"),
            ),
        ),
        Category(
            "D",
            Text("分布式优化", "Distributed training"),
            8,
            _items(
                ("zero2", "DeepSpeed ZeRO-2", "DeepSpeed ZeRO-2"),
                ("zero3", "DeepSpeed ZeRO-3", "DeepSpeed ZeRO-3"),
                ("zero2-offload", "ZeRO-2 + CPU Offload", "ZeRO-2 + CPU offload"),
                ("zero3-offload", "ZeRO-3 + CPU Offload", "ZeRO-3 + CPU offload"),
                ("zero-plus-plus", "ZeRO++", "ZeRO++"),
                ("autotp", "DeepSpeed AutoTP", "DeepSpeed AutoTP"),
                ("fsdp2", "FSDP2", "FSDP2"),
                ("device-map", "device_map 模型并行", "device_map model parallelism"),
                ("megatron", "Megatron 并行", "Megatron parallelism"),
            ),
        ),
        Category(
            "E",
            Text("高效优化器", "Efficient optimizers"),
            3,
            _items(("galore", "GaLore", "GaLore"), ("q-galore", "Q-GaLore", "Q-GaLore")),
        ),
        Category(
            "F",
            Text("注意力优化", "Attention"),
            5,
            _items(
                ("flash-attention-2", "Flash Attention 2", "Flash Attention 2"),
                ("flash-attention-3", "Flash Attention 3", "Flash Attention 3"),
                ("sdpa", "SDPA", "SDPA"),
                ("flex-attention", "FlexAttention", "FlexAttention"),
                ("sequence-parallel", "序列并行", "Sequence parallelism"),
            ),
        ),
        Category(
            "G",
            Text("加速引擎", "Acceleration engines"),
            4,
            _items(
                ("liger-kernel", "Liger Kernel", "Liger Kernel"),
                ("torch-compile", "torch.compile", "torch.compile"),
                ("unsloth-backend", "UnSloth 后端", "UnSloth backend"),
            ),
        ),
        Category(
            "H",
            Text("数据处理", "Data processing"),
            7,
            _items(
                ("packing", "序列打包（Packing）", "Sequence packing"),
                ("padding-free", "Padding-Free", "Padding-free"),
                ("streaming", "流式数据集", "Streaming data set"),
                ("lazy-tokenize", "延迟 Tokenize", "Lazy tokenization"),
                ("preprocessing-workers", "预处理并行", "Preprocessing workers"),
                ("dataloader-workers", "DataLoader Workers", "DataLoader workers"),
                ("persistent-workers", "Persistent Workers", "Persistent workers"),
                ("prefetch-factor", "Prefetch Factor", "Prefetch factor"),
            ),
        ),
        Category(
            "I",
            Text("训练策略", "Training strategy"),
            6,
            _items(
                ("loss-scale", "Loss Scale", "Loss scale"),
                ("neftune", "NEFTune", "NEFTune"),
                ("rope-scaling", "RoPE Scaling", "RoPE scaling"),
                ("dft-loss", "DFT Loss", "DFT loss"),
                ("multimodal-freezing", "多模态冻结", "Multimodal freezing"),
                ("layered-learning-rate", "分层学习率", "Layered learning rates"),
            ),
        ),
        Category(
            "J",
            Text("RLHF/GRPO", "RLHF/GRPO"),
            6,
            _items(
                ("vllm-rollout", "vLLM 推理加速", "vLLM rollout"),
                ("async-generate", "异步生成", "Asynchronous generation"),
                ("offload-optimizer", "优化器 CPU 卸载", "Optimizer CPU offload"),
                ("offload-model", "模型 CPU 卸载", "Model CPU offload"),
                ("sleep-level", "Sleep Level", "Sleep level"),
                ("grpo-sampling", "GRPO 采样", "GRPO sampling"),
                ("dynamic-sampling", "动态采样", "Dynamic sampling"),
                ("prefix-caching", "Prefix Caching", "Prefix caching"),
            ),
            optional=True,
        ),
    ),
)


def _audit(identifier: str, name: str, zh: str, en: str, *rows: tuple[str, str, str, int]) -> Audit:
    """An audit whose items are named by their ids."""
    return Audit(
        identifier,
        Text(f"{name} {zh}", f"{name} {en}"),
        f"v0_{identifier}-optimization-report.md",
        tuple(
            Category(letter, Text(title_zh, title_en), maximum)
            for letter, title_zh, title_en, maximum in rows
        ),
    )


_LLAMAFACTORY = _audit(
    "llamafactory",
    "LlamaFactory",
    "训练优化审计",
    "training optimization audit",
    ("A", "PEFT", "PEFT", 10),
    ("B", "混合精度", "Mixed precision", 6),
    ("C", "激活重计算", "Activation recomputation", 4),
    ("D", "分布式", "Distributed training", 7),
    ("E", "高效优化器", "Efficient optimizers", 6),
    ("F", "注意力", "Attention", 4),
    ("G", "加速引擎", "Acceleration engines", 4),
    ("H", "数据处理", "Data processing", 7),
    ("I", "训练策略", "Training strategy", 7),
    ("J", "推理加速", "Inference", 3),
)

_VIDEOX_FUN = _audit(
    "videox-fun",
    "VideoX-Fun",
    "训练优化审计",
    "training optimization audit",
    ("A", "混合精度与量化", "Mixed precision and quantization", 6),
    ("B", "激活重计算", "Activation recomputation", 3),
    ("C", "模型卸载与低显存", "Model offload and low memory", 3),
    ("D", "分布式", "Distributed training", 5),
    ("E", "LoRA 配置", "LoRA", 5),
    ("F", "注意力", "Attention", 6),
    ("G", "数据管道", "Data pipeline", 11),
    ("H", "训练策略", "Training strategy", 10),
    ("I", "深度优化机会", "Deeper optimizations", 12),
)

_FLOW_FACTORY = _audit(
    "flow-factory",
    "Flow-Factory",
    "训练优化审计",
    "training optimization audit",
    ("A", "混合精度", "Mixed precision", 5),
    ("B", "显存管理", "Memory management", 5),
    ("C", "LoRA", "LoRA", 5),
    ("D", "分布式", "Distributed training", 6),
    ("E", "注意力后端", "Attention backend", 4),
    ("F", "优化器与策略", "Optimizer and strategy", 5),
    ("G", "数据管道", "Data pipeline", 5),
    ("H", "奖励系统", "Rewards", 4),
    ("I", "EMA 与调度器", "EMA and scheduler", 4),
    ("J", "深度优化机会", "Deeper optimizations", 6),
)

_TRANSFORMERS = _audit(
    "transformers",
    "HF Transformers Trainer",
    "训练优化审计",
    "training optimization audit",
    ("A", "混合精度", "Mixed precision", 5),
    ("B", "梯度检查点与显存", "Gradient checkpointing and memory", 5),
    ("C", "PEFT 与量化", "PEFT and quantization", 8),
    ("D", "优化器", "Optimizer", 7),
    ("E", "分布式", "Distributed training", 10),
    ("F", "注意力", "Attention", 5),
    ("G", "计算加速", "Compute acceleration", 5),
    ("H", "数据处理", "Data processing", 7),
    ("I", "训练策略", "Training strategy", 5),
    ("J", "推理优化", "Generation", 5),
)

_VLLM = _audit(
    "vllm",
    "vLLM",
    "推理优化审计",
    "inference optimization audit",
    ("A", "引擎与编译", "Engine and compilation", 5),
    ("B", "显存管理", "Memory management", 6),
    ("C", "并行策略", "Parallelism", 5),
    ("D", "量化", "Quantization", 6),
    ("E", "调度与批处理", "Scheduling and batching", 6),
    ("F", "注意力后端", "Attention backend", 4),
    ("G", "推测解码", "Speculative decoding", 4),
    ("H", "RLHF 集成", "RLHF integration", 7),
    ("I", "生产部署", "Production", 5),
    ("J", "环境与调优", "Environment and tuning", 4),
)

_SGLANG = _audit(
    "sglang",
    "SGLang",
    "推理优化审计",
    "inference optimization audit",
    ("A", "引擎与计算", "Engine and compute", 6),
    ("B", "显存管理", "Memory management", 6),
    ("C", "前缀缓存", "Prefix cache", 5),
    ("D", "并行策略", "Parallelism", 6),
    ("E", "量化", "Quantization", 5),
    ("F", "注意力后端", "Attention backend", 4),
    ("G", "推测解码", "Speculative decoding", 4),
    ("H", "RLHF 集成", "RLHF integration", 7),
    ("I", "生产部署", "Production", 6),
    ("J", "环境与调优", "Environment and tuning", 5),
)

# Order of the JSON report.
AUDITS = (
    _GENERAL,
    _SWIFT,
    _LLAMAFACTORY,
    _VIDEOX_FUN,
    _FLOW_FACTORY,
    _TRANSFORMERS,
    _VLLM,
    _SGLANG,
)


def audit_of(identifier: str) -> Optional[Audit]:
    """The audit with this id, or None."""
    return next((audit for audit in AUDITS if audit.id == identifier), None)
