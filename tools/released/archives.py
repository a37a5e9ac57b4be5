"""Released archives (wheels, source distributions) and source folders, read and never imported."""

from __future__ import annotations

import ast
import re
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Optional

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

_NAME = re.compile(r"(?P<name>[A-Za-z0-9_.]+?)-(?P<version>\d[A-Za-z0-9.!+]*?)(?:-.+)?$")
_ENDINGS = (".whl", ".tar.gz", ".zip")


@dataclass
class Module:
    """One parsed module: its classes, functions, constants and imports by local name."""

    path: str
    tree: ast.Module

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        """Classes at any depth of the module's own branches (``if``, ``try``)."""
        return {node.name: node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)}

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef]:
        """Functions of the module."""
        return {n.name: n for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef)}

    @cached_property
    def functions_of_all_classes(self) -> list[ast.FunctionDef]:
        """Functions and methods, those of the same name too."""
        return [n for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef)]

    @cached_property
    def constants(self) -> dict[str, ast.expr]:
        """Values assigned at the top of the module, and instead of an import for types only."""
        return {
            target.id: node.value
            for node in [*self.tree.body, *self._without_types]
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }

    @cached_property
    def stars(self) -> list[str]:
        """Modules whose every name is imported, the last one first."""
        found = [
            self._absolute(node)
            for node in self.tree.body
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
        ]
        return found[::-1]

    @property
    def _without_types(self) -> Iterator[ast.stmt]:
        for node in self.tree.body:
            if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
                yield from node.orelse

    @cached_property
    def imports(self) -> dict[str, tuple[str, str]]:
        """Local name: (absolute module, name in it)."""
        found: dict[str, tuple[str, str]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    found[alias.asname or alias.name] = (self._absolute(node), alias.name)
        return found

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.path[: -len(".py")].split("/")
        package = parts[: len(parts) - node.level]
        return ".".join([*package, *(node.module or "").split(".")]).strip(".")


@dataclass
class Release:
    """One released version of a distribution."""

    distribution: str
    version: Version
    archive: Path
    _modules: dict[str, Optional[Module]] = field(default_factory=dict)

    @cached_property
    def _files(self) -> dict[str, str]:
        """Path inside the package: member of the archive."""
        if self.archive.is_dir():
            found = (path.relative_to(self.archive) for path in self.archive.rglob("*.py"))
            return {_inside(f"/{path.as_posix()}"): path.as_posix() for path in found}
        if self.archive.name.endswith(".tar.gz"):
            with tarfile.open(self.archive) as archive:
                names = archive.getnames()
            return {_inside(name): name for name in names if name.endswith(".py")}
        names = self._zip.namelist()
        return {name: name for name in names if name.endswith(".py")}

    @cached_property
    def _zip(self) -> zipfile.ZipFile:
        return zipfile.ZipFile(self.archive)

    def requirement(self, distribution: str) -> str:
        """The versions of another distribution that the release asks for; "" when it is silent."""
        for line in self._metadata().splitlines():
            if line.startswith("Requires-Dist:") and "extra ==" not in line:
                wanted = Requirement(line.partition(":")[2].strip())
                if wanted.name.lower().replace("_", "-") == distribution:
                    return str(wanted.specifier)
        return ""

    def _metadata(self) -> str:
        if self.archive.is_dir():
            return ""
        if self.archive.name.endswith(".whl"):
            name = next(n for n in self._zip.namelist() if n.endswith(".dist-info/METADATA"))
            return self._zip.read(name).decode("utf-8")
        with tarfile.open(self.archive) as archive:
            member = next(n for n in archive.getnames() if n.count("/") == 1 and "PKG-INFO" in n)
            opened = archive.extractfile(member)
            return opened.read().decode("utf-8") if opened is not None else ""

    def paths(self, pattern: str) -> Iterator[str]:
        """Paths of modules that match a regular expression."""
        return (path for path in sorted(self._files) if re.fullmatch(pattern, path))

    def module(self, path: str) -> Optional[Module]:
        """The module at ``pkg/mod.py``, parsed; None when there is none."""
        if path not in self._modules:
            text = self._text(path)
            self._modules[path] = None if text is None else Module(path, ast.parse(text))
        return self._modules[path]

    def dotted(self, name: str) -> Optional[Module]:
        """The module or package with this dotted name."""
        path = name.replace(".", "/")
        return self.module(f"{path}.py") or self.module(f"{path}/__init__.py")

    def close(self) -> None:
        """Lets go of what was read."""
        self._modules.clear()
        self.__dict__.pop("_unpacked", None)
        if "_zip" in self.__dict__:
            self.__dict__.pop("_zip").close()

    def _text(self, path: str) -> Optional[str]:
        member = self._files.get(path)
        if member is None:
            return None
        if self.archive.is_dir():
            return (self.archive / member).read_text(encoding="utf-8")
        if self.archive.name.endswith(".tar.gz"):
            return self._unpacked[member].decode("utf-8")
        return self._zip.read(member).decode("utf-8")

    @cached_property
    def _unpacked(self) -> dict[str, bytes]:
        """Every module of a compressed tar, which can only be read from its beginning."""
        found: dict[str, bytes] = {}
        wanted = set(self._files.values())
        with tarfile.open(self.archive) as archive:
            for member in archive:
                opened = archive.extractfile(member) if member.name in wanted else None
                if opened is not None:
                    found[member.name] = opened.read()
        return found


def _inside(name: str) -> str:
    """A source distribution's member without its top folder (and ``src/``, ``python/``)."""
    rest = name.partition("/")[2]
    for folder in ("src/", "python/"):
        if rest.startswith(folder):
            return rest[len(folder) :]
    return rest


def releases(folder: Path, distribution: str) -> list[Release]:
    """The final releases of ``distribution`` in ``folder``, oldest first.

    Of what is on no package index, a folder ``name-version`` with the sources is a release.
    """
    found: dict[Version, Release] = {}
    for path in sorted(folder.iterdir()):
        stem = next((path.name[: -len(e)] for e in _ENDINGS if path.name.endswith(e)), None)
        stem = path.name if path.is_dir() else stem
        match = _NAME.match(stem) if stem is not None else None
        if match is None or match["name"].replace("_", "-").lower() != distribution:
            continue
        try:
            version = Version(match["version"].partition("+")[0])
        except InvalidVersion:
            continue
        if not version.is_prerelease:
            found[version] = Release(distribution, version, path)
    return [found[version] for version in sorted(found)]
