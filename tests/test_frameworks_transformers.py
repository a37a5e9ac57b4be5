"""Transformers' Trainer and TRL: arguments, model loading and launch as practices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

import pytest
from frameworks_support import (
    json_document,
    launched,
    profile,
    run_of,
    values,
    yaml_document,
)

from flake8_gpu_training.facts import Unknown, known
from flake8_gpu_training.frameworks.registry import framework_of
from flake8_gpu_training.frameworks.tables import table_of
from flake8_gpu_training.frameworks.transformers import configuration_class
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import Model, Run

TRAINER = """\
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-8B"{model})
args = TrainingArguments(output_dir="out")
Trainer(model=model, args=args).train()
"""
TRL = """\
from trl import {name}

args = {name}(output_dir="out")
"""


def trainer(model: str = "", version: str = "", text: str = TRAINER, **settings: Any) -> Run:
    """A run of a script that loads a model and makes TrainingArguments."""
    settings.setdefault("versions", {"transformers": version} if version else {})
    return run_of(
        "hf_trainer",
        "python train.py",
        python=text.format(model=model),
        constructor="TrainingArguments",
        **settings,
    )


def trl(name: str = "SFTConfig", version: str = "", **settings: Any) -> Run:
    """A run with one of TRL's configurations."""
    versions = {"trl": version} if version else {}
    text = TRL.format(name=name)
    return run_of("hf_trainer", python=text, constructor=name, versions=versions, **settings)


def test_defaults_of_training_arguments() -> None:
    practices = values(trainer())
    expected = {
        "gradient_checkpointing": False,
        "micro_batch_size": 8,
        "gradient_accumulation_steps": 1,
        "dataloader_workers": 0,
        "pin_memory": True,
        "persistent_workers": False,
        "prefetch_factor": None,
        "logging_steps": 500,
        "save_steps": 500,
        "lr_scheduler": "linear",
        "warmup": 0,
        "torch_compile": False,
        "liger_kernel": False,
        "zero_stage": 0,
        "fsdp": "none",
        "attention": "sdpa",
        "tuning": "full",
        "quantization_method": "none",
        "device_map": "none",
    }
    assert {name: practices[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("settings", "precision"),
    [
        ({"bf16": True}, "bf16"),
        ({"fp16": True}, "fp16"),
        ({"bf16": False}, "fp32"),
    ],
)
def test_precision_of_the_arguments(settings: dict[str, Any], precision: str) -> None:
    assert values(trainer(version="4.57.6", **settings))["precision"] == precision


def test_weights_of_no_named_type_are_float32_until_the_checkpoint_decides() -> None:
    assert values(trainer(version="4.57.6"))["precision"] == "fp32"
    for version in ("5.0.0", ""):
        value = profile(trainer(version=version))["precision"].value
        assert isinstance(value, Unknown)
        assert value.candidates == ("fp32", "pure-bf16")
    capped = replace(trainer(), limits={"transformers": (">=4.43.1,<=4.44.2",)})
    assert values(capped)["precision"] == "fp32"
    encoder = replace(trainer(), model=Model("bert-base-uncased", "encoder"))
    assert values(encoder)["precision"] == "fp32"


BY_VARIABLE = TRAINER.replace("model = AutoModel", "model_class = pick()\n#").replace(
    "args = ", "model = model_class.from_pretrained('org/model'{model})\nargs = "
)


@pytest.mark.parametrize(
    ("model", "precision"),
    [(", torch_dtype=torch.bfloat16", "pure-bf16"), (", torch_dtype=asked", None), ("", "fp32")],
)
def test_a_model_may_be_loaded_by_a_class_in_a_variable(model: str, precision: str) -> None:
    run = trainer(model, "4.57.6", BY_VARIABLE)
    assert values(run).get("precision") == precision


def test_a_model_that_unread_code_makes_may_have_any_type() -> None:
    text = TRAINER.replace("AutoModelForCausalLM.from_pretrained(", "make_model(")
    assert "precision" not in values(trainer("", "4.57.6", text))
    own = text.replace("make_model(", "Net(").replace(
        "\nmodel =", "\nclass Net(torch.nn.Module): ...\nmodel ="
    )
    assert values(trainer("", "4.57.6", own))["precision"] == "fp32"


def test_an_unknown_precision_stays_unknown() -> None:
    setting = profile(trainer(bf16=Unknown("args.bf16")))["precision"]
    assert not known(setting.value)


def test_weights_in_bfloat16_without_autocast_are_pure_bf16() -> None:
    assert values(trainer(", torch_dtype=torch.bfloat16"))["precision"] == "pure-bf16"
    assert "precision" not in values(trainer(', torch_dtype="auto"'))


def test_the_type_of_the_weights_is_followed_to_the_field_it_is_taken_from() -> None:
    asked = ", dtype=model_args.dtype"
    assert values(trainer(asked, dtype="bfloat16"))["precision"] == "pure-bf16"
    assert values(trainer(asked, dtype="float32"))["precision"] == "fp32"
    for text in (", dtype=other.dtype", ", dtype=model_args.dtype if ok else torch.float32"):
        assert "precision" not in values(trainer(text, dtype="bfloat16"))


def test_accelerates_mixed_precision_holds_where_the_arguments_say_nothing() -> None:
    document = yaml_document("mixed_precision: bf16\ndistributed_type: MULTI_GPU\n")
    run = trainer(accelerate=document, launcher=launched(8, "accelerate"))
    assert values(run)["precision"] == "bf16"
    flags = trainer(launcher=launched(8, "accelerate", mixed_precision="fp16"))
    assert values(flags)["precision"] == "fp16"


def test_an_accelerate_file_that_is_missing_leaves_precision_and_sharding_unknown() -> None:
    practices = values(trainer(launcher=launched(8, "accelerate", config_file="gone.yaml")))
    assert not {"precision", "zero_stage", "fsdp", "ddp"} & practices.keys()


def test_a_launch_that_was_not_seen_leaves_sharding_unknown() -> None:
    text = TRAINER.format(model="")
    practices = values(run_of("hf_trainer", python=text, constructor="TrainingArguments"))
    assert not {"zero_stage", "fsdp"} & practices.keys()
    assert practices["micro_batch_size"] == 8


@pytest.mark.parametrize(
    ("version", "precision", "logging", "checkpointing"),
    [
        ("0.15.2", "fp32", 500, False),
        ("0.19.1", "bf16", 10, False),
        ("0.22.2", "bf16", 10, True),
        ("1.16.0", "bf16", 10, True),
        ("", "bf16", 10, True),
    ],
)
def test_trl_changed_its_defaults_twice(
    version: str, precision: str, logging: int, checkpointing: bool
) -> None:
    practices = values(trl(version=version))
    assert practices["precision"] == precision
    assert practices["logging_steps"] == logging
    assert practices["gradient_checkpointing"] is checkpointing


def test_trl_keeps_fp32_when_bf16_is_switched_off() -> None:
    assert values(trl(bf16=False))["precision"] == "fp32"
    assert values(trl(fp16=True))["precision"] == "fp16"


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [("SFTConfig", "sft"), ("DPOConfig", "dpo"), ("GRPOConfig", "grpo"), ("RewardConfig", "rm")],
)
def test_trls_class_tells_the_algorithm(name: str, algorithm: str) -> None:
    practices = values(trl(name))
    assert practices["algorithm"] == algorithm
    assert ("rollout_engine" in practices) is (algorithm == "grpo")


