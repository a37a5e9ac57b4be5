"""How a run's processes are started: said, and written, the same way by several checks."""

from __future__ import annotations

from typing import Union

from flake8_gpu_training.checks._judging import Snippet, prefixed
from flake8_gpu_training.facts import Setting
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import PlaceKind, Run

ONE_GPU = Text("只用一张 GPU", "the run uses one GPU")
_ONE_PROCESS = Text("只启动一个进程", "the run starts one process")
NO_PROCESSES = Text("启动的进程数未知", "how many processes are started is not known")
_ALL_GPUS = Text(
    "GPU 数未知：llamafactory-cli 在全部可见 GPU 上启动",
    "the number of GPUs is not known: llamafactory-cli starts on all that it sees",
)
_UNSEEN = Text(
    "未见启动命令，其中可能启用 FSDP、DeepSpeed 或 Megatron",
    "the launch command is not in sight: it may bring FSDP, DeepSpeed or Megatron",
)


def single(run: Run) -> Text:
    """That a run of one process has nothing to share; ms-swift's uses all GPUs that it sees."""
    usual = None if run.framework == "swift" else 1
    return ONE_GPU if (run.hardware.gpus or usual) == 1 else _ONE_PROCESS


def uncounted(run: Run) -> Text:
    """That the processes of ``run`` are not counted, and why."""
    return _ALL_GPUS if run.launcher.name == "llamafactory" else NO_PROCESSES


def unsharded_as_far_as_seen(run: Run, setting: Setting) -> Union[Setting, Text]:
    """Why it is not known how ``run`` shards its model: a recipe that no command names, or
    the ``setting`` itself."""
    is_recipe = run.command is None and run.place.kind in (PlaceKind.YAML, PlaceKind.JSON)
    return _UNSEEN if is_recipe and not setting.location else setting


def launch(run: Run, count: int) -> Snippet:
    """What starts ``count`` processes of the run."""
    if run.framework == "swift":
        written = f"NPROC_PER_NODE={count}"
        return Snippet(f"set {written}", f"{written} swift sft …", "bash", prefixed(run, count))
    written = f"torchrun --nproc_per_node={count} {run.entry or 'train.py'}"
    return Snippet(f"launch with torchrun --nproc_per_node={count}", written, "bash")
