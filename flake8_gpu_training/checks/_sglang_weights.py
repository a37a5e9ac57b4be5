"""In which format SGLang holds a model's weights, by its options and by the model's name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional

from flake8_gpu_training.checks._engine import is_set
from flake8_gpu_training.checks._sglang import name_of
from flake8_gpu_training.facts import Origin, Setting
from flake8_gpu_training.frameworks.engines import Engine


@dataclass(frozen=True)
class Weights:
    """``kind``: ``fp8`` (made so while loading), ``fp8-checkpoint``, ``awq`` … or ``full``."""

    kind: str
    setting: Setting


_ASKED = {
    "fp8": "fp8",
    "mxfp8": "fp8",
    "w8a8_fp8": "fp8-checkpoint",
    "fbgemm_fp8": "fp8-checkpoint",
    "w4afp8": "checkpoint",
    "w8a8_int8": "checkpoint",
    "compressed-tensors": "checkpoint",
    "compressed_tensors": "checkpoint",
    "mxfp4": "checkpoint",
    "qoq": "checkpoint",
    "gguf": "checkpoint",
    "auto-round": "checkpoint",
    "awq": "awq",
    "awq_marlin": "awq",
    "gptq": "awq",
    "gptq_marlin": "awq",
    "marlin": "awq",
    "bitsandbytes": "bitsandbytes",
    "modelopt": "modelopt",
    "modelopt_fp8": "modelopt-fp8",
    "modelopt_fp4": "modelopt",
    "petit_nvfp4": "modelopt",
    "moe_wna16": "moe-wna16",
}
# What hubs call such checkpoints; DeepSeek's are in FP8 as published, Kimi's in FP8 or 4 bits.
_NAMED = (
    (re.compile(r"(?i)(?:^|[-_/])(?:awq|gptq)|marlin|autoround"), "awq"),
    (re.compile(r"(?i)bnb|bitsandbytes"), "bitsandbytes"),
    (re.compile(r"(?i)^nvidia/.*fp8"), "modelopt-fp8"),
    (re.compile(r"(?i)nvfp4|^nvidia/.*fp4"), "modelopt"),
    (re.compile(r"(?i)bf16|bfloat16"), "full"),
    (re.compile(r"(?i)w\da\d+|int[48]|mxfp4|gguf|gpt-oss|\b[48]bit\b"), "checkpoint"),
    (re.compile(r"(?i)fp8"), "fp8-checkpoint"),
    (
        re.compile(
            r"(?i)deepseek[-_](?:v3|r1(?!.*distill)|v4|prover-v2-671b|math-v2)|kimi-k2-(?!thinking)"
            r"|minimax-m2|ring-2\.[5-9]-1t|ling-2\.6-1t|ministral-3-|mistral-medium-3\.5"
        ),
        "fp8-checkpoint",
    ),
    (re.compile(r"(?i)kimi-k2(?:-thinking|\.[5-9])|kimi-k3"), "checkpoint"),
)
_BLOCKS = re.compile(
    r"(?i)deepseek[-_](?:v3|r1(?!.*distill)|prover-v2-671b|math-v2)|kimi-k2-(?!thinking)|qwen3.*-fp8$"
    r"|glm-[45].*-fp8$|minimax-m2"
)


_UNBLOCKED = re.compile(r"(?i)mistral|mixtral|llama|dynamic|(?:ring|ling)-|mxfp8|gpt-oss")
"""FP8 scaled by tensors, by channels or by groups of 32."""


def weights(engine: Engine) -> Optional[Weights]:
    """The format of the weights; None where it is not known."""
    method = engine.option("quantization")
    if not method.known:
        return None
    if is_set(method):
        return _asked(engine, method)
    older = engine.written("torchao_config")
    if older is not None and older.known and is_set(older):
        return Weights("torchao", older)
    form = engine.written("load_format")
    if form is not None and form.value in ("bitsandbytes", "gguf"):
        kind = "bitsandbytes" if form.value == "bitsandbytes" else "checkpoint"
        return Weights(kind, form)
    name = name_of(engine)
    for pattern, kind in _NAMED:
        if pattern.search(name):
            return Weights(kind, _of_name(engine, name))
    if engine.run.model.kind == "unknown":
        return None
    return Weights("full", method)


def _asked(engine: Engine, method: Setting) -> Weights:
    kind = _ASKED.get(str(method.value).lower(), "checkpoint")
    if kind == "fp8" and any(p.search(name_of(engine)) for p, k in _NAMED if "fp8" in k):
        kind = "fp8-checkpoint"
    return Weights(kind, method)


def _of_name(engine: Engine, name: str) -> Setting:
    location = engine.run.model.location
    return Setting("model_path", name, location, Origin.DERIVED, name)


def is_in_blocks(engine: Engine) -> Optional[bool]:
    """Whether the weights are FP8 scaled by block; None where that is not known."""
    found = weights(engine)
    if found is None:
        return None
    if found.kind != "fp8-checkpoint" or _UNBLOCKED.search(name_of(engine)):
        return False
    return True if _BLOCKS.search(name_of(engine)) else None
