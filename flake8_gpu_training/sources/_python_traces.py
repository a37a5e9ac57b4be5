"""Finds the offsets in a Python source where something of interest may stand, without parsing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from flake8_gpu_training.sources._python_interest import (
    CALLS,
    DICT_KEYS,
    HOT_CALLS,
    OPTIMIZER_LIKE,
    TRACES,
    chooses_weights,
    exchanges_attention,
    is_constructor,
    shows_samples,
)

# The text is searched backwards from each parenthesis: forwards, every word would be tried.
_CALLED_BACKWARDS = re.compile(r"\([ \t]*(\w+)(\.er\b)?")
_ATTRIBUTES_CALLED = re.compile(r"[\w.]*[ \t]*\(")
_RECEIVER_LENGTH = 40
_STALLS = frozenset({"item", "cpu", "tolist"})
_COSTLY = """
    print float synchronize empty_cache zero_grad save_pretrained save_checkpoint save_state
"""
_HOT = HOT_CALLS.union(_COSTLY.split()) - {"detach", "clone"}


def called_words(text: str) -> Iterator[tuple[str, int]]:
    """Names that are called, with the offset of their parenthesis; not ``re.compile``."""
    length = len(text)
    for match in _CALLED_BACKWARDS.finditer(text[::-1]):
        if not match.group(2):
            yield match.group(1)[::-1], length - match.start() - 1


def interest_offsets(text: str, names: Collection[str], modules: Collection[str]) -> Iterator[int]:
    """Offsets of calls of interest, configuration keys and other traces.

    ``names`` are called names of interest in this file, ``modules`` aliases of modules of
    which every call is.
    """
    verdicts: dict[str, bool] = {}
    for word, offset in called_words(text):
        verdict = verdicts.get(word)
        if verdict is None:
            verdict = word in CALLS or word in names
            verdict = verdict or is_constructor(word) or exchanges_attention(word)
            verdict = verdict or chooses_weights(word) or shows_samples(word)
            verdicts[word] = verdict
        if verdict:
            yield offset
    for trace in TRACES:
        yield from _occurrences(text, trace)
    for key in DICT_KEYS:
        for quote in "\"'":
            yield from _occurrences(text, f"{quote}{key}{quote}:")
    for module in modules:
        prefix = f"{module}."
        for offset in _occurrences(text, prefix):
            if _ATTRIBUTES_CALLED.match(text, offset + len(prefix)):
                yield offset


def stall_offsets(text: str) -> Iterator[int]:
    """Offsets of the calls among them that wait for the GPU, whoever makes them."""
    return (offset for word, offset in called_words(text) if word in _STALLS)


def hot_offsets(text: str) -> Iterator[int]:
    """Offsets of calls that cost time where they are made at every training step."""
    return (offset for word, offset in called_words(text) if word in _HOT)


def step_offsets(text: str) -> Iterator[int]:
    """Offsets of backward passes and of optimizers' steps."""
    for method in (".backward(", ".manual_backward("):
        yield from _occurrences(text, method)
    for offset in _occurrences(text, ".step("):
        if OPTIMIZER_LIKE.search(text, max(0, offset - _RECEIVER_LENGTH), offset):
            yield offset


def _occurrences(text: str, literal: str) -> Iterator[int]:
    offset = text.find(literal)
    while offset >= 0:
        yield offset
        offset = text.find(literal, offset + len(literal))
