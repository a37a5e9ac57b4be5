"""GPU2xx: memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Optional

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
    spelled,
    with_edits,
)
from flake8_gpu_training.checks._programs import calls, first_call, imports, placed_at_load, says
from flake8_gpu_training.checks._scale import (
    architecture,
    billions,
    gpu_text,
    has_bf16,
    has_fp8,
    is_language_model,
    memory_gib,
    number,
    ranks,
    states_gib,
    text,
    tunes_all,
)
from flake8_gpu_training.checks.base import Check, Edit, Example, Impact, Item, Judgement, Priority
from flake8_gpu_training.checks.sharding import lighter_fit
from flake8_gpu_training.facts import Setting, Unknown, known
from flake8_gpu_training.frameworks.hub_models import dtype_asked
from flake8_gpu_training.language import Text
from flake8_gpu_training.memory import estimate
from flake8_gpu_training.runs.model import PlaceKind, Run
from flake8_gpu_training.stages import lowest_fit

_LONG = 4096  # tokens from which a decoder's activations outweigh what recomputation costs
_LARGE_BILLIONS = 3.0
_SAMPLING = ("grpo", "ppo", "gkd", "rloo")  # their batch is made of sampled completions
_HALF = {"bf16": "bf16", "pure-bf16": "bf16", "fp8": "bf16", "fp16": "fp16"}


# --- GPU201 ---------------------------------------------------------------------------


@of_training(alone=True)
def _mixed_precision(run: Run) -> Judgement:
    setting = run.practice("precision")
    precision = text(run, "precision")
    if not setting.known:
        return _called_precision(run) or _half_either_way(run, setting)
    if precision in _HALF:
        if _HALF[precision] == "bf16" and has_bf16(run) is False:
            return _bf16_without_cores(run, setting)
        if precision == "fp8" and has_fp8(run) is False and not run.hardware.weak:
            return _fp8_without_cores(run, setting)
        if precision == "fp16" and _suits_bf16(run):
            return _fp16_beside_bf16(run, setting)
        return on(setting, _HALF[precision])
    called = _called_precision(run)
    if called is not None:
        return called
    if _follows_the_checkpoint(run) or _weights_may_be_half(run) or not _model_in_sight(run):
        return cannot_tell(
            Text("权重以检查点的精度加载", "weights are loaded in the checkpoint's own precision")
        )
    best = "fp16" if has_bf16(run) is False else "bf16"
    older = "" if has_bf16(run) is not None else " (fp16 before Ampere)"
    answer = advise(
        run,
        f"no mixed precision is on; tensor cores run 16-bit products several times "
        f"faster than FP32{older}",
        Text("未启用混合精度，按 FP32 计算", "no mixed precision: computed in FP32"),
        Text(
            f"启用 {best.upper()} 混合精度（Ampere 之前的 GPU 用 FP16）",
            f"turn on {best.upper()} mixed precision (FP16 before Ampere)",
        ),
        practices={"precision": best},
        snippet=_lightning_precision(run, best) or _AUTOCAST,
        variant=best,
        at=setting,
    )
    return _with_deepspeed(run, answer, f"{best}.enabled")


_AUTOCAST = Snippet(
    "run the forward pass under torch.autocast",
    'with torch.autocast("cuda", dtype=torch.bfloat16):\n    loss = model(**batch).loss',
)


def _lightning_precision(run: Run, best: str) -> Optional[Snippet]:
    """Lightning enters autocast itself: its Trainer is told the precision."""
    trainer = first_call(run, "lightning.Trainer", ".pytorch.Trainer", "pytorch_lightning.Trainer")
    if trainer is None:
        return None
    value = {"bf16": "bf16-mixed", "fp16": "16-mixed"}[best]
    change = keyword_change(run, trainer, "precision", value)
    instruction = f'set precision="{value}" of the Lightning Trainer'
    return Snippet(instruction, change.text, change.language, change.edits)


def _with_deepspeed(run: Run, answer: Judgement, dotted: str) -> Judgement:
    """The advice with DeepSpeed's own switch, which has to agree or the trainer refuses."""
    node = run.deepspeed.get(dotted) if run.deepspeed is not None else None
    if run.deepspeed is None or node is None or node.value is not False or answer.change is None:
        return answer
    edits = replacement(run.deepspeed, dotted, True).edits
    both = (*answer.change.edits, *edits) if answer.change.edits and edits else ()
    change = replace(answer.change, edits=both)
    findings = tuple(replace(finding, change=change) for finding in answer.findings)
    return replace(answer, change=change, findings=findings)


