"""Makefiles: recipes as shell commands, with make's variables expanded."""

from __future__ import annotations

import pytest

from flake8_gpu_training.facts import ProblemKind, ScriptFile, Unknown
from flake8_gpu_training.sources.makefile import MakeCall, read_makefile


def read(text: str) -> ScriptFile:
    return read_makefile(text, "Makefile")


def commands(facts: ScriptFile) -> list[tuple[str, str]]:
    return [(c.function, c.text) for c in facts.commands]


def test_recipes_belong_to_their_target() -> None:
    facts = read(
        "train: data.json\n\t@echo hi\n\t-torchrun t.py --data $<\nserve: ; vllm serve $@\n"
    )
    assert commands(facts) == [
        ("train", "echo hi"),
        ("train", "torchrun t.py --data data.json"),
        ("serve", "vllm serve serve"),
    ]


def test_places_are_those_of_the_file() -> None:
    facts = read("LR = 1e-4\nt:\n\tcd x && python t.py \\\n\t  --lr $(LR) \\\n\t  --bf16\n")
    (command,) = facts.commands
    places = [(w.text, w.location.line, w.location.column) for w in command.words]
    assert places == [
        ("python", 3, 10),
        ("t.py", 3, 17),
        ("--lr", 4, 4),
        ("1e-4", 1, 6),
        ("--bf16", 5, 4),
    ]
    assert command.end is not None
    assert (command.end.line, command.end.column) == (5, 10)
    assert command.directory == "x"


def test_kinds_of_assignment() -> None:
    facts = read(
        "A := 1\nB = $(A)$(C)\nC := 2\nD ?= 3\nD ?= 4\nE := $(C)\nC := 5\nF = x \\\n    y\nF += z\n"
        "t:\n\tcmd $(A) ${B} $D $(E) $(F)\n"
    )
    assert commands(facts) == [("t", "cmd 1 15 3 2 x y z")]
    assert facts.assignments["F"].value == "x y z"
    assert facts.assignments["D"].value == "3"


def test_shell_variables_are_escaped_with_two_dollars() -> None:
    facts = read("t:\n\tcmd $${X:-8} $$(hostname)\n")
    (command,) = facts.commands
    assert command.words[1].value == "8"
    assert isinstance(command.words[2].value, Unknown)


def test_what_make_alone_knows_is_unknown() -> None:
    facts = read('A = $(shell cat x)\nt:\n\tcmd $(SEED) $(A) $(if $(X),--log "a",) --end\n')
    (command,) = facts.commands
    assert all(isinstance(word.value, Unknown) for word in command.words[1:4])
    assert command.words[4].value == "--end"
    assert not facts.problems


def test_a_variable_set_under_a_condition_is_unknown_with_candidates() -> None:
    facts = read("ifdef D\nF = --debug\nelse\nF = --fast\nendif\nt:\n\tcmd $(F)\n")
    value = facts.commands[0].words[1].value
    assert isinstance(value, Unknown)
    assert set(value.candidates) == {"--debug", "--fast"}


def test_recipes_under_a_condition_may_run() -> None:
    facts = read("ifdef D\nt:\n\ta\nendif\nu:\n\tb\n")
    assert [(c.name, c.conditional) for c in facts.commands] == [("a", True), ("b", False)]


def test_exported_variables_are_the_environment() -> None:
    facts = read("export CUDA_VISIBLE_DEVICES = 0,1\nA = 1\nB = 2\nexport B\nt:\n\tcmd\n")
    environment = facts.commands[0].environment
    assert {name: s.value for name, s in environment.items()} == {
        "CUDA_VISIBLE_DEVICES": "0,1",
        "B": "2",
    }


def test_each_line_has_its_own_shell_unless_oneshell() -> None:
    assert [c.directory for c in read("t:\n\tcd x\n\ta\n").commands] == [""]
    assert [c.directory for c in read(".ONESHELL:\nt:\n\tcd x\n\ta\n").commands] == ["x"]


