"""Training loops of PyTorch programs: optimizer, accumulation, clipping, schedule, adapters."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Optional

from flake8_gpu_training.facts import Call, Setting, Unknown
from flake8_gpu_training.frameworks.accumulation import (
    accumulation_by_hand,
    held_back,
    is_update,
    left_open,
    parts_of_a_step,
    told_to_update,
)
from flake8_gpu_training.frameworks.frozen import frozen
from flake8_gpu_training.frameworks.pytorch_program import (
    MISSING,
    Program,
    absent,
    argument_of,
    given_by,
    missing_deepspeed,
)
from flake8_gpu_training.frameworks.reading import find, practice, truth

_ACCUMULATION_WORDS = ("accum", "acc_step", "acc_iter", "grad_acc")
_OPTIMIZER_ROOTS = (
    "torch.optim",
    "bitsandbytes",
    "apex",
    "deepspeed",
    "transformers",
    "torchao",
    "lion_pytorch",
    "galore_torch",
    "apollo_torch",
    "schedulefree",
    "came_pytorch",
    "prodigyopt",
    "dadaptation",
    "torch_optimizer",
    "optimi",
    "colossalai",
)


def optimizing(program: Program, found: Mapping[str, Setting]) -> dict[str, Setting]:
    """The optimizer, the accumulation of gradients and their clipping."""
    result: dict[str, Setting] = {}
    made = [call for call in program.calls if is_optimizer(call)]
    if made:
        names = {optimizer_name(call) for call in made}
        if len(names) == 1:
            result["optimizer"] = given_by("optimizer", names.pop(), made[0])
        else:
            reason = "several optimizers in the code"
            unread = Unknown(reason, tuple(sorted(names)))
            result["optimizer"] = given_by("optimizer", unread, made[0])
    result.update(_accumulation(program, found))
    result.update(_clipping(program, found))
    return result


def is_optimizer(call: Call) -> bool:
    """Whether a call makes an optimizer of PyTorch or of a library of optimizers."""
    last = call.method
    if not last[:1].isupper() or last.endswith(("Config", "Arguments", "Scheduler", "LR")):
        return False
    if call.name.startswith("torch.optim."):
        return "lr_scheduler" not in call.name and "swa_utils" not in call.name
    is_named = "Adam" in last or last in ("Adafactor", "Lion", "SGD", "Muon", "CAME", "Lamb")
    return is_named and call.name.startswith(_OPTIMIZER_ROOTS)


def _optimizes(program: Program) -> bool:
    """Whether an optimizer is made in sight: what it is given is read, too."""
    return any(is_optimizer(call) or _MAKES_OPTIMIZER.search(call.method) for call in program.calls)


_MAKES_OPTIMIZER = re.compile(r"(?i)optimizer|^initialize$|optim\w*_c(?:ls|lass)$")


def optimizer_name(call: Call) -> str:
    """The class of an optimizer in lower case, and whether it is told to be fused."""
    name = call.method.lower()
    fused = call.keywords.get("fused")
    if call.name.startswith("torch.optim.") and fused is not None and truth(fused.value):
        return f"{name}_fused"
    return name


def _accumulation(program: Program, found: Mapping[str, Setting]) -> dict[str, Setting]:
    name = "gradient_accumulation_steps"
    if name in found:  # DeepSpeed's own, whatever Accelerate is told
        return {}
    missing = missing_deepspeed(program)
    if missing is not None:
        return {name: given_by(name, Unknown(MISSING), missing)}
    for call, keyword in (
        (program.accelerator(), "gradient_accumulation_steps"),
        (program.lightning(), "accumulate_grad_batches"),
    ):
        argument = argument_of(call, keyword) if call is not None else None
        if call is not None and argument is not None:
            value = argument.value
            if isinstance(value, dict):
                value = Unknown("it changes with the epochs", tuple(value.values()))
                argument = dataclasses.replace(argument, value=value)
            made = given_by(name, value, call, argument)
            return {name: _agreed(made, accumulation_by_hand(program.run))}
    by_hand = accumulation_by_hand(program.run)
    several = (
        parts_of_a_step(program.run)
        or held_back(program.run)
        or told_to_update(program.run)
        or left_open(program.run)
    )
    setting = find(program.run, name, "accumulation_steps", "grad_accum_steps")
    if setting is not None:
        made = practice(name, setting.value, setting)
        if by_hand is None and several is None and _updates_each_time(program, made):
            reason = f"{setting.name} is given, and every step updates"
            made = dataclasses.replace(made, value=Unknown(reason, (made.value, 1)))
        return {name: _agreed(made, by_hand)}
    if by_hand is not None:
        return {name: by_hand}
    if several is not None:
        return {name: several}
    if program.silent(*_ACCUMULATION_WORDS, "deepspeed") and not program.is_launch_open():
        return absent(name, 1, "no gradient accumulation in the code")
    return _accumulated_by_accelerate(program, found)


def _agreed(told: Setting, by_hand: Optional[Setting]) -> Setting:
    """What an option says, unless the loop counts to another number by itself."""
    if by_hand is None or not by_hand.known or not told.known or by_hand.value == told.value:
        return told
    both = Unknown("the loop counts by itself", (told.value, by_hand.value))
    return dataclasses.replace(told, value=both)


def _updates_each_time(program: Program, told: Setting) -> bool:
    """Whether the loop, all in sight, has an update behind each backward pass."""
    if not told.known or told.value == 1 or not program.is_searched:
        return False
    if program.words & {"deepspeed", "megatron", "lightning", "fabric"}:
        return False
    if program.first("accumulate", "no_sync") is not None:
        made = program.accelerator()
        return made is not None and not made.is_open and "plugin" not in " ".join(made.keywords)
    steps = (call for call in program.named("step") if call.loop is not None)
    return any(is_update(call) for call in steps)


def _accumulated_by_accelerate(
    program: Program, found: Mapping[str, Setting]
) -> dict[str, Setting]:
    """``accelerator.accumulate(model)`` of an Accelerator that is told of no accumulation."""
    made = program.accelerator()
    stage = found.get("zero_stage")
    if made is None or made.is_open or program.first("accumulate") is None:
        return {}
    if program.run.is_open or program.is_launch_open() or stage is None or stage.value != 0:
        return {}
    if argument_of(made, "gradient_accumulation_plugin") is not None:
        return {}
    note = "accelerate 1.15 accelerator.py: gradient_accumulation_steps 1 unless set"
    return absent("gradient_accumulation_steps", 1, note)


def _clipping(program: Program, found: Mapping[str, Setting]) -> dict[str, Setting]:
    for call in program.named("clip_grad_norm_"):
        argument = argument_of(call, "max_norm", position=0 if len(call.positional) == 1 else 1)
        if argument is not None:
            return {"max_grad_norm": given_by("max_grad_norm", argument.value, call, argument)}
    trainer = program.lightning()
    argument = argument_of(trainer, "gradient_clip_val") if trainer is not None else None
    if trainer is not None and argument is not None:
        return {"max_grad_norm": given_by("max_grad_norm", argument.value, trainer, argument)}
    if "max_grad_norm" not in found and program.silent(
        "clip_grad", "clip_val", "gradient_clip", "deepspeed"
    ):
        return absent("max_grad_norm", 0, "no gradient clipping in the code")
    return {}


def scheduling(program: Program, found: Mapping[str, Setting]) -> dict[str, Setting]:
    """The schedule of the learning rate and its warm-up."""
    result: dict[str, Setting] = {}
    made = [
        call
        for call in program.calls
        if ("lr_scheduler." in call.name and call.method[:1].isupper())
        or call.method == "get_scheduler"
        or re.fullmatch(r"get_\w+_schedule(?:_with_warmup)?", call.method)
    ]
    if not made:
        words = ("lr_scheduler", "get_scheduler", "_schedule", "schedulefree", "warmup")
        if "lr_scheduler" not in found and program.silent(*words, "deepspeed", "lightning"):
            result.update(absent("lr_scheduler", "constant", "no schedule in the code"))
            result.update(absent("warmup", 0, "no warm-up in the code"))
        return result
    call = made[0]
    argument = argument_of(call, "name", position=0) if call.method == "get_scheduler" else None
    if call.method == "get_scheduler" and argument is not None:
        result["lr_scheduler"] = given_by("lr_scheduler", argument.value, call, argument)
    elif len({c.method for c in made}) == 1:
        result["lr_scheduler"] = given_by("lr_scheduler", call.method.lower(), call)
    for call in made:
        steps = argument_of(call, "num_warmup_steps")
        if steps is not None:
            result["warmup"] = given_by("warmup", steps.value, call, steps)
    return result


def adapters(program: Program, found: Mapping[str, Setting]) -> dict[str, Setting]:
    """What of the model is trained, and what adapters and quantization the code lacks."""
    result: dict[str, Setting] = {}
    if "tuning" not in found and program.silent("lora", "peft", "adapter", "unsloth"):
        left_open = frozen(program.run)
        if left_open is not None:
            result["tuning"] = left_open
        elif _optimizes(program) and "made by name" not in program.words:
            result.update(absent("tuning", "full", "no adapters in the code"))
    if program.silent("unsloth"):
        result.update(absent("unsloth", False, "unsloth is not in the code"))
    if "liger_kernel" not in found and program.silent("liger"):
        result.update(absent("liger_kernel", False, "no Liger kernel in the code"))
    if "quantization_method" not in found and program.silent("quant", "bitsandbytes"):
        result.update(absent("quantization_method", "none", "no quantization in the code"))
        result.update(absent("quantization_bits", None, "no quantization in the code"))
    if "device_map" not in found and program.silent("device_map"):
        result.update(absent("device_map", "none", "no device_map in the code"))
    return result
