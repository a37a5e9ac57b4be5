"""Make the virtual environments whose frameworks parse configurations for the comparison.

python benchmarks/real_parsers/build.py FOLDER

No GPU is needed, and PyTorch's CPU build is enough: where pip would take a larger one, name an
index of CPU builds in PIP_INDEX_URL or PIP_EXTRA_INDEX_URL. Three environments, since the
frameworks ask for different releases of the same libraries; 6 GB in all.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Environment:
    """One environment: what is installed, and what is taken away again."""

    packages: tuple[str, ...]
    removed: tuple[str, ...] = ()


_TORCH = "torch==2.13.0"
ENVIRONMENTS: Mapping[str, Environment] = {
    "trl": Environment((_TORCH, "trl==1.16.0", "transformers==5.24.0", "peft==0.21.2")),
    # No argument needs torchvision or torchaudio, whose kernels may not fit a CPU build.
    "llamafactory": Environment((_TORCH, "llamafactory==0.9.5"), ("torchvision", "torchaudio")),
    "ms-swift": Environment((_TORCH, "ms-swift==4.6.0", "transformers==5.19.0")),
}


def python_of(folder: Path, name: str) -> Path:
    """The interpreter of an environment."""
    return folder / name / "bin" / "python"


def build(folder: Path, name: str) -> None:
    """Make one environment, unless it is there."""
    python = python_of(folder, name)
    if python.exists():
        return
    environment = ENVIRONMENTS[name]
    venv.create(folder / name, with_pip=True)
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", *environment.packages], check=True)
    if environment.removed:
        subprocess.run([*pip, "uninstall", "--yes", *environment.removed], check=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for each in ENVIRONMENTS:
        print(each, flush=True)
        build(Path(sys.argv[1]), each)
