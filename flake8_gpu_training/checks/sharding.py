"""GPU102, GPU108: model states split over ranks (ZeRO, FSDP, ZeRO++)."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks import _videox_sharding
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    Snippet,
    advise,
    cannot_apply,
    cannot_tell,
    excluding,
    of_training,
    off,
    on,
)
from flake8_gpu_training.checks._llamafactory import without_megatron_core
from flake8_gpu_training.checks._scale import (
    ASSUMED_MEMORY_GIB,
    data_ranks,
    fits_each,
    is_ray,
    memory_gib,
    nodes,
    number,
    outgrows_gpu,
    ranks,
    spreads_layers,
    states_gib,
    text,
    tunes_all,
)
from flake8_gpu_training.checks._settings import is_on, parameter
from flake8_gpu_training.checks._sharding_advice import how_to_shard, stage_snippet
from flake8_gpu_training.checks._starting import (
    NO_PROCESSES,
    ONE_GPU,
    launch,
    single,
    uncounted,
    unsharded_as_far_as_seen,
)
from flake8_gpu_training.checks._swift import without_megatron
from flake8_gpu_training.checks.base import (
    Check,
    Example,
    Impact,
    Item,
    Judgement,
    Priority,
)
from flake8_gpu_training.facts import Setting
from flake8_gpu_training.frameworks.reading import truth
from flake8_gpu_training.hardware import GPUS
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.stages import LADDER, Fit, lowest_fit

_ONE_NODE = Text("单机训练", "the run uses one node")


@of_training()
def sharding(run: Run) -> Judgement:
    """How the run splits its model's states, and whether it has to."""
    answer = _sharding(run)
    refused = without_megatron(run) or without_megatron_core(run)
    if refused is not None:
        answer = excluding(answer, refused, "megatron", "megatron-fsdp")
    if run.value("megatron") is True:
        return excluding(answer, _OWN_SPLIT, *_ZERO_VARIANTS, *_FSDP_VARIANTS, "device-map")
    processes = run.launcher.processes.value
    if isinstance(processes, int) and processes > 1 and not spreads_layers(run):
        return excluding(answer, _A_GPU_EACH, "device-map")
    return answer


# get_default_device_map and is_mp, swift/model/utils.py and swift/utils/torch_utils.py
_ALL_IN_SIGHT = Text(
    "单进程；可见 GPU 多于一张时 ms-swift 自动使用 device_map，可见数未知",
    "one process: ms-swift uses device_map where it sees several GPUs; how many is not known",
)
_OWN_SPLIT = Text("Megatron 自行切分模型", "Megatron splits the model itself")
_A_GPU_EACH = Text("每个进程只有一张卡", "each process has one GPU")
_ZERO_VARIANTS = ("zero1", "zero2", "zero3", "zero2-offload", "zero3-offload")
_FSDP_VARIANTS = tuple(
    f"{kind}{offload}"
    for kind in ("fsdp", "fsdp-shard-grad-op", "fsdp-hybrid-shard")
    for offload in ("", "-offload")
)
_FOR_SEVERAL = (*_ZERO_VARIANTS, *_FSDP_VARIANTS, "megatron", "megatron-fsdp")


def _sharding(run: Run) -> Judgement:
    stage, fsdp = run.practice("zero_stage"), run.practice("fsdp")
    if fsdp.known and text(run, "fsdp") not in (None, "none", "no_shard"):
        return on(fsdp, _fsdp_variant(run))
    if run.value("megatron") is True:
        return _megatron(run)
    if stage.known and isinstance(stage.value, int) and stage.value >= 1:
        return _zero(run, stage.value)
    count = ranks(run)
    if count == 1 and run.hardware.gpus is None and run.framework == "swift":
        return excluding(cannot_tell(_ALL_IN_SIGHT), single(run), *_FOR_SEVERAL)
    if run.hardware.gpus == 1 or (count == 1 and (run.hardware.gpus or 1) == 1):
        return cannot_apply(ONE_GPU)
    if spreads_layers(run):
        return _layers_spread(run)
    if is_on(parameter(run, "use_kt", default=False)):
        return excluding(off(_EXPERTS_APART), _NOT_KT, "zero3", "zero3-offload")
    if not stage.known or not fsdp.known:
        return cannot_tell(unsharded_as_far_as_seen(run, stage if not stage.known else fsdp))
    if count is None and run.framework == "videox_fun":
        return _videox_sharding.unsharded(run)
    if count is None or is_ray(run):
        return _on_any_number(run)
    return _unsharded(run, max(count, run.hardware.gpus or 1))


