"""Communication: between nodes, overlap, DDP options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from audit_cases import accelerated, launched, lightning
from checks_support import findings, hand_made, items_of, judged, runs_alone, runs_of, status

from flake8_gpu_training.checks.base import Priority, Status
from flake8_gpu_training.facts import Unknown
from flake8_gpu_training.runs.model import Hardware, Model, Run


def two_nodes(**environment: str) -> Run:
    return hand_made(processes=8, nodes=2, environment=environment)


def test_points_of_the_category_add_up() -> None:
    assert sum(item.points for item in items_of("general", "E")) == 4


def test_several_nodes_are_advised_rdma() -> None:
    answer = judged(two_nodes(NCCL_DEBUG="INFO"), "GPU401")
    assert answer.status is Status.RECOMMENDED
    assert len(answer.findings) == 1


@pytest.mark.parametrize("name", ["NCCL_IB_HCA", "NCCL_NET_GDR_LEVEL", "NCCL_IB_GID_INDEX"])
def test_rdma_settings_are_seen(name: str) -> None:
    assert status(two_nodes(**{name: "mlx5"}), "GPU401") is Status.ENABLED


def test_infiniband_turned_off_between_nodes_is_found_where_it_is_turned_off(
    tmp_path: Path,
) -> None:
    script = (
        "export NCCL_IB_DISABLE=1\n"
        "torchrun --nnodes=2 --nproc_per_node=8 --node_rank=$RANK --master_addr=node0 train.py\n"
    )
    program = (
        "from transformers import Trainer, TrainingArguments\n"
        'args = TrainingArguments(output_dir="out", bf16=True)\n'
        "Trainer(model=model, args=args, train_dataset=data).train()\n"
    )
    (run,) = runs_of(tmp_path, {"train.sh": script, "train.py": program})
    (finding,) = judged(run, "GPU401").findings
    assert (finding.location.path, finding.location.line) == ("train.sh", 1)
    assert finding.message.startswith("drop NCCL_IB_DISABLE=1")


def test_infiniband_left_on_by_zero_is_no_defect() -> None:
    run = two_nodes(NCCL_IB_DISABLE="0")
    assert status(run, "GPU401") is Status.ENABLED


def test_one_node_needs_no_rdma() -> None:
    run = hand_made(processes=8, environment={"NCCL_IB_DISABLE": "1"})
    assert status(run, "GPU401") is Status.NOT_APPLICABLE
    assert status(hand_made(), "GPU401") is Status.UNKNOWN


def test_overlap_is_on_by_default_under_ddp() -> None:
    run = hand_made(processes=8, practices={"ddp": True, "zero_stage": 0})
    assert status(run, "GPU402") is Status.ENABLED


def test_overlap_left_off_by_a_preset_costs_nothing() -> None:
    run = hand_made(processes=8, practices={"zero_stage": 2, "overlap_comm": False})
    assert status(run, "GPU402") is Status.DISABLED


@pytest.mark.parametrize(
    ("practices", "expected"),
    [
        ({"zero_stage": 3, "overlap_comm": True}, Status.ENABLED),
        ({"zero_stage": 2, "overlap_comm": Unknown("?")}, Status.UNKNOWN),
        ({"fsdp": "full_shard", "zero_stage": 0}, Status.ENABLED),
    ],
)
def test_overlap(practices: dict[str, Any], expected: Status) -> None:
    assert status(hand_made(processes=8, practices=practices), "GPU402") is expected


def test_overlap_needs_several_gpus() -> None:
    run = hand_made(processes=1, hardware=Hardware(gpus_per_node=1))
    assert status(run, "GPU402") is Status.NOT_APPLICABLE


def test_overlap_off_in_the_users_own_config_is_found_there(tmp_path: Path) -> None:
    config = (
        '{\n  "bf16": {"enabled": "auto"},\n  "zero_optimization": {\n    "stage": 2,\n'
        '    "overlap_comm": false\n  },\n  "train_micro_batch_size_per_gpu": "auto"\n}\n'
    )
    script = (
        "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora "
        "--deepspeed ds.json\n"
    )
    (run,) = runs_of(tmp_path, {"ds.json": config, "train.sh": script})
    (finding,) = judged(run, "GPU402").findings
    assert (finding.location.path, finding.location.line) == ("ds.json", 5)


def test_overlap_missing_in_the_users_own_config_is_found_at_its_section(tmp_path: Path) -> None:
    config = (
        '{\n  "bf16": {"enabled": "auto"},\n  "zero_optimization": {"stage": 2},\n'
        '  "train_micro_batch_size_per_gpu": "auto"\n}\n'
    )
    script = (
        "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora "
        "--deepspeed ds.json\n"
    )
    (run,) = runs_of(tmp_path, {"ds.json": config, "train.sh": script})
    (finding,) = judged(run, "GPU402").findings
    assert (finding.location.path, finding.location.line) == ("ds.json", 3)
    stage_3 = config.replace('"stage": 2', '"stage": 3')
    (run,) = runs_of(tmp_path, {"ds.json": stage_3, "train.sh": script})
    assert judged(run, "GPU402").findings == ()  # DeepSpeed overlaps by itself at stage 3


def test_compression_is_for_slow_networks_only() -> None:
    assert status(two_nodes(), "GPU403") is Status.DISABLED
    assert status(hand_made(processes=8), "GPU403") is Status.NOT_APPLICABLE
    assert status(hand_made(), "GPU403") is Status.UNKNOWN
    on = hand_made(processes=8, nodes=2, practices={"zero_hpz_partition_size": 8})
    assert status(on, "GPU403") is Status.ENABLED


def test_nccl_settings() -> None:
    assert status(two_nodes(NCCL_SOCKET_IFNAME="eth0"), "GPU404") is Status.ENABLED
    assert status(two_nodes(NCCL_DEBUG="INFO"), "GPU404") is Status.RECOMMENDED
    for name in ("NCCL_P2P_DISABLE", "NCCL_BLOCKING_WAIT", "NCCL_ASYNC_ERROR_HANDLING"):
        assert status(two_nodes(**{name: "1"}), "GPU404") is Status.RECOMMENDED  # no tuning
    assert status(hand_made(processes=8), "GPU404") is Status.DISABLED
    assert status(hand_made(), "GPU404") is Status.UNKNOWN
    one = hand_made(processes=1, hardware=Hardware(gpus_per_node=1))
    assert status(one, "GPU404") is Status.NOT_APPLICABLE


def test_unused_parameters_are_looked_for_only_where_asked() -> None:
    asked = hand_made(processes=8, practices={"find_unused_parameters": True})
    assert judged(asked, "GPU405").priority is Priority.MEDIUM
    other = hand_made(processes=8, practices={"find_unused_parameters": True}, model=Model())
    assert judged(other, "GPU405").priority is Priority.LOW
    assert judged(hand_made(processes=8), "GPU405").findings == ()


ACCUMULATES = """\
import torch
from accelerate import Accelerator
from torch.nn.parallel import DistributedDataParallel

