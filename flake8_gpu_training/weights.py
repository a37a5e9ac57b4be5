"""The type a run's weights are loaded in, which decides what each of them takes in training."""

from __future__ import annotations

from typing import Optional

from flake8_gpu_training.facts import Call, Setting, known
from flake8_gpu_training.frameworks.hub_models import dtype_asked, is_model_load
from flake8_gpu_training.frameworks.reading import dtype, version_of
from flake8_gpu_training.runs.model import Run

_NAMES = ("torch_dtype", "dtype")


def weights_type(run: Run) -> Optional[str]:
    """``bf16``, ``fp16`` or ``fp32``; None when the checkpoint decides, or nobody can tell.

    Autocast leaves weights as they were loaded: those in 16 bits have gradients and moments
    in 16 bits, too.
    """
    if run.value("precision") == "pure-bf16":
        return "bf16"
    if run.framework == "swift":  # without torch_dtype the type of the checkpoint (model_args.py)
        return _asked_by_settings(run)
    if run.framework == "videox_fun":  # scripts/*/train*.py load with .to(weight_dtype)
        precision = run.value("precision")
        return precision if precision in ("bf16", "fp16", "fp32") else None
    if run.framework == "flow_factory":  # hparams/model_args.py: master_weight_dtype bfloat16
        asked = run.setting("model.master_weight_dtype")
        return "bf16" if asked is None else _read(asked)
    if run.framework not in ("hf_trainer", "generic"):
        return "fp32"  # LLaMA-Factory casts what it trains to float32 (model/adapter.py)
    loads = [call for file in run.python for call in file.calls if is_model_load(call)]
    if not loads:
        return "fp32" if run.framework == "generic" else _asked_by_settings(run)
    found = {_of_load(run, call) for call in loads}
    return found.pop() if len(found) == 1 else None


def _asked_by_settings(run: Run) -> Optional[str]:
    """By the fields of TRL's ``ModelConfig`` and ms-swift's, or ``model_init_kwargs``."""
    for name in (*_NAMES, *(f"model_init_kwargs.{name}" for name in _NAMES)):
        setting = run.setting(name)
        if setting is not None:
            return _read(setting)
    whole = run.setting("model_init_kwargs")
    if whole is not None and isinstance(whole.value, dict):
        return next((dtype(whole.value[name]) for name in _NAMES if name in whole.value), None)
    return None


def _read(setting: Setting) -> Optional[str]:
    return dtype(setting.value) if known(setting.value) else None


def _of_load(run: Run, call: Call) -> Optional[str]:
    for name in _NAMES:
        argument = call.keywords.get(name)
        if argument is not None and argument.value is not None:
            return dtype_asked(run, argument)
    if call.is_open:
        return _asked_by_settings(run)
    # From 5.0 on the checkpoint decides, before it was float32 (modeling_utils.py).
    return "fp32" if version_of(run, "transformers") < (5,) else None
