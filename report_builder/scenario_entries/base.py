"""What the catalog of scenarios says of each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from flake8_gpu_training.language import Text

FOLDER = Path(__file__).parent.parent / "templates" / "scenarios"
QWEN_7B, QWEN_72B = "Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-72B-Instruct"


@dataclass(frozen=True)
class Entry:
    """A scenario of the catalog.

    ``files``: name in templates/scenarios -> name to save it under. ``size``: billions of
    parameters it is made for. ``tuning``, ``algorithm`` and ``gpus`` decide how near it is.
    """

    title: Text
    files: tuple[tuple[str, str], ...]
    launch: str
    size: float
    model: str
    tuning: str = "full"
    gpus: int = 1
    algorithm: str = "sft"
    quantized: bool = False
    length: int = 4096
    output: str = "output/run"
    dataset: str = "your_dataset"
    template: str = "qwen"
    family: str = ""
    """What a model's name must contain for the template to be made for it."""
