"""Attention and tuning are said where the code decides them, and left open where it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Optional

import pytest

from flake8_gpu_training.facts import known
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import Run

MakeRun = Callable[..., Run]


@pytest.fixture
def run_of(tmp_path: Path) -> MakeRun:
    """The run of a project made of ``files``, by its launch command."""

    def make(files: dict[str, str], launch: Optional[str] = "python train.py") -> Run:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return find_runs(Project.open(tmp_path), launch)[0]

    return make


def _value(run: Run, name: str) -> Any:
    value = run.practice(name).value
    return value if known(value) else "unknown"


# --- guards around the functions that adapt a model --------------------------------------------

ADAPTED = """\
from peft import LoraConfig, get_peft_model


def adapted(model, options):
    EARLY
    config = LoraConfig(r=8)
    return get_peft_model(model, config)
"""
GUARDED = """\
import argparse

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

from lib import adapted

parser = argparse.ArgumentParser()
parser.add_argument("--narrow", action="store_true")
args = parser.parse_args()


def build(given):
    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
    if TEST:
        model = adapted(model, given)
    return model


if __name__ == "__main__":
    Trainer(model=build(args), args=TrainingArguments("out", bf16=True)).train()
"""


@pytest.mark.parametrize(
    ("test", "early", "flag", "tuning"),
    [
        ("given.narrow", "pass", "", "full"),
        ("given.narrow", "pass", " --narrow", "lora"),
        ("settings().get('narrow')", "pass", "", "unknown"),
        ("True", "pass", "", "lora"),
        ("True", "if not options.narrow:\n        return model", "", "full"),
        ("True", "if not options.narrow:\n        return model", " --narrow", "lora"),
        ("True", "if not options.other:\n        return model", "", "unknown"),
    ],
)
def test_an_adapter_follows_the_guard_of_the_function_that_makes_it(
    run_of: MakeRun, test: str, early: str, flag: str, tuning: str
) -> None:
    files = {"train.py": GUARDED.replace("TEST", test), "lib.py": ADAPTED.replace("EARLY", early)}
    run = run_of(files, f"python train.py{flag}")
    assert _value(run, "tuning") == tuning
    if tuning == "unknown":
        assert run.practice("tuning").value.candidates == ("lora",)


GIVES_UP = """\
import os

from peft import LoraConfig
from transformers import AutoModelForCausalLM
from trl import SFTConfig, SFTTrainer


def main():
    if not os.path.exists(FOLDER):
        return
    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
    adapter = None
    GUARD
        adapter = LoraConfig(r=8)
    SFTTrainer(model=model, args=SFTConfig("out"), peft_config=adapter).train()


main()
"""


@pytest.mark.parametrize(
    ("guard", "tuning"), [("with quiet():", "lora"), ("if os.environ['LORA']:", "unknown")]
)
def test_what_must_hold_for_a_trainer_to_be_made_leaves_the_adapter_certain(
    run_of: MakeRun, guard: str, tuning: str
) -> None:
    run = run_of({"train.py": GIVES_UP.replace("GUARD", guard)}, "python train.py")
    assert _value(run, "tuning") == tuning


# --- which weights an optimizer is given -------------------------------------------------------

WEIGHTS = """\
import torch
from torch import nn
from torchvision.models import resnet50

from lib import chosen, grouped


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = resnet50()
        self.head = nn.Linear(10, 2)

    def forward(self, x):
        FORWARD
        return self.head(x)


model = Net().cuda()
BODY
for batch in range(10):
    loss = model(torch.zeros(2).cuda()).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
