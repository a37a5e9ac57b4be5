"""What a run ends with when its program changes its arguments, in branches and elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

import pytest
from checks_support import judged

from flake8_gpu_training.facts import Unknown
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import Run

MakeRun = Callable[..., Run]

HEAD = """\
import os
import torch
from dataclasses import dataclass, field, replace
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("org/model", torch_dtype=torch.bfloat16)
args = TrainingArguments("out", per_device_train_batch_size=4, bf16=True)
"""
TAIL = "\nTrainer(model=model, args=args).train()\n"


@pytest.fixture
def run_of(tmp_path: Path) -> MakeRun:
    """The run of a script, started with torchrun on ``processes`` ranks."""

    def make(text: str, processes: int = 2, name: str = "train.py", flags: str = "") -> Run:
        (tmp_path / name).write_text(text, encoding="utf-8")
        if name.endswith(".py"):
            command = f"torchrun --nproc_per_node {processes} {name} {flags}\n"
            (tmp_path / "run.sh").write_text(command, encoding="utf-8")
        return find_runs(Project.open(tmp_path))[0]

    return make


def _setting(run: Run, name: str) -> Any:
    """The value of a setting; its candidates in a set when it is not known."""
    value = run.settings[name].value if name in run.settings else None
    return set(value.candidates) if isinstance(value, Unknown) else value


def _candidates(value: Any) -> Any:
    return set(value.candidates) if isinstance(value, Unknown) else value


# --- branches --------------------------------------------------------------------------------


@pytest.mark.parametrize(("processes", "batch", "liger"), [(8, 1, None), (2, 4, True)])
def test_the_number_of_ranks_decides_which_assignments_are_made(
    run_of: MakeRun, processes: int, batch: int, liger: Any
) -> None:
    changes = """\
if int(os.environ["WORLD_SIZE"]) > 4:
    args.per_device_train_batch_size = 1
else:
    args.use_liger_kernel = True
"""
    run = run_of(HEAD + changes + TAIL, processes)
    assert _setting(run, "per_device_train_batch_size") == batch
    assert _setting(run, "use_liger_kernel") is liger


@pytest.mark.parametrize(
    "test",
    [
        "torch.cuda.device_count() > 64",
        "torch.cuda.get_device_capability()[0] >= 9",
        'os.path.exists("/data/fast")',
        "torch.cuda.get_device_properties(0).total_memory < 50e9",
    ],
)
def test_a_branch_that_only_the_machine_decides_leaves_both_values(
    run_of: MakeRun, test: str
) -> None:
    changes = f"if {test}:\n    args.per_device_train_batch_size = 1\n"
    run = run_of(HEAD + changes + TAIL)
    assert _setting(run, "per_device_train_batch_size") == {4, 1}
    assert _candidates(run.practice("micro_batch_size").value) == {4, 1}


def test_an_assignment_behind_an_import_that_may_fail_is_not_certain(run_of: MakeRun) -> None:
    changes = """\
try:
    import liger_kernel
    args.use_liger_kernel = True
except ImportError:
    pass
"""
    assert _setting(run_of(HEAD + changes + TAIL), "use_liger_kernel") == {True}


def test_a_fallback_for_a_missing_package_leaves_both_values(run_of: MakeRun) -> None:
    changes = """\
try:
    import flash_attn
    workers = 8
except ImportError:
    workers = 2
