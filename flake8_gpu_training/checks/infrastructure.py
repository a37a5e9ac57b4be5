"""GPU8xx: where data and checkpoints lie, and how often the run saves, logs and reports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Optional

from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    advise,
    cannot_tell,
    of_training,
    off,
    on,
    seen,
)
from flake8_gpu_training.checks._loops import runs_each_step
from flake8_gpu_training.checks._programs import calls, first_call
from flake8_gpu_training.checks._scale import number, text
from flake8_gpu_training.checks._settings import ROLLOUT, algorithm, has, parameter
from flake8_gpu_training.checks.base import (
    Check,
    Evidence,
    Example,
    Finding,
    Item,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Call, Setting
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_DATA_PATHS = (
    "dataset_dir",
    "data_path",
    "data_dir",
    "train_data_dir",
    "train_data_meta",
    "train_file",
    "train_dataset",
    "data_files",
    "tokenized_path",
    "cached_dataset",
    "custom_train_dataset_path",
    "cache_dir",
)
_READERS = (
    "datasets.load_dataset",
    "datasets.load_from_disk",
    ".ImageFolder",
    ".DatasetFolder",
    ".WebDataset",
    "numpy.memmap",
    "numpy.load",
    "pandas.read_parquet",
    "pandas.read_csv",
    "pandas.read_json",
)
_REMOTE = re.compile(r"(?i)^(?:s3a?|oss|gs|gcs|obs|cos|tos|bos|abfss?|wasbs?|https?)://")
_SLOW = re.compile(
    r"(?i)^(?:hdfs|viewfs|dbfs)://?"
    r"|^/(?:(?:mnt|data|media|mount|vol\w*)/)?(?:mnt[_-])?"
    r"(?:nfs|cfs|hdfs|mdfs)(?:$|/|[-_.\d][\w.-]*/)"
)
_LOCAL = re.compile(r"(?i)^/(?:dev/shm|local[\w-]*|nvme[\w-]*|ssd[\w-]*)(?:/|$)|(?:^|/)nvme\w*/")


def data_paths(run: Run) -> Iterator[Setting]:
    """Where the run's data are read, as far as it is written down."""
    dataset = run.practice("dataset")
    if dataset.known:
        yield dataset
    for name in _DATA_PATHS:
        setting = run.setting(name)
        if setting is not None and setting.known:
            yield setting
    for call in calls(run, *_READERS):
        for argument in (*call.positional, *call.keywords.values()):
            if isinstance(argument.value, (str, list)):
                yield Setting(call.method, argument.value, argument.location, text=argument.text)


def _matching(run: Run, pattern: re.Pattern[str]) -> Optional[tuple[Setting, str]]:
    for setting in data_paths(run):
        for path in _texts(setting.value):
            if pattern.search(path):
                return setting, path
    return None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from value.split()
    elif isinstance(value, (list, tuple)):
        yield from (item for item in value if isinstance(item, str))


def _storage_finding(run: Run, setting: Setting, message: str, said: Text, do: Text) -> Judgement:
    place = setting.location or run.place.location
    return Judgement(
        Status.RECOMMENDED,
        evidence=(Evidence.of(setting),),
        findings=(Finding(place, message),),
        current=said,
        action=do,
    )


@of_training(alone=True)
def _colocation(run: Run) -> Judgement:
    found = _matching(run, _REMOTE)
    if found is None:
        return cannot_tell(
            Text("存储与算力的位置无法静态得知", "where storage lies is not written down")
        )
    setting, path = found
    if first_call(run, ".StreamingDataset", ".WebDataset") is not None:
        return cannot_tell(
            Text("以流式方式读取对象存储", "object storage is streamed through a local cache")
        )
    return _storage_finding(
        run,
        setting,
        f"{path} is read over the network during training; copy the data to local SSD or to "
        "storage in the GPUs' own region before the run",
        Text(f"直接读取远端数据：{path}", f"data are read from {path}"),
        Text(
            "训练前将数据同步到同城高速存储或本地 SSD",
            "copy the data to local SSD or storage in the same region first",
        ),
    )


