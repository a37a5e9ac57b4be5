"""Files that several checks of mistakes show."""

from __future__ import annotations

from flake8_gpu_training.checks.base import (
    Example,
)

PRECISION_TRAINER = """\
from transformers import TrainingArguments

args = TrainingArguments(
    output_dir="out",
    {}
    gradient_checkpointing=True,
)
"""


DEEPSPEED = """\
from transformers import Trainer, TrainingArguments

config = {{
    "train_micro_batch_size_per_gpu": {micro},
    "gradient_accumulation_steps": "auto",
    "fp16": {{"enabled": {fp16}}},
    "bf16": {{"enabled": True}},
    "zero_optimization": {{
        "stage": {stage},
        "overlap_comm": True,
        "offload_param": {{"device": "cpu", "pin_memory": True}},
    }},
}}
args = TrainingArguments(
    output_dir="out", bf16=True, per_device_train_batch_size=2, deepspeed=config
)
Trainer(model=model, args=args, train_dataset=train_dataset).train()
"""


AGREEING = {"micro": '"auto"', "fp16": False, "stage": 3}


ZERO_FILE = """\
{{
    "bf16": {{"enabled": "auto"}},
    "train_batch_size": {},
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "zero_optimization": {{"stage": 2, "overlap_comm": true}}{}
}}
"""


WITH_ZERO_FILE = """\
NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type full \\
    --per_device_train_batch_size 1 --gradient_accumulation_steps 4 \\
    --deepspeed ds_z2.json --dataset data/train.jsonl
"""


def of_zero_file(bad: str, good: str) -> Example:
    return Example("swift", "ds_z2.json", bad, good, (("train.sh", WITH_ZERO_FILE),))


def deepspeed_example(**bad: object) -> Example:
    return Example(
        "hf_trainer",
        "train.py",
        DEEPSPEED.format(**{**AGREEING, **bad}),
        DEEPSPEED.format(**AGREEING),
    )
