"""ms-swift: the parameters and defaults of ``swift sft/pt/rlhf`` (2.x to 4.x)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from flake8_gpu_training.facts import Setting, known
from flake8_gpu_training.frameworks import swift_megatron
from flake8_gpu_training.frameworks.accelerate import practices_of_run
from flake8_gpu_training.frameworks.attention_defaults import attention_of_named
from flake8_gpu_training.frameworks.base import Framework, Spelling
from flake8_gpu_training.frameworks.deepspeed import disputed, practices_from_deepspeed
from flake8_gpu_training.frameworks.hf_arguments import default_optimizer, saving
from flake8_gpu_training.frameworks.launched import data_parallel, is_launch_unread, merged
from flake8_gpu_training.frameworks.reading import (
    by_default,
    find,
    is_off,
    is_true,
    number,
    parsed,
    practice,
    truth,
    unknown,
    warmup,
)
from flake8_gpu_training.frameworks.swift_commands import is_megatron
from flake8_gpu_training.frameworks.swift_releases import (
    Default,
    dated,
    default_of,
    filled,
    is_of_2,
    lacks,
    release,
    source_of,
)
from flake8_gpu_training.frameworks.swift_shared import (
    DTYPE,
    algorithm,
    padding,
    precision,
    pretokenized,
    towers,
)
from flake8_gpu_training.runs.model import Run, once_per_run

_TRAIN = "ms-swift 4.6.0 swift/trainers/arguments.py"
_BASE = "ms-swift 4.6.0 swift/arguments/base_args/base_args.py"
_DATA = "ms-swift 4.6.0 swift/arguments/base_args/data_args.py"
_TEMPLATE = "ms-swift 4.6.0 swift/arguments/base_args/template_args.py"
_MODEL = "ms-swift 4.6.0 swift/arguments/base_args/model_args.py"
_QUANT = "ms-swift 4.6.0 swift/arguments/base_args/quant_args.py"
_TUNER = "ms-swift 4.6.0 swift/arguments/tuner_args.py"
_SFT = "ms-swift 4.6.0 swift/arguments/sft_args.py"
_HF = "transformers 4.46 to 5.24 training_args.py"

_ATTENTION = {"flash_attention_2": "flash_attn"}
_SHORTCUT = re.compile(r"(?:default-)?zero([0-3])(?:[_-](offload))?")

_SPELLINGS: dict[str, Spelling] = {
    "precision": Spelling("torch_dtype", DTYPE, aliases=("dtype",)),
    "tf32": Spelling("tf32", default=False, source=f"{_HF}: tf32 None; PyTorch: off"),
    "attention": Spelling(
        "attn_impl",
        _ATTENTION,
        "sdpa",
        f"{_MODEL}: attn_impl None chooses between sdpa and eager",
    ),
    "gradient_checkpointing": Spelling(
        "gradient_checkpointing", default=True, source=f"{_TRAIN}: gradient_checkpointing True"
    ),
    "vit_gradient_checkpointing": Spelling("vit_gradient_checkpointing", aliases=("vit_use_gc",)),
    "micro_batch_size": Spelling(
        "per_device_train_batch_size",
        default=1,
        source=f"{_TRAIN}: per_device_train_batch_size 1",
        aliases=("batch_size",),
    ),
    "gradient_accumulation_steps": Spelling("gradient_accumulation_steps"),
    "max_length": Spelling("max_length"),
    "tuning": Spelling(
        "tuner_type",
        default="lora",
        source=f"{_BASE}: tuner_type lora",
        aliases=("train_type", "sft_type"),
    ),
    "quantization_method": Spelling(
        "quant_method", default="none", source=f"{_QUANT}: quant_method None"
    ),
    "quantization_bits": Spelling(
        "quant_bits",
        default=None,
        source=f"{_QUANT}: quant_bits None",
        aliases=("quantization_bit",),
    ),
    "lora_rank": Spelling("lora_rank", default=8, source=f"{_TUNER}: lora_rank 8"),
    "packing": Spelling("packing", default=False, source=f"{_BASE}: packing False"),
    "padding_free": Spelling("padding_free", default=False, source=f"{_TEMPLATE}: False"),
    "group_by_length": Spelling("group_by_length", default=False, source=f"{_TRAIN}: False"),
    "liger_kernel": Spelling(
        "use_liger_kernel", default=False, source=f"{_TRAIN}: False", aliases=("use_liger",)
    ),
    "unsloth": Spelling(
        "tuner_backend",
        {True: "unsloth", False: "peft"},
        False,
        f"{_BASE}: tuner_backend peft",
    ),
    "torch_compile": Spelling("torch_compile", default=False, source=f"{_HF}: False"),
    "optimizer": Spelling("optim", aliases=("optimizer",)),
    "zero_stage": Spelling(
        "deepspeed", {0: "zero0", 1: "zero1", 2: "zero2", 3: "zero3"}, 0, f"{_HF}: deepspeed None"
    ),
    "zero_hpz_partition_size": Spelling(
        "zero_hpz_partition_size", default=1, source=f"{_SFT}: None"
    ),
    "autotp_size": Spelling("deepspeed_autotp_size", default=1, source=f"{_SFT}: None"),
    "fsdp": Spelling("fsdp", {"full_shard": "fsdp2"}, "none", f"{_SFT}: fsdp None"),
    "find_unused_parameters": Spelling("ddp_find_unused_parameters"),
    "device_map": Spelling("device_map"),
    "sequence_parallel": Spelling(
        "sequence_parallel_size", default=1, source=f"{_TEMPLATE}: sequence_parallel_size 1"
    ),
    "dataloader_workers": Spelling(
        "dataloader_num_workers", default=1, source=f"{_TRAIN}: None becomes 1 on Linux"
    ),
    "pin_memory": Spelling("dataloader_pin_memory", default=True, source=f"{_HF}: True"),
    "persistent_workers": Spelling("dataloader_persistent_workers"),
    "prefetch_factor": Spelling("dataloader_prefetch_factor"),
    "preprocessing_workers": Spelling(
        "dataset_num_proc",
        default=1,
        source=f"{_DATA}: dataset_num_proc 1",
        aliases=("preprocess_num_proc",),
    ),
    "streaming": Spelling("streaming", default=False, source=f"{_DATA}: streaming False"),
    "save_steps": Spelling("save_steps"),
    "logging_steps": Spelling("logging_steps", default=5, source=f"{_TRAIN}: logging_steps 5"),
    "report_to": Spelling(
        "report_to", default=["tensorboard"], source=f"{_TRAIN}: report_to tensorboard"
    ),
    "lr_scheduler": Spelling(
        "lr_scheduler_type", default="cosine", source=f"{_TRAIN}: lr_scheduler_type cosine"
    ),
    "warmup": Spelling("warmup_ratio"),
    "max_grad_norm": Spelling("max_grad_norm", default=1.0, source=f"{_HF}: max_grad_norm 1.0"),
    "freeze_vision": Spelling("freeze_vit", default=True, source=f"{_TUNER}: freeze_vit True"),
    "model": Spelling("model", aliases=("model_id_or_path", "model_type")),
    "dataset": Spelling("dataset", aliases=("cached_dataset",)),
    "output_dir": Spelling("output_dir"),
}


_ATTENTION_OF_2 = Spelling(
    "use_flash_attn",
    {"flash_attention_2": True, "sdpa": False},
    "sdpa",
    "ms-swift 2: use_flash_attn None leaves it to transformers",
)


@once_per_run
def _dialect(run: Run) -> Mapping[str, Spelling]:
    found = dated(run, swift_megatron.SPELLINGS if is_megatron(run) else _SPELLINGS)
    return {**found, "attention": _ATTENTION_OF_2} if is_of_2(run) else found


def _derive(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    if is_megatron(run):
        return swift_megatron.derive(run, spelled)
    found: dict[str, Setting] = {}
    found.update(precision(run))
    found.update(_attention(run))
    found.update(_checkpointing(run, spelled))
    found.update(_accumulation(run, spelled))
    found.update(_quantization(run, spelled))
    found.update(padding(spelled))
    found.update(towers(spelled.get("tuning")))
    found.update(_optimizer(run))
    engine = _deepspeed(run, spelled)
    found.update({**engine, **disputed(engine, spelled)})
    found.update(_fsdp(run, spelled))
    found.update(_loading(run, spelled))
    found.update(_training(run))
    found.update(algorithm(run))
    found.update(data_parallel(run, merged(found, spelled)))
    return found


def _attention(run: Run) -> dict[str, Setting]:
    setting = find(run, "attn_impl")
    if setting is not None and isinstance(setting.value, str):
        value = setting.value.lower()
        return {"attention": practice("attention", _flash(value), setting)}
    old = find(run, "use_flash_attn")
    if old is not None and setting is None and is_true(old):
        return {"attention": practice("attention", "flash_attention_2", old)}
    is_default = setting is None and (old is None or (old.known and is_off(old.value)))
    return _default_attention(run) if is_default else {}


def _default_attention(run: Run) -> dict[str, Setting]:
    """ms-swift leaves the configuration alone (model/utils.py, update_attn_impl), so that
    Transformers chooses by the model's family."""
    name = run.model.known_as
    if not name or run.model.kind == "unknown":
        return {}
    value, note = attention_of_named(run, name)
    if not known(value):
        return {"attention": Setting("attention", value)}
    return by_default(run, "attention", value, f"from_pretrained: {note}")