gradient_accumulation_steps = 4
model = DistributedDataParallel(model.cuda())
for step, batch in enumerate(loader):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(batch) / gradient_accumulation_steps
    {backward}
    if (step + 1) % gradient_accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
"""


def test_accumulation_under_ddp_is_advised_no_sync() -> None:
    run = hand_made(
        "generic",
        practices={"gradient_accumulation_steps": 4},
        python=runs_alone(ACCUMULATES.format(backward="loss.backward()"))[0].python,
    )
    (finding,) = judged(run, "GPU406").findings
    assert finding.location.line == 6


def test_no_sync_in_the_program_is_seen() -> None:
    text = ACCUMULATES.format(backward="with model.no_sync():\n        loss.backward()")
    run = hand_made(
        "generic",
        practices={"gradient_accumulation_steps": 4},
        python=runs_alone(text)[0].python,
    )
    assert judged(run, "GPU406").findings == ()


@pytest.mark.parametrize(
    ("arguments", "imports", "place", "written"),
    [
        ('strategy="ddp_find_unused_parameters_true"', "", "strategy=", 'strategy="ddp"'),
        (
            "strategy=DDPStrategy(find_unused_parameters=True)",
            "from lightning.pytorch.strategies import DDPStrategy",
            "DDPStrategy(",
            "find_unused_parameters=False",
        ),
    ],
)
def test_lightnings_search_for_unused_parameters_is_told(
    arguments: str, imports: str, place: str, written: str, tmp_path: Path
) -> None:
    files = lightning(f"devices=8, {arguments}", imports)
    (finding,) = findings(runs_of(tmp_path, files), "GPU405")
    assert place in files["train.py"].splitlines()[finding.location.line - 1]
    assert finding.change is not None
    assert written in finding.change.text


def test_accelerates_search_for_unused_parameters_is_told(tmp_path: Path) -> None:
    program = accelerated(
        "kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)]",
        names="Accelerator, DistributedDataParallelKwargs",
    )
    launch = "accelerate launch --num_processes 8 train.py"
    assert len(findings(runs_of(tmp_path, launched(program, launch)), "GPU405")) == 1


def test_lightning_without_the_search_is_left_alone(tmp_path: Path) -> None:
    assert findings(runs_of(tmp_path, lightning('devices=8, strategy="ddp"')), "GPU405") == []


@pytest.mark.parametrize(("stage", "said"), [(1, "after the backward pass"), (3, "blocks the")])
def test_when_gradients_are_reduced_without_overlap(stage: int, said: str, tmp_path: Path) -> None:
    (run,) = runs_of(
        tmp_path,
        {
            "train.sh": "deepspeed --num_gpus 8 train.py --deepspeed ds.json\n",
            "train.py": "from transformers import HfArgumentParser, Trainer, TrainingArguments\n"
            "(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n"
            "Trainer(model, args, train_dataset=data).train()\n",
            "ds.json": f'{{"zero_optimization": {{"stage": {stage}, "overlap_comm": false}}}}',
        },
    )
    assert said in judged(run, "GPU402").findings[0].message
