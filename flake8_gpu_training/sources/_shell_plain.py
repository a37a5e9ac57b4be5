"""What plain commands ask, print and rearrange, as far as their words tell."""

from __future__ import annotations

import fnmatch
import operator
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Callable, Optional

from ..facts import Unknown
from ._shell_containers import after
from ._shell_expand import calculate
from ._shell_syntax import (
    Arithmetic,
    Block,
    Group,
    Not,
    Pipeline,
    Redirect,
    Simple,
    Span,
    Statement,
)
from ._shell_values import Chunk, Field, Source, Value, Variable

SILENT = frozenset({"[", "[[", "test", ":", "true", "false"})
_TESTS = SILENT | {"grep", "command", "which", "type", "!"}
_COMPARED: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": operator.eq,
    "-ne": operator.ne,
    "-lt": operator.lt,
    "-le": operator.le,
    "-gt": operator.gt,
    "-ge": operator.ge,
}

NAMES = re.compile(r"\$\{?([A-Za-z_]\w*)")
DEFAULTED = re.compile(r"\$\{[A-Za-z_]\w*:?[-=]")
OVERRIDABLE = re.compile(r"\b([A-Za-z_]\w*)=[\"']?\$\{[A-Za-z_0-9]\w*:?[-=]")


def is_test(statement: Statement, source: Source) -> bool:
    """Whether ``statement && …`` asks a question, rather than does a first step."""
    if isinstance(statement, Simple):
        if not statement.words:
            return False
        first = statement.words[0]
        return source.text[first.start : first.end] in _TESTS
    if isinstance(statement, Not):
        return is_test(statement.body, source)
    if isinstance(statement, Pipeline) and statement.stages:
        return is_test(statement.stages[-1], source)
    return isinstance(statement, (Arithmetic, Group, Block))


def is_pattern(field: Field) -> bool:
    """Whether a word right of ``==`` has characters that stand for others (``*"="*``)."""
    if not field.quoted or "$" in field.raw:
        return not field.quoted
    return bool(re.search(r"[*?\[\\(]", _QUOTED.sub("", field.raw)))


_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def tested(words: Sequence[str], patterns: bool) -> Optional[bool]:
    """The answer of ``[ words ]``; ``patterns``: what stands right of ``==`` is one."""
    if words and words[0] == "!" and len(words) > 1:
        answer = tested(words[1:], patterns)
        return None if answer is None else not answer
    if len(words) == 1:
        return words[0] != ""
    if len(words) == 2 and words[0] in ("-z", "-n"):
        return (words[1] == "") is (words[0] == "-z")
    if len(words) != 3:
        return None
    left, sign, right = words
    if sign in ("=", "==", "!="):
        if patterns and re.search(r"[\[\\(]", right):
            return None
        if patterns and re.search(r"[*?]", right):
            return fnmatch.fnmatchcase(left, right) is (sign != "!=")
        return (left == right) is (sign != "!=")
    compare = _COMPARED.get(sign)
    if compare is None or not all(re.fullmatch(r"-?\d{1,15}", word) for word in (left, right)):
        return None
    return compare(int(left), int(right))


def text_between(statement: Simple, source: Source) -> str:
    """A command as written."""
    return source.text[statement.words[0].start : statement.words[-1].end]


def endless(condition: Statement, source: Source) -> bool:
    """Whether a loop's condition never changes: ``while true``, ``until false``."""
    item = condition.items[0] if isinstance(condition, Block) else condition
    if not isinstance(item, Simple) or len(item.words) != 1:
        return False
    return source.text[item.words[0].start : item.words[0].end] in ("true", ":", "false")


def changing(name: str, before: Variable) -> Variable:
    """A variable that a loop assigns again."""
    unknown = Unknown(f"${name} changes in a loop")
    donor = next((c for value in (before.value, *(before.elements or ())) for c in value), None)
    source = donor.source if donor is not None else Source("", "")
    offset = donor.offset if donor is not None else 0
    if before.elements is not None:
        chunk = Chunk(f"${{{name}[@]}}", source, offset, unknown, False)
        return replace(before, elements=(*before.elements, (chunk,)))
    chunk = Chunk(f"${{{name}}}", source, offset, unknown, False)
    return replace(before, value=(chunk,))


def unwrap_text(field: Field) -> str:
    """The word's text; one that is unknown from its first character begins with ``$``."""
    first = field.value[0] if field.value else None
    if first is not None and first.unknown is not None and not first.text.startswith("$"):
        return f"${field.text}"
    return field.text


def env_assignment(field: Field) -> tuple[str, Variable]:
    """Name and value of a word ``NAME=value``."""
    name, _, _ = field.text.partition("=")
    value = after(field, len(name) + 1).value
    return name, Variable(value, field.source.location(field.offset), True)


