"""Accumulation that a loop does by hand is read from what the optimizer's step waits for."""

from __future__ import annotations

from typing import Any

import pytest
from checks_support import findings, runs_alone, runs_of

from flake8_gpu_training.facts import known
from flake8_gpu_training.runs.model import Run

LOOP = """\
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--update-every", type=int, default=8)
args = parser.parse_args()
EVERY = 4
model = torch.nn.Linear(8, 8).cuda()
for step, batch in enumerate(train_loader):
    loss = model(batch.cuda()).sum()
    loss.backward()
    {line}
"""


def steps_of(run: Run) -> Any:
    setting = run.practice("gradient_accumulation_steps")
    return setting.value if known(setting.value) else None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("if (step + 1) % EVERY == 0: optimizer.step()", 4),
        ("if (step + 1) % 2 == 0 or step + 1 == len(train_loader): optimizer.step()", 2),
        ("if not (step + 1) % EVERY: optimizer.step()", 4),
        ("if (step + 1) % args.update_every == 0: scaler.step(optimizer)", 8),
        ("if (step + 1) % EVERY != 0: pass\n    else: optimizer.step()", 4),
        ("if (step + 1) % EVERY: pass\n    else: optimizer.step()", 4),
        ("if step % guess() == 0: optimizer.step()", None),
        ("if step % unseen == 0: optimizer.step()", None),
        ("if step % EVERY == 0: optimizer_g.step()\n    optimizer_d.step()", 1),
        ("if step % 2 == 0: optimizer_g.step()\n    if step % 3 == 0: optimizer_d.step()", None),
    ],
)
def test_updates_that_wait_accumulate(line: str, expected: Any) -> None:
    (run,) = runs_alone(LOOP.format(line=line).replace("optimizer_", "optim"))
    assert steps_of(run) == expected


def test_gradients_computed_now_and_then_do_not_add_up() -> None:
    text = LOOP.format(line="pass").replace(
        "    loss.backward()\n",
        "    if step % EVERY == 0:\n        loss.backward()\n        optimizer.step()\n",
    )
    (run,) = runs_alone(text)
    assert steps_of(run) != 4


@pytest.mark.parametrize(
    ("backward", "expected"),
    [
        ("loss.backward()", 1),
        ("with nullcontext() if step % 4 == 3 else model.no_sync(): loss.backward()", 0),
        ("model.require_backward_grad_sync = step % 4 == 3\n    loss.backward()", 0),
    ],
)
def test_ranks_that_accumulate_are_told_to_synchronise_once(
    tmp_path: Any, backward: str, expected: int
) -> None:
    text = (
        LOOP.format(line="if (step + 1) % EVERY == 0: optimizer.step()")
        .replace("    loss.backward()", f"    {backward}")
        .replace(".cuda()\nfor", ".cuda()\nmodel = DistributedDataParallel(model)\nfor")
        .replace(
            "import torch\n",
            "import torch\nfrom torch.nn.parallel import DistributedDataParallel\n",
        )
    )
    files = {"train.py": text, "go.sh": "torchrun --nproc_per_node=8 train.py\n"}
    assert len(findings(runs_of(tmp_path, files), "GPU406")) == expected
