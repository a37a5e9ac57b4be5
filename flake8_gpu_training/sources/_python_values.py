"""Evaluates Python expressions that static analysis can know; the rest is Unknown."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Optional

import libcst as cst

from flake8_gpu_training.facts import Unknown, known
from flake8_gpu_training.sources._python_interest import is_field_name
from flake8_gpu_training.sources._python_positions import Positions
from flake8_gpu_training.sources._python_scopes import (
    Binding,
    Scope,
    Test,
    dotted_name,
    resolve,
)

MAX_DEPTH = 40
MAX_TEXT = 120
MAX_DIGITS = 100
MAX_SIZE = 100_000
"""Largest string or sequence that is computed."""
MAX_ITEMS = 2_000
"""Literals with more items than this are data."""
MAX_CANDIDATES = 8

_BINARY: Mapping[type, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        cst.Add: operator.add,
        cst.Subtract: operator.sub,
        cst.Multiply: operator.mul,
        cst.Divide: operator.truediv,
        cst.FloorDivide: operator.floordiv,
        cst.Modulo: operator.mod,
        cst.Power: operator.pow,
    }
)
_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {"int": int, "float": float, "str": str, "bool": bool, "list": list, "tuple": tuple}
)
_TRIPLE_QUOTES = frozenset({'"""', "'''"})
_CONSTANTS: Mapping[str, Any] = MappingProxyType({"True": True, "False": False, "None": None})
_ENVIRONMENT_READS = frozenset({"os.environ.get", "os.getenv", "environ.get", "getenv"})


@dataclass(frozen=True)
class DictItem:
    """An entry of a dict display or ``dict(...)``; ``value`` belongs to ``scope``."""

    key: Any
    value: cst.BaseExpression
    node: cst.CSTNode
    scope: Scope


