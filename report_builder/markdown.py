"""The Markdown documents, rendered from the report by the templates beside this module."""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Optional

import jinja2

from flake8_gpu_training.checks.base import Change, Evidence, Priority, Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.facts import ProblemKind, Word, known
from flake8_gpu_training.frameworks.registry import framework_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run, RunKind
from flake8_gpu_training.runs.secrets import shown_command
from flake8_gpu_training.verdicts import Diagnostic
from report_builder import capacity, diffusion
from report_builder.audits import AUDITS, audit_of
from report_builder.bottleneck import NAMES
from report_builder.code_comments import in_chinese
from report_builder.launched import is_absent
from report_builder.marks import cell, code, fence, number, percent
from report_builder.notes import chinese_note
from report_builder.picture import picture
from report_builder.recommendations import Recommendation, gains_otherwise, is_prose
from report_builder.report import Report, engine_run, title_of, title_of_run
from report_builder.run_words import RunWords
from report_builder.scenario_releases import flags_in_release
from report_builder.scenarios import Scenario
from report_builder.scoring import ScoredAudit, ScoredCategory, ScoredItem
from report_builder.trees.base import draw
from report_builder.trees.registry import tree_of
from report_builder.unread import Unread, unread_of
from report_builder.wording import (
    default_text,
    impact_text,
    nested_yaml,
    place_text,
    redacted,
    run_text,
    source_text,
)

MAIN = "static-analysis-report.md"
_TEMPLATES = Path(__file__).parent / "templates"
_PROBLEM = {
    ProblemKind.SYNTAX: "语法错误",
    ProblemKind.ENCODING: "编码错误",
    ProblemKind.UNREADABLE: "无法读取",
}
_LISTED_RUNS = 10
_LISTED_ALIKE = 3
_LISTED_PLACES = 5
_SHOWN_COMMAND = 200
_SHOWN_CHANGE = 100
_SHOWN_LINES = 3
_ENGINES = ("vllm", "sglang")
_ENGINE_SETTINGS = frozenset({"sleep_level", "infer_backend", "num_infer_workers", "vllm_mode"})
_COMMENT = {".json": "//"}
_LANGUAGE = {
    ".py": "python",
    ".ipynb": "python",
    ".sh": "bash",
    ".bash": "bash",
    ".slurm": "bash",
    ".sbatch": "bash",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".toml": "toml",
}
_MAIN_SCENARIOS = 3

_STATUS = {
    Status.ENABLED: Text("已启用", "on"),
    Status.PARTIAL: Text("部分启用", "partly on"),
    Status.RECOMMENDED: Text("建议启用", "recommended"),
    Status.DISABLED: Text("未启用", "off"),
    Status.NOT_APPLICABLE: Text("不适用", "does not apply"),
    Status.UNKNOWN: Text("无法静态判断", "undetermined"),
}
_PRIORITY = {
    Priority.HIGH: Text("🔴 高优先级（预估提升 > 30%）", "🔴 High priority (expected gain > 30%)"),
    Priority.MEDIUM: Text(
        "🟡 中优先级（预估提升 10-30%）", "🟡 Medium priority (expected gain 10-30%)"
    ),
    Priority.LOW: Text("🟢 低优先级（预估提升 < 10%）", "🟢 Low priority (expected gain < 10%)"),
}
_PRIORITY_SHORT = {
    Priority.HIGH: Text("高", "high"),
    Priority.MEDIUM: Text("中", "medium"),
    Priority.LOW: Text("低", "low"),
}
_LEVEL = {
    "P0": Text("P0 — 立即执行（显著收益，零风险）", "P0 — do it now (large gain, no risk)"),
    "P1": Text("P1 — 强烈推荐（明显收益，低风险）", "P1 — recommended (clear gain, low risk)"),
    "P2": Text("P2 — 建议尝试（中等收益，需测试）", "P2 — worth trying (some gain, needs a test)"),
}
_DIFFICULTY = {
    "low": Text("低", "low"),
    "medium": Text("中", "medium"),
    "high": Text("高", "high"),
}
_GOAL = {
    "balanced": Text("综合优化（吞吐优先）", "balanced (throughput first)"),
    "throughput": Text("吞吐优先", "throughput"),
    "memory": Text("显存优先", "memory"),
    "latency": Text("延迟优先", "latency"),
}
# Order of magnitude in GB; the last row of pure BF16 is LLaMA-Factory's.
_REFERENCE = (
    (Text("全参（bf16）", "full"), Text("16-bit 混合", "16-bit mixed"), "120 240 600 1200"),
    (Text("全参（纯 bf16）", "full, pure bf16"), Text("16-bit", "16-bit"), "60 120 300 600"),
    (Text("LoRA / GaLore", "LoRA / GaLore"), Text("16-bit", "16-bit"), "16 32 64 160"),
    (Text("QLoRA", "QLoRA"), Text("8-bit", "8-bit"), "10 20 40 80"),
    (Text("QLoRA", "QLoRA"), Text("4-bit", "4-bit"), "6 12 24 48"),
    (Text("QLoRA", "QLoRA"), Text("2-bit", "2-bit"), "4 8 16 24"),
)
_HOW_SCORED = Text(
    "得分以全部检查项为满分；达成度 = 已得分 ÷ 本次运行可得分，"
    "不适用、可选与无法静态判断的项不计入可得分，因此两者的分母不同。",
    "The score is out of all points of the audit. Attainment = points earned ÷ points this run "
    "can earn: items that do not apply, are optional or are undetermined cannot be earned, so the "
    "two have different denominators.",
)
_AUDIT_NOTES = {
    "general": Text("9 大类通用审计", "the general audit of 9 categories"),
    "vllm": Text("vLLM 推理专项审计", "the audit of vLLM"),
    "sglang": Text("SGLang 推理专项审计", "the audit of SGLang"),
}


