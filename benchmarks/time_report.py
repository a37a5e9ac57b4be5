"""Time the whole report over each tree given.

python benchmarks/time_report.py TREE [TREE ...]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from report_builder.cli import main as report


def main() -> None:
    print(f"{'seconds':>8}  {'files':>7}  tree")
    for tree in sys.argv[1:]:
        files = sum(1 for path in Path(tree).rglob("*") if path.is_file())
        with tempfile.TemporaryDirectory() as output:
            start = time.perf_counter()
            status = report([tree, "--output-dir", output, "--quiet"])
            took = time.perf_counter() - start
        print(f"{took:8.1f}  {files:7}  {Path(tree).name}{'' if status == 0 else f' ({status})'}")


if __name__ == "__main__":
    main()
