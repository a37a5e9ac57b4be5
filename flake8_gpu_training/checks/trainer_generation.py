"""GPU920 to GPU923: how Transformers' own ``generate`` decodes within a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable, Optional

from flake8_gpu_training.checks._judging import (
    Judge,
    cannot_apply,
    cannot_tell,
    off,
    on,
)
from flake8_gpu_training.checks._programs import calls, first_call
from flake8_gpu_training.checks._settings import SAMPLING, algorithm
from flake8_gpu_training.checks._trainer import item, of_trainer
from flake8_gpu_training.checks.base import Check, Impact, Judgement, Priority, Status
from flake8_gpu_training.facts import Call, Setting, known
from flake8_gpu_training.frameworks.at_hand import version_at_hand
from flake8_gpu_training.frameworks.called import given
from flake8_gpu_training.frameworks.reading import find, is_off, is_true
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_GENERATION = "transformers 4.57.6 and 5.24.0, generation/configuration_utils.py"
_CACHES = "https://huggingface.co/docs/transformers/kv_cache"
_ASSISTED = "Fast Inference via Speculative Decoding (Leviathan et al., 2023), arXiv:2211.17192"
_OPEN = Text("其参数未能全部读出", "its arguments are not all known")
_CONFIGS = (".GenerationConfig", ".generation_config.update")


def _generating(run: Run) -> Iterator[Call]:
    """Calls of ``generate``, of Transformers' models and not of an engine's."""
    for call in calls(run, ".generate"):
        if not call.receiver.startswith(("vllm.", "sglang.")):
            yield call


def _generates(run: Run) -> Optional[bool]:
    """Whether the model generates within the run; None when that cannot be told."""
    if is_true(find(run, "predict_with_generate")) or next(_generating(run), None) is not None:
        return True
    if algorithm(run) in SAMPLING:
        engine = run.practice("rollout_engine")
        if algorithm(run) in ("ppo", "gkd"):
            return True
        return None if not engine.known else engine.value in ("none", None)
    return False


def _samples_by_vllm(run: Run) -> bool:
    """Whether the completions that a run learns from come from vLLM, beside or within it."""
    return algorithm(run) in SAMPLING and run.value("rollout_engine") == "vllm"


def _of_generation(by_vllm: Text) -> Callable[[Judge], Judge]:
    """Judges for runs whose model generates by Transformers' own means.

    ``by_vllm``: what the engine does instead where the completions come from it.
    """

    def decorated(judge: Judge) -> Judge:
        @of_trainer
        def judged(run: Run) -> Judgement:
            answer = _generates(run)
            if answer is None:
                return cannot_tell(run.practice("rollout_engine"))
            if not answer and _samples_by_vllm(run):
                return cannot_apply(by_vllm)
            if not answer:
                return cannot_apply(Text("训练中不生成", "the run generates nothing"))
            told = judge(run)
            return cannot_tell(_OPEN) if run.is_open and told.status is Status.DISABLED else told

        return judged

    return decorated


def _options(run: Run, name: str) -> Iterator[Setting]:
    """What the program gives ``generate``, or a GenerationConfig, for one of its options."""
    for call in (*_generating(run), *calls(run, *_CONFIGS)):
        if name in call.keywords:
            argument = call.keywords[name]
            yield given(name, argument.value, call, argument)
    for program in run.python:
        for attribute in program.attributes:
            if attribute.name.endswith(f".{name}"):
                yield attribute
    told = find(run, name, f"generation_kwargs.{name}")
    if told is not None:
        yield told
    whole = find(run, "generation_kwargs")
    if whole is not None and isinstance(whole.value, dict) and name in whole.value:
        note = f"generation_kwargs: {name} = {whole.value[name]}"
        yield Setting(name, whole.value[name], whole.location, whole.origin, note)


def _first(run: Run, name: str) -> Optional[Setting]:
    """The first that is not switched off; an object of the program's own is on, too."""
    return next((s for s in _options(run, name) if not known(s.value) or not is_off(s.value)), None)


# trl 0.24.0, 1.0.0 and 1.16.0, trainer/grpo_trainer.py and rloo_trainer.py: disable_compile=True,
# given to generate at first and to its configuration since; 0.18.0 has no such argument.
_NEVER_COMPILES = (0, 24)
_PAGED = ("use_transformers_continuous_batching", "use_transformers_paged")
_IN_BATCHES = Text(
    "补全由 generate_batch 连续批处理生成，KV 缓存由其自行分页管理",
    "generate_batch samples the completions by continuous batching, with a paged KV cache of its "
    "own",
)


def _samples_itself(run: Run) -> bool:
    """Whether GRPOTrainer or RLOOTrainer alone generates, and nothing of the program's own."""
    return algorithm(run) in ("grpo", "rloo") and next(_generating(run), None) is None


def _samples_in_batches(run: Run) -> bool:
    return _samples_itself(run) and any(is_true(find(run, name)) for name in _PAGED)


# --- GPU920: the cache ----------------------------------------------------------------------

# Values of cache_implementation, and classes of caches (cache_utils.py).
_BY_NAME = {
    "static": "static",
    "sliding_window": "static",
    "hybrid": "static",
    "hybrid_chunked": "static",
    "offloaded": "offloaded",
    "offloaded_static": "offloaded",
    "offloaded_hybrid": "offloaded",
    "offloaded_hybrid_chunked": "offloaded",
    "quantized": "quantized",
}
_BY_CLASS = (
    (".StaticCache", "static"),
    (".HybridCache", "static"),
    (".QuantizedCache", "quantized"),
    (".QuantoQuantizedCache", "quantized"),
    (".HQQQuantizedCache", "quantized"),
    (".QuantizedCacheConfig", "quantized"),
    (".OffloadedCache", "offloaded"),
    (".OffloadedStaticCache", "offloaded"),
)


