"""GPU025: what the parser of a script, or of a framework, stops at."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, runs_of

SCRIPT = """\
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--arch", choices=["resnet18", "resnet50"], default="resnet18")
parser.add_argument("--data", required=True)
parser.add_argument("--amp", action="store_true")
parser.add_argument("--gpus", type=int, nargs="+")
args = parser.{parse}

model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
for batch in torch.utils.data.DataLoader(load(args.data), batch_size=8):
    model(batch.cuda()).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
TRAINER = """\
import transformers

parser = transformers.HfArgumentParser(transformers.TrainingArguments)
(args,) = parser.parse_args_into_dataclasses()
transformers.Trainer(model=load(), args=args, train_dataset=data()).train()
"""


def told(root: Path, flags: str, script: str = SCRIPT, parse: str = "parse_args()") -> list[str]:
    files = {"train.sh": f"python train.py {flags}\n", "train.py": script.replace("{parse}", parse)}
    runs = runs_of(root, files)
    assert runs, "the files are no run"
    return [f.message for f in findings(runs, "GPU025")]


@pytest.mark.parametrize(
    ("flags", "instruction"),
    [
        ("--data d --amq", "write --amp: train.py has no argument --amq"),
        (
            "--data d --zeta 4",
            "drop --zeta (there is --lr, --arch, --data, --amp, --gpus): train.py has no argument",
        ),
        ("--data d e", "remove 'e' or quote the value"),
        ("--lr 0.2", "add --data with its value"),
        ("--data --amp", "give --data a value or remove it"),
        ("--data d --arch resnet81", "write --arch resnet18: train.py does not take 'resnet81'"),
        ("--data d --arch vit", "choose --arch from resnet18, resnet50"),
        ("--data d --lr fast", "give --lr a value of type float"),
        ("--data d --gpus 0 one", "give --gpus a value of type int"),
    ],
)
def test_the_parser_of_a_script(tmp_path: Path, flags: str, instruction: str) -> None:
    (message,) = told(tmp_path, flags)
    assert message.startswith(instruction)


@pytest.mark.parametrize(
    "flags",
    [
        "--data d",
        "--data=d --lr=1e-3 --amp",
        "--da d --gpus 0 1 2",
        '--data d "$@"',
        "--data d $EXTRA",
        "--data $DATA --lr $LR",
    ],
)
def test_what_it_takes_or_may_take_is_not_told(tmp_path: Path, flags: str) -> None:
    assert told(tmp_path, flags) == []


def test_a_parser_that_keeps_what_it_does_not_know(tmp_path: Path) -> None:
    assert told(tmp_path, "--data d --zeta 4", parse="parse_known_args()[0]") == []


def test_a_parser_with_options_out_of_sight_may_know_the_flag(tmp_path: Path) -> None:
    script = SCRIPT.replace(
        "args = parser", "import other\n\nother.add_options(parser)\nargs = parser"
    )
    assert told(tmp_path, "--data d --zeta 4", script) == []
    looped = SCRIPT.replace(
        "args = parser", "for name in names():\n    parser.add_argument(name)\nargs = parser"
    )
    assert told(tmp_path / "loop", "--data d --zeta 4", looped) == []


@pytest.mark.parametrize(
    "edit",
    [
        "sys.argv.remove('--zeta')",
        "sys.argv = [word for word in sys.argv if word != '--zeta']",
        "command = sys.argv.pop()",
    ],
)
def test_a_command_line_that_the_program_edits_is_not_told(tmp_path: Path, edit: str) -> None:
    script = SCRIPT.replace("args = parser", f"import sys\n\n{edit}\nargs = parser")
    assert told(tmp_path, "--data d --zeta", script) == []


def test_another_library_s_parser_is_not_argparse_s(tmp_path: Path) -> None:
    script = SCRIPT.replace("import argparse", "import simple_parsing as argparse")
    assert told(tmp_path, "--data d --zeta 4", script) == []


@pytest.mark.parametrize("flags", ["--data d --gp 0 --am --a 1", "--data d --lr -1e-4"])
def test_what_is_ambiguous_or_a_number_to_some_releases_is_not_told(
    tmp_path: Path, flags: str
) -> None:
    assert told(tmp_path, flags) == []


