"""Matches commands that put names together from variables to the files those may stand for."""

from __future__ import annotations

import dataclasses
import fnmatch
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Optional

from flake8_gpu_training.facts import Command, Unknown, Word, known

_VARIABLE = re.compile(r"\$(?:\{(?P<braced>[A-Za-z_]\w*)\}|(?P<plain>[A-Za-z_]\w*))")
_CONFIGURATION = (".yaml", ".yml", ".json")
_MOST_FILES = 20
_LEAST_LITERAL = 5
"""Characters that must stand literally in a name, its ending aside."""


def names_configuration(command: Command) -> bool:
    """Whether a word of ``command`` names a configuration file by variables."""
    return any(_pattern(word) is not None for word in command.words)


def bound_to(command: Command, path: str) -> Optional[Command]:
    """``command`` with its variables bound so that a word names the file at ``path``, or None.

    Further arguments that are empty unless the user gives some (``$OPTIONAL_ARGS``) are left
    out: the file is what is written of the run.
    """
    for word in command.words:
        pattern = _pattern(word)
        match = pattern.fullmatch(path) if pattern is not None else None
        if match is not None:
            values = match.groupdict()
            words = tuple(_bound(each, values) for each in command.words if not _is_rest(each))
            return dataclasses.replace(command, words=words)
    return None


def each_file(command: Command, files: Collection[str]) -> Iterator[Command]:
    """``for c in configs/*.yaml; do … $c``: the command for each file of the project that fits."""
    patterns = [w.text for w in command.words if _is_glob(w)]
    if len(set(patterns)) != 1:
        yield command
        return
    given = posixpath.normpath(patterns[0])
    folder = posixpath.dirname(command.location.path)
    found = _matching(posixpath.join(folder, given), files) or _matching(given, files)
    for path in found[:_MOST_FILES]:
        words = tuple(
            dataclasses.replace(word, value=path) if _is_glob(word) else word
            for word in command.words
        )
        yield dataclasses.replace(command, words=words)
    if not found:
        yield command


def _is_glob(word: Word) -> bool:
    """Whether a variable of a loop stands for the files of a pattern."""
    is_variable = _VARIABLE.fullmatch(word.raw.strip("\"'")) is not None
    text = word.value
    return is_variable and isinstance(text, str) and "*" in text and text.endswith(_CONFIGURATION)


def _matching(pattern: str, files: Collection[str]) -> list[str]:
    depth = pattern.count("/")
    return sorted(
        path for path in files if path.count("/") == depth and fnmatch.fnmatchcase(path, pattern)
    )


def _pattern(word: Word) -> Optional[re.Pattern[str]]:
    """What the paths look like that an unknown word may name."""
    text = word.raw.strip("\"'")
    text = text[2:] if text.startswith("./") else text
    if known(word.value) or not text.endswith(_CONFIGURATION) or len(text) > 300:
        return None
    literal = _VARIABLE.sub("", text)
    if "$" in literal or "`" in literal or len(literal.strip("./")) < _LEAST_LITERAL + 5:
        return None
    made = []
    seen: set[str] = set()
    at = 0
    for match in _VARIABLE.finditer(text):
        name = match["braced"] or match["plain"]
        made.append(re.escape(text[at : match.start()]))
        made.append(f"(?P={name})" if name in seen else f"(?P<{name}>[^/]+)")
        seen.add(name)
        at = match.end()
    made.append(re.escape(text[at:]))
    return re.compile("(?:.*/)?" + "".join(made))


def _is_rest(word: Word) -> bool:
    is_optional = isinstance(word.value, Unknown) and "" in word.value.candidates
    return is_optional and _VARIABLE.fullmatch(word.raw) is not None


def _bound(word: Word, values: Mapping[str, str]) -> Word:
    if known(word.value):
        return word
    text = _VARIABLE.sub(
        lambda match: values.get(match["braced"] or match["plain"], match.group()), word.raw
    )
    if text == word.raw:
        return word
    plain = text.strip("\"'")
    if "$" in plain or "`" in plain:
        reason = word.value.reason if isinstance(word.value, Unknown) else "a variable"
        return dataclasses.replace(word, value=Unknown(reason), raw=text)
    return dataclasses.replace(word, value=plain)
