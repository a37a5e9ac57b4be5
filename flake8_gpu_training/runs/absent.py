"""Files that a command names and that are not there: configurations, and the script itself."""

from __future__ import annotations

import difflib
import fnmatch
import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import Optional

from flake8_gpu_training.facts import Command, Origin, ScriptFile, Setting, Word
from flake8_gpu_training.project import FileKind, Project
from flake8_gpu_training.runs.launchers import Launch, read_launch
from flake8_gpu_training.runs.model import Absent
from flake8_gpu_training.runs.reach import Reach

_SUFFIXES = (".json", ".yaml", ".yml")
_SCRIPTS = (".py",)
_OPEN = re.compile(r"[$<>{}*?~`\s]|^/|\.\.|(?i:your|path[_/-]?to)")
"""What is no plain path within the project, or stands for one that the user is to fill in."""
_ALIKE = 0.8
_ALIKE_SCRIPT = 0.88
"""Scripts of one folder share their beginnings: a slip of the keyboard only."""
_LAUNCHERS = frozenset({"torchrun", "accelerate", "deepspeed"})
_CONFIGURED = frozenset({"llamafactory", "swift", "flow_factory", "vllm", "sglang", "hf_trainer"})
"""Known programs that take a configuration file: the first argument, or ``--config``."""
_KEEPING = frozenset(
    """
    . [ [[ awk cat conda cut date declare df echo exit export false free grep head hostname kill
    killall local ls lsof mamba mkdir module nproc nvidia-smi pip pip3 pkill printf ps read return
    rm set shift sleep sort source tail test tr trap true type ulimit umask uname unset uv wait
    wandb wc which
    """.split()  # noqa: SIM905
)
"""Commands that bring no file which a later one names."""
_WITHIN = frozenset(
    "srun nohup env time nice numactl timeout exec stdbuf taskset conda uv sudo bash sh".split()  # noqa: SIM905
)
"""Wrappers that leave a command in its folder and on its machine."""


def absent(
    reach: Reach, command: Optional[Command], named: Iterable[Setting]
) -> tuple[Absent, ...]:
    """The files that ``command`` names and that the project lacks where it looks for them.

    Told of a path whose folder is in the project, and of a name alone where the working folder
    is known and nothing in sight could bring the file. Where the script speaks of the file again
    (it may write or fetch it), nothing is said.
    """
    if command is None or not isinstance(reach.project.read(command.location.path), ScriptFile):
        return ()
    found = (_absent(reach, command, setting) for setting in named)
    return tuple(one for one in found if one is not None)


def absent_of_commands(project: Project, known: frozenset[str]) -> Iterator[tuple[Command, Absent]]:
    """Scripts and configurations of launches that made no run: ``known`` has those that did."""
    reach = Reach(project)
    for script in project.scripts():
        for command in script.commands if not project.is_auxiliary(script.path) else ():
            launch = read_launch(command) if str(command.location) not in known else None
            if launch is None or launch.launcher not in _LAUNCHERS or command.uncalled:
                continue
            for one in absent(reach, command, named_by(launch)):
                yield command, one


def named_by(launch: Optional[Launch]) -> Iterator[Setting]:
    """Files that a launch names: those of its launcher, its configuration and its script."""
    if launch is None:
        return
    for name in ("config_file", "deepspeed_config_file"):
        if name in launch.options:
            yield launch.options[name]
    words = launch.arguments
    if launch.program and launch.framework in _CONFIGURED:
        served = launch.framework in ("vllm", "sglang", "hf_trainer")
        if words and not served and words[0].text.endswith(_SUFFIXES):
            yield _word("configuration", words[0])
        for flag, word in zip(words, words[1:]):
            if flag.text == "--config":
                yield _word("config", word)
    if launch.script is not None and not launch.is_module and not launch.program:
        for flag, word in zip(words, words[1:]):
            if flag.text in ("--deepspeed", "--deepspeed_config"):
                yield _word(flag.text.lstrip("-"), word)
        if launch.launcher in _LAUNCHERS:
            yield _word("script", launch.script)


def _word(name: str, word: Word) -> Setting:
    return Setting(
        name, word.value, word.location, Origin.FLAG, text=word.raw, value_location=word.location
    )


def _absent(reach: Reach, command: Command, setting: Setting) -> Optional[Absent]:
    name = setting.value
    if setting.origin is not Origin.FLAG or not setting.text or not isinstance(name, str):
        return None
    endings = _SCRIPTS if setting.name == "script" else _SUFFIXES
    if not name.endswith(endings) or _OPEN.search(name) is not None:
        return None
    if reach.file(name, command) is not None or _is_told(reach, command, name):
        return None
    folder = posixpath.dirname(posixpath.normpath(name))
    if folder:
        siblings = tuple(_siblings(reach, command, folder, endings))
        if not siblings or (endings == _SCRIPTS and not _is_missed(reach, command, name)):
            return None
    elif "$" in setting.text or not _is_missed(reach, command, name):
        return None
    else:
        siblings = tuple(_siblings(reach, command, "", endings))
    alike = _ALIKE_SCRIPT if endings == _SCRIPTS else _ALIKE
    near = difflib.get_close_matches(posixpath.basename(name), siblings, 1, alike)
    return Absent(
        setting, posixpath.join(folder, near[0]) if near else "", folder or command.directory
    )


