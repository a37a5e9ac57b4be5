"""Runs: what is a job, which files it is made of, and which setting wins."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Callable

import pytest

from flake8_gpu_training.facts import Origin, Unknown, known
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import commands_of, find_runs, run_of_file
from flake8_gpu_training.runs.model import PlaceKind, Run, RunKind
from flake8_gpu_training.sources.python import read_python

FIXTURES = Path(__file__).parent.parent / "fixtures"

MakeRuns = Callable[..., tuple[Run, ...]]

TRAINER_SCRIPT = """\
import argparse
from transformers import Trainer, TrainingArguments

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", "-l", type=float, default=1e-5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--no-bf16", dest="bf16", action="store_false")
    args = parser.parse_args()
    training_args = TrainingArguments(
        output_dir="out",
        learning_rate=args.lr,
        dataloader_num_workers=args.workers,
        bf16=args.bf16,
    )
    training_args.logging_steps = 10
    Trainer(model=None, args=training_args).train()

if __name__ == "__main__":
    main()
"""

PARSER_SCRIPT = """\
from dataclasses import dataclass, field
from transformers import HfArgumentParser, Trainer, TrainingArguments

@dataclass
class OurArguments(TrainingArguments):
    bf16: bool = True
    dataloader_num_workers: int = field(default=8)

@dataclass
class ModelArguments:
    model_name_or_path: str = "Qwen/Qwen2.5-7B"

def main():
    parser = HfArgumentParser((ModelArguments, OurArguments))
    model_args, training_args = parser.parse_args_into_dataclasses()
    Trainer(model=None, args=training_args).train()

main()
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
    def make(files: Mapping[str, str], launch_command: str | None = None) -> tuple[Run, ...]:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return find_runs(Project.open(tmp_path), launch_command)

    return make


def values(run: Run) -> dict[str, object]:
    return {name: setting.value for name, setting in run.settings.items()}


# --- what is a run ------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "pip install transformers",
        "python prepare.py --workers 8",
        "pytest tests",
        "swift upload container file",
        "accelerate config",
        "python -c 'import torch'",
        "vllm --version",
        "ff-train --help",
        "torchrun --nproc_per_node 8 missing.py",
    ],
)
def test_commands_that_neither_train_nor_serve_are_no_runs(runs_in: MakeRuns, command: str) -> None:
    assert runs_in({"run.sh": command, "prepare.py": "import json\nprint(json)\n"}) == ()


