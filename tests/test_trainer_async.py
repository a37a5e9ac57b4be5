"""What TRL's asynchronous trainer fixes by itself, and its synchronous neighbour does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.verdicts import judge
from report_builder.scoring import score
from tests.audits_support import audit_named

_ASYNC = """\
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer
trainer = AsyncGRPOTrainer(
    model="Qwen/Qwen3-1.7B", reward_funcs=[], train_dataset=data, args=AsyncGRPOConfig("out")
)
trainer.train()
"""
_LOADING = ("dataloader-workers", "pin-memory", "persistent-workers")


def _items(tmp_path: Path, code: str, pin: str = "") -> dict[str, tuple[str, str]]:
    (tmp_path / "train.py").write_text(code)
    (tmp_path / "requirements.txt").write_text(pin)
    (run,) = find_runs(Project.open(tmp_path))
    found = score(audit_named("transformers"), judge(run, all_checks()))
    return {
        item.id: (item.status.value, item.current.en)
        for category in found.categories
        for item in category.items
    }


@pytest.mark.parametrize("pin", ["", "trl==1.16.0\n"])
def test_the_asynchronous_trainer_takes_its_own_kernel_and_loader(tmp_path: Path, pin: str) -> None:
    items = _items(tmp_path, _ASYNC, pin)
    assert items["flash-attention-3"][0] == "enabled"
    assert items["flash-attention-2"][0] == items["sdpa"][0] == "disabled"
    assert items["liger-kernel"][0] == "not_applicable"
    for name in _LOADING:
        assert items[name][0] == "not_applicable", name
        assert "its own DataLoader" in items[name][1], name


def test_its_first_release_packs_nothing(tmp_path: Path) -> None:
    items = _items(tmp_path, _ASYNC, "trl==1.0.0\n")
    assert items["flash-attention-3"][0] == "unknown"
    assert items["liger-kernel"][0] != "not_applicable"
    assert items["pin-memory"][0] == "not_applicable"


def test_the_synchronous_trainer_is_told_by_its_arguments(tmp_path: Path) -> None:
    code = _ASYNC.replace("trl.experimental.async_grpo", "trl").replace("Async", "")
    items = _items(tmp_path, code)
    assert items["flash-attention-3"][0] != "enabled"
    assert items["pin-memory"][0] == "enabled"
    assert items["dataloader-workers"][0] != "not_applicable"