def _flash(value: str) -> str:
    return "flash_attention_2" if value in ("flash_attn", "flash_attention_2") else value


def _checkpointing(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    whole = spelled.get("gradient_checkpointing")
    lacking = lacks(run, "vit_gradient_checkpointing", "vit_use_gc")
    if "vit_gradient_checkpointing" not in spelled and whole is not None and not lacking:
        follows = "None becomes gradient_checkpointing"
        note = source_of(run, "vit_gradient_checkpointing", follows, "swift/trainers/arguments.py")
        found["vit_gradient_checkpointing"] = Setting(
            "vit_gradient_checkpointing", whole.value, whole.location, whole.origin, note
        )
    arguments = find(run, "gradient_checkpointing_kwargs")
    if arguments is not None and isinstance(arguments.value, dict):
        value = truth(arguments.value.get("use_reentrant"))
        if value is not None:
            found["reentrant_checkpointing"] = practice("reentrant_checkpointing", value, arguments)
    return found


def _accumulation(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    """The default makes a global batch of 16, save for GRPO: ``ceil(16 / batch / ranks)``."""
    if "gradient_accumulation_steps" in spelled:
        return {}
    written = find(run, "rlhf_type")
    if written is not None and not written.known:
        return {}
    if written is not None and str(written.value).lower() == "grpo":
        path = "swift/arguments/rlhf_args.py"
        shown = "None becomes 1 for GRPO"
        note = source_of(run, "gradient_accumulation_steps", shown, path)
        return by_default(run, "gradient_accumulation_steps", 1, note)
    batch = spelled.get("micro_batch_size")
    size = number(batch.value) if batch is not None else None
    world = run.launcher.world_size
    if not size or not world:
        return {}
    steps = max(1, math.ceil(16 / size / world))
    how = f"None becomes ceil(16 / batch size / world size) = {steps}"
    path = "swift/trainers/arguments.py"
    note = source_of(run, "gradient_accumulation_steps", how, path)
    return by_default(run, "gradient_accumulation_steps", steps, note)


def _quantization(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    method = spelled.get("quantization_method")
    bits = spelled.get("quantization_bits")
    if method is not None and isinstance(method.value, str) and method.explicit:
        value = "none" if is_off(method.value) else method.value.lower()
        found["quantization_method"] = practice("quantization_method", value, method)
        if value == "fp8" and (bits is None or not bits.explicit):
            found["quantization_bits"] = practice("quantization_bits", 8, method)
    if bits is not None and bits.value == 0:
        found["quantization_bits"] = practice("quantization_bits", None, bits)
    old = find(run, "quantization_bit")
    if old is not None and number(old.value) and (method is None or not method.explicit):
        found["quantization_method"] = practice("quantization_method", "bnb", old)
    return found


def _optimizer(run: Run) -> dict[str, Setting]:
    galore = find(run, "use_galore")
    if is_true(galore):
        quantized = find(run, "galore_quantization")
        name = "q-galore" if is_true(quantized) else "galore"
        return {"optimizer": practice("optimizer", name, galore)}
    setting = find(run, "optimizer", "optim")
    if setting is not None and isinstance(setting.value, str):
        return {"optimizer": practice("optimizer", setting.value.lower(), setting)}
    return {} if setting is not None else default_optimizer(run)


def _deepspeed(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    setting = find(run, "deepspeed")
    if setting is None or (known(setting.value) and is_off(setting.value)):
        return {}
    if isinstance(setting.value, str):
        match = _SHORTCUT.fullmatch(setting.value)
        if match is not None:
            return _shortcut(run, setting, int(match.group(1)), bool(match.group(2)))
    if run.deepspeed is None:
        reason = "the DeepSpeed configuration was not found"
        names = ("zero_stage", "offload_optimizer", "offload_param", "overlap_comm")
        return {name: unknown(name, reason, at=setting.location) for name in names}
    found = practices_from_deepspeed(run.deepspeed)
    found.pop("precision", None)
    for name in ("zero_hpz_partition_size", "autotp_size"):
        written = spelled.get(name)
        if written is not None and written.explicit:
            found.pop(name, None)
    return {name: value for name, value in found.items() if name not in _OWN or value.explicit}


# The Hugging Face integration fills these from the arguments unless the file sets them.
_OWN = ("micro_batch_size", "gradient_accumulation_steps", "max_grad_norm")


def _shipped(run: Run, file: str) -> str:
    """Where the run's release has a configuration of its own; 4.0 moved them."""
    folder = "swift/llm/ds_config" if parsed(release(run)) < (4,) else "swift/config"
    return f"ms-swift {release(run) or '4.6.0'} {folder}/{file}"


def _shortcut(run: Run, setting: Setting, stage: int, offloads: bool) -> dict[str, Setting]:
    file = f"{str(setting.value).replace('default-', '')}.json"
    note = f"--deepspeed {setting.value} ({_shipped(run, file)})"
    values: dict[str, Any] = {
        "zero_stage": stage,
        "offload_optimizer": "cpu" if offloads else "none",
        "offload_param": "cpu" if offloads and stage == 3 else "none",
        "overlap_comm": parsed(release(run)) < (3, 2),  # true in 2.0.5 to 3.1.1
    }
    return {name: practice(name, value, setting, note) for name, value in values.items()}


def _fsdp(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    setting = find(run, "fsdp")
    if setting is None or (known(setting.value) and is_off(setting.value)):
        return _launched(run)
    if setting.value == "fsdp2":
        return _fsdp2(run, setting)
    if known(setting.value) and str(setting.value).startswith("full_shard"):
        return {"fsdp": practice("fsdp", "full_shard", setting)}
    if find(run, "fsdp.fsdp", "fsdp.fsdp_config.fsdp_version") is not None:
        return _fsdp_file(run, setting)
    reason = "the FSDP configuration was not read"
    found = {"fsdp": unknown("fsdp", reason, at=setting.location)}
    recompute = spelled.get("gradient_checkpointing")
    if recompute is None or recompute.value is not True:  # the file may turn it on
        found["gradient_checkpointing"] = unknown(
            "gradient_checkpointing", reason, at=setting.location
        )
    return found


def _fsdp_file(run: Run, setting: Setting) -> dict[str, Setting]:
    """A file like ms-swift's own fsdp2.json: FSDP2 unless it says otherwise (sft_args.py)."""
    options = find(run, "fsdp.fsdp")
    words = str(options.value).split() if options is not None else []
    kept = find(run, "fsdp.fsdp_config.reshard_after_forward")
    gathers = "shard_grad_op" in words or (kept is not None and truth(kept.value) is False)
    found = {
        "fsdp": practice("fsdp", "shard_grad_op" if gathers else "full_shard", setting),
        "fsdp_offload": practice("fsdp_offload", "offload" in words, options or setting),
        "device_map": practice("device_map", "none", setting),
    }
    version = find(run, "fsdp.fsdp_config.fsdp_version")
    number_of = version.value if version is not None else 2
    found["fsdp_version"] = practice("fsdp_version", number_of, version or setting)
    recompute = find(run, "fsdp.fsdp_config.activation_checkpointing")
    if is_true(recompute):
        found["gradient_checkpointing"] = practice("gradient_checkpointing", True, recompute)
    return found


def _fsdp2(run: Run, setting: Setting) -> dict[str, Setting]:
    note = f"--fsdp fsdp2 ({_shipped(run, 'fsdp2.json')})"
    return {
        "fsdp": practice("fsdp", "full_shard", setting, note),
        "fsdp_version": practice("fsdp_version", 2, setting, note),
        "fsdp_offload": practice("fsdp_offload", False, setting, note),
        "gradient_checkpointing": practice(
            "gradient_checkpointing", True, setting, f"{note}: activation_checkpointing"
        ),
        "device_map": practice("device_map", "none", setting, note),
    }


def _launched(run: Run) -> dict[str, Setting]:
    """Sharding that ``accelerate launch`` sets where ms-swift's own parameters do not."""
    if is_launch_unread(run):
        reason = "the Accelerate configuration was not found"
        return {name: unknown(name, reason) for name in ("fsdp", "zero_stage")}
    names: tuple[str, ...] = ("fsdp", "fsdp_version", "fsdp_offload", "gradient_checkpointing")
    if find(run, "deepspeed") is None:
        names += ("zero_stage", "offload_optimizer", "offload_param", "overlap_comm")
    launched = practices_of_run(run)
    return {name: launched[name] for name in names if name in launched}


def _loading(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    workers = spelled.get("dataloader_workers")
    count = number(workers.value) if workers is not None else None
    if "persistent_workers" not in spelled and count is not None:
        default = default_of(run, "dataloader_persistent_workers")
        default = default or Default(False, "PyTorch: persistent_workers False")
        keeps = default.value is True and count > 0
        found.update(by_default(run, "persistent_workers", keeps, default.source))
    if "prefetch_factor" not in spelled and count is not None:
        found.update(_prefetch(run, count))
    return {**found, **pretokenized(run)}


def _prefetch(run: Run, workers: float) -> dict[str, Setting]:
    """2; in ms-swift 3.3 to 3.11 it was 10 (3.3.1, 3.11.3 and 3.12.0, trainers/arguments.py)."""
    version, name = release(run), "dataloader_prefetch_factor"
    many = (3, 3) <= parsed(version) < (3, 12)
    put = filled(run, name) or (10 if many else 2)
    value = None if workers <= 0 else put
    shown = None if value is None else f"None becomes {value}"
    note = source_of(run, name, shown, "swift/trainers/arguments.py")
    if parsed(version) < (3, 3):  # nothing is said of it: torch's DataLoader decides
        note = "PyTorch: prefetch_factor 2 where there are workers"
    return by_default(run, "prefetch_factor", value, note)


def _training(run: Run) -> dict[str, Setting]:
    found = saving(run)
    warm = warmup(find(run, "warmup_ratio"), find(run, "warmup_steps"))
    if warm is not None:
        found["warmup"] = warm
    else:
        ratio = default_of(run, "warmup_ratio") if is_of_2(run) else None  # 0.05 in ms-swift 2
        default = ratio or Default(0, f"{_HF}: warmup_steps 0")
        found.update(by_default(run, "warmup", default.value, default.source))
    return found


FRAMEWORK = Framework(
    id="swift",
    title="ms-swift",
    audit="swift",
    distribution="ms-swift",
    spellings=_SPELLINGS,
    dialect=_dialect,
    derive=_derive,
)
