"""Code in a Chinese report has its comments in Chinese."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from flake8_gpu_training.checks.base import Change
from report_builder.code_comments import in_chinese
from report_builder.markdown import change_fence

ROOT = Path(__file__).resolve().parent.parent
SNIPPETS = ("_flow.py", "_videox_shared.py", "strategy.py", "videox_data.py", "videox_options.py")
COMMENT = re.compile(r"(?m)^# (?!src/\S+$)[A-Za-z].*$")


def snippets() -> list[str]:
    """Comments in the code that checks write; the examples of the pages are English."""
    found = []
    for name in SNIPPETS:
        tree = ast.parse((ROOT / "flake8_gpu_training" / "checks" / name).read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found += COMMENT.findall(node.value)
    return found


def test_comments_of_changes_are_known() -> None:
    assert len(snippets()) >= 10
    assert [text for text in snippets() if in_chinese(text) == text] == []


@pytest.mark.parametrize(
    "code",
    [
        "x = 1  # the user's own\n",
        "#SBATCH --gres=gpu:8\n",
        "# src/flow_factory/data_utils/loader.py\n",
        'url = "http://a/b"\n',
    ],
)
def test_other_comments_stay(code: str) -> None:
    assert in_chinese(code) == code


def test_the_language_of_a_report_decides() -> None:
    change = Change("bash", "# --bf16 in the script instead of --fp16")
    assert "取代 --fp16" in change_fence(change, "zh")
    assert "instead of --fp16" in change_fence(change, "en")


def test_templates_have_both_languages() -> None:
    folder = ROOT / "report_builder" / "templates" / "scenarios"
    english = re.compile(r"(?m)(?:^|\s)# [a-z]\w* \w.*$")
    found = [
        f"{path.name}: {line}"
        for path in sorted(folder.rglob("*.*"))
        for line in english.findall(path.read_text("utf-8"))
    ]
    assert found == []
