"""SGLang's answers about groups of GPUs, weights, attention and drafts, for all engines' checks."""

from __future__ import annotations

import re

from flake8_gpu_training.checks._engine import (
    UNSPREAD,
    is_lacking,
    is_set,
    lacks,
    propose,
    propose_without,
)
from flake8_gpu_training.checks._judging import cannot_apply, cannot_tell, excluding, off, on
from flake8_gpu_training.checks._scale import architecture, has_fp8
from flake8_gpu_training.checks._sglang import (
    DOCS,
    FA3_DEFAULT,
    asked_backend,
    attention_ranks,
    chosen_backend,
    default_backend,
    defaulted,
    dispatches,
    is_latent,
    is_mixture,
    is_sparse,
    number_of,
    samples,
    worked_out,
)
from flake8_gpu_training.checks._sglang_weights import weights
from flake8_gpu_training.checks.base import Impact, Judgement
from flake8_gpu_training.facts import Setting
from flake8_gpu_training.frameworks.engines import Engine, Mode
from flake8_gpu_training.frameworks.reading import number
from flake8_gpu_training.language import Text

_ONE_GPU = Text("单卡", "one GPU")
_DENSE = Text("不是 MoE 模型", "no mixture of experts")
_UNREAD = Text("部分参数未能读取", "not all settings could be read")


def _above_one(setting: Setting) -> bool:
    return (number(setting.value) or 1) > 1


def _has_one_gpu(engine: Engine) -> bool:
    hardware = engine.run.hardware
    return hardware.gpus_per_node == 1 and (hardware.nodes or 1) == 1


# --- parallelism -------------------------------------------------------------------------------


def tensor(engine: Engine) -> Judgement:
    """``tp_size``."""
    return _size(
        engine,
        "tp_size",
        Text("可选：单卡放不下模型或 KV 缓存时使用", "optional: where one GPU is short of memory"),
    )


def pipeline(engine: Engine) -> Judgement:
    """``pp_size``."""
    return _size(
        engine,
        "pp_size",
        Text("可选：跨机时流水线通信量小", "optional: over several nodes it exchanges little"),
    )


def copies(engine: Engine) -> Judgement:
    """``dp_size``: whole copies of the model, or of its attention."""
    spread = attention_ranks(engine)
    if spread.known and _above_one(spread):
        return on(spread)
    return _size(
        engine,
        "dp_size",
        Text("可选：吞吐优先时增加副本", "optional: copies of the model, where throughput counts"),
    )


def _size(engine: Engine, name: str, text: Text) -> Judgement:
    if _has_one_gpu(engine) and engine.written(name) is None and not engine.is_open:
        return cannot_apply(_ONE_GPU)
    if is_lacking(engine, name):
        return lacks(engine)
    setting = engine.option(name)
    if not setting.known:
        return cannot_tell(setting)
    if _above_one(setting):
        return on(setting)
    return cannot_apply(_ONE_GPU) if _has_one_gpu(engine) else off(text)


def experts(engine: Engine) -> Judgement:
    """``ep_size``, or a library that hands tokens to experts on other GPUs."""
    library = dispatches(engine)
    asked = engine.written("moe_a2a_backend", "enable_deepep_moe")
    if library and asked is not None:
        return on(asked)
    size = engine.written("ep_size", "enable_ep_moe")
    if size is not None and (not size.known or (is_set(size) and size.value != 1)):
        return on(size) if size.known else cannot_tell(size)
    mixture = is_mixture(engine)
    if mixture is False:
        return cannot_apply(_DENSE)
    if engine.is_open:
        return cannot_tell(_UNREAD)
    if mixture is None or library is None:
        return cannot_tell(Text("模型未知", "the model is not known"))
    if is_lacking(engine, "ep_size"):
        return lacks(engine)
    if number_of(engine, "tp_size") == 1:
        return cannot_apply(_ONE_GPU if _has_one_gpu(engine) else UNSPREAD)
    spread = attention_ranks(engine)
    several = (number_of(engine, "nnodes") or 1) > 1
    if several and spread.known and _above_one(spread):
        return propose(
            engine,
            "attention is split by requests, but each expert by tensors over all nodes, whose "
            "links carry every layer's activations",
            Text("多机 DP attention，专家仍按张量切分", "experts are split as tensors over nodes"),
            Text("用 DeepEP 专家并行", "hand tokens to whole experts by DeepEP"),
            {"moe_a2a_backend": "deepep"},
        )
    return off(
        Text(
            "可选：大规模部署用 --moe-a2a-backend deepep",
            "optional: --moe-a2a-backend deepep for large deployments",
        )
    )


# --- weights -----------------------------------------------------------------------------------

_VARIANTS = {
    "fp8": "fp8",
    "fp8-checkpoint": "checkpoint",
    "modelopt-fp8": "modelopt",
}


