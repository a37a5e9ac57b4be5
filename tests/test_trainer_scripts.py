"""What scripts and notebooks for the Trainer decide beside its arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Optional

import pytest
from audits_support import audit_named, items_of
from checks_support import findings, judged, runs_of, status

from flake8_gpu_training.checks.base import Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.cli import main
from flake8_gpu_training.verdicts import judge
from report_builder.run_words import RunWords
from report_builder.scoring import score

PROGRAM = """\
import torch
from datasets import load_dataset
from transformers import (
    AutoModelForCausalLM, AutoTokenizer, DataCollatorForLanguageModeling, Trainer,
    TrainingArguments, get_cosine_schedule_with_warmup, get_constant_schedule,
)

tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-1.5B")
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B")
data = load_dataset("tatsu-lab/alpaca", split="train")
{before}
args = TrainingArguments(output_dir="out", bf16=True{arguments})
trainer = Trainer(
    model=model, args=args, train_dataset=data{more},
    data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
)
trainer.train()
{after}
"""


def program(before: str = "", arguments: str = "", more: str = "", after: str = "") -> str:
    return PROGRAM.format(before=before, arguments=arguments, more=more, after=after)


def files(text: str, *pins: str) -> Mapping[str, str]:
    return {"train.py": text, "requirements.txt": "".join(f"{pin}\n" for pin in pins)}


# --- schedules that the arguments do not decide --------------------------------------------

ADAM = "optimizer = torch.optim.AdamW(model.parameters())\n"
HANDED = ", optimizers=(optimizer, schedule)"


@pytest.mark.parametrize(
    ("before", "more", "expected"),
    [
        ("", "", Status.PARTIAL),
        (
            f"{ADAM}schedule = get_cosine_schedule_with_warmup(optimizer, 100, 1000)",
            HANDED,
            Status.ENABLED,
        ),
        (f"{ADAM}schedule = get_constant_schedule(optimizer)", HANDED, Status.UNKNOWN),
        (f"{ADAM}schedule = mine(optimizer)", HANDED, Status.UNKNOWN),
    ],
)
def test_a_schedule_that_is_handed_over_decides_the_warm_up(
    tmp_path: Path, before: str, more: str, expected: Status
) -> None:
    (run,) = runs_of(tmp_path, files(program(before=before, more=more)))
    assert status(run, "GPU601") is expected


@pytest.mark.parametrize(
    ("before", "given", "expected"),
    [
        (ADAM, "(optimizer, None)", "adamw"),
        ("", "(torch.optim.AdamW(model.parameters(), fused=True), None)", "adamw_torch_fused"),
        (
            "optimizer = bitsandbytes.optim.PagedAdamW8bit(model.parameters())\n",
            "(optimizer, schedule)",
            "paged_adamw_8bit",
        ),
        (
            "def build(model):\n    return torch.optim.SGD(model.parameters(), lr=1)\n"
            "optimizer = build(model)\n",
            "(optimizer, None)",
            "sgd",
        ),
        (ADAM, "(None, None)", "adamw_torch"),
        (ADAM, "None", "adamw_torch"),
        ("optimizer = build(model)\n", "(optimizer, None)", None),
        (
            f"{ADAM}if lean:\n    optimizer = torch.optim.SGD(model.parameters(), lr=1)\n",
            "(optimizer, None)",
            None,
        ),
        (ADAM, "optimizers", None),
    ],
)
def test_an_optimizer_that_is_handed_over_is_the_one_that_the_program_builds(
    tmp_path: Path, before: str, given: str, expected: Optional[str]
) -> None:
    pins = {"requirements.txt": "transformers==4.46.3\ntorch==2.4.0\n"}
    text = program(before=f"import bitsandbytes\n{before}", more=f", optimizers={given}")
    (run,) = runs_of(tmp_path, {**files(text), **pins})
    assert run.value("optimizer") == expected


@pytest.mark.parametrize(("steps", "expected"), [(100, "enabled"), ("auto", "partial")])
def test_deepspeeds_schedule_warms_up_as_its_section_says(
    tmp_path: Path, steps: object, expected: str
) -> None:
    section = {"type": "WarmupLR", "params": {"warmup_num_steps": steps}}
    config = {"zero_optimization": {"stage": 2}, "scheduler": section}
    text = program(arguments=', deepspeed="ds.json"')
    (run,) = runs_of(tmp_path, {"train.py": text, "ds.json": json.dumps(config)})
    assert status(run, "GPU601").value == expected


# --- what the release at hand has -----------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "kernel", "liger", "workers"),
    [
        ("4.33.0", "", Status.DISABLED, "dataloader_num_workers=4"),
        ("4.34.0", "use_flash_attention_2=True", Status.DISABLED, "dataloader_num_workers=4"),
        (
            "4.46.0",
            'attn_implementation="flash_attention_2"',
            Status.RECOMMENDED,
            "dataloader_num_workers=4, dataloader_persistent_workers=True",
        ),
    ],
)
def test_nothing_is_advised_that_the_release_does_not_have(
    tmp_path: Path, release: str, kernel: str, liger: Status, workers: str
) -> None:
    runs = runs_of(tmp_path, files(program(), f"transformers=={release}"))
    assert status(runs[0], "GPU305") is liger
    messages = [finding.message for finding in findings(runs, "GPU301")]
    assert [f"set {kernel}:" in message for message in messages] == ([True] if kernel else [])
    (message,) = (finding.message for finding in findings(runs, "GPU501"))
    assert message.startswith(f"set {workers}:")


@pytest.mark.parametrize(
    ("release", "expected"), [("4.57.6", Status.DISABLED), ("5.24.0", Status.PARTIAL)]
)
def test_a_family_takes_flash_attention_from_the_release_that_brings_it(
    tmp_path: Path, release: str, expected: Status
) -> None:
    text = program().replace("Qwen/Qwen2.5-1.5B", "Salesforce/codegen-2B-mono")
    (run,) = runs_of(tmp_path, files(text, f"transformers=={release}"))
    assert status(run, "GPU301") is expected


# --- lengths ---------------------------------------------------------------------------------

CUT = "data = data.map(lambda row: tokenizer(row, truncation=True, max_length=1024))\n"
PROMPT = (
    'inputs = tokenizer("Hello", return_tensors="pt").to("cuda")\nprint(model.generate(**inputs))'
)


@pytest.mark.parametrize(
    ("before", "after", "length"),
    [
        (CUT, "", 1024),
        (CUT, PROMPT, 1024),
        (CUT + "other = data.map(lambda row: tokenizer(row))", "", None),
        (CUT + 'x = tokenizer(texts, return_tensors="pt", padding=True)', PROMPT, None),
    ],
)
def test_samples_are_as_long_as_the_tokenizer_cuts_them(
    tmp_path: Path, before: str, after: str, length: object
) -> None:
    (run,) = runs_of(tmp_path, files(program(before=before, after=after)))
    assert run.value("max_length") == length


def test_a_length_is_asked_for_where_the_framework_takes_it(tmp_path: Path) -> None:
    (plain,) = runs_of(tmp_path / "a", files(program()))
    text = program().replace("TrainingArguments", "SFTConfig").replace("Trainer(", "SFTTrainer(")
    text = text.replace("import torch\n", "from trl import SFTConfig, SFTTrainer\n")
    (sft,) = runs_of(tmp_path / "b", files(text, "trl==0.14.0"))
    assert "tokenizer(..., truncation=True" in RunWords("en").no_memory(plain)
    assert "tokenizer(..." not in RunWords("en").no_memory(sft)


def test_options_beside_plain_arguments_count_for_trainers_of_trl(tmp_path: Path) -> None:
    text = program(more=", max_seq_length=2048, packing=True")
    text = text.replace("trainer = Trainer(", "trainer = SFTTrainer(")
    text = text.replace("import torch\n", "import torch\nfrom trl import SFTTrainer\n")
    (run,) = runs_of(tmp_path, files(text, "trl==0.7.11"))
    found = [run.value(name) for name in ("algorithm", "max_length", "packing")]
    assert found == ["sft", 2048, True]


# --- notebooks and engines -------------------------------------------------------------------


@pytest.mark.parametrize("head", ["%%capture\n", "#@title Install\n%%capture\n", "# a\n\n%%time\n"])
def test_a_form_of_colab_may_stand_before_the_magic_of_a_cell(tmp_path: Path, head: str) -> None:
    cells = [f"{head}!pip install transformers==4.34.0\nimport os", program()]
    book = {
        "cells": [
            {"cell_type": "code", "metadata": {}, "outputs": [], "source": text} for text in cells
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (run,) = runs_of(tmp_path, {"train.ipynb": json.dumps(book)})
    assert run.versions["transformers"] == "4.34.0"
    assert findings((run,), "GPU001") == []


GRPO = """\
{first}
from trl import GRPOConfig, GRPOTrainer

