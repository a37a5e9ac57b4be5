"""GPUs by name: what people, schedulers and clouds write, and what the generation can compute.

The figures and their sources are in ``_gpus``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional

from flake8_gpu_training._gpus import FORMS, GPUS, INSTANCES, OTHER_FAMILIES, Gpu

__all__ = [
    "GPUS",
    "Gpu",
    "NamedGpu",
    "architecture_named",
    "gpu_named",
    "named",
    "noted",
    "of_generation",
]


@dataclass(frozen=True)
class NamedGpu:
    """What a text says about the GPUs: the kind and how many of them.

    ``gpu`` is None where the text leaves the memory open or names several kinds,
    ``architecture`` where those differ in it.
    """

    gpu: Optional[Gpu]
    architecture: Optional[str]
    count: Optional[int] = None


# GPU families as written, longest first. Bare numbers (``4090``) stand for GeForce boards.
_RTX = r"(?:geforce[ _-]*)?(?:rtx[ _-]*)?"
_SUFFIX = r"(?:[ _-]*(?:ti[ _-]*super|ti|super|d(?![a-z0-9])))?"
_NAMES = (
    r"rtx[ _-]*pro[ _-]*[56]000",
    r"rtx[ _-]*[56]000[ _-]*ada",
    r"quadro[ _-]*rtx[ _-]*[568]000|rtx[ _-]*8000",
    r"titan[ _-]*(?:rtx|v)",
    rf"{_RTX}(?:2060|2070|2080|3060|3070|3080|3090|4060|4070|4080|4090|5060|5070|5080|5090){_SUFFIX}",
    r"(?:rtx[ _-]*)?a[456]000",
    r"ascend[ _-]*910(?:[abc]\d?)?|910[abc]\d?",
    r"mi(?:100|210|250x?|300[ax]|308x|325x|350x|355x)",
    r"gb300|gb200|gh200|b300|b200|h100|h200|h800|h20|a100|a800|v100s|v100|p100",
    r"l40s|l40|l20|l4|a10g|a10|a16|a30|a40|t4|p40",
)
_MAKER = (
    r"(?:nvidia[ _-]*|amd[ _-]*|huawei[ _-]*)?(?:tesla[ _-]*|instinct[ _-]*|hgx[ _-]*|dgx[ _-]*)?"
)
_SIZE = r"\d{2,3}[ _-]*gi?b?"
_FORM_WORDS = (
    r"(?:[ _-]*(?:sxm\d?|pcie|nvl|nvlink|hbm\d?e?|mega|shared|tensor[ _-]core|gpus?)(?![a-z0-9]))*"
)
_NAME = re.compile(
    rf"(?:(?<!\d)(?P<count>\d{{1,2}})(?:[ ]*[x×*张卡块][ ]*|(?P<apart>[ ]+)))?"
    rf"(?:(?P<before>{_SIZE})[ _-]+)?"
    rf"{_MAKER}(?P<name>{'|'.join(_NAMES)})(?![a-z0-9])"
    rf"(?P<rest>{_FORM_WORDS}(?:[ _-]*[(（]?(?P<size>{_SIZE})(?![a-z0-9])[)）]?)?{_FORM_WORDS})"
    rf"(?P<slice>[_-](?:mig[_-])?\dg[._]\d{{1,3}}gb)?"
    rf"(?:[ ]*[x×*][ ]*(?P<after>\d{{1,2}})(?![a-z0-9.]))?",
    re.IGNORECASE,
)
# What every name has, found fast: most comments have nothing of it.
_HINT = re.compile(r"[abhlmpvt](?:i)?\d{1,3}|[2345]0[5-9]0|910|titan|rtx")
_MACHINE_HINTS = ("xlarge", ".metal", "gpu-", "g2-", "_v3", "_v4", "_v5")
_LONGEST = 4096  # characters of a text that are looked at
_INSTANCE = re.compile(
    r"(?i)(?:ml\.)?(?P<type>(?:p[3-6]|g[456])[a-z0-9-]*\.(?:\d*xlarge|metal)"
    r"|[ag][2-4]-[a-z]+-\d{1,2}g?"
    r"|(?:standard_)?n[cd]\d+[a-z]+(?:_[a-z]+\d+)?_v\d)"
)
# Families so short that prose means other things by them: sections, paper sizes, levels.
_SHORT = re.compile(r"(?i)[a-z]\d{1,2}g?")
_MAKERS = re.compile(r"(?i)nvidia|tesla|geforce|instinct|ascend|huawei")
_GPU_BEFORE = re.compile(r"(?i)(?:gpus?|cards?|显卡|[张卡块])[ :：(（-]*$")
_GPU_AFTER = re.compile(r"(?i)[ -]*(?:gpus?\b|cards?\b|显卡|[单双多]?卡|显存)")
_NEAR = 10  # characters beside a name in which a word about GPUs makes it one
_GENERATION = re.compile(r"(?i)(?<![a-z])(volta|turing|ampere|ada|hopper|blackwell)(?![a-z])")
_GEFORCE = {"20": "Turing", "30": "Ampere", "40": "Ada", "50": "Blackwell"}


def gpu_named(text: str) -> Optional[Gpu]:
    """The GPU that ``text`` names (``8 * A100-80G``, ``gpu:h100:8``), or None.

    A name that stands for several variants (A100, V100) without a size gives None when the
    variants differ in memory, since guessing the memory would mislead.
    """
    found = named(text)
    return found.gpu if found is not None else None


def architecture_named(text: str) -> Optional[str]:
    """The architecture of the GPU that ``text`` names, also when its memory is not told."""
    found = named(text)
    return found.architecture if found is not None else None


def named(text: str) -> Optional[NamedGpu]:
    """The GPUs that a text about hardware names: a resource request, a label, a machine type."""
    machine = _machine(text[:_LONGEST])
    if machine is not None:
        return machine
    matches = [match for match in _names_in(text) if _stands_alone(text, match)]
    return _agreed(matches) if matches else _generation(text[:_LONGEST])


def noted(text: str) -> Optional[NamedGpu]:
    """The GPUs that prose names, such as a comment.

    Words that are GPU names by accident (a path, a model's name, a number) are left alone: a
    bare number or a short name counts only beside a number of GPUs, a memory size, or a word
    about GPUs.
    """
    machine = _machine(text[:_LONGEST])
    if machine is not None:
        return machine
    found = [match for match in _names_in(text) if _is_a_word(text, match)]
    return _agreed([match for match in found if _is_meant(text, match)])


def _names_in(text: str) -> Iterator[re.Match[str]]:
    start = text[:_LONGEST]
    return _NAME.finditer(start) if _HINT.search(start.lower()) else iter(())


def of_generation(architecture: str) -> tuple[Gpu, ...]:
    """The GPUs of the table that are of this generation; none for Pascal and older."""
    return tuple(gpu for gpu in GPUS.values() if gpu.architecture == architecture)


def _generation(text: str) -> Optional[NamedGpu]:
    """A generation that stands for its GPUs (``--constraint=ampere``)."""
    words = {match[1].capitalize() for match in _GENERATION.finditer(text)}
    return NamedGpu(None, next(iter(words))) if len(words) == 1 else None


def _machine(text: str) -> Optional[NamedGpu]:
    """A cloud's machine type (``p4d.24xlarge``); nothing when several are named."""
    lower = text.lower()
    if not any(hint in lower for hint in _MACHINE_HINTS):
        return None
    kinds = [_instance(match["type"]) for match in _INSTANCE.finditer(text)]
    found = {kind for kind in kinds if kind is not None}
    if len(found) != 1:
        return None
    name, count = found.pop()
    gpu = GPUS[name]
    return NamedGpu(gpu, gpu.architecture, count)


def _instance(kind: str) -> Optional[tuple[str, int]]:
    lower = kind.lower()
    return INSTANCES.get(lower) or INSTANCES.get(f"standard_{lower}")


def _stands_alone(text: str, match: re.Match[str]) -> bool:
    return not re.match(r"[A-Za-z0-9]", text[max(0, match.start() - 1) : match.start()])


def _is_a_word(text: str, match: re.Match[str]) -> bool:
    """Whether the name is not a part of a path, an identifier or a longer name."""
    start, end = match.span()
    if re.match(r"[A-Za-z0-9_./\\=-]", text[max(0, start - 1) : start]):
        return False
    return not re.match(r"[A-Za-z0-9_/\\=]|[.-][A-Za-z0-9]", text[end : end + 2])


def _is_meant(text: str, match: re.Match[str]) -> bool:
    name = re.sub(r"[ _-]", "", match["name"])
    bare = name.isdigit()
    if not bare and not _SHORT.fullmatch(name):
        return True
    if _number(match) or match["size"] or match["before"]:
        return True
    start, end = match.span()
    before, after = text[max(0, start - _NEAR) : start], text[end : end + _NEAR]
    beside = _GPU_BEFORE.search(before) or _GPU_AFTER.match(after)
    told = beside is not None or _MAKERS.search(match[0]) or "gpu" in match["rest"].lower()
    return bool(told) and (bare or name[0].isupper())


def _agreed(matches: list[re.Match[str]]) -> Optional[NamedGpu]:
    """What all matches say; the GPU only when they mean one kind."""
    kinds = {_family(match["name"]) for match in matches}
    architectures = {_architecture(kind) for kind in kinds}
    architecture = architectures.pop() if len(architectures) == 1 else None
    if architecture is None:
        return None
    if len(kinds) > 1:
        return NamedGpu(None, architecture)
    counts = set(_counts(matches))
    gpus = {gpu.name: gpu for gpu in map(_gpu, matches) if gpu is not None}
    exact = list(gpus.values()) if len(gpus) == 1 else _most_exact(list(gpus.values()))
    return NamedGpu(
        exact[0] if exact else None, architecture, counts.pop() if len(counts) == 1 else None
    )


def _counts(matches: list[re.Match[str]]) -> Iterator[int]:
    for match in matches:
        number = _number(match)
        if number:
            yield number


def _number(match: re.Match[str]) -> int:
    """How many GPUs a match means, 0 when it does not tell: ``8 A100`` alone does not."""
    told = match["after"]
    if not match["apart"] or "gpu" in match["rest"].lower():
        told = match["count"] or told
    return int(told or 0)


def _most_exact(gpus: list[Gpu]) -> list[Gpu]:
    """The one form among several names of the same memory; none when the memories differ."""
    if len({gpu.memory_gib for gpu in gpus}) != 1:
        return []
    formed = [gpu for gpu in gpus if gpu.form]
    return formed if len(formed) == 1 else []


_FAMILIES = {gpu.family.upper(): gpu.family for gpu in GPUS.values()}
_FAMILIES.update({family.upper(): family for family in OTHER_FAMILIES})


def _family(name: str) -> str:
    """The name of the family in the table, or the written one in capitals."""
    compact = re.sub(r"geforce|[ _-]", "", name, flags=re.IGNORECASE).upper()
    if compact[:4].isdigit():
        compact = f"RTX{compact}"
    elif compact.startswith("RTXA"):
        compact = compact[len("RTX") :]
    elif compact == "RTX8000":
        compact = "QUADRORTX8000"
    elif compact.startswith(("910", "ASCEND910")):
        compact = f"ASCEND{compact.replace('ASCEND', '')}"
        compact = compact if compact in _FAMILIES else compact[: len("ASCEND910B")]
    return _FAMILIES.get(compact, compact)


def _architecture(family: str) -> Optional[str]:
    of_table = next((gpu.architecture for gpu in GPUS.values() if gpu.family == family), None)
    series = family[3:5] if re.fullmatch(r"RTX\d{4}\D*", family) else ""
    return of_table or OTHER_FAMILIES.get(family) or _GEFORCE.get(series)


def _gpu(match: re.Match[str]) -> Optional[Gpu]:
    """The one kind a match means; None when several memories are possible, or a slice is meant."""
    if match["slice"]:
        return None
    found = [gpu for gpu in GPUS.values() if gpu.family == _family(match["name"])]
    form = _form(match["rest"])
    size = match["size"] or match["before"]
    if size is not None:
        number = float(re.sub(r"\D", "", size))
        found = [gpu for gpu in found if gpu.memory_gib == number]
    elif not form:  # H20 is the first of two memories: the name alone stands for it
        found = [gpu for gpu in found if gpu.name == gpu.family] or found
    found = [gpu for gpu in found if gpu.form == form] or found
    return found[0] if len({gpu.memory_gib for gpu in found}) == 1 else None


def _form(rest: str) -> str:
    written = rest.lower()
    return next((form for form in FORMS if form.lower() in written), "")
