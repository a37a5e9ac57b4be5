"""Fills in what a program's configuration files decide, by following how it reads them."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Optional

from flake8_gpu_training.facts import (
    Argument,
    Call,
    Command,
    Document,
    Location,
    Origin,
    PythonFile,
    Setting,
    Unknown,
    Word,
    known,
)
from flake8_gpu_training.runs._followed import (
    HOME,
    Given,
    Placed,
    Table,
    node_of,
    plain,
    put_dotted,
    setting_of,
)
from flake8_gpu_training.runs.following import Outcome, World, followed
from flake8_gpu_training.runs.model import Launcher
from flake8_gpu_training.runs.python_entry import FRAMEWORK_PACKAGES, Namespace, Program
from flake8_gpu_training.runs.reach import Reach, Writer
from flake8_gpu_training.runs.settings import parse_arguments


def configuration_of(
    program: Program,
    words: Sequence[Word],
    is_open: bool,
    namespace: Namespace,
    composition: Mapping[str, Setting],
    command: Optional[Command],
    writer: Writer,
    reach: Reach,
    launcher: Optional[Launcher] = None,
    launched: Mapping[str, Setting] = MappingProxyType({}),
) -> Optional[Outcome]:
    """What following ``program`` tells; None when that is too much.

    ``launched``: the launcher's own options.
    """
    words = [_told(word, reach, command, writer) for word in words]
    texts = tuple(word.text for word in words if known(word.value))
    world = World(
        options=namespace.values,
        environment=_environment(command, launched, launcher),
        document=_Documents(reach, command, writer, _values_in(texts)).find,
        source=reach.source,
        tree=reach.tree,
        module=_Modules(reach, command).find,
        words=texts,
        arguments=tuple(words),
        text=lambda name: reach.text(name, command, program.script.path),
        pairs=parse_arguments(words, key_value=True).settings,
        is_open=is_open,
        function=_function(reach, words, command),
        configuration=_table(composition) if composition else None,
        world_size=launcher.world_size if launcher is not None else None,
        local_size=_local_size(launcher),
    )
    return followed(program.script.path, world)


# accelerate 1.12.0, utils/launch.py: what ``accelerate launch`` hands to the program.
_BY_ACCELERATE = MappingProxyType({"deepspeed_config_file": "ACCELERATE_DEEPSPEED_CONFIG_FILE"})


def _environment(
    command: Optional[Command], launched: Mapping[str, Setting], launcher: Optional[Launcher]
) -> Mapping[str, Setting]:
    """The variables that the program finds: those of its command, then its launcher's."""
    found = dict(command.environment) if command is not None else {}
    if launcher is not None and launcher.name == "accelerate":
        found.update({v: launched[name] for name, v in _BY_ACCELERATE.items() if name in launched})
    return found


def _told(word: Word, reach: Reach, command: Optional[Command], writer: Writer) -> Word:
    """A word that begins with an unknown folder, as the only file that it can mean."""
    if known(word.value) or word.raw.startswith("-"):
        return word
    candidates = word.value.candidates if isinstance(word.value, Unknown) else ()
    document = reach.named(Unknown(word.raw, candidates), command, writer)
    return word if document is None else dataclasses.replace(word, value=document.path)


def _values_in(texts: Sequence[str]) -> frozenset[str]:
    """Words of a command, and what stands behind the equals signs in them."""
    return frozenset((*texts, *(text.partition("=")[2] for text in texts)))


def _local_size(launcher: Optional[Launcher]) -> Optional[int]:
    value = launcher.processes.value if launcher is not None else None
    return value if isinstance(value, int) else None


@dataclasses.dataclass(frozen=True)
class _Documents:
    reach: Reach
    command: Optional[Command]
    writer: Writer
    given: frozenset[str] = frozenset()

    def find(self, name: str, near: str) -> Optional[Document]:
        if name.startswith(f"{HOME}/"):
            return self.reach.configuration(posixpath.normpath(name[len(HOME) + 1 :]))
        if name in self.given:  # the command line names it
            return self.reach.named(name, self.command, self.writer, near)
        return self.reach.document(name, self.command, self.writer, near)


@dataclasses.dataclass(frozen=True)
class _Modules:
    reach: Reach
    command: Optional[Command]

    def find(self, name: str, level: int, near: str) -> Optional[str]:
        """Path of a module: ``level`` as in ``ast.ImportFrom``, -1 when ``name`` is a path."""
        if level < 0:
            if name.startswith(f"{HOME}/"):
                return self.reach.file(posixpath.normpath(name[len(HOME) + 1 :]), None)
            return self.reach.file(name, self.command, near)
        if level == 0 and name.partition(".")[0] in FRAMEWORK_PACKAGES:
            return None
        return self.reach.module(name, level, near)


def _function(reach: Reach, words: Sequence[Word], command: Optional[Command]) -> str:
    """The function that an installed command calls; empty when a script is run."""
    taken = len(words)
    before = command.words[: len(command.words) - taken] if command is not None else ()
    named = reach.console.get(posixpath.basename(before[-1].text)) if before else None
    return named[1] if named is not None else ""


