"""Walks a project once, tells its files' kinds, and reads each at most once."""

from __future__ import annotations

import codecs
import dataclasses
import enum
import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Optional, Union

from flake8_gpu_training.containers import Shown, led_back, shown_by
from flake8_gpu_training.facts import (
    ConfigFile,
    GitConfig,
    Location,
    Problem,
    ProblemKind,
    PythonFile,
    RequirementsFile,
    ScriptFile,
)

if TYPE_CHECKING:
    import pathspec

    from flake8_gpu_training.sources.shell import Library

Facts = Union[PythonFile, ScriptFile, ConfigFile, RequirementsFile, GitConfig]


class FileKind(enum.Enum):
    """What a file is read as."""

    PYTHON = "python"
    NOTEBOOK = "notebook"
    SHELL = "shell"
    MAKEFILE = "makefile"
    DOCKERFILE = "dockerfile"
    YAML = "yaml"
    JSON = "json"
    TOML = "toml"
    REQUIREMENTS = "requirements"
    GIT_CONFIG = "git-config"
    OTHER = "other"


SCRIPT_KINDS = frozenset({FileKind.SHELL, FileKind.MAKEFILE, FileKind.DOCKERFILE})
CONFIG_KINDS = frozenset({FileKind.YAML, FileKind.JSON, FileKind.TOML})
PYTHON_KINDS = frozenset({FileKind.PYTHON, FileKind.NOTEBOOK})

_SHELL = frozenset({FileKind.SHELL})
_TELLS_OF_CONTAINERS = re.compile(
    r"(?i)(?:.*/)?(?:(?:docker-)?compose[\w.-]*\.ya?ml|readme[\w.-]*\.md)"
)
MAX_TOLD = 200_000
"""Bytes of a file that may tell what containers hold."""
MAX_FILES = 200_000
NOT_THERE = "not a file of the project"
ROOT_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")
"""Files and folders that stand at the root of a project."""
MAX_BYTES: Mapping[FileKind, int] = {
    FileKind.PYTHON: 2_000_000,
    FileKind.NOTEBOOK: 50_000_000,  # outputs with images
    FileKind.SHELL: 2_000_000,
    FileKind.MAKEFILE: 2_000_000,
    FileKind.DOCKERFILE: 2_000_000,
    FileKind.YAML: 5_000_000,
    FileKind.JSON: 2_000_000,
    FileKind.TOML: 1_000_000,
    FileKind.REQUIREMENTS: 20_000_000,  # lock files
    FileKind.GIT_CONFIG: 1_000_000,
}
_HEAD = 4096
_AROUND = 4
_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\n"

_BY_SUFFIX: Mapping[str, FileKind] = {
    ".py": FileKind.PYTHON,
    ".pyw": FileKind.PYTHON,
    ".ipynb": FileKind.NOTEBOOK,
    ".sh": FileKind.SHELL,
    ".bash": FileKind.SHELL,
    ".zsh": FileKind.SHELL,
    ".ksh": FileKind.SHELL,
    ".slurm": FileKind.SHELL,
    ".sbatch": FileKind.SHELL,
    ".pbs": FileKind.SHELL,
    ".lsf": FileKind.SHELL,
    ".mk": FileKind.MAKEFILE,
    ".dockerfile": FileKind.DOCKERFILE,
    ".yaml": FileKind.YAML,
    ".yml": FileKind.YAML,
    ".json": FileKind.JSON,
    ".json5": FileKind.JSON,
    ".jsonc": FileKind.JSON,
    ".toml": FileKind.TOML,
}
_TEMPLATE = ".tpl"
_HELM_VALUES = re.compile(rb"^servingEngineSpec:", re.MULTILINE)
"""What values of vLLM's production stack begin with; Terraform fills them in as templates."""
_REQUIREMENT_NAMES = frozenset(
    [
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "pipfile",
        "pipfile.lock",
        "poetry.lock",
        "uv.lock",
        "pdm.lock",
        "pixi.toml",
    ]
)
# Well-known names that configure something else, or hold data.
_OTHER_NAMES = frozenset(
    [
        "package.json",
        "package-lock.json",
        "tsconfig.json",
        "composer.json",
        "tokenizer.json",
        "vocab.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "merges.txt",
        "mkdocs.yml",
        "mkdocs.yaml",
        ".pre-commit-config.yaml",
        ".readthedocs.yaml",
        ".readthedocs.yml",
        "codecov.yml",
        ".codecov.yml",
        "citation.cff",
        "pnpm-lock.yaml",
        "rust-toolchain.toml",
        "cargo.toml",
        "trainer_state.json",
        "model_index.json",
        "pixi.lock",
    ]
)
_DATA_SUFFIXES = (".index.json", ".ipynb_checkpoints")
_REQUIREMENTS_TXT = re.compile(r"(?:^|.*[-_.])(?:requirements?|constraints?|reqs?)(?:[-_.].*)?")
_CONDA = re.compile(r"(?:environment|env|conda)(?:[-_.].*)?\.ya?ml")
_DOCKERFILE = re.compile(
    r"(?:dockerfile|containerfile)(?:[-_.].*)?|.*\.(?:dockerfile|containerfile)"
)
_MAKEFILE = re.compile(r"(?:gnu)?makefile(?:[-_.].*)?")
# Job scripts by these names are shell when their first line says so.
_SCRIPT_SUFFIXES = frozenset({".batch", ".cmd", ".com", ".job", ".qsub", ".run", ".sub", ".submit"})
_SHEBANG = re.compile(rb"#!.*?\b(?:(python|pypy)[\d.]*|((?:ba|da|z|k)?sh))\b")

