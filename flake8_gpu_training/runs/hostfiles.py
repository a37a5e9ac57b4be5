"""DeepSpeed's hostfiles and filters: which slots of which hosts a launch uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Optional

Slots = Mapping[str, tuple[int, ...]]
"""Slot numbers by host, as ``deepspeed/launcher/runner.py`` (0.19) keeps its resources."""

_ENTRY = re.compile(r"(\S+)\s+slots=(\d{1,4})")
_SLOT_LIST = re.compile(r"\d{1,4}(?:,\d{1,4})*")
_MAX_LINES = 4096


def read_hostfile(text: str) -> Optional[Slots]:
    """Hosts of a hostfile with their slots, or None when the launcher refuses it."""
    found: dict[str, tuple[int, ...]] = {}
    for line in text.splitlines()[:_MAX_LINES]:
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        match = _ENTRY.match(bare)
        if match is None or match.group(1) in found:
            return None
        found[match.group(1)] = tuple(range(int(match.group(2))))
    return found or None


def read_filter(text: str) -> Optional[dict[str, tuple[int, ...]]]:
    """``a@b:0,2`` as slots by host: none for a host that is named without slots."""
    found: dict[str, tuple[int, ...]] = {}
    for part in text.split("@"):
        host, colon, slots = part.partition(":")
        if not host or (colon and not _SLOT_LIST.fullmatch(slots)):
            return None
        chosen = {int(slot) for slot in slots.split(",")} if colon else set()
        found[host] = tuple(sorted(chosen.union(found.get(host, ()))))
    return found


def included(pool: Slots, text: str) -> Optional[Slots]:
    """What ``--include`` leaves of ``pool``; None when the launcher refuses it."""
    wanted = read_filter(text)
    if wanted is None or not _is_part(wanted, pool):
        return None
    return {host: wanted[host] or slots for host, slots in pool.items() if host in wanted}


def excluded(pool: Slots, text: str) -> Optional[Slots]:
    """What ``--exclude`` leaves of ``pool``; None when the launcher refuses it."""
    unwanted = read_filter(text)
    if unwanted is None or not _is_part(unwanted, pool):
        return None
    left: dict[str, tuple[int, ...]] = {}
    for host, slots in pool.items():
        if host in unwanted:
            gone = unwanted[host] or slots
            slots = tuple(slot for slot in slots if slot not in gone)
        if slots:
            left[host] = slots
    return left or None


def _is_part(some: Slots, pool: Slots) -> bool:
    return all(host in pool and set(slots) <= set(pool[host]) for host, slots in some.items())
