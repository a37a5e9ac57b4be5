"""What a project's own program reads is not held against a framework that never sees it."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, runs_of

RECIPE = (
    "stage: sft\ndo_train: true\nfinetuning_type: full\ntemplate: qwen\ndataset: alpaca\n"
    "{}num_chunks: 4\noutput_dir: out\nbf16: true\n"
)
MODEL = "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\n"
OWN = "import torch, yaml\nconfig = yaml.safe_load(open('configs/own.yaml'))\ntorch.cuda.init()\n"


def test_a_recipe_that_its_own_program_reads_is_not_llamafactorys(tmp_path: Path) -> None:
    files = {"configs/own.yaml": RECIPE.format(MODEL), "train.py": OWN}
    assert not findings(runs_of(tmp_path, files), "GPU005")


def test_a_recipe_without_a_model_is_not_llamafactorys(tmp_path: Path) -> None:
    files = {"configs/own.yaml": RECIPE.format("")}
    assert not findings(runs_of(tmp_path, files), "GPU005")


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"start.py": OWN + "import subprocess\nsubprocess.run(['llamafactory-cli', 'train', p])\n"},
        {"train.py": OWN, "run.sh": "llamafactory-cli train configs/own.yaml\n"},
    ],
)
def test_a_recipe_of_llamafactory_is_read(tmp_path: Path, more: dict[str, str]) -> None:
    files = {"configs/own.yaml": RECIPE.format(MODEL), **more}
    assert findings(runs_of(tmp_path, files), "GPU005")


ZERO = '{"bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}'
ENGINE = """\
from dataclasses import dataclass
import deepspeed, json
from transformers import HfArgumentParser, TrainingArguments


@dataclass
class Own(TrainingArguments):
    deepspeed_config: str = ""


args = HfArgumentParser(Own).parse_args_into_dataclasses()[0]
config = json.load(open(args.deepspeed_config))
engine, *_ = deepspeed.initialize(model=model, config=config)
for batch in loader:
    engine.backward(engine(**batch).loss)
    engine.step()
"""
TRAINER = """\
from transformers import HfArgumentParser, Trainer, TrainingArguments

args = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()[0]
Trainer(model=model, args=args, train_dataset=data).train()
"""


def test_deepspeed_of_ones_own_is_not_held_against_the_arguments(tmp_path: Path) -> None:
    command = "deepspeed train.py --output_dir o --bf16 false --{} ds.json\n"
    own = {"train.py": ENGINE, "ds.json": ZERO, "run.sh": command.format("deepspeed_config")}
    assert not findings(runs_of(tmp_path / "own", own), "GPU013")
    integrated = {"train.py": TRAINER, "ds.json": ZERO, "run.sh": command.format("deepspeed")}
    assert findings(runs_of(tmp_path / "integrated", integrated), "GPU013")


ADAPTER = """\
import argparse, yaml
from pathlib import Path
from peft import LoraConfig
from trl import GRPOConfig, GRPOTrainer


def read(path):
    with Path(path).open() as file:
        return yaml.safe_load(file)


parser = argparse.ArgumentParser()
parser.add_argument("--config", type=Path, required=True)
config = read(parser.parse_args().config)
adapter = None
if config.get("lora", {{}}).get("enabled", False):
    table = dict(config["lora"])
    {}
    adapter = LoraConfig(**table)
GRPOTrainer(model="Qwen/Qwen2.5-7B", args=GRPOConfig(), peft_config=adapter).train()
"""
LORA = "lora: {enabled: true, r: 16}\n"


@pytest.mark.parametrize("statement", ["table.pop('enabled', None)", "del table['enabled']"])
@pytest.mark.parametrize("name", ["a", "${1:?name}"])
def test_a_key_that_the_program_takes_out_is_no_argument(
    tmp_path: Path, name: str, statement: str
) -> None:
    command = f'python train.py --config "configs/{name}.yaml"\n'
    files = {"configs/a.yaml": LORA, "train.py": ADAPTER.format(statement), "run.sh": command}
    assert not findings(runs_of(tmp_path, files), "GPU005")


def test_a_key_that_the_program_leaves_in_is_an_argument(tmp_path: Path) -> None:
    files = {
        "configs/a.yaml": LORA,
        "train.py": ADAPTER.format("table.pop('r', None)"),
        "run.sh": "python train.py --config configs/a.yaml\n",
    }
    assert findings(runs_of(tmp_path, files), "GPU005")
