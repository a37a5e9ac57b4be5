"""GPU501 to GPU504, GPU506: how DataLoaders feed the GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Callable, Optional

from flake8_gpu_training.checks._data_examples import (
    ALL_ON,
    LOADER,
    llamafactory_lacks,
    loader_example,
    swift_lacks,
    trainer_lacks,
)
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    advise,
    by_itself,
    cannot_apply,
    cannot_tell,
    of_training,
    off,
    on,
    seen,
    with_edits,
)
from flake8_gpu_training.checks._loaders import (
    Loader,
    merged,
    training_loaders,
    without_loaders,
)
from flake8_gpu_training.checks._programs import first_call, imports
from flake8_gpu_training.checks._scale import (
    number,
)
from flake8_gpu_training.checks._settings import (
    SAMPLING,
    algorithm,
    has,
    is_on,
    is_text,
    parameter,
    told,
)
from flake8_gpu_training.checks._videox import script
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
from flake8_gpu_training.checks.hot_loops import waiting_copies
from flake8_gpu_training.facts import Import, Setting, known
from flake8_gpu_training.frameworks.engine_of import samples_ahead
from flake8_gpu_training.frameworks.swift_releases import default_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

WORKERS = 4
_NO_LOADER = Text("未见数据加载代码", "no data loader was seen")
_USE_WORKERS = Text(
    "DataLoader 设 num_workers=4~8（每个 GPU 进程）",
    "give the DataLoader num_workers=4 to 8 per GPU process",
)
_NO_WORKERS = Text("数据在训练主进程中加载", "the main process loads the data")
_PROMPTS = Text(
    "提示词加载耗时远小于生成", "loading prompts takes no time beside generating completions"
)
_PROMPTS_OF_VIDEOS = Text(
    "提示词加载耗时远小于生成视频", "loading prompts takes no time beside generating videos"
)
_STREAMS = Text("流式数据集只用一个 worker", "a streaming dataset uses one worker")

_PYTORCH_DATA = "https://pytorch.org/docs/stable/data.html"
_PYTORCH_TUNING = "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
_SWIFT_ARGUMENTS = "ms-swift 3.12.6 and 4.6.0, trainers/arguments.py"
_HF_ARGUMENTS = "transformers 5.24, training_args.py"


# Libraries whose pipelines load, decode and prefetch in threads of their own.
_PIPELINES = ("nvidia.dali", "ffcv.loader")


def _without_loader(run: Run) -> Judgement:
    """The answer where no DataLoader in sight feeds the GPU."""
    pipeline = imports(run, *_PIPELINES)
    if pipeline is not None:
        return _by_pipeline(pipeline)
    reason = without_loaders(run)
    return cannot_apply(reason) if reason is not None else cannot_tell(_NO_LOADER)


def _by_pipeline(found: Import) -> Judgement:
    said = Text(
        f"{found.dotted} 以自身线程加载并预取", f"{found.dotted} loads ahead in its own threads"
    )
    shown = Evidence(f"import {found.dotted}", found.location)
    return Judgement(Status.ENABLED, evidence=(shown,), current=said)


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
    if "pin_memory" in parameters and change.edits and _is_last_unpinned(run, loader):
        # Copies that wait would now be told of: they are mended along with it.
        change = replace(change, edits=(*change.edits, *waiting_copies(run)))
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


def _is_last_unpinned(run: Run, loader: Loader) -> bool:
    others = (other for other in training_loaders(run) if other.call is not loader.call)
    return all(other.value("pin_memory", False) is True for other in others)


def _shown(loader: Loader, name: str = "") -> Evidence:
    argument = loader.argument(name) if name else None
    made = loader.call.method
    written = "" if argument is None else argument.written
    shown = f"{made}({name}={written})" if argument else f"{made}(...)"
    return Evidence(shown, loader.location(name) if name else loader.call.location)


def _loader_on(loader: Loader, name: str) -> Judgement:
    shown = _shown(loader, name)
    current = Text(f"已启用：{shown.text}", f"on: {shown.text}")
    return Judgement(Status.ENABLED, evidence=(shown,), current=current)


# --- GPU501: worker processes ---


# trl 1.0.0 to 1.16.0, experimental/async_grpo/async_grpo_trainer.py: num_workers=0 alone.
_ITS_OWN_LOADER = Text(
    "AsyncGRPOTrainer 自建 DataLoader，不读取 dataloader_* 参数",
    "AsyncGRPOTrainer makes its own DataLoader, which takes no dataloader_* argument",
)


_BY_ITS_CLASS = Text(
    "由训练器自己的 get_train_dataloader 决定", "the trainer's own get_train_dataloader decides"
)


def _loads_itself(run: Run) -> bool:
    """Whether the program's own Trainer overrides what makes the training's DataLoader."""
    own = {
        kind.name
        for file in run.python
        for kind in file.classes
        if "get_train_dataloader" in kind.methods and any("Trainer" in b for b in kind.bases)
    }
    used = (call.method for file in run.python for call in file.calls)
    return run.framework == "hf_trainer" and bool(own) and not own.isdisjoint(used)


@of_training(alone=True)
def _workers(run: Run) -> Judgement:
    if samples_ahead(run):
        return cannot_apply(_ITS_OWN_LOADER)
    parts = _of_loaders(run, _loader_workers)
    if _loads_itself(run):
        return merged(parts, cannot_tell(_BY_ITS_CLASS))
    if told(run, "dataloader_workers"):
        parts.append(_setting_workers(run))
    answer = merged(parts, _without_loader(run))
    if answer.status in (Status.RECOMMENDED, Status.PARTIAL) and _reads_prompts(run):
        return off(_PROMPTS_OF_VIDEOS)
    return answer


def _reads_prompts(run: Run) -> bool:
    """Whether the run is VideoX-Fun's script for rewards, which makes its samples itself."""
    return run.framework == "videox_fun" and script(run).rewards


