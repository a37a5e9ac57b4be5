"""What GRPO and GKD refuse of batches and groups of completions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Callable

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.ms_swift._asked import (
    RLHF,
    batch,
    evaluates,
    of_grpo,
    value,
    world,
)
from flake8_gpu_training.language import Text

_OLDER_TRAINER = "swift/trainers/rlhf_trainer/grpo_trainer.py, GRPOTrainer.__init__"
_BATCHES = (
    "swift/rlhf_trainers/args_mixin.py, RolloutTrainerArgumentsMixin._init_generation_batch_params"
)


def _accumulated(options: Options) -> int:
    return batch(options, "gradient_accumulation_steps", 1)  # GRPO's own default


def _global_batch(options: Options) -> int:
    return batch(options, "per_device_train_batch_size") * world(options)


def _generated(options: Options) -> int:
    """Completions that are generated at once."""
    whole, steps = value(options, "generation_batch_size"), value(options, "steps_per_generation")
    if whole is not None:
        return batch(options, "generation_batch_size")
    if steps is not None:
        return _global_batch(options) * batch(options, "steps_per_generation")
    return _global_batch(options) * _accumulated(options)


def _uneven_generation(options: Options) -> bool:
    if options["rlhf_type"] not in ("grpo", "gkd") or options["generation_batch_size"] is None:
        return False
    if options["steps_per_generation"] is not None:
        return _generated(options) != _expected(options)
    return _generated(options) % _global_batch(options) != 0


def _filled(options: Options) -> int:
    """Completions of one optimizer step, whose accumulation ms-swift fills up to 16 samples."""
    step = _global_batch(options)
    return step * batch(options, "gradient_accumulation_steps", max(1, math.ceil(16 / step)))


def _filled_or_generated(options: Options) -> int:
    """Completions that are generated at once, in the releases that fill the accumulation up."""
    given = ("generation_batch_size", "steps_per_generation")
    if any(value(options, name) is not None for name in given):
        return _generated(options)
    return _filled(options)


def _expected(options: Options) -> int:
    return _global_batch(options) * batch(options, "steps_per_generation", 1)


def _uneven_groups(options: Options) -> bool:
    size, generations = _generated(options), batch(options, "num_generations")
    if options["generation_batch_size"] is not None and _uneven_generation(options):
        return False  # told by itself
    return generations > 1 and size > 0 and size % generations != 0


def _of_older(
    whole: Callable[[Options], int],
) -> tuple[Callable[[Options], bool], Callable[[Options], Mapping[str, Any]]]:
    """Whether ``whole`` completions do not divide into groups, and the figures."""

    def holds(options: Options) -> bool:
        generations = batch(options, "num_generations")
        return generations > 1 and whole(options) % generations != 0

    return holds, lambda options: {"whole": whole(options)}


def _groups() -> Iterator[Refusal]:
    """The rules of groups, which each release counts over other batches."""
    yield Refusal(
        "group-of-one",
        _OLDER_TRAINER,
        ("num_generations",),
        of_grpo(lambda options: batch(options, "num_generations") < 2),
        Text("num_generations 设为 2 或更大", "give num_generations 2 or more"),
        Text(
            "GRPO 要比较同一提示的多个回答",
            "GRPO compares the completions of a prompt with each other",
        ),
        since="3.1.1.post1",
        until="4.3.99",
        groups=RLHF,
    )
    for name, whole, since, until in (
        ("uneven-groups-of-a-batch", _global_batch, "3.1.1.post1", "3.3.99"),
        ("uneven-groups-of-a-step", _filled_or_generated, "3.4.0", "3.6.99"),
        ("uneven-groups", _generated, "3.7.0", ""),
    ):
        holds, figures = _of_older(whole)
        is_newest = name == "uneven-groups"
        yield Refusal(
            name,
            _BATCHES if is_newest else _OLDER_TRAINER,
            ("num_generations", "per_device_train_batch_size"),
            of_grpo(_uneven_groups if is_newest else holds),
            Text(
                "num_generations 设为 {whole} 的约数，或增大 per_device_train_batch_size",
                "give num_generations a divisor of {whole}, or raise per_device_train_batch_size",
            ),
            Text(
                "一次生成 {whole} 个回答，不能分成每组 {num_generations} 个",
                "{whole} completions generated at once do not divide into groups of "
                "{num_generations}",
            ),
            figures=_figures if is_newest else figures,
            since=since,
            until=until,
            groups=RLHF,
        )


def _uneven_evaluation(options: Options) -> bool:
    generations = batch(options, "num_generations")
    if generations < 2 or not evaluates(options):
        return False
    return _evaluated(options) % _of_evaluation(options) != 0


def _evaluated(options: Options) -> int:
    return batch(options, "per_device_eval_batch_size") * world(options)


def _of_evaluation(options: Options) -> int:
    return batch(options, "num_generations_eval", batch(options, "num_generations"))


def _figures(options: Options) -> Mapping[str, Any]:
    return {"whole": _generated(options), "step": _global_batch(options)}


def _figures_of_evaluation(options: Options) -> Mapping[str, Any]:
    return {"whole": _evaluated(options), "generations": _of_evaluation(options)}


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "generation-batch",
        _BATCHES,
        ("generation_batch_size", "steps_per_generation"),
        _uneven_generation,
        Text(
            "generation_batch_size 设为 {step} 的倍数，且等于 {step} × steps_per_generation",
            "make generation_batch_size a multiple of {step}, and {step} x steps_per_generation "
            "where that is given",
        ),
        Text(
            "一步有 {step} 个样本（per_device_train_batch_size × 进程数），不能得到 {whole}",
            "a step has {step} samples (per_device_train_batch_size x processes), which do not "
            "make {whole}",
        ),
        figures=_figures,
        since="4.2.3",
        groups=RLHF,
    ),
    Refusal(
        "no-generation-step",
        _BATCHES,
        ("steps_per_generation",),
        lambda options: (
            options["rlhf_type"] in ("grpo", "gkd")
            and options["generation_batch_size"] is None
            and options["steps_per_generation"] <= 0
        ),
        Text("steps_per_generation 设为 1 或更大", "give steps_per_generation 1 or more"),
        Text("{steps_per_generation} 步不生成", "{steps_per_generation} steps generate nothing"),
        since="4.2.3",
        groups=RLHF,
    ),
    *_groups(),
    Refusal(
        "uneven-groups-in-evaluation",
        _BATCHES,
        ("per_device_eval_batch_size", "num_generations_eval", "num_generations"),
        of_grpo(_uneven_evaluation),
        Text(
            "让 per_device_eval_batch_size × 进程数是 {generations} 的倍数",
            "make per_device_eval_batch_size x processes a multiple of {generations}",
        ),
        Text(
            "评估一次 {whole} 个回答，不能分成每组 {generations} 个",
            "{whole} completions evaluated at once do not divide into groups of {generations}",
        ),
        figures=_figures_of_evaluation,
        since="3.12.6",
        groups=RLHF,
    ),
)
