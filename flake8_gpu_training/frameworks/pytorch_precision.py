"""Precision of plain PyTorch, Accelerate and Lightning programs: casts, weights and their types."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any, Optional

from flake8_gpu_training.facts import Argument, Call, Origin, Setting, Unknown, known
from flake8_gpu_training.frameworks.deepspeed import practices_from_deepspeed
from flake8_gpu_training.frameworks.lightning import precision_of, strategy_with_precision
from flake8_gpu_training.frameworks.pytorch_processes import undecided
from flake8_gpu_training.frameworks.pytorch_program import (
    MISSING,
    Program,
    absent,
    argument_of,
    given_by,
    is_evaluation,
    missing_deepspeed,
)
from flake8_gpu_training.frameworks.reading import dtype, is_off, practice, truth
from flake8_gpu_training.sources.python import shows_samples

_HALF_WORDS = (
    "autocast",
    "apex",
    "gradscaler",
    "bfloat16",
    "float16",
    "float8",
    "bf16",
    "fp16",
    "fp8",
    ".half",
    "torch.half",
    "precision",
)
_GENERATION = re.compile(r"(?i)(?:^|_)(?:generat\w*|sampl\w*|decode\w*|demo|plot\w*|visuali\w*)")
_LAUNCHER = re.compile(r"(?i)(?:^|[._])(?:accelerator|fabric)$")
_AUTOCASTS = ("torch.", "torch_npu.", "mmengine.", "intel_extension_for_pytorch.")
"""Packages whose ``autocast`` is PyTorch's, with its default types."""
_SHOWS = re.compile(r"(?i)valid|eval|sampl|visuali|preview|(?:log|show|save)_(?:img|image|video)")
_TRAINING = re.compile(
    r"(?i)train|step|loss|forward|main|fit|epoch|run|closure|optimi|update|learn|worker|batch"
    r"|__init__|__call__|process|ctx|context|cast|amp"
)
_BESIDE = re.compile(r"(?i)encod|embed|prompt|latent|caption|extract|cache")
_OF_PRECISION = re.compile(r"(?i)amp\b|_amp|fp16|half|bf16|bfloat|float16|precision|autocast|dtype")


def precision(
    program: Program,
    launched: Mapping[str, Setting],
    found: Mapping[str, Setting],
    weights: Optional[Setting],
) -> dict[str, Setting]:
    """The type that the training step computes in, where the code or its launch decides it."""
    missing = missing_deepspeed(program)
    if missing is not None:
        return {"precision": given_by("precision", Unknown(MISSING), missing)}
    for setting in (
        _eight_bits(program),
        _of_accelerator(program),
        _of_lightning(program),
        _of_deepspeed(program),
        _of_autocast(program),
        _of_mixed_shards(program),
        _of_apex(program),
    ):
        if setting is not None:
            made = _of_those(setting, _of_mixed_shards(program))
            return {"precision": _of_weights(made, weights)}
    if "precision" in launched:
        return {"precision": _of_weights(launched["precision"], weights)}
    if weights is not None and known(weights.value) and weights.value in ("bf16", "fp16"):
        value = "pure-bf16" if weights.value == "bf16" else "fp16"
        return {"precision": practice("precision", value, weights)}
    if program.is_launch_open() or (weights is not None and weights.value != "fp32"):
        return {}
    if any(_is_half(setting.value) for setting in program.run.settings.values()):
        return {}
    if "weights in double" in program.words:
        return {}
    other = _of_another_type(program)
    if other is not None:
        reason = f"{other.name} may set another type"
        return {"precision": given_by("precision", Unknown(reason), other)}
    if program.silent(*_half_words(program)) and program.is_on_cuda():
        cast = program.first("autocast")
        off = _enabled(cast) if cast is not None else None
        if cast is not None and off is not None:
            note = f"{cast.location}: autocast(enabled={off.text or off.value}) is off"
            return absent("precision", "fp32", note)
        return absent("precision", "fp32", "no autocast, scaler or 16-bit type in use")
    accelerator = program.accelerator()
    if accelerator is not None and _is_plain(program, accelerator, "mixed_precision"):
        note = "accelerate: Accelerator(mixed_precision=None) is no"
        return absent("precision", "fp32", note)
    return {}


_FLOAT = re.compile(r"float32|(?:cuda|torch)\.Float|float\b")


def _of_another_type(program: Program) -> Optional[Call]:
    """A call by which weights are made of another type than float32."""
    for call in program.named("set_default_dtype", "set_default_tensor_type"):
        argument = next(iter((*call.positional, *call.keywords.values())), None)
        if argument is None or not _FLOAT.search(argument.text):
            return call
    return None


