"""What Python files train or serve, and the settings their constructors and parsers give."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Optional

from flake8_gpu_training.facts import (
    EMPTY,
    Argument,
    Call,
    ClassDef,
    Document,
    Location,
    Option,
    Origin,
    PythonFile,
    Setting,
    Unknown,
    Word,
    known,
)
from flake8_gpu_training.runs.model import RunKind
from flake8_gpu_training.runs.settings import Arguments, option_name, renamed

TRAINER_ARGUMENTS = frozenset(
    """
    TrainingArguments Seq2SeqTrainingArguments SFTConfig DPOConfig GRPOConfig KTOConfig ORPOConfig
    CPOConfig RewardConfig PPOConfig PPOv2Config RLOOConfig GKDConfig OnlineDPOConfig XPOConfig
    NashMDConfig BCOConfig PRMConfig SDPOConfig DistillationConfig ServerDistillationConfig
    SDFTConfig TPOConfig GOLDConfig GMPOConfig MiniLLMConfig AsyncGRPOConfig SSDConfig A2POConfig
    IWOPDConfig GRPOWithReplayBufferConfig IterativeSFTConfig AlignPropConfig
    DDPOConfig SentenceTransformerTrainingArguments CrossEncoderTrainingArguments
    SparseEncoderTrainingArguments ORTTrainingArguments GaudiTrainingArguments
    UnslothTrainingArguments
    """.split()  # noqa: SIM905
)
"""Argument classes of the Hugging Face Trainer family."""

TRAINER_ROOTS = frozenset({"transformers", "trl", "sentence_transformers", "unsloth", "optimum"})
_TRAINERS = re.compile(r"(?:[A-Za-z0-9]*)Trainer")
_ARGUMENT_PARSERS = frozenset({"HfArgumentParser", "TrlParser", "H4ArgumentParser"})
_SWIFT_MAINS: Mapping[str, tuple[str, RunKind]] = MappingProxyType(
    {
        "sft_main": ("sft", RunKind.TRAIN),
        "pt_main": ("pt", RunKind.TRAIN),
        "rlhf_main": ("rlhf", RunKind.TRAIN),
        "infer_main": ("infer", RunKind.INFER),
        "deploy_main": ("deploy", RunKind.SERVE),
        "rollout_main": ("rollout", RunKind.SERVE),
        "eval_main": ("eval", RunKind.INFER),
        "megatron_sft_main": ("sft", RunKind.TRAIN),
        "megatron_pt_main": ("pt", RunKind.TRAIN),
        "megatron_rlhf_main": ("rlhf", RunKind.TRAIN),
    }
)
_SWIFT_ARGUMENTS = re.compile(
    r"(?:Megatron)?(?:Sft|Train|Training|Pretrain|RLHF|Infer|Deploy)Arguments"
)
# The classes behind those functions, from which a project derives one of its own.
_SWIFT_PIPELINES = frozenset({"SwiftPipeline", "SwiftSft", "SwiftPt", "SwiftRLHF"})
_SWIFT_TRAINS: Mapping[str, str] = MappingProxyType(
    {
        "SftArguments": "sft",
        "TrainArguments": "sft",
        "PretrainArguments": "pt",
        "RLHFArguments": "rlhf",
    }
)
_VLLM_ENGINES = frozenset({"LLM", "EngineArgs", "AsyncEngineArgs"})
_SGLANG_ENGINES = frozenset({"Engine", "Runtime", "ServerArgs"})
_LIGHTNING = frozenset({"pytorch_lightning", "lightning", "lightning_fabric"})
_BACKWARD = frozenset({"backward", "manual_backward"})
_PATH = re.compile(r"[\w.]+(?:\[['\"][\w./-]+['\"]\]|\.\w+)*")
# Names that hold what a command line was parsed to, and what a configuration file holds.
_NAMESPACES = frozenset(
    """
    args arg opt opts options flags FLAGS hparams cli_args cmd_args parsed_args
    self.args self.opt self.hparams model_args data_args training_args script_args
    """.split()  # noqa: SIM905
)
_CONFIGURATIONS = frozenset(
    "cfg config conf configs self.cfg self.config".split()  # noqa: SIM905
)
_PARSERS = frozenset(
    """
    parse_args parse_known_args parse_intermixed_args parse_args_into_dataclasses
    parse_args_and_config
    """.split()  # noqa: SIM905
)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
# A loop over optimizers steps each of them: it is a part of one step.
_OVER_OPTIMIZERS = re.compile(r"(?i)(?:^|[._])(?:\w*optim\w*|opts)$")
_OWN_KEYWORDS = frozenset(
    """
    packing max_seq_length max_length max_prompt_length max_target_length dataset_num_proc
    dataset_batch_size dataset_text_field neftune_noise_alpha num_of_sequences beta loss_type
    """.split()  # noqa: SIM905
)
# Boolean parameters of TrainingArguments that are true by default and get a ``--no_`` flag.
_NEGATABLE = frozenset(
    ["dataloader_pin_memory", "remove_unused_columns", "save_safetensors", "gradient_checkpointing"]
)


@dataclass(frozen=True)
class Entry:
    """One job that Python files do.

    ``constructor`` builds the arguments (or the engine) and is where a missing one would be
    written; ``from_flags``: an HfArgumentParser reads them from the command line instead.
    """

    framework: str
    kind: RunKind
    location: Location
    constructor: Optional[Call] = None
    from_flags: bool = False
    classes: tuple[ClassDef, ...] = ()
    subcommand: str = ""
    is_open: bool = False
    is_configured: bool = False
    """A configuration file makes the trainer: nothing is known until that was read."""


@dataclass(frozen=True)
class Program:
    """A script and the project's modules it reaches; the script comes first."""

    files: tuple[PythonFile, ...]
    problems: bool = False

    @property
    def script(self) -> PythonFile:
        """The file that is run."""
        return self.files[0]

    def calls(self) -> Iterator[Call]:
        """Calls of all files, the script's first."""
        for file in self.files:
            yield from file.calls

    def options(self) -> list[Option]:
        """Command-line options that any of the files declares."""
        return [option for file in self.files for option in file.options]

    def classes(self) -> dict[str, ClassDef]:
        """Classes by their last name."""
        found: dict[str, ClassDef] = {}
        for file in self.files:
            for item in file.classes:
                found.setdefault(item.name.rpartition(".")[2], item)
        return found


