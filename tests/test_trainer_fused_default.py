"""The Trainer's optimizer by default, which the release of PyTorch decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs

_CODE = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-1.7B")
trainer = Trainer(model=model, args=TrainingArguments("out"), train_dataset=data)
trainer.train()
"""
_INDEX = "https://download.pytorch.org/whl"


@pytest.mark.parametrize(
    ("install", "optimizer"),
    [
        ("pip install transformers torch", "adamw_torch_fused"),
        ("pip install transformers 'torch<2.8'", "adamw_torch"),
        (f"pip install torch --index-url {_INDEX}/cu118", "adamw_torch"),
        (f"pip install torch --index-url={_INDEX}/cu124", "adamw_torch"),
        (f"pip install torch --index-url {_INDEX}/cu128", "adamw_torch_fused"),
        (f"pip install torch --extra-index-url {_INDEX}/cu118", "adamw_torch_fused"),
    ],
)
def test_fused_from_torch_2_8_on(tmp_path: Path, install: str, optimizer: str) -> None:
    (tmp_path / "train.py").write_text(_CODE)
    (tmp_path / "setup.sh").write_text(f"{install}\n")
    (run,) = find_runs(Project.open(tmp_path))
    setting = run.practice("optimizer")
    assert setting.value == optimizer
    assert ("torch < 2.8" in setting.note) == (optimizer == "adamw_torch")