class Evaluator:
    """Evaluates expressions in their scope; ``positions`` gives the text of unknown ones."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        self._busy: set[int] = set()
        self._handlers: Mapping[type, Callable[[Any, Scope], Any]] = {
            cst.Name: self._name,
            cst.Attribute: self._attribute,
            cst.Integer: self._literal,
            cst.Float: self._literal,
            cst.Imaginary: self._literal,
            cst.SimpleString: self._literal,
            cst.ConcatenatedString: self._concatenated,
            cst.FormattedString: self._formatted,
            cst.List: self._sequence,
            cst.Tuple: self._sequence,
            cst.Set: self._sequence,
            cst.Dict: self._dict,
            cst.Call: self._call,
            cst.UnaryOperation: self._unary,
            cst.BinaryOperation: self._binary,
            cst.BooleanOperation: self._boolean,
            cst.IfExp: self._conditional,
            cst.Subscript: self._subscript,
            cst.NamedExpr: lambda node, scope: self.value(node.value, scope),
        }

    def value(self, node: cst.BaseExpression, scope: Scope) -> Any:
        """The value of an expression, or Unknown with its source text as the reason."""
        handler = self._handlers.get(type(node))
        if handler is None or len(self._busy) > MAX_DEPTH or id(node) in self._busy:
            return self._unknown(node)
        self._busy.add(id(node))
        try:
            return handler(node, scope)
        except (ArithmeticError, TypeError, ValueError, LookupError, SyntaxError):
            return self._unknown(node)
        finally:
            self._busy.discard(id(node))

    def truth(self, node: cst.BaseExpression, scope: Scope) -> Optional[bool]:
        """Whether an expression is true, or None when that is not known."""
        value = self.value(node, scope)
        return bool(value) if known(value) else None

    def entries(self, node: cst.BaseExpression, scope: Scope) -> Optional[list[DictItem]]:
        """Entries of a dict display, ``dict(...)`` or a name of one; None when not all known."""
        if len(self._busy) > MAX_DEPTH or id(node) in self._busy:
            return None
        self._busy.add(id(node))
        try:
            if isinstance(node, cst.Dict):
                return self._display_entries(node, scope)
            if isinstance(node, cst.Call) and dotted_name(node.func) == "dict":
                return self._call_entries(node, scope)
            written = dotted_name(node)
            if written:
                owner, bindings = scope.lookup(written)
                only = bindings[0] if len(bindings) == 1 else None
                if only is None or only.value is None or only.keyed is not None:
                    return None
                if owner is not None and written in owner.changed:
                    return None
                found = self.entries(only.value, only.scope)
                if owner is None or found is None or written not in owner.added:
                    return found
                return self._with_added(found, owner.added[written], node, scope)
            return None
        finally:
            self._busy.discard(id(node))

    def _with_added(
        self, found: list[DictItem], added: list[Binding], use: cst.CSTNode, scope: Scope
    ) -> Optional[list[DictItem]]:
        """``found`` with the entries that are set between there and the dict's use."""
        entries = {item.key: item for item in found}
        start, _ = self._positions.span(use)
        for one in added:
            if one.scope is not scope:
                return None  # which comes first is not known
            held = [self._holds(test, scope) for test in one.tests]
            if self._positions.span(one.node)[0] >= start or False in held:
                continue
            assert isinstance(one.node, cst.Subscript)
            key = self._index(one.node, scope)
            if None in held or one.value is None or not isinstance(key, str):
                return None
            entries[key] = DictItem(key, one.value, one.node, scope)
        return list(entries.values())

    def _index(self, node: cst.Subscript, scope: Scope) -> Any:
        index = node.slice[0].slice if len(node.slice) == 1 else None
        if not isinstance(index, cst.Index) or index.star:
            return self._unknown(node)
        return self.value(index.value, scope)

    def entries_of_two_names(
        self, node: cst.BaseExpression, scope: Scope
    ) -> Optional[list[DictItem]]:
        """The entry of ``{name: value}`` whose name is one of a few: under the last of them, the
        older one (``"dtype" if new else "torch_dtype"``)."""
        if not isinstance(node, cst.Dict) or len(node.elements) != 1:
            return None
        element = node.elements[0]
        if not isinstance(element, cst.DictElement):
            return None
        names: list[Any] = list(getattr(self.value(element.key, scope), "candidates", ()))
        if len(names) < len("ab") or not all(isinstance(name, str) for name in names):
            return None
        return [DictItem(names[-1], element.value, element, scope)]

    def _display_entries(self, node: cst.Dict, scope: Scope) -> Optional[list[DictItem]]:
        found: dict[Any, DictItem] = {}
        for element in node.elements:
            if isinstance(element, cst.StarredDictElement):
                inner = self.entries(element.value, scope)
                if inner is None:
                    return None
                found.update((item.key, item) for item in inner)
                continue
            if not isinstance(element, cst.DictElement):
                return None
            key = self.value(element.key, scope)
            if not isinstance(key, (str, int, float, bool, type(None))):
                return None
            found[key] = DictItem(key, element.value, element, scope)
        return list(found.values())

    def _call_entries(self, node: cst.Call, scope: Scope) -> Optional[list[DictItem]]:
        found: dict[Any, DictItem] = {}
        for argument in node.args:
            if argument.keyword is not None:
                key = argument.keyword.value
                found[key] = DictItem(key, argument.value, argument, scope)
                continue
            inner = None if argument.star == "*" else self.entries(argument.value, scope)
            if inner is None:
                return None
            found.update((item.key, item) for item in inner)
        return list(found.values())

    def _unknown(self, node: cst.CSTNode, candidates: tuple[Any, ...] = ()) -> Unknown:
        text = " ".join(self._positions.text(node).split())
        if len(text) > MAX_TEXT:
            text = f"{text[: MAX_TEXT - 1]}…"
        return Unknown(text, candidates)

    def _literal(self, node: Any, scope: Scope) -> Any:
        text: str = node.value
        # The common cases are read directly: evaluated_value compiles the literal.
        if text.isdecimal() and text.isascii() and (text[0] != "0" or text == "0"):
            return int(text) if len(text) < MAX_DIGITS else self._unknown(node)
        if text[0] in "\"'" and text[:3] not in _TRIPLE_QUOTES and "\\" not in text:
            return text[1:-1]
        return node.evaluated_value

    def _concatenated(self, node: cst.ConcatenatedString, scope: Scope) -> Any:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        return left + right if known(left) and known(right) else self._unknown(node)

    def _formatted(self, node: cst.FormattedString, scope: Scope) -> Any:
        parts: list[str] = []
        for part in node.parts:
            if isinstance(part, cst.FormattedStringText):
                # Escapes are rare here; a raw backslash would need its own evaluation.
                if "\\" in part.value:
                    return self._unknown(node)
                parts.append(part.value.replace("{{", "{").replace("}}", "}"))
                continue
            if not isinstance(part, cst.FormattedStringExpression):
                return self._unknown(node)
            value = self.value(part.expression, scope)
            plain = part.format_spec is None and part.conversion is None and part.equal is None
            if not plain or not isinstance(value, (str, int, float)):
                return self._unknown(node)
            parts.append(str(value))
        return "".join(parts)

    def _sequence(self, node: Any, scope: Scope) -> Any:
        if len(node.elements) > MAX_ITEMS:
            return self._unknown(node)
        items: list[Any] = []
        for element in node.elements:
            if not isinstance(element, cst.Element):
                return self._unknown(node)
            items.append(self.value(element.value, scope))
        if isinstance(node, cst.Tuple):
            return tuple(items)
        if isinstance(node, cst.Set):
            return set(items) if all(map(known, items)) else self._unknown(node)
        return items

    def _dict(self, node: cst.Dict, scope: Scope) -> Any:
        if len(node.elements) > MAX_ITEMS:
            return self._unknown(node)
        entries = self._display_entries(node, scope)
        return self._plain(node, entries)

    def _plain(self, node: cst.CSTNode, entries: Optional[list[DictItem]]) -> Any:
        if entries is None:
            return self._unknown(node)
        return {item.key: self.value(item.value, item.scope) for item in entries}

    def _call(self, node: cst.Call, scope: Scope) -> Any:
        written = dotted_name(node.func)
        if written == "dict" and scope.lookup("dict") == (None, []):
            return self._plain(node, self._call_entries(node, scope))
        name = resolve(written, scope) if written else ""
        if name in _ENVIRONMENT_READS:
            return self._environment(node, scope)
        if any(argument.star or argument.keyword for argument in node.args):
            return self._unknown(node)
        if name in _CONVERSIONS and len(node.args) == 1 and scope.lookup(name) == (None, []):
            return self._converted(node, _CONVERSIONS[name], scope)
        return self._unknown(node)

    def _converted(self, node: cst.Call, convert: Callable[[Any], Any], scope: Scope) -> Any:
        value = self.value(node.args[0].value, scope)
        if isinstance(value, Unknown):
            return Unknown(value.reason, _merge([_tried(convert, v) for v in value.candidates]))
        return convert(value)

    def _environment(self, node: cst.Call, scope: Scope) -> Any:
        values = [self.value(argument.value, scope) for argument in node.args]
        if not values or not isinstance(values[0], str):
            return self._unknown(node)
        candidates = tuple(value for value in values[1:2] if known(value))
        return Unknown(f"environment variable {values[0]}", candidates)

    def _unary(self, node: cst.UnaryOperation, scope: Scope) -> Any:
        value = self.value(node.expression, scope)
        if not known(value):
            return self._unknown(node)
        if isinstance(node.operator, cst.Not):
            return not value
        if isinstance(node.operator, cst.Minus):
            return -value
        return ~value if isinstance(node.operator, cst.BitInvert) else +value

    def _binary(self, node: cst.BinaryOperation, scope: Scope) -> Any:
        compute = _BINARY.get(type(node.operator))
        if compute is None:
            return self._unknown(node)
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if not known(left) or not known(right) or not _is_small(node.operator, left, right):
            return self._unknown(node)
        return compute(left, right)

    def _boolean(self, node: cst.BooleanOperation, scope: Scope) -> Any:
        left = self.value(node.left, scope)
        is_or = isinstance(node.operator, cst.Or)
        if known(left):
            return left if bool(left) == is_or else self.value(node.right, scope)
        right = self.value(node.right, scope)
        return self._unknown(node, _merge([left, right]))

    def _conditional(self, node: cst.IfExp, scope: Scope) -> Any:
        truth = self.truth(node.test, scope)
        if truth is not None:
            return self.value(node.body if truth else node.orelse, scope)
        branches = [self.value(node.body, scope), self.value(node.orelse, scope)]
        return self._unknown(node, _merge(branches))

    def _subscript(self, node: cst.Subscript, scope: Scope) -> Any:
        key = self._index(node, scope)
        if resolve(dotted_name(node.value), scope) == "os.environ" and isinstance(key, str):
            return Unknown(f"environment variable {key}")
        container = self.value(node.value, scope)
        if isinstance(key, str) and not known(container):
            held = [e for e in self.entries(node.value, scope) or () if e.key == key]
            if held:
                return self.value(held[0].value, held[0].scope)
        if not known(key) or not isinstance(container, (dict, list, tuple)):
            return self._unknown(node)
        return container[key]

    def _name(self, node: cst.Name, scope: Scope) -> Any:
        if node.value in _CONSTANTS:
            return _CONSTANTS[node.value]
        return self._named(node, node.value, scope)

    def _attribute(self, node: cst.Attribute, scope: Scope) -> Any:
        written = dotted_name(node)
        return self._named(node, written, scope) if written else self._unknown(node)

    def _named(self, node: cst.BaseExpression, written: str, scope: Scope) -> Any:
        owner, bindings = scope.lookup(written)
        if not bindings:
            dotted = resolve(written, scope)
            if dotted != written or scope.imported(written.partition(".")[0]):
                return dotted if is_field_name(dotted) else Unknown(dotted)
            return Unknown(written)
        if owner is not None and owner is scope and len(bindings) > 1:
            reaching = self._reaching(node, bindings)
            if len(reaching) < len(bindings) and not owner.changes(written):
                return self._bound(written, reaching)
        return self.bound(written, owner) if owner is not None else self._bound(written, bindings)

    def _reaching(self, use: cst.CSTNode, bindings: list[Binding]) -> list[Binding]:
        """The bindings of a name that its use in the same scope may see, from the text's order.

        All of them where a loop or another scope may bind it between.
        """
        if any(binding.in_loop or binding.scope is not bindings[0].scope for binding in bindings):
            return bindings
        start, _ = self._positions.span(use)
        found: list[Binding] = []
        for binding in bindings:
            if self._positions.span(binding.node)[0] >= start:
                continue
            held = [self._holds(test, binding.scope) for test in binding.tests]
            if False in held:
                continue
            if binding.value is not None and None not in held and not binding.perhaps:
                found.clear()
            found.append(binding)
        return found or bindings

    def _holds(self, test: Test, scope: Scope) -> Optional[bool]:
        """Whether a branch is taken, as far as its test is known."""
        node, wanted = test
        value = None if node is None else self.truth(node, scope)
        return None if value is None else value is wanted

    def _bound(self, written: str, bindings: list[Binding]) -> Any:
        if len(bindings) == 1:
            value = self.bound_value(bindings[0])
            return Unknown(written) if value is None and bindings[0].value is None else value
        values = [self.bound_value(binding) for binding in bindings[: MAX_CANDIDATES + 1]]
        opaque = any(binding.value is None for binding in bindings)
        if not opaque and len(bindings) <= MAX_CANDIDATES and _all_equal(values):
            return values[0]
        computed = [v for v, b in zip(values, bindings) if b.value is not None]
        return Unknown(written, _merge(computed))

    def bound(self, name: str, scope: Scope) -> Any:
        """Value of a name of ``scope`` over all its bindings."""
        value = self._bound(name, scope.bindings[name])
        return Unknown(name, (value,)) if scope.changes(name) and known(value) else value

    def bound_value(self, binding: Binding) -> Any:
        """Value of one binding (None also when there is nothing to evaluate)."""
        if binding.value is None:
            return None
        value = self.value(binding.value, binding.scope)
        if binding.keyed is None:
            return value
        if isinstance(value, (tuple, list)) and binding.keyed < len(value):
            return value[binding.keyed]
        return self._unknown(binding.node)


