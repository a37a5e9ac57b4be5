"""GPU35x, GPU450 and GPU55x: what stalls the GPU at every training step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Callable, Optional

from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import no_mistake, of_training
from flake8_gpu_training.checks._loaders import training_loaders, write_call
from flake8_gpu_training.checks._loops import STEP_METHODS, Step, hot_programs, steps
from flake8_gpu_training.checks._programs import first_call, keyword
from flake8_gpu_training.checks._scale import is_trainer_class
from flake8_gpu_training.checks.base import (
    Check,
    Edit,
    Evidence,
    Example,
    Finding,
    Impact,
    Item,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Call, Loop, PythonFile
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_TENSOR = re.compile(
    r"(?i)(?:^|[._\]])\w*(?:loss|logits?|acc|correct|preds?|outputs?|out|grad|norm|scores?"
    r"|probs?|rewards?|entropy|kl|error)\w*(?=[.(\[]|$)"
)
_TENSOR_METHODS = re.compile(
    r"\.(?:detach|argmax|sum|mean|eq|max|min|abs|square|pow|norm|gather|all_reduce)\(\)"
)
_MODULES = re.compile(r"(?i)(?:^|\.)(?:\w*model|net|network|unet|vae|module|ema)\w*$")
_DEVICE = re.compile(r"(?i)device|cuda|rank|^\d$")
_PRINTED = re.compile(r"(?:\w+\.)?(?:loss|logits)")
_FIELD = re.compile(r"\{\s*([\w.]+)\s*(?:![rsa])?(?::[^{}]*)?\}")

Faults = Callable[[Run], Iterator[Finding]]


def _judge(faults: Faults, said: Text, do: Text) -> Callable[[Run], Judgement]:
    """Judges a run by ``faults``; each is a diagnostic of its own."""

    @of_training(alone=True, inside=True)
    def judge(run: Run) -> Judgement:
        every = _once_a_line(faults(run))
        found = _not_too_many(every)
        if not found:
            return no_mistake()
        return Judgement(
            Status.RECOMMENDED,
            evidence=tuple(
                Evidence(f.message, f.location, Text(said.zh, f.message)) for f in found
            ),
            findings=found,
            current=Text(f"{said.zh}（{len(every)} 处）", f"{said.en} ({len(every)} places)"),
            action=do,
            change=found[0].change,
            priority=Priority.LOW if _has_long_steps(run) else None,
        )

    return judge


def _once_a_line(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """The first finding of each line; the same is to be done about the others."""
    first: dict[tuple[str, int], Finding] = {}
    mended: list[Finding] = []
    for finding in found:
        if finding.change is not None:
            mended.append(finding)
        else:
            first.setdefault((finding.location.path, finding.location.line), finding)
    return (*mended, *first.values())


_MOST = 3  # diagnostics of one code in one file that mend nothing by themselves


def _not_too_many(found: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """At most a few findings of each file, the last of which counts the others."""
    kept: list[Finding] = []
    for path in dict.fromkeys(finding.location.path for finding in found):
        own = [finding for finding in found if finding.location.path == path]
        shown = own if own[0].change is not None else own[:_MOST]
        if len(own) > len(shown):
            more = f"{shown[-1].message} ({len(own) - _MOST} more in this file)"
            shown[-1] = replace(shown[-1], message=more)
        kept.extend(shown)
    return tuple(kept)


def _has_long_steps(run: Run) -> bool:
    """Whether a step takes so long that waiting for the GPU once costs next to nothing."""
    return (
        (run.model.parameters or 0) >= _LARGE_MODEL
        or run.model.kind in ("video", "image")
        or run.framework in ("videox_fun", "flow_factory")
        or is_trainer_class(run)
    )


_LARGE_MODEL = 1_000_000_000  # parameters


def _receiver(call: Call) -> str:
    return call.name.rpartition(".")[0]


def _is_tensor(step: Step) -> bool:
    """Whether the object a method is called on is plausibly a tensor on the GPU."""
    call, receiver = step.call, _receiver(step.call)
    if call.receiver.startswith(("numpy", "dict", "list")) or ".cpu()" in receiver:
        return False
    if not (_TENSOR.search(receiver) or _TENSOR_METHODS.search(receiver)):
        return False
    return not any(
        made.assigned_to == receiver
        and made.method in ("cpu", "numpy", "tolist")
        and made.scope == call.scope
        and made.location < call.location
        for made in step.file.calls
    )


def _is_module(call: Call) -> bool:
    return _MODULES.search(_receiver(call)) is not None


def _written(call: Call) -> str:
    receiver = _receiver(call)
    return f"(...){receiver}.{call.method}()" if receiver[:1] in ("", ".") else f"{call.name}()"


# --- GPU350, GPU351, GPU352: values fetched from the GPU ---


def _items(run: Run) -> Iterator[Finding]:
    for step in steps(run, "item", "float"):
        if step.takes_host_values:
            continue
        call = step.call
        if call.method == "item":
            if _is_tensor(step):
                yield Finding(call.location, step.told(_item_message(_written(call))))
        elif call.name == "float":
            text = call.positional[0].text if call.positional else ""
            if _is_printed_tensor(step.file, text):
                yield Finding(call.location, step.told(_item_message(f"float({text})")))


def _item_message(written: str) -> str:
    return (
        f"{written} makes the CPU wait for the GPU at every step; sum up .detach()ed tensors on "
        "the GPU and fetch them every N steps"
    )


def _copies(run: Run) -> Iterator[Finding]:
    for step in steps(run, "cpu", "tolist"):
        call = step.call
        if not step.takes_host_values and _is_tensor(step) and not _is_module(call):
            message = (
                f"{_written(call)} copies to the host and waits for the GPU at every step; "
                "keep the tensor on the GPU and copy once after the loop"
            )
            yield Finding(call.location, step.told(message))


def _prints(run: Run) -> Iterator[Finding]:
    for step in steps(run, "print"):
        if step.takes_host_values or step.call.name != "print":
            continue
        name = _printed_tensor(step.file, step.call)
        if name is not None:
            message = (
                f"printing {name} waits for the GPU at every step; print every N steps "
                "(if step % 50 == 0)"
            )
            yield Finding(step.call.location, step.told(message))


def _printed_tensor(file: PythonFile, call: Call) -> Optional[str]:
    for argument in call.positional:
        names: list[str] = [argument.text, *_FIELD.findall(argument.text)]
        for name in names:
            if _is_printed_tensor(file, name):
                return name
    return None


def _is_printed_tensor(file: PythonFile, name: str) -> bool:
    """``loss`` and ``outputs.loss``, unless they are rebound to a number somewhere."""
    if _PRINTED.fullmatch(name) is None:
        return False
    return not any(
        call.assigned_to == name and call.method in ("item", "float") for call in file.calls
    )


# --- GPU353, GPU354, GPU355: what the loop need not do ---


def _synchronizations(run: Run) -> Iterator[Finding]:
    for step in steps(run, "synchronize"):
        if step.call.name == "torch.cuda.synchronize":
            message = (
                "torch.cuda.synchronize() empties the GPU's queue at every step; remove it, "
                "or time with torch.cuda.Event"
            )
            yield Finding(step.call.location, step.told(message))


def _cache_releases(run: Run) -> Iterator[Finding]:
    for step in steps(run, "empty_cache"):
        if step.call.name == "torch.cuda.empty_cache":
            message = (
                "torch.cuda.empty_cache() at every step synchronises and makes each step "
                "allocate anew; remove it, or set PYTORCH_CUDA_ALLOC_CONF="
                "expandable_segments:True against fragmentation"
            )
            yield Finding(step.call.location, step.told(message))


def _zeroed(run: Run) -> Iterator[Finding]:
    for step in steps(run, "zero_grad"):
        argument = step.call.keywords.get("set_to_none")
        if argument is not None and argument.value is False:
            change = write_call(run, step.call, {"set_to_none": True})
            message = (
                "zero_grad(set_to_none=False) writes zeros over all gradients at every step; "
                "leave set_to_none at True"
            )
            yield Finding(step.call.location, step.told(message), change)


# --- GPU356: matrix sizes and Tensor Cores ---

_LARGE = 512
_SIZES = {
    "torch.nn.Linear": (("in_features", 0), ("out_features", 1)),
    "torch.nn.Embedding": (("num_embeddings", 0),),
}


def _sizes(run: Run) -> Iterator[Finding]:
    for file in hot_programs(run):
        for call in file.calls_to(*_SIZES):
            for name, position in _SIZES[call.name]:
                size = keyword(call, name, position)
                if type(size) is int and size >= _LARGE and size % 8:
                    padded = -(-size // 64) * 64
                    message = (
                        f"{name} {size} is no multiple of 8, which slows matrix products on "
                        f"Tensor Cores; pad it to {padded}"
                    )
                    yield Finding(call.location, message)
                    break


# --- GPU450: Lightning's metrics ---


def _synced_logs(run: Run) -> Iterator[Finding]:
    if run.launcher.world_size == 1:
        return
    for step in steps(run, "log", "log_dict"):
        call = step.call
        if _receiver(call) != "self" or step.loop.iterable != "training_step":
            continue
        if keyword(call, "sync_dist") is True and keyword(call, "on_step") in (None, True):
            message = (
                f"self.{call.method}(sync_dist=True) holds all ranks at a barrier at every step; "
                "drop sync_dist, or log once an epoch (on_step=False, on_epoch=True)"
            )
            yield Finding(call.keywords["sync_dist"].location, step.told(message))


# --- GPU550, GPU551: batches to the GPU, checkpoints to disk ---


def _blocking_copies(run: Run) -> Iterator[Finding]:
    for step in steps(run, "to", "cuda"):
        call = step.call
        if _copies_blocking(call) and _is_passed_on(step) and _is_pinned(run, step.loop):
            change = write_call(run, call, {"non_blocking": True})
            message = (
                f"{_receiver(call)}.{call.method}(...) waits for the copy of a pinned batch; "
                "pass non_blocking=True"
            )
            yield Finding(call.location, step.told(message), change)


def waiting_copies(run: Run) -> tuple[Edit, ...]:
    """The edits that let copies of batches run beside the computation, once these are pinned."""
    if first_call(run, ".prepare") is not None:
        return ()
    return tuple(
        edit
        for step in steps(run, "to", "cuda")
        if _copies_blocking(step.call) and _is_passed_on(step)
        if step.loop.over_batches and step.loop.iterable not in STEP_METHODS
        for edit in write_call(run, step.call, {"non_blocking": True}).edits
    )


def _is_pinned(run: Run, loop: Loop) -> bool:
    """Whether a loop's batches are pinned: those of its loader, by its name, or of all loaders.

    A trainer, and a loader that Accelerate prepares, copy the batch themselves.
    """
    loaders = training_loaders(run)
    pinned = [loader for loader in loaders if loader.value("pin_memory", False) is True]
    if any(loader.call.assigned_to == loop.iterable for loader in pinned):
        return True
    if loop.iterable in STEP_METHODS or first_call(run, ".prepare") is not None:
        return False
    return bool(pinned) and len(pinned) == len(loaders) and loop.over_batches


def _is_passed_on(step: Step) -> bool:
    """Whether what a called function copies has the name of what the loop gives it."""
    if step.via is None:
        return True
    given = (*step.via.positional, *step.via.keywords.values())
    root = re.match(r"\w+", _receiver(step.call))
    return root is not None and any(argument.text == root.group() for argument in given)


def _copies_blocking(call: Call) -> bool:
    if call.is_open or "non_blocking" in call.keywords or _MODULES.search(_receiver(call)):
        return False
    if call.method == "cuda":
        return len(call.positional) < 2
    target = call.keywords.get("device") or (call.positional[0] if call.positional else None)
    return target is not None and _DEVICE.search(target.text) is not None


_SAVES = ("save", "save_pretrained", "save_checkpoint", "save_state")


def _saves(run: Run) -> Iterator[Finding]:
    for step in steps(run, *_SAVES):
        call = step.call
        if call.method != "save" or call.name in ("torch.save", "accelerator.save"):
            message = (
                f"{call.name}() writes a checkpoint at every step; save every few hundred "
                "steps (if step % 500 == 0)"
            )
            yield Finding(call.location, step.told(message))


_TUNING = "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
_PINNED = "https://pytorch.org/tutorials/intermediate/pinmem_nonblock.html"
_SHORT = Text(
    "步越短越明显，长步接近 0", "more for short steps, next to nothing for steps of seconds"
)
_LIGHTNING = "lightning-fabric 2.5.5, utilities/distributed.py: a barrier before each reduction"
_MATMUL = "https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/"

_LOOP = """\
import torch
from torch.utils.data import DataLoader