def _half_either_way(run: Run, setting: Setting) -> Judgement:
    """On when every precision it may turn out to be is a 16-bit one."""
    assert isinstance(setting.value, Unknown)
    candidates = setting.value.candidates
    if not candidates or not all(value in _HALF for value in candidates):
        return cannot_tell(setting)
    if not is_language_model(run):
        return cannot_tell(setting)
    return on(f"{' / '.join(candidates)}: {setting.value.reason}", _HALF[candidates[0]])


def _bf16_without_cores(run: Run, setting: Setting) -> Judgement:
    return advise(
        run,
        f"{gpu_text(run)} has no BF16 tensor cores; FP16 runs on them",
        Text(f"{gpu_text(run)} 没有 BF16 张量核", f"BF16 on {gpu_text(run)}"),
        Text("改用 FP16 混合精度", "use FP16 mixed precision"),
        practices={"precision": "fp16"},
        variant="fp16",
        at=setting,
    )


def _fp8_without_cores(run: Run, setting: Setting) -> Judgement:
    return advise(
        run,
        f"{gpu_text(run)} has no FP8 tensor cores (Ada, Hopper and newer have); BF16 runs on it",
        Text(f"{gpu_text(run)} 没有 FP8 张量核", f"FP8 on {gpu_text(run)}"),
        Text("改用 BF16 混合精度", "use BF16 mixed precision"),
        practices={"precision": "bf16"},
        variant="bf16",
        at=setting,
    )


_BF16_ARCHITECTURES = ("Ampere", "Ada", "Hopper", "Blackwell")


def _suits_bf16(run: Run) -> bool:
    """Whether the GPU is known to have BF16 and nothing speaks for FP16.

    AWQ kernels are FP16 only; where an engine samples, FP16 keeps its probabilities closer to
    the trainer's.
    """
    name = (run.model.name or "").lower()
    samples = text(run, "rollout_engine") not in (None, "none")
    return (
        architecture(run) in _BF16_ARCHITECTURES
        and not samples
        and text(run, "algorithm") not in _SAMPLING
        and "awq" not in name
        and text(run, "quantization_method") not in ("awq", "gptq")
    )


def _fp16_beside_bf16(run: Run, setting: Setting) -> Judgement:
    parameters = _bf16_for_fp16(run)
    if parameters is None:
        return off(Text("使用 FP16", "FP16 is in use"), setting)
    answer = advise(
        run,
        f"{gpu_text(run)} runs BF16 as fast as FP16, with FP32's range: no overflow and no "
        "loss scaling, which skips steps",
        Text(f"{gpu_text(run)} 上使用 FP16", f"FP16 on {gpu_text(run)}"),
        Text(
            "改用 BF16：速度相同，动态范围与 FP32 一致，无需 loss scaling",
            "use BF16: as fast, with the range of FP32 and without loss scaling",
        ),
        parameters=parameters,
        variant="fp16",
        at=setting,
        share=0.7,
        priority=Priority.MEDIUM,
        impact=Impact(
            (0, 0),
            note=Text("速度相同，避免溢出与跳步", "the same speed; no overflow, no skipped steps"),
            source=sources.BF16,
        ),
    )
    return with_edits(answer, _swapping_edits(run, setting, answer, parameters))


def _bf16_for_fp16(run: Run) -> Optional[dict[str, Any]]:
    """The parameters that turn bf16 on and, since the two exclude each other, fp16 off."""
    spelling = spelled(run, {"precision": "bf16"})
    if spelling is None:
        return None
    if not _is_set(run, "fp16"):
        return dict(spelling)
    swapped: dict[str, Any] = {"fp16": False, "bf16": True}
    # A type that is written beside the switch decides about the weights.
    swapped.update({name: value for name, value in spelling.items() if name in run.settings})
    return swapped


