"""GPU005 to GPU009: parameters that a framework does not know, or not with such a value."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable, Optional

from flake8_gpu_training.checks._faults import FAILS_IF_NEWEST, Fault, judge_of
from flake8_gpu_training.checks._numbers import unread
from flake8_gpu_training.checks._of_source import left_behind
from flake8_gpu_training.checks._written import (
    PLACEHOLDER,
    Use,
    Written,
    alike,
    dropping,
    renaming,
    uses,
    value_text,
)
from flake8_gpu_training.checks.base import (
    Change,
    Check,
    Edit,
    Example,
    Impact,
    Priority,
)
from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.accepted import TITLES, History, Part, is_trainer
from flake8_gpu_training.frameworks.base import Framework
from flake8_gpu_training.frameworks.former_names import Former, former
from flake8_gpu_training.frameworks.pydantic_values import is_refused
from flake8_gpu_training.frameworks.readable_numbers import is_readable
from flake8_gpu_training.frameworks.reading import parsed
from flake8_gpu_training.frameworks.registry import framework_of
from flake8_gpu_training.frameworks.tables import Parameter, table_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run, once_per_run

_SOUGHT = 100
"""Unknown names of one run for which like ones are sought; each search compares with hundreds."""
_ALIKE = 0.75
"""How much of a misspelt word must agree with the real one (difflib's ratio)."""


@dataclass(frozen=True)
class _Unknown:
    """A name that the program does not take: why, in the order in which it is asked."""

    use: Use
    written: Written
    history: Optional[History] = None
    former: Optional[Former] = None
    owner: str = ""

    @property
    def title(self) -> str:
        """Who refuses it."""
        return self.history.part.title if self.history is not None else self.use.title

    @property
    def home(self) -> Optional[tuple[str, str]]:
        """The arguments' class that takes it instead of a trainer, and its name there."""
        arguments = self.use.accepted.arguments
        if arguments is None:
            return None
        name, part = self.written.name, arguments.parts[0]
        old = former(part.distribution, name)
        for there in (name, old.name if old is not None else ""):
            if there and arguments.takes(there):
                return part.group, there
        return None

    @property
    def moving(self) -> Optional[Text]:
        """How it is given to the arguments' class, where that takes it."""
        if self.home is None:
            return None
        (owner, there), name = self.home, self.written.name
        if there == name:
            return Text(f"把 {name} 移入 {owner}", f"move {name} into {owner}")
        return Text(f"改在 {owner} 中设 {there}", f"give {there} in {owner} instead of {name}")


@once_per_run
def _unknown(run: Run) -> tuple[_Unknown, ...]:
    """The names that nothing takes; several codes tell of them."""
    return tuple(_find_unknown(run))


def _find_unknown(run: Run) -> Iterator[_Unknown]:
    for use in uses(run):
        for written in use.written:
            accepted = use.accepted
            if accepted.takes(written.name, flag=use.is_flag(written)):
                continue
            history = accepted.history(written.name)
            if history is not None and history.open:
                continue  # one of the environments that it may be started in takes it
            old = _former(use, written, history)
            found = _Unknown(use, written, history, old)
            if history is None and old is None and found.home is None:
                found = replace(found, owner=_owner(run, use, written.name))
            yield found


def _former(use: Use, written: Written, history: Optional[History]) -> Optional[Former]:
    """What became of a name, of which the tables may know nothing."""
    for part in (history.part,) if history is not None else use.accepted.parts:
        found = former(part.distribution, written.name, of_trainer=is_trainer(part.group))
        found = found or former(part.distribution, written.name)
        if found is not None and (history is not None or found.until):
            return found
    return None


# --- GPU005 ---------------------------------------------------------------------------


def _unknown_settings(run: Run) -> Iterator[Fault]:
    yield from _underscored(run)
    found = _unknown(run)
    if any(one.former is not None and one.history is None for one in found):
        return  # written for a version older than the tables: its other names are not known
    unknown = [one for one in found if one.history is None and not one.owner]
    for index, one in enumerate(unknown):
        name, title = one.written.name, one.title
        is_sought = index < _SOUGHT
        near, moving = _near(one) if is_sought else [], one.moving
        if moving is not None:
            change, mend, action = None, moving.en, moving
        elif near:
            change = renaming(one.written, {near[0]: one.written.setting.value})
            mend = f"write {one.written.typed(near[0])}"
            action = Text(f"改为 {one.written.typed(near[0])}", mend)
        else:
            others = _there_are(one) if is_sought else ""
            change, mend = None, f"drop {one.written.typed(name)}{others}"
            action = Text(f"删除 {one.written.typed(name)}", mend)
        yield Fault(
            one.written.location,
            f"{mend}: {title} has no parameter {name}, and {one.use.refuses}",
            Text(f"{title} 没有参数 {name}", f"{title} has no parameter {name}"),
            action,
            change,
            one.use.priority,
        )


def _underscored(run: Run) -> Iterator[Fault]:
    """Flags of a parser that knows them with dashes only (argparse of SGLang)."""
    for use in uses(run) if run.framework in _DASHES_ONLY else ():
        for written in use.written:
            parameter = use.parameter(written)
            if not written.is_flag or "_" not in written.raw or parameter is None:
                continue
            dashed = written.raw.replace("_", "-")
            change = Change("bash", dashed, (Edit(written.location, written.raw, dashed),))
            yield Fault(
                written.location,
                f"write {dashed}: {use.title} does not know {written.raw} with underscores, and "
                f"{use.refuses}",
                Text(
                    f"{use.title} 的参数不用下划线：{written.raw}",
                    f"{use.title} does not know {written.raw} with underscores",
                ),
                Text(f"改为 {dashed}", f"write {dashed}"),
                change,
            )


_DASHES_ONLY = frozenset({"sglang"})


def _near(one: _Unknown) -> list[str]:
    """The parameter that is meant by an unknown name, where one is."""
    name, accepted = one.written.name, one.use.accepted
    if is_trainer(accepted.parts[0].group):
        other = former(accepted.parts[0].distribution, name, of_trainer=True)
        if other is not None and accepted.takes(other.name):
            return [] if _is_given(one, other.name) else [other.name]
    meant = _MEANT.get(accepted.parts[0].distribution, {}).get(name, "")
    if meant and accepted.takes(meant):
        return [] if _is_given(one, meant) else [meant]
    near = difflib.get_close_matches(name, accepted.parameters, 1, _ALIKE)
    if near == [name[len("no_") :]] or (near and _is_given(one, near[0])):
        return []  # it would say the opposite, or stand twice
    return near


_SIZES = {"tp": "tp_size", "dp": "dp_size", "pp": "pp_size", "ep": "ep_size"}
_BATCH = {"per_device_batch_size": "per_device_train_batch_size"}
_MEANT: Mapping[str, Mapping[str, str]] = {
    "sglang": {**_SIZES, "mem_fraction": "mem_fraction_static"},
    "vllm": {"tp": "tensor_parallel_size", "pp": "pipeline_parallel_size"},
    "transformers": _BATCH,
    "trl": _BATCH,
    "llamafactory": _BATCH,
    "ms-swift": _BATCH,
}
"""What short names stand for, where a name that is spelled like one is another."""

_SOME = 3
"""Parameters that a message names where none is meant for sure."""


def _there_are(one: _Unknown) -> str:
    """Parameters that share words with an unknown name, for the user to choose from."""
    taken = dict.fromkeys(p.name for p in one.use.accepted.parameters.values())
    near = alike(one.written.name, taken, _SOME)
    return f" (there is {', '.join(map(one.written.typed, near))})" if near else ""


def _is_given(one: _Unknown, name: str) -> bool:
    """Whether a constructor gets ``name`` already: a keyword stands only once."""
    return one.use.call is not None and name in one.use.call.keywords


# --- GPU006 ---------------------------------------------------------------------------

_RELATED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "ms-swift": (("llamafactory", "train"), ("trl", "ModelConfig"), ("trl", "SFTConfig")),
    "llamafactory": (("ms-swift", "sft"), ("trl", "ModelConfig"), ("trl", "SFTConfig")),
    "transformers": (
        ("trl", "SFTConfig"),
        ("trl", "ModelConfig"),
        ("trl", "GRPOConfig"),
        ("ms-swift", "sft"),
        ("llamafactory", "train"),
    ),
    "trl": (("trl", "ModelConfig"), ("ms-swift", "sft"), ("llamafactory", "train")),
}
_FRAMEWORKS = ("hf_trainer", "swift", "llamafactory")
_COMMANDS: Mapping[str, Mapping[str, str]] = {
    "ms-swift": {
        **{group: f"swift {group}" for group in ("sft", "rlhf", "infer", "export", "deploy")},
        **{group: group for group in ("megatron sft", "megatron rlhf")},
    },
    "llamafactory": {"train": "llamafactory-cli train"},
}
"""Commands of a distribution by their groups of parameters."""


