"""GPU120 to GPU125: how the Transformers Trainer spreads a run over GPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks._by_framework import by_framework
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    Snippet,
    advise,
    cannot_apply,
    cannot_tell,
    of_training,
    off,
    on,
)
from flake8_gpu_training.checks._scale import gpus, number, ranks, text
from flake8_gpu_training.checks._settings import algorithm, is_on
from flake8_gpu_training.checks._starting import NO_PROCESSES, ONE_GPU
from flake8_gpu_training.checks._trainer import (
    ARGUMENTS,
    TRAINER,
    item,
    missing,
    of_trainer,
    option,
)
from flake8_gpu_training.checks.base import (
    Check,
    Example,
    Impact,
    Item,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.checks.communication import overlap
from flake8_gpu_training.checks.memory import recomputation
from flake8_gpu_training.checks.sharding import sharding
from flake8_gpu_training.facts import Setting, Unknown, known
from flake8_gpu_training.frameworks.reading import find, truth
from flake8_gpu_training.frameworks.transformers import nested
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

# --- GPU120: DistributedDataParallel ------------------------------------------------------

_UNUSED = "ddp_find_unused_parameters"
_DDP_SETTINGS = (_UNUSED, "ddp_bucket_cap_mb", "ddp_broadcast_buffers", "ddp_static_graph")


@of_trainer
def _ddp(run: Run) -> Judgement:
    if gpus(run) == 1:
        return cannot_apply(ONE_GPU)
    ddp = run.practice("ddp")
    if ranks(run) is None:
        return cannot_tell(NO_PROCESSES)
    if not ddp.known:
        return cannot_tell(ddp)
    if ddp.value is not True:
        return cannot_apply(Text("未使用 DDP", "DDP is not in use"))
    chosen = find(run, _UNUSED)
    if chosen is not None and not known(chosen.value):
        return cannot_tell(chosen)
    search = run.practice("find_unused_parameters")
    if search.known and search.value is False:
        return on(search)
    for name in _DDP_SETTINGS[1:]:
        setting = find(run, name)
        if setting is not None and known(setting.value) and setting.value is not None:
            return on(setting)
    if not search.known:
        return cannot_tell(search)
    if search.explicit or run.model.kind != "LLM" or run.model.is_moe or _ends_ddp(run):
        return off(
            Text("可选：没有未用参数时关闭查找", "optional: no search where all are used"),
            search,
        )
    return advise(
        run,
        "without gradient checkpointing the Trainer has DDP look for unused parameters in every "
        "step, of which a dense decoder has none",
        Text("DDP 每步查找未用参数（Trainer 默认）", "DDP searches for unused parameters"),
        Text(
            "设置 ddp_find_unused_parameters=False（所有参数都参与计算时）",
            "set ddp_find_unused_parameters=False (where all parameters take part)",
        ),
        parameters={_UNUSED: False},
        at=search,
    )


def _ends_ddp(run: Run) -> bool:
    """Whether other advice puts an end to the search: sharding, or recomputation."""
    return any(ask(run).status is Status.RECOMMENDED for ask in (sharding, recomputation))


# --- GPU121 to GPU124: FullyShardedDataParallel -------------------------------------------


def _without_fsdp(run: Run) -> Optional[Judgement]:
    """The answer for runs that FSDP does not shard; None for those that it does."""
    setting = run.practice("fsdp")
    if setting.known:
        if text(run, "fsdp") in (None, "none", "no_shard"):
            return cannot_apply(Text("未使用 FSDP", "FSDP is not in use"))
        return None
    if (number(run, "zero_stage") or 0) >= 1:
        return cannot_apply(Text("由 DeepSpeed 切分", "DeepSpeed shards the run"))
    if gpus(run) == 1:
        return cannot_apply(ONE_GPU)
    return cannot_tell(setting)


def _of_fsdp(run: Run, key: str) -> Optional[Setting]:
    """A key of ``fsdp_config``, or of what Accelerate's launcher or file says in its place."""
    setting = nested(run, "fsdp_config", key)
    if setting is not None:
        return setting
    launched = run.launcher.options.get(f"fsdp_{key}")
    if launched is not None:
        return launched
    return run.accelerate.settings().get(f"fsdp_config.fsdp_{key}") if run.accelerate else None


def _is_hidden(run: Run) -> bool:
    """Whether ``fsdp_config`` names a file, or a value, that was not read."""
    setting = find(run, "fsdp_config")
    if setting is None:
        return run.is_open
    if isinstance(setting.value, Unknown):
        return True
    is_file = isinstance(setting.value, str)
    return is_file and not any(name.startswith("fsdp_config.") for name in run.settings)


