"""Hugging Face Transformers' Trainer, and TRL's configurations, which extend its arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Optional

from flake8_gpu_training.facts import Call, Origin, PythonFile, Setting, Unknown, known
from flake8_gpu_training.frameworks.accelerate import practices_of_run
from flake8_gpu_training.frameworks.at_hand import version_at_hand
from flake8_gpu_training.frameworks.attention_defaults import attention_of_named
from flake8_gpu_training.frameworks.base import ABSENT, Framework, Spelling
from flake8_gpu_training.frameworks.deepspeed import disputed, practices_from_deepspeed
from flake8_gpu_training.frameworks.frozen import frozen
from flake8_gpu_training.frameworks.handed_optimizers import handed_optimizer
from flake8_gpu_training.frameworks.hf_arguments import default_optimizer, saving
from flake8_gpu_training.frameworks.hub_models import (
    attention_of,
    is_model_load,
    is_native,
    leaves_adapter,
    practices_from_models,
    tuning_of_code,
)
from flake8_gpu_training.frameworks.initialization import attention_told, initialization
from flake8_gpu_training.frameworks.launched import data_parallel, is_launch_unread, merged
from flake8_gpu_training.frameworks.reading import (
    by_default,
    find,
    is_off,
    is_true,
    practice,
    truth,
    unknown,
    version_of,
    warmup,
)
from flake8_gpu_training.frameworks.releases_taken import as_it_starts
from flake8_gpu_training.frameworks.token_limits import token_limit
from flake8_gpu_training.frameworks.trainer_overrides import overridden
from flake8_gpu_training.runs.model import Run, RunKind

_ARGS = "transformers 4.11.3 to 5.24.0 training_args.py"
_TYPES = "transformers 4.25.1 to 5.24.0 training_args.py"
_COMPILER = "transformers 4.26.1 to 5.24.0 training_args.py"
_TRL = "trl 0.22.2 to 1.16.0 trainer/*_config.py"

_SPELLINGS: dict[str, Spelling] = {
    "precision": Spelling(
        "bf16", {"bf16": True}, instead={"fp16": {"fp16": True}, "fp32": {"bf16": False}}
    ),
    "tf32": Spelling("tf32", default=False, source=f"{_TYPES}: tf32 None; PyTorch: off"),
    "attention": Spelling("attn_implementation"),
    "gradient_checkpointing": Spelling(
        "gradient_checkpointing",
        default=False,
        source=f"{_ARGS}: gradient_checkpointing False",
        aliases=("activation_checkpointing",),
    ),
    "reentrant_checkpointing": Spelling(
        "gradient_checkpointing_kwargs",
        {True: {"use_reentrant": True}, False: {"use_reentrant": False}},
    ),
    "micro_batch_size": Spelling(
        "per_device_train_batch_size",
        default=8,
        source=f"{_ARGS}: per_device_train_batch_size 8",
        aliases=("per_gpu_train_batch_size",),
    ),
    "gradient_accumulation_steps": Spelling(
        "gradient_accumulation_steps", default=1, source=f"{_ARGS}: gradient_accumulation_steps 1"
    ),
    "liger_kernel": Spelling(
        "use_liger_kernel",
        default=False,
        source="transformers 4.45.2 to 5.24.0 training_args.py: use_liger_kernel False",
        aliases=("use_liger",),
    ),
    "torch_compile": Spelling(
        "torch_compile", default=False, source=f"{_COMPILER}: torch_compile False"
    ),
    "optimizer": Spelling("optim"),
    "zero_stage": Spelling("deepspeed"),
    "fsdp": Spelling(
        "fsdp",
        {
            "full_shard": "full_shard auto_wrap",
            "shard_grad_op": "shard_grad_op auto_wrap",
            "hybrid_shard": "hybrid_shard auto_wrap",
        },
    ),
    "find_unused_parameters": Spelling("ddp_find_unused_parameters"),
    "group_by_length": Spelling(
        "group_by_length",
        default=False,
        source="transformers 4.11.3 to 5.0.0 training_args.py: group_by_length False",
    ),
    "dataloader_workers": Spelling(
        "dataloader_num_workers", default=0, source=f"{_ARGS}: dataloader_num_workers 0"
    ),
    "pin_memory": Spelling(
        "dataloader_pin_memory", default=True, source=f"{_ARGS}: dataloader_pin_memory True"
    ),
    "persistent_workers": Spelling(
        "dataloader_persistent_workers",
        default=False,
        source="transformers 4.36.2 to 5.24.0 training_args.py: "
        "dataloader_persistent_workers False",
    ),
    "prefetch_factor": Spelling(
        "dataloader_prefetch_factor",
        default=None,
        source="transformers 4.38.2 to 5.24.0 training_args.py: dataloader_prefetch_factor None",
    ),
    "save_steps": Spelling("save_steps"),
    "logging_steps": Spelling("logging_steps", default=500, source=f"{_ARGS}: logging_steps 500"),
    "report_to": Spelling("report_to"),
    "lr_scheduler": Spelling(
        "lr_scheduler_type", default="linear", source=f"{_ARGS}: lr_scheduler_type linear"
    ),
    "warmup": Spelling("warmup_ratio"),
    "max_grad_norm": Spelling("max_grad_norm", default=1.0, source=f"{_ARGS}: max_grad_norm 1.0"),
    "model": Spelling("model_name_or_path"),
    "dataset": Spelling("dataset_name", aliases=("dataset", "dataset_path")),
    "output_dir": Spelling("output_dir"),
}
_NEW_GROUPING = Spelling(
    "train_sampling_strategy",
    {True: "group_by_length", False: "random"},
    False,
    "transformers 5.24.0 training_args.py: train_sampling_strategy random",
    aliases=("group_by_length",),
)

# Configuration classes of TRL and the algorithm each stands for.
_TRL_CONFIGS: Mapping[str, str] = {
    "SFTConfig": "sft",
    "DPOConfig": "dpo",
    "GRPOConfig": "grpo",
    "KTOConfig": "kto",
    "ORPOConfig": "orpo",
    "CPOConfig": "cpo",
    "RewardConfig": "rm",
    "PRMConfig": "rm",
    "PPOConfig": "ppo",
    "RLOOConfig": "rloo",
    "BCOConfig": "bco",
    "GKDConfig": "gkd",
    "OnlineDPOConfig": "online_dpo",
    "NashMDConfig": "nash_md",
    "XPOConfig": "xpo",
    "DistillationConfig": "distillation",
    "ServerDistillationConfig": "distillation",
    "SDFTConfig": "sdft",
    "SDPOConfig": "sdpo",
    "TPOConfig": "tpo",
    "GOLDConfig": "gold",
    "GMPOConfig": "grpo",
    "GRPOWithReplayBufferConfig": "grpo",
    "AsyncGRPOConfig": "grpo",
    "A2POConfig": "a2po",
    "IWOPDConfig": "iw_opd",
    "MiniLLMConfig": "minillm",
    "SSDConfig": "ssd",
}
# Its completions come from a server of vLLM alone (trl 1.0.0 to 1.16.0, experimental/async_grpo).
_ON_A_SERVER = ("AsyncGRPOConfig",)
# A recipe alone does not name its class; of TRL's configurations only GRPO's has these.
_GRPO_ONLY = ("num_generations", "reward_funcs", "scale_rewards")
# Those whose completions vLLM can sample, by an argument of their own (use_vllm).
_ROLLS_OUT = (
    *("grpo", "rloo", "online_dpo", "nash_md", "xpo", "gold", "distillation", "iw_opd"),
    *("sdft", "sdpo", "ssd", "minillm"),
)
_HAS_MAX_LENGTH = ("sft", "dpo", "kto", "orpo", "cpo", "rm", "bco")
_ARGUMENT_CLASSES = ("TrainingArguments", "Seq2SeqTrainingArguments")


# What TRL's own scripts do with the model, as their ModelConfig says.
_MODEL_CONFIG = "trl 0.9.6 to 1.16.0 ModelConfig"
_TRL_MODELS: Mapping[str, Spelling] = {
    "tuning": Spelling(
        "use_peft", {"lora": True, "full": False}, "full", f"{_MODEL_CONFIG}: use_peft False"
    ),
    "quantization_method": Spelling(
        "load_in_4bit",
        {"bnb": True, "none": False},
        "none",
        f"{_MODEL_CONFIG}: load_in_4bit False",
    ),
    "quantization_bits": Spelling("load_in_4bit", {4: True, None: False}),
}


_TRL_SCRIPT = re.compile(r"(?:^|/)trl/scripts/(\w+)\.py$")


def _is_trl_command(run: Run) -> bool:
    """Whether one of TRL's own scripts is started, as ``trl sft`` or by its path."""
    command = run.command is not None and run.command.name.rpartition("/")[2] == "trl"
    return command or (not run.python and _TRL_SCRIPT.search(run.entry or "") is not None)


