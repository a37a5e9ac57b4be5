"""Assembles a run from its pieces: launch, script, configuration files, environment."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Optional

from flake8_gpu_training.facts import (
    Argument,
    Call,
    Command,
    ConfigFile,
    Document,
    Location,
    Node,
    Origin,
    Problem,
    PythonFile,
    ScriptFile,
    Setting,
    Unknown,
    Word,
    known,
)
from flake8_gpu_training.facts import Entry as NodeEntry
from flake8_gpu_training.frameworks.engine_of import engine_of
from flake8_gpu_training.frameworks.lightning import config_of_strategy
from flake8_gpu_training.frameworks.reading import truth
from flake8_gpu_training.frameworks.tables import table_of
from flake8_gpu_training.frameworks.verl import NAMING
from flake8_gpu_training.runs._followed_objects import are_changed, are_lost, changed_settings
from flake8_gpu_training.runs.absent import absent, absent_of_files, named_by
from flake8_gpu_training.runs.branches import taken
from flake8_gpu_training.runs.command_line import combined
from flake8_gpu_training.runs.configs import Recognised, is_accelerate, is_deepspeed, recognise
from flake8_gpu_training.runs.configured import (
    configuration_of,
    constructed,
    deepspeed_of,
    filled_call,
    with_configuration,
)
from flake8_gpu_training.runs.following import Outcome
from flake8_gpu_training.runs.guards import guarded
from flake8_gpu_training.runs.handing import Handing
from flake8_gpu_training.runs.held_sources import held_for
from flake8_gpu_training.runs.hydra import Composition, composed, packaged
from flake8_gpu_training.runs.launchers import (
    Launch,
    of_recipe,
    of_training,
    of_unseen,
    without_values,
)
from flake8_gpu_training.runs.launching import described_by, noted_in, started_by
from flake8_gpu_training.runs.lightning_cli import Sign, wired
from flake8_gpu_training.runs.model import (
    Absent,
    Launcher,
    Model,
    Place,
    PlaceKind,
    RefusedWord,
    Run,
    RunKind,
    cuts,
)
from flake8_gpu_training.runs.passing import Values, with_passed
from flake8_gpu_training.runs.pins import Pins
from flake8_gpu_training.runs.processes import hardware_of
from flake8_gpu_training.runs.python_entry import (
    Entry,
    Namespace,
    Program,
    added_words,
    assigned_later,
    assignments_of,
    bind,
    class_settings,
    constructor_settings,
    doubted,
    entries_of,
    files_of_arguments,
    flag_settings,
    globals_of,
    is_unreadable,
    named_by_options,
    namespace_of,
    options_of,
    reads_dicts,
    reads_files,
    reads_only_files,
    switches_of,
)
from flake8_gpu_training.runs.reach import Reach, Writer, start_of
from flake8_gpu_training.runs.readings import agreed, meant
from flake8_gpu_training.runs.scheduling import Scheduler
from flake8_gpu_training.runs.secrets import hidden, without_secrets
from flake8_gpu_training.runs.settings import (
    Arguments,
    document_settings,
    holds_arguments,
    is_flag,
    option_name,
    parse_arguments,
    rank,
    renamed,
)
from flake8_gpu_training.runs.versions import image_versions, job_versions, latest_in
from flake8_gpu_training.sources._shell_text import CRLF

_KEY_VALUE = frozenset({"llamafactory", "flow_factory", "generic"})
_DEEPSPEED_NAMES = (
    "deepspeed",
    "deepspeed_config",
    "deepspeed_config_file",
    "ds_config",
    "deepspeed_file",
    "train.deepspeed",
    "dist_config.config_file",
)
_CONFIG_NAME = re.compile(r"(?:config|cfg|conf|yaml)(?:_?(?:file|path|yaml))?")
_SETS_WORLD_SIZE = frozenset({"torchrun", "accelerate", "deepspeed"})
"""Launchers that tell each process the number of ranks."""
_PLUGINS = ("external_plugins", "custom_register_path", "custom_dataset_info")
_SERVER_SWITCH = re.compile(
    r"(?:enable|disable|no|trust|skip|use|enforce)_.*|async_scheduling|language_model_only"
)


@dataclass(frozen=True)
class Origins:
    """Where a command was found: its script, job file or notebook, when it has one."""

    script: Optional[ScriptFile] = None
    job: Optional[ConfigFile] = None
    notebook: Optional[PythonFile] = None

    @property
    def files(self) -> tuple[str, ...]:
        """The script that leads to the command, when that stands in another one."""
        return (self.script.path,) if self.script is not None else ()

    @property
    def writer(self) -> Writer:
        """The file that may write configuration files before it launches."""
        return self.script or self.notebook


@dataclass
class _Parts:
    """The pieces of a run while it is put together."""

    settings: Mapping[str, Setting]
    overridden: tuple[Setting, ...]
    files: list[str]
    is_open: bool
    python: tuple[PythonFile, ...] = ()
    entry: Optional[str] = None
    deepspeed: Optional[Document] = None
    config: Optional[Document] = None
    refused: tuple[RefusedWord, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Why configuration files stop their readers, beside what is wrong in the files' text."""

    def refuse(self, problems: tuple[Problem, ...]) -> None:
        """Note that a configuration file which the run is given stops it."""
        self.problems += problems
        self.files += [problem.location.path for problem in problems]


@dataclass(frozen=True)
class _Followed:
    """What following a program as a launch starts it told."""

    program: Program
    launch: Optional[Launch]
    outcome: Optional[Outcome]