def _owner(run: Run, use: Use, name: str) -> str:
    """Whose parameter a name is that the program does not know; "" when nobody's."""
    main = use.accepted.parts[0]
    for group, command in _COMMANDS.get(main.distribution, {}).items():
        if _knows(main, group, name):
            return command
    for distribution, group in _RELATED.get(main.distribution, ()):
        table = table_of(distribution)
        if table is not None and table.span(group, name) is not None:
            title = TITLES[distribution]
            return f"{title}'s {group}" if distribution == "trl" else title
    return next((f.title for f in _others(run) if _practice(f, name)), "")


def _knows(main: Part, group: str, name: str) -> bool:
    """Whether a group of the same distribution, or one that it extends, has a parameter."""
    table, version = main.at_hand.table, main.at_hand.version
    return name in table.parameters(group, version) or any(
        (base := table_of(distribution)) is not None
        and name in base.parameters(inherited, table.base_version(distribution, version))
        for distribution, inherited in table.extends(group)
    )


def _others(run: Run) -> Iterator[Framework]:
    return (framework_of(name) for name in _FRAMEWORKS if name != run.framework)


def _practice(framework: Framework, name: str) -> str:
    """The practice that a framework's parameter is about; "" when none."""
    for practice, spelling in framework.spellings.items():
        if name == spelling.parameter or name in spelling.aliases:
            return practice
    return ""


