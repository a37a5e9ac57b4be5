"""Scenarios of LLaMA-Factory."""

from __future__ import annotations

from flake8_gpu_training.language import Text
from report_builder.scenario_entries.base import QWEN_7B, QWEN_72B, Entry

LLAMAFACTORY = (
    Entry(
        Text("7–8B 模型 LoRA 微调，单卡 80 GB", "LoRA of a 7–8B model on one 80 GB card"),
        (("llamafactory/lora_7b.yaml", "lora_sft.yaml"),),
        "llamafactory-cli train lora_sft.yaml",
        7,
        QWEN_7B,
        "lora",
        output="saves/lora",
    ),
    Entry(
        Text("7–8B 模型 QLoRA 微调，单卡 24 GB", "QLoRA of a 7–8B model on one 24 GB card"),
        (("llamafactory/qlora_7b.yaml", "qlora_sft.yaml"),),
        "llamafactory-cli train qlora_sft.yaml",
        7,
        QWEN_7B,
        "lora",
        quantized=True,
        output="saves/qlora",
    ),
    Entry(
        Text(
            "70B 模型 LoRA 微调 + DeepSpeed ZeRO-3，8×80 GB",
            "LoRA of a 70B model with DeepSpeed ZeRO-3 on 8×80 GB",
        ),
        (
            ("llamafactory/lora_70b.yaml", "lora_sft_ds.yaml"),
            ("deepspeed/zero3.json", "ds_z3_config.json"),
        ),
        "FORCE_TORCHRUN=1 llamafactory-cli train lora_sft_ds.yaml",
        72,
        QWEN_72B,
        "lora",
        8,
        output="saves/lora-70b",
    ),
    Entry(
        Text("70B 模型 FSDP + QLoRA，2×24 GB", "FSDP with QLoRA of a 70B model on 2×24 GB"),
        (
            ("llamafactory/fsdp_qlora_70b.yaml", "fsdp_qlora.yaml"),
            ("llamafactory/fsdp.yaml", "fsdp_config.yaml"),
        ),
        "accelerate launch --config_file fsdp_config.yaml -m llamafactory.launcher fsdp_qlora.yaml",
        72,
        QWEN_72B,
        "lora",
        2,
        quantized=True,
        output="saves/fsdp-qlora-70b",
    ),
    Entry(
        Text(
            "7–8B 模型全参微调 + DeepSpeed ZeRO-3，8×80 GB",
            "Full tuning of a 7–8B model with DeepSpeed ZeRO-3 on 8×80 GB",
        ),
        (
            ("llamafactory/full_7b.yaml", "full_sft.yaml"),
            ("deepspeed/zero3.json", "ds_z3_config.json"),
        ),
        "FORCE_TORCHRUN=1 llamafactory-cli train full_sft.yaml",
        7,
        QWEN_7B,
        "full",
        8,
        output="saves/full",
    ),
)
