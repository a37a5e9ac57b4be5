"""ms-swift: its names, versions and defaults as practices."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from frameworks_support import json_document, launched, profile, run_of, values, yaml_document

from flake8_gpu_training.facts import Origin, Setting, Unknown, known
from flake8_gpu_training.frameworks.registry import framework_of
from flake8_gpu_training.runs.model import Run


def test_defaults_of_sft() -> None:
    practices = values(run_of("swift", "swift sft --model m"))
    expected = {
        "tuning": "lora",
        "gradient_checkpointing": True,
        "vit_gradient_checkpointing": True,
        "attention": "sdpa",
        "dataloader_workers": 1,
        "persistent_workers": True,
        "prefetch_factor": 2,
        "pin_memory": True,
        "packing": False,
        "padding_free": False,
        "liger_kernel": False,
        "logging_steps": 5,
        "save_steps": 500,
        "lr_scheduler": "cosine",
        "warmup": 0,
        "zero_stage": 0,
        "fsdp": "none",
        "quantization_method": "none",
        "quantization_bits": None,
        "lora_rank": 8,
        "algorithm": "sft",
    }
    assert {name: practices[name] for name in expected} == expected


def test_precision_is_left_to_the_model_unless_written() -> None:
    setting = profile(run_of("swift", "swift sft"))["precision"]
    assert isinstance(setting.value, Unknown)
    assert set(setting.value.candidates) == {"bf16", "fp16"}


@pytest.mark.parametrize(
    ("settings", "precision"),
    [
        ({"torch_dtype": "bfloat16"}, "bf16"),
        ({"torch_dtype": "float16"}, "fp16"),
        ({"torch_dtype": "float32"}, "fp16"),
        ({"torch_dtype": "float32", "fp16": False}, "fp32"),
        ({"bf16": True}, "bf16"),
    ],
)
def test_precision_follows_torch_dtype(settings: dict[str, Any], precision: str) -> None:
    assert values(run_of("swift", "swift sft", **settings))["precision"] == precision


def test_an_open_command_has_no_defaults() -> None:
    practices = profile(run_of("swift", "swift sft", is_open=True, attn_impl="flash_attn"))
    assert practices["attention"].value == "flash_attention_2"
    assert "gradient_checkpointing" not in practices
    assert "dataloader_workers" not in practices
    assert "zero_stage" not in practices


@pytest.mark.parametrize("name", ["tuner_type", "train_type", "sft_type"])
def test_tuning_is_read_under_each_versions_name(name: str) -> None:
    assert values(run_of("swift", "swift sft", **{name: "full"}))["tuning"] == "full"


@pytest.mark.parametrize(
    ("version", "parameter"),
    [("3.12.6", "train_type"), ("4.2.0", "tuner_type"), ("", "tuner_type")],
)
def test_tuning_is_written_under_the_versions_name(version: str, parameter: str) -> None:
    run = run_of("swift", "swift sft", versions={"ms-swift": version} if version else {})
    assert framework_of("swift").spellings_of(run)["tuning"].parameter == parameter


def test_version_3_does_not_keep_workers() -> None:
    run = run_of("swift", "swift sft", versions={"ms-swift": "3.12.6"})
    assert values(run)["persistent_workers"] is False


@pytest.mark.parametrize(
    ("shortcut", "stage", "optimizer", "parameters"),
    [
        ("zero0", 0, "none", "none"),
        ("zero1", 1, "none", "none"),
        ("zero2", 2, "none", "none"),
        ("zero3", 3, "none", "none"),
        ("zero2_offload", 2, "cpu", "none"),
        ("zero3_offload", 3, "cpu", "cpu"),
    ],
)
def test_deepspeed_shortcuts(shortcut: str, stage: int, optimizer: str, parameters: str) -> None:
    practices = profile(_with(shortcut))
    assert practices["zero_stage"].value == stage
    assert practices["offload_optimizer"].value == optimizer
    assert practices["offload_param"].value == parameters
    assert practices["overlap_comm"].value is False
    assert practices["zero_stage"].location is not None


def _with(deepspeed: str, **more: Any) -> Run:
    """A run with ``--deepspeed``."""
    run = run_of("swift", "swift sft", **more)
    place = run.location
    settings = {**run.settings, "deepspeed": Setting("deepspeed", deepspeed, place, Origin.FLAG)}
    return dataclasses.replace(run, settings=settings)


def test_a_deepspeed_file_is_read_through_its_document() -> None:
    document = json_document('{"zero_optimization": {"stage": 3}, "gradient_clipping": "auto"}')
    practices = values(dataclasses.replace(_with("ds.json"), deepspeed=document))
    assert practices["zero_stage"] == 3
    assert practices["overlap_comm"] is True
    assert practices["max_grad_norm"] == 1.0


def test_a_deepspeed_file_that_is_missing_leaves_the_stage_unknown() -> None:
    practices = profile(_with("conf/ds.json"))
    assert not known(practices["zero_stage"].value)


def test_gradient_accumulation_by_default_makes_a_batch_of_16() -> None:
    run = run_of("swift", "swift sft", launcher=launched(4), per_device_train_batch_size=1)
    assert values(run)["gradient_accumulation_steps"] == 4
    alone = run_of("swift", "swift sft", launcher=launched(64))
    assert values(alone)["gradient_accumulation_steps"] == 1
    unknown = run_of("swift", "swift sft")
    assert "gradient_accumulation_steps" not in values(unknown)


def test_packing_turns_padding_free_on() -> None:
    practices = profile(run_of("swift", "swift sft", packing=True))
    assert practices["padding_free"].value is True
    assert practices["padding_free"].location is not None


def test_plain_ddp_only_where_nothing_shards() -> None:
    assert values(run_of("swift", "swift sft", launcher=launched(8)))["ddp"] is True
    assert values(run_of("swift", "swift sft", launcher=launched(1)))["ddp"] is False
    assert values(run_of("swift", "swift sft", launcher=launched(8), fsdp="fsdp2"))["ddp"] is False


def test_fsdp2_recomputes_activations_itself() -> None:
    practices = values(run_of("swift", "swift sft", fsdp="fsdp2", gradient_checkpointing=False))
    assert practices["fsdp"] == "full_shard"
    assert practices["fsdp_version"] == 2
    assert practices["gradient_checkpointing"] is True


def test_quantization_names_method_and_bits() -> None:
    practices = values(run_of("swift", "swift sft", quant_method="bnb", quant_bits=4))
    assert (practices["quantization_method"], practices["quantization_bits"]) == ("bnb", 4)


def test_rlhf_has_its_algorithm_and_rollout_engine() -> None:
    practices = values(run_of("swift", "swift rlhf", rlhf_type="grpo", use_vllm=True))
    assert (practices["algorithm"], practices["rollout_engine"]) == ("grpo", "vllm")
    practices = values(run_of("swift", "swift rlhf", rlhf_type="grpo"))
    assert practices["rollout_engine"] == "none"
    assert values(run_of("swift", "swift rlhf"))["algorithm"] == "dpo"
    assert "rollout_engine" not in values(run_of("swift", "swift rlhf", rlhf_type="dpo"))


def test_megatron_has_defaults_of_its_own() -> None:
    practices = values(run_of("swift", "megatron sft --load m"))
    expected = {
        "megatron": True,
        "tuning": "full",
        "attention": "flash_attention_2",
        "gradient_checkpointing": True,
        "padding_free": True,
        "tensor_parallel": 1,
        "pipeline_parallel": 1,
        "dataloader_workers": 4,
        "persistent_workers": True,
        "zero_stage": 0,
        "overlap_comm": False,
        "optimizer": "adam",
    }
    assert {name: practices[name] for name in expected} == expected


def test_megatron_parameters() -> None:
    run = run_of(
        "swift",
        "megatron sft",
        launcher=launched(8),
        tensor_model_parallel_size=2,
        micro_batch_size=2,
        global_batch_size=64,
        recompute_granularity="none",
        fp8_format="e4m3",
        attention_backend="flash_3",
        optimizer_cpu_offload=True,
    )
    practices = values(run)
    assert practices["tensor_parallel"] == 2
    assert practices["gradient_accumulation_steps"] == 8  # 64 / 2 / (8 / 2)
    assert practices["gradient_checkpointing"] is False
    assert practices["precision"] == "fp8"
    assert practices["attention"] == "flash_attention_3"
    assert practices["offload_optimizer"] == "cpu"


def test_what_a_run_writes_is_what_it_reads() -> None:
    run = run_of("swift", "swift sft")
    spellings = framework_of("swift").spellings_of(run)
    for practice, value in (
        ("attention", "flash_attention_2"),
        ("liger_kernel", True),
        ("zero_stage", 2),
        ("unsloth", True),
        ("precision", "bf16"),
        ("fsdp", "full_shard"),
    ):
        written = dict(spellings[practice].parameters(value))
        made = (
            _with(str(written.pop("deepspeed")), **written)
            if "deepspeed" in written
            else (run_of("swift", "swift sft", **written))
        )
        assert values(made)[practice] == value


def test_evidence_has_the_users_place_or_the_source_of_the_default() -> None:
    practices = profile(run_of("swift", "swift sft", attn_impl="flash_attn"))
    assert practices["attention"].location is not None
    assert practices["gradient_checkpointing"].location is None
    assert practices["gradient_checkpointing"].origin is Origin.DEFAULT
    assert "ms-swift" in practices["gradient_checkpointing"].note


def test_an_fsdp_file_that_was_not_read_leaves_sharding_unknown() -> None:
    run = run_of("swift", "swift sft", launcher=launched(8), fsdp="conf/fsdp.json")
    practices = values(run)
    assert not {"fsdp", "ddp"} & practices.keys()
    assert practices["gradient_checkpointing"] is True
    run = run_of("swift", "swift sft", fsdp="conf/fsdp.json", gradient_checkpointing=False)
    assert "gradient_checkpointing" not in values(run)


def test_accelerates_sharding_holds_where_swift_sets_none() -> None:
    document = yaml_document("distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n")
    run = run_of("swift", "swift sft", launcher=launched(8, "accelerate"), accelerate=document)
    practices = values(run)
    assert (practices["fsdp"], practices["fsdp_version"]) == ("full_shard", 2)
    assert practices["ddp"] is False


@pytest.mark.parametrize(
    ("version", "factor"),
    [("3.3.1", 10), ("3.5.2", 10), ("3.11.3", 10), ("3.12.0", 2), ("4.6.0", 2), ("", 2)],
)
def test_batches_that_workers_prefetch(version: str, factor: int) -> None:
    run = run_of("swift", "swift sft --model m", dataloader_num_workers=4)
    run = dataclasses.replace(run, versions={"ms-swift": version} if version else {})
    setting = profile(run)["prefetch_factor"]
    assert setting.value == factor
    assert version in setting.note


def test_nothing_is_prefetched_without_workers() -> None:
    run = run_of("swift", "swift sft --model m", dataloader_num_workers=0)
    assert profile(run)["prefetch_factor"].value is None


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "bf16"),
        ("/data/Qwen3-8B", "bf16"),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", None),
        ("Qwen/Qwen2-7B", None),
        ("meta-llama/Llama-2-7b-hf", None),
    ],
)
def test_precision_of_checkpoints_that_are_all_of_one(name: str, precision: Any) -> None:
    run = run_of("swift", "swift sft")
    run = dataclasses.replace(run, model=dataclasses.replace(run.model, name=name))
    assert run_value(run, "precision") == precision


def run_value(run: Run, name: str) -> Any:
    setting = profile(run)[name]
    return setting.value if setting.known else None
