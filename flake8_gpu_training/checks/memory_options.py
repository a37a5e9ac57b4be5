"""GPU206 to GPU210: further ways to save memory, most of them ms-swift's."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Optional

from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks._by_framework import by_framework
from flake8_gpu_training.checks._documents import replacement
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    Snippet,
    advise,
    cannot_apply,
    cannot_tell,
    no_mistake,
    of_training,
    off,
    on,
)
from flake8_gpu_training.checks._llamafactory import SWITCHES, lean_optimizer
from flake8_gpu_training.checks._scale import (
    number,
    text,
    tunes_all,
)
from flake8_gpu_training.checks._settings import (
    NO_TOWER,
    NOT_SWIFT,
    has_no_tower,
    is_multimodal,
    is_on,
    is_text,
    is_unknown,
    task,
)
from flake8_gpu_training.checks._swift import missing, of_megatron
from flake8_gpu_training.checks.base import Check, Example, Impact, Item, Judgement, Priority
from flake8_gpu_training.facts import Setting, known
from flake8_gpu_training.frameworks.at_hand import at_hand, required
from flake8_gpu_training.frameworks.reading import parsed, version_of
from flake8_gpu_training.frameworks.swift_releases import release
from flake8_gpu_training.frameworks.tables import table_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

# --- GPU206 ---------------------------------------------------------------------------


def _flag(run: Run, name: str) -> Optional[Setting]:
    """A framework's own switch when it is known to be on."""
    setting = run.setting(name)
    return setting if setting is not None and setting.known and setting.value is True else None


@of_training()
def _projected_optimizer(run: Run) -> Judgement:
    absent = missing(run, "use_galore")
    if absent is not None:
        return cannot_apply(absent)
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
    return off(
        Text(
            "未使用；全参训练显存不足时可选",
            "off; an option for full tuning that is short of memory",
        )
    )


# --- GPU207 ---------------------------------------------------------------------------


@of_training()
def _vision_checkpointing(run: Run) -> Judgement:
    if is_unknown(run) or (run.model.kind == "unknown" and run.framework != "swift"):
        return cannot_tell(Text("模型未知", "the model is not known"))
    if not is_multimodal(run):
        return cannot_apply(Text("不是多模态模型", "not a multimodal model"))
    if has_no_tower(run):
        return cannot_apply(NO_TOWER)
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
    if run.framework != "swift":
        return cannot_apply(NOT_SWIFT)
    if (number(run, "sequence_parallel") or 1) > 1:
        return cannot_apply(Text("序列并行不支持", "sequence parallelism does not support it"))
    absent = missing(run, "use_logits_to_keep")
    if absent is not None:
        return cannot_apply(absent)
    if text(run, "algorithm") in _OTHER_LOGITS or task(run) not in ("causal_lm", ""):
        return cannot_apply(Text("该训练不使用此参数", "this kind of training does not ask for it"))
    setting = run.setting("use_logits_to_keep")
    if setting is None:
        return _usual_logits(run)
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


_OTHER_LOGITS = ("orpo", "simpo", "cpo", "rm", "ppo")


def _release(run: Run) -> str:
    return release(run) or "4.6.0"


# Multimodal classes of transformers 5.24 whose forward takes logits_to_keep, by how their
# checkpoints are named; classes without it (GOT's own too), and models for which ms-swift 4.6.0
# asks for transformers before 5 (``requires`` in swift/model/models), which have it off.
_OF_TRANSFORMERS = re.compile(
    r"(?i)qwen-?2(?:\.5)?-vl|qwen-?3-vl|qwen-?3\.[5-9]|qvq|gemma-?[34]|paligemma|glm-4\.\d+v|"
    r"(?:llava|internvl|got-ocr).*-hf|llama-?4-|llama-3\.2.*vision|idefics3|pixtral|smolvlm"
)
_NOT_KEPT = re.compile(
    r"(?i)omni|audio|-asr|-tts|deepseek-(?:vl2|ocr)|unlimited-ocr|phi-4-multimodal|glm-4v-9b|"
    r"cogvlm|cogagent|kimi-(?:vl|k2\.5)|mplug-?owl2|moss-vl|minicpm-(?:v$|v-2$|v-?4[._]6|o)|"
    r"intern-s1|molmo2|keye-vl-1|sail-vl2|got-ocr-?2[._]0$"
)


