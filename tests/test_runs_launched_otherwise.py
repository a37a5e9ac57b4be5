"""Commands that launch in less usual ways: what runs is told as their programs would."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest

from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.facts import Unknown
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import PlaceKind, Run
from flake8_gpu_training.verdicts import judge

MakeRuns = Callable[..., tuple[Run, ...]]
TRAINER = """\
import argparse
from transformers import Trainer, TrainingArguments
p = argparse.ArgumentParser()
p.add_argument("--lr", type=float)
p.add_argument("--bf16", action="store_true")
a = p.parse_args()
Trainer(model, TrainingArguments("out", learning_rate=a.lr, bf16=a.bf16)).train()
"""
PARSED = """\
from transformers import HfArgumentParser, Trainer, TrainingArguments
(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
Trainer(model=model, args=args).train()
"""
UNKNOWN = "unknown"


@pytest.fixture
def runs_in(tmp_path: Path) -> MakeRuns:
    def make(**files: str) -> tuple[Run, ...]:
        for name, text in files.items():
            path = tmp_path / name.replace("___", "/").replace("__", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8"))
        return find_runs(Project.open(tmp_path))

    return make


def told(value: Any) -> Any:
    return UNKNOWN if isinstance(value, Unknown) else value


def size(run: Run) -> tuple[Any, Any]:
    """Processes per node and nodes."""
    return told(run.launcher.processes.value), told(run.launcher.nodes.value)


# --- two dashes before the script -----------------------------------------------------------


@pytest.mark.parametrize(
    "launcher",
    [
        "accelerate launch --num_processes 4",
        "torchrun --nproc_per_node 4",
        "deepspeed --num_gpus 4",
        "python -m torch.distributed.run --nproc_per_node 4",
    ],
)
def test_two_dashes_end_the_launchers_own_flags(runs_in: MakeRuns, launcher: str) -> None:
    (run,) = runs_in(train__py=TRAINER, run__sh=f"{launcher} -- train.py --bf16\n")
    assert run.launcher.processes.value == 4
    assert run.value("precision") == "bf16"


def test_python_takes_two_dashes_before_the_script(runs_in: MakeRuns) -> None:
    (run,) = runs_in(train__py=TRAINER, run__sh="python -- train.py --bf16\n")
    assert run.value("precision") == "bf16"


# --- commands that Python starts -------------------------------------------------------------

LAUNCHER = """\
import subprocess, sys
for lr in (1e-4, 1e-5):
    subprocess.run({command}, check=True)
"""
LISTED = """[sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=4", "src/train.py",
        f"--lr={lr}", "--bf16"]"""
SEPARATE = """["torchrun", "--nproc_per_node", "4", "src/train.py", "--lr", str(lr), "--bf16"]"""
WRAPPED = """["env", "A=1", "torchrun", "--nproc_per_node=4", "src/train.py", f"--lr={lr:.1e}",
        "--bf16"]"""
ONE_TEXT = """f"torchrun --nproc_per_node 4 src/train.py --lr {lr} --bf16", shell=True"""
INTERPRETED = """f"{sys.executable} -m torch.distributed.run --nproc_per_node 4 src/train.py "
    f"--bf16 --lr {lr}", shell=True"""


@pytest.mark.parametrize("command", [LISTED, SEPARATE, WRAPPED, ONE_TEXT, INTERPRETED])
def test_a_command_that_python_starts_is_read_though_some_words_are_open(
    runs_in: MakeRuns, command: str
) -> None:
    (run,) = runs_in(src___train__py=TRAINER, launch__py=LAUNCHER.replace("{command}", command))
    assert run.entry == "src/train.py"
    assert run.launcher.processes.value == 4
    assert run.value("precision") == "bf16"
    assert told(run.settings["learning_rate"].value) == UNKNOWN


# --- variables with several possible values --------------------------------------------------

BRANCH = """\
ARGS="--per_device_train_batch_size 2"
if [ "$1" = "big" ]; then
  ARGS="--per_device_train_batch_size 8 --gradient_checkpointing True"
fi
"""
COMMAND = "python train.py {} --bf16 True --output_dir out\n"


def test_flags_of_a_variable_that_a_branch_sets_are_open_with_their_candidates(
    runs_in: MakeRuns,
) -> None:
    (run,) = runs_in(train__py=PARSED, run__sh=BRANCH + COMMAND.format("$ARGS"))
    batch = run.settings["per_device_train_batch_size"].value
    assert isinstance(batch, Unknown)
    assert set(batch.candidates) == {2, 8}
    assert told(run.practice("micro_batch_size").value) == UNKNOWN
    assert told(run.practice("gradient_checkpointing").value) == UNKNOWN
    assert run.value("precision") == "bf16"


def test_the_value_of_a_flag_that_a_branch_changes_is_open(runs_in: MakeRuns) -> None:
    script = BRANCH.replace(" --gradient_checkpointing True", "")
    (run,) = runs_in(train__py=PARSED, run__sh=script + COMMAND.format('$ARGS "$@"'))
    assert told(run.settings["per_device_train_batch_size"].value) == UNKNOWN


def test_flags_that_only_one_branch_sets_are_open(runs_in: MakeRuns) -> None:
    script = 'if [ "$1" = "big" ]; then EXTRA="--gradient_checkpointing True"; fi\n'
    (run,) = runs_in(train__py=PARSED, run__sh=script + COMMAND.format("$EXTRA"))
    assert told(run.practice("gradient_checkpointing").value) == UNKNOWN
    assert run.value("precision") == "bf16"


def test_flags_that_all_branches_agree_on_are_known(runs_in: MakeRuns) -> None:
    script = BRANCH.replace("_size 2", "_size 8 --learning_rate 1e-5")
    (run,) = runs_in(train__py=PARSED, run__sh=script + COMMAND.format("$ARGS"))
    assert run.value("micro_batch_size") == 8
    assert told(run.settings["learning_rate"].value) == UNKNOWN


def test_an_argparse_program_takes_each_text_of_a_variable(runs_in: MakeRuns) -> None:
    script = 'A="--lr 1e-4"\n[ -n "$BIG" ] && A="--lr 1e-5 --bf16"\npython train.py $A\n'
    (run,) = runs_in(train__py=TRAINER, run__sh=script)
    assert told(run.settings["learning_rate"].value) == UNKNOWN
    assert told(run.practice("precision").value) == UNKNOWN


def test_a_quoted_variable_is_one_value_whatever_it_holds(runs_in: MakeRuns) -> None:
    script = 'N="first run"\n[ -n "$1" ] && N="run --bf16"\npython train.py --run_name "$N"\n'
    (run,) = runs_in(train__py=PARSED, run__sh=script)
    assert "bf16" not in run.settings


# --- what a scheduler tells each process -----------------------------------------------------

JOB = """\
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
srun python train.py
"""
LIGHTNING = """\
import os
import lightning.pytorch as pl
nodes = int(os.environ.get("SLURM_NNODES", "1"))
trainer = pl.Trainer(devices=4, num_nodes=nodes, strategy="ddp" if nodes > 1 else "auto",
                     accumulate_grad_batches=8 // int(os.environ.get("SLURM_NTASKS", 1)))
trainer.fit(model)
"""


def test_variables_of_a_scheduler_are_never_at_the_defaults_of_a_script(runs_in: MakeRuns) -> None:
    (run,) = runs_in(train__sbatch=JOB, train__py=LIGHTNING)
    for name in ("num_nodes", "strategy", "accumulate_grad_batches"):
        assert told(run.settings[name].value) in (UNKNOWN, {"num_nodes": 2}.get(name))
    assert told(run.practice("gradient_accumulation_steps").value) == UNKNOWN


# --- carriage returns ------------------------------------------------------------------------


def test_flags_behind_a_carriage_return_do_not_reach_the_program(runs_in: MakeRuns) -> None:
    script = (
        "torchrun \\\r\n  --nproc_per_node 4 \\\r\n  train.py \\\r\n  --lr 2 \\\r\n  --bf16\r\n"
    )
    (run,) = runs_in(run__sh=script, train__py=TRAINER)
    assert size(run)[0] == UNKNOWN
    assert told(run.settings["learning_rate"].value) == UNKNOWN
    assert told(run.practice("precision").value) == UNKNOWN


# --- where the shell's lines are written -----------------------------------------------------


def test_an_export_is_advised_at_the_command_that_starts_the_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINER, encoding="utf-8")
    command = "torchrun --nnodes 2 --nproc_per_node 8 train.py --bf16"
    (tmp_path / "run.sh").write_text(f"#!/bin/bash\n{command}\n", encoding="utf-8")
    (run,) = find_runs(Project.open(tmp_path))
    asked = [check for check in all_checks() if check.code in ("GPU401", "GPU404")]
    found = {verdict.check.code: verdict.judgement for verdict in judge(run, asked)}
    places = {code: str(j.findings[0].location) for code, j in found.items() if j.findings}
    assert places == {"GPU401": "run.sh:2", "GPU404": "run.sh:2"}
    assert all(j.change is not None and "export NCCL" in j.change.text for j in found.values())


# --- configuration files that nobody can name ------------------------------------------------

OF_FILE = """\
import sys
from transformers import HfArgumentParser, Trainer, TrainingArguments
(args,) = HfArgumentParser(TrainingArguments).parse_yaml_file(sys.argv[1])
Trainer(model=model, args=args).train()
"""


def test_a_file_of_arguments_that_is_not_known_leaves_them_open(runs_in: MakeRuns) -> None:
    runs = runs_in(
        run__sh='for c in configs/*.yaml; do\n  python train.py "$c"\ndone\n',
        train__py=OF_FILE,
        configs___a__yaml="per_device_train_batch_size: 3\noutput_dir: out\n",
        configs___b__yaml="per_device_train_batch_size: 5\nbf16: true\noutput_dir: out\n",
    )
    for run in runs:
        assert run.place.kind is not PlaceKind.FLAGS
        assert told(run.practice("micro_batch_size").value) in (UNKNOWN, 3, 5)
        assert run.place.kind is PlaceKind.YAML or run.is_open
