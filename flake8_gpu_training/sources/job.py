"""Finds the commands and the resources that a job description in YAML holds.

Understood are Kubernetes objects with containers (Job, PyTorchJob, MPIJob, RayJob,
Deployment, TrainJob …), docker compose, SkyPilot, and task files of the same shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from flake8_gpu_training.facts import Command, ConfigFile, Document, Node, Setting
from flake8_gpu_training.sources._job_base import Read, Unit, child, read_nothing
from flake8_gpu_training.sources._job_compose import ComposeService, values_beside
from flake8_gpu_training.sources._job_kubernetes import config_maps, containers_of
from flake8_gpu_training.sources._job_production_stack import engines_of, is_values, runtime_of
from flake8_gpu_training.sources._job_task import TASK_COMMANDS, Task

_PART_OF_CONTAINER = frozenset({"command", "args", "env"})
_TASK_MARKERS = frozenset({"resources", "compute", "num_nodes", "accelerators", "image", "gpus"})


def with_job(config: ConfigFile, read: Read = read_nothing) -> ConfigFile:
    """``config`` with the commands and resources it holds, if it describes a job.

    ``read`` gives the text of the environment files that it names.
    """
    if not any(_form(document) for document in config.documents):
        return config
    return replace(
        config,
        commands=(*config.commands, *commands_in_config(config, read)),
        resources=(*config.resources, *resources_in_config(config)),
    )


def commands_in_config(config: ConfigFile, read: Read = read_nothing) -> tuple[Command, ...]:
    """Commands of the job, each with the environment its description gives it.

    Replicas that do the same together are one.
    """
    return tuple(
        command for document in config.documents for command in _commands(config, document, read)
    )


def _commands(config: ConfigFile, document: Document, read: Read) -> Iterator[Command]:
    seen: set[tuple[str, ...]] = set()
    for unit in _units(config, document, read):
        found = list(unit.commands())
        texts = {tuple(word.text for word in command.words) for command in found}
        for command in found:
            if not unit.is_replica or tuple(word.text for word in command.words) not in seen:
                yield command
        seen |= texts


def resources_in_config(config: ConfigFile) -> tuple[Setting, ...]:
    """What the job asks for, by container.

    Names: ``gpus`` (per replica), ``gpu`` (model), ``machine`` (a machine type, or a label that
    the node must have), ``nodes`` or ``replicas``, ``shm``, ``image``, ``nproc_per_node``,
    ``host_ipc``. ``note`` is the container's name.
    """
    return tuple(
        setting
        for document in config.documents
        for unit in _units(config, document, read_nothing)
        for setting in unit.resources()
    )


def with_own_resources(config: ConfigFile) -> Iterator[tuple[Command, ConfigFile]]:
    """Each command of the job, and the job as its container or service sees it.

    What the container asks for itself is there, and that of others of which it says nothing.
    """
    units = [
        unit for document in config.documents for unit in _units(config, document, read_nothing)
    ]
    if len(units) < 2:
        yield from ((command, config) for command in config.commands)
        return
    places = [frozenset(command.location for command in unit.commands()) for unit in units]
    for command in config.commands:
        mine = next((u for u, at in zip(units, places) if command.location in at), None)
        own = tuple(mine.resources()) if mine is not None else ()
        names = {setting.name for setting in own}
        others = tuple(one for one in config.resources if one.name not in names)
        yield command, replace(config, resources=(*own, *others)) if own else config


def _form(document: Document) -> str:
    keys = document.root.mapping
    if ("apiVersion" in keys and "kind" in keys) or _is_part_of_pod(document.root):
        return "kubernetes"
    if "servingEngineSpec" in keys and is_values(document.root):
        return "production-stack"
    if "services" in keys and keys["services"].node.mapping:
        return "compose"
    if any(key in keys for key in TASK_COMMANDS) and not _TASK_MARKERS.isdisjoint(keys):
        return "task"
    if "command" in keys and keys["command"].node.items and _PART_OF_CONTAINER.issuperset(keys):
        return "task"
    return ""


def _is_part_of_pod(root: Node) -> bool:
    """Whether a document shows a pod's containers alone."""
    containers = child(root, "containers") or child(root, "spec", "containers")
    return containers is not None and any("image" in item.mapping for item in containers.items)


def _units(config: ConfigFile, document: Document, read: Read) -> Iterator[Unit]:
    """The containers, services or the task of a document."""
    form = _form(document)
    root = document.root
    runtime = runtime_of(root) if form == "kubernetes" else None
    if runtime is not None:
        yield runtime
    elif form == "production-stack":
        yield from engines_of(root)
    elif form == "kubernetes":
        yield from containers_of(root, config_maps(config.documents))
    elif form == "compose":
        values = values_beside(config.path, read)
        for name, entry in root.mapping["services"].node.mapping.items():
            yield ComposeService(entry.node, name, values, read)
    elif form == "task":
        yield Task(root, "")
