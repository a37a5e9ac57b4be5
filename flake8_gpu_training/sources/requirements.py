"""Reads what a project depends on: requirements, setup, environment and lock files, images."""

from __future__ import annotations

import ast
import posixpath
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Callable, Optional, Union

from packaging.requirements import InvalidRequirement
from packaging.requirements import Requirement as ParsedRequirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from flake8_gpu_training.facts import (
    Command,
    ConfigFile,
    Document,
    Entry,
    Location,
    Node,
    Problem,
    ProblemKind,
    Requirement,
    RequirementsFile,
)
from flake8_gpu_training.sources.text import decode

MAX_BYTES = 1_000_000
MAX_LOCK_BYTES = 20_000_000
MAX_REQUIREMENTS = 10_000
_MAX_LINE = 5_000

_Found = list[Requirement]
_Reader = Callable[[str, str], tuple[_Found, list[Problem]]]

_COMMENT = re.compile(r"(?:^|\s+)#.*$")
_OPTION_TAIL = re.compile(r"\s+--(?:hash|global-option|config-settings?|install-option)\b.*$")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9][\w.-]*)")
_AT = re.compile(r"([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*@\s*(\S+)")
_REPOSITORY = re.compile(
    r"(?:git|hg|svn|bzr)\+\S*?(?:[/:](?P<owner>[\w.-]+))?/(?P<name>[\w.-]+?)(?:\.git)?/?"
    r"(?:@(?P<at>[\w./+-]+))?(?:[#?].*)?$"
)
_WHEEL = re.compile(r"([A-Za-z0-9][\w.]*?)-(\d[\w.+!]*?)(?:-\d\w*)?-[\w.]+-[\w.]+-[\w.]+\.whl$")
# What ``pip freeze`` writes above an editable install that has no address (pip, freeze.py).
_EDITABLE = re.compile(r"# Editable [^()]*\(([A-Za-z0-9][\w.-]*==[^\s()]+)\):?\s*")
_RELEASE_TAG = re.compile(r"v?(\d+(?:\.\d+)+(?:(?:a|b|rc|\.post|\.dev)\d+)*)$")
_CONDA_SPEC = re.compile(
    r"(?:[\w./-]+::)?([A-Za-z0-9_][\w.-]*)(?:\[.*\])?\s*((?:[<>!=~]=?|=)[^\s#]*)?(?:\s+(\S+))?"
)
# conda's names of packages that pip knows by another.
_CONDA_NAMES = {"pytorch": "torch", "pytorch-gpu": "torch", "pytorch-cuda": ""}


def read_requirements(text: Union[str, bytes], path: str) -> RequirementsFile:
    """Requirements of a file, told by its name; never raises.

    Handles requirements and constraints files, pyproject.toml, setup.py (read, not run),
    setup.cfg, conda environments, Pipfile, pixi.toml and the locks of poetry, uv, pdm and
    pipenv. A requirement has a ``version`` when it is pinned exactly or locked.
    """
    limit = MAX_LOCK_BYTES if path.endswith(".lock") else MAX_BYTES
    if len(text) > limit:
        problem = Problem(ProblemKind.TOO_LARGE, f"larger than {limit:,} bytes", Location(path))
        return RequirementsFile(path, problems=(problem,))
    content, problems = decode(text, path)
    if any(problem.kind is ProblemKind.UNREADABLE for problem in problems):
        return RequirementsFile(path, problems=problems)
    reader = _reader_of(path)
    found, more = reader(content, path)
    includes = included_files(content) if reader is _requirements_txt else ()
    return RequirementsFile(path, tuple(found), (*problems, *more), includes)


def _reader_of(path: str) -> _Reader:
    name = posixpath.basename(path).lower()
    known = _BY_NAME.get(name)
    if known is not None:
        return known
    if name.endswith((".yml", ".yaml")):
        return _conda_environment
    if name.endswith(".lock"):
        return _toml_lock
    return _requirements_txt


# --- one requirement ----------------------------------------------------------------


def requirement(text: str, location: Location) -> Optional[Requirement]:
    """The requirement that ``text`` (PEP 508, a URL or a path) states, or None.

    One whose marker excludes Linux, the system of training machines, is none.
    """
    text = text.strip().rstrip(",;").strip()
    if not text or len(text) > _MAX_LINE:
        return None
    try:
        parsed = ParsedRequirement(text)
    except (InvalidRequirement, RecursionError):
        return _by_address(text, location)
    if not _applies(parsed):
        return None
    if parsed.url:
        return _by_address(text, location)
    version = _exact(str(parsed.specifier))
    return Requirement(canonicalize_name(parsed.name), str(parsed.specifier), location, version)


