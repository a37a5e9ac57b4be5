"""What the tree of a source tells of the weights that are trained: all, or chosen ones."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Optional, Union

CHOSEN = "an optimizer of chosen weights"
BY = "an optimizer of what it gets from: "
"""What a function precedes whose choice an optimizer is given."""
CHOOSES = "weights are chosen in: "
GIVES = "weights are taken in: "
"""What each function precedes that takes weights of a model."""
WITHOUT_GRADIENT = "a pass without gradient through: "
"""What an attribute follows that a step calls within ``torch.no_grad()``."""
_OPTIMIZER = re.compile(
    r"(?:\w*Adam\w*|SGD|RMSprop|Adagrad|Adadelta|Adafactor|\w*Lion\w*|\w*Muon\w*|\w*LAMB|Lamb|NAdam"
    r"|RAdam|LARS|Rprop|Prodigy|\w*optim\w*_(?:cls|class))$"
)
_TRACE = re.compile(
    r"named_|parameters\(|no_grad\(|Ada(?:m|factor|grad|delta)|SGD|RMSprop|Lion|Muon|LAMB|Lamb|LARS|Rprop"
    r"|Prodigy|_cls\(|_class\("
)
_NAMED = frozenset({"named_parameters", "named_modules", "named_children"})
_PASSES_ON = frozenset({"list", "tuple", "filter", "chain", "sorted", "dict", "iter", "zip"})
_STEPS = frozenset({"forward", "training_step", "train_step", "compute_loss", "step"})
_Def = Union[ast.FunctionDef, ast.AsyncFunctionDef]
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEPTH = 4


def optimized_in(tree: ast.Module, text: str) -> frozenset[str]:
    """``CHOSEN``, ``BY`` and ``CHOOSES`` with functions, ``WITHOUT_GRADIENT`` with attributes."""
    found: set[str] = set()
    lines = _traces_in(text)
    for scope in _scopes(tree, lines) if lines else ():
        inner = list(_inside(scope))
        if isinstance(scope, _Function):
            if _chooses(inner):
                found.add(f"{CHOOSES}{scope.name}")
            if any(_takes(node) for node in inner):
                found.add(f"{GIVES}{scope.name}")
            if scope.name in _STEPS:
                found.update(f"{WITHOUT_GRADIENT}{name}" for name in _without_gradient(inner))
        assigned = _assigned(inner)
        given = [list(_resolved(item, assigned)) for item in _given(inner)]
        if not given:
            continue
        parts = {owner for items in given for item in items for owner in _owners(item)}
        if any(_selects(item, inner) for items in given for item in items) or _is_part(parts):
            found.add(CHOSEN)
        for name in (name for items in given for item in items for name in _makers(item)):
            found.add(f"{BY}{name}")
    return frozenset(found)


def _traces_in(text: str) -> list[int]:
    """The lines on which an optimizer may be made, or weights taken."""
    lines: list[int] = []
    line, end = 1, 0
    for match in _TRACE.finditer(text):
        line += text.count("\n", end, match.start())
        end = match.start()
        lines.append(line)
    return lines


def _scopes(tree: ast.Module, lines: Sequence[int]) -> Iterator[ast.AST]:
    """The module and the functions with one of these lines in them."""
    yield tree
    waiting: list[ast.AST] = [tree]
    while waiting:
        for child in ast.iter_child_nodes(waiting.pop()):
            if not isinstance(child, (ast.stmt, ast.excepthandler)):
                continue
            at = bisect_left(lines, child.lineno)
            if at < len(lines) and lines[at] <= (child.end_lineno or child.lineno):
                waiting.append(child)
                if isinstance(child, _Function):
                    yield child


def _inside(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function or module, those of the functions within it aside."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_Function, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))


def _last(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _given(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """What optimizers are given to train."""
    for node in nodes:
        if not isinstance(node, ast.Call) or not _OPTIMIZER.match(_last(node.func)):
            continue
        named = next((item.value for item in node.keywords if item.arg == "params"), None)
        if named is not None:
            yield named
        elif node.args:
            yield node.args[0]


def _assigned(nodes: Iterable[ast.AST]) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            found.setdefault(_last(node.targets[0]), []).append(node.value)
    return found


def _resolved(
    node: ast.expr, assigned: dict[str, list[ast.expr]], depth: int = 0
) -> Iterator[ast.expr]:
    """The expressions that a variable holds, else the expression itself."""
    values = assigned.get(_last(node), ()) if isinstance(node, (ast.Name, ast.Attribute)) else ()
    if not values or depth > _DEPTH:
        yield node
    for value in values if depth <= _DEPTH else ():
        yield from _resolved(value, assigned, depth + 1)


def _owners(node: ast.expr) -> Iterator[str]:
    """``a.b`` of each ``a.b.parameters()``."""
    for item in ast.walk(node):
        called = item.func if isinstance(item, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in ("parameters", *_NAMED):
            yield ast.unparse(called.value)


def _is_part(owners: set[str]) -> bool:
    """Whether one part of a model alone is given: ``model.head``."""
    only = next(iter(owners)) if len(owners) == 1 else ""
    return re.fullmatch(
        r"(?:self\.)?(?:model|net|network)(?:\.module)?\.(?!module$|model$)\w[\w.\[\]]*", only
    ) is not None  # fmt: skip


def _makers(node: ast.expr) -> Iterator[str]:
    """Functions that make what an optimizer is given, ``get_groups(model)``."""
    while isinstance(node, ast.Call) and _last(node.func) in _PASSES_ON and node.args:
        node = node.args[-1]
    if isinstance(node, ast.Call) and not _takes(node) and _last(node.func) not in _PASSES_ON:
        yield _last(node.func)


def _takes(node: ast.AST) -> bool:
    """``model.parameters()`` and its kin."""
    return isinstance(node, ast.Call) and _last(node.func) in (*_NAMED, "parameters")


# --- choices by name ------------------------------------------------------------------------


def _selects(node: ast.expr, scope: Sequence[ast.AST]) -> bool:
    """Whether an expression leaves weights out by their names, and none other takes them."""
    if isinstance(node, (ast.List, ast.ListComp, ast.GeneratorExp, ast.Call, ast.BinOp)):
        inner = list(ast.walk(node))
        if any(_comprehends(item) for item in inner):
            return _chooses(inner)
    if isinstance(node, ast.List) and not node.elts:
        return _chooses(scope)
    return False


def _chooses(nodes: Sequence[ast.AST]) -> bool:
    """Whether weights are taken by their names, and nothing takes the rest."""
    taken = [node for node in nodes if _comprehends(node)]
    loops = [node for node in nodes if isinstance(node, ast.For) and _names_of(node) is not None]
    filling = [node for node in loops if any(_fills(item) for item in ast.walk(node))]
    if len(taken) + len(filling) != 1:
        return False  # two take what the other leaves
    return bool(taken) or not _always_fills(filling[0].body, _names_of(filling[0]) or "")


def _comprehends(node: ast.AST) -> bool:
    """``[p for n, p in model.named_parameters() if "head" in n]``."""
    if not isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
        return False
    for part in node.generators:
        name = _names_of(part)
        if name and any(_asks(test, name) for test in part.ifs):
            return True
    return False


def _names_of(loop: Union[ast.For, ast.comprehension]) -> Optional[str]:
    """The variable for the names, of a loop over named weights."""
    called = {_last(n.func) for n in ast.walk(loop.iter) if isinstance(n, ast.Call)}
    if not called & _NAMED:
        return None
    target = loop.target
    if isinstance(target, ast.Tuple) and target.elts:
        return _last(target.elts[0])
    return ""


def _asks(test: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(test))


def _fills(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("append", "extend", "add", "setdefault")
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Subscript) for target in node.targets)
    return isinstance(node, ast.AugAssign)


def _always_fills(statements: Sequence[ast.stmt], name: str) -> bool:
    """Whether each weight is put somewhere, whatever its name."""
    for statement in statements:
        if isinstance(statement, ast.If):
            by_name = _asks(statement.test, name)
            if _always_fills(statement.body, name) and (
                not by_name or _always_fills(statement.orelse, name)
            ):
                return True
            leaves = isinstance(statement.body[-1], (ast.Continue, ast.Break))
            if by_name and leaves and not _always_fills(statement.body, name):
                return False
        elif any(_fills(item) for item in ast.walk(statement)):
            return True
    return False


# --- passes without gradient ----------------------------------------------------------------


def _without_gradient(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Modules (``self.encoder``) that are called within ``torch.no_grad()``."""
    for node in nodes:
        if not isinstance(node, ast.With):
            continue
        entered = [item.context_expr for item in node.items]
        if not any(isinstance(e, ast.Call) and _last(e.func) == "no_grad" for e in entered):
            continue
        for item in (inner for statement in node.body for inner in ast.walk(statement)):
            called = item.func if isinstance(item, ast.Call) else None
            if isinstance(called, ast.Attribute) and _last(called.value) == "self":
                yield called.attr