def _tried(convert: Callable[[Any], Any], value: Any) -> Any:
    """The converted candidate, or an Unknown without candidates when it cannot be."""
    try:
        return convert(value)
    except (TypeError, ValueError, OverflowError):
        return Unknown(str(value))


def _merge(values: list[Any]) -> tuple[Any, ...]:
    """Candidates of several branches, each once, in order."""
    found: list[Any] = []
    for value in values:
        for candidate in value.candidates if isinstance(value, Unknown) else (value,):
            if not any(type(candidate) is type(seen) and candidate == seen for seen in found):
                found.append(candidate)
    return tuple(found[:MAX_CANDIDATES])


def _all_equal(values: list[Any]) -> bool:
    first = values[0]
    return known(first) and all(type(v) is type(first) and v == first for v in values[1:])


def _is_small(operation: cst.BaseBinaryOp, left: Any, right: Any) -> bool:
    """Whether an operation on these values stays within bounds of size."""
    if isinstance(operation, cst.Power):
        return all(isinstance(v, (int, float)) and abs(v) <= 4096 for v in (left, right)) and (
            not isinstance(right, int) or abs(right) <= 64
        )
    if isinstance(operation, cst.Modulo) and isinstance(left, (str, bytes)):
        return False
    if isinstance(operation, cst.Multiply):
        for value, times in ((left, right), (right, left)):
            if isinstance(value, (str, bytes, list, tuple)):
                return isinstance(times, int) and len(value) * abs(times) <= MAX_SIZE
    if isinstance(left, int) and isinstance(right, int):
        return abs(left) < 1 << 256 and abs(right) < 1 << 256
    return True