_SKIPPED = frozenset(
    [
        ".git",
        ".hg",
        ".svn",
        ".bzr",
        "node_modules",
        "bower_components",
        "__pycache__",
        "site-packages",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".hypothesis",
        ".tox",
        ".nox",
        ".eggs",
        ".ipynb_checkpoints",
        ".cache",
        ".idea",
        ".hydra",
        ".terraform",
    ]
)
# A folder of this name is generated when it also holds such an entry.
_GENERATED: Mapping[str, re.Pattern[str]] = {
    "build": re.compile(r"lib|bdist\..*|temp\..*|lib\..*|CMakeCache\.txt"),
    "dist": re.compile(r".*\.(?:whl|tar\.gz)"),
    "wandb": re.compile(r"(?:offline-)?run-.*|latest-run|debug.*\.log"),
    "mlruns": re.compile(r"\d+|\.trash"),
}
# A folder with such an entry is an environment or the output of a training run.
_MARKERS = frozenset({"pyvenv.cfg", "conda-meta", "trainer_state.json"})

# Where others' code lies; they are also names for what is outside of a program, as a server is.
_OTHERS_FOLDERS = frozenset(
    [
        *("third_party", "third-party", "thirdparty", "3rdparty", "3rd_party"),
        *("vendor", "vendored", "_vendor", "external", "externals", "extern"),
    ]
)
_OF_EXAMPLES = re.compile(
    r"(?i)(?:^|/)(?:examples?|scripts?|recipes?|configs?|launch(?:ers?)?|jobs?|experiments?)/"
)
# What a folder of others' code has below it.
_OF_PACKAGES = re.compile(
    r"(?i)(?:.*/)?(?:setup\.(?:py|cfg)|pyproject\.toml|__init__\.py|\.git|licen[cs]e[^/]*|copying[^/]*)"
)
_SUBMODULE = re.compile(r"(?m)^\s*path\s*=\s*(\S+)")

_AUXILIARY_FOLDERS = frozenset(
    [
        "test",
        "tests",
        "testing",
        "unittest",
        "unittests",
        "doc",
        "docs",
        *_OTHERS_FOLDERS,
        ".github",
        ".circleci",
        ".gitlab",
        ".buildkite",
        ".devcontainer",
        ".vscode",
    ]
)
_AUXILIARY_FILE = re.compile(r"test_.*\.py|.*_test\.py|conftest\.py|.*\.gitlab-ci\.ya?ml")


def kind_of(path: str, head: bytes = b"") -> FileKind:
    """What the file at ``path`` is read as; ``head`` (its first bytes) settles the rest.

    ``head`` matters for files without an extension (shebang) and for conda environments.
    """
    parent, name = posixpath.split(path.lower())
    stem, suffix = posixpath.splitext(name)
    if name == "config" and ".git" in parent.split("/"):
        return FileKind.GIT_CONFIG
    if name in _OTHER_NAMES or name.endswith(_DATA_SUFFIXES):
        return FileKind.OTHER
    if _names_requirements(stem, suffix, name, posixpath.basename(parent)):
        return FileKind.REQUIREMENTS
    if _CONDA.fullmatch(name) and (not head or b"dependencies:" in head):
        return FileKind.REQUIREMENTS
    if _DOCKERFILE.fullmatch(name) and suffix not in (".py", ".md", ".sh"):
        return FileKind.DOCKERFILE
    if _MAKEFILE.fullmatch(name) and suffix not in (".py", ".md", ".sh"):
        return FileKind.MAKEFILE
    if suffix == _TEMPLATE:
        return FileKind.YAML if _HELM_VALUES.search(head) else FileKind.OTHER
    known = _BY_SUFFIX.get(suffix)
    return known if known is not None else _by_shebang(head)


