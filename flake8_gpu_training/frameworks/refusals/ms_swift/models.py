"""What ms-swift refuses of models: names, RoPE scaling, quantization, task, adapters."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any, Callable

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.refusals.ms_swift._asked import (
    INFER,
    MEGATRON,
    SFT,
    TRAIN,
    drop,
    has_plugins,
    items,
    none_of,
    setting,
    tuner,
    tuner_name,
    value,
)
from flake8_gpu_training.frameworks.refusals.ms_swift.names import (
    MODEL_TYPES,
    TEMPLATES,
    Names,
    names_of,
)
from flake8_gpu_training.language import Text

_MODEL = "swift/arguments/base_args/model_args.py, ModelArguments"
_QUANT = "swift/arguments/base_args/quant_args.py, QuantizeArguments.get_quantization_config"
_TUNER = "swift/pipelines/train/tuner.py"

_FROM_CHECKPOINT = (
    "adapters",
    "ckpt_dir",
    "mcore_model",
    "mcore_adapter",
    "mcore_adapters",
    "load",
    "adapter_load",
    "resume_from_checkpoint",
)
"""Checkpoints whose args.json may name the model."""


def _no_model(options: Options) -> bool:
    return none_of(options, "model", *_FROM_CHECKPOINT)


_SCALINGS = ("linear", "dynamic", "yarn")


def _scaling(options: Options) -> Any:
    """``rope_scaling`` as it is parsed: a mapping, or a name."""
    found = options["rope_scaling"]
    if not isinstance(found, str):
        return found
    if "/" in found or found.endswith(".json"):
        raise UndecidedError("rope_scaling")  # a file
    try:
        return json.loads(found)
    except ValueError:
        return found


def _unknown_scaling(options: Options) -> bool:
    found = _scaling(options)
    return isinstance(found, str) and found not in _SCALINGS and found != ""


def _scaling_of_unknown_size(options: Options) -> bool:
    found = _scaling(options)
    if options["max_model_len"] is not None or not found or options["load_args"]:
        return False
    if isinstance(found, str):
        return found in _SCALINGS
    kind = found.get("rope_type", found.get("type", "default"))
    return "factor" not in found and kind != "default"


_AT_LOADING = ("bnb", "hqq", "eetq", "quanto")


def _no_bits(options: Options) -> bool:
    method = options["quant_method"]
    if options["quant_bits"] is not None or value(options, "load_args", False):
        return False
    return method in _AT_LOADING


def _no_bits_to_export(options: Options) -> bool:
    return options["quant_bits"] is None and options["quant_method"] not in (None, "fp8")


def _other_bits(method: str, *bits: Any) -> Any:
    texts = set(map(str, bits))

    def holds(options: Options) -> bool:
        if options["quant_method"] != method or options["quant_bits"] is None:
            return False
        return str(options["quant_bits"]) not in texts

    return holds


def _no_labels(options: Options) -> bool:
    if value(options, "rlhf_type") == "rm" or value(options, "load_args", False):
        return False
    return options["task_type"] == "seq_cls" and options["num_labels"] is None


_TUNERS = frozenset(
    """
    lora full longlora adalora llamapro adapter vera boft fourierft reft bone ia3 lora_llm dummy
    """.split()  # noqa: SIM905
)
"""Of all releases; external plugins register more."""


def _unknown_tuner(options: Options) -> bool:
    return not has_plugins(options) and tuner(options) not in _TUNERS


def _several_adapters(options: Options) -> bool:
    return len(items(options, "adapters")) > 1 and tuner(options) != "full"


def _long_lora(options: Options) -> bool:
    return (
        options["tuner_backend"] == "unsloth"
        and tuner(options) == "longlora"
        and not value(options, "resume_from_checkpoint")
    )


def _count_of_adapters(options: Options) -> Mapping[str, Any]:
    return {"count": len(items(options, "adapters"))}


def _known(options: Options, names: Names) -> frozenset[str]:
    """The names of the releases that may be installed."""
    found = options.accepted.parts[0].at_hand
    releases = (found.table.versions[index] for index in found.allowed)
    return frozenset().union(*(names_of(names, release) for release in releases))


def _unknown_name(parameter: str, names: Names) -> Callable[[Options], bool]:
    def holds(options: Options) -> bool:
        found = options[parameter]
        if not isinstance(found, str) or has_plugins(options):
            return False
        return found not in _known(options, names)

    return holds


_ALIKE = 0.8
"""How much of a misspelt name must agree with the real one (difflib's ratio)."""


def _nearest(parameter: str, names: Names) -> Callable[[Options], Mapping[str, Any]]:
    """The name that is meant: one with another number is another model's."""

    def found(options: Options) -> Mapping[str, Any]:
        written = options[parameter]
        numbered = sorted(n for n in _known(options, names) if _digits(n) == _digits(written))
        near = difflib.get_close_matches(written, numbered, 1, _ALIKE)
        return {parameter: near[0]} if near else {}

    return found


def _digits(name: str) -> str:
    return "".join(filter(str.isdigit, name))


def _meant(parameter: str, names: Names) -> Callable[[Options], Mapping[str, Any]]:
    def found(options: Options) -> Mapping[str, Any]:
        near = _nearest(parameter, names)(options)
        if not near:
            return {"zh": f"去掉 {parameter}", "en": f"drop {parameter}"}
        told = f"{parameter}={near[parameter]}"
        return {"zh": f"写 {told}", "en": f"write {told}"}

    return found


def _unknown(parameter: str, names: Names, why: Text, source: str, since: str = "") -> Refusal:
    return Refusal(
        f"unknown-{parameter.replace('_', '-')}",
        source,
        (parameter,),
        _unknown_name(parameter, names),
        Text("{zh}", "{en}"),
        why,
        write=_nearest(parameter, names),
        figures=_meant(parameter, names),
        since=since,
        groups=(*TRAIN, "infer", "deploy", "rollout", "export"),
    )


REFUSALS: tuple[Refusal, ...] = (
    _unknown(
        "model_type",
        MODEL_TYPES,
        Text("没有模型类型 {model_type}", "there is no type of models {model_type}"),
        "swift/model/model_meta.py, _get_model_info",
    ),
    _unknown(
        "template",
        TEMPLATES,
        Text("没有模板 {template}", "there is no template {template}"),
        "swift/template/register.py, get_template_meta",
        since="4.0.4",
    ),
    Refusal(
        "no-model",
        f"{_MODEL}.__post_init__",
        ("model",),
        _no_model,
        Text("设置 model 为模型 ID 或路径", "give model, the id or path of a model"),
        Text("没有 model", "no model is given"),
        groups=(*SFT, *INFER, "export", "sampling", *MEGATRON),
    ),
    Refusal(
        "unknown-rope-scaling",
        f"{_MODEL}._init_rope_scaling",
        ("rope_scaling",),
        _unknown_scaling,
        Text(
            "rope_scaling 设为 linear、dynamic、yarn 或 JSON",
            "write rope_scaling=linear, dynamic, yarn, or JSON",
        ),
        Text("rope_scaling 没有类型 {rope_scaling}", "rope_scaling knows no {rope_scaling}"),
        since="3.7.3",
        groups=(*TRAIN, *INFER, "export"),
    ),
    Refusal(
        "rope-scaling-without-length",
        f"{_MODEL}._init_rope_scaling",
        ("rope_scaling", "max_model_len"),
        _scaling_of_unknown_size,
        Text(
            "设置 max_model_len，或在 rope_scaling 中给出 factor",
            "give max_model_len, or a factor in rope_scaling",
        ),
        Text(
            "rope_scaling 没有 factor 时由 max_model_len 计算",
            "without a factor in rope_scaling it follows from max_model_len, which is not set",
        ),
        since="3.7.3",
        groups=TRAIN,
    ),
    Refusal(
        "quantization-without-bits",
        _QUANT,
        ("quant_method", "quant_bits"),
        _no_bits,
        Text("设置 quant_bits，例如 4", "give quant_bits, 4 for example"),
        Text("quant_method={quant_method} 需要 quant_bits", "quant_method={quant_method} needs it"),
        write=setting(quant_bits=4),
        groups=(*SFT, "sampling"),
    ),
    Refusal(
        "export-without-bits",
        "swift/arguments/export_args.py, ExportArguments.__post_init__",
        ("quant_method", "quant_bits"),
        _no_bits_to_export,
        Text("设置 quant_bits，例如 4", "give quant_bits, 4 for example"),
        Text("quant_method={quant_method} 需要 quant_bits", "quant_method={quant_method} needs it"),
        write=setting(quant_bits=4),
        groups=("export",),
    ),
    Refusal(
        "export-without-method",
        "swift/arguments/export_args.py, ExportArguments.__post_init__",
        ("quant_bits", "quant_method"),
        lambda options: bool(options["quant_bits"]) and none_of(options, "quant_method"),
        Text(
            "设置 quant_method：awq、gptq、bnb 或 fp8", "give quant_method: awq, gptq, bnb or fp8"
        ),
        Text("只有 quant_bits，没有 quant_method", "quant_bits alone names no method"),
        groups=("export",),
    ),
    Refusal(
        "bits-of-bnb",
        _QUANT,
        ("quant_bits", "quant_method"),
        _other_bits("bnb", 4, 8),
        Text("quant_bits 设为 4 或 8", "write quant_bits=4 or 8"),
        Text("bnb 不支持 {quant_bits} 位", "bnb has no {quant_bits} bits"),
        write=setting(quant_bits=4),
        groups=(*SFT, *INFER, "export", "sampling"),
    ),
    Refusal(
        "bits-of-quanto",
        _QUANT,
        ("quant_bits", "quant_method"),
        _other_bits("quanto", 2, 4, 8, "float8"),
        Text("quant_bits 设为 2、4、8 或 float8", "write quant_bits=2, 4, 8 or float8"),
        Text("quanto 不支持 {quant_bits} 位", "quanto has no {quant_bits} bits"),
        write=setting(quant_bits=4),
        groups=(*SFT, *INFER, "sampling"),
    ),
    Refusal(
        "classes-without-number",
        "swift/model/model_meta.py, get_model_info_meta",
        ("task_type", "num_labels"),
        _no_labels,
        Text("设置 num_labels 为类别数", "give num_labels, the number of classes"),
        Text("task_type=seq_cls 需要 num_labels", "task_type=seq_cls needs it"),
        since="3.6.4",
        groups=TRAIN,
    ),
    Refusal(
        "unknown-tuner",
        f"{_TUNER}, prepare_adapter",
        ("tuner_type", "train_type"),
        _unknown_tuner,
        Text(
            "{tuner_name} 设为 lora、full、adalora 等",
            "write {tuner_name}=lora, full, adalora or another of its list",
        ),
        Text("没有名为 {tuner} 的调优方式", "there is no tuner {tuner}"),
        figures=tuner_name,
        groups=SFT,
    ),
    Refusal(
        "several-adapters",
        f"{_TUNER}, TunerMixin.prepare_model",
        ("adapters",),
        _several_adapters,
        Text("adapters 只保留一个", "keep one of the adapters"),
        Text("训练只接受 1 个，给出了 {count} 个", "training takes one, {count} are given"),
        figures=_count_of_adapters,
        since="3.8.3",
        groups=SFT,
    ),
    Refusal(
        "unsloth-with-longlora",
        f"{_TUNER}, prepare_adapter",
        ("tuner_backend", "tuner_type", "train_type"),
        _long_lora,
        drop("tuner_backend=unsloth"),
        Text("Unsloth 不支持 LongLoRA", "Unsloth has no LongLoRA"),
        write=setting(tuner_backend="peft"),
        groups=SFT,
    ),
)
