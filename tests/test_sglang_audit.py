"""Every item of SGLang's audit, by flags, in YAML and in Python; and whole scores."""

from __future__ import annotations

from pathlib import Path

import pytest
from audit_cases import ON, Case
from audit_cases_sglang import CASES
from checks_support import runs_of

from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.verdicts import Verdict, judge
from report_builder.audits import audit_of
from report_builder.scoring import ScoredItem, score

AUDIT = audit_of("sglang")
assert AUDIT is not None
ITEMS = tuple(item for category in AUDIT.categories for item, _ in category.items)


def judged(root: Path, case: Case) -> tuple[ScoredItem, tuple[Verdict, ...]]:
    """The item as the report scores it, and the verdicts of the case's first run."""
    runs = runs_of(root, case.files)
    assert runs, "no run was found"
    verdicts = judge(runs[0], all_checks())
    assert AUDIT is not None
    scored = score(AUDIT, verdicts)
    assert scored is not None
    items = {item.id: item for category in scored.categories for item in category.items}
    return items[case.item], verdicts


def shown(case: Case, item: ScoredItem) -> str:
    """What the item rests on: its evidence, and the lines where that stands."""
    text = ""
    for evidence in item.evidence:
        text += evidence.text
        if evidence.location is not None:
            lines = case.files[evidence.location.path].splitlines()
            text += lines[evidence.location.line - 1]
    return text


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{number}-{case.id}" for number, case in enumerate(CASES)]
)
def test_status_of_the_item(case: Case, tmp_path: Path) -> None:
    item, verdicts = judged(tmp_path, case)
    assert item.status is case.status, item.current.en
    assert item.evidence or case.status is not ON
    if case.shows:
        assert case.shows in shown(case, item)
    if case.writes:
        serving = [v for v in verdicts if any(i.id == case.item for i in v.check.items)]
        changes = [v.judgement.change.text for v in serving if v.judgement.change is not None]
        assert any(case.writes in text for text in changes), changes
