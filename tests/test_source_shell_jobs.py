"""Shell scripts that submit, contain and hand on: what the started command gets."""

from __future__ import annotations

from typing import Optional

import pytest

from flake8_gpu_training.facts import Command, ScriptFile, Unknown
from flake8_gpu_training.sources.environment_files import read_environment_file
from flake8_gpu_training.sources.shell import Library, read_shell
from flake8_gpu_training.sources.slurm import array_tasks, submission, variables


def read(text: str, **files: str) -> ScriptFile:
    texts = {name.replace("__", "."): content for name, content in files.items()}

    def find(name: str, path: str, directory: str) -> Optional[str]:
        return name if name in texts else None

    return read_shell(text, "run.sh", library=Library(find, lambda name: texts[name].encode()))


def started(text: str, **files: str) -> Command:
    """The last command."""
    return read(text, **files).commands[-1]


def environment(command: Command) -> dict[str, object]:
    return {name: setting.value for name, setting in command.environment.items()}


# --- functions that nobody calls -------------------------------------------------------------


def test_what_stands_in_a_function_that_is_not_called_is_marked() -> None:
    facts = read("f() { python f.py; }\ng() { python g.py; }\ng\n")
    assert {c.text: c.uncalled for c in facts.commands} == {
        "python g.py": False,
        "python f.py": True,
    }


@pytest.mark.parametrize("call", ['"$@"', "$1", "run_$MODE", 'eval "$WHAT"'])
def test_a_name_that_is_not_known_may_call_any_function(call: str) -> None:
    facts = read(f"run_a() {{ python a.py; }}\n{call}\n")
    (command,) = (c for c in facts.commands if c.text == "python a.py")
    assert not command.uncalled


# --- sbatch ----------------------------------------------------------------------------------

JOB = """\
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:a100:8
torchrun --nnodes $SLURM_NNODES --nproc_per_node ${SLURM_GPUS_ON_NODE:-1} t.py $1 \\
    $((SLURM_NTASKS * 2))
"""


def test_variables_of_slurm_are_what_the_directives_ask_for() -> None:
    command = read_shell(JOB, "job.slurm").commands[-1]
    assert command.text.startswith("torchrun --nnodes 2 --nproc_per_node 8 t.py $1 16")
    assert "SLURM_NNODES" not in command.environment


def test_sbatch_gives_its_script_arguments_and_has_precedence_over_directives() -> None:
    facts = read("export LR=3\nsbatch -N 4 -J x job.slurm conf.yaml\n", job__slurm=JOB)
    command = facts.commands[-1]
    assert command.text == "torchrun --nnodes 4 --nproc_per_node 8 t.py conf.yaml 32"
    assert command.location.path == "job.slurm"
    assert environment(command)["LR"] == "3"
    assert [words[0].text for words in command.wrappers] == ["sbatch"]


def test_without_directives_the_variables_of_slurm_are_not_known() -> None:
    word = started("torchrun --nnodes $SLURM_NNODES train.py\n").words[2]
    assert isinstance(word.value, Unknown)


def test_a_flag_that_is_not_known_leaves_its_variable_unknown() -> None:
    command = started('sbatch -N "$N" job.slurm c\n', job__slurm=JOB)
    assert isinstance(command.words[2].value, Unknown)


def test_an_array_has_one_of_its_indices() -> None:
    text = "#!/bin/bash\n#SBATCH --array=0-2%1\npython train.py --seed $SLURM_ARRAY_TASK_ID\n"
    word = started(text).words[-1]
    assert isinstance(word.value, Unknown)
    assert word.value.candidates == ("0", "1", "2")


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("$SLURM_ARRAY_TASK_ID", ("a", "b")),
        ("SLURM_ARRAY_TASK_ID + 1", ("b", "c")),
        ("$((SLURM_ARRAY_TASK_ID * 9))", ()),
        ("$OTHER", ()),
    ],
)
def test_an_element_at_one_of_several_indices_is_one_of_several(
    index: str, expected: tuple[str, ...]
) -> None:
    text = f"#!/bin/bash\n#SBATCH --array=0,1\nX=(a b c)\npython t.py ${{X[{index}]}}\n"
    word = started(text).words[-1]
    assert isinstance(word.value, Unknown)
    assert word.value.candidates == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0-6:2", ("0", "2", "4", "6")),
        ("1,3,5-6", ("1", "3", "5", "6")),
        ("0-999", ()),
        ("x", ()),
    ],
)
def test_indices_of_arrays(text: str, expected: tuple[str, ...]) -> None:
    assert array_tasks({"array": text}) == expected


