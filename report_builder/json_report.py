"""The report for machines: static-analysis-report.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from flake8_gpu_training import __version__
from flake8_gpu_training.checks.base import Change, Evidence
from flake8_gpu_training.facts import Location, Setting, known
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.verdicts import Diagnostic
from report_builder.recommendations import Recommendation
from report_builder.report import Report
from report_builder.scoring import ScoredAudit, ScoredCategory, ScoredItem
from report_builder.wording import nested_yaml, redacted


def as_json(report: Report, lang: str) -> dict[str, Any]:
    """The report as plain data without secrets; sentences are in ``lang``."""
    data = {
        "schema_version": 1,
        "tool": {"name": "flake8-gpu-training", "version": __version__},
        "generated": report.generated,
        "language": lang,
        "project": _project(report),
        "frameworks": {
            "training": report.training,
            "vllm": report.vllm,
            "sglang": report.sglang,
            "evidence": [
                {
                    "framework": evidence.framework,
                    "rule": evidence.rule,
                    **_at(evidence.location),
                    "text": evidence.text,
                }
                for evidence in report.evidence
            ],
        },
        "runs": [_run(run, run is report.primary) for run in report.runs],
        "bottleneck": {
            "kind": report.bottleneck.kind,
            "evidence": report.bottleneck.evidence.say(lang),
        },
        "audits": [_audit(audit) for audit in report.audits],
        "diagnostics": [_diagnostic(diagnostic) for diagnostic in report.diagnostics],
        "recommendations": [
            _recommendation(entry, report.patches.get(entry.rank, ""), lang)
            for entry in report.recommendations
        ],
        "memory": _memory(report),
        "advice": _advice(report, lang),
    }
    redacted_data: dict[str, Any] = _redacted(data)
    return redacted_data


def _redacted(data: Any, key: str = "") -> Any:
    """``data`` with secrets hidden in every text; a patch stays what ``patch`` takes."""
    if isinstance(data, str):
        return data if key in ("patch", "path") else redacted(data)
    if isinstance(data, dict):
        return {name: _redacted(value, name) for name, value in data.items()}
    if isinstance(data, list):
        return [_redacted(value) for value in data]
    return data


def _at(location: Optional[Location]) -> dict[str, Any]:
    if location is None:
        return {"path": None, "line": None}
    return {"path": location.path, "line": location.line}


def _project(report: Report) -> dict[str, Any]:
    run = report.primary
    model = run.model if run is not None else None
    hardware = run.hardware if run is not None else None
    return {
        "path": report.path,
        "launch_command": report.options.launch_command or None,
        "goal": report.options.goal,
        "model": {
            "name": model.name if model else None,
            "kind": model.kind if model else "unknown",
            "parameters": model.parameters if model else None,
            "source": model.source if model else "",
        },
        "hardware": {
            "gpu": hardware.gpu if hardware else None,
            "gpus_per_node": hardware.gpus_per_node if hardware else None,
            "nodes": hardware.nodes if hardware else None,
            "memory_gib": hardware.memory_gib if hardware else None,
            "source": hardware.source if hardware else "",
        },
    }


def _run(run: Run, primary: bool) -> dict[str, Any]:
    return {
        "id": run.id,
        "kind": run.kind.value,
        "framework": run.framework,
        "primary": primary,
        "files": sorted(run.files),
        "settings": _settings(run.settings),
        "profile": _settings(run.profile),
    }


def _settings(settings: Mapping[str, Setting]) -> dict[str, Any]:
    return {
        name: {
            "value": plain(settings[name].value),
            **_at(settings[name].location),
            "origin": settings[name].origin.value,
        }
        for name in sorted(settings)
    }


def plain(value: Any) -> Any:
    """``value`` as JSON has it; null for what is not known, text for what JSON has not."""
    if not known(value):
        return None
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and value - value != 0:  # infinity or not a number
        return str(value)
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def _audit(audit: ScoredAudit) -> dict[str, Any]:
    return {
        "id": audit.audit.id,
        "score": audit.score,
        "max": audit.maximum,
        "attainment": audit.attainment,
        "categories": [_category(category) for category in audit.categories],
    }


def _category(scored: ScoredCategory) -> dict[str, Any]:
    return {
        "id": scored.category.id,
        "score": scored.score,
        "max": scored.maximum,
        "attainment": scored.attainment,
        "items": [_item(item) for item in scored.items],
    }


def _item(item: ScoredItem) -> dict[str, Any]:
    return {
        "id": item.id,
        "code": item.code or None,
        "status": item.status.value,
        "points": round(item.points, 4),
        "max_points": round(item.max_points, 4),
        "evidence": [_evidence(evidence) for evidence in item.evidence],
    }


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {**_at(evidence.location), "text": evidence.text}


def _diagnostic(diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        "code": diagnostic.code,
        "path": diagnostic.location.path,
        "line": diagnostic.location.line,
        "column": diagnostic.location.column,
        "message": diagnostic.message,
        "priority": diagnostic.priority.value,
        "run": diagnostic.run,
    }


def _recommendation(entry: Recommendation, patch: str, lang: str) -> dict[str, Any]:
    impact = entry.impact
    change = entry.change
    return {
        "rank": entry.rank,
        "priority": entry.priority.value,
        "level": entry.safety,
        "code": entry.code,
        "title": entry.title.say(lang),
        "current": entry.current.say(lang) or "; ".join(e.text for e in entry.evidence),
        "action": entry.action.say(lang),
        "impact": {
            "throughput_percent": list(impact.throughput) if impact.throughput else None,
            "memory_percent": list(impact.memory) if impact.memory else None,
            "note": impact.note.say(lang),
            "source": impact.source,
        },
        "difficulty": entry.difficulty,
        "change": {"language": change.language, "text": _written(change)} if change else None,
        "patch": patch or None,
        "places": [
            {**_at(finding.location), "message": finding.message} for finding in entry.findings
        ],
    }


def _written(change: Change) -> str:
    return nested_yaml(change.text) if change.language == "yaml" else change.text


def _memory(report: Report) -> Optional[dict[str, Any]]:
    memory = report.memory
    if memory is None:
        return None
    return {
        "per_gpu_gib": round(memory.total, 1),
        "range_gib": [round(memory.low, 1), round(memory.high, 1)],
        "sample_length": memory.sample_length,
        "max_length": memory.max_length,
        "max_length_gib": None if memory.full_total is None else round(memory.full_total, 1),
        "parts": {name: round(size, 2) for name, size in memory.parts.items()},
        "offloaded": list(memory.offloaded),
        "fits": memory.fits,
    }


def _advice(report: Report, lang: str) -> dict[str, Any]:
    flash, deepspeed = report.flash, report.deepspeed
    return {
        "flash_attention": {
            "version": flash.version,
            "reason": flash.reason.say(lang),
            "install": flash.install,
            "integration": _written(flash.integration),
        },
        "deepspeed": {
            "stage": deepspeed.stage,
            "offload": deepspeed.offload,
            "reason": deepspeed.reason.say(lang),
            "config": dict(deepspeed.config),
        },
    }
