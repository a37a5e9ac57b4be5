"""Finds the runs of a project: its public functions are what checks and reports start from."""

from __future__ import annotations

import dataclasses
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Optional

from flake8_gpu_training.facts import (
    Command,
    Document,
    Location,
    Origin,
    Problem,
    PythonFile,
    ScriptFile,
    known,
)
from flake8_gpu_training.garbage import seldom_collected
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.assembly import Assembly, Origins, with_profile
from flake8_gpu_training.runs.checkouts import Checkouts
from flake8_gpu_training.runs.configs import Recognised, recognise
from flake8_gpu_training.runs.documented import as_documented
from flake8_gpu_training.runs.environments import Environments
from flake8_gpu_training.runs.launchers import Launch, read_launch
from flake8_gpu_training.runs.makefiles import made_by
from flake8_gpu_training.runs.model import Run, RunKind
from flake8_gpu_training.runs.pins import Pins
from flake8_gpu_training.runs.python_entry import (
    FRAMEWORK_PACKAGES,
    Entry,
    Program,
    entries_of,
)
from flake8_gpu_training.runs.python_text import python_of
from flake8_gpu_training.runs.reach import Reach, start_of
from flake8_gpu_training.runs.registers import unregistered
from flake8_gpu_training.runs.samples import Samples
from flake8_gpu_training.runs.servers import with_servers
from flake8_gpu_training.runs.shared_files import with_own_places
from flake8_gpu_training.runs.started import commands_of_launch
from flake8_gpu_training.runs.storage import mounts_of
from flake8_gpu_training.runs.subprocesses import started_by
from flake8_gpu_training.runs.templates import bound_to, each_file, names_configuration
from flake8_gpu_training.sources.job import with_own_resources

if TYPE_CHECKING:
    from flake8_gpu_training.frameworks.detection import Detection

LAUNCH_PATH = "<launch-command>"
"""Path of locations in a launch command that stands in no file."""

_TRIAL = re.compile(
    r"(?i)(?:^|[/_.-])(?:debug|tests?|smoke|toy|old|bak|backup|tmp|demo|bench|benchmarks?|profil\w*"
    r"|eval|evals|evaluat\w*|infer|inference|predict\w*|sample|generate|convert|export)(?:[/_.-]|$)"
)
_EXAMPLE = re.compile(r"(?i)(?:^|/)(?:\w*examples?|docs?|tutorials?|recipes?|benchmarks?)/")
# What a collection of examples has beside its plain ones: special hardware, engines, tricks.
_SPECIAL = re.compile(
    r"(?i)(?:^|[/_.-])(?:ascend|npu|rocm|hpu|xpu|kt|ktransformers|ray|megatron|experimental|extras?"
    r"|mcore|custom|notebooks?|research|multi_?nodes?|multinode|elastic|docker|async|moe|int8|fp8"
    r"|agent|tools?|plugin|internal|seq_?cls|embedding|reranker|cached_\w+|legacy|v\d+_\d+)(?:[/_.-]|$)"
)
_READS_YAML = re.compile(rb"\b(?:yaml\.\w*load|OmegaConf\.load|YAML\()")
_STARTS_IT = re.compile(rb"(?i)llama-?factory|llmtuner")
_KIND_RANK = {RunKind.TRAIN: 0, RunKind.SERVE: 1, RunKind.INFER: 2, RunKind.OTHER: 3}


@dataclass(frozen=True)
class Found:
    """A command and where it was found."""

    command: Command
    origins: Origins


def find_runs(
    project: Project,
    launch_command: Optional[str] = None,
    *,
    detection: Optional[Detection] = None,
) -> tuple[Run, ...]:
    """All training and serving jobs of ``project``; the primary one comes first.

    ``launch_command`` is the command the user starts; its run is the primary one, else the
    most complete training run is. ``detection`` prefers runs of the framework detected.
    """
    with seldom_collected():
        return _Finder(project, detection).find(launch_command)


