"""SGLang's answers about graphs, memory and prefixes, for the checks of all engines."""

from __future__ import annotations

import re
from typing import Optional

from flake8_gpu_training.checks._engine import (
    is_foreign,
    is_lacking,
    is_set,
    lacks,
    propose,
    propose_without,
)
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import cannot_apply, cannot_tell, off, on
from flake8_gpu_training.checks._scale import gpu_text, has_fp8
from flake8_gpu_training.checks._sglang import (
    BY_MEMORY,
    DECODES_NOT,
    RADIX,
    asked_backend,
    defaulted,
    is_for_npus,
    is_hybrid,
    is_on,
    is_sparse,
    numbers_of,
    on_either_way,
    only_embeds,
    optional,
    speculates,
    worked_out,
)
from flake8_gpu_training.checks._sources import PYTORCH_GRAPHS
from flake8_gpu_training.checks.base import Judgement, Priority
from flake8_gpu_training.facts import Setting
from flake8_gpu_training.frameworks.engines import Engine, Mode
from flake8_gpu_training.frameworks.reading import number
from flake8_gpu_training.language import Text

_LENT, _TO_LEND = 0.75, 0.6
"""A colocated engine's share that leaves little to the training, and one that leaves enough."""
_FULL = 0.93
"""A static share beside which nothing is left that graphs could take."""


# --- graphs and compilation --------------------------------------------------------------------


def decode_graphs(engine: Engine) -> Judgement:
    """CUDA graphs in decoding, and for how many requests."""
    name = "disable_decode_cuda_graph"
    switch = engine.written("disable_cuda_graph", name)
    if switch is not None and not switch.known:
        return cannot_tell(switch)
    backend = engine.written("cuda_graph_backend_decode")
    if is_on(engine, "enable_layerwise_nvtx_marker"):
        return off(Text("按层打点分析时不用", "layers are marked for a profile"), switch)
    if backend is not None and backend.value == "disabled":
        return _graphs_again(engine, backend, {"cuda_graph_backend_decode": "full"})
    if switch is not None and is_set(switch):
        return _graphs_again(engine, switch, {switch.name: False})
    mode = engine.option("disaggregation_mode")
    if mode.known and mode.value == "prefill":
        return cannot_apply(Text("只做预填充", "the server only prefills"))
    if only_embeds(engine):
        return cannot_apply(DECODES_NOT)
    device = engine.written("device")
    plain = asked_backend(engine)
    if plain is not None and plain.value in ("torch_native", "flex_attention"):
        return off(
            Text(f"{plain.value} 不用 CUDA Graph", f"{plain.value} goes without graphs"), plain
        )
    largest = engine.written("cuda_graph_max_bs_decode", "cuda_graph_max_bs")
    if largest is None:
        sizes = engine.written("cuda_graph_bs_decode", "cuda_graph_bs")
        if sizes is not None:
            return on(sizes) if sizes.known else cannot_tell(sizes)
        if device is not None and device.value == "cpu":
            return cannot_apply(Text("CPU 上不用 CUDA Graph", "there are no CUDA graphs on CPUs"))
        if device is not None and device.value == "xpu" and backend is None:
            return off(
                Text(
                    "可选：XPU 上用 --cuda-graph-backend-decode full 启用",
                    "optional: --cuda-graph-backend-decode full, off by default on XPUs",
                )
            )
        return worked_out(engine, "cuda_graph_max_bs", BY_MEMORY)
    if not largest.known:
        return cannot_tell(largest)
    requests = engine.written("max_running_requests")
    limit, most = number(largest.value), number(requests.value) if requests is not None else None
    if limit is None or most is None or limit >= most:
        return on(largest)
    return propose(
        engine,
        f"batches above {limit:g} requests run without CUDA graphs, and {most:g} may run",
        Text(
            f"CUDA Graph 只到批 {limit:g}，并发上限 {most:g}",
            f"graphs up to {limit:g} requests, of {most:g} that may run",
        ),
        Text(f"捕获到 {most:g}", f"capture up to {most:g}"),
        {largest.name: int(most)},
        at=largest,
        share=0.5,
    )


def _graphs_again(engine: Engine, switch: Setting, instead: dict[str, object]) -> Judgement:
    lends = engine.mode in (Mode.RLHF_COLOCATE, Mode.OFFLINE)
    share = number(engine.option("mem_fraction_static").value)
    if share is not None and share > _FULL:
        return off(
            Text(
                f"静态显存占 {share:.0%}，余下的不够捕获 CUDA Graph",
                f"{share:.0%} of the memory is static, which leaves none for graphs",
            ),
            switch,
        )
    return propose_without(
        engine,
        switch,
        "decoding launches every kernel from the CPU, token by token",
        Text("CUDA Graph 被关闭", "CUDA graphs are switched off"),
        Text("启用 CUDA Graph（默认）", "use CUDA graphs, as by default"),
        instead,
        priority=Priority.LOW if lends else None,
        impact=by_class(Priority.LOW if lends else Priority.HIGH, PYTORCH_GRAPHS),
    )


