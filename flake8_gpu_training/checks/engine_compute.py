"""GPU930 to GPU934: how an inference engine compiles the model and launches its kernels."""

from __future__ import annotations

from typing import Optional

from flake8_gpu_training.checks import _sglang_memory
from flake8_gpu_training.checks._engine import (
    FOREIGN,
    is_foreign,
    is_on_cpus,
    is_set,
    of_engine,
    propose,
    propose_without,
    sglang_item,
    vllm_item,
)
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
from flake8_gpu_training.checks._scale import is_for_tpus
from flake8_gpu_training.checks._vllm import (
    LEVELS,
    OPTIMIZATION,
    V1,
    by_eager,
    compilation,
    eager,
    level,
    variable,
)
from flake8_gpu_training.checks.base import (
    Check,
    Evidence,
    Impact,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Setting
from flake8_gpu_training.frameworks.engines import Engine, Mode, amount
from flake8_gpu_training.frameworks.reading import is_off, number
from flake8_gpu_training.frameworks.vllm_defaults import V1_ONLY, falls_back, is_v1, pools
from flake8_gpu_training.language import Text

_GRAPHS = "https://docs.vllm.ai/en/latest/design/cuda_graphs.html"
_LEVELS = "vLLM 0.33 docs/design/optimization_levels.md"
_MEASURED = "https://github.com/vllm-project/vllm-omni/issues/7960"
_FASTEST = 2
"""The level that captures whole CUDA graphs and fuses all it can; level 3 equals it so far."""


# --- GPU930: levels of optimization ---


def _level(engine: Engine) -> Judgement:
    found = by_eager(engine)
    if found is not None:
        return found
    setting = level(engine)
    if not setting.known:
        return cannot_tell(setting)
    wanted = _FASTEST if engine.version >= LEVELS else 3
    if setting.value >= wanted:
        return on(setting)
    if engine.version < LEVELS:
        return off(Text("V0 引擎默认不编译", "the V0 engine compiles nothing by default"), setting)
    return propose_without(
        engine,
        setting,
        f"-O{setting.value} leaves out fusions and whole CUDA graphs, for a faster start",
        Text(f"优化级别为 -O{setting.value}", f"the level of optimization is -O{setting.value}"),
        Text("用默认的 -O2", "use the default, -O2"),
        {"optimization_level": _FASTEST},
        priority=Priority.MEDIUM if setting.value == 0 else Priority.LOW,
    )


# --- GPU931: CUDA graphs ---


_GRAPHLESS = Text("CPU、TPU 上没有 CUDA Graph", "CPUs and TPUs have no CUDA graphs")


def _has_no_graphs(engine: Engine) -> bool:
    return is_on_cpus(engine.run) or is_for_tpus(engine.run)


def _graphs(engine: Engine) -> Judgement:
    if _has_no_graphs(engine):
        return cannot_apply(_GRAPHLESS)
    setting = eager(engine)
    if not setting.known:
        return cannot_tell(setting)
    if is_set(setting):
        if pools(engine):
            return off(Text("不解码的模型，收益小", "the model decodes nothing"), setting)
        return _advise_graphs(engine, setting)
    mode = compilation(engine, "cudagraph_mode", "use_cudagraph")
    if mode is not None:
        if not mode.known:
            return cannot_tell(mode)
        if str(mode.value).upper() in ("NONE", "FALSE", "0"):
            return _advise_graphs(engine, mode, within=True)
        return on(mode)
    told = level(engine)
    if told.known and told.value == 0 and told.explicit and engine.version >= LEVELS:
        return off(Text("-O0 不使用 CUDA Graph", "-O0 uses no CUDA graphs"), told)
    return on(setting)


def _advise_graphs(engine: Engine, setting: Setting, within: bool = False) -> Judgement:
    if is_foreign(engine.run):
        return cannot_apply(FOREIGN)
    reason = "decoding launches every kernel from the CPU, token by token"
    current = Text("CUDA Graph 被关闭", "CUDA graphs are switched off")
    lends = engine.mode in (Mode.RLHF_COLOCATE, Mode.OFFLINE)
    priority = Priority.LOW if lends else None
    if within:
        return advise(
            engine.run,
            reason,
            current,
            Text("去掉 cudagraph_mode NONE", "drop cudagraph_mode NONE"),
            snippet=Snippet(
                "drop cudagraph_mode NONE from compilation_config",
                '"cudagraph_mode": "FULL_AND_PIECEWISE"',
                "json",
            ),
            at=setting,
            priority=priority,
        )
    return propose_without(
        engine,
        setting,
        reason,
        current,
        Text("启用 CUDA Graph（默认）", "use CUDA graphs, as by default"),
        {"enforce_eager": False},
        priority=priority,
    )


# --- GPU932: torch.compile ---


def _compiled(engine: Engine) -> Judgement:
    found = by_eager(engine)
    if found is not None:
        return found
    mode = compilation(engine, "mode", "level")
    if mode is not None:
        if not mode.known:
            return cannot_tell(mode)
        if number(mode.value) == 0 or str(mode.value).upper() == "NONE":
            return off(Text("编译被关闭", "compilation is switched off"), mode)
        return _without_inductor(engine) or on(mode)
    setting = level(engine)
    if not setting.known:
        return cannot_tell(setting)
    if setting.value > 0:
        without = _without_inductor(engine)
        if without is not None:
            return without
        return on(setting)
    return off(Text("未编译", "nothing is compiled"), setting)


def _without_inductor(engine: Engine) -> Optional[Judgement]:
    """The answer where the graph is captured, and nobody makes kernels of it."""
    asked = compilation(engine, "use_inductor")
    if asked is None or not asked.known or is_set(asked):
        return None
    return Judgement(
        Status.PARTIAL,
        share=0.5,
        current=Text(
            "捕获了计算图，use_inductor 关闭了 Inductor",
            "the graph is captured, use_inductor switches Inductor off",
        ),
        action=Text("不需要时去掉 use_inductor", "drop use_inductor where nothing asks for it"),
        evidence=(Evidence.of(asked),),
    )


# --- GPU933: the generation of the engine ---


def _generation(engine: Engine) -> Judgement:
    asked = variable(engine, "VLLM_USE_V1")
    v1 = is_v1(engine)
    if v1 is None:
        return cannot_tell(asked or Text("VLLM_USE_V1 未知", "VLLM_USE_V1 is not known"))
    if v1:
        is_asked = asked is not None and engine.version < V1_ONLY
        return on(asked) if asked is not None and is_asked else on(f"{engine.called}: V1")
    if falls_back(engine):
        return cannot_apply(
            Text(
                "vLLM 0.8、0.9 的 V1 不用于 Ampere 之前的 GPU",
                "V1 of vLLM 0.8 and 0.9 takes no GPUs before Ampere",
            )
        )
    if asked is None:
        return off(
            Text(
                "该版本默认使用 V0；升级到 0.8 以上默认使用 V1",
                "this release starts V0; from 0.8 on V1 is the default",
            )
        )
    return advise(
        engine.run,
        "the older engine schedules on the CPU between steps and caches no prefixes",
        Text("VLLM_USE_V1=0 选择了旧引擎", "VLLM_USE_V1=0 asks for the older engine"),
        Text("去掉 VLLM_USE_V1=0", "drop VLLM_USE_V1=0"),
        snippet=Snippet("drop VLLM_USE_V1=0", "export VLLM_USE_V1=1", "bash"),
        at=asked,
    )


# --- GPU934: sizes of the graphs ---

_SIZES = ("cudagraph_capture_sizes", "cuda_graph_sizes")


def _sizes(engine: Engine) -> Judgement:
    if _has_no_graphs(engine):
        return cannot_apply(_GRAPHLESS)
    setting = eager(engine)
    if setting.known and is_set(setting):
        return cannot_apply(Text("未使用 CUDA Graph", "no CUDA graphs are used"))
    found = engine.written(*_SIZES, "max_cudagraph_capture_size", "max_seq_len_to_capture")
    found = found or compilation(engine, "cudagraph_capture_sizes", "max_cudagraph_capture_size")
    if found is None and not setting.known:
        return cannot_tell(setting)
    if found is None:
        return on(f"{engine.called}: cudagraph_capture_sizes")
    if not found.known:
        return cannot_tell(found)
    largest, batch = _largest(found), amount(engine.option("max_num_seqs"))
    sequences = engine.written("max_num_seqs")
    if largest is None or batch is None or sequences is None or largest >= batch:
        return on(found)
    if not engine.takes("max_cudagraph_capture_size"):
        return on(found)
    return propose(
        engine,
        f"batches above {largest:g} sequences run without CUDA graphs, max_num_seqs is {batch:g}",
        Text(
            f"只为不超过 {largest:g} 的批捕获", f"graphs are captured for batches up to {largest:g}"
        ),
        Text(f"捕获到 {batch:g}", f"capture up to {batch:g}"),
        {"max_cudagraph_capture_size": int(batch)},
        at=found,
        share=0.5,
    )


def _largest(setting: Setting) -> Optional[float]:
    value = setting.value
    if isinstance(value, (list, tuple)):
        found = [number(one) for one in value]
        return max((one for one in found if one is not None), default=None)
    return None if is_off(value) else number(value)


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU930",
        "engine-optimization-level",
        Text("引擎优化级别", "Optimization level of the engine"),
        Priority.LOW,
        of_engine(vllm=_level),
        why="Low levels start faster and run slower: fewer fusions, smaller CUDA graphs or none.",
        fix="Leave -O at its default; use -O0 while you develop.",
        ignore="The server is restarted often and serves little.",
        items=vllm_item("A", "optimization-level", 1.5),
        impact=by_class(Priority.LOW, _LEVELS),
        examples=served("-O0 --max-model-len 8192", "--max-model-len 8192"),
        sources=(OPTIMIZATION, _LEVELS),
    ),
    Check(
        "GPU931",
        "engine-cuda-graphs",
        Text("CUDA Graph", "CUDA graphs in decoding"),
        Priority.HIGH,
        of_engine(vllm=_graphs, sglang=_sglang_memory.decode_graphs),
        why="A decoding step launches hundreds of small kernels; a captured graph launches once.",
        fix="Drop --enforce-eager. Where memory is short, capture fewer sizes instead.",
        ignore="The model's kernels cannot be captured, or memory suffices in no other way.",
        items=(*vllm_item("A", "cuda-graph", 1.5), *sglang_item("A", "cuda-graph-max-bs", 1)),
        impact=Impact(
            throughput=(30, 70),
            note=Text(
                "7B、A800 上每个 token 由 22 ms 降到 13 ms；模型越大收益越小",
                "22 to 13 ms a token for a 7B model on A800; less for larger ones",
            ),
            source=_MEASURED,
        ),
        examples=served("--enforce-eager --max-model-len 8192", "--max-model-len 8192"),
        sources=(_GRAPHS, OPTIMIZATION, _MEASURED),
    ),
    Check(
        "GPU932",
        "engine-compilation",
        Text("torch.compile", "Compilation by the engine"),
        Priority.LOW,
        of_engine(vllm=_compiled, sglang=_sglang_memory.compiled),
        why="Compiled layers fuse what stands between matrix products and attention.",
        fix="Leave the compilation mode at its default.",
        items=(*vllm_item("A", "torch-compile", 1), *sglang_item("A", "torch-compile", 0.5)),
        impact=by_class(Priority.LOW, _LEVELS),
        sources=(OPTIMIZATION, _LEVELS),
    ),
    Check(
        "GPU933",
        "engine-generation",
        Text("V1 引擎", "Generation of the engine"),
        Priority.MEDIUM,
        of_engine(vllm=_generation),
        why="vLLM's V1 engine schedules with far less work on the CPU, up to 1.7 times as fast.",
        fix="Drop VLLM_USE_V1=0; pin vLLM 0.8 or newer.",
        ignore="The model needs what only the older engine has.",
        items=vllm_item("A", "v1-engine", 0.5),
        impact=Impact(
            throughput=(0, 70),
            note=Text("官方博客：最高 1.7 倍", "the project's blog: up to 1.7 times"),
            source=V1,
        ),
        examples=served(
            "--max-model-len 8192", "--max-model-len 8192", start="VLLM_USE_V1=0 ", pin="0.9.2"
        ),
        sources=(V1, "vLLM 0.8.5, 0.10.2 and 0.33.0, envs.py"),
    ),
    Check(
        "GPU934",
        "engine-capture-sizes",
        Text("CUDA Graph 捕获批大小", "Batch sizes of CUDA graphs"),
        Priority.LOW,
        of_engine(vllm=_sizes),
        why="A batch larger than the largest captured one is decoded without CUDA graphs.",
        fix="Capture up to the largest batch that is scheduled (max_num_seqs).",
        items=vllm_item("A", "capture-sizes", 0.5),
        impact=by_class(Priority.LOW, _GRAPHS),
        examples=served(
            "--max-num-seqs 256 --max-cudagraph-capture-size 32",
            "--max-num-seqs 256 --max-cudagraph-capture-size 256",
        ),
        sources=(_GRAPHS,),
    ),
)
