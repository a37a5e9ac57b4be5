"""The program that a command starts whichever branch of the script chose how to start it."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Optional

from ..facts import Unknown
from ._shell_values import Chunk, Field, plain
from ._shell_wrappers import unwrap

_SAME_ENVIRONMENT = frozenset(
    """uv poetry pipenv pdm pixi rye conda mamba micromamba nohup setsid exec command time nice
    ionice numactl taskset stdbuf unbuffer caffeinate""".split()  # noqa: SIM905
)
"""Wrappers that hand on the variables and start the program once."""


def with_agreed_program(fields: list[Field]) -> list[Field]:
    """``fields`` with the program in front, where a branch decides only what wraps it.

    ``LAUNCH=(python3)``, or in a branch ``LAUNCH=(uv run python3)``; then ``"${LAUNCH[@]}" -m x``.
    """
    first = fields[0]
    value = plain(first.value)
    if not isinstance(value, Unknown) or len(value.candidates) < 2:
        return fields
    behind = [field.text for field in fields[1:]]
    lines = {_unwrapped([*str(choice).split(), *behind]) for choice in value.candidates}
    agreed = lines.pop()
    if lines or agreed is None or len(agreed) <= len(behind):
        return fields
    return [
        *(_word(text, first) for text in agreed[: len(agreed) - len(behind)]),
        *fields[1:],
    ]


def _unwrapped(words: Sequence[str]) -> Optional[tuple[str, ...]]:
    """``words`` without what wraps them; None where that changes what the program sees."""
    for _ in range(len(words)):
        found = unwrap(words)
        if found is None:
            return tuple(words)
        if posixpath.basename(words[0]) not in _SAME_ENVIRONMENT or found.kind != "words":
            return None
        words = words[found.count : found.end]
    return None


def _word(text: str, first: Field) -> Field:
    chunk = Chunk(text, first.source, first.offset, None, False)
    return Field((chunk,), first.source, first.offset, first.raw, first.quoted)
