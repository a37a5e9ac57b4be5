"""The model of a run: named by a setting or a call, described by a config.json or by numbers."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Optional

from flake8_gpu_training.facts import (
    Call,
    Command,
    ConfigFile,
    Document,
    Origin,
    PythonFile,
    Setting,
)
from flake8_gpu_training.frameworks.megatron import model_of_flags
from flake8_gpu_training.models import SHAPE_NAMES, model_of, model_of_class
from flake8_gpu_training.runs.model import Model
from flake8_gpu_training.runs.reach import Reach

_NAMES = (
    "model",
    "model_name_or_path",
    "model.model_name_or_path",
    "model_path",
    "model_id",
    "pretrained_model_name_or_path",
    "model_name",
    "model_id_or_path",
    "load",
    "mcore_model",
    "actor_rollout_ref.model.path",
    "base_model",
    "model.partial_pretrain",
    "actor.model_name_or_path",
)
# Settings of the vision encoder in front of a language model (LLaVA and what follows it).
_TOWERS = ("vision_tower", "mm_vision_tower", "image_tower", "mm_projector_type")
# Settings that name a configuration to train from scratch by (transformers' run_clm.py).
_CONFIGURATIONS = ("config_name", "model_config", "model_config_name", "model_config_path")


def model_of_run(
    settings: Mapping[str, Setting],
    python: Sequence[PythonFile],
    is_open: bool,
    reach: Reach,
    command: Optional[Command],
) -> Model:
    """The model that a run trains or serves, as far as its files tell."""
    shaped = model_of_flags(settings)
    if shaped is not None:
        return shaped
    model = _model_named(settings, python, is_open, reach, command)
    tower = any(_is_named(settings.get(name)) for name in _TOWERS)
    is_text = model.kind in ("LLM", "unknown")
    return dataclasses.replace(model, kind="MLLM") if tower and is_text else model


def _is_named(setting: Optional[Setting]) -> bool:
    value = setting.value if setting is not None and setting.known else None
    return isinstance(value, str) and value.lower() not in ("", "none", "null")


def _model_named(
    settings: Mapping[str, Setting],
    python: Sequence[PythonFile],
    is_open: bool,
    reach: Reach,
    command: Optional[Command],
) -> Model:
    named = _named(settings, python, is_open)
    if named is None or not isinstance(named.value, str):
        return _configured(settings, python, reach, command) or model_of(None)
    model = model_of(named.value, _config_in(named.value, named, reach, command))
    return dataclasses.replace(model, location=named.location)


def _named(
    settings: Mapping[str, Setting], python: Sequence[PythonFile], is_open: bool
) -> Optional[Setting]:
    for name in _NAMES:
        setting = settings.get(name)
        if setting is None or not isinstance(setting.value, str):
            continue
        # Flags out of sight name the model, as a rule: a default says little then.
        if not (is_open and setting.origin is Origin.DEFAULT):
            return _loaded_instead(setting, python) or setting
    found: list[Setting] = []
    for call in _calls(python):
        made = _loaded(call)
        if made is not None and isinstance(made.value, str):
            found.append(made)
        elif made is not None and is_open:  # the model that the flags name; others only help
            return None
    return found[0] if found else None


def _loaded_instead(setting: Setting, python: Sequence[PythonFile]) -> Optional[Setting]:
    """What the program loads under another name, where only a default names the model."""
    if setting.origin is not Origin.DEFAULT:
        return None
    loads = (c for c in _calls(python) if _TASK_CLASS.search(c.name.rpartition(".")[0]))
    made = [one for one in map(_loaded, loads) if one is not None]
    values = {one.value for one in made if isinstance(one.value, str)}
    is_known = all(isinstance(one.value, str) for one in made)
    return made[0] if is_known and len(values) == 1 and setting.value not in values else None


def _calls(python: Iterable[PythonFile]) -> Iterator[Call]:
    return (call for file in python for call in file.calls)


def _loaded(call: Call) -> Optional[Setting]:
    """The name under which a call loads or builds a model."""
    if call.method == "from_pretrained" and _loads_model(call.name):
        argument = call.positional[0] if call.positional else None
        argument = argument or call.keywords.get("pretrained_model_name_or_path")
    elif call.name == "trl.ModelConfig" and "model_name_or_path" in call.keywords:
        argument = call.keywords["model_name_or_path"]
    elif call.name == "timm.create_model":
        argument = call.positional[0] if call.positional else call.keywords.get("model_name")
    elif call.name == f"torchvision.models.{call.method}" and call.method.islower():
        return Setting("model", call.method, call.location, Origin.CONSTRUCTOR)
    elif call.name.startswith("trl.") and call.method.endswith("Trainer"):
        argument = call.keywords.get("model") or next(iter(call.positional), None)
        if argument is not None and not isinstance(argument.value, str):
            return None  # a model that another call loads
    else:
        return None
    if argument is None:
        return None
    return Setting("model", argument.value, argument.location, Origin.CONSTRUCTOR)


def _loads_model(name: str) -> bool:
    owner = name.split(".")[-2] if "." in name else ""
    return "Model" in owner or owner.endswith("Pipeline") or bool(_TASK_CLASS.search(owner))


_TASK_CLASS = re.compile(r"For[A-Z]\w+$")
"""Transformers' classes of a task: ``Qwen3VLForConditionalGeneration``, ``BertForMaskedLM``."""


