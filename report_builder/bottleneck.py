"""The likely bottleneck of a run, with the signs it was inferred from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Optional

from flake8_gpu_training.checks.base import Status
from flake8_gpu_training.language import Text
from flake8_gpu_training.memory import MemoryEstimate
from flake8_gpu_training.runs.model import Run, RunKind
from flake8_gpu_training.verdicts import Verdict
from report_builder.links import decoding_rate, slow_links
from report_builder.wording import default_text, place_text

NAMES = {
    "compute-bound": Text("计算受限", "compute-bound"),
    "memory-bound": Text("显存（容量/带宽）受限", "memory-bound (capacity or bandwidth)"),
    "latency-bound": Text("延迟受限（CPU 与 GPU 同步）", "latency-bound (CPU–GPU syncs)"),
    "launch-bound": Text("内核启动受限", "launch-bound"),
    "communication-bound": Text("通信受限", "communication-bound"),
    "offload-bound": Text("PCIe 传输受限（卸载）", "PCIe-bound (offload)"),
    "io-bound": Text("数据 I/O 受限", "data-I/O-bound"),
    "unconfirmed": Text("需 Profiling 确认", "to be confirmed by profiling"),
}
# General-audit items whose RECOMMENDED status points at a bottleneck.
_IO_ITEMS = frozenset({"worker-processes", "storage-medium", "storage-colocation"})
# Samples of these models are decoded while training; text is cheap to load.
_DECODED = frozenset({"MLLM", "video", "image", "audio", "vision"})
_DECODERS = frozenset({"torchvision", "PIL", "cv2", "albumentations", "decord", "av", "librosa"})
_COMMUNICATION_ITEMS = frozenset({"gdrdma"})
_SMALL_STEP = 1024  # tokens per micro-batch under which kernels are too short to fill a GPU
_SMALL_WORK = 2e12  # parameters × tokens: a forward pass of about 10 ms at 400 TFLOPS
_LARGE_STEP = 8192
# Parameters from which a step over a video's thousands of tokens outlasts any wait for the CPU.
_LONG_STEPS = 1_000_000_000


@dataclass(frozen=True)
class Bottleneck:
    """``kind`` is a key of NAMES; ``evidence`` says what it was inferred from.

    ``also``: the less severe signs that the run shows, in order.
    """

    kind: str
    evidence: Text
    also: tuple[Bottleneck, ...] = ()


def bottleneck(
    run: Optional[Run], verdicts: Sequence[Verdict], memory: Optional[MemoryEstimate]
) -> Bottleneck:
    """The most severe bottleneck that the run shows a sign of, with the other signs."""
    if run is None:
        return Bottleneck(
            "unconfirmed", Text("没有找到训练或推理运行", "no training or serving run was found")
        )
    asked = _asked(verdicts)
    signs = (
        _offload(run),
        _communication(run, asked),
        _data(run, asked),
        _memory(run, memory),
        _synchronisation(run, verdicts),
        _work(run),
    )
    found = [sign for sign in signs if sign is not None]
    if not found:
        return Bottleneck(
            "unconfirmed",
            Text(
                "静态信息不足以判断，建议用 torch.profiler 或 Nsight Systems 采样若干步",
                "the files do not tell; profile a few steps with torch.profiler or Nsight Systems",
            ),
        )
    return replace(found[0], also=tuple(found[1:]))


def _asked(verdicts: Sequence[Verdict]) -> dict[str, Verdict]:
    """General-audit items that are off and ought to be on."""
    return {
        item.id: verdict
        for verdict in verdicts
        if verdict.judgement.status is Status.RECOMMENDED
        for item in verdict.check.items
        if item.audit == "general"
    }


def _place(verdict: Verdict) -> str:
    findings = verdict.judgement.findings
    place = place_text(findings[0].location, "zh") if findings else ""
    return f"{verdict.check.code}，{place}" if place else verdict.check.code


def _place_en(verdict: Verdict) -> str:
    findings = verdict.judgement.findings
    place = place_text(findings[0].location, "en") if findings else ""
    return f"{verdict.check.code}, {place}" if place else verdict.check.code


def _state(verdict: Verdict) -> Text:
    """What the run does instead, in its own words where it says so."""
    judgement = verdict.judgement
    if judgement.current.en and judgement.current.zh != judgement.current.en:
        return judgement.current
    for evidence in judgement.evidence:
        if evidence.location is not None:
            return Text(f"当前为 {evidence.text}", f"now {evidence.text}")
        default = Text(*(default_text(evidence.text, lang) or "" for lang in ("zh", "en")))
        if default.en:
            return Text(f"当前为 {default.zh}", f"now {default.en}")
    title = verdict.check.title
    return Text(f"未启用{title.zh}", f"missing: {title.en}")


def _communication(run: Run, asked: dict[str, Verdict]) -> Optional[Bottleneck]:
    for item in sorted(_COMMUNICATION_ITEMS & asked.keys()):
        verdict = asked[item]
        return Bottleneck(
            "communication-bound",
            Text(
                f"多机训练，跨机通信未走 GPUDirect RDMA（{_place(verdict)}）",
                f"several nodes without GPUDirect RDMA between them ({_place_en(verdict)})",
            ),
        )
    links = slow_links(run)
    return None if links is None else Bottleneck("communication-bound", links)


def _offload(run: Run) -> Optional[Bottleneck]:
    """Offloaded states cross the PCIe bus at each step."""
    if run.kind is not RunKind.TRAIN:
        return None
    moved = []
    for name, zh, en in (
        ("offload_optimizer", "优化器状态", "optimizer states"),
        ("offload_param", "参数", "parameters"),
    ):
        if run.value(name) in ("cpu", "nvme"):
            moved.append((run.practice(name), Text(zh, en)))
    if run.value("fsdp_offload") is True:
        moved.append((run.practice("fsdp_offload"), Text("参数（FSDP）", "parameters (FSDP)")))
    if not moved:
        return None
    place = next((s.location for s, _ in moved if s.location is not None), None)
    zh, en = "、".join(t.zh for _, t in moved), " and ".join(t.en for _, t in moved)
    at_zh = "" if place is None else f"（{place_text(place, 'zh')}）"
    at_en = "" if place is None else f" ({place_text(place, 'en')})"
    return Bottleneck(
        "offload-bound",
        Text(
            f"{zh}卸载到 CPU/NVMe{at_zh}，每步都要经 PCIe 传输",
            f"{en} offloaded to CPU or NVMe{at_en}: every step moves them over PCIe",
        ),
    )


def _prepares_samples(run: Run) -> bool:
    """Whether the loader has much to do per sample: decode media, or tokenise on the fly."""
    lazy = run.settings.get("lazy_tokenize")
    if run.model.kind in _DECODED or (lazy is not None and lazy.value is True):
        return True
    modules = {i.dotted.partition(".")[0] for file in run.python for i in file.imports}
    return not modules.isdisjoint(_DECODERS)


def _data(run: Run, asked: dict[str, Verdict]) -> Optional[Bottleneck]:
    for item in sorted(_IO_ITEMS & asked.keys()):
        if item == "worker-processes" and not _prepares_samples(run):
            continue
        verdict = asked[item]
        return Bottleneck(
            "io-bound",
            Text(
                f"GPU 可能等待数据，{_state(verdict).zh}（{_place(verdict)}）",
                f"the GPU may wait for data, {_state(verdict).en} ({_place_en(verdict)})",
            ),
        )
    return None


def _memory(run: Run, memory: Optional[MemoryEstimate]) -> Optional[Bottleneck]:
    if run.kind is RunKind.SERVE:
        figure = decoding_rate(run)
        return Bottleneck(
            "memory-bound",
            Text(
                f"推理解码阶段每个 token 都要读一遍权重，受显存带宽限制{figure.zh}",
                f"decoding reads every weight for each token, which memory bandwidth limits"
                f"{figure.en}",
            ),
        )
    capacity = run.hardware.memory_gib
    if memory is None or capacity is None or memory.high < 0.9 * capacity:
        return None
    return Bottleneck(
        "memory-bound",
        Text(
            f"预计每卡 {memory.total:.0f} GiB（{memory.low:.0f}–{memory.high:.0f}），"
            f"接近或超过 {capacity:.0f} GiB 显存",
            f"about {memory.total:.0f} GiB per GPU ({memory.low:.0f}–{memory.high:.0f}), near or "
            f"above its {capacity:.0f} GiB",
        ),
    )


def _synchronisation(run: Run, verdicts: Sequence[Verdict]) -> Optional[Bottleneck]:
    if run.model.kind == "video" and (run.model.parameters or 0) >= _LONG_STEPS:
        return None
    for verdict in verdicts:
        name = verdict.check.name
        if verdict.judgement.findings and ("sync" in name or "item" in name):
            return Bottleneck(
                "latency-bound",
                Text(
                    f"训练循环中存在同步点（{_place(verdict)}），CPU 每步等待 GPU",
                    f"the training loop synchronises ({_place_en(verdict)}): the CPU waits for "
                    "the GPU at each step",
                ),
            )
    return None


def _work(run: Run) -> Optional[Bottleneck]:
    batch, length = run.value("micro_batch_size"), run.value("max_length")
    if not isinstance(batch, int) or not isinstance(length, int):
        return None
    tokens = batch * length
    parameters = run.model.parameters
    is_small = parameters is not None and parameters * tokens <= _SMALL_WORK
    if tokens <= _SMALL_STEP and is_small and run.value("packing") is not True:
        return Bottleneck(
            "launch-bound",
            Text(
                f"每步至多 {tokens} 个 token，内核过短，启动开销占比高",
                f"at most {tokens} tokens per micro-batch: kernels are short and launches dominate",
            ),
        )
    if tokens >= _LARGE_STEP and run.value("packing") is True:
        return Bottleneck(
            "compute-bound",
            Text(
                f"每个 micro-batch 打包为 {tokens} 个 token，矩阵乘法占主导",
                f"{tokens} packed tokens per micro-batch: matrix products dominate",
            ),
        )
    return None
