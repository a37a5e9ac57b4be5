"""Reads shell scripts: the commands they start, with every word expanded and placed.

bashlex parses first; whatever it refuses goes to tree-sitter-bash, which reads any text.
Nothing is run: what only a run could tell is :class:`~flake8_gpu_training.facts.Unknown`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Callable, Optional, Union

from ..facts import Command, Location, Problem, ProblemKind, ScriptFile, Setting, Unknown, Word
from . import slurm
from ._shell_comments import comments_of
from ._shell_cuts import BROKEN_CONTINUATION, LOST_FLAG, goes_on_with_array
from ._shell_interpreter import Interpreter
from ._shell_parse import parse_program
from ._shell_syntax import Program, Simple, walk
from ._shell_text import COMMENTED, as_meant, decoded
from ._shell_values import Chunk, Field, Source, Variable


class Library:
    """The scripts of a project that others source or start, each parsed once.

    ``find(name, naming file, directory)`` gives a path of the project, ``read`` its content.
    """

    def __init__(
        self,
        find: Callable[[str, str, str], Optional[str]],
        read: Callable[[str], Optional[bytes]],
    ) -> None:
        self._find = find
        self._read = read
        self._parsed: dict[str, Optional[tuple[Program, Source]]] = {}

    def load(self, name: str, path: str, directory: str) -> Optional[tuple[Program, Source]]:
        """The script that ``name`` stands for in the script at ``path``."""
        found = self._find(name, path, directory)
        if found is None:
            return None
        if found not in self._parsed:
            data = self._read(found)
            text = "" if data is None else as_meant(decoded(data, found, 1, []))[0]
            self._parsed[found] = (parse_program(text), Source(text, found)) if text else None
        return self._parsed[found]

    def text(self, name: str, path: str, directory: str) -> Optional[tuple[str, str]]:
        """Text and path of another file that the script at ``path`` names."""
        found = self._find(name, path, directory)
        data = self._read(found) if found is not None else None
        return None if data is None or found is None else (decoded(data, found, 1, []), found)


def read_shell(
    text: Union[str, bytes],
    path: str,
    *,
    first_line: int = 1,
    variables: Optional[Mapping[str, str]] = None,
    library: Optional[Library] = None,
) -> ScriptFile:
    """Facts of a shell script. Never raises: what cannot be read is a Problem.

    ``variables``: what the environment sets. ``$0`` is ``path``, as if the script were
    started from the project's root. ``library``: the scripts it may source or start; their
    commands are then this script's too, with the arguments they get here.
    """
    problems: list[Problem] = []
    script, commented = as_meant(decoded(text, path, first_line, problems))
    source = Source(script, path, first_line)
    problems += (
        Problem(ProblemKind.CUT_SHORT, COMMENTED, source.location(place)) for place in commented
    )
    program = parse_program(script)
    directives, comments = comments_of(script, source, program)
    interpreter = Interpreter(path, parse_program, library)
    if directives:
        interpreter.submitted(slurm.asked(directives, {}))
    seed = Source("", path, first_line)
    for name, value in (variables or {}).items():
        chunk = Chunk(value, seed, 0, None, False)
        interpreter.state.set(name, Variable((chunk,), None, exported=True))
    interpreter.run(program, source)
    assignments = {
        name: variable.setting(name)
        for name, variable in interpreter.state.variables.items()
        if variable.location is not None
    }
    is_whole = not directives and not interpreter.may_export_more
    unexported = tuple(_unexported(script, path, interpreter)) if is_whole else ()
    interpreter.finish()
    problems.extend(
        Problem(ProblemKind.SYNTAX, trouble.message, source.location(trouble.offset))
        for trouble in program.troubles
    )
    problems.extend(_broken_lines(script, source, program))
    return ScriptFile(
        path=path,
        commands=tuple(interpreter.commands),
        assignments=assignments,
        unexported=unexported,
        directives=tuple(directives),
        heredocs=tuple(interpreter.heredocs),
        sourced=tuple(interpreter.sourced),
        comments=tuple(comments),
        parser=program.parser,
        problems=tuple(problems + interpreter.problems),
    )


def read_command_line(text: str, path: str = "<launch-command>") -> tuple[Command, ...]:
    """The commands of a line of shell text."""
    return read_shell(text, path).commands


def commands_from_argv(words: Sequence[Word]) -> tuple[Command, ...]:
    """The commands an argument vector starts: one, or those of ``["bash", "-c", "…"]``."""
    interpreter = Interpreter("", parse_program)
    interpreter.run_words([_argument(word) for word in words])
    return tuple(interpreter.commands)


def command_from_argv(words: Sequence[Word]) -> Command:
    """The command an argument vector is for: of several, the last, which the others prepare."""
    commands = commands_from_argv(words)
    if commands:
        return commands[-1]
    return Command(tuple(words), words[0].location if words else Location(""))


def _argument(word: Word) -> Field:
    source = _Fixed(word.location)
    unknown = word.value if isinstance(word.value, Unknown) else None
    chunk = Chunk(word.text, source, 0, unknown, unknown is None)
    return Field((chunk,), source, 0, word.raw or word.text, quoted=True)


class _Fixed(Source):
    """A source that knows one place only."""

    def __init__(self, location: Location) -> None:
        super().__init__("", location.path, location.line, location.column)

    def location(self, offset: int) -> Location:
        start = super().location(0)
        return Location(start.path, start.line, start.column + offset)


# --- variables that reach nobody ------------------------------------------------------

# Read by programs from their environment; a script has no use for them but to export them.
_FOR_PROGRAMS = re.compile(
    r"(?:CUDA|HIP|ASCEND_RT|ROCR)_VISIBLE_DEVICES|CUDA_(?:LAUNCH_BLOCKING|DEVICE_MAX_CONNECTIONS)"
    r"|PYTORCH_(?:CUDA_)?ALLOC_CONF|FORCE_TORCHRUN|OMP_NUM_THREADS|TOKENIZERS_PARALLELISM"
    r"|(?:NCCL_(?!DEBUG)|VLLM_|SGLANG_|TORCH_NCCL_)[A-Z0-9_]+|NPROC_PER_NODE"
    r"|(?:MIN|MAX|VIDEO_MAX)_PIXELS"
)


def _unexported(text: str, path: str, interpreter: Interpreter) -> Iterator[Setting]:
    """Variables for programs, assigned at the script's end, that it neither exports nor uses."""
    for name, variable in interpreter.state.variables.items():
        place = variable.location
        if variable.exported or place is None or place.path != path:
            continue
        if _FOR_PROGRAMS.fullmatch(name) is None:
            continue
        if len(re.findall(rf"(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9_])", text)) == 1:
            yield variable.setting(name)


