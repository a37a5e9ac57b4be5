"""Flash attention where the program or the framework decides by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import runs_of, status

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
