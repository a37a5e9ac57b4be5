"""Defaults of Transformers' TrainingArguments that the frameworks built on it share."""

from __future__ import annotations

from flake8_gpu_training.facts import Setting, known
from flake8_gpu_training.frameworks.at_hand import at_hand, version_at_hand
from flake8_gpu_training.frameworks.reading import (
    NEWEST,
    by_default,
    find,
    is_off,
    parsed,
    practice,
)
from flake8_gpu_training.runs.model import Run

SOURCE = "transformers 4.11.3 to 5.24.0 training_args.py"

_OF_TORCH = (4, 32)
"""The first minor release whose default is PyTorch's own AdamW (adamw_hf in 4.25.1 to 4.31.0)."""


def default_optimizer(run: Run) -> dict[str, Setting]:
    """Transformers' ``optim``: fused from 4.54 on when PyTorch is 2.8 or newer."""
    told = at_hand(run, "transformers")
    pinned = run.versions.get("transformers", "")
    transformers = parsed(told.version if told is not None and not pinned else pinned)
    torch = NEWEST if "torch" in run.perhaps else version_at_hand(run, "torch")
    fused = transformers >= (4, 54) and torch >= (2, 8)
    name = "adamw_torch_fused" if fused else "adamw_torch"
    if transformers < _OF_TORCH:
        name = "adamw_hf"
    note = f"transformers training_args.py: optim {name}"
    if fused:
        note += " with torch >= 2.8"
    elif transformers >= (4, 54):
        note += " with torch < 2.8"
    return by_default(run, "optimizer", name, note)


def saving(run: Run) -> dict[str, Setting]:
    """``save_steps`` as Transformers has it: 500 unless saving goes by epoch or not at all."""
    strategy = find(run, "save_strategy")
    if strategy is not None:
        if not known(strategy.value):
            return {"save_steps": practice("save_steps", strategy.value, strategy)}
        if is_off(strategy.value) or str(strategy.value).lower() in ("epoch", "best"):
            return {"save_steps": practice("save_steps", None, strategy)}
    if find(run, "save_steps") is not None:
        return {}
    return by_default(run, "save_steps", 500, f"{SOURCE}: save_steps 500")
