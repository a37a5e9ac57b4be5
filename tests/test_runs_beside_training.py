"""What stands beside the training of a run: loaders, casts, models and shards of others."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from typing import Any, Callable, Optional

import pytest

from flake8_gpu_training.facts import known
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import Run

MakeRun = Callable[..., Run]


@pytest.fixture
def run_of(tmp_path: Path) -> MakeRun:
    """The first run of a project made of ``files``, or of its launch command."""

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


# --- launches through something that watches the program, or that starts a file -----------

SCRIPT = """\
import argparse

import torch
from torch.utils.data import DataLoader

from data import Images

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=8)
args = parser.parse_args()
model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.AdamW(model.parameters())
loader = DataLoader(Images(), batch_size=args.batch_size)
for batch in loader:
    optimizer.zero_grad()
    model(batch.cuda()).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("command", "size", "world"),
    [
        ("python train.py --batch_size 32", 32, 1),
        ("uv run train.py --batch_size 32", 32, 1),
        ("uv run --extra gpu train.py --batch_size 32", 32, 1),
        ("./train.py --batch_size 32", 32, 1),
        ("python -m pdb -c continue train.py --batch_size 32", 32, 1),
        ("python -m cProfile -o out.prof train.py --batch_size 32", 32, 1),
        ("python -m debugpy --listen 5678 --wait-for-client train.py --batch_size 32", 32, 1),
        (
            "python -m debugpy --wait-for-client --listen localhost:5678"
            " -m torch.distributed.launch --nproc_per_node=2 --use_env train.py --batch_size 32",
            32,
            2,
        ),
        (
            "python -m debugpy --listen 5678 -m torch.distributed.run --nproc_per_node=4"
            " train.py --batch_size 32",
            32,
            4,
        ),
    ],
)
def test_the_program_behind_a_debugger_or_a_runner_is_the_run(
    run_of: MakeRun, command: str, size: int, world: int
) -> None:
    files = {
        "train.py": SCRIPT,
        "data.py": "class Images: ...\n",
        "scripts/other.sh": "torchrun --nproc_per_node=8 train.py --batch_size 512\n",
        "scripts/train.sh": f"{command}\n",
    }
    run = run_of(files, "bash scripts/train.sh")
    assert run.location.path == "scripts/train.sh"
    assert run.launcher.world_size == world
    assert _value(run, "micro_batch_size") == size


def test_code_of_a_command_line_is_no_script(run_of: MakeRun) -> None:
    files = {
        "train.py": SCRIPT,
        "data.py": "class Images: ...\n",
        "check.sh": "python -c 'print(1)' train.py\n",
        "run.sh": "python train.py --batch_size 4\n",
    }
    assert run_of(files).location.path == "run.sh"


# --- loaders ----------------------------------------------------------------------------------

_CLASSIFIER = """\
import torch
from torch.utils.data import DataLoader


def train_classifier(model, data):
    loader_of_scores = DataLoader(data, batch_size=128)
    optimizer = torch.optim.AdamW(model.parameters())
    for images in loader_of_scores:
        optimizer.zero_grad()
        model(images).mean().backward()
        optimizer.step()
"""
_ENGINE = """\
import torch
from torch.utils.data import DataLoader

from scores import train_classifier


def endless(loader):
    while True:
        yield from loader


def train(model, data):
    batches = DataLoader(data, batch_size=64)
    optimizer = torch.optim.AdamW(model.parameters())
    {LOOP}
        optimizer.zero_grad()
        model(images).mean().backward()
        optimizer.step()
    {AFTER}


train(torch.nn.Linear(4, 4).cuda(), range(100))
"""


_ENDLESS = """\
source = endless(batches)
    for step in range(1000):
        images = next(source)"""


@pytest.mark.parametrize(
    ("loop", "after", "size"),
    [
        ("for images in batches:", "pass", 64),
        # Two loops, both in sight: which one is the run's nobody can tell.
        ("for images in batches:", "train_classifier(model, data)", "unknown"),
        # The loop over the only loader whose loop is in sight is not the run's.
        (
            _ENDLESS,
            "train_classifier(model, data)",
            "unknown",
        ),
        (_ENDLESS, "pass", 64),
    ],
)
def test_a_loader_of_another_loop_has_not_the_batch_of_the_run(
    run_of: MakeRun, loop: str, after: str, size: Any
) -> None:
    engine = _ENGINE.replace("{LOOP}", loop).replace("{AFTER}", after)
    if after == "pass":
        engine = engine.replace("from scores import train_classifier\n", "")
    run = run_of({"train.py": engine, "scores.py": _CLASSIFIER}, "python train.py")
    assert _value(run, "micro_batch_size") == size


