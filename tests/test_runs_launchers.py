"""Launchers count their processes as their own sources do; what they decide later is unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Optional

import pytest

from flake8_gpu_training.facts import Unknown
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.hostfiles import excluded, included, read_hostfile
from flake8_gpu_training.runs.model import Run

MakeRuns = Callable[..., tuple[Run, ...]]
LOOP = """\
import torch
for batch in loader:
    loss = model(batch)
    loss.backward()
    optimizer.step()
"""
UNKNOWN = "unknown"


@pytest.fixture
def runs_in(tmp_path: Path) -> MakeRuns:
    def make(script: str, **files: str) -> tuple[Run, ...]:
        texts = {"train.py": LOOP, "run.sh": script}
        texts.update({name.replace("__", "."): text for name, text in files.items()})
        for name, text in texts.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        return find_runs(Project.open(tmp_path))

    return make


def size(run: Run) -> tuple[Any, Any]:
    """Processes per node and nodes."""
    found = (run.launcher.processes.value, run.launcher.nodes.value)
    return tuple(UNKNOWN if isinstance(value, Unknown) else value for value in found)  # type: ignore[return-value]


# --- DeepSpeed -------------------------------------------------------------------------------

HOSTS = "# ours\nn1 slots=8\nn2 slots=8\n\nn3 slots=4\n"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", (UNKNOWN, 3)),
        ("--exclude n3", (8, 2)),
        ("--exclude n1@n2:0,1,2,3", (4, 2)),
        ("--include n1@n2", (8, 2)),
        ("--include n1:0,1@n3:2,3", (2, 2)),
        ("--include n9", (UNKNOWN, UNKNOWN)),
        ("-i n1:8", (UNKNOWN, UNKNOWN)),
        ("--num_nodes 2", (8, 2)),
        ("--num_nodes 9", (UNKNOWN, 3)),
        ("--num_nodes 1 --num_gpus 3", (3, 1)),
        ("--num_gpus -1", (UNKNOWN, 3)),
        ('--include "$WHERE"', (UNKNOWN, UNKNOWN)),
    ],
)
def test_deepspeed_takes_what_flags_leave_of_its_hostfile(
    runs_in: MakeRuns, flags: str, expected: tuple[Any, Any]
) -> None:
    (run,) = runs_in(f"deepspeed --hostfile hosts {flags} train.py\n", hosts=HOSTS)
    assert size(run) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("CUDA_VISIBLE_DEVICES=1,3 deepspeed", (2, 1)),
        ("CUDA_VISIBLE_DEVICES=1,3 deepspeed --num_gpus 4", (4, 1)),
        ("CUDA_VISIBLE_DEVICES=1,3 deepspeed --include localhost:0,1,2", (3, 1)),
        ("CUDA_VISIBLE_DEVICES=1,3 deepspeed --include localhost", (UNKNOWN, 1)),
        ("CUDA_VISIBLE_DEVICES=1,3 deepspeed --exclude localhost:0", (UNKNOWN, 1)),
        ("deepspeed --hostfile /job/hosts", (UNKNOWN, UNKNOWN)),
        ("deepspeed --hostfile /job/hosts --num_nodes 2 --num_gpus 8", (8, 2)),
    ],
)
def test_deepspeed_without_a_hostfile_in_sight(
    runs_in: MakeRuns, command: str, expected: tuple[Any, Any]
) -> None:
    (run,) = runs_in(f"{command} train.py\n")
    assert size(run) == expected


@pytest.mark.parametrize("text", ["", "# none", "n1", "n1 slots=x", "n1 slots=2\nn1 slots=4"])
def test_a_hostfile_that_deepspeed_refuses_says_nothing(text: str) -> None:
    assert read_hostfile(text) is None


def test_filters_that_deepspeed_refuses_leave_nothing() -> None:
    pool = {"a": (0, 1)}
    assert included(pool, "a:2") is None
    assert included(pool, "b") is None
    assert excluded(pool, "a") is None
    assert excluded(pool, "a:x") is None
    assert included(pool, "a:1,0,1") == {"a": (0, 1)}


# --- torchrun, accelerate --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("PET_NPROC_PER_NODE=4 PET_NNODES=2 torchrun", (4, 2)),
        ("PET_NPROC_PER_NODE=4 torchrun --nproc_per_node 2", (2, 1)),
        ("PET_NNODES=1:4 torchrun --nproc_per_node 2", (2, UNKNOWN)),
        ("torchrun --nnodes 2:2 --nproc-per-node 8", (8, 2)),
        ("torchrun --nproc_per_node cpu", (UNKNOWN, 1)),
        ("accelerate launch", (UNKNOWN, 1)),
        ("accelerate launch --num_machines 2 --num_processes 16", (8, 2)),
        ("accelerate launch --num_machines 3 --num_processes 16", (UNKNOWN, 3)),
        ("accelerate launch --config_file c.yaml --num_processes 4", (1, 1)),
        ("accelerate launch --config_file c.yaml --use_fsdp --num_processes 4", (4, 1)),
        ("accelerate launch --config_file elsewhere.yaml --num_processes 4", (UNKNOWN, UNKNOWN)),
    ],
)
def test_torchrun_and_accelerate(
    runs_in: MakeRuns, command: str, expected: tuple[Any, Any]
) -> None:
    config = "compute_environment: LOCAL_MACHINE\ndistributed_type: 'NO'\nnum_machines: 1\n"
    (run,) = runs_in(f"{command} train.py\n", c__yaml=config)
    assert size(run) == expected


@pytest.mark.parametrize("written", ["NO", "'NO'"])
def test_a_file_that_distributes_nothing_is_quoted_as_it_is(
    runs_in: MakeRuns, written: str
) -> None:
    config = f"compute_environment: LOCAL_MACHINE\ndistributed_type: {written}\nnum_machines: 1\n"
    (run,) = runs_in("accelerate launch --config_file c.yaml train.py\n", c__yaml=config)
    assert run.launcher.processes.note == "distributed_type=NO"


# --- MPI and SLURM ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("mpirun -np 8", (8, 1)),
        ("mpirun -np 16 -npernode 8", (8, 2)),
        ("mpirun -n 16 -N 8", (8, 2)),
        ("mpirun -np 4 -ppn 8", (4, 1)),
        ("mpiexec -n 16 --map-by ppr:4:node:PE=8", (4, 4)),
        ("mpirun -np 16 -H a:8,b:8", (8, 2)),
        ("mpirun -H a:8,b:8", (8, 2)),
        ("mpirun -np 16 --hostfile hosts", (UNKNOWN, UNKNOWN)),
        ("mpirun -np 10 -npernode 8", (8, UNKNOWN)),
        ("mpirun", (UNKNOWN, 1)),
        ("mpirun -np $N", (UNKNOWN, UNKNOWN)),
    ],
)
def test_mpirun_counts_ranks(runs_in: MakeRuns, command: str, expected: tuple[Any, Any]) -> None:
    (run,) = runs_in(f"{command} python train.py\n")
    assert size(run) == expected


@pytest.mark.parametrize(
    ("directives", "command", "expected"),
    [
        ("-N 4 --ntasks-per-node=8", "srun", (8, 4)),
        ("-N 4 -n 32", "srun", (8, 4)),
        ("-N 4", "srun", (1, 4)),
        ("-n 8", "srun", (UNKNOWN, UNKNOWN)),
        ("-N 4 --ntasks-per-node=8", "srun -N1 -n2", (2, 1)),
        ("-N 4 --ntasks-per-node=8", "srun --nodes=2", (8, 2)),
        ("-N 2-4 --ntasks-per-node=8", "srun", (8, UNKNOWN)),
        ("-N 4 -n 30", "srun", (UNKNOWN, 4)),
        ("-N 2", "mpirun -np 16", (8, 2)),
    ],
)
def test_a_step_has_precedence_over_its_job(
    runs_in: MakeRuns, directives: str, command: str, expected: tuple[Any, Any]
) -> None:
    (run,) = runs_in(f"#!/bin/bash\n#SBATCH {directives}\n{command} python train.py\n")
    assert size(run) == expected


def test_gpus_of_tasks_are_the_gpus_of_the_node(runs_in: MakeRuns) -> None:
    (run,) = runs_in(
        "#!/bin/bash\n#SBATCH -N 2\n#SBATCH --ntasks-per-node=4\n"
        "#SBATCH --gpus-per-task=h100:2\nsrun python train.py\n"
    )
    assert (run.hardware.gpu, run.hardware.gpus_per_node) == ("H100", 8)


# --- containers and Fabric -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--gpus 4", 4),
        ("--gpus=2", 2),
        ("--gpus '\"device=0,3,5\"'", 3),
        ("--gpus device=1", 1),
        ("--gpus all", UNKNOWN),
        ("--gpus 4 -e CUDA_VISIBLE_DEVICES=0,1", 2),
        ("-e CUDA_VISIBLE_DEVICES", 2),
        ("", UNKNOWN),
    ],
)
def test_a_container_has_the_gpus_it_is_given(runs_in: MakeRuns, flags: str, expected: Any) -> None:
    script = (
        f"export CUDA_VISIBLE_DEVICES=6,7\ndocker run {flags} img torchrun --nproc_per_node gpu"
    )
    (run,) = runs_in(f"{script} train.py\n")
    assert size(run) == (expected, 1)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("fabric run", (1, 1)),
        ("fabric run --devices 4 --num-nodes=2 --precision bf16-mixed", (4, 2)),
        ("fabric run model --devices=0,1", (2, 1)),
        ("lightning run model --devices -1", (UNKNOWN, 1)),
        ("fabric run --devices auto", (UNKNOWN, 1)),
    ],
)
def test_fabric_run_starts_a_process_for_each_device(
    runs_in: MakeRuns, command: str, expected: tuple[Any, Any]
) -> None:
    (run,) = runs_in(f"{command} train.py\n")
    assert size(run) == expected


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--precision bf16 --devices $DEVICES lr=1e-4", (8, 1)),
        ("lr=1e-4 --devices=0,1 --num_nodes 2", (2, 2)),
        ("--lr 1e-4", (1, 1)),
        ("-- --devices 4", (1, 1)),  # behind this mark all is the script's own
        ("$@", (UNKNOWN, UNKNOWN)),
        ("--devices 4 $@", (4, UNKNOWN)),
    ],
)
def test_options_of_fabric_run_may_follow_the_script(
    runs_in: MakeRuns, flags: str, expected: tuple[Any, Any]
) -> None:
    (run,) = runs_in(f"export DEVICES=8\nlightning run model train.py {flags}\n")
    assert size(run) == expected


# --- make ------------------------------------------------------------------------------------

MAKEFILE = "GPUS ?= 2\ntrain:\n\ttorchrun --nproc_per_node $(GPUS) train.py\n"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("make train GPUS=8\n", [(8, 1)]),
        ("GPUS=4 make\n", [(4, 1)]),
        ("make -j 4 -k train GPUS=8; make -f Makefile GPUS=$N\n", [(8, 1), (UNKNOWN, 1)]),
        ("make clean\n", [(2, 1)]),
        ("make -n train GPUS=8\n", [(2, 1)]),
        ("f() { make train GPUS=8; }\necho\n", [(2, 1)]),
    ],
)
def test_make_runs_its_goal_as_it_is_called(
    runs_in: MakeRuns, script: str, expected: list[tuple[Any, Any]]
) -> None:
    runs = runs_in(script, Makefile=MAKEFILE)
    assert [size(run) for run in runs] == expected
    assert {run.location.path for run in runs} == {"Makefile"}


def test_make_that_calls_make_is_followed(runs_in: MakeRuns) -> None:
    (run,) = runs_in("true\n", Makefile=f"all:\n\t$(MAKE) train GPUS=6\n{MAKEFILE}")
    assert size(run) == (6, 1)


def test_a_makefile_that_calls_itself_ends(runs_in: MakeRuns) -> None:
    runs = runs_in("make\n", Makefile="all:\n\t$(MAKE) all\n\tpython train.py\n")
    assert runs


def test_an_engine_larger_than_a_node_fills_the_nodes_of_its_job(runs_in: MakeRuns) -> None:
    head = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gpus-per-node=8\n"
    runs = runs_in(
        f"{head}vllm serve m --tensor-parallel-size $SLURM_GPUS_PER_NODE "
        "--pipeline-parallel-size $SLURM_JOB_NUM_NODES\n"
    )
    (run,) = (run for run in runs if run.framework == "vllm")
    assert size(run) == (8, 2)
    assert run.hardware.gpus_per_node == 8


# --- LLaMA-Factory, accelerate's flags against its file, TRL's own files -----------------------

SFT = "stage: sft\nmodel_name_or_path: Qwen/Qwen2.5-7B\nfinetuning_type: lora\ndataset: d\n"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ("NPROC_PER_NODE=8", (8, 1)),
        ("NPROC_PER_NODE=8 CUDA_VISIBLE_DEVICES=0", (1, 1)),
        ("NPROC_PER_NODE=8 CUDA_VISIBLE_DEVICES=0 FORCE_TORCHRUN=1", (8, 1)),
        ("NNODES=2 NPROC_PER_NODE=8 FORCE_TORCHRUN=1", (8, 2)),
        ("NPROC_PER_NODE=8 RDZV_ID=1 MIN_NNODES=1 MAX_NNODES=4", (8, UNKNOWN)),
        ("NPROC_PER_NODE=8 MIN_NNODES=1 MAX_NNODES=4", (8, 1)),
        ("USE_RAY=1", (UNKNOWN, UNKNOWN)),
        ("USE_RAY=0 CUDA_VISIBLE_DEVICES=0,1", (2, 1)),
    ],
)
def test_llamafactory_starts_torchrun_as_its_launcher_does(
    runs_in: MakeRuns, variables: str, expected: tuple[Any, Any]
) -> None:
    runs = runs_in(f"{variables} llamafactory-cli train sft.yaml\n", sft__yaml=SFT)
    (run,) = (run for run in runs if run.framework == "llamafactory")
    assert size(run) == expected


@pytest.mark.parametrize(
    ("flags", "zero_stage", "fsdp"),
    [
        ("", 3, "none"),
        ("--use_fsdp --fsdp_sharding_strategy FULL_SHARD", 0, "full_shard"),
        ("--multi_gpu", 0, "none"),
    ],
)
def test_a_kind_given_by_a_flag_silences_the_file(
    runs_in: MakeRuns, flags: str, zero_stage: int, fsdp: str
) -> None:
    config = (
        "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\n"
        "deepspeed_config: {zero_stage: 3}\nnum_processes: 4\nnum_machines: 1\n"
    )
    script = f"import accelerate\naccelerator = accelerate.Accelerator()\n{LOOP}"
    command = f"accelerate launch --config_file c.yaml {flags} other.py\n"
    runs = runs_in(command, c__yaml=config, other__py=script)
    (run,) = (run for run in runs if run.entry == "other.py")
    assert (run.value("zero_stage"), run.value("fsdp")) == (zero_stage, fsdp)


@pytest.mark.parametrize(("name", "stage"), [("zero3", 3), ("zero2", 2), ("mine", None)])
def test_a_file_that_trl_brings_along_is_known_by_its_name(
    runs_in: MakeRuns, name: str, stage: Optional[int]
) -> None:
    runs = runs_in(f"trl sft --accelerate_config {name} --model_name_or_path m --dataset_name d\n")
    (run,) = (run for run in runs if run.launcher.name == "trl")
    assert run.launcher.world_size == (8 if stage else None)
    assert run.practice("zero_stage").known is (stage is not None)
    assert run.value("zero_stage") == stage


@pytest.mark.parametrize(
    ("flags", "is_known"), [("", False), ("--num_processes 4", True), ("--multi_gpu", True)]
)
def test_a_bare_accelerate_launch_counts_on_the_file_of_the_users_account(
    runs_in: MakeRuns, flags: str, is_known: bool
) -> None:
    script = f"import accelerate\naccelerator = accelerate.Accelerator()\n{LOOP}"
    runs = runs_in(f"accelerate launch {flags} other.py\n", other__py=script)
    (run,) = (run for run in runs if run.entry == "other.py")
    for name in ("precision", "zero_stage", "fsdp"):
        assert run.practice(name).known is is_known, name
