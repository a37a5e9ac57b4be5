"""GPU016 to GPU019: options that need or exclude each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Callable

from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks._faults import Fault, judge_of
from flake8_gpu_training.checks._judging import spelled
from flake8_gpu_training.checks._mistaken import (
    FAILS,
    IGNORED,
    is_on,
    place_of,
    value_of,
    written,
)
from flake8_gpu_training.checks._scale import (
    gpu_text,
    has_flash_kernel,
    is_ray,
    ranks,
)
from flake8_gpu_training.checks.base import (
    Check,
    Example,
    Priority,
)
from flake8_gpu_training.checks.changes import write
from flake8_gpu_training.facts import Origin
from flake8_gpu_training.frameworks.reading import version_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

# --- GPU016: packing ---------------------------------------------------------------------


_FLASH = ("flash_attention_2", "flash_attention_3", "flash_attention_4")


_PACKS_WITH_FLASH = {"packing": (3, 4), "padding_free": (3, 5)}
"""First ms-swift that refuses other attention."""


def _packing_without_flash(run: Run) -> Iterator[Fault]:
    if run.framework != "swift" or run.value("megatron") is True or is_ray(run):
        return
    packed = is_on(run, "packing") or is_on(run, "padding_free")
    attention = run.practice("attention")
    if packed is None or not attention.known or attention.value in _FLASH:
        return
    if version_of(run, "ms-swift") < _PACKS_WITH_FLASH[packed.name]:
        return
    is_flag = packed.origin is Origin.FLAG
    own = f"--{packed.name}" if is_flag else packed.name
    flag = "--attn_impl flash_attn" if is_flag else "attn_impl to flash_attn"
    if has_flash_kernel(run) is False:
        yield Fault(
            place_of(packed),
            f"drop {own}: {packed.name} needs FlashAttention, which {gpu_text(run)} lacks, and "
            "ms-swift refuses to start",
            Text(f"{packed.name} 需要 flash attention", f"{packed.name} needs flash attention"),
            Text(f"该 GPU 上去掉 {packed.name}", f"drop {packed.name} on this GPU"),
            write(run, {packed.name: False}),
        )
        return
    yield Fault(
        place_of(packed),
        f"set {flag}: {packed.name} needs flash attention, the run has {attention.value}, and "
        "ms-swift refuses to start",
        Text(f"{packed.name} 需要 flash attention", f"{packed.name} needs flash attention"),
        Text(f"设置 {flag}", f"set {flag}"),
        write(run, {"attn_impl": "flash_attn"}),
    )


# --- GPU017 to GPU019: options that exclude each other -----------------------------------


def _two_kernel_libraries(run: Run) -> Iterator[Fault]:
    unsloth, liger = run.practice("unsloth"), run.practice("liger_kernel")
    if unsloth.known and unsloth.value is True and liger.known and liger.value is True:
        if liger.location is None:
            return
        yield Fault(
            liger.location,
            "drop the Liger kernels: Unsloth patches the same modules",
            Text("同时启用了 Unsloth 与 Liger", "Unsloth and Liger are both on"),
            Text("二者择一", "keep one of them"),
            write(run, spelled(run, {"liger_kernel": False}) or {}),
        )


def _is_prepared(run: Run) -> bool:
    """Whether Accelerate prepares the model, be it for a Trainer."""
    if run.framework == "hf_trainer":
        return True
    own = run.framework == "generic" and run.launcher.name == "accelerate"
    return own and any(file.calls_to("accelerate.Accelerator") for file in run.python)


def _device_map_in_processes(run: Run) -> Iterator[Fault]:
    placed = run.practice("device_map")
    count = ranks(run)
    if not _is_prepared(run) or count is None or count < 2 or run.single_file:
        return
    if placed.explicit and placed.value in ("auto", "balanced", "balanced_low_0", "sequential"):
        yield Fault(
            place_of(placed),
            f"drop device_map={placed.value!r}: Accelerate refuses it with {count} processes",
            Text(f"{count} 个进程却使用 device_map", f"device_map with {count} processes"),
            Text("多进程训练去掉 device_map", "drop device_map"),
        )


@dataclass(frozen=True)
class _Exclusion:
    """Two settings of a framework that it refuses together."""

    frameworks: tuple[str, ...]
    dropped: str
    kept: str
    reason: str
    is_kept: Callable[[Run], bool]
    since: tuple[int, ...] = ()
    """First ms-swift that refuses it; those before turn one of the two off."""


def _sharded_state(run: Run) -> bool:
    return run.setting("fsdp") is not None and value_of(run, "fsdp") == "fsdp2"


_EXCLUSIONS = (
    _Exclusion(
        ("hf_trainer", "swift"),
        "fsdp",
        "deepspeed",
        "FSDP and DeepSpeed both shard the model",
        lambda run: bool(value_of(run, "deepspeed")),
    ),
    _Exclusion(
        ("swift",),
        "lazy_tokenize",
        "packing",
        "packing needs the lengths beforehand",
        lambda run: is_on(run, "packing") is not None,
        (3, 7),
    ),
    _Exclusion(
        ("swift",),
        "lazy_tokenize",
        "streaming",
        "streaming tokenises on the fly already",
        lambda run: is_on(run, "streaming") is not None,
        (3, 7),
    ),
    _Exclusion(
        ("swift",),
        "save_only_model",
        "fsdp fsdp2",
        "its checkpoints are sharded",
        _sharded_state,
    ),
)


def _exclusive(run: Run) -> Iterator[Fault]:
    for rule in _EXCLUSIONS:
        dropped = written(run, rule.dropped)
        if run.framework not in rule.frameworks or dropped is None:
            continue
        if rule.since and version_of(run, "ms-swift") < rule.since:
            continue
        if dropped.value in (False, "", "false", None) or not rule.is_kept(run):
            continue
        yield Fault(
            place_of(dropped),
            f"drop {rule.dropped}: it is refused with {rule.kept}, since {rule.reason}",
            Text(f"{rule.dropped} 与 {rule.kept} 冲突", f"{rule.dropped} with {rule.kept}"),
            Text(f"去掉 {rule.dropped}", f"drop {rule.dropped}"),
            write(run, {rule.dropped: False}) if rule.dropped != "fsdp" else None,
        )


# --- GPU022: one process on several GPUs -------------------------------------------------


_PACKED = (
    "swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora \\\n"
    "    --packing true {}--dataset data/train.jsonl\n"
)


_PLACED = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B-Instruct"{})
args = TrainingArguments(output_dir="out", bf16=True, gradient_checkpointing=True)
Trainer(model=model, args=args, train_dataset=train_dataset).train()
"""


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU016",
        "packing-without-flash",
        Text("packing 需要 flash attention", "Packing without flash attention"),
        Priority.HIGH,
        judge_of(_packing_without_flash, training=True),
        why="ms-swift raises ValueError: packed samples are kept apart by the flash kernel.",
        fix="Set --attn_impl flash_attn.",
        impact=FAILS,
        examples=(
            Example(
                "swift",
                "train.sh",
                _PACKED.format(""),
                _PACKED.format("--attn_impl flash_attn "),
            ),
        ),
        sources=(sources.SWIFT_ARGUMENTS,),
    ),
    Check(
        "GPU017",
        "two-kernel-libraries",
        Text("Unsloth 与 Liger 二选一", "Unsloth and Liger together"),
        Priority.MEDIUM,
        judge_of(_two_kernel_libraries, training=True),
        why="Both replace the same modules of the model.",
        fix="Keep Unsloth for LoRA on one GPU, Liger elsewhere.",
        impact=IGNORED,
        examples=(
            Example(
                "swift",
                "train.sh",
                "swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora \\\n"
                "    --tuner_backend unsloth --use_liger_kernel true\n",
                "swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora \\\n"
                "    --tuner_backend unsloth\n",
            ),
        ),
        sources=(sources.SWIFT_DOCS,),
    ),
    Check(
        "GPU018",
        "device-map-in-processes",
        Text("多进程不能用 device_map", "device_map with several processes"),
        Priority.HIGH,
        judge_of(_device_map_in_processes, training=True),
        why="Accelerate raises ValueError for a model spread by device_map in any "
        "distributed mode.",
        fix="Drop device_map, or start one process.",
        impact=FAILS,
        examples=(
            Example(
                "hf_trainer",
                "train.py",
                _PLACED.format(', device_map="auto"'),
                _PLACED.format(""),
                (("train.sh", "torchrun --nproc_per_node=4 train.py\n"),),
            ),
        ),
        sources=("accelerate 1.15, accelerator.py",),
    ),
    Check(
        "GPU019",
        "exclusive-options",
        Text("互斥的选项", "Options that exclude each other"),
        Priority.HIGH,
        judge_of(_exclusive, training=True),
        why="The framework refuses the two together.",
        fix="Keep one of them.",
        impact=FAILS,
        examples=(
            Example(
                "swift",
                "train.sh",
                "swift sft --model Qwen/Qwen2.5-7B-Instruct --attn_impl flash_attn \\\n"
                "    --packing true --lazy_tokenize true\n",
                "swift sft --model Qwen/Qwen2.5-7B-Instruct --attn_impl flash_attn \\\n"
                "    --packing true\n",
            ),
        ),
        sources=(sources.SWIFT_ARGUMENTS, "transformers 5.24, trainer.py"),
    ),
)
