"""axolotl: what stands in the file that ``axolotl.cli.train`` is given, and in its flags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flake8_gpu_training.facts import Setting, Unknown, known
from flake8_gpu_training.frameworks.accelerate import practices_of_run
from flake8_gpu_training.frameworks.base import Spelling
from flake8_gpu_training.frameworks.deepspeed import practices_from_deepspeed
from flake8_gpu_training.frameworks.hub_models import attention_of
from flake8_gpu_training.frameworks.launched import is_launch_unread
from flake8_gpu_training.frameworks.reading import find, is_off, practice, truth
from flake8_gpu_training.runs.model import Run, RunKind

_SCHEMA = "axolotl 0.9.2 to 0.19.0 utils/schemas"
_PROGRAMS = ("axolotl.cli.train", "axolotl.cli.train.py")

SPELLINGS: Mapping[str, Spelling] = {
    "micro_batch_size": Spelling("micro_batch_size"),
    "gradient_accumulation_steps": Spelling("gradient_accumulation_steps"),
    "gradient_checkpointing": Spelling("gradient_checkpointing"),
    "max_length": Spelling("sequence_len"),
    "packing": Spelling("sample_packing"),
    "optimizer": Spelling("optimizer"),
    "lr_scheduler": Spelling("lr_scheduler"),
    "logging_steps": Spelling("logging_steps"),
    "dataloader_workers": Spelling("dataloader_num_workers"),
    "model": Spelling("base_model"),
    "output_dir": Spelling("output_dir"),
}
# Switches of one kind of attention each; attn_implementation came later (utils/schemas/enums.py).
_ATTENTIONS = {
    "flex_attention": "flex_attention",
    "flash_attention": "flash_attention_2",
    "sdp_attention": "sdpa",
    "xformers_attention": "xformers",
    "sage_attention": "sage",
    "eager_attention": "eager",
}
_PARTS = ("unfrozen_parameters", "relora_steps", "lisa_n_layers", "plugins")
"""What may leave some of the weights alone, or all of them to an adapter."""


def is_axolotl(run: Run) -> bool:
    """Whether the run is axolotl's, with a configuration that was read."""
    if run.framework != "generic" or run.kind is not RunKind.TRAIN or run.command is None:
        return False
    named = any(word.text.replace("/", ".") in _PROGRAMS for word in run.command.words)
    return named and find(run, "base_model") is not None


def practices(run: Run) -> dict[str, Setting]:
    """What takes more than a renaming."""
    return {**_sharding(run), **_precision(run), **_attention(run), **_tuning(run)}


def _precision(run: Run) -> dict[str, Setting]:
    bf16, fp16 = find(run, "bf16"), find(run, "fp16")
    if bf16 is not None and (bf16.value == "auto" or not bf16.known):
        reason = "bf16 where the GPU has it"
        other = "fp16" if fp16 is None or fp16.value is None or truth(fp16.value) else "fp32"
        value = Unknown(reason, ("bf16", other))
        return {"precision": Setting("precision", value, bf16.location, bf16.origin)}
    for name, setting in (("bf16", bf16), ("fp16", fp16)):
        if setting is not None and truth(setting.value) is True:
            return {"precision": practice("precision", name, setting)}
    return {}


def _attention(run: Run) -> dict[str, Setting]:
    named = find(run, "attn_implementation")
    if named is not None and named.value is not None:
        return {"attention": practice("attention", attention_of(named.value), named)}
    switches = {name: find(run, name) for name in _ATTENTIONS}
    on = {
        name: setting
        for name, setting in switches.items()
        if setting is not None and not (known(setting.value) and is_off(setting.value))
    }
    if len(on) != 1:
        return {}
    ((name, setting),) = on.items()
    return {"attention": practice("attention", _ATTENTIONS[name], setting)}


def _sharding(run: Run) -> dict[str, Setting]:
    launched = practices_of_run(run)
    if run.deepspeed is not None:
        return practices_from_deepspeed(run.deepspeed)
    found: dict[str, Setting] = {}
    for name, off in (("zero_stage", 0), ("fsdp", "none")):
        setting = find(run, "deepspeed" if name == "zero_stage" else "fsdp")
        if setting is not None and not (known(setting.value) and is_off(setting.value)):
            found[name] = practice(name, _sharded(name, setting.value), setting)
        elif name in launched:
            found[name] = launched[name]
        elif not is_launch_unread(run):
            note = f"{_SCHEMA}: deepspeed and fsdp None"
            found[name] = practice(name, off, None, note)
    return found


def _sharded(name: str, value: Any) -> Any:
    if name == "zero_stage":
        return Unknown("the DeepSpeed configuration was not found")
    words = value if isinstance(value, list) else str(value).split()
    for word in ("full_shard", "shard_grad_op", "hybrid_shard", "no_shard"):
        if word in words:
            return word
    return Unknown("the sharding is not written")


def _tuning(run: Run) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    adapter = find(run, "adapter")
    if adapter is not None and not (known(adapter.value) and is_off(adapter.value)):
        value = "lora" if adapter.value == "qlora" else adapter.value
        found["tuning"] = practice("tuning", value, adapter)
    elif all(find(run, name) is None for name in _PARTS):
        found["tuning"] = practice("tuning", "full", adapter, f"{_SCHEMA}/peft.py: adapter None")
    found["quantization_bits"] = practice("quantization_bits", None, None, f"{_SCHEMA}: not asked")
    for name, bits in (("load_in_4bit", 4), ("load_in_8bit", 8)):
        asked = find(run, name)
        if asked is not None and not (known(asked.value) and is_off(asked.value)):
            found["quantization_bits"] = practice("quantization_bits", bits, asked)
            found["quantization_method"] = practice("quantization_method", "bnb", asked)
            break
    return found
