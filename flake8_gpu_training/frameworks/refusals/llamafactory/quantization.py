"""Quantization while the model is loaded (model/model_utils/quantization.py, hparams)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.llamafactory.asked import (
    HPARAMS,
    TRAIN,
    TRAIN_ARGS,
    given,
    no_choice,
    on,
    zero3,
)
from flake8_gpu_training.language import Text

_SOURCE = "llamafactory/model/model_utils/quantization.py, configure_quantization"
_WIDTHS: Mapping[str, tuple[int, ...]] = {
    "bnb": (4, 8),
    "bitsandbytes": (4, 8),
    "hqq": (8, 6, 5, 4, 3, 2, 1),
    "eetq": (8,),
}
"""Bits that a method knows, under the names that the releases have for it."""
_CHECKPOINT = re.compile(r"(?i)gptq|awq|aqlm|int[48]|fp[48]|[48]-?bit|bnb|hqq|eetq|quant")
_EXPORTED = (8, 4, 3, 2)


def _may_be_quantized_already(options: Options) -> bool:
    """Whether the checkpoint's name says so: quantization_bit has no say then."""
    return bool(_CHECKPOINT.search(str(options["model_name_or_path"])))


def _unknown_width(options: Options) -> bool:
    known = _WIDTHS.get(options["quantization_method"])
    return (
        given(options, "quantization_bit")
        and not given(options, "export_quantization_bit")
        and known is not None
        and options["quantization_bit"] not in known
        and not no_choice(options, "quantization_method")
        and not _may_be_quantized_already(options)
    )


def _partitioned(options: Options) -> bool:
    method, bits = options["quantization_method"], options["quantization_bit"]
    if bits is None or given(options, "export_quantization_bit") or method not in _WIDTHS:
        return False
    if no_choice(options, "quantization_method"):
        return False  # the name of another release, by which nothing is quantized
    return (method in ("hqq", "eetq") or bits == 8) and zero3(options)


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "width-of-quantization",
        _SOURCE,
        ("quantization_bit", "quantization_method"),
        _unknown_width,
        Text("quantization_bit 改为 {known}", "write quantization_bit={known}"),
        Text(
            "{quantization_method} 不支持 {quantization_bit} 位",
            "{quantization_method} does not know {quantization_bit} bits",
        ),
        figures=lambda options: {
            "known": " or ".join(map(str, _WIDTHS[options["quantization_method"]]))
        },
        since="0.8.3",
    ),
    Refusal(
        "quantized-and-partitioned",
        _SOURCE,
        ("quantization_bit", "quantization_method", "deepspeed"),
        _partitioned,
        Text(
            "改用 4 位 bitsandbytes，或改用 ZeRO-2", "take 4 bits of bitsandbytes or ZeRO stage 2"
        ),
        Text(
            "ZeRO-3 不能切分 {quantization_method} {quantization_bit} 位权重",
            "ZeRO-3 does not split {quantization_bit}-bit weights of {quantization_method}",
        ),
        groups=TRAIN,
        since="0.8.3",
    ),
    Refusal(
        "width-of-export",
        _SOURCE,
        ("export_quantization_bit",),
        lambda options: (
            given(options, "export_quantization_bit")
            and options["export_quantization_bit"] not in _EXPORTED
        ),
        Text(
            "export_quantization_bit 改为 2、3、4 或 8",
            "write export_quantization_bit=2, 3, 4 or 8",
        ),
        Text(
            "GPTQ 不支持 {export_quantization_bit} 位",
            "GPTQ does not know {export_quantization_bit} bits",
        ),
    ),
    Refusal(
        "width-of-older-quantization",
        f"{HPARAMS}/model_args.py, ModelArguments.__post_init__",
        ("quantization_bit",),
        lambda options: options["quantization_bit"] not in (None, 8, 4),
        Text("quantization_bit 改为 4 或 8", "write quantization_bit=4 or 8"),
        Text("不支持 {quantization_bit} 位", "{quantization_bit} bits are not known"),
        until="0.8.2",
    ),
    Refusal(
        "placed-and-trained",
        TRAIN_ARGS,
        ("quantization_device_map",),
        lambda options: on(options, "do_train") and options["quantization_device_map"] == "auto",
        Text("删除 quantization_device_map", "drop quantization_device_map"),
        Text(
            "训练时量化模型不能分散到多张卡",
            "a quantized model that is trained is not spread over GPUs",
        ),
        groups=TRAIN,
    ),
    Refusal(
        "fp8-of-quantized",
        f"{HPARAMS}/parser.py, get_train_args",
        ("fp8", "quantization_bit"),
        lambda options: on(options, "fp8") and given(options, "quantization_bit"),
        Text("删除 fp8 或 quantization_bit", "drop fp8 or quantization_bit"),
        Text("FP8 训练不支持量化模型", "FP8 training does not take a quantized model"),
        write=lambda options: {"fp8": False},
        since="0.9.4",
    ),
)
