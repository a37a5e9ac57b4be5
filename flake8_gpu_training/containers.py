"""Leads the paths of a container back to the project's files that it is stated to hold."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Optional

_HERE = r"(?:\$\(pwd\)|`pwd`|\$\{?PWD\}?|\.)"
_INSTRUCTION = re.compile(
    r"^[ \t]*(WORKDIR|COPY|ADD|FROM)[ \t]+(.+)$", re.MULTILINE | re.IGNORECASE
)
_SOURCE = rf"['\"]?{_HERE}['\"]?(?P<source>(?:/[\w./-]*)?)['\"]?"
_VOLUME = re.compile(rf"(?:-v|--volume)(?:=|\s+){_SOURCE}:(?P<folder>/[\w./-]+)")
_MOUNT = re.compile(
    rf"(?:source|src)={_SOURCE},(?:target|dst|destination)=['\"]?(?P<folder>/[\w./-]+)"
)
_COMPOSED = re.compile(rf"^\s*-\s+{_SOURCE}:(?P<folder>/[\w./-]+)", re.MULTILINE)
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Shown:
    """``folder`` of a container holds ``source``, as the file ``told_in`` says.

    ``source`` is seen from that file's folder or, where the build starts there, from the
    project's root.
    """

    folder: str
    source: str
    told_in: str


def shown_by(path: str, text: str, is_dockerfile: bool) -> Iterator[Shown]:
    """What the file at ``path`` says that containers hold of the project."""
    if is_dockerfile:
        yield from _copied(path, text)
        return
    patterns = [_VOLUME, _MOUNT]
    if path.endswith((".yaml", ".yml")):
        patterns = [_COMPOSED]
    for pattern in patterns:
        for match in pattern.finditer(text):
            source = posixpath.normpath(f"./{match['source'].strip('/')}")
            yield Shown(posixpath.normpath(match["folder"]), source, path)


def _copied(path: str, text: str) -> Iterator[Shown]:
    directory = "/"
    for keyword, rest in _INSTRUCTION.findall(re.sub(r"\\[ \t]*\n", " ", text)):
        words = re.sub(r"[\[\]\",']", " ", rest).split()
        if keyword.upper() == "FROM":
            directory = "/"
        elif keyword.upper() == "WORKDIR":
            directory = posixpath.join(directory, *words[:1])
        elif not any(word.startswith("--from") or "$" in word for word in words):
            *sources, last = [word for word in words if not word.startswith("--")] or [""]
            folder = posixpath.normpath(posixpath.join(directory, last))
            for source in sources if "$" not in folder else ():
                if "://" not in source:
                    yield Shown(folder, posixpath.normpath(f"./{source.lstrip('/')}"), path)


def led_back(path: str, shown: Iterable[Shown], is_file: Callable[[str], bool]) -> Optional[str]:
    """The project's file that ``path`` of a container is; None where several may be."""
    found: dict[str, set[str]] = {}
    for one in shown:
        for source in _sources(path, one):
            for home in {posixpath.dirname(one.told_in), ""}:
                file = posixpath.normpath(posixpath.join(home, source))
                if not file.startswith("..") and is_file(file):
                    found.setdefault(one.folder, set()).add(file)
    nearest = found[max(found, key=len)] if found else set()
    return nearest.pop() if len(nearest) == 1 else None


def _sources(path: str, shown: Shown) -> Iterator[str]:
    """What ``path`` may be, seen from where ``shown`` is told."""
    if path == shown.folder:
        yield shown.source
        return
    lead = shown.folder.rstrip("/") + "/"
    if not path.startswith(lead):
        return
    rest = path[len(lead) :]
    if _GLOB.search(shown.source):
        file = posixpath.join(posixpath.dirname(shown.source), rest)
        if fnmatch.fnmatch(file, shown.source) and "/" not in rest:
            yield file
    else:
        yield posixpath.join(shown.source, rest)
        if rest == posixpath.basename(shown.source):
            yield shown.source
