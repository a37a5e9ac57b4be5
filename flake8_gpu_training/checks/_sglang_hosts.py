"""What slime and verl do to the SGLang engines that they start, as their own sources have it."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from flake8_gpu_training.checks._engine import is_foreign
from flake8_gpu_training.checks._judging import by_itself, cannot_tell, off, on
from flake8_gpu_training.checks.base import Judgement
from flake8_gpu_training.facts import Origin, Setting
from flake8_gpu_training.frameworks import slime
from flake8_gpu_training.frameworks.engines import Engine, Mode
from flake8_gpu_training.frameworks.reading import find, is_true, number
from flake8_gpu_training.language import Text

_ROLLOUT = "actor_rollout_ref.rollout"
_MTP = "actor_rollout_ref.model.mtp"
FLASHINFER_BY_VERL = (0, 5, 12)
"""From this release on verl asks for FlashInfer: FA3 fails there while graphs are captured."""


def is_hosted(engine: Engine, host: str) -> bool:
    """Whether ``host`` starts the engine."""
    return engine.host is not None and engine.host.id == host


def switch(engine: Engine, name: str) -> Optional[Setting]:
    """A switch of slime's own that its command turns on."""
    setting = engine.run.settings.get(name) if is_hosted(engine, "slime") else None
    return setting if is_true(setting) else None


def paused(engine: Engine) -> Optional[Judgement]:
    """Whether requests wait while weights change; None where no host decides."""
    if is_hosted(engine, "slime"):
        if switch(engine, "debug_rollout_only") is not None:
            return None
        return by_itself(
            Text(
                "slime 每次更新权重前调用 pause_generation，之后 continue_generation",
                "slime calls pause_generation before each update of weights, and "
                "continue_generation behind it",
            )
        )
    if not is_hosted(engine, "verl"):
        return None
    if engine.mode is Mode.RLHF_SERVER:
        return by_itself(
            Text(
                "verl 更新权重前用 pause_generation 中止请求",
                "verl aborts requests by pause_generation before weights come",
            )
        )
    return off(
        Text(
            "采样与训练轮流进行，更新权重时没有请求",
            "it samples and trains in turn: no request runs while weights change",
        )
    )


def carried(engine: Engine) -> Optional[Judgement]:
    """How new weights reach the engine; None where no host decides."""
    if is_hosted(engine, "verl"):
        shown = "verl: update_weights_from_tensor"
        return by_itself(Text(shown, shown), "tensor")
    if not is_hosted(engine, "slime"):
        return None
    settings = engine.run.settings
    way, kind = settings.get("update_weight_transport"), settings.get("update_weight_mode")
    for setting, told in ((way, "disk"), (kind, "delta")):
        if setting is not None and not setting.known:
            return cannot_tell(setting)
        if setting is not None and setting.value == told:
            return on(setting, "disk")
    if slime.is_colocated(settings):
        said = Text(
            "slime 同卡训练时用 update_weights_from_tensor（--colocate）",
            "slime calls update_weights_from_tensor where engines are colocated (--colocate)",
        )
        return replace(on(settings["colocate"], "tensor"), current=said)
    return by_itself(
        Text(
            "slime 经 NCCL 传权重（update_weights_from_distributed）：未写 --colocate",
            "slime sends weights over NCCL (update_weights_from_distributed): no --colocate",
        ),
        "distributed",
    )


def routed(engine: Engine) -> Optional[Judgement]:
    """The router that a host starts before its engines."""
    if not is_hosted(engine, "slime"):
        return None
    given = engine.run.settings.get("sglang_router_ip")
    if given is not None:
        return on(given)
    return by_itself(
        Text(
            "slime 在引擎前启动 sglang_router（未写 --sglang-router-ip）",
            "slime starts sglang_router before its engines (no --sglang-router-ip)",
        )
    )


def disaggregated(engine: Engine) -> Optional[Judgement]:
    """Whether a host starts engines that only prefill, or only decode."""
    names = {"slime": "prefill_num_servers", "verl": f"{_ROLLOUT}.disaggregation.enabled"}
    name = names.get(engine.host.id if engine.host is not None else "")
    if name is None:
        return None
    setting = find(engine.run, name)
    if setting is not None and setting.known and setting.value not in (False, 0, None):
        return on(setting)
    if setting is not None and not setting.known:
        return cannot_tell(setting)
    if is_hosted(engine, "slime") and named_file(engine) is not None:
        said = Text("由 --sglang-config 的文件决定", "the file behind --sglang-config decides")
        return cannot_tell(said)
    shown = f"--{name.replace('_', '-')}" if is_hosted(engine, "slime") else name
    return off(
        Text(
            f"可选：{shown}，两阶段分开扩容",
            f"optional: {shown}, where the two are to be scaled apart",
        )
    )


def named_file(engine: Engine) -> Optional[Setting]:
    """The YAML file with slime's groups of servers."""
    return engine.run.settings.get("sglang_config") if is_hosted(engine, "slime") else None


def nodes(engine: Engine) -> Optional[Setting]:
    """Over how many nodes slime spreads an engine, where that is known to be several."""
    if not is_hosted(engine, "slime"):
        return None
    gpus = engine.run.settings.get("rollout_num_gpus_per_engine")
    whole = engine.run.settings.get("num_gpus_per_node")
    if gpus is None or (whole is not None and not whole.known):
        return None
    a_node = number(whole.value) if whole is not None else 8
    count = int((number(gpus.value) or 1) // (a_node or 8))
    return replace(gpus, name="nnodes", value=count) if count > 1 else None


def keeps_backup(engine: Engine) -> bool:
    """Whether verl asks for a copy of the weights in host memory: of engines on its GPUs."""
    return is_hosted(engine, "verl") and engine.mode is Mode.RLHF_COLOCATE


def attention(engine: Engine) -> Optional[Setting]:
    """The backend that verl asks for unless told otherwise."""
    if not is_hosted(engine, "verl") or is_foreign(engine.run):
        return None
    value = "flashinfer" if engine.version >= FLASHINFER_BY_VERL else "fa3"
    note = f"attention_backend={value} (verl 0.9.1, sglang_rollout)"
    return Setting("attention_backend", value, None, Origin.DEFAULT, note)


def drafted(engine: Engine) -> Optional[Setting]:
    """The switch by which verl drafts with the model's own layers."""
    if not is_hosted(engine, "verl"):
        return None
    whole, here = find(engine.run, f"{_MTP}.enable"), find(engine.run, f"{_MTP}.enable_rollout")
    return here if is_true(whole) and is_true(here) else None