@pytest.mark.parametrize(
    ("words", "script", "flags"),
    [
        (["sbatch", "j.sh", "a"], 1, {}),
        (["sbatch", "-N2", "--exclusive", "--time", "1:00", "j.sh"], 5, {"nodes": "2"}),
        (["sbatch", "--parsable", "-p", "gpu", "j.sh"], 4, {"partition": "gpu"}),
    ],
)
def test_the_script_that_sbatch_submits(
    words: list[str], script: int, flags: dict[str, str]
) -> None:
    found = submission(words)
    assert found is not None
    assert found.script == script
    assert flags.items() <= found.flags.items()


def test_sbatch_that_wraps_a_command_submits_no_script() -> None:
    assert submission(["sbatch", "--wrap", "python train.py"]) is None
    assert submission(["sbatch", "--wrap=python train.py"]) is None
    assert submission(["sbatch"]) is None


@pytest.mark.parametrize("flag", ['--wrap "python t.py"', "--wrap='python t.py'"])
def test_a_wrapped_command_is_what_the_job_runs(flag: str) -> None:
    command = started(f"sbatch -N 2 {flag}\n")
    assert command.text == "python t.py"
    assert command.wrappers[0][0].text == "sbatch"


def test_one_task_is_on_one_node_and_more_are_anywhere() -> None:
    assert variables({})["SLURM_NNODES"] == "1"
    assert "SLURM_NNODES" not in variables({"ntasks": "8"})
    assert "SLURM_NNODES" not in variables({"nodes": "2-4"})


# --- what is handed on -----------------------------------------------------------------------


def test_a_container_has_only_the_variables_it_is_given() -> None:
    command = started(
        "export A=1 B=2\nX=3 docker run --env-file c.env -e B -e C=4 --env=D=5 img python t.py\n",
        c__env="# note\nE='6'\nC=7\n",
    )
    assert environment(command) == {"B": "2", "C": "4", "D": "5", "E": "'6'"}


@pytest.mark.parametrize(
    "text",
    ["ssh host 'python t.py'", "kubectl exec pod -- python t.py", "ray job submit -- python t.py"],
)
def test_another_machine_has_none_of_the_variables_here(text: str) -> None:
    assert environment(started(f"export A=1\n{text}\n")) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mpirun -np 2 -x B=2 -x A python t.py", {"A": "1", "B": "2"}),
        ("mpiexec -genv B 2 -n 2 python t.py", {"A": "1", "B": "2"}),
        ("srun --export=ALL,B=2,C=3 python t.py", {"A": "1", "B": "2", "C": "3"}),
        ("apptainer exec --env B=2,C=3 i.sif python t.py", {"A": "1", "B": "2", "C": "3"}),
        (
            'ray job submit --runtime-env-json \'{"env_vars": {"B": "2"}}\' -- python t.py',
            {"B": "2"},
        ),
    ],
)
def test_variables_that_a_wrapper_sets(text: str, expected: dict[str, str]) -> None:
    command = started(f"export A=1\n{text}\npython after.py\n")
    assert environment(command) == {"A": "1"}
    assert environment(read(f"export A=1\n{text}\n").commands[-1]) == expected


def test_a_sourced_file_may_be_any_file() -> None:
    command = started("set -a; . ./x.env; set +a\npython t.py\n", **{"./x__env": "N=8\n"})
    assert environment(command) == {"N": "8"}


def test_lines_of_environment_files() -> None:
    text = "# c\nA=1\nexport B = 'x y' # note\nC=\"z\"\nD=a#b # c\nnot a line\n=\n"
    found = {
        s.name: (s.value, s.location.line if s.location else 0)
        for s in read_environment_file(text, "e")
    }
    assert found == {"A": ("1", 2), "B": ("x y", 3), "C": ("z", 4), "D": ("a#b", 5)}
    raw = {s.name: s.value for s in read_environment_file("A='1'\n", "e", quotes=False)}
    assert raw == {"A": "'1'"}


# --- options of a script ---------------------------------------------------------------------

