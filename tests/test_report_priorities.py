"""Headings of priorities agree with the gains of the items under them."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import pytest

from flake8_gpu_training.checks.base import Impact, Priority, Status
from flake8_gpu_training.language import Text
from report_builder.cli import main
from report_builder.recommendations import Recommendation, gains_otherwise

MAIN = "static-analysis-report.md"


@pytest.mark.parametrize(
    ("priority", "throughput", "memory", "beyond"),
    [
        (Priority.HIGH, (20, 40), None, False),
        (Priority.HIGH, (10, 20), None, True),
        (Priority.HIGH, (10, 20), (-60, -40), False),
        (Priority.HIGH, (-20, -10), (-50, -40), False),
        (Priority.HIGH, None, None, False),
        (Priority.MEDIUM, (5, 15), None, False),
        (Priority.MEDIUM, (30, 100), None, False),
        (Priority.MEDIUM, (40, 100), None, True),
        (Priority.MEDIUM, (1, 5), None, True),
        (Priority.LOW, (0, 5), None, False),
        (Priority.LOW, (20, 30), None, True),
    ],
)
def test_a_gain_outside_its_heading_is_noted(
    priority: Priority,
    throughput: Optional[tuple[int, int]],
    memory: Optional[tuple[int, int]],
    beyond: bool,
) -> None:
    text = Text("", "")
    impact = Impact(throughput, memory)
    entry = Recommendation(
        1, priority, "GPU301", text, text, text, impact, "low", None, Status.RECOMMENDED
    )
    assert gains_otherwise(entry) is beyond


@pytest.mark.parametrize(("lang", "title"), [("zh", "多进程数据加载"), ("en", "Worker processes")])
def test_other_runs_are_told_by_title(tmp_path: Path, lang: str, title: str) -> None:
    script = "swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset {}.jsonl --attn_impl sdpa {}\n"
    (tmp_path / "a.sh").write_text(script.format("a", "--dataloader_num_workers 0"))
    (tmp_path / "b.sh").write_text(script.format("b", "--dataloader_num_workers 0"))
    out = tmp_path / "out"
    main([str(tmp_path), "--output-dir", str(out), "--lang", lang, "--quiet"])
    text = (out / MAIN).read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `b.sh:1`")]
    assert any(f"GPU501 {title}" in row for row in rows), rows
