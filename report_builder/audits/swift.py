"""The audit of ms-swift runs."""

from __future__ import annotations

from flake8_gpu_training.language import Text
from report_builder.audits.base import Audit, Category, items

SWIFT = Audit(
    "swift",
    Text("ms-swift 训练优化审计", "ms-swift training optimization audit"),
    "v0_swift-optimization-report.md",
    (
        Category(
            "A",
            Text("PEFT", "PEFT"),
            12,
            items(
                ("lora", "LoRA", "LoRA"),
                ("qlora-bnb", "QLoRA（BnB 4bit）", "QLoRA (BnB 4-bit)"),
                ("qlora-hqq", "QLoRA（HQQ）", "QLoRA (HQQ)"),
                ("qlora-eetq", "QLoRA（EETQ）", "QLoRA (EETQ)"),
                ("fp8-quantization", "FP8 量化", "FP8 quantization"),
                ("dora", "DoRA", "DoRA"),
                ("lora-plus", "LoRA+", "LoRA+"),
                ("rslora", "RS-LoRA", "RS-LoRA"),
                ("pissa", "PiSSA", "PiSSA"),
                ("lora-ga", "LoRA-GA", "LoRA-GA"),
                ("adalora", "AdaLoRA", "AdaLoRA"),
                ("lisa", "LISA", "LISA"),
                ("unsloth", "UnSloth", "UnSloth"),
            ),
        ),
        Category(
            "B",
            Text("混合精度", "Mixed precision"),
            4,
            items(
                ("bf16", "BF16 混合精度", "BF16 mixed precision"),
                ("fp16", "FP16 混合精度", "FP16 mixed precision"),
                ("fp8-training", "FP8 训练", "FP8 training"),
            ),
        ),
        Category(
            "C",
            Text("激活重计算", "Activation recomputation"),
            5,
            items(
                ("gradient-checkpointing", "梯度检查点", "Gradient checkpointing"),
                ("vit-gradient-checkpointing", "ViT 梯度检查点", "ViT gradient checkpointing"),
                ("gradient-accumulation", "梯度累积", "Gradient accumulation"),
                ("logits-to-keep", "use_logits_to_keep", "use_logits_to_keep"),
                ("activation-cpu-offload", "激活 CPU 卸载", "Activation CPU offload"),
            ),
        ),
        Category(
            "D",
            Text("分布式优化", "Distributed training"),
            8,
            items(
                ("zero2", "DeepSpeed ZeRO-2（含 ZeRO-1）", "DeepSpeed ZeRO-2 (or ZeRO-1)"),
                ("zero3", "DeepSpeed ZeRO-3", "DeepSpeed ZeRO-3"),
                ("zero2-offload", "ZeRO-2 + CPU Offload", "ZeRO-2 + CPU offload"),
                ("zero3-offload", "ZeRO-3 + CPU Offload", "ZeRO-3 + CPU offload"),
                ("zero-plus-plus", "ZeRO++", "ZeRO++"),
                ("autotp", "DeepSpeed AutoTP", "DeepSpeed AutoTP"),
                ("fsdp2", "FSDP2", "FSDP2"),
                ("device-map", "device_map 模型并行", "device_map model parallelism"),
                ("megatron", "Megatron 并行", "Megatron parallelism"),
            ),
        ),
        Category(
            "E",
            Text("高效优化器", "Efficient optimizers"),
            3,
            items(("galore", "GaLore", "GaLore"), ("q-galore", "Q-GaLore", "Q-GaLore")),
        ),
        Category(
            "F",
            Text("注意力优化", "Attention"),
            5,
            items(
                ("flash-attention-2", "Flash Attention 2", "Flash Attention 2"),
                ("flash-attention-3", "Flash Attention 3", "Flash Attention 3"),
                ("sdpa", "SDPA", "SDPA"),
                ("flex-attention", "FlexAttention", "FlexAttention"),
                ("sequence-parallel", "序列并行", "Sequence parallelism"),
            ),
        ),
        Category(
            "G",
            Text("加速引擎", "Acceleration engines"),
            4,
            items(
                ("liger-kernel", "Liger Kernel", "Liger Kernel"),
                ("torch-compile", "torch.compile", "torch.compile"),
                ("unsloth-backend", "UnSloth 后端", "UnSloth backend"),
            ),
        ),
        Category(
            "H",
            Text("数据处理", "Data processing"),
            7,
            items(
                ("packing", "序列打包（Packing）", "Sequence packing"),
                ("padding-free", "Padding-Free", "Padding-free"),
                ("streaming", "流式数据集", "Streaming data set"),
                ("lazy-tokenize", "延迟 Tokenize", "Lazy tokenization"),
                ("preprocessing-workers", "预处理并行", "Preprocessing workers"),
                ("dataloader-workers", "DataLoader Workers", "DataLoader workers"),
                ("persistent-workers", "Persistent Workers", "Persistent workers"),
                ("prefetch-factor", "Prefetch Factor", "Prefetch factor"),
            ),
        ),
        Category(
            "I",
            Text("训练策略", "Training strategy"),
            6,
            items(
                ("loss-scale", "Loss Scale", "Loss scale"),
                ("neftune", "NEFTune", "NEFTune"),
                ("rope-scaling", "RoPE Scaling", "RoPE scaling"),
                ("dft-loss", "DFT Loss", "DFT loss"),
                ("multimodal-freezing", "多模态冻结", "Multimodal freezing"),
                ("layered-learning-rate", "分层学习率", "Layered learning rates"),
            ),
        ),
        Category(
            "J",
            Text("RLHF/GRPO", "RLHF/GRPO"),
            6,
            items(
                ("vllm-rollout", "vLLM 推理加速", "vLLM rollout"),
                ("async-generate", "异步生成", "Asynchronous generation"),
                ("offload-optimizer", "优化器 CPU 卸载", "Optimizer CPU offload"),
                ("offload-model", "模型 CPU 卸载", "Model CPU offload"),
                ("sleep-level", "Sleep Level", "Sleep level"),
                ("grpo-sampling", "GRPO 采样", "GRPO sampling"),
                ("dynamic-sampling", "动态采样", "Dynamic sampling"),
                ("prefix-caching", "Prefix Caching", "Prefix caching"),
            ),
            optional=True,
        ),
    ),
)
