"""More kinds of wiring met in public projects: what a run is told, and what nobody can tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Optional

import pytest

from flake8_gpu_training.facts import known
from flake8_gpu_training.project import Project
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


# --- dataclasses filled from a dict or a file -------------------------------------------------

COMPOSED = """\
from dataclasses import dataclass, field

import hydra
from omegaconf import DictConfig, OmegaConf
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments


@dataclass
class Extra:
    use_lora: bool = field(default=False)


@hydra.main(version_base="1.1", config_path="conf", config_name="base")
def main(cfg: DictConfig):
    READ
    model = AutoModelForCausalLM.from_pretrained("gpt2")
    if extra.use_lora:
        model = get_peft_model(model, LoraConfig(r=8))
    Trainer(model=model, args=training_args).train()


main()
"""
IMPORT = "from peft import LoraConfig, get_peft_model\n"
CONF = {
    "conf/base.yaml": "defaults:\n  - _self_\nname: x\nlayers: ${oc.env:N}\n",
    "conf/exp/a.yaml": "# @package _global_\ngradient_accumulation_steps: 8\nuse_lora: true\n"
    "per_device_train_batch_size: 4\noutput_dir: o\n",
}
WHOLE = (
    "extra, training_args = HfArgumentParser((Extra, TrainingArguments))"
    ".parse_dict(cfg, allow_extra_keys=True)"
)
PLAIN = "cfg = OmegaConf.to_container(cfg, resolve=True)\n    " + WHOLE


@pytest.mark.parametrize("read", [WHOLE, PLAIN])
def test_a_dict_of_hydra_fills_the_arguments(run_of: MakeRun, read: str) -> None:
    script = IMPORT + COMPOSED.replace("READ", read)
    run = run_of({"train.py": script, **CONF}, "python train.py +exp=a")
    assert _value(run, "gradient_accumulation_steps") == 8
    assert _value(run, "micro_batch_size") == 4
    assert _value(run, "tuning") == "lora"


def test_a_dict_without_a_key_leaves_the_default(run_of: MakeRun) -> None:
    script = IMPORT + COMPOSED.replace("READ", WHOLE)
    run = run_of({"train.py": script, **CONF}, "python train.py")
    assert _value(run, "gradient_accumulation_steps") == 1
    assert _value(run, "micro_batch_size") == 8
    assert _value(run, "tuning") == "full"


@pytest.mark.parametrize(
    "read",
    [
        WHOLE.replace("cfg,", "lookup(cfg),"),
        WHOLE.replace("cfg,", "{**cfg, **fetched()},"),
        "if cfg.name == os.environ['X']:\n        cfg.gradient_accumulation_steps = 2\n    "
        + WHOLE,
    ],
)
def test_a_dict_that_is_not_known_leaves_the_run_open(run_of: MakeRun, read: str) -> None:
    script = (
        IMPORT
        + "import os\nfrom elsewhere import fetched, lookup\n"
        + COMPOSED.replace("READ", read)
    )
    run = run_of({"train.py": script, **CONF}, "python train.py")
    assert _value(run, "gradient_accumulation_steps") == "unknown"


OF_FILE = """\
import argparse
from dataclasses import dataclass, field

import trl
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, HfArgumentParser
from trl import SFTTrainer


@dataclass
class ModelArguments:
    peft_enabled: bool = field(default=False)


@dataclass
class SFTConfig(trl.SFTConfig):
    run_prefix: str = None


def main(args):
    parser = HfArgumentParser((ModelArguments, SFTConfig))
    model_args, training_args = parser.parse_yaml_file(args.config)
    model = AutoModelForCausalLM.from_pretrained("org/m")
    if model_args.peft_enabled:
        model = get_peft_model(model, LoraConfig(r=16))
    SFTTrainer(model=model, args=training_args).train()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=str, required=True)
    main(parser.parse_args())
