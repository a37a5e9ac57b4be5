"""GPU301: the attention kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Optional

from flake8_gpu_training.checks import _flow as flow
from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks import _videox_shared as videox
from flake8_gpu_training.checks._by_framework import by_framework
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    advise,
    by_itself,
    cannot_apply,
    cannot_tell,
    excluding,
    keyword_change,
    of_training,
    off,
    on,
    seen,
)
from flake8_gpu_training.checks._kernel_examples import (
    FLASH_FLAG,
    FLASH_MODEL,
    LIGER_FLAG,
    LIGER_LINE,
    LOAD,
    MODEL,
    SCRIPT,
)
from flake8_gpu_training.checks._programs import (
    calls,
    first_call,
    headed_loads,
    imports,
    is_convolutional,
    says,
)
from flake8_gpu_training.checks._scale import (
    architecture,
    billions,
    gpu_said,
    has_flash_kernel,
    has_no_flash_code,
    is_cuda,
    is_language_model,
    is_recurrent,
    number,
    takes_flash_attention,
    text,
    unfamiliar,
)
from flake8_gpu_training.checks.base import Check, Example, Impact, Item, Judgement, Priority
from flake8_gpu_training.facts import Call, Setting, Unknown, known
from flake8_gpu_training.frameworks.at_hand import version_at_hand
from flake8_gpu_training.frameworks.attention_defaults import BY_RELEASE, UNTOLD, sdpa_since
from flake8_gpu_training.frameworks.engine_of import packs_ahead, samples_ahead
from flake8_gpu_training.frameworks.transformers import BY_NAME, parses_model_config
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import PlaceKind, Run

_FLASH = {
    "flash_attention_2": "flash-attention-2",
    "flash_attention_3": "flash-attention-3",
    "flash_attention_4": "flash-attention-3",
}
_OTHERS = {"sdpa": "sdpa", "flex_attention": "flex-attention"}
# transformers 5.24, integrations/npu_flash_attention.py.
_NOT_CUDA = Text(
    "非 CUDA 设备（NPU 由 torch_npu 自带的融合内核代替）",
    "not a CUDA device (on NPUs a fused kernel of torch_npu stands in)",
)
# LLaMA-Factory hands flash_attn to models of Transformers alone (train/mca/workflow.py, 0.9.5).
_OWN_KERNELS = Text("Megatron 自带注意力实现", "Megatron attends by kernels of its own")
_PACKED = Text(
    "AsyncGRPOTrainer 固定使用 FlashAttention-3 内核（async_grpo_trainer.py）",
    "AsyncGRPOTrainer takes FlashAttention-3's kernel itself (async_grpo_trainer.py)",
)
_SMALL_BILLIONS = 0.4
# LLaMA-Factory turns flash attention on for these by itself (model_utils/attention.py, 0.9.5).
_FLASH_BY_ITSELF = re.compile(r"(?i)gpt[-_]?oss|gemma-2")
_LONG = 4096  # tokens from which attention takes a large part of a layer


@of_training(alone=True)
def _flash_attention(run: Run) -> Judgement:
    answer = _attention(run)
    name = gpu_said(run)
    why = Text(f"{name.zh} 不支持", f"not for {name.en}")
    if takes_flash_attention(run, 2) is False:
        return excluding(answer, why, "flash-attention-2", "flash-attention-3")
    if architecture(run) not in (None, "Hopper") and takes_flash_attention(run, 4) is not True:
        return excluding(answer, why, "flash-attention-3")
    return answer


def _attention(run: Run) -> Judgement:
    setting = run.practice("attention")
    written = text(run, "attention")
    if run.framework == "llamafactory" and run.value("megatron") is True:
        return cannot_apply(_OWN_KERNELS)
    if samples_ahead(run):
        return by_itself(_PACKED, "flash-attention-3") if packs_ahead(run) else cannot_tell(setting)
    if written in _FLASH:
        return on(setting, _FLASH[written])
    called = first_call(
        run,
        "flash_attn.flash_attn_func",
        ".flash_attn_func",
        ".flash_attn_varlen_func",
        ".flash_attn_qkvpacked_func",
    )
    if called is None:
        backends = calls(run, "torch.nn.attention.sdpa_kernel", "torch.backends.cuda.sdp_kernel")
        called = next((call for call in backends if _asks_for_flash(call)), None)
    if called is not None:
        return seen(called, "flash-attention-2")
    if not setting.known and is_convolutional(run):
        return cannot_apply(Text("卷积网络没有注意力", "a convolutional network: no attention"))
    if not setting.known:
        return _left_open(run, setting)
    if run.value("megatron") is True and written == "sdpa":
        return on(setting, "sdpa")  # cuDNN's fused kernel
    if run.value("megatron") is True and written != "eager":
        return cannot_tell(Text("Megatron 自行选择注意力后端", "Megatron picks the back end"))
    if not is_cuda(run):
        return cannot_apply(_NOT_CUDA)
    if not has_flash_kernel(run):
        return _best_without_flash(setting, written)
    if written == "auto":
        if run.framework != "llamafactory" or _FLASH_BY_ITSELF.search(run.model.name or ""):
            return _best_installed(run, setting)
        written = "sdpa"  # LLaMA-Factory leaves it to Transformers, which takes SDPA
    if written in ("flex_attention", "xformers", "sage"):
        return on(setting, _OTHERS.get(written, ""))
    unmasked = _unmasked_product(run)
    if written == "sdpa" and unmasked is not None:
        return seen(unmasked, "sdpa")
    is_unknown = run.model.kind == "unknown" and not has_no_flash_code(run)
    if run.framework in ("hf_trainer", "swift") and is_unknown:
        return cannot_tell(unfamiliar(run))
    if not is_language_model(run):
        return _will_do(run, setting, written, _of_no_decoder(run, setting))
    if imports(run, "unsloth") is not None or run.value("unsloth") is True:
        return cannot_tell(Text("Unsloth 自行选择注意力实现", "Unsloth picks the attention itself"))
    if is_recurrent(run) and number(run, "micro_batch_size") == 1:
        few = Text("注意力层很少，SDPA 足够", "few layers attend: SDPA will do")
        return _will_do(run, setting, written, few)
    if has_no_flash_code(run):
        none = _NO_FLASH_CODE
        if written == "eager" and not setting.explicit:
            none = Text("该模型默认使用 eager 注意力", "the model's default is eager attention")
        best = _SDPA_AT_MOST.search(run.model.known_as) is not None
        return _will_do(run, setting, written, none) if best else off(none, setting)
    if not setting.explicit and _loader_is_missing(run) and not _loads_by_name(run, setting):
        return cannot_tell(Text("未见加载模型的代码", "what loads the model is not in sight"))
    is_of_hub = run.framework in ("hf_trainer", "generic")
    if is_of_hub and version_at_hand(run, "transformers")[:2] < _HAS_FLASH:
        return off(Text("该版本的 Transformers 没有 FlashAttention", "Transformers is too old"))
    if _keeps_its_attention(run, written):
        needed = Text("该模型建议或只需当前实现", "as this model needs it")
        return _will_do(run, setting, written, needed)
    answer = _advise_flash(run, setting, written or "sdpa")
    if run.framework == "swift" and _packs(run):
        return replace(answer, findings=())  # GPU016 says it: the run would not start
    if billions(run) is None and not _is_long(run):
        return replace(answer, findings=())  # no model earns more by a size that is not known
    return answer


_NO_FLASH_CODE = Text("该模型的代码没有 Flash Attention", "the model's code has no FlashAttention")


def _left_open(run: Run, setting: Setting) -> Judgement:
    """An attention that is not known; of a default that releases choose, and of a model that is
    no decoder, no other kernel than the two is missed."""
    answer = cannot_tell(setting)
    if has_no_flash_code(run):
        return excluding(answer, _NO_FLASH_CODE, "flash-attention-2", "flash-attention-3")
    candidates = set(getattr(setting.value, "candidates", ()))
    is_default = setting.value == Unknown(BY_RELEASE, tuple(UNTOLD))
    if not is_default or not candidates or is_language_model(run):
        return answer
    others = Text(
        "默认为 sdpa 或 eager，视版本而定", "the default is sdpa or eager, by the release"
    )
    return excluding(answer, others, "flash-attention-2", "flash-attention-3", "flex-attention")


def _of_no_decoder(run: Run, setting: Setting) -> Text:
    """Why flash attention is not missed, and whether the release at hand keeps SDPA away."""
    if setting.value != "eager" or setting.explicit:
        return Text("不是解码器语言模型，SDPA 足够", "not a decoder: SDPA will do")
    if run.framework == "hf_trainer" and sdpa_since(run.model.known_as) is None:
        return Text(
            "Transformers 只为该模型提供 eager 实现", "Transformers has eager attention only for it"
        )
    return Text(
        "不是解码器语言模型，SDPA 足够；当前安装的版本用 eager",
        "not a decoder: SDPA will do, and the release at hand has eager",
    )


# _supports_sdpa, and no flash attention, in transformers 5.24, models/*/modeling_*.py.
_SDPA_AT_MOST = re.compile(
    r"(?i)gemma-3-(?:4|12|27)b|gemma-4|diffusiongemma|paligemma|llama-?4-|llama-3\.2-(?:11|90)b"
)


def _unmasked_product(run: Run) -> Optional[Call]:
    """The call by which a hand-written model attends, where SDPA's flash kernel serves it: the
    kernel takes no mask but the causal one (PyTorch, sdp_utils.cpp: check_for_attn_mask)."""
    if run.framework != "generic":
        return None
    products = list(calls(run, "torch.nn.functional.scaled_dot_product_attention"))
    return None if any(map(_masks, products)) else next(iter(products), None)


def _masks(call: Call) -> bool:
    mask = call.keywords.get("attn_mask", call.positional[3] if len(call.positional) > 3 else None)
    return mask is not None and mask.text != "None"


def _asks_for_flash(call: Call) -> bool:
    """Whether SDPA is told to use its flash kernel, and no other."""
    chosen = [*call.positional, *call.keywords.values()]
    flash = [
        a for a in chosen if a.text.endswith("FLASH_ATTENTION") or "FLASH_ATTENTION]" in a.text
    ]
    return bool(flash) or (says(call, "enable_flash", True) and says(call, "enable_math", False))


def _best_installed(run: Run, setting: Setting) -> Judgement:
    """The framework takes a flash kernel when one is installed, which the pins may show."""
    if any(name.replace("_", "-") == "flash-attn" for name in run.versions):
        return on(setting, "flash-attention-2")
    return cannot_tell(Text("由安装的内核决定", "the best kernel that is installed is taken"))


def _loader_is_missing(run: Run) -> bool:
    """Whether a program's attention is chosen where we cannot point at."""
    if run.framework not in ("hf_trainer", "generic") or run.place.kind is not PlaceKind.PYTHON:
        return False
    return _loading_call(run) is None


