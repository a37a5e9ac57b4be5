"""LlamaFactory: its parameters and defaults (0.9.x), on top of Transformers' arguments."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping
from typing import Any, Optional

from flake8_gpu_training.facts import Origin, Setting, Unknown, known
from flake8_gpu_training.frameworks import llamafactory_v1
from flake8_gpu_training.frameworks.accelerate import practices_of_run
from flake8_gpu_training.frameworks.at_hand import at_hand
from flake8_gpu_training.frameworks.base import Framework, Spelling
from flake8_gpu_training.frameworks.deepspeed import disputed, practices_from_deepspeed
from flake8_gpu_training.frameworks.hf_arguments import default_optimizer, saving
from flake8_gpu_training.frameworks.launched import data_parallel, is_launch_unread, merged
from flake8_gpu_training.frameworks.llamafactory_v1 import is_v1
from flake8_gpu_training.frameworks.reading import (
    by_default,
    find,
    is_off,
    is_true,
    number,
    parsed,
    practice,
    unknown,
    warmup,
)
from flake8_gpu_training.frameworks.tables import table_of
from flake8_gpu_training.runs.model import Run

NAMED = (0, 9, 1)
"""The first of the releases that the sources of defaults name."""
_HPARAMS = "llamafactory 0.9.1 to 0.9.5 hparams"
_MODEL = f"{_HPARAMS}/model_args.py"
_DATA = f"{_HPARAMS}/data_args.py"
_TUNING = f"{_HPARAMS}/finetuning_args.py"
_HF = "transformers 4.46.3 to 5.24.0 training_args.py"

_ATTENTION = {
    "flash_attention_2": "fa2",
    "flash_attention_3": "fa3",
    "eager": "disabled",
}
_BUNDLED = "examples/deepspeed/ds_z{stage}_config.json"

_SPELLINGS: dict[str, Spelling] = {
    "precision": Spelling(
        "bf16",
        {"bf16": True},
        instead={
            "fp16": {"fp16": True},
            "pure-bf16": {"pure_bf16": True},
            "fp8": {"fp8": True},
            "fp32": {"bf16": False},
        },
    ),
    "tf32": Spelling("tf32", default=False, source=f"{_HF}: tf32 None; PyTorch: off"),
    "attention": Spelling("flash_attn", _ATTENTION, "auto", f"{_MODEL}: flash_attn auto"),
    "gradient_checkpointing": Spelling(
        "disable_gradient_checkpointing",
        {True: False, False: True},
        True,
        f"{_MODEL}: disable_gradient_checkpointing False",
    ),
    "reentrant_checkpointing": Spelling(
        "use_reentrant_gc",
        default=True,
        source="llamafactory 0.9.2 to 0.9.5 hparams/model_args.py: use_reentrant_gc True",
    ),
    "micro_batch_size": Spelling(
        "per_device_train_batch_size",
        default=8,
        source=f"{_HF}: per_device_train_batch_size 8",
    ),
    "gradient_accumulation_steps": Spelling(
        "gradient_accumulation_steps", default=1, source=f"{_HF}: gradient_accumulation_steps 1"
    ),
    "max_length": Spelling("cutoff_len", default=2048, source=f"{_DATA}: cutoff_len 2048"),
    "tuning": Spelling(
        "finetuning_type", default="lora", source=f"{_TUNING}: finetuning_type lora"
    ),
    "quantization_method": Spelling("quantization_method"),
    "quantization_bits": Spelling(
        "quantization_bit", default=None, source=f"{_MODEL}: quantization_bit None"
    ),
    "lora_rank": Spelling("lora_rank", default=8, source=f"{_TUNING}: lora_rank 8"),
    "packing": Spelling("packing"),
    "padding_free": Spelling("neat_packing", default=False, source=f"{_DATA}: neat_packing False"),
    "group_by_length": Spelling(
        "group_by_length",
        default=False,
        source="transformers 4.46.3 training_args.py: group_by_length False",
    ),
    "liger_kernel": Spelling(
        "enable_liger_kernel", default=False, source=f"{_MODEL}: enable_liger_kernel False"
    ),
    "unsloth": Spelling("use_unsloth", default=False, source=f"{_MODEL}: use_unsloth False"),
    "torch_compile": Spelling("torch_compile", default=False, source=f"{_HF}: torch_compile False"),
    "optimizer": Spelling("optim"),
    "zero_stage": Spelling(
        "deepspeed", {stage: _BUNDLED.format(stage=stage) for stage in (0, 2, 3)}
    ),
    "fsdp": Spelling("fsdp", {"full_shard": "full_shard auto_wrap"}),
    "find_unused_parameters": Spelling("ddp_find_unused_parameters"),
    "device_map": Spelling("device_map"),
    "dataloader_workers": Spelling(
        "dataloader_num_workers", default=0, source=f"{_HF}: dataloader_num_workers 0"
    ),
    "pin_memory": Spelling(
        "dataloader_pin_memory", default=True, source=f"{_HF}: dataloader_pin_memory True"
    ),
    "persistent_workers": Spelling(
        "dataloader_persistent_workers",
        default=False,
        source=f"{_HF}: dataloader_persistent_workers False",
    ),
    "prefetch_factor": Spelling(
        "dataloader_prefetch_factor", default=None, source=f"{_HF}: dataloader_prefetch_factor None"
    ),
    "preprocessing_workers": Spelling(
        "preprocessing_num_workers",
        default=None,
        source=f"{_DATA}: preprocessing_num_workers None",
    ),
    "streaming": Spelling("streaming", default=False, source=f"{_DATA}: streaming False"),
    "save_steps": Spelling("save_steps"),
    "logging_steps": Spelling("logging_steps", default=500, source=f"{_HF}: logging_steps 500"),
    "report_to": Spelling("report_to"),
    "lr_scheduler": Spelling(
        "lr_scheduler_type", default="linear", source=f"{_HF}: lr_scheduler_type linear"
    ),
    "warmup": Spelling("warmup_ratio"),
    "max_grad_norm": Spelling("max_grad_norm", default=1.0, source=f"{_HF}: max_grad_norm 1.0"),
    "algorithm": Spelling("stage", default="sft", source=f"{_TUNING}: stage sft"),
    "freeze_vision": Spelling(
        "freeze_vision_tower", default=True, source=f"{_TUNING}: freeze_vision_tower True"
    ),
    "model": Spelling("model_name_or_path"),
    "dataset": Spelling("dataset"),
    "output_dir": Spelling("output_dir"),
}


# Releases before 0.9.2 have no choice (model/model_utils/checkpointing.py, 0.7.1 to 0.9.0).
_BUILT_IN = {"reentrant_checkpointing": "checkpointing.py: use_reentrant True"}


def release_of(run: Run) -> str:
    """The release of the table that stands for the run's, "" for the newest ones."""
    table, state = table_of("llamafactory"), at_hand(run, "llamafactory")
    version = state.version if state is not None else run.held.get("llamafactory", "")
    return table.versions[table.release(version)] if table is not None and version else ""


