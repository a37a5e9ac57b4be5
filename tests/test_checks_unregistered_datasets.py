"""GPU029: names that LLaMA-Factory's register lacks, and those that may be in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, runs_of

REGISTER = '{"tickets_2024": {"file_name": "tickets.json"}, "identity": {"file_name": "i.json"}}\n'
RECIPE = """\
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: lora
dataset: DATASET
template: qwen
output_dir: out
"""
COMMAND = (
    "llamafactory-cli train --stage sft --model_name_or_path Qwen/Qwen2.5-7B-Instruct "
    "--do_train --finetuning_type lora --dataset DATASET --template qwen --output_dir out\n"
)


def told(root: Path, dataset: str, **files: str) -> list[str]:
    """What is said of a recipe with ``dataset`` beside ``data/dataset_info.json``."""
    project = {
        "data/dataset_info.json": REGISTER,
        "lora.yaml": RECIPE.replace("DATASET", dataset),
        **files,
    }
    return [one.message for one in findings(runs_of(root, project), "GPU029")]


def test_a_name_like_a_registered_one_is_corrected(tmp_path: Path) -> None:
    files = {
        "data/dataset_info.json": REGISTER,
        "lora.yaml": RECIPE.replace("DATASET", "identity, ticket_2024"),
    }
    (one,) = findings(runs_of(tmp_path, files), "GPU029")
    assert one.message == (
        "write tickets_2024: data/dataset_info.json has no ticket_2024, "
        "and the run stops when it loads its data"
    )
    assert str(one.location).startswith("lora.yaml:5")
    assert one.change is not None
    (edit,) = one.change.edits
    assert (edit.old, edit.new) == ("identity, ticket_2024", "identity, tickets_2024")


def test_a_name_on_a_command_line_is_corrected(tmp_path: Path) -> None:
    files = {
        "data/dataset_info.json": REGISTER,
        "train.sh": COMMAND.replace("DATASET", "ticket_2024"),
    }
    (one,) = findings(runs_of(tmp_path, files), "GPU029")
    assert one.change is not None
    assert one.change.text == "--dataset tickets_2024"


def test_where_the_folder_is_named_any_name_is_missed(tmp_path: Path) -> None:
    recipe = RECIPE.replace("DATASET", "calls") + "dataset_dir: data\n"
    (one,) = told(tmp_path, "", **{"lora.yaml": recipe})
    assert one.startswith("describe it in data/dataset_info.json: data/dataset_info.json has no")


@pytest.mark.parametrize(
    ("dataset", "files"),
    [
        ("tickets_2024,identity", {}),
        ("calls", {}),  # another register may be read: nothing says where the run starts
        ("/data/ticket_2024", {}),
        ("ticket_2024", {"other/dataset_info.json": '{"ticket_2024": {"file_name": "x.json"}}'}),
        ("ticket_2024", {"prepare.py": 'info["ticket_2024"] = {"file_name": "x.json"}\n'}),
        ("ticket_2024", {"data/dataset_info.json": "{broken"}),
        ("ticket_2024", {"data/dataset_info.json": "[]"}),
    ],
)
def test_names_that_are_registered_or_may_be(
    dataset: str, files: dict[str, str], tmp_path: Path
) -> None:
    assert told(tmp_path, dataset, **files) == []


def test_a_folder_that_is_not_in_the_project_is_not_known(tmp_path: Path) -> None:
    recipe = RECIPE.replace("DATASET", "ticket_2024") + "dataset_dir: /mnt/data\n"
    assert told(tmp_path, "", **{"lora.yaml": recipe}) == []
