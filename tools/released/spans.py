"""Many releases as one compact table: each parameter by the spans of versions that agree."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from released.classes import NOTHING, Field

Group = Mapping[str, Field]
"""The parameters of one class or parser in one release, by name."""


def table(
    distribution: str,
    versions: Sequence[str],
    releases: Sequence[Mapping[str, Group]],
    extends: Mapping[str, Sequence[Sequence[str]]],
    requires: Sequence[Mapping[str, str]] = (),
    closed: Sequence[Collection[str]] = (),
) -> dict[str, Any]:
    """The table of a distribution: ``releases`` are its groups by name, version by version.

    ``requires``: what each release asks of the distributions that it extends. ``closed``: its
    groups that refuse names which they do not declare.
    """
    names = sorted({name for release in releases for name in release})
    groups: dict[str, Any] = {}
    for group in names:
        parameters = sorted({p for release in releases for p in release.get(group, {})})
        entry: dict[str, Any] = {
            "since": next(i for i, release in enumerate(releases) if group in release),
            "until": max(i for i, release in enumerate(releases) if group in release),
            "parameters": {name: _spans(name, group, releases) for name in parameters},
        }
        if extends.get(group):
            entry["extends"] = [list(one) for one in extends[group]]
        refusing = _runs(i for i, release in enumerate(closed) if group in release)
        if refusing:
            entry["closed"] = refusing
        groups[group] = entry
    bases = sorted({name for release in requires for name in release})
    return {
        "distribution": distribution,
        "versions": list(versions),
        "requires": {name: [release.get(name, "") for release in requires] for name in bases},
        "groups": groups,
    }


def _runs(indices: Iterable[int]) -> list[list[int]]:
    """Sorted indices as first and last of each unbroken run."""
    found: list[list[int]] = []
    for index in indices:
        if found and found[-1][1] == index - 1:
            found[-1][1] = index
        else:
            found.append([index, index])
    return found


def _spans(name: str, group: str, releases: Sequence[Mapping[str, Group]]) -> list[Any]:
    spans: list[Any] = []
    for index, release in enumerate(releases):
        field = release.get(group, {}).get(name)
        if field is None:
            continue
        facts = _facts(field)
        if spans and spans[-1][1] == index - 1 and spans[-1][2] == facts:
            spans[-1][1] = index
        else:
            spans.append([index, index, facts])
    return spans


def _facts(field: Field) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if field.types and "?" not in field.types:
        facts["type"] = "|".join(field.types)
    if field.optional:
        facts["optional"] = True
    if field.default is not NOTHING:
        facts["default"] = field.default
    if field.choices:
        facts["choices"] = list(field.choices)
    if field.aliases:
        facts["aliases"] = list(field.aliases)
    if field.negatable:
        facts["negatable"] = True
    if field.deprecated:
        facts["deprecated"] = True
    return facts


def shared(data: Mapping[str, Any]) -> dict[str, Any]:
    """The table with the spans that several parameters have told once, and named by number."""
    groups = data["groups"]
    uses = Counter(_compact(s) for group in groups.values() for s in group["parameters"].values())
    numbers = {text: i for i, text in enumerate(t for t, n in uses.items() if n > 1 and len(t) > 8)}
    return {
        **data,
        "shared": [json.loads(text) for text in numbers],
        "groups": {
            name: {
                **group,
                "parameters": {
                    parameter: numbers.get(_compact(spans), spans)
                    for parameter, spans in group["parameters"].items()
                },
            }
            for name, group in groups.items()
        },
    }


def dumped(data: Mapping[str, Any]) -> str:
    """The table as JSON, a parameter a line, so that a change of versions reads well."""
    lines = [
        "{",
        f'"distribution": {json.dumps(data["distribution"])},',
        f'"versions": {json.dumps(data["versions"])},',
        f'"requires": {json.dumps(data["requires"])},',
        '"shared": [',
        ",\n".join(_compact(spans) for spans in data["shared"]),
        "],",
        '"groups": {',
    ]
    groups = list(data["groups"].items())
    for position, (name, group) in enumerate(groups):
        head = {key: value for key, value in group.items() if key != "parameters"}
        lines.append(f'{json.dumps(name)}: {json.dumps(head)[:-1]}, "parameters": {{')
        rows = [f"{json.dumps(p)}: {_compact(s)}" for p, s in group["parameters"].items()]
        lines.append(",\n".join(rows))
        lines.append("}}" + ("," if position + 1 < len(groups) else ""))
    return "\n".join([*lines, "}", "}"]) + "\n"


def _compact(spans: Any) -> str:
    return json.dumps(spans, separators=(",", ":"), ensure_ascii=False)
