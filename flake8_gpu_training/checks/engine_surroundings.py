"""GPU918, GPU919, GPU924 to GPU927: what surrounds an inference engine."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Optional

from flake8_gpu_training.checks import _sglang_operations
from flake8_gpu_training.checks._engine import (
    is_set,
    of_engine,
    propose,
    sglang_item,
    vllm_item,
)
from flake8_gpu_training.checks._engine_examples import served
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    Snippet,
    advise,
    by_itself,
    cannot_apply,
    cannot_tell,
    off,
    on,
)
from flake8_gpu_training.checks._vllm import DOCS, OPTIMIZATION, variable
from flake8_gpu_training.checks.base import Check, Example, Impact, Judgement, Priority
from flake8_gpu_training.facts import Setting
from flake8_gpu_training.frameworks.engines import Engine, Mode, amount
from flake8_gpu_training.frameworks.reading import parsed, truth
from flake8_gpu_training.frameworks.swift_releases import release
from flake8_gpu_training.language import Text
from flake8_gpu_training.serving_memory import context_of

_SLEEP = f"{DOCS}/features/sleep_mode/"
_METRICS = f"{DOCS}/usage/metrics/"
_VARIABLES = f"{DOCS}/configuration/env_vars/"
_TROUBLE = f"{DOCS}/usage/troubleshooting/"
_OTHERS = 2
"""Processes beside the workers: the API server and the engine's core."""


def _flag(setting: Optional[Setting]) -> Optional[bool]:
    """A variable as a truth value; None where it is not set or not known."""
    if setting is None or not setting.known:
        return None
    value = setting.value
    return truth(int(value) if str(value).isdigit() else value)


# --- GPU918: the tokenizer ---


def _tokenizer(engine: Engine) -> Judgement:
    setting = engine.option("tokenizer_mode")
    if not setting.known:
        return cannot_tell(setting)
    if str(setting.value).lower() != "slow":
        return on(setting)
    return propose(
        engine,
        "the tokenizer in Python works on one core, and holds up the API server",
        Text("使用慢速分词器", "the slow tokenizer is asked for"),
        Text("用默认的快速分词器", "use the fast one, as by default"),
        {"tokenizer_mode": "auto"},
        at=setting,
    )


# --- GPU919: cores ---


_SIZES = {
    "vllm": ("tensor_parallel_size", "pipeline_parallel_size"),
    "sglang": ("tp_size", "pp_size"),
}


def _cores(engine: Engine) -> Judgement:
    asked, gpus = engine.run.hardware.cpus, engine.run.hardware.gpus_per_node
    if asked is None or not isinstance(asked.value, int):
        return cannot_tell(Text("未声明 CPU 核数", "no number of cores is asked for"))
    used = 1
    for name in _SIZES[engine.name]:
        size = engine.option(name)
        if not size.known:
            return cannot_tell(size)
        used *= int(amount(size) or 1)
    needed = _OTHERS + (gpus or used)
    if not re.search(rf"(?<![\w.-]){asked.value}(?!\w)", asked.note):  # a container's name
        asked = replace(asked, note="")
    if asked.value >= needed or asked.location is None:
        return on(asked)
    return advise(
        engine.run,
        f"the server, the engine and {gpus or used} workers are {needed} processes on "
        f"{asked.value} cores",
        Text(
            f"{asked.value} 核，少于 {needed} 个进程", f"{asked.value} cores for {needed} processes"
        ),
        Text(f"申请至少 {2 * needed} 个 vCPU", f"ask for {2 * needed} virtual cores or more"),
        snippet=Snippet(f"ask for {2 * needed} cores", f"cpus: {2 * needed}", "yaml"),
        at=asked,
    )


# --- GPU924: how workers start ---


_SPAWNS = (3, 4)
"""The first minor release of ms-swift read whose vllm_engine.py sets the variable."""


