"""A launch command is followed into what it starts: the run is that one, with those values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Optional

import pytest

from flake8_gpu_training.facts import known
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import Run
from report_builder.report import Options, build

Launched = Callable[[dict[str, str], Optional[str]], Run]

TRAIN = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("org/model")
Trainer(model=model, args=args).train()
"""
BEST_WRITTEN = """\
torchrun --nproc_per_node 8 train.py --bf16 True --per_device_train_batch_size 16 \\
    --gradient_accumulation_steps 2 --learning_rate 1e-5 --save_steps 100 --logging_steps 5
"""


@pytest.fixture
def launched(tmp_path: Path) -> Launched:
    """The run that a launch command stands for in a project of ``files``."""

    def make(files: dict[str, str], command: Optional[str]) -> Run:
        for name, text in {"train.py": TRAIN, "other.sh": BEST_WRITTEN, **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return find_runs(Project.open(tmp_path), command)[0]

    return make


def _value(run: Run, name: str) -> Any:
    value = run.practice(name).value
    return value if known(value) else "unknown"


def _facts(run: Run) -> tuple[Any, ...]:
    return (run.launcher.world_size, _value(run, "micro_batch_size"), _value(run, "precision"))


def test_what_a_launched_script_starts_by_another_script_is_the_run(launched: Launched) -> None:
    files = {
        "all.sh": 'GPUS=2\nbash stage.sh "$GPUS" 4\nbash stage.sh "$GPUS" 6\n',
        "stage.sh": "torchrun --nproc_per_node $1 train.py --bf16"
        " --per_device_train_batch_size $2\n",
    }
    assert _facts(launched(files, "bash all.sh")) == (2, 4, "bf16")


def test_arguments_of_the_launch_command_reach_the_script(launched: Launched) -> None:
    files = {
        "run.sh": "torchrun --nproc_per_node ${1:-8} train.py --fp16"
        " --per_device_train_batch_size $2\n"
    }
    assert _facts(launched(files, "bash run.sh 4 3")) == (4, 3, "fp16")
    assert _facts(launched({}, "CUDA_VISIBLE_DEVICES=0,1 ./run.sh 2 5")) == (2, 5, "fp16")


def test_of_a_script_with_several_runs_the_first_that_trains_is_meant(launched: Launched) -> None:
    files = {
        "pipeline.sh": "python eval_base.py\n"
        "torchrun --nproc_per_node 2 train.py --bf16 --per_device_train_batch_size 1\n"
        "torchrun --nproc_per_node 4 train.py --bf16 --per_device_train_batch_size 2 --seed 1\n",
        "eval_base.py": "import vllm\n\nvllm.LLM('org/model').generate('a')\n",
    }
    assert _facts(launched(files, "bash pipeline.sh")) == (2, 1, "bf16")


@pytest.mark.parametrize("name", ["train.job", "train.com", "train"])
def test_a_job_script_is_told_by_its_first_line(launched: Launched, name: str) -> None:
    job = "#!/bin/bash\n#SBATCH --gres=gpu:1\n#SBATCH --nodes=1\n\npython train.py --fp16\n"
    run = launched({name: job}, f"sbatch {name}")
    assert _facts(run) == (1, 8, "fp16")
    assert run.location.path == name


def test_other_files_of_such_names_are_no_scripts(tmp_path: Path) -> None:
    (tmp_path / "water.com").write_text("%mem=4GB\npython train.py\n", encoding="utf-8")
    assert list(Project.open(tmp_path).scripts()) == []


def test_a_launch_by_make_is_the_run_of_its_goal(launched: Launched) -> None:
    makefile = "N ?= 8\nfit:\n\ttorchrun --nproc_per_node $(N) train.py --bf16\n"
    assert _facts(launched({"Makefile": makefile}, "make fit N=2")) == (2, 8, "bf16")


def test_the_report_says_that_a_followed_launch_starts_its_run(
    launched: Launched, tmp_path: Path
) -> None:
    launched({"all.sh": "bash stage.sh\n", "stage.sh": "torchrun train.py --bf16\n"}, None)

    def primary(command: str) -> tuple[str, bool]:
        report = build(tmp_path, ".", Options(launch_command=command), lambda *_: None)
        assert report.primary is not None
        return report.primary.location.path, report.launch_unmatched

    assert primary("bash all.sh") == ("stage.sh", False)
    assert primary("bash absent.sh")[1]


def test_a_followed_launch_is_found_once(launched: Launched, tmp_path: Path) -> None:
    launched({"all.sh": "bash stage.sh\n", "stage.sh": "torchrun train.py --bf16\n"}, None)
    runs = find_runs(Project.open(tmp_path), "bash all.sh")
    assert len({run.id for run in runs}) == len(runs)
    assert json.dumps(sorted(run.location.path for run in runs)) == '["other.sh", "stage.sh"]'


@pytest.mark.parametrize(
    ("launch", "world"),
    [
        ("torchrun --nnode=4 --nproc 8", 32),
        ("torchrun --nnodes=2 --nnode 4 --nproc_per_node 2", 4),
        ("deepspeed --num_gpu 4", 4),
        ("deepspeed --num 4", None),
    ],
)
def test_a_launchers_flag_cut_short_is_the_one_that_argparse_completes(
    launched: Launched, launch: str, world: Optional[int]
) -> None:
    run = launched({"run.sh": f"{launch} train.py --bf16\n"}, "bash run.sh")
    assert run.launcher.world_size == world
