"""The walk over a project: what is read as what, what is left out, and what stays inside."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flake8_gpu_training.facts import (
    ConfigFile,
    GitConfig,
    ProblemKind,
    PythonFile,
    RequirementsFile,
    ScriptFile,
)
from flake8_gpu_training.project import FileKind, Project, is_auxiliary, kind_of


def make(root, files):
    for path, content in files.items():
        full = root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


PROJECT = {
    "train.py": "import torch\nfrom torch.utils.data import DataLoader\nDataLoader(x)\n",
    "helpers.py": "import os\n",
    "scripts/run.sh": "torchrun train.py --bf16\n",
    "configs/ds.json": '{"train_batch_size": 8}',
    "configs/sft.yaml": "bf16: true\n",
    "configs/video.toml": "fps = 8\n",
    "requirements/train.txt": "torch==2.4.0\n",
    "README.md": "bf16\n",
    ".git/config": '[remote "origin"]\n\turl = https://x/y.git\n',
    ".git/HEAD": "ref: refs/heads/main\n",
}


def test_files_are_listed_in_order_and_the_same_every_time(tmp_path):
    make(tmp_path, PROJECT)
    expected = tuple(sorted(path for path in PROJECT if not path.startswith(".git/")))
    assert Project.open(tmp_path).files == expected
    assert Project.open(str(tmp_path)).files == expected


def test_every_file_is_read_as_what_it_is(tmp_path):
    project = Project.open(make(tmp_path, PROJECT))
    assert [facts.path for facts in project.python_files()] == ["train.py"]
    assert [facts.path for facts in project.scripts()] == ["scripts/run.sh"]
    assert [facts.path for facts in project.configs()] == [
        "configs/ds.json", "configs/sft.yaml", "configs/video.toml"
    ]  # fmt: skip
    (requirements,) = project.requirements()
    assert requirements.requirements[0].version == "2.4.0"
    assert project.git_config().remotes[0].value == "https://x/y.git"
    assert project.problems() == ()


def test_facts_are_read_once(tmp_path):
    project = Project.open(make(tmp_path, PROJECT))
    assert project.read("train.py") is project.read("train.py")
    assert next(project.python_files()) is project.read("train.py")


def test_python_without_a_trace_of_gpu_work_is_read_only_when_asked(tmp_path):
    project = Project.open(make(tmp_path, PROJECT))
    assert "helpers.py" not in [facts.path for facts in project.python_files()]
    assert isinstance(project.read("helpers.py"), PythonFile)


def test_python_sources_are_given_before_they_are_read(tmp_path):
    project = Project.open(make(tmp_path, {**PROJECT, "broken.py": "import torch\ndef (:\n"}))
    sources = dict(project.python_sources(lambda path: path == "train.py"))
    assert sources == {"broken.py": b"import torch\ndef (:\n"}
    assert project.problems() == ()
    project.read("broken.py")
    assert [problem.location.path for problem in project.problems()] == ["broken.py"]


@pytest.mark.parametrize(
    ("path", "head", "kind"),
    [
        ("train.py", b"", FileKind.PYTHON),
        ("a/n.ipynb", b"", FileKind.NOTEBOOK),
        ("run.SH", b"", FileKind.SHELL),
        ("job.slurm", b"", FileKind.SHELL),
        ("launch", b"#!/usr/bin/env bash\n", FileKind.SHELL),
        ("launch", b"#!/usr/bin/env python3.11\n", FileKind.PYTHON),
        ("launch", b"#!/usr/bin/perl\n", FileKind.OTHER),
        ("LICENSE", b"MIT", FileKind.OTHER),
        ("Makefile", b"", FileKind.MAKEFILE),
        ("rules.mk", b"", FileKind.MAKEFILE),
        ("docker/Dockerfile.cuda", b"", FileKind.DOCKERFILE),
        ("train.Dockerfile", b"", FileKind.DOCKERFILE),
        ("dockerfile_utils.py", b"", FileKind.PYTHON),
        ("sft.yml", b"", FileKind.YAML),
        ("ds.json", b"", FileKind.JSON),
        ("train.jsonl", b"", FileKind.OTHER),
        ("package-lock.json", b"", FileKind.OTHER),
        ("model.safetensors.index.json", b"", FileKind.OTHER),
        ("mkdocs.yml", b"", FileKind.OTHER),
        ("video.toml", b"", FileKind.TOML),
        ("pyproject.toml", b"", FileKind.REQUIREMENTS),
        ("requirements-dev.txt", b"", FileKind.REQUIREMENTS),
        ("requirements/framework.txt", b"", FileKind.REQUIREMENTS),
        ("constraints.txt", b"", FileKind.REQUIREMENTS),
        ("prompts.txt", b"", FileKind.OTHER),
        ("uv.lock", b"", FileKind.REQUIREMENTS),
        ("setup.py", b"", FileKind.REQUIREMENTS),
        ("environment.yml", b"name: x\ndependencies:\n", FileKind.REQUIREMENTS),
        ("configs/environment.yaml", b"gamma: 0.9\n", FileKind.YAML),
        (".git/config", b"", FileKind.GIT_CONFIG),
        ("configs/config", b"", FileKind.OTHER),
    ],
)
def test_kinds(path, head, kind):
    assert kind_of(path, head) is kind


def test_scripts_without_extension_are_known_by_their_first_line(tmp_path):
    project = Project.open(make(tmp_path, {"bin/launch": "#!/bin/bash\npython train.py\n"}))
    assert [facts.path for facts in project.scripts()] == ["bin/launch"]


@pytest.mark.parametrize(
    "path",
    [
        "node_modules/x.py", "pkg/__pycache__/x.py", "x.egg-info/requires.txt", ".tox/x.py",
        "lib/site-packages/torch.py", ".ipynb_checkpoints/n.ipynb", "outputs/.hydra/config.yaml",
    ],
)  # fmt: skip
def test_folders_that_are_not_the_projects_are_left_out(tmp_path, path):
    assert Project.open(make(tmp_path, {path: "", "a.py": ""})).files == ("a.py",)


@pytest.mark.parametrize(
    ("generated", "own"),
    [
        ({"env/pyvenv.cfg": "", "env/x.py": ""}, {"env/x.py": ""}),
        ({"build/lib/x.py": ""}, {"build/images.py": ""}),
        ({"dist/x-1.0.tar.gz": "", "dist/x.py": ""}, {"dist/groups.py": ""}),
        ({"wandb/run-1/x.yaml": ""}, {"wandb/callback.py": ""}),
        ({"out/trainer_state.json": "{}", "out/config.json": "{}"}, {"out/config.json": "{}"}),
    ],
)
def test_generated_folders_are_told_by_what_they_hold(tmp_path, generated, own):
    assert Project.open(make(tmp_path / "a", generated)).files == ()
    assert Project.open(make(tmp_path / "b", own)).files == tuple(own)


def test_ignored_files_are_walked_and_excluded_ones_are_not(tmp_path):
    files = {".gitignore": "run.sh\n", "run.sh": "", "old/run.sh": "", "old/a/b.py": "", "c.py": ""}
    project = Project.open(make(tmp_path, files), exclude=["old/", "*.py"])
    assert project.files == (".gitignore", "run.sh")


@pytest.mark.parametrize(
    "path",
    [
        "tests/x.sh", "docs/a/conf.py", "third_party/x/y.py", "src/vendor/z.py", "test_train.py",
        ".github/workflows/ci.yml", "pkg/train_test.py", "conftest.py",
    ],
)  # fmt: skip
def test_auxiliary_paths(path):
    assert is_auxiliary(path)


@pytest.mark.parametrize("path", ["train.py", "examples/run.sh", "src/docsearch.py", "latest/x.py"])
def test_other_paths_are_not_auxiliary(path):
    assert not is_auxiliary(path)


@pytest.mark.parametrize(
    ("files", "others"),
    [
        ({"examples/grpo/external/a.sh": ""}, False),
        ({"examples/grpo/external/a.sh": "", "examples/grpo/external/plugin.py": ""}, False),
        ({"scripts/extern/a.sh": "", "scripts/extern/README.md": ""}, False),
        ({"third_party/a.sh": "", "third_party/b.yaml": ""}, True),
        ({"external/x/a.sh": "", "external/x/train.py": ""}, True),
        ({"examples/external/x/a.sh": "", "examples/external/x/setup.py": ""}, True),
        ({"examples/external/x/a.sh": "", "examples/external/x/LICENSE": ""}, True),
        ({"external/x/a.sh": "", ".gitmodules": "[submodule]\n  path = external/x\n"}, True),
        ({"tests/external/a.sh": ""}, True),
        ({"examples/external/test_a.py": ""}, True),
        ({"examples/docs/external/a.sh": ""}, True),
    ],
)
def test_a_folder_by_the_name_of_others_code_may_hold_the_projects_own(tmp_path, files, others):
    project = Project.open(make(tmp_path, files))
    assert project.is_auxiliary(next(iter(files))) is others


def test_one_file_is_a_project_whose_folder_can_be_looked_into(tmp_path):
    make(tmp_path, PROJECT)
    project = Project.open(tmp_path / "train.py")
    assert project.files == ("train.py",)
    assert project.find("configs/ds.json", "train.py") == "configs/ds.json"
    assert isinstance(project.read("configs/ds.json"), ConfigFile)


def test_no_such_project(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such"):
        Project.open(tmp_path / "nowhere")


# --- finding ---


@pytest.mark.parametrize(
    ("name", "relative_to", "directory", "expected"),
    [
        ("train.py", "scripts/run.sh", "", "train.py"),
        ("./train.py", "scripts/run.sh", "", "train.py"),
        ("../train.py", "scripts/run.sh", "", "train.py"),
        ("ds.json", "scripts/run.sh", "../configs", "configs/ds.json"),
        ("ds.json", "scripts/run.sh", "configs", "configs/ds.json"),
        ("run.sh", "scripts/other.sh", "", "scripts/run.sh"),
        ("ds.json", "scripts/run.sh", "", None),
        ("../../etc/passwd", "scripts/run.sh", "", None),
        ("../outside.py", "", "", None),
        ("/etc/passwd", "", "", None),
        ("~/train.py", "", "", None),
        ("configs", "", "", None),
        ("", "", "", None),
        ("a\0b", "", "", None),
        ("x" * 5000, "", "", None),
    ],
)
def test_finding_files(tmp_path, name, relative_to, directory, expected):
    make(tmp_path, {"outside.py": ""})
    project = Project.open(make(tmp_path / "p", PROJECT))
    assert project.find(name, relative_to, directory) == expected


def test_an_absolute_path_inside_the_project_is_found(tmp_path):
    project = Project.open(make(tmp_path, PROJECT))
    assert project.find(str(tmp_path / "train.py")) == "train.py"
    assert project.find("run.sh", "x.sh", str(tmp_path / "scripts")) == "scripts/run.sh"


def test_a_named_file_of_a_skipped_folder_is_found_and_read(tmp_path):
    project = Project.open(make(tmp_path, {"a.py": "", "old/ds.json": "{}"}), exclude=["old"])
    assert project.find("old/ds.json") == "old/ds.json"
    assert isinstance(project.read("old/ds.json"), ConfigFile)


# --- links, broken and unreadable files ---

links = pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")


@links
def test_links_in_a_circle_are_not_followed(tmp_path):
    make(tmp_path, {"a/b.py": ""})
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to(tmp_path / "self")
    assert Project.open(tmp_path).files == ("a/b.py",)


@links
def test_links_out_of_the_project_are_a_problem_and_never_opened(tmp_path):
    make(tmp_path, {"secret.yaml": "token: x\n", "p/a.py": ""})
    (tmp_path / "p" / "s.yaml").symlink_to(tmp_path / "secret.yaml")
    (tmp_path / "p" / "all").symlink_to(tmp_path)
    project = Project.open(tmp_path / "p")
    assert project.files == ("a.py",)
    assert {problem.location.path for problem in project.problems()} == {"s.yaml", "all"}
    assert project.find("s.yaml") is None
    assert project.find("all/secret.yaml") is None
    facts = project.read("s.yaml")
    assert facts.documents == ()
    assert facts.problems[0].kind is ProblemKind.UNREADABLE
    assert project.read("../secret.yaml").documents == ()


@links
def test_a_link_inside_the_project_can_be_named(tmp_path):
    make(tmp_path, {"configs/ds.json": "{}"})
    (tmp_path / "ds.json").symlink_to("configs/ds.json")
    project = Project.open(tmp_path)
    assert project.files == ("configs/ds.json",)
    assert project.find("ds.json") == "ds.json"


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX rights")
def test_unreadable_files_and_folders_are_problems(tmp_path, monkeypatch):
    make(tmp_path, {"a/b.py": "", "c.yaml": "a: 1\n", "d.yaml": "a: 1\n"})
    if os.geteuid() == 0:  # to root nothing is unreadable
        real = os.scandir

        def scandir(path):
            if str(path).endswith(os.sep + "a"):
                raise PermissionError(13, "Permission denied")
            return real(path)

        monkeypatch.setattr(os, "scandir", scandir)
    else:
        (tmp_path / "a").chmod(0)
    project = Project.open(tmp_path)
    (tmp_path / "a").chmod(0o755)
    assert project.files == ("c.yaml", "d.yaml")
    (tmp_path / "c.yaml").unlink()
    assert [len(facts.documents) for facts in project.configs()] == [0, 1]
    assert [(p.kind, p.location.path) for p in project.problems()] == [
        (ProblemKind.UNREADABLE, "a"),
        (ProblemKind.UNREADABLE, "c.yaml"),
    ]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs POSIX")
def test_pipes_are_not_opened(tmp_path):
    os.mkfifo(tmp_path / "x.yaml")
    project = Project.open(tmp_path)
    assert project.files == ()
    assert project.find("x.yaml") is None


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system of bytes")
def test_a_name_that_is_not_utf_8_is_a_problem(tmp_path):
    (tmp_path / os.fsdecode(b"\xff.py")).touch()
    project = Project.open(tmp_path)
    assert project.files == ()
    assert [problem.kind for problem in project.problems()] == [ProblemKind.ENCODING]


@pytest.mark.parametrize(
    ("name", "container"),
    [
        ("x.py", PythonFile), ("x.ipynb", PythonFile), ("x.sh", ScriptFile),
        ("Makefile", ScriptFile), ("Dockerfile", ScriptFile), ("x.yaml", ConfigFile),
        ("x.json", ConfigFile), ("x.toml", ConfigFile), ("requirements.txt", RequirementsFile),
        (".git/config", GitConfig),
    ],
)  # fmt: skip
@pytest.mark.parametrize("data", [b"", b"\0\xff\xfe", b"\xff\xfe", b"((((", b"x: [\n", b"\r\n\t'"])
def test_odd_content_gives_facts_of_the_kind(tmp_path, name, container, data):
    project = Project.open(make(tmp_path, {name: data}))
    assert isinstance(project.read(name), container)


def test_a_large_file_is_a_problem_and_not_read(tmp_path):
    project = Project.open(make(tmp_path, {"train.py": b"#" * 2_000_001}))
    assert project.read("train.py").problems[0].kind is ProblemKind.TOO_LARGE


def test_what_git_keeps_elsewhere_is_no_broken_file(tmp_path):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    project = Project.open(make(tmp_path, {"big.json": pointer, "ds.json": "version https"}))
    (kept,), (broken,) = (project.read(name).problems for name in ("big.json", "ds.json"))
    assert (kept.kind, broken.kind) == (ProblemKind.UNSUPPORTED, ProblemKind.SYNTAX)
    assert "git lfs pull" in kept.message


def test_files_of_no_interest_have_no_facts(tmp_path):
    project = Project.open(make(tmp_path, {"README.md": "x"}))
    assert project.read("README.md") is None


# --- git ---


def test_a_submodules_configuration_inside_the_project_is_read(tmp_path):
    files = {".git": "gitdir: .gitdata\n", ".gitdata/config": '[remote "o"]\nurl = u\n'}
    project = Project.open(make(tmp_path, files))
    assert project.git_config().remotes[0].value == "u"


def test_a_worktree_whose_repository_is_elsewhere_has_none(tmp_path):
    make(tmp_path, {"repo/config": "[core]\n", "p/.git": "gitdir: ../repo\n"})
    assert Project.open(tmp_path / "p").git_config() is None


def test_no_repository_no_configuration(tmp_path):
    assert Project.open(tmp_path).git_config() is None


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30), st.binary(max_size=30))
def test_any_name_has_a_kind(path, head):
    assert isinstance(kind_of(path, head), FileKind)
    is_auxiliary(path)
