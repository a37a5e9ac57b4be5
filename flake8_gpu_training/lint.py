"""Diagnostics of a file or a project: the part that flake8 and gpu-lint share."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Optional

from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.facts import Problem, ProblemKind, PythonFile, ScriptFile
from flake8_gpu_training.options import Options, on_hardware
from flake8_gpu_training.project import ROOT_MARKS, SCRIPT_KINDS, Project
from flake8_gpu_training.runs.absent import absent_of_commands
from flake8_gpu_training.runs.configs import first_document, is_deepspeed
from flake8_gpu_training.runs.environments import LOCKS, Environments
from flake8_gpu_training.runs.find import find_runs, run_of_file
from flake8_gpu_training.runs.held_sources import held_in
from flake8_gpu_training.runs.model import Place, PlaceKind, Run, RunKind
from flake8_gpu_training.runs.pins import LOCK, REQUIRED, Pins, Source, of_trunk, pins, unreleased
from flake8_gpu_training.runs.python_entry import may_have_entries
from flake8_gpu_training.sources.python import read_python
from flake8_gpu_training.sources.requirements import read_requirements
from flake8_gpu_training.verdicts import Diagnostic, diagnostics, judge

_PIN_FILES = (
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "requirements.txt",
    "environment.yml",
    "uv.lock",
    "poetry.lock",
)
# A large file is mostly data, an odd one mostly not ours: no reason to speak up.
_HARMLESS = frozenset({ProblemKind.TOO_LARGE, ProblemKind.UNSUPPORTED})


def lint_python(
    text: str, path: str, options: Options, tree: Optional[ast.AST] = None
) -> tuple[Diagnostic, ...]:
    """Diagnostics of one Python file seen alone, in file order."""
    if not may_have_entries(text):
        return ()
    folder = str(Path(path).parent)
    file = read_python(text, path, tree)
    runs = _runs_of_file(file, pins_around(folder), options)
    return _of_runs(runs, options, {path})


def lint_project(project: Project, options: Options) -> tuple[Diagnostic, ...]:
    """Diagnostics of all runs of a project, and of the Python files that no run reaches."""
    runs = [_with_versions(run, options) for run in find_runs(project)]
    reached = {path for run in runs for path in run.files}
    environments = Environments(project)
    for file in project.python_files():
        if file.path not in reached:
            runs.extend(_runs_of_file(file, environments.of(file.path), options))
    runs.extend(_deepspeed_alone(project, reached))
    runs.extend(_unread(project, reached))
    runs.extend(_nowhere(project, runs))
    return _of_runs(runs, options, None)


@lru_cache(maxsize=256)
def pins_around(folder: str) -> Pins:
    """What the nearest project around ``folder`` installs; the nearest files win."""
    root = Path(folder)
    levels: list[list[Source]] = []
    for parent in (root, *root.resolve().parents):
        root = parent
        levels.append(list(_sources_in(parent)))
        if any((parent / mark).exists() for mark in ROOT_MARKS):
            break
    held, asked = held_in(root), unreleased(levels)
    trunk = (of_trunk(levels) & asked) - held
    return dataclasses.replace(pins(levels), unreleased=held | asked, trunk=trunk)


def _sources_in(folder: Path) -> Iterator[Source]:
    todo = list(_PIN_FILES)
    for name in todo:
        path = folder / name
        try:
            data = path.read_bytes() if path.is_file() else b""
        except OSError:
            continue
        file = read_requirements(data, name)
        todo += [one for one in file.includes if one not in todo and not _leads_out(one)]
        yield Source(str(path), LOCK if name in LOCKS else REQUIRED, file.requirements)


def _leads_out(path: str) -> bool:
    return Path(path).is_absolute() or ".." in Path(path).parts


def _deepspeed_alone(project: Project, reached: set[str]) -> Iterator[Run]:
    """DeepSpeed files that no run names: judged by what they say themselves, no more."""
    for config in project.configs():
        document = first_document(config)
        if document is None or config.path in reached or project.is_auxiliary(config.path):
            continue
        if is_deepspeed(document):
            location = document.root.location
            yield Run(
                id=str(location),
                kind=RunKind.TRAIN,
                framework="generic",
                location=location,
                place=Place(PlaceKind.JSON, location, document=document),
                files=(config.path,),
                deepspeed=document,
                is_open=True,
            )


def _unread(project: Project, reached: set[str]) -> Iterator[Run]:
    """What could not be read in files that are part of the project's own work."""
    for problem in project.problems():
        path = problem.location.path
        if project.is_auxiliary(path) or problem.kind in _HARMLESS:
            continue
        if project.kind(path) in SCRIPT_KINDS and not _cuts_a_launch(project, problem, reached):
            continue  # a script that launches something is part of a run, which carries it
        yield Run(
            id=str(problem.location),
            kind=RunKind.OTHER,
            framework="generic",
            location=problem.location,
            place=Place(PlaceKind.FLAGS, problem.location),
            files=(path,),
            problems=(problem,),
            is_open=True,
        )


def _nowhere(project: Project, runs: Iterable[Run]) -> Iterator[Run]:
    """Launches of what is not there, which make no run."""
    known = frozenset(str(run.command.location) for run in runs if run.command is not None)
    for command, absent in absent_of_commands(project, known):
        yield Run(
            id=str(command.location),
            kind=RunKind.OTHER,
            framework="generic",
            location=command.location,
            place=Place(PlaceKind.FLAGS, command.location, command),
            files=(command.location.path,),
            absent=(absent,),
            is_open=True,
        )


def _cuts_a_launch(project: Project, problem: Problem, reached: set[str]) -> bool:
    """Whether a launcher is cut off from the script that it is to start, so that no run is left."""
    script = project.read(problem.location.path)
    if problem.kind is not ProblemKind.CUT_SHORT or problem.location.path in reached:
        return False
    return isinstance(script, ScriptFile) and any(
        command.end is not None
        and command.words[0].text.rpartition("/")[2] in _LAUNCHERS
        and command.end.line <= problem.location.line <= command.end.line + 1
        for command in script.commands
        if command.words
    )


_LAUNCHERS = frozenset({"accelerate", "deepspeed", "torchrun", "swift", "llamafactory-cli", "vllm"})


def _runs_of_file(file: PythonFile, installed: Pins, options: Options) -> tuple[Run, ...]:
    return tuple(
        _with_versions(
            dataclasses.replace(
                run,
                limits=installed.limits,
                perhaps=installed.perhaps,
                unreleased=installed.unreleased,
                trunk=installed.trunk,
            ),
            options,
        )
        for run in run_of_file(file, versions=installed.versions)
        if not options.frameworks or run.framework in options.frameworks
    )


def _with_versions(run: Run, options: Options) -> Run:
    if not options.versions:
        return run
    return dataclasses.replace(
        run,
        versions={**run.versions, **options.versions},
        perhaps={k: v for k, v in run.perhaps.items() if k not in options.versions},
        unreleased=run.unreleased - options.versions.keys(),
        trunk=run.trunk - options.versions.keys(),
    )


def _of_runs(
    runs: Iterable[Run], options: Options, paths: Optional[set[str]]
) -> tuple[Diagnostic, ...]:
    checks = all_checks()
    verdicts = [v for run in runs for v in judge(on_hardware(run, options), checks)]
    found = diagnostics(verdicts, options.minimum)
    return tuple(d for d in found if paths is None or d.location.path in paths)
