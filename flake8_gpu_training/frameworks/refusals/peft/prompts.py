"""What the configurations of learned prompts refuse."""

from __future__ import annotations

from collections.abc import Mapping

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.peft.short import from_0, source
from flake8_gpu_training.language import Text

_PROMPT = "PromptTuningConfig"
_SOFT = (_PROMPT,)


def _starts_from_text(options: Options) -> bool:
    return bool(options["prompt_tuning_init"] == "TEXT")


def _no_tokenizer(options: Options) -> bool:
    return _starts_from_text(options) and not options["tokenizer_name_or_path"]


def _no_text(options: Options) -> bool:
    if not _starts_from_text(options) or _no_tokenizer(options):
        return False
    return options["prompt_tuning_init_text"] is None


def _tokenizes_nothing(options: Options) -> bool:
    return bool(options["tokenizer_kwargs"]) and not _starts_from_text(options)


def _lengths(options: Options) -> Mapping[str, int]:
    ids = options["cpt_token_ids"]
    ids = [0] if ids is None else ids
    names = ("cpt_mask", "cpt_tokens_type_mask")
    found = {"cpt_token_ids": len(ids)}
    for name in names:
        value = options[name]
        found[name] = len(ids) if value is None else len(value)
    return found


def _of_other_task(options: Options) -> bool:
    return bool(options["task_type"] != "CAUSAL_LM")


def _freezes_too_many(options: Options) -> bool:
    tokens = options["num_virtual_tokens"]
    return tokens is not None and options["num_frozen_tokens"] > tokens


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "prompt-without-tokenizer",
        source(_PROMPT),
        ("prompt_tuning_init",),
        _no_tokenizer,
        Text("给出 tokenizer_name_or_path", "give tokenizer_name_or_path"),
        Text(
            "prompt_tuning_init=TEXT 要切分文本", "prompt_tuning_init=TEXT has to tokenize a text"
        ),
        groups=_SOFT,
        since="0.10.0",
    ),
    Refusal(
        "prompt-without-text",
        source(_PROMPT),
        ("prompt_tuning_init",),
        _no_text,
        Text("给出 prompt_tuning_init_text", "give prompt_tuning_init_text"),
        Text("prompt_tuning_init=TEXT 从它开始", "prompt_tuning_init=TEXT starts from it"),
        groups=_SOFT,
        since="0.10.0",
    ),
    Refusal(
        "tokenizer-of-no-text",
        source(_PROMPT),
        ("tokenizer_kwargs",),
        _tokenizes_nothing,
        Text(
            "去掉 tokenizer_kwargs，或设置 prompt_tuning_init=TEXT",
            "drop tokenizer_kwargs, or set prompt_tuning_init=TEXT",
        ),
        Text("没有要切分的文本", "there is no text to tokenize"),
        groups=_SOFT,
        since="0.7.1",
    ),
    Refusal(
        "cpt-of-other-task",
        source("CPTConfig"),
        ("task_type",),
        _of_other_task,
        Text("设置 task_type=CAUSAL_LM", "set task_type=CAUSAL_LM"),
        Text("CPT 只支持它", "CPT has no other"),
        write=lambda options: {"task_type": "CAUSAL_LM"},
        groups=("CPTConfig",),
        since="0.18.1",
    ),
    Refusal(
        "cpt-lengths",
        source("CPTConfig"),
        ("cpt_mask", "cpt_tokens_type_mask", "cpt_token_ids"),
        lambda options: len(set(_lengths(options).values())) > 1,
        Text("让三个列表一样长", "make the three lists equally long"),
        Text("长度分别为 {lengths}", "they have {lengths}"),
        figures=lambda options: {
            "lengths": ", ".join(f"{k}={n}" for k, n in _lengths(options).items())
        },
        groups=("CPTConfig",),
        since="0.14.0",
    ),
    from_0("CartridgeConfig", "num_frozen_tokens"),
    Refusal(
        "more-frozen-than-virtual-tokens",
        source("CartridgeConfig"),
        ("num_frozen_tokens", "num_virtual_tokens"),
        _freezes_too_many,
        Text(
            "num_frozen_tokens 不超过 num_virtual_tokens（{num_virtual_tokens}）",
            "give num_frozen_tokens {num_virtual_tokens} or less",
        ),
        Text("{num_frozen_tokens} 太多", "there are no {num_frozen_tokens} virtual tokens"),
        groups=("CartridgeConfig",),
    ),
)