class Assembly:
    """Builds runs of one project."""

    def __init__(self, reach: Reach, installed: Callable[..., Pins]) -> None:
        self.reach = reach
        self.installed = installed
        self.handing = Handing(reach)
        self._last: Optional[_Followed] = None

    # --- commands ---

    def of_launch(self, launch: Launch, origins: Origins) -> list[Run]:
        """The runs that a launch starts: none when what it starts neither trains nor serves."""
        runs = self._of_launch(launch, origins)
        whole = meant(launch)
        others = self._of_launch(whole, origins) if whole is not None else []
        if [run.framework for run in others] != [run.framework for run in runs]:
            return runs
        pairs = zip(runs, others)
        return [with_profile(dataclasses.replace(run, meant=other)) for run, other in pairs]

    def _of_launch(self, launch: Launch, origins: Origins) -> list[Run]:
        own = self.reach.project.read(launch.command.location.path)
        if isinstance(own, ScriptFile) and _breaks(launch.command, own):
            launch = without_values(launch)
        if launch.program:
            return [self._program_run(launch, origins)]
        if launch.script is None:
            return []
        path = self.reach.script(launch.script, launch.is_module, launch.command)
        if path is None:
            unseen = of_unseen(launch) or self._of_recipe(launch)
            if unseen is None:
                return []
            return [self._program_run(unseen, origins, launch.script.text)]
        program = self.reach.program(path)
        runs: list[Run] = []
        entries = self.reach.entries(path)
        if program is not None and not entries:
            program = self._with_targets(program, launch)
            entries = entries_of(program)
        for entry in entries:
            if program is None:
                break
            if entry.from_flags and entry.framework in ("llamafactory", "swift"):
                known_launch = dataclasses.replace(
                    launch,
                    program=entry.framework,
                    framework=entry.framework,
                    kind=entry.kind,
                    subcommand=entry.subcommand,
                )
                runs.append(self._program_run(known_launch, origins, path))
            else:
                runs.append(self._script_run(program, entry, launch, origins, not runs))
        if runs:
            return _without_handed(runs)
        # The loop may lie deeper in the framework than modules are followed.
        known_by_flags = of_unseen(launch)
        return [self._program_run(known_by_flags, origins, path)] if known_by_flags else []

    def _of_recipe(self, launch: Launch) -> Optional[Launch]:
        """A launch of a LLaMA-Factory beside the project, told by the recipe that it is given."""
        words = launch.arguments
        document = self.reach.whichever(words[0].value, launch.command) if words else None
        recognised = recognise(document) if document is not None else None
        is_ours = recognised is not None and recognised.framework == "llamafactory"
        return of_recipe(launch) if is_ours else None

    def of_unrecognised(
        self, launch: Launch, origins: Origins, is_asked: bool = False
    ) -> list[Run]:
        """The run of several processes whose program is not recognised: all of it is open.

        A program that is not in the project counts when its launch is what is asked about.
        """
        guessed = of_training(launch, is_asked)
        if guessed is None or launch.program or launch.script is None:
            return []
        path = self.reach.script(launch.script, launch.is_module, launch.command)
        program = self.reach.program(path) if path is not None else None
        if path is None or program is None:
            return [self._program_run(guessed, origins, launch.script.text)] if is_asked else []
        entry = Entry("generic", RunKind.TRAIN, Location(path), is_open=True)
        unfollowed = dataclasses.replace(launch, is_unfollowed=True)
        return [self._script_run(program, entry, unfollowed, origins, True)]

    def _with_targets(self, program: Program, launch: Launch) -> Program:
        """``program`` with the modules of the classes that its Hydra configuration names."""
        given = parse_arguments(launch.arguments, key_value=True)
        environment = launch.command.environment
        made = composed(program, given, self.reach.configuration, self.reach.head, environment)
        targets = [
            setting.value.rpartition(".")[0]
            for name, setting in (made.settings if made is not None else {}).items()
            if name.rpartition(".")[2] == "_target_" and isinstance(setting.value, str)
        ]
        near = program.script.path
        paths = (self.reach.module(name, 0, near) for name in dict.fromkeys(targets) if name)
        return self.reach.extended(program, (path for path in paths if path is not None))

    def _program_run(self, launch: Launch, origins: Origins, entry: Optional[str] = None) -> Run:
        """A run of a known program (``swift sft …``)."""
        command = launch.command
        server = launch.framework in ("vllm", "sglang")
        words = launch.arguments
        model: tuple[Word, ...] = ()
        if server and words and not known(words[0].value) and not is_flag(words[0].text):
            # ``vllm serve $MODEL``: the word in the model's place is the model.
            model = () if holds_arguments(words[0]) else words[:1]
            words = words[len(model) :]
        given = parse_arguments(
            words,
            switches=_server_switches(words, launch.framework) if server else frozenset(),
            key_value=_takes_pairs(launch.framework, words),
        )
        flags = dict(given.settings)
        positional = [*model, *given.positional]
        is_open = given.is_open or launch.is_open
        config, found_all = self._program_config(launch, origins, flags, positional)
        is_open = is_open or not found_all
        if server:
            _name_model(flags, positional)
            _add_meanings(flags)
        layers = [flags]
        environment = dict(command.environment)
        packages = self._of_package(launch, given, origins)
        if packages is not None:
            layers = [{n: s for n, s in flags.items() if n not in NAMING}, packages.settings]
        if config is not None:
            layers.append(self._config_layer(config, launch.framework, environment))
        ranked = rank(layers, given.overridden)
        files = [*origins.files, command.location.path]
        if packages is not None:
            files += [document.path for document in packages.documents]
        if launch.script is not None and entry is None:
            entry = self.reach.script(launch.script, launch.is_module, command)
        parts = _Parts(
            ranked.settings, ranked.overridden, files, is_open, entry=entry, config=config
        )
        parts.python = self._plugins(ranked.settings, command)
        parts.files += [file.path for file in parts.python]
        place = _document_place(config) if config is not None else None
        return self._finish(
            parts,
            framework=launch.framework,
            kind=_kind(launch, ranked.settings, is_open),
            place=place or Place(PlaceKind.FLAGS, command.location, command),
            launch=launch,
            origins=origins,
            environment=environment,
        )

    def _of_package(
        self, launch: Launch, given: Arguments, origins: Origins
    ) -> Optional[Composition]:
        """What a configuration of the project adds to those of verl that it names."""
        if launch.program != "verl":
            return None
        return packaged(
            given,
            self.reach.configuration,
            self.reach.head,
            lambda at: self.reach.named(at, launch.command, origins.writer),
        )

    def _program_config(
        self,
        launch: Launch,
        origins: Origins,
        flags: dict[str, Setting],
        positional: list[Any],
    ) -> tuple[Optional[Document], bool]:
        """The program's configuration file, and whether every file named was found."""
        names: list[Any] = []
        if launch.framework not in ("vllm", "sglang") and positional:
            names.append(positional.pop(0).value)
        if "config" in flags:
            names.append(flags["config"].value)
        for name in names:
            document = self.reach.whichever(name, launch.command, origins.writer)
            if document is None:
                return None, False
            return document, True
        return None, True

    def _config_layer(
        self, config: Document, framework: str, environment: dict[str, Setting]
    ) -> dict[str, Setting]:
        layer = document_settings(config)
        for section in ("ENV", "env"):
            entry = config.root.mapping.get(section)
            if entry is None or entry.node.kind != "mapping":
                continue
            for name, inner in entry.node.mapping.items():
                environment.setdefault(
                    name,
                    Setting(name, _as_text(inner.node), inner.location, Origin.ENVIRONMENT),
                )
            layer = {
                name: setting
                for name, setting in layer.items()
                if name.partition(".")[0] != section
            }
        if framework == "flow_factory":
            layer = {n: s for n, s in layer.items() if not isinstance(s.value, dict)}
        if framework in ("vllm", "sglang"):  # their files are flags without the dashes in front
            layer = {n.replace("-", "_"): _undashed(s) for n, s in layer.items()}
        return layer

    def _plugins(
        self, settings: Mapping[str, Setting], command: Optional[Command]
    ) -> tuple[PythonFile, ...]:
        """The user's Python files that a framework is told to load."""
        found: list[PythonFile] = []
        for name in _PLUGINS:
            setting = settings.get(name)
            if setting is None or not setting.known:
                continue
            values = setting.value if isinstance(setting.value, list) else [setting.value]
            for value in values:
                if not isinstance(value, str) or not value.endswith(".py"):
                    continue
                near = setting.location.path if setting.location is not None else ""
                path = self.reach.file(value, command, near)
                facts = self.reach.project.read(path) if path is not None else None
                if isinstance(facts, PythonFile):
                    found.append(facts)
        return tuple(found)

    # --- configuration files that no command names ---

    def of_document(
        self,
        document: Document,
        recognised: Recognised,
        program: Optional[Program] = None,
        entry: Optional[Entry] = None,
    ) -> Run:
        """The run that a configuration file describes; ``entry`` of ``program`` takes it."""
        environment: dict[str, Setting] = {}
        layer = self._config_layer(document, recognised.framework, environment)
        parts = _Parts(layer, (), [], False, config=document)
        if program is not None and entry is not None:
            parts.settings = rank([layer, class_settings(entry)]).settings
            parts.python = program.files
            parts.entry = program.script.path
            parts.files += [document.path, *(file.path for file in program.files)]
        return self._finish(
            parts,
            framework=recognised.framework,
            kind=recognised.kind,
            place=_document_place(document),
            program=recognised.program,
            environment=environment,
            location=start_of(document),
        )

    # --- scripts ---

    def of_program(self, program: Program, entry: Entry, single_file: bool = False) -> Run:
        """The run of a script that no command starts."""
        return self._script_run(program, entry, None, Origins(), True, single_file)

    def _script_run(
        self,
        program: Program,
        entry: Entry,
        launch: Optional[Launch],
        origins: Origins,
        first: bool,
        single_file: bool = False,
    ) -> Run:
        command = launch.command if launch is not None else None
        wiring = wired(
            program, launch, lambda name: self.reach.named(name, command, origins.writer)
        )
        sign: Sign = self.reach.signatures
        if wiring is not None:
            program, sign = wiring.program, wiring.sign(sign)
        given = Arguments()
        words = (*launch.arguments, *added_words(program)) if launch is not None else ()
        if launch is not None:
            given = parse_arguments(
                words,
                switches=switches_of(program),
                key_value=is_unreadable(program),
            )
            if launch.is_open:
                given = dataclasses.replace(given, is_open=True)
        documents = self._documents(program, given, command, origins.writer)
        configs = [d for d in documents if not is_deepspeed(d) and not is_accelerate(d)]
        namespace = namespace_of(program, given, tuple(configs))
        namespace = namespace.with_rebound(self.reach.rebound(program))
        composition = composed(
            program,
            given,
            self.reach.configuration,
            self.reach.head,
            command.environment if command is not None else {},
        )
        if composition is not None:
            namespace = dataclasses.replace(namespace, configuration=composition.settings)
        defaults = globals_of(program)
        if defaults:
            overrides = self._overrides(program, given, command, defaults)
            namespace = dataclasses.replace(
                namespace, values={**defaults, **namespace.values, **overrides}, overrides=overrides
            )
        outcome = self._follow(program, words, given, namespace, composition, launch, origins)
        if outcome is not None:
            program = self.reach.extended(program, outcome.modules)
        if outcome is not None and outcome.parsed:
            given, namespace = _as_parsed(outcome, program, given, namespace, defaults)
            documents = self._documents(program, given, command, origins.writer)
            configs = [d for d in documents if not is_deepspeed(d) and not is_accelerate(d)]
            namespace = dataclasses.replace(namespace, documents=tuple(configs))
        if outcome is not None and outcome.lost:
            lost = _lost(outcome)
            namespace = namespace.doubted(lost)
            kept = {n: doubted(s) if n in lost else s for n, s in given.settings.items()}
            given = dataclasses.replace(given, settings=kept)
        environment = dict(command.environment) if command is not None else {}
        parts = self._script_parts(
            program, entry, given, namespace, configs, command, origins, environment, outcome
        )
        if outcome is not None:
            entry = _configured(entry, outcome)
            parts.refused = tuple(outcome.refused) if launch is not None else ()
            parts.deepspeed = deepspeed_of(program.files, outcome)
        if parts.deepspeed is None:
            parts.deepspeed = next((d for d in documents if is_deepspeed(d)), None)
        parts.files += [document.path for document in configs]
        for value in self._configurations(program, given):
            parts.refuse(self.reach.refused(value, command, program.script.path))
        if wiring is not None:
            parts.files += [document.path for document in wiring.documents]
        files = program.files
        if outcome is not None:
            files = with_configuration(files, outcome)
        bound = [bind(file, namespace) for file in files]
        told = _told(program, entry, namespace, given, parts, outcome)
        values = Values(bound, sign, told.resolve)
        followed = [taken(file, partial(values.of, file.path)) for file in bound]
        followed = guarded(followed, sign, values.of)
        parts.python = with_passed(followed, sign, namespace.resolve)
        if composition is not None:
            parts.files += [document.path for document in composition.documents]
        if outcome is not None:
            parts.files += [document.path for document in outcome.documents]
        is_read = composition is not None and composition.is_whole
        is_unread = is_unreadable(program, _arguments_of_trainer(entry)) and not is_read
        if entry.framework != "generic" and is_unread:
            parts.is_open = True
        location = entry.location if command is None or not first else command.location
        asked = parts.settings.get("do_train") if entry.from_flags else None
        evaluates = asked is not None and asked.value is False and entry.kind is RunKind.TRAIN
        trains = wiring is None or wiring.trains
        return self._finish(
            parts,
            framework=entry.framework,
            kind=RunKind.INFER if evaluates or not trains else entry.kind,
            place=_script_place(entry, command, parts.config, not reads_only_files(program)),
            launch=launch,
            origins=origins,
            environment=environment,
            location=location,
            constructor=entry.constructor,
            single_file=single_file,
        )

    def _follow(
        self,
        program: Program,
        words: Sequence[Word],
        given: Arguments,
        namespace: Namespace,
        composition: Optional[Composition],
        launch: Optional[Launch],
        origins: Origins,
    ) -> Optional[Outcome]:
        """What following the program tells, once for all jobs that one launch of it does."""
        last = self._last
        if last is not None and last.program is program and last.launch is launch:
            return last.outcome
        outcome = configuration_of(
            program,
            words,
            launch is not None and given.is_open,
            namespace,
            composition.settings if composition is not None else {},
            launch.command if launch is not None else None,
            origins.writer,
            self.reach,
            self._expected_launcher(launch, origins) if launch is not None else None,
            launch.options if launch is not None else {},
        )
        self._last = _Followed(program, launch, outcome)
        return outcome

    def _script_parts(
        self,
        program: Program,
        entry: Entry,
        given: Arguments,
        namespace: Namespace,
        configs: Sequence[Document],
        command: Optional[Command],
        origins: Origins,
        environment: dict[str, Setting],
        outcome: Optional[Outcome] = None,
    ) -> _Parts:
        files = [*origins.files, command.location.path] if command is not None else []
        files += [file.path for file in program.files]
        is_open = entry.is_open if outcome is None else _configured(entry, outcome).is_open
        config: Optional[Document] = None
        layers: list[Mapping[str, Setting]] = []
        if entry.constructor is not None:
            made = constructor_settings(entry, program, namespace)
            if outcome is not None:
                made = constructed(made, entry.constructor, outcome)
            layers.append(made)
        changes = changed_settings(entry.constructor, outcome) if outcome is not None else None
        is_open = is_open or (outcome is not None and are_lost(entry.constructor, outcome))
        if changes is None and entry.constructor is not None:
            changes = assigned_later(entry.constructor, program, layers[0], namespace)
        if layers:
            layers[0] = {**layers[0], **(changes or {})}
        else:
            layers.append(changes or {})
        is_open = is_open or self._lacks_file(program, given, command, origins.writer)
        if entry.from_flags and outcome is not None and are_changed(entry.constructor, outcome):
            layers.insert(0, {**layers[0], **_doubted(flag_settings(given), layers[0])})
        if entry.from_flags:
            layers.append(outcome.told if outcome is not None else {})
            layers.append({} if _is_of_dict(outcome) else flag_settings(given))
            layers += [self._config_layer(d, entry.framework, environment) for d in configs]
            config = configs[0] if configs else None
            # Without a command the flags are out of sight, as is a file nobody can name.
            named = bool(given.positional) or reads_only_files(program)
            told = outcome is not None and bool(outcome.readers) and outcome.is_told_whole
            unread = config is None and named and reads_files(program) and not told
            unread = unread or _is_untold(program, outcome)
            unstarted = command is None and not (told and reads_only_files(program))
            is_open = is_open or given.is_open or unstarted or unread
        elif entry.framework in ("generic", "videox_fun") and entry.constructor is None:
            if outcome is not None:
                layers.append(_settings_read(outcome, entry.framework))
            layers.append(namespace.configuration)
            flags = named_by_options(given.settings, program.options())
            layers.append(namespace.without_rebound(flags))
            if entry.framework == "generic":
                layers += [document_settings(document) for document in configs]
            layers.append(namespace.overrides)
            layers.append(
                {
                    name: setting
                    for name, setting in namespace.without_rebound(namespace.values).items()
                    if setting.origin is Origin.DEFAULT and _is_given(setting.value)
                }
            )
            is_open = is_open or given.is_open
        layers.append(class_settings(entry))
        ranked = rank(layers, given.overridden if entry.from_flags else ())
        return _Parts(
            ranked.settings,
            ranked.overridden,
            files,
            is_open,
            entry=program.script.path,
            config=config,
        )

    def _lacks_file(
        self, program: Program, given: Arguments, command: Optional[Command], writer: Writer
    ) -> bool:
        """Whether a flag names a configuration file that is not in the project."""
        flags = named_by_options(given.settings, program.options())
        values = [flag.value for name, flag in flags.items() if _CONFIG_NAME.fullmatch(name)]
        named = [value for value in values if _may_be_file(value)]
        near = program.script.path
        return any(self.reach.named(value, command, writer, near) is None for value in named)

    def _overrides(
        self,
        program: Program,
        given: Arguments,
        command: Optional[Command],
        defaults: Mapping[str, Setting],
    ) -> dict[str, Setting]:
        """What the command gives the script's globals: files of assignments, then flags."""
        found: dict[str, Setting] = {}
        for word in given.positional:
            if not isinstance(word.value, str) or not word.value.endswith(".py"):
                continue
            path = self.reach.file(word.value, command, program.script.path)
            facts = self.reach.project.read(path) if path is not None else None
            if isinstance(facts, PythonFile):
                found.update(assignments_of(facts))
        found.update(given.settings)
        return {
            name: _started_from(defaults[name], setting)
            for name, setting in found.items()
            if name in defaults
        }

    def _documents(
        self,
        program: Program,
        given: Arguments,
        command: Optional[Command],
        writer: Writer,
    ) -> list[Document]:
        """Configuration files that flags or option defaults name."""
        found: list[Document] = []
        for value in self._configurations(program, given):
            document = self.reach.whichever(value, command, writer, program.script.path)
            if document is not None and document not in found:
                found.append(document)
        return found

    def _configurations(self, program: Program, given: Arguments) -> list[Any]:
        """What may name a configuration: words of the command, and defaults of options."""
        flags = named_by_options(given.settings, program.options())
        named: dict[str, Any] = {
            option.name: option.default
            for option in program.options()
            if isinstance(option.default, str)
        }
        named.update({name: setting.value for name, setting in flags.items()})
        read = files_of_arguments(program)
        return [
            *(word.value for word in given.positional),
            *(
                value
                for name, value in named.items()
                if _CONFIG_NAME.fullmatch(name) or name in _DEEPSPEED_NAMES or name in read
            ),
        ]

    # --- finishing ---

    def _finish(
        self,
        parts: _Parts,
        *,
        framework: str,
        kind: RunKind,
        place: Place,
        environment: dict[str, Setting],
        launch: Optional[Launch] = None,
        origins: Origins = Origins(),
        program: str = "",
        location: Optional[Location] = None,
        constructor: Optional[Call] = None,
        single_file: bool = False,
    ) -> Run:
        command = launch.command if launch is not None else None
        for file in parts.python:
            for setting in file.environment:
                environment.setdefault(setting.name, setting)
        self._add_fsdp(parts, command, origins)
        accelerate = self._accelerate(launch, parts, origins)
        deepspeed = parts.deepspeed or self._deepspeed(
            parts, launch, origins, accelerate, constructor
        )
        launcher, scheduler = self._launcher(
            launch, program or framework, parts, environment, origins, accelerate
        )
        if single_file:
            launcher = Launcher()
        for document in (parts.config, deepspeed, accelerate):
            if document is not None:
                parts.files.append(document.path)
        for setting in _named(launch, parts):
            near = setting.location.path if setting.location is not None else ""
            parts.refuse(self.reach.refused(setting.value, command, near, is_mapping=True))
        at = location or (command.location if command is not None else place.location)
        problems = self._problems(parts, command)
        started = parts.entry or place.location.path
        installed = self.installed(*dict.fromkeys((started, at.path)))
        image = {**job_versions(origins.job, command), **image_versions(command)}
        latest = latest_in(origins.job, command)
        pinned = {k: v for k, v in installed.versions.items() if k not in latest}
        held = held_for(installed.held, (started, at.path, *parts.files))
        run = Run(
            id=str(at),
            kind=kind,
            framework=framework,
            location=at,
            place=place,
            launcher=launcher,
            command=command,
            entry=parts.entry,
            files=tuple(dict.fromkeys(parts.files)),
            settings=without_secrets(parts.settings),
            overridden=tuple(hidden(setting) for setting in parts.overridden),
            environment=without_secrets(environment),
            python=parts.python,
            deepspeed=deepspeed,
            accelerate=accelerate,
            hardware=hardware_of(
                launcher,
                environment,
                scheduler,
                noted_in(self.reach, origins.script, command, origins.job),
                origins.job,
                next((f for f in parts.python if f.path in (started, at.path)), None),
            ),
            model=self._model(parts, command, framework),
            versions={**pinned, **image},
            limits={k: v for k, v in installed.limits.items() if k not in latest},
            perhaps={k: v for k, v in installed.perhaps.items() if k not in {*image, *latest}},
            unreleased=installed.unreleased - latest,
            trunk=installed.trunk - latest,
            held={one.name: one.version for one in held if one.version},
            declared={name: own for one in held for name, own in one.declares.items()},
            problems=problems,
            refused=parts.refused,
            unexported=self._unexported(command),
            absent=() if single_file else self._absent(command, _named(launch, parts)),
            is_open=parts.is_open or any(cuts(problem, command) for problem in problems),
            handed_over=None if single_file else self.handing.of(parts.python),
            single_file=single_file,
        )
        return with_profile(run)

    def _absent(self, command: Optional[Command], named: list[Setting]) -> tuple[Absent, ...]:
        of_files = absent_of_files(self.reach.project, named)
        return (*absent(self.reach, command, named), *of_files)

    def _unexported(self, command: Optional[Command]) -> tuple[Setting, ...]:
        """What the command's script assigns before it, and the command does not get."""
        script = self.reach.project.read(command.location.path) if command is not None else None
        if command is None or not isinstance(script, ScriptFile):
            return ()
        return tuple(
            setting
            for setting in script.unexported
            if setting.name not in command.environment
            and setting.location is not None
            and setting.location < command.location
        )

    def _add_fsdp(self, parts: _Parts, command: Optional[Command], origins: Origins) -> None:
        """Leaves of the file that ``fsdp_config`` names, as ``fsdp_config.…`` settings.

        ms-swift names its file by ``fsdp``.
        """
        for name in ("fsdp_config", "fsdp"):
            named = parts.settings.get(name)
            if named is None or not _names_file(named, name):
                continue
            near = named.location.path if named.location is not None else ""
            document = self.reach.named(named.value, command, origins.writer, near)
            if document is None:
                continue
            leaves = {
                f"{name}.{leaf}": renamed(setting, f"{name}.{leaf}")
                for leaf, setting in document_settings(document).items()
            }
            parts.settings = {**leaves, **parts.settings}
            parts.files.append(document.path)

    def _problems(self, parts: _Parts, command: Optional[Command]) -> tuple[Problem, ...]:
        """What could not be read in the files of a run, and in those that its command names."""
        found = [problem for file in parts.python for problem in file.problems]
        programs = {file.path for file in parts.python}
        for path in dict.fromkeys(parts.files):
            if path not in programs and path in self.reach.project.files:
                facts = self.reach.project.read(path)
                found += facts.problems if facts is not None else ()
        for word in command.words if command is not None else ():
            if known(word.value) and word.text.endswith((".yaml", ".yml", ".json")):
                named = self.reach.file(word.text, command)
                told = self.reach.project.read(named) if named is not None else None
                if isinstance(told, ConfigFile) and not told.documents and named not in parts.files:
                    found += told.problems
        return tuple(dict.fromkeys((*found, *parts.problems)))

    def _launcher(
        self,
        launch: Optional[Launch],
        program: str,
        parts: _Parts,
        environment: Mapping[str, Setting],
        origins: Origins,
        accelerate: Optional[Document],
    ) -> tuple[Launcher, Scheduler]:
        if launch is None:
            has_file = parts.config is not None
            seen = described_by(program, parts.settings, has_file, parts.python)
            return seen, Scheduler(None, None)
        return started_by(
            self.reach,
            launch,
            origins.script,
            parts.settings,
            environment,
            accelerate,
            parts.python,
            origins.job,
        )

    def _expected_launcher(self, launch: Launch, origins: Origins) -> Optional[Launcher]:
        """The launcher as far as it can be told before the program's settings are known."""
        parts = _Parts({}, (), [], False)
        accelerate = self._accelerate(launch, parts, origins)
        environment = launch.command.environment
        made, _ = self._launcher(launch, launch.framework, parts, environment, origins, accelerate)
        return made if made.name in _SETS_WORLD_SIZE else None

    def _accelerate(
        self, launch: Optional[Launch], parts: _Parts, origins: Origins
    ) -> Optional[Document]:
        named: Optional[Setting] = None
        if launch is not None:
            named = launch.options.get("config_file")
            if launch.program == "trl":
                named = parts.settings.get("accelerate_config")
        if named is None and parts.config is not None:
            named = parts.settings.get("config_file")
        if named is None:
            return None
        command = launch.command if launch is not None else None
        near = named.location.path if named.location is not None else ""
        document = self.reach.whichever(named.value, command, origins.writer, near)
        return document if document is not None and is_accelerate(document) else None

    def _deepspeed(
        self,
        parts: _Parts,
        launch: Optional[Launch],
        origins: Origins,
        accelerate: Optional[Document],
        constructor: Optional[Call],
    ) -> Optional[Document]:
        command = launch.command if launch is not None else None
        named = [parts.settings[n] for n in _DEEPSPEED_NAMES if n in parts.settings]
        if launch is not None and "deepspeed_config_file" in launch.options:
            named.append(launch.options["deepspeed_config_file"])
        if accelerate is not None:
            inner = document_settings(accelerate).get("deepspeed_config.deepspeed_config_file")
            named += [inner] if inner is not None else []
        for setting in named:
            document = self._deepspeed_document(setting, command, origins, parts)
            if document is not None:
                return document
        for argument in _engine_arguments(parts.python, constructor):
            if isinstance(argument.value, dict):
                return _dict_document(
                    parts.python, argument.value, argument.text, argument.location
                )
            if isinstance(argument.value, str):
                near = argument.location.path
                return self.reach.named(argument.value, command, origins.writer, near)
        return None

    def _deepspeed_document(
        self,
        setting: Setting,
        command: Optional[Command],
        origins: Origins,
        parts: _Parts,
    ) -> Optional[Document]:
        near = setting.location.path if setting.location is not None else ""
        if isinstance(setting.value, str):
            if setting.value.lstrip().startswith("{"):
                return None
            document = self.reach.named(setting.value, command, origins.writer, near)
            return document if document is not None and is_deepspeed(document) else None
        if not isinstance(setting.value, dict):
            document = self.reach.named(setting.value, command, origins.writer, near)
            return document if document is not None and is_deepspeed(document) else None
        if parts.config is not None:
            entry = parts.config.root.mapping.get(setting.name)
            if entry is not None and entry.node.kind == "mapping":
                inner = Document(parts.config.path, entry.node, parts.config.language)
                return inner if is_deepspeed(inner) else None
        if setting.origin is Origin.FLAG:
            return _flag_document(setting)
        return _dict_document(parts.python, setting.value, setting.text, setting.location)

    def _model(self, parts: _Parts, command: Optional[Command], framework: str) -> Model:
        from flake8_gpu_training.frameworks.llamafactory_templates import formatted
        from flake8_gpu_training.frameworks.swift_types import typed
        from flake8_gpu_training.runs.modelling import model_of_run

        model = model_of_run(parts.settings, parts.python, parts.is_open, self.reach, command)
        if framework == "llamafactory":
            return formatted(model, parts.settings)
        return typed(model, parts.settings) if framework == "swift" else model


