"""GPU803 to GPU805: how often a run saves, logs and reports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Optional

from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    advise,
    cannot_apply,
    cannot_tell,
    of_training,
    off,
    on,
    seen,
)
from flake8_gpu_training.checks._loaders import write_call
from flake8_gpu_training.checks._loops import Step, step_loop, steps
from flake8_gpu_training.checks._programs import (
    calls,
    first_call,
    keyword,
    lightning_trainer,
    says,
)
from flake8_gpu_training.checks._scale import number, text, total_steps
from flake8_gpu_training.checks._settings import SAMPLING, algorithm, parameter, told
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
from flake8_gpu_training.frameworks.megatron import is_megatron_lm
from flake8_gpu_training.frameworks.reading import is_off
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run


def _stands_in_step(call: Call) -> bool:
    """Whether a call stands in a training loop, at every step or at some."""
    return call.loop is not None and step_loop(replace(call, guarded=False)) is not None


# --- GPU803: checkpoints -----------------------------------------------------------------

_OFTEN = 50  # steps between checkpoints of all weights
_OFTEN_ADAPTERS = 10
_HUNDREDS = 100
_FEW = 10  # checkpoints in all that no interval is too short for
_MANY = 100
_SEVERAL = 5
_SAVES = (
    "torch.save",
    "torch.distributed.checkpoint.save",
    "torch.distributed.checkpoint.async_save",
    ".save_pretrained",
    ".save_checkpoint",
    ".save_state",
)
_NEVER = Text("不保存 Checkpoint", "no checkpoint is written")


@of_training(alone=True)
def _checkpoints(run: Run) -> Judgement:
    if run.framework == "flow_factory":
        return _saved_by_epochs(run)
    if not told(run, "save_steps"):
        return _saved_by_code(run)
    setting = run.practice("save_steps")
    if not setting.known:
        return cannot_tell(setting)
    steps = number(run, "save_steps")
    if steps is None:
        return cannot_apply(_NEVER) if _never_saves(run) else on(setting)
    total = total_steps(run)
    if not _saves_often(run, steps, total):
        answer = on(setting)
        return (
            answer
            if steps >= _HUNDREDS
            else replace(answer, current=_why_enough(run, steps, total))
        )
    return advise(
        run,
        f"the GPUs wait for a checkpoint {_every(steps)}{_in_all(steps, total)}",
        Text(f"每 {steps:g} 步保存一次", f"a checkpoint {_every(steps)}{_in_all(steps, total)}"),
        Text("降低保存频率，或异步保存", "save less often, or asynchronously"),
        practices={"save_steps": _interval(total)},
        at=setting,
    )


def _saves_often(run: Run, steps: float, total: Optional[int]) -> bool:
    if 0 < steps < 1:  # a share of all steps
        return steps * _MANY < 1
    if algorithm(run) in SAMPLING:
        return False  # a step samples and scores completions: minutes, not seconds
    if total is not None and total <= _FEW * max(steps, 1):
        return False
    adapters = text(run, "tuning") not in (None, "full")
    if steps < (_OFTEN_ADAPTERS if adapters else _OFTEN):
        return True
    return not adapters and total is not None and total > _MANY * steps


def _why_enough(run: Run, steps: float, total: Optional[int]) -> Text:
    """Why an interval below the usual hundreds of steps is no fault."""
    if 0 < steps < 1:
        return Text(
            f"每 {steps:.0%} 的步数保存一次", f"a checkpoint every {steps:.0%} of all steps"
        )
    zh, en = f"每 {steps:g} 步保存一次", f"a checkpoint {_every(steps)}"
    if algorithm(run) in SAMPLING:
        return Text(f"{zh}；每步含采样，耗时以分钟计", f"{en}, each of which samples for minutes")
    if total is not None and total <= _FEW * max(steps, 1):
        count = int(total / max(steps, 1))
        return Text(f"{zh}，全程共 {count} 次", f"{en}: {count} in the whole run")
    if text(run, "tuning") not in (None, "full"):
        return Text(f"{zh}；只保存适配器，写入很小", f"{en}: adapters only, which are small")
    return Text(f"{zh}（不足 {_OFTEN} 步才提示）", f"{en}; below {_OFTEN} it would be too often")


def _interval(total: Optional[int]) -> int:
    """Steps between checkpoints that give several of them."""
    if total is None or total >= _SEVERAL * 500:
        return 500
    return max(_FEW, -(-total // _SEVERAL) // 10 * 10)


def _in_all(steps: float, total: Optional[int]) -> str:
    return "" if total is None else f", {int(total / max(steps, 1)):,} in {total:,} steps"


def _never_saves(run: Run) -> bool:
    """Whether saving is off, as opposed to going by epoch."""
    strategy = run.setting("save_strategy")
    if strategy is None:
        return run.framework == "generic"  # Megatron-LM and verl: no interval
    return strategy.known and is_off(strategy.value)


def _saved_by_epochs(run: Run) -> Judgement:
    """Flow-Factory counts in epochs, each of which samples what it then trains on."""
    names = ("log.save_freq", "save_freq")
    epochs = parameter(run, *names, default=10, source=_FLOW_FACTORY_LOG)
    if not epochs.known:
        return cannot_tell(epochs)
    return cannot_apply(_NEVER) if epochs.value == 0 else on(epochs)


def _saved_by_code(run: Run) -> Judgement:
    trainer = lightning_trainer(run)
    if trainer is not None:
        return _saved_by_lightning(run, trainer)
    for step in steps(run, *(name.rpartition(".")[2] for name in _SAVES)):
        call = step.call
        if call.name == "torch.save" or call.name.endswith(_SAVES[1:]):
            # The diagnostic is that of the loop (GPU551).
            said = Text("每步保存 Checkpoint", "a checkpoint at every step")
            do = Text("每几百步或每个 epoch 保存", "save every few hundred steps, or by epoch")
            shown = (Evidence(f"{call.name}(...)", call.location),)
            return Judgement(Status.RECOMMENDED, evidence=shown, current=said, action=do)
    saved = first_call(run, *_SAVES)
    return seen(saved) if saved else cannot_tell(Text("未见保存代码", "nothing saves in sight"))


def _saved_by_lightning(run: Run, trainer: Call) -> Judgement:
    if says(trainer, "enable_checkpointing", False):
        return cannot_apply(_NEVER)
    for call in calls(run, ".ModelCheckpoint"):
        steps = keyword(call, "every_n_train_steps")
        if isinstance(steps, int) and 0 < steps < _OFTEN:
            return _saved_often(run, call, steps)
        return seen(call)
    if trainer.is_open:
        return cannot_tell(Text("Trainer 的参数未全部读到", "arguments of the Trainer are unseen"))
    return on("Lightning saves a checkpoint at the end of each epoch")


def _saved_often(run: Run, call: Call, steps: int) -> Judgement:
    change = write_call(run, call, {"every_n_train_steps": 500})
    message = f"set every_n_train_steps=500: the GPUs wait for a checkpoint {_every(steps)}"
    return Judgement(
        Status.RECOMMENDED,
        evidence=(Evidence(f"ModelCheckpoint(every_n_train_steps={steps})", call.location),),
        findings=(Finding(call.keywords["every_n_train_steps"].location, message, change),),
        current=Text(f"每 {steps} 步保存一次", f"a checkpoint {_every(steps)}"),
        action=Text("降低保存频率，或异步保存", "save less often, or asynchronously"),
        change=change,
    )


# --- GPU804, GPU805: logging and reporting ------------------------------------------------

_LOGS = 10
_LOGGERS = ("print", ".info", ".log", ".add_scalar", ".set_postfix", ".write")


@of_training(alone=True)
def _logging(run: Run) -> Judgement:
    if not told(run, "logging_steps"):
        return _logged_by_code(run)
    strategy = parameter(run, "logging_strategy", default="steps")
    if strategy.known and str(strategy.value).lower() in ("no", "epoch"):
        return on(strategy)
    setting = run.practice("logging_steps")
    if not setting.known or not strategy.known:
        return cannot_tell(setting)
    steps = number(run, "logging_steps")
    if steps is None or 0 < steps < 1 or algorithm(run) in SAMPLING:
        return on(setting)
    accumulated = run.practice("gradient_accumulation_steps")
    if steps < _LOGS and accumulated.name in run.profile and not accumulated.known:
        return cannot_tell(accumulated)
    batches = steps * (number(run, accumulated.name) or 1)
    if steps >= _LOGS or batches >= _LOGS:
        return on(setting) if steps >= _LOGS else _rare_enough(setting, batches)
    answer = advise(
        run,
        f"the loss is fetched from the GPU {_every(steps)}",
        Text(f"每 {steps:g} 步记录一次", f"logs {_every(steps)}"),
        Text("日志间隔不小于 10 步", "log every 10 steps or less often"),
        practices={"logging_steps": _LOGS},
        at=setting,
        share=0.5 if steps > 1 else None,
    )
    # A framework's default between 1 and 10 costs next to nothing: it is scored, not told.
    return answer if setting.explicit or steps == 1 else replace(answer, findings=())


def _rare_enough(setting: Setting, batches: float) -> Judgement:
    said = Text(
        f"每 {batches:g} 个 micro-batch 记录一次（含梯度累积）",
        f"logs once in {batches:g} micro-batches, by gradient accumulation",
    )
    return replace(on(setting), current=said)


def _logged_by_code(run: Run) -> Judgement:
    trainer = lightning_trainer(run)
    if trainer is not None:
        return _logged_by_lightning(run, trainer)
    found: Optional[Call] = None
    for file in run.python:
        for call in file.calls:
            if not _is_logger(call) or not _stands_in_step(call):
                continue
            if call.name in _REPORTS and not call.guarded:
                continue  # GPU805 tells of it
            if not call.guarded and any(_LOSS.search(a.text) for a in call.positional):
                # The diagnostic is that of the loop (GPU350 to GPU352).
                said = Text("每步记录日志", "logs at every step")
                do = Text("每 10 步以上记录一次", "log every 10 steps or less often")
                shown = (Evidence(f"{call.name}(...)", call.location),)
                return Judgement(Status.RECOMMENDED, evidence=shown, current=said, action=do)
            found = found or (call if call.guarded else None)
    if found is not None:
        return seen(found)
    return cannot_tell(Text("日志频率无法静态得知", "how often it logs is not known"))


_LOSS = re.compile(r"\bloss(?:\.item\(\))?\b")


def _is_logger(call: Call) -> bool:
    return call.name == "print" or call.name.endswith(_LOGGERS[1:])


def _logged_by_lightning(run: Run, trainer: Call) -> Judgement:
    argument = trainer.keywords.get("log_every_n_steps")
    if argument is None:
        if trainer.is_open:
            return cannot_tell(Text("日志频率无法静态得知", "how often it logs is not known"))
        return on("log_every_n_steps=50 (Lightning's default)")
    steps = argument.value
    setting = Setting("log_every_n_steps", steps, argument.location, text=argument.text)
    if not isinstance(steps, int):
        return cannot_tell(setting)
    if steps >= _LOGS or steps <= 0:
        return on(setting)
    change = write_call(run, trainer, {"log_every_n_steps": _LOGS})
    message = f"set log_every_n_steps={_LOGS}: metrics are fetched from the GPU {_every(steps)}"
    return Judgement(
        Status.RECOMMENDED if steps == 1 else Status.PARTIAL,
        share=1.0 if steps == 1 else 0.5,
        evidence=(Evidence.of(setting),),
        findings=(Finding(argument.location, message, change),),
        current=Text(f"每 {steps} 步记录一次", f"logs {_every(steps)}"),
        action=Text("日志间隔不小于 10 步", "log every 10 steps or less often"),
        change=change,
    )


def _every(steps: float) -> str:
    return "at every step" if steps == 1 else f"every {steps:g} steps"


_TRACKERS = ("wandb", "comet", "mlflow", "swanlab", "neptune", "clearml", "dvclive", "trackio")
_REPORTS = (
    "wandb.log",
    "mlflow.log_metric",
    "mlflow.log_metrics",
    "swanlab.log",
    "neptune.log",
    "trackio.log",
)


@of_training(alone=True)
def _reporting(run: Run) -> Judgement:
    reports = list(_reports(run))
    for step in steps(run, *{call.method for call in reports}) if reports else ():
        if step.call in reports:
            return _reported_each_step(step)
    if is_megatron_lm(run):
        return _reported_by_megatron(run)
    if not told(run, "report_to"):
        if reports:
            return seen(reports[0])
        return cannot_tell(Text("上报频率无法静态得知", "how often it reports is not known"))
    setting = run.practice("report_to")
    if not setting.known:
        return cannot_tell(setting)
    if number(run, "logging_steps") == 1 and _is_remote(setting):
        if algorithm(run) in SAMPLING:
            return on(setting)
        said = Text(
            "随日志每步远程上报（见 GPU804）", "reports as often as it logs: at every step (GPU804)"
        )
        return off(said, setting)  # told once, of the log interval
    return on(setting)


def _reports(run: Run) -> Iterator[Call]:
    """Calls that send metrics to a service; Accelerate's, where a service is chosen."""
    yield from calls(run, *_REPORTS)
    if _is_remote(run.practice("report_to")) or _is_remote(parameter(run, "report_to")):
        yield from (call for call in calls(run, ".log") if call.name == "accelerator.log")