_HIDDEN = Text("fsdp_config 未读到", "fsdp_config was not read")


@of_trainer
def _fsdp2(run: Run) -> Judgement:
    without = _without_fsdp(run)
    if without is not None:
        return without
    version = run.practice("fsdp_version")
    if not version.known:
        return cannot_tell(version)
    if str(version.value) == "2":
        return on(version)
    return off(
        Text("可选：FSDP2 按参数切分，显存更少", "optional: FSDP2 shards each parameter"), version
    )


@of_trainer
def _fsdp_checkpointing(run: Run) -> Judgement:
    without = _without_fsdp(run)
    if without is not None:
        return without
    setting = _of_fsdp(run, "activation_checkpointing")
    if setting is not None and not known(setting.value):
        return cannot_tell(setting)
    if setting is not None and truth(setting.value) is True:
        return on(setting)
    if _is_hidden(run):
        return cannot_tell(_HIDDEN)
    checkpointing = run.practice("gradient_checkpointing")
    if not checkpointing.known:
        return cannot_tell(checkpointing)
    if checkpointing.value is not True or text(run, "fsdp") == "shard_grad_op":
        return off(Text("反向中没有多余的收集", "nothing is gathered again"), checkpointing)
    return advise(
        run,
        "gradient_checkpointing makes FSDP gather each layer's weights once more in the backward "
        "pass; its own checkpointing does not",
        Text(
            "FSDP 下使用 gradient_checkpointing，反向多一次 AllGather",
            "gradient_checkpointing under FSDP adds an all-gather to the backward pass",
        ),
        Text(
            "改用 fsdp_config 的 activation_checkpointing，并关闭 gradient_checkpointing",
            "use activation_checkpointing of fsdp_config, and turn gradient_checkpointing off",
        ),
        snippet=Snippet(
            "use activation_checkpointing of fsdp_config in place of gradient_checkpointing",
            'gradient_checkpointing=False,\nfsdp_config={"activation_checkpointing": True},',
        ),
        at=checkpointing if checkpointing.explicit else None,
    )


def _backward_prefetch(run: Run) -> Judgement:
    """The backward pass as GPU402 has it, for the audit's own item."""
    without = _without_fsdp(run)
    if without is not None:
        return without
    return replace(overlap(run), findings=(), change=None)


_fsdp_prefetch = of_trainer(_backward_prefetch)
_fsdp_prefetch_of_flags = of_training(alone=True)(_backward_prefetch)


@of_trainer
def _fsdp_loading(run: Run) -> Judgement:
    without = _without_fsdp(run)
    if without is not None:
        return without
    setting = _of_fsdp(run, "cpu_ram_efficient_loading")
    if setting is not None:
        if not known(setting.value):
            return cannot_tell(setting)
        if truth(setting.value) is True:
            return on(setting)
    if setting is None and _is_hidden(run):
        return cannot_tell(_HIDDEN)
    if setting is None and find(run, "fsdp") is None:
        return on("fsdp_cpu_ram_efficient_loading=True (accelerate 1.15.0, commands/launch.py)")
    return off(
        Text(
            "可选：只有 rank 0 读入权重，节省主机内存",
            "optional: rank 0 alone reads the weights, which saves host memory",
        ),
        setting,
    )


# --- GPU125: ParallelismConfig --------------------------------------------------------------


# They refuse to split sequences: trl 1.16, grpo_config.py and rloo_config.py, __post_init__.
_UNSPLIT = ("grpo", "rloo")


@of_trainer
def _parallelism_config(run: Run) -> Judgement:
    setting = option(run, "parallelism_config")
    if not setting.known:
        # An object of the program's own: what it holds is not needed to know that it is there.
        return on(setting) if setting.explicit else cannot_tell(setting)
    if is_on(setting):
        return on(setting)
    for name in ("tensor_parallel", "sequence_parallel"):
        if (number(run, name) or 1) > 1:
            return on(run.practice(name))
    if gpus(run) == 1:
        return cannot_apply(ONE_GPU)
    if algorithm(run) in _UNSPLIT:
        return missing(run, "parallelism_config") or off(
            Text("可选：张量并行与数据并行组合", "optional: tensor beside data parallelism")
        )
    return missing(run, "parallelism_config") or off(
        Text(
            "可选：张量并行、上下文并行与数据并行组合",
            "optional: tensor and context parallelism beside data parallelism",
        )
    )