def _applies(parsed: ParsedRequirement) -> bool:
    if parsed.marker is None or "extra" in str(parsed.marker):
        return True
    environment = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
    environment["platform_machine"] = "x86_64"
    try:
        if "python" in str(parsed.marker) or "implementation" in str(parsed.marker):
            return True
        return parsed.marker.evaluate(environment)
    except (ValueError, KeyError, TypeError):
        return True


def _exact(specifier: str) -> str:
    """The version of ``==1.2.3`` (not of ``==1.2.*`` or of a range), else ``""``."""
    match = re.fullmatch(r"={2,3}\s*([^\s,*]+)", specifier.strip())
    return _public(match.group(1)) if match else ""


def _public(version: str) -> str:
    """A version without its local part (``2.4.0+cu121``), or ``""`` when it is none."""
    try:
        return Version(version).public
    except InvalidVersion:
        return ""


def _by_address(text: str, location: Location) -> Optional[Requirement]:
    """A requirement given by an address: ``name @ url``, ``git+…#egg=name``, a wheel."""
    named = _AT.match(text)
    egg = _EGG.search(text)
    address = (named.group(2) if named else text).partition(";")[0].strip()
    wheel = _WHEEL.search(posixpath.basename(address.partition("#")[0]).replace("%2B", "+"))
    repository = _REPOSITORY.match(address)
    if named:
        name = named.group(1)
    elif egg:
        name = egg.group(1)
    elif wheel:
        name = wheel.group(1)
    elif repository:
        name = repository.group("name")
    else:
        return None
    version = _public(wheel.group(2)) if wheel else _tag(repository)
    specifier = f"=={version}" if version else ""
    trunk = _trunk(repository)
    return Requirement(canonicalize_name(name), specifier, location, version, not version, trunk)


def _trunk(repository: Optional[re.Match[str]]) -> str:
    """``owner/name`` of a repository that is taken at no commit or tag of its own, or empty."""
    if repository is None or (repository.group("at") or "main") not in ("main", "master", "HEAD"):
        return ""
    owner = repository.group("owner")
    return f"{owner}/{repository.group('name')}" if owner else ""


def _tag(repository: Optional[re.Match[str]]) -> str:
    """Version of a repository's release tag (``@v0.9.1``); a branch or commit has none."""
    if repository is None or not repository.group("at"):
        return ""
    match = _RELEASE_TAG.match(repository.group("at"))
    return match.group(1) if match else ""


def _locked(name: object, version: object, location: Location) -> Optional[Requirement]:
    if not isinstance(name, str) or not isinstance(version, str) or not name:
        return None
    public = _public(version)
    return Requirement(canonicalize_name(name), f"=={version}", location, public)


# --- requirements.txt ---------------------------------------------------------------


def _requirements_txt(text: str, path: str) -> tuple[_Found, list[Problem]]:
    found: _Found = []
    for line, column, number in _logical_lines(text):
        editable = re.match(r"(?:-e|--editable)[\s=]+", line)
        if line.startswith("-") and not editable:
            continue  # -r, -c, --index-url …: other files are read on their own
        stated = line[editable.end() :] if editable else line
        parsed = requirement(_OPTION_TAIL.sub("", stated), Location(path, number, column))
        if parsed is not None:
            found.append(parsed)
        if len(found) > MAX_REQUIREMENTS:
            message = f"more than {MAX_REQUIREMENTS:,} requirements"
            return found, [Problem(ProblemKind.TOO_LARGE, message, Location(path, number))]
    return [*found, *_frozen_editables(text, path)], []


def _frozen_editables(text: str, path: str) -> Iterator[Requirement]:
    """Editable installs whose version only the comment of ``pip freeze`` tells."""
    for number, line in enumerate(text.splitlines(), start=1):
        comment = _EDITABLE.fullmatch(line) if len(line) < _MAX_LINE else None
        stated = requirement(comment.group(1), Location(path, number, 1)) if comment else None
        if stated is not None:
            yield stated


