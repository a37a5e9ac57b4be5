"""What moves between the GPUs of a node in a step, against the links that carry it."""

from __future__ import annotations

from typing import Optional

from flake8_gpu_training.hardware import GPUS, Gpu
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run, RunKind

# GB/s in one direction of 16 lanes, by the PCIe generation of the boards: 3.0, 4.0, 5.0.
_PCIE = {"Volta": 16, "Turing": 16, "Ampere": 32, "Ada": 32, "Hopper": 64, "Blackwell": 64}
_HALF = 2  # bytes of a weight or gradient on the wire
_BUSY = 0.5  # share of peak throughput that a well-fed GPU reaches in training


def slow_links(run: Run) -> Optional[Text]:
    """Why the links between the run's GPUs hold it back; None when they do not, or as far as
    known."""
    kind = GPUS.get(run.hardware.gpu or "")
    count = run.hardware.gpus_per_node
    if run.kind is not RunKind.TRAIN or kind is None or run.hardware.weak or (count or 1) < 2:
        return None
    rate = _rate(kind, count or 0)
    if rate is None:
        return None
    return _tensor_parallel(run, kind, rate) or _sharded(run, kind, count or 0, rate)


def _rate(kind: Gpu, count: int) -> Optional[int]:
    """GB/s over PCIe where NVLink does not join all GPUs of a node, else None."""
    alone = kind.nvlink == 0.0
    pairs = kind.bridge and count > 2
    return _PCIE.get(kind.architecture) if alone or pairs else None


def _link(kind: Gpu, rate: int) -> Text:
    if kind.bridge:
        return Text(
            f"{kind.name} 的 NVLink 桥只连接两张卡，其余走 PCIe（单向约 {rate} GB/s）",
            f"NVLink bridges join only pairs of {kind.name}, the rest goes over PCIe (about "
            f"{rate} GB/s each way)",
        )
    return Text(
        f"{kind.name} 没有 NVLink，卡间走 PCIe（单向约 {rate} GB/s）",
        f"{kind.name} has no NVLink: its peers are reached over PCIe (about {rate} GB/s each way)",
    )


def _tensor_parallel(run: Run, kind: Gpu, rate: int) -> Optional[Text]:
    degree = run.value("tensor_parallel", 1)
    if not isinstance(degree, int) or degree <= (2 if kind.bridge else 1):
        return None
    link = _link(kind, rate)
    return Text(
        f"张量并行（TP={degree}）每层都要 all-reduce；{link.zh}",
        f"tensor parallelism over {degree} GPUs reduces activations in every layer; {link.en}",
    )


def _sharded(run: Run, kind: Gpu, count: int, rate: int) -> Optional[Text]:
    """ZeRO-3 and FSDP gather the weights twice a micro-batch, and reduce the gradients."""
    stage, fsdp = run.value("zero_stage"), run.value("fsdp")
    name = "ZeRO-3" if stage == 3 else "FSDP" if fsdp == "full_shard" else None
    parameters = run.model.parameters
    if name is None or parameters is None:
        return None
    passes = 3 if run.value("tuning") == "full" else 2
    moved = passes * _HALF * parameters * (count - 1) / count / 1e9
    seconds = moved / rate
    busy = _computing(run, kind)
    if busy is not None and busy > seconds:
        return None
    link = _link(kind, rate)
    return Text(
        f"{name} 每个 micro-batch 每卡收发约 {moved:.0f} GB（至少 {seconds:.1f} 秒）；{link.zh}",
        f"{name} moves about {moved:.0f} GB per GPU and micro-batch (at least {seconds:.1f} s); "
        f"{link.en}",
    )


def _computing(run: Run, kind: Gpu) -> Optional[float]:
    """Seconds that a micro-batch computes, or None when its size or the GPU's rate is unknown."""
    batch, length = run.value("micro_batch_size"), run.value("max_length")
    if not isinstance(batch, int) or not isinstance(length, int) or kind.tensor_tflops is None:
        return None
    weights = run.model.active_parameters or run.model.parameters or 0
    # Two operations a weight and token, forwards and backwards, for gradients of weights, and
    # for what is computed anew.
    full, again = run.value("tuning") == "full", run.value("gradient_checkpointing") is True
    passes = 2 + int(full) + int(again)
    return 2 * passes * weights * batch * length / (kind.tensor_tflops * 1e12 * _BUSY)


def decoding_rate(run: Run) -> Text:
    """The most tokens a second that one sequence can get, in brackets; empty when unknown."""
    kind = GPUS.get(run.hardware.gpu or "")
    weights = run.model.active_parameters or run.model.parameters
    degree = run.value("tensor_parallel", 1)
    plain = run.value("quantization_method", "none") in ("none", None)
    if kind is None or kind.bandwidth is None or not weights or not plain:
        return Text("", "")
    if not isinstance(degree, int) or degree < 1:
        return Text("", "")
    rate = kind.bandwidth * 1e9 * degree / (_HALF * weights)
    where = kind.name if degree == 1 else f"{degree} x {kind.name}"
    return Text(
        f"（{where}，{kind.bandwidth:,.0f} GB/s：BF16 权重下单序列至多约 {rate:,.0f} token/s）",
        f" ({kind.bandwidth:,.0f} GB/s on {where}: at most about {rate:,.0f} tokens a second for "
        "one sequence with 16-bit weights)",
    )
