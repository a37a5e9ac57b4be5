"""GPU935 to GPU939: how an inference engine divides the memory of the GPU."""

from __future__ import annotations

from dataclasses import replace

from flake8_gpu_training.checks import _sglang_memory
from flake8_gpu_training.checks._engine import (
    is_foreign,
    is_lacking,
    is_set,
    lacks,
    not_handed,
    of_engine,
    propose,
    sglang_item,
    vllm_item,
)
from flake8_gpu_training.checks._engine_examples import served
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import cannot_apply, cannot_tell, off, on
from flake8_gpu_training.checks._scale import gpu_text, has_fp8
from flake8_gpu_training.checks._vllm import CONSERVING, DOCS, OPTIMIZATION
from flake8_gpu_training.checks.base import Check, Impact, Judgement, Priority, Status
from flake8_gpu_training.facts import Setting
from flake8_gpu_training.frameworks.engines import Engine, Mode, amount
from flake8_gpu_training.frameworks.vllm_defaults import is_v1
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import RunKind
from flake8_gpu_training.serving_memory import capacity_of

_KV = f"{DOCS}/features/quantization/quantized_kvcache.html"
_OFFLOADING = f"{DOCS}/features/kv_offloading_usage.html"
_SHARE, _LENT = 0.8, 0.7
"""A server's share that leaves much unused, and a colocated engine's that leaves little."""
_FEW = 8
"""Sequences of full length that fit at once, below which the cache is short."""


# --- GPU935: the share of the memory ---


def _share(engine: Engine) -> Judgement:
    fixed = engine.written("kv_cache_memory_bytes")
    if fixed is not None and is_set(fixed):
        return on(fixed)
    setting = engine.option("gpu_memory_utilization")
    share = amount(setting) if setting.known else None
    if share is None:
        return cannot_tell(setting)
    if engine.mode is Mode.RLHF_COLOCATE:
        return _lent(engine, setting, share)
    if share >= _SHARE or engine.run.kind is not RunKind.SERVE:
        return on(setting)
    return propose(
        engine,
        f"{share:.0%} of the memory is used: where the engine has the GPU to itself, the rest "
        "could hold KV cache",
        Text(f"仅使用 {share:.0%} 的显存", f"{share:.0%} of the memory is used"),
        Text(
            "独占 GPU 时设为 0.9",
            "0.9 where the engine has the GPU to itself",
        ),
        {"gpu_memory_utilization": 0.9},
        at=setting,
        share=0.5,
    )


def _lent(engine: Engine, setting: Setting, share: float) -> Judgement:
    sleeps = engine.option("enable_sleep_mode")
    if share <= _LENT or engine.host is None or (sleeps.known and is_set(sleeps)):
        return on(setting)
    if not sleeps.known:
        return cannot_tell(sleeps)
    return propose(
        engine,
        f"the engine keeps {share:.0%} of the GPUs on which the model trains",
        Text(
            f"同卡训练，引擎占用 {share:.0%} 显存",
            f"it keeps {share:.0%} of the GPUs it shares",
        ),
        Text("降到 0.3～0.5，或启用休眠", "0.3 to 0.5, or let the engine sleep"),
        {"gpu_memory_utilization": 0.4},
        at=setting,
        priority=Priority.MEDIUM,
        share=0.5,
    )


# --- GPU936: the longest sequence ---