args = GRPOConfig(output_dir="out", bf16=True)
GRPOTrainer(model=model, args=args, reward_funcs=[score], train_dataset=data).train()
"""


def test_unsloth_generates_by_its_own_means(tmp_path: Path) -> None:
    (plain,) = runs_of(tmp_path / "a", {"train.py": GRPO.format(first="import torch")})
    loads = "from unsloth import FastLanguageModel\nmodel, t = FastLanguageModel.from_pretrained(M)"
    (own,) = runs_of(tmp_path / "b", {"train.py": GRPO.format(first=loads)})
    assert status(plain, "GPU901") is Status.RECOMMENDED
    assert status(own, "GPU901") is Status.DISABLED


def test_without_a_named_type_no_release_is_said_to_compute_in_fp32(tmp_path: Path) -> None:
    text = program().replace(", bf16=True", "")
    (older,) = runs_of(tmp_path / "a", files(text, "transformers==4.46.3"))
    (newest,) = runs_of(tmp_path / "b", files(text))
    assert judged(older, "GPU201").current.en == "no mixed precision: computed in FP32"
    assert judged(newest, "GPU201").current.en.startswith("neither bf16 nor fp16 is set")


# --- gpu-lint --diff -------------------------------------------------------------------------

LOOP = """\
import torch
model = torch.nn.Sequential(torch.nn.Linear(8, 8)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for step, batch in enumerate(loader):
    loss = model(batch.cuda()).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    total += loss.item()
    print(f"{loss.item():.3f} {loss.item():.5f}")
"""


def test_a_line_is_told_once_and_a_diff_says_what_it_leaves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = runs_of(tmp_path, {"train.py": LOOP})
    assert [f.location.line for f in findings(runs, "GPU350")] == [9, 10]
    assert main([str(tmp_path), "--select", "GPU350", "--diff"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "2 of 2 findings cannot be mended by an edit: GPU350 2" in err
    (tmp_path / "train.py").write_text(program(), encoding="utf-8")
    main([str(tmp_path), "--select", "GPU501", "--diff"])
    out, err = capsys.readouterr()
    assert "+" in out
    assert err == ""


def test_a_diff_says_that_it_leaves_notebooks_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = {"cell_type": "code", "source": program(), "metadata": {}, "outputs": []}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "train.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    assert main([str(tmp_path), "--select", "GPU501", "--diff"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "1 of 1 findings cannot be mended by an edit: GPU501 1" in err


# --- models ----------------------------------------------------------------------------------

BY_NAME = """\
from trl import GRPOConfig, GRPOTrainer

args = GRPOConfig(output_dir="out", bf16=True{arguments})
GRPOTrainer(
    model="Qwen/Qwen2.5-7B-Instruct", args=args, reward_funcs=[score], train_dataset=data
).train()
"""


def test_a_trainer_that_loads_by_name_is_told_by_its_arguments(tmp_path: Path) -> None:
    runs = runs_of(tmp_path / "a", files(BY_NAME.format(arguments="")))
    assert runs[0].value("quantization_method") == "none"
    (message,) = (finding.message for finding in findings(runs, "GPU301"))
    assert message.startswith("set model_init_kwargs={'attn_implementation': 'flash_attention_2'}")
    given = ', model_init_kwargs={"torch_dtype": "bfloat16"}'
    (own,) = runs_of(tmp_path / "b", files(BY_NAME.format(arguments=given)))
    assert status(own, "GPU301") is Status.PARTIAL
    assert own.value("quantization_method") == "none"
    (message,) = (finding.message for finding in findings([own], "GPU301"))
    assert "'torch_dtype': 'bfloat16', 'attn_implementation': 'flash_attention_2'" in message
    given = ', model_init_kwargs={"quantization_config": mine}'
    (own,) = runs_of(tmp_path / "c", files(BY_NAME.format(arguments=given)))
    assert own.value("quantization_method") is None


def test_a_name_that_a_later_cell_binds_again_is_still_the_earlier_ones(tmp_path: Path) -> None:
    text = "name = 'Qwen/Qwen2.5-1.5B'\n" + program().replace(
        'AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B")',
        "AutoModelForCausalLM.from_pretrained(name)",
    )
    (run,) = runs_of(tmp_path, files(f"{text}\nname = 'me/tuned'\n"))
    assert run.model.name == "Qwen/Qwen2.5-1.5B"


ADAPTED = """\
import argparse
from peft import LoraConfig
parser = argparse.ArgumentParser()
parser.add_argument("--use-lora", action="store_true")
options{rest} = parser.parse_{known}args()
chosen = None
if options.use_lora:
    chosen = LoraConfig(r=8)
"""


@pytest.mark.parametrize(("flag", "expected"), [("", "full"), (" --use-lora", "lora")])
@pytest.mark.parametrize(("rest", "known"), [("", ""), (", rest", "known_")])
def test_an_adapter_that_a_flag_asks_for_is_left_out_without_it(
    tmp_path: Path, flag: str, expected: str, rest: str, known: str
) -> None:
    text = ADAPTED.format(rest=rest, known=known) + BY_NAME.format(arguments="").replace(
        "args=args,", "args=args, peft_config=chosen,"
    )
    given = {**files(text), "run.sh": f"python train.py{flag}\n"}
    (run,) = runs_of(tmp_path, given)
    assert not run.is_open
    assert run.value("tuning") == expected


def test_what_a_parser_does_not_know_and_a_program_uses_may_be_any_setting(tmp_path: Path) -> None:
    text = ADAPTED.format(rest=", rest", known="known_") + "configure(rest)\n"
    (run,) = runs_of(tmp_path, {"train.py": text + BY_NAME.format(arguments="")})
    assert run.is_open


def test_the_attention_of_a_model_named_by_an_argument_is_transformers_choice(
    tmp_path: Path,
) -> None:
    text = """\
from trl import GRPOConfig, GRPOTrainer, ModelConfig, ScriptArguments, TrlParser

script_args, args, model_args = TrlParser(
    (ScriptArguments, GRPOConfig, ModelConfig)
).parse_args_and_config()
args.model_init_kwargs = dict(attn_implementation=model_args.attn_implementation)
GRPOTrainer(
    model=model_args.model_name_or_path, args=args, reward_funcs=[score], train_dataset=data
).train()
"""
    command = "python train.py --model_name_or_path Qwen/Qwen2.5-7B-Instruct"
    (run,) = runs_of(tmp_path / "a", {**files(text), "run.sh": f"{command}\n"})
    assert run.value("attention") == "sdpa"
    (message,) = (finding.message for finding in findings([run], "GPU301"))
    assert message.startswith("set --attn_implementation flash_attention_2")
    command += " --attn_implementation flash_attention_2"
    (run,) = runs_of(tmp_path / "b", {**files(text), "run.sh": f"{command}\n"})
    assert run.value("attention") == "flash_attention_2"


def test_an_asynchronous_trainer_samples_on_a_server(tmp_path: Path) -> None:
    text = BY_NAME.replace("GRPO", "AsyncGRPO").replace("from trl ", "from trl.experimental ")
    (run,) = runs_of(tmp_path, files(text.format(arguments="")))
    assert run.value("algorithm") == "grpo"
    assert run.value("rollout_engine") == "vllm"
    assert status(run, "GPU920") is Status.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("name", "more", "expected"),
    [
        ("SFT", "", Status.ENABLED),
        ("KTO", "", Status.ENABLED),
        ("CPO", "", Status.NOT_APPLICABLE),
        ("CPO", ", data_collator=mine", Status.ENABLED),
        ("GKD", "", Status.NOT_APPLICABLE),
        ("OnlineDPO", "", Status.NOT_APPLICABLE),
        ("PPO", "", Status.NOT_APPLICABLE),
    ],
)
def test_trainers_that_keep_all_columns_remove_none(
    tmp_path: Path, name: str, more: str, expected: Status
) -> None:
    text = BY_NAME.format(arguments="").replace("GRPO", name)
    text = text.replace(", reward_funcs=[score]", more)
    (run,) = runs_of(tmp_path, files(text))
    assert status(run, "GPU522") is expected


@pytest.mark.parametrize(("more", "reentrant"), [("", False), (", tokenizer=tokenizer", True)])
def test_defaults_are_those_of_releases_that_take_the_runs_arguments(
    tmp_path: Path, more: str, reentrant: bool
) -> None:
    text = program(arguments=", gradient_checkpointing=True", more=more)
    (run,) = runs_of(tmp_path / "a", files(text))
    assert run.value("reentrant_checkpointing") is reentrant
    (run,) = runs_of(tmp_path / "b", files(text, "transformers==5.1.0"))
    assert run.value("reentrant_checkpointing") is False


def test_a_model_config_that_the_program_builds_names_the_model_and_asks_for_adapters(
    tmp_path: Path,
) -> None:
    text = """\
from trl import GRPOConfig, GRPOTrainer, ModelConfig, get_peft_config

config = ModelConfig(
    model_name_or_path="Qwen/Qwen2.5-3B-Instruct",
    attn_implementation="flash_attention_2",
    use_peft=True,
    load_in_4bit=True,
)
GRPOTrainer(
    model=config.model_name_or_path,
    args=GRPOConfig(output_dir="out"),
    reward_funcs=[score],
    train_dataset=data,
    peft_config=get_peft_config(config),
).train()
"""
    (run,) = runs_of(tmp_path, files(text))
    assert run.model.name == "Qwen/Qwen2.5-3B-Instruct"
    assert run.value("tuning") == "lora"
    # Nothing hands the kernel and the quantizer to what loads the model.
    assert run.value("attention") == "sdpa"
    assert run.value("quantization_method") == "none"


def test_what_tries_a_trained_model_loads_another(tmp_path: Path) -> None:
    load = 'AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B"'
    text = program(after='model = AutoModelForCausalLM.from_pretrained("out")').replace(
        f"model = {load}", f'model = {load}, attn_implementation="flash_attention_2"', 1
    )
    (run,) = runs_of(tmp_path, files(text))
    assert run.value("attention") == "flash_attention_2"


@pytest.mark.parametrize(
    "loader",
    ["Qwen2VLForConditionalGeneration", "LlamaForCausalLM", "BertForSequenceClassification"],
)
def test_classes_of_a_task_load_the_model(tmp_path: Path, loader: str) -> None:
    text = program().replace("AutoModelForCausalLM", loader)
    (run,) = runs_of(tmp_path, files(text))
    assert run.model.name == "Qwen/Qwen2.5-1.5B"


def test_the_kernel_for_a_model_of_no_known_kind_is_left_open(tmp_path: Path) -> None:
    text = program().replace("Qwen/Qwen2.5-1.5B", "someone/own-thing")
    (run,) = runs_of(tmp_path, files(text))
    assert status(run, "GPU301") is Status.UNKNOWN


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [("transformers>=4.56.2", "sdpa"), ("transformers>=4.30", None)],
)
def test_a_source_later_than_the_releases_asked_for_chooses_as_they_do(
    tmp_path: Path, requirement: str, expected: object
) -> None:
    source = "RUN pip install git+https://github.com/huggingface/transformers.git@0f3c6a1\n"
    project = {**files(program(), requirement), "Dockerfile": f"FROM python:3.11\n{source}"}
    (run,) = runs_of(tmp_path, project)
    assert "transformers" in run.unreleased
    assert run.value("attention") == expected


RECIPE = """\
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: {tuning}
dataset: mine
template: qwen
output_dir: out
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("lora_sft_bnb_npu.yaml", Status.NOT_APPLICABLE),
        ("ascend/sft.yaml", Status.NOT_APPLICABLE),
        ("input_npuzzle.yaml", Status.PARTIAL),
    ],
)
def test_a_recipe_named_for_npus_is_none_for_cuda(
    tmp_path: Path, path: str, expected: Status
) -> None:
    (run,) = runs_of(tmp_path, {path: RECIPE.format(tuning="lora")})
    assert status(run, "GPU301") is expected


