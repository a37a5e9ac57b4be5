"""Scenarios of vLLM are those that the pinned release can run, in its words."""

from __future__ import annotations

from pathlib import Path

import pytest

from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import Run
from report_builder.report import Options, build
from report_builder.scenarios import Scenario, scenarios

RELEASES = ("0.6.6.post1", "0.8.5.post1", "0.10.2", "0.14.1", "0.19.1", "0.26.0", "0.33.0")


def run_of(root: Path, release: str) -> Run:
    root.mkdir()
    (root / "requirements.txt").write_text(f"vllm=={release}\n")
    (root / "serve.sh").write_text("vllm serve Qwen/Qwen3-8B\n")
    (run,) = find_runs(Project.open(root))
    return run


def titles(found: tuple[Scenario, ...]) -> str:
    return " / ".join(scenario.title.en for scenario in found)


@pytest.mark.parametrize("release", RELEASES)
def test_what_is_offered_is_accepted_by_the_release(tmp_path: Path, release: str) -> None:
    offered = scenarios(run_of(tmp_path / "run", release), "vllm")
    assert len(offered) >= 3
    for number, scenario in enumerate(offered):
        root = tmp_path / str(number)
        root.mkdir()
        (root / "requirements.txt").write_text(f"vllm=={release}\n")
        for file in scenario.files:
            (root / file.name).write_text(file.text.en, encoding="utf-8")
        (root / "run.sh").write_text(f"{scenario.launch}\n")
        report = build(root, "x", Options(), lambda step, done, total: None)
        assert [entry.action.en for entry in report.recommendations] == [], scenario.title.en


@pytest.mark.parametrize(
    ("release", "title", "is_offered"),
    [
        ("0.6.6.post1", "expert parallelism", False),
        ("0.6.6.post1", "on the same GPUs", False),
        ("0.8.5.post1", "expert parallelism", True),
        ("0.14.1", "by a server", False),
        ("0.19.1", "by a server", True),
    ],
)
def test_a_scenario_waits_for_the_release_of_its_flags(
    tmp_path: Path, release: str, title: str, is_offered: bool
) -> None:
    offered = scenarios(run_of(tmp_path / "run", release), "vllm")
    assert (title in titles(offered)) is is_offered


@pytest.mark.parametrize(
    ("release", "method"), [("0.10.2", '"deepseek_mtp"'), ("0.14.1", '"mtp"'), ("0.33.0", '"mtp"')]
)
def test_drafts_of_the_model_have_the_releases_name(
    tmp_path: Path, release: str, method: str
) -> None:
    offered = scenarios(run_of(tmp_path / "run", release), "vllm")
    (found,) = [s for s in offered if "DeepSeek-V3" in s.title.en]
    assert f'"method": {method}' in found.files[0].text.en
