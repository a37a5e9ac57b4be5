"""The audit of LlamaFactory runs."""

from __future__ import annotations

from report_builder.audits.base import outline

LLAMAFACTORY = outline(
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
