"""The Markdown documents, rendered from the report by the templates beside this module."""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

import jinja2

from flake8_gpu_training.checks.base import Change, Evidence, Priority, Status
from flake8_gpu_training.facts import Location, Setting, Word, known
from flake8_gpu_training.frameworks.registry import framework_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.memory import GIB, missing
from flake8_gpu_training.runs.model import Run, RunKind
from flake8_gpu_training.runs.secrets import shown_command
from flake8_gpu_training.verdicts import Diagnostic
from report_builder.audits import AUDITS, audit_of
from report_builder.bottleneck import NAMES
from report_builder.decision_tree import swift_tree
from report_builder.recommendations import Recommendation
from report_builder.report import Report
from report_builder.scenarios import Scenario
from report_builder.scoring import ScoredAudit, ScoredCategory, ScoredItem
from report_builder.wording import (
    PRACTICE_NAMES,
    default_text,
    impact_text,
    nested_yaml,
    place_text,
    redacted,
    source_text,
)

MAIN = "static-analysis-report.md"
_TEMPLATES = Path(__file__).parent / "templates"
_LISTED_RUNS = 10
_LISTED_PLACES = 5
_SHOWN_COMMAND = 200
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
    Status.UNKNOWN: Text("无法静态判断", "cannot be told"),
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
_KIND = {
    RunKind.TRAIN: Text("训练", "training"),
    RunKind.SERVE: Text("推理服务", "serving"),
    RunKind.INFER: Text("离线推理", "offline inference"),
    RunKind.OTHER: Text("其他", "other"),
}
_MODEL_KIND = {
    "LLM": Text("LLM", "LLM"),
    "MLLM": Text("MLLM", "MLLM"),
    "video": Text("视频生成", "video generation"),
    "image": Text("图像生成", "image generation"),
    "audio": Text("音频", "audio"),
    "embedding": Text("Embedding", "embedding"),
    "vision": Text("视觉", "vision"),
}
_GOAL = {
    "balanced": Text("综合优化（吞吐优先）", "balanced (throughput first)"),
    "throughput": Text("吞吐优先", "throughput"),
    "memory": Text("显存优先", "memory"),
    "latency": Text("延迟优先", "latency"),
}
_PARTS = {
    "weights": Text("权重", "weights"),
    "gradients": Text("梯度", "gradients"),
    "optimizer": Text("优化器状态", "optimizer states"),
    "activations": Text("激活", "activations"),
    "logits": Text("logits", "logits"),
    "overhead": Text("其他（CUDA 上下文、通信缓冲、碎片）", "rest (CUDA context, buffers, slack)"),
}
# What an estimate of the memory lacks, and how to supply it.
_LACKING = {
    "parameters": Text(
        "模型规模未知（用完整的模型名，如 `Qwen/Qwen2.5-7B-Instruct`）",
        "the size of the model is not known (name the model in full, such as "
        "`Qwen/Qwen2.5-7B-Instruct`)",
    ),
    "shape": Text(
        "模型层数与宽度未知（用公开模型的完整名称；仅有 `--model-params` 的规模不够）",
        "the model's layers and width are not known (name a published model in full; a size "
        "given by `--model-params` does not tell them)",
    ),
    "micro_batch_size": Text(
        "每卡批大小未知（在启动命令或配置中写出，如 `per_device_train_batch_size`）",
        "the batch size per GPU is not known (write it in the command or configuration, such as "
        "`per_device_train_batch_size`)",
    ),
    "max_length": Text(
        "最大序列长度未知（在启动命令或配置中写出，如 `max_length`）",
        "the maximal sequence length is not known (write it in the command or configuration, "
        "such as `max_length`)",
    ),
    "ranks": Text(
        "进程数未知（用 `--num-gpus`、`--num-nodes` 指明）",
        "the number of processes is not known (pass `--num-gpus` and `--num-nodes`)",
    ),
    "rollout": Text(
        "同进程的生成引擎占用的显存由其自身设置决定",
        "the memory of the rollout engine in the same process is its own setting",
    ),
}
_UNKNOWN = Text("未知", "unknown")
_ADJUST = Text("需根据实际硬件调整", "adjust to the actual hardware")
# Order of magnitude in GB; the last row of pure BF16 is LLaMA-Factory's.
_REFERENCE = (
    (Text("全参（bf16）", "full"), Text("16-bit 混合", "16-bit mixed"), "120 240 600 1200"),
    (Text("全参（纯 bf16）", "full, pure bf16"), Text("16-bit", "16-bit"), "60 120 300 600"),
    (Text("LoRA / GaLore", "LoRA / GaLore"), Text("16-bit", "16-bit"), "16 32 64 160"),
    (Text("QLoRA", "QLoRA"), Text("8-bit", "8-bit"), "10 20 40 80"),
    (Text("QLoRA", "QLoRA"), Text("4-bit", "4-bit"), "6 12 24 48"),
    (Text("QLoRA", "QLoRA"), Text("2-bit", "2-bit"), "4 8 16 24"),
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
                **view.advice(identifier),
                settings=view.settings(identifier),
                judged=view.judged(identifier),
                tree=view.tree() if identifier == "swift" else "",
                more_scenarios=view.more_scenarios(identifier),
                memory_reference=view.memory_reference(),
            )
    return files