def entries_of(program: Program) -> tuple[Entry, ...]:
    """The jobs that ``program`` does; none when it neither trains nor serves."""
    found = list(_own_pipelines(program))
    found = found or [*_known_mains(program), *_trainer_entries(program)]
    engines = list(_engine_entries(program))
    # A script that only generates may build training arguments for its data loader.
    if not found or (engines and not _builds_trainer(program)):
        found = engines
    if _only_evaluates(program):
        return tuple(dataclasses.replace(e, kind=_INFERRED.get(e.kind, e.kind)) for e in found)
    if not any(entry.kind is RunKind.TRAIN for entry in found):
        found = [*_loop_entries(program), *found]
    return tuple(found)


_TRACES = re.compile(
    r"Trainer\b|run_exp|backward|training_step|compute_loss|deepspeed|NativeScaler"
    r"|(?i:optim\w*|engine|scaler|opt|model)\s*\.step\b|"
    + "|".join(sorted(TRAINER_ARGUMENTS | _VLLM_ENGINES | _SGLANG_ENGINES | set(_SWIFT_MAINS)))
)


def may_have_entries(text: str) -> bool:
    """Whether a source, seen alone, can have entries at all: tells without reading it."""
    return _TRACES.search(text) is not None


_INFERRED = {RunKind.TRAIN: RunKind.INFER}
# timm's scalers go backward and step by themselves: ``loss_scaler(loss, optimizer)``.
_SCALERS = ("NativeScaler", "ApexScaler")
_EVALUATES = frozenset({"no_grad", "inference_mode", "evaluate", "predict", "generate"})
_MODEL = re.compile(r"(?i)(?:^|.*\.|.*_)(?:model|net|network|unet|transformer|encoder|decoder|vae)")


def _only_evaluates(program: Program) -> bool:
    """Whether training arguments are only borrowed: nothing trains, and something evaluates.

    A script that hands its work to code out of sight is given the benefit of the doubt.
    """
    evaluates = False
    for call in program.calls():
        evaluates = evaluates or call.method in _EVALUATES
        owner = call.name.rpartition(".")[0]
        if call.method == "train" and not _MODEL.fullmatch(owner):
            return False
        if call.method in _BACKWARD or call.method == "fit" or _TRAINERS.fullmatch(call.method):
            return False
        if call.method in _SWIFT_MAINS or call.method == "run_exp":
            return False
    if any(item.name in _SCALERS for file in program.files for item in file.imports):
        return False
    return evaluates and not any(loop.trains for file in program.files for loop in file.loops)


# --- known main functions ------------------------------------------------------------


def _known_mains(program: Program) -> Iterator[Entry]:
    """The framework's main function that the script calls, once however often it does."""
    found = {entry.subcommand: entry for entry in reversed(list(_mains(program)))}
    yield from sorted(found.values(), key=lambda entry: entry.location)