"""


@pytest.mark.parametrize(
    ("content", "name", "tuning"),
    [
        ("peft_enabled: true\n", "c.yaml", "lora"),
        ("peft_enabled: false\n", "c.yaml", "full"),
        ("per_device_train_batch_size: 2\n", "c.yaml", "full"),
        ("peft_enabled: true\n", "missing.yaml", "unknown"),
    ],
)
def test_a_file_of_arguments_decides_the_branches(
    run_of: MakeRun, content: str, name: str, tuning: str
) -> None:
    run = run_of({"train.py": OF_FILE, "c.yaml": content}, f"python train.py --config {name}")
    assert _value(run, "tuning") == tuning


UNSLOTH = """\
from transformers import HfArgumentParser
from trl import ModelConfig, SFTConfig, SFTTrainer
from unsloth import FastLanguageModel

parser = HfArgumentParser((SFTConfig, ModelConfig))
training_args, model_args = parser.parse_args_into_dataclasses()
LOAD
SFTTrainer(model=model, args=training_args).train()
"""


@pytest.mark.parametrize(
    ("load", "attention"),
    [
        ("model, _ = FastLanguageModel.from_pretrained(model_args.model_name_or_path)", "unknown"),
        ("model = model_args.model_name_or_path", "flash_attention_2"),
    ],
)
def test_a_kernel_that_unsloth_does_not_take_is_not_used(
    run_of: MakeRun, load: str, attention: str
) -> None:
    launch = "python train.py --model_name_or_path org/m --attn_implementation flash_attention_2"
    run = run_of({"train.py": UNSLOTH.replace("LOAD", load)}, launch)
    assert _value(run, "attention") == attention


# --- models that only lend their weights, and several models at once --------------------------

LENT = """\
import torch
import torch.nn as nn
from transformers import GPT2LMHeadModel


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(x)

    @classmethod
    def from_pretrained(cls, name):
        model = cls()
        BODY


model = GPT.from_pretrained("gpt2")
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(10):
    model(torch.rand(4, 8)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("body", "attention"),
    [
        (
            "hub = GPT2LMHeadModel.from_pretrained(name)\n        hub.eval()\n"
            "        model.load_state_dict(hub.state_dict())\n        return model",
            "unknown",
        ),
        (
            "model.load_state_dict(GPT2LMHeadModel.from_pretrained(name).state_dict())\n"
            "        return model",
            "unknown",
        ),
        (
            "hub = GPT2LMHeadModel.from_pretrained(name)\n        size = hub.config.n_embd\n"
            "        model.layer = hub\n        return model",
            "sdpa",
        ),
        (
            "hub = GPT2LMHeadModel.from_pretrained(name)\n        hub.state_dict()\n"
            "        return hub",
            "sdpa",
        ),
    ],
)
def test_a_model_that_only_lends_its_weights_has_no_say(
    run_of: MakeRun, body: str, attention: str
) -> None:
    run = run_of({"train.py": LENT.replace("BODY", body)}, "python train.py")
    assert _value(run, "attention") == attention


DIFFUSION = """\
import torch
from accelerate import Accelerator
from diffusers import UNet2DConditionModel
from transformers import CLIPTextModel

accelerator = Accelerator()
text_encoder = CLIPTextModel.from_pretrained("org/m", subfolder="text_encoder")
unet = UNet2DConditionModel.from_pretrained("org/m", subfolder="unet")
unet.requires_grad_(False)
optimizer = torch.optim.AdamW(TRAINED.parameters(), lr=1e-4)
TRAINED, optimizer = accelerator.prepare(TRAINED, optimizer)
for batch in range(10):
    loss = unet(text_encoder(batch)).mean()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("trained", "pins", "attention"),
    [
        ("unet", "torch==2.0.1\ntransformers==4.29.1\ndiffusers==0.24.0\n", "sdpa"),
        ("unet", "torch==1.13.1\ntransformers==4.29.1\ndiffusers==0.24.0\n", "eager"),
        ("unet", "torch==2.0.1\ntransformers==4.29.1\ndiffusers==0.11.0\n", "unknown"),
        ("text_encoder", "torch==2.0.1\ntransformers==4.29.1\ndiffusers==0.24.0\n", "unknown"),
        ("text_encoder", "torch==2.4.1\ntransformers==4.49.0\ndiffusers==0.30.0\n", "sdpa"),
    ],
)
def test_the_kernel_of_a_diffusion_model_is_that_of_diffusers(
    run_of: MakeRun, trained: str, pins: str, attention: str
) -> None:
    files = {"train.py": DIFFUSION.replace("TRAINED", trained), "requirements.txt": pins}
    assert _value(run_of(files, "python train.py"), "attention") == attention


# --- options that the program changes ---------------------------------------------------------

CHANGED = """\
import argparse

