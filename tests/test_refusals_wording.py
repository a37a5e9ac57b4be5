"""Sentences of rules of one shape (frameworks/refusals/alike.py), as a user reads them."""

from __future__ import annotations

from pathlib import Path

from checks_support import findings, runs_of

from flake8_gpu_training.frameworks.refusals import all_refusals
from flake8_gpu_training.frameworks.refusals.alike import Alike, below, on, some

_RULES = Alike("source.py", "Engine")


def test_one_parameter_needs_and_several_need() -> None:
    one = _RULES.needs("a", some("size"), on("fast"))
    assert one.why.en == "{--fast} needs it"
    two = _RULES.needs("a", some("size"), on("fast"), on("small"))
    assert two.why.en == "{--fast} and {--small} need it"
    apart = _RULES.apart("a", on("one"), on("two"), on("three"), on("four"))
    assert apart.why.en == "it does not go with {--two}, {--three} and {--four}"


def test_a_range_of_a_parameter_alone_names_its_value() -> None:
    alone = _RULES.sets("a", "1 or more", below(1, "size"))
    assert alone.why.en == "{size} is out of range"
    itself = Alike("source.py", "", asked=(some("size"),)).sets("a", "1 or more", below(1, "size"))
    assert itself.why.en == "{size} is out of range"
    other = _RULES.sets("a", "1", below(1, "size"), on("fast"))
    assert other.why.en == "{--fast} needs that"


def test_no_sentence_ends_in_a_bare_none() -> None:
    for rules in all_refusals().values():
        assert not [rule.name for rule in rules if rule.why.en.endswith("} is none")]


def test_a_message_reads_as_a_sentence(tmp_path: Path) -> None:
    files = {"serve.sh": "vllm serve org/m --max-num-seqs 0\n", "requirements.txt": "vllm==0.33.0"}
    (one,) = findings(runs_of(tmp_path, files), "GPU024")
    assert one.message == (
        "set --max-num-seqs to 1 or more: 0 is out of range, and vLLM 0.33.0 refuses to start"
    )
