"""GPU308 to GPU310, GPU407, GPU408: switches made for debugging that were left on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable, Optional

from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import no_mistake
from flake8_gpu_training.checks._programs import calls, keyword
from flake8_gpu_training.checks._scale import gpu, gpus, is_cuda, is_trial
from flake8_gpu_training.checks.base import (
    Change,
    Check,
    Edit,
    Evidence,
    Example,
    Finding,
    Impact,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Setting, known
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run, RunKind

_WORKS = (RunKind.TRAIN, RunKind.SERVE, RunKind.INFER)


def _found(
    setting: Setting, message: str, current: Text, action: Text, priority: Optional[Priority] = None
) -> Judgement:
    """The judgement about a switch that is on where ``setting`` says so."""
    change = _switched_off(setting)
    place = setting.location
    findings = (Finding(place, message, change),) if place is not None else ()
    return Judgement(
        Status.RECOMMENDED,
        evidence=(Evidence.of(setting),),
        findings=findings,
        current=current,
        action=action,
        change=change,
        priority=priority,
    )


def _switched_off(setting: Setting) -> Optional[Change]:
    """The change of an environment variable's 1 to 0, where it stands."""
    if setting.value_location is None or setting.text.strip("\"'") != "1":
        return None
    edit = Edit(setting.value_location, setting.text, setting.text.replace("1", "0"))
    return Change("bash", f"{setting.name}=0", (edit,))


def _variable(run: Run, name: str, *values: str) -> Optional[Setting]:
    """An environment variable of a run that does real work, when it has one of ``values``."""
    setting = run.environment.get(name)
    if setting is None or run.kind not in _WORKS or not is_cuda(run) or is_trial(run):
        return None
    is_set = known(setting.value) and str(setting.value).upper() in values
    return setting if is_set and _is_unconditional(setting) else None


def _is_unconditional(setting: Setting) -> bool:
    """Whether an assignment surely takes place: in Python, one that no block holds."""
    place = setting.location
    return place is not None and (not place.path.endswith(".py") or place.column == 1)


def _launch_blocking(run: Run) -> Judgement:
    setting = _variable(run, "CUDA_LAUNCH_BLOCKING", "1")
    if setting is None:
        return no_mistake()
    return _found(
        setting,
        "drop CUDA_LAUNCH_BLOCKING=1: the CPU waits for each kernel before it launches the "
        "next, which is for finding errors only",
        Text(
            "CUDA_LAUNCH_BLOCKING=1，内核逐个同步执行", "CUDA_LAUNCH_BLOCKING=1: kernels run singly"
        ),
        Text(
            "删除该调试开关，仅在定位 CUDA 错误时设置",
            "drop it; set it only to locate a CUDA error",
        ),
    )


def _distributed_debug(run: Run) -> Judgement:
    setting = _variable(run, "TORCH_DISTRIBUTED_DEBUG", "DETAIL")
    if setting is None or gpus(run) == 1:
        return no_mistake()
    return _found(
        setting,
        "drop TORCH_DISTRIBUTED_DEBUG=DETAIL: every collective is preceded by a check across "
        "all ranks, which is for debugging only",
        Text("TORCH_DISTRIBUTED_DEBUG=DETAIL", "TORCH_DISTRIBUTED_DEBUG=DETAIL is on"),
        Text("删除该调试开关", "drop it, or set INFO"),
    )


# GPUs of servers, whose peers NVLink connects (V100 and A100 on PCIe boards aside).
_NVLINKED = ("V100", "A100", "A800", "H100", "H800", "H20", "B200", "GB200")


def _peer_to_peer(run: Run) -> Judgement:
    setting = _variable(run, "NCCL_P2P_DISABLE", "1")
    count = gpus(run)
    kind = gpu(run)
    name = run.hardware.gpu or ""
    if setting is None or count is None or count == 1 or name.startswith("RTX"):
        return no_mistake()  # GeForce cards from the RTX 4090 on need it
    linked = name.startswith(_NVLINKED) and not (kind is not None and kind.bridge)
    what = f"{name} GPUs are linked by NVLink" if linked else "GPUs that reach each other directly"
    message = (
        f"drop NCCL_P2P_DISABLE=1: {what}, and their traffic then goes through host memory"
        if linked
        else f"keep NCCL_P2P_DISABLE=1 only for GPUs without peer access (RTX 4090 and the like): "
        f"the traffic of the {count} GPUs goes through host memory"
    )
    certain = linked and kind is not None and not run.hardware.weak
    return _found(
        setting,
        message,
        Text("NCCL_P2P_DISABLE=1，卡间流量经主机内存", "NCCL_P2P_DISABLE=1: no direct traffic"),
        Text(
            "NVLink 机器上删除该变量；仅 RTX 4090 等不支持 P2P 的卡需要",
            "drop it on machines with NVLink; only cards without peer access need it",
        ),
        Priority.HIGH if certain else Priority.LOW,
    )


def _trains(run: Run) -> bool:
    return run.kind is RunKind.TRAIN and not is_trial(run)


def _anomalies(run: Run) -> Iterator[Setting]:
    for call in calls(run, "torch.autograd.set_detect_anomaly", "torch.autograd.detect_anomaly"):
        mode = keyword(call, "mode", 0)
        is_context = call.method == "detect_anomaly"
        if (mode is True or (is_context and mode is None)) and not call.conditional:
            yield Setting(call.name, True, call.location, note=f"{call.name}(...)")


def _anomaly(run: Run) -> Judgement:
    setting = next(_anomalies(run), None) if _trains(run) else None
    if setting is None:
        return no_mistake()
    return _found(
        setting,
        "drop anomaly detection: it records a traceback for each operation and checks each "
        "gradient for NaN, which is for debugging only",
        Text("开启了 autograd 异常检测", "autograd's anomaly detection is on"),
        Text("删除，仅在排查 NaN 时开启", "drop it; turn it on only to find a NaN"),
    )


