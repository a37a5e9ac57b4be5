"""What DeepSpeed's configuration takes: the sections of a run's document, and its whole."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Optional

from flake8_gpu_training.facts import Document, Entry, Node, Origin, Setting, Unknown
from flake8_gpu_training.frameworks.accepted import Accepted, Part
from flake8_gpu_training.frameworks.at_hand import AtHand, at_hand
from flake8_gpu_training.runs.model import Run, RunKind

_NAME = "deepspeed"
_WHOLE = "config"
_REMOVED = frozenset(
    """
    nebula compression_training amp quantize_training sparse_gradients eigenvalue sparse_attention
    elasticity graph_harvesting curriculum_learning progressive_layer_drop
    """.split()  # noqa: SIM905
)
"""Keys that DeepSpeed 0.19 refuses (runtime/config.py, _REMOVED_TOP_LEVEL_CONFIG_KEYS); other
keys of the top that it does not know it ignores."""
_ALIKE = 0.87
"""How much a key of the top must agree with a real one to be taken for it misspelt."""
_AUTO = "auto"


@dataclass(frozen=True)
class Section:
    """A mapping of the document: the keys to judge, and what its model takes.

    ``is_closed``: an unknown key stops the run; otherwise it is ignored. ``always``: in each
    release that may be installed.
    """

    accepted: Accepted
    settings: tuple[Setting, ...]
    is_closed: bool
    always: bool = True


def sections(run: Run) -> Iterator[Section]:
    """The parts of the run's document whose keys are known, with the keys that stand there."""
    document, release = run.deepspeed, _release(run)
    if document is None or release is None:
        return
    root = document.root.mapping
    misspelt = tuple(_setting(e) for e in root.values() if _is_misspelt(release, e.key, root))
    yield Section(_accepted(release, _WHOLE), misspelt, False)
    gone = tuple(_setting(entry) for key, entry in root.items() if key in _REMOVED)
    yield Section(_accepted(release, _WHOLE), gone, True)
    table = release.table
    for group in table.groups:
        node = document.get(group)
        if group == _WHOLE or node is None or node.kind != "mapping":
            continue
        if table.refuses_others(group, release.version):
            # The models drop what is "auto" before they look at the names.
            given = (_setting(e) for e in node.mapping.values() if e.node.value != _AUTO)
            yield Section(
                _accepted(release, group),
                tuple(given),
                True,
                all(table.refuses_others(group, table.versions[at]) for at in release.allowed),
            )


def whole(run: Run) -> Optional[tuple[Accepted, Mapping[str, Setting]]]:
    """All parameters by dotted name, and what the document gives; ``"auto"`` is not known."""
    document, release = run.deepspeed, _release(run)
    if document is None or release is None:
        return None
    table = release.table
    parts = [Part(release, _WHOLE)]
    parts += [Part(release, group, f"{group}.") for group in table.groups if group != _WHOLE]
    given = {name: _without_auto(setting) for name, setting in _entries("", document.root)}
    return Accepted(tuple(parts)), given


def is_complete(run: Run) -> bool:
    """Whether nothing but the document says what the configuration holds."""
    document = run.deepspeed
    return document is not None and document.path.endswith((".json", ".yaml", ".yml"))


def _entries(prefix: str, node: Node) -> Iterator[tuple[str, Setting]]:
    """Mappings and leaves by dotted name."""
    for entry in node.mapping.values():
        name = f"{prefix}{entry.key}"
        yield name, replace(_setting(entry), name=name)
        yield from _entries(f"{name}.", entry.node)


def _without_auto(setting: Setting) -> Setting:
    return replace(setting, value=Unknown(_AUTO)) if setting.value == _AUTO else setting


def _release(run: Run) -> Optional[AtHand]:
    document = run.deepspeed
    if document is None or run.kind is not RunKind.TRAIN or _is_for_inference(document):
        return None
    return at_hand(run, _NAME)


def _is_for_inference(document: Document) -> bool:
    """Whether it is what ``deepspeed.init_inference`` takes."""
    keys = document.root.mapping.keys()
    return bool(
        keys & {"replace_with_kernel_inject", "kernel_inject", "mp_size", "injection_policy"}
    )


def _accepted(release: AtHand, group: str) -> Accepted:
    return Accepted((Part(release, group),))


def _is_misspelt(release: AtHand, key: str, root: Mapping[str, Entry]) -> bool:
    table = release.table
    names = table.groups[_WHOLE]["parameters"].keys()
    if key in names:
        return False
    near = difflib.get_close_matches(key, names, 1, _ALIKE)
    return bool(near) and near[0] not in root and table.knows(_WHOLE, near[0], release.allowed[-1])


def _setting(entry: Entry) -> Setting:
    node = entry.node
    value: Any = node.plain()
    text = node.text if node.kind == "scalar" else ""
    place = (node.content or node.location) if text else None
    return Setting(entry.key, value, entry.location, Origin.FILE, text=text, value_location=place)
