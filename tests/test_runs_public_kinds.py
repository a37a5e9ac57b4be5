"""Kinds of wiring met in public projects: what a run ends with when its code has choices."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Optional

import pytest

from flake8_gpu_training.facts import Unknown, known
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.branches import holds
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import Run

MakeRun = Callable[..., Run]


@pytest.fixture
def run_of(tmp_path: Path) -> MakeRun:
    """The one run of a project made of ``files``, or of its launch command."""

    def make(files: dict[str, str], launch: Optional[str] = None) -> Run:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return find_runs(Project.open(tmp_path), launch)[0]

    return make


def _value(run: Run, name: str) -> Any:
    value = run.practice(name).value
    return value if known(value) else "unknown"


# --- branches --------------------------------------------------------------------------------

SWITCHED = """\
from dataclasses import dataclass, field

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments


@dataclass
class Extra(TrainingArguments):
    lora_enable: bool = field(default=False)


def train():
    parser = HfArgumentParser(Extra)
    (training_args,) = parser.parse_args_into_dataclasses()
    model = AutoModelForCausalLM.from_pretrained("org/model", attn_implementation="sdpa")
    if training_args.lora_enable:
        model = get_peft_model(model, LoraConfig(r=8))
    Trainer(model=model, args=training_args).train()


train()
"""


@pytest.mark.parametrize(
    ("flags", "tuning"),
    [("", "full"), ("--lora_enable True", "lora"), ("--lora_enable False", "full")],
)
def test_an_adapter_behind_a_switch_counts_when_the_switch_is_on(
    run_of: MakeRun, flags: str, tuning: str
) -> None:
    run = run_of({"train.py": SWITCHED, "run.sh": f"torchrun train.py --bf16 True {flags}\n"})
    assert _value(run, "tuning") == tuning


def test_an_adapter_behind_an_unknown_switch_leaves_the_tuning_open(run_of: MakeRun) -> None:
    run = run_of({"train.py": SWITCHED, "run.sh": "torchrun train.py --lora_enable $LORA\n"})
    value = run.practice("tuning").value
    assert isinstance(value, Unknown)
    assert value.candidates == ("lora",)


EITHER_WAY = """\
import argparse, os
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--resume_from", default=None)
args = parser.parse_args()
checkpoint = latest(args.resume_from)
model = AutoModelForCausalLM.from_pretrained("org/model")
if checkpoint is not None:
    model = PeftModel.from_pretrained(model, checkpoint, is_trainable=True)
else:
    model = get_peft_model(model, LoraConfig(r=8))
Trainer(model=model, args=TrainingArguments("out")).train()
"""


def test_an_adapter_in_both_branches_is_one_in_any_case(run_of: MakeRun) -> None:
    run = run_of({"train.py": EITHER_WAY, "run.sh": "python train.py\n"})
    assert _value(run, "tuning") == "lora"


FROZEN = """\
import argparse
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--tune_projector", action="store_true")
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained("org/model")
if args.tune_projector:
    model.requires_grad_(False)
    for p in model.projector.parameters():
        p.requires_grad = True
Trainer(model=model, args=TrainingArguments("out")).train()
"""


@pytest.mark.parametrize(("flag", "tuning"), [("", "full"), (" --tune_projector", "freeze")])
def test_a_model_frozen_as_a_whole_is_no_full_tuning(
    run_of: MakeRun, flag: str, tuning: str
) -> None:
    run = run_of({"train.py": FROZEN, "run.sh": f"python train.py{flag}\n"})
    assert _value(run, "tuning") == tuning


PATCHED = """\
import argparse
import transformers
from kernels import fast_forward
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


def replace_attn():
    transformers.models.llama.modeling_llama.LlamaAttention.forward = fast_forward


parser = argparse.ArgumentParser()
parser.add_argument("--fast", action="store_true")
args = parser.parse_args()
if args.fast:
    replace_attn()
model = AutoModelForCausalLM.from_pretrained("org/model")
Trainer(model=model, args=TrainingArguments("out")).train()
"""


@pytest.mark.parametrize(("flag", "attention"), [("", "eager"), (" --fast", "unknown")])
def test_a_replaced_forward_leaves_the_attention_open(
    run_of: MakeRun, flag: str, attention: str
) -> None:
    files = {"train.py": PATCHED, "run.sh": f"python train.py{flag}\n"}
    run = run_of({**files, "requirements.txt": "transformers==4.28.0\n"})
    assert _value(run, "attention") == attention


def test_an_attention_set_in_a_branch_that_is_not_taken_is_none(run_of: MakeRun) -> None:
    code = PATCHED.replace("    replace_attn()", '    config._attn_implementation = "eager"')
    run = run_of({"train.py": code, "run.sh": "python train.py\n"})
    assert _value(run, "attention") == "sdpa"


def test_models_for_conditional_generation_are_models(run_of: MakeRun) -> None:
    code = SWITCHED.replace("AutoModelForCausalLM", "MllamaForConditionalGeneration")
    run = run_of({"train.py": code, "run.sh": "torchrun train.py\n"})
    assert _value(run, "attention") == "sdpa"


def test_code_behind_an_early_return_is_reached_by_the_others(run_of: MakeRun) -> None:
    code = """\
import argparse
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


def adapted(model, rank):
    if rank == 0:
        return model
    return get_peft_model(model, LoraConfig(r=rank))


parser = argparse.ArgumentParser()
parser.add_argument("--rank", type=int, default=0)
args = parser.parse_args()
model = adapted(AutoModelForCausalLM.from_pretrained("org/model"), args.rank)
Trainer(model=model, args=TrainingArguments("out")).train()
"""
    assert _value(run_of({"train.py": code, "run.sh": "python train.py\n"}), "tuning") == "full"
    run = run_of({"train.py": code, "run.sh": "python train.py --rank 8\n"})
    assert _value(run, "tuning") == "lora"


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("args.on", True),
        ("not args.on", False),
        ("args.unseen", None),
        ("args.on and args.unseen", None),
        ("args.off and args.unseen", False),
        ("args.unseen or args.on", True),
        ("args.name == 'b'", False),
        ("args.name in ('a', 'b')", True),
        ("args.name.lower() != 'a'", False),
        ("args.rank > 0", True),
        ("0 < args.rank < 4", False),
        ("args.missing is None", True),
        ("getattr(args, 'on', False)", True),
        ("torch.cuda.is_available()", True),
        ("len(args.name) == 1", True),
        ("1 in args.rank", None),
        ("(args.on", None),
        ("lambda: 1", None),
        ("", None),
    ],
)
def test_a_test_holds_as_python_has_it(text: str, outcome: Optional[bool]) -> None:
    values = {"on": True, "off": False, "name": "a", "rank": 8, "missing": None}

    def value_of(path: str) -> Any:
        return values.get(path.rpartition(".")[2], Unknown(path))

    assert holds(text, value_of) is outcome


def test_following_a_program_survives_values_that_are_lists_or_unknown(run_of: MakeRun) -> None:
    code = """\
import yaml
from transformers import Trainer, TrainingArguments


class Tokens:
    def __init__(self, path, extra=()):
        with open(path) as file:
            self.config = yaml.safe_load(file)
        self.add_bos = unseen() if extra else self.config["bos"]

    def encode(self, text, flag=None):
        if self.add_bos or flag:
            parts = [1] if flag else [2]
        else:
            parts = [1] if text else [3]
        for part in parts + ([4] if flag else [5]):
            yield part


Trainer(args=TrainingArguments("out", per_device_train_batch_size=3)).train()
"""
    run = run_of({"train.py": code, "run.sh": "python train.py\n"})
    assert _value(run, "micro_batch_size") == 3


# --- launches --------------------------------------------------------------------------------

LOOP = """\
import torch
from torch.utils.data import DataLoader

loader = DataLoader(data, batch_size=4)
for batch in loader:
    loss = model(batch.cuda())
    loss.backward()
    optimizer.step()
"""


def test_version_is_a_flag_of_the_script_when_it_has_a_value(run_of: MakeRun) -> None:
    run = run_of({"train.py": LOOP, "run.sh": "torchrun --nproc-per-node 2 train.py --version 1\n"})
    assert run.launcher.world_size == 2
    assert run.setting("version") is not None


@pytest.mark.parametrize("words", ["--version", "train.py --help"])
def test_a_command_that_only_asks_starts_nothing(run_of: MakeRun, words: str) -> None:
    run = run_of({"train.py": LOOP, "run.sh": f"torchrun --nproc_per_node 2 {words}\n"})
    assert run.launcher.name == "python"


def test_a_script_in_a_folder_below_is_found_when_it_is_the_only_one(run_of: MakeRun) -> None:
    run = run_of({"pkg/main.py": LOOP, "run.sh": "torchrun --nproc_per_node=4 main.py\n"})
    assert (run.entry, run.launcher.world_size) == ("pkg/main.py", 4)


def test_of_two_scripts_below_none_is_taken(run_of: MakeRun) -> None:
    files = {
        "a/main.py": LOOP,
        "b/main.py": LOOP,
        "run.sh": "torchrun --nproc_per_node=4 main.py\n",
    }
    assert run_of(files).launcher.name == "python"


def test_an_absolute_path_leads_to_where_the_project_lies_elsewhere(tmp_path: Path) -> None:
    root = tmp_path / "vision"
    (root / "jobs").mkdir(parents=True)
    (root / "train.py").write_text(LOOP, encoding="utf-8")
    script = "#SBATCH --ntasks-per-node=4\nsrun python /home/me/vision/train.py --lr 0.1\n"
    (root / "jobs" / "train.sh").write_text(f"#!/bin/bash\n{script}", encoding="utf-8")
    (run,) = find_runs(Project.open(root))
    assert (run.entry, run.launcher.world_size) == ("train.py", 4)


def test_an_absolute_path_to_another_project_leads_nowhere(run_of: MakeRun) -> None:
    run = run_of({"train.py": LOOP, "run.sh": "torchrun --nproc_per_node=8 /opt/other/train.py\n"})
    assert run.launcher.name == "python"


SPAWNED = """\
import argparse
import torch
import torch.multiprocessing as mp