def _is_remote(setting: Setting) -> bool:
    named = str(setting.value).lower() if setting.known else ""
    return any(name in named for name in _TRACKERS)


def _reported_by_megatron(run: Run) -> Judgement:
    """Each step goes to Weights & Biases, unless ``tensorboard_log_interval`` is set."""
    setting = run.practice("report_to")
    if not setting.known:
        return cannot_tell(setting)
    if setting.value != "wandb":
        return on(setting)
    interval = parameter(run, "tensorboard_log_interval", default=1, source=_MEGATRON)
    steps = interval.value
    if not isinstance(steps, (int, float)):
        return cannot_tell(interval)
    if steps >= _LOGS:
        return on(interval)
    return advise(
        run,
        f"about ten metrics go to Weights & Biases {_every(steps)}",
        Text(f"每 {steps:g} 步远程上报", f"reports {_every(steps)}"),
        Text("每 10 步以上上报一次", "report every 10 steps or less often"),
        parameters={"tensorboard_log_interval": _LOGS},
        at=interval,
    )


def _reported_each_step(step: Step) -> Judgement:
    call = step.call
    message = step.told(f"{call.name} reports at every step; report every 10 steps or more")
    return Judgement(
        Status.RECOMMENDED,
        evidence=(Evidence(f"{call.name}(...)", call.location),),
        findings=(Finding(call.location, message),),
        current=Text("每步上报指标", "metrics are reported at every step"),
        action=Text("每 10 步以上上报一次", "report every 10 steps or more"),
    )


_MEGATRON = "Megatron-LM 0.20 training_config.py: 1"
_PYTORCH_TUNING = "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
_FLOW_FACTORY_LOG = "Flow-Factory src/flow_factory/hparams/log_args.py: 10"
_HF_ARGUMENTS = "transformers 5.24, training_args.py"

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
        "GPU803",
        "checkpoint-frequency",
        Text("Checkpoint 频率", "Checkpoint frequency"),
        Priority.LOW,
        _checkpoints,
        why="Training stops while weights and optimizer states are written.",
        fix="Save every few hundred steps, or asynchronously. Reported are all weights saved more "
        "often than every 50 steps or a hundred times in all, and adapters more often than every "
        "10 steps; not a run that saves ten times or less in all, nor one whose steps sample "
        "completions.",
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