def test_unsloth_serves_no_orthogonal_adapters(tmp_path: Path) -> None:
    (lora,) = runs_of(tmp_path / "a", {"sft.yaml": RECIPE.format(tuning="lora")})
    (oft,) = runs_of(tmp_path / "b", {"sft.yaml": RECIPE.format(tuning="oft")})
    assert status(lora, "GPU307") is not Status.NOT_APPLICABLE
    assert status(oft, "GPU307") is Status.NOT_APPLICABLE


def test_what_flags_may_still_say_is_not_said_to_be_off(tmp_path: Path) -> None:
    parsed = program(after='model.generate(**tokenizer("Hi", return_tensors="pt"))')
    plain, flags = tmp_path / "a", tmp_path / "b"
    (run,) = runs_of(plain, files(parsed))
    assert status(run, "GPU920") is Status.DISABLED
    assert status(run, "GPU204") is Status.UNKNOWN  # what launches it is not in sight
    text = parsed.replace(
        'args = TrainingArguments(output_dir="out", bf16=True)',
        "args = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()[0]",
    ).replace("TrainingArguments, get", "HfArgumentParser, TrainingArguments, get")
    (run,) = runs_of(flags, files(text))
    assert run.is_open
    assert status(run, "GPU920") is Status.UNKNOWN


