"""What the HfArgumentParser of a project's own script takes: its classes and the library's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from flake8_gpu_training.facts import Call, ClassDef, PythonFile
from flake8_gpu_training.frameworks.at_hand import version_at_hand
from flake8_gpu_training.runs.model import Run

_PARSERS = ("HfArgumentParser", "TrlParser")
_NAMES = re.compile(r"[A-Za-z_][\w.]*")
_LISTED = re.compile(
    r"\s*(?:\(|\[)?\s*[A-Za-z_][\w.]*(?:\s*,\s*[A-Za-z_][\w.]*)*\s*,?\s*(?:\)|\])?\s*"
)
_LENIENT = frozenset(
    {"return_remaining_strings", "fail_with_unknown_args", "allow_extra_keys", "args"}
)
_DEPTH = 8
_LIBRARIES = frozenset({"transformers", "trl"})


@dataclass(frozen=True)
class OwnParser:
    """``names``: fields of the project's classes; ``groups``: the library's classes.

    ``flags``, ``files``: whether a flag, a key of the file is refused that none of them has.
    """

    names: frozenset[str]
    groups: tuple[tuple[str, str], ...]
    flags: bool = False
    files: bool = False


def own_parser(run: Run) -> Optional[OwnParser]:
    """The one parser of the run's script; None where it, or a class of it, is not known whole."""
    made = [(f, c) for f in run.python for c in f.calls if c.method in _PARSERS]
    if len(made) != 1 or not run.python:
        return None
    file, call = made[0]
    if any(_parses_itself(other) for other in run.python if other.path == run.entry != file.path):
        return None
    text = call.positional[0].text if len(call.positional) == 1 else ""
    if call.keywords or not _LISTED.fullmatch(text):
        return None
    classes: dict[str, list[ClassDef]] = {}
    for item in (item for f in run.python for item in f.classes):
        classes.setdefault(item.name, []).append(item)
    names: set[str] = set()
    groups: list[tuple[str, str]] = []
    for name in _NAMES.findall(text):
        found = _resolved(name, file, classes)
        if found is None:
            return None
        names |= found.names
        groups += found.groups
    return OwnParser(
        frozenset(names),
        tuple(dict.fromkeys(groups)),
        _is_strict(file, *_OF_FLAGS) and not any(c.method in _OTHER for c in file.calls),
        _is_strict(file, *_OF_FILES) and not (call.method == "TrlParser" and ignores_keys(run)),
    )


_REFUSES_KEYS = (0, 19)


def ignores_keys(run: Run) -> bool:
    """Whether TRL's parser drops keys of a file that it does not know: it did before 0.19.1 (trl
    0.18.2 and 0.19.1 scripts/utils.py, TrlParser.parse_args_and_config)."""
    return version_at_hand(run, "trl") < _REFUSES_KEYS


_OF_FLAGS = ("parse_args_into_dataclasses", "parse_args_and_config")
_OF_FILES = ("parse_args_and_config", "parse_json_file", "parse_yaml_file")
_OTHER = ("add_argument", "parse_args", "parse_known_args")


def _parses_itself(entry: PythonFile) -> bool:
    """Whether the script that is started has a parser of another kind: the one of a module that
    it imports is not asked then."""
    return any(call.method in ("parse_args", "parse_known_args") for call in entry.calls)


def _is_strict(file: PythonFile, *methods: str) -> bool:
    """Whether the script parses so, and always refuses what it does not know."""
    calls = [call for call in file.calls if call.method in methods]
    return bool(calls) and not any(map(_is_lenient, calls))


def _is_lenient(call: Call) -> bool:
    return call.is_open or bool(_LENIENT & set(call.keywords))


def _resolved(
    name: str, file: PythonFile, classes: Mapping[str, Sequence[ClassDef]], depth: int = 0
) -> Optional[OwnParser]:
    """The fields of a class and of those that it derives from; of all that are called so."""
    own = classes.get(name, ())
    if own and depth < _DEPTH:
        names = {field for item in own for field in item.fields}
        groups: list[tuple[str, str]] = []
        for base in (base for item in own for base in item.bases if base != "object"):
            found = _resolved(base, file, classes, depth + 1)
            if found is None:
                return None
            names |= found.names
            groups += found.groups
        return OwnParser(frozenset(names), tuple(groups))
    dotted = next((d for d in _imported(name, file)), name)
    library, _, _ = dotted.partition(".")
    if library not in _LIBRARIES or "." not in dotted:
        return None
    return OwnParser(frozenset(), ((library, dotted.rpartition(".")[2]),))


def _imported(name: str, file: PythonFile) -> Iterator[str]:
    """The dotted name behind a name that an import binds."""
    head, _, rest = name.partition(".")
    for item in file.imports:
        bound = item.alias or item.name or item.module.partition(".")[0]
        if bound == head:
            base = item.dotted if item.alias or item.name else head
            yield f"{base}.{rest}" if rest else base
