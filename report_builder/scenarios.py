"""Scenario templates: complete configurations for common situations, the nearest first."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Optional

from flake8_gpu_training.checks.inference import is_served
from flake8_gpu_training.language import Text
from flake8_gpu_training.memory import estimate
from flake8_gpu_training.runs.model import Run, RunKind
from report_builder.loaders import OF_KINDS, loader_of
from report_builder.scenario_releases import in_release, is_released, launched_in_release
from report_builder.scenario_values import Alike, with_values

_FOLDER = Path(__file__).parent / "templates" / "scenarios"
_GENERATING = frozenset({"grpo", "ppo", "gkd", "rloo", "nft", "awm", "dgpo", "crd"})
_PREFERENCES = frozenset({"dpo", "orpo", "kto", "simpo", "cpo", "rm"})
_COMMENT = re.compile(r"#: (?P<zh>.+?) \| (?P<en>.+)$", re.MULTILINE)
_LANGUAGE = MappingProxyType({".yaml": "yaml", ".py": "python", ".json": "json", ".sh": "bash"})


@dataclass(frozen=True)
class ScenarioFile:
    """A file of a scenario: the name to save it under, and its text in both languages."""

    name: str
    language: str
    text: Text


@dataclass(frozen=True)
class Scenario:
    """A situation with the files it takes and the command that starts it."""

    title: Text
    files: tuple[ScenarioFile, ...]
    launch: str
    changes: Text = Text("", "")
    """What it changes of the run's own values, in a sentence; "" where it keeps them."""
    fits: bool = True
    """Whether it is made for models like the run's."""


@dataclass(frozen=True)
class _Entry:
    """A scenario of the catalog.

    ``files``: name in templates/scenarios -> name to save it under. ``size``: billions of
    parameters it is made for. ``tuning``, ``algorithm`` and ``gpus`` decide how near it is.
    """

    title: Text
    files: tuple[tuple[str, str], ...]
    launch: str
    size: float
    model: str
    tuning: str = "full"
    gpus: int = 1
    algorithm: str = "sft"
    quantized: bool = False
    length: int = 4096
    output: str = "output/run"
    dataset: str = "your_dataset"
    template: str = "qwen"
    family: str = ""
    """What a model's name must contain for the template to be made for it."""


