"""Scenario templates: complete configurations for common situations, the nearest first."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Optional

from flake8_gpu_training.checks.inference import is_served
from flake8_gpu_training.frameworks.at_hand import version_at_hand
from flake8_gpu_training.frameworks.llamafactory_v1 import is_v1
from flake8_gpu_training.language import Text
from flake8_gpu_training.memory import estimate
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.model import Run, RunKind
from report_builder import videox_script
from report_builder.loaders import OF_KINDS, loader_of
from report_builder.scenario_entries import CATALOG
from report_builder.scenario_entries.base import FOLDER, Entry
from report_builder.scenario_entries.hf_trainer import GENERIC, HF_DEEPSPEED, HF_GRPO, HF_SMALL
from report_builder.scenario_entries.swift import SWIFT_MEGATRON
from report_builder.scenario_releases import in_release, is_released, launched_in_release
from report_builder.scenario_values import Alike, with_reading, with_values, without_refused

_GENERATING = frozenset({"grpo", "ppo", "gkd", "rloo", "nft", "awm", "dgpo", "crd"})
_OTHER_THAN_TEXT = frozenset({"MLLM", "audio"})
"""Kinds of models whose data the text models of templates do not read."""
_PREFERENCES = frozenset({"dpo", "orpo", "kto", "simpo", "cpo", "rm"})
_MODES = (0, 18)
"""The first release of TRL with vLLM in the training processes (vllm_mode)."""
_COMMENT = re.compile(r"#: (?P<zh>.+?) \| (?P<en>.+)$", re.MULTILINE)
_LANGUAGE = MappingProxyType({".yaml": "yaml", ".py": "python", ".json": "json", ".sh": "bash"})


@dataclass(frozen=True)
class ScenarioFile:
    """A file of a scenario: the name to save it under, and its text in both languages."""

    name: str
    language: str
    text: Text


@dataclass(frozen=True)
class Scenario:
    """A situation with the files it takes and the command that starts it."""

    title: Text
    files: tuple[ScenarioFile, ...]
    launch: str
    changes: Text = Text("", "")
    """What it changes of the run's own values, in a sentence; "" where it keeps them."""
    fits: bool = True
    """Whether it is made for models like the run's."""


# LLaMA-Factory chat templates by model family, as registered in its data/template.py.
_CHAT_TEMPLATES = (
    ("qwen3", "qwen3"),
    ("qwen", "qwen"),
    ("llama-3", "llama3"),
    ("llama3", "llama3"),
    ("mistral", "mistral"),
    ("gemma", "gemma"),
    ("yi-", "yi"),
    ("baichuan2", "baichuan2"),
    ("internlm2", "intern2"),
    ("glm-4", "glm4"),
)


def scenarios(
    run: Optional[Run], framework: str, project: Optional[Project] = None
) -> tuple[Scenario, ...]:
    """Templates for ``framework``, nearest to ``run`` first, filled with its names.

    ``project``: whose own copies of training scripts decide which flags there are.
    """
    entries = list(CATALOG.get(framework, GENERIC))
    if run is not None:
        if framework == "hf_trainer" and run.model.kind in OF_KINDS:
            entries = [HF_SMALL]
        elif framework == "hf_trainer" and _method_of_run(run) == "DeepSpeed":
            entries = [HF_DEEPSPEED if _method(e) == "FSDP" else e for e in entries]
        if framework == "swift" and run.value("megatron") is True:
            spread = [entry for entry in entries if "ZeRO-3" in entry.title.en]
            entries = [*SWIFT_MEGATRON, *(entry for entry in entries if entry not in spread)]
        entries = _with_its_kind(run, framework, entries)
        entries.sort(key=lambda entry: _distance(run, entry))
    found = [_filled(run, entry) for entry in entries]
    if run is None:
        return tuple(found)
    if framework == "videox_fun":
        found = list(_on_own_scripts(run, entries, found, project))
    return tuple(each for each in found if all(is_released(run, f.text) for f in each.files))


