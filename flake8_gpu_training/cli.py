"""``gpu-lint``: the checks over every file that a training project is made of."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from flake8_gpu_training import __version__
from flake8_gpu_training.collector import rarely_collecting
from flake8_gpu_training.output import FORMATS, statistics
from flake8_gpu_training.selection import Selection, codes
from flake8_gpu_training.verdicts import Diagnostic

CLEAN, FINDINGS, USAGE = 0, 1, 2


_JOBS_HELP = "accepted so that scripts may pass it; files are read one after the other"


class UsageError(Exception):
    """The command was used wrongly; the message is for the user."""


@dataclass(frozen=True)
class Target:
    """A path as given: the project it belongs to, and what of it is asked about.

    ``prefix`` leads from the working directory to the project's root, for display.
    """

    root: Path
    prefix: str
    inside: str

    def holds(self, path: str) -> bool:
        """Whether a path of the project is asked about."""
        return not self.inside or path == self.inside or path.startswith(f"{self.inside}/")


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run the command; its exit status is 0 clean, 1 findings, 2 wrong usage."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    try:
        if arguments.explain:
            return _explain(arguments.explain)
        with rarely_collecting():
            return _lint(arguments)
    except UsageError as error:
        print(f"gpu-lint: {error}", file=sys.stderr)
        return USAGE
    except BrokenPipeError:
        # The reader went away (gpu-lint | head); there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINDINGS


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpu-lint",
        description="What wastes GPU time and memory, or fails at start, in a training project.",
    )
    add = parser.add_argument
    add("paths", nargs="*", metavar="PATH", default=["."], help="projects or files (default: .)")
    add("--version", action="version", version=f"gpu-lint {__version__}")
    add("--output-format", choices=sorted(FORMATS), default="default")
    add("--select", default="", metavar="CODES", help="report these only (default: GPU)")
    add("--extend-select", default="", metavar="CODES", help="report these as well")
    add("--ignore", default="", metavar="CODES", help="do not report these")
    add("--min-priority", default="medium", help="high, medium (default) or low")
    add("--exclude", default="", metavar="PATTERNS", help="paths to leave out, as in .gitignore")
    add("--baseline", metavar="FILE", help="leave out what FILE knows of")
    add("--write-baseline", metavar="FILE", help="write all findings to FILE")
    add("--diff", action="store_true", help="print what mends the findings, as a unified diff")
    add("--statistics", action="store_true", help="count the findings of each code")
    add("--jobs", type=int, default=1, metavar="N", help=_JOBS_HELP)
    add("--explain", metavar="CODE", help="say what a code means, and stop")
    add("--target-gpu", default="", metavar="GPU", help="the GPU it runs on (A100-80G)")
    add("--num-gpus", type=int, default=None, metavar="N", help="GPUs per node")
    add("--frameworks", default="auto", help="auto (default), or the frameworks to check")
    add("--framework-versions", default="", help="for example transformers=4.46,ms-swift=3.9")
    return parser


def _lint(arguments: argparse.Namespace) -> int:
    from flake8_gpu_training.options import OptionError, options_from

    try:
        options = options_from(
            arguments.min_priority,
            arguments.target_gpu,
            arguments.num_gpus,
            arguments.frameworks,
            arguments.framework_versions,
        )
    except OptionError as error:
        raise UsageError(str(error)) from error
    if arguments.jobs < 1:
        raise UsageError("--jobs takes a number from 1")
    from flake8_gpu_training.lint import lint_project
    from flake8_gpu_training.project import Project

    selection = _selection(arguments)
    found: list[Diagnostic] = []
    patch: list[str] = []
    lines: dict[str, Sequence[str]] = {}
    something = False
    for root, targets in _by_root([_target(path) for path in arguments.paths]).items():
        project = Project.open(
            root, exclude=arguments.exclude.split(",") if arguments.exclude else ()
        )
        something = something or any(
            target.holds(path) for path in project.files for target in targets
        )
        diagnostics = [
            diagnostic
            for diagnostic in lint_project(project, options)
            if selection.takes(diagnostic.code)
            and any(target.holds(diagnostic.location.path) for target in targets)
        ]
        kept = _not_silenced(root, diagnostics, lines)
        if arguments.diff:
            from flake8_gpu_training.patches import unified_diff

            changes = [d.change for d in kept if d.change is not None]
            prefix = "" if Path(targets[0].prefix).is_absolute() else targets[0].prefix
            patch.append(unified_diff(root, changes, prefix))
        found.extend(_shown(diagnostic, targets[0].prefix, lines) for diagnostic in kept)
    if not something:
        raise UsageError(f"nothing to read in {', '.join(arguments.paths)}")
    found = _through_baseline(arguments, found, lines)
    sys.stdout.write("".join(patch) if arguments.diff else FORMATS[arguments.output_format](found))
    if arguments.diff:
        _say_what_is_left(found)
    if arguments.statistics:
        sys.stdout.write(statistics(found))
    return FINDINGS if found else CLEAN


def _say_what_is_left(found: Sequence[Diagnostic]) -> None:
    """Tells, beside the diff, of findings that no edit mends: they take a decision."""
    from flake8_gpu_training.patches import has_lines

    left = [
        one
        for one in found
        if one.change is None or not any(has_lines(e.location.path) for e in one.change.edits)
    ]
    if left:
        codes_left = Counter(one.code for one in left)
        counts = ", ".join(f"{code} {count}" for code, count in codes_left.items())
        print(
            f"gpu-lint: {len(left)} of {len(found)} findings cannot be mended by an edit: "
            f"{counts}; see them without --diff",
            file=sys.stderr,
        )


def _selection(arguments: argparse.Namespace) -> Selection:
    select = codes(arguments.select) or ("GPU",)
    return Selection((*select, *codes(arguments.extend_select)), codes(arguments.ignore))


def _target(given: str) -> Target:
    path = Path(given)
    if not path.exists():
        raise UsageError(f"no such file or folder: {given}")
    if path.is_dir():
        return Target(path, "" if given in (".", "./") else f"{given.rstrip('/')}/", "")
    root = _root_of(path)
    inside = path.resolve().relative_to(root.resolve()).as_posix()
    shown = path.as_posix()
    prefix = shown[: -len(inside)] if shown.endswith(inside) else f"{root.as_posix()}/"
    return Target(root, prefix, inside)


def _root_of(file: Path) -> Path:
    """The project around a file: the nearest folder with a mark of one, else its own folder.

    The search does not leave the working directory when the file lies in it.
    """
    from flake8_gpu_training.project import ROOT_MARKS

    here = Path.cwd().resolve()
    for folder in file.resolve().parents:
        if folder == here or any((folder / mark).exists() for mark in ROOT_MARKS):
            return folder
    return file.resolve().parent


def _by_root(targets: Iterable[Target]) -> dict[Path, list[Target]]:
    grouped: dict[Path, list[Target]] = {}
    for target in targets:
        grouped.setdefault(target.root, []).append(target)
    return grouped


def _not_silenced(
    root: Path, found: Iterable[Diagnostic], lines: dict[str, Sequence[str]]
) -> list[Diagnostic]:
    from flake8_gpu_training.noqa import is_file_silenced, is_silenced, statement_span

    kept: list[Diagnostic] = []
    for diagnostic in found:
        path = diagnostic.location.path
        if path not in lines:
            lines[path] = _lines(root / path)
        text = lines[path]
        if is_file_silenced(text):
            continue
        span = statement_span(text, diagnostic.location.line, path.endswith(".py"))
        if not is_silenced(text, span, diagnostic.code):
            kept.append(diagnostic)
    return kept


def _lines(path: Path) -> list[str]:
    try:
        if not path.is_file():  # a pipe or a device would keep us waiting
            return []
        return path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    except (OSError, ValueError):
        return []


def _shown(diagnostic: Diagnostic, prefix: str, lines: dict[str, Sequence[str]]) -> Diagnostic:
    """The diagnostic with its path as seen from the working directory."""
    import dataclasses

    location = diagnostic.location
    shown = dataclasses.replace(location, path=f"{prefix}{location.path}")
    lines[shown.path] = lines.get(location.path, ())
    return dataclasses.replace(diagnostic, location=shown)


def _through_baseline(
    arguments: argparse.Namespace, found: list[Diagnostic], lines: dict[str, Sequence[str]]
) -> list[Diagnostic]:
    from flake8_gpu_training.baseline import BaselineError, without_known, write_baseline

    if arguments.write_baseline:
        try:
            write_baseline(Path(arguments.write_baseline), found, lines)
        except OSError as error:
            raise UsageError(f"cannot write {arguments.write_baseline}: {error}") from error
        return []
    if not arguments.baseline:
        return found
    try:
        return without_known(Path(arguments.baseline), found, lines)
    except BaselineError as error:
        raise UsageError(str(error)) from error


def _explain(code: str) -> int:
    from flake8_gpu_training.checks.registry import all_checks
    from flake8_gpu_training.pages import page

    for check in all_checks():
        if check.code == code.strip().upper():
            sys.stdout.write(page(check))
            return CLEAN
    raise UsageError(f"no such code: {code}")


if __name__ == "__main__":
    sys.exit(main())
