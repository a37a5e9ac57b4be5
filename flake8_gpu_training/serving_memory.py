"""What an inference engine holds on one GPU, and how many tokens its KV cache takes.

As vLLM does when it starts: of the memory that it may use (the share that it is given) the
weights, the peak of a forward pass and the driver's own are taken off; the rest is KV cache.
The peak is that of the widest feed-forward block over a full batch, or of the logits that are
sampled from: both were compared with what vLLM's profiling logs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Optional

from flake8_gpu_training._shapes import Shape, shape_named
from flake8_gpu_training.frameworks.engine_of import engine_of
from flake8_gpu_training.frameworks.engines import Engine, Mode, amount
from flake8_gpu_training.hardware import GPUS
from flake8_gpu_training.models import last_part
from flake8_gpu_training.runs.model import Run, once_per_run

GIB = 1024**3
BLOCK = 16
"""Tokens of a block of the cache."""

# Memory that PyTorch reports, as vLLM's logs have it (total_gpu_memory).
_REPORTED: Mapping[str, float] = MappingProxyType(
    {
        "RTX3090": 23.58,
        "RTX4090": 23.64,
        "RTX5090": 31.36,
        "L40S": 44.42,
        "L40": 44.42,
        "A40": 44.42,
        "L4": 22.05,
        "A10": 22.05,
        "A10G": 22.05,
        "T4": 14.58,
        "A100-40G": 39.38,
        "A100-80G": 79.15,
        "H100": 79.1,
        "H200": 139.8,
    }
)
_REPORTED_SHARE = 0.985
"""Of the marketed memory, for the others."""
_DRIVER_GIB, _COLLECTIVE_GIB = 0.35, 0.6
"""Outside PyTorch: on one GPU, and with the buffers of NCCL on several."""

# The longest sequence of a model (max_position_embeddings of its config.json).
_CONTEXTS: tuple[tuple[str, int], ...] = (
    (r"qwen2\.5-\d+b-instruct-1m", 1_010_000),
    (r"qwen3-\d+b-a\d+b-(instruct|thinking)-2507|qwen3-4b-(instruct|thinking)-2507", 262_144),
    (r"qwen3-coder-30b", 262_144),
    (r"qwen3-(0\.6|1\.7|4|8|14|32|30|235)b", 40_960),
    (r"qwen2\.5-(coder-)?(7|14|32|72)b-instruct|qwq-32b|qwen2-(7|72)b-instruct", 32_768),
    (r"deepseek-r1-distill", 131_072),
    (r"deepseek-(v3|r1)(?!.*(?:qwen|llama))", 163_840),
    (r"deepseek-(coder-)?v2-lite", 163_840),
    (r"kimi-k2", 131_072),
    (r"llama-?3\.[123]", 131_072),
    (r"llama-?3-(8|70)b", 8_192),
    (r"llama-?2-", 4_096),
    (r"mistral-7b-instruct-v0\.[23]|mixtral-8x7b", 32_768),
    (r"phi-4(?!-mini)", 16_384),
    (r"glm-4\.5", 131_072),
)
_PUBLISHED = tuple((re.compile(pattern), length) for pattern, length in _CONTEXTS)
# Layers that keep a window, or states, need another account.
_OTHER_LAYERS = re.compile(
    r"(?i)gemma|gpt-oss|phi-3|mistral-7b(-instruct)?-v0\.1|qwen3-next|qwen3\.[5-9]|mamba|jamba"
    r"|minimax|command-r7b|cohere2|llama-?4|kimi-linear|v3\.2|exaone-4"
)
# Bits of a weight in a linear layer, by method and by what names of checkpoints tell.
_FOUR_BITS = re.compile(r"awq|gptq(?!.*int8)|w4a16|int4|4bit|nf4|nvfp4|mxfp4|fp4|bnb")
_EIGHT_BITS = re.compile(r"fp8|int8|w8a8|w8a16|8bit")
_GROUP_BYTES = 0.53
"""Four bits, and the scale and zero of a group of 128."""


@dataclass(frozen=True)
class Capacity:
    """The memory of one GPU of an engine, in GiB, and the cache in tokens.

    ``total`` times ``share`` less ``weights`` and ``overhead`` is ``pool``. ``token_bytes``: of
    one token on one GPU. ``tokens`` is 0 when nothing is left, None where the GPU is not known.
    ``length``: the longest sequence that is served, ``context`` the model's own. ``most``: the
    most that the pool could be, with no overhead at all, on the memory as marketed.
    """

    weights: float
    token_bytes: int
    share: float
    total: Optional[float] = None
    overhead: Optional[float] = None
    pool: Optional[float] = None
    tokens: Optional[int] = None
    most: Optional[float] = None
    length: Optional[int] = None
    context: Optional[int] = None
    gpus: int = 1
    kind: str = ""
    """Of the weights: ``16 bit``, ``FP8``, ``4 bit``."""
    exact: bool = False
    """Whether the type of the weights is that of the checkpoint itself."""
    copies: int = 1

    @property
    def concurrency(self) -> Optional[float]:
        """Sequences of the longest length that fit at once."""
        if not self.tokens or not self.length:
            return None
        return self.tokens / self.length


def context_of(name: str) -> Optional[int]:
    """The longest sequence that a model is made for, or None."""
    short = last_part(name)
    return next((length for pattern, length in _PUBLISHED if pattern.search(short)), None)


def bytes_of_token(
    shape: Shape, tensor_parallel: int = 1, pipeline: int = 1, element: float = 2
) -> int:
    """Bytes of the keys and values of one token on one GPU.

    Latent attention keeps one compressed vector for all heads, on every rank.
    """
    layers = -(-shape.layers // pipeline)
    if shape.latent is not None:
        return round(layers * (shape.latent.key_value + shape.latent.rope) * element)
    heads = max(1, shape.kv_heads // tensor_parallel)
    return round(2 * layers * heads * shape.head_size * element)


def tokens_in(pool_gib: float, token_bytes: int) -> int:
    """Tokens of whole blocks that a pool holds."""
    blocks = int(pool_gib * GIB) // (token_bytes * BLOCK)
    return max(blocks, 0) * BLOCK


def weights_gib(shape: Shape, bytes_per_weight: float, gpus: int = 1) -> float:
    """Weights on one of ``gpus``; embeddings and the head stay in 16 bits."""
    total = shape.parameters()
    wide = shape.vocabulary * shape.hidden * (1 if shape.tied else 2)
    return ((total - wide) * bytes_per_weight + wide * 2) / gpus / GIB


def overhead_gib(shape: Shape, batched_tokens: int, sequences: int, tensor_parallel: int) -> float:
    """The peak of a forward pass over a full batch, and what the driver takes."""
    width = shape.dense_intermediate or shape.intermediate
    if shape.experts:
        width = max(width, shape.experts_used * shape.intermediate)
    block = 3 * width / tensor_parallel + 3 * shape.hidden
    pass_gib = batched_tokens * block * 2 / GIB
    logits_gib = sequences * shape.vocabulary * 10 / GIB  # 16 bits, and float32 twice
    outside = _COLLECTIVE_GIB if tensor_parallel > 1 else _DRIVER_GIB
    return max(pass_gib, logits_gib) + outside


def bytes_per_weight(engine: Engine) -> tuple[float, str]:
    """Bytes of a weight in a linear layer, and what to call its type."""
    method = engine.option("quantization")
    told = str(method.value or "").lower() if method.known else ""
    name = f"{told} {last_part(engine.run.model.name or '')}"
    if _FOUR_BITS.search(name):
        return _GROUP_BYTES, "4 bit"
    if _EIGHT_BITS.search(name) or _comes_in_fp8(engine):
        return 1.0, "FP8" if "int8" not in name and "w8a8" not in name else "INT8"
    return 2.0, "16 bit"


def _comes_in_fp8(engine: Engine) -> bool:
    """DeepSeek-V3 and its kin are published in FP8."""
    short = last_part(engine.run.model.name or "")
    return re.match(r"deepseek-(?:v3|r1)(?!.*(?:distill|qwen|llama))|kimi-k2", short) is not None


@once_per_run
def capacity_of(run: Run) -> Optional[Capacity]:
    """The capacity of the run's engine; None where model or sizes are not known."""
    engine = engine_of(run)
    if engine is None or engine.is_remote:
        return None
    name = run.model.name or ""
    shape = shape_named(last_part(name))
    if shape is None or _OTHER_LAYERS.search(name) or _is_odd(engine):
        return None
    if engine.name == "sglang":
        return _static(engine, shape)
    sizes = [_size(engine, n) for n in ("tensor_parallel_size", "pipeline_parallel_size")]
    tensor, pipeline = sizes
    if tensor is None or pipeline is None:
        return None
    element = _element(engine)
    share = amount(engine.option("gpu_memory_utilization"))
    if element is None or share is None or not 0 < share <= 1:
        return None
    each, kind = bytes_per_weight(engine)
    weights = weights_gib(shape, each, tensor * pipeline)
    token = bytes_of_token(shape, tensor, pipeline, element)
    context = context_of(name)
    length = _length(engine, context)
    gpu = GPUS.get(run.hardware.gpu or "")
    marketed = run.hardware.memory_gib or (gpu.memory_gib if gpu is not None else None)
    found = Capacity(
        weights,
        token,
        share,
        length=length,
        context=context,
        gpus=tensor * pipeline,
        kind=kind,
        exact=kind == "16 bit" and engine.option("quantization").value is None,
        copies=_size(engine, "data_parallel_size") or 1,
    )
    if marketed is None:
        return found
    return _on(engine, shape, found, marketed, tensor)


