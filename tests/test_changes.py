"""What the changes of findings write: settings that hold together, in the right file."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from checks_support import findings, judged, runs_of, status

from flake8_gpu_training.checks.base import Check, Example, Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.patches import unified_diff
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import Run

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
EXAMPLES = [
    pytest.param(check, example, id=f"{check.code}-{number}")
    for check in all_checks()
    for number, example in enumerate(check.examples)
]
ON_A100 = "# 8 x A100 80GB\n"
LAUNCH = ON_A100 + "torchrun --nproc_per_node 8 train.py"
TRAINER = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

args = TrainingArguments(output_dir="out", {})
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
Trainer(model=model, args=args, train_dataset=data).train()
"""
PARSED = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
Trainer(model=model, args=args, train_dataset=data).train()
"""
OPTIONS = """\
import argparse
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--fp16", action="store_true")
args = parser.parse_args()
config = TrainingArguments(
    output_dir="out", fp16=args.fp16, dataloader_num_workers=args.workers
)
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
Trainer(model=model, args=config, train_dataset=data).train()
"""
FACTORY = (
    "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\ndo_train: true\n"
    "finetuning_type: lora\ndataset: alpaca_en_demo\ntemplate: qwen\n{}output_dir: out\n"
)
_SWITCHES = '"fp16": {{"enabled": {}}}, "bf16": {{"enabled": {}}}'
DEEPSPEED = "{{" + _SWITCHES + ', "zero_optimization": {{"stage": 2}}}}\n'
ZERO = 'fp16=True, deepspeed="ds.json"'

IN_FP16 = {
    "constructor": {"train.py": TRAINER.format("fp16=True"), "run.sh": f"{LAUNCH}\n"},
    "flag": {"train.py": PARSED, "run.sh": f"{LAUNCH} --output_dir out --fp16 True\n"},
    "switch": {"train.py": PARSED, "run.sh": f"{LAUNCH} --fp16 --output_dir out\n"},
    "yaml": {
        "train.yaml": FACTORY.format("fp16: true\n"),
        "run.sh": f"{ON_A100}llamafactory-cli train train.yaml\n",
    },
    "swift": {
        "run.sh": f"{ON_A100}swift sft --model Qwen/Qwen2.5-7B-Instruct --train_type lora "
        "--fp16 true --dataset a.jsonl\n"
    },
    "deepspeed": {
        "train.py": TRAINER.format(ZERO),
        "run.sh": f"{LAUNCH}\n",
        "ds.json": DEEPSPEED.format("true", "false"),
    },
}


def applied(root: Path, diff: str) -> None:
    assert diff
    (root / "change.patch").write_bytes(diff.encode())
    subprocess.run(["git", "apply", "-p1", "change.patch"], cwd=root, check=True)
    (root / "change.patch").unlink()


def mistakes(runs: tuple[Run, ...]) -> Counter[str]:
    """How many findings of GPU0xx, by code."""
    codes = [check.code for check in all_checks() if check.code.startswith("GPU0")]
    return Counter({code: len(findings(runs, code)) for code in codes})


def mended(root: Path, code: str) -> tuple[Run, ...]:
    """The runs of the project once the patch of one check is applied."""
    runs = find_runs(Project.open(root))
    changes = [finding.change for finding in findings(runs, code)]
    applied(root, unified_diff(root, [change for change in changes if change is not None]))
    return find_runs(Project.open(root))


def assert_no_new_mistake(root: Path, code: str) -> None:
    runs = find_runs(Project.open(root))
    changes = [finding.change for finding in findings(runs, code)]
    if unified_diff(root, [change for change in changes if change is not None]):
        assert not mistakes(mended(root, code)) - mistakes(runs)


@pytest.mark.parametrize(("check", "example"), EXAMPLES)
def test_the_patch_of_an_example_makes_no_mistake(
    check: Check, example: Example, tmp_path: Path
) -> None:
    runs_of(tmp_path, {**dict(example.files), example.path: example.bad})
    assert_no_new_mistake(tmp_path, check.code)


@pytest.mark.parametrize("code", [check.code for check in all_checks()])
def test_the_patch_of_a_bundled_project_makes_no_mistake(code: str, tmp_path: Path) -> None:
    for project in FIXTURES.iterdir():
        told = project / "findings.txt"
        if told.exists() and code in told.read_text(encoding="utf-8"):
            shutil.copytree(project, tmp_path / project.name)
            assert_no_new_mistake(tmp_path / project.name, code)


@pytest.mark.parametrize("spelling", IN_FP16)
def test_bf16_takes_the_place_of_fp16(spelling: str, tmp_path: Path) -> None:
    runs_of(tmp_path, IN_FP16[spelling])
    assert_no_new_mistake(tmp_path, "GPU201")
    runs_of(tmp_path, IN_FP16[spelling])
    (run,) = mended(tmp_path, "GPU201")
    assert run.value("precision") == "bf16"
    assert status(run, "GPU201") is Status.ENABLED
    fp16 = run.setting("fp16")
    assert fp16 is None or fp16.value is False


def test_deepspeed_is_swapped_with_the_trainer(tmp_path: Path) -> None:
    runs_of(tmp_path, IN_FP16["deepspeed"])
    mended(tmp_path, "GPU201")
    assert (tmp_path / "ds.json").read_text() == DEEPSPEED.format("false", "true")


def test_a_swap_that_cannot_be_written_whole_is_words_only(tmp_path: Path) -> None:
    lone = {"ds.json": '{"fp16": {"enabled": true}, "zero_optimization": {"stage": 2}}\n'}
    (run,) = runs_of(tmp_path, {**IN_FP16["deepspeed"], **lone})
    (finding,) = judged(run, "GPU201").findings
    assert finding.change is not None
    assert finding.change.edits == ()


def test_a_value_from_an_option_is_changed_where_the_command_gives_it(tmp_path: Path) -> None:
    launch = f"{LAUNCH} --workers 0 --fp16\n"
    (run,) = runs_of(tmp_path, {"train.py": OPTIONS, "run.sh": launch})
    (workers,) = judged(run, "GPU501").findings
    assert workers.change is not None
    assert (workers.location.path, workers.change.language) == ("run.sh", "bash")
    assert workers.message.startswith("set --workers 4: ")
    (precision,) = judged(run, "GPU201").findings
    assert precision.change is not None
    assert (precision.change.language, precision.change.edits) == ("bash", ())
    assert precision.message.startswith("set bf16=True in the script instead of --fp16: ")


def test_a_default_of_an_option_is_named_as_one(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, {"train.py": OPTIONS, "run.sh": f"{LAUNCH}\n"})
    (workers,) = judged(run, "GPU501").findings
    assert workers.change is not None
    assert (workers.location.path, workers.change.language) == ("train.py", "python")
    assert workers.message.startswith('set add_argument("--workers", default=4): ')
    assert workers.change.edits == ()


OWN_FILE = """\
import json
import yaml
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

