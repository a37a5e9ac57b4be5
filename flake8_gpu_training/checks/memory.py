"""GPU203 to GPU205: activations, offload and accumulation."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from flake8_gpu_training.checks import _flow as flow
from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks import _videox_shared as videox
from flake8_gpu_training.checks._by_framework import by_framework
from flake8_gpu_training.checks._documents import replacement
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    Snippet,
    advise,
    cannot_tell,
    of_training,
    off,
    on,
    seen,
    spelled,
)
from flake8_gpu_training.checks._programs import calls, placed_at_load, says
from flake8_gpu_training.checks._scale import (
    billions,
    gpus,
    is_language_model,
    memory_gib,
    number,
    ranks,
    states_gib,
    text,
    tunes_all,
    unfamiliar,
)
from flake8_gpu_training.checks.base import Check, Example, Impact, Item, Judgement, Priority
from flake8_gpu_training.checks.sharding import lighter_fit
from flake8_gpu_training.facts import Call, Origin, Setting
from flake8_gpu_training.frameworks.lightning import trainer_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.memory import MemoryEstimate, estimate
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.stages import lowest_fit

_LONG = 4096  # tokens from which a decoder's activations outweigh what recomputation costs
_LARGE_BILLIONS = 3.0
_SAMPLING = ("grpo", "ppo", "gkd", "rloo")  # their batch is made of sampled completions
# --- GPU203 ---------------------------------------------------------------------------

_CHECKPOINT_CALLS = (
    ".gradient_checkpointing_enable",
    ".enable_gradient_checkpointing",
    ".prepare_model_for_kbit_training",
    "torch.utils.checkpoint.checkpoint",
    "torch.utils.checkpoint.checkpoint_sequential",
    ".apply_activation_checkpointing",
    ".checkpoint_wrapper",
    "deepspeed.checkpointing.checkpoint",
)


@of_training(alone=True)
def recomputation(run: Run) -> Judgement:
    """Whether activations are recomputed, and whether they have to be."""
    setting = run.practice("gradient_checkpointing")
    if setting.known and setting.value is True:
        return on(setting)
    found = (c for c in calls(run, *_CHECKPOINT_CALLS) if not _hands_on(c))
    called = next((c for c in found if not _asks_first(run, c, setting)), None)
    if called is not None and not says(called, "use_gradient_checkpointing", False):
        return seen(called)
    if run.value("unsloth") is True:
        return on(run.practice("unsloth"))
    if not setting.known:
        return cannot_tell(setting)
    moved = run.setting("fsdp.fsdp_config.activation_cpu_offload")
    if moved is not None and moved.value is True:
        return off(Text("激活已卸载到 CPU", "the activations are kept in host memory"), moved)
    read = run.setting("fsdp.fsdp") is not None  # ms-swift's file
    if run.setting("fsdp") is not None and text(run, "fsdp") != "none" and not read:
        return cannot_tell(Text("由 FSDP 配置决定", "the FSDP configuration decides"))
    return _advise_checkpointing(run, setting)


def _hands_on(call: Call) -> bool:
    """Whether a method only hands its own call on to the model inside."""
    return call.scope.rpartition(".")[2] == call.method


def _asks_first(run: Run, call: Call, switch: Setting) -> bool:
    """Whether a branch decides: a model's own code asks the Trainer's switch, or one of the
    program's own which is off; what prepares a quantized model asks whether it is one."""
    is_off = switch.known and switch.value is False and switch.location is not None
    return (run.framework == "hf_trainer" or is_off) and bool(call.conditions)


_USUAL_TUNING = (None, "full", "lora", "adalora", "dora", "longlora", "freeze", "rslora", "pissa")


_NO_DECODER = Text(
    "不是纯解码器语言模型，未启用激活重计算", "off; the model is no decoder-only language model"
)