def test_packing_is_a_parameter_of_sft_alone() -> None:
    assert values(trl("SFTConfig"))["packing"] is False
    assert "packing" not in profile(trl("DPOConfig"))
    assert "packing" not in profile(trainer())


def test_a_class_of_the_projects_own_counts_as_its_base() -> None:
    text = """\
from dataclasses import dataclass
from transformers import HfArgumentParser, TrainingArguments

@dataclass
class MyArguments(TrainingArguments):
    extra: int = 0

parser = HfArgumentParser((MyArguments,))
"""
    assert configuration_class(run_of("hf_trainer", python=text)) == "TrainingArguments"


def test_the_command_of_trl_tells_the_class() -> None:
    run = run_of("hf_trainer", "trl sft --dataset_name d")
    assert configuration_class(run) == "SFTConfig"


@pytest.mark.parametrize(
    ("model", "attention"),
    [
        (', attn_implementation="flash_attention_2"', "flash_attention_2"),
        (', attn_implementation="flash_attention_3"', "flash_attention_3"),
        (', attn_implementation="kernels-community/flash-attn2"', "flash_attention_2"),
        (', attn_implementation="kernels-community/vllm-flash-attn3"', "flash_attention_3"),
        (', attn_implementation="eager"', "eager"),
        (", use_flash_attention_2=True", "flash_attention_2"),
        ("", "sdpa"),
        (", **options", None),
        (", attn_implementation=pick()", None),
    ],
)
def test_attention_of_the_loaded_model(model: str, attention: Optional[str]) -> None:
    assert values(trainer(model)).get("attention") == attention


