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
        "nodes": 2,
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


# --- gangs -------------------------------------------------------------------------------

REPLICA = """
      {role}:
        replicas: {count}
        template:
          spec:
            containers:
              - {{image: i, command: [torchrun, train.py]}}
"""


def gang(roles, more=""):
    text = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec:\n" + more
    text += "  pytorchReplicaSpecs:\n"
    for role, count in roles.items():
        text += REPLICA.format(role=role, count=count).replace("\n      ", "\n    ")
    return read(text)


def platform(command):
    names = ("PET_NNODES", "PET_NPROC_PER_NODE", "WORLD_SIZE")
    return {
        name: command.environment[name].value if command.environment[name].known else None
        for name in names
        if name in command.environment
    }


@pytest.mark.parametrize(
    ("roles", "more", "expected"),
    [
        (
            {"Master": 1, "Worker": 3},
            "",
            {"PET_NNODES": "4", "PET_NPROC_PER_NODE": "auto", "WORLD_SIZE": "4"},
        ),
        (
            {"Master": 1, "Worker": 1},
            "  nprocPerNode: '8'\n",
            {"PET_NNODES": "2", "PET_NPROC_PER_NODE": "8"},
        ),
        ({"Worker": 2}, "", {"PET_NNODES": "2"}),
        (
            {"Worker": 2},
            "  elasticPolicy: {minReplicas: 1, maxReplicas: 4, nProcPerNode: 2}\n",
            {"PET_NNODES": None, "PET_NPROC_PER_NODE": "2"},
        ),
        ({"Worker": "{{ n }}"}, "", {"PET_NNODES": None}),
    ],
)
def test_a_pytorchjob_tells_torchrun_its_sizes(roles, more, expected):
    (command,) = commands_in_config(gang(roles, more))
    assert platform(command) == expected


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ("numNodes: 2, numProcPerNode: 4", {"PET_NNODES": "2", "PET_NPROC_PER_NODE": "4"}),
        ("numNodes: 2", {"PET_NNODES": "2", "PET_NPROC_PER_NODE": None}),
        ("env: []", {"PET_NNODES": None, "PET_NPROC_PER_NODE": None}),
    ],
)
def test_a_trainjob_leaves_what_it_does_not_say_to_its_runtime(sizes, expected):
    text = f"""
        apiVersion: trainer.kubeflow.org/v1alpha1
        kind: TrainJob
        spec:
          trainer: {{command: [torchrun, train.py], {sizes}}}
    """
    (command,) = commands_in_config(read(text))
    assert platform(command) == expected


def test_variables_come_from_config_maps_of_the_same_file():
    text = """
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: sizes}
        data: {BATCH: "4", LR: "1e-3"}
        ---
        apiVersion: batch/v1
        kind: Job
        spec:
          template:
            spec:
              containers:
                - image: i
                  command: [sh, -c, "python t.py --lr $(RATE) --batch $BATCH $(date)"]
                  envFrom: [{configMapRef: {name: sizes}}, {configMapRef: {name: other}}]
                  env:
                    - name: RATE
                      valueFrom: {configMapKeyRef: {name: sizes, key: LR}}
    """
    (command,) = commands_in_config(read(text))
    assert [word.text for word in command.words[:6]] == [
        "python", "t.py", "--lr", "1e-3", "--batch", "4"
    ]  # fmt: skip
    assert not isinstance(command.words[6].value, str)


# --- compose and SkyPilot ----------------------------------------------------------------


def composed(service, **files):
    texts = {name.replace("_", "."): text for name, text in files.items()}
    text = "services:\n  t:\n" + textwrap.indent(textwrap.dedent(service), "    ")
    config = read_yaml(text, "c.yaml")

    def look_up(name, near):
        return (texts[name], name) if name in texts else None

    (command,) = commands_in_config(config, look_up)
    return command


def test_compose_puts_variables_in():
    command = composed("command: t ${A} ${B:-2} ${C-3} ${D} $$HOME ${A:+x} ${B:+y}", _env="A=1\n")
    words = [word.value if isinstance(word.value, str) else None for word in command.words]
    assert words == ["t", "1", "2", "3", None, "$HOME", "x"]


def test_compose_puts_no_secret_in():
    command = composed("command: t --login ${HF_TOKEN}", _env="HF_TOKEN=hf_abc\n")
    assert not isinstance(command.words[2].value, str)
    assert "hf_abc" not in command.text


def test_compose_reads_environment_files_below_its_own_list():
    service = """
        command: [t]
        env_file: [a.env, {path: b.env}, missing.env]
        environment: ["X=${A}", Z, "Q=${NOBODY}"]
    """
    command = composed(service, _env="A=1\nZ=9\n", a_env="X=5\nY='6'\n", b_env="Y=7\n")
    found = {name: s.value if s.known else None for name, s in command.environment.items()}
    assert found == {"X": "1", "Y": "7", "Z": "9", "Q": None}
    assert command.environment["Y"].location == Location("b.env", 1, 1)


@pytest.mark.parametrize(
    ("accelerators", "gpus", "name"),
    [
        ("A100:8", "8", "A100"),
        ("{A100: 8, H100: 8}", "8", None),
        ("[A100:8, L4:4]", None, None),
        ("L4", "1", "L4"),
        ("{A100: }", "1", "A100"),
    ],
)
def test_skypilot_says_how_many_gpus_a_node_has(accelerators, gpus, name):
    text = f"resources: {{accelerators: {accelerators}}}\nrun: t $SKYPILOT_NUM_GPUS_PER_NODE\n"
    (command,) = commands_in_config(read(text))
    value = command.words[1].value
    assert (value if isinstance(value, str) else None) == gpus
    assert "SKYPILOT_NUM_GPUS_PER_NODE" not in command.environment
    assert resources(text).get("gpu") == name


VALUES = st.recursive(
    st.none() | st.integers() | st.text("ab -$()'\"\n", max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["image", "command", "args", "env", "name", "value", "resources", "limits", "run",
             "nvidia.com/gpu", "containers", "services", "setup", "entrypoint", "accelerators",
             "volumes", "emptyDir", "devices", "replicas", "spec", "pytorchReplicaSpecs", "Master",
             "mpiReplicaSpecs", "Worker", "trainer", "elasticPolicy", "nprocPerNode", "envFrom",
             "env_file", "environment", "num_nodes", "valueFrom", "configMapRef"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


KINDS = [{"apiVersion": "v1", "kind": kind} for kind in ("Job", "PyTorchJob", "MPIJob", "TrainJob")]


@settings(max_examples=100, deadline=None)
@given(VALUES, st.sampled_from([*KINDS, {"image": "x"}, {}]))
def test_no_shape_raises(value, around):
    import yaml

    data = {**around, "spec": value, **(value if isinstance(value, dict) else {})}
    with_job(read_yaml(yaml.safe_dump(data), "job.yaml"))
