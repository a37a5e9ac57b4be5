"""Resolves OmegaConf's ``${a.b}``, ``${.sibling}``, ``${oc.env:X,4}`` and ``${oc.decode:…}``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Callable

from flake8_gpu_training.facts import Unknown
from flake8_gpu_training.runs.settings import typed

MAX_DEPTH = 12
"""References that lead to references."""
MAX_TEXT = 10_000
_INNERMOST = re.compile(r"\$\{([^${}]*)\}")
_REFERENCE = re.compile(r"\.*[A-Za-z_][\w-]*(?:\.[\w-]+|\[[\w-]+\])*")
_FLOAT = re.compile(r"[+-]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)[eE][+-]?\d+")

Path = Sequence[str]
Lookup = Callable[[tuple[str, ...]], Any]
"""The value at a path from the root, references resolved; Unknown when there is none."""
Environ = Callable[[str], Any]
"""The value of an environment variable; None when nobody sets it."""


def is_reference(value: Any) -> bool:
    """Whether a value is a text with references to resolve."""
    return isinstance(value, str) and "${" in value


def resolved(text: str, at: Path, lookup: Lookup, environ: Environ) -> Any:
    """``text``, which stands at the path ``at``, with its references resolved."""
    value: Any = text
    for _ in range(MAX_DEPTH):
        match = _INNERMOST.search(value)
        if match is None:
            return value
        found = _one(match.group(1), at, lookup, environ)
        if isinstance(found, Unknown):
            return Unknown(text, found.candidates if match.group() == text else ())
        if match.group() == value:
            if not is_reference(found):
                return found
            value = found
            continue
        value = f"{value[: match.start()]}{found}{value[match.end() :]}"
        if len(value) > MAX_TEXT:
            break
    return Unknown(text)


def _one(inner: str, at: Path, lookup: Lookup, environ: Environ) -> Any:
    """What one ``${inner}`` stands for."""
    resolver, colon, rest = inner.partition(":")
    if colon:
        return _called(resolver.strip(), rest, environ)
    inner = inner.strip()
    if not _REFERENCE.fullmatch(inner):
        return Unknown(inner)
    name = inner.lstrip(".")
    dots = len(inner) - len(name)
    if dots > len(at):
        return Unknown(inner)
    base = tuple(at[: len(at) - dots]) if dots else ()
    return lookup((*base, *re.findall(r"[\w-]+", name)))


def _called(resolver: str, rest: str, environ: Environ) -> Any:
    """``oc.env:NAME,default`` and ``oc.decode:text``; other resolvers are the program's own."""
    if resolver in ("oc.env", "env"):
        name, comma, default = rest.partition(",")
        value = environ(name.strip())
        if value is None and comma:
            value = default.strip().strip("'\"")
        if value is None:
            return Unknown(f"the environment variable {name}")
        # The resolver of before OmegaConf 2.1 guessed the type.
        return typed(value) if resolver == "env" and isinstance(value, str) else value
    if resolver == "oc.decode":
        return typed(rest.strip().strip("'\""))
    return Unknown(f"{resolver}:{rest}")


def yaml_1_2(value: Any) -> Any:
    """A scalar as OmegaConf's loader has it: ``1e-4`` is a number, other than in PyYAML."""
    if isinstance(value, str) and _FLOAT.fullmatch(value):
        return float(value.replace("_", ""))
    return value