def documents(report: Report, lang: str) -> dict[str, str]:
    """Every Markdown document by file name."""
    view = _View(report, lang)
    files = {MAIN: view.render("static-analysis-report.md.j2", index=view.index())}
    for identifier in audit_ids(report):
        audit = audit_of(identifier)
        assert audit is not None
        if identifier == "general":
            files[audit.file] = view.render("general-audit.md.j2", audit=view.audit(identifier))
        else:
            files[audit.file] = view.render(
                "framework-audit.md.j2",
                audit=view.audit(identifier),
                title=audit.title,
                subject=view.subject(identifier),
                unstarted=view.unstarted(identifier),
                **view.advice(identifier),
                tree=view.tree(identifier),
                unread=view.unread(identifier),
                more_scenarios=view.more_scenarios(identifier),
                memory_reference=view.memory_reference(),
                diffusion_reference=diffusion.memory_rows(view.subject(identifier), view.lang),
                is_engine=identifier in _ENGINES,
            )
    return files


def audit_ids(report: Report) -> tuple[str, ...]:
    """Audits that get a document, in order: the general one and the detected ones."""
    wanted = {"general", framework_of(report.training).audit}
    wanted |= {name for name in ("vllm", "sglang") if getattr(report, name)}
    return tuple(audit.id for audit in AUDITS if audit.id in wanted)


def change_fence(change: Change, lang: str) -> str:
    """A change as a fenced block in its own language, its comments in that of the report."""
    text = nested_yaml(change.text) if change.language == "yaml" else change.text
    return fence(in_chinese(text) if lang == "zh" else text, change.language)


def _by_code(audit: Optional[ScoredAudit]) -> list[ScoredItem]:
    """Items that a change of the framework's code alone would turn on."""
    categories = audit.categories if audit is not None else ()
    return [item for c in categories for item in c.items if item.change is not None]


@dataclass(frozen=True)
class _Alike:
    """Runs of a kind and framework with the same ``codes``."""

    runs: tuple[Run, ...]
    codes: Mapping[str, int]


