"""What vLLM's audit says where the model is a placeholder, and of methods that take a plugin."""

from __future__ import annotations

from pathlib import Path

import pytest
from audits_support import audit_named, items_of
from checks_support import runs_of

from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.verdicts import judge
from report_builder.scoring import ScoredItem, score


def of(root: Path, command: str, pin: str = "") -> dict[str, ScoredItem]:
    files = {"serve.sh": f"{command}\n"}
    if pin:
        files["requirements.txt"] = f"vllm=={pin}\n"
    (run,) = runs_of(root, files)
    return items_of(score(audit_named("vllm"), judge(run, all_checks())))


@pytest.mark.parametrize(
    ("item", "flags", "pin", "status"),
    [
        ("bitsandbytes", "", "", "disabled"),
        ("gguf", "", "", "disabled"),
        ("bitsandbytes", "", "0.19.1", "unknown"),
        ("gguf", "", "0.19.1", "unknown"),
        ("awq", "", "", "unknown"),
        ("bitsandbytes", "--quantization bitsandbytes", "0.19.1", "enabled"),
        ("expert-parallel", "", "", "disabled"),
        ("expert-parallel", "--tensor-parallel-size 8", "", "disabled"),
        ("expert-parallel", "--data-parallel-size 8", "", "unknown"),
        ("expert-parallel", "--enable-expert-parallel", "", "enabled"),
        ("multimodal-limits", "", "", "disabled"),
        ("multimodal-limits", "--limit-mm-per-prompt.image 2", "", "enabled"),
        ("mla-backend", "", "", "unknown"),
    ],
)
def test_of_an_unnamed_model_what_is_off_by_default_is_off(tmp_path, item, flags, pin, status):
    command = f"vllm serve $MODEL --tensor-parallel-size 2 {flags}"
    found = of(tmp_path, command, pin)[item]
    assert found.status.value == status, found.current.en


@pytest.mark.parametrize(
    ("pin", "plugin"), [("", "vllm-bnb-plugin"), ("0.19.1", "FP8 or bitsandbytes on loading")]
)
def test_bitsandbytes_is_offered_with_the_plugin_that_it_takes(tmp_path, pin, plugin):
    items = of(tmp_path, "vllm serve Qwen/Qwen2.5-7B-Instruct", pin)
    assert items["bitsandbytes"].status.value == "disabled"
    assert plugin in items["bitsandbytes"].current.en
    assert ("bitsandbytes" in items["awq"].current.en) is bool(pin)


@pytest.mark.parametrize(
    ("model", "status"),
    [("Qwen/Qwen3Guard-Gen-0.6B", "not_applicable"), ("Qwen/Qwen3-Next-80B-A3B", "recommended")],
)
def test_mtp_takes_layers_of_the_model(tmp_path, model, status):
    assert of(tmp_path, f"vllm serve {model}")["mtp"].status.value == status