def is_unreleased(run: Run) -> bool:
    """Whether the source at hand is newer than all releases (0.9.6.dev0)."""
    table, held = table_of("llamafactory"), run.held.get("llamafactory", "")
    return table is not None and bool(held) and parsed(held) > parsed(table.versions[-1])


def _spellings_of(run: Run) -> Mapping[str, Spelling]:
    return llamafactory_v1.SPELLINGS if is_v1(run) else _spellings_in(release_of(run))


@functools.lru_cache(maxsize=32)
def _spellings_in(release: str) -> Mapping[str, Spelling]:
    """The spellings with the defaults of a release, where it is none of those that are named."""
    table = table_of("llamafactory")
    if table is None or not release or parsed(release) >= NAMED:
        return _SPELLINGS
    parameters = table.parameters("train", release)
    found: dict[str, Spelling] = {}
    for practice_, spelling in _SPELLINGS.items():
        if not spelling.source.startswith("llamafactory"):
            found[practice_] = spelling
            continue
        declared = parameters.get(spelling.parameter)
        default, told = spelling.default, f"{spelling.parameter} not there yet"
        if declared is not None and declared.has_default:
            told = f"{spelling.parameter} {declared.default}"
            default = spelling.read(declared.default)
        told = f"llamafactory {release} {_BUILT_IN.get(practice_, f'hparams: {told}')}"
        found[practice_] = dataclasses.replace(spelling, default=default, source=told)
    return found