def _advise_checkpointing(run: Run, setting: Setting) -> Judgement:
    size, length = billions(run), number(run, "max_length")
    if run.framework == "swift" and run.model.kind == "unknown":
        return cannot_tell(Text("模型未知", "the model is not known"))
    if run.model.kind == "unknown":
        why = unfamiliar(run)
        return off(Text(f"未启用激活重计算：{why.zh}", f"off; {why.en}"))
    if not is_language_model(run):
        return off(
            Text(
                "不是纯解码器语言模型，未启用激活重计算",
                "off; the model is no decoder-only language model",
            )
        )
    if size is None:
        return off(Text("模型规模未知，未启用激活重计算", "off; the model's size is not known"))
    if size < 1:
        about = f"{size:.2g}B"
        small = f"模型较小（{about}），未启用激活重计算", f"off; the model is small ({about})"
        return off(Text(*small))
    held = estimate(run)
    short = length is not None and length < _LONG
    if short and (size < _LARGE_BILLIONS or setting.explicit) and not _overflows(run, held):
        return off(Text("序列短，无需激活重计算", "short sequences, not needed"), setting)
    if held is not None and held.fits is True and (not run.hardware.weak or _has_room(run, held)):
        return off(Text("不重计算也放得下", "the activations fit as they are"), setting)
    if run.value("megatron") is True and not setting.explicit and not _is_short(held):
        return off(Text("Megatron 切分激活，是否不足未知", "Megatron splits the activations"))
    if text(run, "tuning") not in _USUAL_TUNING:
        return off(Text("该微调方式不支持激活重计算", "this tuning does not go with it"))
    if length is None and size < _LARGE_BILLIONS:
        return off(Text("序列长度未知，未启用激活重计算", "off; the length is not known"))
    long = length is not None and length >= _LONG
    keeper = f"{int(length)}-token samples" if length is not None else "the layers"
    return advise(
        placed_at_load(run),
        f"{keeper} of {_a(size)}B model keep all their activations for the backward pass; "
        "recomputing them takes 20-30% of the step time",
        Text(
            f"未启用激活重计算（模型 {size:.1f}B{_shown(length)[0]}）",
            f"off for {_a(size)}B model{_shown(length)[1]}",
        ),
        Text(
            "启用激活重计算，用约 20–30% 的时间换取大部分激活显存",
            "turn it on: most activation memory for 20-30 % of the time",
        ),
        practices={"gradient_checkpointing": True},
        snippet=Snippet(
            "call model.gradient_checkpointing_enable()", "model.gradient_checkpointing_enable()"
        ),
        at=setting,
        priority=Priority.HIGH if long else Priority.MEDIUM,
    )


_ROOM = 0.8  # of the GPU's memory; above it a worst case that fits is close


def _has_room(run: Run, held: MemoryEstimate) -> bool:
    """Whether even the worst case leaves room: true also of a GPU that only a comment names."""
    memory = memory_gib(run)
    return memory is not None and held.high <= _ROOM * memory


def _overflows(run: Run, held: Optional[MemoryEstimate]) -> bool:
    """Whether samples as long as allowed take more than the GPU has."""
    memory = memory_gib(run)
    if held is None or held.full_total is None or memory is None:
        return False
    return held.full_total > memory


def _is_short(held: Optional[MemoryEstimate]) -> bool:
    """Whether the estimate says that memory is short."""
    return held is not None and held.fits is False


def _shown(length: Optional[float]) -> tuple[str, str]:
    if length is None:
        return "", ""
    return f"，序列长度 {int(length)}", f" at {int(length)} tokens"


def _a(size: float) -> str:
    """The size in billions with its article: "a 7", "an 8"."""
    shown = f"{size:.0f}"
    return f"an {shown}" if shown.startswith("8") or shown in ("11", "18") else f"a {shown}"


# --- GPU204 ---------------------------------------------------------------------------

_OFFLOADS = ("offload_optimizer", "offload_param")


