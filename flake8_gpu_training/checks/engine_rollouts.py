"""GPU911 to GPU913, GPU928: an inference engine that samples for a training run."""

from __future__ import annotations

from typing import Optional

from flake8_gpu_training.checks import _sglang_operations
from flake8_gpu_training.checks._engine import (
    EngineJudge,
    is_set,
    of_engine,
    sglang_item,
    vllm_item,
)
from flake8_gpu_training.checks._judging import by_itself, cannot_apply, cannot_tell, off, on
from flake8_gpu_training.checks._vllm import DOCS, variable
from flake8_gpu_training.checks.base import Check, Impact, Judgement, Priority
from flake8_gpu_training.facts import Setting
from flake8_gpu_training.frameworks.called import given
from flake8_gpu_training.frameworks.engine_of import updates
from flake8_gpu_training.frameworks.engines import Engine, Mode, amount
from flake8_gpu_training.frameworks.reading import find, truth
from flake8_gpu_training.language import Text

_RLHF = f"{DOCS}/training/rlhf/"
_TRANSFER = f"{DOCS}/training/weight_transfer/"
_LAYERWISE = f"{DOCS}/training/layerwise/"
_LORA = f"{DOCS}/features/lora/"
_LAYERWISE_SINCE = (0, 19)
"""The first release read whose loader goes layer by layer (model_loader/reload)."""
_NO_TRAINING = Text("非 RLHF 任务", "it samples for no training run")
# How the frameworks bring new weights to the engine, in one process and to a server.
_CARRIED = {
    "trl": ("load_weights", "NCCL communicator"),
    "trl-online": ("load_weights", "NCCL communicator"),
    "trl-gold": ("load_weights", "NCCL communicator"),
    "trl-device": ("load_weights", "load_weights"),
    "trl-serve": ("load_weights", "NCCL communicator"),
    "swift": ("load_weights", "NCCL communicator"),
    "verl": ("CUDA IPC", "checkpoint_engine"),
    "openrlhf": ("CUDA IPC", "NCCL"),
}


def of_sampling(judge: EngineJudge) -> EngineJudge:
    """``judge`` for engines that sample for a training run."""

    def judged(engine: Engine) -> Judgement:
        if engine.mode is None:
            return cannot_tell(Text("vllm_mode 未知", "vllm_mode is not known"))
        return judge(engine) if engine.mode.samples else cannot_apply(_NO_TRAINING)

    return judged


# --- GPU928: new weights ---


@of_sampling
def _transfer(engine: Engine) -> Judgement:
    if engine.host is not None and engine.host.id in _CARRIED:
        how = _CARRIED[engine.host.id][engine.mode is Mode.RLHF_SERVER]
        title = engine.host.title
        return by_itself(Text(f"{title} 经 {how} 传输权重", f"{title} sends weights by {how}"))
    for name in ("weight_transfer_config", "worker_extension_cls"):
        setting = engine.written(name)
        if setting is not None:
            return on(setting)
    call = next(updates(engine.run, sleeps=False), None)
    if call is not None:
        return on(given(call.method, True, call))
    if engine.is_open:
        return cannot_tell(Text("并非所有参数都已读到", "not all settings could be read"))
    return off(
        Text(
            "可选：weight_transfer_config 在显存之间传权重，不经磁盘",
            "optional: weight_transfer_config moves weights between GPUs, not by files",
        )
    )


# --- GPU911: where it runs ---


@of_sampling
def _place(engine: Engine) -> Judgement:
    variant = "server" if engine.mode is Mode.RLHF_SERVER else "colocate"
    if engine.by is not None and engine.by.location is not None:
        return on(engine.by, variant)
    return on(engine.host.title if engine.host is not None else engine.called, variant)


# --- GPU912: adapters at run time ---


@of_sampling
def _adapters(engine: Engine) -> Judgement:
    if engine.run.value("tuning") == "full" or _trains_all(engine):
        return cannot_apply(Text("全参训练", "all weights are trained"))
    found = _live_adapters(engine)
    if found is not None:
        if not found.known:
            return cannot_tell(found)
        if is_set(found):
            return on(found)
    if engine.host is not None and engine.host.title == "TRL":
        return off(Text("TRL 同步合并后的权重", "TRL hands over merged weights"))
    return off(
        Text(
            "可选：LoRA 训练只同步适配器",
            "optional: of LoRA only the adapters are handed over",
        )
    )


def _trains_all(engine: Engine) -> bool:
    """Whether OpenRLHF is asked for no adapters (its lora_rank is 0 by default)."""
    if engine.host is None or engine.host.id != "openrlhf" or engine.is_open:
        return False
    rank = find(engine.run, "ds.lora.rank", "lora_rank")
    return rank is None or amount(rank) == 0