import torch
import utils
from data import build


def share(batch, port):
    return batch // torch.cuda.device_count(), 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=4)
    parser.add_argument("--launcher", default="x")
    args = parser.parse_args()
    CHANGE
    net = torch.nn.Linear(4, 4).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    for x in build(args):
        net(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


main()
"""
BUILT = """\
from torch.utils.data import DataLoader


def build(NAME):
    loader = DataLoader([1], batch_size=NAME.batch_size, shuffle=True)
    return loader
"""


@pytest.mark.parametrize("name", ["args", "opt"])
@pytest.mark.parametrize(
    ("change", "batch"),
    [
        ("args.batch_size //= torch.cuda.device_count()", "unknown"),
        ("args.batch_size, rank = share(args.batch_size, 1)", "unknown"),
        ("args.batch_size, r = getattr(utils, 'f_%s' % args.launcher)(args.batch_size)", "unknown"),
        ("args.rank, r = getattr(utils, 'f_%s' % args.launcher)(args.batch_size)", 8),
        ("args.batch_size //= 2", 4),
        ("args.batch_size, rank = 6, 0", 6),
    ],
)
def test_an_option_that_the_program_changes_is_not_what_was_given(
    run_of: MakeRun, change: str, batch: Any, name: str
) -> None:
    files = {
        "train.py": CHANGED.replace("CHANGE", change),
        "data.py": BUILT.replace("NAME", name),
        "utils.py": "from elsewhere import *\n",
    }
    run = run_of(files, "python train.py --batch_size 8")
    assert _value(run, "micro_batch_size") == batch


# --- updates apart from the backward passes ---------------------------------------------------

PARTS = """\
import torch
from torch.utils.data import DataLoader


class Worker:
    def __init__(self):
        self.model = torch.nn.Linear(8, 8).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def _optimizer_step(self):
        self.optimizer.step()
        self.optimizer.zero_grad()

    def learn(self, batches):
        for batch in batches:
            loss = self.model(batch).mean()
            (2 * loss).backward()
            INSIDE
        BEHIND


Worker().learn(DataLoader(torch.rand(64, 8), batch_size=4))
"""


@pytest.mark.parametrize(
    ("inside", "behind", "steps"),
    [
        ("pass", "self._optimizer_step()", "unknown"),
        ("pass", "if batches:\n            self._optimizer_step()", "unknown"),
        ("pass", "self.optimizer.step()", "unknown"),
        ("self._optimizer_step()", "pass", 1),
        ("self.update()", "self._optimizer_step()", 1),
    ],
)
def test_an_update_behind_the_loop_sums_up(
    run_of: MakeRun, inside: str, behind: str, steps: Any
) -> None:
    script = PARTS.replace("INSIDE", inside).replace("BEHIND", behind)
    run = run_of({"train.py": script}, "python train.py")
    assert _value(run, "gradient_accumulation_steps") == steps


FINISHED = """\
import torch
from torch.utils.data import DataLoader


def step(model, optimizer, batches):
    for batch in batches:
        for part in batch:
            (2 * model(part).mean()).backward()
            INSIDE
        BEHIND


def finish(optimizer):
    optimizer.step()
    optimizer.zero_grad()


model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.AdamW(model.parameters())
step(model, optimizer, DataLoader(torch.rand(64, 8), batch_size=16))
"""


@pytest.mark.parametrize(
    ("inside", "behind", "steps"),
    [("pass", "finish(optimizer)", "unknown"), ("finish(optimizer)", "pass", 1)],
)
def test_an_update_in_a_function_counts_where_that_is_called(
    run_of: MakeRun, inside: str, behind: str, steps: Any
) -> None:
    script = FINISHED.replace("INSIDE", inside).replace("BEHIND", behind)
    run = run_of({"train.py": script}, "python train.py")
    assert _value(run, "gradient_accumulation_steps") == steps


SCALED = """\
import argparse

import torch
from torch.utils.data import DataLoader


class Scaler:
    def __init__(self):
        self._scaler = torch.GradScaler()

    def __call__(self, loss, optimizer, update_grad=True, amp=True):
        self._scaler.scale(loss).backward()
        BRANCH


parser = argparse.ArgumentParser()
parser.add_argument("--update_freq", type=int, default=1)
args = parser.parse_args()
model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.AdamW(model.parameters())
scaler = Scaler()
for step, x in enumerate(DataLoader(torch.rand(64, 8), batch_size=4)):
    loss = model(x.cuda()).mean() / args.update_freq
    ends = step % args.update_freq == 0
    scaler(loss, optimizerTOLD)
    optimizer.zero_grad()
"""
WHEN = "if update_grad:\n            self._scaler.step(optimizer)"
EITHER = (
    "if amp:\n            self._scaler.step(optimizer)\n        else:\n            optimizer.step()"
)


@pytest.mark.parametrize(
    ("branch", "told", "steps"),
    [
        (WHEN, ", update_grad=ends", "unknown"),
        (WHEN, ", update_grad=True", 1),
        (WHEN, "", 1),
        (EITHER, ", amp=ends", 1),
    ],
)
def test_a_scaler_that_updates_when_told_may_accumulate(
    run_of: MakeRun, branch: str, told: str, steps: Any
) -> None:
    script = SCALED.replace("BRANCH", branch).replace("TOLD", told)
    run = run_of({"train.py": script}, "python train.py")
    assert _value(run, "gradient_accumulation_steps") == steps


# --- configuration files in branches ----------------------------------------------------------

CHOSEN = """\
import argparse
from pathlib import Path

import torch
import yaml
from torch.utils.data import DataLoader


def read():
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="own")
    args = parser.parse_args()
    path = Path(f"configs/{args.name}.yaml")
    if path.exists():
        config = yaml.unsafe_load(open(str(path)))
    else:
        config = yaml.unsafe_load(open("configs/base.yaml"))
    return config


