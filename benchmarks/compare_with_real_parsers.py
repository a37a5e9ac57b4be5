"""The real frameworks' argument parsing against our checks, over mutated configurations.

python benchmarks/real_parsers/build.py ENVIRONMENTS
python benchmarks/compare_with_real_parsers.py ENVIRONMENTS [--number N] [--seed N]
    [--only FRAMEWORK] [--answers FOLDER] [--details FOLDER]

``--answers`` keeps what the real parsers said, so that another run asks only what is new;
``--details`` gets one page per framework with every miss and false alarm.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from real_parsers.build import python_of
from real_parsers.configurations import Configuration, write
from real_parsers.mutations import Catalogue, configurations
from real_parsers.refusals import is_later, kind_of, uncounted

from flake8_gpu_training.checks.base import Priority
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.frameworks.tables import table_of
from flake8_gpu_training.lint import lint_project
from flake8_gpu_training.options import Options
from flake8_gpu_training.project import Project

ENVIRONMENT_OF: Mapping[str, str] = {
    "transformers": "trl",
    "trl": "trl",
    "llamafactory": "llamafactory",
    "ms-swift": "ms-swift",
}
_FAILING = frozenset(
    check.code
    for check in all_checks()
    if check.code.startswith("GPU0")
    and check.impact is not None
    and check.impact.note is not None
    and "fails at start" in check.impact.note.en
)
"""Checks that say that the run fails at start."""
_SOMETIMES = frozenset({"GPU004"})
"""Checks that say so where their finding is of high priority."""


_SECONDS = 30
"""How often the answers are kept meanwhile."""


class Real:
    """A framework's own parser, in a process of its environment."""

    def __init__(self, environments: Path, framework: str) -> None:
        worker = Path(__file__).parent / "real_parsers" / "worker.py"
        python = python_of(environments.resolve(), ENVIRONMENT_OF[framework])
        self._process = subprocess.Popen(
            [str(python), str(worker), framework, "--quiet"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        first = self._read()
        self.versions: Mapping[str, str] = first["versions"]
        self.parameters: Mapping[str, Sequence[Mapping[str, Any]]] = first["parameters"]

    def answer(self, one: Configuration, folder: Path) -> Mapping[str, Any]:
        """Whether it takes the configuration, which is written in ``folder``."""
        assert self._process.stdin is not None
        request = {"folder": str(folder), "argv": one.argv()}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _read(self) -> Mapping[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the real parser ended; run worker.py by hand to see why")
        answer: Mapping[str, Any] = json.loads(line)
        return answer


@dataclass(frozen=True)
class Finding:
    """One of our diagnostics, and the line that it is about."""

    code: str
    message: str
    line: str


@dataclass(frozen=True)
class Result:
    """One configuration, what the real parser says of it, and what we report."""

    one: Configuration
    answer: Mapping[str, Any]
    found: tuple[Finding, ...]

    @property
    def accepted(self) -> bool:
        """Whether the real parser took it."""
        return bool(self.answer["accepted"])

    @property
    def uncounted(self) -> Optional[str]:
        """Why a refusal does not count."""
        return None if self.accepted else uncounted(self.answer, self.one.framework)

    @property
    def refused_by_parser(self) -> bool:
        """Whether we report what the parser should refuse, not only a later step."""
        return any(not is_later(found.message) for found in self.found)

    @property
    def names_it(self) -> bool:
        """Whether a finding speaks of something that was changed or that the refusal names."""
        names = {*self.one.touched, *re.findall(r"\w{4,}", str(self.answer.get("text", "")))}
        told = {name.replace("-", "_") for name in names}
        return any(
            told & set(re.findall(r"\w+", f"{found.message} {found.line}".replace("-", "_")))
            for found in self.found
        )


# --- one framework --------------------------------------------------------------------


def compare(
    environments: Path, framework: str, number: int, seed: int, answers: Optional[Path]
) -> tuple[Sequence[Result], Mapping[str, str]]:
    """Every configuration through the real parser and through us, and the versions."""
    real = Real(environments, framework)
    told = time.monotonic()
    others = _declared_elsewhere(framework)
    catalogue = Catalogue(real.parameters, others, _former(framework, real.parameters))
    known = _read_answers(answers, framework)
    results = []
    with tempfile.TemporaryDirectory() as name:
        for index, one in enumerate(configurations(framework, catalogue, number, seed)):
            folder = Path(name) / f"{index:04}"
            write(one, folder, real.versions)
            found = ours(folder)
            digest = _digest(one, real.versions)
            if digest not in known:
                known[digest] = real.answer(one, folder)
                if time.monotonic() - told > _SECONDS:
                    _keep_answers(answers, framework, known)
                    told = time.monotonic()
            results.append(Result(one, known[digest], found))
    real.close()
    _keep_answers(answers, framework, known)
    return results, real.versions


def ours(folder: Path) -> tuple[Finding, ...]:
    """What we report as failing at start."""
    found = lint_project(Project.open(folder), Options(minimum=Priority.LOW))
    return tuple(
        Finding(one.code, one.message, _line(folder / one.location.path, one.location.line))
        for one in found
        if one.code in _FAILING or (one.code in _SOMETIMES and one.priority is Priority.HIGH)
    )


def _line(path: Path, number: int) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return lines[number - 1] if 0 < number <= len(lines) else ""


def _declared_elsewhere(framework: str) -> Sequence[str]:
    """The parameters of the other frameworks, as our tables have them in the newest release."""
    names: set[str] = set()
    for distribution, groups in _GROUPS.items():
        table = table_of(distribution)
        if distribution != framework and table is not None:
            for group in groups:
                names |= table.parameters(group).keys()
    return sorted(names)


_GROUPS: Mapping[str, Sequence[str]] = {
    "transformers": ("TrainingArguments",),
    "trl": ("SFTConfig", "GRPOConfig", "DPOConfig", "ModelConfig", "ScriptArguments"),
    "llamafactory": ("train",),
    "ms-swift": ("sft", "rlhf", "pt"),
}


def _former(framework: str, parameters: Mapping[str, Sequence[Mapping[str, Any]]]) -> Sequence[str]:
    """Names that some release had and the one at hand has not."""
    here = {one["name"] for command in parameters.values() for one in command}
    names: set[str] = set()
    for distribution in {framework, "transformers"}:
        table = table_of(distribution)
        if table is not None:
            for group in _GROUPS[distribution]:
                names |= set(table.groups[group]["parameters"])
    return sorted(names - here)


def _digest(one: Configuration, versions: Mapping[str, str]) -> str:
    text = json.dumps([one.written(), dict(versions)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _read_answers(folder: Optional[Path], framework: str) -> dict[str, Mapping[str, Any]]:
    path = folder / f"{framework}.json" if folder is not None else None
    if path is None or not path.is_file():
        return {}
    known: dict[str, Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return known


def _keep_answers(
    folder: Optional[Path], framework: str, known: Mapping[str, Mapping[str, Any]]
) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{framework}.json").write_text(json.dumps(known), encoding="utf-8")


# --- figures --------------------------------------------------------------------------


@dataclass(frozen=True)
class Figures:
    """The results of one framework, by what came of them."""

    results: Sequence[Result]

    @property
    def accepted(self) -> Sequence[Result]:
        """Taken by the real parser."""
        return [one for one in self.results if one.accepted]

    @property
    def alarms(self) -> Sequence[Result]:
        """Taken by the real parser, and reported by us as refused by it."""
        return [one for one in self.accepted if one.refused_by_parser]

    @property
    def later(self) -> Sequence[Result]:
        """Taken by the real parser, and reported by us for a later step only."""
        return [one for one in self.accepted if one.found and not one.refused_by_parser]

    @property
    def decidable(self) -> Sequence[Result]:
        """Refused for a reason that the project shows."""
        return [one for one in self.results if not one.accepted and one.uncounted is None]

    @property
    def caught(self) -> Sequence[Result]:
        """Those of the decidable ones that we report."""
        return [one for one in self.decidable if one.found]

    @property
    def missed(self) -> Sequence[Result]:
        """Those of the decidable ones of which we say nothing."""
        return [one for one in self.decidable if not one.found]

    @property
    def beside(self) -> Sequence[Result]:
        """Caught by findings that name nothing of what was changed."""
        return [one for one in self.caught if not one.names_it]

    def line(self, framework: str) -> str:
        """One row of the table."""
        set_aside = len(self.results) - len(self.accepted) - len(self.decidable)
        recall = 100 * len(self.caught) / max(1, len(self.decidable))
        alarms = 100 * len(self.alarms) / max(1, len(self.accepted))
        return (
            f"| {framework} | {len(self.results)} | {len(self.accepted)} | {set_aside} "
            f"| {len(self.decidable)} | {len(self.caught)} | {recall:.1f} % "
            f"| {len(self.alarms)} | {alarms:.2f} % | {len(self.later)} |"
        )


_HEAD = """\
| framework | configurations | accepted | set aside | refused | reported | recall \
| false alarms | of accepted | of later steps |
|---|---|---|---|---|---|---|---|---|---|"""


def details(framework: str, versions: Mapping[str, str], figures: Figures) -> str:
    """A page for those who mend misses and false alarms."""
    lines = [f"# {framework}", "", ", ".join(f"{n} {v}" for n, v in versions.items()), ""]
    lines += [_HEAD, figures.line(framework), ""]
    lines += ["By mutation (reported of refused; false alarms of accepted):", ""]
    lines += [*_by_mutation(figures), "", "# False alarms", ""]
    for key, results in _grouped(figures.alarms, lambda r: _told(r.found)):
        lines += _section(key, results, 3)
    lines += ["# Misses", ""]
    for key, results in _grouped(figures.missed, lambda r: kind_of(r.answer)):
        lines += _section(key, results, 4)
    lines += ["# Reported for another reason", ""]
    for key, results in _grouped(figures.beside, lambda r: kind_of(r.answer)):
        lines += _section(key, results, 2)
    lines += ["# Set aside", ""]
    aside = [one for one in figures.results if one.uncounted is not None]
    for key, results in _grouped(aside, lambda r: f"{r.uncounted}: {kind_of(r.answer)}"):
        lines.append(f"* {len(results)} × {key}")
    return "\n".join(lines) + "\n"


def _by_mutation(figures: Figures) -> Iterator[str]:
    kinds = Counter(one.one.kind for one in figures.results)
    for kind in sorted(kinds):
        refused = [one for one in figures.decidable if one.one.kind == kind]
        accepted = [one for one in figures.accepted if one.one.kind == kind]
        caught = sum(1 for r in refused if r.found)
        alarms = sum(1 for r in accepted if r.refused_by_parser)
        yield f"* {kind}: {caught} of {len(refused)}; {alarms} of {len(accepted)}"


def _told(found: Sequence[Finding]) -> str:
    """The first finding without its figures, to group by."""
    first = next((one for one in found if not is_later(one.message)), found[0])
    return f"{first.code} {re.sub(r'[0-9][0-9.]*', '#', first.message)[:110]}"


def _grouped(results: Iterable[Result], key: Any) -> list[tuple[str, list[Result]]]:
    groups: dict[str, list[Result]] = defaultdict(list)
    for one in results:
        groups[key(one)].append(one)
    return sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))


def _section(key: str, results: Sequence[Result], samples: int) -> Iterator[str]:
    yield f"## {len(results)} × {key}"
    yield ""
    for result in results[:samples]:
        one = result.one
        yield f"* {one.command}, {one.form}, {one.kind}: {', '.join(one.touched)}"
        yield f"  * `{one.shown()[:600]}`"
        if not result.accepted:
            yield f"  * real: {result.answer['type']}: {str(result.answer['text'])[:300]!r}"
        for found in result.found[:3]:
            yield f"  * ours: {found.code} {found.message}"
    yield ""


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("environments", type=Path, help="the folder that build.py filled")
    add("--number", type=int, default=1000, help="configurations per framework")
    add("--seed", type=int, default=1)
    add("--only", choices=sorted(ENVIRONMENT_OF), default=None)
    add("--answers", type=Path, default=None, help="where the real parsers' answers are kept")
    add("--details", type=Path, default=None, help="where pages of misses are written")
    given = parser.parse_args(arguments)
    print(_HEAD)
    for framework in [given.only] if given.only else list(ENVIRONMENT_OF):
        results, versions = compare(
            given.environments, framework, given.number, given.seed, given.answers
        )
        figures = Figures(results)
        print(figures.line(framework), flush=True)
        if given.details is not None:
            given.details.mkdir(parents=True, exist_ok=True)
            page = given.details / f"{framework}.md"
            page.write_text(details(framework, versions, figures), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
