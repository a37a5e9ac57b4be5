"""The audit of vLLM."""

from __future__ import annotations

from report_builder.audits.base import outline

VLLM = outline(
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
