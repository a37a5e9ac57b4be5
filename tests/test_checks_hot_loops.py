"""Faults in training loops: reported at each call made at every step, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, judged, runs_alone, runs_of

from flake8_gpu_training.checks.base import Priority, Status

LOOP = """\
import torch
from torch.utils.data import DataLoader
loader = DataLoader(dataset, 8, True, num_workers=4, pin_memory={pinned})
for epoch in range(3):
    for step, (inputs, targets) in enumerate(loader):
        inputs = inputs.to({device}, non_blocking=True)
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {line}
    {after}
"""
LINE = 12


def lines(code: str, line: str = "pass", after: str = "pass", device: str = '"cuda"') -> list[int]:
    text = LOOP.format(line=line, after=after, device=device, pinned=True)
    return [finding.location.line for finding in findings(runs_alone(text), code)]


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("GPU350", "total += loss.item()"),
        ("GPU350", "bar.set_postfix(loss=loss.item())"),
        ("GPU350", "hits += (outputs.argmax(1) == targets).sum().item()"),
        ("GPU350", "total += float(loss)"),
        ("GPU351", "kept.append(outputs.detach().cpu().numpy())"),
        ("GPU351", "kept.extend(outputs.tolist())"),
        ("GPU352", "print(loss)"),
        ("GPU352", 'print(f"loss {loss:.4f}")'),
        ("GPU353", "torch.cuda.synchronize()"),
        ("GPU354", "torch.cuda.empty_cache()"),
        ("GPU355", "optimizer.zero_grad(set_to_none=False)"),
        ("GPU551", 'torch.save(model.state_dict(), "last.pt")'),
        ("GPU551", 'model.save_pretrained("last")'),
    ],
)
def test_a_stall_at_every_step_is_reported_once_at_its_line(code: str, line: str) -> None:
    assert lines(code, line) == [LINE]


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("GPU350", "if step % 10 == 0: print(loss.item())"),
        ("GPU350", "total += loss.detach()"),
        ("GPU350", "value = loss.cpu().item()"),
        ("GPU350", "count += sizes.item()"),
        ("GPU350", "total += float(ratio)"),
        ("GPU351", "model.cpu()"),
        ("GPU351", "images = [Image.fromarray(i.cpu().numpy()) for i in inputs]"),
        ("GPU351", "names.tolist()"),
        ("GPU352", "print(step)"),
        ("GPU352", "if step % 50 == 0: print(loss)"),
        ("GPU353", "if step == 100: torch.cuda.synchronize()"),
        ("GPU354", "if step % 1000 == 0: torch.cuda.empty_cache()"),
        ("GPU355", "optimizer.zero_grad(set_to_none=True)"),
        ("GPU551", "if step % 500 == 0: torch.save(model, 'last.pt')"),
        ("GPU551", "figure.save('last.png')"),
    ],
)
def test_guarded_or_harmless_calls_are_left_alone(code: str, line: str) -> None:
    assert lines(code, line) == []


@pytest.mark.parametrize(
    ("code", "after"),
    [
        ("GPU350", "print(loss.item())"),
        ("GPU354", "torch.cuda.empty_cache()"),
        ("GPU551", "torch.save(model.state_dict(), 'last.pt')"),
    ],
)
def test_once_an_epoch_is_fine(code: str, after: str) -> None:
    assert lines(code, after=after) == []


def test_evaluation_loops_are_left_alone() -> None:
    after = "for inputs, targets in test_loader: hits += (model(inputs) == targets).sum().item()"
    assert lines("GPU350", after=after) == []


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("for batch in train:", 1),
        ("for batch in tqdm(batches, leave=False):", 1),
        ("for epoch in range(100):", 0),
        ("for epoch in tqdm(range(100)):", 0),
        ("while step < 1000:", 0),
    ],
)
def test_a_loop_that_trains_is_told_from_one_over_epochs(loop: str, expected: int) -> None:
    text = f"""\
