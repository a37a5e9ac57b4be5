"""Practices outside a run's files are named with their places, and bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from flake8_gpu_training.project import Project
from flake8_gpu_training.runs import elsewhere as module
from flake8_gpu_training.runs.elsewhere import MAX_PLACES, elsewhere, practices_of
from flake8_gpu_training.runs.find import find_runs

LOOP = """import torch
model = torch.nn.Linear(4, 4).cuda()
for batch in range(10):
    loss = model(batch).sum()
    loss.backward()
"""
SHARDED = """import torch
from torch.distributed.fsdp import fully_shard
def shard(model):
    return torch.compile(fully_shard(model))
"""


def write(root: Path, **files: str) -> Project:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_py", ".py").replace("_yaml", ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Project.open(root)


def named(project: Project) -> dict[str, list[str]]:
    found = elsewhere(project, find_runs(project)[0])
    return {item: [str(place) for place in places] for item, places in found.items()}


def test_calls_in_files_that_the_run_does_not_reach_are_named(tmp_path: Path) -> None:
    project = write(tmp_path, train_py=LOOP, old__sharded_py=SHARDED)
    assert named(project) == {"fsdp": ["old/sharded.py:4"], "torch-compile": ["old/sharded.py:4"]}


def test_what_the_run_reaches_is_not_elsewhere(tmp_path: Path) -> None:
    project = write(tmp_path, train_py=f"import sharded\n{LOOP}", sharded_py=SHARDED)
    assert named(project) == {}


@pytest.mark.parametrize("folder", ["tests", "docs", "third_party"])
def test_tests_documents_and_others_code_are_never_named(tmp_path: Path, folder: str) -> None:
    project = write(tmp_path, train_py=LOOP, **{f"{folder}__sharded_py": SHARDED})
    assert named(project) == {}


def test_comments_and_strings_are_no_evidence(tmp_path: Path) -> None:
    text = 'import torch\n# fully_shard(model)\nHELP = "call torch.compile(model)"\n'
    assert named(write(tmp_path, train_py=LOOP, old_py=text)) == {}


def test_configuration_files_are_named_by_the_key_that_says_it(tmp_path: Path) -> None:
    recipe = (
        "model_name_or_path: gpt2\noutput_dir: out\nlearning_rate: 1.0e-5\n"
        "gradient_checkpointing: true\nbf16: false\npacking: true\n"
    )
    project = write(tmp_path, train_py=LOOP, recipe_yaml=recipe)
    run = next(run for run in find_runs(project) if run.entry == "train.py")
    found = elsewhere(project, run)
    assert {item: [str(p) for p in places] for item, places in found.items()} == {
        "activation-checkpointing": ["recipe.yaml:4"],
        "packing": ["recipe.yaml:6"],
    }


def test_flags_of_other_launches_are_named(tmp_path: Path) -> None:
    project = write(tmp_path, train_py=LOOP, tune_py="import argparse\n")
    (tmp_path / "tune.sh").write_text(
        "torchrun tune.py --bf16 true --torch_compile=false --packing\n", encoding="utf-8"
    )
    project = Project.open(tmp_path)
    run = next(run for run in find_runs(project) if run.entry == "train.py")
    assert sorted(elsewhere(project, run)) == ["mixed-precision", "packing"]


def test_few_places_are_named_and_few_files_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_READ", 4)
    files = {f"old{n}_py": SHARDED for n in range(9)}
    project = write(tmp_path, train_py=LOOP, **files)
    run = find_runs(project)[0]
    before = project.paths_read
    index = practices_of(project)
    assert len(project.paths_read - before) == 4
    assert len(elsewhere(project, run, index)["fsdp"]) == MAX_PLACES


def test_a_fixture_names_its_unused_module() -> None:
    fixture = Path(__file__).resolve().parent.parent / "fixtures" / "runs" / "console_script"
    assert named(Project.open(fixture)) == {
        "activation-checkpointing": ["src/speechkit/experimental.py:15"],
        "fsdp": ["src/speechkit/experimental.py:10", "src/speechkit/experimental.py:11"],
        "torch-compile": ["src/speechkit/experimental.py:11"],
    }
