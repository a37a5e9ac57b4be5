"""What ms-swift makes of its arguments before TrainingArguments check them.

swift/arguments/sft_args.py and swift/trainers/arguments.py, 3.8.3 to 4.6.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from flake8_gpu_training.frameworks.refusals.base import Options, UndecidedError
from flake8_gpu_training.frameworks.refusals.ms_swift._asked import evaluates, tuner, value


def _given(options: Options, name: str) -> Any:
    """A value that ms-swift leaves alone when it is given; what it computes is not known."""
    found = options[name]
    if found is None:
        raise UndecidedError(name)
    return found


def _eval_strategy(options: Options) -> Any:
    if options["eval_strategy"] == "no":
        return "no"
    if not evaluates(options):
        raise UndecidedError("eval_strategy")  # ms-swift's own rules tell it
    return options["eval_strategy"] or options["save_strategy"]


def _eval_steps(options: Options) -> Any:
    if _eval_strategy(options) == "no":
        return None
    return options["eval_steps"] if options["eval_steps"] is not None else options["save_steps"]


def _precision(name: str, types: tuple[str, ...]) -> Callable[[Options], Any]:
    def filled(options: Options) -> Any:
        found = options[name]
        return found if found is not None else _given(options, "torch_dtype") in types

    return filled


def _learning_rate(options: Options) -> Any:
    found = options["learning_rate"]
    if found is not None:
        return found
    return 1e-5 if tuner(options) == "full" else 1e-4


def _workers(options: Options) -> Any:
    found = options["dataloader_num_workers"]
    return 1 if found is None else found


def _prefetch(options: Options) -> Any:
    found = options["dataloader_prefetch_factor"]
    return 2 if found is None and _workers(options) > 0 else found


def _persistent(options: Options) -> Any:
    return bool(options["dataloader_persistent_workers"]) and _workers(options) > 0


def _nothing_or(name: str) -> Callable[[Options], Any]:
    """A value that ms-swift replaces by the contents of a file."""

    def filled(options: Options) -> Any:
        if value(options, "fsdp"):
            raise UndecidedError(name)
        return options[name]

    return filled


def _steps(options: Options) -> Any:
    """A ratio becomes the steps where TrainingArguments have no ratio."""
    if value(options, "warmup_ratio"):
        raise UndecidedError("warmup_steps")
    return options["warmup_steps"]


def _ratio(options: Options) -> Any:
    if options["warmup_ratio"]:
        raise UndecidedError("warmup_ratio")
    return options["warmup_ratio"]


def _accelerator(options: Options) -> Any:
    found = options["accelerator_config"]
    return {"dispatch_batches": False} if found is None else found


def _metric(options: Options) -> Any:
    found = options["metric_for_best_model"]
    return "loss" if found is None else found


FILLED: Mapping[str, Callable[[Options], Any]] = {
    "eval_strategy": _eval_strategy,
    "eval_steps": _eval_steps,
    "fp16": _precision("fp16", ("float16", "float32")),
    "bf16": _precision("bf16", ("bfloat16",)),
    "learning_rate": _learning_rate,
    "gradient_accumulation_steps": lambda options: _given(options, "gradient_accumulation_steps"),
    "dataloader_num_workers": _workers,
    "dataloader_prefetch_factor": _prefetch,
    "dataloader_persistent_workers": _persistent,
    "fsdp": _nothing_or("fsdp"),
    "fsdp_config": _nothing_or("fsdp_config"),
    "warmup_steps": _steps,
    "warmup_ratio": _ratio,
    "accelerator_config": _accelerator,
    "metric_for_best_model": _metric,
}
