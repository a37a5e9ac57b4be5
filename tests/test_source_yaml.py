"""YAML: values as PyYAML gives them, places of keys, and bounds on hostile files."""

from __future__ import annotations

import textwrap

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from flake8_gpu_training.facts import Location, ProblemKind, Unknown
from flake8_gpu_training.sources.yaml_source import MAX_BYTES, read_yaml


def read(text):
    return read_yaml(textwrap.dedent(text), "sft.yaml")


def root(text):
    config = read(text)
    assert config.problems == ()
    return config.documents[0].root


def test_keys_and_values_have_their_places():
    document = read(
        """\
        # LoRA on one node
        model_name_or_path: Qwen/Qwen2.5-7B
        deepspeed:
          zero_optimization:
            stage: 3
        """
    ).documents[0]
    entry = document.root.mapping["deepspeed"].node.mapping["zero_optimization"]
    assert entry.location == Location("sft.yaml", 4, 3)
    stage = document.settings()["deepspeed.zero_optimization.stage"]
    assert (stage.value, stage.location) == (3, Location("sft.yaml", 5, 5))


@pytest.mark.parametrize(
    "text",
    [
        "1e-4",
        "1.0e-4",
        "yes",
        "off",
        "~",
        "0x10",
        "010",
        "1_000",
        "1:30",
        ".inf",
        '"8"',
        "null",
        "",
    ],
)
def test_scalars_are_what_pyyaml_gives(text):
    node = root(f"lr: {text}\n").mapping["lr"].node
    expected = yaml.safe_load(f"lr: {text}\n")["lr"]
    assert node.value == expected
    assert type(node.value) is type(expected)
    assert node.text == text.strip('"')


def test_learning_rate_without_a_dot_is_text():
    assert root("learning_rate: 1e-4").mapping["learning_rate"].node.value == "1e-4"


def test_dates_stay_text():
    assert root("day: 2024-05-01").mapping["day"].node.value == "2024-05-01"


def test_every_document_is_read():
    config = read("a: 1\n---\nb: 2\n---\n- c\n")
    assert [document.root.plain() for document in config.documents] == [{"a": 1}, {"b": 2}, ["c"]]


def test_merged_entries_keep_their_place_and_explicit_keys_win():
    merged = (
        root(
            """\
        base: &base
          bf16: true
          epochs: 3
        run:
          epochs: 1
          <<: *base
        """
        )
        .mapping["run"]
        .node
    )
    assert merged.plain() == {"bf16": True, "epochs": 1}
    assert merged.mapping["bf16"].location.line == 2
    assert merged.mapping["epochs"].location.line == 5


def test_the_first_of_several_merged_mappings_wins():
    text = "a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc:\n  <<: [*a, *b]\n"
    assert root(text).plain() == yaml.safe_load(text)


def test_a_quoted_merge_key_is_a_key():
    assert root('"<<": 1\n').plain() == {"<<": 1}


def test_a_repeated_key_is_noted_and_the_last_wins():
    document = read("bf16: true\nlr: 1\nbf16: false\n").documents[0]
    assert document.root.mapping["bf16"].node.value is False
    assert [(entry.key, entry.location.line) for entry in document.duplicates] == [("bf16", 1)]


@pytest.mark.parametrize(
    "value", ["!include ds.yaml", "!!python/object:os.system {a: 1}", "!ENV [a]", "!!binary aGk="]
)
def test_custom_tags_are_unknown(value):
    node = root(f"deepspeed: {value}\n").mapping["deepspeed"].node
    assert isinstance(node.value, Unknown)
    assert node.plain() is node.value


def test_references_to_the_same_document_are_resolved():
    node = root(
        """\
        gpus: 8
        trainer:
          devices: ${gpus}
          name: run-${trainer.devices}
          again: ${.devices}
        steps: [10, 20]
        first: ${steps[1]}
        """
    )
    trainer = node.mapping["trainer"].node
    assert trainer.plain() == {
        "devices": 8,
        "name": "run-8",
        "again": Unknown("${.devices} is resolved at run time"),
    }
    assert node.mapping["first"].node.value == 20


@pytest.mark.parametrize(
    "value",
    ["${oc.env:GPUS,8}", "${now:%Y}", "${other.file}", "${a}", "x-${b:1}", "${${c}}", "{{ lr }}"],
)
def test_what_the_document_does_not_determine_is_unknown(value):
    node = root(f"a: '{value}'\n").mapping["a"].node
    assert isinstance(node.value, Unknown)
    assert node.text == value


def test_references_in_a_circle_are_unknown():
    node = root("a: ${b}\nb: ${a}\n")
    assert isinstance(node.mapping["a"].node.value, Unknown)


def test_references_that_double_each_time_are_bounded():
    lines = ["a0: x"] + [f"a{i}: ${{a{i - 1}}}${{a{i - 1}}}" for i in range(1, 500)]
    values = root("\n".join(lines)).plain()
    assert values["a3"] == "x" * 8
    assert isinstance(values["a499"], Unknown)


def test_a_placeholder_without_quotes_is_unknown():
    node = root("lr: {{ lr }}\nbf16: true\n")
    assert isinstance(node.mapping["lr"].node.value, Unknown)
    assert node.mapping["bf16"].node.value is True


