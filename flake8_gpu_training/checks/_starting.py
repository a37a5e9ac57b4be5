"""How a run's processes are started: said, and written, the same way by several checks."""

from __future__ import annotations

from flake8_gpu_training.checks._judging import Snippet, prefixed
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

ONE_GPU = Text("只用一张 GPU", "the run uses one GPU")
NO_PROCESSES = Text("启动的进程数未知", "how many processes are started is not known")


def launch(run: Run, count: int) -> Snippet:
    """What starts ``count`` processes of the run."""
    if run.framework == "swift":
        written = f"NPROC_PER_NODE={count}"
        return Snippet(f"set {written}", f"{written} swift sft …", "bash", prefixed(run, count))
    written = f"torchrun --nproc_per_node={count} {run.entry or 'train.py'}"
    return Snippet(f"launch with torchrun --nproc_per_node={count}", written, "bash")
