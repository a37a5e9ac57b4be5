"""Which audit has which decision tree."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from report_builder.trees.base import Branch
from report_builder.trees.llamafactory import LLAMAFACTORY
from report_builder.trees.sglang import SGLANG
from report_builder.trees.swift import SWIFT
from report_builder.trees.transformers import TRANSFORMERS

TREES: Mapping[str, tuple[Branch, ...]] = MappingProxyType(
    {"swift": SWIFT, "llamafactory": LLAMAFACTORY, "transformers": TRANSFORMERS, "sglang": SGLANG}
)
"""By id of the audit; an audit without one prints no tree."""
