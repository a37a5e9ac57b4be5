"""Walks loops over a script's arguments as a shell would, when the arguments are known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

MAX_ARGUMENTS = 200

_ARGUMENTS = re.compile(r"\$(?:#|1\b|@|\*)|\$\{(?:#|1\b|@|\*|#@|#\*)")
_GETOPTS = re.compile(r"\s*getopts\s")


def asks_arguments(condition: str) -> bool:
    """Whether the condition of a loop is about the arguments that are left."""
    return bool(_ARGUMENTS.search(condition) or _GETOPTS.match(condition))


@dataclass(frozen=True)
class Option:
    """What ``getopts`` found: the letter (``?`` for one it does not know), and its value.

    ``index`` is the argument it looks at next, from 0, and ``offset`` the letter within it.
    """

    letter: str
    value: Optional[tuple[int, int]]
    index: int
    offset: int


def next_option(
    letters: str, arguments: Sequence[str], index: int, offset: int
) -> Optional[Option]:
    """The option that ``getopts letters`` finds next; None when there is no further.

    ``value`` of the option is the argument that holds it, and where it begins there.
    """
    word = arguments[index] if index < len(arguments) else ""
    if offset == 0:
        if not re.match(r"-[^-]", word):
            return None
        offset = 1
    letter = word[offset]
    at = letters.lstrip(":").find(letter)
    after = (index, offset + 1) if offset + 1 < len(word) else (index + 1, 0)
    if at < 0 or letter == ":":
        return Option("?", None, *after)
    if letters.lstrip(":")[at + 1 : at + 2] != ":":
        return Option(letter, None, *after)
    if offset + 1 < len(word):
        return Option(letter, (index, offset + 1), index + 1, 0)
    if index + 1 >= len(arguments):
        return Option("?", None, index + 1, 0)
    return Option(letter, (index + 1, 0), index + 2, 0)
