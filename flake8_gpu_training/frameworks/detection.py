"""Recognises which training framework and inference engines a project uses, with evidence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Union

from flake8_gpu_training.facts import (
    Call,
    Command,
    ConfigFile,
    Import,
    Location,
    Problem,
    PythonFile,
    Requirement,
    Setting,
    known,
)
from flake8_gpu_training.frameworks.base import Evidence
from flake8_gpu_training.sources.python import read_imports

if TYPE_CHECKING:
    from flake8_gpu_training.project import Project

# The seed's order; an engine alone comes before the Trainer it is used beside of.
PRECEDENCE = (
    "llamafactory",
    "swift",
    "videox_fun",
    "flow_factory",
    "vllm",
    "sglang",
    "hf_trainer",
)
# What says most comes first when evidence is shown; of commands, those that train.
_STARTS = re.compile(r"\b(?:sft|pt|rlhf|train\w*|grpo|dpo|serve)\b")
_RULES = ("git", "checkout", "cli", "path", "checkpoint", "call", "parameter", "import")
TRAINING = ("llamafactory", "swift", "videox_fun", "flow_factory", "hf_trainer")
_ENGINES = ("vllm", "sglang")
_LIMIT = 12


@dataclass(frozen=True)
class Detection:
    """The frameworks of a project: ``training`` is an id of ``registry.MODULES``."""

    training: str = "generic"
    vllm: bool = False
    sglang: bool = False
    evidence: tuple[Evidence, ...] = ()


def detect(project: Project, launch_command: tuple[Command, ...] = ()) -> Detection:
    """The training framework and the inference engines that ``project`` uses.

    The launch command decides first. Else a framework needs strong evidence; of several, the
    checkout's own and then the seed's precedence decide.
    """
    launched = [item for command in launch_command for item in _of_command(command)]
    scan = _Scan(project)
    found = [*launched, *scan.evidence()]
    strong = {item.framework for item in found if item.strong}
    training = _training(launched, found, strong, scan.trains)
    shown = tuple(_worth_showing(found, training))
    return Detection(training, "vllm" in strong, "sglang" in strong, shown)


# --- what each framework is known by ----------------------------------------------------

_PACKAGES: Mapping[str, str] = {
    "llamafactory": "llamafactory",
    "llmtuner": "llamafactory",
    "videox_fun": "videox_fun",
    "flow_factory": "flow_factory",
    "vllm": "vllm",
    "sglang": "sglang",
    "sglang_router": "sglang",
    "sgl_kernel": "sglang",
}
_DISTRIBUTIONS: Mapping[str, str] = {
    "llamafactory": "llamafactory",
    "llama-factory": "llamafactory",
    "ms-swift": "swift",
    "videox-fun": "videox_fun",
    "flow-factory": "flow_factory",
    "vllm": "vllm",
    "sglang": "sglang",
    "sgl-kernel": "sglang",
    "sglang-router": "sglang",
}
# OpenStack has a package "swift" too: only what ms-swift alone has in it counts.
_SWIFT_MODULES = re.compile(
    r"llm|trainers|tuners|megatron|plugin|ui|hub|arguments|model|template|dataset|dataloader|"
    r"infer_engine|pipelines|rlhf_trainers|loss|loss_scale|callbacks|agent_template|rewards|"
    r"optimizers|sequence_parallel|tuner_plugin|aigc|ray|rl_core|rollout|utils"
)
_SWIFT_NAMES = re.compile(
    r"Swift\w*|\w*LoRA\w*|LoraConfig|Adapter\w*|\w*Arguments|(?:Seq2Seq)?Trainer|get_logger|"
    r"(?:sft|pretrain|pt|rlhf|infer|deploy|export|eval|app|rollout|sampling)_main|merge_lora|"
    r"get_(?:model_processor|processor|template|peft_model)|load_dataset|EncodePreprocessor|"
    r"Infer(?:Request|Client|Engine)|RequestConfig|\w+Engine|safe_snapshot_download|PeftModel\w*"
)
_HF_NAMES = re.compile(r"(?:Seq2Seq)?(?:Trainer|TrainingArguments)")
_TRL_NAMES = re.compile(r"(?!Model|Script)[A-Z]\w*(?:Trainer|Config)")

_SWIFT_COMMANDS = re.compile(
    r"sft|pt|rlhf|infer|deploy|rollout|export|eval|app|sample|web-ui|merge-lora"
)
_MEGATRON_COMMANDS = re.compile(r"sft|pt|rlhf|export")
_VLLM_COMMANDS = re.compile(r"serve|bench|chat|complete|run-batch")
_TRL_COMMANDS = re.compile(r"sft|dpo|grpo|kto|reward|rloo")
_INERT = frozenset({"echo", "printf", "which", "type", "grep", "sed", "cat", "alias", "git"})
"""Commands whose words start nothing."""
_VIDEOX_SCRIPT = re.compile(
    r"(?:^|/)scripts/(?:wan2\.[12]\w*|cogvideox_fun|hunyuanvideo|longcatvideo|z_image\w*_fun|"
    r"qwenimage_fun|flux2?_fun)/[^ ]*\.(?:py|sh)$"
)

_FINETUNING = re.compile(r"lora|full|freeze|oft")
_STAGES = re.compile(r"sft|pt|rm|ppo|dpo|kto")
_TUNERS = re.compile(
    r"lora|full|longlora|adalora|llamapro|adapter|vera|boft|fourierft|reft|bone|lora_llm"
)
_DIFFUSION_TRAINERS = re.compile(r"nft|awm|dgpo|crd|diffusion-opd")
_DYNAMICS = re.compile(r"flow-sde|dance-sde|cps|ode")


def _matches(pattern: Union[str, re.Pattern[str]]) -> Callable[[Any], bool]:
    compiled = re.compile(pattern)

    def accepts(value: Any) -> bool:
        return isinstance(value, str) and compiled.fullmatch(value.lower()) is not None

    return accepts


def _any(value: Any) -> bool:
    return True


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")


# Parameters by framework: name, which values count, and weight. Two points in one file or
# command are strong: a name or value that only this framework has gives both at once.
_PARAMETERS: Mapping[str, tuple[tuple[str, Callable[[Any], bool], int], ...]] = {
    "llamafactory": (
        ("finetuning_type", _matches(_FINETUNING), 2),
        ("neat_packing", _any, 2),
        ("enable_liger_kernel", _any, 2),
        ("flash_attn", _matches("fa2|fa3"), 2),
        ("use_unsloth_gc", _any, 2),
        ("use_unsloth", _any, 1),
        ("lora_target", _any, 1),
        ("cutoff_len", _any, 1),
        ("stage", _matches(_STAGES), 1),
        ("pref_loss", _any, 1),
        ("dataset_dir", _any, 1),
    ),
    "swift": (
        ("tuner_type", _matches(_TUNERS), 2),
        ("tuner_backend", _matches("peft|unsloth"), 2),
        ("packing_length", _any, 1),
        ("train_type", _matches(_TUNERS), 1),
        ("attn_impl", _text, 1),
        ("padding_free", _any, 1),
        ("loss_scale", _text, 1),
        ("sequence_parallel_size", _any, 1),
        ("lazy_tokenize", _any, 1),
        ("rlhf_type", _text, 1),
        ("lisa_activated_layers", _any, 1),
    ),
    "flow_factory": (
        ("trainer_type", _matches(_DIFFUSION_TRAINERS), 2),
        ("trainer_type", _matches("grpo|dpo"), 1),
        ("dynamics_type", _matches(_DYNAMICS), 2),
        ("offload_samples_to_cpu", _any, 2),
        ("sample_group_size", _any, 2),
        ("unique_sample_num_per_epoch", _any, 2),
    ),
    "vllm": (
        ("infer_backend", _matches("vllm"), 2),
        ("rollout_engine", _matches("vllm"), 2),
        ("use_vllm", _true, 2),
        ("vllm_mode", _text, 2),
        ("enable_sleep_mode", _any, 2),
        ("vllm_gpu_memory_utilization", _any, 2),
        ("vllm_num_engines", _any, 2),
        ("vllm.num_engines", _any, 2),
        ("gpu_memory_utilization", _any, 1),
        ("enforce_eager", _any, 1),
        ("enable_prefix_caching", _any, 1),
        ("max_num_seqs", _any, 1),
        ("speculative_config", _any, 1),
    ),
    "sglang": (
        ("infer_backend", _matches("sglang"), 2),
        ("rollout_engine", _matches("sglang"), 2),
        ("sglang_maxlen", _any, 2),
        ("sglang_mem_fraction", _any, 2),
        ("enable_memory_saver", _any, 1),
        ("mem_fraction_static", _any, 1),
        ("schedule_policy", _any, 1),
        ("chunked_prefill_size", _any, 1),
        ("enable_dp_attention", _any, 1),
        ("disable_radix_cache", _any, 1),
        ("radix_cache", _any, 1),
        ("piecewise_cuda_graph", _any, 1),
        ("enable_piecewise_cuda_graph", _any, 1),
    ),
}
# What a Python file must hold for its imports, or its calls too, to tell a framework: files
# without are not read.
_TELLING_IMPORTS = re.compile(
    rb"\b(?:swift|trl|transformers|" + "|".join(_PACKAGES).encode() + rb")\b"
)
_TELLING_CALLS = re.compile(
    rb"subprocess|os\.system|backward\s*\(|(?i:optim\w*|engine|scaler|opt|model)\s*\.step\s*\("
    rb"|training_step|compute_loss|TrainingArguments\b|Trainer\b|"
    + "|".join(
        name for engine in _ENGINES for name, _, weight in _PARAMETERS[engine] if weight > 1
    ).encode()
)
_NESTED = frozenset({"flow_factory", "vllm", "sglang"})
_REMOTES: Mapping[str, str] = {
    "videox-fun": "videox_fun",
    "flow-factory": "flow_factory",
    "llama-factory": "llamafactory",
    "llamafactory": "llamafactory",
    "ms-swift": "swift",
    "trl": "hf_trainer",
}
# Files that only a checkout of the framework itself has.
_CHECKOUTS: Mapping[str, str] = {
    "src/llamafactory/cli.py": "llamafactory",
    "swift/cli/sft.py": "swift",
    "src/flow_factory/cli.py": "flow_factory",
    "trl/trainer/sft_trainer.py": "hf_trainer",
    "src/transformers/trainer.py": "hf_trainer",
    "vllm/engine/arg_utils.py": "vllm",
    "python/sglang/srt/server_args.py": "sglang",
}


# --- evidence ---------------------------------------------------------------------------


class _Scan:
    """One pass over a project's facts; tests, documents and others' code say nothing."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.trains = False

    def evidence(self) -> list[Evidence]:
        """Everything found, in path order within each kind; weak pieces joined at the end."""
        found = [
            *_of_structure(self.project),
            *self._of_git(),
            *self._of_requirements(),
            *self._of_python(),
            *self._of_scripts(),
            *self._of_configs(),
        ]
        return [*found, *_joined(found, self.trains)]

    def _own(self, path: str) -> bool:
        return not self.project.is_auxiliary(path)

    def _of_git(self) -> Iterator[Evidence]:
        config = self.project.git_config()
        for remote in config.remotes if config is not None else ():
            name = str(remote.value).rstrip("/").rpartition("/")[2].lower()
            framework = _REMOTES.get(name[: -len(".git")] if name.endswith(".git") else name)
            if framework is not None and remote.location is not None:
                yield Evidence(framework, "git", remote.location, str(remote.value))

    def _of_requirements(self) -> Iterator[Evidence]:
        for file in self.project.requirements():
            if self._own(file.path):
                for requirement in file.requirements:
                    yield from _of_requirement(requirement)

    def _of_python(self) -> Iterator[Evidence]:
        for path, content in self.project.python_sources(self.project.is_auxiliary):
            if isinstance(content, Problem):
                continue
            if path.endswith(".ipynb") or _TELLING_CALLS.search(content):
                file = self.project.read(path)
                if isinstance(file, PythonFile):
                    self.trains = self.trains or _trains(file)
                    yield from _of_python(file)
            elif _TELLING_IMPORTS.search(content):
                yield from _of_imports(read_imports(content, path))

    def _of_scripts(self) -> Iterator[Evidence]:
        for file in self.project.scripts():
            if self._own(file.path):
                for command in file.commands:
                    yield from _of_command(command)

    def _of_configs(self) -> Iterator[Evidence]:
        for file in self.project.configs():
            if self._own(file.path):
                yield from _of_config(file)
                for command in file.commands:
                    yield from _of_command(command)


