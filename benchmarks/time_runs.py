"""Time how long the runs of projects take to be found: CPU seconds of one process.

python benchmarks/time_runs.py TREE ...
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs


def main() -> None:
    for tree in map(Path, sys.argv[1:]):
        before = time.process_time()
        runs = find_runs(Project.open(tree))
        print(
            f"{tree.name}: {len(runs)} runs, {time.process_time() - before:.1f} CPU s", flush=True
        )


if __name__ == "__main__":
    main()