def _mains(program: Program) -> Iterator[Entry]:
    for call in program.script.calls:
        root = call.name.partition(".")[0]
        if call.method == "run_exp" and root in ("llamafactory", "llmtuner"):
            yield Entry(
                "llamafactory", RunKind.TRAIN, call.location, from_flags=True, subcommand="train"
            )
        elif root == "swift" and call.method in _SWIFT_MAINS:
            yield _swift_entry(program, call)


def _swift_entry(program: Program, main: Call) -> Entry:
    subcommand, kind = _SWIFT_MAINS[main.method]
    for call in program.script.calls:
        if call.name.startswith("swift.") and _SWIFT_ARGUMENTS.fullmatch(call.method):
            return Entry(
                "swift", kind, call.location, call, subcommand=subcommand, is_open=call.is_open
            )
    reads_flags = not main.positional and not main.keywords
    return Entry("swift", kind, main.location, None, reads_flags, (), subcommand, not reads_flags)


def _own_pipelines(program: Program) -> Iterator[Entry]:
    """Training by a class of the project that derives from one of ms-swift's pipelines, which is
    given arguments that the script makes, or reads them as ms-swift does."""
    if not any(
        base.startswith("swift.") and base.rpartition(".")[2] in _SWIFT_PIPELINES
        for item in program.classes().values()
        for base in item.bases
    ):
        return
    for call in program.script.calls:
        train = _SWIFT_TRAINS.get(call.method)
        if train is not None and call.name.startswith("swift."):
            yield Entry(
                "swift",
                RunKind.TRAIN,
                call.location,
                call,
                subcommand=train,
                is_open=call.is_open,
            )
            return
    for call in program.script.calls:
        subcommand, kind = _SWIFT_MAINS.get(call.method, ("", RunKind.OTHER))
        is_ours = not call.name.startswith("swift.") and not call.positional and not call.keywords
        if kind is RunKind.TRAIN and is_ours:
            yield Entry("swift", kind, call.location, None, True, (), subcommand)
            return


# --- the Hugging Face Trainer family ---------------------------------------------------


def _trainer_entries(program: Program) -> Iterator[Entry]:
    classes = program.classes()
    made = [call for call in program.calls() if _is_arguments(call.name, classes)]
    parsers = [call for call in program.calls() if call.method in _ARGUMENT_PARSERS]
    framework = "videox_fun" if _imports(program.script, "videox_fun") else "hf_trainer"
    if any(_parses_arguments(call, classes, program) for call in program.script.calls):
        # What a trainer elsewhere makes when it is given no arguments is not what is used.
        made = [call for call in made if call.location.path == program.script.path]
    found = False
    for call in made:
        found = True
        parents = _lineage(call.method, classes)
        owner = "swift" if call.name.startswith("swift.") else framework
        # A class of the project may set anything while an object of it is made.
        sets = any(m in item.methods for item in parents for m in ("__init__", "__post_init__"))
        is_open = call.is_open or sets or _is_made_of_parsed(program, call, parsers)
        is_open = is_open or _derives_from_unseen(parents, classes)
        yield Entry(owner, RunKind.TRAIN, call.location, call, False, parents, is_open=is_open)
    if found:
        return
    for call in parsers:
        if _parses_arguments(call, classes, program):
            names = _classes_of(call, program)
            parents = tuple(item for name in names for item in _lineage(name, classes))
            of_trainer = [
                item
                for name in names
                if _is_arguments_class(name, classes)
                for item in _lineage(name, classes)
            ]
            is_open = _derives_from_unseen(of_trainer, classes)
            yield Entry(
                framework, RunKind.TRAIN, call.location, None, True, parents, is_open=is_open
            )
            return
    for call in program.calls():
        if _is_trainer(call, classes):
            yield Entry(framework, RunKind.TRAIN, call.location, None, is_open=True)
            return


def _derives_from_unseen(parents: Sequence[ClassDef], classes: Mapping[str, ClassDef]) -> bool:
    """Whether a base out of sight may give the trainer's arguments other defaults."""
    return any(
        base.partition(".")[0] not in TRAINER_ROOTS
        and base.rpartition(".")[2] not in (*classes, *TRAINER_ARGUMENTS, *_PLAIN_BASES)
        for item in parents
        for base in item.bases
    )


_PLAIN_BASES = ("object", "ABC", "Generic", "Protocol")


