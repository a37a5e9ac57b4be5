"""The report: one result from which every document is rendered."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Optional

from flake8_gpu_training.checks.base import Change, Judgement, Priority, Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.facts import Location, Problem
from flake8_gpu_training.frameworks.base import Evidence
from flake8_gpu_training.frameworks.detection import TRAINING, detect
from flake8_gpu_training.frameworks.engine_of import engine_of
from flake8_gpu_training.frameworks.engines import Mode
from flake8_gpu_training.frameworks.registry import framework_of
from flake8_gpu_training.hardware import GPUS
from flake8_gpu_training.language import Text
from flake8_gpu_training.memory import MemoryEstimate, estimate
from flake8_gpu_training.patches import unified_diff
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.assembly import with_profile
from flake8_gpu_training.runs.elsewhere import elsewhere
from flake8_gpu_training.runs.find import LAUNCH_PATH, find_runs
from flake8_gpu_training.runs.model import Place, PlaceKind, Run, RunKind
from flake8_gpu_training.verdicts import Diagnostic, Verdict, diagnostics, judge
from report_builder.advice import DeepSpeedAdvice, FlashAdvice, deepspeed, flash_attention
from report_builder.audits import AUDITS
from report_builder.bottleneck import Bottleneck, bottleneck
from report_builder.launched import broken_files, is_launched
from report_builder.recommendations import Recommendation, recommend
from report_builder.scenarios import Scenario, scenarios
from report_builder.scoring import ScoredAudit, score

_LINE = 200  # characters of a quoted line

Progress = Callable[[str, int, int], None]
"""Told the step's name, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class Options:
    """What the user asked for; ``gpus`` per node, ``gpu`` a key of ``hardware.GPUS``."""

    launch_command: str = ""
    goal: str = "balanced"
    gpu: Optional[str] = None
    gpus: Optional[int] = None
    nodes: Optional[int] = None
    memory_gib: Optional[float] = None
    parameters: Optional[int] = None
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """Everything the documents say. ``patches``: a recommendation's own diff by rank."""

    path: str
    options: Options
    generated: str
    training: str
    vllm: bool
    sglang: bool
    evidence: tuple[Evidence, ...]
    runs: tuple[Run, ...]
    primary: Optional[Run]
    bottleneck: Bottleneck
    audits: tuple[ScoredAudit, ...]
    diagnostics: tuple[Diagnostic, ...]
    recommendations: tuple[Recommendation, ...]
    patch: str
    memory: Optional[MemoryEstimate]
    flash: FlashAdvice
    deepspeed: DeepSpeedAdvice
    scenarios: tuple[Scenario, ...]
    patches: Mapping[int, str] = field(default_factory=dict)
    engine_runs: Mapping[str, Run] = field(default_factory=dict)
    """The run of each detected engine's own, by the engine's id."""
    engine_recommendations: Mapping[str, tuple[Recommendation, ...]] = field(default_factory=dict)
    lines: Mapping[Location, str] = field(default_factory=dict)
    """The project's lines that recommendations without a ready change are about."""
    elsewhere: Mapping[str, tuple[Location, ...]] = field(default_factory=dict)
    """Signs of general items in files that the primary run does not reach, by item id."""
    codes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """How often each code is given to a run, by its id: what several runs share is counted at
    each, though ``diagnostics`` have it once."""
    launch_unmatched: bool = False
    """A launch command was given, and it starts no run that could be read."""
    broken: tuple[Problem, ...] = ()
    """Why programs that this command starts do not compile."""

    @property
    def framework_title(self) -> Text:
        """Name of the training framework (or engine, or plain PyTorch).

        A training run that only samples by an engine is named by what starts the engine.
        """
        run = self.primary
        engine = engine_of(run) if run is not None and run.kind is RunKind.TRAIN else None
        is_other = self.training in ("generic", "vllm", "sglang")
        if is_other and engine is not None and engine.host is not None:
            return Text(engine.host.title, engine.host.title)
        return title_of(self.training)

    @property
    def attainment(self) -> Optional[float]:
        """Share of the reachable points of all audits that is earned; None without any."""
        earned = sum(audit.earned for audit in self.audits)
        lost = sum(audit.lost for audit in self.audits)
        return earned / (earned + lost) if earned + lost > 0 else None


def title_of(framework: str) -> Text:
    """A framework's name as users know it."""
    if framework == "generic":
        return Text("通用（PyTorch）", "generic (PyTorch)")
    title = framework_of(framework).title
    return Text(title, title)


def title_of_run(run: Run) -> Text:
    """The framework of a run; of one that it has no module for, what starts its engine."""
    engine = engine_of(run) if run.framework == "generic" else None
    if engine is not None and engine.host is not None:
        return Text(engine.host.title, engine.host.title)
    return title_of(run.framework)


