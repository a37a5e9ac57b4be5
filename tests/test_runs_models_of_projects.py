"""Defaults of a model's class: claimed for a library's own classes, not for the project's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Optional

import pytest

from flake8_gpu_training.facts import known
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import Run

MakeRun = Callable[..., Run]

TRAIN = """\
from transformers import HfArgumentParser, Trainer, TrainingArguments

from net import Net

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = Net.from_pretrained("org/model-7b")
Trainer(model=model, args=args).train()
"""


@pytest.fixture
def run_of(tmp_path: Path) -> MakeRun:
    """The first run of a project made of ``files``, or the one that a command starts."""

    def make(files: dict[str, str], launch: Optional[str] = None) -> Run:
        for name, text in files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        return find_runs(Project.open(tmp_path), launch)[0]

    return make


def _value(run: Run, name: str) -> Any:
    value = run.practice(name).value
    return value if known(value) else "unknown"


@pytest.mark.parametrize(
    ("net", "attention"),
    [
        ("from transformers import LlamaForCausalLM as Net\n", "sdpa"),
        ("import transformers\n\n\nclass Net(transformers.LlamaForCausalLM):\n    pass\n", "sdpa"),
        (
            "import transformers\n\n\nclass Mixin:\n    pass\n\n\n"
            "class Net(transformers.Qwen2ForCausalLM, Mixin):\n    pass\n",
            "sdpa",
        ),
        (
            "from transformers import PreTrainedModel\n\n\nclass Net(PreTrainedModel):\n    pass\n",
            "unknown",
        ),
        (
            "from transformers import PreTrainedModel\n\n\n"
            "class Base(PreTrainedModel):\n    pass\n\n\nclass Net(Base):\n    pass\n",
            "unknown",
        ),
        ("from somewhere import Net\n", "unknown"),
    ],
)
def test_the_default_attention_is_that_of_a_librarys_class(
    run_of: MakeRun, net: str, attention: str
) -> None:
    text = TRAIN.replace("from net import Net\n", net).replace("Net.from", "NetForCausalLM.from")
    text = text.replace("as Net\n", "as NetForCausalLM\n").replace(
        "class Net(", "class NetForCausalLM("
    )
    text = text.replace("import Net\n", "import NetForCausalLM\n")
    run = run_of({"train.py": text, "run.sh": "torchrun --nproc_per_node 2 train.py --bf16\n"})
    assert _value(run, "attention") == attention


@pytest.mark.parametrize(
    ("asked", "attention"), [("", "unknown"), (", attn_implementation='eager'", "eager")]
)
def test_a_class_of_the_projects_own_module_is_followed(
    run_of: MakeRun, asked: str, attention: str
) -> None:
    net = (
        "from transformers import PreTrainedModel\n\n\n"
        "class NetForCausalLM(PreTrainedModel):\n    def forward(self, x):\n        return x\n"
    )
    text = TRAIN.replace("Net", "NetForCausalLM").replace('7b")', f'7b"{asked})')
    run = run_of({"train.py": text, "net.py": net, "run.sh": "torchrun train.py --bf16\n"})
    assert _value(run, "attention") == attention


def test_what_unsloth_computes_with_is_not_told(run_of: MakeRun) -> None:
    text = (
        "from transformers import TrainingArguments\nfrom trl import SFTTrainer\n"
        "from unsloth import FastLanguageModel\n\n"
        'model, tokenizer = FastLanguageModel.from_pretrained("org/model-7b")\n'
        "args = TrainingArguments(output_dir='out', bf16=True)\n"
        "SFTTrainer(model=model, args=args).train()\n"
    )
    assert _value(run_of({"train.py": text}, "python train.py"), "attention") == "unknown"


# --- Megatron's flags, where a checkpoint has the shape -----------------------------------------

FINETUNE = """\
torchrun --nproc_per_node 8 finetune.py --tensor_model_parallel_size 2 --bf16 \\
    --pipeline_model_parallel_size 2 --micro_batch_size 1 --global_batch_size 12 \\
    --use_checkpoint_args --use_flash_attn --train_iters 10
"""


def test_megatrons_flags_are_known_also_where_a_checkpoint_has_the_shape(
    run_of: MakeRun, tmp_path: Path
) -> None:
    program = "from megatron.training import pretrain\n\npretrain(None, None)\n"
    run = run_of({"finetune.py": program, "run.sh": FINETUNE}, "bash run.sh")
    told = {name: _value(run, name) for name in ("precision", "attention", "zero_stage", "tuning")}
    assert told == {
        "precision": "bf16",
        "attention": "flash_attention_2",
        "zero_stage": 0,
        "tuning": "full",
    }
    assert (_value(run, "micro_batch_size"), _value(run, "gradient_accumulation_steps")) == (1, 6)
    other = FINETUNE.replace("--use_checkpoint_args ", "")
    (tmp_path / "run.sh").write_text(other, encoding="utf-8")
    assert all(_value(run, "tuning") == "unknown" for run in find_runs(Project.open(tmp_path)))


# --- notebooks ----------------------------------------------------------------------------------

CELL = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("org/model-7b")
Trainer(model=model, args=TrainingArguments(output_dir="out", fp16=True)).train()
"""


def _notebook(cell: str) -> str:
    cells = [{"cell_type": "code", "source": cell.splitlines(True), "metadata": {}, "outputs": []}]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def test_a_notebook_is_one_process_that_nothing_shards(run_of: MakeRun) -> None:
    run = run_of({"tune.ipynb": _notebook(CELL)})
    assert run.launcher.world_size == 1
    assert (_value(run, "zero_stage"), _value(run, "fsdp")) == (0, "none")
    spawning = (
        "from accelerate import notebook_launcher\n\nnotebook_launcher(main, num_processes=4)\n"
    )
    assert run_of({"tune.ipynb": _notebook(CELL + spawning)}).launcher.world_size == 4


def test_what_a_notebook_installs_is_for_that_notebook_alone(tmp_path: Path) -> None:
    for name, version in (("old", "4.40.0"), ("new", "5.24.0")):
        text = _notebook(f'!pip install "transformers=={version}"\n{CELL}')
        (tmp_path / f"{name}.ipynb").write_text(text, encoding="utf-8")
    (tmp_path / "train.py").write_text(CELL, encoding="utf-8")
    found = {run.location.path: run.versions for run in find_runs(Project.open(tmp_path))}
    assert found == {
        "old.ipynb": {"transformers": "4.40.0"},
        "new.ipynb": {"transformers": "5.24.0"},
        "train.py": {},
    }
