"""The audits, a module each: categories with their maxima, and the names of their items.

Which check serves which item, and for how many points, is declared beside the checks; this
package gives only what a reader of the reports sees.
"""

from __future__ import annotations

from typing import Optional

from report_builder.audits.base import Audit, Category
from report_builder.audits.flow_factory import FLOW_FACTORY
from report_builder.audits.general import GENERAL
from report_builder.audits.llamafactory import LLAMAFACTORY
from report_builder.audits.sglang import SGLANG
from report_builder.audits.swift import SWIFT
from report_builder.audits.transformers import TRANSFORMERS
from report_builder.audits.videox_fun import VIDEOX_FUN
from report_builder.audits.vllm import VLLM

__all__ = ["AUDITS", "Audit", "Category", "audit_of"]

# Order of the JSON report.
AUDITS = (
    GENERAL,
    SWIFT,
    LLAMAFACTORY,
    VIDEOX_FUN,
    FLOW_FACTORY,
    TRANSFORMERS,
    VLLM,
    SGLANG,
)


def audit_of(identifier: str) -> Optional[Audit]:
    """The audit with this id, or None."""
    return next((audit for audit in AUDITS if audit.id == identifier), None)
