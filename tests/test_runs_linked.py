"""Runs of real-looking projects: what leads from a command to its settings, and what is hidden."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

import pytest

from flake8_gpu_training.facts import Unknown, known
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import PlaceKind, Run, RunKind
from flake8_gpu_training.runs.reach import Reach
from flake8_gpu_training.runs.secrets import is_secret, shown_command
from flake8_gpu_training.sources.signatures import Signatures, read_signatures

MakeRuns = Callable[..., tuple[Run, ...]]

TAKER = """\
from trl import SFTConfig, SFTTrainer, TrlParser

if __name__ == "__main__":
    parser = TrlParser((SFTConfig,))
    (training_args,) = parser.parse_args_and_config()
    SFTTrainer(model="m", args=training_args).train()
"""
RECIPE = """\
model_name_or_path: Qwen/Qwen2.5-7B
per_device_train_batch_size: 4
gradient_accumulation_steps: 2
learning_rate: 1.0e-5
bf16: true
output_dir: out
"""
LOOP = """\
import torch
for batch in loader:
    loss = model(batch)
    loss.backward()
    optimizer.step()
"""


@pytest.fixture
def runs_in(tmp_path: Path) -> MakeRuns:
    def make(files: dict[str, str]) -> tuple[Run, ...]:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return find_runs(Project.open(tmp_path))

    return make


# --- recipes ---------------------------------------------------------------------------------


def test_a_recipe_belongs_to_the_script_its_folder_is_named_after(runs_in: MakeRuns) -> None:
    (run, *rest) = runs_in(
        {"src/sft.py": TAKER, "src/dpo.py": TAKER, "recipes/qwen/sft/config.yaml": RECIPE}
    )
    assert run.entry == "src/sft.py"
    assert run.value("micro_batch_size") == 4
    assert not run.is_open
    assert [other.entry for other in rest] == ["src/dpo.py"]


def test_a_recipe_of_two_possible_scripts_has_none(runs_in: MakeRuns) -> None:
    run = runs_in({"one.py": TAKER, "two.py": TAKER, "recipes/a.yaml": RECIPE})[0]
    assert run.location.path == "recipes/a.yaml"
    assert run.entry is None


def test_a_command_that_names_recipes_by_variables_launches_each(runs_in: MakeRuns) -> None:
    script = (
        "#SBATCH --gres=gpu:8\n"
        "accelerate launch --num_machines $NODES --config_file accel/$STRATEGY.yaml "
        "src/$TASK.py --config recipes/$MODEL/$TASK/config.yaml\n"
    )
    runs = runs_in(
        {
            "train.slurm": script,
            "src/sft.py": TAKER,
            "src/grpo.py": TAKER,
            "recipes/small/sft/config.yaml": RECIPE,
            "recipes/large/sft/config.yaml": RECIPE,
        }
    )
    named = [run for run in runs if run.location.path.startswith("recipes/")]
    assert [run.entry for run in named] == ["src/sft.py", "src/sft.py"]
    assert {run.launcher.name for run in named} == {"accelerate"}
    assert named[0].launcher.world_size is None
    assert named[0].hardware.gpus_per_node == 8


def test_written_settings_outrank_a_script_whose_flags_are_out_of_sight(runs_in: MakeRuns) -> None:
    run = runs_in({"train.py": TAKER, "other.py": TAKER, "configs/run.yaml": RECIPE})[0]
    assert run.primary
    assert run.location.path == "configs/run.yaml"


# --- the primary run -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bench.py", "eval_model.py", "run_benchmark.py", "test_loop.py"])
def test_a_trial_by_name_is_not_the_primary_run(runs_in: MakeRuns, name: str) -> None:
    assert runs_in({name: LOOP, "train.py": LOOP})[0].location.path == "train.py"


def test_of_examples_the_plain_one_stands_for_the_project(runs_in: MakeRuns) -> None:
    command = "swift {} --model Qwen/Qwen2.5-7B-Instruct --dataset d --tuner_type lora {}\n"
    run = runs_in(
        {
            "examples/ray/many.sh": command.format("sft", "--a 1 --b 2 --c 3 --d 4"),
            "examples/train/grpo/run.sh": command.format("rlhf", "--rlhf_type grpo --e 5"),
            "examples/train/lora.sh": command.format("sft", ""),
        }
    )[0]
    assert run.location.path == "examples/train/lora.sh"


def test_a_script_that_only_evaluates_is_no_training(runs_in: MakeRuns) -> None:
    script = (
        "import torch\nfrom transformers import HfArgumentParser, TrainingArguments\n"
        "(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n"
        "with torch.no_grad():\n    model.generate(x)\n"
    )
    (run,) = runs_in({"score.py": script, "score.sh": "torchrun score.py --bf16 True\n"})
    assert run.kind is RunKind.INFER


# --- shell -----------------------------------------------------------------------------------


def test_a_sourced_file_sets_variables(runs_in: MakeRuns) -> None:
    (run,) = runs_in(
        {
            "scripts/env.sh": "export NPROC_PER_NODE=4\nMODEL=Qwen/Qwen2.5-7B\n",
            "scripts/train.sh": 'source "$(dirname "$0")/env.sh"\nswift sft --model $MODEL\n',
        }
    )
    assert run.launcher.world_size == 4
    assert run.model.name == "Qwen/Qwen2.5-7B"


def test_a_called_script_gets_its_arguments(runs_in: MakeRuns) -> None:
    (run,) = runs_in(
        {
            "common.sh": 'LR=$1; shift\nswift sft --model m --learning_rate $LR "$@"\n',
            "train.sh": "bash common.sh 1e-4 --packing true\n",
        }
    )
    assert run.settings["learning_rate"].value == 1e-4
    assert run.value("packing") is True
    assert run.location.path == "common.sh"
    assert "train.sh" in run.files


def test_scripts_that_call_each_other_come_to_an_end(runs_in: MakeRuns) -> None:
    runs = runs_in(
        {"a.sh": "bash b.sh\nswift sft --model a\n", "b.sh": "bash a.sh\nswift sft --model b\n"}
    )
    assert {run.model.name for run in runs} == {"a", "b"}


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ('[ "$MODE" = lora ]', "lora"),
        ('[[ "$MODE" == "full" ]]', "full"),
        ('[ -z "$MODE" ]', "full"),
        ("[ $GPUS -ge 8 ]", "lora"),
        ('[ "$MODE" = lora ] && [ $GPUS -lt 8 ]', "full"),
        ('[ "$MODE" = lora ] || [ "$OTHER" = x ]', "lora"),
    ],
)
def test_a_test_of_known_values_takes_its_branch(
    runs_in: MakeRuns, test: str, expected: str
) -> None:
    script = (
        f"MODE=lora\nGPUS=8\nif {test}; then\n  TUNER=lora\nelse\n  TUNER=full\nfi\n"
        "swift sft --model m --tuner_type $TUNER\n"
    )
    (run,) = runs_in({"train.sh": script})
    assert run.value("tuning") == expected


def test_a_test_of_unknown_values_leaves_both_branches(runs_in: MakeRuns) -> None:
    script = (
        'if [ "$1" = lora ]; then TUNER=lora; else TUNER=full; fi\n'
        "swift sft --model m --tuner_type $TUNER\n"
    )
    (run,) = runs_in({"train.sh": script})
    value = run.practice("tuning").value
    assert isinstance(value, Unknown)
    assert set(value.candidates) == {"lora", "full"}


def test_a_value_that_is_to_be_filled_in_does_not_end_the_script(runs_in: MakeRuns) -> None:
    script = 'DATA=""\nif [ -z "$DATA" ]; then echo "set DATA"; exit 1; fi\nswift sft --model m\n'
    (run,) = runs_in({"train.sh": script})
    assert run.model.name == "m"


def test_case_on_a_known_value(runs_in: MakeRuns) -> None:
    script = (
        "SIZE=7b\ncase $SIZE in\n  7b|8b) BATCH=4 ;;\n  *) BATCH=1 ;;\nesac\n"
        "swift sft --model m --per_device_train_batch_size $BATCH\n"
    )
    (run,) = runs_in({"train.sh": script})
    assert run.value("micro_batch_size") == 4


def test_flags_behind_a_comment_make_the_run_open(runs_in: MakeRuns) -> None:
    script = "swift sft \\\n  --model m \\\n  # --lora_rank 8 \\\n  --bf16 true\n"
    (run,) = runs_in({"train.sh": script})
    assert run.is_open


# --- scripts out of sight, globals, Hydra ----------------------------------------------------


def test_llamafactory_is_told_by_its_flags(runs_in: MakeRuns) -> None:
    command = (
        "deepspeed --num_gpus 8 ../LLaMA-Factory/src/train.py --stage sft --do_train "
        "--finetuning_type lora --per_device_train_batch_size 2\n"
    )
    (run,) = runs_in({"train.sh": command})
    assert (run.framework, run.kind, run.launcher.world_size) == (
        "llamafactory",
        RunKind.TRAIN,
        8,
    )
    assert run.value("micro_batch_size") == 2


GLOBALS = """\
import torch
batch_size = 12
gradient_accumulation_steps = 8
compile = True
exec(open("configurator.py").read())
if compile:
    model = torch.compile(model)
