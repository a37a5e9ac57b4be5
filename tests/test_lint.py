"""gpu-lint's command: what it reads, what it reports, its exit statuses."""

from __future__ import annotations

import ast
import dataclasses
import json
import os
import subprocess

import pytest
import yaml

from flake8_gpu_training import cli
from flake8_gpu_training.checks.registry import all_checks

SCRIPT = """\
NPROC_PER_NODE=2 swift sft \\
    --model Qwen/Qwen2.5-7B-Instruct \\
    --dataset data/train.jsonl \\
    --torch_dtype bfloat16 \\
    --dataloader_num_workers 0
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "train.sh").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lint(capsys, *arguments):
    status = cli.main(list(arguments))
    return status, capsys.readouterr()


def test_findings_give_status_one(project, capsys):
    status, printed = lint(capsys, ".")
    assert status == 1
    assert "train.sh:5:5: GPU501" in printed.out


def test_a_clean_selection_gives_status_zero(project, capsys):
    assert lint(capsys, "--select=GPU010", ".")[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [["nowhere"], ["--min-priority=urgent", "."], ["--jobs=0", "."], ["--explain=GPU999"]],
)
def test_wrong_usage_is_one_line_and_status_two(project, capsys, arguments):
    status, printed = lint(capsys, *arguments)
    assert status == 2
    assert printed.err.startswith("gpu-lint: ")
    assert printed.err.count("\n") == 1


def test_an_empty_folder_is_nothing_to_read(tmp_path, capsys):
    assert lint(capsys, str(tmp_path))[0] == 2


def test_a_single_file_is_checked_within_its_project(project, capsys):
    (project / "other.sh").write_text(SCRIPT)
    _, printed = lint(capsys, "train.sh")
    assert "train.sh:5:5: GPU501" in printed.out
    assert "other.sh" not in printed.out


def test_paths_are_shown_as_seen_from_here(project, capsys, monkeypatch):
    monkeypatch.chdir(project.parent)
    _, printed = lint(capsys, project.name)
    assert f"{project.name}/train.sh:5:5: GPU501" in printed.out


def test_select_and_ignore_choose_codes(project, capsys):
    assert "GPU501" not in lint(capsys, "--ignore=GPU5", ".")[1].out
    only = lint(capsys, "--select=GPU501", ".")[1].out
    assert only.count("\n") == 1


def test_a_noqa_comment_behind_the_command_silences_it(project, capsys):
    (project / "train.sh").write_text(SCRIPT.rstrip() + "  # noqa: GPU501\n")
    assert "GPU501" not in lint(capsys, ".")[1].out


def test_a_baseline_hides_what_was_known(project, capsys):
    assert lint(capsys, "--write-baseline=known.json", ".")[0] == 0
    assert lint(capsys, "--baseline=known.json", ".")[0] == 0
    (project / "new.sh").write_text(SCRIPT)
    assert "new.sh" in lint(capsys, "--baseline=known.json", ".")[1].out


def test_the_diff_mends_and_the_project_is_not_touched(project, capsys):
    _, printed = lint(capsys, "--select=GPU501", "--diff", ".")
    assert "-    --dataloader_num_workers 0" in printed.out
    assert "+    --dataloader_num_workers 4" in printed.out
    assert (project / "train.sh").read_text() == SCRIPT


def test_json_is_a_list_of_diagnostics(project, capsys):
    rows = json.loads(lint(capsys, "--output-format=json", "--select=GPU501", ".")[1].out)
    assert [(row["path"], row["line"], row["run"]) for row in rows] == [
        ("train.sh", 5, "train.sh:1")
    ]


def test_a_deepspeed_file_that_no_run_names_is_judged_by_itself(project, capsys):
    (project / "ds.json").write_text(
        '{\n  "fp16": {"enabled": true},\n  "bf16": {"enabled": true},\n'
        '  "zero_optimization": {"stage": 2}\n}\n'
    )
    assert "ds.json:2:23: GPU010" in lint(capsys, ".")[1].out


def test_a_broken_file_is_a_diagnostic_and_the_rest_goes_on(project, capsys):
    (project / "broken.yaml").write_text("a: [1, 2\nb: }\n")
    (project / "old.py").write_text("import torch\nprint 'x'\n")
    _, printed = lint(capsys, ".")
    assert "broken.yaml:2" in printed.out
    assert "old.py:2" in printed.out
    assert "train.sh:5:5: GPU501" in printed.out


def test_flags_behind_a_comment_line_are_told_lost(project, capsys):
    (project / "train.sh").write_text(
        "swift sft \\\n    --model Qwen/Qwen2.5-7B-Instruct \\\n    # --lora_rank 8 \\\n"
        "    --torch_dtype bfloat16 \\\n    --dataset data/train.jsonl\n"
    )
    assert "train.sh:4:5: GPU003" in lint(capsys, ".")[1].out


def test_a_backslash_at_the_end_of_the_file_harms_nothing(project, capsys):
    (project / "train.sh").write_text(SCRIPT.rstrip() + " \\")
    assert "GPU001" not in lint(capsys, ".")[1].out


TRAINER = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
args = TrainingArguments({arguments})
Trainer(model, args, train_dataset=dataset).train()
"""