def _foreign_settings(run: Run) -> Iterator[Fault]:
    for one in _unknown(run):
        if not one.owner:
            continue
        name, title = one.written.name, one.title
        ours = _ours(run, one)
        change = renaming(one.written, ours) if ours else None
        told = _as_written(one.written, ours)
        mend = f"write {told}" if ours else f"drop {one.written.typed(name)}"
        if (
            not ours
            and one.owner in _COMMANDS.get(one.use.accepted.parts[0].distribution, {}).values()
        ):
            mend += f" or run {one.owner}"
        owner = one.owner.replace("'s ", " 的 ")
        yield Fault(
            one.written.location,
            f"{mend}: {name} is a parameter of {one.owner}; {title} does not know it, "
            f"and {one.use.refuses}",
            Text(f"{name} 是 {owner} 的参数", f"{name} is a parameter of {one.owner}"),
            Text(f"改为 {told}" if ours else f"删除 {name}", mend),
            change,
            one.use.priority,
        )


def _as_written(written: Written, ours: Mapping[str, Any]) -> str:
    """Parameters with their values, where these are known, as a message names them."""
    names = {written.typed(key): value for key, value in ours.items()}
    join = " " if written.is_flag else "="
    if not all(known(value) for value in ours.values()):
        return ", ".join(names)
    return (join if join == " " else ", ").join(
        f"{key}{join}{value_text(value)}" for key, value in names.items()
    )


_FAMILIES = frozenset({"model_type"})
"""Names of a family of models, which is no model: nothing takes their value as it is."""