_QWEN_7B, _QWEN_72B = "Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-72B-Instruct"
_SWIFT = (
    _Entry(
        Text("7B 模型 LoRA 微调，单卡 80 GB", "LoRA of a 7B model on one 80 GB card"),
        (("swift/lora_7b.yaml", "sft_lora.yaml"),),
        "swift sft sft_lora.yaml",
        7,
        _QWEN_7B,
        "lora",
    ),
    _Entry(
        Text("7B 模型 QLoRA 微调，单卡 24 GB", "QLoRA of a 7B model on one 24 GB card"),
        (("swift/qlora_7b.yaml", "sft_qlora.yaml"),),
        "swift sft sft_qlora.yaml",
        7,
        _QWEN_7B,
        "lora",
        quantized=True,
        length=2048,
    ),
    _Entry(
        Text(
            "70B 模型 LoRA 微调 + DeepSpeed ZeRO-3，8×80 GB",
            "LoRA of a 70B model with DeepSpeed ZeRO-3 on 8×80 GB",
        ),
        (("swift/lora_70b.yaml", "sft_lora_ds.yaml"),),
        "NPROC_PER_NODE=8 swift sft sft_lora_ds.yaml",
        72,
        _QWEN_72B,
        "lora",
        8,
    ),
    _Entry(
        Text(
            "7B 模型全参微调 + DeepSpeed ZeRO-3 + Liger Kernel，8×80 GB",
            "Full tuning of a 7B model with DeepSpeed ZeRO-3 and Liger Kernel on 8×80 GB",
        ),
        (("swift/full_7b.yaml", "sft_full.yaml"),),
        "NPROC_PER_NODE=8 swift sft sft_full.yaml",
        7,
        _QWEN_7B,
        "full",
        8,
    ),
    _Entry(
        Text(
            "7B 模型 GRPO + vLLM 推理加速，4×80 GB",
            "GRPO of a 7B model with vLLM rollout on 4×80 GB",
        ),
        (("swift/grpo_7b.yaml", "grpo.yaml"),),
        "NPROC_PER_NODE=4 swift rlhf grpo.yaml",
        7,
        _QWEN_7B,
        "lora",
        4,
        "grpo",
        length=2048,
    ),
    _Entry(
        Text(
            "超长序列训练（512K）+ 序列并行，8×80 GB",
            "Very long sequences (512K) with sequence parallelism on 8×80 GB",
        ),
        (("swift/long_sequence.yaml", "long_seq.yaml"),),
        "NPROC_PER_NODE=8 swift sft long_seq.yaml",
        7,
        _QWEN_7B,
        "lora",
        8,
        length=524288,
    ),
)
# For runs of ``megatron sft/pt/rlhf``, in place of the two that spread a model by ZeRO-3.
_SWIFT_MEGATRON = (
    _Entry(
        Text(
            "30B MoE 模型 LoRA + Megatron 专家并行，8×80 GB",
            "LoRA of a 30B mixture of experts by Megatron on 8×80 GB",
        ),
        (("swift/megatron_moe.yaml", "megatron_moe.yaml"),),
        "NPROC_PER_NODE=8 megatron sft megatron_moe.yaml",
        30.5,
        "Qwen/Qwen3-30B-A3B-Instruct-2507",
        "lora",
        8,
        length=8192,
        family="b-a",
    ),
    _Entry(
        Text(
            "14B 模型全参微调 + Megatron 张量并行，8×80 GB",
            "Full tuning of a 14B model by Megatron with tensor parallelism on 8×80 GB",
        ),
        (("swift/megatron_dense.yaml", "megatron_full.yaml"),),
        "NPROC_PER_NODE=8 megatron sft megatron_full.yaml",
        14.8,
        "Qwen/Qwen2.5-14B-Instruct",
        "full",
        8,
        length=8192,
    ),
)
_LLAMAFACTORY = (
    _Entry(
        Text("7–8B 模型 LoRA 微调，单卡 80 GB", "LoRA of a 7–8B model on one 80 GB card"),
        (("llamafactory/lora_7b.yaml", "lora_sft.yaml"),),
        "llamafactory-cli train lora_sft.yaml",
        7,
        _QWEN_7B,
        "lora",
        output="saves/lora",
    ),
    _Entry(
        Text("7–8B 模型 QLoRA 微调，单卡 24 GB", "QLoRA of a 7–8B model on one 24 GB card"),
        (("llamafactory/qlora_7b.yaml", "qlora_sft.yaml"),),
        "llamafactory-cli train qlora_sft.yaml",
        7,
        _QWEN_7B,
        "lora",
        quantized=True,
        output="saves/qlora",
    ),
    _Entry(
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
        _QWEN_72B,
        "lora",
        8,
        output="saves/lora-70b",
    ),
    _Entry(
        Text("70B 模型 FSDP + QLoRA，2×24 GB", "FSDP with QLoRA of a 70B model on 2×24 GB"),
        (
            ("llamafactory/fsdp_qlora_70b.yaml", "fsdp_qlora.yaml"),
            ("llamafactory/fsdp.yaml", "fsdp_config.yaml"),
        ),
        "accelerate launch --config_file fsdp_config.yaml src/train.py fsdp_qlora.yaml",
        72,
        _QWEN_72B,
        "lora",
        2,
        quantized=True,
        output="saves/fsdp-qlora-70b",
    ),
    _Entry(
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
        _QWEN_7B,
        "full",
        8,
        output="saves/full",
    ),
)
_HF_TRAINER = (
    _Entry(
        Text("7B 模型全参微调，单卡 80 GB", "Full tuning of a 7B model on one 80 GB card"),
        (("hf_trainer/full_7b_single.py.txt", "train_full.py"),),
        "python train_full.py",
        7,
        _QWEN_7B,
    ),
    _Entry(
        Text("7B 模型 QLoRA 微调，单卡 24 GB", "QLoRA of a 7B model on one 24 GB card"),
        (("hf_trainer/qlora_7b.py.txt", "train_qlora.py"),),
        "python train_qlora.py",
        7,
        _QWEN_7B,
        "lora",
        quantized=True,
    ),
    _Entry(
        Text("7B 模型全参微调 + FSDP，8×80 GB", "Full tuning of a 7B model with FSDP on 8×80 GB"),
        (("hf_trainer/full_7b_fsdp.py.txt", "train_fsdp.py"),),
        "torchrun --nproc_per_node 8 train_fsdp.py",
        7,
        _QWEN_7B,
        "full",
        8,
    ),
    _Entry(
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
        _QWEN_72B,
        "lora",
        8,
    ),
    _Entry(
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
        _QWEN_72B,
        "full",
        8,
    ),
)
# For runs of encoders and of models for images or sound: no template of a language model is near.
_HF_SMALL = _Entry(
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
_HF_DEEPSPEED = _Entry(
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
    _QWEN_7B,
    "full",
    8,
)
_GENERIC = (
    _Entry(
        Text("单机多卡 DDP + BF16 + torch.compile", "DDP on one node with BF16 and torch.compile"),
        (("generic/ddp.py.txt", "train_ddp.py"),),
        "torchrun --nproc_per_node 8 train_ddp.py",
        1,
        "",
        gpus=8,
    ),
    _Entry(
        Text("大模型 FSDP2 + 激活重计算", "FSDP2 with activation checkpointing for a large model"),
        (("generic/fsdp2.py.txt", "train_fsdp2.py"),),
        "torchrun --nproc_per_node 8 train_fsdp2.py",
        7,
        "",
        gpus=8,
    ),
)
_QWEN_8B = "Qwen/Qwen3-8B"
_VLLM = (
    _Entry(
        Text("8B 模型在线服务，单卡 80 GB", "Serving an 8B model on one 80 GB card"),
        (("vllm/serve_8b.sh", "serve.sh"),),
        "bash serve.sh",
        8,
        _QWEN_8B,
    ),
    _Entry(
        Text(
            "70B 模型在线服务，4×80 GB 张量并行",
            "Serving a 70B model, tensor parallel over 4×80 GB",
        ),
        (("vllm/serve_70b.sh", "serve_tp4.sh"),),
        "bash serve_tp4.sh",
        72,
        _QWEN_72B,
        gpus=4,
    ),
    _Entry(
        Text(
            "70B 模型在线服务，8×H100 上 DP×TP",
            "Serving a 70B model on 8×H100: two copies (DP×TP)",
        ),
        (("vllm/serve_70b_dp.sh", "serve_dp2_tp4.sh"),),
        "bash serve_dp2_tp4.sh",
        72,
        _QWEN_72B,
        gpus=8,
    ),
    _Entry(
        Text(
            "8B 模型 4 bit 量化在线服务，单卡 24 GB",
            "Serving an 8B model in 4 bits on one 24 GB card",
        ),
        (("vllm/serve_8b_awq.sh", "serve_awq.sh"),),
        "bash serve_awq.sh",
        8,
        "Qwen/Qwen3-8B-AWQ",
        quantized=True,
        family="awq",
    ),
    _Entry(
        Text(
            "8B 模型 EAGLE-3 推测解码（低延迟）",
            "An 8B model with EAGLE-3, for low latency",
        ),
        (("vllm/serve_eagle.sh", "serve_eagle3.sh"),),
        "bash serve_eagle3.sh",
        8,
        "meta-llama/Llama-3.1-8B-Instruct",
        family="llama-3.1-8b-instruct",
    ),
    _Entry(
        Text(
            "DeepSeek-V3 专家并行，8×H200",
            "DeepSeek-V3 with expert parallelism on 8×H200",
        ),
        (("vllm/serve_moe.sh", "serve_ep8.sh"),),
        "bash serve_ep8.sh",
        671,
        "deepseek-ai/DeepSeek-V3",
        gpus=8,
        family="deepseek",
    ),
    _Entry(
        Text("8B 模型 GRPO，与训练同卡采样", "GRPO of an 8B model, sampling on the same GPUs"),
        (("vllm/rollout_colocate.py.txt", "rollout.py"),),
        "python rollout.py",
        8,
        _QWEN_8B,
        algorithm="grpo",
        gpus=8,
    ),
    _Entry(
        Text("8B 模型 GRPO，独立的采样服务", "GRPO of an 8B model, sampling by a server"),
        (("vllm/rollout_server.sh", "rollout_server.sh"),),
        "bash rollout_server.sh",
        8,
        _QWEN_8B,
        algorithm="grpo",
        gpus=8,
    ),
)
_SGLANG = (
    _Entry(
        Text("8B 模型在线服务，单卡 80 GB", "Serving an 8B model on one 80 GB card"),
        (("sglang/serve_8b.sh", "serve.sh"),),
        "bash serve.sh",
        8,
        _QWEN_8B,
    ),
    _Entry(
        Text(
            "70B 模型在线服务，4×80 GB 张量并行",
            "Serving a 70B model, tensor parallel over 4×80 GB",
        ),
        (("sglang/serve_70b.sh", "serve_tp4.sh"),),
        "bash serve_tp4.sh",
        72,
        _QWEN_72B,
        gpus=4,
    ),
    _Entry(
        Text(
            "70B 模型在线服务，8×H100 上 DP×TP，路由按缓存分配",
            "Serving a 70B model on 8×H100: two copies behind a router (DP×TP)",
        ),
        (("sglang/serve_70b_dp.sh", "serve_dp2_tp4.sh"),),
        "bash serve_dp2_tp4.sh",
        72,
        _QWEN_72B,
        gpus=8,
    ),
    _Entry(
        Text(
            "8B 模型 4 bit 量化在线服务，单卡 24 GB",
            "Serving an 8B model in 4 bits on one 24 GB card",
        ),
        (("sglang/serve_8b_awq.sh", "serve_awq.sh"),),
        "bash serve_awq.sh",
        8,
        "Qwen/Qwen3-8B-AWQ",
        quantized=True,
        family="awq",
    ),
    _Entry(
        Text(
            "8B 模型 EAGLE-3 推测解码（低延迟）",
            "An 8B model with EAGLE-3, for low latency",
        ),
        (("sglang/serve_eagle.sh", "serve_eagle3.sh"),),
        "bash serve_eagle3.sh",
        8,
        "meta-llama/Llama-3.1-8B-Instruct",
        family="llama-3.1-8b-instruct",
    ),
    _Entry(
        Text(
            "DeepSeek-V3 专家并行，8×H200",
            "DeepSeek-V3 with expert parallelism on 8×H200",
        ),
        (("sglang/serve_moe.sh", "serve_deepep.sh"),),
        "bash serve_deepep.sh",
        671,
        "deepseek-ai/DeepSeek-V3",
        gpus=8,
        family="deepseek",
    ),
    _Entry(
        Text("8B 模型 GRPO，与训练同卡采样", "GRPO of an 8B model, sampling on the same GPUs"),
        (("sglang/rollout_colocate.py.txt", "rollout.py"),),
        "python rollout.py",
        8,
        _QWEN_8B,
        algorithm="grpo",
        gpus=8,
    ),
    _Entry(
        Text("8B 模型 GRPO，独立的采样服务", "GRPO of an 8B model, sampling by a server"),
        (
            ("sglang/rollout_server.sh", "rollout_server.sh"),
            ("sglang/sync_weights.py.txt", "sync_weights.py"),
        ),
        "bash rollout_server.sh",
        8,
        _QWEN_8B,
        algorithm="grpo",
        gpus=8,
    ),
)
_WAN_1B = "models/Diffusion_Transformer/Wan2.1-Fun-V1.1-1.3B-InP"
_WAN_14B = "models/Diffusion_Transformer/Wan2.1-Fun-V1.1-14B-InP"
_VIDEOX_FUN = (
    _Entry(
        Text("1.3B 视频模型 LoRA，单卡 24 GB", "LoRA of a 1.3B video model on one 24 GB card"),
        (("videox_fun/lora_1b.sh", "train_lora.sh"),),
        "bash train_lora.sh",
        1.3,
        _WAN_1B,
        "lora",
        family="wan2.1-fun",
        dataset="datasets/internal_datasets",
        output="output_dir_lora",
    ),
    _Entry(
        Text(
            "14B 视频模型 LoRA + DeepSpeed ZeRO-2，8×80 GB",
            "LoRA of a 14B video model with DeepSpeed ZeRO-2 on 8×80 GB",
        ),
        (
            ("videox_fun/lora_14b.sh", "train_lora_14b.sh"),
            ("videox_fun/zero2.json", "zero2.json"),
        ),
        "bash train_lora_14b.sh",
        14,
        _WAN_14B,
        "lora",
        gpus=8,
        family="wan2.1-fun",
        dataset="datasets/internal_datasets",
        output="output_dir_lora_14b",
    ),
    _Entry(
        Text(
            "14B 视频模型全参 + FSDP，8×80 GB", "Full tuning of a 14B video model, FSDP on 8×80 GB"
        ),
        (("videox_fun/full_14b_fsdp.sh", "train_full_fsdp.sh"),),
        "bash train_full_fsdp.sh",
        14,
        _WAN_14B,
        "full",
        gpus=8,
        family="wan2.1-fun",
        dataset="datasets/internal_datasets",
        output="output_dir_full_14b",
    ),
    _Entry(
        Text(
            "14B 视频模型全参 + DeepSpeed ZeRO-3 Offload，2×24 GB",
            "Full tuning of a 14B video model with DeepSpeed ZeRO-3 offload on 2×24 GB",
        ),
        (("videox_fun/full_14b_offload.sh", "train_full_offload.sh"),),
        "bash train_full_offload.sh",
        14,
        _WAN_14B,
        "full",
        gpus=2,
        family="wan2.1-fun",
        dataset="datasets/internal_datasets",
        output="output_dir_full_14b",
    ),
    _Entry(
        Text("CogVideoX-Fun 5B LoRA，单卡 80 GB", "LoRA of CogVideoX-Fun 5B on one 80 GB card"),
        (("videox_fun/cogvideox_lora.sh", "train_cogvideox_lora.sh"),),
        "bash train_cogvideox_lora.sh",
        5,
        "models/Diffusion_Transformer/CogVideoX-Fun-V1.5-5b-InP",
        "lora",
        family="cogvideox",
        dataset="datasets/internal_datasets",
        output="output_dir_cogvideox_lora",
    ),
)
_FLOW_FACTORY = (
    _Entry(
        Text("Wan2.1 1.3B GRPO LoRA，8×A100", "GRPO with LoRA of Wan2.1 1.3B on 8×A100"),
        (("flow_factory/wan_1b_grpo.yaml", "wan_grpo.yaml"),),
        "ff-train wan_grpo.yaml",
        1.3,
        "Wan-AI/Wan2.1-T2V-1.3B-Diffusers",
        "lora",
        8,
        "grpo",
        family="wan2.1-t2v",
        dataset="dataset/pickscore",
        output="saves/",
    ),
    _Entry(
        Text("Wan2.1 14B GRPO LoRA，8×H100", "GRPO with LoRA of Wan2.1 14B on 8×H100"),
        (("flow_factory/wan_14b_grpo.yaml", "wan_14b_grpo.yaml"),),
        "ff-train wan_14b_grpo.yaml",
        14,
        "Wan-AI/Wan2.1-T2V-14B-Diffusers",
        "lora",
        8,
        "grpo",
        family="wan2.1-t2v",
        dataset="dataset/pickscore",
        output="saves/",
    ),
    _Entry(
        Text("FLUX.1-dev GRPO LoRA，4×A100", "GRPO with LoRA of FLUX.1-dev on 4×A100"),
        (("flow_factory/flux_grpo.yaml", "flux_grpo.yaml"),),
        "ff-train flux_grpo.yaml",
        12,
        "black-forest-labs/FLUX.1-dev",
        "lora",
        4,
        "grpo",
        family="flux.1",
        dataset="dataset/t2is",
        output="saves/",
    ),
    _Entry(
        Text(
            "Wan2.1 14B GRPO 全参 + DeepSpeed ZeRO-3，8×A100",
            "GRPO, full tuning of Wan2.1 14B with DeepSpeed ZeRO-3 on 8×A100",
        ),
        (
            ("flow_factory/wan_14b_full.yaml", "wan_14b_full.yaml"),
            ("flow_factory/zero3.yaml", "zero3.yaml"),
        ),
        "ff-train wan_14b_full.yaml",
        14,
        "Wan-AI/Wan2.1-T2V-14B-Diffusers",
        "full",
        8,
        "grpo",
        family="wan2.1-t2v",
        dataset="dataset/pickscore",
        output="saves/",
    ),
    _Entry(
        Text("LTX-2 NFT LoRA，8×H100", "NFT with LoRA of LTX-2 on 8×H100"),
        (("flow_factory/ltx2_nft.yaml", "ltx2_nft.yaml"),),
        "ff-train ltx2_nft.yaml",
        19,
        "Lightricks/LTX-2",
        "lora",
        8,
        "nft",
        family="ltx-2",
        dataset="dataset/vid_prompt",
        output="saves/",
    ),
)
_CATALOG: Mapping[str, tuple[_Entry, ...]] = MappingProxyType(
    {
        "swift": _SWIFT,
        "llamafactory": _LLAMAFACTORY,
        "hf_trainer": _HF_TRAINER,
        "videox_fun": _VIDEOX_FUN,
        "flow_factory": _FLOW_FACTORY,
        "vllm": _VLLM,
        "sglang": _SGLANG,
        "generic": _GENERIC,
    }
)
# LLaMA-Factory chat templates by model family, as registered in its data/template.py.
_CHAT_TEMPLATES = (
    ("qwen3", "qwen3"),
    ("qwen", "qwen"),
    ("llama-3", "llama3"),
    ("llama3", "llama3"),
    ("mistral", "mistral"),
    ("gemma", "gemma"),
    ("yi-", "yi"),
    ("baichuan2", "baichuan2"),
    ("internlm2", "intern2"),
    ("glm-4", "glm4"),
)


def scenarios(run: Optional[Run], framework: str) -> tuple[Scenario, ...]:
    """Templates for ``framework``, nearest to ``run`` first, filled with its names."""
    entries = list(_CATALOG.get(framework, _GENERIC))
    if run is not None:
        if framework == "hf_trainer" and run.model.kind in OF_KINDS:
            entries = [_HF_SMALL]
        elif framework == "hf_trainer" and _method_of_run(run) == "DeepSpeed":
            entries = [_HF_DEEPSPEED if _method(e) == "FSDP" else e for e in entries]
        if framework == "swift" and run.value("megatron") is True:
            spread = [entry for entry in entries if "ZeRO-3" in entry.title.en]
            entries = [*_SWIFT_MEGATRON, *(entry for entry in entries if entry not in spread)]
        entries.sort(key=lambda entry: _distance(run, entry))
    found = (_filled(run, entry) for entry in entries)
    if run is None:
        return tuple(found)
    return tuple(each for each in found if all(is_released(run, f.text) for f in each.files))


def _distance(run: Run, entry: _Entry) -> float:
    """How far the run's situation is from the entry's; ties keep the catalog's order."""
    distance: float = 0.0
    algorithm = run.value("algorithm", "sft")
    generates = (algorithm in _GENERATING, entry.algorithm in _GENERATING)
    distance += 8 * (generates[0] != generates[1]) + (algorithm != entry.algorithm)
    if run.framework == "swift":
        distance += 8 * ((run.value("megatron") is True) != ("megatron " in entry.launch))
    tuning = run.value("tuning")
    if run.kind is RunKind.TRAIN and tuning is not None:
        distance += 4 * ((tuning == "full") != (entry.tuning == "full"))
    if bool(run.value("quantization_bits")) != entry.quantized:
        distance += 3
    name = run.model.known_as.lower()
    if entry.family and name:
        distance += 3 * (entry.family not in name)
    if entry.family and run.model.kind in ("image", "video"):
        distance += 3 * ((run.model.kind == "image") != (entry.family == "flux.1"))
    if run.model.parameters:
        ratio: float = run.model.parameters / (entry.size * 1e9)
        distance += min(5.0, 2 * abs(math.log2(ratio)))
    gpus = run.hardware.gpus or run.launcher.world_size
    if gpus is not None:
        distance += 2 * ((gpus == 1) != (entry.gpus == 1))
        more: float = max(1, gpus) / entry.gpus
        distance += 0.25 * abs(math.log2(more))
    elif _is_on_several(run):
        distance += 2 * (entry.gpus == 1)
    methods = (_method_of_run(run), _method(entry))
    if all(methods):
        distance += 2 * (methods[0] != methods[1])
    length = run.value("max_length")
    long = isinstance(length, int) and length > 131_072
    distance += 6 * (long != (entry.length > 131_072))
    return distance


def _method(entry: _Entry) -> str:
    """How the entry shards the model: ``DeepSpeed``, ``FSDP``, or "" for neither."""
    return next((name for name in ("DeepSpeed", "FSDP") if name in entry.title.en), "")


def _method_of_run(run: Run) -> str:
    """How the run shards the model, or "" where it does not or cannot be told."""
    if run.value("fsdp", "none") != "none":
        return "FSDP"
    return "DeepSpeed" if run.deepspeed is not None or run.value("zero_stage", 0) else ""


def _is_on_several(run: Run) -> bool:
    """Whether the run surely has several GPUs: they are counted, or its model is split."""
    gpus = run.hardware.gpus or run.launcher.world_size
    return bool(_method_of_run(run)) if gpus is None else gpus > 1


def _same_size(run: Run, billions: float) -> bool:
    """Whether the run's model is about of this size; a smaller one fits what holds a small one,
    and one of unknown size fits no template for a large one."""
    small = billions <= 14
    if run.model.parameters is None:
        return small
    least = 0.0 if small and run.framework == "swift" else 0.5
    return least <= run.model.parameters / (billions * 1e9) <= 1.9


def _learns_from(algorithm: Optional[str]) -> str:
    """The kind of data set that an algorithm takes: prompts, preferences, or texts."""
    if algorithm in _GENERATING:
        return "prompts"
    return "preferences" if algorithm in _PREFERENCES else "texts"


def _filled(run: Optional[Run], entry: _Entry) -> Scenario:
    suits = run is not None and _suits(run, entry)
    model = (_model_name(run) if run is not None and suits else None) or entry.model
    dataset, meta = entry.dataset, f"{entry.dataset}/metadata.json"
    if run is not None and run.framework == "videox_fun":
        dataset, meta = _folder_and_list(run) or (dataset, meta)
    elif run is not None and _learns_from(run.value("algorithm")) == _learns_from(entry.algorithm):
        dataset = _name(run, "dataset") or dataset
    values = {
        "meta": meta,
        "model": model,
        "dataset": dataset,
        "source": _source(dataset),
        "output": _output(run, entry),
        "loader": loader_of(run),
        "template": _chat_template(model, entry.template),
        "model_type": _line(run, "model_type") if suits else "",
        "rewards": _rewards(run),
    }
    files = tuple(_file(source, name, values) for source, name in entry.files)
    if run is not None:
        files = tuple(replace(file, text=in_release(run, file.text)) for file in files)
    changes = Text("", "")
    if run is not None and suits:
        first, changes = with_values(run, files[0].text, _alike(run, entry))
        files = (replace(files[0], text=first), *files[1:])
    launch = _launch(run, entry)
    if any("\n#SBATCH " in file.text.en for file in files):
        launch = re.sub(r"^bash ", "sbatch ", launch)
    return Scenario(_title(run, entry, suits), files, launch, changes, run is None or suits)


def _alike(run: Run, entry: _Entry) -> Alike:
    """In what the entry is like the run. A run that does not fit its GPU has to change."""
    tuning = (run.value("tuning", entry.tuning) == "full") == (entry.tuning == "full")
    gpus = run.hardware.gpus or run.launcher.world_size or 1
    quantized = bool(run.value("quantization_bits")) == entry.quantized
    found = estimate(run)
    fits = found is None or found.fits is not False
    memory = tuning and quantized and fits and (gpus == 1) == (entry.gpus == 1)
    return Alike(tuning, memory, entry.length)


def _output(run: Optional[Run], entry: _Entry) -> str:
    """A folder beside the run's own, which keeps what it holds."""
    own = _name(run, "output_dir") if run is not None else None
    if own is None or run is None:
        return entry.output
    if run.framework == "flow_factory":  # names a folder for each run in it
        return own
    return f"{own.rstrip('/')}-{Path(entry.files[0][1]).stem}"


def _folder_and_list(run: Run) -> Optional[tuple[str, str]]:
    """VideoX-Fun's folder of samples, empty for a list of absolute paths, and the list itself."""
    named = []
    for setting in map(run.settings.get, ("train_data_dir", "train_data_meta")):
        value = setting.value if setting is not None and setting.known else None
        named.append(str(value or "").rstrip("/"))
    if not any(named) or any(re.search(r"[\s\"'$`\\]", name) for name in named):
        return None
    return named[0], named[1] or f"{named[0]}/metadata.json"


def _line(run: Optional[Run], name: str) -> str:
    """The run's own parameter as a line of a file; "" where it has none in plain words."""
    setting = run.settings.get(name) if run is not None else None
    if setting is None or not setting.explicit or not setting.known:
        return ""
    value = setting.value
    words = list(value) if isinstance(value, (list, tuple)) else str(value).split()
    if not words or not all(_is_plain(word) for word in words):
        return ""
    return f"{name}: {words[0] if len(words) == 1 else '[' + ', '.join(words) + ']'}\n"


def _rewards(run: Optional[Run]) -> str:
    """What scores the samples of a run that generates, and the plugins and prompt they need."""
    funcs = _line(run, "reward_funcs")
    if not funcs:
        return "reward_funcs: accuracy"
    return "".join((_line(run, "system"), _line(run, "external_plugins"), funcs)).rstrip("\n")


def _title(run: Optional[Run], entry: _Entry, suits: bool) -> Text:
    """The entry's title with the run's own size and number of GPUs where it is adapted to it."""
    title = entry.title
    if run is None:
        return title
    parameters = run.model.parameters
    if suits and parameters and _model_name(run):
        size = f"{parameters / 1e9:.1f}".replace(".0", "") + "B"
        title = Text(
            re.sub(r"^[\d.–]+B (?=模型|视频模型)", f"{size} ", title.zh),
            re.sub(r"\ban? [\d.–]+B (?=model|video model)", f"{_article(size)} {size} ", title.en),
        )
    elif suits and not parameters and _model_name(run):
        title = Text(
            re.sub(r"^[\d.–]+B (?=模型)", "本项目", title.zh),
            re.sub(r"\ban? [\d.–]+B (?=model)", "the run's ", title.en),
        )
    gpus = run.hardware.gpus_per_node
    takes_all = run.framework == "llamafactory" and entry.gpus == 1  # its launcher does
    if gpus is None and takes_all and _is_on_several(run):
        return Text(
            title.zh.replace("单卡", "多卡 DDP，每卡"),
            title.en.replace("on one 80 GB card", "with DDP on 80 GB cards").replace(
                "on one 24 GB card", "with DDP on 24 GB cards"
            ),
        )
    is_counted = takes_all or f"{gpus} " in _launch(run, entry)
    if gpus is not None and is_counted and entry.gpus < gpus:
        title = Text(
            re.sub(r"(?:单卡 |\d+×)(\d+ GB)", rf"{gpus}×\1", title.zh),
            re.sub(r"(?:one (\d+ GB) card|\d+×(\d+ GB))", rf"{gpus}×\1\2", title.en),
        )
    return title


def _article(size: str) -> str:
    return "an" if size.startswith("8") or size in ("11B", "18B") else "a"


def _suits(run: Run, entry: _Entry) -> bool:
    """Whether the entry is made for models like the run's."""
    name = (_model_name(run) or "").lower()
    served = entry.algorithm not in _GENERATING or is_served(run)
    small = run.model.kind in OF_KINDS
    return entry.family in name and served and (_same_size(run, entry.size) or small)


def _model_name(run: Run) -> Optional[str]:
    """The run's model as a framework loads it: a path or a hub's ``owner/name``."""
    for name in (_name(run, "model"), _checkpoint(run), run.model.name):
        is_old = run.model.kind in OF_KINDS  # whose names on the hub have no owner, as a rule
        if name and ("/" in name or is_old) and not re.search(r"[\s\"'$`\\<>]", name):
            return name
    return None


def _checkpoint(run: Run) -> Optional[str]:
    """Weights that a full training goes on from, where no model is named (ms-swift 3)."""
    setting = run.settings.get("ckpt_dir") if run.framework == "swift" else None
    full = run.value("tuning") == "full"
    return setting.value if full and setting is not None and _is_plain(setting.value) else None


def _launch(run: Optional[Run], entry: _Entry) -> str:
    """The entry's command; one for fewer GPUs is started on all that the run has."""
    gpus = run.hardware.gpus_per_node if run is not None else None
    launch = entry.launch if run is None else launched_in_release(run, entry.launch)
    if run is None or gpus is None or gpus < 2 or 1 < entry.gpus >= gpus:
        return launch
    if run.framework == "swift" and entry.gpus > 1:
        return launch.replace(f"NPROC_PER_NODE={entry.gpus} ", f"NPROC_PER_NODE={gpus} ")
    if run.framework == "swift":
        return f"NPROC_PER_NODE={gpus} {launch}"
    if entry.gpus > 1:
        return launch
    if run.framework == "hf_trainer":
        return entry.launch.replace("python ", f"torchrun --nproc_per_node {gpus} ", 1)
    return launch


def _name(run: Run, practice: str) -> Optional[str]:
    """The run's own name for ``practice`` when it is one plain word."""
    value = run.value(practice)
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    return str(value) if _is_plain(value) else None


def _is_plain(value: object) -> bool:
    """Whether it is a word that needs no quotes."""
    return isinstance(value, str) and bool(value) and not re.search(r"[\s\"'$`\\]", value)


def _source(dataset: str) -> str:
    """Arguments of ``datasets.load_dataset`` for a file, or for a data set of the hub."""
    kinds = {".json": "json", ".jsonl": "json", ".parquet": "parquet", ".csv": "csv"}
    kind = kinds.get(Path(dataset).suffix)
    return f'"{kind}", data_files="{dataset}"' if kind else f'"{dataset}"'


def _chat_template(model: str, default: str) -> str:
    lowered = model.lower()
    return next((name for part, name in _CHAT_TEMPLATES if part in lowered), default)


def _file(source: str, name: str, values: Mapping[str, str]) -> ScenarioFile:
    path = _FOLDER / source
    text = Template(path.read_text(encoding="utf-8")).substitute(values)
    text = re.sub(r"(?<=\S) {2,}(?=#: )", "  ", text)  # names of any length stand before
    spoken = Text(
        _COMMENT.sub(lambda match: f"# {match['zh']}", text),
        _COMMENT.sub(lambda match: f"# {match['en']}", text),
    )
    return ScenarioFile(name, _LANGUAGE[Path(name).suffix], spoken)