def _parses_arguments(call: Call, classes: Mapping[str, ClassDef], program: Program) -> bool:
    """Whether a parser of dataclasses reads the trainer's arguments."""
    return call.method in _ARGUMENT_PARSERS and any(
        _is_arguments_class(name, classes) for name in _classes_of(call, program)
    )


def _classes_of(parser: Call, program: Program) -> list[str]:
    """Names of the dataclasses that a parser is given.

    Behind a variable (``dataclass_types``, as TRL's own scripts have it) those of TRL that the
    file imports, and those that it defines itself.
    """
    names = _IDENTIFIER.findall(" ".join(a.text for a in _all_arguments(parser)))
    given = [a.text for a in parser.positional if a.text.isidentifier() and a.text.islower()]
    for file in program.files if given else ():
        if file.path == parser.location.path:
            names += [i.name for i in file.imports if i.module.partition(".")[0] == "trl"]
            names += [item.name for item in file.classes]
    return names


def _is_made_of_parsed(program: Program, call: Call, parsers: Sequence[Call]) -> bool:
    """Whether one of the trainers at choice turns parsed arguments into its own.

    Which trainer runs, and with what arguments, the parser's words say: LLaMA-Factory's main
    function, called from a script of the project, is of this kind.
    """
    own = program.script.path
    return call.location.path != own and any(p.location.path != own for p in parsers)


def _all_arguments(call: Call) -> list[Argument]:
    return [*call.positional, *call.keywords.values()]


def _is_arguments(name: str, classes: Mapping[str, ClassDef]) -> bool:
    root, _, _ = name.partition(".")
    last = name.rpartition(".")[2]
    if last in classes:
        return _is_arguments_class(last, classes)
    return last in TRAINER_ARGUMENTS and (root in TRAINER_ROOTS or root in ("swift", last))


def _is_arguments_class(name: str, classes: Mapping[str, ClassDef]) -> bool:
    if name in TRAINER_ARGUMENTS and name not in classes:
        return True
    return any(
        base.rpartition(".")[2] in TRAINER_ARGUMENTS
        for item in _lineage(name, classes)
        for base in item.bases
    )


def _lineage(name: str, classes: Mapping[str, ClassDef]) -> tuple[ClassDef, ...]:
    """The project's class ``name`` and those it derives from, nearest first."""
    found: list[ClassDef] = []
    waiting = [name]
    while waiting and len(found) < 32:
        item = classes.get(waiting.pop(0))
        if item is None or item in found:
            continue
        found.append(item)
        waiting += [base.rpartition(".")[2] for base in item.bases]
    return tuple(found)


def _is_trainer(call: Call, classes: Mapping[str, ClassDef]) -> bool:
    """Whether ``call`` builds a Trainer of the family, or of a project class derived from one."""
    if not _TRAINERS.fullmatch(call.method):
        return False
    if call.name.partition(".")[0] in TRAINER_ROOTS:
        return True
    return any(
        base.partition(".")[0] in TRAINER_ROOTS and base.endswith("Trainer")
        for item in _lineage(call.method, classes)
        for base in item.bases
    )


def _builds_trainer(program: Program) -> bool:
    return any(
        _TRAINERS.fullmatch(call.method) or call.method in _SWIFT_MAINS or call.method == "run_exp"
        for call in program.calls()
    )


def _imports(file: PythonFile, root: str) -> bool:
    return any(item.module.partition(".")[0] == root for item in file.imports)


# --- loops and engines -----------------------------------------------------------------


def _loop_entries(program: Program) -> Iterator[Entry]:
    """A training loop of one's own, Lightning's ``fit``, or DeepSpeed's engine."""
    framework = "videox_fun" if _imports(program.script, "videox_fun") else "generic"
    for call in program.calls():
        if call.method == "Trainer" and call.name.partition(".")[0] in _LIGHTNING:
            yield Entry(framework, RunKind.TRAIN, call.location, call, is_open=call.is_open)
            return
    made = _configured_trainer(program)
    if made is not None:
        yield Entry(framework, RunKind.TRAIN, made.location, is_open=True, is_configured=True)
        return
    for file in program.files:
        for loop in file.loops:
            if loop.trains and not _OVER_OPTIMIZERS.search(loop.iterable):
                yield Entry(framework, RunKind.TRAIN, loop.location)
                return
    if not any(_uses_torch(file) for file in program.files):
        return
    for item in (item for file in program.files for item in file.imports):
        if item.name in _SCALERS and item.module.startswith("timm."):
            yield Entry(framework, RunKind.TRAIN, item.location)
            return
    for call in program.calls():
        is_step = call.method in _BACKWARD and "." in call.name
        if is_step or call.name == "deepspeed.initialize":
            own, at = program.script.path, call.location
            # What several scripts share names none of them.
            yield Entry(framework, RunKind.TRAIN, at if at.path == own else Location(own, 1))
            return


