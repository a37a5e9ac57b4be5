"""What an image of vLLM starts by itself, and the program that branches only wrap."""

from __future__ import annotations

import pytest

from flake8_gpu_training.frameworks.engine_of import engine_of
from flake8_gpu_training.frameworks.engines import Mode
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import RunKind


def runs_of(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return find_runs(Project.open(tmp_path))


@pytest.mark.parametrize(
    "line",
    [
        "docker run --gpus all vllm/vllm-openai:v0.20.2 org/model --max-num-seqs 8",
        "podman run -d --ip 9 docker.io/vllm/vllm-openai:v0.20.2 org/model --max-num-seqs 8",
        "sudo nerdctl run --gpus all vllm/vllm-openai-rocm:v0.20.2 org/model --max-num-seqs=8",
        "docker --context far run vllm/vllm-openai-cpu:v0.20.2 --model org/model --max-num-seqs 8",
        "docker run --entrypoint vllm vllm/vllm-openai:v0.20.2 serve org/model --max-num-seqs 8",
        'docker run vllm/vllm-openai:v0.20.2 bash -c "vllm serve org/model --max-num-seqs 8"',
    ],
)
def test_an_image_serves_the_model_behind_its_name(tmp_path, line):
    (run,) = runs_of(tmp_path, "serve.sh", line + "\n")
    assert (run.framework, run.model.name) == ("vllm", "org/model")
    assert run.settings["max_num_seqs"].value == 8
    assert run.versions["vllm"] == "0.20.2"


def test_an_image_alone_serves_its_own_model(tmp_path):
    (run,) = runs_of(tmp_path, "serve.sh", "docker run --gpus all vllm/vllm-openai:v0.20.2\n")
    assert run.framework == "vllm"
    assert not run.settings


@pytest.mark.parametrize(
    "line",
    [
        "docker run --gpus all somebody/image org/model --max-num-seqs 8",
        "docker run --gpus all somebody/image",
        "docker run --entrypoint sleep vllm/vllm-openai:v0.20.2 infinity",
        "docker exec vllm org/model",
        "docker pull vllm/vllm-openai:v0.20.2",
        "docker tag vllm/vllm-openai:v0.20.2 mine",
    ],
)
def test_another_start_serves_nothing(tmp_path, line):
    assert not runs_of(tmp_path, "serve.sh", line + "\n")


COMPOSE = "services:\n  llm:\n    image: vllm/vllm-openai:v0.20.2\n"


@pytest.mark.parametrize(
    ("rest", "model"),
    [
        ("", None),
        ("    command: org/model --max-num-seqs 8\n", "org/model"),
        ("    command: [org/model, --max-num-seqs, '8']\n", "org/model"),
        ("    entrypoint: [vllm, serve]\n    command: org/model\n", "org/model"),
    ],
)
def test_a_service_without_a_program_starts_the_image_s(tmp_path, rest, model):
    (run,) = runs_of(tmp_path, "docker-compose.yml", COMPOSE + rest)
    assert (run.framework, run.model.name) == ("vllm", model)


@pytest.mark.parametrize(
    "rest", ["    entrypoint: sleep\n    command: infinity\n", "    command: sleep infinity\n"]
)
def test_a_service_with_another_program_serves_nothing(tmp_path, rest):
    assert not runs_of(tmp_path, "docker-compose.yml", COMPOSE + rest)


LAUNCH = """\
DEVICE=${{DEVICE:-$(python3 -c 'import torch_npu' 2>/dev/null && echo npu || echo gpu)}}
LAUNCH=({})
if [ "$DEVICE" = gpu ]; then
    LAUNCH=({})
fi
"${{LAUNCH[@]}}" -m vllm.entrypoints.openai.api_server --model org/model --max-num-seqs 8
"""


@pytest.mark.parametrize(
    ("one", "other"),
    [("python3", "uv run --extra vllm python3"), ("nohup python3", "conda run -n serving python3")],
)
def test_a_branch_that_only_wraps_the_program_hides_no_run(tmp_path, one, other):
    (run,) = runs_of(tmp_path, "serve.sh", LAUNCH.format(one, other))
    assert (run.framework, run.model.name) == ("vllm", "org/model")
    assert run.settings["max_num_seqs"].value == 8
    assert run.location.line == 6


@pytest.mark.parametrize("other", ["torchrun --nproc_per_node 2", "docker run image python3"])
def test_a_branch_that_starts_another_program_leaves_the_run_open(tmp_path, other):
    assert not runs_of(tmp_path, "serve.sh", LAUNCH.format("python3", other))


POD = """\
containers:
  - name: server
    image: vllm/vllm-openai:v0.20.2
    command: [sh, -c]
    args: ["pip install extra && vllm serve org/model --max-num-seqs 8"]
"""


def test_a_pods_containers_alone_are_a_job(tmp_path):
    (run,) = runs_of(tmp_path, "pod.yaml", POD)
    assert (run.framework, run.model.name) == ("vllm", "org/model")
    assert run.settings["max_num_seqs"].value == 8
    assert run.versions["vllm"] == "0.20.2"


def test_containers_without_an_image_are_no_job(tmp_path):
    text = POD.replace("    image: vllm/vllm-openai:v0.20.2\n", "")
    assert not runs_of(tmp_path, "pod.yaml", text)


def test_the_image_for_tpus_starts_the_server(tmp_path):
    line = "docker run --privileged vllm/vllm-tpu:v0.20.2 --model org/model --max-num-seqs 8\n"
    (run,) = runs_of(tmp_path, "serve.sh", line)
    assert (run.framework, run.model.name) == ("vllm", "org/model")


PART = "command:\n  - sh\n  - -c\n  - >\n    vllm serve org/model --max-num-seqs 8\n"


def test_the_command_of_a_container_alone_is_a_job(tmp_path):
    (run,) = runs_of(tmp_path, "part.yaml", PART)
    assert (run.framework, run.model.name) == ("vllm", "org/model")
    assert not runs_of(tmp_path, "part.yaml", PART + "description: a tool\n")


GENERATION = """\
python3 -m verl.trainer.main_generation_server trainer.n_gpus_per_node=8 \\
    actor_rollout_ref.model.path=org/model-7b actor_rollout_ref.rollout.name={} \\
    actor_rollout_ref.rollout.max_num_seqs=64
"""


def test_the_engines_of_verls_generation_train_nothing(tmp_path):
    (run,) = runs_of(tmp_path, "generate.sh", GENERATION.format("vllm"))
    found = engine_of(run)
    assert found is not None
    assert (found.name, found.mode, found.run.kind) == ("vllm", Mode.INTEGRATED, RunKind.INFER)
    assert found.option("max_num_seqs").value == 64


def test_verls_generation_with_another_engine_is_not_vllms(tmp_path):
    (run,) = runs_of(tmp_path, "generate.sh", GENERATION.format("hf"))
    assert engine_of(run) is None