def _names_requirements(stem: str, suffix: str, name: str, folder: str) -> bool:
    if name in _REQUIREMENT_NAMES:
        return True
    if suffix not in (".txt", ".in", ".pip"):
        return False
    return bool(_REQUIREMENTS_TXT.fullmatch(stem)) or folder in ("requirements", "constraints")


def _by_shebang(head: bytes) -> FileKind:
    match = _SHEBANG.match(head)
    if match is None:
        return FileKind.OTHER
    return FileKind.PYTHON if match.group(1) else FileKind.SHELL


def is_auxiliary(path: str) -> bool:
    """Whether ``path`` (relative to the project) is a test, a document, or others' code."""
    folder, name = posixpath.split(path)
    return bool(_AUXILIARY_FILE.fullmatch(name)) or any(
        part.lower() in _AUXILIARY_FOLDERS for part in folder.split("/")
    )


class Project:
    """A project's files; facts are read when asked for, and kept.

    No path outside ``root`` is ever opened: a link that leads out of it is a problem.
    """

    def __init__(
        self, root: Path, found: Mapping[str, FileKind], problems: Sequence[Problem] = ()
    ) -> None:
        self.root = root
        self._found = dict(found)
        self._walk_problems = tuple(problems)
        self._facts: dict[str, Optional[Facts]] = {}
        self._folders: Optional[frozenset[str]] = None
        self._library: Optional[Library] = None
        self._others: dict[str, bool] = {}

    @classmethod
    def open(cls, root: Union[str, os.PathLike[str]], *, exclude: Sequence[str] = ()) -> Project:
        """The project at ``root`` (a folder, or one file of it).

        ``exclude`` has gitignore patterns relative to ``root``. ``.gitignore`` itself is not
        honoured: launch scripts with private paths are often ignored. Raises
        :class:`FileNotFoundError` when there is no such path.
        """
        path = Path(os.path.realpath(root))
        if path.is_file():
            return cls(path.parent, {path.name: _kind_at(path, path.name)})
        if not path.is_dir():
            raise FileNotFoundError(f"no such file or folder: {os.fspath(root)}")
        walk = _Walk(path, exclude)
        walk.run()
        return cls(path, walk.found, walk.problems)

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of all files walked, relative, posix, sorted."""
        return tuple(self._found)

    def kind(self, path: str) -> FileKind:
        """Kind of a file, walked or found by :meth:`find`."""
        if path in self._found:
            return self._found[path]
        return _kind_at(self.root / path, path) if self._real_file(path) else kind_of(path)

    def is_auxiliary(self, path: str) -> bool:
        """Whether ``path`` is a test, a document, or others' code (:func:`is_auxiliary`).

        A folder ``external`` of examples, without a package of its own, is no other's.
        """
        if not is_auxiliary(path):
            return False
        parts = path.split("/")
        named = [i for i, part in enumerate(parts[:-1]) if part.lower() in _AUXILIARY_FOLDERS]
        return bool(not named or _AUXILIARY_FILE.fullmatch(parts[-1])) or any(
            parts[i].lower() not in _OTHERS_FOLDERS or self._is_others("/".join(parts[: i + 1]))
            for i in named
        )

    def _is_others(self, folder: str) -> bool:
        """Whether a folder of a name for others' code is none of examples or holds a package."""
        if folder not in self._others:
            start = f"{folder}/"
            below = [path[len(start) :] for path in self._found if path.startswith(start)]
            text = (self.content(".gitmodules", 100_000) or b"").decode("utf-8", "replace")
            modules = (path.strip("/") for path in _SUBMODULE.findall(text))
            self._others[folder] = (
                not below
                or _OF_EXAMPLES.search(folder) is None
                or any(_OF_PACKAGES.fullmatch(path) for path in below)
                or any(f"{path}/".startswith(start) for path in modules)
            )
        return self._others[folder]

    # --- facts ---

    def read(self, path: str) -> Optional[Facts]:
        """Facts of one file by its kind; None when it is of no kind that is read.

        Never raises: what could not be read is in the facts' ``problems``.
        """
        if path not in self._facts:
            kind = self.kind(path)
            self._facts[path] = self._read(path, kind, self._bytes(path, kind))
        return self._facts[path]

    @property
    def paths_read(self) -> frozenset[str]:
        """Paths of the files whose facts were asked for so far."""
        return frozenset(self._facts)

    def python_files(
        self, skip: Callable[[str], bool] = lambda path: False
    ) -> Iterator[PythonFile]:
        """Facts of Python files and notebooks with a trace of GPU work, in path order.

        Paths for which ``skip`` is true are not opened.
        """
        for path, content in self.python_sources(skip):
            if path not in self._facts:
                self._facts[path] = self._read(path, self.kind(path), content)
            facts = self._facts[path]
            if isinstance(facts, PythonFile):
                yield facts

    def python_sources(
        self, skip: Callable[[str], bool] = lambda path: False
    ) -> Iterator[tuple[str, Union[bytes, Problem]]]:
        """Paths and contents of Python files and notebooks with a trace of GPU work.

        A scan of the bytes often tells that a file need not be read for facts.
        """
        from flake8_gpu_training.sources.python import is_relevant

        for path in self._of(PYTHON_KINDS):
            if not skip(path):
                content = self._bytes(path, self.kind(path))
                if isinstance(content, Problem) or is_relevant(content):
                    yield path, content

    def scripts(self) -> Iterator[ScriptFile]:
        """Facts of shell scripts, Makefiles and Dockerfiles, in path order."""
        for path in self._of(SCRIPT_KINDS):
            facts = self.read(path)
            if isinstance(facts, ScriptFile):
                yield facts

    def configs(self) -> Iterator[ConfigFile]:
        """Facts of YAML, JSON and TOML files, in path order."""
        for path in self._of(CONFIG_KINDS):
            facts = self.read(path)
            if isinstance(facts, ConfigFile):
                yield facts

    def command_line(self, text: str, path: str) -> ScriptFile:
        """Facts of a line of shell text at the root: what the scripts it starts do is its own."""
        from flake8_gpu_training.sources.shell import read_shell

        return read_shell(text, path, library=self._scripts_to_follow())

    def requirements(self) -> Iterator[RequirementsFile]:
        """Facts of requirements, setup, environment and lock files, in path order."""
        for path in self._of(frozenset({FileKind.REQUIREMENTS})):
            facts = self.read(path)
            if isinstance(facts, RequirementsFile):
                yield facts

    def content(self, path: str, limit: int) -> Optional[bytes]:
        """The bytes of a file of the project, data files too; None when longer than ``limit``."""
        try:
            if not self._real_file(path):
                return None
            with (self.root / path).open("rb") as file:
                data = file.read(limit + 1)
        except OSError:
            return None
        return data if len(data) <= limit else None

    def git_config(self) -> Optional[GitConfig]:
        """Facts of ``.git/config``, when the project has one within its root."""
        path = self._git_config_path()
        if path is None:
            return None
        if path not in self._facts:
            data = self._bytes(path, FileKind.GIT_CONFIG)
            self._facts[path] = self._read(path, FileKind.GIT_CONFIG, data)
        facts = self._facts[path]
        return facts if isinstance(facts, GitConfig) else None

    def problems(self) -> tuple[Problem, ...]:
        """Problems of the walk and of every file read so far, sorted by place."""
        found = list(self._walk_problems)
        for facts in self._facts.values():
            if facts is not None:
                found += facts.problems
        return tuple(sorted(found, key=lambda problem: (problem.location, problem.message)))

    def _of(self, kinds: frozenset[FileKind]) -> Iterator[str]:
        return (path for path, kind in self._found.items() if kind in kinds)

    # --- finding ---

    def find(self, path: str, relative_to: str = "", directory: str = "") -> Optional[str]:
        """The project file that a command or a configuration names, or None.

        ``relative_to`` is the file that names it and ``directory`` where its ``cd``s led.
        Tried in turn: the naming file's folder, its parents, up to the project's root; a
        script may be started from any of them.
        """
        if not path or "\0" in path or "\n" in path or path.startswith("~"):
            return None
        if posixpath.isabs(path):
            within = self._within(posixpath.relpath(path, self.root.as_posix()))
            return within or led_back(posixpath.normpath(path), self._shown, self._is_walked)
        if posixpath.isabs(directory):
            return self.find(posixpath.join(directory, path))
        folder = posixpath.dirname(relative_to)
        while True:
            found = self._within(posixpath.join(folder, directory, path))
            if found is not None or not folder:
                return found
            folder = posixpath.dirname(folder)

    @cached_property
    def _shown(self) -> tuple[Shown, ...]:
        """Which of the project's folders its containers hold, as its files say."""
        found: list[Shown] = []
        for path, kind in self._found.items():
            is_dockerfile = kind is FileKind.DOCKERFILE
            if is_dockerfile or kind in SCRIPT_KINDS or _TELLS_OF_CONTAINERS.fullmatch(path):
                text = (self.content(path, MAX_TOLD) or b"").decode("utf-8", "replace")
                found += shown_by(path, text, is_dockerfile)
        return tuple(found)

    def _is_walked(self, path: str) -> bool:
        return path in self._found

    def _within(self, path: str) -> Optional[str]:
        """Normalised ``path`` when it is a regular file inside the root."""
        normal = posixpath.normpath(path)
        if normal == ".." or normal.startswith("../"):
            return None
        if normal in self._found or self._real_file(normal):
            return normal
        return None

    def is_above(self, path: str) -> bool:
        """Whether a folder around the project, which may be a part of more, has such a file."""
        try:
            return any((folder / path).exists() for folder in self.root.parents[:_AROUND])
        except (OSError, ValueError):
            return True

    def _real_file(self, path: str) -> bool:
        try:
            full = self.root / path
            return full.is_file() and _is_inside(full, self.root)
        except (OSError, ValueError):
            return False

    def _git_config_path(self) -> Optional[str]:
        if self._real_file(".git/config"):
            return ".git/config"
        # A worktree or submodule: ``.git`` is a file that names the folder.
        if not self._real_file(".git"):
            return None
        try:
            text = _head(self.root / ".git").decode("utf-8", "replace")
        except OSError:
            return None
        match = re.match(r"gitdir: *(.+)", text)
        return self.find(posixpath.join(match.group(1).strip(), "config")) if match else None

    # --- reading ---

    def _bytes(self, path: str, kind: FileKind) -> Union[bytes, Problem]:
        """The file's content, or why it is not read."""
        full = self.root / path
        limit = MAX_BYTES.get(kind, 0)
        try:
            if not _is_inside(full, self.root) or not full.is_file():
                return Problem(ProblemKind.UNREADABLE, NOT_THERE, Location(path))
            with full.open("rb") as file:
                data = file.read(limit + 1)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "cannot be read"
            return Problem(ProblemKind.UNREADABLE, reason, Location(path))
        if len(data) > limit and kind is not FileKind.OTHER:
            return Problem(
                ProblemKind.TOO_LARGE, f"larger than {limit:,} bytes, not read", Location(path)
            )
        if data.startswith(_LFS_POINTER):
            message = "the content is in Git LFS and not here (git lfs pull)"
            return Problem(ProblemKind.UNSUPPORTED, message, Location(path))
        return data

    def _read(self, path: str, kind: FileKind, data: Union[bytes, Problem]) -> Optional[Facts]:
        if kind is FileKind.OTHER:
            return None
        if isinstance(data, Problem):
            return _CONTAINERS[kind](path, problems=(data,))
        try:
            if kind is FileKind.SHELL:
                return _read_shell(data, path, self._scripts_to_follow())
            if kind is FileKind.YAML:
                return _read_yaml(data, path, self._named_by_job)
            return _READERS[kind](data, path)
        except Exception as error:  # a reader's own fault must not cost the other files
            message = f"the reader failed ({type(error).__name__})"
            problem = Problem(ProblemKind.UNSUPPORTED, message, Location(path))
            return _CONTAINERS[kind](path, problems=(problem,))

    def _scripts_to_follow(self) -> Library:
        if self._library is None:
            from flake8_gpu_training.sources.shell import Library

            self._library = Library(self._shell_script, self._content)
        return self._library

    def _named_by_job(self, name: str, near: str) -> Optional[tuple[str, str]]:
        """Text and path of an environment file that the job file ``near`` names."""
        return self._scripts_to_follow().text(name, near, "")

    def _shell_script(self, name: str, path: str, directory: str) -> Optional[str]:
        """A shell script, or a file that a script may source or hand on: ``.env``."""
        found = self.find(name, path, directory)
        if found is None and posixpath.isabs(name):
            found = self._with_end(name)
        if found is None or self.kind(found) not in (FileKind.SHELL, FileKind.OTHER):
            return None
        return found

    def _with_end(self, name: str) -> Optional[str]:
        """The one shell script of the project whose last two parts are those of ``name``."""
        end = "/".join(posixpath.normpath(name).split("/")[-2:])
        same = [path for path in self._of(_SHELL) if f"/{path}".endswith(f"/{end}")]
        return same[0] if len(same) == 1 else None

    def _content(self, path: str) -> Optional[bytes]:
        data = self._bytes(path, FileKind.SHELL)
        return data if isinstance(data, bytes) else None


