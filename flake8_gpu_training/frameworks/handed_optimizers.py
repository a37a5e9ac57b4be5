"""The optimizer that a program builds itself and hands to a Trainer: ``optimizers=(o, s)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Optional

from flake8_gpu_training.facts import Call, Origin, PythonFile, Setting, Unknown
from flake8_gpu_training.frameworks.pytorch_loops import is_optimizer, optimizer_name
from flake8_gpu_training.runs.model import Run

HANDED = "the program hands an optimizer to the Trainer"
# What OptimizerNames (transformers 5.24.0 training_args.py) calls these classes, and where the
# same class is of several libraries, by its library.
_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "bitsandbytes.adamw8bit": "adamw_bnb_8bit",
        "torchao.adamw8bit": "adamw_torch_8bit",
        "torchao.adamw4bit": "adamw_torch_4bit",
        "pagedadamw": "paged_adamw_32bit",
        "pagedadamw32bit": "paged_adamw_32bit",
        "pagedadamw8bit": "paged_adamw_8bit",
        "adamw_fused": "adamw_torch_fused",
        "fusedadam": "adamw_apex_fused",
        "galoreadamw": "galore_adamw",
        "galoreadamw8bit": "galore_adamw_8bit",
        "apolloadamw": "apollo_adamw",
        "adamwschedulefree": "schedule_free_adamw",
    }
)


def hands_schedule(call: Call) -> bool:
    """Whether a call is given a schedule beside the optimizer, as far as can be seen."""
    if "optimizers" not in call.keywords:
        return False
    given = _elements(call)
    return given is None or not _is_none(given[1])


def handed_optimizer(run: Run) -> Optional[Setting]:
    """The optimizer that the Trainers of the program are given, or None."""
    for file in run.python:
        for call in file.calls:
            if call.method.endswith("Trainer") and "optimizers" in call.keywords:
                made = _of_trainer(run, file, call)
                if made is not None:
                    return made
    return None


def _of_trainer(run: Run, file: PythonFile, trainer: Call) -> Optional[Setting]:
    argument = trainer.keywords["optimizers"]
    given = _elements(trainer)
    if argument.text == "None" or (given is not None and _is_none(given[0])):
        return None  # the Trainer builds it of the arguments
    found = [] if given is None else list(_made(run, file, trainer, given[0]))
    names = {_name(call) for call in found}
    certain = {(c.text, c.holds) for c in trainer.conditions}
    is_open = any((c.text, c.holds) not in certain for call in found for c in call.conditions)
    if len(names) == 1 and not is_open:
        made = found[0]
        note = f"{made.name}(...)"
        return Setting("optimizer", names.pop(), made.location, Origin.CONSTRUCTOR, note)
    value: Any = Unknown(HANDED, tuple(sorted(names)))
    return Setting("optimizer", value, argument.location, Origin.CONSTRUCTOR, argument.text)


def _elements(trainer: Call) -> Optional[tuple[ast.expr, ast.expr]]:
    """The optimizer and the schedule of the pair as written."""
    try:
        node = ast.parse(trainer.keywords["optimizers"].text.strip(), mode="eval").body
    except SyntaxError:
        return None
    if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == 2:
        return node.elts[0], node.elts[1]
    return None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _made(run: Run, file: PythonFile, trainer: Call, node: ast.expr) -> Iterator[Call]:
    """The calls of optimizers that an expression may stand for; none where it is not followed."""
    if isinstance(node, ast.Call):
        within = [call for call in file.calls if _is_within(call, trainer) and is_optimizer(call)]
        written = ast.unparse(node.func).rpartition(".")[2]
        found = [call for call in within if call.method == written][:1]
        yield from found or _of_function(run, written)
    elif isinstance(node, ast.Name):
        scopes = (trainer.scope, "")
        bound = [
            call
            for call in file.calls
            if call.assigned_to == node.id and call.scope in scopes and call.method != "prepare"
        ]
        if all(is_optimizer(call) for call in bound):
            yield from bound or _of_functions(run, trainer)


def _is_within(call: Call, trainer: Call) -> bool:
    start, end, at = trainer.location, trainer.end, call.location
    if call is trainer or end is None:
        return False
    lines = [(place.line, place.column) for place in (start, at, end)]
    return lines == sorted(lines)


def _of_function(run: Run, name: str) -> list[Call]:
    """The optimizers that functions of this name, which the program defines, make."""
    return [call for call in _optimizers(run) if call.scope.rpartition(".")[2] == name]


def _of_functions(run: Run, trainer: Call) -> list[Call]:
    """The optimizers of the program, where all are made in functions that may return them."""
    made = _optimizers(run)
    return made if all(call.scope not in ("", trainer.scope) for call in made) else []


def _optimizers(run: Run) -> list[Call]:
    return [call for file in run.python for call in file.calls if is_optimizer(call)]


def _name(call: Call) -> str:
    name, library = optimizer_name(call), call.name.partition(".")[0]
    return _NAMES.get(f"{library}.{name}", _NAMES.get(name, name))
