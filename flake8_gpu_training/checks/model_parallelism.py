"""GPU103 to GPU106, GPU109, GPU112: layers, sequences and experts split over GPUs."""

from __future__ import annotations

from typing import Optional

from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks import _videox_shared as videox
from flake8_gpu_training.checks._by_framework import by_framework
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
from flake8_gpu_training.checks._programs import calls, first_call
from flake8_gpu_training.checks._scale import gpus, number, ranks, text, tunes_all
from flake8_gpu_training.checks._settings import is_on, parameter
from flake8_gpu_training.checks._splitting import needed_split
from flake8_gpu_training.checks._starting import single
from flake8_gpu_training.checks._swift import missing, of_megatron
from flake8_gpu_training.checks.base import Check, Example, Impact, Item, Judgement, Priority
from flake8_gpu_training.facts import Call, Setting
from flake8_gpu_training.frameworks.registry import framework_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_LONG_CONTEXT = 131072  # tokens; ms-swift's guide turns to sequence parallelism from 128K on


def _degree(run: Run, practice: str) -> Optional[Judgement]:
    """The answer where a parallel degree decides, or None when it is known to be 1."""
    setting = run.practice(practice)
    if not setting.known and not run.is_open and not _has_parameter(run, practice):
        return cannot_apply(single(run)) if gpus(run) == 1 else None
    if setting.known:
        value = setting.value
        if isinstance(value, (int, float)) and value > 1:
            return on(setting)
        return cannot_apply(single(run)) if gpus(run) == 1 else None
    return cannot_apply(single(run)) if gpus(run) == 1 else cannot_tell(setting)


def _has_parameter(run: Run, practice: str) -> bool:
    """Whether something could set the practice: a parameter, or one whose value we miss."""
    return practice in run.profile or practice in framework_of(run.framework).spellings_of(run)


@of_training()
def _tensor_parallel(run: Run) -> Judgement:
    call = first_call(run, ".parallelize_module", ".ColumnParallelLinear", ".RowParallelLinear")
    if call is not None:
        return seen(call)
    planned = _planned(run)
    if planned is not None:
        return on(planned)
    if (number(run, "autotp_size") or 1) > 1:
        return on(run.practice("autotp_size"))
    return (
        _degree(run, "tensor_parallel")
        or _advise_tensor_parallel(run)
        or off(
            Text(
                "未用张量并行；模型能用 ZeRO/FSDP 放下时不需要",
                "no tensor parallelism; not needed where ZeRO or FSDP makes the model fit",
            )
        )
    )


def _planned(run: Run) -> Optional[Setting]:
    """The plan by which Transformers splits the layers of a model that it loads."""
    for call in calls(run, ".from_pretrained"):
        plan = call.keywords.get("tp_plan")
        if plan is not None and plan.value is not None:
            return Setting("tp_plan", plan.value, plan.location, text=plan.text)
    return None