_EXPERTS_APART = Text(
    "专家权重由 KTransformers 放在主机内存", "KTransformers keeps the experts in the host's memory"
)
# hparams/parser.py, 0.9.4 and 0.9.5.
_NOT_KT = Text("KTransformers 不支持 ZeRO-3", "KTransformers does not go with ZeRO-3")
_SMALL_GIB = 24.0  # memory of the smaller GPUs that models are trained on
_SHARE_OF_STATES = 0.7  # the rest is for activations


def _on_any_number(run: Run) -> Judgement:
    """A run whose ranks are not counted: what fits one GPU need not be split on several."""
    states, room = states_gib(run), memory_gib(run) or _SMALL_GIB
    largest = memory_gib(run) or max(one.memory_gib for one in GPUS.values())
    if states is not None and states > largest:
        return _on_several(run, states, largest)
    if states is None or states > _SHARE_OF_STATES * room:
        answer = cannot_tell(NO_PROCESSES if is_ray(run) else uncounted(run))
        if run.framework != "llamafactory":
            return answer
        return replace(answer, idle=tuple((name, _IDLE) for name in _NEVER_ADVISED))
    return off(
        Text(
            f"模型状态约 {states:.0f} GiB，单卡放得下，无需切分",
            f"model states of about {states:.0f} GiB fit one GPU: nothing has to be split",
        )
    )


_IDLE = Text("未使用；可选", "off; optional")
_NEVER_ADVISED = (
    *(name for name in _FSDP_VARIANTS if name.endswith("-offload")),
    "megatron",
    "megatron-fsdp",
)


def _on_several(run: Run, states: float, largest: float) -> Judgement:
    """What no GPU holds has to be split, over however many there are."""
    how = how_to_shard(run, 3)
    return advise(
        run,
        f"about {states:.0f} GiB of model states on every rank exceed a GPU of {largest:.0f} GiB; "
        f"{how.name} splits them over the ranks",
        Text(
            f"未切分，每卡需要约 {states:.0f} GiB 模型状态，超过 {largest:.0f} GiB 显存",
            f"not split: about {states:.0f} GiB of states a GPU, more than {largest:.0f} GiB",
        ),
        Text(
            f"启用 {how.name}，把模型状态切分到多张卡（卡数未知）",
            f"use {how.name} to split the states over the GPUs (their number is not known)",
        ),
        parameters=how.parameters,
        snippet=how.snippet,
        variant=how.variant,
        at=how.at,
    )


def _megatron(run: Run) -> Judgement:
    """Megatron, whose optimizer states ms-swift shards unless it is told not to."""
    driven = run.practice("megatron")
    switch = run.setting("use_distributed_optimizer")
    if switch is None or truth(switch.value) is not False or (data_ranks(run) or 1) <= 1:
        return on(driven, "megatron")
    if "muon" in (text(run, "optimizer") or ""):
        return on(driven, "megatron")  # which does not go with it
    return advise(
        run,
        f"each of {data_ranks(run)} data-parallel ranks keeps all optimizer states",
        Text(
            "use_distributed_optimizer 被关闭，优化器状态未切分",
            "use_distributed_optimizer is off: optimizer states are not split",
        ),
        Text(
            "恢复 use_distributed_optimizer: true（默认）",
            "leave use_distributed_optimizer at true, its default",
        ),
        parameters={"use_distributed_optimizer": True},
        variant="megatron",
        at=switch,
        share=0.7,
        impact=Impact(memory=(-60, -30), source=sources.MEGATRON_OPTIMIZER),
    )