def _loads_by_name(run: Run, setting: Setting) -> bool:
    """Whether a trainer of TRL loads the model, and may be told how by its arguments."""
    told = run.settings.get("model_init_kwargs")
    return BY_NAME in setting.note and (told is None or isinstance(told.value, Mapping))


def _packs(run: Run) -> bool:
    return run.value("packing") is True or run.value("padding_free") is True


def _keeps_its_attention(run: Run, written: Optional[str]) -> bool:
    """Whether the choice is right: eager for Gemma 2 and 3, whose documentation asks for it;
    sdpa for models so small that attention takes little of a step."""
    name = run.model.known_as.lower()
    if written == "eager":
        return "gemma-2" in name or "gemma-3" in name
    size = billions(run)
    if _is_long(run):
        return False
    if size is None:
        return run.framework != "llamafactory"
    return size < _SMALL_BILLIONS


def _is_long(run: Run) -> bool:
    return (number(run, "max_length") or 0) >= _LONG


def _best_without_flash(setting: Setting, written: Optional[str]) -> Judgement:
    if written == "eager":
        return off(Text("该 GPU 不支持 FlashAttention", "no FlashAttention for this GPU"), setting)
    return on(setting, _sdpa(setting))


def _will_do(run: Run, setting: Setting, written: Optional[str], reason: Text) -> Judgement:
    """SDPA is all that is asked for: it is on, or else flash attention is not missed.

    What a hand-written model passes to SDPA may keep it from its own flash kernel.
    """
    is_on = written == "sdpa" and run.framework != "generic"
    return on(setting, _sdpa(setting)) if is_on else off(reason, setting)