def worker(rank, args):
    for batch in loader:
        loss = model(batch.cuda())
        loss.backward()
        optimizer.step()


parser = argparse.ArgumentParser()
parser.add_argument("--gpus", type=int, default=2)
parser.add_argument("--distributed", action="store_true")
args = parser.parse_args()
"""


@pytest.mark.parametrize(
    ("start", "flags", "world"),
    [
        ("mp.spawn(worker, nprocs=args.gpus, args=(args,))", "--gpus 4", 4),
        ("mp.spawn(worker, nprocs=torch.cuda.device_count(), args=(args,))", "", None),
        ("if args.distributed:\n    mp.spawn(worker, nprocs=4)\nelse:\n    worker(0, args)", "", 1),
        (
            "if args.distributed:\n    mp.spawn(worker, nprocs=4)\nelse:\n    worker(0, args)",
            "--distributed",
            4,
        ),
        ("if torch.cuda.device_count() > 1:\n    mp.spawn(worker, nprocs=4)", "", None),
    ],
)
def test_processes_that_a_script_spawns_are_counted_when_the_branch_is_taken(
    run_of: MakeRun, start: str, flags: str, world: Optional[int]
) -> None:
    run = run_of({"train.py": f"{SPAWNED}{start}\n", "run.sh": f"python train.py {flags}\n"})
    assert run.launcher.world_size == world


def test_a_script_may_give_itself_arguments(run_of: MakeRun) -> None:
    code = """\
import sys
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

