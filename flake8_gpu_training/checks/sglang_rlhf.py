"""GPU979 to GPU982: what a training run asks of SGLang while it samples."""

from __future__ import annotations

from typing import Optional

from flake8_gpu_training.checks import _sglang_hosts as hosted
from flake8_gpu_training.checks._engine import (
    EngineJudge,
    is_lacking,
    is_set,
    lacks,
    of_engine,
    sglang_item,
)
from flake8_gpu_training.checks._judging import cannot_apply, off, on, seen
from flake8_gpu_training.checks._sglang import DOCS, RL, SOURCE, is_on, optional, samples
from flake8_gpu_training.checks.base import Check, Impact, Judgement, Priority
from flake8_gpu_training.facts import Call
from flake8_gpu_training.frameworks.engines import Engine, Mode
from flake8_gpu_training.language import Text

_NO_RL = Text("不是 RLHF 任务的推理引擎", "it generates for no training run")


def of_sampling(judge: EngineJudge) -> EngineJudge:
    """``judge`` for engines that generate for a run that trains."""

    def judged(engine: Engine) -> Judgement:
        return judge(engine) if samples(engine) else cannot_apply(_NO_RL)

    return judged


def called(engine: Engine, *methods: str) -> Optional[Call]:
    """The first call of one of the engine's own methods in the run's programs."""
    for program in engine.run.python:
        for call in program.calls:
            if call.method in methods:
                return call
    return None


# --- GPU979: requests wait while weights change ------------------------------------------------


@of_sampling
def _pauses(engine: Engine) -> Judgement:
    call = called(engine, "pause_generation", "continue_generation")
    if call is not None:
        return seen(call)
    told = hosted.paused(engine)
    if told is not None:
        return told
    return off(
        Text(
            "可选：异步 RL 更新权重时暂停而不丢弃请求",
            "optional: asynchronous runs pause requests instead of dropping them",
        )
    )


# --- GPU980: the same answer whatever the batch ------------------------------------------------


def _deterministic(engine: Engine) -> Judgement:
    name = "enable_deterministic_inference"
    if not samples(engine) and not is_on(engine, name):
        return cannot_apply(_NO_RL)
    return optional(
        engine,
        name,
        Text(
            "可选：训练与推理逐位一致时启用，吞吐下降",
            "optional: where both must agree bit by bit; throughput falls",
        ),
    )


# --- GPU981: weights that are released ---------------------------------------------------------


@of_sampling
def _backup(engine: Engine) -> Judgement:
    name = "enable_weights_cpu_backup"
    if is_lacking(engine, name):
        return lacks(engine)
    if engine.mode is not Mode.RLHF_COLOCATE:
        return cannot_apply(Text("不与训练共用 GPU", "it has GPUs of its own"))
    if hosted.keeps_backup(engine) and engine.written(name) is None:
        return on(f"{name}=True (verl 0.9.1, sglang_rollout)")
    saver = engine.option("enable_memory_saver")
    if saver.known and not is_set(saver):
        return cannot_apply(Text("未启用 memory saver", "nothing is released (no memory saver)"))
    return optional(
        engine,
        name,
        Text(
            "可选：每步都会推送新权重，释放时不必备份",
            "optional: new weights come after each update, so that none need be kept",
        ),
    )


# --- GPU982: weights from a running server -----------------------------------------------------


def _forked(engine: Engine) -> Judgement:
    form = engine.written("load_format")
    if form is not None and form.known and form.value == "remote_instance":
        return on(form)
    name = "remote_instance_weight_loader_seed_instance_ip"
    told = engine.written(name)
    if told is not None:
        return on(told)
    if is_lacking(engine, name):
        return lacks(engine)
    if not samples(engine):
        return cannot_apply(_NO_RL)
    if is_on(engine, "enable_memory_saver") and engine.mode is Mode.RLHF_COLOCATE:
        return off(Text("可选：扩容时使用", "optional: for servers that join"))
    return off(
        Text(
            "可选：新服务从运行中的实例取权重",
            "optional: servers that join take weights from one that runs",
        )
    )


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU979",
        "pause-generation",
        Text("暂停生成", "Pausing generation"),
        Priority.LOW,
        of_engine(remote=True, sglang=_pauses),
        why="Requests that are dropped when weights change are generated anew.",
        fix="Call pause_generation before an update of weights, and continue_generation behind it.",
        items=sglang_item("H", "pause-generation", 0.5),
        impact=Impact(source=RL),
        sources=(RL,),
    ),
    Check(
        "GPU980",
        "deterministic-inference",
        Text("确定性推理", "Deterministic inference"),
        Priority.LOW,
        of_engine(sglang=_deterministic),
        why="The same prompt gives other logits in another batch, and so another policy than the "
        "trained one.",
        fix="Set --enable-deterministic-inference where both must agree.",
        items=sglang_item("H", "deterministic-inference", 0.5),
        impact=Impact(source=f"{DOCS}/deterministic_inference"),
        sources=(f"{DOCS}/deterministic_inference", RL),
    ),
    Check(
        "GPU981",
        "weights-backup",
        Text("权重 CPU 备份", "Weights kept in host memory"),
        Priority.LOW,
        of_engine(sglang=_backup),
        why="Weights that are released can be brought back from host memory, not from disk.",
        fix="Set --enable-weights-cpu-backup where no new weights come before generation.",
        items=sglang_item("H", "cpu-weight-backup", 0.75),
        impact=Impact(source=RL),
        sources=(RL, f"{SOURCE}/fields/exec_.py: enable_weights_cpu_backup"),
    ),
    Check(
        "GPU982",
        "remote-fork",
        Text("远程实例加载", "Weights from a running server"),
        Priority.LOW,
        of_engine(sglang=_forked),
        why="A server that joins takes weights from GPUs that hold them, not from storage.",
        fix="Set --load-format remote_instance with the address of a running server.",
        items=sglang_item("H", "remote-fork", 0.75),
        impact=Impact(source=f"{SOURCE}/fields/model.py"),
        sources=(f"{SOURCE}/fields/model.py: remote_instance_weight_loader_*",),
    ),
)
