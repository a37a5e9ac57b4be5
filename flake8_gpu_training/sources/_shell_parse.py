"""Shell text to syntax, by whichever parser understands it."""

from __future__ import annotations

import re

from ._shell_cuts import with_lost
from ._shell_syntax import Block, Program, Trouble

MAX_BASHLEX = 64_000
"""Longer scripts go to tree-sitter at once: bashlex reads about 300,000 characters a second."""
_MAX_NESTING = 3
"""bashlex parses ``$(`` once more at each level it is nested, so deep ones take for ever."""
_REFUSED = re.compile(
    r"\(\(|=\(|\[\[|^[ \t]*(?:case|select|time|coproc)\b"
    r"|\$\{[^}'\"\s]*(?:['\"\s]|\Z)|\$['\"\[]|[^\s]~",
    re.MULTILINE,
)
"""What bashlex cannot read; and what it loops on for ever (``'${x'``)."""
PLACEHOLDER = re.compile(
    r"(?<![<&\w$()])<[A-Za-z][\w.-]*(?: [A-Za-z][\w.-]*)*>(?![\w&(])",
)
"""Words in angle brackets that a reader is meant to replace."""
_SUBSTITUTION_EDGE = re.compile(r"\$\(|\)")


def parse_program(text: str) -> Program:
    """The syntax of shell text, from whichever parser understands it. Never raises."""
    return with_lost(_parsed(text), text)


def _parsed(text: str) -> Program:
    if not text.strip():
        return Program(Block(), "bashlex")
    # To a parser ``<your_host>`` is a redirection; spans stay those of the text.
    text = PLACEHOLDER.sub(lambda match: f"_{match.group()[1:-1].replace(' ', '_')}_", text)
    if len(text) <= MAX_BASHLEX and not _REFUSED.search(text) and _nesting(text) <= _MAX_NESTING:
        from . import _shell_bashlex

        try:
            return _shell_bashlex.parse(text)
        except Exception:  # bashlex raises whatever its parts raise, RecursionError included
            pass
    from . import _shell_treesitter

    try:
        return _shell_treesitter.parse(text)
    except (RecursionError, MemoryError, ValueError) as error:
        return Program(Block(), "tree-sitter", (Trouble(0, f"cannot be parsed: {error}"),))


def _nesting(text: str) -> int:
    """A bound on how deep command substitutions are nested."""
    depth = deepest = 0
    at = text.find("$(")
    while 0 <= at < len(text) and deepest <= _MAX_NESTING:
        if text.startswith("$(", at):
            depth += 1
            deepest = max(deepest, depth)
        elif text[at] == ")" and depth:
            depth -= 1
        match = _SUBSTITUTION_EDGE.search(text, at + 1)
        if match is None:
            break
        at = match.start()
    return deepest
