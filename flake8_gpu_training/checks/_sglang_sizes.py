"""SGLang's answers about groups of GPUs, weights, attention and drafts, for all engines' checks."""

from __future__ import annotations

import re
from dataclasses import replace

from flake8_gpu_training.checks import _sglang_hosts as hosted
from flake8_gpu_training.checks._engine import (
    FOREIGN,
    LACKS,
    NO_PIPELINE,
    UNSPREAD,
    is_foreign,
    is_lacking,
    is_set,
    lacks,
    propose,
    propose_fp8,
    propose_without,
)
from flake8_gpu_training.checks._judging import cannot_apply, cannot_tell, excluding, off, on
from flake8_gpu_training.checks._sglang import (
    DECODES_NOT,
    DOCS,
    FA3_DEFAULT,
    asked_backend,
    attention_ranks,
    branches_of,
    chosen_backend,
    default_backend,
    defaulted,
    dispatches,
    generation_of,
    is_for_npus,
    is_latent,
    is_mixture,
    is_sparse,
    multiplies_fp8,
    number_of,
    numbers_of,
    on_either_way,
    only_embeds,
    samples,
    worked_out,
)
from flake8_gpu_training.checks._sglang_weights import weights
from flake8_gpu_training.checks.base import Impact, Judgement, Status
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
    if hosted.is_hosted(engine, "verl"):
        return cannot_apply(NO_PIPELINE)
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
    if hosted.is_hosted(engine, "slime"):
        said = Text(
            "副本由 slime 启动（每组 GPU 一个引擎）；--sglang-dp-size 须配合 DP attention",
            "slime starts the copies, one engine on each group of GPUs; optional: "
            "--sglang-dp-size, with DP attention only",
        )
    elif hosted.is_hosted(engine, "verl"):
        said = Text(
            "副本由 verl 启动（每组 GPU 一个引擎）；可选：引擎内再分副本",
            "verl starts the copies, one engine on each group of GPUs; optional: copies within one",
        )
    else:
        said = Text(
            "可选：吞吐优先时增加副本", "optional: copies of the model, where throughput counts"
        )
    return _size(engine, "dp_size", said)


def _size(engine: Engine, name: str, text: Text) -> Judgement:
    if _has_one_gpu(engine) and engine.written(name) is None and not engine.is_open:
        return cannot_apply(_ONE_GPU)
    if is_lacking(engine, name):
        return lacks(engine)
    setting = engine.option(name)
    if not setting.known:
        branches = numbers_of(setting)
        return on_either_way(setting) if min(branches, default=1) > 1 else cannot_tell(setting)
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
    if is_lacking(engine, "ep_size"):
        return lacks(engine)
    if number_of(engine, "tp_size") == 1:
        return cannot_apply(_ONE_GPU if _has_one_gpu(engine) else UNSPREAD)
    if mixture is None or library is None:
        return cannot_tell(Text("模型未知", "the model is not known"))
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
    if engine.release is not None and is_lacking(engine, "torchao_config"):
        judged = excluding(judged, LACKS, "torchao")
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
    told = tuple(_told(engine).items())
    runs_llm = engine.run.model.kind in ("LLM", "MLLM")
    lent = engine.mode not in (Mode.SERVE, Mode.OFFLINE)
    if lent or not runs_llm or is_foreign(engine.run):
        return replace(off(Text("可选：量化的权重", "optional: quantized weights")), told=told)
    if engine.is_open:
        return cannot_tell(_UNREAD)
    return replace(_advised(engine), told=told)


def _advised(engine: Engine) -> Judgement:
    """The format that is best for the GPU: where that is not known, in words alone."""
    has, current = multiplies_fp8(engine), Text("权重为 16 位", "the weights are in 16 bits")
    if has:
        return propose_fp8(engine, current)
    if has is None:
        action = Text(
            "GPU 为 Ada、Hopper 或更新时加 --quantization fp8，先比较精度",
            "on Ada, Hopper or newer quantize to FP8 on loading; compare the answers",
        )
        return Judgement(Status.RECOMMENDED, "fp8", current=current, action=action, is_likely=True)
    if generation_of(engine) != "Ampere":
        return off(Text("可选：量化的权重", "optional: quantized weights"))
    action = Text(
        "换用该模型的 AWQ 或 GPTQ 检查点，先比较精度",
        "serve the model's checkpoint in AWQ or GPTQ; compare the answers",
    )
    return Judgement(Status.RECOMMENDED, "awq", current=current, action=action, is_likely=True)


def _told(engine: Engine) -> dict[str, Text]:
    """What is said of each format that the weights are not in."""
    found = dict(_FORMATS)
    if is_for_npus(engine):
        found["checkpoint"] = Text(
            "可选：ModelSlim 量化的检查点（W8A8、W4A8）",
            "optional: a checkpoint of ModelSlim (W8A8, W4A8)",
        )
        found["modelopt"] = Text("可选：用于 NVIDIA GPU", "optional: for NVIDIA's GPUs")
    return found