def _is_inside(full: Path, root: Path) -> bool:
    real = os.path.realpath(full)
    return real == str(root) or real.startswith(str(root).rstrip(os.sep) + os.sep)


def _kind_at(full: Path, path: str) -> FileKind:
    """Kind of a regular file, whose first bytes are looked at when its name leaves it open."""
    kind = kind_of(path)
    name = posixpath.basename(path).lower()
    suffix = posixpath.splitext(name)[1]
    is_open = kind is FileKind.OTHER and (
        "." not in name.lstrip(".") or suffix in _SCRIPT_SUFFIXES or suffix == _TEMPLATE
    )
    if is_open or (kind is FileKind.REQUIREMENTS and _CONDA.fullmatch(name)):
        try:
            return kind_of(path, _head(full))
        except OSError:
            return kind
    return kind


def _head(full: Path) -> bytes:
    with full.open("rb") as file:
        return file.read(_HEAD)


# --- the walk -----------------------------------------------------------------------


class _Walk:
    """One walk over a folder; links to folders are not followed, so there are no loops."""

    def __init__(self, root: Path, exclude: Sequence[str]) -> None:
        self.root = root
        self.found: dict[str, FileKind] = {}
        self.problems: list[Problem] = []
        self.exclude: Optional[pathspec.GitIgnoreSpec] = _patterns(exclude)

    def run(self) -> None:
        """Fill ``found`` (in path order) and ``problems``."""
        folders = [""]
        while folders and len(self.found) < MAX_FILES:
            folders += self._folder(folders.pop())
        if folders:
            self._note(ProblemKind.TOO_LARGE, f"more than {MAX_FILES:,} files, rest not seen", "")
        self.found = dict(sorted(self.found.items()))

    def _note(self, kind: ProblemKind, message: str, path: str) -> None:
        self.problems.append(Problem(kind, message, Location(path or ".")))

    def _folder(self, folder: str) -> list[str]:
        """Note a folder's files; its subfolders that are to be walked."""
        try:
            with os.scandir(self.root / folder) as entries:
                children = list(entries)
        except OSError as error:
            self._note(ProblemKind.UNREADABLE, error.strerror or "cannot be read", folder)
            return []
        if folder and _is_generated(posixpath.basename(folder), {c.name for c in children}):
            return []
        inner: list[str] = []
        for entry in children:
            path = f"{folder}/{entry.name}" if folder else entry.name
            try:
                path.encode("utf-8")
            except UnicodeEncodeError:
                shown = path.encode("utf-8", "replace").decode("utf-8")
                self._note(ProblemKind.ENCODING, "a file name that is not UTF-8", shown)
                continue
            if self._is_folder(entry, path):
                inner.append(path)
        return inner

    def _is_folder(self, entry: os.DirEntry[str], path: str) -> bool:
        """Note ``entry`` if it is a file; whether it is a folder to walk."""
        try:
            if entry.is_symlink():
                self._link(entry, path)
                return False
            if entry.is_dir(follow_symlinks=False):
                return not self._is_skipped(entry.name) and not self._is_excluded(path + "/")
            if entry.is_file(follow_symlinks=False) and not self._is_excluded(path):
                self.found[path] = _kind_at(Path(entry.path), path)
        except OSError as error:
            self._note(ProblemKind.UNREADABLE, error.strerror or "cannot be read", path)
        return False

    def _is_skipped(self, name: str) -> bool:
        return name in _SKIPPED or name.endswith((".egg-info", ".dist-info"))

    def _is_excluded(self, path: str) -> bool:
        return self.exclude is not None and self.exclude.match_file(path)

    def _link(self, entry: os.DirEntry[str], path: str) -> None:
        """A link inside the project leads to what is walked anyway; others are refused."""
        if self._is_excluded(path):
            return
        if not _is_inside(Path(entry.path), self.root):
            self._note(ProblemKind.UNREADABLE, "a link out of the project, not followed", path)