def _workers(engine: Engine) -> Judgement:
    asked = variable(engine, "VLLM_WORKER_MULTIPROC_METHOD")
    if asked is not None:
        if not asked.known:
            return cannot_tell(asked)
        if str(asked.value) == "spawn":
            return on(asked)
        return off(Text("fork：已初始化 CUDA 时失败", "fork fails once CUDA is in use"), asked)
    host = engine.host.id if engine.host is not None else ""
    if host == "trl-serve" or (
        host == "swift" and (parsed(release(engine.run)) or _SPAWNS) >= _SPAWNS
    ):
        title = engine.host.title if engine.host is not None else ""
        return by_itself(Text(f"{title} 设置了 spawn", f"{title} sets spawn itself"))
    if engine.is_server:
        return on(f"{engine.called}: vllm serve uses spawn")
    return off(
        Text(
            "可选：脚本自己用 CUDA 时设为 spawn",
            "optional: spawn, where the script itself uses CUDA",
        )
    )


# --- GPU925: endpoints for training ---


def _development(engine: Engine) -> Judgement:
    asked = variable(engine, "VLLM_SERVER_DEV_MODE")
    if engine.mode is not Mode.RLHF_SERVER or not engine.is_server:
        if asked is not None and _flag(asked) and engine.mode is Mode.SERVE:
            return off(
                Text("仅供 RLHF：暴露了管理接口", "for training only: it opens its endpoints"),
                asked,
            )
        return cannot_apply(Text("非 RLHF 服务", "no server of a training run"))
    if asked is not None:
        return on(asked) if _flag(asked) is not False else off(_CLOSED, asked)
    if engine.is_open or not engine.written("enable_sleep_mode", "weight_transfer_config"):
        return cannot_tell(Text("并非所有参数都已读到", "not all settings could be read"))
    return advise(
        engine.run,
        "without it the server has no endpoints to sleep, wake up and take new weights",
        Text("未开放 /sleep、/wake_up 接口", "no endpoints to sleep and wake up"),
        Text("设置 VLLM_SERVER_DEV_MODE=1", "set VLLM_SERVER_DEV_MODE=1"),
        snippet=Snippet("set VLLM_SERVER_DEV_MODE=1", "export VLLM_SERVER_DEV_MODE=1", "bash"),
    )


_CLOSED = Text("接口未开放", "the endpoints are closed")


# --- GPU926: beyond the model's length ---


def _long(engine: Engine) -> Judgement:
    asked = variable(engine, "VLLM_ALLOW_LONG_MAX_MODEL_LEN")
    if asked is not None:
        if not asked.known:
            return cannot_tell(asked)
        return on(asked) if _flag(asked) else off(Text("未启用", "not on"), asked)
    length = engine.option("max_model_len")
    wanted, most = amount(length), context_of(engine.run.model.name or "")
    if not length.known and engine.is_open:
        return cannot_tell(length)
    scaled = engine.written("hf_overrides", "rope_scaling")
    if wanted is None or most is None or wanted <= most or scaled is not None:
        return cannot_apply(
            Text("长度不超过模型上限", "no sequence is longer than the model allows")
        )
    return off(
        Text(
            f"max_model_len 超过模型的 {most}：用 hf_overrides 配置 RoPE 缩放",
            f"max_model_len is above the model's {most}: scale RoPE with hf_overrides",
        ),
        length,
    )


# --- GPU927: preemptions ---


def _statistics(engine: Engine) -> Judgement:
    setting = engine.written("disable_log_stats")
    if setting is None and engine.is_open:
        return cannot_tell(Text("并非所有参数都已读到", "not all settings could be read"))
    if setting is None:
        if engine.is_server:
            return on(f"{engine.called}: /metrics, disable_log_stats=False")
        return off(
            Text("可选：离线时用 disable_log_stats=False", "optional: disable_log_stats=False")
        )
    if not setting.known:
        return cannot_tell(setting)
    if not is_set(setting):
        return on(setting)
    if engine.mode is not Mode.SERVE:
        return off(Text("统计被关闭", "no statistics are kept"), setting)
    return advise(
        engine.run,
        "preemptions, queues and the use of the KV cache cannot be seen",
        Text("统计被关闭", "no statistics are kept"),
        Text("去掉 --disable-log-stats", "drop --disable-log-stats"),
        snippet=Snippet("drop --disable-log-stats", "# --disable-log-stats", "bash"),
        at=setting,
    )


