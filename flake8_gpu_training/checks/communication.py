"""GPU4xx: communication."""

from __future__ import annotations

import re
from typing import Optional

from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks._documents import replacement
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    Snippet,
    advise,
    cannot_apply,
    cannot_tell,
    keyword_change,
    no_mistake,
    of_training,
    off,
    on,
    seen,
    with_edits,
)
from flake8_gpu_training.checks._programs import calls, first_call, says
from flake8_gpu_training.checks._scale import gpus, is_cuda, is_ray, nodes, number, text, tunes_all
from flake8_gpu_training.checks.base import (
    Change,
    Check,
    Edit,
    Example,
    Item,
    Judgement,
    Priority,
)
from flake8_gpu_training.facts import Call, Document, Setting, known
from flake8_gpu_training.frameworks.at_hand import version_at_hand
from flake8_gpu_training.frameworks.lightning import trainer_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_ONE_GPU = Text("只用一张 GPU", "the run uses one GPU")
_ONE_NODE = Text("单机训练", "the run uses one node")
_NOT_CUDA = Text("非 CUDA 设备", "not a CUDA device")
_NODES = Text("节点数未知", "how many nodes take part is not known")
_DDP = "torch.nn.parallel.DistributedDataParallel"

# --- GPU401 ---------------------------------------------------------------------------