sys.argv.append("--per_device_train_batch_size")
sys.argv.append(f"15")
sys.argv.extend(["--bf16", "True", "--output_dir"])
sys.argv.append(f"out/{stamp()}")
(training_args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("org/model")
Trainer(model=model, args=training_args).train()
"""
    run = run_of({"train.py": code, "run.sh": "torchrun train.py --learning_rate 1e-5\n"})
    assert (_value(run, "micro_batch_size"), _value(run, "precision")) == (15, "bf16")
    assert not run.is_open


def test_arguments_that_a_script_gives_itself_in_a_branch_leave_all_open(run_of: MakeRun) -> None:
    code = """\
import sys
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

if len(sys.argv) == 1:
    sys.argv.extend(["--per_device_train_batch_size", "3"])
(training_args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
Trainer(model=AutoModelForCausalLM.from_pretrained("org/model"), args=training_args).train()
"""
    run = run_of({"train.py": code, "run.sh": "torchrun train.py\n"})
    assert run.is_open
    assert _value(run, "micro_batch_size") == "unknown"


# --- loaders and shards ----------------------------------------------------------------------


def test_a_batch_sampler_makes_the_batches(run_of: MakeRun) -> None:
    code = LOOP.replace("batch_size=4", "batch_sampler=sampler, batch_size=1")
    run = run_of({"train.py": code, "run.sh": "python train.py\n"})
    assert _value(run, "micro_batch_size") == "unknown"


SHARDED = """\
import torch
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


def shard(model, blocks, norms):
    exact = MixedPrecisionPolicy(param_dtype=torch.float32)
    mixed = MixedPrecisionPolicy(param_dtype=torch.bfloat16)
    for norm in norms:
        fully_shard(norm, mp_policy={norm})
    fully_shard(model, mp_policy=mixed)


shard(model, blocks, norms)
for batch in loader:
    loss = model(batch.cuda())
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("norm", "precision"), [("mixed", "bf16"), ("exact", "unknown")])
def test_the_precision_is_that_of_the_policies_in_use(
    run_of: MakeRun, norm: str, precision: str
) -> None:
    code = SHARDED.replace("{norm}", norm)
    run = run_of({"train.py": code, "run.sh": "torchrun --nproc_per_node 8 train.py\n"})
    assert _value(run, "precision") == precision


# --- what a second sample of projects showed -------------------------------------------------


@pytest.mark.parametrize(
    ("wrapper", "world"),
    [
        ("singularity exec --nv --bind $HOME:$HOME $HOME/sif/torch.sif", 4),
        ("singularity exec --nv $IMAGE", 4),
        ("singularity exec $BIND_FLAGS torch.sif", 4),
        ("srun apptainer exec --nv ${IMAGE:-torch.sif}", 4),
        ("srun singularity_wrapper exec", 4),
    ],
)
def test_an_image_that_a_variable_names_is_no_flag(
    run_of: MakeRun, wrapper: str, world: int
) -> None:
    run = run_of({"train.py": LOOP, "run.sh": f"{wrapper} torchrun --nproc_per_node 4 train.py\n"})
    assert run.launcher.world_size == world


@pytest.mark.parametrize(
    ("name", "attention"), [("THUDM/chatglm-6b", "unknown"), ("Qwen/Qwen2.5-7B", "sdpa")]
)
def test_a_model_that_may_bring_its_own_code_has_no_default_attention(
    run_of: MakeRun, name: str, attention: str
) -> None:
    code = f"""\
from transformers import AutoModel, Trainer, TrainingArguments

model = AutoModel.from_pretrained("{name}", trust_remote_code=True)
Trainer(model=model, args=TrainingArguments("out")).train()
"""
    assert (
        _value(run_of({"train.py": code, "run.sh": "python train.py\n"}), "attention") == attention
    )


LIGHTNING = """\
import torch
from pytorch_lightning import Trainer
from torch.cuda.amp import autocast

trainer = Trainer(devices=2)
{start}
"""


@pytest.mark.parametrize(
    ("start", "precision"),
    [
        ("trainer.fit(model, loader)", "fp32"),
        ("with autocast():\n    trainer.fit(model, loader)", "fp16"),
        ("with autocast(enabled=False):\n    trainer.fit(model, loader)", "fp32"),
    ],
)
def test_autocast_around_a_trainer_without_a_precision_counts(
    run_of: MakeRun, start: str, precision: str
) -> None:
    code = LIGHTNING.format(start=start)
    assert (
        _value(run_of({"train.py": code, "run.sh": "python train.py\n"}), "precision") == precision
    )


def test_a_trainer_that_is_made_out_of_sight_may_start_any_number(run_of: MakeRun) -> None:
    code = """\
import torch
from pytorch_lightning import Trainer
from project_factory import made

trainer: Trainer = made("trainer")
for batch in loader:
    loss = model(batch.cuda())
    loss.backward()
    optimizer.step()
"""
    assert run_of({"train.py": code, "run.sh": "python train.py\n"}).launcher.world_size is None


def test_the_file_that_the_argument_parser_reads_is_found_under_any_name(run_of: MakeRun) -> None:
    code = """\
import argparse
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--train_args_file", type=str, default="args/small.json")
given = parser.parse_args()
train_args_file = given.train_args_file
parser = HfArgumentParser((TrainingArguments,))
(training_args,) = parser.parse_json_file(json_file=train_args_file)
Trainer(model=AutoModelForCausalLM.from_pretrained("org/model"), args=training_args).train()
"""
    files = {
        "train.py": code,
        "args/small.json": '{"per_device_train_batch_size": 2}',
        "args/large.json": '{"per_device_train_batch_size": 16, "fp16": true}',
        "run.sh": "python train.py --train_args_file args/large.json\n",
    }
    run = run_of(files)
    assert (_value(run, "micro_batch_size"), _value(run, "precision")) == (16, "fp16")


def test_accumulation_under_a_short_name_is_not_taken_for_none(run_of: MakeRun) -> None:
    code = LOOP.replace(
        "    optimizer.step()", "    if step % args.acc_steps == 0:\n        optimizer.step()"
    )
    plain = run_of({"train.py": LOOP, "run.sh": "python train.py\n"})
    assert _value(plain, "gradient_accumulation_steps") == 1
    run = run_of({"train.py": code, "run.sh": "python train.py --acc_steps 4\n"})
    assert _value(run, "gradient_accumulation_steps") != 1


# --- programs that start themselves, configurations that are missing, parts that are frozen ------

ANEW = """\
import subprocess
import sys

import torch
from torch.nn.parallel import DistributedDataParallel


def start_anew(count):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(count)]
    subprocess.run(command + sys.argv)


def main():
    start_anew(2)
    model = DistributedDataParallel(torch.nn.Linear(2, 2).cuda())
    model(torch.ones(2, 2)).sum().backward()


if __name__ == "__main__":
    main()
"""


def test_a_program_that_starts_torchrun_by_itself_leaves_the_ranks_open(run_of: MakeRun) -> None:
    assert run_of({"train.py": ANEW}, "python train.py").launcher.world_size is None


def test_a_program_that_asks_git_for_its_version_is_one_process(run_of: MakeRun) -> None:
    program = ANEW.replace('[sys.executable, "-m", "torch.distributed.run",', '["git", "describe",')
    assert run_of({"train.py": program}, "python train.py").launcher.world_size == 1


ENGINE = """\
import argparse

import deepspeed
import torch
from transformers import AutoModelForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--deepspeed_config", default="ds_config.json")
parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained("org/model", torch_dtype=torch.float16)
engine, _, _, _ = deepspeed.initialize(model=model, config=args.deepspeed_config)
"""
CONFIGURED = '{"bf16": {"enabled": true}, "gradient_accumulation_steps": 4, "train_batch_size": 8}'


def test_a_missing_deepspeed_file_leaves_open_what_it_would_decide(run_of: MakeRun) -> None:
    run = run_of({"train.py": ENGINE}, "deepspeed --num_gpus 8 train.py")
    names = ("precision", "gradient_accumulation_steps", "zero_stage")
    assert [_value(run, name) for name in names] == ["unknown"] * 3


def test_the_deepspeed_file_decides_where_it_lies_in_the_project(run_of: MakeRun) -> None:
    files = {"train.py": ENGINE, "ds_config.json": CONFIGURED}
    run = run_of(files, "deepspeed --num_gpus 8 train.py")
    assert _value(run, "precision") == "bf16"
    assert _value(run, "gradient_accumulation_steps") == 4


VALIDATED = """\
import torch
from accelerate import Accelerator


def log_validation(pipeline):
    with torch.cuda.amp.autocast():
        return pipeline("a house")


def main():
    accelerator = Accelerator(mixed_precision=None)
    model = accelerator.prepare(torch.nn.Linear(2, 2))
    for batch in torch.ones(8, 2, 2):
        accelerator.backward(model(batch).sum())
    log_validation(model)


main()
"""


def test_autocast_of_a_validation_is_not_the_precision_of_training(run_of: MakeRun) -> None:
    run = run_of({"train.py": VALIDATED}, "accelerate launch train.py")
    assert _value(run, "precision") != "fp16"


def test_autocast_of_a_training_step_is_its_precision(run_of: MakeRun) -> None:
    program = VALIDATED.replace("log_validation", "training_step")
    run = run_of({"train.py": program}, "accelerate launch train.py")
    assert _value(run, "precision") == "fp16"


FROZEN_PART = """\
import torch
from torch import nn
from transformers import WavLMModel


class Vocoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.wavlm = WavLMModel.from_pretrained("microsoft/wavlm-base")
        self.head = nn.Linear(768, 2)
        for param in self.wavlm.parameters():
            param.requires_grad = False

    def forward(self, sound):
        return self.head(self.wavlm(sound).last_hidden_state)


model = Vocoder().cuda()
optimizer = torch.optim.AdamW(model.head.parameters())
for sound in torch.ones(4, 1, 16000).cuda():
    model(sound).sum().backward()
    optimizer.step()
"""


def test_a_module_with_a_frozen_part_is_not_said_to_be_trained_in_full(run_of: MakeRun) -> None:
    assert _value(run_of({"train.py": FROZEN_PART}, "python train.py"), "tuning") == "unknown"


def test_a_teacher_that_never_learns_leaves_the_training_a_full_one(run_of: MakeRun) -> None:
    program = FROZEN_PART.replace("in self.wavlm.parameters", "in self.teacher.parameters")
    program = program.replace("model.head.parameters", "model.parameters")
    assert _value(run_of({"train.py": program}, "python train.py"), "tuning") == "full"


SCALED = """\
import argparse

import torch
from timm.utils import NativeScaler


def train_one_epoch(model, criterion, loader, optimizer, loss_scaler):
    for samples, targets in loader:
        with torch.cuda.amp.autocast():
            loss = criterion(model(samples), targets)
        loss_scaler(loss, optimizer, parameters=model.parameters())


@torch.no_grad()
def evaluate(model, loader):
    return [model(samples) for samples, _ in loader]


def main(args):
    model = torch.nn.Linear(2, 2).cuda()
    loader = torch.utils.data.DataLoader(dataset, batch_size=args.batch_size)
    optimizer = torch.optim.AdamW(model.parameters())
    train_one_epoch(model, torch.nn.MSELoss(), loader, optimizer, NativeScaler())
    evaluate(model, loader)


parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", default=128, type=int)
main(parser.parse_args())
"""


def test_a_loop_whose_scaler_goes_backward_trains(run_of: MakeRun) -> None:
    files = {
        "main.py": SCALED,
        "run.sh": "python -m torch.distributed.launch --nproc_per_node=4 main.py\n",
    }
    run = run_of(files)
    assert (run.location.path, run.kind.value, run.launcher.world_size) == ("run.sh", "train", 4)
    assert (_value(run, "micro_batch_size"), _value(run, "precision")) == (128, "fp16")


def test_a_trainer_among_others_that_turns_parsed_arguments_into_its_own_keeps_no_defaults(
    run_of: MakeRun,
) -> None:
    files = {
        "main.py": "from factory.tuner import run\n\nrun()\n",
        "factory/__init__.py": "",
        "factory/hparams.py": """\
import sys

from transformers import HfArgumentParser, TrainingArguments

CLASSES = [TrainingArguments]


def get_args():
    return HfArgumentParser(CLASSES).parse_yaml_file(sys.argv[2])
""",
        "factory/ppo.py": """\
from trl import PPOConfig, PPOTrainer


def run_ppo(model, args):
    config = PPOConfig(mini_batch_size=args.per_device_train_batch_size)
    PPOTrainer(config=config, model=model).train()
""",
        "factory/tuner.py": """\
from transformers import AutoModelForCausalLM, Trainer

from factory.hparams import get_args
from factory.ppo import run_ppo


def run():
    (args,) = get_args()
    model = AutoModelForCausalLM.from_pretrained("org/model")
    if args.stage == "ppo":
        run_ppo(model, args)
    else:
        Trainer(model=model, args=args).train()
""",
    }
    run = run_of(files, "python main.py train dpo.yaml")
    names = ("micro_batch_size", "gradient_accumulation_steps", "zero_stage")
    assert [_value(run, name) for name in names] == ["unknown"] * 3


def test_the_arguments_a_trainer_makes_when_it_gets_none_are_not_those_of_the_script(
    run_of: MakeRun,
) -> None:
    files = {
        "grpo.py": """\
from trl import GRPOConfig, ModelConfig, TrlParser

from own_trainer import OwnTrainer

if __name__ == "__main__":
    training_args, model_args = TrlParser((GRPOConfig, ModelConfig)).parse_args_and_config()
    OwnTrainer(model_args.model_name_or_path, training_args).train()
""",
        "own_trainer.py": """\
from transformers import AutoModelForCausalLM, Trainer
from trl import GRPOConfig


class OwnTrainer(Trainer):
    def __init__(self, model, args=None):
        if args is None:
            args = GRPOConfig(f"{model}-GRPO")
        super().__init__(AutoModelForCausalLM.from_pretrained(model), args)
""",
    }
    flags = "--per_device_train_batch_size 1 --gradient_accumulation_steps 4"
    run = run_of(files, f"torchrun --nproc_per_node 6 grpo.py {flags}")
    assert _value(run, "micro_batch_size") == 1
    assert _value(run, "gradient_accumulation_steps") == 4


def test_adapters_of_two_branches_leave_the_third_open(run_of: MakeRun) -> None:
    program = """\
import sys

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModel

mode = sys.argv[1]
model = AutoModel.from_pretrained("org/model").cuda()
if mode == "qlora":
    model = get_peft_model(model, LoraConfig(r=8))
elif mode == "lora":
    model = get_peft_model(model, LoraConfig(r=16))
for batch in torch.ones(4, 1, 16).cuda():
    model(batch).sum().backward()
"""
    assert _value(run_of({"train.py": program}, "python train.py $MODE"), "tuning") == "unknown"


# --- weights that are frozen -------------------------------------------------------------------

PARTS = """\
import argparse

import torch
from torch import nn

{helper}

class Net(nn.Module):
    def __init__(self, freeze_stem=False):
        super().__init__()
        self.stem = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)
        self.freeze_stem = freeze_stem

    def freeze(self):
        for p in self.stem.parameters():
            p.requires_grad = False


def main(args):
    model = Net().cuda()
    other = Net().cuda()
{freezing}
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in torch.ones(4, 1, 8).cuda():
        model(batch).sum().backward()
        optimizer.step()


parser = argparse.ArgumentParser()
parser.add_argument("--freeze_stem", action="store_true")
main(parser.parse_args())
"""
HELPERS = """\
def set_requires_grad(module, flag):
    for p in module.parameters():
        p.requires_grad = flag


def freeze(module):
    for name, p in module.named_parameters():
        p.requires_grad_(False)

"""


@pytest.mark.parametrize(
    ("freezing", "flags", "tuning"),
    [
        ("pass", "", "full"),
        ("for p in model.stem.parameters():\n    p.requires_grad = False", "", "unknown"),
        ("for p in list(model.stem.parameters())[:1]:\n    p.requires_grad = False", "", "unknown"),
        (
            "for part in [model.stem]:\n    for p in part.parameters():\n"
            "        p.requires_grad = False",
            "",
            "unknown",
        ),
        ("for p in model.parameters():\n    p.requires_grad = False", "", "freeze"),
        ("for p in model.parameters():\n    p.requires_grad = True", "", "full"),
        (
            "for n, p in model.named_parameters():\n    if 'stem' in n:\n"
            "        p.requires_grad = False",
            "",
            "unknown",
        ),
        ("model.stem.requires_grad_(False)", "", "unknown"),
        ("model.stem.requires_grad_()", "", "full"),
        ("set_requires_grad(model.stem, False)", "", "unknown"),
        ("set_requires_grad(model.stem, True)", "", "full"),
        ("set_requires_grad(ema, False)", "", "full"),
        ("freeze(model.stem)", "", "unknown"),
        ("freeze(teacher)", "", "full"),
        ("model.freeze()", "", "unknown"),
        ("config.freeze()", "", "full"),
        ("freeze_support()", "", "full"),
        ("if args.freeze_stem:\n    model.freeze()", "", "full"),
        ("if args.freeze_stem:\n    model.freeze()", "--freeze_stem", "unknown"),
        ("if args.freeze_stem:\n    freeze(model.stem)", "", "full"),
        ("if args.freeze_stem:\n    freeze(model.stem)", "--freeze_stem", "unknown"),
        ("if unseen():\n    freeze(model.stem)", "", "unknown"),
        (
            "teacher = Net()\nfor p in teacher.parameters():\n    p.requires_grad = False",
            "",
            "full",
        ),
        ("ema.requires_grad_(False)", "", "full"),
        (
            "for p, p_k in zip(model.parameters(), other.parameters()):\n"
            "    p_k.data.copy_(p.data)\n    p_k.requires_grad = False",
            "",
            "full",
        ),
    ],
)
def test_what_is_frozen_is_not_said_to_be_trained(
    run_of: MakeRun, freezing: str, flags: str, tuning: str
) -> None:
    lines = "\n".join(f"    {line}" for line in freezing.splitlines())
    code = PARTS.format(helper=HELPERS, freezing=lines)
    run = run_of({"train.py": code, "run.sh": f"python train.py {flags}\n"})
    assert _value(run, "tuning") == tuning


def test_a_switch_of_unseen_code_that_freezes_leaves_the_tuning_open(run_of: MakeRun) -> None:
    for stages, tuning in ((0, "full"), (2, "unknown")):
        option = f'parser.add_argument("--freeze_stages", type=int, default={stages})\n'
        code = SCALED.replace('parser.add_argument("--bat', option + 'parser.add_argument("--bat')
        run = run_of({"main.py": code, "run.sh": "python main.py\n"})
        assert _value(run, "tuning") == tuning


@pytest.mark.parametrize("call", ["set_requires_gradient_sync", "enable_input_require_grads"])
def test_calls_that_only_sound_like_freezing_freeze_nothing(run_of: MakeRun, call: str) -> None:
    code = PARTS.format(helper="", freezing=f"    model.{call}(False)")
    assert _value(run_of({"train.py": code}, "python train.py"), "tuning") == "full"


DIFFUSION = """\
import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from transformers import CLIPTextModel

text_encoder = CLIPTextModel.from_pretrained("org/text")
vae = AutoencoderKL.from_pretrained("org/vae")
unet = UNet2DConditionModel.from_pretrained("org/unet")
vae.requires_grad_(False)
text_encoder.requires_grad_(False)
optimizer = torch.optim.AdamW(unet.parameters())
for batch in torch.ones(4, 1, 8).cuda():
    unet(batch).sum().backward()
    optimizer.step()
"""


def test_what_a_diffusion_model_is_conditioned_by_is_no_part_of_it(run_of: MakeRun) -> None:
    assert _value(run_of({"train.py": DIFFUSION}, "python train.py"), "tuning") == "full"
    inside = DIFFUSION.replace("vae.requires_grad_", "unet.down_blocks.requires_grad_")
    assert _value(run_of({"train.py": inside}, "python train.py"), "tuning") == "unknown"


@pytest.mark.parametrize(
    ("line", "tuning"),
    [
        ("pass", "full"),
        ('model.set_lora_adapter("speech")', "unknown"),
        ("model.enable_adapters()", "unknown"),
        ('model.load_adapter("org/other")', "full"),
    ],
)
def test_a_model_with_code_of_its_own_may_put_adapters_on_itself(
    run_of: MakeRun, line: str, tuning: str
) -> None:
    code = f"""\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("org/speech", trust_remote_code=True)
{line}
Trainer(model=model, args=TrainingArguments("out")).train()
"""
    assert _value(run_of({"train.py": code}, "python train.py"), "tuning") == tuning


ADAPTED_BY_FLAGS = """\
from transformers import AutoModelForCausalLM
from trl import ModelConfig, SFTConfig, SFTTrainer, TrlParser, get_peft_config

training_args, model_args = TrlParser((SFTConfig, ModelConfig)).parse_args_and_config()
model = AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path)
{line}
SFTTrainer(model=model, args=training_args, peft_config=get_peft_config(model_args)).train()
"""


@pytest.mark.parametrize(
    ("line", "tuning"), [("pass", "full"), ("model.visual.requires_grad_(False)", "unknown")]
)
def test_a_frozen_part_counts_with_the_arguments_of_trl_too(
    run_of: MakeRun, line: str, tuning: str
) -> None:
    files = {"sft.py": ADAPTED_BY_FLAGS.format(line=line)}
    assert _value(run_of(files, "python sft.py --use_peft False"), "tuning") == tuning


# --- models of Transformers, and what is loaded beside them ---------------------------------

LOADED = """\
import torch
from transformers import {kind}

model = {kind}.from_pretrained({given})
optimizer = torch.optim.SGD(model.parameters())
for batch in loader:
    model(**batch).loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("kind", "given", "attention"),
    [
        ("AutoModelForCausalLM", "name", "sdpa"),
        ("AutoModelForCausalLM", "name, _attn_implementation='flash_attention_2'", None),
        ("AutoModelForCausalLM", "'bigscience/bloom-7b1'", "eager"),
        ("AutoModelForSeq2SeqLM", "'google/flan-t5-xl'", "sdpa"),
        ("AutoModelForSeq2SeqLM", "name", "unknown"),
        ("T5ForConditionalGeneration", "name", "sdpa"),
        ("AutoModelForSequenceClassification", "'microsoft/deberta-v3-large'", "eager"),
        ("AutoModelForSequenceClassification", "'Qwen/Qwen2.5-7B'", "sdpa"),
        ("LlamaForCausalLM", "name", "sdpa"),
    ],
)
def test_sdpa_is_the_default_of_models_that_have_it(
    run_of: MakeRun, kind: str, given: str, attention: Optional[str]
) -> None:
    run = run_of({"train.py": LOADED.format(kind=kind, given=given)}, "python train.py")
    assert _value(run, "attention") == (attention or "flash_attention_2")


MEASURED = """\
import torch
from transformers import AutoModelForCausalLM


class {owner}(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        self.language = AutoModelForCausalLM.from_pretrained(name)


measure = {owner}("org/model").cuda()
model = torch.nn.Linear(2, 2).cuda()
for batch in loader:
    measure(model(batch)).backward()
"""


@pytest.mark.parametrize(("owner", "attention"), [("FluencyLoss", "unknown"), ("Speaker", "sdpa")])
def test_a_model_that_only_measures_has_not_the_attention_of_training(
    run_of: MakeRun, owner: str, attention: str
) -> None:
    run = run_of({"train.py": MEASURED.format(owner=owner)}, "python train.py")
    assert _value(run, "attention") == attention


SPLIT = """\
import torch
from accelerate import Accelerator

accelerator = Accelerator(split_batches={splits})
loader = torch.utils.data.DataLoader(data, batch_size=16)
model, loader = accelerator.prepare(torch.nn.Linear(2, 2), loader)
for batch in loader:
    accelerator.backward(model(batch).sum())
"""


@pytest.mark.parametrize(
    ("splits", "processes", "batch"),
    [("True", 4, "unknown"), ("args.split", 4, "unknown"), ("False", 4, 16), ("True", 1, 16)],
)
def test_accelerate_may_split_a_batch_among_the_processes(
    run_of: MakeRun, splits: str, processes: int, batch: Any
) -> None:
    launch = f"accelerate launch --num_processes {processes} train.py"
    run = run_of({"train.py": SPLIT.format(splits=splits)}, launch)
    assert _value(run, "micro_batch_size") == batch


@pytest.mark.parametrize(
    ("line", "world"),
    [
        ("import lightning as L", None),
        ("from pytorch_lightning import LightningModule", None),
        ("from pytorch_lightning import seed_everything", 1),
    ],
)
def test_a_trainer_that_a_configuration_makes_may_start_any_number(
    run_of: MakeRun, line: str, world: Optional[int]
) -> None:
    code = f"{line}\nimport torch\nfrom hydra.utils import instantiate\n" + SAMPLED.format(
        context="if True:"
    )
    assert run_of({"train.py": code}, "python train.py").launcher.world_size == world


# --- autocast that is not PyTorch's own -----------------------------------------------------

CHOSEN_CONTEXT = """\
import contextlib

import torch


def context_for(name):
    return contextlib.nullcontext if name == "none" else torch.cuda.amp.autocast


def train(model, loader, optimizer, accelerator, name):
    autocast = context_for(name)
    for batch in loader:
        with {context}:
            loss = model(batch.cuda())
        loss.backward()
        optimizer.step()
"""


def _trained(run_of: MakeRun, program: str, launch: str = "python train.py") -> Run:
    made = "model = torch.nn.Linear(2, 2).cuda()\nloader = torch.utils.data.DataLoader(data)\n"
    start = "train(model, loader, torch.optim.SGD(model.parameters()), None, 'amp')\n"
    return run_of({"train.py": program + made + start}, launch)


@pytest.mark.parametrize(
    ("context", "precision"),
    [
        ("autocast()", "unknown"),
        ("accelerator.autocast()", "unknown"),
        ("torch.autocast('cuda')", "fp16"),
        ("torch.autocast('cuda', torch.bfloat16)", "bf16"),
    ],
)
def test_only_the_autocast_of_pytorch_has_its_default_type(
    run_of: MakeRun, context: str, precision: str
) -> None:
    run = _trained(run_of, CHOSEN_CONTEXT.format(context=context))
    assert _value(run, "precision") == precision


SAMPLED = """\
import torch


@torch.no_grad()
def sample_images(model):
    with torch.autocast("cuda", torch.float16):
        return model(torch.randn(4, 2).cuda())


def train(model, loader, optimizer, accelerator, name):
    for batch in loader:
        {context}
            loss = model(batch.cuda())
        loss.backward()
        optimizer.step()
        sample_images(model)
"""


def test_autocast_of_samples_is_not_the_precision_of_training(run_of: MakeRun) -> None:
    program = SAMPLED.format(context="if True:")
    assert _value(_trained(run_of, program), "precision") == "unknown"


def test_autocast_of_training_counts_beside_that_of_samples(run_of: MakeRun) -> None:
    program = SAMPLED.format(context="with torch.autocast('cuda', torch.bfloat16):")
    assert _value(_trained(run_of, program), "precision") == "bf16"


def test_autocasts_that_disagree_leave_the_precision_open(run_of: MakeRun) -> None:
    program = SAMPLED.replace("sample_images", "targets")
    program = program.format(context="with torch.autocast('cuda', torch.bfloat16):")
    assert _value(_trained(run_of, program), "precision") == "unknown"


SWITCHED_BY_NOBODY = """\
import torch
from torch.distributed.fsdp import FullyShardedDataParallel

import settings

model = torch.nn.Linear(2, 2).cuda()
{wrap}
loader = torch.utils.data.DataLoader(data)
optimizer = torch.optim.SGD(model.parameters())
for batch in loader:
{forward}
    loss.backward()
    optimizer.step()
"""
_PLAIN = "    loss = model(batch).sum()"
_CAST = """\
    if settings.load().{switch}:
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(batch).sum()
    else:
        {otherwise}:
            loss = model(batch).sum()"""


@pytest.mark.parametrize(
    ("wrap", "fsdp"),
    [
        ("model = FullyShardedDataParallel(model)", "full_shard"),
        ("if settings.load().shards:\n    model = FullyShardedDataParallel(model)", "unknown"),
        (
            "if torch.distributed.is_initialized():\n    model = FullyShardedDataParallel(model)",
            "full_shard",
        ),
    ],
)
def test_shards_that_a_switch_out_of_sight_makes_are_not_claimed(
    run_of: MakeRun, wrap: str, fsdp: str
) -> None:
    code = SWITCHED_BY_NOBODY.format(wrap=wrap, forward=_PLAIN)
    assert (
        _value(run_of({"train.py": code}, "torchrun --nproc_per_node 8 train.py"), "fsdp") == fsdp
    )


@pytest.mark.parametrize(
    ("otherwise", "precision"),
    [
        ("if True", "unknown"),
        ("with torch.autocast('cuda', torch.float16)", "unknown"),
    ],
)
def test_autocast_that_a_switch_out_of_sight_makes_is_not_claimed(
    run_of: MakeRun, otherwise: str, precision: str
) -> None:
    forward = _CAST.format(switch="amp", otherwise=otherwise)
    code = SWITCHED_BY_NOBODY.format(wrap="", forward=forward)
    run = run_of({"train.py": code}, "torchrun --nproc_per_node 8 train.py")
    assert _value(run, "precision") == precision


# --- loops of libraries ---------------------------------------------------------------------

DRIVEN = """\
import sys

import torch
{engine}

model = torch.nn.Linear(2, 2).cuda()
{loop}
"""


@pytest.mark.parametrize(
    ("engine", "loop", "silence"),
    [
        ("from mmengine.runner import Runner", "Runner.from_cfg(sys.argv[1]).train()", "unknown"),
        ("from fastai.learner import Learner", "Learner(data, model).fit(3)", "unknown"),
        (
            "from mmengine.logging import print_log",
            "optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)\n"
            "for batch in loader:\n    model(batch).sum().backward()\n    optimizer.step()",
            1,
        ),
    ],
)
def test_where_a_library_has_the_loop_the_code_s_silence_proves_nothing(
    run_of: MakeRun, engine: str, loop: str, silence: Any
) -> None:
    run = run_of({"train.py": DRIVEN.format(engine=engine, loop=loop)}, "torchrun train.py a.yaml")
    assert _value(run, "gradient_accumulation_steps") == silence
    assert _value(run, "tuning") == ("full" if silence == 1 else "unknown")


SHARED_OUT = """\
import numpy as np
import torch
from accelerate import Accelerator
from torch.utils.data import BatchSampler, DataLoader

from samplers import ByLength


def main():
    accelerator = Accelerator()
    size = {size}
    sampler = {sampler}(torch.utils.data.RandomSampler(data), size, drop_last=True)
    loader = DataLoader(data, {given})
    model = accelerator.prepare(torch.nn.Linear(2, 2))
    for batch in loader:
        accelerator.backward(model(batch).sum())


main()
"""


@pytest.mark.parametrize(
    ("size", "sampler", "given", "batch"),
    [
        ("256 // accelerator.num_processes", "BatchSampler", "batch_size=size", 64),
        ("int(np.round(256 / accelerator.num_processes))", "BatchSampler", "batch_size=size", 64),
        ("256 // accelerator.num_processes", "BatchSampler", "batch_sampler=sampler", 64),
        ("256 // accelerator.num_processes", "ByLength", "batch_sampler=sampler", "unknown"),
        ("256 // accelerator.local_process_index", "BatchSampler", "batch_size=size", "unknown"),
    ],
)
def test_a_batch_is_shared_out_among_the_processes_that_are_launched(
    run_of: MakeRun, size: str, sampler: str, given: str, batch: Any
) -> None:
    code = SHARED_OUT.format(size=size, sampler=sampler, given=given)
    run = run_of({"train.py": code}, "accelerate launch --num_processes 4 train.py")
    assert _value(run, "micro_batch_size") == batch


RANKS = """\
import multiprocessing as mp
import sys

import torch


def work(rank, size):
    {group}
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2).cuda())
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()


