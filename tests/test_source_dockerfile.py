"""Dockerfiles: base images, environment, and what RUN, CMD and ENTRYPOINT start."""

from __future__ import annotations

import pytest

from flake8_gpu_training.facts import ProblemKind, ScriptFile, Unknown
from flake8_gpu_training.sources.dockerfile import read_dockerfile


def read(text: str) -> ScriptFile:
    return read_dockerfile(text, "Dockerfile")


def commands(facts: ScriptFile) -> list[tuple[str, str, bool]]:
    return [(c.text, c.function, c.conditional) for c in facts.commands]


def test_base_images_have_their_argument_defaults() -> None:
    facts = read("ARG TAG=24.05\nFROM --platform=linux/amd64 nvcr.io/nvidia/pytorch:${TAG} AS b\n")
    (image,) = facts.directives
    assert (image.name, image.value) == ("image", "nvcr.io/nvidia/pytorch:24.05")
    assert image.location is not None
    assert (image.location.line, image.location.column) == (2, 29)


def test_an_image_by_an_argument_without_default_is_unknown() -> None:
    (image,) = read("ARG BASE\nFROM $BASE\n").directives
    assert isinstance(image.value, Unknown)


def test_run_keeps_pins_with_their_places() -> None:
    facts = read(
        "FROM x\nRUN --mount=type=cache,target=/c \\\n    pip install vllm==0.6.3 \\\n"
        "    # a comment\n    torch==2.4.0 && \\\n    python setup.py install\n"
    )
    assert commands(facts) == [
        ("pip install vllm==0.6.3 torch==2.4.0", "RUN", False),
        ("python setup.py install", "RUN", False),
    ]
    places = [(w.location.line, w.location.column) for w in facts.commands[0].words]
    assert places == [(3, 5), (3, 9), (3, 17), (5, 5)]


def test_env_and_arg_are_seen_by_later_instructions() -> None:
    facts = read(
        'FROM x\nARG V=0.6.3\nENV NCCL_DEBUG=INFO ARCH="8.0;9.0" S=a\\ b\nENV OLD some value\n'
        "RUN pip install vllm==$V\n"
    )
    assert {name: s.value for name, s in facts.assignments.items()} == {
        "V": "0.6.3",
        "NCCL_DEBUG": "INFO",
        "ARCH": "8.0;9.0",
        "S": "a b",
        "OLD": "some value",
    }
    (command,) = facts.commands
    assert command.text == "pip install vllm==0.6.3"
    assert command.environment["NCCL_DEBUG"].value == "INFO"


def test_an_argument_before_from_needs_a_declaration_in_the_stage() -> None:
    facts = read("ARG V=1\nFROM x\nRUN pip install a==$V\nARG V\nRUN pip install a==$V\n")
    assert [isinstance(c.words[2].value, Unknown) for c in facts.commands] == [True, False]


def test_workdir_is_the_directory() -> None:
    facts = read("FROM x\nWORKDIR /ws\nWORKDIR src\nRUN a\nRUN cd sub && b\nRUN c\n")
    assert [c.directory for c in facts.commands] == ["/ws/src", "/ws/src/sub", "/ws/src"]


def test_entrypoint_and_cmd_are_joined() -> None:
    facts = read('FROM x\nENTRYPOINT ["tini", "--", "python"]\nCMD ["t.py", "--lr", "1e-4"]\n')
    (command,) = facts.commands
    assert (command.text, command.function) == ("python t.py --lr 1e-4", "CMD")
    assert [word.text for word in command.wrappers[0]] == ["tini", "--"]
    assert (command.words[1].location.line, command.words[1].location.column) == (3, 7)


def test_shell_forms() -> None:
    assert commands(read("FROM x\nCMD cd /a && vllm serve m\n")) == [("vllm serve m", "CMD", False)]
    facts = read('FROM x\nENTRYPOINT exec vllm serve m\nCMD ["ignored"]\n')
    assert commands(facts) == [("vllm serve m", "CMD", False)]


def test_only_the_last_command_of_the_last_stage_surely_starts() -> None:
    facts = read('FROM x AS a\nCMD ["old"]\nCMD ["one"]\nFROM a\nRUN two\n')
    assert commands(facts) == [("one", "CMD", True), ("two", "RUN", False), ("one", "CMD", False)]


def test_a_stage_takes_over_its_base_stage() -> None:
    facts = read("FROM x AS a\nENV A=1\nWORKDIR /w\nFROM a\nRUN y\nFROM z\nRUN y\n")
    assert [(c.directory, list(c.environment)) for c in facts.commands] == [("/w", ["A"]), ("", [])]


def test_heredocs() -> None:
    facts = read(
        "FROM x\nRUN <<EOF\npip install a==1\ncd /x && pip install b==2\nEOF\n"
        "RUN python3 <<'PY'\nimport torch\nPY\n"
        'RUN cat > /ds.json <<EOF\n{"a": 1}\nEOF\nCOPY <<EOF /c.json\n{}\nEOF\nRUN last\n'
    )
    texts = [c.text for c in facts.commands]
    assert texts == ["pip install a==1", "pip install b==2", "python3", "cat", "last"]
    assert facts.commands[1].location.line == 4
    assert [(h.target, h.text) for h in facts.heredocs] == [
        ("-python", "import torch\n"),
        ("/ds.json", '{"a": 1}\n'),
        ("/c.json", "{}\n"),
    ]


def test_onbuild_may_run() -> None:
    assert commands(read("FROM x\nONBUILD RUN pip install d\n")) == [("pip install d", "RUN", True)]


def test_a_comment_is_no_instruction() -> None:
    facts = read("FROM x\n# RUN pip install old\n")
    assert not facts.commands
    assert [c.value for c in facts.comments] == ["RUN pip install old"]


def test_crlf_is_fine_and_other_escapes_work() -> None:
    assert commands(read("FROM x\r\nRUN a \\\r\n  b\r\n")) == [("a b", "RUN", False)]
    assert commands(read("# escape=`\nFROM x\nRUN a `\n  b\n")) == [("a b", "RUN", False)]


@pytest.mark.parametrize(
    "text",
    ["", "FROM", "RUN", "CMD [", "ENV", "ENV =", "RUN <<EOF", "ONBUILD", "COPY <<A <<B", "\\\n"],
)
def test_fragments_are_read(text: str) -> None:
    assert read(text).path == "Dockerfile"
    assert read(f"FROM x\n{text}\nRUN a\n").directives[0].value == "x"


def test_binary_is_a_problem() -> None:
    assert [p.kind for p in read_dockerfile(b"\0", "D").problems] == [ProblemKind.ENCODING]