def _without_handed(runs: list[Run]) -> list[Run]:
    """``runs`` of one launch without the engine that its trainer builds from settings of its own:
    what it is given is judged there."""
    hosted = {
        engine.name
        for run in runs
        if run.kind is RunKind.TRAIN
        and (engine := engine_of(run)) is not None
        and engine.host is not None
    }
    return [run for run in runs if run.framework not in hosted]


def _engine_arguments(
    files: Sequence[PythonFile], constructor: Optional[Call]
) -> Iterator[Argument]:
    """Configurations given to ``deepspeed.initialize``, or by Lightning's strategy to it."""
    if constructor is not None:
        given = config_of_strategy(constructor, [call for file in files for call in file.calls])
        yield from (given,) if given is not None else ()
        return
    for call in (call for file in files for call in file.calls_to("deepspeed.initialize")):
        for name in ("config", "config_params"):
            if name in call.keywords:
                yield call.keywords[name]


def with_profile(run: Run) -> Run:
    """``run`` with its profile, in the vocabulary of PRACTICES."""
    from flake8_gpu_training.frameworks.abbreviations import completed
    from flake8_gpu_training.frameworks.registry import framework_of

    run = completed(run)
    framework = framework_of(run.framework)
    if framework.loaded is not None:
        run = dataclasses.replace(run, model=framework.loaded(run.model))
    profile = {name: _single(name, one) for name, one in framework.profile(run).items()}
    run = dataclasses.replace(run, profile=profile)
    return dataclasses.replace(run, profile={**profile, **agreed(run)}) if run.meant else run