def _configured_trainer(program: Program) -> Optional[Call]:
    """The start of a trainer that only a configuration file describes."""
    for root, name in (("mmengine", "runner.train"), ("hydra", "trainer.fit")):
        if _imports(program.script, root):
            for call in program.script.calls:
                if call.name.endswith(name):
                    return call
    return None


def _uses_torch(file: PythonFile) -> bool:
    return any(
        item.module.partition(".")[0] in ("torch", "accelerate", "deepspeed", "lightning")
        for item in file.imports
    )


def _engine_entries(program: Program) -> Iterator[Entry]:
    for call in program.calls():
        root = call.name.partition(".")[0]
        if root == "vllm" and call.method in _VLLM_ENGINES:
            yield Entry("vllm", RunKind.INFER, call.location, call, is_open=call.is_open)
        elif root == "sglang" and call.method in _SGLANG_ENGINES:
            yield Entry("sglang", RunKind.INFER, call.location, call, is_open=call.is_open)


# --- values that the command line gives --------------------------------------------------


@dataclass(frozen=True)
class Namespace:
    """What ``args`` holds: a flag's value where one is given, else the option's default.

    ``documents``: configuration files that the script reads, for ``cfg["train"]["lr"]``.
    ``overrides``: new values of the script's globals (see :func:`globals_of`).
    ``rebound``: options that the program goes on to change by what is not followed.
    ``configuration``: what Hydra composes, by dotted name.
    """

    values: Mapping[str, Setting] = field(default_factory=lambda: EMPTY)
    changed: frozenset[str] = frozenset()
    names: frozenset[str] = _NAMESPACES
    documents: tuple[Document, ...] = ()
    overrides: Mapping[str, Setting] = field(default_factory=lambda: EMPTY)
    rebound: frozenset[str] = frozenset()
    configuration: Mapping[str, Setting] = field(default_factory=lambda: EMPTY)

    def resolve(self, value: Any) -> Optional[Setting]:
        """The setting that an unknown value like ``args.lr`` stands for, or None."""
        if not isinstance(value, Unknown) or not _PATH.fullmatch(value.reason):
            return None
        parts = re.findall(r"[\w-]+", value.reason.replace("self.", "self-", 1))
        if not parts:  # an ellipsis
            return None
        parts[0] = parts[0].replace("self-", "self.")
        if len(parts) < 2 or value.reason in self.changed:
            return None
        if len(parts) == 2 and parts[0] in self.names and parts[1] in self.rebound:
            return None
        if len(parts) == 2 and parts[0] in self.names and parts[1] in self.values:
            return self.values[parts[1]]
        if parts[0] in self.names or parts[0] in _CONFIGURATIONS:
            composed = self.configuration.get(".".join(parts[1:]))
            return composed or self._in_documents(parts[1:])
        return None

    def doubted(self, names: Iterable[str]) -> Namespace:
        """The namespace when code that is not followed may have set options anew."""
        changed = {n: doubted(self.values[n]) for n in names if n in self.values}
        return dataclasses.replace(self, values={**self.values, **changed})

    def without_rebound(self, settings: Mapping[str, Setting]) -> dict[str, Setting]:
        """``settings`` of options, those unknown that the program changes."""
        return {
            name: dataclasses.replace(setting, value=Unknown(f"{name} is changed later"))
            if name in self.rebound
            else setting
            for name, setting in settings.items()
        }

    def with_rebound(self, attributes: Iterable[str]) -> Namespace:
        """The namespace of a program that changes ``attributes`` (``args.x``)."""
        parts = (name.partition(".") for name in attributes)
        return dataclasses.replace(
            self, rebound=frozenset(last for owner, _, last in parts if owner in self.names)
        )

    def _in_documents(self, parts: Sequence[str]) -> Optional[Setting]:
        found = [d for d in self.documents if d.get(".".join(parts)) is not None]
        if len(found) != 1:
            return None
        node = found[0].root
        entry = None
        for part in parts:
            entry = node.mapping[part]
            node = entry.node
        if entry is None or node.kind == "mapping":
            return None
        return Setting(
            parts[-1],
            node.plain(),
            entry.location,
            Origin.FILE,
            text=node.text,
            value_location=(node.content or node.location) if node.text else None,
        )


def doubted(setting: Setting) -> Setting:
    """A setting that code which is not followed may have set anew."""
    if not known(setting.value):
        return setting
    reason = "something out of sight may change it"
    return dataclasses.replace(setting, value=Unknown(reason, (setting.value,)))


