"""What ms-swift's commands and releases lack, for the checks that ask its audit's items."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Optional

from flake8_gpu_training.checks._judging import cannot_apply, excluding, off
from flake8_gpu_training.checks._scale import text
from flake8_gpu_training.checks._settings import is_multimodal, parameter, task
from flake8_gpu_training.checks.base import Check, Judgement, Status
from flake8_gpu_training.frameworks.reading import parsed, truth
from flake8_gpu_training.frameworks.swift_commands import is_megatron
from flake8_gpu_training.frameworks.swift_releases import (
    comes_later,
    declared,
    lacks,
    release,
    takes,
)
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

OLDER = Text("该版本没有此参数", "this release does not have the parameter")
MEGATRON = Text("Megatron 后端没有此参数", "the Megatron back end has no such parameter")


def missing(run: Run, *names: str) -> Optional[Text]:
    """Why an ms-swift run has none of the parameters, or None where it has one."""
    if run.framework != "swift" or not lacks(run, *names):
        return None
    return MEGATRON if is_megatron(run) and not comes_later(run, *names) else OLDER


# What an item takes: one of the parameters, and the choice of it that the item is about.
_TAKEN: Mapping[str, tuple[tuple[str, ...], str]] = MappingProxyType(
    {
        "qlora-bnb": (("quant_method", "quantization_bit"), ""),
        "qlora-hqq": (("quant_method",), "hqq"),
        "qlora-eetq": (("quant_method",), "eetq"),
        "fp8-quantization": (("quant_method",), "fp8"),
        "lora": (("lora_rank",), ""),
        "lisa": (("lisa_activated_layers",), ""),
        "unsloth": (("tuner_backend",), ""),
        "unsloth-backend": (("tuner_backend",), ""),
        "vit-gradient-checkpointing": (("vit_gradient_checkpointing", "vit_use_gc"), ""),
        "galore": (("use_galore",), ""),
        "q-galore": (("galore_quantization",), ""),
        "flash-attention-3": (("attn_impl", "attention_backend"), "flash_attention_3"),
        "flex-attention": (("attn_impl",), "flex_attention"),
        "sequence-parallel": (("sequence_parallel_size", "context_parallel_size"), ""),
        "liger-kernel": (("use_liger_kernel", "use_liger"), ""),
        "torch-compile": (("torch_compile",), ""),
        "packing": (("packing",), ""),
        "padding-free": (("padding_free",), ""),
        "streaming": (("streaming",), ""),
        "lazy-tokenize": (("lazy_tokenize",), ""),
        "preprocessing-workers": (("dataset_num_proc", "preprocess_num_proc"), ""),
        "dataloader-workers": (("dataloader_num_workers", "num_workers"), ""),
        "persistent-workers": (("dataloader_persistent_workers",), ""),
        "loss-scale": (("loss_scale", "use_loss_scale"), ""),
        "neftune": (("neftune_noise_alpha",), ""),
        "multimodal-freezing": (("freeze_vit",), ""),
        "layered-learning-rate": (("vit_lr", "aligner_lr"), ""),
        "vllm-rollout": (("use_vllm",), ""),
        "async-generate": (("async_generate",), ""),
        "offload-optimizer": (("offload_optimizer",), ""),
        "offload-model": (("offload_model",), ""),
        "sleep-level": (("sleep_level",), ""),
        "grpo-sampling": (("num_generations",), ""),
        "dynamic-sampling": (("dynamic_sample",), ""),
        "prefix-caching": (("vllm_enable_prefix_caching",), ""),
    }
)


def of_release(check: Check, run: Run, answer: Judgement) -> Judgement:
    """The answer about an ms-swift run, as far as its release has what the items take."""
    if run.framework != "swift" or answer.status is Status.NOT_APPLICABLE:
        return answer
    items = [item for item in check.items if item.audit == "swift"]
    absent = {item.id: why for item in items if (why := _absent(run, item.id)) is not None}
    if answer.status in _ON and any(shown.location is not None for shown in answer.evidence):
        # what is written; where the release refuses it, another check says so
        absent = {
            i.id: absent[i.id] for i in items if i.id in absent and not i.matches(answer.variant)
        }
    if not absent:
        return answer
    if len(absent) == len(items):
        return cannot_apply(next(iter(absent.values())))
    for item in items:
        if item.id in absent and item.variant:
            if answer.status is Status.RECOMMENDED and item.matches(answer.variant):
                answer = off(_NOT_ADVISED)
            answer = excluding(answer, absent[item.id], *item.variant.split("|"))
    return answer


_ON = (Status.ENABLED, Status.PARTIAL)
_NOT_ADVISED = Text("未使用；可选", "off; optional")


def _absent(run: Run, item: str) -> Optional[Text]:
    """Why the run's release has no way to turn an item on, or None where it has one."""
    names, choice = _TAKEN.get(item, ((), ""))
    why = missing(run, *names) if names else None
    if why is None and choice and not any(takes(run, name, choice) for name in names):
        return OLDER
    return why


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