class _View(RunWords):
    """What the templates may ask, in one language."""

    def __init__(self, report: Report, lang: str) -> None:
        super().__init__(lang)
        self.report = report
        self.environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(_TEMPLATES),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,
        )
        self.environment.globals.update(self._globals())

    def render(self, template: str, **values: Any) -> str:
        """A template's text, with at most one empty line in a row outside code blocks."""
        text = self.environment.get_template(template).render(**values)
        return redacted(_tidy(text))

    def _globals(self) -> Mapping[str, Any]:
        report = self.report
        named: dict[str, Callable[..., Any]] = {
            "t": self.t,
            "say": self.say,
            "cell": cell,
            "code": code,
            "fence": fence,
            "change_fence": lambda change: change_fence(change, self.lang),
            "own_patch": self.own_patch,
            "runs_of": self.runs_of,
            "codes_of": self.codes_of,
            "title_of": lambda run: self.say(title_of_run(run)),
            "number": number,
            "percent": percent,
            "sentence": self.sentence,
            "json_text": lambda data: json.dumps(dict(data), indent=2, ensure_ascii=False),
            "impact_of": self.impact_of,
            "source_of": lambda entry: source_text(entry.impact.source, self.lang),
            "current_of": self.current_of,
            "lines_of": self.lines_of,
            "example_of": example_of,
            "difficulty_of": lambda entry: self.say(_DIFFICULTY[entry.difficulty]),
            "place_of": self.place_of,
            "by_code": _by_code,
            "table_note": lambda run: self.say(diffusion.table_note(run)),
            "deepspeed_usage": lambda run: self.say(diffusion.deepspeed_usage(run)),
            "diffusion_of": lambda run: diffusion.facts(run, self.lang),
            "engine_title": capacity.title_of,
            "held_of": self.held_of,
            "status_of": lambda item: self.say(_STATUS[item.status]),
            "points_of": points_of,
            "evidence_of": self.evidence_of,
            "repeated": self.repeated,
            "elsewhere_of": self.elsewhere_of,
            "advice_of": self.advice_of,
            "kind_of": self.kind_of,
            "model_of": self.model_of,
            "model_kind": self.model_kind,
            "model_size": self.model_size,
            "mode_of": self.mode_of,
            "rlhf_of": self.rlhf_of,
            "practice": self.practice,
            "length_of": self.length_of,
            "picture_of": lambda run: picture(run, self.lang),
            "hardware_of": self.hardware_of,
            "launch_of": self.launch_of,
            "long_launch_of": self.long_launch_of,
            "attainment_of": self.attainment_of,
            "unstarted": self.unstarted,
            "hint_of": self.hint_of,
            "mistakes_of": lambda r: [
                e for e in r.recommendations if e.is_mistake and e.priority is Priority.HIGH
            ],
            "memory_rows": self.memory_rows,
            "memory_note": self.memory_note,
            "engines_of": self.engines_of,
            "goal_of": lambda r: self.say(_GOAL[r.options.goal]),
            "audit_heading": self.audit_heading,
            "score_of": lambda c: "N/A" if c.score is None else number(c.score),
            "maximum_of": lambda c: "N/A" if c.maximum is None else str(c.maximum),
            "fraction": self.fraction,
            "names": self.names,
            "key_findings": self.key_findings,
            "fits_of": self.fits_of,
            "serving_memory": self.serving_memory,
            "capacity_rows": self.capacity_rows,
            "no_capacity": capacity.CapacityWords(self.lang).missing,
            "engine_of": self.engine_of,
            "no_memory": self.no_memory,
            "trains": lambda run: run.kind is RunKind.TRAIN,
            "offload_of": self.offload_of,
            "stage_of": self.stage_of,
            "place": lambda location: place_text(location, self.lang),
            "is_absent": is_absent,
            "problem_of": lambda problem: self.t(_PROBLEM[problem.kind], problem.message),
            "run_name": lambda run: run_text(run, self.lang),
            "priority_of": self.priority_of,
            "message_of": self.message_of,
        }
        others = self._other_runs()
        own = report.primary.id if report.primary is not None else None
        return {
            **named,
            "r": report,
            "main_scenarios": report.scenarios[:_MAIN_SCENARIOS],
            "lang": self.lang,
            "how_scored": self.say(_HOW_SCORED),
            "colon": self.t("：", ": "),
            "bottleneck_names": NAMES,
            "bottleneck_name": NAMES[report.bottleneck.kind],
            "by_priority": [
                (self.say(heading), self.gains_beyond(entries), entries)
                for priority, heading in _PRIORITY.items()
                for entries in [[e for e in report.recommendations if e.priority is priority]]
            ],
            "others": others[:_LISTED_RUNS],
            "more_runs": sum(len(group.runs) for group in others[_LISTED_RUNS:]),
            "own_diagnostics": [d for d in report.diagnostics if d.run == own],
        }

    def gains_beyond(self, entries: Sequence[Recommendation]) -> str:
        """Which of a priority's items name a gain outside the range that its heading gives."""
        ranks = [str(entry.rank) for entry in entries if gains_otherwise(entry)]
        if not ranks:
            return ""
        listed = self.t("、", ", ").join(ranks)
        if self.lang == "zh":
            return f"优先级依审计规则划分；第 {listed} 项的预估收益不在上述范围内，以该项所列为准。"
        one = len(ranks) == 1
        return (
            "Priorities follow the rules of the audits; the expected gain of "
            f"{'item' if one else 'items'} {listed} lies outside this range and is the one named "
            f"{'there' if one else 'with each'}."
        )

    def _other_runs(self) -> list[_Alike]:
        """Runs beside the primary one, together where the same is said of them."""
        codes = {name: Counter(given) for name, given in self.report.codes.items()}
        groups: dict[tuple[object, ...], list[Run]] = {}
        primary = self.report.primary
        for run in sorted(self.report.runs, key=lambda run: run.id):
            # A launch command gives a run anew that the script gave already.
            if primary is None or run.id != primary.id:
                said = tuple(sorted(codes.get(run.id, Counter()).items()))
                groups.setdefault((said, run.kind, run.framework), []).append(run)
        alike = [_Alike(tuple(runs), codes.get(runs[0].id, Counter())) for runs in groups.values()]
        return sorted(alike, key=lambda group: (-sum(group.codes.values()), group.runs[0].id))

    def runs_of(self, group: _Alike) -> str:
        """The runs of a row: the first few by their ids."""
        shown = self.t("、", ", ").join(code(run.id) for run in group.runs[:_LISTED_ALIKE])
        more = len(group.runs) - _LISTED_ALIKE
        return (
            shown
            if more <= 0
            else shown + self.t(f" 等 {more + _LISTED_ALIKE} 个", f" and {more} more")
        )

    def codes_of(self, group: _Alike) -> str:
        """The codes of a row by title, with how often each is given where it is several times."""
        titles = {check.code: self.say(check.title) for check in all_checks()}
        each = (
            f"{name} {titles.get(name, '')}".rstrip() + (f" ×{times}" if times > 1 else "")
            for name, times in sorted(group.codes.items())
        )
        return self.t("、", ", ").join(each) or "—"

    # --- audits ---

    def audit(self, identifier: str) -> ScoredAudit:
        """The scored audit with this id."""
        return next(a for a in self.report.audits if a.audit.id == identifier)

    def tree(self, identifier: str) -> str:
        """The decision tree of an audit with the branches of its run; "" where it has none."""
        subject = self.subject(identifier)
        roots = tree_of(identifier, subject)
        if roots is None:
            return ""
        items = (item for c in self.audit(identifier).categories for item in c.items)
        wanted = frozenset(i.id for i in items if i.status in (Status.RECOMMENDED, Status.PARTIAL))
        drawn = draw(roots, subject, self.lang, wanted)
        return drawn if subject is None else flags_in_release(subject, drawn)

    def unread(self, identifier: str) -> Optional[Unread]:
        """What most items lack alike, which is then said once; None where they do not."""
        return unread_of(self.audit(identifier))

    def more_scenarios(self, identifier: str) -> tuple[Scenario, ...]:
        """Scenarios of the framework that the main report leaves out."""
        own = framework_of(self.report.training).audit == identifier
        return self.report.scenarios[_MAIN_SCENARIOS:] if own else ()

    def advice(self, identifier: str) -> dict[str, Any]:
        """What the report of a framework or engine recommends, and its patch."""
        report = self.report
        entries: Sequence[Recommendation] = report.recommendations
        patched: Mapping[int, str] = report.patches
        patch = report.patch
        own = report.primary is None or framework_of(report.primary.framework).audit == identifier
        if identifier in _ENGINES and not own:
            # An engine beside a training framework: its own run's, else the rollout's.
            beside = tuple(e for e in entries if e.code.startswith("GPU9"))
            entries = report.engine_recommendations.get(identifier, beside)
            patched, patch = {}, ""
        return {
            "by_level": [
                (self.say(heading), [e for e in entries if e.safety == level])
                for level, heading in _LEVEL.items()
            ],
            "manual": [e for e in entries if e.change is not None and not patched.get(e.rank)],
            "patch": patch,
        }

    def subject(self, identifier: str) -> Optional[Run]:
        """The run that the document of an audit is about; None for an engine that none starts."""
        if self.unstarted(identifier):
            return None
        return self.report.engine_runs.get(identifier, self.report.primary)

    def unstarted(self, identifier: str) -> str:
        """The sentence on an engine that the project names and no run starts; "" for others."""
        report = self.report
        if identifier not in _ENGINES or report.primary is None:
            return ""
        if engine_run(identifier, report.runs, report.primary) is not None:
            return ""
        title = self.say(title_of(identifier))
        named = next((e for e in report.evidence if e.framework == identifier), None)
        place = self.t(f"（见 `{named.location}`）", f" (`{named.location}`)") if named else ""
        return self.t(
            f"项目提到 {title}{place}，但未读到启动它的运行，无从判断；"
            "请用 `--launch-command` 给出命令。",
            f"The project names {title}{place}, but no run is seen to start it, so there is "
            "nothing to judge: pass its command as `--launch-command`.",
        )

    def audit_heading(self, audit: ScoredAudit) -> str:
        """An audit's heading with its number of categories."""
        count = len(audit.categories)
        return self.say(audit.audit.heading) + self.t(f"（{count} 大类）", f" ({count} categories)")

    def attainment_of(self, audit: ScoredAudit) -> str:
        """What of the reachable points is earned, in all and by category, as one line."""
        if audit.attainment is None:
            return self.t(
                "各项均不适用或无法静态判断，不计达成度。",
                "Nothing here applies or can be told, so there is no attainment.",
            )
        shares = [
            f"{c.category.id} {percent(c.attainment)}"
            for c in audit.categories
            if c.attainment is not None
        ]
        joined = self.t("、", ", ").join(shares)
        whole = percent(audit.attainment)
        reachable = number(audit.earned + audit.lost)
        earned = number(audit.earned)
        untold, unknown = "", audit.unknown
        if unknown:
            plural = "item" if unknown == 1 else "items"
            untold = self.t(
                f"；无法静态判断 {unknown} 项，不计入达成度",
                f"; {unknown} {plural} undetermined and left out",
            )
        return self.t(
            f"达成度 **{whole}**：本次运行可得 {reachable} 分，"
            f"已得 {earned} 分（{joined}）{untold}",
            f"Attainment **{whole}**: {earned} of the {reachable} points that this run can earn "
            f"({joined}){untold}",
        )

    def hint_of(self, run: Optional[Run]) -> str:
        """How a user gets more of the items judged; "" when the launch command is known."""
        if run is None or run.command is not None:
            return ""
        if run.started_like is not None:
            place = code(place_text(run.started_like, self.lang))
            return self.t(
                f"{place} 以变量指定配置与参数：用 `--launch-command` 给出实际命令，可判断更多项。",
                f" {place} takes the configuration and flags from variables: pass the actual "
                "command as `--launch-command` and more of them can be judged.",
            )
        return self.t(
            "项目中没有启动该运行的命令：用 `--launch-command` 给出实际命令，可判断更多项。",
            " No command in the project starts this run: pass it as `--launch-command` and more of "
            "them can be judged.",
        )

    def fraction(self, category: ScoredCategory) -> str:
        """``score/max`` of a category."""
        if category.score is None:
            return "N/A"
        return f"{number(category.score)}/{category.category.maximum}"

    def names(self, category: ScoredCategory, status: str) -> str:
        """Titles of the items that are on (partly too), or recommended."""
        wanted = {
            "enabled": (Status.ENABLED, Status.PARTIAL),
            "recommended": (Status.RECOMMENDED,),
        }[status]
        titles = [
            cell(self.say(item.title))
            + (self.t("（部分）", " (partly)") if item.status is Status.PARTIAL else "")
            for item in category.items
            if item.status in wanted
        ]
        return self.t("、", ", ").join(titles) or "—"

    def key_findings(self, category: ScoredCategory) -> str:
        """What matters in a category: what to turn on, else what is on."""
        if category.score is None:
            return self.t("不适用", "does not apply")
        pieces = []
        for status, zh, en in (
            (Status.RECOMMENDED, "建议启用", "recommended"),
            (Status.PARTIAL, "部分启用", "partly on"),
            (Status.ENABLED, "已启用", "on"),
        ):
            titles = [cell(self.say(i.title)) for i in category.items if i.status is status]
            if titles:
                joined = self.t("、", ", ").join(titles)
                pieces.append(f"{self.t(zh, en)}{self.t('：', ': ')}{joined}")
        if pieces:
            return self.t("；", "; ").join(pieces)
        if all(item.status is Status.NOT_APPLICABLE for item in category.items):
            return self.t("各项均不适用于本次运行", "nothing here applies to this run")
        if any(item.status is Status.UNKNOWN for item in category.items):
            return self.t("无法静态判断", "undetermined from the files")
        return self.t("可选项均未启用", "only optional items, none on")

    def evidence_of(self, item: ScoredItem) -> str:
        """Evidence of an item with its places, as a table cell."""
        shown = [self._evidence(e) for e in item.evidence[:_LISTED_PLACES]]
        current = self.say(item.current)
        if current and not shown:
            # The row names the item already.
            return cell(current.removeprefix(f"{self.say(item.title)}："))
        if not shown and item.status is Status.DISABLED:
            return self.t("未使用", "not in use")
        if current and item.status is Status.DISABLED and not item.action.en:
            shown.append(cell(current))  # why it is off beside what it is set to
        return "<br>".join(shown) or "—"

    def repeated(self, item: ScoredItem, before: object) -> str:
        """Words for what the row above says already of an item that is not on; "" for others."""
        if not isinstance(before, ScoredItem) or before.status is not item.status:
            return ""
        is_off = item.status in (Status.DISABLED, Status.NOT_APPLICABLE)
        same = is_off and item.current == before.current
        is_told = bool(item.current.en) and not item.evidence and not before.evidence
        return self.t("同上", "as above") if same and is_told else ""

    def elsewhere_of(self, item: ScoredItem) -> str:
        """Where the project has a practice that this run is without; "" where it has none."""
        without = (Status.RECOMMENDED, Status.DISABLED, Status.UNKNOWN)
        places = self.report.elsewhere.get(item.id, ()) if item.status in without else ()
        if not places:
            return ""
        shown = self.t("、", ", ").join(code(place_text(place, self.lang)) for place in places)
        return "<br>" + self.t(
            f"别处有（{shown}），本次运行未用到，不计",
            f"elsewhere: {shown}, not reached, not counted",
        )

    def _evidence(self, evidence: Evidence) -> str:
        text, location = evidence.text, evidence.location
        if location is None and evidence.said is not None:
            return cell(self.say(evidence.said))
        if location is None:
            said = default_text(text, self.lang)
            return code(text) if said is None else cell(said)
        place = cell(place_text(location, self.lang))
        return f"{self._quoted(evidence)}{self.t(f'（{place}）', f' ({place})')}"

    def _quoted(self, evidence: Evidence) -> str:
        """What stands at a place, as written; a sentence about it in the report's language."""
        said = evidence.said
        if said is not None and (said.zh != said.en or self.lang == "zh"):
            return cell(self.say(said))
        note = chinese_note(evidence.text)
        if note and self.lang == "zh":
            return cell(note)
        is_prose = note and " " in evidence.text and "=" not in evidence.text
        return cell(evidence.text) if is_prose else code(evidence.text)

    def advice_of(self, item: ScoredItem) -> str:
        """What to do about an item, as a table cell."""
        action = self.say(item.action)
        if not action:
            return "—"
        shown = [code(place_text(place, self.lang)) for place in item.places[:_LISTED_PLACES]]
        where = self.t("位置 ", "at ") + self.t("、", ", ").join(shown) if shown else ""
        return self.t("；", "; ").join(piece for piece in (cell(action), where, item.code) if piece)

    # --- recommendations ---

    def impact_of(self, entry: Recommendation) -> str:
        """Expected effect in figures."""
        return impact_text(entry.impact, self.lang, entry.is_mistake)

    def place_of(self, entry: Recommendation) -> str:
        """Where the change goes, in parentheses."""
        places = sorted(set(entry.places), key=lambda place: (place.path, place.line))
        named = list(dict.fromkeys(place_text(place, self.lang) for place in places))
        if not named:
            return ""
        shown = self._together(named[:_LISTED_PLACES])
        if len(named) > _LISTED_PLACES:
            more = len(named) - _LISTED_PLACES
            shown += self.t(f" 等 {len(named)} 处", f" and {more} more")
        return self.t(f"（{shown}）", f" ({shown})")

    def _together(self, places: Sequence[str]) -> str:
        """Places in code, those in the same file by their line alone."""
        shown, path = [], ""
        for place in places:
            here, colon, line = place.rpartition(":")
            same = colon and here == path and line.isdigit()
            shown.append(code(f":{line}" if same else place))
            path = here
        return self.t("、", ", ").join(shown)

    def current_of(self, entry: Recommendation) -> str:
        """The current state with its evidence."""
        shown = list(dict.fromkeys(self._evidence(e) for e in entry.evidence))[:_LISTED_PLACES]
        joined = self.t("；", "; ").join(shown)
        state = self.say(entry.current)
        is_said = any(e.said is not None and e.said.say(self.lang) == state for e in entry.evidence)
        if not state or not joined or is_said:
            return joined or state
        return self.t(f"{state}（证据：{joined}）", f"{state} (evidence: {joined})")

    def lines_of(self, entry: Recommendation) -> str:
        """The project's own lines that a recommendation is about, as a fenced block."""
        places = list(dict.fromkeys(entry.places))
        quoted = [(p, self.report.lines[p]) for p in places if p in self.report.lines]
        if not quoted:
            return ""
        ending = Path(quoted[0][0].path).suffix
        mark = _COMMENT.get(ending, "#")
        text = "\n".join(f"{mark} {p}\n{line}" for p, line in quoted[:_LISTED_PLACES])
        return fence(text, _LANGUAGE.get(ending, "text"))

    def own_patch(self, entry: Recommendation) -> str:
        """The patch of a recommendation that changes several things; "" for another."""
        texts = {f.change.text for f in entry.findings if f.change is not None}
        return self.report.patches.get(entry.rank, "") if len(texts) > 1 else ""

    def sentence(self, text: str) -> str:
        """``text`` ended by a full stop and, in English, begun with a capital."""
        stripped = text.strip()
        if not stripped:
            return ""
        if self.lang == "zh":
            return stripped if stripped[-1] in "。！？.!?" else f"{stripped}。"
        started = stripped[0].upper() + stripped[1:]
        return started if started[-1] in ".!?" else f"{started}."

    def _advised(self, diagnostic: Diagnostic) -> Optional[Recommendation]:
        """The recommendation that a diagnostic of the primary run led to."""
        entries = self.report.recommendations
        return next((entry for entry in entries if entry.code == diagnostic.code), None)

    def priority_of(self, diagnostic: Diagnostic) -> str:
        """The priority of a diagnostic, as the recommendations have it."""
        entry = self._advised(diagnostic)
        return self.say(_PRIORITY_SHORT[diagnostic.priority if entry is None else entry.priority])

    def message_of(self, diagnostic: Diagnostic) -> str:
        """What a diagnostic says: the linter's line; in Chinese, title and action."""
        entry = self._advised(diagnostic)
        if self.lang != "zh" or entry is None:
            return diagnostic.message
        title, told, written = entry.title.zh, diagnostic.told.zh, _written(diagnostic.change)
        if told.removeprefix("改为").startswith(title):
            title, told = told, ""
        if not written or written in told:
            return f"{title}：{told}" if told else title
        return f"{title}：{told}，写 {code(written)}" if told else f"{title}：写 {code(written)}"

    # --- the run ---

    def launch_of(self, report: Report) -> str:
        """The launch command as given, else as read from the project; its head when long."""
        command = _command(report)
        if not command:
            return self.t("未提供", "not given")
        shown = code(command)
        if len(command) > _SHOWN_COMMAND:
            head = command[:_SHOWN_COMMAND].rsplit(" ", 1)[0]
            shown = code(f"{head} …") + self.t("（全文见表后）", " (in full below)")
        if report.launch_unmatched:
            return shown + self.t("（未匹配到任何运行）", " (it matched no run)")
        if report.options.launch_command or report.primary is None:
            return shown
        place = cell(str(report.primary.location))
        return shown + self.t(f"（读自 {place}）", f" (read from {place})")

    def long_launch_of(self, report: Report) -> str:
        """A long launch command in full, a flag a line; "" for a short one."""
        command = _command(report)
        if len(command) <= _SHOWN_COMMAND:
            return ""
        lines = [*_prefix(report), _SPLIT.sub(" \\\n    ", command)]
        return fence(" \\\n".join(lines), "bash")

    def engines_of(self, report: Report) -> str:
        """Inference engines beside the training framework."""
        names = [n for n, on in (("vLLM", report.vllm), ("SGLang", report.sglang)) if on]
        extra = [name for name in names if name != report.framework_title.en]
        if not extra:
            return ""
        return self.t("，推理引擎：", ", inference: ") + self.t("、", ", ").join(extra)

    def stage_of(self, report: Report) -> str:
        """The ZeRO stage by its name."""
        stage = report.deepspeed.stage
        return f"Stage {stage}" + (self.t("（不分片）", " (no sharding)") if stage == 0 else "")

    def offload_of(self, report: Report) -> str:
        """Whether offload is needed, and why."""
        advice = report.deepspeed
        if advice.stage is None:
            return self.t("不适用", "does not apply")
        answer = self.t("是", "yes") if advice.offload else self.t("否", "no")
        reason = self.sentence(self.say(advice.offload_reason))
        return f"{answer}{self.t('。', '. ')}{reason}"

    def memory_reference(self) -> list[list[str]]:
        """Rows of the table of orders of magnitude, in GB."""
        return [
            [self.say(method), self.say(precision), *(f"{size} GB" for size in sizes.split())]
            for method, precision, sizes in _REFERENCE
        ]

    def index(self) -> list[tuple[str, str, str]]:
        """All documents: title, file, what it is."""
        rows = [
            (
                self.t("综合优化建议报告", "Optimization report"),
                MAIN,
                self.t("本报告（主交付物）", "this report"),
            )
        ]
        for identifier in audit_ids(self.report):
            audit = audit_of(identifier)
            assert audit is not None
            note = _AUDIT_NOTES.get(identifier, Text("框架专项审计", "the framework's own audit"))
            rows.append((self.say(audit.heading), audit.file, self.say(note)))
        rows.append(
            (
                self.t("机器可读结果", "Machine-readable result"),
                "static-analysis-report.json",
                self.t(
                    "报告中的全部内容，含其他运行的诊断", "all of it, other runs' diagnostics too"
                ),
            )
        )
        rows.append(
            (
                self.t("网页版报告", "HTML report"),
                "static-analysis-report.html",
                self.t("单文件，含图表", "one page with charts"),
            )
        )
        if self.report.patch:
            rows.append(
                (
                    self.t("推荐修改补丁", "Patch"),
                    "recommended.patch",
                    self.t("在项目根目录 `patch -p1` 应用", "apply with `patch -p1` from the root"),
                )
            )
        return rows


