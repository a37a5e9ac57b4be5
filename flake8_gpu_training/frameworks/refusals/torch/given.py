"""What a call of PyTorch is given, as far as it is sure."""

from __future__ import annotations

import re
from typing import Any, Optional

from flake8_gpu_training.facts import Call, PythonFile, Setting, known
from flake8_gpu_training.frameworks.refusals.base import Options, UndecidedError


def given(options: Options, name: str) -> Any:
    """The value of an argument; None when it is not given."""
    setting = options.given.get(name)
    if setting is None:
        if options.is_open:
            raise UndecidedError(name)
        return None
    if not known(setting.value):
        raise UndecidedError(name)
    return setting.value


def has(options: Options, name: str, *makers: str) -> bool:
    """Whether an argument is an object that one of ``makers`` (ends of names) surely made."""
    setting = options.given.get(name)
    if setting is None:
        if options.is_open:
            raise UndecidedError(name)
        return False
    if known(setting.value):
        return setting.value is not None
    call = maker(options, setting)
    if call is None or not call.endswith(makers):
        raise UndecidedError(name)
    return True


def maker(options: Options, setting: Setting) -> Optional[str]:
    """The name of what made an argument; None where that is not sure."""
    text = setting.text.strip()
    written = re.match(r"(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)\(", text)
    if written is not None:
        return written.group(1) if _is_one_call(text, written.end()) else None
    file = _file(options, setting)
    if file is None or not re.fullmatch(r"[A-Za-z_]\w*", text):
        return None
    calls = [call for call in file.calls if call.assigned_to == text]
    names = {call.method for call in calls if not call.conditions}
    others = any(_is_bound(file, call, text) or call.conditions for call in calls)
    return names.pop() if len(names) == 1 and not others else None


def _is_one_call(text: str, start: int) -> bool:
    """Whether a text is one call and nothing around it: no ``f(x) if y else None``."""
    depth = 1
    for at, character in enumerate(text[start:], start):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return at == len(text) - 1
    return False


def _is_bound(file: PythonFile, call: Call, name: str) -> bool:
    """Whether the name holds a plain value somewhere in the scope of a call."""
    scoped = file.bindings.get(f"{call.scope}.{name}" if call.scope else name)
    return scoped is not None and scoped.known


def _file(options: Options, setting: Setting) -> Optional[PythonFile]:
    place = setting.location
    return next(
        (one for one in options.run.python if place is not None and one.path == place.path), None
    )


def known_value(options: Options, name: str) -> Any:
    """The value that is given, where it is known; else None."""
    setting = options.given.get(name)
    return setting.value if setting is not None and known(setting.value) else None
