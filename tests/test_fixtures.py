"""Every bundled project gives exactly the findings written beside it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from write_findings import findings, projects


@pytest.mark.parametrize("project", projects(), ids=lambda path: path.name)
def test_findings_of_a_bundled_project(project):
    assert findings(project) == (project / "findings.txt").read_text(encoding="utf-8")