_SCORES = """\
import torch
from torch.utils.data import DataLoader


def score(model, {DATA}):
    rows = DataLoader({DATA}, batch_size=256)
    return [model(row).mean().item() for row in rows]
"""
_STREAM = """\
import torch
from {MODULE} import score
from stream import batches

model = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for images in batches(64):
    optimizer.zero_grad()
    model(images).mean().backward()
    optimizer.step()
score(model, range(100))
"""


@pytest.mark.parametrize(
    ("module", "data", "size"),
    [
        ("fid", "test_set", "unknown"),
        ("fid", "valset", "unknown"),
        ("evaluate", "rows_of_all", "unknown"),
        ("linear_eval", "train_set", "unknown"),
    ],
)
def test_the_only_loader_may_be_one_of_scores(
    run_of: MakeRun, module: str, data: str, size: Any
) -> None:
    files = {
        "train.py": _STREAM.replace("{MODULE}", module),
        f"{module}.py": _SCORES.replace("{DATA}", data),
    }
    assert _value(run_of(files, "python train.py"), "micro_batch_size") == size


_STATISTICS = """\
import torch
from torch.utils.data import DataLoader
from stream import batches

model = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.AdamW(model.parameters())
rows = DataLoader({DATA}, batch_size=256)
for row in rows:
    {BODY}
for images in {BATCHES}:
    optimizer.zero_grad()
    model(images).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("data", "body", "batches", "size"),
    [
        ("data", "print(row.mean())", "batches(64)", "unknown"),
        ("data", "print(row.mean())", "rows", 256),
        ("range(9)", "print(row.mean())", "rows", 256),
        ("values", "print(row.mean())", "rows", 256),
        ("train_test_split", "print(row.mean())", "rows", 256),
        ("test_split", "print(row.mean())", "rows", "unknown"),
    ],
)
def test_a_loop_that_only_looks_at_the_data_does_not_train(
    run_of: MakeRun, data: str, body: str, batches: str, size: Any
) -> None:
    text = _STATISTICS.replace("{DATA}", data).replace("{BODY}", body)
    text = text.replace("{BATCHES}", batches)
    assert _value(run_of({"train_it.py": text}, "python train_it.py"), "micro_batch_size") == size


_PARTS = """\
import torch
from torch.utils.data import DataLoader


class Trainer:
    def __init__(self, model, options):
        self.model, self.steps = model, 8
        self.optimizer = options.make(self.model)

    def train_step(self, batch):
        {LOOP}
        self.optimizer.step()
        self.optimizer.zero_grad()


def main():
    trainer = Trainer(torch.nn.Linear(4, 4).cuda(), None)
    loader = DataLoader(range(1000), batch_size=32)
    for batch in loader:
        trainer.train_step(batch)


main()
"""
_CUT = """\
for part in range(self.steps):
    size = batch.shape[0] // self.steps
    start = part * size
    end = start + size
    self.model(batch[start:end]).mean().backward()
"""
_CUT_AT_ONCE = """\
for part in range(0, len(batch), 4):
    self.model(batch[part : part + 4]).mean().backward()
"""
_CROP = """\
first = 2
self.model(batch[:, first : first + 8]).mean().backward()
"""
_VIEWS = """\
for view in range(self.steps):
    self.model(batch[view]).mean().backward()
    self.optimizer.step()
"""


@pytest.mark.parametrize(
    ("loop", "size"),
    [
        ("self.model(batch).mean().backward()", 32),
        (_CUT, "unknown"),
        (_CUT_AT_ONCE, "unknown"),
        (_CROP, 32),
        (_VIEWS, 32),
    ],
)
def test_a_step_may_cut_what_the_loader_gives(run_of: MakeRun, loop: str, size: Any) -> None:
    text = _PARTS.replace("{LOOP}", indent(loop, " " * 8).strip())
    assert _value(run_of({"train.py": text}, "python train.py"), "micro_batch_size") == size


# --- casts ------------------------------------------------------------------------------------

_CASTS = """\
import torch
from torch import nn


