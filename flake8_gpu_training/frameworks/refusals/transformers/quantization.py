"""What the configurations of quantization refuse (transformers/utils/quantization_config.py)."""

from __future__ import annotations

from typing import Any, Callable

from flake8_gpu_training.frameworks.refusals import fields
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.torch_calls import TORCH_TYPES
from flake8_gpu_training.language import Text

_PATH = "transformers/utils/quantization_config.py"


def _source(group: str) -> str:
    return f"{_PATH}, {group}.post_init"


def _among(group: str, parameter: str, *choices: Any, since: str = "", until: str = "") -> Refusal:
    return fields.among(group, parameter, choices, _source(group), since=since, until=until)


def _typed(group: str, parameter: str, kind: type, *, optional: bool = False) -> Refusal:
    return fields.typed(group, parameter, kind, _source(group), optional=optional)


def _satisfying(
    group: str, parameter: str, holds: Callable[[Any], bool], zh: str, en: str
) -> Refusal:
    return fields.satisfying(group, parameter, holds, Text(zh, en), _source(group))


_ABOVE_0 = ("正整数", "a whole number above 0")


def _group_size(size: int) -> bool:
    return size == -1 or size > 0


# --- bitsandbytes -----------------------------------------------------------------------

_BNB = "BitsAndBytesConfig"
_STORAGE = ("float16", "float32", "int8", "uint8", "float64", "bfloat16")


def _is_type(parameter: str, texts: tuple[str, ...]) -> Callable[[Options], bool]:
    """Whether a parameter is neither a torch type nor the name of one of ``texts``."""

    def refused(options: Options) -> bool:
        if options.reference(parameter):
            return False
        value = options[parameter]
        if isinstance(value, str):
            return value not in texts
        return value is not None

    return refused


def _torch_type(parameter: str, texts: tuple[str, ...], since: str = "") -> Refusal:
    return Refusal(
        f"{_BNB}.{parameter}",
        f"{_PATH}, {_BNB}.__init__",
        (parameter,),
        _is_type(parameter, texts),
        Text(f"{parameter} 写成 torch 类型，如 torch.bfloat16", f"give {parameter} a torch type"),
        Text(f"不能取 {{{parameter}}}", f"it cannot be {{{parameter}}}"),
        write=lambda options: {parameter: "torch.bfloat16"},
        groups=(_BNB,),
        since=since,
    )


_BITS_AND_BYTES = (
    fields.exclusive(
        _BNB,
        "bnb-two-widths",
        "load_in_8bit",
        "load_in_4bit",
        Text("一个模型只能有一种位宽", "a model is loaded in one width"),
        f"{_PATH}, {_BNB}.__init__",
        since="4.38.2",
    ),
    fields.typed(_BNB, "load_in_4bit", bool, _source(_BNB), since="4.40.2"),
    fields.typed(_BNB, "load_in_8bit", bool, _source(_BNB), since="4.40.2"),
    _typed(_BNB, "llm_int8_threshold", float),
    _typed(_BNB, "llm_int8_skip_modules", list, optional=True),
    _typed(_BNB, "llm_int8_enable_fp32_cpu_offload", bool),
    _typed(_BNB, "llm_int8_has_fp16_weight", bool),
    _typed(_BNB, "bnb_4bit_quant_type", str),
    _typed(_BNB, "bnb_4bit_use_double_quant", bool),
    _torch_type("bnb_4bit_compute_dtype", TORCH_TYPES),
    _torch_type("bnb_4bit_quant_storage", _STORAGE, since="4.42.4"),
)

# --- GPTQ, AWQ, AutoRound ---------------------------------------------------------------

_AWQ_BACKENDS = (
    "auto",
    "autoawq",
    "auto_trainable",
    "machete",
    "marlin",
    "exllama_v2",
    "exllama_v1",
    "gemm",
    "gemm_triton",
    "gemv",
    "gemv_fast",
    "torch_awq",
    "torch_fused_awq",
    "llm-awq",
)
_CORPORA = ("wikitext2", "c4", "c4-new")