import torch
from tqdm import tqdm

def fit(model, optimizer, data, train, batches):
    device = torch.device("cuda")
    model.to(device)
    {loop}
        loss = model(data)
        loss.backward()
        optimizer.step()
        print(loss.item())
"""
    assert len(findings(runs_alone(text), "GPU350")) == expected


def test_loops_on_the_cpu_are_left_alone() -> None:
    assert lines("GPU350", "total += loss.item()", device='"cpu"') == []


def test_a_number_under_the_name_of_a_loss_is_no_tensor() -> None:
    text = LOOP.format(
        line="loss = loss.item()\n        print(loss)", after="pass", device='"cuda"', pinned=True
    )
    assert findings(runs_alone(text), "GPU352") == []


def test_benchmarks_measure_on_purpose() -> None:
    text = LOOP.format(line="torch.cuda.synchronize()", after="pass", device='"cuda"', pinned=True)
    assert findings(runs_alone(text, "benchmark_step.py"), "GPU353") == []


@pytest.mark.parametrize(
    ("base", "method", "expected"),
    [
        ("lightning.LightningModule", "training_step(self, batch, index)", 1),
        ("lightning.LightningModule", "validation_step(self, batch, index)", 0),
        ("transformers.Trainer", "compute_loss(self, model, batch)", 1),
        ("torch.nn.Module", "compute_loss(self, model, batch)", 0),
    ],
)
def test_trainers_call_their_step_methods_at_every_step(
    base: str, method: str, expected: int
) -> None:
    text = f"""\
import lightning
import torch
import transformers

class Tuning({base}):
    def {method}:
        loss = self.model(batch).loss
        self.history.append(loss.item())
        return loss

Tuning().model.cuda()
"""
    assert len(findings(runs_alone(text), "GPU350")) == expected


def blocking(line: str, pinned: bool = True) -> list[int]:
    text = LOOP.format(line=line, after="pass", device='"cuda"', pinned=pinned)
    return [finding.location.line for finding in findings(runs_alone(text), "GPU550")]


def test_blocking_copies_are_reported_where_batches_are_pinned() -> None:
    assert blocking("targets = targets.to(device)") == [LINE]
    assert blocking("targets = targets.cuda()") == [LINE]
    assert blocking("targets = targets.to(device)", pinned=False) == []


@pytest.mark.parametrize(
    ("pinned", "before", "expected"),
    [
        ("True", "", 1),
        ("False", "", 0),
        ("pin", "", 0),
        ("True", "rows = accelerator.prepare(make_rows())", 0),
        ("True", "rest = DataLoader(dataset, 8, shuffle=True)", 0),
    ],
)
def test_a_loader_under_another_name_is_pinned_when_all_are(
    pinned: str, before: str, expected: int
) -> None:
    text = f"""\
import torch
from torch.utils.data import DataLoader

def make_rows():
    return DataLoader(dataset, 8, shuffle=True, num_workers=4, pin_memory={pinned})

{before}
for batch in train_loader:
    loss = model(batch.to("cuda"))
    loss.backward()