def _logical_lines(text: str) -> Iterator[tuple[str, int, int]]:
    """Lines with continuations joined and comments removed: text, column, number."""
    parts: list[str] = []
    first = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if not parts:
            first = number
            indent = len(line) - len(line.lstrip())
        if line.endswith("\\") and not line.lstrip().startswith("#"):
            parts.append(line[:-1])
            continue
        parts.append(line)
        joined = _COMMENT.sub("", "".join(parts)).strip() if len(line) < _MAX_LINE else ""
        parts = []
        if joined:
            yield joined, indent + 1, first


def included_files(text: str) -> tuple[str, ...]:
    """Files that a requirements file names with ``-r`` or ``-c``."""
    pattern = re.compile(r"(?:-r|-c|--requirement|--constraint)[\s=]*(\S+)")
    matches = (pattern.match(line) for line, _, _ in _logical_lines(text))
    return tuple(match.group(1) for match in matches if match)


# --- TOML ---------------------------------------------------------------------------


def _toml(text: str, path: str) -> tuple[Optional[Document], list[Problem]]:
    from flake8_gpu_training.sources.toml_source import read_toml

    return _document(read_toml(text, path))


def _document(config: ConfigFile) -> tuple[Optional[Document], list[Problem]]:
    return (config.documents[0] if config.documents else None), list(config.problems)


def _pyproject(text: str, path: str) -> tuple[_Found, list[Problem]]:
    document, problems = _toml(text, path)
    if document is None:
        return [], problems
    found = _listed(document.get("project.dependencies"))
    found += _python(document.get("project.requires-python"))
    for groups in ("project.optional-dependencies", "dependency-groups"):
        found += _groups(document.get(groups))
    for groups in ("tool.pdm.dev-dependencies", "tool.uv.dev-dependencies"):
        node = document.get(groups)
        found += _listed(node) if node is not None and node.items else _groups(node)
    found += _poetry(document)
    found += _pixi_tables(document, "tool.pixi.")
    return found, problems


def _python(node: Optional[Node]) -> _Found:
    """The versions of Python itself, as a requirement."""
    stated = node.value if node is not None else None
    if node is None or not isinstance(stated, str):
        return []
    found = requirement(f"python {stated.strip()}", node.location)
    return [found] if found is not None else []


def _groups(node: Optional[Node]) -> _Found:
    if node is None:
        return []
    return [found for entry in node.mapping.values() for found in _listed(entry.node)]


def _listed(node: Optional[Node]) -> _Found:
    """Requirements of an array of PEP 508 strings."""
    if node is None:
        return []
    parsed = (
        requirement(item.value, item.location) for item in node.items if isinstance(item.value, str)
    )
    return [found for found in parsed if found is not None]


def _poetry(document: Document) -> _Found:
    found: _Found = []
    tables = [
        document.get("tool.poetry.dependencies"),
        document.get("tool.poetry.dev-dependencies"),
    ]
    groups = document.get("tool.poetry.group")
    for entry in groups.mapping.values() if groups is not None else ():
        dependencies = entry.node.mapping.get("dependencies")
        tables.append(dependencies.node if dependencies is not None else None)
    for table in tables:
        found += _table(table)
    return found


def _table(node: Optional[Node]) -> _Found:
    """Requirements of a table ``name = "specifier"`` or ``name = {version = …}``."""
    found: _Found = []
    for entry in node.mapping.values() if node is not None else ():
        found.append(_table_entry(entry))
    return found


def _table_entry(entry: Entry) -> Requirement:
    node = entry.node.items[0] if entry.node.items else entry.node
    version = node.mapping.get("version") if node.mapping else None
    stated = version.node.value if version is not None else node.value
    tag = node.mapping.get("tag") or node.mapping.get("rev")
    if tag is not None and isinstance(tag.node.value, str):
        match = _RELEASE_TAG.match(tag.node.value)
        stated = f"=={match.group(1)}" if match else ""
    specifier = _pep440(stated) if isinstance(stated, str) else ""
    name = canonicalize_name(entry.key)
    return Requirement(name, specifier, entry.location, _exact(specifier))


def _pep440(stated: str) -> str:
    """A poetry, pipenv or pixi specifier in PEP 440's words; ``""`` when it has none.

    A bare version is exact for poetry and conda; ``^1.2`` allows up to the next number at
    the left that is not zero.
    """
    return ",".join(filter(None, (_pep440_part(part) for part in stated.split(","))))


