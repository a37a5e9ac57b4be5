"""What we make of a command line is what the program's own parser makes of it."""

from __future__ import annotations

import argparse
import importlib
import random
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path, PurePath
from typing import Any

import pytest

from flake8_gpu_training.facts import Location, Unknown, Word
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.command_line import Outcome, combined
from flake8_gpu_training.runs.configured import configuration_of
from flake8_gpu_training.runs.python_entry import Namespace
from flake8_gpu_training.runs.reach import Reach
from flake8_gpu_training.runs.settings import parse_arguments

PROJECTS = Path(__file__).resolve().parent.parent / "fixtures" / "runs"
LINES = 200
KNOWN_SHARE = 0.99

# Project, the script that is run, and the module whose build_parser() makes its parser.
PARSERS = [
    ("argparse_actions", "train.py", "options"),
    ("argparse_subcommands", "lm.py", "cli"),
    ("argparse_types", "train.py", "train_args"),
    ("hf_dataclasses", "finetune.py", "arguments"),
]
_TEXTS = """
    1 2 0 -1 8 16 0.5 1e-4 -3e-2 true False yes on no auto bf16 fp16 sgd adamw text a=b 1,2,3 none
    0.25 [1] {} /data/x pretrain float16 10_000
""".split()  # noqa: SIM905


@pytest.fixture
def parser_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Builds the parser of a project's module; forgets the project's modules afterwards."""
    before = set(sys.modules)

    def build(name: str, module: str) -> argparse.ArgumentParser:
        monkeypatch.syspath_prepend(str(PROJECTS / name))
        made: argparse.ArgumentParser = importlib.import_module(module).build_parser()
        return made

    yield build
    for module in set(sys.modules) - before:
        file = getattr(sys.modules[module], "__file__", None) or ""
        if file.startswith(str(PROJECTS)):
            del sys.modules[module]


def command_lines(parser: argparse.ArgumentParser, seed: int) -> Iterator[list[str]]:
    """Random command lines, most of them valid."""
    draw = random.Random(seed)
    for _ in range(LINES):
        yield list(_line(parser, draw))


def _line(parser: argparse.ArgumentParser, draw: random.Random) -> Iterator[str]:
    actions = [a for a in parser._actions if a.option_strings]
    for action in actions:
        if action.required and draw.random() < 0.97:
            yield from _option(parser, action, draw)
    for action in draw.sample(actions, k=min(len(actions), draw.randrange(6))):
        if not isinstance(action, argparse._HelpAction) or draw.random() < 0.05:
            yield from _option(parser, action, draw)
    if draw.random() < 0.03:
        yield draw.choice(["--unknown", "-Z", "--", "--lr=", "stray"])
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            if draw.random() < 0.95:
                name = draw.choice(list(action.choices or {}))
                yield name
                yield from _line(action.choices[name], draw)
        elif not action.option_strings and (action.required or draw.random() < 0.5):
            yield from _values(action, draw)


def _option(
    parser: argparse.ArgumentParser, action: argparse.Action, draw: random.Random
) -> Iterator[str]:
    flag = draw.choice(action.option_strings)
    if flag.startswith("--") and draw.random() < 0.2:
        flag = flag[: draw.randrange(4, len(flag) + 1)] if len(flag) > 4 else flag
    values = list(_values(action, draw)) if action.nargs != 0 else []
    if len(values) == 1 and draw.random() < 0.4:
        short = len(flag) == 2
        yield flag + ("" if short else "=") + values[0]
    elif action.nargs == 0 and len(flag) == 2 and draw.random() < 0.3:
        yield flag + flag[1]
    else:
        yield flag
        yield from values


def _values(action: argparse.Action, draw: random.Random) -> Iterator[str]:
    counts = {None: (1, 1), "?": (0, 1), "*": (0, 3), "+": (1, 3)}
    least, most = counts.get(action.nargs, (action.nargs, action.nargs))  # type: ignore[arg-type]
    count = draw.randint(int(least or 0), int(most or 0)) if draw.random() < 0.97 else 0
    for _ in range(count):
        yield _value(action, draw)


def _value(action: argparse.Action, draw: random.Random) -> str:
    if action.choices and draw.random() < 0.9:
        return str(draw.choice(list(action.choices)))
    kind = getattr(action.type, "__name__", "")
    likely = {
        "int": ["3", "16", "-2", "128"],
        "float": ["0.1", "1e-5", "-2", ".5"],
        "str2bool": ["yes", "False", "0", "T"],
        "string_to_bool": ["yes", "False", "0", "T"],
        "numbers": ["1,2", "0.5", "1e-3,"],
        "int_or_auto": ["auto", "12"],
        "literal_eval": ["(0.9, 0.95)", "[1]", "{'a': 1}"],
        "loads": ['{"a": [1, 2]}', "3", "true"],
    }
    if kind in likely and draw.random() < 0.9:
        return draw.choice(likely[kind])
    return draw.choice(_TEXTS)


def real(parser: argparse.ArgumentParser, words: list[str]) -> dict[str, Any] | None:
    """What the parser itself makes of the words; None when it refuses them."""
    try:
        if hasattr(parser, "parse_args_into_dataclasses"):
            made = parser.parse_args_into_dataclasses(words, look_for_args_file=False)
            return {name: value for part in made for name, value in vars(part).items()}
        return vars(parser.parse_args(words))
    except (SystemExit, ValueError, TypeError, SyntaxError):
        return None


def told(value: Any) -> Any:
    """A value of the program in the words of our facts."""
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (list, tuple)):
        return [told(item) for item in value]
    if isinstance(value, dict):
        return {key: told(item) for key, item in value.items()}
    return value


def same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


def ours(reach: Reach, script: str, words: list[str]) -> Outcome:
    program = reach.program(script)
    assert program is not None
    given = [Word(text, Location("run.sh", 1, at), text) for at, text in enumerate(words, 1)]
    followed = configuration_of(program, given, False, Namespace(), {}, None, None, reach)
    assert followed is not None
    assert followed.parsed, "the parser was not read"
    return combined(followed.parsed, parse_arguments)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "script", "module"), PARSERS)
def test_random_command_lines_mean_what_the_real_parser_says(
    name: str, script: str, module: str, parser_of: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = parser_of(name, module)
    reach = Reach(Project.open(PROJECTS / name))
    known = total = accepted = 0
    wrong: list[tuple[list[str], str, Any, Any]] = []
    for words in command_lines(parser, seed=len(name)):
        outcome = ours(reach, script, words)
        truth = real(parser, words)
        if truth is None:
            continue
        accepted += 1
        assert not outcome.refused, (words, outcome.refused)
        for key, value in truth.items():
            total += 1
            setting = outcome.values.get(key)
            if setting is None or isinstance(setting.value, Unknown):
                continue
            known += 1
            if not same(told(value), told(setting.value)):
                wrong.append((words, key, value, setting.value))
    assert not wrong, wrong[:5]
    assert accepted >= LINES // 3
    assert known >= KNOWN_SHARE * total, (known, total)
