"""The audit of Flow-Factory runs."""

from __future__ import annotations

from report_builder.audits.base import outline

FLOW_FACTORY = outline(
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
