"""GPU027: configuration files and scripts that a command names and that are not there."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Optional

from flake8_gpu_training.checks._faults import Fault, judge_of
from flake8_gpu_training.checks.base import Change, Check, Edit, Example, Impact, Priority
from flake8_gpu_training.facts import Origin
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Absent, Run


def _absent(run: Run) -> Iterator[Fault]:
    for one in run.absent:
        setting = one.setting
        if setting.location is None:
            continue
        mend = f"write {one.near}" if one.near else f"add {setting.value}, or name another file"
        where = one.folder or f"the folder of {posixpath.basename(setting.location.path)}"
        stops = "the launcher finds nothing to start"
        if setting.name != "script":
            stops = f"the run stops when {_NAMES.get(setting.name, setting.name)} is read"
        yield Fault(
            setting.location,
            f"{mend}: {where} has no such file, and {stops}",
            Text(f"{setting.value} 不存在", f"{setting.value} is not there"),
            Text(f"改为 {one.near}" if one.near else f"补上 {setting.value}，或改用其他文件", mend),
            _renamed(one),
        )


_NAMES = {"configuration": "its configuration"}
"""How a message names what no flag names."""


def _renamed(one: Absent) -> Optional[Change]:
    setting = one.setting
    if not one.near:
        return None
    if setting.origin is Origin.FILE and not setting.text:
        return Change("yaml", f"{setting.name}: {one.near}")
    is_word = setting.name in ("script", "configuration")
    text = one.near if is_word else f"--{setting.name} {one.near}"
    if setting.value_location is None or setting.value not in setting.text:
        return Change("bash", text)
    new = setting.text.replace(str(setting.value), one.near)
    if setting.origin is not Origin.FLAG:
        language = "yaml" if setting.origin is Origin.FILE else "python"
        join = ": " if language == "yaml" else "="
        edit = Edit(setting.value_location, setting.text, new)
        return Change(language, f"{setting.name}{join}{new}", (edit,))
    return Change("bash", text, (Edit(setting.value_location, setting.text, new),))


_ZERO = '{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto"}\n'
_TRAIN = """\
from transformers import HfArgumentParser, Trainer, TrainingArguments

args = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()[0]
Trainer(model=model, args=args, train_dataset=data).train()
"""
_FILES = (("configs/ds_zero2.json", _ZERO), ("train.py", _TRAIN))
_COMMAND = "torchrun --nproc_per_node 4 train.py --output_dir out --deepspeed configs/{}\n"

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU027",
        "absent-file",
        Text("配置文件不存在", "Configuration file that is not there"),
        Priority.HIGH,
        judge_of(_absent),
        why="The launcher or the trainer opens the file at start and stops when it is not there, "
        "after the job has waited for its GPUs. It is told of files in a folder of the project "
        "that holds others of the kind, and of names alone where the working folder is known and "
        "neither a file around nor an earlier command, another script or .gitignore speaks for "
        "their coming later; and only where the script names them just once. The same holds for a "
        "file that a program or a configuration names as a literal.",
        fix="Name a file that exists, or add the missing one.",
        ignore="Something else writes the file before the run.",
        impact=Impact(note=Text("不修复则启动失败", "the run fails at start until it is mended")),
        examples=(
            Example(
                "hf_trainer",
                "train.sh",
                _COMMAND.format("ds_zero_2.json"),
                _COMMAND.format("ds_zero2.json"),
                files=_FILES,
            ),
        ),
        sources=(
            "accelerate 1.15, commands/config/config_args.py, load_config_from_file",
            "transformers 5.24, integrations/deepspeed.py, HfDeepSpeedConfig",
        ),
    ),
)
