"""gpu-lint's output formats: flake8's line, JSON, SARIF, GitHub annotations."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Callable

from flake8_gpu_training.checks.base import Priority
from flake8_gpu_training.verdicts import Diagnostic

_GITHUB = {Priority.HIGH: "error", Priority.MEDIUM: "warning", Priority.LOW: "notice"}


def default_lines(found: Sequence[Diagnostic]) -> str:
    """``path:line:column: CODE message``, one a line."""
    return "".join(f"{_place(d)}: {d.code} {d.message}\n" for d in found)


def json_text(found: Sequence[Diagnostic]) -> str:
    """A JSON list, with the keys of the report's ``diagnostics``."""
    rows = [
        {
            "code": d.code,
            "path": d.location.path,
            "line": d.location.line,
            "column": d.location.column,
            "message": d.message,
            "priority": d.priority.value,
            "run": d.run,
        }
        for d in found
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


def sarif_text(found: Sequence[Diagnostic]) -> str:
    """A SARIF log."""
    from flake8_gpu_training.sarif import sarif

    return json.dumps(sarif(found), indent=2, ensure_ascii=False) + "\n"


def github_lines(found: Sequence[Diagnostic]) -> str:
    """GitHub's workflow commands, which annotate a pull request."""
    return "".join(
        f"::{_GITHUB[d.priority]} file={_property(d.location.path)},line={d.location.line},"
        f"col={d.location.column},title={d.code}::{_data(f'{d.code} {d.message}')}\n"
        for d in found
    )


FORMATS: dict[str, Callable[[Sequence[Diagnostic]], str]] = {
    "default": default_lines,
    "json": json_text,
    "sarif": sarif_text,
    "github": github_lines,
}


def statistics(found: Sequence[Diagnostic]) -> str:
    """How often each code was found, as ``flake8 --statistics`` prints it."""
    counts = Counter(d.code for d in found)
    first = {d.code: d.message for d in reversed(found)}
    return "".join(f"{counts[code]:<8}{code} {first[code]}\n" for code in sorted(counts))


def _place(diagnostic: Diagnostic) -> str:
    location = diagnostic.location
    return f"{location.path}:{location.line}:{location.column}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
