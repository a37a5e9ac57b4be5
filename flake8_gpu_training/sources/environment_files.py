"""Reads files of ``NAME=value`` lines, as ``docker run --env-file`` and compose take them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..facts import Location, Origin, Setting

_LINE = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.]*)[ \t]*=[ \t]*(.*?)[ \t]*$")
_COMMENT = re.compile(r"[ \t]+#.*$")
MAX_LINES = 5_000


def read_environment_file(text: str, path: str, *, quotes: bool = True) -> Iterator[Setting]:
    """Its variables. ``quotes``: they are taken off, and comments behind a value end it;
    ``docker run`` takes them for text, compose does not.
    """
    for number, line in enumerate(text.splitlines()[:MAX_LINES], 1):
        match = _LINE.match(line)
        if match is None or line.lstrip().startswith("#"):
            continue
        value = match.group(2)
        if quotes:
            value = _bare(value)
        place = Location(path, number, match.start(1) + 1)
        yield Setting(match.group(1), value, place, Origin.ENVIRONMENT)


def _bare(value: str) -> str:
    for quote in ("'", '"'):
        if value.startswith(quote):
            return value[1:].partition(quote)[0]
    return _COMMENT.sub("", value)
