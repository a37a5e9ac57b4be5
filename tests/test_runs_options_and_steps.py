"""Options that the program may set anew, and loops whose steps wait: what is asserted of them."""

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


SCRIPT = """\
import argparse
import json
import yaml
import torch
import torch.nn as nn
from easydict import EasyDict
from torch.utils.data import DataLoader
from torchvision import models
from lib.tools import load, setup, print_args, argv, Items


def main():
    parser = argparse.ArgumentParser(ENDS)
    parser.add_argument("--config", default="/home/user/conf.yaml")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--accum_steps", type=int, default=4)
    args = parser.parse_args()
    ARGUMENTS
    model = MODEL
    loader = LOADER
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    opt_d = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (images, labels) in enumerate(loader):
        STEP


main()
"""
WAITING = """\
loss = model(images).sum() / args.accum_steps
        loss.backward()
        if (step + 1) % args.accum_steps == 0:
            optimizer.step()
            optimizer.zero_grad()"""
FLAGS = "python train.py --batch-size 16"


def _script(
    arguments: str = "pass",
    step: str = WAITING,
    loader: str = 'DataLoader(load("data"), batch_size=args.batch_size)',
    model: str = "models.resnet18().cuda()",
) -> dict[str, str]:
    text = SCRIPT.replace("ENDS", "").replace("ARGUMENTS", arguments).replace("MODEL", model)
    if "accum" not in f"{step}{arguments}":
        text = text.replace('    parser.add_argument("--accum_steps", type=int, default=4)\n', "")
    return {"train.py": text.replace("LOADER", loader).replace("STEP", step)}


# --- options that the program sets anew ------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "batch", "steps"),
    [
        ("pass", 16, 4),
        ("print(args)", 16, 4),
        ("print_args(args)", 16, 4),
        ("json.dump(vars(args), open('args.json', 'w'))", 16, 4),
        ("args.device = load('device')", 16, 4),
        ("args = setup(args)", "unknown", "unknown"),
        ("args, extra = setup(args)", "unknown", "unknown"),
        ("setup(args)", "unknown", "unknown"),
        ("vars(args).update(yaml.safe_load(open(args.config)))", "unknown", "unknown"),
        ("args.__dict__ |= yaml.safe_load(open(args.config))", "unknown", "unknown"),
        ("args.__dict__ = json.load(open(args.config))", "unknown", "unknown"),
        (
            "args = argparse.Namespace(**{**vars(args), **yaml.safe_load(open(args.config))})",
            "unknown",
            "unknown",
        ),
        ("args = EasyDict({**load('base'), **vars(args)})", 16, 4),
        ("args = EasyDict({**vars(args), **load('base')})", "unknown", "unknown"),
        (
            "for key, value in load('conf').items():\n        setattr(args, key, value)",
            "unknown",
            "unknown",
        ),
        (
            "for key, value in load('conf').items():\n        args.__setattr__(key, value)",
            "unknown",
            "unknown",
        ),
        ("args.accum_steps = load('steps')", 16, "unknown"),
        ("parser.set_defaults(**load('conf'))\n    args = parser.parse_args()", 16, "unknown"),
        ("args = parser.parse_args(namespace=load('conf'))", 16, "unknown"),
        ("args = parser.parse_args(namespace=argparse.Namespace())", 16, 4),
        ("args = torch.load('last.pt')['args']", "unknown", "unknown"),
    ],
)
def test_options_that_may_be_set_anew_are_not_asserted(
    run_of: MakeRun, arguments: str, batch: Any, steps: Any
) -> None:
    run = run_of(_script(arguments), FLAGS)
    assert _value(run, "micro_batch_size") == batch
    assert _value(run, "gradient_accumulation_steps") == steps


def test_what_may_have_changed_is_a_candidate(run_of: MakeRun) -> None:
    value = run_of(_script("args = setup(args)"), FLAGS).practice("micro_batch_size").value
    assert value.candidates == (16,)


def test_configargparse_reads_files_under_the_flags(run_of: MakeRun) -> None:
    text = _script()["train.py"].replace("import argparse", "import configargparse as argparse")
    run = run_of({"train.py": text}, FLAGS)
    assert _value(run, "micro_batch_size") == 16
    assert _value(run, "gradient_accumulation_steps") == "unknown"


def test_a_parser_that_is_handed_over_may_be_filled_otherwise(run_of: MakeRun) -> None:
    text = _script()["train.py"].replace("parser.parse_args()", "setup(parser)")
    assert _value(run_of({"train.py": text}, FLAGS), "micro_batch_size") == "unknown"


# --- steps that wait -------------------------------------------------------------------------

_BACK = "loss = model(images).sum()\n        loss.backward()\n        "
_UPDATE = "optimizer.step()\n        optimizer.zero_grad()"
_OF_D = "model(labels).sum().backward()\n            opt_d.step()"


