"""How many samples a run trains on, where its data lie in the project or a limit is set."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from typing import Any, Optional

from flake8_gpu_training.facts import ConfigFile, Origin, Setting
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.model import Run

_MAX_LINES_BYTES = 64_000_000
_MAX_JSON_BYTES = 8_000_000
_SAMPLED = re.compile(r"(?P<path>[^#]+)#(?P<count>\d{1,9})")


class Samples:
    """Counts the samples of a project's runs; each file is counted once."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._counted: dict[str, Optional[int]] = {}

    def of(self, run: Run) -> Optional[Setting]:
        """The number of training samples with its place; None when a part of them is not known."""
        dataset = run.practice("dataset")
        if not dataset.known:
            return None
        names = list(_names(dataset.value))
        if not names:
            return None
        limit = _limit(run)
        total = 0
        for name in names:
            count = self._count(run, name)
            if count is None:
                return None
            total += min(count, limit) if limit is not None else count
        note = f"{total:,} samples in {', '.join(names)}"
        return Setting("dataset_samples", total, dataset.location, Origin.DERIVED, note)

    def _count(self, run: Run, name: str) -> Optional[int]:
        sampled = _SAMPLED.fullmatch(name)
        if run.framework == "swift" and sampled is not None:
            whole = self._rows(run, sampled["path"])
            wanted = int(sampled["count"])
            return wanted if whole is None else min(wanted, whole)
        if run.framework == "llamafactory":
            named = self._of_registry(run, name)
            return self._rows(run, named) if named is not None else None
        return self._rows(run, name)

    def _of_registry(self, run: Run, name: str) -> Optional[str]:
        """The file of a dataset that ``dataset_info.json`` describes."""
        folder = run.setting("dataset_dir")
        place = folder.value if folder is not None and isinstance(folder.value, str) else "data"
        path = self._found(run, posixpath.join(place, "dataset_info.json"))
        facts = self.project.read(path) if path is not None else None
        if not isinstance(facts, ConfigFile) or not facts.documents:
            return None
        node = facts.documents[0].get(name) if "." not in name else None
        described = node.mapping.get("file_name") if node is not None else None
        if described is None or not isinstance(described.node.value, str):
            return None
        return posixpath.join(place, described.node.value)

    def _found(self, run: Run, name: str) -> Optional[str]:
        command = run.command
        near = command.location if command is not None else run.location
        directory = command.directory if command is not None else ""
        return self.project.find(name, near.path, directory)

    def _rows(self, run: Run, name: str) -> Optional[int]:
        path = self._found(run, name) if name.endswith((".jsonl", ".json")) else None
        if path is None:
            return None
        if path not in self._counted:
            self._counted[path] = self._read(path)
        return self._counted[path]

    def _read(self, path: str) -> Optional[int]:
        if path.endswith(".jsonl"):
            data = self.project.content(path, _MAX_LINES_BYTES)
            return None if data is None else sum(1 for row in data.splitlines() if row.strip())
        data = self.project.content(path, _MAX_JSON_BYTES)
        try:
            rows = json.loads(data) if data is not None else None
        except (ValueError, RecursionError):
            return None
        return len(rows) if isinstance(rows, list) else None


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from (part for part in re.split(r"[\s,]+", value) if part)
    elif isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        yield from value


def _limit(run: Run) -> Optional[int]:
    """LLaMA-Factory's ``max_samples``: at most so many of each dataset."""
    setting = run.setting("max_samples")
    if run.framework == "llamafactory" and setting is not None and type(setting.value) is int:
        return setting.value
    return None