def _pod(cores: int) -> str:
    return f"""\
apiVersion: v1
kind: Pod
metadata:
  name: server
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.19.1
    args: ["--model", "Qwen/Qwen2.5-72B-Instruct", "--tensor-parallel-size", "4"]
    resources:
      limits:
        nvidia.com/gpu: 4
        cpu: {cores}
"""


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU918",
        "engine-tokenizer",
        Text("快速分词器", "Fast tokenizer"),
        Priority.MEDIUM,
        of_engine(vllm=_tokenizer),
        why="Tokenizing and joining tokens to text go through the API server for every token.",
        fix="Leave tokenizer_mode at auto.",
        ignore="The model has no fast tokenizer.",
        items=vllm_item("J", "fast-tokenizer", 1),
        impact=by_class(Priority.MEDIUM, OPTIMIZATION),
        examples=served("--tokenizer-mode slow", "--tokenizer-mode auto"),
        sources=(OPTIMIZATION,),
    ),
    Check(
        "GPU919",
        "engine-cores",
        Text("CPU 核数", "Cores for the engine"),
        Priority.MEDIUM,
        of_engine(vllm=_cores, sglang=_cores),
        why="The engine's core spins; with fewer cores than processes every step waits.",
        fix="Ask for two virtual cores a process: the server, the engine, and a worker a GPU.",
        items=(*vllm_item("J", "cpu-cores", 0.5), *sglang_item("J", "cpu-cores", 0.75)),
        impact=by_class(Priority.MEDIUM, OPTIMIZATION),
        examples=(Example("vllm", "pod.yaml", _pod(2), _pod(16)),),
        sources=(OPTIMIZATION,),
    ),
    Check(
        "GPU924",
        "engine-worker-start",
        Text("Worker 启动方式", "How workers start"),
        Priority.LOW,
        of_engine(vllm=_workers),
        why="Forked workers cannot use CUDA once the parent process does.",
        fix="Set VLLM_WORKER_MULTIPROC_METHOD=spawn.",
        items=vllm_item("J", "worker-method", 0.5),
        impact=Impact(source=_TROUBLE),
        sources=(_TROUBLE, _VARIABLES),
    ),
    Check(
        "GPU925",
        "engine-training-endpoints",
        Text("开发模式（RLHF）", "Endpoints for training"),
        Priority.MEDIUM,
        of_engine(vllm=_development),
        why="The endpoints by which a server sleeps and takes weights are closed by default.",
        fix="Set VLLM_SERVER_DEV_MODE=1 for a server that only the trainer reaches.",
        items=vllm_item("J", "dev-mode", 0.5),
        impact=Impact(
            throughput=(0, 0),
            note=Text("否则 /sleep 返回 404", "else /sleep answers 404"),
            source=_SLEEP,
        ),
        examples=served(
            "--enable-sleep-mode",
            "--enable-sleep-mode",
            good_start="VLLM_SERVER_DEV_MODE=1 ",
        ),
        sources=(_SLEEP, _VARIABLES),
    ),
    Check(
        "GPU926",
        "engine-length-override",
        Text("超过模型长度", "Beyond the model's length"),
        Priority.LOW,
        of_engine(vllm=_long),
        why="Positions that a model was not trained for give wrong answers without scaled RoPE.",
        fix="Scale RoPE with hf_overrides; VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 only lifts the check.",
        items=vllm_item("J", "long-max-len", 0.5),
        impact=Impact(source=_VARIABLES),
        sources=(_VARIABLES,),
    ),
    Check(
        "GPU927",
        "engine-statistics",
        Text("抢占监控", "Statistics of the engine"),
        Priority.LOW,
        of_engine(
            needs=("disable_log_stats",), vllm=_statistics, sglang=_sglang_operations.token_usage
        ),
        why="Requests that are preempted are computed again: only the statistics show it.",
        fix="Drop --disable-log-stats, and watch vllm:num_preemptions.",
        items=(
            *vllm_item("J", "preemption-monitoring", 1),
            *sglang_item("J", "token-usage-monitoring", 0.75),
        ),
        impact=Impact(source=_METRICS),
        examples=served("--disable-log-stats", "--max-model-len 8192"),
        sources=(_METRICS, OPTIMIZATION),
    ),
)