_PARTLY_SHARDED = {"shard_grad_op": "fsdp-shard-grad-op", "hybrid_shard": "fsdp-hybrid-shard"}


def _fsdp_variant(run: Run) -> str:
    if run.value("megatron") is True:
        return "megatron-fsdp"
    kind = _PARTLY_SHARDED.get(text(run, "fsdp") or "", "fsdp")
    if run.framework == "flow_factory" and number(run, "fsdp_version") == 2:
        kind = "fsdp2"  # an item of its own there
    return f"{kind}-offload" if run.value("fsdp_offload") is True else kind


def _zero(run: Run, stage: int) -> Judgement:
    setting = run.practice("zero_stage")
    offloads = any(text(run, name) not in (None, "none") for name in _OFFLOADS)
    variant = f"zero{stage}-offload" if offloads and stage >= 2 else f"zero{stage}"
    fit = lighter_fit(run)
    if fit is None:
        return on(setting, variant)
    now = f"ZeRO-{stage}" + (" + offload" if offloads else "")
    then = f"ZeRO-{fit.stage}" + (" + offload" if fit.offload else "")
    how = f"{fit.need:.0f} of {fit.memory:.0f} GiB a GPU at most ({fit.states:.0f} of states)"
    return advise(
        run,
        f"it fits, {how}, and is faster: {_burden(stage, offloads, fit)}",
        Text(f"当前为 {now}，高于所需的档位", f"{now}, heavier than needed"),
        Text(
            f"改用 {then}：估算每卡最多 {fit.need:.0f} GiB（其中模型状态 {fit.states:.0f} GiB），"
            f"显存 {fit.memory:.0f} GiB",
            f"use {then}: by the estimate {how}",
        ),
        parameters=_lighter_parameters(run, fit),
        snippet=stage_snippet(fit.stage),
        variant=variant,
        at=setting,
        share=0.7,
        priority=Priority.MEDIUM,
        impact=_LIGHTER,
    )


_OFFLOADS = ("offload_optimizer", "offload_param")
_LIGHTER = by_class(
    Priority.MEDIUM,
    f"{sources.ZERO}; {sources.ZERO_OFFLOAD}",
    Text("Stage 3 通信量约为 1.5 倍", "stage 3 moves 1.5 times the data"),
)


def lighter_fit(run: Run) -> Optional[Fit]:
    """The lowest stage that holds the run, where that is lighter than the one it uses."""
    stage = number(run, "zero_stage") or 0
    if stage < 1 or run.hardware.weak or run.model.kind != "LLM":
        return None  # what a vision tower holds is not estimated
    offloads = any(text(run, name) not in (None, "none") for name in _OFFLOADS)
    fit = lowest_fit(run)
    if fit is None or (fit.offload and not offloads):
        return None
    current = LADDER.index((max(2, int(stage)), offloads))
    return fit if LADDER.index((fit.stage, fit.offload)) < current else None


def _burden(stage: int, offloads: bool, fit: Fit) -> str:
    """What the present stage costs in every step and ``fit`` does not."""
    if offloads and not fit.offload:
        return "offloaded states cross the PCIe bus in every step"
    return f"stage {stage} gathers the weights anew in every layer"


def _lighter_parameters(run: Run, fit: Fit) -> Optional[dict[str, str]]:
    if run.framework != "swift":
        return None
    return {"deepspeed": f"zero{fit.stage}" + ("_offload" if fit.offload else "")}


def _layers_spread(run: Run) -> Judgement:
    """Layers spread over GPUs by device_map: one GPU computes at a time."""
    setting = run.practice("device_map")
    shown = setting if setting.known else run.launcher.processes
    if (run.hardware.gpus or 1) <= 1 or not fits_each(run):
        return on(shown, "device-map")
    answer = _advise_ranks(run, setting)
    # One process by mistake is what GPU101 reports.
    return answer if setting.known else replace(answer, findings=(), change=None)


