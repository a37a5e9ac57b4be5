"""Every item of the general audit's categories A to E, on runs wired as each front end has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import audit_cases_compute
import audit_cases_memory
import audit_cases_parallelism
import pytest
from audit_cases import ADVISED, NA, OFF, ON, PARTLY, Case
from audits_support import items_of
from checks_support import runs_of

from flake8_gpu_training.checks.base import Change, Priority, Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.verdicts import Verdict, judge
from report_builder.audits import audit_of
from report_builder.scoring import ScoredItem, score

CASES: tuple[Case, ...] = (
    *audit_cases_parallelism.CASES,
    *audit_cases_memory.CASES,
    *audit_cases_compute.CASES,
)
CATEGORIES = ("A", "B", "C", "D", "E")
NEVER_ADVISED = {
    "deepspeed": "one of a group: Accelerate is in use where ZeRO is advised, and then partial",
    "megatron": "one of a group: a framework is not changed for what FSDP or ZeRO gives",
    "accelerate": "one of a group: a program that is launched on several GPUs does without it",
    "colossalai": "one of a group: FSDP is advised instead, which PyTorch brings along",
    "vescale": "one of a group: FSDP is advised instead, which PyTorch brings along",
    "triton-kernels": "written by hand; what libraries bring has items of its own",
    "cuda-graph": "whether launches bound a step of fixed shapes shows when it is profiled",
    "gradient-compression": "the network's bandwidth is written in no file",
}
"""Items that are never recommended, and why; they are shown disabled instead."""


def judged(root: Path, case: Case) -> tuple[ScoredItem, tuple[Verdict, ...]]:
    """The item as the report scores it, and the verdicts of the case's first run."""
    runs = runs_of(root, case.files)
    assert runs, "no run was found"
    verdicts = judge(runs[0], all_checks())
    scored = score(audit_of("general"), verdicts)
    return items_of(scored)[case.item], verdicts


def shown(case: Case, item: ScoredItem) -> str:
    """What the item rests on: the line of its evidence, else the default's name or the reason."""
    if item.status is not ON:
        return item.current.en
    text = ""
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
    else:
        assert item.current.en or case.status in (OFF, ADVISED)
    assert case.shows in shown(case, item)
    if case.writes:
        assert any(case.writes in change.text for change in changes(case, verdicts))


@pytest.mark.parametrize(
    "name",
    [
        item
        for category in audit_of("general").categories
        if category.id in CATEGORIES
        for item, _ in category.items
    ],
)
def test_every_item_is_on_advised_and_inapplicable_in_two_front_ends(name: str) -> None:
    wanted = OFF if name in NEVER_ADVISED else ADVISED
    counted: Counter[Status] = Counter(case.status for case in CASES if case.item == name)
    for status in (ON, wanted, NA):
        fronts = {c.front for c in CASES if c.item == name and c.status is status}
        assert len(fronts) >= 2, f"{name} {status.value}: {fronts}"
    assert counted[ADVISED] == 0 or name not in NEVER_ADVISED


def test_what_is_advised_is_written_in_the_front_ends_own_language() -> None:
    silent = [case.id for case in CASES if case.status is ADVISED and not case.writes]
    assert silent == []


def test_every_case_has_a_name_of_its_own() -> None:
    twice = [name for name, count in Counter(case.id for case in CASES).items() if count > 1]
    assert twice == []


# The binding order of the audits; where two stand, the run's size or length decides.
PRIORITIES: dict[str, tuple[Priority, ...]] = {
    "ddp": (Priority.HIGH,),
    "fsdp": (Priority.HIGH,),
    "deepspeed-zero": (Priority.HIGH,),
    "tensor-parallel": (Priority.HIGH,),
    "pipeline-parallel": (Priority.HIGH,),
    "sequence-parallel": (Priority.HIGH,),
    "expert-parallel": (Priority.MEDIUM,),
    "pytorch-fsdp": (Priority.HIGH,),
    "mixed-precision": (Priority.HIGH,),
    "fp8-training": (Priority.LOW,),
    "activation-checkpointing": (Priority.HIGH, Priority.MEDIUM),
    "cpu-nvme-offload": (Priority.HIGH,),
    "gradient-accumulation": (Priority.MEDIUM,),
    "flash-attention": (Priority.HIGH, Priority.MEDIUM),
    "torch-compile": (Priority.MEDIUM,),
    "liger-kernel": (Priority.HIGH,),
    "operator-fusion": (Priority.LOW,),
    "gdrdma": (Priority.HIGH,),
    "comm-overlap": (Priority.MEDIUM,),
    "nccl-tuning": (Priority.LOW,),
}


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.status is ADVISED], ids=lambda case: case.id
)
def test_advice_has_the_items_priority(case: Case, tmp_path: Path) -> None:
    _, verdicts = judged(tmp_path, case)
    given = {
        verdict.priority
        for verdict in verdicts
        if verdict.judgement.status in (ADVISED, PARTLY)
        and any(i.audit == "general" and i.id == case.item for i in verdict.check.items)
    }
    assert given
    assert given <= set(PRIORITIES[case.item])


@pytest.mark.parametrize(
    ("front", "line"),
    [
        ("PyTorch", "DistributedDataParallel(model"),
        ("Accelerate", "distributed_type: MULTI_GPU"),
        ("Lightning", "L.Trainer("),
    ],
)
def test_sharding_is_advised_where_it_is_written(front: str, line: str, tmp_path: Path) -> None:
    (case,) = (c for c in CASES if c.item == "fsdp" and c.status is ADVISED and c.front == front)
    _, verdicts = judged(tmp_path, case)
    places = [
        finding.location
        for verdict in verdicts
        if verdict.check.code == "GPU102"
        for finding in verdict.judgement.findings
    ]
    assert [line in case.files[at.path].splitlines()[at.line - 1] for at in places] == [True]