""" + LOOP.replace(
    "    optimizer.step", "    if step % gradient_accumulation_steps == 0:\n        optimizer.step"
)


def test_globals_are_the_defaults_of_a_script_that_executes_overrides(runs_in: MakeRuns) -> None:
    (run,) = runs_in({"train.py": GLOBALS, "configurator.py": "import sys\n"})
    assert run.value("micro_batch_size") == 12
    assert run.value("gradient_accumulation_steps") == 8
    assert run.value("torch_compile") is True


def test_files_and_flags_override_globals(runs_in: MakeRuns) -> None:
    (run,) = runs_in(
        {
            "train.py": GLOBALS,
            "config/small.py": "batch_size = 32\ngradient_accumulation_steps = 1\n",
            "go.sh": "python train.py config/small.py --compile=False --batch_size=64\n",
        }
    )
    assert run.value("micro_batch_size") == 64
    assert run.value("gradient_accumulation_steps") == 1
    assert run.value("torch_compile") is False


HYDRA = """\
import hydra, torch
from torch.utils.data import DataLoader

@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    loader = DataLoader(data, batch_size=cfg.trainer.batch_size, num_workers=cfg.data.workers)
    for batch in loader:
        loss = model(batch)
        loss.backward()

if __name__ == "__main__":
    main()
