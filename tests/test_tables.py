"""The tables say what a version of a framework takes."""

from __future__ import annotations

import pytest

from flake8_gpu_training.frameworks.tables import Table, table_of


def transformers() -> Table:
    table = table_of("transformers")
    assert table is not None
    return table


def test_a_renamed_parameter_is_known_to_the_versions_that_had_it() -> None:
    old = transformers().parameters("TrainingArguments", "4.40.0")
    new = transformers().parameters("TrainingArguments", "5.0.0")
    assert "evaluation_strategy" in old
    assert "eval_strategy" not in old
    assert "evaluation_strategy" not in new
    assert new["eval_strategy"].choices == ("no", "steps", "epoch")
    assert transformers().span("TrainingArguments", "evaluation_strategy") == ("4.30.2", "4.50.3")


@pytest.mark.parametrize(
    ("wanted", "release"),
    [("4.44.0", "4.44.2"), ("4.44.9", "4.44.2"), ("4.10.0", "4.30.2"), ("", "5.24.0")],
)
def test_a_version_is_that_of_the_release_that_stands_for_it(wanted: str, release: str) -> None:
    table = transformers()
    assert table.versions[table.release(wanted)] == release


def test_sections_of_deepspeed_are_groups_and_say_where_others_are_refused() -> None:
    table = table_of("deepspeed")
    assert table is not None
    assert table.refuses_others("zero_optimization.offload_optimizer", "0.16.9")
    assert not table.refuses_others("activation_checkpointing", "0.16.9")
    assert not table.refuses_others("config")
    assert table.refuses_others("fp16", "0.17.6")
    assert not table.refuses_others("fp16", "0.16.9")
    assert "cpu_checkpointing" in table.parameters("activation_checkpointing")


def test_a_trainer_takes_a_former_name_as_long_as_a_decorator_does() -> None:
    table = table_of("trl")
    assert table is not None
    assert table.span("SFTTrainer", "tokenizer") == ("0.7.11", "0.15.2")
    assert table.span("SFTTrainer", "dataset_text_field") == ("0.7.11", "0.12.2")
    assert table.span("KTOTrainer", "processing_class") == ("0.12.2", "1.16.0")
    assert transformers().span("Trainer", "tokenizer") == ("4.30.2", "4.57.6")


def test_there_is_no_table_of_what_was_not_read() -> None:
    assert table_of("no-such-framework") is None
