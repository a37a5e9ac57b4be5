"""What the reports say of models of images and videos: their memory, their samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional

import pytest
import yaml

from flake8_gpu_training.checks.base import Evidence
from flake8_gpu_training.facts import Location, Origin, Setting
from flake8_gpu_training.runs.model import Model, Place, PlaceKind, Run, RunKind
from report_builder import diffusion
from report_builder.advice import deepspeed
from report_builder.scenarios import scenarios

AT = Location("train.sh", 1)


def run_of(framework: str, parameters: Optional[int] = None, **settings: Any) -> Run:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return Run(
        "train.sh:1",
        RunKind.TRAIN,
        framework,
        AT,
        Place(PlaceKind.FLAGS, AT),
        settings={name: Setting(name, value, AT) for name, value in named.items()},
        model=Model(parameters=parameters),
    )


@pytest.mark.parametrize("framework", ["videox_fun", "flow_factory"])
def test_the_table_of_memory_is_of_diffusion_models(framework: str) -> None:
    rows = diffusion.memory_rows(run_of(framework, 14_000_000_000), "en")
    assert rows[0] == ["Method", "1.3B", "5B", "14B"]
    states = {row[0].split(",")[0]: row[1:] for row in rows[2:]}
    assert states["full"] == ["19.4", "74.5", "208.6"]  # 16 bytes each
    assert rows[3] == ["LoRA, base model in 16 bits", "2.4", "9.3", "26.1"]


def test_a_model_of_another_size_has_a_column_of_its_own() -> None:
    rows = diffusion.memory_rows(run_of("flow_factory", 12_000_000_000), "zh")
    assert rows[0] == ["方法", "本模型（12.0B）", "1.3B", "5B", "14B"]
    assert rows[3][1] == "22.4"


def test_language_models_keep_their_table() -> None:
    assert diffusion.memory_rows(run_of("swift", 7_000_000_000), "zh") == []
    assert diffusion.memory_rows(None, "zh") == []


def test_flow_factory_keeps_what_the_run_says_of_its_data() -> None:
    given = {
        "data.dataset_dir": "data/clips.csv",
        "data.first_frame_column": "first",
        "data.extra_kwargs.prompt_column": "caption",
        "data.max_dataset_size": None,
        "data.dataloader_num_workers": 2,
    }
    settings = {name: Setting(name, value, AT, Origin.FILE) for name, value in given.items()}
    run = replace(run_of("flow_factory", 1_300_000_000), settings=settings)
    profile = {"dataset": Setting("dataset", "data/clips.csv", AT)}
    run = replace(run, profile=profile)
    data = yaml.safe_load(scenarios(run, "flow_factory")[0].files[0].text.en)["data"]
    assert data == {
        "dataset_dir": "data/clips.csv",
        "first_frame_column": "first",
        "extra_kwargs": {"prompt_column": "caption"},
        "preprocessing_batch_size": 8,
        "dataloader_num_workers": 8,
        "force_reprocess": False,
        "sampler_type": "auto",
    }


@pytest.mark.parametrize(
    ("origin", "at", "said"),
    [
        (Origin.DEFAULT, AT, "low_vram False unless set"),
        (Origin.FLAG, AT, None),
        (Origin.DEFAULT, None, None),
    ],
)
def test_a_default_of_the_scripts_parser_is_not_shown_as_given(
    origin: Origin, at: Optional[Location], said: Optional[str]
) -> None:
    shown = Evidence.of(Setting("low_vram", False, at, origin)).said
    assert (shown.en if shown is not None else None) == said


@pytest.mark.parametrize(
    ("framework", "tuning", "precision", "noted"),
    [
        ("videox_fun", "full", "bf16", True),
        ("videox_fun", "full", "fp32", False),
        ("videox_fun", "lora", "bf16", False),
        ("flow_factory", "full", "bf16", True),
        ("swift", "full", "bf16", False),
    ],
)
def test_what_the_table_of_states_assumes_is_told(
    framework: str, tuning: str, precision: str, noted: bool
) -> None:
    values = {"tuning": tuning, "precision": precision}
    profile = {name: Setting(name, value, AT) for name, value in values.items()}
    run = replace(run_of(framework, 14_000_000_000), profile=profile)
    assert bool(diffusion.table_note(run).en) is noted


def test_how_a_deepspeed_file_is_taken_says_what_must_not_stand_beside_it() -> None:
    flow = diffusion.deepspeed_usage(run_of("flow_factory"))
    assert "nothing but `deepspeed_config_file: ds_config.json`" in flow.en
    assert "只写 `deepspeed_config_file: ds_config.json`" in flow.zh
    videox = diffusion.deepspeed_usage(run_of("videox_fun"))
    assert "Give the script `--use_deepspeed` as well" in videox.en
    assert diffusion.deepspeed_usage(run_of("swift")).en == ""


def videox(**values: Any) -> Run:
    """A run of VideoX-Fun with flags that are given, and one that its parser defaults."""
    given = {name: Setting(name, value, AT, Origin.FLAG) for name, value in values.items()}
    size = Setting("video_sample_size", 256, AT, Origin.DEFAULT)
    settings = {"video_sample_size": size, "video_sample_n_frames": Setting("f", 81, AT), **given}
    run = replace(run_of("videox_fun", 14_000_000_000), settings=settings)
    return replace(run, model=replace(run.model, kind="video"))


BY_TOKENS = {"training_with_video_token_length": True, "token_sample_size": 512}
BUCKETS = {"enable_bucket": True, "random_hw_adapt": True}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "256 × 256, 81 frames"),
        (BY_TOKENS, "256 × 256, 81 frames"),
        ({**BY_TOKENS, **BUCKETS}, "at most the tokens of 512 × 512, 81 frames; sides and length"),
        ({"image_sample_size": [320, 640]}, "image_sample_size 320 × 640, 81 frames"),
        ({"image_sample_size": [320, 640], "video_sample_size": 256}, "256 × 256, 81 frames"),
        ({"image_sample_size": 1024}, "256 × 256, 81 frames"),
    ],
)
def test_the_size_of_samples_is_what_the_script_makes_of_its_flags(
    values: dict[str, Any], said: str
) -> None:
    facts = {label.en: value for label, value in diffusion.facts(videox(**values), "en")}
    assert facts["Samples"].startswith(said)
    told = {label.zh: value for label, value in diffusion.facts(videox(**values), "zh")}
    assert told["样本"].startswith("token 数至多相当于 512 × 512，81 帧；") is ("at most" in said)


@pytest.mark.parametrize(("dtype", "unsharded"), [("bfloat16", 4.5), ("float32", 8.9), (None, 8.9)])
def test_weights_of_16_bits_have_no_masters_until_they_are_sharded(
    dtype: Optional[str], unsharded: float
) -> None:
    run = replace(run_of("swift", 600_000_000), profile={"tuning": Setting("tuning", "full", AT)})
    if dtype is not None:
        run = replace(run, settings={"torch_dtype": Setting("torch_dtype", dtype, AT)})
    row = deepspeed(run, None).table[0]
    assert [round(one, 1) for one in row.stages] == [unsharded, 8.9, 8.9, 8.9]
    assert bool(diffusion.table_note(run).en) is (unsharded < 8)


def test_what_flow_factorys_nearest_template_changes_is_told() -> None:
    given = {
        "num_processes": 1,
        "train.trainer_type": "nft",
        "train.resolution": [480, 832],
        "train.extra_kwargs.num_frames": 1,
        "train.group_size": 8,
        "train.learning_rate": 1e-4,
    }
    settings = {name: Setting(name, value, AT, Origin.FILE) for name, value in given.items()}
    model = Model("Wan-AI/Wan2.1-T2V-1.3B-Diffusers", "video", 1_300_000_000)
    run = replace(run_of("flow_factory"), settings=settings, model=model)
    algorithm = {"algorithm": Setting("algorithm", "nft", AT)}
    nearest = scenarios(replace(run, profile=algorithm), "flow_factory")[0]
    assert nearest.fits
    said = nearest.changes.en
    assert said.startswith("Other than in this run: `num_processes` 1 → 8, ")
    for change in (
        "`train.trainer_type` nft → grpo",
        "`train.resolution` 480 × 832 → 240",
        "`train.num_frames` 1 → 21",
        "`train.learning_rate` 0.0001 → 1.0e-05",
    ):
        assert change in said
    assert "group_size" not in said
    assert "eval." not in said
    assert nearest.changes.zh.startswith("相对本次运行的改动：`num_processes` 1 → 8、")
