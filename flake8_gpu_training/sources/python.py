"""Reads Python: imports, calls with resolved names and values, loops, options, classes."""

from __future__ import annotations

import ast
import codecs
import gc
import io
import re
import sys
import tokenize
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Optional, Union

from flake8_gpu_training.facts import Import, Location, Problem, ProblemKind, PythonFile
from flake8_gpu_training.sources._python_interest import (
    ASKS_WHAT_IS_INSTALLED,
    BYTE_TRACES,
    HAS_KERNEL,
    chooses_weights,
    exchanges_attention,
    mentions_in,
    shows_samples,
)
from flake8_gpu_training.sources._python_optimizers import (
    BY,
    CHOOSES,
    CHOSEN,
    GIVES,
    WITHOUT_GRADIENT,
    optimized_in,
)
from flake8_gpu_training.sources._python_reads import unread_in
from flake8_gpu_training.sources._python_updates import APART, CUT, TOLD, unsaid, updates_in
from flake8_gpu_training.sources._python_waiting import WAITS

__all__ = [
    "APART",
    "ASKS_WHAT_IS_INSTALLED",
    "BY",
    "CHOOSES",
    "CHOSEN",
    "CUT",
    "GIVES",
    "HAS_KERNEL",
    "TOLD",
    "WAITS",
    "WITHOUT_GRADIENT",
    "chooses_weights",
    "exchanges_attention",
    "is_relevant",
    "read_imports",
    "read_python",
    "shows_samples",
]

MAX_BYTES = 2_000_000
MAX_BRACKETS = 150
MAX_CHAIN = 1_000
"""Operators between two commas or statements; longer chains overflow parsers' stacks."""
MAX_ELIFS = 1_000
MAX_THINNED = 500_000
"""Characters left after thinning; LibCST needs four seconds a million."""

_NEWLINES = re.compile(r"\r\n?")
_ATOMS = re.compile(
    r"#[^\n]*|(?:'''|\"\"\")(?:[^\\]|\\.)*?(?:'''|\"\"\")|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\""
    r"|[][(){},;\n]|elif\b|not\b|and\b|or\b|lambda\b|await\b|if\b|[-+*/%@&|^~.<>=!]+",
    re.DOTALL,
)
_OPERATORS = frozenset("-+*/%@&|^~.<>=!")
_AST_IS_SAFE = sys.version_info >= (3, 11)
"""Earlier interpreters crash on trees that are deeper than their stack."""
_HAS_PLACES_OF_ALIASES = sys.version_info >= (3, 10)


def is_relevant(data: bytes) -> bool:
    """Whether a source has any trace of GPU training or serving."""
    return BYTE_TRACES.search(data) is not None


def read_python(text: Union[str, bytes], path: str, tree: Optional[ast.AST] = None) -> PythonFile:
    """Facts of a Python source; never raises.

    ``tree`` is the ``ast`` of the same text when the caller has it already.
    """
    problems: list[Problem] = []
    try:
        with _undisturbed():
            return _read(text, path, tree, problems)
    except (RecursionError, MemoryError):
        problems.append(_problem(ProblemKind.TOO_DEEP, "nested too deeply to be read", path))
    return PythonFile(path, problems=tuple(problems))


def read_imports(data: bytes, path: str) -> tuple[Import, ...]:
    """The imports of a Python source; costs a fraction of :func:`read_python`."""
    text = _normal(_decode(data, path, []))
    try:
        with _undisturbed():
            tree = _parse(text) if _HAS_PLACES_OF_ALIASES and "\0" not in text else None
            if tree is not None:
                from flake8_gpu_training.sources._python_imports import imports_of

                return imports_of(tree, text.split("\n"), path)
    except (RecursionError, MemoryError):
        return ()
    return read_python(data, path).imports


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No garbage collection: syntax trees are many objects, and none of them is in a cycle.

    Nor any warning of the compiler about the project's code (odd escapes in its strings).
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if enabled:
            gc.enable()


def _read(
    data: Union[str, bytes], path: str, tree: Optional[ast.AST], problems: list[Problem]
) -> PythonFile:
    if len(data) > MAX_BYTES:
        message = f"larger than {MAX_BYTES // 1_000_000} MB, not read"
        problems.append(_problem(ProblemKind.TOO_LARGE, message, path))
        return PythonFile(path, problems=tuple(problems))
    text = _decode(data, path, problems) if isinstance(data, bytes) else data
    text = _normal(text)
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        problems.append(_problem(ProblemKind.SYNTAX, f"null byte in line {line}", path, line))
        return PythonFile(path, problems=tuple(problems))
    if isinstance(tree, ast.Module):
        return _read_text(text, path, tree, problems)
    deep = 0 if _AST_IS_SAFE else _too_deep_line(text)
    module = None
    try:
        module = None if deep else _parse(text)
    except (RecursionError, MemoryError):
        deep = _too_deep_line(text) or 1
    if deep:
        problems.append(_too_deep(deep, path))
        return PythonFile(path, problems=tuple(problems))
    return _read_text(text, path, module, problems)