def _is_set(run: Run, name: str) -> bool:
    setting = run.settings.get(name)
    return setting is not None and str(setting.value).lower() == "true"


def _swapping_edits(
    run: Run, setting: Setting, answer: Judgement, parameters: Mapping[str, Any]
) -> tuple[Edit, ...]:
    """The edits when all of the swap can be written: flags, and what DeepSpeed is told."""
    written = [run.settings[name] for name in parameters if name in run.settings]
    if answer.change is None or setting.location not in [s.location for s in written]:
        return ()  # a launcher, DeepSpeed or the weights have the say
    edits = answer.change.edits or _renamed_switch(run)
    theirs = _deepspeed_swap(run)
    return () if not edits or theirs is None else (*edits, *theirs)


def _renamed_switch(run: Run) -> tuple[Edit, ...]:
    """A lone ``--fp16`` becomes ``--bf16``."""
    switch = run.settings.get("fp16")
    if switch is None or switch.location is None or switch.text or "bf16" in run.settings:
        return ()
    command = run.command
    if run.place.kind is not PlaceKind.FLAGS or command is None:
        return ()
    stands = any(w.location == switch.location and w.raw == "--fp16" for w in command.words)
    return (Edit(switch.location, "--fp16", "--bf16"),) if stands else ()


def _deepspeed_swap(run: Run) -> Optional[tuple[Edit, ...]]:
    """DeepSpeed's own switches swapped; None when they cannot be written exactly."""
    if run.deepspeed is None:
        return ()
    half, brain = (run.deepspeed.get(f"{name}.enabled") for name in ("fp16", "bf16"))
    edits: list[Edit] = []
    if half is not None and half.value not in (False, "auto"):
        edits += replacement(run.deepspeed, "fp16.enabled", False).edits
        if half.value is not True or not edits or brain is None:
            return None
    if brain is not None and brain.value not in (True, "auto"):
        turned = replacement(run.deepspeed, "bf16.enabled", True).edits
        if brain.value is not False or not turned:
            return None
        edits += turned
    return tuple(edits)


def _called_precision(run: Run) -> Optional[Judgement]:
    """Mixed precision that the program turns on by itself."""
    call = first_call(run, "torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast")
    if call is not None:
        return seen(call, "fp16" if call.name.startswith("torch.cuda") else "bf16")
    for call in calls(run, "accelerate.Accelerator", ".from_pretrained"):
        for name in ("mixed_precision", "torch_dtype", "dtype"):
            for word, variant in (("bf", "bf16"), ("fp16", "fp16"), ("float16", "fp16")):
                if _mentions(call.keywords.get(name), word):
                    return seen(call, variant)
    return None


def _mentions(argument: Any, word: str) -> bool:
    if argument is None:
        return False
    value = argument.value if isinstance(argument.value, str) else argument.text
    return word in value.lower()


_NOT_MODELS = ("Tokenizer", "TokenizerFast", "Processor", "FeatureExtractor", "Config")


def _model_in_sight(run: Run) -> bool:
    """Whether we see how a Trainer's model is loaded; what builds it may choose the precision."""
    if run.framework != "hf_trainer" or run.place.kind is not PlaceKind.PYTHON:
        return True
    if imports(run, "swift", "unsloth") is not None:
        return False
    owners = (call.name.rpartition(".")[0] for call in calls(run, ".from_pretrained"))
    return run.model.name is not None or any(not o.endswith(_NOT_MODELS) for o in owners)


def _follows_the_checkpoint(run: Run) -> bool:
    """LlamaFactory keeps frozen weights, and BAdam's, in the checkpoint's own precision."""
    if run.framework != "llamafactory":
        return False
    badam = run.setting("use_badam")
    return tunes_all(run) is not True or (badam is not None and badam.value is not False)


