"""What the README shows is what the product prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flake8_gpu_training import cli
from report_builder.cli import main as report

ROOT = Path(__file__).resolve().parent.parent
BLOCKS = re.findall(r"```text\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)


def excerpt(start: str) -> list[str]:
    return next(block for block in BLOCKS if block.startswith(start)).splitlines()


@pytest.mark.parametrize("command", ["gpu-lint", "flake8"])
def test_the_shown_diagnostics_are_printed(command, capsys, monkeypatch):
    lines = excerpt(f"$ {command}")
    monkeypatch.chdir(ROOT)
    words = [word for word in lines[0].split()[2:] if not word.startswith("--select")]
    if command == "flake8":
        from flake8.main.cli import main as flake8

        flake8(["--select=GPU", *words])
    else:
        cli.main(words)
    printed = capsys.readouterr().out.splitlines()
    assert lines[1:] == printed


def test_the_shown_report_is_written(tmp_path):
    lines = excerpt("### ")
    status = report(
        [
            str(ROOT / "fixtures/swift_lora_sft"),
            "--lang",
            "en",
            "--quiet",
            "--output-dir",
            str(tmp_path),
        ]
    )
    assert status == 0
    written = (tmp_path / "static-analysis-report.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line not in written] == []


def test_both_commands_stand_in_the_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^python3 -m venv .*$", text, re.M)
    assert len(commands) == 2
    assert commands[1].endswith("-m pytest")