CHOICES = """\
import torch


def chosen(model):
    found = []
    for name, weights in model.named_parameters():
        if "head" in name:
            found.append(weights)
    return found


def grouped(model):
    decayed, plain = [], []
    for name, weights in model.named_parameters():
        if not weights.requires_grad:
            continue
        if name.endswith("bias"):
            plain.append(weights)
        else:
            decayed.append(weights)
    return [{"params": decayed}, {"params": plain, "weight_decay": 0.0}]
"""
PASSES = "x = self.backbone(x)"
TAUGHT = "with torch.no_grad():\n            y = self.teacher(x)\n        x = self.backbone(x)"
WHOLE = "optimizer = torch.optim.AdamW(model.parameters())"


@pytest.mark.parametrize(
    ("body", "forward", "tuning"),
    [
        (WHOLE, PASSES, "full"),
        ("optimizer = torch.optim.AdamW(grouped(model))", PASSES, "full"),
        ("optimizer = torch.optim.AdamW(chosen(model))", PASSES, "unknown"),
        ("optimizer = torch.optim.AdamW(model.groups())", PASSES, "unknown"),
        ("optimizer = torch.optim.AdamW(list(model.parameters()))", PASSES, "full"),
        ("few = chosen(model)\noptimizer = torch.optim.AdamW(few)", PASSES, "unknown"),
        ("few = model.head.parameters()\noptimizer = torch.optim.SGD(few)", PASSES, "unknown"),
        (
            "few = [w for n, w in model.named_parameters() if 'head' in n]\n"
            "optimizer = torch.optim.SGD(few)",
            PASSES,
            "unknown",
        ),
        (
            "groups = [{'params': [w for n, w in model.named_parameters() if 'bias' in n]},\n"
            "  {'params': [w for n, w in model.named_parameters() if 'bias' not in n]}]\n"
            "optimizer = torch.optim.AdamW(groups)",
            PASSES,
            "full",
        ),
        (
            "for w in model.backbone.parameters():\n    setattr(w, 'requires_grad', False)\n"
            + WHOLE,
            PASSES,
            "unknown",
        ),
        (WHOLE, "with torch.no_grad():\n            x = self.backbone(x)", "unknown"),
        (
            WHOLE,
            "with torch.no_grad():\n            y = self.teacher(x)\n        " + PASSES,
            "full",
        ),
    ],
)
def test_all_is_trained_where_the_optimizer_gets_all_of_it(
    run_of: MakeRun, body: str, forward: str, tuning: str
) -> None:
    script = WEIGHTS.replace("BODY", body).replace("FORWARD", forward)
    assert _value(run_of({"train.py": script, "lib.py": CHOICES}), "tuning") == tuning


BY_NAME = """\
import importlib

import torch


def made(config):
    return MODEL


model = made("nets.Net").cuda()
OPTIMIZER
for batch in range(10):
    model(batch).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
SEEN = "optimizer = torch.optim.AdamW(model.parameters())"


@pytest.mark.parametrize(
    ("model", "optimizer", "tuning"),
    [
        ("torch.nn.Linear(2, 2)", SEEN, "full"),
        ("torch.nn.Linear(2, 2)", "optimizer = model.optimizer", "unknown"),
        ("getattr(importlib.import_module(config), 'Net')()", SEEN, "unknown"),
    ],
)
def test_what_is_made_out_of_sight_may_be_trained_in_part(
    run_of: MakeRun, model: str, optimizer: str, tuning: str
) -> None:
    script = BY_NAME.replace("MODEL", model).replace("OPTIMIZER", optimizer)
    assert _value(run_of({"train.py": script}), "tuning") == tuning


LOADED = """\
from torch import nn
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

OWN

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
Trainer(model=model, args=TrainingArguments("out", bf16=True)).train()
"""


@pytest.mark.parametrize(
    ("own", "tuning"),
    [
        ("class LoRALinear(nn.Module):\n    pass", "unknown"),
        ("class LoraArguments:\n    pass", "full"),
    ],
)
def test_adapters_written_by_hand_leave_the_tuning_open(
    run_of: MakeRun, own: str, tuning: str
) -> None:
    assert _value(run_of({"train.py": LOADED.replace("OWN", own)}), "tuning") == tuning


# --- whose attention it is ---------------------------------------------------------------------

OWN_MODEL = """\
import torch
import torch.nn.functional as F
from torch import nn

