"""GPU5xx: how data reach the GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, Optional

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
from flake8_gpu_training.checks._loaders import Loader, merged, training_loaders
from flake8_gpu_training.checks._programs import calls, decoder_loads_vision, first_call, imports
from flake8_gpu_training.checks._scale import (
    has_no_flash_code,
    is_cuda,
    is_recurrent,
    number,
    text,
)
from flake8_gpu_training.checks._settings import (
    NOT_SWIFT,
    ROLLOUT,
    algorithm,
    has,
    is_on,
    is_text,
    may_use_flash_attention,
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
from flake8_gpu_training.facts import Call, Location, Setting, known
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

WORKERS = 4
PREPROCESSING_WORKERS = 8
_NO_LOADER = Text("未见数据加载代码", "no data loader was seen")
_NO_WORKERS = Text("数据在训练主进程中加载", "the main process loads the data")
_PROMPTS = Text(
    "提示词加载耗时远小于生成", "loading prompts takes no time beside generating completions"
)
_STREAMS = Text("流式数据集只用一个 worker", "a streaming dataset uses one worker")

_PYTORCH_DATA = "https://pytorch.org/docs/stable/data.html"
_PYTORCH_TUNING = "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
_SWIFT_ARGUMENTS = "ms-swift 3.12.6 and 4.6.0, trainers/arguments.py"
_HF_ARGUMENTS = "transformers 5.24, training_args.py"
_PACKING = "https://huggingface.co/blog/packing-with-FA2"


def _of_loaders(run: Run, judge: Callable[[Run, Loader], Judgement]) -> list[Judgement]:
    return [judge(run, loader) for loader in training_loaders(run)]


def _advise_loader(
    run: Run,
    loader: Loader,
    parameters: Mapping[str, Any],
    message: str,
    current: Text,
    action: Text,
    priority: Optional[Priority] = None,
) -> Judgement:
    """Recommend ``parameters`` at a DataLoader; the diagnostic stands at the first of them."""
    change = loader.change(run, parameters)
    finding = Finding(loader.location(next(iter(parameters))), message, change)
    return Judgement(
        Status.RECOMMENDED,
        evidence=(_shown(loader),),
        findings=(finding,),
        current=current,
        action=action,
        change=change,
        priority=priority,
    )


def _shown(loader: Loader, name: str = "") -> Evidence:
    argument = loader.argument(name) if name else None
    shown = f"DataLoader({name}={argument.text})" if argument else "DataLoader(...)"
    return Evidence(shown, loader.location(name) if name else loader.call.location)


def _loader_on(loader: Loader, name: str) -> Judgement:
    shown = _shown(loader, name)
    current = Text(f"已启用：{shown.text}", f"on: {shown.text}")
    return Judgement(Status.ENABLED, evidence=(shown,), current=current)


# --- GPU501: worker processes ---


@of_training(alone=True)
def _workers(run: Run) -> Judgement:
    parts = _of_loaders(run, _loader_workers)
    if has(run, "dataloader_workers"):
        parts.append(_setting_workers(run))
    return merged(parts, cannot_tell(_NO_LOADER))


def _setting_workers(run: Run) -> Judgement:
    setting = run.practice("dataloader_workers")
    if not setting.known:
        return cannot_tell(setting)
    if run.framework == "swift" and run.value("streaming") is True:
        return off(_STREAMS)
    if algorithm(run) in ROLLOUT and is_text(run):
        return off(_PROMPTS)
    workers = number(run, "dataloader_workers")
    if workers is None or workers >= WORKERS or (workers > 1 and setting.explicit):
        return on(setting)
    few = workers > 0
    reason = (
        "one worker process prepares all batches"
        if few
        else "the main process loads data while the GPU waits"
    )
    return advise(
        run,
        f"{reason} (4 to 8 workers per GPU are usual)",
        Text(f"{setting.note or 'dataloader workers'}", f"{setting.note or 'dataloader workers'}"),
        Text(
            "每个 GPU 进程设 4~8 个加载进程，使取数与计算重叠（每个进程默认预取 2 个 batch）",
            "use 4 to 8 worker processes per GPU, so that loading overlaps computing "
            "(each prefetches 2 batches)",
        ),
        practices=_with_workers(run, setting),
        at=setting,
        # Text is tokenised before training: one worker then keeps up with most models.
        priority=Priority.LOW if few and is_text(run) else None,
        share=0.5 if few else None,
    )


def _with_workers(run: Run, workers: Setting) -> dict[str, Any]:
    """Workers, and what they would be told to have next."""
    wanted: dict[str, Any] = {"dataloader_workers": WORKERS}
    kept = run.practice("persistent_workers")
    repeats = has(run, "persistent_workers") and not _runs_one_epoch(run)
    if workers.value == 0 and repeats and kept.known and kept.value is False:
        wanted["persistent_workers"] = True
    return wanted


def _loader_workers(run: Run, loader: Loader) -> Judgement:
    workers = loader.value("num_workers", 0)
    if not known(workers):
        return cannot_tell(Text("num_workers 由程序计算", "num_workers is computed"))
    if workers != 0:
        return _loader_on(loader, "num_workers")
    argument = loader.argument("num_workers")
    if argument is not None and not argument.text.isidentifier() and argument.text != "0":
        return cannot_tell(Text("num_workers 由参数给出", "num_workers is an option's value"))
    parameters: dict[str, Any] = {"num_workers": WORKERS}
    if loader.on_gpu and loader.value("pin_memory", False) is False:
        parameters["pin_memory"] = True
    if _is_iterated_per_epoch(loader) and loader.value("persistent_workers", False) is False:
        parameters["persistent_workers"] = True
    extra = "".join(f" and {name}=True" for name in parameters if name != "num_workers")
    return _advise_loader(
        run,
        loader,
        parameters,
        "DataLoader loads in the main process while the GPU waits; "
        f"set num_workers={WORKERS} (4 to 8 per GPU process){extra}",
        _NO_WORKERS,
        Text(
            "DataLoader 设 num_workers=4~8（每个 GPU 进程）",
            "give the DataLoader num_workers=4 to 8 per GPU process",
        ),
    )


# --- GPU502: pinned memory ---


@of_training(alone=True)
def _pinned(run: Run) -> Judgement:
    parts = _of_loaders(run, _loader_pinned)
    if has(run, "pin_memory"):
        parts.append(_setting_pinned(run))
    return merged(parts, cannot_tell(_NO_LOADER))


def _setting_pinned(run: Run) -> Judgement:
    setting = run.practice("pin_memory")
    if not setting.known:
        return cannot_tell(setting)
    if setting.value is not False:
        return on(setting)
    return advise(
        run,
        "copies from pageable memory block the CPU and are slower",
        Text("锁页内存被关闭", "pinned memory is switched off"),
        Text("使用锁页内存，加快主机到 GPU 的拷贝", "pin host memory: faster copies to the GPU"),
        practices={"pin_memory": True},
        at=setting,
    )


def _loader_pinned(run: Run, loader: Loader) -> Judgement:
    pinned = loader.value("pin_memory", False)
    if not known(pinned):
        return cannot_tell(Text("pin_memory 由程序计算", "pin_memory is computed"))
    if pinned:
        return _loader_on(loader, "pin_memory")
    if not loader.on_gpu:
        return cannot_tell(Text("未见 GPU 代码", "no GPU code is in sight"))
    judgement = _advise_loader(
        run,
        loader,
        {"pin_memory": True},
        "batches are copied to the GPU from pageable memory; set pin_memory=True",
        Text("DataLoader 未使用锁页内存", "the DataLoader does not pin memory"),
        Text(
            "DataLoader 设 pin_memory=True，并用 non_blocking=True 拷贝",
            "give the DataLoader pin_memory=True and copy with non_blocking=True",
        ),
    )
    return _silent(judgement) if loader.value("num_workers", 0) == 0 else judgement


def _silent(judgement: Judgement) -> Judgement:
    """Without diagnostic: the one about missing workers at the same place says it too."""
    return Judgement(
        judgement.status,
        evidence=judgement.evidence,
        current=judgement.current,
        action=judgement.action,
        change=judgement.change,
    )


# --- GPU503: persistent workers ---


@of_training(alone=True)
def _persistent(run: Run) -> Judgement:
    parts = _of_loaders(run, _loader_persistent)
    if has(run, "persistent_workers"):
        parts.append(_setting_persistent(run))
    return merged(parts, cannot_tell(_NO_LOADER))


def _setting_persistent(run: Run) -> Judgement:
    setting = run.practice("persistent_workers")
    workers = number(run, "dataloader_workers")
    if not setting.known or workers is None:
        return cannot_tell(setting)
    if setting.value is True:
        return on(setting)
    if workers == 0:
        return cannot_apply(Text("没有加载进程", "there are no worker processes"))
    if _runs_one_epoch(run):
        return off(Text("只训练一个 epoch", "the run takes one epoch"), setting)
    return advise(
        run,
        "worker processes are started anew at every epoch",
        Text("每个 epoch 重启加载进程", "workers are restarted at every epoch"),
        Text("跨 epoch 保持加载进程", "keep the workers between epochs"),
        practices={"persistent_workers": True},
        at=setting,
    )


def _runs_one_epoch(run: Run) -> bool:
    steps = parameter(run, "max_steps")
    epochs = parameter(run, "num_train_epochs", "max_epochs", default=3)
    if steps.explicit and (not steps.known or is_on(steps)):
        return True
    return not epochs.known or not isinstance(epochs.value, (int, float)) or epochs.value <= 1


def _loader_persistent(run: Run, loader: Loader) -> Judgement:
    kept, workers = loader.value("persistent_workers", False), loader.value("num_workers", 0)
    if kept is True:
        return _loader_on(loader, "persistent_workers")
    if not known(kept) or not known(workers):
        return cannot_tell(Text("由程序计算", "computed by the program"))
    if workers == 0:
        return cannot_apply(Text("没有加载进程", "there are no worker processes"))
    if not _is_iterated_per_epoch(loader):
        return cannot_tell(Text("未见 epoch 循环", "no loop over epochs is in sight"))
    return _advise_loader(
        run,
        loader,
        {"persistent_workers": True},
        "worker processes are started anew at every epoch; set persistent_workers=True",
        Text("每个 epoch 重启加载进程", "workers are restarted at every epoch"),
        Text(
            "DataLoader 设 persistent_workers=True", "give the DataLoader persistent_workers=True"
        ),
    )


def _is_iterated_per_epoch(loader: Loader) -> bool:
    name = loader.call.assigned_to
    return any(
        name and loop.iterable == name and loop.parent is not None for loop in loader.file.loops
    )


# --- GPU504: prefetch ---


@of_training(alone=True)
def _prefetch(run: Run) -> Judgement:
    parts = _of_loaders(run, _loader_prefetch)
    if has(run, "prefetch_factor") or has(run, "dataloader_workers"):
        parts.append(_setting_prefetch(run))
    pipeline = first_call(run, ".prefetch")
    return merged(parts, seen(pipeline) if pipeline else cannot_tell(_NO_LOADER))


def _setting_prefetch(run: Run) -> Judgement:
    workers, setting = run.practice("dataloader_workers"), run.practice("prefetch_factor")
    if not workers.known:
        return cannot_tell(workers)
    if number(run, "dataloader_workers") == 0:
        return _no_prefetch_without_workers()
    factor = number(run, "prefetch_factor")
    if factor is None:
        return on("prefetch_factor=2 (PyTorch's default with workers)")
    if factor >= 2:
        return on(setting)
    return advise(
        run,
        "each worker holds a single batch ready",
        Text(f"prefetch_factor={factor:g}", f"prefetch_factor={factor:g}"),
        Text("预取 2~4 个 batch", "prefetch 2 to 4 batches per worker"),
        practices={"prefetch_factor": 2},
        at=setting,
    )


def _no_prefetch_without_workers() -> Judgement:
    return Judgement(
        Status.RECOMMENDED,
        current=Text("没有加载进程，无法预取", "without workers nothing is prefetched"),
        action=Text("先启用加载进程（GPU501）", "use worker processes first (GPU501)"),
    )


def _loader_prefetch(run: Run, loader: Loader) -> Judgement:
    workers, factor = loader.value("num_workers", 0), loader.value("prefetch_factor", 2)
    if not known(workers) or not known(factor):
        return cannot_tell(Text("由程序计算", "computed by the program"))
    if workers == 0:
        return _no_prefetch_without_workers()
    if factor is None or factor >= 2:
        return _loader_on(loader, "prefetch_factor")
    return _advise_loader(
        run,
        loader,
        {"prefetch_factor": 2},
        "each worker holds a single batch ready; set prefetch_factor=2 (2 to 4)",
        Text("每个加载进程只预取一个 batch", "each worker prefetches one batch"),
        Text("DataLoader 设 prefetch_factor=2~4", "give the DataLoader prefetch_factor=2 to 4"),
    )


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


# --- GPU506: mini-batches ---


@of_training(alone=True)
def _minibatches(run: Run) -> Judgement:
    parts = [_loader_minibatches(run, loader) for loader in training_loaders(run)]
    if has(run, "micro_batch_size"):
        setting = run.practice("micro_batch_size")
        parts.append(on(setting) if setting.known else cannot_tell(setting))
    return merged(parts, cannot_tell(_NO_LOADER))


def _loader_minibatches(run: Run, loader: Loader) -> Judgement:
    size = loader.argument("batch_size")
    if size is None or not size.text.startswith("len("):
        return _loader_on(loader, "batch_size")
    return _advise_loader(
        run,
        loader,
        {"batch_size": 32},
        f"batch_size={size.text} loads the whole dataset as one batch; set batch_size=32",
        Text("整个数据集作为一个 batch", "the whole dataset is one batch"),
        Text("改用小批量", "use mini-batches"),
    )


# --- GPU507: packing and padding-free batches ---

_FLASH = ("flash_attention_2", "flash_attention_3", "flash_attention_4")
_PACKS = ("pt", "sft", "dpo", "kto", "grpo", "gkd")


@of_training(alone=True)
def _packing(run: Run) -> Judgement:
    for variant in ("packing", "padding_free"):
        if run.value(variant) is True:
            return on(run.practice(variant), variant)
    if not has(run, "packing"):
        return _packing_by_hand(run)
    setting = run.practice("packing")
    if not setting.known:
        return cannot_tell(setting)
    return _unpacked(run, setting)


def _packing_by_hand(run: Run) -> Judgement:
    packed = first_call(run, ".ConstantLengthDataset", ".DataCollatorWithFlattening")
    if packed is not None:
        return seen(packed)
    if not is_text(run):
        return cannot_apply(Text("非文本数据", "the data are not text"))
    return cannot_tell(Text("样本如何组批无法静态得知", "how samples form batches is not known"))


def _unpacked(run: Run, setting: Setting) -> Judgement:
    task = parameter(run, "task_type", default="causal_lm")
    if task.known and str(task.value).lower() != "causal_lm":
        return cannot_apply(Text(f"任务类型 {task.value}", f"task type {task.value}"))
    how = algorithm(run)
    if how is None:
        return cannot_tell(Text("训练阶段未知", "the training stage is not known"))
    if how not in ("pt", "sft"):
        return off(Text(f"{how} 训练", f"a {how} run"), setting)
    if run.model.kind == "unknown" and run.framework != "hf_trainer":
        return cannot_tell(Text("模型未知", "the model is not known"))
    if not is_text(run) or next(decoder_loads_vision(run), None) is not None:
        return off(Text("多模态训练中可选", "optional in multimodal training"), setting)
    obstacle = _packing_obstacle(run)
    if obstacle is not None:
        return off(obstacle, setting)
    if not may_use_flash_attention(run):
        return cannot_apply(Text("该加速卡没有 Flash Attention", "no flash attention on this card"))
    if not _takes_packing(run):
        return cannot_apply(Text("该参数类没有 packing", "its arguments have no packing"))
    return _pack(run, setting)


_UNPACKED_TUNING = ("longlora", "reft")


def _packing_obstacle(run: Run) -> Optional[Text]:
    """Why packed samples would not be kept apart in this run."""
    if has_no_flash_code(run):
        return Text("该模型的代码没有 Flash Attention", "the model's code has no flash attention")
    if not is_cuda(run):
        return Text("非 CUDA 设备", "not a CUDA device")
    if is_recurrent(run):
        return Text("含循环状态的模型不宜打包", "recurrent layers would mix packed samples")
    if text(run, "tuning") in _UNPACKED_TUNING:
        return Text("该微调方式不支持打包", "this tuning does not go with packing")
    if run.value("unsloth") is True or imports(run, "unsloth") is not None:
        return Text("Unsloth 自行组批", "Unsloth forms batches itself")
    if is_on(parameter(run, "use_kt", default=False)):
        return Text("KTransformers 后端不支持", "not with the KTransformers back end")
    return None


def _takes_packing(run: Run) -> bool:
    """Transformers' own arguments have no packing; TRL's SFTConfig has."""
    if run.framework != "hf_trainer":
        return True
    return run.place.call is not None and run.place.call.method == "SFTConfig"


def _pack(run: Run, setting: Setting) -> Judgement:
    wanted: dict[str, Any] = {"packing": True}
    needs = ""
    if run.framework == "swift" and text(run, "attention") not in _FLASH:
        wanted["attention"] = "flash_attention_2"
        needs = " (packing needs a flash kernel, attn_impl)"
    elif run.framework == "hf_trainer" and text(run, "attention") not in _FLASH:
        needs = " (load the model with a flash kernel, which keeps packed samples apart)"
    elif run.framework == "llamafactory":
        wanted["padding_free"] = True
        needs = " (neat_packing keeps packed samples apart)"
    single = number(run, "micro_batch_size") == 1
    waste = (
        "a step computes one sample, however short"
        if single
        else "short samples are padded to the longest of their batch"
    )
    return advise(
        run,
        f"{waste}{needs}",
        Text("样本未打包，短样本浪费算力", "samples are not packed")
        if single
        else Text("样本未打包，存在填充浪费", "samples are padded, not packed"),
        Text(
            "将多条短样本打包为定长序列（需 Flash Attention）",
            "pack short samples into full sequences (needs flash attention)",
        ),
        practices=wanted,
        variant="packing",
        at=setting,
        impact=by_class(Priority.MEDIUM, _PACKING) if single else None,
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
    if run.framework in ("swift", "llamafactory") and is_text(run) and not _streams(run):
        return on("the framework tokenises the dataset before the first step")
    return cannot_tell(Text("分词时机无法静态得知", "when samples are tokenised is not known"))


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


# --- Declarations ---

_LOADER_BAD = """\
import torch
from torch.utils.data import DataLoader