def _on_own_scripts(
    run: Run, entries: list[Entry], found: list[Scenario], project: Optional[Project]
) -> Iterator[Scenario]:
    """VideoX-Fun's scenarios that the project's own scripts can start."""
    for entry, each in zip(entries, found):
        made = videox_script.adapted(run, entry, each.title, each.files[0].text.en, project)
        if made is None:
            continue
        name = videox_script.name_of(run, each.files[0].name) if made.own else each.files[0].name
        start = replace(each.files[0], name=name, text=Text(made.text, made.text))
        launch = each.launch.replace(each.files[0].name, name)
        files = (start, *each.files[1:])
        yield Scenario(made.title, files, launch, made.changes, each.fits or made.own)


def _with_its_kind(run: Run, framework: str, entries: list[Entry]) -> list[Entry]:
    """``entries`` with one that samples completions for a run that does.

    None at all where there is no such: another kind of training is not near, and
    LLaMA-Factory's second route takes nothing that is written for the first.
    """
    if is_v1(run):
        return []  # whose arguments are others
    algorithm = run.value("algorithm")
    if run.kind is not RunKind.TRAIN or algorithm not in _GENERATING:
        return entries
    if framework == "hf_trainer" and algorithm == "grpo" and version_at_hand(run, "trl") >= _MODES:
        return [*entries, HF_GRPO]
    return entries if any(entry.algorithm in _GENERATING for entry in entries) else []


def _distance(run: Run, entry: Entry) -> float:
    """How far the run's situation is from the entry's; ties keep the catalog's order."""
    distance: float = 0.0
    algorithm = run.value("algorithm", "sft")
    generates = (algorithm in _GENERATING, entry.algorithm in _GENERATING)
    distance += 8 * (generates[0] != generates[1]) + (algorithm != entry.algorithm)
    if run.framework == "swift":
        distance += 8 * ((run.value("megatron") is True) != ("megatron " in entry.launch))
    tuning = run.value("tuning")
    if run.kind is RunKind.TRAIN and tuning is not None:
        distance += 4 * ((tuning == "full") != (entry.tuning == "full"))
    if bool(run.value("quantization_bits")) != entry.quantized:
        distance += 3
    name = run.model.known_as.lower()
    if entry.family and name:
        distance += 3 * (entry.family not in name)
    if entry.family and run.model.kind in ("image", "video"):
        distance += 3 * ((run.model.kind == "image") != (entry.family == "flux.1"))
    if run.model.parameters:
        ratio: float = run.model.parameters / (entry.size * 1e9)
        distance += min(5.0, 2 * abs(math.log2(ratio)))
    gpus = run.hardware.gpus or run.launcher.world_size
    if gpus is not None:
        distance += 2 * ((gpus == 1) != (entry.gpus == 1))
        more: float = max(1, gpus) / entry.gpus
        distance += 0.25 * abs(math.log2(more))
    elif _is_on_several(run):
        distance += 2 * (entry.gpus == 1)
    methods = (_method_of_run(run), _method(entry))
    if all(methods):
        distance += 2 * (methods[0] != methods[1])
    if run.framework == "videox_fun" and videox_script.is_small(run):
        distance += 4 * ("offload" in entry.title.en)
    length = run.value("max_length")
    long = isinstance(length, int) and length > 131_072
    distance += 6 * (long != (entry.length > 131_072))
    return distance


def _method(entry: Entry) -> str:
    """How the entry shards the model: ``DeepSpeed``, ``FSDP``, or "" for neither."""
    return next((name for name in ("DeepSpeed", "FSDP") if name in entry.title.en), "")


def _method_of_run(run: Run) -> str:
    """How the run shards the model, or "" where it does not or cannot be told."""
    if run.value("fsdp", "none") != "none":
        return "FSDP"
    return "DeepSpeed" if run.deepspeed is not None or run.value("zero_stage", 0) else ""


def _is_on_several(run: Run) -> bool:
    """Whether the run surely has several GPUs: they are counted, or its model is split."""
    gpus = run.hardware.gpus or run.launcher.world_size
    return bool(_method_of_run(run)) if gpus is None else gpus > 1


def _same_size(run: Run, billions: float) -> bool:
    """Whether the run's model is about of this size; a smaller one fits what holds a small one,
    and one of unknown size fits no template for a large one."""
    small = billions <= 14
    if run.model.parameters is None:
        return small
    least = 0.0 if small and run.framework in ("swift", "llamafactory") else 0.5
    return least <= run.model.parameters / (billions * 1e9) <= 1.9


