"""Write fixtures/*/findings.txt: what gpu-lint says of each bundled project, low priority too.

Read every changed line before you commit it: the file is what the test holds us to.
"""

from __future__ import annotations

from pathlib import Path

from flake8_gpu_training.checks.base import Priority
from flake8_gpu_training.lint import lint_project
from flake8_gpu_training.options import Options
from flake8_gpu_training.output import default_lines
from flake8_gpu_training.project import Project

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
COLLECTIONS = ("bug_reports", "runs", "well_configured")


def findings(project: Path) -> str:
    """The diagnostics of a project, one a line."""
    return default_lines(lint_project(Project.open(project), Options(minimum=Priority.LOW)))


def projects() -> list[Path]:
    """The bundled projects; those in the collections have tests of their own."""
    folders = (path for path in FIXTURES.iterdir() if path.name not in COLLECTIONS)
    return sorted(path for path in folders if (path / "README.md").exists())


if __name__ == "__main__":
    for folder in projects():
        (folder / "findings.txt").write_text(findings(folder), encoding="utf-8")