if __name__ == "__main__":
    for rank in range(len(sys.argv)):
        mp.Process(target=work, args=(rank, len(sys.argv))).start()
"""


@pytest.mark.parametrize(
    ("group", "world"),
    [
        ("torch.distributed.init_process_group('nccl', rank=rank, world_size=size)", None),
        ("torch.cuda.set_device(rank)", 1),
    ],
)
def test_processes_that_make_a_group_are_ranks(
    run_of: MakeRun, group: str, world: Optional[int]
) -> None:
    run = run_of({"train.py": RANKS.format(group=group)}, "python train.py 0 1 2")
    assert run.launcher.world_size == world


CHOSEN_STRATEGY = """\
import settings
from pytorch_lightning import Trainer
from pytorch_lightning.strategies import DeepSpeedStrategy

{choice}
Trainer(devices=8, strategy=strategy).fit(model, loader)
"""


@pytest.mark.parametrize(
    ("choice", "stage"),
    [
        ("strategy = DeepSpeedStrategy(stage=3)", 3),
        (
            "strategy = 'ddp'\nif settings.load().big:\n    strategy = DeepSpeedStrategy(stage=3)",
            "unknown",
        ),
    ],
)
def test_a_strategy_of_a_branch_that_nobody_decides_is_not_claimed(
    run_of: MakeRun, choice: str, stage: Any
) -> None:
    run = run_of({"train.py": CHOSEN_STRATEGY.format(choice=choice)}, "python train.py")
    assert _value(run, "zero_stage") == stage


@pytest.mark.parametrize(("switch", "ddp"), [("ddp", True), ("careful", "unknown")])
def test_several_ranks_answer_whether_they_share_the_model(
    run_of: MakeRun, switch: str, ddp: Any
) -> None:
    wrap = (
        f"{switch} = settings.load()\nif {switch}:\n"
        "    model = torch.nn.parallel.DistributedDataParallel(model)"
    )
    code = SWITCHED_BY_NOBODY.format(wrap=wrap, forward=_PLAIN)
    code = code.replace("from torch.distributed.fsdp import FullyShardedDataParallel\n", "")
    assert _value(run_of({"train.py": code}, "torchrun --nproc_per_node 8 train.py"), "ddp") == ddp


MEASURED_BY = """\
import torch


