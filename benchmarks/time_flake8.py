"""Time flake8 bare, with this plugin, and with TorchFix, over the same tree in one run.

    python benchmarks/time_flake8.py TREE [--repeat 3] [--environments DIR]

Three virtual environments are made (kept in DIR when given), since flake8 runs every
plugin that is installed. Prints the CPU seconds of each, the best of the repeats, and what
each plugin adds to bare flake8.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "bare": ["flake8"],
    "gpu-training": ["flake8", str(PROJECT)],
    "torchfix": ["flake8", "torchfix"],
}


def make_environment(folder: Path, packages: list[str]) -> Path:
    """The flake8 of an environment with ``packages``."""
    flake8 = folder / "bin" / "flake8"
    if not flake8.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "pip"), "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, *packages], check=True)
    if str(PROJECT) in packages:
        # The version may not have changed since the environment was made, the code may.
        subprocess.run([*pip, "--force-reinstall", "--no-deps", str(PROJECT)], check=True)
    return flake8


def seconds(flake8: Path, tree: Path) -> tuple[float, float]:
    """(CPU seconds, wall seconds) of one run with one process."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [str(flake8), "--isolated", "-j1", "--exit-zero", "-q", str(tree)],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    return cpu, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--environments", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.environments or Path(scratch)
        programs = {
            name: make_environment(folder / name, packages) for name, packages in PACKAGES.items()
        }
        # Interleaved, so that a change in the machine's load meets all alike.
        runs = [
            (name, seconds(flake8, arguments.tree))
            for _ in range(arguments.repeat)
            for name, flake8 in programs.items()
        ]
    best = {name: min(cpu for n, (cpu, _) in runs if n == name) for name in programs}
    bare = best["bare"]
    print(f"{'':14}{'CPU s':>9}{'added s':>9}{'ratio':>8}")
    for name, cpu in best.items():
        print(f"{name:14}{cpu:9.1f}{cpu - bare:9.1f}{cpu / bare:8.2f}")
    added, theirs = best["gpu-training"] - bare, best["torchfix"] - bare
    print(f"this plugin adds {added / theirs:.3f} of what TorchFix adds")


if __name__ == "__main__":
    main()