def _is_generated(name: str, children: set[str]) -> bool:
    if children & _MARKERS:
        return True
    pattern = _GENERATED.get(name)
    return pattern is not None and any(pattern.fullmatch(child) for child in children)


def _patterns(exclude: Sequence[str]) -> Optional[pathspec.GitIgnoreSpec]:
    if not exclude:
        return None
    import pathspec

    return pathspec.GitIgnoreSpec.from_lines(exclude)


# --- readers, each imported when first needed ----------------------------------------


def _read_python(data: bytes, path: str) -> Facts:
    from flake8_gpu_training.sources.python import read_python

    return read_python(data, path)


def _read_notebook(data: bytes, path: str) -> Facts:
    from flake8_gpu_training.sources.notebook import read_notebook

    return read_notebook(data, path)


def _read_shell(data: bytes, path: str, library: Library) -> Facts:
    from flake8_gpu_training.sources.shell import read_shell
    from flake8_gpu_training.sources.text import decode

    text, problems = decode(data, path)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        message = "UTF-16 text, which no shell reads: save it as UTF-8"
        problems = (*problems, Problem(ProblemKind.ENCODING, message, Location(path)))
    facts = read_shell(text, path, library=library)
    return dataclasses.replace(facts, problems=(*problems, *facts.problems))