with open("conf.SUFFIX") as file:
    conf = LOAD(file)
args = TrainingArguments(
    output_dir="out",
    num_train_epochs=3,
    dataloader_num_workers=conf["KEY"],
)
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B")
Trainer(model=model, args=args, train_dataset=data).train()
"""


@pytest.mark.parametrize(
    ("suffix", "load", "text", "language", "shown", "said"),
    [
        (
            "yaml",
            "yaml.safe_load",
            "dataloader_num_workers: 0  # slow\n",
            "yaml",
            "dataloader_num_workers: 4\n# dataloader_persistent_workers=True (train.py:7)",
            "set dataloader_num_workers: 4, dataloader_persistent_workers=True (train.py:7): ",
        ),
        (
            "json",
            "json.load",
            '{\n  "dataloader_num_workers": 0\n}\n',
            "json",
            '"dataloader_num_workers": 4,\n// dataloader_persistent_workers=True (train.py:7)',
            'set "dataloader_num_workers": 4, dataloader_persistent_workers=True (train.py:7): ',
        ),
        (
            "yaml",
            "yaml.safe_load",
            "loaders: 0\n",
            "python",
            "dataloader_num_workers=4,\ndataloader_persistent_workers=True,",
            "set dataloader_num_workers=4, dataloader_persistent_workers=True: ",
        ),
    ],
)
def test_a_value_from_a_file_of_the_program_is_shown_as_the_file_has_it(
    suffix: str, load: str, text: str, language: str, shown: str, said: str, tmp_path: Path
) -> None:
    key = "loaders" if "loaders" in text else "dataloader_num_workers"
    script = OWN_FILE.replace("SUFFIX", suffix).replace("LOAD", load).replace("KEY", key)
    files = {"train.py": script, f"conf.{suffix}": text, "run.sh": LAUNCH}
    run = next(run for run in runs_of(tmp_path, files) if run.primary)
    (workers,) = judged(run, "GPU501").findings
    assert workers.change is not None
    assert workers.location.path == f"conf.{suffix}"
    assert (workers.change.language, workers.change.text) == (language, shown)
    assert workers.message.startswith(said)
    assert {edit.location.path for edit in workers.change.edits} == {f"conf.{suffix}", "train.py"}


def test_a_quoted_text_of_a_file_stays_quoted(tmp_path: Path) -> None:
    script = OWN_FILE.replace("SUFFIX", "yaml").replace("LOAD", "yaml.safe_load")
    script = script.replace('dataloader_num_workers=conf["KEY"]', 'optim=conf["optim"]')
    files = {"train.py": script, "conf.yaml": 'optim: "adamw_torch"\n', "run.sh": LAUNCH}
    run = next(run for run in runs_of(tmp_path, files) if run.primary)
    (optimizer,) = judged(run, "GPU306").findings
    assert optimizer.change is not None
    assert optimizer.change.text == 'optim: "adamw_torch_fused"'


@pytest.mark.parametrize(
    ("arguments", "fp16", "bf16", "count"),
    [
        ("fp16=True", "false", "true", 2),
        ("bf16=True", "true", "false", 2),
        ("bf16=True", '"auto"', "true", 0),
        ("seed=1", '"auto"', "true", 1),
        ("seed=1", "false", "false", 0),
        ("bf16_full_eval=True", '"auto"', "true", 0),
        ("**options", '"auto"', "true", 0),
    ],
)
def test_a_precision_only_deepspeed_turns_on_is_a_mismatch(
    arguments: str, fp16: str, bf16: str, count: int, tmp_path: Path
) -> None:
    files = {
        "train.py": TRAINER.format(f'deepspeed="ds.json", {arguments}'),
        "run.sh": f"{LAUNCH}\n",
        "ds.json": DEEPSPEED.format(fp16, bf16),
    }
    assert len(findings(runs_of(tmp_path, files), "GPU013")) == count


def test_advice_that_depends_on_the_model_carries_no_edits(tmp_path: Path) -> None:
    arguments = "ddp_find_unused_parameters=True"
    files = {"train.py": TRAINER.format(arguments), "run.sh": f"{LAUNCH}\n"}
    (finding,) = findings(runs_of(tmp_path, files), "GPU405")
    assert finding.change is not None
    assert finding.change.edits == ()
    (finding,) = findings(runs_of(tmp_path / "warm", files), "GPU601")
    assert finding.change is not None
    assert finding.change.edits == ()
    seeing = "swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --dataset a.jsonl\n"
    (finding,) = findings(runs_of(tmp_path / "vl", {"run.sh": ON_A100 + seeing}), "GPU702")
    assert finding.change is not None
    assert finding.change.edits == ()


@pytest.mark.parametrize(("device", "advised"), [("none", True), ("cpu", False)])
def test_an_offloaded_optimizer_is_not_fused(device: str, advised: bool, tmp_path: Path) -> None:
    zero = f'{{"zero_optimization": {{"stage": 2, "offload_optimizer": {{"device": "{device}"}}}}}}'
    files = {
        "train.py": TRAINER.format('bf16=True, optim="adamw_torch", deepspeed="ds.json"'),
        "run.sh": f"{LAUNCH}\n",
        "ds.json": zero,
    }
    assert bool(findings(runs_of(tmp_path, files), "GPU306")) is advised


def test_what_is_found_reads_as_a_sentence(tmp_path: Path) -> None:
    files = {"train.py": TRAINER.format("bf16=True, logging_steps=1"), "run.sh": f"{LAUNCH}\n"}
    (run,) = runs_of(tmp_path, files)
    assert judged(run, "GPU804").current.en == "logs at every step"
    assert judged(run, "GPU601").evidence[0].text.endswith("training_args.py: warmup_steps 0")