def _sdpa(setting: Setting) -> str:
    """SDPA as it was asked for: by its name, or left to choose itself (``auto``)."""
    return "auto" if setting.value == "auto" else "sdpa"


_BY_DEFAULT = "default-"
_TELLS_DEFAULTS = ("llamafactory", "hf_trainer", "swift")
"""Frameworks whose audits count the kernel that they take by default."""


def _advise_flash(run: Run, setting: Setting, written: str) -> Judgement:
    long = _is_long(run)
    dense = _packs(run)
    single = number(run, "micro_batch_size") == 1 and not dense
    priority = _flash_priority(written, dense, long and not single)
    condition = "" if architecture(run) is not None else " (Ampere or newer)"
    served = written == "sdpa" and (setting.explicit or run.framework in _TELLS_DEFAULTS)
    served = served and not (run.framework == "swift" and dense)  # it would not start (GPU016)
    variant = _sdpa(setting) if setting.explicit else f"{_BY_DEFAULT}{_sdpa(setting)}"
    answer = advise(
        run,
        _why_flash(written, single) + condition,
        Text(f"当前注意力实现：{written}", f"attention: {written}"),
        Text(
            "改用 FlashAttention-2（需安装 flash-attn，Ampere 或更新的 GPU）",
            "use FlashAttention-2 (needs flash-attn and an Ampere or newer GPU)",
        ),
        practices={"attention": "flash_attention_2"},
        variant=variant if served else "flash-attention-2",
        at=setting,
        call=_chosen_in(run, setting) if setting.explicit else _loading_call(run),
        share=0.5 if served else None,
        priority=priority,
        parameters=_attention_parameters(run, setting),
        impact=_flash_gain(run, written, priority),
    )
    if served:
        answer = replace(answer, better="flash-attention-2")
    return _where_the_model_is_loaded(run, answer) if setting.explicit else answer