def example_of(entry: Recommendation) -> str:
    """The check's bad and good example as a diff without file names."""
    assert entry.example is not None
    bad, good = entry.example.bad.splitlines(), entry.example.good.splitlines()
    shown = list(difflib.unified_diff(bad, good, lineterm="", n=2))[2:]
    # Line numbers would be those of the example, which nobody has.
    return "\n".join("@@" if line.startswith("@@") else line for line in shown).removeprefix("@@\n")


def points_of(item: ScoredItem) -> str:
    """Points earned of those possible; a dash where it does not apply."""
    if item.status is Status.NOT_APPLICABLE or not item.max_points:
        return "—"
    return f"{number(item.points)}/{number(item.max_points)}"


def _command(report: Report) -> str:
    """The launch command as given, else the primary run's, without secrets."""
    if report.options.launch_command:
        return redacted(" ".join(report.options.launch_command.split()))
    run = report.primary
    if run is None or run.command is None:
        return ""
    words = tuple(_quoted(word) for word in run.command.words)
    shown = shown_command(replace(run, command=replace(run.command, words=words)))
    return redacted(" ".join(shown.split()))


# Before a flag or an override, and before the script behind the launcher's flags.
_SPLIT = re.compile(r" (?=--\w|\+{0,2}\w+(?:\.\w+)+=|[^\s'\"=-][^\s'\"=]*\.py(?:\s|$))")
# What sets a launcher's processes, in the order in which it is mostly written.
_OF_LAUNCHER = (
    "CUDA_VISIBLE_DEVICES",
    "NNODES",
    "NODE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "NPROC_PER_NODE",
)