def test_a_parser_that_some_branch_uses_is_not_told(tmp_path: Path) -> None:
    script = SCRIPT.replace(
        "args = parser", "if other():\n    args = make()\nelse:\n    args = parser"
    )
    assert told(tmp_path, "--data d --zeta 4", script) == []


@pytest.mark.parametrize(
    ("flags", "instruction"),
    [
        (
            "--output_dir out --per_device_train_batch_size --bf16",
            "give --per_device_train_batch_size a value",
        ),
        ("--output_dir my out --bf16", 'write --output_dir "my out"'),
    ],
)
def test_the_parser_of_the_trainer(tmp_path: Path, flags: str, instruction: str) -> None:
    (message,) = told(tmp_path, flags, TRAINER)
    assert message.startswith(instruction)


def test_switches_of_the_trainer_need_no_value(tmp_path: Path) -> None:
    flags = "--output_dir out --bf16 --report_to wandb tensorboard --gradient_checkpointing"
    assert told(tmp_path, flags, TRAINER) == []


# --- variables ---


def unexported(root: Path, script: str) -> list[str]:
    files = {"train.sh": script, "train.py": SCRIPT.replace("{parse}", "parse_args()")}
    return [f"{f.location.line} {f.message}" for f in findings(runs_of(root, files), "GPU026")]


def test_a_variable_that_is_only_assigned(tmp_path: Path) -> None:
    (message,) = unexported(tmp_path, "CUDA_VISIBLE_DEVICES=0\npython train.py --data d\n")
    assert message.startswith("1 put export in front of CUDA_VISIBLE_DEVICES")


def test_an_empty_line_cuts_variables_off_the_command(tmp_path: Path) -> None:
    script = "OMP_NUM_THREADS=8 \\\nCUDA_VISIBLE_DEVICES=0 \\\n\npython train.py --data d\n"
    assert [message.split()[0] for message in unexported(tmp_path, script)] == ["1", "2"]


@pytest.mark.parametrize(
    "script",
    [
        "CUDA_VISIBLE_DEVICES=0 python train.py --data d\n",
        "export CUDA_VISIBLE_DEVICES=0\npython train.py --data d\n",
        "CUDA_VISIBLE_DEVICES=0\nexport CUDA_VISIBLE_DEVICES\npython train.py --data d\n",
        "set -a\nCUDA_VISIBLE_DEVICES=0\npython train.py --data d\n",
        "NPROC_PER_NODE=2\ntorchrun --nproc_per_node $NPROC_PER_NODE train.py --data d\n",
        "#SBATCH --gres=gpu:2\nCUDA_VISIBLE_DEVICES=0\npython train.py --data d\n",
        "source env.sh\nCUDA_VISIBLE_DEVICES=0\npython train.py --data d\n",
        '. "$HOME/setup.sh"\nCUDA_VISIBLE_DEVICES=0\npython train.py --data d\n',
        "source ~/.bashrc\nCUDA_VISIBLE_DEVICES=0\npython train.py --data d\n",
        "LR=0.1\npython train.py --data d\n",
        "python train.py --data d\nCUDA_VISIBLE_DEVICES=0\n",
    ],
)
def test_a_variable_that_arrives_or_is_the_script_s_own(tmp_path: Path, script: str) -> None:
    assert unexported(tmp_path, script) == []


@pytest.mark.parametrize("sourced", ["env.sh", "venv/bin/activate"])
def test_a_sourced_file_that_is_read_exports_nothing_else(tmp_path: Path, sourced: str) -> None:
    script = f"source {sourced}\nCUDA_VISIBLE_DEVICES=0\npython train.py --data d\n"
    (tmp_path / "env.sh").write_text("export NCCL_DEBUG=INFO\n")
    assert len(unexported(tmp_path, script)) == 1


def test_a_sourced_file_may_have_exported_the_variable(tmp_path: Path) -> None:
    script = "source env.sh\nCUDA_VISIBLE_DEVICES=0\npython train.py --data d\n"
    (tmp_path / "env.sh").write_text("export CUDA_VISIBLE_DEVICES=1\n")
    assert unexported(tmp_path, script) == []


# --- flags of frameworks without a value, or with too many ---


def of_command(root: Path, command: str, **files: str) -> list[str]:
    named = {name.replace("_", "."): text for name, text in files.items()}
    return [
        f.message for f in findings(runs_of(root, {"train.sh": f"{command}\n", **named}), "GPU025")
    ]


SWIFT = "swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset a.jsonl"