def _pep440_part(part: str) -> str:
    part = part.strip()
    if part in ("", "*") or "||" in part:
        return ""
    if part.startswith("^"):
        return _caret(part[1:].strip())
    if part.startswith("~") and not part.startswith("~="):
        return _tilde(part[1:].strip())
    if part[0].isdigit():
        return f"=={part}"
    if part.startswith("=") and not part.startswith("=="):
        return f"={part}"
    return part.replace(" ", "") if part[0] in "<>=!~" else ""


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d{1,18}", version.partition("+")[0])[:4]]


def _caret(version: str) -> str:
    numbers = _numbers(version)
    if not numbers:
        return ""
    at = next((i for i, number in enumerate(numbers) if number), len(numbers) - 1)
    upper = [*numbers[:at], numbers[at] + 1]
    return f">={version},<{'.'.join(map(str, upper))}"


def _tilde(version: str) -> str:
    numbers = _numbers(version)
    if not numbers:
        return ""
    at = min(1, len(numbers) - 1)
    upper = [*numbers[:at], numbers[at] + 1]
    return f">={version},<{'.'.join(map(str, upper))}"


def _toml_lock(text: str, path: str) -> tuple[_Found, list[Problem]]:
    """poetry.lock, uv.lock and pdm.lock: ``[[package]]`` tables with name and version.

    Read line by line: such files have megabytes, nearly all of them hashes.
    """
    found: _Found = []
    name = ""
    inside = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("["):
            inside = line.startswith("[[package]]")
            name = ""
        elif inside and line.startswith(("name = ", "version = ")):
            key, _, value = line.partition(" = ")
            value = value.strip().strip("\"'")
            if key == "name":
                name = value
            elif name:
                locked = _locked(name, value, Location(path, number))
                found += [locked] if locked is not None else []
    return found, []


def _pipfile(text: str, path: str) -> tuple[_Found, list[Problem]]:
    document, problems = _toml(text, path)
    if document is None:
        return [], problems
    tables = (document.get("packages"), document.get("dev-packages"))
    return [found for table in tables for found in _table(table)], problems


def _pipfile_lock(text: str, path: str) -> tuple[_Found, list[Problem]]:
    from flake8_gpu_training.sources.json_source import read_json

    document, problems = _document(read_json(text, path))
    found: _Found = []
    for section in ("default", "develop") if document is not None else ():
        node = document.get(section) if document is not None else None
        for entry in node.mapping.values() if node is not None else ():
            version = entry.node.mapping.get("version")
            stated = version.node.value if version is not None else None
            if isinstance(stated, str):
                locked = _locked(entry.key, stated.lstrip("="), entry.location)
                found += [locked] if locked is not None else []
    return found, problems


def _pixi(text: str, path: str) -> tuple[_Found, list[Problem]]:
    document, problems = _toml(text, path)
    return ([] if document is None else _pixi_tables(document, "")), problems


def _pixi_tables(document: Document, prefix: str) -> _Found:
    found = [_conda_named(item) for item in _table(document.get(f"{prefix}dependencies"))]
    found += _table(document.get(f"{prefix}pypi-dependencies"))
    features = document.get(f"{prefix}feature")
    for entry in features.mapping.values() if features is not None else ():
        for key in ("dependencies", "pypi-dependencies"):
            table = entry.node.mapping.get(key)
            found += _table(table.node) if table is not None else []
    return [item for item in found if item.name]


def _conda_named(found: Requirement) -> Requirement:
    name = _CONDA_NAMES.get(found.name, found.name)
    return Requirement(name, found.specifier, found.location, found.version)


# --- setup.py, setup.cfg ------------------------------------------------------------