def train(model, dataset, optimizer, epochs):
    loader = DataLoader(dataset, batch_size=32, shuffle=True{arguments})
    model = torch.compile(model.cuda())
    for epoch in range(epochs):
        for images, labels in loader:
            images = images.cuda(non_blocking=True)
            labels = labels.cuda(non_blocking=True)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""


def _loader_example(bad: str, good: str) -> Example:
    return Example(
        "generic",
        "train.py",
        _LOADER_BAD.replace("{arguments}", bad),
        _LOADER_BAD.replace("{arguments}", good),
    )


_SWIFT = """\
swift sft \\
    --model Qwen/Qwen2.5-7B-Instruct \\
    --tuner_type lora \\
    --torch_dtype bfloat16 \\
    --attn_impl flash_attn \\
    --use_liger_kernel true \\
    --dataset AI-ModelScope/alpaca-gpt4-data-en \\
    --max_length 4096 \\
    --packing true \\
    --dataset_num_proc 8 \\
    --dataloader_num_workers 4 \\
    --dataloader_persistent_workers true \\
    --logging_steps 10 \\
    --warmup_ratio 0.05 \\
    --output_dir output/lora
"""


def _swift_example(good: str, bad: str) -> Example:
    """The script with ``good`` in it replaced by ``bad``."""
    return Example("swift", "train.sh", _SWIFT.replace(good, bad), _SWIFT)


