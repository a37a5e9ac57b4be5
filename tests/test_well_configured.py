"""Well configured projects earn all they can; each practice that is taken away is told once."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from flake8_gpu_training.checks.base import Priority, Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.lint import lint_project, lint_python
from flake8_gpu_training.options import Options
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.verdicts import Diagnostic, judge
from report_builder.audits import audit_of
from report_builder.scoring import ScoredAudit, score

try:
    import tomllib
except ModuleNotFoundError:
    import tomli as tomllib

FOLDER = Path(__file__).resolve().parent.parent / "fixtures" / "well_configured"
PROJECTS = sorted(path.stem for path in FOLDER.glob("*.toml"))
BESIDES = frozenset({"pytorch-fsdp"})
"""Frameworks of category B that are recommended for what they do, with that of category A."""
ALL = Options(minimum=Priority.LOW)


@dataclass(frozen=True)
class Said:
    """What is said of a project: diagnostics of every priority, and the general audit."""

    diagnostics: tuple[Diagnostic, ...]
    audit: ScoredAudit

    @property
    def codes(self) -> frozenset[str]:
        return frozenset(found.code for found in self.diagnostics)

    @property
    def statuses(self) -> dict[str, Status]:
        return {i.id: i.status for category in self.audit.categories for i in category.items}


def said_of(root: Path) -> Said:
    project = Project.open(root)
    run = next(run for run in find_runs(project) if run.primary)
    general = audit_of("general")
    assert general is not None
    audit = score(general, judge(run, all_checks()))
    assert audit is not None
    return Said(lint_project(project, ALL), audit)


@cache
def as_bundled(name: str) -> Said:
    return said_of(FOLDER / name)


@cache
def table(name: str) -> Mapping[str, Any]:
    found: dict[str, Any] = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return found


def ablations() -> list[Any]:
    return [
        pytest.param(name, entry, id=f"{name}-{entry['without'].replace(' ', '-')}")
        for name in PROJECTS
        for entry in table(name)["ablation"]
    ]


def test_every_project_has_its_table_and_enough_ablations() -> None:
    assert sorted(path.name for path in FOLDER.iterdir() if path.is_dir()) == PROJECTS
    assert all(len(table(name)["ablation"]) >= 10 for name in PROJECTS)


@pytest.mark.parametrize("name", PROJECTS)
def test_attainment_is_full_in_every_category(name: str) -> None:
    audit = as_bundled(name).audit
    assert audit.attainment == 1.0
    assert {c.attainment for c in audit.categories} <= {1.0, None}


@pytest.mark.parametrize("name", PROJECTS)
def test_gpu_lint_says_nothing_of_medium_or_high_priority(name: str) -> None:
    found = as_bundled(name).diagnostics
    assert [d for d in found if d.priority is not Priority.LOW] == []


@pytest.mark.parametrize("name", PROJECTS)
def test_flake8_says_nothing_of_medium_or_high_priority(name: str) -> None:
    for path in sorted((FOLDER / name).rglob("*.py")):
        assert lint_python(path.read_text(encoding="utf-8"), str(path), Options()) == ()


@pytest.mark.parametrize(("name", "entry"), ablations())
def test_a_practice_taken_away_is_told_once(
    name: str, entry: Mapping[str, Any], tmp_path: Path
) -> None:
    root = tmp_path / name
    shutil.copytree(FOLDER / name, root)
    for old, new in entry["replace"]:
        path = root / entry["file"]
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, old
        path.write_text(text.replace(old, new), encoding="utf-8")
    before, after = as_bundled(name), said_of(root)
    assert after.codes - before.codes == frozenset(entry["codes"])
    assert before.codes - after.codes == frozenset()
    assert changed(before, after) == entry["items"]


def changed(before: Said, after: Said) -> dict[str, str]:
    """The items whose status is another one now, with that status."""
    old, new = before.statuses, after.statuses
    return {name: new[name].value for name in new if new[name] is not old.get(name)}


def test_no_ablation_expects_two_recommendations() -> None:
    for name in PROJECTS:
        for entry in table(name)["ablation"]:
            told = {i for i, s in entry["items"].items() if s in ("recommended", "partial")}
            assert len(told - BESIDES) <= 1, (name, entry["without"])