_RDMA = ("NCCL_NET_GDR_LEVEL", "NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "FI_EFA_USE_DEVICE_RDMA")


def _switched_on(setting: Optional[Setting]) -> bool:
    return setting is not None and known(setting.value) and str(setting.value) not in ("", "0")


@of_training()
def _rdma(run: Run) -> Judgement:
    count = nodes(run)
    if not is_cuda(run):
        return cannot_apply(_NOT_CUDA)
    if count == 1:
        return cannot_apply(_ONE_NODE)
    if count is None or is_ray(run):
        return cannot_tell(_NODES)
    disabled = run.environment.get("NCCL_IB_DISABLE")
    if disabled is not None and _switched_on(disabled):
        return advise(
            run,
            f"it sends the gradients of {count} nodes over TCP; use InfiniBand or RoCE",
            Text("NCCL_IB_DISABLE=1 关闭了 RDMA", "NCCL_IB_DISABLE=1 turns RDMA off"),
            Text("去掉 NCCL_IB_DISABLE=1，启用 GPUDirect RDMA", "drop NCCL_IB_DISABLE=1"),
            snippet=Snippet(
                "drop NCCL_IB_DISABLE=1", "export NCCL_IB_DISABLE=0", "bash", _zeroed(disabled)
            ),
            at=disabled,
        )
    for name in _RDMA:
        if name in run.environment:
            return on(run.environment[name])
    if disabled is not None:  # left on by hand: NCCL then uses RDMA where the cards can
        return on(disabled) if known(disabled.value) else cannot_tell(disabled)
    return advise(
        run,
        f"nothing here asks for GPUDirect RDMA between {count} nodes",
        Text(f"{count} 机训练，未见 GPUDirect RDMA 配置", f"{count} nodes, no RDMA settings seen"),
        Text(
            "设置 NCCL_IB_HCA 与 NCCL_NET_GDR_LEVEL，并用 NCCL_DEBUG=INFO 确认 GDRDMA",
            "set NCCL_IB_HCA and NCCL_NET_GDR_LEVEL; look for GDRDMA under NCCL_DEBUG=INFO",
        ),
        snippet=Snippet(
            "look for GDRDMA under NCCL_DEBUG=INFO, or export NCCL_IB_HCA and NCCL_NET_GDR_LEVEL",
            "export NCCL_IB_HCA=mlx5\nexport NCCL_NET_GDR_LEVEL=PHB",
            "bash",
        ),
    )


def _zeroed(setting: Setting) -> tuple[Edit, ...]:
    """The edit that sets a variable to 0 where it is set."""
    if setting.value_location is None or not setting.text:
        return ()
    return (Edit(setting.value_location, setting.text, "0"),)


# --- GPU402 ---------------------------------------------------------------------------


@of_training(alone=True)
def overlap(run: Run) -> Judgement:
    """Whether communication runs beside computation."""
    if gpus(run) == 1:
        return cannot_apply(_ONE_GPU)
    setting = run.practice("overlap_comm")
    if setting.known and setting.value is True:
        return on(setting)
    if (number(run, "zero_stage") or 0) == 0:
        return _overlap_of_ddp(run, setting)
    if not setting.known:
        return cannot_tell(setting)
    if _is_piped(run):
        return cannot_apply(
            Text("DeepSpeed 流水线并行不支持通信重叠", "DeepSpeed's pipelines do not overlap")
        )
    if number(run, "zero_stage") == 1 and version_at_hand(run, "deepspeed") < _OVERLAPS_STAGE_1:
        return cannot_apply(
            Text(
                "DeepSpeed 0.13 之前 ZeRO-1 忽略 overlap_comm",
                "ZeRO-1 ignores overlap_comm before DeepSpeed 0.13",
            )
        )
    if run.deepspeed is None and setting.note.endswith("unless deepspeed_config_file sets it"):
        return off(
            Text(
                "可选：Accelerate 的 deepspeed_config 不设 overlap_comm，ZeRO-3 以下默认关闭；"
                "可改用 deepspeed_config_file 开启",
                "optional: Accelerate's deepspeed_config leaves overlap_comm off below ZeRO-3; a "
                "deepspeed_config_file can turn it on",
            )
        )
    if run.deepspeed is None:
        return off(
            Text(
                "预设配置关闭 overlap_comm 以节省缓冲区显存",
                "the preset leaves overlap_comm off, which saves its buffers",
            )
        )
    change = replacement(run.deepspeed, "zero_optimization.overlap_comm", True)
    return advise(
        run,
        _AFTER_BACKWARD if number(run, "zero_stage") == 1 else _BLOCKS_BACKWARD,
        Text("DeepSpeed 配置中 overlap_comm 未开启", "overlap_comm is off in the DeepSpeed config"),
        Text("在 zero_optimization 中设置 overlap_comm: true", "set overlap_comm: true"),
        snippet=Snippet('set "overlap_comm": true', change.text, change.language, change.edits),
        at=setting if setting.explicit else _section(run.deepspeed),
    )


_OVERLAPS_STAGE_1 = (0, 13)
"""Before, the engine turned it off (deepspeed 0.12.6 runtime/engine.py: "Overlap and contiguous
grads are meaningless in stage 1 and are ignored")."""
# Stage 1 reduces once the backward pass is done, stages 2 and 3 in its hooks, on the stream that
# computes (deepspeed 0.19.8 runtime/zero/stage_1_and_2.py, reduce_gradients and average_tensor;
# stage3.py, reduce_and_partition_stream).
_AFTER_BACKWARD = "gradients are reduced after the backward pass instead of during it"
_BLOCKS_BACKWARD = "gradients are reduced on the compute stream, which blocks the backward pass"


def _is_piped(run: Run) -> bool:
    """Whether DeepSpeed turns the overlap off by itself (deepspeed 0.19.6 runtime/engine.py)."""
    made = first_call(run, ".PipelineModule")
    return made is not None or (number(run, "pipeline_parallel") or 1) > 1


def _section(document: Document) -> Optional[Setting]:
    """``zero_optimization``, where a missing setting of it would be written."""
    entry = document.root.mapping.get("zero_optimization")
    if entry is None:
        return None
    return Setting("zero_optimization", "without overlap_comm", entry.location)


def _overlap_of_ddp(run: Run, setting: Setting) -> Judgement:
    late = setting.known and setting.value is False
    if late and text(run, "fsdp") not in (None, "none", "no_shard"):
        return _advise_prefetch(run, setting)
    if late and run.value("megatron") is True:
        return _advise_megatron_overlap(run, setting)
    if run.value("ddp") is True:
        return on(f"DDP reduces its buckets during the backward pass ({sources.PYTORCH_DDP})")
    if text(run, "fsdp") not in (None, "none", "no_shard"):
        return on(f"FSDP prefetches in the backward pass ({sources.PYTORCH_FSDP})")
    if run.deepspeed is not None and run.value("zero_stage") == 0:
        return off(Text("未启用 ZeRO，没有可重叠的通信设置", "ZeRO is off: nothing is overlapped"))
    if not setting.known:
        return cannot_tell(setting)
    return off(Text("未启用通信重叠", "no overlap of communication"))


def _advise_prefetch(run: Run, setting: Setting) -> Judgement:
    """FSDP1 that gathers a layer's weights only once the backward pass has reached it."""
    if run.accelerate is not None and run.framework != "hf_trainer":
        name = "fsdp_config.fsdp_backward_prefetch"
        change = replacement(run.accelerate, name, "BACKWARD_PRE", bare=True)
    elif run.framework == "hf_trainer":
        change = Change("python", 'fsdp_config={"backward_prefetch": "backward_pre"},')
    else:
        change = Change("python", "backward_prefetch=BackwardPrefetch.BACKWARD_PRE,")
    return advise(
        run,
        "FSDP gathers the weights of each layer only when the backward pass has reached it",
        Text("FSDP 反向预取未开启", "FSDP does not prefetch in the backward pass"),
        Text("开启 backward_prefetch（BACKWARD_PRE）", "set backward_prefetch to BACKWARD_PRE"),
        snippet=Snippet(
            "set backward_prefetch to BACKWARD_PRE", change.text, change.language, change.edits
        ),
        at=setting if setting.explicit else None,
    )


def _advise_megatron_overlap(run: Run, setting: Setting) -> Judgement:
    count, split = gpus(run), 1.0
    for name in ("tensor_parallel", "pipeline_parallel"):
        split *= number(run, name) or 1
    if count is None or count <= split:
        return cannot_apply(Text("没有数据并行", "no data-parallel ranks"))
    if tunes_all(run) is not True:
        return off(Text("适配器的梯度很小", "the gradients of adapters are small"))
    return advise(
        run,
        f"{count / split:.0f} data-parallel ranks reduce gradients after the backward pass",
        Text("未重叠梯度归约与反向计算", "gradients are reduced after the backward pass"),
        Text("开启 overlap_grad_reduce", "turn on overlap_grad_reduce"),
        practices={"overlap_comm": True},
        at=setting if setting.explicit else None,
        impact=by_class(Priority.MEDIUM, sources.MEGATRON_OPTIMIZER),
    )


# --- GPU403, GPU404 -------------------------------------------------------------------


@of_training()
def _compression(run: Run) -> Judgement:
    call = first_call(run, ".register_comm_hook")
    if call is not None:
        return seen(call)
    named = _named_compression(run)
    if named is not None:
        return on(named)
    if (number(run, "zero_hpz_partition_size") or 1) > 1:
        return on(run.practice("zero_hpz_partition_size"))
    if run.deepspeed is not None:
        for name in ("communication_data_type", "zero_optimization.zero_quantized_gradients"):
            node = run.deepspeed.get(name)
            if node is not None and known(node.value) and node.value:
                return on(Setting(name.rpartition(".")[2], node.value, node.location))
    if gpus(run) == 1:
        return cannot_apply(_ONE_GPU)
    if nodes(run) == 1:
        return cannot_apply(Text("单机带宽足够", "bandwidth inside a node is enough"))
    if nodes(run) is None:
        return cannot_tell(_NODES)
    return off(
        Text(
            "未压缩梯度；只在跨机带宽不足时有益",
            "gradients are not compressed; it helps only where bandwidth is short",
        )
    )


# Where a keyword of an object, or a flag of Megatron-LM, asks for it.
_COMPRESSING = (
    (".DDPStrategy", "ddp_comm_hook"),
    (".DistributedDataParallelKwargs", "comm_hook"),
    (".TorchDDPPlugin", "fp8_communication"),
    (".HybridParallelPlugin", "fp8_communication"),
    (".LowLevelZeroPlugin", "fp8_communication"),
)
_ONE_BIT = ("onebitadam", "onebitlamb", "zerooneadam")


def _named_compression(run: Run) -> Optional[Setting]:
    for method, keyword in _COMPRESSING:
        for call in calls(run, method):
            argument = call.keywords.get(keyword)
            if argument is None or argument.value in (None, False) or argument.text.endswith(".NO"):
                continue
            shown = f"{keyword}={argument.text}"
            return Setting(keyword, argument.value, argument.location, note=shown)
    if text(run, "optimizer") in _ONE_BIT:
        return run.practice("optimizer")
    reduced = run.setting("grad_reduce_in_bf16")
    return reduced if reduced is not None and reduced.value is True else None


# What NCCL prints, how PyTorch waits for it, and transports that are switched off.
_NOT_TUNING = re.compile(
    r"NCCL_(?:DEBUG\w*|TIMEOUT|BLOCKING_WAIT|ASYNC_ERROR_HANDLING|DESYNC_DEBUG|\w+_DISABLE)"
)


@of_training()
def _nccl(run: Run) -> Judgement:
    if gpus(run) == 1:
        return cannot_apply(_ONE_GPU)
    if not is_cuda(run):
        return cannot_apply(_NOT_CUDA)
    for name, setting in run.environment.items():
        if name.startswith("NCCL_") and not _NOT_TUNING.fullmatch(name):
            return on(setting)
    count = nodes(run)
    if count == 1:
        return off(Text("单机使用 NCCL 默认值即可", "NCCL's defaults will do inside a node"))
    if count is None or is_ray(run):
        return cannot_tell(_NODES)
    return advise(
        run,
        "NCCL may choose a slow interface between nodes",
        Text("未设置 NCCL 参数", "no NCCL settings"),
        Text("设置 NCCL_SOCKET_IFNAME 等参数", "set NCCL_SOCKET_IFNAME for the topology"),
        snippet=Snippet("export NCCL_SOCKET_IFNAME", "export NCCL_SOCKET_IFNAME=eth0", "bash"),
    )


# --- GPU405, GPU406 -------------------------------------------------------------------


_UNUSED = "find_unused_parameters"
# What takes the keyword: DDP itself, and what Lightning, Accelerate and ColossalAI pass to it.
_SEARCHERS = (_DDP, ".DDPStrategy", ".DistributedDataParallelKwargs", ".TorchDDPPlugin")

_SEARCH_NO_MORE = Text(
    "每一步所有参数都有梯度时，去掉该选项",
    "drop it where every parameter gets a gradient in each step",
)
# Left out, it follows activation checkpointing (transformers trainer.py, _wrap_model).
_SEARCH_OFF = Text(
    "每一步所有参数都有梯度时设为 false；仅删除该参数，未开激活重计算的 Trainer 仍会查找",
    "set it to false where every parameter gets a gradient in each step; without it, a Trainer "
    "that does not checkpoint activations searches all the same",
)


@of_training(alone=True)
def _unused_parameters(run: Run) -> Judgement:
    setting = run.practice(_UNUSED)
    call = next((c for c in calls(run, *_SEARCHERS) if says(c, _UNUSED, True)), None)
    if call is not None:
        setting = Setting(_UNUSED, True, call.keywords[_UNUSED].location)
    if not setting.known or setting.value is not True or not setting.explicit:
        return no_mistake()
    dense = run.model.kind == "LLM" and not run.model.is_moe
    answer = advise(
        run,
        "DDP walks the autograd graph in every step to look for them; "
        "keep it only if some parameters get no gradient",
        Text("find_unused_parameters=True", "find_unused_parameters=True"),
        _SEARCH_NO_MORE if call is not None else _SEARCH_OFF,
        snippet=_searching_no_more(run, call) or _named_strategy(run),
        practices=None if call is not None else {_UNUSED: False},
        at=setting,
        priority=Priority.MEDIUM if dense else Priority.LOW,
    )
    return with_edits(answer)  # whether parameters stay unused shows at run time only


def _named_strategy(run: Run) -> Optional[Snippet]:
    """Lightning's strategy without the search, under the name that is passed."""
    trainer = trainer_of(call for program in run.python for call in program.calls)
    passed = trainer.keywords.get("strategy") if trainer is not None else None
    if trainer is None or passed is None or not isinstance(passed.value, str):
        return None
    plain = passed.value.partition(f"_{_UNUSED}")[0]
    change = keyword_change(run, trainer, "strategy", plain)
    return Snippet(f'set strategy="{plain}"', change.text, change.language, change.edits)


def _searching_no_more(run: Run, call: Optional[Call]) -> Optional[Snippet]:
    if call is None:
        return None
    change = keyword_change(run, call, _UNUSED, False)
    return Snippet("drop find_unused_parameters=True", change.text, "python", change.edits)


_SYNC_SWITCH = ".require_backward_grad_sync"  # what no_sync() sets


@of_training()
def _no_sync(run: Run) -> Judgement:
    call = next((c for c in calls(run, _DDP) if not c.is_open), None)
    steps = number(run, "gradient_accumulation_steps")
    if call is None or run.framework != "generic" or steps is None or steps <= 1:
        return no_mistake()
    if first_call(run, ".no_sync", ".accumulate", ".set_requires_gradient_sync") is not None:
        return no_mistake()
    if any(a.name.endswith(_SYNC_SWITCH) for file in run.python for a in file.attributes):
        return no_mistake()
    return _advise_no_sync(run, call, int(steps))


def _advise_no_sync(run: Run, call: Call, steps: int) -> Judgement:
    return advise(
        run,
        f"DDP reduces the gradients of each of the {steps} micro-batches, "
        "though only the last needs it",
        Text("梯度累积时每个微批都同步梯度", "every micro-batch synchronises its gradients"),
        Text("除最后一个微批外用 model.no_sync()", "use model.no_sync() for all but the last"),
        snippet=Snippet(
            "wrap all but the last micro-batch in model.no_sync()",
            "with model.no_sync() if micro_batch_is_not_last else nullcontext():\n"
            "    loss.backward()",
        ),
        at=Setting("DistributedDataParallel", True, call.location),
    )


_A = "general"

_TWO_NODES = (
    "#!/bin/bash\n{}export NNODES=2 NODE_RANK=$RANK MASTER_ADDR=node0 NPROC_PER_NODE=8\n"
    "swift sft --model Qwen/Qwen2.5-7B-Instruct --deepspeed zero2 --dataset data.jsonl\n"
)
_DEEPSPEED_PROGRAM = """\
import deepspeed

config = {{
    "train_micro_batch_size_per_gpu": 8,
    "bf16": {{"enabled": True}},
    "zero_optimization": {{"stage": 2, {}}},
}}
engine, _, _, _ = deepspeed.initialize(model=model, config=config)
for batch in loader:
    engine.backward(engine(batch))
    engine.step()
"""
_DDP_PROGRAM = """\
import torch
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(model{})
for batch in loader:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(batch)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""

_ACCUMULATING = """\
import argparse
from contextlib import nullcontext
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--gradient_accumulation_steps", type=int, default=8)
args = parser.parse_args()
model = DistributedDataParallel(model)
for step, batch in enumerate(loader):
    is_last = (step + 1) % args.gradient_accumulation_steps == 0
    loss = model(batch)
{}    if is_last:
        optimizer.step()
        optimizer.zero_grad()
"""
_WITHOUT_SYNC = "    with nullcontext() if is_last else model.no_sync():\n        loss.backward()\n"

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU401",
        "gpudirect-rdma",
        Text("GPUDirect RDMA", "GPUDirect RDMA"),
        Priority.HIGH,
        _rdma,
        why="Between nodes a gradient that is not read by the network card from GPU memory "
        "is copied through the host twice.",
        fix="Leave InfiniBand on, name the adapters (NCCL_IB_HCA), and look for GDRDMA in the "
        "log of NCCL_DEBUG=INFO.",
        ignore="When /etc/nccl.conf or the cluster's image sets it.",
        items=(Item(_A, "E", "gdrdma", 1),),
        impact=by_class(
            Priority.HIGH,
            sources.GPUDIRECT,
            Text("取决于通信占比", "depends on the share of communication"),
        ),
        difficulty="medium",
        examples=(
            Example(
                "swift",
                "train.sh",
                _TWO_NODES.format("export NCCL_IB_DISABLE=1\n"),
                _TWO_NODES.format("export NCCL_IB_HCA=mlx5\n"),
            ),
        ),
        sources=(sources.NCCL, sources.GPUDIRECT),
    ),
    Check(
        "GPU402",
        "communication-overlap",
        Text("通信与计算重叠", "Overlap of communication"),
        Priority.MEDIUM,
        overlap,
        why="Gradients of late layers are ready long before the backward pass ends; reducing "
        "them meanwhile hides the communication.",
        fix="Set overlap_comm in zero_optimization.",
        ignore="When memory is short: the overlap takes 4.5 times the bucket sizes.",
        items=(Item(_A, "E", "comm-overlap", 1),),
        impact=by_class(Priority.MEDIUM, sources.DEEPSPEED_CONFIG),
        examples=(
            Example(
                "generic",
                "train.py",
                _DEEPSPEED_PROGRAM.format('"overlap_comm": False'),
                _DEEPSPEED_PROGRAM.format('"overlap_comm": True'),
            ),
        ),
        sources=(sources.DEEPSPEED_CONFIG, sources.DEEPSPEED_SOURCE, sources.PYTORCH_DDP),
    ),
    Check(
        "GPU403",
        "gradient-compression",
        Text("梯度压缩", "Gradient compression"),
        Priority.LOW,
        _compression,
        why="On a slow network the gradients' size bounds the step.",
        fix="Use a 16-bit communication hook, PowerSGD, or ZeRO++.",
        items=(Item(_A, "E", "gradient-compression", 1),),
        difficulty="medium",
        sources=(sources.POWER_SGD, sources.ZERO_PLUS_PLUS),
    ),
    Check(
        "GPU404",
        "nccl-tuning",
        Text("NCCL 调优", "NCCL tuning"),
        Priority.LOW,
        _nccl,
        why="NCCL guesses the interface between nodes, and sometimes takes the slow one.",
        fix="Set NCCL_SOCKET_IFNAME and NCCL_IB_HCA for the cluster.",
        ignore="When /etc/nccl.conf sets them.",
        items=(
            Item(_A, "E", "nccl-tuning", 1),
            Item("flow-factory", "J", "nccl-environment", 0.5),
        ),
        impact=by_class(Priority.LOW, sources.NCCL),
        examples=(
            Example(
                "swift",
                "train.sh",
                _TWO_NODES.format(""),
                _TWO_NODES.format("export NCCL_SOCKET_IFNAME=eth0\n"),
            ),
        ),
        sources=(sources.NCCL,),
    ),
    Check(
        "GPU405",
        "find-unused-parameters",
        Text("DDP find_unused_parameters", "DDP find_unused_parameters"),
        Priority.LOW,
        _unused_parameters,
        why="DDP walks the autograd graph after every forward pass to find parameters "
        "without a gradient.",
        fix="Drop it unless some parameters take no part in a step.",
        ignore="When some do: mixtures of experts, or several heads of which one trains.",
        items=(
            Item(_A, "E", "loop-communication", 1, fault=True),
            Item("transformers", "E", "ddp-settings", 1),
        ),
        impact=by_class(Priority.LOW, sources.PYTORCH_DDP),
        examples=(
            Example(
                "generic",
                "train.py",
                _DDP_PROGRAM.format(", find_unused_parameters=True"),
                _DDP_PROGRAM.format(""),
            ),
        ),
        sources=(sources.PYTORCH_DDP, sources.PYTORCH_TUNING),
    ),
    Check(
        "GPU406",
        "ddp-no-sync",
        Text("梯度累积时的 no_sync", "no_sync under accumulation"),
        Priority.MEDIUM,
        _no_sync,
        why="DDP reduces gradients in every backward pass; under accumulation only the last "
        "one is needed.",
        fix="Run the other micro-batches under model.no_sync().",
        items=(Item(_A, "E", "loop-communication", 1, fault=True),),
        impact=by_class(Priority.MEDIUM, sources.PYTORCH_TUNING),
        examples=(
            Example(
                "generic",
                "train.py",
                _ACCUMULATING.format("    loss.backward()\n"),
                _ACCUMULATING.format(_WITHOUT_SYNC),
                (("train.sh", "torchrun --nproc_per_node=8 train.py\n"),),
            ),
        ),
        sources=(sources.PYTORCH_TUNING, sources.PYTORCH_DDP),
    ),
)