@of_training()
def _offload(run: Run) -> Judgement:
    active = _active_offload(run)
    if active is not None:
        return _offload_is_on(run, active)
    states = _sharded_states(run)
    memory = memory_gib(run)
    sharding = run.practice("zero_stage"), run.practice("fsdp")
    whole = states_gib(run)
    room = _SMALL_STATES_GIB if memory is None else 0.95 * memory
    is_small = whole is not None and whole <= room and gpus(run) == 1
    if not is_small and not any(setting.known for setting in sharding):
        return cannot_tell(sharding[0])
    if whole is not None and whole <= room and tunes_all(run) is False:
        return off(
            Text(
                f"基座权重约 {whole:.1f} GiB，放得下，无需卸载",
                f"the base weights take about {whole:.1f} GiB: no offload needed",
            )
        )
    if whole is not None and whole <= room:
        return off(
            Text(
                f"模型状态不切分也只有约 {whole:.1f} GiB，无需卸载",
                f"all model states take about {whole:.1f} GiB: no offload needed",
            )
        )
    if states is None:
        return off(_states_unknown(run))
    if memory is None:
        return off(Text("未卸载；GPU 显存未知", "no offload; the GPU's memory is not known"))
    if states <= 0.95 * memory:
        return off(
            Text(
                f"每卡模型状态约 {states:.0f} GiB，放得下，无需卸载",
                f"about {states:.0f} GiB of states a GPU fit: no offload needed",
            )
        )
    if states >= memory and tunes_all(run) is True:
        return off(Text("切分后仍放不下，见 LoRA 建议", "too large even when split: see adapters"))
    if states >= memory and spelled(run, {"quantization_method": "bnb"}) is not None:
        return off(Text("切分后仍放不下，见 QLoRA 建议", "too large even when split: see QLoRA"))
    if not _is_sharded(run) and (ranks(run) or 1) > 1:
        return off(Text("先切分模型状态（见 ZeRO/FSDP）", "shard the states first"))
    return advise(
        run,
        f"even split, about {states:.0f} GiB of states a GPU leave no room in {memory:.0f} GiB "
        "for activations",
        Text(
            f"切分后每卡模型状态仍约 {states:.0f} GiB，{memory:.0f} GiB 显存放不下激活",
            f"about {states:.0f} GiB of states a GPU, which leave no room in {memory:.0f} GiB",
        ),
        Text("启用 CPU 卸载（ZeRO-3 或 FSDP）", "offload to the CPU (ZeRO-3 or FSDP)"),
        parameters={"deepspeed": "zero3_offload"} if run.framework == "swift" else None,
        snippet=_how_to_offload(run),
        variant="zero" if text(run, "fsdp") in (None, "none") else "fsdp",
    )


_SMALL_STATES_GIB = 8.0  # beside which a card of 24 GiB has room for the activations


def _states_unknown(run: Run) -> Text:
    """Why the size of a GPU's model states is not known."""
    if run.model.parameters is None:
        return Text("未卸载；模型规模未知", "no offload; the model's size is not known")
    if ranks(run) is None:
        return Text("未卸载；启动的进程数未知", "no offload; the number of processes is not known")
    return Text("未卸载；模型状态的大小未知", "no offload; the size of the states is not known")


def _how_to_offload(run: Run) -> Snippet:
    """The switch of what shards the model: Accelerate's file, Lightning, FSDP, or DeepSpeed."""
    if text(run, "fsdp") in (None, "none"):
        return Snippet(f"set {_OFFLOADED} in zero_optimization", _OFFLOADED, "json")
    if run.accelerate is not None:
        line = "fsdp_offload_params: true"
        return Snippet(f"set {line} in fsdp_config", f"fsdp_config:\n  {line}", "yaml")
    if run.framework == "hf_trainer":
        words = 'fsdp="full_shard offload auto_wrap"'
        return Snippet(f"set {words}", f"{words},")
    if trainer_of(call for program in run.python for call in program.calls) is not None:
        made = "FSDPStrategy(cpu_offload=True)"
        return Snippet(f"set strategy={made}", f"strategy={made},")
    call = "fully_shard(model, offload_policy=CPUOffloadPolicy())"
    return Snippet(f"use {call}", call)


def _is_sharded(run: Run) -> bool:
    return (number(run, "zero_stage") or 0) >= 1 or text(run, "fsdp") not in (None, "none")


