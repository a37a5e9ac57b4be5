"""Where a program hands its model to code that is out of sight, and goes on with what it gets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Optional

from flake8_gpu_training.facts import Import, Location, PythonFile
from flake8_gpu_training.runs._followed_unseen import KNOWN
from flake8_gpu_training.runs.reach import Reach

_MODEL = re.compile(r"(?i)(?:^|_)(?:model|net|network|unet|transformer|backbone)$")
_MAX_LINES = 20_000


class Handing:
    """Tells it for the runs of one project: what a file does is the same for each of them."""

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self._told: dict[str, tuple[tuple[Import, ...], _Told]] = {}

    def of(self, files: Iterable[PythonFile]) -> Optional[Location]:
        """``model = wrapped(model)`` of a function that no code in sight defines, or None."""
        lines = 0
        for file in files:
            told = self._of_file(file)
            lines += told.lines
            if lines > _MAX_LINES:
                return None
            if told.place is not None:
                return told.place
        return None

    def _of_file(self, file: PythonFile) -> _Told:
        before = self._told.get(file.path)
        if before is not None and before[0] is file.imports:
            return before[1]
        told = self._read(file)
        self._told[file.path] = (file.imports, told)
        return told

    def _read(self, file: PythonFile) -> _Told:
        lines = (self.reach.source(file.path) or b"").count(b"\n")
        unseen = {name for item in file.imports for name in _unseen(item, file.path, self.reach)}
        tree = self.reach.tree(file.path) if unseen and lines <= _MAX_LINES else None
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Assign) and _goes_through(node, unseen):
                return _Told(lines, Location(file.path, node.lineno, node.col_offset + 1))
        return _Told(lines)


@dataclass(frozen=True)
class _Told:
    """Lines of a file, and where it hands over a model."""

    lines: int
    place: Optional[Location] = None


def _unseen(item: Import, path: str, reach: Reach) -> Iterator[str]:
    """The name that an import binds, when neither project nor a known library has it."""
    level = len(item.module) - len(item.module.lstrip("."))
    dotted = item.module.lstrip(".")
    if not level and dotted.partition(".")[0] in KNOWN:
        return
    inner = f"{dotted}.{item.name}" if dotted else item.name
    if reach.module(dotted, level, path) is None and reach.module(inner, level, path) is None:
        yield item.alias or item.name or dotted.partition(".")[0]


def _goes_through(node: ast.Assign, unseen: set[str]) -> bool:
    call = node.value
    if not isinstance(call, ast.Call) or _root(call.func) not in unseen:
        return False
    given = (*call.args, *(item.value for item in call.keywords))
    models = {item.id for item in given if isinstance(item, ast.Name) and _MODEL.search(item.id)}
    targets = {
        item.id
        for target in node.targets
        for item in (target.elts if isinstance(target, ast.Tuple) else [target])
        if isinstance(item, ast.Name)
    }
    return bool(models & targets)


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Call)):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""
