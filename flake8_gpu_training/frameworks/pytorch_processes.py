"""Processes of PyTorch programs: sharding, parallelism and wrappers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Optional

from flake8_gpu_training.facts import Argument, Call, Condition, Origin, Setting, Unknown, known
from flake8_gpu_training.frameworks.deepspeed import practices_from_deepspeed
from flake8_gpu_training.frameworks.launched import data_parallel, merged
from flake8_gpu_training.frameworks.lightning import strategy_of
from flake8_gpu_training.frameworks.pytorch_program import (
    MISSING,
    SHARDING_WORDS,
    Program,
    absent,
    argument_of,
    given_by,
)

_WRAPPING_WORDS = ("dataparallel", "accelerat", "lightning", "fabric")


def sharding(program: Program, launched: Mapping[str, Setting]) -> dict[str, Setting]:
    """ZeRO and FSDP, by strategy, configuration or wrapper."""
    found: dict[str, Setting] = {}
    found.update(_strategy_of_lightning(program))
    found.update(_zero(program, launched, found))
    found.update(_fsdp(program, launched, found))
    return found


def _strategy_of_lightning(program: Program) -> dict[str, Setting]:
    call = program.lightning()
    return {} if call is None else strategy_of(program.run, call, program.calls)


def _zero(
    program: Program, launched: Mapping[str, Setting], found: Mapping[str, Setting]
) -> dict[str, Setting]:
    run = program.run
    if run.deepspeed is not None:
        read = practices_from_deepspeed(run.deepspeed)
        return {name: value for name, value in read.items() if name != "precision"}
    if "zero_stage" in found or "zero_stage" in launched:
        return {}
    plugin = program.first("DeepSpeedPlugin")
    if plugin is not None and not plugin.is_open and argument_of(plugin, "hf_ds_config") is None:
        note = "accelerate 1.15 utils/dataclasses.py: zero_stage 2 unless set"
        return {"zero_stage": Setting("zero_stage", 2, plugin.location, Origin.DERIVED, note)}
    if program.first("initialize") is not None and "deepspeed" in program.words:
        for call in program.named("initialize"):
            if call.name.startswith("deepspeed"):
                return {"zero_stage": given_by("zero_stage", Unknown(MISSING), call)}
    by_hand = _collective(program)
    is_alone = run.launcher.world_size == 1
    other = _other_shards(program)
    if other is not None and not is_alone:
        reason = f"what {other.name} shards was not followed"
        return {"zero_stage": given_by("zero_stage", Unknown(reason), other)}
    if by_hand is not None and by_hand.method.startswith("reduce_scatter") and not is_alone:
        reason = f"the program may shard by {by_hand.method}"
        return {"zero_stage": given_by("zero_stage", Unknown(reason), by_hand)}
    if program.silent("deepspeed") and not program.is_launch_open():
        return absent("zero_stage", 0, "no DeepSpeed in the code or its launch")
    if _only_names_deepspeed(program):
        return absent("zero_stage", 0, "nothing in the code or its launch starts DeepSpeed")
    return {}


_SHARDERS = re.compile(
    r"(?:colossalai|fairscale|bmtrain|oslo|torch_xla|apex\.contrib)\."
    r"|torch\.distributed\.optim\.Zero|megatron\.core\.optimizer\."
)
_SHARDS = re.compile(
    r"Zero(?!_?Grad)|Gemini|Shard|FullySharded|FSDP|^OSS$|^DistributedFused|HybridParallel"
    r"|^BMTrainModelWrapper$|^DistributedOptimizer$"
)


def _other_shards(program: Program) -> Optional[Call]:
    """A wrapper by which a library that is not followed shards states, gradients or weights."""
    found = (c for c in program.calls if _SHARDERS.match(c.name) and _SHARDS.search(c.method))
    return next(found, None)


def _only_names_deepspeed(program: Program) -> bool:
    """Whether the code has the word, and neither the package, a plugin nor a launch of it."""
    run = program.run
    if not program.is_searched or program.is_launch_open() or program.lightning() is not None:
        return False
    if run.launcher.name not in ("python", "torchrun") or "made by name" in program.words:
        return False
    if any(_SAYS_DEEPSPEED.search(name) for name in (*run.settings, *run.environment)):
        return False
    if any(_SAYS_DEEPSPEED.search(item.dotted) for file in run.python for item in file.imports):
        return False
    made = [*program.named("Accelerator"), *program.named("Trainer", "TrainingArguments")]
    told = any(c.is_open or any(_SAYS_DEEPSPEED.search(k) for k in c.keywords) for c in made)
    return not told and not any(_SAYS_DEEPSPEED.search(call.name) for call in program.calls)


_SAYS_DEEPSPEED = re.compile(r"(?i)deepspeed|zero_stage")


def _fsdp(
    program: Program, launched: Mapping[str, Setting], found: Mapping[str, Setting]
) -> dict[str, Setting]:
    if "fsdp" in found or "fsdp" in launched:
        return {}
    first = list(program.named("FullyShardedDataParallel"))
    made = first or list(program.named("fully_shard"))
    if made:
        return _wrapped_fsdp(program, made, not first)
    words = ("fsdp", "fully_shard", "fullysharded")
    if program.silent(*words) and not program.is_launch_open():
        return absent("fsdp", "none", "no FSDP in the code or its launch")
    return {}


def _wrapped_fsdp(program: Program, made: list[Call], is_second: bool) -> dict[str, Setting]:
    call = made[0]
    if program.first("DistributedDataParallel") is not None:
        both = Unknown("the code has both DDP and FSDP")
        return {"fsdp": given_by("fsdp", both, call), "ddp": given_by("ddp", both, call)}
    found = {"fsdp_version": given_by("fsdp_version", 2 if is_second else 1, call)}
    asked = undecided(program, made)
    if asked is not None:
        reason = f"it depends on {asked.text or 'a branch'}"
        found["fsdp"] = given_by("fsdp", Unknown(reason, ("none", "full_shard")), call)
        return found
    if is_second:
        found["fsdp"] = _resharded(program, made)
        offload = argument_of(call, "offload_policy")
    else:
        strategy = argument_of(call, "sharding_strategy", position=2)
        if strategy is None:
            unread = Unknown("arguments are not all known")
            found["fsdp"] = given_by("fsdp", unread if call.is_open else "full_shard", call)
        else:
            value: Any = Unknown("the strategy is not a literal")
            if isinstance(strategy.value, str):
                value = strategy.value.rpartition(".")[2].lower().replace("_zero2", "")
                value = value.lstrip("_")
            found["fsdp"] = given_by("fsdp", value, call, strategy)
        offload = argument_of(call, "cpu_offload", position=3)
        prefetch = argument_of(call, "backward_prefetch", position=5)
        if prefetch is not None and prefetch.value is None:
            found["overlap_comm"] = given_by("overlap_comm", False, call, prefetch)
    if offload is None and not call.is_open:
        found["fsdp_offload"] = given_by("fsdp_offload", False, call)
    elif offload is not None:
        found["fsdp_offload"] = _offloads(call, offload)
    return found


_ON_SEVERAL = re.compile(
    r"(?i)distributed|world_?size|is_initialized|n_?gpus?\b|num_gpus|device_count|\brank"
    r"|\b(?:use_|is_|with_)?(?:ddp|dist_train|is_dist|multi_gpus?)\b"
)


def undecided(program: Program, made: list[Call]) -> Optional[Condition]:
    """What is asked before any of these calls, when nobody can tell the answer.

    Several ranks answer the questions whether there are several.
    """
    several = (program.run.launcher.world_size or 0) > 1
    left = [
        [c for c in call.conditions if not (several and c.holds and _ON_SEVERAL.search(c.text))]
        for call in made
    ]
    return left[0][-1] if all(left) else None


def _resharded(program: Program, made: list[Call]) -> Setting:
    """FSDP2: what the calls for the blocks say of resharding, and what they shard over."""
    blocks = [call for call in made if call.loop is not None] or made
    arguments = [(call, argument_of(call, "reshard_after_forward")) for call in blocks]
    values = [a.value if a is not None else None for _, a in arguments]
    call, argument = next(((c, a) for c, a in arguments if a is not None), arguments[0])
    candidates = ("full_shard", "shard_grad_op")
    if any(one.is_open for one in blocks) and argument is None:
        return given_by("fsdp", Unknown("arguments are not all known", candidates), call)
    kept = [value is False for value in values if known(value)]
    if len(kept) < len(values) or any(one != kept[0] for one in kept):
        asked = argument.text if argument is not None else ""
        return given_by("fsdp", Unknown(f"it depends on {asked or 'a branch'}", candidates), call)
    if not _is_one_dimension(program, call):
        over = ("full_shard", "hybrid_shard")
        return given_by("fsdp", Unknown("the mesh may have a dimension of replicas", over), call)
    return given_by("fsdp", "shard_grad_op" if kept[0] else "full_shard", call)


def _is_one_dimension(program: Program, call: Call) -> bool:
    """Whether FSDP2 shards over all ranks: without a mesh, or with a mesh of one dimension."""
    mesh = argument_of(call, "mesh")
    if mesh is None or mesh.value is None:
        return True
    shapes = [argument_of(c, "mesh_shape", position=1) for c in program.named("init_device_mesh")]
    texts = [re.sub(r"\s|\w\(.*?\)", "", shape.text) for shape in shapes if shape is not None]
    return bool(texts) and all("," not in text.strip("()[],") for text in texts)


def _offloads(call: Call, argument: Argument) -> Setting:
    if argument.value is None:
        return given_by("fsdp_offload", False, call, argument)
    text = argument.text.replace(" ", "")
    is_on = "offload_params=True" in text or text.startswith("CPUOffloadPolicy")
    value = True if is_on else Unknown("offloading is not a literal")
    return Setting("fsdp_offload", value, argument.location, Origin.CONSTRUCTOR, argument.text)


def parallelism(program: Program) -> dict[str, Setting]:
    """Parallelism within a model, which is absent where no word of it is in the code."""
    found: dict[str, Setting] = {}
    if not program.silent("megatron", "colossalai", "parallelize", "parallelism"):
        return found
    for name, words in (
        ("tensor_parallel", ("tensor_parallel",)),
        ("pipeline_parallel", ("pipeline_parallel",)),
        ("sequence_parallel", ("sequence_parallel", "context_parallel", "ulysses")),
    ):
        if program.silent(*words):
            found.update(absent(name, 1, f"no {name.replace('_', ' ')} in the code"))
    if program.silent(*SHARDING_WORDS):
        found.update(absent("megatron", False, "no Megatron in the code"))
    return found


def wrapping(program: Program, found: Mapping[str, Setting]) -> dict[str, Setting]:
    """How the ranks average their gradients."""
    result: dict[str, Setting] = {}
    by_hand = _collective(program)
    wrapper = program.first("DistributedDataParallel")
    if wrapper is not None and "ddp" not in found:
        single = program.run.launcher.world_size == 1
        asked = undecided(program, list(program.named("DistributedDataParallel")))
        value: Any = not single
        if asked is not None and not single:
            value = Unknown(f"it depends on {asked.text or 'a branch'}", (True, False))
        result["ddp"] = given_by("ddp", value, wrapper)
        overlap = argument_of(wrapper, "overlap_grad_reduce")
        if wrapper.name.startswith("vescale.") and overlap is not None:
            result["overlap_comm"] = given_by("overlap_comm", overlap.value, wrapper, overlap)
        unused = argument_of(wrapper, "find_unused_parameters")
        if unused is not None:
            result["find_unused_parameters"] = given_by(
                "find_unused_parameters", unused.value, wrapper, unused
            )
        elif not wrapper.is_open:
            note = "DistributedDataParallel: find_unused_parameters False"
            result.update(absent("find_unused_parameters", False, note))
    elif program.accelerator() is not None and "ddp" not in found:
        result.update(data_parallel(program.run, merged(result, found)))
        options = program.first("DistributedDataParallelKwargs")
        unused = argument_of(options, "find_unused_parameters") if options is not None else None
        if options is not None and unused is not None:
            result["find_unused_parameters"] = given_by(
                "find_unused_parameters", unused.value, options, unused
            )
    elif _averages_otherwise(program):
        return result
    elif "ddp" not in found and program.silent(*SHARDING_WORDS, *_WRAPPING_WORDS):
        if by_hand is not None and program.run.launcher.world_size != 1:
            reason = f"the program itself calls {by_hand.method}"
            result["ddp"] = given_by("ddp", Unknown(reason, (True, False)), by_hand)
        else:
            result.update(absent("ddp", False, "nothing in the code is distributed"))
    return result


def _collective(program: Program) -> Optional[Call]:
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


def _averages_otherwise(program: Program) -> bool:
    """Whether a library of its own averages the gradients of the ranks."""
    imports = (item for file in program.run.python for item in file.imports)
    return any(item.module.partition(".")[0] in _OWN_AVERAGING for item in imports)


_OWN_AVERAGING = frozenset({"horovod", "byteps", "bagua", "hivemind"})