def commands_of(project: Project) -> tuple[Command, ...]:
    """Every command that scripts, job files, notebooks and Python programs start."""
    return tuple(found.command for found in _commands(project))


def run_of_file(
    file: PythonFile,
    *,
    framework: str = "auto",
    versions: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Run, ...]:
    """The runs of one Python file seen alone, as flake8 sees it.

    ``framework``: "auto", or the id of the only framework to look for.
    """
    program = Program((file,))
    assembly = Assembly(_NoReach(), lambda *paths: Pins(versions))
    runs = [
        assembly.of_program(program, entry, single_file=True)
        for entry in entries_of(program)
        if framework in ("auto", entry.framework)
    ]
    return tuple(_distinct(runs))


class _NoReach(Reach):
    """A file alone: no other file is ever found."""

    def __init__(self) -> None:
        super().__init__(Project(Path(), {}))

    def file(self, name: str, command: Optional[Command], near: str = "") -> Optional[str]:
        """Nothing is in sight."""
        return None


class _Finder:
    def __init__(self, project: Project, detection: Optional[Detection]) -> None:
        self.project = project
        self.detection = detection
        self.reach = Reach(project)
        self.samples = Samples(project)
        self.checkouts = Checkouts(project)
        self.commands = list(_commands(project))
        commands = [found.command for found in self.commands]
        self.assembly = Assembly(self.reach, Environments(project, commands).of)
        self._takers: Optional[list[tuple[str, Entry]]] = None

    def find(self, launch_command: Optional[str]) -> tuple[Run, ...]:
        runs = self._command_runs()
        described = self._document_runs({path for run in runs for path in run.files})
        others = any(map(_starts_by_accelerate, (found.command for found in self.commands)))
        runs += described if others else _started_like(described, runs)
        runs += _beside_recipes(
            self._python_runs({path for run in runs for path in run.files}), runs
        )
        if not any(run.kind is RunKind.TRAIN for run in runs):
            runs += self._unrecognised()
        every = _distinct(runs)
        runs = self._without_auxiliary(every)
        chosen = None
        if launch_command:
            hidden = [run for run in every if run not in runs] if len(runs) < len(every) else []
            runs, chosen = self._launched(runs, launch_command, hidden)
        if not runs:
            return ()
        primary = chosen or min(runs, key=self._order)
        placed = with_own_places(_primary_first(runs, primary))
        return tuple(self._with_data(run) for run in with_servers(placed))

    def _with_data(self, run: Run) -> Run:
        """``run`` with what is known of the place and the size of its data."""
        mounts = mounts_of(self.project, run)
        samples = self.samples.of(run) if run.kind is RunKind.TRAIN else None
        profile = run.profile if samples is None else {**run.profile, samples.name: samples}
        return dataclasses.replace(
            run,
            mounts=mounts,
            profile=profile,
            unregistered=unregistered(self.project, run),
            checkout=self.checkouts.of(run),
        )

    # --- gathering ---

    def _command_runs(self) -> list[Run]:
        runs: list[Run] = []
        for found in self.commands:
            for command in each_file(found.command, self.project.files):
                launch = read_launch(command) or self._installed(command)
                if launch is not None:
                    runs += self.assembly.of_launch(launch, found.origins)
        return runs

    def _unrecognised(self) -> list[Run]:
        """Runs of several processes whose programs are not recognised, by their commands."""
        runs: list[Run] = []
        for found in self.commands:
            launch = read_launch(found.command)
            if launch is not None and not found.command.uncalled:
                runs += self.assembly.of_unrecognised(launch, found.origins)
        return runs

    def _installed(self, command: Command) -> Optional[Launch]:
        """The launch by a command that the project's own packaging installs."""
        words = command.words
        if not words or not known(words[0].value) or words[0].text not in self.reach.console:
            return None
        return Launch(command, "python", script=words[0], arguments=words[1:])

    def _document_runs(self, used: set[str]) -> list[Run]:
        runs: list[Run] = []
        templates = [found for found in self.commands if names_configuration(found.command)]
        for config in self.project.configs():
            if config.path in used:
                continue
            for document in config.documents:
                recognised = recognise(document)
                if recognised is not None:
                    run = self._templated(document, recognised, templates)
                    if run is None and not self._is_anothers(document, recognised):
                        run = self._described(document, recognised)
                    runs += [run] if run is not None else []
        return runs

    def _is_anothers(self, document: Document, recognised: Recognised) -> bool:
        """Whether a program of the project's own reads what has LLaMA-Factory's names only.

        LLaMA-Factory starts with no file that lacks the model.
        """
        if recognised.framework != "llamafactory":
            return False
        if document.get("model_name_or_path") is None and document.get("model") is None:
            return True
        name = posixpath.basename(document.path).encode()
        return any(name in content for content in self._readers_of_yaml)

    @cached_property
    def _readers_of_yaml(self) -> tuple[bytes, ...]:
        """The programs of the project that read YAML and do not start LLaMA-Factory."""
        return tuple(
            content
            for _, content in self.project.python_sources(self.project.is_auxiliary)
            if not isinstance(content, Problem)
            and _READS_YAML.search(content)
            and not _STARTS_IT.search(content)
        )

    def _templated(
        self, document: Document, recognised: Recognised, templates: Sequence[Found]
    ) -> Optional[Run]:
        """The run of a document that a command names by variables."""
        for found in templates:
            command = bound_to(found.command, document.path)
            launch = read_launch(command) if command is not None else None
            if launch is None:
                continue
            for run in self.assembly.of_launch(launch, found.origins):
                if run.framework == recognised.framework and run.place.document is document:
                    at = start_of(document)
                    return dataclasses.replace(run, id=str(at), location=at)
        return None

    def _described(self, document: Document, recognised: Recognised) -> Run:
        """The run of a document that no command names; its script is found by its name."""
        script = None
        if recognised.framework == "hf_trainer":
            script = self._script_of(document)
        program = self.reach.program(script[0]) if script is not None else None
        entry = script[1] if script is not None else None
        return self.assembly.of_document(document, recognised, program, entry)

    def _script_of(self, document: Document) -> Optional[tuple[str, Entry]]:
        """The script that takes the Trainer's arguments from files like ``document``.

        Several are told apart by a part of the document's path: ``recipes/x/sft/config.yaml``.
        """
        if self._takers is None:
            self._takers = [
                (file.path, entry)
                for file in _python_files(self.project)
                if _is_script(file) and not self.project.is_auxiliary(file.path)
                for entry in self.reach.entries(file.path)
                if entry.from_flags and entry.framework == "hf_trainer"
            ]
        parts = set(re.split(r"[/_.-]", document.path))
        named = [
            taker for taker in self._takers if posixpath.basename(taker[0])[: -len(".py")] in parts
        ]
        chosen = named or self._takers
        return chosen[0] if len(chosen) == 1 else None

    def _python_runs(self, used: set[str]) -> list[Run]:
        """Runs of scripts that no command starts; of modules only when there is no script."""
        scripts: list[Run] = []
        modules: list[Run] = []
        for file in _python_files(self.project):
            if file.path in used:
                continue
            is_script = _is_script(file)
            if is_script:
                program = self.reach.program(file.path)
                entries = self.reach.entries(file.path)
            else:
                program = Program((file,))
                entries = entries_of(program)
            if program is None:
                continue
            target = scripts if is_script else modules
            target += [self.assembly.of_program(program, entry) for entry in entries]
        reached = {path for run in scripts for path in run.files} | used
        if scripts or used:
            return scripts
        return [run for run in modules if run.location.path not in reached]

    def _without_auxiliary(self, runs: list[Run]) -> list[Run]:
        kept = [run for run in runs if not self.project.is_auxiliary(run.location.path)]
        return kept or runs

    # --- the primary run ---

    def _launched(
        self, runs: list[Run], text: str, hidden: Sequence[Run]
    ) -> tuple[list[Run], Optional[Run]]:
        """``runs`` and the one that a launch command starts, added when it is new.

        The scripts that it starts are followed with the arguments it gives them. Of several
        runs it is the first that trains, and is no trial by its name. A run of a test or a
        document (``hidden``) counts when the command names its file.
        """
        line = self.project.command_line(text, LAUNCH_PATH)
        started: list[Run] = []
        added: list[Run] = []
        for command in self._given(line):
            launch = read_launch(command) or self._installed(command)
            if launch is None:
                within = self._of_script(runs, command)
                named = within or self._of_script(hidden, command)
                made = [named] if named is not None else self._unrecognised_in(command, bool(runs))
                added += made if within is None else []
                started += made[:1]
                continue
            same = [run for run in runs if run.command and _same(run.command, command)]
            if same:
                here = [run for run in same if run.location == command.location]
                started.append(min(here or same, key=self._order))
                continue
            origins = Origins(script=line if command.location.path != LAUNCH_PATH else None)
            made = self.assembly.of_launch(launch, origins) or self._started(launch, origins)
            made = made or self._asked(launch, origins, bool(runs))
            added += made
            started += made[:1]
        started = started or self._in_files_of(runs, line)
        if not started:
            return runs, None
        return [*added, *runs], min(started, key=_launch_order)

    def _in_files_of(self, runs: Sequence[Run], line: ScriptFile) -> list[Run]:
        """The run in the files that a launch command goes through, which no command there is."""
        paths = {command.location.path for command in line.commands} - {LAUNCH_PATH}
        within = [run for run in runs if run.location.path in paths]
        return [min(within, key=self._order)] if within else []

    def _started(self, launch: Launch, origins: Origins) -> list[Run]:
        """The runs of the commands that a program starts which does no job itself."""
        inner = (read_launch(one) for one in commands_of_launch(self.reach, launch, origins.writer))
        found = [self.assembly.of_launch(one, origins) for one in inner if one is not None]
        return [run for runs in found for run in runs]

    def _given(self, line: ScriptFile) -> Iterator[Command]:
        """The commands of a launch command, and those of the Makefiles that it calls."""
        for command in line.commands:
            if not command.uncalled:
                yield command
                yield from made_by(self.project, command)

    def _of_script(self, runs: Sequence[Run], command: Command) -> Optional[Run]:
        """The run in the script that ``bash train.sh`` (or ``sbatch``, ``./train.sh``) starts."""
        for word in command.words:
            if not known(word.value) or word.text.startswith("-"):
                continue
            path = self.project.find(word.text, "", command.directory) or word.text
            within = [run for run in runs if f"/{run.location.path}".endswith(f"/{path}")]
            if within:
                return min(within, key=self._order)
        return None

    def _asked(self, launch: Launch, origins: Origins, is_among: bool) -> list[Run]:
        """The open run of a launch; of one process only where another would stand for it."""
        made = self.assembly.of_unrecognised(launch, origins, True)
        return [run for run in made if is_among or run.launcher.name != "python"]

    def _unrecognised_in(self, command: Command, is_among: bool) -> list[Run]:
        """The open run of the first training that a script starts, when nobody recognised any."""
        paths = {
            self.project.find(word.text, "", command.directory) or word.text
            for word in command.words
            if known(word.value) and not word.text.startswith("-")
        }
        for found in self.commands:
            launch = read_launch(found.command)
            if launch is None or found.command.location.path not in paths:
                continue
            made = self._asked(launch, found.origins, is_among)
            if made:
                return made[:1]
        return []

    def _order(self, run: Run) -> tuple[Any, ...]:
        """Least is the run that stands for the project.

        In turn: it trains, or serves a model itself, with the framework detected, and somebody
        wrote its settings;
        it is no trial, evaluation or benchmark by name; it is the user's own rather than an
        example; a script or configuration file rather than a notebook or a bare program.
        Among examples the plain and shallow ones come first (:func:`_oddity`). Then the run
        about which most is written, the shallower path, and the order of paths decide.
        """
        path = run.location.path
        detected = self.detection.training if self.detection is not None else run.framework
        is_example = bool(_EXAMPLE.search(path))
        size = run.launcher.world_size
        return (
            _KIND_RANK[run.kind],
            _is_router(run),
            run.framework != detected,
            run.is_open and not _written(run),
            _is_trial(run),
            is_example,
            path.endswith(".ipynb"),
            run.command is None and run.place.document is None,
            _oddity(run) if is_example else (),
            -(_written(run) + 3 * bool(size and size > 1)),
            path.count("/"),
            run.location,
        )