_OF_SEVERAL = frozenset({"dataset", "report_to", "device_map"})
"""Practices whose value may be a list or a mapping."""


def _single(name: str, setting: Setting) -> Setting:
    """``setting``, not known where several values stand in place of one."""
    if name in _OF_SEVERAL or not isinstance(setting.value, (list, dict, set)):
        return setting
    return dataclasses.replace(setting, value=Unknown("several values in place of one"))


def _as_parsed(
    outcome: Outcome,
    program: Program,
    given: Arguments,
    namespace: Namespace,
    defaults: Mapping[str, Setting],
) -> tuple[Arguments, Namespace]:
    """What the program's own parsers make of its command line."""

    def loose(words: Sequence[Word]) -> Arguments:
        switches = switches_of(program)
        return parse_arguments(words, switches=switches, key_value=is_unreadable(program))

    made = combined(outcome.parsed, loose)
    is_open = made.is_open or given.is_open
    values = {**defaults, **made.values, **namespace.overrides}
    return (
        Arguments(made.given, made.positional, made.overridden, is_open),
        dataclasses.replace(namespace, values=values),
    )


def _is_untold(program: Program, outcome: Optional[Outcome]) -> bool:
    """Whether a file or dict that fills the argument classes was not read, or not wholly."""
    if outcome is None or not outcome.readers:
        return reads_dicts(program)
    return not outcome.is_told_whole


