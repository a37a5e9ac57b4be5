"""JSON: places, what json.load refuses, and bounds on data and hostile files."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flake8_gpu_training.facts import Location, ProblemKind
from flake8_gpu_training.sources.json_source import MAX_ARRAY_BYTES, MAX_BYTES, read_json

DEEPSPEED = """\
{
  "zero_optimization": {
    "stage": 3,
    "offload_optimizer": {"device": "cpu"}
  },
  "train_batch_size": "auto"
}
"""


def only(text):
    config = read_json(text, "ds.json")
    assert config.problems == ()
    return config.documents[0]


def test_keys_and_values_have_their_places():
    document = only(DEEPSPEED)
    settings = document.settings()
    stage = settings["zero_optimization.stage"]
    assert (stage.value, stage.location) == (3, Location("ds.json", 3, 5))
    device = document.get("zero_optimization.offload_optimizer.device")
    assert device.location == Location("ds.json", 4, 37)
    assert document.tolerated == ()


@pytest.mark.parametrize("comment", ["// cpu", "# cpu", "/* cpu\n more */"])
def test_comments_are_read_and_noted(comment):
    text = f'{{\n  "stage": 3, {comment}\n "x": 1}}'
    with pytest.raises(ValueError, match="Expecting"):
        json.loads(text)
    document = only(text)
    assert document.root.plain() == {"stage": 3, "x": 1}
    (problem,) = document.tolerated
    assert problem.location == Location("ds.json", 2, 15)
    assert "json.load refuses comments" in problem.message


def test_a_trailing_comma_is_read_and_noted_where_it_is():
    document = only('{"stages": [1, 2,], "a": 1\n,}')
    assert document.root.plain() == {"stages": [1, 2], "a": 1}
    (problem,) = document.tolerated
    assert problem.location == Location("ds.json", 1, 17)


def test_marks_in_strings_are_no_comments():
    document = only('{"url": "http://x/#y", "z": "/* */,]"}')
    assert document.root.plain() == {"url": "http://x/#y", "z": "/* */,]"}
    assert document.tolerated == ()


def test_numbers_that_json_load_takes_are_read():
    values = only('{"a": NaN, "b": -Infinity, "c": 1e-8, "d": -0, "e": Infinity}').root.plain()
    assert math.isnan(values.pop("a"))
    assert values == {"b": -math.inf, "c": 1e-8, "d": 0, "e": math.inf}


def test_a_repeated_key_is_noted_and_the_last_wins():
    document = only('{"stage": 2,\n"stage": 3}')
    assert document.root.plain() == {"stage": 3}
    assert [entry.location.line for entry in document.duplicates] == [1]


def test_a_byte_order_mark_is_no_error():
    assert read_json(b'\xef\xbb\xbf{"a": 1}', "x.json").documents[0].root.plain() == {"a": 1}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"a": 1', 1), ('{"a" 1}', 1), ('{"a": 1\n"b": 2}', 2), ("{a: 1}", 1), ("", 1),
        ("{'a': 1}", 1), ('{"a": 01}', 1), ("[1}", 1), ("{} {}", 1), ('{"a": }', 1), ("[,]", 1),
        ('{"a": "\\x"}', 1), ("]", 1), (",", 1), ("{,}", 1), ('["a": 1]', 1), ("/* open", 1),
        ('{"a": tru}', 1), ('{"a": "b\n"}', 1),
    ],
)  # fmt: skip
def test_broken_json_gives_a_problem_and_no_half_document(text, line):
    config = read_json(text, "x.json")
    assert config.documents == ()
    assert [(p.kind, p.location.line) for p in config.problems] == [(ProblemKind.SYNTAX, line)]


@pytest.mark.parametrize("value", ["${stage}", "$STAGE", "<stage>", "@stage@", "ZERO_STAGE"])
def test_a_file_to_fill_in_is_not_broken(value):
    config = read_json(f'{{"zero_optimization": {{"stage": {value}}}}}', "x.json")
    assert config.documents == ()
    assert [problem.kind for problem in config.problems] == [ProblemKind.UNSUPPORTED]


@pytest.mark.parametrize("value", ["TRUE", "True", "None", "$", "tru", "auto"])
def test_a_word_that_is_no_value_is_a_mistake(value):
    config = read_json(f'{{"a": {value}}}', "x.json")
    assert [problem.kind for problem in config.problems] == [ProblemKind.SYNTAX]


@pytest.mark.parametrize(
    "text",
    [
        "[" + "1," * 1001 + "1]",
        "[" + '"x' + "x" * MAX_ARRAY_BYTES + '"]',
        '{"a": "' + "x" * MAX_BYTES + '"}',
    ],
)
def test_data_is_not_parsed(text):
    config = read_json(text, "train.json")
    assert [problem.kind for problem in config.problems] == [ProblemKind.TOO_LARGE]


def test_json_lines_are_data():
    config = read_json('{"a": 1}\n{"a": 2}\n', "train.jsonl")
    assert [problem.kind for problem in config.problems] == [ProblemKind.TOO_LARGE]


@pytest.mark.parametrize("text", ["[" * 50_000, '{"a":' * 50_000])
def test_deep_nesting_is_too_deep(text):
    assert read_json(text, "x.json").problems[0].kind is ProblemKind.TOO_DEEP


def test_a_huge_number_stays_text():
    assert only('{"a": ' + "9" * 5000 + "}").root.plain() == {"a": "9" * 5000}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(JSON, st.sampled_from([None, 2]), st.booleans())
def test_values_agree_with_json(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    document = only(text)
    assert document.root.plain() == json.loads(text)
    assert document.tolerated == ()


PIECES = st.sampled_from(
    ["{", "}", "[", "]", ",", ":", '"a"', '"', "\\", "1", "-", "true", "//", "/*", "*/", "#", "\n"]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=50) | st.binary(max_size=50))
def test_no_input_raises_and_what_json_takes_is_read(data):
    config = read_json(data, "x.json")
    try:
        expected = json.loads(data)
    except (ValueError, RecursionError):
        return
    if config.documents and not config.documents[0].tolerated:
        assert repr(config.documents[0].root.plain()) == repr(expected)
    else:
        assert config.problems or config.documents[0].tolerated


def test_objects_of_a_line_each_are_data_whatever_the_file_is_called() -> None:
    (problem,) = read_json('{"a": 1}\n{"a": 2}\n', "data/train.json").problems
    assert problem.kind is ProblemKind.UNSUPPORTED
    (problem,) = read_json('{\n  "a": 1\n}\n{"a": 2}\n', "ds.json").problems
    assert problem.kind is ProblemKind.SYNTAX