def _is_router(run: Run) -> bool:
    """Whether it hands requests on to servers and loads no model."""
    return run.launcher.name.endswith("-router")


def _is_trial(run: Run) -> bool:
    entry = posixpath.basename(run.entry or "")
    return bool(_TRIAL.search(run.location.path) or _TRIAL.search(entry))


def _launch_order(run: Run) -> tuple[Any, ...]:
    """Least is the run that a launch is for; of equals the first that it starts."""
    return (
        _KIND_RANK[run.kind],
        _is_router(run),
        run.is_open and not _written(run),
        _is_trial(run),
    )


def _oddity(run: Run) -> tuple[int, ...]:
    """How far an example is from plain fine-tuning of one model on one node."""
    path = run.location.path
    tuning = run.value("tuning")
    nodes = run.launcher.nodes
    return (
        len(_SPECIAL.findall(path))
        + (nodes.known and nodes.value != 1)
        + (run.launcher.name == "megatron"),
        run.value("algorithm", "sft") != "sft",
        not re.search(r"(?:^|/)train\w*/", path),
        run.command is None,
        tuning not in ("lora", "full"),
        run.value("quantization_method", "none") != "none",
        path.count("/"),
    )


def _written(run: Run) -> int:
    """Known settings that the user wrote for this run, defaults of the script aside."""
    return sum(
        setting.known and setting.origin is not Origin.DEFAULT for setting in run.settings.values()
    )


