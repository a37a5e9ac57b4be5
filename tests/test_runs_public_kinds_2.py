"""More kinds of wiring met in public projects: what a run is told, and what nobody can tell."""

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


# --- dataclasses filled from a dict or a file -------------------------------------------------

COMPOSED = """\
from dataclasses import dataclass, field

import hydra
from omegaconf import DictConfig, OmegaConf
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments


@dataclass
class Extra:
    use_lora: bool = field(default=False)


@hydra.main(version_base="1.1", config_path="conf", config_name="base")
def main(cfg: DictConfig):
    READ
    model = AutoModelForCausalLM.from_pretrained("gpt2")
    if extra.use_lora:
        model = get_peft_model(model, LoraConfig(r=8))
    Trainer(model=model, args=training_args).train()


main()
"""
IMPORT = "from peft import LoraConfig, get_peft_model\n"
CONF = {
    "conf/base.yaml": "defaults:\n  - _self_\nname: x\nlayers: ${oc.env:N}\n",
    "conf/exp/a.yaml": "# @package _global_\ngradient_accumulation_steps: 8\nuse_lora: true\n"
    "per_device_train_batch_size: 4\noutput_dir: o\n",
}
WHOLE = (
    "extra, training_args = HfArgumentParser((Extra, TrainingArguments))"
    ".parse_dict(cfg, allow_extra_keys=True)"
)
PLAIN = "cfg = OmegaConf.to_container(cfg, resolve=True)\n    " + WHOLE


@pytest.mark.parametrize("read", [WHOLE, PLAIN])
def test_a_dict_of_hydra_fills_the_arguments(run_of: MakeRun, read: str) -> None:
    script = IMPORT + COMPOSED.replace("READ", read)
    run = run_of({"train.py": script, **CONF}, "python train.py +exp=a")
    assert _value(run, "gradient_accumulation_steps") == 8
    assert _value(run, "micro_batch_size") == 4
    assert _value(run, "tuning") == "lora"


def test_a_dict_without_a_key_leaves_the_default(run_of: MakeRun) -> None:
    script = IMPORT + COMPOSED.replace("READ", WHOLE)
    run = run_of({"train.py": script, **CONF}, "python train.py")
    assert _value(run, "gradient_accumulation_steps") == 1
    assert _value(run, "micro_batch_size") == 8
    assert _value(run, "tuning") == "full"


@pytest.mark.parametrize(
    "read",
    [
        WHOLE.replace("cfg,", "lookup(cfg),"),
        WHOLE.replace("cfg,", "{**cfg, **fetched()},"),
        "if cfg.name == os.environ['X']:\n        cfg.gradient_accumulation_steps = 2\n    "
        + WHOLE,
    ],
)
def test_a_dict_that_is_not_known_leaves_the_run_open(run_of: MakeRun, read: str) -> None:
    script = (
        IMPORT
        + "import os\nfrom elsewhere import fetched, lookup\n"
        + COMPOSED.replace("READ", read)
    )
    run = run_of({"train.py": script, **CONF}, "python train.py")
    assert _value(run, "gradient_accumulation_steps") == "unknown"


OF_FILE = """\
import argparse
from dataclasses import dataclass, field

import trl
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, HfArgumentParser
from trl import SFTTrainer


@dataclass
class ModelArguments:
    peft_enabled: bool = field(default=False)


@dataclass
class SFTConfig(trl.SFTConfig):
    run_prefix: str = None


def main(args):
    parser = HfArgumentParser((ModelArguments, SFTConfig))
    model_args, training_args = parser.parse_yaml_file(args.config)
    model = AutoModelForCausalLM.from_pretrained("org/m")
    if model_args.peft_enabled:
        model = get_peft_model(model, LoraConfig(r=16))
    SFTTrainer(model=model, args=training_args).train()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=str, required=True)
    main(parser.parse_args())
"""


@pytest.mark.parametrize(
    ("content", "name", "tuning"),
    [
        ("peft_enabled: true\n", "c.yaml", "lora"),
        ("peft_enabled: false\n", "c.yaml", "full"),
        ("per_device_train_batch_size: 2\n", "c.yaml", "full"),
        ("peft_enabled: true\n", "missing.yaml", "unknown"),
    ],
)
def test_a_file_of_arguments_decides_the_branches(
    run_of: MakeRun, content: str, name: str, tuning: str
) -> None:
    run = run_of({"train.py": OF_FILE, "c.yaml": content}, f"python train.py --config {name}")
    assert _value(run, "tuning") == tuning


UNSLOTH = """\
from transformers import HfArgumentParser
from trl import ModelConfig, SFTConfig, SFTTrainer
from unsloth import FastLanguageModel

parser = HfArgumentParser((SFTConfig, ModelConfig))
training_args, model_args = parser.parse_args_into_dataclasses()
LOAD
SFTTrainer(model=model, args=training_args).train()
"""


@pytest.mark.parametrize(
    ("load", "attention"),
    [
        ("model, _ = FastLanguageModel.from_pretrained(model_args.model_name_or_path)", "unknown"),
        ("model = model_args.model_name_or_path", "flash_attention_2"),
    ],
)
def test_a_kernel_that_unsloth_does_not_take_is_not_used(
    run_of: MakeRun, load: str, attention: str
) -> None:
    launch = "python train.py --model_name_or_path org/m --attn_implementation flash_attention_2"
    run = run_of({"train.py": UNSLOTH.replace("LOAD", load)}, launch)
    assert _value(run, "attention") == attention
