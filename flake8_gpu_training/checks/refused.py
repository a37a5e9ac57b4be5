"""GPU024: settings that the framework's own validation refuses (frameworks/refusals)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Optional

from flake8_gpu_training.checks._faults import FAILS_IF_NEWEST, Fault, judge_of
from flake8_gpu_training.checks._written import Use, uses, value_text
from flake8_gpu_training.checks.base import Change, Check, Example, Impact, Priority
from flake8_gpu_training.checks.changes import write, write_in_call
from flake8_gpu_training.facts import Location
from flake8_gpu_training.frameworks.accepted import TITLES, Part
from flake8_gpu_training.frameworks.reading import parsed
from flake8_gpu_training.frameworks.refusals import handed_on, refusals_of
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run


def _refused(run: Run) -> Iterator[Fault]:
    for use in uses(run):
        if use.options is None:
            continue
        judged: set[tuple[str, str]] = set()
        for part in use.accepted.parts:
            options = handed_on(use.options, part.distribution)
            for rule in refusals_of(part.distribution):
                rule_of = (part.distribution, rule.name)
                if rule_of in judged or not rule.concerns(part.group, part.at_hand.version):
                    continue  # a constructor may hand all on to one of the same distribution
                judged.add(rule_of)
                if rule.refuses(options) and not _is_newer(rule, use, part):
                    yield _fault(run, use, options, rule, part)


def _is_newer(rule: Refusal, use: Use, part: Part) -> bool:
    """Whether what is written is for a release older than the rule, and none is pinned: GPU007
    asks for that release or for other names."""
    if not rule.since or part.at_hand.pinned:
        return False
    unknown = (one for one in use.written if use.parameter(one) is None)
    former = (use.accepted.history(one.name) for one in unknown)
    return any(
        one is not None
        and one.is_former
        and one.part.distribution == part.distribution
        and parsed(one.last) < parsed(rule.since)
        for one in former
    )


def _fault(run: Run, use: Use, options: Options, rule: Refusal, part: Part) -> Fault:
    words = _Words(use, options, rule.figures(options))
    mend, why = (
        Text(text.zh.format_map(words), text.en.format_map(words)) for text in (rule.mend, rule.why)
    )
    is_certain = _is_certain(rule, part)
    return Fault(
        _place(run, use, rule),
        f"{mend.en}: {why.en}, and {_stop(use, rule, part.title)}",
        why,
        mend,
        _change(run, use, rule.write(options)),
        None if is_certain else Priority.MEDIUM,
        None if is_certain else _fails_in(rule, TITLES[part.distribution]),
    )


def _fails_in(rule: Refusal, title: str) -> Impact:
    """That only some of the releases that may be installed have the rule."""
    if rule.since and rule.until:
        spans = Text(f"{rule.since}–{rule.until} ", f"{rule.since} to {rule.until}")
    elif rule.since:
        spans = Text(f"{rule.since} 及更新的版本", f"{rule.since} and newer")
    elif rule.until:
        spans = Text(f"{rule.until} 及更早的版本", f"{rule.until} and older")
    else:
        return FAILS_IF_NEWEST
    return Impact(
        note=Text(
            f"{title} {spans.zh}启动失败；项目未固定版本，请先确认实际安装的版本",
            f"the run fails at start with {title} {spans.en}; no release is pinned, so look "
            "first which one is installed",
        )
    )


def _is_certain(rule: Refusal, part: Part) -> bool:
    """Whether each release that may be installed has the rule."""
    versions = part.at_hand.table.versions
    return all(rule.concerns(part.group, versions[index]) for index in part.at_hand.allowed)


def _stop(use: Use, rule: Refusal, title: str) -> str:
    """Who stops, and how."""
    if rule.stops:
        return f"{rule.stops} ({title})"
    if use.call is not None:
        return f"{rule.raiser or use.call.method} raises ({title})"
    is_program = use.refuses.startswith("refuses")
    return f"{title} {use.refuses}" if is_program else f"{use.refuses} ({title})"


class _Words(Mapping[str, str]):
    """What a rule's words may name: ``{tp_size}`` is a value, ``{--tp_size}`` the parameter as
    the user writes it."""

    def __init__(self, use: Use, options: Options, figures: Mapping[str, Any]) -> None:
        self._use, self._options, self._figures = use, options, figures

    def __getitem__(self, name: str) -> str:
        if name.startswith("--"):
            return self._use.named(str(self._figures.get(name, name[2:])))
        if name in self._figures:
            return value_text(self._figures[name])
        try:
            return value_text(self._options[name])
        except UndecidedError:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._figures)

    def __len__(self) -> int:
        return len(self._figures)


def _place(run: Run, use: Use, rule: Refusal) -> Location:
    """Where the first of the rule's settings is written; else where the program is called."""
    own = rule.at(use.options) if use.options is not None else None
    if own is not None:
        return own
    for name in rule.settings:
        for written in use.written:
            if written.name == name:
                return written.location
        setting = use.options.given.get(name) if use.options is not None else None
        if setting is not None and setting.location is not None:
            return setting.location
    return use.call.location if use.call is not None else run.location


def _change(run: Run, use: Use, parameters: Mapping[str, Any]) -> Optional[Change]:
    """The change that mends it, where it can be written."""
    if not parameters or use.options is None:
        return None
    if use.call is not None:
        return write_in_call(run, use.call, use.call.keywords, parameters)
    is_run = bool(use.parser) or use.options.given is run.settings
    return write(run, parameters) if is_run else None


_TRAINER = """\
from transformers import Trainer, TrainingArguments

args = TrainingArguments(output_dir="out", logging_steps={})
Trainer(model=model, args=args, train_dataset=data).train()
"""

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU024",
        "refused-settings",
        Text("框架会拒绝的参数组合", "Settings that the framework refuses"),
        Priority.HIGH,
        judge_of(_refused),
        why="Frameworks check their arguments before the first step and stop with an error: "
        "the job ends after it has waited for its GPUs and loaded its packages. Each rule "
        "states one such check of the framework's source, in the releases that have it.",
        fix="Do what the message says; it names the settings that do not go together. "
        "docs/refusals.md lists every rule, framework by framework, with what the source checks.",
        ignore="The framework is a version of your own that checks otherwise.",
        impact=Impact(note=Text("不修复则启动失败", "the run fails at start until it is mended")),
        examples=(Example("hf_trainer", "train.py", _TRAINER.format(0), _TRAINER.format(10)),),
        sources=("docs/refusals.md: file and function of the source, for each rule",),
        has_rules=True,
    ),
)
