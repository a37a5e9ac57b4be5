"""GPU967 to GPU971: which prefixes SGLang keeps, and what its memory holds."""

from __future__ import annotations

from flake8_gpu_training.checks._engine import (
    is_lacking,
    is_set,
    lacks,
    of_engine,
    propose_without,
    sglang_item,
)
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import Snippet, advise, cannot_apply, cannot_tell, off, on
from flake8_gpu_training.checks._sglang import (
    BREAKABLE,
    DOCS,
    SOURCE,
    TUNING,
    chosen_backend,
    defaulted,
    examples,
    is_latent,
    is_on,
    is_sparse,
    number_of,
    serves,
    switch,
)
from flake8_gpu_training.checks.base import Check, Edit, Impact, Judgement, Priority
from flake8_gpu_training.facts import Origin, Setting
from flake8_gpu_training.frameworks.engines import Engine
from flake8_gpu_training.language import Text

_EVICTION = f"{DOCS}/radix_eviction_policy"
_NO_CACHE = Text("未使用前缀缓存", "no prefixes are kept")
_CHUNKED = ("flashinfer", "fa3", "fa4", "flashmla", "cutedsl_mla", "trtllm_mla")
"""Backends that read cached prefixes of latent attention in chunks (arg_groups/choices.py)."""


def keeps_prefixes(engine: Engine) -> bool:
    """Whether the radix cache is on, as far as it is known."""
    mode = engine.option("disaggregation_mode")
    if mode.known and mode.value == "decode":
        return is_on(engine, "disaggregation_decode_enable_radix_cache")
    return not is_on(engine, "disable_radix_cache")


# --- GPU967: which prefixes go first -----------------------------------------------------------


def _eviction(engine: Engine) -> Judgement:
    if not keeps_prefixes(engine):
        return cannot_apply(_NO_CACHE)
    if engine.parameter("radix_eviction_policy") is None:
        return defaulted(engine, "LRU")
    setting = engine.option("radix_eviction_policy")
    return on(setting) if setting.known else cannot_tell(setting)


# --- GPU968: requests with a common prefix together --------------------------------------------


def _policy(engine: Engine) -> Judgement:
    if not keeps_prefixes(engine):
        return cannot_apply(_NO_CACHE)
    setting = engine.option("schedule_policy")
    if not setting.known:
        return cannot_tell(setting)
    if setting.value in ("lpm", "dfs-weight"):
        return on(setting)
    return off(
        Text(
            "可选：请求共享长前缀时用 lpm（排队很长时调度开销变大）",
            "optional: lpm where requests share long prefixes; long queues take longer to sort",
        ),
        setting,
    )


# --- GPU969: cached prefixes of latent attention -----------------------------------------------


def _chunked(engine: Engine) -> Judgement:
    if is_lacking(engine, "disable_chunked_prefix_cache"):
        return lacks(engine)
    latent = is_latent(engine)
    if latent is False:
        return cannot_apply(Text("仅用于 MLA 模型", "for latent attention (MLA) only"))
    if not keeps_prefixes(engine):
        return cannot_apply(_NO_CACHE)
    backend = chosen_backend(engine)
    if backend is not None and backend not in _CHUNKED:
        return cannot_apply(
            Text(f"注意力后端 {backend} 不支持", f"the backend {backend} does not read it so")
        )
    if latent is None:
        return cannot_tell(Text("模型未知", "the model is not known"))
    if is_sparse(engine) and engine.version >= BREAKABLE and backend is None:
        return cannot_apply(Text("DSA 后端不支持", "the backend of DSA does not read it so"))
    setting = engine.option("disable_chunked_prefix_cache")
    if not setting.known:
        return cannot_tell(setting)
    if not is_set(setting):
        return defaulted(engine, "disable_chunked_prefix_cache=False")
    return propose_without(
        engine,
        setting,
        "prefill with a cached prefix attends in the latent space, which takes more products",
        Text("MLA 的分块前缀缓存被关闭", "cached prefixes of MLA are not read in chunks"),
        Text("去掉该开关（默认启用）", "drop the switch: it is the default"),
        {"disable_chunked_prefix_cache": False},
    )


# --- GPU970, GPU971: sizes of the pool, and weights in host memory -----------------------------


_REQUESTS = "max_running_requests"
_FEW = 2
"""Requests of full length that a pool must hold, where more may run at once."""


