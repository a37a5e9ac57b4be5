"""Names of trackers that the Trainer refuses (integrations/integration_utils.py)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.refusals.transformers.arguments import GROUPS
from flake8_gpu_training.frameworks.refusals.transformers.training import trains
from flake8_gpu_training.language import Text

_TRACKERS = tuple(
    """
    wandb tensorboard mlflow comet_ml neptune trackio swanlab clearml azure_ml codecarbon dagshub
    dvclive flyte kubeflow
    """.split()  # noqa: SIM905
)
"""Of all releases: a later one has more of them."""
_ALONE = frozenset({"all", "none"})
_SEVERAL = re.compile(r"[\s,;|]+")
_REGISTERS = ("INTEGRATION_TO_CALLBACK",)


def _unknown(options: Options) -> list[str]:
    """Names that stand for no tracker."""
    if any(part.distribution == "ms-swift" for part in options.accepted.parts):
        return []  # it knows trackers of its own
    value = options["report_to"]
    names = value if isinstance(value, (list, tuple)) else [value]
    if not all(known(one) for one in names):
        raise UndecidedError("report_to")
    wrong = [one for one in names if isinstance(one, str) and one not in (*_TRACKERS, *_ALONE)]
    return [one for one in wrong if one.strip("\"'[]{} ") and "$" not in one]


def _is_unknown(options: Options) -> bool:
    trains(options)
    return bool(_unknown(options)) and not _registers(options)


def _registers(options: Options) -> bool:
    """Whether the project may add trackers of its own."""
    return any(item.name in _REGISTERS for file in options.run.python for item in file.imports)


def _mended(options: Options) -> Mapping[str, Any]:
    wrong = _unknown(options)[0]
    meant = list(dict.fromkeys(_meant(wrong)))
    shown = meant[0] if len(meant) == 1 else f"[{', '.join(meant)}]"
    return {"wrong": wrong, "meant": shown if meant else "none"}


def _meant(wrong: str) -> Iterator[str]:
    """The trackers that a text names, as the Trainer spells them."""
    for word in _SEVERAL.split(wrong.lower().strip("[]'\" ")):
        near = difflib.get_close_matches(word.strip("'\""), (*_TRACKERS, *_ALONE), 1)
        yield from near


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "tracker-unknown",
        "transformers/integrations/integration_utils.py, get_reporting_integration_callbacks",
        ("report_to",),
        _is_unknown,
        Text("report_to 写成 {meant}", "give report_to {meant}"),
        Text("没有名为 {wrong} 的上报目标", "there is no tracker {wrong}"),
        figures=_mended,
        stops="training stops as it starts, where the Trainer makes its callbacks",
        groups=GROUPS,
        since="4.38.2",
    ),
)