# --- what the command leaves to TRL's ModelConfig -------------------------------------------

OF_MODEL_CONFIG = """\
from transformers import AutoModelForCausalLM
from trl import ModelConfig, SFTConfig, SFTTrainer, TrlParser

training_args, model_args = TrlParser((SFTConfig, ModelConfig)).parse_args_and_config()
kwargs = dict(attn_implementation=model_args.attn_implementation)
model = AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path, **kwargs)
SFTTrainer(model=model, args=training_args, train_dataset=None).train()
"""


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", "sdpa"),
        ("--attn_implementation eager", "eager"),
        ("--attn_implementation flash_attention_2", "flash_attention_2"),
        ("$MORE", None),
    ],
)
def test_a_field_of_trls_model_config_that_the_command_leaves_out_is_its_default(
    tmp_path: Path, more: str, expected: Optional[str]
) -> None:
    command = f"python train.py --model_name_or_path Qwen/Qwen3-8B --output_dir out {more}\n"
    runs = runs_of(tmp_path, {"train.py": OF_MODEL_CONFIG, "train.sh": f'MORE="$1"\n{command}'})
    run = next(run for run in runs if run.command is not None)
    assert run.value("attention") == expected


# --- families by the names of their checkpoints ---------------------------------------------


@pytest.mark.parametrize(
    ("name", "advised"),
    [
        ("facebook/xglm-564M", False),  # sets neither _supports_flash_attn nor _supports_sdpa
        ("Qwen/Qwen-7B", False),  # code of its own on the hub
        ("Qwen/Qwen-2.5-3B-Instruct", True),  # a slip of Qwen2.5
        ("EleutherAI/pythia-1.4b", True),
    ],
)
def test_flash_attention_is_advised_to_families_whose_code_has_it(
    tmp_path: Path, name: str, advised: bool
) -> None:
    text = program().replace("Qwen/Qwen2.5-1.5B", name)
    (run,) = runs_of(tmp_path, files(text, "transformers==4.57.1", "torch==2.7.1"))
    answer = judged(run, "GPU301")
    assert (answer.better == "flash-attention-2" or bool(answer.findings)) is advised
    assert status(run, "GPU301") is not Status.UNKNOWN


