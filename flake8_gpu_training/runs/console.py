"""Commands that a project's packaging installs: ``mytrain`` is ``pkg.cli:main``."""

from __future__ import annotations

import ast
import configparser
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from flake8_gpu_training.project import Project

MAX_FILES = 20
MAX_BYTES = 200_000
_NAMES = frozenset({"pyproject.toml", "setup.cfg", "setup.py"})
_ENTRY = re.compile(r"\s*([\w.-]+)\s*=\s*([\w.]+)\s*:\s*(\w+)\s*(?:\[.*\])?\s*")
_TABLES = ("project.scripts", "tool.poetry.scripts", "tool.flit.scripts")


def console_scripts(project: Project) -> Mapping[str, tuple[str, str]]:
    """Module and function by the name of the command, as the project's packaging has them."""
    found: dict[str, tuple[str, str]] = {}
    paths = [path for path in project.files if posixpath.basename(path) in _NAMES]
    for path in [path for path in paths if not project.is_auxiliary(path)][:MAX_FILES]:
        data = _bytes(project, path)
        for line in _lines(path, data):
            match = _ENTRY.fullmatch(line)
            if match is not None:
                found.setdefault(match.group(1), (match.group(2), match.group(3)))
    return MappingProxyType(found)


def _bytes(project: Project, path: str) -> bytes:
    try:
        with (project.root / path).open("rb") as file:
            return file.read(MAX_BYTES)
    except (OSError, ValueError):
        return b""


def _lines(path: str, data: bytes) -> Iterable[str]:
    """Entry points as ``name = module:function``."""
    if b"scripts" not in data:
        return ()
    if path.endswith(".toml"):
        return _of_toml(data, path)
    return _of_setup_cfg(data) if path.endswith(".cfg") else _of_setup_py(data)


def _of_toml(data: bytes, path: str) -> Iterator[str]:
    from flake8_gpu_training.sources.toml_source import read_toml

    for document in read_toml(data, path).documents:
        for table in _TABLES:
            node = document.get(table)
            for name, entry in node.mapping.items() if node is not None else ():
                yield f"{name} = {entry.node.value}"


def _of_setup_cfg(data: bytes) -> Iterable[str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(data.decode("utf-8", "replace"))
        text = parser.get("options.entry_points", "console_scripts", fallback="")
    except configparser.Error:
        return ()
    return text.splitlines()


def _of_setup_py(data: bytes) -> Iterator[str]:
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "entry_points":
            yield from _of_entry_points(node.value)


def _of_entry_points(node: ast.expr) -> Iterator[str]:
    try:
        value: Any = ast.literal_eval(node)
    except (ValueError, RecursionError, MemoryError):
        return
    scripts = value.get("console_scripts", ()) if isinstance(value, dict) else ()
    lines = scripts.splitlines() if isinstance(scripts, str) else scripts
    yield from (line for line in lines if isinstance(line, str))