class {owner}(torch.nn.Module):
    def __init__(self, requires_grad=False):
        super().__init__()
        self.blocks = torch.nn.Linear(2, 2)
        for param in self.parameters():
            param.requires_grad = requires_grad


measure = {owner}().cuda()
model = torch.nn.Linear(2, 2).cuda()
optimizer = torch.optim.SGD(model.parameters())
for batch in loader:
    model(batch).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("owner", "tuning"),
    [("InceptionV3", "full"), ("SpectralLoss", "full"), ("Backbone", "unknown")],
)
def test_a_network_that_only_measures_is_no_frozen_part(
    run_of: MakeRun, owner: str, tuning: str
) -> None:
    run = run_of({"train.py": MEASURED_BY.format(owner=owner)}, "python train.py")
    assert _value(run, "tuning") == tuning


# --- Hydra: folders and classes that are put together ---------------------------------------

STARTED_BY_CONFIGURATION = """\
import os
import pathlib
from importlib.resources import files

import hydra


@hydra.main(version_base=None, config_path={folder}, config_name="small")
def main(cfg):
    job = hydra.utils.get_class(cfg._target_)(cfg)
    job.run()


main()
"""
JOB = """\
import torch


class Job:
    def __init__(self, cfg):
        self.cfg = cfg

    def run(self):
        loader = torch.utils.data.DataLoader(data, batch_size=self.cfg.batch)
        for batch in loader:
            model(batch.cuda()).backward()
            optimizer.step()
"""


@pytest.mark.parametrize(
    ("folder", "batch"),
    [
        ("'settings'", 24),
        ("str(pathlib.Path(__file__).parent.joinpath('settings'))", 24),
        ("str(pathlib.Path(__file__).resolve().parent / 'settings')", 24),
        ("os.path.join(os.path.dirname(os.path.abspath(__file__)), 'settings')", 24),
        ("str(files('jobs').joinpath('settings'))", 24),
        ("os.environ['SETTINGS']", None),
    ],
)
def test_the_class_that_hydra_s_configuration_names_has_the_loop(
    run_of: MakeRun, folder: str, batch: Optional[int]
) -> None:
    files = {
        "jobs/start.py": STARTED_BY_CONFIGURATION.format(folder=folder),
        "jobs/settings/small.yaml": "_target_: jobs.work.Job\nbatch: 24\n",
        "jobs/work.py": JOB,
    }
    run = run_of(files, "python jobs/start.py")
    assert (run.entry == "jobs/start.py") is (batch is not None)
    assert _value(run, "micro_batch_size") == (batch or "unknown")