@pytest.mark.parametrize(
    ("name", "liger"),
    [
        ("Salesforce/codegen-350M-multi", Status.NOT_APPLICABLE),
        ("microsoft/DialoGPT-small", Status.NOT_APPLICABLE),
        ("my-own-checkpoint", Status.UNKNOWN),
    ],
)
def test_liger_is_judged_by_the_family_that_a_name_tells(
    tmp_path: Path, name: str, liger: Status
) -> None:
    text = program().replace("Qwen/Qwen2.5-1.5B", name)
    (run,) = runs_of(tmp_path, files(text, "transformers==4.57.1"))
    assert status(run, "GPU305") is liger


# --- the alignment handbook's parser --------------------------------------------------------

RECIPE_PARSER = """\
import os
import sys
from transformers import HfArgumentParser


class H4ArgumentParser(HfArgumentParser):
    def parse_yaml_and_args(self, yaml_arg, other_args=None):
        arg_list = self.parse_yaml_file(os.path.abspath(yaml_arg))
        return overridden(arg_list, other_args)

    def parse(self):
        if len(sys.argv) > 2 and sys.argv[1].endswith(".yaml"):
            return self.parse_yaml_and_args(sys.argv[1], sys.argv[2:])
        return self.parse_args_into_dataclasses()
"""
BY_RECIPE = """\
from transformers import AutoModelForCausalLM
from trl import DPOConfig, DPOTrainer
{imported}

training_args = {parser}(DPOConfig).parse()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-8B")
DPOTrainer(model=model, args=training_args, train_dataset=None).train()
"""
OF_HANDBOOK = ("from alignment import H4ArgumentParser", "H4ArgumentParser")
OF_PROJECT = ("from recipes import H4ArgumentParser", "H4ArgumentParser")