class {NAME}(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Linear(4, 4)

    def forward(self, x):
        with {AROUND}torch.cuda.amp.autocast(dtype=torch.float16):
            return self.model(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = {NAME}()

    def forward(self, x):
        return self.part(x).mean()


model = Net().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(1000):
    optimizer.zero_grad()
    loss = model(torch.ones(4, 4).cuda())
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("name", "around", "precision"),
    [
        ("Backbone", "", "fp16"),
        ("Backbone", "torch.no_grad(), ", "unknown"),
        ("Backbone", "torch.inference_mode():\n            with ", "unknown"),
        ("Backbone", "torch.no_grad():\n            pass\n        with ", "fp16"),
        ("T5Conditioner", "", "unknown"),
        ("TextEncoder", "", "unknown"),
        ("Conditional", "", "fp16"),
    ],
)
def test_a_cast_of_a_side_module_is_not_that_of_the_step(
    run_of: MakeRun, name: str, around: str, precision: str
) -> None:
    text = _CASTS.replace("{NAME}", name).replace("{AROUND}", around)
    if around.endswith(":\n            with "):
        text = text.replace(
            "            return self.model(x)", "                return self.model(x)"
        )
    assert _value(run_of({"train.py": text}, "python train.py"), "precision") == precision


_APEX = """\
import json

import torch
from apex import amp

config = json.load(open("elsewhere.json"))
fp16 = {SWITCH}
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.AdamW(model.parameters())
if {TEST}:
    model, optimizer = amp.initialize(model.cuda(), optimizer, opt_level="O1")
for step in range(1000):
    optimizer.zero_grad()
    with amp.scale_loss(model(torch.ones(4, 4).cuda()).mean(), optimizer) as loss:
        loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("switch", "test", "precision"),
    [
        ("True", "fp16", "fp16"),
        ("True", "True", "fp16"),
        ("True", "torch.cuda.is_available()", "fp16"),
        ("None", 'config.get("use_fp16", False)', "unknown"),
        ('config["fp16"]', "fp16", "unknown"),
    ],
)
def test_apex_in_an_unread_branch_leaves_the_precision_open(
    run_of: MakeRun, switch: str, test: str, precision: str
) -> None:
    text = _APEX.replace("{SWITCH}", switch).replace("{TEST}", test)
    assert _value(run_of({"train.py": text}, "python train.py"), "precision") == precision


# --- shards of libraries that are not followed ---------------------------------------------

_SHARDED = """\
import torch
{IMPORT}

model = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.AdamW(model.parameters())
{WRAP}
for step in range(1000):
    optimizer.zero_grad()
    model(torch.ones(4, 4).cuda()).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("origin", "wrap", "stage"),
    [
        ("", "pass", 0),
        ("from colossalai.nn.parallel import GeminiDDP", "model = GeminiDDP(model)", "unknown"),
        ("from colossalai.nn.parallel import ZeroDDP", "model = ZeroDDP(model, None)", "unknown"),
        (
            "from colossalai.nn.optimizer import HybridAdam",
            "optimizer = HybridAdam(model.parameters())",
            0,
        ),
        (
            "from fairscale.optim.oss import OSS",
            "optimizer = OSS(model.parameters(), torch.optim.AdamW)",
            "unknown",
        ),
        (
            "from torch.distributed.optim import ZeroRedundancyOptimizer",
            "optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW)",
            "unknown",
        ),
        (
            "from apex.contrib.optimizers.distributed_fused_adam import DistributedFusedAdam",
            "optimizer = DistributedFusedAdam(model.parameters())",
            "unknown",
        ),
        (
            "from apex.optimizers import FusedAdam",
            "optimizer = FusedAdam(model.parameters())",
            0,
        ),
    ],
)
def test_a_library_that_shards_is_not_no_sharding(
    run_of: MakeRun, origin: str, wrap: str, stage: Any
) -> None:
    text = _SHARDED.replace("{IMPORT}", origin).replace("{WRAP}", wrap)
    run = run_of({"train.py": text}, "torchrun --nproc_per_node=4 train.py")
    assert _value(run, "zero_stage") == stage


def test_one_process_shards_nothing(run_of: MakeRun) -> None:
    text = _SHARDED.replace("{IMPORT}", "from fairscale.optim.oss import OSS").replace(
        "{WRAP}", "optimizer = OSS(model.parameters(), torch.optim.AdamW)"
    )
    run = run_of({"train.py": text}, "torchrun --nproc_per_node=1 train.py")
    assert _value(run, "zero_stage") == 0


# --- models that a trainer loads by name ---------------------------------------------------

_TRL = """\
import torch
from transformers import AutoModelForCausalLM
from trl import GRPOConfig, GRPOTrainer


def merged(path):
    base = AutoModelForCausalLM.from_pretrained(path, torch_dtype=torch.bfloat16)
    base.save_pretrained("merged")
    return "merged"


{BEFORE}
config = GRPOConfig(output_dir="out", bf16=True{KWARGS})
trainer = GRPOTrainer(
    model=merged("Qwen/Qwen2.5-1.5B"), reward_funcs=[len], args=config, train_dataset=None
)
trainer.train()
"""


