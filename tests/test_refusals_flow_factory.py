"""Rules of frameworks/refusals/flow_factory.py: what is refused, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, runs_of

CONFIG = """\
launcher: accelerate
num_processes: 4
mixed_precision: {mixed_precision}
data:
  dataset_dir: dataset/pickscore
  sampler_type: {sampler_type}
model:
  finetune_type: lora
  model_name_or_path: black-forest-labs/FLUX.1-dev
  model_type: {model_type}
  master_weight_dtype: {master_weight_dtype}
log:
  logging_backend: {logging_backend}
train:
  trainer_type: {trainer_type}
  per_device_batch_size: 2
  num_inference_steps: 10
  group_size: {group_size}
{train}
scheduler:
  dynamics_type: {dynamics_type}
  num_sde_steps: {num_sde_steps}
  sde_steps: {sde_steps}
eval:
  per_device_batch_size: 1
rewards:
  - name: r
    reward_model: {reward_model}
"""
PLAIN = {
    "mixed_precision": "bf16",
    "sampler_type": "auto",
    "model_type": "flux1",
    "master_weight_dtype": "bfloat16",
    "logging_backend": "wandb",
    "trainer_type": "grpo",
    "group_size": "8",
    "dynamics_type": "Flow-SDE",
    "num_sde_steps": "1",
    "sde_steps": "[1, 2, 3]",
    "reward_model": "PickScore",
    "train": "",
}


def told(root: Path, text: str) -> list[str]:
    """What GPU024 says of a file; ``key=value`` parts change it, others go under ``train``."""
    values = dict(PLAIN)
    for part in filter(None, text.split("; ")):
        key, _, value = part.partition("=")
        if key in values:
            values[key] = value
        else:
            values["train"] += f"  {key}: {value}\n"
    files = {"grpo.yaml": CONFIG.format(**values), "run.sh": "ff-train grpo.yaml\n"}
    return [finding.message for finding in findings(runs_of(root, files), "GPU024")]


@pytest.mark.parametrize(
    ("refused", "taken", "instruction"),
    [
        ("trainer_type=grp", "trainer_type=mine.trainers.Mine", "write train.trainer_type=grpo"),
        ("model_type=qwenimage", "model_type=Qwen-Image", "write model.model_type=qwen-image"),
        ("logging_backend=wandbb", "logging_backend=none", "write log.logging_backend=wandb"),
        ("reward_model=PickScor", "reward_model=my.Reward", "write reward_model=pickscore"),
        ("dynamics_type=flow-sde", "dynamics_type=CPS", "give scheduler.dynamics_type one of"),
        (
            "sampler_type=group_contigous",
            "sampler_type=group_contiguous",
            "give data.sampler_type one of",
        ),
        ("master_weight_dtype=half", "master_weight_dtype=fp32", "give model.master_weight_d"),
        (
            "trainer_type=nft; time_sampling_strategy=logitnormal",
            "trainer_type=nft; time_sampling_strategy=logit_normal",
            "give train.time_sampling_strategy one of",
        ),
        (
            "trainer_type=awm; awm_weighting=uniform",
            "trainer_type=awm; awm_weighting=t**2",
            "give train.awm_weighting one of",
        ),
        ("advantage_aggregation=mean", "advantage_aggregation=sum", "give train.advantage_agg"),
        ("mixed_precision=no", "mixed_precision='no'", "write mixed_precision: bf16, fp16"),
        ("mixed_precision=bfloat16", "mixed_precision=fp16", "write mixed_precision: bf16, fp16"),
        (
            "trainer_type=nft; kl_type=x-based",
            "trainer_type=grpo-guard; kl_type=x-based",
            "write train.kl_type=v-based",
        ),
        ("num_sde_steps=0", "num_sde_steps=0; dynamics_type=ODE", "give scheduler.num_sde_steps"),
        (
            "num_sde_steps=null; sde_steps=[]",
            "num_sde_steps=null; sde_steps=null",
            "give scheduler.num_sde_steps",
        ),
        (
            "gradient_accumulation_steps=0",
            "gradient_accumulation_steps=auto",
            "write train.gradient_accumulation_steps=auto",
        ),
        (
            "sampler_type=group_distributed; group_size=16",
            "sampler_type=group_distributed; group_size=8",
            "give train.group_size at most 8",
        ),
        ("trainer_type=dgpo; group_size=9", "trainer_type=grpo; group_size=9", "give train.group"),
        ("trainer_type=dgpo; group_size=0", "group_size=0", "give train.group_size more than 0"),
        (
            "trainer_type=nft; timestep_range=1.5",
            "trainer_type=nft; timestep_range=[0.1, 0.9]",
            "give train.timestep_range an upper bound",
        ),
        ("clip_range=[1.0e-4, -1.0e-4]", "clip_range=1.0e-4", "give train.clip_range its lower"),
        ("adv_clip_range=[5.0, 5.0]", "adv_clip_range=[-5.0, 5.0]", "give train.adv_clip_range"),
        (
            "trainer_type=crd; old_model_decay=0-0.25-0.999",
            "trainer_type=crd; old_model_decay=0-0.25-0.005-0.999",
            "write train.old_model_decay as",
        ),
        (
            "trainer_type=crd; sampling_model_decay=9",
            "trainer_type=crd; sampling_model_decay=slow",
            "write train.sampling_model_decay as",
        ),
        ("model_type=qwen-image-edit-plus", "model_type=qwen-image", "write per_device_batch_si"),
    ],
)
def test_a_rule(tmp_path: Path, refused: str, taken: str, instruction: str) -> None:
    (message,) = told(tmp_path / "a", refused)
    assert message.startswith(instruction)
    assert told(tmp_path / "b", taken) == []


def test_a_change_stands_in_its_section(tmp_path: Path) -> None:
    text = CONFIG.format(**{**PLAIN, "trainer_type": "nft", "train": "  kl_type: x-based\n"})
    files = {"grpo.yaml": text, "run.sh": "ff-train grpo.yaml\n"}
    (finding,) = findings(runs_of(tmp_path, files), "GPU024")
    assert finding.change is not None
    (edit,) = finding.change.edits
    assert (edit.old, edit.new) == ("x-based", "v-based")


def test_rewards_are_a_list_or_a_mapping(tmp_path: Path) -> None:
    start, _, _ = CONFIG.format(**PLAIN).partition("rewards:")
    files = {"grpo.yaml": f"{start}rewards: PickScore\n", "run.sh": "ff-train grpo.yaml\n"}
    (finding,) = findings(runs_of(tmp_path / "a", files), "GPU024")
    assert finding.message.startswith("write rewards as a list")
    files["grpo.yaml"] = f"{start}rewards:\n  name: r\n  reward_model: PickScore\n"
    assert findings(runs_of(tmp_path / "b", files), "GPU024") == []


def test_names_that_are_like_none_may_be_of_newer_sources(tmp_path: Path) -> None:
    assert told(tmp_path / "a", "model_type=hunyuan-video; trainer_type=ppo") == []
    assert told(tmp_path / "b", "reward_model=hpsv3") == []


def test_names_that_no_section_knows_are_kept_for_the_adapter(tmp_path: Path) -> None:
    files = {
        "grpo.yaml": CONFIG.format(**{**PLAIN, "train": "  num_frames: 81\n"})
        + "num_machines: 1\n",
        "run.sh": "ff-train grpo.yaml\n",
    }
    runs = runs_of(tmp_path, files)
    assert not [f for code in ("GPU005", "GPU006", "GPU007") for f in findings(runs, code)]


def test_a_checkout_of_its_own_may_know_more_words(tmp_path: Path) -> None:
    words = {"dynamics_type": "SDE", "trainer_type": "grp", "reward_model": "PickScor"}
    text = CONFIG.format(**{**PLAIN, **words, "num_sde_steps": "0"})
    files = {"grpo.yaml": text, "run.sh": "ff-train grpo.yaml\n"}
    files["src/flow_factory/hparams/args.py"] = ""
    (finding,) = findings(runs_of(tmp_path, files), "GPU024")
    assert finding.message.startswith("give scheduler.num_sde_steps more than 0")