def timestamp() -> str:
    """Time of the analysis in UTC; ``SOURCE_DATE_EPOCH`` fixes it."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = (
        datetime.fromtimestamp(int(epoch), timezone.utc)
        if epoch.isdigit()
        else datetime.now(timezone.utc)
    )
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def build(root: Path, shown: str, options: Options, progress: Progress) -> Report:
    """Reads the project at ``root`` and judges its runs; ``shown`` is the path as given."""
    progress("read", 0, 1)
    project = Project.open(root, exclude=options.exclude)
    given = options.launch_command
    commands = project.command_line(given, LAUNCH_PATH).commands if given else ()
    detection = detect(project, commands)
    found = find_runs(project, options.launch_command or None, detection=detection)
    runs = tuple(_as_asked(run, options) for run in found)
    judged: list[tuple[Verdict, ...]] = []
    for number, run in enumerate(runs):
        progress("judge", number, len(runs))
        judged.append(judge(run, all_checks()))
    progress("write", 0, 1)
    primary = next((run for run in runs if run.primary), runs[0] if runs else None)
    verdicts: Sequence[Verdict] = judged[runs.index(primary)] if primary is not None else ()
    memory = estimate(primary) if primary is not None else None
    fits = memory.fits if memory is not None else None
    recommendations = recommend(verdicts, options.goal, fits)
    root_of_files = project.root
    unmatched = bool(given) and not is_launched(project, primary, commands)
    is_chosen = bool(given) and not unmatched
    engines = _engine_runs(runs, primary, is_chosen)
    training = detection.training
    if is_chosen and primary is not None and primary.framework in TRAINING:
        training = primary.framework  # what is launched, whatever else the project trains with
    return Report(
        shown,
        options,
        timestamp(),
        training,
        detection.vllm,
        detection.sglang,
        tuple(sorted(detection.evidence, key=lambda e: (e.framework, e.location, e.rule, e.text))),
        runs,
        primary,
        bottleneck(primary, verdicts, memory),
        _audits(training, detection.vllm, detection.sglang, runs, judged, primary, is_chosen),
        diagnostics((v for of_run in judged for v in of_run), Priority.LOW),
        recommendations,
        unified_diff(root_of_files, [Change("", "", r.edits) for r in recommendations]),
        memory,
        flash_attention(primary, _judgement(verdicts, "flash-attention")),
        deepspeed(
            primary,
            _judgement(verdicts, "deepspeed-zero"),
            _judgement(verdicts, "cpu-nvme-offload"),
        ),
        scenarios(primary, primary.framework if primary is not None else training, project),
        {
            r.rank: unified_diff(root_of_files, [Change("", "", r.edits)])
            for r in recommendations
            if r.edits
        },
        engines,
        {name: recommend(judged[runs.index(run)], options.goal) for name, run in engines.items()},
        _quoted(root_of_files, recommendations),
        elsewhere(project, primary) if primary is not None else {},
        {
            run.id: Counter(d.code for d in diagnostics(own, Priority.LOW))
            for run, own in zip(runs, judged)
        },
        unmatched,
        broken_files(project, commands) if unmatched else (),
    )


def _quoted(root: Path, recommendations: Sequence[Recommendation]) -> dict[Location, str]:
    """Lines of the project at the findings of recommendations that have no change to show."""
    wanted = [f.location for r in recommendations if r.change is None for f in r.findings]
    texts: dict[str, list[str]] = {}
    quoted = {}
    for place in wanted:
        if place.path not in texts:
            texts[place.path] = _file_lines(root, place.path)
        lines = texts[place.path]
        if 0 < place.line <= len(lines) and lines[place.line - 1].strip():
            quoted[place] = lines[place.line - 1].strip()[:_LINE]
    return quoted


def _file_lines(root: Path, path: str) -> list[str]:
    """Lines of a file of the project; none of a notebook's, whose places count cells' lines."""
    top = os.path.realpath(root)
    full = os.path.realpath(Path(top, path))
    if path.endswith(".ipynb") or not full.startswith(top.rstrip(os.sep) + os.sep):
        return []
    if not Path(full).is_file():  # a pipe or a device would keep us waiting
        return []
    try:
        text = Path(full).read_bytes().decode("utf-8", "replace")
    except OSError:
        return []
    return text.split("\n")


def _engine_runs(
    runs: Sequence[Run], primary: Optional[Run], is_chosen: bool = False
) -> dict[str, Run]:
    """The run of each inference engine, where that is not the primary run."""
    found = {name: engine_run(name, runs, primary, is_chosen) for name in ("vllm", "sglang")}
    return {name: run for name, run in found.items() if run is not None and run is not primary}


def engine_run(
    name: str, runs: Sequence[Run], primary: Optional[Run], is_chosen: bool = False
) -> Optional[Run]:
    """The run by which an engine is audited.

    The primary run where it starts the engine itself; else the engine's own jobs, a server
    before a script, those whose settings are in sight before those that a training framework
    starts. Where the user names the primary run (``is_chosen``), it is that one even when it is
    a router, else a job of the same file.
    """
    using = [(run, engine) for run in runs if (engine := engine_of(run)) and engine.name == name]
    if not using:
        return None
    path = primary.location.path if primary is not None and is_chosen else None
    return min(
        using,
        key=lambda found: (
            found[1].is_remote,
            path is not None and found[0].location.path != path,
            found[1].mode is Mode.ROUTER,
            found[0] is not primary,
            found[1].is_open,
            found[1].host is not None or found[1].call is not None,
        ),
    )[0]


def _as_asked(run: Run, options: Options) -> Run:
    """``run`` on the hardware and with the model size that the user named."""
    hardware = run.hardware
    if options.gpu is not None:
        hardware = replace(
            hardware,
            gpu=options.gpu,
            memory_gib=GPUS[options.gpu].memory_gib,
            architecture=GPUS[options.gpu].architecture,
            source="--gpu",
            location=None,
            weak=False,
        )
    if options.gpus is not None:
        hardware = replace(
            hardware, gpus_per_node=options.gpus, source=hardware.source or "--num-gpus"
        )
    if options.nodes is not None:
        hardware = replace(hardware, nodes=options.nodes)
    if options.memory_gib is not None:
        hardware = replace(
            hardware, memory_gib=options.memory_gib, source=hardware.source or "--gpu-memory"
        )
    model = run.model
    if options.parameters is not None and not _about(options.parameters, model.parameters):
        # A shape read from the model's name would belong to another size.
        model = replace(
            model,
            parameters=options.parameters,
            active_parameters=None,
            layers=None,
            hidden_size=None,
            heads=None,
            kv_heads=None,
            vocabulary=None,
            source="--model-params",
            location=None,
        )
    if hardware == run.hardware and model == run.model:
        return run
    return with_profile(replace(run, hardware=hardware, model=model))


def _about(named: int, parameters: Optional[int]) -> bool:
    """Whether ``parameters`` is what a user calls ``named`` (7B for 7.6 billion)."""
    return parameters is not None and abs(parameters - named) <= 0.15 * named


def _judgement(verdicts: Sequence[Verdict], item: str) -> Optional[Judgement]:
    """What the check of an item of the general audit says."""
    for verdict in verdicts:
        if any((i.audit, i.id) == ("general", item) for i in verdict.check.items):
            return verdict.judgement
    return None


def _audits(
    training: str,
    vllm: bool,
    sglang: bool,
    runs: Sequence[Run],
    judged: Sequence[tuple[Verdict, ...]],
    primary: Optional[Run],
    is_chosen: bool,
) -> tuple[ScoredAudit, ...]:
    """Scores of the general audit, the training framework's and the detected engines'."""
    wanted = {"general", framework_of(training).audit}
    wanted |= {name for name, used in (("vllm", vllm), ("sglang", sglang)) if used}
    of_primary = judged[list(runs).index(primary)] if primary is not None else _of_no_run()
    scored = []
    for audit in AUDITS:
        if audit.id not in wanted:
            continue
        verdicts = of_primary
        if audit.id in ("vllm", "sglang"):
            own = engine_run(audit.id, runs, primary, is_chosen)
            verdicts = judged[list(runs).index(own)] if own is not None else _of_no_run(audit.id)
        elif audit.id != "general" and primary is not None and primary.framework == "generic":
            verdicts = _of_wrapper(verdicts, training)
        scored.append(score(audit, verdicts))
    return tuple(scored)


def _of_wrapper(verdicts: Iterable[Verdict], training: str) -> tuple[Verdict, ...]:
    """Verdicts on a program of which only the project tells the framework: it may hand over to
    that framework with settings out of sight, so what is not on is not known to be off."""
    title = title_of(training)
    current = Text(
        f"{title.zh} 收到的配置未能读到", f"the settings that {title.en} is given are not in sight"
    )
    unknown = Judgement(Status.UNKNOWN, current=current)
    decided = (Status.ENABLED, Status.UNKNOWN)
    return tuple(
        verdict
        if verdict.judgement.status in decided or verdict.judgement.findings
        else replace(verdict, judgement=unknown)
        for verdict in verdicts
    )


def _of_no_run(engine: str = "") -> tuple[Verdict, ...]:
    """Where no run was found, or none that is seen to start ``engine``, nothing can be told."""
    nowhere = Location(".")
    run = Run("", RunKind.OTHER, "generic", nowhere, Place(PlaceKind.PYTHON, nowhere))
    current = Text("没有找到可以判断的运行", "no run was found to judge")
    if engine:
        title = title_of(engine).en
        current = Text(f"未读到启动 {title} 的运行", f"no run is seen to start {title}")
    unknown = Judgement(Status.UNKNOWN, current=current)
    return tuple(Verdict(run, check, unknown) for check in all_checks())