def test_attention_before_sdpa_was_the_default() -> None:
    run = trainer(versions={"transformers": "4.30.0"})
    assert values(run)["attention"] == "eager"


def test_models_loaded_in_two_ways_leave_attention_unknown() -> None:
    other = 'ref = AutoModelForCausalLM.from_pretrained("r", attn_implementation="eager")'
    text = TRAINER.format(model=', attn_implementation="sdpa"')
    text = text.replace("model = ", f"{other}\nmodel = ", 1)
    setting = profile(run_of("hf_trainer", python=text, constructor="TrainingArguments"))
    assert isinstance(setting["attention"].value, Unknown)
    assert set(setting["attention"].value.candidates) == {"sdpa", "eager"}


def test_quantized_adapters() -> None:
    text = """\
from peft import LoraConfig
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, TrainingArguments

quantization = BitsAndBytesConfig(load_in_4bit=True)
model = AutoModelForCausalLM.from_pretrained("m", quantization_config=quantization)
adapter = LoraConfig(r=16)
args = TrainingArguments(output_dir="out")
"""
    practices = values(run_of("hf_trainer", python=text, constructor="TrainingArguments"))
    assert practices["quantization_method"] == "bnb"
    assert practices["quantization_bits"] == 4
    assert practices["tuning"] == "lora"
    assert practices["lora_rank"] == 16


def test_flags_of_trls_model_config() -> None:
    practices = values(
        trl(use_peft=True, lora_r=32, load_in_4bit=True, attn_implementation="flash_attention_2")
    )
    assert practices["tuning"] == "lora"
    assert practices["lora_rank"] == 32
    assert practices["quantization_bits"] == 4
    assert practices["attention"] == "flash_attention_2"


@pytest.mark.parametrize(
    ("fsdp", "strategy", "offloads"),
    [
        ("full_shard auto_wrap", "full_shard", False),
        ("full_shard offload", "full_shard", True),
        (["shard_grad_op", "auto_wrap"], "shard_grad_op", False),
        ("hybrid_shard auto_wrap", "hybrid_shard", False),
        (True, "full_shard", False),
        ("", "none", None),
    ],
)
def test_fsdp_words(fsdp: Any, strategy: str, offloads: Optional[bool]) -> None:
    practices = values(trainer(fsdp=fsdp, launcher=launched(8)))
    assert practices["fsdp"] == strategy
    assert practices.get("fsdp_offload") == offloads
    assert practices["ddp"] is (strategy == "none")


@pytest.mark.parametrize(
    ("version", "expected"), [("4.57.6", 1), ("5.9.0", 1), ("5.10.4", 2), ("5.24.0", 2)]
)
def test_fsdps_version_follows_transformers(version: str, expected: int) -> None:
    run = trainer(fsdp="full_shard", versions={"transformers": version})
    assert values(run)["fsdp_version"] == expected


def test_fsdp_recomputes_by_its_own_configuration() -> None:
    run = trainer(fsdp="full_shard", fsdp_config={"activation_checkpointing": True, "version": 2})
    practices = values(run)
    assert practices["gradient_checkpointing"] is True
    assert practices["fsdp_version"] == 2


def test_deepspeed_through_its_document() -> None:
    document = json_document(
        '{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},'
        ' "bf16": {"enabled": true}}'
    )
    practices = values(trainer(deepspeed=document, launcher=launched(8)))
    assert practices["zero_stage"] == 2
    assert practices["offload_optimizer"] == "cpu"
    assert practices["precision"] == "bf16"
    assert practices["ddp"] is False


@pytest.mark.parametrize(
    ("versions", "optimizer"),
    [
        ({"transformers": "4.53.3", "torch": "2.8.0"}, "adamw_torch"),
        ({"transformers": "4.57.6", "torch": "2.7.1"}, "adamw_torch"),
        ({"transformers": "4.57.6", "torch": "2.8.0"}, "adamw_torch_fused"),
        ({}, "adamw_torch_fused"),
    ],
)
def test_the_default_optimizer_follows_the_versions(
    versions: dict[str, str], optimizer: str
) -> None:
    assert values(trainer(versions=versions))["optimizer"] == optimizer


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        ({"save_steps": 100}, 100),
        ({"save_strategy": "epoch"}, None),
        ({"save_strategy": "no", "save_steps": 10}, None),
        ({}, 500),
    ],
)
def test_save_steps_count_only_when_saving_goes_by_steps(
    settings: dict[str, Any], steps: Optional[int]
) -> None:
    assert values(trainer(**settings))["save_steps"] == steps


