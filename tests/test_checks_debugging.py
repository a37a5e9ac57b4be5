"""Debugging switches that were left on: where they cost, and where they are right."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, hand_made, judged, runs_alone, runs_of

from flake8_gpu_training.checks.base import Priority
from flake8_gpu_training.runs.model import Hardware, RunKind

SCRIPT = (
    "export {}\nNPROC_PER_NODE=4 swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset a.jsonl\n"
)
PROGRAM = (
    "import os\nimport torch\n{}\nmodel = model.cuda()\n"
    "for batch in loader:\n    loss = model(batch)\n    loss.backward()\n"
)


@pytest.mark.parametrize(
    ("variable", "code"),
    [("CUDA_LAUNCH_BLOCKING=1", "GPU308"), ("TORCH_DISTRIBUTED_DEBUG=DETAIL", "GPU407")],
)
def test_a_switch_is_found_where_it_is_exported(tmp_path: Path, variable: str, code: str) -> None:
    (found,) = findings(runs_of(tmp_path, {"train.sh": SCRIPT.format(variable)}), code)
    assert found.location.line == 1
    assert found.message.startswith(f"drop {variable}")


@pytest.mark.parametrize(
    "variable",
    ["CUDA_LAUNCH_BLOCKING=0", "CUDA_LAUNCH_BLOCKING=$BLOCK", "TORCH_DISTRIBUTED_DEBUG=INFO"],
)
def test_a_switch_that_is_off_or_unknown_is_no_finding(tmp_path: Path, variable: str) -> None:
    runs = runs_of(tmp_path, {"train.sh": SCRIPT.format(variable)})
    assert findings(runs, "GPU308") == findings(runs, "GPU407") == []


def test_blocking_launches_are_found_in_serving_too() -> None:
    run = hand_made("vllm", environment={"CUDA_LAUNCH_BLOCKING": "1"}, kind=RunKind.SERVE)
    assert len(judged(run, "GPU308").findings) == 1


def test_a_program_sets_the_variable_itself() -> None:
    line = 'os.environ["CUDA_LAUNCH_BLOCKING"] = "1"'
    (found,) = findings(runs_alone(PROGRAM.format(line)), "GPU308")
    assert found.location.line == 3
    assert findings(runs_alone(PROGRAM.format(f"if debug:\n    {line}")), "GPU308") == []


@pytest.mark.parametrize(
    ("line", "code", "count"),
    [
        ("torch.autograd.set_detect_anomaly(True)", "GPU309", 1),
        ("torch.autograd.set_detect_anomaly(False)", "GPU309", 0),
        ("torch.autograd.set_detect_anomaly(args.debug)", "GPU309", 0),
        ("if args.debug:\n    torch.autograd.set_detect_anomaly(True)", "GPU309", 0),
        ("torch.use_deterministic_algorithms(True)", "GPU310", 1),
        ("torch.backends.cudnn.deterministic = True", "GPU310", 1),
        ("if args.seed:\n    torch.backends.cudnn.deterministic = True", "GPU310", 0),
    ],
)
def test_switches_of_pytorch(line: str, code: str, count: int) -> None:
    assert len(findings(runs_alone(PROGRAM.format(line)), code)) == count


@pytest.mark.parametrize(
    ("gpu", "priority"),
    [(None, Priority.LOW), ("A100-80G", Priority.HIGH), ("L40S", Priority.LOW)],
)
def test_peers_cut_off_cost_most_on_nvlink(gpu: str, priority: Priority) -> None:
    variables = {"NCCL_P2P_DISABLE": "1"}
    run = hand_made(processes=8, environment=variables, hardware=Hardware(gpu, 8, 1))
    answer = judged(run, "GPU408")
    assert answer.priority is priority
    assert len(answer.findings) == 1


def test_cards_without_peer_access_may_say_so() -> None:
    variables = {"NCCL_P2P_DISABLE": "1"}
    geforce = hand_made(processes=4, environment=variables, hardware=Hardware("RTX4090", 4, 1))
    alone = hand_made(processes=1, environment=variables)
    assert judged(geforce, "GPU408").findings == judged(alone, "GPU408").findings == ()