config = read()
model = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step, x in enumerate(DataLoader([1], batch_size=config["batch_size"])):
    model(x).sum().backward()
    train_step(optimizer, config["accumulation_steps"])
"""


@pytest.mark.parametrize(
    ("own", "steps"),
    [
        ("batch_size: 2\naccumulation_steps: 5\n", "unknown"),
        ("batch_size: 2\naccumulation_steps: 3\n", 3),
        ("batch_size: 2\naccumulation_steps: !!python/object:a.B\n  x: 1\n", "unknown"),
        ("batch_size: [\n", "unknown"),
    ],
)
def test_a_file_of_one_branch_is_not_all(run_of: MakeRun, own: str, steps: Any) -> None:
    files = {
        "train.py": CHOSEN,
        "configs/own.yaml": own,
        "configs/base.yaml": "batch_size: 2\naccumulation_steps: 3\n",
    }
    run = run_of(files, "python train.py")
    assert _value(run, "gradient_accumulation_steps") == steps


# --- words that are no code -------------------------------------------------------------------

SILENT = """\
import torch

model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for x in range(10):
    model(torch.rand(4, 8).cuda()).mean().backward()
    HERE
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("here", "steps"),
    [
        ("# TODO: gradient accumulation, like accum_iter of others", 1),
        ('"""No accumulation here."""', 1),
        ("wrapper.accumulate(x)", "unknown"),
        ('settings["accum_iter"]', "unknown"),
    ],
)
def test_a_comment_on_accumulation_is_none(run_of: MakeRun, here: str, steps: Any) -> None:
    run = run_of({"train.py": SILENT.replace("HERE", here)}, "python train.py")
    assert _value(run, "gradient_accumulation_steps") == steps


# --- classes that a function fills from keywords ----------------------------------------------