def _on(engine: Engine, shape: Shape, found: Capacity, marketed: float, tensor: int) -> Capacity:
    """``found`` on GPUs of a known memory."""
    total = _reported(engine.run.hardware.gpu or "", marketed)
    batched = amount(engine.option("max_num_batched_tokens"))
    sequences = amount(engine.option("max_num_seqs"))
    overhead = overhead_gib(shape, int(batched or 8192), int(sequences or 256), tensor)
    pool = max(total * found.share - found.weights - overhead, 0.0)
    return replace(
        found,
        total=total,
        overhead=overhead,
        pool=pool,
        tokens=tokens_in(pool, found.token_bytes),
        most=marketed * found.share - found.weights,
    )


_LARGEST_STATIC = 0.95
"""What SGLang gives weights and cache at most by itself: it works the share out at the start."""


def _static(engine: Engine, shape: Shape) -> Optional[Capacity]:
    """SGLang's: weights and cache share ``mem_fraction_static``, the pass has the rest."""
    tensor, pipeline = _size(engine, "tp_size"), _size(engine, "pp_size")
    groups, element = _attention_groups(engine), _element(engine)
    setting = engine.option("mem_fraction_static")
    if tensor is None or pipeline is None or groups is None or element is None:
        return None
    if not setting.known or tensor % groups:
        return None
    share = amount(setting) or _LARGEST_STATIC
    each, kind = bytes_per_weight(engine)
    weights = weights_gib(shape, each, tensor * pipeline)
    token = bytes_of_token(shape, tensor // groups, pipeline, element)
    length, context = (
        amount(engine.option("context_length")),
        context_of(engine.run.model.name or ""),
    )
    found = Capacity(
        weights,
        token,
        share,
        length=int(length) if length is not None else context,
        context=context,
        gpus=tensor * pipeline,
        kind=kind,
        exact=kind == "16 bit" and engine.option("quantization").value is None,
        copies=1 if groups > 1 else _size(engine, "dp_size") or 1,
    )
    gpu = GPUS.get(engine.run.hardware.gpu or "")
    marketed = engine.run.hardware.memory_gib or (gpu.memory_gib if gpu is not None else None)
    if marketed is None:
        return found
    total = _reported(engine.run.hardware.gpu or "", marketed)
    pool = max(total * share - weights, 0.0) if setting.explicit else None
    return replace(
        found,
        total=total,
        pool=pool,
        tokens=None if pool is None else tokens_in(pool, token),
        most=marketed * share - weights,
    )


def _attention_groups(engine: Engine) -> Optional[int]:
    """Groups of ranks between which requests are split (DP attention), or None."""
    newer = _size(engine, "attn_dp_size")
    if newer is None or newer > 1:
        return newer
    asked = engine.option("enable_dp_attention")
    if not asked.known:
        return None
    return _size(engine, "dp_size") if asked.value is True else 1


def _reported(gpu: str, marketed: float) -> float:
    kind = next((k for k in (gpu, gpu.rpartition("-")[0]) if k in _REPORTED), "")
    return _REPORTED.get(kind, marketed * _REPORTED_SHARE)


_ODD = (
    *("cpu_offload_gb", "kv_cache_memory_bytes", "num_gpu_blocks_override"),
    *("max_total_tokens", "enable_hisparse", "enable_double_sparsity"),
)


def _is_odd(engine: Engine) -> bool:
    """Whether something else takes, or spares, memory that is not accounted for."""
    for name in _ODD:
        found = engine.written(name)
        if found is not None and found.value not in (0, None):
            return True
    copies = _size(engine, "dp_size" if engine.name == "sglang" else "data_parallel_size")
    if engine.run.model.is_moe and copies != 1:
        return True  # experts may be spread over the copies
    return engine.mode not in (Mode.SERVE, Mode.OFFLINE, Mode.INTEGRATED, Mode.RLHF_SERVER)


def _size(engine: Engine, name: str) -> Optional[int]:
    if engine.parameter(name) is None and engine.written(name) is None:
        return 1
    value = engine.option(name).value
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _element(engine: Engine) -> Optional[float]:
    """Bytes of a number in the cache."""
    setting = engine.option("kv_cache_dtype")
    if not setting.known:
        return None
    kind = str(setting.value).lower()
    if kind.startswith("fp8") and "ds_mla" not in kind:
        return 1
    if kind not in ("auto", "none", "bfloat16", "float16"):
        return None
    dtype = engine.option("dtype")
    return 4 if dtype.value in ("float32", "float") else 2


def _length(engine: Engine, context: Optional[int]) -> Optional[int]:
    setting = engine.option("max_model_len")
    if not setting.known or setting.value in (-1, "auto"):
        return None
    if setting.value is None:
        return context
    value = amount(setting)
    return int(value) if value is not None else None