def _weights_may_be_half(run: Run) -> bool:
    """Whether from_pretrained loads a decoder in the precision it was saved in.

    transformers does so from version 5 on (``dtype="auto"``), and where the program asks
    for a dtype that is not known.
    """
    for call in calls(run, ".from_pretrained"):
        asked = call.keywords.get("torch_dtype") or call.keywords.get("dtype")
        if call.is_open or (asked is not None and dtype_asked(run, asked) != "fp32"):
            return True
        if "quantization_config" in call.keywords or "load_in_4bit" in call.keywords:
            return True
    pinned = run.versions.get("transformers", "")
    return is_language_model(run) and pinned.partition(".")[0] not in ("", "2", "3", "4")


# --- GPU202 ---------------------------------------------------------------------------


@of_training()
def _fp8(run: Run) -> Judgement:
    setting = run.practice("precision")
    name = gpu_text(run)
    if has_fp8(run) is False:
        return cannot_apply(Text(f"{name} 不支持 FP8", f"{name} has no FP8 cores"))
    if text(run, "precision") == "fp8":
        return on(setting)
    called = first_call(
        run,
        "transformer_engine.pytorch.fp8_autocast",
        ".fp8_autocast",
        "torchao.float8.convert_to_float8_training",
        ".convert_to_float8_training",
    ) or next(
        (c for c in calls(run, "accelerate.Accelerator") if says(c, "mixed_precision", "fp8")), None
    )
    if called is not None:
        return seen(called)
    found = imports(run, "msamp")
    if found is not None:
        return on(f"import {found.dotted}")
    if not setting.known and "fp8" not in getattr(setting.value, "candidates", ("fp8",)):
        return off(Text("未用 FP8", "FP8 is off"))
    if not setting.known:
        return cannot_tell(setting)
    if has_fp8(run) is True and run.value("megatron") is True:
        answer = advise(
            run,
            f"{name} multiplies FP8 twice as fast as BF16; test convergence first",
            Text(f"{name} 上用 BF16 训练", f"BF16 on {name}"),
            Text("可在 Megatron 后端试用 FP8（先验证收敛）", "try FP8 (check convergence first)"),
            parameters={"fp8_format": "e4m3", "fp8_recipe": "blockwise"},
        )
        return with_edits(answer)  # whether the loss converges has to be tested
    return off(Text("未用 FP8；需要 Hopper 或更新的 GPU 并验证收敛", "FP8 is off; needs a test"))


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
def _checkpointing(run: Run) -> Judgement:
    setting = run.practice("gradient_checkpointing")
    if setting.known and setting.value is True:
        return on(setting)
    called = first_call(run, *_CHECKPOINT_CALLS)
    if called is not None and not says(called, "use_gradient_checkpointing", False):
        return seen(called)
    if run.value("unsloth") is True:
        return on(run.practice("unsloth"))
    if not setting.known:
        return cannot_tell(setting)
    if run.setting("fsdp") is not None and text(run, "fsdp") != "none":
        return cannot_tell(Text("由 FSDP 配置决定", "the FSDP configuration decides"))
    return _advise_checkpointing(run, setting)


_USUAL_TUNING = (None, "full", "lora", "adalora", "dora", "longlora", "freeze", "rslora", "pissa")


def _advise_checkpointing(run: Run, setting: Setting) -> Judgement:
    size, length = billions(run), number(run, "max_length")
    if not is_language_model(run) or size is None or size < 1:
        return off(Text("模型较小或未知，未启用激活重计算", "off; the model is small or unknown"))
    if length is not None and length < _LONG and (size < _LARGE_BILLIONS or setting.explicit):
        return off(Text("序列短，无需激活重计算", "short sequences, not needed"), setting)
    held = estimate(run)
    if held is not None and held.fits is True and not run.hardware.weak:
        return off(Text("不重计算也放得下", "the activations fit as they are"), setting)
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
    if states is None or memory is None:
        return off(Text("未卸载；显存或规模未知", "no offload; memory or size are not known"))
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
        Text("启用 ZeRO-3 CPU 卸载", "use ZeRO-3 with CPU offload"),
        parameters={"deepspeed": "zero3_offload"} if run.framework == "swift" else None,
        snippet=Snippet(f"set {_OFFLOADED} in zero_optimization", _OFFLOADED, "json"),
    )


