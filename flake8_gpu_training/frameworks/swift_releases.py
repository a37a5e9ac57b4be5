"""What ms-swift takes in a run's release, or in the source that the run's project holds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Optional

from flake8_gpu_training.facts import Location, Setting, known
from flake8_gpu_training.frameworks.at_hand import at_hand
from flake8_gpu_training.frameworks.base import ABSENT, Spelling
from flake8_gpu_training.frameworks.reading import is_off, parsed
from flake8_gpu_training.frameworks.swift_commands import group, is_megatron
from flake8_gpu_training.frameworks.tables import Parameter, Table, table_of
from flake8_gpu_training.runs.model import Run, once_per_run

_DISTRIBUTION = "ms-swift"


@once_per_run
def release(run: Run) -> str:
    """The release whose defaults hold: the pinned one, else the newest that the project takes;
    where the project holds ms-swift's source, the one that this is of."""
    state = at_hand(run, _DISTRIBUTION)
    if state is not None:
        is_told = state.pinned or any(run.limits.get(_DISTRIBUTION, ()))
        return _LAST_OF_2 if _speaks_2(run) and not is_told else state.version
    return run.held.get(_DISTRIBUTION) or run.versions.get(_DISTRIBUTION, "")


_LAST_OF_2 = "2.6.1"
_OF_2 = frozenset(("sft_type", "model_id_or_path", "template_type"))
_SINCE_3 = frozenset(("model", "train_type", "tuner_type", "template"))


def _speaks_2(run: Run) -> bool:
    """Whether a command is written in the names of ms-swift 2, where no release is told."""
    names = run.settings.keys()
    return run.command is not None and bool(names & _OF_2) and not names & _SINCE_3


def is_newest(run: Run) -> bool:
    """Whether the newest release of the tables is the one at hand."""
    return not run.declared and release(run) in ("", _table().versions[-1])


@dataclass(frozen=True)
class Default:
    """What holds where a parameter is not written, and where that was read."""

    value: Any
    source: str


def declared(run: Run, name: str) -> Optional[Parameter]:
    """The parameter as the run's command declares it in its release, or None."""
    own = _own(run)
    if own:
        setting = own.get(name)
        return None if setting is None else _parameter(setting)
    return _table_at_hand(run).parameters(group(run), release(run)).get(name)


def is_of_source(run: Run) -> bool:
    """Whether the source that the project holds declares what the run's command takes."""
    return bool(_own(run))


def names_of_source(run: Run) -> frozenset[str]:
    """The parameters that this source declares for the run's command."""
    return frozenset(name for name in _own(run) if "=" not in name)


def filled(run: Run, name: str) -> Any:
    """What the project's own ms-swift puts where a parameter is not given, or None."""
    setting = _own(run).get(f"{name}=")
    return setting.value if setting is not None else None


def source_of(run: Run, name: str, value: Any, path: str = "") -> str:
    """Where a default of the run's release was read; ``path`` is that of the newest.

    Of a parameter that is declared None and gets its value later, the source that the project
    holds also says where ("None becomes 2").
    """
    setting = _own(run).get(name)
    version = release(run) or _table().versions[-1]
    if setting is not None:
        written = f"ms-swift {version} {setting.location}: {name} {value}"
        place = _where_put(run, name, value) if setting.value is None else None
        return written if place is None else f"{written} ({place})"
    where = f" {path}" if path and is_newest(run) else ""
    return f"ms-swift {version}{where}: {name} {value}"


def _where_put(run: Run, name: str, value: Any) -> Optional[Location]:
    """Where the project's own ms-swift puts a value in the place of None, or None."""
    becomes = str(value).partition(" becomes ")[2]
    if not becomes:
        return None
    own = _own(run)
    setting = own.get(f"{name}={becomes.split()[0]}=", own.get(f"{name}=="))
    return setting.location if setting is not None else None


def default_of(run: Run, name: str) -> Optional[Default]:
    """The default of a parameter that ms-swift or Transformers declares for the run's command."""
    found = declared(run, name)
    if found is not None:
        if not found.has_default:
            return None
        return Default(found.default, source_of(run, name, found.default))
    inherited = _inherited(run, name)
    if inherited is None or not inherited.has_default:
        return None
    return Default(inherited.default, f"{_HF}: {name} {inherited.default}")


def lacks(run: Run, *names: str) -> bool:
    """Whether no release that the project may install has one of the parameters.

    What ms-swift leaves to Transformers is not in its table: only of what it declares itself
    in some release, or what ``megatron`` takes, this can be said.
    """
    state, command, own = at_hand(run, _DISTRIBUTION), group(run), _own(run)
    version = release(run)
    if own:
        if any(name in own for name in names):
            return False
    elif state is None or is_of_2(run):
        table = _table_at_hand(run)
        if not version and not is_megatron(run):
            return False
        index = table.release(version)
        if any(table.knows(command, name, index) for name in names):
            return False
    elif any(state.table.knows(command, name, i) for name in names for i in state.allowed):
        return False
    if is_of_2(run):
        return True
    if any(_inherited(run, name) is not None for name in names):
        return False
    table = _table()
    return not table.extends(command) or any(table.spans(command, name) for name in names)


def is_of_2(run: Run) -> bool:
    """Whether the run is of ms-swift 2, whose arguments are all its own."""
    return parsed(release(run)) < (3,)


