"""Reads ``.git/config`` as a file: the addresses of the remotes."""

from __future__ import annotations

import re
from typing import Union

from flake8_gpu_training.facts import GitConfig, Location, Problem, ProblemKind, Setting
from flake8_gpu_training.sources.text import decode

_SECTION = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_VARIABLE = re.compile(r"\s*([A-Za-z][\w-]*)\s*=\s*(.*)")
# A user and a password or token in an address are nobody's business.
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


def read_git_config(text: Union[str, bytes], path: str) -> GitConfig:
    """Remotes (name to address, credentials left out) of a git configuration; never raises."""
    content, problems = decode(text, path)
    remotes: list[Setting] = []
    found = list(problems)
    section = name = ""
    for number, line in enumerate(content.splitlines(), start=1):
        header = _SECTION.match(line)
        if header:
            section, name = header.group(1).lower(), header.group(2) or ""
            line = line[header.end() :]
        elif line.lstrip().startswith("["):
            message = "a section that is not closed"
            found.append(Problem(ProblemKind.SYNTAX, message, Location(path, number)))
            section = ""
        variable = _VARIABLE.match(line)
        if variable and section == "remote" and variable.group(1).lower() == "url":
            address = _CREDENTIALS.sub("", _value(variable.group(2)))
            column = line.find(variable.group(2)) + 1
            remotes.append(Setting(name, address, Location(path, number, column)))
    return GitConfig(path, tuple(remotes), tuple(found))


def _value(raw: str) -> str:
    """A value without quotes and without the comment behind it."""
    if raw.startswith('"'):
        return raw[1:].partition('"')[0]
    return re.split(r"\s[#;]", raw, maxsplit=1)[0].strip()