def _where_the_model_is_loaded(run: Run, answer: Judgement) -> Judgement:
    """The advice with its change in the call that chose the attention, not in the arguments
    of the trainer, which do not know it."""
    if run.framework not in ("hf_trainer", "generic") or "attn_implementation" in run.settings:
        return answer
    loads = (c for c in headed_loads(run) if "attn_implementation" in c.keywords)
    call = next(loads, None)
    if call is not None:
        change = keyword_change(run, call, "attn_implementation", "flash_attention_2")
    elif answer.change is not None:
        change = replace(answer.change, edits=())
    else:
        return answer
    findings = tuple(replace(finding, change=change) for finding in answer.findings)
    return replace(answer, change=change, findings=findings)


def _why_flash(written: str, single: bool) -> str:
    if written == "eager":
        return "eager attention writes the whole score matrix to memory"
    if single:
        return "sdpa serves samples one by one, but packed or padded ones need FlashAttention"
    return (
        "sdpa leaves its own flash kernel when a padding mask is passed, "
        "and keeps padding that FlashAttention can skip"
    )


def _flash_priority(written: str, dense: bool, long: bool) -> Priority:
    return Priority.HIGH if dense or long or written == "eager" else Priority.MEDIUM


def _flash_gain(run: Run, written: str, priority: Priority) -> Optional[Impact]:
    """What is expected of the kernel; None for the check's own figures."""
    length = number(run, "max_length")
    if length is not None and length <= _SHORT:
        note = Text(
            "样本至多 512 token，注意力占比小：BERT-large 在 512 token 时为 15%",
            "samples have 512 tokens at most, of which attention takes a small part: 15 % for "
            "BERT-large at 512",
        )
        return by_class(Priority.MEDIUM, sources.FLASH_ATTENTION, note)
    return None if written == "eager" else by_class(priority, sources.PYTORCH_SDPA)


_SHORT = 512
"""Tokens of a sample at which the FlashAttention paper measured BERT-large."""


def _chosen_in(run: Run, setting: Setting) -> Optional[Call]:
    """The call whose code chooses the attention; None where a parameter of the run does."""
    place = setting.location
    if place is None or not place.path.endswith((".py", ".ipynb")):
        return None
    if run.framework not in ("hf_trainer", "generic") or "attn_implementation" in run.settings:
        return None
    return next((c for c in headed_loads(run) if c.location.path == place.path), None)


def _loading_call(run: Run) -> Optional[Call]:
    """The call that loads the decoder, when the attention is chosen there."""
    if run.framework not in ("hf_trainer", "generic"):
        return None
    return next((c for c in headed_loads(run) if not c.is_open), None)


def _attention_parameters(run: Run, setting: Setting) -> Optional[dict[str, Any]]:
    if _loads_by_name(run, setting):
        return _initialized_with_flash(run)
    if run.framework in ("hf_trainer", "generic") and run.value("megatron") is not True:
        if _named_otherwise(run):
            return {"use_flash_attention_2": True}
        return {"attn_implementation": "flash_attention_2"}
    return None