def compiled(engine: Engine) -> Judgement:
    """``torch.compile`` of the model."""
    return optional(
        engine,
        "enable_torch_compile",
        Text(
            "可选：小模型、小批量时编译，启动变慢",
            "optional: for small models and batches; the start takes longer",
        ),
    )


# --- memory ------------------------------------------------------------------------------------


def static_share(engine: Engine) -> Judgement:
    """``mem_fraction_static``: what weights and KV cache may take."""
    setting = engine.option("mem_fraction_static")
    if not setting.known:
        branches = numbers_of(setting)
        lends = engine.mode is not Mode.RLHF_COLOCATE or is_on(engine, "enable_memory_saver")
        is_fine = bool(branches) and (lends or max(branches) <= _LENT)
        return on_either_way(setting) if is_fine else cannot_tell(setting)
    share = number(setting.value)
    if engine.mode is Mode.RLHF_COLOCATE:
        return _lent(engine, setting, share)
    if share is None:
        return worked_out(engine, "mem_fraction_static", BY_MEMORY)
    return on(setting)


def _lent(engine: Engine, setting: Setting, share: Optional[float]) -> Judgement:
    saver = engine.option("enable_memory_saver")
    if share is not None and share <= _LENT:
        return on(setting)
    if not saver.known:
        return cannot_tell(saver)
    if is_set(saver):
        return (
            on(setting)
            if share is not None
            else worked_out(engine, "mem_fraction_static", BY_MEMORY)
        )
    shown = "mem_fraction_static" if share is None else f"{share:.0%}"
    return propose(
        engine,
        "the engine keeps most of the GPUs on which the model trains",
        Text(
            f"同卡训练，引擎占用大部分显存（{shown}）",
            f"it keeps most of the GPUs that it shares ({shown})",
        ),
        Text("降到 0.4～0.6，或启用 memory saver", "0.4 to 0.6, or the memory saver"),
        {"mem_fraction_static": _TO_LEND},
        at=setting if setting.explicit else None,
        share=0.5,
    )


def context(engine: Engine) -> Judgement:
    """``context_length``: the longest request that is taken."""
    setting = engine.option("context_length")
    if not setting.known:
        return cannot_tell(setting)
    if setting.value is not None:
        return on(setting)
    return off(
        Text(
            "可选：拒绝过长的请求；KV 池按 token 分配，不设也不多占显存",
            "optional: it turns long requests away; the pool is by tokens and takes no more",
        )
    )


def cache_type(engine: Engine) -> Judgement:
    """``kv_cache_dtype``."""
    setting = engine.option("kv_cache_dtype")
    if not setting.known:
        return cannot_tell(setting)
    kind = str(setting.value).lower()
    if kind not in ("auto", "none", "bf16", "bfloat16", "float16"):
        return on(setting)
    if is_for_npus(engine):
        if is_sparse(engine):
            return off(
                Text("可选：DSA 模型用 fp8_e4m3", "optional: fp8_e4m3, of DSA models"), setting
            )
        return off(
            Text(
                "NPU 上按模型精度，仅 DSA 模型可用 fp8", "as the model's: NPUs take fp8 of DSA only"
            ),
            setting,
        )
    if is_foreign(engine.run):
        return off(
            Text("可选：硬件支持时用 fp8", "optional: fp8 where the hardware takes it"), setting
        )
    if has_fp8(engine.run) is False:
        return cannot_apply(
            Text(f"{gpu_text(engine.run)} 没有 FP8 计算单元", f"{gpu_text(engine.run)} has no FP8")
        )
    return off(
        Text(
            "可选：KV 池不足时用 fp8_e4m3（Ada、Hopper 及更新）",
            "optional: fp8_e4m3 where the pool is short (Ada, Hopper and newer)",
        ),
        setting,
    )


def chunked(engine: Engine) -> Judgement:
    """``chunked_prefill_size``."""
    mode = engine.option("disaggregation_mode")
    if mode.known and mode.value == "decode":
        return cannot_apply(
            Text("解码服务器不做预填充", "a server that only decodes gets its prompts prefilled")
        )
    setting = engine.option("chunked_prefill_size")
    if not setting.known:
        return cannot_tell(setting)
    size = number(setting.value)
    if size is None:
        return worked_out(engine, "chunked_prefill_size", BY_MEMORY)
    if size > 0:
        return on(setting)
    if engine.run.model.kind == "embedding":
        return off(DECODES_NOT, setting)
    if engine.run.model.kind == "MLLM":
        return off(
            Text("主动关闭：图像不被切到两块", "off, on purpose: no image is cut in two"), setting
        )
    return propose(
        engine,
        "a long prompt blocks every request that decodes, and its activations peak",
        Text("分块预填充被关闭", "chunked prefill is switched off"),
        Text("按显存分块（80 GB 默认 8192）", "chunks by the GPU's memory, 8192 on 80 GB"),
        {"chunked_prefill_size": 8192},
        at=setting,
    )