IMPORT


class Block(nn.Module):
    def scaled_dot_product_attention(self, q, k, v):
        return q

    def forward(self, q, k, v):
        return CALL


model = Block().cuda()
for batch in loader:
    model(batch.cuda(), batch, batch).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("call", "more", "attention"),
    [
        ("F.scaled_dot_product_attention(q, k, v)", "", "sdpa"),
        ("self.scaled_dot_product_attention(q, k, v)", "", "unknown"),
        ("scaled_dot_product_attention(q, k, v)", "", "unknown"),
        (
            "scaled_dot_product_attention(q, k, v)",
            "from torch.nn.functional import scaled_dot_product_attention",
            "sdpa",
        ),
        ("F.scaled_dot_product_attention(q, k, v)", "from timm.layers import DropPath", "sdpa"),
        ("F.scaled_dot_product_attention(q, k, v)", "from timm import create_model", "unknown"),
        ("F.scaled_dot_product_attention(q, k, v)", "import open_clip", "unknown"),
        (
            "F.scaled_dot_product_attention(q, k, v) + nn.MultiheadAttention(8, 2)(q, k, v)[0]",
            "",
            "unknown",
        ),
        (
            "F.scaled_dot_product_attention(q, k, v) if q.a else (q @ k) @ v",
            "def plain(attn, v):\n    attn = attn.softmax(dim=-1)\n    return attn @ v",
            "unknown",
        ),
    ],
)
def test_a_kernel_is_the_models_where_nothing_else_could_be(
    run_of: MakeRun, call: str, more: str, attention: str
) -> None:
    script = OWN_MODEL.replace("CALL", call).replace("IMPORT", more)
    assert _value(run_of({"train.py": script}), "attention") == attention


SWITCHED = """\
import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.flash = TEST

    def forward(self, q, k, v):
        if self.flash:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        att = q @ k
        att = F.softmax(att, dim=-1)
        return att @ v


model = Layer().cuda()
for batch in loader:
    model(batch.cuda(), batch, batch).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("test", "requirement", "attention"),
    [
        ("hasattr(torch.nn.functional, 'scaled_dot_product_attention')", "torch", "sdpa"),
        ("hasattr(F, 'scaled_dot_product_attention')", "torch==2.4.1", "sdpa"),
        ("hasattr(F, 'scaled_dot_product_attention')", "torch==1.13.1", "unknown"),
        ("settings().flash", "torch", "unknown"),
    ],
)
def test_pytorch_has_its_kernel_from_2_0_on(
    run_of: MakeRun, test: str, requirement: str, attention: str
) -> None:
    files = {"train.py": SWITCHED.replace("TEST", test), "requirements.txt": f"{requirement}\n"}
    assert _value(run_of(files), "attention") == attention


@pytest.mark.parametrize(
    ("own", "attention"),
    [
        ("class Head(nn.Module):\n    pass", "sdpa"),
        ("class FastAttention(nn.Module):\n    pass", "unknown"),
        ("fuse = nn.MultiheadAttention(8, 2)", "unknown"),
        ("class AttentionConfig:\n    pass", "sdpa"),
        ("LLAMA_ATTENTION_CLASSES['sdpa'] = object", "unknown"),
    ],
)
def test_a_default_holds_where_the_program_has_no_attention_of_its_own(
    run_of: MakeRun, own: str, attention: str
) -> None:
    assert _value(run_of({"train.py": LOADED.replace("OWN", own)}), "attention") == attention


PEFT = """\
from peft import PeftModel
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

