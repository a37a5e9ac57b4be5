"""Two readings of a run whose command is cut short: as it stands, and as it is meant."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Optional

from flake8_gpu_training.facts import ProblemKind, Setting
from flake8_gpu_training.runs.launchers import Launch
from flake8_gpu_training.runs.model import Run, once_per_run

_READ = (
    *("launcher", "command", "files", "settings", "overridden", "environment", "python"),
    *("deepspeed", "accelerate", "place", "refused", "absent", "is_open", "handed_over"),
)
"""What the words of a command decide; the rest is the same whatever they say."""


def meant(launch: Launch) -> Optional[Launch]:
    """``launch`` with the words that its command loses; None when it loses none."""
    command = launch.command
    if not command.lost:
        return None
    kept = launch.arguments
    while kept and not kept[-1].text.strip():  # the blank that a backslash makes a word
        kept = kept[:-1]
    words = (*command.words, *command.lost)
    end = command.lost[-1].location
    whole = dataclasses.replace(command, words=words, lost=(), end=end)
    return dataclasses.replace(launch, command=whole, arguments=(*kept, *command.lost))


@once_per_run
def readings_of(run: Run) -> tuple[Run, ...]:
    """The run as its command stands and as it is meant; none when the command is whole.

    Only as meant, where the command as it stands starts nothing: slime's without a checkpoint.
    """
    from flake8_gpu_training.frameworks import slime
    from flake8_gpu_training.runs.assembly import with_profile

    other = run.meant
    if other is None:
        return ()
    problems = tuple(p for p in run.problems if p.kind is not ProblemKind.CUT_SHORT)
    told = dataclasses.replace(run, meant=None, problems=problems)
    model = run.model if run.model.name is not None else other.model
    stands = dataclasses.replace(told, is_open=other.is_open)
    changes = {name: getattr(other, name) for name in _READ}
    whole = with_profile(dataclasses.replace(told, model=model, **changes))
    starts_nothing = _is_refused(run) or (
        slime.as_launched(stands) is None and slime.as_launched(other) is not None
    )
    return (whole,) if starts_nothing else (with_profile(stands), whole)


def _is_refused(run: Run) -> bool:
    """Whether the command as it stands starts nothing: the blank behind its last backslash is an
    argument, which the parsers of the engines' servers do not know."""
    words = run.command.words if run.command is not None else ()
    is_server = run.framework in ("vllm", "sglang")
    return is_server and bool(words) and not words[-1].text.strip()


def agreed(run: Run) -> Mapping[str, Setting]:
    """What both readings of ``run`` have alike, by practice."""
    stands, *others = (reading.profile for reading in readings_of(run))
    whole = others[0] if others else stands
    return {
        name: setting
        for name, setting in stands.items()
        if setting.known and name in whole and whole[name].value == setting.value
    }