def _setup_py(text: str, path: str) -> tuple[_Found, list[Problem]]:
    """``install_requires`` and ``extras_require`` of the call of ``setup``, unexecuted."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as error:
        location = Location(path, error.lineno or 1, error.offset or 1)
        return [], [Problem(ProblemKind.SYNTAX, error.msg or "not Python", location)]
    except (ValueError, RecursionError, MemoryError):
        return [], [Problem(ProblemKind.UNSUPPORTED, "not readable as Python", Location(path))]
    values = _assignments(tree)
    found: _Found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node.func) == "setup":
            for keyword in node.keywords:
                if keyword.arg == "python_requires":
                    found += _python_of_setup(keyword.value, path)
                elif keyword.arg in ("install_requires", "extras_require"):
                    found += _literal_requirements(keyword.value, values, path)
    return found, []


def _python_of_setup(node: ast.expr, path: str) -> _Found:
    stated = node.value if isinstance(node, ast.Constant) else None
    place = Location(path, node.lineno, node.col_offset + 1)
    found = requirement(f"python {stated}", place) if isinstance(stated, str) else None
    return [found] if found is not None else []


def _called(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _assignments(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """Expressions that names are assigned, appended to or extended with, anywhere."""
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                name = _target(target)
                if name:
                    values.setdefault(name, []).append(node.value)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)) and node.value is not None:
            name = _target(node.target)
            if name:
                values.setdefault(name, []).append(node.value)
    return values


def _target(node: ast.expr) -> str:
    """Name of ``x`` and of the dict in ``x["key"]``."""
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _looked_up(node: ast.Subscript, values: dict[str, list[ast.expr]], path: str) -> _Found:
    """``deps["trl"]``, where ``deps`` is made from a list of requirements by comprehension."""
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    name = node.value.id if isinstance(node.value, ast.Name) else ""
    found: _Found = []
    for table in values.get(name, []) if isinstance(key, str) else []:
        for made in ast.walk(table) if isinstance(table, ast.DictComp) else []:
            if not isinstance(made, ast.comprehension):
                continue
            listed = _literal_requirements(made.iter, values, path)
            found += [item for item in listed if item.name == canonicalize_name(str(key))]
    return found


def _literal_requirements(node: ast.expr, values: dict[str, list[ast.expr]], path: str) -> _Found:
    found: _Found = []
    todo: list[ast.AST] = [node]
    seen: set[str] = set()
    while todo:
        inner = todo.pop()
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            place = Location(path, inner.lineno, inner.col_offset + 1)
            parsed = requirement(inner.value, place)
            found += [parsed] if parsed is not None else []
        elif isinstance(inner, ast.Name) and inner.id not in seen:
            seen.add(inner.id)
            todo += values.get(inner.id, [])
        elif isinstance(inner, ast.Dict):
            todo += inner.values
        elif isinstance(inner, (ast.List, ast.Tuple, ast.Set)):
            todo += inner.elts
        elif isinstance(inner, ast.BinOp):
            todo += [inner.left, inner.right]
        elif isinstance(inner, ast.Starred):
            todo.append(inner.value)
        elif isinstance(inner, ast.Subscript):
            found += _looked_up(inner, values, path)
    return sorted(found, key=lambda item: item.location)


def _setup_cfg(text: str, path: str) -> tuple[_Found, list[Problem]]:
    """``install_requires`` and the extras; read by line, since configparser has no places."""
    found: _Found = []
    section = key = ""
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\[([^\]]+)\]", line)
        if header:
            section, key = header.group(1).strip(), ""
            continue
        stated = line
        named = re.match(r"([\w.-]+)\s*[=:](?!=)\s*(.*)", line)
        if named and not line[0].isspace():
            key, stated = named.group(1), named.group(2)
        wanted = section == "options" and key in ("install_requires", "tests_require")
        if (wanted or (section == "options.extras_require" and key)) and stated.strip():
            column = line.find(stated.strip()) + 1
            parsed = requirement(_COMMENT.sub("", stated), Location(path, number, column))
            found += [parsed] if parsed is not None else []
    return found, []


# --- conda --------------------------------------------------------------------------


def _conda_environment(text: str, path: str) -> tuple[_Found, list[Problem]]:
    from flake8_gpu_training.sources.yaml_source import read_yaml

    document, problems = _document(read_yaml(text, path))
    node = document.get("dependencies") if document is not None else None
    found: _Found = []
    for item in node.items if node is not None else ():
        pip = item.mapping.get("pip")
        if pip is not None:
            found += _listed(pip.node)
        elif isinstance(item.value, str):
            parsed = conda_requirement(item.value, item.location)
            found += [parsed] if parsed is not None else []
    return found, problems


def conda_requirement(text: str, location: Location) -> Optional[Requirement]:
    """The requirement of a conda match specification (``pytorch=2.4``, ``numpy>=1.26``)."""
    match = _CONDA_SPEC.fullmatch(text.strip())
    if match is None or len(text) > _MAX_LINE:
        return None
    stated_name = canonicalize_name(match.group(1))
    name = _CONDA_NAMES.get(stated_name, stated_name)
    if not name or name == "pip":
        return None
    stated = match.group(2) or ""
    fuzzy = stated.startswith("=") and not stated.startswith("==")
    if fuzzy:
        # ``=2.4`` is any 2.4.x; ``=2.4.0=py311_cuda`` names the build, hence the version.
        version, _, build = stated[1:].partition("=")
        exact = bool(build) or version.count(".") >= 2
        stated = f"=={version}" if exact and "*" not in version else f"=={version.rstrip('.*')}.*"
    return Requirement(name, stated, location, _exact(stated))


# --- commands -----------------------------------------------------------------------

_PIP_WITH_VALUE = frozenset(
    [
        "-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url",
        "-f", "--find-links", "-t", "--target", "--prefix", "--root", "--python", "-p",
        "--index", "--default-index", "--trusted-host", "--timeout", "--retries", "--cache-dir",
        "--no-binary", "--only-binary", "--platform", "--proxy", "--upgrade-strategy",
        "--torch-backend", "--index-strategy", "--prerelease", "--with-requirements",
        "--config-settings", "--log", "--src", "--cert", "--global-option", "-n", "--name",
        "--channel", "--file",
    ]
)  # fmt: skip


def requirements_from_command(command: Command) -> tuple[Requirement, ...]:
    """What ``pip install``, ``uv pip install``, ``uv add`` or ``conda install`` names."""
    texts = [word.text for word in command.words]
    start, conda = _install_arguments(texts)
    if start == 0:
        return ()
    found: _Found = []
    skip = False
    for word in command.words[start:]:
        text = word.text
        if skip:
            skip = False
        elif text.startswith("-"):
            with_value = text in _PIP_WITH_VALUE or (conda and text == "-c")
            skip = with_value
        elif isinstance(word.value, str):
            reader = conda_requirement if conda else requirement
            parsed = reader(text, word.location)
            found += [parsed] if parsed is not None else []
    return tuple(_within_pytorchs_index(_as_the_index_has(found, texts), texts))


# docs.vllm.ai, "Installation": an index of one release's wheels for a device or a CUDA.
_WHEELS = re.compile(
    r"https?://wheels\.vllm\.ai/(?:[a-z]\w*/)?v?(\d+\.\d+\.\d+(?:\.?post\d+)?)(?:/|$)"
)


def _as_the_index_has(found: _Found, texts: Sequence[str]) -> _Found:
    """``found``, with the release of vLLM that an index of its wheels is of."""
    of_index = next((match[1] for text in texts if (match := _WHEELS.search(text))), None)
    if of_index is None:
        return found
    return [
        replace(item, specifier=f"=={of_index}", version=of_index)
        if item.name == "vllm" and not item.specifier
        else item
        for item in found
    ]


# The first PyTorch without wheels for a CUDA, by pytorch.org's choices: 2.7 has 11.8, 12.6 and
# 12.8, and 2.8 none for 11.8. An index beside PyPI's (--extra-index-url) bounds nothing.
_PYTORCHS = re.compile(r"https?://download\.pytorch\.org/whl/(cu\d+)/?$")
_FIRST_WITHOUT = {"cu117": "2.7", "cu118": "2.8", "cu121": "2.7", "cu124": "2.7"}


def _within_pytorchs_index(found: _Found, texts: Sequence[str]) -> _Found:
    """``found``, with PyTorch bounded by what the only index holds."""
    named = [value for name, value in zip(texts, texts[1:]) if name in ("-i", "--index-url")]
    named += [text.partition("=")[2] for text in texts if text.startswith("--index-url=")]
    match = _PYTORCHS.match(named[-1]) if named else None
    without = _FIRST_WITHOUT.get(match[1]) if match is not None else None
    if without is None or any(text.startswith("--extra-index-url") for text in texts):
        return found
    return [
        replace(item, specifier=f"<{without}")
        if item.name == "torch" and not (item.specifier or item.by_address)
        else item
        for item in found
    ]


def _install_arguments(texts: list[str]) -> tuple[int, bool]:
    """Index of the first word after ``install`` (0: not an installation); whether conda's."""
    if not texts:
        return 0, False
    name = posixpath.basename(texts[0])
    rest = texts[1:]
    if re.fullmatch(r"python[\d.]*", name) and rest[:2] == ["-m", "pip"]:
        before = 3
    elif re.fullmatch(r"pip[\d.]*", name):
        before = 1
    elif name == "uv" and rest[:1] == ["pip"]:
        before = 2
    elif name in ("uv", "poetry", "pdm") and rest[:1] == ["add"]:
        return 2, False
    elif name in ("conda", "mamba", "micromamba"):
        install = next((i for i, text in enumerate(texts) if text in ("install", "create")), 0)
        return (install + 1 if 0 < install <= 2 else 0), True
    else:
        return 0, False
    for index, text in enumerate(texts[before:], start=before):
        if text == "install":
            return index + 1, False
        if not text.startswith("-"):
            return 0, False
    return 0, False


