"""The scripts that the examples of GPU6xx vary."""

from __future__ import annotations

_SCRIPT = """\
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gres=gpu:{gpu}:{count}
NPROC_PER_NODE={count} swift sft \\
    --model {model} \\
    --tuner_type {tuning} \\
    --torch_dtype bfloat16 \\
    --attn_impl flash_attn \\
    --use_liger_kernel true \\
    --deepspeed zero3 \\
    --dataset AI-ModelScope/alpaca-gpt4-data-en \\
    --max_length 4096 \\
    --packing true \\
    --dataset_num_proc 8 \\
    --dataloader_num_workers 4 \\
    --dataloader_persistent_workers true \\
    --logging_steps 10 \\
{extra}    --output_dir output
"""


def script(gpu: str, count: int, model: str, tuning: str, extra: str) -> str:
    flags = f"    --{extra} \\\n" if extra else ""
    return _SCRIPT.format(gpu=gpu, count=count, model=model, tuning=tuning, extra=flags)


DISTILL = """\
NPROC_PER_NODE=8 swift rlhf \\
    --rlhf_type gkd \\
    --model Qwen/Qwen2.5-7B-Instruct \\
    --teacher_model Qwen/Qwen2.5-14B-Instruct \\
    --tuner_type full \\
    --torch_dtype bfloat16 \\
    --attn_impl flash_attn \\
    --deepspeed zero3 \\
    --dataset AI-ModelScope/alpaca-gpt4-data-en \\
    --max_length 4096 \\
    --use_vllm true \\
    --vllm_mode colocate \\
    --sleep_level 1 \\
    --dataloader_num_workers 4 \\
{liger}    --output_dir output/gkd
"""

OF_72B = ("h100", 8, "Qwen/Qwen2.5-72B-Instruct")
OF_32B = ("rtx4090", 1, "Qwen/Qwen2.5-32B-Instruct")
WARM = "warmup_ratio 0.05"
