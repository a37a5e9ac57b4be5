"""A baseline hides what was known, also when lines have moved."""

import pytest

from flake8_gpu_training.baseline import BaselineError, without_known, write_baseline
from flake8_gpu_training.checks.base import Priority
from flake8_gpu_training.facts import Location
from flake8_gpu_training.verdicts import Diagnostic


def _found(line, code="GPU501"):
    return Diagnostic(code, Location("train.py", line, 1), "message", Priority.MEDIUM)


def test_known_findings_stay_hidden_when_lines_move(tmp_path):
    file = tmp_path / "baseline.json"
    write_baseline(file, [_found(1)], {"train.py": ["DataLoader(a)\n"]})
    moved = {"train.py": ["import torch\n", "DataLoader(a)\n"]}
    assert without_known(file, [_found(2)], moved) == []


def test_a_second_finding_of_the_same_text_is_new(tmp_path):
    file = tmp_path / "baseline.json"
    lines = {"train.py": ["DataLoader(a)\n", "DataLoader(a)\n"]}
    write_baseline(file, [_found(1)], lines)
    assert without_known(file, [_found(1), _found(2)], lines) == [_found(2)]


def test_another_code_is_new(tmp_path):
    file = tmp_path / "baseline.json"
    lines = {"train.py": ["DataLoader(a)\n"]}
    write_baseline(file, [_found(1)], lines)
    assert without_known(file, [_found(1, "GPU502")], lines) == [_found(1, "GPU502")]


@pytest.mark.parametrize("text", ["", "[]", '{"findings": [{}]}', "{"])
def test_a_file_that_is_no_baseline_is_refused(tmp_path, text):
    file = tmp_path / "baseline.json"
    file.write_text(text)
    with pytest.raises(BaselineError):
        without_known(file, [], {})
