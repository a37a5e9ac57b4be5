"""GPU1xx: parallelism and training framework."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    Snippet,
    advise,
    cannot_apply,
    cannot_tell,
    of_training,
    off,
    on,
    prefixed,
    seen,
)
from flake8_gpu_training.checks._programs import first_call, imports
from flake8_gpu_training.checks._scale import (
    ASSUMED_MEMORY_GIB,
    gpus,
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
from flake8_gpu_training.checks.base import (
    Check,
    Example,
    Impact,
    Item,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Setting
from flake8_gpu_training.frameworks.registry import framework_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Place, PlaceKind, Run
from flake8_gpu_training.stages import LADDER, Fit, lowest_fit

_ONE_GPU = Text("只用一张 GPU", "the run uses one GPU")
_ONE_NODE = Text("单机训练", "the run uses one node")
_NO_PROCESSES = Text("启动的进程数未知", "how many processes are started is not known")
_LONG_CONTEXT = 131072  # tokens; ms-swift's guide turns to sequence parallelism from 128K on


def _sharded(run: Run) -> bool:
    return (
        (number(run, "zero_stage") or 0) >= 1
        or text(run, "fsdp") not in (None, "none", "no_shard")
        or run.value("megatron") is True
    )


@of_training()
def _data_parallel(run: Run) -> Judgement:
    ddp = run.practice("ddp")
    count = ranks(run)
    if ddp.known and ddp.value is True:
        return on(ddp)
    if count is not None and count > 1:
        return on(run.launcher.processes)
    if count is None:
        return cannot_tell(_NO_PROCESSES)
    asked = run.hardware.gpus
    if asked is None or asked <= 1:
        return cannot_apply(_ONE_GPU)
    if spreads_layers(run):
        return _spread_by_swift(run, asked) or off(
            Text("模型按层分布在多卡上（device_map）", "device_map spreads the layers")
        )
    if is_ray(run) or (run.framework == "generic" and not _trains_in_one_process(run)):
        return cannot_tell(_NO_PROCESSES)
    return advise(
        _placed_at_command(run),
        _what_one_process_does(run, asked),
        Text(f"申请了 {asked} 张 GPU，但只启动了一个进程", f"{asked} GPUs, but a single process"),
        Text(
            f"用 torchrun 启动 {asked} 个进程（每卡一个），使用 DDP",
            f"start {asked} processes with torchrun, one a GPU (DDP)",
        ),
        parameters=None,
        snippet=_launch(run, asked),
    )


_STARTS_ITS_OWN = ("ray", "lightning", "pytorch_lightning", "deepspeed", "torch.multiprocessing")


def _trains_in_one_process(run: Run) -> bool:
    """Whether a plain program has its training loop in sight and starts no processes."""
    loops = any(loop.trains for program in run.python for loop in program.loops)
    return loops and not run.is_open and imports(run, *_STARTS_ITS_OWN) is None


def _placed_at_command(run: Run) -> Run:
    """``run`` with its command as place: that is where processes are asked for."""
    if run.command is None:
        return run
    place = Place(PlaceKind.FLAGS, run.command.location, command=run.command)
    return replace(run, place=place)


def _what_one_process_does(run: Run, count: int) -> str:
    if run.framework == "hf_trainer" and run.launcher.name == "python":
        return f"one process copies model and batch to {count} GPUs in every step (nn.DataParallel)"
    return f"the one process uses one of {count} GPUs"


def _spread_by_swift(run: Run, count: int) -> Optional[Judgement]:
    """ms-swift started as one process that sees several GPUs, though each could hold the model.

    It then loads the model with ``device_map="auto"`` (swift/model/utils.py).
    """
    if text(run, "device_map") in (None, "none") and _is_refused(run):
        return None  # GPU022 says it
    states = states_gib(run)
    room = memory_gib(run) or _SMALL_MEMORY_GIB
    if text(run, "device_map") not in (None, "none") or states is None or states > 0.8 * room:
        return None
    return advise(
        run,
        f"ms-swift's one process spreads the layers over {count} GPUs, of which one computes "
        f"at a time, though the model ({states:.0f} GiB) fits each",
        Text(
            f"一个进程占用 {count} 张卡（device_map=auto），同一时刻只有一张卡在计算",
            f"one process spreads the layers over {count} GPUs (device_map=auto); "
            "one computes at a time",
        ),
        Text(
            f"设置 NPROC_PER_NODE={count}，每卡一个进程（模型约 {states:.0f} GiB，单卡放得下）",
            f"set NPROC_PER_NODE={count}: one process a GPU, data parallel; the model's "
            f"{states:.0f} GiB fit each",
        ),
        snippet=_launch(run, count),
    )


def _is_refused(run: Run) -> bool:
    if (number(run, "zero_stage") or 0) >= 1 or text(run, "fsdp") not in (None, "none"):
        return True
    return run.value("liger_kernel") is True


_SMALL_MEMORY_GIB = 24.0  # judged by where the GPU is not known: the smallest usual for this


def _launch(run: Run, count: int) -> Snippet:
    if run.framework == "swift":
        written = f"NPROC_PER_NODE={count}"
        return Snippet(f"set {written}", f"{written} swift sft …", "bash", prefixed(run, count))
    written = f"torchrun --nproc_per_node={count} {run.entry or 'train.py'}"
    return Snippet(f"launch with torchrun --nproc_per_node={count}", written, "bash")


@of_training()
def _sharding(run: Run) -> Judgement:
    stage, fsdp = run.practice("zero_stage"), run.practice("fsdp")
    if run.value("megatron") is True:
        return on(run.practice("megatron"), "megatron")
    if fsdp.known and text(run, "fsdp") not in (None, "none", "no_shard"):
        return on(fsdp, "fsdp")
    if stage.known and isinstance(stage.value, int) and stage.value >= 1:
        return _zero(run, stage.value)
    count = ranks(run)
    if run.hardware.gpus == 1 or (count == 1 and (run.hardware.gpus or 1) == 1):
        return cannot_apply(_ONE_GPU)
    if spreads_layers(run):
        return _layers_spread(run)
    if not stage.known or not fsdp.known:
        return cannot_tell(stage if not stage.known else fsdp)
    if count is None or is_ray(run):
        return cannot_tell(_NO_PROCESSES)
    return _unsharded(run, max(count, run.hardware.gpus or 1))


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
        snippet=_stage_snippet(fit.stage),
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


def _stage_parameters(run: Run, stage: int) -> Optional[dict[str, str]]:
    """ms-swift names the stages; the other frameworks want a file."""
    return {"deepspeed": f"zero{stage}"} if run.framework == "swift" else None


def _stage_snippet(stage: int) -> Snippet:
    body = (
        f'{{\n  "zero_optimization": {{"stage": {stage}, "overlap_comm": true}},\n'
        '  "bf16": {"enabled": "auto"},\n'
        '  "train_micro_batch_size_per_gpu": "auto",\n'
        '  "gradient_accumulation_steps": "auto"\n}'
    )
    return Snippet(
        f'pass a DeepSpeed config with "zero_optimization": {{"stage": {stage}}}',
        body,
        "json",
    )


def _layers_spread(run: Run) -> Judgement:
    """Layers spread over GPUs by device_map: one GPU computes at a time."""
    setting = run.practice("device_map")
    shown = setting if setting.known else run.launcher.processes
    if (run.hardware.gpus or 1) <= 1 or outgrows_gpu(run) is not False:
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
        snippet=_launch(run, run.hardware.gpus or 1),
        variant="device-map",
        at=setting if setting.known else None,
        share=0.3,
    )


def _unsharded(run: Run, count: int) -> Judgement:
    too_large = outgrows_gpu(run)
    states = states_gib(run)
    if too_large is None or states is None:
        return off(Text("每张卡保存完整的模型状态", "every GPU keeps all model states"))
    if not too_large:
        return off(
            Text(
                f"模型状态约 {states:.0f} GiB，单卡放得下，DDP 即可",
                f"model states of about {states:.0f} GiB fit one GPU: DDP will do",
            )
        )
    stage = 2 if _fits_stage_2(run, count) else 3
    if stage == 3 and states / count >= (memory_gib(run) or states):
        return off(
            Text(
                f"{count} 张卡切分后仍放不下，见 LoRA 建议",
                f"too large for {count} GPUs even when split: adapters are advised",
            )
        )
    limit = memory_gib(run) or ASSUMED_MEMORY_GIB
    return advise(
        run,
        f"about {states:.0f} GiB of model states on every rank exceed a GPU of {limit:.0f} GiB; "
        f"ZeRO-{stage} splits them over {count} ranks",
        Text(
            f"仅用 DDP，每卡需要约 {states:.0f} GiB 模型状态，超过 {limit:.0f} GiB 显存",
            f"DDP alone: about {states:.0f} GiB of states a GPU, more than {limit:.0f} GiB",
        ),
        Text(
            f"启用 DeepSpeed ZeRO-{stage}（或 FSDP），把模型状态切分到 {count} 个进程",
            f"use DeepSpeed ZeRO-{stage} (or FSDP) to split the states over {count} ranks",
        ),
        parameters=_stage_parameters(run, stage),
        snippet=_stage_snippet(stage),
        variant=f"zero{stage}",
    )


def _fits_stage_2(run: Run, count: int) -> bool:
    """Whether weights on every rank and the rest split leave a fifth of a GPU free."""
    states = states_gib(run)
    limit = memory_gib(run) or ASSUMED_MEMORY_GIB
    if states is None or tunes_all(run) is False:
        return False
    return states * (2 + 14 / count) / 16 <= 0.8 * limit


def _degree(run: Run, practice: str) -> Optional[Judgement]:
    """The answer where a parallel degree decides, or None when it is known to be 1."""
    setting = run.practice(practice)
    if not setting.known and not run.is_open and not _has_parameter(run, practice):
        return cannot_apply(_ONE_GPU) if gpus(run) == 1 else None
    if setting.known:
        value = setting.value
        if isinstance(value, (int, float)) and value > 1:
            return on(setting)
        return cannot_apply(_ONE_GPU) if gpus(run) == 1 else None
    return cannot_apply(_ONE_GPU) if gpus(run) == 1 else cannot_tell(setting)


def _has_parameter(run: Run, practice: str) -> bool:
    """Whether something could set the practice: a parameter, or one whose value we miss."""
    return practice in run.profile or practice in framework_of(run.framework).spellings_of(run)


@of_training()
def _tensor_parallel(run: Run) -> Judgement:
    call = first_call(
        run,
        "torch.distributed.tensor.parallel.parallelize_module",
        ".ColumnParallelLinear",
        ".RowParallelLinear",
    )
    if call is not None:
        return seen(call)
    if (number(run, "autotp_size") or 1) > 1:
        return on(run.practice("autotp_size"))
    return _degree(run, "tensor_parallel") or off(
        Text(
            "未用张量并行；模型能用 ZeRO/FSDP 放下时不需要",
            "no tensor parallelism; not needed where ZeRO or FSDP makes the model fit",
        )
    )


@of_training()
def _pipeline_parallel(run: Run) -> Judgement:
    call = first_call(
        run,
        "deepspeed.pipe.PipelineModule",
        ".PipelineModule",
        "torch.distributed.pipelining.pipeline",
        "torch.distributed.pipelining.PipelineStage",
    )
    if call is not None:
        return seen(call)
    return _degree(run, "pipeline_parallel") or off(
        Text(
            "未用流水线并行；跨多机的超大模型才需要",
            "no pipeline parallelism; for very large models across nodes",
        )
    )


@of_training()
def _sequence_parallel(run: Run) -> Judgement:
    answer = _degree(run, "sequence_parallel")
    if answer is not None:
        return answer
    length = number(run, "max_length")
    count = gpus(run)
    if length is None or length < _LONG_CONTEXT or count is None:
        return off(
            Text(
                "未用序列并行；序列超过 128K 时才需要",
                "no sequence parallelism; for sequences above 128K tokens",
            )
        )
    degree = min(8, count)
    return advise(
        run,
        f"activations of {int(length)} tokens grow with the length; "
        f"sequence parallelism splits them over {degree} GPUs",
        Text(f"序列长度 {int(length)}，未用序列并行", f"{int(length)} tokens a sample on one GPU"),
        Text(
            f"启用序列并行（{degree}），每卡只保存 1/{degree} 的激活",
            f"split each sequence over {degree} GPUs",
        ),
        practices={"sequence_parallel": degree},
    )


@of_training()
def _expert_parallel(run: Run) -> Judgement:
    setting = run.practice("expert_parallel")
    if setting.known and isinstance(setting.value, int) and setting.value > 1:
        return on(setting)
    if run.model.name is None and run.model.parameters is None:
        return cannot_tell(Text("模型未知，无法判断是否为 MoE", "the model is not known"))
    if not run.model.is_moe:
        return cannot_apply(Text("不是 MoE 模型", "not a mixture of experts"))
    if gpus(run) == 1:
        return cannot_apply(_ONE_GPU)
    count = ranks(run)
    if run.value("megatron") is not True or not setting.known or count is None:
        return off(
            Text(
                "MoE 模型未用专家并行；该后端没有此功能",
                "experts are not spread: this back end cannot do it",
            )
        )
    degree = min(8, count)
    return advise(
        run,
        f"every GPU holds all experts; expert parallelism spreads them over {degree} GPUs",
        Text("MoE 模型的全部专家都在每张卡上", "every GPU holds all experts"),
        Text(f"启用专家并行 {degree}", f"spread the experts over {degree} GPUs"),
        practices={"expert_parallel": degree},
    )


@of_training()
def _framework(run: Run) -> Judgement:
    """Which framework drives the run, and whether it is enough for the model."""
    if run.value("megatron") is True:
        return on(run.practice("megatron"), "megatron")
    for module, variant in (("colossalai", "colossalai"), ("vescale", "vescale")):
        found = imports(run, module)
        if found is not None:
            return on(f"import {found.dotted}", variant)
    if (number(run, "zero_stage") or 0) >= 1:
        return on(run.practice("zero_stage"), "deepspeed")
    if run.deepspeed is not None:
        return on(f"DeepSpeed {run.deepspeed.name or run.deepspeed.path}", "deepspeed")
    if text(run, "fsdp") not in (None, "none", "no_shard"):
        return on(run.practice("fsdp"), "pytorch-fsdp")
    if _uses_accelerate(run):
        return _accelerate(run)
    if run.single_file or ranks(run) is None:
        return cannot_tell(_NO_PROCESSES)
    if gpus(run) == 1:
        return cannot_apply(_ONE_GPU)
    return off(Text("原生 PyTorch，未用训练框架", "plain PyTorch without a training framework"))


def _accelerate(run: Run) -> Judgement:
    """Accelerate alone: enough unless the states outgrow a GPU (which GPU102 reports)."""
    answer = on("Accelerate", "accelerate")
    if _sharded(run) or (ranks(run) or 1) == 1 or outgrows_gpu(run) is not True:
        return answer
    return replace(
        answer,
        status=Status.PARTIAL,
        share=0.5,
        action=Text(
            "模型状态超过单卡显存，请用 DeepSpeed 或 FSDP 驱动",
            "the states outgrow a GPU: let DeepSpeed or FSDP drive the run",
        ),
    )


# Their trainers build on Accelerate: transformers' Trainer since 4.30, and what extends it.
_ON_ACCELERATE = ("hf_trainer", "swift", "llamafactory", "videox_fun", "flow_factory")


def _uses_accelerate(run: Run) -> bool:
    return (
        run.framework in _ON_ACCELERATE
        or run.launcher.name == "accelerate"
        or first_call(run, "accelerate.Accelerator") is not None
    )


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


@of_training()
def _auto_tp(run: Run) -> Judgement:
    setting = run.practice("autotp_size")
    if setting.known and isinstance(setting.value, int) and setting.value > 1:
        return on(setting)
    if gpus(run) == 1:
        return cannot_apply(_ONE_GPU)
    if run.value("megatron") is True:
        return cannot_apply(Text("Megatron 有自己的张量并行", "Megatron has its own"))
    if tunes_all(run) is False:
        return cannot_apply(Text("AutoTP 只支持全参训练", "AutoTP trains full models only"))
    stage = run.practice("zero_stage")
    if stage.known and stage.value == 3:
        return cannot_apply(Text("AutoTP 不支持 ZeRO-3", "AutoTP goes with stages 0 to 2"))
    if not setting.known and (run.is_open or _has_parameter(run, "autotp_size")):
        return cannot_tell(setting)
    return off(Text("未用 AutoTP", "AutoTP is off"))


_A = "general"
_S = "swift"

_ZERO_ITEMS = (
    Item(_A, "A", "fsdp", 2, "sharding", "fsdp"),
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
    Item(_S, "D", "fsdp2", 6, "sharding", "fsdp"),
    Item(_S, "D", "device-map", 6, "sharding", "device-map"),
    Item(_S, "D", "megatron", 6, "sharding", "megatron"),
)

_SHARD_EXAMPLE = Example(
    "swift",
    "train.sh",
    "NPROC_PER_NODE=8 swift sft \\\n    --model Qwen/Qwen2.5-7B-Instruct \\\n"
    "    --tuner_type full \\\n    --dataset data/train.jsonl\n",
    "NPROC_PER_NODE=8 swift sft \\\n    --model Qwen/Qwen2.5-7B-Instruct \\\n"
    "    --tuner_type full \\\n    --deepspeed zero3 \\\n    --dataset data/train.jsonl\n",
)
_ZPP_COMMON = (
    "NNODES=2 NODE_RANK=$RANK MASTER_ADDR=node0 NPROC_PER_NODE=8 swift sft \\\n"
    "    --model Qwen/Qwen2.5-72B-Instruct \\\n    --tuner_type full \\\n"
    "    --deepspeed zero3 \\\n"
)

_EXPERTS = (
    "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-30B-A3B-Instruct-2507 \\\n"
    "    --tuner_type lora {}--dataset data/train.jsonl\n"
)

_ONE_PROCESS = (
    "CUDA_VISIBLE_DEVICES=0,1,2,3 {}swift sft --model Qwen/Qwen2.5-7B-Instruct \\\n"
    "    --tuner_type lora --dataset data/train.jsonl\n"
)
_LAUNCHED = "CUDA_VISIBLE_DEVICES=0,1,2,3 {} train.py\n"
_TRAINED = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B-Instruct")
args = TrainingArguments(output_dir="out", bf16=True, gradient_checkpointing=True)
Trainer(model=model, args=args, train_dataset=train_dataset).train()
"""

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU101",
        "data-parallel",
        Text("DDP 数据并行", "Data parallelism"),
        Priority.HIGH,
        _data_parallel,
        why="A single process keeps one GPU busy; the others of the job idle, or are fed "
        "through nn.DataParallel, which copies the model and the batch in every step.",
        fix="Start one process a GPU with torchrun, accelerate or the framework's own launcher.",
        ignore="When the other GPUs serve something else, an inference engine for example.",
        items=(Item(_A, "A", "ddp", 1),),
        examples=(
            Example(
                "swift",
                "train.sh",
                _ONE_PROCESS.format(""),
                _ONE_PROCESS.format("NPROC_PER_NODE=4 "),
            ),
            Example(
                "hf_trainer",
                "train.sh",
                _LAUNCHED.format("python"),
                _LAUNCHED.format("torchrun --nproc_per_node=4"),
                (("train.py", _TRAINED),),
            ),
        ),
        impact=Impact(
            throughput=(80, 700),
            note=Text("接近线性扩展，取决于卡数", "near-linear in the number of GPUs"),
            source=sources.PYTORCH_DDP_PAPER,
        ),
        sources=(sources.PYTORCH_DDP_PAPER, sources.HF_MANY_GPUS),
    ),
    Check(
        "GPU102",
        "sharded-states",
        Text("模型状态分片（ZeRO / FSDP）", "Sharded model states (ZeRO, FSDP)"),
        Priority.HIGH,
        _sharding,
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
        "GPU103",
        "tensor-parallel",
        Text("张量并行", "Tensor parallelism"),
        Priority.LOW,
        _tensor_parallel,
        why="A layer too large for one GPU must be split inside the layer.",
        fix="Set the tensor parallel size to at most the GPUs of one node.",
        items=(Item(_A, "A", "tensor-parallel", 1),),
        difficulty="high",
        sources=(sources.MEGATRON,),
    ),
    Check(
        "GPU104",
        "pipeline-parallel",
        Text("流水线并行", "Pipeline parallelism"),
        Priority.LOW,
        _pipeline_parallel,
        why="Across nodes a pipeline moves only the activations between stages.",
        fix="Set the pipeline parallel size once tensor parallelism fills the node.",
        items=(Item(_A, "A", "pipeline-parallel", 1),),
        difficulty="high",
        sources=(sources.MEGATRON,),
    ),
    Check(
        "GPU105",
        "sequence-parallel",
        Text("序列并行", "Sequence parallelism"),
        Priority.HIGH,
        _sequence_parallel,
        why="Activations grow with the sequence; above 128K tokens one GPU cannot hold them.",
        fix="Set the sequence parallel size to 4 or 8, together with flash attention.",
        items=(
            Item(_A, "A", "sequence-parallel", 1),
            Item(_S, "F", "sequence-parallel", 1),
        ),
        impact=Impact(
            memory=(-85, -50),
            note=Text("每卡激活约为 1/N", "each GPU keeps about 1/N of the activations"),
            source=sources.ULYSSES,
        ),
        difficulty="medium",
        examples=(
            Example(
                "swift",
                "train.sh",
                "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora \\\n"
                "    --attn_impl flash_attn --max_length 262144 --deepspeed zero3_offload\n",
                "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora \\\n"
                "    --attn_impl flash_attn --max_length 262144 --deepspeed zero3_offload \\\n"
                "    --sequence_parallel_size 8\n",
            ),
        ),
        sources=(sources.ULYSSES, sources.SWIFT_DOCS),
    ),
    Check(
        "GPU106",
        "expert-parallel",
        Text("专家并行", "Expert parallelism"),
        Priority.MEDIUM,
        _expert_parallel,
        why="A mixture of experts keeps most weights idle; without expert parallelism every "
        "GPU holds all of them.",
        fix="Set the expert parallel size (Megatron) so that the experts are spread.",
        items=(Item(_A, "A", "expert-parallel", 1),),
        impact=by_class(Priority.MEDIUM, sources.MEGATRON_MOE),
        difficulty="medium",
        examples=(
            Example(
                "swift",
                "train.sh",
                _EXPERTS.format(""),
                _EXPERTS.format("--expert_model_parallel_size 8 "),
            ),
        ),
        sources=(sources.MEGATRON,),
    ),
    Check(
        "GPU107",
        "training-framework",
        Text("训练框架", "Training framework"),
        Priority.MEDIUM,
        _framework,
        why="A training framework brings sharding, precision and communication that a "
        "hand-written loop lacks.",
        fix="Use Accelerate for models that fit a GPU, DeepSpeed or FSDP above, Megatron "
        "for pre-training.",
        items=tuple(
            Item(_A, "B", name, 6, "framework", name)
            for name in (
                "deepspeed",
                "megatron",
                "accelerate",
                "colossalai",
                "pytorch-fsdp",
                "vescale",
            )
        ),
        sources=(sources.HF_MANY_GPUS,),
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
        items=(Item(_S, "D", "zero-plus-plus", 1),),
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
    Check(
        "GPU109",
        "auto-tensor-parallel",
        Text("DeepSpeed AutoTP", "DeepSpeed AutoTP"),
        Priority.LOW,
        _auto_tp,
        why="AutoTP splits a Transformers model inside its layers without changes to it.",
        fix="Set the AutoTP size with ZeRO stage 0, 1 or 2.",
        items=(Item(_S, "D", "autotp", 1),),
        difficulty="medium",
        sources=(sources.SWIFT_ARGUMENTS,),
    ),
)
