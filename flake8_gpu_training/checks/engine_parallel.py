"""GPU940 to GPU944: how an inference engine spreads a model over GPUs."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Optional

from flake8_gpu_training.checks import _sglang_sizes
from flake8_gpu_training.checks._engine import (
    NO_PIPELINE,
    UNSPREAD,
    is_lacking,
    lacks,
    of_engine,
    propose,
    sglang_item,
    vllm_item,
)
from flake8_gpu_training.checks._engine_examples import served
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import cannot_apply, cannot_tell, off, on
from flake8_gpu_training.checks._scale import unfamiliar
from flake8_gpu_training.checks._vllm import DOCS, OPTIMIZATION
from flake8_gpu_training.checks.base import Check, Impact, Judgement, Priority
from flake8_gpu_training.facts import Setting, known
from flake8_gpu_training.frameworks.engines import Engine, Mode, amount
from flake8_gpu_training.frameworks.reading import truth
from flake8_gpu_training.language import Text
from flake8_gpu_training.serving_memory import capacity_of

_SCALING = f"{DOCS}/serving/parallelism_scaling.html"
_DATA = f"{DOCS}/serving/data_parallel_deployment.html"
_EXPERTS = f"{DOCS}/serving/expert_parallel_deployment.html"
_ONE_GPU = Text("单卡", "one GPU")
_ONE_NODE = Text("单机，张量并行足够", "one node: tensor parallelism does")
_ALL_GPUS = re.compile(r"\w+=torch\.cuda\.device_count\(\)")
_DENSE = Text("非 MoE 模型", "the model has no experts")


def _size(engine: Engine, name: str) -> Setting:
    """A parallel size; 1 where neither the release nor the host has any."""
    by_host = engine.host is not None and name in engine.host.defaults
    lacking = engine.release is not None and engine.parameter(name) is None
    if lacking and not by_host and engine.written(name) is None:
        return Setting(name, 1)
    setting = engine.option(name)
    seen = engine.run.hardware.gpus_per_node
    if not setting.known and seen is not None and _ALL_GPUS.fullmatch(setting.written):
        return replace(setting, value=seen)
    return setting


def _above_one(setting: Setting) -> bool:
    return (amount(setting) or 1) > 1


def visible(engine: Engine) -> Optional[int]:
    """GPUs that this job alone has: a container asks for them, or the command lists them.

    Those of an allocation may be shared by several commands of a script.
    """
    run = engine.run
    listed = run.environment.get("CUDA_VISIBLE_DEVICES")
    if listed is not None:
        if not known(listed.value):
            return None
        found = [one for one in str(listed.value).split(",") if one.strip()]
        return len(found) if all(one.strip().isdigit() for one in found) else None
    in_container = run.location.path.endswith((".yaml", ".yml"))
    return run.hardware.gpus_per_node if in_container else None


def _gpus(engine: Engine) -> Optional[int]:
    """GPUs in sight, for what applies to several only; a driver of Ray sees none of its own."""
    count = visible(engine) or engine.run.hardware.gpus
    spread = _above_one(_size(engine, "tensor_parallel_size"))
    by_ray = engine.host is not None and engine.host.id in ("openrlhf", "verl")
    return None if count == 1 and (spread or by_ray) else count


def _idle(engine: Engine) -> Optional[tuple[int, int]]:
    """GPUs in sight and GPUs in use, where some are surely idle."""
    seen = visible(engine)
    if engine.mode not in (Mode.SERVE, Mode.OFFLINE) or seen is None:
        return None
    used = 1.0
    for name in ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"):
        setting = _size(engine, name)
        size = amount(setting) if setting.known else None
        if size is None:
            return None
        used *= size
    return (seen, int(used)) if seen > used and seen % used == 0 else None


# --- GPU940: tensor parallelism ---


def _tensor(engine: Engine) -> Judgement:
    setting = _size(engine, "tensor_parallel_size")
    if not setting.known:
        return cannot_tell(setting)
    if _above_one(setting):
        return on(setting)
    count = _gpus(engine)
    if count == 1:
        return cannot_apply(_ONE_GPU)
    found = capacity_of(engine.run)
    idle = _idle(engine)
    if idle is not None and found is not None and found.most is not None and found.most <= 0:
        return propose(
            engine,
            f"{idle[0] - idle[1]} of {idle[0]} GPUs are idle, and the weights of "
            f"{found.weights:.0f} GiB do not fit one",
            Text(
                f"{idle[0]} 卡只用 {idle[1]} 卡，单卡放不下权重（{found.weights:.0f} GiB）",
                f"{idle[1]} of {idle[0]} GPUs are used; one cannot hold the weights",
            ),
            Text(f"张量并行 {idle[0]}", f"tensor parallelism over {idle[0]}"),
            {"tensor_parallel_size": idle[0]},
            at=setting if setting.explicit else None,
        )
    return off(
        Text("可选：单卡放不下模型或 KV 缓存时使用", "optional: where one GPU is short of memory")
    )


# --- GPU941: pipeline parallelism ---


def _pipeline(engine: Engine) -> Judgement:
    setting = _size(engine, "pipeline_parallel_size")
    if not setting.known:
        return cannot_tell(setting)
    if _above_one(setting):
        return on(setting)
    if _gpus(engine) == 1:
        return cannot_apply(_ONE_GPU)
    if engine.host is not None and engine.host.id == "verl":
        return cannot_apply(NO_PIPELINE)
    if (engine.run.hardware.nodes or 1) == 1:
        return off(_ONE_NODE)
    return off(
        Text("可选：跨机时流水线通信量小", "optional: over several nodes it exchanges little")
    )


# --- GPU942, GPU944: copies ---


def _copies(engine: Engine) -> Judgement:
    setting = _size(engine, "data_parallel_size")
    if not setting.known:
        return cannot_tell(setting)
    if _above_one(setting):
        return on(setting)
    if _gpus(engine) == 1:
        return cannot_apply(_ONE_GPU)
    if is_lacking(engine, "data_parallel_size"):
        return lacks(engine)
    idle, found = _idle(engine), capacity_of(engine.run)
    if idle is not None and (found is None or found.most is None or found.most > 0):
        seen, used = idle
        if engine.mode is Mode.OFFLINE:
            return off(
                Text(
                    "可选：LLM 每进程一份，用多个进程做数据并行",
                    "optional: one LLM a process, in several processes",
                )
            )
        return propose(
            engine,
            f"{seen - used} of {seen} GPUs are idle",
            Text(f"可见 {seen} 卡，只用了 {used} 卡", f"{used} of {seen} GPUs are used"),
            Text(
                f"再起 {seen // used} 个副本（数据并行）",
                f"serve {seen // used} copies",
            ),
            {"data_parallel_size": seen // used},
            priority=Priority.HIGH,
            impact=Impact(
                throughput=(80, 100 * (seen // used - 1)),
                note=Text("吞吐随副本数近似线性增长", "throughput grows with the copies"),
                source=_DATA,
            ),
        )
    if engine.host is not None and engine.host.id == "verl":
        return off(
            Text(
                "可选：verl 已为每组张量并行的 GPU 启动一份引擎",
                "optional: verl starts an engine for each tensor-parallel group of GPUs by itself",
            )
        )
    return off(
        Text("可选：吞吐优先时增加副本", "optional: copies of the model, where throughput counts")
    )


def _mixed(engine: Engine) -> Judgement:
    tensor, copies = (_size(engine, f"{n}_parallel_size") for n in ("tensor", "data"))
    for setting in (tensor, copies):
        if not setting.known:
            return cannot_tell(setting)
    if _above_one(tensor) and _above_one(copies):
        return on(copies)
    count = _gpus(engine)
    if count is not None and count < 4:
        return cannot_apply(Text("少于 4 卡", "less than four GPUs"))
    return off(
        Text(
            "可选：多卡吞吐优先时 DP×TP 组合",
            "optional: copies of a tensor-parallel model, where throughput counts",
        )
    )


# --- GPU943: expert parallelism ---


def _experts(engine: Engine) -> Judgement:
    name = "enable_expert_parallel"
    if engine.host is not None and engine.host.id == "verl":
        name = "expert_parallel_size"
    setting = engine.written(name)
    if setting is not None:
        if not setting.known:
            return cannot_tell(setting)
        if truth(setting.value) is True or (amount(setting) or 0) > 1:
            return on(setting)
    unknown = engine.run.model.kind == "unknown"
    if not engine.run.model.is_moe and not unknown:
        return cannot_apply(_DENSE)
    if engine.is_open:
        return cannot_tell(Text("并非所有参数都已读到", "not all settings could be read"))
    if is_lacking(engine, "enable_expert_parallel"):
        return lacks(engine)
    copies = _size(engine, "data_parallel_size")
    if not copies.known:
        return cannot_tell(copies)
    if _above_one(copies) and unknown:
        return cannot_tell(unfamiliar(engine.run))
    if _above_one(copies):
        return propose(
            engine,
            "with data parallelism the experts are split as tensors over all ranks, each of "
            "which then computes a slice of every expert",
            Text(
                "数据并行下专家按张量切分到所有进程", "experts are split as tensors over the copies"
            ),
            Text("启用专家并行", "give each rank whole experts"),
            {"enable_expert_parallel": True},
        )
    tensor = _size(engine, "tensor_parallel_size")
    if tensor.known and not _above_one(tensor):
        return cannot_apply(_ONE_GPU if _gpus(engine) == 1 else UNSPREAD)
    if unknown:
        return off(
            Text("未启用（默认）；仅用于 MoE 模型", "off by default; for MoE models alone"), setting
        )
    return off(
        Text("可选：MoE 模型，需实测", "optional: whole experts on each rank; measure it"),
        setting,
    )


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU940",
        "engine-tensor-parallel",
        Text("张量并行", "Tensor parallelism of the engine"),
        Priority.HIGH,
        of_engine(vllm=_tensor, sglang=_sglang_sizes.tensor),
        why="A model that one GPU cannot hold runs on several; each also has more KV cache.",
        fix="Set tensor_parallel_size to the GPUs of one node.",
        items=(*vllm_item("C", "tensor-parallel", 1.5), *sglang_item("D", "tensor-parallel", 1.5)),
        impact=by_class(Priority.HIGH, _SCALING),
        examples=served(
            "--max-model-len 8192",
            "--tensor-parallel-size 4 --max-model-len 8192",
            start="CUDA_VISIBLE_DEVICES=0,1,2,3 ",
            model="Qwen/Qwen2.5-72B-Instruct",
            gpus="a100-80g:4",
        ),
        sources=(_SCALING, OPTIMIZATION),
    ),
    Check(
        "GPU941",
        "engine-pipeline-parallel",
        Text("流水线并行", "Pipeline parallelism of the engine"),
        Priority.LOW,
        of_engine(needs=("pipeline_parallel_size",), vllm=_pipeline, sglang=_sglang_sizes.pipeline),
        why="Between nodes a pipeline exchanges activations once a stage, not after every layer.",
        fix="Set pipeline_parallel_size to the number of nodes.",
        items=(
            *vllm_item("C", "pipeline-parallel", 0.5),
            *sglang_item("D", "pipeline-parallel", 0.5),
        ),
        impact=Impact(source=_SCALING),
        sources=(_SCALING,),
    ),
    Check(
        "GPU942",
        "engine-data-parallel",
        Text("数据并行", "Copies of the model"),
        Priority.MEDIUM,
        of_engine(needs=("data_parallel_size",), vllm=_copies, sglang=_sglang_sizes.copies),
        why="GPUs that no copy of the model uses do nothing.",
        fix="Set data_parallel_size, or a larger tensor_parallel_size.",
        ignore="Another process uses the other GPUs.",
        items=(*vllm_item("C", "data-parallel", 1), *sglang_item("D", "data-parallel", 0.75)),
        impact=by_class(Priority.HIGH, _DATA),
        examples=served(
            "--max-model-len 8192",
            "--data-parallel-size 4 --max-model-len 8192",
            start="CUDA_VISIBLE_DEVICES=0,1,2,3 ",
            gpus="a100-80g:4",
        ),
        sources=(_DATA, OPTIMIZATION),
    ),
    Check(
        "GPU943",
        "engine-expert-parallel",
        Text("专家并行", "Expert parallelism of the engine"),
        Priority.LOW,
        of_engine(needs=("enable_expert_parallel",), vllm=_experts, sglang=_sglang_sizes.experts),
        why="Whole experts on each rank compute larger products than slices of every expert.",
        fix="Set enable_expert_parallel for mixtures of experts.",
        items=(*vllm_item("C", "expert-parallel", 1), *sglang_item("D", "expert-parallel", 1)),
        impact=by_class(Priority.LOW, _EXPERTS),
        difficulty="medium",
        examples=served(
            "--data-parallel-size 8",
            "--data-parallel-size 8 --enable-expert-parallel",
            model="deepseek-ai/DeepSeek-V3",
            gpus="h200:8",
        ),
        sources=(_EXPERTS,),
    ),
    Check(
        "GPU944",
        "engine-mixed-parallel",
        Text("DP×TP 组合", "Copies of a tensor-parallel model"),
        Priority.LOW,
        of_engine(needs=("data_parallel_size",), vllm=_mixed),
        why="Each copy needs only as many GPUs as hold it; more of them add traffic, not batches.",
        fix="Set tensor_parallel_size as small as the model allows and copies for the rest.",
        items=vllm_item("C", "dp-tp-mix", 1),
        impact=Impact(source=_DATA),
        sources=(_DATA,),
    ),
)
