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


ROLLOUT = "actor_rollout_ref.rollout"
OWN = """\
hydra: {searchpath: ["file://verl/trainer/config"]}
defaults: [ppo_trainer, _self_]
actor_rollout_ref:
  rollout: {gpu_memory_utilization: 0.6, multi_turn: {enable: true}}
"""


def test_a_configuration_of_the_project_is_read_beside_verls_own(tmp_path: Path) -> None:
    folder = tmp_path / "own" / "config"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text(OWN, encoding="utf-8")
    command = f"{COMMAND} --config-path=$PWD/own/config --config-name=mine"
    (tmp_path / "run.sh").write_text(f'{command} "$@"\n', encoding="utf-8")
    run = find_runs(Project.open(tmp_path), "bash run.sh")[0]
    assert run.value("fsdp") == "full_shard"
    share = run.settings[f"{ROLLOUT}.gpu_memory_utilization"]
    assert (share.value, str(share.location)) == (0.6, "own/config/mine.yaml:4")
    assert "own/config/mine.yaml" in run.files
    (folder / "mine.yaml").write_text(OWN.replace("ppo_trainer", "other"), encoding="utf-8")
    run = find_runs(Project.open(tmp_path), "bash run.sh")[0]
    assert not known(run.practice("fsdp").value)


@pytest.mark.parametrize("path", ["", "--config-path=config ", "--config-path=./config "])
@pytest.mark.parametrize(("name", "strategy"), [("ppo_trainer", None), ("ppo_megatron_trainer", 1)])
def test_verls_own_configurations_are_known(
    run_of: Make, path: str, name: str, strategy: object
) -> None:
    run = run_of(f"{COMMAND} {path}--config-name='{name}.yaml'")
    assert (f"{ACTOR}.strategy" in run.settings) is bool(strategy)
    assert (run.value("fsdp") == "full_shard") is not bool(strategy)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("--config-name=own", "the configuration of `--config-name=own` is not in the project"),
        ("$EXTRA", "`$EXTRA` in the command may set it"),
        ("$@", ""),
        ("", ""),
    ],
)
def test_what_may_set_more_is_told(run_of: Make, more: str, said: str) -> None:
    run = run_of(f"{COMMAND} {more}")
    check = next(check for check in all_checks() if check.code == "GPU949")
    (verdict,) = judge(run, [check])
    assert (verdict.judgement.status is Status.UNKNOWN) is bool(said)
    assert said in verdict.judgement.current.en


@pytest.mark.parametrize(
    ("pin", "status", "said"),
    [
        ("verl==0.5.0", Status.RECOMMENDED, "enforce_eager=True (verl 0.5.0,"),
        ("verl==0.7.0", Status.ENABLED, "enforce_eager=False (verl 0.7.0,"),
        ("verl", Status.ENABLED, "enforce_eager=False (verl 0.9.1,"),
    ],
)
def test_a_default_is_that_of_the_release(
    run_of: Make, tmp_path: Path, pin: str, status: Status, said: str
) -> None:
    (tmp_path / "requirements.txt").write_text(f"{pin}\nvllm\n", encoding="utf-8")
    check = next(check for check in all_checks() if check.code == "GPU931")
    (verdict,) = judge(run_of(COMMAND), [check])
    assert verdict.judgement.status is status
    shown = [setting.text for setting in verdict.judgement.evidence]
    assert said in f"{shown} {verdict.judgement.current.en}"


def test_the_source_that_a_project_holds_says_its_release(run_of: Make, tmp_path: Path) -> None:
    (tmp_path / "verl" / "version").mkdir(parents=True)
    (tmp_path / "verl" / "version" / "version").write_text("0.4.1\n", encoding="utf-8")
    check = next(check for check in all_checks() if check.code == "GPU950")
    (verdict,) = judge(run_of(COMMAND), [check])
    assert "max_num_seqs=1024 (verl 0.4.1," in verdict.judgement.current.en


def test_a_sample_is_a_prompt_and_its_response(run_of: Make) -> None:
    limits = "data.max_prompt_length=4096 data.max_response_length=3000"
    assert run_of(f"{COMMAND} {limits}").value("max_length") == 7096
    assert not known(run_of(f"{COMMAND} data.max_prompt_length=4096").practice("max_length").value)


def test_one_node_of_ray_needs_no_tuning_of_nccl(run_of: Make) -> None:
    check = next(check for check in all_checks() if check.name == "nccl-tuning")
    (one,) = judge(run_of(COMMAND), [check])
    assert one.judgement.status is Status.DISABLED
    (more,) = judge(run_of(COMMAND.replace("nnodes=1", "nnodes=2")), [check])
    assert more.judgement.status is Status.UNKNOWN


def test_workers_of_fsdp_have_neither_tensor_nor_pipeline_parallelism(run_of: Make) -> None:
    run = run_of(f"{COMMAND} {ACTOR}.ulysses_sequence_parallel_size=2")
    names = ("tensor_parallel", "pipeline_parallel", "sequence_parallel")
    assert [run.value(name) for name in names] == [1, 1, 2]
    megatron = run_of(f"{COMMAND} --config-name=ppo_megatron_trainer")
    assert not known(megatron.practice("tensor_parallel").value)
    assert not known(run_of(COMMAND).practice("sequence_parallel").value)