def _primary_first(runs: Sequence[Run], primary: Run) -> tuple[Run, ...]:
    rest = sorted((run for run in runs if run is not primary), key=lambda run: run.location)
    return (dataclasses.replace(primary, primary=True), *rest)


def _distinct(runs: Sequence[Run]) -> list[Run]:
    """Runs with distinct ids: those of one line also get their column."""
    seen: set[str] = set()
    found: list[Run] = []
    for run in runs:
        name = run.id
        if name in seen:
            name = f"{run.id}:{run.location.column}"
        serial = 2
        while name in seen:
            name = f"{run.id}:{run.location.column}-{serial}"
            serial += 1
        seen.add(name)
        found.append(run if name == run.id else dataclasses.replace(run, id=name))
    return found


def _same(one: Command, other: Command) -> bool:
    if [word.text for word in one.words] != [word.text for word in other.words]:
        return False
    given = {name: setting.value for name, setting in other.environment.items()}
    own = {name: setting.value for name, setting in one.environment.items()}
    return all(own.get(name) == value for name, value in given.items())


def _is_script(file: PythonFile) -> bool:
    """Whether ``file`` does something when run: a main guard, or calls at the top level."""
    if file.has_main or file.path.endswith(".ipynb"):
        return True
    return any(not call.scope and not call.is_decorator for call in file.calls)


