"""What a project asks for of the packages that it does not pin, and what it holds itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from flake8_gpu_training.facts import Command, Requirement
from flake8_gpu_training.project import Project

# A file that only the source of the distribution has.
_SOURCES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "transformers": ("transformers/training_args.py",),
        "trl": ("trl/trainer/utils.py",),
        "peft": ("peft/peft_model.py",),
        "accelerate": ("accelerate/accelerator.py",),
        "ms-swift": ("swift/cli/main.py",),
        "llamafactory": ("llamafactory/hparams/parser.py", "llmtuner/hparams/parser.py"),
        "vllm": ("vllm/engine/arg_utils.py",),
        "sglang": ("sglang/srt/server_args.py",),
        "deepspeed": ("deepspeed/runtime/config.py",),
        "flow-factory": ("flow_factory/hparams/args.py",),
        "videox-fun": ("videox_fun/models/__init__.py",),
    }
)


@dataclass(frozen=True)
class Asked:
    """``limits``: specifiers by distribution, one for each file that asks for it.
    ``unreleased``: those whose source lies in the project or is installed from a repository."""

    limits: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    unreleased: frozenset[str] = frozenset()


def asked_by(project: Project, commands: Iterable[Command] = ()) -> Asked:
    """What requirements and install commands of ``project`` ask for."""
    from flake8_gpu_training.sources.requirements import requirements_from_command

    items = [
        item
        for file in project.requirements()
        if not project.is_auxiliary(file.path)
        for item in file.requirements
    ]
    items += [item for command in commands for item in requirements_from_command(command)]
    return _asked(items, _held(project.files))


def asked_around(folder: Path, items: Iterable[Requirement]) -> Asked:
    """The same for a file of ``folder``, whose project has the requirements ``items``."""
    held = {
        name
        for name, marks in _SOURCES.items()
        for mark in marks
        if (folder / mark).is_file() or (folder / "src" / mark).is_file()
    }
    return _asked(items, held)


def _held(paths: Iterable[str]) -> set[str]:
    names = {mark: name for name, marks in _SOURCES.items() for mark in marks}
    found: set[str] = set()
    for path in paths:
        parts = path.rsplit("/", 4)
        for start in range(len(parts)):
            name = names.get("/".join(parts[start:]))
            if name is not None:
                found.add(name)
    return found


def _asked(items: Iterable[Requirement], held: set[str]) -> Asked:
    wanted: dict[str, dict[str, set[str]]] = {}
    unreleased = set(held)
    for item in items:
        if item.by_address:
            unreleased.add(item.name)
        else:
            files = wanted.setdefault(item.name, {})
            files.setdefault(item.location.path, set()).add(_specifier(item))
    limits = {name: _limits(files.values()) for name, files in wanted.items()}
    return Asked(MappingProxyType(limits), frozenset(unreleased))


def _limits(files: Iterable[set[str]]) -> tuple[str, ...]:
    """A specifier a file; ("",) where all files take any version."""
    found = {",".join(sorted(these - {""})) for these in files}
    return tuple(sorted(found - {""})) or ("",)


def _specifier(item: Requirement) -> str:
    """What is asked for; of a pin its minor version, of which one release stands for all."""
    minor = re.match(r"\d+\.\d+", item.version)
    return f"=={minor.group()}.*" if minor is not None else item.specifier
