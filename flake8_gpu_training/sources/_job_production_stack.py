"""Engines of vLLM's production stack: Helm values and the operator's VLLMRuntime objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Optional

from flake8_gpu_training.facts import Command, Entry, Node, Origin, Setting
from flake8_gpu_training.sources._job_base import (
    Unit,
    argv_commands,
    child,
    count_of,
    environment_of,
    listed,
)

# production-stack 0.1.11: helm/templates/deployment-vllm-multi.yaml, ray-cluster.yaml and
# _helpers.tpl; operator/internal/controller/vllmruntime_controller.go.
_CHART_FLAGS = {
    "maxModelLen": "--max-model-len",
    "dtype": "--dtype",
    "tensorParallelSize": "--tensor-parallel-size",
    "maxNumSeqs": "--max-num-seqs",
    "gpuMemoryUtilization": "--gpu-memory-utilization",
    "maxLoras": "--max-loras",
    "runner": "--runner",
    "convert": "--convert",
}
_RUNTIME_FLAGS = {
    name: flag for name, flag in _CHART_FLAGS.items() if name not in ("runner", "convert")
}
_OF_MODEL = ("maxModelLen", "dtype", "maxNumSeqs")
"""What the operator's object says below ``model``, the chart below ``vllmConfig``."""
_FALSE = ("", "0", "false", "no", "off", "null", "~")


def is_values(root: Node) -> bool:
    """Whether a document holds values of the chart."""
    models = child(root, "servingEngineSpec", "modelSpec")
    return models is not None and any("modelURL" in item.mapping for item in models.items)


def engines_of(root: Node) -> Iterator[Unit]:
    """The engines that the chart deploys with these values."""
    engines = child(root, "servingEngineSpec")
    if _is_off(engines, "enableEngine"):
        return
    for item in listed(child(engines, "modelSpec")):
        if "modelURL" in item.mapping and not _is_off(item, "enabled"):
            yield ChartEngine(item, engines)


def runtime_of(root: Node) -> Optional[Unit]:
    """The engine of a VLLMRuntime object."""
    kind, spec = child(root, "kind"), child(root, "spec")
    is_runtime = kind is not None and kind.value == "VLLMRuntime"
    if not is_runtime or spec is None or child(spec, "model", "modelURL") is None:
        return None
    name = child(root, "metadata", "name")
    return RuntimeEngine(spec, name.text if name is not None else "")


class _Line:
    """The command that the templates put together, each word where its value is written."""

    def __init__(self, model: Node) -> None:
        self.words = [_at("vllm", model), _at("serve", model), model]

    def flag(self, flag: str, at: Node, value: Optional[Node] = None) -> None:
        self.words.append(_at(flag, at))
        if value is not None:
            self.words.append(value)

    def switch(self, name: str, at: Node, on: bool) -> None:
        self.flag(f"--{'' if on else 'no-'}{name}", at)

    def values(self, held: Optional[Node], flags: Mapping[str, str]) -> None:
        for name, flag in flags.items():
            entry = _entry(held, name)
            if entry is not None and entry.node.kind == "scalar":
                self.flag(flag, _key(entry), entry.node)

    def connector(self, at: Node, name: str, role: str = "kv_both") -> None:
        text = f'{{"kv_connector":"{name}","kv_role":"{role}"}}'
        self.flag("--kv-transfer-config", at, _at(text, at))


class ChartEngine(Unit):
    """An element of ``servingEngineSpec.modelSpec``."""

    is_replica = True

    def __init__(self, node: Node, engines: Optional[Node]) -> None:
        name = child(node, "name")
        super().__init__(node, name.text if name is not None else "")
        self.engines = engines
        self.by_ray = _is_on(node, "raySpec", "enabled")

    def commands(self) -> Iterator[Command]:
        node = self.node
        held = child(node, "vllmConfig")
        line = _Line(node.mapping["modelURL"].node)
        if self.by_ray:
            at = node.mapping["raySpec"].node
            line.flag("--distributed-executor-backend", at, _at("ray", at))
        _tools(line, node)
        chunked = _entry(held, "enableChunkedPrefill")
        if chunked is not None:
            line.switch("enable-chunked-prefill", _key(chunked), _is_true(chunked.node))
        if held is not None and held.mapping:
            caching = _entry(held, "enablePrefixCaching")
            on = caching is not None and _is_true(caching.node)
            # The deployment says it either way, the script of a Ray cluster only when it is on.
            if on or not self.by_ray:
                at = _key(caching) if caching is not None else node.mapping["vllmConfig"].node
                line.switch("enable-prefix-caching", at, on)
        line.values(held, _CHART_FLAGS)
        if self.by_ray:
            line.values(held, {"pipelineParallelSize": "--pipeline-parallel-size"})
        line.words += listed(child(held, "extraArgs"))
        line.values(node, {"modelRevision": "--revision"})
        self._connect(line, held)
        yield from argv_commands(line.words, self._environment(held))

    def _connect(self, line: _Line, held: Optional[Node]) -> None:
        cache = child(self.node, "lmcacheConfig")
        if not _is_on(cache, "enabled") or cache is None:
            return
        role = child(cache, "kvRole")
        old = _is_first_engine(held) and "enablePD" not in cache.mapping
        at = _key(cache.mapping["enabled"])
        name = "LMCacheConnector" if old else "LMCacheConnectorV1"
        line.connector(at, name, role.text if role is not None else "kv_both")

    def _environment(self, held: Optional[Node]) -> dict[str, Setting]:
        found = environment_of(child(self.engines, "env"))
        found.update(environment_of(child(self.node, "env")))
        if _is_first_engine(held) and held is not None:
            found.setdefault("VLLM_USE_V1", _variable("VLLM_USE_V1", "0", held.mapping["v0"]))
        devices = _entry(child(self.node, "lmcacheConfig"), "cudaVisibleDevices")
        if devices is not None and devices.node.kind == "scalar":
            name = "CUDA_VISIBLE_DEVICES"
            found[name] = _variable(name, devices.node.text, devices)
        return found

    def resources(self) -> Iterator[Setting]:
        node = self.node
        yield from _image(self, child(node, "repository"), child(node, "tag"))
        if "resources" not in node.mapping or not node.mapping["resources"].node.mapping:
            gpus = child(node, "requestGPU")
            if gpus is not None:
                yield from self._setting("gpus", gpus, count_of(gpus))
            cpus = child(node, "limitCPU") or child(node, "requestCPU")
            yield from self._setting("cpus", cpus)
        else:
            yield from _asked(self, child(node, "resources"))
        yield from self._setting("replicas", child(node, "replicaCount"))
        if _entry(child(node, "vllmConfig"), "tensorParallelSize") is not None:
            yield from self._setting("shm", child(node, "shmSize"))