"""
CONF = {
    "train.py": HYDRA,
    "conf/config.yaml": "defaults:\n  - trainer: small\n  - _self_\ndata:\n  workers: 3\n",
    "conf/trainer/small.yaml": "batch_size: 16\n",
    "conf/trainer/big.yaml": "batch_size: 64\n",
}


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [("", (16, 3)), ("trainer=big", (64, 3)), ("data.workers=6 trainer.batch_size=2", (2, 6))],
)
def test_hydra_composes_files_and_overrides(
    runs_in: MakeRuns, overrides: str, expected: tuple[int, int]
) -> None:
    (run,) = runs_in({**CONF, "go.sh": f"python train.py {overrides}\n"})
    assert (run.value("micro_batch_size"), run.value("dataloader_workers")) == expected
    assert "conf/config.yaml" in run.files


def test_hydra_configurations_that_include_each_other_come_to_an_end(runs_in: MakeRuns) -> None:
    files = {**CONF, "conf/config.yaml": "defaults:\n  - config\n  - config\ndata:\n  workers: 3\n"}
    (run,) = runs_in({**files, "go.sh": "python train.py\n"})
    assert run.value("dataloader_workers") == 3


# --- hardware and secrets ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gres", "gpu", "architecture"),
    [("gpu:a100:8", None, "Ampere"), ("gpu:h100:8", "H100", "Hopper"), ("gpu:8", None, None)],
)
def test_an_architecture_is_known_where_the_memory_is_not(
    runs_in: MakeRuns, gres: str, gpu: str, architecture: str
) -> None:
    (run,) = runs_in({"a.slurm": f"#!/bin/bash\n#SBATCH --gres={gres}\nswift sft --model m\n"})
    assert run.hardware.gpus_per_node == 8
    assert run.hardware.gpu == gpu
    assert run.hardware.architecture == architecture


def test_secrets_are_not_carried(runs_in: MakeRuns) -> None:
    (run,) = runs_in(
        {
            "train.sh": "export WANDB_API_KEY=0123456789abcdef\n"
            "swift sft --model m --hub_token topsecret1 --swanlab_token=topsecret2 "
            "--note $WANDB_API_KEY --url https://me:topsecret3@host/x\n"
        }
    )
    for setting in (*run.settings.values(), *run.environment.values(), *run.overridden):
        shown = f"{setting.value if known(setting.value) else ''} {setting.text} {setting.note}"
        assert "topsecret" not in shown
        if setting.name in ("hub_token", "swanlab_token", "WANDB_API_KEY"):
            assert setting.value == Unknown("secret")
    text = shown_command(run)
    assert "topsecret" not in text
    assert "0123456789abcdef" not in text
    assert text.startswith("swift sft --model m --hub_token ***")


@pytest.mark.parametrize(
    "name", ["eos_token", "max_tokens", "sort_key", "PWD", "image_token", "key"]
)
def test_names_that_only_look_like_secrets(name: str) -> None:
    assert not is_secret(name)


def test_videox_fun_is_told_by_its_script_and_flags(runs_in: MakeRuns) -> None:
    command = (
        "accelerate launch --num_processes 2 ../VideoX-Fun/scripts/wan2.1/train_lora.py "
        "--train_data_meta=data/m.json --train_batch_size=1 --rank=64\n"
    )
    (run,) = runs_in({"train.sh": command})
    assert (run.framework, run.launcher.world_size) == ("videox_fun", 2)
    assert run.value("tuning") == "lora"


@pytest.mark.parametrize(
    "script", ["../other/scripts/flux/train.py --lr 1", "../VideoX-Fun/scripts/wan2.1/predict.py"]
)
def test_other_scripts_out_of_sight_are_no_runs(runs_in: MakeRuns, script: str) -> None:
    assert runs_in({"train.sh": f"accelerate launch {script}\n"}) == ()


# --- values passed into the project's functions -----------------------------------------------

PASSING = """\
import argparse
from torch.utils.data import DataLoader