def _ours(run: Run, one: _Unknown) -> Mapping[str, Any]:
    """What the run's own framework has for a parameter of another one."""
    spellings = framework_of(run.framework).spellings_of(run)
    for other in _others(run):
        if one.written.name in _FAMILIES:
            break
        practice = _practice(other, one.written.name)
        ours = spellings.get(practice)
        if ours is None:
            continue
        value = other.spellings[practice].read(one.written.setting.value)
        if not known(value):
            written: Mapping[str, Any] = {ours.parameter: value}
        elif isinstance(value, (dict, list)):
            continue
        else:
            written = ours.parameters(value)
        if all(one.use.accepted.takes(name) for name in written):
            return written
    return {}


# --- GPU007 ---------------------------------------------------------------------------


def _renamed_settings(run: Run) -> Iterator[Fault]:
    yield from left_behind(run)
    found = tuple(_unknown(run))
    limits = _limits(found)
    for one in found:
        if one.history is not None and not one.history.is_former:
            yield _too_new(one, one.history)
        elif one.history is not None or one.former is not None:
            yield _too_old(one, run, limits)


def _limits(found: Iterable[_Unknown]) -> Mapping[str, str]:
    """The release below which each distribution has all names that it dropped."""
    limits: dict[str, str] = {}
    for one in found:
        part, last = _last(one)
        if not last or (one.history is not None and not one.history.is_former):
            continue
        here, limit = part.distribution, _after(part, last)
        if here not in limits or parsed(limit) < parsed(limits[here]):
            limits[here] = limit
    return limits


def _last(one: _Unknown) -> tuple[Part, str]:
    """Whose name it was, and the last release that had it."""
    if one.history is not None:
        return one.history.part, one.history.last
    return one.use.accepted.parts[0], one.former.until if one.former is not None else ""


def _too_new(one: _Unknown, history: History) -> Fault:
    name, part = one.written.name, history.part
    package = TITLES[part.distribution]
    return Fault(
        one.written.location,
        f"install {part.distribution}>={history.first} or drop {one.written.typed(name)}: "
        f"{package} {part.at_hand.version} is asked for, which does not know {name} "
        f"({history.first} does), and {one.use.refuses}",
        Text(
            f"{package} {part.at_hand.version} 尚无 {name}（{history.first} 有）",
            f"{package} {part.at_hand.version} does not know {name} yet ({history.first} does)",
        ),
        Text(f"升级到 {history.first} 或更新", f"install {history.first} or newer"),
        priority=_priority(one.use, history.certain),
    )


def _too_old(one: _Unknown, run: Run, limits: Mapping[str, str]) -> Fault:
    name, (part, last) = one.written.name, _last(one)
    ours = _instead(one)
    if ours:
        change = renaming(one.written, ours)
    else:
        change = None if one.moving is not None else dropping(one.written, run.command)
    dropped = one.written.typed(name)
    mend, action = _mend(one, dropped, ours)
    pinned = part.at_hand.pinned
    is_certain = one.history.certain if one.history is not None else pinned
    if not pinned:
        limit = f"{part.distribution}<{limits.get(part.distribution) or _after(part, last)}"
        mend += f", or pin {limit}"
        action = Text(f"{action.zh}，或固定 {limit}", f"{action.en}, or pin {limit}")
    why = f"{part.title} no longer has {name} (the last was {last}), and {one.use.refuses}"
    if not pinned:
        why = (
            f"{part.title}, the newest that can be installed here, no longer has {name} "
            f"(the last was {last}), and {one.use.refuses}"
        )
    return Fault(
        one.written.location,
        f"{mend}: {why}",
        Text(
            f"{part.title} 已无参数 {name}（最后为 {last}）",
            f"{part.title} no longer has {name} (the last was {last})",
        ),
        action,
        change,
        _priority(one.use, is_certain),
        None if is_certain or one.use.priority is not None else FAILS_IF_NEWEST,
    )


