"""Paths of containers are led back to the files that the project is stated to give them."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import runs_of

from flake8_gpu_training.containers import led_back, shown_by
from flake8_gpu_training.project import Project

RECIPE = (
    "stage: sft\ndo_train: true\nmodel_name_or_path: Qwen/Qwen2.5-7B\nfinetuning_type: lora\n"
    "template: qwen\ndataset: alpaca_en\ncutoff_len: 2048\noutput_dir: saves\nbf16: true\n"
)


def found(files: dict[str, str], told_in: str, path: str) -> object:
    shown = tuple(shown_by(told_in, files[told_in], "Dockerfile" in told_in))
    return led_back(path, shown, files.__contains__)


@pytest.mark.parametrize(
    ("told_in", "text"),
    [
        ("Dockerfile", "FROM a\nCOPY train/cfg/ /workspace/configs/\n"),
        ("Dockerfile", "FROM a\nWORKDIR /workspace\nCOPY --chown=a \\\n train/cfg configs\n"),
        ("docker/Dockerfile", 'FROM a\nCOPY ["train/cfg/a.yaml", "/workspace/configs/"]\n'),
        ("Dockerfile", "FROM a\nADD train/cfg/*.yaml /workspace/configs/\n"),
        ("docker-compose.yml", "  volumes:\n    - ./train/cfg:/workspace/configs:ro\n"),
        ("run.sh", 'docker run -v "$(pwd)"/train/cfg:/workspace/configs image bash\n'),
        ("run.sh", "docker run --volume=${PWD}/train/cfg:/workspace/configs image\n"),
        ("run.sh", "docker run --mount type=bind,src=$PWD/train,target=/workspace image\n"),
    ],
)
def test_a_stated_folder_leads_back(told_in: str, text: str) -> None:
    files = {told_in: text, "train/cfg/a.yaml": RECIPE}
    path = "/workspace/cfg/a.yaml" if "--mount" in text else "/workspace/configs/a.yaml"
    assert found(files, told_in, path) == "train/cfg/a.yaml"
    assert found(files, told_in, "/workspace/configs/b.yaml") is None
    assert found(files, told_in, "/data/configs/a.yaml") is None


@pytest.mark.parametrize(
    "text",
    [
        "FROM a\nCOPY --from=build cfg /configs\n",  # of another image
        "FROM a\nARG WHERE\nCOPY cfg $WHERE/configs\n",
        "FROM a\nADD https://host/cfg /configs/\n",
        "FROM a\nRUN cp -r cfg /configs\n",
    ],
)
def test_other_sources_lead_nowhere(text: str) -> None:
    files = {"Dockerfile": text, "cfg/a.yaml": RECIPE}
    assert found(files, "Dockerfile", "/configs/a.yaml") is None


def test_one_of_two_files_is_not_chosen() -> None:
    text = "FROM a\nCOPY one /configs\nCOPY two /configs\n"
    files = {"Dockerfile": text, "one/a.yaml": "", "two/a.yaml": "", "two/b.yaml": ""}
    assert found(files, "Dockerfile", "/configs/a.yaml") is None
    assert found(files, "Dockerfile", "/configs/b.yaml") == "two/b.yaml"


def test_the_nearest_folder_counts() -> None:
    text = "FROM a\nCOPY . /app\nCOPY deploy/cfg /app/configs\n"
    files = {"Dockerfile": text, "configs/a.yaml": "", "deploy/cfg/a.yaml": "", "train.py": ""}
    assert found(files, "Dockerfile", "/app/configs/a.yaml") == "deploy/cfg/a.yaml"
    assert found(files, "Dockerfile", "/app/train.py") == "train.py"


def test_a_command_in_a_container_is_read_with_its_recipe(tmp_path: Path) -> None:
    files = {
        "Dockerfile": "FROM a\nCOPY recipes/ /workspace/etc/\n",
        "run.sh": "cd /workspace/etc\nllamafactory-cli train sft.yaml\n",
        "recipes/sft.yaml": RECIPE,
        "other/sft.yaml": RECIPE,
    }
    run = next(run for run in runs_of(tmp_path, files) if run.id.startswith("run.sh"))
    assert run.place.document is not None
    assert run.place.document.path == "recipes/sft.yaml"


def test_a_cloned_llamafactory_takes_the_projects_recipe(tmp_path: Path) -> None:
    files = {
        "train.sh": "CONFIG=${1:-/workspace/configs/sft_a.yaml}\ncd /workspace/LLaMA-Factory\n"
        "accelerate launch src/train.py $CONFIG\n",
        "configs/sft_a.yaml": RECIPE,
    }
    (run,) = runs_of(tmp_path, files)
    assert run.framework == "llamafactory"
    assert run.value("precision") == "bf16"


@pytest.mark.parametrize(("name", "is_read"), [("/opt/job/env.sh", True), ("/opt/env.sh", False)])
def test_a_script_elsewhere_is_the_projects_by_two_parts(
    tmp_path: Path, name: str, is_read: bool
) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "env.sh").write_text("export LR=1e-5\n")
    text = f"source {name}\nswift sft --model Qwen/Qwen2.5-7B --learning_rate $LR\n"
    (tmp_path / "train.sh").write_text(text)
    script = next(s for s in Project.open(tmp_path).scripts() if s.path == "train.sh")
    assert (script.commands[-1].words[-1].value == "1e-5") is is_read