def namespace_of(
    program: Program, given: Arguments, documents: tuple[Document, ...] = ()
) -> Namespace:
    """The namespace that the program's parsers fill from the ``given`` arguments."""
    values: dict[str, Setting] = {}
    for option in program.options():
        if option.name and option.name not in values:
            default = Unknown("it must be given") if option.required else option.default
            values[option.name] = Setting(option.name, default, option.location, Origin.DEFAULT)
    flags = named_by_options(given.settings, program.options())
    if given.is_open:
        # The unread words may set any option: defaults prove nothing then.
        values = {
            name: dataclasses.replace(setting, value=Unknown("unread arguments of the command"))
            for name, setting in values.items()
        }
    values.update(flags)
    changed = frozenset(s.name for file in program.files for s in file.attributes)
    names = set(_NAMESPACES)
    for call in program.calls():
        if call.method in _PARSERS:
            names.update(name for name in _IDENTIFIER.findall(call.assigned_to))
    return Namespace(values, changed, frozenset(names), documents)


def options_of(
    entry: Entry,
    namespace: Namespace,
    given: Arguments,
    told: Mapping[str, Setting] = EMPTY,
    *,
    is_unread: bool = False,
) -> Namespace:
    """``namespace`` with the fields of the argument classes that an HfArgumentParser fills.

    ``told``: what a file or a dict gives them; ``is_unread``: there may be more of it.
    """
    if not entry.from_flags:
        return namespace
    fields: dict[str, Setting] = {}
    for item in entry.classes:
        for name, setting in item.fields.items():
            hides = given.is_open or is_unread
            value = Unknown("unread arguments of the command") if hides else setting.value
            fields.setdefault(name, dataclasses.replace(setting, value=value))
    own = namespace.values
    defaults = {n: s for n, s in own.items() if s.origin is Origin.DEFAULT and n not in told}
    flags = {n: s for n, s in own.items() if s.origin is not Origin.DEFAULT}
    return dataclasses.replace(namespace, values={**fields, **defaults, **told, **flags})


def reads_dicts(program: Program) -> bool:
    """Whether an HfArgumentParser of ``program`` may take a dict."""
    return any(call.method == "parse_dict" for call in program.calls())


def globals_of(program: Program) -> dict[str, Setting]:
    """Globals of a script that another file, executed in it, may override; empty without one.

    ``exec(open("configurator.py").read())`` takes names and values from the command line.
    What the script assigns above that line are the defaults.
    """
    script = program.script
    at = next((call.location.line for call in script.calls if _reads_code(call)), 0)
    found: dict[str, Setting] = {}
    for name, setting in script.bindings.items():
        value = setting.value
        if isinstance(value, Unknown) or value is None or isinstance(value, (int, float, str)):
            place = setting.location
            if "." not in name and place is not None and place.line < at:
                found[name] = dataclasses.replace(setting, origin=Origin.DEFAULT)
    return found


def _reads_code(call: Call) -> bool:
    if call.name != "open" or call.scope or not call.positional:
        return False
    value = call.positional[0].value
    return isinstance(value, str) and value.endswith(".py")


def assignments_of(file: PythonFile) -> dict[str, Setting]:
    """What a file of plain assignments sets."""
    return {
        name: dataclasses.replace(setting, origin=Origin.FILE)
        for name, setting in file.bindings.items()
        if "." not in name
    }


def added_words(program: Program) -> tuple[Word, ...]:
    """Arguments that a script gives itself: ``sys.argv.append("--bf16")`` and ``extend``."""
    found: list[Word] = []
    for call in program.script.calls:
        if call.name not in ("sys.argv.append", "sys.argv.extend") or not call.positional:
            continue
        argument = call.positional[0]
        value = argument.value if call.method == "extend" else [argument.value]
        if call.conditions or not isinstance(value, (list, tuple)):
            # Raw text that reads as more arguments: nothing is certain then.
            found.append(Word(Unknown("arguments added to sys.argv"), call.location, "$ARGS"))
            continue
        found += [_own_word(item, argument) for item in value]
    return tuple(found)


def _own_word(value: Any, argument: Argument) -> Word:
    if isinstance(value, str):
        return Word(value, argument.location)
    return Word(Unknown(argument.text), argument.location, f'"{argument.text}"')


def reads_files(program: Program) -> bool:
    """Whether an HfArgumentParser of ``program`` may read a file."""
    return any(call.method in _FILE_READERS for call in program.calls())


