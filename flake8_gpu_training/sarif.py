"""Diagnostics as SARIF 2.1.0, for code-scanning services and editors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from flake8_gpu_training import __version__
from flake8_gpu_training.checks.base import Check, Priority
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.verdicts import Diagnostic

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Priority.HIGH: "error", Priority.MEDIUM: "warning", Priority.LOW: "note"}


def sarif(found: Sequence[Diagnostic]) -> dict[str, Any]:
    """A SARIF log with one run; paths stay relative to the project."""
    codes = {diagnostic.code for diagnostic in found}
    rules = [check for check in all_checks() if check.code in codes]
    order = {check.code: index for index, check in enumerate(rules)}
    driver = {
        "name": "flake8-gpu-training",
        "version": __version__,
        "rules": [_rule(check) for check in rules],
    }
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "results": [_result(diagnostic, order) for diagnostic in found],
            }
        ],
    }


def _rule(check: Check) -> dict[str, Any]:
    return {
        "id": check.code,
        "name": check.name,
        "shortDescription": {"text": check.title.en},
        "fullDescription": {"text": check.why},
        "help": {"text": check.fix},
        "defaultConfiguration": {"level": _LEVELS[check.priority]},
    }


def _result(diagnostic: Diagnostic, order: dict[str, int]) -> dict[str, Any]:
    location = diagnostic.location
    return {
        "ruleId": diagnostic.code,
        "ruleIndex": order.get(diagnostic.code, -1),
        "level": _LEVELS[diagnostic.priority],
        "message": {"text": diagnostic.message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(location.path)},
                    "region": {"startLine": location.line, "startColumn": location.column},
                }
            }
        ],
    }
