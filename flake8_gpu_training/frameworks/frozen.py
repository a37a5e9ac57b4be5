"""What a program freezes: whether all weights of its model are trained."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Optional

from flake8_gpu_training.facts import (
    Call,
    Condition,
    Location,
    Loop,
    Origin,
    PythonFile,
    Setting,
    Unknown,
    known,
)
from flake8_gpu_training.frameworks.reading import is_off, truth
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.sources.python import (
    BY,
    CHOOSES,
    CHOSEN,
    GIVES,
    WITHOUT_GRADIENT,
    chooses_weights,
)

# Copies and judges that no optimizer is given.
_HELPER = re.compile(
    r"(?i)teacher|target|(?:^|[._])(?:ema|ref(?:erence)?|old)(?:[._]|$)|momentum|disc|critic"
    r"|reward|lpips|vgg|percept|loss|averag|shadow|netd|inception|_(?:ema|[kmt])$"
)
# What a diffusion model is trained beside: it makes latents and conditions.
_CONDITIONING = re.compile(
    r"(?i)(?:self\.)?\w*(?:vae|text_|clip|first_stage|cond_stage|tokenizer|image_enc|t5|autoencod)\w*"
)
_TOWER = re.compile(
    r"(?i)(?:vision|image|mm)_?(?:tower|encoder|model)|(?:^|[._])(?:visual|vit)(?:[._]|$)"
)
_DIFFUSION = re.compile(r"(?i)diffus|unet|noise_?sched|flow_?match")
_WHOLE = re.compile(r"(?:self\.)?(?:model|net|network)(?:\.(?:model|module))?")
_NO_WEIGHTS = re.compile(
    r"(?i)(?:^|[._])(?:cfg|conf|config|_c|args?|opts?|options|params|hparams|state|graph|gc|vars)$"
)
_NO_FREEZING = re.compile(r"(?i)freeze_support|freeze_time|(?:bn|batch_?norm|norms?)(?:_|$)")
# Classes that compare images or sounds with networks of their own.
_MEASURE = re.compile(
    r"\w*(?:Inception|LPIPS|Lpips|VGG|Vgg|Perceptual)\w*|\w+(?:Loss|Metrics?|Scorer|Evaluator)"
)
_ASIDE = re.compile(r"(?i)(?:^|_)(?:eval|valid|test|infer|sampl|export|generat|predict|visual)")
_SWITCH = re.compile(r"(?i)freez|frozen")
_TRAINS = re.compile(r"\w*Trainer|prepare|DistributedDataParallel|initialize|backward|step|fit")
_CALLED_BY_OTHERS = ("", "__init__", "__new__", "<lambda>")
_GIVING = frozenset({"parameters", "named_parameters", "modules", "named_modules", "children"})
_REQUIRES = "requires_grad"


@dataclass(frozen=True)
class _Site:
    """A place that freezes ``target`` (empty: nobody can tell what); ``value`` true: thaws it."""

    target: str
    value: Any
    location: Optional[Location]
    scope: str
    conditions: tuple[Condition, ...] = ()


def frozen(run: Run) -> Optional[Setting]:
    """How a run is tuned that freezes weights of its model; None when it freezes none.

    Copies that are never trained (teachers, averages, critics) do not count.
    """
    sites = [site for site in _sites(run) if not _is_aside(run, site)]
    thawed = {s.target for s in sites if truth(s.value) is True and not s.conditions}
    for site in sites:
        if truth(site.value) is not True and (site.target not in thawed or site.conditions):
            return _tuning(run, site)
    return _partly(run) or _chosen(run) or _switched(run)


def _partly(run: Run) -> Optional[Setting]:
    """``AdamW(model.head.parameters())``: the only optimizer is given a part of the model."""
    given: dict[str, Location] = {}
    for file in run.python:
        for call in file.calls:
            if not call.name.startswith("torch.optim.") or "schedul" in call.name:
                continue
            argument = call.keywords.get("params") or next(iter(call.positional), None)
            text = argument.text if argument is not None else ""
            chosen = _CHOSEN.fullmatch(text)
            owners = (
                [text] if chosen is not None else re.findall(r"([\w.\[\]]+)\.parameters\(", text)
            )
            if not owners:
                return None  # what it is given has a name of its own
            given.update(dict.fromkeys(owners, call.location))
    part = next(iter(given), "")
    if len(given) != 1 or not (_PART.fullmatch(part) or _CHOSEN.fullmatch(part)):
        return None
    value = Unknown(f"the optimizer is given {part}", ("freeze", "full"))
    return Setting("tuning", value, given[part], Origin.CONSTRUCTOR)


def _chosen(run: Run) -> Optional[Setting]:
    """What the trees of the sources tell: optimizers of chosen weights, passes without gradient."""
    words = {word for file in run.python for word in file.mentions or ()}
    chosen_by = {word[len(CHOOSES) :] for word in words if word.startswith(CHOOSES)}
    gives = {word[len(GIVES) :] for word in words if word.startswith(GIVES)}
    given_by = {word[len(BY) :] for word in words if word.startswith(BY)}
    unread = sorted(given_by - gives - _GIVE_ALL)
    passed = sorted(w[len(WITHOUT_GRADIENT) :] for w in words if w.startswith(WITHOUT_GRADIENT))
    defined = {name for file in run.python for own in file.classes for name in own.methods}
    parts = [name for name in passed if name not in defined and not _is_helper(run, name)]
    if CHOSEN in words:
        reason = "the optimizer is given chosen weights"
    elif chosen_by & given_by:
        reason = f"{min(chosen_by & given_by)} chooses the weights that are trained"
    elif unread:
        reason = f"what {unread[0]} gives the optimizer is not read"
    elif _BY_NAME in words:
        reason = "weights are frozen by setattr"
    elif parts:
        reason = f"{parts[0]} is passed without gradient"
    else:
        return None
    value = Unknown(reason, ("freeze", "full"))
    return Setting("tuning", value, None, Origin.CONSTRUCTOR)


# timm's and Transformers' own, which sort all weights by their decay.
_GIVE_ALL = frozenset({"param_groups_weight_decay", "param_groups_layer_decay", "add_weight_decay"})
_BY_NAME = "set requires_grad"


_PART = re.compile(r"(?:self\.)?(?:model|net|network)(?:\.module)?\.(?!module$|model$)\w[\w.\[\]]*")
_CHOSEN = re.compile(
    r"\[\s*\w+ for \w+, *\w+ in [^{}]*named_parameters\(\) if (?!.*requires_grad).*\]"
)


def _tuning(run: Run, site: _Site) -> Setting:
    made = Setting("tuning", "freeze", site.location, Origin.CONSTRUCTOR)
    if site.conditions or not known(site.value):
        asked = site.conditions[-1].text if site.conditions else "what it is told"
        reason = f"it depends on {asked or 'a branch'}"
        return replace(made, value=Unknown(reason, ("full", "freeze")))
    if _WHOLE.fullmatch(site.target) and _is_trained_in(run, site):
        return made
    reason = f"{site.target or 'a part'} is frozen"
    return replace(made, value=Unknown(reason))


def _is_trained_in(run: Run, site: _Site) -> bool:
    """Whether the function that freezes a model also has it trained."""
    return any(
        call.scope == site.scope and (_TRAINS.fullmatch(call.method) or "ptim" in call.name)
        for file in run.python
        if site.location is not None and file.path == site.location.path
        for call in file.calls
    )


def _switched(run: Run) -> Optional[Setting]:
    """A switch of that name which is on, though no code in sight freezes anything."""
    for name, setting in run.settings.items():
        last = name.rpartition(".")[2]
        if not _SWITCH.search(last) or _NO_FREEZING.search(last) or _is_helper(run, last):
            continue
        if not known(setting.value) or not (is_off(setting.value) or setting.value in (0, -1)):
            value = Unknown(f"it depends on {name}", ("full", "freeze"))
            return Setting("tuning", value, setting.location, setting.origin)
    return None


def _is_aside(run: Run, site: _Site) -> bool:
    """Whether what is frozen is none of the model's weights, or frozen for an evaluation."""
    outer, _, scope = site.scope.rpartition(".")
    measures = _MEASURE.fullmatch(outer.rpartition(".")[2]) is not None
    return measures or _ASIDE.search(scope) is not None or _is_helper(run, site.target)


