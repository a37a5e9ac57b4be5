"""Finds the commands and the resources that a job description in YAML holds.

Understood are Kubernetes objects with containers (Job, PyTorchJob, MPIJob, RayJob,
Deployment, TrainJob …), docker compose, SkyPilot, and task files of the same shape.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Optional

from flake8_gpu_training.facts import (
    Command,
    ConfigFile,
    Document,
    Entry,
    Location,
    Node,
    Origin,
    Setting,
    Unknown,
    Word,
)
from flake8_gpu_training.sources.relocate import relocate

_Environment = Mapping[str, Setting]

_SHELL = re.compile(r"(?:/usr)?(?:/bin/)?(?:env\s+)?(?:ba|z|da)?sh")
_SHELL_SCRIPT_FLAG = re.compile(r"-[a-z]*c")
_KUBERNETES_VARIABLE = re.compile(r"\$\(([A-Za-z_][\w.-]*)\)")
_GPU_RESOURCE = re.compile(r"(?:nvidia|amd)\.com/(?:gpu|mig-.*)")
_TASK_COMMANDS = ("setup", "run", "commands", "command", "entrypoint")
_TASK_MARKERS = frozenset({"resources", "compute", "num_nodes", "accelerators", "image", "gpus"})
_MAX_TEXT = 200_000

# What the image starts when a container gives only arguments: docs.vllm.ai, "Using Docker":
# arguments behind the image's name go to the OpenAI-compatible server.
_ENTRYPOINTS = {"vllm/vllm-openai": ("vllm", "serve")}


def with_job(config: ConfigFile) -> ConfigFile:
    """``config`` with the commands and resources it holds, if it describes a job."""
    if not any(_form(document) for document in config.documents):
        return config
    return replace(
        config,
        commands=(*config.commands, *commands_in_config(config)),
        resources=(*config.resources, *resources_in_config(config)),
    )


def commands_in_config(config: ConfigFile) -> tuple[Command, ...]:
    """Commands of the job, each with the environment its description gives it."""
    return tuple(
        command
        for document in config.documents
        for unit in _units(document)
        for command in unit.commands()
    )


def resources_in_config(config: ConfigFile) -> tuple[Setting, ...]:
    """What the job asks for, by container.

    Names: ``gpus`` (per replica), ``gpu`` (model), ``machine`` (a machine type, or a label that
    the node must have), ``nodes`` or ``replicas``, ``shm``, ``image``, ``nproc_per_node``,
    ``host_ipc``. ``note`` is the container's name.
    """
    return tuple(
        setting
        for document in config.documents
        for unit in _units(document)
        for setting in unit.resources()
    )


def _form(document: Document) -> str:
    keys = document.root.mapping
    if "apiVersion" in keys and "kind" in keys:
        return "kubernetes"
    if "services" in keys and keys["services"].node.mapping:
        return "compose"
    if any(key in keys for key in _TASK_COMMANDS) and not _TASK_MARKERS.isdisjoint(keys):
        return "task"
    return ""


def _units(document: Document) -> Iterator[_Unit]:
    """The containers, services or the task of a document."""
    form = _form(document)
    root = document.root
    if form == "kubernetes":
        yield from _containers(root, _Context())
    elif form == "compose":
        for name, entry in root.mapping["services"].node.mapping.items():
            yield _Compose(entry.node, name)
    elif form == "task":
        yield _Task(root, "")


# --- places -------------------------------------------------------------------------


def _child(node: Optional[Node], *names: str) -> Optional[Node]:
    for name in names:
        entry = node.mapping.get(name) if node is not None else None
        node = entry.node if entry is not None else None
    return node


def _script(node: Node, environment: _Environment) -> list[Command]:
    """Commands of a shell script held in a scalar, at their places in the file."""
    from flake8_gpu_training.sources.shell import read_shell

    if not node.text.strip() or len(node.text) > _MAX_TEXT:
        return []
    values = {name: item.value for name, item in environment.items() if _is_text(item.value)}
    script = read_shell(node.text, node.location.path, variables=values)
    commands = [
        _with(environment, command) for command in relocate(script, _placing(node)).commands
    ]
    if node.content is None:
        # Folded text has no place of its own where a further flag could be written.
        return [replace(command, end=None) for command in commands]
    return commands


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _with(environment: _Environment, command: Command) -> Command:
    """``command`` in an environment; what it sets itself has precedence."""
    own = {
        name: setting
        for name, setting in command.environment.items()
        if name not in environment or setting.value != environment[name].value
    }
    return replace(command, environment={**environment, **own})


def _placing(node: Node) -> Any:
    content = node.content

    def place(location: Location) -> Location:
        if content is None:
            return node.location
        column = location.column + content.column - 1
        return Location(content.path, content.line + location.line - 1, column)

    return place


def _argv(nodes: list[Node], environment: _Environment) -> list[Command]:
    """The command that an argument vector starts; ``bash -c`` gives those of its script."""
    from flake8_gpu_training.sources.shell import commands_from_argv

    for index in range(1, len(nodes)):
        started = all(_SHELL_SCRIPT_FLAG.fullmatch(n.text) is None for n in nodes[1:index])
        flag = _SHELL_SCRIPT_FLAG.fullmatch(nodes[index].text)
        if _SHELL.fullmatch(nodes[0].text) and flag and started and index + 1 < len(nodes):
            return _script(nodes[index + 1], environment)
    words = tuple(_word(node, environment) for node in nodes)
    if not words:
        return []
    return [_with(environment, command) for command in commands_from_argv(words)]


def _word(node: Node, environment: _Environment) -> Word:
    """A word of an argument vector; Kubernetes puts ``$(NAME)`` in from the environment."""
    raw = node.text
    place = node.content or node.location
    if node.kind != "scalar" or (isinstance(node.value, Unknown) and "{{" in raw):
        return Word(Unknown("a template placeholder"), place, raw)
    parts: list[str] = []
    end = 0
    for match in _KUBERNETES_VARIABLE.finditer(raw):
        setting = environment.get(match.group(1))
        if setting is None or not isinstance(setting.value, str):
            return Word(Unknown(f"the variable {match.group(1)}"), place, raw)
        parts += [raw[end : match.start()], setting.value]
        end = match.end()
    return Word("".join([*parts, raw[end:]]), place, raw)


def _environment(node: Optional[Node]) -> dict[str, Setting]:
    """Variables of a mapping, of a list of ``NAME=value``, or of Kubernetes' ``env``."""
    if node is None:
        return {}
    found = {name: _variable(name, entry) for name, entry in node.mapping.items()}
    for item in node.items:
        name = _child(item, "name")
        value = _child(item, "value")
        if name is not None:
            known = value is not None and value.kind == "scalar"
            content: Any = value.text if known and value is not None else Unknown("set elsewhere")
            found[name.text] = Setting(name.text, content, name.location, Origin.ENVIRONMENT)
        elif item.kind == "scalar":
            key, equals, text = item.text.partition("=")
            content = text if equals else Unknown("set outside")
            found[key] = Setting(key, content, item.location, Origin.ENVIRONMENT)
    return found


