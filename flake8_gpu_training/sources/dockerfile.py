"""Reads Dockerfiles: base images, environment, and the commands of RUN, CMD and ENTRYPOINT."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Optional, Union

from ..facts import Problem, ScriptFile, Setting
from ._job_images import entrypoint_of
from ._shell_expand import State
from ._shell_interpreter import Interpreter
from ._shell_parse import parse_program
from ._shell_syntax import Span, assignment
from ._shell_text import decoded
from ._shell_values import Chunk, Composed, Field, Source, Value, plain, text_of

_INSTRUCTION = re.compile(r"[ \t]*([A-Za-z]+)(?:[ \t]+|$)")
_ESCAPE = re.compile(r"#[ \t]*escape[ \t]*=[ \t]*(\S)", re.IGNORECASE)
_HEREDOC = re.compile(r"<<(-?)[ \t]*([\"']?)([A-Za-z_][\w.]*)\2")
_FLAG = re.compile(r"\s*--[a-z][a-z-]*(?:=\S*)?(?=\s|$)")
_WORD = re.compile(r"(?:[^\s\"'\\]|\\.|\"(?:\\.|[^\"\\])*\"|'[^']*'|[\"'\\])+", re.DOTALL)
_JSON_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"")


@dataclass(frozen=True)
class _Heredoc:
    literal: bool
    start: int
    end: int


@dataclass(frozen=True)
class _Instruction:
    """An instruction with its arguments; comment lines among them are left out."""

    keyword: str
    chunks: Value
    offset: int
    heredocs: tuple[_Heredoc, ...] = ()
    whole: Optional[Span] = None
    """First line of the arguments to the end of the last here-document."""


@dataclass
class _Stage:
    """What a stage leaves to the stages built upon it."""

    state: State
    entrypoint: Optional[Value] = None
    command: Optional[Value] = None
    program: tuple[str, ...] = ()
    """What the base image starts, to which CMD gives only the arguments."""


@dataclass
class _Build:
    """A walk over the instructions."""

    source: Source
    interpreter: Interpreter
    stage: _Stage
    images: list[Setting] = field(default_factory=list)
    assignments: dict[str, Setting] = field(default_factory=dict)
    stages: dict[str, _Stage] = field(default_factory=dict)
    arguments: Optional[State] = None
    """The ``ARG`` values before the first FROM."""
    inherited: bool = True
    conditional: bool = False


def read_dockerfile(text: Union[str, bytes], path: str) -> ScriptFile:
    """Facts of a Dockerfile. Never raises: what cannot be read is a Problem.

    A command's ``function`` is its instruction: ``RUN`` while the image is built, ``CMD``
    for what a container starts (ENTRYPOINT and CMD joined).
    """
    problems: list[Problem] = []
    content = decoded(text, path, 1, problems, takes_crlf=True)
    source = Source(content, path)
    interpreter = Interpreter("", parse_program)
    build = _Build(source, interpreter, _Stage(interpreter.state))
    comments: list[Setting] = []
    for instruction in _instructions(content, source, comments):
        _apply(build, instruction)
    build.conditional = False
    _start(build)
    return ScriptFile(
        path=path,
        commands=tuple(interpreter.commands),
        assignments=build.assignments,
        directives=tuple(build.images),
        heredocs=tuple(interpreter.heredocs),
        comments=tuple(comments),
        problems=tuple(problems + interpreter.problems),
    )


# --- instructions -------------------------------------------------------------------


def _instructions(text: str, source: Source, comments: list[Setting]) -> Iterator[_Instruction]:
    lines = list(_lines(text))
    escape = _escape(text)
    at = 0
    while at < len(lines):
        start, end = lines[at]
        at += 1
        if _is_comment(text, start, end, source, comments):
            continue
        match = _INSTRUCTION.match(text, start, end)
        if match is None:
            continue
        spans = [(match.end(), end)]
        while _continues(text[spans[-1][0] : spans[-1][1]], escape) and at < len(lines):
            start, end = lines[at]
            at += 1
            if not _is_comment(text, start, end, source, comments) and text[start:end].strip():
                spans.append((start, end))
        keyword = match.group(1).upper()
        heredocs: list[_Heredoc] = []
        if keyword in ("RUN", "COPY", "ADD"):
            first = "".join(text[a:b] for a, b in spans)
            for dashed, quote, word in _HEREDOC.findall(first):
                body_start = lines[at][0] if at < len(lines) else len(text)
                while at < len(lines):
                    line = text[slice(*lines[at])]
                    at += 1
                    if (line.lstrip("\t") if dashed else line) == word:
                        break
                body_end = lines[at - 1][0]
                heredocs.append(_Heredoc(bool(quote), body_start, max(body_start, body_end)))
        chunks = _joined(text, source, spans, escape)
        whole = Span(spans[0][0], lines[at - 1][1]) if heredocs else None
        yield _Instruction(keyword, chunks, match.start(1), tuple(heredocs), whole)


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, end
        start = end + 1


def _escape(text: str) -> str:
    first = text.lstrip().split("\n", 1)[0]
    match = _ESCAPE.match(first)
    return match.group(1) if match is not None else "\\"


def _is_comment(text: str, start: int, end: int, source: Source, comments: list[Setting]) -> bool:
    line = text[start:end]
    bare = line.lstrip()
    if not bare.startswith("#"):
        return False
    place = source.location(start + len(line) - len(bare))
    comments.append(Setting("#", bare.lstrip("#").strip(), place))
    return True


def _continues(line: str, escape: str) -> bool:
    return line.rstrip(" \t").endswith(escape)


def _joined(text: str, source: Source, spans: list[tuple[int, int]], escape: str) -> Value:
    """The arguments without the escapes at line ends, each piece with its place."""
    chunks: list[Chunk] = []
    for i, (start, end) in enumerate(spans):
        line = text[start:end]
        if i + 1 < len(spans) or _continues(line, escape):
            bare = line.rstrip(" \t")
            if bare.endswith(escape):
                line = bare[: -len(escape)]
        chunks.append(source.piece(line, start))
    return tuple(chunks)


# --- meaning ------------------------------------------------------------------------


def _apply(build: _Build, instruction: _Instruction) -> None:
    keyword = instruction.keyword
    if keyword == "FROM":
        _from(build, instruction)
    elif keyword in ("ENV", "ARG"):
        _assign(build, instruction)
    elif keyword == "WORKDIR":
        value = plain(_expanded(build, instruction.chunks))
        directory = value if isinstance(value, str) else text_of(instruction.chunks).strip()
        state = build.interpreter.state
        state.directory = posixpath.normpath(posixpath.join(state.directory or "/", directory))
    elif keyword == "RUN":
        _run(build, instruction)
    elif keyword == "ENTRYPOINT":
        build.stage.entrypoint = instruction.chunks
    elif keyword == "CMD":
        build.stage.command = instruction.chunks
    elif keyword in ("COPY", "ADD"):
        _copy(build, instruction)
    elif keyword == "ONBUILD":
        _onbuild(build, instruction)


def _from(build: _Build, instruction: _Instruction) -> None:
    # The containers of earlier stages start only when a build stops there.
    if build.images:
        build.conditional = True
        _start(build)
        build.conditional = False
    else:
        build.arguments = build.interpreter.state.copy()
    state = State()
    if build.arguments is not None:
        build.interpreter.state = build.arguments.copy()
    source = Composed(instruction.chunks)
    words = [m for m in _WORD.finditer(source.text) if not m.group().startswith("--")]
    if not words:
        return
    image = words[0]
    value = plain(build.interpreter.expand(source, Span(image.start(), image.end())))
    build.images.append(Setting("image", value, source.location(image.start())))
    base = build.stages.get(value.lower()) if isinstance(value, str) else None
    build.stage = _Stage(state, program=entrypoint_of(value) if isinstance(value, str) else ())
    if base is not None:
        build.stage = _Stage(base.state.copy(), base.entrypoint, base.command, base.program)
    build.interpreter.state = build.stage.state
    if len(words) > 2 and words[1].group().lower() == "as":
        build.stages[words[2].group().lower()] = build.stage


def _expanded(build: _Build, chunks: Value) -> Value:
    source = Composed(chunks)
    start = len(source.text) - len(source.text.lstrip())
    return build.interpreter.expand(source, Span(start, len(source.text.rstrip())))


def _assign(build: _Build, instruction: _Instruction) -> None:
    source = Composed(instruction.chunks)
    words = list(_WORD.finditer(source.text))
    for match in words:
        made = assignment(source.text, match.start(), match.end())
        if made is None:
            if instruction.keyword == "ARG":
                _declare(build, match.group())
            elif match is words[0]:
                _assign_old_form(build, source, match)
                return
            continue
        build.interpreter.assign(source, made)
        _note(build, made.name)


def _declare(build: _Build, name: str) -> None:
    """``ARG NAME`` takes over the value it was given before the first FROM."""
    earlier = build.arguments.variables.get(name) if build.arguments is not None else None
    if earlier is not None:
        build.interpreter.state.set(name, earlier)


def _assign_old_form(build: _Build, source: Source, match: re.Match[str]) -> None:
    """``ENV NAME the rest of the line``."""
    name = match.group()
    start = match.end() + len(source.text[match.end() :]) - len(source.text[match.end() :].lstrip())
    text = f"{name}="
    made = assignment(text, 0, len(text))
    if made is None:
        return
    shifted = type(made)(name, match.start(), Span(start, len(source.text.rstrip())))
    build.interpreter.assign(source, shifted)
    _note(build, name)


def _note(build: _Build, name: str) -> None:
    variable = build.interpreter.state.variables[name]
    build.assignments[name] = variable.setting(name)


def _run(build: _Build, instruction: _Instruction) -> None:
    chunks = instruction.chunks
    if instruction.whole is not None:
        span = instruction.whole
        chunks = (build.source.piece(build.source.text[span.start : span.end], span.start),)
    chunks = _without_flags(chunks)
    fields = _exec_form(chunks)
    if fields is not None:
        build.interpreter.run_words(fields, function="RUN", conditional=build.conditional)
        return
    bare = text_of(chunks).lstrip()
    if instruction.heredocs and _HEREDOC.match(bare):
        for heredoc in instruction.heredocs:
            _run_body(build, heredoc)
        return
    build.interpreter.run_text(chunks, function="RUN", conditional=build.conditional)


def _run_body(build: _Build, heredoc: _Heredoc) -> None:
    body = build.source.text[heredoc.start : heredoc.end]
    value = (build.source.piece(body, heredoc.start),)
    if re.match(r"#!.*python", body):
        build.interpreter.write("-python", value)
    else:
        build.interpreter.run_text(value, function="RUN", conditional=build.conditional)


def _without_flags(chunks: Value) -> Value:
    """Without ``--mount=…`` and the like before the command."""
    text = text_of(chunks)
    cut = 0
    match = _FLAG.match(text)
    while match is not None:
        cut = match.end()
        match = _FLAG.match(text, cut)
    kept: list[Chunk] = []
    for chunk in chunks:
        size = len(chunk.text)
        if cut < size:
            kept.append(chunk.part(cut, size))
        cut = max(0, cut - size)
    return tuple(kept)


def _exec_form(chunks: Value) -> Optional[list[Field]]:
    """The words of ``["python", "train.py"]``, or None for the shell form."""
    source = Composed(chunks)
    text = source.text
    if not text.lstrip().startswith("["):
        return None
    try:
        words = json.loads(text)
    except (ValueError, RecursionError):
        return None
    matches = list(_JSON_STRING.finditer(text))
    if len(matches) != len(words) or not all(isinstance(word, str) for word in words):
        return None
    made: list[Field] = []
    for word, match in zip(words, matches):
        at = match.start() + 1
        verbatim = word == match.group()[1:-1]
        value = (Chunk(word, source, at, None, verbatim),)
        made.append(Field(value, source, at, match.group(), quoted=True))
    return made


def _start(build: _Build) -> None:
    """What a container of the stage starts."""
    stage = build.stage
    build.interpreter.state = stage.state.copy()
    entrypoint, command = stage.entrypoint, stage.command
    fields = _exec_form(entrypoint) if entrypoint is not None else []
    if fields is None and entrypoint is not None:
        # The shell form ignores CMD.
        build.interpreter.run_text(entrypoint, function="CMD", conditional=build.conditional)
        return
    further = _exec_form(command) if command is not None else []
    if further and entrypoint is None and further[0].text.startswith("-"):
        fields = [_unwritten(text, further[0]) for text in stage.program]
    if further is not None:
        words = [*(fields or ()), *further]
        build.interpreter.run_words(words, function="CMD", conditional=build.conditional)
    elif command is not None and not fields:
        build.interpreter.run_text(command, function="CMD", conditional=build.conditional)
    elif command is not None:
        place = Composed(command)
        shell = [Field((Chunk(t, place, 0, None, False),), place, 0, t) for t in ("sh", "-c")]
        script = Field(command, place, 0, text_of(command), quoted=True)
        words = [*(fields or ()), *shell, script]
        build.interpreter.run_words(words, function="CMD", conditional=build.conditional)


def _unwritten(text: str, before: Field) -> Field:
    """A word of the image's own, at the place of the first that is written."""
    chunk = Chunk(text, before.source, before.offset, None, False)
    return Field((chunk,), before.source, before.offset, text)


def _copy(build: _Build, instruction: _Instruction) -> None:
    if not instruction.heredocs:
        return
    words = _WORD.findall(text_of(instruction.chunks))
    for heredoc in instruction.heredocs:
        body = build.source.text[heredoc.start : heredoc.end]
        value: Value = (build.source.piece(body, heredoc.start),)
        build.interpreter.write(words[-1], value)


def _onbuild(build: _Build, instruction: _Instruction) -> None:
    source = Composed(instruction.chunks)
    match = _INSTRUCTION.match(source.text)
    if match is None:
        return
    rest = source.text[match.end() :]
    chunks = (Chunk(rest, source, match.end()),)
    keyword = match.group(1).upper()
    if keyword != "ONBUILD":
        build.conditional = True
        inner = _Instruction(keyword, chunks, match.start(), instruction.heredocs)
        _apply(build, inner)
        build.conditional = False
