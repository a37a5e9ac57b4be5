"""GPU953 to GPU956: by which kernels an inference engine computes attention."""

from __future__ import annotations

import re
from typing import Optional

from flake8_gpu_training.checks import _sglang_sizes
from flake8_gpu_training.checks._engine import of_engine, propose, sglang_item, vllm_item
from flake8_gpu_training.checks._engine_examples import served
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    Snippet,
    advise,
    cannot_apply,
    cannot_tell,
    off,
    on,
)
from flake8_gpu_training.checks._scale import architecture, unfamiliar
from flake8_gpu_training.checks._vllm import DOCS, variable
from flake8_gpu_training.checks.base import Check, Impact, Judgement, Priority
from flake8_gpu_training.facts import Origin, Setting
from flake8_gpu_training.frameworks.engines import Engine
from flake8_gpu_training.frameworks.reading import number, truth
from flake8_gpu_training.language import Text
from flake8_gpu_training.models import last_part

_BACKENDS = f"{DOCS}/design/attention_backends.html"
_KV = f"{DOCS}/features/quantization/quantized_kvcache.html"
_CODE = "vLLM 0.10.2, 0.19.1 and 0.33.0, envs.py and config/attention.py"
_VARIABLE_UNTIL = (0, 19)
"""The first release read without VLLM_ATTENTION_BACKEND and VLLM_FLASH_ATTN_VERSION."""
_FLASHLESS = ("Volta", "Turing", "Pascal")
_OLD_KERNELS = re.compile(r"XFORMERS|TORCH_SDPA")
_LATENT = re.compile(
    r"deepseek-(?:coder-)?(?:v2|v3|r1)(?!.*(?:distill|qwen|llama))|kimi-k2|moonlight|deepseek-(?:prover|vl2)"
    r"|glm-4\.7-flash|longcat|mistral-large-3"
)


def backend(engine: Engine) -> Optional[Setting]:
    """The attention backend that somebody asks for."""
    found = engine.written("attention_backend") or engine.entry("attention_config", "backend")
    if found is not None:
        return found
    asked = variable(engine, "VLLM_ATTENTION_BACKEND")
    return asked if asked is not None and engine.version < _VARIABLE_UNTIL else None


def _is_latent(engine: Engine) -> bool:
    return _LATENT.match(last_part(engine.run.model.name or "")) is not None


# --- GPU953: generation of FlashAttention ---


def _flash(engine: Engine) -> Judgement:
    kind = architecture(engine.run)
    if kind in _FLASHLESS:
        return cannot_apply(Text(f"{kind} 不支持 FlashAttention", f"{kind} has no FlashAttention"))
    asked = backend(engine)
    if asked is not None and not asked.known:
        return cannot_tell(asked)
    if asked is not None and "FLASH_ATTN" not in str(asked.value).upper():
        return cannot_apply(Text("使用其他注意力后端", "another backend computes attention"))
    told = engine.entry("attention_config", "flash_attn_version")
    if told is None and engine.version < _VARIABLE_UNTIL:
        told = variable(engine, "VLLM_FLASH_ATTN_VERSION")
    if told is None:
        if engine.is_open:
            return cannot_tell(Text("并非所有参数都已读到", "not all settings could be read"))
        return on(f"{engine.called}: flash_attn_version auto")
    if not told.known:
        return cannot_tell(told)
    version = number(int(told.value) if str(told.value).isdigit() else None)
    if version == 2 and kind == "Hopper":
        return advise(
            engine.run,
            "Hopper has FlashAttention 3, which is chosen by itself",
            Text("指定了 FlashAttention 2", "FlashAttention 2 is asked for"),
            Text("去掉该设置，自动使用 FA3", "drop it: FlashAttention 3 is chosen"),
            snippet=Snippet(f"drop {told.name}", "export VLLM_FLASH_ATTN_VERSION=3", "bash"),
            at=told,
        )
    return on(told)


# --- GPU954: the backend ---


def _backend(engine: Engine) -> Judgement:
    asked = backend(engine)
    if asked is None:
        if engine.is_open:
            return cannot_tell(Text("并非所有参数都已读到", "not all settings could be read"))
        return on(f"{engine.called}: attention_backend auto")
    if not asked.known:
        return cannot_tell(asked)
    kind = architecture(engine.run)
    is_old = _OLD_KERNELS.search(str(asked.value).upper()) is not None
    if not is_old or kind is None or kind in _FLASHLESS:
        return on(asked)
    reason = f"on {kind} the engine itself chooses FlashAttention or FlashInfer"
    current = Text(f"指定了 {asked.value}", f"{asked.value} is asked for")
    action = Text("去掉，由引擎选择", "drop it: the engine chooses")
    if asked.origin is Origin.ENVIRONMENT:
        line = "export VLLM_ATTENTION_BACKEND=FLASH_ATTN"
        snippet = Snippet("drop VLLM_ATTENTION_BACKEND", line, "bash")
        return advise(engine.run, reason, current, action, snippet=snippet, at=asked)
    return propose(engine, reason, current, action, {"attention_backend": "FLASH_ATTN"}, at=asked)