def _table(settings: Mapping[str, Setting]) -> Table:
    made = Table()
    made.omega = True
    for name, setting in settings.items():
        put_dotted(made, name, Placed(setting.value, setting))
    return made


# --- facts ------------------------------------------------------------------------------


def with_configuration(files: Iterable[PythonFile], outcome: Outcome) -> tuple[PythonFile, ...]:
    """``files`` with arguments filled in that configuration files decide."""
    filled = [_filled(file, outcome) for file in files]
    made = [_instantiated(*target) for target in outcome.targets]
    if made and filled:
        filled[0] = dataclasses.replace(filled[0], calls=(*filled[0].calls, *made))
    return tuple(filled)


def _filled(file: PythonFile, outcome: Outcome) -> PythonFile:
    calls = tuple(filled_call(call, outcome) for call in file.calls)
    if all(new is old for new, old in zip(calls, file.calls)):
        return file
    return dataclasses.replace(file, calls=calls)


def given_to(call: Call, outcome: Outcome) -> Optional[Given]:
    """The arguments that ``call`` was seen to be given, when it was."""
    if call.end is None:
        return None
    return outcome.calls.get((call.location.path, call.end.line, call.end.column))


def filled_call(call: Call, outcome: Outcome) -> Call:
    """``call`` with its unknown arguments filled in, and those of a known ``**config``."""
    given = given_to(call, outcome)
    if given is None:
        return call
    positional = tuple(
        _argument(argument, given.positional[index]) if index < len(given.positional) else argument
        for index, argument in enumerate(call.positional)
    )
    keywords = {
        name: _argument(argument, given.keywords[name]) if name in given.keywords else argument
        for name, argument in call.keywords.items()
    }
    is_open = call.is_open
    if is_open:
        is_open = given.is_open
        for name, value in given.keywords.items():
            if name not in keywords:
                keywords[name] = _spread(name, value, call)
    unchanged = (
        is_open == call.is_open
        and all(new is old for new, old in zip(positional, call.positional))
        and all(keywords[name] is call.keywords.get(name) for name in keywords)
    )
    if unchanged:
        return call
    return dataclasses.replace(
        call, positional=positional, keywords=MappingProxyType(keywords), is_open=is_open
    )


def _argument(argument: Argument, value: Any) -> Argument:
    if known(argument.value):
        return argument
    found = plain(value)
    if isinstance(found, Unknown) and _is_not_followed(found, argument):
        return argument
    return dataclasses.replace(argument, value=found)


def _is_not_followed(value: Unknown, argument: Argument) -> bool:
    """Whether nothing was learnt: an unknown name stays just that."""
    return not value.candidates and value.reason == argument.text


def _spread(name: str, value: Any, call: Call) -> Argument:
    """An argument that stands in no call: it came with ``**config``."""
    setting = setting_of(name, value)
    place = setting.location if setting is not None else None
    return Argument(plain(value), place or call.location)


def _instantiated(dotted: str, given: Given, table: Table) -> Call:
    """A call that a ``_target_`` of a configuration stands for."""
    target = table.entries["_target_"]
    place = target.setting.location if isinstance(target, Placed) else None
    location = place or Location("")
    call = Call(dotted, location, is_open=given.is_open)
    keywords = {name: _spread(name, value, call) for name, value in given.keywords.items()}
    return dataclasses.replace(call, keywords=MappingProxyType(keywords))


_ENGINES = (
    ("deepspeed.initialize", "config", "config_params"),
    (".DeepSpeedPlugin", "hf_ds_config"),
)


def deepspeed_of(files: Iterable[PythonFile], outcome: Outcome) -> Optional[Document]:
    """The DeepSpeed configuration that the program gives, with what it changed in the file."""
    for file in files:
        for name, *keywords in _ENGINES:
            for call in file.calls_to(name):
                given = given_to(call, outcome)
                value = given.get(-1, *keywords) if given is not None else None
                if isinstance(value, Table) and value.entries:
                    root = node_of(value, call.location)
                    at = min((e.location for e in root.mapping.values()), key=_is_code)
                    return Document(at.path, root, "json")
    return None


def _is_code(location: Location) -> tuple[bool, Location]:
    return location.path.endswith((".py", ".ipynb", ".sh")), location


def constructed(found: Mapping[str, Setting], call: Call, outcome: Outcome) -> dict[str, Setting]:
    """``found``, settings of a constructor's arguments, with the unknown ones filled in."""
    given = given_to(call, outcome)
    settings = dict(found)
    for name, value in given.keywords.items() if given is not None else ():
        old = settings.get(name)
        argument = call.keywords.get(name)
        if argument is not None and known(argument.value):
            continue
        setting = setting_of(name, value)
        if setting is None:
            shown = plain(value)
            if old is not None and argument is not None and not _is_not_followed(shown, argument):
                settings[name] = dataclasses.replace(old, value=shown)
            continue
        if setting.location is None:
            place = old.location if old is not None else call.location
            setting = dataclasses.replace(setting, location=place, origin=Origin.CONSTRUCTOR)
        settings[name] = setting
    return settings
