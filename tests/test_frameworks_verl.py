"""verl's main_ppo: how its actor runs when the command says nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest

from flake8_gpu_training.checks.base import Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.facts import known
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.verdicts import judge

ACTOR = "actor_rollout_ref.actor"
COMMAND = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo trainer.nnodes=1 "
    f"trainer.n_gpus_per_node=8 {ACTOR}.ppo_micro_batch_size_per_gpu=4 "
    "actor_rollout_ref.rollout.name=vllm"
)
NAMES = ("fsdp", "zero_stage", "precision", "attention", "tuning", "micro_batch_size")
Make = Callable[[str], Run]


@pytest.fixture
def run_of(tmp_path: Path) -> Make:
    """The run of a script with one command."""

    def make(command: str) -> Run:
        (tmp_path / "run.sh").write_text(command + "\n", encoding="utf-8")
        return find_runs(Project.open(tmp_path), "bash run.sh")[0]

    return make


def _values(run: Run) -> dict[str, Any]:
    found = {name: run.practice(name).value for name in NAMES}
    return {name: value if known(value) else "unknown" for name, value in found.items()}


def test_the_actor_runs_as_all_releases_have_it(run_of: Make) -> None:
    assert _values(run_of(COMMAND)) == {
        "fsdp": "full_shard",
        "zero_stage": 0,
        "precision": "bf16",
        "attention": "flash_attention_2",
        "tuning": "full",
        "micro_batch_size": 4,
    }


@pytest.mark.parametrize(
    ("more", "name", "value"),
    [
        (f"{ACTOR}.fsdp_config.fsdp_size=4", "fsdp", "unknown"),
        (f"{ACTOR}.fsdp_config.reshard_after_forward=False", "fsdp", "unknown"),
        (f"+{ACTOR}.fsdp_config.mixed_precision.param_dtype=fp16", "precision", "unknown"),
        (
            "+actor_rollout_ref.model.override_config.attn_implementation=eager",
            "attention",
            "unknown",
        ),
        ("actor_rollout_ref.model.lora_rank=32", "tuning", "lora"),
        ("actor_rollout_ref.model.lora_rank=$RANK", "tuning", "unknown"),
        (f"{ACTOR}.use_dynamic_bsz=True", "micro_batch_size", "unknown"),
        (f"{ACTOR}.use_dynamic_bsz=False", "micro_batch_size", 4),
        (f"{ACTOR}.strategy=megatron", "fsdp", "unknown"),
        (f"{ACTOR}.strategy=fsdp2", "fsdp", "full_shard"),
        ("--config-name=ppo_megatron_trainer", "attention", "unknown"),
        ("$EXTRA_ARGUMENTS", "precision", "unknown"),
    ],
)
def test_what_is_overridden_is_not_claimed(run_of: Make, more: str, name: str, value: Any) -> None:
    assert _values(run_of(f"{COMMAND} {more}"))[name] == value


def test_a_micro_batch_of_all_gpus_is_shared_out(run_of: Make) -> None:
    whole = COMMAND.replace("ppo_micro_batch_size_per_gpu=4", "ppo_micro_batch_size=64")
    assert _values(run_of(whole))["micro_batch_size"] == 8
    split = f"{whole} {ACTOR}.ulysses_sequence_parallel_size=2"
    assert _values(run_of(split))["micro_batch_size"] == "unknown"


def test_processes_alone_are_no_ddp(run_of: Make) -> None:
    """FSDP or Megatron-core trains them, as another configuration says."""
    run = run_of(f"{COMMAND} --config-name=own")
    verdicts = [v for v in judge(run, all_checks()) if v.check.code == "GPU101"]
    assert [v.judgement.status for v in verdicts] == [Status.UNKNOWN]