def _mend(one: _Unknown, dropped: str, ours: Mapping[str, Any]) -> tuple[str, Text]:
    """What to write instead: for the linter's line, and with the old name for a report."""
    if ours:
        new = _told(one.written, ours)
        return f"write {new}", Text(f"{dropped} 改为 {new}", f"write {new} instead of {dropped}")
    if one.moving is not None:
        return one.moving.en, one.moving
    former = one.former
    is_asked = former is None or former.beside is None or _is_on(one, former.beside[0])
    advice = former.advice if former is not None and is_asked else ""
    mend = f"drop {dropped}" + (f" ({advice})" if advice else "")
    return mend, Text(f"删除 {dropped}", mend)


def _priority(use: Use, is_certain: bool) -> Priority:
    """High where each release that may be installed stops; what is only ignored never is."""
    return use.priority or (Priority.HIGH if is_certain else Priority.MEDIUM)


def _after(part: Part, version: str) -> str:
    """The release that follows ``version``: the minor one, or of the same one a later patch."""
    last = parsed(version)[:2]
    versions = part.at_hand.table.versions
    patches = (one for one in versions if parsed(one)[:2] == last and parsed(one) > parsed(version))
    patch = next(patches, "")
    if patch:
        return patch
    releases = [parsed(one)[:2] for one in versions]
    later = (one for one in releases if releases[0] <= last < one)
    return ".".join(map(str, next(later, (last[0], last[1] + 1)))).removesuffix(".0")


def _instead(one: _Unknown) -> Mapping[str, Any]:
    """The parameters that take a former one's place, where the version at hand has them."""
    if one.former is None:
        return {}
    value, beside = one.written.setting.value, one.former.beside
    others = {other.name for other in one.use.written}
    if beside is not None and _is_on(one, beside[0]) and others.isdisjoint(one.former.unless):
        written: Mapping[str, Any] = beside[1]
    elif one.former.name:
        written = {one.former.name: value}
    elif known(value) and isinstance(value, (str, bool, int)):
        written = one.former.values.get(value, {})
    else:
        written = {}
    accepted = one.use.accepted
    fits = all(accepted.takes(name) and not _is_given(one, name) for name in written)
    return written if fits else {}


def _is_on(one: _Unknown, name: str) -> bool:
    """Whether a switch beside it is written as on."""
    values = (w.setting.value for w in one.use.written if w.name == name)
    return any(str(value).lower() == "true" for value in values)


def _told(written: Written, ours: Mapping[str, Any]) -> str:
    same = written.setting.value
    if len(ours) == 1 and next(iter(ours.values())) is same:
        return written.typed(next(iter(ours)))
    return _as_written(written, ours)


# --- GPU008, GPU009 -------------------------------------------------------------------


def _wrong_types(run: Run) -> Iterator[Fault]:
    yield from _refused_by_models(run)
    for use, written, parameter in _parsed(run):
        if run.framework == "vllm" and is_readable(parameter):
            yield from unread(use, written, parameter)
        if len(parameter.types) != 1 or parameter.choices or written.text is None:
            continue
        wanted = parameter.types[0]
        refused = _REFUSES.get(wanted)
        if refused is None or not refused(written.text) or _is_to_fill_in(written.text):
            continue
        if written.text.lower() in _NOTHING and _takes_nothing(use, parameter):
            continue
        new = _as(wanted, written.text)
        own = written.typed(written.name)
        hint = f"give {own} {_KINDS[wanted]}"
        if new:
            hint = f"write {_as_written(written, {written.name: new})}"
        yield Fault(
            written.location,
            f"{hint}: {use.title} reads {written.name} as {wanted}, which "
            f"{written.text!r} is not, and {use.refuses}",
            Text(
                f"{written.name} 应为 {wanted}，实为 {written.text}",
                f"{written.name} takes {wanted}, not {written.text}",
            ),
            Text(f"改为 {wanted} 值", hint),
            written.revalued(new) if new else None,
        )


