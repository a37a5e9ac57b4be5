"""Markdown of one value: table cells, inline code, fenced blocks, figures."""

from __future__ import annotations

import re
from typing import Optional


def cell(text: str) -> str:
    """``text`` as the content of a table cell."""
    flat = " ".join(str(text).split())
    return flat.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def code(text: str) -> str:
    """``text`` as inline code, fit for a table cell."""
    flat = " ".join(str(text).split())
    if not flat:
        return ""
    longest = max((len(run) for run in re.findall(r"`+", flat)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    body = flat.replace("|", "\\|")
    return f"{ticks}{pad}{body}{pad}{ticks}"


def fence(text: str, language: str) -> str:
    """``text`` as a fenced block."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    ticks = "`" * (longest + 1)
    body = text.rstrip("\n")
    return f"{ticks}{language}\n{body}\n{ticks}"


def number(value: float) -> str:
    """A number without needless decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def percent(share: Optional[float]) -> str:
    """A share of 1 as percent; a dash for None."""
    return "—" if share is None else f"{share * 100:.0f}%"
