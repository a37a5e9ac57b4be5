"""docs/refusals: every case names what reports it, and every rule is named by a case."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.frameworks.refusals import all_refusals

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import make_refusal_page as tool

CATALOGUES = tool.catalogues()


@pytest.mark.parametrize("catalogue", CATALOGUES, ids=lambda one: one.distribution)
def test_each_statement_of_a_file_belongs_to_a_case(catalogue: tool.Catalogue) -> None:
    counted = dict.fromkeys(catalogue.statements, 0)
    for case in catalogue.cases:
        counted[case.file] += case.count
    assert counted == dict(catalogue.statements)


@pytest.mark.parametrize("catalogue", CATALOGUES, ids=lambda one: one.distribution)
def test_a_case_names_what_reports_it_or_says_why_nothing_does(catalogue: tool.Catalogue) -> None:
    codes = {check.code for check in all_checks()}
    rules = {rule.name for rules in all_refusals().values() for rule in rules}
    for case in catalogue.cases:
        assert case.by or case.because, case
        assert not (case.by and not case.decidable), case
        for told in case.by:
            code, _, rule = told.partition(" ")
            assert code in codes, case
            assert (rule in rules) if code == "GPU024" else not rule, case


def test_each_rule_stands_in_a_catalogue() -> None:
    told = {told.partition(" ")[2] for one in CATALOGUES for case in one.cases for told in case.by}
    for distribution, rules in all_refusals().items():
        names = [rule.name for rule in rules]
        assert len(names) == len(set(names)), distribution
        assert set(names) <= told, (distribution, set(names) - told)


def test_the_page_is_made_of_the_catalogues() -> None:
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page()
