"""Defaults that vLLM works out when it starts, as its releases do (engine/arg_utils.py)."""

from __future__ import annotations

import re
from typing import Any, Optional

from flake8_gpu_training.facts import Origin, Setting, Unknown, known
from flake8_gpu_training.frameworks.engines import Engine, Mode
from flake8_gpu_training.frameworks.reading import truth
from flake8_gpu_training.hardware import GPUS, architecture_named
from flake8_gpu_training.models import last_part

_V1_DEFAULT = (0, 8)
"""The first release that starts the V1 engine unless told otherwise."""
V1_ONLY = (0, 11)
"""The first release without another engine."""
HYBRID = re.compile(
    r"(?i)mamba|jamba|zamba|bamba|qwen3-next|qwen3\.[56]|falcon-h1|nemotron-(?:h|nano|3)|granite-4"
    r"|\blfm2|minimax-(?:text|m1|01)|plamo-?2|kimi-linear|rwkv"
)
"""Models with layers of states beside attention, or without attention."""
HYBRID_CACHED = (0, 33)
_HYBRID_UNCACHED = (0, 19, 1)
"""Newest release read that caches no prefixes of them by default; the next one read does."""
_V0_CHUNKED, V0_TOKENS, V0_SEQUENCES = 32_768, 2048, 256
"""The longest sequence that V0 prefills whole by default, the least tokens of its steps, and the
sequences of one (EngineArgs._set_default_args_v0, SchedulerConfig)."""
_LARGE_GIB, _LARGEST_GIB = 70, 160
A100_SMALL, LARGEST_SINCE = (0, 9), (0, 33)
"""The first releases that keep the steps of an A100 small, and, of those that were read, that
have larger ones from 160 GiB on."""


BEFORE_AMPERE = ("Volta", "Turing", "Pascal")
_V1_EVERYWHERE = (0, 10)
"""The first minor release read that starts V1 before compute capability 8.0 too."""


def falls_back(engine: Engine) -> bool:
    """Whether the release takes V0 on the run's GPU by itself (_is_v1_supported_oracle)."""
    hardware = engine.run.hardware
    kind = GPUS.get(hardware.gpu or "")
    generation = kind.architecture if kind is not None else hardware.architecture
    generation = generation or architecture_named(hardware.gpu or "")
    return generation in BEFORE_AMPERE and _V1_DEFAULT <= engine.version < _V1_EVERYWHERE


def is_v1(engine: Engine) -> Optional[bool]:
    """Whether the V1 engine runs; None when the environment leaves it open."""
    if engine.version >= V1_ONLY:
        return True
    if falls_back(engine):
        return False
    asked = engine.run.environment.get("VLLM_USE_V1")
    if asked is None:
        return engine.version >= _V1_DEFAULT
    return truth(_number(asked.value)) if asked.known else None


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isdigit() else value


_POOLS = re.compile(
    r"(?i)reward|embed|rerank|\bgte\b|\bbge\b|e5-|classif|colbert|colqwen|colpali|-prm|vlm2vec"
)
_POOLING = ("pooling", "embed", "embedding", "classify", "score", "reward", "token_embed")
# Models of sentences built on BERT and its kin, whose attention goes both ways.
_BOTH_WAYS = re.compile(
    r"(?i)bert|\bbge-(?!.*gemma|en-icl)|\bgte-(?!qwen)|(?<!mistral-7b-)\be5-(?!mistral)|minilm|mpnet"
    r"|nomic-embed|arctic-embed|jina-(?:embeddings-v[23]|reranker-v2)"
)
# Decoders, whose last token gives the vector unless the model says otherwise.
_LAST_TOKEN = re.compile(r"(?i)qwen|llama|mistral|internlm|vlm2vec|zerank|reranker-m0|skywork")
_BY_STEPS = re.compile(r"(?i)-prm|process-reward")
_TWO_STACKS = re.compile(
    r"(?i)whisper|\bbart|\bm?t5\b|flan-t5|mllama|llama-3\.2-\d+b-vision|florence"
)
"""Encoders with a decoder behind them."""
_POOLED_SINCE = (0, 19)
"""The first release read whose models say themselves whether they prefill in chunks."""


def pools(engine: Engine) -> bool:
    """Whether the model gives vectors or scores, and decodes nothing."""
    for name in ("runner", "task", "convert"):
        setting = engine.written(name)
        if setting is not None and str(setting.value) in _POOLING:
            return True
    if engine.written("io_processor_plugin", "pooler_config", "override_pooler_config"):
        return True
    role = engine.entry("ec_transfer_config", "ec_role")
    if role is not None and role.value == "ec_producer":
        return True
    model = engine.run.model
    return model.kind in ("embedding", "encoder") or bool(_POOLS.search(model.name or ""))


