"""DeepSpeed's and Accelerate's own configurations as practices."""

from __future__ import annotations

import pytest
from frameworks_support import json_document, launched, run_of, yaml_document

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.accelerate import practices_from_accelerate, practices_of_run
from flake8_gpu_training.frameworks.deepspeed import practices_from_deepspeed


def test_a_configuration_without_zero_is_stage_0() -> None:
    practices = practices_from_deepspeed(json_document('{"train_batch_size": 8}'))
    assert practices["zero_stage"].value == 0
    assert practices["zero_stage"].location is None


@pytest.mark.parametrize(("stage", "overlaps"), [(1, False), (2, False), (3, True)])
def test_overlap_is_on_by_default_at_stage_3_alone(stage: int, overlaps: bool) -> None:
    document = json_document(f'{{"zero_optimization": {{"stage": {stage}}}}}')
    practices = practices_from_deepspeed(document)
    assert practices["zero_stage"].value == stage
    assert practices["overlap_comm"].value is overlaps
    assert practices["overlap_comm"].location is None


def test_what_is_written_has_its_place_and_text() -> None:
    document = json_document('{\n  "zero_optimization": {\n    "stage": 2\n  }\n}\n')
    setting = practices_from_deepspeed(document)["zero_stage"]
    assert setting.location is not None
    assert (setting.location.line, setting.text) == (3, "2")
    assert setting.value_location is not None
    assert setting.value_location.line == 3


def test_auto_is_no_setting() -> None:
    document = json_document(
        '{"bf16": {"enabled": "auto"}, "gradient_accumulation_steps": "auto",'
        ' "train_micro_batch_size_per_gpu": "auto", "gradient_clipping": "auto",'
        ' "zero_optimization": {"stage": 2, "overlap_comm": "auto"}}'
    )
    practices = practices_from_deepspeed(document)
    absent = {"precision", "gradient_accumulation_steps", "micro_batch_size", "max_grad_norm"}
    assert not absent & practices.keys()
    assert practices["overlap_comm"].value is False


def test_offloading_and_its_deprecated_form() -> None:
    document = json_document(
        '{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"},'
        ' "offload_param": {"device": "nvme"}, "zero_hpz_partition_size": 8}}'
    )
    practices = practices_from_deepspeed(document)
    assert practices["offload_optimizer"].value == "cpu"
    assert practices["offload_param"].value == "nvme"
    assert practices["zero_hpz_partition_size"].value == 8
    old = json_document('{"zero_optimization": {"stage": 2, "cpu_offload": true}}')
    assert practices_from_deepspeed(old)["offload_optimizer"].value == "cpu"


def test_a_device_of_none_offloads_nothing() -> None:
    document = json_document(
        '{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "none"},'
        ' "offload_param": {"pin_memory": true}}}'
    )
    practices = practices_from_deepspeed(document)
    assert practices["offload_optimizer"].value == "none"
    assert practices["offload_param"].value == "none"


def test_parameters_are_offloaded_at_stage_3_alone() -> None:
    document = json_document(
        '{"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}'
    )
    assert practices_from_deepspeed(document)["offload_param"].value == "none"


@pytest.mark.parametrize(
    ("text", "precision"),
    [
        ('{"bf16": {"enabled": true}}', "bf16"),
        ('{"fp16": {"enabled": true}, "bf16": {"enabled": false}}', "fp16"),
        ('{"bfloat16": {"enabled": true}}', "bf16"),
    ],
)
def test_precision(text: str, precision: str) -> None:
    assert practices_from_deepspeed(json_document(text))["precision"].value == precision


def test_optimizer_schedule_and_tensor_parallelism() -> None:
    document = json_document(
        '{"optimizer": {"type": "AdamW"}, "tensor_parallel": {"autotp_size": 4},'
        ' "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 100}}}'
    )
    practices = practices_from_deepspeed(document)
    assert practices["optimizer"].value == "adamw"
    assert practices["lr_scheduler"].value == "warmuplr"
    assert practices["warmup"].value == 100
    assert practices["autotp_size"].value == 4


