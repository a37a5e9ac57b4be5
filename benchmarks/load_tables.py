"""How long each parameter table takes to load, in CPU milliseconds; the best of ten."""

from __future__ import annotations

import time
from pathlib import Path

from flake8_gpu_training.frameworks import tables

_FOLDER = Path(tables.__file__).parent / "parameters"
_ROUNDS = 10


def milliseconds(distribution: str) -> float:
    """CPU time of one load."""
    best = float("inf")
    for _ in range(_ROUNDS):
        tables.table_of.cache_clear()
        begun = time.process_time()
        tables.table_of(distribution)
        best = min(best, time.process_time() - begun)
    return best * 1000


if __name__ == "__main__":
    for path in sorted(_FOLDER.glob("*.json")):
        size = path.stat().st_size / 1000
        print(f"{path.stem:14} {size:7.0f} kB {milliseconds(path.stem):6.1f} ms")
