"""The model of a run: by name, by configuration in the project, by numbers in the program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from checks_support import runs_of

from flake8_gpu_training.models import model_of
from flake8_gpu_training.runs.model import Model

TRAINER = (
    "import timm, torchvision\n"
    "from transformers import AutoConfig, AutoModelForCausalLM, BertConfig, LlamaConfig\n"
    "from transformers import Trainer, TrainingArguments\n"
    "from model import GPTConfig\n"
    "{}\n"
    "Trainer(model=model, args=TrainingArguments('out')).train()\n"
)
QWEN_7B = {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
}


def model(root: Path, files: Mapping[str, str]) -> Model:
    (run,) = runs_of(root, files)
    return run.model


def of_program(root: Path, lines: str) -> Model:
    return model(root, {"train.py": TRAINER.format(lines), "run.sh": "python train.py\n"})


def test_a_local_folder_is_described_by_its_configuration(tmp_path: Path) -> None:
    files = {
        "run.sh": "swift sft --model ./weights/ours\n",
        "weights/ours/config.json": json.dumps(QWEN_7B),
    }
    found = model(tmp_path, files)
    assert (found.name, found.parameters) == ("./weights/ours", 7_615_616_512)
    assert found.source == "weights/ours/config.json"


@pytest.mark.parametrize(
    ("lines", "same_as"),
    [
        ("config = AutoConfig.from_pretrained('Qwen/Qwen2.5-7B')", "Qwen/Qwen2.5-7B"),
        ("model = timm.create_model('resnet50', pretrained=False)", "resnet50"),
        ("model = torchvision.models.resnet50(weights=None)", "resnet50"),
    ],
)
def test_a_program_names_its_model(tmp_path: Path, lines: str, same_as: str) -> None:
    found, named = of_program(tmp_path, lines), model_of(same_as)
    assert (found.parameters, found.layers, found.kind) == (
        named.parameters,
        named.layers,
        named.kind,
    )
    assert found.parameters


def test_numbers_of_a_configuration_class_are_a_shape(tmp_path: Path) -> None:
    lines = (
        "WIDTH = 2048\n"
        "config = LlamaConfig(hidden_size=WIDTH, num_hidden_layers=22, num_attention_heads=32,\n"
        "                     num_key_value_heads=4, intermediate_size=5632)\n"
        "model = AutoModelForCausalLM.from_config(config)"
    )
    found = of_program(tmp_path, lines)
    assert found.parameters == model_of("TinyLlama/TinyLlama-1.1B").parameters
    assert (found.kind, found.layers, found.source) == ("LLM", 22, "LlamaConfig(...)")
    assert found.location is not None


def test_the_defaults_of_a_class_are_those_of_its_library(tmp_path: Path) -> None:
    found = of_program(tmp_path, "config = BertConfig()")
    assert (found.kind, found.layers, found.hidden_size) == ("encoder", 12, 768)
    assert found.parameters == pytest.approx(110e6, rel=0.02)  # positions and pooler aside


def test_the_numbers_of_a_small_gpt_are_read(tmp_path: Path) -> None:
    lines = "config = GPTConfig(n_layer=12, n_head=12, n_embd=768, vocab_size=50304)"
    assert of_program(tmp_path, lines).parameters == pytest.approx(124e6, rel=0.01)


@pytest.mark.parametrize(
    "lines",
    [
        "config = LlamaConfig(hidden_size=args.width, num_hidden_layers=22)",
        "config = LlamaConfig(num_hidden_layers=2, **more)",
        "config = GPTConfig(n_layer=12)",
        "config = AutoConfig.from_pretrained('gpt2', n_layer=48)",
        "config = LlamaConfig()\nconfig.num_hidden_layers = 4",
        "one = LlamaConfig(num_hidden_layers=4)\nother = LlamaConfig(num_hidden_layers=8)",
        "config = SchedulerConfig(num_layers=3)",
    ],
)
def test_what_is_not_certain_is_not_counted(tmp_path: Path, lines: str) -> None:
    assert of_program(tmp_path, lines).parameters is None


def test_training_from_scratch_is_named_by_its_configuration(tmp_path: Path) -> None:
    files = {
        "run.sh": "python run_clm.py --config_name configs/small --output_dir out\n",
        "configs/small/config.json": json.dumps({**QWEN_7B, "num_hidden_layers": 4}),
        "run_clm.py": (
            "from dataclasses import dataclass\n"
            "from typing import Optional\n"
            "from transformers import HfArgumentParser, Trainer, TrainingArguments\n\n\n"
            "@dataclass\nclass ModelArguments:\n    config_name: Optional[str] = None\n\n\n"
            "parser = HfArgumentParser((ModelArguments, TrainingArguments))\n"
            "model_args, training_args = parser.parse_args_into_dataclasses()\n"
            "Trainer(model=None, args=training_args).train()\n"
        ),
    }
    found = model(tmp_path, files)
    assert (found.layers, found.source) == (4, "configs/small/config.json")
