"""GPU960 to GPU966: how SGLang launches kernels, and what it computes at the same time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Optional

from flake8_gpu_training.checks import _sglang_hosts as hosted
from flake8_gpu_training.checks._engine import (
    FOREIGN,
    is_foreign,
    is_lacking,
    is_set,
    lacks,
    of_engine,
    propose,
    propose_without,
    sglang_item,
)
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    Snippet,
    advise,
    cannot_apply,
    cannot_tell,
    off,
    on,
)
from flake8_gpu_training.checks._sglang import (
    BREAKABLE,
    DECODES_NOT,
    DOCS,
    ENVIRON,
    LARGE_EP,
    PREFILL_GRAPHS,
    SOURCE,
    V4,
    asked_backend,
    defaulted,
    dispatches,
    examples,
    generation_of,
    is_for_npus,
    is_hybrid,
    is_latent,
    is_mixture,
    is_on,
    keeps_ahead,
    multiplies_fp8,
    number_of,
    only_embeds,
    option,
    speculates,
    variable,
)
from flake8_gpu_training.checks._sglang_weights import is_in_blocks, weights
from flake8_gpu_training.checks.base import Check, Impact, Judgement, Priority
from flake8_gpu_training.frameworks.engines import Engine
from flake8_gpu_training.frameworks.reading import is_off, truth
from flake8_gpu_training.language import Text

_GRAPHS = f"{DOCS}/breakable_cuda_graph"
_DEEPGEMM = "https://github.com/deepseek-ai/DeepGEMM"

# --- GPU960: CUDA graphs in prefill ------------------------------------------------------------

_OFF_SWITCHES = ("disable_piecewise_cuda_graph", "disable_prefill_cuda_graph", "disable_cuda_graph")


def _prefill_graphs(engine: Engine) -> Judgement:
    older = engine.written("enable_piecewise_cuda_graph", "enforce_piecewise_cuda_graph")
    if older is not None and (not older.known or is_set(older)):
        return on(older) if older.known else cannot_tell(older)
    asked = engine.written("cuda_graph_backend_prefill")
    if asked is not None:
        if not asked.known:
            return cannot_tell(asked)
        if str(asked.value) != "disabled":
            return on(asked)
        return off(Text("预填充的 CUDA Graph 被关闭", "off in prefill, on purpose"), asked)
    if engine.version < PREFILL_GRAPHS:
        if is_lacking(engine, "enable_piecewise_cuda_graph"):
            return lacks(engine)
        return off(
            Text("可选：此版本中为实验性功能", "optional: experimental in this release"),
        )
    for name in _OFF_SWITCHES:
        switch = engine.written(name)
        if switch is not None and not switch.known:
            return cannot_tell(switch)
        if switch is not None and is_set(switch):
            return _again(engine, name)
    if hosted.is_hosted(engine, "slime") and is_on(engine, "enable_memory_saver"):
        return off(
            Text(
                "slime 启用 memory saver 时关闭预填充的 CUDA Graph",
                "slime switches prefill graphs off where it uses the memory saver",
            )
        )
    against = next(_against(engine), None)
    if against is not None:
        name = "多模态模型" if against is _MANY_KINDS else f" {against} "
        said = f"a {against}" if against is _MANY_KINDS else against
        return cannot_apply(
            Text(f"与{name}不兼容，SGLang 自动关闭", f"SGLang leaves it out with {said}")
        )
    if engine.version >= BREAKABLE and is_foreign(engine.run):
        return _elsewhere(engine)
    if engine.version >= BREAKABLE:
        return defaulted(engine, "cuda_graph_backend_prefill=breakable")
    return defaulted(engine, "disable_piecewise_cuda_graph=False")


def _elsewhere(engine: Engine) -> Judgement:
    """Off by default but on CUDA (cuda_graph_config.py); releases before leave it to the device."""
    if engine.version >= _ON_CUDA_ALONE:
        return cannot_apply(
            Text(
                "SGLang 仅在 NVIDIA GPU 上默认启用",
                "SGLang captures prefill on NVIDIA's GPUs alone",
            )
        )
    return cannot_tell(
        Text("该设备上是否捕获预填充未知", "whether the device captures prefill is not known")
    )


_ON_CUDA_ALONE = (0, 5, 23)


def _again(engine: Engine, name: str) -> Judgement:
    switch = engine.written(name)
    assert switch is not None
    unknown = engine.parameter(name) is None  # another check says what became of it
    without = next(_against(engine), None) is not None or is_foreign(engine.run)
    if name == "disable_cuda_graph" or unknown or without:
        return off(Text("CUDA Graph 被关闭", "CUDA graphs are switched off"), switch)
    return propose_without(
        engine,
        switch,
        "short prompts are prefilled kernel by kernel, which the CPU launches one at a time",
        Text("预填充阶段的 CUDA Graph 被关闭", "prefill runs without CUDA graphs"),
        Text("去掉该开关（默认启用）", "drop the switch: they are the default"),
        {name: False},
    )


_MANY_KINDS = "multimodal model"


def _against(engine: Engine) -> Iterator[str]:
    """What makes SGLang leave prefill graphs out by itself (server_args.py, cuda_graph_hook.py)."""
    if (number_of(engine, "pp_size") or 1) > 1:
        yield "pp_size"
    if engine.run.model.kind == "MLLM" and not _captures_text(engine):
        yield _MANY_KINDS
    plain = asked_backend(engine)
    if plain is not None and plain.value in ("torch_native", "flex_attention"):
        yield f"attention_backend={plain.value}"
    mode = engine.option("disaggregation_mode")
    if mode.known and mode.value == "decode":
        yield "disaggregation_mode=decode"
    if engine.version >= (0, 5, 20) and (found := _LIMITED.search(engine.run.model.name or "")):
        yield found.group()
    if is_on(engine, "enable_two_batch_overlap"):
        yield "enable_two_batch_overlap"
    library = dispatches(engine)
    if library and (engine.version <= BREAKABLE or library not in _CAPTURED):
        yield f"moe_a2a_backend={library}"
    if engine.version < (0, 5, 20):
        if is_on(engine, "enable_dp_attention"):
            yield "enable_dp_attention"
        if is_on(engine, "enable_lora") or engine.written("lora_paths") is not None:
            yield "LoRA"
    if engine.version >= BREAKABLE:
        if engine.version < (0, 5, 20) and is_latent(engine):
            yield "MLA"
        return
    if speculates(engine):
        yield "speculative_algorithm"
    if mode.known and mode.value not in ("null", None):
        yield "disaggregation_mode"
    for name in _UNTRACEABLE:
        setting = engine.written(name)
        if setting is not None and setting.known and is_set(setting):
            yield name


# SGLang 0.5.20 and 0.5.23, srt/configs/model_config.py:
# multimodal_breakable_cuda_graph_supported_model_archs, and in 0.5.10 the piecewise ones.
_CAPTURED_TEXT = re.compile(
    r"(?i)qwen3\.[56]|kimi-k(?:2\.[5-9]|3)|paddleocr|minimax-m3|command-a-vision"
)
_LIMITED = re.compile(r"(?i)deepseek-v4|kimi-(?:linear|k3)")
"""Whose capture takes too much memory, or whose linear attention is not captured."""


def _captures_text(engine: Engine) -> bool:
    """Whether the language model of a multimodal one keeps its prefill graphs."""
    name = engine.run.model.name or ""
    return engine.version >= (0, 5, 20) and _CAPTURED_TEXT.search(name) is not None


_CAPTURED = ("deepep", "megamoe", "flashinfer")
_UNTRACEABLE = (
    "enable_torch_compile",
    "cpu_offload_gb",
    "enable_hierarchical_cache",
    "enable_deterministic_inference",
    "enable_symm_mem",
    "enable_eplb",
)


# --- GPU961: the scheduler works ahead ---------------------------------------------------------


def _overlapped(engine: Engine) -> Judgement:
    asked = engine.written("enable_overlap_schedule")
    if asked is not None:
        return on(asked) if asked.known else cannot_tell(asked)
    if is_lacking(engine, "disable_overlap_schedule"):
        return lacks(engine)
    setting = engine.option("disable_overlap_schedule")
    if not setting.known:
        return cannot_tell(setting)
    against = _unoverlapped(engine)
    if is_set(setting):
        if against:
            return off(Text(f"{against} 需要关闭重叠调度", f"{against} asks for it"), setting)
        if hosted.is_hosted(engine, "slime"):
            return off(Text("主动关闭", "off, on purpose"), setting)
        return propose_without(
            engine,
            setting,
            "the GPU waits while the CPU schedules the next batch",
            Text("重叠调度被关闭", "the scheduler does not work ahead"),
            Text("去掉 --disable-overlap-schedule", "drop --disable-overlap-schedule"),
            {"disable_overlap_schedule": False},
        )
    if against:
        return cannot_apply(
            Text(f"{against}：SGLang 自动关闭重叠调度", f"SGLang schedules in turn with {against}")
        )
    return defaulted(engine, "disable_overlap_schedule=False")


def _unoverlapped(engine: Engine) -> str:
    """What makes SGLang schedule in turn by itself, or refuse to work ahead; "" for nothing."""
    if (number_of(engine, "pp_size") or 1) > 1:
        return "pp_size"
    drafting = engine.written("dllm_algorithm")
    if drafting is not None and drafting.value is not None:
        return "dllm_algorithm"
    if is_on(engine, "enable_pdmux"):
        return "enable_pdmux"
    if speculates(engine) and engine.version < BREAKABLE and not _is_second(engine):
        return "speculative_algorithm"
    states = is_hybrid(engine) and not keeps_ahead(engine)
    if states and engine.written("disable_radix_cache") is None:
        return "Mamba"
    return ""


def _is_second(engine: Engine) -> bool:
    told = variable(engine, "SGLANG_ENABLE_SPEC_V2")
    return told is not None and str(told.value).lower() in ("1", "true", "yes", "y", "on")


# --- GPU962, GPU963: batches in two halves, and overlap within one -----------------------------

_DENSE = Text("不是 MoE 模型", "no mixture of experts")
_ALONE = Text("专家未分布到多卡（未用 DeepEP）", "no library hands tokens to experts elsewhere")
# The layers of batch_overlap/operations_strategy.py.
_HALVED = re.compile(
    r"(?i)deepseek[-_]?(?:v2|v3|r1(?!.*distill)|coder[-_]v2)|kimi[-_]k2|mimo[-_]v2"
    r"|qwen3-(?:30b|235b|coder-30b|coder-480b)"
)
_WHOLE = ("megamoe", "flashinfer_megamoe", "deepep_v2")
"""Libraries with which SGLang refuses to overlap (arg_groups/mega_moe_hook.py, moe_hook.py)."""


def _two_batches(engine: Engine) -> Judgement:
    found = _of_experts(engine, "enable_two_batch_overlap")
    if found is not None:
        return found
    if dispatches(engine) != "deepep" or not _HALVED.search(engine.run.model.name or ""):
        return off(
            Text("可选：SGLang 只为部分模型实现", "optional: SGLang has it for some models only")
        )
    mode = engine.option("disaggregation_mode")
    several = (number_of(engine, "nnodes") or 1) > 1
    if several and mode.value != "decode" and not speculates(engine):
        return propose(
            engine,
            "handing tokens to experts on other nodes takes as long as computing them",
            Text("节点间专家通信未被计算掩盖", "communication between nodes is not hidden"),
            Text("开启 two-batch overlap", "overlap two halves of a batch"),
            {"enable_two_batch_overlap": True},
        )
    return off(Text("可选：跨节点专家并行的预填充", "optional: for prefill over several nodes"))


def _one_batch(engine: Engine) -> Judgement:
    found = _of_experts(engine, "enable_single_batch_overlap")
    return found or off(
        Text("可选：共享专家与通信重叠", "optional: shared experts while tokens travel")
    )


def _of_experts(engine: Engine, name: str) -> Optional[Judgement]:
    """The answer where the option is set, or cannot be; None where it is open."""
    written = engine.written(name)
    if written is not None and (not written.known or is_set(written)):
        return on(written) if written.known else cannot_tell(written)
    if is_lacking(engine, name):
        return lacks(engine)
    mixture, library = is_mixture(engine), dispatches(engine)
    if mixture is False:
        return cannot_apply(_DENSE)
    if library == "":
        return cannot_apply(_ALONE)
    if library in _WHOLE:
        return cannot_apply(
            Text(f"{library} 不支持批重叠", f"{library} hands tokens out in one step")
        )
    if mixture is None or library is None:
        return cannot_tell(
            Text("模型或专家并行方式未知", "the model, or its experts, are not known")
        )
    if written is not None:
        return off(Text("主动关闭", "off, on purpose"), written)
    return None


# --- GPU964: several steps between two schedules -----------------------------------------------


_UNREAD_STEPS = Text(
    "参数仍在，但 SGLang 0.4.3 至 0.5.23 没有代码读取它",
    "declared, but no code of SGLang 0.4.3 to 0.5.23 reads it",
)


def _steps(engine: Engine) -> Judgement:
    if only_embeds(engine):
        return cannot_apply(DECODES_NOT)
    if is_lacking(engine, "num_continuous_decode_steps"):
        return lacks(engine)
    setting = engine.option("num_continuous_decode_steps")
    if not setting.known:
        return cannot_tell(setting)
    if (number_of(engine, "num_continuous_decode_steps") or 1) > 1:
        return on(setting)
    return off(_UNREAD_STEPS, setting)


# --- GPU965, GPU966: products in FP8 -----------------------------------------------------------


def _fp8(engine: Engine) -> Judgement:
    """The answer about the hardware and the weights, or the backend that multiplies them."""
    found = weights(engine)
    if found is None:
        return cannot_tell(Text("模型的权重格式未知", "the format of the weights is not known"))
    if "fp8" not in found.kind:
        return cannot_apply(Text("权重不是 FP8", "the weights are not in FP8"))
    has = multiplies_fp8(engine)
    if has is False:
        return cannot_apply(Text("该 GPU 没有 FP8 张量核", "the GPU has no FP8 tensor cores"))
    asked = option(engine, "fp8_gemm_runner_backend", "fp8_gemm_backend")
    if asked.explicit:
        return on(asked) if asked.known else cannot_tell(asked)
    if has is None and is_for_npus(engine):
        return cannot_apply(Text("昇腾 NPU 有自己的算子", "NPUs have kernels of their own"))
    if has is None and asked.known and asked.value is not None:
        return defaulted(engine, f"{asked.name}={asked.value}")
    if has is None:
        return cannot_tell(Text("GPU 未知", "the GPU is not known"))
    return on(found.setting) if found.setting.explicit else defaulted(engine, found.kind)


def _deepgemm(engine: Engine) -> Judgement:
    if engine.version < (0, 4, 6):
        return lacks(engine)
    generation = generation_of(engine)
    blocks = is_in_blocks(engine)
    if blocks is False:
        return cannot_apply(Text("权重不是分块 FP8", "the weights are not FP8 in blocks"))
    if is_foreign(engine.run):
        return cannot_apply(FOREIGN)
    if generation is not None and generation not in ("Hopper", "Blackwell"):
        return cannot_apply(Text("DeepGEMM 需要 Hopper 或更新", "it takes Hopper or newer"))
    told = variable(engine, "SGLANG_ENABLE_JIT_DEEPGEMM", "SGL_ENABLE_JIT_DEEPGEMM")
    asked = option(engine, "moe_runner_backend", "fp8_gemm_runner_backend")
    if asked.explicit and asked.value == "deep_gemm":
        return on(asked)
    if blocks is None:
        return cannot_tell(
            Text("权重是否为分块 FP8 未知", "whether the weights are FP8 in blocks is not known")
        )
    if generation is None:
        return cannot_tell(Text("GPU 未知", "the GPU is not known"))
    if told is None:
        return defaulted(engine, f"{told_name(engine)}=1")
    if not told.known:
        return cannot_tell(told)
    if truth(told.value) is not False and not is_off(told.value) and str(told.value) != "0":
        return on(told)
    return advise(
        engine.run,
        "products of FP8 blocks fall back to slower kernels",
        Text("DeepGEMM 被环境变量关闭", "a variable switches DeepGEMM off"),
        Text(f"去掉 {told.name}=0（默认启用）", f"drop {told.name}=0: it is on by default"),
        snippet=Snippet(f"drop {told.name}=0", f"export {told.name}=1", "bash"),
        at=told,
    )


def told_name(engine: Engine) -> str:
    """The variable of DeepGEMM in the release at hand."""
    newer = engine.version >= PREFILL_GRAPHS
    return "SGLANG_ENABLE_JIT_DEEPGEMM" if newer else "SGL_ENABLE_JIT_DEEPGEMM"


_V3 = "deepseek-ai/DeepSeek-V3"
_SPREAD = "--tp-size 16 --nnodes 2 --node-rank 0 --dist-init-addr 10.0.0.1:5000 " + (
    "--attn-dp-size 16 --moe-a2a-backend deepep"
)

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU960",
        "prefill-cuda-graphs",
        Text("分段 CUDA Graph（预填充）", "CUDA graphs in prefill"),
        Priority.LOW,
        of_engine(sglang=_prefill_graphs),
        why="A short prompt takes as many kernel launches as a long one; graphs launch them at "
        "once.",
        fix="Leave the prefill graphs on; SGLang leaves them out itself where they do not apply.",
        ignore="Memory is short, or the capture fails for the model.",
        items=sglang_item("A", "piecewise-cuda-graph", 1),
        impact=by_class(Priority.LOW, _GRAPHS),
        examples=examples("--disable-prefill-cuda-graph", ""),
        sources=(
            _GRAPHS,
            f"{SOURCE}/cuda_graph_hook.py; SGLang 0.5.10 and 0.5.15, srt/server_args.py",
        ),
    ),
    Check(
        "GPU961",
        "overlap-schedule",
        Text("重叠调度", "Overlapped scheduling"),
        Priority.MEDIUM,
        of_engine(sglang=_overlapped),
        why="The scheduler prepares the next batch on the CPU while the GPU computes this one.",
        fix="Drop --disable-overlap-schedule.",
        ignore="You look for a fault in the scheduler.",
        items=sglang_item("A", "overlap-schedule", 1.5),
        impact=Impact(
            throughput=(0, 10),
            note=Text("官方：吞吐约 1.1 倍", "the project: about 1.1 times the throughput"),
            source=V4,
        ),
        examples=examples("--disable-overlap-schedule", ""),
        sources=(V4, f"{SOURCE}/overrides.py"),
    ),
    Check(
        "GPU962",
        "two-batch-overlap",
        Text("双批重叠（TBO）", "Two-batch overlap"),
        Priority.MEDIUM,
        of_engine(sglang=_two_batches),
        why="One half of the batch computes while the tokens of the other travel to their experts.",
        fix="Set --enable-two-batch-overlap for prefill with DeepEP over several nodes.",
        ignore="Batches are small, or latency counts more than throughput.",
        items=sglang_item("A", "two-batch-overlap", 0.5),
        impact=Impact(
            throughput=(27, 35),
            note=Text("官方测得的预填充吞吐", "prefill, as the project measured"),
            source=LARGE_EP,
        ),
        difficulty="medium",
        examples=examples(_SPREAD, f"{_SPREAD} --enable-two-batch-overlap", model=_V3),
        sources=(LARGE_EP, f"{SOURCE}/validation_hook.py: check_two_batch_overlap"),
    ),
    Check(
        "GPU963",
        "single-batch-overlap",
        Text("单批重叠（SBO）", "Single-batch overlap"),
        Priority.LOW,
        of_engine(sglang=_one_batch),
        why="Shared experts and down projections can run while tokens travel between GPUs.",
        fix="Set --enable-single-batch-overlap with a library that hands tokens to experts.",
        items=sglang_item("A", "single-batch-overlap", 0.25),
        impact=by_class(Priority.LOW, f"{SOURCE}/fields/exec_.py"),
        sources=(f"{SOURCE}/fields/exec_.py",),
    ),
    Check(
        "GPU964",
        "continuous-decode-steps",
        Text("连续解码步数", "Decoding steps between schedules"),
        Priority.LOW,
        of_engine(sglang=_steps),
        why="Each schedule costs time on the CPU; several steps between two share it.",
        fix="Set --num-continuous-decode-steps where throughput counts, not first tokens.",
        items=sglang_item("A", "continuous-decode-steps", 0.25),
        impact=by_class(Priority.LOW, f"{SOURCE}/fields/schedule.py"),
        sources=(f"{SOURCE}/fields/schedule.py: num_continuous_decode_steps",),
    ),
    Check(
        "GPU965",
        "fp8-products",
        Text("FP8 矩阵乘", "Products in FP8"),
        Priority.LOW,
        of_engine(sglang=_fp8),
        why="Tensor cores of Ada and newer multiply FP8 twice as fast as BF16.",
        fix="Serve FP8 weights, and leave --fp8-gemm-backend at auto.",
        items=sglang_item("A", "fp8-gemm", 0.5),
        impact=by_class(Priority.LOW, f"{SOURCE}/fields/exec_.py: fp8_gemm_runner_backend"),
        sources=(f"{SOURCE}/fields/exec_.py: fp8_gemm_runner_backend",),
    ),
    Check(
        "GPU966",
        "deepgemm",
        Text("DeepGEMM", "DeepGEMM"),
        Priority.MEDIUM,
        of_engine(sglang=_deepgemm),
        why="DeepGEMM is compiled for the shapes of FP8 weights in blocks, as DeepSeek's are.",
        fix="Drop SGLANG_ENABLE_JIT_DEEPGEMM=0.",
        ignore="The first start must not take the time that its compilation takes.",
        items=sglang_item("A", "deepgemm", 0.5),
        impact=by_class(Priority.MEDIUM, _DEEPGEMM),
        examples=examples(
            "--tp-size 8",
            "--tp-size 8 --enable-dp-attention --dp-size 8",
            start="SGLANG_ENABLE_JIT_DEEPGEMM=0 ",
            model=_V3,
            gpus="h200:8",
        ),
        sources=(_DEEPGEMM, ENVIRON, "SGLang 0.4.10.post2, layers/quantization/deep_gemm_wrapper"),
    ),
)
