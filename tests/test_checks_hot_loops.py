"""Faults in training loops: reported at each call made at every step, and only there."""

from __future__ import annotations

import pytest
from checks_support import findings, judged, runs_alone

from flake8_gpu_training.checks.base import Priority

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
