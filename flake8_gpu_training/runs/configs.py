"""Tells configuration documents of known shape apart: whose they are, and what they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from flake8_gpu_training.facts import ConfigFile, Document
from flake8_gpu_training.runs.model import RunKind

_LLAMAFACTORY_STAGES = frozenset({"pt", "sft", "rm", "ppo", "dpo", "kto"})
# Arguments of its second route (llamafactory 0.9.5, v1/config), and of its chats.
_LLAMAFACTORY_V1 = frozenset({"model", "train_dataset"})
_LLAMAFACTORY_PLUGINS = frozenset(
    {"dist_config", "kernel_config", "peft_config", "quant_config", "init_config", "optim_config"}
)
_LLAMAFACTORY_CHAT = frozenset({"model_name_or_path", "template", "infer_backend"})
_SWIFT_MARKS = frozenset({"tuner_type", "train_type", "sft_type", "rlhf_type"})
_SWIFT_MEGATRON = frozenset(
    {"micro_batch_size", "tensor_model_parallel_size", "expert_model_parallel_size", "mcore_model"}
)
_TRAINER_MARKS = frozenset(
    {
        "per_device_train_batch_size",
        "gradient_accumulation_steps",
        "learning_rate",
        "num_train_epochs",
        "max_steps",
        "output_dir",
    }
)
_DEEPSPEED_MARKS = frozenset(
    {
        "zero_optimization",
        "train_micro_batch_size_per_gpu",
        "zero_allow_untested_optimizer",
        "zero_force_ds_cpu_optimizer",
    }
)
_ACCELERATE_MARKS = frozenset({"distributed_type", "num_processes"})


@dataclass(frozen=True)
class Recognised:
    """Whose configuration a document is; ``program`` as in :mod:`.launchers`."""

    framework: str
    program: str
    subcommand: str
    kind: RunKind = RunKind.TRAIN


def recognise(document: Document) -> Optional[Recognised]:
    """The framework whose run ``document`` describes, or None.

    accelerate and DeepSpeed files describe no run by themselves.
    """
    keys = document.root.mapping.keys()
    if not keys or is_accelerate(document) or is_deepspeed(document):
        return None
    if _scalar(document, "stage") in _LLAMAFACTORY_STAGES and "finetuning_type" in keys:
        kind = RunKind.TRAIN if _is_true(document, "do_train") else RunKind.INFER
        return Recognised("llamafactory", "llamafactory", "train", kind)
    if keys >= _LLAMAFACTORY_V1 and keys & _LLAMAFACTORY_PLUGINS:
        return Recognised("llamafactory", "llamafactory", "train")
    if keys >= _LLAMAFACTORY_CHAT and not keys & _TRAINER_MARKS:
        return Recognised("llamafactory", "llamafactory", "chat", RunKind.INFER)
    if _is_flow_factory(document):
        return Recognised("flow_factory", "flow_factory", "train")
    if "model" in keys and keys & _SWIFT_MARKS and _is_plain(document, "model"):
        return _swift(document)
    if "model_name_or_path" in keys and len(keys & _TRAINER_MARKS) >= 2:
        if "stage" in keys or "finetuning_type" in keys:
            return None
        return Recognised("hf_trainer", "trl", "")
    return None


def _swift(document: Document) -> Recognised:
    keys = document.root.mapping.keys()
    program = "megatron" if keys & _SWIFT_MEGATRON else "swift"
    subcommand = "rlhf" if "rlhf_type" in keys else "sft"
    return Recognised("swift", program, subcommand)


def _is_flow_factory(document: Document) -> bool:
    train = document.get("train")
    model = document.get("model")
    return (
        train is not None
        and model is not None
        and "trainer_type" in train.mapping
        and bool(model.mapping.keys() & {"finetune_type", "model_name_or_path", "model_type"})
    )


def is_accelerate(document: Document) -> bool:
    """Whether ``document`` is what ``accelerate config`` writes."""
    keys = document.root.mapping.keys()
    return "compute_environment" in keys or keys >= _ACCELERATE_MARKS


def is_deepspeed(document: Document) -> bool:
    """Whether ``document`` is a DeepSpeed configuration."""
    return bool(document.root.mapping.keys() & _DEEPSPEED_MARKS)


def first_document(config: ConfigFile) -> Optional[Document]:
    """The first document that holds a mapping."""
    for document in config.documents:
        if document.root.kind == "mapping":
            return document
    return None


def _scalar(document: Document, key: str) -> Any:
    node = document.get(key)
    value = node.value if node is not None and node.kind == "scalar" else None
    return value if isinstance(value, str) else None


def _is_true(document: Document, key: str) -> bool:
    node = document.get(key)
    return node is not None and node.value is not False and node.value is not None


def _is_plain(document: Document, key: str) -> bool:
    node = document.get(key)
    return node is not None and node.kind == "scalar"
