"""Lightning's command lines: ``LightningCLI`` with its files and flags, and ``fabric run``.

Both make calls that no source spells out; they are added to the program as if it did, with
each argument at the place where its user wrote it.
"""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Callable, Optional

from flake8_gpu_training.facts import (
    Argument,
    Call,
    Document,
    Location,
    Node,
    PythonFile,
    Setting,
    known,
)
from flake8_gpu_training.runs.launchers import Launch
from flake8_gpu_training.runs.python_entry import Program
from flake8_gpu_training.runs.settings import parse_arguments
from flake8_gpu_training.sources.signatures import Passed, Signatures

Sign = Callable[[str], Signatures]
FindDocument = Callable[[str], Optional[Document]]

_ROOTS = ("lightning", "pytorch_lightning", "lightning_fabric")
_SUBCOMMANDS = ("fit", "validate", "test", "predict")
# What ``fabric run`` hands to Fabric by variables (lightning 2.6, fabric/cli.py).
_FABRIC_FLAGS = ("accelerator", "strategy", "devices", "num_nodes", "precision")


@dataclass(frozen=True)
class Wiring:
    """A program with the calls that a command line makes.

    ``passed``: calls of the user's classes, by the file that makes them; ``documents``: the
    configuration files that were read; ``trains``: the subcommand fits a model.
    """

    program: Program
    passed: Mapping[str, tuple[Passed, ...]] = dataclasses.field(default_factory=dict)
    documents: tuple[Document, ...] = ()
    trains: bool = True

    def sign(self, sign: Sign) -> Sign:
        """Signatures with the calls that were added."""
        added: dict[str, Signatures] = {}

        def signed(path: str) -> Signatures:
            found = sign(path)
            more = self.passed.get(path)
            if more and path not in added:
                added[path] = dataclasses.replace(found, calls=(*found.calls, *more))
            return added.get(path, found)

        return signed


def wired(program: Program, launch: Optional[Launch], find: FindDocument) -> Optional[Wiring]:
    """``program`` as Lightning's command line wires it; None when it has none."""
    if launch is None:
        return None
    if posixpath.basename(launch.command.name) in ("fabric", "lightning"):
        return _with_fabric(program, launch)
    for file in program.files:
        for call in file.calls:
            if call.method == "LightningCLI" and call.name.partition(".")[0] in _ROOTS:
                return _with_cli(program, file, call, launch, find)
    return None


# --- fabric run ----------------------------------------------------------------------------


def _with_fabric(program: Program, launch: Launch) -> Wiring:
    given = {
        name: _argument(launch.options[name]) for name in _FABRIC_FLAGS if name in launch.options
    }
    files = tuple(
        dataclasses.replace(file, calls=tuple(_told(call, given) for call in file.calls))
        for file in program.files
    )
    return Wiring(dataclasses.replace(program, files=files))


def _told(call: Call, given: Mapping[str, Argument]) -> Call:
    """``Fabric(…)`` with what it does not say itself."""
    if call.method != "Fabric" or call.name.partition(".")[0] not in _ROOTS:
        return call
    return dataclasses.replace(call, keywords={**given, **call.keywords})


def _argument(setting: Setting) -> Argument:
    place = setting.location or Location("")
    return Argument(setting.value, place, setting.text or str(setting.value), place)


# --- LightningCLI --------------------------------------------------------------------------


