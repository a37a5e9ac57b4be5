"""GPU957, GPU958: how an inference engine guesses tokens that one pass then confirms."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Optional

from flake8_gpu_training.checks import _sglang_sizes
from flake8_gpu_training.checks._engine import (
    UNSPREAD,
    of_engine,
    propose,
    sglang_item,
    vllm_item,
)
from flake8_gpu_training.checks._engine_examples import served
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import cannot_apply, cannot_tell, off, on
from flake8_gpu_training.checks._vllm import DOCS
from flake8_gpu_training.checks.base import Check, Impact, Judgement, Priority
from flake8_gpu_training.facts import Setting, Unknown, known
from flake8_gpu_training.frameworks.engines import Engine, Mode, amount
from flake8_gpu_training.frameworks.vllm_defaults import pools
from flake8_gpu_training.language import Text
from flake8_gpu_training.models import last_part

_SPECULATION = f"{DOCS}/features/speculative_decoding/"
_CONFIG = "vLLM 0.10.2 and 0.33.0, config/speculative.py"
_BUSY = 65
"""Sequences at once from which on the batch leaves little to gain."""
_MTP_NAMED = (0, 11)
"""The first release read that takes ``mtp`` for every model with such layers."""
_OLD = ("speculative_model", "num_speculative_tokens")
_PROPOSES_NOTHING = ("extract_hidden_states",)
# Methods by item; mtp first, since its methods are named after models.
_METHODS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"mtp", "mtp"),
        (r"eagle|medusa|mlp_speculator|dflash|dspark|speculator", "eagle"),
        (r"ngram|suffix|prompt_lookup", "ngram"),
        (r".", "draft"),
    )
)
# Checkpoints that hold layers for the tokens after the next.
_HOLDS_MTP = re.compile(
    r"deepseek-(?:v3|r1)(?!.*(?:distill|qwen|llama))|glm-4\.[567](?!v)|mimo-7b|qwen3-next|qwen3\.[56]|ernie-4\.5-(?:21b|300b)"
)
# Families whose checkpoints hold none.
_LACKS_MTP = re.compile(
    r"(?:meta-)?(?:llama|codellama)|tinyllama|deepseek-r1-distill|deepseek-(?:coder|llm|moe|v2)"
    r"|qwen-?\d+(?:\.\d)?b|qwen-?(?:1\.5|2|2\.5)-|qwen3-(?!next|coder-next)|qwq|qvq|mistral|mixtral|ministral"
    r"|gemma-(?:\db|[23]-)|phi-|opt-|gpt-oss|internlm|vicuna|yi-|baichuan|smollm|qwen3guard"
    r"|internvl|granite-|olmo-?[23]|lfm2|seed-oss|starcoder|falcon"
)
_NO_MTP = Text("该模型不带 MTP 层", "the model has no such layers")
# Heads of EAGLE-3 that are published for a model.
_HEADS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), head)
    for pattern, head in (
        (r"llama-3\.1-8b-instruct$", "RedHatAI/Llama-3.1-8B-Instruct-speculator.eagle3"),
        (r"llama-3\.3-70b-instruct$", "RedHatAI/Llama-3.3-70B-Instruct-speculator.eagle3"),
        (r"qwen3-8b$", "RedHatAI/Qwen3-8B-speculator.eagle3"),
        (r"qwen3-14b$", "RedHatAI/Qwen3-14B-speculator.eagle3"),
        (r"qwen3-32b$", "RedHatAI/Qwen3-32B-speculator.eagle3"),
    )
)


_NAMED_METHOD = re.compile(r"""["']method["']\s*:\s*["']([\w-]+)["']""")
"""A method in JSON of which another part is a placeholder."""


def speculation(engine: Engine) -> Optional[tuple[Setting, str]]:
    """What asks for speculation, and the kind of its method; None when nothing does."""
    method = engine.entry("speculative_config", "method") or engine.written("spec_method")
    if method is not None and method.value is not None:
        return method, _kind(method.value)
    model = engine.entry("speculative_config", "model") or engine.written("spec_model")
    if model is not None and model.value is not None:
        return model, _kind(model.value)
    old = engine.written("speculative_model")
    if old is not None and old.value is not None:
        return old, _kind(old.value)
    whole = engine.written("speculative_config")
    if whole is not None and engine.mapping(whole) is None:
        unread = whole.value.reason if isinstance(whole.value, Unknown) else str(whole.value)
        named = _NAMED_METHOD.search(unread)
        if named is not None:
            return replace(whole, value=named[1]), _kind(named[1])
    return (whole, "") if whole is not None and whole.value is not None else None


def _kind(value: Any) -> str:
    if not known(value) or value in _PROPOSES_NOTHING:
        return ""
    return next(kind for pattern, kind in _METHODS if pattern.search(str(value).lower()))


# --- GPU957: the method ---