@of_training(alone=True)
def _medium(run: Run) -> Judgement:
    found = _matching(run, _SLOW)
    if found is not None:
        setting, path = found
        return _storage_finding(
            run,
            setting,
            f"{path} lies on slow shared storage; copy the data to local NVMe or a fast "
            "parallel file system before the run",
            Text(f"数据位于低速共享存储：{path}", f"data lie on slow shared storage: {path}"),
            Text(
                "训练前复制到本地 NVMe 或高性能并行文件系统",
                "copy the data to local NVMe or a fast parallel file system first",
            ),
        )
    local = _matching(run, _LOCAL)
    if local is not None:
        shown = Evidence(local[1], local[0].location)
        said = Text(f"本地高速存储：{local[1]}", f"local fast storage: {local[1]}")
        return Judgement(Status.ENABLED, evidence=(shown,), current=said)
    return cannot_tell(Text("存储介质无法静态得知", "the storage medium is not written down"))


# --- GPU803: checkpoints -----------------------------------------------------------------

_OFTEN = 50  # steps between checkpoints of all weights
_OFTEN_ADAPTERS = 10
_SAVES = ("torch.save", ".save_pretrained", ".save_checkpoint", ".save_state")


@of_training(alone=True)
def _checkpoints(run: Run) -> Judgement:
    if not has(run, "save_steps"):
        saved = first_call(run, *_SAVES)
        return seen(saved) if saved else cannot_tell(Text("未见保存代码", "nothing saves in sight"))
    setting = run.practice("save_steps")
    if not setting.known:
        return cannot_tell(setting)
    steps = number(run, "save_steps")
    full = text(run, "tuning") in (None, "full")
    if steps is None or steps >= (_OFTEN if full else _OFTEN_ADAPTERS) or 0 < steps < 1:
        return on(setting)
    if algorithm(run) in ROLLOUT:
        return on(setting)  # a step samples and scores completions: minutes, not seconds
    total = parameter(run, "max_steps").value
    if isinstance(total, (int, float)) and 0 < total <= 10 * max(steps, 1):
        return on(setting)
    return advise(
        run,
        f"the GPUs wait for a checkpoint {_every(steps)}",
        Text(f"每 {steps:g} 步保存一次", f"a checkpoint {_every(steps)}"),
        Text("降低保存频率，或异步保存", "save less often, or asynchronously"),
        practices={"save_steps": 500},
        at=setting,
    )


# --- GPU804, GPU805: logging and reporting ------------------------------------------------

_LOGS = 10


@of_training(alone=True)
def _logging(run: Run) -> Judgement:
    if not has(run, "logging_steps"):
        return cannot_tell(Text("日志频率无法静态得知", "how often it logs is not known"))
    strategy = parameter(run, "logging_strategy", default="steps")
    if strategy.known and str(strategy.value).lower() in ("no", "epoch"):
        return on(strategy)
    setting = run.practice("logging_steps")
    if not setting.known or not strategy.known:
        return cannot_tell(setting)
    steps = number(run, "logging_steps")
    if steps is None or steps >= _LOGS or 0 < steps < 1 or algorithm(run) in ROLLOUT:
        return on(setting)
    return advise(
        run,
        f"the loss is fetched from the GPU {_every(steps)}",
        Text(f"每 {steps:g} 步记录一次", f"logs {_every(steps)}"),
        Text("日志间隔不小于 10 步", "log every 10 steps or less often"),
        practices={"logging_steps": _LOGS},
        at=setting,
        share=0.5 if steps > 1 else None,
    )


def _every(steps: float) -> str:
    return "at every step" if steps == 1 else f"every {steps:g} steps"


_TRACKERS = ("wandb", "comet", "mlflow", "swanlab", "neptune", "clearml", "dvclive", "trackio")


_REPORTS = ("wandb.log", "mlflow.log_metric", "mlflow.log_metrics", "swanlab.log", "neptune.log")


