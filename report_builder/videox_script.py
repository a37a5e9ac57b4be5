"""VideoX-Fun's templates as the project's own training scripts take them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from flake8_gpu_training.facts import PythonFile, known
from flake8_gpu_training.frameworks.videox_fun import blocks, script_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.model import Run
from report_builder.scenario_entries.base import FOLDER, Entry
from report_builder.wording import redacted

_SCRIPT = re.compile(r"(?:^|(?<=/))scripts/[\w.]+/train\w*\.py")
_WRAPPED = re.compile(r"(?<=--fsdp_transformer_layer_cls_to_wrap=)\w+")
_SHARDING = re.compile(r" --(?:use_fsdp|fsdp_\w+(?:[ =]\S+))")
_PROCESSES = re.compile(r"--num_processes \d+")
# What a template sets for speed and memory; the run's other arguments stay as they are.
_TUNED = frozenset(
    """
    mixed_precision allow_tf32 gradient_checkpointing vae_mini_batch low_vram enable_bucket
    dataloader_num_workers random_hw_adapt training_with_video_token_length uniform_sampling
    lr_scheduler lr_warmup_steps max_grad_norm output_dir use_peft_lora
    """.split()  # noqa: SIM905
)
_OF_BUCKETS = ("enable_bucket", "random_hw_adapt", "training_with_video_token_length")
# The launcher says how the model is split, and a script saves and clips accordingly: those
# before VideoX-Fun 1.0 know of DeepSpeed by their own flag alone.
_OF_LAUNCHER = ("use_deepspeed", "use_fsdp", "deepspeed_config")
_SMALL = 80e9 / 2 / 16
"""Parameters whose states (16 bytes each) take half a card of 80 GB."""
_GPUS = re.compile(r"\d+×\d+ GB")
_SIZE = (re.compile(r"^[\d.]+B "), re.compile(r"\ba [\d.]+B (?=video)"))


@dataclass(frozen=True)
class Command:
    """A launcher with its flags, a script, and the script's flags with their values."""

    head: str
    script: str
    flags: Mapping[str, tuple[str, ...]]

    @property
    def text(self) -> str:
        """A flag a line, as VideoX-Fun's own scripts are written."""
        lines = [self.head, f"  {self.script}"]
        lines += [f"  {_written(name, values)}" for name, values in self.flags.items()]
        return redacted(" \\\n".join(lines)) + "\n"


def _written(name: str, values: Sequence[str]) -> str:
    if not values:
        return f"--{name}"
    if len(values) > 1 or name == "trainable_modules":
        return " ".join((f"--{name}", *(_word(value) for value in values)))
    return f"--{name}={_word(values[0])}"


def _word(value: str) -> str:
    plain = re.fullmatch(r"[\d.]+(?:e-?\d+)?", value)
    return value if plain else shlex.quote(value) if '"' in value else f'"{value}"'


