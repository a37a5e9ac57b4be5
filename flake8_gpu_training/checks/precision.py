"""GPU201, GPU202: the precision in which a run computes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Optional

from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks import _videox_shared as videox
from flake8_gpu_training.checks._by_framework import by_framework
from flake8_gpu_training.checks._documents import replacement
from flake8_gpu_training.checks._judging import (
    Snippet,
    advise,
    cannot_apply,
    cannot_tell,
    excluding,
    imported,
    keyword_change,
    of_training,
    off,
    on,
    seen,
    spelled,
    with_edits,
)
from flake8_gpu_training.checks._llamafactory import OLDER, is_quantized
from flake8_gpu_training.checks._programs import calls, first_call, imports, loads, says
from flake8_gpu_training.checks._scale import (
    architecture,
    compiles_for_gpu,
    gpu_said,
    gpu_text,
    has_bf16,
    has_fp8,
    is_language_model,
    text,
    tunes_all,
)
from flake8_gpu_training.checks.base import Check, Edit, Example, Impact, Item, Judgement, Priority
from flake8_gpu_training.facts import Call, Setting, Unknown, known
from flake8_gpu_training.frameworks.at_hand import lacks
from flake8_gpu_training.frameworks.hub_models import CHECKPOINT_DECIDES, dtype_asked
from flake8_gpu_training.frameworks.megatron import is_recent
from flake8_gpu_training.frameworks.reading import is_true
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import PlaceKind, Run

_SAMPLING = ("grpo", "ppo", "gkd", "rloo")  # their batch is made of sampled completions
_HALF = {"bf16": "bf16", "pure-bf16": "bf16", "fp8": "bf16", "fp16": "fp16"}


# --- GPU201 ---------------------------------------------------------------------------


@of_training(alone=True)
def _mixed_precision(run: Run) -> Judgement:
    answer = _precision(run)
    if has_bf16(run) is not False or answer.variant == "bf16":
        return answer
    name = gpu_said(run)
    why = Text(f"{name.zh} 没有 BF16 张量核", f"{name.en} has no BF16 tensor cores")
    return excluding(answer, why, "bf16")


def _precision(run: Run) -> Judgement:
    setting = run.practice("precision")
    precision = text(run, "precision")
    if not setting.known and not _names_no_type(setting):
        return _called_precision(run) or _half_either_way(run, setting)
    if precision in _HALF:
        if _HALF[precision] == "bf16" and has_bf16(run) is False:
            # Who asks for BF16 runs on another GPU than a notebook's default.
            is_asked = setting.explicit and run.hardware.weak
            return on(setting, "bf16") if is_asked else _bf16_without_cores(run, setting)
        if precision == "fp8" and has_fp8(run) is False and not run.hardware.weak:
            return _fp8_without_cores(run, setting)
        if precision == "fp16" and _suits_bf16(run):
            return _fp16_beside_bf16(run, setting)
        if precision == "fp8" and is_true(run.setting("bf16")):
            return on(run.settings["bf16"], "bf16")  # what FP8 leaves is computed so
        is_pure = precision == "pure-bf16" and run.framework == "llamafactory"
        return on(setting, "pure-bf16" if is_pure else _HALF[precision])
    called = _called_precision(run)
    if called is not None:
        return called
    if _optimizes_tensors(run):
        return cannot_tell(Text("只优化若干张量", "tensors are optimized, not a model"))
    if _follows_the_checkpoint(run):
        return off(_AS_SAVED, setting)
    if _weights_may_be_half(run) or not _model_in_sight(run):
        if run.framework == "hf_trainer":
            return off(_AS_LOADED, setting)
        return cannot_tell(
            Text("权重以检查点的精度加载", "weights are loaded in the checkpoint's own precision")
        )
    best = "fp16" if has_bf16(run) is False else "bf16"
    older = "" if has_bf16(run) is not None else " (fp16 before Ampere)"
    answer = advise(
        run,
        f"no mixed precision is on; tensor cores run 16-bit products several times "
        f"faster than FP32{older}",
        Text("未启用混合精度，按 FP32 计算", "no mixed precision: computed in FP32")
        if setting.known
        else _NOT_ASKED,
        Text(
            f"启用 {best.upper()} 混合精度（Ampere 之前的 GPU 用 FP16）",
            f"turn on {best.upper()} mixed precision (FP16 before Ampere)",
        ),
        practices={"precision": best},
        snippet=_lightning_precision(run, best) or _accelerate_precision(run, best) or _AUTOCAST,
        variant=best,
        at=setting if setting.known else None,
    )
    return _with_deepspeed(run, answer, f"{best}.enabled")


_AS_SAVED = Text(
    "bf16 与 fp16 均未启用：按检查点自身的精度计算",
    "neither bf16 nor fp16 is on: computed in the checkpoint's own type",
)
_AS_LOADED = Text(
    "bf16 与 fp16 均未启用：按权重加载时的精度计算",
    "neither bf16 nor fp16 is on: computed in the type that the weights are loaded in",
)
_NOT_ASKED = Text(
    "bf16 与 fp16 均未设置：Transformers 5 之前按 FP32 计算，之后由检查点决定精度",
    "neither bf16 nor fp16 is set: FP32 before Transformers 5, then the checkpoint's own type",
)
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


def _accelerate_precision(run: Run, best: str) -> Optional[Snippet]:
    """Accelerate enters autocast itself: its file, its launcher or its object names the type."""
    if run.framework != "generic":
        return None
    said = f"set mixed_precision={best}"
    if run.accelerate is not None:
        change = replacement(run.accelerate, "mixed_precision", best, bare=True)
        return Snippet(said, change.text, change.language, change.edits)
    made = first_call(run, "accelerate.Accelerator")
    if made is None:
        return None
    change = keyword_change(run, made, "mixed_precision", best)
    return Snippet(said, change.text, change.language, change.edits)


def _optimizes_tensors(run: Run) -> bool:
    """Whether all optimizers are given single tensors (a pose, an image), not parameters."""
    made = [
        call
        for program in run.python
        for call in program.calls
        if call.name.startswith("torch.optim.") and call.positional
    ]
    return bool(made) and all(_IS_TENSORS.fullmatch(call.positional[0].text) for call in made)


_IS_TENSORS = re.compile(r"\[(?!.*(?:param|model|net\b|[\"'*])).*\]", re.DOTALL)


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


def _names_no_type(setting: Setting) -> bool:
    """Whether nothing in the program says a type: no release would then mix precisions."""
    return isinstance(setting.value, Unknown) and setting.value.reason == CHECKPOINT_DECIDES


def _half_either_way(run: Run, setting: Setting) -> Judgement:
    """On when every precision it may turn out to be is a 16-bit one."""
    assert isinstance(setting.value, Unknown)
    candidates = setting.value.candidates
    if not candidates or not all(value in _HALF for value in candidates):
        return cannot_tell(setting)
    if run.framework != "hf_trainer" and not is_language_model(run):
        return cannot_tell(setting)
    best = "fp16" if has_bf16(run) is False and "fp16" in candidates else candidates[0]
    return on(f"{' / '.join(candidates)}: {setting.value.reason}", _HALF[best])


def _bf16_without_cores(run: Run, setting: Setting) -> Judgement:
    """BF16 is on all the same, by emulation: FP16 is the better choice."""
    answer = advise(
        run,
        f"{gpu_text(run)} has no BF16 tensor cores; FP16 runs on them",
        Text(f"{gpu_text(run)} 没有 BF16 张量核", f"BF16 on {gpu_text(run)}"),
        Text("改用 FP16 混合精度", "use FP16 mixed precision"),
        practices={"precision": "fp16"},
        variant="bf16",
        at=setting,
        share=0.5,
    )
    return replace(answer, better="fp16")


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


_SAMPLES = frozenset({"log_validation"})
"""Functions of Diffusers' scripts that make samples: no training step is in them."""
_DECORATED = Text("autocast 装饰的函数未必参与训练", "what autocast decorates may not train")