def absent_of_files(project: Project, named: Iterable[Setting]) -> tuple[Absent, ...]:
    """The files that a program or a configuration names as a literal and that are nowhere.

    Told only where the folder that is named, or the one of the naming file, holds others of the
    kind, and where no file, program or ``.gitignore`` of the project speaks of the name.
    """
    found = (_absent_of_file(project, setting) for setting in named)
    return tuple(one for one in found if one is not None)


def _absent_of_file(project: Project, setting: Setting) -> Optional[Absent]:
    name, place = setting.value, setting.location
    if setting.origin not in (Origin.FILE, Origin.CONSTRUCTOR) or place is None:
        return None
    if not isinstance(name, str) or not name.endswith(_SUFFIXES) or _OPEN.search(name):
        return None
    if project.is_auxiliary(place.path) or (setting.text and name not in setting.text):
        return None
    folder, file = posixpath.split(posixpath.normpath(name))
    if any(file in posixpath.basename(one) for one in project.files):
        return None  # started from another folder, or made of a template
    own = project.content(place.path, 1_000_000) or b""
    if own.count(file.encode()) != 1 or _is_ignored(project, file):
        return None
    if _is_mentioned(project, place.path, file):
        return None
    whole = folder or posixpath.dirname(place.path)
    siblings = [
        posixpath.basename(one)
        for one in project.files
        if one.endswith(_SUFFIXES) and _is_in(one, whole, exactly=not folder)
    ]
    near = difflib.get_close_matches(file, siblings, 1, _ALIKE)
    if not siblings or (not folder and not near):
        return None
    return Absent(setting, posixpath.join(folder, near[0]) if near else "", folder)


def _is_in(path: str, folder: str, exactly: bool) -> bool:
    own = posixpath.dirname(path)
    return own == folder or (not exactly and own.endswith(f"/{folder}"))


def _siblings(
    reach: Reach, command: Command, folder: str, endings: tuple[str, ...]
) -> Iterator[str]:
    """Files of the same kind in the folder where a file should be."""
    place = posixpath.dirname(command.location.path)
    while True:
        whole = posixpath.normpath(posixpath.join(place, command.directory, folder))
        for path in reach.project.files:
            if (posixpath.dirname(path) or ".") == whole and path.endswith(endings):
                yield posixpath.basename(path)
        if not place:
            return
        place = posixpath.dirname(place)


def _is_told(reach: Reach, command: Command, name: str) -> bool:
    """Whether the script names the file more than this once."""
    text = reach.project.content(command.location.path, 1_000_000)
    return text is None or text.count(posixpath.basename(name).encode()) != 1


# --- a name of which the folder does not tell that it should be there --------------------------


def _is_missed(reach: Reach, command: Command, name: str) -> bool:
    """Whether the file is missed wherever the script may look for it, and nothing brings it."""
    project, path = reach.project, command.location.path
    if project.kind(path) is not FileKind.SHELL or project.is_auxiliary(path):
        return False
    if not _stays(command) or not _is_folder(project, command):
        return False
    file = posixpath.basename(name)
    if any(file in posixpath.basename(one) for one in project.files):
        return False  # started from another folder, or made of a template
    if project.is_above(posixpath.join(command.directory, name)) or _is_ignored(project, file):
        return False
    return not _may_be_brought(reach, command) and not _is_mentioned(project, path, file)


def _stays(command: Command) -> bool:
    """Whether a command runs on this machine, in the folder where its script is."""
    return all(
        bool(words) and posixpath.basename(words[0].text) in _WITHIN for words in command.wrappers
    )


def _is_folder(project: Project, command: Command) -> bool:
    """Whether the folder that the script changes to is in the project, or is none."""
    if not command.directory:
        return True
    if "$" in command.directory or posixpath.isabs(command.directory):
        return False
    place = posixpath.dirname(command.location.path)
    whole = posixpath.normpath(posixpath.join(place, command.directory))
    return any(one.startswith(f"{whole}/") for one in project.files) or whole == "."


def _is_ignored(project: Project, file: str) -> bool:
    """Whether ``.gitignore`` leaves files of this name out: they are made, or private."""
    text = project.content(".gitignore", 100_000) or b""
    patterns = (line.strip() for line in text.decode("utf-8", "replace").splitlines())
    return any(fnmatch.fnmatch(file, one.rpartition("/")[2]) for one in patterns if one)


def _may_be_brought(reach: Reach, command: Command) -> bool:
    """Whether a command before this one may write, copy or fetch files."""
    script = reach.project.read(command.location.path)
    if not isinstance(script, ScriptFile) or script.sourced:
        return True
    for one in script.commands:
        if one.location >= command.location or posixpath.basename(one.name) in _KEEPING:
            continue
        launch = read_launch(one)
        if launch is None or launch.launcher == "python":
            return True
    return False


_READ = frozenset({FileKind.PYTHON, FileKind.SHELL, FileKind.MAKEFILE, FileKind.DOCKERFILE})


def _is_mentioned(project: Project, path: str, file: str) -> bool:
    """Whether another program or script of the project speaks of the file."""
    word = file.encode()
    return any(
        word in (project.content(one, 1_000_000) or b"")
        for one in project.files
        if one != path and project.kind(one) in _READ
    )
