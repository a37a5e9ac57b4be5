"""What Accelerate refuses: its launcher, its configuration file, Accelerator and the plugins."""

from __future__ import annotations

from flake8_gpu_training.frameworks.refusals.accelerate.constructors import of_constructors
from flake8_gpu_training.frameworks.refusals.accelerate.file import of_file
from flake8_gpu_training.frameworks.refusals.accelerate.launch import of_launch
from flake8_gpu_training.frameworks.refusals.base import Refusal

REFUSALS: tuple[Refusal, ...] = (*of_launch(), *of_file(), *of_constructors())
