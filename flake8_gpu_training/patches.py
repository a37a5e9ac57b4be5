"""Patches: the edits of changes as one unified diff of the user's files."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Optional

from flake8_gpu_training.checks.base import Change, Edit

# What a line of an insertion sets: ``--name value``, ``name: value``, ``name=value``.
_KEY = re.compile(r"""^[\s\\,]*(?P<key>(?:--)?["']?[A-Za-z_][\w.-]*["']?)\s*(?:[:=\s]|$)""")
_DOTTED = re.compile(r"^\w+(?:\.\w+)+:", re.MULTILINE)
_CONTEXT = 3
_WIDEST = 100
_END_OF_LINE = re.compile(r"[ \t]*\\\r?\n\Z")
_REST_OF_LINE = re.compile(r"[ \t]*(?:(?P<more>\\\r?\n)|(?=\r?\n|\Z))")


def unified_diff(root: Path, changes: Iterable[Change], prefix: str = "") -> str:
    """The unified diff that applies ``changes`` in order from ``root``; "" when none.

    ``prefix``: what leads from the folder where the diff is applied to ``root`` (``project/``).

    A change is applied whole or not at all: one that does not match its file or overlaps an
    earlier one is left out. A setting that an earlier change adds at the same place is not
    added again. ``patch -p1`` and ``git apply`` take the result.
    """
    texts: dict[str, Optional[str]] = {}
    accepted: dict[str, list[tuple[int, int, str]]] = {}
    keys: dict[tuple[str, int], set[str]] = {}
    for change in changes:
        edits = change.edits
        spans = [_span(edit, texts, root) for edit in edits]
        if not spans or any(span is None for span in spans):
            continue
        placed = [(e.location.path, span) for e, span in zip(edits, spans) if span is not None]
        # What an earlier change replaces by the same is done already.
        placed = [
            (path, span)
            for path, span in placed
            if span[0] == span[1] or span not in accepted.get(path, ())
        ]
        fresh = [(path, _without_known(span, keys, path)) for path, span in placed]
        if any(_overlaps(span, accepted.get(path, ())) for path, span in fresh):
            continue
        for path, span in fresh:
            start, end, new = span
            if start == end:
                keys.setdefault((path, start), set()).update(_keys_of(new))
            if new or start != end:
                accepted.setdefault(path, []).append(_on_one_line(span, texts[path] or ""))
    diffs = []
    for path in sorted(accepted):
        text = texts[path]
        assert text is not None
        diffs.append(_file_diff(f"{prefix}{path}", text, _applied(text, accepted[path])))
    return "".join(diffs)


def _file_diff(path: str, old: str, new: str) -> str:
    # A tab ends a name that has blanks in it, as git and diff write them.
    end = "\t" if " " in path else ""
    lines = difflib.unified_diff(
        _lines(old), _lines(new), f"a/{path}{end}", f"b/{path}{end}", n=_CONTEXT, lineterm="\n"
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _lines(text: str) -> list[str]:
    """Lines with their ends; only a line feed ends a line, as for ``patch``."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def has_lines(path: str) -> bool:
    """Whether a patch can name a place in the file: not in a notebook, whose places count the
    lines of cells, and not under a name that cannot be printed."""
    return path.isprintable() and not path.endswith(".ipynb")


def _read(root: Path, path: str) -> Optional[str]:
    """Text of a project file with its own line ends; None for what a patch cannot mend."""
    if not has_lines(path):
        return None
    top = os.path.realpath(root)
    full = os.path.realpath(Path(top, path))
    if not full.startswith(top.rstrip(os.sep) + os.sep) or not Path(full).is_file():
        return None
    try:
        return Path(full).read_bytes().decode("utf-8")
    except (OSError, ValueError):
        return None


def _span(
    edit: Edit, texts: dict[str, Optional[str]], root: Path
) -> Optional[tuple[int, int, str]]:
    """Offsets that ``edit`` replaces and the text it puts there; None when it does not fit."""
    path = edit.location.path
    if path not in texts:
        texts[path] = _read(root, path)
    text = texts[path]
    if text is None:
        return None
    lines = _lines(text) or [""]
    row, column = edit.location.line - 1, edit.location.column - 1
    if not 0 <= row < len(lines) or not 0 <= column <= len(lines[row]):
        return None
    if not edit.old and path.endswith((".yaml", ".yml")) and _DOTTED.search(edit.new):
        return None  # a nested key has no place at the top
    start = sum(len(line) for line in lines[:row]) + column
    end = start + len(edit.old)
    if text[start:end] != edit.old:
        return None
    new = edit.new.replace("\n", "\r\n") if "\r\n" in text else edit.new
    if not new and edit.old.startswith("--") and not edit.old[-1].isspace():
        start, end = _with_its_blanks(text, start, end)
    return start, end, new


def _with_its_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """The span of a flag that is dropped from a command, with its line if nothing else is on it."""
    line = text.rfind("\n", 0, start) + 1
    rest = _REST_OF_LINE.match(text, end)
    if text[line:start].strip(" \t") or rest is None:
        return start - (text[start - 1 : start] == " "), end
    if rest["more"]:
        return line, rest.end()
    above = _END_OF_LINE.search(text, max(0, line - _WIDEST), line)
    return (start, end) if above is None else (above.start(), end)


def _keys_of(text: str) -> list[str]:
    matches = (_KEY.match(piece) for piece in text.split("\n"))
    return [match["key"] for match in matches if match]


def _without_known(
    span: tuple[int, int, str], keys: dict[tuple[str, int], set[str]], path: str
) -> tuple[int, int, str]:
    """An insertion without the lines that set what is inserted there already."""
    start, end, new = span
    known = keys.get((path, start), set())
    if start != end or not known:
        return span
    kept = []
    pieces = new.split("\n")
    for piece in pieces:
        match = _KEY.match(piece)
        if match is None or match["key"] not in known:
            kept.append(piece)
    if len(kept) == len(pieces):
        return span
    if not any(_KEY.match(piece) for piece in kept):
        return start, end, ""
    return start, end, _mended("\n".join(kept))


def _on_one_line(span: tuple[int, int, str], text: str) -> tuple[int, int, str]:
    """``span`` without line continuations where it ends a command in single quotes.

    There a backslash stays in the text, and ``eval $COMMAND`` gives it to the program.
    """
    start, end, new = span
    is_quoted = start == end and text[end : end + 1] == "'"
    return (start, end, _CONTINUED.sub(" ", new)) if is_quoted else span


_CONTINUED = re.compile(r"[ \t]*\\\r?\n[ \t]*")


def _mended(text: str) -> str:
    """Drops a line continuation that is left dangling at the end of an insertion."""
    return re.sub(r"\s*\\\s*$", "", text) if text.rstrip().endswith("\\") else text


def _overlaps(span: tuple[int, int, str], others: Iterable[tuple[int, int, str]]) -> bool:
    start, end, _ = span
    for other_start, other_end, _ in others:
        if start == end or other_start == other_end:
            inside = other_start < start < other_end or start < other_start < end
        else:
            inside = start < other_end and other_start < end
        if inside:
            return True
    return False


def _run_together(first: str, second: str) -> bool:
    """Whether two insertions at one place (of a call without arguments) need a comma."""
    return first[-1:] not in ("", ",", " ", "\n") and second[:1] not in ("", ",", " ", "\n")


def _applied(text: str, spans: Sequence[tuple[int, int, str]]) -> str:
    pieces = []
    at = 0
    # At one place insertions keep their order and come before what is replaced there.
    for start, end, new in sorted(spans, key=lambda span: (span[0], span[1])):
        pieces.append(text[at:start])
        if start == end == at and pieces[-2:-1] and _run_together(pieces[-2], new):
            pieces.append(", ")
        pieces.append(new)
        at = end
    return "".join([*pieces, text[at:]])
