"""Follows values into the project's own functions: what their callers pass on."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any, Callable, Optional

from flake8_gpu_training.facts import Argument, Call, PythonFile, Setting, Unknown, known
from flake8_gpu_training.sources.signatures import Passed, Signatures

FOLLOWED = frozenset(
    """
    DataLoader StatefulDataLoader WebLoader Accelerator Trainer memmap WebDataset ImageFolder
    load_from_disk load_dataset
    """.split()  # noqa: SIM905
)
"""Calls whose arguments are followed to the callers of the function they stand in."""
_HOPS = 2  # from a caller to its own callers
_NAME = re.compile(r"(?:self\.)?([A-Za-z_]\w*)")

Resolve = Callable[[Any], Optional[Setting]]
"""The setting behind ``args.workers`` or ``cfg.data.workers``."""
Sign = Callable[[str], Signatures]


def with_passed(
    files: Sequence[PythonFile], sign: Sign, resolve: Resolve
) -> tuple[PythonFile, ...]:
    """``files`` with arguments filled in that are parameters of the function around them.

    A parameter is known when all calls in sight pass the same value.
    """
    open_calls = [call for file in files for call in file.calls if _is_open_question(call)]
    if not open_calls:
        return tuple(files)
    follower = _Follower(files, sign, resolve)
    return tuple(_filled(file, follower) for file in files)


class Values:
    """Values of names in the scopes of a program, as far as its text tells."""

    def __init__(self, files: Sequence[PythonFile], sign: Sign, resolve: Resolve) -> None:
        self._files = files
        self._sign = sign
        self._resolve = resolve
        self._follower: Optional[_Follower] = None

    def of(self, path: str, scope: str, name: str) -> Any:
        """What ``name`` (a name or a dotted path) holds in a scope of a file, or Unknown."""
        unknown = Unknown(name)
        found = self._resolve(unknown)
        if found is not None:
            return found.value
        if self._follower is None:
            self._follower = _Follower(self._files, self._sign, self._resolve)
        if _NAME.fullmatch(name):
            return self._follower.value(path, scope, name)
        return self._follower.field(path, scope, name)


def _is_open_question(call: Call) -> bool:
    return call.method in FOLLOWED and any(
        _asked(argument) for argument in (*call.positional, *call.keywords.values())
    )


def _asked(argument: Argument) -> str:
    """The parameter that an unknown argument may be (``workers``, ``self.workers``)."""
    if known(argument.value) or not _NAME.fullmatch(argument.text):
        return ""
    return argument.text


def _filled(file: PythonFile, follower: _Follower) -> PythonFile:
    calls = tuple(
        follower.call(file.path, call) if _is_open_question(call) else call for call in file.calls
    )
    if all(new is old for new, old in zip(calls, file.calls)):
        return file
    return dataclasses.replace(file, calls=calls)


class _Follower:
    def __init__(self, files: Sequence[PythonFile], sign: Sign, resolve: Resolve) -> None:
        self.bindings = {file.path: file.bindings for file in files}
        self.sign = sign
        self.resolve = resolve

    def call(self, path: str, call: Call) -> Call:
        positional = tuple(self._argument(path, call, a) for a in call.positional)
        keywords = {name: self._argument(path, call, a) for name, a in call.keywords.items()}
        return dataclasses.replace(call, positional=positional, keywords=MappingProxyType(keywords))

    def value(self, path: str, scope: str, name: str) -> Any:
        """What a plain name, or an attribute of ``self``, holds in a scope."""
        function = self._function(path, scope, name)
        if function is not None:
            values = self._values(path, *function)
            agree = bool(values) and all(known(v) and v == values[0] for v in values)
            return values[0] if agree else Unknown(name)
        for full in (f"{scope}.{name}", name) if scope else (name,):
            setting = self.bindings[path].get(full)
            if setting is not None:
                passed = self.resolve(setting.value)
                return passed.value if passed is not None else setting.value
        return Unknown(name)

    def field(self, path: str, scope: str, name: str, hops: int = _HOPS) -> Any:
        """What ``cfg.x`` holds, where the callers pass their ``args`` as the parameter ``cfg``."""
        owner, _, rest = name.partition(".")
        function = self._function(path, scope, owner) if owner.isidentifier() else None
        found: list[Any] = []
        for caller, passed, value in self._passed(path, *function) if function else ():
            if passed.is_open or not isinstance(value, Unknown):
                return Unknown(name)
            inner = f"{value.reason}.{rest}"
            setting = self.resolve(Unknown(inner))
            if setting is not None:
                found.append(setting.value)
            elif hops:
                found.append(self.field(caller, passed.scope, inner, hops - 1))
        agree = bool(found) and all(known(one) and one == found[0] for one in found)
        return found[0] if agree else Unknown(name)

    def _argument(self, path: str, call: Call, argument: Argument) -> Argument:
        name = _asked(argument)
        function = self._function(path, call.scope, name) if name else None
        if function is None:
            return argument
        values = self._values(path, *function)
        if not values:
            return argument
        first = values[0]
        if not all(known(value) and value == first for value in values):
            candidates = tuple(value for value in values if known(value))
            return dataclasses.replace(argument, value=Unknown(name, candidates))
        return dataclasses.replace(argument, value=first)

    def _function(self, path: str, scope: str, name: str) -> Optional[tuple[str, str]]:
        """The function around ``scope``, and its parameter that ``name`` stands for."""
        signatures = self.sign(path)
        if name.startswith("self."):
            owner = scope.rpartition(".")[0]
            parameter = signatures.attributes.get(owner, {}).get(name[len("self.") :])
            return (f"{owner}.__init__", parameter) if parameter else None
        if name in signatures.parameters.get(scope, {}):
            bound = self.bindings[path].get(f"{scope}.{name}")
            if bound is None or not known(bound.value):
                return scope, name
        return None

    def _values(self, path: str, function: str, parameter: str, hops: int = _HOPS) -> list[Any]:
        """What each call in sight passes for a parameter; nothing when one cannot be told."""
        found: list[Any] = []
        for caller, passed, value in self._passed(path, function, parameter):
            if passed.is_open or value is ...:
                return []
            found.append(self._evaluated(caller, passed.scope, value, hops))
        return found

    def _passed(
        self, path: str, function: str, parameter: str
    ) -> Iterator[tuple[str, Passed, Any]]:
        """The calls of a function, each with its file and the value for a parameter.

        ``...``: the parameter is left out and has no default.
        """
        parameters = self.sign(path).parameters.get(function, {})
        owner, _, last = function.rpartition(".")
        called = owner.rpartition(".")[2] if last == "__init__" else last
        names = list(parameters)
        is_method = names[:1] in (["self"], ["cls"])
        for caller in self.bindings:
            for passed in self.sign(caller).calls_by_name.get(called, ()):
                value = _passed(passed, names[is_method:], parameter)
                yield caller, passed, parameters[parameter] if value is ... else value

    def _evaluated(self, path: str, scope: str, value: Any, hops: int) -> Any:
        if not isinstance(value, Unknown):
            return value
        setting = self.resolve(value)
        if setting is None:
            bindings = self.bindings[path]
            setting = bindings.get(f"{scope}.{value.reason}" if scope else value.reason)
            setting = setting or bindings.get(value.reason)
            if setting is not None and not setting.known:
                setting = self.resolve(setting.value)
        if setting is not None:
            return setting.value
        return self._from_callers(path, scope, value, hops)

    def _from_callers(self, path: str, scope: str, value: Unknown, hops: int) -> Any:
        """What the callers of ``scope`` agree on, where ``value`` is a parameter of it."""
        function = self._function(path, scope, value.reason) if hops else None
        values = self._values(path, *function, hops - 1) if function is not None else []
        agree = bool(values) and all(known(v) and v == values[0] for v in values)
        return values[0] if agree else value


def _passed(passed: Passed, names: Sequence[str], parameter: str) -> Any:
    """The value for ``parameter``, or ``...`` when the call leaves it out."""
    if parameter in passed.keywords:
        return passed.keywords[parameter]
    at = names.index(parameter) if parameter in names else len(passed.positional)
    return passed.positional[at] if at < len(passed.positional) else ...
