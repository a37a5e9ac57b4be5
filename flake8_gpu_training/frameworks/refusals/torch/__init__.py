"""What PyTorch's loaders, samplers, wrappers, optimizers, schedules and launcher refuse."""

from __future__ import annotations

from flake8_gpu_training.frameworks.refusals.base import Refusal
from flake8_gpu_training.frameworks.refusals.torch.loaders import of_loaders
from flake8_gpu_training.frameworks.refusals.torch.optimizers import of_optimizers
from flake8_gpu_training.frameworks.refusals.torch.torchrun import TORCHRUN
from flake8_gpu_training.frameworks.refusals.torch.wrappers import (
    of_groups,
    of_precision,
    of_wrappers,
)

REFUSALS: tuple[Refusal, ...] = (
    *of_loaders(),
    *of_wrappers(),
    *of_groups(),
    *of_precision(),
    *of_optimizers(),
    *TORCHRUN,
)
