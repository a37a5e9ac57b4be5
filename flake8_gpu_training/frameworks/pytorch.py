"""Plain PyTorch and Accelerate programs: practices read from the code itself."""

from __future__ import annotations

from flake8_gpu_training.frameworks.base import Framework

FRAMEWORK = Framework(id="generic", title="PyTorch", distribution="torch")