def test_comments_definitions_and_includes() -> None:
    facts = read("# a note\ninclude common.mk\ndefine X\n\tpython no.py\nendef\nt: # x\n\ta # b\n")
    assert commands(facts) == [("t", "a")]
    assert [c.value for c in facts.comments] == ["a note"]
    assert [w.text for w in facts.sourced] == ["common.mk"]


@pytest.mark.parametrize(
    "text", ["", "A = $(A)\n", "A += $(A)\nt:\n\t$(A)\n", "t:\n\t$(\n", "= x\n", "endif\n"]
)
def test_fragments_are_read(text: str) -> None:
    assert read(text + "\nlast:\n\ta\n").commands[-1].name == "a"


def test_growth_without_bound_is_cut() -> None:
    lines = "A0 = xxxxxxxxxx\n" + "".join(f"A{i} = $(A{i - 1})$(A{i - 1})\n" for i in range(1, 60))
    facts = read(lines + "t:\n\tcmd $(A59)\n")
    assert facts.commands[0].name == "cmd"


def test_binary_is_a_problem() -> None:
    assert [p.kind for p in read_makefile(b"\0", "M").problems] == [ProblemKind.ENCODING]


# --- calls -----------------------------------------------------------------------------------

CALLED = """\
GPUS ?= 2
MODEL = small
RUN = torchrun --nproc_per_node $(GPUS)

train eval: data
	$(RUN) $@.py --model $(MODEL)

big: MODEL := large
big: train

size-%:
	python train.py --size $* --out out/$@

data:
	python prepare.py
"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (MakeCall(), ["python prepare.py", "torchrun --nproc_per_node 2 train.py --model small"]),
        (
            MakeCall(("eval",), {"GPUS": "8"}),
            ["python prepare.py", "torchrun --nproc_per_node 8 eval.py --model small"],
        ),
        (
            MakeCall(("train",), {"MODEL": "own"}, {"GPUS": "4", "RUN": "x"}),
            ["python prepare.py", "torchrun --nproc_per_node 4 train.py --model own"],
        ),
        (
            MakeCall(("big",)),
            ["python prepare.py", "torchrun --nproc_per_node 2 train.py --model large"],
        ),
        (MakeCall(("size-7b",)), ["python train.py --size 7b --out out/size-7b"]),
        (MakeCall(("nothing",)), []),
    ],
)
def test_a_call_runs_its_goals_with_its_variables(call: MakeCall, expected: list[str]) -> None:
    facts = read_makefile(CALLED, "Makefile", call)
    assert [command.text for command in facts.commands] == expected


def test_a_variable_that_the_call_leaves_open_is_unknown() -> None:
    call = MakeCall(("train",), {"GPUS": Unknown("$N")})
    word = read_makefile(CALLED, "Makefile", call).commands[-1].words[2]
    assert isinstance(word.value, Unknown)


def test_the_goal_may_be_named_by_the_makefile() -> None:
    text = ".DEFAULT_GOAL := b\na:\n\tpython a.py\nb:\n\tpython b.py\n"
    assert [c.text for c in read_makefile(text, "Makefile", MakeCall()).commands] == ["python b.py"]


def test_targets_that_need_each_other_end() -> None:
    text = "a: b\n\tpython a.py\nb: a\n\tpython b.py\n"
    facts = read_makefile(text, "Makefile", MakeCall(("a",)))
    assert [c.text for c in facts.commands] == ["python b.py", "python a.py"]


def test_a_command_stands_in_its_recipe_though_a_variable_begins_it() -> None:
    facts = read_makefile("RUN = python -u\n\nt:\n\t@echo hi\n\t@$(RUN) t.py\n", "Makefile")
    command = facts.commands[-1]
    assert (command.text, command.location.line, command.location.column) == (
        "python -u t.py",
        5,
        3,
    )


def test_what_a_pattern_stands_for_is_not_known_without_a_call() -> None:
    facts = read_makefile("size-%:\n\tpython t.py $*\n", "Makefile")
    assert isinstance(facts.commands[0].words[-1].value, Unknown)