FIRED = """\
import fire
import torch
from torch.utils.data import DataLoader

from settings import fsdp_config, train_config
from updating import update_config


def main(**kwargs):
    update_config((train_config, fsdp_config), **kwargs)
    if fsdp_config.sharded:
        raise NotImplementedError
    model = torch.nn.Linear(8, 8).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for x in DataLoader(torch.rand(64, 8), batch_size=train_config.batch_size_training):
        model(x.cuda()).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    fire.Fire(main)
"""
FIRED_SETTINGS = """\
from dataclasses import dataclass


@dataclass
class train_config:
    batch_size_training: int = 4


@dataclass
class fsdp_config:
    sharded: bool = False
"""
FILLING = """\
def update_config(config, **kwargs):
    if isinstance(config, (tuple, list)):
        for c in config:
            update_config(c, **kwargs)
    else:
        for key, value in kwargs.items():
            if hasattr(config, key):
                setattr(config, NAME, value)
"""


@pytest.mark.parametrize(
    ("name", "flags", "micro"),
    [
        ("key", " --batch_size_training 64", 64),
        ("key", " --batch_size_training=64 --other", 64),
        ("key", " --other 3", 4),
        ("key", "", 4),
        ("key", " $MORE", "unknown"),
        ("renamed(key)", " --batch_size_training 64", "unknown"),
    ],
)
def test_flags_of_fire_fill_the_attributes_of_classes(
    run_of: MakeRun, name: str, flags: str, micro: Any
) -> None:
    files = {
        "train.py": FIRED,
        "settings.py": FIRED_SETTINGS,
        "updating.py": FILLING.replace("NAME", name),
    }
    run = run_of(files, f"python train.py{flags}")
    assert _value(run, "micro_batch_size") == micro


ON_CLASS = """\
import argparse

import torch
from torch.utils.data import DataLoader


class Config:
    batch_size = 4


parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=8)
args = parser.parse_args()
CHANGE
model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for x in DataLoader(torch.rand(64, 8), batch_size=Config.batch_size):
    model(x.cuda()).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("change", "micro"),
    [
        ("pass", 4),
        ("Config.batch_size = args.batch_size", 16),
        ("setattr(Config, 'batch_size', args.batch_size)", 16),
        ("if unseen():\n    Config.batch_size = args.batch_size", "unknown"),
        ("setattr(Config, unseen(), 3)", "unknown"),
    ],
)
def test_an_attribute_of_a_class_is_what_it_was_set_to(
    run_of: MakeRun, change: str, micro: Any
) -> None:
    script = ON_CLASS.replace("CHANGE", change)
    run = run_of({"train.py": script}, "python train.py --batch_size 16")
    assert _value(run, "micro_batch_size") == micro


# --- attention that depends on releases, or is exchanged --------------------------------------

LLAMA = """\
from transformers import LlamaForCausalLM, Trainer, TrainingArguments

model = LlamaForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf")
Trainer(model=model, args=TrainingArguments(output_dir="out")).train()
"""


@pytest.mark.parametrize(
    ("requirements", "attention"),
    [
        ("transformers==4.36.2\ntorch==2.1.0\n", "eager"),
        ("transformers==4.36.2\ntorch==2.0.1\n", "eager"),
        ("transformers==4.36.2\ntorch==2.1.1\n", "sdpa"),
        ("transformers==4.36.2\n", "sdpa"),
        ("transformers==4.36.2\ntorch==2.1.*\n", "unknown"),
        ("transformers==4.36.2\ntorch~=2.1.0\n", "unknown"),
        ("torch==2.1.0\n", "unknown"),
        ("transformers==4.35.2\ntorch==2.1.0\n", "eager"),
    ],
)
def test_sdpa_is_the_default_from_pytorch_2_1_1_on(
    run_of: MakeRun, requirements: str, attention: str
) -> None:
    run = run_of({"train.py": LLAMA, "requirements.txt": requirements}, "python train.py")
    assert _value(run, "attention") == attention


PROCESSED = """\
import torch
from diffusers import UNet2DConditionModel
from MODULE import PROCESSOR

