"""Bytes of a script, Dockerfile or Makefile to the text that its reader takes."""

from __future__ import annotations

import re
from typing import Union

from ..facts import Location, Problem, ProblemKind

MAX_SIZE = 400_000
"""Longest text, in characters, that is read; the rest is left out."""
CRLF = "lines end in CRLF: bash takes the carriage returns for text"
"""Message of the problem that a script with such lines has."""


_INLINE_COMMENT = re.compile(r"(?<=[ \t\n])`[ \t]*#[^`\n]*`(?=[ \t\n]|$)")
"""A comment in a command that goes on: a substitution of no command, which leaves no word."""


COMMENTED = "a comment stands behind the backslash: the command ends here"
"""Message of the problem that a command has which a comment cuts off."""
_BEHIND_BACKSLASH = re.compile(
    r"^(?P<kept>(?![ \t]*#)(?:[^'\"\n]|'[^'\n]*'|\"[^\"\n]*\")*?[ \t])"
    r"(?P<cut>\\[ \t]+#[^\n]*)(?P<goes_on>(?=\n[ \t]*-))?",
    re.MULTILINE,
)


def as_meant(text: str) -> tuple[str, list[int]]:
    """A script with the comments apart that stand behind backslashes (``--tp 8 \\  # ranks``),
    each character in its place, and where they stood: the commands go on below, as is meant."""
    if "\\ " not in text and "\\\t" not in text:
        return text, []
    places = [match.start("cut") for match in _BEHIND_BACKSLASH.finditer(text)]
    return (_BEHIND_BACKSLASH.sub(_without_comment, text), places) if places else (text, [])


def _without_comment(match: re.Match[str]) -> str:
    kept, cut = match["kept"], match["cut"]
    end = " " if match["goes_on"] is None else "\\"
    return kept + " " * (len(cut) - 1) + end


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


def decoded(
    text: Union[str, bytes],
    path: str,
    first_line: int,
    problems: list[Problem],
    *,
    takes_crlf: bool = False,
) -> str:
    """The text with plain line ends; what is wrong with it is added to ``problems``."""
    start = Location(path, first_line)
    if isinstance(text, bytes):
        if b"\0" in text[:8192]:
            problems.append(Problem(ProblemKind.ENCODING, "a binary file", start))
            return ""
        data = text
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            message = f"not UTF-8: {error.reason} at byte {error.start}"
            problems.append(Problem(ProblemKind.ENCODING, message, start))
            text = data.decode("utf-8", "replace")
    if len(text) > MAX_SIZE:
        message = f"only the first {MAX_SIZE:,} characters were read"
        problems.append(Problem(ProblemKind.TOO_LARGE, message, start))
        text = text[:MAX_SIZE]
    if "\r\n" in text:
        if not takes_crlf:
            problems.append(Problem(ProblemKind.ENCODING, CRLF, start))
        # Columns stay the same.
        text = text.replace("\r\n", "\n")
    return _INLINE_COMMENT.sub(_blank, text.replace("\0", " "))
