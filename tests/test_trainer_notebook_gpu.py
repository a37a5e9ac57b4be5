"""The GPU that a notebook's metadata names, and what a load after training says of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Optional

import pytest

from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.verdicts import judge
from report_builder.scoring import score
from tests.audits_support import audit_named

_COLAB_T4 = {"accelerator": "GPU", "colab": {"gpuType": "T4"}}
_KAGGLE_T4 = {"kaggle": {"accelerator": "nvidiaTeslaT4"}}
_LOAD = 'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-1.7B")'


def _run(
    tmp_path: Path, metadata: dict[str, Any], load: str = _LOAD, behind: Optional[str] = None
) -> Run:
    cells = [
        "from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification",
        "from transformers import Gemma3TextForSequenceClassification, GPT2LMHeadModel\n"
        "from transformers import Trainer, TrainingArguments\n"
        "from peft import PeftModel\nimport torch",
        load,
        'trainer = Trainer(model=model, args=TrainingArguments(output_dir="out"))',
        "trainer.train()",
        *([behind] if behind else []),
    ]
    book = {
        "cells": [
            {"cell_type": "code", "source": [c], "outputs": [], "metadata": {}} for c in cells
        ],
        "metadata": {"kernelspec": {"language": "python"}, **metadata},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (tmp_path / "tune.ipynb").write_text(json.dumps(book, indent=1))
    (run,) = find_runs(Project.open(tmp_path))
    return run


def _items(run: Run) -> dict[str, tuple[str, str]]:
    found = score(audit_named("transformers"), judge(run, all_checks()))
    return {
        item.id: (item.status.value, item.current.en)
        for category in found.categories
        for item in category.items
    }


@pytest.mark.parametrize("metadata", [_COLAB_T4, _KAGGLE_T4, {**_COLAB_T4, **_KAGGLE_T4}])
def test_the_sessions_gpu_is_the_runs(tmp_path: Path, metadata: dict[str, Any]) -> None:
    run = _run(tmp_path, metadata)
    items = _items(run)
    place = run.hardware.location
    assert run.hardware.gpu == "T4"
    assert run.hardware.weak
    assert place is not None
    assert f"notebook metadata, {place}" in items["flash-attention-2"][1]
    for name in ("flash-attention-2", "flash-attention-3", "tf32", "bf16"):
        assert items[name][0] == "not_applicable", name


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"accelerator": "GPU"},
        {"accelerator": "TPU", "colab": {"gpuType": "V28"}},
        {"colab": {"gpuType": "T4"}},
        {"kaggle": {"accelerator": "none"}},
        {"accelerator": "GPU", "colab": {"gpuType": "L4"}, **_KAGGLE_T4},
    ],
)
def test_metadata_that_name_no_gpu_or_two_say_nothing(
    tmp_path: Path, metadata: dict[str, Any]
) -> None:
    run = _run(tmp_path, metadata)
    assert run.hardware.architecture is None
    assert _items(run)["flash-attention-2"][0] != "not_applicable"


@pytest.mark.parametrize(
    "load",
    [
        'model = Gemma3TextForSequenceClassification.from_pretrained("google/gemma-3-1b-it")',
        'model = AutoModelForSequenceClassification.from_pretrained("Qwen/Qwen3-0.6B")',
        'model = GPT2LMHeadModel.from_pretrained("gpt2")',
    ],
)
def test_a_model_with_any_head_is_loaded_in_sight(tmp_path: Path, load: str) -> None:
    status, said = _items(_run(tmp_path, {}, load))["sdpa"]
    assert status in ("enabled", "partial")
    assert "in sight" not in said


def test_what_is_loaded_after_training_leaves_the_precision_alone(tmp_path: Path) -> None:
    behind = 'base = PeftModel.from_pretrained(model, "out", torch_dtype=torch.float16)'
    run = _run(tmp_path, {}, behind=behind)
    assert _items(run)["fp16"][0] != "enabled"
    half = _LOAD.replace('B")', 'B", torch_dtype=torch.float16)')
    assert _items(_run(tmp_path, {}, half))["fp16"][0] == "enabled"


def test_a_later_load_under_the_same_name_does_not_hide_the_first(tmp_path: Path) -> None:
    first = 'model = AutoModelForSequenceClassification.from_pretrained("gpt2")'
    later = 'model = AutoModelForSequenceClassification.from_pretrained("out/best")'
    assert _items(_run(tmp_path, {}, first, later))["sdpa"][0] == "enabled"