def _with_cli(
    program: Program, file: PythonFile, call: Call, launch: Launch, find: FindDocument
) -> Optional[Wiring]:
    given = parse_arguments(launch.arguments, single=True)
    subcommand = next((word.text for word in given.positional if word.text in _SUBCOMMANDS), "")
    named = [s for s in (*given.overridden, *given.settings.values()) if s.name in ("config", "c")]
    names = [*_default_files(call), *(setting.value for setting in named)]
    documents = [find(name) if isinstance(name, str) else None for name in names]
    if given.is_open or any(document is None for document in documents):
        return None
    found = [document for document in documents if document is not None]
    layers = [_section(document, subcommand) for document in found]
    trainer = _defaults(call)
    classes = [_Class(call, 0, "model_class"), _Class(call, 1, "datamodule_class")]
    for layer in layers:
        trainer.update(_leaves(layer, "trainer"))
        for made, name in zip(classes, ("model", "data")):
            made.take(_leaves(layer, name))
    for setting in given.settings.values():
        group, dot, name = setting.name.partition(".")
        if group == "trainer" and dot:
            trainer[name] = _argument(setting)
        for made, own in zip(classes, ("model", "data")):
            if group == own:
                made.take({name or "class_path": _argument(setting)})
    new = Call("lightning.Trainer", call.location, keywords=trainer, scope=call.scope)
    calls = tuple(new if each is call else each for each in file.calls)
    files = tuple(
        dataclasses.replace(each, calls=calls) if each is file else each for each in program.files
    )
    passed = {file.path: tuple(made.passed() for made in classes if made.name)}
    trains = subcommand in ("", "fit")
    return Wiring(dataclasses.replace(program, files=files), passed, tuple(found), trains)


class _Class:
    """A class that the command line makes an object of, and the arguments it gives."""

    def __init__(self, call: Call, index: int, keyword: str) -> None:
        argument = call.keywords.get(keyword)
        if argument is None and index < len(call.positional):
            argument = call.positional[index]
        text = argument.text if argument is not None else ""
        self.name = "" if text == "None" else text.rpartition(".")[2]
        self.arguments: dict[str, Any] = {}

    def take(self, given: Mapping[str, Argument]) -> None:
        """Arguments by name; ``class_path`` names the class, ``init_args`` hold the others."""
        for name, argument in given.items():
            if name == "class_path":
                self.name = str(argument.value).rpartition(".")[2] if known(argument.value) else ""
                continue
            own = name[len("init_args.") :] if name.startswith("init_args.") else name
            self.arguments[own] = argument.value

    def passed(self) -> Passed:
        """The call that makes the object."""
        return Passed(self.name, "", (), dict(self.arguments))


def _default_files(call: Call) -> Iterator[Any]:
    """``parser_kwargs={"default_config_files": […]}``, for all subcommands or for fit."""
    argument = call.keywords.get("parser_kwargs")
    held = argument.value if argument is not None else None
    if isinstance(held, Mapping):
        inner = held.get("fit")
        for part in (held, inner if isinstance(inner, Mapping) else {}):
            files = part.get("default_config_files")
            yield from files if isinstance(files, (list, tuple)) else ()


def _defaults(call: Call) -> dict[str, Argument]:
    """``trainer_defaults={…}`` of the command line."""
    argument = call.keywords.get("trainer_defaults")
    held = argument.value if argument is not None else None
    if argument is None or not isinstance(held, Mapping):
        return {}
    place = argument.value_location or argument.location
    return {str(name): Argument(value, place, str(value), place) for name, value in held.items()}


def _section(document: Document, subcommand: str) -> Node:
    """The part of a file that is for the subcommand: all of it, or what its name holds."""
    entry = document.root.mapping.get(subcommand)
    return entry.node if entry is not None and entry.node.kind == "mapping" else document.root


def _leaves(root: Node, group: str) -> dict[str, Argument]:
    """Arguments of a group; those of ``init_args`` by dotted names."""
    entry = root.mapping.get(group)
    found: dict[str, Argument] = {}
    for name, inner in entry.node.mapping.items() if entry is not None else ():
        if name == "init_args":
            for own, each in inner.node.mapping.items():
                found[f"init_args.{own}"] = _held(each.node, each.location)
        else:
            found[name] = _held(inner.node, inner.location)
    return found


def _held(node: Node, place: Location) -> Argument:
    value = node.plain()
    return Argument(value, place, node.text or str(value), node.content or node.location)
