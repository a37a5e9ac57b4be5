"""The flake8 plugin: one Python file in, GPUxxx diagnostics out.

flake8 imports this module in every run, so it imports almost nothing itself: files
without a trace of GPU work are dismissed by a byte scan before anything is loaded.
"""

from __future__ import annotations

import ast
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Optional

from flake8_gpu_training import __version__

if TYPE_CHECKING:
    import argparse

    from flake8.options.manager import OptionManager

    from flake8_gpu_training.options import Options

Flake8Result = tuple[int, int, str, type]


class GpuTrainingPlugin:
    """Checks one file; flake8 makes an instance for each."""

    name: ClassVar[str] = "flake8-gpu-training"
    version: ClassVar[str] = __version__
    # flake8 hands options to the class, once in every process.
    options: ClassVar[Optional[Options]] = None
    selected: ClassVar[bool] = True

    def __init__(self, tree: ast.AST, filename: str, lines: Sequence[str]) -> None:
        self._tree = tree
        self._filename = filename
        self._lines = lines

    @classmethod
    def add_options(cls, manager: OptionManager) -> None:
        """Declare the options, all of which may also stand in a configuration file."""
        manager.add_option(
            "--gpu-min-priority",
            default="medium",
            parse_from_config=True,
            help="least priority that is reported: high, medium (default) or low",
        )
        manager.add_option(
            "--gpu-target-gpu",
            default="",
            parse_from_config=True,
            help="the GPU the project runs on, for example A100-80G",
        )
        manager.add_option(
            "--gpu-num-gpus",
            default=None,
            type=int,
            parse_from_config=True,
            help="number of GPUs per node",
        )
        manager.add_option(
            "--gpu-frameworks",
            default="auto",
            parse_from_config=True,
            help="auto (default), or a list of frameworks to check",
        )
        manager.add_option(
            "--gpu-framework-versions",
            default="",
            parse_from_config=True,
            help="for example transformers=4.46,trl=0.12 (default: what the project pins)",
        )

    @classmethod
    def parse_options(cls, options: argparse.Namespace) -> None:
        """Take the options of this flake8 run.

        Raises:
            ExecutionError: flake8's own, for a value that means nothing.
        """
        cls.selected = _is_selected(options)
        from flake8_gpu_training.options import OptionError, options_from

        try:
            cls.options = options_from(
                options.gpu_min_priority,
                options.gpu_target_gpu,
                options.gpu_num_gpus,
                options.gpu_frameworks,
                options.gpu_framework_versions,
            )
        except OptionError as error:
            from flake8.exceptions import ExecutionError

            raise ExecutionError(f"flake8-gpu-training: {error}") from error

    def run(self) -> Generator[Flake8Result, None, None]:
        """Yield (line, column from 0, message, type) as flake8 wants it."""
        if not self.selected:
            return
        from flake8_gpu_training.sources.python import is_relevant

        text = "".join(self._lines)
        if not is_relevant(text.encode("utf-8", "surrogatepass")):
            return
        from flake8_gpu_training.lint import lint_python
        from flake8_gpu_training.options import Options

        path = Path(self._filename).as_posix()
        for found in lint_python(text, path, self.options or Options(), self._tree):
            message = f"{found.code} {found.message}"
            yield found.location.line, found.location.column - 1, message, type(self)


def _is_selected(options: Any) -> bool:
    """Whether ``--select`` leaves room for any of our codes."""
    select = getattr(options, "select", None)
    if not select:
        return True
    wanted = [*select, *(getattr(options, "extend_select", None) or ())]
    return any(code.startswith("GPU") or "GPU".startswith(code) for code in wanted)
