"""A check as a page of documentation; ``--explain`` and ``docs/checks/`` both print it."""

from __future__ import annotations

from flake8_gpu_training.checks.base import Check, Example, Impact

_FENCES = {
    "py": "python",
    "sh": "bash",
    "slurm": "bash",
    "yaml": "yaml",
    "json": "json",
    "toml": "toml",
}


def page(check: Check) -> str:
    """Markdown of the page of one check."""
    parts = [
        f"# {check.code}: {check.name}\n",
        f"{check.title.en}. Priority: {check.priority.value}.\n",
        f"## Why it matters\n\n{check.why}\n",
        _impact(check.impact),
        f"## How to fix\n\n{check.fix}\n",
    ]
    if check.examples:
        parts.append("## Examples\n")
        parts.extend(_example(example) for example in check.examples)
    if check.ignore:
        parts.append(f"## When to ignore\n\n{check.ignore}\n")
    if check.items:
        rows = "\n".join(f"* {item.audit}, {item.category}: `{item.id}`" for item in check.items)
        parts.append(f"## Audit items\n\n{rows}\n")
    if check.sources:
        parts.append("## Sources\n\n" + "\n".join(f"* {source}" for source in check.sources) + "\n")
    return "\n".join(part for part in parts if part)


def _impact(impact: Impact) -> str:
    figures = []
    if impact.throughput:
        figures.append("throughput {:+d} % to {:+d} %".format(*impact.throughput))
    if impact.memory:
        figures.append("memory {:+d} % to {:+d} %".format(*impact.memory))
    if not figures and not impact.note.en:
        return ""
    text = "; ".join([*figures, impact.note.en] if impact.note.en else figures)
    source = f" ({impact.source})" if impact.source else ""
    return f"What it brings: {text}{source}.\n"


def _fence(path: str) -> str:
    return _FENCES.get(path.rpartition(".")[2], "")


def _example(example: Example) -> str:
    fence = _fence(example.path)
    beside = "".join(
        f"Beside `{path}`:\n\n```{_fence(path)}\n{text.rstrip()}\n```\n\n"
        for path, text in example.files
    )
    return (
        f"### {example.framework}: `{example.path}`\n\n{beside}"
        f"Flagged:\n\n```{fence}\n{example.bad.rstrip()}\n```\n\n"
        f"Clean:\n\n```{fence}\n{example.good.rstrip()}\n```\n"
    )
