"""Practices of runs that mmengine's Runner drives: they stand in its configuration files."""

from __future__ import annotations

from typing import Any, Optional

from flake8_gpu_training.facts import Origin, Setting, known
from flake8_gpu_training.frameworks.base import Spelling
from flake8_gpu_training.frameworks.reading import dtype, find, practice, truth
from flake8_gpu_training.runs.model import Run, RunKind

_RUNNER = "mmengine 0.10 runner/runner.py"
_AMP = "mmengine 0.10 optim/optimizer/amp_optimizer_wrapper.py"
_SPELLINGS: dict[str, Spelling] = {
    "micro_batch_size": Spelling("train_dataloader.batch_size"),
    "dataloader_workers": Spelling(
        "train_dataloader.num_workers", default=0, source="DataLoader: num_workers 0"
    ),
    "pin_memory": Spelling(
        "train_dataloader.pin_memory", default=False, source="DataLoader: pin_memory False"
    ),
    "persistent_workers": Spelling(
        "train_dataloader.persistent_workers", default=False, source="DataLoader: False"
    ),
    "prefetch_factor": Spelling("train_dataloader.prefetch_factor"),
    "gradient_accumulation_steps": Spelling(
        "optim_wrapper.accumulative_counts", default=1, source=f"{_RUNNER}: accumulative_counts 1"
    ),
    "max_grad_norm": Spelling("optim_wrapper.clip_grad.max_norm"),
    "logging_steps": Spelling(
        "default_hooks.logger.interval", default=10, source="mmengine LoggerHook: interval 10"
    ),
    "find_unused_parameters": Spelling(
        "find_unused_parameters", default=False, source=f"{_RUNNER}: find_unused_parameters False"
    ),
    "output_dir": Spelling("work_dir"),
}
_BATCH = "train_dataloader.batch_size"


def is_mmengine(run: Run) -> bool:
    """Whether mmengine's Runner trains, from a configuration that was read."""
    imported = any(
        item.module.partition(".")[0] == "mmengine" for file in run.python for item in file.imports
    )
    return imported and run.kind is RunKind.TRAIN and _BATCH in run.settings


def practices(run: Run) -> dict[str, Setting]:
    """What the configuration says, with the Runner's defaults."""
    found: dict[str, Setting] = {}
    for name, spelling in _SPELLINGS.items():
        setting = find(run, spelling.parameter)
        if setting is not None:
            found[name] = practice(name, setting.value, setting)
        elif spelling.source and not run.is_open:
            found[name] = Setting(name, spelling.default, None, Origin.DEFAULT, spelling.source)
    optimizer = find(run, "optim_wrapper.optimizer.type")
    if optimizer is not None and isinstance(optimizer.value, str):
        found["optimizer"] = practice("optimizer", optimizer.value.lower(), optimizer)
    for made in (_precision(run), _saving(run), _ddp(run), _compile(run), _checkpointing(run)):
        if made is not None:
            found[made.name] = made
    return found


def _precision(run: Run) -> Optional[Setting]:
    kind = find(run, "optim_wrapper.type")
    if kind is None or not known(kind.value):
        return practice("precision", kind.value, kind) if kind is not None else None
    if kind.value == "OptimWrapper":
        return practice("precision", "fp32", kind)
    if kind.value != "AmpOptimWrapper":
        return None
    chosen = find(run, "optim_wrapper.dtype")
    if chosen is None:
        return practice(
            "precision", "fp16", kind, f"{_AMP}: autocast's float16 unless dtype is set"
        )
    value: Any = dtype(chosen.value) if known(chosen.value) else chosen.value
    return practice("precision", value, chosen) if value is not None else None


def _saving(run: Run) -> Optional[Setting]:
    interval = find(run, "default_hooks.checkpoint.interval")
    by_epoch = find(run, "default_hooks.checkpoint.by_epoch")
    if interval is None:
        return None
    by_steps = by_epoch is not None and by_epoch.value is False
    return practice("save_steps", interval.value if by_steps else None, interval)


def _ddp(run: Run) -> Optional[Setting]:
    """The Runner wraps the model when its ``launcher`` is not ``none``."""
    launcher = find(run, "launcher")
    wrapper = find(run, "model_wrapper_cfg.type")
    if launcher is None or not known(launcher.value) or find(run, "strategy.type") is not None:
        return None
    if wrapper is not None and wrapper.value != "MMDistributedDataParallel":
        return None
    return practice("ddp", launcher.value != "none", launcher)


def _compile(run: Run) -> Optional[Setting]:
    setting = find(run, "compile")
    if setting is None:
        is_told = run.is_open or any(key.startswith("compile.") for key in run.settings)
        return None if is_told else Setting("torch_compile", False, None, Origin.DEFAULT, _RUNNER)
    value: Any = truth(setting.value) if known(setting.value) else setting.value
    return practice("torch_compile", value, setting)


def _checkpointing(run: Run) -> Optional[Setting]:
    setting = find(run, "activation_checkpointing")
    if setting is None:
        return None
    value: Any = bool(setting.value) if known(setting.value) else setting.value
    return practice("gradient_checkpointing", value, setting)