def _trains(file: PythonFile) -> bool:
    """Whether a file has a training loop of its own, or a part of one."""
    return any(loop.trains for loop in file.loops) or any(
        call.method in ("backward", "manual_backward") for call in file.calls
    )


def _of_structure(project: Project) -> Iterator[Evidence]:
    files = frozenset(project.files)
    for path, framework in _CHECKOUTS.items():
        if path in files:
            yield Evidence(framework, "checkout", Location(path), path)
    folders = {"/".join(path.split("/")[:2]) for path in files if path.count("/") > 1}
    if {"videox_fun/models", "videox_fun/data"} <= folders:
        place = min(path for path in files if path.startswith("videox_fun/models/"))
        yield Evidence("videox_fun", "checkout", Location(place), "videox_fun/models, data")
    if "config/wan2.1/wan_civitai.yaml" in files:
        path = "config/wan2.1/wan_civitai.yaml"
        yield Evidence("videox_fun", "structure", Location(path), path)
    for path in sorted(files):
        if re.fullmatch(r"config/wan2\.2/wan_civitai\w*\.yaml", path):
            yield Evidence("videox_fun", "structure", Location(path), path)
        elif re.fullmatch(r"examples/deepspeed/ds_z\d_\w*config\.json", path):
            yield Evidence("llamafactory", "structure", Location(path), path, strong=False)
    if "data/dataset_info.json" in files:
        yield from _of_dataset_info(project)


