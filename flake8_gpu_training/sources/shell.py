"""Reads shell scripts: the commands they start, with every word expanded and placed.

bashlex parses first; whatever it refuses goes to tree-sitter-bash, which reads any text.
Nothing is run: what only a run could tell is :class:`~flake8_gpu_training.facts.Unknown`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Callable, Optional, Union

from ..facts import Command, Location, Problem, ProblemKind, ScriptFile, Setting, Unknown, Word
from ._shell_interpreter import Interpreter
from ._shell_parse import parse_program
from ._shell_syntax import Program, Redirect, Simple, walk
from ._shell_text import decoded
from ._shell_values import Chunk, Field, Source, Variable

MAX_COMMENTS = 5_000

_DIRECTIVE = re.compile(r"#(SBATCH|PBS|BSUB|DSUB|\$)[ \t]+(-.*)$")
_BROKEN_CONTINUATION = re.compile(r"\\[ \t]+$", re.MULTILINE)
SLURM_LONG_NAMES: Mapping[str, str] = {
    "A": "account",
    "a": "array",
    "C": "constraint",
    "c": "cpus-per-task",
    "D": "chdir",
    "d": "dependency",
    "e": "error",
    "F": "nodefile",
    "G": "gpus",
    "J": "job-name",
    "L": "licenses",
    "M": "clusters",
    "m": "distribution",
    "N": "nodes",
    "n": "ntasks",
    "o": "output",
    "p": "partition",
    "q": "qos",
    "t": "time",
    "w": "nodelist",
    "x": "exclude",
}
"""Flags of ``sbatch`` and ``srun`` that have a long name."""


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
            text = "" if data is None else decoded(data, found, 1, [])
            self._parsed[found] = (parse_program(text), Source(text, found)) if text else None
        return self._parsed[found]


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
    script = decoded(text, path, first_line, problems)
    source = Source(script, path, first_line)
    program = parse_program(script)
    interpreter = Interpreter(path, parse_program, library.load if library is not None else None)
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
    interpreter.finish()
    problems.extend(
        Problem(ProblemKind.SYNTAX, trouble.message, source.location(trouble.offset))
        for trouble in program.troubles
    )
    directives, comments = _comments(script, source, program)
    problems.extend(_broken_lines(script, source, program))
    return ScriptFile(
        path=path,
        commands=tuple(interpreter.commands),
        assignments=assignments,
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


# --- comments and directives ----------------------------------------------------------


def _held(program: Program) -> list[tuple[int, int]]:
    """Spans of here-documents and words: a ``#`` line in them is no comment."""
    found: list[tuple[int, int]] = []
    for statement in walk(program.body):
        redirects: tuple[Redirect, ...] = getattr(statement, "redirects", ())
        spans = [redirect.body for redirect in redirects if redirect.body is not None]
        if isinstance(statement, Simple):
            spans.extend(statement.words)
            for made in statement.assignments + statement.declared:
                # Comments may stand between the elements of an array.
                spans.extend([made.value] if made.elements is None else made.elements)
        found.extend((span.start, span.end) for span in spans)
    return sorted(found)


_COMMENT = re.compile(r"^[ \t]*(#.*)$", re.MULTILINE)


def _comments(text: str, source: Source, program: Program) -> tuple[list[Setting], list[Setting]]:
    """Batch directives, and the other comment lines."""
    directives: list[Setting] = []
    comments: list[Setting] = []
    held = [span for span in _held(program) if "\n" in text[span[0] : span[1]]]
    first_command = min((span[0] for span in _held(program)), default=len(text))
    at = 0
    for match in _COMMENT.finditer(text):
        offset = match.start(1)
        while at < len(held) and held[at][1] <= offset:
            at += 1
        if at < len(held) and held[at][0] <= offset:
            continue
        line = match.group(1)
        location = source.location(offset)
        directive = _DIRECTIVE.match(line) if offset == match.start() else None
        if directive is not None:
            # The scheduler stops reading at the first command.
            if offset < first_command:
                directives.extend(_directives(directive, location))
        elif not line.startswith("#!") and len(comments) < MAX_COMMENTS:
            comments.append(Setting("#", line.lstrip("#").strip(), location))
    return directives, comments


def _directives(match: re.Match[str], location: Location) -> Iterator[Setting]:
    names = SLURM_LONG_NAMES if match.group(1) == "SBATCH" else {}
    words = list(_DIRECTIVE_WORD.finditer(match.group(2)))
    at = 0
    while at < len(words):
        word = words[at].group()
        begin = words[at].start()
        at += 1
        if word.startswith("#"):
            break
        if not word.startswith("-"):
            continue
        name, equals, value = word.lstrip("-").partition("=")
        value_at = begin + len(word) - len(value)
        if not word.startswith("--"):
            short = word[1:2]
            if len(word) > 2 and match.group(1) == "SBATCH":
                name, equals, value = short, "=", word[2:].lstrip("=")
                value_at = begin + len(word) - len(value)
            name = names.get(name, name)
        if not equals and at < len(words) and not words[at].group().startswith(("-", "#")):
            value, value_at = words[at].group(), words[at].start()
            at += 1
        start = location.column + match.start(2)
        place = Location(location.path, location.line, start + begin)
        value_place = Location(location.path, location.line, start + value_at)
        yield Setting(name, value.strip("\"'"), place, text=value, value_location=value_place)


_DIRECTIVE_WORD = re.compile(r"(?:[^\s\"']|\"[^\"]*\"|'[^']*')+")


def _broken_lines(text: str, source: Source, program: Program) -> Iterator[Problem]:
    """Commands cut short by accident: the flags that follow belong to nothing."""
    bodies = [
        redirect.body
        for statement in walk(program.body)
        for redirect in getattr(statement, "redirects", ())
        if redirect.body is not None
    ]
    told: set[int] = set()
    for match in _BROKEN_CONTINUATION.finditer(text):
        start = text.rfind("\n", 0, match.start()) + 1
        held = any(body.start <= match.start() < body.end for body in bodies)
        if not held and not text[start : match.start()].lstrip().startswith("#"):
            message = "spaces follow the backslash: the command ends here"
            yield Problem(ProblemKind.CUT_SHORT, message, source.location(match.start()))
            told.add(match.end() + 1)
    for statement in walk(program.body):
        if isinstance(statement, Simple) and statement.words:
            word = statement.words[0]
            line = text.rfind("\n", 0, word.start) + 1
            if text.startswith("--", word.start) and line not in told:
                shown = text[word.start : word.end].splitlines()[0][:40]
                message = f"{shown} is no part of the command before it"
                yield Problem(ProblemKind.CUT_SHORT, message, source.location(word.start))
