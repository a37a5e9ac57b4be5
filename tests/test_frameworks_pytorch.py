"""Plain PyTorch programs: what the code shows, what its silence proves, what stays unknown."""

from __future__ import annotations

from typing import Any

import pytest
from frameworks_support import json_document, launched, profile, run_of, values, yaml_document

from flake8_gpu_training.facts import known
from flake8_gpu_training.runs.model import Run

PLAIN = """\
import torch
from torch.utils.data import DataLoader

model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.AdamW(model.parameters(){optimizer})
loader = DataLoader(dataset, batch_size=32{loader})
{before}
for batch in loader:
    loss = model(batch).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def plain(before: str = "", optimizer: str = "", loader: str = "", **more: Any) -> Run:
    """A training loop of one's own, with lines put before the loop."""
    text = PLAIN.format(before=before, optimizer=optimizer, loader=loader)
    return run_of("generic", python=text, **more)


def test_silence_of_plain_code_proves_absence() -> None:
    practices = values(plain())
    expected = {
        "precision": "fp32",
        "gradient_checkpointing": False,
        "torch_compile": False,
        "tf32": False,
        "gradient_accumulation_steps": 1,
        "max_grad_norm": 0,
        "lr_scheduler": "constant",
        "warmup": 0,
        "zero_stage": 0,
        "fsdp": "none",
        "ddp": False,
        "tuning": "full",
        "liger_kernel": False,
        "quantization_method": "none",
        "tensor_parallel": 1,
    }
    assert {name: practices[name] for name in expected} == expected


@pytest.mark.parametrize("device", ["cpu", "mps"])
def test_code_without_cuda_is_not_blamed_for_what_cuda_offers(device: str) -> None:
    text = PLAIN.format(before="", optimizer="", loader="").replace("cuda", device)
    assert "precision" not in values(run_of("generic", python=text))
    assert "precision" not in values(plain("import torch_xla"))


def test_an_open_run_proves_nothing_by_silence() -> None:
    practices = profile(plain(is_open=True))
    silent = {"precision", "gradient_checkpointing", "torch_compile", "zero_stage", "tuning"}
    assert not silent & practices.keys()


@pytest.mark.parametrize(
    "line",
    [
        "model = model.half()",
        "helper = make_autocast(torch)",
        "from apex import amp",
        "torch.set_default_dtype(torch.bfloat16)",
        "precision = choose()",
    ],
)
def test_any_word_of_low_precision_forbids_the_claim_of_float32(line: str) -> None:
    assert "precision" not in values(plain(line))


@pytest.mark.parametrize(
    ("line", "precision"),
    [
        ("context = torch.autocast('cuda', dtype=torch.bfloat16)", "bf16"),
        ("context = torch.autocast('cuda', torch.bfloat16)", "bf16"),
        ("context = torch.cuda.amp.autocast()", "fp16"),
        ("context = torch.cuda.amp.autocast(dtype=torch.bfloat16)", "bf16"),
        ("context = torch.amp.autocast(device_type='cuda')", "fp16"),
        ("policy = torch.distributed.fsdp.MixedPrecision(param_dtype=torch.bfloat16)", "bf16"),
    ],
)
def test_autocast_and_its_type(line: str, precision: str) -> None:
    assert values(plain(line))["precision"] == precision


@pytest.mark.parametrize(
    "line",
    [
        "context = torch.autocast('cuda', dtype=pick())",
        "context = torch.autocast('cuda', enabled=args.amp)",
        "context = torch.autocast('cpu', dtype=torch.bfloat16)",
        "context = torch.autocast('cuda', enabled=False)",
    ],
)
def test_autocast_that_may_be_off_is_unknown(line: str) -> None:
    assert "precision" not in values(plain(line))


