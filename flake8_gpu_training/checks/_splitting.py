"""Whether Megatron's weights and gradients fit a GPU, and over how many they are to be split."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional

from flake8_gpu_training.checks._scale import GIB, memory_gib, number, ranks, text, tunes_all
from flake8_gpu_training.runs.model import Run

# Bytes a parameter: BF16 weights and FP32 gradients on every rank, 12 of optimizer states
# that the distributed optimizer splits (Megatron-LM, dist_optimizer.md).
_HELD, _SPLIT = 6, 12
_FROZEN = 2
_FULL, _ROOMY = 0.95, 0.9  # of a GPU: certainly too much; room for activations


@dataclass(frozen=True)
class Split:
    """The degrees that make a model fit; ``unsplit`` GiB a GPU holds at present."""

    tensor: int
    pipeline: int
    unsplit: float
    memory: float

    @property
    def reason(self) -> str:
        """Why, in the words of a diagnostic."""
        return f"about {self.unsplit:.0f} GiB a rank exceed a GPU of {self.memory:.0f} GiB"


def needed_split(run: Run) -> Optional[Split]:
    """The degrees a Megatron run needs beyond its own; None when it fits, or cannot be told."""
    tensor, pipeline = number(run, "tensor_parallel"), number(run, "pipeline_parallel")
    world, memory = ranks(run), memory_gib(run)
    if tensor is None or pipeline is None or world is None or memory is None:
        return None
    now = _held(run, int(tensor), int(pipeline), world)
    if now is None or run.hardware.weak or now <= _FULL * memory:
        return None
    widths = _widths(run, int(tensor), world)
    for wider in widths:
        for deeper in _powers(int(pipeline), world // wider):
            need = _held(run, wider, deeper, world)
            fits = need is not None and need <= _ROOMY * memory
            if not fits or not _divides(deeper, run.model.layers):
                continue
            if deeper == pipeline or wider == widths[-1]:
                return Split(wider, deeper, now, memory)
    return None


def _held(run: Run, tensor: int, pipeline: int, world: int) -> Optional[float]:
    """GiB that a rank of a dense model holds; None when it cannot be told."""
    parameters, full = run.model.parameters, tunes_all(run)
    if run.value("megatron") is not True or parameters is None or full is None:
        return None
    if run.model.kind != "LLM" or run.model.is_moe or text(run, "fsdp") not in (None, "none"):
        return None
    if text(run, "precision") == "fp8" or text(run, "offload_optimizer") not in (None, "none"):
        return None
    parts = tensor * pipeline
    copies = max(1, world // parts) if _splits_optimizer(run) else 1
    each = _HELD + _SPLIT / copies if full else _FROZEN
    return parameters * each / parts / GIB


def _splits_optimizer(run: Run) -> bool:
    """ms-swift's default is on (megatron_args.py), Megatron-LM's off."""
    setting = run.setting("use_distributed_optimizer")
    return run.framework == "swift" if setting is None else setting.value is not False


def _widths(run: Run, tensor: int, world: int) -> list[int]:
    """Tensor degrees to try: the user's own, else those that a node and the heads allow."""
    if tensor > 1:
        return [tensor]
    size = run.launcher.processes.value
    heads = (run.model.heads, run.model.kv_heads)
    limit = size if isinstance(size, int) else world
    return [degree for degree in _powers(1, limit) if _divides(degree, *heads)]


def _powers(start: int, limit: int) -> Iterator[int]:
    degree = start
    while degree <= limit:
        yield degree
        degree *= 2


def _divides(degree: int, *counts: Optional[int]) -> bool:
    return all(count is None or count % degree == 0 for count in counts)