def _of_dataset_info(project: Project) -> Iterator[Evidence]:
    """LlamaFactory's list of datasets; ``datasets`` writes files of the same name."""
    path = "data/dataset_info.json"
    facts = project.read(path)
    for document in facts.documents if isinstance(facts, ConfigFile) else ():
        for key, entry in document.root.mapping.items():
            keys = entry.node.mapping.keys()
            if keys & {"file_name", "hf_hub_url", "ms_hub_url", "script_url", "cloud_file_name"}:
                yield Evidence("llamafactory", "structure", entry.location, f"{path}: {key}")
                return


def _of_requirement(requirement: Requirement) -> Iterator[Evidence]:
    framework = _DISTRIBUTIONS.get(requirement.name)
    if framework is not None:
        text = f"{requirement.name}{requirement.specifier}"
        yield Evidence(framework, "requirement", requirement.location, text, strong=False)


def _of_python(file: PythonFile) -> Iterator[Evidence]:
    yield from _of_imports(file.imports)
    for call in file.calls:
        last = call.name.rpartition(".")[2]
        if call.name.startswith("transformers.") and _HF_NAMES.fullmatch(last):
            yield Evidence("hf_trainer", "call", call.location, f"{call.name}(")
        yield from _of_keywords(call)
        yield from _of_subprocess(call.name, call.positional, call.location)
    for command in file.shell:
        yield from _of_command(command)


