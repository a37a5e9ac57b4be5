"""Lightning's command lines: what the files and flags of LightningCLI and Fabric amount to."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

import pytest

from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import Run, RunKind

MakeRun = Callable[..., Run]

MODULE = """\
import lightning as L
import torch
from torch.utils.data import DataLoader


class Data(L.LightningDataModule):
    def __init__(self, batch_size: int = 8, workers: int = 0):
        super().__init__()
        self.batch_size = batch_size
        self.workers = workers

    def train_dataloader(self):
        return DataLoader(items(), batch_size=self.batch_size, num_workers=self.workers)


class Net(L.LightningModule):
    def training_step(self, batch, index):
        return self.net(batch).sum()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())
"""
MAIN = """\
from lightning.pytorch.cli import LightningCLI
from parts import Data, Net

if __name__ == "__main__":
    LightningCLI({arguments})
"""
CONFIG = """\
trainer: {devices: 2, precision: bf16-mixed, accumulate_grad_batches: 4}
data: {batch_size: 16, workers: 6}
"""
FABRIC = """\
from lightning.fabric import Fabric

fabric = Fabric({arguments})
model, optimizer = fabric.setup(model, optimizer)
for batch in loader:
    fabric.backward(model(batch))
    optimizer.step()
"""


@pytest.fixture
def run_of(tmp_path: Path) -> MakeRun:
    def make(command: str, arguments: str = "Net, Data", **files: str) -> Run:
        texts = {"main.py": MAIN.format(arguments=arguments), "parts.py": MODULE}
        texts.update({f"{name}.yaml": text for name, text in files.items()})
        texts["run.sh"] = f"{command}\n"
        texts["fabric.py"] = FABRIC.format(arguments=arguments) if "fabric" in command else ""
        for name, text in texts.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        runs = [run for run in find_runs(Project.open(tmp_path)) if run.location.path == "run.sh"]
        (run,) = runs
        return run

    return make


def told(run: Run) -> tuple[object, ...]:
    """Precision, accumulation, batch size and workers."""
    names = ("precision", "gradient_accumulation_steps", "micro_batch_size", "dataloader_workers")
    return tuple(run.value(name) for name in names)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("fit --config a.yaml", ("bf16", 4, 16, 6)),
        ("fit --config=a.yaml --trainer.precision=16-mixed --data.workers 2", ("fp16", 4, 16, 2)),
        ("fit --config a.yaml --config b.yaml", ("fp32", 4, 32, 6)),
        ("--config a.yaml fit --data.batch_size=4", ("bf16", 4, 4, 6)),
        ("fit", ("fp32", 1, 8, 0)),
    ],
)
def test_flags_come_before_files_and_later_files_before_earlier(
    run_of: MakeRun, flags: str, expected: tuple[object, ...]
) -> None:
    second = "trainer:\n  precision: 32\ndata:\n  batch_size: 32\n"
    run = run_of(f"python main.py {flags}", a=CONFIG, b=second)
    assert told(run) == expected


def test_the_trainer_starts_the_processes(run_of: MakeRun) -> None:
    run = run_of("python main.py fit --config a.yaml --trainer.num_nodes 3", a=CONFIG)
    assert (run.launcher.processes.value, run.launcher.nodes.value) == (2, 3)
    assert run.value("ddp") is True
    assert "a.yaml" in run.files


def test_classes_may_be_named_in_the_file(run_of: MakeRun) -> None:
    text = "data:\n  class_path: parts.Data\n  init_args: {batch_size: 64, workers: 3}\n"
    run = run_of("python main.py fit -c a.yaml --data.init_args.workers=5", "Net", a=text)
    assert told(run)[2:] == (64, 5)


def test_a_file_may_hold_a_section_for_each_subcommand(run_of: MakeRun) -> None:
    text = "fit:\n  trainer: {precision: bf16-mixed}\ntest:\n  trainer: {precision: 64}\n"
    assert told(run_of("python main.py --config a.yaml fit", a=text))[0] == "bf16"


def test_defaults_in_the_code_are_weaker_than_files(run_of: MakeRun) -> None:
    arguments = (
        'Net, Data, trainer_defaults={"precision": "16-mixed", "accumulate_grad_batches": 2},'
        ' parser_kwargs={"fit": {"default_config_files": ["a.yaml"]}}'
    )
    text = "trainer: {precision: bf16-mixed}\n"
    assert told(run_of("python main.py fit", arguments, a=text))[:2] == ("bf16", 2)


@pytest.mark.parametrize("flags", ["fit --config gone.yaml", 'fit --config "$C"', 'fit "$@"'])
def test_what_is_not_in_sight_is_not_known(run_of: MakeRun, flags: str) -> None:
    run = run_of(f"python main.py {flags}", a=CONFIG)
    assert not run.practice("precision").known


def test_a_subcommand_that_does_not_fit_does_not_train(run_of: MakeRun) -> None:
    run = run_of("python main.py validate --config a.yaml", a=CONFIG)
    assert run.kind is RunKind.INFER


@pytest.mark.parametrize(
    ("arguments", "precision"), [("", "bf16"), ('precision="16-mixed"', "fp16")]
)
def test_fabric_has_the_flags_of_its_launcher(
    run_of: MakeRun, arguments: str, precision: str
) -> None:
    run = run_of("fabric run --devices 2 --precision bf16-mixed fabric.py", arguments)
    assert run.value("precision") == precision
    assert run.launcher.world_size == 2
