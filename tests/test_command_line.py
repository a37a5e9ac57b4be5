"""The words of a command as an ``argparse`` parser takes them, unknown words included."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from flake8_gpu_training.facts import Location, Origin, Unknown, Word
from flake8_gpu_training.runs.command_line import (
    Commands,
    Declared,
    Outcome,
    ParserModel,
    RefusedError,
    parse,
    parse_with,
)
from flake8_gpu_training.runs.option_types import annotation, boolean, library_type

LR = Declared(("--lr", "-l"), "lr", action="", default=0.1, convert=library_type("float"))
AMP = Declared(("--amp",), "amp", action="store_true")
DATA = Declared(("data",), "data", nargs="?", default="here", is_positional=True)
NAMES = Declared(("--names",), "names", nargs="+")
MODEL = ParserModel((LR, AMP, DATA, NAMES))


def words(*texts: Any) -> list[Word]:
    found = []
    for at, text in enumerate(texts, 1):
        place = Location("run.sh", 1, at)
        found.append(text(place) if callable(text) else Word(text, place, text))
    return found


def variable(raw: str, *candidates: str) -> Any:
    return lambda place: Word(Unknown(raw, candidates), place, raw)


def values(outcome: Outcome) -> dict[str, Any]:
    return {name: setting.value for name, setting in outcome.values.items()}


def test_a_setting_of_a_flag_has_the_places_of_flag_and_value() -> None:
    (separate,) = parse(MODEL, words("--lr", "3")).given.values()
    assert (separate.location, separate.value_location) == (
        Location("run.sh", 1, 1),
        Location("run.sh", 1, 2),
    )
    joined = parse(MODEL, words("--lr=3")).given["lr"]
    assert (joined.value, joined.text, joined.value_location) == (
        3.0,
        "3",
        Location("run.sh", 1, 6),
    )
    short = parse(MODEL, words("-l3")).given["lr"]
    assert (short.value, short.location) == (3.0, Location("run.sh", 1, 1))
    assert separate.origin is Origin.FLAG


def test_an_unknown_word_is_the_value_of_the_flag_before_it() -> None:
    outcome = parse(MODEL, words("--lr", variable("$LR", "1", "2"), "--amp"))
    assert outcome.values["lr"].value == Unknown("$LR", (1.0, 2.0))
    assert outcome.values["amp"].value is True
    assert not outcome.is_open


def test_words_that_may_be_any_arguments_leave_the_rest_open() -> None:
    outcome = parse_with(MODEL, words("--lr", "2", variable("$EXTRA_ARGS")))
    assert outcome.is_open
    assert outcome.values["lr"].value == 2.0
    assert isinstance(outcome.values["amp"].value, Unknown)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (["--lr", "fast"], "invalid float"),
        (["--lr"], "expected one argument"),
        (["--help"], "prints and exits"),
        (["--lr", "1", "--names"], "expected at least one"),
    ],
)
def test_what_the_parser_refuses_is_told_and_nothing_is_printed(
    line: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = parse(MODEL, words(*line))
    assert reason in outcome.refused
    assert set(values(outcome)) >= {"lr", "amp", "data", "names"}
    assert capsys.readouterr() == ("", "")


def test_an_abbreviation_is_taken_only_by_a_parser_that_is_known_as_a_whole() -> None:
    assert values(parse(MODEL, words("--na", "x")))["names"] == ["x"]
    open_model = ParserModel(MODEL.options, is_whole=False)
    outcome = parse(open_model, words("--na", "x"))
    assert values(outcome)["names"] is None
    assert [word.text for word in outcome.rest] == ["--na"]


def test_the_defaults_of_a_sub_command_count_once_it_is_chosen() -> None:
    inner = ParserModel((Declared(("--lr",), "lr", default="5", convert=library_type("int")),))
    model = ParserModel((LR,), Commands("command", {"train": inner, "test": ParserModel()}))
    assert values(parse(model, words("train"))) == {"lr": 5, "command": "train"}
    assert values(parse(model, words("--lr", "1", "test"))) == {"lr": 1.0, "command": "test"}


def test_a_text_default_is_converted_and_a_default_function_is_not_asked_twice() -> None:
    model = ParserModel((Declared(("--n",), "n", default="4", convert=library_type("int")),))
    assert values(parse(model, [])) == {"n": 4}


def test_many_positional_arguments_are_left_alone() -> None:
    many = [Declared((f"p{n}",), f"p{n}", nargs="+", is_positional=True) for n in range(40)]
    outcome = parse(ParserModel(tuple(many)), words(*["x"] * 39))
    assert outcome.refused


@pytest.mark.parametrize(
    "text", ["Optional[int]", "int | None", "Union[int, None]", "'int'", "int"]
)
def test_optional_is_taken_off_an_annotation(text: str) -> None:
    assert annotation(ast.parse(text, mode="eval").body).name == "int"


def test_a_truth_value_of_hugging_face_is_one_of_few_words() -> None:
    assert (boolean("Yes"), boolean("0")) == (True, False)
    with pytest.raises(RefusedError):
        boolean("maybe")