def _derive(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    if is_v1(run):
        own = llamafactory_v1.derive(run)
        return {**own, **data_parallel(run, merged(own, spelled))}
    launched = practices_of_run(run)
    found: dict[str, Setting] = {}
    found.update(_precision(run, launched))
    found.update(_checkpointing(run, launched))
    found.update(_quantization(run, spelled))
    found.update(_packing(run, spelled))
    engine = _deepspeed(run, launched)
    found.update({**engine, **disputed(engine, spelled)})
    found.update(_fsdp(run, launched))
    found.update(_optimizer(run, found))
    found.update(_megatron(run))
    found.update(_training(run, spelled))
    found.update(_attention(run, spelled))
    found.update(data_parallel(run, merged(found, spelled)))
    found.update(_unused(run, spelled))
    return found


def _precision(run: Run, launched: Mapping[str, Setting]) -> dict[str, Setting]:
    for name, value in (
        ("fp8", "fp8"),
        ("pure_bf16", "pure-bf16"),
        ("bf16", "bf16"),
        ("fp16", "fp16"),
    ):
        setting = find(run, name)
        if setting is not None and not known(setting.value):
            return {"precision": practice("precision", setting.value, setting)}
        if is_true(setting):
            return {"precision": practice("precision", value, setting)}
    if "precision" in launched and launched["precision"].value != "fp32":
        return {"precision": launched["precision"]}
    off = find(run, "bf16", "fp16")
    if off is not None:
        return {"precision": practice("precision", "fp32", off)}
    return by_default(run, "precision", "fp32", f"{_HF}: bf16 False, fp16 False")


def _checkpointing(run: Run, launched: Mapping[str, Setting]) -> dict[str, Setting]:
    """``use_unsloth_gc`` is a checkpointing of its own; plain ``gradient_checkpointing``
    has no say."""
    offload = find(run, "use_unsloth_gc")
    disabled = find(run, "disable_gradient_checkpointing")
    found: dict[str, Setting] = {}
    if offload is not None and is_true(offload) and not is_true(disabled):
        found["gradient_checkpointing"] = practice("gradient_checkpointing", True, offload)
    by_experts = find(run, "use_kt")
    if by_experts is not None and is_true(by_experts) and is_unreleased(run):
        # 0.9.6.dev0 hparams/model_args.py, configure_kt_checkpointing.
        found["reentrant_checkpointing"] = practice("reentrant_checkpointing", False, by_experts)
    version = launched.get("fsdp_version")
    is_old = parsed(release_of(run)) < (0, 9, 4)
    if version is not None and version.value == 2 and not is_old:
        # It sees to it by itself (0.9.4, model/model_utils/checkpointing.py).
        found["reentrant_checkpointing"] = practice("reentrant_checkpointing", False, version)
    return found


# llmtuner 0.5.3 and 0.6.3 model/patcher.py, hparams/model_args.py: flash_attn False, eager
# then; 0.7.0 to llamafactory 0.9.5: a choice, auto unless told.
_OLD_ENTRY = re.compile(r"train_bash|llmtuner")


def _attention(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    """Releases before 0.7 have a switch, and eager attention where it is off."""
    setting = spelled.get("attention")
    if setting is None:
        return {}
    if setting.explicit:
        if not isinstance(setting.value, bool):
            return {}
        value = "flash_attention_2" if setting.value else "eager"
        return {"attention": practice("attention", value, setting)}
    words = run.command.words if run.command is not None else ()
    imported = (item.module for file in run.python for item in file.imports)
    if not any(map(_OLD_ENTRY.search, (*(word.text for word in words), *imported))):
        return {}
    fields = (own.fields.get("flash_attn") for file in run.python for own in file.classes)
    told = next((field for field in fields if field is not None), None)
    if told is not None and told.value == "auto":
        return {}
    return {"attention": unknown("attention", "an old release of llmtuner", "eager", "auto")}


def unknown_quantizer(run: Run) -> Optional[Setting]:
    """A quantization_method of a file that the release at hand does not know: it then quantizes
    nothing (0.9.5 model/model_utils/quantization.py), while argparse refuses such a flag."""
    method, table = find(run, "quantization_method"), table_of("llamafactory")
    release = release_of(run)
    if method is None or method.origin is not Origin.FILE or table is None or not release:
        return None
    parameter = table.parameters("train", release).get("quantization_method")
    if parameter is None or not parameter.choices or not isinstance(method.value, str):
        return None
    return method if method.value not in parameter.choices else None


def _quantization(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    bits = spelled.get("quantization_bits")
    if bits is None or not known(bits.value):
        return {}
    if not bits.value:
        note = f"{_MODEL}: no quantization_bit"
        return {
            "quantization_method": Setting(
                "quantization_method", "none", bits.location, bits.origin, note
            )
        }
    method = find(run, "quantization_method")
    if method is None:
        return {"quantization_method": practice("quantization_method", "bnb", bits)}
    state = at_hand(run, "llamafactory")
    if unknown_quantizer(run) is not None and (state is None or state.pinned):
        note = f"llamafactory {release_of(run)} knows no such method and quantizes nothing"
        none = practice("quantization_method", "none", method, note)
        return {none.name: none, bits.name: practice(bits.name, None, method, note)}
    value: Any = method.value
    if isinstance(value, str):
        value = "bnb" if value.lower() in ("bitsandbytes", "bnb") else value.lower()
    return {"quantization_method": practice("quantization_method", value, method)}


def _packing(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    """``packing`` is off unless set, but on in pre-training; ``neat_packing`` turns it on."""
    neat = find(run, "neat_packing")
    if is_true(neat):
        return {"packing": practice("packing", True, neat)}
    if "packing" in spelled:
        return {}
    stage = spelled.get("algorithm")
    if stage is None or not known(stage.value):
        return {}
    note = f"{_HPARAMS}/data_args.py: packing None is on for stage pt alone"
    return by_default(run, "packing", stage.value == "pt", note)


def _deepspeed(run: Run, launched: Mapping[str, Setting]) -> dict[str, Setting]:
    names = ("zero_stage", "offload_optimizer", "offload_param", "overlap_comm")
    if run.deepspeed is not None:
        return practices_from_deepspeed(run.deepspeed)
    setting = find(run, "deepspeed")
    if setting is not None and not (known(setting.value) and is_off(setting.value)):
        bundled = _bundled(setting)
        if bundled:
            return bundled
        reason = "the DeepSpeed configuration was not found"
        return {name: unknown(name, reason, at=setting.location) for name in names}
    found = {name: value for name, value in launched.items() if name in names}
    if "zero_stage" not in found and not is_launch_unread(run):
        found.update(by_default(run, "zero_stage", 0, f"{_HF}: deepspeed None"))
    return found


# What the files of its own examples/deepspeed say; the names are those of 0.9.0 to 0.9.5.
_BUNDLED_FILE = re.compile(
    r"(?:.*/)?examples/deepspeed/ds_z(?P<stage>[023])_(?P<kind>|offload_|fp8_|autotp_)config\.json"
)


def _bundled(setting: Setting) -> dict[str, Setting]:
    """The practices of a file that comes with LLaMA-Factory and is not in the project."""
    named = _BUNDLED_FILE.fullmatch(setting.value) if isinstance(setting.value, str) else None
    if named is None:
        return {}
    stage, kind = int(named["stage"]), named["kind"]
    device = "cpu" if kind in ("offload_", "fp8_") else "none"
    values: dict[str, Any] = {
        "zero_stage": stage,
        "offload_optimizer": device,
        "offload_param": "cpu" if stage == 3 and kind == "offload_" else "none",
    }
    if kind == "autotp_":
        values["autotp_size"] = 2
    return {name: practice(name, value, setting) for name, value in values.items()}


def _fsdp(run: Run, launched: Mapping[str, Setting]) -> dict[str, Setting]:
    setting = find(run, "fsdp")
    if setting is not None and not (known(setting.value) and is_off(setting.value)):
        text = str(setting.value).lower() if known(setting.value) else ""
        for name in ("full_shard", "shard_grad_op", "hybrid_shard", "no_shard"):
            if name in text:
                return {
                    "fsdp": practice("fsdp", name, setting),
                    "fsdp_offload": practice("fsdp_offload", "offload" in text, setting),
                }
        return {"fsdp": practice("fsdp", Unknown("not a literal"), setting)}
    found = {
        name: value
        for name, value in launched.items()
        if name in ("fsdp", "fsdp_version", "fsdp_offload", "overlap_comm")
    }
    is_seen = run.command is not None and not is_launch_unread(run)
    by_ray = run.command is None and find(run, "ray_num_workers") is not None
    if not found and (is_seen or by_ray or run.started_like is not None):
        found.update(by_default(run, "fsdp", "none", f"{_HF}: fsdp is off"))
    return found


# Transformers' own switches of that form, in any release that LLaMA-Factory takes.
_SWITCHES = frozenset(
    ("use_cpu", "use_ipex", "use_mps_device", "use_liger_kernel", "use_legacy_prediction_loop")
)


def _own_switch(run: Run) -> Optional[Setting]:
    """A switch that a fork has added, as it adds optimizers (``use_…: true``)."""
    table = table_of("llamafactory")
    for name, setting in run.settings.items():
        if not name.startswith("use_") or name in _SWITCHES or not is_true(setting):
            continue
        if table is not None and not table.spans("train", name):
            return setting
    return None


def _optimizer(run: Run, found: Mapping[str, Setting]) -> dict[str, Setting]:
    for flag, name in (
        ("use_galore", "galore"),
        ("use_apollo", "apollo"),
        ("use_badam", "badam"),
        ("use_adam_mini", "adam-mini"),
        ("use_muon", "muon"),
    ):
        setting = find(run, flag)
        if is_true(setting):
            return {"optimizer": practice("optimizer", name, setting)}
    if "optimizer" in found:
        return {}
    own = _own_switch(run)
    if own is not None:
        reason = f"{own.name} is no parameter of any release: it may bring an optimizer"
        return {"optimizer": practice("optimizer", Unknown(reason), own)}
    setting = find(run, "optim")
    if setting is not None:
        value = setting.value.lower() if isinstance(setting.value, str) else setting.value
        return {"optimizer": practice("optimizer", value, setting)}
    return default_optimizer(run)


_MEGATRON_SIZES = (
    ("tensor_parallel", "tensor_model_parallel_size"),
    ("pipeline_parallel", "pipeline_model_parallel_size"),
    ("expert_parallel", "expert_model_parallel_size"),
    ("sequence_parallel", "context_parallel_size"),
)


def _megatron_switch(run: Run) -> Optional[Setting]:
    """What says that Megatron-core trains; sizes that only it takes where no launch is in sight."""
    setting = find(run, "use_mca")
    if is_true(setting):
        return setting
    for name in ("USE_MCA", "USE_MEGATRON_BRIDGE"):
        switch = run.environment.get(name)
        if switch is not None and str(switch.value).lower() in ("true", "y", "1"):
            return switch
    sizes = find(run, *(parameter for _, parameter in _MEGATRON_SIZES))
    return sizes if run.command is None else None


def _megatron(run: Run) -> dict[str, Setting]:
    source = _megatron_switch(run)
    if source is None:
        return {}
    found = {"megatron": practice("megatron", True, source)}
    found["gradient_checkpointing"] = _recomputed(run)
    for name, parameter in _MEGATRON_SIZES:
        written = find(run, parameter)
        if written is not None and number(written.value) is not None:
            found[name] = practice(name, written.value, written)
    return found


def _recomputed(run: Run) -> Setting:
    """Megatron-core recomputes as its own parameter says; Transformers' model is not built."""
    written = find(run, "recompute_granularity")
    if written is None:
        return unknown("gradient_checkpointing", "the default of Megatron's adapter")
    value = written.value if not known(written.value) else not is_off(written.value)
    return practice("gradient_checkpointing", value, written)


def _unused(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    """LoRA under DDP has ``ddp_find_unused_parameters`` off (hparams/parser.py)."""
    tuning = spelled.get("tuning")
    if "find_unused_parameters" in spelled or tuning is None or tuning.value != "lora":
        return {}
    note = f"{_HPARAMS}/parser.py: off with LoRA"
    return by_default(run, "find_unused_parameters", False, note)


def _training(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    found = saving(run)
    warm = warmup(find(run, "warmup_ratio"), find(run, "warmup_steps"))
    if warm is not None:
        found["warmup"] = warm
    else:
        found.update(by_default(run, "warmup", 0, f"{_HF}: warmup_steps 0"))
    cached = find(run, "tokenized_path")
    if cached is not None:
        found["pretokenized"] = practice("pretokenized", not is_off(cached.value), cached)
    else:
        found.update(by_default(run, "pretokenized", False, f"{_DATA}: tokenized_path None"))
    trackers = spelled.get("report_to")
    if trackers is not None and known(trackers.value) and is_off(trackers.value):
        found["report_to"] = practice("report_to", "none", trackers)
    return found


FRAMEWORK = Framework(
    id="llamafactory",
    title="LlamaFactory",
    audit="llamafactory",
    distribution="llamafactory",
    spellings=_SPELLINGS,
    dialect=_spellings_of,
    derive=_derive,
)
