"""VideoX-Fun's templates on the scripts that a project has: their flags, the run's arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from report_builder.scenarios import Scenario, scenarios

_OPTIONS = (
    "config_path",
    "pretrained_model_name_or_path",
    "train_data_dir",
    "train_data_meta",
    "train_mode",
    "train_batch_size",
    "gradient_accumulation_steps",
    "output_dir",
    "learning_rate",
    "rank",
    "network_alpha",
    "mixed_precision",
    "video_sample_size",
    "video_sample_n_frames",
    "dataloader_num_workers",
    "max_grad_norm",
    "lr_scheduler",
)
_SWITCHES = ("gradient_checkpointing", "low_vram", "use_deepspeed")
_BUCKETS = ("enable_bucket", "random_hw_adapt", "training_with_video_token_length")
_LAUNCH = """\
export MODEL_NAME="{model}"
accelerate launch --mixed_precision="bf16" {more}scripts/{script}.py \\
  --pretrained_model_name_or_path=$MODEL_NAME --train_data_meta=data/meta.json \\
  --video_sample_n_frames=49 --train_batch_size=4 --train_mode=control_object \\
  --output_dir=out/control --use_deepspeed{flags}
"""
CONTROL = "models/Wan2.1-Fun-14B-Control"


def program(*more: str, switches: Sequence[str] = _SWITCHES) -> str:
    lines = ["parser = argparse.ArgumentParser()"]
    lines += [f'parser.add_argument("--{name}")' for name in _OPTIONS]
    lines += [f'parser.add_argument("--{name}", action="store_true")' for name in switches]
    lines += [f'parser.add_argument("--{name}", nargs="+", type=int)' for name in more]
    body = "".join(f"    {line}\n" for line in [*lines, "return parser.parse_args()"])
    return f"import argparse\n\n\ndef parse_args():\n{body}\n\nargs = parse_args()\n"


def offered(
    root: Path,
    *scripts: str,
    model: str = CONTROL,
    flags: str = "",
    more: str = "",
    sides: bool = False,
    buckets: bool = False,
) -> tuple[Scenario, ...]:
    """What is offered to a run of the first of a checkout's scripts."""
    switches = (*_SWITCHES, *_BUCKETS) if buckets else _SWITCHES
    text = program(*(("image_sample_size",) if sides else ()), switches=switches)
    files: Mapping[str, str] = {
        "train.sh": _LAUNCH.format(model=model, script=scripts[0], flags=flags, more=more),
        **{f"scripts/{name}.py": text for name in scripts},
    }
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content, encoding="utf-8")
    project = Project.open(root)
    run = next(run for run in find_runs(project) if run.primary)
    assert run.framework == "videox_fun"
    return scenarios(run, "videox_fun", project)


def text_of(found: tuple[Scenario, ...], words: str) -> str:
    return next(s.files[0].text.en for s in found if words in s.title.en)


def test_the_runs_own_script_and_arguments_are_kept(tmp_path: Path) -> None:
    nearest = offered(tmp_path, "wan2.1_fun/train_control", "wan2.1_fun/train")[0]
    text = nearest.files[0].text.en
    assert nearest.title.en.startswith("Full tuning of a 14B video model, FSDP")
    assert "scripts/wan2.1_fun/train_control.py" in text
    for kept in (f'="{CONTROL}"', "--video_sample_n_frames=49", '--train_mode="control_object"'):
        assert kept in text
    assert '--output_dir="out/control-train_full_fsdp"' in text
    assert "--use_fsdp" in text
    assert "--use_deepspeed" not in text
    assert nearest.changes.en.startswith("Script, model, data and all other arguments are those of")
    assert nearest.changes.en.endswith("; without `--use_deepspeed`.")
    assert nearest.changes.zh.endswith("；去掉 `--use_deepspeed`。")
    assert "`--gradient_checkpointing`" in nearest.changes.en
    assert nearest.fits


def test_the_batch_of_the_run_is_in_deepspeeds_file_too(tmp_path: Path) -> None:
    found = offered(tmp_path, "wan2.1_fun/train_control")
    offload = next(s for s in found if "offload" in s.title.en)
    assert "--train_batch_size=4" in offload.files[0].text.en
    assert '"train_micro_batch_size_per_gpu": 4,' in offload.files[1].text.en


def test_a_script_is_told_of_the_deepspeed_that_its_launcher_starts(tmp_path: Path) -> None:
    found = offered(tmp_path, "wan2.1_fun/train_control", "wan2.1_fun/train_lora")
    for words in ("offload", "LoRA of a 14B"):
        launcher, arguments = text_of(found, words).split(".py", 1)
        assert "--use_deepspeed" in launcher
        assert "--use_deepspeed" in arguments
    offload = next(s for s in found if "offload" in s.title.en)
    assert "without" not in offload.changes.en
    text = text_of(found, "LoRA of a 1.3B")
    assert "--use_deepspeed" not in text


def test_flags_that_the_projects_own_script_lacks_are_left_out(tmp_path: Path) -> None:
    text = text_of(offered(tmp_path, "wan2.1_fun/train_control", "wan2.1_fun/train_lora"), "LoRA")
    assert "--rank=64" in text
    for lacking in ("--use_peft_lora", "--target_name", "--enable_bucket", "--allow_tf32"):
        assert lacking not in text


def test_scripts_that_the_project_lacks_start_nothing(tmp_path: Path) -> None:
    titles = [s.title.en for s in offered(tmp_path, "wan2.1_fun/train_control")]
    assert titles
    assert all("LoRA" not in title for title in titles)


@pytest.mark.parametrize(("sides", "buckets"), [(True, False), (False, True)])
def test_buckets_are_not_turned_on_for_samples_with_two_sides(
    sides: bool, buckets: bool, tmp_path: Path
) -> None:
    flags = " --image_sample_size 320 640" if sides else ""
    text = offered(tmp_path, "wan2.1_fun/train_control", flags=flags, sides=sides, buckets=True)[0]
    assert ("--enable_bucket" in text.files[0].text.en) is buckets
    assert ("--image_sample_size 320 640" in text.files[0].text.en) is sides


def test_a_model_that_needs_no_sharding_gets_none(tmp_path: Path) -> None:
    nearest = offered(tmp_path, "wan2.1_fun/train_control", model="models/Wan2.1-Fun-1.3B-Control")
    text = nearest[0].files[0].text.en
    assert nearest[0].title.zh == "1.3B 视频模型全参（DDP），8×80 GB"
    assert "fsdp" not in text.split("scripts/")[0]
    assert "--num_processes 8" in text
    assert nearest[0].launch == "bash train_full.sh"
    assert '--output_dir="out/control-train_full"' in text


def test_a_control_model_is_not_put_into_a_template_for_inpainting(tmp_path: Path) -> None:
    for model, kept in (("Wan2.1-Fun-14B-Control", False), ("Wan2.1-Fun-14B-InP", True)):
        found = offered(
            tmp_path / model, "wan2.1_fun/train", "wan2.1_fun/train_lora", model=f"my/{model}"
        )
        assert (f'"my/{model}"' in text_of(found, "LoRA")) is kept
