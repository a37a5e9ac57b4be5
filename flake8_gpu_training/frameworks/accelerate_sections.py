"""Keys in the sections of Accelerate's configuration file that look misspelt.

``accelerate launch`` copies the keys of a section over its own flags and looks at no others
(accelerate 0.26.1 to 1.15.0, commands/launch.py, _validate_launch_command).
"""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import Optional

from flake8_gpu_training.facts import Entry, Origin, Setting
from flake8_gpu_training.frameworks.accepted import Accepted, Part
from flake8_gpu_training.frameworks.at_hand import AtHand, at_hand
from flake8_gpu_training.runs.model import Run

_GROUP = "launch"
_SECTIONS = {
    "fsdp_config": "fsdp_",
    "deepspeed_config": "",
    "megatron_lm_config": "",
    "dynamo_config": "dynamo_",
    "parallelism_config": "parallelism_config_",
}
"""Sections, and the beginning that their keys must have to be judged."""
_ALIKE = 0.87


def misspelt(run: Run) -> Optional[tuple[Accepted, tuple[Setting, ...]]]:
    """What the launcher takes, and the keys that it does not know but for a letter or two."""
    release = at_hand(run, "accelerate")
    if run.accelerate is None or release is None:
        return None
    found: list[Setting] = []
    for section, beginning in _SECTIONS.items():
        node = run.accelerate.get(section)
        keys = node.mapping if node is not None else {}
        found += [
            _setting(entry)
            for name, entry in keys.items()
            if name.startswith(beginning) and _is_misspelt(release, name, keys.keys())
        ]
    return Accepted((Part(release, _GROUP),)), tuple(found)


def _is_misspelt(release: AtHand, name: str, beside: Collection[str]) -> bool:
    known = release.table.groups[_GROUP]["parameters"].keys()
    if name in known:
        return False
    at_hand_now = release.table.parameters(_GROUP, release.version)
    near = difflib.get_close_matches(name, at_hand_now, 1, _ALIKE)
    return bool(near) and near[0] not in beside


def _setting(entry: Entry) -> Setting:
    node = entry.node
    text = node.text if node.kind == "scalar" else ""
    place = (node.content or node.location) if text else None
    return Setting(
        entry.key, node.plain(), entry.location, Origin.FILE, text=text, value_location=place
    )
