"""Shell scripts: every command with its words, places and surroundings."""

from __future__ import annotations

from typing import Optional

import pytest

from flake8_gpu_training.facts import (
    Command,
    Location,
    Origin,
    ProblemKind,
    ScriptFile,
    Unknown,
    Word,
)
from flake8_gpu_training.sources import _shell_bashlex
from flake8_gpu_training.sources.shell import (
    command_from_argv,
    commands_from_argv,
    read_command_line,
    read_shell,
)


@pytest.fixture(params=["bashlex", "tree-sitter"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every behaviour holds whichever parser reads the script."""
    if request.param == "tree-sitter":

        def refuse(text: str) -> None:
            raise NotImplementedError

        monkeypatch.setattr(_shell_bashlex, "parse", refuse)
    return str(request.param)


def read(text: str, **options: object) -> ScriptFile:
    return read_shell(text, "train.sh", **options)  # type: ignore[arg-type]


def texts(command: Command) -> list[str]:
    return [word.text for word in command.words]


def lines(facts: ScriptFile) -> list[str]:
    return [command.text for command in facts.commands]


def place(location: Location | None) -> tuple[int, int]:
    assert location is not None
    return location.line, location.column


# --- places -------------------------------------------------------------------------


def test_words_keep_line_and_column_across_continuations() -> None:
    (command,) = read(
        "swift sft \\\n    --model Qwen/Qwen3-8B \\\n  --lr '1e-4'  # note\n"
    ).commands
    assert [(w.text, *place(w.location)) for w in command.words] == [
        ("swift", 1, 1),
        ("sft", 1, 7),
        ("--model", 2, 5),
        ("Qwen/Qwen3-8B", 2, 13),
        ("--lr", 3, 3),
        ("1e-4", 3, 8),
    ]
    assert place(command.end) == (3, 14)


def test_end_is_before_redirections_and_ampersand() -> None:
    (command,) = read("nohup python train.py --bf16 > log 2>&1 &\n").commands
    assert texts(command) == ["python", "train.py", "--bf16"]
    assert place(command.end) == (1, 29)


def test_places_count_characters_not_bytes() -> None:
    (command,) = read("NOTE='训练' python 训练.py --x\n").commands
    assert [place(w.location) for w in command.words] == [(1, 11), (1, 18), (1, 24)]


def test_first_line_shifts_all_places() -> None:
    (command,) = read("python a.py\n", first_line=41).commands
    assert place(command.location) == (41, 1)


def test_crlf_script_gives_the_same_words_and_a_problem() -> None:
    facts = read("python a.py \\\r\n  --x 1\r\npython b.py\r\n")
    assert lines(facts) == ["python a.py --x 1", "python b.py"]
    assert [p.kind for p in facts.problems] == [ProblemKind.ENCODING]


def test_spaces_after_a_backslash_end_the_command() -> None:
    facts = read("swift sft \\\n  --a 1 \\  \n  --b 2\n")
    assert lines(facts) == ["swift sft --a 1", "--b 2"]
    (problem,) = facts.problems
    assert place(problem.location) == (2, 9)


def test_a_comment_among_flags_ends_the_command() -> None:
    facts = read("swift sft \\\n  --a 1 \\\n  # --b 2 \\\n  --c 3\n")
    assert lines(facts) == ["swift sft --a 1", "--c 3"]
    (problem,) = facts.problems
    assert place(problem.location) == (4, 3)


# --- variables ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('X=a; cmd $X ${X}b "$X c"', ["a", "ab", "a c"]),
        ("cmd ${X:-8} ${X-9} ${X:=7} $X", ["8", "9", "7", "7"]),
        ("X=; cmd a${X:-d} b${X-d} c${X:+d}", ["ad", "b", "c"]),
        ("X=1; cmd ${X:+--flag}", ["--flag"]),
        (
            "F=/a/b.tar.gz; cmd ${F##*/} ${F%.gz} ${F%%.*} ${F#/a/}",
            [
                "b.tar.gz",
                "/a/b.tar",
                "/a/b",
                "b.tar.gz",
            ],
        ),
        ("M=Qwen/Qwen3; cmd ${M/\\//_} ${M//e/E}", ["Qwen_Qwen3", "QwEn/QwEn3"]),
        ("M=Qwen; cmd ${M:0:2} ${M: -2} ${M,,} ${M^^}", ["Qw", "en", "qwen", "QWEN"]),
        ("N=2; G=4; cmd $((N*G)) $(( (N + 1) / 2 )) $((2**3 % 5))", ["8", "1", "3"]),
        (
            "cmd {0..3} x{a,b}y gpu{08..10}",
            ["0", "1", "2", "3", "xay", "xby", "gpu08", "gpu09", "gpu10"],
        ),
        ("A=1; A+=2; cmd $A", ["12"]),
        ('export A=1 B="x y"; cmd "$B" $B', ["x y", "x", "y"]),
        ("X=a; unset X; cmd ${X:-gone}", ["gone"]),
        ("X=a; cmd '$X' \\$X \"\\$X\"", ["$X", "$X", "$X"]),
        (': "${X:=8}"; cmd $X', ["8"]),
        ("P=X; X=5; cmd ${!P}", ["5"]),
        ("X=abc; cmd ${#X}", ["3"]),
        ('A=(); cmd "${A[@]}" end', ["end"]),
        ('A=(1 "2 3"); cmd "p${A[@]}s" "${A[*]}" ${#A[@]}', ["p1", "2 3s", "1 2 3", "2"]),
        ("cmd $(echo a) $(seq -s, 0 3) $(basename /x/y.sh .sh)", ["a", "0,1,2,3", "y"]),
        ("torchrun $(which swift) sft", ["swift", "sft"]),
        ("n=4\ncmd $(expr 16 / $n) $(expr 7 / 2 \\* 3)", ["4", "9"]),
        ("cmd $'a\\tb'", ["a\tb"]),
    ],
)
def test_known_expansions(script: str, expected: list[str]) -> None:
    assert texts(read(script).commands[-1])[1:] == expected


@pytest.mark.parametrize(
    "script",
    [
        "cmd $X",
        "cmd $1",
        "cmd $(nvidia-smi -L | wc -l)",
        "cmd $((N*2))",
        "read X; cmd $X",
        "cmd ${A[1]}",
    ],
)
def test_what_only_a_run_could_tell_is_unknown(script: str) -> None:
    word = read(script).commands[-1].words[1]
    assert isinstance(word.value, Unknown)
    assert word.raw == script.rpartition("cmd ")[2]


def test_an_unknown_part_keeps_the_known_part_as_raw_text() -> None:
    (command,) = read("cmd --lr=$LR").commands
    assert isinstance(command.words[1].value, Unknown)
    assert command.words[1].text == "--lr=$LR"


def test_array_elements_are_placed_where_they_are_written() -> None:
    facts = read('ARGS=(\n  --a 1\n  # --no 1\n  "--b c"\n)\nARGS+=(--d)\ncmd "${ARGS[@]}" --e\n')
    (command,) = facts.commands
    assert [(w.text, *place(w.location)) for w in command.words] == [
        ("cmd", 7, 1),
        ("--a", 2, 3),
        ("1", 2, 7),
        ("--b c", 4, 3 + 1),
        ("--d", 6, 8),
        ("--e", 7, 18),
    ]
    assert place(command.end) == (7, 21)
    assert facts.assignments["ARGS"].value == ("--a", "1", "--b c", "--d")


def test_words_of_an_unquoted_variable_are_placed_in_its_text() -> None:
    (command,) = read('OPTS="--a 1 \\\n  --b"\ncmd $OPTS\n').commands
    assert [(w.text, *place(w.location)) for w in command.words[1:]] == [
        ("--a", 1, 7),
        ("1", 1, 11),
        ("--b", 2, 3),
    ]


def test_a_command_by_variable_stands_where_it_is_used() -> None:
    facts = read('RUN="accelerate launch"\nA=(torchrun t.py)\n$RUN t.py\n"${A[@]}" --x\n')
    assert lines(facts) == ["accelerate launch t.py", "torchrun t.py --x"]
    assert [place(c.location) for c in facts.commands] == [(3, 1), (4, 1)]
    assert [place(c.words[0].location) for c in facts.commands] == [(1, 6), (2, 4)]


def test_a_value_by_variable_is_placed_in_the_command() -> None:
    (command,) = read("LR=1e-4\ncmd --lr $LR\n").commands
    assert place(command.words[2].location) == (2, 10)
    assert command.words[2].raw == "$LR"


def test_an_assignment_tells_where_its_text_can_be_replaced() -> None:
    setting = read('LR="1e-4"\n').assignments["LR"]
    assert (setting.value, setting.text) == ("1e-4", "1e-4")
    assert place(setting.value_location) == (1, 5)


def test_a_default_counts_as_the_value_of_a_plain_call() -> None:
    (command,) = read("cmd --nnodes ${NNODES:-1} ${1:-out}\n").commands
    assert texts(command) == ["cmd", "--nnodes", "1", "out"]


def test_variables_of_the_caller_are_used() -> None:
    (command,) = read("cmd $MODEL\n", variables={"MODEL": "Qwen/Qwen3-8B"}).commands
    assert texts(command) == ["cmd", "Qwen/Qwen3-8B"]


# --- environment --------------------------------------------------------------------


def test_environment_is_what_is_exported_or_prefixed() -> None:
    (command,) = read("LOCAL=1\nexport A=1\nB=2\nexport B\nC=3 D=4 cmd\n").commands
    assert {name: s.value for name, s in command.environment.items()} == {
        "A": "1", "B": "2", "C": "3", "D": "4",
    }  # fmt: skip
    assert all(s.origin is Origin.ENVIRONMENT for s in command.environment.values())


def test_a_prefix_lasts_for_one_command() -> None:
    first, second = read("A=1 x\ny\n").commands
    assert "A" in first.environment
    assert not second.environment


def test_assignments_on_the_line_above_are_not_a_prefix() -> None:
    (command,) = read("A=1 \\\nB=2\ncmd\n").commands
    assert not command.environment


def test_what_a_branch_exports_may_be_in_the_environment() -> None:
    facts = read('if [ "$M" = a ]; then export V=1; fi\ncmd\n')
    assert isinstance(facts.commands[-1].environment["V"].value, Unknown)


def test_set_a_exports_what_follows() -> None:
    (command,) = read("A=1\nset -a\nB=2\nset +a\nC=3\ncmd\n").commands[-1:]
    assert list(command.environment) == ["B"]


# --- control flow -------------------------------------------------------------------


def test_a_branch_is_conditional_and_its_variables_become_unknown() -> None:
    facts = read('X=1\nif [ -n "$D" ]; then X=2; a; else X=3; fi\ncmd $X\n')
    assert [(c.name, c.conditional) for c in facts.commands] == [("a", True), ("cmd", False)]
    value = facts.commands[-1].words[1].value
    assert isinstance(value, Unknown)
    assert set(value.candidates) == {"2", "3"}


def test_a_variable_set_alike_in_all_branches_is_known() -> None:
    facts = read("if a; then X=2; else X=2; fi\ncmd $X\n")
    assert texts(facts.commands[-1]) == ["cmd", "2"]


def test_a_branch_that_exits_does_not_count() -> None:
    facts = read('X=1\nif [ -z "$A" ]; then X=2; echo usage; exit 1; fi\ncmd $X\n')
    assert texts(facts.commands[-1]) == ["cmd", "1"]


def test_every_branch_of_a_long_if_is_read() -> None:
    facts = read("if a; then b; elif c; then d; elif e; then f; elif g; then h; else i; fi\n")
    assert [c.name for c in facts.commands] == list("abcdefghi")


def test_flags_added_in_a_branch_leave_the_common_ones_known() -> None:
    facts = read('A=(--a 1)\nif [ "$D" ]; then A+=(--debug); fi\ncmd "${A[@]}" --z\n')
    words = facts.commands[-1].words
    assert [w.text for w in words] == ["cmd", "--a", "1", "${A[@]}", "--z"]
    assert isinstance(words[3].value, Unknown)
    assert "--debug" in words[3].value.candidates


def test_a_loop_over_literals_lists_them() -> None:
    (command,) = read("for lr in 1e-4 2e-4; do cmd --lr $lr; done\n").commands
    value = command.words[2].value
    assert isinstance(value, Unknown)
    assert value.candidates == ("1e-4", "2e-4")
    assert not command.conditional


def test_a_counter_is_unknown_inside_its_loop() -> None:
    facts = read("i=0\nwhile test $i -lt 3; do cmd $i; i=$((i+1)); done\nend $i\n")
    assert all(isinstance(c.words[1].value, Unknown) for c in facts.commands)


def test_and_then_is_a_step_but_a_test_is_a_question() -> None:
    facts = read("cd x && a\n[ -f y ] && b\nc || d\n")
    assert [(c.name, c.conditional, c.directory) for c in facts.commands] == [
        ("a", False, "x"),
        ("b", True, "x"),
        ("c", False, "x"),
        ("d", True, "x"),
    ]


def test_nothing_runs_after_exit() -> None:
    assert lines(read("a\nexit 0\nb\n")) == ["a"]
    assert lines(read("exec python a.py\nb\n")) == ["python a.py"]


def test_case_bodies_are_conditional() -> None:
    facts = read('case "$1" in\n a) x ;;\n *) y ;;\nesac\nz\n')
    assert [(c.name, c.conditional) for c in facts.commands] == [
        ("x", True),
        ("y", True),
        ("z", False),
    ]


def test_a_subshell_keeps_its_directory_and_variables() -> None:
    facts = read("X=1\n(cd a; X=2; p $X)\nq $X\n")
    assert [(c.text, c.directory) for c in facts.commands] == [("p 2", "a"), ("q 1", "")]


# --- functions ----------------------------------------------------------------------


def test_a_call_binds_arguments() -> None:
    facts = read('run() {\n  local m=$1\n  python t.py --m $m "${@:2}"\n}\nrun llama --q 1\n')
    (command,) = facts.commands
    assert command.text == "python t.py --m llama --q 1"
    assert (command.function, command.conditional) == ("run", False)
    assert place(command.location) == (3, 3)
    assert "m" not in facts.assignments


def test_a_function_nobody_calls_may_run() -> None:
    (command,) = read("f() { python a.py $1; }\n").commands
    assert (command.function, command.conditional) == ("f", True)
    assert isinstance(command.words[2].value, Unknown)


def test_recursion_ends() -> None:
    assert len(read("f() { a; f; }\nf\n").commands) < 20


# --- wrappers -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "command", "wrappers"),
    [
        ("srun --gres=gpu:8 -N 2 python a.py -n 1", "python a.py -n 1", ["srun --gres=gpu:8 -N 2"]),
        ("mpirun -np 8 -mca a b --bind-to none python a.py", "python a.py",
         ["mpirun -np 8 -mca a b --bind-to none"]),
        ("conda run -n x --no-capture-output swift sft", "swift sft",
         ["conda run -n x --no-capture-output"]),
        ("docker run --gpus all -v a:b --rm img:1 vllm serve m", "vllm serve m",
         ["docker run --gpus all -v a:b --rm img:1"]),
        ("docker exec -it box bash -c 'swift sft'", "swift sft",
         ["docker exec -it box", "bash -c"]),
        ("nohup env A=1 B=2 python a.py", "python a.py", ["nohup", "env A=1 B=2"]),
        ("sudo -E -u me timeout -k 5 3600 python a.py", "python a.py",
         ["sudo -E -u me", "timeout -k 5 3600"]),
        ("numactl -N 0 -m 0 taskset -c 0-7 python a.py", "python a.py",
         ["numactl -N 0 -m 0", "taskset -c 0-7"]),
        ("nsys profile -t cuda,nvtx -o out python a.py", "python a.py",
         ["nsys profile -t cuda,nvtx -o out"]),
        ("time uv run --with x torchrun a.py", "torchrun a.py", ["time", "uv run --with x"]),
        ("ssh -p 22 host 'cd /x; torchrun a.py'", "torchrun a.py", ["ssh -p 22 host"]),
        ("pdsh -w h[1-2] torchrun a.py", "torchrun a.py", ["pdsh -w h[1-2]"]),
        ("singularity exec --nv -B /d img.sif python a.py", "python a.py",
         ["singularity exec --nv -B /d img.sif"]),
        ("ray job submit --address=x --working-dir . -- python3 -m a.b", "python3 -m a.b",
         ["ray job submit --address=x --working-dir . --"]),
        ("sbatch -N 1 --wrap 'python a.py'", "python a.py", ["sbatch -N 1 --wrap"]),
        ("xargs -n 1 -P 4 python a.py", "python a.py", ["xargs -n 1 -P 4"]),
    ],
)  # fmt: skip
def test_wrappers_are_unwrapped(script: str, command: str, wrappers: list[str]) -> None:
    (found,) = read(script).commands
    assert found.text == command
    assert [" ".join(word.text for word in words) for words in found.wrappers] == wrappers


@pytest.mark.parametrize(
    "script",
    [
        "torchrun a.py",
        "accelerate launch a.py",
        "bash train.sh 8",
        "docker build .",
        "uv pip install x",
    ],
)
def test_launchers_and_plain_commands_stay(script: str) -> None:
    (command,) = read(script).commands
    assert command.text == script
    assert not command.wrappers


def test_env_sets_the_environment_of_its_command_only() -> None:
    first, second = read("env A=1 x\ny\n").commands
    assert first.environment["A"].value == "1"
    assert not second.environment


def test_an_inner_script_has_places_in_the_outer_one() -> None:
    (command,) = read('LR=1\nbash -c "cd /x && python a.py --lr $LR"\n').commands
    assert [place(w.location) for w in command.words] == [(2, 19), (2, 26), (2, 31), (2, 36)]
    assert place(command.end) == (2, 39)
    assert command.directory == "/x"


def test_eval_runs_known_text() -> None:
    (command,) = read("CMD=\"swift sft --a 'b c'\"\neval $CMD\n").commands
    assert texts(command) == ["swift", "sft", "--a", "b c"]
    assert place(command.location) == (1, 6)


# --- files that scripts write -------------------------------------------------------


def test_heredoc_to_a_file_expands_unless_quoted() -> None:
    facts = read(
        "N=2\ncat > a.json <<EOF\n{\"n\": $N}\nEOF\ncat <<'EOF' > b.yaml\nn: $N\nEOF\ncmd\n"
    )
    assert [(h.target, h.text, place(h.location)) for h in facts.heredocs] == [
        ("a.json", '{"n": 2}\n', (3, 1)),
        ("b.yaml", "n: $N\n", (6, 1)),
    ]
    assert lines(facts)[-1] == "cmd"


def test_heredoc_through_tee_and_echo() -> None:
    facts = read("cat <<EOF | tee a.yaml\nx: 1\nEOF\necho '{}' > b.json\necho more >> b.json\n")
    assert [(h.target, h.text) for h in facts.heredocs] == [
        ("a.yaml", "x: 1\n"),
        ("b.json", "{}\nmore\n"),
    ]


def test_heredoc_fed_to_a_shell_holds_commands() -> None:
    (command,) = read("ssh host <<EOF\n  cd /x\n  torchrun a.py\nEOF\n").commands
    assert (command.text, command.directory, place(command.location)) == (
        "torchrun a.py",
        "/x",
        (3, 3),
    )


def test_heredoc_fed_to_python_is_kept_as_python() -> None:
    facts = read("python - <<EOF\nimport torch\nEOF\n")
    assert [(h.target, h.text) for h in facts.heredocs] == [("-python", "import torch\n")]


# --- directives, comments, sourced files --------------------------------------------


def test_batch_directives_have_long_names() -> None:
    facts = read(
        "#!/bin/bash\n#SBATCH -N 2 --gres=gpu:8  # two\n#SBATCH -p gpu\n"
        "##SBATCH -t 1\nx\n#SBATCH -n 9\n"
    )
    assert [(d.name, d.value, place(d.value_location)) for d in facts.directives] == [
        ("nodes", "2", (2, 12)),
        ("gres", "gpu:8", (2, 21)),
        ("partition", "gpu", (3, 12)),
    ]


def test_other_schedulers_have_directives() -> None:
    facts = read("#PBS -l select=2:ngpus=8\n#BSUB -n 4\n#$ -pe smp 8\nx\n")
    assert [(d.name, d.value) for d in facts.directives] == [
        ("l", "select=2:ngpus=8"),
        ("n", "4"),
        ("pe", "smp"),
    ]


def test_commands_in_comments_are_no_commands() -> None:
    facts = read("# python old.py --lr 1\npython new.py\n")
    assert lines(facts) == ["python new.py"]
    assert [c.value for c in facts.comments] == ["python old.py --lr 1"]


def test_a_hash_line_in_a_heredoc_is_no_comment() -> None:
    assert not read("cat > x <<EOF\n# not a comment\nEOF\n").comments


def test_sourced_files_are_named() -> None:
    facts = read("source env.sh\n. ./paths.sh\n")
    assert [word.text for word in facts.sourced] == ["env.sh", "./paths.sh"]


@pytest.mark.parametrize(
    ("script", "is_told"),
    [
        ("[ -f .env ] && source .env\n", True),
        ('if [[ -f "$D/.env" ]]; then\n  . "$D/.env"\nfi\n', True),
        ("source .env\n", False),
        ("if [ -f settings.sh ]; then\n  source settings.sh\nfi\n", False),
        ("if [ -f other ]; then\n  source .env\nfi\n", False),
    ],
)
def test_a_file_of_ones_own_variables_leaves_defaults_where_it_is_asked_for(
    script: str, is_told: bool
) -> None:
    command = read(f"{script}cmd ${{TP:-8}}\n").commands[-1]
    assert (command.words[1].value == "8") is is_told


def test_directory_of_the_script_is_relative_to_the_project() -> None:
    facts = read_shell(
        'cd "$(dirname "$0")/.."\nD=$(cd "$(dirname "$0")" && pwd)\ncmd\n', "a/b/t.sh"
    )
    assert facts.commands[-1].directory == "a"
    assert facts.assignments["D"].value in ("a/b", "a/a/b")


# --- what is wrong ------------------------------------------------------------------


def test_a_placeholder_is_unknown_and_loses_no_flag() -> None:
    (command,) = read("swift sft --host <your_ip> <other> --lr 1\n").commands
    assert texts(command) == ["swift", "sft", "--host", "<your_ip>", "<other>", "--lr", "1"]
    assert isinstance(command.words[3].value, Unknown)
    (command,) = read("swift sft --host <your first ip> --lr 1\n").commands
    assert texts(command) == ["swift", "sft", "--host", "<your first ip>", "--lr", "1"]


def test_within_quotes_one_word_in_brackets_is_meant_as_it_is() -> None:
    (command,) = read(
        "swift sft --pad_token '<pad>' --host '<your ip>' --path \"<the model>\"\n"
    ).commands
    values = [command.words[i].value for i in (3, 5, 7)]
    assert values[0] == "<pad>"
    assert all(isinstance(value, Unknown) for value in values[1:])


def test_a_redirection_is_no_placeholder() -> None:
    (command,) = read("python a.py --lr 1 <in.txt >out.txt\n").commands
    assert texts(command) == ["python", "a.py", "--lr", "1"]


@pytest.mark.parametrize(
    "script",
    [
        "python a.py\necho 'open\n",
        "python a.py\nif x; then\n",
        "python a.py\ncat <<EOF\nbody\n",
        "python a.py\n)\n",
    ],
)
def test_commands_before_an_error_are_kept(script: str) -> None:
    facts = read("python a.py --bf16\n" + script)
    assert lines(facts)[0] == "python a.py --bf16"


def test_an_error_is_a_problem_with_a_place() -> None:
    facts = read("python a.py\nfor do done (\npython b.py\n")
    assert "python a.py" in lines(facts)
    assert [p.kind for p in facts.problems][:1] == [ProblemKind.SYNTAX]


def test_binary_and_undecodable_bytes_are_problems() -> None:
    assert [p.kind for p in read_shell(b"\x7fELF\0\0", "a").problems] == [ProblemKind.ENCODING]
    facts = read_shell(b"python a.py --n '\xff'\n", "a")
    assert facts.commands[0].name == "python"
    assert [p.kind for p in facts.problems] == [ProblemKind.ENCODING]


def test_a_script_too_long_is_read_in_part() -> None:
    facts = read("python a.py\n" + "#" * 10_000_000)
    assert lines(facts) == ["python a.py"]
    assert [p.kind for p in facts.problems] == [ProblemKind.TOO_LARGE]


# --- other entry points -------------------------------------------------------------


def test_a_command_line_gives_its_commands() -> None:
    (command,) = read_command_line("CUDA_VISIBLE_DEVICES=0 torchrun train.py --bf16")
    assert command.text == "torchrun train.py --bf16"
    assert command.environment["CUDA_VISIBLE_DEVICES"].value == "0"


def argv(*values: str) -> list[Word]:
    return [Word(v, Location("job.yaml", 5 + i, 9), v) for i, v in enumerate(values)]


def test_an_argument_vector_is_not_expanded() -> None:
    command = command_from_argv(argv("torchrun", "train.py", "--name", "$X y"))
    assert texts(command) == ["torchrun", "train.py", "--name", "$X y"]
    assert place(command.words[2].location) == (7, 9)
    assert command.end is None


def test_an_argument_vector_with_a_shell_gives_the_inner_commands() -> None:
    first, second = commands_from_argv(argv("bash", "-c", "pip install x && python a.py"))
    assert (first.text, second.text) == ("pip install x", "python a.py")
    assert place(second.location) == (7, 9 + 17)
    assert command_from_argv(argv("sh", "-c", "cd /x; python a.py")).text == "python a.py"


def test_an_unknown_argument_stays_unknown() -> None:
    word = Word(Unknown("from a template"), Location("job.yaml", 9, 9), "{{ model }}")
    command = command_from_argv([*argv("vllm", "serve"), word])
    assert isinstance(command.words[2].value, Unknown)


def test_a_wrapper_that_ends_in_a_flag_without_its_value_is_read() -> None:
    assert [command.name for command in read("srun -N").commands] == ["srun"]


def test_a_branch_that_is_switched_off_is_not_read() -> None:
    commands = read("if false; then\n  swift pt\nelse\n  swift sft\nfi\n").commands
    assert [command.text for command in commands] == ["swift sft"]


def test_a_branch_that_the_environment_may_switch_on_yields_its_commands():
    script = (
        "CONVERT=${CONVERT:-false}\nMODE=lora\n"
        'if [ "$CONVERT" = true ]; then\n    OUT=x\n    python convert.py --out $OUT\nfi\n'
        'if [ "$MODE" = full ]; then\n    swift sft --tuner_type full\n'
        "else\n    swift sft --tuner_type lora --out $OUT\nfi\n"
    )
    commands = read_shell(script, "train.sh").commands
    assert [command.text for command in commands] == [
        "python convert.py --out x",
        "swift sft --tuner_type lora --out $OUT",
    ]
    assert [command.conditional for command in commands] == [True, False]


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("abc", ["serve", "--port", "--number", "1"]),
        ('"$ELSEWHERE"', ["serve", "--port", "--number", "1"]),
        ("$ELSEWHERE", ["serve", "--port", None, "--number", None]),  # it may be several words
    ],
)
def test_an_unknown_word_may_be_the_arguments_that_seem_missing(
    argument: str, words: list[Optional[str]]
) -> None:
    text = f"run() {{\n  serve --port $2 --number $#\n}}\nrun {argument}\n"
    (command,) = (made for made in read(text).commands if made.name == "serve")
    values = [word.value for word in command.words]
    assert [None if isinstance(value, Unknown) else value for value in values] == words


@pytest.mark.parametrize(("line", "lost"), [("---", 0), ("--", 0), ("--lr 1", 1)])
def test_a_line_of_dashes_is_no_lost_flag(line: str, lost: int) -> None:
    problems = read(f"python train.py\n{line}\n").problems
    assert sum(problem.kind is ProblemKind.CUT_SHORT for problem in problems) == lost


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ("   ${MODEL_ARGS[@]} --lr 1", 1),
        ('   "${EXTRA_FLAGS[@]}"', 1),
        ('   "${CMD[@]}"', 0),
        ('"${MODEL_ARGS[@]}"', 0),
        ("\n   ${MODEL_ARGS[@]}", 0),
    ],
)
def test_an_array_of_arguments_is_lost_where_it_begins_the_next_line(line: str, lost: int) -> None:
    arrays = "MODEL_ARGS=(--layers 2)\nEXTRA_FLAGS=(--fp16)\nCMD=(echo done)\n"
    read_file = read(f"{arrays}python train.py --size $(( 4 * 2 ))\n{line}\n")
    cut = [p for p in read_file.problems if p.kind is ProblemKind.CUT_SHORT]
    assert len(cut) == lost
    assert bool(read_file.commands[0].lost) == bool(lost)


def test_what_a_wrapped_command_loses_has_the_values_of_its_script() -> None:
    script = "ARGS=(--lr 1)\nray job submit -- python train.py --size 2\n   ${ARGS[@]}\n"
    (command,) = (one for one in read(script).commands if one.name == "python")
    assert [word.text for word in command.lost] == ["--lr", "1"]


def test_flags_lost_to_one_cause_are_told_once() -> None:
    text = "swift rlhf\n--model a\n--lr 1\n\n--steps 2\npython b.py\n--lr 1\n"
    lost = [p.location.line for p in read(text).problems if p.kind is ProblemKind.CUT_SHORT]
    assert lost == [2, 7]
