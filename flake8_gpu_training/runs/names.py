"""What the practices of a run are called, in both languages."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from flake8_gpu_training.language import Text

PRACTICE_NAMES: Mapping[str, Text] = MappingProxyType(
    {
        "precision": Text("计算精度", "compute precision"),
        "tf32": Text("TF32 矩阵乘", "TF32 matrix products"),
        "attention": Text("注意力实现", "attention"),
        "gradient_checkpointing": Text("激活重计算", "activation checkpointing"),
        "vit_gradient_checkpointing": Text("视觉塔激活重计算", "checkpointing of the vision tower"),
        "reentrant_checkpointing": Text("可重入式重计算", "re-entrant checkpointing"),
        "micro_batch_size": Text("每卡微批大小", "micro-batch size"),
        "gradient_accumulation_steps": Text("梯度累积步数", "gradient accumulation steps"),
        "max_length": Text("最大序列长度", "maximal length"),
        "tuning": Text("微调方式", "tuning"),
        "quantization_method": Text("量化方法", "quantization method"),
        "quantization_bits": Text("量化位数", "quantization bits"),
        "lora_rank": Text("LoRA 秩", "LoRA rank"),
        "packing": Text("序列打包", "packing"),
        "padding_free": Text("Padding-Free", "padding-free batches"),
        "group_by_length": Text("按长度分组", "grouping by length"),
        "liger_kernel": Text("Liger Kernel", "Liger Kernel"),
        "unsloth": Text("Unsloth", "Unsloth"),
        "torch_compile": Text("torch.compile", "torch.compile"),
        "optimizer": Text("优化器", "optimizer"),
        "zero_stage": Text("ZeRO 阶段", "ZeRO stage"),
        "offload_optimizer": Text("优化器卸载", "optimizer offload"),
        "offload_param": Text("参数卸载", "parameter offload"),
        "overlap_comm": Text("通信计算重叠", "overlap of communication"),
        "zero_hpz_partition_size": Text("ZeRO++ 二级分片大小", "ZeRO++ secondary partition"),
        "autotp_size": Text("AutoTP 大小", "AutoTP size"),
        "fsdp": Text("FSDP 策略", "FSDP strategy"),
        "fsdp_version": Text("FSDP 版本", "FSDP version"),
        "fsdp_offload": Text("FSDP 卸载", "FSDP offload"),
        "ddp": Text("DDP 数据并行", "DDP"),
        "find_unused_parameters": Text("查找未用参数", "find_unused_parameters"),
        "device_map": Text("device_map 模型并行", "device_map"),
        "tensor_parallel": Text("张量并行", "tensor parallelism"),
        "pipeline_parallel": Text("流水线并行", "pipeline parallelism"),
        "sequence_parallel": Text("序列并行", "sequence parallelism"),
        "expert_parallel": Text("专家并行", "expert parallelism"),
        "megatron": Text("Megatron-core", "Megatron-core"),
        "dataloader_workers": Text("数据加载进程数", "data-loading workers"),
        "pin_memory": Text("锁页内存", "pinned memory"),
        "persistent_workers": Text("常驻加载进程", "persistent workers"),
        "prefetch_factor": Text("预取批数", "prefetch factor"),
        "preprocessing_workers": Text("预处理进程数", "preprocessing workers"),
        "streaming": Text("流式数据集", "streaming"),
        "pretokenized": Text("预分词缓存", "pretokenized data"),
        "save_steps": Text("保存间隔（步）", "steps between checkpoints"),
        "logging_steps": Text("日志间隔（步）", "steps between logs"),
        "report_to": Text("上报目标", "trackers"),
        "lr_scheduler": Text("学习率调度", "learning-rate schedule"),
        "warmup": Text("学习率预热", "warm-up"),
        "max_grad_norm": Text("梯度裁剪", "gradient clipping"),
        "algorithm": Text("训练算法", "algorithm"),
        "rollout_engine": Text("生成引擎", "rollout engine"),
        "freeze_vision": Text("冻结视觉编码器", "vision encoder frozen"),
        "model": Text("模型", "model"),
        "dataset": Text("数据集", "data set"),
        "output_dir": Text("输出目录", "output folder"),
    }
)