TAKES = """\
gpus=1; extra=()
while [[ $# -gt 0 ]]; do
    case "$1" in
        -g|--gpus) gpus="$2"; shift 2 ;;
        --lr=*) lr="${1#*=}"; shift ;;
        --quiet) shift; continue ;;
        --) shift; break ;;
        *) extra+=("$1"); shift ;;
    esac
done
torchrun --nproc_per_node $gpus t.py --lr ${lr:-1} "${extra[@]}"
"""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", "--nproc_per_node 1 t.py --lr 1"),
        ("--gpus 8 --lr=3 --quiet a b", "--nproc_per_node 8 t.py --lr 3 a b"),
        ("-g 2 -- --lr=5", "--nproc_per_node 2 t.py --lr 1"),
    ],
)
def test_options_of_a_called_script_are_parsed_as_it_does(arguments: str, expected: str) -> None:
    facts = read(f"bash takes.sh {arguments}\n", takes__sh=TAKES)
    (command,) = facts.commands
    assert command.text == f"torchrun {expected}"
    assert not command.conditional


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("a.yaml", "train.py a.yaml"),
        ("a.yaml --bits", "train.py a.yaml"),
        ("a.yaml lr=1", "train.py a.yaml --lr=1"),
    ],
)
def test_a_loop_over_no_arguments_does_not_run(arguments: str, expected: str) -> None:
    takes = (
        'file="$1"; shift\nMORE=""\nfor arg in "$@"; do\n'
        '  if [[ $arg == *"="* ]]; then MORE="$MORE --$arg"; fi\ndone\n'
        'if [[ -n "$MORE" ]]; then\n  python train.py "$file" $MORE\n'
        'else\n  python train.py "$file"\nfi\n'
    )
    facts = read(f"bash takes.sh {arguments}\n", takes__sh=takes)
    if arguments == "a.yaml":
        assert [command.text for command in facts.commands] == [f"python {expected}"]
        assert not facts.commands[0].conditional


@pytest.mark.parametrize(("arguments", "file"), [("", "lora"), ("--bits", "qlora")])
def test_a_switch_that_is_a_command_decides(arguments: str, file: str) -> None:
    takes = (
        "BITS=false\nwhile [[ $# -gt 0 ]]; do\n"
        '  case "$1" in --bits) BITS=true; shift ;; *) shift ;; esac\ndone\n'
        "if $BITS; then FILE=qlora.yaml; else FILE=lora.yaml; fi\npython train.py $FILE\n"
    )
    facts = read(f"bash takes.sh {arguments}\n", takes__sh=takes)
    assert [command.text for command in facts.commands] == [f"python train.py {file}.yaml"]


def test_options_that_are_not_known_leave_what_they_set_unknown() -> None:
    (command,) = read_shell(TAKES, "takes.sh").commands
    assert isinstance(command.words[2].value, Unknown)
    assert isinstance(
        started('bash takes.sh --gpus "$N" -g $M\n', takes__sh=TAKES).words[2].value, Unknown
    )


@pytest.mark.parametrize(
    ("head", "tail"),
    [
        ("while true; do", "*) break ;;"),
        ('while [ -n "$1" ]; do', ""),
        ("until [ $# -eq 0 ]; do", ""),
    ],
)
def test_other_loops_over_arguments(head: str, tail: str) -> None:
    cases = f"-n) n=$2; shift 2 ;; -v) shift ;; {tail}"
    script = f'{head}\ncase "$1" in {cases}\nesac\ndone\npython t.py $n\n'
    assert started("bash x.sh -v -n 4\n", x__sh=script).text == "python t.py 4"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("-g 8 -v -l3 rest", "8 1 3 rest"),
        ("-vg4", "4 1 0"),
        ("", "1 0 0"),
        ("-v -- -g 9", "1 1 0 -g 9"),
        ("-z -g 2", "2 0 0"),
    ],
)
def test_getopts(arguments: str, expected: str) -> None:
    script = (
        "g=1 v=0 l=0\n"
        'while getopts ":g:vl:" opt; do\n'
        "case $opt in g) g=$OPTARG ;; v) v=1 ;; l) l=$OPTARG ;; ?) ;;\nesac\ndone\n"
        "shift $((OPTIND - 1))\n"
        'python t.py $g $v $l "$@"\n'
    )
    assert started(f"bash x.sh {arguments}\n", x__sh=script).text == f"python t.py {expected}"


def test_a_loop_over_arguments_that_never_ends_is_walked_once() -> None:
    facts = read("bash x.sh a\n", x__sh='while [ -n "$1" ]; do python t.py; done\n')
    assert [command.text for command in facts.commands] == ["python t.py"]