def make_loader(data, size, workers=2):
    return DataLoader(data, batch_size=size, num_workers=workers)

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=8)
    args = parser.parse_args()
    for batch in {call}:
        loss = model(batch)
        loss.backward()

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("call", "flags", "expected"),
    [
        ("make_loader(data, args.batch_size)", "", (8, 2)),
        ("make_loader(data, args.batch_size, workers=6)", "--batch-size 32", (32, 6)),
        ("make_loader(data, 4, 0)", "", (4, 0)),
        ("make_loader(data, guess())", "", (None, 2)),
        ("make_loader(*several)", "", (None, None)),
    ],
)
def test_a_loader_gets_what_its_function_is_called_with(
    runs_in: MakeRuns, call: str, flags: str, expected: tuple[object, object]
) -> None:
    files = {"train.py": PASSING.replace("{call}", call), "go.sh": f"python train.py {flags}\n"}
    (run,) = runs_in(files)
    assert (run.value("micro_batch_size"), run.value("dataloader_workers")) == expected


def test_callers_that_disagree_leave_candidates(runs_in: MakeRuns) -> None:
    text = PASSING.replace("{call}", "make_loader(data, 4, 1)") + "\nmake_loader(data, 4, 3)\n"
    (run,) = runs_in({"train.py": text})
    assert run.practice("dataloader_workers").value == Unknown("workers", (1, 3))


