"""No input makes the shell, Dockerfile and Makefile readers raise or run on."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flake8_gpu_training.facts import ScriptFile
from flake8_gpu_training.sources.dockerfile import read_dockerfile
from flake8_gpu_training.sources.makefile import read_makefile
from flake8_gpu_training.sources.shell import read_command_line, read_shell

SECONDS = 20.0
"""Generous, for a machine under load: what it guards against takes minutes."""

SCRIPT = r"""#!/bin/bash
#SBATCH --nodes=2
ARGS=(--model "$MODEL" --lr ${LR:-1e-4})
[ -n "$DEBUG" ] && ARGS+=(--debug)
for i in {0..3}; do export RANK=$i; done
run() { local m=$1; torchrun --nproc_per_node $((N*2)) train.py "${@:2}" --m ${m##*/}; }
case "$1" in a|b) run x --y ;; *) exit 1 ;; esac
cat > ds.json <<EOF
{"stage": ${STAGE}}
EOF
if ! srun -N 2 bash -c "cd /x && python a.py --n $N"; then echo `date` >&2; fi
CUDA_VISIBLE_DEVICES=0,1 swift sft \
    "${ARGS[@]}" \
    --out 'a b' > log 2>&1 &
"""
DOCKERFILE = """ARG T=1
FROM img:${T} AS a
ENV A=b C="d e"
RUN --mount=type=cache pip install x==1 && \\
    # note
    pip install y
RUN <<EOF
z
EOF
CMD ["python", "a.py"]
"""
MAKEFILE = """A ?= 1
B := $(A) $(shell ls)
ifdef C
B += --c
endif
.PHONY: t
t: u ; @echo $@
\t-torchrun t.py $(B) \\
\t  --x $$HOME $(if $(A),b)
"""
PIECES = st.one_of(
    st.sampled_from(["'", '"', "`", "$(", "${", "}", ")", "((", "))", "[[", "]]", "\\", "\n"]),
    st.sampled_from(["\\\n", "<<EOF", "<<<", "EOF\n", ";;", "|", "&&", ">", "{", "=(", "$", "#"]),
    st.sampled_from(["if ", "then ", "fi\n", "for x in ", "do ", "done\n", "case ", "esac\n"]),
    st.sampled_from(["!", "\t", " ", "\0", "é", "${x[@]}", "eval ", "bash -c ", "x=1"]),
)


def mutations(text: str) -> st.SearchStrategy[str]:
    """``text`` with pieces put in, and stretches taken out."""
    edit = st.tuples(st.integers(0, len(text)), st.integers(0, 12), PIECES)

    def apply(edits: list[tuple[int, int, str]]) -> str:
        made = text
        for at, length, piece in edits:
            made = made[:at] + piece + made[at + length :]
        return made

    return st.lists(edit, min_size=1, max_size=8).map(apply)


def check(facts: ScriptFile, path: str) -> None:
    for command in facts.commands:
        assert command.words
        assert all(word.location.line >= 1 and word.location.column >= 1 for word in command.words)
        assert {word.location.path for word in command.words} <= {path}
    assert all(problem.location.path == path for problem in facts.problems)


QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@QUICK
@given(mutations(SCRIPT))
def test_mutated_scripts(text: str) -> None:
    check(read_shell(text, "a.sh"), "a.sh")


@QUICK
@given(st.lists(PIECES, max_size=40).map("".join))
def test_shell_punctuation(text: str) -> None:
    check(read_shell(text, "a.sh"), "a.sh")
    read_command_line(text)
    check(read_makefile(f"t:\n\t{text}", "M"), "M")
    check(read_dockerfile(f"RUN {text}", "D"), "D")


@QUICK
@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    check(read_shell(data, "a"), "a")
    check(read_dockerfile(data, "a"), "a")
    check(read_makefile(data, "a"), "a")


@QUICK
@given(mutations(DOCKERFILE))
def test_mutated_dockerfiles(text: str) -> None:
    check(read_dockerfile(text, "D"), "D")


@QUICK
@given(mutations(MAKEFILE))
def test_mutated_makefiles(text: str) -> None:
    check(read_makefile(text, "M"), "M")


@pytest.mark.parametrize(
    "text",
    [
        "((" * 10_000,
        "$(" * 10_000,
        "${x:-" * 10_000,
        "`" * 10_001,
        '"$(' * 3_000,
        "{" * 50_000,
        "if a; then " * 3_000,
        "x && " * 20_000 + "y",
        "x | " * 5_000 + "y",
        "a" * 10_000_000,
        "x " * 5_000_000,
        "echo {1..9}{1..9}{1..9}{1..9}{1..9}{1..9}",
        "a=x\n" + "a=$a$a\n" * 60 + "cmd $a",
        "f() { g; g; }; g() { f; f; }; f",
        'x=\'eval "$x$x"\'; eval "$x"',
        "bash -c '" * 500,
        "cat <<A\n" * 2_000,
        "x=1 " * 20_000,
        "cmd " + "-" * 100_000 + "\\\n" * 20_000,
        "x=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; cmd ${x%%*a*a*a*a*a*a*a*b}",
        "cmd $((9**9**9**9)) $((1<<99999)) $((1/0))",
        "time " * 3_000,
        "while true; do " * 500,
        "X='a${b' cmd\n",
    ],
    ids=range(24),
)
def test_hostile_text_is_read_in_bounded_time(text: str) -> None:
    started = time.process_time()
    check(read_shell(text, "a.sh"), "a.sh")
    assert time.process_time() - started < SECONDS
