"""Gradient accumulation by hand: ``if step % n == 0: optimizer.step()`` in a training loop."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from typing import Any, Optional

from flake8_gpu_training.facts import (
    Call,
    Condition,
    Loop,
    Origin,
    PythonFile,
    Setting,
    Unknown,
    known,
)
from flake8_gpu_training.frameworks.reading import find, number
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.sources.python import APART, TOLD, WAITS

_NAME = "gradient_accumulation_steps"
_OPTIMIZER = re.compile(r"(?:(?i:optim\w*|scaler|(?:^|[._])opt(?:_\w+)?)|(?:^|[._])opt[A-Z]\w*)$")
_BACKWARD = ("backward", "manual_backward")
_HOLDS_BACK = ("no_sync", "no_backward_sync")
_DIVISOR = r"%\s*\(?\s*([A-Za-z_][\w.]*|\d+)[\s)]*"
_COMES_OUT = re.compile(_DIVISOR + "==")
_DIFFERS = re.compile(_DIVISOR + "!=")
_REMAINS = re.compile(r"[^=<>!]*" + _DIVISOR)


def accumulation_by_hand(run: Run) -> Optional[Setting]:
    """Steps between two updates, when every update of every loop waits for the same number.

    A loop in which one optimizer steps each time and another now and then (a GAN's) does not
    accumulate.
    """
    found: list[Setting] = []
    for file in run.python:
        updates = [call for call in file.calls if is_update(call)]
        for loop in dict.fromkeys(call.loop for call in updates if call.loop is not None):
            settings = [_waits(run, file, call) for call in updates if call.loop == loop]
            if any(setting is None for setting in settings) or not _adds_up(file, loop):
                return None
            found.extend(setting for setting in settings if setting is not None)
    if not found:
        return None
    values = {repr(setting.value) for setting in found}
    if len(values) > 1 or not known(found[0].value):
        return Setting(_NAME, Unknown("the loop decides"), found[0].location, Origin.CONSTRUCTOR)
    return found[0]


def held_back(run: Run) -> Optional[Setting]:
    """``no_sync``: gradients are held back for an update that only the loop knows."""
    calls = (call for file in run.python for call in file.calls)
    return next((_several(call) for call in calls if call.method in _HOLDS_BACK), None)


def left_open(run: Run) -> Optional[Setting]:
    """Updates of a loop that all wait for what sounds like a count, and nobody can tell."""
    calls = [call for file in run.python for call in file.calls]
    updates = [call for call in calls if is_update(call) and call.loop is not None]
    asked = [_counted(call) for call in updates]
    if not asked or None in asked:
        return None
    reason = f"it depends on {asked[0].text}" if asked[0] is not None else ""
    return Setting(_NAME, Unknown(reason), updates[0].location, Origin.CONSTRUCTOR)


_COUNTS = re.compile(
    r"(?i)step|iter|\bi\b|\bit\b|count|idx|batch|updat|sync|micro|last|bound|ready|len\(|accu|%"
)
_NO_COUNT = re.compile(r"(?i)epoch|finite|nan|warm|max_|total|isinstance|None|_start|skip")


def _counted(call: Call) -> Optional[Condition]:
    """A condition of an update that sounds like a count of batches."""
    for condition in call.conditions:
        if _COUNTS.search(condition.text) and not _NO_COUNT.search(condition.text):
            return condition
    return None


def parts_of_a_step(run: Run) -> Optional[Setting]:
    """A loop of backward passes with the update behind it: a batch that is cut into parts.

    A loop with an update of its own (a GAN's critic) is no such loop. The update may stand in
    a function of the project (``self._optimizer_step()``).
    """
    helpers = _updating(run)
    for file in run.python:
        updates = [call for call in file.calls if is_update(call) or call.method in helpers]
        updated = {call.loop for call in updates}
        for call in file.calls:
            if call.method not in _BACKWARD or call.loop is None:
                continue
            if _is_part(call.loop, updated) or _is_followed(call, updates):
                return _several(call)
    return None


def told_to_update(run: Run) -> Optional[Setting]:
    """A function that goes backward at each call, and updates when its caller says so.

    ``scaler(loss, optimizer, update_grad=step % n == 0)``, also of timm. Or one whose update
    comes behind its loop, or that only some of its paths make.
    """
    asked = {
        (call.scope, condition.text, condition.holds)
        for file in run.python
        for call in file.calls
        if is_update(call) and call.loop is None
        for condition in call.conditions
    }
    # ``if amp: scaler.step(optimizer) else: optimizer.step()`` is a choice between updates.
    switches = {
        text
        for scope, text, holds in asked
        if holds and text.isidentifier() and (scope, text, False) not in asked
    }
    words = {word for file in run.python for word in file.mentions or ()}
    switches.update(word[len(TOLD) :] for word in words if word.startswith(TOLD))
    switches.add("need_update")  # of timm.utils.cuda.NativeScaler, from 0.9 on
    for file in run.python:
        for call in file.calls:
            for name in switches & call.keywords.keys():
                value = call.keywords[name].value
                if value is not True:
                    reason = f"the loop decides: {name}={call.keywords[name].text}"
                    return Setting(_NAME, Unknown(reason), call.location, Origin.CONSTRUCTOR)
    for word in (APART, WAITS):
        if word in words:
            return Setting(_NAME, Unknown(word), None, Origin.CONSTRUCTOR)
    return None


def _updating(run: Run) -> frozenset[str]:
    """Names of the project's functions that make one update, and do not go backward."""
    found: set[str] = set()
    goes_back: set[str] = set()
    for file in run.python:
        for call in file.calls:
            name = call.scope.rpartition(".")[2]
            if is_update(call) and call.loop is None and name not in _COMMON:
                found.add(name)
            if call.method in _BACKWARD:
                goes_back.add(name)
    return frozenset(found - goes_back - {""})


_COMMON = frozenset({"step", "main", "train", "fit", "run", "__init__", "__call__", "forward"})


def _is_followed(backward: Call, updates: Sequence[Call]) -> bool:
    """Whether the function's own loop around a backward pass has the update behind it."""
    loop = backward.loop
    if loop is None or loop.parent is not None:
        return False
    own = [call for call in updates if call.scope == backward.scope]
    if any(call.loop == loop or _is_within(call.loop, loop) for call in own):
        return False
    return any(call.loop is None and call.location > backward.location for call in own)


def _several(call: Call) -> Setting:
    reason = "a step has several backward passes"
    return Setting(_NAME, Unknown(reason), call.location, Origin.CONSTRUCTOR)


def _is_part(loop: Loop, updated: Set[Optional[Loop]]) -> bool:
    """Whether the gradients of a loop are used by an update in a loop around it."""
    if loop in updated or any(_is_within(inner, loop) for inner in updated):
        return False
    return any(_is_within(loop, outer) for outer in updated if outer is not None)


def _is_within(inner: Optional[Loop], outer: Loop) -> bool:
    around = inner.parent if inner is not None else None
    while around is not None and around != outer:
        around = around.parent
    return around is not None


def is_update(call: Call) -> bool:
    """Whether a call is an optimizer's step."""
    receiver = call.name.rpartition(".")[0]
    return call.method == "step" and _OPTIMIZER.search(receiver) is not None


def _adds_up(file: PythonFile, loop: Loop) -> bool:
    """Whether the loop computes gradients at every step, whatever the updates wait for."""
    return any(
        call.method == "backward" and call.loop == loop and not call.guarded for call in file.calls
    )


def _waits(run: Run, file: PythonFile, call: Call) -> Optional[Setting]:
    """What the update waits for; None when it does not wait."""
    for condition in call.conditions:
        divisor = _divisor(condition)
        if divisor or "%" in condition.text:
            value = _value(run, file, call, divisor) if divisor else Unknown(condition.text)
            note = condition.text if condition.holds else f"not {condition.text}"
            return Setting(_NAME, value, condition.location, Origin.CONSTRUCTOR, f"if {note}")
    return None


def _divisor(condition: Condition) -> str:
    """``n`` where the branch is taken once in ``n`` steps; empty when it is another branch."""
    text, holds = condition.text.strip(), condition.holds
    if text.startswith("not "):
        text, holds = text[len("not ") :], not holds
    match = _COMES_OUT.search(text) if holds else _DIFFERS.search(text) or _REMAINS.fullmatch(text)
    return match.group(1) if match is not None else ""


def _value(run: Run, file: PythonFile, call: Call, text: str) -> Any:
    if text.isdigit():
        return int(text)
    for value in _candidates(run, file, call, text):
        if isinstance(value, Unknown) and value.candidates:
            return value
        figure = number(value) if known(value) else None
        return int(figure) if figure is not None and figure >= 1 else Unknown(text)
    return Unknown(text)


def _candidates(run: Run, file: PythonFile, call: Call, text: str) -> Iterator[Any]:
    for name in (f"{call.scope}.{text}", text):
        bound = file.bindings.get(name)
        given = find(run, text) if name == text else None
        if bound is not None and given is not None and given.value != bound.value:
            yield Unknown(f"{text} may be given anew", (bound.value,))
        elif bound is not None:
            yield bound.value
    if "." in text:
        setting = find(run, text.rpartition(".")[2])
        if setting is not None:
            yield setting.value