def _learns_from(algorithm: Optional[str]) -> str:
    """The kind of data set that an algorithm takes: prompts, preferences, or texts."""
    if algorithm in _GENERATING:
        return "prompts"
    return "preferences" if algorithm in _PREFERENCES else "texts"


def _takes_its_data(run: Run, entry: Entry) -> bool:
    """Whether the entry learns from the kind of data that the run has."""
    if run.framework == "flow_factory":  # whose trainers all read prompts
        return True
    if _is_other_task(run):
        return False
    return _learns_from(run.value("algorithm")) == _learns_from(entry.algorithm)


def _filled(run: Optional[Run], entry: Entry) -> Scenario:
    suits = run is not None and _suits(run, entry)
    model = (_model_name(run) if run is not None and suits else None) or entry.model
    dataset, meta = entry.dataset, f"{entry.dataset}/metadata.json"
    if run is not None and run.framework == "videox_fun":
        dataset, meta = _folder_and_list(run) or (dataset, meta)
    elif run is not None and _takes_its_data(run, entry):
        reads = suits or run.model.kind not in _OTHER_THAN_TEXT
        dataset = (_name(run, "dataset") if reads else None) or dataset
    values = {
        "meta": meta,
        "model": model,
        "dataset": dataset,
        "source": _source(dataset),
        "output": _output(run, entry),
        "loader": loader_of(run),
        "template": (_own_template(run) if suits else "") or _chat_template(model, entry.template),
        "model_type": _line(run, "model_type") if suits else "",
        "rewards": _rewards(run),
        "micro": "1",
        "data": _own_data(run),
    }
    if run is not None and run.framework == "videox_fun" and videox_script.stands_for(run, entry):
        values["micro"] = str(run.value("micro_batch_size", 1))
    files = tuple(_file(source, name, values) for source, name in entry.files)
    if run is not None:
        files = tuple(replace(file, text=in_release(run, file.text)) for file in files)
    changes = Text("", "")
    if run is not None and suits:
        taken = with_reading(run, without_refused(run, files[0].text))
        first, changes = with_values(run, taken, _alike(run, entry))
        files = (replace(files[0], text=first), *files[1:])
    launch = _launch(run, entry)
    if any("\n#SBATCH " in file.text.en for file in files):
        launch = re.sub(r"^bash ", "sbatch ", launch)
    title = _title(run, entry, suits)
    if "use_liger_kernel" not in files[0].text.en:
        title = Text(title.zh.replace(" + Liger Kernel", ""), title.en.replace(_AND_LIGER, ""))
    return Scenario(title, files, launch, changes, run is None or suits)


_AND_LIGER = " and Liger Kernel"


def _alike(run: Run, entry: Entry) -> Alike:
    """In what the entry is like the run. A run that does not fit its GPU has to change."""
    tuning = (run.value("tuning", entry.tuning) == "full") == (entry.tuning == "full")
    tuning = tuning and _learns_from(run.value("algorithm")) == _learns_from(entry.algorithm)
    gpus = run.hardware.gpus or run.launcher.world_size or 1
    quantized = bool(run.value("quantization_bits")) == entry.quantized
    found = estimate(run)
    fits = found is None or found.fits is not False
    memory = tuning and quantized and fits and (gpus == 1) == (entry.gpus == 1)
    return Alike(tuning, memory, entry.length)


def _output(run: Optional[Run], entry: Entry) -> str:
    """A folder beside the run's own, which keeps what it holds."""
    own = _name(run, "output_dir") if run is not None else None
    if own is None or run is None:
        return entry.output
    if run.framework == "flow_factory":  # names a folder for each run in it
        return own
    return f"{own.rstrip('/')}-{Path(entry.files[0][1]).stem}"


def _own_template(run: Optional[Run]) -> str:
    """LLaMA-Factory's chat template that the run names, which its own copy may have alone."""
    setting = run.settings.get("template") if run is not None else None
    if run is None or run.framework != "llamafactory" or setting is None or not setting.known:
        return ""
    return setting.value if _is_plain(setting.value) else ""


