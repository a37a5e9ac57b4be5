"""``python -m report_builder PROJECT``: reads a project and writes the reports about it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Optional

from flake8_gpu_training import __version__
from flake8_gpu_training.collector import rarely_collecting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from report_builder.report import Options, Progress, Report

DONE, BELOW, WRONG_USAGE = 0, 1, 2
_JSON, _HTML = "static-analysis-report.json", "static-analysis-report.html"
_PATCH, _SARIF = "recommended.patch", "static-analysis-report.sarif"
_SUMMARY_RECOMMENDATIONS = 5
_FEWEST_PARAMETERS = 1_000_000
_PRIORITY_ZH = {"high": "高", "medium": "中", "low": "低"}
# Reading is Python code, which threads do not speed up, and no process may be started.
_FAIL_UNDER_HELP = "exit 1 below this attainment, of all audits of the report together"
_JOBS_HELP = "accepted so that scripts may pass it; files are read one after the other"


class UsageError(Exception):
    """Wrong usage; the message is the one line the user sees."""


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Runs the command; returns the exit status (0 done, 1 below --fail-under, 2 wrong usage)."""
    try:
        arguments = _parser().parse_args(argv)
        with rarely_collecting():
            return _run(arguments)
    except UsageError as error:
        print(f"gpu-report: {error}", file=sys.stderr)
        return WRONG_USAGE
    except BrokenPipeError:
        # The reader of the summary went away; the reports are written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except SystemExit as stop:  # --help and --version
        return int(stop.code or 0)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="gpu-report",
        description="Reads a GPU training project without running it, and writes what to improve.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("project", metavar="PROJECT", help="the project's folder")
    add("--launch-command", default="", metavar="CMD", help="the command that starts the job")
    add("--output-dir", metavar="DIR", help="default: PROJECT_static_analysis beside the project")
    add("--lang", choices=("zh", "en"), default="zh", help="language of the reports (default zh)")
    add("--gpu", metavar="NAME", help="the GPU, for example A100-80G")
    add("--num-gpus", type=_positive, metavar="N", help="GPUs per node")
    add("--num-nodes", type=_positive, metavar="N", help="nodes")
    add("--gpu-memory", type=_gib, metavar="GIB", help="memory of a GPU in GiB")
    add("--model-params", type=_parameters, metavar="N", help="size of the model, such as 7B")
    add(
        "--goal",
        choices=("balanced", "throughput", "memory", "latency"),
        default="balanced",
        help="what to optimize for (default balanced)",
    )
    add("--fail-under", type=_percent, metavar="PERCENT", help=_FAIL_UNDER_HELP)
    add("--sarif", action="store_true", help=f"also write {_SARIF}")
    add("--jobs", type=_positive, default=1, metavar="N", help=_JOBS_HELP)
    add("--quiet", action="store_true", help="no summary and no progress bar")
    add("--version", action="version", version=f"%(prog)s {__version__}")
    return parser


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return number


def _gib(text: str) -> float:
    lowered = text.lower()
    for unit in ("gib", "gb", "g"):
        lowered = lowered[: -len(unit)] if lowered.endswith(unit) else lowered
    try:
        size = float(lowered)
    except ValueError:
        size = 0.0
    if not 0 < size < 100_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size in GiB")
    return size


def _percent(text: str) -> float:
    try:
        share = float(text.rstrip("%"))
    except ValueError:
        share = -1.0
    if not 0 <= share <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage from 0 to 100")
    return share


def _parameters(text: str) -> int:
    from flake8_gpu_training.models import parameters_named

    found = int(text) if text.isascii() and text.isdigit() else parameters_named(text)
    if not found or found < _FEWEST_PARAMETERS:  # "8" is a slip for "8B"
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of parameters, such as 7B, 350M or 7000000000"
        )
    return found


def _run(arguments: argparse.Namespace) -> int:
    root = Path(arguments.project)
    if not arguments.project or not root.is_dir():
        raise UsageError(f"no such project folder: {arguments.project}")
    folder = _output_folder(root, arguments.output_dir)
    _check_writable(folder)
    options = _options(arguments, root, folder)
    from report_builder.files import OutputError, write_all
    from report_builder.launched import is_absent
    from report_builder.report import build

    with _progress(arguments.quiet) as progress:
        report = build(root, arguments.project, options, progress)
        files = _files(report, arguments.lang, arguments.sarif)
    for problem in report.broken:
        hint = "" if is_absent(problem) else "; mend it first"
        print(f"gpu-report: {problem.location}: {problem.message}{hint}", file=sys.stderr)
    if report.launch_unmatched:
        beside = "" if report.primary is None else f"; reporting on {report.primary.id}"
        print(f"gpu-report: no run found for the launch command{beside}", file=sys.stderr)
    try:
        write_all(folder, files, _known_files())
    except OutputError as error:
        raise UsageError(str(error)) from error
    if not arguments.quiet:
        _say(_summary(report, arguments.lang, folder, files))
    if arguments.fail_under is not None:
        attainment = report.attainment
        if attainment is None or attainment * 100 < arguments.fail_under:
            shown = "unknown" if attainment is None else f"{attainment:.0%}"
            print(
                f"gpu-report: attainment {shown} is below {arguments.fail_under:g}%",
                file=sys.stderr,
            )
            return BELOW
    return DONE


def _say(text: str) -> None:
    """Prints what the terminal's encoding has, and the rest escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def _output_folder(root: Path, given: Optional[str]) -> Path:
    if given:
        return Path(given)
    full = root.resolve()
    if not full.name:
        raise UsageError("this project has no name; give --output-dir")
    # "." and ".." name no folder that a sibling could be named after.
    named = root.name not in ("", "..")
    beside = root.parent if named else full.parent
    return beside / f"{root.name if named else full.name}_static_analysis"


def _check_writable(folder: Path) -> None:
    """Refuses an output that cannot work before the project is read."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise UsageError(f"cannot write to {folder}: {existing} is not a directory")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UsageError(f"cannot write to {folder}: permission denied")


