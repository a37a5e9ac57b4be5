"""GPU505, GPU508, GPU509: how samples are stored, and when they are preprocessed."""

from __future__ import annotations

import re
from typing import Any, Optional

from flake8_gpu_training.checks import _storage as storage
from flake8_gpu_training.checks._data_examples import llamafactory_lacks, swift_lacks
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    advise,
    cannot_apply,
    cannot_tell,
    of_training,
    off,
    on,
    seen,
    spelled,
)
from flake8_gpu_training.checks._programs import first_call, imports
from flake8_gpu_training.checks._samples import (
    IN_MEMORY,
    decodes_images,
    held_in_memory,
    keeps_samples_in_arrow,
    opened_per_sample,
    streaming_call,
    tokenized_by_map,
    tokenized_late,
)
from flake8_gpu_training.checks._scale import (
    number,
)
from flake8_gpu_training.checks._settings import (
    ROLLOUT,
    algorithm,
    has,
    is_on,
    is_text,
    is_unknown,
    parameter,
)
from flake8_gpu_training.checks._swift import tokenises_late
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
from flake8_gpu_training.facts import Call, Location, Setting
from flake8_gpu_training.frameworks.transformers import configuration_class
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

PREPROCESSING_WORKERS = 8


# --- GPU505: small files ---

_MERGED = (
    "webdataset",
    "streaming.StreamingDataset",
    "streaming.StreamingDataLoader",
    "litdata",
    "ffcv.loader",
    "nvidia.dali",
    "tensorflow.data",
    "lmdb",
    "h5py",
    "tfrecord",
)
_CONTAINER = re.compile(
    r"(?i)\.(?:parquet|arrow|feather|tar|tfrecords?|record|lmdb|h5|hdf5|jsonl?|csv|tsv|bin|beton)"
    r"(?:\.(?:gz|zst|bz2))?$"
)


@of_training(alone=True)
def _small_files(run: Run) -> Judgement:
    if held_in_memory(run):
        return cannot_apply(IN_MEMORY)
    library = imports(run, *_MERGED)
    if library is not None:
        return _imported(library.dotted, library.location)
    folder = first_call(run, ".ImageFolder", ".DatasetFolder")
    if folder is not None:
        return _folder(run, folder)
    opened = opened_per_sample(run)
    if opened is not None:
        return _small_file(run, opened, "")
    reader = first_call(run, ".MMapIndexedDataset", ".IndexedDataset", ".TFRecordDataset")
    if reader is not None:
        return seen(reader)
    table = first_call(run, "datasets.load_dataset", "datasets.load_from_disk", ".read_parquet")
    if table is not None:
        return seen(table)
    if run.value("pretokenized") is True:
        return on(run.practice("pretokenized"))
    if keeps_samples_in_arrow(run) and is_text(run):
        return on("Hugging Face datasets keeps the samples in Arrow tables")
    container = next((s for s in storage.data(run) if _CONTAINER.search(s.path)), None)
    if container is not None and is_text(run):
        said = Text(
            f"样本集中存于 {container.path}", f"{container.path} holds the samples together"
        )
        return Judgement(Status.ENABLED, evidence=container.evidence, current=said)
    return cannot_tell(Text("样本文件的大小无法静态得知", "sizes of sample files are not known"))


def _imported(name: str, location: Location) -> Judgement:
    shown = Evidence(f"import {name}", location)
    current = Text(f"使用 {name}", f"uses {name}")
    return Judgement(Status.ENABLED, evidence=(shown,), current=current)


def _folder(run: Run, call: Call) -> Judgement:
    root = call.positional[0] if call.positional else call.keywords.get("root")
    path = root.value if root is not None and isinstance(root.value, str) else ""
    return _small_file(run, call, path)


def _small_file(run: Run, call: Call, path: str) -> Judgement:
    """``call`` opens a file for each sample: bad where opening is slow."""
    slow = _is_slow(path) or storage.first(run, "slow", "object-store") is not None
    if not slow:
        return cannot_tell(Text("样本逐文件读取", "samples are read file by file"))
    if not _is_slow(path):
        stored = storage.first(run, "slow", "object-store")
        path = stored.named if stored is not None else path
    message = (
        f"{call.method} opens one file per image on a network file system; "
        "pack the images into tar shards (webdataset) or Parquet"
    )
    return Judgement(
        Status.RECOMMENDED,
        evidence=(Evidence(f"{call.method}({path!r})", call.location),),
        findings=(Finding(call.location, message),),
        current=Text(f"从网络文件系统逐文件读图：{path}", f"one file per image from {path}"),
        action=Text(
            "将小文件合并为 WebDataset tar 分片或 Parquet",
            "merge the files into WebDataset tar shards or Parquet",
        ),
    )


_NETWORK = ("nfs", "cfs", "hdfs", "mdfs", "cephfs", "gpfs", "lustre")


def _is_slow(path: str) -> bool:
    return any(part.startswith(_NETWORK) for part in path.lower().split("/"))


# --- GPU508: preprocessing ahead of training ---


