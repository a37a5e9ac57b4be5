"""A configuration that a run is given and that no parser takes is told with the run."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, runs_of

from flake8_gpu_training.sources.json_source import read_json
from flake8_gpu_training.sources.toml_source import read_toml
from flake8_gpu_training.sources.yaml_source import read_yaml

RECIPE = "model_name_or_path: Qwen/Qwen2.5-7B\n{}finetuning_type: lora\ndataset: d\nstage: sft\n"
MINE = "<<<<<<< HEAD\nfinetuning_type: full\n=======\n"
CONFLICT = RECIPE.format(MINE) + ">>>>>>> theirs\n"
TRAINS = (
    "from transformers import Trainer, TrainingArguments\n"
    'Trainer(args=TrainingArguments("o"), train_dataset=[1]).train()\n'
)
PARSES = (
    "import sys\nfrom transformers import HfArgumentParser, Trainer, TrainingArguments\n"
    "(args,) = HfArgumentParser(TrainingArguments).parse_json_file(sys.argv[1])\n"
    "Trainer(args=args, train_dataset=[1]).train()\n"
)


@pytest.mark.parametrize(
    ("command", "files", "line"),
    [
        ("llamafactory-cli train a.yaml", {"a.yaml": CONFLICT}, 2),
        ("ff-train a_template.yaml", {"a_template.yaml": CONFLICT}, 2),
        ("swift sft --config a.yaml", {"a.yaml": "model: a\n\ttuner_type: lora\n"}, 2),
        ("swift sft --model a --deepspeed a.json", {"a.json": '{"zero_optimization": {'}, 1),
        (
            "accelerate launch --config_file a.yaml train.py",
            {"a.yaml": "num_processes: 8\ndistributed_type: [FSDP\n", "train.py": TRAINS},
            3,
        ),
        ("vllm serve --config a.yaml", {"a.yaml": "model: a\n port: 80\n"}, 2),
        ("python train.py a.json", {"a.json": '{\n"bf16" true}', "train.py": PARSES}, 2),
    ],
)
def test_the_run_stops_at_what_no_parser_takes(
    tmp_path: Path, command: str, files: dict[str, str], line: int
) -> None:
    runs = [r for r in runs_of(tmp_path, {"t.sh": f"{command}\n", **files}) if r.id == "t.sh:1"]
    (found,) = findings(tuple(runs), "GPU001")
    assert found.location.line == line
    assert found.message.endswith("the run stops where it reads it")


@pytest.mark.parametrize(
    "text",
    [
        RECIPE.format(""),
        RECIPE.format("") + "cutoff_len: {{ length }}\n",  # made into YAML before it is read
        RECIPE.format("note: |\n  <<<<<<< HEAD\n"),  # text that YAML takes
    ],
)
def test_what_is_parsed_or_made_later_is_no_fault(tmp_path: Path, text: str) -> None:
    runs = runs_of(tmp_path, {"t.sh": "llamafactory-cli train a.yaml\n", "a.yaml": text})
    assert findings(runs, "GPU001") == []


def test_a_merge_conflict_is_called_one() -> None:
    for config in (
        read_yaml(CONFLICT, "a.yaml"),
        read_json('{\n<<<<<<< a\n"b": 1\n=======\n"b": 2\n>>>>>>> c\n}', "a.json"),
        read_toml("[a]\n<<<<<<< a\nb = 1\n=======\nb = 2\n>>>>>>> c\n", "a.toml"),
    ):
        (problem,) = config.problems
        assert (problem.location.line, "merge conflict" in problem.message) == (2, True)


SECOND = RECIPE.format("") + "---\nbf16: true\n"


@pytest.mark.parametrize(
    ("command", "text", "line"),
    [
        ("llamafactory-cli train a.yaml", SECOND, 5),
        ("llamafactory-cli train a.yaml", f"---\n{RECIPE.format('')}...\n", None),
        ("swift sft --config a.yaml", "model: a\n---\nmodel: b\n", 2),
        (
            "accelerate launch --config_file a.yaml train.py",
            "distributed_type: FSDP\nnum_processes: 8\n---\na: 1\n",
            3,
        ),
        ("accelerate launch --config_file a.yaml train.py", "- num_processes: 8\n", 1),
        ("llamafactory-cli train a.yaml", "- stage: sft\n- dataset: d\n", 1),
        ("python own.py a.yaml", "- text: a sample\n", None),
        ("python own.py a.yaml", "bf16: true\n---\nbf16: false\n", None),  # it may read them all
    ],
)
def test_a_configuration_is_one_mapping(tmp_path: Path, command: str, text: str, line: int) -> None:
    own = PARSES.replace(
        "HfArgumentParser(TrainingArguments).parse_json_file(sys.argv[1])", "read(sys.argv[1])"
    )
    files = {"t.sh": f"{command}\n", "a.yaml": text, "train.py": TRAINS, "own.py": own}
    runs = tuple(r for r in runs_of(tmp_path, files) if r.id == "t.sh:1")
    assert [found.location.line for found in findings(runs, "GPU001")] == [line] * bool(line)


@pytest.mark.parametrize(("encoding", "told"), [("utf-16", 1), ("utf-8", 0)])
def test_a_script_that_no_shell_reads(tmp_path: Path, encoding: str, told: int) -> None:
    text = "swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset a.jsonl\n"
    (tmp_path / "t.sh").write_bytes(text.encode(encoding))
    assert len(findings(runs_of(tmp_path, {}), "GPU001")) == told
