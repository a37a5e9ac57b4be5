"""The lowest ZeRO stage that holds a run, by the memory estimate's high end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Optional

from flake8_gpu_training.facts import Origin, Setting
from flake8_gpu_training.memory import estimate
from flake8_gpu_training.runs.model import Run

# Lowest first: the stage, and whether optimizer states (at stage 3 weights too) are offloaded.
LADDER = ((2, False), (2, True), (3, False), (3, True))


@dataclass(frozen=True)
class Fit:
    """A stage that holds a run: at most ``need`` of ``memory`` GiB per GPU, ``states`` of them
    for weights, gradients and optimizer."""

    stage: int
    offload: bool
    need: float
    states: float
    memory: float


def lowest_fit(run: Run) -> Optional[Fit]:
    """The lowest stage whose estimate fits with its margin; None when none does, or when the
    GPUs, their memory, the model's shape or the batch are not known."""
    memory = run.hardware.memory_gib
    ranks = run.launcher.world_size
    if memory is None or ranks is None or ranks < 2:
        return None
    for stage, offload in LADDER:
        found = estimate(at_stage(run, stage, offload))
        if found is None:
            return None
        if found.high <= memory:
            states = sum(found.parts[name] for name in ("weights", "gradients", "optimizer"))
            return Fit(stage, offload, found.high, states, memory)
    return None


def at_stage(run: Run, stage: int, offload: bool) -> Run:
    """``run`` as it would be under this stage."""
    device = "cpu" if offload else "none"
    assumed: dict[str, Any] = {
        "zero_stage": stage,
        "offload_optimizer": device,
        "offload_param": device if stage == 3 else "none",
        "fsdp": "none",
        "fsdp_offload": False,
    }
    derived = {n: Setting(n, value, None, Origin.DERIVED) for n, value in assumed.items()}
    return replace(run, profile={**run.profile, **derived})