def test_a_value_is_followed_through_a_function_between(runs_in: MakeRuns) -> None:
    through = "def between(size):\n    return make_loader(data, size, 6)\n\ndef main():"
    text = PASSING.replace("{call}", "between(args.batch_size)").replace("def main():", through)
    (run,) = runs_in({"train.py": text, "go.sh": "python train.py --batch-size 24\n"})
    assert (run.value("micro_batch_size"), run.value("dataloader_workers")) == (24, 6)
    (run,) = runs_in({"train.py": f"{text}\nbetween(48)\n"})
    assert run.value("micro_batch_size") is None


def test_functions_that_call_each_other_end_the_search(runs_in: MakeRuns) -> None:
    circle = "def between(size):\n    between(size)\n    return make_loader(data, size)\n\n"
    text = PASSING.replace("{call}", "between(guess())").replace(
        "def main():", f"{circle}def main():"
    )
    (run,) = runs_in({"train.py": text})
    assert run.value("micro_batch_size") is None


def test_attributes_of_a_data_module_come_from_its_construction(runs_in: MakeRuns) -> None:
    module = """\
import lightning as L
from torch.utils.data import DataLoader

class Data(L.LightningDataModule):
    def __init__(self, size, workers):
        super().__init__()
        self.size, self.workers = size, workers

    def train_dataloader(self):
        return DataLoader(self.rows, batch_size=self.size, num_workers=self.workers)

L.Trainer(devices=2).fit(model, datamodule=Data(16, workers=5))
"""
    (run,) = runs_in({"train.py": module})
    assert (run.value("micro_batch_size"), run.value("dataloader_workers")) == (16, 5)


@pytest.mark.parametrize("data", [b"def f(:", b"\0", b"x = " + b"(" * 5000, b"\xff\xfe"])
def test_signatures_of_what_does_not_parse_are_empty(data: bytes) -> None:
    assert read_signatures(data) == Signatures()


# --- names of their own ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "start",
    [
        "torchrun --master_port 29500 --nproc_per_node=4 --nnodes=2 swift/cli/sft.py",
        "accelerate launch --config_file a.yaml --machine_rank 0 swift/cli/sft.py",
        "python -m swift.cli.sft",
    ],
)
def test_what_swift_does_is_told_behind_any_launcher(runs_in: MakeRuns, start: str) -> None:
    (run,) = runs_in({"train.sh": f"{start} --model m --tuner_type lora\n"})
    assert run.value("algorithm") == "sft"


def test_a_script_may_have_its_own_switch_for_checkpointing(runs_in: MakeRuns) -> None:
    script = """\
from dataclasses import dataclass
from transformers import HfArgumentParser, Trainer, TrainingArguments

@dataclass
class ModelArguments:
    grad_checkpoint: bool = False

parser = HfArgumentParser((ModelArguments, TrainingArguments))
model_args, args = parser.parse_args_into_dataclasses()
Trainer(model=m, args=args).train()
"""
    (run,) = runs_in({"train.py": script, "go.sh": "torchrun train.py --grad_checkpoint True\n"})
    assert run.value("gradient_checkpointing") is True


def test_a_module_is_sought_only_as_far_as_folders_go(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import missing\n")
    reach = Reach(Project.open(tmp_path))
    assert reach.module("missing", 0, "//project/scripts/train.py") is None
    assert reach.module("missing", 0, "/scripts/train.py") is None


@pytest.mark.parametrize(
    ("other", "is_shared"), [("rlhf a.yaml --rlhf_type dpo", True), ("sft a.yaml", False)]
)
def test_a_file_of_two_subcommands_is_left_to_both(
    tmp_path: Path, other: str, is_shared: bool
) -> None:
    (tmp_path / "a.yaml").write_text("model: Qwen/Qwen2.5-7B-Instruct\ndataset: a.jsonl\n")
    (tmp_path / "a.sh").write_text("swift sft a.yaml\n")
    (tmp_path / "b.sh").write_text(f"swift {other}\n")
    runs = find_runs(Project.open(tmp_path))
    kinds = {run.place.kind for run in runs}
    assert kinds == {PlaceKind.FLAGS if is_shared else PlaceKind.YAML}
