"""Turns small files into runs, and runs into verdicts, for the tests of checks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

from flake8_gpu_training.checks.base import Check, Finding, Item, Judgement, Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.facts import Location, Origin, Setting
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs, run_of_file
from flake8_gpu_training.runs.model import (
    Hardware,
    Launcher,
    Model,
    Place,
    PlaceKind,
    Run,
    RunKind,
)
from flake8_gpu_training.sources.python import read_python

LLM_7B = Model("Qwen/Qwen2.5-7B-Instruct", "LLM", 7_615_616_512, is_hf_family=True)
HERE = Location("train.sh", 1, 1)


def runs_of(root: Path, files: Mapping[str, str]) -> tuple[Run, ...]:
    """The runs of a project that holds ``files``."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return find_runs(Project.open(root))


def runs_alone(text: str, path: str = "train.py", **versions: str) -> tuple[Run, ...]:
    """The runs of one Python file as flake8 sees it."""
    return run_of_file(read_python(text, path), versions=versions)


def check_of(code: str) -> Check:
    """The check with this code."""
    return next(check for check in all_checks() if check.code == code)


def judged(run: Run, code: str) -> Judgement:
    """What the check with this code says about a run."""
    return check_of(code).judge(run)


def findings(runs: tuple[Run, ...], code: str) -> list[Finding]:
    """All findings of one check on the runs."""
    return [finding for run in runs for finding in judged(run, code).findings]


def status(run: Run, code: str) -> Status:
    """The status that the check with this code gives."""
    return judged(run, code).status


def hand_made(
    framework: str = "swift",
    *,
    practices: Optional[Mapping[str, Any]] = None,
    settings: Optional[Mapping[str, Any]] = None,
    environment: Optional[Mapping[str, str]] = None,
    processes: Optional[int] = None,
    nodes: int = 1,
    model: Model = LLM_7B,
    hardware: Optional[Hardware] = None,
    kind: RunKind = RunKind.TRAIN,
    **others: Any,
) -> Run:
    """A run whose practices are given outright; a value None leaves a practice unknown."""
    launcher = Launcher()
    if processes is not None:
        launcher = Launcher("torchrun", _written("processes", processes), _written("nodes", nodes))
    return Run(
        "train.sh:1",
        kind,
        framework,
        HERE,
        Place(PlaceKind.FLAGS, HERE),
        launcher=launcher,
        settings={name: _written(name, value) for name, value in (settings or {}).items()},
        environment={name: _written(name, value) for name, value in (environment or {}).items()},
        profile={name: _written(name, value) for name, value in (practices or {}).items()},
        model=model,
        hardware=hardware or Hardware(),
        **others,
    )


def _written(name: str, value: Any) -> Setting:
    return Setting(name, value, HERE, Origin.FLAG, text=str(value))


def items_of(audit: str, category: str) -> list[Item]:
    """Every item that a category's points are made of, over all checks."""
    return [
        item
        for check in all_checks()
        for item in check.items
        if item.audit == audit and item.category == category and not item.fault
    ]
