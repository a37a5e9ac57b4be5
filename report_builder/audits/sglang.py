"""The audit of SGLang."""

from __future__ import annotations

from report_builder.audits.base import outline

SGLANG = outline(
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
