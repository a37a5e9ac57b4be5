"""Scenario templates in the words of the release that a run is pinned to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from flake8_gpu_training.frameworks.accepted import CONFIG_FLAG
from flake8_gpu_training.frameworks.at_hand import lacks, version_at_hand
from flake8_gpu_training.frameworks.llamafactory import release_of
from flake8_gpu_training.frameworks.reading import NEWEST, parsed, version_of
from flake8_gpu_training.frameworks.tables import table_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

# What TRL named otherwise before a release (trainer/sft_config.py and sft_trainer.py).
_FORMER: Mapping[tuple[int, int], tuple[str, str]] = MappingProxyType(
    {
        (0, 24): ('{"dtype": "bfloat16"', '{"torch_dtype": "bfloat16"'),
        (0, 16): ("    max_length=", "    max_seq_length="),
        (0, 12): ("processing_class=", "tokenizer="),
    }
)
_SLEEPS = (0, 23)
"""The first release of TRL whose vLLM sleeps while the model trains."""
_DEEPSEEK_MTP = '"method": "deepseek_mtp"'
_GROUPS = re.compile(r"--attn-dp-size (\d+)")
_FORMER_GROUPS = r"--dp-size \1 \\\n    --enable-dp-attention"
_FLAG = re.compile(r"(?:(?<=\s)--|^ {12})(?P<name>[a-z][\w-]*)(?==| |$)", re.MULTILINE)
_CLASS = re.compile(r"\b(?:(?:SFT|GRPO|RLOO)Config|TrainingArguments)\(\n")
_ARGUMENT = re.compile(r"    (?P<name>\w+)=(?:[^\n{]|\{[^{}]*\})*,.*\n")


def in_release(run: Run, text: Text) -> Text:
    """A template as the releases that ``run`` pins take it."""
    if run.framework == "llamafactory":
        return Text(*(_for_llamafactory(run, words) for words in text))
    if run.framework == "swift" and run.versions.get("ms-swift"):
        return Text(*(_for_swift(run.versions["ms-swift"], words) for words in text))
    if run.framework == "vllm" and version_of(run, "vllm") < (0, 11):
        # The methods of SpeculativeConfig before they were gathered under one name.
        return Text(*(words.replace('"method": "mtp"', _DEEPSEEK_MTP) for words in text))
    if run.framework == "sglang" and version_of(run, "sglang") < (0, 5, 23):
        # Before, a switch made groups of the attention of the copies (arg_groups/fields).
        return Text(*(_GROUPS.sub(_FORMER_GROUPS, words) for words in text))
    if run.framework == "hf_trainer" and _CLASS.search(text.en):
        return Text(*(_for_trainer(run, words) for words in text))
    return text


def flags_in_release(run: Run, text: str) -> str:
    """Advice on ms-swift's flags with the names of the release that ``run`` pins."""
    pinned, table = run.versions.get("ms-swift"), table_of("ms-swift")
    if run.framework != "swift" or not pinned or table is None:
        return text
    release = table.release(pinned)
    for name, former in _OF_SWIFT_3.items():
        if not table.knows("sft", name, release) and table.knows("sft", former, release):
            text = re.sub(rf"--{name}\b", f"--{former}", text)
    return text


def _for_llamafactory(run: Run, recipe: str) -> str:
    """A recipe without what the release at hand lacks."""
    release = release_of(run)
    if release and parsed(release) < (0, 9, 3):
        # The words of QuantizationMethod in hparams and extras/constants.py.
        recipe = recipe.replace("_method: bnb", "_method: bitsandbytes")
    return _LINE.sub(
        lambda line: "" if lacks(run, "llamafactory", "train", line["name"]) else line[0], recipe
    )


def launched_in_release(run: Run, command: str) -> str:
    """A template's command as the releases that ``run`` pins take it.

    Some of ms-swift's take the file by a flag alone (swift/cli/main.py).
    """
    by_flag = CONFIG_FLAG[0] <= version_of(run, "ms-swift")[:2] <= CONFIG_FLAG[1]
    if run.framework != "swift" or not by_flag:
        return command
    return re.sub(r"\b((?:swift|megatron) \w+) (?=\S+\.yaml)", r"\1 --config ", command)


