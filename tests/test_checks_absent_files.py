"""GPU027: configuration files that are named and not there."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, runs_of

from flake8_gpu_training.checks.base import Finding
from flake8_gpu_training.lint import lint_project
from flake8_gpu_training.options import Options
from flake8_gpu_training.project import Project

SCRIPT = """\
from transformers import HfArgumentParser, Trainer, TrainingArguments

args = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()[0]
Trainer(model=model, args=args, train_dataset=data).train()
"""
ZERO = '{"zero_optimization": {"stage": 2}}\n'


def told(root: Path, script: str, name: str = "run.sh") -> list[Finding]:
    """What is said of a script beside these files."""
    files = {
        "train.py": SCRIPT,
        "configs/ds_zero2.json": ZERO,
        "configs/acc_fsdp.yaml": "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n",
        name: script,
    }
    return findings(runs_of(root, files), "GPU027")


RUN = "torchrun --nproc_per_node 4 train.py --output_dir out --deepspeed {}\n"


def test_a_name_like_one_that_exists_is_corrected(tmp_path: Path) -> None:
    (one,) = told(tmp_path, RUN.format("configs/ds_zero_2.json"))
    assert one.message.startswith("write configs/ds_zero2.json: configs has no such file")
    assert one.change is not None
    (edit,) = one.change.edits
    assert (edit.old, edit.new) == ("configs/ds_zero_2.json", "configs/ds_zero2.json")


def test_a_file_of_the_launcher_is_asked_for(tmp_path: Path) -> None:
    (one,) = told(tmp_path, "accelerate launch --config_file configs/other.yaml train.py\n")
    assert one.message.startswith("add configs/other.yaml, or name another file")


def test_a_script_in_a_folder_finds_the_projects_files(tmp_path: Path) -> None:
    script = RUN.format("configs/ds_zero2.json").replace("train.py", "../train.py")
    assert told(tmp_path / "a", script, "scripts/run.sh") == []
    missing = RUN.format("configs/ds_zero9.json").replace("train.py", "../train.py")
    assert len(told(tmp_path / "b", missing, "scripts/run.sh")) == 1


@pytest.mark.parametrize(
    "script",
    [
        RUN.format("configs/ds_zero2.json"),
        RUN.format("elsewhere/ds_zero_2.json"),
        RUN.format("/data/configs/ds_zero_2.json"),
        RUN.format("$DIR/ds_zero_2.json"),
        RUN.format("zero2"),
        "cp template.json configs/ds_zero_2.json\n" + RUN.format("configs/ds_zero_2.json"),
        "python make.py > configs/ds_zero_2.json\n" + RUN.format("configs/ds_zero_2.json"),
        "accelerate launch --config_file configs/acc_fsdp.yaml train.py\n",
    ],
)
def test_files_that_are_there_or_may_be(script: str, tmp_path: Path) -> None:
    assert told(tmp_path, script) == []


# --- names alone, and scripts ---------------------------------------------------------------


def missed(root: Path, script: str, **files: str) -> list[str]:
    """What GPU027 says of a script ``jobs/run.sh``, or ``run.sh`` where that is given."""
    for name, text in {"run.sh": script, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    found = lint_project(Project.open(root), Options())
    return [one.message for one in found if one.code == "GPU027"]


LAUNCH = "torchrun --nproc_per_node 4 {}\n"
RECIPE = "llamafactory-cli train lora.yaml\n"


@pytest.mark.parametrize(
    ("script", "instruction"),
    [
        (RECIPE, "add lora.yaml, or name another file: the folder of run.sh has no such file"),
        ("export A=1\nmkdir -p out\n" + RECIPE, "add lora.yaml"),
        ("srun " + RECIPE, "add lora.yaml"),
        ("swift sft lora.yaml\n", "add lora.yaml"),
        ("swift sft --config lora.yaml\n", "add lora.yaml"),
        ("accelerate launch --config_file acc.yaml -m pkg.train\n", "add acc.yaml"),
        (LAUNCH.format("train.py --lr 1e-4"), "add train.py"),
        ("deepspeed train.py --epochs 3\n", "add train.py"),
    ],
)
def test_a_name_alone_that_is_nowhere(tmp_path: Path, script: str, instruction: str) -> None:
    (message,) = missed(tmp_path, script)
    assert message.startswith(instruction)
    assert message.endswith((" is read", "the launcher finds nothing to start"))


@pytest.mark.parametrize(
    "script",
    [
        "cd $HOME/work\n" + RECIPE,
        "cd LLaMA-Factory\n" + RECIPE,
        "cd /workspace\n" + RECIPE,
        "git clone https://example.org/recipes .\n" + RECIPE,
        "cp -r /data/recipes/* .\n" + RECIPE,
        "python make_recipe.py\n" + RECIPE,
        "source env.sh\n" + RECIPE,
        "wget https://example.org/lora.yaml\n" + RECIPE,
        "cat > lora.yaml <<EOF\nstage: sft\nEOF\n" + RECIPE,
        "envsubst < base.in | tee lora.yaml\n" + RECIPE,
        "if [ -f lora.yaml ]; then\n  " + RECIPE + "fi\n",
        "docker run image " + RECIPE,
        "RECIPE=lora.yaml\nllamafactory-cli train $RECIPE\n",
        "llamafactory-cli train $1\n",
        "llamafactory-cli train examples/lora.yaml\n",
        LAUNCH.format("scripts/train.py"),
        LAUNCH.format("/opt/train.py"),
        LAUNCH.format("$DIR/train.py"),
        LAUNCH.format("-m train"),
        "python train.py\n",
    ],
)
def test_a_name_that_may_come_or_lie_elsewhere(tmp_path: Path, script: str) -> None:
    assert missed(tmp_path, script) == []


@pytest.mark.parametrize(
    "files",
    [
        {"lora.yaml": "stage: sft\n"},
        {"recipes/lora.yaml": "stage: sft\n"},
        {"lora.yaml.example": "stage: sft\n", "a.py": ""},
        {".gitignore": "*.yaml\n"},
        {"make.py": "open('lora.yaml', 'w').write(text)\n"},
        {"prepare.sh": "sed s/a/b/ base.in > lora.yaml\n"},
    ],
)
def test_a_file_that_the_project_speaks_of(tmp_path: Path, files: dict[str, str]) -> None:
    assert missed(tmp_path, RECIPE, **files) == []


def test_a_script_that_is_misspelt_in_its_folder(tmp_path: Path) -> None:
    code = {"tools/train_net.py": "print(1)\n"}
    (message,) = missed(tmp_path / "a", LAUNCH.format("tools/trian_net.py"), **code)
    assert message.startswith("write tools/train_net.py: tools has no such file")
    assert missed(tmp_path / "b", LAUNCH.format("tools/train_net.py"), **code) == []


def test_a_part_of_a_project_looks_above_itself(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n", encoding="utf-8")
    assert missed(tmp_path / "jobs", LAUNCH.format("train.py")) == []


def test_a_name_alone_is_corrected_by_its_neighbour(tmp_path: Path) -> None:
    (message,) = missed(tmp_path, RECIPE, **{"lora_1.yaml": "stage: sft\n"})
    assert message.startswith("write lora_1.yaml: the folder of run.sh has no such file")


def test_a_folder_that_the_script_changes_to(tmp_path: Path) -> None:
    here = {"train/model.py": "A = 1\n"}
    (message,) = missed(tmp_path / "a", "cd train\n" + LAUNCH.format("train.py"), **here)
    assert message.startswith("add train.py")
    code = {"train/train.py": "print(1)\n"}
    assert missed(tmp_path / "b", "cd train\n" + LAUNCH.format("train.py"), **code) == []


@pytest.mark.parametrize(("sharding", "told_of"), [("", 0), ("--fsdp full_shard ", 1)])
def test_the_file_of_fsdp_is_asked_for_where_fsdp_is_on(
    tmp_path: Path, sharding: str, told_of: int
) -> None:
    script = (
        f"torchrun --nproc_per_node 4 train.py --output_dir out {sharding}--fsdp_config f.json\n"
    )
    assert len(told(tmp_path, script)) == told_of