def _called_precision(run: Run) -> Optional[Judgement]:
    """Mixed precision that the program turns on by itself."""
    for call in calls(run, "torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast"):
        if call.scope.rpartition(".")[2] in _SAMPLES or _follows_flag(run, call):
            continue
        if call.is_decorator and run.framework == "hf_trainer":
            return cannot_tell(_DECORATED)
        if says(call, "enabled", True) or "enabled" not in call.keywords:
            return seen(call, "fp16" if call.name.startswith("torch.cuda") else "bf16")
    for call in (*calls(run, "accelerate.Accelerator"), *_of_the_model(run)):
        for name in ("mixed_precision", "torch_dtype", "dtype"):
            for word, variant in (("bf", "bf16"), ("fp16", "fp16"), ("float16", "fp16")):
                if _mentions(call.keywords.get(name), word):
                    return seen(call, variant)
    return None


def _of_the_model(run: Run) -> Iterator[Call]:
    """The loads of what is trained: a bare encoder beside a model with a head is a helper."""
    found = list(loads(run))
    bare = [call for call in found if call.name.endswith(".AutoModel.from_pretrained")]
    return iter([call for call in found if call not in bare] or bare)


def _follows_flag(run: Run, call: Call) -> bool:
    """Whether a script of VideoX-Fun takes the type that ``--mixed_precision`` stands for, which
    may be no half."""
    given = call.keywords.get("dtype")
    if run.framework != "videox_fun" or given is None:
        return False
    return not known(given.value) or "float32" in str(given.value)


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


