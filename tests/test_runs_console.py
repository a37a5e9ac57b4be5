"""Commands that a project's packaging installs lead to its modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.console import console_scripts
from flake8_gpu_training.runs.find import find_runs

MAIN = """import torch
def main():
    model = torch.nn.Linear(4, 4).cuda()
    for batch in range(9):
        loss = model(batch).sum()
        loss.backward()
"""
PACKAGING = {
    "pyproject.toml": '[project.scripts]\nmy-train = "kit.cli:main"\n',
    "setup.cfg": "[options.entry_points]\nconsole_scripts =\n    my-train = kit.cli:main\n",
    "setup.py": "from setuptools import setup\n"
    'setup(entry_points={"console_scripts": ["my-train=kit.cli:main [gpu]"]})\n',
}
POETRY = '[tool.poetry.scripts]\nmy-train = "kit.cli:main"\n'


def write(root: Path, **files: str) -> Project:
    for name, text in {"kit/__init__.py": "", "kit/cli.py": MAIN, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Project.open(root)


@pytest.mark.parametrize("name", PACKAGING)
def test_entry_points_are_read(tmp_path: Path, name: str) -> None:
    project = write(tmp_path, **{name: PACKAGING[name]})
    assert dict(console_scripts(project)) == {"my-train": ("kit.cli", "main")}


def test_poetrys_table_is_read(tmp_path: Path) -> None:
    project = write(tmp_path, **{"pyproject.toml": POETRY})
    assert dict(console_scripts(project)) == {"my-train": ("kit.cli", "main")}


@pytest.mark.parametrize(
    "line",
    [
        "my-train --lr 1",
        "torchrun --nproc_per_node 2 --no-python my-train",
        "accelerate launch --no_python my-train",
        "python -m kit.cli",
    ],
)
def test_such_a_command_starts_the_modules_run(tmp_path: Path, line: str) -> None:
    files = {"pyproject.toml": PACKAGING["pyproject.toml"], "run.sh": f"{line}\n"}
    (run,) = find_runs(write(tmp_path, **files))
    assert (run.id, run.entry) == ("run.sh:1", "kit/cli.py")


@pytest.mark.parametrize(
    "text",
    ["[project.scripts\n", "[project]\nscripts = 3\n", "[project.scripts]\na = 1\nb = 'x'\n", "\0"],
)
def test_broken_packaging_installs_nothing(tmp_path: Path, text: str) -> None:
    files = {"pyproject.toml": text, "setup.cfg": "scripts\n=", "setup.py": "scripts = ("}
    assert not console_scripts(write(tmp_path, **files))