def _refused_by_models(run: Run) -> Iterator[Fault]:
    """Values that a pydantic model does not convert."""
    for use in uses(run):
        for written in use.written if use.by_model else ():
            parameter = use.accepted.parameter(written.name)
            if parameter is None or parameter.choices or not _is_refused(use, parameter, written):
                continue
            wanted, shown = parameter.types[0], _json_text(written.setting.value)
            kind = _KINDS.get(wanted, _SHAPES.get(wanted, wanted))
            yield Fault(
                written.location,
                f"give {written.name} {kind}: {use.title} reads it as {wanted}, which {shown} is "
                f"not, and {use.refuses}",
                Text(
                    f"{written.name} 应为 {wanted}，实为 {shown}",
                    f"{written.name} takes {wanted}, not {shown}",
                ),
                Text(f"改为 {wanted} 值", f"give {written.name} {kind}"),
                priority=None if _always_refused(use, parameter) else Priority.MEDIUM,
            )


def _always_refused(use: Use, parameter: Parameter) -> bool:
    """Whether each release that may be installed declares the parameter with this type."""
    part = use.accepted.parts[0]
    table = part.at_hand.table
    declared = (
        table.parameters(part.group, table.versions[index]).get(parameter.name)
        for index in part.at_hand.allowed
    )
    return all(one is not None and one.types == parameter.types for one in declared)


def _is_refused(use: Use, parameter: Parameter, written: Written) -> bool:
    version = use.accepted.parts[0].at_hand.version
    value = written.setting.value
    if isinstance(value, str) and PLACEHOLDER.search(value):
        return False
    return is_refused(parameter, value, strict=parsed(version) >= _PYDANTIC_2)


_PYDANTIC_2 = (0, 15)
"""The first DeepSpeed whose models are those of pydantic 2."""
_SHAPES = {"dict": "a mapping", "list": "a list"}


def _json_text(value: Any) -> str:
    return "null" if value is None else value_text(value)


_NOTHING = frozenset({"none", "null"})


def _takes_nothing(use: Use, parameter: Parameter) -> bool:
    """Whether the parser may read the word None as no value: TRL's does, not HfArgumentParser."""
    is_trl = any(part.distribution == "trl" for part in use.accepted.parts)
    return parameter.optional and (is_trl or bool(use.parser))


def _is_to_fill_in(text: str) -> bool:
    """Whether a text stands for a number or truth; nothing, or a list or mapping, does not."""
    return bool(text) and not _is_container(text) and PLACEHOLDER.search(text) is not None


def _is_container(text: str) -> bool:
    if text[:1] not in "[{" or text == "{}":  # the last is filled in by str.format
        return False
    try:
        return isinstance(json.loads(text), (list, dict))
    except ValueError:
        return False


_TRUTHS = frozenset(("yes", "true", "t", "y", "1", "no", "false", "f", "n", "0"))
_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false"}


