"""What a container, an MPI rank or another machine gets of the environment it is started from."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Optional

from ..facts import CONTAINERS
from ._job_images import entrypoint_of, is_program
from ._shell_values import Chunk, Field, Variable

_ELSEWHERE = CONTAINERS | {"ssh", "pdsh", "kubectl", "ray"}
"""Programs that start a command without the variables of the shell that calls them."""
_MPI = frozenset({"mpirun", "mpiexec", "orterun", "mpiexec.hydra"})
_NAME = re.compile(r"[A-Za-z_]\w*")
_LISTED = re.compile(r"(?:^|,)([A-Za-z_]\w*)=([^,]*)")


@dataclass
class Passed:
    """``fresh``: nothing is inherited. ``variables`` are set, ``names`` are handed on,
    ``files`` are environment files that are read; ``entrypoint`` comes before the command."""

    fresh: bool = False
    variables: list[tuple[str, Variable]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    entrypoint: Optional[Field] = None


def passed(fields: Sequence[Field]) -> Optional[Passed]:
    """What the wrapper with these words does to the environment; None when nothing."""
    program = posixpath.basename(fields[0].text)
    made = Passed(fresh=program in _ELSEWHERE)
    if program in CONTAINERS:
        _of_container(fields, made)
    elif program in _MPI:
        _of_mpi(fields, made)
    elif program in ("singularity", "apptainer"):
        for value in _values(fields, ("--env",)):
            made.variables += _listed(value)
    elif program in ("srun", "sbatch"):
        for value in _values(fields, ("--export",)):
            made.variables += _listed(value)
    elif program == "ray":
        for value in _values(fields, ("--runtime-env-json",)):
            made.variables += _of_runtime(value)
    return made if made.fresh or made.variables or made.names else None


def _of_container(fields: Sequence[Field], made: Passed) -> None:
    for value in _values(fields, ("-e", "--env")):
        _assign(value, made)
    made.files += [value.text for value in _values(fields, ("--env-file",))]
    made.entrypoint = next((value for value in _values(fields, ("--entrypoint",))), None)


def started_by_image(wrapper: Sequence[Field], rest: Sequence[Field]) -> list[Field]:
    """What an image starts when it is given no program (``docker run IMAGE [MODEL] [flags]``)."""
    is_container = posixpath.basename(wrapper[0].text) in CONTAINERS
    if not is_container or (rest and is_program(rest[0].text)):
        return []
    image = wrapper[-1]
    return [
        Field((Chunk(word, image.source, image.offset, None, False),), image.source, image.offset)
        for word in entrypoint_of(image.text)
    ]


def _of_mpi(fields: Sequence[Field], made: Passed) -> None:
    for value in _values(fields, ("-x",)):
        _assign(value, made)
    for at, word in enumerate(fields):
        if word.text in ("-genv", "-env") and at + 2 < len(fields):
            name = fields[at + 1].text
            if _NAME.fullmatch(name):
                made.variables.append((name, _variable(fields[at + 2])))


def _assign(value: Field, made: Passed) -> None:
    """``NAME=value`` sets a variable; ``NAME`` hands on the caller's."""
    name, equals, _ = value.text.partition("=")
    if not _NAME.fullmatch(name):
        return
    if equals:
        made.variables.append((name, _variable(after(value, len(name) + 1))))
    else:
        made.names.append(name)


def _values(fields: Sequence[Field], flags: Sequence[str]) -> Iterator[Field]:
    """Values of flags: ``--env X`` or ``--env=X``."""
    for at, word in enumerate(fields):
        if word.text in flags and at + 1 < len(fields):
            yield fields[at + 1]
            continue
        name, equals, _ = word.text.partition("=")
        if equals and name in flags:
            yield after(word, len(name) + 1)


def after(word: Field, count: int) -> Field:
    """``word`` without its first ``count`` characters."""
    left = count
    value: list[Chunk] = []
    for chunk in word.value:
        if left >= len(chunk.text):
            left -= len(chunk.text)
            continue
        value.append(chunk.part(left, len(chunk.text)) if left else chunk)
        left = 0
    return Field(tuple(value), word.source, word.offset + count, word.raw, word.quoted)


def _variable(word: Field) -> Variable:
    return Variable(word.value, word.source.location(word.offset), True)


def _listed(word: Field) -> Iterator[tuple[str, Variable]]:
    """``A=1,B=2``."""
    for match in _LISTED.finditer(word.text):
        yield match.group(1), _text(word, match.group(2))


def _of_runtime(word: Field) -> Iterator[tuple[str, Variable]]:
    """``env_vars`` of a runtime environment of Ray."""
    try:
        held = json.loads(word.text)
    except (ValueError, RecursionError):
        return
    variables = held.get("env_vars") if isinstance(held, dict) else None
    for name, value in variables.items() if isinstance(variables, dict) else ():
        if isinstance(value, str):
            yield name, _text(word, value)


def _text(word: Field, text: str) -> Variable:
    chunk = Chunk(text, word.source, word.offset, None, False)
    return Variable((chunk,), word.source.location(word.offset), True)
