"""What the environment, a file or a literal says wrongly, and is found out only at start."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, runs_of

RECIPE = (
    "model_name_or_path: Qwen/Qwen2.5-7B\nstage: {}\ndo_train: true\nfinetuning_type: lora\n"
    "dataset: a\ntemplate: qwen\noutput_dir: o\n{}\n"
)
SWIFT = "swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset a.jsonl\n"
LLAMAFACTORY = "llamafactory-cli train t.yaml\n"
NODES = "NNODES=2 NODE_RANK={} MASTER_ADDR=10.0.0.4 NPROC_PER_NODE=8 "


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (NODES.format(2) + SWIFT, True),
        (NODES.format(1) + SWIFT, False),
        (NODES.format("$RANK") + SWIFT, False),
        ("FORCE_TORCHRUN=1 " + NODES.format(2) + LLAMAFACTORY, True),
        ("FORCE_TORCHRUN=1 " + NODES.format(0) + LLAMAFACTORY, False),
        ("FORCE_TORCHRUN=1 RDZV_ID=3 " + NODES.format(2) + LLAMAFACTORY, False),
        (NODES.format(2) + LLAMAFACTORY, False),  # one GPU a node starts no torchrun
    ],
)
def test_every_node_has_a_rank_below_their_number(
    tmp_path: Path, command: str, expected: bool
) -> None:
    files = {"run.sh": command, "t.yaml": RECIPE.format("sft", "")}
    told = [one.message for one in findings(runs_of(tmp_path, files), "GPU024")]
    assert any("give NODE_RANK from 0" in one for one in told) is expected


@pytest.mark.parametrize(
    ("version", "stage", "more", "expected"),
    [
        ("0.9.3", "sft", "flash_attn: flash_attention_2", "write fa2 for flash_attn"),
        ("0.9.5", "sft", "flash_attn: flash_attention_3", "write fa3 for flash_attn"),
        ("0.9.2", "dpo", "pref_loss: sigmiod", "write sigmoid for pref_loss"),
        ("0.9.3", "sft", "flash_attn: fa2", ""),
        ("0.9.3", "sft", "flash_attn: disabled", ""),
        ("0.9.3", "dpo", "pref_loss: orpo", ""),
        ("0.9.3", "sft", "pref_loss: sigmiod", ""),
    ],
)
def test_names_in_a_file_are_those_of_the_release(
    tmp_path: Path, version: str, stage: str, more: str, expected: str
) -> None:
    files = {"t.yaml": RECIPE.format(stage, more), "requirements.txt": f"llamafactory=={version}"}
    told = [one.message for one in findings(runs_of(tmp_path, files), "GPU024")]
    assert [expected in one for one in told] == ([True] if expected else [])


ZERO = '{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto"}'
SCRIPT = """\
from transformers import Trainer, TrainingArguments

args = TrainingArguments(output_dir="out", {})
Trainer(model=model, args=args, train_dataset=data).train()
"""


def absent(root: Path, files: dict[str, str]) -> list[str]:
    return [one.message for one in findings(runs_of(root, files), "GPU027")]


@pytest.mark.parametrize("name", ["configs/ds_zero3.json", "configs/other.json"])
def test_a_literal_names_a_file_that_is_there(tmp_path: Path, name: str) -> None:
    script = SCRIPT.format(f'deepspeed="{name}"')
    files = {"train.py": script, "run.sh": "deepspeed --num_gpus 4 train.py\n"}
    assert len(absent(tmp_path, {**files, "configs/ds_zero2.json": ZERO})) == 1
    assert absent(tmp_path, {**files, name: ZERO}) == []


def test_a_recipe_names_a_file_that_is_there(tmp_path: Path) -> None:
    files = {"t.yaml": RECIPE.format("sft", "deepspeed: ds/z3.json"), "run.sh": LLAMAFACTORY}
    (told,) = absent(tmp_path, {**files, "ds/z2.json": ZERO})
    assert told.startswith("write ds/z2.json:")
    assert absent(tmp_path, {**files, "ds/z3.json": ZERO}) == []


@pytest.mark.parametrize(
    "files",
    [
        {},  # no folder of that name: the project is started elsewhere
        {"configs/ds_zero2.json": ZERO, ".gitignore": "ds_zero3.json\n"},
        {"configs/ds_zero2.json": ZERO, "make.sh": "sed s/2/3/ > configs/ds_zero3.json\n"},
        {"configs/ds_zero2.json": ZERO, "templates/ds_zero3.json.j2": ZERO},
    ],
)
def test_a_file_that_may_come_later_is_not_missed(tmp_path: Path, files: dict[str, str]) -> None:
    script = SCRIPT.format('deepspeed="configs/ds_zero3.json"')
    run = {"train.py": script, "run.sh": "deepspeed --num_gpus 4 train.py\n"}
    assert absent(tmp_path, {**run, **files}) == []
