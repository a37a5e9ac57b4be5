"""Ranks of nodes that programs hand from the environment to torchrun, which never meets them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Callable, Optional

from flake8_gpu_training.facts import Location, known
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.language import Text

_BY_SERVICE = ("RDZV_ID", "PET_RDZV_BACKEND", "MIN_NNODES", "MAX_NNODES")
_OFF = frozenset({"", "0", "false", "n", "no"})


def _number(options: Options, name: str) -> Optional[int]:
    setting = options.run.environment.get(name)
    if setting is None or not known(setting.value):
        return None
    text = str(setting.value)
    return int(text) if re.fullmatch(r"\d+", text) else None


def _beyond(is_torchrun: Callable[[Options], bool]) -> Callable[[Options], bool]:
    def refused(options: Options) -> bool:
        environment = options.run.environment
        if any(name in environment for name in _BY_SERVICE) or not is_torchrun(options):
            return False
        nodes, rank = _number(options, "NNODES"), _number(options, "NODE_RANK")
        return nodes is not None and rank is not None and 0 < nodes <= rank

    return refused


def _figures(options: Options) -> Mapping[str, Any]:
    return {"nodes": _number(options, "NNODES"), "rank": _number(options, "NODE_RANK")}


def _place(options: Options) -> Optional[Location]:
    return options.run.environment["NODE_RANK"].location


def is_forced(options: Options) -> bool:
    """Whether LLaMA-Factory is told to start torchrun however many GPUs there are."""
    setting = options.run.environment.get("FORCE_TORCHRUN")
    return setting is not None and known(setting.value) and str(setting.value).lower() not in _OFF


def rank_beyond(
    name: str, source: str, is_torchrun: Callable[[Options], bool], since: str
) -> Refusal:
    """NODE_RANK is no number below NNODES."""
    return Refusal(
        name,
        source,
        (),
        _beyond(is_torchrun),
        Text("NODE_RANK 取 0 到 NNODES 减 1", "give NODE_RANK from 0 to NNODES less one"),
        Text(
            "{nodes} 个节点中没有编号 {rank}，各节点无法集合",
            "of {nodes} nodes none has the rank {rank}, and they never meet",
        ),
        figures=_figures,
        at=_place,
        stops="torchrun stops at its rendezvous",
        since=since,
    )