args.dataloader_num_workers = workers
"""
    assert _setting(run_of(HEAD + changes + TAIL), "dataloader_num_workers") == {8, 2}


def test_a_branch_that_is_never_taken_changes_nothing(run_of: MakeRun) -> None:
    changes = "if False:\n    args.gradient_accumulation_steps = 32\n"
    assert _setting(run_of(HEAD + changes + TAIL), "gradient_accumulation_steps") is None


# --- other changes ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        'setattr(args, "gradient_checkpointing", True)',
        "def tweak(a):\n    a.gradient_checkpointing = True\n    return a\nargs = tweak(args)",
        "args = replace(args, gradient_checkpointing=True)",
        'for name in ["gradient_checkpointing"]:\n    setattr(args, name, True)',
        "args.set_training(gradient_checkpointing=True)",
    ],
)
def test_changes_of_the_arguments_are_followed(run_of: MakeRun, change: str) -> None:
    run = run_of(f"{HEAD}{change}{TAIL}")
    assert run.practice("gradient_checkpointing").value is True


def test_a_setter_of_the_arguments_leaves_open_what_it_is_not_given(run_of: MakeRun) -> None:
    run = run_of(f"{HEAD}args.set_dataloader(train_batch_size=13, num_workers=5){TAIL}")
    assert run.practice("micro_batch_size").value == 13
    assert run.practice("dataloader_workers").value == 5
    assert isinstance(run.settings["dataloader_pin_memory"].value, Unknown)


def test_a_value_that_is_combined_with_the_old_one_is_not_the_old_one(run_of: MakeRun) -> None:
    run = run_of(f"{HEAD}args.bf16 &= False{TAIL}")
    assert run.settings["bf16"].value is not True


SUBCLASS = """\
from dataclasses import dataclass
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments


@dataclass
class Arguments(TrainingArguments):
    gradient_checkpointing: bool = True

    def __post_init__(self):
        super().__post_init__()
        self.gradient_checkpointing = False
        self.per_device_train_batch_size = 16


(args,) = HfArgumentParser(Arguments).parse_args_into_dataclasses()
args.dataloader_num_workers = 8
model = AutoModelForCausalLM.from_pretrained("org/model")
"""


def test_what_an_arguments_class_sets_in_the_end_wins_over_flags(run_of: MakeRun) -> None:
    run = run_of(SUBCLASS + TAIL, flags="--output_dir out --per_device_train_batch_size 2")
    assert _setting(run, "gradient_checkpointing") is False
    assert _setting(run, "per_device_train_batch_size") == 16
    assert _setting(run, "dataloader_num_workers") == 8


def test_a_notebook_on_one_line_is_read_in_the_order_of_its_cells(run_of: MakeRun) -> None:
    cells = [HEAD, "args.per_device_train_batch_size = 6" + TAIL]
    notebook = {
        "cells": [{"cell_type": "code", "source": cell, "metadata": {}} for cell in cells],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    run = run_of(json.dumps(notebook), name="train.ipynb")
    assert _setting(run, "per_device_train_batch_size") == 6


# --- code that the run does not come to --------------------------------------------------------

UNUSED = """\
import torch
from transformers import AutoModelForCausalLM
from helpers import log


def old_train(model, loader):
    model = torch.compile(model)
    for batch in loader:
        with torch.autocast("cuda", torch.float16):
            loss = model(**batch).loss
        loss.backward()


class OldNet(torch.nn.Module):
    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.inner, x)


def train():
    model = AutoModelForCausalLM.from_pretrained("org/model", torch_dtype=torch.bfloat16).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for batch in torch.utils.data.DataLoader(open("f"), batch_size=4, num_workers=4):
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        log(loss)


{start}
"""
HELPERS = """\
import torch


def log(loss):
    print(loss)


def unused(model):
    torch.cuda.empty_cache()
    return torch.compile(model)
"""


def test_functions_and_classes_that_nothing_mentions_are_no_evidence(
    run_of: MakeRun, tmp_path: Path
) -> None:
    (tmp_path / "helpers.py").write_text(HELPERS, encoding="utf-8")
    run = run_of(UNUSED.format(start="train()"))
    assert run.practice("torch_compile").value is not True
    assert run.practice("gradient_checkpointing").value is not True
    assert run.practice("precision").value == "pure-bf16"
    calls = {call.method for file in run.python for call in file.calls}
    assert "AdamW" in calls
    assert not calls & {"compile", "empty_cache", "autocast", "checkpoint"}


@pytest.mark.parametrize(
    "start",
    [
        "old_train(None, [])",
        "START = {'old': old_train, 'new': train}\nSTART['new']()",
        "globals()['train']()",
        "train()\nif __name__ == '__main__':\n    old_train(None, [])",
        "train()\nprint(getattr(torch, 'old_train'))",
    ],
)
def test_a_function_that_may_be_called_by_its_name_counts(
    run_of: MakeRun, tmp_path: Path, start: str
) -> None:
    (tmp_path / "helpers.py").write_text(HELPERS, encoding="utf-8")
    run = run_of(UNUSED.format(start=start))
    assert "autocast" in {call.method for file in run.python for call in file.calls}


def test_methods_that_a_library_may_call_count_and_others_must_be_mentioned(
    run_of: MakeRun,
) -> None:
    text = """\
