"""What a checkout of Flow-Factory declares itself: its parameters, and the models it adapts."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Optional

from flake8_gpu_training.facts import ClassDef, PythonFile, Setting, known
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.model import Checkout, Run

_MARK = "flow_factory/hparams/training_args.py"
_CLASSES: Mapping[str, str] = MappingProxyType(
    {
        "data": "DataArguments",
        "model": "ModelArguments",
        "scheduler": "SchedulerArguments",
        "eval": "EvaluationArguments",
        "rewards": "RewardArguments",
    }
)
_TRAINING = "TrainingArguments"


class Checkouts:
    """The checkouts of Flow-Factory in a project, each read once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._read: dict[tuple[str, str], Checkout] = {}

    def of(self, run: Run) -> Optional[Checkout]:
        """What the checkout declares that ``run`` is started from; None without one."""
        if run.framework != "flow_factory":
            return None
        roots = [path[: -len(_MARK)] for path in self._project.files if path.endswith(_MARK)]
        around = [root for root in roots if run.location.path.startswith(_parent(root))]
        if len(around) != 1:
            return None
        trainer = str(run.value("algorithm", "")).lower()
        key = (around[0], trainer)
        if key not in self._read:
            self._read[key] = self._declared(around[0], trainer)
        return self._read[key]

    def _declared(self, root: str, trainer: str) -> Checkout:
        classes = {one.name: one for file in self._hparams(root) for one in file.classes}
        found: dict[str, Setting] = {}
        for section, name in _CLASSES.items():
            if name in classes:
                found.update(_fields(section, classes[name]))
        for one in _of_trainer(classes, trainer):
            found.update(_fields("train", one))
        return Checkout(found, self._models(root))

    def _hparams(self, root: str) -> Iterator[PythonFile]:
        folder = f"{root}flow_factory/hparams/"
        for path in self._project.files:
            if path.startswith(folder) and path.endswith("_args.py"):
                file = self._project.read(path)
                if isinstance(file, PythonFile):
                    yield file

    def _models(self, root: str) -> Mapping[str, bool]:
        """Models that have an adapter, and whether it takes a pipeline of Diffusers."""
        file = self._project.read(f"{root}flow_factory/models/registry.py")
        register = (
            file.bindings.get("_MODEL_ADAPTER_REGISTRY") if isinstance(file, PythonFile) else None
        )
        if register is None or not isinstance(register.value, dict):
            return {}
        return {
            str(name): self._is_of_diffusers(root, str(path))
            for name, path in register.value.items()
            if known(path)
        }

    def _is_of_diffusers(self, root: str, dotted: str) -> bool:
        path = root + dotted.rpartition(".")[0].replace(".", "/") + ".py"
        file = self._project.read(path) if path in self._project.files else None
        if not isinstance(file, PythonFile):
            return False
        names = (one.dotted for one in file.imports if one.dotted.startswith("diffusers."))
        return any(
            name.endswith("Pipeline") and not name.endswith(".DiffusionPipeline") for name in names
        )


def _parent(root: str) -> str:
    """The folder of the checkout whose sources lie in ``root``."""
    folder = posixpath.dirname(root.rstrip("/")) if root.rstrip("/").endswith("src") else root
    return f"{folder}/" if folder and not folder.endswith("/") else folder


def _fields(section: str, declared: ClassDef) -> Iterator[tuple[str, Setting]]:
    for name, setting in declared.fields.items():
        key = f"{section}.{name}"
        note = f"{key}={setting.value} ({setting.location})" if setting.known else ""
        yield key, Setting(key, setting.value, None, setting.origin, note)


def _of_trainer(classes: Mapping[str, ClassDef], trainer: str) -> list[ClassDef]:
    """The base class and the trainer's own; all of them where the trainer's is not told."""
    others = [name for name in classes if name.endswith(_TRAINING) and name != _TRAINING]
    short = trainer.partition("-")[0]
    own = next((name for name in others if name[: -len(_TRAINING)].lower() == short), None)
    chain: list[ClassDef] = []
    while own is not None and own in classes:
        chain.insert(0, classes[own])
        own = next((base.rpartition(".")[2] for base in classes[own].bases), None)
    if chain:
        return chain
    base = [classes[_TRAINING]] if _TRAINING in classes else []
    return [*(classes[name] for name in others), *base]
