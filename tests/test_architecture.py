"""Imports run one way: facts, sources, project, runs' model, frameworks, runs, checks, the rest."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINTER = ROOT / "flake8_gpu_training"

# A module may import from its own layer and from those above it in this list.
LAYERS = [
    ["language", "facts", "collector", "garbage", "__init__"],
    ["sources"],
    ["containers", "project", "_gpus", "hardware"],
    ["runs.model", "runs.__init__"],
    ["models", "_shapes", "_sizes"],
    ["frameworks"],
    ["runs"],
    ["weights", "memory", "serving_memory"],
    ["stages"],
    ["checks"],
    ["verdicts"],
    ["options", "patches", "pages", "noqa", "selection"],
    ["sarif", "baseline", "output", "lint"],
    ["plugin", "cli", "__main__"],
]


def layer(module: str) -> int:
    for index, names in enumerate(LAYERS):
        if any(module == name for name in names):
            return index
    top = module.split(".")[0]
    return next(i for i, names in enumerate(LAYERS) if top in names)


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
        elif isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names)
    return found


def inner(name: str) -> str:
    return name.removeprefix("flake8_gpu_training").removeprefix(".") or "__init__"


def test_imports_run_one_way():
    wrong = []
    for path in sorted(LINTER.rglob("*.py")):
        module = ".".join(path.relative_to(LINTER).with_suffix("").parts)
        ours = [name for name in imports(path) if name.split(".")[0] == "flake8_gpu_training"]
        above = [name for name in ours if layer(inner(name)) > layer(module)]
        wrong.extend(f"{module} imports {name}" for name in above)
    assert wrong == []


def test_the_linter_does_not_know_the_reports():
    for path in LINTER.rglob("*.py"):
        assert not any(name.split(".")[0] == "report_builder" for name in imports(path)), path


def test_reports_use_public_names_of_the_linter():
    for path in (ROOT / "report_builder").rglob("*.py"):
        for name in imports(path):
            if name.startswith("flake8_gpu_training"):
                assert not any(part.startswith("_") for part in name.split(".")), (path, name)
