"""What vLLM refuses of ``speculative_config``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.refusals.served import positive
from flake8_gpu_training.language import Text

_SPECULATIVE = "vllm/config/speculative.py, SpeculativeConfig"
_TP = "tensor_parallel_size"
_SUFFIX = {
    "suffix_decoding_max_tree_depth": (1, None),
    "suffix_decoding_max_cached_requests": (0, None),
    "suffix_decoding_max_spec_factor": (0, None),
    "suffix_decoding_min_token_prob": (0, 1),
}
"""Least and greatest values."""


def _draft(options: Options) -> Mapping[str, Any]:
    entries = options.mapping("speculative_config")
    if not all(map(known, entries.values())):
        raise UndecidedError("speculative_config")
    return entries


def _no_tokens(options: Options) -> bool:
    number = _draft(options).get("num_speculative_tokens")
    return isinstance(number, int) and not isinstance(number, bool) and number <= 0


def _tensors_of_draft(options: Options) -> bool:
    return _draft(options).get("tensor_parallel_size") is not None


def _uneven_draft(options: Options) -> bool:
    size = _draft(options).get("draft_tensor_parallel_size")
    return isinstance(size, int) and size not in (1, positive(options, _TP))


def _tokens_of_nothing(options: Options) -> bool:
    entries = _draft(options)
    if any(entries.get(name) is not None for name in ("model", "method")):
        return False
    return entries.get("num_speculative_tokens") is not None


def _turned(options: Options) -> bool:
    least, most = (_draft(options).get(f"prompt_lookup_{end}") for end in ("min", "max"))
    return isinstance(least, int) and isinstance(most, int) and least > most


def _out_of_range(options: Options) -> str:
    """The first limit of suffix decoding that is out of its range."""
    entries = _draft(options)
    if entries.get("method") != "suffix":
        return ""
    for name, (least, most) in _SUFFIX.items():
        value = entries.get(name)
        if isinstance(value, (int, float)) and (value < least or (most and value > most)):
            return name
    return ""


OF_DRAFTS: tuple[Refusal, ...] = (
    Refusal(
        "vllm-no-draft-tokens",
        f"{_SPECULATIVE}._verify_args",
        ("speculative_config",),
        _no_tokens,
        Text("num_speculative_tokens 设为正数", "set num_speculative_tokens above 0"),
        Text("推测解码每步至少一个 token", "speculation drafts at least one token a step"),
        raiser="vLLM",
        since="0.10.2",
    ),
    Refusal(
        "vllm-tensors-of-draft",
        f"{_SPECULATIVE}._verify_args",
        ("speculative_config",),
        _tensors_of_draft,
        Text(
            "在 speculative_config 中改写 draft_tensor_parallel_size",
            "write draft_tensor_parallel_size in speculative_config",
        ),
        Text(
            "speculative_config 不接受 tensor_parallel_size",
            "speculative_config takes no tensor_parallel_size",
        ),
        raiser="vLLM",
        since="0.19.1",
    ),
    Refusal(
        "vllm-uneven-draft",
        f"{_SPECULATIVE}._verify_and_get_draft_tp",
        ("speculative_config", _TP),
        _uneven_draft,
        Text(
            "draft_tensor_parallel_size 设为 1 或 {tensor_parallel_size}",
            "set draft_tensor_parallel_size to 1 or {tensor_parallel_size}",
        ),
        Text(
            "草稿模型只能在 1 个或与目标模型相同数目的卡上",
            "the draft model runs on one GPU or on as many as its target",
        ),
        raiser="vLLM",
        since="0.10.2",
    ),
    Refusal(
        "vllm-tokens-of-nothing",
        f"{_SPECULATIVE}.__post_init__",
        ("speculative_config",),
        _tokens_of_nothing,
        Text(
            "在 speculative_config 中写上 model 或 method",
            "name a model or method in speculative_config",
        ),
        Text("没有指定由谁起草", "nothing is named that drafts"),
        raiser="vLLM",
        since="0.14.1",
    ),
    Refusal(
        "vllm-lookup-turned",
        f"{_SPECULATIVE}.__post_init__",
        ("speculative_config",),
        lambda options: _turned(options) and _draft(options).get("method") == "ngram",
        Text(
            "prompt_lookup_min 不大于 prompt_lookup_max",
            "set prompt_lookup_min to at most prompt_lookup_max",
        ),
        Text("最短的大于最长的", "the shortest is longer than the longest"),
        raiser="vLLM",
        since="0.8.5",
    ),
    Refusal(
        "vllm-suffix-limits",
        f"{_SPECULATIVE}._validate_suffix_decoding",
        ("speculative_config",),
        lambda options: bool(_out_of_range(options)),
        Text("改小或改大 {limit} 到允许范围", "set {limit} within its range"),
        Text("{limit} 超出范围", "{limit} is out of it"),
        figures=lambda options: {"limit": _out_of_range(options)},
        raiser="vLLM",
        since="0.14.1",
    ),
)
