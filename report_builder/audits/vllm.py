"""The audit of vLLM."""

from __future__ import annotations

from flake8_gpu_training.language import Text
from report_builder.audits.base import Audit, Category, items

VLLM = Audit(
    "vllm",
    Text("vLLM 推理优化审计", "vLLM inference optimization audit"),
    "v0_vllm-optimization-report.md",
    (
        Category(
            "A",
            Text("引擎与编译", "Engine and compilation"),
            5,
            items(
                ("optimization-level", "优化级别（-O）", "Optimization level (-O)"),
                ("cuda-graph", "CUDA Graph", "CUDA graphs"),
                ("torch-compile", "torch.compile", "torch.compile"),
                ("v1-engine", "V1 引擎", "V1 engine"),
                ("capture-sizes", "CUDA Graph 捕获批大小", "Batch sizes of CUDA graphs"),
            ),
        ),
        Category(
            "B",
            Text("显存管理", "Memory management"),
            6,
            items(
                ("gpu-memory-utilization", "显存占比", "Share of the memory"),
                ("max-model-len", "最大序列长度", "Longest sequence"),
                ("kv-cache-dtype", "FP8 KV 缓存", "FP8 KV cache"),
                ("swap-space", "CPU 交换空间（V0）", "Swap space (V0)"),
                ("kv-offload", "KV 缓存卸载", "KV cache offload"),
                ("block-size", "KV 块大小", "Block size"),
            ),
        ),
        Category(
            "C",
            Text("并行策略", "Parallelism"),
            5,
            items(
                ("tensor-parallel", "张量并行", "Tensor parallelism"),
                ("pipeline-parallel", "流水线并行", "Pipeline parallelism"),
                ("data-parallel", "数据并行", "Data parallelism"),
                ("expert-parallel", "专家并行", "Expert parallelism"),
                ("dp-tp-mix", "DP×TP 组合", "Copies of a tensor-parallel model"),
            ),
        ),
        Category(
            "D",
            Text("量化", "Quantization"),
            6,
            items(
                ("fp8-online", "FP8（在线或检查点自带）", "FP8, on loading or in the checkpoint"),
                ("awq", "AWQ", "AWQ"),
                ("gptq", "GPTQ 等 4 bit", "GPTQ and kin"),
                ("bitsandbytes", "bitsandbytes", "bitsandbytes"),
                ("gguf", "GGUF", "GGUF"),
                ("marlin", "Marlin 算子", "Marlin kernels"),
                ("mixed-quantization", "混合精度量化", "Mixed precisions"),
            ),
        ),
        Category(
            "E",
            Text("调度与批处理", "Scheduling and batching"),
            6,
            items(
                ("chunked-prefill", "分块预填充", "Chunked prefill"),
                ("max-batched-tokens", "每步 token 数", "Tokens of a step"),
                ("max-num-seqs", "并发序列数", "Sequences of a step"),
                ("prefix-caching", "前缀缓存", "Prefix caching"),
                ("partial-prefills", "长提示限额", "Limits for long prompts"),
            ),
        ),
        Category(
            "F",
            Text("注意力后端", "Attention backend"),
            4,
            items(
                ("flash-version", "FlashAttention 版本", "Generation of FlashAttention"),
                ("attention-backend", "注意力后端", "Attention backend"),
                ("mla-backend", "MLA 后端", "Latent attention"),
                ("fp8-attention", "FP8 注意力", "Attention in FP8"),
            ),
        ),
        Category(
            "G",
            Text("推测解码", "Speculative decoding"),
            4,
            items(
                ("eagle", "EAGLE", "EAGLE"),
                ("mtp", "MTP", "MTP"),
                ("draft-model", "草稿模型", "Draft model"),
                ("ngram", "n-gram", "n-grams"),
                ("draft-tp", "草稿模型张量并行", "GPUs of the draft model"),
            ),
        ),
        Category(
            "H",
            Text("RLHF 集成", "RLHF integration"),
            7,
            items(
                ("sleep-mode", "休眠模式", "Sleep mode"),
                ("weight-transfer", "权重传输", "Weight transfer"),
                ("colocate", "同卡部署", "Colocated"),
                ("server", "独立服务", "Server"),
                ("async-rl", "异步 RL", "Asynchronous RL"),
                ("dynamic-lora", "动态 LoRA", "Adapters at run time"),
                ("layerwise-reload", "逐层重载", "Layerwise reload"),
            ),
            optional=True,
        ),
        Category(
            "I",
            Text("生产部署", "Production"),
            5,
            items(
                ("lora-serving", "LoRA 服务", "Adapters served"),
                ("api-server-count", "API 服务进程数", "API server processes"),
                ("disaggregated-prefill", "预填充与解码分离", "Prefill apart from decoding"),
                ("yaml-config", "YAML 配置", "Arguments in YAML"),
                ("multimodal-limits", "多模态输入上限", "Limits of images and videos"),
            ),
        ),
        Category(
            "J",
            Text("环境与调优", "Environment and tuning"),
            4,
            items(
                ("fast-tokenizer", "快速分词器", "Fast tokenizer"),
                ("cpu-cores", "CPU 核数", "Cores"),
                ("worker-method", "Worker 启动方式", "How workers start"),
                ("dev-mode", "开发模式（RLHF）", "Endpoints for training"),
                ("long-max-len", "超过模型长度", "Beyond the model's length"),
                ("preemption-monitoring", "抢占监控", "Statistics of preemptions"),
            ),
        ),
    ),
)
