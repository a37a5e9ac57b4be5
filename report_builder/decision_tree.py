"""The ms-swift decision tree, with the branches of a run marked."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Optional

from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_FLASH = frozenset({"flash_attention_2", "flash_attention_3", "flash_attention_4"})
_LONG = 131_072
# Branches that advise something, and the items of the audit that advise the same.
_ADVISED: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "no-flash": frozenset({"flash-attention-2", "flash-attention-3"}),
        "no-packing": frozenset({"packing", "padding-free"}),
        "unsloth": frozenset({"unsloth", "unsloth-backend"}),
        "liger": frozenset({"liger-kernel"}),
        "many-lora": frozenset({"zero2"}),
        "many-full": frozenset({"zero3"}),
        "grpo": frozenset({"vllm-rollout"}),
        "no-checkpointing": frozenset({"gradient-checkpointing"}),
        "no-logits": frozenset({"logits-to-keep"}),
        "few-workers": frozenset({"dataloader-workers"}),
    }
)

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
        "no-checkpointing",
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
        "no-logits",
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
        "unsloth",
    ),
    (
        "│   ├── ",
        Text(
            "全参或多卡？ → --use_liger_kernel true", "full or many GPUs? → --use_liger_kernel true"
        ),
        "liger",
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
        "few-workers",
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
    """The tree as text; branches that the run stands in, or should take, end with ``◀``.

    ``recommended``: ids of the items that the audit recommends; a branch that advises
    something is marked only where the audit advises it too.
    """
    signs = _signs(run, recommended) if run is not None else frozenset()
    return "\n".join(
        f"{branch}{text.say(lang)}{' ◀' if sign in signs else ''}" for branch, text, sign in _TREE
    )


def _signs(run: Run, recommended: frozenset[str]) -> frozenset[str]:
    signs = {sign for sign, items in _ADVISED.items() if not recommended.isdisjoint(items)}
    tuning = run.value("tuning")
    if tuning is not None:
        signs.add("full" if tuning == "full" else "lora")
    # Which stage to take depends on the tuning; a branch for the other one is not this run's.
    signs.discard("many-lora" if tuning == "full" else "many-full")
    if run.value("attention") in _FLASH:
        signs.add("flash")
    if True in (run.value("packing"), run.value("padding_free")):
        signs.add("packing")
    length = run.value("max_length")
    if isinstance(length, int) and length > _LONG:
        signs.add("long")
    return frozenset(signs)
