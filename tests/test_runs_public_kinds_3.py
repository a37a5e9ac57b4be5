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


# --- what a module does as a script of its own ------------------------------------------------

WITH_DATA = """\
import torch
from torch.utils.data import DataLoader

from data import Pairs

model = torch.nn.Linear(2, 2).cuda()
optimizer = torch.optim.AdamW(model.parameters())
train_loader = DataLoader(Pairs(), batch_size=24, collate_fn=Pairs.collate)
for batch in train_loader:
    loss = model(batch).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
OWN_SCRIPT = """\
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    collate = None


GUARD
    train_loader = DataLoader(Pairs(), batch_size=1, collate_fn=Pairs.collate)
    print(next(iter(train_loader)))
"""


@pytest.mark.parametrize(
    ("guard", "launch", "expected"),
    [
        ('if __name__ == "__main__":', "python train.py", 24),
        ("if True:", "python train.py", "unknown"),
    ],
)
def test_what_a_module_does_as_a_script_is_no_part_of_another_run(
    run_of: MakeRun, guard: str, launch: str, expected: Any
) -> None:
    files = {"train.py": WITH_DATA, "data.py": OWN_SCRIPT.replace("GUARD", guard)}
    assert _value(run_of(files, launch), "micro_batch_size") == expected


# --- code that only names DeepSpeed -----------------------------------------------------------

NAMING = """\
IMPORT
from accelerate import Accelerator
from accelerate.utils import DistributedType

accelerator = Accelerator(ARGUMENTS)
if accelerator.distributed_type == DistributedType.DEEPSPEED:
    print("deepspeed saves by itself")
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for batch in loader:
    loss = model(batch).sum()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("imported", "arguments", "launch", "expected"),
    [
        ("import torch", "", "python train.py", 0),
        ("import torch", "mixed_precision='bf16'", "torchrun --nproc_per_node 2 train.py", 0),
        ("import torch", "", "accelerate launch train.py", "unknown"),
        ("import torch", "", "ACCELERATE_USE_DEEPSPEED=true python train.py", "unknown"),
        ("import torch", "deepspeed_plugin=plugin()", "python train.py", "unknown"),
        ("import torch", "**options", "python train.py", "unknown"),
        ("import deepspeed", "", "python train.py", "unknown"),
        ("import importlib\nimportlib.import_module(NAME)", "", "python train.py", "unknown"),
    ],
)
def test_the_word_deepspeed_alone_shards_nothing(
    run_of: MakeRun, imported: str, arguments: str, launch: str, expected: Any
) -> None:
    text = NAMING.replace("IMPORT", imported).replace("ARGUMENTS", arguments)
    assert _value(run_of({"train.py": text}, launch), "zero_stage") == expected


# --- precision that is measured, and precision of numbers -------------------------------------

MEASURING = """\
import torch

from metrics import scores

model = build().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for batch in loader:
    loss = model(batch).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
scores(model)
"""
SCORES = """\
def scores(model):
    precision, recall = model.hits / model.told, model.hits / model.there
    return {"precision": precision, "recall": recall}
"""


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", "fp32"),
        ("make(precision=16)\n", "unknown"),
        ("make(mixed_precision=args.mixed_precision)\n", "unknown"),
        ("parser.add_argument('--precision')\n", "unknown"),
        ("make(cfg.trainer.precision)\n", "unknown"),
        ("model = model.to(torch.float64)\n", "unknown"),
        ("net.double()\n", "unknown"),
        ("count = count.to(torch.float64)\n", "fp32"),
    ],
)
def test_a_measured_precision_is_none_of_numbers(run_of: MakeRun, more: str, expected: str) -> None:
    files = {"train.py": MEASURING, "metrics.py": f"import torch\n\n{more}\n{SCORES}"}
    assert _value(run_of(files, "python train.py"), "precision") == expected
