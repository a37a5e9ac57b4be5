"""The audit of runs of the Transformers Trainer."""

from __future__ import annotations

from report_builder.audits.base import outline

TRANSFORMERS = outline(
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
