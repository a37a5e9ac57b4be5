"""Names of older releases that the ms-swift source which a project holds does not take."""

from __future__ import annotations

from collections.abc import Iterator

from flake8_gpu_training.checks._faults import Fault
from flake8_gpu_training.facts import Origin, Setting
from flake8_gpu_training.frameworks.former_names import former, renamed_to
from flake8_gpu_training.frameworks.swift_releases import (
    declared,
    default_of,
    is_of_source,
    names_of_source,
    release,
)
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_PASSES = ("use_ray", "ignore_args_error")


def left_behind(run: Run) -> Iterator[Fault]:
    """Flags whose names an older ms-swift had, at which this one's parser stops (base.py)."""
    if run.framework != "swift" or run.command is None or not is_of_source(run):
        return
    if any(name in run.settings for name in _PASSES):
        return
    for name, setting in run.settings.items():
        if setting.origin is Origin.FLAG and former("ms-swift", name) and not _is_taken(run, name):
            yield _fault(run, name, setting)


def _is_taken(run: Run, name: str) -> bool:
    """Whether the parser knows the name; argparse takes its beginning too."""
    if declared(run, name) is not None or default_of(run, name) is not None:
        return True
    return any(known.startswith(name) for known in names_of_source(run))


def _fault(run: Run, name: str, setting: Setting) -> Fault:
    candidates = renamed_to("ms-swift", name)
    new = next((one for one in candidates if _is_taken(run, one)), "")
    mend = f"write --{new}" if new else f"drop --{name}"
    zh = f"--{name} 改为 --{new}" if new else f"删除 --{name}"
    en = f"write --{new} instead of --{name}" if new else mend
    version = release(run)
    return Fault(
        setting.location or run.location,
        f"{mend}: the ms-swift {version} in the project has no parameter {name}, and its parser "
        "stops at it",
        Text(
            f"项目自带的 ms-swift {version} 没有参数 {name}",
            f"the ms-swift {version} in the project has no parameter {name}",
        ),
        Text(zh, en),
    )