@pytest.mark.parametrize(
    ("before", "kwargs", "attention"),
    [
        (
            "",
            ', model_init_kwargs={"attn_implementation": "flash_attention_2"}',
            "flash_attention_2",
        ),
        (
            'kwargs = {"attn_implementation": "flash_attention_2"}',
            ", model_init_kwargs=kwargs",
            "flash_attention_2",
        ),
        (
            'import json\nkwargs = json.load(open("elsewhere.json"))',
            ", model_init_kwargs=kwargs",
            "unknown",
        ),
        ("", ', model_init_kwargs={"torch_dtype": "bfloat16"}', "sdpa"),
        ("", ", model_init_kwargs=None", "sdpa"),
        ("", "", "sdpa"),
    ],
)
def test_a_model_that_is_only_merged_does_not_tell_the_attention(
    run_of: MakeRun, before: str, kwargs: str, attention: str
) -> None:
    text = _TRL.replace("{BEFORE}", before).replace("{KWARGS}", kwargs)
    files = {"train.py": text, "requirements.txt": "transformers==4.57.1\ntrl==0.25.0\n"}
    assert _value(run_of(files, "python train.py"), "attention") == attention


# --- programs that start their processes themselves --------------------------------------

_RANKS = """\
import os
import psutil
import torch
import torch.distributed as dist
{IMPORT}


def work(rank, size):
    dist.init_process_group("nccl", rank=rank, world_size=size)
    model = torch.nn.Linear(4, 4).cuda(rank)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(100):
        optimizer.zero_grad()
        model(torch.ones(4, 4).cuda(rank)).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    {START}
"""


@pytest.mark.parametrize(
    ("origin", "start", "world"),
    [
        ("", "work(0, 1)", 1),
        ("", "print(psutil.Process(os.getpid()).memory_info())\n    work(0, 1)", 1),
        ("import torch.multiprocessing as mp", "mp.spawn(work, args=(4,), nprocs=4)", 4),
        ("from torch.multiprocessing import spawn", "spawn(work, (4,), 4)", 4),
        (
            "import torch.multiprocessing as mp",
            'context = mp.get_context("spawn")\n'
            "    for r in range(4):\n        context.Process(target=work, args=(r, 4)).start()",
            None,
        ),
        (
            "import torch_xla.distributed.xla_multiprocessing as xmp",
            "xmp.spawn(work, args=(4,))",
            None,
        ),
        (
            "from torch.distributed.run import main as launch",
            'launch(["--nproc_per_node=4", "other.py"])\n    work(0, 1)',
            None,
        ),
        ("", 'os.execvp("torchrun", ["torchrun", "--nproc_per_node=4", "train.py"])', None),
        ("", 'os.execvp("nice", ["nice", "python", "other.py"])\n    work(0, 1)', 1),
        ("import horovod", "horovod.run(work, np=4)", None),
        (
            "from pyspark.ml.torch.distributor import TorchDistributor",
            "TorchDistributor(num_processes=4).run(work)",
            None,
        ),
        ("from accelerate import debug_launcher", "debug_launcher(work, (4,), 4)", 4),
    ],
)
def test_a_program_that_starts_its_ranks_is_not_one_process(
    run_of: MakeRun, origin: str, start: str, world: Optional[int]
) -> None:
    text = _RANKS.replace("{IMPORT}", origin).replace("{START}", start)
    assert run_of({"train.py": text}, "python train.py").launcher.world_size == world


NAMED_ALIKE = """\
import argparse
import torch
from torch.utils.data import DataLoader
{}
parser = argparse.ArgumentParser()
parser.add_argument("--micro-batch-size", type=int, default=8)
parser.add_argument("--num-layers", type=int, default=12)
parser.add_argument("--hidden-size", type=int, default=768)
parser.add_argument("--num-attention-heads", type=int, default=12)
parser.add_argument("--train-iters", type=int, default=30)
args = parser.parse_args()
model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for batch in DataLoader(data, batch_size=args.micro_batch_size):
    loss = model(batch).mean()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("imports", "is_megatron"), [("", False), ("from megatron.core import mpu\n", True)]
)
def test_options_named_as_megatrons_make_no_megatron(
    tmp_path: Path, imports: str, is_megatron: bool
) -> None:
    flags = "--micro-batch-size 4 --num-layers 12 --hidden-size 768 --num-attention-heads 12"
    files = {
        "train.py": NAMED_ALIKE.format(imports),
        "run.sh": f"torchrun --nproc_per_node 2 train.py {flags} --train-iters 9\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (run,) = find_runs(Project.open(tmp_path))
    assert (run.value("megatron") is True) is is_megatron