def _is_sharded(run: Run) -> bool:
    return (number(run, "zero_stage") or 0) >= 1 or text(run, "fsdp") not in (None, "none")


def _active_offload(run: Run) -> Optional[Setting]:
    for name in _OFFLOADS:
        if text(run, name) not in (None, "none"):
            return run.practice(name)
    if run.value("fsdp_offload") is True:
        return run.practice("fsdp_offload")
    return None


def _sharded_states(run: Run) -> Optional[float]:
    """GiB of states a GPU holds with everything split (ZeRO-3), without offload."""
    count = ranks(run)
    return None if count is None else states_gib(run, share=count)


def _offload_is_on(run: Run, setting: Setting) -> Judgement:
    fit = lighter_fit(run)
    if fit is not None and not fit.offload:
        return replace(_advise_no_offload(run, setting, fit.states), findings=(), change=None)
    if lowest_fit(run) is not None or run.value("rollout_engine", "none") not in ("none", None):
        return on(setting)
    states, memory, length = _sharded_states(run), memory_gib(run), number(run, "max_length")
    roomy = (
        states is not None
        and memory is not None
        and not run.hardware.weak
        and length is not None
        and length <= 8192
        and states < 0.3 * memory
    )
    return _advise_no_offload(run, setting, states or 0.0) if roomy else on(setting)


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
        parameters=_without_offload(run),
        snippet=Snippet("drop the CPU offload", '"offload_optimizer": {"device": "none"}', "json"),
        at=setting,
        share=0.5,
        priority=Priority.MEDIUM,
        impact=by_class(Priority.MEDIUM, sources.ZERO_OFFLOAD),
    )


_OFFLOADED = '"offload_optimizer": {"device": "cpu", "pin_memory": true}'


def _without_offload(run: Run) -> Optional[dict[str, str]]:
    if run.framework != "swift":
        return None
    return {"deepspeed": f"zero{int(number(run, 'zero_stage') or 2)}"}


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
    if run.value("packing") is True or run.value("padding_free") is True:
        return off(Text("打包后的样本已足够长", "packed samples fill the batch already"))
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


# --- GPU206 ---------------------------------------------------------------------------


def _flag(run: Run, name: str) -> Optional[Setting]:
    """A framework's own switch when it is known to be on."""
    setting = run.setting(name)
    return setting if setting is not None and setting.known and setting.value is True else None


@of_training()
def _projected_optimizer(run: Run) -> Judgement:
    galore = _flag(run, "use_galore")
    if galore is not None:
        quantized = _flag(run, "galore_quantization")
        return on(quantized or galore, "q-galore" if quantized else "galore")
    optimizer = text(run, "optimizer")
    if optimizer is not None and "galore" in optimizer:
        return on(run.practice("optimizer"), "galore")
    full = tunes_all(run)
    if full is False:
        return cannot_apply(Text("只用于全参训练", "for full tuning only"))
    if full is None:
        return cannot_tell(run.practice("tuning"))
    return off(Text("未用 GaLore；显存不足的全参训练可选", "off; an option when memory is short"))


# --- GPU207 ---------------------------------------------------------------------------


@of_training()
def _vision_checkpointing(run: Run) -> Judgement:
    if run.model.kind == "unknown" and run.model.name is None:
        return cannot_tell(Text("模型未知", "the model is not known"))
    if run.model.kind != "MLLM":
        return cannot_apply(Text("不是多模态模型", "not a multimodal model"))
    setting = run.practice("vit_gradient_checkpointing")
    if not setting.known:
        return cannot_tell(setting)
    if setting.value is True:
        return on(setting)
    if run.practice("gradient_checkpointing").explicit and not run.value("gradient_checkpointing"):
        return off(Text("激活重计算整体关闭", "checkpointing is switched off as a whole"), setting)
    if run.value("freeze_vision") is not False:
        return off(Text("视觉塔被冻结，激活无需保存", "the frozen tower keeps no activations"))
    return advise(
        run,
        "the trained vision tower keeps all its activations",
        Text("视觉塔参与训练但未做激活重计算", "the trained vision tower is not checkpointed"),
        Text("启用 vit_gradient_checkpointing", "turn on vit_gradient_checkpointing"),
        practices={"vit_gradient_checkpointing": True},
        at=setting,
    )