def _no_corpus(options: Options) -> bool:
    dataset = options["dataset"]
    if isinstance(dataset, str):
        return dataset not in (*_CORPORA, "ptb", "ptb-new")
    return dataset is not None and not isinstance(dataset, (list, tuple))


_CALIBRATED = (
    _among("GPTQConfig", "bits", 2, 3, 4, 8),
    _satisfying("GPTQConfig", "group_size", _group_size, "正整数或 -1", "a number above 0, or -1"),
    _satisfying(
        "GPTQConfig",
        "damp_percent",
        lambda value: 0 < value < 1,
        "0 与 1 之间的数",
        "a number between 0 and 1",
    ),
    Refusal(
        "GPTQConfig.dataset",
        _source("GPTQConfig"),
        ("dataset",),
        _no_corpus,
        Text(
            "dataset 取 wikitext2、c4、c4-new，或文本列表",
            "give dataset wikitext2, c4 or c4-new, or a list of texts",
        ),
        Text("不能取 {dataset}", "it cannot be {dataset}"),
        groups=("GPTQConfig",),
    ),
    _among("AutoRoundConfig", "bits", 2, 3, 4, 8, until="5.16.1"),
    Refusal(
        "AutoRoundConfig.width",
        _source("AutoRoundConfig"),
        ("bits",),
        lambda options: options["bits"] not in range(2, 9),
        Text("bits 取 2 到 8", "give bits 2 to 8"),
        Text("不能取 {bits}", "it cannot be {bits}"),
        groups=("AutoRoundConfig",),
        since="5.17.0",
    ),
    _satisfying(
        "AutoRoundConfig", "group_size", _group_size, "正整数或 -1", "a number above 0, or -1"
    ),
    _among("AwqConfig", "format", "gemm", "gemv", "gemv_fast", "llm-awq", since="5.0.0"),
    _among("AwqConfig", "backend", *_AWQ_BACKENDS, since="5.0.0"),
    fields.satisfying(
        "AwqConfig",
        "version",
        lambda value: value.lower() in ("gemm", "gemv", "exllama", "ipex"),
        Text(" gemm、gemv、exllama 或 ipex", "gemm, gemv, exllama or ipex"),
        _source("AwqConfig"),
        until="4.57.6",
    ),
)

# --- the others -------------------------------------------------------------------------


def _fpquant(name: str, parameter: str, choices: dict[str, tuple[Any, ...]]) -> Refusal:
    """What goes with the type of the forward pass."""

    def allowed(options: Options) -> tuple[Any, ...]:
        return choices.get(options["forward_dtype"], (options[parameter],))

    return Refusal(
        name,
        _source("FPQuantConfig"),
        (parameter, "forward_dtype"),
        lambda options: options[parameter] not in (None, *allowed(options)),
        Text(f"{parameter} 取 {{allowed}}", f"give {parameter} one of {{allowed}}"),
        Text(
            f"forward_dtype={{forward_dtype}} 不支持 {{{parameter}}}",
            f"forward_dtype={{forward_dtype}} has no {{{parameter}}}",
        ),
        figures=lambda options: {"allowed": ", ".join(map(str, allowed(options)))},
        groups=("FPQuantConfig",),
        since="5.0.0",
    )


def _not_pairs(sizes: Any) -> bool:
    return sizes is None or (len(sizes) == 2 and all(size > 0 for size in sizes))


def _hadamard(options: Options) -> bool:
    return bool(options["hadamard_size"] % options["group_size"])