def _variable(name: str, entry: Entry) -> Setting:
    node = entry.node
    value: Any = node.text
    if node.kind != "scalar" or node.value is None or isinstance(node.value, Unknown):
        value = Unknown("set outside")
    return Setting(name, value, entry.location, Origin.ENVIRONMENT)


# --- units --------------------------------------------------------------------------


class _Unit:
    """A container, service or task: something that runs commands with resources."""

    def __init__(self, node: Node, name: str) -> None:
        self.node = node
        self.name = name

    def commands(self) -> Iterator[Command]:
        """Its commands."""
        raise NotImplementedError

    def resources(self) -> Iterator[Setting]:
        """What it asks for."""
        raise NotImplementedError

    def _setting(self, name: str, node: Optional[Node], value: Any = None) -> Iterator[Setting]:
        if node is not None and node.kind == "scalar":
            found = node.value if value is None else value
            yield Setting(name, found, node.location, Origin.FILE, self.name)


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
        volumes = _child(node, "volumes")
        for volume in volumes.items if volumes is not None else ():
            memory = _child(volume, "emptyDir")
            medium, limit = _child(memory, "medium"), _child(memory, "sizeLimit")
            if medium is not None and medium.value == "Memory":
                settings = (*settings, ("shm", limit or medium))
        return _Context(replicas, settings)