def _swift_lacks(flag: str) -> Example:
    return _swift_example(f"    --{flag} \\\n", "")


_LLAMAFACTORY = """\
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: lora
lora_target: all
dataset: alpaca_en_demo
template: qwen
cutoff_len: 4096
bf16: true
flash_attn: fa2
enable_liger_kernel: true
packing: true
neat_packing: true
preprocessing_num_workers: 16
dataloader_num_workers: 4
dataloader_persistent_workers: true
output_dir: saves/lora
logging_steps: 10
save_steps: 500
warmup_ratio: 0.1
lr_scheduler_type: cosine
"""


def _llamafactory_lacks(*names: str) -> Example:
    kept = [line for line in _LLAMAFACTORY.splitlines() if not line.startswith(names)]
    return Example("llamafactory", "train.yaml", "\n".join(kept) + "\n", _LLAMAFACTORY)


_TRAINER = """\
from trl import SFTConfig, SFTTrainer


def train(dataset):
    arguments = SFTConfig(
        "output",
        bf16=True,
        model_init_kwargs={"attn_implementation": "flash_attention_2"},
        packing=True,
        dataset_num_proc=8,
        dataloader_num_workers=4,
        dataloader_persistent_workers=True,
        use_liger_kernel=True,
        warmup_steps=100,
    )
    SFTTrainer("Qwen/Qwen2.5-7B", args=arguments, train_dataset=dataset).train()
"""