@pytest.mark.parametrize("parser", [OF_HANDBOOK, OF_PROJECT])
@pytest.mark.parametrize(
    ("flags", "batch", "optimizer"),
    [
        ("recipe.yaml --per_device_train_batch_size=2", 2, "adafactor"),
        ("recipe.yaml", 4, "adafactor"),
        ("--per_device_train_batch_size=2 --output_dir=out", 2, "adamw_torch"),
    ],
)
def test_a_recipe_comes_first_and_flags_over_it(
    tmp_path: Path, parser: tuple[str, str], flags: str, batch: int, optimizer: str
) -> None:
    written = {
        "train.py": BY_RECIPE.format(imported=parser[0], parser=parser[1]),
        "recipes.py": RECIPE_PARSER,
        "recipe.yaml": "output_dir: out\nper_device_train_batch_size: 4\noptim: adafactor\n",
        "train.sh": f"accelerate launch train.py {flags}\n",
        "requirements.txt": "transformers==4.46.3\ntrl==0.12.1\n",
    }
    run = next(run for run in runs_of(tmp_path, written) if run.command is not None)
    assert run.value("micro_batch_size") == batch
    assert run.value("optimizer") == optimizer
    assert run.value("group_by_length") is False


# --- what files and dicts give -----------------------------------------------------------------

READS_JSON = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_json_file("args.json")
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B")
Trainer(model=model, args=args, train_dataset=data).train()
"""


def test_texts_that_fill_an_argument_class_are_true_as_they_are(tmp_path: Path) -> None:
    told = {"output_dir": "out", "gradient_checkpointing": "yes", "tf32": "false", "bf16": False}
    given = {"train.py": READS_JSON, "args.json": json.dumps(told)}
    (run,) = runs_of(tmp_path, given)
    assert not run.is_open
    assert run.value("gradient_checkpointing") is True
    assert run.value("tf32") is True


def test_the_parser_of_trl_reads_the_texts_of_a_file(tmp_path: Path) -> None:
    text = """\
from trl import ModelConfig, ScriptArguments, SFTConfig, SFTTrainer, TrlParser

script_args, args, model_args = TrlParser(
    (ScriptArguments, SFTConfig, ModelConfig)
).parse_args_and_config()
SFTTrainer(model=model_args.model_name_or_path, args=args, train_dataset=data).train()
"""
    recipe = 'model_name_or_path: Qwen/Qwen2.5-1.5B\npacking: "false"\nbf16: "true"\n'
    given = {"sft.yaml": recipe, "run.sh": "python train.py --config sft.yaml\n"}
    (run,) = runs_of(tmp_path, {**given, "train.py": text})
    assert run.value("packing") is False
    assert run.value("precision") == "bf16"


def test_the_trainer_of_transformers_packs_nothing(tmp_path: Path) -> None:
    text = program(arguments=", packing=True").replace("TrainingArguments(", "SFTConfig(")
    text = "from trl import SFTConfig\n" + text
    (run,) = runs_of(tmp_path, files(text))
    assert run.value("packing") is False
    tuned = text.replace("Trainer(\n", "SFTTrainer(\n").replace("import SFTConfig", "import *")
    tuned = tuned.replace("from trl import *", "from trl import SFTConfig, SFTTrainer")
    (run,) = runs_of(tmp_path / "b", files(tuned))
    assert run.value("packing") is True


def test_classes_that_a_function_hands_on_in_a_dict_are_known(tmp_path: Path) -> None:
    text = """\
def stack():
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

    return {
        "AutoModelForCausalLM": AutoModelForCausalLM,
        "Trainer": Trainer,
        "TrainingArguments": TrainingArguments,
    }