def audit_ids(report: Report) -> tuple[str, ...]:
    """Audits that get a document, in order: the general one and the detected ones."""
    wanted = {"general", framework_of(report.training).audit}
    wanted |= {name for name in ("vllm", "sglang") if getattr(report, name)}
    return tuple(audit.id for audit in AUDITS if audit.id in wanted)


def cell(text: str) -> str:
    """``text`` as the content of a table cell."""
    flat = " ".join(str(text).split())
    return flat.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def code(text: str) -> str:
    """``text`` as inline code, fit for a table cell."""
    flat = " ".join(str(text).split())
    if not flat:
        return ""
    longest = max((len(run) for run in re.findall(r"`+", flat)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    body = flat.replace("|", "\\|")
    return f"{ticks}{pad}{body}{pad}{ticks}"


def fence(text: str, language: str) -> str:
    """``text`` as a fenced block."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    ticks = "`" * (longest + 1)
    body = text.rstrip("\n")
    return f"{ticks}{language}\n{body}\n{ticks}"


def change_fence(change: Change) -> str:
    """A change as a fenced block in its own language."""
    text = nested_yaml(change.text) if change.language == "yaml" else change.text
    return fence(text, change.language)


def number(value: float) -> str:
    """A number without needless decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def percent(share: Optional[float]) -> str:
    """A share of 1 as percent; a dash for None."""
    return "—" if share is None else f"{share * 100:.0f}%"


class _View:
    """What the templates may ask, in one language."""

    def __init__(self, report: Report, lang: str) -> None:
        self.report = report
        self.lang = lang
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

    def t(self, zh: str, en: str) -> str:
        """The wording in the report's language."""
        return zh if self.lang == "zh" else en

    def say(self, text: Text) -> str:
        """A bilingual text in the report's language."""
        return text.say(self.lang)

    def _globals(self) -> Mapping[str, Any]:
        report = self.report
        named: dict[str, Callable[..., Any]] = {
            "t": self.t,
            "say": self.say,
            "cell": cell,
            "code": code,
            "fence": fence,
            "change_fence": change_fence,
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
            "status_of": lambda item: self.say(_STATUS[item.status]),
            "points_of": points_of,
            "evidence_of": self.evidence_of,
            "advice_of": self.advice_of,
            "kind_of": lambda run: self.say(_KIND[run.kind]),
            "model_of": self.model_of,
            "model_kind": self.model_kind,
            "model_size": self.model_size,
            "mode_of": self.mode_of,
            "rlhf_of": self.rlhf_of,
            "practice": self.practice,
            "hardware_of": self.hardware_of,
            "launch_of": self.launch_of,
            "long_launch_of": self.long_launch_of,
            "attainment_of": self.attainment_of,
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
            "no_memory": self.no_memory,
            "trains": lambda run: run.kind is RunKind.TRAIN,
            "offload_of": self.offload_of,
            "stage_of": self.stage_of,
            "place": lambda location: place_text(location, self.lang),
            "run_name": lambda run: run.id.replace(
                "<launch-command>:1", place_text(run.location, self.lang)
            ),
            "priority_of": self.priority_of,
            "message_of": self.message_of,
        }
        counts = Counter(diagnostic.run for diagnostic in report.diagnostics)
        others = sorted(
            (run for run in report.runs if run is not report.primary),
            key=lambda run: (-counts[run.id], run.id),
        )
        own = report.primary.id if report.primary is not None else None
        return {
            **named,
            "r": report,
            "main_scenarios": report.scenarios[:_MAIN_SCENARIOS],
            "lang": self.lang,
            "colon": self.t("：", ": "),
            "bottleneck_name": NAMES[report.bottleneck.kind],
            "by_priority": [
                (self.say(heading), [e for e in report.recommendations if e.priority is priority])
                for priority, heading in _PRIORITY.items()
            ],
            "unaudited": self.unaudited(),
            "others": [(run, counts[run.id]) for run in others[:_LISTED_RUNS]],
            "more_runs": max(0, len(others) - _LISTED_RUNS),
            "own_diagnostics": [d for d in report.diagnostics if d.run == own],
        }

    # --- audits ---

    def audit(self, identifier: str) -> Optional[ScoredAudit]:
        """The scored audit with this id, or None when it has no items."""
        return next((a for a in self.report.audits if a.audit.id == identifier), None)

    def tree(self) -> str:
        """The ms-swift decision tree with this run's branches."""
        scored = self.audit("swift")
        items = [item for c in scored.categories for item in c.items] if scored else []
        wanted = frozenset(i.id for i in items if i.status is Status.RECOMMENDED)
        return swift_tree(self.report.primary, self.lang, wanted)

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
        """The run that the document of an audit is about."""
        return self.report.engine_runs.get(identifier, self.report.primary)

    def judged(self, identifier: str) -> list[ScoredItem]:
        """Items of the general audit with a verdict, for a framework without its own audit."""
        run = self.subject(identifier)
        beside = identifier in _ENGINES and run is not None and run.framework != identifier
        if self.audit(identifier) is not None or beside:
            return []
        general = self.report.engine_audits.get(identifier, self.audit("general"))
        silent = (Status.NOT_APPLICABLE, Status.UNKNOWN)
        items = [i for c in general.categories for i in c.items] if general is not None else []
        told = [item for item in items if item.status not in silent]
        return [i for i in told if i.evidence or i.current.en or i.status is not Status.DISABLED]

    def unaudited(self) -> list[str]:
        """Headings of detected frameworks whose audit has no items in this version."""
        scored = {audit.audit.id for audit in self.report.audits}
        missing = [audit_of(i) for i in audit_ids(self.report) if i not in scored]
        return [self.say(audit.heading) for audit in missing if audit is not None]

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
        untold, unknown = "", audit.unknown
        if unknown:
            plural = "item" if unknown == 1 else "items"
            untold = self.t(
                f"；无法静态判断 {unknown} 项，不计入达成度",
                f"; {unknown} {plural} could not be told and are left out",
            )
        return self.t(
            f"达成度 **{whole}**（{joined}）{untold}", f"Attainment **{whole}** ({joined}){untold}"
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
            return self.t("无法静态判断", "cannot be told from the files")
        return self.t("可选项均未启用", "only optional items, none on")

    def evidence_of(self, item: ScoredItem) -> str:
        """Evidence of an item with its places, as a table cell."""
        shown = [self._evidence(e.text, e.location) for e in item.evidence[:_LISTED_PLACES]]
        current = self.say(item.current)
        if current and not shown:
            return cell(current)
        return "<br>".join(shown) or "—"

    def _evidence(self, text: str, location: Optional[Location]) -> str:
        if location is None:
            said = default_text(text, self.lang)
            return code(text) if said is None else cell(said)
        place = cell(place_text(location, self.lang))
        return f"{code(text)}{self.t(f'（{place}）', f' ({place})')}"

    def advice_of(self, item: ScoredItem) -> str:
        """What to do about an item, as a table cell."""
        action = self.say(item.action)
        if not action:
            return "—"
        return cell(f"{action}{self.t('；', '; ')}{item.code}")

    # --- recommendations ---

    def impact_of(self, entry: Recommendation) -> str:
        """Expected effect in figures."""
        return impact_text(entry.impact, self.lang, entry.is_mistake)

    def place_of(self, entry: Recommendation) -> str:
        """Where the change goes, in parentheses."""
        places = sorted({place_text(f.location, self.lang) for f in entry.findings})
        if not places:
            return ""
        shown = self.t("、", ", ").join(code(place) for place in places[:_LISTED_PLACES])
        if len(places) > _LISTED_PLACES:
            more = len(places) - _LISTED_PLACES
            shown += self.t(f" 等 {len(places)} 处", f" and {more} more")
        return self.t(f"（{shown}）", f" ({shown})")

    def current_of(self, entry: Recommendation) -> str:
        """The current state with its evidence."""
        shown = list(dict.fromkeys(self._evidence(e.text, e.location) for e in entry.evidence))[
            :_LISTED_PLACES
        ]
        joined = self.t("；", "; ").join(shown)
        state = self.say(entry.current)
        if not state or not joined:
            return joined or state
        return self.t(f"{state}（证据：{joined}）", f"{state} (evidence: {joined})")

    def lines_of(self, entry: Recommendation) -> str:
        """The project's own lines that a recommendation is about, as a fenced block."""
        places = list(dict.fromkeys(finding.location for finding in entry.findings))
        quoted = [(p, self.report.lines[p]) for p in places if p in self.report.lines]
        if not quoted:
            return ""
        ending = Path(quoted[0][0].path).suffix
        mark = _COMMENT.get(ending, "#")
        text = "\n".join(f"{mark} {p}\n{line}" for p, line in quoted[:_LISTED_PLACES])
        return fence(text, _LANGUAGE.get(ending, "text"))

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
        # The action speaks for all places of its code; different faults are told apart.
        alike = len({finding.message for finding in entry.findings}) == 1
        told = entry.action.zh if alike and entry.action.zh != entry.title.zh else ""
        return f"{entry.title.zh}：{told or diagnostic.message}"

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
        return fence(re.sub(r" (?=--\w)", " \\\n    ", command), "bash")

    def engines_of(self, report: Report) -> str:
        """Inference engines beside the training framework."""
        names = [n for n, on in (("vLLM", report.vllm), ("SGLang", report.sglang)) if on]
        extra = [name for name in names if name.lower() != report.training]
        if not extra:
            return ""
        return self.t("，推理引擎：", ", inference: ") + self.t("、", ", ").join(extra)

    def model_kind(self, run: Optional[Run]) -> str:
        """Kind of the model, or that it is not known."""
        kind = run.model.kind if run is not None else "unknown"
        return self.say(_MODEL_KIND.get(kind, _UNKNOWN))

    def model_size(self, run: Optional[Run]) -> str:
        """Number of parameters, or that it is not known."""
        if run is None or not run.model.parameters:
            return self.say(_UNKNOWN)
        return _billions(run.model.parameters)

    def model_of(self, run: Run) -> str:
        """The model's name and size."""
        name = code(run.model.name) if run.model.name else self.say(_UNKNOWN)
        return name + self.t(f"（{self.model_size(run)}）", f" ({self.model_size(run)})")

    def mode_of(self, run: Run) -> str:
        """How the run is started: the program and its sub-command."""
        if run.command is None:
            return self.say(_KIND[run.kind])
        words = [word.text for word in run.command.words[:2] if not word.text.startswith("-")]
        return code(" ".join(words)) if words else self.say(_KIND[run.kind])

    def rlhf_of(self, run: Run) -> str:
        """The RLHF algorithm, or nothing for other runs."""
        algorithm = run.value("algorithm")
        return str(algorithm) if algorithm not in (None, "sft", "pt") else ""

    def practice(self, run: Run, name: str) -> str:
        """Value of a practice, with its place."""
        setting = run.practice(name)
        if not setting.known or setting.value is None:
            return self.say(_UNKNOWN)
        place = self.t("默认值", "default")
        if setting.location is not None:
            place = place_text(setting.location, self.lang)
        return code(str(setting.value)) + self.t(f"（{cell(place)}）", f" ({cell(place)})")

    def hardware_of(self, run: Optional[Run]) -> str:
        """GPUs of the run, with what is not known said so."""
        adjust = self.say(_ADJUST)
        if run is None:
            return self.say(_UNKNOWN) + self.t(f"（{adjust}）", f" ({adjust})")
        hardware = run.hardware
        gpu = hardware.gpu or self.t("GPU 型号未知", "unknown GPU")
        count = hardware.gpus or run.launcher.world_size
        pieces = [f"{gpu} × {count}" if count else gpu]
        if hardware.nodes is not None and hardware.nodes > 1:
            pieces.append(self.t(f"{hardware.nodes} 个节点", f"{hardware.nodes} nodes"))
        if hardware.memory_gib is not None:
            pieces.append(f"{number(hardware.memory_gib)} GiB")
        if hardware.gpu is None and hardware.memory_gib is None:
            pieces.append(adjust)
        return self.t("，", ", ").join(pieces)

    def memory_rows(self, report: Report) -> list[list[str]]:
        """The memory table: a heading row, the parts, the total; one column or two."""
        found = report.memory
        assert found is not None
        columns = [found.parts]
        heads = ["GiB"]
        if found.full_parts is not None and found.max_length != found.sample_length:
            columns.append(found.full_parts)
            heads = [
                self.t(f"样本最长 {length} token（GiB）", f"samples up to {length} tokens (GiB)")
                for length in (found.sample_length, found.max_length)
            ]
        rows = [[self.t("部分", "Part"), *heads]]
        for name in found.parts:
            shown = [_gib(column[name]) for column in columns]
            if name in found.offloaded:
                shown = [self.t("卸载到 CPU", "on the CPU")] * len(columns)
            rows.append([self.say(_PARTS[name]), *shown])
        totals = [f"**{sum(column.values()):.1f}**" for column in columns]
        return [*rows, [self.t("**每卡合计**", "**Total per GPU**"), *totals]]

    def memory_note(self, report: Report) -> str:
        """What the figures of the memory table rest on."""
        found = report.memory
        assert found is not None
        if found.full_parts is None:
            return self.t(
                f"未设最大长度，按样本最长 {found.sample_length} token 估算；"
                "更长的样本需要更多显存。",
                f"No maximal length is set, so samples of up to {found.sample_length} tokens are "
                "assumed; longer ones take more.",
            )
        if found.max_length == found.sample_length:
            return ""
        return self.t(
            "峰值由一批中最长的样本决定，数据长度不在配置中，故给出两种情形："
            f"假设为常见的指令数据（最长约 {found.sample_length} token），以及样本达到上限 "
            f"{found.max_length} token 的最坏情形。",
            "The longest sample of a batch makes the peak, and the files do not tell how long the "
            f"data are, so here are two cases: instruction data as usual, assumed to stay below "
            f"{found.sample_length} tokens, and samples that reach the limit of "
            f"{found.max_length} tokens.",
        )

    def fits_of(self, report: Report) -> str:
        """Whether the run fits, as one sentence."""
        assert report.memory is not None
        run = report.primary
        capacity = run.hardware.memory_gib if run is not None else None
        if capacity is None:
            return self.t(
                "GPU 显存未知，是否放得下需根据实际硬件调整。",
                "The GPU's memory is not known; whether it fits depends on the actual hardware.",
            )
        known_gib = number(capacity)
        if report.memory.fits is None:
            return self.t(
                f"与每卡 {known_gib} GiB 显存接近，是否放得下取决于样本的实际长度。",
                f"It is close to the GPU's {known_gib} GiB: the real lengths of samples decide.",
            )
        if report.memory.fits:
            return self.t(
                f"每卡 {known_gib} GiB 显存放得下。", f"It fits the GPU's {known_gib} GiB."
            )
        return self.t(
            f"每卡 {known_gib} GiB 显存放不下，会 OOM。",
            f"It does not fit the GPU's {known_gib} GiB: out of memory.",
        )

    def no_memory(self, run: Optional[Run]) -> str:
        """Why there is no estimate: what is missing, and how to supply it."""
        lacking = missing(run) if run is not None and run.kind is RunKind.TRAIN else ()
        if not lacking:
            return self.t(
                "没有可估算的训练运行；需根据实际硬件调整。",
                "There is no training run to estimate; adjust to the actual hardware.",
            )
        joined = self.t("；", "; ").join(self.say(_LACKING[name]) for name in lacking)
        return self.t(
            f"无法估算本次运行的显存：{joined}。需根据实际硬件调整。",
            f"The memory of this run cannot be estimated: {joined}. Adjust to the actual hardware.",
        )

    def serving_memory(self, run: Optional[Run]) -> str:
        """What the weights of an inference run take on each GPU; "" for other runs."""
        if run is None or run.kind is RunKind.TRAIN or not run.model.parameters:
            return ""
        degree = 1
        for name in ("tensor_parallel", "pipeline_parallel"):
            size = run.value(name, 1)
            degree *= size if isinstance(size, int) and size > 0 else 1
        gib = run.model.parameters * 2 / degree / GIB
        return self.t(
            f"16 位权重每卡约 {gib:.1f} GiB（{degree} 卡切分，量化模型更小），"
            "其余显存主要用于 KV cache。",
            f"16-bit weights take about {gib:.1f} GiB per GPU (split over {degree}; less when "
            "quantized); most of the rest holds the KV cache.",
        )

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

    def settings(self, identifier: str) -> list[tuple[str, str, str]]:
        """What the subject of an audit sets: practice, value, and the parameter with its place.

        Of a training run that uses an engine, only what it sets of the engine.
        """
        run = self.subject(identifier)
        if run is None:
            return []
        if identifier in _ENGINES and run.framework != identifier:
            named = (run.settings[name] for name in sorted(run.settings))
            own = [s for s in named if s.known and _is_of_engine(s, identifier)]
            return [
                (code(s.name), code(str(s.value)), self._evidence(Evidence.of(s).text, s.location))
                for s in own
            ]
        return [
            (
                self.say(PRACTICE_NAMES[name]),
                code(str(setting.value)),
                self._evidence(Evidence.of(setting).text, setting.location),
            )
            for name, setting in sorted(run.profile.items())
            if known(setting.value) and setting.value is not None
        ]

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
    return "\n".join(list(difflib.unified_diff(bad, good, lineterm="", n=2))[2:])


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


def _quoted(word: Word) -> Word:
    """A word of several words in quotes, as a shell wants it."""
    text = word.text
    if not re.search(r"\s", text) or "$" in text:
        return word
    return replace(word, value=shlex.quote(text)) if known(word.value) else word


def _is_of_engine(setting: Setting, engine: str) -> bool:
    return engine in setting.name or setting.name in _ENGINE_SETTINGS


def _gib(size: float) -> str:
    return "< 0.1" if 0 < size < 0.05 else f"{size:.1f}"


def _billions(parameters: int) -> str:
    return f"{parameters / 1e9:.1f}B" if parameters >= 1e9 else f"{parameters / 1e6:.0f}M"


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
