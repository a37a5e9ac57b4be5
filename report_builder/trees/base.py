"""What a decision tree is, and how it is drawn with the branches of a run marked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Optional

from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

FLASH = frozenset({"flash_attention_2", "flash_attention_3", "flash_attention_4"})
"""Values of the practice ``attention`` that are a flash kernel."""
MARK = " ◀"


@dataclass(frozen=True)
class Branch:
    """A question or an instruction, with the branches below it.

    ``advises``: the items of the audit that say the same; the branch is marked only where the
    audit recommends one of them. ``holds``: whether the run stands in the branch; a branch
    with both is marked where both agree, one with neither is never marked.
    """

    text: Text
    below: tuple[Branch, ...] = ()
    advises: frozenset[str] = frozenset()
    holds: Optional[Callable[[Run], bool]] = None

    def marked(self, run: Run, recommended: frozenset[str]) -> bool:
        """Whether the run stands here, or should go here by the audit's own advice."""
        if self.advises and self.advises.isdisjoint(recommended):
            return False
        if self.holds is None:
            return bool(self.advises)
        return self.holds(run)


def branch(
    zh: str,
    en: str,
    *below: Branch,
    advises: tuple[str, ...] = (),
    holds: Optional[Callable[[Run], bool]] = None,
) -> Branch:
    """A branch with its wording in both languages."""
    return Branch(Text(zh, en), below, frozenset(advises), holds)


def draw(
    roots: tuple[Branch, ...],
    run: Optional[Run],
    lang: str,
    recommended: frozenset[str] = frozenset(),
) -> str:
    """The tree as text; branches that the run stands in, or should take, end with ``◀``.

    ``recommended``: ids of the items that the audit of this run recommends.
    """
    start = Text("开始", "Start").say(lang)
    return "\n".join((start, *_lines(roots, "", run, lang, recommended)))


def _lines(
    branches: tuple[Branch, ...],
    indent: str,
    run: Optional[Run],
    lang: str,
    recommended: frozenset[str],
) -> Iterator[str]:
    for each in branches:
        last = each is branches[-1]
        mark = MARK if run is not None and each.marked(run, recommended) else ""
        yield f"{indent}{'└── ' if last else '├── '}{each.text.say(lang)}{mark}"
        deeper = indent + ("    " if last else "│   ")
        yield from _lines(each.below, deeper, run, lang, recommended)


def tuned_fully(run: Run) -> bool:
    """Whether all weights are trained."""
    tuning: object = run.value("tuning")
    return tuning == "full"


def tuned_in_part(run: Run) -> bool:
    """Whether adapters or a part of the weights are trained."""
    tuning = run.value("tuning")
    return tuning is not None and tuning != "full"


def not_tuned_fully(run: Run) -> bool:
    """Whether nothing says that all weights are trained."""
    return not tuned_fully(run)


def uses_flash_attention(run: Run) -> bool:
    """Whether attention ends in a flash kernel."""
    attention: object = run.value("attention")
    return attention in FLASH


def is_packed(run: Run) -> bool:
    """Whether samples share a row, or rows have no padding."""
    return True in (run.value("packing"), run.value("padding_free"))


def longer_than(tokens: int) -> Callable[[Run], bool]:
    """Whether samples are cut at more than so many tokens."""

    def holds(run: Run) -> bool:
        length = run.value("max_length")
        return isinstance(length, int) and length > tokens

    return holds