def _of_weights(told: Setting, weights: Optional[Setting]) -> Setting:
    """Without mixed precision a model computes in the type of its weights."""
    if told.value != "fp32" or weights is None or weights.value not in ("bf16", "fp16"):
        return told
    half = "pure-bf16" if weights.value == "bf16" else "fp16"
    reason = "no mixed precision, and weights of another type"
    return dataclasses.replace(told, value=Unknown(reason, ("fp32", half)))


def _is_half(value: Any) -> bool:
    """Whether a setting names a type of 16 bits: ``getattr(torch, args.dtype)`` may use it."""
    return isinstance(value, str) and dtype(value) in ("bf16", "fp16", "fp8")


def _half_words(program: Program) -> tuple[str, ...]:
    """Words of reduced precision; autocast and its scaler aside where both are switched off."""
    casts = [*program.named("autocast"), *program.named("GradScaler")]
    switches = [_enabled(call) for call in casts]
    is_off_everywhere = bool(casts) and all(
        switch is not None
        and known(switch.value)
        and truth(switch.value) is False
        and switch.text != "False"  # a literal makes an exception within something larger
        for switch in switches
    )
    if not is_off_everywhere:
        return _HALF_WORDS
    theirs = {"autocast", "gradscaler", *_types_of(casts)} - _types_of(
        call for call in program.calls if call not in casts
    )
    bound = " ".join(
        str(setting.value)
        for file in program.run.python
        for setting in file.bindings.values()
        if setting.known
    )
    return tuple(word for word in _HALF_WORDS if word not in theirs or word in bound.lower())


def _types_of(calls: Iterable[Call]) -> set[str]:
    """Words of reduced precision in the names and arguments of calls."""
    found = set()
    for call in calls:
        arguments = (*call.positional, *call.keywords.values())
        texts = (call.name, *(argument.text or str(argument.value) for argument in arguments))
        said = " ".join(texts).lower()
        found |= {word for word in _HALF_WORDS if word in said}
    return found


def _is_plain(program: Program, call: Call, keyword: str) -> bool:
    """Whether a call, all its arguments seen, lacks ``keyword`` and no autocast makes up."""
    return (
        not call.is_open
        and keyword not in call.keywords
        and not _is_unread_engine(program, call)
        and program.is_searched
        and not _has_half_words(program)
        and program.run.launcher.name not in ("", "unknown")
        and not program.run.single_file
    )


def _is_unread_engine(program: Program, call: Call) -> bool:
    """Whether a DeepSpeed configuration that was not read may decide the precision."""
    plugin = argument_of(call, "deepspeed_plugin")
    if plugin is None or plugin.value is None or program.run.deepspeed is not None:
        return False
    made = program.first("DeepSpeedPlugin")
    return made is None or made.is_open or argument_of(made, "hf_ds_config") is not None


def _eight_bits(program: Program) -> Optional[Setting]:
    made = list(program.named("fp8_autocast", "convert_to_float8_training"))
    if not made:
        return None
    asked = undecided(program, made)
    if asked is not None:
        return given_by("precision", Unknown(f"it depends on {asked.text}", ("fp8",)), made[0])
    used = [call for call in made if _is_surely_made(program, call)]
    if not used:
        reason = f"whether {made[0].scope} is called was not followed"
        return given_by("precision", Unknown(reason, ("fp8",)), made[0])
    return given_by("precision", "fp8", used[0])


def _is_surely_made(program: Program, call: Call) -> bool:
    """Whether a call stands in the script itself, a model's class or the training loop.

    A function of a collection of tools may be there for others.
    """
    path = call.location.path
    if not call.scope or path == program.run.python[0].path:
        return True
    file = next(file for file in program.run.python if file.path == path)
    outer = call.scope.partition(".")[0]
    return outer in {item.name for item in file.classes} or bool(call.loop and call.loop.trains)


def _of_accelerator(program: Program) -> Optional[Setting]:
    call = program.accelerator()
    argument = argument_of(call, "mixed_precision") if call is not None else None
    if call is None or argument is None or argument.value is None:
        return None
    if not known(argument.value):
        return given_by("precision", argument.value, call, argument)
    value = "fp32" if is_off(argument.value) else dtype(str(argument.value))
    if value == "fp32" and argument.text.startswith(("'", '"')) and _has_half_words(program):
        reason = "the program casts by itself"
        return given_by("precision", Unknown(reason, ("fp32",)), call)
    return given_by("precision", value, call, argument) if value else None


def _has_half_words(program: Program) -> bool:
    return bool(program.words & (set(_HALF_WORDS) - {"precision"}))