_FORMATS = {
    "fp8": Text("可选：加载时量化为 FP8", "optional: FP8, quantized on loading"),
    "checkpoint": Text(
        "可选：已量化的检查点（FP8、INT8 等），无需加载时量化",
        "optional: a checkpoint in FP8 or INT8, which loads as it is",
    ),
    "awq": Text(
        "可选：AWQ 或 GPTQ 检查点，4 位权重（Marlin 算子）",
        "optional: a checkpoint in AWQ or GPTQ, weights in 4 bits (Marlin)",
    ),
    "bitsandbytes": Text(
        "可选：加载时量化为 4 位，比 FP8、AWQ 慢",
        "optional: 4 bits on loading, slower than FP8 or AWQ",
    ),
    "modelopt": Text(
        "可选：NVIDIA ModelOpt 的检查点（FP8；Blackwell 上为 NVFP4）",
        "optional: a checkpoint of NVIDIA's ModelOpt (FP8; NVFP4 on Blackwell)",
    ),
    "torchao": Text(
        "可选：--torchao-config int4wo-128，仅量化权重",
        "optional: --torchao-config int4wo-128, of weights alone",
    ),
    "moe-wna16": Text(
        "可选：专家为 4 位的 AWQ 或 GPTQ 检查点",
        "optional: a checkpoint in AWQ or GPTQ, by kernels for experts in 4 bits",
    ),
}


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
        return _chosen(engine)
    if not asked.known:
        branches = branches_of(asked)
        is_slow = not branches or any(value in _SLOW for value in branches)
        return cannot_tell(asked) if is_slow or latent is None else on_either_way(asked)
    if asked.value not in _SLOW:
        return (
            cannot_tell(Text("模型未知", "the model is not known")) if latent is None else on(asked)
        )
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
    if told is None and is_for_npus(engine):
        return defaulted(engine, "attention_backend=ascend")
    if told is not None:
        return on(told) if told.known else cannot_tell(told)
    return worked_out(engine, "attention_backend", Text("由模型决定（DSA）", "by the model (DSA)"))


def latent_backend(engine: Engine) -> Judgement:
    """The backend of latent attention."""
    latent = is_latent(engine)
    if latent is None:
        return cannot_tell(Text("模型未知", "the model is not known"))
    if latent and is_sparse(engine):
        return cannot_apply(Text("DSA 模型，见 DSA 后端", "sparse attention (DSA), judged there"))
    if not latent:
        return cannot_apply(Text("不是 MLA 模型", "no latent attention (MLA)"))
    if engine.written("disable_mla") is not None:
        return off(Text("MLA 被关闭", "MLA is switched off"), engine.written("disable_mla"))
    asked = asked_backend(engine) or engine.written("enable_flashinfer_mla", "enable_flashmla")
    if asked is not None:
        return on(asked) if asked.known else cannot_tell(asked)
    return _chosen(engine)


def _chosen(engine: Engine) -> Judgement:
    """On with the backend that SGLang takes by itself."""
    found = default_backend(engine)
    if found is not None:
        return defaulted(engine, f"attention_backend={found}")
    return worked_out(
        engine, "attention_backend", Text("由 GPU 与模型决定", "by the GPU and model")
    )


def third_generation(engine: Engine) -> Judgement:
    """FlashAttention-3, on Hopper."""
    generation = generation_of(engine)
    asked = asked_backend(engine)
    chosen = chosen_backend(engine)
    if chosen == "fa3":
        found = asked or engine.written("attention_backend")
        return on(found) if found is not None else defaulted(engine, "attention_backend=fa3")
    if is_foreign(engine.run):
        return cannot_apply(FOREIGN)
    if generation is not None and generation != "Hopper":
        return cannot_apply(Text("仅用于 Hopper", "for Hopper only"))
    if engine.version < FA3_DEFAULT:
        return lacks(engine)
    if is_sparse(engine):
        return cannot_apply(Text("DSA 模型用其他内核", "DSA has kernels of its own"))
    if asked is not None and asked.known and asked.value in _OTHERS:
        return off(Text(f"指定了 {asked.value}", f"{asked.value} is asked for"), asked)
    if asked is not None and asked.known and not asked.explicit:
        return off(
            Text(
                f"verl 默认用 {asked.value}：SGLang 0.5.12 起 FA3 捕获 CUDA Graph 出错",
                f"verl asks for {asked.value}: from SGLang 0.5.12 on FA3 fails in CUDA graphs",
            )
        )
    if asked is None:
        return cannot_tell(
            Text("GPU 未知", "the GPU is not known")
            if generation is None
            else Text("模型未知", "the model is not known")
        )
    if not asked.known:
        return cannot_tell(asked)
    if generation is None:
        return off(Text(f"指定了 {asked.value}", f"{asked.value} is asked for"), asked)
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


# SGLang 0.5.23, arg_groups/attention_hook.py.
_NOT_BY_FLEX = Text(
    "flex_attention 后端不支持推测解码", "the backend flex_attention takes no drafts"
)


def drafts(engine: Engine) -> Judgement:
    """How tokens are drafted."""
    hosts = hosted.drafted(engine)
    if hosts is not None:
        return on(hosts, "mtp")
    if only_embeds(engine):
        return cannot_apply(DECODES_NOT)
    setting = engine.option("speculative_algorithm")
    if is_lacking(engine, "speculative_algorithm"):
        return lacks(engine)
    if not setting.known:
        return cannot_tell(setting)
    if is_set(setting):
        return on(setting, _kind(engine, str(setting.value).upper()))
    asked = asked_backend(engine)
    if asked is not None and asked.value == "flex_attention":
        return cannot_apply(_NOT_BY_FLEX)
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
    if algorithm in ("EAGLE", "NEXTN"):  # two names of one algorithm: the draft tells which
        if draft is None or re.search(r"(?i)nextn|mtp|assistant", str(draft.value)):
            return "mtp"
        return "mtp" if algorithm == "NEXTN" else "eagle2"
    return _ALGORITHMS.get(algorithm, "standalone")


def _is_busy(engine: Engine) -> bool:
    """Whether the server is set up for many requests at once."""
    spread = attention_ranks(engine)
    return bool(dispatches(engine)) or (spread.known and _above_one(spread))