def _of_imports(imports: Iterable[Import]) -> Iterator[Evidence]:
    for item in imports:
        framework, strong = _of_import(item.module, item.name)
        if framework:
            yield Evidence(framework, "import", item.location, item.dotted, strong)


def _of_keywords(call: Call) -> Iterator[Evidence]:
    """Engine parameters of a call (``GRPOConfig(use_vllm=True)``)."""
    for framework in _ENGINES:
        for name, accepts, weight in _PARAMETERS[framework]:
            argument = call.keywords.get(name)
            if argument is None or weight < 2 or not known(argument.value):
                continue
            if accepts(argument.value):
                text = f"{name}={argument.text or argument.value}"
                yield Evidence(framework, "parameter", argument.location, text)


def _of_import(module: str, name: str) -> tuple[str, bool]:
    """Framework of an import, and whether the import alone proves it."""
    root, _, rest = module.partition(".")
    if root == "swift":
        known_name = not rest and (_SWIFT_NAMES.fullmatch(name) or _SWIFT_MODULES.fullmatch(name))
        if _SWIFT_MODULES.fullmatch(rest.partition(".")[0]) or known_name:
            return "swift", True
        return ("swift", False) if not rest and not name else ("", False)
    if root == "transformers" and _HF_NAMES.fullmatch(name):
        return "hf_trainer", True
    if root == "trl" and _TRL_NAMES.fullmatch(name):
        return "hf_trainer", True
    return _PACKAGES.get(root, ""), True