def _pool(engine: Engine) -> Judgement:
    setting = engine.option("max_total_tokens")
    if not setting.known:
        return cannot_tell(setting)
    pool = number_of(engine, "max_total_tokens")
    length, requests = number_of(engine, "context_length"), number_of(engine, _REQUESTS)
    is_flag = setting.origin is Origin.FLAG
    if pool and length and requests and serves(engine) and pool < _FEW * length < requests * length:
        return advise(
            engine.run,
            f"the pool is cut to {pool:.0f} tokens, room for {pool / length:.1f} requests of "
            f"{length:.0f}, though {requests:g} may run",
            Text(
                f"KV 池限制为 {pool:.0f} token，只容 {pool / length:.1f} 个 {length:.0f} token "
                f"的请求（并发上限 {requests:g}）",
                f"room for {pool / length:.1f} requests of {length:.0f} tokens, though "
                f"{requests:g} may run",
            ),
            Text("去掉 --max-total-tokens，由显存占比决定", "drop it: the share of memory decides"),
            snippet=Snippet(
                "drop max_total_tokens",
                f"- --max-total-tokens {pool:.0f}" if is_flag else "- max_total_tokens",
                "diff",
                _cut(setting),
            ),
            at=setting,
        )
    if pool or is_set(setting):
        return on(setting)
    return off(
        Text(
            "未限制：按显存占比自动计算（推荐）",
            "not limited: SGLang sizes the pool by its share of the memory, which is best",
        )
    )


def _cut(setting: Setting) -> tuple[Edit, ...]:
    """The edit that takes the flag and its value out of a command."""
    if setting.origin is not Origin.FLAG or setting.location is None or not setting.text:
        return ()
    return (Edit(setting.location, f"--max-total-tokens {setting.text}", ""),)


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU967",
        "prefix-eviction",
        Text("前缀缓存淘汰策略", "Eviction of cached prefixes"),
        Priority.LOW,
        of_engine(sglang=_eviction),
        why="What is evicted first decides which prompts are computed again.",
        fix="Leave --radix-eviction-policy at lru; take lfu or slru for a few hot prefixes.",
        items=sglang_item("C", "eviction-policy", 0.5),
        impact=by_class(Priority.LOW, _EVICTION),
        sources=(_EVICTION, f"{SOURCE}/fields/memory.py"),
    ),
    Check(
        "GPU968",
        "longest-prefix-first",
        Text("最长前缀优先调度", "Longest prefix first"),
        Priority.LOW,
        of_engine(sglang=_policy),
        why="Requests that share a prefix, taken together, find it in the cache.",
        fix="Set --schedule-policy lpm where requests share long prefixes.",
        items=sglang_item("C", "schedule-policy-lpm", 0.75),
        impact=by_class(Priority.LOW, TUNING),
        sources=(TUNING, f"{SOURCE}/fields/schedule.py"),
    ),
    Check(
        "GPU969",
        "chunked-prefix-cache",
        Text("MLA 分块前缀缓存", "Cached prefixes of MLA in chunks"),
        Priority.MEDIUM,
        of_engine(sglang=_chunked),
        why="Prefill of MLA is cheaper as plain attention, which chunks make possible over a "
        "cached prefix.",
        fix="Drop --disable-chunked-prefix-cache.",
        items=sglang_item("C", "chunked-prefix-cache", 0.75),
        impact=by_class(Priority.MEDIUM, f"{SOURCE}/choices.py; SGLang 0.5.3 model_runner.py"),
        examples=examples(
            "--tp-size 8 --attn-dp-size 8 --disable-chunked-prefix-cache",
            "--tp-size 8 --attn-dp-size 8",
            model="deepseek-ai/DeepSeek-V3",
        ),
        sources=(
            f"{SOURCE}/choices.py; srt/model_executor/model_runner_components/misc_utils.py",
            "SGLang 0.4.10.post2, 0.5.3 and 0.5.10, srt/model_executor/model_runner.py",
        ),
    ),
    Check(
        "GPU970",
        "token-pool",
        Text("KV 池 token 上限", "Size of the token pool"),
        Priority.LOW,
        of_engine(sglang=_pool),
        why="A limit keeps memory free that the KV cache could use.",
        fix="Leave --max-total-tokens unset, but for tests of small pools.",
        items=sglang_item("B", "max-total-tokens", 0.25),
        impact=Impact(source=f"{SOURCE}/fields/schedule.py"),
        sources=(f"{SOURCE}/fields/schedule.py: max_total_tokens",),
    ),
    Check(
        "GPU971",
        "weights-in-host-memory",
        Text("权重 CPU 卸载", "Weights in host memory"),
        Priority.LOW,
        of_engine(
            sglang=switch(
                "cpu_offload_gb",
                Text(
                    "可选：显存放不下权重时使用，速度明显下降",
                    "optional: where the weights do not fit; every step then waits for PCIe",
                ),
            )
        ),
        why="Weights in host memory cross PCIe in every step: a model starts that else would not.",
        fix="Quantize, or spread the model over more GPUs, before you set --cpu-offload-gb.",
        items=sglang_item("B", "cpu-offload", 0.25),
        impact=Impact(source=f"{SOURCE}/memory_hook.py"),
        sources=(f"{SOURCE}/memory_hook.py",),
    ),
)