def joined(fields: Sequence[Field]) -> Value:
    """Words with a space between them."""
    made: list[Chunk] = []
    for i, field in enumerate(fields):
        if i:
            made.append(Chunk(" ", field.source, field.offset, None, False))
        made.extend(field.value)
    return tuple(made)


def written_to(redirects: Sequence[Redirect]) -> Optional[Span]:
    """The file that standard output goes to."""
    for redirect in reversed(redirects):
        if redirect.operator in (">", ">>", ">|", "&>", "&>>"):
            return redirect.target
    return None


def is_appending(fields: Sequence[Field]) -> bool:
    """Whether ``tee`` adds to its files."""
    return any(field.text in ("-a", "--append") for field in fields)


def echoed(name: str, fields: Sequence[Field]) -> Optional[Value]:
    """What ``echo`` or a ``printf`` without conversions prints."""
    rest = list(fields[1:])
    escapes = name == "printf"
    if name == "echo":
        while rest and re.fullmatch(r"-[neE]+", rest[0].text):
            escapes = escapes or "e" in rest.pop(0).text
    elif not rest or "%" in rest[0].text or len(rest) > 1:
        return None
    value = joined(rest)
    if escapes:
        value = tuple(
            Chunk(
                chunk.text.replace("\\n", "\n").replace("\\t", "\t"),
                chunk.source,
                chunk.offset,
                chunk.unknown,
                chunk.verbatim and "\\" not in chunk.text,
            )
            for chunk in value
        )
    if name == "echo" and rest:
        last = rest[-1]
        value = (*value, Chunk("\n", last.source, last.offset, None, False))
    return value


def stripped(value: Value) -> Value:
    """Command substitution removes newlines at the end."""
    chunks = list(value)
    while chunks:
        last = chunks.pop()
        text = last.text.rstrip("\n")
        if text:
            return (*chunks, last.part(0, len(text)))
    return ()


def without_tabs(value: Value) -> Value:
    """A ``<<-`` document without the tabs its lines begin with."""
    made: list[Chunk] = []
    for chunk in value:
        at = 0
        for line in chunk.text.splitlines(keepends=True):
            bare = line.lstrip("\t") if at or not made else line
            start = at + len(line) - len(bare)
            made.append(chunk.part(start, at + len(line)))
            at += len(line)
    return tuple(made)


def joined_path(directory: str, path: str) -> str:
    """``path`` as seen from ``directory``; empty for where the script started."""
    joined = posixpath.normpath(posixpath.join(directory, path)) if path else directory
    return "" if joined == "." else joined


_STARTED = frozenset(
    "accelerate deepspeed llamafactory-cli python python3 swift torchrun trl vllm".split()  # noqa: SIM905
)
"""Programs of which ``$(which NAME)`` is the name in a launch: ``torchrun $(which swift) sft``."""


def computed(words: Sequence[str], directory: str) -> Optional[str]:
    """Output of the few commands that only rearrange their arguments."""
    name = words[0]
    operands = [word for word in words[1:] if not word.startswith("-")]
    if name == "pwd" and "$" not in directory:
        return directory or "."
    if name == "dirname" and len(operands) == 1:
        return posixpath.dirname(operands[0].rstrip("/")) or "."
    if name == "basename" and operands:
        base = posixpath.basename(operands[0].rstrip("/"))
        suffix = operands[1] if len(operands) > 1 else ""
        return base[: -len(suffix)] if suffix and base.endswith(suffix) else base
    if name in ("realpath", "readlink") and len(operands) == 1:
        return joined_path(directory, operands[0]) or "."
    if name == "which" and len(operands) == 1 and operands[0] in _STARTED:
        return operands[0]
    if name == "seq":
        return _sequence(words)
    if name == "expr" and 1 < len(words) < 32:
        result = calculate(" ".join(words[1:]), lambda _: None)
        return None if result is None else str(result)
    return None


def _sequence(words: Sequence[str]) -> Optional[str]:
    separator, rest = "\n", list(words[1:])
    while rest and rest[0].startswith("-") and not rest[0][1:].isdigit():
        flag = rest.pop(0)
        if flag == "-s" and rest:
            separator = rest.pop(0)
        elif flag.startswith("-s"):
            separator = flag[2:]
        else:
            return None
    if not 1 <= len(rest) <= 3 or not all(re.fullmatch(r"-?\d{1,6}", word) for word in rest):
        return None
    numbers = [int(word) for word in rest]
    first = numbers[0] if len(numbers) > 1 else 1
    step = numbers[1] if len(numbers) == 3 else 1
    if step <= 0 or numbers[-1] - first > 4096 * step:
        return None
    return separator.join(str(number) for number in range(first, numbers[-1] + 1, step))