# --- GPU208 and GPU209 ----------------------------------------------------------------


@of_training()
def _logits_to_keep(run: Run) -> Judgement:
    if run.framework != "swift" or run.value("megatron") is True:
        return cannot_apply(Text("仅 ms-swift 提供", "ms-swift only"))
    if (number(run, "sequence_parallel") or 1) > 1:
        return cannot_apply(Text("序列并行不支持", "sequence parallelism does not support it"))
    setting = run.setting("use_logits_to_keep")
    if setting is None:
        if run.is_open:
            return cannot_tell(Text("参数未完全可见", "not all parameters are in sight"))
        return on(f"ms-swift decides by the model ({sources.SWIFT_ARGUMENTS}), on by default")
    if not setting.known:
        return cannot_tell(setting)
    if setting.value is not False:
        return on(setting)
    return advise(
        run,
        "logits of prompt tokens are computed and stored though no label needs them",
        Text("use_logits_to_keep 被关闭", "use_logits_to_keep is turned off"),
        Text("启用 use_logits_to_keep", "turn on use_logits_to_keep"),
        parameters={"use_logits_to_keep": True},
        at=setting,
    )


@of_training()
def _activation_offload(run: Run) -> Judgement:
    if text(run, "fsdp") in (None, "none"):
        if not run.practice("fsdp").known:
            return cannot_tell(run.practice("fsdp"))
        return cannot_apply(Text("仅用于 FSDP2", "for FSDP2 only"))
    setting = run.setting("callbacks")
    if setting is not None and setting.known and "activation_cpu_offload" in str(setting.value):
        return on(setting)
    return off(Text("未卸载激活；显存足够时不需要", "off; not needed while memory is enough"))


# --- GPU210 ---------------------------------------------------------------------------


def _unpinned(run: Run) -> Optional[str]:
    """Where the run's DeepSpeed config has ``pin_memory: false`` for an offload to the CPU."""
    if run.deepspeed is None:
        return None
    for name in _OFFLOADS:
        device = run.deepspeed.get(f"zero_optimization.{name}.device")
        pinned = run.deepspeed.get(f"zero_optimization.{name}.pin_memory")
        if device is None or device.value != "cpu" or pinned is None:
            continue
        if known(pinned.value) and pinned.value is False:
            return f"zero_optimization.{name}.pin_memory"
    return None


@of_training(alone=True)
def _pinned_offload(run: Run) -> Judgement:
    dotted = _unpinned(run)
    node = run.deepspeed.get(dotted) if run.deepspeed is not None and dotted is not None else None
    if node is None or run.deepspeed is None or dotted is None:
        return no_mistake()
    change = replacement(run.deepspeed, dotted, True)
    return advise(
        run,
        "unpinned memory moves offloaded states over PCIe without overlap",
        Text("CPU 卸载未使用锁页内存", "the CPU offload is not pinned"),
        Text("在 offload 配置中设置 pin_memory: true", "set pin_memory: true in the offload"),
        snippet=Snippet('set "pin_memory": true', change.text, change.language, change.edits),
        at=Setting("pin_memory", False, node.location),
    )


_A = "general"
_S = "swift"

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

_LOOP = """\
import torch
from torch.utils.data import DataLoader
from torchvision.models import resnet50

model = torch.compile(resnet50().cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in DataLoader(dataset, batch_size=256, num_workers=8, pin_memory=True):
    images, labels = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
    {}
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
_OFFLOADING = """\
import deepspeed

config = {{
    "train_micro_batch_size_per_gpu": 8,
    "bf16": {{"enabled": True}},
    "zero_optimization": {{
        "stage": 2,
        "overlap_comm": True,
        "offload_optimizer": {{"device": "cpu", "pin_memory": {}}},
    }},
}}
engine, _, _, _ = deepspeed.initialize(model=model, config=config)
for batch in loader:
    engine.backward(engine(batch))
    engine.step()