def comes_later(run: Run, *names: str) -> bool:
    """Whether the newest release has one of the parameters for the run's command."""
    newest = len(_table().versions) - 1
    return any(_table().knows(group(run), name, newest) for name in names)


def is_before_vllm_mode(run: Run) -> bool:
    """Whether the number of engines says where they are: ``vllm_mode`` came with 3.5."""
    return lacks(run, "vllm_mode") and not lacks(run, "num_infer_workers", "vllm_device")


def takes(run: Run, name: str, value: str) -> bool:
    """Whether a parameter takes a value, as far as a release at hand lists its choices."""
    state = at_hand(run, _DISTRIBUTION)
    if state is not None and not _own(run) and not is_of_2(run):
        versions = [state.table.versions[index] for index in state.allowed]
        every = [state.table.parameters(group(run), version).get(name) for version in versions]
        return any(one is not None and value in (one.choices or (value,)) for one in every)
    found = declared(run, name)
    return found is not None and value in (found.choices or (value,))


def dated(run: Run, spellings: Mapping[str, Spelling]) -> Mapping[str, Spelling]:
    """``spellings`` with the names and defaults that the run's release declares."""
    return {name: _of_release(run, name, one) for name, one in spellings.items()}


def _of_release(run: Run, practice: str, spelling: Spelling) -> Spelling:
    names = (spelling.parameter, *spelling.aliases)
    having = {name: one for name in names if (one := declared(run, name)) is not None}
    if not having:
        return _without(run, practice, spelling, names)
    own = spelling.parameter
    if own not in having and not is_of_2(run) and _inherited(run, own) is not None:
        return spelling  # Transformers' own (optim); what ms-swift declares is another's name
    named = [name for name, one in having.items() if one.default is not None]
    name = next(iter((*named, *having)))
    default = having[name].default
    found = replace(spelling, parameter=name, aliases=tuple(n for n in names if n != name))
    if spelling.default is ABSENT or not having[name].has_default:
        return found
    if default is None:
        told = spelling.source.partition(": ")[2]
        shown = told if told.startswith("None") else None
        if spelling.default is True:
            shown = "None becomes True"
        if is_newest(run):
            return found
        return replace(found, source=source_of(run, name, shown))
    ours = _plain(spelling, default)
    if ours == spelling.default and name == spelling.parameter and is_newest(run):
        return found
    return replace(found, default=ours, source=source_of(run, name, _shown(default)))


def _shown(default: Any) -> Any:
    return None if default == "" else default


def _plain(spelling: Spelling, default: Any) -> Any:
    """A framework's default as ours; what is off has many names."""
    if is_off(default) and is_off(spelling.default):
        return spelling.default
    return spelling.read(default)


_OFF_WITHOUT = frozenset(
    """
    packing padding_free liger_kernel unsloth streaming group_by_length torch_compile
    """.split()  # noqa: SIM905
)
"""Practices that nothing turns on in a release without their parameter."""


def _without(run: Run, practice: str, spelling: Spelling, names: tuple[str, ...]) -> Spelling:
    """``spelling`` of what the release does not declare itself."""
    inherited = _inherited(run, spelling.parameter)
    if inherited is not None:
        table = _table()
        own = any(table.spans(group(run), name) for name in names)
        if not own or spelling.default is ABSENT or not inherited.has_default:
            return spelling
        ours, said = _plain(spelling, inherited.default), _shown(inherited.default)
        return replace(spelling, default=ours, source=f"{_HF}: {spelling.parameter} {said}")
    if not lacks(run, *names) or spelling.default is ABSENT:
        return spelling
    said = f"ms-swift {release(run) or _table().versions[-1]} has no {spelling.parameter}"
    if practice in _OFF_WITHOUT:
        return replace(spelling, default=False, source=said)
    is_plain = not spelling.default or spelling.default in (1, "none")
    return replace(spelling, source=said) if is_plain else replace(spelling, default=ABSENT)


_HF = "transformers training_args.py"


def _inherited(run: Run, name: str) -> Optional[Parameter]:
    """The parameter of Transformers that the run's command takes too."""
    if is_of_2(run):
        return None
    for distribution, base in _table().extends(group(run)):
        table = table_of(distribution)
        version = _table().base_version(distribution, release(run))
        found = table.parameters(base, version).get(name) if table is not None else None
        if found is not None:
            return found
    return None


@once_per_run
def _own(run: Run) -> Mapping[str, Setting]:
    """What the source in the project declares for the run's command."""
    return run.declared.get(group(run), {})


_CHOICES = re.compile(r"Literal\[([^\[\]]*)\]")


def _parameter(setting: Setting) -> Parameter:
    """A field of the project's own source as one of a table; its text is its type."""
    listed = _CHOICES.search(setting.text)
    choices = tuple(re.findall(r"'([^']*)'", listed[1])) if listed is not None else ()
    is_told = known(setting.value)
    value = setting.value if is_told else None
    return Parameter(setting.name, (), False, value, is_told, choices)


def _table() -> Table:
    table = table_of(_DISTRIBUTION)
    assert table is not None
    return table


def _table_at_hand(run: Run) -> Table:
    """The table that has the run's release: those before 3.0 have one of their own."""
    earlier = table_of(f"earlier/{_DISTRIBUTION}") if is_of_2(run) else None
    return earlier if earlier is not None else _table()
