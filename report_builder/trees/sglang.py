"""The decision tree of SGLang."""

from __future__ import annotations

from report_builder.trees.base import branch
from report_builder.trees.engines import is_offline, samples, serves

SGLANG = (
    branch(
        "启动时显存不足（Not enough memory / OOM）？",
        "Out of memory at the start?",
        branch(
            "权重放不下 → --tp-size 加倍，或 --quantization fp8 / AWQ 检查点",
            "the weights do not fit → double --tp-size, or --quantization fp8, or an AWQ "
            "checkpoint",
            advises=("fp8-online", "tensor-parallel"),
        ),
        branch(
            "捕获 CUDA Graph 时 OOM → --mem-fraction-static 减 0.05，"
            "或减小 --cuda-graph-max-bs-decode（0.5.15 前：--cuda-graph-max-bs）",
            "while graphs are captured → --mem-fraction-static less 0.05, or a smaller "
            "--cuda-graph-max-bs-decode (before 0.5.15: --cuda-graph-max-bs)",
        ),
        branch(
            "预填充时 OOM → --chunked-prefill-size 减半",
            "in prefill → halve --chunked-prefill-size",
            advises=("chunked-prefill-size",),
        ),
    ),
    branch(
        "在线服务？",
        "A server?",
        branch(
            "请求共享前缀 → 保持 RadixAttention，--schedule-policy lpm",
            "requests share prefixes → keep RadixAttention, --schedule-policy lpm",
            advises=("radix-cache",),
        ),
        branch(
            "延迟优先、并发不高 → EAGLE-3 / MTP（--speculative-algorithm）",
            "latency, and few requests → EAGLE-3 or MTP (--speculative-algorithm)",
            advises=("mtp", "eagle3"),
        ),
        branch(
            "吞吐优先且有多卡 → sglang_router.launch_server --dp-size N，按缓存分配",
            "throughput, and several GPUs → sglang_router.launch_server --dp-size N, by prefixes",
            advises=("router", "router-cache-aware"),
        ),
        branch(
            "token usage 低于 0.9 且有排队 → --schedule-conservativeness 0.3；频繁 retract → 1.3",
            "token usage below 0.9 while requests wait → --schedule-conservativeness 0.3; many "
            "retractions → 1.3",
        ),
        holds=serves,
    ),
    branch(
        "MLA / MoE 大模型（DeepSeek、Kimi-K2、GLM-5）？",
        "A large model with MLA or experts (DeepSeek, Kimi-K2, GLM-5)?",
        branch(
            "tp ≥ 8 → DP Attention（--attn-dp-size N；"
            "0.5.23 前用 --enable-dp-attention --dp-size N）",
            "8 ranks or more → DP attention (--attn-dp-size N; before 0.5.23 "
            "--enable-dp-attention --dp-size N)",
            advises=("dp-attention",),
        ),
        branch(
            "多机 → --moe-a2a-backend deepep，预填充加 --enable-two-batch-overlap",
            "several nodes → --moe-a2a-backend deepep; prefill: --enable-two-batch-overlap",
            advises=("expert-parallel", "two-batch-overlap"),
        ),
        branch(
            "deepep_mode=normal 且解码 → 改回 auto",
            "deepep_mode=normal, and it decodes → auto",
            advises=("deepep-parameters",),
        ),
    ),
    branch(
        "RLHF 采样？",
        "Sampling for RLHF?",
        branch(
            "与训练同卡 → enable_memory_saver，mem_fraction_static 0.4～0.6",
            "on the training's GPUs → enable_memory_saver, mem_fraction_static 0.4 to 0.6",
            advises=("memory-saver", "mem-fraction-static"),
        ),
        branch(
            "独立 GPU → update_weights_from_distributed（NCCL），异步时配合 pause_generation",
            "GPUs of its own → update_weights_from_distributed (NCCL), with pause_generation "
            "where training does not wait",
        ),
        holds=samples,
    ),
    branch(
        "离线批量生成？ → 一次提交全部请求，保持 CUDA Graph 与重叠调度",
        "Offline batches? → hand in all requests at once; keep CUDA graphs and the overlapped "
        "schedule",
        holds=is_offline,
    ),
    branch(
        "速度慢？",
        "Slow?",
        branch(
            "去掉 --disable-cuda-graph",
            "drop --disable-cuda-graph",
            advises=("cuda-graph-max-bs",),
        ),
        branch(
            "去掉 --disable-overlap-schedule",
            "drop --disable-overlap-schedule",
            advises=("overlap-schedule",),
        ),
        branch(
            "Hopper 上改回默认的 fa3",
            "on Hopper the default, fa3",
            advises=("fa3-kernel", "mha-backend"),
        ),
        branch(
            "结构化输出用 xgrammar",
            "structured output by xgrammar",
            advises=("structured-output",),
        ),
    ),
)
