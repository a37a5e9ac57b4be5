"""GPU101, GPU107: data parallelism, and the framework that drives the run."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks._judging import (
    Snippet,
    advise,
    cannot_apply,
    cannot_tell,
    imported,
    keyword_change,
    of_training,
    off,
    on,
)
from flake8_gpu_training.checks._programs import first_call, imports
from flake8_gpu_training.checks._scale import (
    fits_each,
    gpus,
    is_ray,
    number,
    outgrows_gpu,
    ranks,
    spreads_layers,
    states_gib,
    text,
)
from flake8_gpu_training.checks._starting import NO_PROCESSES, launch, single
from flake8_gpu_training.checks.base import (
    Check,
    Example,
    Impact,
    Item,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.checks.sharding import sharding
from flake8_gpu_training.facts import Call, Setting
from flake8_gpu_training.frameworks import verl
from flake8_gpu_training.frameworks.lightning import trainer_of
from flake8_gpu_training.frameworks.registry import framework_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Place, PlaceKind, Run


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
    if verl.trainer_of(run) and not run.practice("fsdp").known:
        return cannot_tell(run.practice("fsdp"))  # FSDP or Megatron-core, as its configuration says
    if count is not None and count > 1:
        return on(run.launcher.processes)
    if count is None:
        return cannot_tell(NO_PROCESSES)
    asked = run.hardware.gpus
    if asked is None or asked <= 1:
        return cannot_apply(single(run))
    if spreads_layers(run):
        return _spread_by_swift(run, asked) or off(
            Text("模型按层分布在多卡上（device_map）", "device_map spreads the layers")
        )
    trainer = trainer_of(call for program in run.python for call in program.calls)
    if trainer is not None and "devices" in trainer.keywords:
        return _advise_devices(run, trainer, asked)
    if is_ray(run) or (run.framework == "generic" and not _trains_in_one_process(run)):
        return cannot_tell(NO_PROCESSES)
    return advise(
        _placed_at_command(run),
        _what_one_process_does(run, asked),
        Text(f"申请了 {asked} 张 GPU，但只启动了一个进程", f"{asked} GPUs, but a single process"),
        Text(
            f"用 torchrun 启动 {asked} 个进程（每卡一个），使用 DDP",
            f"start {asked} processes with torchrun, one a GPU (DDP)",
        ),
        parameters=None,
        snippet=launch(run, asked),
    )


def _advise_devices(run: Run, trainer: Call, asked: int) -> Judgement:
    """Lightning starts as many processes as its Trainer is told."""
    change = keyword_change(run, trainer, "devices", asked)
    return advise(
        run,
        _what_one_process_does(run, asked),
        Text(f"申请了 {asked} 张 GPU，但只启动了一个进程", f"{asked} GPUs, but a single process"),
        Text(
            f"在 Trainer 中设置 devices={asked}（DDP）", f"give the Trainer devices={asked} (DDP)"
        ),
        snippet=Snippet(f"set devices={asked}", change.text, change.language, change.edits),
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
    spread = text(run, "device_map") not in (None, "none")
    if spread or states is None or not fits_each(run):
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
        snippet=launch(run, count),
    )


def _is_refused(run: Run) -> bool:
    if (number(run, "zero_stage") or 0) >= 1 or text(run, "fsdp") not in (None, "none"):
        return True
    return run.value("liger_kernel") is True


@of_training()
def _framework(run: Run) -> Judgement:
    """Which framework drives the run, and whether it is enough for the model."""
    if run.value("megatron") is True:
        return on(run.practice("megatron"), "megatron")
    for module, variant in (("colossalai", "colossalai"), ("vescale", "vescale")):
        found = imports(run, module)
        if found is not None:
            return imported(found, variant)
    if (number(run, "zero_stage") or 0) >= 1:
        return on(run.practice("zero_stage"), "deepspeed")
    if run.deepspeed is not None:
        return on(f"DeepSpeed {run.deepspeed.name or run.deepspeed.path}", "deepspeed")
    if text(run, "fsdp") not in (None, "none", "no_shard"):
        return on(run.practice("fsdp"), "pytorch-fsdp")
    if _uses_accelerate(run):
        return _accelerate(run)
    if run.single_file or ranks(run) is None:
        return cannot_tell(NO_PROCESSES)
    if gpus(run) == 1:
        return cannot_apply(single(run))
    return _outgrown(run) or off(
        Text("原生 PyTorch，未用训练框架", "plain PyTorch without a training framework")
    )


def _outgrown(run: Run) -> Optional[Judgement]:
    """The framework that a model too large for plain DDP needs; GPU102 reports the place."""
    answer = sharding(run)
    if answer.status is not Status.RECOMMENDED:
        return None
    variant = "pytorch-fsdp" if answer.variant == "fsdp" else "deepspeed"
    return replace(answer, variant=variant, findings=(), priority=Priority.HIGH)


def _accelerate(run: Run) -> Judgement:
    """Accelerate alone: enough unless the states outgrow a GPU (which GPU102 reports)."""
    answer = on(_accelerator(run), "accelerate")
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


def _accelerator(run: Run) -> Setting:
    """What shows that Accelerate drives the run: its object, its launcher, or the trainer."""
    made = first_call(run, "accelerate.Accelerator")
    if made is not None:
        return Setting("Accelerator", True, made.location, note="accelerate.Accelerator")
    if run.launcher.name == "accelerate" and run.command is not None:
        return Setting("accelerate", True, run.command.location, note="accelerate launch")
    title = framework_of(run.framework).title
    note = f"{title}: its trainer is built on Accelerate"
    return Setting("trainer", True, run.place.location, note=note)


def _uses_accelerate(run: Run) -> bool:
    return (
        run.framework in _ON_ACCELERATE
        or run.launcher.name == "accelerate"
        or first_call(run, "accelerate.Accelerator") is not None
    )


_A = "general"

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
)
