"""GPU948 to GPU952: how an inference engine fills its steps, and what it computes once."""

from __future__ import annotations

import re
from typing import Optional

from flake8_gpu_training.checks import _sglang_memory
from flake8_gpu_training.checks._engine import (
    is_lacking,
    is_set,
    lacks,
    of_engine,
    propose,
    propose_without,
    sglang_item,
    vllm_item,
)
from flake8_gpu_training.checks._engine_examples import served
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import by_itself, cannot_apply, cannot_tell, off, on
from flake8_gpu_training.checks._scale import memory_gib
from flake8_gpu_training.checks._vllm import CONSERVING, DOCS, OPTIMIZATION, V1
from flake8_gpu_training.checks.base import Check, Impact, Judgement, Priority
from flake8_gpu_training.facts import Setting
from flake8_gpu_training.frameworks.engines import Engine, Mode, amount
from flake8_gpu_training.frameworks.vllm_defaults import (
    A100_SMALL,
    HYBRID,
    HYBRID_CACHED,
    LARGEST_SINCE,
    V0_TOKENS,
    has_two_stacks,
    is_v1,
    pools,
)
from flake8_gpu_training.language import Text
from flake8_gpu_training.serving_memory import capacity_of

_PREFIXES = f"{DOCS}/features/automatic_prefix_caching.html"
_FORCED = ((0, 8), (0, 10, 2))
"""Releases whose V1 engine prefills in chunks whatever it is told (_set_default_args_v1)."""
_UNIQUE = re.compile(r"(?i)ocr|whisper|voxtral|asr|dots\.|glyph")
"""Models whose prompts are an image or a recording of their own."""
_FEW_TOKENS, _LARGE_GIB = 2048, 70
_FEW_SEQUENCES, _ROOM = 32, 4
"""A small limit of sequences, and how many times as many must fit before more are advised."""


# --- GPU948: chunked prefill ---


def _chunked(engine: Engine) -> Judgement:
    if _FORCED[0] <= engine.version <= _FORCED[1] and is_v1(engine):
        return on(f"{engine.called}, V1: enable_chunked_prefill")
    setting = engine.option("enable_chunked_prefill")
    if not setting.known:
        return cannot_tell(setting)
    if is_set(setting):
        return on(setting)
    if pools(engine):
        return _undecoding(setting)
    if has_two_stacks(engine) and not setting.explicit:
        return cannot_apply(_TWO_STACKS)
    if not setting.explicit:
        return off(
            Text("可选：V0 引擎默认整段预填充", "optional: V0 prefills whole by default"), setting
        )
    return propose_without(
        engine,
        setting,
        "a long prompt holds up the tokens of every other request",
        Text("分块预填充被关闭", "chunked prefill is switched off"),
        Text("启用分块预填充（V1 默认）", "leave chunked prefill on, as by default"),
        {"enable_chunked_prefill": True},
    )


_TWO_STACKS = Text("编码器-解码器模型不支持", "models of an encoder and a decoder do not take it")
_WHOLE = Text("该池化方式需要整段输入", "the way it pools takes each input as a whole")


def _undecoding(setting: Setting) -> Judgement:
    """Of a model that pools: off by itself where its pooling rules it out."""
    if not setting.explicit:
        return cannot_apply(_WHOLE)
    return off(Text("不生成的模型", "the model generates nothing"), setting)


# --- GPU949: tokens of a step ---


def _tokens(engine: Engine) -> Judgement:
    setting = engine.option("max_num_batched_tokens")
    if not setting.explicit:
        return _by_default(engine, setting, "max_num_batched_tokens")
    if not setting.known:
        return cannot_tell(setting)
    value, memory = amount(setting), memory_gib(engine.run)
    is_small = value is not None and value < _FEW_TOKENS
    if not is_small or memory is None or memory < _LARGE_GIB or engine.mode is not Mode.SERVE:
        return on(setting)
    if (engine.run.hardware.gpu or "").lower().startswith("a100"):
        return on(setting)  # vLLM's own measurements keep its steps small
    return propose(
        engine,
        f"steps of at most {value:g} tokens leave a GPU of {memory:g} GiB waiting in prefill",
        Text(f"每步最多 {value:g} 个 token", f"at most {value:g} tokens a step"),
        Text("吞吐优先设为 8192 以上", "8192 or more, where throughput counts"),
        {"max_num_batched_tokens": 8192},
        at=setting,
        share=0.5,
    )