@pytest.mark.parametrize(
    ("settings", "warm"),
    [({"warmup_ratio": 0.03}, 0.03), ({"warmup_steps": 100}, 100), ({"warmup_steps": 0}, 0)],
)
def test_warm_up_from_ratio_or_steps(settings: dict[str, Any], warm: float) -> None:
    assert values(trainer(**settings))["warmup"] == warm


def test_grouping_by_length_has_two_names() -> None:
    old = trainer(group_by_length=True, versions={"transformers": "4.57.6"})
    assert values(old)["group_by_length"] is True
    new = trainer(train_sampling_strategy="group_by_length")
    assert values(new)["group_by_length"] is True
    assert values(trainer(train_sampling_strategy="random"))["group_by_length"] is False
    spelling = framework_of("hf_trainer").spellings_of(trainer())["group_by_length"]
    assert spelling.parameters(True) == {"train_sampling_strategy": "group_by_length"}


def test_ddp_looks_for_unused_parameters_without_checkpointing() -> None:
    run = trainer(launcher=launched(4))
    assert values(run)["find_unused_parameters"] is True
    run = trainer(launcher=launched(4), gradient_checkpointing=True)
    assert values(run)["find_unused_parameters"] is False
    run = trainer(launcher=launched(4), ddp_find_unused_parameters=False)
    assert values(run)["find_unused_parameters"] is False


def test_open_arguments_have_no_defaults() -> None:
    practices = profile(trainer(is_open=True))
    assert not {"precision", "dataloader_workers", "gradient_checkpointing"} & practices.keys()


def test_each_precision_is_written_under_its_own_parameter() -> None:
    spelling = framework_of("hf_trainer").spellings["precision"]
    assert spelling.parameters("bf16") == {"bf16": True}
    assert spelling.parameters("fp16") == {"fp16": True}


@pytest.mark.parametrize(
    ("model", "settings", "attention"),
    [
        ('"Qwen/Qwen3-8B"', {}, "sdpa"),
        ("load()", {}, None),
        (
            '"Qwen/Qwen3-8B"',
            {"model_init_kwargs": {"attn_implementation": "flash_attention_2"}},
            "flash_attention_2",
        ),
    ],
)
def test_a_trl_trainer_loads_the_model_it_is_given_by_name(
    model: str, settings: dict[str, Any], attention: Optional[str]
) -> None:
    text = f"""\
from trl import SFTConfig, SFTTrainer

args = SFTConfig(output_dir="out")
SFTTrainer(model={model}, args=args).train()
"""
    run = run_of("hf_trainer", python=text, constructor="SFTConfig", **settings)
    assert values(run).get("attention") == attention


@pytest.mark.parametrize(("version", "default"), [("4.57.6", None), ("5.0.0", "none")])
def test_the_default_of_trackers_is_named_with_the_releases_that_have_it(
    version: str, default: Optional[str]
) -> None:
    table = table_of("transformers")
    assert table is not None
    assert table.parameters("TrainingArguments", version)["report_to"].default == default
    text = "from transformers import TrainingArguments\nargs = TrainingArguments('out')\n"
    run = run_of("hf_trainer", python=text, versions={"transformers": version})
    setting = framework_of("hf_trainer").profile(run)["report_to"]
    assert setting.value == (default or "all")
    assert version in setting.note


_TOKENIZED = """\
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-7B")


def tokenize(rows):
    return tokenizer(rows["text"], max_length=4096, {how})


model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
Trainer(model, TrainingArguments("out"), train_dataset=data.map(tokenize)).train()
"""


@pytest.mark.parametrize(
    ("how", "length"),
    [("truncation=True", 4096), ('padding="max_length"', None), ("truncation=cuts()", None)],
)
def test_length_that_the_tokenizer_cuts_to(how: str, length: object, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_TOKENIZED.format(how=how))
    (run,) = find_runs(Project.open(tmp_path))
    assert run.value("max_length") == length


@pytest.mark.parametrize(("flag", "algorithm"), [("mlm=False", "pt"), ("mlm=True", None)])
def test_collator_of_a_causal_model_tells_the_algorithm(
    flag: str, algorithm: object, tmp_path: Path
) -> None:
    collated = "DataCollatorForLanguageModeling"
    text = _TOKENIZED.format(how="truncation=True")
    text = text.replace("import AutoModelForCausalLM,", f"import AutoModelForCausalLM, {collated},")
    text = text.replace(
        "train_dataset", f"data_collator={collated}(tokenizer, {flag}), train_dataset"
    )
    (tmp_path / "train.py").write_text(text)
    (run,) = find_runs(Project.open(tmp_path))
    assert run.value("algorithm") == algorithm