# --- commands cut short ---------------------------------------------------------------


def _broken_lines(text: str, source: Source, program: Program) -> Iterator[Problem]:
    """Commands cut short by accident: the flags that follow belong to nothing."""
    bodies = [
        redirect.body
        for statement in walk(program.body)
        for redirect in getattr(statement, "redirects", ())
        if redirect.body is not None
    ]
    told: set[int] = set()
    for match in BROKEN_CONTINUATION.finditer(text):
        start = text.rfind("\n", 0, match.start()) + 1
        held = any(body.start <= match.start() < body.end for body in bodies)
        if not held and not text[start : match.start()].lstrip().startswith("#"):
            message = "spaces follow the backslash: the command ends here"
            yield Problem(ProblemKind.CUT_SHORT, message, source.location(match.start()))
            told.add(match.end() + 1)
    simple = [s for s in walk(program.body) if isinstance(s, Simple) and s.words]
    simple.sort(key=lambda statement: statement.words[0].start)
    after_lost = False
    for last, statement in zip([None, *simple], simple):
        word = statement.words[0]
        line = text.rfind("\n", 0, word.start) + 1
        is_lost = LOST_FLAG.match(text, word.start) is not None
        is_lost = is_lost or (last is not None and goes_on_with_array(last, statement, text))
        goes_on, after_lost = after_lost, is_lost
        if after_lost and not goes_on and line not in told:  # one cause is told once
            shown = text[word.start : word.end].splitlines()[0][:40]
            message = f"{shown} is no part of the command before it"
            yield Problem(ProblemKind.CUT_SHORT, message, source.location(word.start))
