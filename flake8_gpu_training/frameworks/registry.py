"""Every framework by id."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from flake8_gpu_training.frameworks.base import Framework

MODULES = {
    "llamafactory": "llamafactory",
    "swift": "swift",
    "videox_fun": "videox_fun",
    "flow_factory": "flow_factory",
    "vllm": "vllm",
    "sglang": "sglang",
    "hf_trainer": "transformers",
    "generic": "pytorch",
}


def framework_of(identifier: str) -> Framework:
    """The framework with this id (a key of MODULES); its module is imported on first use."""
    module = import_module(f"flake8_gpu_training.frameworks.{MODULES[identifier]}")
    return cast(Framework, module.FRAMEWORK)