"""
    assert len(findings(runs_alone(text), "GPU550")) == expected


@pytest.mark.parametrize(
    "line",
    [
        "targets = targets.to(device, non_blocking=True)",
        "targets = targets.to(torch.float16)",
        "targets = targets.to(**options)",
        "model.to(device)",
    ],
)
def test_other_conversions_are_no_blocking_copies(line: str) -> None:
    assert blocking(line) == []


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        ("torch.nn.Embedding(50257, 768)", 1),
        ("torch.nn.Linear(768, 50257)", 1),
        ("torch.nn.Linear(768, 50304)", 0),
        ("torch.nn.Linear(784, 10)", 0),
        ("torch.nn.Linear(768, size)", 0),
    ],
)
def test_large_sizes_that_miss_the_tensor_cores_are_reported(layer: str, expected: int) -> None:
    text = LOOP.format(line="pass", after="pass", device='"cuda"', pinned=True)
    found = findings(runs_alone(f"{text}head = {layer}\n"), "GPU356")
    assert len(found) == expected
    assert all("pad it to 50304" in finding.message for finding in found)


def test_each_copy_has_its_own_change() -> None:
    text = LOOP.format(
        line="targets = targets.to(device)", after="pass", device='"cuda"', pinned=True
    )
    (found,) = findings(runs_alone(text), "GPU550")
    assert found.change is not None
    assert [edit.new for edit in found.change.edits] == [", non_blocking=True"]


def test_a_file_full_of_fetches_is_told_at_three_lines() -> None:
    body = "".join(f"    total += acc{n}.item()\n" for n in range(6))
    text = (
        "import torch\n\nmodel = model.cuda()\nfor batch in loader:\n"
        f"    loss = model(batch.cuda())\n    loss.backward()\n{body}"
    )
    (run,) = runs_alone(text)
    found = judged(run, "GPU350").findings
    assert [finding.location.line for finding in found] == [7, 8, 9]
    assert found[-1].message.endswith("(3 more in this file)")


def test_waiting_once_in_a_long_step_is_of_low_priority() -> None:
    text = (
        "import torch\nfrom transformers import AutoModelForCausalLM\n\n"
        'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B").cuda()\n'
        "for batch in loader:\n    loss = model(**batch).loss\n    loss.backward()\n"
        "    total += loss.item()\n"
    )
    (run,) = runs_alone(text)
    assert judged(run, "GPU350").priority is Priority.LOW
    (small,) = runs_alone(text.replace("Qwen2.5-7B", "Qwen2.5-0.5B"))
    assert judged(small, "GPU350").priority is None


CALLED = """\
import torch
from torch.utils.data import DataLoader
loader = DataLoader(dataset, 8, True, num_workers=4, pin_memory=True)

def measure(loss, step, batch):
    {body}

def train_one_epoch(model, optimizer):
    device = torch.device("cuda")
    for step, batch in enumerate(loader):
        batch = batch.to(device, non_blocking=True)
        loss = model(batch)
        loss.backward()
        optimizer.step()
        {line}
