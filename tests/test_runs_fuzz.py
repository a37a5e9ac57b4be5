"""Runs: no command and no configuration, however odd, makes the finder raise."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flake8_gpu_training.facts import known
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.assembly import Assembly, Origins
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.launchers import read_launch
from flake8_gpu_training.runs.pins import Pins
from flake8_gpu_training.runs.reach import Reach
from flake8_gpu_training.sources.shell import read_command_line

PIECES = st.sampled_from(
    """
    swift sft rlhf megatron llamafactory-cli train vllm serve torchrun accelerate launch deepspeed
    python -m -u trl sglang srun -N --nnodes --nproc_per_node --num_processes --num_machines
    --config_file --include --hostfile --model --deepspeed a.yaml {} {"a":1} [1 0 -1 1:2 gpu auto
    $X "$@" ${A[@]} $(x) x=y +a.b=c ++d== -- - = CUDA_VISIBLE_DEVICES=0,,1 NPROC_PER_NODE=0
    localhost:0,1@b:2 --tensor-parallel-size --pipeline-parallel-size --no-enable-x é
    """.split()  # noqa: SIM905
)
WORDS = st.lists(st.one_of(PIECES, st.text(max_size=6)), max_size=14)


@given(WORDS)
@settings(max_examples=120, deadline=None)
def test_any_command_is_a_run_or_none(words: list[str]) -> None:
    assembly = Assembly(Reach(Project(Path(), {})), lambda *paths: Pins())
    for command in read_command_line(" ".join(words)):
        launch = read_launch(command)
        for run in assembly.of_launch(launch, Origins()) if launch is not None else ():
            assert run.command is command
            assert run.launcher.world_size is None or known(run.launcher.processes.value)


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["model", "train", "deepspeed", "ENV"]), inner, max_size=3),
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(
    """
    stage finetuning_type model model_name_or_path tuner_type train trainer_type deepspeed ENV
    num_processes num_machines config_file learning_rate output_dir dataset external_plugins
    """.split()  # noqa: SIM905
)


@given(st.dictionaries(KEYS, VALUES, max_size=8))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_configuration_is_a_run_or_none(tmp_path: Path, content: dict[str, object]) -> None:
    import json

    (tmp_path / "run.yaml").write_text(json.dumps(content), encoding="utf-8")
    (tmp_path / "run.sh").write_text("swift sft run.yaml\n", encoding="utf-8")
    runs = find_runs(Project.open(tmp_path), "llamafactory-cli train run.yaml")
    assert runs[0].primary