def _of_subprocess(name: str, positional: tuple[Any, ...], at: Location) -> Iterator[Evidence]:
    """Commands that a program starts: ``subprocess.run(["llamafactory-cli", …])``."""
    if not positional or not (name == "os.system" or name.startswith("subprocess.")):
        return
    value = positional[0].value
    words = value.split() if isinstance(value, str) else value
    if isinstance(words, (list, tuple)) and all(isinstance(word, str) for word in words):
        yield from _of_words(list(words), at)


def _of_command(command: Command) -> Iterator[Evidence]:
    words = [word.text for word in command.words]
    if words and words[0] in _INERT:
        return
    yield from _of_words(words, command.location)
    yield from _of_flags(words, command.location)


def _of_words(words: list[str], at: Location) -> Iterator[Evidence]:
    if not words:
        return
    name = words[0].rpartition("/")[2]
    following = words[1] if len(words) > 1 else ""
    text = " ".join(words[:2])
    framework = _named_by_command(name, following)
    if framework:
        yield Evidence(framework, "cli", at, text)
    if name == "trl" and following == "vllm-serve":
        yield Evidence("vllm", "cli", at, text)
    if name in ("pip", "pip3", "uv") and "install" in words[:3]:
        yield from _of_installation(words, at)
        return
    for index, word in enumerate(words):
        module = words[index + 1] if word == "-m" and index + 1 < len(words) else ""
        root = module.partition(".")[0]
        if root in _PACKAGES:
            yield Evidence(_PACKAGES[root], "cli", at, f"-m {module}")
        elif module.startswith("swift.cli.") or word.endswith(("swift/cli/sft.py",)):
            yield Evidence("swift", "cli", at, module or word)
        elif re.search(r"swift/cli/(?:_megatron/)?(?:sft|pt|rlhf|infer)\.py$", word):
            yield Evidence("swift", "cli", at, word)
        elif _VIDEOX_SCRIPT.search(word):
            yield Evidence("videox_fun", "path", at, word)
        elif index and word.rpartition("/")[2] in ("llamafactory-cli", "ff-train"):
            found = _named_by_command(word.rpartition("/")[2], "")
            yield Evidence(found, "cli", at, word)


def _named_by_command(name: str, following: str) -> str:
    if name in ("llamafactory-cli", "lmf"):
        return "llamafactory"
    if name in ("ff-train", "flow-factory-train"):
        return "flow_factory"
    if (name == "swift" and _SWIFT_COMMANDS.fullmatch(following)) or (
        name == "megatron" and _MEGATRON_COMMANDS.fullmatch(following)
    ):
        return "swift"
    if name == "vllm" and _VLLM_COMMANDS.fullmatch(following):
        return "vllm"
    if name == "sglang" and following == "serve":
        return "sglang"
    if name == "trl" and _TRL_COMMANDS.fullmatch(following):
        return "hf_trainer"
    return ""


def _of_installation(words: list[str], at: Location) -> Iterator[Evidence]:
    for word in words[1:]:
        match = re.match(r"['\"]?([A-Za-z0-9][\w.-]*)", word)
        name = match.group(1).lower().replace("_", "-") if match else ""
        if name in _DISTRIBUTIONS:
            yield Evidence(_DISTRIBUTIONS[name], "requirement", at, word, strong=False)


def _of_flags(words: list[str], at: Location) -> Iterator[Evidence]:
    given: dict[str, Any] = {}
    for index, word in enumerate(words):
        if not word.startswith("--"):
            # Hydra overrides, as verl has them: actor_rollout_ref.rollout.name=vllm
            key, equals, value = word.partition("=")
            if equals and key.endswith("rollout.name") and value in _ENGINES:
                yield Evidence(value, "parameter", at, word)
            continue
        name, equals, value = word[2:].partition("=")
        following = words[index + 1] if index + 1 < len(words) else ""
        if not equals:
            value = following if not following.startswith("-") else "true"
        given[name.replace("-", "_")] = value
    yield from _of_parameters(given, lambda name: at, (*TRAINING, *_ENGINES))


