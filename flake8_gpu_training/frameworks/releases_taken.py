"""The newest releases of Transformers and TRL that take all that a run passes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from flake8_gpu_training.facts import Origin
from flake8_gpu_training.frameworks.at_hand import at_hand
from flake8_gpu_training.frameworks.tables import table_of
from flake8_gpu_training.runs.model import Run, once_per_run

_ARGUMENTS = "TrainingArguments"
# Configurations of TRL that extend TrainingArguments, directly or by TRL's own base of all.
_CONFIGS = ("SFTConfig", "DPOConfig", "GRPOConfig", "KTOConfig", "RewardConfig")
_BASES = ("_BaseConfig", "BaseConfig")


@once_per_run
def as_it_starts(run: Run) -> Run:
    """``run`` with the newest releases that it starts with, where newer ones refuse its arguments.

    What it leaves out has the defaults of those.
    """
    found = dict(run.versions)
    for distribution in ("transformers", "trl"):
        release = _newest(run, distribution)
        if release:
            found[distribution] = release
    return run if len(found) == len(run.versions) else replace(run, versions=found)


def _newest(run: Run, distribution: str) -> str:
    """The release, or empty where it is pinned or the newest that is allowed will do."""
    state = at_hand(run, distribution)
    if state is None or run.versions.get(distribution) or not state.allowed:
        return ""
    table = state.table
    uses = [(g, n) for g, n in set(_uses(run, distribution)) if table.spans(g, n)]
    fits = [i for i in state.allowed if all(table.knows(g, n, i) for g, n in uses)]
    return table.versions[fits[-1]] if fits and fits[-1] != state.allowed[-1] else ""


def _uses(run: Run, distribution: str) -> Iterator[tuple[str, str]]:
    """Groups of the distribution's table, and the parameters that the run gives each."""
    own = {name for file in run.python for item in file.classes for name in item.fields}
    if run.place.call is None:
        own.update(option.name for file in run.python for option in file.options)
    written = (n for n, s in run.settings.items() if s.origin is not Origin.DEFAULT)
    given = [name for name in written if "." not in name and name not in own]
    if distribution == "transformers":
        yield from ((_ARGUMENTS, name) for name in given)
    else:
        names = {call.method for file in run.python for call in file.calls}
        for group in names.intersection(_CONFIGS):
            yield from ((group, name) for name in given if not _is_of_base(name))
    for file in run.python:
        for call in file.calls:
            if call.method.endswith("Trainer") and call.name.startswith(f"{distribution}."):
                yield from ((call.method, name) for name in call.keywords)


def _is_of_base(name: str) -> bool:
    transformers, trl = table_of("transformers"), table_of("trl")
    if transformers is not None and transformers.spans(_ARGUMENTS, name):
        return True
    return trl is not None and any(trl.spans(base, name) for base in _BASES)
