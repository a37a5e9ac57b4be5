"""What a launch command names: whether it starts the primary run, and files that do not compile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Optional

from flake8_gpu_training.facts import Command, Problem, ProblemKind, PythonFile, ScriptFile, known
from flake8_gpu_training.project import NOT_THERE, Project
from flake8_gpu_training.runs.find import LAUNCH_PATH
from flake8_gpu_training.runs.model import Run

_BROKEN = frozenset({ProblemKind.SYNTAX, ProblemKind.ENCODING, ProblemKind.UNREADABLE})


def is_launched(project: Project, primary: Optional[Run], commands: Sequence[Command]) -> bool:
    """Whether one of ``commands`` starts the primary run, itself or by its script."""
    if primary is None:
        return False
    if primary.location.path == LAUNCH_PATH:
        return True
    for command in commands:
        if primary.command is not None and primary.command.text == command.text:
            return True
        if primary.location.path == command.location.path:
            return True
        for path in _named(project, command):
            if f"/{primary.location.path}".endswith(f"/{path}"):
                return True
    return False


def broken_files(project: Project, commands: Sequence[Command]) -> tuple[Problem, ...]:
    """Why programs that ``commands`` start, themselves or by a script, cannot be read."""
    found = (problem for command in commands for problem in _problems(project, command, True))
    return tuple(dict.fromkeys(found))


def is_absent(problem: Problem) -> bool:
    """Whether the program is not in the project, as one that is written before it is started."""
    return problem.message == NOT_THERE


def _problems(project: Project, command: Command, follows: bool) -> Iterator[Problem]:
    for path in _named(project, command):
        facts = project.read(path)
        if isinstance(facts, PythonFile):
            yield from (problem for problem in facts.problems if problem.kind in _BROKEN)
        elif isinstance(facts, ScriptFile) and follows:
            for inner in facts.commands:
                yield from _problems(project, inner, False)


def _named(project: Project, command: Command) -> Iterator[str]:
    """Paths that the words of a command name, as they stand in the project where they do."""
    for word in command.words:
        if known(word.value) and word.text and not word.text.startswith("-"):
            yield project.find(word.text, "", command.directory) or word.text
