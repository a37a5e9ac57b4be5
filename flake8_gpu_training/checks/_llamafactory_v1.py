"""What LlamaFactory's v1 route takes of what the checks ask for, in arguments of its own."""

from __future__ import annotations

from typing import Callable, Optional

from flake8_gpu_training.checks._judging import (
    cannot_apply,
    cannot_tell,
    excluding,
    off,
    on,
)
from flake8_gpu_training.checks._llamafactory import NO_WAY
from flake8_gpu_training.checks.base import Judgement, Status
from flake8_gpu_training.frameworks.llamafactory_v1 import is_v1, part_of
from flake8_gpu_training.frameworks.reading import is_true
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run, RunKind

_NOT_TOLD = Text("v1 路线的写法尚未收录", "how the v1 route takes it is not covered")
_LORA_ONLY = Text("仅用于 LoRA", "for LoRA only")
_OPTIONAL = Text("未使用；可选", "off; optional")

# Arguments of the first route alone: llamafactory 0.9.6.dev0, v1/config, v1/plugins.
_ABSENT = frozenset(
    """
    GPU109 GPU211 GPU212 GPU213 GPU307 GPU311 GPU312 GPU509 GPU511 GPU514 GPU609 GPU613 GPU614
    GPU615 GPU617 GPU618 GPU619 GPU621 GPU622 GPU623 GPU625
    """.split()  # noqa: SIM905
)
_UNREAD = frozenset({"GPU111", "GPU202", "GPU624"})
# Whose advice is written in arguments that both routes have.
_ADVISED = frozenset({"GPU301", "GPU804"})


def of_route(code: str, run: Run, judge: Callable[[Run], Judgement]) -> Judgement:
    """The answer of a check, as far as it holds on the route that the run takes."""
    if not is_v1(run) or run.kind is not RunKind.TRAIN:
        return judge(run)
    own = _own(code, run)
    if own is not None:
        return own
    answer = judge(run)
    to_gain = answer.status in (Status.RECOMMENDED, Status.PARTIAL)
    # What stops the run is told as it is; no advice in arguments that this route refuses.
    if to_gain and code not in _ADVISED and not code.startswith("GPU0"):
        return cannot_tell(_NOT_TOLD)
    return answer


def _own(code: str, run: Run) -> Optional[Judgement]:
    if code in _ABSENT:
        return cannot_apply(NO_WAY)
    if code in _UNREAD:
        return cannot_tell(_NOT_TOLD)
    if code in _SWITCHES:
        return _adapters(run, _SWITCHES[code])
    if code == "GPU206":
        return _lean(run)
    return None


_SWITCHES = {"GPU608": "use_dora", "GPU610": "use_rslora"}
"""Fields of v1's LoraParams (v1/plugins/model_plugins/peft.py)."""


def _adapters(run: Run, name: str) -> Judgement:
    tuning = run.practice("tuning")
    if not tuning.known:
        return cannot_tell(tuning)
    if tuning.value != "lora":
        return cannot_apply(_LORA_ONLY)
    switch = part_of(run, "peft_config", name, False)
    if switch is not None and not switch.known:
        return cannot_tell(switch)
    return on(switch) if switch is not None and is_true(switch) else off(_OPTIONAL)


def _lean(run: Run) -> Judgement:
    """Muon alone is registered (v1/plugins/trainer_plugins/optimizers)."""
    optimizer = run.practice("optimizer")
    if not optimizer.known:
        return cannot_tell(optimizer)
    answer = on(optimizer, "muon") if optimizer.value == "muon" else off(_OPTIONAL)
    return excluding(answer, NO_WAY, "galore", "badam", "apollo", "adam-mini")
