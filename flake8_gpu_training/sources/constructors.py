"""What constructors of a file's classes take, of a file that is read as text."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flake8_gpu_training.facts import Location, Origin, Setting, Unknown


def defaults_of(text: str, path: str, parameter: str) -> Iterator[tuple[str, Setting]]:
    """By class with a constructor of its own, what ``parameter`` is unless given; None of one
    that has no such parameter."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for made in tree.body:
        for method in made.body if isinstance(made, ast.ClassDef) else ():
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                assert isinstance(made, ast.ClassDef)
                yield made.name, _default(method.args, path, parameter)


def _default(taken: ast.arguments, path: str, parameter: str) -> Setting:
    plain = [*taken.posonlyargs, *taken.args]
    values: dict[str, ast.expr] = {
        one.arg: value for one, value in zip(reversed(plain), reversed(taken.defaults))
    }
    values |= {one.arg: value for one, value in zip(taken.kwonlyargs, taken.kw_defaults) if value}
    found = values.get(parameter)
    if found is None:
        named = any(one.arg == parameter for one in (*plain, *taken.kwonlyargs))
        is_open = named or taken.kwarg is not None
        return Setting(parameter, Unknown("no default") if is_open else None)
    place = Location(path, found.lineno, found.col_offset + 1)
    try:
        value = ast.literal_eval(found)  # a negative number is no constant of the grammar
    except (ValueError, TypeError, RecursionError, MemoryError):
        value = Unknown("computed")
    return Setting(parameter, value, place, Origin.DEFAULT)
