"""Small projects, each wired differently, end with the settings written beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from flake8_gpu_training.facts import Setting, Unknown
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import PRACTICES, Run

try:
    import tomllib
except ModuleNotFoundError:
    import tomli as tomllib

PROJECTS = Path(__file__).resolve().parent.parent / "fixtures" / "runs"

_MECHANISMS = """
    python torchrun accelerate deepspeed mpirun srun swift llamafactory-cli ray jupyter lightning
    shell-arithmetic argparse hf-argument-parser trl-parser click typer omegaconf-load
    hydra hydra-defaults hydra-overrides arguments-from-yaml yaml-safe-load json-load toml-load
    config-by-flag config-by-default config-by-constant args-through-functions
    environment-number arithmetic branches local-modules elsewhere dataclass-replace
    deepspeed-json deepspeed-dict accelerate-yaml hostfile sourced-script called-script
    environment-file makefile dockerfile slurm pytorchjob mpijob kubernetes-job skypilot compose
    gpus-by-comment megatron-flags argument-file fire
    config-by-environment arguments-from-dict yaml-anchors accelerate-plugin fsdp-json yacs
    mmengine absl console-script lightning-cli import-module python-config
"""
MECHANISMS = frozenset(_MECHANISMS.split())

Expected = Mapping[str, Any]


def expectations() -> list[Path]:
    """The files that state what a project ends with."""
    return sorted(PROJECTS.glob("*.toml"))


def read(path: Path) -> dict[str, Any]:
    """One such file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def told(value: Any) -> Any:
    """A value in the words of the expectation files."""
    if isinstance(value, Unknown):
        return {"unknown": list(value.candidates) or True}
    if isinstance(value, (tuple, list)):
        return [told(item) for item in value]
    if value is None:
        return "none"
    return value


def outcome(setting: Setting | None) -> Any:
    """A setting in the words of the expectation files."""
    return {"absent": True} if setting is None else told(setting.value)


def differences(run: Run, expected: Expected) -> dict[str, tuple[Any, Any]]:
    """What is stated and what was found instead, by name."""
    found = dict(_pairs(run, expected))
    return {name: pair for name, pair in found.items() if not _same(*pair)}


def _same(stated: Any, found: Any) -> bool:
    if isinstance(stated, dict) and isinstance(found, dict) and "unknown" in stated:
        candidates = (stated["unknown"], found.get("unknown"))
        if all(isinstance(one, list) for one in candidates):
            return sorted(map(str, candidates[0])) == sorted(map(str, candidates[1]))
    return type(stated) is type(found) and bool(stated == found)


def _pairs(run: Run, expected: Expected) -> Iterator[tuple[str, tuple[Any, Any]]]:
    for name in ("framework", "entry"):
        if name in expected:
            yield name, (expected[name], getattr(run, name))
    for name, stated in expected.get("launcher", {}).items():
        value = getattr(run.launcher, name)
        found = outcome(value) if isinstance(value, Setting) else value
        yield f"launcher.{name}", (stated, found)
    for name in ("deepspeed", "accelerate"):
        if name in expected:
            document = getattr(run, name)
            yield name, (expected[name], document.path if document else False)
    for path in expected.get("files", ()):
        yield f"files: {path}", (True, path in run.files)
    for path in expected.get("unreached", ()):
        yield f"files: {path}", (False, path in run.files)
    for name, stated in expected.get("settings", {}).items():
        yield f"settings.{name}", (stated, outcome(run.setting(name)))
    for name, stated in expected.get("practices", {}).items():
        yield f"practices.{name}", (stated, outcome(run.practice(name)))
    for name, stated in expected.get("environment", {}).items():
        yield f"environment.{name}", (stated, outcome(run.environment.get(name)))
    for part in ("hardware", "model"):
        for name, stated in expected.get(part, {}).items():
            yield f"{part}.{name}", (stated, told(getattr(getattr(run, part), name)))


@pytest.mark.parametrize("path", expectations(), ids=lambda path: path.stem)
def test_a_project_ends_with_what_is_stated(path: Path) -> None:
    stated = {run["id"]: run for run in read(path)["run"]}
    runs = {run.id: run for run in find_runs(Project.open(path.with_suffix("")))}
    assert sorted(runs) == sorted(stated)
    wrong = {run_id: differences(runs[run_id], expected) for run_id, expected in stated.items()}
    assert not any(wrong.values()), wrong


@pytest.mark.parametrize("path", expectations(), ids=lambda path: path.stem)
def test_an_expectation_states_something_in_known_words(path: Path) -> None:
    written = read(path)
    assert set(written["mechanisms"]) <= MECHANISMS
    for run in written["run"]:
        assert set(run.get("practices", {})) <= set(PRACTICES)
        assert run.get("practices") or run.get("settings"), "states no setting"


def test_every_project_has_its_expectation() -> None:
    folders = {folder.name for folder in PROJECTS.iterdir() if folder.is_dir()}
    assert folders == {path.stem for path in expectations()}


def test_every_mechanism_has_a_project() -> None:
    shown = {name for path in expectations() for name in read(path)["mechanisms"]}
    assert shown == MECHANISMS
