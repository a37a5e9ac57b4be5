"""GPU012 to GPU014: a DeepSpeed configuration against its stage, the trainer and the batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks._faults import Fault, judge_of
from flake8_gpu_training.checks._mistake_examples import (
    ZERO_FILE,
    deepspeed_example,
    of_zero_file,
)
from flake8_gpu_training.checks._mistaken import (
    FAILS,
    IGNORED,
    ON_TRAINER,
    deepspeed_has_both,
    entry_of,
    is_on,
    place_of,
    replaced,
    written,
)
from flake8_gpu_training.checks._programs import first_call
from flake8_gpu_training.checks._scale import (
    number,
    ranks,
)
from flake8_gpu_training.checks.base import (
    Check,
    Priority,
)
from flake8_gpu_training.checks.changes import write
from flake8_gpu_training.frameworks.transformers import configuration_class
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run, RunKind

# --- GPU012: offload below stage 3 -------------------------------------------------------


def _useless_offload(run: Run) -> Iterator[Fault]:
    device = entry_of(run.deepspeed, "zero_optimization.offload_param.device")
    stage = entry_of(run.deepspeed, "zero_optimization.stage")
    if device is None or device.value not in ("cpu", "nvme"):
        return
    if stage is not None and isinstance(stage.value, int) and stage.value < 3:
        yield Fault(
            place_of(device),
            f"set stage 3 or drop offload_param: stage {stage.value} ignores it",
            Text(
                f"ZeRO-{stage.value} 下 offload_param 不生效",
                f"offload_param has no effect at stage {stage.value}",
            ),
            Text("改用 ZeRO-3，或删除 offload_param", "use stage 3, or drop offload_param"),
            replaced(run, device.name, "none"),
        )


# --- GPU013, GPU014: DeepSpeed against the trainer ---------------------------------------


_PAIRS = (
    ("train_micro_batch_size_per_gpu", "per_device_train_batch_size"),
    ("gradient_accumulation_steps", "gradient_accumulation_steps"),
    ("gradient_clipping", "max_grad_norm"),
    ("optimizer.params.lr", "learning_rate"),
    ("optimizer.params.weight_decay", "weight_decay"),
    ("optimizer.params.eps", "adam_epsilon"),
    ("optimizer.params.betas.0", "adam_beta1"),
    ("optimizer.params.betas.1", "adam_beta2"),
    ("scheduler.params.warmup_max_lr", "learning_rate"),
    ("scheduler.params.warmup_num_steps", "warmup_steps"),
    ("bf16.enabled", "bf16"),
    ("fp16.enabled", "fp16"),
)


def _mismatches(run: Run) -> Iterator[Fault]:
    if run.framework not in ON_TRAINER or run.deepspeed is None or not _is_integrated(run):
        return
    for dotted, parameter in _PAIRS:
        theirs, ours = entry_of(run.deepspeed, dotted), written(run, parameter)
        if theirs is None or ours is None or theirs.value == "auto":
            continue
        if not isinstance(ours.value, (bool, int, float)) or _same(theirs.value, ours.value):
            continue
        if parameter == "warmup_steps" and ours.value < 1:
            continue  # a part of the steps, or none: how many the trainer makes is not known
        yield Fault(
            place_of(theirs),
            f'set it to "auto": DeepSpeed says {theirs.value}, {parameter} says {ours.value}, '
            "and the trainer refuses to start",
            Text(
                f"DeepSpeed {dotted}={theirs.value} 与 {parameter}={ours.value} 不一致，"
                "训练器拒绝启动",
                f"DeepSpeed {dotted}={theirs.value}, but {parameter}={ours.value}",
            ),
            Text('DeepSpeed 配置中改为 "auto"', 'write "auto" in the DeepSpeed config'),
            replaced(run, dotted, "auto") if dotted[-1:].isalpha() else None,
        )
    yield from _precision_left_off(run)


def _is_integrated(run: Run) -> bool:
    """Whether the trainer itself reads the configuration: what a program hands to
    ``deepspeed.initialize`` is never held against the arguments."""
    if "deepspeed" in run.settings or run.accelerate is not None:
        return True
    if "deepspeed_config_file" in run.launcher.options:
        return True
    return first_call(run, "deepspeed.initialize") is None


def _precision_left_off(run: Run) -> Iterator[Fault]:
    """DeepSpeed turns on what the trainer leaves off, by its default False."""
    # TRL's own classes turn bf16 on by themselves, ms-swift what the model's type says.
    plain = configuration_class(run) in ("TrainingArguments", "Seq2SeqTrainingArguments")
    if not (run.framework == "llamafactory" or (run.framework == "hf_trainer" and plain)):
        return
    if run.is_open or run.single_file or run.kind is not RunKind.TRAIN:
        return
    if deepspeed_has_both(run):
        return  # GPU010 asks for one of them first: which one it will be is not known
    for name, other in (("bf16", "fp16"), ("fp16", "bf16")):
        theirs = entry_of(run.deepspeed, f"{name}.enabled")
        ours = (name, f"{name}_full_eval", f"pure_{name}")
        if theirs is None or theirs.value is not True or any(n in run.settings for n in ours):
            continue
        beside = is_on(run, other)
        if beside is None and other in run.settings and not run.settings[other].known:
            continue
        yield Fault(
            place_of(theirs),
            _agree(name, other, beside is not None),
            Text(
                f"DeepSpeed 启用了 {name}，训练器没有", f"DeepSpeed has {name} on, the trainer not"
            ),
            Text(f"两处统一使用 {name}", f"turn on {name} in both, or in neither"),
            None if beside is not None else write(run, {name: True}),
        )


def _agree(name: str, other: str, beside: bool) -> str:
    mend = f"set {name}=true in place of {other}" if beside else f"set {name}=true"
    return (
        f"{mend} for the trainer too, or drop it here: DeepSpeed turns {name} on, "
        f"the trainer's {name} is false, and it refuses to start"
    )


def _same(theirs: Any, ours: Any) -> bool:
    if isinstance(theirs, bool) or isinstance(ours, bool):
        return theirs is ours
    return isinstance(theirs, (int, float)) and theirs == ours


def _arithmetic(run: Run) -> Iterator[Fault]:
    total = entry_of(run.deepspeed, "train_batch_size")
    world = ranks(run)
    if total is None or not isinstance(total.value, int) or world is None:
        return
    if any((number(run, name) or 1) > 1 for name in _MODEL_PARALLEL):
        return  # the data-parallel size is then not the number of ranks
    micro = _factor(run, "train_micro_batch_size_per_gpu", "micro_batch_size")
    steps = _factor(run, "gradient_accumulation_steps", "gradient_accumulation_steps")
    if micro is None or steps is None or micro * steps * world == total.value:
        return
    yield Fault(
        place_of(total),
        f"set train_batch_size to {micro * steps * world}: {micro} a GPU x {steps} "
        f"accumulated x {world} ranks, and DeepSpeed refuses {total.value}",
        Text(
            f"train_batch_size={total.value} ≠ {micro}×{steps}×{world}",
            f"train_batch_size={total.value} is not {micro}x{steps}x{world}",
        ),
        Text(f"改为 {micro * steps * world}，或用 auto", f"set {micro * steps * world}, or auto"),
        replaced(run, "train_batch_size", micro * steps * world),
    )


_MODEL_PARALLEL = (
    "tensor_parallel",
    "pipeline_parallel",
    "sequence_parallel",
    "autotp_size",
)


def _factor(run: Run, dotted: str, practice: str) -> Optional[int]:
    """A factor of the batch: the DeepSpeed config's number, or the trainer's behind "auto".

    DeepSpeed alone knows no "auto" and reckons a missing factor from the others.
    """
    node = run.deepspeed.get(dotted) if run.deepspeed is not None else None
    if node is None or node.value != "auto":
        value = node.value if node is not None else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    setting = run.practice(practice)
    value = setting.value
    if run.framework not in ON_TRAINER or isinstance(value, bool) or not isinstance(value, int):
        return None
    return value


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU012",
        "useless-offload",
        Text("offload_param 需要 ZeRO-3", "offload_param below stage 3"),
        Priority.MEDIUM,
        judge_of(_useless_offload),
        why="Only stage 3 partitions parameters; below it offload_param is ignored, and the "
        "memory it was to free stays taken.",
        fix="Set stage 3, or drop offload_param.",
        impact=IGNORED,
        examples=(deepspeed_example(stage=2),),
        sources=(sources.DEEPSPEED_SOURCE, sources.DEEPSPEED_CONFIG),
    ),
    Check(
        "GPU013",
        "deepspeed-mismatch",
        Text("DeepSpeed 与训练参数不一致", "DeepSpeed against the trainer"),
        Priority.HIGH,
        judge_of(_mismatches),
        why="The Hugging Face integration compares both and raises ValueError.",
        fix='Write "auto" in the DeepSpeed configuration.',
        impact=FAILS,
        examples=(deepspeed_example(micro=4),),
        sources=(sources.HF_DEEPSPEED,),
    ),
    Check(
        "GPU014",
        "batch-arithmetic",
        Text("批大小算术错误", "Batch arithmetic"),
        Priority.HIGH,
        judge_of(_arithmetic, training=True),
        why="DeepSpeed asserts train_batch_size = micro-batch x accumulation x ranks.",
        fix="Mend the product, or leave train_batch_size out.",
        impact=FAILS,
        examples=(of_zero_file(ZERO_FILE.format(64, ""), ZERO_FILE.format(32, "")),),
        sources=(sources.DEEPSPEED_SOURCE,),
    ),
)
