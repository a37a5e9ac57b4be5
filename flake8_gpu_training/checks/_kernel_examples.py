"""Programs and scripts from which the examples of attention and kernels are made."""

from __future__ import annotations

LOAD = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained({})
args = TrainingArguments(
    output_dir="out",
    bf16=True,
    gradient_checkpointing=True,
{}    dataloader_num_workers=4,
)
Trainer(model=model, args=args, train_dataset=train_dataset).train()
"""
MODEL = '"Qwen/Qwen2.5-7B-Instruct"'
FLASH_MODEL = f'{MODEL}, attn_implementation="flash_attention_2"'
LIGER_LINE = "    use_liger_kernel=True,\n"

SCRIPT = (
    "NPROC_PER_NODE=8 swift sft \\\n    --model Qwen/Qwen2.5-7B-Instruct \\\n"
    "    --tuner_type full \\\n    --deepspeed zero3 \\\n{}"
    "    --max_length 8192 \\\n    --dataset data/train.jsonl\n"
)
FLASH_FLAG = "    --attn_impl flash_attn \\\n"
LIGER_FLAG = "    --use_liger_kernel true \\\n"