@pytest.mark.parametrize(
    ("command", "framework", "kind", "launcher"),
    [
        ("swift sft --model a", "swift", RunKind.TRAIN, "swift"),
        ("swift infer --model a", "swift", RunKind.INFER, "swift"),
        ("swift deploy --model a", "swift", RunKind.SERVE, "swift"),
        ("megatron sft --model a", "swift", RunKind.TRAIN, "megatron"),
        (
            "torchrun --nproc_per_node 2 swift/cli/sft.py --model a",
            "swift",
            RunKind.TRAIN,
            "torchrun",
        ),
        ("deepspeed swift/cli/rlhf.py --model a", "swift", RunKind.TRAIN, "deepspeed"),
        ("llamafactory-cli train --stage sft", "llamafactory", RunKind.TRAIN, "llamafactory"),
        (
            "python -m llamafactory.cli train --stage sft",
            "llamafactory",
            RunKind.TRAIN,
            "llamafactory",
        ),
        ("vllm serve meta-llama/Llama-3.1-8B", "vllm", RunKind.SERVE, "vllm"),
        (
            "python3 -m vllm.entrypoints.openai.api_server --model a",
            "vllm",
            RunKind.SERVE,
            "vllm",
        ),
        ("python -m sglang.launch_server --model-path a", "sglang", RunKind.SERVE, "sglang"),
        ("trl sft --model_name_or_path a", "hf_trainer", RunKind.TRAIN, "trl"),
        ("python -u -m torch.distributed.run train.py", "hf_trainer", RunKind.TRAIN, "torchrun"),
        ("python -m torch.distributed.launch train.py", "hf_trainer", RunKind.TRAIN, "torchrun"),
        ("accelerate launch --multi_gpu train.py", "hf_trainer", RunKind.TRAIN, "accelerate"),
        ("python -W ignore train.py", "hf_trainer", RunKind.TRAIN, "python"),
        ("python loop.py", "generic", RunKind.TRAIN, "python"),
        (
            "python3 -m verl.trainer.main_ppo trainer.n_gpus_per_node=8",
            "generic",
            RunKind.TRAIN,
            "ray",
        ),
    ],
)
def test_launch_commands_are_runs_of_their_framework(
    runs_in: MakeRuns, command: str, framework: str, kind: RunKind, launcher: str
) -> None:
    runs = runs_in({"run.sh": command, "train.py": TRAINER_SCRIPT, "loop.py": LOOP})
    run = next(run for run in runs if run.command is not None)
    assert (run.framework, run.kind, run.launcher.name) == (framework, kind, launcher)
    assert run.id == "run.sh:1"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("Makefile", "train:\n\tswift sft --model a\n"),
        ("Dockerfile", 'FROM python:3.11\nCMD ["swift", "sft", "--model", "a"]\n'),
        (
            "job.yaml",
            "apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    spec:\n      containers:\n"
            "      - name: c\n        image: x\n"
            "        command: [swift, sft, --model, a]\n",
        ),
        (
            "start.py",
            "import subprocess\nsubprocess.run(['swift', 'sft', '--model', 'a'], check=True)\n",
        ),
        (
            "note.ipynb",
            json.dumps(
                {
                    "cells": [
                        {
                            "cell_type": "code",
                            "metadata": {},
                            "outputs": [],
                            "execution_count": None,
                            "source": ["!swift sft --model a"],
                        }
                    ],
                    "metadata": {},
                    "nbformat": 4,
                    "nbformat_minor": 5,
                }
            ),
        ),
    ],
)
def test_commands_are_found_wherever_they_stand(runs_in: MakeRuns, path: str, text: str) -> None:
    (run,) = runs_in({path: text})
    assert (run.framework, run.location.path, run.settings["model"].value) == ("swift", path, "a")


@pytest.mark.parametrize(
    ("text", "framework", "kind"),
    [
        (
            "stage: sft\ndo_train: true\nfinetuning_type: lora\nmodel_name_or_path: a\n",
            "llamafactory",
            RunKind.TRAIN,
        ),
        (
            "stage: sft\ndo_predict: true\nfinetuning_type: lora\nmodel_name_or_path: a\n",
            "llamafactory",
            RunKind.INFER,
        ),
        ("model: a\ntuner_type: lora\ndataset: [b]\n", "swift", RunKind.TRAIN),
        (
            "model:\n  finetune_type: lora\n  model_type: flux1\ntrain:\n  trainer_type: grpo\n",
            "flow_factory",
            RunKind.TRAIN,
        ),
        (
            "model_name_or_path: a\nlearning_rate: 1e-4\noutput_dir: b\n",
            "hf_trainer",
            RunKind.TRAIN,
        ),
    ],
)
def test_configuration_files_of_known_shape_are_runs(
    runs_in: MakeRuns, text: str, framework: str, kind: RunKind
) -> None:
    (run,) = runs_in({"conf/run.yaml": text})
    assert (run.framework, run.kind, run.place.kind) == (framework, kind, PlaceKind.YAML)


@pytest.mark.parametrize(
    "text",
    [
        "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_processes: 8\n",
        "zero_optimization:\n  stage: 2\n",
        "model: a\nservices: [b]\n",
        "- 1\n- 2\n",
    ],
)
def test_other_configuration_files_are_no_runs(runs_in: MakeRuns, text: str) -> None:
    assert runs_in({"conf/run.yaml": text}) == ()


def test_a_configuration_that_a_command_names_is_one_run(runs_in: MakeRuns) -> None:
    (run,) = runs_in(
        {
            "run.sh": "llamafactory-cli train conf/run.yaml",
            "conf/run.yaml": "stage: sft\ndo_train: true\nfinetuning_type: lora\n",
        }
    )
    assert run.files == ("run.sh", "conf/run.yaml")


