"""What GenerationConfig and what belongs to it refuse, and the optimizer Adafactor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flake8_gpu_training.frameworks.refusals import fields
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.language import Text

_GROUP = "GenerationConfig"
_SOURCE = "transformers/generation/configuration_utils.py, GenerationConfig.validate"
_WATERMARK = "transformers/generation/configuration_utils.py, WatermarkingConfig.validate"
_CACHES = (
    "static",
    "dynamic",
    "offloaded",
    "offloaded_static",
    "quantized",
    "dynamic_full",
    "paged",
    "sliding_window",
    "hybrid",
    "hybrid_chunked",
    "offloaded_hybrid",
    "offloaded_hybrid_chunked",
    "mamba",
)
_OF_GENERATE = (
    "logits_processor",
    "stopping_criteria",
    "prefix_allowed_tokens_fn",
    "synced_gpus",
    "assistant_model",
    "streamer",
    "negative_prompt_ids",
    "negative_prompt_attention_mask",
)


def _given(options: Options) -> list[str]:
    return [name for name in _OF_GENERATE if name in options.given]


def _beams(options: Options) -> int:
    return int(options["num_beams"] or 1)


def _returns(options: Options) -> int:
    return int(options["num_return_sequences"] or 1)


def _returns_one_only(options: Options) -> bool:
    return _returns(options) > 1 and _beams(options) == 1 and not options["do_sample"]


def _returns_more_than_beams(options: Options) -> bool:
    return _beams(options) > 1 and _returns(options) > _beams(options)


def _impossible(options: Options) -> Iterator[str]:
    """Forced tokens that are all suppressed."""
    suppressed = set(options["suppress_tokens"] or ())
    for name in ("forced_bos_token_id", "forced_eos_token_id"):
        forced: Any = options[name]
        tokens = {forced} if isinstance(forced, int) else set(forced or ())
        if tokens and tokens <= suppressed:
            yield name


def _relative(options: Options) -> bool:
    return options["lr"] is not None and options["relative_step"] is True


def _warms_up_absolutely(options: Options) -> bool:
    return options["warmup_init"] is True and options["relative_step"] is False


REFUSALS: tuple[Refusal, ...] = (
    fields.among(_GROUP, "early_stopping", (None, True, False, "never"), _SOURCE, since="5.0.0"),
    Refusal(
        "early-stopping-neither-true-nor-never",
        _SOURCE,
        ("early_stopping",),
        lambda options: options["early_stopping"] not in (True, False, "never"),
        Text("early_stopping 取 True、False 或 never", "give early_stopping True, False or never"),
        Text("不能取 {early_stopping}", "it cannot be {early_stopping}"),
        groups=(_GROUP,),
        until="4.57.6",
    ),
    fields.satisfying(
        _GROUP,
        "max_new_tokens",
        lambda value: value is None or value > 0,
        Text("正整数", "a whole number above 0"),
        _SOURCE,
        since="4.38.2",
    ),
    fields.satisfying(
        _GROUP,
        "assistant_ensemble_weight",
        lambda value: value is None or 0 < value < 1,
        Text("0 与 1 之间的数", "a number between 0 and 1"),
        _SOURCE,
        since="5.14.1",
    ),
    fields.among(_GROUP, "cache_implementation", (None, *_CACHES), _SOURCE, since="4.45.2"),
    fields.satisfying(
        _GROUP,
        "compile_config",
        lambda value: not isinstance(value, (dict, bool, int)),
        Text(" CompileConfig 对象", "an object of CompileConfig"),
        _SOURCE,
        since="4.52.4",
    ),
    Refusal(
        "several-sequences-of-greedy-search",
        _SOURCE,
        ("num_return_sequences", "do_sample", "num_beams"),
        _returns_one_only,
        Text("设置 do_sample=True，或用多个 beam", "set do_sample=True, or use several beams"),
        Text(
            "贪心搜索只有一个结果，而 num_return_sequences={num_return_sequences}",
            "greedy search finds one sequence, and num_return_sequences is {num_return_sequences}",
        ),
        write=lambda options: {"do_sample": True},
        groups=(_GROUP,),
        since="4.32.1",
    ),
    Refusal(
        "more-sequences-than-beams",
        _SOURCE,
        ("num_return_sequences", "num_beams"),
        _returns_more_than_beams,
        Text(
            "num_beams 设为至少 {num_return_sequences}",
            "set num_beams to {num_return_sequences} or more",
        ),
        Text(
            "{num_beams} 个 beam 给不出 {num_return_sequences} 个结果",
            "{num_beams} beams do not give {num_return_sequences} sequences",
        ),
        write=lambda options: {"num_beams": options["num_return_sequences"]},
        groups=(_GROUP,),
        since="4.32.1",
    ),
    Refusal(
        "forced-and-suppressed",
        _SOURCE,
        ("suppress_tokens", "forced_bos_token_id", "forced_eos_token_id"),
        lambda options: bool(list(_impossible(options))),
        Text("从 suppress_tokens 中去掉它们", "take them out of suppress_tokens"),
        Text("{names} 的记号全被禁止", "all tokens of {names} are suppressed"),
        figures=lambda options: {"names": ", ".join(_impossible(options))},
        groups=(_GROUP,),
        since="5.17.0",
    ),
    Refusal(
        "arguments-of-generate",
        _SOURCE,
        _OF_GENERATE,
        lambda options: bool(_given(options)),
        Text("把 {names} 传给 generate()", "pass {names} to generate()"),
        Text("GenerationConfig 不接受它", "GenerationConfig does not take it"),
        figures=lambda options: {"names": ", ".join(_given(options))},
        groups=(_GROUP,),
        since="4.36.2",
    ),
    fields.among("WatermarkingConfig", "seeding_scheme", ("selfhash", "lefthash"), _WATERMARK),
    fields.satisfying(
        "WatermarkingConfig",
        "greenlist_ratio",
        lambda value: 0 <= value <= 1,
        Text("0 到 1 的数", "a number from 0 to 1"),
        _WATERMARK,
    ),
    fields.satisfying(
        "WatermarkingConfig",
        "context_width",
        lambda value: value >= 1,
        Text("正整数", "a whole number above 0"),
        _WATERMARK,
    ),
    fields.satisfying(
        "SynthIDTextWatermarkingConfig",
        "sampling_table_size",
        lambda value: value <= 2**24,
        Text("不大于 16777216 的数", "16777216 or less"),
        "transformers/generation/configuration_utils.py, SynthIDTextWatermarkingConfig.validate",
    ),
    Refusal(
        "relative-step-beside-rate",
        "transformers/optimization.py, Adafactor.__init__",
        ("relative_step", "lr"),
        _relative,
        Text("设置 relative_step=False", "set relative_step=False"),
        Text(
            "relative_step（默认 True）自行计算学习率，不接受 lr={lr}",
            "relative_step, on by default, reckons the rate and takes no lr={lr}",
        ),
        write=lambda options: {"relative_step": False},
        groups=("Adafactor",),
    ),
    Refusal(
        "warmup-init-without-relative-step",
        "transformers/optimization.py, Adafactor.__init__",
        ("warmup_init", "relative_step"),
        _warms_up_absolutely,
        Text("去掉 warmup_init", "drop warmup_init"),
        Text("warmup_init 需要 relative_step=True", "warmup_init needs relative_step=True"),
        write=lambda options: {"warmup_init": False},
        groups=("Adafactor",),
    ),
)
