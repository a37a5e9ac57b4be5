"""Plain PyTorch, Accelerate and Lightning programs: practices read from the code itself.

That a practice is absent is said only when the whole reachable code was searched and has no
word of it; everything less is left unknown.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Optional

from flake8_gpu_training.facts import (
    Argument,
    Call,
    Condition,
    Origin,
    PythonFile,
    Setting,
    Unknown,
    known,
)
from flake8_gpu_training.frameworks import axolotl, megatron, mmengine, verl
from flake8_gpu_training.frameworks.accelerate import practices_of_run
from flake8_gpu_training.frameworks.accumulation import (
    accumulation_by_hand,
    held_back,
    is_update,
    left_open,
    parts_of_a_step,
    told_to_update,
)
from flake8_gpu_training.frameworks.base import Framework, Spelling
from flake8_gpu_training.frameworks.colossalai import practices_of_booster
from flake8_gpu_training.frameworks.deepspeed import practices_from_deepspeed
from flake8_gpu_training.frameworks.frozen import frozen
from flake8_gpu_training.frameworks.hub_models import practices_from_models
from flake8_gpu_training.frameworks.kernels import kernel_of_code
from flake8_gpu_training.frameworks.launched import data_parallel, is_launch_unread, merged
from flake8_gpu_training.frameworks.lightning import precision_of, strategy_of, trainer_of
from flake8_gpu_training.frameworks.reading import (
    dtype,
    find,
    is_off,
    number,
    practice,
    truth,
)
from flake8_gpu_training.runs.model import Run, RunKind
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
_RECOMPUTE_WORDS = (
    "checkpointing",
    "utils.checkpoint",
    "utils import checkpoint",
    "use_checkpoint",
    "recompute",
)
_SHARDING_WORDS = (
    "deepspeed",
    "fsdp",
    "fully_shard",
    "fullysharded",
    "megatron",
    "colossalai",
    "parallelize",
    "parallelism",
    "tensor_parallel",
    "pipeline_parallel",
    "sequence_parallel",
    "context_parallel",
    "ulysses",
)
_WRAPPING_WORDS = ("dataparallel", "accelerat", "lightning", "fabric")
_ACCUMULATION_WORDS = ("accum", "acc_step", "acc_iter", "grad_acc")
_BACKWARD = ("backward", "manual_backward")
# Libraries with a training loop of their own, which a configuration drives.
_ENGINES = frozenset(
    """
    mmengine mmcv mmdet mmseg mmcls mmpretrain mmyolo mmaction mmpose mmdet3d mmocr mmagic
    detectron2 fastai ignite composer catalyst ultralytics nemo fairseq fairseq2 espnet
    espnet2 speechbrain sentence_transformers setfit simpletransformers flair torchtune litgpt
    axolotl unsloth_zoo torchpack ppdet paddle tensorflow keras skorch stable_baselines3
    sb3_contrib ray rl_games skrl tianshou openrlhf allennlp monai detrex
    """.split()  # noqa: SIM905
)
_EVALUATION = re.compile(r"(?i)(?:^|[._])(?:val|valid|validation|test|eval|dev|infer|predict)")
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
_MISSING = "the DeepSpeed configuration was not found"
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


class _Program:
    """The reachable code of a run, and what may be concluded from it."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.calls: list[Call] = [call for file in run.python for call in file.calls]
        mentions = [file.mentions for file in run.python]
        self.words: frozenset[str] = frozenset().union(*(m for m in mentions if m is not None))
        self.is_searched = (
            bool(mentions)
            and all(m is not None for m in mentions)
            and not run.is_open
            and run.handed_over is None
            and run.kind is RunKind.TRAIN
            and not any(file.problems for file in run.python)
            and self._has_loop()
        )

    def _has_loop(self) -> bool:
        """Whether the training loop is in sight, or its owner is one whose defaults are known.

        Where a library has the loop, the silence of the code proves nothing.
        """
        if any(call.method in _BACKWARD for call in self.calls):
            return True
        imported = {i.module.partition(".")[0] for f in self.run.python for i in f.imports}
        return imported.isdisjoint(_ENGINES)

    def silent(self, *words: str) -> bool:
        """Whether the code, all of it searched, has none of ``words``."""
        return self.is_searched and self.words.isdisjoint(words)

    def named(self, *methods: str) -> Iterator[Call]:
        """Calls by the last part of their name."""
        return (call for call in self.calls if call.method in methods)

    def first(self, *methods: str) -> Optional[Call]:
        """The first such call, or None."""
        return next(self.named(*methods), None)

    def lightning(self) -> Optional[Call]:
        """The call of Lightning's ``Trainer`` or ``Fabric``."""
        return trainer_of(self.calls)

    def accelerator(self) -> Optional[Call]:
        """The call of Accelerate's ``Accelerator``."""
        found = self.first("Accelerator")
        return found if found is not None and "accelerate" in found.name else None

    def is_on_cuda(self) -> bool:
        """Whether the code names CUDA, and no accelerator of another kind."""
        return "cuda" in self.words and self.words.isdisjoint(("torch_xla", "torch_npu"))

    def is_launch_open(self) -> bool:
        """Whether a launch that was not seen, or its configuration, may say more."""
        if is_launch_unread(self.run):
            return True
        unseen = self.run.command is None and self.run.accelerate is None
        return unseen and self.accelerator() is not None


def _given(name: str, value: Any, call: Call, argument: Optional[Argument] = None) -> Setting:
    if argument is None:
        return Setting(name, value, call.location, Origin.CONSTRUCTOR, f"{call.name}(...)")
    if not known(argument.value):
        value = argument.value
    return Setting(
        name,
        value,
        argument.location,
        Origin.CONSTRUCTOR,
        f"{call.method}: {argument.written}",
        argument.text,
        argument.value_location if argument.text else None,
    )


def _absent(name: str, value: Any, note: str) -> dict[str, Setting]:
    return {name: Setting(name, value, None, Origin.DERIVED, note)}