def _advise_ranks(run: Run, setting: Setting) -> Judgement:
    return advise(
        run,
        "layers spread by device_map compute one GPU after the other; the model fits each, "
        "so data parallel ranks would all work at once",
        Text(
            "device_map 朴素模型并行，同一时刻只有一张卡在计算",
            "device_map: one GPU computes at a time",
        ),
        Text(
            "模型放得下单卡，改用 DDP 或 ZeRO-2 数据并行", "the model fits a GPU: use DDP or ZeRO-2"
        ),
        snippet=launch(run, run.hardware.gpus or 1),
        variant="device-map",
        at=setting if setting.known else None,
        share=0.3,
    )


def _unsharded(run: Run, count: int) -> Judgement:
    too_large = outgrows_gpu(run)
    states = states_gib(run)
    if run.framework == "swift" and run.model.parameters is None:
        return cannot_tell(
            Text(
                "模型规模未知，无法判断是否需要切分",
                "the size of the model is not known, nor whether it has to be split",
            )
        )
    if too_large is None or states is None:
        return off(Text("每张卡保存完整的模型状态", "every GPU keeps all model states"))
    if not too_large:
        known = memory_gib(run) is not None
        fit = "one GPU" if known else f"a GPU of {ASSUMED_MEMORY_GIB:.0f} GB"
        card = "单卡" if known else f"{ASSUMED_MEMORY_GIB:.0f} GB 的 GPU "
        return off(
            Text(
                f"模型状态约 {states:.0f} GiB，{card}放得下，DDP 即可",
                f"model states of about {states:.0f} GiB fit {fit}: DDP will do",
            )
        )
    stage = 2 if _fits_stage_2(run, count) else 3
    split = (states_gib(run, sharded=True) or states) / count
    if stage == 3 and split >= (memory_gib(run) or states):
        return off(
            Text(
                f"{count} 张卡切分后仍放不下，见 LoRA 建议",
                f"too large for {count} GPUs even when split: adapters are advised",
            )
        )
    limit = memory_gib(run) or ASSUMED_MEMORY_GIB
    how = how_to_shard(run, stage)
    other = "DeepSpeed ZeRO" if how.variant == "fsdp" else "FSDP"
    return advise(
        run,
        f"about {states:.0f} GiB of model states on every rank exceed a GPU of {limit:.0f} GiB; "
        f"{how.name} splits them over {count} ranks",
        Text(
            f"仅用 DDP，每卡需要约 {states:.0f} GiB 模型状态，超过 {limit:.0f} GiB 显存",
            f"DDP alone: about {states:.0f} GiB of states a GPU, more than {limit:.0f} GiB",
        ),
        Text(
            f"启用 {how.name}（或 {other}），把模型状态切分到 {count} 个进程",
            f"use {how.name} (or {other}) to split the states over {count} ranks",
        ),
        parameters=how.parameters,
        snippet=how.snippet,
        variant=how.variant,
        at=how.at,
    )


def _fits_stage_2(run: Run, count: int) -> bool:
    """Whether weights on every rank and the rest split leave a fifth of a GPU free."""
    states = states_gib(run, sharded=True)
    limit = memory_gib(run) or ASSUMED_MEMORY_GIB
    if states is None or tunes_all(run) is False:
        return False
    return states * (2 + 14 / count) / 16 <= 0.8 * limit