def _transformers_at_hand(run: Run) -> Optional[tuple[int, ...]]:
    """The release of transformers that the run's release of ms-swift gets, or None."""
    stated = version_of(run, "transformers")
    if stated < (5,) or "transformers" in run.unreleased:
        return stated if stated < (5,) else None
    state, table = at_hand(run, "ms-swift"), table_of("ms-swift")
    version = state.version if state is not None else run.held.get("ms-swift")
    if version is None or table is None:
        return (4,) if version_of(run, "ms-swift") < (4,) else None
    wanted = required(table, "transformers", version)
    found = at_hand(run, "transformers", wanted)
    return parsed(found.version) if found is not None else None


def _usual_logits(run: Run) -> Judgement:
    """The default: on for text models, and from Transformers 5 on for others that take it."""
    if run.is_open:
        return cannot_tell(Text("参数未完全可见", "not all parameters are in sight"))
    if run.model.kind == "unknown":
        return cannot_tell(Text("模型未知", "the model is not known"))
    if is_text(run):
        return on(f"use_logits_to_keep=true (ms-swift {_release(run)}, trainers/mixin.py)")
    name = run.model.known_as
    beside = _transformers_at_hand(run)
    if _NOT_KEPT.search(name):
        return off(Text("该模型默认不启用", "off by default for this model"))
    shown = ".".join(str(part) for part in beside or ())
    if beside is not None and beside < (5,):
        old = f"transformers {shown}" if beside > (4,) else "ms-swift 3"
        return off(Text(f"{old} 下多模态模型默认不启用", f"off for multimodal models with {old}"))
    if beside is not None and _OF_TRANSFORMERS.search(name):
        source = f"ms-swift {_release(run)} + transformers {shown}: trainers/mixin.py"
        return on(f"use_logits_to_keep=true ({source})")
    return cannot_tell(
        Text(
            "多模态模型：由 transformers 版本决定（5.x 默认启用）",
            "a multimodal model: the release of transformers decides (5.x turns it on)",
        )
    )


@of_training()
def _activation_offload(run: Run) -> Judgement:
    if of_megatron(run):
        return cannot_apply(Text("Megatron 不使用此回调", "Megatron has no such callback"))
    if text(run, "fsdp") in (None, "none"):
        if not run.practice("fsdp").known:
            return cannot_tell(run.practice("fsdp"))
        return cannot_apply(Text("仅用于 FSDP2", "for FSDP2 only"))
    setting = run.setting("callbacks")
    if setting is not None and setting.known and "activation_cpu_offload" in str(setting.value):
        return on(setting)
    switch = run.setting("fsdp.fsdp_config.activation_cpu_offload")
    if switch is not None and is_on(switch):
        return on(switch)
    absent = missing(run, "callbacks")
    if absent is not None:
        return cannot_apply(absent)
    return off(Text("未卸载激活；显存足够时不需要", "off; not needed while memory is enough"))


# --- GPU210 ---------------------------------------------------------------------------


_OFFLOADS = ("offload_optimizer", "offload_param")


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


_S = "swift"
_L = "llamafactory"

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

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU206",
        "projected-optimizer",
        Text("低秩投影优化器（GaLore）", "Low-rank optimizer states (GaLore)"),
        Priority.LOW,
        by_framework(_projected_optimizer, llamafactory=lean_optimizer),
        why="Adam's moments take 8 bytes a parameter; GaLore keeps them in a projected space.",
        fix="Use GaLore or Q-GaLore for full tuning on one GPU.",
        items=(
            Item(_S, "E", "galore", 3, "galore", "galore"),
            Item(_S, "E", "q-galore", 3, "galore", "q-galore"),
            *(Item(_L, "E", name, 6, "optimizer", name) for name in SWITCHES),
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