@pytest.mark.parametrize(
    ("step", "steps"),
    [
        (_BACK + _UPDATE, 1),
        ("if step < 3:\n            continue\n        " + _BACK + _UPDATE, 1),
        (_BACK + "if torch.isnan(loss):\n            continue\n        " + _UPDATE, "unknown"),
        (_BACK + "if not torch.isnan(loss):\n            optimizer.step()", 1),
        (_BACK + "if (step + 1) % 4:\n            continue\n        " + _UPDATE, "unknown"),
        (_BACK + "if step % 4 == 0 or step == 9:\n            optimizer.step()", 4),
        (_BACK + "last = step % 4 == 0\n        if last:\n            optimizer.step()", 4),
        (_BACK + "step % 4 == 0 and optimizer.step()", "unknown"),
        (_BACK + "if load(step):\n            optimizer.step()", "unknown"),
        (_BACK + _UPDATE + "\n        if step % 5 == 0:\n            " + _OF_D, 1),
        (
            "if step % 5 == 0:\n            " + _OF_D + "\n        " + _BACK + _UPDATE,
            1,
        ),
        (
            _BACK + _UPDATE + "\n        model(labels).sum().backward()\n"
            "        if step % 5 == 0:\n            opt_d.step()",
            "unknown",
        ),
        (
            "amp = load('amp')\n        if amp:\n            scaler.scale(loss).backward()\n"
            "            scaler.step(optimizer)\n        else:\n            loss.backward()\n"
            "            optimizer.step()",
            1,
        ),
        (
            "trains = load('phase')\n        if trains:\n            loss.backward()\n"
            "        images.cpu()\n        if trains:\n            optimizer.step()",
            1,
        ),
    ],
)
def test_one_step_is_said_where_each_pass_has_an_update(
    run_of: MakeRun, step: str, steps: Any
) -> None:
    run = run_of(_script(step=step), FLAGS)
    assert _value(run, "gradient_accumulation_steps") == steps


def test_an_option_that_the_loop_has_no_use_for_is_not_asserted(run_of: MakeRun) -> None:
    text = _script()["train.py"].replace("accum_steps", "gradient_accumulation_steps")
    assert _value(run_of({"train.py": text}, FLAGS), "gradient_accumulation_steps") == 4
    text = text.replace(WAITING.replace("accum", "gradient_accumulation"), _BACK + _UPDATE)
    assert _value(run_of({"train.py": text}, FLAGS), "gradient_accumulation_steps") == "unknown"


# --- batches ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loader", "batch"),
    [
        ('DataLoader(load("data"), batch_size=1)', 1),
        ('DataLoader(load("data"), batch_size=1, collate_fn=load("collate"))', "unknown"),
        ('DataLoader(Items("data", batch_size=8), batch_size=1)', "unknown"),
        ('DataLoader(load("data"), batch_size=2 * args.batch_size)', 32),
        ('DataLoader(load("data"), batch_size=args.batch_size * args.expand)', "unknown"),
    ],
)
def test_a_batch_that_may_be_another_is_not_asserted(
    run_of: MakeRun, loader: str, batch: Any
) -> None:
    option = 'parser.add_argument("--expand", type=int, default=2)'
    files = _script(f"{option}\n    args = parser.parse_args()", _BACK + _UPDATE, loader)
    assert _value(run_of(files, FLAGS), "micro_batch_size") == batch


def test_a_batch_that_the_loop_goes_through_is_dealt_out(run_of: MakeRun) -> None:
    step = "for part in labels:\n            model(part).sum().backward()\n"
    step += "            optimizer.step()"
    assert _value(run_of(_script(step=step), FLAGS), "micro_batch_size") == "unknown"


def test_a_class_of_data_parallel_deals_the_batch_out(run_of: MakeRun) -> None:
    wrapped = "\n\nclass Parallel(nn.DataParallel):\n    pass\n\n\ndef main():"
    text = _script(step=_BACK + _UPDATE, model="Parallel(models.resnet18()).cuda()")["train.py"]
    run = run_of({"train.py": text.replace("\n\ndef main():", wrapped)}, FLAGS)
    assert _value(run, "micro_batch_size") == "unknown"
    run = run_of({"train.py": text.replace("Parallel(models.resnet18())", "models.resnet18()")})
    assert _value(run, "micro_batch_size") == 32


# --- precision and processes -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "precision"),
    [
        ("torch.set_default_dtype(torch.float32)", "fp32"),
        ("torch.set_default_dtype(torch.float64)", "unknown"),
        ("torch.set_default_tensor_type(torch.cuda.FloatTensor)", "fp32"),
        ("torch.set_default_tensor_type(torch.cuda.HalfTensor)", "unknown"),
        ("torch.backends.cuda.matmul.allow_tf32 = True", "fp32"),
    ],
)
def test_weights_may_be_of_another_type(run_of: MakeRun, statement: str, precision: str) -> None:
    assert _value(run_of(_script(statement), FLAGS), "precision") == precision


