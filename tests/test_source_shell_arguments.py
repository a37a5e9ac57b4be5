"""Arguments and plain variables of a script decide which of its branches are taken."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import runs_of

from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.sources.shell import read_shell


def launched(text: str) -> list[str]:
    """The training commands of a script."""
    commands = read_shell(text, "a.sh").commands
    return [command.text for command in commands if command.name == "swift"]


TWO = "if {}; then\n  swift sft --model x\nelse\n  swift sft --model y\nfi\n"


@pytest.mark.parametrize(
    ("before", "condition", "models"),
    [
        ("A=a\n", '[ "$A" = a ]', "x"),
        ("A=a\n", '! [ "$A" = a ]', "y"),
        ("A=a\n", '! [[ "$A" == b ]]', "x"),
        ("A=a\n", '! [ "$A" = "$B" ]', "xy"),  # the environment may set B
        ("Q=true\n", "$Q", "x"),
        ("Q=false\n", "$Q", "y"),
        ("Q=false\n", '! "${Q}"', "x"),
        ("", "$Q", "xy"),
        ("Q=./check.sh\n", "$Q", "xy"),  # a program, whose answer is not known
        ("", "! ./check.sh", "xy"),
        ('set --\nE=\nfor a in "$@"; do E="$E $a"; done\n', '[ -n "$E" ]', "y"),
        ("set -- b c\nE=n\nfor a; do [ $a = c ] && E=y; done\n", "[ $E = y ]", "x"),
        ("set -- b c\nE=n\nfor a in $@; do [ $a = c ] && break; E=y; done\n", "[ $E = y ]", "x"),
        ('E=n\nfor a in "$@"; do E="$a"; done\n', '[ "$E" = n ]', "xy"),  # whatever is given
        ("set --\nE=n\nfor ((i = 0; i < 2; i++)); do E=y; done\n", "[ $E = n ]", "xy"),
    ],
)
def test_a_condition_that_is_known_chooses_the_branch(
    before: str, condition: str, models: str
) -> None:
    found = launched(before + TWO.format(condition))
    assert "".join(text[-1] for text in found) == models


@pytest.mark.parametrize(
    ("chain", "models"),
    [("$Q && swift sft --model x", ""), ("$Q || swift sft --model y", "y")],
)
def test_a_chain_behind_a_plain_truth(chain: str, models: str) -> None:
    assert "".join(text[-1] for text in launched(f"Q=false\n{chain}\n")) == models


WRAPPER = """\
COMMAND="$1"; shift
DATASET=""
QLORA=false
MORE=()
while [[ $# -gt 0 ]]; do
    case "$1" in
        --dataset) DATASET="$2"; shift 2 ;;
        --qlora) QLORA=true; shift ;;
        --) shift; MORE=("$@"); break ;;
        *) exit 1 ;;
    esac
done
case "$COMMAND" in
    train)
        if $QLORA; then YAML="configs/${DATASET}_qlora.yaml"; else YAML="configs/$DATASET.yaml"; fi
        CMD=(llamafactory-cli train "$YAML")
        CMD+=("${MORE[@]}")
        exec "${CMD[@]}" ;;
    merge) llamafactory-cli export configs/merge.yaml ;;
esac
"""
RECIPE = "stage: sft\nmodel_name_or_path: Qwen/Qwen2.5-7B\ndataset: d\nfinetuning_type: lora\n{}"


@pytest.mark.parametrize(
    ("given", "config", "bits"),
    [
        ("train --dataset a", "configs/a.yaml", None),
        ("train --dataset a --qlora", "configs/a_qlora.yaml", 4),
        ("train --dataset a -- quantization_bit=8", "configs/a.yaml", 8),
    ],
)
def test_the_arguments_of_a_launch_choose_its_recipe(
    tmp_path: Path, given: str, config: str, bits: int
) -> None:
    files = {
        "run.sh": WRAPPER,
        "configs/a.yaml": RECIPE.format(""),
        "configs/a_qlora.yaml": RECIPE.format("quantization_bit: 4\n"),
    }
    runs_of(tmp_path, files)
    run = find_runs(Project.open(tmp_path), f"bash run.sh {given}")[0]
    assert run.place.document is not None
    assert run.place.document.path == config
    assert not run.is_open
    found = run.setting("quantization_bit")
    assert (found.value if found is not None else None) == bits


OVERRIDES = """\
FILE="$1"
shift
MORE=""
for arg in "$@"; do
  if [[ $arg == *"="* ]]; then MORE="$MORE $arg"; fi
done
if [[ -n "$MORE" ]]; then
  llamafactory-cli train "$FILE" $MORE
else
  llamafactory-cli train "$FILE"
fi
"""


def test_overrides_that_are_not_given_leave_nothing_open(tmp_path: Path) -> None:
    runs_of(tmp_path, {"run.sh": OVERRIDES, "a.yaml": RECIPE.format("")})
    run = find_runs(Project.open(tmp_path), "sbatch run.sh a.yaml")[0]
    assert (run.location.line, run.is_open) == (10, False)
    run = find_runs(Project.open(tmp_path), "sbatch run.sh a.yaml bf16=true")[0]
    assert run.location.line == 8
