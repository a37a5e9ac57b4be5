"""GPU028: an inference engine that cannot start, since weights or one sequence do not fit."""

from __future__ import annotations

from flake8_gpu_training.checks._engine import is_foreign, of_engine
from flake8_gpu_training.checks._engine_examples import served
from flake8_gpu_training.checks._judging import no_mistake, told
from flake8_gpu_training.checks._vllm import CONSERVING
from flake8_gpu_training.checks.base import Check, Finding, Impact, Judgement, Priority, Status
from flake8_gpu_training.frameworks.engines import Engine
from flake8_gpu_training.language import Text
from flake8_gpu_training.serving_memory import GIB, Capacity, capacity_of

_KV_CHECK = "vLLM 0.10.2 and 0.33.0, v1/core/kv_cache_utils.py"
_STATIC = "SGLang 0.5.23, arg_groups/memory_hook.py; 0.5.3, model_executor/model_runner.py"
_MARGIN = 1.02
"""Sizes are exact, but nothing is refused within so much of the limit."""


def _fits(engine: Engine) -> Judgement:
    """Weights in the checkpoint's own 16 bits, on GPUs that are named, at their full size."""
    run = engine.run
    found = capacity_of(run)
    if found is None or found.most is None or not found.exact or run.hardware.weak:
        return no_mistake()
    if is_foreign(run):
        return no_mistake()
    usable = found.most + found.weights
    if found.weights > usable * _MARGIN:
        return _refused(engine, _weights(found, usable))
    if not found.length:
        return no_mistake()
    needed = found.length * found.token_bytes / GIB
    if needed > found.most * _MARGIN:
        return _refused(engine, _sequence(found, usable, needed))
    return no_mistake()


def _static_fits(engine: Engine) -> Judgement:
    """SGLang's weights alone: a pool that holds no request of full length still starts."""
    run = engine.run
    found = capacity_of(run)
    if found is None or found.most is None or not found.exact or run.hardware.weak:
        return no_mistake()
    usable = found.most + found.weights
    if is_foreign(run) or found.weights <= usable * _MARGIN:
        return no_mistake()
    return _refused(engine, _weights(found, usable))


def _weights(found: Capacity, usable: float) -> tuple[Text, Text, Text]:
    each = f"{found.weights:.1f} GiB"
    current = Text(
        f"每卡权重 {each}（16 位，{found.gpus} 卡），可用 {usable:.1f} GiB"
        f"（显存 × {found.share:g}）",
        f"the weights take {each} a GPU in 16 bits over {found.gpus}, "
        f"{usable:.1f} GiB are usable (memory x {found.share:g})",
    )
    return (
        current,
        Text("增大张量并行，或用量化的检查点", "use more GPUs, or a quantized checkpoint"),
        Text("权重放不下", "the weights do not fit"),
    )


def _sequence(found: Capacity, usable: float, needed: float) -> tuple[Text, Text, Text]:
    left = found.most or 0.0
    longest = int(left * GIB) // found.token_bytes
    shown = 1 << max(longest.bit_length() - 1, 8)
    current = Text(
        f"一条 {found.length} token 的序列需要 {needed:.1f} GiB KV 缓存"
        f"（{found.token_bytes} 字节 × {found.length}），"
        f"可用 {usable:.1f} − 权重 {found.weights:.1f} = {left:.1f} GiB",
        f"one sequence of {found.length} tokens takes {needed:.1f} GiB of KV cache "
        f"({found.token_bytes} bytes x {found.length}); {usable:.1f} usable - "
        f"{found.weights:.1f} of weights leave {left:.1f} GiB",
    )
    return (
        current,
        Text(
            f"max_model_len 不超过 {longest}，例如 {shown}；或增大张量并行",
            f"set max_model_len below {longest}, such as {shown}, or use more GPUs",
        ),
        Text("最长序列放不下", "the longest sequence does not fit"),
    )


def _refused(engine: Engine, words: tuple[Text, Text, Text]) -> Judgement:
    current, action, _ = words
    setting = engine.written("max_model_len", "tensor_parallel_size", "tp_size")
    location = setting.location if setting is not None else None
    place = location or engine.run.place.location
    message = f"{action.en}: {engine.kind.title} cannot start, {current.en}"
    finding = Finding(place, message, told=told(current, action))
    return Judgement(Status.NOT_APPLICABLE, findings=(finding,), current=current, action=action)


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU028",
        "engine-does-not-fit",
        Text("引擎显存不足", "The engine cannot start for lack of memory"),
        Priority.HIGH,
        of_engine(vllm=_fits, sglang=_static_fits),
        why="The engine stops when the weights, or the KV cache of one sequence of the longest "
        "length, do not fit the memory that it may use.",
        fix="Shorten max_model_len, use more GPUs, or serve a quantized checkpoint.",
        impact=Impact(
            throughput=(0, 0), note=Text("否则无法启动", "it does not start"), source=_KV_CHECK
        ),
        examples=served(
            "--max-model-len 32768",
            "--tensor-parallel-size 4 --max-model-len 32768",
            model="Qwen/Qwen2.5-72B-Instruct",
            gpus="a100-80g:4",
        ),
        sources=(_KV_CHECK, _STATIC, CONSERVING),
    ),
)
