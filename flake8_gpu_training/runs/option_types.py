"""Types of command-line options: what a text becomes, and what an annotation asks for."""

from __future__ import annotations

import ast
import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Optional

from flake8_gpu_training.facts import Unknown
from flake8_gpu_training.runs.command_line import MUST_BE_GIVEN, Convert, Declared, RefusedError

_TRUE = frozenset({"yes", "true", "t", "y", "1"})
_FALSE = frozenset({"no", "false", "f", "n", "0"})


def literal(text: str) -> Any:
    """A Python literal, its tuples as lists."""
    return _listed(ast.literal_eval(text.strip()))


def _listed(value: Any) -> Any:
    """Tuples as lists, and nothing but what facts hold."""
    if isinstance(value, (list, tuple)):
        return [_listed(item) for item in value]
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError("no plain value")


def _truth(text: str) -> int:
    """``distutils.util.strtobool``."""
    lowered = text.lower()
    if lowered in _TRUE | {"on"} or lowered in _FALSE | {"off"}:
        return int(lowered in _TRUE | {"on"})
    raise ValueError(f"invalid truth value {text!r}")


_TYPES: Mapping[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "eval": literal,
    "ast.literal_eval": literal,
    "json.loads": json.loads,
    "pathlib.Path": lambda text: str(PurePosixPath(text)),
    "distutils.util.strtobool": _truth,
    "os.path.abspath": lambda text: Unknown(text),
}
_FAILURES = (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, OverflowError)


def library_type(name: str) -> Optional[Convert]:
    """The type function that a builtin or a library's function is."""
    compute = _TYPES.get(name)
    if compute is None:
        return lambda text: Unknown(text)

    def convert(text: str) -> Any:
        try:
            return compute(text)
        except _FAILURES as error:
            if name == "eval":
                return Unknown(text)
            raise RefusedError(f"invalid {name} value: {text!r}") from error

    return convert


@dataclass(frozen=True)
class Annotation:
    """A type as an annotation says it, ``Optional`` taken off."""

    name: str
    node: Optional[ast.expr] = None
    arguments: tuple[ast.expr, ...] = ()
    is_optional: bool = False


def annotation(node: ast.expr) -> Annotation:
    """What an annotation asks for."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return Annotation("?")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([*_alternatives(node)])
    if isinstance(node, ast.Subscript):
        name = _last_name(node.value)
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name == "Optional":
            return dataclasses.replace(annotation(inner[0]), is_optional=True)
        if name == "Union":
            return _union(inner)
        return Annotation(name, node, tuple(inner))
    return Annotation(_last_name(node) or "?", node)


def _alternatives(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from _alternatives(node.left)
        yield from _alternatives(node.right)
    else:
        yield node


def _union(nodes: Sequence[ast.expr]) -> Annotation:
    """What HfArgumentParser takes for a union: the one type that is neither None nor a text."""
    kinds = [annotation(node) for node in nodes]
    is_optional = any(_is_none(node) for node in nodes)
    left = [kind for node, kind in zip(nodes, kinds) if not _is_none(node)]
    if len(left) == 1:
        return dataclasses.replace(left[0], is_optional=is_optional)
    first = next((kind for kind in left if kind.name != "str"), left[0] if left else None)
    if is_optional or first is None or len(left) > 2:
        return Annotation("?")
    return first


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def boolean_options(declared: Declared, kind: Annotation) -> Iterator[Declared]:
    """A bool field of a dataclass: ``--x``, ``--x false``, and ``--no_x`` when it is true."""
    default = declared.default
    missing = default is MUST_BE_GIVEN
    if not kind.is_optional or not (default is None or missing):
        start = False if missing else default
        yield dataclasses.replace(declared, nargs="?", const=True, default=start, convert=boolean)
    else:
        yield dataclasses.replace(declared, convert=boolean, default=None if missing else default)
    if default is True:
        name = declared.dest
        flags = (f"--no_{name}", f"--no-{name.replace('_', '-')}")
        yield Declared(flags, name, declared.location, "store_false", default=default)


def boolean(text: str) -> bool:
    """A bool as HfArgumentParser reads it."""
    lowered = text.lower()
    if lowered in _TRUE or lowered in _FALSE:
        return lowered in _TRUE
    raise RefusedError(f"truthy value expected: got {text!r}")
