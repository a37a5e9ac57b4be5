"""How checks read a framework's own parameters, and the kinds of run they tell apart."""

from __future__ import annotations

import re
from typing import Any, Optional

from flake8_gpu_training.checks._scale import has_flash_kernel
from flake8_gpu_training.facts import Origin, Setting, Unknown
from flake8_gpu_training.frameworks.called import given
from flake8_gpu_training.frameworks.megatron import is_megatron_lm
from flake8_gpu_training.frameworks.reading import find, is_off, number, truth
from flake8_gpu_training.frameworks.registry import framework_of
from flake8_gpu_training.frameworks.swift_releases import default_of, source_of
from flake8_gpu_training.frameworks.swift_types import is_known_type
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

ROLLOUT = ("grpo", "gkd", "rloo", "ppo")
"""Algorithms that generate completions while they train."""
SAMPLING = (
    *ROLLOUT,
    *("online_dpo", "nash_md", "xpo", "gold", "distillation", "iw_opd"),
    *("sdft", "sdpo", "ssd", "a2po", "minillm"),
)
"""Those, and the further ones of TRL's trainers that learn from what a model samples."""
PREFERENCE = ("dpo", "orpo", "kto", "simpo", "cpo")

# Names of models that take images, video or sound.
_SEES = re.compile(
    r"(?i)ocr|vision|omni|audio|llava|(?:^|[-_/])\w*vl(?:$|[-_./])|video|image|jina-reranker-m"
)

TEXT_MODEL = Text("纯文本模型", "a text model")
NOT_SWIFT = Text("非 ms-swift 任务", "not an ms-swift run")


def parameter(run: Run, *names: str, default: Any = None, source: str = "") -> Setting:
    """The framework's own parameter: as written, else its default, else Unknown.

    ``source`` says where the default was read.
    """
    written = find(run, *names)
    if written is not None:
        return written
    if run.is_open:
        return Setting(names[0], Unknown("not all settings of the run could be read"))
    note = f"{names[0]}={default} ({source})" if source else ""
    if run.framework == "swift" and default is not None:
        default, note = _at_hand(run, names, default, note)
    return Setting(names[0], default, None, Origin.DEFAULT, note)


def _at_hand(run: Run, names: tuple[str, ...], default: Any, note: str) -> tuple[Any, str]:
    """The default of ms-swift's release at hand, where that has one of the parameters."""
    found = next((one for name in names if (one := default_of(run, name)) is not None), None)
    if found is None:
        return default, note
    value = default if found.value is None else found.value
    if not note:
        return value, ""
    name = names[0]
    is_plain = found.value == value
    return value, found.source if is_plain else source_of(
        run, name, f"{found.value} becomes {value}"
    )


def adapter_parameter(run: Run, *names: str) -> Setting:
    """A parameter of the adapters: the run's own, or an argument where PEFT's config is built."""
    if find(run, *names) is None:
        for call in (call for program in run.python for call in program.calls_to(".LoraConfig")):
            for name in names:
                if name in call.keywords:
                    return given(name, call.keywords[name].value, call, call.keywords[name])
            if call.is_open:
                return Setting(names[0], Unknown("arguments of LoraConfig are not all known"))
    return parameter(run, *names)


def is_on(setting: Setting) -> bool:
    """Whether a setting is known to be on: true, a number above 0, or a name."""
    if not setting.known or is_off(setting.value):
        return False
    as_truth = truth(setting.value)
    if as_truth is not None:
        return as_truth
    figure = number(setting.value)
    return figure is None or figure > 0


def has(run: Run, practice: str) -> bool:
    """Whether the run's framework has a parameter for ``practice``."""
    return practice in framework_of(run.framework).spellings_of(run)


def told(run: Run, practice: str) -> bool:
    """Whether a parameter, or Megatron-LM's own way, says what the run does about ``practice``."""
    return has(run, practice) or (is_megatron_lm(run) and practice in run.profile)


def algorithm(run: Run) -> Optional[str]:
    """What the run optimizes (``sft``, ``dpo`` …), or None when not known."""
    value = run.value("algorithm")
    return value.lower() if isinstance(value, str) else None


TOWERS = ("freeze_vit", "freeze_aligner", "vit_lr", "aligner_lr")
"""Parameters of ms-swift that no model without a tower of its own is given."""


def is_text(run: Run) -> bool:
    """Whether nothing speaks for images, video or sound in the run's data."""
    return is_multimodal(run) is not True if run.framework == "swift" else _is_of_text(run)


def _is_of_text(run: Run) -> bool:
    if run.model.kind in ("unknown", "embedding"):
        return _SEES.search(run.model.known_as or str(run.value("model", ""))) is None
    return run.model.kind in ("LLM", "encoder", "encoder-decoder")


def is_multimodal(run: Run) -> Optional[bool]:
    """Whether the model takes images, video or sound; None when the model is not known."""
    is_named = run.model.kind != "unknown"
    if run.framework == "swift" and not is_named:
        if find(run, *TOWERS) is not None:
            return True
        if _is_registered(run):
            return None
    if not _is_of_text(run):
        return True
    return False if is_named else None


def _is_registered(run: Run) -> bool:
    """Whether code of the project registers the type of the run's model with ms-swift."""
    kind = find(run, "model_type")
    by = find(run, "custom_register_path", "external_plugins")
    return kind is not None and by is not None and not is_known_type(str(kind.value))


NO_TOWER = Text("该模型没有单独的视觉或音频塔", "the model has no tower for images or sound")
# Multimodal models to which ms-swift 4.6.0 (model/model_arch.py) ascribes no vision_tower.
_TOWERLESS = re.compile(r"(?i)qwen3-tts|emu3-|dots[._-]?ocr|gemma-?4-12b")


def has_no_tower(run: Run) -> bool:
    """Whether ms-swift finds no tower in the run's model that it could freeze or checkpoint."""
    return run.framework == "swift" and _TOWERLESS.search(run.model.known_as) is not None


def is_unknown(run: Run) -> bool:
    """Whether ms-swift, which trains models of every kind, is given one that is not known."""
    return run.framework == "swift" and is_multimodal(run) is None


def task(run: Run) -> str:
    """What the head predicts: ``causal_lm``, ``seq_cls`` …; "" when that is not known."""
    setting = parameter(run, "task_type", default="causal_lm")
    if not setting.known or setting.value is None:
        return "" if not setting.known else "causal_lm"
    return str(setting.value).lower()


def may_use_flash_attention(run: Run) -> bool:
    """Whether nothing speaks against a flash kernel: an older GPU, or an NPU."""
    if any(name.startswith(("ASCEND_", "NPU_")) for name in run.environment):
        return False
    return has_flash_kernel(run)