modules = stack()
model = modules["AutoModelForCausalLM"].from_pretrained("Qwen/Qwen2.5-1.5B")
args = modules["TrainingArguments"](output_dir="out", bf16=True)
modules["Trainer"](model=model, args=args, train_dataset=data).train()
"""
    (run,) = runs_of(tmp_path, files(text))
    assert run.framework == "hf_trainer"
    assert run.value("precision") == "bf16"
    assert run.model.name == "Qwen/Qwen2.5-1.5B"


def test_an_argument_of_two_names_is_neither_unread(tmp_path: Path) -> None:
    before = 'named = "dtype" if new else "torch_dtype"\n'
    text = before + program().replace(
        'from_pretrained("Qwen/Qwen2.5-1.5B")', 'from_pretrained("Qwen/Qwen2.5-1.5B", **{named: t})'
    )
    (run,) = runs_of(tmp_path, files(text))
    assert run.value("quantization_method") == "none"


@pytest.mark.parametrize(("test", "method"), [("quantized", None), ("True", "bnb")])
def test_a_quantizer_in_a_branch_is_only_perhaps_used(
    tmp_path: Path, test: str, method: Optional[str]
) -> None:
    before = f"""\
from transformers import BitsAndBytesConfig
chosen = None
if {test}:
    chosen = BitsAndBytesConfig(load_in_4bit=True)
"""
    text = before + program().replace(
        'AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B")',
        'AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B", quantization_config=chosen)',
    )
    (run,) = runs_of(tmp_path, files(text))
    assert run.value("quantization_method") == method


def test_a_comment_in_backticks_leaves_the_flags_behind_it(tmp_path: Path) -> None:
    text = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B")
Trainer(model=model, args=args, train_dataset=data).train()
"""
    command = "python train.py --output_dir out \\\n  `# precision` \\\n  --bf16 True --tf32 True\n"
    (run,) = runs_of(tmp_path, {"train.py": text, "run.sh": command})
    assert run.value("precision") == "bf16"
    assert run.value("tf32") is True


AUDIT = audit_named("transformers")
CLASSIFIER = """\
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, GPT2ForSequenceClassification
from transformers import Trainer, TrainingArguments

model = GPT2ForSequenceClassification.from_pretrained("gpt2", num_labels=2)
trainer = Trainer(model=model, args=TrainingArguments("out"), train_dataset=[])
trainer.train()
"""
_BNB = "BitsAndBytesConfig, Trainer"
INFERENCE = 'model = PeftModel.from_pretrained(base, "out", torch_dtype=torch.float16)\n'


def test_a_decoder_that_classifies_is_seen_where_it_is_loaded(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, files(CLASSIFIER))
    assert items_of(score(AUDIT, judge(run, all_checks())))["sdpa"].status is Status.ENABLED


@pytest.mark.parametrize(("behind", "expected"), [(True, False), (False, True)])
def test_what_is_loaded_behind_the_trainer_is_not_what_trains(
    tmp_path: Path, behind: bool, expected: bool
) -> None:
    head, _, rest = CLASSIFIER.partition("model = ")
    text = f"{CLASSIFIER}{INFERENCE}" if behind else f"{head}{INFERENCE}model = {rest}"
    (run,) = runs_of(tmp_path, files(text))
    item = items_of(score(AUDIT, judge(run, all_checks())))["fp16"]
    assert (item.status is Status.ENABLED) is expected


def test_neither_type_is_on_where_the_checkpoint_decides_what_is_computed(tmp_path: Path) -> None:
    config = "quantization_config=BitsAndBytesConfig(load_in_4bit=True)"
    text = CLASSIFIER.replace("num_labels=2", config).replace("import Trainer", f"import {_BNB}")
    (run,) = runs_of(tmp_path, files(text))
    for name in ("bf16", "fp16"):
        item = items_of(score(AUDIT, judge(run, all_checks())))[name]
        assert item.status is Status.DISABLED
        assert "neither bf16 nor fp16" in item.current.en


def test_what_recomputes_by_other_means_than_the_trainers_is_not_said_to_be_off(
    tmp_path: Path,
) -> None:
    call = "model.gradient_checkpointing_enable(**asked())\ntrainer = "
    (run,) = runs_of(tmp_path, files(CLASSIFIER.replace("trainer = ", call, 1)))
    item = items_of(score(AUDIT, judge(run, all_checks())))["non-reentrant"]
    assert item.status is not Status.DISABLED


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("bf16=able(), fp16=not able()", ("enabled", "disabled")),
        ("bf16=able(), fp16=able()", ("unknown", "unknown")),
    ],
)
def test_one_of_two_switches_that_ask_the_gpu_is_on(
    tmp_path: Path, said: str, expected: tuple[str, str]
) -> None:
    text = CLASSIFIER.replace('TrainingArguments("out"', f'TrainingArguments("out", {said}')
    (run,) = runs_of(tmp_path, files(text))
    items = items_of(score(AUDIT, judge(run, all_checks())))
    assert (items["bf16"].status.value, items["fp16"].status.value) == expected


TWO_RUNS = """\
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
trainer = Trainer(model=model, args=TrainingArguments("full"), train_dataset=[])
trainer.train()
adapted = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM"))
trainer = Trainer(model=adapted, args=TrainingArguments("lora"), train_dataset=[])
trainer.train()
"""