# --- container images ---------------------------------------------------------------

# Image repositories whose tag is the version of the package they hold.
_IMAGES = {
    "vllm/vllm-openai": "vllm",
    "vllm/vllm-openai-cpu": "vllm",
    "vllm/vllm-openai-rocm": "vllm",
    "vllm/vllm-openai-xpu": "vllm",
    "vllm/vllm-tpu": "vllm",
    "lmsysorg/sglang": "sglang",
    "slimerl/sglang": "sglang",
    "hiyouga/llamafactory": "llamafactory",
    "hiyouga/llama-factory": "llamafactory",
    "pytorch/pytorch": "torch",
    "huggingface/transformers-pytorch-gpu": "transformers",
    "deepspeed/deepspeed": "deepspeed",
    "rayproject/ray": "ray",
    "rayproject/ray-ml": "ray",
    "python": "python",
}
# Versions that a tag names beside its own: modelscope's images, and others that copy the habit.
_IN_TAG = re.compile(
    r"(?:^|[-_.:/])(torch|vllm|sglang|ms-swift|swift|transformers|deepspeed|modelscope)"
    r"[-_]?v?(\d+(?:\.\d+)+(?:(?:rc|post|\.post)\d+)?)"
)
_TAG_VERSION = re.compile(r"v?(\d+(?:\.\d+)+(?:(?:rc|\.?post)\d+)?)(?:$|[-_+])")
_PACKAGE_OF = {"swift": "ms-swift"}


