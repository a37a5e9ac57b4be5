"""Commands that Python programs start: ``subprocess.run([sys.executable, "train.py"])``."""

from __future__ import annotations

import ast
import dataclasses
import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Any, Optional

from flake8_gpu_training.facts import Call, Command, Location, Unknown, known

_STARTERS = re.compile(r"subprocess\.(?:run|Popen|call|check_call|check_output)|os\.system")
_OF_SGLANG = re.compile(r"(?:[\w.]+\.)?(?:launch_server_cmd|execute_shell_command)")
"""Of ``sglang.utils``: they cut one command into words at whitespace."""
_TRACE = re.compile(
    r"torchrun|torch\.distributed|accelerate|deepspeed|swift|megatron|llamafactory|ff-train|vllm"
    r"|sglang|trl|\.py\b"
)
_FORMATTED = re.compile(r"\s*\(?\s*(?:[rR]?[fF][rR]?)?[\"']")
_INTERPRETER = "sys.executable"
MAX_ITEMS = 500
MAX_TEXT = 10_000


def started_by(calls: Iterable[Call]) -> Iterator[Command]:
    """The commands that ``calls`` start, each at the place of its call."""
    for call in calls:
        if starts(call):
            yield from started(call)


def starts(call: Call) -> bool:
    """Whether ``call`` starts a command."""
    return bool(_STARTERS.fullmatch(call.name) or _OF_SGLANG.fullmatch(call.name))


def started(call: Call, value: Any = None) -> tuple[Command, ...]:
    """The commands that ``call`` starts; ``value``: the argument that it is known to be given."""
    argument = call.positional[0] if call.positional else call.keywords.get("args")
    if argument is None:
        return ()
    text = argument.value if value is None else value
    if isinstance(text, (list, tuple)):
        text = " ".join(_quoted(item) for item in text[:MAX_ITEMS])
    elif isinstance(text, Unknown):
        text = _line(argument.text) or _line(text.reason)
    if not isinstance(text, str) or not _TRACE.search(text):
        return ()
    if _OF_SGLANG.fullmatch(call.name):
        text = " ".join(text.replace("\\", " ").split())
    from flake8_gpu_training.sources.shell import read_command_line

    return tuple(_moved(c, call.location) for c in read_command_line(text, call.location.path))


def _quoted(item: Any) -> str:
    """An item of a list of arguments as the shell has it: one word, whatever it holds."""
    if not isinstance(item, Unknown):
        return shlex.quote(str(item))
    if item.reason == _INTERPRETER:
        return "python"
    pieces = _pieces(item.reason)
    if pieces is None:
        return f'"{_variable(item.reason)}"'
    return "".join(
        piece and shlex.quote(piece) if is_text else f'"{_variable(piece)}"'
        for piece, is_text in pieces
    )


def _line(text: str) -> Optional[str]:
    """An f-string as the shell would have it, with variables for what it puts in."""
    pieces = _pieces(text)
    if pieces is None:
        return None
    return "".join(piece if is_text else _variable(piece) for piece, is_text in pieces)


def _pieces(expression: str) -> Optional[list[tuple[str, bool]]]:
    """What an f-string is put together from: texts (true) and expressions (false)."""
    if not _FORMATTED.match(expression) or len(expression) > MAX_TEXT:
        return None
    try:
        tree = ast.parse(f"({expression})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(tree, ast.JoinedStr):
        return None
    return [
        (str(value.value), True)
        if isinstance(value, ast.Constant)
        else (ast.unparse(value.value) if isinstance(value, ast.FormattedValue) else "", False)
        for value in tree.values
    ]


def _variable(expression: str) -> str:
    """What stands for a value that Python computes: the interpreter, else a variable."""
    if expression == _INTERPRETER:
        return "python"
    return f"${{PY_{re.sub(r'[^a-zA-Z0-9]+', '_', expression).strip('_')}}}"


def _moved(command: Command, place: Location) -> Command:
    """``command`` with every place at ``place``: its words are no text of the file."""
    words = tuple(
        dataclasses.replace(word, location=place, raw="" if known(word.value) else word.raw)
        for word in command.words
    )
    return dataclasses.replace(command, words=words, location=place, end=None)
