"""Distributions whose source a project holds itself: what they take, no release can tell."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

# A file that only the source of the distribution has.
_SOURCES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "transformers": ("transformers/training_args.py",),
        "trl": ("trl/trainer/utils.py",),
        "peft": ("peft/peft_model.py",),
        "accelerate": ("accelerate/accelerator.py",),
        "ms-swift": ("swift/cli/main.py",),
        "llamafactory": ("llamafactory/hparams/parser.py", "llmtuner/hparams/parser.py"),
        "vllm": ("vllm/engine/arg_utils.py",),
        "sglang": ("sglang/srt/server_args.py",),
        "deepspeed": ("deepspeed/runtime/config.py",),
        "flow-factory": ("flow_factory/hparams/args.py",),
        "videox-fun": ("videox_fun/models/__init__.py",),
    }
)


def held_by(paths: Iterable[str]) -> frozenset[str]:
    """Distributions whose source is among a project's files."""
    names = {mark: name for name, marks in _SOURCES.items() for mark in marks}
    found: set[str] = set()
    for path in paths:
        parts = path.rsplit("/", 4)
        for start in range(len(parts)):
            name = names.get("/".join(parts[start:]))
            if name is not None:
                found.add(name)
    return frozenset(found)


def held_in(folder: Path) -> frozenset[str]:
    """The same of a folder whose files are not listed."""
    return frozenset(
        name
        for name, marks in _SOURCES.items()
        for mark in marks
        if (folder / mark).is_file() or (folder / "src" / mark).is_file()
    )


# Repositories by another name than the distribution's.
_REPOSITORIES: Mapping[str, str] = MappingProxyType(
    {"llama-factory": "llamafactory", "swift": "ms-swift", "flow-factory": "flow-factory"}
)
_OF_ONES_OWN = re.compile(r"[-_](?:forks?|custom|patched|modified|mod|dev|private|internal|own)$")


def repository_of(address: str) -> str:
    """The distribution whose source, or a fork of it, a repository or folder has; "" if none."""
    name = posixpath.basename(address.rstrip("/").removesuffix(".git")).lower()
    name = _OF_ONES_OWN.sub("", name).replace("_", "-")
    name = _REPOSITORIES.get(name, name)
    return name if name in _SOURCES else ""


def named_in_submodules(text: str) -> frozenset[str]:
    """Distributions whose source is a submodule, by the text of ``.gitmodules``."""
    stated = re.findall(r"(?m)^\s*(?:path|url)\s*=\s*(\S+)", text)
    return frozenset(repository_of(one) for one in stated) - {""}
