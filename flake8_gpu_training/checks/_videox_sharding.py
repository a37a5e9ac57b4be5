"""Whether a launch of VideoX-Fun that shards nothing, on GPUs that nobody counts, ought to."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from flake8_gpu_training.checks._judging import advise, off
from flake8_gpu_training.checks._scale import ASSUMED_MEMORY_GIB, GIB, memory_gib, states_gib
from flake8_gpu_training.checks._settings import parameter
from flake8_gpu_training.checks._sharding_advice import how_to_shard
from flake8_gpu_training.checks._videox import is_lora, script
from flake8_gpu_training.checks.base import Judgement
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_SHARE = 0.7  # of a GPU; the rest is for activations, the VAE and the text encoder
_WEIGHT = 2
_MODELS_OF_DISTILLING = 3
"""The one that learns, the one that scores what it makes, and the teacher, which is frozen."""


def unsharded(run: Run) -> Judgement:
    """What the READMEs launch with ZeRO-2, or FSDP where that is not enough, when it is large."""
    room = memory_gib(run) or ASSUMED_MEMORY_GIB
    weights, held = _weights_gib(run), _held_gib(run)
    if weights is None or held is None:
        return off(
            Text(
                "启动命令未启用 DeepSpeed 与 FSDP；模型规模未知",
                "launched without DeepSpeed and FSDP; the model's size is not known",
            )
        )
    if held <= _SHARE * room:
        if is_lora(run) is False and not trains_all(run):
            return off(_in_part(weights))
        return off(
            Text(
                f"模型状态约 {held:.0f} GiB，{room:.0f} GiB 的单卡放得下，无需切分",
                f"model states of about {held:.0f} GiB fit a GPU of {room:.0f} GiB: "
                "nothing has to be split",
            )
        )
    splits_enough = trains_all(run) and weights <= _SHARE * room / 2
    how = how_to_shard(run, 2 if splits_enough else 3)
    flags = how.snippet.instruction.removeprefix("launch with ")
    in_part = is_lora(run) is False and not trains_all(run)
    least_zh, least = ("至少", "at least") if in_part else ("约", "about")
    answer = advise(
        run,
        f"every GPU keeps {least} {held:.0f} GiB of model states; {how.name} splits them",
        Text(
            f"未切分：每张卡{least_zh} {held:.0f} GiB 模型状态，"
            f"{room:.0f} GiB 显存放不下或所剩不多",
            f"not split: {least} {held:.0f} GiB of model states on every GPU, which leave little "
            f"or nothing of {room:.0f} GiB",
        ),
        Text(
            f"多卡时启用 {how.name}：accelerate launch {flags}",
            f"on several GPUs use {how.name}: accelerate launch {flags}",
        ),
        snippet=how.snippet,
        variant=how.variant,
    )
    return replace(answer, findings=())  # on how many GPUs it runs is for its user to say


def _in_part(weights: float) -> Text:
    """Which parts learn is a list of names; a control branch comes on top of the base model."""
    return Text(
        f"未切分：每张卡上基础模型权重约 {weights:.0f} GiB；"
        "trainable_modules 所选部分的权重、梯度与优化器状态大小未知",
        f"not split: base weights of about {weights:.0f} GiB on every GPU; how much the parts "
        "that trainable_modules names add (weights, gradients, optimizer states) is not known",
    )


def trains_all(run: Run) -> bool:
    """Whether every weight of the transformer learns (``--trainable_modules .``)."""
    named = parameter(run, "trainable_modules", default=["."])
    values = named.value if isinstance(named.value, (list, tuple)) else [named.value]
    return is_lora(run) is False and named.known and "." in values


def _weights_gib(run: Run) -> Optional[float]:
    parameters = run.model.parameters
    if parameters is None:
        return None
    models = _MODELS_OF_DISTILLING if script(run).distills else 1
    return parameters * _WEIGHT * models / GIB


def _held_gib(run: Run) -> Optional[float]:
    """States of adapters are left out, which are small; of parts that learn, as not known."""
    weights = _weights_gib(run)
    if not trains_all(run) or weights is None:
        return weights
    states = states_gib(run)
    if states is None or not script(run).distills:
        return states
    return states * (_MODELS_OF_DISTILLING - 1) + weights / _MODELS_OF_DISTILLING
