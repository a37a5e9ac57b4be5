"""Replicas that an operator of Kubernetes starts together, and what it tells each of them.

PyTorchJob as in kubeflow/training-operator 1.7 and newer (``setPodEnv``), TrainJob as in
kubeflow/trainer 2, MPIJob as in kubeflow/mpi-operator ``v2beta1``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from flake8_gpu_training.facts import Location, Node, Origin, Setting, Unknown
from flake8_gpu_training.sources._job_base import child


@dataclass(frozen=True)
class Gang:
    """``nodes``: replicas that train together; ``environment``: what the operator sets."""

    nodes: Optional[Setting] = None
    environment: Mapping[str, Setting] = field(default_factory=dict)


def gang_of(root: Node) -> Gang:
    """The gang that a Kubernetes object describes; an empty one for other kinds."""
    kind = child(root, "kind")
    spec = child(root, "spec")
    made = _KINDS.get(kind.text if kind is not None else "")
    return made(spec) if made is not None and spec is not None else Gang()


def _pytorch_job(spec: Node) -> Gang:
    replicas = child(spec, "pytorchReplicaSpecs")
    total = _total(replicas)
    if replicas is None or total is None:
        return Gang()
    nodes = total
    environment: dict[str, Setting] = {}
    elastic = child(spec, "elasticPolicy")
    each = child(spec, "nprocPerNode")
    if elastic is not None:
        least, most = child(elastic, "minReplicas"), child(elastic, "maxReplicas")
        fixed = least is not None and most is not None and least.text == most.text
        value: Any = least.text if fixed and least is not None else Unknown("an elastic job")
        nodes = Setting("nodes", _number(value), elastic.location, Origin.FILE)
        each = child(elastic, "nProcPerNode") or each
    environment["PET_NNODES"] = _variable("PET_NNODES", nodes)
    if "Master" in replicas.mapping or elastic is not None:
        environment["PET_NPROC_PER_NODE"] = _each(each, total.location)
    if "Master" in replicas.mapping and (each is None or each.text in ("1", "auto")):
        environment["WORLD_SIZE"] = _variable("WORLD_SIZE", total)
    return Gang(nodes, environment)


def _train_job(spec: Node) -> Gang:
    """Sizes that it leaves out are those of its runtime, which lies in the cluster."""
    trainer = child(spec, "trainer")
    if trainer is None:
        return Gang()
    unknown = Unknown("the training runtime decides")
    count, each = child(trainer, "numNodes"), child(trainer, "numProcPerNode")
    place = trainer.location
    nodes = Setting("nodes", unknown, place, Origin.FILE)
    if count is not None:
        nodes = Setting("nodes", _number(count.text), count.location, Origin.FILE)
    processes = Setting("PET_NPROC_PER_NODE", unknown, place, Origin.ENVIRONMENT)
    if each is not None:
        processes = _each(each, place)
    environment = {
        "PET_NNODES": _variable("PET_NNODES", nodes),
        "PET_NPROC_PER_NODE": processes,
    }
    return Gang(nodes if count is not None else None, environment)


def _mpi_job(spec: Node) -> Gang:
    """Its workers; the launcher only starts ``mpirun``."""
    workers = child(spec, "mpiReplicaSpecs", "Worker")
    if workers is None:
        return Gang()
    count = child(workers, "replicas")
    value: Any = 1 if count is None else _number(count.text)
    place = workers.location if count is None else count.location
    return Gang(Setting("nodes", value, place, Origin.FILE))


_KINDS = {"PyTorchJob": _pytorch_job, "TrainJob": _train_job, "MPIJob": _mpi_job}


def _total(replicas: Optional[Node]) -> Optional[Setting]:
    """Replicas of all roles together."""
    if replicas is None or not replicas.mapping:
        return None
    total = 0
    place = replicas.location
    for entry in replicas.mapping.values():
        count = child(entry.node, "replicas")
        number = 1 if count is None else _number(count.text)
        if isinstance(number, Unknown):
            return Setting("nodes", number, place, Origin.FILE)
        total += number
        place = count.location if count is not None else place
    return Setting("nodes", total, place, Origin.FILE)


def _number(text: Any) -> Any:
    if isinstance(text, Unknown):
        return text
    return int(text) if text.isdigit() and len(text) < 6 else Unknown(f"replicas: {text[:80]}")


def _variable(name: str, count: Setting) -> Setting:
    value = count.value if isinstance(count.value, Unknown) else str(count.value)
    return Setting(name, value, count.location, Origin.ENVIRONMENT)


def _each(node: Optional[Node], place: Optional[Location]) -> Setting:
    """Processes per node: ``auto`` unless set."""
    name = "PET_NPROC_PER_NODE"
    if node is None:
        return Setting(name, "auto", place, Origin.ENVIRONMENT)
    value: Any = node.value if isinstance(node.value, Unknown) else node.text
    return Setting(name, value, node.location, Origin.ENVIRONMENT)