def quantization(engine: Engine) -> Judgement:
    """In which format the weights are."""
    judged = _quantization(engine)
    return excluding(judged, _DENSE, "moe-wna16") if is_mixture(engine) is False else judged


def _quantization(engine: Engine) -> Judgement:
    found = weights(engine)
    if found is None:
        return cannot_tell(Text("权重格式未知", "the format of the weights is not known"))
    if found.kind != "full":
        return on(found.setting, _VARIANTS.get(found.kind, found.kind))
    if samples(engine):
        return off(
            Text("可选：采样与训练精度不一致，需校正", "optional: it samples off the policy then")
        )
    runs_llm = engine.run.model.kind in ("LLM", "MLLM")
    if engine.mode is not Mode.SERVE or not has_fp8(engine.run) or not runs_llm:
        return off(
            Text("可选：AWQ、GPTQ 或 FP8 检查点", "optional: a checkpoint in AWQ, GPTQ or FP8")
        )
    if engine.is_open:
        return cannot_tell(_UNREAD)
    return propose(
        engine,
        "the tensor cores multiply FP8 twice as fast, and the weights take half the memory",
        Text("权重为 16 位", "the weights are in 16 bits"),
        Text("FP8 在线量化，先比较精度", "quantize to FP8 on loading; compare the answers"),
        {"quantization": "fp8"},
        variant="fp8",
    )


# --- attention ---------------------------------------------------------------------------------

_SLOW = ("torch_native", "flex_attention")
_DSA = ("dsa_prefill_backend", "dsa_decode_backend", "nsa_prefill_backend", "nsa_decode_backend")


def backend(engine: Engine) -> Judgement:
    """The backend of attention with keys and values of heads."""
    latent = is_latent(engine)
    if is_sparse(engine):
        return cannot_apply(Text("DSA 模型，见 DSA 后端", "sparse attention (DSA), judged there"))
    if latent:
        return cannot_apply(Text("MLA 模型，见 MLA 后端", "latent attention (MLA), judged there"))
    asked = asked_backend(engine)
    if asked is None:
        if latent is None:
            return cannot_tell(Text("模型未知", "the model is not known"))
        found = default_backend(engine)
        return defaulted(engine, f"attention_backend={found or 'auto'}")
    if not asked.known:
        return cannot_tell(asked)
    if asked.value not in _SLOW:
        return on(asked)
    return propose_without(
        engine,
        asked,
        "PyTorch's own attention goes without CUDA graphs and paged kernels",
        Text(f"注意力后端 {asked.value} 很慢", f"the backend {asked.value} is slow"),
        Text("去掉，由 SGLang 选择", "drop it: SGLang chooses"),
        {str(asked.name): default_backend(engine) or "flashinfer"},
    )


def sparse_backend(engine: Engine) -> Judgement:
    """The backends of sparse attention (DSA)."""
    sparse = is_sparse(engine)
    if sparse is None:
        return cannot_tell(Text("模型未知", "the model is not known"))
    if not sparse:
        return cannot_apply(Text("不是 DSA 模型", "no sparse attention (DSA)"))
    told = engine.written(*_DSA) or asked_backend(engine)
    if told is not None:
        return on(told) if told.known else cannot_tell(told)
    return worked_out(engine, "attention_backend", Text("由模型决定（DSA）", "by the model (DSA)"))


def latent_backend(engine: Engine) -> Judgement:
    """The backend of latent attention."""
    latent = is_latent(engine)
    if latent is None:
        return cannot_tell(Text("模型未知", "the model is not known"))
    if not latent or is_sparse(engine):
        return cannot_apply(Text("不是 MLA 模型", "no latent attention (MLA)"))
    if engine.written("disable_mla") is not None:
        return off(Text("MLA 被关闭", "MLA is switched off"), engine.written("disable_mla"))
    asked = asked_backend(engine) or engine.written("enable_flashinfer_mla", "enable_flashmla")
    if asked is not None:
        return on(asked) if asked.known else cannot_tell(asked)
    return defaulted(engine, f"attention_backend={default_backend(engine) or 'auto'}")


def third_generation(engine: Engine) -> Judgement:
    """FlashAttention-3, on Hopper."""
    generation = architecture(engine.run)
    asked = asked_backend(engine)
    chosen = chosen_backend(engine)
    if chosen == "fa3":
        found = asked or engine.written("attention_backend")
        return on(found) if found is not None else defaulted(engine, "attention_backend=fa3")
    if generation is not None and generation != "Hopper":
        return cannot_apply(Text("仅用于 Hopper", "for Hopper only"))
    if engine.version < FA3_DEFAULT:
        return lacks(engine)
    if is_sparse(engine) or (asked is not None and asked.known and asked.value in _OTHERS):
        return cannot_apply(Text("该模型用其他内核", "the model has kernels of its own"))
    if generation is None or asked is None or not asked.known:
        return cannot_tell(Text("GPU 或模型未知", "the GPU, or the model, is not known"))
    if _needs_another(engine):
        return off(Text("当前参数需要其他后端", "other options ask for another backend"), asked)
    return propose_without(
        engine,
        asked,
        f"{asked.value} leaves much of Hopper's tensor cores idle; FlashAttention-3 is the default",
        Text(f"Hopper 上使用 {asked.value}", f"{asked.value} on Hopper"),
        Text("去掉，默认 fa3", "drop it: fa3 is the default"),
        {asked.name: "fa3"},
    )