def _trainer_lacks(*arguments: str) -> Example:
    bad = _TRAINER
    for argument in arguments:
        bad = bad.replace(f"        {argument},\n", "")
    return Example("hf_trainer", "train.py", bad, _TRAINER)


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
_ALL_ON = ", num_workers=4, pin_memory=True, persistent_workers=True"

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU501",
        "dataloader-workers",
        Text("多进程数据加载", "Worker processes load the data"),
        Priority.MEDIUM,
        _workers,
        why="Without worker processes the training process reads, decodes and collates every "
        "batch itself, and the GPU idles meanwhile.",
        fix="Set 4 to 8 workers per GPU process; fewer when the host has fewer cores per GPU.",
        ignore="The dataset is small and already in memory as tensors.",
        items=(
            Item("general", "F", "worker-processes", 2),
            Item("swift", "H", "dataloader-workers", 1),
        ),
        impact=by_class(
            Priority.MEDIUM,
            _PYTORCH_TUNING,
            Text("取决于取数占比", "depends on the share of loading in a step"),
        ),
        examples=(
            _loader_example("", _ALL_ON),
            _loader_example(", num_workers=0, pin_memory=True", _ALL_ON),
            _swift_lacks("dataloader_num_workers 4"),
            _llamafactory_lacks("dataloader_"),
            _trainer_lacks("dataloader_num_workers=4", "dataloader_persistent_workers=True"),
        ),
        sources=(_PYTORCH_DATA, _PYTORCH_TUNING, _SWIFT_ARGUMENTS, _HF_ARGUMENTS),
    ),
    Check(
        "GPU502",
        "pinned-memory",
        Text("锁页内存", "Pinned host memory"),
        Priority.MEDIUM,
        _pinned,
        why="A copy from pageable memory goes through a staging buffer and blocks the CPU; "
        "from pinned memory it runs beside the computation.",
        fix="Set pin_memory=True and copy batches with non_blocking=True.",
        ignore="Host memory is short, or the run trains on the CPU.",
        items=(Item("general", "F", "pin-memory", 1),),
        impact=by_class(
            Priority.MEDIUM,
            _PYTORCH_TUNING,
            Text("样本越大收益越高", "more for larger samples"),
        ),
        examples=(_loader_example(", num_workers=4, persistent_workers=True", _ALL_ON),),
        sources=(_PYTORCH_DATA, _PYTORCH_TUNING, _HF_ARGUMENTS),
    ),
    Check(
        "GPU503",
        "persistent-workers",
        Text("持久化加载进程", "Workers live across epochs"),
        Priority.LOW,
        _persistent,
        why="Workers that end with the epoch are forked, and the dataset is pickled to them, "
        "at the start of every epoch.",
        fix="Set persistent_workers=True (dataloader_persistent_workers).",
        ignore="Epochs are long, or the dataset must be re-created per epoch.",
        items=(Item("swift", "H", "persistent-workers", 1),),
        impact=by_class(
            Priority.LOW, _PYTORCH_DATA, Text("短 epoch 收益更高", "more for short epochs")
        ),
        examples=(
            _loader_example(", num_workers=4, pin_memory=True", _ALL_ON),
            _llamafactory_lacks("dataloader_persistent_workers"),
            _trainer_lacks("dataloader_persistent_workers=True"),
        ),
        sources=(_PYTORCH_DATA, _SWIFT_ARGUMENTS),
    ),
    Check(
        "GPU504",
        "prefetch",
        Text("数据预取", "Prefetching"),
        Priority.MEDIUM,
        _prefetch,
        why="Prefetched batches hide the uneven time that samples take to load.",
        fix="Leave prefetch_factor at 2, or raise it to 4 when loading times vary much.",
        items=(
            Item("general", "F", "prefetch", 1),
            Item("swift", "H", "prefetch-factor", 1),
        ),
        impact=by_class(
            Priority.MEDIUM,
            _PYTORCH_DATA,
            Text("取数耗时波动大时", "where loading times vary"),
        ),
        examples=(_loader_example(f"{_ALL_ON}, prefetch_factor=1", _ALL_ON),),
        sources=(_PYTORCH_DATA, _SWIFT_ARGUMENTS),
    ),
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
        "GPU506",
        "mini-batches",
        Text("小批量加载", "Samples come in mini-batches"),
        Priority.MEDIUM,
        _minibatches,
        why="The whole dataset as one batch must fit the GPU at once and gives one update "
        "per epoch.",
        fix="Give the DataLoader a fixed batch_size.",
        items=(Item("general", "F", "minibatching", 1),),
        impact=by_class(
            Priority.MEDIUM,
            _PYTORCH_DATA,
            Text("显存随批大小线性增长", "memory grows with the batch"),
        ),
        examples=(
            Example(
                "generic",
                "train.py",
                _LOADER_BAD.replace("batch_size=32", "batch_size=len(dataset)").replace(
                    "{arguments}", _ALL_ON
                ),
                _LOADER_BAD.replace("{arguments}", _ALL_ON),
            ),
        ),
        sources=(_PYTORCH_DATA,),
    ),
    Check(
        "GPU507",
        "packing",
        Text("序列打包", "Sequences are packed"),
        Priority.MEDIUM,
        _packing,
        why="Padding is computed like any other token. Packing fills each sequence with "
        "several samples, and a variable-length flash kernel keeps them apart.",
        fix="Set packing (or padding_free) together with a flash attention kernel.",
        ignore="Samples are about as long as max_length, or exact batch composition matters.",
        items=(
            Item("general", "F", "packing", 1),
            Item("swift", "H", "packing", 2, "packing", "packing"),
            Item("swift", "H", "padding-free", 2, "packing", "padding_free"),
        ),
        impact=Impact(
            throughput=(40, 100),
            memory=(-20, -6),
            note=Text(
                "7B–8B 模型实测：FLAN 2 倍，OrcaMath 1.4 倍；长度差异越大收益越高",
                "measured at 7B to 8B: twice on FLAN, 1.4 times on OrcaMath; the more lengths vary",
            ),
            source=_PACKING,
        ),
        examples=(
            _swift_lacks("packing true"),
            Example(
                "llamafactory",
                "train.yaml",
                _LLAMAFACTORY.replace("packing: true\nneat_packing: true\n", ""),
                _LLAMAFACTORY,
            ),
            _trainer_lacks("packing=True"),
        ),
        sources=(_PACKING, "ms-swift 4.6.0, arguments/sft_args.py", "trl 1.16, sft_config.py"),
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
            _swift_lacks("dataset_num_proc 8"),
            _llamafactory_lacks("preprocessing_num_workers"),
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