def _active_offload(run: Run) -> Optional[Setting]:
    for name in _OFFLOADS:
        if text(run, name) not in (None, "none"):
            return run.practice(name)
    if run.value("fsdp_offload") is True:
        return run.practice("fsdp_offload")
    return None


def _offloading(run: Run) -> str:
    """Who moves the states: FSDP, or DeepSpeed."""
    return "fsdp" if run.value("fsdp_offload") is True else "zero"


def _sharded_states(run: Run) -> Optional[float]:
    """GiB of states a GPU holds with everything split (ZeRO-3), without offload."""
    count = ranks(run)
    return None if count is None else states_gib(run, share=count)


def _offload_is_on(run: Run, setting: Setting) -> Judgement:
    fit = lighter_fit(run)
    if fit is not None and not fit.offload:
        return replace(_advise_no_offload(run, setting, fit.states), findings=(), change=None)
    held = _without_offload(run)
    if held is not None and _has_room(run, held):
        return _advise_deletion(run, setting, held)
    variant = _offloading(run)
    if lowest_fit(run) is not None or run.value("rollout_engine", "none") not in ("none", None):
        return on(setting, variant)
    states, memory, length = _sharded_states(run), memory_gib(run), number(run, "max_length")
    roomy = (
        states is not None
        and memory is not None
        and not run.hardware.weak
        and length is not None
        and length <= 8192
        and states < 0.3 * memory
    )
    return _advise_no_offload(run, setting, states or 0.0) if roomy else on(setting, variant)


def _advise_no_offload(run: Run, setting: Setting, states: float) -> Judgement:
    """A deepspeed stage heavier than needed is reported by GPU102, FSDP's offload here."""
    return advise(
        run,
        f"the states take about {states:.0f} of {memory_gib(run) or 0:.0f} GiB without it, "
        "while every step waits for the PCIe bus",
        Text(
            f"已卸载到 CPU，但每卡模型状态只需约 {states:.0f} GiB",
            f"offloaded, though about {states:.0f} GiB a GPU would do",
        ),
        Text("去掉 CPU 卸载", "drop the offload"),
        parameters=_lighter_preset(run),
        snippet=Snippet("drop the CPU offload", '"offload_optimizer": {"device": "none"}', "json"),
        at=setting,
        share=0.5,
        variant=_offloading(run),
        priority=Priority.MEDIUM,
        impact=by_class(Priority.MEDIUM, sources.ZERO_OFFLOAD),
    )


_OFFLOADED = '"offload_optimizer": {"device": "cpu", "pin_memory": true}'


def _lighter_preset(run: Run) -> Optional[dict[str, str]]:
    if run.framework != "swift":
        return None
    return {"deepspeed": f"zero{int(number(run, 'zero_stage') or 2)}"}


def _without_offload(run: Run) -> Optional[MemoryEstimate]:
    """What the run would hold with its states on the GPU, sharded as they are."""
    if run.model.kind != "LLM" or run.deepspeed is None:
        return None  # what a vision tower holds is not estimated
    kept = {name: Setting(name, "none", None, Origin.DERIVED) for name in _OFFLOADS}
    return estimate(replace(run, profile={**run.profile, **kept}))


def _advise_deletion(run: Run, setting: Setting, held: MemoryEstimate) -> Judgement:
    """The sections of the DeepSpeed file that move states which the GPU could keep."""
    assert run.deepspeed is not None
    used = [name for name in _OFFLOADS if text(run, name) not in (None, "none")]
    names, memory = " and ".join(used), memory_gib(run) or 0.0
    changes = [
        replacement(run.deepspeed, f"zero_optimization.{name}.device", "none") for name in used
    ]
    edits = tuple(edit for change in changes for edit in change.edits)
    how = f"at most {held.high:.0f} of {memory:.0f} GiB a GPU"
    return advise(
        run,
        f"the run fits without ({how}), and every step moves these states over PCIe",
        Text(
            f"已卸载到 CPU，但不卸载也放得下（每卡最多 {held.high:.0f} / {memory:.0f} GiB）",
            f"offloaded, though it fits without: {how}",
        ),
        Text("删除卸载配置（或将 device 设为 none）", "delete the sections, or set device to none"),
        snippet=Snippet(
            f"delete {names} (or set device to none)",
            "\n".join(f'"{name}": {{"device": "none"}}' for name in used),
            "json",
            edits if len(edits) == len(used) else (),
        ),
        at=setting,
        share=0.5,
        variant="zero",
        priority=Priority.MEDIUM,
        impact=by_class(Priority.MEDIUM, sources.ZERO_OFFLOAD),
    )