def reads_only_files(program: Program) -> bool:
    """Whether the HfArgumentParsers of ``program`` take nothing from the command line."""
    methods = {call.method for call in program.calls()} & _HF_READERS
    return bool(methods) and methods <= _FILE_READERS


_FILE_READERS = frozenset({"parse_json_file", "parse_yaml_file"})
_HF_READERS = _FILE_READERS | {"parse_args_into_dataclasses", "parse_args_and_config"}


def files_of_arguments(program: Program) -> frozenset[str]:
    """Options that name the file an HfArgumentParser reads: ``parse_json_file(args.file)``."""
    return frozenset(
        argument.text.rpartition(".")[2]
        for call in program.calls()
        if call.method in _FILE_READERS
        for argument in _all_arguments(call)
    )


def switches_of(program: Program) -> frozenset[str]:
    """Flags (underscored) of the program that take no value."""
    return frozenset(
        option_name(flag)
        for option in program.options()
        for flag in option.flags
        if option.action.startswith(("store_", "count", "append_const"))
        or "Boolean" in option.action
    )


def named_by_options(
    settings: Mapping[str, Setting], options: Iterable[Option]
) -> dict[str, Setting]:
    """Flags under the names their options have in the script."""
    by_flag = {option_name(flag): option for option in options for flag in option.flags}
    found: dict[str, Setting] = {}
    for name, setting in settings.items():
        option = by_flag.get(name)
        if option is None:
            negated = by_flag.get(name[3:]) if name.startswith("no_") else None
            if negated is not None and "Boolean" in negated.action:
                found[negated.name] = dataclasses.replace(
                    renamed(setting, negated.name), value=False
                )
            else:
                found[name] = setting
            continue
        value = setting.value
        if option.action == "store_false" and value is True:
            value = False
        found[option.name] = dataclasses.replace(renamed(setting, option.name), value=value)
    return found


def bind(file: PythonFile, namespace: Namespace) -> PythonFile:
    """``file`` with the values that the command line decides filled in."""
    calls = tuple(_bind_call(call, namespace) for call in file.calls)
    if all(new is old for new, old in zip(calls, file.calls)):
        return file
    return dataclasses.replace(file, calls=calls)


def _bind_call(call: Call, namespace: Namespace) -> Call:
    positional = tuple(_bind_argument(a, namespace) for a in call.positional)
    keywords = {name: _bind_argument(a, namespace) for name, a in call.keywords.items()}
    unchanged = all(new is old for new, old in zip(positional, call.positional)) and all(
        new is call.keywords[name] for name, new in keywords.items()
    )
    if unchanged:
        return call
    return dataclasses.replace(call, positional=positional, keywords=MappingProxyType(keywords))


def _bind_argument(argument: Argument, namespace: Namespace) -> Argument:
    found = namespace.overrides.get(argument.text) or namespace.resolve(argument.value)
    if found is None or (isinstance(found.value, Unknown) and not found.value.candidates):
        return argument
    return dataclasses.replace(argument, value=found.value)


# --- settings ------------------------------------------------------------------------------


def constructor_settings(
    entry: Entry, program: Program, namespace: Namespace
) -> dict[str, Setting]:
    """Settings that the entry's constructor call gives, ``args.x`` followed to its flag."""
    call = entry.constructor
    if call is None:
        return {}
    found: dict[str, Setting] = {}
    if call.positional and entry.framework == "hf_trainer":
        found["output_dir"] = _from_argument("output_dir", call.positional[0], namespace)
    elif call.positional and call.method == "LLM":
        found["model"] = _from_argument("model", call.positional[0], namespace)
    for name, argument in call.keywords.items():
        found[name] = _from_argument(name, argument, namespace)
    if entry.framework == "hf_trainer":
        for name, argument in _trainer_keywords(program):
            found.setdefault(name, _from_argument(name, argument, namespace))
    return found


def _trainer_keywords(program: Program) -> Iterator[tuple[str, Argument]]:
    """Parameters that older trainers of TRL take themselves (``SFTTrainer(packing=True)``)."""
    for call in program.calls():
        if call.method.endswith("Trainer") and call.name.startswith(("trl.", "unsloth.")):
            for name, argument in call.keywords.items():
                if name in _OWN_KEYWORDS:
                    yield name, argument


def _from_argument(name: str, argument: Argument, namespace: Namespace) -> Setting:
    passed = namespace.resolve(argument.value)
    if passed is not None:
        return renamed(passed, name)
    editable = argument.value_location is not None and 0 < len(argument.text) < 200
    return Setting(
        name,
        argument.value,
        argument.location,
        Origin.CONSTRUCTOR,
        text=argument.text if editable else "",
        value_location=argument.value_location if editable else None,
    )


