"""Scenarios of VideoX-Fun and Flow-Factory."""

from __future__ import annotations

from flake8_gpu_training.language import Text
from report_builder.scenario_entries.base import Entry

_WAN_1B = "models/Diffusion_Transformer/Wan2.1-Fun-V1.1-1.3B-InP"
_WAN_14B = "models/Diffusion_Transformer/Wan2.1-Fun-V1.1-14B-InP"
VIDEOX_FUN = (
    Entry(
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
    Entry(
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
    Entry(
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
    Entry(
        Text(
            "14B 视频模型全参 + DeepSpeed ZeRO-3 Offload，2×24 GB",
            "Full tuning of a 14B video model with DeepSpeed ZeRO-3 offload on 2×24 GB",
        ),
        (
            ("videox_fun/full_14b_offload.sh", "train_full_offload.sh"),
            ("videox_fun/zero3_offload.json", "zero3_offload.json"),
        ),
        "bash train_full_offload.sh",
        14,
        _WAN_14B,
        "full",
        gpus=2,
        family="wan2.1-fun",
        dataset="datasets/internal_datasets",
        output="output_dir_full_14b",
    ),
    Entry(
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
FLOW_FACTORY = (
    Entry(
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
    Entry(
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
    Entry(
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
    Entry(
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
    Entry(
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