_TRL_PREPARES = ("SFTConfig", "DPOConfig", "KTOConfig", "ORPOConfig", "CPOConfig", "RewardConfig")
_STREAMED = Text("流式数据边读边处理", "a streamed dataset is processed as it comes")


@of_training(alone=True)
def _offline(run: Run) -> Judgement:
    if run.value("pretokenized") is True:
        return on(run.practice("pretokenized"))
    if held_in_memory(run):
        return cannot_apply(IN_MEMORY)
    lazy = parameter(run, "lazy_tokenize")
    if is_on(lazy) and not is_unknown(run) and is_text(run):
        return _lazy(run, lazy)
    if _streams(run) or streaming_call(run) is not None:
        return cannot_apply(_STREAMED)
    inside = tokenized_late(run)
    if inside is not None:
        return _tokenized_late(inside)
    saved = (
        first_call(run, ".save_to_disk", "datasets.load_from_disk")
        or tokenized_by_map(run)
        or first_call(run, "numpy.memmap", ".MMapIndexedDataset")
    )
    if saved is not None:
        return seen(saved)
    if run.framework == "flow_factory":
        return _encoded_ahead(run)
    if algorithm(run) in ROLLOUT:
        return cannot_apply(
            Text("提示词在生成时分词", "prompts are tokenised when they are answered")
        )
    if not is_text(run) or decodes_images(run):
        return cannot_apply(
            Text("图像逐样本解码与增强", "images are decoded and augmented sample by sample")
        )
    if is_unknown(run) and tokenises_late(run) is not False:
        return cannot_tell(Text("模型未知", "the model is not known"))
    if run.framework in ("swift", "llamafactory"):
        return on("the framework tokenises the dataset before the first step")
    if configuration_class(run) in _TRL_PREPARES and parameter(run, "dataset_kwargs").value is None:
        return on("TRL's trainer tokenises the dataset before the first step")
    return cannot_tell(Text("分词时机无法静态得知", "when samples are tokenised is not known"))


def _encoded_ahead(run: Run) -> Judgement:
    """Flow-Factory encodes prompts and conditions before it trains (data_utils/dataset.py)."""
    setting = parameter(
        run, "data.enable_preprocess", default=True, source="Flow-Factory 0.1.0, hparams"
    )
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return on(setting)
    return off(Text("每步编码提示词", "prompts are encoded at every step"), setting)


def _streams(run: Run) -> bool:
    return run.value("streaming") is True


def _lazy(run: Run, setting: Setting) -> Judgement:
    return advise(
        run,
        "text is tokenised while the GPU trains, anew in every epoch",
        Text("训练过程中分词", "samples are tokenised during training"),
        Text("训练前一次性分词", "tokenise once, before training"),
        parameters=_eager(run),
        at=setting,
    )


def _eager(run: Run) -> dict[str, Any]:
    wanted: dict[str, Any] = {"lazy_tokenize": False}
    spelling = spelled(run, {"preprocessing_workers": PREPROCESSING_WORKERS})
    if spelling and (number(run, "preprocessing_workers") or 1) <= 1:
        wanted.update(spelling)
    return wanted


def _tokenized_late(call: Call) -> Judgement:
    message = (
        "the sample is tokenised again in every epoch; tokenise once, with "
        "dataset.map(tokenize, batched=True, num_proc=8), and load the result"
    )
    return Judgement(
        Status.RECOMMENDED,
        evidence=(Evidence(f"{call.name}(...)", call.location),),
        findings=(Finding(call.location, message),),
        current=Text("取样本时分词", "samples are tokenised when fetched"),
        action=Text(
            "用 dataset.map(..., num_proc=8) 提前分词并保存",
            "tokenise ahead with dataset.map(..., num_proc=8) and save the result",
        ),
    )


# --- GPU509: preprocessing in parallel ---

_FEW = 500
"""Samples that one process tokenises within seconds."""
_TAKEN = re.compile(r"[^#\s]+#(\d+)")


def _taken(run: Run) -> Optional[int]:
    """How many samples ms-swift takes where each data set says so (``name#100``), else None."""
    named = run.practice("dataset")
    if run.framework != "swift" or not named.known:
        return None
    words = named.value if isinstance(named.value, (list, tuple)) else str(named.value).split()
    counts = [_TAKEN.fullmatch(str(word).strip("'\"")) for word in words]
    return sum(int(found[1]) for found in counts if found) if words and all(counts) else None