_ABOUT_MACHINES = re.compile(r"(?i)gpu|accelerator|instance|machine|node")


def _node_labels(pod: Node) -> Iterator[Node]:
    """Values that a pod's node selector, or its required affinity, asks of the node's labels."""
    selector = _child(pod, "nodeSelector")
    for label, entry in selector.mapping.items() if selector is not None else ():
        if _ABOUT_MACHINES.search(label) and entry.node.kind == "scalar":
            yield entry.node
    required = _child(
        pod, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"
    )
    terms = _child(required, "nodeSelectorTerms")
    for term in terms.items if terms is not None else ():
        expressions = _child(term, "matchExpressions")
        for expression in expressions.items if expressions is not None else ():
            key, operator = _child(expression, "key"), _child(expression, "operator")
            values = _child(expression, "values")
            is_in = operator is not None and operator.value == "In"
            about = key is not None and _ABOUT_MACHINES.search(key.text)
            if is_in and about and values is not None and len(values.items) == 1:
                yield values.items[0]


def _containers(root: Node, context: _Context) -> Iterator[_Unit]:
    """Containers anywhere in a Kubernetes object, in the order they are written."""
    stack = [(root, "", context)]
    while stack:
        node, key, around = stack.pop()
        inside = around.inside(node)
        if "image" in node.mapping and (
            key in ("containers", "initContainers") or _starts_something(node)
        ):
            name = _child(node, "name")
            yield _Container(node, name.text if name is not None else "", inside)
            continue
        entrypoint = _child(node, "entrypoint")
        if entrypoint is not None and entrypoint.kind == "scalar":
            yield _Task(node, "")
        inner = [(entry.node, name) for name, entry in node.mapping.items()]
        inner += [(item, key) for item in node.items]
        stack += [(child, name, inside) for child, name in reversed(inner)]


def _starts_something(node: Node) -> bool:
    return "command" in node.mapping or "args" in node.mapping


class _Container(_Unit):
    """A Kubernetes container."""

    def __init__(self, node: Node, name: str, context: _Context) -> None:
        super().__init__(node, name)
        self.context = context

    def commands(self) -> Iterator[Command]:
        environment = _environment(_child(self.node, "env"))
        words = [*_listed(_child(self.node, "command")), *_listed(_child(self.node, "args"))]
        if "command" not in self.node.mapping:
            words = [*self._entrypoint(), *words] if words else []
            if not words or words[0].text.startswith("-"):
                return
        yield from _argv(words, environment)

    def _entrypoint(self) -> list[Node]:
        """What the image starts, when it is known."""
        image = _child(self.node, "image")
        repository = image.text.partition("@")[0] if image is not None else ""
        head, _, last = repository.rpartition("/")
        name = f"{head}/{last.partition(':')[0]}"
        words = next((w for i, w in _ENTRYPOINTS.items() if f"/{name}".endswith(f"/{i}")), ())
        return [Node(word, self.node.mapping["image"].location, text=word) for word in words]

    def resources(self) -> Iterator[Setting]:
        node = self.node
        yield from self._setting("image", _child(node, "image"))
        for section in ("resources", "resourcesPerNode"):
            yield from self._gpus(_child(node, section))
        if self.context.replicas is not None:
            yield from self._setting("replicas", self.context.replicas)
        for name, value in self.context.settings:
            yield from self._setting(name, value)

    def _gpus(self, node: Optional[Node]) -> Iterator[Setting]:
        for section in ("limits", "requests"):
            asked = _child(node, section)
            for key, entry in asked.mapping.items() if asked is not None else ():
                if _GPU_RESOURCE.fullmatch(key):
                    yield from self._setting("gpus", entry.node, _count(entry.node))
                    return