"""

_VISION = (
    "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --tuner_type full \\\n"
    "    --freeze_vit false --vit_gradient_checkpointing {} --deepspeed zero3 \\\n"
    "    --dataset data/train.jsonl\n"
)
_LOGITS = (
    "swift rlhf --rlhf_type dpo --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora \\\n"
    "    {}--dataset data/pairs.jsonl\n"
)

_CROWDED = """\
#!/bin/bash
#SBATCH --gres=gpu:4
#SBATCH --constraint=v100-32gb
NPROC_PER_NODE=4 swift sft --model Qwen/Qwen3-8B --tuner_type full --torch_dtype float16 \\
    --deepspeed {} --dataset data/train.jsonl
"""
_HOPPER = """\
#!/bin/bash
#SBATCH --gres=gpu:h100:8
NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen2.5-7B --torch_dtype bfloat16 {}\\
    --tensor_model_parallel_size 2 --dataset data/train.jsonl
"""
_LITTLE_MEMORY = replace(
    by_class(Priority.LOW, sources.SWIFT_DOCS), throughput=None, memory=(-10, 0)
)

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU201",
        "mixed-precision",
        Text("混合精度训练", "Mixed precision"),
        Priority.HIGH,
        _mixed_precision,
        why="FP32 products bypass most of the tensor cores' throughput and double the "
        "memory of activations.",
        fix="Turn on bf16 on Ampere or newer, fp16 on Volta and Turing.",
        ignore="When `accelerate launch --mixed_precision` or the DeepSpeed config that the "
        "program is started with sets the precision.",
        items=(
            Item(_A, "C", "mixed-precision", 1),
            Item(_S, "B", "bf16", 3, "precision", "bf16"),
            Item(_S, "B", "fp16", 3, "precision", "fp16"),
        ),
        impact=Impact(
            throughput=(50, 200),
            memory=(-50, -20),
            source=sources.MIXED_PRECISION,
        ),
        examples=(
            Example(
                "hf_trainer",
                "train.py",
                _TRAINER.format("    gradient_checkpointing=True,\n"),
                _TRAINER.format("    gradient_checkpointing=True,\n    bf16=True,\n"),
            ),
            Example(
                "generic",
                "train.py",
                _LOOP.format("loss = criterion(model(images), labels)"),
                _LOOP.format(
                    'with torch.autocast("cuda", dtype=torch.bfloat16):\n'
                    "        loss = criterion(model(images), labels)"
                ),
            ),
        ),
        sources=(sources.MIXED_PRECISION, sources.HF_SINGLE_GPU, sources.HF_ARGUMENTS),
    ),
    Check(
        "GPU202",
        "fp8-training",
        Text("FP8 训练", "FP8 training"),
        Priority.LOW,
        _fp8,
        why="Hopper and newer GPUs multiply FP8 at twice the rate of BF16.",
        fix="Use the framework's FP8 switch, TransformerEngine or torchao float8.",
        ignore="Until a test shows that the loss converges as with BF16.",
        items=(Item(_A, "C", "fp8-training", 1), Item(_S, "B", "fp8-training", 1)),
        impact=Impact(
            throughput=(10, 75),
            note=Text(
                "上限为 H100 上 GPT-175B 的实测", "the upper end was measured for GPT-175B on H100"
            ),
            source=sources.FP8_LM,
        ),
        difficulty="medium",
        examples=(
            Example(
                "swift",
                "train.slurm",
                _HOPPER.format(""),
                _HOPPER.format("--fp8_format e4m3 --fp8_recipe blockwise "),
            ),
        ),
        sources=(sources.TRANSFORMER_ENGINE, sources.FP8_LM),
    ),
    Check(
        "GPU203",
        "activation-checkpointing",
        Text("激活重计算（梯度检查点）", "Activation checkpointing"),
        Priority.HIGH,
        _checkpointing,
        why="Activations of all layers are kept for the backward pass; with long sequences "
        "they take more memory than the model.",
        fix="Turn on gradient checkpointing: only the layers' inputs are kept.",
        ignore="When the run fits with the batch size it needs: recomputing costs 20-30 % "
        "of the step time.",
        items=(
            Item(_A, "C", "activation-checkpointing", 1),
            Item(_S, "C", "gradient-checkpointing", 1),
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
        items=(Item(_A, "C", "cpu-nvme-offload", 1),),
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
        _accumulation,
        why="With a small global batch the optimizer step and the gradient exchange weigh "
        "as much as the computation, and gradients are noisy.",
        fix="Accumulate micro-batches up to a global batch of 16 or more.",
        items=(
            Item(_A, "C", "gradient-accumulation", 1),
            Item(_S, "C", "gradient-accumulation", 1),
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
    Check(
        "GPU206",
        "projected-optimizer",
        Text("低秩投影优化器（GaLore）", "Low-rank optimizer states (GaLore)"),
        Priority.LOW,
        _projected_optimizer,
        why="Adam's moments take 8 bytes a parameter; GaLore keeps them in a projected space.",
        fix="Use GaLore or Q-GaLore for full tuning on one GPU.",
        items=(
            Item(_S, "E", "galore", 3, "galore", "galore"),
            Item(_S, "E", "q-galore", 3, "galore", "q-galore"),
        ),
        impact=Impact(memory=(-65, -40), source=f"{sources.GALORE}; {sources.Q_GALORE}"),
        difficulty="medium",
        sources=(sources.GALORE, sources.Q_GALORE),
    ),
    Check(
        "GPU207",
        "vision-checkpointing",
        Text("视觉塔激活重计算", "Vision tower checkpointing"),
        Priority.LOW,
        _vision_checkpointing,
        why="A trained vision tower keeps the activations of every image tile.",
        fix="Turn on vit_gradient_checkpointing.",
        items=(Item(_S, "C", "vit-gradient-checkpointing", 1),),
        impact=replace(
            by_class(Priority.LOW, sources.SWIFT_DOCS), throughput=None, memory=(-10, 0)
        ),
        examples=(
            Example(
                "swift",
                "train.sh",
                _VISION.format("false"),
                _VISION.format("true"),
            ),
        ),
        sources=(sources.SWIFT_DOCS,),
    ),
    Check(
        "GPU208",
        "logits-to-keep",
        Text("只计算有标签位置的 logits", "Logits of labelled tokens only"),
        Priority.LOW,
        _logits_to_keep,
        why="The logits of a large vocabulary are often the peak of memory.",
        fix="Leave use_logits_to_keep at its default, or turn it on.",
        items=(Item(_S, "C", "logits-to-keep", 1),),
        impact=replace(
            by_class(Priority.LOW, sources.SWIFT_DOCS), throughput=None, memory=(-10, 0)
        ),
        examples=(
            Example(
                "swift",
                "train.sh",
                _LOGITS.format("--use_logits_to_keep false "),
                _LOGITS.format(""),
            ),
        ),
        sources=(sources.SWIFT_DOCS,),
    ),
    Check(
        "GPU209",
        "activation-cpu-offload",
        Text("激活卸载到 CPU", "Activation offload"),
        Priority.LOW,
        _activation_offload,
        why="Activations that do not fit can wait in host memory.",
        fix="Add the activation_cpu_offload callback under FSDP2.",
        items=(Item(_S, "C", "activation-cpu-offload", 1),),
        difficulty="medium",
        sources=(sources.SWIFT_DOCS,),
    ),
    Check(
        "GPU210",
        "pinned-offload",
        Text("卸载使用锁页内存", "Pinned offload memory"),
        Priority.MEDIUM,
        _pinned_offload,
        why="Transfers from pageable memory are slower and cannot overlap with computation.",
        fix='Set "pin_memory": true beside "device": "cpu".',
        ignore="When the host is short of memory: pinned pages cannot be swapped.",
        impact=by_class(Priority.MEDIUM, sources.DEEPSPEED_CONFIG),
        examples=(
            Example(
                "generic",
                "train.py",
                _OFFLOADING.format("False"),
                _OFFLOADING.format("True"),
            ),
        ),
        sources=(sources.DEEPSPEED_CONFIG, sources.DEEPSPEED_SOURCE),
    ),
)