def _keyword(call: Call, *names: str, position: int = -1) -> Optional[Argument]:
    for name in names:
        if name in call.keywords:
            return call.keywords[name]
    if 0 <= position < len(call.positional):
        return call.positional[position]
    return None


def _dialect(run: Run) -> Mapping[str, Spelling]:
    """The parameters of Megatron-LM, axolotl and verl, which no framework of ours is."""
    if megatron.is_megatron_lm(run):
        return megatron.SPELLINGS
    if axolotl.is_axolotl(run):
        return axolotl.SPELLINGS
    trainer = verl.trainer_of(run)
    return verl.spellings(trainer) if trainer else {}


def _flag_of(run: Run) -> str:
    if megatron.is_megatron_lm(run):
        return megatron.FLAG
    return verl.FLAG if verl.trainer_of(run) else ""


def _derive(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    found = _of_code(run, spelled)
    trainer = verl.trainer_of(run)
    if megatron.is_megatron_lm(run):
        found.update(megatron.practices(run))
    elif axolotl.is_axolotl(run):
        found.update(axolotl.practices(run))
    elif mmengine.is_mmengine(run):
        found.update(mmengine.practices(run))
    # What a flag of the program says is no guess from its code.
    found = {n: s for n, s in found.items() if n not in spelled or s.known or not spelled[n].known}
    if trainer:
        found.update(verl.practices(run, trainer))
    return found


def _of_code(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    if run.kind is not RunKind.TRAIN:
        return {}
    program = _Program(run)
    launched = practices_of_run(run)
    found: dict[str, Setting] = dict(launched)
    models = practices_from_models(run)
    weights = models.pop("weights", None)
    found.update(models)
    found.update(_sharding(program, launched))
    found.update(_precision(program, launched, found, weights))
    found.update(_recompute(program, found))
    found.update(_compile(program, launched))
    kernel = kernel_of_code(run, found.get("attention"))
    if kernel is not None:
        found["attention"] = kernel
    found.update(_tf32(program))
    found.update(_batching(program))
    found.update(loading(run))
    found.update(_shared_out(program, found))
    found.update(_optimizing(program, found))
    found.update(_scheduling(program, found))
    found.update(_adapters(program, found))
    for name, setting in _parallelism(program).items():
        found.setdefault(name, setting)
    found.update(_wrapping(program, found))
    found.update(_reading(program))
    found.update(practices_of_booster(run, program.calls))
    return found


# --- precision ----------------------------------------------------------------------------


def _precision(
    program: _Program,
    launched: Mapping[str, Setting],
    found: Mapping[str, Setting],
    weights: Optional[Setting],
) -> dict[str, Setting]:
    missing = _missing_deepspeed(program)
    if missing is not None:
        return {"precision": _given("precision", Unknown(_MISSING), missing)}
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
    other = _of_another_type(program)
    if other is not None:
        reason = f"{other.name} may set another type"
        return {"precision": _given("precision", Unknown(reason), other)}
    if program.silent(*_half_words(program)) and program.is_on_cuda():
        cast = program.first("autocast")
        off = _enabled(cast) if cast is not None else None
        if cast is not None and off is not None:
            note = f"{cast.location}: autocast(enabled={off.text or off.value}) is off"
            return _absent("precision", "fp32", note)
        return _absent("precision", "fp32", "no autocast, scaler or 16-bit type in use")
    accelerator = program.accelerator()
    if accelerator is not None and _is_plain(program, accelerator, "mixed_precision"):
        note = "accelerate: Accelerator(mixed_precision=None) is no"
        return _absent("precision", "fp32", note)
    return {}


_FLOAT = re.compile(r"float32|(?:cuda|torch)\.Float|float\b")


def _of_another_type(program: _Program) -> Optional[Call]:
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


def _half_words(program: _Program) -> tuple[str, ...]:
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


def _is_plain(program: _Program, call: Call, keyword: str) -> bool:
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


def _is_unread_engine(program: _Program, call: Call) -> bool:
    """Whether a DeepSpeed configuration that was not read may decide the precision."""
    plugin = _keyword(call, "deepspeed_plugin")
    if plugin is None or plugin.value is None or program.run.deepspeed is not None:
        return False
    made = program.first("DeepSpeedPlugin")
    return made is None or made.is_open or _keyword(made, "hf_ds_config") is not None


def _eight_bits(program: _Program) -> Optional[Setting]:
    made = list(program.named("fp8_autocast", "convert_to_float8_training"))
    if not made:
        return None
    asked = _undecided(program, made)
    if asked is not None:
        return _given("precision", Unknown(f"it depends on {asked.text}", ("fp8",)), made[0])
    used = [call for call in made if _is_surely_made(program, call)]
    if not used:
        reason = f"whether {made[0].scope} is called was not followed"
        return _given("precision", Unknown(reason, ("fp8",)), made[0])
    return _given("precision", "fp8", used[0])


def _is_surely_made(program: _Program, call: Call) -> bool:
    """Whether a call stands in the script itself, a model's class or the training loop.

    A function of a collection of tools may be there for others.
    """
    path = call.location.path
    if not call.scope or path == program.run.python[0].path:
        return True
    file = next(file for file in program.run.python if file.path == path)
    outer = call.scope.partition(".")[0]
    return outer in {item.name for item in file.classes} or bool(call.loop and call.loop.trains)


def _of_accelerator(program: _Program) -> Optional[Setting]:
    call = program.accelerator()
    argument = _keyword(call, "mixed_precision") if call is not None else None
    if call is None or argument is None or argument.value is None:
        return None
    if not known(argument.value):
        return _given("precision", argument.value, call, argument)
    value = "fp32" if is_off(argument.value) else dtype(str(argument.value))
    if value == "fp32" and argument.text.startswith(("'", '"')) and _has_half_words(program):
        reason = "the program casts by itself"
        return _given("precision", Unknown(reason, ("fp32",)), call)
    return _given("precision", value, call, argument) if value else None


def _has_half_words(program: _Program) -> bool:
    return bool(program.words & (set(_HALF_WORDS) - {"precision"}))


def _of_lightning(program: _Program) -> Optional[Setting]:
    call = program.lightning()
    found = None if call is None else precision_of(call, program.calls)
    if found is not None and found.origin is Origin.DEFAULT:
        # Without a precision of its own the trainer leaves the program's autocast alone.
        return _of_autocast(program) or found
    return found


def _of_deepspeed(program: _Program) -> Optional[Setting]:
    document = program.run.deepspeed
    return practices_from_deepspeed(document).get("precision") if document is not None else None


def _missing_deepspeed(program: _Program) -> Optional[Call]:
    """``deepspeed.initialize`` with a configuration that was not read: it would decide."""
    if program.run.deepspeed is not None:
        return None
    made = (c for c in program.named("initialize") if c.name.startswith("deepspeed"))
    return next(made, None)


def _of_autocast(program: _Program) -> Optional[Setting]:
    """The type of the ``autocast`` around the training step; what only samples has none to say."""
    found: list[tuple[Call, Setting]] = []
    for call in program.named("autocast"):
        if _is_evaluation(call) or _is_generation(call) or _of_a_launcher(call):
            continue  # images or scores in between, no training
        if _only_shows(program, call):
            continue  # images or scores in between, no training
        device = _keyword(call, "device_type", position=0)
        if device is not None and device.value in ("cpu", "mps", "xla"):
            continue
        enabled = _enabled(call)
        if enabled is not None and known(enabled.value) and truth(enabled.value) is False:
            continue
        if not call.name.startswith(_AUTOCASTS):
            reason = f"what {call.name} is was not followed"
            found.append((call, _given("precision", Unknown(reason), call)))
        elif enabled is not None and not known(enabled.value):
            found.append((call, _given("precision", enabled.value, call, enabled)))
        else:
            found.append((call, _autocast_type(call)))
    # Operators that must be exact have a float32 of their own within something larger.
    found = [pair for pair in found if pair[1].value != "fp32"] or found
    training = [pair for pair in found if _is_of_training(program, pair[0])]
    if not training and found:
        told = tuple(dict.fromkeys(s.value for _, s in found if s.known))
        reason = f"autocast stands in {found[0][0].scope}, not around the training step"
        return _given("precision", Unknown(reason, told), found[0][0])
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


def _only_shows(program: _Program, call: Call) -> bool:
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


def _is_of_training(program: _Program, call: Call) -> bool:
    """Whether the training step is in a cast, as far as its place tells."""
    if call.is_decorator or (call.loop is not None and call.loop.trains):
        return True
    if not call.scope or _TRAINING.search(call.scope.rpartition(".")[2]):
        return True
    return any(c.scope == call.scope for c in program.named("backward", "manual_backward"))


def _enabled(call: Call) -> Optional[Argument]:
    """The switch of an autocast or a scaler, by name or place."""
    if call.method != "autocast":
        return _keyword(call, "enabled")
    of_cuda = call.name.startswith("torch.cuda")
    return _keyword(call, "enabled", position=0 if of_cuda else 2)


def _autocast_type(call: Call) -> Setting:
    argument = _keyword(call, "dtype", position=1)
    if argument is None:
        if call.is_open:
            return _given("precision", Unknown("arguments of autocast are not all known"), call)
        return Setting(
            "precision",
            "fp16",
            call.location,
            Origin.CONSTRUCTOR,
            f"{call.name}: float16 on CUDA unless dtype is given",
        )
    if not known(argument.value):
        return _given("precision", argument.value, call, argument)
    value = dtype(str(argument.value))
    return _given("precision", value or Unknown("dtype is not a literal"), call, argument)


def _of_mixed_shards(program: _Program) -> Optional[Setting]:
    """FSDP's ``MixedPrecision(param_dtype=...)`` and ``MixedPrecisionPolicy``.

    Of several policies those count that shards are given; where they differ (norms in float32
    beside blocks in bfloat16) nobody can tell without the model.
    """
    found = [
        (call, argument)
        for call in program.named("MixedPrecision", "MixedPrecisionPolicy")
        for argument in (_keyword(call, "param_dtype", position=0),)
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
        return None if unread is None else _given("precision", Unknown(reason), unread)
    call, argument = used[0]
    if not known(argument.value):
        return _given("precision", argument.value, call, argument)
    values = [dtype(str(each.value)) if known(each.value) else None for _, each in used]
    if any(value != values[0] for value in values):
        candidates = tuple(dict.fromkeys(value for value in values if value))
        return _given("precision", Unknown("shards of several precisions", candidates), call)
    return _given("precision", values[0], call, argument) if values[0] is not None else None


def _of_apex(program: _Program) -> Optional[Setting]:
    """``apex.amp.initialize``: float16 at every level but O0 (O1 unless given)."""
    for call in program.named("initialize"):
        if call.name != "apex.amp.initialize":
            continue
        level = _keyword(call, "opt_level")
        if level is None and call.is_open:
            return _given("precision", Unknown("the level is not known"), call)
        value = "fp32" if level is not None and level.value == "O0" else "fp16"
        return _given("precision", value, call, level)
    return None


# --- memory and compute -------------------------------------------------------------------


def _switched(
    program: _Program, name: str, call: Call, parameters: Iterable[str]
) -> dict[str, Setting]:
    """``name`` is on by a call, unless a switch of the program's own says whether it is made."""
    setting = find(program.run, *parameters)
    if setting is None:
        return {name: _given(name, True, call)}
    if not known(setting.value):
        return {name: practice(name, setting.value, setting)}
    value = truth(setting.value)
    return {name: practice(name, value, setting)} if value is not None else {}


def _recompute(program: _Program, found: Mapping[str, Setting]) -> dict[str, Setting]:
    result: dict[str, Setting] = {}
    call = program.first(
        "gradient_checkpointing_enable",
        "activation_checkpointing_enable",
        "enable_gradient_checkpointing",
        "apply_activation_checkpointing",
        "checkpoint_wrapper",
        "checkpoint_sequential",
    )
    if call is None:
        call = next(
            (c for c in program.named("checkpoint") if c.name.startswith("torch.utils")), None
        )
    prepared = program.first("prepare_model_for_kbit_training")
    if call is None and prepared is not None and not prepared.is_open:
        told = _keyword(prepared, "use_gradient_checkpointing", position=1)
        value = True if told is None else told.value  # on unless told (peft/utils/other.py)
        name = "gradient_checkpointing"
        return {name: _given(name, value, prepared, told)}
    if call is not None:
        result.update(
            _switched(
                program,
                "gradient_checkpointing",
                call,
                (
                    "gradient_checkpointing",
                    "activation_checkpointing",
                    "grad_checkpointing",
                    "enable_gradient_checkpointing",
                    "use_gradient_checkpointing",
                    "use_checkpoint",
                ),
            )
        )
        reentrant = _keyword(call, "use_reentrant")
        if reentrant is not None:
            result["reentrant_checkpointing"] = _given(
                "reentrant_checkpointing", reentrant.value, call, reentrant
            )
    elif "gradient_checkpointing" not in found and program.silent(*_RECOMPUTE_WORDS):
        note = "no activation checkpointing in the code"
        result.update(_absent("gradient_checkpointing", False, note))
    return result


def _compile(program: _Program, launched: Mapping[str, Setting]) -> dict[str, Setting]:
    for call in program.named("compile"):
        if call.name == "torch.compile" or call.receiver.startswith("torch.nn"):
            return _switched(
                program,
                "torch_compile",
                call,
                ("torch_compile", "compile", "use_compile", "compile_model", "use_torch_compile"),
            )
    made = program.accelerator()
    backend = _keyword(made, "dynamo_backend") if made is not None else None
    if made is not None and backend is not None and backend.value is not None:
        value = not is_off(backend.value) if known(backend.value) else backend.value
        return {"torch_compile": _given("torch_compile", value, made, backend)}
    if "torch_compile" in launched or program.is_launch_open():
        return {}
    if program.silent(".compile", "compile_model", "torch_compile"):
        return _absent("torch_compile", False, "no torch.compile in the code")
    return {}


def _tf32(program: _Program) -> dict[str, Setting]:
    for file in program.run.python:
        for setting in file.attributes:
            if setting.name == "torch.backends.cuda.matmul.allow_tf32":
                return {"tf32": practice("tf32", setting.value, setting)}
            if setting.name == "torch.backends.cuda.matmul.fp32_precision":
                return {"tf32": practice("tf32", setting.value == "tf32", setting)}
    for call in program.named("set_float32_matmul_precision"):
        argument = _keyword(call, "precision", position=0)
        if argument is not None:
            value = argument.value in ("high", "medium") if known(argument.value) else None
            return {"tf32": _given("tf32", value, call, argument)}
    if program.silent("tf32", "matmul_precision"):
        note = "PyTorch 1.12 and later: float32 products do not use TF32 unless told"
        return _absent("tf32", False, note)
    return {}


# --- data ---------------------------------------------------------------------------------


def training_loaders(run: Run) -> list[Call]:
    """``DataLoader`` calls whose batches the model is trained on, as far as names tell."""
    calls = [call for file in run.python for call in file.calls]
    loaders = [
        call
        for call in calls
        if call.method in ("DataLoader", "StatefulDataLoader") and not _is_evaluation(call)
    ]
    trained = {
        loop.iterable for file in run.python for loop in file.loops if loop.trains and loop.iterable
    }
    chosen = [call for call in loaders if call.assigned_to and call.assigned_to in trained]
    return chosen or loaders


def _batching(program: _Program) -> dict[str, Setting]:
    """The batch size of a script that makes its batches itself, without a ``DataLoader``.

    A bare ``batch_size`` may be that of all ranks together, unless gradient accumulation is
    set beside it.
    """
    names = ["micro_batch_size", "device_batch_size", "batch_size_per_gpu", "batch_size_per_device"]
    if find(program.run, "gradient_accumulation_steps") is not None:
        names.append("batch_size")
    setting = find(program.run, *names)
    if setting is None or number(setting.value) is None or list(program.named("DataLoader")):
        return {}
    return {"micro_batch_size": practice("micro_batch_size", setting.value, setting)}


_DEALERS = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel")


def _shared_out(program: _Program, found: Mapping[str, Setting]) -> dict[str, Setting]:
    """A loader's batch is not a GPU's: ``nn.DataParallel`` deals it out, a step cuts it up."""
    name = "micro_batch_size"
    batch = found.get(name)
    if batch is None or not batch.known:
        return {}
    if parts_of_a_step(program.run) is not None:
        reason = f"a step takes {batch.value} samples in parts"
    elif any(call.name.startswith("grad_cache.") for call in program.named("GradCache")):
        reason = f"GradCache takes {batch.value} samples in chunks"
    elif (other := _product(program, batch)) is not None:
        reason = f"{other} samples may be for several GPUs or steps"
    elif any(_goes_through_batch(file) for file in program.run.python):
        reason = f"the loop goes through the {batch.value} samples in parts"
    elif _deals_out(program):
        reason = f"nn.DataParallel deals {batch.value} samples out to its GPUs"
    elif _splits_batches(program):
        reason = f"Accelerate splits {batch.value} samples among the processes"
    else:
        return {}
    return {name: dataclasses.replace(batch, value=Unknown(reason))}


_FACTORS = re.compile(r"[A-Za-z_][\w.()]*\s*\*\s*[A-Za-z_]")


def _product(program: _Program, batch: Setting) -> Optional[str]:
    """The text of a batch that is a size times something that is not a plain number."""
    for call in training_loaders(program.run):
        size = _keyword(call, "batch_size", position=1)
        if size is not None and size.location == batch.location and _FACTORS.search(size.text):
            return size.text
    return None


def _goes_through_batch(file: PythonFile) -> bool:
    """Whether a loop trains on the parts of what the loop over the batches gives."""
    for loop in file.loops:
        around = loop.parent
        if not loop.trains or around is None or not around.over_batches:
            continue
        names = re.findall(r"[A-Za-z_]\w*", around.target)
        if set(names[-1:]) & set(re.findall(r"[A-Za-z_]\w*", loop.iterable)):
            return True
    return False


def _deals_out(program: _Program) -> bool:
    """Whether ``nn.DataParallel`` copies the model of the only process to several GPUs."""
    classes = {
        item.name
        for file in program.run.python
        for item in file.classes
        for base in item.bases
        if base in _DEALERS or base in ("nn.DataParallel", "DataParallel")
    }
    wrapped = any(
        (call.name in _DEALERS or call.method in classes)
        and not _EVALUATION.search(call.assigned_to)
        for call in program.calls
    )
    many = program.run.launcher.world_size
    return wrapped and many in (None, 1) and program.run.hardware.gpus_per_node != 1


def _splits_batches(program: _Program) -> bool:
    """Whether ``split_batches`` makes the loader's batch that of all processes together."""
    if program.run.launcher.world_size == 1:
        return False
    for call in program.named("Accelerator", "DataLoaderConfiguration"):
        splits = _keyword(call, "split_batches")
        if splits is not None and (not known(splits.value) or truth(splits.value)):
            return True
    return False


def _is_evaluation(call: Call) -> bool:
    names = (call.assigned_to, call.scope.rpartition(".")[2])
    return any(name and _EVALUATION.search(name) is not None for name in names)


def loading(run: Run) -> dict[str, Setting]:
    """What the training ``DataLoader`` calls in the run's code say; nothing without any."""
    loaders = training_loaders(run)
    if not loaders:
        return {}
    found: dict[str, Setting] = {}
    for name, keyword, position, default in (
        ("dataloader_workers", "num_workers", 5, 0),
        ("pin_memory", "pin_memory", 7, False),
        ("persistent_workers", "persistent_workers", -1, False),
    ):
        settings = [_loader_setting(name, keyword, position, default, c) for c in loaders]
        setting = _same(name, settings)
        if setting is not None:
            found[name] = setting
    found.update(_prefetch(loaders, found.get("dataloader_workers")))
    sizes = [_size_of(run, call) for call in loaders]
    if len(loaders) == 1 and sizes[0] is not None and _is_size(sizes[0].value):
        size = sizes[0]
        if size.text.strip() == "1" and _may_be_batches(run, loaders[0]):
            reason = "its items may be batches of their own"
            size = dataclasses.replace(size, value=Unknown(reason, (1,)))
        found["micro_batch_size"] = _given("micro_batch_size", size.value, loaders[0], size)
    return found


_OF_BATCHES = re.compile(r"(?i)batch|bucket|chunk|episod|n_?way|pack|group|tokens|task|bag")


def _may_be_batches(run: Run, loader: Call) -> bool:
    """Whether a loader that takes one item each time may take ready-made batches."""
    dataset = _keyword(loader, "dataset", position=0)
    if "collate_fn" in loader.keywords or dataset is None:
        return True
    texts = [dataset.text]
    for call in (call for file in run.python for call in file.calls):
        if call.assigned_to and call.assigned_to == dataset.text:
            texts += [call.name, *call.keywords, *(a.text for a in call.positional)]
            texts += [argument.text for argument in call.keywords.values()]
    return any(_OF_BATCHES.search(text) for text in texts)


def _size_of(run: Run, loader: Call) -> Optional[Argument]:
    """The batch size a loader is given, or PyTorch's ``BatchSampler`` that it is given.

    Any other batch sampler makes batches of its own.
    """
    sampler = _keyword(loader, "batch_sampler", position=4)
    if sampler is None:
        return _keyword(loader, "batch_size", position=1)
    made = [
        call
        for file in run.python
        for call in file.calls
        if call.method == "BatchSampler"
        and call.name.startswith("torch.")
        and (call.assigned_to, call.scope) == (sampler.text, loader.scope)
    ]
    return _keyword(made[0], "batch_size", position=1) if len(made) == 1 else None


def _is_size(value: Any) -> bool:
    """Whether a value is a number, or one of several by a branch."""
    return bool(value.candidates) if isinstance(value, Unknown) else number(value) is not None


def _prefetch(loaders: list[Call], workers: Optional[Setting]) -> dict[str, Setting]:
    count = number(workers.value) if workers is not None else None
    default = None if count is None else (2 if count > 0 else None)
    settings = [
        _loader_setting("prefetch_factor", "prefetch_factor", -1, default, call) for call in loaders
    ]
    setting = _same("prefetch_factor", settings)
    if setting is None or (count is None and not setting.explicit):
        return {}
    return {"prefetch_factor": setting}


def _loader_setting(name: str, keyword: str, position: int, default: Any, call: Call) -> Setting:
    argument = _keyword(call, keyword, position=position)
    if argument is not None:
        return _given(name, argument.value, call, argument)
    if call.is_open:
        reason = "arguments of the DataLoader are not all known"
        return Setting(name, Unknown(reason), call.location, Origin.CONSTRUCTOR)
    note = f"{call.method} at {call.location}: {keyword} {default} unless set"
    return Setting(name, default, None, Origin.DEFAULT, note)


def _same(name: str, settings: list[Setting]) -> Optional[Setting]:
    """The setting on which all agree; the first unknown one; else unknown."""
    for setting in settings:
        if not known(setting.value):
            return setting
    if len({repr(setting.value) for setting in settings}) == 1:
        return settings[0]
    candidates = tuple(setting.value for setting in settings)
    return Setting(name, Unknown("loaders differ", candidates), settings[0].location)


def _reading(program: _Program) -> dict[str, Setting]:
    loads = [c for c in program.named("load_dataset") if c.name.startswith("datasets.")]
    if not loads:
        return {}
    settings = []
    for call in loads:
        argument = _keyword(call, "streaming")
        if argument is not None:
            settings.append(_given("streaming", argument.value, call, argument))
        elif call.is_open:
            return {}
        else:
            note = "datasets: load_dataset(streaming=False)"
            settings.append(Setting("streaming", False, None, Origin.DEFAULT, note))
    setting = _same("streaming", settings)
    return {"streaming": setting} if setting is not None else {}


# --- optimization -------------------------------------------------------------------------


def _optimizing(program: _Program, found: Mapping[str, Setting]) -> dict[str, Setting]:
    result: dict[str, Setting] = {}
    made = [call for call in program.calls if _is_optimizer(call)]
    if made:
        names = {_optimizer_name(call) for call in made}
        if len(names) == 1:
            result["optimizer"] = _given("optimizer", names.pop(), made[0])
        else:
            reason = "several optimizers in the code"
            unread = Unknown(reason, tuple(sorted(names)))
            result["optimizer"] = _given("optimizer", unread, made[0])
    result.update(_accumulation(program, found))
    result.update(_clipping(program, found))
    return result


def _is_optimizer(call: Call) -> bool:
    last = call.method
    if not last[:1].isupper() or last.endswith(("Config", "Arguments", "Scheduler", "LR")):
        return False
    if call.name.startswith("torch.optim."):
        return "lr_scheduler" not in call.name and "swa_utils" not in call.name
    is_named = "Adam" in last or last in ("Adafactor", "Lion", "SGD", "Muon", "CAME", "Lamb")
    return is_named and call.name.startswith(_OPTIMIZER_ROOTS)


def _optimizes(program: _Program) -> bool:
    """Whether an optimizer is made in sight: what it is given is read, too."""
    return any(
        _is_optimizer(call) or _MAKES_OPTIMIZER.search(call.method) for call in program.calls
    )


_MAKES_OPTIMIZER = re.compile(r"(?i)optimizer|^initialize$|optim\w*_c(?:ls|lass)$")


def _optimizer_name(call: Call) -> str:
    name = call.method.lower()
    fused = call.keywords.get("fused")
    if call.name.startswith("torch.optim.") and fused is not None and truth(fused.value):
        return f"{name}_fused"
    return name


def _accumulation(program: _Program, found: Mapping[str, Setting]) -> dict[str, Setting]:
    name = "gradient_accumulation_steps"
    if name in found:  # DeepSpeed's own, whatever Accelerate is told
        return {}
    missing = _missing_deepspeed(program)
    if missing is not None:
        return {name: _given(name, Unknown(_MISSING), missing)}
    for call, keyword in (
        (program.accelerator(), "gradient_accumulation_steps"),
        (program.lightning(), "accumulate_grad_batches"),
    ):
        argument = _keyword(call, keyword) if call is not None else None
        if call is not None and argument is not None:
            value = argument.value
            if isinstance(value, dict):
                value = Unknown("it changes with the epochs", tuple(value.values()))
                argument = dataclasses.replace(argument, value=value)
            made = _given(name, value, call, argument)
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
        return _absent(name, 1, "no gradient accumulation in the code")
    return _accumulated_by_accelerate(program, found)


def _agreed(told: Setting, by_hand: Optional[Setting]) -> Setting:
    """What an option says, unless the loop counts to another number by itself."""
    if by_hand is None or not by_hand.known or not told.known or by_hand.value == told.value:
        return told
    both = Unknown("the loop counts by itself", (told.value, by_hand.value))
    return dataclasses.replace(told, value=both)


def _updates_each_time(program: _Program, told: Setting) -> bool:
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
    program: _Program, found: Mapping[str, Setting]
) -> dict[str, Setting]:
    """``accelerator.accumulate(model)`` of an Accelerator that is told of no accumulation."""
    made = program.accelerator()
    stage = found.get("zero_stage")
    if made is None or made.is_open or program.first("accumulate") is None:
        return {}
    if program.run.is_open or program.is_launch_open() or stage is None or stage.value != 0:
        return {}
    if _keyword(made, "gradient_accumulation_plugin") is not None:
        return {}
    note = "accelerate 1.15 accelerator.py: gradient_accumulation_steps 1 unless set"
    return _absent("gradient_accumulation_steps", 1, note)


def _clipping(program: _Program, found: Mapping[str, Setting]) -> dict[str, Setting]:
    for call in program.named("clip_grad_norm_"):
        argument = _keyword(call, "max_norm", position=0 if len(call.positional) == 1 else 1)
        if argument is not None:
            return {"max_grad_norm": _given("max_grad_norm", argument.value, call, argument)}
    trainer = program.lightning()
    argument = _keyword(trainer, "gradient_clip_val") if trainer is not None else None
    if trainer is not None and argument is not None:
        return {"max_grad_norm": _given("max_grad_norm", argument.value, trainer, argument)}
    if "max_grad_norm" not in found and program.silent(
        "clip_grad", "clip_val", "gradient_clip", "deepspeed"
    ):
        return _absent("max_grad_norm", 0, "no gradient clipping in the code")
    return {}


def _scheduling(program: _Program, found: Mapping[str, Setting]) -> dict[str, Setting]:
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
            result.update(_absent("lr_scheduler", "constant", "no schedule in the code"))
            result.update(_absent("warmup", 0, "no warm-up in the code"))
        return result
    call = made[0]
    argument = _keyword(call, "name", position=0) if call.method == "get_scheduler" else None
    if call.method == "get_scheduler" and argument is not None:
        result["lr_scheduler"] = _given("lr_scheduler", argument.value, call, argument)
    elif len({c.method for c in made}) == 1:
        result["lr_scheduler"] = _given("lr_scheduler", call.method.lower(), call)
    for call in made:
        steps = _keyword(call, "num_warmup_steps")
        if steps is not None:
            result["warmup"] = _given("warmup", steps.value, call, steps)
    return result


def _adapters(program: _Program, found: Mapping[str, Setting]) -> dict[str, Setting]:
    result: dict[str, Setting] = {}
    if "tuning" not in found and program.silent("lora", "peft", "adapter", "unsloth"):
        left_open = frozen(program.run)
        if left_open is not None:
            result["tuning"] = left_open
        elif _optimizes(program) and "made by name" not in program.words:
            result.update(_absent("tuning", "full", "no adapters in the code"))
    if program.silent("unsloth"):
        result.update(_absent("unsloth", False, "unsloth is not in the code"))
    if "liger_kernel" not in found and program.silent("liger"):
        result.update(_absent("liger_kernel", False, "no Liger kernel in the code"))
    if "quantization_method" not in found and program.silent("quant", "bitsandbytes"):
        result.update(_absent("quantization_method", "none", "no quantization in the code"))
        result.update(_absent("quantization_bits", None, "no quantization in the code"))
    if "device_map" not in found and program.silent("device_map"):
        result.update(_absent("device_map", "none", "no device_map in the code"))
    return result


# --- distribution -------------------------------------------------------------------------


def _sharding(program: _Program, launched: Mapping[str, Setting]) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    found.update(_strategy_of_lightning(program))
    found.update(_zero(program, launched, found))
    found.update(_fsdp(program, launched, found))
    return found


def _strategy_of_lightning(program: _Program) -> dict[str, Setting]:
    call = program.lightning()
    return {} if call is None else strategy_of(program.run, call, program.calls)


def _zero(
    program: _Program, launched: Mapping[str, Setting], found: Mapping[str, Setting]
) -> dict[str, Setting]:
    run = program.run
    if run.deepspeed is not None:
        read = practices_from_deepspeed(run.deepspeed)
        return {name: value for name, value in read.items() if name != "precision"}
    if "zero_stage" in found or "zero_stage" in launched:
        return {}
    plugin = program.first("DeepSpeedPlugin")
    if plugin is not None and not plugin.is_open and _keyword(plugin, "hf_ds_config") is None:
        note = "accelerate 1.15 utils/dataclasses.py: zero_stage 2 unless set"
        return {"zero_stage": Setting("zero_stage", 2, plugin.location, Origin.DERIVED, note)}
    if program.first("initialize") is not None and "deepspeed" in program.words:
        for call in program.named("initialize"):
            if call.name.startswith("deepspeed"):
                return {"zero_stage": _given("zero_stage", Unknown(_MISSING), call)}
    by_hand = _collective(program)
    is_alone = run.launcher.world_size == 1
    if by_hand is not None and by_hand.method.startswith("reduce_scatter") and not is_alone:
        reason = f"the program may shard by {by_hand.method}"
        return {"zero_stage": _given("zero_stage", Unknown(reason), by_hand)}
    if program.silent("deepspeed") and not program.is_launch_open():
        return _absent("zero_stage", 0, "no DeepSpeed in the code or its launch")
    return {}


def _fsdp(
    program: _Program, launched: Mapping[str, Setting], found: Mapping[str, Setting]
) -> dict[str, Setting]:
    if "fsdp" in found or "fsdp" in launched:
        return {}
    first = list(program.named("FullyShardedDataParallel"))
    made = first or list(program.named("fully_shard"))
    if made:
        return _wrapped_fsdp(program, made, not first)
    words = ("fsdp", "fully_shard", "fullysharded")
    if program.silent(*words) and not program.is_launch_open():
        return _absent("fsdp", "none", "no FSDP in the code or its launch")
    return {}


def _wrapped_fsdp(program: _Program, made: list[Call], is_second: bool) -> dict[str, Setting]:
    call = made[0]
    if program.first("DistributedDataParallel") is not None:
        both = Unknown("the code has both DDP and FSDP")
        return {"fsdp": _given("fsdp", both, call), "ddp": _given("ddp", both, call)}
    found = {"fsdp_version": _given("fsdp_version", 2 if is_second else 1, call)}
    asked = _undecided(program, made)
    if asked is not None:
        reason = f"it depends on {asked.text or 'a branch'}"
        found["fsdp"] = _given("fsdp", Unknown(reason, ("none", "full_shard")), call)
        return found
    if is_second:
        found["fsdp"] = _resharded(program, made)
        offload = _keyword(call, "offload_policy")
    else:
        strategy = _keyword(call, "sharding_strategy", position=2)
        if strategy is None:
            unread = Unknown("arguments are not all known")
            found["fsdp"] = _given("fsdp", unread if call.is_open else "full_shard", call)
        else:
            value: Any = Unknown("the strategy is not a literal")
            if isinstance(strategy.value, str):
                value = strategy.value.rpartition(".")[2].lower().replace("_zero2", "")
                value = value.lstrip("_")
            found["fsdp"] = _given("fsdp", value, call, strategy)
        offload = _keyword(call, "cpu_offload", position=3)
        prefetch = _keyword(call, "backward_prefetch", position=5)
        if prefetch is not None and prefetch.value is None:
            found["overlap_comm"] = _given("overlap_comm", False, call, prefetch)
    if offload is None and not call.is_open:
        found["fsdp_offload"] = _given("fsdp_offload", False, call)
    elif offload is not None:
        found["fsdp_offload"] = _offloads(call, offload)
    return found


_ON_SEVERAL = re.compile(
    r"(?i)distributed|world_?size|is_initialized|n_?gpus?\b|num_gpus|device_count|\brank"
    r"|\b(?:use_|is_|with_)?(?:ddp|dist_train|is_dist|multi_gpus?)\b"
)


def _undecided(program: _Program, made: list[Call]) -> Optional[Condition]:
    """What is asked before any of these calls, when nobody can tell the answer.

    Several ranks answer the questions whether there are several.
    """
    several = (program.run.launcher.world_size or 0) > 1
    left = [
        [c for c in call.conditions if not (several and c.holds and _ON_SEVERAL.search(c.text))]
        for call in made
    ]
    return left[0][-1] if all(left) else None


def _resharded(program: _Program, made: list[Call]) -> Setting:
    """FSDP2: what the calls for the blocks say of resharding, and what they shard over."""
    blocks = [call for call in made if call.loop is not None] or made
    arguments = [(call, _keyword(call, "reshard_after_forward")) for call in blocks]
    values = [a.value if a is not None else None for _, a in arguments]
    call, argument = next(((c, a) for c, a in arguments if a is not None), arguments[0])
    candidates = ("full_shard", "shard_grad_op")
    if any(one.is_open for one in blocks) and argument is None:
        return _given("fsdp", Unknown("arguments are not all known", candidates), call)
    kept = [value is False for value in values if known(value)]
    if len(kept) < len(values) or any(one != kept[0] for one in kept):
        asked = argument.text if argument is not None else ""
        return _given("fsdp", Unknown(f"it depends on {asked or 'a branch'}", candidates), call)
    if not _is_one_dimension(program, call):
        over = ("full_shard", "hybrid_shard")
        return _given("fsdp", Unknown("the mesh may have a dimension of replicas", over), call)
    return _given("fsdp", "shard_grad_op" if kept[0] else "full_shard", call)


def _is_one_dimension(program: _Program, call: Call) -> bool:
    """Whether FSDP2 shards over all ranks: without a mesh, or with a mesh of one dimension."""
    mesh = _keyword(call, "mesh")
    if mesh is None or mesh.value is None:
        return True
    shapes = [_keyword(c, "mesh_shape", position=1) for c in program.named("init_device_mesh")]
    texts = [re.sub(r"\s|\w\(.*?\)", "", shape.text) for shape in shapes if shape is not None]
    return bool(texts) and all("," not in text.strip("()[],") for text in texts)


def _offloads(call: Call, argument: Argument) -> Setting:
    if argument.value is None:
        return _given("fsdp_offload", False, call, argument)
    text = argument.text.replace(" ", "")
    is_on = "offload_params=True" in text or text.startswith("CPUOffloadPolicy")
    value = True if is_on else Unknown("offloading is not a literal")
    return Setting("fsdp_offload", value, argument.location, Origin.CONSTRUCTOR, argument.text)


def _parallelism(program: _Program) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    if not program.silent("megatron", "colossalai", "parallelize", "parallelism"):
        return found
    for name, words in (
        ("tensor_parallel", ("tensor_parallel",)),
        ("pipeline_parallel", ("pipeline_parallel",)),
        ("sequence_parallel", ("sequence_parallel", "context_parallel", "ulysses")),
    ):
        if program.silent(*words):
            found.update(_absent(name, 1, f"no {name.replace('_', ' ')} in the code"))
    if program.silent(*_SHARDING_WORDS):
        found.update(_absent("megatron", False, "no Megatron in the code"))
    return found


def _wrapping(program: _Program, found: Mapping[str, Setting]) -> dict[str, Setting]:
    result: dict[str, Setting] = {}
    by_hand = _collective(program)
    wrapper = program.first("DistributedDataParallel")
    if wrapper is not None and "ddp" not in found:
        single = program.run.launcher.world_size == 1
        asked = _undecided(program, list(program.named("DistributedDataParallel")))
        value: Any = not single
        if asked is not None and not single:
            value = Unknown(f"it depends on {asked.text or 'a branch'}", (True, False))
        result["ddp"] = _given("ddp", value, wrapper)
        overlap = _keyword(wrapper, "overlap_grad_reduce")
        if wrapper.name.startswith("vescale.") and overlap is not None:
            result["overlap_comm"] = _given("overlap_comm", overlap.value, wrapper, overlap)
        unused = _keyword(wrapper, "find_unused_parameters")
        if unused is not None:
            result["find_unused_parameters"] = _given(
                "find_unused_parameters", unused.value, wrapper, unused
            )
        elif not wrapper.is_open:
            note = "DistributedDataParallel: find_unused_parameters False"
            result.update(_absent("find_unused_parameters", False, note))
    elif program.accelerator() is not None and "ddp" not in found:
        result.update(data_parallel(program.run, merged(result, found)))
        options = program.first("DistributedDataParallelKwargs")
        unused = _keyword(options, "find_unused_parameters") if options is not None else None
        if options is not None and unused is not None:
            result["find_unused_parameters"] = _given(
                "find_unused_parameters", unused.value, options, unused
            )
    elif _averages_otherwise(program):
        return result
    elif "ddp" not in found and program.silent(*_SHARDING_WORDS, *_WRAPPING_WORDS):
        if by_hand is not None and program.run.launcher.world_size != 1:
            reason = f"the program itself calls {by_hand.method}"
            result["ddp"] = _given("ddp", Unknown(reason, (True, False)), by_hand)
        else:
            result.update(_absent("ddp", False, "nothing in the code is distributed"))
    return result


def _collective(program: _Program) -> Optional[Call]:
    """A call with which the program may average the gradients of its ranks, or start them."""
    calls = (c for c in program.calls if c.name.startswith("torch.distributed."))
    found = {call.method: call for call in calls}
    return next((found[name] for name in _COLLECTIVES if name in found), None)


_COLLECTIVES = (
    "reduce_scatter_tensor",
    "reduce_scatter",
    "all_reduce",
    "all_gather_into_tensor",
    "all_gather",
    "init_process_group",
)


def _averages_otherwise(program: _Program) -> bool:
    """Whether a library of its own averages the gradients of the ranks."""
    imports = (item for file in program.run.python for item in file.imports)
    return any(item.module.partition(".")[0] in _OWN_AVERAGING for item in imports)


_OWN_AVERAGING = frozenset({"horovod", "byteps", "bagua", "hivemind"})

FRAMEWORK = Framework(
    id="generic",
    title="PyTorch",
    distribution="torch",
    bare_switches=True,
    dialect=_dialect,
    derive=_derive,
    flag_of=_flag_of,
)