def _config_in(
    folder: str, named: Setting, reach: Reach, command: Optional[Command]
) -> Optional[Document]:
    """The configuration that the project holds under this name: a file, or in a folder."""
    near = named.location.path if named.location is not None else ""
    stem = folder.rstrip("/")
    name = stem if stem.endswith(".json") else f"{stem}/config.json"
    path = reach.file(name, command, near) if stem else None
    facts = reach.project.read(path) if path is not None else None
    return facts.documents[0] if isinstance(facts, ConfigFile) and facts.documents else None


def _configured(
    settings: Mapping[str, Setting],
    python: Sequence[PythonFile],
    reach: Reach,
    command: Optional[Command],
) -> Optional[Model]:
    """A model that is built from a configuration, with or without a name of its own."""
    for name in _CONFIGURATIONS:
        setting = settings.get(name)
        if setting is not None and isinstance(setting.value, str):
            config = _config_in(setting.value, setting, reach, command)
            model = model_of(setting.value, config)
            if model.layers or model.parameters:
                return dataclasses.replace(model, location=setting.location)
    return _from_classes(python, reach, command)


def _from_classes(
    python: Sequence[PythonFile], reach: Reach, command: Optional[Command]
) -> Optional[Model]:
    """The one model that configuration classes describe; none when they describe several, or
    when the program changes a configuration afterwards."""
    if any(a.name.rpartition(".")[2] in SHAPE_NAMES for file in python for a in file.attributes):
        return None
    described = (_described(call, reach, command) for call in _calls(python))
    found = [model for model in described if model is not None]
    shapes = {(m.name, m.parameters, m.layers, m.hidden_size) for m in found}
    return found[0] if len(shapes) == 1 else None


def _described(call: Call, reach: Reach, command: Optional[Command]) -> Optional[Model]:
    """The model that a call of a configuration class describes."""
    owner = call.name.rpartition(".")[0].rpartition(".")[2]
    if call.method.endswith("Config"):
        values = {name: item.value for name, item in call.keywords.items()}
        model = model_of_class(call.method, values, call.is_open)
        if model is None:
            return None
        return dataclasses.replace(model, source=f"{call.method}(...)", location=call.location)
    if call.method != "from_pretrained" or not owner.endswith("Config") or not call.positional:
        return None
    first = call.positional[0]
    if not isinstance(first.value, str) or SHAPE_NAMES & call.keywords.keys():
        return None
    setting = Setting("model", first.value, first.location, Origin.CONSTRUCTOR)
    model = model_of(first.value, _config_in(first.value, setting, reach, command))
    return dataclasses.replace(model, location=first.location)
