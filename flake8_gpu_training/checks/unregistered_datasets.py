"""GPU029: data sets that dataset_info.json does not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from flake8_gpu_training.checks._faults import Fault, judge_of
from flake8_gpu_training.checks.base import Change, Check, Edit, Example, Impact, Priority
from flake8_gpu_training.facts import Origin
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Absent, Run


def _unregistered(run: Run) -> Iterator[Fault]:
    for one in run.unregistered:
        setting, register = one.setting, one.folder
        if setting.location is None:
            continue
        name = setting.value
        mend = f"write {one.near}" if one.near else f"describe it in {register}"
        yield Fault(
            setting.value_location or setting.location,
            f"{mend}: {register} has no {name}, and the run stops when it loads its data",
            Text(f"{register} 中没有 {name}", f"{register} has no {name}"),
            Text(f"改为 {one.near}" if one.near else f"在 {register} 中登记", mend),
            _renamed(one),
        )


def _renamed(one: Absent) -> Optional[Change]:
    setting, place = one.setting, one.setting.value_location
    if not one.near:
        return None
    whole = setting.text.replace(setting.value, one.near)
    edits = () if place is None or not setting.text else (Edit(place, setting.text, whole),)
    if setting.origin is Origin.FILE:
        return Change("yaml", f"{setting.name}: {whole or one.near}", edits)
    return Change("bash", f"--{setting.name} {whole or one.near}", edits)


_REGISTER = """\
{
  "tickets_2024": {"file_name": "tickets_2024.json"},
  "identity": {"file_name": "identity.json"}
}
"""
_RECIPE = """\
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: lora
dataset: identity,{}
template: qwen
cutoff_len: 2048
output_dir: saves/tickets
"""

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU029",
        "unregistered-dataset",
        Text("数据集未登记", "Data set that is not registered"),
        Priority.HIGH,
        judge_of(_unregistered),
        why="LLaMA-Factory looks each name up in dataset_info.json of dataset_dir and stops at one "
        "that is not there, after the processes have started. It is told where the recipe names "
        "its dataset_dir, or where the register has a name so like it that it is a slip; and only "
        "of names that no register and no program of the project has.",
        fix="Write the name as the register has it, or describe the data set there.",
        ignore="Something else writes the register before the run.",
        impact=Impact(note=Text("不修复则启动失败", "the run fails at start until it is mended")),
        examples=(
            Example(
                "llamafactory",
                "lora.yaml",
                _RECIPE.format("ticket_2024"),
                _RECIPE.format("tickets_2024"),
                files=(("data/dataset_info.json", _REGISTER),),
            ),
        ),
        sources=("llamafactory 0.9.5, data/parser.py, get_dataset_list",),
    ),
)
