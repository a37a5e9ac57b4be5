"""Reads every shell script under the given trees: which parser read it, and what was lost.

    python benchmarks/parse_shell.py TREE [TREE ...]

"Lost" is a script with command text that gave no command. Launch commands are counted a
second time without any parser (lines that begin with a launcher's name) and each is looked
for, with all its flags, among the commands read.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from flake8_gpu_training.facts import ScriptFile
from flake8_gpu_training.sources.dockerfile import read_dockerfile
from flake8_gpu_training.sources.makefile import read_makefile
from flake8_gpu_training.sources.shell import read_shell

SUFFIXES = {".sh", ".bash", ".slurm", ".sbatch"}
LAUNCHER = re.compile(
    r"[ \t]*(?:[A-Z_][A-Z0-9_]*=[^\s(]+[ \t]+)*"
    r"(swift|torchrun|python3?|accelerate|deepspeed|megatron|llamafactory-cli|vllm|ff-train)[ \t]"
)
FLAG = re.compile(r"(?<!\S)--[A-Za-z][\w.-]*")


def scripts(trees: list[str]) -> Iterator[Path]:
    for tree in trees:
        for path in sorted(Path(tree).rglob("*")):
            if path.is_file() and kind(path):
                yield path


def kind(path: Path) -> str:
    if path.suffix in SUFFIXES:
        return "shell"
    if path.name.startswith("Dockerfile") or path.suffix == ".dockerfile":
        return "dockerfile"
    return "makefile" if path.name in ("Makefile", "makefile", "GNUmakefile") else ""


def read(path: Path, data: bytes) -> ScriptFile:
    reader = {"shell": read_shell, "dockerfile": read_dockerfile, "makefile": read_makefile}
    return reader[kind(path)](data, str(path))


def has_commands(text: str) -> bool:
    """Whether any line is more than a comment, an assignment or a block's bracket."""
    bare = (line.strip() for line in text.splitlines())
    quiet = re.compile(r"#|[A-Za-z_]\w*\+?=\S*$|export |set |cd |source |[(){}]*$|EOF$|fi$|done$")
    return any(line and not quiet.match(line) for line in bare)


def launches(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Line, launcher and flags of each launch command, found without a parser."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        start = at
        joined = lines[at]
        while joined.endswith("\\") and at + 1 < len(lines):
            at += 1
            if lines[at].lstrip().startswith("#"):
                # A comment ends the command.
                joined = joined[:-1]
                break
            joined = joined[:-1] + " " + lines[at]
        at += 1
        match = LAUNCHER.match(joined)
        if match is not None:
            own = re.split(r"(?<!\S)(?:#|&&|\|\|?|;|&(?=\s|$)|2?>)(?=\s|\S*$|$)", joined)[0]
            yield start + 1, match.group(1), FLAG.findall(own)


def main(trees: list[str]) -> int:
    counts: Counter[str] = Counter()
    missing: list[str] = []
    slowest = (0.0, "")
    begun = time.perf_counter()
    spent = 0.0
    for path in scripts(trees):
        data = path.read_bytes()
        started = time.perf_counter()
        facts = read(path, data)
        took = time.perf_counter() - started
        spent += took
        slowest = max(slowest, (took, str(path)))
        text = data.decode("utf-8", "replace").replace("\r\n", "\n")
        what = kind(path)
        counts[what] += 1
        counts["commands"] += len(facts.commands)
        counts["problems"] += len(facts.problems)
        if what != "shell":
            continue
        counts[facts.parser] += 1
        if not facts.commands and has_commands(text):
            counts["lost"] += 1
            print(f"lost: {path}")
        for line, launcher, flags in launches(text):
            counts["launches"] += 1
            if not found(facts, line, launcher, flags):
                missing.append(f"{path}:{line}: {launcher} {' '.join(flags)}")
    for entry in missing:
        print(f"missing: {entry}")
    for name in ("shell", "dockerfile", "makefile", "commands", "problems"):
        print(f"{name:>12} {counts[name]}")
    for name in ("bashlex", "tree-sitter", "lost", "launches"):
        print(f"{name:>12} {counts[name]}")
    print(f"{'missing':>12} {len(missing)}")
    print(f"{'seconds':>12} {spent:.2f} reading, {time.perf_counter() - begun:.2f} in all")
    print(f"{'slowest':>12} {slowest[0]:.3f} s {slowest[1]}")
    return 1 if counts["lost"] or missing else 0


def found(facts: ScriptFile, line: int, launcher: str, flags: list[str]) -> bool:
    for command in facts.commands:
        wrapped = [words[0].text for words in command.wrappers]
        if command.name != launcher and launcher not in wrapped:
            continue
        first = min([command.location.line, *(w[0].location.line for w in command.wrappers)])
        last = command.end.line if command.end is not None else first
        if line > last or first > last + 40:
            continue
        words = {word.text.split("=")[0] for word in command.words}
        words.update(w.text.split("=")[0] for words_ in command.wrappers for w in words_)
        if all(flag in words for flag in flags):
            return True
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