def configuration_class(run: Run) -> str:
    """Class of the run's arguments: ``TrainingArguments``, ``SFTConfig`` …, or empty.

    A class of the project's own counts as the first known class it derives from.
    """
    call = run.place.call
    if call is not None:
        return _known_class(call.name, run)
    if _is_trl_command(run):
        return _of_subcommand(run)
    script = [file for file in run.python if file.path == run.entry]
    for files in (script, run.python):  # a checkout of TRL brings all of its classes along
        found = {_known_class(name, run) for name in _class_names(files)} - {""}
        narrow = found - set(_ARGUMENT_CLASSES)
        if len(narrow) == 1:
            return narrow.pop()
    return "TrainingArguments" if found and not narrow else ""


def _trainer_of_trl(run: Run) -> str:
    """Configuration class that belongs to the TRL trainer of a run, or empty."""
    names = (
        f"{call.method[: -len('Trainer')]}Config"
        for _, call in _calls(run)
        if call.name.startswith("trl.") and call.method.endswith("Trainer")
    )
    found = set(names) & set(_TRL_CONFIGS)
    return found.pop() if len(found) == 1 else ""


def _of_subcommand(run: Run) -> str:
    script = _TRL_SCRIPT.search(run.entry or "")
    words = [word.text for word in run.command.words[1:2]] if run.command else []
    words = words if script is None else [script[1]]
    for name, algorithm in _TRL_CONFIGS.items():
        if words == [algorithm] or words == [name[: -len("Config")].lower()]:
            return name
    return ""


def _class_names(files: Sequence[PythonFile]) -> Iterator[str]:
    yield from (call.name for file in files for call in file.calls)
    yield from _parsed_classes(files)


def _parsed_classes(files: Sequence[PythonFile]) -> Iterator[str]:
    """Classes whose fields are flags of the program."""
    parsers = ("HfArgumentParser", "TrlParser", "H4ArgumentParser")
    made = ((file, call) for file in files for call in file.calls if call.method in parsers)
    for file, call in made:
        for argument in (*call.positional, *call.keywords.values()):
            if argument.text.isidentifier():  # ``dataclass_types``, as TRL's own scripts have it
                yield from (item.name for item in file.imports if item.module.startswith("trl"))
            for part in argument.text.strip("([])").replace("\n", " ").split(","):
                yield part.strip(" ()[]")