LOADER_OF_ITS_OWN = """\
import hydra
import torch


class Batches:
    def __init__(self, dataset, size, shuffle=True):
        self.loader = torch.utils.data.DataLoader(dataset, batch_size=size, shuffle=shuffle)


@hydra.main(version_base=None, config_path="settings", config_name="small")
def main(cfg):
    batches = hydra.utils.instantiate(cfg.batches{given})
    for batch in batches{later}.loader:
        model(batch.cuda()).sum().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("given", "later", "batch"),
    [
        (", dataset=data", "", 24),
        (", _partial_=True", "(dataset=data, size=rank_size())", "unknown"),
    ],
)
def test_what_hydra_makes_in_part_may_be_given_other_arguments(
    run_of: MakeRun, given: str, later: str, batch: Any
) -> None:
    files = {
        "train.py": LOADER_OF_ITS_OWN.format(given=given, later=later),
        "settings/small.yaml": "batches:\n  _target_: train.Batches\n  size: 24\n",
    }
    assert _value(run_of(files, "python train.py"), "micro_batch_size") == batch


# --- batches that are dealt out or cut up ----------------------------------------------------

DEALT_OUT = """\
import torch

model = torch.nn.Linear(2, 2).cuda()
if torch.cuda.device_count() > 1:
    model = torch.nn.DataParallel(model)
loader = torch.utils.data.DataLoader(data, batch_size=128)
optimizer = torch.optim.SGD(model.parameters())
for batch in loader:
    model(batch.cuda()).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("launch", "batch"),
    [
        ("CUDA_VISIBLE_DEVICES=0,1,2,3 python train.py", "unknown"),
        ("CUDA_VISIBLE_DEVICES=0 python train.py", 128),
        ("torchrun --nproc_per_node 2 train.py", 128),
    ],
)
def test_data_parallel_deals_a_batch_out_to_its_gpus(
    run_of: MakeRun, launch: str, batch: Any
) -> None:
    assert _value(run_of({"train.py": DEALT_OUT}, launch), "micro_batch_size") == batch


CUT_UP = """\
import torch

model = torch.nn.Linear(2, 2).cuda()
loader = torch.utils.data.DataLoader(data, batch_size=32)
optimizer = torch.optim.SGD(model.parameters())
for batch in loader:
    for part in range(0, len(batch), size):
        model(batch[part:part + size].cuda()).sum().backward()
{update}
"""


def test_a_step_of_several_backward_passes_accumulates(run_of: MakeRun) -> None:
    run = run_of({"train.py": CUT_UP.format(update="    optimizer.step()")}, "python train.py")
    assert _value(run, "gradient_accumulation_steps") == "unknown"
    assert _value(run, "micro_batch_size") == "unknown"


def test_an_update_after_each_backward_pass_does_not_accumulate(run_of: MakeRun) -> None:
    run = run_of({"train.py": CUT_UP.format(update="        optimizer.step()")}, "python train.py")
    assert _value(run, "gradient_accumulation_steps") == 1
    assert _value(run, "micro_batch_size") == "unknown"  # a part is what goes through at once


# --- shards, kernels and casts by a branch -----------------------------------------------------

RESHARDED = """\
import argparse

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

parser = argparse.ArgumentParser()
parser.add_argument("--reshard", type=int, default=1)
parser.add_argument("--sharded", action="store_true")
args = parser.parse_args()
model = build()
{shard}
for batch in loader:
    model(batch.cuda()).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("shard", "fsdp"),
    [
        ("fully_shard(model)", "full_shard"),
        ("fully_shard(model, reshard_after_forward=False)", "shard_grad_op"),
        ("fully_shard(model, reshard_after_forward=config.reshard)", "unknown"),
        ("fully_shard(model, **options())", "unknown"),
        (
            "for block in model.blocks:\n    fully_shard(block, reshard_after_forward=True)\n"
            "fully_shard(model, reshard_after_forward=False)",
            "full_shard",
        ),
        (
            "for i, block in enumerate(model.blocks):\n"
            "    fully_shard(block, reshard_after_forward=i < last)\nfully_shard(model)",
            "unknown",
        ),
        ("if args.sharded:\n    fully_shard(model)", "unknown"),
        ("if asked():\n    fully_shard(model)", "unknown"),
        ("if torch.distributed.is_initialized():\n    fully_shard(model)", "full_shard"),
        ("mesh = init_device_mesh('cuda', (8,))\nfully_shard(model, mesh=mesh)", "full_shard"),
        ("mesh = init_device_mesh('cuda', (2, 4))\nfully_shard(model, mesh=mesh)", "unknown"),
        ("fully_shard(model, mesh=unseen())", "unknown"),
    ],
)
def test_shards_are_kept_or_not_as_the_program_says(run_of: MakeRun, shard: str, fsdp: str) -> None:
    code = RESHARDED.format(shard=shard)
    run = run_of({"train.py": code, "run.sh": "torchrun --nproc_per_node 8 train.py\n"})
    assert _value(run, "fsdp") == fsdp


KERNELS = """\
import torch
import torch.nn.functional as F
from flash_attn import flash_attn_func
from torch import nn
from torch.nn.attention.flex_attention import flex_attention


class Fast(nn.Module):
    def forward(self, q, k, v):
        return {fast}(q, k, v)


class Plain(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)


KINDS = dict(fast=Fast, plain=Plain)
model = KINDS[unseen()]().cuda()
for batch in loader:
    model(batch.cuda()).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("fast", "attention"),
    [
        ("F.scaled_dot_product_attention", "sdpa"),
        ("flash_attn_func", ("flash_attention_2", "sdpa")),
        ("flex_attention", ("flex_attention", "sdpa")),
    ],
)
def test_of_several_kernels_none_is_said_to_be_taken(
    run_of: MakeRun, fast: str, attention: Any
) -> None:
    run = run_of({"train.py": KERNELS.format(fast=fast)}, "python train.py")
    value = run.practice("attention").value
    assert (value if known(value) else value.candidates) == attention


CASTS = """\
import argparse

import torch
from torch import nn


class Norm(nn.Module):
    def forward(self, x):
        with torch.autocast("cuda", dtype=torch.float32):
            return x


parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true")
args = parser.parse_args()


def encode(text):
    {encoding}
        return text


def main():
    model = nn.Sequential(nn.Linear(2, 2), Norm()).cuda()
    for step, batch in enumerate(torch.ones(8, 2, 2).cuda()):
{training}
        loss.backward()
        if step % 100 == 0:
            pipeline = build(model)
            {showing}
                image = pipeline("a house")


main()
"""
PLAIN = "loss = model(batch).sum()"
NOTHING = "if True:"
CAST = 'with torch.autocast("cuda", dtype=torch.bfloat16):'


@pytest.mark.parametrize(
    ("training", "showing", "encoding", "precision"),
    [
        (PLAIN, CAST, NOTHING, "unknown"),
        (f"{CAST}\n    {PLAIN}", CAST.replace("bfloat16", "float16"), NOTHING, "bf16"),
        (f"{CAST}\n    {PLAIN}", NOTHING, CAST.replace("bfloat16", "float16"), "bf16"),
        (PLAIN, NOTHING, CAST, "unknown"),
        (f"if args.amp:\n    {CAST}\n        {PLAIN}", NOTHING, NOTHING, "unknown"),
        (f"if use_amp():\n    {CAST}\n        {PLAIN}", NOTHING, NOTHING, "unknown"),
    ],
)
def test_a_cast_counts_where_it_is_around_the_training_step(
    run_of: MakeRun, training: str, showing: str, encoding: str, precision: str
) -> None:
    lines = "\n".join(f"        {line}" for line in training.splitlines())
    code = CASTS.format(training=lines, showing=showing, encoding=encoding)
    value = _value(run_of({"train.py": code}, "python train.py"), "precision")
    assert value == precision or (precision == "unknown" and value == "fp32")


# --- paths of another machine ------------------------------------------------------------------

ARGUMENTS = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
from trl import TrlParser

(args,) = {parse}
Trainer(model=AutoModelForCausalLM.from_pretrained("org/model"), args=args).train()
"""
BY_TRL = ARGUMENTS.format(parse="TrlParser(TrainingArguments).parse_args_and_config()")
BY_FLAGS = ARGUMENTS.format(
    parse="HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()"
)
ZERO_3 = '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}'


@pytest.mark.parametrize(
    ("path", "batch"),
    [
        ("recipes/small.yaml", 2),
        ("/home/me/elsewhere/recipes/small.yaml", 2),
        ("$WORK/recipes/small.yaml", 2),
        ("/home/me/small.yaml", 2),
        ("/home/me/other/recipes/large.yaml", "unknown"),
        ("$WORK/recipes/large.yaml", "unknown"),
        ("$RECIPE", "unknown"),
        ("/home/me/config.yaml", "unknown"),
    ],
)
def test_a_file_of_arguments_is_read_where_only_one_can_be_meant(
    run_of: MakeRun, path: str, batch: Any
) -> None:
    files = {
        "sft.py": BY_TRL,
        "recipes/small.yaml": "per_device_train_batch_size: 2\n",
        "recipes/config.yaml": "per_device_train_batch_size: 4\n",
        "run.sh": f"accelerate launch --num_processes 4 sft.py --config {path}\n",
    }
    run = run_of(files)
    assert _value(run, "micro_batch_size") == batch
    assert run.is_open == (batch == "unknown")


@pytest.mark.parametrize(
    ("path", "stage"),
    [
        ("/data/me/x/configs/ds_z3.json", 3),
        ("${HERE}/configs/ds_z3.json", 3),
        ("/data/me/x/configs/ds_z2.json", "unknown"),
        ("/data/me/x/two/zero.json", 3),
        ("/data/me/x/zero.json", "unknown"),
    ],
)
def test_a_deepspeed_file_is_read_where_only_one_can_be_meant(
    run_of: MakeRun, path: str, stage: Any
) -> None:
    files = {
        "train.py": BY_FLAGS,
        "configs/ds_z3.json": ZERO_3,
        "one/zero.json": ZERO_3.replace("3", "2"),
        "two/zero.json": ZERO_3,
        "run.sh": f"torchrun --nproc_per_node 4 train.py --bf16 True --deepspeed {path}\n",
    }
    assert _value(run_of(files), "zero_stage") == stage


@pytest.mark.parametrize(
    ("path", "entry"),
    [
        ("/home/me/proj/train.py", "src/train.py"),
        ("$PROJECT/train.py", "src/train.py"),
        ("/home/me/proj/eval.py", None),
    ],
)
def test_a_script_on_another_machine_is_the_only_one_of_its_name(
    run_of: MakeRun, path: str, entry: Optional[str]
) -> None:
    run = run_of({"src/train.py": LOOP, "jobs/run.sh": f"torchrun --nproc_per_node=8 {path}\n"})
    assert (run.entry if run.launcher.name == "torchrun" else None) == entry


# --- flags that are cut short ------------------------------------------------------------------

WITH_OWN_CLASS = """\
from dataclasses import dataclass, field

