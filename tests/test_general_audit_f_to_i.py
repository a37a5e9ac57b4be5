"""Every item of the general audit's categories F to I, on runs wired as each front end has it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import audit_cases_data
import audit_cases_infrastructure
import audit_cases_strategy
import pytest
from audit_cases import ADVISED, NA, OFF, ON, PARTLY, Case
from audits_support import items_of
from checks_support import runs_of

from flake8_gpu_training.checks.base import Change, Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.verdicts import Verdict, judge
from report_builder.audits import audit_of
from report_builder.scoring import ScoredItem, score

CASES = (
    *audit_cases_data.CASES,
    *audit_cases_strategy.CASES,
    *audit_cases_infrastructure.CASES,
)


# Items that no run is ever advised, and why; their tables show that they cost nothing when off.
OPTIONAL = {
    "pretokenized-binary": "tokens made beforehand only shorten the start of a run",
    "curriculum": "short sequences first change what is learnt; the gain depends on the data",
    "layer-freezing": "which layers need no training is a question of the task",
    "vision-encoder-frozen": "a new image domain needs a trained encoder",
    "vision-token-pruning": "which tokens may go is a question of the task",
}


def judged(root: Path, case: Case) -> tuple[ScoredItem, tuple[Verdict, ...]]:
    """The item as the report scores it, and the verdicts of the case's first run."""
    runs = runs_of(root, case.files)
    assert runs, "no run was found"
    verdicts = judge(runs[0], all_checks())
    scored = score(audit_of("general"), verdicts)
    return items_of(scored)[case.item], verdicts


def shown(case: Case, item: ScoredItem) -> str:
    """What the item rests on: its reason, its evidence, and the lines that this stands in."""
    text = item.current.en
    for evidence in item.evidence:
        text += evidence.text
        if evidence.location is not None:
            lines = case.files[evidence.location.path].splitlines()
            text += lines[evidence.location.line - 1]
    return text


def changes(case: Case, verdicts: tuple[Verdict, ...]) -> Iterator[Change]:
    """What is advised for the item."""
    for verdict in verdicts:
        serves = any(i.audit == "general" and i.id == case.item for i in verdict.check.items)
        if serves and verdict.judgement.change is not None:
            yield verdict.judgement.change


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_status_of_the_item(case: Case, tmp_path: Path) -> None:
    item, verdicts = judged(tmp_path, case)
    assert item.status is case.status, item.current.en
    if case.status is ON:
        assert item.evidence
    assert case.shows in shown(case, item)
    if case.writes:
        assert any(case.writes in change.text for change in changes(case, verdicts))


def fronts(item: str, *statuses: Status) -> set[str]:
    return {case.front for case in CASES if case.item == item and case.status in statuses}


@pytest.mark.parametrize(
    "item",
    [i for c in audit_of("general").categories if c.id in "FGHI" for i, _ in c.items],
)
def test_every_item_is_judged_on_two_front_ends_at_least(item: str) -> None:
    assert len(fronts(item, ON)) >= 2
    assert len(fronts(item, NA)) >= 2
    if item in OPTIONAL:
        assert len(fronts(item, OFF)) >= 2
        assert not fronts(item, ADVISED, PARTLY)
    else:
        assert len(fronts(item, ADVISED)) >= 2
