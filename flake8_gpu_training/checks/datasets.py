"""GPU505, GPU508 to GPU512: how samples are stored, preprocessed and read."""

from __future__ import annotations

from typing import Any, Optional

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
from flake8_gpu_training.checks._programs import calls, first_call, imports
from flake8_gpu_training.checks._scale import (
    number,
)
from flake8_gpu_training.checks._settings import (
    NOT_SWIFT,
    ROLLOUT,
    algorithm,
    has,
    is_on,
    is_text,
    parameter,
)
from flake8_gpu_training.checks.base import (
    Check,
    Evidence,
    Example,
    Finding,
    Impact,
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

_MERGED = ("webdataset", "streaming", "litdata", "ffcv", "nvidia.dali", "tensorflow.data", "lmdb")
_SLOW = ("nfs", "cfs", "hdfs", "mdfs", "cephfs", "gpfs", "lustre")
_ARROW = ("swift", "llamafactory", "hf_trainer", "flow_factory")


@of_training(alone=True)
def _small_files(run: Run) -> Judgement:
    library = imports(run, *_MERGED)
    if library is not None:
        return _imported(library.dotted, library.location)
    folder = first_call(run, ".ImageFolder", ".DatasetFolder")
    if folder is not None:
        return _folder(run, folder)
    reader = first_call(run, ".MMapIndexedDataset", ".IndexedDataset", ".TFRecordDataset")
    if reader is not None:
        return seen(reader)
    table = first_call(run, "datasets.load_dataset", "datasets.load_from_disk", ".read_parquet")
    if table is not None:
        return seen(table)
    if run.framework in _ARROW and is_text(run):
        return on("Hugging Face datasets keeps the samples in Arrow tables")
    return cannot_tell(Text("样本文件的大小无法静态得知", "sizes of sample files are not known"))


def _imported(name: str, location: Location) -> Judgement:
    shown = Evidence(f"import {name}", location)
    current = Text(f"使用 {name}", f"uses {name}")
    return Judgement(Status.ENABLED, evidence=(shown,), current=current)


def _folder(run: Run, call: Call) -> Judgement:
    root = call.positional[0] if call.positional else call.keywords.get("root")
    path = root.value if root is not None and isinstance(root.value, str) else ""
    parts = [part.lower() for part in path.split("/")]
    if not any(part.startswith(_SLOW) for part in parts):
        return cannot_tell(Text("样本逐文件读取", "samples are read file by file"))
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


# --- GPU508: preprocessing ahead of training ---


@of_training(alone=True)
def _offline(run: Run) -> Judgement:
    if run.value("pretokenized") is True:
        return on(run.practice("pretokenized"))
    lazy = parameter(run, "lazy_tokenize")
    if is_on(lazy) and is_text(run):
        return _lazy(run, lazy)
    saved = first_call(run, ".save_to_disk", "datasets.load_from_disk")
    if saved is not None:
        return seen(saved)
    inside = _tokenizes_samples(run)
    if inside is not None:
        return _tokenized_late(inside)
    if _tokenizes_first(run) and is_text(run) and not _streams(run):
        return on("the framework tokenises the dataset before the first step")
    return cannot_tell(Text("分词时机无法静态得知", "when samples are tokenised is not known"))


def _tokenizes_first(run: Run) -> bool:
    """Whether the framework maps its tokenizer over the dataset when the run starts."""
    return run.framework in ("swift", "llamafactory") or configuration_class(run) == "SFTConfig"


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


def _tokenizes_samples(run: Run) -> Optional[Call]:
    for file in run.python:
        for call in file.calls:
            if call.scope.endswith("__getitem__") and "tokenizer" in call.name.split("."):
                return call
            if call.scope.endswith("__getitem__") and call.method == "tokenizer":
                return call
    return None


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


@of_training(alone=False)
def _preprocessing(run: Run) -> Judgement:
    if not has(run, "preprocessing_workers"):
        return cannot_tell(Text("框架无此参数", "the framework has no such parameter"))
    setting = run.practice("preprocessing_workers")
    if not setting.known:
        return cannot_tell(setting)
    if run.model.kind == "unknown" and run.framework == "swift":
        return cannot_tell(Text("模型未知", "the model is not known"))
    if _streams(run) or run.value("pretokenized") is True:
        return cannot_apply(Text("训练前没有预处理", "nothing is preprocessed before training"))
    if first_call(run, "datasets.load_from_disk") is not None:
        return cannot_tell(Text("数据集已事先保存", "the dataset was saved ahead of the run"))
    if algorithm(run) in ROLLOUT:
        return off(Text("提示词在生成时分词", "prompts are tokenised when they are answered"))
    lazy = parameter(run, "lazy_tokenize")
    if is_on(lazy) or (run.framework == "swift" and not is_text(run) and not lazy.explicit):
        return cannot_apply(Text("取样本时才分词", "samples are tokenised when fetched"))
    if (number(run, "preprocessing_workers") or 1) > 1:
        return on(setting)
    return advise(
        run,
        "one process tokenises the whole dataset before the first step",
        Text("单进程预处理", "one process preprocesses the dataset"),
        Text("多进程预处理，缩短启动时间", "preprocess in parallel: a shorter start"),
        practices={"preprocessing_workers": PREPROCESSING_WORKERS},
        at=setting,
    )


# --- GPU510, GPU511, GPU512: how samples are stored and read ---


@of_training(alone=True)
def _reading(run: Run) -> Judgement:
    streaming = run.practice("streaming")
    if streaming.known and streaming.value is True:
        return on(streaming, "streaming")
    stream = _streaming_call(run)
    if stream is not None:
        return seen(stream, "streaming")
    mapped = first_call(run, "numpy.memmap", ".MMapIndexedDataset", "datasets.load_from_disk")
    if mapped is not None:
        return seen(mapped, "mapped")
    if run.framework in _ARROW or first_call(run, "datasets.load_dataset") is not None:
        return on("Hugging Face datasets memory-maps its Arrow tables", "mapped")
    return cannot_tell(Text("数据读取方式无法静态得知", "how samples are read is not known"))


def _streaming_call(run: Run) -> Optional[Call]:
    for call in calls(run, "datasets.load_dataset"):
        argument = call.keywords.get("streaming")
        if argument is not None and argument.value is True:
            return call
    return first_call(run, ".WebDataset", ".StreamingDataset")


@of_training(alone=True)
def _binary(run: Run) -> Judgement:
    if run.value("pretokenized") is True:
        return on(run.practice("pretokenized"))
    call = first_call(run, ".MMapIndexedDataset", ".GPTDataset", "numpy.memmap")
    if call is not None:
        return seen(call)
    if not is_text(run):
        return cannot_apply(Text("非文本数据", "the data are not text"))
    return off(Text("未使用预分词二进制数据（可选）", "no pretokenized data (optional)"))


@of_training(alone=True)
def _swift_reading(run: Run) -> Judgement:
    if run.framework != "swift":
        return cannot_apply(NOT_SWIFT)
    streaming, lazy = run.practice("streaming"), parameter(run, "lazy_tokenize")
    if streaming.known and streaming.value is True:
        return on(streaming, "streaming")
    if is_on(lazy):
        return on(lazy, "lazy")
    if not is_text(run) and not lazy.explicit and run.value("packing") is not True:
        return on("lazy_tokenize=true (ms-swift's default for multimodal models)", "lazy")
    return off(Text("未启用（超大数据集可选）", "off (for very large datasets)"))


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
        items=(Item("swift", "H", "preprocessing-workers", 1),),
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
    Check(
        "GPU510",
        "mapped-or-streamed-data",
        Text("内存映射或流式读取", "Data are memory-mapped or streamed"),
        Priority.LOW,
        _reading,
        why="A dataset read into memory whole costs host memory once per rank.",
        fix="Keep it in Arrow, a memory map, or a streaming format.",
        items=(
            Item("general", "F", "memory-mapping", 1, "reading", "mapped"),
            Item("general", "F", "streaming-dataset", 1, "reading", "streaming"),
        ),
        impact=Impact(source="https://huggingface.co/docs/datasets/about_arrow"),
        sources=("https://huggingface.co/docs/datasets/about_arrow",),
    ),
    Check(
        "GPU511",
        "pretokenized-binary",
        Text("预分词二进制数据", "Pretokenized binary data"),
        Priority.LOW,
        _binary,
        why="Pretokenized files (.bin/.idx, cached datasets) start at once and read no text.",
        fix="Write the tokens once (swift export --to_cached_dataset, Megatron's "
        "preprocess_data.py) and train on them.",
        items=(Item("general", "F", "pretokenized-binary", 1),),
        impact=Impact(source="ms-swift 4.6.0, arguments/export_args.py"),
        sources=("ms-swift 4.6.0, arguments/export_args.py",),
    ),
    Check(
        "GPU512",
        "swift-streaming-or-lazy",
        Text("流式或延迟分词（ms-swift）", "Streaming or lazy tokenising (ms-swift)"),
        Priority.LOW,
        _swift_reading,
        why="Very large datasets need not be read before the first step. The two exclude "
        "each other.",
        fix="Set streaming (with max_steps) or lazy_tokenize.",
        items=(
            Item("swift", "H", "streaming", 1, "reading", "streaming"),
            Item("swift", "H", "lazy-tokenize", 1, "reading", "lazy"),
        ),
        impact=Impact(source="ms-swift 4.6.0, arguments/base_args/base_args.py"),
        sources=("ms-swift 4.6.0, arguments/base_args/base_args.py",),
    ),
)