def _advise_tensor_parallel(run: Run) -> Optional[Judgement]:
    split = needed_split(run)
    if split is None or split.tensor == 1 or number(run, "tensor_parallel") != 1:
        return None
    return advise(
        run,
        f"{split.reason}; Megatron splits each layer over {split.tensor} GPUs",
        Text(
            f"未切分时每卡约需 {split.unsplit:.0f} GiB，超过 {split.memory:.0f} GiB 显存",
            f"about {split.unsplit:.0f} GiB a GPU, more than {split.memory:.0f} GiB",
        ),
        Text(f"启用张量并行 {split.tensor}", f"split the layers over {split.tensor} GPUs"),
        practices={"tensor_parallel": split.tensor},
        priority=Priority.HIGH,
        impact=_FITS,
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
    return (
        _degree(run, "pipeline_parallel")
        or _advise_pipeline(run)
        or off(
            Text(
                "未用流水线并行；跨多机的超大模型才需要",
                "no pipeline parallelism; for very large models across nodes",
            )
        )
    )


def _advise_pipeline(run: Run) -> Optional[Judgement]:
    split = needed_split(run)
    if split is None or split.pipeline == 1 or number(run, "pipeline_parallel") != 1:
        return None
    return advise(
        run,
        f"{split.reason}; tensor parallelism of {split.tensor} alone does not make it fit",
        Text(
            f"张量并行 {split.tensor} 后仍放不下",
            f"tensor parallelism of {split.tensor} is not enough",
        ),
        Text(f"启用流水线并行 {split.pipeline}", f"use {split.pipeline} pipeline stages"),
        practices={"pipeline_parallel": split.pipeline},
        priority=Priority.HIGH,
        impact=_FITS,
    )


_FITS = Impact(
    memory=(-88, -50),
    note=Text("否则模型放不下", "the model does not fit otherwise"),
    source=sources.MEGATRON_OPTIMIZER,
)
_LONG_SEQUENCES = (
    ".context_parallel",
    "deepspeed.sequence.layer.DistributedAttention",
    ".UlyssesSPAttentionHF.register_with_transformers",
    ".substitute_hf_flash_attn",
    ".ring_flash_attn_func",
    ".zigzag_ring_flash_attn_func",
    ".LongContextAttention",
)


# ms-swift 3.12.6 and 4.6.0, arguments/rlhf_args.py, _check_sequence_parallel.
_WHOLE_SEQUENCES = ("kto", "cpo", "simpo", "orpo", "rm", "ppo", "gkd")


# ms-swift 4.6.0, megatron/arguments/megatron_args.py, and Megatron itself turn it off then.
_NO_EFFECT = Text("张量并行为 1 时不起作用", "no effect while tensor parallelism is 1")


@of_training()
def _sequence_parallel(run: Run) -> Judgement:
    call = first_call(run, *_LONG_SEQUENCES)
    if call is not None:
        return seen(call)
    how = text(run, "algorithm")
    split = (number(run, "sequence_parallel") or 1) > 1
    if run.framework == "swift" and how in _WHOLE_SEQUENCES and not split and not of_megatron(run):
        return cannot_apply(Text(f"{how} 不支持序列并行", f"{how} does not go with it"))
    answer = _degree(run, "sequence_parallel")
    if answer is not None:
        return answer
    length = number(run, "max_length")
    count = gpus(run)
    if length is None or length < _LONG_CONTEXT or count is None:
        switch = parameter(run, "sequence_parallel")
        if of_megatron(run) and switch.explicit and is_on(switch):
            return off(_NO_EFFECT, switch)
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
def _sequence_parallel_layers(run: Run) -> Judgement:
    """Megatron's: what tensor parallelism leaves whole is split along the sequence."""
    if not of_megatron(run):
        return cannot_apply(Text("仅用于 Megatron", "for Megatron only"))
    degree = run.practice("tensor_parallel")
    if not degree.known:
        return cannot_tell(degree)
    if (number(run, "tensor_parallel") or 1) <= 1:
        return cannot_apply(Text("未用张量并行", "layers are not split"))
    switch = parameter(run, "sequence_parallel", default=False, source=_MEGATRON_ARGUMENTS)
    if not switch.known:
        return cannot_tell(switch)
    if is_on(switch):
        return on(switch)
    size, refuses = int(number(run, "tensor_parallel") or 1), run.model.is_moe
    return advise(
        run,
        "Megatron refuses to train a mixture of experts with tensor parallelism without it"
        if refuses
        else f"norms and dropout are otherwise computed and kept whole by each of {size} ranks",
        Text(
            f"张量并行 {size}，未开启 sequence_parallel",
            f"tensor parallelism of {size} without sequence_parallel",
        ),
        Text(
            "开启 sequence_parallel，否则 Megatron 拒绝训练 MoE 模型",
            "turn on sequence_parallel, without which Megatron trains no mixture of experts",
        )
        if refuses
        else Text(
            "开启 sequence_parallel：同样的通信量，每卡少存激活",
            "turn on sequence_parallel: fewer activations a GPU, as much communication",
        ),
        parameters={"sequence_parallel": True},
        at=switch,
        priority=Priority.HIGH if refuses else None,
        impact=_REFUSES if refuses else None,
    )


_REFUSES = Impact(
    note=Text("不修复则启动失败", "the run fails at start until it is mended"),
    source="Megatron-LM core_v0.12.0, transformer/moe/moe_layer.py",
)


_MEGATRON_ARGUMENTS = "ms-swift 4.6.0, megatron/arguments/megatron_args.py"


@of_training()
def _expert_parallel(run: Run) -> Judgement:
    setting = run.practice("expert_parallel")
    if setting.known and isinstance(setting.value, int) and setting.value > 1:
        return on(setting)
    layer = next((c for c in calls(run, "deepspeed.moe.layer.MoE") if _spreads(c)), None)
    if layer is not None:
        size = layer.keywords["ep_size"]
        return on(Setting("ep_size", size.value, size.location, text=size.text))
    if run.model.name is None and run.model.parameters is None:
        return cannot_tell(Text("模型未知，无法判断是否为 MoE", "the model is not known"))
    if not run.model.is_moe:
        return cannot_apply(Text("不是 MoE 模型", "not a mixture of experts"))
    if gpus(run) == 1:
        return cannot_apply(single(run))
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


def _spreads(layer: Call) -> bool:
    size = layer.keywords.get("ep_size")
    return size is not None and isinstance(size.value, int) and size.value > 1


@of_training()
def _auto_tp(run: Run) -> Judgement:
    setting, stage = run.practice("autotp_size"), run.practice("zero_stage")
    if setting.known and isinstance(setting.value, int) and setting.value > 1:
        if run.framework == "swift" and stage.value == 3:
            return _tensors_beside_stage_3(run, setting)
        return on(setting)
    if gpus(run) == 1:
        return cannot_apply(single(run))
    if run.value("megatron") is True:
        return cannot_apply(Text("Megatron 有自己的张量并行", "Megatron has its own"))
    absent = missing(run, "deepspeed_autotp_size")
    if absent is not None:
        return cannot_apply(absent)
    if not (stage.known and stage.value) and text(run, "fsdp") not in (None, "none"):
        return cannot_apply(_FSDP_DRIVES)
    if tunes_all(run) is False:
        return cannot_apply(Text("AutoTP 只支持全参训练", "AutoTP trains full models only"))
    if stage.known and stage.value == 3:
        return cannot_apply(Text("AutoTP 不支持 ZeRO-3", "AutoTP goes with stages 0 to 2"))
    # Where no flag sets it, the engine's own file does: known with the stage.
    is_unread = run.is_open and not stage.known
    if not setting.known and (is_unread or _has_parameter(run, "autotp_size")):
        return cannot_tell(setting)
    return off(Text("未用 AutoTP", "AutoTP is off"))


_FSDP_DRIVES = Text(
    "AutoTP 属于 DeepSpeed，此训练由 FSDP 驱动", "AutoTP is DeepSpeed's, and FSDP drives the run"
)


def _tensors_beside_stage_3(run: Run, setting: Setting) -> Judgement:
    return advise(
        run,
        "ms-swift takes deepspeed_autotp_size with zero0, zero1 and zero2 (DeepSpeed asserts it "
        "up to 0.19.3)",
        Text("AutoTP 与 ZeRO-3 同时使用", "AutoTP with ZeRO-3"),
        Text("deepspeed 改为 zero2", "write deepspeed zero2"),
        parameters={"deepspeed": "zero2"},
        at=setting,
        share=0.5,
        priority=Priority.HIGH,
    )


_A = "general"
_S = "swift"

_EXPERTS = (
    "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-30B-A3B-Instruct-2507 \\\n"
    "    --tuner_type lora {}--dataset data/train.jsonl\n"
)

_TENSORS = (
    "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen2.5-14B-Instruct \\\n"
    "    --tensor_model_parallel_size 4 {}--dataset data/train.jsonl\n"
)

CHECKS: tuple[Check, ...] = (
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
        by_framework(_sequence_parallel, videox_fun=videox.sequence_parallel),
        why="Activations grow with the sequence; above 128K tokens one GPU cannot hold them.",
        fix="Set the sequence parallel size to 4 or 8, together with flash attention.",
        items=(
            Item(_A, "A", "sequence-parallel", 1),
            Item(_S, "F", "sequence-parallel", 1),
            Item("videox-fun", "I", "sequence-parallel-training", 1),
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
        "GPU112",
        "sequence-parallel-layers",
        Text("Megatron 序列并行", "Megatron's sequence parallelism"),
        Priority.MEDIUM,
        _sequence_parallel_layers,
        why="Tensor parallelism splits the matrices of a layer; norms and dropout between them "
        "are computed by every rank on the whole sequence, whose activations each rank keeps.",
        fix="Set sequence_parallel true wherever tensor_model_parallel_size is above 1.",
        items=(Item(_S, "F", "sequence-parallel", 1),),
        impact=Impact(
            memory=(-40, -10),
            note=Text(
                "激活显存；与选择性重计算合用约为 1/5",
                "of activations; with selective recomputation about a fifth is left",
            ),
            source=sources.RECOMPUTATION,
        ),
        examples=(
            Example(
                "swift",
                "train.sh",
                _TENSORS.format(""),
                _TENSORS.format("--sequence_parallel true "),
            ),
        ),
        sources=(sources.RECOMPUTATION, "Megatron-LM core_v0.12.0, transformer/moe/moe_layer.py"),
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
        "GPU109",
        "auto-tensor-parallel",
        Text("DeepSpeed AutoTP", "DeepSpeed AutoTP"),
        Priority.LOW,
        _auto_tp,
        why="AutoTP splits a Transformers model inside its layers without changes to it.",
        fix="Set the AutoTP size with ZeRO stage 0, 1 or 2.",
        items=(Item(_S, "D", "autotp", 1), Item("llamafactory", "D", "autotp", 1)),
        difficulty="medium",
        sources=(sources.SWIFT_ARGUMENTS,),
    ),
)