@of_training(alone=False)
def _preprocessing(run: Run) -> Judgement:
    if not has(run, "preprocessing_workers"):
        return cannot_tell(Text("框架无此参数", "the framework has no such parameter"))
    setting = run.practice("preprocessing_workers")
    if not setting.known:
        return cannot_tell(setting)
    # Who gives the workers that tokenise makes LLaMA-Factory's cache by this run, or may have to.
    makes_cache = run.framework == "llamafactory" and setting.explicit
    if _streams(run) or (run.value("pretokenized") is True and not makes_cache):
        return cannot_apply(Text("训练前没有预处理", "nothing is preprocessed before training"))
    if first_call(run, "datasets.load_from_disk") is not None:
        return cannot_tell(Text("数据集已事先保存", "the dataset was saved ahead of the run"))
    if algorithm(run) in ROLLOUT:
        return off(Text("提示词在生成时分词", "prompts are tokenised when they are answered"))
    late = tokenises_late(run) if run.framework == "swift" else False
    if late is None:
        return cannot_tell(Text("模型未知", "the model is not known"))
    if late or is_on(parameter(run, "lazy_tokenize")):
        return cannot_apply(Text("取样本时才分词", "samples are tokenised when fetched"))
    if (number(run, "preprocessing_workers") or 1) > 1:
        return on(setting)
    taken = _taken(run)
    if taken is not None and taken <= _FEW:
        few = f"只取 {taken} 条样本，单进程足够", f"{taken} samples are taken: one process will do"
        return off(Text(*few), setting)
    return advise(
        run,
        "one process tokenises the whole dataset before the first step",
        Text("单进程预处理", "one process preprocesses the dataset"),
        Text("设置预处理进程数，缩短启动时间", "preprocess in parallel: a shorter start"),
        practices={"preprocessing_workers": PREPROCESSING_WORKERS},
        at=setting,
    )


_IMAGES = """\
from torch.utils.data import DataLoader
{}

images = {}
for pixels, labels in DataLoader(images, 64, num_workers=8, pin_memory=True):
    loss = criterion(model(pixels.cuda(non_blocking=True)), labels.cuda(non_blocking=True))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU505",
        "small-files",
        Text("小文件合并", "Small files are merged"),
        Priority.MEDIUM,
        _small_files,
        why="Opening a file costs a round trip to the metadata server of a network file "
        "system; with a file per sample that outweighs reading it.",
        fix="Pack samples into tar shards (WebDataset), TFRecord, Parquet or Arrow.",
        items=(Item("general", "F", "small-file-merging", 1),),
        impact=by_class(
            Priority.MEDIUM,
            "https://github.com/webdataset/webdataset",
            Text("网络存储上的大量小文件", "many small files on network storage"),
        ),
        difficulty="medium",
        examples=(
            Example(
                "generic",
                "train.py",
                _IMAGES.format(
                    "from torchvision.datasets import ImageFolder",
                    'ImageFolder("/mnt/nfs/imagenet/train", transform)',
                ),
                _IMAGES.format(
                    "import webdataset",
                    'webdataset.WebDataset("/local_ssd/imagenet/train-{000000..000146}.tar")',
                ),
            ),
        ),
        sources=("https://github.com/webdataset/webdataset",),
    ),
    Check(
        "GPU508",
        "offline-preprocessing",
        Text("离线预处理", "Samples are preprocessed ahead"),
        Priority.MEDIUM,
        _offline,
        why="Tokenising when a sample is fetched repeats the work in every epoch and takes "
        "the workers' time while the GPU trains.",
        fix="Tokenise once with datasets.map(num_proc=...) and load the saved result.",
        ignore="Augmentation needs the raw text, or the dataset is streamed.",
        items=(Item("general", "F", "offline-preprocessing", 1),),
        impact=by_class(
            Priority.MEDIUM,
            "https://huggingface.co/docs/datasets/process",
            Text("取决于分词占比", "depends on the share of tokenising"),
        ),
        examples=(
            Example(
                "generic",
                "dataset.py",
                """\
import torch
from torch.utils.data import Dataset
from transformers import AutoTokenizer


class Reviews(Dataset):
    def __init__(self, texts):
        self.texts = texts
        self.tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")

    def __getitem__(self, index):
        return self.tokenizer(self.texts[index], truncation=True, return_tensors="pt")


def train(model, loader, optimizer):
    for batch in loader:
        loss = model(**batch.to("cuda")).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
""",
                """\
import torch
from torch.utils.data import Dataset


class Reviews(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, index):
        return torch.tensor(self.rows[index]["input_ids"])


def train(model, loader, optimizer):
    for batch in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(input_ids=batch.to("cuda", non_blocking=True)).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
""",
            ),
        ),
        sources=("https://huggingface.co/docs/datasets/process",),
    ),
    Check(
        "GPU509",
        "preprocessing-workers",
        Text("多进程预处理", "Preprocessing runs in parallel"),
        Priority.LOW,
        _preprocessing,
        why="The dataset is mapped and tokenised before the first step; in one process the "
        "GPUs wait for it, at every start of the job.",
        fix="Set the number of preprocessing processes (8 or more on a host with the cores).",
        items=(
            Item("swift", "H", "preprocessing-workers", 1),
            Item("llamafactory", "H", "preprocessing-workers", 1),
        ),
        impact=by_class(
            Priority.LOW,
            "https://huggingface.co/docs/datasets/process#multiprocessing",
            Text("只缩短启动时间", "shortens the start only"),
        ),
        examples=(
            swift_lacks("dataset_num_proc 8"),
            llamafactory_lacks("preprocessing_num_workers"),
        ),
        sources=("https://huggingface.co/docs/datasets/process#multiprocessing",),
    ),
)
