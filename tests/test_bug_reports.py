"""Public reports of runs that could not start: each cause is told, at its place, and nothing else.

``fixtures/bug_reports`` holds each as a small project of ours; its ``report.toml`` names the
public report, the cause, and the diagnostic that a user must get.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli

from flake8_gpu_training.lint import Diagnostic, lint_project
from flake8_gpu_training.options import Options
from flake8_gpu_training.project import Project

FOLDER = Path(__file__).resolve().parent.parent / "fixtures" / "bug_reports"
REPORTS = sorted(path for path in FOLDER.iterdir() if path.is_dir())


def _mistakes(folder: Path) -> list[Diagnostic]:
    found = lint_project(Project.open(folder), Options())
    return [one for one in found if one.code.startswith("GPU0")]


@pytest.mark.parametrize("folder", REPORTS, ids=lambda path: path.name)
def test_the_cause_of_a_report_is_told(folder: Path) -> None:
    wanted = tomli.loads((folder / "report.toml").read_text(encoding="utf-8"))
    found = _mistakes(folder)
    told = [f"{d.location.path}:{d.location.line} {d.code} {d.message}" for d in found]
    place = f"{wanted['place']} {wanted['code']} "
    assert [one for one in told if one.startswith(place) and wanted["says"] in one], told
    assert {d.code for d in found} == {wanted["code"]}, told


def test_there_are_twenty_reports() -> None:
    links = {
        tomli.loads((f / "report.toml").read_text(encoding="utf-8"))["report"] for f in REPORTS
    }
    assert len(links) >= 20