def _live_adapters(engine: Engine) -> Optional[Setting]:
    asked = variable(engine, "VLLM_ALLOW_RUNTIME_LORA_UPDATING")
    if asked is not None:
        return asked
    if engine.host is not None and engine.host.id == "swift":
        return find(engine.run, "vllm_enable_lora")
    if engine.host is not None and engine.host.id == "verl":
        rank = find(engine.run, "actor_rollout_ref.model.lora_rank")
        return rank if rank is not None and (amount(rank) or 0) > 0 else None
    return engine.written("enable_lora")


# --- GPU913: layer by layer ---


@of_sampling
def _layerwise(engine: Engine) -> Judgement:
    summoned = find(engine.run, "actor_rollout_ref.rollout.layered_summon")
    if summoned is not None and truth(summoned.value) is True:
        return on(summoned)
    batches = find(engine.run, "move_model_batches")
    if batches is not None and (amount(batches) or 0) > 1:
        return on(batches)
    call = next((c for c in updates(engine.run) if "reload_weights" in _words(c)), None)
    if call is not None:
        return on(given("reload_weights", True, call))
    if engine.is_open and engine.host is None:
        return cannot_tell(Text("并非所有参数都已读到", "not all settings could be read"))
    if engine.host is None and engine.version < _LAYERWISE_SINCE:
        return cannot_apply(Text("此版本没有逐层重载", "this release reloads no single layers"))
    if engine.host is not None and engine.host.id.startswith("trl"):
        return cannot_apply(Text("TRL 没有逐层重载的选项", "TRL has no option for it"))
    return off(
        Text(
            "可选：逐层收集与重载权重，降低同步峰值",
            "optional: gathered and loaded layer by layer, weights peak lower",
        )
    )


def _words(call: object) -> str:
    positional = getattr(call, "positional", ())
    first = positional[0].value if positional else ""
    return f"{getattr(call, 'method', '')} {first}"


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU928",
        "rollout-weight-transfer",
        Text("权重传输", "Weights handed to the engine"),
        Priority.LOW,
        of_engine(remote=True, vllm=_transfer, sglang=_sglang_operations.transfer),
        why="After every update the engine needs the new weights: over files that takes minutes.",
        fix="Set weight_transfer_config (NCCL or IPC), or use a framework that does so.",
        items=(
            *vllm_item("H", "weight-transfer", 1.5),
            *sglang_item("H", "weights-from-disk", 1, "weights", "disk"),
            *sglang_item("H", "weights-from-tensor", 2, "weights", "tensor"),
            *sglang_item("H", "weights-from-distributed", 2, "weights", "distributed"),
        ),
        impact=Impact(source=_TRANSFER),
        difficulty="medium",
        sources=(_TRANSFER, _RLHF),
    ),
    Check(
        "GPU911",
        "rollout-placement",
        Text("同卡或独立部署", "Colocated engine or server"),
        Priority.LOW,
        of_engine(remote=True, vllm=_place),
        why="On the training GPUs the engine waits for updates; on its own it needs more GPUs.",
        fix="Colocate on one node; use a server where sampling and training overlap.",
        items=(
            *vllm_item("H", "colocate", 1, "placement", "colocate"),
            *vllm_item("H", "server", 1, "placement", "server"),
        ),
        impact=Impact(source=_RLHF),
        sources=(_RLHF,),
    ),
    Check(
        "GPU912",
        "rollout-adapters",
        Text("动态 LoRA", "Adapters loaded at run time"),
        Priority.LOW,
        of_engine(remote=True, vllm=_adapters),
        why="Adapters are a hundredth of the weights, and need no merge.",
        fix="Set vllm_enable_lora (ms-swift), or VLLM_ALLOW_RUNTIME_LORA_UPDATING=1.",
        items=vllm_item("H", "dynamic-lora", 0.5),
        impact=Impact(source=_LORA),
        sources=(_LORA,),
    ),
    Check(
        "GPU913",
        "rollout-layerwise-reload",
        Text("逐层重载", "Weights loaded layer by layer"),
        Priority.LOW,
        of_engine(remote=True, vllm=_layerwise),
        why="Gathering all weights at once needs room for a second model.",
        fix="Set layered_summon (verl) or move_model_batches (ms-swift).",
        items=vllm_item("H", "layerwise-reload", 1),
        impact=Impact(source=_LAYERWISE),
        difficulty="medium",
        sources=(_LAYERWISE,),
    ),
)
