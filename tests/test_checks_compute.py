"""Compute: attention, compilation, kernel libraries, fused optimizers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks_support import (
    LLM_7B,
    findings,
    hand_made,
    items_of,
    judged,
    runs_alone,
    runs_of,
    status,
)
from test_checks_memory import V100
from test_checks_parallelism import EIGHT_A100, FULL, LORA

from flake8_gpu_training.checks.base import Priority, Status
from flake8_gpu_training.facts import Unknown
from flake8_gpu_training.runs.model import Hardware, Model, Run

BERT = Model("google-bert/bert-base-uncased", "encoder", 110_000_000, is_hf_family=True)
ONE = Hardware(gpus_per_node=1)


def run_with(framework: str = "swift", model: Model = LLM_7B, **practices: Any) -> Run:
    return hand_made(framework, processes=8, practices=practices, model=model)


def test_points_of_the_categories_add_up() -> None:
    assert sum(item.points for item in items_of("general", "D")) == 6
    groups: dict[tuple[str, str], float] = {}
    for category in ("F", "G"):
        for item in items_of("swift", category):
            key = (category, item.group or item.id)
            groups[key] = max(groups.get(key, 0), item.points)
    assert sum(points for (category, _), points in groups.items() if category == "F") == 5
    assert sum(points for (category, _), points in groups.items() if category == "G") == 4


@pytest.mark.parametrize(
    ("attention", "variant"),
    [
        ("flash_attention_2", "flash-attention-2"),
        ("flash_attention_3", "flash-attention-3"),
        ("flex_attention", "flex-attention"),
    ],
)
def test_kernels_that_are_on(attention: str, variant: str) -> None:
    answer = judged(run_with(attention=attention), "GPU301")
    assert (answer.status, answer.variant, answer.findings) == (Status.ENABLED, variant, ())


def test_sdpa_written_by_hand_earns_half() -> None:
    answer = judged(run_with(attention="sdpa", max_length=8192), "GPU301")
    assert (answer.status, answer.share, answer.variant) == (Status.PARTIAL, 0.5, "sdpa")
    assert answer.findings[0].message.startswith("set --attn_impl flash_attn")
    assert answer.priority is Priority.HIGH


def test_short_unpacked_samples_gain_less_from_flash_attention() -> None:
    assert judged(run_with(attention="sdpa", max_length=512), "GPU301").priority is Priority.MEDIUM


def test_sdpa_is_the_best_there_is_on_volta() -> None:
    run = hand_made(practices={"attention": "sdpa", "max_length": 8192}, hardware=V100)
    answer = judged(run, "GPU301")
    assert (answer.status, answer.variant, answer.findings) == (Status.ENABLED, "sdpa", ())


def test_an_npu_is_not_advised_cuda_kernels() -> None:
    run = hand_made(
        practices={"attention": "sdpa", "max_length": 8192, "liger_kernel": False},
        environment={"ASCEND_RT_VISIBLE_DEVICES": "0,1"},
    )
    assert status(run, "GPU301") is Status.NOT_APPLICABLE
    assert status(run, "GPU305") is Status.NOT_APPLICABLE


def test_attention_of_encoders_and_unknown_attention_is_left_alone() -> None:
    assert status(run_with(model=BERT, attention="sdpa"), "GPU301") is Status.ENABLED
    assert status(run_with(attention=Unknown("an argument")), "GPU301") is Status.UNKNOWN


def test_gemma_3_keeps_eager_attention() -> None:
    gemma = Model("google/gemma-3-12b-it", "LLM", 12_000_000_000, is_hf_family=True)
    run = run_with(model=gemma, attention="eager", max_length=8192)
    assert status(run, "GPU301") is Status.DISABLED


LOADED = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained(
    {model}
)
args = TrainingArguments(output_dir="out", bf16=True, {args}gradient_checkpointing=True)
Trainer(model=model, args=args, train_dataset=data).train()
"""


def test_missing_flash_attention_is_found_where_the_model_is_loaded() -> None:
    (run,) = runs_alone(LOADED.format(model='"Qwen/Qwen2.5-7B"', args=""))
    (finding,) = judged(run, "GPU301").findings
    assert (finding.location.line, finding.location.column) == (3, 9)
    assert finding.change is not None
    assert finding.change.edits[0].new.strip(" ,\n") == 'attn_implementation="flash_attention_2"'


@pytest.mark.parametrize(
    "model",
    [
        "name, trust_remote_code=True",
        '"Qwen/Qwen2.5-7B", **options',
        '"Qwen/Qwen2.5-7B", attn_implementation=kind',
        '"Qwen/Qwen2.5-7B", attn_implementation="flash_attention_2"',
        '"hf-internal-testing/tiny-random-LlamaForCausalLM"',
        '"openai-community/gpt2"',
    ],
)
def test_nothing_is_said_about_attention_that_may_be_set(model: str) -> None:
    for run in runs_alone(LOADED.format(model=model, args="")):
        assert judged(run, "GPU301").findings == ()