def _prefix(report: Report) -> list[str]:
    """The assignments before the primary run's command that set its processes."""
    run = report.primary
    if report.options.launch_command or run is None or run.command is None:
        return []
    given = run.command.environment
    known_ones = ((name, given[name].value) for name in _OF_LAUNCHER if name in given)
    return [f"{name}={value}" for name, value in known_ones if isinstance(value, (str, int))]


def _written(change: Optional[Change]) -> str:
    """A change on one line; "" for one that is long, a block, or words instead of code."""
    is_shown = change is not None and change.language != "diff"
    if change is None or not is_shown or is_prose(change.text) or ":\n" in change.text:
        return ""
    lines = [line.strip().rstrip("\\,").rstrip() for line in change.text.splitlines()]
    separator = " " if change.language == "bash" else ", "
    text = separator.join(line for line in lines if line)
    return text if len(text) <= _SHOWN_CHANGE and len(lines) <= _SHOWN_LINES else ""


def _quoted(word: Word) -> Word:
    """A word of several words in quotes, as a shell wants it."""
    text = word.text
    if not re.search(r"\s", text) or "$" in text:
        return word
    return replace(word, value=shlex.quote(text)) if known(word.value) else word


def _tidy(text: str) -> str:
    """Collapses empty lines outside code blocks, and ends with one line end."""
    lines: list[str] = []
    open_fence = ""
    for line in text.split("\n"):
        match = re.match(r"(`{3,})", line)
        if match and (not open_fence or line.startswith(open_fence)):
            open_fence = "" if open_fence else match.group(1)
        if not open_fence and not line.strip():
            if lines and not lines[-1].strip():
                continue
            lines.append("")
        else:
            lines.append(line if open_fence else line.rstrip())
    return "\n".join(lines).strip("\n") + "\n"