def train(model, dataset, optimizer, criterion):
    loader = DataLoader(
        dataset,
        batch_size=64,
        shuffle=True,
        num_workers=4,
        pin_memory=True,
        persistent_workers=True,
    )
    model = torch.compile(model.cuda())
    total = torch.zeros((), device="cuda")
    for step, (inputs, targets) in enumerate(loader):
        inputs = inputs.to("cuda", non_blocking=True)
        targets = targets.to("cuda", non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
        if step % 500 == 0:
            print(step, total.item())
            torch.save(model.state_dict(), "model.pt")
"""


def _example(good: str, bad: str) -> tuple[Example, ...]:
    """The loop with ``good`` in it replaced by ``bad``."""
    return (Example("generic", "train.py", _LOOP.replace(good, bad), _LOOP),)


_MODULE = """\
import lightning
import torch


class Classifier(lightning.LightningModule):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def training_step(self, batch, index):
        images, labels = batch
        loss = torch.nn.functional.cross_entropy(self.model(images), labels)
        self.log("loss", loss{options})
        return loss


trainer = lightning.Trainer(accelerator="gpu", devices=8, precision="bf16-mixed")
trainer.fit(Classifier(model), train_loader)
"""
_SUM = "        total += loss.detach()\n"


# GPU551 saves within steps, which the item checkpoint-frequency tells.
def _items_of(code: str) -> tuple[Item, ...]:
    if code == "GPU551":
        return ()
    category, name = {
        "3": ("D", "loop-compute"),
        "4": ("E", "loop-communication"),
        "5": ("F", "loop-data"),
    }[code[3]]
    return (Item("general", category, name, 1, fault=True),)


def _check(
    code: str,
    name: str,
    title: Text,
    priority: Priority,
    faults: Faults,
    said: Text,
    do: Text,
    why: str,
    ignore: str,
    impact: Impact,
    examples: tuple[Example, ...],
) -> Check:
    return Check(
        code,
        name,
        title,
        priority,
        _judge(faults, said, do),
        why=why,
        fix=do.en,
        ignore=ignore,
        impact=impact,
        items=_items_of(code),
        examples=examples,
        sources=(impact.source.rpartition("; ")[2],),
    )


CHECKS: tuple[Check, ...] = (
    _check(
        "GPU350",
        "item-each-step",
        Text("每步 .item() 同步", ".item() at every step"),
        Priority.MEDIUM,
        _items,
        Text("每步将标量取回 CPU", "a number is fetched from the GPU at every step"),
        Text(
            "在 GPU 上累加 loss.detach()，每 N 步取一次",
            "Add up loss.detach() on the GPU and call .item() every N steps",
        ),
        "The CPU queues work ahead of the GPU; fetching a value waits until the queue is "
        "empty, and the GPU then waits for new work.",
        "Steps are long and the GPU is busy anyway.",
        by_class(Priority.MEDIUM, _TUNING, _SHORT),
        _example(_SUM, "        total += loss.item()\n"),
    ),
    _check(
        "GPU351",
        "host-copy-each-step",
        Text("每步拷回 CPU", "Copy to the host at every step"),
        Priority.MEDIUM,
        _copies,
        Text("每步将张量拷回 CPU", "a tensor is copied to the host at every step"),
        Text(
            "张量留在 GPU 上，循环结束后一次拷回",
            "Keep tensors on the GPU and copy them once, after the loop",
        ),
        "A copy to the host waits for all work queued on the GPU.",
        "The values decide the next step.",
        by_class(Priority.MEDIUM, _TUNING, _SHORT),
        _example(_SUM, f"{_SUM}        losses.append(loss.detach().cpu().numpy())\n"),
    ),
    _check(
        "GPU352",
        "print-tensor-each-step",
        Text("每步打印张量", "A tensor printed at every step"),
        Priority.MEDIUM,
        _prints,
        Text("每步打印 GPU 张量", "a tensor is printed at every step"),
        Text("每 N 步打印一次", "Print every N steps"),
        "Printing a tensor fetches it from the GPU and waits for all work queued there.",
        "Debugging.",
        by_class(Priority.MEDIUM, _TUNING, _SHORT),
        _example(_SUM, f"{_SUM}        print(step, loss)\n"),
    ),
    _check(
        "GPU353",
        "synchronize-each-step",
        Text("每步 cuda.synchronize", "torch.cuda.synchronize() at every step"),
        Priority.MEDIUM,
        _synchronizations,
        Text("每步显式同步", "every step synchronises explicitly"),
        Text(
            "删除同步；计时用 torch.cuda.Event",
            "Remove it; time with torch.cuda.Event instead",
        ),
        "It stops the CPU from queueing work ahead of the GPU.",
        "The loop measures the time of each step.",
        by_class(Priority.MEDIUM, _TUNING, _SHORT),
        _example(_SUM, f"{_SUM}        torch.cuda.synchronize()\n"),
    ),
    _check(
        "GPU354",
        "empty-cache-each-step",
        Text("每步 empty_cache", "torch.cuda.empty_cache() at every step"),
        Priority.MEDIUM,
        _cache_releases,
        Text("每步释放显存缓存", "every step gives the cache back"),
        Text(
            "删除 torch.cuda.empty_cache()；"
            "碎片问题设 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            "Remove it; against fragmentation set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        ),
        "Freeing memory synchronises, and the next step must ask the driver for it again. It "
        "does not make more memory available to PyTorch.",
        "Another process shares the GPU.",
        Impact(
            throughput=(5, 15),
            note=Text("Transformers 实测约 10%", "Transformers measured about 10 %"),
            source="https://github.com/huggingface/transformers/issues/31372",
        ),
        _example(_SUM, f"{_SUM}        torch.cuda.empty_cache()\n"),
    ),
    _check(
        "GPU355",
        "zeroed-gradients",
        Text("zero_grad(set_to_none=False)", "Gradients zeroed instead of dropped"),
        Priority.LOW,
        _zeroed,
        Text("梯度清零而非置 None", "gradients are zeroed, not dropped"),
        Text("使用 set_to_none=True（默认）", "Leave set_to_none at its default, True"),
        "Zeroing writes all gradients, and the backward pass then reads them to add.",
        "Code reads .grad between zero_grad and backward.",
        by_class(Priority.LOW, _TUNING),
        _example("zero_grad()", "zero_grad(set_to_none=False)"),
    ),
    _check(
        "GPU356",
        "tensor-core-sizes",
        Text("矩阵尺寸未对齐", "Sizes not multiples of 8"),
        Priority.LOW,
        _sizes,
        Text("矩阵尺寸不是 8 的倍数", "matrix sizes are no multiples of 8"),
        Text("将尺寸补齐到 64 的倍数", "Pad the sizes to multiples of 64"),
        "Tensor Cores take tiles of 8 or more 16-bit values; other sizes run slower kernels.",
        "The size is given by pretrained weights.",
        by_class(Priority.LOW, _MATMUL),
        _example(
            "    total = torch",
            "    head = torch.nn.Linear(768, 50257).cuda()\n    total = torch",
        ),
    ),
    _check(
        "GPU450",
        "metrics-synced-each-step",
        Text("每步跨卡同步指标", "Metrics reduced over ranks at every step"),
        Priority.MEDIUM,
        _synced_logs,
        Text("training_step 中 sync_dist=True", "training_step logs with sync_dist=True"),
        Text(
            "去掉 sync_dist，或每个 epoch 记录一次（on_step=False, on_epoch=True）",
            "Drop sync_dist, or log once an epoch (on_step=False, on_epoch=True)",
        ),
        "Lightning puts a barrier and an all-reduce behind each such metric, which no "
        "computation overlaps. One rank's value shows the course of training as well.",
        "The metric of a step has to be exact over all ranks, or the run uses one GPU.",
        by_class(Priority.MEDIUM, _LIGHTNING, _SHORT),
        (
            Example(
                "generic",
                "train.py",
                _MODULE.replace("{options}", ", sync_dist=True"),
                _MODULE.replace("{options}", ", on_step=False, on_epoch=True, sync_dist=True"),
            ),
        ),
    ),
    _check(
        "GPU550",
        "blocking-copy",
        Text("阻塞式拷贝", "Blocking copies of pinned batches"),
        Priority.LOW,
        _blocking_copies,
        Text("锁页 batch 阻塞式拷贝", "pinned batches are copied with blocking calls"),
        Text("传入 non_blocking=True", "Pass non_blocking=True"),
        "A copy from pinned memory can run beside the computation, when it need not block.",
        "",
        by_class(Priority.LOW, _PINNED),
        _example(", non_blocking=True)\n        targets", ")\n        targets"),
    ),
    _check(
        "GPU551",
        "checkpoint-each-step",
        Text("每步保存 checkpoint", "A checkpoint at every step"),
        Priority.MEDIUM,
        _saves,
        Text("每步保存 checkpoint", "the loop saves at every step"),
        Text("每隔数百步保存一次", "Save every few hundred steps"),
        "The GPU waits while the weights are copied and written.",
        "The loop runs a few steps only.",
        by_class(
            Priority.MEDIUM,
            "https://pytorch.org/docs/stable/distributed.checkpoint.html",
        ),
        _example(_SUM, f'{_SUM}        torch.save(model.state_dict(), "last.pt")\n'),
    ),
)