def _known_class(name: str, run: Run, depth: int = 0) -> str:
    last = name.rpartition(".")[2]
    if last in _ARGUMENT_CLASSES or last in _TRL_CONFIGS:
        return last
    if depth > 5:
        return ""
    for file in run.python:
        for definition in file.classes:
            if definition.name == last:
                for base in definition.bases:
                    found = _known_class(base, run, depth + 1)
                    if found:
                        return found
    return ""


def _dialect(run: Run) -> Mapping[str, Spelling]:
    if run.kind is RunKind.SERVE:  # trl vllm-serve takes none of a trainer's parameters
        return {}
    run = as_it_starts(run)
    name = configuration_class(run)
    spellings = dict(_SPELLINGS)
    if version_of(run, "transformers") >= (5, 1):
        spellings["group_by_length"] = _NEW_GROUPING
    if name in _TRL_CONFIGS:
        spellings.update(_trl(run, name))
        if _is_trl_command(run):
            spellings.update(_TRL_MODELS)
    elif name not in _ARGUMENT_CLASSES:
        for practice_name in ("gradient_checkpointing", "logging_steps"):
            old = spellings[practice_name]
            spellings[practice_name] = Spelling(old.parameter, old.values, aliases=old.aliases)
    return spellings


def _trl(run: Run, name: str) -> dict[str, Spelling]:
    """What TRL's class has beyond, and other than, TrainingArguments."""
    version = version_at_hand(run, "trl")
    algorithm = _TRL_CONFIGS[name]
    found: dict[str, Spelling] = {
        "preprocessing_workers": Spelling(
            "dataset_num_proc", default=None, source=f"{_TRL}: dataset_num_proc None"
        ),
    }
    if _has_new_defaults(run, name):
        found["logging_steps"] = Spelling(
            "logging_steps", default=10, source="trl 0.19.1 to 1.16.0: logging_steps 10"
        )
    if version >= (0, 22):
        found["gradient_checkpointing"] = Spelling(
            "gradient_checkpointing",
            default=True,
            source=f"{_TRL}: gradient_checkpointing True",
            aliases=("activation_checkpointing",),
        )
    if algorithm in _HAS_MAX_LENGTH:
        old = algorithm == "sft" and version < (0, 16)
        found["max_length"] = Spelling(
            "max_seq_length" if old else "max_length",
            default=1024 if version >= (0, 15) else ABSENT,
            source="trl 0.15.2 to 1.16.0: 1024",
            aliases=("max_length", "max_seq_length"),
        )
    if algorithm == "sft":
        found["packing"] = Spelling("packing", default=False, source="trl SFTConfig: packing False")
    if algorithm in ("sft", "dpo"):
        found["padding_free"] = Spelling(
            "padding_free", default=False, source=f"{_TRL}: padding_free False"
        )
    return found


def _has_new_defaults(run: Run, name: str) -> bool:
    """bf16 by default and ``logging_steps`` 10: from TRL 0.19, RLOO and PPO later."""
    version = version_at_hand(run, "trl")
    if name == "PPOConfig":
        return version >= (1,)
    return version >= ((0, 22) if name == "RLOOConfig" else (0, 19))