from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
from elsewhere import Unseen


@dataclass
class Own:
    gradient_noise: float = field(default=0.0)


own, args = HfArgumentParser(({classes})).parse_args_into_dataclasses()
Trainer(model=AutoModelForCausalLM.from_pretrained("org/model"), args=args).train()
"""


@pytest.mark.parametrize(
    ("classes", "flags", "batch"),
    [
        ("Own, TrainingArguments", "--per_device_train_batch 2", 2),
        ("Own, TrainingArguments", "--per-device-train-batch 2", 2),
        ("Own, TrainingArguments", "--per_device 2", 8),
        ("Own, TrainingArguments", "--per_device_train_b 2 --per_device_train_batch_size 4", 4),
        ("Own, TrainingArguments", "--per_device_train_batch_size 4 --per_device_train_b 2", 2),
        ("Unseen, TrainingArguments", "--per_device_train_batch 2", "unknown"),
        ("Unseen, TrainingArguments", "--per_device_train_batch_size 2", 2),
    ],
)
def test_a_flag_cut_short_counts_where_only_one_begins_so(
    run_of: MakeRun, classes: str, flags: str, batch: Any
) -> None:
    files = {"train.py": WITH_OWN_CLASS.format(classes=classes)}
    assert _value(run_of(files, f"python train.py {flags}"), "micro_batch_size") == batch


def test_a_beginning_that_a_field_of_the_project_shares_is_not_unique(run_of: MakeRun) -> None:
    files = {"train.py": WITH_OWN_CLASS.format(classes="Own, TrainingArguments")}
    run = run_of(files, "python train.py --gradient_a 2")
    assert _value(run, "gradient_accumulation_steps") == 2
    files["train.py"] = files["train.py"].replace("gradient_noise", "gradient_aside")
    run = run_of(files, "python train.py --gradient_a 2")
    assert _value(run, "gradient_accumulation_steps") == 1


# --- launches of what is not recognised ----------------------------------------------------------

WRAPPED = "from wrapper import start\n\nstart()\n"


@pytest.mark.parametrize(
    ("launch", "asked", "world"),
    [
        ("torchrun --nproc_per_node=8 tools/train.py configs/a.py --launcher pytorch", False, 8),
        ("torchrun --nproc_per_node=8 tools/absent.py --lr 0.1", True, 8),
        ("torchrun --nproc_per_node=8 tools/absent.py --lr 0.1", False, None),
        ("accelerate launch --num_processes 4 -m wrapper.train", True, 4),
        ("torchrun --nproc_per_node=8 tools/evaluate.py", True, None),
        ("python tools/train.py", True, None),
    ],
)
def test_a_launch_of_a_program_that_is_not_recognised_is_an_open_run(
    tmp_path: Path, launch: str, asked: bool, world: Optional[int]
) -> None:
    (tmp_path / "tools").mkdir()
    for name in ("train", "evaluate"):
        (tmp_path / "tools" / f"{name}.py").write_text(WRAPPED, encoding="utf-8")
    (tmp_path / "run.sh").write_text(f"{launch}\n", encoding="utf-8")
    runs = find_runs(Project.open(tmp_path), "bash run.sh" if asked else None)
    assert [run.launcher.world_size for run in runs] == ([world] if world else [])
    names = ("precision", "micro_batch_size", "gradient_accumulation_steps", "tuning", "zero_stage")
    for run in runs:
        assert run.is_open
        assert [_value(run, name) for name in names] == ["unknown"] * len(names)
        assert _value(run, "attention") == _value(run, "fsdp") == "unknown"


def test_a_program_that_trains_is_preferred_to_one_that_is_not_recognised(run_of: MakeRun) -> None:
    script = "torchrun --nproc_per_node=8 tools/absent.py --lr 0.1\npython train.py\n"
    assert run_of({"train.py": LOOP, "run.sh": script}).entry == "train.py"


@pytest.mark.parametrize(
    ("flags", "framework"),
    [
        ("--stage sft --do_train --template qwen --dataset mine", "llamafactory"),
        ("--stage sft --finetuning_type full --do_train", "llamafactory"),
        ("--stage two --do_train --dataset mine", "generic"),
    ],
)
def test_flags_of_llama_factory_tell_a_script_that_is_absent(
    run_of: MakeRun, flags: str, framework: str
) -> None:
    run = run_of({"run.sh": f"deepspeed --num_gpus 4 src/train.py {flags}\n"}, "bash run.sh")
    assert (run.framework, run.launcher.world_size) == (framework, 4)


FROM_FILE = """\
import argparse

import torch
import yaml

parser = argparse.ArgumentParser()
parser.add_argument("--config")
config = yaml.safe_load(open(parser.parse_args().config))
loader = torch.utils.data.DataLoader(data, batch_size=config["batch"])
for batch in loader:
    model(batch.cuda()).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("pattern", "batches"), [("configs/*.yaml", [2, 3]), ("other/*.yaml", [])])
def test_a_loop_over_files_is_one_run_for_each(
    tmp_path: Path, pattern: str, batches: list[int]
) -> None:
    (tmp_path / "configs").mkdir()
    for name, batch in (("a", 2), ("b", 3)):
        (tmp_path / "configs" / f"{name}.yaml").write_text(f"batch: {batch}\n", encoding="utf-8")
    (tmp_path / "train.py").write_text(FROM_FILE, encoding="utf-8")
    script = f"for c in {pattern}; do\n  torchrun --nproc_per_node=2 train.py --config $c\ndone\n"
    (tmp_path / "run.sh").write_text(script, encoding="utf-8")
    runs = find_runs(Project.open(tmp_path))
    found = [_value(run, "micro_batch_size") for run in runs]
    assert sorted(value for value in found if value != "unknown") == batches
    assert len({run.id for run in runs}) == len(runs)


# --- settings from the environment, switches by eval ---------------------------------------------

FROM_ENVIRONMENT = """\
from typing import Optional

import torch
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    {configuration}
    batch: int = 6
    rows: int = Field(6, env="ROWS_OF_A_BATCH")


settings = Settings()
loader = torch.utils.data.DataLoader(data, batch_size=settings.{field})
for batch in loader:
    model(batch.cuda()).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("configuration", "field", "variable", "batch"),
    [
        ("pass", "batch", "OTHER=3", 6),
        ("pass", "batch", "BATCH=3", 3),
        ("pass", "batch", "batch=3", 3),
        ("pass", "rows", "ROWS=3", 6),
        ("pass", "rows", "ROWS_OF_A_BATCH=3", 3),
        ("model_config = SettingsConfigDict(env_prefix='MY_')", "batch", "BATCH=3", 6),
        ("model_config = SettingsConfigDict(env_prefix='MY_')", "batch", "MY_BATCH=3", 3),
        ("model_config = SettingsConfigDict(env_file='.env')", "batch", "OTHER=3", "unknown"),
        ("model_config = SettingsConfigDict(env_file='.env')", "batch", "BATCH=3", 3),
    ],
)
def test_settings_of_pydantic_come_from_the_environment(
    run_of: MakeRun, configuration: str, field: str, variable: str, batch: Any
) -> None:
    files = {
        "train.py": FROM_ENVIRONMENT.format(configuration=configuration, field=field),
        "run.sh": f"export {variable}\npython train.py\n",
    }
    assert _value(run_of(files), "micro_batch_size") == batch


CHECKED = """\
import argparse

import torch
from yacs.config import CfgNode as CN


def update(config, args):
    def given(name):
        return hasattr(args, name) and eval(f"args.{name}")

    if given("batch"):
        config.DATA.BATCH = args.batch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int)
    config = CN()
    config.DATA = CN()
    config.DATA.BATCH = 128
    update(config, parser.parse_args())
    loader = torch.utils.data.DataLoader(data, batch_size=config.DATA.BATCH)
    for batch in loader:
        model(batch.cuda()).sum().backward()
        optimizer.step()


