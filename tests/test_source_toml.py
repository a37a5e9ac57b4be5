"""TOML: tomli's values, with places of keys."""

from __future__ import annotations

import pytest
import tomli
from hypothesis import given, settings
from hypothesis import strategies as st

from flake8_gpu_training.facts import Location, ProblemKind
from flake8_gpu_training.sources.toml_source import MAX_BYTES, read_toml

CONFIG = '''\
# Diffusion fine-tuning
[model]
name = "Wan2.1-T2V-14B"  # the large one
dtype.compute = "bf16"

[optimizer]
betas = [
  0.9,  # first
  0.99,
]
extra = { lr = 1e-4, "weight decay" = 0 }
doc = """
[not.a.table]
key = 1
"""

[[datasets]]
path = 'a'
[[datasets]]
path = 'b'
[datasets.cache]
on = true
'''


def only(text):
    config = read_toml(text, "c.toml")
    assert config.problems == ()
    return config.documents[0]


def test_values_are_tomlis():
    assert only(CONFIG).root.plain() == tomli.loads(CONFIG)


@pytest.mark.parametrize(
    ("dotted", "line", "column"),
    [
        ("model", 2, 1),
        ("model.name", 3, 1),
        ("model.dtype", 4, 1),
        ("model.dtype.compute", 4, 7),
        ("optimizer.betas", 7, 1),
        ("optimizer.extra.lr", 11, 11),
        ("optimizer.extra.weight decay", 11, 22),
        ("optimizer.doc", 12, 1),
        ("datasets", 17, 1),
    ],
)
def test_keys_have_their_places(dotted, line, column):
    node = only(CONFIG).root
    for part in dotted.split("."):
        entry = node.mapping[part]
        node = entry.node
    assert entry.location == Location("c.toml", line, column)


def test_keys_in_arrays_of_tables_have_their_own_places():
    first, second = only(CONFIG).root.mapping["datasets"].node.items
    assert first.mapping["path"].location.line == 18
    assert second.mapping["path"].location.line == 20
    assert second.mapping["cache"].node.mapping["on"].location.line == 22


def test_values_have_their_places_and_text():
    document = only(CONFIG)
    name = document.get("model.name")
    assert (name.location, name.content) == (Location("c.toml", 3, 8), Location("c.toml", 3, 9))
    rate = document.get("optimizer.extra.lr")
    assert (rate.value, rate.text) == (1e-4, "1e-4")
    assert document.get("optimizer.betas").items[1].location == Location("c.toml", 9, 3)


def test_dates_are_text():
    assert only("day = 2024-05-01T00:00:00Z").root.plain() == {"day": "2024-05-01T00:00:00+00:00"}


def test_broken_toml_is_a_problem_at_its_line():
    config = read_toml("a = 1\nb = \n", "c.toml")
    assert [(p.kind, p.location.line) for p in config.problems] == [(ProblemKind.SYNTAX, 2)]


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "[" * 500 + "]" * 500])
def test_deep_nesting_is_a_problem(text):
    assert read_toml(text, "c.toml").problems


def test_a_large_file_is_not_parsed():
    assert read_toml("#" * (MAX_BYTES + 1), "c.toml").problems[0].kind is ProblemKind.TOO_LARGE


PIECES = st.sampled_from(
    ["[", "]", "[[", "]]", "a", "b.c", " = ", "1", '"x"', "'y'", '"""', "'''", "\n", "{", "}", ",",
     "#", "\\", '"\\u00e9"', "2024-01-01", "inf"]
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=50) | st.binary(max_size=50))
def test_no_input_raises_and_valid_toml_is_read(data):
    config = read_toml(data, "c.toml")
    for document in config.documents:
        document.settings()
    assert config.documents or config.problems


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(
        st.text("ab.é \"'", max_size=4), st.integers() | st.text("ab\"'\n#[]{}=", max_size=8)
    )
)
def test_every_key_is_placed_where_it_stands(data):
    import json

    text = "".join(f"{json.dumps(k)} = {json.dumps(v)}\n" for k, v in data.items())
    root = only(text).root
    assert root.plain() == data
    assert [entry.location.line for entry in root.mapping.values()] == [*range(1, len(data) + 1)]
