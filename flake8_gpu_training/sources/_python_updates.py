"""What the tree of a source tells of its updates: where they stand, and what is accumulated."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Union

from flake8_gpu_training.sources._python_waiting import WAITS, waits

APART = "an update behind a loop of backward passes"
CUT = "a batch cut into parts of a step"
TOLD = "an update where told: "
"""What a parameter follows in whose branch alone a function updates."""
_ACCUMULATES = frozenset({"accum", "acc_step", "acc_iter", "grad_acc"})
_BACKWARD = frozenset({"backward", "manual_backward"})
_UPDATE = re.compile(r"(?i)(?:optim\w*|scaler)\.step$|optim\w*_step$|step_optim|apply_grad")
_ANY_UPDATE = re.compile(r"(?i)step|update|optim")
_KEEPS_BOOK = re.compile(
    r"(?i)(?:bar|progress|tqdm|task|metric\w*|meter\w*|stat\w*|log\w*|loss\w*|dict|history|timer"
    r"|profiler|prof)\.(?:update|step)$"
)
_COMMON = frozenset({"step", "main", "train", "fit", "run", "__init__", "__call__", "forward"})
# Steps that change no weights that are trained.
_NO_UPDATE = re.compile(
    r"(?i)sched|(?:^|_)lr|ema|average|swa|env|sampler|zero_grad|(?:train|valid|test|eval|global)\w*_step$"
    r"|step_(?:count|num)|steps$|update_(?:lr|ema|stat|metric|bar|log)|_bar$|train_|clip|optimizers?$"
)
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_Def = Union[ast.FunctionDef, ast.AsyncFunctionDef]
_Loop = (ast.For, ast.While, ast.AsyncFor)


def updates_in(tree: ast.Module) -> frozenset[str]:
    """``APART``, ``CUT``, ``WAITS``, and ``TOLD`` with each parameter, where functions are such."""
    found: set[str] = set()
    functions = [node for node in ast.walk(tree) if isinstance(node, _Function)]
    going_back = [node for node in functions if _names(node) & _BACKWARD]
    if not going_back:
        return frozenset()
    helpers = _helpers(functions, going_back)
    if helpers.backward:
        blocks = list(_blocks(tree))
    else:
        blocks = [block for node in going_back for block in _blocks(node)]
    if any(_is_apart(statements, helpers) for statements in blocks):
        found.add(APART)
    if any(_cuts(statement) for statements in blocks for statement in statements):
        found.add(CUT)
    if any(_waits(node, body, helpers) for node in going_back for body in _steps(node)):
        found.add(WAITS)
    for node in going_back:
        found.update(f"{TOLD}{name}" for name in _switches(node))
    return frozenset(found)


class _Helpers(NamedTuple):
    """Names of the file's functions that only go backward, and of those that only update."""

    backward: frozenset[str]
    update: frozenset[str]


def _helpers(functions: Sequence[_Def], going_back: Sequence[_Def]) -> _Helpers:
    goes_back = {node.name for node in going_back}
    called = {node: _called(node) for node in functions}
    updates = {
        node.name for node in functions if any(_UPDATE.search(name) for name in called[node])
    }
    may_update = {
        node.name for node in going_back if any(_is_update(name) for name in called[node])
    }
    return _Helpers(
        frozenset(goes_back - may_update - _COMMON), frozenset(updates - goes_back - _COMMON)
    )


def _steps(function: _Def) -> Iterator[Sequence[ast.stmt]]:
    """The bodies of a function's loops, and its own."""
    yield function.body
    for node in ast.walk(function):
        if isinstance(node, _Loop):
            yield node.body


