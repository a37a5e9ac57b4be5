"""GPU010, GPU011, GPU015: what a trainer and its DataLoader refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks._faults import Fault, judge_of
from flake8_gpu_training.checks._judging import keyword_change
from flake8_gpu_training.checks._mistake_examples import (
    PRECISION_TRAINER,
    deepspeed_example,
)
from flake8_gpu_training.checks._mistaken import (
    FAILS,
    ON_TRAINER,
    deepspeed_has_both,
    entry_of,
    is_on,
    place_of,
    replaced,
    value_of,
    written,
)
from flake8_gpu_training.checks._programs import calls
from flake8_gpu_training.checks.base import (
    Change,
    Check,
    Example,
    Priority,
)
from flake8_gpu_training.checks.changes import write
from flake8_gpu_training.facts import Location, Setting, known
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

# --- GPU010: precision -------------------------------------------------------------------


def _both_precisions(run: Run) -> Iterator[Fault]:
    current = Text("同时启用了 fp16 和 bf16", "fp16 and bf16 are both on")
    action = Text("只保留 bf16（Ampere 及更新）或 fp16", "keep one: bf16 on Ampere or newer")
    bf16, fp16 = is_on(run, "bf16"), is_on(run, "fp16")
    if bf16 is not None and fp16 is not None and run.framework in ON_TRAINER:
        last = max(bf16, fp16, key=place_of)
        yield Fault(
            place_of(last),
            f"drop {last.name}: TrainingArguments refuses fp16 and bf16 together",
            current,
            action,
            write(run, {last.name: False}),
        )
    half = entry_of(run.deepspeed, "fp16.enabled")
    if half is not None and deepspeed_has_both(run):
        yield Fault(
            place_of(half),
            'set "enabled": false for one of them: DeepSpeed refuses fp16 and bf16 together',
            current,
            action,
            replaced(run, half.name, False),
        )


# --- GPU011: options that need worker processes ------------------------------------------


_LOADERS = ("torch.utils.data.DataLoader", ".StatefulDataLoader")


def _workerless(run: Run) -> Iterator[Fault]:
    for call in calls(run, *_LOADERS):
        workers = call.keywords.get("num_workers")
        if call.is_open or len(call.positional) > 5:
            continue
        if workers is not None and (not known(workers.value) or workers.value != 0):
            continue
        change = keyword_change(run, call, "num_workers", 4)
        prefetch = call.keywords.get("prefetch_factor")
        if prefetch is not None and isinstance(prefetch.value, int):
            yield _needs_workers(prefetch.location, "prefetch_factor", "num_workers", change)
        persistent = call.keywords.get("persistent_workers")
        if persistent is not None and persistent.value is True:
            yield _needs_workers(persistent.location, "persistent_workers", "num_workers", change)
    if run.framework in ON_TRAINER:
        yield from _workerless_trainer(run)


def _workerless_trainer(run: Run) -> Iterator[Fault]:
    workers = run.practice("dataloader_workers")
    if not workers.known or workers.value != 0:
        return
    change = write(run, {"dataloader_num_workers": 4})
    prefetch = written(run, "dataloader_prefetch_factor")
    if prefetch is not None and isinstance(prefetch.value, int):
        yield _needs_workers(place_of(prefetch), prefetch.name, "dataloader_num_workers", change)
    persistent = is_on(run, "dataloader_persistent_workers")
    if persistent is not None and run.framework != "swift":  # ms-swift turns it off itself
        yield _needs_workers(
            place_of(persistent), persistent.name, "dataloader_num_workers", change
        )


def _needs_workers(
    location: Location, name: str, workers: str, change: Optional[Change] = None
) -> Fault:
    return Fault(
        location,
        f"set {workers}=4 or drop {name}: it is refused while {workers} is 0",
        Text(f"{workers} 为 0 却设置了 {name}", f"{name} with {workers}=0"),
        Text(f"把 {workers} 设为 4–8", f"set {workers} to 4-8"),
        change,
    )


# --- GPU015: the best model --------------------------------------------------------------


def _best_model(run: Run) -> Iterator[Fault]:
    best = is_on(run, "load_best_model_at_end")
    if best is None or run.framework not in ON_TRAINER:
        return
    judged = value_of(run, "eval_strategy") or value_of(run, "evaluation_strategy")
    saved = value_of(run, "save_strategy")
    if run.framework in ("hf_trainer", "llamafactory") and not run.is_open:
        judged, saved = (
            judged or _default(run, "eval", "no"),
            saved or _default(run, "save", "steps"),
        )
    if not isinstance(judged, str) or not isinstance(saved, str):
        return
    if saved != "best" and judged != saved:
        yield _best_fault(
            best,
            f"give eval_strategy and save_strategy the same value: load_best_model_at_end "
            f"refuses {judged!r} with {saved!r}",
            write(run, {"save_strategy": judged}) if judged != "no" else None,
        )
    elif judged == "steps":
        yield from _best_steps(run, best)


def _default(run: Run, kind: str, value: str) -> Optional[str]:
    """The default of a strategy, unless the program sets it in a way we cannot read."""
    names = ("eval_strategy", "evaluation_strategy") if kind == "eval" else ("save_strategy",)
    return None if any(run.setting(name) is not None for name in names) else value


def _best_steps(run: Run, best: Setting) -> Iterator[Fault]:
    judged, saved = value_of(run, "eval_steps"), value_of(run, "save_steps")
    whole = isinstance(judged, int) and isinstance(saved, int)
    if whole and judged > 0 and saved > 0 and saved % judged != 0:
        yield _best_fault(
            best,
            f"make save_steps ({saved}) a multiple of eval_steps ({judged}): "
            "load_best_model_at_end refuses the rest",
            current=Text(
                f"save_steps={saved} 不是 eval_steps={judged} 的倍数",
                f"save_steps={saved} is no multiple of eval_steps={judged}",
            ),
            action=Text(
                f"将 save_steps 设为 {judged} 的倍数", f"make save_steps a multiple of {judged}"
            ),
        )


_STRATEGIES_DIFFER = Text(
    "load_best_model_at_end 要求评估与保存策略相同",
    "eval_strategy and save_strategy differ, which load_best_model_at_end refuses",
)


_SAME_STRATEGY = Text(
    "eval_strategy 与 save_strategy 设为同一值", "give eval_strategy and save_strategy one value"
)


def _best_fault(
    best: Setting,
    message: str,
    change: Optional[Change] = None,
    current: Text = _STRATEGIES_DIFFER,
    action: Text = _SAME_STRATEGY,
) -> Fault:
    return Fault(place_of(best), message, current, action, change)


# --- GPU022: one process on several GPUs -------------------------------------------------


_LOADER = """\
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=8, {}pin_memory=True, {})
for batch in loader:
    loss = model(batch)
    loss.backward()
