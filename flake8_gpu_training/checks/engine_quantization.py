"""GPU945 to GPU947: in which precision an inference engine keeps and multiplies weights."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Optional

from flake8_gpu_training.checks import _sglang_sizes
from flake8_gpu_training.checks._engine import (
    of_engine,
    propose_fp8,
    propose_without,
    sglang_item,
    vllm_item,
)
from flake8_gpu_training.checks._engine_examples import served
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import cannot_apply, cannot_tell, off, on
from flake8_gpu_training.checks._scale import architecture, has_fp8
from flake8_gpu_training.checks._vllm import DOCS
from flake8_gpu_training.checks.base import Check, Impact, Judgement, Priority, Status
from flake8_gpu_training.facts import Setting
from flake8_gpu_training.frameworks.engines import Engine, Mode
from flake8_gpu_training.language import Text
from flake8_gpu_training.models import last_part
from flake8_gpu_training.serving_memory import capacity_of

_QUANTIZATION = f"{DOCS}/features/quantization/"
_FP8 = "vLLM 0.10.2 docs/features/quantization/fp8.md"
_MARLIN = "vLLM 0.10.2 and 0.19.1, layers/quantization/awq_marlin.py and gptq_marlin.py"
_OLD = ("Volta", "Turing", "Pascal")
_TIGHT = 0.65
"""Share of the usable memory that 16-bit weights take, above which little is left for KV cache."""

# Methods and what names of checkpoints tell, by the item that they belong to; first match wins.
_KINDS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"gguf", "gguf"),
        (r"bitsandbytes|bnb|nf4", "bitsandbytes"),
        (r"awq", "awq"),
        (r"gptq|w4a16|w8a16|w4a8|auto-?round|marlin|int4", "gptq"),
        (r"mxfp4|nvfp4|fp4|int8|(?<!fp8-)w8a8(?!.*fp8)", "other"),
        (r"fp8|modelopt|^online$|mxfp8", "fp8"),
        (r"moe_wna16|inc$", "gptq"),
    )
)
_MIXED = re.compile(
    r"mixed|compressed-tensors|quark|modelopt_mixed|experts_int8|moe_wna16|w4afp8|w4a8|nvfp4|mxfp4"
)
# Formats in which families are published; of Kimi K2, thinking and 2.5 on in INT4 (W4A16).
_COMES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), form)
    for pattern, form in (
        (r"gpt-oss", "mxfp4"),
        (r"kimi-k2(?:-thinking|\.\d)", "int4"),
        (r"deepseek-(?:v3|r1)(?!.*(?:distill|qwen|llama|bf16))|kimi-k2(?!.*bf16)", "fp8"),
    )
)
_WIDENED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "fp8": ("Ampere",),
        "nvfp4": ("Ampere", "Ada", "Hopper"),
        "fp4": ("Ampere", "Ada", "Hopper"),
    }
)
"""GPUs on which Marlin comes before all other kernels that take the format."""
_WIDENS = (0, 10)
"""The first minor release read in which it does (vLLM 0.10.2, 0.19.1 and 0.33)."""
_PLUGINS = (0, 33)
"""The first release read without bitsandbytes and GGUF of its own (layers/quantization)."""
_UNFORCED = (0, 24)
"""The first release read that takes ``awq`` and ``gptq`` for whichever kernel is best."""


def quantized(engine: Engine) -> Optional[Setting]:
    """How the weights are quantized: by the parameter, else by the checkpoint's name.

    None where nothing tells of it; Unknown where a parameter is not known.
    """
    setting = engine.option("quantization")
    if not setting.known and setting.explicit:
        return setting
    told = str(setting.value or "").lower() if setting.known else ""
    if told and told not in ("none", "auto"):
        return setting
    name = engine.run.model.name or ""
    if _kind(last_part(name)):
        at = engine.written("model")
        location = at.location if at is not None else engine.run.model.location
        return Setting("model", last_part(name), location, note=f"model={name}")
    form = next((form for pattern, form in _COMES if pattern.match(last_part(name))), "")
    if form:
        told = f"{name}: {form.upper()}"
        return Setting("model", form, engine.run.model.location, note=told)
    return None


def _form(text: str) -> str:
    """The format that a name tells, else the method that is given."""
    told = re.search(r"mxfp4|nvfp4|fp4|int8|w8a8", text)
    return told[0].upper() if told is not None else text


def _kind(text: str) -> str:
    return next((kind for pattern, kind in _KINDS if pattern.search(text)), "")


# --- GPU945: the method ---


def _with_plugins(engine: Engine) -> Judgement:
    """``_method``, which names the plugins of methods that the release does not have itself."""
    judgement = _method(engine)
    samples = engine.mode is not None and engine.mode.samples
    if engine.version < _PLUGINS or quantized(engine) is not None or samples or engine.is_open:
        return judgement
    if judgement.status is Status.UNKNOWN:
        return replace(judgement, idle=_PLUGGED)
    return replace(judgement, told=_PLUGGED)


_PLUGGED = (
    (
        "bitsandbytes",
        Text(
            "可选：此版本需另装 vllm-bnb-plugin",
            "optional: this release takes it with vllm-bnb-plugin alone",
        ),
    ),
    (
        "gguf",
        Text(
            "可选：此版本需另装 vllm-gguf-plugin",
            "optional: this release takes it with vllm-gguf-plugin alone",
        ),
    ),
)


def _method(engine: Engine) -> Judgement:
    found = quantized(engine)
    if found is not None:
        if not found.known:
            return cannot_tell(found)
        kind = _kind(str(found.value).lower())
        if kind in ("", "other"):
            form = _form(str(found.value).lower())
            return off(Text(f"权重以 {form} 量化", f"the weights are quantized as {form}"), found)
        return on(found, kind)
    if engine.mode is not None and engine.mode.samples:
        return _of_actor(engine)
    if not engine.run.model.name:
        return cannot_tell(Text("模型未知", "the model is not known"))
    if engine.is_open:
        return cannot_tell(Text("并非所有参数都已读到", "not all settings could be read"))
    fp8 = has_fp8(engine.run)
    plugins = engine.version >= _PLUGINS
    if plugins and (not fp8 or engine.run.model.kind not in ("LLM", "MLLM")):
        return off(
            Text(
                "可选：加载时量化为 FP8，或 AWQ、GPTQ、FP8 检查点",
                "optional: FP8 on loading, or a checkpoint in AWQ, GPTQ or FP8",
            )
        )
    if not fp8 or engine.run.model.kind not in ("LLM", "MLLM"):
        return off(
            Text(
                "可选：加载时量化（FP8、bitsandbytes），或 AWQ、GPTQ、FP8 检查点",
                "optional: FP8 or bitsandbytes on loading, or a checkpoint in AWQ, GPTQ or FP8",
            )
        )
    return _advise_fp8(engine)


_ACTORS = Text(
    "采样使用训练中的 16 位模型", "it samples with the model that is trained, in 16 bits"
)
_LOADED = tuple((kind, _ACTORS) for kind in ("awq", "gptq", "bitsandbytes", "gguf"))


def _of_actor(engine: Engine) -> Judgement:
    """Of what samples for a training run: quantized checkpoints are out of its reach."""
    if _may_be_quantized(engine):
        return cannot_tell(Text("模型未知", "the model is not known"))
    if not engine.hands_on("quantization"):
        return cannot_apply(_ACTORS)
    if engine.is_open:
        told = cannot_tell(Text("并非所有参数都已读到", "not all settings could be read"))
        return replace(told, excluded=_LOADED)
    said = Text("可选：采样与训练精度不一致，需校正", "optional: it samples off the policy then")
    return replace(off(said), excluded=_LOADED)


def _is_actors(engine: Engine) -> bool:
    """Whether the weights come from a trained model in 16 bits."""
    samples = engine.mode is not None and engine.mode.samples
    return samples and not _may_be_quantized(engine)


def _may_be_quantized(engine: Engine) -> bool:
    """Whether adapters are trained on a model that nobody knows."""
    return engine.run.value("tuning") in ("lora", "qlora") and not engine.run.model.name


def _advise_fp8(engine: Engine) -> Judgement:
    capacity = capacity_of(engine.run)
    tight = (
        capacity is not None
        and capacity.total is not None
        and capacity.weights > _TIGHT * capacity.total * capacity.share
    )
    if engine.mode is not Mode.SERVE and not tight:
        return off(Text("可选：FP8 在线量化", "optional: FP8, quantized when it is loaded"))
    if tight and capacity is not None and capacity.total is not None:
        share = capacity.weights / (capacity.total * capacity.share)
        current = Text(
            f"16 位权重占可用显存的 {share:.0%}，KV 缓存不足",
            f"weights in 16 bits take {share:.0%} of the usable memory",
        )
    else:
        current = Text("权重为 16 位", "the weights are in 16 bits")
    return propose_fp8(engine, current, Priority.MEDIUM if tight else None)


# --- GPU946: kernels for 4 bits ---


def _marlin(engine: Engine) -> Judgement:
    found = quantized(engine)
    if found is None and _is_actors(engine):
        return cannot_apply(_ACTORS)
    if found is None and not engine.run.model.name:
        return cannot_tell(Text("模型未知", "the model is not known"))
    if found is None and engine.is_open:
        return cannot_tell(Text("并非所有参数都已读到", "not all settings could be read"))
    if found is None:
        return cannot_apply(Text("权重未量化", "the weights are not quantized"))
    if not found.known:
        return cannot_tell(found)
    told = str(found.value).lower()
    form = _float_form(told)
    if form:
        return _marlin_of_floats(engine, found, form)
    if _kind(told) not in ("awq", "gptq"):
        return cannot_apply(Text("非 AWQ、GPTQ 权重", "the weights are in neither AWQ nor GPTQ"))
    if architecture(engine.run) in _OLD:
        return cannot_apply(Text("Marlin 需要 Ampere 及更新", "Marlin needs Ampere or newer"))
    if "marlin" in told or found.name != "quantization" or engine.version >= _UNFORCED:
        return on(found)
    if told not in ("awq", "gptq"):
        return on(found)
    return propose_without(
        engine,
        found,
        f"quantization={told} asks for the older kernels; {told}_marlin is chosen by itself",
        Text(
            f"quantization={told} 强制使用旧算子", f"quantization={told} forces the older kernels"
        ),
        Text(f"去掉该参数，或改为 {told}_marlin", f"drop it, or give {told}_marlin"),
        {"quantization": f"{told}_marlin"},
    )


def _float_form(told: str) -> str:
    """The format of floats narrower than 16 bits that weights are in; "" for integers."""
    if _kind(told) == "fp8":
        return "mxfp8" if "mxfp8" in told else "fp8"
    narrow = re.search(r"mxfp4|nvfp4|fp4", told) if _kind(told) == "other" else None
    return narrow[0] if narrow is not None else ""


def _marlin_of_floats(engine: Engine, found: Setting, form: str) -> Judgement:
    """Marlin widens what the GPU's tensor cores cannot multiply; which those are, it tells."""
    generation = architecture(engine.run)
    if generation in ("Volta", "Pascal"):
        return cannot_apply(Text("Marlin 需要 Turing 及更新", "Marlin needs Turing or newer"))
    if generation == "Blackwell" or (form == "fp8" and generation == "Hopper"):
        return cannot_apply(
            Text(f"该 GPU 原生计算 {form.upper()}", f"the GPU multiplies {form.upper()} itself")
        )
    if generation in _WIDENED.get(form, ()) and engine.version >= _WIDENS:
        return on(found)
    return cannot_tell(
        Text(
            f"{form.upper()} 权重是否用 Marlin 取决于 GPU 与版本",
            f"whether Marlin runs {form.upper()} weights depends on the GPU and the release",
        )
    )