def test_adapters_that_are_made_behind_a_trainer_are_those_of_the_next_run(tmp_path: Path) -> None:
    full, lora = runs_of(tmp_path, files(TWO_RUNS))
    for run, expected in ((full, Status.DISABLED), (lora, Status.ENABLED)):
        assert items_of(score(AUDIT, judge(run, all_checks())))["lora"].status is expected


def test_a_part_that_is_frozen_is_no_adapter(tmp_path: Path) -> None:
    frozen = "model.feature_extractor.requires_grad_(False)\ntrainer = "
    (run,) = runs_of(tmp_path, files(CLASSIFIER.replace("trainer = ", frozen, 1)))
    items = items_of(score(AUDIT, judge(run, all_checks())))
    assert (items["lora"].status, items["lora"].evidence) == (Status.UNKNOWN, ())
    text = CLASSIFIER.replace("from peft import PeftModel\n", "").replace("trainer = ", frozen, 1)
    (run,) = runs_of(tmp_path / "plain", files(text))
    items = items_of(score(AUDIT, judge(run, all_checks())))
    assert items["lora"].status is Status.DISABLED


def test_a_model_that_is_loaded_with_checkpointing_recomputes(tmp_path: Path) -> None:
    text = CLASSIFIER.replace("num_labels=2", "gradient_checkpointing=True")
    (run,) = runs_of(tmp_path, files(text))
    assert status(run, "GPU203") is Status.ENABLED


@pytest.mark.parametrize(
    ("given", "expected"),
    [("", Status.DISABLED), (", gradient_checkpointing=True", Status.ENABLED)],
)
def test_a_model_prepared_for_four_bits_recomputes_as_pytorch_has_it(
    tmp_path: Path, given: str, expected: Status
) -> None:
    prepared = "from peft import prepare_model_for_kbit_training\nmodel = GPT2"
    text = CLASSIFIER.replace("model = GPT2", prepared, 1).replace('"out"', f'"out"{given}')
    text = text.replace("trainer = ", "model = prepare_model_for_kbit_training(model)\ntrainer = ")
    (run,) = runs_of(tmp_path, files(text))
    assert items_of(score(AUDIT, judge(run, all_checks())))["non-reentrant"].status is expected


@pytest.mark.parametrize(("how", "expected"), [("dpo", "not_applicable"), ("sft", "disabled")])
def test_rows_without_input_ids_cannot_be_grouped(tmp_path: Path, how: str, expected: str) -> None:
    command = f"trl {how} --model_name_or_path Qwen/Qwen2.5-0.5B --dataset_name a --output_dir o\n"
    (run,) = runs_of(tmp_path, {"run.sh": command})
    item = items_of(score(AUDIT, judge(run, all_checks())))["group-by-length"]
    assert item.status.value == expected


def test_a_configuration_that_is_not_there_is_named_where_it_leaves_items_open(
    tmp_path: Path,
) -> None:
    (run,) = runs_of(tmp_path, {"run.sh": "trl sft --config absent.yaml\n"})
    item = items_of(score(AUDIT, judge(run, all_checks())))["compile-mode"]
    assert item.current.en == "absent.yaml of --config is not in the project, and may set it"


PARSED = """\
from transformers import AutoModelForCausalLM, HfArgumentParser
from trl import ModelConfig, ScriptArguments, SFTConfig, SFTTrainer

parser = HfArgumentParser((ScriptArguments, SFTConfig, ModelConfig))
script_args, training_args, model_args = parser.parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path GIVEN)
SFTTrainer(model=model, args=training_args, train_dataset=data).train()
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [("", False), (", quantization_config=get_quantization_config(model_args)", True)],
)
def test_a_switch_that_no_model_is_given_quantizes_nothing(
    tmp_path: Path, given: str, expected: bool
) -> None:
    words = "--model_name_or_path Qwen/Qwen2.5-0.5B --output_dir o --use_peft --load_in_4bit"
    project = {"t.py": PARSED.replace(" GIVEN", given), "run.sh": f"python t.py {words}\n"}
    (run,) = runs_of(tmp_path, project)
    item = items_of(score(AUDIT, judge(run, all_checks())))["qlora-4bit"]
    assert (item.status is Status.ENABLED) is expected


def test_a_trainer_with_a_loader_of_its_own_takes_no_argument_of_loading(tmp_path: Path) -> None:
    head = "class OwnTrainer(Trainer):\n    def get_train_dataloader(self):\n"
    own = f"{head}        return load()\n\n\nmodel = GPT2"
    text = CLASSIFIER.replace("model = GPT2", own, 1)
    for used, expected in (("OwnTrainer(", Status.UNKNOWN), ("Trainer(", Status.ENABLED)):
        program = text.replace("trainer = Trainer(", f"trainer = {used}")
        (run,) = runs_of(tmp_path / used, files(program))
        items = items_of(score(AUDIT, judge(run, all_checks())))
        assert items["pin-memory"].status is expected
