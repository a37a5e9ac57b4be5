"""GPU510 to GPU512: how samples are read: mapped, streamed, as tokens made beforehand."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Optional

from flake8_gpu_training.checks import _storage as storage
from flake8_gpu_training.checks._corpora import CORPORA, REGISTERED, Corpus
from flake8_gpu_training.checks._judging import (
    advise,
    by_itself,
    cannot_apply,
    cannot_tell,
    excluding,
    of_training,
    off,
    on,
    seen,
    with_edits,
)
from flake8_gpu_training.checks._loaders import write_call
from flake8_gpu_training.checks._programs import calls, first_call, keyword
from flake8_gpu_training.checks._samples import (
    IN_MEMORY,
    decodes_images,
    held_in_memory,
    keeps_samples_in_arrow,
    opened_per_sample,
    streaming_call,
)
from flake8_gpu_training.checks._scale import (
    ranks,
)
from flake8_gpu_training.checks._settings import (
    NOT_SWIFT,
    is_on,
    is_text,
    parameter,
)
from flake8_gpu_training.checks._swift import tokenises_late
from flake8_gpu_training.checks.base import (
    Check,
    Evidence,
    Finding,
    Impact,
    Item,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Call
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run


@of_training(alone=True)
def _reading(run: Run) -> Judgement:
    if held_in_memory(run):
        return cannot_apply(IN_MEMORY)
    streaming = run.practice("streaming")
    if streaming.known and streaming.value is True:
        return on(streaming, "streaming")
    stream = streaming_call(run)
    if stream is not None:
        return seen(stream, "streaming")
    whole = _fetched_whole(run) or _kept_in_memory(run)
    if whole is not None:
        return whole
    mapped = _mapped_call(run)
    if mapped is not None:
        return seen(mapped, "mapped")
    loaded = _loaded_whole(run)
    if loaded is not None:
        return loaded
    if run.value("megatron") is True and run.value("pretokenized") is True:
        return _of_megatron(run)
    if not streaming.known and run.framework in ("llamafactory", "swift"):
        return cannot_tell(streaming)
    if keeps_samples_in_arrow(run) or first_call(run, "datasets.load_dataset") is not None:
        return by_itself(_ARROW, "mapped")
    if first_call(run, ".ImageFolder", ".DatasetFolder") or opened_per_sample(run) is not None:
        return cannot_apply(
            Text("样本各为一个文件，用时读取", "each sample is a file, read when used")
        )
    return cannot_tell(Text("数据读取方式无法静态得知", "how samples are read is not known"))


_ARROW = Text(
    "Hugging Face datasets 以内存映射读取 Arrow 表",
    "Hugging Face datasets memory-maps its Arrow tables",
)


def _of_megatron(run: Run) -> Judgement:
    off_switch = run.setting("no_mmap_bin_files") or run.setting("mmap_bin_files")
    if off_switch is not None:
        return off(Text("关闭了 .bin 的内存映射", ".bin files are not memory-mapped"), off_switch)
    return on(run.practice("pretokenized"), "mapped")


def _mapped_call(run: Run) -> Optional[Call]:
    for call in calls(run, "numpy.load"):
        if keyword(call, "mmap_mode") is not None:
            return call
    return first_call(
        run, "numpy.memmap", ".MMapIndexedDataset", "datasets.load_from_disk", "lmdb.open"
    )


def _fetched_whole(run: Run) -> Optional[Judgement]:
    """The advice to stream a corpus that is fetched and unpacked before the first step."""
    for call in calls(run, "datasets.load_dataset"):
        corpus = _corpus_of(call)
        if corpus is not None and not call.is_open:
            change = write_call(run, call, {"streaming": True})
            message = _whole_message(str(keyword(call, "path", 0)), corpus)
            finding = Finding(call.location, f"set streaming=True: {message}", change)
            return _to_stream(finding, Evidence(call.name, call.location), corpus)
    setting = run.practice("dataset")
    for name in storage.names(setting.value) if setting.known else ():
        known_as = REGISTERED.get(name, name).lower().partition(":")[0]
        corpus = CORPORA.get(known_as)
        if corpus is None or run.framework not in ("swift", "llamafactory"):
            continue
        answer = advise(
            run,
            _whole_message(name, corpus),
            *_stream_texts(corpus),
            practices={"streaming": True},
            variant="streaming",
            at=setting,
        )
        # Streaming needs the number of steps, which the user must choose.
        return with_edits(answer)
    return None


def _corpus_of(call: Call) -> Optional[Corpus]:
    name, part = keyword(call, "path", 0), keyword(call, "name", 1)
    corpus = CORPORA.get(name.lower()) if isinstance(name, str) else None
    if corpus is None or "data_files" in call.keywords or "data_dir" in call.keywords:
        return None
    if part is not None and (
        not isinstance(part, str) or any(part.startswith(small) for small in corpus.parts)
    ):
        return None
    return corpus


def _whole_message(name: str, corpus: Corpus) -> str:
    return f"all of {name} ({corpus.size}) is fetched and unpacked before the first step"


def _stream_texts(corpus: Corpus) -> tuple[Text, Text]:
    return (
        Text(
            f"训练前下载并解压整个语料（{corpus.size}）",
            f"the whole corpus is fetched first ({corpus.size})",
        ),
        Text("改为流式读取（需设 max_steps）", "stream it (with max_steps set)"),
    )


def _to_stream(finding: Finding, shown: Evidence, corpus: Corpus) -> Judgement:
    current, action = _stream_texts(corpus)
    assert finding.change is not None
    change = replace(finding.change, edits=())
    finding = replace(finding, change=change)
    return Judgement(
        Status.RECOMMENDED, "streaming", 1.0, (shown,), (finding,), current, action, change
    )


def _kept_in_memory(run: Run) -> Optional[Judgement]:
    """The advice to leave ``keep_in_memory`` off."""
    for call in calls(run, "datasets.load_dataset", "datasets.load_from_disk"):
        if keyword(call, "keep_in_memory") is not True:
            continue
        argument = call.keywords["keep_in_memory"]
        change = write_call(run, call, {"keep_in_memory": False})
        return _to_map(
            Finding(
                argument.location,
                "set keep_in_memory=False: every rank copies the dataset into host memory "
                "instead of sharing the memory-mapped file",
                change,
            ),
            Evidence(f"{call.method}(keep_in_memory=True)", call.location),
        )
    return None


def _loaded_whole(run: Run) -> Optional[Judgement]:
    """The advice to map a file of training data that each of several ranks reads whole."""
    if (ranks(run) or 1) <= 1:
        return None
    for call in calls(run, "numpy.load", "numpy.fromfile"):
        argument = call.positional[0] if call.positional else None
        if argument is None or call.scope.endswith("__getitem__") or call.loop is not None:
            continue
        path = argument.value if isinstance(argument.value, str) else argument.text
        if not _TOKEN_FILE.search(path):
            continue
        is_load = call.method == "load"
        change = write_call(run, call, {"mmap_mode": "r"}) if is_load else None
        wanted = 'pass mmap_mode="r"' if is_load else "use numpy.memmap"
        return _to_map(
            Finding(
                call.location,
                f"{wanted}: each of the {ranks(run)} ranks reads the whole file into host memory",
                change,
            ),
            Evidence(f"{call.method}({argument.text})", call.location),
        )
    return None


_TOKEN_FILE = re.compile(r"(?i)(?:train|token|corpus)[^/]*\.(?:npy|bin)\b")


def _to_map(finding: Finding, shown: Evidence) -> Judgement:
    return Judgement(
        Status.RECOMMENDED,
        "mapped",
        1.0,
        (shown,),
        (finding,),
        Text("每个进程整体读入数据", "each rank reads the data whole"),
        Text("使用内存映射，各进程共享同一份", "memory-map the file, which the ranks then share"),
        finding.change,
    )


@of_training(alone=True)
def _binary(run: Run) -> Judgement:
    if run.value("pretokenized") is True:
        return on(run.practice("pretokenized"))
    call = first_call(run, ".MMapIndexedDataset", ".GPTDataset", "numpy.memmap")
    if call is not None:
        return seen(call)
    if run.framework == "llamafactory":
        return _uncached(run)
    if not is_text(run) or decodes_images(run):
        return cannot_apply(Text("非文本数据", "the data are not text"))
    return off(Text("未使用预分词二进制数据（可选）", "no pretokenized data (optional)"))


def _uncached(run: Run) -> Judgement:
    """LlamaFactory keeps tokenised samples of any kind, unless they are streamed."""
    cached = run.practice("pretokenized")
    if not cached.known:
        return cannot_tell(cached)
    if run.value("streaming") is True:
        return cannot_apply(Text("流式读取", "the data are streamed"))
    return off(
        Text(
            "可选：tokenized_path 保存分词结果供再次训练",
            "optional: tokenized_path keeps the tokens for the next run",
        )
    )


@of_training(alone=True)
def _swift_reading(run: Run) -> Judgement:
    if run.framework != "swift":
        return cannot_apply(NOT_SWIFT)
    streaming, lazy = run.practice("streaming"), parameter(run, "lazy_tokenize")
    if not streaming.known:
        return cannot_tell(streaming)
    if streaming.value is True:
        return excluding(on(streaming, "streaming"), _ONE_OF_TWO, "lazy")
    if is_on(lazy):
        return on(lazy, "lazy")
    if not lazy.known:
        return cannot_tell(lazy)
    whole = _fetched_whole(run)
    if whole is not None:
        return replace(whole, findings=())  # GPU510 says it
    if run.value("packing") is True:
        answer = off(Text("未启用（超大数据集可选）", "off (for very large datasets)"))
        return excluding(answer, Text("与 packing 互斥", "not with packing"), "lazy")
    late = tokenises_late(run)
    if late is None:
        return cannot_tell(Text("模型未知", "the model is not known"))
    if late:
        return on("lazy_tokenize=true (ms-swift's default for multimodal models)", "lazy")
    return off(
        Text(
            "训练前整体读入并分词（超大数据集可流式或延迟分词）",
            "read and tokenised before training (very large datasets may be streamed, or "
            "tokenised when fetched)",
        )
    )


_ONE_OF_TWO = Text("与 streaming 互斥", "not with streaming")


CHECKS: tuple[Check, ...] = (
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
            Item("llamafactory", "H", "streaming", 1, "", "streaming"),
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
        items=(
            Item("general", "F", "pretokenized-binary", 1),
            Item("llamafactory", "H", "tokenized-cache", 1),
        ),
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
