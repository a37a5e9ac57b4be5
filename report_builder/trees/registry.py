"""Which audit has which decision tree."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Optional

from flake8_gpu_training.frameworks.llamafactory_v1 import is_v1
from flake8_gpu_training.runs.model import Run
from report_builder.trees.base import Branch
from report_builder.trees.flow_factory import FLOW_FACTORY
from report_builder.trees.llamafactory import LLAMAFACTORY
from report_builder.trees.llamafactory_v1 import LLAMAFACTORY_V1
from report_builder.trees.sglang import SGLANG
from report_builder.trees.swift import SWIFT
from report_builder.trees.transformers import TRANSFORMERS
from report_builder.trees.videox_fun import VIDEOX_FUN
from report_builder.trees.vllm import VLLM

TREES: Mapping[str, tuple[Branch, ...]] = MappingProxyType(
    {
        "swift": SWIFT,
        "llamafactory": LLAMAFACTORY,
        "transformers": TRANSFORMERS,
        "videox-fun": VIDEOX_FUN,
        "flow-factory": FLOW_FACTORY,
        "vllm": VLLM,
        "sglang": SGLANG,
    }
)
"""By id of the audit; an audit without one prints no tree."""


def tree_of(identifier: str, run: Optional[Run]) -> Optional[tuple[Branch, ...]]:
    """The tree of an audit, in the arguments that its run takes."""
    if identifier == "llamafactory" and run is not None and is_v1(run):
        return LLAMAFACTORY_V1
    return TREES.get(identifier)