# What ms-swift, and Megatron within it, named otherwise before 4.0.
_OF_SWIFT_3: Mapping[str, str] = MappingProxyType(
    {
        "tuner_type": "train_type",
        "dataloader_num_workers": "num_workers",
        "logging_steps": "log_interval",
        "save_steps": "save_interval",
        "num_train_epochs": "max_epochs",
        "output_dir": "save",
    }
)
_LINE = re.compile(r"^(?P<name>\w+):.*\n?", re.MULTILINE)


def _for_swift(version: str, recipe: str) -> str:
    """A recipe with the names of a release, without what it does not have."""
    table = table_of("ms-swift")
    if table is None:
        return recipe
    release, group = table.release(version), "rlhf" if "\nrlhf_type:" in f"\n{recipe}" else "sft"
    if re.search(r"^micro_batch_size:", recipe, re.MULTILINE):
        group = f"megatron {group}"

    def written(line: re.Match[str]) -> str:
        name = line["name"]
        if table.knows(group, name, release) or _is_transformers_own(group, name):
            return line[0]
        former = _OF_SWIFT_3.get(name, "")
        known = table.knows(group, former, release)
        return line[0].replace(name, former, 1) if known else ""

    return _LINE.sub(written, recipe)


def _is_transformers_own(group: str, name: str) -> bool:
    """Whether ``swift sft`` and ``rlhf`` take a parameter from Transformers."""
    base = table_of("transformers")
    of_trainer = base is not None and bool(base.spans("TrainingArguments", name))
    return of_trainer and not group.startswith("megatron")


def is_released(run: Run, text: Text) -> bool:
    """Whether the engine that ``run`` pins has every parameter of a template."""
    table = table_of(run.framework) if run.framework in _ENGINES else None
    pinned = run.versions.get(run.framework)
    if table is None or pinned is None or not table.covers(pinned):
        return True
    known, ever = _flags_of(run.framework, pinned), _flags_of(run.framework, "")
    names = {found["name"].replace("-", "_") for found in _FLAG.finditer(text.en)}
    return all(name in known for name in names if name in ever or name in known)


_ENGINES = ("vllm", "sglang")


def _flags_of(engine: str, version: str) -> set[str]:
    """Names of an engine's flags in a release, and other ways to write them."""
    table = table_of(engine)
    found: set[str] = set()
    for group in ("serve", "engine") if table is not None else ():
        assert table is not None
        for name, parameter in table.parameters(group, version).items():
            found.update((name, *parameter.aliases))
    return found


def _for_trainer(run: Run, program: str) -> str:
    for before, (name, former) in _FORMER.items():
        if version_at_hand(run, "trl") < before:
            program = program.replace(name, former)
    if version_at_hand(run, "trl") < _SLEEPS:
        program = program.replace("    vllm_enable_sleep_mode=True,\n", "")
    if version_at_hand(run, "transformers") < (5,):  # as GPU601 writes it
        program = program.replace("warmup_steps=100", "warmup_ratio=0.05")
    if version_of(run, "transformers") == NEWEST:
        return program
    made = _CLASS.search(program)
    assert made is not None
    start = made.start()
    end = program.index("\n)\n", start)
    kept = _ARGUMENT.sub(lambda found: _if_released(run, found), program[start : end + 1])
    return program[:start] + kept + program[end + 1 :]


def _if_released(run: Run, argument: re.Match[str]) -> str:
    """The argument, or nothing where TrainingArguments got it in a later release."""
    table = table_of("transformers")
    group, name = "TrainingArguments", argument["name"]
    if table is None or not table.spans(group, name):
        return argument[0]
    release = table.release(run.versions["transformers"])
    return argument[0] if table.knows(group, name, release) else ""