def _determinism(run: Run) -> Judgement:
    if not _trains(run):
        return no_mistake()
    for call in calls(run, "torch.use_deterministic_algorithms"):
        if keyword(call, "mode", 0) is True and not call.conditional:
            return _deterministic(Setting(call.name, True, call.location))
    if run.model.kind in ("LLM", "embedding", "encoder", "encoder-decoder"):
        return no_mistake()  # cuDNN's choice is about convolutions
    for program in run.python:
        for attribute in program.attributes:
            named = attribute.name == "torch.backends.cudnn.deterministic"
            if named and attribute.value is True and _is_unconditional(attribute):
                return _deterministic(attribute)
    return no_mistake()


def _deterministic(setting: Setting) -> Judgement:
    return _found(
        setting,
        f"drop {setting.name} unless runs must repeat bit by bit: deterministic kernels are "
        "often slower",
        Text("强制使用确定性算法", "deterministic algorithms are enforced"),
        Text("不要求逐位复现时关闭", "drop it where runs need not repeat bit by bit"),
    )


_BLOCKED = """\
#!/bin/bash
{}export NPROC_PER_NODE=8
swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora --dataset data/train.jsonl
"""
_LOOP = """\
import torch
from torchvision.models import resnet50

{}model = torch.compile(resnet50().cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in loader:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def _script(variable: str) -> tuple[Example, ...]:
    bad = _BLOCKED.format(f"export {variable}\n")
    return (Example("swift", "train.sh", bad, _BLOCKED.format("")),)


def _program(line: str) -> tuple[Example, ...]:
    return (Example("generic", "train.py", _LOOP.format(f"{line}\n"), _LOOP.format("")),)


def _check(
    code: str,
    name: str,
    title: Text,
    priority: Priority,
    judge: Callable[[Run], Judgement],
    why: str,
    fix: str,
    ignore: str,
    impact: Impact,
    examples: tuple[Example, ...],
    source: str,
) -> Check:
    return Check(
        code,
        name,
        title,
        priority,
        judge,
        why=why,
        fix=fix,
        ignore=ignore,
        impact=impact,
        examples=examples,
        sources=(source,),
    )


CHECKS: tuple[Check, ...] = (
    _check(
        "GPU308",
        "launch-blocking",
        Text("CUDA_LAUNCH_BLOCKING 调试开关", "CUDA_LAUNCH_BLOCKING left on"),
        Priority.HIGH,
        _launch_blocking,
        "Kernels are launched ahead of their execution, which hides the launches. With this "
        "variable the CPU waits for each, and the GPU idles between them.",
        "Remove the variable.",
        "While you look for the kernel that fails.",
        by_class(Priority.HIGH, sources.CUDA_VARIABLES),
        _script("CUDA_LAUNCH_BLOCKING=1"),
        sources.CUDA_VARIABLES,
    ),
    _check(
        "GPU309",
        "anomaly-detection",
        Text("autograd 异常检测", "Anomaly detection left on"),
        Priority.MEDIUM,
        _anomaly,
        "Anomaly mode stores a traceback for each forward operation and checks the result of "
        "each backward one for NaN.",
        "Remove torch.autograd.set_detect_anomaly(True).",
        "While you look for the operation that makes a NaN.",
        by_class(Priority.MEDIUM, sources.PYTORCH_ANOMALY),
        _program("torch.autograd.set_detect_anomaly(True)"),
        sources.PYTORCH_ANOMALY,
    ),
    _check(
        "GPU310",
        "deterministic-algorithms",
        Text("确定性算法", "Deterministic algorithms"),
        Priority.LOW,
        _determinism,
        "Deterministic kernels are often slower, and cuDNN may not choose the fastest convolution.",
        "Remove the switch; a seed alone makes runs comparable.",
        "When results must repeat bit by bit.",
        by_class(Priority.LOW, sources.PYTORCH_RANDOMNESS),
        _program("torch.use_deterministic_algorithms(True)"),
        sources.PYTORCH_RANDOMNESS,
    ),
    _check(
        "GPU407",
        "distributed-debug",
        Text("TORCH_DISTRIBUTED_DEBUG 调试开关", "TORCH_DISTRIBUTED_DEBUG left on"),
        Priority.MEDIUM,
        _distributed_debug,
        "With DETAIL every collective is checked for consistency across the ranks before it "
        "starts, which synchronises them.",
        "Remove the variable.",
        "While you look for a hang or a mismatch of ranks.",
        by_class(Priority.MEDIUM, sources.PYTORCH_DISTRIBUTED),
        _script("TORCH_DISTRIBUTED_DEBUG=DETAIL"),
        sources.PYTORCH_DISTRIBUTED,
    ),
    _check(
        "GPU408",
        "peer-to-peer",
        Text("NCCL 点对点传输被关闭", "Peer-to-peer transfers switched off"),
        Priority.HIGH,
        _peer_to_peer,
        "NVLink and PCIe peers exchange data directly; with NCCL_P2P_DISABLE=1 all of it "
        "passes through host memory.",
        "Remove the variable.",
        "On GeForce cards from the RTX 4090 on, which have no peer access.",
        by_class(Priority.HIGH, sources.NCCL, Text("NVLink 机器", "on machines with NVLink")),
        (
            Example(
                "swift",
                "train.slurm",
                _BLOCKED.replace("{}", "#SBATCH --gres=gpu:a100:8\nexport NCCL_P2P_DISABLE=1\n"),
                _BLOCKED.replace("{}", "#SBATCH --gres=gpu:a100:8\n"),
            ),
        ),
        sources.NCCL,
    ),
)
