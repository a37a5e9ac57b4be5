"""Write frameworks/requires.json: what released distributions ask of each other and of Python.

Ask pip for the metadata of each release first, without installing anything::

    pip install --dry-run --ignore-installed --ignore-requires-python --no-deps \\
        --report reports/trl-0.15.2.json trl==0.15.2

then ``python tools/make_requirement_table.py reports``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

FRAMEWORKS = Path(__file__).resolve().parent.parent / "flake8_gpu_training/frameworks"
BUILT_ON = frozenset({"huggingface-hub", "tokenizers"})
"""Distributions that projects pin and releases of the frameworks choose between."""
MACHINE = {"python_version": "3.11", "python_full_version": "3.11.0", "extra": ""}


def write(folder: Path) -> None:
    """Writes the table from all reports in ``folder``."""
    names = BUILT_ON | {path.stem for path in (FRAMEWORKS / "parameters").glob("*.json")}
    found: dict[str, dict[Version, dict[str, str]]] = {}
    for path in sorted(folder.glob("*-*.json")):
        report = json.loads(path.read_text(encoding="utf-8"))
        metadata = report["install"][0]["metadata"]
        own = canonicalize_name(metadata["name"])
        found.setdefault(own, {})[Version(metadata["version"])] = _asked(metadata, names - {own})
    table = {name: _spans(releases) for name, releases in sorted(found.items())}
    text = json.dumps(table, separators=(",", ":"), sort_keys=True)
    (FRAMEWORKS / "requires.json").write_text(f"{text}\n", encoding="utf-8")


def _asked(metadata: dict[str, Any], names: frozenset[str]) -> dict[str, str]:
    asked = {"python": metadata.get("requires_python", "")}
    for text in metadata.get("requires_dist", ()):
        wanted = Requirement(text)
        name = canonicalize_name(wanted.name)
        applies = wanted.marker is None or wanted.marker.evaluate(MACHINE)
        if name in names and applies:
            asked[name] = ",".join(filter(None, (asked.get(name, ""), str(wanted.specifier))))
    return {name: specifier for name, specifier in asked.items() if specifier}


def _spans(releases: dict[Version, dict[str, str]]) -> dict[str, Any]:
    """For each name, first and last of the releases that ask the same of it."""
    versions = sorted(releases)
    spans: dict[str, list[list[Any]]] = {}
    for index, version in enumerate(versions):
        for name, specifier in releases[version].items():
            known = spans.setdefault(name, [])
            if known and known[-1][1] == index - 1 and known[-1][2] == specifier:
                known[-1][1] = index
            else:
                known.append([index, index, specifier])
    return {"versions": [str(version) for version in versions], "requires": spans}


if __name__ == "__main__":
    write(Path(sys.argv[1]))
