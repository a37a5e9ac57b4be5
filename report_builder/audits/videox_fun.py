"""The audit of VideoX-Fun runs."""

from __future__ import annotations

from report_builder.audits.base import outline

VIDEOX_FUN = outline(
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
