"""What Transformers refuses where a model is loaded (modeling_utils.py, from_pretrained)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any, Callable

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.accepted import LOADING
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.torch_calls import TORCH_TYPES
from flake8_gpu_training.language import Text

_PATH = "transformers/modeling_utils.py, PreTrainedModel"
_SHORT: Mapping[str, str] = {"bf": "bfloat16", "fp": "float16", "fp32": "float32"}
_ATTENTION = (
    "eager",
    "sdpa",
    "flash_attention_2",
    "flash_attention_3",
    "flash_attention_4",
    "flex_attention",
    "paged_attention",
    "sdpa_paged",
    "eager_paged",
)
"""Of all releases: a later one has more of them."""
_OF_HUB = re.compile(r"paged\|.+|.+/.+")
"""A kernel of the Hub, or one for paged caches."""
_REGISTERS = ("AttentionInterface", "ALL_ATTENTION_FUNCTIONS")
_BITS = ("load_in_4bit", "load_in_8bit")


def _literal(options: Options, name: str) -> str:
    """A text that stands in the call itself; "" for anything else."""
    if name not in options.given or options.reference(name):
        return ""
    value = options[name]
    return value if isinstance(value, str) else ""


def _has_own_code(options: Options) -> bool:
    """Whether the model's code may be its own, which may take other names."""
    setting = options.given.get("trust_remote_code")
    return setting is not None and setting.value is not False


def _no_type(name: str) -> Callable[[Options], bool]:
    def refused(options: Options) -> bool:
        value = _literal(options, name)
        return bool(value) and value != "auto" and value not in TORCH_TYPES

    return refused


def _type_meant(name: str) -> Callable[[Options], Mapping[str, Any]]:
    def figures(options: Options) -> Mapping[str, Any]:
        value = _literal(options, name).lower().rpartition(".")[2]
        short = _SHORT["fp32"] if "32" in value else _SHORT.get(value[:2], "")
        near = difflib.get_close_matches(value, TORCH_TYPES, 1)
        return {"meant": short or (near[0] if near else "bfloat16")}

    return figures


def _type(name: str) -> Refusal:
    meant = _type_meant(name)
    return Refusal(
        f"loaded-as-no-type-{name.replace('_', '-')}",
        f"{_PATH}.from_pretrained",
        (name,),
        _no_type(name),
        Text(f"{name} 写成 {{meant}} 或 auto", f"write {{meant}} or auto for {name}"),
        Text(f"torch 没有类型 {{{name}}}", f"torch has no type {{{name}}}"),
        write=lambda options: {name: meant(options)["meant"]},
        figures=meant,
        groups=(LOADING,),
        since="4.38.2",
    )


def _no_attention(options: Options) -> bool:
    value = _literal(options, "attn_implementation")
    if not value or _has_own_code(options) or _registers(options):
        return False
    return value not in _ATTENTION and not _OF_HUB.fullmatch(value)


def _registers(options: Options) -> bool:
    """Whether the project may add attention functions of its own."""
    return any(
        item.name in _REGISTERS for file in options.run.python for item in file.imports
    ) or any(
        one in call.name for file in options.run.python for call in file.calls for one in _REGISTERS
    )


def _attention_meant(options: Options) -> Mapping[str, Any]:
    value = _literal(options, "attn_implementation").lower()
    if re.match(r"fa|flash", value):
        return {"meant": "flash_attention_3" if value.endswith("3") else "flash_attention_2"}
    near = difflib.get_close_matches(value, _ATTENTION, 1)
    return {"meant": near[0] if near else "sdpa"}


def _is_on(options: Options, name: str) -> bool:
    return name in options.given and options[name] is True


def _quantizes_by_keyword(options: Options) -> bool:
    return any(_is_on(options, name) for name in _BITS) and not _has_own_code(options)


def _quantizes_twice(options: Options) -> bool:
    own = options.given.get("quantization_config")
    if own is None or (known(own.value) and own.value is None):
        return False
    if not known(own.value) and "(" not in own.text:
        raise UndecidedError("quantization_config")  # it may be None
    return any(_is_on(options, name) for name in _BITS)


def _width(options: Options) -> Mapping[str, Any]:
    return {"bits": next(name for name in _BITS if _is_on(options, name))}


REFUSALS: tuple[Refusal, ...] = (
    _type("torch_dtype"),
    _type("dtype"),
    Refusal(
        "attention-unknown",
        f"{_PATH}.get_correct_attn_implementation",
        ("attn_implementation",),
        _no_attention,
        Text("attn_implementation 写成 {meant}", "give attn_implementation {meant}"),
        Text("没有名为 {attn_implementation} 的实现", "there is no {attn_implementation}"),
        write=lambda options: {"attn_implementation": _attention_meant(options)["meant"]},
        figures=_attention_meant,
        groups=(LOADING,),
        since="4.38.2",
    ),
    Refusal(
        "quantized-by-keyword",
        f"{_PATH}.from_pretrained",
        _BITS,
        _quantizes_by_keyword,
        Text(
            "改用 quantization_config=BitsAndBytesConfig({bits}=True)",
            "pass quantization_config=BitsAndBytesConfig({bits}=True) in place of {bits}",
        ),
        Text(
            "从 5.0 起 {bits} 会传给模型的构造函数，后者没有这个参数",
            "since 5.0 {bits} goes to the model, which has no such parameter",
        ),
        figures=_width,
        groups=(LOADING,),
        since="5.0.0",
    ),
    Refusal(
        "quantized-twice",
        f"{_PATH}.from_pretrained",
        _BITS,
        _quantizes_twice,
        Text("去掉 {bits}", "drop {bits}"),
        Text(
            "quantization_config 已决定位宽，不能同时给出",
            "quantization_config tells the width, and both are not taken",
        ),
        figures=_width,
        groups=(LOADING,),
        since="4.38.2",
        until="4.57.6",
    ),
)