def assigned_later(
    call: Call, program: Program, made: Mapping[str, Setting], namespace: Namespace
) -> dict[str, Setting]:
    """``training_args.bf16 = True`` after ``training_args = TrainingArguments(...)``.

    In a branch, or in another function, it may as well stay what it was ``made``.
    """
    found: dict[str, Setting] = {}
    files = (file for file in program.files if file.path == call.location.path)
    for attribute in (attribute for file in files for attribute in file.attributes):
        owner, _, name = attribute.name.rpartition(".")
        place = attribute.location
        if not owner or owner != call.assigned_to or not place or place < call.location:
            continue
        value = attribute.value
        if attribute.conditions or attribute.scope != call.scope:
            old = found.get(name, made.get(name))
            both = (old.value, value) if old is not None else (value,)
            value = Unknown("set in a branch", tuple(v for v in both if known(v)))
        passed = namespace.resolve(value)
        found[name] = (
            renamed(passed, name)
            if passed is not None
            else Setting(name, value, place, Origin.CONSTRUCTOR)
        )
    return found


def class_settings(entry: Entry) -> dict[str, Setting]:
    """Defaults that the project's own argument classes declare."""
    found: dict[str, Setting] = {}
    for item in entry.classes:
        for name, setting in item.fields.items():
            if name not in found and not (known(setting.value) and setting.value is None):
                found[name] = dataclasses.replace(setting, origin=Origin.DEFAULT)
    return found


def flag_settings(given: Arguments) -> dict[str, Setting]:
    """Flags of an HfArgumentParser: ``--no_x`` of a boolean is ``x`` false."""
    found: dict[str, Setting] = {}
    for name, setting in given.settings.items():
        if name.startswith("no_") and name[3:] in _NEGATABLE:
            found[name[3:]] = dataclasses.replace(renamed(setting, name[3:]), value=False)
        else:
            found[name] = setting
    return found


def is_unreadable(program: Program, constructor: Optional[Call] = None) -> bool:
    """Whether the script takes its configuration in a way that is not followed.

    Fire fills the parameters of a function: what a ``constructor`` there leaves out stays out.
    """
    roots = _roots(program)
    if any(root in roots for root in ("hydra", "jsonargparse", "tyro", "draccus")):
        return True
    if "fire" in roots and (constructor is None or constructor.is_open):
        return True
    return any(
        call.method == "parse_known_args" and not _drops_rest(program.script, call)
        for call in program.script.calls
    )


def _drops_rest(script: PythonFile, parsing: Call) -> bool:
    """Whether what a script's only parser does not know is used nowhere: ``args, _ = …``."""
    own = parsing.receiver == "argparse.ArgumentParser"
    others = [c for c in script.calls if c.method in _PARSERS and c is not parsing]
    return own and not others and parsing.assigned_to.endswith(", _")


def _roots(program: Program) -> set[str]:
    return {item.module.partition(".")[0] for file in program.files for item in file.imports}


# --- modules of the project that a script imports --------------------------------------------

FRAMEWORK_PACKAGES = frozenset(
    """
    trl transformers swift llamafactory llmtuner vllm sglang verl accelerate deepspeed
    flow_factory videox_fun diffusers megatron peft
    """.split()  # noqa: SIM905
)
"""Packages that are the framework itself: their code is not the user's to tune."""


def local_modules(file: PythonFile) -> Iterator[tuple[str, ...]]:
    """For each import, the paths (from some source root) where its module may lie."""
    folder = file.path.rpartition("/")[0]
    for item in file.imports:
        module, name = item.module, item.name
        if module.startswith("."):
            level = len(module) - len(module.lstrip("."))
            base = folder.split("/") if folder else []
            if level - 1 > len(base):
                continue
            base = base[: len(base) - (level - 1)]
            parts = [*base, *[part for part in module.lstrip(".").split(".") if part]]
            yield _candidates(parts, name)
        elif module.partition(".")[0] not in FRAMEWORK_PACKAGES:
            yield _candidates(module.split("."), name)

    for call in file.calls:
        if call.method == "import_module" and call.positional:
            value = call.positional[0].value
            if isinstance(value, str) and not value.startswith("."):
                yield _candidates(value.split("."), "")


def _candidates(parts: Sequence[str], name: str) -> tuple[str, ...]:
    path = "/".join(parts)
    lead = f"{path}/" if path else ""
    found = [f"{lead}{name}.py", f"{lead}{name}/__init__.py"] if name and name != "*" else []
    if path:
        found += [f"{path}.py", f"{path}/__init__.py"]
    return tuple(found)