# --- GPU947: several precisions ---


def _several(engine: Engine) -> Judgement:
    found = quantized(engine)
    if found is None and _is_actors(engine):
        return cannot_apply(_ACTORS)
    if found is None and engine.is_open:
        return cannot_tell(Text("并非所有参数都已读到", "not all settings could be read"))
    if found is None:
        return off(
            Text("可选：按层混合精度的检查点", "optional: a checkpoint with a precision a layer")
        )
    if not found.known:
        return cannot_tell(found)
    if _MIXED.search(str(found.value).lower()) or engine.written("quantization_config"):
        return on(found)
    return off(
        Text("可选：按层混合精度的检查点", "optional: a checkpoint with a precision a layer")
    )


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU945",
        "engine-quantization",
        Text("权重量化", "Quantized weights in the engine"),
        Priority.LOW,
        of_engine(vllm=_with_plugins, sglang=_sglang_sizes.quantization),
        why="Decoding reads all weights a step: half the bytes, half the time; what they free is "
        "KV cache.",
        fix="Set quantization fp8 on Ada, Hopper or newer, or serve a quantized checkpoint.",
        ignore="The answers get worse than the task allows.",
        items=(
            *vllm_item("D", "fp8-online", 4, "method", "fp8"),
            *vllm_item("D", "awq", 4, "method", "awq"),
            *vllm_item("D", "gptq", 4, "method", "gptq"),
            *vllm_item("D", "bitsandbytes", 2, "method", "bitsandbytes"),
            *vllm_item("D", "gguf", 2, "method", "gguf"),
            *sglang_item("E", "fp8-online", 5, "quantization", "fp8"),
            *sglang_item("E", "prequantized", 5, "quantization", "checkpoint|awq|modelopt"),
            *sglang_item("E", "awq-gptq-marlin", 4, "quantization", "awq"),
            *sglang_item("E", "bitsandbytes", 2.5, "quantization", "bitsandbytes"),
            *sglang_item("E", "modelopt", 5, "quantization", "modelopt"),
            *sglang_item("E", "torchao", 3, "quantization", "torchao"),
            *sglang_item("E", "moe-wna16", 4, "quantization", "moe-wna16"),
        ),
        impact=Impact(
            throughput=(0, 60),
            memory=(-50, -50),
            note=Text("权重减半，吞吐最高 1.6 倍", "half the weights, up to 1.6 times as fast"),
            source=_FP8,
        ),
        examples=served(
            "--max-model-len 8192", "--max-model-len 8192 --quantization fp8", gpus="h100:1"
        ),
        sources=(_QUANTIZATION, _FP8),
    ),
    Check(
        "GPU946",
        "engine-quantized-kernels",
        Text("Marlin 算子", "Kernels for 4-bit weights"),
        Priority.MEDIUM,
        of_engine(nvidia=True, vllm=_marlin),
        why="Asked for by name, awq and gptq run on kernels that vLLM itself calls slower.",
        fix="Leave quantization out: the checkpoint tells, and Marlin is chosen.",
        items=vllm_item("D", "marlin", 1),
        impact=by_class(Priority.MEDIUM, _MARLIN),
        examples=served(
            "--quantization awq",
            "--quantization awq_marlin",
            model="Qwen/Qwen2.5-7B-Instruct-AWQ",
            pin="0.10.2",
        ),
        sources=(_MARLIN,),
    ),
    Check(
        "GPU947",
        "engine-mixed-quantization",
        Text("混合精度量化", "A precision for each layer"),
        Priority.LOW,
        of_engine(vllm=_several),
        why="Layers that suffer from few bits keep more of them.",
        fix="Serve a checkpoint of llm-compressor or ModelOpt that mixes precisions.",
        items=vllm_item("D", "mixed-quantization", 1),
        impact=Impact(source=_QUANTIZATION),
        difficulty="high",
        sources=(_QUANTIZATION,),
    ),
)