@pytest.mark.parametrize("flag", ["--bf16", "--tf32", "--lazy_tokenize"])
def test_a_switch_that_may_be_unset_needs_a_value(tmp_path: Path, flag: str) -> None:
    (message,) = of_command(tmp_path, f"{SWIFT} {flag}")
    assert message.startswith(f"write {flag} true: the parser of ms-swift")


def test_the_same_in_the_parser_of_trl(tmp_path: Path) -> None:
    (message,) = of_command(tmp_path, "trl sft --model_name_or_path a/b --dataset_name c --bf16")
    assert message.startswith("write --bf16 true")


@pytest.mark.parametrize("flag", ["--target_modules", "--lr_scheduler_kwargs", "--max_length"])
def test_other_flags_need_one_too(tmp_path: Path, flag: str) -> None:
    (message,) = of_command(tmp_path, f"{SWIFT} {flag}")
    assert message.startswith(f"give {flag} a value")


@pytest.mark.parametrize(
    "flags",
    ["--packing --attn_impl flash_attn", "--bf16 true", '--max_length "$@"', "--max_length $LONG"],
)
def test_switches_and_flags_that_have_one(tmp_path: Path, flags: str) -> None:
    assert of_command(tmp_path, f"{SWIFT} {flags}") == []


def test_a_list_in_a_file_whose_values_become_flags(tmp_path: Path) -> None:
    text = "model: a/b\ndataset: [a.jsonl, b.jsonl]\nwarmup_steps: {}\n"
    (message,) = of_command(tmp_path / "bad", "swift sft a.yaml", a_yaml=text.format("[5, 5]"))
    assert message.startswith("give warmup_steps one value, not a list")
    assert of_command(tmp_path / "good", "swift sft a.yaml", a_yaml=text.format("[5]")) == []


def test_an_empty_list_of_a_file_is_a_flag_without_words(tmp_path: Path) -> None:
    text = "model: Qwen/Qwen2.5-7B-Instruct\ndataset: a.jsonl\nval_dataset: {}\n"
    command = {"train.sh": "swift sft sft.yaml\n"}
    empty = runs_of(tmp_path / "empty", {"sft.yaml": text.format("[]"), **command})
    (found,) = findings(empty, "GPU025")
    assert found.message.startswith("remove val_dataset, or give it a value: ")
    one = runs_of(tmp_path / "one", {"sft.yaml": text.format("[v.jsonl]"), **command})
    assert findings(one, "GPU025") == []


def test_an_empty_list_leaves_a_switch_that_may_stand_alone(tmp_path: Path) -> None:
    text = "model: a/b\ndataset: a.jsonl\n{}: []\n"
    alone = of_command(tmp_path / "alone", "swift sft a.yaml", a_yaml=text.format("packing"))
    assert alone == []
    (message,) = of_command(
        tmp_path / "value", "swift sft a.yaml", a_yaml=text.format("warmup_steps")
    )
    assert message.startswith("give warmup_steps one value, not a list")


SERVER = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B"


def test_a_comment_behind_a_backslash_is_told_once(tmp_path: Path) -> None:
    last = "--attention-backend triton \\ # the default"
    assert of_command(tmp_path / "last", f"{SERVER} {last}") == []  # GPU003 tells of it
    followed = f"{SERVER} {last}\n  --page-size 1"
    assert of_command(tmp_path / "followed", followed) == []
    (message,) = of_command(tmp_path / "two", f"{SERVER} --attention-backend triton fa3")
    assert message.startswith('write --attention-backend "triton fa3"')


@pytest.mark.parametrize("words", ["<other option>", "<server args>", "<flags>"])
def test_what_an_example_leaves_out_may_be_more_arguments(tmp_path: Path, words: str) -> None:
    assert of_command(tmp_path, f"{SERVER} --otlp-traces-endpoint 0.0.0.0:4317 {words}") == []


def test_an_address_to_fill_in_is_no_second_word(tmp_path: Path) -> None:
    script = "IPS=('<your first ip>' '<your second ip>')\n"
    command = f"{SERVER} --tp 16 --nnodes 2 --dist-init-addr ${{IPS[0]}}:5000"
    assert of_command(tmp_path / "open", script + command) == []
    (message,) = of_command(tmp_path / "two", script.replace("<your first ip>", "a b") + command)
    assert message.startswith('write --dist-init-addr "a b:5000"')
