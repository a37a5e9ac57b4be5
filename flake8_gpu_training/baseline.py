"""Baselines: findings that a project knows of already and does not want to hear again.

A finding is known by its file, its code and the text of its line, so that lines may move.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from flake8_gpu_training.verdicts import Diagnostic

Lines = Mapping[str, Sequence[str]]


class BaselineError(ValueError):
    """The file is no baseline."""


def write_baseline(path: Path, found: Iterable[Diagnostic], lines: Lines) -> None:
    """Write the findings as a baseline file."""
    counts = Counter(_key(diagnostic, lines) for diagnostic in found)
    rows = [
        {"path": key[0], "code": key[1], "text": key[2], "count": count}
        for key, count in sorted(counts.items())
    ]
    path.write_text(json.dumps({"version": 1, "findings": rows}, indent=1, ensure_ascii=False))


def without_known(path: Path, found: Iterable[Diagnostic], lines: Lines) -> list[Diagnostic]:
    """The findings that the baseline at ``path`` does not know.

    Raises:
        BaselineError: when the file is missing or is no baseline.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["findings"]
        known = Counter({(r["path"], r["code"], r["text"]): int(r["count"]) for r in rows})
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise BaselineError(f"{path} is no baseline: {error}") from error
    new: list[Diagnostic] = []
    for diagnostic in found:
        key = _key(diagnostic, lines)
        if known[key] > 0:
            known[key] -= 1
        else:
            new.append(diagnostic)
    return new


def _key(diagnostic: Diagnostic, lines: Lines) -> tuple[str, str, str]:
    location = diagnostic.location
    text = lines.get(location.path, ())
    line = text[location.line - 1].strip() if location.line <= len(text) else ""
    return location.path, diagnostic.code, line