def _of_lightning(program: Program) -> Optional[Setting]:
    call = program.lightning()
    found = None if call is None else precision_of(call, program.calls)
    if call is not None and found is not None and found.origin is Origin.DEFAULT:
        # Without a precision of its own the trainer leaves the program's autocast alone.
        return _of_autocast(program) or _of_strategy(program, call) or found
    return found


def _of_strategy(program: Program, trainer: Call) -> Optional[Setting]:
    """What a strategy that is an object says of the precision that its trainer is not told.

    DeepSpeed's own configuration decides; one that is out of sight may name any.
    """
    reason = strategy_with_precision(trainer, program.calls)
    if reason is None or program.silent("deepspeed", "fsdp"):
        return None
    unread = given_by("precision", Unknown(reason), trainer, trainer.keywords["strategy"])
    return _of_deepspeed(program) or unread


def _of_deepspeed(program: Program) -> Optional[Setting]:
    document = program.run.deepspeed
    return practices_from_deepspeed(document).get("precision") if document is not None else None


def _of_autocast(program: Program) -> Optional[Setting]:
    """The type of the ``autocast`` around the training step; what only samples has none to say."""
    found: list[tuple[Call, Setting]] = []
    for call in program.named("autocast"):
        if is_evaluation(call) or _is_generation(call) or _of_a_launcher(call):
            continue  # images or scores in between, no training
        if _only_shows(program, call):
            continue  # images or scores in between, no training
        device = argument_of(call, "device_type", position=0)
        if device is not None and device.value in ("cpu", "mps", "xla"):
            continue
        enabled = _enabled(call)
        if enabled is not None and known(enabled.value) and truth(enabled.value) is False:
            continue
        if not call.name.startswith(_AUTOCASTS):
            reason = f"what {call.name} is was not followed"
            found.append((call, given_by("precision", Unknown(reason), call)))
        elif enabled is not None and not known(enabled.value):
            found.append((call, given_by("precision", enabled.value, call, enabled)))
        else:
            found.append((call, _autocast_type(call)))
    # Operators that must be exact have a float32 of their own within something larger.
    found = [pair for pair in found if pair[1].value != "fp32"] or found
    training = [pair for pair in found if _is_of_training(program, pair[0])]
    if not training and found:
        told = tuple(dict.fromkeys(s.value for _, s in found if s.known))
        reason = f"autocast stands in {found[0][0].scope}, not around the training step"
        return given_by("precision", Unknown(reason, told), found[0][0])
    found = [p for p in found if p in training or not _BESIDE.search(p[0].scope)]
    return _of_casts(found) if found else None


def _of_those(setting: Setting, shards: Optional[Setting]) -> Setting:
    """Of several types by a switch the one that the shards are cast to by the same switch."""
    options = setting.value.candidates if isinstance(setting.value, Unknown) else ()
    return shards if shards is not None and shards.known and shards.value in options else setting


def _of_casts(found: list[tuple[Call, Setting]]) -> Setting:
    """What the casts agree on, unless a switch that nobody can tell makes them."""
    values = dict.fromkeys(setting.value for _, setting in found if setting.known)
    unread = next((setting for _, setting in found if not setting.known), None)
    if unread is not None:
        return unread
    call, setting = found[0]
    if len(values) > 1:
        several = Unknown("several autocasts in the code", tuple(values))
        return dataclasses.replace(setting, value=several)
    asked = [c for c in call.conditions if _OF_PRECISION.search(c.text)]
    if call.block_end is None and not call.is_decorator:
        # A context that is made aside is another one where the condition is not met.
        asked = [c for c in call.conditions if not _OF_DEVICE.search(c.text)]
    if not asked:
        return setting
    either = Unknown(f"it depends on {asked[-1].text}", (*values, "fp32"))
    return dataclasses.replace(setting, value=either)


_OF_DEVICE = re.compile(r"(?i)cpu|cuda|device|gpu|mps|__name__|is_available")
"""Conditions that a training on GPUs answers."""


def _is_generation(call: Call) -> bool:
    """Whether a call stands in a function that makes samples of what was learnt."""
    return _GENERATION.search(call.scope.rpartition(".")[2]) is not None


def _of_a_launcher(call: Call) -> bool:
    """``accelerator.autocast()`` has the type that the Accelerator or Fabric was made with."""
    owner = call.receiver or call.name.rpartition(".")[0]
    return _LAUNCHER.search(owner) is not None


