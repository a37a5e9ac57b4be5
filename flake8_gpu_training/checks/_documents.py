"""Changes to values of configuration documents: DeepSpeed files and dicts."""

from __future__ import annotations

import json
from typing import Any, Optional

from flake8_gpu_training.checks.base import Change, Edit
from flake8_gpu_training.facts import Document, Node


def replacement(document: Document, dotted: str, new: Any, bare: bool = False) -> Change:
    """The change that gives ``dotted`` the value ``new``; with an edit where it stands.

    ``bare``: a word that YAML takes without quotes.
    """
    node = document.get(dotted)
    is_plain = bare and document.language == "yaml"
    written = str(new) if is_plain else _rendered(document.language, new)
    key = dotted.rpartition(".")[2]
    line = f"{key}: {written}" if document.language == "yaml" else f'"{key}": {written}'
    old = _as_written(document.language, node) if node is not None else None
    if node is None or old is None:
        return Change(document.language, line)
    return Change(document.language, line, (Edit(node.location, old, written),))


def _rendered(language: str, value: Any) -> str:
    if language == "python" and not isinstance(value, str):
        return repr(value)
    return json.dumps(value)


def _as_written(language: str, node: Node) -> Optional[str]:
    """The text of a scalar at its place, or None when it is not known exactly."""
    if node.kind != "scalar" or not node.text:
        return None
    if node.content is None or node.content == node.location:
        return node.text
    return f'"{node.text}"' if language == "json" else None