def test_scripts_without_a_launcher_are_runs_and_the_modules_they_import_are_not(
    runs_in: MakeRuns,
) -> None:
    (run,) = runs_in(
        {
            "main.py": "import torch\nfrom lib.engine import fit\n\n"
            "if __name__ == '__main__':\n    fit().backward()\n",
            "lib/__init__.py": "",
            "lib/engine.py": "import torch\n\ndef fit():\n"
            + LOOP.replace("\n", "\n    ").replace("import torch", "    pass"),
        }
    )
    assert run.files == ("main.py", "lib/engine.py")


def test_tests_and_documents_are_no_runs_beside_real_ones(runs_in: MakeRuns) -> None:
    runs = runs_in(
        {
            "run.sh": "swift sft --model a",
            "docs/run.sh": "swift sft --model b",
            "tests/test_train.py": TRAINER_SCRIPT,
        }
    )
    assert [run.id for run in runs] == ["run.sh:1"]


def test_runs_of_one_line_have_ids_of_their_own(runs_in: MakeRuns) -> None:
    runs = runs_in({"run.sh": "swift sft --model a; swift sft --model b"})
    assert len({run.id for run in runs}) == 2


# --- settings and their precedence -----------------------------------------------------


def test_command_line_values_are_typed(runs_in: MakeRuns) -> None:
    (run,) = runs_in(
        {
            "run.sh": "swift sft --a 1 --b=2.5e-4 --c true --d --e x y --f -1 "
            "--g '{\"k\": 1}' --h-i 007x"
        }
    )
    assert values(run) == {
        "a": 1,
        "b": 2.5e-4,
        "c": True,
        "d": True,
        "e": ["x", "y"],
        "f": -1,
        "g": {"k": 1},
        "h_i": "007x",
    }


def test_a_literal_value_has_its_place_and_an_expanded_one_has_none(runs_in: MakeRuns) -> None:
    (run,) = runs_in({"run.sh": 'M=a\nswift sft --model $M --lr=1e-4 --x "b"'})
    assert run.settings["model"].value == "a"
    assert run.settings["model"].value_location is None
    place = run.settings["lr"].value_location
    assert place is not None
    assert (place.line, place.column) == (2, 27)
    assert run.settings["lr"].text == "1e-4"
    assert run.settings["x"].text == '"b"'


def test_the_last_use_of_a_flag_wins(runs_in: MakeRuns) -> None:
    (run,) = runs_in({"run.sh": "swift sft --lr 1 --lr 2"})
    assert run.settings["lr"].value == 2
    assert [setting.value for setting in run.overridden] == [1]


@pytest.mark.parametrize("rest", ['"$@"', "$EXTRA_ARGS", "$(cat flags)", '"${ARGS[@]}"'])
def test_unknown_words_open_a_run(runs_in: MakeRuns, rest: str) -> None:
    (run,) = runs_in({"run.sh": f"swift sft --model a --bf16 {rest}"})
    assert run.is_open
    assert run.settings["bf16"].value is True


@pytest.mark.parametrize("value", ["$1", '"$OPTIM"', "$TARGET", "$PARAMETRIZATION"])
def test_an_unknown_value_is_carried_and_does_not_open_a_run(runs_in: MakeRuns, value: str) -> None:
    (run,) = runs_in({"run.sh": f"swift sft --model {value} --lr 1"})
    assert not known(run.settings["model"].value)
    assert not run.is_open


def test_the_command_line_wins_over_the_file(runs_in: MakeRuns) -> None:
    (run,) = runs_in(
        {
            "run.sh": "llamafactory-cli train run.yaml learning_rate=1e-4",
            "run.yaml": "stage: sft\ndo_train: true\nlearning_rate: 5e-5\nlora_rank: 8\n",
        }
    )
    assert run.settings["learning_rate"].origin is Origin.FLAG
    assert run.settings["lora_rank"].origin is Origin.FILE
    assert [setting.name for setting in run.overridden] == ["learning_rate"]
    assert run.place.kind is PlaceKind.YAML