base = AutoModelForCausalLM.from_pretrained("org/m", ATTENTION)
model = PeftModel.from_pretrained(base, "org/adapter", is_trainable=True)
Trainer(model=model, args=TrainingArguments("out", bf16=True)).train()
"""


@pytest.mark.parametrize("attention", ["eager", "flash_attention_2"])
def test_a_loaded_adapter_says_nothing_of_the_attention(run_of: MakeRun, attention: str) -> None:
    script = PEFT.replace("ATTENTION", f"attn_implementation={attention!r}")
    assert _value(run_of({"train.py": script}), "attention") == attention


ENCODER = """\
import torch
from torch import nn
from transformers import AutoModel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        PART
        self.head = nn.Linear(768, 2)


model = Net().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for batch in range(10):
    model(batch).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("part", "attention"),
    [
        ("self.body = AutoModel.from_pretrained('bert-base-uncased')", "sdpa"),
        ("helper = AutoModel.from_pretrained('bert-base-uncased')", "unknown"),
        (
            "self.body = AutoModel.from_pretrained('bert-base-uncased')\n"
            "        self.body.requires_grad_(False)",
            "unknown",
        ),
    ],
)
def test_an_encoder_is_the_model_where_it_is_trained_within_it(
    run_of: MakeRun, part: str, attention: str
) -> None:
    assert _value(run_of({"train.py": ENCODER.replace("PART", part)}), "attention") == attention


TRANSFORMERS = "https://github.com/huggingface/transformers"


@pytest.mark.parametrize(
    ("requirement", "name", "attention"),
    [
        ("transformers", "bert-base-uncased", "sdpa"),
        ("transformers<4.40", "bert-base-uncased", "eager"),
        ("transformers<4.36", "meta-llama/Llama-2-7b-hf", "eager"),
        ("transformers>=4.30", "meta-llama/Llama-2-7b-hf", "sdpa"),
        (f"git+{TRANSFORMERS}", "meta-llama/Llama-2-7b-hf", "sdpa"),
        (f"transformers @ git+{TRANSFORMERS}.git@main", "meta-llama/Llama-2-7b-hf", "sdpa"),
        (f"git+{TRANSFORMERS}@0f3c6a1", "meta-llama/Llama-2-7b-hf", "unknown"),
        ("git+https://github.com/someone/transformers", "meta-llama/Llama-2-7b-hf", "unknown"),
    ],
)
def test_limits_of_the_project_choose_the_release(
    run_of: MakeRun, requirement: str, name: str, attention: str
) -> None:
    script = LOADED.replace("OWN", "").replace("Qwen/Qwen2.5-7B", name)
    files = {"train.py": script, "requirements.txt": f"{requirement}\n"}
    assert _value(run_of(files), "attention") == attention


UNASKED = """\
from dataclasses import dataclass

from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments


@dataclass
class Extra:
    attn_implementation: str = "flash_attention_2"


extra, args = HfArgumentParser((Extra, TrainingArguments)).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B"GIVEN)
Trainer(model=model, args=args).train()
"""


@pytest.mark.parametrize(
    ("given", "attention"),
    [("", "sdpa"), (", attn_implementation=extra.attn_implementation", "flash_attention_2")],
)
def test_an_argument_that_no_model_is_given_is_not_its_attention(
    run_of: MakeRun, given: str, attention: str
) -> None:
    run = run_of({"train.py": UNASKED.replace("GIVEN", given)}, "python train.py --output_dir o")
    assert _value(run, "attention") == attention


@pytest.mark.parametrize(
    ("entry", "flag", "attention"),
    [
        ("python src/train_bash.py", "", "unknown"),
        ("python src/train_bash.py", " --flash_attn", "flash_attention_2"),
        ("llamafactory-cli train", "", "auto"),
    ],
)
def test_old_releases_of_llamafactory_have_a_switch_for_the_attention(
    run_of: MakeRun, entry: str, flag: str, attention: str
) -> None:
    words = "--stage sft --do_train --model_name_or_path m --dataset d --output_dir o"
    run = run_of({"requirements.txt": "torch\n"}, f"{entry} {words}{flag}")
    assert _value(run, "attention") == attention