def _method(engine: Engine) -> Judgement:
    found = speculation(engine)
    if found is not None:
        setting, kind = found
        if setting.value in _PROPOSES_NOTHING:
            return off(Text("只取出隐藏状态，不做推测", "it only takes out hidden states"), setting)
        return on(setting, kind) if kind else cannot_tell(setting)
    if engine.is_open:
        return cannot_tell(Text("并非所有参数都已读到", "not all settings could be read"))
    if engine.mode is not Mode.SERVE or pools(engine):
        return off(
            Text("可选：离线批量生成时收益小", "optional: a full batch leaves little to gain")
        )
    name = last_part(engine.run.model.name or "")
    if _HOLDS_MTP.match(name):
        method = "mtp" if engine.version >= _MTP_NAMED else "deepseek_mtp"
        config = {"method": method, "num_speculative_tokens": 1}
        return _advise(engine, config, "mtp", "the model's own MTP layers")
    head = next((head for pattern, head in _HEADS if pattern.search(name)), "")
    limit = engine.written("max_num_seqs")
    if head and limit is not None and (amount(limit) or _BUSY) < _BUSY:
        config = {"method": "eagle3", "model": head, "num_speculative_tokens": 3}
        return _advise(engine, config, "eagle", head)
    return off(
        Text(
            "可选：并发不高、注重延迟时用 EAGLE、草稿模型或 n-gram",
            "optional: EAGLE, a draft model or n-grams, where few requests run at once",
        )
    )


def _excluding(engine: Engine) -> Judgement:
    """``_method``, with MTP out of reach of models that have no such layers."""
    return _without_layers(engine, _method(engine))


def _of_sglang(engine: Engine) -> Judgement:
    return _without_layers(engine, _sglang_sizes.drafts(engine))


def _without_layers(engine: Engine, judgement: Judgement) -> Judgement:
    lacks = _LACKS_MTP.match(last_part(engine.run.model.name or "").lower())
    return replace(judgement, excluded=(("mtp", _NO_MTP),)) if lacks else judgement


def _advise(engine: Engine, config: dict[str, Any], variant: str, what: str) -> Judgement:
    shown = Text(
        "EAGLE-3 推测解码（并发高时需实测）" if variant == "eagle" else "MTP 推测解码（需实测）",
        "EAGLE-3; measure it at your load" if variant == "eagle" else "MTP; measure it",
    )
    return propose(
        engine,
        f"one pass can confirm several tokens proposed by {what}, where few requests run",
        Text("未使用推测解码", "tokens are decoded one by one"),
        shown,
        {"speculative_config": config},
        variant=variant,
    )


# --- GPU958: the draft model's GPUs ---


def _draft_size(engine: Engine) -> Judgement:
    found = speculation(engine)
    if found is not None and found[0].value in _PROPOSES_NOTHING:
        return cannot_apply(Text("未使用推测解码", "nothing is speculated"))
    if found is None and engine.is_open:
        return cannot_tell(Text("并非所有参数都已读到", "not all settings could be read"))
    if found is None:
        return cannot_apply(Text("未使用推测解码", "nothing is speculated"))
    setting, kind = found
    if not kind:
        return cannot_tell(setting)
    if kind == "ngram":
        return cannot_apply(Text("n-gram 没有草稿模型", "n-grams have no draft model"))
    told = engine.entry("speculative_config", "draft_tensor_parallel_size")
    told = told or engine.written("speculative_draft_tensor_parallel_size")
    if told is not None:
        return on(told) if told.known else cannot_tell(told)
    size = engine.option("tensor_parallel_size")
    if not size.known:
        return cannot_tell(size)
    if (amount(size) or 1) <= 1:
        return cannot_apply(UNSPREAD)
    if kind == "draft":
        return on(f"{engine.called}: draft_tensor_parallel_size = tensor_parallel_size")
    return off(
        Text(
            "可选：草稿头很小时 draft_tensor_parallel_size=1",
            "optional: draft_tensor_parallel_size=1 for a small head",
        )
    )


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU957",
        "engine-speculation",
        Text("推测解码", "Speculative decoding in the engine"),
        Priority.LOW,
        of_engine(
            needs=("speculative_config",),
            decodes=True,
            vllm=_excluding,
            sglang=_of_sglang,
        ),
        why="While few requests run, a pass over several tokens costs what one over one does.",
        fix="Set speculative_config with the model's own MTP layers, an EAGLE head or n-grams.",
        ignore="The batch is full: checking rejected tokens then costs throughput.",
        items=(
            *vllm_item("G", "eagle", 3, "method", "eagle"),
            *vllm_item("G", "mtp", 3, "method", "mtp"),
            *vllm_item("G", "draft-model", 3, "method", "draft"),
            *vllm_item("G", "ngram", 2, "method", "ngram"),
            *sglang_item("G", "eagle3", 3.5, "drafts", "eagle3"),
            *sglang_item("G", "eagle2", 3, "drafts", "eagle2"),
            *sglang_item("G", "mtp", 3.5, "drafts", "mtp"),
            *sglang_item("G", "standalone", 2.5, "drafts", "standalone"),
            *sglang_item("G", "ngram", 2, "drafts", "ngram"),
        ),
        impact=by_class(Priority.LOW, _SPECULATION),
        difficulty="medium",
        examples=served(
            "--tensor-parallel-size 8",
            "--tensor-parallel-size 8 "
            '--speculative-config \'{"method": "mtp", "num_speculative_tokens": 1}\'',
            model="deepseek-ai/DeepSeek-R1",
        ),
        sources=(_SPECULATION, _CONFIG),
    ),
    Check(
        "GPU958",
        "engine-draft-parallel",
        Text("草稿模型张量并行", "GPUs of the draft model"),
        Priority.LOW,
        of_engine(vllm=_draft_size),
        why="A small draft model spends more time exchanging than computing on many GPUs.",
        fix="Set draft_tensor_parallel_size 1 for a small one, the target's size for a large one.",
        items=vllm_item("G", "draft-tp", 1),
        impact=Impact(source=_SPECULATION),
        sources=(_SPECULATION, _CONFIG),
    ),
)
