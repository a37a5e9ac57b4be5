"""Kubernetes objects with containers: what each starts, and on what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Optional

from flake8_gpu_training.facts import Command, Document, Entry, Node, Origin, Setting
from flake8_gpu_training.sources._job_base import (
    Unit,
    argv_commands,
    child,
    count_of,
    environment_of,
    listed,
)
from flake8_gpu_training.sources._job_gangs import Gang, gang_of
from flake8_gpu_training.sources._job_images import entrypoint_of
from flake8_gpu_training.sources._job_task import Task

_GPU_RESOURCE = re.compile(r"(?:nvidia|amd)\.com/(?:gpu|mig-.*)")


class _Context:
    """What the objects around a container say about it."""

    def __init__(
        self, replicas: Optional[Node] = None, settings: tuple[tuple[str, Node], ...] = ()
    ) -> None:
        self.replicas = replicas
        self.settings = settings

    def inside(self, node: Node) -> _Context:
        """The context of what ``node`` holds."""
        replicas = next(
            (
                node.mapping[key].node
                for key in ("replicas", "parallelism", "numNodes", "size")
                if key in node.mapping and node.mapping[key].node.kind == "scalar"
            ),
            self.replicas,
        )
        settings = self.settings
        for key, name in (
            ("nprocPerNode", "nproc_per_node"),
            ("numProcPerNode", "nproc_per_node"),
            ("slotsPerWorker", "nproc_per_node"),
            ("hostIPC", "host_ipc"),
        ):
            if key in node.mapping:
                settings = (*settings, (name, node.mapping[key].node))
        settings = (*settings, *(("machine", label) for label in _node_labels(node)))
        volumes = child(node, "volumes")
        for volume in volumes.items if volumes is not None else ():
            memory = child(volume, "emptyDir")
            medium, limit = child(memory, "medium"), child(memory, "sizeLimit")
            if medium is not None and medium.value == "Memory":
                settings = (*settings, ("shm", limit or medium))
        return _Context(replicas, settings)


_ABOUT_MACHINES = re.compile(r"(?i)gpu|accelerator|instance|machine|node")


def _node_labels(pod: Node) -> Iterator[Node]:
    """Values that a pod's node selector, or its required affinity, asks of the node's labels."""
    selector = child(pod, "nodeSelector")
    for label, entry in selector.mapping.items() if selector is not None else ():
        if _ABOUT_MACHINES.search(label) and entry.node.kind == "scalar":
            yield entry.node
    required = child(
        pod, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"
    )
    terms = child(required, "nodeSelectorTerms")
    for term in terms.items if terms is not None else ():
        expressions = child(term, "matchExpressions")
        for expression in expressions.items if expressions is not None else ():
            key, operator = child(expression, "key"), child(expression, "operator")
            values = child(expression, "values")
            is_in = operator is not None and operator.value == "In"
            about = key is not None and _ABOUT_MACHINES.search(key.text)
            if is_in and about and values is not None and len(values.items) == 1:
                yield values.items[0]


ConfigMaps = Mapping[str, Mapping[str, Entry]]
"""Data of the ConfigMaps of a file, by name."""


def config_maps(documents: Iterable[Document]) -> ConfigMaps:
    """The ConfigMaps among the documents of a file."""
    found: dict[str, Mapping[str, Entry]] = {}
    for document in documents:
        kind, name = document.get("kind"), document.get("metadata.name")
        data = document.get("data")
        if kind is not None and kind.value == "ConfigMap" and name is not None and data is not None:
            found[name.text] = data.mapping
    return found


def containers_of(root: Node, maps: ConfigMaps) -> Iterator[Unit]:
    """Containers anywhere in a Kubernetes object, in the order they are written."""
    gang = gang_of(root)
    stack = [(root, "", _Context())]
    while stack:
        node, key, around = stack.pop()
        inside = around.inside(node)
        starts = _starts_something(node)
        if key in _CONTAINERS and starts and "image" not in node.mapping:
            node = _completed(node, root)
        if ("image" in node.mapping and (key in _CONTAINERS or starts)) or (
            starts and key in ("trainer", *_CONTAINERS)
        ):
            name = child(node, "name")
            yield Container(node, name.text if name is not None else "", inside, gang, maps)
            continue
        entrypoint = child(node, "entrypoint")
        if entrypoint is not None and entrypoint.kind == "scalar":
            yield Task(node, "")
        inner = [(entry.node, name) for name, entry in node.mapping.items()]
        inner += [(item, key) for item in node.items]
        stack += [(below, name, inside) for below, name in reversed(inner)]


_CONTAINERS = ("containers", "initContainers")


def _completed(node: Node, root: Node) -> Node:
    """A container of a patch, over the one of the same name in a template of its object."""
    name = child(node, "name")
    waiting = [root]
    while waiting and name is not None:
        item = waiting.pop()
        own = child(item, "name")
        if "image" in item.mapping and own is not None and own.text == name.text:
            return replace(node, mapping={**item.mapping, **node.mapping})
        waiting += [entry.node for entry in item.mapping.values()] + list(item.items)
    return node


def _starts_something(node: Node) -> bool:
    return "command" in node.mapping or "args" in node.mapping


class Container(Unit):
    """A Kubernetes container."""

    is_replica = True

    def __init__(
        self, node: Node, name: str, context: _Context, gang: Gang, maps: ConfigMaps
    ) -> None:
        super().__init__(node, name)
        self.context = context
        self.gang = gang
        self.maps = maps

    def commands(self) -> Iterator[Command]:
        environment = self._environment()
        words = [*listed(child(self.node, "command")), *listed(child(self.node, "args"))]
        if "command" not in self.node.mapping:
            words = [*self._entrypoint(), *words] if words else []
            if not words or words[0].text.startswith("-"):
                return
        yield from argv_commands(words, environment)

    def _environment(self) -> dict[str, Setting]:
        """What ConfigMaps and the container's own list set, and what the operator adds."""
        found: dict[str, Setting] = {}
        for source in listed(child(self.node, "envFrom")):
            name = child(source, "configMapRef", "name")
            for key, entry in self.maps.get(name.text if name is not None else "", {}).items():
                found[key] = _setting_of(key, entry)
        own = environment_of(child(self.node, "env"))
        for item in listed(child(self.node, "env")):
            name = child(item, "name")
            setting = self._referred(item)
            if name is not None and setting is not None:
                own[name.text] = replace(setting, name=name.text)
        return {**found, **own, **self.gang.environment}

    def _referred(self, item: Node) -> Optional[Setting]:
        """``valueFrom`` a ConfigMap of the same file."""
        name = child(item, "valueFrom", "configMapKeyRef", "name")
        key = child(item, "valueFrom", "configMapKeyRef", "key")
        if name is None or key is None:
            return None
        entry = self.maps.get(name.text, {}).get(key.text)
        return None if entry is None else _setting_of(key.text, entry)

    def _entrypoint(self) -> list[Node]:
        """What the image starts, when it is known."""
        image = child(self.node, "image")
        words = entrypoint_of(image.text) if image is not None else ()
        return [Node(word, self.node.mapping["image"].location, text=word) for word in words]

    def resources(self) -> Iterator[Setting]:
        node = self.node
        yield from self._setting("image", child(node, "image"))
        for section in ("resources", "resourcesPerNode"):
            yield from self._gpus(child(node, section))
            yield from self._cpus(child(node, section))
        if self.gang.nodes is not None:
            yield self.gang.nodes
        if self.context.replicas is not None:
            yield from self._setting("replicas", self.context.replicas)
        for name, value in self.context.settings:
            yield from self._setting(name, value)

    def _cpus(self, node: Optional[Node]) -> Iterator[Setting]:
        for section in ("limits", "requests"):
            asked = child(node, section, "cpu")
            if asked is not None:
                yield from self._setting("cpus", asked)
                return

    def _gpus(self, node: Optional[Node]) -> Iterator[Setting]:
        for section in ("limits", "requests"):
            asked = child(node, section)
            for key, entry in asked.mapping.items() if asked is not None else ():
                if _GPU_RESOURCE.fullmatch(key):
                    yield from self._setting("gpus", entry.node, count_of(entry.node))
                    return


def _setting_of(name: str, entry: Entry) -> Setting:
    return Setting(name, entry.node.text, entry.location, Origin.ENVIRONMENT)