def _length(engine: Engine) -> Judgement:
    setting = engine.option("max_model_len")
    if not setting.known:
        return cannot_tell(setting)
    if setting.value in (-1, "auto"):
        return on(setting)
    if setting.value is not None:
        return on(setting)
    found = capacity_of(engine.run)
    if found is None or not found.tokens or found.context is None:
        return off(
            Text(
                "可选：按实际需要限制长度（默认为模型的最大长度）",
                "optional: the length that is needed (the model's own by default)",
            )
        )
    if found.tokens >= 2 * found.context or engine.mode not in (Mode.SERVE, Mode.OFFLINE):
        return off(
            Text(
                f"可选：KV 缓存可容纳 {found.tokens / found.context:.1f} 条最长序列",
                f"optional: the cache holds {found.tokens / found.context:.1f} sequences of "
                "the model's full length",
            )
        )
    wanted = _rounded(found.tokens // 4)
    return propose(
        engine,
        f"the KV cache holds {found.tokens} tokens, less than two sequences of the model's "
        f"{found.context}",
        Text(
            f"未限制长度：默认 {found.context}，KV 缓存约 {found.tokens} token",
            f"no limit: {found.context} by default, and about {found.tokens} tokens of KV cache",
        ),
        Text(f"按需要设置，例如 {wanted}", f"what is needed, such as {wanted}"),
        {"max_model_len": wanted},
    )


def _rounded(tokens: int) -> int:
    """The power of two at or below ``tokens``."""
    return 1 << max(tokens.bit_length() - 1, 10)


# --- GPU937: the type of the KV cache ---


def _cache_type(engine: Engine) -> Judgement:
    setting = engine.option("kv_cache_dtype")
    if not setting.known:
        return cannot_tell(setting)
    kind = str(setting.value).lower()
    if kind not in ("auto", "none", "bfloat16", "float16", "fp16", "bf16"):
        return on(setting)
    supported = has_fp8(engine.run)
    if supported is False:
        return cannot_apply(
            Text(f"{gpu_text(engine.run)} 没有 FP8 计算单元", f"{gpu_text(engine.run)} has no FP8")
        )
    if is_foreign(engine.run):
        return off(
            Text(
                "可选：显存不足且硬件支持时用 FP8 KV 缓存",
                "optional: FP8 where the cache is short and the hardware has it",
            )
        )
    found = capacity_of(engine.run)
    if supported is None or found is None or not found.tokens or not found.length:
        return off(
            Text(
                "可选：显存不足时用 FP8 KV 缓存（Ada、Hopper 及更新）",
                "optional: FP8 where the cache is short (Ada, Hopper and newer)",
            )
        )
    held = found.tokens / found.length
    if held >= _FEW or engine.mode not in (Mode.SERVE, Mode.OFFLINE):
        return off(
            Text(
                f"可选：KV 缓存已可容纳 {held:.0f} 条最长序列",
                f"optional: the cache holds {held:.0f} sequences of full length",
            )
        )
    return propose(
        engine,
        f"the KV cache holds {held:.1f} sequences of {found.length} tokens; FP8 halves a token",
        Text(
            f"16 位 KV 缓存只能容纳 {held:.1f} 条 {found.length} token 的序列",
            f"in 16 bits the cache holds {held:.1f} sequences of {found.length} tokens",
        ),
        Text("KV 缓存改用 FP8", "keep the KV cache in FP8"),
        {"kv_cache_dtype": "fp8"},
    )


# --- GPU938: the cache beyond the GPU ---

_SWAPLESS = (
    ("swap", Text("V1 引擎抢占时重算，没有交换空间", "V1 computes again: it swaps nothing")),
)
_OFFLOADERS = ("offloading", "lmcache", "mooncakestore", "flexkv", "hf3fs", "sharedstorage")


def _offloaded(engine: Engine) -> Judgement:
    judgement = _beyond(engine)
    if not engine.hands_on("kv_offloading_size", "kv_transfer_config"):
        judgement = not_handed(engine, judgement, "kv_offloading_size")
    if is_v1(engine) is not True:
        return judgement
    if judgement.status is Status.NOT_APPLICABLE:
        said = judgement.current
        return replace(off(said), excluded=(*_SWAPLESS, ("offload", said)))
    return replace(judgement, excluded=_SWAPLESS)


def _beyond(engine: Engine) -> Judgement:
    size = engine.written("kv_offloading_size")
    if size is not None:
        return on(size, "offload") if is_set(size) or not size.known else off(_OPTIONAL, size)
    connector = engine.entry("kv_transfer_config", "kv_connector")
    if connector is not None and str(connector.value).lower().startswith(_OFFLOADERS):
        return on(connector, "offload")
    swap = engine.written("swap_space")
    v1 = is_v1(engine)
    if v1 is None:
        return cannot_tell(Text("VLLM_USE_V1 未知", "VLLM_USE_V1 is not known"))
    if not v1:
        swap = swap or engine.option("swap_space")
        if not swap.known:
            return cannot_tell(swap)
        return on(swap, "swap") if is_set(swap) else off(_OPTIONAL, swap)
    if engine.is_open:
        return cannot_tell(Text("并非所有参数都已读到", "not all settings could be read"))
    if is_lacking(engine, "kv_offloading_size"):
        return lacks(engine)
    return off(_OPTIONAL)


_OPTIONAL = Text(
    "可选：前缀很长且重复时把 KV 缓存卸载到内存",
    "optional: host memory behind the cache, where long prefixes return",
)


# --- GPU939: blocks of the cache ---


def _block(engine: Engine) -> Judgement:
    setting = engine.option("block_size")
    if setting.explicit:
        return cannot_tell(setting) if not setting.known else on(setting)
    if engine.is_open:
        return cannot_tell(setting)
    if setting.known and setting.value is not None:
        return on(setting)
    return on(f"{engine.called}: block_size auto")


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU935",
        "engine-memory-share",
        Text("引擎显存占比", "The engine's share of the memory"),
        Priority.LOW,
        of_engine(vllm=_share, sglang=_sglang_memory.static_share),
        why="What the engine does not claim cannot hold KV cache, which bounds the batch; what it "
        "claims beside a training process, that one lacks.",
        fix="Set gpu_memory_utilization to 0.9 on GPUs of its own, 0.3 to 0.5 beside training.",
        ignore="Other processes need the rest of the GPU.",
        items=(
            *vllm_item("B", "gpu-memory-utilization", 1.5),
            *sglang_item("B", "mem-fraction-static", 1),
        ),
        impact=by_class(Priority.LOW, OPTIMIZATION),
        examples=served("--gpu-memory-utilization 0.5", "--gpu-memory-utilization 0.9"),
        sources=(OPTIMIZATION, CONSERVING),
    ),
    Check(
        "GPU936",
        "engine-length",
        Text("最大序列长度", "Longest sequence of the engine"),
        Priority.LOW,
        of_engine(vllm=_length, sglang=_sglang_memory.context),
        why="By default a model's whole context must fit: a few long requests take all the cache.",
        fix="Set max_model_len to the longest prompt and answer that are served.",
        items=(*vllm_item("B", "max-model-len", 1.5), *sglang_item("B", "context-length", 1)),
        impact=by_class(Priority.LOW, CONSERVING),
        examples=served(
            "--gpu-memory-utilization 0.9",
            "--max-model-len 8192",
            model="Qwen/Qwen2.5-14B-Instruct-1M",
            gpus="a100-80g:1",
        ),
        sources=(CONSERVING,),
    ),
    Check(
        "GPU937",
        "engine-cache-type",
        Text("FP8 KV 缓存", "FP8 KV cache"),
        Priority.LOW,
        of_engine(
            needs=("kv_cache_dtype",),
            caches=True,
            vllm=_cache_type,
            sglang=_sglang_memory.cache_type,
        ),
        why="The KV cache bounds how many sequences are decoded at once; in FP8 it holds twice as "
        "many tokens.",
        fix="Set kv_cache_dtype fp8 on Ada, Hopper or newer, and compare the answers.",
        ignore="The answers get worse.",
        items=(*vllm_item("B", "kv-cache-dtype", 1.5), *sglang_item("B", "kv-cache-dtype", 1)),
        impact=Impact(
            throughput=(0, 30),
            memory=(-50, -50),
            note=Text("每个 token 的 KV 缓存减半", "the cache of a token is halved"),
            source=_KV,
        ),
        examples=served(
            "--max-model-len 32768",
            "--max-model-len 32768 --kv-cache-dtype fp8",
            model="Qwen/Qwen3-14B",
            gpus="l40s:1",
        ),
        sources=(_KV,),
    ),
    Check(
        "GPU938",
        "engine-cache-offload",
        Text("KV 缓存卸载到内存", "KV cache in host memory"),
        Priority.LOW,
        of_engine(caches=True, vllm=_offloaded, sglang=_sglang_memory.hierarchical),
        why="A prefix that was evicted is computed again; read from host memory it costs a copy.",
        fix="Set kv_offloading_size (vLLM 0.11.1 and newer), or a connector such as LMCache.",
        items=(
            *vllm_item("B", "swap-space", 1, "host", "swap"),
            *vllm_item("B", "kv-offload", 1, "host", "offload"),
            *sglang_item("B", "hicache", 0.5),
        ),
        impact=Impact(source=_OFFLOADING),
        difficulty="medium",
        sources=(_OFFLOADING, OPTIMIZATION),
    ),
    Check(
        "GPU939",
        "engine-block-size",
        Text("KV 块大小", "Block size of the KV cache"),
        Priority.LOW,
        of_engine(caches=True, vllm=_block, sglang=_sglang_memory.pages),
        why="Blocks are the unit in which the cache is given out and prefixes are shared.",
        fix="Leave block_size to the attention backend.",
        items=(*vllm_item("B", "block-size", 0.5), *sglang_item("C", "page-size", 0.5)),
        impact=Impact(source=OPTIMIZATION),
        sources=("vLLM 0.33 config/cache.py",),
    ),
)
