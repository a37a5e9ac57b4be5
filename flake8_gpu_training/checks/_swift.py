"""What ms-swift's commands and releases lack, for the checks that ask its audit's items."""

from __future__ import annotations

from typing import Optional

from flake8_gpu_training.checks._scale import text
from flake8_gpu_training.checks._settings import is_multimodal, parameter, task
from flake8_gpu_training.frameworks.reading import parsed, truth
from flake8_gpu_training.frameworks.swift_shared import declared, is_megatron, lacks, release
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

OLDER = Text("该版本没有此参数", "this release does not have the parameter")
MEGATRON = Text("Megatron 后端没有此参数", "the Megatron back end has no such parameter")


def missing(run: Run, *names: str) -> Optional[Text]:
    """Why an ms-swift run has none of the parameters, or None where it has one."""
    if run.framework != "swift" or not lacks(run, *names):
        return None
    return MEGATRON if is_megatron(run) else OLDER


def of_megatron(run: Run) -> bool:
    """Whether ``megatron sft``, ``pt`` or ``rlhf`` drives the run."""
    return run.framework == "swift" and run.value("megatron") is True


def tokenises_late(run: Run) -> Optional[bool]:
    """Whether ms-swift tokenises samples when they are fetched; None when it cannot be told.

    The default of lazy_tokenize (base_args.py of 4.6.0, train_args.py of 3.5.2): multimodal
    models, unless the samples are cached, streamed, packed or grouped by length.
    """
    lazy = parameter(run, "lazy_tokenize")
    if lazy.explicit:
        return truth(lazy.value) if lazy.known else None
    default = declared(run, "lazy_tokenize")
    if default is not None and default.default is False:  # Megatron's up to 3.6
        return False
    ahead = ("streaming", "packing", "group_by_length", "pretokenized")
    if any(run.value(name) is True for name in ahead):
        return False
    multimodal = is_multimodal(run)
    if multimodal is not True:
        return multimodal
    return True if lazy.known and all(run.practice(name).known for name in ahead) else None


_MEGATRON_ALGORITHMS = ("pt", "sft", "dpo", "kto", "grpo", "gkd", "rm")
_MEGATRON_TUNING = ("full", "lora", "lora_llm")


def without_megatron(run: Run) -> Optional[Text]:
    """Why ``megatron`` could not run what an ms-swift run does (megatron_args.py), or None."""
    if run.framework != "swift":
        return None
    how, tuning, kind = text(run, "algorithm"), text(run, "tuning"), task(run)
    # 3.12.6 has causal_lm and seq_cls; 4.6.0 embedding and generative_reranker too.
    is_new = kind in ("embedding", "generative_reranker") and parsed(release(run)) < (4,)
    if kind == "reranker" or is_new:
        return Text(f"Megatron 不支持 task_type {kind}", f"Megatron has no task_type {kind}")
    if how is not None and how not in _MEGATRON_ALGORITHMS:
        return Text(f"Megatron 不支持 {how}", f"Megatron has no {how}")
    if tuning is not None and tuning not in _MEGATRON_TUNING:
        return Text(f"Megatron 不支持 {tuning} 微调", f"Megatron has no {tuning} tuning")
    if text(run, "quantization_method") not in (None, "none"):
        return Text("Megatron 不支持 QLoRA", "Megatron does not load quantized weights")
    return None