def has_two_stacks(engine: Engine) -> bool:
    """Whether an encoder reads the whole input before a decoder writes."""
    return _TWO_STACKS.search(engine.run.model.name or "") is not None


def is_cacheless(engine: Engine) -> bool:
    """Whether attention goes both ways, so that no keys and values are kept."""
    name = engine.run.model.name or ""
    return pools(engine) and _BOTH_WAYS.search(last_part(name)) is not None


def _pooled(engine: Engine) -> Optional[bool]:
    """Whether a model that pools prefills in chunks and caches prefixes; None where not known."""
    name = last_part(engine.run.model.name or "")
    if _BOTH_WAYS.search(name) or _BY_STEPS.search(name):
        return False
    if engine.version < _POOLED_SINCE or engine.written("pooler_config", "override_pooler_config"):
        return None
    return True if _LAST_TOKEN.search(name) else None


def computed(engine: Engine, name: str) -> Optional[Setting]:
    """A default that stands in no table; None for the others."""
    if name in ("enable_chunked_prefill", "enable_prefix_caching"):
        return _cached(engine, name)
    if name in ("max_num_seqs", "max_num_batched_tokens"):
        return _batched(engine, name)
    return None


def _told(engine: Engine, name: str, value: Any) -> Setting:
    return Setting(name, value, None, Origin.DEFAULT, f"{name}={value} ({engine.called})")


def _open(name: str, why: str) -> Setting:
    return Setting(name, Unknown(why))


def _cached(engine: Engine, name: str) -> Setting:
    """Chunked prefill and prefix caching: on for models that generate, in the V1 engine."""
    v1 = is_v1(engine)
    if v1 is None:
        return _open(name, "VLLM_USE_V1 is not known")
    if not v1:
        if name == "enable_prefix_caching":
            return _told(engine, name, False)
        length = engine.option("max_model_len").value
        if known(length) and isinstance(length, int) and length <= _V0_CHUNKED:
            return _told(engine, name, False)
        return _open(name, "it depends on the length of the model's context")
    if pools(engine) and engine.entry("ec_transfer_config", "ec_role") is None:
        pooled = _pooled(engine)
        if pooled is None:
            return _open(name, "it depends on how the model pools")
        return _told(engine, name, pooled)
    if has_two_stacks(engine):
        return _told(engine, name, False)
    if HYBRID.search(engine.run.model.name or "") and name == "enable_prefix_caching":
        if engine.version <= _HYBRID_UNCACHED:
            return _told(engine, name, False)
        if engine.version < HYBRID_CACHED:
            return _open(name, "it depends on the release")
    return _told(engine, name, True)


def _of_v0(engine: Engine, name: str) -> Setting:
    """Tokens of a step in V0: the longest sequence, where prompts are prefilled whole."""
    chunked, length = engine.option("enable_chunked_prefill"), engine.option("max_model_len").value
    if chunked.value is False and isinstance(length, int) and engine.run.model.kind == "LLM":
        return _told(engine, name, max(length, V0_TOKENS))
    return _open(name, "V0 engine")


def _batched(engine: Engine, name: str) -> Optional[Setting]:
    """Sizes of a batch, by the memory of the GPU and by who asks; V0 has sizes of its own."""
    v1 = is_v1(engine)
    if engine.version < _V1_DEFAULT and v1:
        return _told(engine, name, 1024) if name == "max_num_seqs" else _open(name, "V1 engine")
    if engine.version < _V1_DEFAULT or v1 is False:
        return _told(engine, name, V0_SEQUENCES) if name == "max_num_seqs" else _of_v0(engine, name)
    if v1 is None:
        return _open(name, "VLLM_USE_V1 is not known")
    gpu = GPUS.get(engine.run.hardware.gpu or "")
    memory = engine.run.hardware.memory_gib or (gpu.memory_gib if gpu is not None else None)
    if (
        memory is None
        or engine.mode not in (Mode.SERVE, Mode.OFFLINE)
        or "LLM"
        not in (
            *engine.groups[:1],
            *(("LLM",) if engine.mode is Mode.SERVE else ()),
        )
    ):
        return _open(name, "it depends on the GPU's memory")
    serves = engine.mode is Mode.SERVE
    is_a100 = gpu is not None and gpu.name.startswith("A100") and engine.version >= A100_SMALL
    is_small = memory < _LARGE_GIB or is_a100
    if is_small:
        value = {True: (256, 2048), False: (256, 8192)}[serves]
    elif memory >= _LARGEST_GIB and engine.version >= LARGEST_SINCE:
        value = (1024, 16384)
    else:
        value = {True: (1024, 8192), False: (1024, 16384)}[serves]
    return _told(engine, name, value[0] if name == "max_num_seqs" else value[1])
