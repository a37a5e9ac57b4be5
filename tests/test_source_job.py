"""Job descriptions in YAML: their commands, environment and resources."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flake8_gpu_training.facts import ConfigFile, Location
from flake8_gpu_training.sources.job import commands_in_config, resources_in_config, with_job
from flake8_gpu_training.sources.yaml_source import read_yaml

PYTORCH_JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: sft}
spec:
  nprocPerNode: "8"
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - name: pytorch
              image: modelscope/swift:3.9.1
              command: ["bash", "-c"]
              args:
                - |
                  export NCCL_DEBUG=INFO
                  torchrun --nproc_per_node 8 train.py \\
                    --bf16 true
              env:
                - name: CUDA_DEVICE_MAX_CONNECTIONS
                  value: "1"
                - name: TOKEN
                  valueFrom: {secretKeyRef: {name: s, key: t}}
              resources:
                limits: {nvidia.com/gpu: "8", memory: 500Gi}
          volumes:
            - name: shm
              emptyDir: {medium: Memory, sizeLimit: 64Gi}
"""


def read(text):
    config = read_yaml(textwrap.dedent(text), "job.yaml")
    assert config.problems == ()
    return config


def resources(text):
    return {item.name: item.value for item in resources_in_config(read(text))}


def test_a_kubernetes_script_is_read_at_its_places():
    (command,) = commands_in_config(read(PYTORCH_JOB))
    assert command.text == "torchrun --nproc_per_node 8 train.py --bf16 true"
    assert command.location == Location("job.yaml", 18, 19)
    assert command.words[-2].location == Location("job.yaml", 19, 21)
    assert command.end == Location("job.yaml", 19, 32)
    assert command.environment["CUDA_DEVICE_MAX_CONNECTIONS"].value == "1"
    assert command.environment["NCCL_DEBUG"].location.line == 17
    assert not command.environment["TOKEN"].known


def test_kubernetes_resources():
    assert resources(PYTORCH_JOB) == {
        "image": "modelscope/swift:3.9.1",
        "gpus": 8,
        "replicas": 2,
        "nproc_per_node": "8",
        "shm": "64Gi",
    }


def test_an_argument_vector_is_one_command_with_variables_put_in():
    text = """\
        apiVersion: batch/v1
        kind: Job
        spec:
          template:
            spec:
              containers:
                - image: x
                  command: [python, train.py]
                  args:
                    - --model=$(MODEL)
                    - --out=$(OUT)
                  env: [{name: MODEL, value: Qwen/Qwen2.5-7B}]
    """
    (command,) = commands_in_config(read(text))
    assert [word.text for word in command.words[:3]] == [
        "python", "train.py", "--model=Qwen/Qwen2.5-7B"
    ]  # fmt: skip
    assert not isinstance(command.words[3].value, str)
    assert command.words[2].location == Location("job.yaml", 10, 15)


def test_arguments_of_the_vllm_image_go_to_its_server():
    text = """\
        apiVersion: apps/v1
        kind: Deployment
        spec:
          replicas: 2
          template:
            spec:
              containers:
                - image: vllm/vllm-openai:v0.6.3
                  args: [--model, Qwen/Qwen2.5-7B, --max-model-len, "8192"]
    """
    (command,) = commands_in_config(read(text))
    assert command.text == "vllm serve --model Qwen/Qwen2.5-7B --max-model-len 8192"


def test_arguments_of_an_unknown_image_are_no_command():
    text = """\
        apiVersion: apps/v1
        kind: Deployment
        spec: {containers: [{image: mine, args: [--model, x]}]}
    """
    assert commands_in_config(read(text)) == ()


def test_a_ray_job_has_an_entrypoint():
    text = """\
        apiVersion: ray.io/v1
        kind: RayJob
        spec:
          entrypoint: python -m verl.trainer.main_ppo trainer.n_gpus_per_node=8
          rayClusterSpec:
            headGroupSpec:
              template:
                spec:
                  containers:
                    - image: x
                      resources: {limits: {nvidia.com/gpu: 8}}
    """
    (command,) = commands_in_config(read(text))
    assert command.words[-1].text == "trainer.n_gpus_per_node=8"
    assert resources(text)["gpus"] == 8


