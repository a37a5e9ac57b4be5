"""What the model's own arguments refuse (hparams/model_args.py, _verify_model_args)."""

from __future__ import annotations

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.llamafactory.asked import (
    HPARAMS,
    PARSER,
    TRAIN,
    given,
    listed,
    on,
    zero3,
)
from flake8_gpu_training.language import Text

_SOURCE = f"{HPARAMS}/model_args.py, ModelArguments.__post_init__"
_VERIFY = f"{PARSER}, _verify_model_args"
_ADAPTER = "llamafactory/model/adapter.py, _setup_lora_tuning"


def _pixels(kind: str) -> Refusal:
    least, most = f"{kind}_min_pixels", f"{kind}_max_pixels"
    return Refusal(
        f"{kind}-pixels",
        f"{HPARAMS}/model_args.py, ProcessorArguments.__post_init__",
        (most, least),
        lambda options: options[most] < options[least],
        Text(f"{most} 设为不小于 {least}", f"give {most} at least {least}"),
        Text(f"{{{most}}} 小于 {{{least}}}", f"{{{most}}} is less than {{{least}}}"),
        since="0.9.3",
    )


def _several_adapters(options: Options) -> bool:
    adapters = listed(options, "adapter_name_or_path")
    return adapters is not None and len(adapters) > 1


def _is_quantized(options: Options) -> bool:
    return given(options, "quantization_bit")


def _one_adapter(options: Options) -> bool:
    """Whether what cannot load a second adapter is given several."""
    if not _several_adapters(options) or _is_quantized(options):
        return False
    return on(options, "use_kt") or on(options, "use_unsloth") or zero3(options)


_MERGE = Text("先合并适配器，只给一个", "merge the adapters first and name one")

REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "no-model",
        _SOURCE,
        ("model_name_or_path",),
        lambda options: options["model_name_or_path"] is None,
        Text("设置 model_name_or_path", "give model_name_or_path"),
        Text("没有指定模型", "no model is named"),
        since="0.9.0",
    ),
    Refusal(
        "split-tokens-of-fast-tokenizer",
        _SOURCE,
        ("split_special_tokens", "use_fast_tokenizer"),
        lambda options: on(options, "split_special_tokens") and on(options, "use_fast_tokenizer"),
        Text(
            "设置 use_fast_tokenizer=false，或删除 split_special_tokens",
            "write use_fast_tokenizer=false or drop split_special_tokens",
        ),
        Text("快速分词器不拆分特殊词元", "the fast tokenizer does not split special tokens"),
        write=lambda options: {"use_fast_tokenizer": False},
        until="0.9.4",
    ),
    Refusal(
        "unsloth-of-images",
        _SOURCE,
        ("use_unsloth", "visual_inputs"),
        lambda options: on(options, "visual_inputs") and on(options, "use_unsloth"),
        Text("删除 use_unsloth", "drop use_unsloth"),
        Text(
            "该版本的 Unsloth 不支持多模态模型", "with visual_inputs this release does not take it"
        ),
        write=lambda options: {"use_unsloth": False},
        until="0.8.3",
    ),
    _pixels("image"),
    _pixels("video"),
    Refusal(
        "export-without-dataset",
        f"{HPARAMS}/model_args.py, ExportArguments.__post_init__",
        ("export_quantization_dataset", "export_quantization_bit"),
        lambda options: (
            given(options, "export_quantization_bit")
            and options["export_quantization_dataset"] is None
        ),
        Text("设置 export_quantization_dataset", "name an export_quantization_dataset"),
        Text(
            "export_quantization_bit={export_quantization_bit} 需要校准数据",
            "export_quantization_bit={export_quantization_bit} needs data to calibrate with",
        ),
    ),
    Refusal(
        "adapter-without-lora",
        _VERIFY,
        ("adapter_name_or_path", "finetuning_type"),
        lambda options: (
            given(options, "adapter_name_or_path") and options["finetuning_type"] != "lora"
        ),
        Text(
            "finetuning_type 设为 lora，或删除 adapter_name_or_path",
            "write finetuning_type=lora or drop adapter_name_or_path",
        ),
        Text(
            "适配器只用于 LoRA，而 finetuning_type={finetuning_type}",
            "an adapter is for LoRA alone and finetuning_type is {finetuning_type}",
        ),
    ),
    Refusal(
        "quantized-without-lora",
        _VERIFY,
        ("quantization_bit", "finetuning_type"),
        lambda options: (
            _is_quantized(options) and options["finetuning_type"] not in ("lora", "oft")
        ),
        Text(
            "finetuning_type 设为 lora，或删除 quantization_bit",
            "write finetuning_type=lora or drop quantization_bit",
        ),
        Text(
            "量化的权重不能训练，而 finetuning_type={finetuning_type}",
            "quantized weights are not trained and finetuning_type is {finetuning_type}",
        ),
    ),
    Refusal(
        "quantized-and-pissa",
        _VERIFY,
        ("pissa_init", "quantization_bit"),
        lambda options: _is_quantized(options) and on(options, "pissa_init"),
        Text(
            "先用 scripts/pissa_init.py 初始化，再删除 pissa_init",
            "run scripts/pissa_init.py first and drop pissa_init",
        ),
        Text(
            "量化模型上不能做 PiSSA 初始化",
            "a quantized model cannot be split into PiSSA's adapter",
        ),
        write=lambda options: {"pissa_init": False},
        since="0.8.2",
    ),
    Refusal(
        "quantized-and-resized",
        _VERIFY,
        ("resize_vocab", "quantization_bit"),
        lambda options: _is_quantized(options) and on(options, "resize_vocab"),
        Text("删除 resize_vocab 或 quantization_bit", "drop resize_vocab or quantization_bit"),
        Text("量化模型不能改词表大小", "the embeddings of a quantized model cannot be resized"),
        write=lambda options: {"resize_vocab": False},
    ),
    Refusal(
        "quantized-and-new-adapter",
        _VERIFY,
        ("create_new_adapter", "quantization_bit"),
        lambda options: (
            _is_quantized(options)
            and given(options, "adapter_name_or_path")
            and on(options, "create_new_adapter")
        ),
        Text("删除 create_new_adapter", "drop create_new_adapter"),
        Text(
            "量化模型不能合并已有适配器再建新的",
            "an adapter cannot be merged into a quantized model",
        ),
        write=lambda options: {"create_new_adapter": False},
    ),
    Refusal(
        "quantized-and-adapters",
        _VERIFY,
        ("adapter_name_or_path", "quantization_bit"),
        lambda options: _is_quantized(options) and _several_adapters(options),
        _MERGE,
        Text("量化模型只接受一个适配器", "a quantized model takes one adapter"),
    ),
    Refusal(
        "one-adapter",
        _ADAPTER,
        ("adapter_name_or_path",),
        _one_adapter,
        _MERGE,
        Text(
            "ZeRO-3、Unsloth 与 KTransformers 只接受一个适配器",
            "ZeRO-3, Unsloth and KTransformers load one adapter",
        ),
        groups=TRAIN,
    ),
    Refusal(
        "kt-without-lora",
        _ADAPTER,
        ("use_kt", "finetuning_type"),
        lambda options: on(options, "use_kt") and options["finetuning_type"] == "oft",
        Text("finetuning_type 设为 lora", "write finetuning_type=lora"),
        Text("KTransformers 只支持 LoRA", "KTransformers trains by LoRA alone"),
        write=lambda options: {"finetuning_type": "lora"},
        groups=TRAIN,
        since="0.9.4",
    ),
    Refusal(
        "unsloth-of-oft",
        _ADAPTER,
        ("use_unsloth", "finetuning_type"),
        lambda options: (
            on(options, "use_unsloth")
            and not on(options, "use_kt")
            and options["finetuning_type"] == "oft"
        ),
        Text(
            "删除 use_unsloth，或 finetuning_type 设为 lora",
            "drop use_unsloth or write finetuning_type=lora",
        ),
        Text("Unsloth 不支持 OFT", "Unsloth does not know OFT"),
        write=lambda options: {"use_unsloth": False},
        groups=TRAIN,
        since="0.9.4",
    ),
)
