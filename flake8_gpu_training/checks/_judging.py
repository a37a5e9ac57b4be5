"""Short forms for the answers that checks give, and the rules every advice obeys."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Callable, Optional, Union

from flake8_gpu_training.checks import changes
from flake8_gpu_training.checks._scale import (
    is_for_tpus,
    is_trainer_class,
    is_trial,
    only_evaluates,
)
from flake8_gpu_training.checks.base import (
    Change,
    Edit,
    Evidence,
    Finding,
    Impact,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Call, Import, Location, Origin, Setting, Unknown
from flake8_gpu_training.frameworks.at_hand import lacks
from flake8_gpu_training.frameworks.registry import framework_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Place, PlaceKind, Run, RunKind
from flake8_gpu_training.runs.names import PRACTICE_NAMES

Judge = Callable[[Run], Judgement]

_NO_TRAINING = Text("该任务不做训练", "this job does not train")
_TPU = Text("在 TPU 上训练", "it trains on TPUs")
TRIAL = Text("试运行（步数很少或在 CPU 上）", "a trial run (a few steps, or on the CPU)")
_ALONE = Text(
    "仅看到单个文件，无法得知启动方式与其他配置",
    "one file seen alone: launcher and other files are out of sight",
)
_CUT = Text("命令被截断，其后的参数未生效", "the command is cut short: what follows it is lost")
_PART = Text("只看到训练器的一部分", "a part of a trainer: its arguments are out of sight")
_OPTION = Text("由命令行选项决定", "an option of the script decides, with a default only")
_NOT_RELEASED = Text(
    "所用版本没有对应参数，升级后可用",
    "the release in use has no such parameter, newer ones have",
)
_NO_WAY = Text("该框架没有对应参数", "the framework has no parameter for it")


@dataclass(frozen=True)
class Snippet:
    """What to write where the framework has no parameter: code, and the same in words."""

    instruction: str
    text: str
    language: str = "python"
    edits: tuple[Edit, ...] = ()


def on(evidence: Union[Setting, str], variant: str = "") -> Judgement:
    """The practice is on, as ``evidence`` shows."""
    shown = Evidence(evidence) if isinstance(evidence, str) else Evidence.of(evidence)
    current = Text(f"已启用：{shown.text}", f"on: {shown.text}")
    return Judgement(Status.ENABLED, variant, evidence=(shown,), current=current)


def by_itself(said: Text, variant: str = "") -> Judgement:
    """The practice is on without anybody's asking, as ``said`` tells."""
    shown = Evidence(said.en, said=said)
    return Judgement(Status.ENABLED, variant, evidence=(shown,), current=said)


def seen(call: Call, variant: str = "") -> Judgement:
    """The practice is on, since the program makes this call."""
    current = Text(f"代码中调用了 {call.name}", f"the program calls {call.name}")
    evidence = (Evidence(call.name, call.location),)
    return Judgement(Status.ENABLED, variant, evidence=evidence, current=current)


def imported(found: Import, variant: str = "") -> Judgement:
    """The practice is on, since the program imports this."""
    current = Text(f"代码导入了 {found.dotted}", f"the program imports {found.dotted}")
    evidence = (Evidence(f"import {found.dotted}", found.location),)
    return Judgement(Status.ENABLED, variant, evidence=evidence, current=current)


def off(why: Text, setting: Optional[Setting] = None) -> Judgement:
    """Off, and optional for this run."""
    shown = (Evidence.of(setting),) if setting is not None and setting.explicit else ()
    return Judgement(Status.DISABLED, evidence=shown, current=why)


def by_code(lacks: Text, code: str, language: str = "python") -> Judgement:
    """Off: the framework has no parameter for it; ``code`` is what a fork of it would have."""
    said = Text(f"{lacks.zh}；需改动代码", f"{lacks.en}; needs a code change")
    return replace(off(said), change=Change(language, code))


def half(lacks: Text, code: str, language: str = "python") -> Judgement:
    """Half on: the rest has no parameter; ``code`` is what a fork of the framework would have."""
    said = by_code(lacks, code, language)
    action = Text("在框架代码中补上其余部分", "add the rest in the framework's code")
    return replace(said, status=Status.PARTIAL, share=0.5, action=action, needs_code=True)


def cannot_apply(why: Text) -> Judgement:
    """The practice cannot apply to this run."""
    return Judgement(Status.NOT_APPLICABLE, current=why)


