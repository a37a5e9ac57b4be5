"""What a program or a constructor takes: its parameters in the version at hand."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Optional

from flake8_gpu_training.facts import Argument, Call, Origin, PythonFile
from flake8_gpu_training.frameworks import swift_commands
from flake8_gpu_training.frameworks.at_hand import AtHand, at_hand, required
from flake8_gpu_training.frameworks.engine_of import is_router, starts_router
from flake8_gpu_training.frameworks.own_parsers import OwnParser, own_parser
from flake8_gpu_training.frameworks.reading import parsed
from flake8_gpu_training.frameworks.tables import Parameter, table_of
from flake8_gpu_training.frameworks.torch_calls import positions
from flake8_gpu_training.runs.model import Run, RunKind
from flake8_gpu_training.sources.python import ASKS_WHAT_IS_INSTALLED

TITLES: Mapping[str, str] = {
    "ms-swift": "ms-swift",
    "llamafactory": "LLaMA-Factory",
    "transformers": "Transformers",
    "trl": "TRL",
    "peft": "PEFT",
    "accelerate": "Accelerate",
    "deepspeed": "DeepSpeed",
    "torch": "PyTorch",
    "flow-factory": "Flow-Factory",
    "videox-fun": "VideoX-Fun",
    "vllm": "vLLM",
    "sglang": "SGLang",
}


_ALIKE = 0.85
"""How much of a misspelt name agrees with the real one (difflib's ratio)."""


@dataclass(frozen=True)
class Part:
    """One group of parameters of one distribution, in the release at hand.

    ``prefix``: what stands before their names in a document that is read whole.
    """

    at_hand: AtHand
    group: str
    prefix: str = ""

    @property
    def distribution(self) -> str:
        """Name on the package index."""
        return self.at_hand.table.distribution

    @property
    def title(self) -> str:
        """Name and version as a message says them."""
        return f"{TITLES[self.distribution]} {self.at_hand.version}"

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The group's own parameters by name."""
        return self.at_hand.table.parameters(self.group, self.at_hand.version)


@dataclass(frozen=True)
class History:
    """First and last release that know a name which the release at hand does not know.

    ``certain``: no release that the project may install knows it. ``open``: one knows it that
    an environment of the project has.
    """

    part: Part
    first: str
    last: str
    certain: bool
    open: bool = False

    @property
    def is_former(self) -> bool:
        """Whether the name is older than the release at hand, not newer."""
        return parsed(self.first) <= parsed(self.part.at_hand.version)


@dataclass(frozen=True)
class Accepted:
    """The parameters of a program or constructor, of all its parts.

    ``completes``: argparse takes a unique beginning of a flag for the flag. ``extra``: names
    that are taken beside those of the tables. ``keeps_others``: it refuses no name.
    ``keeps_unlike``: a name is known to be wrong only where it is like a real one.
    ``bare_switches``: what is true or false takes no value behind its flag. ``inverted``:
    ``--disable-x`` is the opposite of ``--enable-x``, and the other way round. ``arguments``:
    what the class takes whose instance a trainer takes as ``args``.
    """

    parts: tuple[Part, ...]
    completes: bool = False
    extra: frozenset[str] = frozenset()
    keeps_others: bool = False
    keeps_unlike: bool = False
    bare_switches: bool = False
    inverted: bool = False
    arguments: Optional[Accepted] = None

    @property
    def title(self) -> str:
        """Name and version of what is run."""
        return self.parts[0].title

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """All parameters by name, aliases among them."""
        return _merged(
            tuple((p.distribution, p.group, p.at_hand.version, p.prefix) for p in self.parts)
        )

    def takes(self, name: str, *, flag: bool = False) -> bool:
        """Whether the program knows ``name``; ``flag``: as a flag, which argparse completes."""
        known = name in self.extra or self.parameter(name, flag=flag) is not None
        if flag and self.bare_switches and not self._had(name):
            # a beginning of several flags may be one of them, that no table has
            known = known or any(one.startswith(name) for one in self.parameters)
        if known or self.keeps_others or not self.keeps_unlike:
            return known or self.keeps_others
        return not difflib.get_close_matches(name, self.parameters, 1, _ALIKE)

    def _had(self, name: str) -> bool:
        """Whether another release has a parameter of this name: the flag is no beginning."""
        return any(part.at_hand.table.span(part.group, name) for part in self.parts)

    def parameter(self, name: str, *, flag: bool = False) -> Optional[Parameter]:
        """The parameter that ``name`` sets."""
        if name in self.parameters:
            return self.parameters[name]
        if not flag:
            return None
        short = f"-{name.replace('_', '-')}"
        if short in self.parameters:
            return self.parameters[short]
        opposite = name[len("no_") :] if name.startswith("no_") else ""
        parameter = self.parameters.get(opposite)
        if parameter is not None and parameter.types == ("bool",) and parameter.default is True:
            return parameter  # HfArgumentParser adds --no_x to what is on by default
        if parameter is not None and parameter.negatable:
            return parameter
        parameter = self.parameters.get(inverse(name)) if self.inverted else None
        if parameter is not None and parameter.negatable:
            return parameter
        if self.completes:
            begun = {
                self.parameters[known].name for known in self.parameters if known.startswith(name)
            }
            return self.parameters[begun.pop()] if len(begun) == 1 else None
        return None

    def history(self, name: str) -> Optional[History]:
        """The releases that know a name which this one does not know; None when none does.

        Where one part has had a name and another one will, it was written for what has had it.
        """
        found = [one for part in self.parts if (one := _history(part, name)) is not None]
        return next((one for one in found if one.is_former), found[0] if found else None)


def _history(part: Part, name: str) -> Optional[History]:
    table, allowed = part.at_hand.table, part.at_hand.allowed
    span = table.span(part.group, name)
    if span is None:
        return None
    certain = not any(table.knows(part.group, name, index) for index in allowed)
    open_to = any(table.knows(part.group, name, index) for index in part.at_hand.chosen)
    return History(part, *span, certain, open_to)


def inverse(name: str) -> str:
    """``disable_x`` for ``enable_x`` and the other way round; "" for other names."""
    for one, other in (("enable_", "disable_"), ("disable_", "enable_")):
        if name.startswith(one):
            return other + name[len(one) :]
    return ""


@lru_cache(maxsize=64)
def _merged(parts: tuple[tuple[str, str, str, str], ...]) -> Mapping[str, Parameter]:
    found: dict[str, Parameter] = {}
    for distribution, group, version, prefix in parts:
        table = table_of(distribution)
        parameters = table.parameters(group, version) if table is not None else {}
        for name, parameter in parameters.items():
            for alias in (name, *parameter.aliases):
                found.setdefault(f"{prefix}{alias}", parameter)
    return found


# --- programs -------------------------------------------------------------------------

_SWIFT: Mapping[str, str] = {
    **{name: name for name in ("sft", "pt", "rlhf", "infer", "eval", "export")},
    "deploy": "deploy",
    "rollout": "rollout",
    "sample": "sampling",
}
CONFIG_FLAG = ((3, 10), (4, 0))
"""First and last ms-swift whose cli/main.py takes ``--config``."""


def accepted_by(run: Run) -> Optional[Accepted]:
    """What the program of ``run`` takes; None where that is not known."""
    if run.framework == "swift":
        return _swift(run)
    if run.framework == "llamafactory":
        return _llamafactory(run)
    if run.framework == "flow_factory":
        return _flow_factory(run)
    if run.framework == "videox_fun":
        return _videox_fun(run)
    if run.framework in ("vllm", "sglang"):
        return _server(run)
    return _trl(run) if run.framework == "hf_trainer" else None


def parsed_by(run: Run) -> Optional[tuple[Accepted, OwnParser]]:
    """What the HfArgumentParser of the run's own script takes."""
    own = own_parser(run) if run.framework == "hf_trainer" else None
    if own is None or not own.groups:
        return None
    parts: list[Part] = []
    for distribution, group in own.groups:
        found = _parts(run, distribution, group)
        if found is None:
            return None
        parts += found
    return Accepted(tuple(parts), True, own.names | {"config", "env"}), own


def _is_asked(run: Run, name: str) -> bool:
    setting = run.settings.get(name)
    return setting is not None and str(setting.value).lower() not in ("false", "0", "none")


def _swift(run: Run) -> Optional[Accepted]:
    command = swift_commands.subcommand(run)
    if command not in _SWIFT or _is_asked(run, "use_ray") or _is_asked(run, "ignore_args_error"):
        return None
    if run.place.call is not None or _is_older_swift(run):
        return None
    group = _SWIFT[command]
    group = f"megatron {group}" if swift_commands.is_megatron(run) else group
    found = _accepted(run, "ms-swift", group, completes=True)
    if found is None:
        return None
    version = parsed(found.parts[0].at_hand.version)[:2]
    extra = {"config"} if CONFIG_FLAG[0] <= version <= CONFIG_FLAG[1] else set()
    return Accepted(found.parts, True, frozenset(extra))


def _is_older_swift(run: Run) -> bool:
    """Whether the model is named as ms-swift 2 had it, and no version says otherwise."""
    names = run.settings.keys()
    return "ms-swift" not in run.versions and "model_type" in names and "model" not in names


_MEGATRON = frozenset(
    f"{kind}_parallel_size"
    for kind in ("tensor_model", "pipeline_model", "expert_model", "context", "sequence")
)


def _llamafactory(run: Run) -> Optional[Accepted]:
    if any(name in run.environment for name in ("ALLOW_EXTRA_ARGS", "USE_MCA", "USE_V1")):
        return None
    words = run.command.words if run.command is not None else ()
    if any("train_bash" in word.text or "llmtuner" in word.text for word in words):
        return None  # older than the tables
    if _is_asked(run, "use_mca") or run.settings.keys() & _MEGATRON:
        return None  # USE_MCA, which may be set elsewhere, gives it Megatron's arguments
    return _accepted(run, "llamafactory", _llamafactory_group(run), completes=True)


def _llamafactory_group(run: Run) -> str:
    """Whose arguments are read; ``train`` also evaluates and predicts."""
    if run.kind is RunKind.TRAIN or run.command is None:
        return "train"
    words = [word.text for word in run.command.words[:4]]
    if any(word in ("api", "chat", "export", "webchat") for word in words):
        return "infer"
    return "eval" if "eval" in words else "train"


_SECTIONS = ("data", "model", "scheduler", "eval", "log")


def _flow_factory(run: Run) -> Optional[Accepted]:
    """The sections of its file; a name that they do not know is kept for the model's adapter.

    It is on no package index, so that a state of its source other than the one that was read
    is the rule: what depends on that, a rule asks itself (``Run.unreleased``).
    """
    found = _state(run, "flow-factory")
    if found is None:
        return None
    kind = run.settings.get("train.trainer_type")
    algorithm = str(kind.value if kind is not None else "grpo").lower().removesuffix("-guard")
    names = found.table.groups.keys()
    train = f"train {algorithm}" if f"train {algorithm}" in names else "train"
    parts = [Part(found, "config"), *(Part(found, name, f"{name}.") for name in _SECTIONS)]
    return Accepted((*parts, Part(found, train, "train.")), keeps_others=True)


def _state(run: Run, distribution: str) -> Optional[AtHand]:
    """The release at hand, else the state of the source that was read."""
    table = table_of(distribution)
    if table is None:
        return None
    newest = len(table.versions) - 1
    return at_hand(run, distribution) or AtHand(table, table.versions[newest], (newest,))


_VIDEOX_SCRIPT = re.compile(r"(?:.*/)?scripts/([\w.]+/train\w*)\.py")


def _videox_fun(run: Run) -> Optional[Accepted]:
    """What its script takes. A checkout has the script itself, whose parser is read instead;
    that of another place may be a newer one."""
    words = [word.text for word in run.command.words] if run.command is not None else []
    scripts = (match for word in words if (match := _VIDEOX_SCRIPT.fullmatch(word)) is not None)
    group = next((match[1] for match in scripts), "")
    found = _state(run, "videox-fun")
    if found is None or group not in found.table.groups:
        return None
    parts = (Part(found, group), Part(found, "common"))
    if "videox-fun" in run.unreleased or run.python:
        return Accepted(parts, keeps_others=True)
    others = frozenset(name for one in found.table.groups for name in found.table.parameters(one))
    return Accepted(parts, True, others, keeps_unlike=True, bare_switches=True)


_PLUGGED = frozenset({"omni"})
"""Flags of programs that build on an engine and add flags of their own (vLLM-Omni)."""


_OF_DIFFUSION = frozenset(
    """
    num_gpus sp_degree ulysses_degree ring_degree performance_mode use_fsdp_inference
    dit_cpu_offload dit_layerwise_offload layerwise_offload_components pipeline_class_name
    model_variant srt_encoder_url pe_server_url
    """.split()  # noqa: SIM905
)
"""Flags that only SGLang's server of image and video models has (multimodal_gen)."""


def _server(run: Run) -> Optional[Accepted]:
    """What the server of an engine takes; its other commands have flags of their own."""
    if run.kind is not RunKind.SERVE or run.place.call is not None or run.command is None:
        return None
    if _PLUGGED & run.settings.keys() or is_router(run):
        return None
    by_model = [word.text for word in run.command.words[:2]] == ["sglang", "serve"]
    is_decoder = run.model.layers is not None  # known by its own shape, not by words of its name
    makes_images = by_model and not is_decoder and not _OF_DIFFUSION.isdisjoint(run.settings)
    if makes_images or (by_model and run.model.kind not in ("LLM", "MLLM", "embedding")):
        return None  # a model of images or videos gets a server of other flags
    found = _accepted(run, run.framework, "serve", completes=True)
    if found is None or _is_patched(run, found):
        return None
    inverted = run.framework == "vllm" and parsed(found.parts[0].at_hand.version) >= _INVERTED
    extra = frozenset({"model", "model_tag", "config", "help"})
    if starts_router(run):
        extra |= {name for name in run.settings if name.startswith("router_")}
    return replace(found, extra=extra, bare_switches=True, inverted=inverted)


def _is_patched(run: Run, stock: Accepted) -> bool:
    """Whether an executable is named by its path and gets flags like none of any release."""
    if run.command is None or "/" not in run.command.words[0].text:
        return False
    part = stock.parts[0]
    return any(
        not stock.takes(name, flag=True)
        and part.at_hand.table.span(part.group, name) is None
        and not difflib.get_close_matches(name, stock.parameters, 1, _ALIKE)
        for name, setting in run.settings.items()
        if setting.origin is Origin.FLAG
    )


_INVERTED = (0, 31)
"""vLLM 0.33 has EnableDisableAction (utils/argparse_utils.py), 0.30 does not."""


_TRL: Mapping[str, tuple[str, str]] = {
    **{name: ("ScriptArguments", f"{name.upper()}Config") for name in ("sft", "dpo", "kto")},
    "reward": ("ScriptArguments", "RewardConfig"),
    "distillation": ("ScriptArguments", "DistillationConfig"),
    "grpo": ("GRPOScriptArguments", "GRPOConfig"),
    "rloo": ("RLOOScriptArguments", "RLOOConfig"),
}
_TRL_SINCE = (0, 13)
"""The first TRL whose command parses with the classes of its scripts."""


def _trl(run: Run) -> Optional[Accepted]:
    """``trl sft …``; what the classes do not know goes on to ``accelerate launch``."""
    words = run.command.words if run.command is not None else ()
    if len(words) < 2 or words[0].text.rpartition("/")[2] != "trl" or words[1].text not in _TRL:
        return None
    script, config = _TRL[words[1].text]
    parts = _parts(run, "trl", config)
    if parts is None or parsed(parts[0].at_hand.version) < _TRL_SINCE:
        return None
    for distribution, group in (
        ("trl", script),
        ("trl", "ModelConfig"),
        ("accelerate", "launch"),
    ):
        more = _parts(run, distribution, group)
        if more is None:
            return None
        parts += more
    parts += _parts(run, "trl", "DatasetMixtureConfig") or []
    return Accepted(tuple(parts), True, frozenset({"config", "accelerate_config", "env"}))


_LAUNCHERS: Mapping[str, tuple[str, str]] = {
    "accelerate": ("accelerate", "launch"),
    "torchrun": ("torch", "torchrun"),
    "deepspeed": ("deepspeed", "launcher"),
}


def launched(run: Run) -> Optional[Accepted]:
    """What the launcher takes that starts the run."""
    found = _LAUNCHERS.get(run.launcher.name)
    if found is None or (found[0] == "torch" and not _is_torchrun(run)):
        return None
    accepted = _accepted(run, *found, completes=found[0] != "accelerate")
    if accepted is None or found[0] != "torch":
        return accepted
    return Accepted(accepted.parts, True, frozenset({"use_env"}))  # torch.distributed.launch


def _is_torchrun(run: Run) -> bool:
    """Whether it is torchrun itself: other launchers hand over to it."""
    words = [word.text for word in run.command.words[:4]] if run.command is not None else []
    names = ("torch.distributed.run", "torch.distributed.launch")
    return words[:1] == ["torchrun"] or any(word in names for word in words)


def configured(run: Run) -> Optional[Accepted]:
    """What the run's file of Accelerate takes (commands/config/config_args.py)."""
    if run.accelerate is None:
        return None
    place = run.accelerate.get("compute_environment")
    if place is not None and place.value == "AMAZON_SAGEMAKER":
        return None
    found = _accepted(run, "accelerate", "config")
    return Accepted(found.parts, extra=frozenset({"fp16", "dynamo_backend"})) if found else None


def _accepted(
    run: Run, distribution: str, group: str, completes: bool = False
) -> Optional[Accepted]:
    parts = _parts(run, distribution, group)
    return Accepted(tuple(parts), completes) if parts else None


def _parts(run: Run, distribution: str, group: str, wanted: str = "") -> Optional[list[Part]]:
    """A group and those it extends; None when the releases of one are not known."""
    found = at_hand(run, distribution, wanted)
    if found is None or not found.table.parameters(group, found.version):
        return None
    parts = [Part(found, group)]
    for base, name in found.table.extends(group):
        inherited = _parts(run, base, name, required(found.table, base, found.version))
        if inherited is None:
            return None
        parts += inherited
    return parts


# --- constructors ---------------------------------------------------------------------

_VERSION_ASKED = re.compile(
    r"version|hasattr|signature|__dataclass_fields__|getattr|is_\w+_available"
)
_STRICT: Mapping[str, re.Pattern[str]] = {
    "transformers": re.compile(r"(?:Seq2Seq)?(?:TrainingArguments|Trainer)"),
    "trl": re.compile(r"\w+(?:Config|Trainer)"),
    "peft": re.compile(r"\w+Config"),
    "accelerate": re.compile(r"Accelerator|FullyShardedDataParallelPlugin|DeepSpeedPlugin"),
    "vllm": re.compile(r"LLM|(?:Async)?EngineArgs"),
    "sglang": re.compile(r"Engine|ServerArgs"),
}
"""Classes that raise TypeError for a keyword they do not know."""
_ENGINE_OF: Mapping[str, re.Pattern[str]] = {
    "vllm": re.compile(r"vllm\.(?:LLM|(?:entrypoints\.llm\.)?LLM|(?:engine\.arg_utils\.)?\w+Args)"),
    "sglang": re.compile(
        r"sglang\.(?:Engine|srt\.(?:server\.|entrypoints\.engine\.)?Engine"
        r"|(?:srt\.server_args\.)?ServerArgs)"
    ),
}
"""The engines themselves, not classes of the same name for other models."""
_ENGINES: Mapping[str, str] = dict.fromkeys(
    ("EngineArgs", "AsyncEngineArgs", "Engine", "ServerArgs"), "engine"
)
"""Groups of the tables whose classes have another name."""
_BESIDE: Mapping[str, frozenset[str]] = {"Engine": frozenset({"server_args"})}
"""Keywords that a class takes beside those of its group (SGLang, entrypoints/engine.py)."""
_LENIENT: Mapping[str, re.Pattern[str]] = {
    "transformers": re.compile(r"(?!Seq2Seq|Training)\w+Config|Adafactor"),
}
"""Classes that validate what they are given and take any keyword."""


LOADING = "from_pretrained"
_MODELS = re.compile(
    r"transformers\.(?:\w+\.)*(?:\w+For\w+|\w+Model|AutoModel\w*)\.from_pretrained"
)


def is_trainer(group: str) -> bool:
    """Whether a group is what the constructor of a trainer takes, not its arguments."""
    return group.endswith("Trainer")


def _trained(run: Run, distribution: str, trainer: str) -> Optional[Accepted]:
    """What the class takes whose instance a trainer takes as ``args``."""
    name = trainer[: -len("Trainer")]
    return _accepted(
        run, distribution, f"{name}Config" if distribution == "trl" else f"{name}TrainingArguments"
    )


def constructed(run: Run) -> Iterator[tuple[Call, Accepted]]:
    """Calls of constructors that validate what they are given, with what they take."""
    replacing = {file.path for file in run.python if _imports_unsloth(file)}
    for file in run.python:
        if file.path in replacing:
            continue  # it puts its own classes in the place of TRL's
        asked = {i.module.partition(".")[0] for i in file.imports if i.name == "__version__"}
        calls = [(c, name) for c in file.calls if (name := _library(c)) and name not in asked]
        unsure = {(c.method, c.scope) for c, _ in calls if _is_guarded(c)}
        asks = ASKS_WHAT_IS_INSTALLED in (file.mentions or ())
        for call, distribution in calls:
            if (call.method, call.scope) in unsure or (replacing and is_trainer(call.method)):
                continue
            if asks:
                call = _as_written(call)
            if call.method == LOADING:
                yield from _loaded(run, call)
                continue
            accepted = _accepted(run, distribution, _ENGINES.get(call.method, call.method))
            if accepted is None:
                continue
            accepted = replace(
                accepted, extra=accepted.extra | _BESIDE.get(call.method, frozenset())
            )
            arguments = None
            if is_trainer(call.method):
                arguments = _trained(run, distribution, call.method)
            yield call, replace(accepted, keeps_others=_is_of(call, _LENIENT), arguments=arguments)


def _loaded(run: Run, call: Call) -> Iterator[tuple[Call, Accepted]]:
    """What loads a model: the keywords that it takes depend on the model, its rules do not."""
    found = at_hand(run, "transformers")
    if found is not None:
        yield call, Accepted((Part(found, LOADING),), keeps_others=True)


def _as_written(call: Call) -> Call:
    """The call with the keywords that stand in it: those of a mapping may have been chosen by
    what the library takes."""
    start, end = call.location, call.end
    inside = {
        name: argument
        for name, argument in call.keywords.items()
        if end is None or (start.line, start.column) < _at(argument) < (end.line, end.column)
    }
    if len(inside) == len(call.keywords):
        return call
    return replace(call, keywords=inside, is_open=True)


def _at(argument: Argument) -> tuple[int, int]:
    return argument.location.line, argument.location.column


def _imports_unsloth(file: PythonFile) -> bool:
    return any(item.module.partition(".")[0] == "unsloth" for item in file.imports)


def _library(call: Call) -> str:
    """The distribution whose class a call makes; "" when it is none that is known."""
    root = call.name.partition(".")[0]
    if root == "torch":
        return root if positions(call) else ""
    if is_trainer(call.method) and call.name.startswith("trl.experimental."):
        return ""  # some are named as those of the tables, and take other names
    if call.method == LOADING:
        return root if _MODELS.fullmatch(call.name) else ""
    if root in _ENGINE_OF and not _ENGINE_OF[root].fullmatch(call.name):
        return ""
    return root if _is_of(call, _STRICT) or _is_of(call, _LENIENT) else ""


def _is_of(call: Call, classes: Mapping[str, re.Pattern[str]]) -> bool:
    pattern = classes.get(call.name.partition(".")[0])
    return pattern is not None and pattern.fullmatch(call.method) is not None


def _is_guarded(call: Call) -> bool:
    """Whether a branch asks for the version, or is taken when another call failed."""
    return any(not c.text or _VERSION_ASKED.search(c.text) for c in call.conditions)
