"""Commands that a program starts when it is launched with the arguments at hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flake8_gpu_training.facts import Call, Command
from flake8_gpu_training.runs._followed import Either, plain
from flake8_gpu_training.runs.configured import configuration_of, given_to
from flake8_gpu_training.runs.following import Outcome
from flake8_gpu_training.runs.launchers import Launch
from flake8_gpu_training.runs.python_entry import namespace_of
from flake8_gpu_training.runs.reach import Reach, Writer
from flake8_gpu_training.runs.settings import parse_arguments
from flake8_gpu_training.runs.subprocesses import started, starts


def commands_of_launch(reach: Reach, launch: Launch, writer: Writer) -> Iterator[Command]:
    """What the program of ``launch`` starts, with what its command line makes of the words.

    Arguments that following the program does not tell are those that stand in its text.
    """
    if launch.script is None:
        return
    path = reach.script(launch.script, launch.is_module, launch.command)
    program = reach.program(path) if path is not None else None
    if program is None or not any(map(starts, program.calls())):
        return
    given = parse_arguments(launch.arguments)
    outcome = configuration_of(
        program,
        launch.arguments,
        given.is_open or launch.is_open,
        namespace_of(program, given, ()),
        {},
        launch.command,
        writer,
        reach,
    )
    for call in program.calls():
        if starts(call):
            values = _values(call, outcome) if outcome is not None else []
            found = [command for value in values for command in started(call, value)]
            yield from found or started(call)


def _values(call: Call, outcome: Outcome) -> list[Any]:
    """What a call is seen to start: lines, or lists of words; one for each branch."""
    given = given_to(call, outcome)
    value = plain(given.get(0, "args")) if given is not None else None
    values = value.candidates if isinstance(value, Either) else (value,)
    return [
        [_only(item) for item in one] if isinstance(one, list) else one
        for one in values
        if isinstance(one, (str, list))
    ]


def _only(item: Any) -> Any:
    """A word that can be but one thing."""
    is_one = isinstance(item, Either) and len(item.candidates) == 1
    return item.candidates[0] if is_one else item
