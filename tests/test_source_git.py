"""Git configuration: the remotes, and no secrets."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from flake8_gpu_training.facts import Location, ProblemKind
from flake8_gpu_training.sources.git import read_git_config

CONFIG = """\
[core]
\turl = not-a-remote
[remote "origin"]
\turl = https://bot:secret@github.com/modelscope/ms-swift.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[remote "fork"] url = "git@github.com:me/ms-swift.git" ; mine
[branch "main"]
\tremote = origin
"""


def test_remotes_are_read_with_their_places():
    config = read_git_config(CONFIG, ".git/config")
    assert [(r.name, r.value) for r in config.remotes] == [
        ("origin", "https://github.com/modelscope/ms-swift.git"),
        ("fork", "git@github.com:me/ms-swift.git"),
    ]
    assert config.remotes[0].location == Location(".git/config", 4, 8)
    assert config.problems == ()


def test_credentials_are_left_out():
    assert "secret" not in repr(read_git_config(CONFIG, ".git/config"))


def test_a_broken_section_is_a_problem_and_the_rest_is_read():
    config = read_git_config('[remote "x\nurl = a\n[remote "y"]\nurl = b\n', ".git/config")
    assert [problem.kind for problem in config.problems] == [ProblemKind.SYNTAX]
    assert [remote.value for remote in config.remotes] == ["b"]


@settings(max_examples=100, deadline=None)
@given(st.text('[]"\\ \nremoteurl=#;', max_size=60) | st.binary(max_size=60))
def test_no_input_raises(data):
    read_git_config(data, ".git/config")