def _python_files(project: Project) -> Iterator[PythonFile]:
    """The user's own Python files: no tests, and no framework checked out in the project."""
    packages = tuple(
        path[: -len("__init__.py")]
        for path in project.files
        if path.endswith("/__init__.py")
        and path.count("/") <= 2
        and path.split("/")[-2] in FRAMEWORK_PACKAGES
        and (path.count("/") == 1 or path.startswith("src/"))
    )
    sources = project.python_sources(
        lambda path: path.startswith(packages) or project.is_auxiliary(path)
    )
    for path, content in sources:
        if isinstance(content, Problem) or _STARTING.search(content):
            file = project.read(path)
            if isinstance(file, PythonFile):
                yield file


# What a file must hold to train, to serve, or to start a command that does.
_STARTING = re.compile(
    rb"backward\s*\(|Trainer\b|TrainingArguments|[a-z]Config\s*\(|\bLLM\s*\(|Engine(?:Args)?\s*\("
    rb"|ServerArgs|Runtime\s*\(|run_exp|launch_server_cmd|_main\s*\(|deepspeed\.initialize|subprocess|os\.system"
    rb"|\"[ \\t]*[!%]|^[ \t]*[!%]",
    re.MULTILINE,
)


# --- commands ---------------------------------------------------------------------------