def _read_text(
    text: str, path: str, tree: Optional[ast.Module], problems: list[Problem]
) -> PythonFile:
    # LibCST takes time to import: only files that get this far pay for it.
    import libcst as cst

    from flake8_gpu_training.sources._python_facts import FactBuilder
    from flake8_gpu_training.sources._python_positions import Positions
    from flake8_gpu_training.sources._python_thinning import thin, whole
    from flake8_gpu_training.sources._python_walk import collect

    line = 1
    attempts = [whole] if tree is None else [lambda text: thin(text, tree), whole]
    for attempt in attempts:
        deep = _too_deep_line(text) if attempt is whole else 0
        if deep:
            problems.append(_too_deep(deep, path))
            return PythonFile(path, problems=tuple(problems))
        thinned = attempt(text)
        if len(thinned.text) > MAX_THINNED:
            message = f"more than {MAX_THINNED} characters would have to be read"
            problems.append(_problem(ProblemKind.TOO_LARGE, message, path))
            return PythonFile(path, problems=tuple(problems))
        try:
            module = cst.parse_module(thinned.text)
        except cst.ParserSyntaxError as error:
            line = error.raw_line
            continue
        positions = Positions(module, thinned.text, path, thinned.line_numbers)
        facts = FactBuilder(collect(module), positions, path, thinned.methods).build()
        problems.extend(_too_deep(line, path) for line in thinned.too_deep)
        mentions = mentions_in(text)
        if tree is not None:
            mentions -= unsaid(tree, mentions)
        if tree is not None and "backward" in text:
            mentions |= updates_in(tree)
        if tree is not None:
            mentions |= optimized_in(tree, text)
        unread: frozenset[str] = frozenset()
        if tree is not None and facts.options:
            unread = unread_in(tree, [option.name for option in facts.options])
        return replace(facts, mentions=mentions, unread=unread, problems=tuple(problems))
    line = _broken_line(text) or line
    message = f"invalid syntax in line {line}"
    problems.append(_problem(ProblemKind.SYNTAX, message, path, line))
    return PythonFile(path, problems=tuple(problems))


def _normal(text: str) -> str:
    return _NEWLINES.sub("\n", text.lstrip("\ufeff"))


def _broken_line(text: str) -> Optional[int]:
    """Where Python itself sees the error: LibCST may name the statement before."""
    try:
        ast.parse(text)
    except SyntaxError as error:
        return error.lineno or None
    except (ValueError, RecursionError, MemoryError):
        pass
    return None


def _parse(text: str) -> Optional[ast.Module]:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _decode(data: bytes, path: str, problems: list[Problem]) -> str:
    """Text by the coding cookie of PEP 263; what cannot be decoded is replaced."""
    encoding = "utf-8"
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        message = f"cannot be decoded: {error}"
        problems.append(_problem(ProblemKind.ENCODING, message, path))
    if data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
    return data.decode("utf-8", "replace")


def _too_deep_line(text: str) -> int:
    """Line that would overflow a parser's stack, or 0: brackets or operators without end."""
    line, depth, chain, elifs = 1, 0, 0, 0
    for match in _ATOMS.finditer(text):
        atom = match.group()
        first = atom[0]
        if first == "\n":
            line += 1
            chain = chain if depth else 0
        elif first in "([{":
            depth += 1
        elif first in ")]}":
            depth = max(0, depth - 1)
        elif first in ",;":
            chain = 0
        elif first in "#'\"":
            line += atom.count("\n")
        elif atom == "elif":
            elifs += 1
        else:
            chain += len(atom) if first in _OPERATORS else 1
        if depth > MAX_BRACKETS or chain > MAX_CHAIN or elifs > MAX_ELIFS:
            return line
    return 0


def _too_deep(line: int, path: str) -> Problem:
    message = f"line {line} is nested too deeply to be read"
    return _problem(ProblemKind.TOO_DEEP, message, path, line)


def _problem(kind: ProblemKind, message: str, path: str, line: int = 1) -> Problem:
    return Problem(kind, message, Location(path, line))