"""
BODY = 6
MEASURED = "measure(loss, step, batch)"


def called(code: str, body: str, line: str = MEASURED) -> list[tuple[int, str]]:
    text = CALLED.format(body=body, line=line)
    return [(f.location.line, f.message) for f in findings(runs_alone(text), code)]


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("GPU350", "return {'loss': loss.item()}"),
        ("GPU350", "return float(loss)"),
        ("GPU351", "kept.append(loss.detach().cpu())"),
        ("GPU352", "print(f'{loss}')"),
        ("GPU353", "torch.cuda.synchronize()"),
        ("GPU354", "torch.cuda.empty_cache()"),
        ("GPU355", "optimizer.zero_grad(set_to_none=False)"),
        ("GPU550", "return batch.to(device)"),
        ("GPU551", "torch.save(model.state_dict(), 'last.pt')"),
    ],
)
def test_a_stall_in_a_function_that_the_loop_calls_names_the_loop(code: str, body: str) -> None:
    ((line, message),) = called(code, body)
    assert line == BODY
    assert message.endswith("(measure() is called from the loop in line 10)")


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("if step % 10 == 0: print(loss.item())", MEASURED),
        ("return loss.item() if step % 10 == 0 else None", MEASURED),
        ("return loss.item()", f"if step % 10 == 0: {MEASURED}"),
        ("return loss.item()", "pass"),
        ("return loss.item()", "measure(loss.cpu(), step, batch)"),
        ("return loss.item()", "other.measure(loss, step, batch)"),
        ("loss = loss.cpu()\n    return loss.item()", MEASURED),
        ("for other in test_loader: total += loss.item()", MEASURED),
        ("if step % 10:\n        return {}\n    return loss.item()", MEASURED),
        ("if step != 0:\n        return {}\n    print(loss.item())", MEASURED),
        ("if step:\n        for x in batch:\n            print(loss.item())", MEASURED),
    ],
)
def test_what_a_function_does_now_and_then_is_left_alone(body: str, line: str) -> None:
    assert called("GPU350", body, line) == []


def test_a_function_called_where_a_number_is_passed_is_left_alone() -> None:
    line = f"loss = loss.item()\n        {MEASURED}"
    assert [found[0] for found in called("GPU350", "print(loss.item())", line)] == [15]


def test_only_one_level_is_followed() -> None:
    body = "return deeper(loss)\n\ndef deeper(loss):\n    return loss.item()"
    assert called("GPU350", body) == []


def test_a_branch_around_an_inner_loop_guards_what_is_in_it() -> None:
    line = "if step % 10 == 0:\n            for name in names:\n                print(loss.item())"
    assert lines("GPU350", line) == []
    assert lines("GPU350", "for name in names:\n            print(loss.item())") == [LINE + 1]


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("rank == 0", 1),
        ("dist.get_rank() == 0", 1),
        ("not args.local_rank", 1),
        ("args.local_rank in (-1, 0)", 1),
        ("accelerator.is_main_process", 1),
        ("trainer.is_global_zero", 1),
        ("not dist.is_initialized() or dist.get_rank() == 0", 1),
        ("rank == 0 and step % 50 == 0", 0),
        ("step % world_rank == 0", 0),
        ("main", 0),
        ("writer is not None", 0),
    ],
)
def test_a_branch_for_one_rank_is_taken_at_every_step(test: str, expected: int) -> None:
    assert len(lines("GPU350", f"if {test}: print(loss.item())")) == expected
    body = f"if not ({test}):\n        return None\n    return loss.item()"
    assert len(called("GPU350", body)) == expected


def test_reports_of_one_rank_at_every_step_are_told_once() -> None:
    text = LOOP.format(
        line='if rank == 0: wandb.log({"lr": lr})', after="pass", device='"cuda"', pinned=True
    )
    (run,) = runs_alone(f"import wandb\n{text}")
    assert [f.location.line for f in judged(run, "GPU805").findings] == [LINE + 1]
    assert judged(run, "GPU804").status is Status.UNKNOWN


PROJECT = {
    "train.sh": "python train.py\n",
    "train.py": """\
import torch
from torch.utils.data import DataLoader
from lib.metrics import compute_metrics
from lib import meters

loader = DataLoader(dataset, 8, True, num_workers=4, pin_memory=True)
model = torch.nn.Linear(8, 8).to("cuda")
history = meters.History()
for step, batch in enumerate(loader):
    loss = model(batch.to("cuda", non_blocking=True)).sum()
    loss.backward()
    optimizer.step()
    compute_metrics(loss)
    history.add(loss)
    meters.now_and_then(step, loss)
""",
    "lib/__init__.py": "",
    "lib/metrics.py": "def compute_metrics(loss):\n    return {'loss': loss.item()}\n",
    "lib/meters.py": """\
import torch

class History(torch.nn.Module):
    def add(self, loss):
        self.losses.append(loss.item())

    def unused(self, loss):
        return loss.item()

def now_and_then(step, loss):
    if step % 50 == 0:
        print(loss.item())
""",
}


def test_functions_of_the_projects_own_modules_are_followed(tmp_path: Path) -> None:
    found = findings(runs_of(tmp_path, PROJECT), "GPU350")
    assert [str(finding.location) for finding in found] == ["lib/meters.py:5", "lib/metrics.py:2"]
    assert all("from the loop at train.py:9)" in finding.message for finding in found)


STEPS = """\
import torch
from torch.utils.data import DataLoader

def train_step(model, optimizer, batch):
    loss = model(batch)
    loss.backward()
    optimizer.step()
    {body}
    return loss

