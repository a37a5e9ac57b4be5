"""Which function of the project a call calls, as far as names tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Optional

from flake8_gpu_training.facts import Call, PythonFile

Function = tuple[str, str]
"""Path of the file, and dotted name within it (``Trainer.log``)."""

_HOPS = 3  # re-exports, and base classes, that are followed


class Functions:
    """Finds functions by the calls of them, within the files of one run."""

    def __init__(self, files: Sequence[PythonFile]) -> None:
        self._files = {file.path: file for file in files}
        self._classes = {file.path: {found.name for found in file.classes} for file in files}

    def called_by(self, file: PythonFile, call: Call) -> Iterator[Function]:
        """The functions that ``call`` may call; whether they exist is not checked."""
        head, _, method = call.name.rpartition(".")
        if not head:
            yield from self._in_scopes(file, call)
        elif head == "self":
            owner = self._class_around(file, call.scope)
            if owner:
                yield from self._method(file, owner, method)
        elif call.receiver:
            found = self._defined(file, call.receiver)
            if found is not None:
                yield from self._method(self._files[found[0]], found[1], method)
        else:
            found = self._defined(file, call.name)
            if found is not None:
                yield found

    def _in_scopes(self, file: PythonFile, call: Call) -> Iterator[Function]:
        """A bare name: a function nested in those around the call, or of the module."""
        scope = call.scope
        while scope:
            if scope not in self._classes[file.path]:
                yield file.path, f"{scope}.{call.name}"
            scope = scope.rpartition(".")[0]
        yield file.path, call.name

    def _class_around(self, file: PythonFile, scope: str) -> str:
        while scope and scope not in self._classes[file.path]:
            scope = scope.rpartition(".")[0]
        return scope

    def _method(self, file: PythonFile, owner: str, method: str) -> Iterator[Function]:
        """``method`` of a class, or of the base that has it."""
        for _ in range(_HOPS):
            definition = next((c for c in file.classes if c.name == owner), None)
            if definition is None:
                return
            if method in definition.methods:
                yield file.path, f"{owner}.{method}"
                return
            bases = (self._defined(file, base) for base in definition.bases)
            found = next((base for base in bases if base is not None), None)
            if found is None:
                return
            file, owner = self._files[found[0]], found[1]

    def _defined(self, file: PythonFile, dotted: str) -> Optional[Function]:
        """Where a resolved name is defined: in ``file`` itself, or in a module of the run."""
        if "." not in dotted:
            return file.path, dotted
        module, _, name = dotted.rpartition(".")
        for _ in range(_HOPS):
            found = self._module(file, module)
            if found is None:
                # ``module`` may end with a class: ``utils.Meter.update``.
                module, _, owner = module.rpartition(".")
                name = f"{owner}.{name}"
                if not module.strip("."):
                    return None
                continue
            again = next((i for i in found.imports if i.alias == name and i.name), None)
            if again is None:
                return found.path, name
            file, module, name = found, again.module, again.name
        return None

    def _module(self, importer: PythonFile, module: str) -> Optional[PythonFile]:
        folder = PurePosixPath(importer.path).parent
        names = module.lstrip(".")
        parts = names.replace(".", "/")
        if module.startswith("."):
            for _ in range(len(module) - len(names) - 1):
                folder = folder.parent
            return self._at(folder, parts)
        return self._at(folder, parts) or self._at(PurePosixPath("."), parts) or self._only(parts)

    def _at(self, folder: PurePosixPath, parts: str) -> Optional[PythonFile]:
        stem = str(folder / parts) if parts else str(folder)
        for path in (f"{stem}.py", f"{stem}/__init__.py"):
            if path in self._files:
                return self._files[path]
        return None

    def _only(self, parts: str) -> Optional[PythonFile]:
        """The one file of that name in any folder, such as a ``src`` that is on the path."""
        ends = (f"/{parts}.py", f"/{parts}/__init__.py")
        found = [file for path, file in self._files.items() if path.endswith(ends)]
        return found[0] if len(found) == 1 else None