def test_llamafactory_takes_no_pairs_where_it_is_given_flags(runs_in: MakeRuns) -> None:
    (run,) = runs_in(
        {"run.sh": "llamafactory-cli train --stage sft --lr_scheduler_kwargs num_cycles=1"}
    )
    assert run.settings["lr_scheduler_kwargs"].value == "num_cycles=1"
    assert "num_cycles" not in run.settings


def test_a_flag_reaches_the_constructor_through_argparse(runs_in: MakeRuns) -> None:
    (run,) = runs_in({"run.sh": "python train.py -l 3e-4 --no-bf16", "train.py": TRAINER_SCRIPT})
    assert values(run) == {
        "output_dir": "out",
        "learning_rate": 3e-4,
        "dataloader_num_workers": 2,
        "bf16": False,
        "logging_steps": 10,
    }
    origins = {name: setting.origin for name, setting in run.settings.items()}
    assert origins["learning_rate"] is Origin.FLAG
    assert origins["dataloader_num_workers"] is Origin.DEFAULT
    assert origins["output_dir"] is Origin.CONSTRUCTOR
    assert run.place.kind is PlaceKind.PYTHON
    assert run.place.call is not None
    assert not run.is_open


def test_parameters_that_a_trainer_takes_itself_are_settings() -> None:
    text = (
        "from transformers import TrainingArguments\nfrom trl import SFTTrainer\n"
        "SFTTrainer(model, packing=True, args=TrainingArguments('x', bf16=True)).train()\n"
    )
    (run,) = run_of_file(read_python(text, "sft.py"))
    assert values(run) == {"output_dir": "x", "bf16": True, "packing": True}


@pytest.mark.parametrize(
    ("module", "frameworks"),
    [("trl", ["hf_trainer"]), ("swift.trainers", ["swift"]), ("ours.settings", [])],
)
def test_an_argument_class_counts_by_where_it_comes_from(
    module: str, frameworks: list[str]
) -> None:
    text = f"from {module} import SFTConfig\nargs = SFTConfig(bf16=True)\n"
    assert [run.framework for run in run_of_file(read_python(text, "a.py"))] == frameworks


def test_unread_arguments_make_option_defaults_unknown(runs_in: MakeRuns) -> None:
    (run,) = runs_in({"run.sh": 'python train.py "$@"', "train.py": TRAINER_SCRIPT})
    assert not known(run.settings["learning_rate"].value)
    assert run.settings["output_dir"].value == "out"


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("args.lr = 0.1", 0.1),
        ("args.lr = args.lr / 4", 0.25),
        ("args.lr = schedule(args)", Unknown),
        ("if gpu_is_old():\n        args.lr = 0.1", Unknown),
    ],
)
def test_an_assignment_to_the_namespace_counts(
    runs_in: MakeRuns, statement: str, value: object
) -> None:
    script = TRAINER_SCRIPT.replace(
        "args = parser.parse_args()\n", f"args = parser.parse_args()\n    {statement}\n"
    )
    (run,) = runs_in({"run.sh": "python train.py --lr 1", "train.py": script})
    found = run.settings["learning_rate"].value
    assert isinstance(found, Unknown) if value is Unknown else found == value


def test_flags_of_an_argument_parser_win_over_dataclass_defaults(runs_in: MakeRuns) -> None:
    (run,) = runs_in(
        {
            "run.sh": "torchrun --nproc-per-node=4 train.py \\\n"
            "  --bf16 False --no_dataloader_pin_memory",
            "train.py": PARSER_SCRIPT,
        }
    )
    assert values(run) == {
        "bf16": False,
        "dataloader_pin_memory": False,
        "dataloader_num_workers": 8,
        "model_name_or_path": "Qwen/Qwen2.5-7B",
    }
    assert (run.place.kind, run.is_open) == (PlaceKind.FLAGS, False)


def test_an_argument_parser_without_a_command_is_open(runs_in: MakeRuns) -> None:
    (run,) = runs_in({"train.py": PARSER_SCRIPT})
    assert run.is_open