def _setting_workers(run: Run) -> Judgement:
    setting = run.practice("dataloader_workers")
    if not setting.known:
        return cannot_tell(setting)
    if run.framework == "swift" and run.value("streaming") is True:
        return off(_STREAMS)
    workers = number(run, "dataloader_workers")
    if workers is None or workers >= WORKERS or (workers > 1 and setting.explicit):
        return on(setting)
    if algorithm(run) in SAMPLING and is_text(run):
        return off(_PROMPTS)
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
    repeats = has(run, "persistent_workers") and _single_epoch(run) is None
    if workers.value == 0 and repeats and kept.known and kept.value is False:
        wanted["persistent_workers"] = True
    return wanted


def _loader_workers(run: Run, loader: Loader) -> Judgement:
    workers = loader.value("num_workers", 0)
    if not known(workers):
        return cannot_tell(Text("num_workers 由程序计算", "num_workers is computed"))
    if workers != 0:
        return _loader_on(loader, "num_workers") if workers != 1 else _one_worker(run, loader)
    argument = loader.argument("num_workers")
    if argument is not None and not argument.text.isidentifier() and argument.text != "0":
        if run.command is None:
            return cannot_tell(Text("num_workers 由参数给出", "num_workers is an option's value"))
        return _advise_option(run, loader, argument.text)
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
        _USE_WORKERS,
    )


def _advise_option(run: Run, loader: Loader, written: str) -> Judgement:
    """The value comes from an option or a file, as the launch says: that is where to set it."""
    return with_edits(
        _advise_loader(
            run,
            loader,
            {"num_workers": WORKERS},
            "DataLoader loads in the main process while the GPU waits: "
            f"{written} is 0, set it to {WORKERS} (4 to 8 per GPU process)",
            _NO_WORKERS,
            _USE_WORKERS,
        )
    )


def _one_worker(run: Run, loader: Loader) -> Judgement:
    judgement = _advise_loader(
        run,
        loader,
        {"num_workers": WORKERS},
        f"one worker process prepares all batches; set num_workers={WORKERS} (4 to 8 per GPU "
        "process)",
        Text("只有一个加载进程", "one worker process"),
        _USE_WORKERS,
        Priority.LOW,
    )
    return replace(judgement, status=Status.PARTIAL, share=0.5)


# --- GPU502: pinned memory ---