def _is_helper(run: Run, target: str) -> bool:
    if _HELPER.search(target):
        return True
    if run.model.kind == "MLLM" and _TOWER.search(target):
        return True  # how the language model is tuned does not depend on it
    return _CONDITIONING.fullmatch(target) is not None and _is_diffusion(run.python)


def _is_diffusion(files: Sequence[PythonFile]) -> bool:
    return any(_DIFFUSION.search(item.dotted) for file in files for item in file.imports)


# --- places ---------------------------------------------------------------------------------


def _sites(run: Run) -> Iterator[_Site]:
    calls = [call for file in run.python for call in file.calls]
    callers: dict[str, list[Call]] = {}
    for call in calls:
        callers.setdefault(call.method, []).append(call)
    unreached = {call.method for file in run.python for call in file.untaken} - callers.keys()
    defined = set()
    for file in run.python:
        classes = {item.name for item in file.classes}
        for site, owner in (*_set_in(file), *_called_in(file)):
            of_class, _, function = site.scope.rpartition(".")
            is_method = of_class in classes
            calling = [c for c in callers.get(function, ()) if _may_call(c, is_method)]
            if function in unreached or (not calling and _is_gathered(function)):
                continue
            if function in _CALLED_BY_OTHERS or not calling:
                yield site
                continue
            defined.add(function)
            is_given = owner != "self" and f"{site.scope}.{owner}" not in file.bindings
            for call in calling:
                yield _as_called(site, is_given, is_method, call)
    for call in calls:
        if call.method == "BackboneFinetuning":  # Lightning thaws it after some epochs
            yield _Site("backbone", Unknown("epochs"), call.location, "", call.conditions)
        if call.method not in defined and chooses_weights(call.method):
            helped = _by_helper(call)
            if helped is not None:
                yield helped


