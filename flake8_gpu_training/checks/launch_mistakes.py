"""GPU020 to GPU022: kernels, sizes and processes that do not fit the GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks._faults import Fault, judge_of
from flake8_gpu_training.checks._judging import prefixed
from flake8_gpu_training.checks._mistaken import (
    FAILS,
    is_on,
    value_of,
)
from flake8_gpu_training.checks._scale import (
    architecture,
    gpu_text,
    is_ray,
    ranks,
    takes_flash_attention,
    text,
)
from flake8_gpu_training.checks.base import (
    Change,
    Check,
    Example,
    Priority,
)
from flake8_gpu_training.facts import Location
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run, RunKind

# --- GPU020: attention and hardware ------------------------------------------------------


def _unsupported_attention(run: Run) -> Iterator[Fault]:
    attention = run.practice("attention")
    generation = architecture(run)
    if generation is None or run.hardware.weak or attention.location is None:
        return
    name = gpu_text(run)
    told = f"not {generation}" if name == generation else f"{name} is {generation}"
    written = text(run, "attention")
    for version, needed in _FLASH_NEEDS.items():
        if written == f"flash_attention_{version}" and not _may_take(run, version):
            yield _attention_fault(
                attention.location, run, f"FlashAttention-{version} needs {needed}, {told}"
            )


_FLASH_NEEDS = {2: "Ampere or newer", 3: "Hopper", 4: "Hopper or newer"}


def _may_take(run: Run, version: int) -> bool:
    return takes_flash_attention(run, version) is not False


def _attention_fault(location: Location, run: Run, reason: str) -> Fault:
    best = "FlashAttention-2" if _may_take(run, 2) else "sdpa"
    return Fault(
        location,
        f"use {best} instead: {reason}",
        Text(f"GPU 不支持该注意力实现：{reason}", reason),
        Text(f"改用 {best}", f"use {best}"),
    )


# --- GPU021: parallel sizes --------------------------------------------------------------


def _parallel_sizes(run: Run) -> Iterator[Fault]:
    yield from _split_heads(run)
    world = ranks(run)
    if world is None or run.kind is not RunKind.TRAIN or _may_be_more(run):
        return
    product, largest = 1, None
    for name in ("tensor_parallel", "pipeline_parallel", "sequence_parallel"):
        setting = run.practice(name)
        if setting.known and isinstance(setting.value, int) and setting.value > 1:
            product *= setting.value
            if setting.location is not None:
                largest = setting
    if largest is None or largest.location is None or world % product == 0:
        return
    yield Fault(
        largest.location,
        f"make the parallel sizes divide the ranks: {product} does not divide {world}",
        Text(f"并行度 {product} 不能整除 {world} 个进程", f"{product} does not divide {world}"),
        Text(f"调整并行度，使乘积整除 {world}", f"choose sizes that divide {world}"),
    )


def _split_heads(run: Run) -> Iterator[Fault]:
    """Attention heads that cannot be dealt out to the ranks of a tensor-parallel group."""
    size, heads = run.practice("tensor_parallel"), run.model.heads
    deals = run.value("megatron") is True
    if not deals or heads is None or run.model.kind != "LLM" or size.location is None:
        return
    if not size.known or not isinstance(size.value, int) or size.value < 2:
        return
    if heads % size.value:
        fitting = max(n for n in range(1, size.value) if heads % n == 0)
        yield Fault(
            size.location,
            f"set tensor parallelism to {fitting}: the model has {heads} attention heads, "
            f"{size.value} does not divide them, and the framework refuses to start",
            Text(
                f"张量并行度 {size.value} 不能整除 {heads} 个注意力头",
                f"{size.value} does not divide {heads} attention heads",
            ),
            Text(f"改为 {fitting} 等能整除的值", f"set it to {fitting}, which divides them"),
        )


def _may_be_more(run: Run) -> bool:
    """Whether one process is only what a launcher starts when nobody says more to it."""
    launcher = run.launcher
    return launcher.is_open or (
        launcher.name in ("python", "torchrun") and not launcher.processes.explicit
    )


# --- GPU022: one process on several GPUs -------------------------------------------------


def _spread_and_refused(run: Run) -> Iterator[Fault]:
    """ms-swift in one process that sees several GPUs loads the model with ``device_map``, which
    it refuses beside what needs a process a GPU."""
    seen = run.hardware.gpus_per_node
    processes = run.launcher.processes.value
    visible = run.environment.get("CUDA_VISIBLE_DEVICES")
    single = run.environment.get("SWIFT_SINGLE_DEVICE_MODE")
    if run.framework != "swift" or run.value("megatron") is True or is_ray(run):
        return
    if visible is None or single is not None or processes != 1 or seen is None or seen < 2:
        return
    refused = _refuses_device_map(run)
    if refused is None:
        return
    yield Fault(
        run.place.location,
        f"set NPROC_PER_NODE={seen}: one process would spread the model over {seen} GPUs "
        f"(device_map), and ms-swift refuses {refused} with it",
        Text(
            f"一个进程可见 {seen} 张卡（device_map），与 {refused} 冲突",
            f"one process sees {seen} GPUs (device_map), which {refused} does not go with",
        ),
        Text(f"设置 NPROC_PER_NODE={seen}", f"set NPROC_PER_NODE={seen}"),
        Change("bash", f"NPROC_PER_NODE={seen} swift sft …", prefixed(run, seen)),
    )


def _refuses_device_map(run: Run) -> Optional[str]:
    for name in ("deepspeed", "fsdp"):
        if value_of(run, name):
            return name
    if is_on(run, "use_liger_kernel") is not None:
        return "use_liger_kernel"
    engine = is_on(run, "use_vllm")
    mode = run.setting("vllm_mode")
    samples = text(run, "algorithm") in ("grpo", "gkd")
    return "use_vllm" if engine is not None and mode is not None and samples else None


_ONE_PROCESS = (
    "CUDA_VISIBLE_DEVICES=0,1,2,3 {}swift sft --model Qwen/Qwen2.5-7B-Instruct \\\n"
    "    --tuner_type full --deepspeed zero3 --dataset data/train.jsonl\n"
)


_VOLTA = """\
#!/bin/bash
#SBATCH --gres=gpu:4
#SBATCH --constraint=v100-32gb
NPROC_PER_NODE=4 swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora \\
    --torch_dtype float16 --attn_impl {} --dataset data/train.jsonl