def _script_reader(module: str, function: str) -> Callable[[bytes, str], Facts]:
    def read(data: bytes, path: str) -> Facts:
        from importlib import import_module

        from flake8_gpu_training.sources.text import decode

        text, problems = decode(data, path)
        reader = getattr(import_module(f"flake8_gpu_training.sources.{module}"), function)
        facts: ScriptFile = reader(text, path)
        return dataclasses.replace(facts, problems=(*problems, *facts.problems))

    return read


def _read_yaml(
    data: bytes, path: str, read: Callable[[str, str], Optional[tuple[str, str]]]
) -> Facts:
    from flake8_gpu_training.sources.job import with_job
    from flake8_gpu_training.sources.yaml_source import read_yaml

    return with_job(read_yaml(data, path), read)


def _read_json(data: bytes, path: str) -> Facts:
    from flake8_gpu_training.sources.json_source import read_json

    return read_json(data, path)


def _read_toml(data: bytes, path: str) -> Facts:
    from flake8_gpu_training.sources.toml_source import read_toml

    return read_toml(data, path)


def _read_requirements(data: bytes, path: str) -> Facts:
    from flake8_gpu_training.sources.requirements import read_requirements

    return read_requirements(data, path)


def _read_git_config(data: bytes, path: str) -> Facts:
    from flake8_gpu_training.sources.git import read_git_config

    return read_git_config(data, path)


_READERS: Mapping[FileKind, Callable[[bytes, str], Facts]] = {
    FileKind.PYTHON: _read_python,
    FileKind.NOTEBOOK: _read_notebook,
    FileKind.MAKEFILE: _script_reader("makefile", "read_makefile"),
    FileKind.DOCKERFILE: _script_reader("dockerfile", "read_dockerfile"),
    FileKind.JSON: _read_json,
    FileKind.TOML: _read_toml,
    FileKind.REQUIREMENTS: _read_requirements,
    FileKind.GIT_CONFIG: _read_git_config,
}
_CONTAINERS: Mapping[FileKind, Callable[..., Facts]] = {
    FileKind.PYTHON: PythonFile,
    FileKind.NOTEBOOK: PythonFile,
    FileKind.SHELL: ScriptFile,
    FileKind.MAKEFILE: ScriptFile,
    FileKind.DOCKERFILE: ScriptFile,
    FileKind.YAML: ConfigFile,
    FileKind.JSON: ConfigFile,
    FileKind.TOML: ConfigFile,
    FileKind.REQUIREMENTS: RequirementsFile,
    FileKind.GIT_CONFIG: GitConfig,
}
