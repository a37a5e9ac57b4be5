"""What SGLang refuses of the model: none at all, and heads that its GPUs cannot share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.refusals.served import fitting, heads, is_on, positive
from flake8_gpu_training.language import Text

_TP = ("tp_size", "tensor_parallel_size")
_DP = ("dp_size", "data_parallel_size")
_ASKS = re.compile(r"(?i)(?:.*/)?(?:(?:meta-)?llama-?[23]|qwen(?:1\.5|2|2\.5|3)-|mistral-)[\w.-]*")
"""Models whose attention asserts it in all the releases that were read."""
_OTHERWISE = re.compile(r"(?i)vl|omni|audio|next|vision|coder-next|embed|rerank")
_SPLIT = ("attn_cp_size", "attention_context_parallel_size", "attn_dp_size", "enable_prefill_cp")


def _no_model(options: Options) -> bool:
    words = [word.text for word in options.run.command.words] if options.run.command else []
    if not any(word.endswith("launch_server") for word in words):
        return False
    return not any(options.is_given(name) for name in ("model_path", "model", "config"))


def _shares(options: Options) -> int:
    """GPUs that share the heads of one copy of the attention."""
    if any(name in options.given for name in _SPLIT):
        raise UndecidedError("attention")
    size = positive(options, *_TP)
    if not is_on(options, "enable_dp_attention"):
        return size
    copies = positive(options, *_DP)
    if size % copies:
        raise UndecidedError("attention")  # told by itself
    return size // copies


def _uneven(options: Options) -> bool:
    named = options["model_path"]
    if not isinstance(named, str) or not _ASKS.fullmatch(named) or _OTHERWISE.search(named):
        return False
    return heads(options, "model_path") % _shares(options) != 0


def _shape(options: Options) -> Mapping[str, Any]:
    total, size = heads(options, "model_path"), _shares(options)
    return {"heads": total, "size": size, "fitting": fitting(total, size), "--tp": "|".join(_TP)}


OF_MODEL: tuple[Refusal, ...] = (
    Refusal(
        "sglang-no-model",
        "sglang/srt/server_args.py, ServerArgs.add_cli_args: required",
        ("model_path",),
        _no_model,
        Text("加上 --model-path", "add --model-path"),
        Text("没有指定模型", "no model is named"),
        groups=("serve",),
    ),
    Refusal(
        "sglang-heads",
        "sglang/srt/models/llama.py, qwen2.py, qwen3.py, qwen2_moe.py, qwen3_moe.py",
        ("tp_size", "tensor_parallel_size", "model_path"),
        _uneven,
        Text(
            "{--tp} 设为 {fitting} 等能整除 {heads} 的值",
            "set {--tp} to {fitting} or another divisor of {heads}",
        ),
        Text(
            "{model_path} 有 {heads} 个注意力头，不能由 {size} 块 GPU 均分",
            "{model_path} has {heads} attention heads, which {size} GPUs cannot share",
        ),
        figures=_shape,
        raiser="SGLang",
    ),
)
