"""A check of an option that one framework has, declared briefly."""

from __future__ import annotations

from typing import Optional, Union

from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import Judge
from flake8_gpu_training.checks.base import Check, Example, Impact, Item, Priority
from flake8_gpu_training.language import Text


def option_check(
    code: str,
    name: str,
    title: Text,
    judge: Judge,
    items: Union[Item, tuple[Item, ...]],
    why: str,
    fix: str,
    source: str,
    priority: Priority = Priority.LOW,
    impact: Optional[Impact] = None,
    examples: tuple[Example, ...] = (),
    ignore: str = "",
    difficulty: str = "low",
) -> Check:
    """A check of an option that only its framework has."""
    return Check(
        code,
        name,
        title,
        priority,
        judge,
        why=why,
        fix=fix,
        ignore=ignore,
        items=items if isinstance(items, tuple) else (items,),
        impact=impact or by_class(priority, source),
        difficulty=difficulty,
        examples=examples,
        sources=(source,),
    )