# --- GPU205 ---------------------------------------------------------------------------


_SMALL_BATCH = 8  # samples a step, over all ranks


@of_training()
def _accumulation(run: Run) -> Judgement:
    setting = run.practice("gradient_accumulation_steps")
    if not setting.known:
        return cannot_tell(setting)
    if isinstance(setting.value, (int, float)) and setting.value > 1:
        return on(setting)
    if run.value("megatron") is True or text(run, "algorithm") in _SAMPLING:
        return off(Text("批大小由全局批或采样数决定", "the global batch or the samples decide"))
    if run.value("packing") is True:
        return off(Text("打包后的样本已足够长", "packed samples fill the batch already"))
    if run.value("padding_free") is True:
        return off(Text("可选：批中没有填充", "optional: the batch holds no padding"))
    micro, count = number(run, "micro_batch_size"), ranks(run)
    if count == 1 and (run.hardware.gpus or 1) > 1:
        return off(Text("先每卡启动一个进程（见 GPU101）", "first start a process a GPU (GPU101)"))
    if micro is None or count is None:
        return cannot_tell(Text("微批大小或进程数未知", "micro-batch or ranks are not known"))
    batch = int(micro * count)
    if batch >= _SMALL_BATCH or not is_language_model(run):
        return off(Text(f"全局批大小已有 {batch}", f"the global batch is {batch} already"))
    steps = max(2, 16 // batch)
    return advise(
        run,
        f"the optimizer steps after {batch} samples; accumulating {steps} micro-batches "
        "amortises the step and its communication at no memory cost",
        Text(f"全局批大小只有 {batch}", f"a global batch of {batch} samples"),
        Text(f"累积 {steps} 个微批再更新", f"accumulate {steps} micro-batches"),
        practices={"gradient_accumulation_steps": steps},
        at=setting,
    )


_A = "general"
_S = "swift"
_L = "llamafactory"
_H = "transformers"

_TRAINER = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained(
    "Qwen/Qwen2.5-7B-Instruct", attn_implementation="flash_attention_2"
)
args = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=1,
    gradient_accumulation_steps=16,
    use_liger_kernel=True,
{}    dataloader_num_workers=4,
)
Trainer(model=model, args=args, train_dataset=train_dataset).train()
"""

_CROWDED = """\
#!/bin/bash
#SBATCH --gres=gpu:4
#SBATCH --constraint=v100-32gb
NPROC_PER_NODE=4 swift sft --model Qwen/Qwen3-8B --tuner_type full --torch_dtype float16 \\
    --deepspeed {} --dataset data/train.jsonl