def _only_shows(program: Program, call: Call) -> bool:
    """Whether a cast is made for samples and scores: by what is asked, or what stands in it."""
    if any(c.holds and _SHOWS.search(c.text) for c in call.conditions):
        return True
    inside = [other for other in program.calls if _stands_in(other, call)]
    trains = any(other.method in ("backward", "manual_backward", "step") for other in inside)
    if trains or re.search(r"(?i)train|loss|forward|step", call.scope.rpartition(".")[2]):
        return False
    return any(shows_samples(other.method) for other in inside)


def _stands_in(other: Call, call: Call) -> bool:
    """Whether a call stands in the block that the ``with`` of another one opens."""
    end = call.block_end
    return end is not None and call.location < other.location < end


def _is_of_training(program: Program, call: Call) -> bool:
    """Whether the training step is in a cast, as far as its place tells."""
    if call.is_decorator or (call.loop is not None and call.loop.trains):
        return True
    if _is_of_a_side(program, call):
        return False
    if not call.scope or _TRAINING.search(call.scope.rpartition(".")[2]):
        return True
    return any(c.scope == call.scope for c in program.named("backward", "manual_backward"))


def _is_of_a_side(program: Program, call: Call) -> bool:
    """Whether a cast stands in a module that prepares inputs, or where no gradients are made."""
    if _PREPARES.search(call.scope.rpartition(".")[0]):
        return True
    return any(
        other.block_end is not None and other.location < call.location < other.block_end
        for other in program.named("no_grad", "inference_mode")
    )


_PREPARES = re.compile(r"(?:Conditioner|Tokenizer|Preprocessor|(?:Text|Prompt|Caption)Encoder)$")


def _enabled(call: Call) -> Optional[Argument]:
    """The switch of an autocast or a scaler, by name or place."""
    if call.method != "autocast":
        return argument_of(call, "enabled")
    of_cuda = call.name.startswith("torch.cuda")
    return argument_of(call, "enabled", position=0 if of_cuda else 2)


def _autocast_type(call: Call) -> Setting:
    argument = argument_of(call, "dtype", position=1)
    if argument is None:
        if call.is_open:
            return given_by("precision", Unknown("arguments of autocast are not all known"), call)
        return Setting(
            "precision",
            "fp16",
            call.location,
            Origin.CONSTRUCTOR,
            f"{call.name}: float16 on CUDA unless dtype is given",
        )
    if not known(argument.value):
        return given_by("precision", argument.value, call, argument)
    value = dtype(str(argument.value))
    return given_by("precision", value or Unknown("dtype is not a literal"), call, argument)


def _of_mixed_shards(program: Program) -> Optional[Setting]:
    """FSDP's ``MixedPrecision(param_dtype=...)`` and ``MixedPrecisionPolicy``.

    Of several policies those count that shards are given; where they differ (norms in float32
    beside blocks in bfloat16) nobody can tell without the model.
    """
    found = [
        (call, argument)
        for call in program.named("MixedPrecision", "MixedPrecisionPolicy")
        for argument in (argument_of(call, "param_dtype", position=0),)
        if argument is not None and argument.value is not None
    ]
    given = {
        argument.text
        for call in program.named("fully_shard", "FullyShardedDataParallel", "FSDP")
        for name, argument in call.keywords.items()
        if name in ("mp_policy", "mixed_precision")
    }
    used = [pair for pair in found if pair[0].assigned_to in given] or found
    if not used:
        wraps = program.named("FullyShardedDataParallel", "FSDP", "fully_shard")
        unread = next((call for call in wraps if call.is_open), None)
        reason = "arguments of FSDP are not all known"
        return None if unread is None else given_by("precision", Unknown(reason), unread)
    call, argument = used[0]
    if not known(argument.value):
        return given_by("precision", argument.value, call, argument)
    values = [dtype(str(each.value)) if known(each.value) else None for _, each in used]
    if any(value != values[0] for value in values):
        candidates = tuple(dict.fromkeys(value for value in values if value))
        return given_by("precision", Unknown("shards of several precisions", candidates), call)
    return given_by("precision", values[0], call, argument) if values[0] is not None else None


def _of_apex(program: Program) -> Optional[Setting]:
    """``apex.amp.initialize``: float16 at every level but O0 (O1 unless given)."""
    for call in program.named("initialize"):
        if call.name != "apex.amp.initialize":
            continue
        level = argument_of(call, "opt_level")
        if level is None and call.is_open:
            return given_by("precision", Unknown("the level is not known"), call)
        value = "fp32" if level is not None and level.value == "O0" else "fp16"
        made = given_by("precision", value, call, level)
        asked = [c for c in call.conditions if not _OF_DEVICE.search(c.text)]
        if not asked or not made.known:
            return made
        either = Unknown(f"it depends on {asked[-1].text or 'a branch'}", (value, "fp32"))
        return dataclasses.replace(made, value=either)
    return None