def _listed(node: Optional[Node]) -> list[Node]:
    if node is None:
        return []
    return list(node.items) if node.kind == "sequence" else [node]


def _count(node: Node) -> Any:
    """A number that may be written as text (``"8"``)."""
    return int(node.text) if re.fullmatch(r"\d{1,6}", node.text) else node.value


class _Compose(_Unit):
    """A service of docker compose."""

    def commands(self) -> Iterator[Command]:
        environment = _environment(_child(self.node, "environment"))
        words = [*self._words("entrypoint"), *self._words("command")]
        if not words or words[0].text.startswith("-"):
            return
        yield from _argv(words, environment)

    def _words(self, key: str) -> list[Node]:
        """Compose splits a string into words; it does not give it to a shell."""
        node = _child(self.node, key)
        if node is None or node.kind == "sequence":
            return _listed(node)
        try:
            words = shlex.split(node.text)
        except ValueError:
            return []
        return [Node(word, self._place(node, word), text=word.replace("$$", "$")) for word in words]

    def _place(self, node: Node, word: str) -> Location:
        """Where ``word`` stands in a one-line string, else where the string begins."""
        at = node.text.find(word)
        if node.content is None or at < 0 or "\n" in node.text:
            return node.location
        return replace(node.content, column=node.content.column + at)

    def resources(self) -> Iterator[Setting]:
        yield from self._setting("image", _child(self.node, "image"))
        yield from self._setting("shm", _child(self.node, "shm_size"))
        ipc = _child(self.node, "ipc")
        if ipc is not None and ipc.value == "host":
            yield from self._setting("host_ipc", ipc, True)
        yield from self._setting("gpus", _child(self.node, "gpus"))
        devices = _child(self.node, "deploy", "resources", "reservations", "devices")
        for device in devices.items if devices is not None else ():
            count, identifiers = _child(device, "count"), _child(device, "device_ids")
            if count is not None:
                yield from self._setting("gpus", count, _count(count))
            elif identifiers is not None and identifiers.items:
                yield from self._setting("gpus", identifiers.items[0], len(identifiers.items))


class _Task(_Unit):
    """A SkyPilot task, or a task file of the same shape: scripts and resources."""

    def commands(self) -> Iterator[Command]:
        environment: dict[str, Setting] = {}
        for key in ("envs", "env", "environment", "environment_variables"):
            environment.update(_environment(_child(self.node, key)))
        for key in _TASK_COMMANDS:
            node = _child(self.node, key)
            for script in _listed(node) if key == "commands" else [node]:
                if script is not None and script.kind == "scalar":
                    yield from _script(script, environment)
                elif script is not None and script.items:
                    yield from _argv(list(script.items), environment)

    def resources(self) -> Iterator[Setting]:
        yield from self._setting("nodes", _child(self.node, "num_nodes"))
        yield from self._setting("gpus", _child(self.node, "compute", "gpus"))
        image = _child(self.node, "resources", "image_id") or _child(self.node, "image")
        yield from self._setting("image", image)
        yield from self._setting("machine", _child(self.node, "resources", "instance_type"))
        yield from self._setting("gpu", _child(self.node, "compute", "gpu_type"))
        accelerators = _child(self.node, "resources", "accelerators")
        if accelerators is None:
            return
        if accelerators.mapping:
            for model, entry in accelerators.mapping.items():
                yield from self._accelerator(model, _count(entry.node), entry.node)
        elif accelerators.kind == "scalar" and isinstance(accelerators.value, str):
            model, _, count = accelerators.text.partition(":")
            number = int(count) if count.isdigit() and len(count) < 6 else 1
            yield from self._accelerator(model, number, accelerators)

    def _accelerator(self, model: str, count: Any, node: Node) -> Iterator[Setting]:
        yield Setting("gpu", model, node.location, Origin.FILE, self.name)
        yield Setting("gpus", count, node.location, Origin.FILE, self.name)
