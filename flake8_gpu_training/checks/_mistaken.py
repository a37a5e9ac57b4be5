"""What several checks of mistakes ask, and what a mistake brings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

from flake8_gpu_training.checks._documents import replacement
from flake8_gpu_training.checks.base import (
    Change,
    Impact,
)
from flake8_gpu_training.facts import Document, Location, Setting, known
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run


def written(run: Run, name: str) -> Optional[Setting]:
    """The framework's own parameter when the user wrote it and its value is known."""
    setting = run.setting(name)
    if setting is None or not setting.explicit or not setting.known:
        return None
    return setting


def is_on(run: Run, name: str) -> Optional[Setting]:
    """The parameter when the user turned it on."""
    setting = written(run, name)
    if setting is None:
        return None
    value = setting.value
    return setting if value is True or str(value).lower() == "true" else None


def value_of(run: Run, name: str) -> Any:
    """What the user wrote for the parameter; None where it is not written or not known."""
    setting = written(run, name)
    return None if setting is None else setting.value


def place_of(setting: Setting) -> Location:
    """Where a written setting stands."""
    assert setting.location is not None  # only written settings get here
    return setting.location


def documents_of(run: Run) -> Iterator[Document]:
    """The configuration documents of a run, each once."""
    told: list[Document] = []
    for document in (run.place.document, run.deepspeed, run.accelerate):
        if document is not None and not any(document is other for other in told):
            told.append(document)
            yield document


def entry_of(document: Optional[Document], dotted: str) -> Optional[Setting]:
    """A scalar of a document as a setting with its place, when it is known.

    A number as the last part tells an item of a list.
    """
    node = document.get(dotted) if document is not None else None
    owner, _, last = dotted.rpartition(".")
    if node is None and document is not None and last.isdigit():
        items = listed.items if (listed := document.get(owner)) is not None else ()
        node = items[int(last)] if int(last) < len(items) else None
    if node is None or node.kind != "scalar" or not known(node.value):
        return None
    return Setting(dotted, node.value, node.location, text=node.text)


def replaced(run: Run, dotted: str, new: Any) -> Optional[Change]:
    """The change of a value of the run's DeepSpeed configuration."""
    return None if run.deepspeed is None else replacement(run.deepspeed, dotted, new)


ON_TRAINER = ("hf_trainer", "swift", "llamafactory")


def deepspeed_has_both(run: Run) -> bool:
    """Whether the DeepSpeed configuration turns fp16 and bf16 on."""
    entries = [entry_of(run.deepspeed, f"{name}.enabled") for name in ("fp16", "bf16")]
    return all(entry is not None and entry.value is True for entry in entries)


FAILS = Impact(note=Text("不修复则启动失败", "the run fails at start until it is mended"))


IGNORED = Impact(note=Text("当前设置不生效", "what was asked for has no effect"))
