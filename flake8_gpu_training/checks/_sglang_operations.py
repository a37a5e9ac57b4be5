"""SGLang's answers about rollouts, production and surroundings, for the checks of all engines."""

from __future__ import annotations

from typing import Optional

from flake8_gpu_training.checks import _sglang_hosts as hosted
from flake8_gpu_training.checks._engine import is_lacking, is_set, lacks, propose
from flake8_gpu_training.checks._judging import cannot_apply, cannot_tell, off, on, seen
from flake8_gpu_training.checks._sglang import defaulted, option, samples
from flake8_gpu_training.checks.base import Judgement
from flake8_gpu_training.facts import Call, Setting
from flake8_gpu_training.frameworks.engines import Engine, Mode
from flake8_gpu_training.frameworks.reading import number
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import PlaceKind

_NO_RL = Text("不是 RLHF 任务的推理引擎", "it generates for no training run")
_SERVES_NOT = Text("不对外提供服务", "it serves no requests of others")


# --- rollouts ----------------------------------------------------------------------------------


def memory_saver(engine: Engine) -> Judgement:
    """``enable_memory_saver``: memory that is lent to the training."""
    if not samples(engine):
        return cannot_apply(_NO_RL)
    kept = hosted.switch(engine, "no_offload_rollout")
    if kept is not None:
        return off(Text("主动关闭", "off, on purpose"), kept)
    both = hosted.switch(engine, "offload")
    if both is not None:
        return on(both)
    setting = engine.option("enable_memory_saver")
    if setting.explicit and setting.known and is_set(setting):
        return on(setting)
    if engine.mode is not Mode.RLHF_COLOCATE:
        return cannot_apply(Text("引擎有独立的 GPU", "the engine has GPUs of its own"))
    by_host = engine.host is not None and "enable_memory_saver" in engine.host.defaults
    if engine.parameter("enable_memory_saver") is None and not setting.explicit and not by_host:
        return lacks(engine)
    if not setting.known:
        return cannot_tell(setting)
    if is_set(setting):
        return on(setting)
    if engine.host is None and not _shares(engine):
        return off(Text("程序未释放显存", "the program releases no memory"), setting)
    return propose(
        engine,
        "the engine keeps its weights and KV cache on the training GPUs during the update",
        Text("训练时引擎不释放显存", "the engine keeps its memory while the model trains"),
        Text("启用 memory saver", "use the memory saver"),
        {"enable_memory_saver": True},
        at=setting if setting.explicit else None,
    )


def _shares(engine: Engine) -> bool:
    """Whether the program trains, or asks for memory back."""
    for program in engine.run.python:
        for call in program.calls:
            if call.method in ("release_memory_occupation", "resume_memory_occupation"):
                return True
            if call.method == "backward":
                return True
    return False


_TRANSFERS = (
    ("update_weights_from_distributed", "distributed"),
    ("init_weights_update_group", "distributed"),
    ("update_weights_from_tensor", "tensor"),
    ("update_weights_from_ipc", "tensor"),
    ("update_weights_from_disk", "disk"),
)


def transfer(engine: Engine) -> Judgement:
    """How new weights reach the engine."""
    if not samples(engine):
        return cannot_apply(_NO_RL)
    carried = hosted.carried(engine)  # of the host's program, which has calls for every way
    if carried is not None:
        return carried
    for method, variant in _TRANSFERS:
        call = _called(engine, method)
        if call is not None:
            return seen(call, variant)
    return cannot_tell(
        Text("未看到更新权重的代码", "the code that updates the weights is out of sight")
    )


def _called(engine: Engine, method: str) -> Optional[Call]:
    for program in engine.run.python:
        for call in program.calls:
            if call.method == method:
                return call
    return None


# --- production --------------------------------------------------------------------------------


def disaggregated(engine: Engine) -> Judgement:
    """Servers that only prefill, or only decode."""
    if engine.mode is Mode.ROUTER:
        split = engine.run.settings.get("pd_disaggregation") or engine.run.settings.get("mini_lb")
        if split is not None:
            return on(split)
        return off(Text("路由未分离预填充与解码", "the router does not tell them apart"))
    apart = hosted.disaggregated(engine)
    if apart is not None:
        return apart
    if engine.mode not in (Mode.SERVE, Mode.RLHF_SERVER):
        return cannot_apply(_SERVES_NOT)
    if is_lacking(engine, "disaggregation_mode"):
        return lacks(engine)
    setting = engine.option("disaggregation_mode")
    if not setting.known:
        return cannot_tell(setting)
    if str(setting.value) in ("prefill", "decode"):
        return on(setting)
    return off(
        Text(
            "可选：大规模服务中两阶段分开扩容",
            "optional: large deployments scale the two apart",
        ),
        setting,
    )


def adapters(engine: Engine) -> Judgement:
    """Several adapters on one base."""
    if is_lacking(engine, "lora_paths"):
        return lacks(engine)
    setting = engine.written("enable_lora", "lora_paths")
    if setting is not None:
        if not setting.known:
            return cannot_tell(setting)
        if is_set(setting):
            return on(setting)
    if engine.run.model.kind in ("embedding", "image", "video", "audio"):
        return cannot_apply(Text("该模型不用 LoRA 服务", "no adapters are served of such a model"))
    if engine.is_open:
        return cannot_tell(Text("部分参数未能读取", "not all settings could be read"))
    return off(
        Text("可选：多个 LoRA 共用一份基座", "optional: several adapters on one base model"),
        setting,
    )


def in_file(engine: Engine) -> Judgement:
    """Arguments in a file behind ``--config``."""
    named = hosted.named_file(engine)
    if named is not None:
        return on(named)
    if hosted.is_hosted(engine, "slime"):
        said = Text(
            "可选：--sglang-config，用 YAML 描述各组服务",
            "optional: --sglang-config, a YAML file with groups of servers",
        )
        return off(said)
    if engine.host is not None or engine.mode not in (Mode.SERVE, Mode.RLHF_SERVER):
        return cannot_apply(Text("不用命令行启动", "no command line starts it"))
    if engine.run.place.kind is PlaceKind.YAML:
        location = engine.run.place.location
        return on(Setting("config", location.path, location, note=f"--config {location.path}"))
    found = engine.run.settings.get("config")
    if found is not None:
        return on(found)
    return off(
        Text("可选：参数写入 YAML，用 --config 读取", "optional: a YAML file behind --config")
    )


# --- surroundings ------------------------------------------------------------------------------


def token_usage(engine: Engine) -> Judgement:
    """Whether the log, or the metrics, say how full the token pool is."""
    metrics = engine.option("enable_metrics")
    if metrics.known and is_set(metrics):
        return on(metrics)
    level = engine.written("log_level")
    if level is None and engine.host is not None and "log_level" in engine.host.defaults:
        level = engine.option("log_level")
    if level is not None and not level.known:
        return cannot_tell(level)
    if level is not None and str(level.value).lower() in ("warning", "error", "critical"):
        return off(
            Text(f"日志级别 {level.value} 不打印", f"the level {level.value} leaves it out"), level
        )
    built = engine.call is not None or engine.run.place.call is not None
    if level is None and built:  # srt/entrypoints/engine.py: Engine logs errors, unless told
        return off(Text("Engine 默认只打印错误", "an Engine logs errors only, by default"))
    interval = option(engine, "decode_log_interval")
    if interval.explicit:
        return on(interval) if interval.known else cannot_tell(interval)
    steps = number(interval.value)
    return defaulted(engine, f"decode_log_interval={steps:g}" if steps else "log_level=info")