def _folder_and_list(run: Run) -> Optional[tuple[str, str]]:
    """VideoX-Fun's folder of samples, empty for a list of absolute paths, and the list itself."""
    named = []
    for setting in map(run.settings.get, ("train_data_dir", "train_data_meta")):
        value = setting.value if setting is not None and setting.known else None
        named.append(str(value or "").rstrip("/"))
    if not any(named) or any(re.search(r"[\s\"'$`\\]", name) for name in named):
        return None
    return named[0], named[1] or f"{named[0]}/metadata.json"


def _line(run: Optional[Run], name: str) -> str:
    """The run's own parameter as a line of a file; "" where it has none in plain words."""
    setting = run.settings.get(name) if run is not None else None
    if setting is None or not setting.explicit or not setting.known:
        return ""
    value = setting.value
    words = [str(v) for v in value] if isinstance(value, (list, tuple)) else str(value).split()
    if not words or not all(_is_plain(word) for word in words):
        return ""
    return f"{name}: {words[0] if len(words) == 1 else '[' + ', '.join(words) + ']'}\n"


_OF_TEMPLATE = frozenset(
    f"data.{name}"
    for name in (
        "dataset_dir",
        "preprocessing_batch_size",
        "dataloader_num_workers",
        "force_reprocess",
        "sampler_type",
    )
)


def _own_data(run: Optional[Run]) -> str:
    """What else Flow-Factory's run says of its data (columns, folders), as lines of ``data``."""
    if run is None or run.framework != "flow_factory":
        return ""
    lines, open_section = "", ""
    for name, setting in run.settings.items():
        path = name.split(".")
        value = setting.value if setting.explicit and setting.known else None
        is_plain = isinstance(value, (bool, int, float)) or _is_plain(value)
        if path[0] != "data" or name in _OF_TEMPLATE or not is_plain or len(path) > 3:
            continue
        section = path[1] if len(path) > 2 else ""
        if section and section != open_section:
            lines += f"\n  {section}:"
        open_section = section
        shown = str(value).lower() if isinstance(value, bool) else value
        lines += f"\n  {'  ' if section else ''}{path[-1]}: {shown}"
    return lines


def _rewards(run: Optional[Run]) -> str:
    """What scores the samples of a run that generates, and the plugins and prompt they need."""
    funcs = _line(run, "reward_funcs")
    if not funcs:
        return "reward_funcs: accuracy"
    before = _line(run, "system"), _line(run, "external_plugins")
    return "".join((*before, funcs, _line(run, "reward_weights"))).rstrip("\n")


def _title(run: Optional[Run], entry: Entry, suits: bool) -> Text:
    """The entry's title with the run's own size and number of GPUs where it is adapted to it."""
    title = entry.title
    if run is None:
        return title
    parameters = run.model.parameters
    if suits and parameters and _model_name(run):
        size = f"{parameters / 1e9:.1f}".replace(".0", "") + "B"
        title = Text(
            re.sub(r"^[\d.–]+B (?=模型|视频模型)", f"{size} ", title.zh),
            re.sub(r"\ban? [\d.–]+B (?=model|video model)", f"{_article(size)} {size} ", title.en),
        )
    elif suits and not parameters and _model_name(run):
        title = Text(
            re.sub(r"^[\d.–]+B (?=模型)", "本项目", title.zh),
            re.sub(r"\ban? [\d.–]+B (?=model)", "the run's ", title.en),
        )
    gpus = run.hardware.gpus_per_node
    takes_all = run.framework == "llamafactory" and entry.gpus == 1  # its launcher does
    if gpus is None and takes_all and _is_on_several(run):
        return Text(
            title.zh.replace("单卡", "多卡 DDP，每卡"),
            title.en.replace("on one 80 GB card", "with DDP on 80 GB cards").replace(
                "on one 24 GB card", "with DDP on 24 GB cards"
            ),
        )
    is_counted = takes_all or f"{gpus} " in _launch(run, entry)
    if gpus is not None and is_counted and entry.gpus < gpus:
        title = Text(
            re.sub(r"(?:单卡 |\d+×)(\d+ GB)", rf"{gpus}×\1", title.zh),
            re.sub(r"(?:one (\d+ GB) card|\d+×(\d+ GB))", rf"{gpus}×\1\2", title.en),
        )
    return title