ACCELERATE = """\
from accelerate import Accelerator
import torch

accelerator = Accelerator({arguments})
for batch in loader:
    accelerator.backward(model(batch))
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("arguments", "precision"),
    [('mixed_precision="bf16"', "bf16"), ('mixed_precision="no"', "fp32"), ("", "fp32")],
)
def test_accelerators_own_precision(arguments: str, precision: str) -> None:
    text = ACCELERATE.format(arguments=arguments)
    run = run_of("generic", "python train.py", python=text)
    assert values(run)["precision"] == precision


def test_accelerate_may_be_configured_by_a_launch_that_was_not_seen() -> None:
    practices = values(run_of("generic", python=ACCELERATE.format(arguments="")))
    assert not {"precision", "zero_stage", "fsdp"} & practices.keys()


def test_accelerates_file_gives_precision_and_sharding() -> None:
    document = yaml_document(
        "distributed_type: FSDP\nmixed_precision: bf16\n"
        "fsdp_config:\n  fsdp_version: 2\n  fsdp_offload_params: true\n"
    )
    run = run_of(
        "generic",
        python=ACCELERATE.format(arguments=""),
        accelerate=document,
        launcher=launched(8, "accelerate"),
    )
    practices = values(run)
    assert practices["precision"] == "bf16"
    assert practices["fsdp"] == "full_shard"
    assert practices["fsdp_version"] == 2
    assert practices["fsdp_offload"] is True


def test_lightning() -> None:
    text = """\
import lightning as L

