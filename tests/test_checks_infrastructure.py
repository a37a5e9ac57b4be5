"""Infrastructure checks: storage by written paths only; how often a run saves and logs."""

from __future__ import annotations

import pytest
from checks_support import findings, hand_made, judged, runs_alone, status

from flake8_gpu_training.checks.base import Priority, Status
from flake8_gpu_training.runs.model import Run


def reading(path: object) -> Run:
    return hand_made("hf_trainer", practices={"dataset": path})


@pytest.mark.parametrize("path", ["s3://bucket/train", "oss://bucket/train", "gs://bucket/x"])
def test_object_storage_read_directly_is_suspect(path: str) -> None:
    judgement = judged(reading(path), "GPU801")
    assert judgement.status is Status.RECOMMENDED
    assert path in judgement.findings[0].message


@pytest.mark.parametrize(
    "path",
    [
        "hdfs://cluster/user/train",
        "/mnt/nfs/train",
        "/nfs/datasets",
        "/cfs-1.5/data",
        "/mnt/hdfs/x",
        ["/data/a", "/mnt_nfs/b"],
    ],
)
def test_slow_shared_storage_is_reported(path: object) -> None:
    assert status(reading(path), "GPU802") is Status.RECOMMENDED


@pytest.mark.parametrize(
    "path", ["/data/train", "tatsu-lab/alpaca", "data/nfs_notes.jsonl", "/home/cfsmith/train"]
)
def test_other_paths_prove_nothing(path: str) -> None:
    assert status(reading(path), "GPU801") is Status.UNKNOWN
    assert status(reading(path), "GPU802") is Status.UNKNOWN


@pytest.mark.parametrize("path", ["/local_ssd/train", "/nvme0/train", "/dev/shm/train"])
def test_local_disks_count(path: str) -> None:
    assert status(reading(path), "GPU802") is Status.ENABLED


def test_paths_in_calls_are_reported_at_the_path() -> None:
    text = 'from datasets import load_dataset\nrows = load_dataset("json", data_files="hdfs://c/x.jsonl")\n'
    runs = runs_alone(text + "for batch in loader:\n    loss.backward()\n    optimizer.step()\n")
    (found,) = findings(runs, "GPU802")
    assert found.location.line == 2


def saving(steps: object, tuning: str = "full", **settings: object) -> Run:
    return hand_made(practices={"save_steps": steps, "tuning": tuning}, settings=settings)


def test_checkpoints_every_few_steps_are_reported() -> None:
    judgement = judged(saving(10), "GPU803")
    assert judgement.status is Status.RECOMMENDED
    assert "save_steps 500" in judgement.findings[0].message


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (saving(20, tuning="lora"), "adapters only"),
        (saving(20, max_steps=200), "10 in the whole run"),
        (saving(50), "below 50"),
    ],
)
def test_a_short_interval_that_is_fine_says_why(run: Run, said: str) -> None:
    answer = judged(run, "GPU803")
    assert answer.status is Status.ENABLED
    assert said in answer.current.en


@pytest.mark.parametrize(
    "run",
    [
        saving(500),
        saving(None),
        saving(0.1),
        saving(20, tuning="lora"),
        saving(20, max_steps=200),
    ],
    ids=["seldom", "by epoch", "ratio", "adapters are small", "ten in all"],
)
def test_seldom_or_small_checkpoints_are_fine(run: Run) -> None:
    assert status(run, "GPU803") is Status.ENABLED


def logging(steps: object, algorithm: str = "sft", **practices: object) -> Run:
    return hand_made(practices={"logging_steps": steps, "algorithm": algorithm, **practices})


def test_logging_every_step_is_a_minor_matter() -> None:
    verdict = judged(logging(1), "GPU804")
    assert verdict.status is Status.RECOMMENDED
    assert "logging_steps 10" in verdict.findings[0].message
    assert judged(logging(5), "GPU804").status is Status.PARTIAL
    assert status(logging(10), "GPU804") is Status.ENABLED


def test_steps_of_reinforcement_learning_are_long() -> None:
    assert status(logging(1, "grpo"), "GPU804") is Status.ENABLED


def test_reporting_every_step_is_told_once_with_the_log_interval() -> None:
    assert status(logging(1, report_to="wandb"), "GPU804") is Status.RECOMMENDED
    verdict = judged(logging(1, report_to="wandb"), "GPU805")
    assert verdict.status is Status.DISABLED
    assert verdict.findings == ()
    assert status(logging(10, report_to="wandb"), "GPU805") is Status.ENABLED
    assert status(logging(1, report_to="tensorboard"), "GPU805") is Status.ENABLED


REPORTS = """
import torch
import wandb

def train(model, train_loader, optimizer):
    for step, batch in enumerate(train_loader):
        loss = model(batch.cuda())
        loss.backward()
        optimizer.step()
        {line}
"""


def test_reports_in_the_loop_are_reported_unless_guarded() -> None:
    each = runs_alone(REPORTS.format(line="wandb.log({'loss': loss})"))
    some = runs_alone(REPORTS.format(line="if step % 50 == 0: wandb.log({'loss': loss})"))
    assert len(findings(each, "GPU805")) == 1
    assert findings(some, "GPU805") == []


def test_frequencies_are_of_low_priority() -> None:
    for run, code in ((saving(10), "GPU803"), (logging(1), "GPU804")):
        assert judged(run, code).priority in (None, Priority.LOW)


def test_evidence_names_what_was_written() -> None:
    (evidence,) = judged(reading("s3://bucket/train"), "GPU801").evidence
    assert "s3://bucket/train" in evidence.text