# --- GPU955: latent attention ---


def _latent(engine: Engine) -> Judgement:
    if not _is_latent(engine):
        if engine.run.model.kind == "unknown":
            return cannot_tell(unfamiliar(engine.run))
        return cannot_apply(Text("非 MLA 模型", "the model has no latent attention"))
    disabled = variable(engine, "VLLM_MLA_DISABLE")
    if disabled is not None:
        if not disabled.known:
            return cannot_tell(disabled)
        if truth(int(disabled.value) if str(disabled.value).isdigit() else disabled.value):
            return advise(
                engine.run,
                "without latent attention each token of DeepSeek's models takes many times the "
                "KV cache",
                Text("MLA 被关闭", "latent attention is switched off"),
                Text("去掉 VLLM_MLA_DISABLE", "drop VLLM_MLA_DISABLE"),
                snippet=Snippet("drop VLLM_MLA_DISABLE", "export VLLM_MLA_DISABLE=0", "bash"),
                at=disabled,
            )
    asked = backend(engine)
    if asked is not None:
        return on(asked) if asked.known else cannot_tell(asked)
    return on(f"{engine.called}: MLA")


# --- GPU956: attention in FP8 ---


def _fp8(engine: Engine) -> Judgement:
    kind = architecture(engine.run)
    if kind is not None and kind not in ("Hopper", "Blackwell"):
        return cannot_apply(Text("需要 Hopper 或 Blackwell", "it takes Hopper or Blackwell"))
    setting = engine.option("kv_cache_dtype")
    if not setting.known:
        return cannot_tell(setting)
    if not str(setting.value).lower().startswith("fp8"):
        return off(
            Text("可选：随 FP8 KV 缓存启用", "optional: it comes with an FP8 KV cache"), setting
        )
    if kind is None:
        return cannot_tell(Text("GPU 未知", "the GPU is not known"))
    return on(setting)


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU953",
        "engine-flash-attention",
        Text("FlashAttention 版本", "Generation of FlashAttention"),
        Priority.LOW,
        of_engine(nvidia=True, vllm=_flash, sglang=_sglang_sizes.third_generation),
        why="FlashAttention 3 is made for Hopper, 4 for Blackwell; the engine picks the right one.",
        fix="Leave flash_attn_version out.",
        items=(*vllm_item("F", "flash-version", 1), *sglang_item("F", "fa3-kernel", 1)),
        impact=by_class(Priority.LOW, _BACKENDS),
        examples=served(
            "--max-model-len 8192",
            "--max-model-len 8192",
            start="VLLM_FLASH_ATTN_VERSION=2 ",
            gpus="h100:1",
            pin="0.10.2",
        ),
        sources=(_BACKENDS, _CODE),
    ),
    Check(
        "GPU954",
        "engine-attention-backend",
        Text("注意力后端", "Attention backend of the engine"),
        Priority.MEDIUM,
        of_engine(vllm=_backend, sglang=_sglang_sizes.backend),
        why="Backends for older GPUs read the KV cache with slower kernels.",
        fix="Leave the backend to the engine.",
        items=(
            *vllm_item("F", "attention-backend", 1),
            *sglang_item("F", "mha-backend", 2.5, "backend"),
        ),
        impact=by_class(Priority.MEDIUM, _BACKENDS),
        examples=served(
            "--max-model-len 8192",
            "--max-model-len 8192",
            start="VLLM_ATTENTION_BACKEND=XFORMERS ",
            gpus="a100-80g:1",
            pin="0.10.2",
        ),
        sources=(_BACKENDS, _CODE),
    ),
    Check(
        "GPU955",
        "engine-latent-attention",
        Text("MLA 后端", "Latent attention"),
        Priority.HIGH,
        of_engine(vllm=_latent, sglang=_sglang_sizes.latent_backend),
        why="Latent attention keeps one compressed vector a token and layer for all heads.",
        fix="Drop VLLM_MLA_DISABLE.",
        items=(*vllm_item("F", "mla-backend", 1), *sglang_item("F", "mla-backend", 2.5, "backend")),
        impact=by_class(Priority.HIGH, _BACKENDS),
        examples=served(
            "--tensor-parallel-size 8",
            "--tensor-parallel-size 8",
            start="VLLM_MLA_DISABLE=1 ",
            model="deepseek-ai/DeepSeek-R1",
        ),
        sources=(_BACKENDS, _CODE),
    ),
    Check(
        "GPU956",
        "engine-fp8-attention",
        Text("FP8 注意力", "Attention in FP8"),
        Priority.LOW,
        of_engine(needs=("kv_cache_dtype",), caches=True, nvidia=True, vllm=_fp8),
        why="With an FP8 KV cache FlashAttention 3 also multiplies in FP8.",
        fix="Set kv_cache_dtype fp8 on Hopper or Blackwell, and compare the answers.",
        items=vllm_item("F", "fp8-attention", 1),
        impact=Impact(source=_KV),
        sources=(_KV,),
    ),
)
