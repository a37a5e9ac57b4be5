"""Which branches of its program a run takes: calls in the others do not count."""

from __future__ import annotations

import ast
import dataclasses
import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Optional, TypeVar, Union

from flake8_gpu_training.facts import Assignment, Call, Condition, PythonFile, Unknown

ValueOf = Callable[[str, str], Any]
"""Value, in a scope of the file, of a name or a dotted path; or Unknown."""
_Branched = TypeVar("_Branched", Call, Assignment)
_NOT_KNOWN = Unknown("not followed")
_COMPARISONS: Mapping[type, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        ast.Eq: operator.eq,
        ast.NotEq: operator.ne,
        ast.Lt: operator.lt,
        ast.LtE: operator.le,
        ast.Gt: operator.gt,
        ast.GtE: operator.ge,
        ast.Is: operator.eq,
        ast.IsNot: operator.ne,
        ast.In: lambda one, other: one in other,
        ast.NotIn: lambda one, other: one not in other,
    }
)
_TEXT_METHODS = frozenset({"lower", "upper", "strip", "startswith", "endswith"})
_HOLDS = frozenset({"torch.cuda.is_available"})
"""Questions that a run on GPUs answers with yes."""
_MAX_DEPTH = 40


def taken(file: PythonFile, value_of: ValueOf) -> PythonFile:
    """``file`` with what stands in branches that are not taken set apart.

    Of the conditions of what remains only those are left that nobody can tell.
    """
    if not any(call.conditions for call in file.calls) and not any(
        attribute.conditions for attribute in file.attributes
    ):
        return file
    asker = _Asker(value_of)
    decided = [(call, asker.decide(call)) for call in file.calls]
    attributes = (asker.decide(attribute) for attribute in file.attributes)
    return dataclasses.replace(
        file,
        calls=tuple(made for _, made in decided if made is not None),
        untaken=(*file.untaken, *(call for call, made in decided if made is None)),
        attributes=tuple(made for made in attributes if made is not None),
    )


class _Asker:
    def __init__(self, value_of: ValueOf) -> None:
        self.value_of = value_of
        self.answers: dict[tuple[str, str], Optional[bool]] = {}

    def decide(self, item: _Branched) -> Optional[_Branched]:
        """``item`` with the conditions that are left open; None when it is not reached."""
        left: list[Condition] = []
        for condition in item.conditions:
            answer = self.answer(condition.text, item.scope)
            if answer is None:
                left.append(condition)
            elif answer is not condition.holds:
                return None
        if len(left) == len(item.conditions):
            return item
        return dataclasses.replace(item, conditions=tuple(left))

    def answer(self, text: str, scope: str) -> Optional[bool]:
        """Whether a test holds, or None."""
        key = (text, scope)
        if key not in self.answers:
            self.answers[key] = holds(text, lambda name: self.value_of(scope, name))
        return self.answers[key]


def holds(text: str, value_of: Callable[[str], Any]) -> Optional[bool]:
    """Whether the expression ``text`` is true; None when that is not known."""
    node = _parsed(text) if text else None
    return _truth(_Evaluation(value_of).of(node, 0)) if node is not None else None


@lru_cache(maxsize=8192)  # each run of a program asks the same conditions
def _parsed(text: str) -> Optional[ast.expr]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in the source are no matter of ours
            return ast.parse(f"({text})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=8192)
def _text_of(node: ast.expr) -> str:
    return ast.unparse(node)


def _truth(value: Any) -> Optional[bool]:
    return None if isinstance(value, Unknown) else bool(value)


class _Evaluation:
    def __init__(self, value_of: Callable[[str], Any]) -> None:
        self.value_of = value_of

    def of(self, node: ast.expr, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            return _NOT_KNOWN
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            return self.value_of(_text_of(node))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            truth = _truth(self.of(node.operand, depth + 1))
            return _NOT_KNOWN if truth is None else not truth
        if isinstance(node, ast.BoolOp):
            return self._joined(node, depth)
        if isinstance(node, ast.Compare):
            return self._compared(node, depth)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return self._sequence(node, depth)
        if isinstance(node, ast.Call):
            return self._called(node, depth)
        return _NOT_KNOWN

    def _joined(self, node: ast.BoolOp, depth: int) -> Any:
        """``and`` and ``or``: one part that decides is enough, whatever the others are."""
        decides = isinstance(node.op, ast.Or)
        values = [self.of(part, depth + 1) for part in node.values]
        truths = [_truth(value) for value in values]
        if decides in truths:
            first = truths.index(decides)
            return values[first] if None not in truths[:first] else decides
        return _NOT_KNOWN if None in truths else values[-1]

    def _compared(self, node: ast.Compare, depth: int) -> Any:
        left = self.of(node.left, depth + 1)
        outcome: Any = True
        for comparison, part in zip(node.ops, node.comparators):
            right = self.of(part, depth + 1)
            answer = _compare(comparison, left, right)
            if answer is False:
                return False
            outcome = answer if answer is not True else outcome
            left = right
        return outcome

    def _sequence(self, node: Union[ast.List, ast.Tuple, ast.Set], depth: int) -> Any:
        items = [self.of(item, depth + 1) for item in node.elts]
        return _NOT_KNOWN if any(isinstance(item, Unknown) for item in items) else items

    def _called(self, node: ast.Call, depth: int) -> Any:
        name = _text_of(node.func)
        if name in _HOLDS:
            return True
        if node.keywords:
            return _NOT_KNOWN
        if name == "getattr" and len(node.args) in (2, 3):
            return self._attribute(node.args, depth)
        given = [self.of(item, depth + 1) for item in node.args]
        if any(isinstance(item, Unknown) for item in given):
            return _NOT_KNOWN
        if name in ("len", "bool", "int", "str") and len(given) == 1:
            return _converted(name, given[0])
        if isinstance(node.func, ast.Attribute) and node.func.attr in _TEXT_METHODS:
            owner = self.of(node.func.value, depth + 1)
            if isinstance(owner, str) and all(isinstance(item, str) for item in given):
                return _applied(getattr(owner, node.func.attr), given)
        return _NOT_KNOWN

    def _attribute(self, given: Sequence[ast.expr], depth: int) -> Any:
        """``getattr(args, "x", default)``: the default is not taken when ``x`` is not known."""
        name = self.of(given[1], depth + 1)
        if not isinstance(name, str) or not name.isidentifier():
            return _NOT_KNOWN
        return self.value_of(f"{_text_of(given[0])}.{name}")


def _compare(comparison: ast.cmpop, left: Any, right: Any) -> Any:
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return _NOT_KNOWN
    return _applied(_COMPARISONS[type(comparison)], [left, right])


def _converted(name: str, value: Any) -> Any:
    converters: dict[str, Callable[..., Any]] = {"len": len, "bool": bool, "int": int, "str": str}
    return _applied(converters[name], [value])


def _applied(function: Callable[..., Any], given: Sequence[Any]) -> Any:
    try:
        return function(*given)
    except (TypeError, ValueError, OverflowError):
        return _NOT_KNOWN
