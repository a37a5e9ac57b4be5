"""Decodes a file's bytes, or says why they are not text."""

from __future__ import annotations

import codecs
import re
from typing import Optional, Union

from flake8_gpu_training.facts import Location, Problem, ProblemKind

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# PEP 263, also honoured by editors for other languages.
_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


def decode(data: Union[str, bytes], path: str) -> tuple[str, tuple[Problem, ...]]:
    """Text of ``data``, and what was wrong with it; never raises.

    Bytes that are not UTF-8 (nor what a byte order mark or a coding line announces) are read
    as Latin-1, which keeps ASCII settings readable, with a problem of kind ENCODING. Binary
    data gives no text.
    """
    if isinstance(data, str):
        return data[1:] if data.startswith("\ufeff") else data, ()
    encoding = _announced(data)
    if encoding == "utf-8" and b"\0" in data:
        return "", (_problem(ProblemKind.UNREADABLE, "a binary file", path),)
    try:
        return data.decode(encoding), ()
    except (UnicodeDecodeError, LookupError):
        message = f"not {encoding} text; read as Latin-1"
        return data.decode("latin-1"), (_problem(ProblemKind.ENCODING, message, path),)


def conflict(text: str, path: str) -> Optional[Problem]:
    """The first merge conflict that stands in a configuration that no parser takes."""
    match = _CONFLICT.search(text)
    if match is None:
        return None
    line = text.count("\n", 0, match.start()) + 1
    message = "a merge conflict is not resolved (<<<<<<<)"
    return Problem(ProblemKind.SYNTAX, message, Location(path, line, 1))


_CONFLICT = re.compile(r"^<{7}(?: .*)?$(?=(?s:.*?)^={7}$)", re.MULTILINE)


def _announced(data: bytes) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    for line in data.split(b"\n", 2)[:2]:
        cookie = _COOKIE.match(line)
        if cookie:
            return _text_encoding(cookie.group(1).decode("ascii"))
    return "utf-8"


def _text_encoding(name: str) -> str:
    """``name`` when it is a text encoding Python knows, else UTF-8 (``rot13`` is no text)."""
    try:
        "".encode(name)
    except (LookupError, ValueError):
        return "utf-8"
    return name


def _problem(kind: ProblemKind, message: str, path: str) -> Problem:
    return Problem(kind, message, Location(path))
