"""What is asked before a function is called that puts adapters on a model, freezes or patches it.

``if args.lora: model = adapted(model)``: the calls within ``adapted`` stand in that branch, too.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Optional, TypeVar

from flake8_gpu_training.facts import Assignment, Call, Condition, PythonFile
from flake8_gpu_training.runs.branches import holds
from flake8_gpu_training.runs.passing import Sign
from flake8_gpu_training.sources.python import chooses_weights, exchanges_attention
from flake8_gpu_training.sources.signatures import Passed

ValueOf = Callable[[str, str, str], Any]
"""Value, in a scope of the file at a path, of a name or a dotted path; or Unknown."""

_Asked = Optional[tuple[Condition, ...]]
"""What is left open of a function's being called; None when it is not called."""

_NOTHING: tuple[Condition, ...] = ()
_HOPS = 4  # from a function to those that call it
_ADAPTERS = "Config"
_WATCHED = frozenset({"requires_grad_", "get_peft_model", "add_adapter", "from_pretrained"})
_FREEZES = ".requires_grad"
_AS_SCRIPT = "__name__ == "
_Branched = TypeVar("_Branched", Call, Assignment)


def guarded(files: Sequence[PythonFile], sign: Sign, value_of: ValueOf) -> list[PythonFile]:
    """``files``, their calls of that kind with what is left open of the callers' branches.

    Calls in functions that are called in branches alone which are not taken are set apart.
    """
    asker = _Asker([file.path for file in files], sign, value_of)
    return [_of_file(file, asker) for file in files]


def _of_file(file: PythonFile, asker: _Asker) -> PythonFile:
    calls = [(call, asker.asked_of(call) if _is_watched(call) else call) for call in file.calls]
    attributes = [
        (item, asker.asked_of(item) if item.name.endswith(_FREEZES) else item)
        for item in file.attributes
    ]
    if all(made is item for item, made in (*calls, *attributes)):
        return file
    return dataclasses.replace(
        file,
        calls=tuple(made for _, made in calls if made is not None),
        untaken=(*file.untaken, *(call for call, made in calls if made is None)),
        attributes=tuple(made for _, made in attributes if made is not None),
    )


def _is_watched(call: Call) -> bool:
    method = call.method
    return (
        (method in _WATCHED and (method != "from_pretrained" or call.name.startswith("peft.")))
        or (call.name.startswith("peft.") and method.endswith(_ADAPTERS))
        or chooses_weights(method)
        or exchanges_attention(method)
    )


class _Asker:
    def __init__(self, paths: Sequence[str], sign: Sign, value_of: ValueOf) -> None:
        self.paths = paths
        self.sign = sign
        self.value_of = value_of
        self.answers: dict[str, _Asked] = {}

    def asked_of(self, item: _Branched) -> Optional[_Branched]:
        """``item`` with what its function's callers ask; None when it is not reached."""
        asked = self.before(item.scope) if item.scope else _NOTHING
        if asked is None:
            return None
        return dataclasses.replace(item, conditions=item.conditions + asked) if asked else item

    def before(self, scope: str, hops: int = _HOPS) -> _Asked:
        """What is asked before the function ``scope`` is called, in all of its calls."""
        if scope not in self.answers:
            self.answers[scope] = _NOTHING  # of functions that call each other
            self.answers[scope] = self._of_callers(scope, hops)
        return self.answers[scope]

    def _of_callers(self, scope: str, hops: int) -> _Asked:
        owner, _, last = scope.rpartition(".")
        called = owner.rpartition(".")[2] if last == "__init__" else last
        sites = [
            (path, passed)
            for path in self.paths
            for passed in self.sign(path).calls_by_name.get(called, ())
            if passed.scope != scope
        ]
        asked: list[_Asked] = [self._of_site(path, passed, hops) for path, passed in sites]
        taken = [one for one in asked if one is not None]
        if sites and not taken:
            return None
        return taken[0] if taken and all(taken) else _NOTHING

    def _of_site(self, path: str, passed: Passed, hops: int) -> _Asked:
        left: list[Condition] = []
        for test, wanted in passed.tests:
            text = ast.unparse(test)
            if text.startswith(_AS_SCRIPT):
                continue
            answer = holds(text, lambda name: self.value_of(path, passed.scope, name))
            if answer is None:
                left.append(Condition(text, wanted))
            elif answer is not wanted:
                return None
        if not hops or not passed.scope:
            return tuple(left)
        outer = self.before(passed.scope, hops - 1)
        return None if outer is None else (*left, *outer)