def test_compilation_is_advised_for_fixed_shapes_only() -> None:
    plain = {**FULL, "torch_compile": False, "unsloth": False, "liger_kernel": False}
    encoder = run_with("hf_trainer", model=BERT, **plain)
    assert status(encoder, "GPU302") is Status.RECOMMENDED
    assert status(run_with("hf_trainer", **plain), "GPU302") is Status.DISABLED
    assert status(run_with(torch_compile=True), "GPU302") is Status.ENABLED
    assert status(run_with(torch_compile=Unknown("?")), "GPU302") is Status.UNKNOWN
    assert status(run_with(megatron=True), "GPU302") is Status.NOT_APPLICABLE


@pytest.mark.parametrize(
    "obstacle",
    [{"zero_stage": 3}, {"tuning": "lora"}, {"quantization_method": "bnb"}, {"unsloth": True}],
)
def test_what_breaks_the_graph_is_not_compiled(obstacle: dict[str, Any]) -> None:
    practices = {**FULL, "torch_compile": False, **obstacle}
    assert status(run_with("hf_trainer", model=BERT, **practices), "GPU302") is Status.DISABLED


LOOP = """\
import torch
import torchvision
{imports}
model = {model}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in torch.utils.data.DataLoader(data, num_workers=8):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = criterion(model(images.cuda()), labels.cuda())
    loss.backward()
    optimizer.step()
"""


def test_an_image_model_in_a_plain_loop_is_advised_compilation() -> None:
    (run,) = runs_alone(LOOP.format(imports="", model="torchvision.models.resnet50().cuda()"))
    assert status(run, "GPU302") is Status.RECOMMENDED
    compiled = "torch.compile(torchvision.models.resnet50().cuda())"
    (run,) = runs_alone(LOOP.format(imports="", model=compiled))
    assert status(run, "GPU302") is Status.ENABLED


def test_triton_kernels_and_cuda_graphs_are_seen_in_programs(tmp_path: Path) -> None:
    kernel = "import triton\n\n\n@triton.jit\ndef kernel(x):\n    pass\n\n"
    model = 'torch.compile(torchvision.models.resnet50().cuda(), mode="reduce-overhead")'
    text = LOOP.format(imports=kernel, model=model)
    (run,) = runs_of(tmp_path, {"train.py": text})
    assert status(run, "GPU303") is Status.ENABLED
    assert status(run, "GPU304") is Status.ENABLED


def test_without_kernels_and_graphs_nothing_is_lost() -> None:
    run = run_with(liger_kernel=False)
    assert status(run, "GPU303") is Status.DISABLED
    assert status(run, "GPU304") is Status.DISABLED
    assert status(run_with(liger_kernel=True), "GPU303") is Status.ENABLED


def test_liger_is_advised_for_families_it_knows() -> None:
    answer = judged(run_with(liger_kernel=False, **FULL), "GPU305")
    assert (answer.status, answer.variant) == (Status.RECOMMENDED, "liger")
    assert answer.findings[0].message.startswith("set --use_liger_kernel true")


@pytest.mark.parametrize(
    "name",
    [
        "Qwen/Qwen2.5-Omni-7B",
        "Qwen/Qwen2-57B-A14B-Instruct",
        "google/gemma-3n-E4B-it",
        "microsoft/Phi-3.5-MoE-instruct",
        "openai-community/gpt2",
        "microsoft/DialoGPT-small",
        "Salesforce/codegen-350M-multi",
        "facebook/xglm-564M",
        "facebook/mbart-large-50",
        "google-bert/bert-base-uncased",
    ],
)
def test_liger_does_not_know_other_architectures(name: str) -> None:
    model = Model(name, "LLM", 7_000_000_000, is_hf_family=True)
    assert status(run_with(model=model, liger_kernel=False), "GPU305") is Status.NOT_APPLICABLE


@pytest.mark.parametrize(
    "name",
    [
        "Qwen/Qwen2-7B",
        "Qwen/Qwen2.5-VL-7B-Instruct",
        "Qwen/Qwen3-30B-A3B",
        "meta-llama/Meta-Llama-3.1-8B-Instruct",
        "meta-llama/Llama-2-7b-hf",
        "LLM-Research/Llama-3.2-11B-Vision-Instruct",
        "mistralai/Mistral-7B-v0.1",
        "google/gemma-2-9b",
        "microsoft/phi-4",
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
        "/models/qwen2.5-7b-instruct",
    ],
)
def test_liger_knows_these_checkpoints(name: str) -> None:
    model = Model(name, "LLM", 7_000_000_000, is_hf_family=True)
    assert status(run_with(model=model, liger_kernel=False), "GPU305") is Status.RECOMMENDED


@pytest.mark.parametrize(
    ("practices", "expected"),
    [
        ({"liger_kernel": True}, Status.ENABLED),
        ({"liger_kernel": False, "unsloth": True}, Status.NOT_APPLICABLE),
        ({"liger_kernel": False, "device_map": "auto"}, Status.NOT_APPLICABLE),
        ({"liger_kernel": False, "megatron": True}, Status.NOT_APPLICABLE),
        ({"liger_kernel": False, "algorithm": "grpo"}, Status.DISABLED),
        ({"liger_kernel": Unknown("?")}, Status.UNKNOWN),
    ],
)
def test_liger(practices: dict[str, Any], expected: Status) -> None:
    assert status(run_with(**practices), "GPU305") is expected