def _commands(project: Project) -> Iterator[Found]:
    scripts = list(project.scripts())
    made = [
        Found(command, Origins(script=script))
        for script in scripts
        if not project.is_auxiliary(script.path)
        for caller in script.commands
        if not caller.uncalled
        for command in made_by(project, caller)
    ]
    others = [
        command
        for script in scripts
        for command in script.commands
        if command.location.path != script.path
    ]
    others += [found.command for found in made]
    yield from made
    read = {command.location for command in others}
    called = {command.location for command in others if not command.uncalled}
    for script in scripts:
        for command in as_documented(project, script, _live(script, called, read)):
            yield Found(command, Origins(script=script))
        block = python_of(project, script.path)
        for command in started_by(block.calls) if block is not None else ():
            yield Found(command, Origins(notebook=block))
    for config in project.configs():
        for command, job in with_own_resources(config):
            yield Found(command, Origins(job=job))
    for file in _python_files(project):
        for command in file.shell:
            yield Found(command, Origins(notebook=file))
        for command in started_by(file.calls):
            yield Found(command, Origins(notebook=file))


def _live(script: ScriptFile, called: Set[Location], read: Set[Location]) -> Iterator[Command]:
    """The commands of a script that a run of it starts.

    Of a script that another one starts (``called``), those with that one's arguments count.
    What stands in functions that nothing calls is dead, unless the script has only such
    functions and no other script ``read`` it: users source it and call them.
    """
    places = {command.location for command in script.commands}
    is_library = all(command.uncalled for command in script.commands) and places.isdisjoint(read)
    for command in script.commands:
        elsewhere = command.location.path == script.path and command.location in called
        if not elsewhere and (is_library or not command.uncalled):
            yield command


_ENTRY = re.compile(r"(?:^|/)src/train(?:_bash)?\.py$")
"""LLaMA-Factory's script for launchers of others."""


def _starts_by_accelerate(command: Command) -> bool:
    """Whether a recipe that is not named is given to LLaMA-Factory's script by accelerate."""
    words = [word.text for word in command.words]
    at = next((n for n, word in enumerate(words) if _ENTRY.search(word)), None)
    if not words or words[0] != "accelerate" or at is None:
        return False
    return not any(word.endswith((".yaml", ".yml", ".json")) for word in words[at + 1 :])


def _beside_recipes(programs: list[Run], runs: Sequence[Run]) -> list[Run]:
    """``programs`` without LLaMA-Factory's own script where recipes for it are found."""
    if not any(run.framework == "llamafactory" for run in runs):
        return programs
    return [
        run
        for run in programs
        if run.framework != "llamafactory" or not _ENTRY.search(run.location.path)
    ]


def _started_like(described: list[Run], commanded: list[Run]) -> list[Run]:
    """Recipes of LLaMA-Factory in a project that starts recipes which it does not name, by
    ``llamafactory-cli`` alone."""
    ours = [
        run
        for run in commanded
        if run.framework == "llamafactory" and run.kind is RunKind.TRAIN and run.command is not None
    ]
    unnamed = [run for run in ours if run.is_open or not run.model.name]
    if not unnamed or any(run.launcher.name != "llamafactory" for run in unnamed):
        return described
    at = unnamed[0].location
    return [
        with_profile(dataclasses.replace(run, started_like=at))
        if run.framework == "llamafactory" and run.command is None
        else run
        for run in described
    ]
