"""Flash attention where the program or the framework decides by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import pytest
from checks_support import findings, judged, runs_of, status

from flake8_gpu_training.checks.base import Status

MODEL = """\
import torch
import torch.nn.functional as F

class Attention(torch.nn.Module):
    def forward(self, q, k, v, mask=None):
        return F.scaled_dot_product_attention(q, k, v, {arguments})

def main(loader):
    model = torch.nn.Sequential(Attention()).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in loader:
        loss = model(batch.cuda()).mean()
        loss.backward()
        optimizer.step()

if __name__ == "__main__":
    main(range(3))
"""
RECIPE = """\
model_name_or_path: {model}
stage: sft
finetuning_type: lora
dataset: alpaca
template: default
cutoff_len: 8192
output_dir: out
"""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("is_causal=True", Status.ENABLED),
        ("attn_mask=None, is_causal=True", Status.ENABLED),
        ("attn_mask=mask", Status.DISABLED),
        ("mask", Status.DISABLED),
    ],
)
def test_the_flash_kernel_of_sdpa_serves_what_passes_no_mask(
    tmp_path: Path, arguments: str, expected: Status
) -> None:
    (run,) = runs_of(tmp_path, {"train.py": MODEL.format(arguments=arguments)})
    assert status(run, "GPU301") is expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", Status.PARTIAL),
        ("google/gemma-2-9b-it", Status.UNKNOWN),
        ("openai/gpt-oss-20b", Status.UNKNOWN),
    ],
)
def test_auto_of_llamafactory_is_sdpa_but_for_what_it_chooses_itself(
    tmp_path: Path, model: str, expected: Status
) -> None:
    files = {
        "recipe.yaml": RECIPE.format(model=model),
        "run.sh": "llamafactory-cli train recipe.yaml\n",
    }
    (run,) = runs_of(tmp_path, files)
    assert status(run, "GPU301") is expected


@pytest.mark.parametrize(
    ("size", "expected"), [(1, Status.ENABLED), (4, Status.PARTIAL)], ids=["alone", "padded"]
)
def test_what_is_left_to_choose_itself_is_on_where_sdpa_will_do(
    size: int, expected: Status, tmp_path: Path
) -> None:
    conf = (
        "model_name_or_path: Qwen/Qwen3.5-9B\nstage: sft\ndo_train: true\n"
        "finetuning_type: lora\ndataset: d\ntemplate: qwen3_5\nflash_attn: auto\nbf16: true\n"
        f"per_device_train_batch_size: {size}\ncutoff_len: 2048\noutput_dir: out\n"
    )
    files = {"conf.yaml": conf, "run.sh": "llamafactory-cli train conf.yaml\n"}
    run = next(run for run in runs_of(tmp_path, files) if run.primary)
    assert judged(run, "GPU301").status is expected
    if expected is Status.ENABLED:
        assert judged(run, "GPU301").variant == "auto"


def test_what_code_chooses_is_told_as_code(tmp_path: Path) -> None:
    source = (
        "from dataclasses import dataclass, field\n"
        "from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer\n"
        "from transformers import TrainingArguments\n\n"
        "args = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()[0]\n"
        'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", '
        'attn_implementation="eager", **more)\n'
        "Trainer(model=model, args=args, train_dataset=data).train()\n"
    )
    files = {"train.py": source, "run.sh": "python train.py --output_dir out --bf16 true\n"}
    (found,) = findings(runs_of(tmp_path, files), "GPU301")
    assert found.message.startswith('set attn_implementation="flash_attention_2": ')


@pytest.mark.parametrize(("length", "gain"), [(512, (10, 30)), (4096, None)])
def test_short_samples_gain_less_by_the_kernel(
    tmp_path: Path, length: int, gain: Optional[tuple[int, int]]
) -> None:
    script = (
        "swift sft --model Qwen/Qwen2.5-0.5B-Instruct --dataset a.jsonl --attn_impl eager "
        f"--max_length {length} --packing true\n"
    )
    (run,) = runs_of(tmp_path, {"train.sh": script})
    judgement = judged(run, "GPU301")
    assert (judgement.impact.throughput if judgement.impact is not None else None) == gain