unet = UNet2DConditionModel.from_pretrained("a/b", subfolder="unet")
CALL
optimizer = torch.optim.AdamW(unet.parameters())
for x in range(10):
    unet(x).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("module", "processor", "call", "attention"),
    [
        ("diffusers.loaders", "LoraLoaderMixin", "", "sdpa"),
        ("diffusers.models.attention_processor", "AttnProcessor", "SET", "eager"),
        ("diffusers.models.attention_processor", "AttnProcessor2_0", "SET", "sdpa"),
        ("diffusers.models.attention_processor", "LoRAAttnProcessor", "SET", "unknown"),
        ("own.processors", "AttnProcessor", "SET", "unknown"),
        ("diffusers", "AttnProcessor", "unet.set_attn_processor(made)", "unknown"),
        ("own", "set_attn_procs", "set_attn_procs(unet)", "unknown"),
        ("own", "a", "unet.enable_xformers_memory_efficient_attention()", "xformers"),
    ],
)
def test_processors_of_diffusers_exchange_the_attention(
    run_of: MakeRun, module: str, processor: str, call: str, attention: str
) -> None:
    call = call.replace("SET", f"unet.set_attn_processor({processor}())")
    script = PROCESSED.replace("MODULE", module).replace("PROCESSOR", processor)
    run = run_of({"train.py": script.replace("CALL", call)}, "python train.py")
    assert _value(run, "attention") == attention


# --- ranks that the program itself brings together --------------------------------------------

RANKS = """\
import torch
import torch.distributed as dist

FIRST
model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for x in range(10):
    model(torch.rand(4, 8).cuda()).mean().backward()
    for p in model.parameters():
        EACH
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("launch", "here", "there", "ddp"),
    [
        ("torchrun --nproc_per_node 8 train.py", "start()", "print(p)", False),
        ("torchrun --nproc_per_node 8 train.py", "dist.init_process_group()", "pass", "unknown"),
        (
            "torchrun --nproc_per_node 8 train.py",
            "dist.init_process_group()",
            "dist.all_reduce(p.grad)",
            "unknown",
        ),
        (
            "torchrun --nproc_per_node 8 train.py",
            "pass",
            "dist.reduce_scatter_tensor(a, p.grad)",
            "unknown",
        ),
        ("python train.py", "dist.init_process_group()", "dist.all_reduce(p.grad)", False),
    ],
)
def test_a_program_may_average_its_gradients_itself(
    run_of: MakeRun, launch: str, here: str, there: str, ddp: Any
) -> None:
    script = RANKS.replace("FIRST", here).replace("EACH", there)
    run = run_of({"train.py": script}, launch)
    assert _value(run, "ddp") == ddp
    assert _value(run, "zero_stage") == ("unknown" if "reduce_scatter" in there else 0)


# --- passes and updates in methods ------------------------------------------------------------

WORKER = """\
import torch


class Worker:
    def __init__(self):
        self.model = torch.nn.Linear(8, 8).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def backward(self, loss):
        (2 * loss).backward()

    def optimizer_step(self):
        self.optimizer.step()
        self.optimizer.zero_grad()
"""
ACTOR = """\
from tqdm import tqdm

from worker import Worker


class Actor(Worker):
    def one(self, batch):
        self.backward(self.model(batch).mean())

    def finish(self):
        self.optimizer.step()

    def update(self, batches):
        bar = tqdm()
        for batch in batches:
            BODY


actor = Actor()
actor.update([[1]])
"""


@pytest.mark.parametrize(
    ("body", "steps"),
    [
        (
            "for part in batch:\n"
            "                self.backward(self.model(part).mean())\n"
            "                bar.update()\n"
            "            self.optimizer_step()",
            "unknown",
        ),
        (
            "for part in batch:\n                self.one(part)\n            self.finish()",
            "unknown",
        ),
        (
            "self.backward(self.model(batch).mean())\n"
            "            self.optimizer_step()\n"
            "            bar.update()",
            1,
        ),
        (
            "for part in batch:\n"
            "                self.one(part)\n"
            "                self.finish()\n"
            "            bar.update()",
            1,
        ),
    ],
)
def test_passes_and_updates_in_methods_may_accumulate(
    run_of: MakeRun, body: str, steps: Any
) -> None:
    files = {"train.py": ACTOR.replace("BODY", body), "worker.py": WORKER}
    run = run_of(files, "python train.py")
    assert _value(run, "gradient_accumulation_steps") == steps
