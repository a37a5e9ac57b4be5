"""A SkyPilot task, or a task file of the same shape: scripts and resources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flake8_gpu_training.facts import Command, Node, Origin, Setting
from flake8_gpu_training.sources._job_base import (
    Unit,
    argv_commands,
    child,
    count_of,
    environment_of,
    listed,
    script_commands,
)

TASK_COMMANDS = ("setup", "run", "commands", "command", "entrypoint")


class Task(Unit):
    """A SkyPilot task, or a task file of the same shape: scripts and resources."""

    def commands(self) -> Iterator[Command]:
        environment: dict[str, Setting] = {}
        for key in ("envs", "env", "environment", "environment_variables"):
            environment.update(environment_of(child(self.node, key)))
        for key in TASK_COMMANDS:
            node = child(self.node, key)
            for script in listed(node) if key == "commands" else [node]:
                if script is not None and script.kind == "scalar":
                    yield from script_commands(script, environment, self._given())
                elif script is not None and script.items:
                    yield from argv_commands(list(script.items), environment)

    def _given(self) -> dict[str, str]:
        """What SkyPilot sets in a task (docs.skypilot.co, environment variables)."""
        if child(self.node, "resources") is None:
            return {}
        nodes = child(self.node, "num_nodes")
        found = {"SKYPILOT_NUM_NODES": "1" if nodes is None else nodes.text}
        counts = {count for _, count, _ in self._alternatives()}
        if not counts:
            counts = {0}
        if len(counts) == 1:
            found["SKYPILOT_NUM_GPUS_PER_NODE"] = str(counts.pop())
        return {name: text for name, text in found.items() if text.isdigit()}

    def _alternatives(self) -> Iterator[tuple[str, Any, Node]]:
        """Accelerators of which the task takes one kind: model, count, place."""
        node = child(self.node, "resources", "accelerators")
        for model, entry in node.mapping.items() if node is not None else ():
            yield model, 1 if entry.node.value is None else count_of(entry.node), entry.node
        for item in listed(node):
            if item.kind == "scalar" and isinstance(item.value, str):
                model, _, count = item.text.partition(":")
                yield model, int(count) if count.isdigit() and len(count) < 6 else 1, item

    def resources(self) -> Iterator[Setting]:
        yield from self._setting("nodes", child(self.node, "num_nodes"))
        yield from self._setting("gpus", child(self.node, "compute", "gpus"))
        image = child(self.node, "resources", "image_id") or child(self.node, "image")
        yield from self._setting("image", image)
        yield from self._setting("machine", child(self.node, "resources", "instance_type"))
        yield from self._setting("gpu", child(self.node, "compute", "gpu_type"))
        found = list(self._alternatives())
        for index, name in enumerate(("gpu", "gpus")):
            values = {alternative[index] for alternative in found}
            if len(values) == 1:
                place = found[0][2].location
                yield Setting(name, values.pop(), place, Origin.FILE, self.name)
