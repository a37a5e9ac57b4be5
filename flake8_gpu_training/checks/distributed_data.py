"""GPU540: the order in which the ranks of a hand-written loop take their samples."""

from __future__ import annotations

import re
from collections.abc import Iterator

from flake8_gpu_training.checks._judging import no_mistake, of_training
from flake8_gpu_training.checks._programs import says
from flake8_gpu_training.checks._scale import is_test_file
from flake8_gpu_training.checks.base import (
    Change,
    Check,
    Example,
    Finding,
    Impact,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Call, Loop
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_PYTORCH = (
    "https://pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler"
)
_EVALUATES = re.compile(r"(?i)(?<![a-z])(?:val|valid|test|eval|dev|infer|predict)")
# Their loops set the epoch of samplers themselves.
_TRAINERS = frozenset(
    """
    accelerate catalyst colossalai composer deepspeed detectron2 fastai ignite lightning
    lightning_fabric mmcv mmengine pytorch_lightning ray torchtnt
    """.split()  # noqa: SIM905
)
_SAID = Text("每个 epoch 的样本顺序相同", "every epoch takes the samples in the same order")
_ACTION = Text(
    "每个 epoch 开始时调用 sampler.set_epoch(epoch)",
    "call sampler.set_epoch(epoch) at the start of each epoch",
)


@of_training(alone=True)
def _same_order(run: Run) -> Judgement:
    found = tuple(_finding(call) for call in _samplers(run))
    if not found or _sets_epochs(run) or not _has_epochs(run):
        return no_mistake()
    return Judgement(
        Status.RECOMMENDED,
        findings=found,
        current=_SAID,
        action=_ACTION,
        change=found[0].change,
    )


def _samplers(run: Run) -> Iterator[Call]:
    """Samplers that shuffle what is trained on."""
    for file in run.python:
        if is_test_file(file.path):
            continue
        for call in file.calls:
            is_sampler = call.name.startswith("torch.") and call.method == "DistributedSampler"
            if is_sampler and not call.is_open and _shuffles(call) and not _evaluates(call):
                yield call


def _shuffles(call: Call) -> bool:
    if len(call.positional) > 3:  # dataset, num_replicas, rank, shuffle
        return False
    return "shuffle" not in call.keywords or says(call, "shuffle", True)


def _evaluates(call: Call) -> bool:
    given = (*call.positional, *call.keywords.values())
    words = (call.assigned_to, call.scope, *(argument.text for argument in given))
    return any(_EVALUATES.search(word) for word in words)


def _sets_epochs(run: Run) -> bool:
    """Whether something in sight tells samplers the epoch, or may do so out of sight."""
    return run.framework != "generic" or any(
        file.problems
        or any(call.method in ("set_epoch", "set_seed_epoch") for call in file.calls)
        or any(item.module.partition(".")[0] in _TRAINERS for item in file.imports)
        or any("set_epoch" in own.methods for own in file.classes)
        for file in run.python
    )


def _has_epochs(run: Run) -> bool:
    """Whether a loop over epochs is in sight, and a loop that trains."""
    loops = [call.loop for file in run.python for call in file.calls if call.loop is not None]
    outer = [one for loop in loops for one in _around(loop)]
    return any(one.trains for one in outer) and any(_counts_epochs(one) for one in outer)


def _around(loop: Loop) -> Iterator[Loop]:
    yield loop
    if loop.parent is not None:
        yield from _around(loop.parent)


def _counts_epochs(loop: Loop) -> bool:
    return "epoch" in loop.target.lower() and loop.iterable not in ("range(1)", "range(0, 1)")


def _finding(call: Call) -> Finding:
    name = call.assigned_to or "sampler"
    text = f"for epoch in range(epochs):\n    {name}.set_epoch(epoch)"
    return Finding(
        call.location,
        f"call {name}.set_epoch(epoch) at the start of each epoch: without it the seed of the "
        "shuffle never changes, and every epoch takes the samples in the same order",
        Change("python", text),
    )


_LOOP = """\
import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

torch.distributed.init_process_group("nccl")
model = DistributedDataParallel(torch.nn.Linear(8, 8).cuda())
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
train_sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=32, sampler=train_sampler, num_workers=4, pin_memory=True)
for epoch in range(10):
    for batch in loader:
        loss = model(batch.cuda(non_blocking=True)).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU540",
        "sampler-epoch",
        Text("DistributedSampler 未设置 epoch", "Epoch of the DistributedSampler"),
        Priority.MEDIUM,
        _same_order,
        why="DistributedSampler shuffles by its seed and the epoch that it was told last. Without "
        "set_epoch the epoch stays 0: each rank sees the same samples in the same order, batch by "
        "batch, in every epoch, and the model is trained as if the data were never shuffled again.",
        fix="Call sampler.set_epoch(epoch) before the loop over the batches of each epoch.",
        ignore="The run trains one epoch, or the same order is wanted.",
        impact=Impact(
            note=Text("影响收敛，不影响吞吐", "it concerns convergence, not throughput"),
            source=_PYTORCH,
        ),
        examples=(
            Example(
                "generic",
                "train.py",
                _LOOP,
                _LOOP.replace("range(10):\n", "range(10):\n    train_sampler.set_epoch(epoch)\n"),
            ),
        ),
        sources=(_PYTORCH,),
    ),
)
