"""Scores, by totals worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flake8_gpu_training.checks.base import (
    Check,
    Evidence,
    Finding,
    Item,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Location
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Place, PlaceKind, Run, RunKind
from flake8_gpu_training.verdicts import Verdict
from report_builder.audits import AUDITS, Audit, Category, audit_of
from report_builder.scoring import ScoredAudit, score

AT = Location("train.sh", 1)
RUN = Run("train.sh:1", RunKind.TRAIN, "swift", AT, Place(PlaceKind.FLAGS, AT))
AUDIT = Audit(
    "toy",
    Text("玩具", "Toy"),
    "toy.md",
    (
        Category("A", Text("甲", "First"), 6, (("x", Text("某", "Some")),)),
        Category("B", Text("乙", "Second"), 3, optional=True),
    ),
)


def verdict(judgement: Judgement, *items: Item) -> Verdict:
    check = Check("GPU901", "toy", Text("玩具", "Toy"), Priority.HIGH, lambda _: judgement, "", "")
    check = Check(**{**check.__dict__, "items": items})
    return Verdict(RUN, check, judgement)


def item(name: str, points: float, category: str = "A", group: str = "", variant: str = "") -> Item:
    return Item("toy", category, name, points, group, variant)


def scored(*verdicts: Verdict) -> ScoredAudit:
    result = score(AUDIT, verdicts)
    assert result is not None
    return result


def statuses(result: ScoredAudit, category: int = 0) -> dict[str, Status]:
    return {entry.id: entry.status for entry in result.categories[category].items}


def test_enabled_earns_all_partial_its_share_and_recommended_nothing() -> None:
    result = scored(
        verdict(Judgement(Status.ENABLED), item("x", 2)),
        verdict(Judgement(Status.PARTIAL, share=0.25), item("y", 2)),
        verdict(Judgement(Status.RECOMMENDED), item("z", 1)),
    )
    category = result.categories[0]
    assert category.score == 2.5  # 2 + 0.25 * 2
    assert category.attainment == 0.5  # 2.5 / (2.5 + 1.5 lost of y + 1 of z)


@pytest.mark.parametrize("status", [Status.DISABLED, Status.NOT_APPLICABLE, Status.UNKNOWN])
def test_what_is_optional_inapplicable_or_unknown_costs_no_attainment(status: Status) -> None:
    result = scored(
        verdict(Judgement(Status.ENABLED), item("x", 2)),
        verdict(Judgement(status), item("y", 4)),
    )
    assert result.categories[0].score == 2
    assert result.categories[0].attainment == 1.0


def test_best_of_alternatives_earns_the_group_once() -> None:
    fa2 = item("fa2", 3, group="attention", variant="flash_attention_2")
    sdpa = item("sdpa", 3, group="attention", variant="sdpa")
    result = scored(verdict(Judgement(Status.ENABLED, "flash_attention_2"), fa2, sdpa))
    assert statuses(result)["fa2"] is Status.ENABLED
    assert statuses(result)["sdpa"] is Status.DISABLED
    assert (result.categories[0].score, result.categories[0].attainment) == (3, 1.0)


def test_weaker_alternative_earns_part_of_the_group() -> None:
    fa2 = item("fa2", 3, group="attention", variant="flash_attention_2")
    sdpa = item("sdpa", 3, group="attention", variant="sdpa")
    result = scored(verdict(Judgement(Status.PARTIAL, "sdpa", 0.5), fa2, sdpa))
    assert statuses(result)["sdpa"] is Status.PARTIAL
    assert (result.categories[0].score, result.categories[0].attainment) == (1.5, 0.5)


def test_the_better_alternative_is_advised_beside_the_weaker_that_is_on() -> None:
    fa2 = item("fa2", 3, group="attention", variant="flash_attention_2")
    sdpa = item("sdpa", 3, group="attention", variant="sdpa")
    flex = item("flex", 3, group="attention", variant="flex")
    action = Text("改用", "use it")
    judgement = Judgement(Status.PARTIAL, "sdpa", 0.5, action=action, better="flash_attention_2")
    result = scored(verdict(judgement, fa2, sdpa, flex))
    assert statuses(result)["sdpa"] is Status.PARTIAL
    assert statuses(result)["fa2"] is Status.RECOMMENDED
    assert (result.categories[0].score, result.categories[0].attainment) == (1.5, 0.5)
    said = {entry.id: (entry.action.en, entry.current.en) for entry in result.categories[0].items}
    assert said["fa2"][0] == "use it"
    assert said["sdpa"][0] == ""
    assert said["flex"] == ("", "its alternative is on: sdpa")


def test_a_setting_that_the_framework_refuses_earns_nothing() -> None:
    place = Location("sft.yaml", 5)
    shown = (Evidence("quantization_bit=4", place),)
    on = verdict(Judgement(Status.ENABLED, evidence=shown), item("x", 2))
    refusal = verdict(Judgement(Status.NOT_APPLICABLE, findings=(Finding(place, "drop it"),)))
    mistake = replace(refusal, check=replace(refusal.check, code="GPU024"))
    assert scored(on, refusal).score == 2  # advice at the same place refuses nothing
    result = scored(on, mistake)
    assert (result.score, result.lost, statuses(result)["x"]) == (0, 0, Status.DISABLED)
    assert "GPU024" in result.categories[0].items[0].current.en
    minor = replace(mistake, check=replace(mistake.check, priority=Priority.MEDIUM))
    assert scored(on, minor).score == 2  # no release is sure to refuse it


def test_a_refused_command_says_nothing_of_a_setting_alone() -> None:
    on = verdict(Judgement(Status.ENABLED, evidence=(Evidence("swift sft", AT),)), item("x", 2))
    refusal = verdict(Judgement(Status.NOT_APPLICABLE, findings=(Finding(AT, "name the data"),)))
    mistake = replace(refusal, check=replace(refusal.check, code="GPU024"))
    assert scored(on, mistake).score == 2


def test_when_no_alternative_is_on_only_the_best_is_recommended() -> None:
    members = [item(v, 4, group="zero", variant=v) for v in ("zero2", "zero3", "fsdp2")]
    result = scored(verdict(Judgement(Status.RECOMMENDED, "zero2"), *members))
    found = statuses(result)
    assert [found[v] for v in ("zero2", "zero3", "fsdp2")] == [
        Status.RECOMMENDED,
        Status.DISABLED,
        Status.DISABLED,
    ]
    assert result.categories[0].attainment == 0.0


def test_alternatives_of_several_checks_count_once() -> None:
    result = scored(
        verdict(Judgement(Status.PARTIAL, share=0.5), item("ddp", 2, group="data")),
        verdict(Judgement(Status.RECOMMENDED), item("zero", 3, group="data")),
    )
    assert result.categories[0].score == 1  # half of ddp
    assert result.categories[0].attainment == pytest.approx(1 / 3, abs=0.01)  # 1 of zero's 3


def test_optional_category_without_applicable_item_leaves_the_total() -> None:
    vision = verdict(Judgement(Status.NOT_APPLICABLE), item("frozen", 3, "B"))
    result = scored(verdict(Judgement(Status.ENABLED), item("x", 6)), vision)
    assert result.categories[1].score is None
    assert result.categories[1].maximum is None
    assert (result.score, result.maximum) == (6, 6)


def test_optional_category_that_applies_counts() -> None:
    vision = verdict(Judgement(Status.RECOMMENDED), item("frozen", 3, "B"))
    result = scored(verdict(Judgement(Status.ENABLED), item("x", 6)), vision)
    assert (result.score, result.maximum, result.attainment) == (6, 9, 0.67)


def test_the_graver_of_two_checks_on_one_item_stands() -> None:
    good = verdict(Judgement(Status.ENABLED), item("x", 2))
    bad = verdict(Judgement(Status.PARTIAL, share=0.5), item("x", 2))
    assert scored(good, bad).score == scored(bad, good).score == 1


def test_a_listed_item_that_no_check_serves_is_unknown_and_weighs_nothing() -> None:
    result = scored(verdict(Judgement(Status.ENABLED), item("y", 2)))
    entry = result.categories[0].items[0]
    assert (entry.id, entry.status, entry.max_points) == ("x", Status.UNKNOWN, 0)
    assert result.attainment == 1.0


def test_evidence_goes_to_the_alternative_that_is_on() -> None:
    evidence = Evidence("--attn_impl flash_attn", AT)
    fa2 = item("fa2", 3, group="g", variant="fa2")
    sdpa = item("sdpa", 3, group="g", variant="sdpa")
    result = scored(verdict(Judgement(Status.ENABLED, "fa2", evidence=(evidence,)), fa2, sdpa))
    found = {entry.id: entry.evidence for entry in result.categories[0].items}
    assert found["fa2"] == (evidence,)
    assert found["sdpa"] == ()


@pytest.mark.parametrize(
    ("identifier", "total"),
    [
        ("general", 52),
        ("swift", 60),
        ("llamafactory", 58),
        ("videox-fun", 61),
        ("flow-factory", 49),
        ("transformers", 62),
        ("vllm", 52),
        ("sglang", 54),
    ],
)
def test_category_maxima_add_up_to_the_total_of_the_audit(identifier: str, total: int) -> None:
    audit = audit_of(identifier)
    assert audit is not None
    assert audit.maximum == total


def test_files_of_the_audits_are_distinct() -> None:
    assert len({audit.file for audit in AUDITS}) == len(AUDITS) == 8


def test_what_is_to_be_gained_says_where_to_write_it() -> None:
    finding = Finding(AT, "set bf16: halves the memory")
    told = Judgement(Status.RECOMMENDED, findings=(finding, finding))
    settled = Judgement(Status.ENABLED, findings=(finding,))
    result = scored(verdict(told, item("x", 1)), verdict(settled, item("y", 1)))
    assert [entry.places for entry in result.categories[0].items] == [(AT,), ()]


def test_a_fault_costs_while_it_is_found_and_is_not_listed_otherwise() -> None:
    fault = Item("toy", "A", "loop", 1, fault=True)
    finding = Finding(AT, "drop the synchronisation: the CPU waits")
    told = Judgement(Status.RECOMMENDED, findings=(finding,))
    on = verdict(Judgement(Status.ENABLED), item("x", 3))
    without = scored(on, verdict(Judgement(Status.NOT_APPLICABLE), fault)).categories[0]
    found = scored(on, verdict(told, fault)).categories[0]
    assert ("loop" in {i.id for i in without.items}, without.score, without.attainment) == (
        False,
        3,
        1.0,
    )
    assert (found.score, found.attainment) == (3, 0.75)  # 3 / (3 + 1)
