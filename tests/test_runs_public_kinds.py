"""Kinds of wiring met in public projects: what a run ends with when its code has choices."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Optional

import pytest

from flake8_gpu_training.facts import Unknown, known
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.branches import holds
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


# --- branches --------------------------------------------------------------------------------

SWITCHED = """\
from dataclasses import dataclass, field

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments


@dataclass
class Extra(TrainingArguments):
    lora_enable: bool = field(default=False)


def train():
    parser = HfArgumentParser(Extra)
    (training_args,) = parser.parse_args_into_dataclasses()
    model = AutoModelForCausalLM.from_pretrained("org/model", attn_implementation="sdpa")
    if training_args.lora_enable:
        model = get_peft_model(model, LoraConfig(r=8))
    Trainer(model=model, args=training_args).train()


train()
"""


@pytest.mark.parametrize(
    ("flags", "tuning"),
    [("", "full"), ("--lora_enable True", "lora"), ("--lora_enable False", "full")],
)
def test_an_adapter_behind_a_switch_counts_when_the_switch_is_on(
    run_of: MakeRun, flags: str, tuning: str
) -> None:
    run = run_of({"train.py": SWITCHED, "run.sh": f"torchrun train.py --bf16 True {flags}\n"})
    assert _value(run, "tuning") == tuning


def test_an_adapter_behind_an_unknown_switch_leaves_the_tuning_open(run_of: MakeRun) -> None:
    run = run_of({"train.py": SWITCHED, "run.sh": "torchrun train.py --lora_enable $LORA\n"})
    value = run.practice("tuning").value
    assert isinstance(value, Unknown) and value.candidates == ("lora",)


EITHER_WAY = """\
import argparse, os
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--resume_from", default=None)
args = parser.parse_args()
checkpoint = latest(args.resume_from)
model = AutoModelForCausalLM.from_pretrained("org/model")
if checkpoint is not None:
    model = PeftModel.from_pretrained(model, checkpoint, is_trainable=True)
else:
    model = get_peft_model(model, LoraConfig(r=8))
Trainer(model=model, args=TrainingArguments("out")).train()
"""


def test_an_adapter_in_both_branches_is_one_in_any_case(run_of: MakeRun) -> None:
    run = run_of({"train.py": EITHER_WAY, "run.sh": "python train.py\n"})
    assert _value(run, "tuning") == "lora"


FROZEN = """\
import argparse
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--tune_projector", action="store_true")
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained("org/model")
if args.tune_projector:
    model.requires_grad_(False)
    for p in model.projector.parameters():
        p.requires_grad = True
Trainer(model=model, args=TrainingArguments("out")).train()
"""


@pytest.mark.parametrize(("flag", "tuning"), [("", "full"), (" --tune_projector", "freeze")])
def test_a_model_frozen_as_a_whole_is_no_full_tuning(
    run_of: MakeRun, flag: str, tuning: str
) -> None:
    run = run_of({"train.py": FROZEN, "run.sh": f"python train.py{flag}\n"})
    assert _value(run, "tuning") == tuning


PATCHED = """\
import argparse
import transformers
from kernels import fast_forward
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


def replace_attn():
    transformers.models.llama.modeling_llama.LlamaAttention.forward = fast_forward


parser = argparse.ArgumentParser()
parser.add_argument("--fast", action="store_true")
args = parser.parse_args()
if args.fast:
    replace_attn()
model = AutoModelForCausalLM.from_pretrained("org/model")
Trainer(model=model, args=TrainingArguments("out")).train()
"""


@pytest.mark.parametrize(("flag", "attention"), [("", "eager"), (" --fast", "unknown")])
def test_a_replaced_forward_leaves_the_attention_open(
    run_of: MakeRun, flag: str, attention: str
) -> None:
    files = {"train.py": PATCHED, "run.sh": f"python train.py{flag}\n"}
    run = run_of({**files, "requirements.txt": "transformers==4.28.0\n"})
    assert _value(run, "attention") == attention


def test_an_attention_set_in_a_branch_that_is_not_taken_is_none(run_of: MakeRun) -> None:
    code = PATCHED.replace("    replace_attn()", '    config._attn_implementation = "eager"')
    run = run_of({"train.py": code, "run.sh": "python train.py\n"})
    assert _value(run, "attention") == "sdpa"


def test_models_for_conditional_generation_are_models(run_of: MakeRun) -> None:
    code = SWITCHED.replace("AutoModelForCausalLM", "MllamaForConditionalGeneration")
    run = run_of({"train.py": code, "run.sh": "torchrun train.py\n"})
    assert _value(run, "attention") == "sdpa"


def test_code_behind_an_early_return_is_reached_by_the_others(run_of: MakeRun) -> None:
    code = """\
import argparse
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


def adapted(model, rank):
    if rank == 0:
        return model
    return get_peft_model(model, LoraConfig(r=rank))


parser = argparse.ArgumentParser()
parser.add_argument("--rank", type=int, default=0)
args = parser.parse_args()
model = adapted(AutoModelForCausalLM.from_pretrained("org/model"), args.rank)
Trainer(model=model, args=TrainingArguments("out")).train()
"""
    assert _value(run_of({"train.py": code, "run.sh": "python train.py\n"}), "tuning") == "full"
    run = run_of({"train.py": code, "run.sh": "python train.py --rank 8\n"})
    assert _value(run, "tuning") == "lora"


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("args.on", True),
        ("not args.on", False),
        ("args.unseen", None),
        ("args.on and args.unseen", None),
        ("args.off and args.unseen", False),
        ("args.unseen or args.on", True),
        ("args.name == 'b'", False),
        ("args.name in ('a', 'b')", True),
        ("args.name.lower() != 'a'", False),
        ("args.rank > 0", True),
        ("0 < args.rank < 4", False),
        ("args.missing is None", True),
        ("getattr(args, 'on', False)", True),
        ("torch.cuda.is_available()", True),
        ("len(args.name) == 1", True),
        ("1 in args.rank", None),
        ("(args.on", None),
        ("lambda: 1", None),
        ("", None),
    ],
)
def test_a_test_holds_as_python_has_it(text: str, outcome: Optional[bool]) -> None:
    values = {"on": True, "off": False, "name": "a", "rank": 8, "missing": None}

    def value_of(path: str) -> Any:
        return values.get(path.rpartition(".")[2], Unknown(path))

    assert holds(text, value_of) is outcome


def test_following_a_program_survives_values_that_are_lists_or_unknown(run_of: MakeRun) -> None:
    code = """\
import yaml
from transformers import Trainer, TrainingArguments


class Tokens:
    def __init__(self, path, extra=()):
        with open(path) as file:
            self.config = yaml.safe_load(file)
        self.add_bos = unseen() if extra else self.config["bos"]

    def encode(self, text, flag=None):
        if self.add_bos or flag:
            parts = [1] if flag else [2]
        else:
            parts = [1] if text else [3]
        for part in parts + ([4] if flag else [5]):
            yield part


Trainer(args=TrainingArguments("out", per_device_train_batch_size=3)).train()
"""
    run = run_of({"train.py": code, "run.sh": "python train.py\n"})
    assert _value(run, "micro_batch_size") == 3