"""


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU020",
        "unsupported-attention",
        Text("GPU 不支持该 Flash Attention", "Flash attention the GPU lacks"),
        Priority.HIGH,
        judge_of(_unsupported_attention),
        why="FlashAttention-2 has no kernels for Volta and Turing, FlashAttention-3 only for "
        "Hopper.",
        fix="Use sdpa before Ampere, FlashAttention-2 on Ampere and Ada.",
        impact=FAILS,
        examples=(
            Example("swift", "train.slurm", _VOLTA.format("flash_attn"), _VOLTA.format("sdpa")),
        ),
        sources=(sources.FLASH_ATTENTION_2, sources.FLASH_ATTENTION_3),
    ),
    Check(
        "GPU021",
        "parallel-sizes",
        Text("并行度不能整除进程数", "Parallel sizes that do not divide the ranks"),
        Priority.HIGH,
        judge_of(_parallel_sizes),
        why="The ranks cannot be arranged in groups of these sizes, or the attention heads "
        "cannot be dealt out to the ranks of a tensor-parallel group.",
        fix="Choose sizes whose product divides the number of ranks, and a tensor-parallel size "
        "that divides the model's attention heads.",
        impact=FAILS,
        examples=(
            Example(
                "swift",
                "train.sh",
                "NPROC_PER_NODE=4 swift sft --model Qwen/Qwen2.5-7B-Instruct \\\n"
                "    --attn_impl flash_attn --sequence_parallel_size 8\n",
                "NPROC_PER_NODE=4 swift sft --model Qwen/Qwen2.5-7B-Instruct \\\n"
                "    --attn_impl flash_attn --sequence_parallel_size 4\n",
            ),
        ),
        sources=(
            sources.MEGATRON,
            sources.SWIFT_DOCS,
            "megatron-core 0.16.1, transformer/transformer_config.py, TransformerConfig",
        ),
    ),
    Check(
        "GPU022",
        "device-map-refused",
        Text("单进程多卡与 DeepSpeed 等冲突", "One process on several GPUs, refused"),
        Priority.HIGH,
        judge_of(_spread_and_refused, training=True),
        why="Started as one process that sees several GPUs, ms-swift spreads the model over "
        "them, and raises ValueError for DeepSpeed, FSDP, Liger kernels or vLLM beside that.",
        fix="Set NPROC_PER_NODE to the number of GPUs.",
        impact=FAILS,
        examples=(
            Example(
                "swift",
                "train.sh",
                _ONE_PROCESS.format(""),
                _ONE_PROCESS.format("NPROC_PER_NODE=4 "),
            ),
        ),
        sources=(sources.SWIFT_ARGUMENTS, "ms-swift 4.6, trainers/arguments.py"),
    ),
)