def _options(arguments: argparse.Namespace, root: Path, folder: Path) -> Options:
    from flake8_gpu_training.hardware import GPUS, gpu_named
    from report_builder.report import Options

    gpu = None
    if arguments.gpu is not None:
        found = gpu_named(arguments.gpu)
        if found is None:
            raise UsageError(f"unknown GPU {arguments.gpu!r}: use one of {', '.join(GPUS)}")
        gpu = found.name
    exclude: tuple[str, ...] = ()
    inside = _relative(folder, root)
    if inside == ".":
        exclude = tuple(f"/{name}" for name in sorted(_known_files()))
    elif inside is not None:
        exclude = (f"/{inside}/",)  # reports of an earlier run are not the project's
    return Options(
        arguments.launch_command,
        arguments.goal,
        gpu,
        arguments.num_gpus,
        arguments.num_nodes,
        arguments.gpu_memory,
        arguments.model_params,
        exclude,
    )


def _relative(folder: Path, root: Path) -> Optional[str]:
    try:
        return folder.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        return None


def _files(report: Report, lang: str, with_sarif: bool) -> dict[str, str]:
    from report_builder.html import page
    from report_builder.json_report import as_json
    from report_builder.markdown import documents

    texts = documents(report, lang)
    files = dict(texts)
    files[_JSON] = _json(as_json(report, lang))
    files[_HTML] = page(report, texts, lang)
    if report.patch:
        files[_PATCH] = report.patch
    if with_sarif:
        from flake8_gpu_training.sarif import sarif

        files[_SARIF] = _json(sarif(report.diagnostics))
    return files


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _known_files() -> set[str]:
    """Every file that a run may write."""
    from report_builder.audits import AUDITS
    from report_builder.markdown import MAIN

    return {MAIN, _JSON, _HTML, _PATCH, _SARIF, *(audit.file for audit in AUDITS)}


@contextmanager
def _progress(quiet: bool) -> Iterator[Progress]:
    """A progress bar on a terminal; elsewhere nothing."""
    if quiet or not sys.stderr.isatty():
        yield lambda step, done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("read", total=None)

        def show(step: str, done: int, total: int) -> None:
            bar.update(task, description=step, completed=done, total=total if total > 1 else None)

        yield show


def _summary(report: Report, lang: str, folder: Path, files: dict[str, str]) -> str:
    """What was found, in a few lines."""
    from report_builder.launched import is_absent
    from report_builder.wording import place_text, run_text

    def t(zh: str, en: str) -> str:
        return zh if lang == "zh" else en

    engines = [n for n, on in (("vLLM", report.vllm), ("SGLang", report.sglang)) if on]
    title = report.framework_title.say(lang)
    found = t("、", ", ").join([title, *(name for name in engines if name != title)])
    lines = [f"{t('框架：', 'Frameworks: ')}{found}"]
    if report.primary is None and report.broken:
        place = place_text(report.broken[0].location, lang)
        lines.append(
            t(
                f"项目中没有启动命令的程序（{place}），无法审计",
                f"The program of the launch command is not in the project ({place}): "
                f"it cannot be audited",
            )
            if is_absent(report.broken[0])
            else t(
                f"启动命令的程序无法编译（{place}），修复后才能审计",
                f"The program of the launch "
                f"command does not compile ({place}); it can be audited when that is mended",
            )
        )
    elif report.primary is None:
        lines.append(
            t(
                "没有找到训练或推理运行：已查找启动脚本、作业文件、Makefile、"
                "训练配置和 Python 入口；"
                "请用 --launch-command 'torchrun … train.py …' 指明启动命令",
                "No training or serving run was found in launch scripts, job files, Makefiles, "
                "training configurations and Python programs; name the command that starts it "
                "with --launch-command 'torchrun … train.py …'",
            )
        )
    else:
        lines.append(f"{t('主要运行：', 'Primary run: ')}{run_text(report.primary, lang)}")
    for audit in report.audits:
        share = "—" if audit.attainment is None else f"{audit.attainment:.0%}"
        reach = round(audit.earned + audit.lost, 1)
        lines.append(
            f"{audit.audit.heading.say(lang)}{t('：', ': ')}"
            + t(
                f"{audit.score:g}/{audit.maximum} 分（按全部检查项计）；"
                f"本次运行可得 {reach:g} 分，达成度 {share}；无法静态判断 {audit.unknown} 项",
                f"{audit.score:g}/{audit.maximum} points over all items; attainment {share} of "
                f"the {reach:g} that this run can earn; {audit.unknown} items undetermined",
            )
        )
    total = len(report.recommendations)
    plural = "" if total == 1 else "s"
    lines.append(t(f"优化建议：{total} 条", f"{total} recommendation{plural}"))
    lines.extend(
        f"  {entry.rank}. [{t(_PRIORITY_ZH[entry.priority.value], entry.priority.value)}] "
        f"{entry.code} {entry.title.say(lang)}"
        for entry in report.recommendations[:_SUMMARY_RECOMMENDATIONS]
    )
    if total > _SUMMARY_RECOMMENDATIONS:
        more = total - _SUMMARY_RECOMMENDATIONS
        lines.append(t(f"  其余 {more} 条见报告", f"  {more} more in the report"))
    lines.append(t(f"已写入 {folder}：", f"Written to {folder}:"))
    lines.extend(f"  {name}" for name in sorted(files))
    return "\n".join(lines) + "\n"
