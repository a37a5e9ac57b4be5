"""The picture of a run: values as they end, and who set them."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import runs_of

from report_builder.cli import main
from report_builder.picture import Row, picture

SCRIPT = """\
from transformers import HfArgumentParser, Trainer, TrainingArguments

parser = HfArgumentParser((TrainingArguments,))
(args,) = parser.parse_args_into_dataclasses()
Trainer(model=None, args=args).train()
"""


def rows(root: Path, files: dict[str, str], lang: str = "en") -> dict[str, Row]:
    run = next(run for run in runs_of(root, files) if run.primary)
    return {row.name: row for row in picture(run, lang)}


def test_a_flag_is_named_with_its_place_and_an_absent_one_with_its_default(tmp_path: Path) -> None:
    found = rows(
        tmp_path,
        {
            "train.py": SCRIPT,
            "run.sh": "torchrun --nproc_per_node 4 train.py --output_dir out \\\n"
            "  --per_device_train_batch_size 2 --bf16\n",
        },
    )
    assert found["micro-batch size"] == Row(
        "micro-batch size", "`2`", "flag `per_device_train_batch_size=2`, run.sh:2"
    )
    assert found["launcher and processes"].value == "`torchrun`: `4` per node, `1` node, 4 in all"
    assert found["activation checkpointing"].value == "off"
    assert "default" in found["activation checkpointing"].source
    assert found["global batch size"] == Row("global batch size", "`8`", "2 × 1 × 4")


def test_a_value_that_beats_another_says_so(tmp_path: Path) -> None:
    files = {
        "conf.yaml": "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: lora\n"
        "dataset: d\nper_device_train_batch_size: 4\noutput_dir: out\n",
        "run.sh": "llamafactory-cli train conf.yaml per_device_train_batch_size=2\n",
    }
    source = rows(tmp_path, files)["micro-batch size"].source
    assert source.endswith("; overrides `4` (conf.yaml:5)")
    assert rows(tmp_path, files, "zh")["每卡微批大小"].source.endswith(
        "；覆盖了 `4`（conf.yaml:5）"
    )


def test_candidates_of_an_undecided_branch_are_shown(tmp_path: Path) -> None:
    files = {
        "run.sh": 'if [ -n "$BIG" ]; then BS=8; else BS=2; fi\n'
        "swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset d "
        "--per_device_train_batch_size $BS\n",
    }
    assert rows(tmp_path, files)["micro-batch size"].value == "unknown (`8` or `2`)"
    assert rows(tmp_path, files, "zh")["每卡微批大小"].value == "未知（`8` 或 `2`）"


UNREAD = {
    "run.sh": "for BS in $(cat sizes); do\n  torchrun --nproc_per_node 2 train.py --output_dir o "
    '--bf16 "$HALF" --per_device_train_batch_size $BS --gradient_checkpointing ${CKPT}\ndone\n',
    "train.py": SCRIPT,
}
BRANCHED = {
    "run.sh": 'if [ -n "$BIG" ]; then B=True; F="full_shard auto_wrap"; else B=False; F=""; fi\n'
    'torchrun --nproc_per_node 2 train.py --output_dir o --bf16 $B --fsdp "$F"\n',
    "train.py": SCRIPT,
}
COMPUTED = {
    "run.sh": "torchrun --nproc_per_node 2 train.py\n",
    "train.py": "from transformers import Trainer, TrainingArguments\n\n"
    "args = TrainingArguments('o', bf16=pick(), gradient_checkpointing=pick(), optim=pick(),\n"
    "    per_device_train_batch_size=pick(), dataloader_num_workers=pick())\n"
    "Trainer(model=None, args=args).train()\n",
}


@pytest.mark.parametrize("files", [UNREAD, BRANCHED, COMPUTED])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_object_of_ours_is_shown_as_python_prints_it(
    tmp_path: Path, files: dict[str, str], lang: str
) -> None:
    root = tmp_path / "project"
    assert runs_of(root, files)
    out = tmp_path / "out"
    assert main([str(root), "--lang", lang, "--output-dir", str(out), "--quiet"]) == 0
    texts = [path.read_text(encoding="utf-8") for path in out.rglob("*") if path.is_file()]
    assert texts
    assert not [text for text in texts if "Unknown(" in text or "``" in text.replace("```", "")]


def test_candidates_of_a_switch_are_told_as_precisions(tmp_path: Path) -> None:
    value = rows(tmp_path, BRANCHED)["compute precision"].value
    assert "`bf16` or `fp32`" in value


def test_one_process_with_several_gpus_shares_each_step_among_them(tmp_path: Path) -> None:
    command = "python train.py --output_dir out --per_device_train_batch_size 12\n"
    files = {"train.py": SCRIPT, "run.sh": f"export CUDA_VISIBLE_DEVICES=2,3\n{command}"}
    row = rows(tmp_path, files)["global batch size"]
    assert (row.value, row.source) == ("`24`", "12 × 1 × 2")


def test_no_global_batch_is_shown_when_the_gpus_of_one_process_are_not_known(
    tmp_path: Path,
) -> None:
    command = "python train.py --output_dir out --per_device_train_batch_size 12\n"
    assert "global batch size" not in rows(tmp_path, {"train.py": SCRIPT, "run.sh": command})


def test_who_starts_a_recipe_is_told_though_it_names_none(tmp_path: Path) -> None:
    recipe = (
        "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\ndo_train: true\nfinetuning_type: lora\n"
    )
    files = {"configs/sft.yaml": recipe, "run.sh": 'llamafactory-cli train "$1"\n'}
    run = next(r for r in runs_of(tmp_path, files) if r.location.path == "configs/sft.yaml")
    told = {row.name: row.source for row in picture(run, "en")}
    assert told["launcher and processes"] == "`run.sh:1`"
    assert "未见" not in "".join(row.source for row in picture(run, "zh"))
    assert (
        main([str(tmp_path), "--output-dir", str(tmp_path / "out"), "--lang", "en", "--quiet"]) == 0
    )
    audit = (tmp_path / "out" / "v0_training-acceleration-audit-report.md").read_text()
    assert "`run.sh:1` takes the configuration and flags from variables" in audit
    assert "No command in the project starts" not in audit


def test_a_count_that_is_not_known_is_said_to_be_unknown(tmp_path: Path) -> None:
    script = SCRIPT.replace(
        "parser = HfArgumentParser((TrainingArguments,))\n"
        "(args,) = parser.parse_args_into_dataclasses()\n",
        'args = TrainingArguments("out")\n',
    )
    english = rows(tmp_path, {"train.py": script})["launcher and processes"].value
    assert english == "`python`: processes per node unknown, number of nodes unknown"
    chinese = rows(tmp_path, {"train.py": script}, "zh")["启动器与进程"].value
    assert chinese == "`python`：每节点进程数未知，节点数未知"
