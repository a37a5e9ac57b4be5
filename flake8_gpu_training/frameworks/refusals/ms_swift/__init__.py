"""What ms-swift refuses at start: its own arguments, and the first steps of its pipelines."""

from __future__ import annotations

from flake8_gpu_training.frameworks.refusals.base import Refusal
from flake8_gpu_training.frameworks.refusals.ms_swift import (
    gkd,
    grpo,
    grpo_batches,
    megatron,
    megatron_batches,
    models,
    rlhf,
    rollout,
    serving,
    training,
)

REFUSALS: tuple[Refusal, ...] = (
    *models.REFUSALS,
    *training.REFUSALS,
    *rlhf.REFUSALS,
    *rollout.REFUSALS,
    *gkd.REFUSALS,
    *grpo.REFUSALS,
    *grpo_batches.REFUSALS,
    *serving.REFUSALS,
    *megatron.REFUSALS,
    *megatron_batches.REFUSALS,
)
