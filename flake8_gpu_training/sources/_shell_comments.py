"""The comment lines of a shell script: batch directives, and the others."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..facts import Location, Setting
from ._shell_syntax import Program, Redirect, Simple, walk
from ._shell_values import Source
from .slurm import LONG_NAMES

MAX_COMMENTS = 5_000

_DIRECTIVE = re.compile(r"#(SBATCH|PBS|BSUB|DSUB|\$)[ \t]+(-.*)$")


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


def comments_of(text: str, source: Source, program: Program) -> tuple[list[Setting], list[Setting]]:
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
    names = LONG_NAMES if match.group(1) == "SBATCH" else {}
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
