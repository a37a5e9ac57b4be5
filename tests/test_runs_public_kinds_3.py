"""Kinds of runs met in public projects whose facts were once told wrongly, and their neighbours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from checks_support import findings

from flake8_gpu_training.facts import Unknown, known
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import Run

MakeRun = Callable[..., Run]


@pytest.fixture
def run_of(tmp_path: Path) -> MakeRun:
    """The one run of a project made of ``files``, or of its launch command."""

    def make(files: dict[str, str], launch: Optional[str] = None) -> Run:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return find_runs(Project.open(tmp_path), launch)[0]

    return make


def _value(run: Run, name: str) -> Any:
    value = run.practice(name).value
    return value if known(value) else "unknown"


# --- a strategy that is an object may set Lightning's precision -------------------------------

STRATEGY = """\
import lightning.pytorch as pl
from lightning.pytorch.strategies import DDPStrategy, DeepSpeedStrategy, FSDPStrategy


class Net(pl.LightningModule):
    def training_step(self, batch, index):
        return self.loss(batch)


def made(args):
    return DeepSpeedStrategy(config=args.config)


trainer = pl.Trainer(devices=2, strategy=STRATEGY)
trainer.fit(Net())
"""


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("'ddp'", "fp32"),
        ("DDPStrategy(find_unused_parameters=False)", "fp32"),
        ("DeepSpeedStrategy(stage=2)", "fp32"),
        ("DeepSpeedStrategy(config='zero.json')", "bf16"),
        ("DeepSpeedStrategy(config=elsewhere.config)", "unknown"),
        ("FSDPStrategy()", "fp32"),
        ("FSDPStrategy(mixed_precision=elsewhere.policy)", "unknown"),
        ("made(elsewhere.args)", "unknown"),
        ("'ddp', precision='16-mixed'", "fp16"),
    ],
)
def test_a_strategy_may_set_the_precision_that_the_trainer_is_not_told(
    run_of: MakeRun, strategy: str, expected: str
) -> None:
    zero = json.dumps({"bf16": {"enabled": True}, "zero_optimization": {"stage": 2}})
    files = {"train.py": STRATEGY.replace("STRATEGY)", f"{strategy})"), "zero.json": zero}
    assert _value(run_of(files, "python train.py"), "precision") == expected


# --- a program whose training was not reached -------------------------------------------------

DISPATCH = """\
import importlib

PACKAGE = "jobs"


def main(task):
    importlib.import_module(f"{PACKAGE}.{task}").run()


main("train")
"""
LOOP = """\
import torch

model = torch.nn.Linear(2, 2).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for batch in loader:
    loss = model(batch).sum()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("text", "world"), [(DISPATCH, None), (LOOP, 1)])
def test_processes_are_left_open_where_no_training_was_reached(
    run_of: MakeRun, text: str, world: Optional[int]
) -> None:
    files = {"main.py": text, "beside.sh": "torchrun --nproc_per_node 4 other.py\n"}
    files["other.py"] = LOOP
    run = run_of(files, "CUDA_VISIBLE_DEVICES=0,1 python main.py")
    assert run.entry == "main.py"
    assert run.launcher.world_size == world


# --- DeepSpeed against the trainer's own arguments --------------------------------------------

ARGUMENTS = """\
import yaml
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

with open("config.yaml") as file:
    config = yaml.safe_load(file)
args = TrainingArguments(output_dir="out", deepspeed="zero.json", **config["run"])
Trainer(model=AutoModelForCausalLM.from_pretrained("gpt2"), args=args).train()
"""


@pytest.mark.parametrize(
    ("theirs", "expected", "count"), [(2, (2, 8), 1), (8, 8, 0), ("auto", 8, 0), (None, 8, 0)]
)
def test_deepspeed_and_trainer_that_disagree_leave_both_candidates(
    run_of: MakeRun, theirs: Any, expected: Any, count: int
) -> None:
    zero: dict[str, Any] = {"zero_optimization": {"stage": 2}}
    if theirs is not None:
        zero["gradient_accumulation_steps"] = theirs
    config = "run:\n  gradient_accumulation_steps: 8\n"
    files = {"train.py": ARGUMENTS, "zero.json": json.dumps(zero), "config.yaml": config}
    run = run_of(files, "deepspeed --num_gpus 2 train.py")
    value = run.practice("gradient_accumulation_steps").value
    assert (value.candidates if isinstance(value, Unknown) else value) == expected
    assert len(findings((run,), "GPU013")) == count