"""
CHECKS: tuple[Check, ...] = (
    Check(
        "GPU203",
        "activation-checkpointing",
        Text("激活重计算（梯度检查点）", "Activation checkpointing"),
        Priority.HIGH,
        by_framework(
            recomputation, videox_fun=videox.recomputation, flow_factory=flow.recomputation
        ),
        why="Activations of all layers are kept for the backward pass; with long sequences "
        "they take more memory than the model.",
        fix="Turn on gradient checkpointing: only the layers' inputs are kept.",
        ignore="When the run fits with the batch size it needs: recomputing costs 20-30 % "
        "of the step time. Where the memory estimate says that it fits, it is not recommended.",
        items=(
            Item(_A, "C", "activation-checkpointing", 1),
            Item(_S, "C", "gradient-checkpointing", 1),
            Item(_L, "C", "gradient-checkpointing", 1),
            Item(_H, "B", "gradient-checkpointing", 2),
            Item("videox-fun", "B", "gradient-checkpointing", 2),
            Item("flow-factory", "B", "gradient-checkpointing", 1.5),
        ),
        impact=Impact(
            throughput=(-30, -15),
            memory=(-60, -30),
            note=Text(
                "以约 20–40% 的计算换激活显存，省下的显存可换更大批量",
                "20-40 % more computing for the memory of activations, which allows a larger "
                "micro-batch",
            ),
            source=f"{sources.RECOMPUTATION}; {sources.HF_CHECKPOINTING}",
        ),
        examples=(
            Example(
                "hf_trainer",
                "train.py",
                _TRAINER.format("    bf16=True,\n"),
                _TRAINER.format("    bf16=True,\n    gradient_checkpointing=True,\n"),
            ),
            Example(
                "swift",
                "train.sh",
                "swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora \\\n"
                "    --attn_impl flash_attn --max_length 8192 --gradient_checkpointing false\n",
                "swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora \\\n"
                "    --attn_impl flash_attn --max_length 8192 --gradient_checkpointing true\n",
            ),
        ),
        sources=(sources.CHECKPOINTING, sources.HF_SINGLE_GPU),
    ),
    Check(
        "GPU204",
        "cpu-offload",
        Text("CPU / NVMe 卸载", "CPU and NVMe offload"),
        Priority.HIGH,
        _offload,
        why="Offloading makes a model fit that otherwise would not; where it fits anyway, "
        "every step waits for transfers over PCIe.",
        fix="Offload only what does not fit: first the optimizer, then the parameters.",
        items=(
            Item(_A, "C", "cpu-nvme-offload", 1),
            Item(_H, "E", "fsdp-cpu-offload", 1, "offload", "fsdp"),
            Item(_H, "E", "zero-offload", 1, "offload", "zero"),
            Item("videox-fun", "D", "zero3-cpu-offload", 1, "beside", "zero"),
            Item("flow-factory", "D", "zero2-offload", 1, "", "zero"),
        ),
        impact=Impact(
            throughput=(-50, 0),
            memory=(-75, -40),
            note=Text(
                "以速度换显存，取决于 PCIe 与批大小", "memory for speed; PCIe and batch size decide"
            ),
            source=sources.ZERO_OFFLOAD,
        ),
        difficulty="medium",
        examples=(
            Example(
                "swift",
                "train.slurm",
                _CROWDED.format("zero3"),
                _CROWDED.format("zero3_offload"),
            ),
        ),
        sources=(sources.ZERO_OFFLOAD,),
    ),
    Check(
        "GPU205",
        "gradient-accumulation",
        Text("梯度累积", "Gradient accumulation"),
        Priority.MEDIUM,
        by_framework(_accumulation, videox_fun=videox.accumulation, flow_factory=flow.accumulation),
        why="With a small global batch the optimizer step and the gradient exchange weigh "
        "as much as the computation, and gradients are noisy.",
        fix="Accumulate micro-batches up to a global batch of 16 or more.",
        items=(
            Item(_A, "C", "gradient-accumulation", 1),
            Item(_S, "C", "gradient-accumulation", 1),
            Item(_L, "C", "gradient-accumulation", 1),
            Item(_H, "I", "gradient-accumulation", 1),
            Item("videox-fun", "B", "gradient-accumulation", 0.5),
            Item("flow-factory", "B", "gradient-accumulation", 1),
        ),
        impact=by_class(Priority.MEDIUM, sources.HF_SINGLE_GPU),
        examples=(
            Example(
                "swift",
                "train.sh",
                "NPROC_PER_NODE=2 swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora \\\n"
                "    --per_device_train_batch_size 1 --gradient_accumulation_steps 1\n",
                "NPROC_PER_NODE=2 swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora \\\n"
                "    --per_device_train_batch_size 1 --gradient_accumulation_steps 8\n",
            ),
        ),
        sources=(sources.HF_SINGLE_GPU, sources.PYTORCH_DDP),
    ),
)