_OTHERS = (
    "flashmla",
    "cutlass_mla",
    "nsa",
    "dsa",
    "fa4",
    "ascend",
    "aiter",
    "dual_chunk_flash_attn",
)


def _needs_another(engine: Engine) -> bool:
    """Whether FlashAttention-3 would be refused, or other options are tied to the backend."""
    topk = engine.written("speculative_eagle_topk")
    if topk is not None and topk.value != 1:
        return True
    exact = engine.option("enable_deterministic_inference")
    cache = engine.option("kv_cache_dtype")
    if (exact.known and is_set(exact)) or str(cache.value) == "fp8_e5m2":
        return True
    others = ("decode_attention_backend", "prefill_attention_backend", "enable_double_sparsity")
    if any(engine.written(name) is not None for name in others):
        return True
    name = engine.run.model.name or ""
    return re.search(r"(?i)gpt-oss|gemma|qwen3-next|qwen3\.[56]", name) is not None


# --- drafts ------------------------------------------------------------------------------------

_ALGORITHMS = {
    "EAGLE3": "eagle3",
    "EAGLE": "eagle2",
    "NEXTN": "mtp",
    "FROZEN_KV_MTP": "mtp",
    "STANDALONE": "standalone",
    "NGRAM": "ngram",
    "LOOKAHEAD": "ngram",
    "DFLASH": "standalone",
    "DSPARK": "standalone",
    "UNO": "standalone",
}
_HOLDS_MTP = re.compile(
    r"(?i)deepseek-(?:v3|r1)(?!.*distill)|glm-4\.[567](?!v)|mimo-7b|mimo-v2|qwen3-next|longcat"
    r"|ernie-4\.5-(?:21b|300b)|qwen3\.5"
)
_MTP = re.compile(
    r"(?i)(?:^|/)(?:glm-4\.[567](?:-air)?(?:-fp8)?|mimo-7b-(?:base|sft|rl)(?:-\w+)?)/?$"
)
"""Checkpoints as published, with plain attention, whose own layers SGLang drafts with."""
_EAGLE = Impact(
    throughput=(0, 140),
    note=Text(
        "同类方法在 8B、单卡 H100、低并发下：EAGLE-2 1.5 倍，EAGLE-3 2.4 倍",
        "its kin, for an 8B model on H100 and few requests: EAGLE-2 1.5, EAGLE-3 2.4 times",
    ),
    source=f"{DOCS}/speculative_decoding",
)


def drafts(engine: Engine) -> Judgement:
    """How tokens are drafted."""
    setting = engine.option("speculative_algorithm")
    if is_lacking(engine, "speculative_algorithm"):
        return lacks(engine)
    if not setting.known:
        return cannot_tell(setting)
    if is_set(setting):
        return on(setting, _kind(engine, str(setting.value).upper()))
    name = engine.run.model.name or ""
    fits = engine.version >= (0, 5, 3) and engine.mode is Mode.SERVE and _MTP.search(name)
    if fits and not engine.is_open and not _is_busy(engine):
        return propose(
            engine,
            "one pass can confirm several tokens that its own layers propose, where few "
            "requests run",
            Text("模型自带 MTP 层，未使用推测解码", "its layers for further tokens lie idle"),
            Text("MTP 推测解码（需实测）", "MTP; measure it at your load"),
            {
                "speculative_algorithm": "EAGLE",
                "speculative_num_steps": 3,
                "speculative_eagle_topk": 1,
                "speculative_num_draft_tokens": 4,
            },
            variant="mtp",
            impact=_EAGLE,
        )
    return off(
        Text(
            "可选：并发不高、注重延迟时用 EAGLE、MTP 或 n-gram",
            "optional: EAGLE, MTP or n-grams, where few requests run at once",
        )
    )


def _kind(engine: Engine, algorithm: str) -> str:
    draft = engine.written("speculative_draft_model_path")
    if algorithm == "EAGLE":
        own = draft is None and _HOLDS_MTP.search(engine.run.model.name or "")
        if own or (draft is not None and re.search(r"(?i)nextn|mtp", str(draft.value))):
            return "mtp"
    return _ALGORITHMS.get(algorithm, "standalone")


def _is_busy(engine: Engine) -> bool:
    """Whether the server is set up for many requests at once."""
    spread = attention_ranks(engine)
    return bool(dispatches(engine)) or (spread.known and _above_one(spread))
