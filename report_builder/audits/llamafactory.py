"""The audit of LlamaFactory runs."""

from __future__ import annotations

from flake8_gpu_training.language import Text
from report_builder.audits.base import Audit, Category, items

LLAMAFACTORY = Audit(
    "llamafactory",
    Text("LlamaFactory 训练优化审计", "LlamaFactory training optimization audit"),
    "v0_llamafactory-optimization-report.md",
    (
        Category(
            "A",
            Text("PEFT", "PEFT"),
            10,
            items(
                ("lora", "LoRA", "LoRA"),
                ("qlora", "QLoRA（量化基座）", "QLoRA (quantized base)"),
                ("dora", "DoRA", "DoRA"),
                ("rslora", "RS-LoRA", "RS-LoRA"),
                ("pissa", "PiSSA 初始化", "PiSSA initialisation"),
                ("loftq", "LoftQ 初始化", "LoftQ initialisation"),
                ("loraplus", "LoRA+", "LoRA+"),
                ("oft", "OFT", "OFT"),
            ),
        ),
        Category(
            "B",
            Text("混合精度", "Mixed precision"),
            6,
            items(
                ("bf16", "BF16 混合精度", "BF16 mixed precision"),
                ("fp16", "FP16 混合精度", "FP16 mixed precision"),
                ("pure-bf16", "纯 BF16 训练", "Pure BF16"),
                ("fp8", "FP8 训练", "FP8 training"),
                ("upcast-layernorm", "LayerNorm 升精度", "Layer norms in FP32"),
                ("upcast-lmhead", "lm_head 输出升精度", "Output of lm_head in FP32"),
            ),
        ),
        Category(
            "C",
            Text("激活重计算", "Activation recomputation"),
            4,
            items(
                ("gradient-checkpointing", "梯度检查点", "Gradient checkpointing"),
                ("unsloth-gc", "Unsloth 梯度检查点", "Unsloth's gradient checkpointing"),
                ("reentrant-mode", "检查点重入模式", "Reentrant mode of checkpointing"),
                ("gradient-accumulation", "梯度累积", "Gradient accumulation"),
            ),
        ),
        Category(
            "D",
            Text("分布式", "Distributed training"),
            7,
            items(
                ("zero2", "DeepSpeed ZeRO-2（含 ZeRO-1）", "DeepSpeed ZeRO-2 (or ZeRO-1)"),
                ("zero3", "DeepSpeed ZeRO-3", "DeepSpeed ZeRO-3"),
                ("fsdp", "FSDP", "FSDP"),
                ("zero3-offload", "ZeRO-3 + CPU Offload", "ZeRO-3 + CPU offload"),
                ("fsdp-offload", "FSDP + CPU Offload", "FSDP + CPU offload"),
                ("fsdp-qlora", "FSDP + QLoRA", "FSDP + QLoRA"),
                ("autotp", "DeepSpeed AutoTP", "DeepSpeed AutoTP"),
                ("megatron-core", "Megatron-core 后端", "Megatron-core back end"),
                ("ray", "Ray 启动", "Launch by Ray"),
            ),
        ),
        Category(
            "E",
            Text("高效优化器", "Efficient optimizers"),
            6,
            items(
                ("galore", "GaLore", "GaLore"),
                ("badam", "BAdam", "BAdam"),
                ("apollo", "APOLLO", "APOLLO"),
                ("adam-mini", "Adam-mini", "Adam-mini"),
                ("muon", "Muon", "Muon"),
                ("fused-adam", "融合 Adam", "Fused Adam"),
            ),
        ),
        Category(
            "F",
            Text("注意力", "Attention"),
            4,
            items(
                ("flash-attention-2", "Flash Attention 2", "Flash Attention 2"),
                ("sdpa", "SDPA", "SDPA"),
                ("auto", "自动选择（auto）", "Chosen by itself (auto)"),
                (
                    "shift-attention",
                    "移位短注意力（S²-Attn）",
                    "Shifted sparse attention (S²-Attn)",
                ),
            ),
        ),
        Category(
            "G",
            Text("加速引擎", "Acceleration engines"),
            4,
            items(
                ("unsloth", "Unsloth", "Unsloth"),
                ("liger-kernel", "Liger Kernel", "Liger Kernel"),
                ("ktransformers", "KTransformers", "KTransformers"),
                ("v1-kernels", "v1 融合算子", "v1 kernels"),
            ),
        ),
        Category(
            "H",
            Text("数据处理", "Data processing"),
            7,
            items(
                ("packing", "序列打包（packing）", "Sequence packing"),
                ("neat-packing", "无污染打包（neat_packing）", "Packing without cross-attention"),
                ("streaming", "流式数据集", "Streaming data set"),
                ("preprocessing-workers", "预处理并行", "Preprocessing workers"),
                ("preprocessing-batch-size", "预处理批大小", "Preprocessing batch size"),
                ("tokenized-cache", "预分词缓存", "Cache of tokenised data"),
                ("dataloader-workers", "DataLoader Workers", "DataLoader workers"),
            ),
        ),
        Category(
            "I",
            Text("训练策略", "Training strategy"),
            7,
            items(
                ("neftune", "NEFTune", "NEFTune"),
                ("rope-scaling", "RoPE Scaling", "RoPE scaling"),
                ("mixture-of-depths", "混合深度（MoD）", "Mixture of depths"),
                ("llama-pro", "LLaMA Pro", "LLaMA Pro"),
                ("freeze-tuning", "冻结微调（freeze）", "Freeze tuning"),
                ("dft-loss", "DFT Loss", "DFT loss"),
                ("asft-loss", "ASFT Loss", "ASFT loss"),
                ("eaft-loss", "EAFT Loss", "EAFT loss"),
                ("mask-history", "屏蔽历史轮次", "History masked"),
                ("train-on-prompt-off", "不对提示词计损失", "Prompts are not learnt"),
                ("auto-batch-size", "自动批大小", "Batch size found by itself"),
            ),
        ),
        Category(
            "J",
            Text("推理加速", "Inference"),
            3,
            items(
                ("vllm-backend", "vLLM 后端", "vLLM back end"),
                ("sglang-backend", "SGLang 后端", "SGLang back end"),
                ("kv-cache", "KV Cache", "KV cache"),
            ),
            optional=True,
        ),
    ),
)