def _of_config(file: ConfigFile) -> Iterator[Evidence]:
    for document in file.documents:
        top: dict[str, Any] = {}
        places: dict[str, Location] = {}
        for key, entry in document.root.mapping.items():
            if entry.node.kind != "mapping":
                top[key] = entry.node.plain()
            places[key] = entry.location
        if "swift_version" in top and file.path.rpartition("/")[2] == "args.json":
            place = places["swift_version"]
            yield Evidence("swift", "checkpoint", place, "args.json: swift_version")
        flat = [name for name in _PARAMETERS if name not in _NESTED]
        yield from _of_parameters(top, places.__getitem__, flat)
        inner: dict[str, Any] = {}
        for name, setting in document.settings().items():
            last = name.rpartition(".")[2]
            if setting.location is not None:
                inner.setdefault(last, setting.value)
                places.setdefault(last, setting.location)
            yield from _of_rollout(name, setting)
        yield from _of_parameters(inner, places.__getitem__, sorted(_NESTED))


def _of_rollout(name: str, setting: Setting) -> Iterator[Evidence]:
    if name.endswith("rollout.name") and setting.value in _ENGINES and setting.location:
        yield Evidence(setting.value, "parameter", setting.location, f"{name}: {setting.value}")


def _of_parameters(
    given: Mapping[str, Any], place: Any, frameworks: Iterable[str]
) -> Iterator[Evidence]:
    for framework in frameworks:
        hits = [
            (name, weight)
            for name, accepts, weight in _PARAMETERS.get(framework, ())
            if name in given and known(given[name]) and accepts(given[name])
        ]
        strong = sum(weight for _, weight in hits) > 1
        for name, _ in hits:
            text = f"{name}: {given[name]}"
            yield Evidence(framework, "parameter", place(name), text, strong)


# --- decision ---------------------------------------------------------------------------


def _joined(found: list[Evidence], trains: bool) -> Iterator[Evidence]:
    """A dependency counts once something else points to it too, or nothing else is there."""
    proved = {item.framework for item in found if item.strong}
    by_framework: dict[str, dict[str, Evidence]] = {}
    for item in found:
        by_framework.setdefault(item.framework, {}).setdefault(item.rule, item)
    is_bare = not trains and not proved
    for framework, rules in sorted(by_framework.items()):
        first = rules.get("requirement") or rules.get("structure")
        if framework not in proved and first is not None and (len(rules) > 1 or is_bare):
            yield Evidence(framework, first.rule, first.location, first.text)


def _training(
    launched: list[Evidence], found: list[Evidence], strong: set[str], trains: bool
) -> str:
    # Flags of an engine on a trainer's command line do not make the engine the trainer.
    started = [i for i in launched if i.framework not in _ENGINES or i.rule != "parameter"]
    for group in (started, [item for item in found if item.rule in ("checkout", "git")]):
        named = {item.framework for item in group if item.strong}
        for framework in PRECEDENCE:
            if framework in named:
                return framework
    candidates = [framework for framework in TRAINING if framework in strong]
    if candidates:
        return _dominant(candidates, found)
    if trains:  # an engine beside a training loop serves that loop
        return "generic"
    return next((engine for engine in _ENGINES if engine in strong), "generic")


def _dominant(candidates: list[str], found: list[Evidence]) -> str:
    """The first by precedence, unless a later one has far more files on its side."""
    files: dict[str, set[str]] = {}
    for item in found:
        if item.strong:
            files.setdefault(item.framework, set()).add(item.location.path)
    best = candidates[0]
    for other in candidates[1:]:
        if other != "hf_trainer" and len(files[other]) >= max(5, 4 * len(files[best])):
            best = other
    return best


def _weight(rule: str) -> int:
    return _RULES.index(rule) if rule in _RULES else len(_RULES)


def _worth_showing(found: list[Evidence], training: str) -> Iterator[Evidence]:
    """At most a dozen pieces per framework, strong ones first, each rule represented.

    What speaks for the framework decided on comes first.
    """
    for framework in sorted(PRECEDENCE, key=lambda name: name != training):
        own = sorted(
            (item for item in found if item.framework == framework),
            key=lambda item: (not item.strong, not _STARTS.search(item.text), item.location),
        )
        turns: dict[str, int] = {}
        shown: set[tuple[str, Location]] = set()
        ranked: list[tuple[bool, int, int, Evidence]] = []
        for item in own:
            if (item.rule, item.location) in shown:
                continue
            shown.add((item.rule, item.location))
            turns[item.rule] = turns.get(item.rule, 0) + 1
            ranked.append((not item.strong, turns[item.rule], _weight(item.rule), item))
        ranked.sort(key=lambda entry: entry[:3])
        yield from (item for *_, item in ranked[:_LIMIT])