def _flags(words: Sequence[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            found[name] = (value,) if equals else ()
        elif name:
            found[name] = (*found[name], word)
    return found


def command_of(text: str) -> Command:
    """A template's command."""
    words = shlex.split(text.replace("\\\n", " "))
    at = next(number for number, word in enumerate(words) if _SCRIPT.search(word))
    head = text.split("\\\n", 1)[0].strip()
    return Command(head, words[at], _flags(words[at + 1 :]))


def _of_run(run: Run) -> Optional[Command]:
    """The run's command; None where a part of it is not known."""
    words = run.command.words if run.command is not None else ()
    at = next((n for n, word in enumerate(words) if _SCRIPT.search(word.text)), None)
    if at is None or not all(known(word.value) for word in words[at:]):
        return None
    texts = [str(word.value) for word in words[at:]]
    return Command("", texts[0], _flags(texts[1:]))


def for_run(run: Run, text: str) -> Optional[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """A template on the run's own script and arguments, with what it sets anew and what it drops.

    None where the run's command or the layers of its model are not known.
    """
    template, own = command_of(text), _of_run(run)
    layers = ",".join(blocks(run))
    if own is None or not layers:
        return None
    tuned = {name: values for name, values in template.flags.items() if name in _TUNED}
    if any(len(own.flags.get(f"{of}_sample_size", ())) > 1 for of in ("image", "video")):
        tuned = {name: values for name, values in tuned.items() if name not in _OF_BUCKETS}
    if own.flags.get("dataloader_num_workers", ("0",)) != ("0",):
        tuned.pop("dataloader_num_workers", None)
    kept = {name: values for name, values in own.flags.items() if name not in _OF_LAUNCHER}
    split = {name: values for name, values in template.flags.items() if name in _OF_LAUNCHER}
    if is_small(run) and "output_dir" in tuned:
        tuned["output_dir"] = tuple(name_of(run, folder) for folder in tuned["output_dir"])
    head = template.head
    gpus = run.hardware.gpus_per_node or run.launcher.world_size
    if gpus is not None and gpus > 1:
        head = _PROCESSES.sub(f"--num_processes {gpus}", head)
    head = _WRAPPED.sub(layers, head)
    if is_small(run):
        head = _SHARDING.sub("", head)
    anew = {**tuned, **split}
    changed = tuple(n for n, v in anew.items() if n != "output_dir" and own.flags.get(n) != v)
    dropped = tuple(n for n in _OF_LAUNCHER if n in own.flags and n not in split)
    return Command(head, own.script, {**kept, **anew}).text, changed, dropped


def is_small(run: Run) -> bool:
    """Whether a card of 80 GB holds all states of the model with as much room again."""
    return run.model.parameters is not None and run.model.parameters <= _SMALL


def _template(entry: Entry) -> str:
    return (FOLDER / entry.files[0][0]).read_text(encoding="utf-8")


def stands_for(run: Run, entry: Entry) -> bool:
    """Whether the run's own training script can take the place of an entry's."""
    family, size = script_of(run)[0], run.model.parameters
    alike = entry.tuning == "full" or size is None or 0.5 <= size / (entry.size * 1e9) <= 1.9
    return (
        bool(family)
        and ("cogvideox" in family) == (entry.family == "cogvideox")
        and run.value("tuning") == entry.tuning
        and alike
        and for_run(run, _template(entry)) is not None
    )


@dataclass(frozen=True)
class Adapted:
    """A template as a project can start it; ``own``: by the run's own script and arguments."""

    text: str
    title: Text
    changes: Text
    own: bool


def adapted(
    run: Run, entry: Entry, title: Text, text: str, project: Optional[Project]
) -> Optional[Adapted]:
    """A template on the project's scripts; None where the project lacks the one it starts."""
    made = for_run(run, text) if stands_for(run, entry) else None
    shown = declared(project, made[0] if made is not None else text)
    if shown is None or made is None:
        return None if shown is None else Adapted(shown, title, Text("", ""), False)
    flags = command_of(shown).flags
    names = [f"`--{name}`" for name in made[1] if name in flags] + ["`--output_dir`"]
    lost = [f"`--{name}`" for name in made[2]]
    without = Text("", "")
    if lost:
        without = Text(f"；去掉 {'、'.join(lost)}", f"; without {', '.join(lost)}")
    place = f"`{run.location}`"
    changes = Text(
        f"脚本、模型、数据与其余参数沿用 {place}；相对本次运行的改动：{'、'.join(names)}"
        f"{without.zh}。",
        f"Script, model, data and all other arguments are those of {place}; other than in this "
        f"run: {', '.join(names)}{without.en}.",
    )
    return Adapted(shown, _titled(run, title), changes, True)


def _titled(run: Run, title: Text) -> Text:
    """The title with the run's model and GPUs; the states of a small model are not split."""
    size = run.model.parameters
    own = Text("本项目的", "the run's ")
    if size is not None:
        shown = f"{size / 1e9:.1f}".removesuffix(".0")
        own = Text(f"{shown}B ", f"a {shown}B ")
    title = Text(_SIZE[0].sub(own.zh, title.zh), _SIZE[1].sub(own.en, title.en))
    if is_small(run):
        title = Text(title.zh.replace(" + FSDP", "（DDP）"), title.en.replace(", FSDP on", " on"))
    gpus, memory = run.hardware.gpus_per_node, run.hardware.memory_gib
    if gpus is None or gpus < 2 or "offload" in title.en:
        return title
    cards = f"{gpus}×{memory:.0f} GB" if memory is not None else f"{gpus}×80 GB"
    return Text(*(_GPUS.sub(cards, words) for words in title))


def name_of(run: Run, name: str) -> str:
    """What to save a template as: its name tells how the model is split."""
    return name.replace("_fsdp", "") if is_small(run) else name


def declared(project: Optional[Project], text: str) -> Optional[str]:
    """A template with the flags alone that the project's own copy of its script declares.

    As it is where the project has no such scripts; None where it lacks this one.
    """
    command = command_of(text)
    if project is None or not any(_SCRIPT.search(path) for path in project.files):
        return text
    path = project.find(command.script)
    program = project.read(path) if path is not None else None
    if not isinstance(program, PythonFile):
        return None
    names = {flag for option in program.options for flag in option.flags}
    if not names:
        return text
    kept = {name: values for name, values in command.flags.items() if f"--{name}" in names}
    return Command(command.head, command.script, kept).text