def _by_default(engine: Engine, setting: Setting, name: str) -> Judgement:
    """A size that the engine chooses by the GPU, or the host by the batch of training."""
    if setting.known:
        return on(setting)
    if engine.is_open or engine.is_remote:
        return cannot_tell(setting)
    is_swift = engine.host is not None and engine.host.id == "swift"
    if is_swift and name == "max_num_seqs" and engine.mode is not Mode.RLHF_COLOCATE:
        return on("vllm_max_num_seqs=256 (ms-swift 3.4.0 to 4.6.0, arguments of vLLM)")
    if engine.host is not None and name in engine.host.defaults:
        title = engine.host.title
        return by_itself(
            Text(f"{title} 按训练的批设置 {name}", f"{title} sets {name} by the training's batch")
        )
    v1 = is_v1(engine)
    if v1:
        return on(f"{engine.called}: {name} {_by_gpu(engine, name)}")
    if v1 is False and name == "max_num_batched_tokens":
        return on(f"{engine.called}, V0: {name} {_by_length(engine)}")
    return cannot_tell(setting)


def _by_length(engine: Engine) -> str:
    """What V0 takes where the length, or whether prompts are cut, is not known."""
    chunked = engine.option("enable_chunked_prefill").value
    whole = f"max_model_len, at least {V0_TOKENS}"
    if chunked is True:
        return f"{V0_TOKENS}"
    return whole if chunked is False else f"{V0_TOKENS} in chunks, else {whole}"


def _by_gpu(engine: Engine, name: str) -> str:
    """What the engine chooses for small and for large GPUs (EngineArgs.get_batch_defaults)."""
    if not engine.is_server and "LLM" not in engine.groups:
        return "by default"
    if name == "max_num_seqs":
        small, large, largest = 256, 1024, 1024
    else:
        small, large = (2048, 8192) if engine.is_server else (8192, 16384)
        largest = 16384
    text = f"{small}, or {large} from {_LARGE_GIB} GiB on"
    if engine.version < A100_SMALL:
        return text
    if engine.version < LARGEST_SINCE:
        return f"{text} (not A100)"
    more = f", {largest} from 160 GiB on" if largest != large else ""
    return f"{text} (not A100, GB10){more}"


# --- GPU950: sequences of a step ---


def _sequences(engine: Engine) -> Judgement:
    setting = engine.option("max_num_seqs")
    if not setting.explicit:
        return _by_default(engine, setting, "max_num_seqs")
    if not setting.known:
        return cannot_tell(setting)
    value = amount(setting)
    if value is None or value >= _FEW_SEQUENCES or engine.mode is not Mode.SERVE:
        return on(setting)
    found = capacity_of(engine.run)
    held = found.concurrency if found is not None else None
    if held is None or held < _ROOM * value:
        return on(setting)
    wanted = min(256, 1 << (int(held).bit_length() - 1))
    return propose(
        engine,
        f"the KV cache holds {held:.0f} sequences of full length, {value:g} are decoded at once",
        Text(
            f"最多同时 {value:g} 条，KV 缓存可容纳 {held:.0f} 条最长序列",
            f"{value:g} at once, and room for {held:.0f} of full length",
        ),
        Text(f"提高到 {wanted}", f"raise it to {wanted}"),
        {"max_num_seqs": wanted},
        at=setting,
    )


# --- GPU951: prefixes ---


def _prefixes(engine: Engine) -> Judgement:
    setting = engine.option("enable_prefix_caching")
    is_hybrid = HYBRID.search(engine.run.model.name or "") is not None
    if not setting.known and is_hybrid and not setting.explicit and is_v1(engine):
        return cannot_tell(
            Text(
                "混合注意力模型是否默认启用，因版本而异",
                "releases differ in whether it is on for hybrid models",
            )
        )
    if not setting.known:
        return cannot_tell(setting)
    if is_set(setting):
        return on(setting)
    if pools(engine):
        return _undecoding(setting)
    if has_two_stacks(engine) and not setting.explicit:
        return cannot_apply(_TWO_STACKS)
    if _UNIQUE.search(engine.run.model.name or ""):
        return off(Text("输入很少重复", "its inputs seldom repeat"), setting)
    if is_hybrid and engine.version < HYBRID_CACHED:
        return off(Text("该模型的前缀缓存仍是实验性的", "experimental for this model"), setting)
    if not is_v1(engine):
        return off(
            Text("可选：V0 引擎命中率低时变慢", "optional: in V0 it costs where few hit"), setting
        )
    if engine.host is not None and engine.host.id == "swift":
        return off(Text("见采样的前缀缓存", "see prefix caching in rollouts"), setting)
    if engine.host is not None and engine.mode is not None and engine.mode.samples:
        return propose(
            engine,
            "the completions of a group share their prompt, which is computed for each of them",
            Text("前缀缓存未启用", "prefix caching is off"),
            Text("启用前缀缓存", "use prefix caching"),
            {"enable_prefix_caching": True},
            at=setting if setting.explicit else None,
            priority=Priority.LOW,
        )
    if engine.mode is Mode.OFFLINE:
        return off(
            Text("可选：提示有公共前缀时启用", "optional: where prompts share a prefix"), setting
        )
    if not setting.explicit:
        return off(Text("该模型默认不缓存前缀", "by default off for this model"), setting)
    return propose_without(
        engine,
        setting,
        "system prompts and earlier turns are computed again for each request",
        Text("前缀缓存被关闭", "prefix caching is switched off"),
        Text("启用前缀缓存（V1 默认）", "leave prefix caching on, as by default"),
        {"enable_prefix_caching": True},
    )