@_of_generation(
    Text(
        "补全由 vLLM 生成，其引擎自行分页管理 KV 缓存",
        "vLLM generates the completions, and its engine pages a KV cache of its own",
    )
)
def _cache(run: Run) -> Judgement:
    if _samples_in_batches(run):
        return cannot_apply(_IN_BATCHES)
    setting = _first(run, "cache_implementation")
    if setting is not None:
        if not known(setting.value):
            return cannot_tell(setting)
        kind = _BY_NAME.get(str(setting.value).lower())
        if kind is not None:
            return on(setting, kind)
    for name, kind in _BY_CLASS:
        call = first_call(run, name)
        if call is not None:
            return on(given("past_key_values", True, call), kind)
    return off(
        Text(
            "可选：静态缓存可编译，量化与卸载节省显存",
            "optional: a static cache can be compiled, quantized and offloaded ones save memory",
        )
    )


# --- GPU921: speculation ------------------------------------------------------------------------


@_of_generation(
    Text(
        "补全由 vLLM 生成：推测解码是其引擎的设置，与 generate 的参数无关",
        "vLLM generates the completions: speculation is a setting of its engine, "
        "and generate's arguments have no say",
    )
)
def _speculation(run: Run) -> Judgement:
    for name, kind in (
        ("assistant_model", "draft"),
        ("assistant_early_exit", "draft"),
        ("use_mtp", "draft"),
        ("prompt_lookup_num_tokens", "lookup"),
    ):
        setting = _first(run, name)
        if setting is not None:
            return on(setting, kind)
    return off(
        Text(
            "可选：批大小为 1 时用草稿模型或 prompt_lookup_num_tokens",
            "optional: a draft model or prompt_lookup_num_tokens, for single samples",
        )
    )


# --- GPU922, GPU923: compilation and long prompts -------------------------------------------------


@_of_generation(
    Text(
        "补全由 vLLM 生成，其引擎自行编译前向",
        "vLLM generates the completions, and its engine compiles the forward pass itself",
    )
)
def _compiled(run: Run) -> Judgement:
    if _samples_in_batches(run):
        return cannot_apply(_IN_BATCHES)
    if _samples_itself(run) and version_at_hand(run, "trl") >= _NEVER_COMPILES:
        return cannot_apply(
            Text(
                "TRL 生成补全时固定 disable_compile=True",
                "TRL generates the completions with disable_compile=True",
            )
        )
    setting = _first(run, "compile_config")
    if setting is not None:
        return on(setting)
    for call in calls(run, "torch.compile"):
        compiled = call.positional[0].text if call.positional else ""
        if compiled.endswith((".forward", ".generate")):
            return on(given("forward", True, call))
    cache = _first(run, "cache_implementation")
    disabled = _first(run, "disable_compile")
    if disabled is None and cache is not None and cache.value in ("static", "hybrid"):
        note = f"{cache.note or cache.written}: generate compiles with a static cache"
        return on(Setting("compile_config", True, cache.location, cache.origin, note))
    return off(
        Text(
            "可选：配合静态缓存编译 forward", "optional: compile forward, along with a static cache"
        )
    )


@_of_generation(
    Text(
        "补全由 vLLM 生成，其调度器自行分块预填充",
        "vLLM generates the completions, and its scheduler chunks the prefill itself",
    )
)
def _chunked(run: Run) -> Judgement:
    setting = _first(run, "prefill_chunk_size")
    if setting is not None:
        return on(setting)
    return off(
        Text("可选：提示很长时分块预填充", "optional: fills the cache in chunks for long prompts")
    )


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU920",
        "generation-cache",
        Text("KV 缓存", "KV cache"),
        Priority.LOW,
        _cache,
        why="A cache that grows token by token cannot be compiled; one in 16 bits fills the GPU.",
        fix='Give generate cache_implementation="static", "quantized" or "offloaded".',
        items=(
            *item("J", "static-kv-cache", 2, "cache", "static"),
            *item("J", "quantized-kv-cache", 2, "cache", "quantized"),
            *item("J", "offloaded-kv-cache", 2, "cache", "offloaded"),
        ),
        impact=Impact(source=_CACHES),
        sources=(_CACHES, _GENERATION),
    ),
    Check(
        "GPU921",
        "speculative-decoding",
        Text("推测解码", "Speculative decoding"),
        Priority.LOW,
        _speculation,
        why="A small model, or the prompt itself, proposes tokens that one pass then confirms.",
        fix="Give generate an assistant_model, or prompt_lookup_num_tokens.",
        items=(
            *item("J", "speculative-decoding", 1.5, "speculation", "draft"),
            *item("J", "prompt-lookup", 1.5, "speculation", "lookup"),
        ),
        impact=Impact(source=_ASSISTED),
        sources=(_ASSISTED, _GENERATION),
    ),
    Check(
        "GPU922",
        "compiled-forward",
        Text("编译前向", "Compiled forward pass"),
        Priority.LOW,
        _compiled,
        why="Decoding launches many small kernels a token; a compiled pass launches few.",
        fix="Use a static cache, with which generate compiles, or compile model.forward.",
        items=item("J", "compiled-forward", 1),
        impact=Impact(source=_CACHES),
        sources=(_CACHES, _GENERATION),
    ),
    Check(
        "GPU923",
        "prefill-chunking",
        Text("分块预填充", "Chunked prefill"),
        Priority.LOW,
        _chunked,
        why="The activations of a long prompt peak when the cache is filled in one pass.",
        fix="Give generate prefill_chunk_size.",
        items=item("J", "prefill-chunking", 0.5),
        impact=Impact(source=_GENERATION),
        sources=(_GENERATION,),
    ),
)