def test_a_template_is_unsupported_rather_than_broken():
    config = read("{% if x %}\nlr: 1\n{% endif %}\n")
    assert [problem.kind for problem in config.problems] == [ProblemKind.UNSUPPORTED]


def test_broken_yaml_is_a_problem_at_its_line():
    config = read("lr: 1\n  bf16: true\n")
    assert [(p.kind, p.location.line) for p in config.problems] == [(ProblemKind.SYNTAX, 2)]
    assert config.documents == ()


def test_tabs_are_a_problem():
    assert read("a:\n\t- b\n").problems[0].kind is ProblemKind.SYNTAX


def test_documents_before_a_broken_one_are_kept():
    config = read("a: 1\n---\n[\n")
    assert [document.root.plain() for document in config.documents] == [{"a": 1}]
    assert len(config.problems) == 1


def test_an_alias_bomb_is_bounded():
    lines = ["a0: &a0 [1,1,1,1,1,1,1,1,1]"]
    lines += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    config = read_yaml("\n".join(lines), "bomb.yaml")
    assert ProblemKind.TOO_LARGE in {problem.kind for problem in config.problems}


def test_a_merge_bomb_is_bounded():
    lines = ["a0: &a0 {" + ",".join(f"k{i}: {i}" for i in range(500)) + "}"]
    lines += [f"b{i}: {{<<: *a0}}" for i in range(200)]
    config = read_yaml("\n".join(lines), "bomb.yaml")
    assert ProblemKind.TOO_LARGE in {problem.kind for problem in config.problems}


def test_a_chain_of_aliases_does_not_nest_without_bound():
    lines = ["a0: &a0 [1]"] + [f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 200)]
    config = read_yaml("\n".join(lines), "deep.yaml")
    assert ProblemKind.TOO_DEEP in {problem.kind for problem in config.problems}
    config.documents[0].root.plain()


def test_an_alias_of_itself_is_unknown():
    config = read("a: &a\n  b: *a\n")
    inner = config.documents[0].root.mapping["a"].node.mapping["b"].node
    assert isinstance(inner.value, Unknown)


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 5000, "- " * 3000 + "x"])
def test_deep_nesting_is_too_deep(text):
    assert read_yaml(text, "deep.yaml").problems[0].kind is ProblemKind.TOO_DEEP


def test_a_large_file_is_not_parsed():
    config = read_yaml("a: 1\n" * (MAX_BYTES // 5 + 1), "data.yaml")
    assert [problem.kind for problem in config.problems] == [ProblemKind.TOO_LARGE]


def test_an_undefined_alias_is_a_problem():
    assert read("a: *nowhere\n").problems[0].kind is ProblemKind.SYNTAX


@pytest.mark.parametrize("data", [b"\x00\x01\x02\xff", b"\xff\xfe\x00"])
def test_binary_data_is_a_problem(data):
    assert read_yaml(data, "x.yaml").problems


def test_bytes_with_a_mark_or_in_latin_1_are_read():
    assert read_yaml(b"\xef\xbb\xbfa: 1\n", "x.yaml").documents[0].root.plain() == {"a": 1}
    config = read_yaml(b"# caf\xe9\na: 1\n", "x.yaml")
    assert config.documents[0].root.plain() == {"a": 1}
    assert [problem.kind for problem in config.problems] == [ProblemKind.ENCODING]


def test_text_of_a_literal_block_has_its_place():
    node = root(
        """\
        run: |  # start
          set -e
          python train.py
        note: 'x y'
        folded: >
          python
          train.py
        """
    )
    assert node.mapping["run"].node.content == Location("sft.yaml", 2, 3)
    assert node.mapping["note"].node.content == Location("sft.yaml", 4, 8)
    assert node.mapping["folded"].node.content is None


PIECES = st.sampled_from(
    ["a: ", "- ", "\n", "  ", "{", "}", "[", "]", "&x ", "*x", "<<: ", "!t ", "|\n", ">\n", '"',
     "'", "${a}", "{{ b }}", "---\n", ":", ",", "? ", "#", "\t", "1e5", "0o8", "\x85", "2024-99-99"]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=60) | st.binary(max_size=60))
def test_no_input_raises(data):
    config = read_yaml(data, "x.yaml")
    for document in config.documents:
        document.root.plain()
        document.settings()


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text("abc ${}\n:#", max_size=8).filter(
            lambda text: "$" not in text and "{" not in text
        ),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text("abc", min_size=1, max_size=4), inner, max_size=3)
        ),
        max_leaves=12,
    )
)
def test_values_agree_with_pyyaml(value):
    text = yaml.safe_dump(value)
    config = read_yaml(text, "x.yaml")
    assert config.problems == ()
    expected = yaml.load(text, yaml.BaseLoader)  # keys as written
    assert config.documents[0].root.plain() == _with_keys(yaml.safe_load(text), expected)


def _with_keys(value, written):
    if isinstance(value, dict):
        return {k: _with_keys(v, written[k]) for v, k in zip(value.values(), written)}
    if isinstance(value, list):
        return [_with_keys(v, w) for v, w in zip(value, written)]
    return value