COMPOSE = """\
services:
  train:
    image: hiyouga/llamafactory:0.9.3
    command: llamafactory-cli train "my config.yaml"
    environment:
      - NCCL_P2P_DISABLE=1
      - HOST_VARIABLE
    shm_size: 16gb
    ipc: host
    deploy:
      resources:
        reservations:
          devices:
            - {driver: nvidia, count: 4, capabilities: [gpu]}
"""


def test_compose_splits_a_string_into_words():
    (command,) = commands_in_config(read(COMPOSE))
    assert [word.text for word in command.words] == [
        "llamafactory-cli", "train", "my config.yaml"
    ]  # fmt: skip
    assert command.location == Location("job.yaml", 4, 14)
    assert command.environment["NCCL_P2P_DISABLE"].value == "1"
    assert not command.environment["HOST_VARIABLE"].known


def test_compose_resources():
    found = resources(COMPOSE)
    assert (found["gpus"], found["shm"], found["host_ipc"]) == (4, "16gb", True)


LABELLED = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  template:
    spec:
      nodeSelector:
        cloud.google.com/gke-accelerator: nvidia-h100-80gb
        topology.kubernetes.io/zone: us-central1-a
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
              - matchExpressions:
                  - {key: nvidia.com/gpu.product, operator: In, values: [NVIDIA-A100-SXM4-80GB]}
                  - {key: nvidia.com/gpu.product, operator: NotIn, values: [Tesla-T4]}
      containers:
        - name: main
          image: pytorch/pytorch
          command: [torchrun, train.py]
"""


def test_labels_that_a_node_must_have_are_read():
    labels = [s.value for s in resources_in_config(read(LABELLED)) if s.name == "machine"]
    assert labels == ["nvidia-h100-80gb", "NVIDIA-A100-SXM4-80GB"]


def test_a_machine_type_is_read():
    found = resources("resources: {instance_type: p4d.24xlarge}\nrun: torchrun train.py\n")
    assert found["machine"] == "p4d.24xlarge"


SKYPILOT = """\
resources:
  accelerators: A100-80GB:8
num_nodes: 2
envs:
  MODEL: Qwen/Qwen2.5-7B
setup: |
  pip install vllm==0.6.3
run: |
  # start
  swift sft --model $MODEL \\
    --deepspeed zero3
"""


def test_skypilot_scripts_see_their_environment():
    setup, run = commands_in_config(read(SKYPILOT))
    assert setup.text == "pip install vllm==0.6.3"
    assert run.text == "swift sft --model Qwen/Qwen2.5-7B --deepspeed zero3"
    assert run.location == Location("job.yaml", 10, 3)
    assert run.end == Location("job.yaml", 11, 22)


def test_skypilot_resources():
    assert resources(SKYPILOT) == {"gpu": "A100-80GB", "gpus": 8, "nodes": 2}


def test_folded_text_has_no_place_for_a_further_flag():
    text = "image: x\ncommand: >-\n  python train.py\n  --bf16\n"
    (command,) = commands_in_config(read(text))
    assert (command.text, command.end) == ("python train.py --bf16", None)
    assert command.location == Location("job.yaml", 2, 10)


@pytest.mark.parametrize(
    "text",
    [
        "model: x\nrun: name-of-the-run\n",
        "command: train\nlr: 1\n",
        "services: none\n",
        "- a\n",
        "kind: x\ncontainers: []\n",
        "resources: {cpu: 1}\n",
    ],
)
def test_other_configurations_hold_no_commands(text):
    config = read(text)
    assert with_job(config) is config or with_job(config).commands == ()


def test_a_job_keeps_what_it_was_read_with():
    config = with_job(read(SKYPILOT))
    assert isinstance(config, ConfigFile)
    assert len(config.documents) == 1
    assert len(config.commands) == 2
    assert len(config.resources) == 3


VALUES = st.recursive(
    st.none() | st.integers() | st.text("ab -$()'\"\n", max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["image", "command", "args", "env", "name", "value", "resources", "limits", "run",
             "nvidia.com/gpu", "containers", "services", "setup", "entrypoint", "accelerators",
             "volumes", "emptyDir", "devices", "replicas"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(VALUES, st.sampled_from([{"apiVersion": "v1", "kind": "Job"}, {"image": "x"}, {}]))
def test_no_shape_raises(value, around):
    import yaml

    data = {**around, "spec": value, **(value if isinstance(value, dict) else {})}
    with_job(read_yaml(yaml.safe_dump(data), "job.yaml"))
