"""The ms-swift decision tree, with the branches of a run marked."""

from __future__ import annotations

from typing import Optional

from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_FLASH = frozenset({"flash_attention_2", "flash_attention_3", "flash_attention_4"})
_LONG = 131_072
_SHARDING = frozenset({"zero2", "zero3", "zero2-offload", "zero3-offload", "fsdp2"})

# Branch drawing, wording, and the sign of the run that the branch is for ("" for none).
_TREE = (
    ("", Text("开始", "Start"), ""),
    ("├── ", Text("显存不足（OOM）？", "Out of memory?"), ""),
    ("│   ├── ", Text("是 → 当前用全参训练？", "yes → full tuning now?"), ""),
    (
        "│   │   ├── ",
        Text("是 → 切换为 LoRA（--tuner_type lora）", "yes → LoRA (--tuner_type lora)"),
        "full",
    ),
    (
        "│   │   │   └── ",
        Text(
            "仍然 OOM？ → QLoRA（--quant_method bnb --quant_bits 4）",
            "still? → QLoRA (--quant_method bnb --quant_bits 4)",
        ),
        "",
    ),
    ("│   │   └── ", Text("否（已用 LoRA）", "no (LoRA already)"), "lora"),
    (
        "│   │       ├── ",
        Text(
            "确认 gradient_checkpointing 已开启（ms-swift 默认开启）",
            "see that gradient_checkpointing is on (ms-swift's default)",
        ),
        "",
    ),
    (
        "│   │       ├── ",
        Text(
            "减小 batch size + 自动 gradient_accumulation_steps",
            "smaller batch, gradient_accumulation_steps adjusts itself",
        ),
        "",
    ),
    (
        "│   │       ├── ",
        Text(
            "启用 --use_logits_to_keep true（RLHF 场景）",
            "--use_logits_to_keep true (RLHF)",
        ),
        "",
    ),
    (
        "│   │       └── ",
        Text(
            "仍然 OOM？ → 降低 quant_bits / 减小 max_length / FSDP2+QLoRA",
            "still? → fewer quant_bits / shorter max_length / FSDP2 with QLoRA",
        ),
        "",
    ),
    ("│   └── ", Text("否 → 继续性能优化", "no → go on with speed"), ""),
    ("├── ", Text("训练速度慢？", "Training slow?"), ""),
    (
        "│   ├── ",
        Text("attn_impl 已启用 flash_attn？", "attn_impl is flash_attn?"),
        "",
    ),
    (
        "│   │   ├── ",
        Text("否 → 设置 --attn_impl flash_attn", "no → --attn_impl flash_attn"),
        "no-flash",
    ),
    ("│   │   └── ", Text("是 → 继续", "yes → go on"), "flash"),
    (
        "│   ├── ",
        Text(
            "LoRA 单卡训练？ → --tuner_backend unsloth（与 Liger Kernel 二选一）",
            "LoRA on one GPU? → --tuner_backend unsloth (or Liger Kernel, not both)",
        ),
        "single-lora",
    ),
    (
        "│   ├── ",
        Text("全参训练？ → --use_liger_kernel true", "full? → --use_liger_kernel true"),
        "full",
    ),
    ("│   ├── ", Text("数据已打包？", "data packed?"), ""),
    (
        "│   │   ├── ",
        Text(
            "否 → --packing true 或 --padding_free true",
            "no → --packing true or --padding_free true",
        ),
        "no-packing",
    ),
    ("│   │   └── ", Text("是 → 继续", "yes → go on"), "packing"),
    ("│   ├── ", Text("多卡训练？", "several GPUs?"), ""),
    ("│   │   ├── ", Text("LoRA → --deepspeed zero2", "LoRA → --deepspeed zero2"), "many-lora"),
    ("│   │   └── ", Text("全参 → --deepspeed zero3", "full → --deepspeed zero3"), "many-full"),
    (
        "│   ├── ",
        Text(
            "GRPO 训练慢？ → --use_vllm true --vllm_mode colocate",
            "GRPO slow? → --use_vllm true --vllm_mode colocate",
        ),
        "grpo",
    ),
    (
        "│   └── ",
        Text("检查 dataloader_num_workers（建议 4~8）", "look at dataloader_num_workers (4 to 8)"),
        "",
    ),
    ("└── ", Text("超长序列（>128K）？", "Very long sequences (>128K)?"), ""),
    (
        "    ├── ",
        Text("启用 --sequence_parallel_size N", "--sequence_parallel_size N"),
        "long",
    ),
    ("    ├── ", Text("配合 --rope_scaling yarn", "with --rope_scaling yarn"), "long"),
    (
        "    └── ",
        Text("--deepspeed zero3_offload + --packing true", "--deepspeed zero3_offload, packing"),
        "long",
    ),
)


def swift_tree(run: Optional[Run], lang: str, recommended: frozenset[str] = frozenset()) -> str:
    """The tree as text; branches that the run stands in end with ``◀``.

    ``recommended``: ids of the items that the audit recommends.
    """
    signs: frozenset[str] = frozenset()
    if run is not None:
        stage = run.value("zero_stage", 0)
        sharded = (isinstance(stage, int) and stage > 0) or not recommended.isdisjoint(_SHARDING)
        signs = _signs(run, sharded)
    return "\n".join(
        f"{branch}{text.say(lang)}{' ◀' if sign in signs else ''}" for branch, text, sign in _TREE
    )


def _signs(run: Run, sharded: bool) -> frozenset[str]:
    signs = set()
    tuning = run.value("tuning")
    if tuning is not None:
        kind = "full" if tuning == "full" else "lora"
        signs.add(kind)
        gpus = run.launcher.world_size or run.hardware.gpus
        if gpus == 1:
            signs.add(f"single-{kind}")
        elif gpus is not None and sharded:
            signs.add(f"many-{kind}")
    attention = run.value("attention")
    if attention is not None:
        signs.add("flash" if attention in _FLASH else "no-flash")
    packed = (run.value("packing"), run.value("padding_free"))
    if True in packed:
        signs.add("packing")
    elif packed == (False, False):
        signs.add("no-packing")
    if run.value("algorithm") == "grpo":
        signs.add("grpo")
    length = run.value("max_length")
    if isinstance(length, int) and length > _LONG:
        signs.add("long")
    return frozenset(signs)