def _settings_read(outcome: Outcome, framework: str) -> Mapping[str, Setting]:
    """What the files that a program reads say of its own settings.

    DeepSpeed's file has a train_batch_size as VideoX-Fun's scripts have, which is another one.
    """
    if framework != "videox_fun":
        return outcome.settings
    others = {document.path for document in outcome.documents if is_deepspeed(document)}
    return {
        name: setting
        for name, setting in outcome.settings.items()
        if setting.location is None or setting.location.path not in others
    }


def _is_of_dict(outcome: Optional[Outcome]) -> bool:
    """Whether a dict alone fills the argument classes: flags of their names are not theirs."""
    return outcome is not None and outcome.readers == {"parse_dict"}


def _told(
    program: Program,
    entry: Entry,
    namespace: Namespace,
    given: Arguments,
    parts: _Parts,
    outcome: Optional[Outcome],
) -> Namespace:
    """The namespace with what the argument classes of an HfArgumentParser are filled with."""
    found = outcome.told if outcome is not None else {}
    if _is_of_dict(outcome):
        own = namespace.values.items()
        kept = {n: s for n, s in own if n not in found}
        namespace = dataclasses.replace(namespace, values=kept)
    is_unread = _is_untold(program, outcome) or (parts.is_open and reads_files(program))
    return options_of(entry, namespace, given, found, is_unread=is_unread)