def test_keywords_of_unknown_content_open_a_run(runs_in: MakeRuns) -> None:
    script = TRAINER_SCRIPT.replace("bf16=args.bf16,", "**load_extra(),")
    (run,) = runs_in({"train.py": script})
    assert run.is_open


def test_values_that_the_command_line_decides_reach_the_calls(runs_in: MakeRuns) -> None:
    script = (
        "import argparse\nfrom torch.utils.data import DataLoader\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--workers', type=int, default=0)\n"
        "args = parser.parse_args()\n"
        "loader = DataLoader([], num_workers=args.workers)\n" + LOOP
    )
    (run,) = runs_in({"run.sh": "python train.py --workers 6", "train.py": script})
    (call,) = run.python[0].calls_to("torch.utils.data.DataLoader")
    assert call.keywords["num_workers"].value == 6


def test_a_negated_engine_flag_keeps_its_name_and_says_what_it_means(runs_in: MakeRuns) -> None:
    (run,) = runs_in({"run.sh": "vllm serve --enforce-eager a/b --no-enable-prefix-caching"})
    assert run.settings["model"].value == "a/b"
    assert run.settings["no_enable_prefix_caching"].value is True
    assert run.settings["enable_prefix_caching"].value is False


@pytest.mark.parametrize(("word", "is_open"), [("$MODEL", False), ("$ARGS", True)])
def test_an_unknown_word_in_the_place_of_a_served_model_is_the_model(
    runs_in: MakeRuns, word: str, is_open: bool
) -> None:
    (run,) = runs_in({"run.sh": f"vllm serve {word} --max-model-len 8"})
    assert run.is_open is is_open
    assert ("model" in run.settings) is not is_open


# --- linked files -------------------------------------------------------------------------


def test_deepspeed_files_are_linked_from_flag_file_constructor_and_heredoc(
    runs_in: MakeRuns,
) -> None:
    stage = '{"zero_optimization": {"stage": 3}}'
    script = (
        "from transformers import Trainer, TrainingArguments\n"
        "args = TrainingArguments('out', deepspeed='conf/ds.json')\n"
        "Trainer(args=args).train()\n"
    )
    literal = script.replace("'conf/ds.json'", "{'zero_optimization': {'stage': 3}}")
    runs = runs_in(
        {
            "conf/ds.json": stage,
            "a.sh": "swift sft --deepspeed conf/ds.json",
            "b.yaml": "stage: sft\nfinetuning_type: full\ndo_train: true\nmodel_name_or_path: a/b\n"
            "deepspeed: conf/ds.json\n",
            "c.py": script,
            "d.py": literal,
            "e.sh": f"cat > /tmp/ds.json <<EOF\n{stage}\nEOF\nswift sft --deepspeed /tmp/ds.json",
            "f.sh": f"swift sft --deepspeed '{stage}'",
        }
    )
    found = {
        run.location.path: run.deepspeed.get("zero_optimization.stage") if run.deepspeed else None
        for run in runs
    }
    assert set(found) == {"a.sh", "b.yaml", "c.py", "d.py", "e.sh", "f.sh"}
    assert all(node is not None and node.value == 3 for node in found.values())
    written = next(run for run in runs if run.location.path == "e.sh").deepspeed
    assert written is not None
    node = written.get("zero_optimization.stage")
    assert node is not None
    assert (node.location.path, node.location.line) == ("e.sh", 2)


def test_an_fsdp_file_is_read_under_the_name_of_its_parameter(runs_in: MakeRuns) -> None:
    (run,) = runs_in(
        {
            "run.sh": "torchrun --nproc_per_node 8 train.py --fsdp full_shard --fsdp_config f.json",
            "train.py": PARSER_SCRIPT,
            "f.json": '{"activation_checkpointing": true}',
        }
    )
    assert run.settings["fsdp_config.activation_checkpointing"].value is True
    assert "f.json" in run.files