_WRAPPED = """\
import torch
from trl import SFTConfig, SFTTrainer
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained(
    "Qwen/Qwen2.5-7B-Instruct",
    torch_dtype=torch.bfloat16,
    attn_implementation="flash_attention_2",
)
args = SFTConfig(
    output_dir="out",
    bf16=True,
    gradient_checkpointing={},
    use_liger_kernel=True,
    max_length=4096,
    packing=True,
    dataloader_num_workers=4,
    dataloader_persistent_workers=True,
    fsdp="full_shard auto_wrap",
    fsdp_config={{"backward_prefetch": "backward_pre"{}}},
)
SFTTrainer(model=model, args=args, train_dataset=train_dataset).train()
"""
_LAUNCH = (("train.sh", "torchrun --nproc_per_node=8 train.py\n"),)
_DENSE = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
args = TrainingArguments(
    output_dir="out",
    bf16=True,
{}    use_liger_kernel=True,
    dataloader_num_workers=4,
)
Trainer(model=model, args=args, train_dataset=train_dataset).train()
"""

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU120",
        "ddp-settings",
        Text("DDP 参数", "DDP settings"),
        Priority.LOW,
        _ddp,
        why="Unless activations are recomputed, the Trainer has DDP walk the autograd graph in "
        "every step to look for parameters without a gradient.",
        fix="Set ddp_find_unused_parameters=False.",
        ignore="Some parameters take no part in a step.",
        items=item("E", "ddp-settings", 1),
        impact=by_class(Priority.LOW, sources.PYTORCH_DDP),
        examples=(
            Example(
                "hf_trainer",
                "train.py",
                _DENSE.format(""),
                _DENSE.format("    ddp_find_unused_parameters=False,\n"),
                _LAUNCH,
            ),
        ),
        sources=(sources.PYTORCH_DDP, TRAINER),
    ),
    Check(
        "GPU121",
        "fsdp2",
        Text("FSDP2", "FSDP2"),
        Priority.LOW,
        _fsdp2,
        why="FSDP2 shards each parameter by itself: less memory, and frozen weights beside "
        "trained ones.",
        fix='Set fsdp_config={"version": 2} (the default from transformers 5.10 on).',
        items=item("E", "fsdp2", 0.5),
        impact=by_class(Priority.LOW, sources.PYTORCH_FSDP),
        sources=(ARGUMENTS, sources.PYTORCH_FSDP),
    ),
    Check(
        "GPU122",
        "fsdp-activation-checkpointing",
        Text("FSDP 激活检查点", "FSDP activation checkpointing"),
        Priority.LOW,
        _fsdp_checkpointing,
        why="gradient_checkpointing recomputes inside FSDP's layers, whose weights are then "
        "gathered once more.",
        fix="Set activation_checkpointing in fsdp_config, and gradient_checkpointing=False.",
        items=item("E", "fsdp-activation-checkpointing", 1),
        impact=by_class(Priority.LOW, ARGUMENTS),
        examples=(
            Example(
                "hf_trainer",
                "train.py",
                _WRAPPED.format("True", ""),
                _WRAPPED.format("False", ', "activation_checkpointing": True'),
                _LAUNCH,
            ),
        ),
        sources=(ARGUMENTS, TRAINER),
    ),
    Check(
        "GPU123",
        "fsdp-prefetch",
        Text("FSDP 预取", "FSDP prefetch"),
        Priority.MEDIUM,
        by_framework(_fsdp_prefetch, videox_fun=_fsdp_prefetch_of_flags),
        why="Weights that are gathered ahead of the backward pass are there when it needs them.",
        fix="Set backward_prefetch to backward_pre in fsdp_config (FSDP2 always does it).",
        items=(
            *item("E", "fsdp-prefetch", 0.5),
            Item("videox-fun", "D", "fsdp-backward-prefetch", 1, "beside"),
        ),
        impact=by_class(Priority.MEDIUM, sources.PYTORCH_FSDP),
        sources=(ARGUMENTS, sources.PYTORCH_FSDP),
    ),
    Check(
        "GPU124",
        "fsdp-efficient-loading",
        Text("FSDP 高效加载", "FSDP efficient loading"),
        Priority.LOW,
        _fsdp_loading,
        why="Otherwise every rank of a node reads all weights into host memory.",
        fix="Set cpu_ram_efficient_loading in fsdp_config.",
        items=item("E", "fsdp-efficient-loading", 0.5),
        impact=Impact(source=ARGUMENTS),
        sources=(ARGUMENTS,),
    ),
    Check(
        "GPU125",
        "parallelism-config",
        Text("ParallelismConfig", "ParallelismConfig"),
        Priority.LOW,
        _parallelism_config,
        why="Accelerate's ParallelismConfig combines tensor, context and data parallelism.",
        fix="Give the arguments parallelism_config=ParallelismConfig(tp_size=...).",
        items=item("E", "parallelism-config", 0.5),
        impact=Impact(source=ARGUMENTS),
        sources=(ARGUMENTS,),
    ),
)
