"""Calls of PyTorch and commands of torchrun that PyTorch refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, runs_alone, runs_of

from flake8_gpu_training.frameworks.refusals import refusals_of

SCRIPT = """\
import datetime

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.amp import GradScaler
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.optim import lr_scheduler
from torch.utils.data import (
    BatchSampler, DataLoader, Dataset, DistributedSampler, IterableDataset, RandomSampler,
    WeightedRandomSampler,
)


class Stream(IterableDataset):
    def __iter__(self):
        yield 1


def main():
    data = Rows()
    sampler = DistributedSampler(data)
    stream = Stream()
    group = dist.new_group([0, 1])
    mesh = init_device_mesh("cuda", (2,))
    {}
    for batch in loader:
        loss = model(batch)
        loss.backward()
        optimizer.step()


main()
"""
CASES: tuple[tuple[str, str, str], ...] = (
    (
        "loader-number-negative",
        "DataLoader(data, num_workers=-1)",
        "DataLoader(data, num_workers=0)",
    ),
    ("loader-number-negative", "DataLoader(data, 8, timeout=-5)", "DataLoader(data, 8, timeout=0)"),
    ("batch-size-not-positive", "DataLoader(data, batch_size=0)", "DataLoader(data, batch_size=1)"),
    ("batch-size-not-positive", "DataLoader(data, 8.0)", "DataLoader(data, batch_size=None)"),
    (
        "batch-size-not-positive",
        "BatchSampler(sampler, 0, False)",
        "BatchSampler(sampler, 4, False)",
    ),
    (
        "sampler-with-shuffle",
        "DataLoader(data, shuffle=True, sampler=sampler)",
        "DataLoader(data, shuffle=False, sampler=sampler)",
    ),
    (
        "sampler-with-shuffle",
        "DataLoader(data, 8, True, DistributedSampler(data))",
        "DataLoader(data, 8, True, None)",
    ),
    (
        "batch-sampler-beside-batches",
        "DataLoader(data, batch_size=4, batch_sampler=BatchSampler(sampler, 4, True))",
        "DataLoader(data, batch_size=1, batch_sampler=BatchSampler(sampler, 4, True))",
    ),
    (
        "batch-sampler-beside-batches",
        "DataLoader(data, drop_last=True, batch_sampler=BatchSampler(sampler, 4, True))",
        "DataLoader(data, drop_last=False, batch_sampler=BatchSampler(sampler, 4, True))",
    ),
    (
        "dropping-without-batches",
        "DataLoader(data, batch_size=None, drop_last=True)",
        "DataLoader(data, batch_size=None, drop_last=False)",
    ),
    (
        "no-start-method",
        "DataLoader(data, num_workers=2, multiprocessing_context='thread')",
        "DataLoader(data, num_workers=2, multiprocessing_context='spawn')",
    ),
    (
        "context-without-workers",
        "DataLoader(data, multiprocessing_context='spawn')",
        "DataLoader(data, num_workers=1, multiprocessing_context='spawn')",
    ),
    (
        "timeout-without-workers",
        "DataLoader(data, timeout=60)",
        "DataLoader(data, timeout=60, num_workers=2)",
    ),
    (
        "nothing-prefetched",
        "DataLoader(data, num_workers=2, prefetch_factor=0)",
        "DataLoader(data, num_workers=2, prefetch_factor=1)",
    ),
    ("order-of-a-stream", "DataLoader(stream, shuffle=True)", "DataLoader(data, shuffle=True)"),
    (
        "order-of-a-stream",
        "DataLoader(Stream(), sampler=sampler)",
        "DataLoader(Stream(), shuffle=False)",
    ),
    (
        "draws-not-positive",
        "RandomSampler(data, num_samples=0)",
        "RandomSampler(data, num_samples=1)",
    ),
    (
        "draws-not-positive",
        "WeightedRandomSampler(weights, 0)",
        "WeightedRandomSampler(weights, 10)",
    ),
    (
        "sampler-switch-no-truth",
        "RandomSampler(data, replacement=1)",
        "RandomSampler(data, replacement=True)",
    ),
    (
        "sampler-rank-beyond",
        "DistributedSampler(data, num_replicas=4, rank=4)",
        "DistributedSampler(data, num_replicas=4, rank=3)",
    ),
    (
        "group-and-mesh-ddp",
        "DistributedDataParallel(model, process_group=group, device_mesh=mesh)",
        "DistributedDataParallel(model, process_group=group)",
    ),
    (
        "group-and-mesh-fsdp",
        "FullyShardedDataParallel(model, process_group=group, device_mesh=mesh)",
        "FullyShardedDataParallel(model, process_group=None, device_mesh=mesh)",
    ),
    (
        "several-device-ids",
        "DistributedDataParallel(model, device_ids=[0, 1])",
        "DistributedDataParallel(model, device_ids=[0])",
    ),
    (
        "output-device-alone",
        "DistributedDataParallel(model, output_device=1)",
        "DistributedDataParallel(model, device_ids=[1], output_device=1)",
    ),
    (
        "hybrid-sharding-by-hand",
        "FullyShardedDataParallel(model, sharding_strategy=ShardingStrategy.HYBRID_SHARD)",
        "FullyShardedDataParallel(model, sharding_strategy=ShardingStrategy.FULL_SHARD)",
    ),
    (
        "hybrid-sharding-by-hand",
        "FullyShardedDataParallel(model, sharding_strategy=ShardingStrategy.HYBRID_SHARD)",
        "FullyShardedDataParallel(model, sharding_strategy=ShardingStrategy.HYBRID_SHARD, "
        "auto_wrap_policy=policy)",
    ),
    (
        "reshard-no-number",
        "fully_shard(model, reshard_after_forward='yes')",
        "fully_shard(model, reshard_after_forward=4)",
    ),
    (
        "mesh-names-twice",
        "init_device_mesh('cuda', (2, 2), mesh_dim_names=('dp', 'dp'))",
        "init_device_mesh('cuda', (2, 2), mesh_dim_names=('dp', 'tp'))",
    ),
    (
        "mesh-names-amiss",
        "init_device_mesh('cuda', (2, 2), mesh_dim_names=('dp',))",
        "init_device_mesh('cuda', (2,), mesh_dim_names=('dp',))",
    ),
    (
        "mesh-with-device-number",
        "init_device_mesh('cuda:0', (2,))",
        "init_device_mesh('cuda', (2,))",
    ),
    (
        "timeout-no-duration",
        "dist.init_process_group('nccl', timeout=1800)",
        "dist.init_process_group('nccl', timeout=datetime.timedelta(seconds=1800))",
    ),
    (
        "store-and-method",
        "dist.init_process_group('nccl', 'env://', store=dist.TCPStore('h', 1))",
        "dist.init_process_group('nccl', store=dist.TCPStore('h', 1))",
    ),
    (
        "method-without-port",
        "dist.init_process_group('nccl', 'tcp://10.0.0.1', rank=0, world_size=2)",
        "dist.init_process_group('nccl', 'tcp://10.0.0.1:23456', rank=0, world_size=2)",
    ),
    (
        "method-without-rank",
        "dist.init_process_group('nccl', init_method='tcp://10.0.0.1:23456')",
        "dist.init_process_group('nccl', init_method='env://')",
    ),
    (
        "growth-factor",
        "GradScaler('cuda', growth_factor=1.0)",
        "GradScaler('cuda', growth_factor=2)",
    ),
    (
        "backoff-factor",
        "torch.cuda.amp.GradScaler(2.0, 2.0, 1.5)",
        "torch.cuda.amp.GradScaler(2.0, 2.0, 0.5)",
    ),
    (
        "compile-mode-and-options",
        "torch.compile(model, mode='max-autotune', options={'trace.enabled': True})",
        "torch.compile(model, options={'trace.enabled': True})",
    ),
    (
        "compile-mode",
        "torch.compile(model, mode='max_autotune')",
        "torch.compile(model, mode='max-autotune')",
    ),
    (
        "compile-mode",
        "torch.compile(model, mode='fast')",
        "torch.compile(model, mode='fast', backend=other)",
    ),
    (
        "optimizer-number-out-of-range",
        "optim.AdamW(model.parameters(), lr=-1e-4)",
        "optim.AdamW(model.parameters(), lr=0)",
    ),
    (
        "optimizer-number-out-of-range",
        "optim.SGD(model.parameters(), 0.1, -0.9)",
        "optim.SGD(model.parameters(), 0.1, 0.9)",
    ),
    (
        "optimizer-number-out-of-range",
        "lr_scheduler.LinearLR(optimizer, start_factor=0)",
        "lr_scheduler.LinearLR(optimizer, start_factor=0.1)",
    ),
    (
        "optimizer-number-out-of-range",
        "lr_scheduler.ReduceLROnPlateau(optimizer, factor=1.0)",
        "lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5)",
    ),
    (
        "optimizer-number-out-of-range",
        "lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 0)",
        "lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 10)",
    ),
    (
        "betas-out-of-range",
        "optim.Adam(model.parameters(), betas=(0.9, 1.0))",
        "optim.Adam(model.parameters(), betas=(0.9, 0.999))",
    ),
    (
        "etas-out-of-range",
        "optim.Rprop(model.parameters(), etas=(0.5, 0.9))",
        "optim.Rprop(model.parameters(), etas=(0.5, 1.2))",
    ),
    (
        "fused-with-foreach",
        "optim.AdamW(model.parameters(), fused=True, foreach=True)",
        "optim.AdamW(model.parameters(), fused=True, foreach=False)",
    ),
    (
        "fused-with-differentiable",
        "optim.Adam(model.parameters(), fused=True, differentiable=True)",
        "optim.Adam(model.parameters(), fused=True)",
    ),
    (
        "fused-with-foreach-elsewhere",
        "optim.SGD(model.parameters(), 0.1, fused=True, foreach=True)",
        "optim.SGD(model.parameters(), 0.1, fused=True)",
    ),
    (
        "fused-with-differentiable-elsewhere",
        "optim.SGD(model.parameters(), 0.1, fused=True, differentiable=True)",
        "optim.SGD(model.parameters(), 0.1, foreach=True, differentiable=True)",
    ),
    (
        "nesterov-without-momentum",
        "optim.SGD(model.parameters(), lr=0.1, nesterov=True)",
        "optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)",
    ),
    (
        "cycle-without-steps",
        "lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, epochs=3)",
        "lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, epochs=3, steps_per_epoch=n)",
    ),
    (
        "no-annealing",
        "lr_scheduler.OneCycleLR(optimizer, 0.1, 100, anneal_strategy='cosine')",
        "lr_scheduler.OneCycleLR(optimizer, 0.1, 100, anneal_strategy='cos')",
    ),
    (
        "no-cycle-mode",
        "lr_scheduler.CyclicLR(optimizer, 0.1, 0.2, mode='cosine')",
        "lr_scheduler.CyclicLR(optimizer, 0.1, 0.2, mode='cosine', scale_fn=f)",
    ),
    (
        "no-plateau-mode",
        "lr_scheduler.ReduceLROnPlateau(optimizer, 'best')",
        "lr_scheduler.ReduceLROnPlateau(optimizer, 'max')",
    ),
    (
        "restarts-no-number",
        "lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=10.5)",
        "lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=10)",
    ),
)


def messages(statement: str, version: str = "2.13.0", code: str = "GPU024") -> list[str]:
    """What a check says of a script with this statement."""
    runs = runs_alone(SCRIPT.format(statement), torch=version)
    assert runs
    return [f.message for f in findings(runs, code)]


@pytest.mark.parametrize(("rule", "refused", "taken"), CASES)
def test_a_rule(rule: str, refused: str, taken: str) -> None:
    mend = next(one for one in refusals_of("torch") if one.name == rule).mend.en
    (message,) = messages(refused)
    assert message.startswith(mend.partition("{")[0])
    assert message.endswith("(PyTorch 2.13.0)")
    assert messages(taken) == []


def test_each_rule_has_a_case() -> None:
    constructors = {r.name for r in refusals_of("torch") if r.groups != ("torchrun",)}
    assert constructors == {rule for rule, _, _ in CASES} | {"mesh-beyond-ranks"}


def test_a_mesh_needs_as_many_ranks(tmp_path: Path) -> None:
    files = {
        "train.py": SCRIPT.format("init_device_mesh('cuda', (2, 4))"),
        "run.sh": "torchrun --nproc_per_node 4 train.py\n",
    }
    (one,) = findings(runs_of(tmp_path / "few", files), "GPU024")
    assert one.message.startswith("let the product of mesh_shape be 4 at most: it takes 8 ranks")
    files["run.sh"] = "torchrun --nproc_per_node 8 train.py\n"
    assert findings(runs_of(tmp_path / "all", files), "GPU024") == []


@pytest.mark.parametrize(
    "unsure",
    [
        "DataLoader(data, num_workers=n)",
        "DataLoader(data, shuffle=True, **options)",
        "DataLoader(data, shuffle=True, sampler=given)",
        "DataLoader(data, shuffle=True, sampler=DistributedSampler(data) if many else None)",
        "DataLoader(rows, shuffle=True, sampler=None)",
        "DataLoader(data, batch_size=4, batch_sampler=given)",
        "DataLoader(given, shuffle=True)",
        "optim.AdamW(groups, lr=rate, betas=(a, b))",
        "lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=steps)",
        "dist.init_process_group('nccl', timeout=limit, init_method=method)",
        "init_device_mesh('cuda', shape, mesh_dim_names=names)",
    ],
)
def test_what_is_not_sure_is_not_told(unsure: str) -> None:
    assert messages(unsure) == []


def test_a_sampler_of_a_branch_may_be_none() -> None:
    statement = (
        "picked = None\n    if many:\n        picked = DistributedSampler(data)\n"
        "    loader = DataLoader(data, shuffle=True, sampler=picked)"
    )
    assert messages(statement) == []


@pytest.mark.parametrize(
    ("statement", "version"),
    [
        ("init_device_mesh('cuda:0', (2,))", "2.3.1"),
        ("optim.SGD(model.parameters(), 0.1, fused=True, foreach=True)", "2.0.1"),
    ],
)
def test_a_release_without_the_rule_is_silent(statement: str, version: str) -> None:
    assert messages(statement, version) == []


# --- keywords ---------------------------------------------------------------------------


def test_a_keyword_that_a_constructor_does_not_have() -> None:
    (message,) = messages("DataLoader(data, prefetch_factors=2)", code="GPU005")
    assert message.startswith("write prefetch_factor: PyTorch 2.13.0 has no parameter")
    assert message.endswith("and DataLoader raises TypeError")


@pytest.mark.parametrize(("version", "told"), [("2.13.0", 1), ("2.3.1", 0)])
def test_a_keyword_that_a_release_dropped(version: str, told: int) -> None:
    statement = "lr_scheduler.ReduceLROnPlateau(optimizer, verbose=True)"
    assert len(messages(statement, version, "GPU007")) == told


@pytest.mark.parametrize(
    "taken",
    [
        "mylib.DataLoader(data, own=1)",
        "DataLoader(data, in_order=False, pin_memory_device='cuda')",
        "torch.utils.checkpoint.checkpoint(layer, x, own=1, use_reentrant=False)",
        "optimizer.compile(anything=1)",
    ],
)
def test_other_calls_are_let_be(taken: str) -> None:
    assert messages(taken, code="GPU005") == []


# --- torchrun -----------------------------------------------------------------------------

COMMANDS: tuple[tuple[str, str, str], ...] = (
    ("nodes-no-range", "--nnodes 0", "--nnodes 1"),
    ("nodes-no-range", "--nnodes=4:2", "--nnodes=2:4"),
    ("nodes-no-range", "--nnodes=1:2:3", "--nnodes=1:2"),
    ("processes-no-number", "--nproc_per_node 0", "--nproc_per_node 1"),
    ("processes-no-number", "--nproc-per-node=cuda", "--nproc-per-node=gpu"),
    ("negative-restarts", "--max_restarts=-1", "--max_restarts=3"),
    ("port-out-of-range", "--master_port 70000", "--master_port 29501"),
    (
        "port-out-of-range",
        "--rdzv_backend c10d --rdzv_endpoint host:295000",
        "--rdzv_backend c10d --rdzv_endpoint host:29500",
    ),
    (
        "endpoint-without-port",
        "--rdzv_endpoint host",
        "--rdzv_backend c10d --rdzv_endpoint host",
    ),
    ("no-rendezvous-backend", "--rdzv_backend nccl", "--rdzv_backend c10d"),
    ("rendezvous-options", "--rdzv_conf timeout", "--rdzv_conf timeout=900,is_host=1"),
    ("streams-of-ranks", "--tee 7", "--tee 3"),
    ("streams-of-ranks", "--redirects 0:9", "--redirects 0:3,1:0"),
    ("ranks-no-numbers", "--local_ranks_filter 0,a", "--local_ranks_filter 0,1"),
    ("torchrun-no-python-with-module", "--no_python -m", "-m"),
    ("node-rank-beyond-nodes", "--nnodes 2 --node_rank 2", "--nnodes 2 --node_rank 1"),
    (
        "first-node-on-itself",
        '--nnodes 2 --node_rank "$RANK" --master_addr localhost',
        '--nnodes 2 --node_rank "$RANK" --master_addr 10.0.0.1',
    ),
    (
        "first-node-on-itself",
        "--nnodes 2 --node_rank 1 --master_addr 127.0.0.1",
        "--nnodes 2 --node_rank 0 --master_addr 127.0.0.1",
    ),
)


def launched(root: Path, flags: str, code: str = "GPU024") -> list[str]:
    """What a check says of a command of torchrun."""
    script = "train" if flags.split()[-1:] == ["-m"] else "train.py"
    files = {
        "train.py": SCRIPT.format("pass").replace("(2,)", "shape"),
        "run.sh": f"torchrun {flags} {script}\n",
        "requirements.txt": "torch==2.8.0\n",
    }
    return [f.message for f in findings(runs_of(root, files), code)]


@pytest.mark.parametrize(("rule", "refused", "taken"), COMMANDS)
def test_a_rule_of_torchrun(rule: str, refused: str, taken: str, tmp_path: Path) -> None:
    mend = next(one for one in refusals_of("torch") if one.name == rule).mend.en
    (message,) = launched(tmp_path / "bad", refused)
    assert message.startswith(mend.partition("{")[0])
    assert message.endswith("torchrun refuses it (PyTorch 2.8.0)")
    assert launched(tmp_path / "good", taken) == []


def test_each_rule_of_torchrun_has_a_case() -> None:
    names = {r.name for r in refusals_of("torch") if r.groups == ("torchrun",)}
    assert names == {rule for rule, _, _ in COMMANDS}


@pytest.mark.parametrize(
    "unsure",
    [
        '--nnodes "$NODES" --node_rank 5',
        "--nnodes 2 --node_rank 3 --rdzv_backend c10d --rdzv_endpoint h:1",
        "$FLAGS --nnodes 2 --node_rank 3",
        '--nnodes 2 --node_rank 1 --master_addr "${MASTER_ADDR:-localhost}"',
        '--nnodes "${NNODES:-2}" --standalone --master_addr localhost --node_rank 1',
        "--nproc_per_node npu",
        "--master_port $PORT",
    ],
)
def test_commands_that_may_be_right(unsure: str, tmp_path: Path) -> None:
    assert launched(tmp_path, unsure) == []


def test_a_flag_that_torchrun_does_not_know(tmp_path: Path) -> None:
    (message,) = launched(tmp_path / "a", "--nproc_per_nodes=4", "GPU005")
    assert message.startswith("write --nproc_per_node: PyTorch 2.8.0 has no parameter")
    assert launched(tmp_path / "b", "--nproc-per=4 --use_env", "GPU005") == []