def _initialized_with_flash(run: Run) -> dict[str, Any]:
    """What tells TRL, which loads the model, its kernel: the field of ModelConfig that the
    program hands on, or the arguments of the load beside those that are given already."""
    told = run.settings.get("model_init_kwargs")
    given: Mapping[str, Any] = {} if told is None else told.value
    if run.place.kind is not PlaceKind.PYTHON and parses_model_config(run):
        return {"attn_implementation": "flash_attention_2"}
    kept = {
        name: value.removeprefix("torch.") if isinstance(value, str) else value
        for name, value in given.items()
        if known(value)
    }
    return {"model_init_kwargs": {**kept, "attn_implementation": "flash_attention_2"}}


_HAS_FLASH = (4, 34)
_HAS_CHOICE = (4, 36)


def _named_otherwise(run: Run) -> bool:
    """Whether the release of Transformers has FlashAttention, but not the choice of kernels."""
    return _HAS_FLASH <= version_at_hand(run, "transformers")[:2] < _HAS_CHOICE


_SERVES = "flash-attention-2|flash-attention-3|sdpa|auto|flash|flash-3|varlen|sage|xformers"
_A = "general"
_S = "swift"
_L = "llamafactory"
_H = "transformers"
_V = "videox-fun"

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU301",
        "flash-attention",
        Text("Flash Attention", "Flash attention"),
        Priority.HIGH,
        by_framework(_flash_attention, videox_fun=videox.attention, flow_factory=flow.attention),
        why="Attention that stores its score matrix takes memory and traffic quadratic in "
        "the length; FlashAttention never stores it, and skips padding where samples are "
        "packed or padding-free.",
        fix="Ask for flash_attention_2 (FlashAttention-3 on Hopper where the framework has it).",
        ignore="On Volta and Turing, where SDPA is the best there is, or when all samples are "
        "short and of one length: SDPA's own flash kernel then serves as well.",
        items=(
            Item(_A, "D", "flash-attention", 1, "", _SERVES),
            Item(_S, "F", "flash-attention-2", 4, "attention", "flash-attention-2"),
            Item(_S, "F", "flash-attention-3", 4, "attention", "flash-attention-3"),
            Item(_S, "F", "sdpa", 4, "attention", "sdpa|auto|default-sdpa"),
            Item(_S, "F", "flex-attention", 4, "attention", "flex-attention"),
            Item(
                _L, "F", "flash-attention-2", 3, "attention", "flash-attention-2|flash-attention-3"
            ),
            Item(_L, "F", "sdpa", 3, "attention", "sdpa"),
            Item(_L, "F", "auto", 3, "attention", "auto|default-auto"),
            Item(_H, "F", "flash-attention-2", 5, "attention", "flash-attention-2"),
            Item(_H, "F", "flash-attention-3", 5, "attention", "flash-attention-3"),
            Item(_H, "F", "sdpa", 5, "attention", "sdpa|default-sdpa"),
            Item(_H, "F", "flex-attention", 5, "attention", "flex-attention"),
            Item(_V, "F", "flash-attention-2", 4, "attention", "flash-attention-2"),
            Item(_V, "F", "flash-attention-3", 4, "attention", "flash-attention-3"),
            Item(_V, "F", "sdpa", 4, "attention", "sdpa"),
            Item("flow-factory", "E", "flash", 4, "attention", "flash"),
            Item("flow-factory", "E", "flash-3", 4, "attention", "flash-3"),
            Item("flow-factory", "E", "varlen", 4, "attention", "varlen"),
            Item("flow-factory", "E", "sage", 4, "attention", "sage"),
            Item("flow-factory", "E", "xformers", 4, "attention", "xformers"),
            Item("flow-factory", "E", "default-sdpa", 4, "attention", "default-sdpa"),
        ),
        impact=by_class(
            Priority.HIGH,
            sources.FLASH_ATTENTION_2,
            Text(
                "序列越长、填充越多，收益越大",
                "the longer the sequences and the more padding, the more",
            ),
        ),
        examples=(
            Example(
                "hf_trainer",
                "train.py",
                LOAD.format(MODEL, LIGER_LINE),
                LOAD.format(FLASH_MODEL, LIGER_LINE),
            ),
            Example(
                "swift",
                "train.sh",
                SCRIPT.format(LIGER_FLAG),
                SCRIPT.format(LIGER_FLAG + FLASH_FLAG),
            ),
        ),
        sources=(
            sources.FLASH_ATTENTION_2,
            sources.FLASH_ATTENTION_3,
            sources.PACKING_BLOG,
            sources.HF_SINGLE_GPU,
        ),
    ),
)
