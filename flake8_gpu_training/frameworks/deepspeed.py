"""Practices that a DeepSpeed configuration sets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Optional

from flake8_gpu_training.facts import Document, Entry, Location, Origin, Setting, Unknown, known
from flake8_gpu_training.frameworks.reading import is_off, number, truth

_AUTO = "auto"
_CONFIG = "DeepSpeed 0.19 runtime/zero/config.py"
_ZERO = "zero_optimization"


def practices_from_deepspeed(document: Document) -> dict[str, Setting]:
    """Practices that ``document`` sets, DeepSpeed's own defaults included.

    ``"auto"`` is no setting: the Hugging Face integration fills it from its arguments.
    """
    found = _zero(document)
    found.update(_precision(document))
    for name, dotted in (
        ("micro_batch_size", "train_micro_batch_size_per_gpu"),
        ("gradient_accumulation_steps", "gradient_accumulation_steps"),
        ("max_grad_norm", "gradient_clipping"),
        ("autotp_size", "tensor_parallel.autotp_size"),
        ("autotp_size", "tensor_parallel.tp_size"),
        ("sequence_parallel", "sequence_parallel_size"),
    ):
        setting = _number(document, dotted, name)
        if setting is not None:
            found.setdefault(name, setting)
    _add_named(found, document)
    return found


def disputed(found: Mapping[str, Setting], spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    """What the configuration and the trainer's arguments say otherwise: the trainer refuses both.

    ``found``: practices of the configuration; ``spelled``: those of the arguments.
    """
    made: dict[str, Setting] = {}
    for name in ("micro_batch_size", "gradient_accumulation_steps", "max_grad_norm"):
        theirs, ours = found.get(name), spelled.get(name)
        if theirs is None or ours is None or not (theirs.explicit and ours.explicit):
            continue
        if theirs.known and ours.known and theirs.value != ours.value:
            reason = f"DeepSpeed says {theirs.value}, and {ours.name} says {ours.value}"
            both = Unknown(reason, (theirs.value, ours.value))
            made[name] = dataclasses.replace(theirs, value=both)
    return made


def _add_named(found: dict[str, Setting], document: Document) -> None:
    optimizer = _entry(document, "optimizer.type")
    if optimizer is not None and not _is_auto(optimizer):
        found["optimizer"] = _setting("optimizer", _lower(optimizer.node.value), optimizer)
    scheduler = _entry(document, "scheduler.type")
    if scheduler is not None and not _is_auto(scheduler):
        found["lr_scheduler"] = _setting("lr_scheduler", _lower(scheduler.node.value), scheduler)
        steps = _number(document, "scheduler.params.warmup_num_steps", "warmup")
        if steps is not None:
            found["warmup"] = steps


def _zero(document: Document) -> dict[str, Setting]:
    section = _entry(document, _ZERO)
    if section is None:
        note = f"{document.path}: no {_ZERO} ({_CONFIG}: stage 0)"
        return {"zero_stage": Setting("zero_stage", 0, None, Origin.DEFAULT, note)}
    if section.node.kind != "mapping":
        return {"zero_stage": _setting("zero_stage", _old_stage(section.node.value), section)}
    stage = _stage(document, section)
    found = {"zero_stage": stage}
    level = stage.value if known(stage.value) else None
    if level == 0:
        return found
    found["offload_optimizer"] = _offload(document, "offload_optimizer", "cpu_offload")
    if level == 3:
        found["offload_param"] = _offload(document, "offload_param", "cpu_offload_param")
    elif level is not None:
        note = "DeepSpeed: parameters are offloaded at stage 3 only"
        found["offload_param"] = Setting("offload_param", "none", None, Origin.DEFAULT, note)
    overlap = _overlap(document, level)
    if overlap is not None:
        found["overlap_comm"] = overlap
    found["zero_hpz_partition_size"] = _number(
        document, f"{_ZERO}.zero_hpz_partition_size", "zero_hpz_partition_size"
    ) or Setting("zero_hpz_partition_size", 1, None, Origin.DEFAULT, f"{_CONFIG}: 1")
    return found


def _stage(document: Document, section: Entry) -> Setting:
    entry = _entry(document, f"{_ZERO}.stage")
    if entry is None:
        return _setting("zero_stage", 0, section, f"{_ZERO} without stage ({_CONFIG}: 0)")
    value = entry.node.value
    if known(value) and str(value) in ("0", "1", "2", "3"):
        return _setting("zero_stage", int(value), entry)
    return _setting("zero_stage", Unknown("the stage is not a literal"), entry)


def _old_stage(value: Any) -> Any:
    """``"zero_optimization": true``, the form of before 0.3."""
    return int(bool(truth(value))) if known(value) else value


def _offload(document: Document, name: str, deprecated: str) -> Setting:
    section = _entry(document, f"{_ZERO}.{name}")
    if section is None:
        old = _entry(document, f"{_ZERO}.{deprecated}")
        if old is not None and known(old.node.value) and truth(old.node.value):
            return _setting(name, "cpu", old)
        return Setting(name, "none", None, Origin.DEFAULT, f"{_CONFIG}: {name} None")
    device = _entry(document, f"{_ZERO}.{name}.device")
    if device is None:
        return _setting(name, "none", section, f"{name} without device (default none)")
    value = device.node.value
    if known(value):
        value = "none" if is_off(value) else str(value).lower()
    return _setting(name, value, device)


def _overlap(document: Document, level: Optional[int]) -> Optional[Setting]:
    entry = _entry(document, f"{_ZERO}.overlap_comm")
    if entry is not None and entry.node.value is not None and not _is_auto(entry):
        value = entry.node.value
        return _setting("overlap_comm", truth(value) if known(value) else value, entry)
    if level is None:
        return None
    note = f"{_CONFIG}: overlap_comm is on at stage 3 and off below unless set"
    return Setting("overlap_comm", level == 3, None, Origin.DEFAULT, note)


def _precision(document: Document) -> dict[str, Setting]:
    for key, value in (("bf16", "bf16"), ("bfloat16", "bf16"), ("fp16", "fp16")):
        entry = _entry(document, f"{key}.enabled")
        if entry is None or _is_auto(entry):
            continue
        if not known(entry.node.value):
            return {"precision": _setting("precision", entry.node.value, entry)}
        if truth(entry.node.value):
            return {"precision": _setting("precision", value, entry)}
    return {}


def _entry(document: Document, dotted: str) -> Optional[Entry]:
    node = document.root
    entry: Optional[Entry] = None
    for part in dotted.split("."):
        entry = node.mapping.get(part)
        if entry is None:
            return None
        node = entry.node
    return entry


def _number(document: Document, dotted: str, name: str) -> Optional[Setting]:
    entry = _entry(document, dotted)
    if entry is None or _is_auto(entry):
        return None
    value = entry.node.value
    return _setting(name, value, entry) if not known(value) or number(value) is not None else None


def _setting(name: str, value: Any, entry: Entry, note: str = "") -> Setting:
    text = entry.node.text or _shown(entry.node.value)
    return Setting(
        name,
        value,
        entry.location,
        Origin.FILE,
        note or f"{entry.key}: {text}",
        entry.node.text,
        _place(entry),
    )


def _place(entry: Entry) -> Optional[Location]:
    return (entry.node.content or entry.node.location) if entry.node.text else None


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if known(value) else "?"


def _is_auto(entry: Entry) -> bool:
    value = entry.node.value
    return known(value) and value == _AUTO


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value
