"""Small servers for the examples of checks about inference engines."""

from __future__ import annotations

from flake8_gpu_training.checks.base import Example


def served(
    bad: str,
    good: str,
    *,
    start: str = "",
    good_start: str = "",
    pin: str = "",
    model: str = "Qwen/Qwen3-8B",
    gpus: str = "",
) -> tuple[Example, ...]:
    """``vllm serve`` with the flags that are flagged, and with those that are not.

    ``start`` stands before the flagged command, ``good_start`` before the mended one; ``gpus``:
    what SLURM is asked for.
    """
    head = f"#!/bin/bash\n#SBATCH --gres=gpu:{gpus}\n" if gpus else "#!/bin/bash\n"
    files = (("requirements.txt", f"vllm=={pin}\n"),) if pin else ()
    return (
        Example(
            "vllm",
            "serve.sh",
            f"{head}{start}vllm serve {model} {bad}\n",
            f"{head}{good_start}vllm serve {model} {good}\n",
            files,
        ),
    )