trainer = L.Trainer(
    precision="bf16-mixed",
    strategy="deepspeed_stage_2_offload",
    accumulate_grad_batches=4,
    gradient_clip_val=1.0,
)
trainer.fit(model)
"""
    practices = values(run_of("generic", python=text))
    assert practices["precision"] == "bf16"
    assert practices["zero_stage"] == 2
    assert practices["offload_optimizer"] == "cpu"
    assert practices["gradient_accumulation_steps"] == 4
    assert practices["max_grad_norm"] == 1.0


def test_lightning_trains_in_float32_unless_told() -> None:
    text = "import lightning as L\ntrainer = L.Trainer(devices=8)\ntrainer.fit(model)\n"
    assert values(run_of("generic", python=text))["precision"] == "fp32"
    on_cpu = text.replace("devices=8", 'accelerator="cpu"')
    assert "precision" not in values(run_of("generic", python=on_cpu))
    open_call = "import lightning as L\ntrainer = L.Trainer(**options)\ntrainer.fit(model)\n"
    assert "precision" not in values(run_of("generic", python=open_call))


def test_loader_arguments_and_their_defaults() -> None:
    practices = values(plain(loader=", num_workers=4, pin_memory=True, persistent_workers=True"))
    assert practices["dataloader_workers"] == 4
    assert practices["pin_memory"] is True
    assert practices["persistent_workers"] is True
    assert practices["prefetch_factor"] == 2
    assert practices["micro_batch_size"] == 32
    practices = values(plain())
    assert practices["dataloader_workers"] == 0
    assert practices["pin_memory"] is False
    assert practices["prefetch_factor"] is None


def test_a_loader_with_unknown_arguments_is_unknown() -> None:
    practices = profile(plain(loader=", **options"))
    assert not known(practices["dataloader_workers"].value)
    practices = profile(plain(loader=", num_workers=args.workers"))
    assert not known(practices["dataloader_workers"].value)


def test_loaders_for_evaluation_do_not_count() -> None:
    line = "val_loader = DataLoader(other, num_workers=0)"
    assert values(plain(line, loader=", num_workers=8"))["dataloader_workers"] == 8


def test_sharded_data_parallelism() -> None:
    line = (
        "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy\n"
        "model = FSDP(model, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)"
    )
    practices = values(plain(line))
    assert practices["fsdp"] == "shard_grad_op"
    assert practices["fsdp_version"] == 1
    line = "from torch.distributed.fsdp import fully_shard\nfully_shard(model)"
    practices = values(plain(line))
    assert (practices["fsdp"], practices["fsdp_version"]) == ("full_shard", 2)


def test_replicated_data_parallelism() -> None:
    line = (
        "from torch.nn.parallel import DistributedDataParallel as DDP\n"
        "model = DDP(model, find_unused_parameters=True)"
    )
    practices = values(plain(line))
    assert practices["ddp"] is True
    assert practices["find_unused_parameters"] is True
    assert values(plain(line, launcher=launched(1)))["ddp"] is False


def test_code_with_both_kinds_of_data_parallelism_is_unknown() -> None:
    line = (
        "from torch.nn.parallel import DistributedDataParallel as DDP\n"
        "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
        "model = FSDP(model) if big else DDP(model)"
    )
    practices = values(plain(line))
    assert "ddp" not in practices
    assert "fsdp" not in practices


def test_deepspeed_through_its_document_or_unknown() -> None:
    line = "import deepspeed\nengine, *_ = deepspeed.initialize(model=model, config='ds.json')"
    document = json_document('{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}')
    practices = values(plain(line, deepspeed=document))
    assert (practices["zero_stage"], practices["precision"]) == (3, "bf16")
    assert "zero_stage" not in values(plain(line))


@pytest.mark.parametrize(
    ("line", "attention"),
    [
        ("from flash_attn import flash_attn_func\nflash_attn_func(q, k, v)", "flash_attention_2"),
        (
            "from flash_attn_interface import flash_attn_func\nflash_attn_func(q, k, v)",
            "flash_attention_3",
        ),
        ("torch.nn.functional.scaled_dot_product_attention(q, k, v)", "sdpa"),
        (
            "import xformers.ops as xops\nxops.memory_efficient_attention(q, k, v)",
            "xformers",
        ),
    ],
)
def test_attention_kernels(line: str, attention: str) -> None:
    assert values(plain(line))["attention"] == attention


def test_recomputation_and_the_switch_that_guards_it() -> None:
    line = "model.gradient_checkpointing_enable()"
    assert values(plain(line))["gradient_checkpointing"] is True
    guarded = plain(line, gradient_checkpointing=False)
    assert values(guarded)["gradient_checkpointing"] is False
    line = (
        "from torch.utils.checkpoint import checkpoint\ny = checkpoint(f, x, use_reentrant=False)"
    )
    practices = values(plain(line))
    assert practices["gradient_checkpointing"] is True
    assert practices["reentrant_checkpointing"] is False


def test_compiling_and_the_switch_that_guards_it() -> None:
    line = "model = torch.compile(model)"
    assert values(plain(line))["torch_compile"] is True
    assert values(plain(line, compile=False))["torch_compile"] is False
    assert values(plain("import re\np = re.compile('x')"))["torch_compile"] is False


def test_tf32_switches() -> None:
    assert values(plain("torch.backends.cuda.matmul.allow_tf32 = True"))["tf32"] is True
    assert values(plain("torch.set_float32_matmul_precision('high')"))["tf32"] is True
    assert values(plain("torch.set_float32_matmul_precision('highest')"))["tf32"] is False


def test_optimizer_and_its_fusion() -> None:
    assert values(plain())["optimizer"] == "adamw"
    assert values(plain(optimizer=", fused=True"))["optimizer"] == "adamw_fused"
    line = "import bitsandbytes as bnb\nsecond = bnb.optim.AdamW8bit(model.parameters())"
    assert "optimizer" not in values(plain(line))


def test_schedules_and_clipping() -> None:
    line = (
        "from transformers import get_cosine_schedule_with_warmup\n"
        "s = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=100)\n"
        "torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)"
    )
    practices = values(plain(line))
    assert practices["lr_scheduler"] == "get_cosine_schedule_with_warmup"
    assert practices["warmup"] == 100
    assert practices["max_grad_norm"] == 0.5


def test_every_read_practice_has_its_place() -> None:
    line = "context = torch.autocast('cuda', dtype=torch.bfloat16)"
    setting = profile(plain(line))["precision"]
    assert setting.location is not None
    assert setting.location.line == 7
    assert "bfloat16" in setting.note


@pytest.mark.parametrize(
    ("more", "expected"), [("", True), (", use_gradient_checkpointing=False", False)]
)
def test_the_preparation_of_quantized_models_recomputes_activations(
    more: str, expected: bool
) -> None:
    line = f"import peft\nmodel = peft.prepare_model_for_kbit_training(model{more})"
    assert values(plain(line)).get("gradient_checkpointing") is expected
