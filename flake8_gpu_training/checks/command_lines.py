"""GPU025, GPU026: words at which a parser stops, and variables that no program gets."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Optional

from flake8_gpu_training.checks._faults import Fault, judge_of
from flake8_gpu_training.checks._written import Use, Written, alike, uses, value_text
from flake8_gpu_training.checks.base import Change, Check, Edit, Example, Impact, Priority
from flake8_gpu_training.facts import Location, known
from flake8_gpu_training.frameworks.tables import Parameter
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import RefusalKind, RefusedWord, Run

_ALIKE = 0.75
"""How much of a misspelt flag must agree with the real one (difflib's ratio)."""
_MOST = 8
"""Choices that a message names."""


def _refused(run: Run) -> Iterator[Fault]:
    yield from _of_script(run)
    for use in uses(run):
        for written in use.written:
            if written.is_flag:
                yield from _of_flag(run, use, written)
            elif use.through_flags and written.is_key:
                yield from _of_key(use, written)


# --- the script's own parser ----------------------------------------------------------------


def _of_script(run: Run) -> Iterator[Fault]:
    stray = [word for word in run.refused if word.kind is RefusalKind.UNKNOWN]
    for word in run.refused:
        if word.kind is RefusalKind.MISSING and run.is_open:
            continue
        if word.kind is RefusalKind.UNKNOWN:
            if _is_value_of_unknown(word, stray):
                continue
            yield _unknown(word)
        else:
            yield _TELLS[word.kind](run, word)


def _is_value_of_unknown(word: RefusedWord, stray: Sequence[RefusedWord]) -> bool:
    """Whether the word is told already: it follows a flag that is not known."""
    before = stray[: stray.index(word)]
    return not _is_flag(word.text) and bool(before) and _is_flag(before[-1].text)


def _is_flag(text: str) -> bool:
    return text[:1] == "-" and not text[1:2].isdigit()


def _unknown(word: RefusedWord) -> Fault:
    assert word.location is not None  # it stands on the command line
    name = word.text.partition("=")[0]
    if not _is_flag(name):
        return Fault(
            word.location,
            f"remove {name!r} or quote the value that it belongs to: no argument of "
            f"{word.parser} takes it, and the parser stops",
            Text(f"{word.parser} 不接受 {name}", f"{word.parser} takes no {name!r}"),
            Text(f"删除 {name}，或给所属的值加引号", f"remove {name!r} or quote its value"),
        )
    near = difflib.get_close_matches(name, word.known, 1, _ALIKE)
    mend = f"write {near[0]}" if near else f"drop {name}{_there_are(name, word)}"
    change = None
    if near:
        change = Change("bash", near[0], (Edit(word.location, name, near[0]),))
    return Fault(
        word.location,
        f"{mend}: {word.parser} has no argument {name}, and its parser stops",
        Text(f"{word.parser} 没有参数 {name}", f"{word.parser} has no argument {name}"),
        Text(f"改为 {near[0]}" if near else f"删除 {name}", mend),
        change,
    )


_FEW = 8
"""Flags of a parser that are all named."""
_SOME = 3
"""Flags that are named of more."""


def _there_are(name: str, word: RefusedWord) -> str:
    """The flags that the parser has: all where they are few, else those most alike."""
    long = [flag for flag in word.known if flag.startswith("--") and flag != "--help"]
    if not long:
        return ""
    named = long if len(long) <= _FEW else alike(name, long, _SOME)
    return f" (there is {', '.join(named)})" if named else ""


def _missing(run: Run, word: RefusedWord) -> Fault:
    return Fault(
        _end(run),
        f"add {word.text} with its value: {word.parser} requires it, and its parser stops",
        Text(f"缺少必需参数 {word.text}", f"{word.text} must be given"),
        Text(f"在命令中加上 {word.text}", f"add {word.text}"),
    )


def _end(run: Run) -> Location:
    return run.command.location if run.command is not None else run.location


def _valueless(run: Run, word: RefusedWord) -> Fault:
    parser = f"the parser of {word.parser}"
    return _without_value(word.location or _end(run), word.text, parser)


def _without_value(location: Location, flag: str, parser: str) -> Fault:
    return Fault(
        location,
        f"give {flag} a value or remove it: the next flag follows at once, and {parser} stops",
        Text(f"{flag} 后面缺少取值", f"{flag} has no value"),
        Text(f"给 {flag} 一个值，或删除它", f"give {flag} a value or remove it"),
    )


def _no_choice(run: Run, word: RefusedWord) -> Fault:
    near = difflib.get_close_matches(word.text, word.known, 1, _ALIKE)
    listed = ", ".join(word.known[:_MOST]) + (", …" if len(word.known) > _MOST else "")
    mend = f"write {word.flag} {near[0]}" if near else f"choose {word.flag} from {listed}"
    return Fault(
        word.location or _end(run),
        f"{mend}: {word.parser} does not take {word.text!r} for it, and its parser stops",
        Text(f"{word.flag} 不能取 {word.text}", f"{word.flag} cannot be {word.text}"),
        Text(f"可选值：{listed}", f"choose one of {listed}"),
        _edit(word, near[0]) if near else None,
    )


def _no_type(run: Run, word: RefusedWord) -> Fault:
    wanted = word.wanted or "another type"
    return Fault(
        word.location or _end(run),
        f"give {word.flag} a value of type {wanted}: {word.parser} cannot read {word.text!r} as "
        "one, and its parser stops",
        Text(f"{word.flag} 应为 {wanted}", f"{word.flag} takes {wanted}, not {word.text}"),
        Text(f"改为 {wanted} 值", f"give {word.flag} a value of type {wanted}"),
    )


def _edit(word: RefusedWord, new: str) -> Optional[Change]:
    if word.location is None:
        return None
    return Change("bash", f"{word.flag} {new}", (Edit(word.location, word.text, new),))


_TELLS = {
    RefusalKind.MISSING: _missing,
    RefusalKind.VALUELESS: _valueless,
    RefusalKind.CHOICE: _no_choice,
    RefusalKind.TYPE: _no_type,
}


# --- parsers of frameworks ------------------------------------------------------------------


def _of_flag(run: Run, use: Use, written: Written) -> Iterator[Fault]:
    """A flag that lacks its value, or has more words than it takes."""
    parameter = use.accepted.parameter(written.name, flag=True)
    if parameter is None:
        return
    value = written.setting.value
    if use.accepted.bare_switches and parameter.types == ("bool",):
        if written.setting.text:
            yield _switch(written, _parser(use))
    elif value is True and not written.setting.text:
        if _needs_value(use, parameter) and not _may_be_followed(run, written):
            yield _valueless_flag(use, written, parameter)
    elif _is_one_word(parameter) and isinstance(value, list) and not written.setting.text:
        words = [value_text(one) for one in value if known(one)]
        if 1 < len(words) == len(value) and _ELIDED.isdisjoint(words):
            yield _stray(use, written, words)


_ELIDED = frozenset({"...", "…"})
"""Words that stand for what an example leaves out."""


def _switch(written: Written, title: str) -> Fault:
    flag, text = written.raw, written.setting.text
    is_off = text.strip("'\"").lower() == "false"
    mend = f"drop {flag} {text}" if is_off else f"write {flag} alone"
    return Fault(
        written.location,
        f"{mend}: it is a switch, and {title} stops at {text!r} behind it",
        Text(f"{flag} 是开关，不接受 {text}", f"{flag} is a switch and takes no {text!r}"),
        Text(f"删除 {flag} {text}" if is_off else f"只写 {flag}", mend),
        None if is_off else Change("bash", flag),
    )


def _may_be_followed(run: Run, written: Written) -> bool:
    """Whether words that are not known follow the flag (``"$@"``)."""
    words = run.command.words if run.command is not None else ()
    after = [b for a, b in zip(words, words[1:]) if a.location == written.location]
    return any(not known(word.value) for word in after)


def _is_one_word(parameter: Parameter) -> bool:
    return len(parameter.types) == 1 and parameter.types[0] in _ONE


def _stray(use: Use, written: Written, words: Sequence[str]) -> Fault:
    flag, stray = written.raw, " ".join(words[1:])
    joined = ("" if all(word.endswith(",") for word in words[:-1]) else " ").join(words)
    return Fault(
        written.location,
        f'write {flag} "{joined}": {_parser(use)} takes one word for it, '
        f"and {stray!r} is an argument of its own at which it stops",
        Text(f"{flag} 只接受一个词", f"{flag} takes one word"),
        Text(f'改为 {flag} "{joined}"', f'write {flag} "{joined}"'),
    )


def _valueless_flag(use: Use, written: Written, parameter: Parameter) -> Fault:
    flag = written.raw
    if parameter.types != ("bool",):
        return _without_value(written.location, flag, _parser(use))
    return Fault(
        written.location,
        f"write {flag} true: {_parser(use)} demands a value for it, and stops",
        Text(f"{flag} 必须带取值", f"{flag} needs a value"),
        Text(f"改为 {flag} true", f"write {flag} true"),
        Change("bash", f"{flag} true", (Edit(written.location, flag, f"{flag} true"),)),
    )


def _parser(use: Use) -> str:
    return use.parser or f"the parser of {use.title}"


def _needs_value(use: Use, parameter: Parameter) -> bool:
    """Whether the flag must not stand alone.

    HfArgumentParser lets only a bool do so, and not an Optional[bool] whose default is None.
    """
    owner = next((p for p in use.accepted.parts if parameter.name in p.parameters), None)
    if owner is None or owner.distribution not in _DATACLASSES:
        return _is_one_word(parameter) and parameter.types != ("bool",)
    if parameter.name in _ALONE:
        return False
    if parameter.types == ("bool",):
        return parameter.optional and parameter.has_default and parameter.default is None
    return bool(parameter.types) and "bool" not in parameter.types


_ALONE = frozenset({"activation_checkpointing", "fsdp", "gradient_checkpointing"})
"""Parameters of Transformers whose metadata let their flag stand alone (5.24)."""
_DATACLASSES = frozenset({"transformers", "trl", "llamafactory", "ms-swift"})
"""Distributions whose parameters HfArgumentParser takes from dataclasses."""


def _of_key(use: Use, written: Written) -> Iterator[Fault]:
    """A key of a file whose values reach the parser as the words behind a flag."""
    parameter = use.accepted.parameter(written.name, flag=True)
    value = written.setting.value
    name = written.name
    if parameter is not None and parameter.types == ("list",) and value == []:
        yield Fault(
            written.location,
            f"remove {name}, or give it a value: an empty list is a flag without words, and "
            f"{_parser(use)} stops",
            Text(f"{name} 是空列表", f"{name} is an empty list"),
            Text(f"删除 {name} 或给出取值", f"remove {name}, or give it a value"),
        )
    if parameter is not None and _is_one_word(parameter) and _is_no_word(use, parameter, value):
        yield Fault(
            written.location,
            f"give {name} one value, not a list: {_parser(use)} takes one word for it, and stops",
            Text(f"{name} 只接受一个值", f"{name} takes one value"),
            Text(f"{name} 只写一个值", f"give {name} one value"),
        )


def _is_no_word(use: Use, parameter: Parameter, value: object) -> bool:
    """Whether a list gives the flag several words, or none where it must not stand alone."""
    if not isinstance(value, list) or len(value) == 1:
        return False
    return bool(value) or _needs_value(use, parameter)


_ONE = frozenset({"int", "float", "str", "bool"})
"""Types of which argparse takes one word."""


# --- GPU026 -----------------------------------------------------------------------------


def _unexported(run: Run) -> Iterator[Fault]:
    lines = {setting.location.line for setting in run.unexported if setting.location is not None}
    for setting in run.unexported:
        name, place = setting.name, setting.location
        if place is None or name in run.environment:
            continue
        alone = place.column == 1 and not lines & {place.line - 1, place.line + 1}
        edits = (Edit(place, "", "export "),) if alone else ()
        yield Fault(
            place,
            f"put export in front of {name}, or write it in front of the command: it is only "
            "assigned, and the program that is started does not see it",
            Text(f"{name} 未导出，程序看不到", f"{name} is not exported"),
            Text(f"在 {name} 前写 export，或与命令写在同一行", f"put export in front of {name}"),
            Change("bash", f"export {name}={setting.text or setting.value}", edits),
        )


_PARSER = """\
import argparse

import torch
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--epochs", type=int, default=90)
args = parser.parse_args()

torch.distributed.init_process_group("nccl")
model = DistributedDataParallel(build_model().cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(args.epochs):
    for images, labels in load(args.batch_size):
        loss = torch.nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU025",
        "refused-command-line",
        Text("命令行会被脚本拒绝", "Command line that the script refuses"),
        Priority.HIGH,
        judge_of(_refused),
        why="argparse stops at an argument that the script does not declare, at one without its "
        "value, at a value of another type or outside the choices, and when a required one is "
        "missing: every rank ends at once, after the job has waited for its GPUs. It is told "
        "only where the whole parser and the whole command line were read, of programs that "
        "train or serve: what a job runs before and after them is not judged.",
        fix="Do what the message says; it names the argument as the script declares it.",
        ignore="The script is generated or replaced before it is launched.",
        impact=Impact(note=Text("不修复则启动失败", "the run fails at start until it is mended")),
        examples=(
            Example(
                "generic",
                "train.sh",
                "torchrun --nproc_per_node 8 train.py --batch_sizes 64\n",
                "torchrun --nproc_per_node 8 train.py --batch-size 64\n",
                files=(("train.py", _PARSER),),
            ),
        ),
        sources=("Python, argparse: ArgumentParser.parse_args",),
    ),
    Check(
        "GPU026",
        "unexported-variable",
        Text("变量未导出", "Variable that is not exported"),
        Priority.MEDIUM,
        judge_of(_unexported),
        why="A line NAME=value sets a variable of the shell; programs get only what is exported "
        "or stands in front of them in the same command. A blank line behind the last "
        "backslash has the same effect: the variables above it belong to no command. It is told "
        "where the script uses the variable nowhere else; a variable that the shell has "
        "exported before (a scheduler's) keeps being exported, so job scripts are left out.",
        fix="Write export in front of it, or end the line with a backslash and go on with the "
        "command.",
        ignore="The shell that runs the script has the variable exported already.",
        impact=Impact(note=Text("当前设置不生效", "what was asked for has no effect")),
        examples=(
            Example(
                "generic",
                "train.sh",
                "CUDA_VISIBLE_DEVICES=0,1,2,3\n\ntorchrun --nproc_per_node 4 train.py\n",
                "export CUDA_VISIBLE_DEVICES=0,1,2,3\n\ntorchrun --nproc_per_node 4 train.py\n",
                files=(("train.py", _PARSER),),
            ),
        ),
        sources=("POSIX.1-2017, Shell Command Language, 2.9.1 and 2.14 (export)",),
    ),
)