def _configured(entry: Entry, outcome: Outcome) -> Entry:
    """``entry`` with its constructor's arguments filled in."""
    if entry.constructor is None:
        is_read = entry.is_configured and bool(outcome.targets or outcome.modules)
        return dataclasses.replace(entry, is_open=entry.is_open and not is_read)
    filled = filled_call(entry.constructor, outcome)
    is_open = entry.is_open and (filled.is_open or not entry.constructor.is_open)
    return dataclasses.replace(entry, constructor=filled, is_open=is_open)


def _doubted(flags: Mapping[str, Setting], changed: Mapping[str, Setting]) -> dict[str, Setting]:
    """``flags`` that code which is not followed may have set anew, unless it is seen to what."""
    return {
        name: doubted(setting)
        for name, setting in flags.items()
        if setting.known and name not in changed
    }


def _lost(outcome: Outcome) -> frozenset[str]:
    """Options that the program may have changed; where its configuration lies stays known."""
    return frozenset(name for name in outcome.lost if not _CONFIG_NAME.fullmatch(name))


def _breaks(command: Command, script: ScriptFile) -> bool:
    """Whether bash ends a command at its first line: a carriage return follows the backslash."""
    if command.end is None or command.end.path != script.path:
        return False
    if command.end.line == command.location.line:
        return False
    return any(problem.message == CRLF for problem in script.problems)


