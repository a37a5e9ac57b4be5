"""Scenarios of the Hugging Face Trainer, and of plain PyTorch."""

from __future__ import annotations

from flake8_gpu_training.language import Text
from report_builder.scenario_entries.base import QWEN_7B, QWEN_72B, Entry

HF_TRAINER = (
    Entry(
        Text("7B 模型全参微调，单卡 80 GB", "Full tuning of a 7B model on one 80 GB card"),
        (("hf_trainer/full_7b_single.py.txt", "train_full.py"),),
        "python train_full.py",
        7,
        QWEN_7B,
    ),
    Entry(
        Text("7B 模型 QLoRA 微调，单卡 24 GB", "QLoRA of a 7B model on one 24 GB card"),
        (("hf_trainer/qlora_7b.py.txt", "train_qlora.py"),),
        "python train_qlora.py",
        7,
        QWEN_7B,
        "lora",
        quantized=True,
    ),
    Entry(
        Text("7B 模型全参微调 + FSDP，8×80 GB", "Full tuning of a 7B model with FSDP on 8×80 GB"),
        (("hf_trainer/full_7b_fsdp.py.txt", "train_fsdp.py"),),
        "torchrun --nproc_per_node 8 train_fsdp.py",
        7,
        QWEN_7B,
        "full",
        8,
    ),
    Entry(
        Text(
            "70B 模型 LoRA 微调 + DeepSpeed ZeRO-3，8×80 GB",
            "LoRA of a 70B model with DeepSpeed ZeRO-3 on 8×80 GB",
        ),
        (
            ("hf_trainer/lora_70b.py.txt", "train_lora_70b.py"),
            ("deepspeed/zero3.json", "ds_z3.json"),
        ),
        "torchrun --nproc_per_node 8 train_lora_70b.py",
        72,
        QWEN_72B,
        "lora",
        8,
    ),
    Entry(
        Text(
            "70B 模型全参微调 + DeepSpeed ZeRO-3 Offload，8×80 GB",
            "Full tuning of a 70B model with DeepSpeed ZeRO-3 offload on 8×80 GB",
        ),
        (
            ("hf_trainer/full_70b.py.txt", "train_full_70b.py"),
            ("deepspeed/zero3_offload.json", "ds_z3_offload.json"),
        ),
        "torchrun --nproc_per_node 8 train_full_70b.py",
        72,
        QWEN_72B,
        "full",
        8,
    ),
)
# For runs that sample completions: no template of another kind is near.
HF_GRPO = Entry(
    Text(
        "7B 模型 GRPO LoRA + 同卡 vLLM 采样，8×80 GB",
        "GRPO with LoRA of a 7B model, sampling by vLLM on the same 8×80 GB",
    ),
    (("hf_trainer/grpo_7b.py.txt", "train_grpo.py"),),
    "torchrun --nproc_per_node 8 train_grpo.py",
    7,
    QWEN_7B,
    "lora",
    8,
    "grpo",
)
# For runs of encoders and of models for images or sound: no template of a language model is near.
HF_SMALL = Entry(
    Text(
        "编码器、视觉、语音等模型的全参微调，单卡",
        "Full tuning of an encoder, a vision or an audio model on one card",
    ),
    (("hf_trainer/encoder.py.txt", "train_model.py"),),
    "python train_model.py",
    0.1,
    "google-bert/bert-base-uncased",
)
# Takes the place of the FSDP template for a run that shards with DeepSpeed.
HF_DEEPSPEED = Entry(
    Text(
        "7B 模型全参微调 + DeepSpeed ZeRO-3，8×80 GB",
        "Full tuning of a 7B model with DeepSpeed ZeRO-3 on 8×80 GB",
    ),
    (
        ("hf_trainer/full_7b_deepspeed.py.txt", "train_deepspeed.py"),
        ("deepspeed/zero3.json", "ds_z3.json"),
    ),
    "torchrun --nproc_per_node 8 train_deepspeed.py",
    7,
    QWEN_7B,
    "full",
    8,
)
GENERIC = (
    Entry(
        Text("单机多卡 DDP + BF16 + torch.compile", "DDP on one node with BF16 and torch.compile"),
        (("generic/ddp.py.txt", "train_ddp.py"),),
        "torchrun --nproc_per_node 8 train_ddp.py",
        1,
        "",
        gpus=8,
    ),
    Entry(
        Text("大模型 FSDP2 + 激活重计算", "FSDP2 with activation checkpointing for a large model"),
        (("generic/fsdp2.py.txt", "train_fsdp2.py"),),
        "torchrun --nproc_per_node 8 train_fsdp2.py",
        7,
        "",
        gpus=8,
    ),
)