def requirements_from_image(image: str, location: Location) -> tuple[Requirement, ...]:
    """Packages whose version a container image's name states; none for an opaque tag."""
    reference = image.strip().partition("@")[0]
    head, _, last = reference.rpartition("/")
    last, _, tag = last.partition(":")
    repository = f"{head}/{last}" if head else last
    found: dict[str, Requirement] = {}
    version = _TAG_VERSION.match(tag)
    for name, package in _IMAGES.items():
        if version and (repository == name or repository.endswith(f"/{name}")):
            found[package] = _from_tag(package, version.group(1), location)
    for match in _IN_TAG.finditer(tag):
        package = _PACKAGE_OF.get(match.group(1), match.group(1))
        found.setdefault(package, _from_tag(package, match.group(2), location))
    for package in _untold(repository, tag, "@" in image):
        found.setdefault(package, Requirement(package, "", location, by_address=True))
    if repository in _IMAGES and tag in ("", "latest") and "@" not in image:
        found.setdefault(_IMAGES[repository], Requirement(_IMAGES[repository], "", location))
    return tuple(found.values())


_SERVERS = re.compile(r"(?:^|[-_])(vllm|sglang)(?:$|[-_](?!router|gateway))")


def _untold(repository: str, tag: str, by_digest: bool) -> tuple[str, ...]:
    """Servers of which an image holds a state that its name does not tell."""
    stock = next((name for name in _IMAGES if f"/{repository}".endswith(f"/{name}")), "")
    if not stock:
        return tuple(_SERVERS.findall(repository.rpartition("/")[2]))
    if (by_digest and not tag) or tag not in ("", "latest"):
        return (_IMAGES[stock],) if _IMAGES[stock] in ("vllm", "sglang", "llamafactory") else ()
    return ()


def _from_tag(package: str, version: str, location: Location) -> Requirement:
    return Requirement(package, f"=={version}", location, _public(version))


_BY_NAME: dict[str, _Reader] = {
    "pyproject.toml": _pyproject,
    "setup.py": _setup_py,
    "setup.cfg": _setup_cfg,
    "pipfile": _pipfile,
    "pipfile.lock": _pipfile_lock,
    "pixi.toml": _pixi,
}
