"""What a check declares, and what judging a run by it gives."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Callable, Optional

from flake8_gpu_training.facts import Location, Origin, Setting
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run


class Priority(enum.Enum):
    """How much a user gains: > 30 %, 10-30 %, < 10 % (or the run fails: HIGH)."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """0 for the highest."""
        return ("high", "medium", "low").index(self.value)


class Status(enum.Enum):
    """A verdict on one audit item."""

    ENABLED = "enabled"
    PARTIAL = "partial"
    RECOMMENDED = "recommended"
    DISABLED = "disabled"
    NOT_APPLICABLE = "not_applicable"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Evidence:
    """What a verdict rests on: text as written, and its place (None: a framework default).

    ``said``: the text in both languages, where it is a sentence and nothing written.
    """

    text: str
    location: Optional[Location] = None
    said: Optional[Text] = None

    @classmethod
    def of(cls, setting: Setting) -> Evidence:
        """Evidence that a setting gives."""
        said = None
        if setting.origin is Origin.DEFAULT and setting.location is not None and not setting.note:
            written = setting.written  # in a program's parser, where nobody gave it to the run
            said = Text(f"未设置时 {written}", written.replace("=", " ", 1) + " unless set")
        return cls(setting.note or setting.written, setting.location, said)


@dataclass(frozen=True)
class Edit:
    """Replace ``old`` (may be empty) at ``location`` by ``new`` in the user's file."""

    location: Location
    old: str
    new: str


@dataclass(frozen=True)
class Change:
    """What to write, in the framework's own language; ``edits`` when it can be applied."""

    language: str
    text: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True)
class Finding:
    """One diagnostic: where, and an instruction of one line in English.

    ``priority``: its own, where it differs from the judgement's. ``told``: the same for the
    reports, where the judgement's action does not fit every finding.
    """

    location: Location
    message: str
    change: Optional[Change] = None
    priority: Optional[Priority] = None
    told: Text = Text("", "")


@dataclass(frozen=True)
class Impact:
    """Expected change in percent (throughput up, memory down is negative), and its source."""

    throughput: Optional[tuple[int, int]] = None
    memory: Optional[tuple[int, int]] = None
    note: Text = Text("", "")
    source: str = ""


@dataclass(frozen=True)
class Judgement:
    """A check's answer for a run.

    ``variant``: for a practice with alternatives, the one that is on (ENABLED, PARTIAL) or
    best for this run (RECOMMENDED). ``share``: part of the points earned when PARTIAL;
    ``better``: the alternative that would earn them all.
    ``current`` and ``action``: for the reports; ``findings``: for the diagnostics (only
    when something is to be changed). ``priority`` and ``impact`` override the check's.
    ``excluded``: variants that this run cannot take, each with the reason. ``told``: what is
    said of variants that are off. ``idle``: those that are off, and not advised, whatever else
    is not known. ``needs_code``: what is lacking takes a change of the framework's own code.
    ``is_likely``: what is lacking helps on most hardware, and the run's is not known, so that it
    costs nothing.
    """

    status: Status
    variant: str = ""
    share: float = 1.0
    evidence: tuple[Evidence, ...] = ()
    findings: tuple[Finding, ...] = ()
    current: Text = Text("", "")
    action: Text = Text("", "")
    change: Optional[Change] = None
    priority: Optional[Priority] = None
    impact: Optional[Impact] = None
    better: str = ""
    excluded: tuple[tuple[str, Text], ...] = ()
    idle: tuple[tuple[str, Text], ...] = ()
    needs_code: bool = False
    told: tuple[tuple[str, Text], ...] = ()
    is_likely: bool = False

    @property
    def to_gain(self) -> bool:
        """Whether the run can gain what it lacks."""
        return self.status in (Status.PARTIAL, Status.RECOMMENDED) and not self.needs_code

    def excludes(self, variants: str) -> Optional[Text]:
        """Why none of ``variants`` (separated by ``|``) can be on, or None where one can."""
        return _of_all(self.excluded, variants)

    def idles(self, variants: str) -> Optional[Text]:
        """Why all of ``variants`` are off, or None where that is not known of one."""
        return _of_all(self.idle, variants)


def _of_all(reasons: tuple[tuple[str, Text], ...], variants: str) -> Optional[Text]:
    """The first reason, where each of ``variants`` (separated by ``|``) has one."""
    found = [dict(reasons).get(name) for name in variants.split("|")]
    return found[0] if variants and None not in found else None


@dataclass(frozen=True)
class Item:
    """One item of an audit that a check serves.

    ``points`` are earned when on. Items with the same ``group`` are alternatives: the group
    is worth its largest points once. ``variant`` ties the item to ``Judgement.variant``; it
    may name several, separated by ``|`` (``zero1|zero2``). A ``fault`` only costs: its points
    are beyond the category's, lost while the check finds it, and nothing otherwise.
    """

    audit: str
    category: str
    id: str
    points: float
    group: str = ""
    variant: str = ""
    fault: bool = False

    def matches(self, variant: str) -> bool:
        """Whether a judgement about ``variant`` is about this item."""
        return not self.variant or variant in self.variant.split("|")


@dataclass(frozen=True)
class Example:
    """A small file that must be flagged (``bad``) and its mended form (``good``).

    ``path`` names the file (its ending decides the reader); ``framework`` is for the page.
    ``files`` are further files of the project, path and text, the same in both.
    """

    framework: str
    path: str
    bad: str
    good: str
    files: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Check:
    """One practice, or one kind of mistake; ``code`` never changes its meaning.

    ``judge`` asks the run. ``why`` says what it costs, ``fix`` how to mend it, ``ignore``
    when to leave it; ``sources`` are titles or addresses of what the claims rest on.
    ``has_rules``: it stands for many rules, so that its example is none for a finding.
    """

    code: str
    name: str
    title: Text
    priority: Priority
    judge: Callable[[Run], Judgement]
    why: str
    fix: str
    ignore: str = ""
    items: tuple[Item, ...] = ()
    impact: Impact = Impact()
    difficulty: str = "low"
    examples: tuple[Example, ...] = ()
    sources: tuple[str, ...] = ()
    has_rules: bool = False