def test_accelerate_options_are_flags_over_the_file(runs_in: MakeRuns) -> None:
    (run,) = runs_in(
        {
            "run.sh": "accelerate launch --config_file acc.yaml --num_processes 4 train.py",
            "acc.yaml": "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\n"
            "num_processes: 8\nmixed_precision: bf16\ndeepspeed_config:\n"
            "  deepspeed_config_file: ds.json\n",
            "ds.json": '{"zero_optimization": {"stage": 1}}',
            "train.py": TRAINER_SCRIPT,
        }
    )
    assert run.accelerate is not None
    assert run.deepspeed is not None
    assert run.launcher.processes.value == 4
    assert run.launcher.options["mixed_precision"].value == "bf16"


def test_a_script_is_found_from_the_folder_the_command_changed_to(runs_in: MakeRuns) -> None:
    (run,) = runs_in(
        {"scripts/run.sh": "cd ../src\npython train.py\n", "src/train.py": TRAINER_SCRIPT}
    )
    assert run.entry == "src/train.py"


def test_imports_that_run_in_a_circle_end(runs_in: MakeRuns) -> None:
    (run,) = runs_in(
        {"run.sh": "python a.py", "a.py": f"import b\n{LOOP}", "b.py": "import a\nimport torch\n"}
    )
    assert run.files == ("run.sh", "a.py", "b.py")


def test_pinned_versions_reach_the_run_and_ranges_do_not(runs_in: MakeRuns) -> None:
    (run,) = runs_in(
        {
            "run.sh": "pip install ms-swift==3.9.1\nswift sft --model a",
            "requirements.txt": "transformers==4.46.0\ntorch>=2.4\npeft~=0.13.0\n",
        }
    )
    assert dict(run.versions) == {
        "ms-swift": "3.9.1",
        "transformers": "4.46.0",
        "peft": "0.13.0",
    }


# --- processes and hardware -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "processes", "nodes"),
    [
        ("torchrun --nproc_per_node=8 --nnodes 2 train.py", 8, 2),
        ("torchrun train.py", 1, 1),
        ("CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node gpu train.py", 2, 1),
        ("torchrun --nproc_per_node auto train.py", None, 1),
        ("torchrun --nnodes 1:4 --nproc_per_node 8 train.py", 8, None),
        ("accelerate launch --num_processes 16 --num_machines 2 train.py", 8, 2),
        ("accelerate launch train.py", None, 1),
        ("deepspeed --num_gpus 4 train.py", 4, 1),
        ("deepspeed --include localhost:0,2 train.py", 2, 1),
        ("deepspeed --hostfile hosts train.py", 8, 2),
        ("accelerate launch --config_file missing.yaml train.py", None, None),
        ("accelerate launch --num_processes 4 --num_machines 0 train.py", None, 0),
        ("python train.py", 1, 1),
        ("python spawn.py", 4, 1),
        ("python lightning.py", 2, 3),
        ("NPROC_PER_NODE=4 NNODES=2 swift sft --model a", 4, 2),
        ("swift sft --model a", 1, 1),
        ("swift sft --model a --use_ray true", None, None),
        ("ff-train flow.yaml", 4, 2),
        ("CUDA_VISIBLE_DEVICES=0,1,2 llamafactory-cli train --stage sft", 3, 1),
        ("vllm serve a --tensor-parallel-size 4 -pp 1 --pipeline-parallel-size 2", 8, 1),
        (
            "#SBATCH --nodes=4\n#SBATCH --gpus-per-node=8\n"
            "srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 train.py",
            8,
            4,
        ),
        ("#SBATCH -N 2\n#SBATCH --ntasks-per-node=4\nsrun python train.py", 4, 2),
    ],
)
def test_processes_and_nodes_are_counted_as_the_launcher_counts(
    runs_in: MakeRuns, script: str, processes: int | None, nodes: int | None
) -> None:
    runs = runs_in(
        {
            "run.sh": f"#!/bin/bash\n{script}\n",
            "flow.yaml": "config_file: acc.yaml\nnum_processes: 8\nnum_machines: 2\n",
            "acc.yaml": "distributed_type: FSDP\nnum_processes: 1\n",
            "hosts": "worker-0 slots=8\nworker-1 slots=8\n",
            "train.py": TRAINER_SCRIPT,
            "spawn.py": f"{LOOP}\nimport torch.multiprocessing as mp\nmp.spawn(fit, nprocs=4)\n",
            "lightning.py": "import lightning as L\nL.Trainer(devices=2, num_nodes=3).fit(model)\n",
        }
    )
    run = next(run for run in runs if run.command is not None)
    counted = (run.launcher.processes.value, run.launcher.nodes.value)
    assert tuple(value if known(value) else None for value in counted) == (processes, nodes)


