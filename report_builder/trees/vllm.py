"""The decision tree of vLLM."""

from __future__ import annotations

from report_builder.trees.base import branch
from report_builder.trees.engines import is_offline, samples, serves

VLLM = (
    branch(
        "启动时显存不足（No available memory for the cache blocks / OOM）？",
        "Out of memory at the start (No available memory for the cache blocks)?",
        branch(
            "权重放不下 → --tensor-parallel-size 加倍（整除注意力头数），或 FP8 / AWQ 检查点",
            "the weights do not fit → double --tensor-parallel-size (it divides the heads), or an "
            "FP8 or AWQ checkpoint",
            advises=("tensor-parallel", "fp8-online", "awq", "gptq"),
        ),
        branch(
            "一条最长序列放不下 → 减小 --max-model-len（按实际请求），或 --kv-cache-dtype fp8",
            "the longest sequence does not fit → a shorter --max-model-len, as requests need, or "
            "--kv-cache-dtype fp8",
            advises=("max-model-len", "kv-cache-dtype", "long-max-len"),
        ),
        branch(
            "其他进程占用显存 → 降低 --gpu-memory-utilization；独占时 0.9～0.95",
            "other processes use the GPU → a lower --gpu-memory-utilization; 0.9 to 0.95 for a GPU "
            "of its own",
            advises=("gpu-memory-utilization",),
        ),
        branch(
            "捕获 CUDA Graph 或采样时 OOM → 减小 --max-num-seqs",
            "while graphs are captured, or in sampling → a smaller --max-num-seqs",
            advises=("max-num-seqs",),
        ),
    ),
    branch(
        "在线服务？",
        "A server?",
        branch(
            "首 token 慢 → 分块预填充、前缀缓存保持开启，--max-num-batched-tokens 8192 以上",
            "the first token is late → keep chunked prefill and prefix caching, "
            "--max-num-batched-tokens 8192 or more",
            advises=("chunked-prefill", "max-batched-tokens", "prefix-caching"),
            holds=serves,
        ),
        branch(
            "长提示阻塞短请求 → --long-prefill-token-threshold，或预填充与解码分离",
            "long prompts hold up short ones → --long-prefill-token-threshold, or prefill apart "
            "from decoding",
            advises=("partial-prefills", "disaggregated-prefill"),
            holds=serves,
        ),
        branch(
            "低并发、延迟优先 → 推测解码：MTP（模型自带）> EAGLE-3 > 草稿模型 > n-gram",
            "few requests, and latency counts → speculative decoding: MTP where the model has it, "
            "then EAGLE-3, a draft model, n-grams",
            advises=("mtp", "eagle", "draft-model", "ngram"),
            holds=serves,
        ),
        branch(
            "模型放得下且有余卡 → --data-parallel-size N（DP×TP），而不是更大的张量并行",
            "the model fits, and GPUs are left → --data-parallel-size N (DP×TP) rather than wider "
            "tensor parallelism",
            advises=("data-parallel", "dp-tp-mix"),
            holds=serves,
        ),
        branch(
            "CPU 成为瓶颈 → --api-server-count，每个引擎进程一个以上的核",
            "the CPU is the limit → --api-server-count, and more than one core for each engine",
            advises=("api-server-count", "cpu-cores"),
            holds=serves,
        ),
        holds=serves,
    ),
    branch(
        "MoE / MLA 大模型（DeepSeek、Kimi-K2、Qwen3-235B）？",
        "A large model with experts or MLA (DeepSeek, Kimi-K2, Qwen3-235B)?",
        branch(
            "多卡 → --enable-expert-parallel，注意力用 --data-parallel-size",
            "several GPUs → --enable-expert-parallel, attention by --data-parallel-size",
            advises=("expert-parallel",),
        ),
        branch(
            "MLA → 按架构自动选后端；Hopper FlashMLA，Blackwell CUTLASS / FlashInfer MLA",
            "MLA → leave the backend to vLLM: FlashMLA on Hopper, CUTLASS or FlashInfer MLA on "
            "Blackwell",
            advises=("mla-backend",),
        ),
    ),
    branch(
        "RLHF 采样？",
        "Sampling for RLHF?",
        branch(
            "与训练同卡 → enable_sleep_mode，更新权重前后 sleep / wake_up，显存占比 0.3～0.6",
            "on the training's GPUs → enable_sleep_mode, sleep and wake_up around the update, a "
            "share of 0.3 to 0.6",
            advises=("sleep-mode", "gpu-memory-utilization", "colocate"),
            holds=samples,
        ),
        branch(
            "独立 GPU → 权重经 NCCL 推送（--weight-transfer-config），训练与采样并行",
            "GPUs of its own → weights sent by NCCL (--weight-transfer-config), sampling while the "
            "training goes on",
            advises=("weight-transfer", "server", "async-rl"),
            holds=samples,
        ),
        branch(
            "训练 LoRA → 只传适配器",
            "LoRA is trained → send the adapter alone",
            advises=("dynamic-lora",),
            holds=samples,
        ),
        holds=samples,
    ),
    branch(
        "离线批量生成？ → 一次 generate() 提交全部提示，保持 CUDA Graph，--max-num-seqs 按 KV 缓存",
        "Offline batches? → hand all prompts to one generate(), keep CUDA graphs, --max-num-seqs "
        "by the KV cache",
        holds=is_offline,
    ),
    branch(
        "速度慢？",
        "Slow?",
        branch(
            "去掉 --enforce-eager",
            "drop --enforce-eager",
            advises=("cuda-graph", "torch-compile", "optimization-level"),
        ),
        branch(
            "注意力后端交给 vLLM 选择（Hopper：FlashAttention 3）",
            "leave the attention backend to vLLM (on Hopper FlashAttention 3)",
            advises=("attention-backend", "flash-version"),
        ),
        branch(
            "频繁抢占（preempted）→ 减小 --max-num-seqs 或 --max-model-len，或 FP8 KV 缓存",
            "requests are preempted often → a smaller --max-num-seqs or --max-model-len, or an FP8 "
            "KV cache",
            advises=("preemption-monitoring", "kv-cache-dtype"),
        ),
    ),
)