def cannot_tell(about: Union[Setting, Text]) -> Judgement:
    """Static analysis cannot tell; ``about`` is the unknown setting, or the reason."""
    if isinstance(about, Setting):
        about = _untold(about)
    return Judgement(Status.UNKNOWN, current=about)


def _untold(setting: Setting) -> Text:
    """That a setting is not known, with the values that it may have."""
    name = PRACTICE_NAMES.get(setting.name, Text(setting.name, setting.name))
    candidates = setting.value.candidates if isinstance(setting.value, Unknown) else ()
    if not candidates:
        if not setting.location:
            return Text(f"{name.zh}：无法静态得知", f"{name.en}: not known")
        is_of_another = setting.text and setting.note.endswith(f"={setting.text}")
        read = setting.note if is_of_another else setting.written
        if isinstance(setting.value, Unknown) and read == setting.name:
            return Text(
                f"{name.zh}：无法静态得知（{setting.location}）",
                f"{name.en}: not known: {setting.value.reason} ({setting.location})",
            )
        return Text(
            f"{name.zh}：无法静态得知：`{read}`（{setting.location}）",
            f"{name.en}: not known: `{read}` ({setting.location})",
        )
    values = dict.fromkeys(str(one) if one not in ("", None) else "none" for one in candidates)
    return Text(
        f"{name.zh}：无法静态得知（可能为 {' 或 '.join(values)}）",
        f"{name.en}: not known ({' or '.join(values)})",
    )


def _shell_place(run: Run, snippet: Snippet) -> Optional[Location]:
    """Where a line for the shell is written: the command that starts the run."""
    is_line = snippet.language == "bash" and snippet.text.startswith("export ")
    return run.command.location if is_line and run.command is not None else None


def advise(
    run: Run,
    reason: str,
    current: Text,
    action: Text,
    practices: Optional[Mapping[str, Any]] = None,
    parameters: Optional[Mapping[str, Any]] = None,
    snippet: Optional[Snippet] = None,
    variant: str = "",
    at: Optional[Setting] = None,
    call: Optional[Call] = None,
    priority: Optional[Priority] = None,
    share: Optional[float] = None,
    impact: Optional[Impact] = None,
) -> Judgement:
    """The practice is recommended, or partial when a ``share`` of the points is earned.

    ``practices`` are written as the run's framework spells them, ``parameters`` under their
    own names, ``snippet`` when the framework has neither. ``at`` is the setting that is to
    be changed; ``call`` takes the parameters instead of the run's own place.
    """
    if at is not None and _is_options_default(run, at):
        return cannot_tell(_OPTION)
    if call is not None:
        run = replace(run, place=Place(PlaceKind.PYTHON, call.location, call=call))
    if parameters is None and practices is not None:
        parameters = spelled(run, practices)
    if parameters:
        taken = {name: value for name, value in parameters.items() if _is_released(run, name)}
        if next(iter(parameters)) not in taken:
            return off(_NOT_RELEASED)
        parameters = taken
    if parameters is not None:
        change = changes.write(run, parameters)
        message = f"set {changes.instruction(run, parameters)}: {reason}"
    elif snippet is not None:
        change = Change(snippet.language, snippet.text, snippet.edits)
        message = f"{snippet.instruction}: {reason}"
    else:
        return off(_NO_WAY)
    location = at.location if at is not None else None
    if location is None and parameters is None and snippet is not None:
        location = _shell_place(run, snippet)
    location = location or run.place.location
    shown = (Evidence.of(at),) if at is not None else ()
    return Judgement(
        Status.RECOMMENDED if share is None else Status.PARTIAL,
        variant,
        1.0 if share is None else share,
        shown,
        (Finding(location, message, change),),
        current,
        action,
        change,
        priority,
        impact,
    )


def _is_released(run: Run, name: str) -> bool:
    """Whether a release that the project may install has the parameter, as far as known."""
    group = _GROUPS.get(run.framework)
    return group is None or not lacks(run, *group, name)


# Tables of the parameters of frameworks whose dialects of old releases are not kept apart.
_GROUPS = {
    "hf_trainer": ("transformers", "TrainingArguments"),
    "llamafactory": ("llamafactory", "train"),
}


def with_edits(judgement: Judgement, edits: tuple[Edit, ...] = ()) -> Judgement:
    """The advice with other edits; with none it is words only, for what needs a decision."""
    if judgement.change is None or judgement.change.edits == edits:
        return judgement
    change = replace(judgement.change, edits=edits)
    findings = tuple(replace(finding, change=change) for finding in judgement.findings)
    return replace(judgement, change=change, findings=findings)


