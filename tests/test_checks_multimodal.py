"""Multimodal checks: not applicable to text models, judged for the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import hand_made, judged, runs_alone, runs_of, status

from flake8_gpu_training.checks.base import Status
from flake8_gpu_training.runs.model import Model, Run

VISION = Model("Qwen/Qwen2.5-VL-7B-Instruct", "MLLM", 8_292_166_656, is_hf_family=True)
CODES = ("GPU701", "GPU702", "GPU703")


def swift(root: Path, flags: str = "", lead: str = "") -> Run:
    text = (
        f"{lead}swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --torch_dtype bfloat16 "
        f"--dataset data.jsonl {flags}\n"
    )
    (run,) = runs_of(root, {"train.sh": text})
    return run


@pytest.mark.parametrize("code", CODES)
def test_text_models_have_no_vision(code: str) -> None:
    assert status(hand_made(), code) is Status.NOT_APPLICABLE


def test_ms_swift_freezes_the_vision_tower_by_default(tmp_path: Path) -> None:
    assert status(swift(tmp_path), "GPU701") is Status.ENABLED
    assert status(swift(tmp_path, "--freeze_vit false"), "GPU701") is Status.DISABLED


def test_an_unbounded_resolution_is_reported(tmp_path: Path) -> None:
    (found,) = judged(swift(tmp_path), "GPU702").findings
    assert "--max_pixels 1003520" in found.message


@pytest.mark.parametrize(
    ("flags", "lead"), [("--max_pixels 602112", ""), ("", "MAX_PIXELS=1003520 ")]
)
def test_a_bound_by_flag_or_environment_counts(tmp_path: Path, flags: str, lead: str) -> None:
    assert status(swift(tmp_path, flags, lead), "GPU702") is Status.ENABLED


def test_llamafactory_bounds_images_by_default() -> None:
    run = hand_made("llamafactory", model=VISION)
    assert status(run, "GPU702") is Status.ENABLED


def test_token_pruning_is_optional() -> None:
    assert status(hand_made(model=VISION), "GPU703") is Status.DISABLED


def test_a_vision_tower_frozen_in_code_counts() -> None:
    text = """
import torch
from transformers import AutoModelForVision2Seq
model = AutoModelForVision2Seq.from_pretrained("Qwen/Qwen2.5-VL-7B-Instruct")
model.visual.requires_grad_(False)
for batch in train_loader:
    loss = model(**batch.to("cuda")).loss
    loss.backward()
    optimizer.step()
"""
    (run,) = runs_alone(text)
    assert run.model.kind == "MLLM"
    assert status(run, "GPU701") is Status.ENABLED
