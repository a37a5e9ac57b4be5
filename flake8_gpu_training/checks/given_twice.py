"""GPU023: a flag that a command gives twice with different values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from flake8_gpu_training.checks._written import Written, uses, value_text
from flake8_gpu_training.checks.base import (
    Check,
    Evidence,
    Example,
    Finding,
    Impact,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Location, Word, known
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run


def _judge(run: Run) -> Judgement:
    twice = list(_twice(run))
    if not twice:
        return Judgement(Status.NOT_APPLICABLE)
    earlier, last = twice[0]
    return Judgement(
        Status.RECOMMENDED,
        evidence=tuple(Evidence(one.setting.written, one.location) for one, _ in twice),
        findings=tuple(
            Finding(one.location, _message(one, later), told=_told(one, later))
            for one, later in twice
        ),
        current=Text(
            f"{earlier.name} 重复，仅最后一个生效",
            f"{earlier.name} is given twice, the last counts",
        ),
        action=Text(
            f"只保留一个：{_shown(earlier)} 或 {_shown(last)}",
            f"keep one: {_shown(earlier)} or {_shown(last)}",
        ),
    )


def _told(earlier: Written, last: Written) -> Text:
    return Text(
        f"`{_shown(earlier)}` 不生效，同一命令后面还有 `{_shown(last)}`；删除其中一个",
        _message(earlier, last),
    )


def _message(earlier: Written, last: Written) -> str:
    return (
        f"remove one of the two: {_shown(earlier)} is lost, since {_shown(last)} follows in "
        "the same command and only the last one counts"
    )


def _shown(written: Written) -> str:
    value = written.setting.value
    parts = value if isinstance(value, list) else [value]
    return " ".join([written.raw, *map(value_text, parts)])


def _twice(run: Run) -> Iterator[tuple[Written, Written]]:
    """Each flag that a later one of the same command overrides, with that one; once a flag."""
    words = {word.location: word for word in run.command.words} if run.command else {}
    for use in uses(run):
        last: dict[str, Written] = {}
        told: set[str] = set()
        for written in use.written:
            if not written.is_flag or not _stands_in(run, written, words):
                continue
            # The settings that count come first, then those that they override.
            counted = last.setdefault(written.name, written)
            if written.name in told or counted is written or not _differs(counted, written):
                continue
            told.add(written.name)
            yield written, counted


def _differs(one: Written, other: Written) -> bool:
    ours, theirs = one.setting.value, other.setting.value
    if not known(ours) or not known(theirs):
        return False
    parts = [
        part for value in (ours, theirs) for part in (value if isinstance(value, list) else [])
    ]
    return bool(ours != theirs) and all(map(known, parts))


def _stands_in(run: Run, written: Written, words: Mapping[Location, Word]) -> bool:
    """Whether a flag is written in the command itself, not in a variable that it uses."""
    command = run.command
    if command is None or command.end is None or written.location.path != command.location.path:
        return False
    word = words.get(written.location)
    is_literal = word is not None and word.raw in ("", word.text)
    return is_literal and command.location.line <= written.location.line <= command.end.line


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU023",
        "given-twice",
        Text("同一参数给出两次", "Parameter given twice"),
        Priority.MEDIUM,
        _judge,
        why="Of a flag that stands twice in one command only the last counts, also where it "
        "takes a list: the first value, or the first dataset, is silently lost. A flag that "
        "overrides a file, or a variable with the flags that several commands share, is meant "
        "so and not reported.",
        fix="Remove the one that is not meant; give a list behind one flag.",
        impact=Impact(note=Text("前一个值不生效", "the first value has no effect")),
        examples=(
            Example(
                "swift",
                "train.sh",
                "swift sft --model Qwen/Qwen2.5-7B-Instruct \\\n    --dataset data/a.jsonl \\\n"
                "    --dataset data/b.jsonl\n",
                "swift sft --model Qwen/Qwen2.5-7B-Instruct \\\n"
                "    --dataset data/a.jsonl data/b.jsonl\n",
            ),
        ),
        sources=("Python, argparse: action store, nargs",),
    ),
)
