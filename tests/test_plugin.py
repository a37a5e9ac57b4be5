"""The flake8 plugin behaves as flake8 users expect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LOADER = """\
import torch
from torch.utils.data import DataLoader

model = torch.nn.Linear(8, 8).cuda()
loader = DataLoader(data, batch_size=32, shuffle=True)
for batch in loader:
    loss = model(batch.cuda(non_blocking=True)).mean()
    loss.backward()
"""


def flake8(*arguments, cwd, stdin=None):
    return subprocess.run(
        [sys.executable, "-m", "flake8", *arguments],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def project(tmp_path) -> Path:
    (tmp_path / "train.py").write_text(LOADER)
    return tmp_path


def codes(text: str) -> list[str]:
    return [line.split()[1] for line in text.splitlines()]


def test_a_file_gets_its_diagnostics(project):
    done = flake8("--isolated", "--select=GPU", "train.py", cwd=project)
    assert "train.py:5:10: GPU501" in done.stdout
    assert done.returncode == 1


def test_stdin_is_reported_under_its_display_name(project):
    done = flake8(
        "--isolated", "--select=GPU", "--stdin-display-name", "src/x.py", "-",
        cwd=project, stdin=LOADER,
    )  # fmt: skip
    assert "src/x.py:5:10: GPU501" in done.stdout


def test_several_processes_give_the_same(project):
    for number in range(4):
        (project / f"train{number}.py").write_text(LOADER)
    one = flake8("--isolated", "--select=GPU", "-j1", ".", cwd=project)
    two = flake8("--isolated", "--select=GPU", "-j2", ".", cwd=project)
    assert one.stdout == two.stdout
    assert one.stdout.count("GPU501") == 5


def test_noqa_silences_a_code(project):
    silenced = LOADER.replace("shuffle=True)", "shuffle=True)  # noqa: GPU501")
    (project / "train.py").write_text(silenced)
    done = flake8("--isolated", "--select=GPU", "train.py", cwd=project)
    assert "GPU501" not in done.stdout


def test_options_are_read_from_setup_cfg(project):
    (project / "setup.cfg").write_text("[flake8]\nselect = GPU\ngpu-min-priority = high\n")
    assert "GPU501" not in flake8("train.py", cwd=project).stdout
    (project / "setup.cfg").write_text("[flake8]\nselect = GPU\ngpu_min_priority = low\n")
    assert "GPU501" in flake8("train.py", cwd=project).stdout


def test_versions_and_target_come_from_the_configuration(project):
    (project / ".flake8").write_text(
        "[flake8]\nselect = GPU\ngpu-target-gpu = A100-80G\ngpu-num-gpus = 8\n"
        "gpu-framework-versions = transformers=4.46,trl=0.12\n"
    )
    done = flake8("train.py", cwd=project)
    assert done.stderr == ""
    assert "GPU501" in done.stdout


@pytest.mark.parametrize(
    "option", ["--gpu-min-priority=urgent", "--gpu-target-gpu=abacus", "--gpu-frameworks=keras"]
)
def test_a_senseless_option_is_refused_in_one_line(project, option):
    done = flake8("--isolated", option, "train.py", cwd=project)
    assert done.returncode == 1
    assert "flake8-gpu-training:" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_other_plugins_say_the_same_with_us(project):
    (project / "train.py").write_text(LOADER + "import os\nx = 1 ;y=2\n")
    ours = flake8("--isolated", "train.py", cwd=project).stdout.splitlines()
    without = flake8("--isolated", "--extend-ignore=GPU", "train.py", cwd=project)
    assert [line for line in ours if " GPU" not in line] == without.stdout.splitlines()


def test_a_broken_file_is_left_to_flake8(project):
    (project / "train.py").write_text("import torch\nprint 'x'\n")
    done = flake8("--isolated", "--select=E9,GPU", "train.py", cwd=project)
    assert codes(done.stdout) == ["E999"]


def test_a_file_without_gpu_work_is_clean(project):
    (project / "train.py").write_text("import os\n\nprint(os.name)\n")
    done = flake8("--isolated", "--select=GPU", "train.py", cwd=project)
    assert (done.stdout, done.returncode) == ("", 0)