main()
"""


@pytest.mark.parametrize(
    ("flags", "batch"), [("", 128), ("--batch 32", 32), ("--batch $BATCH", "unknown")]
)
def test_a_switch_that_is_evaluated_by_its_name_is_told(
    run_of: MakeRun, flags: str, batch: Any
) -> None:
    run = run_of({"train.py": CHECKED, "run.sh": f"python train.py {flags}\n"})
    assert _value(run, "micro_batch_size") == batch


# --- the attention of a family -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("load", "release", "attention"),
    [
        ('AutoModelForSeq2SeqLM.from_pretrained("google/flan-t5-xl")', "4.46.3", "eager"),
        ('AutoModelForSeq2SeqLM.from_pretrained("google/flan-t5-xl")', "5.24.0", "sdpa"),
        ('AutoModelForSeq2SeqLM.from_pretrained("google/flan-t5-xl")', "", "sdpa"),
        ('T5ForConditionalGeneration.from_pretrained("org/own")', "4.46.3", "eager"),
        ('AutoModelForTokenClassification.from_pretrained("org/deberta-v3-large")', "", "eager"),
        ('AutoModelForTokenClassification.from_pretrained("roberta-base")', "", "sdpa"),
        ('AutoModelForTokenClassification.from_pretrained("roberta-base")', "4.40.2", "eager"),
        ('AutoModelForTokenClassification.from_pretrained("org/own")', "4.46.3", "unknown"),
        ("AutoModelForTokenClassification.from_pretrained(args.model)", "4.46.3", "unknown"),
        ('AutoModelForCausalLM.from_pretrained("org/own")', "4.46.3", "sdpa"),
        ('AutoModelForCausalLM.from_pretrained("google/gemma-2-9b")', "4.46.3", "sdpa"),
        ('AutoModelForCausalLM.from_pretrained("google/gemma-2-9b")', "5.24.0", "eager"),
        ('AutoModelForCausalLM.from_pretrained("state-spaces/mamba-2.8b")', "4.46.3", "unknown"),
        ('BertForMaskedLM.from_pretrained("org/own")', "4.40.2", "eager"),
        ('BertForMaskedLM.from_pretrained("org/own")', "4.41.2", "sdpa"),
        ('XLMRobertaForMaskedLM.from_pretrained("org/own")', "4.46.3", "sdpa"),
    ],
)
def test_the_default_attention_is_that_of_the_family_and_the_release(
    run_of: MakeRun, load: str, release: str, attention: str
) -> None:
    name = load.partition(".")[0]
    code = f"""\
from transformers import {name}, Trainer, TrainingArguments

model = {load}
Trainer(model=model, args=TrainingArguments("out")).train()
"""
    pin = {"requirements.txt": f"transformers=={release}\n"} if release else {}
    assert _value(run_of({"train.py": code, **pin}, "python train.py"), "attention") == attention


# --- arguments that pass through code that is not followed ----------------------------------------

CHANGED = """\
import argparse
import dataclasses

import yaml
from elsewhere import changed, loaded
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments


def apply(given, values):
    for name, value in values.items():
        setattr(given, name, value)


parser = argparse.ArgumentParser()
parser.add_argument("--rows", type=int, default=2)
own = parser.parse_args()
args = TrainingArguments("out", per_device_train_batch_size=own.rows)
{change}
Trainer(model=AutoModelForCausalLM.from_pretrained("org/model"), args=args).train()
"""


@pytest.mark.parametrize(
    ("change", "is_open"),
    [
        ("pass", False),
        ("apply(args, loaded())", True),
        ("apply(args, {'fp16': True})", False),
        ("args = dataclasses.replace(args, **loaded())", True),
        ("args = dataclasses.replace(args, fp16=True)", False),
        ("args = changed(args)", True),
        ("other = changed(args)", False),
    ],
)
def test_arguments_that_unread_values_change_keep_no_defaults(
    run_of: MakeRun, change: str, is_open: bool
) -> None:
    code = CHANGED.format(change=change)
    run = run_of({"train.py": code}, "python train.py")
    assert run.is_open is is_open
    accumulation = _value(run, "gradient_accumulation_steps")
    assert accumulation == ("unknown" if is_open else 1)


def test_a_namespace_that_unread_code_gives_back_is_not_what_was_parsed(run_of: MakeRun) -> None:
    for line, batch in (("pass", 2), ("own = changed(own)", "unknown")):
        code = CHANGED.replace("args = Tr", f"{line}\nargs = Tr").format(change="pass")
        assert _value(run_of({"train.py": code}, "python train.py"), "micro_batch_size") == batch


@pytest.mark.parametrize(("values", "is_open"), [("loaded()", True), ("{'fp16': True}", False)])
def test_arguments_from_a_dict_are_known_where_the_dict_is(
    run_of: MakeRun, values: str, is_open: bool
) -> None:
    code = ARGUMENTS.format(parse=f"HfArgumentParser(TrainingArguments).parse_dict({values})")
    code = f"from elsewhere import loaded\n{code}"
    run = run_of({"train.py": code}, "python train.py")
    assert run.is_open is is_open
    assert _value(run, "micro_batch_size") == ("unknown" if is_open else 8)


@pytest.mark.parametrize(
    ("bases", "batch"),
    [
        ("TrainingArguments", 8),
        ("Own, TrainingArguments", 8),
        ("Unseen, TrainingArguments", "unknown"),
    ],
)
def test_arguments_that_derive_from_a_class_out_of_sight_have_its_defaults(
    run_of: MakeRun, bases: str, batch: Any
) -> None:
    code = WITH_OWN_CLASS.format(classes="Both,").replace(
        "own, args =", f"@dataclass\nclass Both({bases}):\n    more: int = 1\n\n\n(args,) ="
    )
    assert _value(run_of({"train.py": code}, "python train.py"), "micro_batch_size") == batch


# --- a model that goes through code out of sight -------------------------------------------------

HANDED = """\
import timm
import torch
from elsewhere import summary, wrapped
from {place} import own

model = torch.nn.Linear(2, 2).cuda()
optimizer = torch.optim.AdamW(model.parameters())
{line}
for batch in torch.ones(8, 2, 2).cuda():
    model(batch).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("line", "is_known"),
    [
        ("pass", True),
        ("summary(model)", True),
        ("averaged = wrapped(model)", True),
        ("model = timm.layers.convert_sync_batchnorm(model)", True),
        ("model = own(model)", True),
        ("model = wrapped(model)", False),
        ("model, optimizer = wrapped(model=model, optimizer=optimizer)", False),
    ],
)
def test_a_model_that_comes_back_from_code_out_of_sight_may_be_changed(
    run_of: MakeRun, line: str, is_known: bool
) -> None:
    files = {
        "train.py": HANDED.format(line=line, place="helpers"),
        "helpers.py": "import torch\n\n\ndef own(model):\n    return model\n",
    }
    run = run_of(files, "torchrun --nproc_per_node 4 train.py")
    found = [_value(run, name) for name in ("precision", "tuning", "zero_stage", "fsdp")]
    assert found == (["fp32", "full", 0, "none"] if is_known else ["unknown"] * 4)


def test_a_model_from_the_hub_that_comes_back_changed_has_no_known_tuning(run_of: MakeRun) -> None:
    code = """\
from elsewhere import adapted
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("org/model")
{line}
Trainer(model=model, args=TrainingArguments("out")).train()
"""
    for line, tuning in (("pass", "full"), ("model = adapted(model, rank=8)", "unknown")):
        run = run_of({"train.py": code.format(line=line)}, "python train.py")
        assert _value(run, "tuning") == tuning


NAMED_TYPE = """\
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--dtype", default="{default}")
args = parser.parse_args()
model = torch.nn.Linear(2, 2).cuda().to(getattr(torch, args.dtype))
for batch in torch.ones(8, 2, 2).cuda():
    model(batch).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("flags", "precision"),
    [("", "fp32"), ("--dtype bfloat16", "unknown"), ("--dtype half", "unknown")],
)
def test_a_type_that_a_flag_names_is_not_taken_for_none(
    run_of: MakeRun, flags: str, precision: str
) -> None:
    files = {"train.py": NAMED_TYPE.format(default="float32")}
    assert _value(run_of(files, f"python train.py {flags}"), "precision") == precision


ACCUMULATING = """\
import torch
from accelerate import Accelerator

accelerator = Accelerator({arguments})
model, optimizer, loader = accelerator.prepare(torch.nn.Linear(2, 2), optimizer, loader)
for batch in loader:
    with accelerator.accumulate(model):
        accelerator.backward(model(batch))
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("arguments", "launch", "steps"),
    [
        ("", "accelerate launch --num_processes 4", 1),
        ("gradient_accumulation_steps=4", "accelerate launch --num_processes 4", 4),
        ("gradient_accumulation_plugin=made()", "accelerate launch --num_processes 4", "unknown"),
        ("**made()", "accelerate launch --num_processes 4", "unknown"),
        ("", "accelerate launch --config_file /absent/x.yaml", "unknown"),
        ("", "accelerate launch", "unknown"),
    ],
)
def test_accelerate_accumulates_one_step_unless_it_is_told(
    run_of: MakeRun, arguments: str, launch: str, steps: Any
) -> None:
    files = {"train.py": ACCUMULATING.format(arguments=arguments)}
    run = run_of(files, f"{launch} train.py")
    assert _value(run, "gradient_accumulation_steps") == steps


TRAINED_BY_LIGHTNING = """\
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import BackboneFinetuning, EarlyStopping



class Net(pl.LightningModule):
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


trainer = pl.Trainer(devices=2, {arguments})
trainer.fit(Net(), loader)
"""


@pytest.mark.parametrize(
    ("arguments", "steps", "tuning"),
    [
        ("accumulate_grad_batches=4", 4, "full"),
        ("accumulate_grad_batches={0: 8, 4: 2}", "unknown", "full"),
        ("callbacks=[EarlyStopping()]", 1, "full"),
        ("callbacks=[BackboneFinetuning()]", 1, "unknown"),
    ],
)
def test_what_changes_with_the_epochs_is_not_one_value(
    run_of: MakeRun, arguments: str, steps: Any, tuning: str
) -> None:
    run = run_of({"train.py": TRAINED_BY_LIGHTNING.format(arguments=arguments)}, "python train.py")
    assert _value(run, "gradient_accumulation_steps") == steps
    assert _value(run, "tuning") == tuning


@pytest.mark.parametrize(
    ("flags", "fsdp"),
    [
        ("--fsdp auto_wrap", "full_shard"),
        ("--fsdp auto_wrap --fsdp_config absent/fsdp.json", "unknown"),
        ("--fsdp 'full_shard auto_wrap' --fsdp_config absent/fsdp.json", "full_shard"),
    ],
)
def test_a_file_of_shards_that_is_absent_leaves_the_strategy_open(
    run_of: MakeRun, flags: str, fsdp: str
) -> None:
    run = run_of({"train.py": BY_FLAGS}, f"torchrun --nproc_per_node 4 train.py {flags}")
    assert _value(run, "fsdp") == fsdp