@of_training(alone=True)
def _pinned(run: Run) -> Judgement:
    if samples_ahead(run):
        return cannot_apply(_ITS_OWN_LOADER)
    parts = _of_loaders(run, _loader_pinned)
    if _loads_itself(run):
        return merged(parts, cannot_tell(_BY_ITS_CLASS))
    if told(run, "pin_memory"):
        parts.append(_setting_pinned(run))
    if run.framework == "flow_factory" and not parts:
        return by_itself(
            Text("加载器固定 pin_memory=True", "its loader pins memory (data_utils/loader.py)")
        )
    by_hand = first_call(run, ".pin_memory")
    return merged(parts, seen(by_hand) if by_hand is not None else _without_loader(run))


def _setting_pinned(run: Run) -> Judgement:
    setting = run.practice("pin_memory")
    if is_on(parameter(run, "use_cpu", "no_cuda", default=False)):
        return cannot_apply(Text("在 CPU 上训练", "it trains on the CPU"))
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
    advised = _loader_workers(run, loader).change
    return _silent(judgement) if advised is not None and advised.edits else judgement


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

_NO_WORKERS_TO_KEEP = Text(
    "没有加载进程可保持（先见 GPU501）", "no workers to keep: they come first (GPU501)"
)


@of_training(alone=True)
def _persistent(run: Run) -> Judgement:
    if samples_ahead(run):
        return cannot_apply(_ITS_OWN_LOADER)
    parts = _of_loaders(run, _loader_persistent)
    if _loads_itself(run):
        return merged(parts, cannot_tell(_BY_ITS_CLASS))
    if told(run, "persistent_workers"):
        parts.append(_setting_persistent(run))
    elif not parts and run.practice("persistent_workers").known:
        parts.append(_setting_persistent(run))  # its scripts' loader, out of sight
    return merged(parts, _without_loader(run))


def _setting_persistent(run: Run) -> Judgement:
    setting = run.practice("persistent_workers")
    workers = number(run, "dataloader_workers")
    if not setting.known or workers is None:
        return cannot_tell(setting)
    if setting.value is True:
        return on(setting)
    if workers == 0:
        return off(_NO_WORKERS_TO_KEEP)
    single = _single_epoch(run)
    if single is not None:
        return off(single, setting)
    return advise(
        run,
        "worker processes are started anew at every epoch",
        Text("每个 epoch 重启加载进程", "workers are restarted at every epoch"),
        Text("跨 epoch 保持加载进程", "keep the workers between epochs"),
        practices={"persistent_workers": True},
        at=setting,
    )


def _usual_epochs(run: Run) -> Optional[float]:
    """Epochs where nobody says how many; ``megatron`` of ms-swift has no default."""
    if run.framework != "swift":
        return 3
    default = default_of(run, "num_train_epochs")
    value = default.value if default is not None else None
    return value if isinstance(value, (int, float)) else None


def _single_epoch(run: Run) -> Optional[Text]:
    """Why workers are not known to be started more than once, or None."""
    steps = parameter(run, "max_steps", "train_iters")
    epochs = parameter(run, "num_train_epochs", "max_epochs", default=_usual_epochs(run))
    if steps.explicit and (not steps.known or is_on(steps)):
        return Text(
            f"由 {steps.name} 决定步数，epoch 数未知",
            f"{steps.name} ends it: epochs are not known",
        )
    if not epochs.known or not isinstance(epochs.value, (int, float)):
        return Text("epoch 数未知", "how many epochs it takes is not known")
    return Text("只训练一个 epoch", "the run takes one epoch") if epochs.value <= 1 else None


def _loader_persistent(run: Run, loader: Loader) -> Judgement:
    kept, workers = loader.value("persistent_workers", False), loader.value("num_workers", 0)
    if kept is True:
        return _loader_on(loader, "persistent_workers")
    if not known(kept) or not known(workers):
        return cannot_tell(Text("由程序计算", "computed by the program"))
    if workers == 0:
        return off(_NO_WORKERS_TO_KEEP)
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
    if samples_ahead(run):
        return cannot_apply(_ITS_OWN_LOADER)
    parts = _of_loaders(run, _loader_prefetch)
    if _loads_itself(run):
        return merged(parts, cannot_tell(_BY_ITS_CLASS))
    if told(run, "prefetch_factor") or told(run, "dataloader_workers"):
        parts.append(_setting_prefetch(run))
    pipeline = first_call(run, ".prefetch")
    return merged(parts, seen(pipeline) if pipeline else _without_loader(run))