def _named(launch: Optional[Launch], parts: _Parts) -> list[Setting]:
    """The settings that name configuration files."""
    fsdp = parts.settings.get("fsdp")
    # From 5.0 on Transformers reads the file only where FSDP is on.
    is_on = fsdp is not None and (not fsdp.known or bool(fsdp.value))
    names = (*_DEEPSPEED_NAMES, "fsdp_config") if is_on else _DEEPSPEED_NAMES
    own = [parts.settings[name] for name in names if name in parts.settings]
    told = {setting.location for setting in own}
    taken = {"script"} | {setting.name for setting in own}
    return [
        *(s for s in named_by(launch) if s.name not in taken and s.location not in told),
        *own,
    ]


def _names_file(setting: Setting, name: str) -> bool:
    """Whether a setting of FSDP names a file: of ``fsdp`` only one that ends like one does."""
    return name != "fsdp" or str(setting.value).endswith((".json", ".yaml", ".yml"))


def _arguments_of_trainer(entry: Entry) -> Optional[Call]:
    """The call that builds a Trainer's arguments, where the program does so itself."""
    return entry.constructor if entry.framework == "hf_trainer" else None


def _started_from(default: Setting, given: Setting) -> Setting:
    """``given`` for a global; one that the script goes on to change is only where it starts."""
    if default.known or not given.known:
        return given
    value = Unknown(f"{given.name} is changed later", (given.value,))
    return dataclasses.replace(given, value=value)


def _may_be_file(value: Any) -> bool:
    """Whether a flag's value is the name of a configuration file, or may be one."""
    if isinstance(value, str):
        return value.endswith((".yaml", ".yml", ".json", ".toml"))
    return isinstance(value, Unknown)