def test_hardware_is_what_the_job_asks_for(runs_in: MakeRuns) -> None:
    (run,) = runs_in(
        {
            "run.sh": "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gres=gpu:h100:8\n"
            "srun torchrun --nproc_per_node 8 --nnodes 2 train.py\n",
            "train.py": TRAINER_SCRIPT,
        }
    )
    assert (run.hardware.gpus_per_node, run.hardware.nodes) == (8, 2)
    assert run.hardware.gpu is not None
    assert run.hardware.gpu.startswith("H100")
    assert not run.hardware.weak


def test_a_comment_about_the_gpu_is_weak_evidence(runs_in: MakeRuns) -> None:
    (run,) = runs_in({"run.sh": "# 4 * A100-80G\nNPROC_PER_NODE=4 swift sft --model a\n"})
    assert (run.hardware.gpu, run.hardware.weak) == ("A100-80G", True)


# --- the primary run -----------------------------------------------------------------------


def test_the_launch_command_chooses_the_primary_run(runs_in: MakeRuns) -> None:
    files = {
        "a.sh": "swift sft --model a --lora_rank 8 --max_length 1",
        "b.sh": "swift sft --model b",
    }
    assert runs_in(files)[0].id == "a.sh:1"
    assert runs_in(files, "bash b.sh")[0].id == "b.sh:1"
    assert runs_in(files, "swift  sft --model b")[0].id == "b.sh:1"
    other = runs_in(files, "swift sft --model c")
    assert other[0].settings["model"].value == "c"
    assert [run.primary for run in other] == [True, False, False]


def test_a_launch_command_may_be_given_in_a_folder_of_the_project(runs_in: MakeRuns) -> None:
    runs = runs_in({"job/train.py": TRAINER_SCRIPT}, "torchrun --nproc_per_node 2 train.py")
    assert (runs[0].entry, runs[0].launcher.world_size) == ("job/train.py", 2)


def test_values_of_a_configuration_that_the_script_loads_reach_the_calls(
    runs_in: MakeRuns,
) -> None:
    script = (
        "import argparse\nimport yaml\nfrom torch.utils.data import DataLoader\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--config', default='conf/small.yaml')\n"
        "cfg = yaml.safe_load(open(parser.parse_args().config))\n"
        "loader = DataLoader([], num_workers=cfg['data']['workers'])\n" + LOOP
    )
    (run,) = runs_in(
        {
            "run.sh": "python train.py --config conf/big.yaml",
            "train.py": script,
            "conf/big.yaml": "data:\n  workers: 8\n",
            "conf/small.yaml": "data:\n  workers: 1\n",
        }
    )
    (call,) = run.python[0].calls_to("torch.utils.data.DataLoader")
    assert call.keywords["num_workers"].value == 8
    assert run.files == ("run.sh", "train.py", "conf/big.yaml")


def test_a_model_configuration_is_no_namespace(runs_in: MakeRuns) -> None:
    script = TRAINER_SCRIPT.replace("args.lr", "config.lr")
    (run,) = runs_in({"run.sh": "python train.py --lr 1", "train.py": script})
    assert not known(run.settings["learning_rate"].value)