import torch


class Old:
    def compiled(self, model):
        return torch.compile(model)

    def train(self):
        model = Net().cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        for batch in torch.utils.data.DataLoader(open("f"), batch_size=4):
            model(batch).sum().backward()
            optimizer.step()


class Net(torch.nn.Module):
    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.inner, x, use_reentrant=False)


Old().train()
"""
    calls = {call.method for file in run_of(text).python for call in file.calls}
    assert "checkpoint" in calls
    assert "compile" not in calls


# --- trainers of the project -------------------------------------------------------------------

OVERRIDES = """\
class Own(Trainer):
    def create_optimizer(self):
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        return self.optimizer

    def get_train_dataloader(self):
        return torch.utils.data.DataLoader(
            self.train_dataset, batch_size=32, num_workers=0, pin_memory=True
        )


Own(model, args).train()
"""


def test_what_a_trainer_of_the_project_overrides_is_not_what_the_arguments_say(
    run_of: MakeRun,
) -> None:
    run = run_of(HEAD + OVERRIDES)
    assert _candidates(run.practice("micro_batch_size").value) == {32}
    assert _candidates(run.practice("dataloader_workers").value) == {0}
    assert _candidates(run.practice("pin_memory").value) == {True}
    assert _candidates(run.practice("optimizer").value) == {"sgd"}
    messages = [finding.message for finding in judged(run, "GPU501").findings]
    assert messages
    assert not any("dataloader_num_workers" in message for message in messages)


def test_an_override_that_keeps_to_the_arguments_changes_nothing(run_of: MakeRun) -> None:
    text = """\
class Own(Trainer):
    def get_train_dataloader(self):
        return torch.utils.data.DataLoader(
            self.train_dataset,
            batch_size=self._train_batch_size,
            num_workers=self.args.dataloader_num_workers,
        )

    def create_optimizer(self):
        return super().create_optimizer()


Own(model, args).train()
"""
    run = run_of(HEAD + text)
    assert run.practice("micro_batch_size").value == 4
    assert run.practice("dataloader_workers").value == 0
    assert isinstance(run.practice("optimizer").value, str)


# --- calls in branches -------------------------------------------------------------------------


def test_recomputation_that_a_branch_turns_on_is_not_certain(run_of: MakeRun) -> None:
    change = """\
if torch.cuda.get_device_properties(0).total_memory < 50e9:
    model.gradient_checkpointing_enable()
"""
    run = run_of(HEAD + change + TAIL)
    assert _candidates(run.practice("gradient_checkpointing").value) == {True}


def test_a_kernel_of_a_package_that_may_be_missing_is_not_certain(run_of: MakeRun) -> None:
    text = """\
import torch

try:
    from flash_attn import flash_attn_func

    HAS = True
except ImportError:
    HAS = False


class Block(torch.nn.Module):
    def forward(self, q, k, v):
        if HAS:
            return flash_attn_func(q, k, v)
        return torch.softmax(q @ k.transpose(-1, -2), -1) @ v


net = Block().cuda()
optimizer = torch.optim.AdamW(net.parameters())
for batch in torch.utils.data.DataLoader(open("f"), batch_size=4):
    net(*batch).sum().backward()
    optimizer.step()
"""
    run = run_of(text)
    assert _candidates(run.practice("attention").value) == {"flash_attention_2"}
