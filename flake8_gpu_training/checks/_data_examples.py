"""The small programs and scripts that the examples of GPU5xx vary."""

from __future__ import annotations

from flake8_gpu_training.checks.base import Example

LOADER = """\
import torch
from torch.utils.data import DataLoader


def train(model, dataset, optimizer, epochs):
    loader = DataLoader(dataset, batch_size=32, shuffle=True{arguments})
    model = torch.compile(model.cuda())
    for epoch in range(epochs):
        for images, labels in loader:
            images = images.cuda(non_blocking=True)
            labels = labels.cuda(non_blocking=True)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""


def loader_example(bad: str, good: str) -> Example:
    return Example(
        "generic",
        "train.py",
        LOADER.replace("{arguments}", bad),
        LOADER.replace("{arguments}", good),
    )


_SWIFT = """\
swift sft \\
    --model Qwen/Qwen2.5-7B-Instruct \\
    --tuner_type lora \\
    --torch_dtype bfloat16 \\
    --attn_impl flash_attn \\
    --use_liger_kernel true \\
    --dataset AI-ModelScope/alpaca-gpt4-data-en \\
    --max_length 4096 \\
    --packing true \\
    --dataset_num_proc 8 \\
    --dataloader_num_workers 4 \\
    --dataloader_persistent_workers true \\
    --logging_steps 10 \\
    --warmup_ratio 0.05 \\
    --output_dir output/lora
"""


def _swift_example(good: str, bad: str) -> Example:
    """The script with ``good`` in it replaced by ``bad``."""
    return Example("swift", "train.sh", _SWIFT.replace(good, bad), _SWIFT)


def swift_lacks(flag: str) -> Example:
    return _swift_example(f"    --{flag} \\\n", "")


LLAMAFACTORY = """\
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: lora
lora_target: all
dataset: alpaca_en_demo
template: qwen
cutoff_len: 4096
bf16: true
flash_attn: fa2
enable_liger_kernel: true
packing: true
neat_packing: true
preprocessing_num_workers: 16
dataloader_num_workers: 4
dataloader_persistent_workers: true
output_dir: saves/lora
logging_steps: 10
save_steps: 500
warmup_ratio: 0.1
lr_scheduler_type: cosine
"""


def llamafactory_lacks(*names: str) -> Example:
    kept = [line for line in LLAMAFACTORY.splitlines() if not line.startswith(names)]
    return Example("llamafactory", "train.yaml", "\n".join(kept) + "\n", LLAMAFACTORY)


_TRAINER = """\
from trl import SFTConfig, SFTTrainer


def train(dataset):
    arguments = SFTConfig(
        "output",
        bf16=True,
        model_init_kwargs={"attn_implementation": "flash_attention_2"},
        packing=True,
        dataset_num_proc=8,
        dataloader_num_workers=4,
        dataloader_persistent_workers=True,
        use_liger_kernel=True,
        warmup_steps=100,
    )
    SFTTrainer("Qwen/Qwen2.5-7B", args=arguments, train_dataset=dataset).train()
"""


def trainer_lacks(*arguments: str) -> Example:
    bad = _TRAINER
    for argument in arguments:
        bad = bad.replace(f"        {argument},\n", "")
    return Example("hf_trainer", "train.py", bad, _TRAINER)


ALL_ON = ", num_workers=4, pin_memory=True, persistent_workers=True"