def _is_given(value: Any) -> bool:
    if isinstance(value, Unknown):
        return bool(value.candidates)
    return value is not None


def _as_text(node: Node) -> Any:
    """A value of an ``env`` section as the environment holds it."""
    value = node.plain()
    return value if isinstance(value, Unknown) else str(value)


def _document_place(document: Document) -> Place:
    kind = PlaceKind.JSON if document.language == "json" else PlaceKind.YAML
    return Place(kind, start_of(document), document=document)


def _script_place(
    entry: Entry, command: Optional[Command], config: Optional[Document], takes_flags: bool
) -> Place:
    if entry.constructor is not None:
        return Place(PlaceKind.PYTHON, entry.constructor.location, call=entry.constructor)
    if config is not None:
        return _document_place(config)
    if command is not None and (
        (entry.from_flags and takes_flags)
        or entry.framework == "videox_fun"
        or _is_megatron_lm(command)
    ):
        return Place(PlaceKind.FLAGS, command.location, command)
    return Place(PlaceKind.PYTHON, entry.location)


def _is_megatron_lm(command: Command) -> bool:
    from flake8_gpu_training.frameworks.megatron import is_known_by

    words = (word.text for word in command.words)
    return is_known_by({option_name(word) for word in words if word.startswith("--")})


def _dict_document(
    files: Iterable[PythonFile], value: Mapping[str, Any], text: str, place: Optional[Location]
) -> Optional[Document]:
    """A dict that was passed: the literal with this content, or one with later changes."""
    literals = [document for file in files for document in file.dicts]
    same = [d for d in literals if d.name and d.name == text and d.root.plain() == value]
    same += [d for d in literals if d.root.plain() == value]
    if same or place is None:
        return same[0] if same else None
    named = next((d.root for d in literals if d.name and d.name == text), None)
    return Document(place.path, _node(value, place, named), "python")


def _node(value: Any, place: Location, literal: Optional[Node] = None) -> Node:
    """A value as a node: the literal's where it is unchanged, else at ``place``."""
    if literal is not None and literal.plain() == value:
        return literal
    if isinstance(value, dict):
        old = literal.mapping if literal is not None else {}
        entries: dict[str, NodeEntry] = {}
        for key, item in value.items():
            before = old.get(str(key))
            made = _node(item, place, before.node if before is not None else None)
            entries[str(key)] = NodeEntry(
                str(key), before.location if before is not None else place, made
            )
        return Node(None, place, entries, kind="mapping")
    if isinstance(value, (list, tuple)):
        items = tuple(_node(item, place) for item in value)
        return Node(None, place, items=items, kind="sequence")
    return Node(value, place)


def _flag_document(setting: Setting) -> Optional[Document]:
    """A document made of JSON that stands in a command: every place in it is the flag's."""
    from flake8_gpu_training.sources.json_source import read_json
    from flake8_gpu_training.sources.relocate import relocate

    place = setting.location
    if place is None or setting.origin is not Origin.FLAG:
        return None
    made = read_json(json.dumps(setting.value), place.path)
    return relocate(made.documents[0], lambda _: place) if made.documents else None


def _server_switches(words: Sequence[Any], framework: str) -> frozenset[str]:
    """Engine flags that read as switches: ``--enable-x MODEL`` takes no value.

    No model is called ``true``: that is a value, at which the server stops.
    """
    following = (*words[1:], None)
    names = (
        word.text.lstrip("-").partition("=")[0].replace("-", "_")
        for word, after in zip(words, following)
        if word.text.startswith("--")
        and (after is None or after.text.lower() not in ("true", "false"))
    )
    return frozenset(name for name in names if _is_switch(name, framework))


def _is_switch(name: str, framework: str) -> bool:
    """Whether a server's flag takes no value: as its releases have it, else as it reads."""
    table = table_of(framework)
    spans = table.spans("serve", name) if table is not None else ()
    if spans:
        return bool(spans[-1][2].get("type") == "bool")
    return _SERVER_SWITCH.fullmatch(name) is not None


def _undashed(setting: Setting) -> Setting:
    return renamed(setting, setting.name.replace("-", "_"))


def _name_model(flags: dict[str, Setting], positional: Sequence[Any]) -> None:
    """``vllm serve MODEL`` names the model without a flag."""
    if positional and "model" not in flags and "model_path" not in flags:
        word = positional[0]
        flags["model"] = Setting("model", word.value, word.location, Origin.FLAG)


def _kind(launch: Launch, settings: Mapping[str, Setting], is_open: bool) -> RunKind:
    """What is done: LLaMA-Factory's ``train`` may evaluate alone, where ``do_train`` is off."""
    if launch.framework != "llamafactory" or launch.subcommand != "train":
        return launch.kind
    switch = settings.get("do_train")
    if switch is None:
        evaluates = any(_is_true(settings.get(name)) for name in ("do_predict", "do_eval"))
        return RunKind.INFER if evaluates and not is_open else launch.kind
    return RunKind.INFER if known(switch.value) and truth(switch.value) is False else launch.kind


def _is_true(setting: Optional[Setting]) -> bool:
    return setting is not None and known(setting.value) and truth(setting.value) is True


def _takes_pairs(framework: str, words: Sequence[Word]) -> bool:
    """Whether the program reads ``name=value``: LLaMA-Factory does behind its file only."""
    if framework == "llamafactory" and words and is_flag(words[0].text):
        return False
    return framework in _KEY_VALUE


def _add_meanings(flags: dict[str, Setting]) -> None:
    """``--no-enable-x`` is ``enable_x`` false; of both the later one holds."""
    for name in [name for name in flags if name.startswith("no_")]:
        if flags[name].value is not True:
            continue
        other = flags.get(name[3:])
        if other is None or _is_before(other, flags[name]):
            flags[name[3:]] = dataclasses.replace(
                renamed(flags[name], name[3:]), value=False, note=f"--{name}"
            )


def _is_before(one: Setting, other: Setting) -> bool:
    """Whether one flag of a command stands before another."""
    here, there = one.location, other.location
    if here is None or there is None or here.path != there.path:
        return False
    return (here.line, here.column) < (there.line, there.column)
