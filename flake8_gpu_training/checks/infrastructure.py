"""GPU801, GPU802: where data and checkpoints lie."""

from __future__ import annotations

from dataclasses import replace

from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    cannot_apply,
    cannot_tell,
    of_training,
    told,
)
from flake8_gpu_training.checks._programs import first_call
from flake8_gpu_training.checks._storage import Stored, first, output, synthetic
from flake8_gpu_training.checks.base import (
    Check,
    Example,
    Finding,
    Item,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_SYNTHETIC = Text("数据由程序生成，不读取存储", "the data are made up: nothing is read")


def _storage_finding(run: Run, stored: Stored, message: str, said: Text, do: Text) -> Judgement:
    place = stored.setting.location or run.place.location
    return Judgement(
        Status.RECOMMENDED,
        evidence=stored.evidence,
        findings=(Finding(place, message, told=told(said, do)),),
        current=said,
        action=do,
    )


def _stored_well(stored: Stored, said: Text) -> Judgement:
    return Judgement(Status.ENABLED, evidence=stored.evidence, current=said)


@of_training(alone=True)
def _colocation(run: Run) -> Judgement:
    if synthetic(run) is not None:
        return cannot_apply(_SYNTHETIC)
    found = first(run, "object-store")
    if found is None:
        return _near(run)
    if first_call(run, ".StreamingDataset", ".WebDataset") is not None:
        return cannot_tell(
            Text("以流式方式读取对象存储", "object storage is streamed through a local cache")
        )
    return _storage_finding(
        run,
        found,
        f"{found.named} is read over the network during training; copy the data to local SSD or "
        "to storage in the GPUs' own region before the run",
        Text(f"直接读取远端数据：{found.named}", f"data are read from {found.named}"),
        Text(
            "训练前将数据同步到同城高速存储或本地 SSD",
            "copy the data to local SSD or storage in the same region first",
        ),
    )


def _near(run: Run) -> Judgement:
    near = first(run, "copy", "local")
    if near is None:
        return cannot_tell(
            Text("存储与算力的位置无法静态得知", "where storage lies is not written down")
        )
    return _stored_well(
        near, Text(f"数据在计算节点上：{near.named}", f"the data lie on the node: {near.named}")
    )


@of_training(alone=True)
def _medium(run: Run) -> Judgement:
    if synthetic(run) is not None:
        return cannot_apply(_SYNTHETIC)
    found = first(run, "slow")
    if found is not None:
        return _storage_finding(
            run,
            found,
            f"{found.named} lies on slow shared storage; copy the data to local NVMe or a fast "
            "parallel file system before the run",
            Text(
                f"数据位于低速共享存储：{found.named}",
                f"data lie on slow shared storage: {found.named}",
            ),
            Text(
                "训练前复制到本地 NVMe 或高性能并行文件系统",
                "copy the data to local NVMe or a fast parallel file system first",
            ),
        )
    written = output(run)
    if written is not None and (written.kind == "object-store" or "hdfs" in written.named.lower()):
        return _slow_output(run, written)
    local = first(run, "local")
    if local is not None:
        return _stored_well(
            local, Text(f"本地高速存储：{local.named}", f"local fast storage: {local.named}")
        )
    return cannot_tell(Text("存储介质无法静态得知", "the storage medium is not written down"))


def _slow_output(run: Run, written: Stored) -> Judgement:
    judgement = _storage_finding(
        run,
        written,
        f"checkpoints go to {written.named} while the GPUs wait; write them to a local disk and "
        "copy them in the background",
        Text(f"Checkpoint 写入 {written.named}", f"checkpoints are written to {written.named}"),
        Text(
            "先写本地磁盘，再后台上传", "write to a local disk first and upload in the background"
        ),
    )
    return replace(judgement, status=Status.PARTIAL, share=0.5, priority=Priority.LOW)


_FOLDER = """\
import torch
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder


def train(model, optimizer, transform):
    images = ImageFolder("{root}", transform)
    loader = DataLoader(
        images, 64, shuffle=True, num_workers=8, pin_memory=True, persistent_workers=True
    )
    for pixels, labels in loader:
        pixels = pixels.to("cuda", non_blocking=True)
        labels = labels.to("cuda", non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(pixels), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU801",
        "storage-colocation",
        Text("存储同城", "Storage near the compute"),
        Priority.HIGH,
        _colocation,
        why="Reading samples from object storage, possibly in another region, adds tens of "
        "milliseconds to every request; the GPUs wait.",
        fix="Copy the data to local SSD or storage in the same region before the run.",
        ignore="A local cache stands in front of the bucket.",
        items=(Item("general", "I", "storage-colocation", 1),),
        impact=by_class(
            Priority.HIGH,
            "https://docs.mosaicml.com/projects/streaming/",
            Text("跨城读取时", "where data cross regions"),
        ),
        examples=(
            Example(
                "generic",
                "train.py",
                _FOLDER.replace("{root}", "s3://bucket/imagenet/train"),
                _FOLDER.replace("{root}", "/local_ssd/imagenet/train"),
            ),
        ),
        sources=("https://docs.mosaicml.com/projects/streaming/",),
    ),
    Check(
        "GPU802",
        "storage-medium",
        Text("高性能存储", "Fast storage"),
        Priority.HIGH,
        _medium,
        why="NFS, CFS, MDFS and HDFS serve many clients through few servers: random reads of "
        "samples are slow, and slower when others are busy.",
        fix="Copy the data to local NVMe or a parallel file system before the run.",
        ignore="The mount is fast, or the data are read once into memory.",
        items=(Item("general", "I", "storage-medium", 1),),
        impact=by_class(
            Priority.HIGH,
            "https://github.com/webdataset/webdataset",
            Text("受存储限制时", "where storage limits the run"),
        ),
        examples=(
            Example(
                "generic",
                "train.py",
                _FOLDER.replace("{root}", "/mnt/nfs/imagenet/train"),
                _FOLDER.replace("{root}", "/local_ssd/imagenet/train"),
            ),
        ),
        sources=("https://github.com/webdataset/webdataset",),
    ),
)