_OTHERS = (
    _among("HqqConfig", "axis", 0, 1),
    _typed("AqlmConfig", "in_group_size", int),
    _typed("AqlmConfig", "out_group_size", int),
    _typed("AqlmConfig", "num_codebooks", int),
    _typed("AqlmConfig", "nbits_per_codebook", int),
    _typed("AqlmConfig", "linear_weights_not_to_quantize", list, optional=True),
    _satisfying(
        "VptqLayerConfig", "is_indice_packed", lambda value: value is not False, " True", "True"
    ),
    _satisfying(
        "VptqConfig", "enable_proxy_error", lambda value: value is not True, " False", "False"
    ),
    _among("QuantoConfig", "weights", "float8", "int8", "int4", "int2"),
    _among("QuantoConfig", "activations", None, "int8", "float8"),
    _among("EetqConfig", "weights", "int8"),
    _among("HiggsConfig", "bits", 2, 3, 4),
    _among("HiggsConfig", "p", 1, 2),
    _among("HiggsConfig", "group_size", 64, 128, 256),
    Refusal(
        "HiggsConfig.hadamard_size",
        _source("HiggsConfig"),
        ("hadamard_size", "group_size"),
        _hadamard,
        Text(
            "hadamard_size 设为 group_size（{group_size}）的倍数",
            "make hadamard_size a multiple of group_size ({group_size})",
        ),
        Text("{hadamard_size} 不是", "{hadamard_size} is not allowed"),
        groups=("HiggsConfig",),
    ),
    _among("FPQuantConfig", "forward_dtype", "mxfp4", "nvfp4", since="4.57.6"),
    _fpquant(
        "FPQuantConfig.forward_method",
        "forward_method",
        {"mxfp4": ("abs_max", "quest"), "nvfp4": ("abs_max",)},
    ),
    _fpquant(
        "FPQuantConfig.hadamard_group_size",
        "hadamard_group_size",
        {"mxfp4": (32, 64, 128), "nvfp4": (16, 32, 64, 128)},
    ),
    _among("FPQuantConfig", "backward_dtype", "bf16", "mxfp8", "mxfp4", since="5.0.0"),
    _fpquant("fpquant-backward-beside-nvfp4", "backward_dtype", {"nvfp4": ("bf16",)}),
    _among("FPQuantConfig", "transform_init", "hadamard", "identity", "gsr", since="4.57.6"),
    Refusal(
        "TorchAoConfig.quant_type",
        _source("TorchAoConfig"),
        ("quant_type",),
        lambda options: isinstance(options["quant_type"], str),
        Text(
            "传入 torchao 的配置对象，如 Int4WeightOnlyConfig()",
            "pass an object of torchao, such as Int4WeightOnlyConfig()",
        ),
        Text("不再接受字符串 {quant_type}", "the text {quant_type} is no longer taken"),
        groups=("TorchAoConfig",),
        since="5.4.0",
    ),
    _among("BitNetQuantConfig", "linear_class", "bitlinear", "autobitlinear"),
    _among("BitNetQuantConfig", "quantization_mode", "online", "offline"),
    _among("SpQRConfig", "bits", 3),
    _among("SpQRConfig", "beta1", 16),
    _among("SpQRConfig", "beta2", 16),
    _typed("SpQRConfig", "shapes", dict),
    _among("FineGrainedFP8Config", "activation_scheme", "dynamic", "static", since="5.0.0"),
    _satisfying(
        "FineGrainedFP8Config",
        "weight_block_size",
        _not_pairs,
        "两个正整数",
        "two whole numbers above 0",
    ),
    _among("FineGrainedFP8Config", "scale_fmt", "float", "ue8m0", since="5.10.4"),
    _among("FineGrainedFP8Config", "expert_dtype", "fp8", "fp4", since="5.21.1"),
    _among("MetalConfig", "bits", 2, 4, 8),
    _satisfying("MetalConfig", "group_size", lambda value: value > 0, *_ABOVE_0),
    _typed("SinqConfig", "nbits", int),
    _typed("SinqConfig", "group_size", int),
    _typed("SinqConfig", "tiling_mode", str),
    _among("SinqConfig", "method", "sinq", "asinq"),
)

REFUSALS: tuple[Refusal, ...] = (*_BITS_AND_BYTES, *_CALIBRATED, *_OTHERS)