@pytest.mark.parametrize(
    "text",
    [
        '{"zero_optimization": {"stage": "two"}}',
        '{"zero_optimization": {"stage": null}}',
        '{"zero_optimization": {"stage": [1]}}',
        '{"zero_optimization": {"stage": 7}}',
    ],
)
def test_a_stage_that_is_none_is_unknown(text: str) -> None:
    assert not known(practices_from_deepspeed(json_document(text))["zero_stage"].value)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '"text"',
        '{"zero_optimization": []}',
        '{"bf16": true, "optimizer": null, "scheduler": 3}',
        '{"zero_optimization": {"stage": 3, "offload_param": "cpu"}}',
    ],
)
def test_odd_shapes_are_read_without_a_crash(text: str) -> None:
    practices_from_deepspeed(json_document(text))
    practices_from_accelerate(json_document(text))


def test_the_old_switch_is_stage_1() -> None:
    practices = practices_from_deepspeed(json_document('{"zero_optimization": true}'))
    assert practices["zero_stage"].value == 1


def test_accelerate_deepspeed() -> None:
    document = yaml_document(
        "distributed_type: DEEPSPEED\nmixed_precision: fp16\ndeepspeed_config:\n"
        "  zero_stage: 3\n  offload_optimizer_device: cpu\n  gradient_accumulation_steps: 4\n"
    )
    practices = practices_from_accelerate(document)
    assert practices["precision"].value == "fp16"
    assert practices["zero_stage"].value == 3
    assert practices["zero_stage"].location is not None
    assert practices["zero_stage"].location.line == 4
    assert practices["offload_optimizer"].value == "cpu"
    assert practices["offload_param"].value == "none"
    assert practices["gradient_accumulation_steps"].value == 4


def test_accelerate_leaves_the_stage_to_deepspeeds_own_file() -> None:
    document = yaml_document(
        "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n"
    )
    assert "zero_stage" not in practices_from_accelerate(document)


@pytest.mark.parametrize(
    ("lines", "strategy", "version"),
    [
        ("  fsdp_sharding_strategy: FULL_SHARD\n", "full_shard", 1),
        ("  fsdp_sharding_strategy: 2\n", "shard_grad_op", 1),
        ("  fsdp_sharding_strategy: HYBRID_SHARD_ZERO2\n", "hybrid_shard", 1),
        ("  fsdp_version: 2\n  fsdp_reshard_after_forward: true\n", "full_shard", 2),
        ("  fsdp_version: 2\n  fsdp_reshard_after_forward: false\n", "shard_grad_op", 2),
        ("  fsdp_version: 2\n", "full_shard", 2),
    ],
)
def test_accelerate_fsdp(lines: str, strategy: str, version: int) -> None:
    document = yaml_document("distributed_type: FSDP\nfsdp_config:\n" + lines)
    practices = practices_from_accelerate(document)
    assert practices["fsdp"].value == strategy
    assert practices["fsdp_version"].value == version
    assert practices["fsdp_offload"].value is False


def test_accelerate_recomputes_and_compiles() -> None:
    document = yaml_document(
        "distributed_type: FSDP\nfsdp_config:\n  fsdp_activation_checkpointing: true\n"
        "dynamo_config:\n  dynamo_backend: INDUCTOR\n"
    )
    practices = practices_from_accelerate(document)
    assert practices["gradient_checkpointing"].value is True
    assert practices["torch_compile"].value is True


def test_sections_of_another_kind_do_not_count() -> None:
    document = yaml_document(
        "distributed_type: MULTI_GPU\ndeepspeed_config:\n  zero_stage: 3\nmixed_precision: 'no'\n"
    )
    practices = practices_from_accelerate(document)
    assert "zero_stage" not in practices
    assert practices["precision"].value == "fp32"


def test_launch_flags_win_over_the_file() -> None:
    document = yaml_document("distributed_type: MULTI_GPU\nmixed_precision: fp16\n")
    run = run_of(
        "generic",
        accelerate=document,
        launcher=launched(8, "accelerate", mixed_precision="bf16", use_deepspeed=True),
    )
    practices = practices_of_run(run)
    assert practices["precision"].value == "bf16"
    assert practices["zero_stage"].value == 2