def _derive(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    if run.kind is RunKind.SERVE:
        return {}
    run = as_it_starts(run)
    launched = practices_of_run(run)
    models = practices_from_models(run)
    found: dict[str, Setting] = {}
    engine = _deepspeed(run, launched)
    found.update({**engine, **disputed(engine, spelled)})
    found.update(_fsdp(run, spelled, launched))
    found.update(_precision(run, launched, found, models))
    found.update(_checkpointing(run, spelled, found))
    for name in ("gradient_accumulation_steps", "max_grad_norm"):
        _from_launcher(found, spelled, launched, name)
    if "torch_compile" in launched and not _is_written(spelled, "torch_compile"):
        found["torch_compile"] = launched["torch_compile"]
    compiler = find(run, "torch_compile_backend", "torch_compile_mode")
    if compiler is not None and not _is_written(spelled, "torch_compile"):
        found["torch_compile"] = practice("torch_compile", True, compiler)
    for name in ("tensor_parallel", "sequence_parallel"):
        if name in launched:
            found[name] = launched[name]
    found.update({name: value for name, value in models.items() if name not in ("weights",)})
    found.update(attention_told(run))
    if "attention" not in found:
        found.update(_named_model(run))
    found.update(_arguments_of_models(run))
    if "quantization_method" not in found:
        found.update(_unquantized(run))
    found.update(_optimizer(run, spelled, found))
    found.update(_training(run, spelled))
    found.update(_algorithm(run))
    found.update(_beside_plain_arguments(run))
    found.update(_unheeded(run, spelled))
    if "max_length" not in spelled and configuration_class(run) not in _TRL_CONFIGS:
        found.update(token_limit(run))
    found.update(_grouping(spelled))
    found.update(_switches(run, spelled))
    found.update(overridden(run))
    found.update(data_parallel(run, merged(found, spelled)))
    found.update(_unused(run, spelled, merged(found, spelled)))
    return found


def _is_written(spelled: Mapping[str, Setting], name: str) -> bool:
    return name in spelled and spelled[name].location is not None


def _from_launcher(
    found: dict[str, Setting],
    spelled: Mapping[str, Setting],
    launched: Mapping[str, Setting],
    name: str,
) -> None:
    """What the launcher sets holds unless the arguments say otherwise."""
    setting = launched.get(name)
    if setting is not None and setting.location is not None and not _is_written(spelled, name):
        found[name] = setting


def _deepspeed(run: Run, launched: Mapping[str, Setting]) -> dict[str, Setting]:
    setting = find(run, "deepspeed")
    is_set = setting is not None and not (known(setting.value) and is_off(setting.value))
    names = ("zero_stage", "offload_optimizer", "offload_param", "overlap_comm")
    if run.deepspeed is not None:
        return practices_from_deepspeed(run.deepspeed)
    if is_set and setting is not None:
        if isinstance(setting.value, dict):
            return _from_dict(setting)
        reason = "the DeepSpeed configuration was not found"
        return {name: unknown(name, reason, at=setting.location) for name in names}
    found = {name: value for name, value in launched.items() if name in names}
    if not found and _may_shard_elsewhere(run):
        return {}
    if "zero_stage" not in found:
        found.update(by_default(run, "zero_stage", 0, f"{_ARGS}: deepspeed None"))
    return found


def _may_shard_elsewhere(run: Run) -> bool:
    """Whether a launch that was not seen, or its configuration, may shard the model."""
    if is_launch_unread(run):
        return True
    # A notebook's one process is started by nothing that could say more.
    in_notebook = run.command is None and run.launcher.world_size == 1
    return run.command is None and run.accelerate is None and not in_notebook


def _from_dict(setting: Setting) -> dict[str, Setting]:
    """A DeepSpeed configuration given as a dict whose own places are not known."""
    zero = setting.value.get("zero_optimization")
    stage = zero.get("stage") if isinstance(zero, dict) else 0
    if not known(stage) or stage not in (0, 1, 2, 3):
        return {"zero_stage": practice("zero_stage", Unknown("the stage is not a literal"))}
    found = {"zero_stage": practice("zero_stage", stage, setting, f"zero stage {stage}")}
    for name in ("offload_optimizer", "offload_param") if isinstance(zero, dict) else ():
        section = zero.get(name)
        device = section.get("device", "none") if isinstance(section, dict) else "none"
        found[name] = practice(name, device, setting)
    return found


def nested(run: Run, name: str, key: str) -> Optional[Setting]:
    """``key`` inside the dict parameter ``name``, with or without the prefix ``fsdp_``."""
    for inner in (key, f"fsdp_{key}"):
        setting = run.settings.get(f"{name}.{inner}")
        if setting is not None:
            return setting
        whole = run.settings.get(name)
        if whole is not None and isinstance(whole.value, dict) and inner in whole.value:
            value = whole.value[inner]
            shown = value.reason if isinstance(value, Unknown) else value
            note = f"{name}: {inner} = {shown}"
            return Setting(f"{name}.{inner}", value, whole.location, whole.origin, note)
    return None


def _fsdp(
    run: Run, spelled: Mapping[str, Setting], launched: Mapping[str, Setting]
) -> dict[str, Setting]:
    setting = find(run, "fsdp")
    names = ("fsdp", "fsdp_version", "fsdp_offload", "overlap_comm")
    if setting is None or (known(setting.value) and is_off(setting.value)):
        found = {name: value for name, value in launched.items() if name in names}
        if not found and not _may_shard_elsewhere(run):
            found.update(by_default(run, "fsdp", "none", f"{_TYPES}: fsdp is off"))
        return found
    if not known(setting.value):
        return {"fsdp": practice("fsdp", setting.value, setting)}
    words = _words(setting.value)
    found = {"fsdp": practice("fsdp", _sharding(words, run), setting)}
    offload = nested(run, "fsdp_config", "cpu_offload") or nested(
        run, "fsdp_config", "offload_params"
    )
    if "offload" not in words and offload is None and _is_unread(run, "fsdp_config"):
        found["fsdp_offload"] = unknown("fsdp_offload", "fsdp_config was not found")
    elif "offload" in words or offload is None:
        found["fsdp_offload"] = practice("fsdp_offload", "offload" in words, setting)
    else:
        found["fsdp_offload"] = practice("fsdp_offload", truth(offload.value), offload)
    version = nested(run, "fsdp_config", "version")
    if version is not None:
        found["fsdp_version"] = practice("fsdp_version", version.value, version)
    elif (
        not isinstance((find(run, "fsdp_config") or setting).value, str)
        or find(run, "fsdp_config") is None
    ):
        default = 2 if version_of(run, "transformers") >= (5, 10) else 1
        releases = "5.10.1 to 5.24.0" if default == 2 else "4.46.3 to 5.9.0"
        note = f"transformers {releases} training_args.py: FSDP{default} by default"
        found["fsdp_version"] = practice("fsdp_version", default, setting, note)
    return {**found, **_prefetching(run, found.get("fsdp_version"))}


def _is_unread(run: Run, name: str) -> bool:
    """Whether a parameter names a file of settings that was not read."""
    setting = find(run, name)
    if setting is None or setting.value is None or isinstance(setting.value, dict):
        return False
    return not any(other.startswith(f"{name}.") for other in run.settings)


def _prefetching(run: Run, version: Optional[Setting]) -> dict[str, Setting]:
    """FSDP1 gathers ahead in the backward pass when told to; FSDP2 always does."""
    if version is None or not known(version.value):
        return {}
    if str(version.value) == "2":
        note = "FSDP2 gathers the next layer's weights ahead"
        return {"overlap_comm": practice("overlap_comm", True, version, note)}
    prefetch = nested(run, "fsdp_config", "backward_prefetch")
    if prefetch is None:
        releases = "transformers 4.46.3 to 5.24.0"
        note = f"{releases} training_args.py: fsdp_config backward_prefetch NO_PREFETCH"
        return by_default(run, "overlap_comm", False, note)
    is_on = str(prefetch.value).lower() in ("backward_pre", "backward_post")
    return {"overlap_comm": practice("overlap_comm", is_on, prefetch)}


def _words(value: Any) -> list[str]:
    items = value if isinstance(value, list) else [value]
    return [word.lower() for item in items for word in str(item).replace(",", " ").split()]


def _sharding(words: list[str], run: Run) -> Any:
    for name in ("full_shard", "shard_grad_op", "hybrid_shard", "no_shard"):
        if name in words:
            return name
    if "hybrid_shard_zero2" in words:
        return "hybrid_shard"
    if _is_unread(run, "fsdp_config"):
        return Unknown("fsdp_config was not found", ("full_shard", "shard_grad_op"))
    reshard = nested(run, "fsdp_config", "reshard_after_forward")
    if reshard is not None and not known(reshard.value):
        return Unknown(f"it depends on {reshard.name}", ("full_shard", "shard_grad_op"))
    if reshard is not None and truth(reshard.value) is False:
        return "shard_grad_op"
    return "full_shard"


def _precision(
    run: Run,
    launched: Mapping[str, Setting],
    sharded: Mapping[str, Setting],
    models: Mapping[str, Setting],
) -> dict[str, Setting]:
    for name in ("bf16", "fp16"):
        setting = find(run, name)
        if setting is not None and isinstance(setting.value, Unknown):
            if _is_one_or_the_other(run):
                either = Unknown(setting.value.reason, ("bf16", "fp16"))
                return {"precision": replace(setting, name="precision", value=either)}
            return {"precision": _switched_precision(name, setting, setting.value)}
        if setting is not None and switched(run, setting) is True:
            return {"precision": practice("precision", name, setting)}
    setting = sharded.get("precision")
    if setting is not None and setting.value != "fp32":
        return {"precision": setting}
    name = configuration_class(run)
    off = find(run, "bf16")
    if name in _TRL_CONFIGS and off is None and _has_new_defaults(run, name):
        # TrainingArguments outdo the launcher (training_args.py: ACCELERATE_MIXED_PRECISION).
        note = "trl 0.19.1 to 1.16.0: bf16 unless fp16 is set"
        return by_default(run, "precision", "bf16", note)
    setting = launched.get("precision")
    if setting is not None and setting.value != "fp32":
        return {"precision": setting}
    if name not in _ARGUMENT_CLASSES and name not in _TRL_CONFIGS:
        return {}
    return _without_autocast(run, models, off or find(run, "fp16"))


def _is_one_or_the_other(run: Run) -> bool:
    """Whether one of the two is on: ``bf16=supported(), fp16=not supported()``."""
    told = [setting.text for name in ("bf16", "fp16") if (setting := find(run, name)) is not None]
    pairs = (told, told[::-1]) if len(told) == len(("bf16", "fp16")) else ()
    return any(one == f"not {other}" for one, other in pairs if other)


def _switched_precision(name: str, setting: Setting, value: Unknown) -> Setting:
    """A switch that may be on: its name, or float32, for each of its candidates."""
    read = {True: name, False: "fp32"}
    told = dict.fromkeys(read.get(truth(each) is True, name) for each in value.candidates)
    note = setting.note or setting.written
    return replace(setting, name="precision", value=Unknown(value.reason, tuple(told)), note=note)


def _without_autocast(
    run: Run, models: Mapping[str, Setting], off: Optional[Setting]
) -> dict[str, Setting]:
    """Neither bf16 nor fp16: the type of the weights decides, float32 unless told."""
    weights = models.get("weights")
    if weights is not None and isinstance(weights.value, Unknown):
        return {"precision": replace(weights, name="precision")}
    if weights is not None and weights.value in ("bf16", "fp16"):
        value = "pure-bf16" if weights.value == "bf16" else "fp16"
        return {"precision": practice("precision", value, weights)}
    if is_launch_unread(run) or _model_is_unread(run):
        return {}
    if off is not None:
        return {"precision": practice("precision", "fp32", off)}
    return by_default(run, "precision", "fp32", f"{_TYPES}: bf16 False, fp16 False")


def _model_is_unread(run: Run) -> bool:
    """Whether no code was read that makes the trainer's model: what does may choose the type.

    A model whose class the program has itself is in float32 where it is built.
    """
    calls = [call for _, call in _calls(run)]
    trainers = [call for call in calls if call.method.endswith("Trainer")]
    if run.single_file or not trainers or any(is_model_load(call) for call in calls):
        return False
    bases = (base for file in run.python for own in file.classes for base in own.bases)
    return not any(_MODEL_BASE.search(base) for base in bases) and not _named_model(run)


_MODEL_BASE = re.compile(r"(?:Module|Model)$|For[A-Z]\w+$")


def _checkpointing(
    run: Run, spelled: Mapping[str, Setting], found: Mapping[str, Setting]
) -> dict[str, Setting]:
    result: dict[str, Setting] = {}
    whole = spelled.get("gradient_checkpointing")
    sharded = nested(run, "fsdp_config", "activation_checkpointing")
    is_sharding = "fsdp" in found and known(found["fsdp"].value) and found["fsdp"].value != "none"
    if is_sharding and is_true(sharded) and sharded is not None:
        result["gradient_checkpointing"] = practice("gradient_checkpointing", True, sharded)
    launched = practices_of_run(run).get("gradient_checkpointing")
    if launched is not None and is_true(launched):
        result["gradient_checkpointing"] = launched
    if whole is None or not whole.known or not whole.value or not whole.explicit:
        own = find(run, *_OWN_SWITCHES)
        if own is not None and not result and (whole is None or not whole.explicit):
            value = truth(own.value) if known(own.value) else own.value
            return {"gradient_checkpointing": practice("gradient_checkpointing", value, own)}
        called = _enabling_call(run)
        is_default = whole is not None and whole.known and bool(whole.value)
        if called is not None and not result and not (is_default and called.conditions):
            depends = "it depends on a branch"
            value = Unknown(depends, (True,)) if called.conditions else True
            result["gradient_checkpointing"] = _from_call("gradient_checkpointing", value, called)
    value = nested(run, "gradient_checkpointing_kwargs", "use_reentrant") or nested(
        run, "activation_checkpointing_kwargs", "use_reentrant"
    )
    if value is not None:
        result["reentrant_checkpointing"] = practice(
            "reentrant_checkpointing", truth(value.value), value
        )
    else:
        reentrant = version_of(run, "transformers") < (5,)
        note = f"transformers modeling_utils.py: use_reentrant {reentrant}"
        result.update(by_default(run, "reentrant_checkpointing", reentrant, note))
    return result


# What scripts with argument classes of their own call it.
_OWN_SWITCHES = (
    "grad_checkpoint",
    "grad_checkpointing",
    "use_gradient_checkpointing",
    "enable_gradient_checkpointing",
    "use_grad_checkpoint",
)


def _calls(run: Run) -> Iterator[tuple[PythonFile, Call]]:
    for file in run.python:
        for call in file.calls:
            yield file, call


def _enabling_call(run: Run) -> Optional[Call]:
    for _, call in _calls(run):
        if call.scope.rpartition(".")[2] == call.method:  # hands it on to the model inside
            continue
        if call.method in ("gradient_checkpointing_enable", "activation_checkpointing_enable"):
            return call
        given = call.keywords.get("gradient_checkpointing")
        if call.method == "from_pretrained" and given is not None and given.value is True:
            return call  # _backward_compatibility_gradient_checkpointing (modeling_utils.py)
        if call.method == "prepare_model_for_kbit_training" and not _leaves_activations(call):
            return call
    return None


def _leaves_activations(call: Call) -> bool:
    """Whether PEFT's preparation is told not to recompute; it does unless told (utils/other.py)."""
    told = call.keywords.get("use_gradient_checkpointing")
    if told is None:
        return call.is_open or len(call.positional) > 1
    return not known(told.value) or truth(told.value) is not True


def _from_call(name: str, value: Any, call: Call) -> Setting:
    return Setting(name, value, call.location, Origin.CONSTRUCTOR, f"{call.name}(...)")


def _is_of_unsloth(run: Run) -> bool:
    """Whether Unsloth's own classes may load the model: they take no kernel to choose."""
    return any(
        call.method == "from_pretrained" and call.name.startswith("unsloth.")
        for file in run.python
        for call in file.calls
    )


def _arguments_of_models(run: Run) -> dict[str, Setting]:
    """TRL's ModelConfig and scripts with the same flags."""
    found: dict[str, Setting] = {}
    attention = find(run, "attn_implementation")
    if attention is None:
        attention = nested(run, "model_init_kwargs", "attn_implementation")
    if attention is not None and attention.value not in (None, "") and not _is_unasked(run):
        value = attention_of(attention.value)
        if _is_of_unsloth(run):
            value = Unknown("Unsloth chooses the kernel", (value,))
        found["attention"] = practice("attention", value, attention)
    for flag, bits in (("load_in_4bit", 4), ("load_in_8bit", 8)):
        setting = find(run, flag)
        if is_true(setting) and not _leaves_quantization(run):
            found["quantization_method"] = practice("quantization_method", "bnb", setting)
            found["quantization_bits"] = practice("quantization_bits", bits, setting)
    peft = find(run, "use_peft", "use_lora") or _of_model_config(run, "use_peft")
    if peft is not None and known(peft.value):
        found["tuning"] = practice("tuning", "lora" if truth(peft.value) else "full", peft)
        if not truth(peft.value):
            # The code may put an adapter on whatever that switch says.
            found["tuning"] = tuning_of_code(run) or found["tuning"]
    elif peft is None and any(call.name == "trl.get_peft_config" for _, call in _calls(run)):
        found.update(by_default(run, "tuning", "full", "trl ModelConfig: use_peft False"))
    elif peft is None and _trains_whole_models(run):
        found.update(
            by_default(run, "tuning", "full", "trl trainer/*_trainer.py: peft_config None")
        )
    if "tuning" in found and found["tuning"].value == "full":
        found["tuning"] = frozen(run) or found["tuning"]
    rank = find(run, "lora_r", "lora_rank")
    if rank is not None:
        found["lora_rank"] = practice("lora_rank", rank.value, rank)
    return found


def _of_model_config(run: Run, name: str) -> Optional[Setting]:
    """A field of TRL's ModelConfig that the program builds itself."""
    for _, call in _calls(run):
        argument = call.keywords.get(name) if call.name == "trl.ModelConfig" else None
        if argument is not None:
            note = f"ModelConfig: {name}={argument.written}"
            return Setting(name, argument.value, argument.location, Origin.CONSTRUCTOR, note)
    return None


def parses_model_config(run: Run) -> bool:
    """Whether the fields of TRL's ModelConfig are options of the program."""
    return any(name.rpartition(".")[2] == "ModelConfig" for name in _parsed_classes(run.python))


def _unquantized(run: Run) -> dict[str, Setting]:
    """TRL's ModelConfig, which the program parses and is seen whole, asks for no quantization."""
    parsed = parses_model_config(run)
    switches = [find(run, name) for name in ("load_in_4bit", "load_in_8bit")]
    are_off = all(one is None or is_off(one.value) for one in switches)
    if not parsed or not (are_off or _leaves_quantization(run)):
        return {}
    note = f"{_MODEL_CONFIG}: load_in_4bit False, load_in_8bit False"
    return {
        **by_default(run, "quantization_method", "none", note),
        **by_default(run, "quantization_bits", None, note),
    }


def _leaves_quantization(run: Run) -> bool:
    """Whether a script that parses TRL's ModelConfig loads its model without what that says of
    quantization."""
    loads = [call for _, call in _calls(run) if is_model_load(call)]
    given = ("quantization_config", "load_in_4bit", "load_in_8bit")
    return (
        parses_model_config(run)
        and bool(loads)
        and not any(call.is_open or any(name in call.keywords for name in given) for call in loads)
    )


def _is_unasked(run: Run) -> bool:
    """Whether the program loads its models without the argument for their attention."""
    if initialization(run):
        return False
    loads = [call for _, call in _calls(run) if is_model_load(call)]
    return bool(loads) and not any(
        call.is_open or "config" in call.keywords or any("attn" in name for name in call.keywords)
        for call in loads
    )


def _trains_whole_models(run: Run) -> bool:
    """Whether TRL's trainers, all their arguments seen, are given names of models and no PEFT."""
    trainers = [
        call
        for _, call in _calls(run)
        if call.name.startswith("trl.") and call.method.endswith("Trainer")
    ]
    return bool(trainers) and all(
        not call.is_open
        and ("peft_config" not in call.keywords or leaves_adapter(run, call))
        and "model" in call.keywords
        and _is_name(call.keywords["model"].value)
        for call in trainers
    )


def _is_name(value: Any) -> bool:
    """Whether a trainer's ``model`` is a name (``model_args.model_name_or_path``)."""
    if isinstance(value, Unknown):
        return value.reason.rpartition(".")[2] in ("model_name_or_path", "model_name")
    return isinstance(value, str)


def _named_model(run: Run) -> dict[str, Setting]:
    """A TRL trainer that is given a model's name loads it with Transformers' own default."""
    told = find(run, "model_init_kwargs")
    others = told is None or (
        isinstance(told.value, Mapping) and told.value.get("attn_implementation") is None
    )
    if run.is_open or not others:
        return {}
    if _is_trl_command(run):
        note = f"{_MODEL_CONFIG}: attn_implementation None; Transformers: sdpa where supported"
        return by_default(run, "attention", "sdpa", note) if is_native(run) else {}
    for _, call in _calls(run):
        if not call.name.startswith("trl.") or not call.method.endswith("Trainer"):
            continue
        model = call.keywords.get("model") or next(iter(call.positional), None)
        if model is not None and _is_name(model.value):
            name = model.value if isinstance(model.value, str) else run.model.name or ""
            value, note = attention_of_named(run, name)
            found = by_default(run, "attention", value, f"{BY_NAME}; {note}")
            quantizer = None if told is None else told.value.get("quantization_config")
            if quantizer is None and "quantization_config" not in call.keywords:
                plain = f"{BY_NAME}; no quantization_config in model_init_kwargs"
                found.update(by_default(run, "quantization_method", "none", plain))
                found.update(by_default(run, "quantization_bits", None, plain))
            return found
    return {}


BY_NAME = "trl loads a model given by name"


def _optimizer(
    run: Run, spelled: Mapping[str, Setting], found: Mapping[str, Setting]
) -> dict[str, Setting]:
    if "optimizer" in found:  # DeepSpeed's own
        return {}
    handed = handed_optimizer(run)
    if handed is not None:
        return {"optimizer": handed}
    setting = find(run, "optim")
    if setting is not None:
        value = setting.value.lower() if isinstance(setting.value, str) else setting.value
        if isinstance(value, str):
            value = value.rpartition("optimizernames.")[2]
        return {"optimizer": practice("optimizer", value, setting)}
    if is_true(find(run, "adafactor")):
        return {"optimizer": practice("optimizer", "adafactor", find(run, "adafactor"))}
    return default_optimizer(run)


def _training(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    found = saving(run)
    warm = warmup(find(run, "warmup_ratio"), find(run, "warmup_steps"))
    if warm is not None:
        found["warmup"] = warm
    else:
        found.update(by_default(run, "warmup", 0, f"{_ARGS}: warmup_steps 0"))
    strategy = find(run, "logging_strategy")
    if strategy is not None and str(strategy.value).lower() in ("epoch", "no"):
        reason = f"logging_strategy is {strategy.value}"
        found["logging_steps"] = unknown("logging_steps", reason, at=strategy.location)
    if "report_to" not in spelled:
        value, note = "none", "transformers 5.0.0 to 5.24.0 training_args.py: report_to none"
        if version_of(run, "transformers") < (5,):
            value = "all"
            note = "transformers 4.30.2 to 4.57.6 training_args.py: report_to None, which is all"
        found.update(by_default(run, "report_to", value, note))
    elif known(spelled["report_to"].value) and is_off(spelled["report_to"].value):
        found["report_to"] = practice("report_to", "none", spelled["report_to"])
    return found


def _algorithm(run: Run) -> dict[str, Setting]:
    name = configuration_class(run)
    if name in _ARGUMENT_CLASSES:  # TRL's trainers took plain arguments, and options beside them
        name = _trainer_of_trl(run) or name
    algorithm = _TRL_CONFIGS.get(name)
    if algorithm is None and any(find(run, name) is not None for name in _GRPO_ONLY):
        algorithm = "grpo"
    if algorithm is None:
        return _causal_training(run)
    call = run.place.call
    found = {
        "algorithm": Setting(
            "algorithm",
            algorithm,
            call.location if call is not None else None,
            Origin.DERIVED,
            name or "parameters of GRPOConfig",
        )
    }
    if algorithm in _GROUPED:
        found.update(_rolled_out(run))
    if algorithm in _ROLLS_OUT:
        engine = find(run, "use_vllm")
        if name in _ON_A_SERVER:
            note = "trl 1.0.0 to 1.16.0 AsyncGRPOConfig: a server of vLLM samples"
            found.update(by_default(run, "rollout_engine", "vllm", note))
        elif engine is None:
            found.update(by_default(run, "rollout_engine", "none", f"{_TRL}: use_vllm False"))
        else:
            value: Any = engine.value
            if known(value):
                value = "vllm" if truth(value) else "none"
            found["rollout_engine"] = practice("rollout_engine", value, engine)
    return found


_GROUPED = ("grpo", "rloo")
# trl 0.14.0 to 1.16.0 trainer/grpo_config.py, rloo_config.py.
_PROMPTS_UNCUT = (0, 26)
_LONGER_ANSWERS = (1, 10)


def _rolled_out(run: Run) -> dict[str, Setting]:
    """The length of a prompt with its completion, each of which has a limit of its own."""
    prompt, answer = find(run, "max_prompt_length"), find(run, "max_completion_length")
    if run.is_open and (prompt is None or answer is None):
        return {}
    version = version_at_hand(run, "trl")
    limit: Any = prompt.value if prompt is not None else None
    if prompt is None and version < _PROMPTS_UNCUT:
        limit = 512
    longest: Any = 512 if version >= _LONGER_ANSWERS else 256
    longest = answer.value if answer is not None else longest
    if limit is None:
        reason = "TRL cuts no prompts"
        return {"max_length": unknown("max_length", reason)}
    for value, setting in ((limit, prompt), (longest, answer)):
        if not isinstance(value, int) or isinstance(value, bool):
            return {"max_length": practice("max_length", Unknown("not a number"), setting)}
    note = f"max_prompt_length {limit} + max_completion_length {longest}"
    return {"max_length": practice("max_length", limit + longest, prompt or answer, note)}


def _beside_plain_arguments(run: Run) -> dict[str, Setting]:
    """What a TRL trainer was told itself, while its arguments were TrainingArguments."""
    if configuration_class(run) not in _ARGUMENT_CLASSES or not _trainer_of_trl(run):
        return {}
    found: dict[str, Setting] = {}
    named = {"packing": ("packing",), "max_length": ("max_seq_length", "max_length")}
    for name, parameters in named.items():
        setting = find(run, *parameters)
        if setting is not None and setting.value is not None:
            found[name] = practice(name, setting.value, setting)
    return found


def _unheeded(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    """SFTConfig's options where only Transformers' own Trainer is given them: SFTTrainer packs."""
    made = {call.name for _, call in _calls(run) if call.method.endswith("Trainer")}
    plain = {"transformers.Trainer", "transformers.Seq2SeqTrainer"}
    if not made or not made <= plain or run.handed_over is not None:
        return {}
    note = "transformers Trainer packs nothing: SFTTrainer does"
    return {
        name: replace(spelled[name], value=False, note=note)
        for name in ("packing", "padding_free")
        if name in spelled and spelled[name].explicit
    }


def _causal_training(run: Run) -> dict[str, Setting]:
    """The plain Trainer whose collator makes every token of a text a label."""
    made = [call for _, call in _calls(run) if call.method == "DataCollatorForLanguageModeling"]
    flags = [call.keywords.get("mlm") for call in made]
    if not made or any(flag is None or flag.value is not False for flag in flags):
        return {}
    return {"algorithm": _from_call("algorithm", "pt", made[0])}


_SWITCHES = (
    *("tf32", "gradient_checkpointing", "liger_kernel", "torch_compile", "group_by_length"),
    *("find_unused_parameters", "pin_memory", "persistent_workers", "packing", "padding_free"),
)


_WORDS = ("true", "false", "yes", "no", "on", "off")


def _switches(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    """Switches that a file gives as texts: ``"gradient_checkpointing": "yes"``."""
    return {
        name: replace(spelled[name], value=switched(run, spelled[name]))
        for name in _SWITCHES
        if name in spelled and str(spelled[name].value).lower() in _WORDS
        if isinstance(spelled[name].value, str)
    }


def switched(run: Run, setting: Setting) -> Any:
    """Whether a switch is on. TRL's parser gives a file's values to argparse, which reads texts;
    HfArgumentParser fills its classes with them as they are, and any text is true
    (transformers 4.30.2 to 5.24.0, hf_argparser.py: parse_dict)."""
    parsers = {call.method for _, call in _calls(run)} & {"TrlParser", "HfArgumentParser"}
    is_text = setting.origin is Origin.FILE and isinstance(setting.value, str)
    if is_text and parsers == {"HfArgumentParser"}:
        return bool(setting.value)
    return truth(setting.value) if known(setting.value) else setting.value


def _grouping(spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    setting = spelled.get("group_by_length")
    if setting is not None and isinstance(setting.value, str):
        return {"group_by_length": practice("group_by_length", False, setting)}
    return {}


def _unused(
    run: Run, spelled: Mapping[str, Setting], profile: Mapping[str, Setting]
) -> dict[str, Setting]:
    """Trainer looks for unused parameters in DDP unless activations are recomputed."""
    if "find_unused_parameters" in spelled or not is_true(profile.get("ddp")):
        return {}
    recompute = profile.get("gradient_checkpointing")
    if recompute is None or not isinstance(recompute.value, bool):
        return {}
    note = "transformers trainer.py: on for PreTrainedModel without gradient checkpointing"
    return by_default(run, "find_unused_parameters", not recompute.value, note)


FRAMEWORK = Framework(
    id="hf_trainer",
    title="Hugging Face Transformers Trainer",
    audit="transformers",
    distribution="transformers",
    spellings=_SPELLINGS,
    dialect=_dialect,
    derive=_derive,
)
