"""VideoX-Fun's scripts: what their parsers and first steps refuse, and what they do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, runs_of

ZERO = """\
compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED
deepspeed_config:
  zero_stage: {}
num_processes: 4
num_machines: 1
"""
START = "accelerate launch --config_file zero.yaml --num_processes 4 scripts/{}.py \\\n"
FLAGS = "  --pretrained_model_name_or_path models/Wan --train_data_meta data.json {}\n"


def told(
    root: Path,
    flags: str,
    script: str = "wan2.1_fun/train",
    code: str = "GPU024",
    stage: int = 2,
    base: str = FLAGS,
) -> list[str]:
    """What a check says of a launch of a script that is out of sight."""
    command = START.format(script) + base.format(flags)
    files = {"train.sh": command, "zero.yaml": ZERO.format(stage)}
    return [finding.message for finding in findings(runs_of(root, files), code)]


REWARD = "wan2.1_fun/train_reward_lora"


@pytest.mark.parametrize(
    ("script", "refused", "taken", "instruction"),
    [
        (
            "wan2.1_fun/train",
            "--report_to=wandb --hub_token=$HF_TOKEN",
            "--report_to=tensorboard --hub_token=$HF_TOKEN",
            "drop --hub_token",
        ),
        ("wan2.1/train_lora", "--lr_scheduler cosin", "--lr_scheduler cosine", "give --lr_sch"),
        ("wan2.1_vace/train", "--train_batch_size 2", "--train_batch_size 1", "write --train_ba"),
        (
            REWARD,
            "--validation_prompt_path p.txt --validation_batch_size 6",
            "--validation_prompt_path p.txt --validation_batch_size 8",
            "give --validation_batch_size a multiple of 4",
        ),
        (
            REWARD,
            "--backprop --num_inference_steps 20 --backprop_step_list 25 30",
            "--backprop --num_inference_steps 20 --backprop_step_list 15 30",
            "give --backprop_step_list a step below 20",
        ),
        (
            REWARD,
            "--backprop --num_inference_steps 5 --backprop_strategy tail --backprop_num_steps 5",
            "--backprop --num_inference_steps 5 --backprop_strategy last --backprop_num_steps 5",
            "give --backprop_num_steps less than 5",
        ),
        (
            REWARD,
            "--backprop --num_inference_steps 50 --backprop_strategy random "
            "--backprop_random_start_step 9 --backprop_random_end_step 3",
            "--backprop --num_inference_steps 50 --backprop_strategy random "
            "--backprop_random_start_step 3 --backprop_random_end_step 9",
            "let the steps be start <= end < 50",
        ),
        ("wan2.2_fun/train_reward_lora", "--validation_prompts Cat", "", "drop --validation_pr"),
        (
            "cogvideox_fun/train_reward_lora",
            "--vae_gradient_checkpointing --num_decoded_latents 5",
            "--vae_gradient_checkpointing --num_decoded_latents 2",
            "give --num_decoded_latents at most 3",
        ),
        (
            "hunyuanvideo/train",
            "--enable_text_encoder_in_dataloader",
            "",
            "drop --enable_text_encoder_in_dataloader",
        ),
    ],
)
def test_a_rule(tmp_path: Path, script: str, refused: str, taken: str, instruction: str) -> None:
    (message,) = told(tmp_path / "a", refused, script)
    assert message.startswith(instruction)
    assert told(tmp_path / "b", taken, script) == []


def test_other_scripts_take_more_samples(tmp_path: Path) -> None:
    assert told(tmp_path, "--train_batch_size 2") == []


def test_averages_and_zero3(tmp_path: Path) -> None:
    (message,) = told(tmp_path / "a", "--use_ema", stage=3)
    assert message.startswith("drop --use_ema or take ZeRO stage 2")
    assert told(tmp_path / "b", "--use_ema", stage=2) == []
    assert told(tmp_path / "c", "", stage=3) == []


def test_a_model_must_be_named(tmp_path: Path) -> None:
    (message,) = told(tmp_path / "a", "", base="  --train_data_meta data.json {}\n")
    assert message.startswith("give --pretrained_model_name_or_path")
    assert told(tmp_path / "b", "", base="  --train_data_meta data.json $MORE {}\n") == []


def test_flags_of_a_script_out_of_sight(tmp_path: Path) -> None:
    (message,) = told(tmp_path / "a", "--train_batch_sise=1", code="GPU005")
    assert message.startswith("write --train_batch_size")
    # What is like no flag may be one of a newer script.
    assert told(tmp_path / "b", "--motion_bucket 127", code="GPU005") == []
    (message,) = told(tmp_path / "c", "--max_train_steps=1e4", code="GPU008")
    assert message.startswith("write --max_train_steps 10000")
    assert told(tmp_path / "d", "--max_train_steps=10000", code="GPU008") == []


def test_a_switch_takes_no_value(tmp_path: Path) -> None:
    (message,) = told(tmp_path / "a", "--enable_bucket True", code="GPU025")
    assert message.startswith("write --enable_bucket alone")
    (message,) = told(tmp_path / "b", "--enable_bucket False", code="GPU025")
    assert message.startswith("drop --enable_bucket False")
    assert told(tmp_path / "c", "--enable_bucket --use_ema", code="GPU025") == []


SCRIPT = """\
import argparse
import torch
from accelerate import Accelerator
from videox_fun.models import WanTransformer3DModel

def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pretrained_model_name_or_path", type=str, required=True)
    parser.add_argument("--train_data_meta", type=str)
    parser.add_argument("--train_batch_size", type=int, default=16)
    parser.add_argument("--report_to", type=str, default="tensorboard")
    parser.add_argument("--hub_token", type=str, default=None)
    parser.add_argument("--own_switch", action="store_true")
    return parser.parse_args()

def main():
    args = parse_args()
    accelerator = Accelerator(log_with=args.report_to)
    model = WanTransformer3DModel.from_pretrained(args.pretrained_model_name_or_path)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loader = torch.utils.data.DataLoader(dataset, batch_size=args.train_batch_size)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        loss = model(batch)
        accelerator.backward(loss)
        optimizer.step()

if __name__ == "__main__":
    main()
"""


def test_a_checkout_has_the_parser_itself(tmp_path: Path) -> None:
    command = START.format("wan2.1_fun/train").replace("--config_file zero.yaml ", "")
    flags = "--own_switch --train_batch_sise 1 --report_to wandb --hub_token x"
    files = {
        "train.sh": command + FLAGS.format(flags),
        "scripts/wan2.1_fun/train.py": SCRIPT,
        "videox_fun/models/__init__.py": "",
    }
    runs = runs_of(tmp_path, files)
    assert findings(runs, "GPU005") == []
    (finding,) = findings(runs, "GPU025")
    assert finding.message.startswith("write --train_batch_size")
    (finding,) = findings(runs, "GPU024")
    assert finding.message.startswith("drop --hub_token")
