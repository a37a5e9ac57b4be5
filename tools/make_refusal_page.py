"""Write docs/refusals.md from docs/refusals/*.toml; ``--check`` only compares.

``--count DISTRIBUTION ARCHIVE`` lists the ``raise`` and ``assert`` statements of the files that a
catalogue names, so that it can be compared with the released source.
"""

from __future__ import annotations

import ast
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli

DOCS = Path(__file__).resolve().parent.parent / "docs"
FOLDER, PAGE = DOCS / "refusals", DOCS / "refusals.md"

_HEAD = """\
# What the frameworks refuse at start, and what is reported

Frameworks check their arguments before the first step and stop with an error. The table counts
those checks: how many `raise` and `assert` statements the argument validation of a release has,
how many of them can be decided without running anything, and how many are reported.

| framework | release | raises | decidable | reported | share |
|---|---|---:|---:|---:|---:|
"""


@dataclass(frozen=True)
class Case:
    """One kind of refusal: where the source has it, when, and what reports it.

    ``count``: statements that say the same; 0 where another catalogue counts it. ``by``: codes,
    for GPU024 with the rule's name. ``because``: why it cannot be decided, or is not reported.
    """

    file: str
    function: str
    when: str
    decidable: bool
    by: tuple[str, ...] = ()
    count: int = 1
    because: str = ""


@dataclass(frozen=True)
class Catalogue:
    """All refusals of one release of a distribution; ``statements`` by file."""

    distribution: str
    title: str
    release: str
    statements: Mapping[str, int]
    cases: tuple[Case, ...]

    def number(self, *, decidable: bool = False, reported: bool = False) -> int:
        """Statements of all cases, or of those that can be decided, or are reported."""
        return sum(
            case.count
            for case in self.cases
            if (case.decidable or not decidable) and (case.by or not reported)
        )


def catalogues() -> tuple[Catalogue, ...]:
    """The catalogues, by title."""
    found = (_catalogue(tomli.loads(p.read_text(encoding="utf-8"))) for p in FOLDER.glob("*.toml"))
    return tuple(sorted(found, key=lambda one: one.title.lower()))


def _catalogue(data: Mapping[str, Any]) -> Catalogue:
    cases = tuple(
        Case(**{**case, "by": tuple(case.get("by", ()))}) for case in data.get("refusal", ())
    )
    return Catalogue(
        data["distribution"], data["title"], data["release"], data["statements"], cases
    )


def page() -> str:
    """The text of docs/refusals.md."""
    found = catalogues()
    rows = [
        _row(
            one.title,
            one.release,
            one.number(),
            one.number(decidable=True),
            one.number(decidable=True, reported=True),
        )
        for one in found
    ]
    rows.append(
        _row(
            "all",
            "",
            sum(one.number() for one in found),
            sum(one.number(decidable=True) for one in found),
            sum(one.number(decidable=True, reported=True) for one in found),
        )
    )
    return _HEAD + "\n".join(rows) + "\n" + "".join(map(_section, found))


def _row(title: str, release: str, raises: int, decidable: int, reported: int) -> str:
    share = f"{100 * reported / decidable:.0f} %" if decidable else ""
    return f"| {title} | {release} | {raises} | {decidable} | {reported} | {share} |"


def _section(catalogue: Catalogue) -> str:
    lines = [
        f"\n## {catalogue.title} {catalogue.release}\n",
        "| where | when it stops | reported by |",
        "|---|---|---|",
    ]
    for case in catalogue.cases:
        times = f" (×{case.count})" if case.count > 1 else ""
        told = ", ".join(case.by) or ("no" if case.decidable else "cannot be decided")
        reason = f": {case.because}" if case.because else ""
        lines.append(
            f"| `{case.file}` `{case.function}`{times} | {_cell(case.when)} "
            f"| {_cell(told + reason)} |"
        )
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def statements(archive: Path, files: Mapping[str, int]) -> Iterator[tuple[str, str, int, str]]:
    """``(file, function, line, text)`` of the statements that stop, in an archive's files."""
    for name in (one for one, number in files.items() if number):
        source = _member(archive, name)
        yield from ((name, *found) for found in _of_node(ast.parse(source), "", source))


def _of_node(node: ast.AST, function: str, source: str) -> Iterator[tuple[str, int, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Raise, ast.Assert)):
            text = ast.get_source_segment(source, child) or ""
            yield function, child.lineno, " ".join(text.split())
        named = isinstance(child, (ast.FunctionDef, ast.ClassDef))
        inner = f"{function}.{child.name}".lstrip(".") if named else function  # type: ignore[attr-defined]
        yield from _of_node(child, inner, source)


def _member(archive: Path, name: str) -> str:
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as packed:
            return packed.read(_found(packed.namelist(), name)).decode()
    with tarfile.open(archive) as packed_tar:
        handle = packed_tar.extractfile(_found(packed_tar.getnames(), name))
        assert handle is not None
        return handle.read().decode()


def _found(members: list[str], name: str) -> str:
    """The member that is ``name`` in the archive's outermost folder that has it."""
    return min((one for one in members if f"/{one}".endswith(f"/{name}")), key=len)


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--count"]:
        distribution, archive = arguments[1:]
        wanted = next(one for one in catalogues() if one.distribution == distribution)
        for file, function, line, text in statements(Path(archive), wanted.statements):
            print(f"{file}:{line}: {function}: {text[:160]}")
        return 0
    text = page()
    if "--check" in arguments:
        if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
            print("docs/refusals.md is stale: run python tools/make_refusal_page.py")
            return 1
        return 0
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