@of_training()
def _zero_plus_plus(run: Run) -> Judgement:
    setting = run.practice("zero_hpz_partition_size")
    if setting.known and isinstance(setting.value, int) and setting.value > 1:
        return on(setting)
    if nodes(run) == 1:
        return cannot_apply(_ONE_NODE)
    stage = run.practice("zero_stage")
    if stage.known and stage.value != 3:
        return cannot_apply(Text("ZeRO++ 只用于 ZeRO-3", "ZeRO++ goes with ZeRO-3 only"))
    count = nodes(run)
    if count is None or not stage.known or not setting.known:
        return cannot_tell(Text("节点数或 ZeRO 阶段未知", "nodes or ZeRO stage are not known"))
    size = run.launcher.processes.value
    if not isinstance(size, int) or size < 2:
        return cannot_tell(run.launcher.processes)
    return advise(
        run,
        f"ZeRO-3 gathers each layer's weights across {count} nodes; this keeps it inside the node",
        Text(f"{count} 机 ZeRO-3，权重跨节点收集", f"ZeRO-3 gathers weights across {count} nodes"),
        Text(
            f"启用 ZeRO++：zero_hpz_partition_size 设为每机卡数 {size}",
            f"use ZeRO++ with zero_hpz_partition_size = {size}, the GPUs of a node",
        ),
        practices=_hpz_parameter(run, size),
        snippet=Snippet(
            f'set "zero_hpz_partition_size": {size} in zero_optimization',
            f'"zero_hpz_partition_size": {size}',
            "json",
        ),
    )


def _hpz_parameter(run: Run, size: int) -> Optional[dict[str, int]]:
    """ms-swift writes its parameter into the configuration that ``--deepspeed`` names."""
    if run.framework == "swift" and run.setting("deepspeed") is None:
        return None
    return {"zero_hpz_partition_size": size}


_A = "general"
_S = "swift"
_L = "llamafactory"
_H = "transformers"
_V = "videox-fun"
_F = "flow-factory"
_GRADIENTS = "fsdp-shard-grad-op|fsdp-shard-grad-op-offload"
_HYBRID = "fsdp-hybrid-shard|fsdp-hybrid-shard-offload"
_KEPT = "fsdp|fsdp-shard-grad-op|fsdp-hybrid-shard"
_SECOND = "fsdp2|fsdp2-offload"
_MOVED = "fsdp-offload|fsdp-shard-grad-op-offload|fsdp-hybrid-shard-offload"

_ZERO_ITEMS = (
    Item(_A, "A", "fsdp", 2, "sharding", f"{_KEPT}|{_MOVED}|{_SECOND}|megatron-fsdp"),
    Item(
        _A,
        "A",
        "deepspeed-zero",
        2,
        "sharding",
        "zero1|zero2|zero3|zero2-offload|zero3-offload",
    ),
    Item(_S, "D", "zero2", 6, "sharding", "zero1|zero2"),
    Item(_S, "D", "zero3", 6, "sharding", "zero3"),
    Item(_S, "D", "zero2-offload", 6, "sharding", "zero2-offload"),
    Item(_S, "D", "zero3-offload", 6, "sharding", "zero3-offload"),
    Item(_S, "D", "fsdp2", 6, "sharding", f"{_KEPT}|{_MOVED}"),
    Item(_S, "D", "device-map", 6, "sharding", "device-map"),
    Item(_S, "D", "megatron", 6, "sharding", "megatron|megatron-fsdp"),
    Item(_L, "D", "zero2", 4, "sharding", "zero1|zero2|zero2-offload"),
    Item(_L, "D", "zero3", 4, "sharding", "zero3"),
    Item(_L, "D", "fsdp", 4, "sharding", _KEPT),
    Item(_L, "D", "zero3-offload", 4, "sharding", "zero3-offload"),
    Item(_L, "D", "fsdp-offload", 4, "sharding", _MOVED),
    Item(_L, "D", "megatron-core", 4, "sharding", "megatron|megatron-fsdp"),
    Item(_H, "E", "fsdp-full-shard", 5, "sharding", "fsdp|fsdp-offload"),
    Item(_H, "E", "fsdp-shard-grad-op", 5, "sharding", _GRADIENTS),
    Item(_H, "E", "fsdp-hybrid-shard", 5, "sharding", _HYBRID),
    Item(_H, "E", "zero2", 5, "sharding", "zero1|zero2|zero2-offload"),
    Item(_H, "E", "zero3", 5, "sharding", "zero3|zero3-offload"),
    Item(_F, "D", "zero1", 3, "sharding", "zero1"),
    Item(_F, "D", "zero2", 3, "sharding", "zero2|zero2-offload"),
    Item(_F, "D", "zero3", 3, "sharding", "zero3|zero3-offload"),
    Item(_F, "D", "fsdp-full-shard", 3, "sharding", f"{_KEPT}|{_MOVED}"),
    Item(_F, "D", "fsdp2", 3, "sharding", _SECOND),
    Item(_V, "D", "zero2", 4, "sharding", "zero1|zero2|zero2-offload"),
    Item(_V, "D", "zero3", 4, "sharding", "zero3|zero3-offload"),
    Item(_V, "D", "fsdp-full-shard", 4, "sharding", f"{_KEPT}|{_MOVED}"),
)

