"""Runs made by hand, for tests of what framework modules read in them."""

from __future__ import annotations

from typing import Any, Optional

from flake8_gpu_training.facts import Command, Document, Location, Origin, Setting, Word
from flake8_gpu_training.frameworks.registry import framework_of
from flake8_gpu_training.runs.model import Launcher, Place, PlaceKind, Run, RunKind
from flake8_gpu_training.sources.json_source import read_json
from flake8_gpu_training.sources.python import read_python
from flake8_gpu_training.sources.yaml_source import read_yaml

PLACE = Location("train.sh", 3, 1)


def command_of(text: str) -> Command:
    """``text`` as a command of literal words."""
    return Command(tuple(Word(word, PLACE, word) for word in text.split()), PLACE)


def launched(processes: Optional[int], name: str = "torchrun", **options: Any) -> Launcher:
    """A launcher with ``processes`` on one node."""
    if processes is None:
        return Launcher(name)
    return Launcher(
        name,
        Setting("processes", processes, PLACE, Origin.FLAG),
        Setting("nodes", 1, PLACE, Origin.FLAG),
        {key: Setting(key, value, PLACE, Origin.FLAG) for key, value in options.items()},
    )


def run_of(
    framework: str,
    command: str = "",
    *,
    python: str = "",
    constructor: str = "",
    launcher: Optional[Launcher] = None,
    versions: Optional[dict[str, str]] = None,
    kind: RunKind = RunKind.TRAIN,
    deepspeed: Optional[Document] = None,
    accelerate: Optional[Document] = None,
    is_open: bool = False,
    entry: Optional[str] = None,
    **settings: Any,
) -> Run:
    """A run with ``settings`` as flags; ``constructor`` names the call of ``python`` it is at."""
    files = (read_python(python, "train.py"),) if python else ()
    call = next((c for f in files for c in f.calls if c.method == constructor), None)
    words = command_of(command) if command else None
    place = Place(PlaceKind.PYTHON if call else PlaceKind.FLAGS, PLACE, words, call)
    return Run(
        "train.sh:3",
        kind,
        framework,
        PLACE,
        place,
        launcher=launcher or Launcher(),
        command=words,
        entry=entry,
        settings={
            name.replace("__", "."): Setting(name.replace("__", "."), value, PLACE, Origin.FLAG)
            for name, value in settings.items()
        },
        python=files,
        deepspeed=deepspeed,
        accelerate=accelerate,
        versions=versions or {},
        is_open=is_open,
    )


def profile(run: Run) -> dict[str, Setting]:
    """What the run's framework makes of it."""
    return framework_of(run.framework).profile(run)


def values(run: Run) -> dict[str, Any]:
    """The known practices of ``run``."""
    return {name: setting.value for name, setting in profile(run).items() if setting.known}


def json_document(text: str) -> Document:
    """A JSON text as a document."""
    return read_json(text, "ds.json").documents[0]


def yaml_document(text: str) -> Document:
    """A YAML text as a document."""
    return read_yaml(text, "accelerate.yaml").documents[0]
