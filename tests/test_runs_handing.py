"""What a file of a program does with its model is read once for all runs of a project."""

from __future__ import annotations

import pytest

from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.handing import Handing
from flake8_gpu_training.runs.reach import Reach

HANDS_OVER = "from unseen_library import wrapped\nmodel = make()\nmodel = wrapped(model)\n"
KEEPS = "from torch.nn import wrapped\nmodel = make()\nmodel = wrapped(model)\n"


@pytest.mark.parametrize(("text", "line"), [(HANDS_OVER, 3), (KEEPS, None)])
def test_it_is_told_once_for_all_runs(tmp_path, monkeypatch, text, line):
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    project = Project.open(tmp_path)
    reach = Reach(project)
    handing = Handing(reach)
    files = (project.read("train.py"),)
    first = handing.of(files)
    assert (first.line if first else None) == line
    monkeypatch.setattr(reach, "tree", lambda path: pytest.fail("read again"))
    assert handing.of(files) == first
