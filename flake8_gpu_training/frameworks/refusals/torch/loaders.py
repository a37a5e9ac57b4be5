"""What DataLoader and the samplers refuse (torch/utils/data)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.torch.given import (
    given,
    has,
    known_value,
    maker,
)
from flake8_gpu_training.language import Text

_LOADER = "torch/utils/data/dataloader.py, DataLoader.__init__"
_SAMPLER = "torch/utils/data/sampler.py"


def _negative(*names: str) -> Callable[[Options], bool]:
    def holds(options: Options) -> bool:
        values = [known_value(options, name) for name in names]
        return any(isinstance(value, (int, float)) and value < 0 for value in values)

    return holds


def _no_number(options: Options, name: str) -> bool:
    """Whether no whole number above 0 is given for a name."""
    value = known_value(options, name)
    if name not in options.given or isinstance(value, str) or value is None:
        return False
    return isinstance(value, (bool, float, list, tuple)) or (isinstance(value, int) and value < 1)


def _shuffled_sampler(options: Options) -> bool:
    return given(options, "shuffle") is True and has(options, "sampler", "Sampler")


def _batches_twice(options: Options) -> bool:
    if not has(options, "batch_sampler", "Sampler"):
        return False
    size = known_value(options, "batch_size")
    if isinstance(size, int) and size != 1:
        return True
    return known_value(options, "shuffle") is True or known_value(options, "drop_last") is True


def _no_batches_to_drop(options: Options) -> bool:
    is_none = "batch_size" in options.given and given(options, "batch_size") is None
    return is_none and given(options, "drop_last") is True


_METHODS = ("fork", "spawn", "forkserver")


def _no_method(options: Options) -> bool:
    value = known_value(options, "multiprocessing_context")
    return isinstance(value, str) and value not in _METHODS


def _workers(options: Options) -> Any:
    return given(options, "num_workers") or 0


def _context_alone(options: Options) -> bool:
    value = known_value(options, "multiprocessing_context")
    return isinstance(value, str) and value in _METHODS and _workers(options) == 0


def _waits_for_none(options: Options) -> bool:
    value = known_value(options, "timeout")
    return isinstance(value, (int, float)) and value > 0 and _workers(options) == 0


def _no_prefetch(options: Options) -> bool:
    return known_value(options, "prefetch_factor") == 0 and bool(_workers(options) > 0)


def _iterates(options: Options) -> bool:
    """Whether the dataset is of a class that has no length and no order to draw from."""
    setting = options.given.get("dataset")
    made = maker(options, setting) if setting is not None else None
    if made is None:
        return False
    classes = [c for file in options.run.python for c in file.classes if c.name == made]
    return bool(classes) and all(
        any(base.rpartition(".")[2] == "IterableDataset" for base in one.bases) for one in classes
    )


def _orders_stream(options: Options) -> bool:
    if not _iterates(options):
        return False
    if known_value(options, "shuffle") is True:
        return True
    return any(
        name in options.given and has(options, name, "Sampler")
        for name in ("sampler", "batch_sampler")
    )


def _rank_beyond(options: Options) -> bool:
    count, rank = known_value(options, "num_replicas"), known_value(options, "rank")
    return isinstance(count, int) and isinstance(rank, int) and not 0 <= rank < count


def of_loaders() -> Iterator[Refusal]:
    """The rules of DataLoader and the samplers."""
    loader = ("DataLoader",)
    yield Refusal(
        "loader-number-negative",
        _LOADER,
        ("num_workers", "timeout", "prefetch_factor"),
        _negative("num_workers", "timeout", "prefetch_factor"),
        Text(
            "num_workers、timeout、prefetch_factor 设为 0 或更大",
            "give num_workers, timeout and prefetch_factor 0 or more",
        ),
        Text("不能为负", "none of them can be negative"),
        groups=loader,
    )
    yield Refusal(
        "batch-size-not-positive",
        f"{_SAMPLER}, BatchSampler.__init__",
        ("batch_size",),
        lambda options: _no_number(options, "batch_size"),
        Text("batch_size 设为正整数", "give batch_size a whole number above 0"),
        Text("不接受 {batch_size}", "{batch_size} is not allowed"),
        groups=("DataLoader", "BatchSampler"),
    )
    yield Refusal(
        "sampler-with-shuffle",
        _LOADER,
        ("shuffle", "sampler"),
        _shuffled_sampler,
        Text(
            "删除 shuffle=True，在采样器中打乱顺序", "drop shuffle=True and let the sampler shuffle"
        ),
        Text("sampler 与 shuffle 互斥", "a sampler and shuffle exclude each other"),
        write=lambda options: {"shuffle": False},
        groups=loader,
    )
    yield Refusal(
        "batch-sampler-beside-batches",
        _LOADER,
        ("batch_size", "shuffle", "drop_last", "batch_sampler"),
        _batches_twice,
        Text(
            "使用 batch_sampler 时删除 batch_size、shuffle、sampler 和 drop_last",
            "drop batch_size, shuffle, sampler and drop_last beside batch_sampler",
        ),
        Text("batch_sampler 已决定每个批次", "batch_sampler makes the batches itself"),
        groups=loader,
    )
    yield Refusal(
        "dropping-without-batches",
        _LOADER,
        ("drop_last", "batch_size"),
        _no_batches_to_drop,
        Text("删除 drop_last，或给出 batch_size", "drop drop_last, or give batch_size"),
        Text("batch_size=None 时不分批", "batch_size=None makes no batches"),
        groups=loader,
    )
    yield Refusal(
        "no-start-method",
        "torch/utils/data/dataloader.py, DataLoader.multiprocessing_context",
        ("multiprocessing_context",),
        _no_method,
        Text(
            "multiprocessing_context 改为 fork、spawn 或 forkserver",
            "give multiprocessing_context fork, spawn or forkserver",
        ),
        Text("没有 {multiprocessing_context}", "there is no {multiprocessing_context}"),
        groups=loader,
    )
    yield from _of_workers(loader)
    yield Refusal(
        "order-of-a-stream",
        _LOADER,
        ("shuffle", "sampler", "batch_sampler", "dataset"),
        _orders_stream,
        Text(
            "删除 shuffle 与采样器，在数据集内打乱",
            "drop shuffle and the sampler, and shuffle within the dataset",
        ),
        Text(
            "IterableDataset 自行决定顺序", "an IterableDataset gives its samples in its own order"
        ),
        groups=loader,
    )
    yield Refusal(
        "draws-not-positive",
        f"{_SAMPLER}, RandomSampler, WeightedRandomSampler",
        ("num_samples",),
        lambda options: _no_number(options, "num_samples"),
        Text("num_samples 设为正整数", "give num_samples a whole number above 0"),
        Text("不接受 {num_samples}", "{num_samples} is not allowed"),
        groups=("RandomSampler", "WeightedRandomSampler"),
    )
    yield Refusal(
        "sampler-switch-no-truth",
        f"{_SAMPLER}, RandomSampler, WeightedRandomSampler, BatchSampler",
        ("replacement", "drop_last"),
        lambda options: any(
            value is not None and not isinstance(value, bool)
            for value in (known_value(options, "replacement"), known_value(options, "drop_last"))
        ),
        Text("写成 True 或 False", "give it True or False"),
        Text("其他值不被接受", "no other value is taken"),
        groups=("RandomSampler", "WeightedRandomSampler", "BatchSampler"),
    )
    yield Refusal(
        "sampler-rank-beyond",
        "torch/utils/data/distributed.py, DistributedSampler.__init__",
        ("rank", "num_replicas"),
        _rank_beyond,
        Text("rank 取 0 到 num_replicas 减 1", "give rank a number from 0 to num_replicas less 1"),
        Text(
            "rank {rank} 不在 {num_replicas} 个进程之内",
            "of {num_replicas} replicas none has the rank {rank}",
        ),
        groups=("DistributedSampler",),
    )


def _of_workers(loader: tuple[str, ...]) -> Iterator[Refusal]:
    yield Refusal(
        "context-without-workers",
        "torch/utils/data/dataloader.py, DataLoader.multiprocessing_context",
        ("multiprocessing_context", "num_workers"),
        _context_alone,
        Text(
            "设置 num_workers，或删除 multiprocessing_context",
            "set num_workers, or drop multiprocessing_context",
        ),
        Text("num_workers 为 0 时没有工作进程", "while num_workers is 0 there are no processes"),
        groups=loader,
    )
    yield Refusal(
        "timeout-without-workers",
        "torch/utils/data/dataloader.py, _SingleProcessDataLoaderIter.__init__",
        ("timeout", "num_workers"),
        _waits_for_none,
        Text("设置 num_workers，或删除 timeout", "set num_workers, or drop timeout"),
        Text("num_workers 为 0 时没有工作进程", "while num_workers is 0 there are no processes"),
        groups=loader,
    )
    yield Refusal(
        "nothing-prefetched",
        "torch/utils/data/dataloader.py, _MultiProcessingDataLoaderIter.__init__",
        ("prefetch_factor",),
        _no_prefetch,
        Text("prefetch_factor 设为大于 0", "give prefetch_factor more than 0"),
        Text("工作进程至少预取一个批次", "workers load at least one batch ahead"),
        groups=loader,
    )