class RuntimeEngine(Unit):
    """A VLLMRuntime."""

    is_replica = True

    def commands(self) -> Iterator[Command]:
        model, held = child(self.node, "model"), child(self.node, "vllmConfig")
        if model is None:
            return
        url = model.mapping["modelURL"].node
        line = _Line(url)
        _tools(line, model)
        for name, flag in (
            ("enableChunkedPrefill", "enable-chunked-prefill"),
            ("enablePrefixCaching", "enable-prefix-caching"),
        ):
            entry = _entry(held, name)
            at = _key(entry) if entry is not None else held or url
            line.switch(flag, at, entry is not None and _is_true(entry.node))
        for name, flag in _RUNTIME_FLAGS.items():
            line.values(model if name in _OF_MODEL else held, {name: flag})
        line.words += listed(child(held, "extraArgs"))
        second = _is_on(held, "v1")
        cache = child(self.node, "lmCacheConfig")
        if cache is not None and _is_on(cache, "enabled"):
            name = "LMCacheConnectorV1" if second else "LMCacheConnector"
            line.connector(_key(cache.mapping["enabled"]), name)
        environment = environment_of(child(held, "env"))
        entry = _entry(held, "v1")
        if entry is not None:
            text = "1" if second else "0"
            environment.setdefault("VLLM_USE_V1", _variable("VLLM_USE_V1", text, entry))
        yield from argv_commands(line.words, environment)

    def resources(self) -> Iterator[Setting]:
        deployed = child(self.node, "deploymentConfig")
        yield from self._setting("image", child(deployed, "image", "name"))
        gpus = child(deployed, "resources", "gpu")
        if gpus is not None:
            yield from self._setting("gpus", gpus, count_of(gpus))
        yield from self._setting("cpus", child(deployed, "resources", "cpu"))
        yield from self._setting("replicas", child(deployed, "replicas"))


def _tools(line: _Line, node: Node) -> None:
    for name, flag in (
        ("enableLoRA", "--enable-lora"),
        ("enableTool", "--enable-auto-tool-choice"),
    ):
        if _is_on(node, name):
            line.flag(flag, _key(node.mapping[name]))
    line.values(node, {"toolCallParser": "--tool-call-parser"})


def _asked(unit: Unit, node: Optional[Node]) -> Iterator[Setting]:
    """A whole ``resources`` block of Kubernetes."""
    for name, key in (("gpus", "nvidia.com/gpu"), ("gpus", "amd.com/gpu"), ("cpus", "cpu")):
        found = child(node, "limits", key) or child(node, "requests", key)
        if found is not None and found.kind == "scalar":
            value = count_of(found) if name == "gpus" else found.value
            yield Setting(name, value, found.location, Origin.FILE, unit.name)


def _image(unit: Unit, repository: Optional[Node], tag: Optional[Node]) -> Iterator[Setting]:
    if repository is not None and tag is not None and repository.kind == tag.kind == "scalar":
        text = f"{repository.text}:{tag.text}"
        yield Setting("image", text, tag.location, Origin.FILE, unit.name)


def _variable(name: str, text: str, entry: Entry) -> Setting:
    return Setting(name, text, entry.location, Origin.ENVIRONMENT)


def _is_first_engine(held: Optional[Node]) -> bool:
    """``v0: 1``: the chart asks for the first engine."""
    asked = child(held, "v0")
    return asked is not None and asked.text == "1"


def _entry(node: Optional[Node], name: str) -> Optional[Entry]:
    return node.mapping.get(name) if node is not None else None


def _key(entry: Entry) -> Node:
    """The place of a key, for the flag that it becomes."""
    return Node(entry.key, entry.location, text=entry.key)


def _at(text: str, node: Node) -> Node:
    return Node(text, node.location, text=text)


def _is_true(node: Node) -> bool:
    return node.kind != "scalar" or node.text.lower() not in _FALSE


def _is_on(node: Optional[Node], *names: str) -> bool:
    found = child(node, *names)
    return found is not None and _is_true(found)


def _is_off(node: Optional[Node], name: str) -> bool:
    found = child(node, name)
    return found is not None and not _is_true(found)
