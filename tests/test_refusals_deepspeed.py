"""DeepSpeed configurations: what its sections do not know, and what its validation refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from checks_support import findings, runs_of

from flake8_gpu_training.checks.base import Finding
from flake8_gpu_training.frameworks.refusals import refusals_of

TRAINER = """\
from transformers import Trainer, TrainingArguments

args = TrainingArguments(output_dir="out", deepspeed="ds.json")
Trainer(model=model, args=args, train_dataset=data).train()
"""
SCRIPT = """\
import deepspeed

engine, _, _, _ = deepspeed.initialize(model=model, config="ds.json")
for batch in data:
    engine.backward(engine(batch))
    engine.step()
"""
AUTO = {"train_micro_batch_size_per_gpu": "auto"}
OFFLOAD: dict[str, Any] = {"device": "cpu"}


def found(
    root: Path, config: dict[str, Any], code: str, version: str = "0.19.8", script: str = TRAINER
) -> list[Finding]:
    """What a check says of a project with this configuration."""
    pin = f"deepspeed=={version}\n" if version else ""
    files = {"train.py": script, "ds.json": json.dumps(config, indent=2), "requirements.txt": pin}
    files["run.sh"] = "deepspeed --num_gpus 4 train.py\n"
    return findings(runs_of(root, files), code)


def zero(**keys: Any) -> dict[str, Any]:
    return {**AUTO, "zero_optimization": keys}


def section(name: str, **keys: Any) -> dict[str, Any]:
    return {**AUTO, name: keys}


FP16 = {"enabled": True}
CASES: tuple[tuple[str, dict[str, Any], dict[str, Any], str], ...] = (
    (
        "communication-type",
        {**AUTO, "communication_data_type": "bfloat16"},
        {**AUTO, "communication_data_type": "BF16"},
        "0.16.9",
    ),
    (
        "older-communication-type",
        {**AUTO, "communication_data_type": "bf16"},
        {**AUTO, "communication_data_type": "bfp16"},
        "0.12.6",
    ),
    (
        "sequence-communication-type",
        {**AUTO, "seq_parallel_communication_data_type": "half"},
        {**AUTO, "seq_parallel_communication_data_type": "fp16"},
        "0.17.6",
    ),
    (
        "reduce-operation",
        {**AUTO, "gradient_allreduce_op": "avg"},
        {**AUTO, "gradient_allreduce_op": "Mean"},
        "0.19.8",
    ),
    (
        "tag-validation",
        section("checkpoint", tag_validation="strict"),
        section("checkpoint", tag_validation="fail"),
        "0.19.8",
    ),
    (
        "autocast-type",
        section("torch_autocast", enabled=True, dtype="fp8"),
        section("torch_autocast", enabled=True, dtype="bfloat16"),
        "0.19.8",
    ),
    (
        "accumulation-type",
        section("data_types", grad_accum_dtype="single"),
        section("data_types", grad_accum_dtype="fp32"),
        "0.19.8",
    ),
    (
        "sparsity-mode",
        section("sparse_attention", mode="sliding"),
        section("sparse_attention", mode="fixed"),
        "0.16.9",
    ),
    (
        "zenflow-strategy",
        zero(stage=2, zenflow={"select_strategy": "always"}),
        zero(stage=2, zenflow={"select_strategy": "step"}),
        "0.19.8",
    ),
    (
        "number-out-of-limits",
        zero(stage=2, reduce_bucket_size=0),
        zero(stage=2, reduce_bucket_size=1),
        "0.19.8",
    ),
    (
        "number-out-of-limits",
        zero(stage=3, offload_optimizer={**OFFLOAD, "ratio": 1.5}),
        zero(stage=3, offload_optimizer={**OFFLOAD, "ratio": 1.0}),
        "0.19.8",
    ),
    (
        "number-out-of-limits",
        {**AUTO, "fp16": {"enabled": True, "loss_scale": -1}},
        {**AUTO, "fp16": {"enabled": True, "loss_scale": 0}},
        "0.19.8",
    ),
    (
        "batch-not-divisible",
        {"train_batch_size": 30, "gradient_accumulation_steps": 1, "zero_optimization": {}},
        {"train_batch_size": 32, "gradient_accumulation_steps": 1, "zero_optimization": {}},
        "0.19.8",
    ),
    ("no-batch-size", {"zero_optimization": {"stage": 2}}, zero(stage=2), "0.19.8"),
    (
        "removed-eigenvalue",
        section("eigenvalue", enabled=True),
        section("eigenvalue", enabled=False),
        "0.18.9",
    ),
    (
        "elastic-with-batch",
        section("elasticity", enabled=True),
        section("elasticity", enabled=True, ignore_non_elastic_batch_info=True),
        "0.16.9",
    ),
    (
        "pipeline-stage-no-truth",
        section("checkpoint", parallel_write={"pipeline_stage": "yes"}),
        section("checkpoint", parallel_write={"pipeline_stage": True}),
        "0.19.8",
    ),
    (
        "safe-modules-no-names",
        section("torch_autocast", lower_precision_safe_modules=[1]),
        section("torch_autocast", lower_precision_safe_modules=["torch.nn.Linear"]),
        "0.19.8",
    ),
    (
        "fp32-modules-no-names",
        section("data_types", keep_in_fp32_modules="norm"),
        section("data_types", keep_in_fp32_modules=["norm"]),
        "0.19.8",
    ),
    (
        "loss-scale-a-truth",
        section("fp16", enabled=True, loss_scale=False),
        section("fp16", enabled=True, loss_scale=0),
        "0.18.9",
    ),
    (
        "scale-limits-a-truth",
        section("fp16", min_loss_scale=True),
        section("fp16", min_loss_scale=1),
        "0.19.8",
    ),
    (
        "dynamic-scale-without-room",
        section("fp16", enabled=True, min_loss_scale=0),
        section("fp16", enabled=True, min_loss_scale=0, loss_scale=128),
        "0.19.8",
    ),
    (
        "zenflow-interval",
        zero(stage=2, zenflow={"update_interval": "often"}),
        zero(stage=2, zenflow={"update_interval": 4}),
        "0.19.8",
    ),
    (
        "replaced-key-beside-new",
        zero(stage=2, cpu_offload=True, offload_optimizer=OFFLOAD),
        zero(stage=2, cpu_offload=True),
        "0.19.8",
    ),
    (
        "partial-offload-below-stage-3",
        zero(stage=2, offload_optimizer={**OFFLOAD, "ratio": 0.5}),
        zero(stage=3, offload_optimizer={**OFFLOAD, "ratio": 0.5}),
        "0.19.8",
    ),
    (
        "norm-off-at-stage",
        zero(stage=3, compute_grad_norm=False),
        zero(stage=2, compute_grad_norm=False),
        "0.19.8",
    ),
    (
        "fp16-masters-stage",
        {**zero(stage=3), "fp16": {**FP16, "fp16_master_weights_and_grads": True}},
        {**zero(stage=2), "fp16": {**FP16, "fp16_master_weights_and_grads": True}},
        "0.16.9",
    ),
    (
        "fp16-masters-need-zero",
        {**zero(stage=0), "fp16": {**FP16, "fp16_master_weights_and_grads": True}},
        {**zero(stage=3), "fp16": {**FP16, "fp16_master_weights_and_grads": True}},
        "0.19.8",
    ),
    (
        "bf16-masters-need-zero",
        section("bf16", enabled=True, bf16_master_weights_and_grads=True),
        {**zero(stage=1), "bf16": {"enabled": True, "bf16_master_weights_and_grads": True}},
        "0.19.8",
    ),
    (
        "bf16-states-need-masters",
        {**zero(stage=1), "bf16": {"enabled": True, "bf16_optimizer_states": True}},
        {
            **zero(stage=1),
            "bf16": {"bf16_optimizer_states": True, "bf16_master_weights_and_grads": True},
        },
        "0.19.8",
    ),
    (
        "sum-at-stage-3",
        {**zero(stage=3), "gradient_allreduce_op": "sum"},
        {**zero(stage=2), "gradient_allreduce_op": "sum"},
        "0.19.8",
    ),
    (
        "sum-with-zenflow",
        {**zero(stage=2, zenflow={}), "gradient_allreduce_op": "sum"},
        {**zero(stage=2, zenflow={}), "gradient_allreduce_op": "mean"},
        "0.19.8",
    ),
    (
        "sum-with-deepcompile",
        {**AUTO, "gradient_allreduce_op": "sum", "compile": {"deepcompile": True}},
        {**AUTO, "gradient_allreduce_op": "sum", "compile": {"deepcompile": False}},
        "0.19.8",
    ),
    (
        "unknown-optimizer",
        section("optimizer", type="OneBitAdam"),
        section("optimizer", type="AdamW"),
        "0.19.8",
    ),
    (
        "unknown-older-optimizer",
        section("optimizer", type="FusedAdam"),
        section("optimizer", type="OneBitAdam"),
        "0.16.9",
    ),
    (
        "unknown-schedule",
        section("scheduler", type="cosine"),
        section("scheduler", type="WarmupCosineLR"),
        "0.19.8",
    ),
    (
        "clipping-in-optimizer",
        section("optimizer", type="AdamW", params={"lr": "auto", "max_grad_norm": 1.0}),
        section("optimizer", type="AdamW", params={"lr": "auto"}),
        "0.19.8",
    ),
    (
        "lamb-static-scale",
        {**section("optimizer", type="Lamb"), "fp16": {"enabled": True, "loss_scale": 128}},
        {**section("optimizer", type="Lamb"), "fp16": {"enabled": True, "loss_scale": 0}},
        "0.19.8",
    ),
)
TOLD_WITH_ANOTHER = {"bf16-states-need-zero": "bf16-states-need-masters"}
"""Rules that hold only together with one of the cases."""


@pytest.mark.parametrize(("rule", "refused", "taken", "version"), CASES, ids=lambda v: str(v)[:40])
def test_a_rule(
    rule: str, refused: dict[str, Any], taken: dict[str, Any], version: str, tmp_path: Path
) -> None:
    mend = next(one for one in refusals_of("deepspeed") if one.name == rule).mend.en
    messages = [f.message for f in found(tmp_path / "bad", refused, "GPU024", version)]
    assert len(messages) == 1, messages
    assert messages[0].startswith(mend.partition("{")[0])
    assert f"DeepSpeed {version}" in messages[0]
    assert found(tmp_path / "good", taken, "GPU024", version) == []


def test_each_rule_has_a_case() -> None:
    told = {rule for rule, *_ in CASES} | TOLD_WITH_ANOTHER.keys()
    rules = {rule.name for rule in refusals_of("deepspeed") if "launcher" not in rule.groups}
    assert rules == told


def test_states_in_bf16_need_zero(tmp_path: Path) -> None:
    both = {"bf16_optimizer_states": True, "bf16_master_weights_and_grads": True}
    messages = [f.message for f in found(tmp_path, section("bf16", **both), "GPU024")]
    assert [m.partition(",")[0] for m in messages] == [
        "drop bf16.bf16_master_weights_and_grads",
        "drop bf16.bf16_optimizer_states",
    ]


@pytest.mark.parametrize(
    ("config", "version"),
    [
        ({**AUTO, "gradient_allreduce_op": "avg"}, "0.18.9"),
        (section("fp16", enabled=True, loss_scale=-1), "0.16.9"),
        (zero(stage=2, reduce_bucket_size=0), "0.18.9"),
        (section("eigenvalue", enabled=True), "0.19.8"),
    ],
)
def test_a_release_without_the_rule_is_silent(
    config: dict[str, Any], version: str, tmp_path: Path
) -> None:
    assert found(tmp_path, config, "GPU024", version) == []


def test_what_the_trainer_fills_in_is_not_known(tmp_path: Path) -> None:
    config = {**AUTO, "train_batch_size": 30, "fp16": {"enabled": "auto", "min_loss_scale": 0}}
    config["optimizer"] = {"type": "AdamW", "params": {"lr": "auto"}}
    assert found(tmp_path, config, "GPU024") == []


def test_a_batch_that_the_script_gives_is_computed(tmp_path: Path) -> None:
    config = {"train_batch_size": 30, "train_micro_batch_size_per_gpu": 2}
    (one,) = found(tmp_path, config, "GPU024", script=SCRIPT)
    assert one.message.startswith("set train_batch_size to 24: 30 is not 2 a GPU x 3 accumulated")


def test_an_optimizer_of_the_program_takes_the_place_of_the_configured(tmp_path: Path) -> None:
    script = SCRIPT.replace("model=model,", "model=model, optimizer=optimizer,")
    config = {"train_batch_size": 4, "optimizer": {"type": "Sophia", "params": {}}}
    assert len(found(tmp_path / "a", config, "GPU024", script=SCRIPT)) == 1
    assert found(tmp_path / "b", config, "GPU024", script=script) == []


def test_a_rule_that_an_older_release_lacks_is_of_medium_priority(tmp_path: Path) -> None:
    config = {**AUTO, "gradient_allreduce_op": "avg"}
    (pinned,) = found(tmp_path / "a", config, "GPU024")
    (open_,) = found(tmp_path / "b", config, "GPU024", version="")
    assert pinned.priority is None
    assert open_.priority is not None
    assert open_.priority.value == "medium"


# --- keys and values of the sections ----------------------------------------------------


@pytest.mark.parametrize(
    ("config", "mend"),
    [
        (zero(stage=2, overlap_com=True), "write overlap_comm"),
        (zero(stage=2, bucket=1), "drop bucket (there is reduce_bucket_size)"),
        (zero(stage=3, offload_param={"device": "cpu", "pin_memry": True}), "write pin_memory"),
        (section("fp16", enabled=True, loss_scale_win=1), "write loss_scale_window"),
        ({**AUTO, "gradient_cliping": 1.0}, "write gradient_clipping"),
    ],
)
def test_a_key_that_no_model_has(config: dict[str, Any], mend: str, tmp_path: Path) -> None:
    (one,) = found(tmp_path, config, "GPU005")
    assert one.message.startswith(f"{mend}: DeepSpeed 0.19.8 has no parameter ")


@pytest.mark.parametrize(
    "config",
    [
        {**AUTO, "my_notes": {"stage": 3}},
        zero(stage=3, stage3_max_live_parameters=1e9, bucket="auto"),
        section("optimizer", type="AdamW", params={"foo": 1}),
        section("activation_checkpointing", own_key=True),
    ],
)
def test_keys_that_are_taken_or_passed_on(config: dict[str, Any], tmp_path: Path) -> None:
    assert found(tmp_path, config, "GPU005") == []


def test_a_misspelt_key_of_the_top_is_ignored_and_of_medium_priority(tmp_path: Path) -> None:
    (one,) = found(tmp_path, {**AUTO, "gradient_cliping": 1.0}, "GPU005")
    assert one.message.endswith("and ignores it")
    assert one.priority is not None
    assert one.priority.value == "medium"
    assert one.change is not None
    (edit,) = one.change.edits
    assert (edit.old, edit.new) == ('"gradient_cliping"', '"gradient_clipping"')


def test_precision_models_were_open_before(tmp_path: Path) -> None:
    config = section("fp16", enabled=True, loss_scale_win=1)
    assert found(tmp_path / "old", config, "GPU005", "0.16.9") == []
    (pinned,) = found(tmp_path / "new", config, "GPU005", "0.19.8")
    (either,) = found(tmp_path / "any", config, "GPU005", "")
    assert pinned.priority is None
    assert either.priority is not None
    assert either.priority.value == "medium"


@pytest.mark.parametrize(
    ("config", "version", "refused"),
    [
        (section("amp", enabled=False), "0.19.8", True),
        (section("amp", enabled=False), "0.18.9", False),
        (zero(stage=3, mics_shard_size=4), "0.19.8", True),
        (zero(stage=3, mics_shard_size=4), "0.17.6", False),
    ],
)
def test_keys_that_a_release_removed(
    config: dict[str, Any], version: str, refused: bool, tmp_path: Path
) -> None:
    assert bool(found(tmp_path, config, "GPU007", version)) is refused


@pytest.mark.parametrize(
    ("config", "version", "refused"),
    [
        (zero(stage=2, contiguous_gradients="maybe"), "0.19.8", True),
        (zero(stage=2, contiguous_gradients="yes"), "0.19.8", False),
        (zero(stage=2, reduce_bucket_size=5e8), "0.19.8", False),
        (zero(stage=2, reduce_bucket_size=0.5), "0.19.8", True),
        (zero(stage=2, reduce_bucket_size=1.5), "0.12.6", False),
        (zero(stage=2, reduce_bucket_size="5e8"), "0.19.8", True),
        (zero(stage=2, reduce_bucket_size="500"), "0.19.8", False),
        (zero(stage=2, offload_optimizer="cpu"), "0.19.8", True),
        (zero(stage=2, offload_optimizer=None, overlap_comm=None), "0.19.8", False),
        (zero(stage=2, allgather_partitions=None), "0.19.8", True),
    ],
)
def test_values_that_a_model_does_not_convert(
    config: dict[str, Any], version: str, refused: bool, tmp_path: Path
) -> None:
    assert bool(found(tmp_path, config, "GPU008", version)) is refused


@pytest.mark.parametrize(
    ("config", "mend"),
    [
        (zero(stage=4), "choose one of 0, 1, 2, 3"),
        (zero(stage=3, offload_param={"device": "cpuu"}), "write device=cpu"),
    ],
)
def test_values_that_are_no_choice(config: dict[str, Any], mend: str, tmp_path: Path) -> None:
    (one,) = found(tmp_path, config, "GPU009")
    assert one.message.startswith(mend)


def test_what_an_inference_engine_takes_is_another_configuration(tmp_path: Path) -> None:
    config = {"replace_with_kernel_inject": True, "tensor_parallel": {"tp_siz": 2}}
    assert found(tmp_path, {**config, **AUTO}, "GPU005") == []


# --- the launcher -------------------------------------------------------------------------


def launched(root: Path, flags: str, code: str = "GPU024") -> list[str]:
    """What a check says of a command of the launcher."""
    command = f"deepspeed {flags} {'train' if '--module' in flags else 'train.py'}\n"
    files = {"train.py": SCRIPT, "run.sh": command, "requirements.txt": "deepspeed==0.19.8\n"}
    return [f.message for f in findings(runs_of(root, files), code)]


@pytest.mark.parametrize(
    ("refused", "taken", "rule"),
    [
        ("--include h1 --exclude h2", "--include h1", "include-with-exclude"),
        ("-i localhost:0 -e localhost:1", "-i localhost:0", "include-with-exclude"),
        ("--num_gpus 2 --include localhost:0,1", "--num_gpus 2", "numbers-with-filter"),
        (
            "--no_ssh --num_nodes 2 --hostfile hosts",
            "--no_ssh --num_nodes 2 --hostfile hosts --node_rank 1",
            "rank-of-no-host",
        ),
        (
            "--launcher ray --hostfile hosts",
            "--launcher OpenMPI --hostfile hosts",
            "unknown-launcher",
        ),
        ("--no_python --module", "--module", "no-python-with-module"),
    ],
)
def test_a_rule_of_the_launcher(refused: str, taken: str, rule: str, tmp_path: Path) -> None:
    mend = next(one for one in refusals_of("deepspeed") if one.name == rule).mend.en
    (message,) = launched(tmp_path / "bad", refused)
    assert message.startswith(mend)
    assert "deepspeed refuses it (DeepSpeed 0.19.8)" in message
    assert launched(tmp_path / "good", taken) == []


@pytest.mark.parametrize(
    "unsure",
    [
        '--num_nodes "$NODES" --no_ssh --node_rank 1',
        '--include "$HOSTS" --exclude h2',
        "$FLAGS --num_nodes 2",
    ],
)
def test_flags_that_are_not_known_are_not_told(unsure: str, tmp_path: Path) -> None:
    assert launched(tmp_path, unsure) == []


def test_a_flag_that_the_launcher_does_not_know(tmp_path: Path) -> None:
    (message,) = launched(tmp_path, "--num_gpu=4 --includes=h1", "GPU005")
    assert message.startswith("write --include: DeepSpeed 0.19.8 has no parameter includes")


def test_a_type_that_an_older_release_lacks_is_of_medium_priority(tmp_path: Path) -> None:
    config = section("fp16", min_loss_scale=0.5)
    (pinned,) = found(tmp_path / "a", config, "GPU008")
    (open_,) = found(tmp_path / "b", config, "GPU008", version="")
    assert pinned.priority is None
    assert open_.priority is not None
    assert open_.priority.value == "medium"