def test_eight_bits_of_a_tool_are_not_the_training_s(run_of: MakeRun) -> None:
    tools = (
        "import transformer_engine.pytorch as te\n\n\ndef quantized(model):\n"
        "    forward = model.forward\n\n    def eight(*args):\n        with te.fp8_autocast():\n"
        "            return forward(*args)\n\n    model.forward = eight\n    return model\n"
    )
    files = _script("pass", _BACK + _UPDATE)
    files["train.py"] = files["train.py"].replace("import yaml", "from tools import quantized")
    assert _value(run_of({**files, "tools.py": tools}, FLAGS), "precision") == "unknown"
    cast = (
        "with te.fp8_autocast():\n            loss = model(images).sum()\n        loss.backward()"
    )
    text = _script(step=f"{cast}\n        {_UPDATE}")["train.py"]
    text = text.replace("import yaml", "import transformer_engine.pytorch as te")
    assert _value(run_of({"train.py": text}, FLAGS), "precision") == "fp8"


@pytest.mark.parametrize(
    ("end", "processes"),
    [
        ("main()\n", 1),
        (
            "import submitit\nexecutor = submitit.AutoExecutor('logs')\n"
            "executor.update_parameters(gpus_per_node=8, tasks_per_node=8)\n"
            "executor.submit(main)\n",
            None,
        ),
        (
            "from ray.train.torch import TorchTrainer\nfrom ray.train import ScalingConfig\n"
            "TorchTrainer(main, scaling_config=ScalingConfig(num_workers=4)).fit()\n",
            None,
        ),
    ],
)
def test_schedulers_of_python_start_the_processes(
    run_of: MakeRun, end: str, processes: Optional[int]
) -> None:
    text = _script(step=_BACK + _UPDATE)["train.py"].replace("\nmain()\n", f"\n{end}")
    assert run_of({"train.py": text}, FLAGS).launcher.world_size == processes


ACCELERATED = """\
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from torchvision import models
from lib.tools import load

accelerator = Accelerator(gradient_accumulation_steps=2, mixed_precision="no")
model = models.resnet18()
CAST
optimizer = torch.optim.AdamW(model.parameters())
loader = DataLoader(load("data"), batch_size=8)
for step, batch in enumerate(loader):
    with accelerator.accumulate(model):
        loss = model(batch).sum()
        accelerator.backward(loss)
        STEP
"""


@pytest.mark.parametrize(
    ("cast", "step", "precision", "steps"),
    [
        ("pass", "optimizer.step()", "fp32", 2),
        ("model.to(torch.bfloat16)", "optimizer.step()", "unknown", 2),
        ("pass", "if step % 4 == 0:\n            optimizer.step()", "fp32", "unknown"),
    ],
)
def test_accelerate_and_the_program_s_own_ways_may_differ(
    run_of: MakeRun, cast: str, step: str, precision: str, steps: Any
) -> None:
    text = ACCELERATED.replace("CAST", cast).replace("STEP", step)
    run = run_of({"train.py": text}, "accelerate launch --num_processes 2 train.py")
    assert _value(run, "precision") == precision
    assert _value(run, "gradient_accumulation_steps") == steps


# --- runs that are asked about -----------------------------------------------------------------

SMALL = """\
import torch
from torch.utils.data import DataLoader
from torchvision import models

model = models.resnet18().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in DataLoader(data, batch_size=7):
    model(batch).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "launch", ["python -m recipe.dapo.main_dapo data.size=3", "bash scripts/go.sh"]
)
def test_another_script_does_not_stand_for_what_is_asked_about(
    run_of: MakeRun, launch: str
) -> None:
    script = "#!/bin/bash\npython -m recipe.dapo.main_dapo data.size=3\n"
    files = {"sft/train.py": SMALL, "scripts/go.sh": script}
    run = run_of(files, launch)
    assert run.entry != "sft/train.py"
    assert _value(run, "micro_batch_size") == "unknown"
    assert _value(run_of(files, "python sft/train.py"), "micro_batch_size") == 7


def test_a_package_in_a_folder_of_its_own_is_imported(run_of: MakeRun) -> None:
    files = {
        "scripts/train.py": "from kit.training.loop import train\n\ntrain()\n",
        "package/setup.py": "from setuptools import setup\nsetup(name='kit')\n",
        "package/kit/training/loop.py": SMALL.replace("for batch", "def train():\n  for batch", 1)
        .replace("    model(batch)", "      model(batch)")
        .replace("    optimizer.step", "      optimizer.step"),
    }
    assert _value(run_of(files, "python scripts/train.py"), "micro_batch_size") == 7
