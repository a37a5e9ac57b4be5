"""Whole numbers with a suffix, as flags of vLLM's server take them (``4k``, ``1M``, ``25.6k``)."""

from __future__ import annotations

import re
from typing import Optional

from flake8_gpu_training.frameworks.tables import Parameter

NAMES = frozenset(
    """
    max_model_len max_num_batched_tokens max_num_scheduled_tokens max_num_queued_tokens
    kv_cache_memory_bytes safetensors_prefetch_block_size
    """.split()  # noqa: SIM905
)
"""Flags that are read so (vLLM 0.8.5 to 0.33, engine/arg_utils.py), from the release on in which
the tables have no plain type for them."""
_AUTO = frozenset({"max_model_len"})
"""Flags that take ``auto`` for what the model has (human_readable_int_or_auto)."""
AUTO_SINCE = (0, 11)
"""vLLM 0.10.2 takes no ``auto``, 0.14.1 does: of the releases between them nothing is said."""
_NUMBER = re.compile(r"(\d+)(\.\d+)?([kKmMgGtT])")
_UNITS = {
    **{letter: 1000**power for power, letter in enumerate("kmgt", 1)},
    **{letter: 1024**power for power, letter in enumerate("KMGT", 1)},
}


def is_readable(parameter: Parameter) -> bool:
    """Whether a flag of the release at hand takes numbers with a suffix."""
    return parameter.name in NAMES and not parameter.types


def takes_auto(parameter: Parameter, version: tuple[int, ...]) -> bool:
    """Whether the flag may take ``auto`` in a release."""
    return parameter.name in _AUTO and version >= AUTO_SINCE


def number(text: str) -> Optional[int]:
    """The number that a text stands for; None where it is refused: ``25.6K`` is, ``25.6k`` not."""
    found = _NUMBER.fullmatch(text.strip())
    try:
        if found is None:
            return int(text)
    except ValueError:
        return None
    whole, part, suffix = found.groups()
    if part and suffix.isupper():
        return None
    return int(float(f"{whole}{part or ''}") * _UNITS[suffix])