def _is_options_default(run: Run, setting: Setting) -> bool:
    """Whether a script's option gave the value, and the command that starts it is unknown."""
    if run.command is not None or not setting.explicit:
        return False
    return setting.origin is Origin.DEFAULT or _OPTIONS.fullmatch(setting.text) is not None


# An argument that is taken from what the script's options were parsed to.
_OPTIONS = re.compile(r"(?:self\.)?(?:\w*args|opts?|options|flags|FLAGS|hparams)\.\w+")


def told(current: Text, action: Text) -> Text:
    """What is wrong and what to do about it, as one line of the reports."""
    return Text(f"{current.zh}；{action.zh}", f"{current.en}; {action.en}")


def excluding(judgement: Judgement, why: Text, *variants: str) -> Judgement:
    """The answer, which adds that the run cannot take ``variants``."""
    found = tuple((name, why) for name in variants)
    return replace(judgement, excluded=(*judgement.excluded, *found))


def no_mistake() -> Judgement:
    """Nothing wrong was found."""
    return Judgement(Status.NOT_APPLICABLE)


def spelled(run: Run, practices: Mapping[str, Any]) -> Optional[Mapping[str, Any]]:
    """``practices`` in the parameters of the run's framework; None when it lacks one."""
    spellings = framework_of(run.framework).spellings_of(run)
    written: dict[str, Any] = {}
    for name, value in practices.items():
        spelling = spellings.get(name)
        if spelling is None:
            return None
        written.update(spelling.parameters(value))
    return written


def prefixed(run: Run, processes: int) -> tuple[Edit, ...]:
    """The edit that puts NPROC_PER_NODE before a command whose own launcher reads it."""
    command = run.command
    if command is None or command.wrappers or command.name not in ("swift", "megatron"):
        return ()
    if command.end is None:  # the elements of a list: no shell reads the assignment
        return ()
    return (Edit(command.location, "", f"NPROC_PER_NODE={processes} "),)


def keyword_change(run: Run, call: Call, name: str, value: Any) -> Change:
    """The change that gives ``call`` the keyword argument ``name``."""
    return changes.write_in_call(run, call, call.keywords, {name: value})


def told_of_absent(run: Run, judgement: Judgement) -> Judgement:
    """``judgement``; an unknown one says that the run's configuration is not in the project."""
    named = run.settings.get("config")
    is_untold = judgement.status is Status.UNKNOWN and judgement.current.en.endswith(": not known")
    if not (is_untold and run.is_open and named is not None and named.known):
        return judgement
    said = Text(
        f"--config 指定的 {named.value} 不在项目中，其中可能设置了该项",
        f"{named.value} of --config is not in the project, and may set it",
    )
    return replace(judgement, current=said)


def _without_advice(judgement: Judgement) -> Judgement:
    """What a trial run is told: what is on, and nothing to change."""
    if judgement.status is not Status.PARTIAL:
        return off(TRIAL)
    kept = replace(judgement, status=Status.ENABLED, findings=(), change=None, better="")
    return replace(kept, share=1.0, action=Text("", ""))


def of_training(alone: bool = False, inside: bool = False) -> Callable[[Judge], Judge]:
    """Makes a judge obey the common rules of advice about training.

    It is asked about training runs only; a trial run is advised nothing; nor is one whose
    command is cut short, since the flags behind the cut are meant. Of a file seen alone only
    what ``alone`` allows is said, since the launcher may have set the rest, and of a class
    that extends a Trainer only what stands ``inside`` its steps.
    """

    def decorate(judge: Judge) -> Judge:
        @functools.wraps(judge)
        def guarded(run: Run) -> Judgement:
            if run.kind is not RunKind.TRAIN or only_evaluates(run):
                return cannot_apply(_NO_TRAINING)
            judgement = told_of_absent(run, judge(run))
            if judgement.status not in (Status.RECOMMENDED, Status.PARTIAL):
                return judgement
            if is_for_tpus(run):
                return cannot_apply(_TPU)
            if is_trial(run):
                return _without_advice(judgement)
            if run.is_cut_short:
                return cannot_tell(_CUT)
            if not inside and is_trainer_class(run):
                return cannot_tell(_PART)
            if run.single_file and not alone:
                return cannot_tell(_ALONE)
            return judgement

        return guarded

    return decorate
