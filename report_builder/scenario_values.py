"""A scenario's file with the run's own values, and in words what it changes of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import yaml

from flake8_gpu_training.checks.compute import has_liger, pads_each_batch
from flake8_gpu_training.checks.llamafactory_options import not_for_model
from flake8_gpu_training.checks.packing import packs
from flake8_gpu_training.facts import Unknown, known
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

# What a value is called in a template.
_LENGTH = ("max_length", "max_seq_length", "cutoff_len", "max_completion_length")
_OF_TUNING = ("lora_rank", "lora_alpha", "learning_rate")
_OF_MEMORY = ("per_device_train_batch_size", "gradient_accumulation_steps", "num_generations")
_NAMES = (*_LENGTH, "num_train_epochs", *_OF_TUNING, *_OF_MEMORY)
_PRACTICES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(_LENGTH[:3], "max_length"),
        "lora_rank": "lora_rank",
        "per_device_train_batch_size": "micro_batch_size",
        "gradient_accumulation_steps": "gradient_accumulation_steps",
    }
)
_LONG = 131_072
"""Samples that are longer are what a scenario is for."""
_IN_ADAPTER: Mapping[str, str] = MappingProxyType({"lora_rank": "r"})
"""PEFT's names in a program."""
_OPTIMIZER = re.compile(r"(?m)^optim: \w+$")
_READING = ("trust_remote_code", "image_max_pixels", "video_max_pixels")
_TEMPLATE = re.compile(r"(?m)^template: .*\n")
_FRAMEWORKS = frozenset({"swift", "llamafactory", "hf_trainer"})
_NOTHING = Text("", "")
# What Flow-Factory's file says of how long, how much and by which method a run learns.
_OF_FLOW = frozenset(
    """
    num_processes model.finetune_type model.lora_rank model.lora_alpha train.trainer_type
    train.resolution train.num_frames train.num_inference_steps train.guidance_scale
    train.per_device_batch_size train.group_size train.unique_sample_num_per_epoch
    train.gradient_step_per_epoch train.learning_rate scheduler.dynamics_type
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Alike:
    """In what a scenario is like the run, beside the model: how it tunes, and what memory that
    takes (one GPU or several, quantized or not). ``length``: the longest samples it is for."""

    tuning: bool
    memory: bool
    length: int


def with_values(run: Run, text: Text, alike: Alike) -> tuple[Text, Text]:
    """The file with what it need not change of the run, and a sentence on what it does change."""
    if run.framework == "flow_factory":
        return text, _changes(list(_changed_of_flow(run, text.en)))
    if run.framework not in _FRAMEWORKS:
        return text, _NOTHING
    changed: list[str] = []
    for name, own in _own(run):
        place = _place(name)
        found = place.search(text.en)
        if found is None or float(found["value"]) == own:
            continue
        if _keeps(name, own, alike):
            kept = rf"\g<head>{_number(own)}"
            text = Text(*(place.sub(kept, words, count=1) for words in text))
        else:
            changed.append(f"`{name}` {_number(own)} → {found['value']}")
    changed += _of_states(run, text.en)
    changed += _of_others(run, text.en)
    return text, _changes(changed)


def _changes(changed: Sequence[str]) -> Text:
    if not changed:
        return _NOTHING
    return Text(
        f"相对本次运行的改动：{'、'.join(changed)}。",
        f"Other than in this run: {', '.join(changed)}.",
    )


def _changed_of_flow(run: Run, text: str) -> Iterator[str]:
    """What a file of Flow-Factory sets that the run's own file sets otherwise."""
    for name, value in _leaves(yaml.safe_load(text)):
        section, _, rest = name.rpartition(".")
        own = run.settings.get(name) or run.settings.get(f"{section}.extra_kwargs.{rest}")
        if name not in _OF_FLOW or own is None or not own.explicit or not own.known:
            continue
        if own.value is not None and _plain(own.value) != _plain(value):
            yield f"`{name}` {_plain(own.value)} → {_plain(value)}"


def _leaves(tree: Mapping[str, Any], head: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{head}{name}.")
        else:
            yield f"{head}{name}", value


def _plain(value: Any) -> str:
    """A value as a sentence has it."""
    if isinstance(value, (list, tuple)):
        return " × ".join(map(str, value))
    return _number(value) if isinstance(value, float) else str(value)


def _of_others(run: Run, text: str) -> Iterator[str]:
    """What else the run's own words set, and the file sets otherwise or leaves out."""
    written = {match["name"]: match["value"].strip("\"'") for match in _LINE.finditer(text)}
    if not written:
        return
    for name, own in run.settings.items():
        if name in _TOLD or not own.explicit or isinstance(own.value, (Mapping, Unknown)):
            continue
        value = written.get(name)
        if value is None and name in _SPEEDS and own.value not in (None, False, "no", "none"):
            yield f"`{name}` {_plain(own.value)} → —"
        elif value is not None and not _is_same(value, own.value):
            yield f"`{name}` {_plain(own.value)} → {value}"


def _is_same(written: str, own: Any) -> bool:
    """Whether a file's word is the run's value."""
    told = yaml.safe_load(written)
    if isinstance(own, bool) or isinstance(told, bool):
        return str(told).lower() == str(own).lower()
    try:
        return float(written) == float(own)
    except (TypeError, ValueError):
        return written == _plain(own)


# A setting of a YAML file, or of TrainingArguments in a program.
_LINE = re.compile(
    r"(?m)^(?: {4})?(?P<name>[a-z]\w*)(?:: |=)(?P<value>[^\s#,\[{(]+)(?=,?[ \t]*(?:#.*)?$)"
)
_TOLD = frozenset(
    (
        *_NAMES,
        *("model", "model_name_or_path", "dataset", "dataset_dir", "val_dataset", "output_dir"),
        *("template", "stage", "do_train", "run_name", "optim", "pure_bf16", "overwrite_cache"),
    )
)
"""Told apart from the others, or no matter of speed and memory."""
_SPEEDS = frozenset(
    """
    deepspeed fsdp gradient_checkpointing save_steps eval_steps eval_strategy packing padding_free
    torch_compile quantization_bit quant_bits load_in_4bit sequence_parallel_size
    """.split()  # noqa: SIM905
)
"""Settings that decide speed and memory, which a file that lacks them sets back."""


def _of_states(run: Run, text: str) -> Iterator[str]:
    """The optimizer of a recipe, and the type of its states, where the run has another."""
    own, found = run.practice("optimizer"), _OPTIMIZER.search(text)
    is_adam = own.known and str(own.value).startswith(("adamw_torch", "adamw_hf"))
    if found is not None and own.explicit and not is_adam:
        yield f"`{own.note}` → `{found[0]}`"
    if run.value("precision") == "pure-bf16" and re.search(r"(?m)^bf16: true$", text):
        yield "`pure_bf16` → `bf16`"


def with_reading(run: Run, text: Text) -> Text:
    """A recipe of LLaMA-Factory with how the run's model and its pictures are read."""
    if run.framework != "llamafactory":
        return text
    lines = ""
    for name in _READING:
        value = _setting(run, name)
        if isinstance(value, (bool, int)) and value:
            lines += f"{name}: {str(value).lower()}\n"
    return Text(*(_TEMPLATE.sub(rf"\g<0>{lines}", words, count=1) for words in text))


def without_refused(run: Run, text: Text) -> Text:
    """The file without what is refused, has no effect, or slows the run's model."""
    if run.framework == "hf_trainer" and pads_each_batch(run):
        text = Text(*(re.sub(r"(?m)^    torch_compile=.*\n", "", words) for words in text))
    for name in _refused(run):
        text = Text(*(re.sub(rf"(?m)^{name}: .*\n", "", words) for words in text))
    return text


def _refused(run: Run) -> tuple[str, ...]:
    if run.framework == "llamafactory":
        return not_for_model(run)
    if run.framework != "swift":
        return ()
    names = () if packs(run) else ("packing",)
    return names if has_liger(run) else (*names, "use_liger_kernel")


def _keeps(name: str, own: float, alike: Alike) -> bool:
    if name in _LENGTH:
        return alike.length <= _LONG and (alike.memory or own <= alike.length)
    if name in _OF_TUNING:
        return alike.tuning
    return alike.memory or name not in _OF_MEMORY


def _own(run: Run) -> Iterator[tuple[str, float]]:
    """The run's values, each by a name of templates."""
    for name in _NAMES:
        if name.startswith("lora_") and run.value("tuning") == "full":
            continue  # a default that the run does not use
        value = run.value(_PRACTICES[name]) if name in _PRACTICES else _setting(run, name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            yield name, value


def _setting(run: Run, name: str) -> Any:
    setting = run.settings.get(name)
    if setting is not None:
        return setting.value if known(setting.value) else None
    if name != "lora_alpha":
        return None
    made = (call for file in run.python for call in file.calls if call.method == "LoraConfig")
    given = [call.keywords.get(name) for call in made]
    return given[0].value if len(given) == 1 and given[0] is not None else None


def _number(value: float) -> str:
    """As YAML and Python both read it: ``1.0e-05``."""
    if isinstance(value, int):
        return str(value)
    return re.sub(r"^(\d+)e", r"\1.0e", f"{value:g}")


def _place(name: str) -> re.Pattern[str]:
    inside = _IN_ADAPTER.get(name, name)
    adapter = rf"LoraConfig\((?:.*\b)?{inside}="
    return re.compile(rf"(?m)(?P<head>^{name}: |^ {{4}}{name}=|\b{adapter})(?P<value>\d[\w.+-]*)")