def diff_of(project, capsys):
    return lint(capsys, "--diff", "--min-priority=low", ".")[1].out


def test_the_diff_keeps_a_call_without_arguments_valid(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAINER.format(arguments=""))
    line = next(x for x in diff_of(tmp_path, capsys).splitlines() if x.startswith("+args"))
    (call,) = [node for node in ast.walk(ast.parse(line[1:])) if isinstance(node, ast.Call)]
    assert len(call.keywords) > 2


def test_the_diff_indents_as_the_arguments_around(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAINER.format(arguments='\n    output_dir="out",\n'))
    assert "\n+    bf16=True,\n" in diff_of(tmp_path, capsys)


def test_the_diff_keeps_a_json_string_quoted_once(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe = {"model_name_or_path": "Qwen/Qwen2.5-7B", "stage": "sft", "flash_attn": "disabled"}
    (tmp_path / "recipe.json").write_text(json.dumps({**recipe, "finetuning_type": "lora"}))
    (tmp_path / "train.sh").write_text("llamafactory-cli train recipe.json\n")
    assert '"flash_attn": "fa2",' in diff_of(tmp_path, capsys)


def test_the_diff_leaves_argument_vectors_alone(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["swift", "sft", "--model", "Qwen/Qwen2.5-7B-Instruct", "--packing", "false"]
    (tmp_path / "Dockerfile").write_text(f"FROM python:3.11\nCMD {json.dumps(words)}\n")
    assert lint(capsys, ".")[0] == 1
    assert diff_of(tmp_path, capsys) == ""


def test_the_diff_sets_the_attention_where_the_model_is_loaded(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = TRAINER.format(arguments='"out"')
    text = text.replace('2.5-7B"', '2.5-7B", attn_implementation="eager"')
    (tmp_path / "train.py").write_text(text)
    diff = diff_of(tmp_path, capsys)
    assert '2.5-7B", attn_implementation="flash_attention_2")' in diff
    assert diff.count("flash_attention_2") == 1


JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  template:
    spec:
      containers:
      - name: train
        image: train
        resources: {limits: {nvidia.com/gpu: 8}}
"""
SWIFT = "swift sft --model Qwen/Qwen2.5-7B-Instruct"


@pytest.mark.parametrize(
    "command",
    [
        f'command: ["bash", "-c"]\n        args:\n        - |\n          {SWIFT}\n',
        f'command: ["bash", "-c", "{SWIFT}"]\n',
        f"command: {json.dumps(SWIFT.split())}\n",
    ],
)
def test_the_diff_keeps_a_job_file_valid(tmp_path, capsys, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(f"{JOB}        {command}")
    diff = diff_of(tmp_path, capsys)
    if diff:
        (tmp_path / "change.patch").write_text(diff)
        subprocess.run(["git", "apply", "change.patch"], check=True)
    job = yaml.safe_load((tmp_path / "job.yaml").read_text())
    container = job["spec"]["template"]["spec"]["containers"][0]
    words = [*container["command"], *container.get("args", [])]
    assert words[0] in ("bash", "swift")
    assert ("--packing" in words[-1]) is (words[0] == "bash")


def test_the_diff_adds_nothing_to_a_mapping_that_is_merged(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe = "model: Qwen/Qwen2.5-7B-Instruct\ntrain_type: lora\n<<: {packing: false}\n"
    (tmp_path / "recipe.yaml").write_text(recipe)
    (tmp_path / "train.sh").write_text("swift sft --config recipe.yaml\n")
    diff = diff_of(tmp_path, capsys)
    assert "\n+dataloader_num_workers: 4\n" in diff
    assert not any(line.startswith("+<<") and "workers" in line for line in diff.splitlines())


def test_arguments_that_a_class_sets_itself_are_not_missed(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = (
        "class Arguments(TrainingArguments):\n    def __post_init__(self):\n"
        "        self.bf16 = True\n        super().__post_init__()\n\n\nargs = Arguments("
    )
    text = TRAINER.format(arguments='"out"').replace("args = TrainingArguments(", own)
    (tmp_path / "train.py").write_text(text)
    assert "bf16" not in lint(capsys, ".")[1].out


def test_the_diff_turns_on_bf16_for_the_trainer_and_deepspeed_alike(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ds.json").write_text(
        '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": false}}'
    )
    (tmp_path / "train.py").write_text(TRAINER.format(arguments='"out", deepspeed="ds.json"'))
    diff = diff_of(tmp_path, capsys)
    assert ('"enabled": true' in diff) is ("bf16=True" in diff)
    assert "bf16=True" in diff


def test_a_program_for_tpus_is_given_no_advice_about_gpus(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import torch_xla\n" + TRAINER.format(arguments='"out"'))
    assert lint(capsys, ".")[0] == 0


def test_a_named_pipe_is_not_waited_for(project, capsys):
    os.mkfifo(project / "pipe.yaml")
    (project / "train.sh").write_text(SCRIPT + "swift sft --config pipe.yaml\n")
    status, printed = lint(capsys, ".")
    assert status == 1
    assert "train.sh:5:5: GPU501" in printed.out


def test_figures_beyond_any_number_are_no_crash(project, capsys):
    (project / "ds.json").write_text(
        '{"train_micro_batch_size_per_gpu": Infinity, "zero_optimization": {"stage": NaN}}'
    )
    (project / "train.sh").write_text(f"{SCRIPT.rstrip()} --deepspeed ds.json --max_length 1e999\n")
    assert lint(capsys, ".")[0] == 1


def test_a_check_that_fails_costs_no_other_check(project, capsys, monkeypatch):
    def fail(run):
        raise ZeroDivisionError

    first, *others = all_checks()
    broken = dataclasses.replace(first, judge=fail)
    monkeypatch.setattr("flake8_gpu_training.lint.all_checks", lambda: (broken, *others))
    assert "GPU501" in lint(capsys, ".")[1].out


def test_explain_prints_the_page(capsys):
    status, printed = lint(capsys, "--explain", "gpu501")
    assert status == 0
    assert printed.out.startswith("# GPU501")


def test_two_precisions_in_deepspeed_are_one_mistake_told_once(project, capsys):
    (project / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n\n"
        'model = AutoModelForCausalLM.from_pretrained("gpt2")\n'
        "args = TrainingArguments(\n    output_dir='o',\n"
        '    deepspeed={"fp16": {"enabled": True}, "bf16": {"enabled": True}},\n)\n'
        "Trainer(model=model, args=args, train_dataset=data).train()\n"
    )
    _, printed = lint(capsys, "--select=GPU01", "train.py")
    assert [line.split()[1] for line in printed.out.splitlines()] == ["GPU010"]


def test_the_diff_names_files_as_the_findings_do(project, capsys, monkeypatch):
    monkeypatch.chdir(project.parent)
    _, printed = lint(capsys, "--select=GPU501", "--diff", project.name)
    names = {line.split("/", 1)[1].strip() for line in printed.out.splitlines() if "+++" in line}
    assert names
    assert all(name.startswith(f"{project.name}/") for name in names)
    _, printed = lint(capsys, "--select=GPU501", "--diff", str(project))
    assert f"{project.name}/" not in printed.out  # patch takes no absolute names
