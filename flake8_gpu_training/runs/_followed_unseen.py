"""Which functions are out of sight: neither of the project nor of a library that is known."""

from __future__ import annotations

import builtins
import sys
from typing import Any

from flake8_gpu_training.runs._followed import External

KNOWN = frozenset(
    """
    torch torchvision torchaudio torchao torchtune torch_xla torch_npu torch_ema ema_pytorch timm
    transformers accelerate peft deepspeed trl diffusers unsloth lightning pytorch_lightning
    lightning_fabric apex bitsandbytes fairscale colossalai megatron horovod mmengine mmcv
    open_clip sentence_transformers optimum copy functools contextlib typing numpy
    """.split()  # noqa: SIM905
)
"""Libraries that give a model back as what it was."""
_OTHERS = frozenset(
    """
    absl argcomplete aim attr attrs bitsandbytes clearml click colorama coloredlogs comet_ml
    configargparse cv2 datasets dotenv easydict einops evaluate fire fsspec fvcore git
    huggingface_hub hydra ignite imageio iopath jax jsonargparse jsonlines loguru matplotlib mlflow
    mpi4py neptune nltk omegaconf pandas PIL plotly prettytable psutil pydantic ray requests rich
    ruamel sacred safetensors scipy seaborn setproctitle simple_parsing sklearn submitit swanlab
    tabulate tensorboard tensorboardX tensorflow termcolor tiktoken tokenizers toml tomli
    torchmetrics tqdm typer tyro visdom wandb yacs yaml
    """.split()  # noqa: SIM905
)
# Python 3.9 has no list of its own: what is imported by then, and what programs have besides.
_OWN = frozenset(getattr(sys, "stdlib_module_names", sys.builtin_module_names)) | frozenset(
    """
    argparse ast collections copy csv dataclasses datetime enum functools gc glob inspect
    itertools json logging math multiprocessing os pathlib pickle platform pprint random re shutil
    signal socket string subprocess sys tempfile textwrap threading time traceback types typing
    uuid warnings
    """.split()  # noqa: SIM905
)


def is_unseen(callee: Any) -> bool:
    """Whether a callee is of a module that is neither in the project nor known."""
    if not isinstance(callee, External):
        return False
    root = callee.name.partition(".")[0]
    if root in KNOWN or root in _OTHERS or root in _OWN:
        return False
    return "." in callee.name and not hasattr(builtins, root)
