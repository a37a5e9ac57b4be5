"""Blocks of documents whose text is Python though their name is a shell script's."""

from __future__ import annotations

from typing import Optional

from flake8_gpu_training.facts import ProblemKind, PythonFile
from flake8_gpu_training.project import Project
from flake8_gpu_training.sources.python import read_python

_MAX_BYTES = 100_000
_STARTS_SERVER = b"launch_server_cmd("
"""Of ``sglang.utils``, by which SGLang's documents start their servers."""


def python_of(project: Project, path: str) -> Optional[PythonFile]:
    """The file at ``path`` as Python, where it is that and starts a server."""
    data = project.content(path, _MAX_BYTES)
    if data is None or _STARTS_SERVER not in data:
        return None
    file = read_python(data, path)
    return None if any(p.kind is ProblemKind.SYNTAX for p in file.problems) else file
