"""Arithmetic, comparison and indexing on values that may be unknown."""

from __future__ import annotations

import ast
import operator
import posixpath
from collections.abc import Mapping
from typing import Any, Callable, Optional

from flake8_gpu_training.facts import Unknown
from flake8_gpu_training.runs._followed import (
    MAX_CANDIDATES,
    Class,
    Either,
    External,
    File,
    Function,
    Module,
    PathText,
    Table,
    bare,
)

MAX_SIZE = 10_000
MAX_NUMBER = 10**18
_ARITHMETIC: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARED: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def text_of(node: ast.AST) -> str:
    """The expression's source on one line, in Python's own spelling."""
    known_as: Optional[str] = getattr(node, _TEXT, None)
    if known_as is not None:  # a tree is gone through for each run
        return known_as
    try:
        text = ast.unparse(node)[:200]
    except (RecursionError, ValueError, AttributeError):
        text = "an expression"
    setattr(node, _TEXT, text)
    return text


_TEXT = "_followed_text"


def arithmetic(kind: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
    """The outcome of ``left kind right``."""
    left, right = _whole(left), _whole(right)
    if isinstance(kind, ast.BitOr) and isinstance(left, Table) and isinstance(right, Table):
        made = Table(dict(left.entries), is_open=left.is_open or right.is_open)
        for key, value in right.entries.items():
            made.put(key, value)
        return made
    if isinstance(kind, ast.Div) and isinstance(left, str) and isinstance(right, str):
        return PathText(posixpath.join(left, right))
    first, second = _options(left), _options(right)
    if not first or not second or len(first) * len(second) > MAX_CANDIDATES:
        return Unknown(text_of(node))
    results = [_computed(kind, one, other) for one in first for other in second]
    if any(isinstance(result, Unknown) for result in results):
        return Unknown(text_of(node))
    return one_of(results, text_of(node), left, right)


def one_of(results: list[Any], text: str, *sources: Any) -> Any:
    """One of ``results``, which were computed from all that ``sources`` can be."""
    if any(isinstance(source, Unknown) and not isinstance(source, Either) for source in sources):
        return Unknown(text, _distinct(results))  # the candidates are only those in sight
    return results[0] if len(results) == 1 else Either(text, _distinct(results))


def _whole(value: Any) -> Any:
    return value if isinstance(value, Table) else bare(value)


def _options(value: Any) -> list[Any]:
    """What a value can be, nothing when nobody knows."""
    if isinstance(value, Unknown):
        return list(value.candidates)
    return [value] if isinstance(value, (bool, int, float, str, list)) else []


def _computed(kind: ast.operator, left: Any, right: Any) -> Any:
    function = _ARITHMETIC.get(type(kind))
    if function is None or not _is_small(kind, left, right):
        return Unknown("too large, or not arithmetic")
    try:
        return function(left, right)
    except (TypeError, ValueError, ArithmeticError):
        return Unknown("it fails")


def _distinct(values: list[Any]) -> tuple[Any, ...]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return tuple(found)


def _is_small(kind: ast.operator, left: Any, right: Any) -> bool:
    sizes = [len(item) for item in (left, right) if isinstance(item, (str, list))]
    if any(size > MAX_SIZE for size in sizes):
        return False
    numbers = [item for item in (left, right) if isinstance(item, (int, float))]
    if any(abs(number) > MAX_NUMBER for number in numbers):
        return False
    if isinstance(kind, ast.Pow):
        return len(numbers) == 2 and abs(numbers[1]) <= 16
    if isinstance(kind, ast.Mult) and sizes:
        return bool(numbers) and sizes[0] * abs(numbers[0]) <= MAX_SIZE
    return not (isinstance(kind, ast.Mod) and isinstance(left, str))


def is_true(value: Any) -> Optional[bool]:
    """The truth of a value; None when it is not known."""
    if isinstance(value, Table):
        return None if value.is_open and not value.entries else _is_filled(value)
    value = bare(value)
    if isinstance(value, Unknown):
        truths = {is_true(item) for item in value.candidates}
        return truths.pop() if isinstance(value, Either) and len(truths) == 1 else None
    if isinstance(value, External):
        return None
    if isinstance(value, (Function, Class, Module, File)):
        return True
    return (
        bool(value) if value is None or isinstance(value, (bool, int, float, str, list)) else None
    )


def _is_filled(table: Table) -> bool:
    return table.kind is not None or bool(table.entries)


def compared(kind: ast.cmpop, left: Any, right: Any) -> Optional[bool]:
    """Whether ``left kind right`` holds; None when it is not known."""
    left, right = _whole(left), _whole(right)
    if isinstance(kind, (ast.In, ast.NotIn)):
        within = _contains(right, left)
        return within if within is None or isinstance(kind, ast.In) else not within
    if isinstance(kind, (ast.Is, ast.IsNot)):
        same = _is_same(left, right)
        return same if same is None or isinstance(kind, ast.Is) else not same
    first, second = _comparable(left), _comparable(right)
    if not first or not second or len(first) * len(second) > MAX_CANDIDATES:
        return None
    results = {_outcome(kind, one, other) for one in first for other in second}
    return results.pop() if len(results) == 1 else None


def may_be_either(kind: ast.cmpop, left: Any, right: Any) -> bool:
    """Whether a comparison holds for some of the values its sides can have, and not for all."""
    first, second = _comparable(_whole(left)), _comparable(_whole(right))
    if len(first) * len(second) > MAX_CANDIDATES:
        return False
    return {_outcome(kind, one, other) for one in first for other in second} == {True, False}


def _comparable(value: Any) -> list[Any]:
    if isinstance(value, Unknown) and not isinstance(value, Either):
        return []
    return [None] if value is None else _options(value)


def _outcome(kind: ast.cmpop, left: Any, right: Any) -> Optional[bool]:
    try:
        return bool(_COMPARED[type(kind)](left, right))
    except (TypeError, ValueError, KeyError):
        return None


def _is_same(left: Any, right: Any) -> Optional[bool]:
    if isinstance(left, (Unknown, External)) or isinstance(right, (Unknown, External)):
        return None
    if left is None or right is None or isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return None


def _contains(owner: Any, item: Any) -> Optional[bool]:
    if isinstance(item, Unknown):
        return None
    if isinstance(owner, Table):
        if not isinstance(item, (str, int)):
            return None
        return True if item in owner.entries else None if owner.is_open else False
    if isinstance(owner, list):
        if any(isinstance(bare(one), (Unknown, External)) for one in owner):
            return None
        return any(bare(one) == item for one in owner)
    if isinstance(owner, str) and isinstance(item, str):
        return item in owner
    return None


def indexed(owner: Any, key: Any, text: str) -> Any:
    """``owner[key]`` of a list or text."""
    is_place = isinstance(key, int) and not isinstance(key, bool)
    if isinstance(owner, (list, str)) and is_place and -len(owner) <= key < len(owner):
        return owner[key]
    return Unknown(text)
