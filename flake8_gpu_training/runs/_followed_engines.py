"""Arguments of an inference engine that its own class adds to a program's parser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from flake8_gpu_training.facts import Unknown
from flake8_gpu_training.runs._followed import Given, Table
from flake8_gpu_training.runs._followed_parsers import Parser

if TYPE_CHECKING:
    from flake8_gpu_training.runs.following import Follower

_CLASS = r"(?:sglang|vllm)\.(?:\w+\.)*\w*Args\."
_ADDS = re.compile(_CLASS + "add_cli_args")
_TAKES = re.compile(_CLASS + "from_cli_args")


def is_of_engine(name: str) -> bool:
    """Whether ``name`` is ``ServerArgs.add_cli_args`` or ``from_cli_args``, or vLLM's."""
    return bool(_ADDS.fullmatch(name) or _TAKES.fullmatch(name))


def of_engine(follower: Follower, name: str, given: Given, text: str) -> Any:
    """The parser that has the engine's options now; or the engine's part of a namespace."""
    held = given.get(0, "parser", "args", "cli_args")
    if _ADDS.fullmatch(name):
        if isinstance(held, Parser):
            held.is_engines = True
        return held
    found = next((one for one in follower.of_engines if one[0] is held), None)
    if found is None or not isinstance(held, Table):
        return Unknown(text)
    namespace, parser = found
    own = {option.dest for option in parser.options}
    made = Table(is_open=namespace.is_open)
    for key, value in namespace.entries.items():
        if key not in own:
            made.put(key, value)
    return made