def test_liger_for_an_unknown_model_is_not_known() -> None:
    assert status(run_with(model=Model(), liger_kernel=False), "GPU305") is Status.UNKNOWN


def test_one_kernel_library_is_advised_and_never_both() -> None:
    practices = {**LORA, "liger_kernel": False, "unsloth": False}
    one = hand_made(processes=1, practices=practices, hardware=ONE)
    assert status(one, "GPU307") is Status.RECOMMENDED
    assert status(one, "GPU305") is Status.DISABLED
    many = hand_made(processes=8, practices=practices)
    assert status(many, "GPU307") is Status.DISABLED
    assert status(many, "GPU305") is Status.RECOMMENDED


@pytest.mark.parametrize(
    ("practices", "expected"),
    [
        ({**LORA, "unsloth": True}, Status.ENABLED),
        ({**FULL, "unsloth": False}, Status.NOT_APPLICABLE),
        ({**LORA, "unsloth": False, "liger_kernel": True}, Status.NOT_APPLICABLE),
        ({**LORA, "unsloth": Unknown("?")}, Status.UNKNOWN),
    ],
)
def test_unsloth(practices: dict[str, Any], expected: Status) -> None:
    run = hand_made(processes=1, practices=practices, hardware=ONE)
    assert status(run, "GPU307") is expected


@pytest.mark.parametrize(
    ("practices", "expected"),
    [
        ({"optimizer": "adamw_torch_fused"}, Status.ENABLED),
        ({"optimizer": "adamw_torch"}, Status.RECOMMENDED),
        ({"optimizer": "adafactor"}, Status.DISABLED),
        ({"optimizer": Unknown("?")}, Status.UNKNOWN),
        ({"optimizer": "adamw_torch", "liger_kernel": True}, Status.PARTIAL),
        ({"optimizer": "adamw_torch_fused", "liger_kernel": True}, Status.ENABLED),
        ({"optimizer": Unknown("?"), "liger_kernel": True}, Status.ENABLED),
    ],
)
def test_fused_optimizers(practices: dict[str, Any], expected: Status) -> None:
    assert status(run_with("hf_trainer", **practices), "GPU306") is expected


def test_seed_templates_gain_nothing_more(tmp_path: Path) -> None:
    config = (
        "model: Qwen/Qwen2.5-7B-Instruct\ntuner_type: full\ntorch_dtype: bfloat16\n"
        "attn_impl: flash_attn\nuse_liger_kernel: true\ndeepspeed: zero3\npacking: true\n"
        "max_length: 4096\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 4\n"
        "dataset: data/train.jsonl\n"
    )
    script = "NPROC_PER_NODE=8 swift sft --config sft.yaml\n"
    (run,) = runs_of(tmp_path, {"sft.yaml": config, "train.sh": script})
    for code in ("GPU101", "GPU102", "GPU201", "GPU203", "GPU205", "GPU301", "GPU302", "GPU305"):
        assert judged(run, code).findings == (), code


def test_hardware_of_these_tests_is_known() -> None:
    assert EIGHT_A100.gpus == 8


@pytest.mark.parametrize(
    "model", ["openai/gpt-oss-20b", "deepseek-ai/DeepSeek-OCR", "google/gemma-3-12b-it"]
)
def test_models_whose_code_refuses_flash_attention_2_are_left_alone(tmp_path, model):
    script = (
        f"swift sft --model {model} --dataset d.jsonl --torch_dtype bfloat16 --max_length 8192\n"
    )
    runs = runs_of(tmp_path, {"train.sh": script})
    assert findings(runs, "GPU301") + findings(runs, "GPU507") == []


SWITCHED_CAST = """\
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--amp", action=argparse.BooleanOptionalAction, default={default})
args = parser.parse_args()
model = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = torch.utils.data.DataLoader(dataset, batch_size=8, shuffle=True, num_workers=4)
for batch in loader:
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled={switch}):
        loss = model(batch.cuda()).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("flag", "switch", "default", "expected"),
    [
        ("", "args.amp", "True", Status.ENABLED),
        ("--amp", "args.amp", "False", Status.ENABLED),
        ("--no-amp", "args.amp", "True", Status.RECOMMENDED),
        ("", "args.amp", "pick()", Status.UNKNOWN),
        ("", "pick()", "True", Status.UNKNOWN),
    ],
)
def test_autocast_counts_by_its_switch(
    tmp_path: Path, flag: str, switch: str, default: str, expected: Status
) -> None:
    files = {
        "train.py": SWITCHED_CAST.format(switch=switch, default=default),
        "train.sh": f"python train.py {flag}\n",
    }
    (run,) = runs_of(tmp_path, files)
    assert status(run, "GPU201") is expected