"""


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU010",
        "both-precisions",
        Text("fp16 与 bf16 冲突", "fp16 and bf16 together"),
        Priority.HIGH,
        judge_of(_both_precisions),
        why="The trainer and DeepSpeed refuse to start.",
        fix="Keep bf16 on Ampere or newer, fp16 before.",
        impact=FAILS,
        examples=(
            Example(
                "hf_trainer",
                "train.py",
                PRECISION_TRAINER.format("bf16=True,\n    fp16=True,"),
                PRECISION_TRAINER.format("bf16=True,"),
            ),
            Example(
                "swift",
                "train.sh",
                "swift sft --model Qwen/Qwen2.5-7B-Instruct --bf16 true --fp16 true\n",
                "swift sft --model Qwen/Qwen2.5-7B-Instruct --bf16 true\n",
            ),
            deepspeed_example(fp16=True),
        ),
        sources=(sources.HF_ARGUMENTS, sources.DEEPSPEED_SOURCE),
    ),
    Check(
        "GPU011",
        "workerless-options",
        Text("无工作进程却设置其选项", "Worker options without workers"),
        Priority.HIGH,
        judge_of(_workerless),
        why="DataLoader raises ValueError for prefetch_factor or persistent_workers while "
        "num_workers is 0.",
        fix="Set num_workers to 4-8, or drop the option.",
        impact=FAILS,
        examples=(
            Example(
                "generic",
                "train.py",
                _LOADER.format("", "prefetch_factor=4"),
                _LOADER.format("num_workers=4, ", "prefetch_factor=4"),
            ),
        ),
        sources=("torch 2.8, utils/data/dataloader.py", sources.HF_ARGUMENTS),
    ),
    Check(
        "GPU015",
        "best-model-strategies",
        Text("最优模型的保存策略冲突", "Strategies of the best model"),
        Priority.HIGH,
        judge_of(_best_model, training=True),
        why="load_best_model_at_end needs an evaluation for every checkpoint; TrainingArguments "
        "raises ValueError otherwise.",
        fix="Give eval_strategy and save_strategy the same value, and steps that divide.",
        impact=FAILS,
        examples=(
            Example(
                "hf_trainer",
                "train.py",
                PRECISION_TRAINER.format(
                    'bf16=True,\n    eval_strategy="epoch",\n    load_best_model_at_end=True,'
                )
                + "Trainer(model=model, args=args, train_dataset=data).train()\n",
                PRECISION_TRAINER.format(
                    'bf16=True,\n    eval_strategy="epoch",\n    save_strategy="epoch",\n'
                    "    load_best_model_at_end=True,"
                )
                + "Trainer(model=model, args=args, train_dataset=data).train()\n",
            ),
        ),
        sources=(sources.HF_ARGUMENTS,),
    ),
)