def _setting_prefetch(run: Run) -> Judgement:
    workers, setting = run.practice("dataloader_workers"), run.practice("prefetch_factor")
    if not workers.known:
        return cannot_tell(workers)
    if number(run, "dataloader_workers") == 0:
        return _no_prefetch_without_workers(run)
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


def _no_prefetch_without_workers(run: Run) -> Judgement:
    """Workers, which GPU501 advises unless the run makes its samples, prefetch by themselves: it
    is told once."""
    if algorithm(run) in SAMPLING:
        return off(Text("没有加载进程，无法预取", "no workers: nothing is prefetched"))
    return off(
        Text("没有加载进程，无法预取（见 GPU501）", "no workers: nothing is prefetched (GPU501)")
    )


def _loader_prefetch(run: Run, loader: Loader) -> Judgement:
    workers, factor = loader.value("num_workers", 0), loader.value("prefetch_factor", 2)
    if not known(workers) or not known(factor):
        return cannot_tell(Text("由程序计算", "computed by the program"))
    if workers == 0:
        return _no_prefetch_without_workers(run)
    if loader.argument("prefetch_factor") is None:
        shown = Evidence("prefetch_factor=2 (PyTorch's default with workers)", loader.call.location)
        current = Text(f"已启用：{shown.text}", f"on: {shown.text}")
        return Judgement(Status.ENABLED, evidence=(shown,), current=current)
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


# --- GPU506: mini-batches ---


@of_training(alone=True)
def _minibatches(run: Run) -> Judgement:
    parts = [_loader_minibatches(run, loader) for loader in training_loaders(run)]
    setting = run.practice("micro_batch_size")
    if told(run, "micro_batch_size"):
        parts.append(on(setting) if setting.known else cannot_tell(setting))
    if not parts and setting.known:
        return on(setting)
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
            Item("llamafactory", "H", "dataloader-workers", 1),
            Item("transformers", "H", "dataloader-workers", 2),
            Item("videox-fun", "G", "dataloader-workers", 2),
            Item("flow-factory", "G", "dataloader-workers", 1),
        ),
        impact=by_class(
            Priority.MEDIUM,
            _PYTORCH_TUNING,
            Text("取决于取数占比", "depends on the share of loading in a step"),
        ),
        examples=(
            loader_example("", ALL_ON),
            loader_example(", num_workers=0, pin_memory=True", ALL_ON),
            swift_lacks("dataloader_num_workers 4"),
            llamafactory_lacks("dataloader_"),
            trainer_lacks("dataloader_num_workers=4", "dataloader_persistent_workers=True"),
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
        items=(Item("general", "F", "pin-memory", 1), Item("transformers", "H", "pin-memory", 1)),
        impact=by_class(
            Priority.MEDIUM,
            _PYTORCH_TUNING,
            Text("样本越大、每步计算越短，收益越高", "more for larger samples and shorter steps"),
        ),
        examples=(loader_example(", num_workers=4, persistent_workers=True", ALL_ON),),
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
        items=(
            Item("swift", "H", "persistent-workers", 1),
            Item("transformers", "H", "persistent-workers", 1),
            Item("videox-fun", "G", "persistent-workers", 1),
        ),
        impact=by_class(
            Priority.LOW, _PYTORCH_DATA, Text("短 epoch 收益更高", "more for short epochs")
        ),
        examples=(
            loader_example(", num_workers=4, pin_memory=True", ALL_ON),
            llamafactory_lacks("dataloader_persistent_workers"),
            trainer_lacks("dataloader_persistent_workers=True"),
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
            Item("transformers", "H", "prefetch-factor", 1),
            Item("videox-fun", "I", "prefetch-factor", 1),
        ),
        impact=by_class(
            Priority.MEDIUM,
            _PYTORCH_DATA,
            Text("取数耗时波动大时", "where loading times vary"),
        ),
        examples=(loader_example(f"{ALL_ON}, prefetch_factor=1", ALL_ON),),
        sources=(_PYTORCH_DATA, _SWIFT_ARGUMENTS),
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
                LOADER.replace("batch_size=32", "batch_size=len(dataset)").replace(
                    "{arguments}", ALL_ON
                ),
                LOADER.replace("{arguments}", ALL_ON),
            ),
        ),
        sources=(_PYTORCH_DATA,),
    ),
)