def _no_int(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return True
    return False


def _no_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return True
    return False


_REFUSES: Mapping[str, Callable[[str], bool]] = {
    "int": _no_int,
    "float": _no_float,
    "bool": lambda text: text.lower() not in _TRUTHS,
}


def _as(wanted: str, text: str) -> str:
    """The same value as the parser takes it; "" when there is none."""
    if wanted == "int" and not _no_float(text):
        figure = float(text)
        return str(int(figure)) if figure.is_integer() else ""
    return ""


def _parsed(run: Run) -> Iterator[tuple[Use, Written, Parameter]]:
    """Values that an argparse parser converts."""
    for use in uses(run):
        for written in use.written:
            parameter = use.parameter(written)
            if parameter is None:
                continue
            if use.is_flag(written) or _is_default(use, written):
                yield use, written, parameter


def _is_default(use: Use, written: Written) -> bool:
    """Whether it becomes a default of argparse, which converts those that are texts."""
    return use.as_defaults and written.is_key and isinstance(written.setting.value, str)


_CONVERTED = frozenset(
    """
    eval_strategy evaluation_strategy logging_strategy save_strategy hub_strategy
    lr_scheduler_type optim debug
    """.split()  # noqa: SIM905
)
"""Names that TrainingArguments.__post_init__ turns into an Enum, whoever gives them."""


def _no_choices(run: Run) -> Iterator[Fault]:
    for use in uses(run):
        for written in use.written:
            parameter = use.parameter(written)
            parameter = _with_choices(use, parameter) if parameter is not None else None
            if parameter is None or not parameter.choices:
                continue
            checked = use.is_flag(written)
            if not checked and not use.by_model and not _is_converted(use, parameter):
                continue
            value = written.text if checked else written.setting.value
            if value is None or not known(value) or not isinstance(value, (str, bool, int)):
                continue
            words = str(value).split() if parameter.name == "debug" else [value]
            if all(one in parameter.choices or str(one) in _texts(parameter) for one in words):
                continue
            if checked and None in parameter.choices and str(value).lower() in ("none", "null"):
                continue
            if "." in str(value) or PLACEHOLDER.search(str(value)):
                continue  # a member of an Enum, or no value yet
            yield _no_choice(use, written, parameter, value)


def _texts(parameter: Parameter) -> Sequence[str]:
    return [str(choice) for choice in parameter.choices]


_LEVELS = ("detail", "debug", "info", "warning", "error", "critical", "passive")
_COMPUTED: Mapping[str, tuple[str, ...]] = {
    "log_level": _LEVELS,
    "log_level_replica": _LEVELS,
    "debug": ("underflow_overflow", "tpu_metrics_debug"),
}
"""Choices of TrainingArguments that the source computes (any of 4.30.2 to 5.24.0, training_args.py,
utils/logging.py and debug_utils.py): the tables do not have them."""


def _with_choices(use: Use, parameter: Parameter) -> Parameter:
    if not use.is_trainer or parameter.name not in _COMPUTED:
        return parameter
    return replace(parameter, choices=_COMPUTED[parameter.name])


_COMPARED = frozenset({("Accelerator", "mixed_precision")})
"""Groups and names whose constructors compare the value with their choices."""


def _is_converted(use: Use, parameter: Parameter) -> bool:
    if use.is_trainer and parameter.name in _CONVERTED:
        return True
    return any((part.group, parameter.name) in _COMPARED for part in use.accepted.parts)


def _no_choice(use: Use, written: Written, parameter: Parameter, value: Any) -> Fault:
    choices = [str(choice) for choice in parameter.choices if choice is not None]
    near = difflib.get_close_matches(str(value).lower(), choices, 1, _ALIKE)
    quoted = value is False and "no" in choices
    if quoted:
        near = ["no"]
    listed = ", ".join(choices[:8]) + (", …" if len(choices) > 8 else "")
    mend = f"choose one of {listed} for {written.typed(written.name)}"
    if near:
        mend = f"write {_as_written(written, {written.name: near[0]})}"
    if quoted and written.is_key:
        mend = f'write {written.name}: "no" with quotes (YAML reads a bare no as false)'
    change = None
    if near:
        # A value in JSON stands within quotes that its text does not have.
        bare = written.is_flag or (written.is_key and not quoted)
        change = written.revalued(near[0] if bare else f'"{near[0]}"')
    return Fault(
        written.location,
        f"{mend}: {use.title} does not know {value!r} and {use.refuses}",
        Text(f"{written.name} 不能取 {value}", f"{written.name} cannot be {value}"),
        Text(f"可选值：{listed}", f"choose one of {listed}"),
        change,
        use.priority,
    )


# --- the checks -----------------------------------------------------------------------


_FAILS = Impact(note=Text("不修复则启动失败", "the run fails at start until it is mended"))
_TRAINER = """\
from transformers import Trainer, TrainingArguments

args = TrainingArguments(
    output_dir="out",
    {}
)
Trainer(model=model, args=args, train_dataset=data, eval_dataset=held_out).train()
"""
_TABLES = "frameworks/parameters/*.json, generated from the released sources"
_SWIFT = "swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset data/train.jsonl {}\n"

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU005",
        "unknown-setting",
        Text("未知参数", "Unknown setting"),
        Priority.HIGH,
        judge_of(_unknown_settings),
        why="The parser refuses a name that it does not know, and a constructor raises "
        "TypeError: the job ends before the first step, after it has waited for its GPUs.",
        fix="Write the name that is suggested, or drop it.",
        ignore="The framework is a version of your own that takes more parameters than the "
        "releases.",
        impact=_FAILS,
        examples=(
            Example(
                "llamafactory",
                "sft.yaml",
                "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\ndo_train: true\n"
                "finetuning_type: lora\nenable_liger_kernal: true\n",
                "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\ndo_train: true\n"
                "finetuning_type: lora\nenable_liger_kernel: true\n",
            ),
            Example(
                "hf_trainer",
                "train.py",
                _TRAINER.format("gradient_checkpoint=True,"),
                _TRAINER.format("gradient_checkpointing=True,"),
            ),
        ),
        sources=(_TABLES, "ms-swift 4.6.0, pipelines/base.py", "transformers hf_argparser.py"),
    ),
    Check(
        "GPU006",
        "foreign-setting",
        Text("其他框架的参数", "Setting of another framework"),
        Priority.HIGH,
        judge_of(_foreign_settings),
        why="The name is another framework's or another command's: this one refuses it at start.",
        fix="Write the parameter that this framework has for it.",
        impact=_FAILS,
        examples=(
            Example(
                "swift",
                "train.sh",
                _SWIFT.format("--attn_implementation flash_attention_2"),
                _SWIFT.format("--attn_impl flash_attn"),
            ),
        ),
        sources=(_TABLES,),
    ),
    Check(
        "GPU007",
        "renamed-setting",
        Text("参数在该版本中已改名或删除", "Setting renamed or removed"),
        Priority.HIGH,
        judge_of(_renamed_settings),
        why="The version at hand does not know the name any more, or not yet, and refuses it. "
        "The version at hand is the one that the project pins; without a pin it is the newest "
        "that its requirements allow, since that is what an installation gets today. A run "
        "that no allowed version takes is of high priority; one that an older allowed version "
        "would take is of medium priority.",
        fix="Write the new name, or pin a version that has the old one.",
        ignore="The environment is pinned where the project does not say so; then say so.",
        impact=_FAILS,
        examples=(
            Example(
                "hf_trainer",
                "train.py",
                _TRAINER.format('evaluation_strategy="epoch",'),
                _TRAINER.format('eval_strategy="epoch",'),
                files=(("requirements.txt", "transformers==4.57.6\n"),),
            ),
            Example(
                "swift",
                "train.sh",
                _SWIFT.format("--train_type lora"),
                _SWIFT.format("--tuner_type lora"),
            ),
        ),
        sources=(_TABLES, "deprecation messages of the last releases that knew the names"),
    ),
    Check(
        "GPU008",
        "wrong-type",
        Text("参数类型错误", "Value of the wrong type"),
        Priority.HIGH,
        judge_of(_wrong_types),
        why="argparse converts each flag and refuses what it cannot convert: 1e3 is no int.",
        fix="Write a value of the type that the parameter has.",
        impact=_FAILS,
        examples=(
            Example(
                "swift",
                "train.sh",
                _SWIFT.format("--max_length 4e3"),
                _SWIFT.format("--max_length 4000"),
            ),
        ),
        sources=(_TABLES, "transformers hf_argparser.py"),
    ),
    Check(
        "GPU009",
        "not-a-choice",
        Text("参数取值不在可选范围", "Value that is no choice"),
        Priority.HIGH,
        judge_of(_no_choices),
        why="Parsers refuse a value that is not among the choices, and TrainingArguments turns "
        "names of strategies, schedules and optimizers into an Enum, which knows no other.",
        fix="Choose one of the values that are named.",
        impact=_FAILS,
        examples=(
            Example(
                "hf_trainer",
                "train.py",
                _TRAINER.format('lr_scheduler_type="cosin",'),
                _TRAINER.format('lr_scheduler_type="cosine",'),
            ),
            Example(
                "swift",
                "train.sh",
                _SWIFT.format("--torch_dtype bf16"),
                _SWIFT.format("--torch_dtype bfloat16"),
            ),
        ),
        sources=(_TABLES, "transformers 4.46.3 to 5.24.0, training_args.py"),
    ),
)
