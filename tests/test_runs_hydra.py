"""Hydra's composition: packages, overrides, deletions and references, as hydra 1.3.8 has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flake8_gpu_training.facts import Unknown
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs

SCRIPT = """import hydra
import torch

@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    model = torch.nn.Linear(4, 4).cuda()
    for batch in range(cfg.steps):
        loss = model(batch).sum()
        loss.backward()

main()
"""
FILES = {
    "config.yaml": "defaults:\n  - db: mysql\n  - db@backup: mysql\n  - optional local: secret\n"
    "  - callbacks:\n      - ema\n      - log\n  - _self_\n  - override hydra/launcher: basic\n"
    "steps: 1\nname: run_${db.host}_${steps}\nnested: {one: 1, two: '${.one}', up: '${..steps}'}\n"
    "port: ${db.port}\n",
    "db/mysql.yaml": "host: local\nport: 3306\nuser: ${oc.env:DB_USER,root}\n",
    "db/postgres.yaml": "defaults:\n  - base\n  - _self_\nhost: remote\n",
    "db/base.yaml": "port: 5432\nrate: 1e-3\nuser: nobody\n",
    "callbacks/ema.yaml": "ema: {decay: 0.9}\n",
    "callbacks/log.yaml": "log: {every: 10}\n",
    "exp/long.yaml": "# @package _global_\ndefaults:\n  - override /db: postgres\nsteps: 100\n",
}


def settings(root: Path, *words: str, environment: str = "") -> dict[str, Any]:
    for name, text in FILES.items():
        path = root / "conf" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (root / "train.py").write_text(SCRIPT, encoding="utf-8")
    line = f"{environment} python train.py {' '.join(words)}\n"
    (root / "run.sh").write_text(line, encoding="utf-8")
    (run,) = find_runs(Project.open(root))
    return {name: setting.value for name, setting in run.settings.items()}


def test_packages_lists_and_optional_entries(tmp_path: Path) -> None:
    found = settings(tmp_path)
    assert found["backup.port"] == 3306
    assert found["callbacks.ema.decay"] == 0.9
    assert found["callbacks.log.every"] == 10


def test_references_see_what_was_composed(tmp_path: Path) -> None:
    found = settings(tmp_path, "steps=5", "db=postgres")
    assert found["name"] == "run_remote_5"
    assert found["nested.two"] == 1
    assert found["nested.up"] == 5
    assert found["port"] == 5432
    assert found["db.rate"] == 1e-3


@pytest.mark.parametrize(("environment", "user"), [("", "root"), ("DB_USER=me", "me")])
def test_the_environment_of_the_command_is_read(
    tmp_path: Path, environment: str, user: str
) -> None:
    assert settings(tmp_path, environment=environment)["db.user"] == user


def test_an_appended_file_overrides_another_groups_choice(tmp_path: Path) -> None:
    found = settings(tmp_path, "+exp=long")
    assert (found["db.host"], found["steps"], found["backup.host"]) == ("remote", 100, "local")


def test_the_command_wins_over_a_files_override(tmp_path: Path) -> None:
    assert settings(tmp_path, "+exp=long", "db=mysql", "steps=3")["db.host"] == "local"


def test_a_group_in_a_package_is_chosen_by_both(tmp_path: Path) -> None:
    found = settings(tmp_path, "db@backup=postgres")
    assert (found["db.host"], found["backup.host"]) == ("local", "remote")


def test_deletions_take_away(tmp_path: Path) -> None:
    found = settings(tmp_path, "~db@backup", "~nested.up", "++db.extra=null")
    assert not any(name.startswith("backup") for name in found)
    assert found["db.host"] == "local"
    assert "nested.up" not in found
    assert found["db.extra"] is None


def test_a_sweep_has_its_values_as_candidates(tmp_path: Path) -> None:
    found = settings(tmp_path, "-m", "steps=1,2", "db.port='range(1,9)'", "name=[a,b]")
    assert found["steps"] == Unknown("1,2", (1, 2))
    assert isinstance(found["db.port"], Unknown)
    assert not isinstance(found["name"], Unknown)


def test_without_a_sweep_a_comma_is_no_choice(tmp_path: Path) -> None:
    assert not isinstance(settings(tmp_path, "name='a,b'")["name"], Unknown)


INSTANTIATED = """import hydra
from helpers import Both

@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    trainer = hydra.utils.instantiate(cfg.trainer)
    {call}

main()
"""
HELPERS = """import torch

class Both:
    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()
"""


@pytest.mark.parametrize(
    ("call", "trains"), [("trainer.fit(model)", True), ("trainer.test(model)", False)]
)
def test_a_configured_trainer_trains_when_it_fits(tmp_path: Path, call: str, trains: bool) -> None:
    files = {
        "train.py": INSTANTIATED.format(call=call),
        "helpers.py": HELPERS,
        "conf/config.yaml": "trainer:\n  _target_: lightning.Trainer\n  devices: 2\n"
        "  strategy: ddp\n  precision: bf16-mixed\n",
        "run.sh": "python train.py\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    runs = find_runs(Project.open(tmp_path))
    assert [run.value("precision") for run in runs] == (["bf16"] if trains else [])
