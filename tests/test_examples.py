"""A check's bad example is flagged and its good example is clean, for every check."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from checks_support import findings, runs_of

from flake8_gpu_training.checks.base import Check, Example
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.patches import unified_diff
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs

CASES = [
    pytest.param(check, example, id=f"{check.code}-{example.framework}-{number}")
    for check in all_checks()
    for number, example in enumerate(check.examples)
]


@pytest.mark.parametrize(("check", "example"), CASES)
def test_the_bad_example_is_flagged(check: Check, example: Example, tmp_path: Path) -> None:
    runs = runs_of(tmp_path, {**dict(example.files), example.path: example.bad})
    assert runs, "the example is no run"
    found = findings(runs, check.code)
    assert len({finding.location for finding in found}) >= 1


@pytest.mark.parametrize(("check", "example"), CASES)
def test_the_good_example_is_clean(check: Check, example: Example, tmp_path: Path) -> None:
    runs = runs_of(tmp_path, {**dict(example.files), example.path: example.good})
    assert runs, "the example is no run"
    assert findings(runs, check.code) == []


@pytest.mark.parametrize(("check", "example"), CASES)
def test_the_change_removes_the_finding(check: Check, example: Example, tmp_path: Path) -> None:
    runs = runs_of(tmp_path, {**dict(example.files), example.path: example.bad})
    changes = [finding.change for finding in findings(runs, check.code)]
    diff = unified_diff(tmp_path, [change for change in changes if change is not None][:1])
    if not diff:
        pytest.skip("the change is words only")
    (tmp_path / "change.patch").write_text(diff, encoding="utf-8")
    subprocess.run(["git", "apply", "-p1", "change.patch"], cwd=tmp_path, check=True)
    (tmp_path / "change.patch").unlink()
    mended = find_runs(Project.open(tmp_path))
    assert mended
    assert len(findings(mended, check.code)) < len(changes)


def test_codes_are_unique_and_in_their_range() -> None:
    codes = [check.code for check in all_checks()]
    assert len(codes) == len(set(codes))
    assert all(code.startswith("GPU") and code[3:].isdigit() and len(code) == 6 for code in codes)


def test_messages_are_one_line_of_english(tmp_path: Path) -> None:
    for number, (check, example) in enumerate((c.values[0], c.values[1]) for c in CASES):
        files = {**dict(example.files), example.path: example.bad}
        runs = runs_of(tmp_path / str(number), files)
        for finding in findings(runs, check.code):
            assert finding.message.isascii(), finding.message
            assert "\n" not in finding.message