def _waits(function: _Def, body: Sequence[ast.stmt], helpers: _Helpers) -> bool:
    def goes_back(call: ast.Call) -> bool:
        return _last_names(call.func).rpartition(".")[2] in _BACKWARD | helpers.backward

    def updates(call: ast.Call) -> bool:
        name = _last_names(call.func)
        if name.rpartition(".")[2] in helpers.update or _UPDATE.search(name):
            return True
        return _is_update(name) and _NO_UPDATE.search(name) is None

    def drops(call: ast.Call) -> bool:
        return _last_names(call.func).endswith("zero_grad")

    return waits(body, goes_back, updates, drops, _parameters(function))


def _parameters(function: _Def) -> frozenset[str]:
    arguments = function.args
    return frozenset(item.arg for item in (*arguments.args, *arguments.kwonlyargs))


def _is_update(name: str) -> bool:
    """Whether a call may be an update; ``bar.update(1)`` and ``metrics.update(…)`` are none."""
    return _ANY_UPDATE.search(name) is not None and _KEEPS_BOOK.search(name) is None


def unsaid(tree: ast.Module, words: frozenset[str]) -> frozenset[str]:
    """Those of ``words`` about accumulation that stand in comments and docstrings only."""
    asked = words & _ACCUMULATES
    if not asked:
        return asked
    said = "\n".join(_texts(tree)).lower()
    return frozenset(word for word in asked if word not in said)


def _texts(tree: ast.Module) -> Iterator[str]:
    """Names and strings of the code."""
    loose = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str) and id(node) not in loose:
                yield node.value
            continue
        for name in ("id", "attr", "arg", "name", "asname", "module"):
            text = getattr(node, name, None)
            if isinstance(text, str):
                yield text
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from node.names


def _blocks(node: ast.AST) -> Iterator[Sequence[ast.stmt]]:
    for inner in ast.walk(node):
        for name in ("body", "orelse"):
            block = getattr(inner, name, None)
            if isinstance(block, list):
                yield block


def _is_apart(statements: Sequence[ast.stmt], helpers: _Helpers) -> bool:
    """Whether a loop goes backward without an update of any name, and one comes behind it."""
    is_waiting = False
    for statement in statements:
        if not is_waiting and not isinstance(statement, _Loop):
            continue
        names = _called(statement)
        last = {name.rpartition(".")[2] for name in names}
        if is_waiting and (last & helpers.update or any(_UPDATE.search(name) for name in names)):
            return True
        if isinstance(statement, _Loop):
            goes_back = last & (_BACKWARD | helpers.backward)
            updates = last & helpers.update or any(_is_update(name) for name in names)
            is_waiting = bool(goes_back) and not updates
    return False


def _cuts(loop: ast.stmt) -> bool:
    """Whether a counting loop goes backward on slices (``x[start:end]``), and updates nothing."""
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
        return False
    names = _called(loop)
    if _last_names(loop.iter.func) != "range" or any(_UPDATE.search(name) for name in names):
        return False
    if not _BACKWARD & {name.rpartition(".")[2] for name in names}:
        return False
    inner = list(ast.walk(loop))
    made = {n.id for n in inner if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return any(
        isinstance(node, ast.Slice)
        and node.lower is not None
        and node.upper is not None
        and made & {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        for node in inner
    )


def _switches(function: _Def) -> Iterator[str]:
    """Parameters whose branch has the function's only updates."""
    parameters = _parameters(function)
    branches = [
        (node.test.id, node.body)
        for node in ast.walk(function)
        if isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id in parameters
    ]
    everywhere = _updates(function) if branches else 0
    for name, body in branches:
        if 0 < sum(_updates(statement) for statement in body) == everywhere:
            yield name


def _updates(node: ast.AST) -> int:
    """How many updates a piece of code has."""
    return sum(_UPDATE.search(name) is not None for name in _called(node))


def _names(node: ast.AST) -> set[str]:
    return {inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute)}


def _called(node: ast.AST) -> list[str]:
    """The last two names of what is called in a piece of code."""
    return [_last_names(inner.func) for inner in ast.walk(node) if isinstance(inner, ast.Call)]


def _last_names(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        owner = node.value
        lead = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
        return f"{lead}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""