def _article(size: str) -> str:
    return "an" if size.startswith("8") or size in ("11B", "18B") else "a"


def _suits(run: Run, entry: Entry) -> bool:
    """Whether the entry is made for models like the run's."""
    name = (_model_name(run) or "").lower()
    served = entry.algorithm not in _GENERATING or is_served(run)
    small = run.model.kind in OF_KINDS
    if _is_other_task(run):
        return False
    if run.framework == "videox_fun" and entry.family != "cogvideox" and "inp" not in name:
        return False  # the templates train by --train_mode=inpaint
    return entry.family in name and served and (_same_size(run, entry.size) or small)


def _is_other_task(run: Run) -> bool:
    """Whether ms-swift trains an embedding, a reranker or a classifier: no template does."""
    task = run.settings.get("task_type") if run.framework == "swift" else None
    return task is not None and task.value not in (None, "causal_lm")


def _model_name(run: Run) -> Optional[str]:
    """The run's model as a framework loads it: a path or a hub's ``owner/name``."""
    for name in (_name(run, "model"), _checkpoint(run), run.model.name):
        is_old = run.model.kind in OF_KINDS  # whose names on the hub have no owner, as a rule
        if name and ("/" in name or is_old) and not re.search(r"[\s\"'$`\\<>]", name):
            return name
    return None


def _checkpoint(run: Run) -> Optional[str]:
    """Weights that a full training goes on from, where no model is named (ms-swift 3)."""
    setting = run.settings.get("ckpt_dir") if run.framework == "swift" else None
    full = run.value("tuning") == "full"
    return setting.value if full and setting is not None and _is_plain(setting.value) else None


def _launch(run: Optional[Run], entry: Entry) -> str:
    """The entry's command; one for fewer GPUs is started on all that the run has."""
    gpus = run.hardware.gpus_per_node if run is not None else None
    launch = entry.launch if run is None else launched_in_release(run, entry.launch)
    if run is None or gpus is None or gpus < 2 or 1 < entry.gpus >= gpus:
        return launch
    if run.framework == "swift" and entry.gpus > 1:
        return launch.replace(f"NPROC_PER_NODE={entry.gpus} ", f"NPROC_PER_NODE={gpus} ")
    if run.framework == "swift":
        return f"NPROC_PER_NODE={gpus} {launch}"
    if entry.gpus > 1:
        return launch
    if run.framework == "hf_trainer":
        return entry.launch.replace("python ", f"torchrun --nproc_per_node {gpus} ", 1)
    return launch


def _name(run: Run, practice: str) -> Optional[str]:
    """The run's own name for ``practice`` when it is one plain word."""
    value = run.value(practice)
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    return str(value) if _is_plain(value) else None


def _is_plain(value: object) -> bool:
    """Whether it is a word that needs no quotes."""
    return isinstance(value, str) and bool(value) and not re.search(r"[\s\"'$`\\]", value)


def _source(dataset: str) -> str:
    """Arguments of ``datasets.load_dataset`` for a file, or for a data set of the hub."""
    kinds = {".json": "json", ".jsonl": "json", ".parquet": "parquet", ".csv": "csv"}
    kind = kinds.get(Path(dataset).suffix)
    return f'"{kind}", data_files="{dataset}"' if kind else f'"{dataset}"'


def _chat_template(model: str, default: str) -> str:
    lowered = model.lower()
    return next((name for part, name in _CHAT_TEMPLATES if part in lowered), default)


def _file(source: str, name: str, values: Mapping[str, str]) -> ScenarioFile:
    path = FOLDER / source
    text = Template(path.read_text(encoding="utf-8")).substitute(values)
    text = re.sub(r"(?<=\S) {2,}(?=#: )", "  ", text)  # names of any length stand before
    spoken = Text(
        _COMMENT.sub(lambda match: f"# {match['zh']}", text),
        _COMMENT.sub(lambda match: f"# {match['en']}", text),
    )
    return ScenarioFile(name, _LANGUAGE[Path(name).suffix], spoken)