def test_training_comes_before_serving_and_the_order_does_not_depend_on_chance(
    runs_in: MakeRuns,
) -> None:
    files = {
        "serve.sh": "vllm serve a --tensor-parallel-size 2 --max-model-len 100",
        "train.sh": "swift sft --model a",
        "examples/big.sh": "swift sft --model a --x 1 --y 2 --z 3",
    }
    assert [run.id for run in runs_in(files)] == ["train.sh:1", "examples/big.sh:1", "serve.sh:1"]
    assert runs_in(files) == runs_in(files)


# --- one file alone ---------------------------------------------------------------------------


def test_a_file_alone_is_read_without_its_launcher() -> None:
    (run,) = run_of_file(read_python(TRAINER_SCRIPT, "train.py"), versions={"transformers": "4.46"})
    assert run.single_file
    assert run.launcher.world_size is None
    assert run.versions == {"transformers": "4.46"}
    assert run.settings["learning_rate"].value == 1e-5


def test_a_framework_asked_for_leaves_out_the_others() -> None:
    file = read_python(LOOP, "loop.py")
    assert [run.framework for run in run_of_file(file)] == ["generic"]
    assert run_of_file(file, framework="swift") == ()


def test_files_without_training_have_no_runs() -> None:
    assert run_of_file(read_python("import torch\nprint(torch.ones(1))\n", "a.py")) == ()


def test_a_script_that_only_generates_is_no_training() -> None:
    text = (
        "from transformers import Seq2SeqTrainingArguments\nfrom vllm import LLM\n"
        "args = Seq2SeqTrainingArguments('x')\nllm = LLM(model='a', tensor_parallel_size=2)\n"
    )
    (run,) = run_of_file(read_python(text, "infer.py"))
    assert (run.framework, run.kind) == ("vllm", RunKind.INFER)
    assert values(run) == {"model": "a", "tensor_parallel_size": 2}


# --- real-looking projects ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("project", "run_id", "framework", "processes", "files"),
    [
        (
            "swift_lora_sft",
            "train.sh:11",
            "swift",
            4,
            ("train.sh", "configs/ds_z3_offload.json"),
        ),
        (
            "hf_trainer_sft",
            "run.sh:7",
            "hf_trainer",
            8,
            ("run.sh", "train.py", "configs/accelerate_ddp.yaml"),
        ),
        (
            "plain_ddp_vision",
            "train.slurm:8",
            "generic",
            4,
            ("train.slurm", "train.py", "vision/data.py"),
        ),
        (
            "llamafactory_sft",
            "train.sh:5",
            "llamafactory",
            8,
            ("train.sh", "configs/qwen_coder_lora.yaml", "configs/ds_z2.json"),
        ),
        ("vllm_serve", "serve.sh:5", "vllm", 4, ("serve.sh",)),
    ],
)
def test_each_fixture_is_one_run(
    project: str, run_id: str, framework: str, processes: int, files: tuple[str, ...]
) -> None:
    (run,) = find_runs(Project.open(FIXTURES / project))
    assert (run.id, run.framework, run.files) == (run_id, framework, files)
    assert run.launcher.processes.value == processes
    assert run.primary
    assert not run.is_open


def test_the_commands_of_a_project_are_those_of_all_its_scripts() -> None:
    names = [command.name for command in commands_of(Project.open(FIXTURES / "swift_lora_sft"))]
    assert "swift" in names


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("parser.parse_args(sys.argv[1:])", 4),
        ("parser.parse_args(sys.argv[1:] if len(sys.argv) > 1 else None)", 4),
        ("parser.parse_args(words())", Unknown),
        ("parser.parse_args(['--workers', '7'])", 7),
        ("parser.parse_known_args()[0]", 4),
    ],
)
def test_words_that_a_script_hands_to_its_parser(
    runs_in: MakeRuns, statement: str, value: object
) -> None:
    script = TRAINER_SCRIPT.replace("parser.parse_args()", statement).replace(
        "default=2", "default=4"
    )
    (run,) = runs_in({"run.sh": "python train.py --lr 3", "train.py": f"import sys\n{script}"})
    found = run.settings["dataloader_num_workers"].value
    assert isinstance(found, Unknown) if value is Unknown else found == value
    if value != 7:
        assert run.settings["learning_rate"].value == 3