@of_training(alone=True)
def _reporting(run: Run) -> Judgement:
    for file in run.python:
        for call in file.calls_to(*_REPORTS):
            if runs_each_step(file, call):
                return _reported_each_step(call)
    if not has(run, "report_to"):
        return cannot_tell(Text("上报频率无法静态得知", "how often it reports is not known"))
    setting = run.practice("report_to")
    if not setting.known:
        return cannot_tell(setting)
    named = str(setting.value).lower()
    if number(run, "logging_steps") == 1 and any(name in named for name in _TRACKERS):
        if algorithm(run) in ROLLOUT:
            return on(setting)
        said = Text(
            "随日志每步远程上报（见 GPU804）", "reports as often as it logs: at every step (GPU804)"
        )
        return off(said, setting)  # told once, of the log interval
    return on(setting)


def _reported_each_step(call: Call) -> Judgement:
    message = f"{call.name} reports at every step; report every 10 steps or more"
    return Judgement(
        Status.RECOMMENDED,
        evidence=(Evidence(f"{call.name}(...)", call.location),),
        findings=(Finding(call.location, message),),
        current=Text("每步上报指标", "metrics are reported at every step"),
        action=Text("每 10 步以上上报一次", "report every 10 steps or more"),
    )


_PYTORCH_TUNING = "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
_HF_ARGUMENTS = "transformers 5.24, training_args.py"

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

_REPORTING = """\
import torch
import wandb


def train(model, train_loader, optimizer, criterion):
    model = torch.compile(model.cuda())
    for step, (inputs, targets) in enumerate(train_loader):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {guard}wandb.log({"loss": loss.detach()})
"""

_TRAINER = """\
from transformers import Trainer, TrainingArguments


def train(model, dataset):
    arguments = TrainingArguments(
        "output",
        bf16=True,
        gradient_checkpointing=True,
        dataloader_num_workers=4,
        dataloader_persistent_workers=True,
        warmup_steps=100,
{frequency}    )
    Trainer(model=model, args=arguments, train_dataset=dataset).train()
"""


def _trainer(bad: str, good: str) -> Example:
    return Example(
        "hf_trainer",
        "train.py",
        _TRAINER.replace("{frequency}", f"        {bad},\n"),
        _TRAINER.replace("{frequency}", f"        {good},\n"),
    )


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
    Check(
        "GPU803",
        "checkpoint-frequency",
        Text("Checkpoint 频率", "Checkpoint frequency"),
        Priority.LOW,
        _checkpoints,
        why="Training stops while weights and optimizer states are written.",
        fix="Save every few hundred steps, or asynchronously.",
        ignore="Nodes fail often, or checkpoints are small.",
        items=(Item("general", "I", "checkpoint-frequency", 1),),
        impact=by_class(Priority.LOW, _HF_ARGUMENTS),
        examples=(_trainer("save_steps=10", "save_steps=500"),),
        sources=(_HF_ARGUMENTS,),
    ),
    Check(
        "GPU804",
        "logging-frequency",
        Text("日志频率", "Logging frequency"),
        Priority.LOW,
        _logging,
        why="Each log line fetches the loss from the GPU and waits for all work queued on it.",
        fix="Set logging_steps to 10 or more.",
        ignore="Steps take many seconds.",
        items=(Item("general", "I", "logging-frequency", 1),),
        impact=by_class(Priority.LOW, _PYTORCH_TUNING),
        examples=(_trainer("logging_steps=1", "logging_steps=10"),),
        sources=(_PYTORCH_TUNING, _HF_ARGUMENTS),
    ),
    Check(
        "GPU805",
        "reporting-frequency",
        Text("进度上报频率", "Reporting frequency"),
        Priority.LOW,
        _reporting,
        why="Sending metrics at every step costs a synchronisation and network traffic.",
        fix="Report every 10 steps or more, or with the logs.",
        items=(Item("general", "I", "progress-reporting-frequency", 1),),
        impact=by_class(Priority.LOW, _PYTORCH_TUNING),
        examples=(
            Example(
                "generic",
                "train.py",
                _REPORTING.replace("{guard}", ""),
                _REPORTING.replace("{guard}", "if step % 50 == 0:\n            "),
            ),
        ),
        sources=(_PYTORCH_TUNING,),
    ),
)