def running(engine: Engine) -> Judgement:
    """``max_running_requests``."""
    setting = engine.option("max_running_requests")
    if not setting.known:
        return cannot_tell(setting)
    most = number(setting.value)
    if most is None and speculates(engine):
        return worked_out(engine, "max_running_requests=48", Text("（推测解码时）", "with drafts"))
    if most is None:
        return worked_out(
            engine,
            "max_running_requests",
            Text("按 KV 池大小自动计算", "worked out by the token pool"),
        )
    if most < 2:
        return off(Text("一次一个请求，不做批处理", "one request at a time, on purpose"), setting)
    return on(setting)


def hierarchical(engine: Engine) -> Judgement:
    """``enable_hierarchical_cache``: prefixes in host memory and beyond."""
    for name in ("enable_lmcache", "enable_flexkv"):
        other = engine.written(name)
        if other is not None and other.known and is_set(other):
            return on(other)
    switch = engine.option("disable_radix_cache")
    if switch.known and is_set(switch):
        return cannot_apply(Text("未使用前缀缓存", "no prefixes are kept"))
    return optional(
        engine,
        "enable_hierarchical_cache",
        Text(
            "可选：多轮对话、长前缀重复时把前缀留在内存",
            "optional: host memory for prefixes, where long ones return",
        ),
    )


# --- prefixes ----------------------------------------------------------------------------------


def prefixes(engine: Engine) -> Judgement:
    """The radix cache."""
    setting = engine.option("disable_radix_cache")
    if not setting.known:
        return cannot_tell(setting)
    mode = engine.option("disaggregation_mode")
    if mode.known and mode.value == "decode":
        kept = engine.written("disaggregation_decode_enable_radix_cache")
        if kept is not None and kept.known and is_set(kept):
            return on(kept)
        return cannot_apply(Text("解码服务不缓存前缀", "a server that decodes keeps no prefixes"))
    if not is_set(setting):
        return defaulted(engine, "disable_radix_cache=False")
    if engine.run.model.kind == "embedding" or is_hybrid(engine):
        return off(Text("该模型不缓存前缀", "off, as this kind of model asks for"), setting)
    return propose_without(
        engine,
        setting,
        "system prompts, conversations and samples of one prompt are prefilled again each time",
        Text("RadixAttention 前缀缓存被关闭", "prefixes are not kept (RadixAttention is off)"),
        Text("启用前缀缓存（默认）", "keep prefixes, as by default"),
        {"disable_radix_cache": False},
        impact=by_class(Priority.MEDIUM, RADIX),
    )


def pages(engine: Engine) -> Judgement:
    """``page_size``."""
    if is_lacking(engine, "page_size"):
        return lacks(engine)
    setting = engine.option("page_size")
    if not setting.known:
        return cannot_tell(setting)
    size = number(setting.value)
    if size is not None and size > 1:
        return on(setting)
    if setting.explicit:
        return off(Text("一页一个 token，命中最多", "one token a page: most prefixes hit"), setting)
    own = _page_of(engine)
    if own:
        return worked_out(engine, f"page_size={own[0]}", own[1])
    return off(
        Text(
            "默认一页一个 token（部分后端为 64、128）；可选：HiCache 与 PD 分离时设为 64",
            "one token a page, some backends have 64 or 128; optional: 64 with HiCache or "
            "disaggregation",
        )
    )


# arg_groups/overrides.py: _mla_backend_page_constraints and what follows; npu/utils.py.
_PAGES = {
    "flashmla": 64,
    "trtllm_mla": 64,
    "cutedsl_mla": 64,
    "trtllm_mha": 64,
    "hpc_ops": 64,
    "intel_xpu": 128,
    "ascend": 128,
}


_V4 = re.compile(r"(?i)deepseek-v4")


def _page_of(engine: Engine) -> Optional[tuple[int, Text]]:
    """The tokens of a page that a backend asks for, and the words for why."""
    if engine.version < (0, 5, 3):
        return None
    if _V4.search(engine.run.model.name or "") and engine.version >= (0, 5, 15):
        return 256, Text("由 dsv4 后端决定", "by the backend dsv4")
    if is_sparse(engine) and not is_foreign(engine.run):
        return 64, Text("由 DSA 后端决定", "by the backend of DSA")
    if is_for_npus(engine):
        return 128, Text("由 ascend 后端决定", "by the backend ascend")
    for name in ("attention_backend", "decode_attention_backend", "prefill_attention_backend"):
        asked = engine.written(name)
        if asked is not None and str(asked.value) in _PAGES:
            return _PAGES[str(asked.value)], Text(
                f"由 {asked.value} 后端决定", f"by the backend {asked.value}"
            )
    return None