def _is_gathered(function: str) -> bool:
    """Whether every call of a function is gathered, for its name; a trainer's hooks aside."""
    return chooses_weights(function) and function != "freeze_before_training"


def _may_call(call: Call, is_method: bool) -> bool:
    """Whether a call may be one of a function, or method, of that name."""
    receiver = call.name.rpartition(".")[0]
    if not is_method:
        return bool(call.positional or call.keywords)
    return bool(receiver) and _NO_WEIGHTS.search(receiver) is None


def _set_in(file: PythonFile) -> Iterator[tuple[_Site, str]]:
    """``for p in model.part.parameters(): p.requires_grad = False``, and whose they are."""
    for item in file.attributes:
        owner, _, name = item.name.rpartition(".")
        found = _iterated(item.loop, owner) if name == _REQUIRES else None
        if found is not None:
            site = _Site(found, item.value, item.location, item.scope, item.conditions)
            yield site, found.partition(".")[0]


def _called_in(file: PythonFile) -> Iterator[tuple[_Site, str]]:
    """``model.part.requires_grad_(False)``."""
    for call in file.calls:
        if call.method != f"{_REQUIRES}_":
            continue
        given = call.keywords.get(_REQUIRES) or next(iter(call.positional), None)
        value = True if given is None else given.value
        owner = call.name.rpartition(".")[0]
        found = _iterated(call.loop, owner)
        target = owner if found is None else found
        if found is None and re.fullmatch(r"p|\w*param\w*", owner):
            target = ""
        site = _Site(target, value, call.location, call.scope, call.conditions)
        yield site, target.partition(".")[0]


def _as_called(site: _Site, is_given: bool, is_method: bool, call: Call) -> _Site:
    """What a call of the function around a place freezes: a part of its own, or what it gets."""
    value = site.value
    switch = _switch(call)
    if not known(value) and switch is not None:
        value = switch
    target = site.target
    receiver = call.name.rpartition(".")[0]
    if is_given and call.positional:
        target = call.positional[0].text
    elif is_method and receiver not in ("self", "cls"):
        target = re.sub(r"^self", lambda _: receiver, target)
    return _Site(target, value, call.location, call.scope, (*site.conditions, *call.conditions))


def _by_helper(call: Call) -> Optional[_Site]:
    """``freeze(model.part)``, ``model.freeze_part()`` of code that is not in sight."""
    name = call.method.lower()
    if name == f"{_REQUIRES}_" or _NO_FREEZING.search(name):
        return None
    receiver = call.name.rpartition(".")[0]
    if "freez" not in name and "grad" not in name:
        return None
    switch = _switch(call)
    value: Any = Unknown("what it is told") if "grad" in name else False
    if switch is not None:
        value = switch if "grad" in name else not switch
    if "unfreez" in name:
        value = True
    target = call.positional[0].text if call.positional else receiver
    if _NO_WEIGHTS.search(receiver) or (not target and not receiver):
        return None
    part = re.sub(r"(?i)freeze|_", " ", call.method).split()
    if not call.positional and part:
        target = f"{receiver}.{'_'.join(part)}"
    return _Site(target, value, call.location, call.scope, call.conditions)


def _switch(call: Call) -> Optional[bool]:
    """The truth value that a helper is told."""
    for argument in (*call.positional[1:], *call.keywords.values()):
        if isinstance(argument.value, bool):
            return argument.value
    return None


def _iterated(loop: Optional[Loop], owner: str) -> Optional[str]:
    """What a loop over weights goes through, when ``owner`` is its variable."""
    while loop is not None:
        names = re.findall(r"\w+", loop.target)
        if owner in names:
            return _owner_of(loop, names, owner)
        loop = loop.parent
    return None


def _owner_of(loop: Loop, names: Sequence[str], owner: str) -> str:
    paths = _paths(loop.iterable)
    if len(paths) == len(names) and loop.iterable.startswith("zip("):
        paths = (paths[names.index(owner)],)
    if _HELPER.search(owner):
        return owner
    if len(paths) != 1:
        return next((path for path in paths if not _HELPER.search(path)), "")
    outer = _iterated(loop.parent, paths[0].partition(".")[0])
    return paths[0] if outer is None else outer


@lru_cache(maxsize=512)
def _paths(text: str) -> tuple[str, ...]:
    """Modules whose weights an iterable gives: ``a.b`` of ``list(a.b.parameters())``."""
    try:
        node: ast.expr = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found: list[str] = []
    waiting = [node]
    while waiting:
        item = waiting.pop(0)
        if isinstance(item, ast.Name):
            found.append(item.id)
        elif isinstance(item, ast.Attribute):
            found.append(ast.unparse(item.value if item.attr in _GIVING else item))
        elif isinstance(item, ast.Subscript):
            waiting.append(item.value)
        elif isinstance(item, (ast.List, ast.Tuple)):
            waiting += item.elts
        elif isinstance(item, ast.BinOp):
            waiting += (item.left, item.right)
        elif isinstance(item, ast.Call):
            is_method = isinstance(item.func, ast.Attribute) and not item.args
            waiting += [item.func] if is_method else item.args
    return tuple(found)