# --- GPU952: several long prompts ---


def _partial(engine: Engine) -> Judgement:
    found = _limit(engine)
    if found is not None:
        return on(found) if found.known else cannot_tell(found)
    if engine.is_open:
        return cannot_tell(Text("并非所有参数都已读到", "not all settings could be read"))
    if is_lacking(engine, "long_prefill_token_threshold"):
        return lacks(engine)
    return off(
        Text(
            "可选：长短提示混合时限制长提示每步的 token",
            "optional: a limit for long prompts, where they mix with short ones",
        )
    )


def _limit(engine: Engine) -> Optional[Setting]:
    for name, least in (("max_num_partial_prefills", 2), ("long_prefill_token_threshold", 1)):
        setting = engine.written(name)
        if setting is not None and (not setting.known or (amount(setting) or 0) >= least):
            return setting
    return None


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU948",
        "engine-chunked-prefill",
        Text("分块预填充", "Chunked prefill of the engine"),
        Priority.MEDIUM,
        of_engine(caches=True, vllm=_chunked, sglang=_sglang_memory.chunked),
        why="A prompt that is filled in at once stalls decoding; chunks share steps with it.",
        fix="Drop --no-enable-chunked-prefill.",
        items=(
            *vllm_item("E", "chunked-prefill", 1.5),
            *sglang_item("B", "chunked-prefill-size", 1),
        ),
        impact=by_class(Priority.MEDIUM, OPTIMIZATION),
        examples=served("--no-enable-chunked-prefill --max-model-len 8192", "--max-model-len 8192"),
        sources=(OPTIMIZATION,),
    ),
    Check(
        "GPU949",
        "engine-batched-tokens",
        Text("每步 token 数", "Tokens of a step"),
        Priority.LOW,
        of_engine(vllm=_tokens),
        why="Small steps favour the latency between tokens, large ones throughput and the first "
        "token.",
        fix="Set max_num_batched_tokens above 8192 for throughput, 2048 for latency.",
        items=vllm_item("E", "max-batched-tokens", 1),
        impact=by_class(Priority.LOW, OPTIMIZATION),
        examples=served(
            "--max-num-batched-tokens 512", "--max-num-batched-tokens 8192", gpus="h100:1"
        ),
        sources=(OPTIMIZATION,),
    ),
    Check(
        "GPU950",
        "engine-sequences",
        Text("并发序列数", "Sequences of a step"),
        Priority.LOW,
        of_engine(vllm=_sequences, sglang=_sglang_memory.running),
        why="Decoding reads all weights a step, for one sequence or for a hundred.",
        fix="Set max_num_seqs to what the KV cache holds.",
        ignore="The latency of each request must stay low.",
        items=(*vllm_item("E", "max-num-seqs", 1), *sglang_item("B", "max-running-requests", 1)),
        impact=by_class(Priority.LOW, OPTIMIZATION),
        examples=served(
            "--max-model-len 8192 --max-num-seqs 4",
            "--max-model-len 8192 --max-num-seqs 32",
            gpus="a100-80g:1",
        ),
        sources=(OPTIMIZATION, CONSERVING),
    ),
    Check(
        "GPU951",
        "engine-prefix-caching",
        Text("前缀缓存", "Prefix caching of the engine"),
        Priority.MEDIUM,
        of_engine(caches=True, vllm=_prefixes, sglang=_sglang_memory.prefixes),
        why="Requests that share a beginning share its keys and values; without hits it costs "
        "less than 1 %.",
        fix="Drop --no-enable-prefix-caching.",
        items=(*vllm_item("E", "prefix-caching", 1.5), *sglang_item("C", "radix-cache", 2.5)),
        impact=by_class(Priority.MEDIUM, f"{_PREFIXES}; {V1}"),
        examples=served("--no-enable-prefix-caching --max-model-len 8192", "--max-model-len 8192"),
        sources=(_PREFIXES, V1),
    ),
    Check(
        "GPU952",
        "engine-partial-prefills",
        Text("部分预填充", "Limits for long prompts"),
        Priority.LOW,
        of_engine(needs=("long_prefill_token_threshold",), caches=True, vllm=_partial),
        why="A long prompt may take every step's tokens; with a limit short ones pass it.",
        fix="Set long_prefill_token_threshold where long and short prompts mix.",
        items=vllm_item("E", "partial-prefills", 1),
        impact=Impact(source=OPTIMIZATION),
        sources=("vLLM 0.33 config/scheduler.py",),
    ),
)
