"""LlamaFactory, VideoX-Fun, Flow-Factory, vLLM and SGLang: their settings as practices."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from frameworks_support import json_document, launched, profile, run_of, values, yaml_document

from flake8_gpu_training.facts import Location, Origin, Setting, known
from flake8_gpu_training.frameworks.base import ABSENT
from flake8_gpu_training.frameworks.registry import MODULES, framework_of
from flake8_gpu_training.runs.model import PRACTICES, RunKind


@pytest.mark.parametrize("identifier", sorted(MODULES))
def test_every_framework_speaks_of_known_practices_and_names_its_sources(identifier: str) -> None:
    framework = framework_of(identifier)
    assert framework.id == identifier
    assert framework.title
    assert set(framework.spellings) <= set(PRACTICES)
    for name, spelling in framework.spellings.items():
        assert spelling.parameter, name
        assert spelling.default is ABSENT or spelling.source, name


@pytest.mark.parametrize("identifier", sorted(MODULES))
@pytest.mark.parametrize("kind", list(RunKind))
def test_an_empty_run_of_any_kind_has_a_profile(identifier: str, kind: RunKind) -> None:
    for setting in profile(run_of(identifier, kind=kind)).values():
        assert setting.location is None


@pytest.mark.parametrize("identifier", sorted(MODULES))
@pytest.mark.parametrize("value", [None, True, 0, -1.5, "", "odd value", [1, "a"], {"a": {"b": 1}}])
def test_no_value_of_any_parameter_makes_a_crash(identifier: str, value: Any) -> None:
    run = run_of(identifier)
    names = {
        name
        for spelling in framework_of(identifier).spellings_of(run).values()
        for name in (spelling.parameter, *spelling.aliases)
    }
    extra = {"fp16", "deepspeed", "fsdp_config", "warmup_steps", "save_strategy", "rlhf_type"}
    place = Location("train.sh", 3, 1)
    settings = {name: Setting(name, value, place, Origin.FLAG) for name in sorted(names | extra)}
    practices = profile(dataclasses.replace(run, settings=settings))
    assert set(practices) <= set(PRACTICES)


def test_llamafactory_defaults() -> None:
    practices = values(run_of("llamafactory", "llamafactory-cli train"))
    expected = {
        "attention": "auto",
        "gradient_checkpointing": True,
        "tuning": "lora",
        "lora_rank": 8,
        "max_length": 2048,
        "quantization_method": "none",
        "quantization_bits": None,
        "precision": "fp32",
        "packing": False,
        "padding_free": False,
        "preprocessing_workers": None,
        "dataloader_workers": 0,
        "liger_kernel": False,
        "unsloth": False,
        "zero_stage": 0,
        "fsdp": "none",
        "algorithm": "sft",
        "pretokenized": False,
        "find_unused_parameters": False,
    }
    assert {name: practices[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("settings", "practice", "value"),
    [
        ({"flash_attn": "fa2"}, "attention", "flash_attention_2"),
        ({"flash_attn": "disabled"}, "attention", "eager"),
        ({"disable_gradient_checkpointing": True}, "gradient_checkpointing", False),
        ({"use_unsloth_gc": True}, "gradient_checkpointing", True),
        ({"bf16": True}, "precision", "bf16"),
        ({"pure_bf16": True}, "precision", "pure-bf16"),
        ({"fp8": True, "bf16": True}, "precision", "fp8"),
        ({"quantization_bit": 4}, "quantization_method", "bnb"),
        ({"quantization_bit": 4, "quantization_method": "hqq"}, "quantization_method", "hqq"),
        ({"neat_packing": True}, "packing", True),
        ({"neat_packing": True}, "padding_free", True),
        ({"stage": "pt"}, "packing", True),
        ({"stage": "dpo"}, "algorithm", "dpo"),
        ({"use_badam": True}, "optimizer", "badam"),
        ({"use_galore": True}, "optimizer", "galore"),
        ({"tokenized_path": "cache"}, "pretokenized", True),
        ({"use_mca": True}, "megatron", True),
        ({"enable_liger_kernel": True}, "liger_kernel", True),
        ({"fsdp": "full_shard auto_wrap"}, "fsdp", "full_shard"),
    ],
)
def test_llamafactory_parameters(settings: dict[str, Any], practice: str, value: Any) -> None:
    assert values(run_of("llamafactory", **settings))[practice] == value


def test_llamafactory_deepspeed() -> None:
    document = json_document('{"zero_optimization": {"stage": 3}}')
    run = run_of("llamafactory", deepspeed=document, launcher=launched(8))
    practices = values(run)
    assert (practices["zero_stage"], practices["ddp"]) == (3, False)
    place = Location("sft.yaml", 4, 1)
    named = Setting("deepspeed", "gone.json", place, Origin.FILE)
    missing = dataclasses.replace(run_of("llamafactory"), settings={"deepspeed": named})
    assert not known(profile(missing)["zero_stage"].value)


def test_llamafactory_writes_what_it_reads() -> None:
    spellings = framework_of("llamafactory").spellings
    assert spellings["gradient_checkpointing"].parameters(True) == {
        "disable_gradient_checkpointing": False
    }
    assert spellings["precision"].parameters("pure-bf16") == {"pure_bf16": True}
    assert spellings["attention"].parameters("flash_attention_2") == {"flash_attn": "fa2"}


def test_videox_fun() -> None:
    number = Setting("num_processes", 8, Location("train.sh", 2, 5), Origin.FLAG)
    run = run_of(
        "videox_fun",
        entry="scripts/wan2.1_fun/train_lora.py",
        launcher=dataclasses.replace(launched(8, "accelerate"), options={"num_processes": number}),
        mixed_precision="bf16",
        gradient_checkpointing=True,
        use_8bit_adam=True,
        lr_scheduler="constant_with_warmup",
        lr_warmup_steps=100,
        rank=64,
    )
    practices = values(run)
    assert practices["precision"] == "bf16"
    assert practices["gradient_checkpointing"] is True
    assert practices["optimizer"] == "adamw_8bit"
    assert practices["warmup"] == 100
    assert (practices["tuning"], practices["lora_rank"]) == ("lora", 64)
    assert practices["dataloader_workers"] == 0
    assert practices["persistent_workers"] is False
    assert practices["attention"] == "auto"
    assert practices["ddp"] is True


def test_videox_fun_without_warm_up_under_the_constant_schedule() -> None:
    assert values(run_of("videox_fun", lr_warmup_steps=100))["warmup"] == 0


def test_videox_fun_takes_precision_and_sharding_from_accelerate() -> None:
    document = yaml_document("distributed_type: DEEPSPEED\nmixed_precision: bf16\n")
    run = run_of("videox_fun", accelerate=document, launcher=launched(8, "accelerate"))
    practices = values(run)
    assert (practices["precision"], practices["zero_stage"]) == ("bf16", 2)


def test_flow_factory() -> None:
    practices = values(
        run_of(
            "flow_factory",
            "ff-train grpo.yaml",
            train__trainer_type="nft",
            train__enable_gradient_checkpointing=True,
            train__gradient_accumulation_steps=4,
            model__attn_backend="_flash_3_hub",
            model__finetune_type="lora",
            model__lora_rank=64,
        )
    )
    assert practices["algorithm"] == "nft"
    assert practices["gradient_checkpointing"] is True
    assert practices["gradient_accumulation_steps"] == 4
    assert practices["attention"] == "flash_attention_3"
    assert (practices["tuning"], practices["lora_rank"]) == ("lora", 64)
    assert practices["precision"] == "bf16"
    assert practices["dataloader_workers"] == 16


def test_flow_factory_works_accumulation_out_at_the_start() -> None:
    run = run_of("flow_factory", train__gradient_accumulation_steps="auto")
    assert not known(profile(run)["gradient_accumulation_steps"].value)


def test_engines() -> None:
    serve = run_of(
        "vllm", "vllm serve m", kind=RunKind.SERVE, dtype="bfloat16", tensor_parallel_size=4
    )
    practices = values(serve)
    assert practices["precision"] == "bf16"
    assert (practices["tensor_parallel"], practices["pipeline_parallel"]) == (4, 1)
    serve = run_of("sglang", kind=RunKind.SERVE, tp=8, quantization="fp8")
    practices = values(serve)
    assert (practices["tensor_parallel"], practices["quantization_method"]) == (8, "fp8")
