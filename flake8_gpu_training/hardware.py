"""GPUs by name: memory, architecture, and what each generation can compute.

Memory and compute capability are those of NVIDIA's data sheets and of the CUDA GPU list
(developer.nvidia.com/cuda-gpus); Ascend's from Huawei's product pages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Gpu:
    """One kind of accelerator; ``memory_gib`` as marketed, ``capability`` as (major, minor).

    ``capability`` is None for accelerators that are not CUDA devices: advice about CUDA
    kernels does not apply to them.
    """

    name: str
    memory_gib: float
    architecture: str
    capability: Optional[tuple[int, int]]

    @property
    def bf16(self) -> bool:
        """Whether tensor cores take bfloat16 (Ampere and newer)."""
        return self.capability is None or self.capability >= (8, 0)

    @property
    def fp8(self) -> bool:
        """Whether tensor cores take FP8 (Ada, Hopper and newer)."""
        return self.capability is not None and self.capability >= (8, 9)

    @property
    def flash_attention(self) -> int:
        """Newest FlashAttention generation made for it; 0 when there is none."""
        if self.capability is None or self.capability < (8, 0):
            return 0
        return {9: 3, 10: 4}.get(self.capability[0], 2)


_TABLE = (
    ("V100-16G", 16, "Volta", (7, 0)),
    ("V100-32G", 32, "Volta", (7, 0)),
    ("T4", 16, "Turing", (7, 5)),
    ("RTX2080Ti", 11, "Turing", (7, 5)),
    ("RTX3090", 24, "Ampere", (8, 6)),
    ("RTX4090", 24, "Ada", (8, 9)),
    ("RTX5090", 32, "Blackwell", (12, 0)),
    ("RTXPRO6000", 96, "Blackwell", (12, 0)),
    ("A10", 24, "Ampere", (8, 6)),
    ("A30", 24, "Ampere", (8, 0)),
    ("A40", 48, "Ampere", (8, 6)),
    ("A6000", 48, "Ampere", (8, 6)),
    ("A100-40G", 40, "Ampere", (8, 0)),
    ("A100-80G", 80, "Ampere", (8, 0)),
    ("A800-80G", 80, "Ampere", (8, 0)),
    ("L4", 24, "Ada", (8, 9)),
    ("L20", 48, "Ada", (8, 9)),
    ("L40", 48, "Ada", (8, 9)),
    ("L40S", 48, "Ada", (8, 9)),
    ("H100", 80, "Hopper", (9, 0)),
    ("H800", 80, "Hopper", (9, 0)),
    ("H20", 96, "Hopper", (9, 0)),
    ("H20-141G", 141, "Hopper", (9, 0)),
    ("H200", 141, "Hopper", (9, 0)),
    ("B200", 180, "Blackwell", (10, 0)),
    ("GB200", 186, "Blackwell", (10, 0)),
    ("Ascend910B", 64, "Ascend", None),
)

GPUS: dict[str, Gpu] = {row[0]: Gpu(*row) for row in _TABLE}

# Names as people write them; the longer alternative comes first. A memory size behind the
# name chooses between variants (A100-40GB, V100 32G).
_NAME = re.compile(
    r"(?<![A-Za-z0-9])(?:nvidia[ _-]*)?(?:geforce[ _-]*|tesla[ _-]*)?"
    r"(?P<name>rtx[ _-]*pro[ _-]*6000|(?:rtx[ _-]*)?(?:2080[ _-]*ti|3090|4090|5090)"
    r"|rtx[ _-]*a6000|gb200|ascend[ _-]*910b\d?|910b\d?|h100|h200|h800|h20|b200|a100|a800|v100"
    r"|l40s|l40|l20|l4|a6000|a10g?|a30|a40|t4)"
    r"(?![A-Za-z0-9])(?:[ _-]*(?:sxm\d?|pcie|nvl|hbm\d?e?))?"
    r"[ _-]*(?:(?P<size>\d{2,3})[ _-]*gi?b?\b)?",
    re.IGNORECASE,
)
_ALIASES = {
    "2080TI": "RTX2080Ti",
    "RTX2080TI": "RTX2080Ti",
    "3090": "RTX3090",
    "4090": "RTX4090",
    "5090": "RTX5090",
    "RTXA6000": "A6000",
    "A10G": "A10",
}


def gpu_named(text: str) -> Optional[Gpu]:
    """The GPU that ``text`` names (``8 * A100-80G``, ``gpu:h100:8``), or None.

    A name that stands for several variants (A100, V100) without a size gives None when the
    variants differ in memory, since guessing the memory would mislead.
    """
    for match in _NAME.finditer(text):
        found = _variant(match.group("name"), match.group("size"))
        if found is not None:
            return found
    return None


def architecture_named(text: str) -> Optional[str]:
    """The architecture of the GPU that ``text`` names, also when its memory is not told."""
    match = _NAME.search(text)
    if match is None:
        return None
    key = _key(match.group("name"))
    for gpu in GPUS.values():
        if gpu.name == key or gpu.name.startswith(f"{key}-"):
            return gpu.architecture
    return None


def _key(name: str) -> str:
    compact = re.sub(r"[ _-]", "", name).upper()
    if compact.startswith(("ASCEND910B", "910B")):
        return "Ascend910B"
    return _ALIASES.get(compact, compact)


def _variant(name: str, size: Optional[str]) -> Optional[Gpu]:
    key = _key(name)
    variants = [gpu for gpu in GPUS.values() if gpu.name.startswith(f"{key}-")]
    sized = [gpu for gpu in variants if size is not None and gpu.memory_gib == float(size)]
    if sized:
        return sized[0]
    if key in GPUS:
        return GPUS[key]
    return variants[0] if size is None and len(variants) == 1 else None