def eval_step(model, batch):
    loss = model(batch)
    return loss.item()

train_loader = DataLoader(dataset, 8, True)
model = torch.nn.Linear(8, 8).cuda()
for batch in train_loader:
    loss = train_step(model, optimizer, batch)
    {line}
for batch in test_loader:
    total += eval_step(model, batch)
"""


@pytest.mark.parametrize(
    ("body", "line", "expected"),
    [
        ("print(loss.item())", "pass", [8]),
        ("pass", "total += loss.item()", [19]),
        ("pass", "pass", []),
    ],
)
def test_a_loop_trains_by_the_function_that_it_calls(
    body: str, line: str, expected: list[int]
) -> None:
    found = findings(runs_alone(STEPS.format(body=body, line=line)), "GPU350")
    assert [finding.location.line for finding in found] == expected


MODULE = """\
import {library} as L
import torch

class Base(L.LightningModule):
    def shared(self, batch, stage):
        loss = self.model(batch)
        {shared}
        return loss

class Net(Base):
    def training_step(self, batch, index):
        loss = self.shared(batch, "train")
        {line}
        return loss

    def validation_step(self, batch, index):
        self.log("loss", self.shared(batch, "val"), sync_dist=True)

L.Trainer(accelerator="cuda").fit(Net())
"""


@pytest.mark.parametrize("library", ["lightning", "pytorch_lightning"])
@pytest.mark.parametrize(
    ("code", "shared", "line", "expected"),
    [
        ("GPU350", "pass", "self.seen.append(loss.item())", [13]),
        ("GPU350", "self.seen.append(loss.item())", "pass", [7]),
        ("GPU350", "pass", "if index % 50 == 0: print(loss.item())", []),
        ("GPU352", "print(loss)", "pass", [7]),
        ("GPU450", "pass", 'self.log("loss", loss, sync_dist=True)', [13]),
        ("GPU450", "pass", 'self.log("loss", loss, on_step=True, sync_dist=True)', [13]),
        ("GPU450", "pass", 'self.log_dict({"loss": loss}, sync_dist=True)', [13]),
        ("GPU450", 'self.log(f"{stage}/loss", loss, sync_dist=True)', "pass", [7]),
        ("GPU450", "pass", 'self.log("loss", loss, on_step=False, sync_dist=True)', []),
        ("GPU450", "pass", 'self.log("loss", loss, sync_dist=distributed)', []),
        ("GPU450", "pass", 'self.log("loss", loss)', []),
        ("GPU450", "pass", 'self.writer.log("loss", loss, sync_dist=True)', []),
    ],
)
def test_lightnings_training_step_and_what_it_calls(
    library: str, code: str, shared: str, line: str, expected: list[int]
) -> None:
    text = MODULE.format(library=library, shared=shared, line=line)
    found = findings(runs_alone(text), code)
    assert [finding.location.line for finding in found] == expected
    if shared != "pass":
        assert found[0].message.endswith("(shared() is called from training_step() in line 11)")


@pytest.mark.parametrize("method", ["compute_loss", "training_step"])
def test_a_trainers_steps_and_what_they_call(method: str) -> None:
    text = f"""\
import torch
from transformers import Trainer

def entropy_of(logits):
    return logits.softmax(-1).mean().item()

class Distilling(Trainer):
    def {method}(self, model, inputs, return_outputs=False):
        outputs = model(**inputs)
        self.track(outputs.loss)
        entropy_of(outputs.logits)
        return outputs.loss

    def track(self, loss):
        if self.state.global_step % 50 == 0:
            print(loss.item())
        torch.cuda.empty_cache()

Distilling(model.cuda(), args).train()
"""
    fetched = findings(runs_alone(text), "GPU350")
    assert [finding.location.line for finding in fetched] == [5]
    assert f"called from {method}() in line 8" in fetched[0].message
    assert [f.location.line for f in findings(runs_alone(text), "GPU354")] == [17]