_FP8_OF_SWIFT = {"fp8_format": "e4m3", "fp8_recipe": "blockwise"}


def _takes_fp8(run: Run) -> bool:
    """Whether the run's Megatron is known to have the flag: ms-swift's has."""
    return run.framework == "swift" or is_recent(run)


@of_training()
def _fp8(run: Run) -> Judgement:
    setting = run.practice("precision")
    name = gpu_text(run)
    if run.framework == "llamafactory" and is_quantized(run):
        return cannot_apply(Text("量化训练不支持 FP8", "not with a quantized base"))
    if run.framework == "llamafactory" and lacks(run, "llamafactory", "train", "fp8"):
        return cannot_apply(OLDER)
    if has_fp8(run) is False:
        return cannot_apply(Text(f"{name} 不支持 FP8", f"{name} has no FP8 cores"))
    if text(run, "precision") == "fp8":
        return on(setting)
    if not compiles_for_gpu(run):
        return cannot_apply(Text("非 CUDA 设备", "not a CUDA device"))
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
        return imported(found)
    if run.framework == "llamafactory" and not setting.known:
        return cannot_tell(setting)
    if run.framework == "swift" and run.value("megatron") is not True:
        return cannot_apply(
            Text("FP8 训练只由 megatron sft 提供", "megatron sft alone trains in FP8")
        )
    if not setting.known and "fp8" not in getattr(setting.value, "candidates", ("fp8",)):
        return off(Text("未用 FP8", "FP8 is off"))
    if not setting.known:
        return cannot_tell(setting)
    if has_fp8(run) is True and run.value("megatron") is True and _takes_fp8(run):
        answer = advise(
            run,
            f"{name} multiplies FP8 twice as fast as BF16; test convergence first",
            Text(f"{name} 上用 BF16 训练", f"BF16 on {name}"),
            Text("可在 Megatron 后端试用 FP8（先验证收敛）", "try FP8 (check convergence first)"),
            parameters=_FP8_OF_SWIFT if run.framework == "swift" else {"fp8_format": "hybrid"},
        )
        return with_edits(answer)  # whether the loss converges has to be tested
    return off(
        Text(
            "未用 FP8；需要 Hopper 或更新的 GPU 并验证收敛",
            "FP8 is off; it needs a Hopper or newer GPU and a convergence test",
        )
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
_HOPPER = """\
#!/bin/bash
#SBATCH --gres=gpu:h100:8
NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen2.5-7B --torch_dtype bfloat16 {}\\
    --tensor_model_parallel_size 2 --dataset data/train.jsonl
"""
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
            Item(_L, "B", "bf16", 3, "precision", "bf16"),
            Item(_L, "B", "fp16", 3, "precision", "fp16"),
            Item(_L, "B", "pure-bf16", 3, "precision", "pure-bf16"),
            Item(_H, "A", "bf16", 3, "precision", "bf16"),
            Item("videox-fun", "A", "mixed-precision-bf16", 3, "precision", "bf16"),
            Item("videox-fun", "A", "mixed-precision-fp16", 3, "precision", "fp16"),
            Item(_H, "A", "fp16", 3, "precision", "fp16"),
            Item("flow-factory", "A", "mixed-precision-bf16", 2.5, "precision", "bf16"),
            Item("flow-factory", "A", "mixed-precision-fp16", 2.5, "precision", "fp16"),
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
        by_framework(_fp8, videox_fun=videox.fp8),
        why="Hopper and newer GPUs multiply FP8 at twice the rate of BF16.",
        fix="Use the framework's FP8 switch, TransformerEngine or torchao float8.",
        ignore="Until a test shows that the loss converges as with BF16.",
        items=(
            Item(_A, "C", "fp8-training", 1),
            Item(_S, "B", "fp8-training", 1),
            Item(_L, "B", "fp8", 1),
            Item("videox-fun", "I", "fp8-training", 1),
        ),
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
)