_SHARD_EXAMPLE = Example(
    "swift",
    "train.sh",
    "NPROC_PER_NODE=8 swift sft \\\n    --model Qwen/Qwen2.5-14B-Instruct \\\n"
    "    --tuner_type full \\\n    --dataset data/train.jsonl\n",
    "NPROC_PER_NODE=8 swift sft \\\n    --model Qwen/Qwen2.5-14B-Instruct \\\n"
    "    --tuner_type full \\\n    --deepspeed zero3 \\\n    --dataset data/train.jsonl\n",
)
_ZPP_COMMON = (
    "NNODES=2 NODE_RANK=$RANK MASTER_ADDR=node0 NPROC_PER_NODE=8 swift sft \\\n"
    "    --model Qwen/Qwen2.5-72B-Instruct \\\n    --tuner_type full \\\n"
    "    --deepspeed zero3 \\\n"
)

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU102",
        "sharded-states",
        Text("模型状态分片（ZeRO / FSDP）", "Sharded model states (ZeRO, FSDP)"),
        Priority.HIGH,
        sharding,
        why="Mixed precision with Adam takes 16 bytes a trained parameter. Under plain DDP "
        "every rank keeps all of them; ZeRO and FSDP keep a share on each.",
        fix="Use the lowest stage that fits: ZeRO-2 for LoRA, ZeRO-3 or FSDP for full tuning "
        "of a model whose states exceed a GPU.",
        ignore="When the states fit one GPU: plain DDP moves the least data.",
        items=_ZERO_ITEMS,
        impact=Impact(
            memory=(-88, -40),
            note=Text(
                "8 卡 ZeRO-3 的模型状态降至 1/8",
                "with 8 ranks ZeRO-3 keeps an eighth of the states",
            ),
            source=sources.ZERO,
        ),
        difficulty="medium",
        examples=(_SHARD_EXAMPLE,),
        sources=(sources.ZERO, sources.PYTORCH_FSDP, sources.SWIFT_ARGUMENTS),
    ),
    Check(
        "GPU108",
        "zero-plus-plus",
        Text("ZeRO++ 节点内二次分片", "ZeRO++ secondary partition"),
        Priority.MEDIUM,
        _zero_plus_plus,
        why="ZeRO-3 gathers every layer's weights over all ranks; between nodes the network "
        "is many times slower than NVLink.",
        fix="Set zero_hpz_partition_size to the GPUs of a node.",
        ignore="When memory is short: the second partition keeps another copy of the weights "
        "per node.",
        items=(
            Item(_S, "D", "zero-plus-plus", 1),
            Item("videox-fun", "I", "zero-plus-plus", 1),
            Item("flow-factory", "J", "zero-plus-plus", 0.5),
        ),
        impact=by_class(
            Priority.MEDIUM,
            sources.ZERO_PLUS_PLUS,
            Text(
                "ZeRO++ 全部三项在 384 卡上最高 2.16 倍",
                "all three parts of ZeRO++ gave up to 2.16 times the throughput on 384 GPUs",
            ),
        ),
        examples=(
            Example(
                "swift",
                "train.sh",
                _ZPP_COMMON + "    --dataset data/train.jsonl\n",
                _ZPP_COMMON
                + "    --zero_hpz_partition_size 8 \\\n    --dataset data/train.jsonl\n",
            ),
        ),
        sources=(sources.ZERO_PLUS_PLUS, sources.SWIFT_ARGUMENTS),
    ),
)
